"""Answers to assignment 10, with one slip and with two, by a fifth author."""

import torch
import torch.nn.functional as F

from transformer_lab.checks import cached_step, mean_pool

from .. import right, wrong


def _turned(x, positions, base):
    d = x.shape[-1]
    speed = base ** (-torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    angle = positions.double()[:, None] * speed
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    turn = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
    return (turn @ x.unflatten(-1, (-1, 2, 1))).flatten(-3)


@right(mean_pool)
def _(states, real):
    rows = [s[r].mean(0) for s, r in zip(states, real)]
    return F.normalize(torch.stack(rows), dim=-1)


@right(mean_pool)
def _(states, real):
    total = torch.einsum("bsd,bs->bd", states, real.to(states.dtype))
    return total / total.pow(2).sum(-1, keepdim=True).sqrt()


@wrong(mean_pool, "The mean is not scaled to length 1.")
def _(states, real):
    r = real[..., None].to(states.dtype)
    return (states * r).sum(1) / r.sum(1)


@wrong(mean_pool, "Padding is part of the mean.")
def _(states, real):
    return F.normalize(states.mean(1), dim=-1)


@wrong(mean_pool, "The first token is taken.")
def _(states, real):
    return F.normalize(states[:, 0], dim=-1)


@wrong(mean_pool, "Padding is part of the mean.", "The mean is not scaled to length 1.")
def _(states, real):
    return states.mean(dim=1)


@wrong(mean_pool, "The first token is taken.", "The lengths are those over the batch.")
def _(states, real):
    return F.normalize(states[:, 0], dim=0)


@wrong(mean_pool, "Each token is scaled to length 1, and not the mean.", "The sum is divided by seq.")
def _(states, real):
    r = real[..., None].to(states.dtype)
    return (F.normalize(states, dim=-1) * r).sum(1) / states.shape[1]


@right(cached_step)
def _(query, key, value, keys, values, base):
    at = torch.tensor([keys.size(2)], device=query.device)
    q, k = _turned(query, at, base), _turned(key, at, base)
    K, V = torch.cat((keys, k), -2), torch.cat((values, value), -2)
    return F.scaled_dot_product_attention(q, K, V), K, V


@wrong(cached_step, "The new token's position is one too large.")
def _(query, key, value, keys, values, base):
    at = torch.tensor([keys.size(2) + 1], device=query.device)
    q, k = _turned(query, at, base), _turned(key, at, base)
    K, V = torch.cat((keys, k), -2), torch.cat((values, value), -2)
    return F.scaled_dot_product_attention(q, K, V), K, V


@wrong(cached_step, "The new key is not turned.")
def _(query, key, value, keys, values, base):
    at = torch.tensor([keys.size(2)], device=query.device)
    q = _turned(query, at, base)
    K, V = torch.cat((keys, key), -2), torch.cat((values, value), -2)
    return F.scaled_dot_product_attention(q, K, V), K, V


@wrong(cached_step, "The new key and value stand in front.")
def _(query, key, value, keys, values, base):
    at = torch.tensor([keys.size(2)], device=query.device)
    q, k = _turned(query, at, base), _turned(key, at, base)
    K, V = torch.cat((k, keys), -2), torch.cat((value, values), -2)
    return F.scaled_dot_product_attention(q, K, V), K, V


@wrong(cached_step, "The value is turned as well.", "The new token's position is one too large.")
def _(query, key, value, keys, values, base):
    at = torch.tensor([keys.size(2) + 1], device=query.device)
    q, k, v = (_turned(t, at, base) for t in (query, key, value))
    K, V = torch.cat((keys, k), -2), torch.cat((values, v), -2)
    return F.scaled_dot_product_attention(q, K, V), K, V


@wrong(cached_step, "The scores are not scaled.", "The new key is not turned.")
def _(query, key, value, keys, values, base):
    at = torch.tensor([keys.size(2)], device=query.device)
    q = _turned(query, at, base)
    K, V = torch.cat((keys, key), -2), torch.cat((values, value), -2)
    return (q @ K.mT).softmax(-1) @ V, K, V
