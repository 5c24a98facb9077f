"""The tests of the mathematics need numbers that are the same on every device, and tolerances."""

import re

import pytest
import torch
from hypothesis import settings

import transformer_lab as tl

DEVICE = tl.device()
# For each dtype, the largest difference that rounding explains, as a fraction of a tensor's largest number.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def has_float64():
    """Return whether the device has float64, which Apple's MPS lacks."""
    try:
        return torch.ones(1, device=DEVICE).double().dtype == torch.float64
    except TypeError:
        return False


DTYPES = list(TOLERANCE) if has_float64() else [dtype for dtype in TOLERANCE if dtype != torch.float64]
FULL_PRECISION = [dtype for dtype in DTYPES if dtype in (torch.float32, torch.float64)]
needs_float64 = pytest.mark.skipif(not has_float64(), reason="compares in float64, which this device does not have")
# The stand-in is slow, and a few examples suffice to show how a device differs.
few_examples = settings(max_examples=30 if DEVICE.type == "standin" else 150, deadline=None, derandomize=True)


def load_transformers():
    """Return the transformers package for comparison; skip the test if the package is not installed."""
    return pytest.importorskip(
        "transformers", minversion="5", reason="transformers is not installed: pip install -e .[references]"
    )


def assert_close(actual, expected):
    """Require equality up to the rounding of the dtype of ``actual``."""
    assert actual.shape == expected.shape, f"{tuple(actual.shape)} is not {tuple(expected.shape)}"
    dtype, actual, expected = actual.dtype, actual.cpu().double(), expected.cpu().double()
    if actual.numel():
        atol = TOLERANCE[dtype] * max(1.0, expected.abs().max().item())
        torch.testing.assert_close(actual, expected, rtol=0, atol=atol)


def normal(*shape, seed, dtype=torch.float32, contiguous=True):
    """Return normal random numbers, drawn on the CPU so that every device gets the same numbers."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, 2, generator=generator, dtype=torch.float64).to(dtype).to(DEVICE)[..., 0]
    return (x.contiguous() if contiguous else x).requires_grad_()


def gradients(output, inputs):
    """Return the gradients of a randomly weighted sum of ``output``."""
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(99), dtype=torch.float64)
    weights = weights.to(output.dtype).to(output.device)
    return torch.autograd.grad(output, inputs, weights, retain_graph=True, allow_unused=True)


def assert_gradients_close(actual, expected, inputs):
    for got, wanted, x in zip(gradients(actual, inputs), gradients(expected, inputs), inputs):
        assert_close(torch.zeros_like(x) if got is None else got, torch.zeros_like(x) if wanted is None else wanted)


def prepare(module, dtype=torch.float32, seed=0):
    """Return the module on the device, with random numbers in its vectors, since biases of 0 would hide mistakes."""
    module = module.to(DEVICE, dtype)
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            if parameter.ndim == 1:
                parameter.copy_(normal(*parameter.shape, seed=1000 * seed + i) * 0.5 + 0.5)
    return module


def rename_to_ours(module, tensors):
    """Return tensors of PyTorch's module, such as the gradients of its parameters, keyed by our parameters' names."""
    ours = {}
    for (name, _), x in zip(module.named_parameters(), tensors, strict=True):
        for prefix, our_prefix in (("self_attn.", "self_attention."), ("multihead_attn.", "cross_attention.")):
            name = name.replace(prefix, our_prefix)
        name = name.replace("linear", "feed_forward.linear").replace("_proj_weight", "_proj.weight")
        if "in_proj" in name:
            packed = name.replace("in_proj_bias", "in_proj.bias")
            ours |= {packed.replace("in_proj", f"{letter}_proj"): part for letter, part in zip("qkv", x.chunk(3))}
        else:
            ours[name] = x
    return ours


def assert_same_parameters(actual, our_module, expected, torch_module):
    """Require that both modules have equal parameters, and that the parameters' gradients are close."""
    parameters = dict(our_module.named_parameters())
    values = rename_to_ours(torch_module, torch_module.parameters())
    assert parameters.keys() == values.keys()
    actual_gradients = dict(zip(parameters, gradients(actual, list(parameters.values()))))
    expected_gradients = rename_to_ours(torch_module, gradients(expected, list(torch_module.parameters())))
    for name, parameter in parameters.items():
        assert torch.equal(parameter, values[name]), name
        assert_close(actual_gradients[name], expected_gradients[name])


def assert_separate_copies(our_module, torch_module):
    """Require that our parameters are leaves without gradients, and that none shares memory with another parameter."""
    torch_storages = {parameter.untyped_storage().data_ptr() for parameter in torch_module.parameters()}
    parameters = list(our_module.parameters())
    assert all(parameter.untyped_storage().data_ptr() not in torch_storages for parameter in parameters)
    assert len({parameter.untyped_storage().data_ptr() for parameter in parameters}) == len(parameters)
    assert all(p.requires_grad and p.is_leaf and p.is_contiguous() and p.grad is None for p in parameters)
    assert sum(p.numel() for p in parameters) == sum(p.numel() for p in torch_module.parameters())


def raises(call, error, text):
    """Require an error of exactly this class, whose message names the same argument and the same value as ``text``.

    The wording of the rule between argument and value may differ: ``test_arguments.py`` tests the wording of each rule
    once.
    """
    actual = _message(call, error)
    assert _argument_and_value(actual) == _argument_and_value(text), f"\n{actual}\n{text}"


def raises_exactly(call, error, text):
    """Require an error of exactly this class with this text; ``test_messages.py`` tests the advice after the text."""
    actual = _message(call, error)
    assert actual == text or actual.startswith(f"{text}: "), f"\n{actual}\n{text}"


def _message(call, error):
    with pytest.raises(error) as raised:
        call()
    assert type(raised.value) is error, f"{type(raised.value).__name__}, not {error.__name__}: {raised.value}"
    return str(raised.value)


def _argument_and_value(text):
    """Return ``x`` and ``3`` of "x must be 4, got 3: use 4", or the whole text if it does not have this form."""
    argument, rule, rest = text.partition(" must ")
    _, got, value = rest.rpartition("got ")
    return (argument, re.split(r": |\. Use ", value)[0]) if rule and got else text
