"""Answers to assignment 3, with one slip and with two, by a fifth author."""

import math

import torch
import torch.nn.functional as F

from transformer_lab.checks import attention, sinusoidal_positions, softmax

from .. import right, wrong


@right(softmax)
def _(x, dim):
    return (x - x.logsumexp(dim, keepdim=True)).exp()


@right(softmax)
def _(x, dim):
    x = x.movedim(dim, -1)
    e = (x - x.amax(-1, keepdim=True)).exp()
    return (e / e.sum(-1, keepdim=True)).movedim(-1, dim)


@wrong(softmax, "Nothing is subtracted, so large scores overflow.")
def _(x, dim):
    e = x.exp()
    return e / e.sum(dim, keepdim=True)


@wrong(softmax, "Always the last axis.")
def _(x, dim):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


@wrong(softmax, "Scores are cut at 80, so that larger ones are all alike.")
def _(x, dim):
    e = x.clamp(max=80).exp()
    return e / e.sum(dim, keepdim=True)


@wrong(softmax, "Always the last axis.", "Nothing is subtracted, so large scores overflow.")
def _(x, dim):
    e = x.exp()
    return e / e.sum(-1, keepdim=True)


@wrong(softmax, "Nothing is subtracted.", "The result is in float32, whatever the dtype of x.")
def _(x, dim):
    e = x.float().exp()
    return e / e.sum(dim, keepdim=True)


@wrong(
    softmax,
    "The maximum of the whole tensor is subtracted, so rows far below it vanish.",
    "The sum always runs over the last axis.",
)
def _(x, dim):
    e = (x - x.max()).exp()
    return e / e.sum(dim=-1, keepdim=True)


@right(attention)
def _(query, key, value):
    scores = torch.einsum("bhqd,bhkd->bhkq", query, key) * query.size(-1) ** -0.5
    return torch.einsum("bhkq,bhkv->bhqv", scores.softmax(-2), value)


@right(attention)
def _(query, key, value):
    rows = []
    for i in range(query.shape[2]):
        s = (key * query[:, :, i : i + 1]).sum(-1) / math.sqrt(query.shape[-1])
        rows.append((s.softmax(-1)[..., None] * value).sum(-2))
    return torch.stack(rows, -2)


@wrong(attention, "The scores are not scaled.")
def _(query, key, value):
    return (query @ key.mT).softmax(-1) @ value


@wrong(attention, "The scores are divided by the root of k_len.")
def _(query, key, value):
    return (query @ key.mT / key.shape[-2] ** 0.5).softmax(-1) @ value


@wrong(attention, "Weights are dropped at random.")
def _(query, key, value):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return F.dropout(weights, 0.1) @ value


@wrong(attention, "The scores are not scaled.", "The softmax runs over the queries.")
def _(query, key, value):
    return (query @ key.mT).softmax(-2) @ value


@wrong(
    attention,
    "The scores are divided by d_head, not its root.",
    "The result is in float32, whatever the dtype of the inputs.",
)
def _(query, key, value):
    return ((query @ key.mT / query.shape[-1]).softmax(-1) @ value).float()


@wrong(attention, "The scores are multiplied by the root of d_head.", "The softmax runs over the queries.")
def _(query, key, value):
    return (query @ key.mT * query.shape[-1] ** 0.5).softmax(dim=2) @ value


@right(sinusoidal_positions)
def _(seq, d_model):
    feature = torch.arange(d_model)
    p = torch.arange(seq, dtype=torch.float64)[:, None]
    angle = p / 10000 ** ((feature // 2) * 2 / d_model).double()
    return torch.where(feature % 2 == 0, angle.sin(), angle.cos()).float()


@right(sinusoidal_positions)
def _(seq, d_model):
    return torch.tensor(
        [
            [(math.cos if j % 2 else math.sin)(p / 10000 ** ((j - j % 2) / d_model)) for j in range(d_model)]
            for p in range(seq)
        ]
    )


@wrong(sinusoidal_positions, "All sines come first, then all cosines.")
def _(seq, d_model):
    p = torch.arange(seq).float()[:, None]
    angle = p / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.cat([angle.sin(), angle.cos()[:, : d_model // 2]], dim=1)


@wrong(sinusoidal_positions, "Each feature has an angle of its own.")
def _(seq, d_model):
    p = torch.arange(seq).float()[:, None]
    angle = p / 10000 ** (torch.arange(d_model) / d_model)
    out = angle.clone()
    out[:, 0::2] = angle[:, 0::2].sin()
    out[:, 1::2] = angle[:, 1::2].cos()
    return out


@wrong(sinusoidal_positions, "Positions are counted from 1.")
def _(seq, d_model):
    p = torch.arange(1, seq + 1).float()[:, None]
    angle = p / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    out = torch.zeros(seq, d_model)
    out[:, 0::2] = angle.sin()
    out[:, 1::2] = angle.cos()[:, : d_model // 2]
    return out


@wrong(sinusoidal_positions, "All sines come first, then all cosines.", "Positions are counted from 1.")
def _(seq, d_model):
    p = torch.arange(1, seq + 1).float()[:, None]
    angle = p / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.cat([angle.sin(), angle.cos()[:, : d_model // 2]], dim=1)


@wrong(sinusoidal_positions, "Cosines stand at the even places.", "The table is in float64.")
def _(seq, d_model):
    p = torch.arange(seq, dtype=torch.float64)[:, None]
    angle = p / 10000 ** (torch.arange(0, d_model, 2).double() / d_model)
    out = torch.zeros(seq, d_model, dtype=torch.float64)
    out[:, 0::2] = angle.cos()
    out[:, 1::2] = angle.sin()[:, : d_model // 2]
    return out
