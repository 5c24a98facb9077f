"""The set-up that all chapters share.

Tensors are on the course's device, and random numbers are the same on every device.


A chapter begins with ``randn = begin(seed=3)``; ``tensor``, ``close`` and ``seeded`` also work without ``begin``.
"""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from .device import device


def begin(seed: int) -> Callable[..., Tensor]:
    """Set up a notebook: make figures sharp, seed modules' weights, and return a function that draws random numbers.

    Parameters
    ----------
    seed : int
        Seed of the random numbers and of PyTorch's global generator; a chapter passes its number.

    Returns
    -------
    callable
        ``randn(*shape)`` returns standard normal numbers, drawn on the CPU and moved to the course's device.

    Examples
    --------
    >>> randn = begin(seed=3)
    >>> randn(2, 5).shape
    torch.Size([2, 5])
    """
    plt.rcParams["figure.dpi"] = 120
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)

    def randn(*shape: int) -> Tensor:
        """Draw random numbers on the CPU, so that they are the same on every device."""
        return torch.randn(*shape, generator=generator).to(device())

    return randn


def tensor(data: Any) -> Tensor:
    """Create a tensor on the course's device.

    Examples
    --------
    >>> tensor([1.0, 2.0]).shape
    torch.Size([2])
    """
    return torch.tensor(data, device=device())


def close(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are equal up to rounding: within 1e-5 plus 1e-5 times the absolute value of ``b``.

    Examples
    --------
    >>> close(torch.tensor(0.1 + 0.2), torch.tensor(0.3))
    True
    """
    return torch.allclose(a, b, atol=1e-5)


def seeded(module_class: type, *sizes: int, **options: Any) -> torch.nn.Module:
    """Create a module whose weights are drawn on the CPU from seed 0, so that they are the same on every device.

    Examples
    --------
    >>> seeded(torch.nn.Linear, 3, 5).weight.shape
    torch.Size([5, 3])
    """
    torch.manual_seed(0)
    return module_class(*sizes, **options).to(device())


made = seeded  # deprecated: the function's name in earlier notebooks
