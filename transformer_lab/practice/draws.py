"""What cases are drawn with, and how their numbers are written."""

import torch


def number(draw, least, most):
    """Return a whole number from ``least`` to ``most``."""
    return int(torch.randint(least, most + 1, (), generator=draw.generator))


def one_of(draw, options):
    """Return one of the options."""
    return options[number(draw, 0, len(options) - 1)]


def numbers(draw, count, least, most):
    """Return ``count`` whole numbers that differ, from ``least`` to ``most``."""
    order = torch.randperm(most - least + 1, generator=draw.generator)
    return tuple(least + int(place) for place in order[:count])


def a_shape(draw, axes=3, least=2, most=6):
    """Return a shape of sizes that differ, so that no wrong axis hides behind an equal size."""
    return numbers(draw, axes, least, most)


def write(value, places=1):
    """Write a number, a tensor or a tuple as Python does, short: floats with ``places``, a matrix row by row."""
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if isinstance(value, list) and value and isinstance(value[0], list):
        rows = [write(row, places) for row in value]
        return "[" + ",\n ".join(rows) + "]"
    if isinstance(value, list):
        return "[" + ", ".join(write(item, places) for item in value) + "]"
    if isinstance(value, tuple):
        items = ", ".join(write(item, places) for item in value)
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, float):
        text = f"{value:.{places}f}"
        return text.removeprefix("-") if float(text) == 0 else text
    return str(value)
