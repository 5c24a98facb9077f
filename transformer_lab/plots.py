"""Plots of tensors. Each function draws into a matplotlib ``Axes`` and returns the ``Axes``."""

from collections.abc import Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from .arguments import require_tensor

#: The one colour map of attention weights, from 0 (white) to 1 (dark blue).
WEIGHT_COLOURS = "Blues"
#: The colour map of everything else: white at zero, red above, blue below.
SIGNED_COLOURS = "RdBu_r"


def matrix(
    x: Tensor,
    ax: Axes | None = None,
    *,
    axes: str | Sequence[str] | None = None,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    title: str | None = None,
    digits: int | None = 2,
    limits: tuple[float, float] | None = None,
    cmap: str = SIGNED_COLOURS,
) -> Axes:
    """Draw a matrix as a table of coloured cells that contain the numbers.

    Parameters
    ----------
    x : Tensor, shape (rows, columns)
    ax : matplotlib Axes, optional
        The axes to draw into; a new figure by default.
    axes : str or pair of str, optional
        Names of the two axes, such as ``"q_len k_len"``.
    rows, columns : sequence of str, optional
        A label for each row and each column; by default, the numbers of rows and columns.
    title : str, optional
    digits : int or None, optional
        Decimal places of the numbers; ``None`` leaves the numbers out.
    limits : (float, float), optional
        Values at the two ends of the colour map; symmetric around zero by default.
    cmap : str, optional
        A matplotlib colour map.

    Returns
    -------
    matplotlib Axes
        A NaN cell has no colour, and contains the text ``nan``.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    ValueError
        If ``x`` is not a matrix or is empty, or the number of labels is not the number of rows or columns.

    Examples
    --------
    >>> ax = matrix(torch.eye(2), axes="q_len k_len")
    >>> ax.get_ylabel(), ax.get_xlabel()
    ('q_len', 'k_len')
    """
    _check_labels(x, rows=rows, columns=columns)
    if ax is None:
        size = (1.4 + 0.55 * x.shape[1], 1.1 + 0.5 * x.shape[0])
        _, ax = plt.subplots(figsize=size, dpi=120, layout="constrained")
    values = x.detach().cpu().double().numpy()
    max_abs = abs(values[np.isfinite(values)]).max(initial=0.0) or 1.0
    low, high = limits or (-max_abs, max_abs)
    image = ax.imshow(values, cmap=cmap, vmin=low, vmax=high, aspect="equal" if digits is not None else "auto")
    if digits is not None:
        for i, row in enumerate(values.tolist()):
            for j, value in enumerate(row):
                red, green, blue, opacity = image.cmap(image.norm(value))
                is_dark = opacity * (0.299 * red + 0.587 * green + 0.114 * blue) + 1 - opacity < 0.5
                ax.text(j, i, f"{value:.{digits}f}", ha="center", va="center", color="white" if is_dark else "black")
        ax.set_xticks(range(x.shape[1]), columns or map(str, range(x.shape[1])))
        ax.set_yticks(range(x.shape[0]), rows or map(str, range(x.shape[0])))
        ax.tick_params(length=0)
    if axes is not None:
        row_axis, column_axis = axes.split() if isinstance(axes, str) else axes
        ax.set(ylabel=row_axis, xlabel=column_axis)
    if title:
        ax.set_title(title, fontsize="medium")
    return ax


def weights(
    x: Tensor,
    ax: Axes | None = None,
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    title: str | None = None,
    digits: int | None = 2,
) -> Axes:
    """Draw attention weights: one row for each query, one column for each key, and colours from 0 to 1.

    Parameters
    ----------
    x : Tensor, shape (q_len, k_len)
    ax : matplotlib Axes, optional
    queries, keys : sequence of str, optional
        Labels, such as the tokens.
    title : str, optional
    digits : int or None, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError
        As in :func:`matrix`.

    Examples
    --------
    >>> ax = weights(torch.eye(2), queries=["the", "cat"], keys=["the", "cat"])
    >>> ax.get_ylabel()
    'q_len (who looks)'
    """
    _check_labels(x, queries=queries, keys=keys)
    axis_names = ("q_len (who looks)", "k_len (what is looked at)")
    return matrix(
        x,
        ax,
        axes=axis_names,
        rows=queries,
        columns=keys,
        title=title,
        digits=digits,
        limits=(0, 1),
        cmap=WEIGHT_COLOURS,
    )


def walk(x: Tensor, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Draw the storage of ``x`` as a row of cells and, with arcs, the order in which ``x`` reads the cells.

    Arcs above the row go forward, arcs below go back; the number on an arc is its length in elements.

    Parameters
    ----------
    x : Tensor, any shape
        At most 32 elements, in a storage of at most 32 elements.
    ax : matplotlib Axes, optional
    title : str, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    ValueError
        If ``x`` is empty, or too large to draw.

    Examples
    --------
    >>> ax = walk(torch.arange(6).view(2, 3).t())
    >>> [text.get_text() for text in ax.texts if text.get_text().startswith(("+", "−"))]
    ['+3', '−2', '+3', '−2', '+3']
    """
    require_tensor(x=x)
    size = x.untyped_storage().nbytes() // x.element_size()
    if not 0 < x.numel() <= 32 or size > 32:
        raise ValueError(f"x must have 1 to 32 elements in a storage of at most 32, got {x.numel()} in {size}")
    if ax is None:
        _, ax = plt.subplots(figsize=(0.6 + 0.5 * size, 1.9), dpi=120, layout="constrained")
    positions = torch.arange(size)
    for index, value in enumerate(x.detach().cpu().as_strided((size,), (1,), 0).tolist()):
        ax.add_patch(plt.Rectangle((index - 0.45, -0.45), 0.9, 0.9, facecolor="#dbe9f8", edgecolor="#0b5cad"))
        ax.text(index, 0, value, ha="center", va="center")
    indices = positions.as_strided(x.shape, x.stride(), x.storage_offset()).flatten().tolist()
    for start, end in pairwise(indices):
        side = 1 if end >= start else -1
        arc = {"arrowstyle": "->", "connectionstyle": "arc3,rad=-0.35", "color": "#b3261e"}
        ax.annotate("", (end, 0.5 * side), (start, 0.5 * side), arrowprops=arc)
        step = f"{end - start:+d}".replace("-", "−")
        height = side * (0.75 + 0.24 * abs(end - start))
        ax.text((start + end) / 2, height, step, ha="center", va="center", color="#b3261e", fontsize="small")
    y_limit = 1.1 + 0.24 * max((abs(b - a) for a, b in pairwise(indices)), default=0)
    ax.set(xlim=(-0.7, size - 0.3), ylim=(-y_limit, y_limit), xlabel="place in storage", yticks=[])
    ax.set_xticks(range(size))
    ax.set_frame_on(False)
    if title:
        ax.set_title(title, fontsize="medium")
    return ax


def _check_labels(x, **labels):
    """Raise an error unless ``x`` is a matrix with as many rows and columns as there are labels for each."""
    require_tensor(x=x)
    if x.ndim != 2 or x.numel() == 0:
        raise ValueError(f"x must be a matrix, with 2 axes that are not empty, got shape {tuple(x.shape)}")
    for (name, axis_labels), size in zip(labels.items(), x.shape):
        if axis_labels is not None and len(axis_labels) != size:
            raise ValueError(f"{name} must have {size} labels for x of shape {tuple(x.shape)}, got {len(axis_labels)}")
