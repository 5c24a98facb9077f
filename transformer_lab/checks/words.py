"""Writes shapes and numbers as text for a card."""

from decimal import Decimal

import torch

from .agree import tensors_in
from .observe import observe


def axis_sizes(exercise, probe):
    """Return pairs of a word and a size, for the axes of a probe's arguments and of the result."""
    values = dict(zip(exercise.arguments, probe.arguments))
    values["return"] = observe(exercise, exercise.reference, probe).value
    return [
        pair
        for name, value in values.items()
        for axes, tensor in zip(exercise.axes.get(name, "").split(", "), tensors_in(value))
        if len(axes.split()) == tensor.ndim
        for pair in zip(axes.split(), tensor.shape)
    ]


def axis_words(exercise, probe):
    """Return a dict from sizes to axis words, without the sizes that two words share."""
    words, ambiguous = {}, set()
    for word, size in axis_sizes(exercise, probe):
        if words.setdefault(size, word) != word:
            ambiguous.add(size)
    if probe is exercise.probes[0]:
        for word, size in exercise.sizes.items():
            words.setdefault(size, word)
    return {size: word for size, word in words.items() if size not in ambiguous and not word.isdigit()}


def in_words(shape, words):
    """Write a shape with the words of its axes: ``(batch 2, seq 7, 15)``."""
    return f"({', '.join(f'{words[size]} {size}' if size in words else str(size) for size in shape)})"


ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def result_names(value, name="result"):
    """Return names for the tensors of a result, such as *result* or *first item of the third result*."""
    if not isinstance(value, tuple) or len(value) > len(ORDINALS):
        return [name] * max(1, len(tensors_in(value)))
    joiner = "" if name == "result" else "item of the "
    items = [(f"{ordinal} {joiner}{name}", item) for ordinal, item in zip(ORDINALS, value) if tensors_in(item)]
    return [tensor_name for item_name, item in items for tensor_name in result_names(item, item_name)]


def round_for_card(value, digits=4):
    """Round numbers to ``digits`` decimal places, or to ``digits`` significant digits if the magnitude is below 1."""
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if type(value) in (list, tuple):
        return type(value)(round_for_card(item, digits) for item in value)
    if type(value) is int and abs(value) >= 1e20:  # Python itself refuses to print an int with thousands of digits
        return f"{Decimal(value):.{digits}e}"
    if not isinstance(value, float):
        return value
    return round(value, digits) if abs(value) >= 1 else float(f"{value:.{digits}g}")


def shortest_distinct(one, other):
    """Return two values, rounded to the smallest number of digits that shows the difference."""
    pairs = ((round_for_card(one, digits), round_for_card(other, digits)) for digits in (4, 6, 9, 17))
    return next((pair for pair in pairs if str(pair[0]) != str(pair[1])), (one, other))


def dtype_name(dtype):
    return f"`{str(dtype).removeprefix('torch.')}`"
