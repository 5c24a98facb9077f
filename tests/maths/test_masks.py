"""Masks agree with loops that follow the masks' definitions, and with PyTorch's masks."""

import itertools
import math

import pytest
import torch
from torch.nn import functional as F

import transformer_lab as tl
from agreement import DEVICE, DTYPES, FULL_PRECISION, assert_close, assert_gradients_close, normal, raises

SIZES = range(6)


def mask_by_rule(rows, columns, rule):
    """Return the mask that follows from a rule, which says whether query i sees key j."""
    entries = [[rule(i, j) for j in range(columns)] for i in range(rows)]
    return torch.tensor(entries, dtype=torch.bool, device=DEVICE).reshape(rows, columns)


def assert_mask(mask, expected):
    assert mask.dtype == torch.bool and mask.device == expected.device and mask.is_contiguous()
    assert mask.shape == expected.shape and torch.equal(mask, expected)


# The definition of each mask.


@pytest.mark.parametrize(("q_len", "k_len"), list(itertools.product(SIZES, SIZES)))
def test_causal_mask_counts_from_the_end(q_len, k_len):
    mask = tl.causal_mask(q_len, k_len, device=DEVICE)
    assert_mask(mask, mask_by_rule(q_len, k_len, lambda i, j: q_len - 1 - i <= k_len - 1 - j))
    if q_len == k_len:
        assert_mask(tl.causal_mask(q_len, device=DEVICE), mask_by_rule(q_len, q_len, lambda i, j: j <= i))
    if q_len and k_len:
        assert mask[-1].all()
        assert (~mask.any(-1)).sum() == max(q_len - k_len, 0)  # these queries precede the first key


def test_causal_mask_is_pytorchs_lower_right_mask():
    from torch.nn.attention.bias import causal_lower_right, causal_upper_left

    for q_len, k_len in ((1, 1), (4, 4), (3, 7)):  # PyTorch warns if q_len > k_len
        # PyTorch's causal masks belong to a subclass of Tensor, and have no numbers until they are materialized.
        assert torch.equal(tl.causal_mask(q_len, k_len), causal_lower_right(q_len, k_len)._materialize())
        upper_left = causal_upper_left(q_len, k_len)._materialize()
        assert torch.equal(tl.causal_mask(q_len, k_len), upper_left) == (q_len == k_len)


@pytest.mark.parametrize(("seq", "window"), list(itertools.product(SIZES, (1, 2, 3, 9, 10**6))))
def test_a_sliding_window_holds_the_token_and_those_before_it(seq, window):
    mask = tl.sliding_window_mask(seq, window, device=DEVICE)
    assert_mask(mask, mask_by_rule(seq, seq, lambda i, j: i - window < j <= i))
    both_ways = mask | mask.mT
    assert torch.equal(both_ways, mask_by_rule(seq, seq, lambda i, j: abs(i - j) < window))


@pytest.mark.parametrize(("seq", "prefix"), [(seq, prefix) for seq in SIZES for prefix in range(seq + 1)])
def test_a_prefix_is_visible_to_all(seq, prefix):
    assert_mask(tl.prefix_mask(seq, prefix, device=DEVICE), mask_by_rule(seq, seq, lambda i, j: j < prefix or j <= i))


@pytest.mark.parametrize("k_len", [0, 1, 3, 300])
@pytest.mark.parametrize("container", [list, tuple, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_padding_is_hidden_as_a_key(k_len, container):
    lengths = sorted({0, min(1, k_len), min(100, k_len)})
    expected = mask_by_rule(len(lengths), k_len, lambda i, j: j < lengths[i])[:, None, None]
    lengths_argument = (
        container(lengths) if container in (list, tuple) else torch.tensor(lengths, dtype=container, device=DEVICE)
    )
    assert_mask(tl.padding_mask(lengths_argument, k_len, device=DEVICE), expected)
    if isinstance(lengths_argument, torch.Tensor):
        assert_mask(tl.padding_mask(lengths_argument, k_len), expected)  # the mask is on the device of the lengths
        assert lengths_argument.tolist() == lengths and lengths_argument._version == 0


def test_padding_mask_may_have_no_sequences_or_no_padding():
    assert tl.padding_mask([], 3).shape == (0, 1, 1, 3)
    assert tl.padding_mask(torch.zeros(0, dtype=torch.long), 0).shape == (0, 1, 1, 0)
    assert tl.padding_mask([3, 3], 3).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 4), (2, 1, 3, 4)])
def test_additive_mask_is_zero_where_a_query_may_attend(dtype, shape):
    mask = (normal(*shape, seed=1) > 0).detach()
    actual = tl.additive_mask(mask, dtype=dtype)
    assert actual.dtype == dtype and actual.device == mask.device and actual.shape == mask.shape
    assert (actual[mask] == 0).all() and (actual[~mask] == -math.inf).all()
    assert tl.additive_mask(mask).dtype == torch.float32
    assert mask._version == 0


def test_masks_are_created_on_the_given_device():
    meta = torch.device("meta")
    for device in ("meta", meta):
        assert tl.causal_mask(2, 3, device=device).device == meta
        assert tl.sliding_window_mask(3, 2, device=device).device == meta
        assert tl.prefix_mask(3, 2, device=device).device == meta
        assert tl.padding_mask([1, 2], 3, device=device).device == meta
        assert tl.additive_mask(tl.causal_mask(2), device=device).device == meta
    assert tl.padding_mask(torch.tensor([1, 2], device="meta"), 3).device == meta
    assert tl.additive_mask(tl.causal_mask(2, device="meta")).device == meta
    with torch.device("meta"):  # PyTorch's default device applies
        assert tl.causal_mask(2).device == meta and tl.prefix_mask(3, 2).device == meta
    assert tl.causal_mask(2).device.type == "cpu"


# The effect of masks in attention.


def query_key_value(seq, *, dtype=torch.float32):
    return (normal(2, 3, seq, 4, seed=seed, dtype=dtype) for seed in range(3))


def test_masks_combine():
    causal, padding = tl.causal_mask(4, device=DEVICE), tl.padding_mask([4, 2], 4, device=DEVICE)
    causal_and_padding = causal & padding
    assert causal_and_padding.shape == (2, 1, 4, 4)
    assert_mask(causal_and_padding[0, 0], causal)
    assert_mask(causal_and_padding[1, 0], mask_by_rule(4, 4, lambda i, j: j <= i and j < 2))
    window, prefix = tl.sliding_window_mask(5, 2, device=DEVICE), tl.prefix_mask(5, 2, device=DEVICE)
    assert_mask(
        window | (prefix & ~tl.prefix_mask(5, 0, device=DEVICE)),
        mask_by_rule(5, 5, lambda i, j: i - j in (0, 1) or i < j < 2),
    )


@pytest.mark.parametrize("dtype", FULL_PRECISION)
def test_causal_mask_matches_is_causal_for_a_sequence(dtype):
    query, key, value = query_key_value(5, dtype=dtype)
    masked = tl.scaled_dot_product_attention(query, key, value, tl.causal_mask(5, device=DEVICE))
    causal = tl.scaled_dot_product_attention(query, key, value, is_causal=True)
    assert_close(masked, causal)
    assert_gradients_close(masked, causal, (query, key, value))


def test_is_causal_counts_from_the_first_key():
    query, key, value = query_key_value(5)
    whole = tl.scaled_dot_product_attention(query, key, value, is_causal=True)
    recent = query[:, :, -2:]  # two new tokens, and three in the cache
    assert_close(
        tl.scaled_dot_product_attention(recent, key, value, tl.causal_mask(2, 5, device=DEVICE)), whole[:, :, -2:]
    )
    causal_from_first_key = tl.scaled_dot_product_attention(recent, key, value, is_causal=True)
    assert (causal_from_first_key - whole[:, :, -2:]).abs().max() > 0.1


@pytest.mark.parametrize("dtype", FULL_PRECISION)
def test_pytorch_accepts_bool_and_additive_masks(dtype):
    query, key, value = query_key_value(5, dtype=dtype)
    mask = tl.causal_mask(5, device=DEVICE) & tl.padding_mask([5, 3], 5, device=DEVICE)
    our_output = tl.scaled_dot_product_attention(query, key, value, mask)
    for torch_mask in (mask, tl.additive_mask(mask, dtype=dtype)):
        torch_output = F.scaled_dot_product_attention(query, key, value, attn_mask=torch_mask)
        assert_close(our_output, torch_output)
        assert_gradients_close(our_output, torch_output, (query, key, value))


def test_tokens_outside_a_window_do_not_change_the_output():
    query, key, value = (x.detach() for x in query_key_value(6))
    mask = tl.sliding_window_mask(6, 2, device=DEVICE)
    before = tl.scaled_dot_product_attention(query, key, value, mask)
    key[:, :, 2], value[:, :, 2] = 9.0, -9.0
    after = tl.scaled_dot_product_attention(query, key, value, mask)
    changed = (after != before).any(-1).any(0).any(0)
    assert changed.tolist() == [False, False, True, True, False, False]


# The exact text of every error.

BOOL_ERROR = "mask must be bool, True where a query may attend, got"
WRONG_CALLS = [
    (lambda: tl.causal_mask(2.0), TypeError, "q_len must be an integer, got 2.0"),
    (lambda: tl.causal_mask(True), TypeError, "q_len must be an integer, got True"),
    (
        lambda: tl.causal_mask(torch.ones(2)),
        TypeError,
        "q_len must be an integer, got a tensor of torch.float32, shape (2,)",
    ),
    (lambda: tl.causal_mask(-1), ValueError, "q_len must be at least 0, got -1"),
    (lambda: tl.causal_mask(2, -3), ValueError, "k_len must be at least 0, got -3"),
    (lambda: tl.causal_mask(2, "3"), TypeError, "k_len must be an integer, got '3'"),
    (lambda: tl.sliding_window_mask(3, 0), ValueError, "window must be at least 1, got 0"),
    (lambda: tl.sliding_window_mask(3, 1.5), TypeError, "window must be an integer, got 1.5"),
    (lambda: tl.sliding_window_mask(-3, 1), ValueError, "seq must be at least 0, got -3"),
    (lambda: tl.sliding_window_mask("3", 1), TypeError, "seq must be an integer, got '3'"),
    (lambda: tl.prefix_mask(3, 4), ValueError, "prefix must be at most seq, which is 3, got 4"),
    (lambda: tl.prefix_mask(3, -1), ValueError, "prefix must be at least 0, got -1"),
    (lambda: tl.prefix_mask(-3, 1), ValueError, "seq must be at least 0, got -3"),
    (lambda: tl.prefix_mask(3, None), TypeError, "prefix must be an integer, got None"),
    (
        lambda: tl.padding_mask(torch.tensor([1, 4]), 3),
        ValueError,
        "lengths must be from 0 to k_len, which is 3, got 4",
    ),
    (
        lambda: tl.padding_mask(torch.tensor([1, -1]), 3),
        ValueError,
        "lengths must be from 0 to k_len, which is 3, got -1",
    ),
    (lambda: tl.padding_mask([1, 4], 3), ValueError, "lengths must be from 0 to k_len, which is 3, got 4"),
    (lambda: tl.padding_mask([1, -1], 3), ValueError, "lengths[1] must be at least 0, got -1"),
    (lambda: tl.padding_mask([1, 2.0], 3), TypeError, "lengths[1] must be an integer, got 2.0"),
    (lambda: tl.padding_mask([True], 3), TypeError, "lengths[0] must be an integer, got True"),
    (lambda: tl.padding_mask([[1], [2]], 3), TypeError, "lengths[0] must be an integer, got [1]"),
    (lambda: tl.padding_mask(3, 3), TypeError, "lengths must be a tensor or a sequence of integers, got int"),
    (lambda: tl.padding_mask(torch.ones(2), 3), TypeError, "lengths must be integers, got torch.float32"),
    (lambda: tl.padding_mask(torch.ones(2) > 0, 3), TypeError, "lengths must be integers, got torch.bool"),
    (lambda: tl.padding_mask(torch.ones(2) * 1j, 3), TypeError, "lengths must be integers, got torch.complex64"),
    (lambda: tl.padding_mask(torch.tensor(2), 3), ValueError, "lengths must have shape (batch,), got ()"),
    (
        lambda: tl.padding_mask(torch.ones(2, 1, dtype=torch.long), 3),
        ValueError,
        "lengths must have shape (batch,), got (2, 1)",
    ),
    (lambda: tl.padding_mask([1], -1), ValueError, "k_len must be at least 0, got -1"),
    (
        lambda: tl.padding_mask([1], torch.tensor(3)),
        TypeError,
        "k_len must be an integer, got a tensor of torch.int64, shape ()",
    ),
    (lambda: tl.additive_mask([True]), TypeError, "mask must be a tensor of bool, got list"),
    (lambda: tl.additive_mask(torch.ones(2)), TypeError, f"{BOOL_ERROR} torch.float32 with 0 and 1"),
    (
        lambda: tl.additive_mask(torch.ones(2, dtype=torch.uint8)),
        TypeError,
        f"{BOOL_ERROR} torch.uint8 with 0 and 1",
    ),
    (
        lambda: tl.additive_mask(tl.causal_mask(2), dtype=torch.int64),
        TypeError,
        "dtype must be a floating-point type, got torch.int64",
    ),
    (
        lambda: tl.additive_mask(tl.causal_mask(2), dtype=float),
        TypeError,
        "dtype must be a floating-point type, got <class 'float'>",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG_CALLS)
def test_mask_errors_name_the_argument(call, error, text):
    raises(call, error, text)
