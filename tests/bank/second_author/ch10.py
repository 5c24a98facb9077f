"""A second author: answers to chapter 10's exercises."""

import torch
from torch.nn import functional as F

import transformer_lab as tl

from .. import right, wrong

E = tl.checks


def rotate(x, positions, base):
    """Exercise 9.1, as its author calls it later."""
    d_head = x.shape[-1]
    angle = positions[:, None] * base ** (-torch.arange(0, d_head, 2, dtype=x.dtype) / d_head)
    cos, sin = angle.cos(), angle.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


# cached_step


@wrong(
    E.cached_step,
    "is_causal=True aligns the mask with the first key: the one query sees only the oldest key in the cache, "
    "and gets its value. Right only for an empty cache.",
)
def _(query, key, value, keys, values, base):
    position = torch.tensor([keys.shape[2]])
    query, key = rotate(query, position, base), rotate(key, position, base)
    keys = torch.cat([keys, key], dim=2)
    values = torch.cat([values, value], dim=2)
    output = F.scaled_dot_product_attention(query, keys, values, is_causal=True)
    return output, keys, values


@wrong(
    E.cached_step,
    "All keys are turned after the new one was appended, those of the cache too, which had been turned "
    "already: they are turned twice, and so are stored.",
)
def _(query, key, value, keys, values, base):
    past = keys.shape[-2]
    keys = torch.cat([keys, key], dim=-2)
    values = torch.cat([values, value], dim=-2)
    keys = rotate(keys, torch.arange(past + 1), base)
    query = rotate(query, torch.tensor([past]), base)
    weights = (query @ keys.mT / query.shape[-1] ** 0.5).softmax(dim=-1)
    return weights @ values, keys, values


@wrong(
    E.cached_step,
    "The position is read from axis 1, the number of heads, instead of axis 2, the number of tokens in the "
    "cache: the new query and key are turned by a wrong position.",
)
def _(query, key, value, keys, values, base):
    position = torch.tensor([keys.shape[1]])
    keys = torch.cat([keys, rotate(key, position, base)], dim=2)
    values = torch.cat([values, value], dim=2)
    scores = rotate(query, position, base) @ keys.transpose(-1, -2) / query.size(-1) ** 0.5
    return scores.softmax(-1) @ values, keys, values


@right(E.cached_step)
def _(query, key, value, keys, values, base):
    past = keys.shape[2]
    both = rotate(torch.cat([query, key]), torch.tensor([past]), base)
    query, key = both.chunk(2)
    scale = query.shape[-1] ** -0.5
    keys, values = torch.cat((keys, key), 2), torch.cat((values, value), 2)
    weights = torch.softmax((keys * query).sum(-1) * scale, dim=-1)
    return (weights.unsqueeze(-1) * values).sum(2, keepdim=True), keys, values


# mean_pool


@wrong(
    E.mean_pool,
    "The first token's vector is taken (BERT's CLS pooling) instead of the mean of the real tokens.",
)
def _(states, real):
    return F.normalize(states[:, 0], dim=-1)


@wrong(
    E.mean_pool,
    "The vectors are scaled along the batch axis, dim=0, instead of along the features: they do not have length 1, and "
    "the texts of a batch change each other.",
)
def _(states, real):
    mask = real.unsqueeze(-1).float()
    mean = (states * mask).sum(1) / mask.sum(1)
    return F.normalize(mean, p=2, dim=0)


@wrong(
    E.mean_pool,
    "Indexing with the mask puts the real tokens of all texts into one row, so there is one mean for the whole "
    "batch, of the shape (1, d_model). Right for a batch of one.",
)
def _(states, real):
    mean = states[real].mean(dim=0, keepdim=True)
    return mean / mean.norm(dim=-1, keepdim=True)


# mend_writing


@wrong(
    E.mend_writing,
    "The stop token is appended before the loop looks at it, so it is returned with the rest.",
)
def _(model, tokens, max_new_tokens, stop):
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        token = model(tokens)[:, -1].argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, token], dim=1)
        if token.item() == stop:
            break
    return tokens[:, seq:]


@wrong(
    E.mend_writing,
    "Only the newest token is given to the model in every step, not the text so far (as with a cache, which there is "
    "not): right for a model that looks at one token, wrong for any that looks further back.",
)
def _(model, tokens, max_new_tokens, stop):
    new = tokens[:, :0]
    last = tokens[:, -1:]
    for _ in range(max_new_tokens):
        last = model(last)[:, -1].argmax(dim=-1, keepdim=True)
        if last == stop:
            break
        new = torch.cat([new, last], dim=1)
    return new


@wrong(
    E.mend_writing,
    "At the stop token the whole text is returned, with the tokens of the prompt before the new ones. Right "
    "only where no stop token comes.",
)
def _(model, tokens, max_new_tokens, stop):
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        probabilities = model(tokens)[:, -1].softmax(dim=-1)
        token = probabilities.argmax(dim=-1, keepdim=True)
        if token == stop:
            return tokens
        tokens = torch.cat([tokens, token], dim=1)
    return tokens[:, seq:]


@right(E.mend_writing)
def _(model, tokens, max_new_tokens, stop):
    new = []
    while len(new) < max_new_tokens:
        text = torch.cat([tokens, tokens.new_tensor([new])], dim=1)
        token = model(text)[0, -1].argmax().item()
        if token == stop:
            break
        new.append(token)
    return tokens.new_tensor([new])
