"""The stand-in behaves like an accelerator. ``tests/tools/test_standin.py`` runs this file on the device."""

import copy
import io

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from standin import kernel, rounding
from standin.memory import FLOAT64
from torch import nn

import transformer_lab as tl

DEVICE = torch.device("standin")
generator = torch.Generator().manual_seed(0)


def randn(*shape):
    return torch.randn(*shape, generator=generator)


x = randn(2, 3, 8).to(DEVICE)
ids = torch.tensor([1, 2, 0], device=DEVICE)
needs_float64 = pytest.mark.skipif(not FLOAT64, reason="the device is set up without float64")


def save_and_load(**options):
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    return torch.load(file, **options)["x"]


def create_on_default_device():
    torch.set_default_device(DEVICE)
    try:
        return torch.ones(2), torch.randperm(5), nn.Linear(2, 2).weight
    finally:
        torch.set_default_device(None)


def dtypes_under_autocast():
    with torch.autocast("standin", dtype=torch.bfloat16):
        product = x @ x.mT
        return product.dtype, product.softmax(-1).dtype


def is_on_device_and_close(actual, expected, atol=1e-5):
    """Return whether a tensor is on the device and agrees with the CPU's numbers up to rounding."""
    return actual.device.type == "standin" and torch.allclose(actual.cpu(), expected, atol=atol)


WORKING_CALLS = {
    "the course's device": lambda: tl.device() == DEVICE and not x.is_cpu and not x.is_cuda,
    "to the device and back": lambda: torch.equal(x.cpu().to(DEVICE).cpu(), x.cpu()),
    "convolution": lambda: is_on_device_and_close(
        F.conv1d(x, torch.ones(4, 3, 3).to(DEVICE)), F.conv1d(x.cpu(), torch.ones(4, 3, 3))
    ),
    "product": lambda: is_on_device_and_close(x @ x.mT, x.cpu() @ x.cpu().mT),
    "einsum": lambda: is_on_device_and_close(torch.einsum("bij,bkj->bik", x, x), x.cpu() @ x.cpu().mT),
    "remainder of a number": lambda: (7 % torch.arange(1, 4, device=DEVICE)).tolist() == [0, 1, 1],
    "fused attention": lambda: is_on_device_and_close(
        F.scaled_dot_product_attention(x, x, x), F.scaled_dot_product_attention(*[x.cpu()] * 3)
    ),
    "nn.MultiheadAttention": lambda: nn.MultiheadAttention(8, 2).to(DEVICE)(x, x, x)[0].device == x.device,
    "the fast path of nn.MultiheadAttention": lambda: (
        nn.MultiheadAttention(8, 2).to(DEVICE).eval()(x, x, x)[0].device == x.device
    ),
    "nn.RMSNorm": lambda: nn.RMSNorm(8).to(DEVICE)(x).device == x.device,
    "a deep copy": lambda: copy.deepcopy(nn.Linear(2, 2).to(DEVICE)).weight.device == x.device,
    "saved and loaded": lambda: is_on_device_and_close(save_and_load(), x.cpu(), 0),
    "loaded on the CPU": lambda: torch.equal(save_and_load(map_location="cpu"), x.cpu()),
    "loaded on the device": lambda: is_on_device_and_close(save_and_load(map_location=DEVICE), x.cpu(), 0),
    "views share storage": lambda: (
        x.data_ptr() == x[0].data_ptr()
        and x.untyped_storage().data_ptr() == x.mT.untyped_storage().data_ptr()
        and x.untyped_storage().nbytes() == x.numel() * 4
    ),
    "an index of the CPU": lambda: is_on_device_and_close(x[torch.tensor([1])], x.cpu()[[1]], 0),
    "a mask of the CPU": lambda: x[torch.tensor([True, False])].shape == (1, 3, 8),
    "a single number of the CPU": lambda: is_on_device_and_close(x * torch.tensor(2.0), x.cpu() * 2, 0),
    "where with a number": lambda: is_on_device_and_close(torch.where(x > 0, x, 0.0), x.cpu().relu(), 0),
    "filled at an index": lambda: is_on_device_and_close(
        x.clone().index_fill_(0, ids[:1], 0.0), torch.stack([x[0].cpu(), x[0].cpu() * 0])
    ),
    "copied into a tensor of the CPU": lambda: not torch.zeros(3, 8).copy_(x[0]).equal(torch.zeros(3, 8)),
    "grown in place": lambda: torch.empty(0, device=DEVICE).resize_(3).shape == (3,),
    "out=": lambda: is_on_device_and_close(torch.add(x, x, out=torch.empty(0, device=DEVICE)), 2 * x.cpu()),
    "the default device": lambda: all(tensor.device == x.device for tensor in create_on_default_device()),
    "autocast": lambda: dtypes_under_autocast() == (torch.bfloat16, torch.float32),
    "half precision": lambda: (x.bfloat16() @ x.bfloat16().mT).dtype == torch.bfloat16,
    "vmap": lambda: is_on_device_and_close(torch.func.vmap(torch.sin)(x), x.cpu().sin()),
    "jacrev": lambda: torch.func.jacrev(torch.sin)(x[0, 0]).shape == (8, 8),
    "checkpoint": lambda: torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False).device == x.device,
    "moved to meta": lambda: x.to("meta").shape == x.shape,
    "sort": lambda: is_on_device_and_close(x.sort().values, x.cpu().sort().values, 0),
    "topk": lambda: is_on_device_and_close(x.topk(2).indices, x.cpu().topk(2).indices, 0),
    "unique": lambda: torch.tensor([1, 1, 2], device=DEVICE).unique().tolist() == [1, 2],
    "multinomial": lambda: torch.multinomial(torch.ones(4, device=DEVICE), 2).device == x.device,
    "a generator of its own": lambda: (
        torch.randn(3, device=DEVICE, generator=torch.Generator(DEVICE).manual_seed(1)).device == x.device
    ),
}
TWO_DEVICES_ERROR = "Expected all tensors to be on the same device"
REFUSED_CALLS = {
    "NumPy": (lambda: x.numpy(), "can't convert standin:0 device type tensor to numpy"),
    "np.asarray": (lambda: np.asarray(x), "can't convert standin:0 device type tensor to numpy"),
    "a generator of the CPU": (
        lambda: torch.randn(3, device=DEVICE, generator=torch.Generator()),
        "Expected a 'standin' device type for generator but found 'cpu'",
    ),
    "a sum": (lambda: x + x.cpu(), TWO_DEVICES_ERROR),
    "a product": (lambda: x @ x.cpu().mT, TWO_DEVICES_ERROR),
    "an index of the device": (lambda: torch.ones(3)[ids], TWO_DEVICES_ERROR),
    "a condition of the CPU": (lambda: torch.where((x > 0).cpu(), x, 0.0), TWO_DEVICES_ERROR),
    "a mask of the CPU": (lambda: x.masked_fill((x > 0).cpu(), 0.0), TWO_DEVICES_ERROR),
    "tokens of the CPU": (lambda: F.embedding(ids.cpu(), torch.ones(3, 2, device=DEVICE)), TWO_DEVICES_ERROR),
    "cat": (lambda: torch.cat([x, x.cpu()]), TWO_DEVICES_ERROR),
    "stack": (lambda: torch.stack([x, x.cpu()]), TWO_DEVICES_ERROR),
    "added to the CPU's": (lambda: torch.zeros(2, 3, 8).add_(x), TWO_DEVICES_ERROR),
    "added to a number of the CPU": (lambda: torch.tensor(0.0).add_(x.sum()), TWO_DEVICES_ERROR),
    "allclose": (lambda: torch.allclose(x, x.cpu()), TWO_DEVICES_ERROR),
    "equal": (lambda: torch.equal(x, x.cpu()), TWO_DEVICES_ERROR),
    "written by an index": (lambda: x.clone().index_put_((ids[:1],), torch.ones(3, 8)), TWO_DEVICES_ERROR),
    "a linear layer of the CPU": (lambda: nn.Linear(8, 2)(x), TWO_DEVICES_ERROR),
    "a norm of the CPU": (lambda: nn.LayerNorm(8)(x), TWO_DEVICES_ERROR),
    "labels of the CPU": (lambda: F.cross_entropy(x[0], ids.cpu()), TWO_DEVICES_ERROR),
    "fused attention with the CPU's mask": (
        lambda: F.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(3, 3, dtype=torch.bool)),
        TWO_DEVICES_ERROR,
    ),
}


@pytest.mark.parametrize("call", WORKING_CALLS.values(), ids=WORKING_CALLS)
def test_a_call_works_on_the_device(call):
    assert call()


@pytest.mark.parametrize(("call", "text"), REFUSED_CALLS.values(), ids=REFUSED_CALLS)
def test_a_call_is_refused(call, text):
    with pytest.raises((RuntimeError, TypeError)) as raised:
        call()
    assert text in str(raised.value)


@pytest.mark.parametrize("optimizer_class", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("fused", [False, True])
def test_a_model_trains_on_the_device(optimizer_class, fused):
    model = nn.Sequential(nn.Embedding(5, 8), nn.LayerNorm(8), nn.Linear(8, 5)).to(DEVICE)
    optimizer = optimizer_class(model.parameters(), lr=0.1, fused=fused)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids), ids, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert all(parameter.grad.device == parameter.device == x.device for parameter in model.parameters())
    optimizer.load_state_dict(optimizer.state_dict())
    model.load_state_dict(model.state_dict())


def test_gradients_match_the_cpus():
    device_module, cpu_module = nn.Conv1d(3, 4, 3), nn.Conv1d(3, 4, 3)
    cpu_module.load_state_dict(device_module.state_dict())
    device_module.to(DEVICE)(x).square().sum().backward()
    cpu_module(x.cpu()).square().sum().backward()
    for device_parameter, cpu_parameter in zip(device_module.parameters(), cpu_module.parameters()):
        assert is_on_device_and_close(device_parameter.grad, cpu_parameter.grad, 1e-3)


def test_batch_norm_writes_its_statistics():
    norm = nn.BatchNorm1d(3).to(DEVICE)
    norm(x)
    assert is_on_device_and_close(norm.running_mean, 0.1 * x.cpu().mean((0, 2)))


def test_random_numbers_differ_from_the_cpus_and_repeat_with_a_seed():
    def random_numbers(device):
        torch.manual_seed(0)
        return [torch.randn(3, device=device).tolist(), F.dropout(torch.ones(9, device=device)).tolist()]

    assert random_numbers(DEVICE) == random_numbers(DEVICE) != random_numbers("cpu") == random_numbers("cpu")


@pytest.mark.skipif(rounding.ROUNDING == "cpu", reason="the device is set up to round as the CPU does")
def test_rounding_differs_from_the_cpus_within_a_bound():
    a, b = randn(64, 64), randn(64, 64)
    exact, actual = (a.double() @ b.double()), (a.to(DEVICE) @ b.to(DEVICE)).cpu()
    assert not torch.equal(actual, a @ b)
    assert ((actual - exact).abs() <= exact.abs() * 2.0**-23).all()
    assert torch.allclose((2.0 ** a.to(DEVICE)).cpu(), 2.0**a) and torch.allclose((a.to(DEVICE) ** 3).cpu(), a**3)
    whole_numbers = torch.arange(16.0).view(4, 4)
    # exact products stay exact
    assert torch.equal((whole_numbers.to(DEVICE) @ whole_numbers.to(DEVICE)).cpu(), whole_numbers @ whole_numbers)


@needs_float64
def test_gradients_can_be_checked_in_float64():
    assert torch.autograd.gradcheck(torch.tanh, x[0].double().requires_grad_())


@pytest.mark.skipif(FLOAT64, reason="the device has float64")
@pytest.mark.parametrize(
    "call",
    [
        lambda: x.double(),
        lambda: x.to("cpu", torch.float64),  # MPS converts the dtype before it copies
        lambda: torch.ones(2, dtype=torch.float64, device=DEVICE),
        lambda: torch.ones(2, dtype=torch.float64).to(DEVICE),
        lambda: nn.Linear(2, 2).to(DEVICE).double(),
    ],
)
def test_float64_is_refused_as_on_mps(call):
    with pytest.raises(TypeError, match="the device has no float64"):
        call()
    assert x.cpu().double().dtype == torch.float64
    assert torch.ones(2, dtype=torch.float64).to(DEVICE, torch.float32).device == x.device


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.embedding(ids + 3, torch.ones(4, 2, device=DEVICE)),
        lambda: torch.ones(3, device=DEVICE)[ids + 1],
        lambda: torch.ones(3, device=DEVICE).gather(0, ids + 1),
        lambda: F.cross_entropy(x[0], ids + 8),
    ],
)
def test_a_lookup_out_of_range_makes_every_later_call_fail(call):
    with pytest.raises(RuntimeError, match="device-side assert triggered"):
        call()
    try:
        with pytest.raises(RuntimeError, match="device-side assert triggered"):
            x + x
    finally:
        kernel.failures.clear()  # users cannot reset the device in this way
    assert is_on_device_and_close(x + x, 2 * x.cpu())


def test_an_index_that_python_checks_is_an_ordinary_error():
    with pytest.raises(IndexError):
        x[5]
    with pytest.raises(IndexError):
        x.sum(7)
    assert not kernel.failures
