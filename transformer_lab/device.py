"""The device on which the course computes."""

import os

import torch


def device() -> torch.device:
    """Return the device to compute on.

    If the environment variable ``TRANSFORMER_LAB_DEVICE`` is set, it decides; otherwise the device is the first of
    CUDA, MPS and CPU that is available.

    Returns
    -------
    torch.device

    Raises
    ------
    ValueError
        If ``TRANSFORMER_LAB_DEVICE`` is not the name of a device.
    RuntimeError
        If ``TRANSFORMER_LAB_DEVICE`` names a device that this machine does not have. A requested device is never
        silently replaced by the CPU.

    Examples
    --------
    >>> import torch, transformer_lab as tl
    >>> torch.zeros(2, device=tl.device()).shape
    torch.Size([2])
    """
    requested = os.environ.get("TRANSFORMER_LAB_DEVICE")
    if not requested:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(requested)
    except RuntimeError as error:
        raise ValueError(
            f"TRANSFORMER_LAB_DEVICE must name a device such as cpu, cuda, cuda:1 or mps, got {requested!r}"
        ) from error
    try:
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError, ImportError) as error:
        raise RuntimeError(f"TRANSFORMER_LAB_DEVICE names {requested!r}, which this machine does not have") from error
    return chosen
