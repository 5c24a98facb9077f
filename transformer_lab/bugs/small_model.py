"""A Transformer of two layers. Each part is a method that a published bug can replace."""

import math
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import nn

from ..device import device

VOCAB_SIZE = 50


@contextmanager
def seeded(seed):
    """Seed the random numbers of the block, and restore the session's random state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


class SmallModel(nn.Module):
    """A pre-norm model with learned or rotary positions: it maps tokens (batch, seq) to scores (batch, seq, vocab).

    ``keep``, (batch, k_len), is True at real tokens. ``documents``, (batch, seq), contains the index of each token's
    document. ``cache`` contains the keys and values of earlier tokens, one pair for each layer; each call appends the
    keys and values of the new tokens.
    """

    def __init__(self, d_model=32, n_heads=4, n_layers=2, n_kv_heads=None, dropout=0.0, rotary=False, causal=True,
                 window=None, seed=0):  # fmt: skip
        super().__init__()
        self.n_heads, self.n_kv_heads, self.d_head = n_heads, n_kv_heads or n_heads, d_model // n_heads
        self.rotary, self.causal, self.window, self.dropout = rotary, causal, window, dropout
        with seeded(seed):
            self.embed = nn.Embedding(VOCAB_SIZE, d_model)
            self.position_embedding = None if rotary else nn.Embedding(1024, d_model)
            sizes = {"query": n_heads, "key": self.n_kv_heads, "value": self.n_kv_heads, "out": n_heads}
            self.projections = nn.ModuleList(
                nn.ModuleDict(
                    {name: nn.Linear(d_model, heads * self.d_head, bias=False) for name, heads in sizes.items()}
                )
                for _ in range(n_layers)
            )
            self.feed_forwards = nn.ModuleList(
                nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.GELU(), nn.Linear(2 * d_model, d_model))
                for _ in range(n_layers)
            )
            self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2 * n_layers + 1))
            self.head = nn.Linear(d_model, VOCAB_SIZE, bias=False)
        self.to(device())

    # The parts that a bug replaces

    def positions(self, seq, start, keep, documents):
        """The position of each token, of shape (batch or 1, seq). Padding is not counted; each document starts at 0."""
        if documents is not None:
            lengths = [row.unique_consecutive(return_counts=True)[1].tolist() for row in documents]
            rows = [torch.cat([torch.arange(length) for length in row_lengths]) for row_lengths in lengths]
            return torch.stack(rows).to(documents.device)
        if keep is not None:
            return (keep.long().cumsum(-1) - 1).clamp(min=0)[:, -seq:]
        return torch.arange(start, start + seq, device=self.embed.weight.device)[None]

    def mask(self, q_len, k_len, keep, documents):
        """True where a query may attend to a key; the mask broadcasts to (batch, heads, q_len, k_len)."""
        distance = self.distance_back(q_len, k_len)
        visible = self.padding_and_document_mask(q_len, k_len, keep, documents)
        if self.causal:
            visible = visible & (distance >= 0)
        return visible & (distance < self.window) if self.window else visible

    def padding_and_document_mask(self, q_len, k_len, keep, documents):
        """True where a key is not padding and is in the query's document."""
        visible = torch.ones(q_len, k_len, dtype=torch.bool, device=self.embed.weight.device)
        if keep is not None:
            visible = visible & keep[:, None, None]
        if documents is not None:
            visible = visible & (documents[:, None, :, None] == documents[:, None, None])
        return visible

    def distance_back(self, q_len, k_len):
        """The distance from each query back to each key, of shape (q_len, k_len)."""
        positions = torch.arange(k_len, device=self.embed.weight.device)
        return positions[k_len - q_len :, None] - positions

    def scale(self, query, key):
        return 1 / math.sqrt(query.shape[-1])

    def repeat_key_heads(self, x):
        """Repeat each key head for all query heads of its group; neighbouring query heads form a group."""
        return x.repeat_interleave(self.n_heads // self.n_kv_heads, 1)

    def angles(self, positions, x):
        pair_indices = torch.arange(x.shape[-1] // 2, device=x.device)
        return positions.float()[:, None, :, None] * 10000.0 ** (-pair_indices / len(pair_indices))

    def rotate(self, x, positions):
        angles = self.angles(positions, x)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        first, second = x.chunk(2, -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

    def attend(self, query, key, value, mask):
        scores = (query @ key.mT * self.scale(query, key)).masked_fill(~mask, -math.inf)
        weights = torch.softmax(scores, -1).nan_to_num(0.0)
        return F.dropout(weights, self.dropout, self.training) @ value

    def embed_tokens(self, tokens, positions):
        return self.embed(tokens) + (self.position_embedding(positions) if self.position_embedding else 0.0)

    def feed_forward(self, x, layer_index):
        return self.feed_forwards[layer_index](x)

    def add(self, x, branch):
        return x + branch

    def extend(self, cache, layer_index, key, value):
        """Append keys and values to the cache, and return all keys and values."""
        if len(cache) > layer_index:
            key, value = (torch.cat([cached, new], 2) for cached, new in zip(cache[layer_index], (key, value)))
            cache[layer_index] = key, value
        else:
            cache.append((key, value))
        return key, value

    def layer(self, x, layer_index, positions, keep, documents, cache):
        z = self.norms[2 * layer_index](x)
        features = [self.projections[layer_index][name](z) for name in ("query", "key", "value")]
        query, key, value = (x.unflatten(-1, (-1, self.d_head)).transpose(1, 2) for x in features)
        if self.rotary:
            query, key = self.rotate(query, positions), self.rotate(key, positions)
        if cache is not None:
            key, value = self.extend(cache, layer_index, key, value)
        mask = self.mask(x.shape[1], key.shape[2], keep, documents)
        heads = self.attend(query, self.repeat_key_heads(key), self.repeat_key_heads(value), mask)
        x = self.add(x, self.projections[layer_index]["out"](heads.transpose(1, 2).flatten(2)))
        return self.add(x, self.feed_forward(self.norms[2 * layer_index + 1](x), layer_index))

    def output(self, x, keep):
        return self.head(self.norms[-1](x))

    # The passes that call these parts

    def forward(self, tokens, keep=None, documents=None, cache=None):
        start = cache[0][0].shape[2] if cache else 0
        positions = self.positions(tokens.shape[1], start, keep, documents)
        x = self.embed_tokens(tokens, positions)
        for layer_index in range(len(self.projections)):
            x = self.layer(x, layer_index, positions, keep, documents, cache)
        return self.output(x, keep)

    def step(self, tokens, cache):
        cache = [] if cache is None else cache
        return self(tokens, cache=cache), cache

    def loss(self, tokens):
        return F.cross_entropy(self(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def accumulate(model, batches):
    """Accumulate the gradient of one large batch over small batches. The loss is the mean over all valid labels."""
    n_targets = sum(int((labels[:, 1:] != -100).sum()) for _, labels in batches)
    for tokens, labels in batches:
        scores = model(tokens)[:, :-1].flatten(0, 1)
        (F.cross_entropy(scores, labels[:, 1:].flatten(), reduction="sum") / n_targets).backward()


def collate(sentences, pad=0):
    """Return the padded tokens and their labels, which are -100 only after the end of each sentence."""
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    tokens = torch.full((len(sentences), int(lengths.max())), pad)
    for row, sentence in zip(tokens, sentences):
        row[: len(sentence)] = torch.tensor(sentence)
    return tokens, tokens.masked_fill(torch.arange(tokens.shape[1]) >= lengths[:, None], -100)


def audit_arguments(model, **changes):
    """Return the arguments, adapters included, for an audit of a `SmallModel`.

    ``changes`` replaces arguments; a change to ``None`` removes an argument.
    """
    arguments = {
        "model": model,
        "vocab_size": VOCAB_SIZE,
        "kind": "causal" if model.causal else "bidirectional",
        "padded": lambda model, tokens, keep: model(tokens, keep=keep),
        "packed": lambda model, tokens, documents: model(tokens, documents=documents),
        "step": lambda model, tokens, cache: model.step(tokens, cache),
        "loss": lambda model, tokens: model.loss(tokens),
        "accumulate": accumulate,
        "collate": collate,
        "window": model.window,
        "n_layers": len(model.projections),
        "long": 600,
    }
    if not model.causal:
        changes = dict.fromkeys(("step", "loss", "accumulate")) | changes
    return {name: value for name, value in (arguments | changes).items() if value is not None}
