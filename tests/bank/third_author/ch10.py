"""Answers to assignment 10, by a third author."""

from itertools import islice, takewhile

import torch
from torch.nn import functional as F

from transformer_lab.checks import (
    cached_step,
    mean_pool,
    mend_writing,
    rotate,
)

from .. import right, wrong


@wrong(
    cached_step,
    "The position is read after the cache has grown: the new token is turned by past + 1, one too many.",
)
def _(query, key, value, keys, values, base):
    values = torch.cat([values, value], dim=2)
    position = torch.tensor([values.shape[2]], device=query.device)
    query = rotate.reference(query, position, base)
    keys = torch.cat([keys, rotate.reference(key, position, base)], dim=2)
    scores = query @ keys.mT / query.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ values, keys, values


@wrong(cached_step, "The keys of the cache, turned already, are turned a second time together with the new one.")
def _(query, key, value, keys, values, base):
    past = keys.shape[-2]
    positions = torch.arange(past + 1, device=query.device)
    keys = rotate.reference(torch.cat([keys, key], dim=-2), positions, base)
    values = torch.cat([values, value], dim=-2)
    query = rotate.reference(query, positions[-1:], base)
    out = F.scaled_dot_product_attention(query, keys, values)
    return out, keys, values


@wrong(cached_step, "The new key goes into the cache without being turned; only the query is.")
def _(query, key, value, keys, values, base):
    position = torch.tensor([keys.shape[-2]], device=query.device)
    q = rotate.reference(query, position, base)
    keys = torch.cat((keys, key), dim=-2)
    values = torch.cat((values, value), dim=-2)
    weights = torch.softmax(q @ keys.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
    return weights @ values, keys, values


@wrong(
    cached_step,
    "is_causal=True counts the single query as place 0: it attends to the first key of the cache alone.",
)
def _(query, key, value, keys, values, base):
    position = torch.tensor([keys.shape[2]], device=query.device)
    query = rotate.reference(query, position, base)
    key = rotate.reference(key, position, base)
    keys = torch.cat([keys, key], dim=2)
    values = torch.cat([values, value], dim=2)
    blend = F.scaled_dot_product_attention(query, keys, values, is_causal=True)
    return blend, keys, values


@right(cached_step)
def _(query, key, value, keys, values, base):
    place = torch.full((1,), keys.size(2), device=query.device)
    query, key = rotate.reference(torch.cat([query, key]), place, base).chunk(2)
    keys, values = (torch.cat(pair, dim=2) for pair in ((keys, key), (values, value)))
    scores = torch.linalg.vecdot(query, keys) * query.size(-1) ** -0.5  # (batch, heads, past + 1)
    weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()
    return torch.einsum("bhk,bhkd->bhd", weights, values).unsqueeze(2), keys, values


@wrong(mean_pool, "All vectors are divided by one norm, that of the whole batch: right only for a batch of one text.")
def _(states, real):
    mask = real.unsqueeze(-1)
    mean = (states * mask).sum(dim=1) / mask.sum(dim=1)
    return mean / mean.norm()


@wrong(mean_pool, "The mean is not scaled to length 1.")
def _(states, real):
    real = real[..., None].to(states.dtype)
    return (states * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)


@wrong(mean_pool, "Each token is scaled to length 1 before the mean: long tokens count no more than short ones.")
def _(states, real):
    states = F.normalize(states, dim=-1)
    summed = states.masked_fill(~real[..., None], 0.0).sum(dim=1)
    return F.normalize(summed / real.sum(dim=1, keepdim=True), dim=-1)


@wrong(mean_pool, "The first n tokens are taken for the n real ones: wrong where padding stands before a real token.")
def _(states, real):
    vectors = []
    for text, n in zip(states, real.sum(dim=1).tolist()):
        mean = text[:n].mean(dim=0)
        vectors.append(mean / mean.norm())
    return torch.stack(vectors)


@right(mean_pool)
def _(states, real):
    # the number of tokens cancels out when the length becomes 1
    sums = torch.stack([text[there].sum(dim=0) for text, there in zip(states, real)])
    return sums / torch.linalg.vector_norm(sums, dim=1, keepdim=True)


@wrong(mend_writing, "The stop token is returned as well: it is appended before the loop looks at it.")
def _(model, tokens, max_new_tokens, stop):
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        probabilities = model(tokens).softmax(dim=-1)
        token = probabilities[:, -1].argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, token], dim=1)
        if token.item() == stop:
            break
    return tokens[:, seq:]


@wrong(mend_writing, "Only the stop is mended: the softmax still runs over the places instead of over the vocabulary.")
def _(model, tokens, max_new_tokens, stop):
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        probabilities = model(tokens).softmax(dim=1)
        token = probabilities[:, -1].argmax(dim=-1, keepdim=True)
        if token.item() == stop:
            break
        tokens = torch.cat([tokens, token], dim=1)
    return tokens[:, seq:]


@wrong(mend_writing, "The last token is always cut off, also where max_new_tokens ended the writing and not the stop.")
def _(model, tokens, max_new_tokens, stop):
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        scores = model(tokens)[:, -1]
        token = scores.argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, token], dim=1)
        if token == stop:
            break
    return tokens[:, seq:-1]


@wrong(
    mend_writing,
    "The stop token is looked for in the prompt too: where the prompt has one, nothing is written.",
)
def _(model, tokens, max_new_tokens, stop):
    seq = tokens.shape[1]
    for _ in range(max_new_tokens):
        if (tokens == stop).any():
            break
        token = model(tokens)[:, -1].softmax(dim=-1).argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, token], dim=1)
    new = tokens[:, seq:]
    if new.shape[1] > 0 and new[0, -1] == stop:
        new = new[:, :-1]
    return new


@right(mend_writing)
def _(model, tokens, max_new_tokens, stop):
    def endless(text):
        while True:
            token = int(model(text)[0, -1].argmax())
            yield token
            text = torch.cat([text, text.new_tensor([[token]])], dim=1)

    new = takewhile(lambda token: token != stop, islice(endless(tokens), max_new_tokens))
    return tokens.new_tensor([list(new)])
