"""The checks name slips that any exercise allows, such as a wrong dtype, even together with a known mistake."""

import pytest
import torch

import transformer_lab as tl
from sampling import every_third
from transformer_lab.checks.agree import tensors_in
from transformer_lab.checks.diagnose import diagnose, recognize
from transformer_lab.checks.probes import Outcomes, each_tensor

# Each slip is combined with this many known mistakes of each exercise, spread evenly over the exercise's mistakes.
MISTAKES_PER_SLIP = 2
EXERCISES = [pytest.param(exercise, id=exercise.name) for exercise in tl.checks.EXERCISES]


def in_dtype(dtype):
    return lambda value: each_tensor(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor, value)


def as_floats(value):
    if isinstance(value, tuple) and not tensors_in(value):
        return tuple(map(as_floats, value))
    return float(value) if type(value) is int else value


def changing_the_result(change):
    """Return a decorator that applies ``change`` to the result of a function."""
    return lambda function: lambda *arguments: change(function(*arguments))


def changing_its_arguments(function):
    def changed(*arguments):
        # clones, since the result may be a view of the arguments
        result = function(*each_tensor(torch.Tensor.clone, arguments))
        for tensor in tensors_in(arguments):
            if tensor.dtype != torch.bool:
                tensor.add_(1)
        return result

    return changed


def asserting(function):
    def asserted(*arguments):
        try:
            return function(*arguments)
        except ValueError as error:
            raise AssertionError(str(error)) from None

    return asserted


SLIPS = {
    "not_a_tensor": changing_the_result(lambda value: each_tensor(torch.Tensor.tolist, value)),
    "as_float": changing_the_result(as_floats),
    "in_float32": changing_the_result(in_dtype(torch.float32)),
    "in_float64": changing_the_result(in_dtype(torch.float64)),
    "in_another_dtype": changing_the_result(
        lambda value: each_tensor(lambda tensor: tensor if tensor.is_floating_point() else tensor.float(), value)
    ),
    "axes_of_size_one": changing_the_result(lambda value: each_tensor(lambda tensor: tensor[None], value)),
    "changed_in_place": changing_its_arguments,
    "error_of_another_class": asserting,
    "axes_in_another_order": changing_the_result(lambda value: value.mT if getattr(value, "ndim", 0) > 1 else value),
    "items_in_another_order": changing_the_result(lambda value: value[::-1] if isinstance(value, tuple) else value),
    "cut_off_from_gradients": changing_the_result(lambda value: each_tensor(torch.Tensor.detach, value)),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_shared_slip_is_named_unless_a_mistake_of_the_exercise_has_the_same_outcomes(slip):
    named_mistakes = {}
    for exercise in tl.checks.EXERCISES:
        report = diagnose(exercise, SLIPS[slip](exercise.reference))
        # if an exercise has `facts`, its result may be a view, which changes together with its base
        if report.status != "correct" and not exercise.facts:
            named_mistakes[exercise.name] = report.mistake
            assert report.mistake == slip or report.mistake in exercise.mistakes, (exercise.name, report.message)
    assert slip in named_mistakes.values()


@pytest.mark.parametrize("exercise", every_third(EXERCISES))
def test_a_known_mistake_is_named_beside_a_shared_slip(exercise):
    """A function with the named mistakes and slips must have the same outcomes as the checked function."""
    mistakes = list(exercise.mistakes.values())
    named_flags = []
    for mistake in mistakes[:: 1 + len(mistakes) // MISTAKES_PER_SLIP]:
        for slip in SLIPS.values():
            function = slip(mistake.function)
            outcomes = Outcomes(exercise, function)
            unchanged = all(
                outcome.same(known) for outcome, known in zip(outcomes, exercise.known_outcomes[(mistake.id,)])
            )
            if unchanged or outcomes[0].error is not None or is_right(exercise, outcomes):
                continue  # the slip has no effect, or the mistake raises an error first
            match = recognize(exercise, outcomes, function)
            named_flags.append(match is not None)
            if match:
                assert has_same_outcomes(exercise, match, outcomes), (mistake.id, match.names)
    assert sum(named_flags) >= len(named_flags) / 3


def is_right(exercise, outcomes):
    return all(outcome.same(expected) for outcome, expected in zip(outcomes, exercise.expected))


def has_same_outcomes(exercise, match, outcomes):
    """Return whether the function with the named mistakes and slips has these outcomes on plain probes."""
    mistakes = [exercise.mistakes[id] for id in match.ids]
    if any(mistake.recognizes for mistake in mistakes) or match.ids not in {(), *exercise.known_outcomes}:
        # no fixed outcomes: a mistake has `recognizes`, or the two mistakes are visible only on different inputs
        return True
    function = exercise.combined_function(mistakes) if mistakes else exercise.reference
    for found_slip in reversed(match.slips):
        if found_slip.slip.id in AMBIGUOUS_SLIPS:
            return True
        function = SLIPS[found_slip.slip.id](function)
    expected_outcomes = Outcomes(exercise, function)
    plain = [number for number, probe in enumerate(exercise.probes) if probe.plain]
    return all(outcomes[number].same(expected_outcomes[number], torch.float32) for number in plain)


AMBIGUOUS_SLIPS = {"in_another_dtype", "axes_of_size_one", "axes_in_another_order", "not_a_tensor"}
