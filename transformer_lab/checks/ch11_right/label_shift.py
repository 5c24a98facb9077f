"""Which token a loss scores: the token itself, the next token, or the token after the next."""

import torch
from torch.nn import functional as F

from ..exercise import exercise

SHIFTS = (0, 1, 2)


def loss_at(logits, tokens, shift):
    """Return the mean loss of predicting, from each place, the token ``shift`` places later."""
    n = tokens.shape[1] - shift
    return F.cross_entropy(logits[:, :n].flatten(0, 1), tokens[:, shift:].flatten())


def _logits_and_loss(draw, batch=3, seq=7, vocab=5):
    return _inputs_with_shift(1, draw, batch, seq, vocab)


def _inputs_with_shift(shift, draw, batch=3, seq=7, vocab=5, scale=1.0):
    seq = max(seq, 3)  # a shift of 2 needs a place to score
    logits = scale * draw(batch, seq, vocab)
    tokens = torch.randint(vocab, (batch, seq), generator=draw.generator)
    return logits, tokens, loss_at(logits, tokens, shift).item()


def _example(name, shift, **sizes):
    label_shift.example(name, lambda draw: _inputs_with_shift(shift, draw, **sizes))


def loss_of_each_shift(logits, tokens):
    """Compute the mean loss for shifts of 0, 1 and 2."""
    return [loss_at(logits, tokens, shift).item() for shift in SHIFTS]


def nearest_shift(losses, loss):
    """Find the shift whose loss is nearest to the given loss."""
    return min(range(len(losses)), key=lambda shift: abs(losses[shift] - loss))


@exercise(
    inputs=_logits_and_loss,
    axes={"logits": "batch seq vocab", "tokens": "batch seq"},
    hints=(
        "With a shift of 2, the logits at place 0 are compared with the token at place 2. How many places have such a "
        "token?",
        "For each shift, leave out the last places of the logits and the first places of the tokens, so that logits "
        "and tokens have the same length. Compute the mean of minus the log of each token's probability. Then find "
        "which of the three losses is nearest to the given loss.",
        "`F.cross_entropy(logits[:, : seq - s].flatten(0, 1), tokens[:, s:].flatten())` for `s` in `(0, 1, 2)`, then "
        "the `s` with the smallest `abs(…)`",
    ),
)
def label_shift(logits, tokens, loss, *, losses=loss_of_each_shift, choose=nearest_shift):
    """Return the shift of the loss, 0, 1 or 2: the number of places from the logits to the token that the loss
    scores."""
    return choose(losses(logits, tokens), loss)


@label_shift.right
class RightAnswers:
    def by_gather(logits, tokens, loss):
        logp, n = logits.log_softmax(-1), tokens.shape[1]
        losses = [-logp[:, : n - s].gather(-1, tokens[:, s:, None]).mean() for s in SHIFTS]
        return int(torch.stack(losses).sub(loss).abs().argmin())


for shift in SHIFTS:
    for seq in (3, 4, 5, 6, 9, 12):
        _example(f"seq {seq}, shift {shift}", shift, seq=seq)
    _example(f"large logits, shift {shift}", shift, scale=30.0)
    _example(f"small logits, shift {shift}", shift, scale=0.1)
    _example(f"one text, shift {shift}", shift, batch=1)
    _example(f"a long text, shift {shift}", shift, seq=40, batch=4)


@label_shift.wrong(stage="losses")
class Losses:
    def tokens_cut_at_the_end(logits, tokens):
        """You leave out the first places of the logits and the last tokens, so each place is scored with a token
        *before* it. Which must begin later, the logits or the tokens?"""
        n = tokens.shape[1]
        return [F.cross_entropy(logits[:, s:].flatten(0, 1), tokens[:, : n - s].flatten()).item() for s in SHIFTS]

    def rolled(logits, tokens):
        """You roll the tokens, so the last places are scored with the first tokens of the text. Leave these places
        out."""
        return [loss_at(logits, tokens.roll(-s, dims=1), 0).item() for s in SHIFTS]

    def summed(logits, tokens):
        """You add up the losses, but the given loss is a mean. With sums, the shift with the fewest places usually has
        the nearest loss."""
        return [loss_at(logits, tokens, s).item() * (tokens.shape[1] - s) * len(tokens) for s in SHIFTS]

    def over_all_places(logits, tokens):
        """You divide the sum of the losses by the number of all places. With a shift of s, there are seq − s places."""
        n = tokens.shape[1]
        return [loss_at(logits, tokens, s).item() * (n - s) / n for s in SHIFTS]

    def without_the_log(logits, tokens):
        """You use probabilities, not their logs. The loss is minus the *log* of the probability."""
        p, n = logits.softmax(-1), tokens.shape[1]
        return [-p[:, : n - s].gather(-1, tokens[:, s:, None]).mean().item() for s in SHIFTS]

    def without_the_softmax(logits, tokens):
        """You use the logits as they are. The loss needs the log of a probability: `log_softmax`."""
        n = tokens.shape[1]
        return [-logits[:, : n - s].gather(-1, tokens[:, s:, None]).mean().item() for s in SHIFTS]

    def softmax_twice(logits, tokens):
        """You apply the softmax twice: `cross_entropy` expects logits, but you pass it probabilities."""
        return [loss_at(logits.softmax(-1), tokens, s).item() for s in SHIFTS]

    def over_the_places(logits, tokens):
        """The softmax runs over the places, not over the vocabulary. Which axis holds the tokens that could come
        next?"""
        n, logp = tokens.shape[1], logits.log_softmax(dim=1)
        return [-logp[:, : n - s].gather(-1, tokens[:, s:, None]).mean().item() for s in SHIFTS]

    def last_place_alone(logits, tokens):
        """You score only one place. The loss is the mean over all places that have a token to predict."""
        n, logp = tokens.shape[1], logits.log_softmax(-1)
        return [-logp[:, n - s - 1].gather(-1, tokens[:, n - 1, None]).mean().item() for s in SHIFTS]

    def first_text_alone(logits, tokens):
        """You score only the first text. The loss is the mean over all texts of the batch, place by place."""
        return loss_of_each_shift(logits[:1], tokens[:1])

    def two_places_less_each_time(logits, tokens):
        """You leave out the same two places at the end for every shift. The means for smaller shifts then run over too
        few places."""
        n, logp = tokens.shape[1] - 2, logits.log_softmax(-1)
        return [-logp[:, :n].gather(-1, tokens[:, s : s + n, None]).mean().item() for s in SHIFTS]


@label_shift.wrong(stage="choose")
class Choose:
    def smallest(losses, loss):
        """You return the shift with the smallest loss. Do you never use the given loss, do your differences keep their
        signs, or is a minus missing? Which of the three losses is *nearest* to the given loss?"""
        return losses.index(min(losses))

    def largest(losses, loss):
        """You return the shift with the largest loss. Do you never use the given loss, or do your differences keep
        their signs? Which of the three losses is *nearest* to the given loss?"""
        return losses.index(max(losses))

    def farthest(losses, loss):
        """You return the shift whose loss is farthest from the given loss. Which of the three losses is nearest?"""
        return max(range(3), key=lambda s: abs(losses[s] - loss))

    def from_one(losses, loss):
        """You count from 1. A shift of 0 is possible: each place is then scored with its own token."""
        return nearest_shift(losses, loss) + 1

    def backwards(losses, loss):
        """You count the shifts in reverse: you return 2 if the shift is 0. In which order are your losses?"""
        return 2 - nearest_shift(losses, loss)

    def first_below(losses, loss):
        """You return the first shift whose loss is below the given loss, so rounding decides. Return the shift with the
        nearest loss."""
        return next((s for s in range(3) if losses[s] < loss), 0)

    def the_loss(losses, loss):
        """You return a loss. The task asks for its shift, an integer: 0, 1 or 2 places. Which shift has the nearest
        loss?"""
        return losses[nearest_shift(losses, loss)]

    def two_shifts_alone(losses, loss):
        """You try the shifts 0 and 1, but never 2. A loss can score the token after the next."""
        return nearest_shift(losses[:2], loss)

    def always_one(losses, loss):
        """You always return 1. A loss should have this shift, but only a measurement can tell whether it does."""
        return 1
