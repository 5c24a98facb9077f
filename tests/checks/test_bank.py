"""The checks accept all right answers and reject all wrong ones of a bank whose authors had not seen the checks."""

import inspect
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bank import answers

from transformer_lab.checks import EXERCISES
from transformer_lab.checks.gradients import wrong_gradients
from transformer_lab.checks.observe import run_guarded
from transformer_lab.checks.probes import Outcomes

# Mistakes that an exercise's docstring rules out, but that the exercise's check does not detect yet.
NOT_SEEN = {
    "A small number is added to the normalizer, so the weights do not sum to one where features are tiny.",
    "The features are multiplied by 0, so a NaN or infinity in the padding stays.",
}

# This answer is right only if `clamp` passes gradients on at its bound. From PyTorch 2.14 on, `clamp` does not pass
# them on, and a query that sees one key gets a wrong gradient.
LEANS_ON_CLAMP = {"third_author.masked_attention.5"}


def passes_on_at_its_bound():
    x = torch.ones((), requires_grad=True)
    return torch.autograd.grad(x.clamp(min=1.0), x)[0] == 1


def accepted(exercise, function):
    """Return the verdict of `diagnose`, without the search for a name or a description."""
    outcomes = Outcomes(exercise, function)
    same = all(outcomes[number].same(expected) for number, expected in enumerate(exercise.expected))
    return same and not wrong_gradients(exercise, function)


IN_IT = [exercise for exercise in EXERCISES if any(answer.exercise is exercise for answer in answers())]


@pytest.mark.parametrize("exercise", IN_IT, ids=lambda exercise: exercise.name)
def test_right_answers_are_accepted_and_wrong_ones_rejected(exercise):
    those = [answer for answer in answers() if answer.exercise is exercise]
    assert len({answer.truth for answer in those}) >= 9
    for answer in those:
        if answer.truth in NOT_SEEN:
            continue
        is_accepted, _ = run_guarded(partial(accepted, exercise, answer.function))
        right = answer.truth is None and (answer.name not in LEANS_ON_CLAMP or passes_on_at_its_bound())
        assert is_accepted == right, f"{answer.truth or 'right'}:\n{inspect.getsource(answer.function)}"
