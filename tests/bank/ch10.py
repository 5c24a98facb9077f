"""Answers to assignment 10."""

import math

import torch
import torch.nn.functional as F

from transformer_lab.checks import (
    cached_step,
    mean_pool,
    mend_writing,
    next_token,
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


@right(next_token)
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores, order = (logits / temperature).sort(descending=True, stable=True)
    if top_k is not None:
        scores, order = scores[:top_k], order[:top_k]
    p = scores.softmax(0)
    enough = (p.cumsum(0) - p < top_p).sum()
    p, order = p[:enough], order[:enough]
    p = p / p.sum()
    place = int((p.cumsum(0) <= draw).sum())
    return int(order[min(place, len(order) - 1)])


@right(next_token)
def _(logits, temperature, top_k, top_p, draw):
    scores = logits.tolist()
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    if not temperature:
        return order[0]
    if top_k:
        order = order[:top_k]
    most = scores[order[0]]
    weights = [math.exp((scores[i] - most) / temperature) for i in order]
    total = sum(weights)
    kept, together = [], 0.0
    for weight in weights:
        kept.append(weight)
        together += weight / total
        if together >= top_p:
            break
    target, running = draw * sum(kept), 0.0
    for i, weight in zip(order, kept):
        running += weight
        if running > target:
            return i
    return order[len(kept) - 1]


@right(next_token)
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return torch.argmax(logits).item()
    sorted_logits, indices = torch.sort(logits / temperature, descending=True, stable=True)
    if top_k is not None and top_k < len(logits):
        sorted_logits[top_k:] = -float("inf")
    probs = torch.softmax(sorted_logits, dim=-1)
    cum = torch.cumsum(probs, dim=-1)
    remove = cum >= top_p
    remove[1:] = remove[:-1].clone()
    remove[0] = False
    sorted_logits[remove] = -float("inf")
    cdf = torch.softmax(sorted_logits, dim=-1).cumsum(0)
    last = int((~remove).sum()) - 1
    i = torch.searchsorted(cdf, torch.tensor(draw, dtype=cdf.dtype), right=True)
    return indices[min(int(i), last)].item()


@wrong(next_token, "The scores are multiplied by the temperature.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores, order = (logits * temperature).sort(descending=True, stable=True)
    k = len(logits) if top_k is None else top_k
    p = scores[:k].softmax(0)
    n = int((p.cumsum(0) - p < top_p).sum())
    c = p[:n].cumsum(0) / p[:n].sum()
    return int(order[min(int((c <= draw).sum()), n - 1)])


@wrong(next_token, "The temperature divides the probabilities, and the division by their sum undoes it.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    probs, order = logits.softmax(-1).sort(descending=True, stable=True)
    if top_k is not None:
        probs, order = probs[:top_k], order[:top_k]
    probs = probs / temperature
    probs = probs / probs.sum()
    keep = probs.cumsum(0) - probs < top_p
    probs, order = probs[keep], order[keep]
    probs = probs / probs.sum()
    i = torch.searchsorted(probs.cumsum(0), torch.tensor(draw), right=True).clamp(max=len(order) - 1)
    return order[i].item()


@wrong(next_token, "Top-p adds up the probabilities of the whole vocabulary, not those that top-k has left.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    probs = (logits / temperature).softmax(-1)
    probs, order = probs.sort(descending=True, stable=True)
    if top_k is not None:
        probs, order = probs[:top_k], order[:top_k]
    keep = probs.cumsum(0) - probs < top_p
    probs, order = probs[keep], order[keep]
    cdf = probs.cumsum(0) / probs.sum()
    place = int((cdf <= draw).sum())
    return int(order[min(place, len(order) - 1)])


@wrong(next_token, "Top-p drops the token that reaches top_p: only sums below it stay.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores, order = (logits / temperature).sort(descending=True, stable=True)
    if top_k is not None:
        scores, order = scores[:top_k], order[:top_k]
    p = scores.softmax(0)
    keep = p.cumsum(0) <= top_p
    keep[0] = True
    p, order = p[keep], order[keep]
    p = p / p.sum()
    place = int((p.cumsum(0) <= draw).sum())
    return int(order[min(place, len(order) - 1)])


@wrong(next_token, "The kept probabilities are not divided by their sum.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores, order = (logits / temperature).sort(descending=True, stable=True)
    if top_k is not None:
        scores, order = scores[:top_k], order[:top_k]
    p = scores.softmax(0)
    n = int((p.cumsum(0) - p < top_p).sum())
    place = int((p[:n].cumsum(0) <= draw).sum())
    return int(order[min(place, n - 1)])


@wrong(next_token, "The running sum goes through the vocabulary in its own order, not from the most likely token.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores = logits / temperature
    order = scores.sort(descending=True, stable=True).indices
    keep = torch.zeros(len(logits), dtype=torch.bool)
    k = len(logits) if top_k is None else top_k
    p = scores[order[:k]].softmax(0)
    n = int((p.cumsum(0) - p < top_p).sum())
    keep[order[:n]] = True
    p = scores.masked_fill(~keep, -torch.inf).softmax(0)
    place = int((p.cumsum(0) <= draw).sum())
    return min(place, len(logits) - 1)


@wrong(next_token, "The place in the sorted row is returned, not the token's number.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores = (logits / temperature).sort(descending=True).values
    if top_k is not None:
        scores = scores[:top_k]
    p = scores.softmax(0)
    p = p[p.cumsum(0) - p < top_p]
    p = p / p.sum()
    return min(int((p.cumsum(0) <= draw).sum()), len(p) - 1)


@wrong(next_token, "draw is not read: the most likely token is always taken.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores = logits / temperature
    if top_k is not None:
        least = scores.topk(top_k).values[-1]
        scores = scores.masked_fill(scores < least, -torch.inf)
    return int(scores.softmax(-1).argmax())


@wrong(next_token, "The scores are sorted the wrong way round: the least likely are kept.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores, order = (logits / temperature).sort()
    if top_k is not None:
        scores, order = scores[:top_k], order[:top_k]
    p = scores.softmax(0)
    n = int((p.cumsum(0) - p < top_p).sum())
    c = p[:n].cumsum(0) / p[:n].sum()
    return int(order[min(int((c <= draw).sum()), n - 1)])


@wrong(next_token, "Temperature 0 is not treated: the scores are divided by 0.")
def _(logits, temperature, top_k, top_p, draw):
    scores, order = (logits / temperature).sort(descending=True, stable=True)
    if top_k is not None:
        scores, order = scores[:top_k], order[:top_k]
    p = scores.softmax(0)
    n = int((p.cumsum(0) - p < top_p).sum())
    p, order = p[:n], order[:n]
    c = p.cumsum(0) / p.sum()
    return int(order[min(int((c <= draw).sum()), n - 1)])


@wrong(next_token, "top_k of None is not treated: topk refuses it.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores, order = (logits / temperature).topk(top_k)
    p = scores.softmax(0)
    n = int((p.cumsum(0) - p < top_p).sum())
    p, order = p[:n], order[:n]
    c = p.cumsum(0) / p.sum()
    return int(order[min(int((c <= draw).sum()), n - 1)])


@wrong(next_token, "A second softmax over probabilities: the temperature divides what a softmax has made already.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    p, order = (logits.softmax(-1) / temperature).softmax(-1).sort(descending=True, stable=True)
    if top_k is not None:
        p, order = p[:top_k], order[:top_k]
        p = p / p.sum()
    n = int((p.cumsum(0) - p < top_p).sum())
    p, order = p[:n], order[:n]
    c = p.cumsum(0) / p.sum()
    return int(order[min(int((c <= draw).sum()), n - 1)])


@wrong(next_token, "Top-k comes after top-p.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    p, order = (logits / temperature).softmax(-1).sort(descending=True, stable=True)
    n = int((p.cumsum(0) - p < top_p).sum())
    if top_k is not None:
        n = min(n, top_k)
    p, order = p[:n], order[:n]
    c = p.cumsum(0) / p.sum()
    return int(order[min(int((c <= draw).sum()), n - 1)])


@wrong(next_token, "The temperature comes last: top-k and top-p cut off at temperature 1.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores, order = logits.sort(descending=True, stable=True)
    if top_k is not None:
        scores, order = scores[:top_k], order[:top_k]
    p = scores.softmax(0)
    n = int((p.cumsum(0) - p < top_p).sum())
    p, order = (scores[:n] / temperature).softmax(0), order[:n]
    return int(order[min(int((p.cumsum(0) <= draw).sum()), n - 1)])


@wrong(next_token, "What is cut off gets the score 0, and not minus infinity.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores, order = (logits / temperature).sort(descending=True, stable=True)
    scores = scores.clone()
    if top_k is not None:
        scores[top_k:] = 0
    p = scores.softmax(0)
    scores[p.cumsum(0) - p >= top_p] = 0
    c = scores.softmax(0).cumsum(0)
    return int(order[min(int((c <= draw).sum()), len(order) - 1)])


@wrong(next_token, "The token is drawn at random, with torch.multinomial: draw is not read.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores = logits / temperature
    if top_k is not None:
        scores[scores < scores.topk(top_k).values[-1]] = -torch.inf
    p, order = scores.softmax(-1).sort(descending=True)
    p[p.cumsum(0) - p >= top_p] = 0
    return order[torch.multinomial(p, 1)].item()


@wrong(next_token, "Top-p keeps the tokens whose own probability is at least top_p.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores, order = (logits / temperature).sort(descending=True, stable=True)
    if top_k is not None:
        scores, order = scores[:top_k], order[:top_k]
    p = scores.softmax(0)
    if top_p < 1:
        keep = p >= top_p
        keep[0] = True
        p, order = p[keep], order[keep]
    c = p.cumsum(0) / p.sum()
    return int(order[min(int((c <= draw).sum()), len(order) - 1)])


@wrong(next_token, "top_k is not read.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    p, order = (logits / temperature).softmax(-1).sort(descending=True, stable=True)
    n = int((p.cumsum(0) - p < top_p).sum())
    c = p[:n].cumsum(0) / p[:n].sum()
    return int(order[min(int((c <= draw).sum()), n - 1)])


@wrong(next_token, "The last running sum that is below draw is taken: one token too early.")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    scores, order = (logits / temperature).sort(descending=True, stable=True)
    if top_k is not None:
        scores, order = scores[:top_k], order[:top_k]
    p = scores.softmax(0)
    n = int((p.cumsum(0) - p < top_p).sum())
    c = p[:n].cumsum(0) / p[:n].sum()
    return int(order[max(int((c <= draw).sum()) - 1, 0)])


@wrong(next_token, "Top-p is left out when top-k is given (elif).")
def _(logits, temperature, top_k, top_p, draw):
    if temperature == 0:
        return int(logits.argmax())
    p, order = (logits / temperature).softmax(-1).sort(descending=True, stable=True)
    if top_k is not None:
        p, order = p[:top_k], order[:top_k]
    elif top_p < 1:
        n = int((p.cumsum(0) - p < top_p).sum())
        p, order = p[:n], order[:n]
    c = p.cumsum(0) / p.sum()
    return int(order[min(int((c <= draw).sum()), len(order) - 1)])
