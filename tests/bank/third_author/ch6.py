"""Answers to assignment 6, by a third author."""

from functools import reduce

import torch
import torch.nn.functional as F

from transformer_lab.checks import feed_forward, layer_norm, mend_stack, post_norm, pre_norm, rms_norm

from .. import right, wrong


@wrong(
    layer_norm,
    "eps is ignored: PyTorch's default of 1e-5 is used, whatever eps says.",
)
def _(x, weight, bias, eps):
    return F.layer_norm(x, weight.shape, weight, bias)


@wrong(
    layer_norm,
    "The variance is the mean of the squares minus the square of the mean, which loses its digits where the numbers "
    "are far from zero.",
)
def _(x, weight, bias, eps):
    mean = x.mean(dim=-1, keepdim=True)
    var = (x**2).mean(dim=-1, keepdim=True) - mean**2
    var = var.clamp(min=0)
    return weight * (x - mean) / torch.sqrt(var + eps) + bias


@wrong(
    layer_norm,
    "Mean and variance are taken over all tokens of a sentence together, and not over each token's own features.",
)
def _(x, weight, bias, eps):
    normed = F.layer_norm(x, x.shape[1:], eps=eps)
    return normed * weight + bias


@wrong(
    layer_norm,
    "The variance is the one that divides by d_model - 1, and not by d_model.",
)
def _(x, weight, bias, eps):
    std, mean = torch.std_mean(x, dim=-1, keepdim=True)
    return (x - mean) * torch.rsqrt(std.square() + eps) * weight + bias


@right(layer_norm)
def _(x, weight, bias, eps):
    centred = x - x.mean(dim=-1, keepdim=True)
    # Of a token with the mean 0, the mean square is the variance.
    return (F.rms_norm(centred, (x.shape[-1],), eps=eps) * weight + bias).to(x.dtype)


@wrong(
    rms_norm,
    "The token is divided by its length, the root of the sum of its squares and not of their mean, and eps is a lower "
    "bound for that and is not added.",
)
def _(x, weight, eps):
    return F.normalize(x, dim=-1, eps=eps) * weight


@wrong(
    rms_norm,
    "The token is divided by its standard deviation, which the mean does not enter, and not by the root of its mean "
    "square.",
)
def _(x, weight, eps):
    var = x.var(dim=-1, keepdim=True, unbiased=False)
    return x / torch.sqrt(var + eps) * weight


@wrong(
    rms_norm,
    "The result is multiplied by 1 + weight, and not by weight.",
)
def _(x, weight, eps):
    output = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return output * (1.0 + weight)


@wrong(
    rms_norm,
    "x is turned into float32 and never back, so for another dtype the result does not have the dtype of x.",
)
def _(x, weight, eps):
    hidden = x.float()
    mean_square = hidden.pow(2).mean(-1, keepdim=True)
    hidden = hidden * torch.rsqrt(mean_square + eps)
    return weight.float() * hidden


@right(rms_norm)
def _(x, weight, eps):
    d_model = x.shape[-1]
    rms = torch.linalg.vector_norm(x, dim=-1, keepdim=True) / d_model**0.5
    # The root of a sum of two squares: the legs are the root mean square and the root of eps.
    return (x / torch.hypot(rms, torch.full_like(rms, eps**0.5)) * weight).to(x.dtype)


@wrong(
    feed_forward,
    "There is a second ReLU after the second map, so the result has no negative numbers.",
)
def _(x, w1, b1, w2, b2):
    for w, b in ((w1, b1), (w2, b2)):
        x = F.relu(F.linear(x, w, b))
    return x


@wrong(
    feed_forward,
    "The weights are brought into the shape (in, out) by reshape and not transposed, so their numbers stand in the "
    "wrong places.",
)
def _(x, w1, b1, w2, b2):
    d_ff, d_model = w1.shape
    hidden = torch.relu(x @ w1.reshape(d_model, d_ff) + b1)
    return hidden @ w2.reshape(d_ff, d_model) + b2


@wrong(
    feed_forward,
    "The first bias is added after the ReLU, and not before it.",
)
def _(x, w1, b1, w2, b2):
    hidden = (x @ w1.T).relu() + b1
    return hidden @ w2.T + b2


@wrong(
    feed_forward,
    "x itself is added to the result: a residual connection that is not part of the layer.",
)
def _(x, w1, b1, w2, b2):
    h = F.linear(x, w1, b1)
    h = h.clamp(min=0)
    return x + F.linear(h, w2, b2)


@right(feed_forward)
def _(x, w1, b1, w2, b2):
    # A linear map of every position is a convolution with a kernel of one position.
    hidden = F.conv1d(x.mT, w1.unsqueeze(-1), b1).relu()
    return F.conv1d(hidden, w2.unsqueeze(-1), b2).mT


@wrong(
    post_norm,
    "Only the sublayer's result goes through the norm, and x is added after it.",
)
def _(x, sublayer, norm):
    return x + norm(sublayer(x))


@wrong(
    post_norm,
    "There is no residual connection: the sublayer's result is normalized without x being added.",
)
def _(x, sublayer, norm):
    out = sublayer(x)
    return norm(out)


@wrong(
    post_norm,
    "x is added in place to what the sublayer returns, so if that is x itself, the caller's numbers are doubled.",
)
def _(x, sublayer, norm):
    out = sublayer(x)
    out += x
    return norm(out)


@wrong(
    post_norm,
    "x is normalized before it goes anywhere, so the sublayer gets normalized tokens, and they are what its result is "
    "added to, before the norm at the end.",
)
def _(x, sublayer, norm):
    x = norm(x)
    x = x + sublayer(x)
    return norm(x)


@right(post_norm)
def _(x, sublayer, norm):
    return norm(torch.stack([x, sublayer(x)]).sum(dim=0))


@wrong(
    pre_norm,
    "The sublayer's result is added to the normalized tokens, and not to x as it came in.",
)
def _(x, sublayer, norm):
    x = norm(x)
    return x + sublayer(x)


@wrong(
    pre_norm,
    "x is added in place to what the sublayer returns, so if norm and sublayer hand back the tensor they got, the "
    "caller's numbers are doubled.",
)
def _(x, sublayer, norm):
    residual = x
    x = norm(x)
    x = sublayer(x)
    x += residual
    return x


@wrong(
    pre_norm,
    "Norm and sublayer are in the wrong order: the sublayer gets x as it is, and its result is normalized before it is "
    "added to x.",
)
def _(x, sublayer, norm):
    return x + norm(sublayer(x))


@wrong(
    pre_norm,
    "The sum goes through the norm once more at the end, so no path from input to output is free of a norm.",
)
def _(x, sublayer, norm):
    h = x + sublayer(norm(x))
    return norm(h)


@right(pre_norm)
def _(x, sublayer, norm):
    change = reduce(lambda tokens, function: function(tokens), (norm, sublayer), x)
    return torch.add(change, x)


@wrong(
    mend_stack,
    "Every part's result is added to the stack's input, and not to what the parts before it have made of it, so the "
    "results of all parts but the last are not in the sum.",
)
def _(x, parts, norms, final_norm):
    residual = x
    for part, norm in zip(parts, norms):
        x = norm(x)
        x = residual + part(x)
    return final_norm(x)


@wrong(
    mend_stack,
    "The final norm stands in the loop, so it is applied after every layer and not once at the end.",
)
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = x + part(norm(x))
        x = final_norm(x)
    return x


@wrong(
    mend_stack,
    "The parts' results are added to x in place, so the caller's numbers are changed.",
)
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x += part(norm(x))
    return final_norm(x)


@wrong(
    mend_stack,
    "The final norm is never applied.",
)
def _(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        residual = x
        x = norm(x)
        x = residual + part(x)
    return x


@right(mend_stack)
def _(x, parts, norms, final_norm):
    stream = [x]  # the input, and what each part has added to it
    for part, norm in zip(parts, norms):
        stream.append(part(norm(sum(stream))))
    return final_norm(sum(stream))
