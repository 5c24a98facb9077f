"""Helpers that draw random arguments, and format numbers."""

import torch


def random_integer(draw, least, most):
    """Return a random integer from ``least`` to ``most``."""
    return int(torch.randint(least, most + 1, (), generator=draw.generator))


def choose(draw, options):
    """Return one of the options at random."""
    return options[random_integer(draw, 0, len(options) - 1)]


def distinct_integers(draw, count, least, most):
    """Return ``count`` different integers from ``least`` to ``most``."""
    order = torch.randperm(most - least + 1, generator=draw.generator)
    return tuple(least + int(index) for index in order[:count])


def random_shape(draw, axes=3, least=2, most=6):
    """Return a shape whose sizes all differ, so that a wrong axis leads to a wrong answer."""
    return distinct_integers(draw, axes, least, most)


def write(value, places=1):
    """Format a number, a tensor or a tuple as Python does, with ``places`` for floats; a matrix has aligned rows."""
    if isinstance(value, torch.Tensor) and value.ndim == 2:
        texts = [[write(item, places) for item in row] for row in value.tolist()]
        width = max(len(text) for row in texts for text in row)
        rows = ["[" + ", ".join(text.rjust(width) for text in row) + "]" for row in texts]
        return "[" + ",\n ".join(rows) + "]"
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        items = ", ".join(write(item, places) for item in value)
        trailing_comma = "," if len(value) == 1 and isinstance(value, tuple) else ""
        return f"[{items}]" if isinstance(value, list) else f"({items}{trailing_comma})"
    if isinstance(value, float):
        text = f"{value:.{places}f}"
        return text.removeprefix("-") if float(text) == 0 else text
    return str(value)
