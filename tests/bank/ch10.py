"""Answers to assignment 10."""

import math

import torch
import torch.nn.functional as F

from transformer_lab.checks import (
    cached_step,
    mean_pool,
    mend_writing,
)

from . import right, wrong


def turn(x, positions, base):
    """What a learner calls in `cached_step`: a right `rotate`, so that the mistake is in the step alone."""
    speeds = base ** (-torch.arange(0, x.shape[-1], 2, device=x.device) / x.shape[-1])
    angle = positions[:, None] * speeds
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).flatten(-2)


@wrong(cached_step, "The position is one too high: past tokens in the cache put the new one at past, not at past + 1.")
def _(query, key, value, keys, values, base):
    past = keys.shape[2]
    position = torch.tensor([past + 1])
    query, key = turn(query, position, base), turn(key, position, base)
    keys = torch.cat([keys, key], dim=2)
    values = torch.cat([values, value], dim=2)
    weights = (query @ keys.mT / math.sqrt(query.shape[-1])).softmax(dim=-1)
    return weights @ values, keys, values


@wrong(cached_step, "All keys are turned after the new one is appended, so those of the cache are turned twice.")
def _(query, key, value, keys, values, base):
    past = keys.shape[2]
    keys = torch.cat([keys, key], dim=2)
    values = torch.cat([values, value], dim=2)
    keys = turn(keys, torch.arange(past + 1), base)
    query = turn(query, torch.tensor([past]), base)
    scores = query @ keys.transpose(-2, -1) / math.sqrt(keys.size(-1))
    return torch.softmax(scores, dim=-1) @ values, keys, values


@wrong(cached_step, "The value is turned, too.")
def _(query, key, value, keys, values, base):
    position = torch.tensor([keys.shape[2]])
    query, key, value = (turn(t, position, base) for t in (query, key, value))
    keys = torch.cat([keys, key], dim=2)
    values = torch.cat([values, value], dim=2)
    out = F.scaled_dot_product_attention(query, keys, values)
    return out, keys, values


@wrong(cached_step, "The position is passed as an int, where rotate wants a tensor of positions: it raises.")
def _(query, key, value, keys, values, base):
    past = keys.shape[2]
    query = turn(query, past, base)
    key = turn(key, past, base)
    keys = torch.cat((keys, key), dim=2)
    values = torch.cat((values, value), dim=2)
    weights = torch.softmax(query @ keys.mT / query.shape[-1] ** 0.5, dim=-1)
    return weights @ values, keys, values


@right(cached_step)
def _(query, key, value, keys, values, base):
    here = torch.full((1,), keys.shape[-2], device=keys.device)
    query, key = turn(torch.cat([query, key]), here, base).chunk(2)
    keys, values = (torch.cat(pair, dim=-2) for pair in ((keys, key), (values, value)))
    return F.scaled_dot_product_attention(query, keys, values), keys, values


@wrong(mean_pool, "The padding is averaged with the real tokens: real is not read.")
def _(states, real):
    mean = states.mean(dim=1)
    return F.normalize(mean, dim=-1)


@wrong(mean_pool, "The mask is upside down: the real tokens are set to 0, and the padding is averaged.")
def _(states, real):
    total = states.masked_fill(real[..., None], 0).sum(dim=1)
    mean = total / real.sum(dim=1, keepdim=True)
    return mean / mean.norm(dim=-1, keepdim=True)


@wrong(mean_pool, "It takes the first token's vector, as BERT's [CLS], not a mean.")
def _(states, real):
    cls = states[:, 0]
    return cls / cls.norm(dim=-1, keepdim=True)


@wrong(mean_pool, "states[real] joins the tokens of all texts, so the batch gets one vector.")
def _(states, real):
    mean = states[real].mean(dim=0)
    return mean / mean.norm(dim=-1, keepdim=True)


@right(mean_pool)
def _(states, real):
    total = torch.bmm(real[:, None].to(states.dtype), states)[:, 0]
    return total * total.square().sum(dim=1, keepdim=True).rsqrt()


@wrong(mend_writing, "Only the softmax is mended; the loop never looks at stop.")
def _(model, tokens, max_new_tokens, stop):
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        probabilities = model(tokens).softmax(dim=-1)
        token = probabilities[:, -1].argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, token], dim=1)
    return tokens[:, seq:]


@wrong(mend_writing, "Only stop is mended; the softmax still runs over the tokens, dim=1.")
def _(model, tokens, max_new_tokens, stop):
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        probabilities = model(tokens).softmax(dim=1)
        token = probabilities[:, -1].argmax(dim=-1, keepdim=True)
        if token == stop:
            break
        tokens = torch.cat([tokens, token], dim=1)
    return tokens[:, seq:]


@wrong(mend_writing, "It returns only where the stop token comes: after max_new_tokens the result is None.")
def _(model, tokens, max_new_tokens, stop):
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        probabilities = model(tokens).softmax(dim=2)
        token = probabilities[:, -1].argmax(dim=-1, keepdim=True)
        if token == stop:
            return tokens[:, seq:]
        tokens = torch.cat([tokens, token], dim=1)


@wrong(mend_writing, "The model gets only the last token and no cache, so it does not know the text before it.")
def _(model, tokens, max_new_tokens, stop):
    new = tokens[:, :0]
    token = tokens[:, -1:]
    for _ in range(max_new_tokens):
        token = model(token)[:, -1].argmax(dim=-1, keepdim=True)
        if token.item() == stop:
            break
        new = torch.cat([new, token], dim=1)
    return new


@right(mend_writing)
def _(model, tokens, max_new_tokens, stop):
    text = tokens[0].tolist()
    end = len(text) + max_new_tokens
    while len(text) < end:
        best = int(model(tokens.new_tensor([text]))[0, -1].topk(1).indices)
        if best == stop:
            break
        text.append(best)
    return tokens.new_tensor([text[tokens.shape[1] :]])
