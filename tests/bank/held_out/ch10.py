"""Held out: answers to assignment 10."""

import math

import torch
import torch.nn.functional as F

from transformer_lab.checks import (
    cached_step,
    mean_pool,
    mend_writing,
)

from .. import right, wrong


def turn(x, positions, base):
    """What a learner calls in `cached_step`: a right `rotate`, so that the mistake is in the step alone."""
    speeds = base ** (-torch.arange(0, x.shape[-1], 2, device=x.device) / x.shape[-1])
    angle = positions[:, None] * speeds
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).flatten(-2)


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
