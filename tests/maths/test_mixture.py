"""A mixture of experts agrees with float64 loops over tokens and experts, and with the transformers library."""

import pytest
import torch

import transformer_lab as tl
from agreement import (
    DEVICE,
    DTYPES,
    assert_close,
    assert_gradients_close,
    gradients,
    load_transformers,
    normal,
    prepare,
    raises,
)

D_MODEL, D_FF, N_EXPERTS, N_ACTIVE = 6, 5, 7, 3


def build_mixture(dtype=torch.float32, n_experts=N_EXPERTS, n_active=N_ACTIVE, **options):
    torch.manual_seed(0)
    return prepare(tl.MixtureOfExperts(D_MODEL, D_FF, n_experts, n_active, **options), dtype)


def token_vectors(*lead, dtype=torch.float32):
    return normal(*lead, D_MODEL, seed=1, dtype=dtype)


def in_float64(x):
    return x.cpu().double()


def linear(x, layer):
    out = in_float64(layer.weight) @ x
    return out if layer.bias is None else out + in_float64(layer.bias)


def apply_expert(x, layer):
    """Compute a feed-forward layer for one token, in float64."""

    def activate(z):
        return z / (1 + (-z).exp()) if layer.activation == "silu" else z * (z > 0)

    features = linear(x, layer.linear1)
    features = activate(features) if layer.gate is None else activate(linear(x, layer.gate)) * features
    return linear(features, layer.linear2)


def mix_by_loops(module, x):
    """Compute the output of each token separately, with its experts one after the other, in float64."""
    outputs = []
    for token in in_float64(x).reshape(-1, D_MODEL):
        exponentials = linear(token, module.router).exp()
        probabilities = [power / exponentials.sum() for power in exponentials]
        best = sorted(range(len(probabilities)), key=lambda e: -probabilities[e])[: module.n_active]
        probability_sum = sum(probabilities[e] for e in best) if module.renormalize else 1.0
        output = sum(probabilities[e] / probability_sum * apply_expert(token, module.experts[e]) for e in best)
        outputs.append(output if module.shared is None else output + apply_expert(token, module.shared))
    return torch.stack(outputs).reshape(x.shape)


OPTIONS = [
    {},
    {"n_active": 1},
    {"n_active": N_EXPERTS, "renormalize": False},
    {"n_experts": 1, "n_active": 1, "n_shared": 1},
    {"n_shared": 2, "renormalize": False},
    {"activation": "relu", "gated": False, "bias": True, "n_shared": 1},
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("lead", [(4,), (2, 5), (2, 1, 3)])
def test_mixture_matches_loops(lead, options, dtype):
    module, x = build_mixture(dtype, **options), token_vectors(*lead, dtype=dtype)
    actual, expected = module(x), mix_by_loops(module, x)
    assert actual.dtype == dtype and actual.device == x.device and x._version == 0
    assert_close(actual, expected)
    inputs = (x, *module.parameters())
    assert_gradients_close(actual, expected, inputs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("renormalize", [True, False])
def test_route_returns_the_most_probable_experts(renormalize, dtype):
    module, x = build_mixture(dtype, renormalize=renormalize), token_vectors(2, 5, dtype=dtype)
    indices, weights = module.route(x)
    assert indices.shape == weights.shape == (2, 5, N_ACTIVE)
    assert indices.dtype == torch.int64 and weights.dtype == dtype
    probabilities = torch.softmax(in_float64(x) @ in_float64(module.router.weight).T, -1)
    for position in [(i, j) for i in range(2) for j in range(5)]:
        best = sorted(range(N_EXPERTS), key=lambda e: -probabilities[position][e].item())[:N_ACTIVE]
        assert indices[position].tolist() == best
        chosen = probabilities[position][best]
        assert_close(weights[position], chosen / chosen.sum() if renormalize else chosen)


def test_weights_are_the_softmax_over_the_chosen_experts():
    module, x = build_mixture(), token_vectors(2, 5)
    scores, indices = module.router(x).topk(N_ACTIVE, -1)
    actual = module.route(x)
    assert torch.equal(actual[0], indices)
    assert_close(actual[1], torch.softmax(scores, -1))


def test_large_logits_stay_finite():
    module, x = build_mixture(), token_vectors(2, 5) * 1e4
    _, weights = module.route(x)
    assert weights.isfinite().all() and module(x).isfinite().all()
    assert_close(weights.sum(-1), torch.ones(2, 5))


def test_tokens_do_not_depend_on_each_other():
    module, x = build_mixture(n_shared=1), token_vectors(3, 5)
    actual = module(x)
    for i in range(3):
        for j in range(5):
            assert_close(module(x[i, j : j + 1]), actual[i, j : j + 1])
    assert_close(module(x.mT.contiguous().mT), actual)


def test_equal_experts_match_one_feed_forward_layer():
    module, x = build_mixture(bias=True), token_vectors(2, 5)
    for expert in module.experts:
        expert.load_state_dict(module.experts[0].state_dict())
    assert_close(module(x), module.experts[0](x))


def test_shared_experts_match_a_sum_of_experts():
    module, x = build_mixture(n_shared=3), token_vectors(2, 5)
    expected = module(x) - module.shared(x)
    for part in range(3):
        shared_expert = tl.FeedForward(D_MODEL, D_FF, "silu", bias=False, gated=True).to(DEVICE)
        rows = slice(part * D_FF, (part + 1) * D_FF)
        state = {f"{name}.weight": getattr(module.shared, name).weight[rows] for name in ("linear1", "gate")}
        shared_expert.load_state_dict(state | {"linear2.weight": module.shared.linear2.weight[:, rows]})
        expected = expected + shared_expert(x)
    assert_close(module(x), expected)


def test_experts_compute_only_what_is_routed_to_them():
    module, x = build_mixture(n_experts=20, n_active=2), token_vectors(2, 3)
    tokens_per_expert = {}
    for e, expert in enumerate(module.experts):
        expert.register_forward_hook(
            lambda _, inputs, __, e=e: tokens_per_expert.update({e: tokens_per_expert.get(e, 0) + len(inputs[0])})
        )
    output, (indices, _) = module(x), module.route(x)
    assert tokens_per_expert == {e: n for e, n in enumerate(indices.flatten().bincount(minlength=20).tolist()) if n}
    assert sum(tokens_per_expert.values()) == 2 * 3 * 2
    grads = gradients(output, [expert.linear1.weight for expert in module.experts])
    assert [e for e, grad in enumerate(grads) if grad is not None] == sorted(tokens_per_expert)


@pytest.mark.parametrize("n_shared", [0, 1])
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (1, 1)])
def test_empty_and_single_token_inputs_keep_their_shape(shape, n_shared):
    module, x = build_mixture(n_shared=n_shared), token_vectors(*shape)
    indices, weights = module.route(x)
    assert indices.shape == weights.shape == (*shape, N_ACTIVE)
    output = module(x)
    assert output.shape == x.shape
    output.sum().backward()
    assert x.grad.shape == x.shape


@pytest.mark.parametrize("n_shared", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_agrees_with_float32(dtype, n_shared):
    module, x = build_mixture(n_shared=n_shared), token_vectors(2, 5)
    expected = module(x)
    with torch.autocast(DEVICE.type, dtype=dtype):
        assert_close(module(x).to(dtype), expected)
        assert_close(module(x.to(dtype)).to(dtype), expected)
        other_dtype = torch.bfloat16 if dtype == torch.float16 else torch.float16
        assert_close(module(x.to(other_dtype)).bfloat16(), expected)


def test_mixture_replaces_the_feed_forward_layer_of_a_model():
    torch.manual_seed(0)
    options = {"norm_first": True, "norm": "rms", "positions": "rotary", "bias": False}
    model = tl.LanguageModel(11, 12, 3, 2, 20, **options).to(DEVICE).eval()
    for layer in model.decoder.layers:
        layer.feed_forward = tl.MixtureOfExperts(12, 8, 6, 2, n_shared=1).to(DEVICE)
    prompt = torch.tensor([[3, 1, 4], [1, 5, 9]], device=DEVICE)
    generated = model.generate(prompt, 6)
    assert torch.equal(generated, model.generate(prompt, 6, use_cache=False))
    model(generated).sum().backward()
    assert all(layer.feed_forward.router.weight.grad.abs().sum() > 0 for layer in model.decoder.layers)


def test_parameter_counts_and_names():
    module = tl.MixtureOfExperts(6, 5, 7, 3, n_shared=2)
    assert tl.count_parameters(module) == 6 * 7 + (7 + 2) * 3 * 6 * 5
    assert [name for name, _ in module.named_parameters() if "bias" in name] == []
    assert [name for name, _ in module.named_children()] == ["router", "experts", "shared"]
    plain = tl.MixtureOfExperts(6, 5, 7, 3, gated=False, bias=True)
    assert tl.count_parameters(plain) == 6 * 7 + 7 * (2 * 6 * 5 + 5 + 6)
    assert "(\n  n_active=3, renormalize=True\n" in repr(module)


# Agreement with the transformers library.


@pytest.mark.parametrize("family_and_options", ["Mixtral", "Qwen3Moe", "Qwen3Moe, not renormalized"])
def test_mixture_matches_transformers(family_and_options):
    family, _, not_renormalized = family_and_options.partition(", ")
    transformers = load_transformers()
    if family == "Mixtral":
        sizes = {"intermediate_size": D_FF, "num_local_experts": N_EXPERTS}
        modeling = transformers.models.mixtral.modeling_mixtral
    else:
        sizes = {"moe_intermediate_size": D_FF, "num_experts": N_EXPERTS, "norm_topk_prob": not not_renormalized}
        modeling = transformers.models.qwen3_moe.modeling_qwen3_moe
    config = getattr(transformers, f"{family}Config")(hidden_size=D_MODEL, num_experts_per_tok=N_ACTIVE, **sizes)
    config._experts_implementation = "eager"
    reference, module = (
        getattr(modeling, f"{family}SparseMoeBlock")(config).eval(),
        build_mixture(renormalize=not not_renormalized),
    )
    with torch.no_grad():
        reference.gate.weight.copy_(module.router.weight)
        for e, expert in enumerate(module.experts):
            reference.experts.gate_up_proj[e].copy_(torch.cat((expert.gate.weight, expert.linear1.weight)))
            reference.experts.down_proj[e].copy_(expert.linear2.weight)
    x = token_vectors(2, 40)
    actual, expected = module(x), reference.to(DEVICE)(x)
    assert_close(actual, expected)
    assert_gradients_close(actual, expected, (x,))


# The exact text of every error.


def mixture_with(**options):
    return tl.MixtureOfExperts(**{"d_model": 8, "d_ff": 4, "n_experts": 4, "n_active": 2} | options)


x = torch.zeros(3, 5, 8)
WRONG_CALLS = [
    (
        lambda: mixture_with(n_active=5),
        ValueError,
        "n_active must be at most n_experts, got n_active 5 and n_experts 4",
    ),
    (lambda: mixture_with(n_active=0), ValueError, "n_active must be at least 1, got 0"),
    (lambda: mixture_with(n_active=1.0), TypeError, "n_active must be an integer, got 1.0"),
    (lambda: mixture_with(n_experts=0), ValueError, "n_experts must be at least 1, got 0"),
    (lambda: mixture_with(n_experts=None), TypeError, "n_experts must be an integer, got None"),
    (lambda: mixture_with(n_shared=-1), ValueError, "n_shared must be at least 0, got -1"),
    (lambda: mixture_with(n_shared=True), TypeError, "n_shared must be an integer, got True"),
    (lambda: mixture_with(d_model=0), ValueError, "d_model must be at least 1, got 0"),
    (lambda: mixture_with(d_ff=None), TypeError, "d_ff must be an integer, got None"),
    (
        lambda: mixture_with(activation="tanh"),
        ValueError,
        "activation must be one of relu, gelu, gelu_tanh, silu, got 'tanh'",
    ),
    (lambda: mixture_with(renormalize=1), TypeError, "renormalize must be True or False, got 1"),
    (
        lambda: mixture_with()(x[..., :6]),
        ValueError,
        "x must have shape (..., seq, d_model) with d_model 8, got (3, 5, 6)",
    ),
    (lambda: mixture_with()(x[0, 0]), ValueError, "x must have shape (..., seq, d_model) with d_model 8, got (8,)"),
    (lambda: mixture_with().route([1.0]), TypeError, "x must be a tensor, got list"),
    (lambda: mixture_with()(x.long()), TypeError, "x must be floating point, got torch.int64"),
    (
        lambda: mixture_with()(x.double()),
        TypeError,
        "x must have the dtype of the module's weights, torch.float32, got torch.float64",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG_CALLS)
def test_mixture_errors_name_the_argument(call, error, text):
    raises(call, error, text)
