"""Inspect tensors: print their values, the same on every device, and describe their layout in storage."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .arguments import format_value, require_sizes, require_tensor


def show(x: Tensor, axes: str | Sequence[str] | None = None, *, digits: int = 4) -> None:
    """Print a tensor: its axes by name, its dtype and its values.

    The text is the same on every device: values are moved to the CPU and rounded to ``digits`` places, because devices
    round differently, and a negative zero is printed as zero.

    Parameters
    ----------
    x : Tensor, any shape
    axes : str or sequence of str, optional
        One name per axis, such as ``"batch q_len d_head"``.
    digits : int, optional
        Decimal places of floating-point values.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor, or ``axes`` contains values other than names.
    ValueError
        If the number of names is not the number of axes.

    Examples
    --------
    >>> show(torch.tensor([[0.5, -0.25, 0.0], [1.0, 2.0, 3.0]]), "q_len k_len")
    q_len 2 × k_len 3 · float32
    [[ 0.5000 -0.2500  0.0000]
     [ 1.0000  2.0000  3.0000]]
    >>> show(torch.arange(3) == 1)
    (3,) · bool
    [False  True False]
    >>> show(torch.tensor(7))
    () · int64
    7
    """
    require_tensor(x=x)
    require_sizes(minimum=0, digits=digits)
    if axes is None:
        shape = str(tuple(x.shape))
    else:
        if not isinstance(axes, (str, list, tuple)) or not all(isinstance(name, str) for name in axes):
            raise TypeError(f"axes must be a string or a list of strings, got {format_value(axes)}")
        names = axes.split() if isinstance(axes, str) else axes
        if len(names) != x.ndim:
            actual = format_value(" ".join(names))
            raise ValueError(f"axes must name each of the {x.ndim} axes of x, got {len(names)}: {actual}")
        shape = " × ".join(f"{name} {size}" for name, size in zip(names, x.shape)) or "()"
    values = x.detach().cpu().resolve_conj().resolve_neg()
    if values.is_floating_point() and values.dtype != torch.float64:
        values = values.float()  # NumPy supports neither bfloat16 nor the 8-bit formats
    values = values.numpy()
    if np.issubdtype(values.dtype, np.inexact):
        with np.errstate(over="ignore"):
            rounded = np.round(values, digits)
        # Rounding multiplies by 10^digits. A value that overflows in this product has no decimal places, and needs no
        # rounding.
        values = np.where(np.isfinite(rounded), rounded, values) + 0.0  # adding zero turns -0.0 into 0.0
    text = np.array2string(
        values, precision=digits, floatmode="fixed", suppress_small=True, max_line_width=100, threshold=1000
    )
    print(f"{shape} · {str(x.dtype).removeprefix('torch.')}\n{text}")


@dataclass(frozen=True, repr=False)
class Layout:
    """How a tensor reads its storage: the result of :func:`layout`.

    Element ``(i, j, …)`` is the storage's element number ``offset + i·strides[0] + j·strides[1] + …``.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    contiguous: bool
    storage: int
    """The address at which the storage begins: equal for tensors that share the storage."""

    def shares_storage_with(self, other: Tensor) -> bool:
        """Whether ``other`` (a tensor) reads the same storage, so that a change to one tensor changes the other.

        Examples
        --------
        >>> x = torch.arange(6)
        >>> layout(x).shares_storage_with(x.view(2, 3)), layout(x).shares_storage_with(x.clone())
        (True, False)
        """
        require_tensor(other=other)
        # Tensors without elements have no storage: for all of them, the address is 0.
        return self.storage != 0 and self.storage == layout(other).storage

    def __repr__(self):
        # The storage's address differs from run to run, so the text omits the address.
        return (
            f"shape       {self.shape}\n"
            f"strides     {self.strides}\n"
            f"offset      {self.offset}\n"
            f"contiguous  {'yes' if self.contiguous else 'no'}"
        )


def layout(x: Tensor) -> Layout:
    """Return how ``x`` reads its storage: shape, strides, offset, and whether it is contiguous.

    Strides and offset count elements, not bytes.

    Parameters
    ----------
    x : Tensor, any shape

    Returns
    -------
    Layout
        Its method ``shares_storage_with(other)`` returns whether another tensor reads the same storage.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.

    References
    ----------
    PyTorch documentation, *Tensor Views* and ``torch.Tensor.stride``.

    Examples
    --------
    >>> layout(torch.arange(6).view(2, 3).t())
    shape       (3, 2)
    strides     (1, 3)
    offset      0
    contiguous  no
    """
    require_tensor(x=x)
    return Layout(
        tuple(x.shape), x.stride(), int(x.storage_offset()), x.is_contiguous(), x.untyped_storage().data_ptr()
    )
