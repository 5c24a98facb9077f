"""Properties of padding, of caches, and of rows that contain several documents."""

import torch

from ..trial import Fails, NotTried, WrongForm, as_output
from .registry import audit_property, first_true


def padded_batch(trial, side):
    """Return a batch of two sentences, the second of which has 3 pads, and a mask that is True at real tokens.

    Also return the second sentence without its pads, and the slice of its real tokens.
    """
    keep = torch.ones(2, trial.length, dtype=torch.bool, device=trial.device)
    real_slice = slice(0, trial.length - 3) if side == "right" else slice(3, None)
    keep[1] = False
    keep[1, real_slice] = True
    sentence = trial.draw(1, trial.length - 3)
    x = trial.padding_like(keep, trial.pad)
    x[0], x[1, real_slice] = trial.x[0], sentence[0]
    return x, keep, sentence, real_slice


def padding_changes_nothing(trial, side, output_slice):
    """Compare a padded sentence's outputs with the outputs of the sentence alone.

    ``output_slice`` selects the outputs to compare; None selects those of the real tokens. If the model accepts only
    one length, and does not ignore the mask ``keep``, compare the outputs with those of the same sentence, padded with
    a different token.
    """
    x, keep, sentence, real_slice = padded_batch(trial, side)
    output_slice = real_slice if output_slice is None else output_slice
    actual = trial.padded(x, keep)[1:, output_slice]
    try:
        trial.require_length(trial.length - 3)
    except NotTried as reason:
        if torch.equal(trial.padded(x, torch.ones_like(keep))[1:, output_slice], actual):
            raise
        other_numbers = trial.padding_like(
            keep, trial.pad + 1 if trial.vocab_size is None or trial.pad + 1 < trial.vocab_size else trial.pad - 1
        )
        other_x = torch.where(keep if x.ndim == 2 else keep[..., None], x, other_numbers)
        trial.require_same(trial.padded(other_x, keep)[1:, output_slice], actual, "a different number as padding")
        return f"compared with a different number as padding, not with the sentence alone: {reason}"
    alone_output = trial.padded(sentence, torch.ones_like(keep[1:, real_slice]))
    trial.require_same(actual, alone_output, f"{trial.length - 3} tokens, with 3 pads on the {side} and alone")


def padding_property(side):
    def alone_and_padded(trial):
        """Does a sentence give the same output alone and padded in a batch?"""
        trial.adapter("padded")
        trial.require_per_token()
        return padding_changes_nothing(trial, side, None)

    return alone_and_padded


for side in ("right", "left"):
    audit_property(f"alone = in a padded batch, {side}")(padding_property(side))


@audit_property("finite where nothing is seen")
def outputs_are_finite(trial):
    """Are outputs and gradients finite when a row of the batch consists only of padding?"""
    trial.adapter("padded")
    keep = torch.ones(3, trial.length, dtype=torch.bool, device=trial.device)
    keep[1, :3] = keep[2] = False
    x = torch.where(
        keep if trial.x.ndim == 2 else keep[..., None], trial.draw(3, trial.length), trial.padding_like(keep, trial.pad)
    )
    output = as_output(trial.adapter("padded")(trial.model, x, keep), "padded", x)
    not_finite = ~output.isfinite().all(-1)
    if not_finite.any():
        row, position = first_true(not_finite)
        raise Fails(f"{int(not_finite.sum())} outputs are not finite, the first at position {position} of row {row}")
    parameters = [p for p in trial.model.parameters() if p.requires_grad]
    if parameters and output.requires_grad:
        real_outputs = output[keep] if not_finite.shape == keep.shape else output[:2]
        gradients = torch.autograd.grad(real_outputs.pow(2).sum(), parameters, allow_unused=True)
        if not all(g is None or g.isfinite().all() for g in gradients):
            raise Fails("the outputs are finite, but some gradients of real tokens' outputs are infinite or NaN")


@audit_property("with a cache = without")
def cache_gives_same_outputs(trial):
    """Do tokens that are passed in parts, with a cache, give the same outputs as all tokens together?"""
    step, full_output = trial.adapter("step"), trial.run(trial.x)
    length = trial.length
    for sizes in ([1] * length, [length - 3, 1, 1, 1], [3, length - 4, 1]):
        cache, outputs = None, []
        with torch.no_grad():
            for new_tokens in trial.x.split(sizes, 1):
                result = step(trial.model, new_tokens, cache)
                if not isinstance(result, tuple) or len(result) != 2:
                    raise WrongForm("step must return a tuple of two, (output, cache)")
                outputs.append(as_output(result[0], "step", new_tokens)[:, -new_tokens.shape[1] :])
                cache = result[1]
        split_text = "one at a time" if len(set(sizes)) == 1 else f"in parts of {', '.join(map(str, sizes))}"
        trial.require_same(torch.cat(outputs, 1), full_output, f"the tokens {split_text}, with a cache")


@audit_property("packed = apart")
def packed_documents_are_independent(trial):
    """Do two documents in one row give the same outputs as each document alone?"""
    run = trial.adapter("packed")
    trial.require_length(4)
    first_document, second_document = trial.draw(1, 4), trial.draw(1, trial.length - 4)
    documents = torch.tensor([[0] * 4 + [1] * (trial.length - 4)], device=trial.device)
    row = torch.cat([first_document, second_document], 1)
    with torch.no_grad():
        output = as_output(run(trial.model, row, documents), "packed", row)
    trial.require_same(output[:, :4], trial.run(first_document), "the first document in the row and alone")
    trial.require_same(output[:, 4:], trial.run(second_document), "the second document in the row and alone")
