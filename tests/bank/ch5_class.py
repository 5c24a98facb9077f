"""Answers to exercise 5.6, by an author who had not seen its check."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from transformer_lab.checks import masked_multi_head

from . import right, wrong

# Right answers


@right(masked_multi_head)
class _(nn.Module):
    # einsum all the way, no transpose anywhere
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1))
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1))
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        if mask is not None:
            scores = torch.where(mask, scores, float("-inf"))
        weights = scores.softmax(-1)
        if mask is not None:
            weights = torch.where(mask, weights, 0.0)
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))


@right(masked_multi_head)
class _(nn.Module):
    # PyTorch's own attention
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(d_model, d_model))

    def forward(self, query, key, value, mask=None):
        b, q_len, d_model = query.shape
        q, k, v = (
            layer(x).view(b, -1, self.h, d_model // self.h).transpose(1, 2)
            for layer, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        if mask is not None:
            mask = mask.expand(b, self.h, q_len, key.shape[1])
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        if mask is not None:
            out = out.masked_fill(~mask.any(-1, keepdim=True), 0.0)
        return self.out_proj(out.transpose(1, 2).reshape(b, q_len, d_model))


@right(masked_multi_head)
class _(nn.Module):
    # loops over sentences, heads and queries; hidden keys are really taken out
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        batch, q_len, _ = query.shape
        k_len = key.shape[1]
        q, k, v = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        if mask is None:
            mask = torch.ones(1, 1, dtype=torch.bool, device=query.device)
        mask = torch.broadcast_to(mask, (batch, self.n_heads, q_len, k_len))
        out = torch.zeros_like(q)
        for b in range(batch):
            for h in range(self.n_heads):
                part = slice(h * self.d_head, (h + 1) * self.d_head)
                for i in range(q_len):
                    seen = mask[b, h, i]
                    if not seen.any():
                        continue
                    scores = k[b, seen, part] @ q[b, i, part] / math.sqrt(self.d_head)
                    out[b, i, part] = scores.softmax(0) @ v[b, seen, part]
        return self.out_proj(out)


@wrong(masked_multi_head, "With a query that sees nothing, the gradient is NaN: minus infinity is added to its scores.")
class _(nn.Module):
    # chunk and stack for the split, unbind and cat for the merge
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.scale = (d_model / n_heads) ** 0.5
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split(self, x):
        return torch.stack(x.chunk(self.n_heads, dim=-1), dim=1)

    def forward(self, query, key, value, mask=None):
        q = self.split(self.q_proj(query) / self.scale)
        k = self.split(self.k_proj(key))
        v = self.split(self.v_proj(value))
        scores = q @ k.mT
        if mask is None:
            weights = F.softmax(scores, dim=-1)
        else:
            bias = torch.zeros_like(scores).masked_fill(~mask, float("-inf"))
            weights = F.softmax(scores + bias, dim=-1).nan_to_num(0.0)
        return self.out_proj(torch.cat((weights @ v).unbind(1), dim=-1))


@right(masked_multi_head)
class _(nn.Module):
    # one big matrix product for the three projections, then cut to pieces
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.d_model, self.n_heads = d_model, n_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        layers = (self.q_proj, self.k_proj, self.v_proj)
        weight = torch.cat([layer.weight for layer in layers])
        bias = torch.cat([layer.bias for layer in layers])
        n_q, n_k, d = query.shape[1], key.shape[1], self.d_model
        packed = F.linear(torch.cat([query, key, value], dim=1), weight, bias)
        q = packed[:, :n_q, :d]
        k = packed[:, n_q : n_q + n_k, d : 2 * d]
        v = packed[:, n_q + n_k :, 2 * d :]
        q, k, v = (x.unflatten(2, (self.n_heads, -1)).permute(0, 2, 1, 3) for x in (q, k, v))
        scores = q.matmul(k.transpose(-2, -1)).div(math.sqrt(d // self.n_heads))
        if mask is None:
            mask = scores.new_ones((), dtype=torch.bool)
        mask = mask.expand_as(scores)
        scores = scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)
        weights = scores.softmax(-1) * mask.any(-1, keepdim=True)
        return self.out_proj(weights.matmul(v).permute(0, 2, 1, 3).flatten(-2))


@right(masked_multi_head)
class _(nn.Module):
    # softmax by hand, heads folded into the batch, out_proj as a sum over heads
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def fold(self, x):
        b, n, d = x.shape
        x = x.reshape(b, n, self.n_heads, d // self.n_heads)
        return x.swapaxes(1, 2).reshape(b * self.n_heads, n, d // self.n_heads)

    def forward(self, query, key, value, mask=None):
        b, q_len, _ = query.shape
        q, k, v = self.fold(self.q_proj(query)), self.fold(self.k_proj(key)), self.fold(self.v_proj(value))
        scores = torch.bmm(q, k.mT) / q.shape[-1] ** 0.5
        if mask is None:
            allowed = torch.ones_like(scores)
        else:
            full = mask.expand(b, self.n_heads, q_len, key.shape[1])
            allowed = full.reshape(scores.shape).to(scores.dtype)
            scores = scores.masked_fill(allowed == 0, torch.finfo(scores.dtype).min)
        top = (scores - scores.amax(-1, keepdim=True)).exp() * allowed
        heads = torch.bmm(top, v) / top.sum(-1, keepdim=True).clamp(min=1e-9)
        heads = heads.reshape(b, self.n_heads, q_len, -1)
        columns = self.out_proj.weight.chunk(self.n_heads, dim=1)
        out = self.out_proj.bias
        for h, part in enumerate(columns):
            out = out + heads[:, h] @ part.T
        return out


# Wrong answers with one slip


@wrong(masked_multi_head, "The scores are divided by the root of d_model instead of that of d_head.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.d_model = d_model
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_model)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


@wrong(masked_multi_head, "The softmax runs over the queries instead of the keys.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        query = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        key = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        value = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        if mask is None:
            mask = torch.ones_like(scores, dtype=torch.bool)
        scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=2)
        weights = torch.nan_to_num(weights)
        out = weights @ value
        return self.out_proj(out.transpose(1, 2).flatten(2))


@wrong(masked_multi_head, "The mask is read the wrong way round: the keys with True are hidden.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split(self, x):
        b, n, _ = x.shape
        return x.view(b, n, self.n_heads, self.d_head).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q = self.split(self.q_proj(query))
        k = self.split(self.k_proj(key))
        v = self.split(self.v_proj(value))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(mask, -torch.inf)
        weights = scores.softmax(-1).nan_to_num(0.0)
        out = weights @ v
        b, h, n, d = out.shape
        return self.out_proj(out.transpose(1, 2).reshape(b, n, h * d))


@wrong(
    masked_multi_head, "The mask comes after the softmax, so that the weights of the visible keys do not sum to one."
)
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        if mask is not None:
            weights = weights * mask
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


@wrong(masked_multi_head, "Without a mask, with None, the layer stops with an error.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(-1).masked_fill(~mask.any(-1, keepdim=True), 0.0)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(-2))


@wrong(masked_multi_head, "A query that sees nothing gets NaN.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        assert d_model % n_heads == 0
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        attn = F.softmax(scores, dim=-1)
        x = torch.matmul(attn, v).transpose(1, 2).contiguous().flatten(2)
        return self.out_proj(x)


@wrong(masked_multi_head, "A query that sees nothing gets the average of all values instead of zeros.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        out = scores.softmax(dim=-1) @ v
        return self.out_proj(out.transpose(1, 2).flatten(2))


@wrong(
    masked_multi_head,
    "The split is a view straight to (batch, heads, seq, d_head), without a transpose, which mixes tokens and heads.",
)
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        batch, q_len, d_model = query.shape
        k_len = key.shape[1]
        q = self.q_proj(query).view(batch, self.n_heads, q_len, self.d_head)
        k = self.k_proj(key).view(batch, self.n_heads, k_len, self.d_head)
        v = self.v_proj(value).view(batch, self.n_heads, k_len, self.d_head)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
        out = (weights @ v).transpose(1, 2).reshape(batch, q_len, d_model)
        return self.out_proj(out)


@wrong(masked_multi_head, "The merge lacks the transpose before the reshape, so that it mixes tokens and heads.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        shape = query.shape
        query = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        key = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        value = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if mask is None:
            mask = torch.tensor([[True]], device=scores.device)
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        weights = weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)
        return self.out_proj((weights @ value).reshape(shape))


@wrong(masked_multi_head, "Keys and values are made from the query, so that there is no cross-attention.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1).nan_to_num()
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


@wrong(masked_multi_head, "A mask of three axes is read as (batch, q_len, k_len) instead of (heads, q_len, k_len).")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            if mask.dim() == 2:
                mask = mask[None, None]
            elif mask.dim() == 3:
                mask = mask[:, None]
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


@wrong(masked_multi_head, "Split and merge take the features of a head n_heads apart instead of next to each other.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.d_head = d_model // n_heads
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.d_head, self.n_heads)).permute(0, 3, 1, 2)

    def merge(self, x):
        return x.permute(0, 2, 3, 1).flatten(2)

    def forward(self, query, key, value, mask=None):
        q = self.split(self.q_proj(query))
        k = self.split(self.k_proj(key))
        v = self.split(self.v_proj(value))
        scores = q @ k.transpose(-2, -1) / self.d_head**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(-1)
        if mask is not None:
            weights = weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)
        return self.out_proj(self.merge(weights @ v))


@wrong(
    masked_multi_head,
    "Hidden scores become 1e-9, almost zero, instead of minus infinity, so that hidden keys keep some weight.",
)
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, 1e-9)
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


@wrong(
    masked_multi_head,
    "The zeros of a query that sees nothing are put in after out_proj instead of before it, so that its bias is lost.",
)
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        out = (scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2)
        return self.out_proj(out).nan_to_num(0.0)


@wrong(masked_multi_head, "The mask is added to the scores as ones and zeros, which hides nothing.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores + mask.to(scores.dtype)
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights * mask.any(dim=-1, keepdim=True)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


@wrong(
    masked_multi_head, "Zeros come only where the whole mask is False, and a single query that sees nothing gets NaN."
)
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        if mask is not None and not mask.any():
            weights = torch.zeros_like(weights)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


@wrong(masked_multi_head, "It returns a tuple of the result and the weights instead of the result alone.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1).nan_to_num(0.0)
        out = (weights @ v).transpose(1, 2).flatten(2)
        return self.out_proj(out), weights


@wrong(masked_multi_head, "One layer serves as q_proj, k_proj and v_proj at once, instead of three layers.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = self.k_proj = self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1).nan_to_num(0.0)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


@wrong(
    masked_multi_head,
    "The split lacks the transpose, so that the heads of a token attend to each other instead of token to token.",
)
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b = query.shape[0]
        q = self.q_proj(query).view(b, -1, self.n_heads, self.d_head)
        k = self.k_proj(key).view(b, -1, self.n_heads, self.d_head)
        v = self.v_proj(value).view(b, -1, self.n_heads, self.d_head)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
        return self.out_proj((weights @ v).reshape(b, -1, self.n_heads * self.d_head))


@wrong(masked_multi_head, "The scores are scaled twice, once by hand and once by scaled_dot_product_attention.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.scale = (d_model // n_heads) ** -0.5
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) * self.scale
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        if mask is not None:
            mask = mask.expand(len(query), self.n_heads, query.shape[1], key.shape[1])
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        if mask is not None:
            out = out.masked_fill(~mask.any(-1, keepdim=True), 0.0)
        return self.out_proj(out.transpose(1, 2).flatten(2))


# Wrong answers with two slips


@wrong(masked_multi_head, "The scores are not scaled.", "out_proj is never applied.")
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
        return (weights @ v).transpose(1, 2).flatten(2)


@wrong(
    masked_multi_head,
    "The softmax runs over the heads instead of the keys.",
    "Without a mask, with None, the layer stops with an error.",
)
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~mask, float("-inf"))
        weights = F.softmax(scores, dim=1).nan_to_num(0.0)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


@wrong(
    masked_multi_head,
    "The values are made from key instead of value.",
    "The merge lacks the transpose before the reshape, so that it mixes tokens and heads.",
)
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b, q_len, d_model = query.shape
        k_len = key.shape[1]
        q = self.q_proj(query).view(b, q_len, self.n_heads, self.d_head).transpose(1, 2)
        k = self.k_proj(key).view(b, k_len, self.n_heads, self.d_head).transpose(1, 2)
        v = self.v_proj(key).view(b, k_len, self.n_heads, self.d_head).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
        out = (weights @ v).contiguous().view(b, q_len, d_model)
        return self.out_proj(out)


@wrong(
    masked_multi_head,
    "A mask of two axes is read as (batch, k_len) instead of (q_len, k_len).",
    "A query that sees nothing gets the average of all values instead of zeros.",
)
class _(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(value).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            if mask.dim() == 2:
                mask = mask[:, None, None, :]
            scores = scores.masked_fill(~mask, -1e9)
        out = scores.softmax(dim=-1) @ v
        return self.out_proj(out.transpose(1, 2).flatten(2))
