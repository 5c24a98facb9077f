"""Models whose outputs are not one per token: an encoder–decoder with a fixed target, or one vector of a sentence."""

from ..trial import Fails, NotTried
from .parts import padding_changes_nothing
from .registry import asks, first


def need_source(t):
    if t.is_per_token:
        raise NotTried("one output per token; for an encoder–decoder, audit it as a function of its source as well")


@asks("padding of the source changes nothing")
def source_padding(t):
    """Does the output stay when a source is padded?"""
    need_source(t)
    t.adapter("padded")
    return padding_changes_nothing(t, "right", None if t.is_per_token is None else slice(None))


@asks("every source token is heard")
def source_heard(t):
    """Does every output move when a token of the source is replaced?"""
    need_source(t)
    deaf = ~(t.moves() > t.silence * t.size)
    if deaf.any():
        j, i = first(deaf)
        raise Fails(f"source token {j} changed: output {i} did not move ({int(deaf.sum())} of {deaf.numel()} pairs)")
