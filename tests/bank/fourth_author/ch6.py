"""Answers to assignment 6, by a fourth author."""

import torch
import torch.nn.functional as F

from transformer_lab.checks import feed_forward, layer_norm, mend_stack, post_norm, pre_norm, rms_norm

from .. import right, wrong


@wrong(layer_norm, "eps is added to the standard deviation, outside the root, and not to the variance.")
def _(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True, unbiased=False)
    return weight * (x - mean) / (std + eps) + bias


@wrong(
    layer_norm,
    "The variance is the mean of the squares minus the square of the mean, which loses its digits far from zero.",
)
def _(x, weight, bias, eps):
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x**2).mean(dim=-1, keepdim=True) - mean**2
    x = (x - mean) * torch.rsqrt(variance.clamp(min=0) + eps)
    return x * weight + bias


@right(layer_norm)
def _(x, weight, bias, eps):
    wide = x.double()
    centred = wide - wide.mean(dim=-1, keepdim=True)
    length = torch.linalg.vector_norm(centred, dim=-1, keepdim=True)
    variance = length**2 / x.shape[-1]
    normed = centred / torch.sqrt(variance + eps)
    return torch.addcmul(bias.double(), normed, weight.double()).to(x.dtype)


@wrong(rms_norm, "Each token is divided by its length: the root of the sum of its squares, not of their mean.")
def _(x, weight, eps):
    norm = torch.sqrt(x.pow(2).sum(dim=-1, keepdim=True) + eps)
    return x / norm * weight


@wrong(rms_norm, "The result is multiplied by 1 + weight, not by weight.")
def _(x, weight, eps):
    normed = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return normed * (1.0 + weight)


@wrong(feed_forward, "GELU stands between the two maps, where ReLU should be.")
def _(x, w1, b1, w2, b2):
    hidden = F.gelu(F.linear(x, w1, b1))
    return F.linear(hidden, w2, b2)


@wrong(feed_forward, "The weights are reshaped to fit and not transposed, so that their numbers stand in wrong places.")
def _(x, w1, b1, w2, b2):
    d_ff, d_model = w1.shape
    h = torch.relu(x @ w1.view(d_model, d_ff) + b1)
    return h @ w2.view(d_ff, d_model) + b2


@right(feed_forward)
def _(x, w1, b1, w2, b2):
    # Two convolutions with a kernel of one place: every position by itself.
    hidden = F.conv1d(x.mT, w1.unsqueeze(-1), b1).clamp(min=0)
    return F.conv1d(hidden, w2.unsqueeze(-1), b2).mT


@wrong(post_norm, "Only the sublayer's result is normalized, and x is added after the norm.")
def _(x, sublayer, norm):
    return x + norm(sublayer(x))


@wrong(post_norm, "The sum is written into x itself, so that the caller's tensor changes.")
def _(x, sublayer, norm):
    x += sublayer(x)
    return norm(x)


@wrong(pre_norm, "The normalized tokens are added to the sublayer's result, and not x as it came in.")
def _(x, sublayer, norm):
    x = norm(x)
    return x + sublayer(x)


@wrong(
    pre_norm,
    "x is added in place to what the sublayer returns: it changes the caller's x where norm and sublayer hand it on.",
)
def _(x, sublayer, norm):
    out = sublayer(norm(x))
    out += x
    return out


@right(pre_norm)
def _(x, sublayer, norm):
    change = sublayer(norm(x))
    return torch.stack((x, change), dim=0).sum(dim=0)


@wrong(
    mend_stack,
    "Each part's result is added to the x of the very beginning, so that the sum holds the last result alone.",
)
def _(x, parts, norms, final_norm):
    residual = x
    for part, norm in zip(parts, norms):
        x = residual + part(norm(x))
    return final_norm(x)


@wrong(mend_stack, "What leaves the stack is not normalized: final_norm is never called.")
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = x + part(norm(x))
    return x
