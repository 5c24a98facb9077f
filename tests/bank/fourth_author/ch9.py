"""Answers to assignment 9, by a fourth author."""

import torch
import torch.nn.functional as F

from transformer_lab.checks import (
    decoder_block,
    gated_feed_forward,
    repeat_keys,
    rotate,
)

from .. import right, wrong


@wrong(
    rotate, "The turned pairs are not put back side by side: all first members come first, and then all second ones."
)
def _(x, positions, base):
    d_head = x.shape[-1]
    exponent = torch.arange(0, d_head, 2, dtype=x.dtype, device=x.device) / d_head
    angle = positions[:, None].to(x.dtype) * base**-exponent
    cos, sin = angle.cos(), angle.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


@wrong(rotate, "The exponent of pair i is -i / d_head, half of what it should be, so that later pairs turn too fast.")
def _(x, positions, base):
    d_head = x.size(-1)
    i = torch.arange(d_head // 2, device=x.device)
    inv_freq = 1.0 / (base ** (i.to(x.dtype) / d_head))
    angles = torch.outer(positions.to(x.dtype), inv_freq)
    cos, sin = torch.cos(angles), torch.sin(angles)
    x_even, x_odd = x[..., ::2], x[..., 1::2]
    out = torch.empty_like(x)
    out[..., ::2] = x_even * cos - x_odd * sin
    out[..., 1::2] = x_even * sin + x_odd * cos
    return out


@right(rotate)
def _(x, positions, base):
    # A 2 x 2 matrix for each position and pair.
    d_head = x.shape[-1]
    speed = torch.tensor([base ** (-2 * i / d_head) for i in range(d_head // 2)], dtype=torch.float64)
    angle = positions.double()[:, None] * speed.to(x.device)
    cos, sin = angle.cos(), angle.sin()
    turn = torch.stack([torch.stack([cos, -sin], dim=-1), torch.stack([sin, cos], dim=-1)], dim=-2)
    pairs = x.unflatten(-1, (d_head // 2, 2))
    return torch.einsum("spij,bhspj->bhspi", turn.to(x.dtype), pairs).flatten(-2)


@wrong(repeat_keys, "The whole row of heads is repeated, 0, 1, 0, 1: copies of one head do not stand side by side.")
def _(x, n_heads):
    batch, kv_heads, seq, d_head = x.shape
    groups = n_heads // kv_heads
    x = x.unsqueeze(1).expand(batch, groups, kv_heads, seq, d_head)
    return x.reshape(batch, n_heads, seq, d_head)


@wrong(
    repeat_keys,
    "A query head's number is divided by the number of key heads and not by the size of a group, which is right only "
    "where the two are equal.",
)
def _(x, n_heads):
    kv_heads = x.shape[1]
    which = torch.arange(n_heads, device=x.device) // kv_heads
    return x[:, which]


@wrong(gated_feed_forward, "The product of both maps goes through SiLU, and not the gate alone.")
def _(x, gate, up, down):
    hidden = F.linear(x, gate) * F.linear(x, up)
    return F.linear(F.silu(hidden), down)


@wrong(gated_feed_forward, "The gate goes through a sigmoid, without the factor x that makes SiLU of it.")
def _(x, gate, up, down):
    opened = torch.sigmoid(x @ gate.T)
    return (opened * (x @ up.T)) @ down.T


@right(gated_feed_forward)
def _(x, gate, up, down):
    g, u = (x @ torch.cat([gate, up], dim=0).mT).chunk(2, dim=-1)
    hidden = g * u * (1 + torch.tanh(g / 2)) / 2
    return torch.einsum("bsf,df->bsd", hidden, down)


@wrong(decoder_block, "Both parts read the x that came in: the feed-forward layer does not see attention's result.")
def _(x, attention, feed_forward, norm1, norm2):
    return x + attention(norm1(x)) + feed_forward(norm2(x))


@wrong(decoder_block, "The second sum begins with the x that came in, so that attention's own result is not in it.")
def _(x, attention, feed_forward, norm1, norm2):
    h = x + attention(norm1(x))
    out = x + feed_forward(norm2(h))
    return out
