"""Finds the evidence for a card: the smallest input on which a function fails, and what the function returns for it."""

import torch

from .agree import agree, is_finite, metadata, tensors_in
from .mismatch import describe_mismatch
from .observe import Probe, observe
from .probes import Draw
from .relation import wrong_positions
from .words import axis_sizes, result_names, round_for_card, shortest_distinct

MAX_NUMBERS_SHOWN = 8  # tensors with at most this many numbers are shown in full


def failing_case(exercise, function, outcomes, failing_index):
    """Return the smallest failing input for the card: its sizes, its probe, and the actual and the expected outcome.

    The sizes are empty if no smaller input was searched for.
    """
    case = exercise.probes[failing_index], outcomes[failing_index], exercise.expected[failing_index]
    if (
        failing_index != 0
        or not exercise.sizes
        or outcomes[failing_index].error is not None
        or describe_mismatch(exercise, *case)
    ):
        return {}, *case
    return shrink(exercise, function, *case)


def shrink(exercise, function, *case):
    """Shrink the sizes one by one, as long as the function stays wrong.

    If nothing but the numbers was wrong on the original input, the results must keep the correct type and shape.
    """
    sizes, only_numbers_are_wrong = dict(exercise.sizes), not describe_mismatch(exercise, *case)
    for name in sizes:
        for size in range(1, sizes[name]):
            try:
                probe = Probe("", exercise.inputs(Draw(0), **{**sizes, name: size}), plain=True)
                expected = observe(exercise, exercise.reference, probe)
            except Exception:  # the inputs do not allow this size
                continue
            got = observe(exercise, function, probe)
            is_wrong = expected.error is None and got.error is None and not agree(got.value, expected.value)
            is_wrong = is_wrong and not (only_numbers_are_wrong and describe_mismatch(exercise, probe, got, expected))
            # If a size is too small to make sense, one or both of the results contain NaN, as for a mean of no tokens.
            pairs = zip((got, expected), case[1:])
            stays_finite = is_wrong and all(
                is_finite(shrunk.value) or not is_finite(original.value) for shrunk, original in pairs
            )
            if stays_finite and _has_sizes(exercise, probe, {**sizes, name: size}):
                sizes[name], case = size, (probe, got, expected)
                break
    return sizes, *case


def _has_sizes(exercise, probe, sizes):
    """Return whether a probe has the requested sizes: ``inputs`` may compute one axis's size from another's."""
    return all(sizes.get(word, size) == size for word, size in axis_sizes(exercise, probe))


def evidence_text(exercise, sizes, probe, got, expected):
    """Show an input, what the function returns for it, and what is expected."""
    if describe_mismatch(exercise, probe, got, expected):
        return ""
    sizes_text = f" ({', '.join(f'{name} {size}' for name, size in sizes.items())})" if sizes else ""
    argument_texts = [
        f"`{name} = {round_for_card(value)}`"
        for name, value in zip(exercise.arguments, probe.arguments)
        if (isinstance(value, (int, float, str, tuple, list)) and not tensors_in(value))
        or (got.error is None and 0 < sum(tensor.numel() for tensor in tensors_in(value)) <= MAX_NUMBERS_SHOWN)
    ]
    intro = f"The smallest input that shows the mistake{sizes_text}" if sizes_text else f"With {probe.name}"
    intro += f"{': ' if argument_texts else ''}{', '.join(argument_texts)}."
    if got.error is not None:
        return intro if argument_texts else ""
    if expected.error is not None:
        return f"{intro} You return `{round_for_card(got.value)}`, expected a `{type(expected.error).__name__}`."
    return f"{intro} {_difference_text(got.value, expected.value)}"


def _difference_text(got, expected):
    """Say where two results first differ."""
    names = result_names(expected)
    item, got, expected = first_wrong_item(got, expected)
    subject = f"in the {names[item]} you return" if item < len(names) > 1 else "you return"
    if not isinstance(expected, torch.Tensor) or expected.numel() <= MAX_NUMBERS_SHOWN:
        return "{} `{}`, expected `{}`.".format(subject[0].upper() + subject[1:], *shortest_distinct(got, expected))
    wrong = wrong_positions(got, expected)
    index = wrong.nonzero()[0].tolist()
    actual, required = shortest_distinct(*(tensor[tuple(index)].item() for tensor in (got, expected)))
    wrong_count_text = f"{int(wrong.sum())} of {wrong.numel()} numbers are wrong"
    return f"At index {index} {subject} {actual}, expected {required}; {wrong_count_text}."


def first_wrong_item(got, expected, item=0):
    """Return the index of the first wrong tensor in a result, the tensor itself, and the expected tensor."""
    if isinstance(expected, tuple) and not all(isinstance(each, int) for each in expected):
        for one, other in zip(got, expected):
            if not agree(one, other):
                return first_wrong_item(one, other, item)
            item += len(tensors_in(other))
    return item, got, expected


def wrong_cells(got, expected):
    """Return the first matrix (the last two axes of a result) that has wrong numbers, or None.

    The matrix is a list of rows, which contain bools: True for a wrong number.
    """
    is_tensor = isinstance(got, torch.Tensor) and isinstance(expected, torch.Tensor)
    if not is_tensor or metadata(got) != metadata(expected) or got.ndim == 0 or max(got.shape[-2:]) > 24:
        return None
    wrong = wrong_positions(got, expected)
    tables = wrong.reshape(-1, *wrong.shape[-2:]) if wrong.ndim > 1 else wrong[None, None]
    return next((table.tolist() for table in tables if table.any()), None)
