"""Properties of models that do not return one output for each input token.

These are encoder–decoders, audited as functions of their source, and sentence encoders.
"""

from ..trial import Fails, NotTried
from .parts import padding_changes_nothing
from .registry import audit_property, first_true


def require_source(trial):
    if trial.is_per_token:
        raise NotTried(
            "the model returns one output per token; audit an encoder–decoder once more, as a function of its source"
        )


@audit_property("padding of the source changes nothing")
def source_padding(trial):
    """Does the output stay the same when the source is padded?"""
    require_source(trial)
    trial.adapter("padded")
    return padding_changes_nothing(trial, "right", None if trial.is_per_token is None else slice(None))


@audit_property("every source token is heard")
def every_source_token_has_influence(trial):
    """Does every output move when a token of the source is replaced?"""
    require_source(trial)
    unmoved = ~(trial.influence() > trial.noise_floor * trial.output_std)
    if unmoved.any():
        j, i = first_true(unmoved)
        count = f"{int(unmoved.sum())} of {unmoved.numel()} pairs"
        raise Fails(f"source token {j} changed: output {i} did not move ({count})")
