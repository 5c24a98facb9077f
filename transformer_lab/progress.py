"""A bar that shows how far a loop has come."""

import sys
from collections.abc import Iterable

from tqdm import tqdm

from .arguments import require_sizes, shown


def progress_bar(steps: int, label: str) -> Iterable[int]:
    """Count to ``steps``, and show how far the count is.

    It prints on standard output, and its last state is the same in every run: fit for a notebook whose outputs are
    compared.

    Parameters
    ----------
    steps : int
    label : str
        What is going on: "training".

    Returns
    -------
    Iterable of int
        0, 1, … ``steps - 1``.

    Raises
    ------
    TypeError
        If ``steps`` is not an integer, or ``label`` not a string.
    ValueError
        If ``steps`` is negative.

    Examples
    --------
    >>> sum(progress_bar(4, "counting"))  # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    counting: ...|████████████████████████████████████████| 4 of 4
    6
    """
    require_sizes(least=0, steps=steps)
    if not isinstance(label, str):
        raise TypeError(f"label must be a string, got {shown(label)}")
    # No rate and no time left, which differ from run to run; and blocks that do not depend on the stream's encoding.
    form = "{desc}: |{bar:40}| {n_fmt} of {total_fmt}"
    # So many columns that nothing is cut off, whatever the terminal that Python was started from.
    return tqdm(range(steps), desc=label, file=sys.stdout, bar_format=form, ascii="░█", ncols=1000)
