"""Answers to assignment 9."""

import math

import torch
import torch.nn.functional as F

from transformer_lab.checks import (
    decoder_block,
    gated_feed_forward,
    latent_cache_bytes,
    mixture_of_experts,
    repeat_keys,
    rotate,
    route,
)

from . import right, wrong


@wrong(rotate, "Feature i is paired with i + d_head / 2, as in Hugging Face's rotate_half.")
def _(x, positions, base):
    d = x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, d, 2).float() / d))
    freqs = positions[:, None].float() * inv_freq[None, :]
    emb = torch.cat((freqs, freqs), dim=-1)
    x1, x2 = x[..., : d // 2], x[..., d // 2 :]
    rotated = torch.cat((-x2, x1), dim=-1)
    return x * emb.cos() + rotated * emb.sin()


@wrong(rotate, "positions is not read: the tokens are counted from 0.")
def _(x, positions, base):
    batch, heads, seq, d_head = x.shape
    speeds = base ** (-torch.arange(0, d_head, 2) / d_head)
    angle = torch.arange(seq)[:, None] * speeds
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


@wrong(rotate, "The turned features are put back as two halves, first all even ones, then all odd ones.")
def _(x, positions, base):
    a, b = x[..., 0::2], x[..., 1::2]
    angle = positions[:, None] * base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


@wrong(rotate, "It writes into x, and the odd features are computed with the even ones already turned.")
def _(x, positions, base):
    d = x.shape[-1]
    angles = positions[:, None] / base ** (torch.arange(0, d, 2) / d)
    cos, sin = angles.cos(), angles.sin()
    a = x[..., 0::2]
    b = x[..., 1::2]
    x[..., 0::2] = a * cos - b * sin
    x[..., 1::2] = a * sin + b * cos
    return x


@right(rotate)
def _(x, positions, base):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    i = torch.arange(pairs.shape[-1], device=x.device, dtype=x.dtype)
    angle = torch.outer(positions.to(x.dtype), torch.exp(-2 * i / x.shape[-1] * math.log(base)))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


@wrong(repeat_keys, "The heads are tiled, 0, 1, 0, 1, instead of each one's copies standing together.")
def _(x, n_heads):
    kv_heads = x.shape[1]
    return x.repeat(1, n_heads // kv_heads, 1, 1)


@wrong(repeat_keys, "No axis is named, so repeat_interleave repeats every number of the flattened tensor.")
def _(x, n_heads):
    n_rep = n_heads // x.size(1)
    return x.repeat_interleave(n_rep)


@wrong(repeat_keys, "The copies stay an axis of their own: the result has five axes.")
def _(x, n_heads):
    b, kv, s, d = x.shape
    group = n_heads // kv
    return x[:, :, None, :, :].expand(b, kv, group, s, d)


@wrong(repeat_keys, "expand stretches only an axis of size 1: it raises unless there is one key head.")
def _(x, n_heads):
    batch, _, seq, d_head = x.shape
    return x.expand(batch, n_heads, seq, d_head)


@right(repeat_keys)
def _(x, n_heads):
    owner = torch.arange(n_heads, device=x.device) * x.shape[1] // n_heads
    return x.index_select(1, owner)


@wrong(gated_feed_forward, "SiLU is on up, not on gate.")
def _(x, gate, up, down):
    return ((x @ gate.T) * F.silu(x @ up.T)) @ down.T


@wrong(gated_feed_forward, "A sigmoid stands where SiLU is asked, as in the first gated linear unit.")
def _(x, gate, up, down):
    g = torch.sigmoid(F.linear(x, gate))
    return F.linear(g * F.linear(x, up), down)


@wrong(gated_feed_forward, "The two maps are added, not multiplied.")
def _(x, gate, up, down):
    hidden = F.silu(x @ gate.T) + x @ up.T
    return hidden @ down.T


@wrong(gated_feed_forward, "The map up is not used: the gate is multiplied with nothing.")
def _(x, gate, up, down):
    h = x @ gate.T
    h = h * torch.sigmoid(h)
    return h @ down.T


@right(gated_feed_forward)
def _(x, gate, up, down):
    g, u = F.linear(x, torch.cat([gate, up])).chunk(2, dim=-1)
    return torch.matmul(g * u * g.sigmoid(), down.mT)


@wrong(
    decoder_block, "The feed-forward layer reads attention's result alone, without the x that was to be added first."
)
def _(x, attention, feed_forward, norm1, norm2):
    a = attention(norm1(x))
    f = feed_forward(norm2(a))
    return x + a + f


@wrong(decoder_block, "It is post-norm: each norm stands after the sum.")
def _(x, attention, feed_forward, norm1, norm2):
    x = norm1(x + attention(x))
    x = norm2(x + feed_forward(x))
    return x


@wrong(decoder_block, "+= changes the caller's x in place.")
def _(x, attention, feed_forward, norm1, norm2):
    x += attention(norm1(x))
    x += feed_forward(norm2(x))
    return x


@wrong(decoder_block, "The stream itself is normalized: what is added to each part's result has met its norm.")
def _(x, attention, feed_forward, norm1, norm2):
    x = norm1(x)
    x = x + attention(x)
    x = norm2(x)
    x = x + feed_forward(x)
    return x


@right(decoder_block)
def _(x, attention, feed_forward, norm1, norm2):
    def with_residual(part, norm, stream):
        return torch.add(stream, part(norm(stream)))

    return with_residual(feed_forward, norm2, with_residual(attention, norm1, x))


@right(route)
def _(logits, n_active):
    found, indices = logits.topk(n_active, dim=-1)
    return indices, found.softmax(dim=-1)


@right(route)
def _(logits, n_active):
    order = logits.argsort(dim=-1, descending=True)[..., :n_active]
    probabilities = F.softmax(logits, dim=2).gather(2, order)
    return order, F.normalize(probabilities, p=1, dim=-1)


@right(route)
def _(logits, n_active):
    batch, seq, n_experts = logits.shape
    indices, weights = [], []
    for token in logits.reshape(batch * seq, n_experts):
        best = sorted(range(n_experts), key=lambda i: -token[i].item())[:n_active]
        e = (token[best] - token.max()).exp()
        indices.append(torch.tensor(best, device=logits.device))
        weights.append(e / e.sum())
    return torch.stack(indices).view(batch, seq, -1), torch.stack(weights).view(batch, seq, -1)


@wrong(route, "The weights are not divided by their sum.")
def _(logits, n_active):
    weights, indices = torch.softmax(logits, dim=-1).topk(n_active, dim=-1)
    return indices, weights


@wrong(route, "The weights come first, the indices second.")
def _(logits, n_active):
    weights, indices = torch.softmax(logits, dim=-1).topk(n_active, dim=-1)
    return weights / weights.sum(-1, keepdim=True), indices


@wrong(route, "The softmax runs over the tokens.")
def _(logits, n_active):
    p = torch.softmax(logits, dim=1)
    weights, indices = torch.topk(p, n_active)
    return indices, weights / weights.sum(-1, keepdim=True)


@wrong(route, "The softmax runs over the batch.")
def _(logits, n_active):
    weights, indices = torch.topk(torch.softmax(logits, dim=0), n_active)
    return indices, weights / weights.sum(-1, keepdim=True)


@wrong(route, "The smallest logits are chosen.")
def _(logits, n_active):
    indices = logits.argsort(-1)[..., :n_active]
    return indices, logits.gather(-1, indices).softmax(-1)


@wrong(route, "The largest come last.")
def _(logits, n_active):
    indices = logits.argsort(-1)[..., -n_active:]
    return indices, logits.gather(-1, indices).softmax(-1)


@wrong(route, "The logits themselves are divided by their sum: there is no softmax.")
def _(logits, n_active):
    weights, indices = logits.topk(n_active, dim=-1)
    return indices, weights / weights.sum(dim=-1, keepdim=True)


@wrong(route, "A sigmoid takes the place of the softmax.")
def _(logits, n_active):
    weights, indices = logits.sigmoid().topk(n_active, dim=-1)
    return indices, weights / weights.sum(dim=-1, keepdim=True)


@wrong(route, "The probabilities of the chosen go through a second softmax.")
def _(logits, n_active):
    weights, indices = logits.softmax(-1).topk(n_active, dim=-1)
    return indices, weights.softmax(dim=-1)


@wrong(route, "All experts stay: weights are as wide as the experts, zero for those that are not chosen.")
def _(logits, n_active):
    indices = logits.topk(n_active, dim=-1).indices
    mask = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, indices, True)
    return indices, logits.masked_fill(~mask, float("-inf")).softmax(-1)


@wrong(route, "The sum of the weights is that of all tokens of a sentence.")
def _(logits, n_active):
    weights, indices = logits.softmax(-1).topk(n_active, dim=-1)
    return indices, weights / weights.sum(dim=(1, 2), keepdim=True)


@wrong(route, "Every expert that is chosen gets the same weight.")
def _(logits, n_active):
    indices = logits.topk(n_active, dim=-1).indices
    return indices, torch.full_like(logits[..., :n_active], 1 / n_active)


@wrong(route, "No maximum is subtracted: large logits overflow.")
def _(logits, n_active):
    e = torch.exp(logits)
    p = e / e.sum(-1, keepdim=True)
    weights, indices = p.topk(n_active, dim=-1)
    return indices, weights / weights.sum(-1, keepdim=True)


@wrong(route, "n_active is never used: two experts are chosen.")
def _(logits, n_active):
    weights, indices = logits.topk(2, dim=-1)
    return indices, weights.softmax(-1)


@wrong(route, "The indices are sorted, the weights keep their old order.")
def _(logits, n_active):
    weights, indices = logits.topk(n_active, dim=-1)
    return indices.sort(dim=-1).values, weights.softmax(-1)


@wrong(route, "All tokens of a sentence go where its first token goes.")
def _(logits, n_active):
    weights, indices = logits[:, :1].topk(n_active, dim=-1)
    size = (-1, logits.shape[1], -1)
    return indices.expand(size), weights.softmax(-1).expand(size)


@wrong(route, "Batch and seq are merged in the result.")
def _(logits, n_active):
    weights, indices = logits.flatten(0, 1).topk(n_active, dim=-1)
    return indices, weights.softmax(-1)


@wrong(route, "The weights are divided by their length, not by their sum.")
def _(logits, n_active):
    weights, indices = logits.softmax(-1).topk(n_active, dim=-1)
    return indices, F.normalize(weights, dim=-1)


@right(mixture_of_experts)
def _(x, indices, weights, experts, shared):
    out = shared(x.flatten(0, 1)).view_as(x).clone()
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            for slot in range(indices.shape[2]):
                expert = experts[indices[b, t, slot].item()]
                out[b, t] = out[b, t] + weights[b, t, slot] * expert(x[b, t][None])[0]
    return out


@right(mixture_of_experts)
def _(x, indices, weights, experts, shared):
    tokens = x.flatten(0, 1)
    every = torch.stack([expert(tokens) for expert in experts], dim=1)  # (tokens, n_experts, d_model)
    dense = torch.zeros(len(tokens), len(experts), dtype=weights.dtype, device=x.device)
    dense = dense.scatter(1, indices.flatten(0, 1), weights.flatten(0, 1))
    return (torch.einsum("te,ted->td", dense, every) + shared(tokens)).view_as(x)


@right(mixture_of_experts)
def _(x, indices, weights, experts, shared):
    tokens, n_active = x.reshape(-1, x.shape[-1]), indices.shape[-1]
    order = indices.flatten().argsort()
    rows = order // n_active
    counts = indices.flatten().bincount(minlength=len(experts)).tolist()
    pieces = [expert(part) for expert, part in zip(experts, tokens[rows].split(counts)) if len(part)]
    out = shared(tokens)
    return out.index_add(0, rows, torch.cat(pieces) * weights.flatten()[order, None]).reshape(x.shape)


@wrong(mixture_of_experts, "The shared expert is forgotten.")
def _(x, indices, weights, experts, shared):
    out = torch.zeros_like(x)
    for i, expert in enumerate(experts):
        weight = (weights * (indices == i)).sum(-1, keepdim=True)
        out = out + weight * expert(x.flatten(0, 1)).view_as(x)
    return out


@wrong(mixture_of_experts, "The weights are divided by their sum once more.")
def _(x, indices, weights, experts, shared):
    weights = weights / weights.sum(-1, keepdim=True)
    out = shared(x.flatten(0, 1)).view_as(x)
    for i, expert in enumerate(experts):
        weight = (weights * (indices == i)).sum(-1, keepdim=True)
        out = out + weight * expert(x.flatten(0, 1)).view_as(x)
    return out


@wrong(mixture_of_experts, "An expert that writes later replaces what an earlier one wrote.")
def _(x, indices, weights, experts, shared):
    tokens, where, how = x.flatten(0, 1), indices.flatten(0, 1), weights.flatten(0, 1)
    out = torch.zeros_like(tokens)
    for i, expert in enumerate(experts):
        row, slot = (where == i).nonzero(as_tuple=True)
        out[row] = how[row, slot, None] * expert(tokens[row])
    return (out + shared(tokens)).view_as(x)


@wrong(mixture_of_experts, "The tokens come back in the order of the experts.")
def _(x, indices, weights, experts, shared):
    tokens, n_active = x.flatten(0, 1), indices.shape[-1]
    order = indices.flatten().argsort(stable=True)
    counts = indices.flatten().bincount(minlength=len(experts)).tolist()
    rows = order // n_active
    pieces = [expert(part) for expert, part in zip(experts, tokens[rows].split(counts))]
    mixed = (torch.cat(pieces) * weights.flatten()[order, None]).view(len(tokens), n_active, -1).sum(1)
    return (mixed + shared(tokens)).view_as(x)


@wrong(mixture_of_experts, "Every chosen expert has the weight 1.")
def _(x, indices, weights, experts, shared):
    tokens, where = x.flatten(0, 1), indices.flatten(0, 1)
    out = shared(tokens).clone()
    for i, expert in enumerate(experts):
        rows = (where == i).any(-1)
        out[rows] += expert(tokens[rows])
    return out.view_as(x)


@wrong(mixture_of_experts, "The weight is that of the first slot, whichever slot the expert is in.")
def _(x, indices, weights, experts, shared):
    tokens, where, how = x.flatten(0, 1), indices.flatten(0, 1), weights.flatten(0, 1)
    out = shared(tokens).clone()
    for i, expert in enumerate(experts):
        rows = (where == i).any(-1)
        out[rows] += how[rows, :1] * expert(tokens[rows])
    return out.view_as(x)


@wrong(mixture_of_experts, "The weight multiplies what goes into the expert.")
def _(x, indices, weights, experts, shared):
    tokens, where, how = x.flatten(0, 1), indices.flatten(0, 1), weights.flatten(0, 1)
    out = shared(tokens).clone()
    for i, expert in enumerate(experts):
        row, slot = (where == i).nonzero(as_tuple=True)
        out[row] += expert(how[row, slot, None] * tokens[row])
    return out.view_as(x)


@wrong(mixture_of_experts, "Only the first expert of each token is used.")
def _(x, indices, weights, experts, shared):
    tokens, where, how = x.flatten(0, 1), indices.flatten(0, 1)[:, 0], weights.flatten(0, 1)[:, 0]
    out = shared(tokens).clone()
    for i, expert in enumerate(experts):
        out[where == i] += how[where == i, None] * expert(tokens[where == i])
    return out.view_as(x)


@wrong(mixture_of_experts, "The sum of the experts is divided by their number.")
def _(x, indices, weights, experts, shared):
    out = torch.zeros_like(x)
    for i, expert in enumerate(experts):
        weight = (weights * (indices == i)).sum(-1, keepdim=True)
        out = out + weight * expert(x.flatten(0, 1)).view_as(x)
    return out / indices.shape[-1] + shared(x.flatten(0, 1)).view_as(x)


@wrong(mixture_of_experts, "The shared expert reads what the others have made.")
def _(x, indices, weights, experts, shared):
    out = torch.zeros_like(x)
    for i, expert in enumerate(experts):
        weight = (weights * (indices == i)).sum(-1, keepdim=True)
        out = out + weight * expert(x.flatten(0, 1)).view_as(x)
    return out + shared(out.flatten(0, 1)).view_as(x)


@wrong(mixture_of_experts, "x is added, as a residual connection adds it.")
def _(x, indices, weights, experts, shared):
    out = x + shared(x.flatten(0, 1)).view_as(x)
    for i, expert in enumerate(experts):
        weight = (weights * (indices == i)).sum(-1, keepdim=True)
        out = out + weight * expert(x.flatten(0, 1)).view_as(x)
    return out


@wrong(mixture_of_experts, "The shared expert is added once for each expert of a token.")
def _(x, indices, weights, experts, shared):
    tokens = x.flatten(0, 1)
    out = torch.zeros_like(tokens)
    for slot in range(indices.shape[-1]):
        for i, expert in enumerate(experts):
            rows = indices[..., slot].flatten() == i
            out[rows] += weights[..., slot].flatten()[rows, None] * expert(tokens[rows]) + shared(tokens[rows])
    return out.view_as(x)


@wrong(mixture_of_experts, "The experts of the first token are used for all tokens.")
def _(x, indices, weights, experts, shared):
    tokens = x.flatten(0, 1)
    out = shared(tokens)
    for slot, i in enumerate(indices[0, 0].tolist()):
        out = out + weights[..., slot].flatten()[:, None] * experts[i](tokens)
    return out.view_as(x)


@wrong(mixture_of_experts, "All experts are used, each with the same weight.")
def _(x, indices, weights, experts, shared):
    tokens = x.flatten(0, 1)
    return (sum(expert(tokens) for expert in experts) / len(experts) + shared(tokens)).view_as(x)


@wrong(mixture_of_experts, "The weights go through a softmax.")
def _(x, indices, weights, experts, shared):
    tokens, where, how = x.flatten(0, 1), indices.flatten(0, 1), weights.softmax(-1).flatten(0, 1)
    out = shared(tokens).clone()
    for i, expert in enumerate(experts):
        row, slot = (where == i).nonzero(as_tuple=True)
        out.index_add_(0, row, how[row, slot, None] * expert(tokens[row]))
    return out.view_as(x)


@wrong(mixture_of_experts, "The shared expert shares the weights: it gets what they lack to 1.")
def _(x, indices, weights, experts, shared):
    tokens, where, how = x.flatten(0, 1), indices.flatten(0, 1), weights.flatten(0, 1)
    out = shared(tokens) * (1 - how.sum(-1, keepdim=True))
    for i, expert in enumerate(experts):
        row, slot = (where == i).nonzero(as_tuple=True)
        out = out.index_add(0, row, how[row, slot, None] * expert(tokens[row]))
    return out.view_as(x)


@wrong(mixture_of_experts, "An expert takes no more tokens than its share; the others are dropped.")
def _(x, indices, weights, experts, shared):
    tokens, where, how = x.flatten(0, 1), indices.flatten(0, 1), weights.flatten(0, 1)
    capacity = -(-where.numel() // len(experts))
    out = shared(tokens).clone()
    for i, expert in enumerate(experts):
        row, slot = (t[:capacity] for t in (where == i).nonzero(as_tuple=True))
        out[row] += how[row, slot, None] * expert(tokens[row])
    return out.view_as(x)


@right(latent_cache_bytes)
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    per_token = d_latent + d_rotary
    return n_layers * batch * seq * per_token * bytes_per_value


@right(latent_cache_bytes)
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    latents = n_layers * seq * batch * d_latent * bytes_per_value
    keys = n_layers * seq * batch * d_rotary * bytes_per_value
    return latents + keys


@wrong(latent_cache_bytes, "The rotary key is forgotten.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * d_latent * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "The latent vector is counted twice, for keys and for values.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (2 * d_latent + d_rotary) * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "Everything is counted twice, for keys and for values.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return 2 * n_layers * (d_latent + d_rotary) * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "Each head is counted with a latent vector and a rotary key of its own.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * n_heads * (d_latent + d_rotary) * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "Each head is counted with a rotary key of its own.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (d_latent + n_heads * d_rotary) * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "The features are divided among the heads.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (d_latent + d_rotary) // n_heads * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "The layers are forgotten.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return (d_latent + d_rotary) * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "The sentences of the batch are forgotten.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (d_latent + d_rotary) * seq * bytes_per_value


@wrong(latent_cache_bytes, "Bits are counted.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return 8 * n_layers * (d_latent + d_rotary) * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "Numbers are counted, and not bytes.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (d_latent + d_rotary) * seq * batch


@wrong(latent_cache_bytes, "The rotary key is counted for the batch, not for each token.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (d_latent * seq + d_rotary) * batch * bytes_per_value


@wrong(latent_cache_bytes, "Precedence: the rotary key is multiplied with all that follows, the latent is not.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * d_latent + d_rotary * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "The two sizes are multiplied.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * d_latent * d_rotary * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "A query of every head is cached as well.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (d_latent + d_rotary + n_heads * d_rotary) * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "The result is a float.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (d_latent + d_rotary) * seq * batch * bytes_per_value / 1


@wrong(latent_cache_bytes, "The result is in megabytes.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (d_latent + d_rotary) * seq * batch * bytes_per_value / 1e6


# A second round, with rarer slips and with two at once.


@wrong(route, "The smallest logits are chosen.", "The weights are not divided by their sum.")
def _(logits, n_active):
    weights, indices = logits.softmax(-1).topk(n_active, largest=False)
    return indices, weights


@wrong(route, "The weights come first, the indices second.", "The softmax runs over the tokens.")
def _(logits, n_active):
    weights, indices = logits.softmax(dim=1).topk(n_active)
    return weights / weights.sum(-1, keepdim=True), indices


@wrong(route, "The largest weight has the share of the smallest: the weights run the other way round.")
def _(logits, n_active):
    indices = logits.argsort(-1, descending=True)[..., :n_active]
    weights = logits.sort(-1).values[..., -n_active:].softmax(-1)
    return indices, weights


@wrong(route, "No gradient flows back: the weights are detached.")
def _(logits, n_active):
    weights, indices = logits.detach().softmax(-1).topk(n_active)
    return indices, weights / weights.sum(-1, keepdim=True)


@wrong(route, "The weights sum to 1 over all experts that are not chosen as well: n_experts is in the divisor.")
def _(logits, n_active):
    weights, indices = logits.softmax(-1).topk(n_active)
    return indices, weights / logits.shape[-1]


@wrong(route, "Indices come as int32.")
def _(logits, n_active):
    weights, indices = logits.softmax(-1).topk(n_active)
    return indices.int(), weights / weights.sum(-1, keepdim=True)


@wrong(route, "A softmax with temperature 2.")
def _(logits, n_active):
    weights, indices = (logits / 2).topk(n_active)
    return indices, weights.softmax(-1)


@wrong(route, "Softmax of the chosen over the tokens.")
def _(logits, n_active):
    weights, indices = logits.topk(n_active)
    return indices, weights.softmax(1)


@wrong(mixture_of_experts, "The shared expert is forgotten.", "The weights are divided by their sum once more.")
def _(x, indices, weights, experts, shared):
    tokens, where = x.flatten(0, 1), indices.flatten(0, 1)
    how = (weights / weights.sum(-1, keepdim=True)).flatten(0, 1)
    out = torch.zeros_like(tokens)
    for i, expert in enumerate(experts):
        row, slot = (where == i).nonzero(as_tuple=True)
        out[row] += how[row, slot, None] * expert(tokens[row])
    return out.view_as(x)


@wrong(mixture_of_experts, "The shared expert is a residual of its own: x comes in as well.", "No weight is used.")
def _(x, indices, weights, experts, shared):
    out = x + shared(x.flatten(0, 1)).view_as(x)
    for i, expert in enumerate(experts):
        hit = (indices == i).any(-1, keepdim=True)
        out = out + hit * expert(x.flatten(0, 1)).view_as(x)
    return out


@wrong(mixture_of_experts, "x itself is changed.")
def _(x, indices, weights, experts, shared):
    before = x.clone()
    tokens = before.flatten(0, 1)
    x[...] = shared(tokens).view_as(x)
    for i, expert in enumerate(experts):
        share = (weights * (indices == i)).sum(-1, keepdim=True)
        x += share * expert(tokens).view_as(x)
    return x


@wrong(mixture_of_experts, "Batch and seq are exchanged when tokens are merged, in x alone.")
def _(x, indices, weights, experts, shared):
    tokens = x.transpose(0, 1).flatten(0, 1)
    where, how = indices.flatten(0, 1), weights.flatten(0, 1)
    out = torch.zeros_like(tokens)
    for i, expert in enumerate(experts):
        row, slot = (where == i).nonzero(as_tuple=True)
        out[row] += how[row, slot, None] * expert(tokens[row])
    return out.view(x.shape[1], x.shape[0], -1).transpose(0, 1) + shared(x.flatten(0, 1)).view_as(x)


@wrong(mixture_of_experts, "The shared expert counts once more, with the first weight.")
def _(x, indices, weights, experts, shared):
    tokens, where, how = x.flatten(0, 1), indices.flatten(0, 1), weights.flatten(0, 1)
    out = shared(tokens) + how[:, :1] * shared(tokens)
    for i, expert in enumerate(experts):
        row, slot = (where == i).nonzero(as_tuple=True)
        out = out.index_add(0, row, how[row, slot, None] * expert(tokens[row]))
    return out.view_as(x)


@wrong(mixture_of_experts, "The second place is never read: the loop ends too early.")
def _(x, indices, weights, experts, shared):
    out = shared(x.flatten(0, 1)).view_as(x).clone()
    for slot in range(indices.shape[-1] - 1):
        for i, expert in enumerate(experts):
            hit = indices[..., slot] == i
            out[hit] += weights[..., slot][hit][:, None] * expert(x[hit])
    return out


@wrong(mixture_of_experts, "A token gets the mean of the weights for each of its experts.")
def _(x, indices, weights, experts, shared):
    out = shared(x.flatten(0, 1)).view_as(x)
    for i, expert in enumerate(experts):
        hit = (indices == i).any(-1, keepdim=True)
        out = out + weights.mean(-1, keepdim=True) * hit * expert(x.flatten(0, 1)).view_as(x)
    return out


@wrong(mixture_of_experts, "`+=` with rows that occur several times: one expert is left.")
def _(x, indices, weights, experts, shared):
    tokens = x.flatten(0, 1)
    every = torch.stack([expert(tokens) for expert in experts])
    row = torch.arange(len(tokens), device=x.device).repeat_interleave(indices.shape[-1])
    out = shared(tokens).clone()
    out[row] += weights.flatten()[:, None] * every[indices.flatten(), row]
    return out.view_as(x)


@wrong(latent_cache_bytes, "The rotary key is forgotten.", "The latent vector is counted twice.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return 2 * n_layers * d_latent * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "Each head has a rotary key of its own.", "The sentences are forgotten.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (d_latent + n_heads * d_rotary) * seq * bytes_per_value


@wrong(latent_cache_bytes, "Keys and values of heads are counted, and the rotary key once.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (2 * n_heads * d_latent + d_rotary) * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "The first sum is closed too late: seq is added.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (d_latent + d_rotary + seq) * batch * bytes_per_value


@wrong(latent_cache_bytes, "Two bytes are taken for each number, whatever is given.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (d_latent + d_rotary) * seq * batch * 2


@wrong(latent_cache_bytes, "Each head has a latent of d_latent // n_heads, keys and values apart.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (2 * d_latent // n_heads * n_heads + d_rotary) * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "Half of the rotary key is counted, one number for a pair.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (d_latent + d_rotary // 2) * seq * batch * bytes_per_value


@wrong(latent_cache_bytes, "The heads are added to the tokens.")
def _(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    return n_layers * (d_latent + d_rotary) * (seq * batch + n_heads) * bytes_per_value
