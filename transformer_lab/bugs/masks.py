"""Bugs in masks, which say which query may attend to which key."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from ..device import device
from .bug import choose_model, published
from .small_model import VOCAB_SIZE, SmallModel, audit_arguments


@published(
    "Mask inverted",
    "rasbt/LLMs-from-scratch",
    1061,
    date="August 2026",
    section="5.6",
    found_by="the past does not move",
    symptoms="the loss is too good and generated text is nonsense; True and False in a mask mean the reverse",
    story=(
        "A reader of a book's extra notebook compared its mask with PyTorch's documentation. The mask had been there "
        "for two years. The author fixed it within a day, and added a test that changes later tokens."
    ),
    repair="Negate the mask: in PyTorch's function, `True` means *may attend*.",
)
def inverted_mask(broken):
    """The mask is `True` where a key is hidden, but in PyTorch's function `True` means *may attend*."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            return F.scaled_dot_product_attention(query, key, value, attn_mask=~mask)

    return audit_arguments(choose_model(broken, Mistake), padded=None, packed=None)


@published(
    "Hidden score of −10,000",
    "karpathy/minGPT",
    75,
    date="May 2022",
    section="5.8",
    found_by="the future, with loud weights",
    symptoms="training and validation loss fall to almost 0, generation is useless; −1e4, −1e9 or −inf in a mask",
    story=(
        "Training and validation loss were almost 0, and the texts that the model wrote were useless. The printed "
        "scores showed why: visible scores had fallen below −10,000, so hidden keys had the largest weights."
    ),
    repair="Replace hidden scores with −∞.",
)
def weak_mask(broken):
    """A hidden score is replaced by −10,000, but a trained model's visible scores can be lower than that."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            scores = (query @ key.mT * self.scale(query, key)).masked_fill(~mask, -1e4)
            return torch.softmax(scores, -1) @ value

    return audit_arguments(choose_model(broken, Mistake))


@published(
    "Window of W + 1 tokens",
    "huggingface/transformers",
    29623,
    date="March 2024",
    section="5.4",
    found_by="the window",
    symptoms="two kernels give different outputs; a sliding window sees one token too many",
    story=(
        "A user counted the keys that two kernels see for the same window. The flash kernel includes the window's "
        "bound, but the other kernel's mask excludes it. The same difference was reported again in July 2025 (#39408)."
    ),
    repair="Compare with `<`, or pass W − 1 to a kernel that includes the bound.",
)
def window_plus_one(broken):
    """A window of W keys contains W + 1 keys, because the bound is included."""

    class Mistake(SmallModel):
        def mask(self, q_len, k_len, keep, documents):
            distance = self.distance_back(q_len, k_len)
            return (distance >= 0) & (distance <= self.window)

    return audit_arguments(choose_model(broken, Mistake, window=3, n_layers=1), padded=None, packed=None)


@published(
    "Causal mask in the wrong corner",
    "pytorch/pytorch",
    103082,
    date="June 2023",
    section="5.10",
    found_by="with a cache = without",
    symptoms="with a key–value cache the same token is generated again and again; `is_causal` with one query",
    story=(
        "A user asked what the causal triangle means for one query and many keys: with a cache, that query sees only "
        "the first key. The default has not changed; a class of masks now specifies where the triangle starts."
    ),
    repair="Build the mask from positions, so that the last query sees all keys.",
)
def causal_corner(broken):
    """`is_causal` with a cache: the triangle starts at the top left, so a single query sees only the first key."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            return F.scaled_dot_product_attention(query, key, value, is_causal=True)

    return audit_arguments(choose_model(broken, Mistake), padded=None, packed=None)


@published(
    "Row without keys is NaN",
    "pytorch/pytorch",
    103749,
    date="June 2023",
    section="5.9",
    found_by="finite where nothing is seen",
    symptoms="NaN with a padding mask; the loss becomes NaN with left padding",
    story=(
        "A user's mask had no `True` in padding rows, and the outputs were NaN. Since version 2.5, PyTorch's function "
        "has returned zeros for such a row on most paths."
    ),
    repair="Set the attention weights of a row without keys to zero.",
)
def fully_masked_row(broken):
    """A query that may not attend to any key gets NaN."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            scores = (query @ key.mT * self.scale(query, key)).masked_fill(~mask, -math.inf)
            return torch.softmax(scores, -1) @ value

    return audit_arguments(choose_model(broken, Mistake))


@published(
    "Cross-attention masked with the target's padding",
    "keras-team/keras-io",
    1046,
    date="August 2022",
    section="5.12",
    found_by="padding of the source changes nothing",
    symptoms="the translation changes when the source is padded; memory_key_padding_mask",
    story=(
        "A reader of a translation example saw that the decoder never got the source's mask. The example pads source "
        "and target to the same length, so nothing raised an error."
    ),
    repair="Pass the source's padding mask to cross-attention.",
)
def padding_of_the_target(broken):
    """Cross-attention is masked with the padding of the target instead of the padding of the source."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.position_embedding = nn.Embedding(VOCAB_SIZE, 32), nn.Embedding(64, 32)
            self.encoder = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
            self.decoder = nn.TransformerDecoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
            self.to(device())

        def embed_tokens(self, tokens):
            return self.embed(tokens) + self.position_embedding(torch.arange(tokens.shape[1], device=tokens.device))

        def forward(self, source, target, source_keep, target_keep):
            memory = self.encoder(self.embed_tokens(source), src_key_padding_mask=~source_keep)
            keep = target_keep if broken else source_keep
            causal = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool, device=target.device).triu(1)
            masks = {"tgt_mask": causal, "tgt_key_padding_mask": ~target_keep, "memory_key_padding_mask": ~keep}
            return self.decoder(self.embed_tokens(target), memory, **masks)

    target = torch.arange(1, 11, device=device())[None]  # as long as the source, so that exchanged masks raise no error

    def padded(model, tokens, keep):
        targets = target.expand(len(tokens), -1)
        return model(tokens, targets, keep, torch.ones_like(targets, dtype=torch.bool))

    def forward(model, tokens):
        return padded(model, tokens, torch.ones_like(tokens, dtype=torch.bool))

    return {"model": Model(), "vocab_size": VOCAB_SIZE, "kind": "bidirectional", "forward": forward, "padded": padded}
