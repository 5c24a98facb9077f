"""Says where the wrong numbers of a result are, and how they follow from the right ones."""

import itertools
import math
from collections import namedtuple
from fractions import Fraction

import torch

from .agree import as_int, close
from .words import round_for_card

# A wrong result, the expected result, and the sizes of the axes (a dict of str to int).
Case = namedtuple("Case", "got expected sizes")
# fraction of the largest number: a smaller error comes from something small that was added, or from rounding
MAX_NEAR_ERROR = 0.002


def describe_relation(case, shown_case, axes, allow_nearly_right=True):
    """Say how the wrong numbers of a case follow from the right ones, if the relation is simple.

    The text must also be true of a second case, ``shown_case``. ``axes`` are the words of the result's axes, in order.
    ``allow_nearly_right`` says whether numbers may be called nearly right.
    """
    got, expected, _ = case
    if not isinstance(expected, torch.Tensor):
        return ""
    if expected.is_floating_point() and expected.numel() > 3 and _is_finite(case):
        for order in itertools.permutations(range(expected.ndim)):
            permuted = expected.permute(order)
            if permuted.shape == got.shape and order != tuple(range(expected.ndim)) and close(got, permuted):
                return f"Your result is the right one with its axes in the order {order}."
        if (
            message := _factor_text(case, shown_case)
            or _shift_text(case, shown_case)
            or (allow_nearly_right and _nearly_right_text(case))
        ):
            return message
    return _pattern_text(got, expected, axes)


def _is_finite(case):
    return bool(case.got.isfinite().all() and case.expected.isfinite().all())


def _factor_text(case, shown_case):
    """Say by which factor all numbers are wrong: the same factor in both cases, or the same power of an axis size."""
    ratios = []
    for got, expected, _ in (case, shown_case):
        ratio = float((got * expected).sum() / (expected * expected).sum())
        if not ratio or not close(got, ratio * expected):
            return ""
        ratios.append(ratio)
    if math.isclose(ratios[0], 1, rel_tol=1e-3):
        return ""
    power_text = _power_text(ratios, [case.sizes, shown_case.sizes])
    if not math.isclose(*ratios, rel_tol=1e-3):
        return f"Every number is the right one times {power_text or 'a factor that changes with the sizes'}."
    equality_text = f", which is {power_text}" if power_text else ""
    return f"Every number is the right one times {round_for_card(ratios[0])}{equality_text}."


def _power_text(ratios, sizes):
    """Return the power of an axis size that equals the ratio in each case, as text; an empty text if there is none."""
    powers = {"{}": 1, "1/{}": -1, "√{}": 0.5, "1/√{}": -0.5}
    for word, size in sizes[0].items():
        if word in ("batch", "heads") or size == 1 or any(word not in each for each in sizes):
            continue
        for form, exponent in powers.items():
            if all(math.isclose(ratio, each[word] ** exponent, rel_tol=1e-4) for ratio, each in zip(ratios, sizes)):
                return form.format(word)
    return ""


def _shift_text(case, shown_case):
    shifts = [float((got - expected).mean()) for got, expected, _ in (case, shown_case)]
    fits = all(close(got - shift, expected) for (got, expected, _), shift in zip((case, shown_case), shifts))
    if not fits or not math.isclose(*shifts, rel_tol=1e-3):
        return ""
    return f"Every number is the right one plus {round_for_card(shifts[0])}."


def _nearly_right_text(case):
    error = float((case.got - case.expected).abs().max() / case.expected.abs().max())
    if error > MAX_NEAR_ERROR:
        return ""
    return (
        "All numbers are nearly right. Do you add something small, such as an eps, where the task adds nothing or a "
        "different value? Is a constant inexact?"
    )


def _pattern_text(got, expected, axes):
    """Say where in the result the wrong numbers are, or what they have in common."""
    wrong = wrong_positions(got, expected)
    if not wrong.all() and (message := _positions_text(wrong, axes)):
        return message
    wrong_values, expected_values = got[wrong], expected[wrong]
    if expected.dtype == torch.bool:
        return INVERTED_TEXTS[bool(expected_values.any()), bool(expected_values.all())]
    if wrong_values.isnan().any() and not expected_values.isnan().any():
        return "Your result contains NaN, which comes from 0/0, ∞ − ∞, or a softmax of scores that are all −∞."
    if wrong_values.isinf().any() and not expected_values.isinf().any():
        return "Your result contains infinity, which comes from division by zero, or the exponential of a large number."
    if got.numel() > 3 and torch.equal(got.flatten().sort().values, expected.flatten().sort().values):
        return "These are the right numbers, but in the wrong places."
    if got.numel() > 3 and torch.isin(wrong_values, expected).all():
        return (
            "Each of your numbers is one of the right ones, but some occur too often, and others too rarely or never."
        )
    if wrong_values.numel() == 1:
        return ""
    if wrong_values.is_floating_point() and torch.allclose(wrong_values.abs(), expected_values.abs(), 1e-4):
        return "The wrong numbers differ from the right ones only in sign."
    comparisons = {
        "is larger than": wrong_values > expected_values,
        "is smaller than": wrong_values < expected_values,
        "is further from zero than": wrong_values.abs() > expected_values.abs(),
        "is closer to zero than": wrong_values.abs() < expected_values.abs(),
    }
    return next(
        (
            f"Each wrong number {comparison} the right one."
            for comparison, condition in comparisons.items()
            if condition.all()
        ),
        "",
    )


INVERTED_TEXTS = {  # the keys say whether any of the wrong numbers should be True, and whether all should
    (False, False): "You return `True` in places where `False` belongs, and never the opposite.",
    (True, False): "You return `True` where `False` belongs, and `False` where `True` belongs.",
    (True, True): "You return `False` in places where `True` belongs, and never the opposite.",
}


def _positions_text(wrong, axes):
    """Say where the wrong numbers are: at some places along an axis, at all places but one, or above, below or on the
    diagonal."""
    for axis, word in enumerate(axes if len(axes) == wrong.ndim else ()):
        table = wrong.movedim(axis, 0).flatten(1) if wrong.ndim > 1 else wrong[:, None]
        partly_wrong, entirely_wrong = (
            positions.nonzero().flatten().tolist() for positions in (table.any(1), table.all(1))
        )
        first, last = partly_wrong[0], partly_wrong[-1]
        if len(partly_wrong) == len(entirely_wrong) == len(table) - 1 > 2:
            right_index = next(index for index in range(len(table)) if index not in entirely_wrong)
            return f"All numbers are wrong, except at {word} {right_index}."
        if len(partly_wrong) <= len(table) / 2 and len(partly_wrong) == last - first + 1:
            places = first if first == last else f"{first} to {last}"
            return f"The wrong numbers are all at {word} {places}; the others are right."
    if wrong.ndim > 1:
        rows, columns = wrong.nonzero()[:, -2:].T
        sides = {"above": rows < columns, "below": rows > columns, "on": rows == columns}
        for side, condition in sides.items():
            if condition.all() and len(rows) > 1:
                return f"The wrong numbers are all {side} the diagonal of the last two axes."
    return ""


def wrong_positions(got, expected):
    """Return a mask of the wrong numbers; if all numbers are close, although `agree` rejects the tensor, the whole mask
    is True."""
    wrong = ~torch.isclose(got.double(), expected.double(), 1e-4, 1e-5, equal_nan=True)
    return wrong if wrong.any() else torch.ones_like(wrong)


def describe_wrong_term(exercise, outcomes):
    """Say which term or factor makes an integer result wrong, if it is the same term or factor on all plain probes."""
    cases = [
        (list(map(int, probe.arguments)), got.value, expected.value)
        for probe, got, expected in zip(exercise.probes, outcomes, exercise.expected)
        if probe.plain and type(expected.value) is int and all(isinstance(a, int) for a in probe.arguments)
    ]
    if len(cases) < 3 or any(as_int(got) is None for _, got, _ in cases):
        return ""
    factors = {Fraction(as_int(got), expected) for _, got, expected in cases if expected}
    if len(factors) == 1:
        return f"Every number is the right one times {factors.pop()}."
    powers = itertools.product(range(3), repeat=len(exercise.arguments))
    for exponents in sorted(powers, key=lambda exponents: (sum(exponents), exponents)):
        terms = [math.prod(map(pow, arguments, exponents)) for arguments, _, _ in cases]
        multiples = {Fraction(as_int(got) - expected, term) for (_, got, expected), term in zip(cases, terms) if term}
        fits = all(term or as_int(got) == expected for (_, got, expected), term in zip(cases, terms))
        if len(multiples) == 1 and fits and sum(map(bool, terms)) > 1:
            names = [
                f"{name}**2" if exponent == 2 else name
                for name, exponent in zip(exercise.arguments, exponents)
                if exponent
            ]
            amount, size_word = abs(next(iter(multiples))), "large" if next(iter(multiples)) > 0 else "small"
            product = " * ".join(([str(amount)] if amount != 1 or not names else []) + names)
            return f"Every number is too {size_word} by `{product}`."
    return ""


def describe_wrong_share(exercise, outcomes):
    """Say on how many plain probes an integer result is wrong, and whether it is too large or too small."""
    pairs = [
        (as_int(got.value), expected.value)
        for probe, got, expected in zip(exercise.probes, outcomes, exercise.expected)
        if probe.plain and type(expected.value) is int
    ]
    wrong = [(got, expected) for got, expected in pairs if got != expected and got is not None]
    if not wrong:
        return ""
    is_larger = [got > expected for got, expected in wrong]
    direction = "too large" if all(is_larger) else "too small" if not any(is_larger) else "too large or too small"
    return f"Your number is {direction} for {len(wrong)} of {len(pairs)} ordinary inputs."
