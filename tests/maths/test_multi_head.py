"""Multi-head attention agrees with PyTorch's module, and with products that name every axis."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import transformer_lab as tl
from agreement import (
    DEVICE,
    DTYPES,
    FULL_PRECISION,
    assert_close,
    assert_gradients_close,
    assert_same_parameters,
    assert_separate_copies,
    few_examples,
    gradients,
    load_transformers,
    normal,
    prepare,
    raises,
)

D_MODEL, N_HEADS = 12, 3


def build_attention(dtype=torch.float32, **options):
    torch.manual_seed(0)
    return prepare(tl.MultiHeadAttention(D_MODEL, N_HEADS, **options), dtype)


def token_vectors(*shape, seed=1, dtype=torch.float32):
    return normal(*shape, seed=seed, dtype=dtype)


# Split and merge.


@few_examples
@given(
    lead=st.lists(st.integers(0, 3), max_size=3),
    n_heads=st.integers(1, 4),
    d_head=st.integers(0, 3),
    seq=st.integers(0, 4),
    contiguous=st.booleans(),
)
def test_split_heads_and_merge_heads_are_inverse(lead, n_heads, d_head, seq, contiguous):
    x = normal(*lead, seq, n_heads * d_head, seed=1, contiguous=contiguous)
    split = tl.split_heads(x, n_heads)
    assert split.shape == (*lead, n_heads, seq, d_head)
    for head in range(n_heads):
        assert torch.equal(split[..., head, :, :], x[..., head * d_head : (head + 1) * d_head])
    assert split.data_ptr() == x.data_ptr() and split._is_view()
    assert torch.equal(tl.merge_heads(split), x)
    # Here merge_heads comes before split_heads, and the heads have the memory layout of attention's output.
    heads = normal(*lead, n_heads, seq, d_head, seed=2, contiguous=contiguous)
    merged = tl.merge_heads(heads)
    assert merged.shape == (*lead, seq, n_heads * d_head)
    assert torch.equal(merged, torch.cat(heads.unbind(-3), dim=-1))
    assert torch.equal(tl.split_heads(merged, n_heads), heads)
    assert x._version == heads._version == 0
    if x.numel():
        assert_gradients_close(tl.merge_heads(split * 2), x * 2, (x,))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float16])
def test_split_heads_accepts_any_dtype_and_strides(dtype):
    x = torch.arange(24, device=DEVICE).reshape(4, 6).to(dtype)
    for view in (x, x.mT, x[::2], x[:, :4], x[:1].expand(5, 6)):
        split = tl.split_heads(view, 2)
        assert split.dtype == dtype and split.data_ptr() == view.data_ptr()
        assert torch.equal(tl.merge_heads(split), view)


def test_view_without_transpose_scrambles_heads():
    x = torch.arange(12).reshape(1, 4, 3 * 1)
    assert tl.split_heads(x, 3)[0, 0].flatten().tolist() == [0, 3, 6, 9]  # the first number of head 0 for every token
    # a view without a transpose gives head 0 four consecutive numbers
    assert x.view(1, 3, 4, 1)[0, 0].flatten().tolist() == [0, 1, 2, 3]
    heads = normal(2, 3, 5, 4, seed=0)
    assert not torch.equal(tl.merge_heads(heads), heads.reshape(2, 5, 12))
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        heads.transpose(1, 2).view(2, 5, 12)


# One head.


@pytest.mark.parametrize("lead", [(), (2,), (2, 0), (2, 1, 3)])
def test_single_head_is_three_projections_and_attention(lead):
    torch.manual_seed(0)
    layer = tl.SingleHeadAttention(d_model=5, d_head=3, d_value=4).to(DEVICE, FULL_PRECISION[-1])
    x = normal(*lead, 6, 5, seed=1, dtype=FULL_PRECISION[-1])
    mask = (normal(6, 6, seed=2) > 0).detach()
    state = {name: parameter.detach() for name, parameter in layer.state_dict().items()}
    q, k, v = (x @ state[f"{name}_proj.weight"].T + state[f"{name}_proj.bias"] for name in "qkv")
    assert layer(x).shape == (*lead, 6, 4)
    assert_close(layer(x), tl.scaled_dot_product_attention(q, k, v))
    assert_close(layer(x, mask), tl.scaled_dot_product_attention(q, k, v, mask))
    assert_close(layer(x, is_causal=True), tl.scaled_dot_product_attention(q, k, v, is_causal=True))
    assert_close(layer.weights(x, mask), tl.attention_weights(q, k, mask))
    if x.numel():
        layer(x).sum().backward()
        assert all(parameter.grad is not None for parameter in layer.parameters())


def test_single_head_defaults_d_value_to_d_head():
    layer = tl.SingleHeadAttention(5, 3).to(DEVICE)
    assert layer(torch.zeros(0, 5, device=DEVICE)).shape == (0, 3)
    assert {name: tuple(p.shape) for name, p in layer.named_parameters()} == {
        f"{name}_proj.{kind}": shape for name in "qkv" for kind, shape in (("weight", (3, 5)), ("bias", (3,)))
    }


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_single_head_in_half_precision_and_under_autocast(dtype):
    torch.manual_seed(0)
    layer = tl.SingleHeadAttention(5, 3, 4).to(DEVICE)
    x = normal(2, 6, 5, seed=1).detach()
    expected = layer(x)
    with torch.autocast(DEVICE.type, dtype=dtype):
        assert_close(layer(x), expected)
        assert_close(layer(x.to(dtype)), expected)
    assert_close(layer.to(dtype)(x.to(dtype)), expected)


# Many heads.


def attend_by_einsum(module, query, key=None, value=None, allowed=None):
    """Compute the weights and the output of the module by einsum with named axes, in float64."""
    key = query if key is None else key
    value = key if value is None else value

    def in_float64(x):
        return x.cpu().double()

    def project(x, linear):
        weight = in_float64(linear.weight).unflatten(0, (module.n_heads, -1))  # (heads, d_head, features)
        bias = 0 if linear.bias is None else in_float64(linear.bias).unflatten(0, (module.n_heads, 1, -1))
        return torch.einsum("...sf,hdf->...hsd", in_float64(x), weight) + bias

    q, k, v = project(query, module.q_proj), project(key, module.k_proj), project(value, module.v_proj)
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.shape[-1])
    if allowed is not None:
        scores = scores.masked_fill(~allowed.cpu(), -math.inf)
    weights = torch.softmax(scores, -1)
    heads = torch.einsum("...qk,...kd->...qd", weights, v)
    output = torch.einsum(
        "...hsd,nhd->...sn", heads, in_float64(module.out_proj.weight).unflatten(1, (module.n_heads, -1))
    )
    return weights, output if module.out_proj.bias is None else output + in_float64(module.out_proj.bias)


@pytest.mark.parametrize("lead", [(), (2,), (2, 1, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_multi_head_matches_einsum_over_every_axis(lead, bias):
    module = build_attention(bias=bias)
    x, y, z = (token_vectors(*lead, n, D_MODEL, seed=n) for n in (5, 7, 8))
    z = z[..., :7, :]
    for inputs in ((x,), (x, y), (x, y, z)):
        weights, output = attend_by_einsum(module, *inputs)
        assert_close(module(*inputs), output)
        assert_close(module.weights(*inputs[:2]), weights)
    assert_gradients_close(module(x, y, z), attend_by_einsum(module, x, y, z)[1], (x, y, z, *module.parameters()))
    mask = (normal(*lead, N_HEADS, 5, 7, seed=3) > -0.5).detach()
    mask[..., 0] = True
    weights, output = attend_by_einsum(module, x, y, z, mask)
    assert_close(module(x, y, z, mask), output)
    assert_close(module(x, y, z, mask=mask), output)
    assert_close(module.weights(x, y, mask), weights)
    triangle = torch.ones(5, 5, dtype=torch.bool, device=DEVICE).tril()
    assert_close(module(x, is_causal=True), attend_by_einsum(module, x, allowed=triangle)[1])


def test_packed_projection_matches_three_projections():
    module, x = build_attention(), token_vectors(2, 5, D_MODEL)
    packed = torch.cat([module.q_proj.weight, module.k_proj.weight, module.v_proj.weight])
    bias = torch.cat([module.q_proj.bias, module.k_proj.bias, module.v_proj.bias])
    assert packed.shape == (3 * D_MODEL, D_MODEL)
    q, k, v = (tl.split_heads(part, N_HEADS) for part in F.linear(x, packed, bias).chunk(3, dim=-1))
    assert_close(module.out_proj(tl.merge_heads(tl.scaled_dot_product_attention(q, k, v))), module(x))


def test_heads_match_single_head_attentions():
    module, x = build_attention(), token_vectors(2, 5, D_MODEL)
    outputs = []
    for rows in torch.arange(D_MODEL).chunk(N_HEADS):
        head = tl.SingleHeadAttention(D_MODEL, 4).to(DEVICE)
        for name in ("q_proj", "k_proj", "v_proj"):
            large = getattr(module, name)
            getattr(head, name).load_state_dict({"weight": large.weight[rows], "bias": large.bias[rows]})
        outputs.append(head(x))
    assert_close(module.out_proj(torch.cat(outputs, dim=-1)), module(x))


def test_permuting_heads_changes_nothing():
    module, x = build_attention(), token_vectors(2, 5, D_MODEL)
    order = torch.tensor([2, 0, 1])
    features = torch.arange(D_MODEL).unflatten(0, (N_HEADS, -1))[order].flatten()
    permuted = build_attention()
    with torch.no_grad():
        for name in ("q_proj", "k_proj", "v_proj"):
            for parameter, permuted_parameter in zip(
                getattr(module, name).parameters(), getattr(permuted, name).parameters()
            ):
                permuted_parameter.copy_(parameter[features])
        permuted.out_proj.weight.copy_(module.out_proj.weight[:, features])
        permuted.out_proj.bias.copy_(module.out_proj.bias)
    assert_close(permuted(x), module(x))
    assert_close(permuted.weights(x), module.weights(x)[:, order])


def test_project_and_attend_projected_match_forward():
    module = build_attention(d_key_in=5, d_value_in=7)
    query, key, value = token_vectors(2, 4, D_MODEL), token_vectors(2, 6, 5, seed=2), token_vectors(2, 6, 7, seed=3)
    keys, values = module.project(key, value)
    assert keys.shape == values.shape == (2, N_HEADS, 6, 4)
    mask = (normal(4, 6, seed=4) > -1).detach()
    assert_close(module.attend_projected(query, keys, values, mask), module(query, key, value, mask))
    assert_close(
        module.attend_projected(query, keys, values, is_causal=True), module(query, key, value, is_causal=True)
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast_agree_with_float32(dtype):
    module, x = build_attention(), token_vectors(2, 5, D_MODEL)
    expected, weights = module(x).detach(), module.weights(x).detach()
    with torch.autocast(DEVICE.type, dtype=dtype):
        assert_close(module(x), expected)
        assert_close(module(x.to(dtype)), expected)
        assert_close(module.weights(x), weights)
    module.to(dtype)
    assert_close(module(x.to(dtype)), expected)
    assert_close(module.weights(x.to(dtype)), weights)


@pytest.mark.parametrize(
    "shapes", [((0, 5), (0, 7)), ((2, 0), (2, 7)), ((0,), (3,)), ((2, 1), (2, 1)), ((2, 5), (2, 0))]
)
def test_empty_and_single_token_inputs_keep_their_shape(shapes):
    module = build_attention()
    query, key = (token_vectors(*shape, D_MODEL) for shape in shapes)
    output = module(query, key)
    assert output.shape == query.shape
    assert module.weights(query, key).shape == (*shapes[0][:-1], N_HEADS, shapes[0][-1], shapes[1][-1])
    if shapes[1][-1] == 0:  # without keys, every head returns zeros
        assert_close(output, module.out_proj.bias.expand(output.shape))
    if shapes[1][-1] == 1:  # with one key, this key gets all the weight
        assert_close(output, module.out_proj(module.v_proj(key)).expand(output.shape))
    output.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in module.parameters())


# Rows with nothing to attend to.

MASKS_WITH_EMPTY_ROWS = {
    "one row": lambda: torch.arange(5, device=DEVICE)[:, None].expand(5, 3) != 2,
    "causal, more queries than keys": lambda: tl.causal_mask(5, 3, device=DEVICE),
    "everything": lambda: torch.zeros(5, 3, dtype=torch.bool, device=DEVICE),
    "one head": lambda: torch.arange(N_HEADS, device=DEVICE)[:, None, None].expand(N_HEADS, 5, 3) != 1,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lead", [(), (2,), (2, 1)])
@pytest.mark.parametrize("kind", MASKS_WITH_EMPTY_ROWS)
def test_fully_masked_queries_get_the_output_bias(kind, lead, dtype):
    module, mask = build_attention(dtype), MASKS_WITH_EMPTY_ROWS[kind]()
    x, y = token_vectors(*lead, 5, D_MODEL, dtype=dtype), token_vectors(*lead, 3, D_MODEL, seed=2, dtype=dtype)
    output, weights = module(x, y, mask=mask), module.weights(x, y, mask)
    fully_masked = ~mask.expand(*lead, N_HEADS, 5, 3).any(-1)
    assert (weights[fully_masked] == 0).all()
    assert_close(weights[~fully_masked].sum(-1), torch.ones((~fully_masked).sum()))
    rows = fully_masked.all(-2)  # fully masked in every head
    assert_close(output[rows], module.out_proj.bias.expand(output[rows].shape))
    for grad in (*gradients(output, (x, y, *module.parameters())), *gradients(weights, (x, y))):
        assert grad.isfinite().all()
    assert (gradients(output, (x,))[0][rows] == 0).all()


@pytest.mark.parametrize("train", [True, False])
def test_pytorch_returns_nan_for_fully_masked_rows_on_one_path(train):
    torch_module = prepare(nn.MultiheadAttention(D_MODEL, N_HEADS, batch_first=True)).train(train)
    our_module, x = tl.MultiHeadAttention.from_torch(torch_module), token_vectors(2, 5, D_MODEL)
    mask = torch.ones(5, 5, dtype=torch.bool, device=DEVICE)
    mask[2] = False
    output_with_weights, weights = torch_module(x, x, x, attn_mask=~mask)
    assert output_with_weights[:, 2].isnan().all() and weights[:, 2].isnan().all()
    assert output_with_weights[:, [0, 1, 3, 4]].isfinite().all()
    output_without_weights, _ = torch_module(x, x, x, attn_mask=~mask, need_weights=False)
    if torch.__version__ >= "2.5":  # older versions return NaN in both calls
        assert_close(output_without_weights[:, 2], torch_module.out_proj.bias.expand(2, -1))
        assert_close(our_module(x, mask=mask), output_without_weights)
    assert_close(our_module(x, mask=mask)[:, 2], torch_module.out_proj.bias.expand(2, -1))


# Dropout.


def test_dropout_applies_to_weights_in_training():
    module, x = build_attention(dropout=0.5), token_vectors(1, 5, D_MODEL)
    assert not torch.equal(module(x), module(x))
    assert_close(module.weights(x), attend_by_einsum(module, x)[0])  # `weights` applies no dropout
    assert torch.equal(module.eval()(x), module(x))
    assert_close(module(x), attend_by_einsum(module, x)[1])
    all_dropped = build_attention(dropout=1.0)
    assert_close(all_dropped(x), all_dropped.out_proj.bias.expand(1, 5, -1))


@pytest.mark.parametrize("batch_first", [True, False])
def test_dropout_matches_pytorch(batch_first):
    torch_module = prepare(nn.MultiheadAttention(D_MODEL, N_HEADS, dropout=0.4, batch_first=batch_first))
    our_module, x = tl.MultiHeadAttention.from_torch(torch_module), token_vectors(2, 5, D_MODEL)
    assert our_module.dropout == 0.4 and our_module.training
    y = x if batch_first else x.transpose(0, 1)
    torch.manual_seed(0)
    expected, _ = torch_module(y, y, y, need_weights=False)
    torch.manual_seed(0)
    assert_close(our_module(x), expected if batch_first else expected.transpose(0, 1))
    assert not tl.MultiHeadAttention.from_torch(torch_module.eval()).training


# Agreement with PyTorch's module.


def mask_arguments(batch, q_len, k_len):
    """Return our masks, and the same masks as arguments of PyTorch's module, for which True hides a key."""
    random_mask = (normal(q_len, k_len, seed=11) > 0).detach()
    per_head = (normal(batch, N_HEADS, q_len, k_len, seed=12) > 0).detach()
    random_mask[..., 0] = per_head[..., 0] = True  # for an empty row, PyTorch's result depends on the code path
    causal = torch.ones(q_len, k_len, dtype=torch.bool, device=DEVICE).tril()
    padding = tl.padding_mask([k_len - 2, k_len, 1][:batch], k_len, device=DEVICE)
    key_padding_mask = ~padding[:, 0, 0]
    return {
        "none": ({}, {}),
        "some": ({"mask": random_mask}, {"attn_mask": ~random_mask}),
        "additive": ({"mask": random_mask}, {"attn_mask": tl.additive_mask(random_mask)}),
        "causal": ({"is_causal": True}, {"attn_mask": ~causal}),
        "causal, given": ({"is_causal": True}, {"attn_mask": ~causal, "is_causal": True}),
        "padding": ({"mask": padding}, {"key_padding_mask": key_padding_mask}),
        "padding and causal": (
            {"mask": padding & causal},
            {"key_padding_mask": key_padding_mask, "attn_mask": ~causal},
        ),
        "per head": ({"mask": per_head}, {"attn_mask": ~per_head.flatten(0, 1)}),  # (batch * heads, q_len, k_len)
        "per head and padding": (
            {"mask": per_head & padding | causal[:, :1]},
            {"attn_mask": ~(per_head & padding | causal[:, :1]).flatten(0, 1)},
        ),
    }


MASK_KINDS = list(mask_arguments(1, 5, 5))


OPTIONS = [
    (None, None, True, True),
    (None, None, True, False),
    (None, None, False, True),
    (5, 7, True, False),
    (5, None, False, True),
    (None, 7, True, True),
    (D_MODEL, D_MODEL, False, False),
]
# Every mask with every set of options; the dtypes alternate.
MASKS_AND_OPTIONS = [
    pytest.param(
        FULL_PRECISION[(i + j) % len(FULL_PRECISION)], kind, *options, id=f"{kind}-{'-'.join(map(str, options))}"
    )
    for i, kind in enumerate(MASK_KINDS)
    for j, options in enumerate(OPTIONS)
]


@pytest.mark.parametrize(("dtype", "kind", "kdim", "vdim", "bias", "batch_first"), MASKS_AND_OPTIONS)
def test_from_torch_matches_pytorch(dtype, kind, kdim, vdim, bias, batch_first):
    torch.manual_seed(0)
    options = {"kdim": kdim, "vdim": vdim, "bias": bias, "batch_first": batch_first}
    torch_module = prepare(nn.MultiheadAttention(D_MODEL, N_HEADS, **options), dtype)
    state = torch.get_rng_state()
    our_module = tl.MultiHeadAttention.from_torch(torch_module)
    assert torch.equal(torch.get_rng_state(), state)  # no random numbers were drawn
    assert_separate_copies(our_module, torch_module)
    assert (our_module.n_heads, our_module.dropout) == (N_HEADS, 0.0)

    x = token_vectors(2, 5, D_MODEL, dtype=dtype)
    cross = (
        x,
        token_vectors(2, 6, kdim or D_MODEL, seed=2, dtype=dtype),
        token_vectors(2, 6, vdim or D_MODEL, seed=3, dtype=dtype),
    )
    keys_are_values = (x, cross[1]) if (kdim or D_MODEL) == (vdim or D_MODEL) else cross
    for call_inputs in (cross, keys_are_values, *([(x,)] if {kdim, vdim} <= {None, D_MODEL} else [])):
        query, key, value = (*call_inputs, *call_inputs[-1:] * 2)[:3]
        mask, torch_mask = mask_arguments(2, 5, key.shape[-2])[kind]
        if kind == "additive":
            torch_mask = {"attn_mask": torch_mask["attn_mask"].to(dtype)}
        actual = our_module(*call_inputs, **mask)
        inputs = list({id(t): t for t in (query, key, value)}.values())
        for need_weights in (True, False):
            if torch_mask.get("is_causal") and need_weights:
                continue
            torch_inputs = (t if batch_first else t.transpose(0, 1) for t in (query, key, value))
            expected, weights = torch_module(
                *torch_inputs, **torch_mask, need_weights=need_weights, average_attn_weights=False
            )
            expected = expected if batch_first else expected.transpose(0, 1)
            assert_close(actual, expected)
            assert_gradients_close(actual, expected, inputs)
            assert_same_parameters(actual, our_module, expected, torch_module)
            if need_weights and "is_causal" not in mask:
                assert_close(our_module.weights(*call_inputs[:2], **mask), weights)


@pytest.mark.parametrize("kind", ["none", "padding", "some"])
def test_evaluation_matches_pytorchs_fast_path(kind):
    torch_module = prepare(nn.MultiheadAttention(D_MODEL, N_HEADS, batch_first=True)).eval()
    our_module, x = tl.MultiHeadAttention.from_torch(torch_module), token_vectors(2, 5, D_MODEL)
    mask, torch_mask = mask_arguments(2, 5, 5)[kind]
    with torch.no_grad():
        expected, weights = torch_module(x, x, x, **torch_mask, average_attn_weights=False)
        assert_close(our_module(x, **mask), expected)
        assert_close(our_module.weights(x, **mask), weights)


def test_from_torch_copies_the_weights_of_a_frozen_module():
    torch_module = prepare(nn.MultiheadAttention(D_MODEL, N_HEADS)).requires_grad_(False)
    our_module, x = tl.MultiHeadAttention.from_torch(torch_module), token_vectors(5, D_MODEL)
    assert_close(our_module(x), torch_module(x, x, x)[0])
    with torch.no_grad():
        our_module.q_proj.weight += 1
    assert not torch.equal(our_module.q_proj.weight, torch_module.in_proj_weight[:D_MODEL])


def test_from_torch_keeps_frozen_parameters_frozen():
    torch_module = nn.MultiheadAttention(D_MODEL, N_HEADS).requires_grad_(False)
    assert not any(p.requires_grad for p in tl.MultiHeadAttention.from_torch(torch_module).parameters())
    torch_module.out_proj.requires_grad_(True)
    trainable = {
        name for name, p in tl.MultiHeadAttention.from_torch(torch_module).named_parameters() if p.requires_grad
    }
    assert trainable == {"out_proj.weight", "out_proj.bias"}


def test_from_torch_accepts_a_parametrized_projection():
    torch_module = prepare(nn.MultiheadAttention(D_MODEL, N_HEADS, batch_first=True))
    nn.utils.parametrizations.weight_norm(torch_module.out_proj)
    x = token_vectors(2, 5, D_MODEL)
    assert_close(tl.MultiHeadAttention.from_torch(torch_module)(x), torch_module(x, x, x)[0])


# Different functions for attention and for positions.


def test_heads_can_use_another_attention_function():
    def linear(query, key, value, mask, *, is_causal, dropout_p):
        return (tl.causal_linear_attention if is_causal else tl.bidirectional_linear_attention)(query, key, value)

    module = prepare(tl.MultiHeadAttention(D_MODEL, N_HEADS, attend=linear))
    linear_module = tl.LinearAttention(D_MODEL, N_HEADS).to(DEVICE)
    linear_module.load_state_dict(module.state_dict())
    x = token_vectors(2, 5, D_MODEL)
    for options in ({}, {"is_causal": True}):
        assert_close(module(x, **options), linear_module(x, **options))
    text = "attend must be scaled_dot_product_attention for its weights to be known, got linear"
    raises(lambda: module.weights(x), ValueError, text)


def rotate_first_pair(x, positions):
    """Apply rotary positions to one pair of features, the first two."""
    angle = positions.to(x.dtype)[:, None]
    pair = torch.cat([-x[..., 1:2], x[..., :1]], -1)
    return torch.cat([x[..., :2] * angle.cos() + pair * angle.sin(), x[..., 2:]], -1)


def test_rotate_applies_to_queries_and_keys():
    module = prepare(tl.MultiHeadAttention(D_MODEL, N_HEADS, rotate=rotate_first_pair)).eval()
    x, positions = token_vectors(2, 5, D_MODEL), torch.arange(5, device=DEVICE)
    query, key, value = (tl.split_heads(p(x), N_HEADS) for p in (module.q_proj, module.k_proj, module.v_proj))
    query, key = rotate_first_pair(query, positions), rotate_first_pair(key, positions)
    heads = tl.scaled_dot_product_attention(query, key, value, is_causal=True)
    expected = module.out_proj(tl.merge_heads(heads))
    assert_close(module(x, is_causal=True), expected)
    assert_close(module.weights(x, is_causal=True), tl.attention_weights(query, key, is_causal=True))
    cache = module.new_cache()
    assert_close(torch.cat([module.step(new, cache) for new in x.split([2, 1, 1, 1], -2)], -2), expected)


def test_causal_weights_match_a_causal_mask():
    module = prepare(tl.MultiHeadAttention(D_MODEL, N_HEADS))
    x = token_vectors(2, 5, D_MODEL)
    causal = tl.causal_mask(5, device=DEVICE)
    assert_close(module.weights(x, is_causal=True), module.weights(x, mask=causal))
    linear = tl.LinearAttention(D_MODEL, N_HEADS).to(DEVICE)
    assert_close(linear.weights(x, is_causal=True), linear.weights(x, mask=causal))


# Heads that share keys and values.


def ungroup(module, module_class=tl.MultiHeadAttention, **options):
    """Return an equivalent attention without shared keys: every query head has a copy of the keys that it uses."""
    ungrouped, group = (
        module_class(module.out_proj.in_features, module.n_heads, **options),
        module.n_heads // module.n_kv_heads,
    )
    state = dict(module.state_dict())
    for name in ("k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias"):
        state[name] = torch.cat([state[name].chunk(module.n_kv_heads)[head // group] for head in range(module.n_heads)])
    ungrouped.load_state_dict(state)
    return ungrouped.to(DEVICE, module.out_proj.weight.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rotate", [None, tl.rotary])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_gqa_matches_repeated_keys(n_kv_heads, rotate, dtype):
    torch.manual_seed(0)
    module = prepare(tl.MultiHeadAttention(12, 6, n_kv_heads=n_kv_heads, rotate=rotate), dtype).eval()
    ungrouped = ungroup(module, rotate=rotate).eval()
    d_kv = 2 * n_kv_heads
    assert module.k_proj.weight.shape == module.v_proj.weight.shape == (d_kv, 12)
    x, memory = token_vectors(2, 5, 12, dtype=dtype), token_vectors(2, 7, 12, seed=2, dtype=dtype)
    random_mask = (normal(2, 6, 5, 7, seed=3) > 0).detach()
    calls = [
        ((x,), {}),
        ((x,), {"is_causal": True}),
        ((x, memory), {"mask": random_mask}),
        ((x, memory), {"mask": tl.padding_mask([3, 0], 7, device=DEVICE)}),
    ]
    for inputs, options in calls:
        assert_close(module(*inputs, **options), ungrouped(*inputs, **options))
        assert_gradients_close(module(*inputs, **options), ungrouped(*inputs, **options), inputs)
        assert_close(module.weights(*inputs, **options), ungrouped.weights(*inputs, **options))
    key, value = module.project(x)
    assert key.shape == value.shape == (2, n_kv_heads, 5, 2)
    cache = module.new_cache()
    steps = [module.step(new, cache) for new in x.split([2, 1, 1, 1], -2)]
    assert_close(torch.cat(steps, -2), ungrouped(x, is_causal=True))
    assert all(buffer.shape[:2] == (2, n_kv_heads) for buffer in cache._buffers)


def test_repr_shows_n_kv_heads():
    assert "(\n  n_heads=6, n_kv_heads=2, dropout=0.0\n" in repr(tl.MultiHeadAttention(12, 6, n_kv_heads=2))
    assert "n_kv_heads" not in repr(tl.MultiHeadAttention(12, 6, n_kv_heads=6))


def test_n_kv_heads_equal_to_n_heads_changes_nothing():
    def attend(query, key, value, mask, *, is_causal, dropout_p):  # this function does not support shared keys
        return tl.scaled_dot_product_attention(query, key, value, mask, is_causal=is_causal)

    modules = []
    for options in ({}, {"n_kv_heads": 6, "attend": attend}):
        torch.manual_seed(0)
        modules.append(tl.MultiHeadAttention(12, 6, **options).to(DEVICE))
    x = token_vectors(2, 5, 12)
    assert torch.equal(modules[0](x), modules[1](x))


# Heads of a separate size, and normalized queries and keys.


def attend_by_loops(module, query, key=None, is_causal=False):
    """Compute attention by head and by query, in float64; return the weights and the outputs.

    The weights have shape (..., heads, q_len, k_len).
    """
    key = query if key is None else key

    def project(x, linear, head):
        rows = slice(head * module.d_head, (head + 1) * module.d_head)
        bias = 0 if linear.bias is None else linear.bias[rows].cpu().double()
        return x.cpu().double() @ linear.weight[rows].cpu().double().T + bias

    def project_head(x, linear, norm, head):
        x = project(x, linear, head)
        if norm is not None:
            x = x / (x.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight.cpu().double()
        return (
            x if module.rotate is None else module.rotate(x[..., None, :, :], torch.arange(x.shape[-2]))[..., 0, :, :]
        )

    all_weights, outputs = [], []
    for head in range(module.n_heads):
        kv_head = head // (module.n_heads // module.n_kv_heads)
        q, k = (
            project_head(query, module.q_proj, module.q_norm, head),
            project_head(key, module.k_proj, module.k_norm, kv_head),
        )
        v = project(key, module.v_proj, kv_head)
        scores = q @ k.mT / math.sqrt(module.d_head)
        if is_causal:
            scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -math.inf)
        all_weights.append(torch.softmax(scores, -1))
        outputs.append(all_weights[-1] @ v)
    output = torch.cat(outputs, -1) @ module.out_proj.weight.cpu().double().T
    output = output if module.out_proj.bias is None else output + module.out_proj.bias.cpu().double()
    return torch.stack(all_weights, -3), output


MODERN_OPTIONS = [
    {"d_head": 6},
    {"d_head": 1, "bias": False},
    {"d_head": 8, "n_kv_heads": 1},
    {"qk_norm": True},
    {"qk_norm": True, "d_head": 6, "n_kv_heads": 3, "rotate": tl.rotary},
    {"qk_norm": True, "d_head": 2, "n_kv_heads": 1, "rotate": tl.rotary, "eps": 0.25, "bias": False},
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", MODERN_OPTIONS)
@pytest.mark.parametrize("lead", [(), (2,), (2, 1)])
def test_own_head_size_and_qk_norm_match_loops(lead, options, dtype):
    module = build_attention(dtype, **options).eval()
    x, y = (token_vectors(*lead, n, D_MODEL, seed=n, dtype=dtype) for n in (5, 7))
    for inputs, causal in (((x,), {}), ((x,), {"is_causal": True}), ((x, y), {})):
        weights, output = attend_by_loops(module, *inputs, **causal)
        actual = module(*inputs, **causal)
        assert actual.shape == x.shape and actual.dtype == dtype
        assert_close(actual, output)
        assert_close(module.weights(*inputs, **causal), weights)
        assert_gradients_close(actual, output, (*inputs, *module.parameters()))
    whole, cache = module(x, is_causal=True), module.new_cache()
    assert_close(torch.cat([module.step(new, cache) for new in x.split([2, 1, 1, 1], -2)], -2), whole)
    keys, values = module.project(x)
    assert keys.shape == values.shape == (*lead, module.n_kv_heads, 5, module.d_head)
    assert_close(module.attend_projected(x, keys, values, is_causal=True), whole)


def test_heads_need_not_divide_d_model():
    module = tl.MultiHeadAttention(10, 3, d_head=4).to(DEVICE)
    assert module(token_vectors(2, 5, 10)).shape == (2, 5, 10)
    shapes = {name: tuple(part.weight.shape) for name, part in module.named_children()}
    assert shapes == {"q_proj": (12, 10), "k_proj": (12, 10), "v_proj": (12, 10), "out_proj": (10, 12)}
    default_size = tl.MultiHeadAttention(12, 3, d_head=4)
    assert "(\n  n_heads=3, dropout=0.0\n" in repr(default_size) and "n_heads=3, d_head=4, dropout=0.0\n" in repr(
        module
    )


def test_qk_norm_bounds_scores_for_queries_and_keys_of_any_length():
    torch.manual_seed(0)
    module = tl.MultiHeadAttention(D_MODEL, N_HEADS, qk_norm=True, bias=False).to(DEVICE)
    x = token_vectors(2, 5, D_MODEL)
    assert {name: tuple(p.shape) for name, p in module.named_parameters() if "norm" in name} == {
        "q_norm.weight": (4,),
        "k_norm.weight": (4,),
    }
    weights = module.weights(x)
    assert_close(module.weights(x * 1000), weights)
    assert (weights.log().amax(-1) - weights.log().amin(-1)).max() <= 2 * math.sqrt(4) + 1e-4  # |score| <= √d_head
    module.q_norm = module.k_norm = None
    assert (module.weights(x * 1000) - module.weights(x)).abs().max() > 0.1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_qk_norm_agrees_with_float32_under_autocast(dtype):
    module, x = build_attention(d_head=6, qk_norm=True, rotate=tl.rotary), token_vectors(2, 5, D_MODEL)
    expected = module(x)
    with torch.autocast(DEVICE.type, dtype=dtype):
        assert_close(module(x).to(dtype), expected)
        cache = module.new_cache()
        steps = [module.step(new, cache) for new in x.split([2, 1, 1, 1], -2)]
        assert_close(torch.cat(steps, -2).to(dtype), module(x, is_causal=True))


def test_attention_matches_transformers_qwen3():
    transformers = load_transformers()
    modeling = transformers.models.qwen3.modeling_qwen3
    sizes = {"hidden_size": D_MODEL, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10}
    config = transformers.Qwen3Config(**sizes, attention_bias=False)
    config._attn_implementation = "eager"
    reference = prepare(modeling.Qwen3Attention(config, 0)).eval()
    base = config.rope_parameters["rope_theta"]
    module = tl.MultiHeadAttention(
        D_MODEL,
        6,
        n_kv_heads=2,
        d_head=10,
        qk_norm=True,
        eps=config.rms_norm_eps,
        bias=False,
        rotate=lambda x, positions: tl.rotary(x, positions, base=base),
    )
    module.load_state_dict({name.replace("o_proj", "out_proj"): x for name, x in reference.state_dict().items()})
    x = token_vectors(2, 7, D_MODEL)
    angles = modeling.Qwen3RotaryEmbedding(config).to(DEVICE)(x, torch.arange(7, device=DEVICE)[None])
    expected = reference(x, angles, tl.additive_mask(tl.causal_mask(7, device=DEVICE))[None, None])[0]
    actual = module.to(DEVICE)(x, is_causal=True)
    assert_close(actual, expected)
    assert_gradients_close(actual, expected, (x,))


# Initial weights.


@pytest.mark.parametrize("options", [{}, {"n_kv_heads": 1}, {"d_key_in": 5}, {"d_head": 7}, {"qk_norm": True}])
def test_weights_are_drawn_in_a_fixed_order(options):
    """A seed fixes the weights: four linear layers are drawn, and then three of them again by Xavier's rule."""
    torch.manual_seed(0)
    module = tl.MultiHeadAttention(D_MODEL, N_HEADS, **options)
    after = torch.rand(1)
    torch.manual_seed(0)
    d_head, d_key_in = options.get("d_head", 4), options.get("d_key_in", D_MODEL)
    d_kv = d_head * options.get("n_kv_heads", N_HEADS)
    shapes = [(D_MODEL, N_HEADS * d_head), (d_key_in, d_kv), (D_MODEL, d_kv), (N_HEADS * d_head, D_MODEL)]
    expected = [nn.Linear(*shape).weight for shape in shapes]
    for weight in expected[:3]:
        nn.init.xavier_uniform_(weight, 2**-0.5 if d_key_in == D_MODEL else 1.0)
    for name, weight in zip(("q_proj", "k_proj", "v_proj", "out_proj"), expected):
        assert torch.equal(getattr(module, name).weight, weight), name
    assert torch.equal(torch.rand(1), after)


@pytest.mark.parametrize("options", [{}, {"d_key_in": 96, "d_value_in": 80}, {"d_key_in": 96, "d_value_in": 96}])
@pytest.mark.parametrize("bias", [True, False])
def test_weights_initialize_as_in_pytorch(options, bias):
    torch.manual_seed(0)
    our_module = tl.MultiHeadAttention(128, 4, bias=bias, **options)
    torch_module = nn.MultiheadAttention(
        128, 4, bias=bias, kdim=options.get("d_key_in"), vdim=options.get("d_value_in")
    )
    torch_module = tl.MultiHeadAttention.from_torch(torch_module)
    for (name, our_parameter), (other, their_parameter) in zip(
        our_module.named_parameters(), torch_module.named_parameters(), strict=True
    ):
        assert name == other and our_parameter.shape == their_parameter.shape
        if name.endswith("bias"):
            assert (our_parameter == 0).all() and (their_parameter == 0).all()
        else:  # both parameters are uniform: the largest of 10,000 numbers is within a thousandth of the bound
            assert abs(our_parameter.abs().max() / their_parameter.abs().max() - 1) < 2e-3
            assert abs(our_parameter.std() / their_parameter.std() - 1) < 0.02
            assert abs(our_parameter.mean()) < 2e-3
    bounds = [getattr(our_module, name).weight.abs().max().item() for name in ("q_proj", "out_proj")]
    assert bounds == pytest.approx(
        [math.sqrt(6 / (256 if options.get("d_key_in") == 96 else 512)), 128**-0.5], rel=2e-3
    )


def test_parameter_names_and_shapes():
    shapes = {
        name: tuple(p.shape) for name, p in tl.MultiHeadAttention(6, 3, d_key_in=4, d_value_in=5).named_parameters()
    }
    features = {"q_proj": 6, "k_proj": 4, "v_proj": 5, "out_proj": 6}
    assert shapes == {
        f"{name}.{kind}": (6, n) if kind == "weight" else (6,)
        for name, n in features.items()
        for kind in ("weight", "bias")
    }
    assert not [name for name, _ in tl.MultiHeadAttention(6, 3, bias=False).named_parameters() if "bias" in name]


# The exact text of every error.

module = tl.MultiHeadAttention(8, 2)
wide = tl.MultiHeadAttention(8, 2, d_key_in=5, d_value_in=7)
single = tl.SingleHeadAttention(8, 3)
x, y, z, w = torch.zeros(3, 4, 8), torch.zeros(3, 6, 8), torch.zeros(3, 6, 5), torch.zeros(3, 6, 7)
bool_mask = torch.ones(4, 6, dtype=torch.bool)
MASK_SHAPE_ERROR = "mask must broadcast to the scores (3, 2, 4, 6), got shape {}: its axis {} must be 1 or {}, not {}"
MASK_DTYPE_ERROR = "mask must be bool, True where a query may attend, got torch.{} with 0 and 1"
DTYPE_ERROR = "{} must have the dtype of the module's weights, torch.float32, got torch.{}"

WRONG_CALLS = [
    (
        lambda: tl.MultiHeadAttention(8, 4, n_kv_heads=3),
        ValueError,
        "n_kv_heads must divide n_heads, got n_kv_heads 3 and n_heads 4",
    ),
    (
        lambda: tl.MultiHeadAttention(8, 4, n_kv_heads=8),
        ValueError,
        "n_kv_heads must divide n_heads, got n_kv_heads 8 and n_heads 4",
    ),
    (lambda: tl.MultiHeadAttention(8, 4, n_kv_heads=0), ValueError, "n_kv_heads must be at least 1, got 0"),
    (lambda: tl.MultiHeadAttention(8, 4, n_kv_heads=2.0), TypeError, "n_kv_heads must be an integer, got 2.0"),
    (lambda: tl.MultiHeadAttention(8, 2, d_head=0), ValueError, "d_head must be at least 1, got 0"),
    (lambda: tl.MultiHeadAttention(8, 2, d_head=-4), ValueError, "d_head must be at least 1, got -4"),
    (lambda: tl.MultiHeadAttention(8, 2, d_head=4.0), TypeError, "d_head must be an integer, got 4.0"),
    (lambda: tl.MultiHeadAttention(8, 0, d_head=4), ValueError, "n_heads must be at least 1, got 0"),
    (lambda: tl.MultiHeadAttention(8, 2.0, d_head=4), TypeError, "n_heads must be an integer, got 2.0"),
    (lambda: tl.MultiHeadAttention(8, 2, qk_norm="rms"), TypeError, "qk_norm must be True or False, got 'rms'"),
    (lambda: tl.MultiHeadAttention(8, 2, qk_norm=True, eps=-1), ValueError, "eps must be a number, 0 or more, got -1"),
    (lambda: tl.split_heads([[1.0]], 1), TypeError, "x must be a tensor, got list"),
    (lambda: tl.split_heads(x[0, 0], 2), ValueError, "x must have shape (..., seq, d_model), got (8,)"),
    (lambda: tl.split_heads(x, 3), ValueError, "n_heads must divide d_model, got n_heads 3 and d_model 8"),
    (lambda: tl.split_heads(x, 0), ValueError, "n_heads must be at least 1, got 0"),
    (lambda: tl.split_heads(x, -2), ValueError, "n_heads must be at least 1, got -2"),
    (lambda: tl.split_heads(x, 2.0), TypeError, "n_heads must be an integer, got 2.0"),
    (lambda: tl.split_heads(x, True), TypeError, "n_heads must be an integer, got True"),
    (lambda: tl.merge_heads(None), TypeError, "x must be a tensor, got None"),
    (lambda: tl.merge_heads(x[0]), ValueError, "x must have shape (..., heads, seq, d_value), got (4, 8)"),
    (lambda: tl.MultiHeadAttention(8, 3), ValueError, "n_heads must divide d_model, got n_heads 3 and d_model 8"),
    (lambda: tl.MultiHeadAttention(8, 16), ValueError, "n_heads must divide d_model, got n_heads 16 and d_model 8"),
    (lambda: tl.MultiHeadAttention(8, 0), ValueError, "n_heads must be at least 1, got 0"),
    (lambda: tl.MultiHeadAttention(8, "2"), TypeError, "n_heads must be an integer, got '2'"),
    (lambda: tl.MultiHeadAttention(0, 2), ValueError, "d_model must be at least 1, got 0"),
    (lambda: tl.MultiHeadAttention(8.0, 2), TypeError, "d_model must be an integer, got 8.0"),
    (lambda: tl.MultiHeadAttention(True, 1), TypeError, "d_model must be an integer, got True"),
    (lambda: tl.MultiHeadAttention(8, 2, d_key_in=-1), ValueError, "d_key_in must be at least 1, got -1"),
    (lambda: tl.MultiHeadAttention(8, 2, d_value_in=0), ValueError, "d_value_in must be at least 1, got 0"),
    (lambda: tl.MultiHeadAttention(8, 2, dropout=2), ValueError, "dropout must be a probability from 0 to 1, got 2"),
    (lambda: module([x]), TypeError, "query must be a tensor, got list"),
    (lambda: module(x.long()), TypeError, "query must be floating point, got torch.int64"),
    (lambda: module(x.double()), TypeError, DTYPE_ERROR.format("query", "float64")),
    (lambda: module(x, x.half()), TypeError, DTYPE_ERROR.format("key", "float16")),
    (lambda: module(x, x, x.bfloat16()), TypeError, DTYPE_ERROR.format("value", "bfloat16")),
    (lambda: module(x, bool_mask), TypeError, "key must be floating point, got torch.bool"),  # a mask passed as the key
    (
        lambda: module(x.to("meta")),
        ValueError,
        "query must be on the device of the module's weights, cpu, got meta",
    ),
    (
        lambda: module(x, x.double().to("meta")),
        ValueError,
        "key must be on the device of the module's weights, cpu, got meta",
    ),
    (lambda: module(z), ValueError, "query must have shape (..., q_len, d_model) with d_model 8, got (3, 6, 5)"),
    (lambda: module(x[0, 0]), ValueError, "query must have shape (..., q_len, d_model) with d_model 8, got (8,)"),
    (lambda: module(x, z), ValueError, "key must have shape (..., k_len, d_key_in) with d_key_in 8, got (3, 6, 5)"),
    (lambda: wide(x), ValueError, "key must have shape (..., k_len, d_key_in) with d_key_in 5, got (3, 4, 8)"),
    (lambda: wide(x, z), ValueError, "value must have shape (..., k_len, d_value_in) with d_value_in 7, got (3, 6, 5)"),
    (lambda: wide(x, z, w[:, :5]), ValueError, "key and value must share k_len, got 6 and 5"),
    (
        lambda: module(x, y[:2]),
        ValueError,
        "query and key and value must have leading axes that broadcast, got (3, 2) and (2, 2) and (2, 2)",
    ),
    (
        lambda: module.weights(z),
        ValueError,
        "query must have shape (..., q_len, d_model) with d_model 8, got (3, 6, 5)",
    ),
    (
        lambda: wide.weights(x, y),
        ValueError,
        "key must have shape (..., k_len, d_key_in) with d_key_in 5, got (3, 6, 8)",
    ),
    (lambda: module(x, y, mask=[True]), TypeError, "mask must be a tensor of bool, got list"),
    (lambda: module(x, y, mask=bool_mask.float()), TypeError, MASK_DTYPE_ERROR.format("float32")),
    (lambda: module(x, y, mask=bool_mask.byte()), TypeError, MASK_DTYPE_ERROR.format("uint8")),
    (
        lambda: module(x, y, mask=bool_mask.to("meta")),
        ValueError,
        "query and mask must be on one device, got cpu and meta",
    ),
    (lambda: module(x, y, mask=bool_mask.mT), ValueError, MASK_SHAPE_ERROR.format((6, 4), "-1 (k_len)", 6, 4)),
    (lambda: module(x, y, mask=bool_mask[:3]), ValueError, MASK_SHAPE_ERROR.format((3, 6), "-2 (q_len)", 4, 3)),
    (
        lambda: module(x, y, mask=bool_mask.expand(3, 4, 6)),
        ValueError,
        MASK_SHAPE_ERROR.format((3, 4, 6), "-3 (heads)", 2, 3),
    ),
    (
        lambda: module(x, y, mask=bool_mask.expand(6, 1, 4, 6)),
        ValueError,
        MASK_SHAPE_ERROR.format((6, 1, 4, 6), "-4 (batch)", 3, 6),
    ),
    (
        lambda: module(x, y, mask=bool_mask.expand(1, 1, 1, 4, 6)),
        ValueError,
        "mask must have at most the 4 axes of the scores (3, 2, 4, 6), got shape (1, 1, 1, 4, 6)",
    ),
    (lambda: module.weights(x, y, bool_mask.mT), ValueError, MASK_SHAPE_ERROR.format((6, 4), "-1 (k_len)", 6, 4)),
    (
        lambda: module(x, y, mask=bool_mask, is_causal=True),
        ValueError,
        "mask and is_causal must not be given together, got both: combine them, mask & causal, with "
        "causal = torch.ones(q_len, k_len, dtype=torch.bool).tril()",
    ),
    (
        lambda: tl.MultiHeadAttention.from_torch(nn.Linear(8, 8)),
        TypeError,
        "module must be a torch.nn.MultiheadAttention, got Linear",
    ),
    (
        lambda: tl.MultiHeadAttention.from_torch(module),
        TypeError,
        "module must be a torch.nn.MultiheadAttention, got MultiHeadAttention",
    ),
    (
        lambda: tl.MultiHeadAttention.from_torch(nn.MultiheadAttention(8, 2, add_bias_kv=True)),
        ValueError,
        "module must have add_bias_kv=False, got True: extra keys are not supported",
    ),
    (
        lambda: tl.MultiHeadAttention.from_torch(nn.MultiheadAttention(8, 2, add_zero_attn=True)),
        ValueError,
        "module must have add_zero_attn=False, got True: extra keys are not supported",
    ),
    (lambda: tl.SingleHeadAttention("4", 3), TypeError, "d_model must be an integer, got '4'"),
    (lambda: tl.SingleHeadAttention(4, 1.5), TypeError, "d_head must be an integer, got 1.5"),
    (lambda: tl.SingleHeadAttention(4, True), TypeError, "d_head must be an integer, got True"),
    (lambda: tl.SingleHeadAttention(4, 3, 0), ValueError, "d_value must be at least 1, got 0"),
    (lambda: tl.SingleHeadAttention(-4, 3), ValueError, "d_model must be at least 1, got -4"),
    (lambda: single([1.0]), TypeError, "x must be a tensor, got list"),
    (lambda: single(x.long()), TypeError, "x must be floating point, got torch.int64"),
    (
        lambda: single(x.double()),
        TypeError,
        "x must have the dtype of the module's weights, torch.float32, got torch.float64",
    ),
    (lambda: single(z), ValueError, "x must have shape (..., seq, d_model) with d_model 8, got (3, 6, 5)"),
    (lambda: single.weights(x[0, 0]), ValueError, "x must have shape (..., seq, d_model) with d_model 8, got (8,)"),
    (
        lambda: single(x, bool_mask),
        ValueError,
        "mask must broadcast to the scores (3, 4, 4), got shape (4, 6): its axis -1 (k_len) must be 1 or 4, not 6",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG_CALLS)
def test_multi_head_errors_name_the_argument(call, error, text):
    raises(call, error, text)


# A window.


def window_mask(seq, window, is_causal):
    """Return whether token i sees token j, by the definition of a window."""
    allowed = [[abs(i - j) < window and (j <= i or not is_causal) for j in range(seq)] for i in range(seq)]
    return torch.tensor(allowed, dtype=torch.bool, device=DEVICE).view(seq, seq)


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize("window", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("options", [{}, {"n_kv_heads": 1, "rotate": tl.rotary, "qk_norm": True}])
def test_a_window_is_a_mask(options, window, is_causal):
    windowed, full = (build_attention(window=size, **options).eval() for size in (window, None))
    full.load_state_dict(windowed.state_dict())
    x = token_vectors(2, 7, D_MODEL)
    mask = window_mask(7, window, is_causal)
    assert_close(windowed(x, is_causal=is_causal), full(x, mask=mask))
    assert_close(windowed.weights(x, is_causal=is_causal), full.weights(x, mask=mask))
    padding_mask = tl.padding_mask([7, 4], 7, device=DEVICE)
    assert_close(windowed(x, mask=padding_mask), full(x, mask=padding_mask & window_mask(7, window, False)))


@pytest.mark.parametrize("chunks", [[1] * 9, [3, 1, 5], [9], [5, 1, 1, 2], [2, 7], [0, 4, 5]])
@pytest.mark.parametrize("window", [1, 2, 4, 20])
def test_steps_with_a_window_match_the_whole(window, chunks):
    module, x = build_attention(window=window, n_kv_heads=1, rotate=tl.rotary).eval(), token_vectors(2, 9, D_MODEL)
    cache = module.new_cache()
    assert_close(torch.cat([module.step(new, cache) for new in x.split(chunks, -2)], -2), module(x, is_causal=True))
    assert cache.length == 9 and cache.window == window


def test_without_the_window_the_output_differs():
    module, x = build_attention(window=2).eval(), token_vectors(2, 9, D_MODEL)
    whole, module.window = module(x, is_causal=True), None
    assert (module(x, is_causal=True) - whole).abs().max() > 0.01


def test_a_window_needs_the_same_tokens_and_one_mask():
    module, x = build_attention(window=2), token_vectors(2, 5, D_MODEL)
    with pytest.raises(ValueError, match="query and key must be the same tokens, since this attention has a window"):
        module(x, token_vectors(2, 7, D_MODEL))
    with pytest.raises(ValueError, match="mask and is_causal must not be given together"):
        module(x, mask=window_mask(5, 5, True), is_causal=True)
    with pytest.raises(ValueError, match="window must be at least 1, got 0"):
        tl.MultiHeadAttention(12, 3, window=0)
    with pytest.raises(TypeError, match=r"window must be an integer, got 2\.5"):
        tl.KeyValueCache(window=2.5)
    assert "window=2" in repr(module)
