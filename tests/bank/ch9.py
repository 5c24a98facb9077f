"""Answers to assignment 9."""

import math

import torch
import torch.nn.functional as F

from transformer_lab.checks import (
    decoder_block,
    gated_feed_forward,
    repeat_keys,
    rotate,
)

from . import right, wrong


@wrong(rotate, "Feature i is paired with i + d_head / 2, as in Hugging Face's rotate_half.")
def _(x, positions, base):
    d = x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, d, 2).float() / d))
    freqs = positions[:, None].float() * inv_freq[None, :]
    emb = torch.cat((freqs, freqs), dim=-1)
    x1, x2 = x[..., : d // 2], x[..., d // 2 :]
    rotated = torch.cat((-x2, x1), dim=-1)
    return x * emb.cos() + rotated * emb.sin()


@wrong(rotate, "positions is not read: the tokens are counted from 0.")
def _(x, positions, base):
    batch, heads, seq, d_head = x.shape
    speeds = base ** (-torch.arange(0, d_head, 2) / d_head)
    angle = torch.arange(seq)[:, None] * speeds
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


@wrong(rotate, "The turned features are put back as two halves, first all even ones, then all odd ones.")
def _(x, positions, base):
    a, b = x[..., 0::2], x[..., 1::2]
    angle = positions[:, None] * base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


@wrong(rotate, "It writes into x, and the odd features are computed with the even ones already turned.")
def _(x, positions, base):
    d = x.shape[-1]
    angles = positions[:, None] / base ** (torch.arange(0, d, 2) / d)
    cos, sin = angles.cos(), angles.sin()
    a = x[..., 0::2]
    b = x[..., 1::2]
    x[..., 0::2] = a * cos - b * sin
    x[..., 1::2] = a * sin + b * cos
    return x


@right(rotate)
def _(x, positions, base):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    i = torch.arange(pairs.shape[-1], device=x.device, dtype=x.dtype)
    angle = torch.outer(positions.to(x.dtype), torch.exp(-2 * i / x.shape[-1] * math.log(base)))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


@wrong(repeat_keys, "The heads are tiled, 0, 1, 0, 1, instead of each one's copies standing together.")
def _(x, n_heads):
    kv_heads = x.shape[1]
    return x.repeat(1, n_heads // kv_heads, 1, 1)


@wrong(repeat_keys, "No axis is named, so repeat_interleave repeats every number of the flattened tensor.")
def _(x, n_heads):
    n_rep = n_heads // x.size(1)
    return x.repeat_interleave(n_rep)


@wrong(repeat_keys, "The copies stay an axis of their own: the result has five axes.")
def _(x, n_heads):
    b, kv, s, d = x.shape
    group = n_heads // kv
    return x[:, :, None, :, :].expand(b, kv, group, s, d)


@wrong(repeat_keys, "expand stretches only an axis of size 1: it raises unless there is one head of keys.")
def _(x, n_heads):
    batch, _, seq, d_head = x.shape
    return x.expand(batch, n_heads, seq, d_head)


@right(repeat_keys)
def _(x, n_heads):
    owner = torch.arange(n_heads, device=x.device) * x.shape[1] // n_heads
    return x.index_select(1, owner)


@wrong(gated_feed_forward, "SiLU is on up, not on gate.")
def _(x, gate, up, down):
    return ((x @ gate.T) * F.silu(x @ up.T)) @ down.T


@wrong(gated_feed_forward, "A sigmoid stands where SiLU is asked, as in the first gated linear unit.")
def _(x, gate, up, down):
    g = torch.sigmoid(F.linear(x, gate))
    return F.linear(g * F.linear(x, up), down)


@wrong(gated_feed_forward, "The two maps are added, not multiplied.")
def _(x, gate, up, down):
    hidden = F.silu(x @ gate.T) + x @ up.T
    return hidden @ down.T


@wrong(gated_feed_forward, "The map up is not used: the gate is multiplied with nothing.")
def _(x, gate, up, down):
    h = x @ gate.T
    h = h * torch.sigmoid(h)
    return h @ down.T


@right(gated_feed_forward)
def _(x, gate, up, down):
    g, u = F.linear(x, torch.cat([gate, up])).chunk(2, dim=-1)
    return torch.matmul(g * u * g.sigmoid(), down.mT)


@wrong(
    decoder_block, "The feed-forward layer reads attention's result alone, without the x that was to be added first."
)
def _(x, attention, feed_forward, norm1, norm2):
    a = attention(norm1(x))
    f = feed_forward(norm2(a))
    return x + a + f


@wrong(decoder_block, "It is post-norm: each norm stands after the sum.")
def _(x, attention, feed_forward, norm1, norm2):
    x = norm1(x + attention(x))
    x = norm2(x + feed_forward(x))
    return x


@wrong(decoder_block, "+= changes the caller's x in place.")
def _(x, attention, feed_forward, norm1, norm2):
    x += attention(norm1(x))
    x += feed_forward(norm2(x))
    return x


@wrong(decoder_block, "The stream itself is normalized: what is added to each part's result has met its norm.")
def _(x, attention, feed_forward, norm1, norm2):
    x = norm1(x)
    x = x + attention(x)
    x = norm2(x)
    x = x + feed_forward(x)
    return x


@right(decoder_block)
def _(x, attention, feed_forward, norm1, norm2):
    def with_residual(part, norm, stream):
        return torch.add(stream, part(norm(stream)))

    return with_residual(feed_forward, norm2, with_residual(attention, norm1, x))
