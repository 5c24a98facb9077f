"""A progress bar for loops."""

import sys
from collections.abc import Iterable

from tqdm import tqdm

from .arguments import format_value, require_sizes


def progress_bar(steps: int, label: str) -> Iterable[int]:
    """Count to ``steps``, with a progress bar.

    The bar is printed to standard output, and its last state is the same in every run, so that outputs of notebooks can
    be compared.

    Parameters
    ----------
    steps : int
    label : str
        The text before the bar, such as "training".

    Returns
    -------
    Iterable of int
        0, 1, … ``steps - 1``.

    Raises
    ------
    TypeError
        If ``steps`` is not an integer, or ``label`` is not a string.
    ValueError
        If ``steps`` is negative.

    Examples
    --------
    >>> sum(progress_bar(4, "counting"))  # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    counting: ...|████████████████████████████████████████| 4 of 4
    6
    """
    require_sizes(minimum=0, steps=steps)
    if not isinstance(label, str):
        raise TypeError(f"label must be a string, got {format_value(label)}")
    # The format has no rate and no remaining time, which differ from run to run; the blocks do not depend on the
    # stream's encoding.
    bar_format = "{desc}: |{bar:40}| {n_fmt} of {total_fmt}"
    # Wide enough that no terminal truncates the bar.
    return tqdm(range(steps), desc=label, file=sys.stdout, bar_format=bar_format, ascii="░█", ncols=1000)
