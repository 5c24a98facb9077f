"""Properties of repeated runs, of different batches, and of copies of the model."""

import torch

from ..trial import Fails
from .registry import audit_property, first_true


@audit_property("twice the same", needs="outputs")
def same_output_twice(trial):
    """Does the same input give the same output a second time, in evaluation mode?"""
    trial.require_same(trial.run(trial.x), trial.run(trial.x), "the same input again, in evaluation mode")


@audit_property("the input is left alone", needs="outputs")
def input_unchanged(trial):
    """Does the forward pass leave its input unchanged?"""
    x = trial.replace_tokens(trial.x)  # not `x` itself, which the model may already have overwritten
    original = x.clone()
    trial.run(x)
    if not torch.equal(x, original):
        raise Fails(f"the forward pass wrote into its input at position {first_true(x != original)[1]}")


@audit_property("a copy is on its own", needs="outputs")
def independent_copy(trial):
    """Does a copy of the model, such as one for a moving average, use only its own parameters?"""
    if trial.copy_error.startswith("a copy"):
        raise Fails(trial.copy_error)
    trial.require_copy()


@audit_property("rows apart")
def rows_are_independent(trial):
    """Does a sentence give the same output in different batches, and alone?"""
    batch = torch.cat([trial.x, trial.draw(2, trial.length)])
    other_batch = torch.cat([trial.x, trial.draw(2, trial.length)])
    trial.require_same(trial.run(other_batch)[:1], trial.run(batch)[:1], "sentence 0 with sentences 1 and 2 replaced")
    trial.require_same(trial.run(batch)[:1], trial.run(trial.x), "sentence 0 in a batch of 3 and alone")
    last_output = trial.run(batch.flip(0))[-1:]
    trial.require_same(last_output, trial.run(trial.x), "a sentence at the end of a batch of 3 and alone")
