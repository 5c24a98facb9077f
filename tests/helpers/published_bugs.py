"""Twenty published mistakes, each rebuilt in a small model beside its repaired twin.

Each function is called with whether the mistake is made, and returns the arguments of an audit. ``CATCHES`` names the
property that tells the two apart; the docstring has the thread in which the mistake was published.
"""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from agreement import DEVICE
from small_model import VOCAB, SmallModel, accumulate, audited, collate

CATCHES = {}  # by the name of the mistake


def caught_by(name):
    def enter(function):
        CATCHES[function.__name__] = name
        return function

    return enter


def either(broken, Mistake, *arguments, **named):
    return (Mistake if broken else SmallModel)(*arguments, **named)


def attention(query, key, value, mask, **options):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, **options)


@caught_by("with a cache = without")
def causal_corner(broken):
    """pytorch#103082: is_causal with a cache, whose mask begins at the top left; one query sees the first key alone."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            return attention(query, key, value, None, is_causal=True)

    return audited(either(broken, Mistake), padded=None, packed=None)


@caught_by("alone = in a padded batch, left")
def left_padding(broken):
    """transformers#3021: positions count the padding in front."""

    class Mistake(SmallModel):
        def positions(self, seq, start, keep, documents):
            return super().positions(seq, start, None, documents)

    return audited(either(broken, Mistake))


@caught_by("twice the same")
def dropout_in_evaluation(broken):
    """nanoGPT#240: the function of attention gets dropout_p in every mode."""

    class Model(SmallModel):
        def attend(self, query, key, value, mask):
            p = self.dropout if broken or self.training else 0.0
            return attention(query, key, value, mask, dropout_p=p)

    return audited(Model(dropout=0.2), padded=None)


@caught_by("the future, with loud weights")
def weak_mask(broken):
    """minGPT#75: a hidden score is -10,000, and a trained model's scores are lower."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            scores = (query @ key.mT * self.scale(query, key)).masked_fill(~mask, -1e4)
            return torch.softmax(scores, -1) @ value

    return audited(either(broken, Mistake))


@caught_by("the window")
def window_plus_one(broken):
    """transformers#29623: a window of W keys becomes one of W + 1, by an inclusive bound."""

    class Mistake(SmallModel):
        def mask(self, q_len, k_len, keep, documents):
            back = self.back(q_len, k_len)
            return (back >= 0) & (back <= self.window)

    return audited(either(broken, Mistake, window=3, n_layers=1), padded=None, packed=None)


@caught_by("packed = apart")
def packed_together(broken):
    """trl#805: two documents in one row read each other."""

    class Mistake(SmallModel):
        def mask(self, q_len, k_len, keep, documents):
            return super().mask(q_len, k_len, keep, None)

    return audited(either(broken, Mistake))


@caught_by("small batches = one big")
def mean_of_means(broken):
    """transformers#34191: accumulated gradients are a mean of the small batches' means."""

    def means(model, batches):
        for tokens, labels in batches:
            scores = model(tokens)[:, :-1].flatten(0, 1)
            (F.cross_entropy(scores, labels[:, 1:].flatten()) / len(batches)).backward()

    return audited(SmallModel(), accumulate=means if broken else accumulate)


@caught_by("the loss asks for the next token")
def shifted_twice(broken):
    """transformers#37830: the model shifts the labels, and the loss shifts them again."""

    class Mistake(SmallModel):
        def loss(self, tokens):
            scores, labels = self(tokens)[:, :-1], tokens[:, 1:]
            return F.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())

    return audited(either(broken, Mistake))


@caught_by("half precision, near and far")
def positions_in_bfloat16(broken):
    """gpt-neox#1016: rotary positions are as wide as the model: in bfloat16, 256 and 257 are one number."""

    class Mistake(SmallModel):
        def angles(self, positions, x):
            places = torch.arange(x.shape[-1] // 2, device=x.device)
            frequencies = (10000.0 ** (-places / len(places))).to(x.dtype)
            return positions.to(x.dtype)[:, None, :, None] * frequencies

    return audited(either(broken, Mistake, rotary=True))


@caught_by("the same as the original")
def other_rope_layout(broken):
    """TinyLlama#24: weights that were trained for rotated neighbours, in code that rotates halves."""

    class Neighbours(SmallModel):
        def rotate(self, x, positions):
            angles = self.angles(positions, x)
            cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
            even, odd = x[..., 0::2], x[..., 1::2]
            return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)

    original, model = Neighbours(rotary=True, seed=3), SmallModel(rotary=True)
    model.load_state_dict(original.state_dict())
    for maps in model.maps:
        for name in () if broken else ("query", "key"):  # the rows of each head: first the even ones, then the odd ones
            rows = maps[name].weight.data.unflatten(0, (model.n_heads, -1, 2))
            maps[name].weight.data = rows.transpose(1, 2).flatten(0, 2).clone()
    return audited(model, reference=original)


@caught_by("the same as the original")
def tile_for_repeat(broken):
    """onnx#7274: query heads read another group's keys, in the order 0 1 0 1 where 0 0 1 1 is meant."""

    class Mistake(SmallModel):
        def spread(self, x):
            return x.repeat(1, self.n_heads // self.n_kv_heads, 1, 1)

    model, original = either(broken, Mistake, n_kv_heads=2), SmallModel()
    state = model.state_dict()
    for name in [name for name in state if name.endswith(("key.weight", "value.weight"))]:
        state[name] = state[name].unflatten(0, (2, -1)).repeat_interleave(2, 0).flatten(0, 1)
    original.load_state_dict(state)
    return audited(model, reference=original)


@caught_by("rows apart")
def batch_second(broken):
    """TabFormer#14: nn.TransformerEncoderLayer without batch_first, on (batch, seq, d_model)."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.place = nn.Embedding(VOCAB, 32), nn.Embedding(64, 32)
            self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=not broken)
            self.head = nn.Linear(32, VOCAB)
            self.to(DEVICE)

        def forward(self, tokens):
            places = torch.arange(tokens.shape[1], device=tokens.device)
            return self.head(self.layer(self.embed(tokens) + self.place(places)))

    return {"model": Model(), "vocab_size": VOCAB, "kind": "bidirectional"}


@caught_by("identity without branches")
def no_clean_residual(broken):
    """pytorch#61165: norm_first adds to the normalized input."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.norm, self.wide, self.narrow = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)
            self.to(DEVICE)

        def forward(self, x):
            z = self.norm(x)
            return (z if broken else x) + self.narrow(torch.relu(self.wide(z)))

    model = Block()
    return {"model": model, "d_model": 16, "kind": "local", "branches": [model.narrow]}


@caught_by("every real token is asked for")
def padding_is_the_end(broken):
    """transformers#23530: the padding token is the end, each is hidden from the loss, and nobody learns to stop."""

    def hides_the_end(sentences):
        tokens, _ = collate(sentences)
        return tokens, tokens.masked_fill(tokens == 0, -100)

    return audited(SmallModel(), collate=hides_the_end if broken else collate)


@caught_by("train() = eval() without dropout")
def bias_as_mask(broken):
    """pytorch#107084: a fast path, in evaluation only, reads an added bias as yes or no."""

    class Model(SmallModel):
        def attend(self, query, key, value, mask):
            bias = -0.5 * self.back(query.shape[2], key.shape[2]).abs().to(query.dtype)
            scores = query @ key.mT * self.scale(query, key)
            scores = scores.masked_fill(bias != 0, -math.inf) if broken and not self.training else scores + bias
            return torch.softmax(scores.masked_fill(~mask, -math.inf), -1).nan_to_num(0.0) @ value

    return audited(Model())


@caught_by("layers begin different")
def equal_layers(broken):
    """pytorch#72253: layers are deep copies of one, and begin equal."""
    model = SmallModel()
    if broken:
        model.maps = nn.ModuleList(copy.deepcopy(model.maps[0]) for _ in model.maps)
        model.wide = nn.ModuleList(copy.deepcopy(model.wide[0]) for _ in model.wide)
    return audited(model)


@caught_by("finite where nothing is seen")
def row_of_nothing(broken):
    """pytorch#103749: a row that sees nothing is NaN."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            scores = (query @ key.mT * self.scale(query, key)).masked_fill(~mask, -math.inf)
            return torch.softmax(scores, -1) @ value

    return audited(either(broken, Mistake))


@caught_by("training noise survives an evaluation")
def dropout_gone(broken):
    """Megatron-LM#411: one evaluation sets dropout to 0 for good."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            self.dropout *= self.training
            return super().attend(query, key, value, mask)

    return audited(either(broken, Mistake, dropout=0.2))


@caught_by("the past does not move")
def inverted_mask(broken):
    """LLMs-from-scratch#1061: True hides, in a mask for a function in which True shows."""

    class Mistake(SmallModel):
        def attend(self, query, key, value, mask):
            return attention(query, key, value, ~mask)

    return audited(either(broken, Mistake), padded=None, packed=None)


@caught_by("padding of the source changes nothing")
def padding_of_the_target(broken):
    """keras-io#1046: cross-attention is masked with the lengths of the target, not of the source."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.place = nn.Embedding(VOCAB, 32), nn.Embedding(64, 32)
            options = {"dropout": 0.0, "batch_first": True}
            self.encoder = nn.TransformerEncoderLayer(32, 4, 64, **options)
            self.decoder = nn.TransformerDecoderLayer(32, 4, 64, **options)
            self.to(DEVICE)

        def embedded(self, tokens):
            return self.embed(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))

        def forward(self, source, target, source_keep, target_keep):
            memory = self.encoder(self.embedded(source), src_key_padding_mask=~source_keep)
            keep = target_keep if broken else source_keep
            causal = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool, device=target.device).triu(1)
            masks = {"tgt_mask": causal, "tgt_key_padding_mask": ~target_keep, "memory_key_padding_mask": ~keep}
            return self.decoder(self.embedded(target), memory, **masks)

    target = torch.arange(1, 11, device=DEVICE)[None]  # as long as the source: exchanged masks raise no error

    def padded(model, tokens, keep):
        targets = target.expand(len(tokens), -1)
        return model(tokens, targets, keep, torch.ones_like(targets, dtype=torch.bool))

    def forward(model, tokens):
        return padded(model, tokens, torch.ones_like(tokens, dtype=torch.bool))

    return {"model": Model(), "vocab_size": VOCAB, "kind": "bidirectional", "forward": forward, "padded": padded}
