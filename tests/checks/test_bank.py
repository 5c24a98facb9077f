"""The checks judge all answers of a bank correctly, although the answers' authors had not seen the checks."""

import inspect
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bank import answers

from transformer_lab.checks import EXERCISES
from transformer_lab.checks.gradients import describe_wrong_gradients
from transformer_lab.checks.observe import run_guarded
from transformer_lab.checks.probes import Outcomes

# Mistakes that an exercise's docstring rules out, but that the exercise's check does not detect yet.
UNDETECTED_MISTAKES = {
    "A small number is added to the normalizer, so the weights do not sum to one where features are tiny.",
    "The features are multiplied by 0, so a NaN or infinity in the padding stays.",
}

# This answer is right only if `clamp` passes gradients on at its bound. From PyTorch 2.14 on, `clamp` does not pass
# them on, so a query that sees only one key gets a wrong gradient.
ANSWERS_THAT_DEPEND_ON_CLAMP = {"third_author.masked_attention.5"}


def clamp_passes_gradients_at_its_bound():
    x = torch.ones((), requires_grad=True)
    return torch.autograd.grad(x.clamp(min=1.0), x)[0] == 1


def is_correct(exercise, function):
    """Return whether `diagnose` would call the function correct, but do not search for a mistake's name and text."""
    outcomes = Outcomes(exercise, function)
    same_outcomes = all(outcomes[number].same(expected) for number, expected in enumerate(exercise.expected))
    return same_outcomes and not describe_wrong_gradients(exercise, function)


EXERCISES_IN_BANK = [exercise for exercise in EXERCISES if any(answer.exercise is exercise for answer in answers())]


@pytest.mark.parametrize("exercise", EXERCISES_IN_BANK, ids=lambda exercise: exercise.name)
def test_right_answers_are_accepted_and_wrong_ones_rejected(exercise):
    answers_of_exercise = [answer for answer in answers() if answer.exercise is exercise]
    assert len({answer.truth for answer in answers_of_exercise}) >= 9
    for answer in answers_of_exercise:
        if answer.truth in UNDETECTED_MISTAKES:
            continue
        is_accepted, _ = run_guarded(partial(is_correct, exercise, answer.function))
        expected = answer.truth is None and (
            answer.name not in ANSWERS_THAT_DEPEND_ON_CLAMP or clamp_passes_gradients_at_its_bound()
        )
        assert is_accepted == expected, f"{answer.truth or 'right'}:\n{inspect.getsource(answer.function)}"
