"""Properties of the outputs for one input: in a second run, in different batches, and on a copy of the model."""

import torch

from ..trial import Fails
from .registry import audit_property, first_true


@audit_property("twice the same", needs="outputs")
def same_output_twice(t):
    """Does the same input give the same output a second time, in evaluation mode?"""
    t.require_same(t.run(t.x), t.run(t.x), "the same input again, in evaluation mode")


@audit_property("the input is left alone", needs="outputs")
def input_unchanged(t):
    """Does the forward pass leave its input unchanged?"""
    x = t.replace_tokens(t.x)  # not `x` itself, which the model may already have overwritten
    original = x.clone()
    t.run(x)
    if not torch.equal(x, original):
        raise Fails(f"the forward pass wrote into its input at position {first_true(x != original)[1]}")


@audit_property("a copy is on its own", needs="outputs")
def independent_copy(t):
    """Does a copy of the model, such as one for a moving average, use only its own parameters?"""
    if t.copy_error.startswith("a copy"):
        raise Fails(t.copy_error)
    t.require_copy()


@audit_property("rows apart")
def rows_are_independent(t):
    """Does a sentence give the same output in different batches, and alone?"""
    batch = torch.cat([t.x, t.draw(2, t.length)])
    other_batch = torch.cat([t.x, t.draw(2, t.length)])
    t.require_same(t.run(other_batch)[:1], t.run(batch)[:1], "sentences 1 and 2 replaced: sentence 0")
    t.require_same(t.run(batch)[:1], t.run(t.x), "sentence 0 in a batch of 3 and alone")
    last_output = t.run(batch.flip(0))[-1:]
    t.require_same(last_output, t.run(t.x), "a sentence at the end of a batch of 3 and alone")
