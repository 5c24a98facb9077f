"""Held out: answers to assignment 9."""

import math
from functools import reduce

import torch
import torch.nn.functional as F

from transformer_lab.checks import (
    decoder_block,
    gated_feed_forward,
    repeat_keys,
    rotate,
)

from .. import right, wrong


@wrong(rotate, "The pairs are turned the other way: the sines have the wrong sign.")
def _(x, positions, base):
    d_head = x.size(-1)
    i = torch.arange(d_head // 2)
    angle = positions.unsqueeze(1) * base ** (-2 * i / d_head)
    cos, sin = torch.cos(angle), torch.sin(angle)
    even, odd = x[..., ::2], x[..., 1::2]
    out = torch.empty_like(x)
    out[..., ::2] = even * cos + odd * sin
    out[..., 1::2] = odd * cos - even * sin
    return out


@wrong(rotate, "The factor 2 of the exponent is missing: pair i turns with base ** (-i / d_head).")
def _(x, positions, base):
    d_head = x.shape[-1]
    a, b = x[..., 0::2], x[..., 1::2]
    theta = base ** (-torch.arange(d_head // 2) / d_head)
    angle = positions[:, None] * theta[None, :]
    a2 = a * torch.cos(angle) - b * torch.sin(angle)
    b2 = a * torch.sin(angle) + b * torch.cos(angle)
    return torch.stack((a2, b2), dim=-1).reshape(x.shape)


@wrong(rotate, "The base is fixed at 10000 and the argument is not used.")
def _(x, positions, base):
    dim = x.shape[-1]
    div_term = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    theta = positions.float().unsqueeze(-1) * div_term
    sin, cos = theta.sin(), theta.cos()
    x1, x2 = x[..., 0::2], x[..., 1::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1).flatten(-2)


@wrong(
    rotate,
    "Neighbours are paired, but their angles are laid out as two halves: the two of a pair turn by different angles.",
)
def _(x, positions, base):
    d = x.shape[-1]
    freqs = torch.outer(positions.float(), base ** (-torch.arange(0, d, 2).float() / d))
    freqs = torch.cat([freqs, freqs], dim=-1)
    x_rot = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).reshape(x.shape)
    return x * freqs.cos() + x_rot * freqs.sin()


@right(rotate)
def _(x, positions, base):
    d = x.shape[-1]
    exponents = torch.arange(d).div(2, rounding_mode="floor").mul(-2.0 / d)
    angle = positions.view(-1, 1) * torch.pow(torch.tensor(float(base)), exponents)
    partner = torch.arange(d).view(-1, 2).flip(1).flatten()
    sign = torch.tensor([-1.0, 1.0]).repeat(d // 2)
    return x * angle.cos() + x[..., partner] * sign * angle.sin()


@wrong(repeat_keys, "Each head is repeated n_heads times, not n_heads // kv_heads times.")
def _(x, n_heads):
    return torch.repeat_interleave(x, n_heads, dim=1)


@wrong(repeat_keys, "n_heads / kv_heads is a float, and repeat_interleave raises.")
def _(x, n_heads):
    batch, kv_heads, seq, d_head = x.shape
    return x.repeat_interleave(n_heads / kv_heads, dim=1)


@wrong(repeat_keys, "The heads are looked for on axis 2, as in (batch, seq, heads, d_head).")
def _(x, n_heads):
    n_kv = x.shape[2]
    return torch.repeat_interleave(x, n_heads // n_kv, dim=2)


@wrong(repeat_keys, "The index of a query head is divided by kv_heads, not by the size of a group.")
def _(x, n_heads):
    kv_heads = x.shape[1]
    index = torch.arange(n_heads) // kv_heads
    return x[:, index]


@right(repeat_keys)
def _(x, n_heads):
    size = n_heads // x.shape[1]
    return torch.cat([head for head in x.split(1, dim=1) for _ in range(size)], dim=1)


@wrong(gated_feed_forward, "The weights are not transposed: they are stored (out, in).")
def _(x, gate, up, down):
    return (F.silu(x @ gate) * (x @ up)) @ down


@wrong(gated_feed_forward, "GELU stands where SiLU is asked.")
def _(x, gate, up, down):
    return F.linear(F.gelu(F.linear(x, gate)) * F.linear(x, up), down)


@wrong(gated_feed_forward, "SiLU is applied to the product of both maps.")
def _(x, gate, up, down):
    h = (x @ gate.T) * (x @ up.T)
    return F.silu(h) @ down.T


@wrong(gated_feed_forward, "SiLU is applied to x, before the map, instead of after it.")
def _(x, gate, up, down):
    def silu(z):
        return z * torch.sigmoid(z)

    return (silu(x) @ gate.T * (x @ up.T)) @ down.T


@right(gated_feed_forward)
def _(x, gate, up, down):
    g = torch.einsum("fm,bsm->bsf", gate, x)
    u = torch.einsum("fm,bsm->bsf", up, x)
    half = g / 2
    return torch.einsum("bsf,bsf,mf->bsm", half + half * half.tanh(), u, down)


@wrong(decoder_block, "Both parts read the x that came in, side by side, as in GPT-J.")
def _(x, attention, feed_forward, norm1, norm2):
    return x + attention(norm1(x)) + feed_forward(norm2(x))


@wrong(decoder_block, "norm1 is used twice, norm2 not at all.")
def _(x, attention, feed_forward, norm1, norm2):
    x = x + attention(norm1(x))
    x = x + feed_forward(norm1(x))
    return x


@wrong(decoder_block, "The second sum begins with the x that came in, so attention's result is not added.")
def _(x, attention, feed_forward, norm1, norm2):
    h = x + attention(norm1(x))
    return x + feed_forward(norm2(h))


@wrong(decoder_block, "attention gets three arguments, as nn.MultiheadAttention does, and raises.")
def _(x, attention, feed_forward, norm1, norm2):
    h = norm1(x)
    x = x + attention(h, h, h)
    return x + feed_forward(norm2(x))


@right(decoder_block)
def _(x, attention, feed_forward, norm1, norm2):
    steps = [lambda z: attention(norm1(z)), lambda z: feed_forward(norm2(z))]
    return reduce(lambda stream, step: step(stream) + stream, steps, x)
