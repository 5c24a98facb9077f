"""A second author: answers to chapter 9's exercises."""

import torch
from torch.nn import functional as F

import transformer_lab as tl

from .. import right, wrong

E = tl.checks


# rotate


@wrong(
    E.rotate,
    "Feature i is paired with feature i + d_head / 2, as Hugging Face's Llama does (rotate_half), instead of "
    "neighbours 2i and 2i + 1. Right for d_head = 2 only.",
)
def _(x, positions, base):
    dim = x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
    freqs = torch.outer(positions.float(), inv_freq)
    emb = torch.cat((freqs, freqs), dim=-1)
    x1, x2 = x[..., : dim // 2], x[..., dim // 2 :]
    rotated = torch.cat((-x2, x1), dim=-1)
    return x * emb.cos() + rotated * emb.sin()


@wrong(
    E.rotate,
    "positions is ignored: tokens are counted 0, 1, 2, ... from the beginning of x, so everything is wrong where the "
    "positions do not begin at 0 or have gaps.",
)
def _(x, positions, base):
    seq, d_head = x.shape[-2:]
    speed = base ** (-torch.arange(0, d_head, 2) / d_head)
    angle = torch.arange(seq)[:, None] * speed
    a, b = x[..., 0::2], x[..., 1::2]
    out = torch.empty_like(x)
    out[..., 0::2] = a * angle.cos() - b * angle.sin()
    out[..., 1::2] = a * angle.sin() + b * angle.cos()
    return out


@wrong(
    E.rotate,
    "The exponent lacks the factor 2: pair i is turned at the speed base^(-i / d_head) instead of base^(-2i / "
    "d_head), so all pairs but the first turn too fast.",
)
def _(x, positions, base):
    d_head = x.shape[-1]
    angle = positions[:, None] * base ** (-torch.arange(d_head // 2) / d_head)
    a, b = x[..., 0::2], x[..., 1::2]
    turned = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
    return torch.stack(turned, dim=-1).flatten(-2)


@right(E.rotate)
def _(x, positions, base):
    d_head = x.shape[-1]
    angle = torch.outer(positions.to(x.dtype), base ** (-torch.arange(0, d_head, 2, dtype=x.dtype) / d_head))
    turns = torch.polar(torch.ones_like(angle), angle)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2)


# repeat_keys


@wrong(
    E.repeat_keys,
    "repeat puts the whole row of heads again and again, 0, 1, 0, 1, 0, 1, instead of 0, 0, 0, 1, 1, 1. Right for one "
    "key head (or as many as queries).",
)
def _(x, n_heads):
    return x.repeat(1, n_heads // x.shape[1], 1, 1)


@wrong(
    E.repeat_keys,
    "expand stretches only an axis of size 1: right for a single key head, raises for several that must be repeated.",
)
def _(x, n_heads):
    batch, _, seq, d_head = x.shape
    return x.expand(batch, n_heads, seq, d_head)


@wrong(
    E.repeat_keys,
    "repeat_interleave without an axis flattens x and repeats every single number; the view brings the shape back, but "
    "the numbers stand at wrong places.",
)
def _(x, n_heads):
    batch, kv_heads, seq, d_head = x.shape
    return x.repeat_interleave(n_heads // kv_heads).view(batch, n_heads, seq, d_head)


# gated_feed_forward


@wrong(
    E.gated_feed_forward,
    "Gate and up are exchanged: SiLU is applied to up instead of gate.",
)
def _(x, gate, up, down):
    return F.linear(F.linear(x, gate) * F.silu(F.linear(x, up)), down)


@wrong(
    E.gated_feed_forward,
    "The gate goes through the sigmoid alone (a GLU), not through SiLU, x * sigmoid(x).",
)
def _(x, gate, up, down):
    g = torch.sigmoid(x @ gate.T)
    return (g * (x @ up.T)) @ down.T


@wrong(
    E.gated_feed_forward,
    "SiLU is applied to the product of gate and up instead of to gate before the product.",
)
def _(x, gate, up, down):
    hidden = F.silu((x @ gate.T) * (x @ up.T))
    return hidden @ down.T


@right(E.gated_feed_forward)
def _(x, gate, up, down):
    g, u = (x @ torch.cat([gate, up]).T).chunk(2, dim=-1)
    return (g * u / (1 + torch.exp(-g))) @ down.T


# decoder_block


@wrong(
    E.decoder_block,
    "Both parts read the x that came in, side by side (a parallel block as in GPT-J): the feed-forward layer "
    "does not see what attention has added.",
)
def _(x, attention, feed_forward, norm1, norm2):
    return x + attention(norm1(x)) + feed_forward(norm2(x))


@wrong(
    E.decoder_block,
    "The first residual connection is missing: attention's result replaces x instead of being added to it.",
)
def _(x, attention, feed_forward, norm1, norm2):
    h = attention(norm1(x))
    return h + feed_forward(norm2(h))


@wrong(
    E.decoder_block,
    "x += changes the caller's x in place; the returned numbers are right.",
)
def _(x, attention, feed_forward, norm1, norm2):
    x += attention(norm1(x))
    x += feed_forward(norm2(x))
    return x
