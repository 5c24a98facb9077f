"""Answers to assignment 9, by a third author."""

from functools import reduce

import torch
from torch.nn import functional as F

from transformer_lab.checks import (
    decoder_block,
    gated_feed_forward,
    repeat_keys,
    rotate,
)

from .. import right, wrong


@wrong(rotate, "Feature i is turned with feature i + d_head / 2 instead of with its neighbour.")
def _(x, positions, base):
    d_head = x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, d_head, 2, device=x.device).float() / d_head))
    angles = positions[:, None].float() * inv_freq[None, :]
    angles = torch.cat([angles, angles], dim=-1)
    x1, x2 = x.chunk(2, dim=-1)
    rotated = torch.cat([-x2, x1], dim=-1)
    return (x * angles.cos() + rotated * angles.sin()).to(x.dtype)


@wrong(rotate, "The 2 in the exponent is missing: pair i turns with base to the power -i / d_head.")
def _(x, positions, base):
    d_head = x.shape[-1]
    pairs = torch.arange(d_head // 2, device=x.device)
    angle = positions[:, None] * base ** (-pairs / d_head)
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


@wrong(
    rotate,
    "It writes into x itself: the second feature of a pair is made from the first one's new value, and x is changed.",
)
def _(x, positions, base):
    d_head = x.shape[-1]
    speeds = base ** (-torch.arange(0, d_head, 2, device=x.device) / d_head)
    angle = positions[:, None] * speeds
    a, b = x[..., 0::2], x[..., 1::2]
    x[..., 0::2] = a * angle.cos() - b * angle.sin()
    x[..., 1::2] = a * angle.sin() + b * angle.cos()
    return x


@wrong(rotate, "positions is ignored: tokens are counted from 0, whatever positions are given.")
def _(x, positions, base):
    seq, d_head = x.shape[-2:]
    i = torch.arange(d_head // 2, dtype=torch.float32, device=x.device)
    speeds = base ** (-2 * i / d_head)
    angle = torch.outer(torch.arange(seq, device=x.device).float(), speeds)
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)
    return turned.flatten(-2)


@right(rotate)
def _(x, positions, base):
    d_head = x.shape[-1]
    exponents = torch.arange(0, d_head, 2, dtype=torch.float64, device=x.device) / d_head
    angle = torch.outer(positions.double(), float(base) ** -exponents)
    rows = [angle.cos(), -angle.sin(), angle.sin(), angle.cos()]
    turns = torch.stack(rows, dim=-1).unflatten(-1, (2, 2)).to(x.dtype)  # (seq, pairs, 2, 2)
    return torch.einsum("spij,bhspj->bhspi", turns, x.unflatten(-1, (-1, 2))).flatten(-2)


@wrong(repeat_keys, "The heads are repeated as a whole, 0, 1, 0, 1, 0, 1, instead of each in its turn.")
def _(x, n_heads):
    batch, kv_heads, seq, d_head = x.shape
    x = x.unsqueeze(1).expand(batch, n_heads // kv_heads, kv_heads, seq, d_head)
    return x.reshape(batch, n_heads, seq, d_head)


@wrong(repeat_keys, "Every head is repeated three times, whatever n_heads is.")
def _(x, n_heads):
    return x.repeat_interleave(3, dim=1)


@wrong(
    repeat_keys,
    "Without dim, every number is repeated next to itself, not every head: the shape is right, the content scrambled.",
)
def _(x, n_heads):
    batch, kv_heads, seq, d_head = x.shape
    copies = torch.repeat_interleave(x, n_heads // kv_heads)
    return copies.view(batch, n_heads, seq, d_head)


@wrong(
    repeat_keys,
    "Query head i reads head i // kv_heads instead of i // group size: right only where both are the same.",
)
def _(x, n_heads):
    kv_heads = x.shape[1]
    which = torch.arange(n_heads, device=x.device) // kv_heads
    return x[:, which]


@right(repeat_keys)
def _(x, n_heads):
    return torch.stack([x] * (n_heads // x.size(1)), dim=2).flatten(1, 2)


@wrong(gated_feed_forward, "SiLU is on the wrong map: up goes through it, and gate does not.")
def _(x, gate, up, down):
    return F.linear(F.linear(x, gate) * F.silu(F.linear(x, up)), down)


@wrong(
    gated_feed_forward, "The weights are not transposed: it fails unless d_ff equals d_model, and is mostly wrong then."
)
def _(x, gate, up, down):
    hidden = F.silu(x @ gate) * (x @ up)
    return hidden @ down


@wrong(gated_feed_forward, "The gate is only its sigmoid, as in a plain GLU: the factor x of SiLU is missing.")
def _(x, gate, up, down):
    opened = torch.sigmoid(x @ gate.T)
    return (opened * (x @ up.T)) @ down.T


@wrong(gated_feed_forward, "SiLU comes after the product of both maps instead of on the gate alone.")
def _(x, gate, up, down):
    g = torch.einsum("bsd,fd->bsf", x, gate)
    u = torch.einsum("bsd,fd->bsf", x, up)
    return torch.einsum("bsf,df->bsd", F.silu(g * u), down)


@right(gated_feed_forward)
def _(x, gate, up, down):
    g, u = F.linear(x, torch.cat([gate, up])).chunk(2, dim=-1)
    return F.linear(F.glu(torch.cat([g * u, g], dim=-1)), down)  # glu: a * sigmoid(b)


@wrong(decoder_block, "The norms stand after each sum, post-norm, and the parts read what has met no norm.")
def _(x, attention, feed_forward, norm1, norm2):
    x = norm1(x + attention(x))
    return norm2(x + feed_forward(x))


@wrong(decoder_block, "The caller's x is changed in place by +=.")
def _(x, attention, feed_forward, norm1, norm2):
    x += attention(norm1(x))
    x += feed_forward(norm2(x))
    return x


@wrong(decoder_block, "Each part's result is added to the normalized x instead of to x itself.")
def _(x, attention, feed_forward, norm1, norm2):
    x = norm1(x)
    x = x + attention(x)
    x = norm2(x)
    return x + feed_forward(x)


@wrong(decoder_block, "Both parts read the x that came in: the feed-forward layer does not see what attention added.")
def _(x, attention, feed_forward, norm1, norm2):
    attended = attention(norm1(x))
    fed = feed_forward(norm2(x))
    return x + attended + fed


@right(decoder_block)
def _(x, attention, feed_forward, norm1, norm2):
    parts = [(norm1, attention), (norm2, feed_forward)]
    return reduce(lambda h, part: torch.add(part[1](part[0](h)), h), parts, x)
