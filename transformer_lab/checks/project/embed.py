"""Tokens and their positions, as vectors."""

import math

import torch
from torch.nn.functional import embedding

from ..exercise import exercise


def positions(seq, d_model):
    """Make the sinusoidal positions."""
    angles = torch.arange(seq)[:, None] * torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model]


def _tokens(draw, batch=2, seq=7, vocab=11, d_model=6):
    tokens = torch.randint(vocab, (batch, seq), generator=draw.generator)
    return tokens, draw(vocab, d_model)


def rows(tokens, table):
    """Take the row of the table for each token."""
    return embedding(tokens, table)


def added(vectors, pattern):
    """Add the two."""
    return vectors + pattern.to(vectors)


@exercise(
    inputs=_tokens,
    axes={"tokens": "batch seq", "table": "vocab d_model", "return": "batch seq d_model"},
    hints=(
        "What does attention know about the order of the tokens, if each token is a row of the table and nothing else?",
        "Look the rows up, `table[tokens]`, then add what `sinusoidal_positions` gives for the right axis of tokens.",
        "`table[…] + sinusoidal_positions(…, …)`",
    ),
)
def embed(tokens, table, *, vectors=rows, position=positions, together=added):
    """Look each token up and add its position: (batch, seq) to (batch, seq, d_model)."""
    return together(vectors(tokens, table), position(tokens.shape[1], table.shape[1]))


@embed.equivalent
def by_one_hot(tokens, table):
    chosen = torch.nn.functional.one_hot(tokens, len(table)).to(table)
    return chosen @ table + positions(tokens.shape[-1], table.shape[-1]).to(table)


@embed.equivalent
def by_index_select(tokens, table):
    vectors = table.index_select(0, tokens.flatten()).reshape(*tokens.shape, -1)
    return positions(tokens.shape[1], table.shape[1]).to(table).unsqueeze(0) + vectors


@embed.equivalent
def token_by_token(tokens, table):
    pattern = positions(tokens.shape[1], table.shape[1]).to(table)
    return torch.stack([torch.stack([table[t] + place for t, place in zip(row, pattern)]) for row in tokens])


embed.example("one token", seq=1)
embed.example("as many sentences as tokens", batch=5, seq=5)


@embed.mistake(stage="together")
def no_positions(vectors, pattern):
    """The positions are missing: each token is its row of the table, wherever it stands. Attention compares vectors,
    not places: in one block, what a token gathers is the same in whatever order the tokens before it stand. What tells
    position 0 from position 1?"""
    return vectors


@embed.mistake(stage="together")
def positions_multiplied(vectors, pattern):
    """The positions are multiplied with the vectors instead of added: position 0 has sin 0 = 0 in every second feature,
    so half of the first token is lost. The two are added."""
    return vectors * pattern.to(vectors)


@embed.mistake(stage="together")
def positions_alone(vectors, pattern):
    """You return the positions without the tokens: every sentence of the same length looks the same. The vectors from
    the table belong to it."""
    return pattern.to(vectors).expand_as(vectors)


@embed.mistake
def positions_of_the_batch(tokens, table):
    """The positions follow the batch: all tokens of the first sentence got position 0, those of the second position 1.
    It comes from code for (seq, batch), where positions lie along the first axis. Here `seq` is the second."""
    return table[tokens] + positions(tokens.shape[0], table.shape[1])[:, None].to(table)


@embed.mistake
def positions_of_the_token(tokens, table):
    """Each token got the pattern of its number in the vocabulary, not of its place: wherever it stands, its vector is
    the same. Positions count along `seq`, whatever stands there."""
    return table[tokens] + positions(*table.shape)[tokens].to(table)


@embed.mistake
def positions_from_one(tokens, table):
    """The positions begin at 1: the first token got the pattern of position 1. Positions are counted from 0; `seq` of
    them are asked for, and none is left out."""
    return table[tokens] + positions(tokens.shape[1] + 1, table.shape[1])[1:].to(table)


@embed.mistake
def scaled_by_root_d(tokens, table):
    """The vectors are multiplied by √d_model before the positions are added. The original Transformer does that, with a
    table that was drawn smaller; here the row of the table goes in as it is."""
    return table[tokens] * table.shape[1] ** 0.5 + positions(*table[tokens].shape[1:]).to(table)


@embed.mistake
def halves_beside_each_other(tokens, table):
    """The sines stand in the first half of the features and the cosines in the second. In this course, as in the paper,
    they take turns: feature 0 a sine, feature 1 a cosine of the same angle. Is the positions' function the one of
    assignment 3?"""
    pattern = positions(tokens.shape[1], table.shape[1])
    return table[tokens] + torch.cat([pattern[:, ::2], pattern[:, 1::2]], dim=-1).to(table)


@embed.property
def order_matters(function, tokens, table):
    """A token that moves to another place changes its vector."""
    return not torch.allclose(function(tokens.flip(1), table).flip(1), function(tokens, table))
