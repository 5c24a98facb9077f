"""Properties of the outputs for one sentence: padded, in parts with a cache, and in a row with another sentence."""

import torch

from ..trial import Fails, NotTried, WrongForm, as_output
from .registry import audit_property, first_true


def padded_batch(t, side):
    """Return a batch of two sentences, the second with 3 pads, and the mask of the real tokens.

    Also return the second sentence without its pads, and the slice of its real tokens.
    """
    keep = torch.ones(2, t.length, dtype=torch.bool, device=t.device)
    real_slice = slice(0, t.length - 3) if side == "right" else slice(3, None)
    keep[1] = False
    keep[1, real_slice] = True
    sentence = t.draw(1, t.length - 3)
    x = t.padding_like(keep, t.pad)
    x[0], x[1, real_slice] = t.x[0], sentence[0]
    return x, keep, sentence, real_slice


def padding_changes_nothing(t, side, output_slice):
    """Compare a padded sentence's outputs with the outputs of the sentence alone.

    The outputs are those in ``output_slice``, or those of the real tokens if it is None. If the model accepts only one
    length, and does not ignore the mask ``keep``, compare the outputs with those of the same sentence with a different
    padding token.
    """
    x, keep, sentence, real_slice = padded_batch(t, side)
    output_slice = real_slice if output_slice is None else output_slice
    actual = t.padded(x, keep)[1:, output_slice]
    try:
        t.require_length(t.length - 3)
    except NotTried as reason:
        if torch.equal(t.padded(x, torch.ones_like(keep))[1:, output_slice], actual):
            raise
        other_numbers = t.padding_like(
            keep, t.pad + 1 if t.vocab_size is None or t.pad + 1 < t.vocab_size else t.pad - 1
        )
        other_x = torch.where(keep if x.ndim == 2 else keep[..., None], x, other_numbers)
        t.require_same(t.padded(other_x, keep)[1:, output_slice], actual, "a different number as padding")
        return f"with two numbers as padding, and not compared with the sentence alone: {reason}"
    alone_output = t.padded(sentence, torch.ones_like(keep[1:, real_slice]))
    t.require_same(actual, alone_output, f"{t.length - 3} tokens, with 3 pads on the {side} and alone")


def padding_property(side):
    def alone_and_padded(t):
        """Does a sentence give the same output alone and padded in a batch?"""
        t.adapter("padded")
        t.require_per_token()
        return padding_changes_nothing(t, side, None)

    return alone_and_padded


for side in ("right", "left"):
    audit_property(f"alone = in a padded batch, {side}")(padding_property(side))


@audit_property("finite where nothing is seen")
def outputs_are_finite(t):
    """Are outputs and gradients finite when a row of the batch consists only of padding?"""
    t.adapter("padded")
    keep = torch.ones(3, t.length, dtype=torch.bool, device=t.device)
    keep[1, :3] = keep[2] = False
    x = torch.where(keep if t.x.ndim == 2 else keep[..., None], t.draw(3, t.length), t.padding_like(keep, t.pad))
    output = as_output(t.adapter("padded")(t.model, x, keep), "padded", x)
    not_finite = ~output.isfinite().all(-1)
    if not_finite.any():
        row, position = first_true(not_finite)
        raise Fails(f"{int(not_finite.sum())} outputs are not finite, the first at position {position} of row {row}")
    parameters = [p for p in t.model.parameters() if p.requires_grad]
    if parameters and output.requires_grad:
        real_outputs = output[keep] if not_finite.shape == keep.shape else output[:2]
        gradients = torch.autograd.grad(real_outputs.pow(2).sum(), parameters, allow_unused=True)
        if not all(g is None or g.isfinite().all() for g in gradients):
            raise Fails("the outputs are finite, but gradients of the outputs of real tokens are not")


@audit_property("with a cache = without")
def cache_gives_same_outputs(t):
    """Do tokens that are passed in parts, with a cache, give the same outputs as all tokens together?"""
    step, full_output = t.adapter("step"), t.run(t.x)
    length = t.length
    for sizes in ([1] * length, [length - 3, 1, 1, 1], [3, length - 4, 1]):
        cache, outputs = None, []
        with torch.no_grad():
            for new_tokens in t.x.split(sizes, 1):
                result = step(t.model, new_tokens, cache)
                if not isinstance(result, tuple) or len(result) != 2:
                    raise WrongForm("step must return (output, cache), two things in a tuple")
                outputs.append(as_output(result[0], "step", new_tokens)[:, -new_tokens.shape[1] :])
                cache = result[1]
        split_text = "one at a time" if len(set(sizes)) == 1 else f"in parts of {', '.join(map(str, sizes))}"
        t.require_same(torch.cat(outputs, 1), full_output, f"the tokens {split_text}, with a cache")


@audit_property("packed = apart")
def packed_documents_are_independent(t):
    """Do two documents in one row give the same outputs as each document alone?"""
    run = t.adapter("packed")
    t.require_length(4)
    first_document, second_document = t.draw(1, 4), t.draw(1, t.length - 4)
    documents = torch.tensor([[0] * 4 + [1] * (t.length - 4)], device=t.device)
    row = torch.cat([first_document, second_document], 1)
    with torch.no_grad():
        output = as_output(run(t.model, row, documents), "packed", row)
    t.require_same(output[:, :4], t.run(first_document), "the first document in the row and alone")
    t.require_same(output[:, 4:], t.run(second_document), "the second document in the row and alone")
