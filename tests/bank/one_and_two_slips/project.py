"""Answers to the project, with one slip and with two, by a fifth author."""

import torch.nn.functional as F

from transformer_lab.checks import next_token_loss

from .. import right, wrong


@right(next_token_loss)
def _(logits, tokens):
    logp = logits[:, :-1].log_softmax(-1)
    return -logp.gather(-1, tokens[:, 1:, None]).mean()


@right(next_token_loss)
def _(logits, tokens):
    return F.cross_entropy(logits.mT[..., :-1], tokens[..., 1:])


@wrong(next_token_loss, "Each position is asked for its own token.")
def _(logits, tokens):
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


@wrong(next_token_loss, "The sum is returned, not the mean.")
def _(logits, tokens):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum")


@wrong(next_token_loss, "Each position is asked for the token before it.")
def _(logits, tokens):
    return F.cross_entropy(logits[:, 1:].flatten(0, 1), tokens[:, :-1].flatten())


@wrong(next_token_loss, "Each position is asked for its own token.", "The sum is returned, not the mean.")
def _(logits, tokens):
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten(), reduction="sum")


@wrong(next_token_loss, "There is a softmax before cross_entropy.", "Each position is asked for its own token.")
def _(logits, tokens):
    return F.cross_entropy(logits.softmax(-1).flatten(0, 1), tokens.flatten())


@wrong(next_token_loss, "The sum is returned, not the mean.", "A Python float is returned, without gradient.")
def _(logits, tokens):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum").item()
