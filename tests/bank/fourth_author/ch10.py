"""Answers to assignment 10, by a fourth author."""

import torch
import torch.nn.functional as F

from transformer_lab.checks import (
    cached_step,
    mean_pool,
    mend_writing,
    rotate,
)

from .. import right, wrong


@wrong(cached_step, "The new token is turned by past + 1: its position is one too high.")
def _(query, key, value, keys, values, base):
    values = torch.cat([values, value], dim=-2)
    position = torch.tensor([values.shape[-2]], device=query.device)
    query = rotate.reference(query, position, base)
    keys = torch.cat([keys, rotate.reference(key, position, base)], dim=-2)
    scores = query @ keys.mT / query.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ values, keys, values


@wrong(cached_step, "The keys of the cache, which are turned already, are turned a second time.")
def _(query, key, value, keys, values, base):
    past = keys.shape[2]
    keys = torch.cat([keys, key], dim=2)
    values = torch.cat([values, value], dim=2)
    positions = torch.arange(past + 1, device=query.device)
    query = rotate.reference(query, positions[-1:], base)
    keys = rotate.reference(keys, positions, base)
    out = F.scaled_dot_product_attention(query, keys, values)
    return out, keys, values


@right(cached_step)
def _(query, key, value, keys, values, base):
    past = keys.shape[-2]
    here = torch.full((1,), past, device=query.device)
    query, key = rotate.reference(query, here, base), rotate.reference(key, here, base)
    query = query / query.shape[-1] ** 0.5

    # One key after the other, the new one first, with the highest score so far taken off.
    highest = (query * key).sum(dim=-1, keepdim=True)
    total, blend = torch.ones_like(highest), value
    for i in range(past):
        score = (query * keys[:, :, i : i + 1]).sum(dim=-1, keepdim=True)
        new_highest = torch.maximum(highest, score)
        old, new = (highest - new_highest).exp(), (score - new_highest).exp()
        total = total * old + new
        blend = blend * old + new * values[:, :, i : i + 1]
        highest = new_highest
    return blend / total, torch.cat([keys, key], dim=-2), torch.cat([values, value], dim=-2)


@wrong(mean_pool, "Each token is scaled to length 1 before the mean, and the mean itself is not: it is shorter than 1.")
def _(states, real):
    mask = real.unsqueeze(-1).to(states.dtype)
    states = F.normalize(states, dim=-1)
    return (states * mask).sum(dim=1) / mask.sum(dim=1)


@wrong(mean_pool, "All vectors are divided by one number, the length of the whole batch, and not each by its own.")
def _(states, real):
    summed = states.masked_fill(~real[:, :, None], 0.0).sum(dim=1)
    mean = summed / real.sum(dim=1, keepdim=True)
    return mean / mean.norm()


@wrong(mend_writing, "The stop token is written before the loop ends, so that it is returned with the rest.")
def _(model, tokens, max_new_tokens, stop):
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        token = model(tokens)[:, -1].argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, token], dim=1)
        if token.item() == stop:
            break
    return tokens[:, seq:]


@wrong(mend_writing, "Where nothing new is written, the given tokens are returned in place of an empty row.")
def _(model, tokens, max_new_tokens, stop):
    new = 0
    while new < max_new_tokens:
        logits = model(tokens)[:, -1, :]
        token = torch.argmax(logits, dim=-1, keepdim=True)
        if token.item() == stop:
            break
        tokens = torch.cat([tokens, token], dim=1)
        new += 1
    return tokens[:, -new:]


@right(mend_writing)
def _(model, tokens, max_new_tokens, stop):
    start = end = tokens.shape[1]
    text = F.pad(tokens, (0, max_new_tokens))
    while end < start + max_new_tokens:
        best = model(text[:, :end])[0, -1].topk(1).indices
        if best == stop:
            break
        text[:, end] = best
        end += 1
    return text[:, start:end]
