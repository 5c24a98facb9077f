"""Positions agree with the papers' formulas, which are computed number by number in float64."""

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.overrides import TorchFunctionMode

import transformer_lab as tl
from agreement import (
    DEVICE,
    DTYPES,
    FULL_PRECISION,
    assert_close,
    assert_gradients_close,
    load_transformers,
    normal,
    raises,
    raises_exactly,
)
from transformer_lab import positions as positions_module


def sinusoidal_value(position, feature, d_model):
    angle = position / 10000 ** ((feature - feature % 2) / d_model)
    return math.cos(angle) if feature % 2 else math.sin(angle)


@pytest.mark.parametrize("d_model", [1, 2, 5, 8, 33])
def test_sinusoidal_positions_match_the_formula(d_model):
    actual = tl.sinusoidal_positions(50, d_model, device=DEVICE)
    assert actual.shape == (50, d_model) and actual.dtype == torch.float32 and actual.device.type == DEVICE.type
    for p in range(50):
        for feature in range(d_model):
            assert abs(actual[p, feature].item() - sinusoidal_value(p, feature, d_model)) < 6e-8


def test_late_sinusoidal_positions_are_exact():
    actual = tl.sinusoidal_positions(100_001, 6)
    for p in (99_999, 100_000):
        for feature in range(6):
            assert abs(actual[p, feature].item() - sinusoidal_value(p, feature, 6)) < 6e-8


def test_shifting_positions_rotates_every_pair():
    """The encoding of ``p + 7`` is the encoding of ``p`` times a matrix that does not depend on ``p``.

    See section 3.5 of Vaswani et al.
    """
    actual = tl.sinusoidal_positions(40, 8).double()
    for pair in range(4):
        angle = 7 / 10000 ** (2 * pair / 8)
        rotation = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]], dtype=torch.float64
        )
        columns = actual[:, 2 * pair : 2 * pair + 2]
        torch.testing.assert_close(columns[:-7] @ rotation.T, columns[7:], rtol=0, atol=3e-7)


def test_positions_are_on_the_default_device_even_without_float64():
    with torch.device(DEVICE):
        actual = tl.TokenEmbedding(3, 6).positions
    assert actual.device.type == DEVICE.type
    assert torch.equal(actual[:9].cpu(), tl.sinusoidal_positions(9, 6, device="cpu"))


def test_default_device_can_change():
    with torch.device("meta"):
        assert tl.sinusoidal_positions(3, 4).is_meta
    assert tl.sinusoidal_positions(3, 4).device.type == "cpu"


def test_zero_positions_give_an_empty_table():
    assert tl.sinusoidal_positions(0, 4, device=DEVICE).shape == (0, 4)


@pytest.mark.parametrize(
    ("sizes", "error", "text"),
    [
        ((2.0, 4), TypeError, "seq must be an integer, got 2.0"),
        ((True, 4), TypeError, "seq must be an integer, got True"),
        ((2, "4"), TypeError, "d_model must be an integer, got '4'"),
        ((-1, 4), ValueError, "seq must be at least 0, got -1"),
        ((2, 0), ValueError, "d_model must be at least 1, got 0"),
    ],
)
def test_errors_name_argument_rule_and_value(sizes, error, text):
    raises_exactly(lambda: tl.sinusoidal_positions(*sizes), error, text)


# Rotary positions.

SHIFTED_POSITIONS, SWAPPED_POSITIONS = torch.arange(3, 8, device=DEVICE), torch.tensor([4, 1, 2, 3, 0], device=DEVICE)
both_layouts = pytest.mark.parametrize("interleaved", [False, True])


def rotate_in_float64(x, positions, base=10000.0, interleaved=False, n_features=None):
    """Multiply each pair, as a complex number, by ``exp(i angle)``, in float64 on the CPU; ``x`` receives gradients."""
    if n_features is not None:
        rotated_features = rotate_in_float64(x[..., :n_features], positions, base, interleaved)
        return torch.cat((rotated_features, x[..., n_features:].cpu().double()), -1)
    x, positions, n_pairs = x.cpu().double(), positions.cpu().double(), x.shape[-1] // 2
    pairs = x.unflatten(-1, (n_pairs, 2)) if interleaved else x.unflatten(-1, (2, n_pairs)).mT  # (..., seq, pairs, 2)
    frequencies = torch.tensor([base ** (-2 * i / x.shape[-1]) for i in range(n_pairs)], dtype=torch.float64)
    angle = positions[..., None] * frequencies
    product = torch.complex(*pairs.unbind(-1)) * torch.polar(torch.ones_like(angle), angle)
    pairs = torch.stack((product.real, product.imag), -1)
    return pairs.flatten(-2) if interleaved else pairs.mT.flatten(-2)


@both_layouts
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d_head", [2, 6, 64])
def test_rotary_multiplies_complex_numbers(d_head, dtype, interleaved):
    x, positions = normal(2, 3, 5, d_head, seed=1, dtype=dtype), torch.arange(5, device=DEVICE)
    actual = tl.rotary(x, interleaved=interleaved)
    assert actual.dtype == dtype and actual.device == x.device and x._version == 0
    expected = rotate_in_float64(x, positions, interleaved=interleaved)
    assert_close(actual, expected)
    assert_gradients_close(actual, expected, (x,))
    assert_close(tl.rotary(x, positions, interleaved=interleaved), actual)
    other_base = tl.rotary(x, positions, base=500_000.0, interleaved=interleaved)
    assert_close(other_base, rotate_in_float64(x, positions, 500_000.0, interleaved))


@both_layouts
def test_rotary_accepts_positions_per_sequence(interleaved):
    x = normal(2, 3, 5, 4, seed=1)
    padded_positions = torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]], dtype=torch.int32, device=DEVICE)[:, None]
    actual = tl.rotary(x, padded_positions, interleaved=interleaved)
    assert_close(actual, rotate_in_float64(x, padded_positions, interleaved=interleaved))
    assert_close(actual[0, :, 2:], tl.rotary(x[0, :, 2:], interleaved=interleaved))  # as if there were no padding


@both_layouts
@pytest.mark.parametrize("dtype", FULL_PRECISION)
def test_late_rotary_positions_are_exact(dtype, interleaved):
    x, late_positions = normal(1, 3, 8, seed=2, dtype=dtype), torch.tensor([0, 99_999, 1_000_003], device=DEVICE)
    difference = tl.rotary(x, late_positions, interleaved=interleaved).cpu().double() - rotate_in_float64(
        x, late_positions, interleaved=interleaved
    )
    assert difference.abs().max() < (1e-6 if dtype == torch.float32 else 1e-9)


@both_layouts
@pytest.mark.parametrize("shift", [1, 17, 5000])
def test_rotary_scores_depend_on_distance_alone(shift, interleaved):
    query, key = normal(2, 3, 7, 8, seed=1), normal(2, 3, 7, 8, seed=2)
    rotate = partial(tl.rotary, interleaved=interleaved)
    positions = torch.arange(7, device=DEVICE)
    scores = rotate(query) @ rotate(key).mT
    assert_close(rotate(query, positions + shift) @ rotate(key, positions + shift).mT, scores)
    assert (rotate(query, positions + shift) @ rotate(key).mT - scores).abs().max() > 0.1
    assert_close(rotate(query).norm(dim=-1), query.norm(dim=-1))


@both_layouts
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n_features", "d_head"), [(2, 6), (4, 6), (6, 6), (4, 5), (2, 3)])
def test_partial_rotary_rotates_the_first_features(n_features, d_head, dtype, interleaved):
    x = normal(2, 3, 5, d_head, seed=1, dtype=dtype)
    options = {"base": 100.0, "interleaved": interleaved, "n_features": n_features}
    for positions in (None, SHIFTED_POSITIONS, SHIFTED_POSITIONS[None, None].expand(2, 1, 5)):
        actual = tl.rotary(x, positions, **options)
        assert actual.dtype == dtype and x._version == 0
        expected = rotate_in_float64(x, torch.arange(5) if positions is None else positions, **options)
        assert_close(actual, expected)
        assert_gradients_close(actual, expected, (x,))
        assert torch.equal(actual[..., n_features:], x[..., n_features:])
    if n_features == d_head:
        assert torch.equal(tl.rotary(x, n_features=d_head), tl.rotary(x))
    assert tl.rotary(x[:, :, :0], **options).shape == (2, 3, 0, d_head)


@both_layouts
def test_partial_rotary_gives_the_same_step_by_step(interleaved):
    rotate = partial(tl.rotary, n_features=2, interleaved=interleaved)
    attention = tl.MultiHeadAttention(12, 3, n_kv_heads=1, d_head=6, rotate=rotate).to(DEVICE).eval()
    x, cache = normal(2, 5, 12, seed=1), attention.new_cache()
    steps = torch.cat([attention.step(new, cache) for new in x.split([2, 1, 1, 1], -2)], -2)
    assert_close(steps, attention(x, is_causal=True))


@pytest.mark.parametrize("class_path", ["gpt_neox.GPTNeoX", "phi.Phi"])
def test_partial_rotary_matches_transformers(class_path):
    transformers = load_transformers()
    folder, _, family = class_path.partition(".")
    modeling = getattr(getattr(transformers.models, folder), f"modeling_{folder}")
    config = getattr(transformers, f"{family}Config")(hidden_size=96, num_attention_heads=4)
    query, n_features = normal(2, 4, 9, 24, seed=1), {"gpt_neox": 6, "phi": 12}[folder]
    angles = getattr(modeling, f"{family}RotaryEmbedding")(config).to(DEVICE)
    cos, sin = angles(query, torch.arange(9, device=DEVICE)[None])
    assert cos.shape[-1] == n_features
    rotated_features, _ = modeling.apply_rotary_pos_emb(query[..., :n_features], query[..., :n_features], cos, sin)
    assert_close(tl.rotary(query, n_features=n_features), torch.cat((rotated_features, query[..., n_features:]), -1))


def test_both_rotary_layouts_match_with_permuted_rows():
    x = normal(2, 5, 8, seed=1)
    order = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7], device=DEVICE)  # the halves, interleaved into pairs of neighbours
    assert_close(tl.rotary(x[..., order], interleaved=True), tl.rotary(x)[..., order])


def test_rotary_keeps_the_shape_of_empty_tensors():
    x = normal(2, 3, 5, 4, seed=1)
    assert tl.rotary(x.to("meta")).shape == x.shape
    assert tl.rotary(x[:, :, :0]).shape == (2, 3, 0, 4) and tl.rotary(x[..., :0]).shape == (2, 3, 5, 0)


# Cached tables of rotary angles.


@pytest.fixture
def cleared_tables():
    """Empty the caches of tables."""
    positions_module._first_rows_of_table.cache_clear()
    positions_module._cached_table.cache_clear()


def test_cached_table_matches_direct_computation(cleared_tables):
    """The cache must not mix up calls that differ in the base, layout, features, positions, dtype or shape."""
    x = normal(2, 3, 5, 8, seed=1)
    for _ in range(2):
        for options in (
            {},
            {"base": 100.0},
            {"base": 100},
            {"interleaved": True},
            {"n_features": 4},
            {"n_features": 8},
        ):
            for positions in (
                None,
                SHIFTED_POSITIONS,
                SWAPPED_POSITIONS,
                SHIFTED_POSITIONS[None].int(),
                SWAPPED_POSITIONS.to(torch.uint8),
            ):
                expected = rotate_in_float64(x, torch.arange(5) if positions is None else positions, **options)
                assert_close(tl.rotary(x, positions, **options), expected)
        for other_x in (
            x.double() if DEVICE.type == "cpu" else x,
            x.half(),
            x[:, :, :4],
            x[..., :6],
            x[:1].mT[..., :2],
        ):
            actual = tl.rotary(other_x)
            assert actual.dtype == other_x.dtype
            assert_close(actual, rotate_in_float64(other_x, torch.arange(other_x.shape[-2])))


def test_one_table_serves_many_lengths(cleared_tables):
    for seq in (33, 40, 64, 33, 64):
        tl.rotary(normal(2, seq, 4, seed=1))
    assert positions_module._cached_table.cache_info().misses == 1


def test_cached_tables_are_bounded_in_size(cleared_tables):
    x = normal(1, 2, seed=1)
    for i in range(3 * positions_module.MAX_TABLES):
        tl.rotary(x, base=2.0 + i)
    assert (
        positions_module._cached_table.cache_info().currsize
        == positions_module._first_rows_of_table.cache_info().currsize
        == positions_module.MAX_TABLES
    )
    # the first position that is in no table
    uncached_position = torch.tensor([positions_module.MAX_TABLE_ENTRIES], device=DEVICE)
    assert_close(tl.rotary(x, uncached_position), rotate_in_float64(x, uncached_position))
    assert positions_module._cached_table.cache_info().misses == 3 * positions_module.MAX_TABLES


@both_layouts
def test_changing_the_result_does_not_change_the_table(cleared_tables, interleaved):
    x = normal(1, 5, 8, seed=1)
    for positions in (None, torch.arange(5, device=DEVICE)):
        expected = tl.rotary(x, positions, interleaved=interleaved).clone()
        tl.rotary(torch.ones_like(x), positions, interleaved=interleaved).zero_()
        tl.rotary(x[:, :1], interleaved=interleaved).fill_(7)
        assert torch.equal(tl.rotary(x, positions, interleaved=interleaved), expected)


class OverwritingMode(TorchFunctionMode):
    """A mode in which ``torch.arange`` returns only sevens."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result.fill_(7) if func is torch.arange else result


def call_in_inference_mode(x):
    with torch.inference_mode():
        tl.rotary(x), tl.rotary(x, torch.arange(5, device=DEVICE))


def call_on_meta(x):
    with torch.device("meta"):
        tl.rotary(x), tl.rotary(x.to("meta"))


def call_in_overwriting_mode(x):
    with OverwritingMode():
        tl.rotary(x)


def call_with_fake_tensors(x):
    with FakeTensorMode() as mode:
        tl.rotary(mode.from_tensor(x))


MODES = {
    "inference": call_in_inference_mode,
    "no_grad": torch.no_grad()(tl.rotary),
    "another default device": call_on_meta,
    "a torch function mode": call_in_overwriting_mode,
    "fake tensors": call_with_fake_tensors,
    "vmap": torch.func.vmap(tl.rotary),
    "gradient": torch.func.grad(lambda x: tl.rotary(x).sum()),
    "forward gradient": lambda x: torch.func.jvp(tl.rotary, (x,), (x,)),
    "compiled": lambda x: torch.compile(tl.rotary, backend="eager", fullgraph=True)(x),
    "traced": lambda x: torch.jit.trace(tl.rotary, x, check_trace=False),
}


# torch.jit is deprecated, with a warning that depends on PyTorch's version.
TRACING_WARNINGS = [f"ignore::{kind}" for kind in ("DeprecationWarning", "FutureWarning", "torch.jit.TracerWarning")]


@pytest.mark.filterwarnings(*TRACING_WARNINGS)
@pytest.mark.parametrize("mode", MODES)
def test_table_created_inside_any_mode_is_an_ordinary_tensor(cleared_tables, mode):
    x = normal(2, 3, 5, 8, seed=1)
    MODES[mode](x)
    x.requires_grad_()
    expected = rotate_in_float64(x, torch.arange(5))
    actual = tl.rotary(x)
    assert_close(actual, expected)
    assert_gradients_close(actual, expected, (x,))
    assert_close(torch.func.vmap(tl.rotary)(x), expected)


@pytest.mark.filterwarnings(*TRACING_WARNINGS)
def test_traced_rotary_accepts_other_lengths():
    traced = torch.jit.trace(tl.rotary, normal(2, 5, 4, seed=1), check_trace=False)
    longer = normal(2, 9, 4, seed=2)
    assert_close(traced(longer), tl.rotary(longer))


def test_copied_models_contain_no_tables(cleared_tables):
    rotate = partial(tl.rotary, base=100.0)
    attention = tl.MultiHeadAttention(8, 2, rotate=rotate).to(DEVICE)
    size, x = len(pickle.dumps(attention)), normal(2, 5, 8, seed=1)
    expected = attention(x)
    assert len(pickle.dumps(attention)) == size
    assert torch.equal(copy.deepcopy(attention)(x), expected)


def test_threads_share_tables(cleared_tables):
    x = normal(3, 50, 8, seed=1)
    with ThreadPoolExecutor(8) as threads:
        actual = list(threads.map(lambda i: tl.rotary(x[:, : 20 + i % 9], base=50.0 + i % 3), range(200)))
    for i, rotated in enumerate(actual):
        assert_close(rotated, rotate_in_float64(x[:, : 20 + i % 9], torch.arange(20 + i % 9), 50.0 + i % 3))


x, positions = torch.zeros(2, 3, 5, 4), torch.arange(5)
WRONG_CALLS = [
    (lambda: tl.rotary([1.0]), TypeError, "x must be a tensor, got list"),
    (lambda: tl.rotary(x, n_features=3), ValueError, "n_features must be even and at most d_head, 4, got 3"),
    (lambda: tl.rotary(x, n_features=6), ValueError, "n_features must be even and at most d_head, 4, got 6"),
    (lambda: tl.rotary(x, n_features=0), ValueError, "n_features must be at least 1, got 0"),
    (lambda: tl.rotary(x, n_features=-2), ValueError, "n_features must be at least 1, got -2"),
    (lambda: tl.rotary(x, n_features=2.0), TypeError, "n_features must be an integer, got 2.0"),
    (
        lambda: tl.rotary(x[0, 0, 0], n_features=2),
        ValueError,
        "x must have shape (..., heads, seq, d_head), got (4,)",
    ),
    (lambda: tl.rotary(x.long()), TypeError, "x must be floating point, got torch.int64"),
    (
        lambda: tl.rotary(x[..., :3]),
        ValueError,
        "x must have shape (..., heads, seq, d_head), d_head even, got (2, 3, 5, 3)",
    ),
    (lambda: tl.rotary(x[0, 0, 0]), ValueError, "x must have shape (..., heads, seq, d_head), got (4,)"),
    (lambda: tl.rotary(x, [0, 1]), TypeError, "positions must be a tensor of integers, got list"),
    (lambda: tl.rotary(x, positions.float()), TypeError, "positions must be a tensor of integers, got torch.float32"),
    (lambda: tl.rotary(x, positions > 2), TypeError, "positions must be a tensor of integers, got torch.bool"),
    (lambda: tl.rotary(x, positions[:4]), ValueError, "positions must broadcast to (2, 3, 5), got (4,)"),
    (lambda: tl.rotary(x, positions[:1]), ValueError, "positions must broadcast to (2, 3, 5), got (1,)"),
    (lambda: tl.rotary(x, positions[0]), ValueError, "positions must broadcast to (2, 3, 5), got ()"),
    (
        lambda: tl.rotary(x, positions.expand(2, 5)),
        ValueError,
        "positions must broadcast to (2, 3, 5), got (2, 5)",
    ),
    (
        lambda: tl.rotary(x, positions.expand(1, 2, 3, 5)),
        ValueError,
        "positions must broadcast to (2, 3, 5), got (1, 2, 3, 5)",
    ),
    (lambda: tl.rotary(x, positions - 2), ValueError, "positions must be 0 or more, got -2"),
    (lambda: tl.rotary(x, positions.to("meta")), ValueError, "x and positions must be on one device, got cpu and meta"),
    (lambda: tl.rotary(x, base=0), ValueError, "base must be a number above 0, got 0"),
    (lambda: tl.rotary(x, base=True), ValueError, "base must be a number above 0, got True"),
    (lambda: tl.alibi_bias(0, 3), ValueError, "n_heads must be at least 1, got 0"),
    (lambda: tl.alibi_bias(2, 3.0), TypeError, "q_len must be an integer, got 3.0"),
    (lambda: tl.alibi_bias(2, 3, -1), ValueError, "k_len must be at least 0, got -1"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG_CALLS)
def test_rotary_and_alibi_errors_name_the_argument(call, error, text):
    raises(call, error, text)


# ALiBi.


def test_alibi_is_slope_times_distance():
    # The paper prints 1/2, 1/4, … 1/256 for 8 heads; for 12 heads, the authors' code adds every other slope of 16
    # heads.
    slopes_of_eight = [2**-i for i in range(1, 9)]
    slopes = {
        1: [2**-8],
        2: [2**-4, 2**-8],
        8: slopes_of_eight,
        12: [*slopes_of_eight, *(2**-i for i in (0.5, 1.5, 2.5, 3.5))],
    }
    for n_heads, expected in slopes.items():
        actual = tl.alibi_bias(n_heads, 3, 7, device=DEVICE)
        assert actual.shape == (n_heads, 3, 7) and actual.dtype == torch.float32 and actual.device.type == DEVICE.type
        for head, slope in enumerate(expected):
            for i in range(3):
                for j in range(7):
                    assert abs(actual[head, i, j].item() + slope * abs(4 + i - j)) < 1e-6


def test_attention_with_alibi_gives_the_same_step_by_step():
    def attend(query, key, value, mask, **options):
        bias = tl.alibi_bias(query.shape[-3], query.shape[-2], key.shape[-2], device=query.device)
        return tl.scaled_dot_product_attention(query, key, value, mask, bias=bias, **options)

    attention = tl.MultiHeadAttention(12, 6, n_kv_heads=2, attend=attend).to(DEVICE).eval()
    x, cache = normal(2, 5, 12, seed=1), attention.new_cache()
    step_by_step = torch.cat([attention.step(new, cache) for new in x.split([2, 1, 1, 1], -2)], -2)
    assert_close(step_by_step, attention(x, is_causal=True))
