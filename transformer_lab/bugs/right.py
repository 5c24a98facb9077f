"""Correct models of different designs. A test of a whole model must accept all of them."""

import math

import torch
from torch import nn

from ..device import device
from ..normalization import RMSNorm
from .small_model import SmallModel


class PostNorm(SmallModel):
    """The norms follow the residual sums."""

    def __init__(self, **options):
        super().__init__(**options)
        self.post_norms = nn.ModuleList(nn.LayerNorm(self.embed.embedding_dim) for _ in self.norms[:-1])
        self.norms = nn.ModuleList(nn.Identity() for _ in self.norms)
        self.to(device())

    def forward(self, *arguments, **options):
        self.remaining_norms = iter(self.post_norms)
        return super().forward(*arguments, **options)

    def add(self, x, branch):
        return next(self.remaining_norms)(x + branch)


class NoPositions(SmallModel):
    """A causal model without positions.

    It can still detect the order, because each token sees one more token than the token before it.
    """

    def __init__(self, **options):
        super().__init__(**options)
        self.position_embedding = None


class Alibi(NoPositions):
    """Scores decrease with the distance between query and key."""

    def attend(self, query, key, value, mask):
        slopes = 2.0 ** -torch.arange(1, self.n_heads + 1, device=query.device, dtype=query.dtype)
        bias = -slopes[:, None, None] * self.distance_back(query.shape[2], key.shape[2]).to(query.dtype)
        scores = (query @ key.mT * self.scale(query, key) + bias).masked_fill(~mask, -math.inf)
        return torch.softmax(scores, -1).nan_to_num(0.0) @ value


def build_rms_norm_model():
    model = SmallModel(rotary=True)
    model.norms = nn.ModuleList(RMSNorm(model.embed.embedding_dim) for _ in model.norms)
    return model.to(device())


def build_tied_model():
    model = SmallModel()
    model.head.weight = model.embed.weight
    return model


RIGHT_MODELS = {  # description to a function that builds the correct model
    "the norms before the branches, learned positions": SmallModel,
    "rotary positions, two key heads for four query heads": lambda: SmallModel(rotary=True, n_kv_heads=2),
    "a window of 3 tokens": lambda: SmallModel(window=3),
    "dropout": lambda: SmallModel(dropout=0.2),
    "the norms after the sums": PostNorm,
    "RMSNorm, rotary positions": build_rms_norm_model,
    "ALiBi": Alibi,
    "one table for the tokens and the scores": build_tied_model,
    "no positions": NoPositions,
    "a single layer of one head": lambda: SmallModel(d_model=16, n_heads=1, n_layers=1),
}
