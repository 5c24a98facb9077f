"""A second author: answers to chapter 6's exercises."""

from functools import reduce

import torch
from torch.nn import functional as F

import transformer_lab as tl

from .. import right, wrong

E = tl.checks


# layer_norm


@wrong(
    E.layer_norm,
    "The variance is PyTorch's default, the unbiased one that divides by d_model - 1 instead of d_model (NaN for one "
    "feature).",
)
def _(x, weight, bias, eps):
    mean = x.mean(dim=-1, keepdim=True)
    var = x.var(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias


@wrong(
    E.layer_norm,
    "eps is added to the standard deviation, outside the root, instead of to the variance inside it. It shows "
    "where eps is not small beside the variance.",
)
def _(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True, unbiased=False)
    return weight * (x - mean) / (std + eps) + bias


@wrong(
    E.layer_norm,
    "The whole sentence is normalized together: mean and variance run over the tokens and the features (x.shape[1:]) "
    "instead of over each token's features. Right for a single token only.",
)
def _(x, weight, bias, eps):
    return F.layer_norm(x, x.shape[1:], eps=eps) * weight + bias


@right(E.layer_norm)
def _(x, weight, bias, eps):
    return F.group_norm(x.reshape(-1, x.shape[-1]), 1, weight, bias, eps).reshape(x.shape)


# rms_norm


@wrong(
    E.rms_norm,
    "It divides by the token's length, the root of the sum of squares, instead of the root of the mean: the result is "
    "too small by the root of d_model. And eps stands outside the root.",
)
def _(x, weight, eps):
    return x / (x.norm(dim=-1, keepdim=True) + eps) * weight


@wrong(
    E.rms_norm,
    "It multiplies by 1 + weight, as Gemma does, instead of by weight.",
)
def _(x, weight, eps):
    rms = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return x * rms * (1.0 + weight)


@wrong(
    E.rms_norm,
    "x is turned into float32 and never back: for float16, bfloat16 or float64 the result has another dtype than x "
    "(and for float64 less precision).",
)
def _(x, weight, eps):
    x = x.to(torch.float32)
    variance = x.pow(2).mean(-1, keepdim=True)
    return weight.to(torch.float32) * (x * torch.rsqrt(variance + eps))


# feed_forward


@wrong(
    E.feed_forward,
    "GELU stands between the maps instead of ReLU.",
)
def _(x, w1, b1, w2, b2):
    return F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2)


@wrong(
    E.feed_forward,
    "The first bias is added after the ReLU instead of before it.",
)
def _(x, w1, b1, w2, b2):
    hidden = torch.relu(x @ w1.T) + b1
    return hidden @ w2.T + b2


@wrong(
    E.feed_forward,
    "There is a second ReLU after the second map, so no feature of the result is negative.",
)
def _(x, w1, b1, w2, b2):
    for w, b in ((w1, b1), (w2, b2)):
        x = F.relu(F.linear(x, w, b))
    return x


@right(E.feed_forward)
def _(x, w1, b1, w2, b2):
    hidden = torch.einsum("bsd,fd->bsf", x, w1).add(b1).clamp(min=0)
    return torch.einsum("bsf,df->bsd", hidden, w2).add(b2)


# post_norm


@wrong(
    E.post_norm,
    "Only the sublayer's result goes through the norm, and x is added afterwards: x + norm(sublayer(x)). The "
    "norm is not the last thing.",
)
def _(x, sublayer, norm):
    return x + norm(sublayer(x))


@wrong(
    E.post_norm,
    "The sum is written into the sublayer's result in place. Where the sublayer returns the very tensor that it was "
    "given, that changes the caller's x.",
)
def _(x, sublayer, norm):
    out = sublayer(x)
    out += x
    return norm(out)


@wrong(
    E.post_norm,
    "The norm is applied twice: the sublayer gets the normalized x (pre-norm), and the sum is normalized again.",
)
def _(x, sublayer, norm):
    return norm(x + sublayer(norm(x)))


# pre_norm


@wrong(
    E.pre_norm,
    "The residual is taken after the norm: the normalized x is added to the sublayer's result instead of x as it came "
    "in.",
)
def _(x, sublayer, norm):
    x = norm(x)
    return x + sublayer(x)


@wrong(
    E.pre_norm,
    "The two functions are exchanged: the sublayer gets the x that is not normalized, and the norm is applied to its "
    "result, x + norm(sublayer(x)).",
)
def _(x, sublayer, norm):
    residual = x
    return residual + norm(sublayer(x))


@wrong(
    E.pre_norm,
    "x is added in place into the sublayer's result. Where norm and sublayer return the tensor that they were given, "
    "this is x itself, whose numbers are changed.",
)
def _(x, sublayer, norm):
    return sublayer(norm(x)).add_(x)


@right(E.pre_norm)
def _(x, sublayer, norm):
    return torch.stack([sublayer(norm(x)), x]).sum(dim=0)


# mend_stack


@wrong(
    E.mend_stack,
    "The final norm is inside the loop: it is applied after every part, in the residual stream, instead of once at the "
    "end. Right for one part only (and not applied where there is none).",
)
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = final_norm(x + part(norm(x)))
    return x


@wrong(
    E.mend_stack,
    "x += changes the caller's tensor in place; the returned numbers are right.",
)
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x += part(norm(x))
    return final_norm(x)


@wrong(
    E.mend_stack,
    "One of the two faults is left: the final norm is used, but what is added to is still the normalized x and not the "
    "residual stream.",
)
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = norm(x)
        x = x + part(x)
    return final_norm(x)


@right(E.mend_stack)
def _(x, parts, norms, final_norm):
    return final_norm(reduce(lambda stream, pair: stream + pair[0](pair[1](stream)), zip(parts, norms), x))
