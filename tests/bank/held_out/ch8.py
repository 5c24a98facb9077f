"""Held out: answers to assignment 8."""

import torch
import torch.nn.functional as F

import transformer_lab as tl
from transformer_lab.checks import (
    causal_linear_attention,
    elu_feature_map,
    linear_attention,
    mend_padding,
    recurrent_step,
)

from .. import right, wrong

phi = tl.elu_feature_map


@wrong(elu_feature_map, "torch.where computes exp of large numbers as well, and the gradient becomes NaN.")
def _(x):
    return torch.where(x > 0, x + 1, torch.exp(x))


@wrong(elu_feature_map, "Above zero it is x, not x + 1.")
def _(x):
    return torch.where(x > 0, x, torch.exp(x.clamp(max=0)))


@wrong(elu_feature_map, "exp is applied everywhere, above zero too.")
def _(x):
    return torch.exp(x)


@wrong(elu_feature_map, "if x > 0 asks a whole tensor, which is neither true nor false.")
def _(x):
    if x > 0:
        return x + 1
    return torch.exp(x)


@wrong(elu_feature_map, "F.elu_ works in place and changes x.")
def _(x):
    return F.elu(x, inplace=True) + 1


@right(elu_feature_map)
def _(x):
    above = x > 0
    low = torch.where(above, torch.zeros_like(x), x)
    return torch.where(above, x + 1, low.exp())


@wrong(linear_attention, "The feature map is missing: queries and keys are multiplied as they are.")
def _(query, key, value):
    S = key.mT @ value
    z = key.sum(dim=-2)
    return (query @ S) / (query @ z.unsqueeze(-1))


@wrong(
    linear_attention,
    "A small number is added to the normalizer, so the weights do not sum to one where features are tiny.",
)
def _(query, key, value):
    q, k = phi(query), phi(key)
    z = (q @ k.sum(dim=-2, keepdim=True).mT) + 1e-6
    return (q @ (k.mT @ value)) / z


@wrong(linear_attention, "A table of all queries and keys is made, which grows with q_len * k_len.")
def _(query, key, value):
    q, k = phi(query), phi(key)
    weights = q @ k.mT
    return (weights / weights.sum(-1, keepdim=True)) @ value


@wrong(linear_attention, "Softmax makes the features, not elu + 1: another kind of linear attention.")
def _(query, key, value):
    q, k = query.softmax(dim=-1), key.softmax(dim=-2)
    return q @ (k.mT @ value)


@right(linear_attention)
def _(query, key, value):
    q, k = phi(query), phi(key)
    with_ones = torch.cat([value, torch.ones_like(value[..., :1])], dim=-1)
    both = q @ (k.transpose(-2, -1) @ with_ones)
    return both[..., :-1] / both[..., -1:]


@wrong(causal_linear_attention, "The numerator stops at the query's place, the normalizer sums all keys.")
def _(query, key, value):
    q, k = phi(query), phi(key)
    S = torch.cumsum(k.unsqueeze(-1) * value.unsqueeze(-2), dim=2)
    z = k.sum(dim=2, keepdim=True)
    return torch.einsum("bhsd,bhsdv->bhsv", q, S) / (q * z).sum(-1, keepdim=True)


@wrong(causal_linear_attention, "cumsum runs along heads, dim=1.")
def _(query, key, value):
    q, k = phi(query), phi(key)
    S = torch.cumsum(k.unsqueeze(-1) * value.unsqueeze(-2), dim=1)
    z = k.cumsum(dim=1)
    return torch.einsum("bhsd,bhsdv->bhsv", q, S) / (q * z).sum(-1, keepdim=True)


@wrong(causal_linear_attention, "The mask is triu: each query sees what comes after it.")
def _(query, key, value):
    weights = (phi(query) @ phi(key).mT).triu()
    return weights / weights.sum(-1, keepdim=True) @ value


@wrong(causal_linear_attention, "The division is missing.")
def _(query, key, value):
    weights = (phi(query) @ phi(key).mT).tril()
    return weights @ value


@right(causal_linear_attention)
def _(query, key, value):
    outputs = []
    for i in range(1, key.shape[-2] + 1):
        q, k = phi(query[:, :, i - 1 : i]), phi(key[:, :, :i])
        w = q @ k.mT
        outputs.append(w @ value[:, :, :i] / w.sum(-1, keepdim=True))
    return torch.cat(outputs, dim=-2)


@wrong(recurrent_step, "S += changes the state that came in.")
def _(state, query, key, value):
    S, z = state
    q, k = phi(query), phi(key)
    S += k.unsqueeze(-1) * value.unsqueeze(-2)
    z += k
    output = torch.einsum("bhd,bhdv->bhv", q, S) / (q * z).sum(-1, keepdim=True)
    return (S, z), output


@wrong(recurrent_step, "The old state is returned: the new one only serves the output.")
def _(state, query, key, value):
    S, z = state
    q, k = phi(query), phi(key)
    new_S, new_z = S + k.unsqueeze(-1) * value.unsqueeze(-2), z + k
    output = torch.einsum("bhd,bhdv->bhv", q, new_S) / (q * new_z).sum(-1, keepdim=True)
    return (S, z), output


@wrong(recurrent_step, "Three things are returned side by side, S, z, output, not a pair and the output.")
def _(state, query, key, value):
    S, z = state
    q, k = phi(query), phi(key)
    S, z = S + k.unsqueeze(-1) * value.unsqueeze(-2), z + k
    return S, z, torch.einsum("bhd,bhdv->bhv", q, S) / (q * z).sum(-1, keepdim=True)


@wrong(recurrent_step, "The outer product is the wrong way round: value by key, which does not fit S.")
def _(state, query, key, value):
    S, z = state
    q, k = phi(query), phi(key)
    S, z = S + value.unsqueeze(-1) * k.unsqueeze(-2), z + k
    return (S, z), torch.einsum("bhd,bhdv->bhv", q, S) / (q * z).sum(-1, keepdim=True)


@right(recurrent_step)
def _(state, query, key, value):
    S, z = (part.clone() for part in state)
    q, k = F.elu(query) + 1, F.elu(key) + 1
    S.add_(k[..., :, None] * value[..., None, :])
    z.add_(k)
    weight = q / (q * z).sum(dim=-1, keepdim=True)
    return (S, z), (weight.unsqueeze(-1) * S).sum(dim=-2)


@wrong(mend_padding, "Only the values of the padding are made zero: its keys still count in z.")
def _(query, key, value, key_mask):
    q, k = phi(query), phi(key)
    value = value.masked_fill(~key_mask.mT, 0.0)
    return (q @ (k.mT @ value)) / (q @ k.sum(dim=-2).unsqueeze(-1))


@wrong(mend_padding, "key_mask is not transposed, so it stands under the features.")
def _(query, key, value, key_mask):
    q, k = phi(query), phi(key)
    k = k.masked_fill(~key_mask, 0.0)
    return (q @ (k.mT @ value)) / (q @ k.sum(dim=-2).unsqueeze(-1))


@wrong(mend_padding, "The result of masked_fill is thrown away.")
def _(query, key, value, key_mask):
    q, k = phi(query), phi(key)
    k.masked_fill(~key_mask.mT, 0.0)
    return (q @ (k.mT @ value)) / (q @ k.sum(dim=-2).unsqueeze(-1))


@wrong(
    mend_padding,
    "Padding is cut off at the longest sentence, as if it always stood at the end; the shorter ones keep theirs.",
)
def _(query, key, value, key_mask):
    n = int(key_mask.sum(-1).max())
    q, k, v = phi(query), phi(key[:, :, :n]), value[:, :, :n]
    return (q @ (k.mT @ v)) / (q @ k.sum(dim=-2).unsqueeze(-1))


@right(mend_padding)
def _(query, key, value, key_mask):
    real = key_mask.transpose(-1, -2)
    k = torch.where(real, F.elu(torch.where(real, key, 0.0)) + 1, 0.0)
    v = torch.where(real, value, 0.0)
    q = F.elu(query) + 1
    S, z = torch.einsum("bhkd,bhkv->bhdv", k, v), k.sum(2)
    return torch.einsum("bhqd,bhdv->bhqv", q, S) / torch.einsum("bhqd,bhd->bhq", q, z).unsqueeze(-1)
