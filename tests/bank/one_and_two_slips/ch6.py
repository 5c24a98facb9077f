"""Answers to assignment 6, with one slip and with two, by a fifth author."""

import torch
import torch.nn.functional as F

from transformer_lab.checks import feed_forward, layer_norm, pre_norm

from .. import right, wrong


@right(layer_norm)
def _(x, weight, bias, eps):
    y = x - x.mean(-1, keepdim=True)
    return torch.addcmul(bias, y * torch.rsqrt((y * y).mean(-1, keepdim=True) + eps), weight)


@right(layer_norm)
def _(x, weight, bias, eps):
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean).div((var + eps).sqrt()).mul(weight).add(bias)


@wrong(layer_norm, "The variance is divided by d_model - 1.")
def _(x, weight, bias, eps):
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + eps).sqrt() * weight + bias


@wrong(layer_norm, "eps is added outside the root.")
def _(x, weight, bias, eps):
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False).sqrt() + eps) * weight + bias


@wrong(layer_norm, "Mean and variance run over the tokens of a sentence.")
def _(x, weight, bias, eps):
    return (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True, unbiased=False) + eps).sqrt() * weight + bias


@wrong(layer_norm, "The variance is divided by d_model - 1.", "eps is added outside the root.")
def _(x, weight, bias, eps):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) * weight + bias


@wrong(layer_norm, "The bias is missing.", "The variance is divided by d_model - 1.")
def _(x, weight, bias, eps):
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + eps).sqrt() * weight


@wrong(layer_norm, "The bias is multiplied by the weight.", "Mean and variance run over the tokens of a sentence.")
def _(x, weight, bias, eps):
    return ((x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True, unbiased=False) + eps).sqrt() + bias) * weight


@right(feed_forward)
def _(x, w1, b1, w2, b2):
    return torch.addmm(b2, torch.addmm(b1, x.flatten(0, -2), w1.T).clamp(min=0), w2.T).view(x.shape)


@right(feed_forward)
def _(x, w1, b1, w2, b2):
    h = torch.einsum("bsd,fd->bsf", x, w1) + b1
    return torch.einsum("bsf,df->bsd", torch.where(h > 0, h, 0), w2) + b2


@wrong(feed_forward, "There is no ReLU.")
def _(x, w1, b1, w2, b2):
    return (x @ w1.T + b1) @ w2.T + b2


@wrong(feed_forward, "The ReLU comes after the second map.")
def _(x, w1, b1, w2, b2):
    return F.relu((x @ w1.T + b1) @ w2.T + b2)


@wrong(feed_forward, "GELU takes the place of ReLU.")
def _(x, w1, b1, w2, b2):
    return F.gelu(x @ w1.T + b1) @ w2.T + b2


@wrong(feed_forward, "GELU takes the place of ReLU.", "b2 is missing.")
def _(x, w1, b1, w2, b2):
    return F.gelu(x @ w1.T + b1) @ w2.T


@wrong(feed_forward, "b1 is added after the ReLU.", "x is added to the result.")
def _(x, w1, b1, w2, b2):
    return x + (F.relu(x @ w1.T) + b1) @ w2.T + b2


@wrong(feed_forward, "b1 is missing.", "There is a ReLU after the second map as well.")
def _(x, w1, b1, w2, b2):
    return F.relu(F.relu(x @ w1.T) @ w2.T + b2)


@right(pre_norm)
def _(x, sublayer, norm):
    return torch.add(sublayer(norm(x.clone())).clone(), x)


@right(pre_norm)
def _(x, sublayer, norm):
    return sum([x, sublayer(norm(x))])


@wrong(pre_norm, "Post-norm.")
def _(x, sublayer, norm):
    return norm(x + sublayer(x))


@wrong(pre_norm, "The normalized x is what the change is added to.")
def _(x, sublayer, norm):
    y = norm(x)
    return y + sublayer(y)


@wrong(pre_norm, "x is changed in place.")
def _(x, sublayer, norm):
    x += sublayer(norm(x))
    return x


@wrong(pre_norm, "The norm comes after the sublayer.", "x is not added.")
def _(x, sublayer, norm):
    return norm(sublayer(x))


@wrong(pre_norm, "x is changed in place.", "The norm is missing.")
def _(x, sublayer, norm):
    x += sublayer(x)
    return x
