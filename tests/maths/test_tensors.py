"""``show`` and ``layout`` print exactly the expected text, and layouts describe their tensors correctly."""

import math

import pytest
import torch

import transformer_lab as tl
from agreement import DEVICE, DTYPES, raises_exactly

TENSORS_AND_TEXTS = [
    (torch.tensor([[0.5, -0.25], [1, 2]]), "(2, 2) · float32\n[[ 0.5000 -0.2500]\n [ 1.0000  2.0000]]\n"),
    (torch.tensor([0.5, 1e-9], dtype=torch.float64), "(2,) · float64\n[0.5000 0.0000]\n"),
    (torch.tensor([0.5, -3], dtype=torch.float16), "(2,) · float16\n[ 0.5000 -3.0000]\n"),
    (torch.tensor([0.5, -3], dtype=torch.bfloat16), "(2,) · bfloat16\n[ 0.5000 -3.0000]\n"),
    (torch.tensor([0.5, -3]).to(torch.float8_e4m3fn), "(2,) · float8_e4m3fn\n[ 0.5000 -3.0000]\n"),
    (torch.tensor([1 - 2j, -0j]), "(2,) · complex64\n[1.0000-2.0000j 0.0000+0.0000j]\n"),
    (torch.tensor([1 + 2j]).conj(), "(1,) · complex64\n[1.0000-2.0000j]\n"),
    (torch.tensor([True, False]), "(2,) · bool\n[ True False]\n"),
    *(
        (torch.tensor([3, 100], dtype=dtype), f"(2,) · {str(dtype)[6:]}\n[  3 100]\n")
        for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    ),
    (torch.tensor(7), "() · int64\n7\n"),
    (torch.tensor(1.5), "() · float32\n1.5000\n"),
    (torch.tensor(True), "() · bool\nTrue\n"),
    (torch.empty(0), "(0,) · float32\n[]\n"),
    (torch.empty(2, 0, 3, dtype=torch.int64), "(2, 0, 3) · int64\n[]\n"),
    (torch.tensor([-0.0, -1e-9, 0.0]), "(3,) · float32\n[0.0000 0.0000 0.0000]\n"),
    (
        torch.tensor([math.nan, math.inf, -math.inf, 1.0]),
        "(4,) · float32\n[   nan    inf   -inf 1.0000]\n",
    ),
    (torch.tensor([1e37, -1.0]), "(2,) · float32\n[ 1.0000e+37 -1.0000e+00]\n"),  # 1e37 × 10⁴ overflows
    (torch.tensor(1e306, dtype=torch.float64), "() · float64\n1.0000e+306\n"),
    (torch.arange(1001), "(1001,) · int64\n[   0    1    2 ...  998  999 1000]\n"),
    (torch.ones(2, requires_grad=True), "(2,) · float32\n[1.0000 1.0000]\n"),
    (torch.arange(6.0).view(2, 3).t()[1:], "(2, 2) · float32\n[[1.0000 4.0000]\n [2.0000 5.0000]]\n"),
]


@pytest.mark.parametrize(("x", "text"), TENSORS_AND_TEXTS)
def test_show_prints_the_same_on_every_device(x, text, capsys):
    tl.show(x)
    assert capsys.readouterr().out == text
    if x.dtype != torch.float64 or x.dtype in DTYPES:  # not every device has float64
        tl.show(x.to(DEVICE))
        assert capsys.readouterr().out == text


def test_show_prints_all_of_a_tensor_of_a_thousand(capsys):
    tl.show(torch.arange(1000).view(10, 100))
    printed = capsys.readouterr().out
    assert "..." not in printed and "[  0   1   2" in printed and max(map(len, printed.splitlines())) <= 101


@pytest.mark.parametrize("axes", ["q_len k_len", ["q_len", "k_len"], ("q_len", "k_len")])
def test_show_names_the_axes(axes, capsys):
    tl.show(torch.zeros(1, 2), axes)
    assert capsys.readouterr().out == "q_len 1 × k_len 2 · float32\n[[0.0000 0.0000]]\n"


def test_show_of_a_scalar_has_no_axes(capsys):
    tl.show(torch.tensor(3.14159), "", digits=2)
    assert capsys.readouterr().out == "() · float32\n3.14\n"


def test_show_does_not_modify_its_input():
    x = torch.tensor([-0.0, 0.123456], device=DEVICE, requires_grad=True)
    tl.show(x)
    assert x._version == 0 and x.signbit()[0] and x[1] == torch.tensor(0.123456)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tl.show([1.0]), TypeError, "x must be a tensor, got list"),
        (lambda: tl.layout(3), TypeError, "x must be a tensor, got int"),
        (lambda: tl.layout(torch.ones(1)).shares_storage_with(3), TypeError, "other must be a tensor, got int"),
        (lambda: tl.show(torch.ones(2), 3), TypeError, "axes must be a string or a list of strings, got 3"),
        (lambda: tl.show(torch.ones(2), [3]), TypeError, "axes must be a string or a list of strings, got [3]"),
        (
            lambda: tl.show(torch.ones(2, 3), "batch q_len d_head"),
            ValueError,
            "axes must name each of the 2 axes of x, got 3: 'batch q_len d_head'",
        ),
        (lambda: tl.show(torch.ones(2), ""), ValueError, "axes must name each of the 1 axes of x, got 0: ''"),
    ],
)
def test_errors_name_argument_rule_and_value(call, error, text):
    raises_exactly(call, error, text)


VIEWS = {
    "itself": lambda x: x,
    "transposed": lambda x: x.transpose(0, 2),
    "permuted": lambda x: x.permute(1, 2, 0),
    "every other": lambda x: x[:, ::2],
    "from the middle": lambda x: x[1, 1:],
    "one number": lambda x: x[1, 2, 3],
    "expanded": lambda x: x[:, :1].expand(2, 7, 4),
    "a diagonal": lambda x: x[0].diagonal(),
    "empty": lambda x: x[:, 3:],
    "one axis of 1": lambda x: x[:, :, :1].transpose(0, 2),
    "copied": lambda x: x.transpose(0, 2).contiguous(),
}


@pytest.mark.parametrize("view", VIEWS)
def test_layout_describes_strides_and_offset(view):
    base = torch.arange(24, device=DEVICE).view(2, 3, 4)
    x = VIEWS[view](base)
    actual = tl.layout(x)
    assert actual.shape == tuple(x.shape) and actual.strides == x.stride() and actual.offset == x.storage_offset()
    assert actual.contiguous == x.is_contiguous()
    # Storage, strides and offset determine a tensor completely, so they must recreate it.
    storage = torch.empty(0, dtype=x.dtype, device=DEVICE).set_(x.untyped_storage())
    assert torch.equal(storage.as_strided(actual.shape, actual.strides, actual.offset), x)
    storage_indices = [
        actual.offset + sum(i * s for i, s in zip(index, actual.strides)) for index in _indices(actual.shape)
    ]
    assert storage[storage_indices].tolist() == x.flatten().tolist()
    assert actual.shares_storage_with(base) == (view != "copied")


def _indices(shape):
    return torch.ones(shape).nonzero().tolist()


def test_storage_is_shared_by_views_and_not_by_copies():
    x = torch.arange(6, device=DEVICE)
    assert tl.layout(x).shares_storage_with(x[3:]) and tl.layout(x[:2]).shares_storage_with(x[4:])
    assert not tl.layout(x).shares_storage_with(x.clone())
    assert not tl.layout(torch.empty(0)).shares_storage_with(torch.empty(0))  # an empty tensor has no storage to share
    assert tl.layout(x) == tl.layout(x.view(6)) != tl.layout(x.clone())


def test_layout_prints_without_the_address():
    text = "shape       (3, 2)\nstrides     (1, 4)\noffset      5\ncontiguous  no"
    assert repr(tl.layout(torch.arange(16).view(4, 4)[1:, 1:].t()[:, :2])) == text
    assert repr(tl.layout(torch.tensor(1))) == "shape       ()\nstrides     ()\noffset      0\ncontiguous  yes"
