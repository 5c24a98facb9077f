"""Answers to assignment 9, with one slip and with two, by a fifth author."""

import torch

from transformer_lab.checks import rotate

from .. import right, wrong


def _rot(x, angle):
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


@right(rotate)
def _(x, positions, base):
    d = x.shape[-1]
    speed = base ** (-torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    angle = positions.double()[:, None] * speed
    turn = torch.polar(torch.ones_like(angle), angle)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)


@right(rotate)
def _(x, positions, base):
    d = x.shape[-1]
    speed = base ** (-torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    angle = positions.double()[:, None] * speed
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    turn = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
    return (turn @ x.unflatten(-1, (-1, 2, 1))).flatten(-3)


@wrong(rotate, "Pairs are made of the two halves.")
def _(x, positions, base):
    d = x.shape[-1]
    angle = positions[:, None] * base ** (-torch.arange(0, d, 2, device=x.device) / d)
    a, b = x.chunk(2, -1)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


@wrong(rotate, "The pairs are turned the other way round.")
def _(x, positions, base):
    d = x.shape[-1]
    angle = positions[:, None] * base ** (-torch.arange(0, d, 2, device=x.device) / d)
    return _rot(x, -angle)


@wrong(rotate, "The positions are counted from 0, whatever is asked for.")
def _(x, positions, base):
    d = x.shape[-1]
    p = torch.arange(x.shape[-2], device=x.device)
    return _rot(x, p[:, None] * base ** (-torch.arange(0, d, 2, device=x.device) / d))


@wrong(rotate, "The pairs are turned the other way round.", "The positions are counted from 0.")
def _(x, positions, base):
    d = x.shape[-1]
    p = torch.arange(x.shape[2], device=x.device)
    return _rot(x, -p[:, None] * base ** (-torch.arange(0, d, 2, device=x.device) / d))


@wrong(rotate, "The exponent is half of what it should be.", "Pairs are made of the two halves.")
def _(x, positions, base):
    d = x.shape[-1]
    angle = positions[:, None] * base ** (-torch.arange(d // 2, device=x.device) / d)
    a, b = x.chunk(2, -1)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


@wrong(rotate, "The base is always 10000.", "The pairs are turned the other way round.")
def _(x, positions, base):
    d = x.shape[-1]
    return _rot(x, -positions[:, None] * 10000.0 ** (-torch.arange(0, d, 2, device=x.device) / d))
