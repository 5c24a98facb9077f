"""How a hunt describes known mistakes: all of them by kind, and a single one by what it does."""

from collections import Counter
from copy import copy
from functools import cache
from typing import NamedTuple

import torch

from . import smallest_input
from .agree import agree, metadata, tensors_in
from .observe import Probe, observe
from .probes import Outcomes, each_tensor
from .relation import wrong_positions
from .words import axis_words, dtype_name, in_words, round_for_card, shortest_distinct

MAX_COMPARED = 4  # escaped mistakes that are compared, to find the one that shows on the smallest input


class Kind(NamedTuple):
    """A kind of mistake in words, and the number of the first probe that shows it."""

    description: str
    probe_number: int


@cache
def kinds_by_id(exercise):
    """Return a dict that maps the id of each mistake that a test can see to the mistake's `Kind`.

    If a mistake shows with ordinary input, its kind is its effect on the result. For all other mistakes, the kind is a
    special input that shows the mistake. These inputs are chosen one by one: each time, the input that shows the
    largest number of mistakes that still have no kind.
    """
    exercise = without_facts(exercise)
    special_numbers, kind_of = {}, {}
    for id, mistake in exercise.mistakes.items():
        outcomes = Outcomes(exercise, mistake.function)
        numbers = [
            number
            for number, probe in enumerate(exercise.probes)
            if not probe.this_device_only and not outcomes[number].same(exercise.expected[number])
        ]
        if numbers[:1] == [0]:
            kind_of[id] = Kind(effect_text(outcomes[0], exercise.expected[0]), 0)
        elif numbers:
            special_numbers[id] = numbers
    while special_numbers:
        counts = Counter(number for numbers in special_numbers.values() for number in numbers)
        best_number = max(sorted(counts), key=lambda number: counts[number])
        kind = Kind(f"wrong only with {exercise.probes[best_number].name}", best_number)
        kind_of |= {id: kind for id, numbers in special_numbers.items() if best_number in numbers}
        special_numbers = {id: numbers for id, numbers in special_numbers.items() if best_number not in numbers}
    return {id: kind_of[id] for id in exercise.mistakes if id in kind_of}


@cache
def without_facts(exercise):
    """Return the exercise without facts about intermediate tensors, which a test cannot see."""
    if exercise.facts is None:
        return exercise
    copied_exercise = copy(exercise)
    copied_exercise.__dict__.pop("expected", None)
    copied_exercise.facts = lambda arguments, result, intermediates: exercise.facts(arguments, result, ())
    return copied_exercise


def count_kinds(escaped, known):
    """Return (description, number of escaped mistakes, number of all mistakes) for each kind with escaped mistakes."""
    totals = Counter(kind.description for kind in known.values())
    counts = Counter(kind.description for kind in escaped.values())
    return [(description, count, totals[description]) for description, count in counts.most_common()]


def effect_text(got, expected):
    """Return the kind of a mistake in words: what the mistake does to a result."""
    if got.error is not None:
        return "an error instead of a result"
    if expected.error is not None:
        return "a result instead of an error"
    if agree(got.value, expected.value):
        if got.changed_argument:
            return "right numbers, and an argument changed"
        return f"right numbers, but the result is {wrong_facts_text(got.facts, expected.facts)}"
    actual, required = differing_parts(got.value, expected.value)
    if not isinstance(required, torch.Tensor):
        if type(actual) is not type(required):
            return "a result of a different type"
        if isinstance(required, (tuple, list)):
            return "too many numbers, or too few"
        return "a number too large" if actual > required else "a number too small"
    if not isinstance(actual, torch.Tensor) or actual.dtype != required.dtype:
        return "a result of a different type"
    if actual.shape != required.shape:
        return "a different shape"
    if required.is_floating_point() and not actual.isfinite().all() and required.isfinite().all():
        return "NaN or infinity"
    if agree(actual.flatten().sort()[0], required.flatten().sort()[0]):
        return "right numbers in wrong places"
    if required.ndim and required.is_floating_point() and agree(actual.sum(-1), required.sum(-1)):
        return "wrong numbers, but each row has the right sum"
    if required.is_floating_point() and required.numel() > 1:
        difference, largest = (actual - required).abs().max(), required.abs().max()
        if difference < largest / 100:
            return "numbers off by less than one percent"
        if agree(actual * (actual * required).sum() / actual.square().sum(), required):
            return "right numbers times a factor"
    return "wrong numbers in the right shape"


def wrong_facts_text(facts, required):
    """Return the wrong facts as text."""
    return ", ".join(str(value) for fact, value in facts.items() if value != required[fact])


def differing_parts(got, expected):
    """Return the first items in which two results differ, or the results themselves if they have no items."""
    while isinstance(expected, (tuple, list)) and isinstance(got, (tuple, list)) and len(got) == len(expected):
        got, expected = next(pair for pair in zip(got, expected) if not agree(*pair))
    return got, expected


# A mistake that escapes, and a right answer that is refused


def describe_smallest(exercise, escaped):
    """Describe the mistake that shows on the smallest input, by what it does and not by its name.

    ``escaped`` maps the id of each mistake to its kind.
    """
    compared_mistakes = list(escaped.items())[:MAX_COMPARED]
    cases = [small_case(exercise, exercise.mistakes[id].function, kind.probe_number) for id, kind in compared_mistakes]
    probe, got, expected = min(cases, key=lambda case: sum(tensor.numel() for tensor in tensors_in(case[0].arguments)))
    is_special = compared_mistakes[0][1].probe_number > 0
    call_text = arguments_text(exercise, probe, shapes=not is_special)
    if is_special:
        input_text = f", with {probe.name} ({call_text}):" if call_text else f", with {probe.name}:"
    else:
        input_text = f": for {call_text}," if call_text else ":"
    return f"One that escapes{input_text} {contrast_text(exercise, probe, got, expected)}"


def small_case(exercise, function, number):
    """Return a small probe that shows a mistake, in round numbers if possible, and the actual and expected outcomes."""
    exercise_without_facts = without_facts(exercise)
    probe, expected = exercise.probes[number], exercise_without_facts.expected[number]
    got = observe(exercise_without_facts, function, probe)
    if number or got.error is not None or expected.error is not None:
        return probe, got, expected
    if agree(got.value, expected.value):  # `smallest_input.shrink` compares only the numbers
        return probe, got, expected
    _, probe, got, expected = smallest_input.shrink(exercise, function, probe, got, expected)
    round_probe = Probe(probe.name, each_tensor(to_small_integers, probe.arguments))
    outcomes = [
        observe(exercise_without_facts, f, round_probe)
        for f in (function, exercise.reference, *exercise.equivalents.values())
    ]
    if all(outcome.error is None for outcome in outcomes):
        round_got, round_expected, *equivalents = outcomes
        if not round_got.same(round_expected) and all(outcome.same(round_expected) for outcome in equivalents):
            return round_probe, round_got, round_expected
    return probe, got, expected


def to_small_integers(tensor):
    """Replace normally distributed numbers with small whole numbers."""
    return (2 * tensor).round() if tensor.is_floating_point() else tensor


def arguments_text(exercise, probe, *, shapes=True):
    """Write the arguments of a call: small ones in full and, if ``shapes`` is True, larger tensors by their shape."""
    words = axis_words(exercise, probe)
    argument_texts = []
    for name, value in zip(exercise.arguments, probe.arguments):
        count = sum(tensor.numel() for tensor in tensors_in(value))
        if isinstance(value, torch.Tensor) and count > smallest_input.MAX_NUMBERS_SHOWN:
            argument_texts += [f"`{name}` of shape {in_words(value.shape, words)}"] * shapes
        elif count <= smallest_input.MAX_NUMBERS_SHOWN and not callable(value):
            argument_texts.append(f"`{name} = {round_for_card(value)}`")
    return ", ".join(argument_texts)


def contrast_text(exercise, probe, got, expected, contrast="it must return"):
    """Say what a function does with a probe, and, after the words ``contrast``, what the reference returns."""
    if got.error is not None:
        return f"it raises `{type(got.error).__name__}`."
    if expected.error is not None:
        return f"it returns `{round_for_card(got.value)}`; it must raise `{type(expected.error).__name__}`."
    if agree(got.value, expected.value):
        if got.changed_argument:
            return f"its numbers are right, but it changes its argument `{got.changed_argument}`."
        return f"its numbers are right, but the result is {wrong_facts_text(got.facts, expected.facts)}."
    actual, required = differing_parts(got.value, expected.value)
    are_tensors = isinstance(actual, torch.Tensor) and isinstance(required, torch.Tensor)
    if are_tensors and metadata(actual) != metadata(required):
        words = axis_words(exercise, probe)
        texts = (f"{in_words(t.shape, words)}, {dtype_name(t.dtype)}" for t in (actual, required))
        return "it returns a tensor of shape {}; {contrast} {}.".format(*texts, contrast=contrast)
    where_text = ""
    if are_tensors and required.numel() > smallest_input.MAX_NUMBERS_SHOWN:
        index = tuple(wrong_positions(actual, required).nonzero()[0].tolist())
        where_text, actual, required = f" at index {list(index)}", actual[index].item(), required[index].item()
    actual, required = shortest_distinct(actual, required)
    return f"it returns `{actual}`{where_text}; {contrast} `{required}`."
