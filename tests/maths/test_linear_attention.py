"""All forms of linear attention agree with its definition, which computes all weights in float64."""

import copy
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
    assert_close,
    assert_gradients_close,
    few_examples,
    gradients,
    needs_float64,
    normal,
    prepare,
    raises,
)

D_MODEL, N_HEADS = 12, 3


def elu_plus_one(x):
    return F.elu(x) + 1


def squared_relu(x):
    return x.relu().square()


def relu_of_both_signs(x):
    return torch.cat((x.relu(), (-x).relu()), dim=-1)


# Pairs of a feature map and an independent version of it. The exponential is not tested in float16, where it overflows
# above 11.
FEATURE_MAP_PAIRS = [
    (tl.elu_feature_map, elu_plus_one),
    (torch.exp, torch.exp),
    (relu_of_both_signs, relu_of_both_signs),
]


def attend_by_loop(query, key, value, key_mask=None, is_causal=False, feature_map=elu_plus_one):
    """Compute each query's weighted mean over the keys that it may attend to; inputs receive gradients."""
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (x.cpu().double().expand(*lead, *x.shape[-2:]) for x in (query, key, value))
    q_len, k_len = query.shape[-2], key.shape[-2]
    allowed = torch.ones(*lead, 1, k_len, dtype=torch.bool)
    if key_mask is not None:
        allowed = allowed & key_mask.cpu()
    rows = []
    for *n, i in (
        torch.cartesian_prod(*(torch.arange(size) for size in (*lead, q_len))).reshape(-1, len(lead) + 1).tolist()
    ):
        visible = [j for j in range(k_len) if allowed[(*n, 0, j)] and (j <= i or not is_causal)]
        keys, values = key[tuple(n)][visible], value[tuple(n)][visible]
        similarity = (feature_map(keys) * feature_map(query[(*n, i)])).sum(-1)
        total = similarity.sum()
        rows.append((similarity[:, None] * values).sum(0) / (total if total > 0 else 1))
    rows = torch.stack(rows) if rows else value.new_zeros(0)
    return rows.reshape(*lead, q_len, value.shape[-1])


def attend_by_weights(query, key, value, is_causal=False, feature_map=elu_plus_one):
    """Compute the outputs by definition for longer sequences, with all weights at once, in float64."""
    query, key, value = (x.cpu().double() for x in (query, key, value))
    similarity = feature_map(query) @ feature_map(key).mT
    if is_causal:
        similarity = similarity.tril()
    return similarity @ value / similarity.sum(-1, keepdim=True)


def attend_by_recurrence(query, key, value, feature_map=tl.elu_feature_map):
    """Compute the outputs token by token, from the initial state; tensors are (batch, heads, seq, features)."""
    batch, heads, seq, _ = query.shape
    d_value = value.shape[-1]
    features = feature_map(query[..., :1, :]).shape[-1]
    state = tl.initial_state(batch, heads, features, d_value, dtype=query.dtype, device=query.device)
    outputs = []
    for i in range(seq):
        token = query[..., i, :], key[..., i, :], value[..., i, :]
        state, output = tl.linear_attention_step(state, *token, feature_map=feature_map)
        outputs.append(output)
    return torch.stack(outputs, -2) if outputs else value


def random_heads(*lengths, d_head=4, d_value=6, lead=(2, 3), dtype=torch.float32, **options):
    """Return query, key and value with these numbers of tokens."""
    q_len, k_len = lengths * 2 if len(lengths) == 1 else lengths
    sizes = (q_len, d_head), (k_len, d_head), (k_len, d_value)
    return [normal(*lead, *size, seed=seed, dtype=dtype, **options) for seed, size in enumerate(sizes)]


@st.composite
def linear_attention_arguments(draw):
    """Draw arguments for linear attention with any leading axes, sizes from 0, masks that broadcast, and any dtype."""
    lead = draw(st.lists(st.integers(0, 3), max_size=4))
    is_causal = draw(st.booleans())
    q_len, k_len, d_head, d_value = (draw(st.integers(0, largest)) for largest in (5, 7, 4, 3))
    q_len = k_len if is_causal else q_len
    dtype = draw(st.sampled_from(DTYPES))
    contiguous = draw(st.booleans())
    seed = draw(st.integers(0, 10**6))

    def broadcastable(shape):
        shape = [draw(st.sampled_from((size, size, 1))) for size in shape]
        return shape[draw(st.integers(0, len(shape))) if draw(st.booleans()) else 0 :]

    tensors = [
        normal(*broadcastable(lead), length, features, seed=seed + i, dtype=dtype, contiguous=contiguous)
        for i, (length, features) in enumerate(((q_len, d_head), (k_len, d_head), (k_len, d_value)))
    ]
    key_mask = None
    if draw(st.booleans()):
        # A mask must not enlarge the leading axes to which the tensors broadcast.
        shape = [*torch.broadcast_shapes(*(x.shape[:-2] for x in tensors)), 1, k_len]
        key_mask = (normal(*broadcastable(shape), seed=seed + 3) > -0.2).detach()
    return *tensors, key_mask, is_causal, draw(st.integers(1, 9)), draw(st.sampled_from(FEATURE_MAP_PAIRS))


# Agreement.


@few_examples
@given(arguments=linear_attention_arguments())
def test_linear_attention_agrees_with_the_definition(arguments):
    query, key, value, key_mask, is_causal, chunk_size, (feature_map, independent_map) = arguments
    copies = [x.detach().clone() for x in (query, key, value)]
    options = {"key_mask": key_mask, "feature_map": feature_map}
    if is_causal:
        output = tl.causal_linear_attention(query, key, value, chunk_size=chunk_size, **options)
    else:
        output = tl.bidirectional_linear_attention(query, key, value, **options)
    assert output.dtype == query.dtype and output.device == query.device
    expected = attend_by_loop(query, key, value, key_mask, is_causal, independent_map)
    assert_close(output, expected)
    if expected.requires_grad:
        assert_gradients_close(output, expected, (query, key, value))
    for x, before in zip((query, key, value), copies):
        assert torch.equal(x, before) and x._version == 0  # the inputs are unchanged
    assert key_mask is None or key_mask._version == 0


FEATURE_MAPS = [our_map for our_map, _ in FEATURE_MAP_PAIRS] + [squared_relu]
CHUNK_SIZES = [1, 5, 8, 37, 64]
# Every feature map with every dtype, and the chunk sizes in turn; the tests above draw map, dtype and size at random.
CASES = [
    pytest.param(CHUNK_SIZES[(i + j) % 5], feature_map, dtype, id=f"{feature_map.__name__}-{dtype}")
    for i, feature_map in enumerate(FEATURE_MAPS)
    for j, dtype in enumerate(DTYPES)
]


@pytest.mark.parametrize(("chunk_size", "feature_map", "dtype"), CASES)
def test_all_forms_agree(chunk_size, feature_map, dtype):
    tensors = random_heads(37, dtype=dtype)
    causal = tl.causal_linear_attention(*tensors, feature_map=feature_map, chunk_size=chunk_size)
    steps = attend_by_recurrence(*tensors, feature_map=feature_map)
    assert_close(causal, steps)
    assert_gradients_close(causal, steps, tensors)
    # The causal output for a query equals the bidirectional output over the prefix that ends with this query.
    expected_outputs = [
        tl.bidirectional_linear_attention(query, key, value, feature_map=feature_map)
        for n in range(1, 38)
        for query, key, value in [(tensors[0][..., n - 1 : n, :], tensors[1][..., :n, :], tensors[2][..., :n, :])]
    ]
    expected_outputs = torch.cat(expected_outputs, -2)
    assert_close(causal, expected_outputs)
    assert_gradients_close(causal, expected_outputs, tensors)


@needs_float64
@pytest.mark.parametrize("is_causal", [False, True])
def test_linear_attention_gradcheck(is_causal):
    tensors = random_heads(5, d_head=3, d_value=2, lead=(2,), dtype=torch.float64)
    mask = torch.tensor([[True, True, False, True, True], [False] * 5], device=DEVICE)[:, None]

    def attend(query, key, value, key_mask):
        if is_causal:
            return tl.causal_linear_attention(query, key, value, key_mask=key_mask, chunk_size=2)
        return tl.bidirectional_linear_attention(query, key, value, key_mask=key_mask)

    for key_mask in (None, mask):
        assert torch.autograd.gradcheck(lambda q, k, v, m=key_mask: attend(q, k, v, m), tensors)


@needs_float64
def test_step_gradcheck():
    query, key, value, S, z = (
        normal(2, 3, *size, seed=i, dtype=torch.float64) for i, size in enumerate([(4,), (4,), (2,), (4, 2), (4,)])
    )
    S, z = (x.detach().exp().requires_grad_() for x in (S, z))

    def step(S, z, query, key, value):
        state, output = tl.linear_attention_step((S, z), query, key, value)
        return *state, output

    assert torch.autograd.gradcheck(step, (S, z, query, key, value))


@needs_float64
def test_second_derivatives_exist():
    tensors = random_heads(5, d_head=2, d_value=2, lead=(1,), dtype=torch.float64)
    assert torch.autograd.gradgradcheck(lambda *x: tl.causal_linear_attention(*x, chunk_size=2), tensors)


# The feature map.


@pytest.mark.parametrize("dtype", DTYPES)
def test_elu_feature_map_is_elu_plus_one(dtype):
    x = torch.tensor([-3.0, -1.0, -0.0, 0.0, 1e-3, 0.5, 7.0, 100.0], dtype=dtype, device=DEVICE, requires_grad=True)
    expected = F.elu(x.cpu().double()) + 1
    assert_close(tl.elu_feature_map(x), expected)
    assert_gradients_close(tl.elu_feature_map(x), expected, (x,))
    assert tl.elu_feature_map(x).dtype == dtype and x._version == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", [tl.elu_feature_map, tl.checks.elu_feature_map.reference], ids=["ours", "check's"])
def test_feature_map_gradient_matches_the_formula_at_zero(function, dtype):
    """``clamp`` and the like would fail: their gradient at the bound depends on PyTorch's version."""
    numbers = [-3.0, -1.0, -1e-3, -0.0, 0.0, 1e-3, 7.0, 100.0]
    x = torch.tensor(numbers, dtype=dtype, device=DEVICE, requires_grad=True)
    (grad,) = torch.autograd.grad(function(x).sum(), x)
    assert_close(grad, torch.tensor([math.exp(min(number, 0)) for number in numbers], dtype=torch.float64))
    assert grad[3] == grad[4] == 1  # both branches have slope 1 here, and the slopes must not be added


def test_elu_feature_map_is_exact_far_below_zero():
    x = torch.tensor([-17.0, -18.0, -30.0, -80.0], device=DEVICE, requires_grad=True)
    # The map is not written as elu(x) + 1, which is rounded to 0 far below zero. At -18, a device may round up or down,
    # since e⁻¹⁸ is a quarter of the last digit of 1.
    assert (F.elu(x) + 1)[2:].tolist() == [0, 0]
    actual = tl.elu_feature_map(x)
    torch.testing.assert_close(actual.cpu().double(), x.cpu().double().exp(), rtol=1e-6, atol=0)
    (grad,) = torch.autograd.grad(actual.sum(), x)
    torch.testing.assert_close(grad.cpu().double(), x.cpu().double().exp(), rtol=1e-6, atol=0)
    # Queries and keys far below zero still have weights that sum to one.
    query, key = (torch.full((2, n, 4), -30.0, device=DEVICE) for n in (3, 5))
    value = normal(2, 5, 4, seed=0)
    assert_close(tl.bidirectional_linear_attention(query, key, value), value.mean(-2, keepdim=True).expand(2, 3, 4))


def test_feature_map_may_return_any_number_of_features():
    query, key, value = random_heads(9)
    projection = normal(4, 7, seed=5).detach()

    def random_features(x):
        return (x @ projection).exp()

    def on_device(feature_map, x):
        return feature_map(x.to(DEVICE, torch.float32)).cpu().double()

    for feature_map, features in ((squared_relu, 4), (torch.exp, 4), (relu_of_both_signs, 8), (random_features, 7)):
        output = tl.causal_linear_attention(query, key, value, feature_map=feature_map, chunk_size=4)
        assert_close(
            output,
            attend_by_loop(query, key, value, is_causal=True, feature_map=lambda x, f=feature_map: on_device(f, x)),
        )
        state = tl.initial_state(2, 3, features, 6, device=DEVICE)
        token = (x[..., 0, :] for x in (query, key, value))
        (S, z), _ = tl.linear_attention_step(state, *token, feature_map=feature_map)
        assert S.shape == (2, 3, features, 6) and z.shape == (2, 3, features)


def test_feature_map_can_be_a_learned_module():
    query, key, value = random_heads(9)
    torch.manual_seed(0)
    learned = nn.Sequential(nn.Linear(4, 5), nn.Softplus()).to(DEVICE)
    output = tl.causal_linear_attention(query, key, value, feature_map=learned, chunk_size=4)
    grads = gradients(output, list(learned.parameters()))
    similarity = (learned(query) @ learned(key).mT).tril()
    expected = gradients(similarity @ value / similarity.sum(-1, keepdim=True), list(learned.parameters()))
    for grad, expected_grad in zip(grads, expected):
        assert_close(grad, expected_grad)


# Properties.


@pytest.mark.parametrize("chunk_size", [1, 3, 4, 100])
def test_causal_output_does_not_depend_on_later_tokens(chunk_size):
    tensors = [x.detach() for x in random_heads(12)]
    before = tl.causal_linear_attention(*tensors, chunk_size=chunk_size)
    for n in range(12):
        changed_tensors = [x.clone() for x in tensors]
        for x in changed_tensors:
            x[..., n:, :] += 3.0
        after = tl.causal_linear_attention(*changed_tensors, chunk_size=chunk_size)
        assert torch.equal(after[..., :n, :], before[..., :n, :])
        assert not torch.isclose(after[..., n, :], before[..., n, :]).any()


@pytest.mark.parametrize("chunk_size", [1, 4, 100])
def test_gradients_do_not_reach_later_tokens(chunk_size):
    query, key, value = random_heads(12)
    output = tl.causal_linear_attention(query, key, value, chunk_size=chunk_size)
    for grad in torch.autograd.grad(output[..., :5, :].square().sum(), (query, key, value)):
        assert (grad[..., 5:, :] == 0).all() and (grad[..., :5, :] != 0).any()


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("padding", [[5, 6], [0, 1], [0, 3, 4, 6]])
@pytest.mark.parametrize("dtype", DTYPES)
def test_padding_is_excluded_from_both_sums(dtype, padding, is_causal):
    tensors = random_heads(7, dtype=dtype)
    real = torch.ones(7, dtype=torch.bool, device=DEVICE)
    real[padding] = False

    def attend(query, key, value, **options):
        if is_causal:
            return tl.causal_linear_attention(query, key, value, chunk_size=3, **options)
        return tl.bidirectional_linear_attention(query, key, value, **options)

    output = attend(*tensors, key_mask=real)
    # The values in the padding have no effect.
    changed_tensors = [x.detach().clone() for x in tensors]
    for x in changed_tensors[1:]:
        x[..., padding, :] = 50.0
    assert torch.equal(attend(*changed_tensors, key_mask=real), output)
    # Outputs and gradients of the real tokens are the same as without padding.
    assert_close(output[..., real, :], attend(*(x[..., real, :] for x in tensors)))
    for grad in gradients(output, tensors[1:]):
        assert (grad[..., padding, :] == 0).all() and (grad[..., real, :] != 0).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("is_causal", [False, True])
def test_fully_masked_query_gets_zeros_and_finite_gradients(is_causal, dtype):
    tensors = random_heads(7, dtype=dtype)
    lengths = [0, 4]
    mask = tl.padding_mask(lengths, 7, device=DEVICE)
    if is_causal:
        mask = mask.flip(-1)  # with padding in front, the first queries see only padding
        output = tl.causal_linear_attention(*tensors, key_mask=mask, chunk_size=2)
        assert (output[1, :, :3] == 0).all() and (output[1, :, 3:] != 0).all()
    else:
        output = tl.bidirectional_linear_attention(*tensors, key_mask=mask)
        assert (output[1] != 0).all()
    assert (output[0] == 0).all()
    for grad in gradients(output, tensors):
        assert grad.isfinite().all() and (grad[0] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_features_that_are_zero_match_nothing(dtype):
    query, key, value = (x.detach() for x in random_heads(7, dtype=dtype))
    query[..., 3, :] = -1.0  # this query has no positive feature
    key[..., :2, :] = -1.0  # the first two queries have no key with a matching feature
    tensors = [x.requires_grad_() for x in (query, key, value)]
    output = tl.causal_linear_attention(*tensors, feature_map=squared_relu, chunk_size=3)
    assert (output[..., [0, 1, 3], :] == 0).all()
    assert_close(output, attend_by_loop(*tensors, is_causal=True, feature_map=squared_relu))
    assert_gradients_close(output, attend_by_loop(*tensors, is_causal=True, feature_map=squared_relu), tensors)
    assert all(grad.isfinite().all() for grad in gradients(output, tensors))


def test_single_token_may_have_zero_features():
    """A feature map may return zero for the only token of a sequence; this must not stop a generation with an error."""
    token = torch.full((1, 1, 1, 2), -1.0, device=DEVICE)
    for form in (tl.bidirectional_linear_attention, tl.causal_linear_attention):
        assert (form(token, token, token, feature_map=squared_relu) == 0).all()
    state = tl.initial_state(1, 1, 2, 2, device=DEVICE)
    state, output = tl.linear_attention_step(state, *[token[..., 0, :]] * 3, feature_map=squared_relu)
    assert (output == 0).all() and all((x == 0).all() for x in state)


def test_output_is_within_the_range_of_values():
    query, key, value = (x.detach() * 5 for x in random_heads(40))
    for output in (
        tl.bidirectional_linear_attention(query, key, value),
        tl.causal_linear_attention(query, key, value, chunk_size=7),
    ):
        assert (output <= value.amax(-2, keepdim=True) + 1e-4).all()
        assert (output >= value.amin(-2, keepdim=True) - 1e-4).all()


def test_permuting_keys_changes_nothing_without_causality():
    query, key, value = random_heads(6, 8)
    order = torch.tensor([3, 0, 7, 4, 1, 6, 2, 5])
    output = tl.bidirectional_linear_attention(query, key, value)
    assert_close(tl.bidirectional_linear_attention(query, key[..., order, :], value[..., order, :]), output)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("i", range(3))
def test_nan_propagates_to_later_tokens_only(i, dtype):
    tensors = [x.detach() for x in random_heads(8, dtype=dtype)]
    tensors[i][0, 0, 4, 1] = math.nan
    output = tl.causal_linear_attention(*tensors, chunk_size=3)
    expected_nan = torch.zeros(2, 3, 8, 6, dtype=torch.bool, device=DEVICE)
    if i == 0:
        expected_nan[0, 0, 4] = True  # NaN in a query affects only this query
    else:
        expected_nan[0, 0, 4:, slice(1, 2) if i == 2 else slice(None)] = True
    actual = output.isnan()
    assert not actual[..., :3, :].any(), "NaN in an earlier chunk"
    assert (actual | ~expected_nan).all() and not actual[1].any() and not actual[0, 1:].any()


# Accuracy in float32: one large key, and long sequences.


def by_subtracting_own_term(query, key, value, chunk_size, feature_map):
    """Compute the state before a chunk as the sum to the chunk's end minus the chunk's own sum: this loses digits."""
    q, k, v = (x.unflatten(-2, (-1, chunk_size)) for x in (feature_map(query), feature_map(key), value))
    own_S, own_z = k.mT @ v, k.sum(-2)
    S, z = own_S.cumsum(-3) - own_S, own_z.cumsum(-2) - own_z
    weights = (q @ k.mT).tril()
    numerator = q @ S + weights @ v
    return (numerator / (q @ z.unsqueeze(-1) + weights.sum(-1, keepdim=True))).flatten(-3, -2)


def by_subtracting_later_terms(query, key, value, chunk_size, feature_map):
    """Compute the prefix sums as the sum over all keys minus the later keys, a form that loses digits as well."""
    q, k = feature_map(query), feature_map(key)
    outer = k.unsqueeze(-1) * value.unsqueeze(-2)
    S = outer.sum(-3, keepdim=True) - (outer.flip(-3).cumsum(-3).flip(-3) - outer)
    z = k.sum(-2, keepdim=True) - (k.flip(-2).cumsum(-2).flip(-2) - k)
    return (q.unsqueeze(-2) @ S).squeeze(-2) / (q * z).sum(-1, keepdim=True)


def by_chunks(query, key, value, chunk_size, feature_map):
    return tl.causal_linear_attention(query, key, value, chunk_size=chunk_size, feature_map=feature_map)


def by_steps(query, key, value, chunk_size, feature_map):
    return attend_by_recurrence(query, key, value, feature_map)


def tensors_with_a_huge_key(position, seq=64):
    query, key, value = (x.detach() for x in random_heads(seq, lead=(1, 2)))
    key[..., position, :] = 25.0  # its exponential is 7e10, to which float32 cannot add anything below 4096
    return query, key, value


@pytest.mark.parametrize("form", [by_chunks, by_steps])
@pytest.mark.parametrize("position", [63, 57, 50, 8, 7, 0])
@pytest.mark.parametrize("chunk_size", [1, 8, 48, 64])
def test_huge_key_does_not_change_earlier_outputs(chunk_size, position, form):
    tensors = tensors_with_a_huge_key(position)
    expected = attend_by_weights(*tensors, is_causal=True, feature_map=torch.exp)
    actual = form(*tensors, chunk_size, torch.exp)
    assert (actual.cpu() - expected).abs().max() < 5e-6 * expected.abs().max()
    # The outputs before the huge key must equal the outputs of a sequence that ends before this key.
    shortened = (
        form(*(x[..., :position, :] for x in tensors), chunk_size, torch.exp) if position else actual[..., :0, :]
    )
    torch.testing.assert_close(actual[..., :position, :], shortened, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("position", [63, 57])
def test_huge_key_does_not_change_earlier_gradients(position):
    tensors = [x.requires_grad_() for x in tensors_with_a_huge_key(position)]
    output = tl.causal_linear_attention(*tensors, feature_map=torch.exp, chunk_size=8)
    expected = attend_by_weights(*tensors, is_causal=True, feature_map=torch.exp)
    upstream = normal(*output.shape, seed=9).detach()
    for grad, expected_grad in zip(
        torch.autograd.grad(output, tensors, upstream), torch.autograd.grad(expected, tensors, upstream.cpu().double())
    ):
        earlier = (..., slice(0, position), slice(None))
        assert (grad.cpu()[earlier] - expected_grad.cpu()[earlier]).abs().max() < 1e-5 * expected_grad[
            earlier
        ].abs().max()


@pytest.mark.parametrize("form", [by_subtracting_own_term, by_subtracting_later_terms])
def test_difference_of_sums_fails_with_a_huge_key(form):
    """The two tempting forms above must fail with a huge key, although they are right without one."""
    small_tensors = [x.detach() for x in random_heads(64, lead=(1, 2))]
    expected = attend_by_weights(*small_tensors, is_causal=True, feature_map=torch.exp)
    assert_close(form(*small_tensors, 8, torch.exp), expected)
    tensors = tensors_with_a_huge_key(57)
    expected = attend_by_weights(*tensors, is_causal=True, feature_map=torch.exp)
    actual = form(*tensors, 8, torch.exp)
    assert not (actual.cpu() - expected)[..., :57, :].abs().max() < 0.5


LONG_SEQ = 65536


def outputs_of_prefixes(query, key, value):
    """Return the outputs for every prefix, from sums in float64, one column of values at a time."""
    q, k = elu_plus_one(query.cpu().double()), elu_plus_one(key.cpu().double())
    columns = [(q * (k * column.unsqueeze(-1)).cumsum(-2)).sum(-1) for column in value.cpu().double().unbind(-1)]
    return torch.stack(columns, -1) / (q * k.cumsum(-2)).sum(-1, keepdim=True)


def outputs_of_all_keys(query, key, value):
    """Return the outputs for all keys, from sums in float64."""
    q, k = elu_plus_one(query.cpu().double()), elu_plus_one(key.cpu().double())
    return q @ (k.mT @ value.cpu().double()) / (q @ k.sum(-2, keepdim=True).mT)


def test_float32_is_accurate_at_length_65536():
    """Values have mean 1, since sums of values around zero would hardly grow. Every output is then near 1."""
    query, key, value = (x.detach() for x in random_heads(LONG_SEQ, lead=(1, 1), d_head=16, d_value=8))
    value = value + 1
    expected = outputs_of_all_keys(query, key, value)
    actual = tl.bidirectional_linear_attention(query, key, value)
    assert (actual.cpu() - expected).abs().max() < 2e-5
    expected = outputs_of_prefixes(query, key, value)
    for chunk_size in (64, 128, 1000):
        actual = tl.causal_linear_attention(query, key, value, chunk_size=chunk_size)
        assert (actual.cpu() - expected).abs().max() < 2e-5, chunk_size
    # The steps add one token after the other, as cumsum does; only the last 1024 steps are computed.
    tokens = [x[0, :, -1024:] for x in (query, key, value)]
    k, v = elu_plus_one(key[0, :, :-1024]), value[0, :, :-1024]
    S = torch.stack([(k * column.unsqueeze(-1)).cumsum(-2)[:, -1] for column in v.unbind(-1)], -1)
    state, outputs = (S[None], k.cumsum(-2)[None, :, -1]), []
    for token in zip(*(x.unbind(-2) for x in tokens)):
        state, output = tl.linear_attention_step(state, *(x[None] for x in token))
        outputs.append(output)
    assert (torch.stack(outputs, -2).cpu() - expected[..., -1024:, :]).abs().max() < 1e-4


def test_gradients_in_float32_are_accurate_at_length_16384():
    tensors = random_heads(16384, lead=(1, 1), d_head=8, d_value=4)
    exact = [x.detach().cpu().double().requires_grad_() for x in tensors]
    upstream = normal(1, 1, 16384, 4, seed=7).detach()
    actual = torch.autograd.grad(tl.causal_linear_attention(*tensors), tensors, upstream)
    for grad, expected_grad in zip(
        actual, torch.autograd.grad(outputs_of_prefixes(*exact), exact, upstream.cpu().double())
    ):
        assert (grad.cpu() - expected_grad).abs().max() < 1e-5 * expected_grad.abs().max()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_is_summed_in_float32(dtype, autocast):
    """Sums of 65,536 keys exceed the range of float16 and the precision of bfloat16."""
    query, key, value = ((x.detach() + 1).to(dtype) for x in random_heads(LONG_SEQ, lead=(1, 1), d_head=16, d_value=4))
    with torch.autocast(DEVICE.type, dtype=dtype, enabled=autocast):
        bidirectional = tl.bidirectional_linear_attention(query, key, value)
        causal = tl.causal_linear_attention(query, key, value)
        features, v = elu_plus_one(key.float()[..., :-1, :]), value.float()[..., :-1, :]
        state = (features.unsqueeze(-1) * v.unsqueeze(-2)).sum(-3), features.sum(-2)
        state, last_output = tl.linear_attention_step(state, *(x[..., -1, :] for x in (query, key, value)))
    assert state[0].dtype == state[1].dtype == torch.float32
    for actual, exact in (
        (bidirectional, outputs_of_all_keys(query, key, value)),
        (causal, outputs_of_prefixes(query, key, value)),
        (last_output, outputs_of_all_keys(query, key, value)[..., -1, :]),
    ):
        assert actual.dtype == dtype
        torch.testing.assert_close(actual.cpu().double(), exact, rtol=0.6 * torch.finfo(dtype).eps, atol=1e-4)


# Memory.


def peak_memory(seq, backward, **options):
    """Return the peak memory of one call; the unit is one tensor of shape (seq, heads * d_head)."""
    tensors = [torch.randn(1, 2, seq, 32, device=DEVICE, requires_grad=backward) for _ in range(3)]
    upstream = torch.randn(1, 2, seq, 32, device=DEVICE)

    def call():
        output = tl.causal_linear_attention(*tensors, **options)
        return torch.autograd.grad(output, tensors, upstream) if backward else output

    call()
    peak = tl.measure.peak_bytes(call)
    if peak is None:
        pytest.skip(f"{DEVICE.type} does not report its memory use")
    return peak / (4 * seq * 2 * 32)


@pytest.mark.parametrize("backward", [False, True])
def test_memory_is_linear_in_length(backward):
    short, long = peak_memory(2048, backward), peak_memory(8192, backward)
    assert long < 1.1 * short  # memory per token: the unit of `long` is four times that of `short`
    # All prefixes of S would need 32 units of memory, their gradients 32 more, and all weights 8192 / 32.
    assert long < (30 if backward else 2.5)


def test_gradient_memory_of_chunks_is_bounded():
    """A slice's gradient is as large as the whole tensor: one slice per chunk would make training quadratic."""
    tensors = [torch.randn(1, 2, 64, 4, device=DEVICE, requires_grad=True) for _ in range(3)]
    nodes, open_nodes = set(), [tl.causal_linear_attention(*tensors, chunk_size=8).grad_fn]
    while open_nodes:
        node = open_nodes.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            open_nodes += [before for before, _ in node.next_functions]
    names = [node.name() for node in nodes]
    assert names.count("SplitBackward0") == 3 and "SliceBackward0" not in names


def test_bidirectional_memory_is_that_of_features_and_output():
    query, key, value = (torch.randn(1, 2, 8192, 32, device=DEVICE) for _ in range(3))
    peak = tl.measure.peak_bytes(lambda: tl.bidirectional_linear_attention(query, key, value))
    if peak is not None:
        assert peak / (4 * 8192 * 2 * 32) < 4.5


# States.


def test_state_sums_up_earlier_tokens_and_is_not_modified():
    query, key, value = random_heads(9)
    state = tl.initial_state(2, 3, 4, 6, device=DEVICE)
    assert [x.shape for x in state] == [(2, 3, 4, 6), (2, 3, 4)]
    assert all((x == 0).all() and x.dtype == torch.float32 for x in state)
    for i in range(9):
        before, token = [x.detach().clone() for x in state], [x[..., i, :] for x in (query, key, value)]
        new, _ = tl.linear_attention_step(state, *token)
        assert all(torch.equal(x, y) and x._version == 0 for x, y in zip(state, before))
        assert all(x._version == 0 for x in (query, key, value))
        repeated, _ = tl.linear_attention_step(state, *token)
        assert all(torch.equal(x, y) for x, y in zip(new, repeated))
        state = new
    k = elu_plus_one(key.cpu().double())
    assert_close(state[0], k.mT @ value.cpu().double())
    assert_close(state[1], k.sum(-2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_state_of_half_precision_is_float32(dtype):
    state_dtype = torch.promote_types(dtype, torch.float32)
    state = tl.initial_state(1, 1, 2, 3, dtype=dtype, device=DEVICE)
    query, key, value = (x[..., 0, :] for x in random_heads(1, lead=(1, 1), d_head=2, d_value=3, dtype=dtype))
    state, output = tl.linear_attention_step(state, query, key, value)
    assert [x.dtype for x in state] == [state_dtype, state_dtype] and output.dtype == dtype
    assert_close(output, value)  # the token attends to itself only


def test_state_has_constant_size():
    state = tl.initial_state(1, 2, 4, 3, device=DEVICE)
    token = [torch.zeros(1, 2, features, device=DEVICE) for features in (4, 4, 3)]
    for _ in range(50):
        state, _ = tl.linear_attention_step(state, *token)
    assert [x.numel() for x in state] == [2 * 4 * 3, 2 * 4]
    assert all(x.untyped_storage().nbytes() == 4 * x.numel() for x in state)


@pytest.mark.parametrize("lead", [(), (2,), (2, 1, 3)])
def test_a_step_accepts_any_leading_axes(lead):
    query, key, value = random_heads(1, lead=lead)
    state = torch.zeros(*lead, 4, 6, device=DEVICE), torch.zeros(*lead, 4, device=DEVICE)
    _, output = tl.linear_attention_step(state, *(x[..., 0, :] for x in (query, key, value)))
    assert_close(output, value[..., 0, :])


# The module.


def build_attention(dtype=torch.float32, **options):
    torch.manual_seed(0)
    return prepare(tl.LinearAttention(D_MODEL, N_HEADS, **options), dtype)


def attend_by_definition(module, query, key=None, value=None, mask=None, is_causal=False):
    """In float64, apply the input projections, compute each head by the definition, and apply the output projection."""
    key = query if key is None else key
    value = key if value is None else value
    state = {name: x.detach().cpu().double() for name, x in module.state_dict().items()}

    def project(x, name):
        return x.cpu().double() @ state[f"{name}.weight"].T + state.get(f"{name}.bias", 0)

    split = [
        torch.stack(project(x, f"{letter}_proj").chunk(module.n_heads, -1), -3)
        for x, letter in zip((query, key, value), "qkv")
    ]
    actual = attend_by_loop(*split, mask, is_causal)
    return project(torch.cat(actual.unbind(-3), -1), "out_proj")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("lead", [(), (2,), (2, 0), (2, 1, 3)])
def test_module_is_projections_around_linear_attention(lead, bias, dtype):
    module = build_attention(dtype, bias=bias, chunk_size=2)
    x, y = (normal(*lead, n, D_MODEL, seed=n, dtype=dtype) for n in (5, 7))
    assert_close(module(x), attend_by_definition(module, x))
    assert_close(module(x, y), attend_by_definition(module, x, y))
    assert_close(module(x, y, y * 2), attend_by_definition(module, x, y, y * 2))
    assert_close(module(x, is_causal=True), attend_by_definition(module, x, is_causal=True))
    mask = torch.tensor([True, False, True, True, False], device=DEVICE)
    assert_close(module(x, mask=mask), attend_by_definition(module, x, mask=mask))
    assert_close(module(x, mask=mask, is_causal=True), attend_by_definition(module, x, mask=mask, is_causal=True))
    if x.numel():
        module(x, is_causal=True).sum().backward()
        assert all(parameter.grad is not None for parameter in module.parameters())


def test_keys_and_values_may_have_other_features():
    module = build_attention(d_key_in=5, d_value_in=7)
    x, y, z = normal(2, 4, D_MODEL, seed=1), normal(2, 6, 5, seed=2), normal(2, 6, 7, seed=3)
    assert_close(module(x, y, z), attend_by_definition(module, x, y, z))


@pytest.mark.parametrize("masked", [False, True])
def test_padding_does_not_change_the_outputs_of_real_tokens(masked):
    module = build_attention()
    x = normal(2, 6, D_MODEL, seed=1)
    mask = tl.padding_mask([6, 3], 6, device=DEVICE)
    output = module(x, mask=mask)
    assert_close(output[1, :3], module(x[1, :3]))
    causal = module(x, mask=mask, is_causal=True)
    assert_close(causal[1, :3], module(x[1, :3], is_causal=True))
    assert_close(causal[0], module(x[0], is_causal=True))


def test_weights_match_forward():
    module = build_attention()
    x, y = normal(2, 5, D_MODEL, seed=1), normal(2, 7, D_MODEL, seed=2)
    causal = tl.causal_mask(5, device=DEVICE)
    padding = tl.padding_mask([7, 4], 7, device=DEVICE)
    for weights, tokens, output in (
        (module.weights(x), x, module(x)),
        (module.weights(x, mask=causal), x, module(x, is_causal=True)),
        (module.weights(x, y), y, module(x, y)),
        (module.weights(x, y, padding), y, module(x, y, mask=padding)),
    ):
        assert weights.shape == (2, N_HEADS, 5, tokens.shape[-2]) and (weights >= 0).all()
        assert_close(weights.sum(-1), torch.ones(2, N_HEADS, 5))
        values = tl.split_heads(module.v_proj(tokens), N_HEADS)
        assert_close(module.out_proj(tl.merge_heads(weights @ values)), output)
    empty_mask = torch.zeros(5, dtype=torch.bool, device=DEVICE)
    assert (module.weights(x, mask=empty_mask) == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_of_many_keys_sum_to_one_in_half_precision(dtype):
    module = build_attention(dtype)
    x = normal(1, 3000, D_MODEL, seed=1, dtype=dtype).detach() * 8
    assert_close(module.weights(x[:, :4], x).cpu().double().sum(-1).to(dtype), torch.ones(1, N_HEADS, 4))


def test_from_torch_copies_projections():
    torch.manual_seed(0)
    torch_module = prepare(nn.MultiheadAttention(D_MODEL, N_HEADS, batch_first=True))
    module = tl.LinearAttention.from_torch(torch_module)
    assert type(module) is tl.LinearAttention and module.feature_map is tl.elu_feature_map
    state, softmax_state = module.state_dict(), tl.MultiHeadAttention.from_torch(torch_module).state_dict()
    assert state.keys() == softmax_state.keys() and all(torch.equal(state[name], softmax_state[name]) for name in state)
    x = normal(2, 5, D_MODEL, seed=1)
    assert_close(module(x), attend_by_definition(module, x))
    raises(
        lambda: tl.LinearAttention.from_torch(nn.MultiheadAttention(12, 3, dropout=0.5)),
        ValueError,
        "dropout must be 0: linear attention has no weights to drop, got 0.5",
    )


def test_module_loads_weights_of_softmax_attention():
    softmax_attention, module = tl.MultiHeadAttention(D_MODEL, N_HEADS), tl.LinearAttention(D_MODEL, N_HEADS)
    module.load_state_dict(softmax_attention.state_dict())
    torch.manual_seed(3)
    softmax_state = tl.MultiHeadAttention(D_MODEL, N_HEADS).state_dict()
    torch.manual_seed(3)
    linear_state = tl.LinearAttention(D_MODEL, N_HEADS).state_dict()
    assert all(torch.equal(softmax_state[name], linear_state[name]) for name in softmax_state)


def test_a_state_may_hold_no_sequences():
    S, z = tl.initial_state(0, 2, 3, 4)
    assert S.shape == (0, 2, 3, 4) and z.shape == (0, 2, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_module_agrees_with_float32_under_autocast(dtype):
    module = build_attention(chunk_size=4)
    x = normal(2, 10, D_MODEL, seed=1).detach()
    for options in ({}, {"is_causal": True}):
        expected = module(x, **options)
        with torch.autocast(DEVICE.type, dtype=dtype):
            assert_close(module(x, **options), expected)
        with torch.autocast(DEVICE.type, dtype=dtype):
            cache = module.new_cache()
            steps = torch.cat([module.step(new, cache) for new in x.split([3, 1, 6], -2)], -2)
        assert_close(steps, module(x, is_causal=True).to(dtype))


def with_linear_attention(model):
    """Return a copy of the model in which linear attention with the same weights replaces all attention."""
    model = copy.deepcopy(model)
    for layer in model.modules():
        for name, child in list(layer.named_children()):
            if type(child) is tl.MultiHeadAttention:
                linear = tl.LinearAttention(child.q_proj.in_features, child.n_heads).to(DEVICE)
                linear.load_state_dict(child.state_dict())
                setattr(layer, name, linear)
    return model


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer_can_use_linear_attention(norm_first):
    torch.manual_seed(0)
    layer = with_linear_attention(prepare(tl.EncoderLayer(D_MODEL, N_HEADS, 24, norm_first=norm_first)))
    x, mask = normal(2, 7, D_MODEL, seed=1), tl.padding_mask([7, 4], 7, device=DEVICE)
    for options in ({}, {"is_causal": True}, {"mask": mask}, {"mask": mask, "is_causal": True}):

        def part(x, options=options):
            return attend_by_definition(layer.self_attention, x, **options).float().to(DEVICE)

        if norm_first:
            expected = x + part(layer.norm1(x))
            expected = expected + layer.feed_forward(layer.norm2(expected))
        else:
            expected = layer.norm1(x + part(x))
            expected = layer.norm2(expected + layer.feed_forward(expected))
        assert_close(layer(x, **options), expected)
    cache = layer.self_attention.new_cache()
    steps = torch.cat([layer.step(new, cache) for new in x.split([3, 1, 1, 2], -2)], -2)
    assert_close(steps, layer(x, is_causal=True))


def test_a_decoder_layer_can_use_linear_attention():
    torch.manual_seed(0)
    layer = with_linear_attention(prepare(tl.DecoderLayer(D_MODEL, N_HEADS, 24)))
    x, memory = normal(2, 7, D_MODEL, seed=1), normal(2, 5, D_MODEL, seed=2)
    mask = tl.padding_mask([5, 2], 5, device=DEVICE)
    output = layer(x, memory, memory_mask=mask, is_causal=True)

    def part(attention, *inputs, **options):
        return attend_by_definition(attention, *inputs, **options).float().to(DEVICE)

    expected = layer.norm1(x + part(layer.self_attention, x, is_causal=True))
    expected = layer.norm2(expected + part(layer.cross_attention, expected, memory, mask=mask))
    assert_close(output, layer.norm3(expected + layer.feed_forward(expected)))
    shortened = layer(x[1:], memory[1:, :2], is_causal=True)
    assert_close(output[1:], shortened)
    cache, projected = layer.self_attention.new_cache(), layer.cross_attention.project(memory)
    steps = torch.cat([layer.step(new, cache, projected, mask) for new in x.split([2, 1, 4], -2)], -2)
    assert_close(steps, output)


@pytest.mark.parametrize("norm_first", [False, True])
def test_linear_transformer_generates_the_same_with_its_cache(norm_first):
    torch.manual_seed(0)
    model = with_linear_attention(prepare(tl.Transformer(20, 20, 24, 2, 2, 48, norm_first=norm_first)).eval())
    source = torch.randint(20, (3, 6), generator=torch.Generator().manual_seed(1)).to(DEVICE)
    mask = tl.padding_mask([6, 4, 1], 6, device=DEVICE)
    with_states = model.generate(source, mask, bos=0, max_new_tokens=20)
    assert torch.equal(with_states, model.generate(source, mask, bos=0, max_new_tokens=20, use_cache=False))
    assert with_states.shape == (3, 21) and len(with_states[:, 1:].unique()) > 1
    scores = model(source, with_states[:, :-1], mask)
    assert torch.equal(scores.argmax(-1), with_states[:, 1:])


def test_linear_attention_can_be_trained():
    torch.manual_seed(0)
    layer = with_linear_attention(tl.EncoderLayer(D_MODEL, N_HEADS, 24)).to(DEVICE)
    x, goal = normal(4, 9, D_MODEL, seed=1).detach(), normal(4, 9, D_MODEL, seed=2).detach()
    optimizer, losses = torch.optim.Adam(layer.parameters(), lr=0.01), []
    for _ in range(60):
        loss = (layer(x, is_causal=True) - goal).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]


def test_learned_feature_map_is_a_submodule():
    torch.manual_seed(0)
    learned = nn.Sequential(nn.Linear(4, 5), nn.Softplus())
    module = tl.LinearAttention(D_MODEL, N_HEADS, feature_map=learned).to(DEVICE)
    assert "feature_map.0.weight" in module.state_dict() and module.feature_map is learned
    module(normal(2, 5, D_MODEL, seed=1), is_causal=True).sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())
    # The function for linear attention has no parameters, so the module can load the weights of softmax attention.
    assert tl.LinearAttention(8, 2).state_dict().keys() == tl.MultiHeadAttention(8, 2).state_dict().keys()


def test_the_module_can_be_copied_and_saved(tmp_path):
    module = build_attention(chunk_size=3)
    x = normal(2, 5, D_MODEL, seed=1)
    torch.save(module, tmp_path / "module.pt")
    loaded = torch.load(tmp_path / "module.pt", weights_only=False)
    for copied in (copy.deepcopy(module), loaded):
        assert torch.equal(copied(x, is_causal=True), module(x, is_causal=True))
        assert copied.chunk_size == 3
    assert module.extra_repr().startswith("n_heads=3")


@pytest.mark.parametrize("n_kv_heads", [1, 2])
@pytest.mark.parametrize("rotate", [None, tl.rotary])
def test_gqa_shares_the_state(rotate, n_kv_heads):
    torch.manual_seed(0)
    module = tl.LinearAttention(12, 6, n_kv_heads=n_kv_heads, rotate=rotate, chunk_size=2).to(DEVICE)
    ungrouped, state = tl.LinearAttention(12, 6, rotate=rotate).to(DEVICE), dict(module.state_dict())
    for name in ("k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias"):
        heads = state[name].chunk(n_kv_heads)
        state[name] = torch.cat([heads[head * n_kv_heads // 6] for head in range(6)])
    ungrouped.load_state_dict(state)
    x = normal(2, 5, 12, seed=1)
    padding, mask_of_heads = tl.padding_mask([3, 5], 5, device=DEVICE), (normal(6, 1, 5, seed=2) > 0).detach()
    for options in (
        {},
        {"is_causal": True},
        {"mask": padding},
        {"mask": mask_of_heads, "is_causal": True},
        {"mask": padding[0, 0]},
    ):
        assert_close(module(x, **options), ungrouped(x, **options))
        assert_gradients_close(module(x, **options), ungrouped(x, **options), (x,))
        assert_close(module.weights(x, **options), ungrouped.weights(x, **options))
    cache = module.new_cache()
    steps = [module.step(new, cache) for new in x.split([2, 1, 2], -2)]
    assert_close(torch.cat(steps, -2), ungrouped(x, is_causal=True))
    assert cache.state[0].numel() == 2 * n_kv_heads * 2 * 2


@pytest.mark.parametrize("rotate", [None, tl.rotary])
def test_linear_attention_accepts_a_head_size_and_qk_norm(rotate):
    options = {"n_kv_heads": 2, "d_head": 6, "qk_norm": True, "eps": 0.25, "rotate": rotate}
    torch.manual_seed(0)
    module = tl.LinearAttention(12, 4, **options, chunk_size=2).to(DEVICE)
    with torch.no_grad():
        module.q_norm.weight.copy_(normal(6, seed=3))
        module.k_norm.weight.copy_(normal(6, seed=4))
    softmax_attention = tl.MultiHeadAttention(12, 4, **options).to(DEVICE)
    softmax_attention.load_state_dict(module.state_dict())
    x = normal(2, 5, 12, seed=1)
    query, (key, value) = softmax_attention._project_query(x), softmax_attention.project(x)
    query, key, value = (heads.repeat_interleave(4 // heads.shape[1], 1) for heads in (query, key, value))
    for causal, function in ((True, tl.causal_linear_attention), (False, tl.bidirectional_linear_attention)):
        expected = module.out_proj(tl.merge_heads(function(query, key, value)))
        assert_close(module(x, is_causal=causal), expected)
        assert_gradients_close(module(x, is_causal=causal), expected, (x,))
        assert_close(module.out_proj(tl.merge_heads(module.weights(x, is_causal=causal) @ value)), expected)
    cache = module.new_cache()
    steps = [module.step(new, cache) for new in x.split([2, 1, 2], -2)]
    assert_close(torch.cat(steps, -2), module(x, is_causal=True))
    assert [x.numel() for x in cache.state] == [2 * 2 * 6 * 6, 2 * 2 * 6]  # one state for each key head


# The exact text of every error.

q, k, v = torch.zeros(2, 5, 4), torch.zeros(2, 7, 4), torch.zeros(2, 7, 6)
bool_mask = torch.ones(7, dtype=torch.bool)
PAIRS_ERROR = (
    "{} must hide whole keys, in shape (..., 1, k_len), got {}: linear attention forms no weights of single pairs to "
    "hide; what comes later is hidden by its causal form"
)
MASK_SHAPE_ERROR = "{} must broadcast to the scores (2, 1, 7), got shape {}: its axis {} must be 1 or {}, not {}"
FLOAT_MASK_ERROR = (
    "key_mask must be bool, True where a query may attend, got torch.float32 with 0 and 1: "
    "use key_mask.bool(), or key_mask == 0 if 1 hides a key"
)


def cosine(x):
    return x.cos() - 1.5


def all_zeros(x):
    return torch.zeros_like(x)


def sum_of_all(x):
    return x.square().sum()


def transposed(x):
    return x.mT


def return_shape(x):
    return x.shape


def length_dependent(x):
    return torch.ones(*x.shape[:-1], x.shape[-2])


WRONG_CALLS = [
    (([[1.0]], k, v), {}, TypeError, "query must be a tensor, got list"),
    ((q, None, v), {}, TypeError, "key must be a tensor, got None"),
    ((q, k, 3.0), {}, TypeError, "value must be a tensor, got float"),
    ((q.long(), k, v), {}, TypeError, "query must be floating point, got torch.int64"),
    ((q, k.double(), v), {}, TypeError, "query and key must share a dtype, got torch.float32 and torch.float64"),
    ((q, k, v.half()), {}, TypeError, "query and value must share a dtype, got torch.float32 and torch.float16"),
    ((q, k, v.to("meta")), {}, ValueError, "query and value must be on one device, got cpu and meta"),
    ((q[0, 0], k, v), {}, ValueError, "query must have at least 2 axes (..., length, features), got shape (4,)"),
    ((q[..., :3], k, v), {}, ValueError, "query and key must share d_head, got 3 and 4"),
    ((q, k, v[:, :6]), {}, ValueError, "key and value must share k_len, got 7 and 6"),
    (
        (q, k, torch.zeros(3, 7, 6)),
        {},
        ValueError,
        "query and key and value must have leading axes that broadcast, got (2,) and (2,) and (3,)",
    ),
    ((q, k, v), {"key_mask": bool_mask.tolist()}, TypeError, "key_mask must be a tensor of bool, got list"),
    ((q, k, v), {"key_mask": bool_mask.float()}, TypeError, FLOAT_MASK_ERROR),
    (
        (q, k, v),
        {"key_mask": bool_mask.to("meta")},
        ValueError,
        "query and key_mask must be on one device, got cpu and meta",
    ),
    ((q, k, v), {"key_mask": bool_mask[:6]}, ValueError, MASK_SHAPE_ERROR.format("key_mask", (6,), "-1 (k_len)", 7, 6)),
    ((q, k, v), {"key_mask": bool_mask.expand(5, 7)}, ValueError, PAIRS_ERROR.format("key_mask", (5, 7))),
    ((q, k, v), {"key_mask": bool_mask.expand(2, 5, 7)}, ValueError, PAIRS_ERROR.format("key_mask", (2, 5, 7))),
    (
        (q, k, v),
        {"key_mask": bool_mask.expand(3, 1, 7)},
        ValueError,
        MASK_SHAPE_ERROR.format("key_mask", (3, 1, 7), "-3 (leading axis)", 2, 3),
    ),
    ((q, k, v), {"feature_map": 3}, TypeError, "feature_map must be a function of a tensor, got int"),
    ((q, k, v), {"feature_map": "elu"}, TypeError, "feature_map must be a function of a tensor, got str"),
    ((q, k, v), {"feature_map": None}, TypeError, "feature_map must be a function of a tensor, got None"),
    (
        (q, k, v),
        {"feature_map": cosine},
        ValueError,
        "feature_map cosine must not return negative values, got -0.5 for query",
    ),
    (
        (q, k - 1, v),
        {"feature_map": nn.Identity()},
        ValueError,
        "feature_map Identity must not return only zeros, got only zeros for query",
    ),
    (
        (q + 1, k - 1, v),
        {"feature_map": nn.Identity()},
        ValueError,
        "feature_map Identity must not return negative values, got -1 for key",
    ),
    (
        (q, k, v),
        {"feature_map": all_zeros},
        ValueError,
        "feature_map all_zeros must not return only zeros, got only zeros for query",
    ),
    (
        (q, k, v),
        {"feature_map": sum_of_all},
        ValueError,
        "feature_map sum_of_all must keep all axes of query (2, 5, 4) but the last, got ()",
    ),
    (
        (q, k, v),
        {"feature_map": transposed},
        ValueError,
        "feature_map transposed must keep all axes of query (2, 5, 4) but the last, got (2, 4, 5)",
    ),
    (
        (q, k, v),
        {"feature_map": return_shape},
        ValueError,
        "feature_map return_shape must keep all axes of query (2, 5, 4) but the last, got Size",
    ),
    (
        (q, k, v),
        {"feature_map": length_dependent},
        ValueError,
        "feature_map length_dependent must return as many features for query as for key, got 5 and 7",
    ),
]
WRONG_CAUSAL_CALLS = [
    ((q, k, v), {}, ValueError, "query and key must share seq, got 5 and 7"),
    ((k, k, v), {"chunk_size": 0}, ValueError, "chunk_size must be at least 1, got 0"),
    ((k, k, v), {"chunk_size": -3}, ValueError, "chunk_size must be at least 1, got -3"),
    ((k, k, v), {"chunk_size": 2.0}, TypeError, "chunk_size must be an integer, got 2.0"),
    ((k, k, v), {"chunk_size": True}, TypeError, "chunk_size must be an integer, got True"),
    ((k, k, v), {"key_mask": bool_mask[:1].expand(7, 7)}, ValueError, PAIRS_ERROR.format("key_mask", (7, 7))),
    ((k, k, v), {"feature_map": all_zeros}, ValueError, WRONG_CALLS[-5][3]),
]

S, z = torch.zeros(2, 3, 4, 6), torch.zeros(2, 3, 4)
token = torch.zeros(2, 3, 4), torch.zeros(2, 3, 4), torch.zeros(2, 3, 6)
WRONG_STEPS = [
    ((S, z), (token[0], token[1], [1.0]), TypeError, "value must be a tensor, got list"),
    (
        (S, z),
        (token[0], torch.tensor(1.0), token[2]),
        ValueError,
        "key must have shape (..., features), one token of each sequence, got shape ()",
    ),
    ((S, z), (token[0][..., :3], *token[1:]), ValueError, "query and key must share d_head, got 3 and 4"),
    (
        (S, z),
        (token[0].double(), *token[1:]),
        TypeError,
        "query and key must share a dtype, got torch.float64 and torch.float32",
    ),
    (None, token, TypeError, "state must be a pair of tensors (S, z), as tl.initial_state returns it, got None"),
    (S, token, TypeError, "state must be a pair of tensors (S, z), got Tensor"),
    ((S,), token, TypeError, "state must be a pair of tensors (S, z), got tuple"),
    ((S, None), token, TypeError, "state must be a pair of tensors (S, z), got tuple"),
    ((S[..., :5], z), token, ValueError, "state's S must have shape (2, 3, 4, 6), got (2, 3, 4, 5)"),
    ((S.mT, z), token, ValueError, "state's S must have shape (2, 3, 4, 6), got (2, 3, 6, 4)"),
    ((S[:1], z), token, ValueError, "state's S must have shape (2, 3, 4, 6), got (1, 3, 4, 6)"),
    ((S, z[..., None]), token, ValueError, "state's z must have shape (2, 3, 4), got (2, 3, 4, 1)"),
    ((S, z[:, :2]), token, ValueError, "state's z must have shape (2, 3, 4), got (2, 2, 4)"),
    ((S.double(), z), token, TypeError, "state's S must be torch.float32, got torch.float64"),
    ((S, z.half()), token, TypeError, "state's z must be torch.float32, got torch.float16"),
    ((S, z.to("meta")), token, ValueError, "state's z must be on the device of key, cpu, got meta"),
]

layer, x = tl.LinearAttention(4, 2), torch.zeros(2, 5, 4)
OTHER_WRONG_CALLS = [
    (lambda: tl.elu_feature_map([0.0]), TypeError, "x must be a tensor, got list"),
    (lambda: tl.elu_feature_map(torch.arange(3)), TypeError, "x must be floating point, got torch.int64"),
    (lambda: tl.initial_state(-1, 1, 1, 1), ValueError, "batch must be at least 0, got -1"),
    (lambda: tl.initial_state(1, -1, 1, 1), ValueError, "heads must be at least 1, got -1"),
    (lambda: tl.initial_state(1, 1, 1.5, 1), TypeError, "d_head must be an integer, got 1.5"),
    (lambda: tl.initial_state(1, 1, 1, "4"), TypeError, "d_value must be an integer, got '4'"),
    (lambda: tl.LinearAttention(4, 3), ValueError, "n_heads must divide d_model, got n_heads 3 and d_model 4"),
    (lambda: tl.LinearAttention(4, 2, chunk_size=0), ValueError, "chunk_size must be at least 1, got 0"),
    (
        lambda: tl.LinearAttention(4, 2, dropout=0.1),
        ValueError,
        "dropout must be 0: linear attention has no weights to drop, got 0.1",
    ),
    (
        lambda: tl.LinearAttention(4, 2, dropout=2),
        ValueError,
        "dropout must be a probability from 0 to 1, got 2",
    ),
    (
        lambda: layer(x[..., :3]),
        ValueError,
        "query must have shape (..., q_len, d_model) with d_model 4, got (2, 5, 3)",
    ),
    (lambda: layer(x, x[:, :3], is_causal=True), ValueError, "query and key must share seq, got 5 and 3"),
    (lambda: layer(x, mask=tl.causal_mask(5)), ValueError, PAIRS_ERROR.format("mask", (5, 5))),
    (lambda: layer(x, mask=tl.causal_mask(5), is_causal=True), ValueError, PAIRS_ERROR.format("mask", (5, 5))),
    (
        lambda: layer(x, mask=tl.padding_mask([3, 4, 5], 5)),
        ValueError,
        "mask must broadcast to the scores (2, 2, 1, 5), got shape (3, 1, 1, 5): its axis -4 (batch) must be 1 or 2, "
        "not 3",
    ),
    (
        lambda: tl.LinearAttention(4, 2, feature_map=cosine)(x),
        ValueError,
        "feature_map cosine must not return negative values, got -0.5 for query",
    ),
    (
        lambda: tl.LinearAttention(4, 2, feature_map=cosine).weights(x),
        ValueError,
        "feature_map cosine must not return negative values, got -0.5 for query",
    ),
]


@pytest.mark.parametrize(("arguments", "options", "error", "text"), WRONG_CALLS)
def test_bidirectional_errors_name_the_argument(arguments, options, error, text):
    raises(lambda: tl.bidirectional_linear_attention(*arguments, **options), error, text)


@pytest.mark.parametrize(("arguments", "options", "error", "text"), WRONG_CAUSAL_CALLS)
def test_causal_errors_name_the_argument(arguments, options, error, text):
    if options.get("feature_map") is all_zeros:
        text = text.replace("(2, 5, 4)", "(2, 7, 4)")
    raises(lambda: tl.causal_linear_attention(*arguments, **options), error, text)


@pytest.mark.parametrize(("state", "token", "error", "text"), WRONG_STEPS)
def test_step_errors_name_the_argument(state, token, error, text):
    raises(lambda: tl.linear_attention_step(state, *token), error, text)


@pytest.mark.parametrize(("call", "error", "text"), OTHER_WRONG_CALLS)
def test_other_errors_name_the_argument(call, error, text):
    raises(call, error, text)
