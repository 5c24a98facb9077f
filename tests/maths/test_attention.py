"""Attention agrees with PyTorch and with loops in float64, on the device that ``TRANSFORMER_LAB_DEVICE`` names."""

import math
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

import transformer_lab as tl
from agreement import (
    DEVICE,
    DTYPES,
    FULL_PRECISION,
    assert_close,
    assert_gradients_close,
    few_examples,
    gradients,
    needs_float64,
    normal,
    raises,
)
from transformer_lab.attention import HAS_GQA


def attend_by_loop(query, key, value, mask=None, is_causal=False, scale=None):
    """Compute attention by its definition, one query at a time over the visible keys; inputs receive gradients."""
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (x.cpu().double().expand(*lead, *x.shape[-2:]) for x in (query, key, value))
    q_len, k_len = query.shape[-2], key.shape[-2]
    allowed = torch.ones(*lead, q_len, k_len, dtype=torch.bool)
    if mask is not None:
        allowed = allowed & mask.cpu()
    scale = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    rows = []
    for *n, i in (
        torch.cartesian_prod(*(torch.arange(size) for size in (*lead, q_len))).reshape(-1, len(lead) + 1).tolist()
    ):
        visible = [j for j in range(k_len) if allowed[(*n, i, j)] and (j <= i or not is_causal)]
        keys, values = key[tuple(n)][visible], value[tuple(n)][visible]
        scores = (keys * query[(*n, i)]).sum(-1) * scale
        exp = (scores - scores.max()).exp() if visible else scores
        rows.append((exp[:, None] * values).sum(0) / (exp.sum() if visible else 1))
    rows = torch.stack(rows) if rows else value.new_zeros(0)
    return rows.reshape(*lead, q_len, value.shape[-1])


def weights_by_loop(query, key, mask=None, scale=None):
    """Return the weights, which ``attend_by_loop`` outputs if the values are the rows of the identity matrix."""
    return attend_by_loop(query, key, torch.eye(key.shape[-2]), mask, scale=scale)


@st.composite
def attention_arguments(draw):
    """Draw arguments of attention with any leading axes, sizes from 0 on, masks that broadcast, and any dtype."""
    lead = draw(st.lists(st.integers(0, 3), max_size=4))
    q_len, k_len, d_head, d_value = (draw(st.integers(0, largest)) for largest in (4, 6, 5, 3))
    dtype = draw(st.sampled_from(DTYPES))
    contiguous = draw(st.booleans())
    seed = draw(st.integers(0, 10**6))

    def broadcastable():
        shape = [draw(st.sampled_from((size, size, 1))) for size in lead]
        return shape[draw(st.integers(0, len(shape))) if draw(st.booleans()) else 0 :]

    query, key, value = (
        normal(*broadcastable(), length, features, seed=seed + i, dtype=dtype, contiguous=contiguous)
        for i, (length, features) in enumerate(((q_len, d_head), (k_len, d_head), (k_len, d_value)))
    )
    mask = None
    if draw(st.booleans()):
        # A mask must not enlarge the leading axes to which the tensors broadcast.
        shape = [*torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2]), q_len, k_len]
        shape = [draw(st.sampled_from((size, size, 1))) for size in shape]
        shape = shape[draw(st.integers(0, len(shape))) if draw(st.booleans()) else 0 :]
        mask = (normal(*shape, seed=seed + 3) > 0.2).detach()
    is_causal = mask is None and draw(st.booleans())
    return query, key, value, mask, is_causal, draw(st.sampled_from((None, 0.3, -1, 0)))


# Agreement.


@few_examples
@given(arguments=attention_arguments())
def test_attention_agrees_with_the_definition(arguments):
    query, key, value, mask, is_causal, scale = arguments
    copies = [x.detach().clone() for x in (query, key, value)]
    output = tl.scaled_dot_product_attention(query, key, value, mask, is_causal=is_causal, scale=scale)
    assert output.dtype == query.dtype and output.device == query.device
    expected = attend_by_loop(query, key, value, mask, is_causal, scale)
    assert_close(output, expected)
    if expected.requires_grad:
        assert_gradients_close(output, expected, (query, key, value))
    for x, before in zip((query, key, value), copies):
        assert torch.equal(x, before) and x._version == 0  # the inputs are unchanged


@few_examples
@given(arguments=attention_arguments())
def test_weights_agree_with_the_definition(arguments):
    query, key, _, mask, _, scale = arguments
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    if mask is not None and mask.ndim > 2:
        mask = mask[(0,) * (mask.ndim - 2)] if 0 not in mask.shape[:-2] else None
    weights = tl.attention_weights(query, key, mask, scale=scale)
    assert weights.dtype == query.dtype and weights.shape == (*lead, query.shape[-2], key.shape[-2])
    expected = weights_by_loop(query, key, mask, scale)
    assert_close(weights, expected)
    if expected.requires_grad:
        assert_gradients_close(weights, expected, (query, key))
    # Rows sum to one, if at least one key is visible.
    allowed = (
        torch.ones(weights.shape[-2:], dtype=torch.bool, device=DEVICE) if mask is None else mask.expand(weights.shape)
    )
    assert_close(weights.sum(-1), allowed.any(-1).expand(weights.shape[:-1]).float())
    assert (weights >= 0).all()
    assert query._version == key._version == 0 and (mask is None or mask._version == 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "form", ["plain", "mask", "causal", "mask that hides nothing", "one mask for all heads", "scale"]
)
def test_attention_agrees_with_torch(dtype, form):
    query, key, value = (
        normal(2, 3, *sizes, seed=seed, dtype=dtype) for seed, sizes in enumerate([(5, 4), (7, 4), (7, 6)])
    )
    mask = (normal(2, 1, 5, 7, seed=4) > -0.5).detach()
    mask[..., 0] = True  # PyTorch's own result for a row that sees nothing depends on the kernel
    options = {
        "plain": {},
        "mask": {"attn_mask": mask},
        "causal": {"is_causal": True},
        "mask that hides nothing": {"attn_mask": torch.ones_like(mask)},
        "one mask for all heads": {"attn_mask": mask[0, 0]},
        "scale": {"scale": 0.7},
    }[form]
    expected = F.scaled_dot_product_attention(query, key, value, **options)
    our_options = {"mask" if name == "attn_mask" else name: option for name, option in options.items()}
    output = tl.scaled_dot_product_attention(query, key, value, **our_options)
    assert_close(output, expected)
    assert_gradients_close(output, expected, (query, key, value))
    if form != "causal":
        weights = tl.attention_weights(query, key, **our_options)
        assert_close(weights @ value, expected)
        assert_gradients_close(weights @ value, expected, (query, key, value))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("visible_share", [0.3, 1.0])
def test_a_mask_is_applied_even_where_its_values_cannot_be_read(visible_share):
    """A mask's values cannot be read inside vmap, or in a function that was compiled with a different mask."""
    query, key, value = (normal(3, 2, 5, 4, seed=seed).detach() for seed in range(3))
    mask = normal(3, 1, 5, 5, seed=4).detach().sigmoid() < visible_share
    mask[1, :, 2] = False
    expected = tl.scaled_dot_product_attention(query, key, value, mask)
    assert (expected[1, :, 2] == 0).all()
    assert_close(torch.func.vmap(tl.scaled_dot_product_attention)(query, key, value, mask), expected)
    compiled = torch.compile(tl.scaled_dot_product_attention, backend="eager", fullgraph=True)
    compiled(query, key, value, torch.ones_like(mask))
    assert_close(compiled(query, key, value, mask), expected)


@pytest.mark.parametrize("dtype", FULL_PRECISION)
@pytest.mark.parametrize("visible_share", [0.0, 0.4, 1.0])
def test_the_fused_kernel_has_the_right_gradient_under_a_mask(dtype, visible_share):
    """On a CPU, PyTorch uses its fused kernel if d_value = d_head, even with a mask and for fully masked rows."""
    query, key, value = (normal(2, 3, 7, 4, seed=seed, dtype=dtype) for seed in range(3))
    mask = torch.zeros(2, 1, 7, 7, dtype=torch.bool, device=DEVICE)
    mask[:, :, :5] = normal(2, 1, 5, 7, seed=4).detach().sigmoid() < visible_share
    output = tl.scaled_dot_product_attention(query, key, value, mask)
    expected = attend_by_loop(query, key, value, mask)
    assert_close(output, expected)
    assert_gradients_close(output, expected, (query, key, value))


@pytest.mark.parametrize("scale", [None, 0.5, 0, -1])
@pytest.mark.parametrize(("q_len", "k_len"), [(5, 5), (3, 7), (7, 3)])
def test_is_causal_matches_a_lower_triangular_mask(q_len, k_len, scale):
    query, key, value = (normal(2, n, 4, seed=seed) for seed, n in enumerate((q_len, k_len, k_len)))
    triangle = torch.ones(q_len, k_len, dtype=torch.bool, device=DEVICE).tril()
    attend = tl.scaled_dot_product_attention
    causal = attend(query, key, value, is_causal=True, scale=scale)
    assert_close(causal, attend(query, key, value, triangle, scale=scale))
    if scale is None or scale > 0:  # PyTorch returns NaN unless the scale is positive
        assert_close(causal, F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale))


@needs_float64
@pytest.mark.parametrize("masked", [False, True])
def test_attention_gradcheck(masked):
    query, key, value = (
        normal(2, *sizes, seed=seed, dtype=torch.float64) for seed, sizes in enumerate([(3, 4), (5, 4), (5, 2)])
    )
    mask = (normal(3, 5, seed=8) > 0).detach() if masked else None
    if masked:
        mask[1] = False
    assert torch.autograd.gradcheck(lambda q, k, v: tl.scaled_dot_product_attention(q, k, v, mask), (query, key, value))
    assert torch.autograd.gradcheck(lambda q, k: tl.attention_weights(q, k, mask), (query, key))


# A bias, and heads that share keys.


@st.composite
def grouped_arguments(draw):
    """Draw arguments of attention with heads that share keys, and with a mask, a bias, both or neither."""
    batch, n_kv_heads, group, q_len, k_len = (draw(st.integers(1, largest)) for largest in (2, 3, 3, 4, 5))
    lead = draw(st.sampled_from([(), (batch,), (2, batch)]))
    dtype, seed = draw(st.sampled_from(DTYPES)), draw(st.integers(0, 10**6))
    query = normal(*lead, n_kv_heads * group, q_len, 4, seed=seed, dtype=dtype)
    key = normal(*lead, n_kv_heads, k_len, 4, seed=seed + 1, dtype=dtype)
    value = normal(*lead[draw(st.integers(0, len(lead))) :], n_kv_heads, k_len, 3, seed=seed + 2, dtype=dtype)
    shape = [draw(st.sampled_from((size, size, 1))) for size in (*lead, n_kv_heads * group, q_len, k_len)]
    options = {}
    if draw(st.booleans()):
        options["mask"] = (normal(*shape[draw(st.integers(0, len(shape))) :], seed=seed + 3) > 0).detach()
    elif draw(st.booleans()):
        options["is_causal"] = True
    bias = None
    if draw(st.booleans()):
        bias = normal(*shape[draw(st.integers(0, len(shape))) :], seed=seed + 4, dtype=dtype)
    return query, key, value, bias, options, draw(st.sampled_from((None, 0.3, -1, 0)))


def attend_by_head(query, key, value, bias, mask=None, is_causal=False, scale=None):
    """Compute scores, bias, mask, softmax and blend head by head, in float64; fully masked queries give zeros."""
    query, key, value = (x.cpu().double() for x in (query, key, value))
    lead = torch.broadcast_shapes(query.shape[:-3], value.shape[:-3])
    group = query.shape[-3] // key.shape[-3]
    shape = (*lead, *query.shape[-3:-1], key.shape[-2])
    allowed = torch.ones(shape, dtype=torch.bool)
    if mask is not None:
        allowed = allowed & mask.cpu()
    if is_causal:
        allowed = allowed.tril()
    bias_values = torch.zeros(shape, dtype=torch.float64) if bias is None else bias.cpu().double().expand(shape)
    heads, weights = [], []
    for head in range(query.shape[-3]):
        scores = torch.einsum("...qd,...kd->...qk", query[..., head, :, :], key[..., head // group, :, :])
        scores = scores * (query.shape[-1] ** -0.5 if scale is None else scale) + bias_values[..., head, :, :]
        visible = allowed[..., head, :, :]
        exp = torch.where(visible, (scores - scores.detach().amax(-1, keepdim=True)).exp(), 0.0)
        weights.append(exp / exp.sum(-1, keepdim=True).masked_fill(~visible.any(-1, keepdim=True), 1.0))
        heads.append(torch.einsum("...qk,...kd->...qd", weights[-1], value[..., head // group, :, :]))
    return torch.stack(heads, -3), torch.stack(weights, -3)


@few_examples
@given(arguments=grouped_arguments())
def test_gqa_and_bias_agree_with_the_definition(arguments):
    query, key, value, bias, options, scale = arguments
    inputs = [x for x in (query, key, value, bias) if x is not None]
    expected, weights = attend_by_head(query, key, value, bias, scale=scale, **options)
    options = options | {"scale": scale, "bias": bias, "enable_gqa": True}
    output = tl.scaled_dot_product_attention(query, key, value, **options)
    assert output.dtype == query.dtype and output.device == query.device
    assert_close(output, expected)
    assert_gradients_close(output, expected, inputs)
    actual = tl.attention_weights(query, key, **options)
    assert_close(actual.expand(weights.shape), weights)
    assert all(x._version == 0 for x in inputs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("is_causal", [False, True])
def test_gqa_agrees_with_torch(is_causal, dtype):
    query = normal(2, 6, 5, 4, seed=0, dtype=dtype)
    key, value = normal(2, 2, 5, 4, seed=1, dtype=dtype), normal(2, 2, 5, 4, seed=2, dtype=dtype)
    actual = tl.scaled_dot_product_attention(query, key, value, is_causal=is_causal, enable_gqa=True)
    expected = F.scaled_dot_product_attention(
        query, *(x.repeat_interleave(3, 1) for x in (key, value)), is_causal=is_causal
    )
    assert_close(actual, expected)
    assert_gradients_close(actual, expected, (query, key, value))


def test_gqa_does_not_need_pytorchs_enable_gqa(monkeypatch):
    query, key, value = normal(2, 6, 5, 4, seed=0), normal(2, 2, 7, 4, seed=1), normal(2, 2, 7, 3, seed=2)
    expected = tl.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    monkeypatch.setattr(sys.modules["transformer_lab.attention"], "HAS_GQA", False)
    actual = tl.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    assert_close(actual, expected)
    assert_gradients_close(actual, expected, (query, key, value))


@pytest.mark.skipif(DEVICE.type != "cpu", reason="this test records the CPU's allocations")
@pytest.mark.skipif(not HAS_GQA, reason="PyTorch 2.4 cannot share keys between heads, so keys are copied")
def test_gqa_does_not_copy_keys():
    query, key, value = torch.randn(1, 16, 64, 8), torch.randn(1, 1, 4096, 8), torch.randn(1, 1, 4096, 8)
    peak_bytes = tl.measure.peak_bytes(lambda: tl.scaled_dot_product_attention(query, key, value, enable_gqa=True))
    # 16 copies of the key and of the value would need 32 times the memory of the key
    assert peak_bytes < 4 * key.nbytes


def test_gradients_reach_the_table_of_a_bias():
    """The bias is looked up in a table with one number for each distance and head; gradients reach the table."""
    table = normal(9, 3, seed=3)
    distance = torch.arange(5)[:, None] - torch.arange(5) + 4
    bias = table[distance.to(DEVICE)].permute(2, 0, 1)  # (heads, q_len, k_len)
    query, key, value = (normal(2, 3, 5, 4, seed=seed) for seed in range(3))
    mask = tl.padding_mask([3, 0], 5, device=DEVICE)
    output = tl.scaled_dot_product_attention(query, key, value, mask, bias=bias)
    expected, _ = attend_by_head(query, key, value, bias, mask)
    assert_gradients_close(output, expected, (query, key, value, table))
    assert (output[1] == 0).all()


# Properties.


@pytest.mark.parametrize("dtype", DTYPES)
def test_permuting_keys_changes_nothing_and_permuting_queries_permutes_the_output(dtype):
    query, key, value = (
        normal(3, *sizes, seed=seed, dtype=dtype) for seed, sizes in enumerate([(6, 4), (5, 4), (5, 2)])
    )
    mask = (normal(6, 5, seed=6) > -0.5).detach()
    key_order, query_order = torch.tensor([3, 0, 4, 1, 2]), torch.tensor([5, 2, 0, 1, 4, 3])
    output = tl.scaled_dot_product_attention(query, key, value, mask)
    assert_close(
        tl.scaled_dot_product_attention(query, key[:, key_order], value[:, key_order], mask[:, key_order]), output
    )
    assert_close(
        tl.scaled_dot_product_attention(query[:, query_order], key, value, mask[query_order]), output[:, query_order]
    )
    weights = tl.attention_weights(query, key, mask)
    assert_close(
        tl.attention_weights(query[:, query_order], key[:, key_order], mask[query_order][:, key_order]),
        weights[:, query_order][:, :, key_order],
    )


def test_causal_output_does_not_depend_on_later_tokens():
    query, key, value = (normal(2, 6, 4, seed=seed).detach() for seed in range(3))
    before = tl.scaled_dot_product_attention(query, key, value, is_causal=True)
    key[:, 4:], value[:, 4:] = 9.0, -9.0
    after = tl.scaled_dot_product_attention(query, key, value, is_causal=True)
    assert_close(after[:, :4], before[:, :4])
    assert not torch.allclose(after[:, 4:], before[:, 4:])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mask_shape", [(4, 5), (3, 1, 4, 5), (5,), (4, 1), ()])
def test_fully_masked_rows_are_zero_with_finite_gradients(dtype, mask_shape):
    query, key, value = (
        normal(3, 2, *sizes, seed=seed, dtype=dtype) for seed, sizes in enumerate([(4, 3), (5, 3), (5, 6)])
    )
    mask = torch.ones(mask_shape, dtype=torch.bool, device=DEVICE)
    if len(mask_shape) < 2:
        mask[...] = False
    else:
        mask[..., 2, :] = False
    fully_masked = ~mask.expand(3, 2, 4, 5).any(-1)
    assert fully_masked.any()
    output = tl.scaled_dot_product_attention(query, key, value, mask)
    weights = tl.attention_weights(query, key, mask)
    assert (output[fully_masked] == 0).all() and (weights[fully_masked] == 0).all()
    assert len(mask_shape) < 2 or (output[~fully_masked] != 0).all()
    for grad in (*gradients(output, (query, key, value)), *gradients(weights, (query, key))):
        assert grad.isfinite().all()
    (grad,) = gradients(output, (query,))
    assert (grad[fully_masked] == 0).all()


@pytest.mark.parametrize("lead", [(3, 2, 2), (3, 1, 2, 2)])
@pytest.mark.parametrize("mask", [[True, True, False, True, False], True])
def test_mask_with_one_axis_broadcasts_to_any_leading_axes(lead, mask):
    query, key, value = (normal(*lead, length, 4, seed=seed) for seed, length in enumerate((3, 5, 5)))
    mask = torch.tensor(mask, device=DEVICE)
    assert_close(
        tl.scaled_dot_product_attention(query, key, value, mask), attend_by_loop(query, key, value, mask).to(query)
    )


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_fully_masked_rows_pass_anomaly_mode():
    query, key = normal(2, 3, 4, seed=0), normal(2, 5, 4, seed=1)
    mask = torch.tensor([[True] * 5, [False] * 5, [True] * 5], device=DEVICE)
    with torch.autograd.detect_anomaly(check_nan=True):
        tl.attention_weights(query, key, mask).square().sum().backward()
    assert (query.grad[:, 1] == 0).all() and (query.grad[:, 0] != 0).any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_negative_scale_is_exact_in_half_precision(dtype):
    query, key, value = (normal(2, 3, 16, 8, seed=seed, dtype=dtype).detach() for seed in range(3))
    actual = tl.scaled_dot_product_attention(query, key, value, scale=-1.3)
    assert torch.equal(actual, tl.scaled_dot_product_attention(-query, key, value, scale=1.3))


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_causal_weights_match_causal_attention(lead):
    query, key, value = (normal(*lead, length, 4, seed=seed) for seed, length in enumerate((3, 5, 5)))
    weights = tl.attention_weights(query, key, is_causal=True)
    assert_close(weights @ value, tl.scaled_dot_product_attention(query, key, value, is_causal=True))
    assert (weights.triu(1) == 0).all()
    module = tl.SingleHeadAttention(4, 3).to(DEVICE)
    assert_close(module.weights(query, is_causal=True) @ module.v_proj(query), module(query, is_causal=True))


def test_autocast_mixes_dtypes_as_in_pytorch():
    query, key, value = (normal(2, 3, length, 8, seed=seed).detach() for seed, length in enumerate((4, 5, 5)))
    mask = torch.ones(4, 5, dtype=torch.bool, device=DEVICE).tril()
    with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
        expected = F.scaled_dot_product_attention(query, key.bfloat16(), value, mask)
        actual = tl.scaled_dot_product_attention(query, key.bfloat16(), value, mask)
        weights = tl.attention_weights(query, key.bfloat16(), mask)
    assert actual.dtype == expected.dtype
    assert_close(actual, expected)
    assert_close(weights.bfloat16() @ value.bfloat16(), expected)


@needs_float64
def test_second_derivative_exists_in_the_math_kernel():
    inputs = [normal(2, 3, 4, seed=seed, dtype=torch.float64) for seed in range(3)]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert torch.autograd.gradgradcheck(tl.scaled_dot_product_attention, inputs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_values_do_not_overflow(dtype):
    query = torch.tensor([[200.0, 0, 0, 200], [-200, 0, 0, -200]], dtype=dtype, device=DEVICE, requires_grad=True)
    key = torch.tensor([[200.0, 0, 0, 200], [0, 0, 0, 0], [-200, 0, 0, -200]], dtype=dtype, device=DEVICE)
    value = torch.tensor([[1.0, 2], [3, 4], [5, 6]], dtype=dtype, device=DEVICE)
    for mask in (None, torch.ones(2, 3, dtype=torch.bool, device=DEVICE)):
        output = tl.scaled_dot_product_attention(query, key, value, mask)
        assert output.tolist() == [[1, 2], [5, 6]]
        assert tl.attention_weights(query, key, mask).tolist() == [[1, 0, 0], [0, 0, 1]]
        assert gradients(output, (query,))[0].isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("masked", [False, True])
def test_nan_propagates(dtype, masked):
    tensors = [
        normal(2, *sizes, seed=seed, dtype=dtype).detach() for seed, sizes in enumerate([(4, 3), (5, 3), (5, 6)])
    ]
    mask = torch.ones(4, 5, dtype=torch.bool, device=DEVICE) if masked else None
    for i in range(3):
        query, key, value = (x.clone() for x in tensors)
        (query, key, value)[i][0, 2, 1] = math.nan
        output = tl.scaled_dot_product_attention(query, key, value, mask)
        expected_nan = torch.zeros(2, 4, 6, dtype=torch.bool, device=DEVICE)
        expected_nan[0] = True  # every query of the first sequence sees the key with NaN
        if i == 0:
            expected_nan[0, [0, 1, 3]] = False  # NaN in a query affects only this query
        if i == 2:
            expected_nan[0, :, [0, 2, 3, 4, 5]] = False  # NaN in a feature of a value affects only this feature
        assert torch.equal(output.isnan(), expected_nan), ("query", "key", "value")[i]
        if i < 2:
            assert torch.equal(tl.attention_weights(query, key, mask).isnan(), expected_nan[..., :5])


def test_views_as_inputs_are_not_modified():
    packed = normal(2, 5, 12, seed=0).detach()
    before = packed.clone()
    query, key, value = packed.split(4, dim=-1)  # views of one tensor, none of them contiguous
    mask = torch.zeros(5, 5, dtype=torch.bool, device=DEVICE).fill_diagonal_(True).t()
    output = tl.scaled_dot_product_attention(query, key, value, mask)
    assert_close(output, value)  # each token attends to itself only
    assert torch.equal(packed, before) and packed._version == 0 and mask.sum() == 5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(dtype):
    """Weights in half precision equal the exact weights, rounded once at the end."""
    query, key = (normal(*sizes, seed=seed, dtype=dtype).detach() * 2 for seed, sizes in enumerate([(20, 7), (90, 7)]))
    scores = (query.cpu().double() @ key.cpu().double().T).to(dtype).to(DEVICE)
    for actual, exact in (
        (tl.attention_weights(query, key), weights_by_loop(query, key)),
        (tl.softmax(scores), torch.softmax(scores.cpu().double(), -1)),
    ):
        half_ulp = torch.finfo(dtype).eps / 2
        smallest_subnormal = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
        torch.testing.assert_close(actual.cpu().double(), exact.cpu(), rtol=1.05 * half_ulp, atol=smallest_subnormal)


# Dropout.


def test_dropout_drops_or_scales_each_weight():
    query, key = normal(8, 40, 4, seed=0).detach(), normal(8, 30, 4, seed=1).detach()
    eye = torch.eye(30, device=DEVICE).expand(8, 30, 30)
    torch.manual_seed(0)
    dropped = tl.scaled_dot_product_attention(query, key, eye, dropout_p=0.25)
    kept = dropped != 0
    assert 0.22 < 1 - kept.float().mean() < 0.28
    weights = tl.attention_weights(query, key)
    assert_close(dropped[kept], weights[kept] / 0.75)


@pytest.mark.parametrize("mask", [torch.ones(3, 1), torch.ones(5, 3).T, torch.ones(5).expand(3, 5), torch.ones(1)])
def test_the_kernel_receives_contiguous_mask_rows_and_never_a_dropout_of_1(mask, monkeypatch):
    """CUDA's kernels reject non-contiguous rows, and return NaN for a dropout of 1; a CPU's kernels do neither."""
    query, key, value = (normal(2, n, 4, seed=seed).detach() for seed, n in enumerate((3, 5, 5)))
    kernel, recorded_options = F.scaled_dot_product_attention, []

    def recording_kernel(*tensors, **options):
        recorded_options.append(options)
        return kernel(*tensors, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", recording_kernel)
    for options in ({"mask": mask.to(DEVICE) > 0}, {"bias": mask.to(DEVICE)}):
        actual = tl.scaled_dot_product_attention(query, key, value, **options)
        assert_close(actual, attend_by_loop(query, key, value).to(query))
        assert recorded_options[-1]["attn_mask"].stride(-1) == 1 and recorded_options[-1]["attn_mask"].shape[-1] == 5
    assert (tl.scaled_dot_product_attention(query, key, value, dropout_p=1) == 0).all()
    assert recorded_options[-1]["dropout_p"] == 0


def test_dropout_of_0_changes_nothing_and_dropout_of_1_gives_zeros():
    query, key, value = (normal(2, n, 4, seed=seed) for seed, n in enumerate((3, 5, 5)))
    assert_close(
        tl.scaled_dot_product_attention(query, key, value, dropout_p=0),
        tl.scaled_dot_product_attention(query, key, value),
    )
    assert (tl.scaled_dot_product_attention(query, key, value, dropout_p=1) == 0).all()


# softmax.


@few_examples
@given(
    shape=st.lists(st.integers(0, 4), max_size=4),
    dtype=st.sampled_from(DTYPES),
    std=st.sampled_from((1, 30, 1e4)),
    data=st.data(),
)
def test_softmax_agrees_with_torch(shape, dtype, std, data):
    dim = data.draw(st.integers(-max(len(shape), 1), max(len(shape), 1) - 1))
    contiguous = data.draw(st.booleans())
    x = (normal(*shape, seed=len(shape), dtype=dtype, contiguous=contiguous) * std).detach().requires_grad_()
    before = x.detach().clone()
    actual, expected = tl.softmax(x, dim), torch.softmax(x, dim)
    assert actual.dtype == dtype
    assert_close(actual, expected)
    assert_close(actual, torch.softmax(x.cpu().double(), dim))
    assert_gradients_close(actual, expected, (x,))
    assert_close(actual.sum(dim), torch.ones(actual.sum(dim).shape) if shape.count(0) == 0 else actual.sum(dim))
    assert torch.equal(x, before) and x._version == 0


def test_softmax_of_infinities_matches_pytorch():
    x = torch.tensor(
        [[0.0, -math.inf, 0.0], [-math.inf] * 3, [0.0, math.nan, 1.0], [math.inf, 0.0, 0.0]], device=DEVICE
    )
    actual = tl.softmax(x)
    assert actual[0].tolist() == [0.5, 0, 0.5]
    assert actual[1:].isnan().all() and torch.softmax(x, -1)[1:].isnan().all()
    assert tl.softmax(x, 0)[:, 0].isnan().all()


@needs_float64
def test_softmax_gradcheck():
    x = normal(3, 4, seed=0, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: tl.softmax(x, 0), (x,))
    assert torch.autograd.gradcheck(tl.softmax, (x,))


# The exact text of every error.

q, k, v = torch.zeros(2, 5, 4), torch.zeros(2, 7, 4), torch.zeros(2, 7, 6)
bool_mask = torch.ones(5, 7, dtype=torch.bool)
MASK_SHAPE_ERROR = "mask must broadcast to the scores (2, 5, 7), got shape {}: its axis {} must be 1 or {}, not {}"
ZERO_ONE_ADVICE = "with 0 and 1: use mask.bool(), or mask == 0 if 1 hides a key"
FLOAT_MASK_ERROR = f"mask must be bool, True where a query may attend, got torch.float32 {ZERO_ONE_ADVICE}"
INTEGER_MASK_ERROR = f"mask must be bool, True where a query may attend, got torch.int32 {ZERO_ONE_ADVICE}"
MASK_AND_CAUSAL_ERROR = (
    "mask and is_causal must not be given together, got both: combine them, mask & causal, with "
    "causal = torch.ones(q_len, k_len, dtype=torch.bool).tril()"
)
DIM_ERROR = "dim must be an axis of x, from {} to {}, got {}"

float_mask = torch.zeros(5, 7)
ERRORS_OF_BOTH_FUNCTIONS = [
    (([[1.0]], k, v), {}, TypeError, "query must be a tensor, got list"),
    ((q, None, v), {}, TypeError, "key must be a tensor, got None"),
    ((q.long(), k, v), {}, TypeError, "query must be floating point, got torch.int64"),
    ((q, k.bool(), v), {}, TypeError, "key must be floating point, got torch.bool"),
    ((q, k.to(torch.complex64), v), {}, TypeError, "key must be floating point, got torch.complex64"),
    ((q, k.double(), v), {}, TypeError, "query and key must share a dtype, got torch.float32 and torch.float64"),
    ((q, k.to("meta"), v), {}, ValueError, "query and key must be on one device, got cpu and meta"),
    ((q[0, 0], k, v), {}, ValueError, "query must have at least 2 axes (..., length, features), got shape (4,)"),
    ((q, torch.tensor(1.0), v), {}, ValueError, "key must have at least 2 axes (..., length, features), got shape ()"),
    ((q[..., :3], k, v), {}, ValueError, "query and key must share d_head, got 3 and 4"),
    ((q, k, v, bool_mask.tolist()), {}, TypeError, "mask must be a tensor of bool, got list"),
    ((q, k, v, bool_mask.float()), {}, TypeError, FLOAT_MASK_ERROR),
    ((q, k, v, bool_mask.int()), {}, TypeError, INTEGER_MASK_ERROR),
    ((q, k, v, bool_mask.to("meta")), {}, ValueError, "query and mask must be on one device, got cpu and meta"),
    ((q, k, v, bool_mask.t()), {}, ValueError, MASK_SHAPE_ERROR.format((7, 5), "-1 (k_len)", 7, 5)),
    ((q, k, v, bool_mask[:3]), {}, ValueError, MASK_SHAPE_ERROR.format((3, 7), "-2 (q_len)", 5, 3)),
    (
        (q, k, v, bool_mask.expand(4, 5, 7)),
        {},
        ValueError,
        MASK_SHAPE_ERROR.format((4, 5, 7), "-3 (leading axis)", 2, 4),
    ),
    ((q, k, v, bool_mask[:0]), {}, ValueError, MASK_SHAPE_ERROR.format((0, 7), "-2 (q_len)", 5, 0)),
    (
        (q, k, v, bool_mask.expand(1, 1, 5, 7)),
        {},
        ValueError,
        "mask must have at most the 3 axes of the scores (2, 5, 7), got shape (1, 1, 5, 7)",
    ),
    ((q, k, v), {"scale": math.inf}, ValueError, "scale must be a finite number, got inf"),
    ((q, k, v), {"scale": math.nan}, ValueError, "scale must be a finite number, got nan"),
    ((q, k, v), {"bias": bool_mask}, TypeError, "bias must be floating point, got torch.bool"),
    ((q, k, v), {"bias": 1.0}, TypeError, "bias must be a tensor, got float"),
    (
        (q, k, v),
        {"bias": q.new_zeros(5, 7).half()},
        TypeError,
        "query and bias must share a dtype, got torch.float32 and torch.float16",
    ),
    (
        (q, k, v),
        {"bias": q.new_zeros(7).to("meta")},
        ValueError,
        "query and bias must be on one device, got cpu and meta",
    ),
    (
        (q, k, v),
        {"bias": q.new_zeros(7, 5)},
        ValueError,
        MASK_SHAPE_ERROR.format((7, 5), "-1 (k_len)", 7, 5).replace("mask", "bias"),
    ),
    (
        (q, k, v),
        {"bias": float_mask.expand(1, 1, 5, 7)},
        ValueError,
        "bias must have at most the 3 axes of the scores (2, 5, 7), got shape (1, 1, 5, 7)",
    ),
    ((q, k, v), {"scale": "small"}, ValueError, "scale must be a finite number, got 'small'"),
    ((q, k, v), {"scale": True}, ValueError, "scale must be a finite number, got True"),
]

ERRORS_OF_ATTENTION = [
    ((q, k, 3.0), {}, TypeError, "value must be a tensor, got float"),
    ((q, k, v.half()), {}, TypeError, "query and value must share a dtype, got torch.float32 and torch.float16"),
    ((q, k, v.to("meta")), {}, ValueError, "query and value must be on one device, got cpu and meta"),
    ((q, k, v[:, :6]), {}, ValueError, "key and value must share k_len, got 7 and 6"),
    (
        (q, k, torch.zeros(3, 4, 7, 6)),
        {},
        ValueError,
        "query and key and value must have leading axes that broadcast, got (2,) and (2,) and (3, 4)",
    ),
    ((q, k, v, bool_mask), {"is_causal": True}, ValueError, MASK_AND_CAUSAL_ERROR),
    ((q, k, v), {"dropout_p": 1.5}, ValueError, "dropout_p must be a probability from 0 to 1, got 1.5"),
    ((q, k, v), {"dropout_p": -0.1}, ValueError, "dropout_p must be a probability from 0 to 1, got -0.1"),
    ((q, k, v), {"dropout_p": math.nan}, ValueError, "dropout_p must be a probability from 0 to 1, got nan"),
    ((q, k, v), {"dropout_p": None}, ValueError, "dropout_p must be a probability from 0 to 1, got None"),
    (
        (q, torch.zeros(4, 7, 4), torch.zeros(4, 7, 6)),
        {"enable_gqa": True},
        ValueError,
        "enable_gqa must be used with equally many heads in key and value, got leading axes (2,) and (4,) and (4,)",
    ),
    (
        (q[0], k[0], v[0]),
        {"enable_gqa": True},
        ValueError,
        "enable_gqa must be used with equally many heads in key and value, got leading axes () and () and ()",
    ),
    (
        (q, k[:1], v),
        {"enable_gqa": True},
        ValueError,
        "enable_gqa must be used with equally many heads in key and value, got leading axes (2,) and (1,) and (2,)",
    ),
    (
        (q.expand(3, 2, 5, 4), k.expand(2, 2, 7, 4), v),
        {"enable_gqa": True},
        ValueError,
        "query and key and value must have leading axes that broadcast, got (3, 2) and (2, 2) and (2,)",
    ),
]

OTHER_ERRORS = [
    (
        lambda: tl.attention_weights(q, torch.zeros(4, 7, 4), enable_gqa=True),
        ValueError,
        "enable_gqa must be used with equally many heads in key and value, got leading axes (2,) and (4,)",
    ),
    (
        lambda: tl.attention_weights(q, k[:1].expand(3, 7, 4)),
        ValueError,
        "query and key must have leading axes that broadcast, got (2,) and (3,)",
    ),
    (lambda: tl.softmax([0.0]), TypeError, "x must be a tensor, got list"),
    (lambda: tl.softmax(torch.arange(3)), TypeError, "x must be floating point, got torch.int64"),
    (lambda: tl.softmax(q * 1j), TypeError, "x must be floating point, got torch.complex64"),
    (lambda: tl.softmax(q, "k_len"), TypeError, "dim must be an integer, got 'k_len'"),
    (lambda: tl.softmax(q, None), TypeError, "dim must be an integer, got None"),
    (lambda: tl.softmax(q, 3), IndexError, DIM_ERROR.format(-3, 2, 3)),
    (lambda: tl.softmax(q, -4), IndexError, DIM_ERROR.format(-3, 2, -4)),
    (lambda: tl.softmax(torch.tensor(0.0), 1), IndexError, DIM_ERROR.format(-1, 0, 1)),
]


@pytest.mark.parametrize(("arguments", "options", "error", "text"), ERRORS_OF_BOTH_FUNCTIONS + ERRORS_OF_ATTENTION)
def test_attention_errors_name_the_argument(arguments, options, error, text):
    raises(lambda: tl.scaled_dot_product_attention(*arguments, **options), error, text)


@pytest.mark.parametrize(("arguments", "options", "error", "text"), ERRORS_OF_BOTH_FUNCTIONS)
def test_weights_errors_name_the_argument(arguments, options, error, text):
    query, key, _, *mask = arguments
    raises(lambda: tl.attention_weights(query, key, *mask, **options), error, text)


@pytest.mark.parametrize(("call", "error", "text"), OTHER_ERRORS)
def test_other_errors_name_the_argument(call, error, text):
    raises(call, error, text)
