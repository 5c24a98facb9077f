"""The loss of guessing the next token."""

import math

import torch
from torch.nn.functional import cross_entropy

from ..exercise import exercise


def _predicted(draw, batch=2, seq=7, vocab=5):
    return draw(batch, seq, vocab), torch.randint(vocab, (batch, seq), generator=draw.generator)


def all_but_the_last(logits):
    """Leave out the logits of the last position."""
    return logits[:, :-1]


def all_but_the_first(tokens):
    """Leave out the first token."""
    return tokens[:, 1:]


def mean_cross_entropy(logits, targets):
    """Take the mean cross-entropy of the two over all positions."""
    return cross_entropy(logits.flatten(0, 1), targets.flatten())


@exercise(
    inputs=_predicted,
    axes={"logits": "batch seq vocab", "tokens": "batch seq", "return": ""},
    hints=(
        "The logits at position 3 are a guess at which token? And which position has nothing to be compared with?",
        "Leave out the last logits and the first token: then guess and answer stand at the same place. `cross_entropy` "
        "wants the classes on the second axis, so flatten batch and seq into one.",
        "`F.cross_entropy(logits[:, …].flatten(0, 1), tokens[:, …].flatten())`",
    ),
)
def next_token_loss(logits, tokens, *, guesses=all_but_the_last, answers=all_but_the_first, loss=mean_cross_entropy):
    """The mean cross-entropy of each position's logits against the token that comes next: one number."""
    return loss(guesses(logits), answers(tokens))


@next_token_loss.equivalent
def by_transposing(logits, tokens):
    return cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:])


@next_token_loss.equivalent
def by_gather(logits, tokens):
    chances = logits.log_softmax(-1)[:, :-1]
    return -chances.gather(-1, tokens[:, 1:, None]).mean()


@next_token_loss.equivalent
def by_loops(logits, tokens):
    batch, seq, _ = logits.shape
    losses = [logits[b, t].logsumexp(0) - logits[b, t, tokens[b, t + 1]] for b in range(batch) for t in range(seq - 1)]
    return torch.stack(losses).mean()


next_token_loss.example("two tokens", seq=2)


@next_token_loss.probe
def large_logits(draw):
    """logits in the hundreds"""
    logits, tokens = _predicted(draw)
    return 200 * logits, tokens


@next_token_loss.mistake
def not_shifted(logits, tokens):
    """Each position is compared with its own token instead of the next. The model sees that token, so the loss falls to
    zero at once, and generation repeats the last token for ever. Guess and answer must be shifted by one."""
    return mean_cross_entropy(logits, tokens)


@next_token_loss.mistake
def shifted_backwards(logits, tokens):
    """The shift goes the wrong way: each position is compared with the token *before* it, which it can see. The loss
    falls quickly and nothing is learned. Which of the two must lose its first entry?"""
    return mean_cross_entropy(logits[:, 1:], tokens[:, :-1])


@next_token_loss.mistake
def both_without_the_first(logits, tokens):
    """Logits and tokens have both lost their *first* entry, so each position is still compared with its own token. To
    shift one against the other, they must be cut at different ends."""
    return mean_cross_entropy(logits[:, 1:], tokens[:, 1:])


@next_token_loss.mistake
def both_without_the_last(logits, tokens):
    """Logits and tokens have both lost their *last* entry, so each position is still compared with its own token. To
    shift one against the other, they must be cut at different ends."""
    return mean_cross_entropy(logits[:, :-1], tokens[:, :-1])


@next_token_loss.mistake
def rolled_round(logits, tokens):
    """The tokens are rolled round: the last position is compared with the *first* token of the same sentence. It has no
    next token, and must be left out."""
    return mean_cross_entropy(logits, tokens.roll(-1, dims=1))


@next_token_loss.mistake(stage="loss")
def summed(logits, targets):
    """The losses are added up instead of averaged: twice the batch gives twice the loss, and gradients twice as large.
    The mean is asked for."""
    return cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")


@next_token_loss.mistake(stage="loss")
def one_for_each(logits, targets):
    """You return one loss for each position. One number is asked for, their mean: `backward` needs it so."""
    return cross_entropy(logits.transpose(1, 2), targets, reduction="none")


@next_token_loss.mistake(stage="loss")
def softmax_first(logits, targets):
    """A softmax was taken before `cross_entropy`, which takes one itself: with probabilities between 0 and 1 the second
    softmax is nearly even, the loss can never come near zero, and training crawls. Give it the logits."""
    return mean_cross_entropy(logits.softmax(-1), targets)


@next_token_loss.mistake(stage="loss")
def the_sign_forgotten(logits, targets):
    """The loss is negative: it is the mean logarithm of the right tokens' chances, without the minus. Minimizing it
    makes the right tokens as unlikely as possible."""
    return -mean_cross_entropy(logits, targets)


@next_token_loss.mistake(stage="loss")
def chance_for_loss(logits, targets):
    """This is minus the mean chance of the right tokens: the logarithm is missing. Its gradient is tiny where the model
    is badly wrong, which is where it is needed."""
    return -logits.softmax(-1).gather(-1, targets[..., None]).mean()


@next_token_loss.mistake
def batch_and_vocabulary_confused(logits, tokens):
    """The logits were reshaped instead of transposed, or along the wrong axis: the numbers that belong to one position
    are torn apart. Shape and dtype are right, so nothing complains. Flatten `batch` and `seq`, and leave `vocab`
    whole."""
    shifted = logits[:, :-1]
    return cross_entropy(shifted.reshape(len(shifted), shifted.shape[2], -1), tokens[:, 1:])


@next_token_loss.property
def even_guesses(function, logits, tokens):
    """Logits that are all equal give log(vocab), the loss of guessing."""
    loss = function(torch.zeros_like(logits), tokens)
    return loss.ndim == 0 and math.isclose(float(loss), math.log(logits.shape[-1]), rel_tol=1e-4)
