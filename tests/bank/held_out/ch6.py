"""Held out: answers to assignment 6."""

import torch
import torch.nn.functional as F

from transformer_lab.checks import feed_forward, layer_norm, mend_stack, post_norm, pre_norm, rms_norm

from .. import right, wrong


@wrong(
    layer_norm,
    "eps is added to the root, outside of it, and the deviation is the unbiased one.",
)
def _(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True)
    return weight * (x - mean) / (std + eps) + bias


@wrong(
    layer_norm,
    "The variance is the mean of squares less the square of the mean, which cancels for numbers far from zero.",
)
def _(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    var = (x**2).mean(-1, keepdim=True) - mean**2
    return (x - mean) / (var + eps).sqrt() * weight + bias


@wrong(layer_norm, "The mean is not subtracted.")
def _(x, weight, bias, eps):
    var = x.var(-1, keepdim=True, correction=0)
    return x / torch.sqrt(var + eps) * weight + bias


@wrong(layer_norm, "eps is left to its default: the argument is not used.")
def _(x, weight, bias, eps):
    return F.layer_norm(x, (x.shape[-1],), weight, bias)


@right(layer_norm)
def _(x, weight, bias, eps):
    y = F.group_norm(x.reshape(-1, x.shape[-1]), 1, None, None, eps)
    return (y * weight + bias).view(x.shape)


@wrong(rms_norm, "It divides by the length, the root of the sum of squares, not of their mean.")
def _(x, weight, eps):
    return x / (x.pow(2).sum(-1, keepdim=True) + eps).sqrt() * weight


@wrong(rms_norm, "It divides by the mean square: no root.")
def _(x, weight, eps):
    return x / (x.pow(2).mean(-1, keepdim=True) + eps) * weight


@wrong(rms_norm, "rsqrt is already one over the root; dividing by it multiplies.")
def _(x, weight, eps):
    rms = torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + eps)
    return x / rms * weight


@wrong(rms_norm, "keepdim is missing.")
def _(x, weight, eps):
    rms = torch.sqrt((x**2).mean(dim=-1) + eps)
    return x / rms * weight


@right(rms_norm)
def _(x, weight, eps):
    d = x.shape[-1]
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return weight * x * torch.pow(length.square() / d + eps, -0.5)


@wrong(feed_forward, "GELU stands where ReLU is asked.")
def _(x, w1, b1, w2, b2):
    return F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2)


@wrong(feed_forward, "A second ReLU stands at the end.")
def _(x, w1, b1, w2, b2):
    h = F.relu(F.linear(x, w1, b1))
    return F.relu(F.linear(h, w2, b2))


@wrong(feed_forward, "x is added at the end: the block's residual connection.")
def _(x, w1, b1, w2, b2):
    return x + torch.relu(x @ w1.T + b1) @ w2.T + b2


@wrong(feed_forward, "b2 is forgotten.")
def _(x, w1, b1, w2, b2):
    return F.relu(F.linear(x, w1, b1)) @ w2.T


@right(feed_forward)
def _(x, w1, b1, w2, b2):
    h = torch.maximum(F.linear(x, w1, b1), torch.zeros((), dtype=x.dtype))
    return torch.addmm(b2, h.flatten(0, 1), w2.t()).unflatten(0, x.shape[:2])


@wrong(post_norm, "The residual connection is missing.")
def _(x, sublayer, norm):
    return norm(sublayer(x))


@wrong(post_norm, "The norm is forgotten.")
def _(x, sublayer, norm):
    return x + sublayer(x)


@wrong(post_norm, "+= changes the x that came in.")
def _(x, sublayer, norm):
    x += sublayer(x)
    return norm(x)


@wrong(post_norm, "norm gets two arguments, x and the sublayer's result, and takes one.")
def _(x, sublayer, norm):
    return norm(x, sublayer(x))


@right(post_norm)
def _(x, sublayer, norm):
    residual = x.clone()
    change = sublayer(x)
    return norm(torch.add(residual, change))


@wrong(pre_norm, "The normalized x is added, not x: the residual branches off after the norm.")
def _(x, sublayer, norm):
    x = norm(x)
    return x + sublayer(x)


@wrong(pre_norm, "norm and sublayer in the wrong order: x + norm(sublayer(x)).")
def _(x, sublayer, norm):
    return x + norm(sublayer(x))


@wrong(
    pre_norm,
    "The sum is made in place, in the tensor that the sublayer returned: that may be another's, x itself even.",
)
def _(x, sublayer, norm):
    out = sublayer(norm(x))
    out += x
    return out


@wrong(pre_norm, "The change is subtracted.")
def _(x, sublayer, norm):
    return x - sublayer(norm(x))


@right(pre_norm)
def _(x, sublayer, norm):
    before = x.clone()
    return torch.add(sublayer(norm(x)), before)


@wrong(mend_stack, "Only the final norm is added; the stream is still overwritten by the norm.")
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = norm(x)
        x = x + part(x)
    return final_norm(x)


@wrong(mend_stack, "The final norm stands inside the loop.")
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = x + part(norm(x))
        x = final_norm(x)
    return x


@wrong(mend_stack, "Every part reads the stack's input, not what the parts before it left.")
def _(x, parts, norms, final_norm):
    out = x
    for part, norm in zip(parts, norms):
        out = out + part(norm(x))
    return final_norm(out)


@wrong(mend_stack, "The residual connection is missing.")
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = part(norm(x))
    return final_norm(x)


@wrong(mend_stack, "x += changes the tensor that came in.")
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x += part(norm(x))
    return final_norm(x)


@right(mend_stack)
def _(x, parts, norms, final_norm):
    if len(parts) == 0:
        return final_norm(x)
    x = x + parts[0](norms[0](x))
    rest = list(zip(parts[1:], norms[1:]))
    while rest:
        part, norm = rest.pop(0)
        x = x + part(norm(x))
    return final_norm(x)
