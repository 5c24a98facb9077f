"""Correct models, some of them unusual, for which an audit must not report a failure.

Each model is a function that returns the arguments of an audit.
"""

import math

import torch
from torch import nn

import transformer_lab as tl
from agreement import DEVICE
from transformer_lab.bugs import right
from transformer_lab.bugs.right import Alibi, NoPositions, PostNorm
from transformer_lab.bugs.small_model import VOCAB_SIZE, SmallModel, accumulate, audit_arguments

LLAMA_OPTIONS = {"norm_first": True, "norm": "rms", "activation": "silu", "gated": True, "bias": False, "n_kv_heads": 2}
BIDIRECTIONAL_ARGUMENTS = {"vocab_size": VOCAB_SIZE, "kind": "bidirectional"}


def prepare(model, seed=0):
    """Return the model on the device, with newly drawn matrices, so that the numbers do not depend on earlier code."""
    torch.manual_seed(seed)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.normal_(0, 1 / math.sqrt(parameter.shape[-1]))
    return model.to(DEVICE)


def plain():
    return audit_arguments(SmallModel())


def bidirectional():
    return audit_arguments(SmallModel(causal=False))


def with_dropout():
    return audit_arguments(SmallModel(dropout=0.3))


def grouped_and_rotary():
    return audit_arguments(SmallModel(n_kv_heads=1, rotary=True))


def window():
    return audit_arguments(SmallModel(window=3))


def window_on_both_sides():
    class Model(SmallModel):
        def mask(self, q_len, k_len, keep, documents):
            within_window = self.distance_back(q_len, k_len).abs() < 3
            return super().mask(q_len, k_len, keep, documents) & within_window

    model = Model(causal=False)
    return audit_arguments(model, window=3)


def post_norm():
    return audit_arguments(PostNorm())


def rms_norm():
    return audit_arguments(right.build_rms_norm_model())


def alibi():
    return audit_arguments(Alibi())


def tied_embeddings():
    return audit_arguments(right.build_tied_model())


def layer_applied_twice():
    model = SmallModel()
    model.projections[1], model.feed_forwards[1] = model.projections[0], model.feed_forwards[0]
    return audit_arguments(model)


def no_positions():
    return audit_arguments(NoPositions())


def scaled_residual_branches():
    class Model(SmallModel):
        def add(self, x, branch):
            return x + branch / math.sqrt(2)

    return audit_arguments(Model(n_layers=3))


def lowest_finite_score():
    class Model(SmallModel):
        def attend(self, query, key, value, mask):
            scores = query @ key.mT * self.scale(query, key)
            return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), -1) @ value

    return audit_arguments(Model())


def layers_dropped_in_training():
    class Model(SmallModel):
        def add(self, x, branch):
            drop_mask = torch.rand(len(x), 1, 1, device=x.device) > 0.3
            return x + (branch * drop_mask / 0.7 if self.training else branch)

    return audit_arguments(Model())


def mixture():
    """A token chooses two of 16 experts, so a batch of few tokens leaves some experts without a gradient."""

    class Model(SmallModel):
        def __init__(self):
            super().__init__()
            self.feed_forwards = nn.ModuleList(tl.MixtureOfExperts(32, 16, 16, 2) for _ in self.feed_forwards)
            self.to(DEVICE)

    return audit_arguments(Model())


def linear_attention():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.attention = tl.TokenEmbedding(VOCAB_SIZE, 32), tl.LinearAttention(32, 4)
            self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, VOCAB_SIZE)

        def forward(self, tokens):
            x = self.embed(tokens)
            return self.head(x + self.attention(self.norm(x), is_causal=True))

    return {"model": prepare(Model()), "vocab_size": VOCAB_SIZE, "long": 300}


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cells, self.head = (
            nn.Embedding(VOCAB_SIZE, 16),
            nn.GRU(16, 24, 2, batch_first=True),
            nn.Linear(24, VOCAB_SIZE),
        )

    def forward(self, tokens, state=None):
        out, state = self.cells(self.embed(tokens), state)
        return self.head(out), state


def gru():
    step = lambda model, tokens, state: model(tokens, state)  # noqa: E731
    forward = lambda model, tokens: model(tokens)[0]  # noqa: E731
    model = prepare(Recurrent()).cpu()  # some devices cannot run a GRU
    return {"model": model, "vocab_size": VOCAB_SIZE, "step": step, "forward": forward}


def convolution():
    """Two convolutional layers with three taps each, so that each layer has a window of three tokens."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(VOCAB_SIZE, 16), nn.Linear(16, VOCAB_SIZE)
            self.layers = nn.ModuleList(nn.Conv1d(16, 16, 3) for _ in range(2))

        def forward(self, tokens):
            x = self.embed(tokens).mT
            for layer in self.layers:
                x = x + torch.tanh(layer(nn.functional.pad(x, (2, 0))))
            return self.head(x.mT)

    return {"model": prepare(Model()), "vocab_size": VOCAB_SIZE, "window": 3, "n_layers": 2}


def course_2017_model():
    model = tl.LanguageModel(VOCAB_SIZE, 32, 4, 2, 64, dropout=0.1)
    return {"model": prepare(model), "vocab_size": VOCAB_SIZE, "accumulate": accumulate, "long": 600}


def course_llama():
    def step(model, tokens, cache):
        caches, start = cache or ([layer.self_attention.new_cache() for layer in model.decoder.layers], 0)
        x = model.decoder.step(model.embedding(tokens, start), caches)
        return model.output(x), (caches, start + tokens.shape[1])

    model = tl.LanguageModel(VOCAB_SIZE, 32, 4, 2, 64, positions="rotary", **LLAMA_OPTIONS)
    return {"model": prepare(model), "vocab_size": VOCAB_SIZE, "step": step, "long": 600}


def course_window():
    model = tl.LanguageModel(VOCAB_SIZE, 32, 4, 2, 64, positions="rotary", window=4)
    return {"model": prepare(model), "vocab_size": VOCAB_SIZE, "window": 4, "n_layers": 2}


def course_encoder():
    def padded(model, x, keep):
        return model(x, keep[:, None, None])

    encoder = prepare(tl.Encoder(16, 2, 2, 32, norm_first=True))
    return {"model": encoder, "d_model": 16, "kind": "bidirectional", "padded": padded, "expect": ["order is seen"]}


def course_layer():
    layer = prepare(tl.EncoderLayer(16, 2, 32, norm_first=True))
    branches = [layer.self_attention.out_proj, layer.feed_forward.linear2]
    expect = {"order is seen": "a layer has no positions"}
    return {"model": layer, "d_model": 16, "kind": "bidirectional", "branches": branches, "expect": expect}


def feed_forward():
    return {"model": prepare(tl.FeedForward(16)), "d_model": 16, "kind": "local"}


def course_translation():
    model = prepare(tl.Transformer(VOCAB_SIZE, VOCAB_SIZE, 16, 2, 2, 32))
    source = torch.arange(1, 8, device=DEVICE)[None]
    forward = lambda model, tokens: model(source.expand(len(tokens), -1), tokens)  # noqa: E731
    return {"model": model, "vocab_size": VOCAB_SIZE, "forward": forward}


def course_translation_by_source():
    model = prepare(tl.Transformer(VOCAB_SIZE, VOCAB_SIZE, 16, 2, 2, 32))
    target = torch.arange(1, 11, device=DEVICE)[None]

    def padded(model, tokens, keep):
        return model(tokens, target.expand(len(tokens), -1), keep[:, None, None])

    def forward(model, tokens):
        return padded(model, tokens, torch.ones_like(tokens, dtype=torch.bool))

    return {"model": model, "forward": forward, "padded": padded, **BIDIRECTIONAL_ARGUMENTS}


def pytorch_encoder():
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True, norm_first=True)
    padded = lambda model, x, keep: model(x, src_key_padding_mask=~keep)  # noqa: E731
    expect = {"order is seen": "no positions", "finite where nothing is seen": "NaN, as documented"}
    return {"model": prepare(layer), "d_model": 16, "kind": "bidirectional", "padded": padded, "expect": expect}


def pytorch_attention():
    def forward(model, x):
        hidden_mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        return model(x, x, x, attn_mask=hidden_mask, need_weights=False)[0]

    model = prepare(nn.MultiheadAttention(16, 2, batch_first=True))
    expect = {"order is seen": "one layer without positions sees a set"}
    return {"model": model, "d_model": 16, "forward": forward, "expect": expect}


def vector_of_a_sentence():
    """Return the mean over the real tokens: one vector for each row."""

    class Model(SmallModel):
        def output(self, x, keep):
            keep = torch.ones(x.shape[:2], device=x.device) if keep is None else keep
            keep = keep.to(x.dtype)[..., None]
            return (self.norms[-1](x) * keep).sum(1) / keep.sum(1).clamp(min=1)

    model = Model(causal=False)
    model.head = None
    return audit_arguments(model, packed=None)


def one_length_only():
    class Model(SmallModel):
        def embed_tokens(self, tokens, positions):
            if tokens.shape[1] != 16:
                raise ValueError("16 tokens are needed")
            return super().embed_tokens(tokens, positions)

    return audit_arguments(Model(), step=None, long=None)


def stored_in_bfloat16():
    return audit_arguments(SmallModel().bfloat16())


MODELS = [
    plain, bidirectional, with_dropout, grouped_and_rotary, window, window_on_both_sides, post_norm, rms_norm, alibi,
    tied_embeddings, layer_applied_twice, no_positions, scaled_residual_branches, lowest_finite_score,
    layers_dropped_in_training, mixture, linear_attention, gru, convolution, course_2017_model, course_llama,
    course_window, course_encoder, course_layer, feed_forward, course_translation, course_translation_by_source,
    pytorch_encoder, pytorch_attention, vector_of_a_sentence, one_length_only, stored_in_bfloat16,
]  # fmt: skip
