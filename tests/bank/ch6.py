"""Answers to assignment 6."""

import torch
import torch.nn.functional as F

from transformer_lab.checks import feed_forward, layer_norm, mend_stack, post_norm, pre_norm, rms_norm

from . import right, wrong


@wrong(layer_norm, "x.var divides by d_model - 1: the unbiased variance.")
def _(x, weight, bias, eps):
    mean = x.mean(dim=-1, keepdim=True)
    var = x.var(dim=-1, keepdim=True)
    return weight * (x - mean) / torch.sqrt(var + eps) + bias


@wrong(layer_norm, "The statistics run over the batch, dim=0, as in a batch norm.")
def _(x, weight, bias, eps):
    mean = x.mean(dim=0, keepdim=True)
    var = x.var(dim=0, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias


@wrong(layer_norm, "The root is forgotten: it divides by the variance.")
def _(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, keepdim=True, correction=0)
    return (x - mean) / (var + eps) * weight + bias


@wrong(layer_norm, "Mean and variance are taken over seq and features together.")
def _(x, weight, bias, eps):
    return F.layer_norm(x, x.shape[1:], None, None, eps) * weight + bias


@wrong(layer_norm, "The bias is added before the weight is multiplied, so it is scaled too.")
def _(x, weight, bias, eps):
    x = x - x.mean(-1, keepdim=True)
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return (x + bias) * weight


@right(layer_norm)
def _(x, weight, bias, eps):
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) * (var + eps).rsqrt(), weight)


@wrong(rms_norm, "The mean is subtracted first, as in a layer norm.")
def _(x, weight, eps):
    x = x - x.mean(-1, keepdim=True)
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


@wrong(rms_norm, "eps stands outside the root.")
def _(x, weight, eps):
    return x / (x.pow(2).mean(-1, keepdim=True).sqrt() + eps) * weight


@wrong(rms_norm, "The mean is over all of the tensor, not over each token's features.")
def _(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean() + eps) * weight


@wrong(rms_norm, "It is the square of the mean, not the mean of the squares.")
def _(x, weight, eps):
    mean_square = x.mean(dim=-1, keepdim=True) ** 2
    return x / torch.sqrt(mean_square + eps) * weight


@wrong(rms_norm, "1 + weight scales, as Gemma stores it.")
def _(x, weight, eps):
    return F.rms_norm(x, (x.shape[-1],), eps=eps) * (1 + weight)


@right(rms_norm)
def _(x, weight, eps):
    return F.rms_norm(x, weight.shape, weight, eps)


@right(rms_norm)
def _(x, weight, eps):
    square = torch.einsum("bsd,bsd->bs", x, x).div(x.size(2)).add(eps)
    return torch.einsum("bsd,bs,d->bsd", x, square.sqrt().reciprocal(), weight)


@wrong(feed_forward, "The ReLU is forgotten.")
def _(x, w1, b1, w2, b2):
    return (x @ w1.T + b1) @ w2.T + b2


@wrong(feed_forward, "The weights are not transposed.")
def _(x, w1, b1, w2, b2):
    return torch.relu(x @ w1 + b1) @ w2 + b2


@wrong(feed_forward, "b1 is added after the ReLU.")
def _(x, w1, b1, w2, b2):
    h = torch.relu(x @ w1.T) + b1
    return h @ w2.T + b2


@wrong(feed_forward, "torch.max(h, 0) is the largest along axis 0, with indices, not max(h, 0) for every number.")
def _(x, w1, b1, w2, b2):
    h = torch.max(x @ w1.T + b1, 0)
    return h @ w2.T + b2


@wrong(feed_forward, "The absolute value stands where ReLU is asked.")
def _(x, w1, b1, w2, b2):
    return (x @ w1.T + b1).abs() @ w2.T + b2


@right(feed_forward)
def _(x, w1, b1, w2, b2):
    h = torch.einsum("bsm,fm->bsf", x, w1) + b1
    return torch.einsum("bsf,mf->bsm", h * (h > 0), w2) + b2


@wrong(post_norm, "It is pre-norm: the norm stands in front of the sublayer.")
def _(x, sublayer, norm):
    return x + sublayer(norm(x))


@wrong(post_norm, "The norm is on the sublayer's result alone, and x is added after it.")
def _(x, sublayer, norm):
    return x + norm(sublayer(x))


@wrong(post_norm, "x is normalized first and once more at the end.")
def _(x, sublayer, norm):
    x = norm(x)
    return norm(x + sublayer(x))


@wrong(post_norm, "norm and sublayer change places.")
def _(x, sublayer, norm):
    return sublayer(x + norm(x))


@right(post_norm)
def _(x, sublayer, norm):
    total = torch.stack([sublayer(x), x]).sum(dim=0)
    return norm(total)


@wrong(pre_norm, "It is post-norm: the norm stands after the sum.")
def _(x, sublayer, norm):
    return norm(x + sublayer(x))


@wrong(pre_norm, "The residual connection is missing.")
def _(x, sublayer, norm):
    return sublayer(norm(x))


@wrong(pre_norm, "The norm's result is thrown away.")
def _(x, sublayer, norm):
    norm(x)
    return x + sublayer(x)


@wrong(pre_norm, "The sum is normalized a second time.")
def _(x, sublayer, norm):
    return norm(x + sublayer(norm(x)))


@right(pre_norm)
def _(x, sublayer, norm):
    shortcut = x
    for step in (norm, sublayer):
        x = step(x)
    return shortcut + x


@wrong(mend_stack, "The program as given: the stream is normalized, and the final norm is missing.")
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = norm(x)
        x = x + part(x)
    return x


@wrong(mend_stack, "Only the stream is fixed; the final norm is missing.")
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = x + part(norm(x))
    return x


@wrong(mend_stack, "It became a post-norm stack.")
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = norm(x + part(x))
    return final_norm(x)


@wrong(mend_stack, "The return is indented into the loop: only the first part runs.")
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = x + part(norm(x))
        return final_norm(x)


@wrong(mend_stack, "The first norm serves all parts.")
def _(x, parts, norms, final_norm):
    norm = norms[0]
    for part in parts:
        x = x + part(norm(x))
    return final_norm(x)


@right(mend_stack)
def _(x, parts, norms, final_norm):
    stream = x
    for i in range(len(parts)):
        change = parts[i](norms[i](stream))
        stream = torch.add(change, stream)
    return final_norm(stream)
