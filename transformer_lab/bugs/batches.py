"""Bugs in which padding, other sentences of the batch, or other documents of the row change a sentence's output."""

import torch
from torch import nn

from ..device import device
from .bug import choose_model, published
from .small_model import VOCAB_SIZE, SmallModel, audit_arguments


@published(
    "Positions count the padding in front",
    "huggingface/transformers",
    3021,
    date="February 2020",
    section="5.11",
    found_by="alone = in a padded batch, left",
    symptoms="batched and single generation differ; padding changes the output; position_ids with left padding",
    story=(
        "Users asked how to run a model on sentences of different lengths. With padding in front, the positions of the "
        "shorter sentences were shifted. Since October 2020, the library's `generate` has computed positions from the "
        "mask."
    ),
    repair="Count only real tokens: `keep.cumsum(-1) - 1`.",
)
def left_padding(broken):
    """Positions count the padding in front of a sentence."""

    class Mistake(SmallModel):
        def positions(self, seq, start, keep, documents):
            return super().positions(seq, start, None, documents)

    return audit_arguments(choose_model(broken, Mistake))


@published(
    "Documents in one row read each other",
    "huggingface/trl",
    805,
    date="September 2023",
    section="5.4",
    found_by="packed = apart",
    symptoms="packing without cross-contamination; documents in one sequence see each other",
    story=(
        "A user asked how documents that share a row are kept apart. Nothing kept them apart: a separator was thought "
        "to be enough. A request for packing that keeps documents apart followed in January 2024 (#1230)."
    ),
    repair="Let a query attend only to its own document, and start each document at position 0.",
)
def packed_together(broken):
    """Two documents in one row attend to each other."""

    class Mistake(SmallModel):
        def mask(self, q_len, k_len, keep, documents):
            return super().mask(q_len, k_len, keep, None)

    return audit_arguments(choose_model(broken, Mistake))


@published(
    "Attention runs over the batch",
    "IBM/TabFormer",
    14,
    date="June 2021",
    section="4.11",
    found_by="rows apart",
    symptoms="outputs depend on the other samples of the batch; batch_first",
    story="A reader of the code noticed that PyTorch's layer expects the batch on the second axis, and sent a fix.",
    repair="Pass `batch_first=True`.",
)
def batch_second(broken):
    """A layer that expects (seq, batch, d_model) gets (batch, seq, d_model), so sentences attend to one another."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.position_embedding = nn.Embedding(VOCAB_SIZE, 32), nn.Embedding(64, 32)
            self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=not broken)
            self.head = nn.Linear(32, VOCAB_SIZE)
            self.to(device())

        def forward(self, tokens):
            positions = torch.arange(tokens.shape[1], device=tokens.device)
            return self.head(self.layer(self.embed(tokens) + self.position_embedding(positions)))

    return {"model": Model(), "vocab_size": VOCAB_SIZE, "kind": "bidirectional"}
