"""``device`` returns the device that the environment variable names, or the fastest available one."""

import pytest
import torch

import transformer_lab as tl

VARIABLE = "TRANSFORMER_LAB_DEVICE"


@pytest.mark.parametrize("requested", [None, ""])
@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [(True, True, "cuda"), (True, False, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_default_device_is_the_first_available(monkeypatch, requested, cuda, mps, expected):
    monkeypatch.delenv(VARIABLE, raising=False) if requested is None else monkeypatch.setenv(VARIABLE, requested)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert tl.device() == torch.device(expected)


def test_environment_variable_selects_the_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv(VARIABLE, "cpu")
    assert tl.device() == torch.device("cpu")


@pytest.mark.parametrize("requested", ["gpu", "CPU", "0", "cuda:x", " cpu"])
def test_unknown_device_is_an_error(monkeypatch, requested):
    monkeypatch.setenv(VARIABLE, requested)
    with pytest.raises(ValueError) as raised:
        tl.device()
    assert str(raised.value) == f"{VARIABLE} must name a device such as cpu, cuda, cuda:1 or mps, got {requested!r}"


# For each kind of device, a device that no machine has. "hpu" fails for another reason: a module is not installed.
@pytest.mark.parametrize(
    "requested", ["cuda:99", "xla", "hpu", *([] if torch.backends.mps.is_available() else ["mps"])]
)
def test_unavailable_device_is_an_error(monkeypatch, requested):
    monkeypatch.setenv(VARIABLE, requested)
    with pytest.raises(RuntimeError) as raised:
        tl.device()
    assert str(raised.value) == f"{VARIABLE} names {requested!r}, which this machine does not have"
