"""The norms agree with PyTorch's norms, and with float64 loops over each group of entries."""

import math
from itertools import product

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
    few_examples,
    needs_float64,
    normal,
    raises,
)

SHAPES = [(4, 6), (4, 6, 5), (4, 6, 3, 2), (2, 6, 3, 1, 2)]


def standardize_by_loop(x, dims, eps):
    """Standardize every group of entries whose indices differ only along ``dims``, group by group, in float64."""
    x = x.cpu().double()
    dims = sorted(dim % x.ndim for dim in dims)
    kept_dims = [dim for dim in range(x.ndim) if dim not in dims]
    groups = x.permute(*kept_dims, *dims).reshape(math.prod(x.shape[dim] for dim in kept_dims), -1)
    result = torch.empty_like(groups)
    for n, group in enumerate(groups.tolist()):
        mean = math.fsum(group) / len(group)
        variance = math.fsum((entry - mean) ** 2 for entry in group) / len(group)
        for i, entry in enumerate(group):
            result[n, i] = (entry - mean) / math.sqrt(variance + eps)
    result = result.reshape([x.shape[dim] for dim in (*kept_dims, *dims)])
    return result.permute([(*kept_dims, *dims).index(dim) for dim in range(x.ndim)])


@st.composite
def standardize_arguments(draw):
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    dims = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    dims = [dim - draw(st.sampled_from((0, len(shape)))) for dim in dims]
    return shape, dims, draw(st.sampled_from(DTYPES)), draw(st.booleans()), draw(st.sampled_from((1e-5, 1e-3, 1)))


@few_examples
@given(arguments=standardize_arguments())
def test_standardize_matches_a_loop_over_any_axes(arguments):
    shape, dims, dtype, contiguous, eps = arguments
    x = normal(*shape, seed=len(shape), dtype=dtype, contiguous=contiguous)
    before = x.detach().clone()
    actual = tl.standardize(x, dims, eps)
    assert actual.dtype == dtype and actual.shape == x.shape and actual.device == x.device
    assert torch.equal(x, before) and x._version == 0
    if x.numel():
        assert_close(actual, standardize_by_loop(x, dims, eps))
        assert torch.equal(actual, tl.standardize(x, tuple(dims), eps))
        if len(dims) == 1:
            assert torch.equal(actual, tl.standardize(x, dims[0], eps))


def test_standardize_has_mean_0_and_variance_1():
    x = normal(3, 4, 5, seed=0, dtype=FULL_PRECISION[-1]) * 7 + 3
    actual = tl.standardize(x, (0, 2), eps=0)
    assert_close(actual.mean((0, 2)), torch.zeros(4))
    assert_close(actual.var((0, 2), unbiased=False), torch.ones(4))
    # Shifting and scaling a group does not change the result.
    assert_close(tl.standardize(x * 5 - 2, (0, 2), eps=0), actual)


@needs_float64
@pytest.mark.parametrize("dims", [-1, 0, (0, 1)])
def test_standardize_has_the_right_gradient(dims):
    x = normal(3, 4, seed=0, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: tl.standardize(x, dims), (x,))


def test_equal_entries_become_zero_with_eps_and_nan_without():
    x = torch.full((2, 3), 5.0, device=DEVICE, requires_grad=True)
    for actual in (tl.standardize(x, -1), tl.layer_norm(x)):
        assert (actual == 0).all()
        (grad,) = torch.autograd.grad(actual.sum(), x)
        assert grad.isfinite().all()
    assert tl.standardize(x, -1, eps=0).isnan().all()
    assert (tl.standardize(torch.ones(3, 1, device=DEVICE), -1) == 0).all()  # one number is equal to its mean


@pytest.mark.parametrize("function", [lambda x: tl.standardize(x, -1), tl.layer_norm])
def test_large_means_lose_only_input_rounding(function):
    """``E[x²] − E[x]²`` would lose all digits of a variance of 1 if the mean were 10,000."""
    for mean in (1e3, 1e4, 1e5):
        x = normal(20, 512, seed=0).detach() + mean
        error = (function(x).cpu().double() - standardize_by_loop(x, [-1], 1e-5)).abs().max()
        assert error < 2 * torch.finfo(torch.float32).eps * mean
    naive = (x - x.mean(-1, keepdim=True)) / (x.square().mean(-1) - x.mean(-1).square()).abs().sqrt()[:, None]
    assert not (naive.cpu().double() - standardize_by_loop(x, [-1], 1e-5)).abs().max() < 0.5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(dtype):
    """Statistics must not be computed in half precision, in which sums lose digits and overflow."""
    x = (normal(4, 6, 50, seed=0) * 3 + 20).to(dtype).detach()
    large = (normal(4, 6, 50, seed=1) * 1000).to(dtype).detach()  # the square of these numbers overflows in float16
    half_ulp, smallest_subnormal = (
        torch.finfo(dtype).eps / 2,
        torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps,
    )
    for values in (x, large):
        in_float64 = values.cpu().double()
        rms = in_float64 / (in_float64.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        # Before version 2.6, PyTorch's rms_norm computed the mean in half precision.
        rms_norm = [(tl.rms_norm(values), rms)] if torch.__version__ >= "2.6" else []
        for actual, exact in (
            *rms_norm,
            (tl.standardize(values, -1), standardize_by_loop(values, [-1], 1e-5)),
            (tl.layer_norm(values), standardize_by_loop(values, [-1], 1e-5)),
            (tl.batch_norm(values, training=True), standardize_by_loop(values, [0, 2], 1e-5)),
            (tl.instance_norm(values), standardize_by_loop(values, [2], 1e-5)),
            (tl.group_norm(values, 1), standardize_by_loop(values, [1, 2], 1e-5)),
        ):
            assert actual.dtype == dtype
            # The intermediate float32 results are rounded as well, which is visible only near 0.
            torch.testing.assert_close(
                actual.cpu().double(), exact, rtol=1.05 * half_ulp, atol=smallest_subnormal + 3e-6
            )


# Agreement with PyTorch's functions.


def draw_parameters(channels, dtype, given_parameters):
    """Return (weight, bias), with None in place of a parameter that is not given."""
    weight, bias = normal(channels, seed=50, dtype=dtype), normal(channels, seed=51, dtype=dtype)
    return {"both": (weight, bias), "weight": (weight, None), "bias": (None, bias), "none": (None, None)}[
        given_parameters
    ]


def assert_close_with_gradients(actual, expected, *inputs):
    assert actual.dtype == expected.dtype
    assert_close(actual, expected)
    assert_gradients_close(actual, expected, [x for x in inputs if x is not None])


GIVEN_PARAMETERS = ["both", "weight", "bias", "none"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("given_parameters", GIVEN_PARAMETERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_norms_agree_with_pytorch(shape, given_parameters, dtype):
    x = normal(*shape, seed=1, dtype=dtype, contiguous=given_parameters != "bias")
    channels = draw_parameters(6, dtype, given_parameters)
    features = draw_parameters(shape[-1], dtype, given_parameters)
    for eps in (1e-5, 0.1):
        assert_close_with_gradients(
            tl.layer_norm(x, *features, eps), F.layer_norm(x, shape[-1:], *features, eps), x, *features
        )
        if given_parameters in ("weight", "none"):
            weight = features[0]
            assert_close_with_gradients(tl.rms_norm(x, weight, eps), F.rms_norm(x, shape[-1:], weight, eps), x, weight)
        # With a bias but without a weight, PyTorch's group norm has no gradient on any device, and its other norms have
        # none on CUDA.
        their_channels = (x.new_ones(6), channels[1]) if given_parameters == "bias" else channels
        # groups of one entry are left out: their results must be 0, but PyTorch's have rounding errors
        for n_groups in (1, 2, 6)[: len(shape)]:
            actual = tl.group_norm(x, n_groups, *channels, eps)
            assert_close_with_gradients(actual, F.group_norm(x, n_groups, *their_channels, eps), x, *channels)
        if len(shape) > 2:
            expected = F.instance_norm(x, weight=their_channels[0], bias=their_channels[1], eps=eps)
            assert_close_with_gradients(tl.instance_norm(x, *channels, eps), expected, x, *channels)
        for training in (True, False):
            running, their_running = ([normal(6, seed=60).detach(), normal(6, seed=61).detach() ** 2] for _ in range(2))
            running, their_running = ([r.to(dtype) for r in pair] for pair in (running, their_running))
            initial_running = [r.clone() for r in running]
            actual = tl.batch_norm(x, *running, *channels, training=training, eps=eps)
            expected = F.batch_norm(x, *their_running, *their_channels, training=training, eps=eps)
            assert_close_with_gradients(actual, expected, x, *channels)
            for our_running, torch_running, initial in zip(running, their_running, initial_running):
                assert_close(our_running, torch_running)
                assert torch.equal(our_running, initial) != training
        assert_close_with_gradients(
            tl.batch_norm(x, None, None, *channels, training=True, eps=eps),
            F.batch_norm(x, None, None, *their_channels, training=True, eps=eps),
            x,
            *channels,
        )
    assert x._version == 0


@pytest.mark.parametrize("momentum", [0, 0.1, 0.5, 1.0])
def test_running_statistics_follow_many_batches(momentum):
    our_statistics, torch_statistics = ([torch.zeros(3, device=DEVICE), torch.ones(3, device=DEVICE)] for _ in range(2))
    for batch in range(5):
        x = normal(4, 3, 2, seed=batch).detach() * (batch + 1) + batch
        tl.batch_norm(x, *our_statistics, training=True, momentum=momentum)
        F.batch_norm(x, *torch_statistics, training=True, momentum=momentum)
        if momentum == 1:
            assert_close(our_statistics[0], x.mean((0, 2)))
            assert_close(our_statistics[1], x.var((0, 2), unbiased=True))
    for our_running, torch_running in zip(our_statistics, torch_statistics):
        assert_close(our_running, torch_running)
    assert_close(tl.batch_norm(x, *our_statistics), F.batch_norm(x, *torch_statistics))
    assert not our_statistics[0].requires_grad


def test_running_statistics_may_be_wider_than_the_batch():
    x = normal(4, 3, 2, seed=0).detach().half()
    mean, variance = torch.zeros(3, device=DEVICE), torch.ones(3, device=DEVICE)
    assert tl.batch_norm(x, mean, variance, training=True).dtype == torch.float16
    assert_close(mean, 0.1 * x.cpu().double().mean((0, 2)))
    assert_close(variance, 0.9 + 0.1 * x.cpu().double().var((0, 2)))


def test_norms_differ_in_their_axes():
    x = normal(4, 6, 5, seed=1)
    assert_close(tl.batch_norm(x), tl.standardize(x, (0, 2)))
    assert_close(tl.batch_norm(x, training=True), tl.standardize(x, (0, 2)))
    assert_close(tl.layer_norm(x), tl.standardize(x, -1))
    assert_close(tl.instance_norm(x), tl.standardize(x, 2))
    assert_close(tl.group_norm(x, 1), tl.standardize(x, (1, 2)))
    assert_close(tl.group_norm(x, 6), tl.instance_norm(x))
    weight = normal(6, 5, seed=2)
    assert_close(tl.layer_norm(x, weight), tl.standardize(x, (1, 2)) * weight)  # a weight with two axes
    assert_close(tl.layer_norm(x, weight), F.layer_norm(x, (6, 5), weight))
    assert_close(tl.rms_norm(x, weight), F.rms_norm(x, (6, 5), weight, 1e-6))


@pytest.mark.parametrize("dtype", FULL_PRECISION)
@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 1, 3)])
def test_layer_norm_matches_its_formula_for_every_token(lead, dtype):
    x, weight, bias = normal(*lead, 8, seed=1, dtype=dtype), *draw_parameters(8, dtype, "both")
    assert_close_with_gradients(tl.layer_norm(x, weight, bias), tl.standardize(x, -1) * weight + bias, x, weight, bias)
    rms = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight
    assert_close_with_gradients(tl.rms_norm(x, weight), rms, x, weight)
    assert (tl.layer_norm(x, weight, bias).mean() - tl.rms_norm(x, weight).mean()).abs() > 1e-3


def test_only_batch_norm_depends_on_other_examples():
    x = normal(4, 6, 5, seed=1).detach()
    changed = x.clone()
    changed[0] = 100.0
    output_changed = {
        "batch": not torch.allclose(tl.batch_norm(changed)[1:], tl.batch_norm(x)[1:]),
        "layer": not torch.allclose(tl.layer_norm(changed)[1:], tl.layer_norm(x)[1:]),
        "instance": not torch.allclose(tl.instance_norm(changed)[1:], tl.instance_norm(x)[1:]),
        "group": not torch.allclose(tl.group_norm(changed, 2)[1:], tl.group_norm(x, 2)[1:]),
    }
    assert output_changed == {"batch": True, "layer": False, "instance": False, "group": False}


@pytest.mark.parametrize("shape", [(0, 4), (0, 4, 3), (2, 4, 0), (2, 0), (2, 0, 3)])
def test_empty_input_keeps_its_shape(shape):
    x = torch.zeros(shape, device=DEVICE, requires_grad=True)
    mean, variance = torch.ones(shape[1], device=DEVICE), torch.full((shape[1],), 2.0, device=DEVICE)
    weight = torch.ones(shape[1], device=DEVICE)
    outputs = [
        tl.standardize(x, -1),
        tl.layer_norm(x),
        tl.rms_norm(x),
        tl.group_norm(x, 2, weight),
        tl.batch_norm(x, mean, variance, weight, training=True),
        tl.batch_norm(x, mean, variance),
        tl.batch_norm(x, training=True),
    ]
    outputs += [tl.instance_norm(x, weight)] if len(shape) > 2 else []
    for output in outputs:
        assert output.shape == shape
        output.sum().backward()
    assert (mean == 1).all() and (variance == 2).all()  # empty input does not change the running statistics


def test_groups_of_one_entry_need_no_special_case():
    x = normal(1, 4, 1, seed=0)
    assert (tl.group_norm(x, 4) == 0).all() and (tl.layer_norm(x) == 0).all()
    assert_close(tl.batch_norm(x, torch.zeros(4, device=DEVICE), torch.ones(4, device=DEVICE), eps=0), x)
    assert_close(tl.rms_norm(x, eps=0), x.sign())


# Modules.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm_module_matches_pytorch(dtype, bias):
    torch_module = nn.LayerNorm(6, eps=1e-3, bias=bias).to(DEVICE, dtype)
    with torch.no_grad():
        for parameter in torch_module.parameters():
            parameter.copy_(normal(6, seed=3))
    state = torch.get_rng_state()
    our_module = tl.LayerNorm.from_torch(torch_module)
    assert torch.equal(torch.get_rng_state(), state)
    assert our_module.eps == 1e-3 and (our_module.bias is None) != bias
    x = normal(2, 3, 6, seed=4, dtype=dtype)
    assert_close_with_gradients(our_module(x), torch_module(x), x)
    for our_parameter, torch_parameter in zip(our_module.parameters(), torch_module.parameters(), strict=True):
        assert our_parameter.data_ptr() != torch_parameter.data_ptr() and our_parameter.requires_grad
    assert not tl.LayerNorm.from_torch(torch_module.eval()).training


def test_norm_modules_initialize_as_in_pytorch():
    for our_module, torch_module in (
        (tl.LayerNorm(6), nn.LayerNorm(6)),
        (tl.LayerNorm(6, 0.1, bias=False), nn.LayerNorm(6, 0.1, bias=False)),
        (tl.RMSNorm(6), nn.RMSNorm(6, eps=1e-6)),
        (tl.RMSNorm(6, 0.1), nn.RMSNorm(6, eps=0.1)),
    ):
        state, torch_state = our_module.state_dict(), torch_module.state_dict()
        assert state.keys() == torch_state.keys()
        assert all(torch.equal(state[name], torch_state[name]) for name in state)
        x = normal(2, 3, 6, seed=4).cpu()
        assert_close_with_gradients(our_module(x), torch_module(x), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rms_norm_accepts_float32_weights_beside_half_precision(dtype):
    x, weight = normal(2, 5, 6, seed=1, dtype=dtype), normal(6, seed=2)
    actual = tl.rms_norm(x, weight)
    assert actual.dtype == dtype  # layer norm returns this dtype, too
    assert_close(actual, tl.rms_norm(x.float(), weight))


def test_rms_norm_module_scales_by_its_weight():
    norm = tl.RMSNorm(6, eps=0.1).to(DEVICE)
    with torch.no_grad():
        norm.weight.copy_(normal(6, seed=5))
    x = normal(2, 6, seed=4)
    assert_close_with_gradients(norm(x), F.rms_norm(x, (6,), norm.weight, 0.1), x, norm.weight)


def test_instance_norm_refuses_one_value_per_channel():
    x = normal(2, 6, 1, seed=1)
    text = "x must have more than one value per channel of an example, got shape (2, 6, 1)"
    raises(lambda: tl.instance_norm(x), ValueError, text)
    assert tl.instance_norm(x[:0]).shape == (0, 6, 1)


# The exact text of every error.

x, ones = torch.zeros(2, 6, 5), torch.ones(6)
EPS_ERROR = "eps must be a number, 0 or more, got {}"
WEIGHT_ERROR = "{} must have shape ({},), got {}"

WRONG_CALLS = [
    (lambda: tl.standardize([1.0], -1), TypeError, "x must be a tensor, got list"),
    (lambda: tl.standardize(x.long(), -1), TypeError, "x must be floating point, got torch.int64"),
    (lambda: tl.standardize(x, 3), IndexError, "dims must be axes of x, from -3 to 2, got 3"),
    (lambda: tl.standardize(x, (0, -4)), IndexError, "dims must be axes of x, from -3 to 2, got -4"),
    (lambda: tl.standardize(x, ()), ValueError, "dims must name one axis or more, each once, got ()"),
    (lambda: tl.standardize(x, (1, -2)), ValueError, "dims must name one axis or more, each once, got (1, -2)"),
    (lambda: tl.standardize(x, 1.0), TypeError, "dims must be integers, got 1.0"),
    (lambda: tl.standardize(x, None), TypeError, "dims must be integers, got None"),
    (lambda: tl.standardize(x, True), TypeError, "dims must be integers, got True"),
    (lambda: tl.standardize(x, [0, "seq"]), TypeError, "dims must be integers, got 'seq'"),
    *[
        (lambda f=f, eps=eps: f(eps), ValueError, EPS_ERROR.format(repr(eps)))
        for f, eps in product(
            (
                lambda eps: tl.standardize(x, -1, eps),
                lambda eps: tl.layer_norm(x, eps=eps),
                lambda eps: tl.rms_norm(x, eps=eps),
                lambda eps: tl.batch_norm(x, eps=eps),
                lambda eps: tl.instance_norm(x, eps=eps),
                lambda eps: tl.group_norm(x, 2, eps=eps),
            ),
            (-1e-5, math.nan, "small", None, True),
        )
    ],
    (lambda: tl.batch_norm(x[0, 0]), ValueError, "x must have shape (batch, channels, ...), got (5,)"),
    (lambda: tl.batch_norm(x.int()), TypeError, "x must be floating point, got torch.int32"),
    (lambda: tl.batch_norm(x, weight=ones[:5]), ValueError, WEIGHT_ERROR.format("weight", 6, "(5,)")),
    (lambda: tl.batch_norm(x, bias=ones[:, None]), ValueError, WEIGHT_ERROR.format("bias", 6, "(6, 1)")),
    (lambda: tl.batch_norm(x, ones[:1], ones), ValueError, WEIGHT_ERROR.format("running_mean", 6, "(1,)")),
    (lambda: tl.batch_norm(x, ones, 1.0), TypeError, "running_var must be a tensor, got float"),
    (lambda: tl.batch_norm(x, ones, ones.long()), TypeError, "running_var must be floating point, got torch.int64"),
    (
        lambda: tl.batch_norm(x, ones),
        ValueError,
        "running_mean and running_var must be given together, got running_mean alone",
    ),
    (lambda: tl.batch_norm(x, momentum=2), ValueError, "momentum must be a probability from 0 to 1, got 2"),
    (
        lambda: tl.batch_norm(x[:1, :, :1], training=True),
        ValueError,
        "x must have more than one value per channel in training, got shape (1, 6, 1)",
    ),
    (
        lambda: tl.batch_norm(x, weight=ones.to("meta")),
        ValueError,
        "x and weight must be on one device, got cpu and meta",
    ),
    (lambda: tl.instance_norm(x[0]), ValueError, "x must have shape (batch, channels, length, ...), got (6, 5)"),
    (lambda: tl.instance_norm(x, ones[:5]), ValueError, WEIGHT_ERROR.format("weight", 6, "(5,)")),
    (lambda: tl.group_norm(x, 4), ValueError, "n_groups must divide the channels, got n_groups 4 and 6 channels"),
    (lambda: tl.group_norm(x, 0), ValueError, "n_groups must be at least 1, got 0"),
    (lambda: tl.group_norm(x, 2.0), TypeError, "n_groups must be an integer, got 2.0"),
    (lambda: tl.group_norm(x, 2, bias=ones[:2]), ValueError, WEIGHT_ERROR.format("bias", 6, "(2,)")),
    (lambda: tl.layer_norm(torch.tensor(1.0)), ValueError, "x must have shape (..., d_model), got ()"),
    (lambda: tl.layer_norm(x.bool()), TypeError, "x must be floating point, got torch.bool"),
    (lambda: tl.layer_norm(x, ones), ValueError, WEIGHT_ERROR.format("weight", 5, "(6,)")),
    (lambda: tl.layer_norm(x, bias=ones), ValueError, WEIGHT_ERROR.format("bias", 5, "(6,)")),
    (lambda: tl.layer_norm(x, [1.0]), TypeError, "weight must be a tensor, got list"),
    (
        lambda: tl.layer_norm(x, ones[:5].double()),
        TypeError,
        "x and weight must share a dtype, got torch.float32 and torch.float64",
    ),
    (
        lambda: tl.layer_norm(x, bias=ones[:5].half()),
        TypeError,
        "x and bias must share a dtype, got torch.float32 and torch.float16",
    ),
    (lambda: tl.rms_norm(x, ones), ValueError, WEIGHT_ERROR.format("weight", 5, "(6,)")),
    (
        lambda: tl.rms_norm(x, ones[:5].to("meta")),
        ValueError,
        "x and weight must be on one device, got cpu and meta",
    ),
    (lambda: tl.LayerNorm(0), ValueError, "d_model must be at least 1, got 0"),
    (lambda: tl.LayerNorm((6,)), TypeError, "d_model must be an integer, got (6,)"),
    (lambda: tl.RMSNorm(-1), ValueError, "d_model must be at least 1, got -1"),
    (lambda: tl.LayerNorm(6)(x), ValueError, WEIGHT_ERROR.format("weight", 5, "(6,)")),
    (
        lambda: tl.LayerNorm.from_torch(nn.BatchNorm1d(6)),
        TypeError,
        "module must be a torch.nn.LayerNorm, got BatchNorm1d",
    ),
    (
        lambda: tl.LayerNorm.from_torch(nn.LayerNorm((6, 5))),
        ValueError,
        "module must normalize one axis, got normalized_shape=(6, 5)",
    ),
    (
        lambda: tl.LayerNorm.from_torch(nn.LayerNorm(6, elementwise_affine=False)),
        ValueError,
        "module must have a weight, got elementwise_affine=False, which is not supported",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG_CALLS)
def test_norm_errors_name_the_argument(call, error, text):
    raises(call, error, text)
