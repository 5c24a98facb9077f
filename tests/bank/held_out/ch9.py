"""Held out: answers to assignment 9."""

import math
from functools import reduce

import torch
import torch.nn.functional as F

from transformer_lab.checks import (
    cached_step,
    decoder_block,
    gated_feed_forward,
    mean_pool,
    mend_writing,
    repeat_keys,
    rotate,
)

from .. import right, wrong


def turn(x, positions, base):
    """What a learner calls in `cached_step`: a right `rotate`, so that the mistake is in the step alone."""
    speeds = base ** (-torch.arange(0, x.shape[-1], 2, device=x.device) / x.shape[-1])
    angle = positions[:, None] * speeds
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).flatten(-2)


@wrong(rotate, "The pairs are turned the other way: the sines have the wrong sign.")
def _(x, positions, base):
    d_head = x.size(-1)
    i = torch.arange(d_head // 2)
    angle = positions.unsqueeze(1) * base ** (-2 * i / d_head)
    cos, sin = torch.cos(angle), torch.sin(angle)
    even, odd = x[..., ::2], x[..., 1::2]
    out = torch.empty_like(x)
    out[..., ::2] = even * cos + odd * sin
    out[..., 1::2] = odd * cos - even * sin
    return out


@wrong(rotate, "The factor 2 of the exponent is missing: pair i turns with base ** (-i / d_head).")
def _(x, positions, base):
    d_head = x.shape[-1]
    a, b = x[..., 0::2], x[..., 1::2]
    theta = base ** (-torch.arange(d_head // 2) / d_head)
    angle = positions[:, None] * theta[None, :]
    a2 = a * torch.cos(angle) - b * torch.sin(angle)
    b2 = a * torch.sin(angle) + b * torch.cos(angle)
    return torch.stack((a2, b2), dim=-1).reshape(x.shape)


@wrong(rotate, "The base is fixed at 10000 and the argument is not used.")
def _(x, positions, base):
    dim = x.shape[-1]
    div_term = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    theta = positions.float().unsqueeze(-1) * div_term
    sin, cos = theta.sin(), theta.cos()
    x1, x2 = x[..., 0::2], x[..., 1::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1).flatten(-2)


@wrong(
    rotate,
    "Neighbours are paired, but their angles are laid out as two halves: the two of a pair turn by different angles.",
)
def _(x, positions, base):
    d = x.shape[-1]
    freqs = torch.outer(positions.float(), base ** (-torch.arange(0, d, 2).float() / d))
    freqs = torch.cat([freqs, freqs], dim=-1)
    x_rot = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).reshape(x.shape)
    return x * freqs.cos() + x_rot * freqs.sin()


@right(rotate)
def _(x, positions, base):
    d = x.shape[-1]
    exponents = torch.arange(d).div(2, rounding_mode="floor").mul(-2.0 / d)
    angle = positions.view(-1, 1) * torch.pow(torch.tensor(float(base)), exponents)
    partner = torch.arange(d).view(-1, 2).flip(1).flatten()
    sign = torch.tensor([-1.0, 1.0]).repeat(d // 2)
    return x * angle.cos() + x[..., partner] * sign * angle.sin()


@wrong(repeat_keys, "Each head is repeated n_heads times, not n_heads // kv_heads times.")
def _(x, n_heads):
    return torch.repeat_interleave(x, n_heads, dim=1)


@wrong(repeat_keys, "n_heads / kv_heads is a float, and repeat_interleave raises.")
def _(x, n_heads):
    batch, kv_heads, seq, d_head = x.shape
    return x.repeat_interleave(n_heads / kv_heads, dim=1)


@wrong(repeat_keys, "The heads are looked for on axis 2, as in (batch, seq, heads, d_head).")
def _(x, n_heads):
    n_kv = x.shape[2]
    return torch.repeat_interleave(x, n_heads // n_kv, dim=2)


@wrong(repeat_keys, "The index of a query head is divided by kv_heads, not by the size of a group.")
def _(x, n_heads):
    kv_heads = x.shape[1]
    index = torch.arange(n_heads) // kv_heads
    return x[:, index]


@right(repeat_keys)
def _(x, n_heads):
    size = n_heads // x.shape[1]
    return torch.cat([head for head in x.split(1, dim=1) for _ in range(size)], dim=1)


@wrong(gated_feed_forward, "The weights are not transposed: they are stored (out, in).")
def _(x, gate, up, down):
    return (F.silu(x @ gate) * (x @ up)) @ down


@wrong(gated_feed_forward, "GELU stands where SiLU is asked.")
def _(x, gate, up, down):
    return F.linear(F.gelu(F.linear(x, gate)) * F.linear(x, up), down)


@wrong(gated_feed_forward, "SiLU is applied to the product of both maps.")
def _(x, gate, up, down):
    h = (x @ gate.T) * (x @ up.T)
    return F.silu(h) @ down.T


@wrong(gated_feed_forward, "SiLU is applied to x, before the map, instead of after it.")
def _(x, gate, up, down):
    def silu(z):
        return z * torch.sigmoid(z)

    return (silu(x) @ gate.T * (x @ up.T)) @ down.T


@right(gated_feed_forward)
def _(x, gate, up, down):
    g = torch.einsum("fm,bsm->bsf", gate, x)
    u = torch.einsum("fm,bsm->bsf", up, x)
    half = g / 2
    return torch.einsum("bsf,bsf,mf->bsm", half + half * half.tanh(), u, down)


@wrong(decoder_block, "Both parts read the x that came in, side by side, as in GPT-J.")
def _(x, attention, feed_forward, norm1, norm2):
    return x + attention(norm1(x)) + feed_forward(norm2(x))


@wrong(decoder_block, "norm1 is used twice, norm2 not at all.")
def _(x, attention, feed_forward, norm1, norm2):
    x = x + attention(norm1(x))
    x = x + feed_forward(norm1(x))
    return x


@wrong(decoder_block, "The second sum begins with the x that came in, so attention's result is not added.")
def _(x, attention, feed_forward, norm1, norm2):
    h = x + attention(norm1(x))
    return x + feed_forward(norm2(h))


@wrong(decoder_block, "attention gets three arguments, as nn.MultiheadAttention does, and raises.")
def _(x, attention, feed_forward, norm1, norm2):
    h = norm1(x)
    x = x + attention(h, h, h)
    return x + feed_forward(norm2(x))


@right(decoder_block)
def _(x, attention, feed_forward, norm1, norm2):
    steps = [lambda z: attention(norm1(z)), lambda z: feed_forward(norm2(z))]
    return reduce(lambda stream, step: step(stream) + stream, steps, x)


@wrong(cached_step, "The query is not turned, only the key.")
def _(query, key, value, keys, values, base):
    position = torch.tensor([keys.shape[-2]])
    keys = torch.cat([keys, turn(key, position, base)], dim=-2)
    values = torch.cat([values, value], dim=-2)
    scores = query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ values, keys, values


@wrong(cached_step, "The scores are not divided by the root of d_head.")
def _(query, key, value, keys, values, base):
    pos = torch.tensor([keys.shape[2]])
    q = turn(query, pos, base)
    k = turn(key, pos, base)
    keys = torch.cat([keys, k], dim=2)
    values = torch.cat([values, value], dim=2)
    attn = torch.softmax(q @ keys.transpose(2, 3), dim=-1)
    return attn @ values, keys, values


@wrong(cached_step, "The new token attends to the old cache, and not to itself: key and value are appended afterwards.")
def _(query, key, value, keys, values, base):
    pos = torch.tensor([keys.shape[2]])
    query = turn(query, pos, base)
    key = turn(key, pos, base)
    scores = query @ keys.transpose(-1, -2) / math.sqrt(query.shape[-1])
    out = scores.softmax(-1) @ values
    return out, torch.cat([keys, key], dim=2), torch.cat([values, value], dim=2)


@wrong(cached_step, "is_causal=True counts the one query as the first token, so it sees only the first key.")
def _(query, key, value, keys, values, base):
    pos = torch.tensor([keys.size(2)])
    keys = torch.cat([keys, turn(key, pos, base)], dim=2)
    values = torch.cat([values, value], dim=2)
    out = F.scaled_dot_product_attention(turn(query, pos, base), keys, values, is_causal=True)
    return out, keys, values


@right(cached_step)
def _(query, key, value, keys, values, base):
    position = torch.tensor([keys.shape[2]])
    q = turn(query, position, base).squeeze(2)
    longer_keys = F.pad(keys, (0, 0, 0, 1))
    longer_values = F.pad(values, (0, 0, 0, 1))
    longer_keys[:, :, -1:] = turn(key, position, base)
    longer_values[:, :, -1:] = value
    scores = torch.einsum("bhd,bhkd->bhk", q, longer_keys) * q.shape[-1] ** -0.5
    weights = torch.exp(scores - scores.logsumexp(dim=-1, keepdim=True))
    return torch.einsum("bhk,bhkd->bhd", weights, longer_values).unsqueeze(2), longer_keys, longer_values


@wrong(mean_pool, "The mean is not scaled to length 1.")
def _(states, real):
    mask = real.unsqueeze(-1).float()
    return (states * mask).sum(dim=1) / mask.sum(dim=1)


@wrong(mean_pool, "norm() without an axis is one length for the whole batch.")
def _(states, real):
    mean = (states * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)
    return mean / mean.norm()


@wrong(mean_pool, "real has no axis for the features, so the product does not broadcast as meant and mostly raises.")
def _(states, real):
    summed = (states * real).sum(dim=1)
    mean = summed / real.sum(dim=1, keepdim=True)
    return F.normalize(mean, p=2, dim=1)


@wrong(mean_pool, "Each token is scaled to length 1 before the mean, and the mean is not scaled.")
def _(states, real):
    states = F.normalize(states, dim=-1)
    return (states * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)


@right(mean_pool)
def _(states, real):
    vectors = [text[those].mean(dim=0) for text, those in zip(states, real)]
    return torch.stack([vector / torch.sqrt(vector @ vector) for vector in vectors])


@wrong(mend_writing, "The stop token is appended before the loop ends, so it is returned.")
def _(model, tokens, max_new_tokens, stop):
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        token = model(tokens)[:, -1].argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, token], dim=1)
        if token.item() == stop:
            break
    return tokens[:, seq:]


@wrong(mend_writing, "The prompt is returned, too.")
def _(model, tokens, max_new_tokens, stop):
    for _ in range(max_new_tokens):
        logits = model(tokens)[:, -1, :]
        token = logits.argmax(dim=-1, keepdim=True)
        if token.item() == stop:
            break
        tokens = torch.cat([tokens, token], dim=1)
    return tokens


@wrong(
    mend_writing,
    "It looks for stop in the whole text: one in the prompt ends the writing and takes the first new token away.",
)
def _(model, tokens, max_new_tokens, stop):
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        token = model(tokens)[:, -1].argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, token], dim=1)
        if stop in tokens:
            return tokens[:, seq:-1]
    return tokens[:, seq:]


@wrong(mend_writing, "torch.cat of an empty list raises where nothing is written.")
def _(model, tokens, max_new_tokens, stop):
    generated = []
    for _ in range(max_new_tokens):
        next_token = torch.argmax(model(tokens)[:, -1], dim=-1, keepdim=True)
        if next_token.item() == stop:
            break
        generated.append(next_token)
        tokens = torch.cat([tokens, next_token], dim=1)
    return torch.cat(generated, dim=1)


@right(mend_writing)
def _(model, tokens, max_new_tokens, stop):
    def write(text, left):
        if left == 0:
            return text
        token = model(text).log_softmax(dim=-1)[:, -1].max(dim=-1, keepdim=True).indices
        return text if int(token) == stop else write(torch.cat([text, token], dim=1), left - 1)

    return write(tokens, max_new_tokens)[:, tokens.shape[1] :]
