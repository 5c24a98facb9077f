"""Every exercise's check accepts the reference and other correct answers, and names each known mistake as itself."""

from copy import deepcopy
from itertools import combinations

import pytest
import torch

import transformer_lab as tl
from sampling import every_third
from transformer_lab.checks.diagnose import diagnose, recognize
from transformer_lab.checks.gradients import _gradients, describe_wrong_gradients
from transformer_lab.checks.probes import strided, strided_with_whole_rows

MAX_PAIRS = 20  # pairs of mistakes that are tried for each exercise, spread evenly over all pairs
EXERCISES = [pytest.param(exercise, id=exercise.name) for exercise in tl.checks.EXERCISES]
RIGHT_FUNCTIONS = [
    pytest.param(exercise, function, id=f"{exercise.name}-{name}")
    for exercise in tl.checks.EXERCISES
    for name, function in {"reference": exercise.reference, **exercise.equivalents}.items()
]
WRONG_CALLS = [
    pytest.param(exercise, mistake, id=f"{exercise.name}-{mistake.id}")
    for exercise in tl.checks.EXERCISES
    for mistake in exercise.mistakes.values()
]


@pytest.mark.parametrize("exercise, function", RIGHT_FUNCTIONS)
def test_a_right_function_is_correct(exercise, function):
    report = diagnose(exercise, function)
    assert (report.status, report.mistake) == ("correct", None), report


@pytest.mark.parametrize("exercise, mistake", every_third(WRONG_CALLS))
def test_a_known_mistake_is_named_as_itself(exercise, mistake):
    report = diagnose(exercise, mistake.function)
    assert report.status in ("incorrect", "error")
    assert (report.mistake, report.stage) == (mistake.id, mistake.stage), report
    assert "Besides" not in report.message


@pytest.mark.parametrize("exercise", every_third(EXERCISES, 1))
def test_a_function_that_returns_nothing_gets_a_message(exercise):
    report = diagnose(exercise, lambda *arguments: None)
    assert (report.status, report.mistake) == ("incorrect", "nothing_returned")
    assert "ends without a `return`" in report.message


@pytest.mark.parametrize("exercise", EXERCISES)
def test_no_two_mistakes_have_the_same_outcomes(exercise):
    for first_id, second_id in combinations(exercise.mistakes, 2):
        pairs = zip(exercise.known_outcomes[(first_id,)], exercise.known_outcomes[(second_id,)])
        if all(outcome.same(other_outcome) for outcome, other_outcome in pairs):
            # Two mistakes may have the same outcomes only if both results are right and the gradients are wrong in
            # different ways.
            gradient_errors = {
                describe_wrong_gradients(exercise, exercise.mistakes[id].function) for id in (first_id, second_id)
            }
            assert len(gradient_errors) == 2, f"{first_id} and {second_id}"


@pytest.mark.parametrize("exercise", every_third(EXERCISES, 2))
def test_a_pair_of_mistakes_is_named_as_itself_or_as_a_pair_with_the_same_outcomes(exercise):
    pairs = [ids for ids in exercise.known_outcomes if len(ids) == 2]
    for ids in pairs[:: 1 + len(pairs) // MAX_PAIRS]:
        outcomes = exercise.known_outcomes[ids]
        if same_outcomes(outcomes, exercise.expected):
            continue  # one mistake undoes the other
        match = recognize(exercise, outcomes)
        if match is None:
            # several pairs have the same outcomes, so none is named
            assert sum(same_outcomes(outcomes, exercise.known_outcomes[other_ids]) for other_ids in pairs) > 1, ids
        else:
            assert same_outcomes(match.outcomes, exercise.known_outcomes.get(match.ids, exercise.expected)), (
                ids,
                match.names,
            )


def same_outcomes(outcomes, others):
    return all(outcome.same(other) for outcome, other in zip(outcomes, others))


@pytest.mark.parametrize("exercise", EXERCISES)
def test_an_exercise_is_complete(exercise):
    assert len(exercise.mistakes) >= 4, "an exercise needs at least four mistakes"
    assert len(exercise.equivalents) >= 1, "an exercise needs at least one right answer that is written differently"
    assert all(20 < len(hint) < 400 for hint in exercise.hints), "a hint must have 20 to 400 characters"
    assert exercise.hints[0].rstrip().endswith("?"), "the first hint must be a question"
    for mistake in exercise.mistakes.values():
        assert 80 < len(mistake.text) < 700, f"{mistake.id}: its text must have 80 to 700 characters"
        assert mistake.text.endswith((".", "?")), f"{mistake.id}: its text must consist of whole sentences"
        text_beside_another = mistake.text_beside_another
        assert len(text_beside_another) > 60 and not set("{}") & set(text_beside_another), (
            f"{mistake.id}: without the parts in braces, its text must have more than 60 characters"
        )
    sizes = list(exercise.sizes.values())
    assert len(set(sizes)) == len(sizes), "sizes must differ"


@pytest.mark.parametrize("exercise", EXERCISES)
def test_every_property_holds_for_the_reference_and_fails_for_a_mistake(exercise):
    for sentence, holds in exercise.properties.items():
        assert holds(exercise.reference, *exercise.probes[0].arguments), sentence
        assert not all(property_holds(holds, m.function, exercise) for m in exercise.mistakes.values()), (
            f"this property never fails: {sentence}"
        )


def property_holds(holds, function, exercise):
    try:
        # a copy, since some mistakes change their arguments
        return holds(function, *deepcopy(exercise.probes[0].arguments))
    except Exception:
        return False


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_references_own_gradients_are_finite(exercise):
    """If the reference's gradients are not finite, the check does not compare an answer's gradients."""
    for probe, expected in zip(exercise.probes, exercise.expected):
        for gradient in (expected.error is None and _gradients(exercise.reference, probe)) or ():
            assert gradient is None or gradient.isfinite().all(), probe.name


def test_a_strided_copy_is_equal_and_not_contiguous():
    x = torch.arange(24.0).reshape(2, 3, 4)
    copied = strided(x)
    assert torch.equal(copied, x) and not copied.is_contiguous()


def test_a_strided_copy_with_whole_rows_keeps_the_stride_of_its_last_axis():
    for sizes in ((), (3,), (2, 3), (2, 3, 4, 5)):
        x = torch.randn(sizes)
        copied = strided_with_whole_rows(x)
        assert torch.equal(copied, x) and copied.stride()[-1:] == x.stride()[-1:]
        assert copied.is_contiguous() == (x.ndim < 3)
