"""Bugs in training and evaluation mode, in initialization, and in the structure of a model."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from ..device import device
from .bug import choose_model, published
from .small_model import SmallModel, audit_arguments


@published(
    "Dropout in evaluation",
    "karpathy/nanoGPT",
    240,
    date="April 2023",
    section="5.11",
    found_by="twice the same",
    symptoms="the same input gives two outputs in eval mode; dropout_p in scaled_dot_product_attention",
    story=(
        "While training a model, a user noticed that dropout stayed on in evaluation. The author concluded that "
        "calling the attention function directly is dangerous: a function does not know the mode."
    ),
    repair="Pass the dropout rate as `dropout_p` in training mode, and 0 otherwise.",
)
def dropout_in_evaluation(broken):
    """The attention function gets `dropout_p` in every mode."""

    class Model(SmallModel):
        def attend(self, query, key, value, mask):
            p = self.dropout if broken or self.training else 0.0
            return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=p)

    return audit_arguments(Model(dropout=0.2), padded=None)


@published(
    "Evaluation reads a bias as a mask",
    "pytorch/pytorch",
    107084,
    date="August 2023",
    section="5.6",
    found_by="train() = eval() without dropout",
    symptoms="eval() gives NaN, or different numbers from train(); a float mask in nn.MultiheadAttention",
    story=(
        "In evaluation a module returned NaN for a float mask that worked in training. A fast path had converted the "
        "mask to True and False. Since then, the fast path has been off for float masks."
    ),
    repair="Add the bias to the scores.",
)
def bias_as_mask(broken):
    """Only in evaluation, a fast path reads an additive bias as True or False."""

    class Model(SmallModel):
        def attend(self, query, key, value, mask):
            bias = -0.5 * self.distance_back(query.shape[2], key.shape[2]).abs().to(query.dtype)
            scores = query @ key.mT * self.scale(query, key)
            scores = scores.masked_fill(bias != 0, -math.inf) if broken and not self.training else scores + bias
            return torch.softmax(scores.masked_fill(~mask, -math.inf), -1).nan_to_num(0.0) @ value

    return audit_arguments(Model())


@published(
    "One evaluation switches dropout off for good",
    "NVIDIA/Megatron-LM",
    411,
    date="July 2023",
    section="5.11",
    found_by="training noise survives an evaluation",
    symptoms="overfitting begins after the first evaluation; dropout stops working",
    story=(
        "A user noticed that one forward pass in evaluation set the dropout rate to 0 and left it there. A first "
        "repair, in April 2023 (#318), had not been merged."
    ),
    repair="Choose the rate in each call, and do not store it.",
)
def dropout_gone(broken):
    """The first evaluation sets the dropout rate to 0 permanently."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            self.dropout *= self.training
            return super().attend(query, key, value, mask)

    return audit_arguments(choose_model(broken, Mistake, dropout=0.2))


@published(
    "All layers start equal",
    "pytorch/pytorch",
    72253,
    date="February 2022",
    section="6.11",
    found_by="layers begin different",
    symptoms="all layers have the same weights at the start; nn.TransformerEncoder copies its layer",
    story=(
        "A user read in the source that the stack copies the given layer. A second thread (#86274) has been open "
        "since October 2022."
    ),
    repair="Initialize each layer separately.",
)
def equal_layers(broken):
    """Layers are deep copies of one layer, so they start with the same weights."""
    model = SmallModel()
    if broken:
        model.projections = nn.ModuleList(copy.deepcopy(model.projections[0]) for _ in model.projections)
        model.feed_forwards = nn.ModuleList(copy.deepcopy(model.feed_forwards[0]) for _ in model.feed_forwards)
    return audit_arguments(model)


@published(
    "Residual adds the normalized input",
    "pytorch/pytorch",
    61165,
    date="July 2021",
    section="6.9",
    found_by="identity without branches",
    symptoms="a deep pre-norm model does not train; norm_first",
    story=(
        "Days after a new option had been merged, an engineer compared it with the paper and with a speech library."
    ),
    repair="Normalize inside the branch: x + f(norm(x)).",
)
def no_clean_residual(broken):
    """The residual connection adds the normalized input."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.linear1, self.linear2 = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)
            self.to(device())

        def forward(self, x):
            z = self.norm(x)
            return (z if broken else x) + self.linear2(torch.relu(self.linear1(z)))

    model = Block()
    return {"model": model, "d_model": 16, "kind": "local", "branches": [model.linear2]}
