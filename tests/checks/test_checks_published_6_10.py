"""The checks of chapters 6 to 10 and of the project name these mistakes, which are written as in published code."""

import math

import pytest
import torch
from torch.nn import functional as F

import transformer_lab as tl
from transformer_lab.checks.diagnose import diagnose

checks = tl.checks


def features(x):
    return F.elu(x) + 1


# Chapter 6


def layer_norm_of(divide):
    def answer(x, weight, bias, eps):
        distance = x - x.mean(-1, keepdim=True)
        return weight * divide(distance, distance.pow(2).mean(-1, keepdim=True), eps) + bias

    return answer


def layer_norm_token_by_token(divide):
    def answer(x, weight, bias, eps):
        rows = [[divide(t - t.mean(), t.var(correction=0), eps) * weight + bias for t in row] for row in x]
        return torch.stack([torch.stack(row) for row in rows])

    return answer


def layer_norm_by_std_root(x, weight, bias, eps):
    mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
    return (x - mean) / torch.sqrt(std + eps) * weight + bias


def layer_norm_eps_at_the_end(x, weight, bias, eps):
    y = F.layer_norm(x, x.shape[-1:], weight, bias, 0.0)
    return y + eps


def eps_times_weight(x, weight, bias, eps):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean) / variance.sqrt() + eps * weight + bias


ROOT_OF_THE_ROOT = [
    lambda distance, variance, eps: distance / torch.sqrt(torch.sqrt(variance + eps)),
    lambda distance, variance, eps: distance * (variance + eps) ** -0.25,
    lambda distance, variance, eps: distance / ((variance + eps) ** 0.5).sqrt(),
]
SQUARE_FOR_ROOT = [
    lambda distance, variance, eps: distance / (variance + eps) ** 2,
    lambda distance, variance, eps: distance / torch.square(variance + eps),
    lambda distance, variance, eps: distance.div((variance + eps).pow(2)),
]
EPS_ADDED_TO_THE_RESULT = [
    lambda distance, variance, eps: distance / torch.sqrt(variance) + eps,
    lambda distance, variance, eps: torch.add(distance / variance**0.5, eps),
]


def rms_norm_of(divide):
    def answer(x, weight, eps):
        return divide(x, torch.einsum("bsd,bsd->bs", x, x)[..., None] / x.shape[-1], eps) * weight

    return answer


def rms_norm_of_the_documentation(x, weight, eps):
    rms = torch.sqrt(x.pow(2).mean(dim=-1, keepdim=True))
    return x / torch.sqrt(rms + eps) * weight


def rms_norm_by_norm(x, weight, eps):
    rms = torch.linalg.vector_norm(x, dim=-1, keepdim=True) / x.shape[-1] ** 0.5
    return weight * x * torch.rsqrt(rms + eps)


def rms_norm_with_eps_twice(x, weight, eps):
    rms = torch.sqrt(eps + torch.mean(x**2, -1, keepdim=True))
    return weight * (x / torch.sqrt(rms + eps))


def rms_norm_by_normalize(dim, power):
    def answer(x, weight, eps):
        return F.normalize(x, dim=dim) * x.shape[-1] ** power * weight

    return answer


def rms_norm_by_norm_and_scale(x, weight, eps):
    norm = torch.linalg.vector_norm(x, dim=1, keepdim=True) * x.shape[-1] ** -0.5
    return x / norm.clamp(min=1e-8) * weight


def stack_doubled(x, parts, norms, final_norm):
    for part in parts:
        x = part(x)
        x = x + x
    return final_norm(x)


def stack_doubled_by_two(x, parts, norms, final_norm):
    for i in range(len(parts)):
        y = parts[i](x)
        x = 2 * y
    return final_norm(x)


def stack_doubled_in_the_norm(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = norm(x)
        x = part(x)
        x = torch.add(x, x)
    return final_norm(x)


def stack_of_given_norm_doubled(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = part(x)
        x = x + norm(x)
    return final_norm(x)


def first_norm_and_in_place(x, parts, norms, final_norm):
    for part in parts:
        x += part(norms[0](x))
    return final_norm(x)


def first_norm_and_no_final_norm(x, parts, norms, final_norm):
    norm = norms[0]
    for part in parts:
        x = x + part(norm(x))
    return x


def pre_norm_twice(x, sublayer, norm):
    h = sublayer(norm(x))
    return x + sublayer(h)


def pre_norm_twice_in_one_line(x, sublayer, norm):
    return sublayer(sublayer(norm(x))) + x


def pre_norm_twice_with_the_name_lost(x, sublayer, norm):
    x = sublayer(norm(x))
    return x + sublayer(norm(x))


def pre_norm_twice_without_the_second_norm(x, sublayer, norm):
    x = norm(x)
    x = sublayer(x)
    return x + sublayer(x)


def pre_norm_added_again(x, sublayer, norm):
    change = sublayer(norm(x))
    x = x + change
    return x + change


def pre_norm_two_changes(x, sublayer, norm):
    x = x + sublayer(norm(x))
    return x + sublayer(norm(x))


def post_norm_added_again(x, sublayer, norm):
    change = sublayer(x)
    return norm(x + change) + change


def post_norm_added_twice(x, sublayer, norm):
    return norm(torch.stack([x, sublayer(x), sublayer(x)]).sum(0))


# Chapter 7


def cache_of_four_bits(n_layers, d_model, seq, batch, bytes_per_value):
    return 2 * n_layers * d_model * 4 * seq * batch // 8


def flops_with_projections_under_the_mask(seq, d_model):
    return 2 * seq * (seq + 1) * d_model + 8 * seq * d_model**2


def flops_of_scores_with_one_addition_less(seq, d_model):
    return seq * seq * (2 * d_model - 1)


def flops_of_scores_entry_by_entry(seq, d_model):
    return sum(d_model + (d_model - 1) for _ in range(seq) for _ in range(seq))


def block_with_a_gated_layer(d_model, d_ff, bias):
    attention = 4 * d_model * d_model
    feed_forward = 3 * d_model * d_ff + bias * (2 * d_ff + d_model)
    return attention + feed_forward + 2 * d_model * (1 + bias)


def block_of_twelve_squares(d_model, d_ff, bias):
    weights = 12 * d_model**2
    return weights + (4 * d_model + d_ff + d_model if bias else 0)


def cache_of_bits(n_layers, d_model, seq, batch, bytes_per_value):
    bits = seq * batch * n_layers * d_model * 2 * 4
    return bits // 8


# Chapter 8


def elu_with(alpha):
    return lambda x: F.elu(x, alpha=alpha) + 1


def elu_by_where(alpha):
    return lambda x: torch.where(x >= 0, x + 1, alpha * torch.expm1(x.clamp(max=0)) + 1)


def elu_one_by_one(alpha):
    def answer(x):
        numbers = [v + 1 if v > 0 else alpha * (v.exp() - 1) + 1 for v in x.flatten()]
        return torch.stack(numbers).view(x.shape)

    return answer


def linear_with(phi, phi_of_keys=None):
    def answer(query, key, value):
        q, k = phi(query), (phi_of_keys or phi)(key)
        return (q @ (k.mT @ value)) / (q @ k.sum(-2).unsqueeze(-1))

    return answer


def efficient_attention(query, key, value):
    q, k = query.softmax(dim=-1), key.softmax(dim=-2)
    q = q * query.shape[-1] ** -0.5
    context = torch.einsum("bhnd,bhne->bhde", k, value)
    return torch.einsum("bhnd,bhde->bhne", q, context)


def both_over_the_features(query, key, value):
    return F.softmax(query, -1) @ (F.softmax(key, -1).transpose(-2, -1) @ value)


def softmax_over_the_keys_and_divided(query, key, value):
    return linear_with(lambda q: q.softmax(-1), lambda k: k.softmax(-2))(query, key, value)


def quotient_of_the_sums(query, key, value):
    q, k = features(query), features(key)
    context = torch.einsum("bhnd,bhne->bhde", k, value) / k.sum(dim=-2)[..., None]
    return torch.einsum("bhnd,bhde->bhne", q, context)


def heads_lost_in_einsum(query, key, value):
    q, k = features(query), features(key)
    S, z = torch.einsum("bhkd,bhkv->bdv", k, value), torch.einsum("bhkd->bd", k)
    return torch.einsum("bhqd,bdv->bhqv", q, S) / torch.einsum("bhqd,bd->bhq", q, z)[..., None]


def heads_lost_in_S(query, key, value):
    q, k = features(query), features(key)
    S = torch.einsum("bhkd,bhkv->bdv", k, value)
    return torch.einsum("bhqd,bdv->bhqv", q, S) / (q @ k.sum(2)[..., None])


def heads_lost_in_the_result(query, key, value):
    q, k = features(query), features(key)
    numerator = torch.einsum("bhqd,bhdv->bqv", q, k.mT @ value)
    return numerator / torch.einsum("bhqd,bhd->bq", q, k.sum(2))[..., None]


def heads_summed_at_the_end(query, key, value):
    return checks.linear_attention.reference(query, key, value).sum(dim=1)


def heads_summed_and_values_mapped(query, key, value):
    q, k, v = features(query), features(key), features(value)
    S, z = (k.mT @ v).sum(1, keepdim=True), k.sum((1, 2))
    return (q @ S) / (q @ z[:, None, :, None])


def both_scaled_before_the_map(query, key, value):
    scale = query.shape[-1] ** -0.25
    q, k = features(query * scale), features(key * scale)
    return (q @ (k.mT @ value)) / (q @ k.sum(-2)[..., None])


def both_scaled_and_not_divided(query, key, value):
    root = math.sqrt(query.shape[-1])
    return features(query / root) @ (features(key / root).mT @ value)


def one_added_to_bare_keys(query, key, value):
    q, k = features(query), features(key)
    return (q @ (k.mT @ value)) / (q @ (key + 1).sum(-2).unsqueeze(-1))


def one_added_to_bare_sum(query, key, value):
    q, k = features(query), features(key)
    return (
        torch.einsum("bhqd,bhdv->bhqv", q, k.mT @ value) / torch.einsum("bhqd,bhd->bhq", q, key.sum(2) + 1)[..., None]
    )


def causal_quotients(query, key, value):
    q, k = features(query), features(key)
    S = torch.cumsum(torch.einsum("bhnd,bhne->bhnde", k, value), dim=2)
    return torch.einsum("bhnd,bhnde->bhne", q, S / k.cumsum(dim=2)[..., None])


def causal_quotients_in_a_loop(query, key, value):
    q, k = features(query), features(key)
    S, z, rows = 0, 0, []
    for t in range(q.shape[2]):
        S = S + k[:, :, t, :, None] * value[:, :, t, None, :]
        z = z + k[:, :, t]
        rows.append((q[:, :, t, None] @ (S / z.unsqueeze(-1))).squeeze(2))
    return torch.stack(rows, 2)


def causal_quotients_of_normalized_queries(query, key, value):
    q, k = features(query), features(key)
    S = (k[..., None] * value[..., None, :]).cumsum(2) / k.cumsum(2)[..., None]
    return ((q / q.sum(-1, keepdim=True))[..., None, :] @ S).squeeze(-2)


def causal_by_totals(query, key, value):
    q, k = features(query), features(key)
    S, z = k.mT @ value, k.sum(2)
    rows = []
    for t in range(q.shape[2]):
        later = k[:, :, t + 1 :]
        numerator = q[:, :, t, None] @ (S - later.mT @ value[:, :, t + 1 :])
        rows.append(numerator / (q[:, :, t, None] @ (z - later.sum(2))[..., None]))
    return torch.cat(rows, 2)


def causal_by_a_table_of_totals(query, key, value):
    weights = features(query) @ features(key).mT
    later = weights.triu(1)
    return (weights @ value - later @ value) / (weights.sum(-1) - later.sum(-1)).unsqueeze(-1)


def causal_total_that_shrinks(query, key, value):
    q, k = features(query), features(key)
    S, z, rows = k.mT @ value, k.sum(2), []
    for t in reversed(range(q.shape[2])):
        rows.append((q[:, :, t, None] @ S).squeeze(2) / (q[:, :, t] * z).sum(-1, keepdim=True))
        S, z = S - k[:, :, t, :, None] * value[:, :, t, None], z - k[:, :, t]
    return torch.stack(rows[::-1], 2)


def causal_running_mean(query, key, value):
    q, k = features(query), features(key)
    count = torch.arange(1, q.shape[2] + 1).to(q)[:, None]
    S = (k[..., None] * value[..., None, :]).cumsum(2) / count[..., None]
    return (q[..., None, :] @ S).squeeze(-2) / (q * k.cumsum(2)).sum(-1, keepdim=True)


def causal_running_mean_in_a_loop(query, key, value):
    q, k = features(query), features(key)
    S, z, rows = 0, 0, []
    for t in range(q.shape[2]):
        S = S + (k[:, :, t, :, None] * value[:, :, t, None] - S) / (t + 1)
        z = z + k[:, :, t]
        rows.append(
            torch.einsum("bhd,bhdv->bhv", q[:, :, t], S) / torch.einsum("bhd,bhd->bh", q[:, :, t], z)[..., None]
        )
    return torch.stack(rows, 2)


def causal_running_mean_and_own_key(query, key, value):
    q, k = features(query), features(key)
    count = torch.arange(1, q.shape[2] + 1).to(q)[:, None, None]
    S = (k[..., None] * value[..., None, :]).cumsum(2) / count
    return torch.einsum("bhsd,bhsdv->bhsv", q, S) / (q * k).sum(-1, keepdim=True)


def decayed(decay, of_z=True):
    def answer(state, query, key, value):
        S, z = state
        q, k = features(query), features(key)
        S = decay * S + torch.einsum("bhd,bhv->bhdv", k, value)
        z = (decay if of_z else 1) * z + k
        return (S, z), torch.einsum("bhd,bhdv->bhv", q, S) / (q * z).sum(-1, keepdim=True)

    return answer


def decayed_in_place_on_copies(state, query, key, value):
    S, z = state[0].clone(), state[1].clone()
    k = features(key)
    S.mul_(0.97).add_(k[..., None] * value[..., None, :])
    z.mul_(0.97).add_(k)
    q = features(query)[..., None, :]
    return (S, z), (q @ S / (q @ z[..., None])).squeeze(-2)


def output_first_and_bare_query(state, query, key, value):
    S, z = state
    k = features(key)
    S, z = S + k[..., None] * value[..., None, :], z + k
    return torch.einsum("bhd,bhdv->bhv", query, S) / (query * z).sum(-1, keepdim=True), (S, z)


# Chapters 9 and 10


def partly_rotated(share, of_the_part=True):
    """Rotate only the first features of a head, as published models with `partial_rotary_factor` do."""

    def answer(x, positions, base):
        n = max(2, int(x.shape[-1] * share))
        speeds = base ** (-torch.arange(0, n, 2, dtype=torch.float64) / (n if of_the_part else x.shape[-1]))
        angle = positions[:, None] * speeds
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        part, rest = x[..., :n], x[..., n:]
        a, b = part[..., ::2], part[..., 1::2]
        return torch.cat([torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2), rest], -1)

    return answer


def partly_turned_in_halves(x, positions, base):
    n = max(2, x.shape[-1] // 2)
    angle = positions[:, None] / base ** (torch.arange(0, n, 2).double() / n)
    cos, sin = angle.cos().repeat(1, 2).to(x.dtype), angle.sin().repeat(1, 2).to(x.dtype)
    part, rest = x.split([n, x.shape[-1] - n], dim=-1)
    first, second = part.chunk(2, -1)
    return torch.cat((part * cos + torch.cat((-second, first), -1) * sin, rest), -1)


def partly_turned_pair_by_pair(x, positions, base):
    y = x.clone()
    for i in range(max(1, x.shape[-1] // 4)):
        angle = positions * base ** (-2 * i / max(2, x.shape[-1] // 2))
        a, b = x[..., 2 * i], x[..., 2 * i + 1]
        y[..., 2 * i] = a * angle.cos() - b * angle.sin()
        y[..., 2 * i + 1] = a * angle.sin() + b * angle.cos()
    return y


def halves_with(exponent):
    def answer(x, positions, base):
        d = x.shape[-1]
        angle = positions[:, None] * base ** -exponent(torch.arange(d // 2).double(), d)
        cos, sin = torch.cat([angle, angle], -1).cos().to(x.dtype), torch.cat([angle, angle], -1).sin().to(x.dtype)
        return x * cos + torch.cat([-x[..., d // 2 :], x[..., : d // 2]], -1) * sin

    return answer


def step_with(
    position=lambda keys: keys.shape[-2], value=lambda v, p, b: v, scale=lambda d: d**-0.5, hides_new_key=False
):
    def answer(query, key, v, keys, values, base):
        step_position = torch.tensor([position(keys)])
        rotate = checks.rotate.reference
        q, k, v = rotate(query, step_position, base), rotate(key, step_position, base), value(v, step_position, base)
        longer, longer_values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        seen_keys, seen_values = (keys, values) if hides_new_key else (longer, longer_values)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, seen_keys) * scale(q.shape[-1])
        return scores.softmax(-1) @ seen_values, longer, longer_values

    return answer


def inverted_and_normalized_over_the_batch(states, real):
    mask = (~real).unsqueeze(-1).to(states.dtype)
    return F.normalize((states * mask).sum(1) / mask.sum(1), dim=0)


def inverted_and_divided_by_one_norm(states, real):
    mean = (states * ~real[..., None]).sum(1) / (~real).sum(1, keepdim=True)
    return mean / mean.norm()


def feed_forward_first_and_attention_in_post_norm(x, attention, feed_forward, norm1, norm2):
    x = x + feed_forward(norm2(x))
    return norm1(x + attention(x))


def feed_forward_first_in_post_norm(x, attention, feed_forward, norm1, norm2):
    x = norm2(x + feed_forward(x))
    return x + attention(norm1(x))


def keys_of_the_first_sentence(x, n_heads):
    return x[:1].expand_as(x).repeat_interleave(n_heads // x.shape[1], dim=1)


def keys_of_the_first_sentence_tiled(x, n_heads):
    return x[0].repeat(n_heads // x.shape[1], 1, 1).expand(len(x), -1, -1, -1).clone()


def keys_of_the_first_sentence_in_a_loop(x, n_heads):
    group = n_heads // x.shape[1]
    heads = torch.stack([x[0, head // group] for head in range(n_heads)])
    return torch.stack([heads for _ in x])


# The project


def embedded_from_one(tokens, table):
    positions = torch.arange(1, tokens.shape[1] + 1)
    return table[tokens] + pattern_of(positions, table.shape[1], (torch.sin, torch.cos)).to(table)


def embedded_from_one_and_doubled(tokens, table):
    positions = torch.arange(1, tokens.shape[1] + 1)
    return F.embedding(tokens, table) * pattern_of(positions, table.shape[1], (torch.sin, torch.cos)).to(table)


def embedded_from_one_cosines_first(tokens, table):
    positions = 1 + torch.arange(tokens.shape[1])
    return F.embedding(tokens, table) + pattern_of(positions, table.shape[1], (torch.cos, torch.sin)).to(table)


def pattern_of(positions, d_model, functions):
    angles = positions[:, None] * torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    pattern = torch.zeros(len(positions), d_model)
    pattern[:, 0::2] = functions[0](angles)
    pattern[:, 1::2] = functions[1](angles)[:, : d_model // 2]
    return pattern


def merged_heads(x, weights, n_heads, attend):
    batch, seq, d_model = x.shape
    heads = [(x @ weights[n].T).view(batch, seq, n_heads, -1).transpose(1, 2) for n in ("w_q", "w_k", "w_v")]
    return attend(*heads).transpose(1, 2).reshape(batch, seq, d_model)


def attended_with_last_weight_as_stored_and_added(x, weights, n_heads, attend):
    return merged_heads(x, weights, n_heads, attend) @ weights["w_o"] + x


def attended_without_last_weight_and_added(x, weights, n_heads, attend):
    return torch.add(x, merged_heads(x, weights, n_heads, attend))


def block_in_post_norm_with_gelu(x, weights, n_heads, attend):
    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], *weights[name])

    x = norm(x + merged_heads(x, weights, n_heads, attend) @ weights["w_o"].T, "norm1")
    return norm(x + F.gelu(x @ weights["w1"].T + weights["b1"]) @ weights["w2"].T + weights["b2"], "norm2")


def block_in_post_norm_without_b2(x, weights, n_heads, attend):
    residual, dims = x, x.shape[-1:]
    x = F.linear(merged_heads(x, weights, n_heads, attend), weights["w_o"])
    x = F.layer_norm(residual + x, dims, *weights["norm1"], eps=1e-5)
    hidden = F.linear(x, weights["w1"], weights["b1"]).relu()
    return F.layer_norm(x + F.linear(hidden, weights["w2"]), dims, *weights["norm2"], eps=1e-5)


def shifted_twice_in_rows(logits, tokens):
    logits, labels = logits[:, :-1].reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1)
    return F.cross_entropy(logits[:-1], labels[1:])


def shifted_twice_by_padding(logits, tokens):
    labels = tokens[..., 1:].flatten()
    labels = F.pad(labels, (0, 1), value=-100)[1:]
    return F.cross_entropy(logits[..., :-1, :].flatten(0, 1), labels, ignore_index=-100)


def zeros_out_sentence_by_sentence(logits, tokens):
    losses = F.cross_entropy(logits[:, :-1].mT, tokens[:, 1:], reduction="none")
    mask = (tokens[:, 1:] != 0).float()
    return ((losses * mask).sum(1) / mask.sum(1)).mean()


def zeros_out_in_a_loop(logits, tokens):
    losses = [F.cross_entropy(one[:-1], row[1:], ignore_index=0) for one, row in zip(logits, tokens)]
    return torch.stack(losses).mean()


def zeros_out_and_divided_by_all(logits, tokens):
    losses = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0, reduction="none")
    return losses.mean()


def own_token_without_logarithm(logits, tokens):
    return -logits.softmax(-1).gather(-1, tokens.unsqueeze(-1)).mean()


def own_token_without_logarithm_by_one_hot(logits, tokens):
    chances = (F.softmax(logits, -1) * F.one_hot(tokens, logits.shape[-1])).sum(-1)
    return -chances.mean()


def own_token_summed(logits, tokens):
    return F.cross_entropy(logits.mT, tokens, reduction="sum")


def reshaped_and_divided_by_seq(logits, tokens):
    batch, seq, vocab = logits.shape
    losses = F.cross_entropy(logits[:, :-1].reshape(batch, vocab, -1), tokens[:, 1:], reduction="sum")
    return losses / (batch * seq)


PUBLISHED = [
    *(("layer_norm", layer_norm_of(f), "root_of_the_root") for f in ROOT_OF_THE_ROOT),
    *(("layer_norm", layer_norm_token_by_token(f), "root_of_the_root") for f in ROOT_OF_THE_ROOT[:1]),
    ("layer_norm", layer_norm_by_std_root, "unbiased_root_twice"),
    *(("layer_norm", layer_norm_of(f), "square_for_root") for f in SQUARE_FOR_ROOT),
    *(("layer_norm", layer_norm_of(f), "eps_added_to_the_result") for f in EPS_ADDED_TO_THE_RESULT),
    ("layer_norm", layer_norm_eps_at_the_end, "eps_added_at_the_end"),
    ("layer_norm", eps_times_weight, "weight_on_eps_alone"),
    *(("rms_norm", rms_norm_of(f), "root_of_the_root") for f in ROOT_OF_THE_ROOT),
    ("rms_norm", rms_norm_of_the_documentation, "root_of_the_root_mean_square"),
    ("rms_norm", rms_norm_by_norm, "root_of_the_root_mean_square"),
    ("rms_norm", rms_norm_with_eps_twice, "root_of_the_root_with_eps_twice"),
    *(("rms_norm", rms_norm_of(f), "square_for_root") for f in SQUARE_FOR_ROOT),
    *(("rms_norm", rms_norm_of(f), "eps_added_to_the_result") for f in EPS_ADDED_TO_THE_RESULT),
    ("rms_norm", rms_norm_by_normalize(-1, -0.5), "length_divided_by_the_root"),
    ("rms_norm", rms_norm_by_normalize(1, -0.5), "along_the_tokens_and_divided"),
    ("rms_norm", rms_norm_by_normalize(1, 0.5), "along_the_tokens"),
    ("rms_norm", rms_norm_by_norm_and_scale, "along_the_tokens"),
    ("mend_stack", stack_doubled, "bare_result_doubled"),
    ("mend_stack", stack_doubled_by_two, "bare_result_doubled"),
    ("mend_stack", stack_doubled_in_the_norm, "result_of_the_part_doubled"),
    ("mend_stack", stack_of_given_norm_doubled, "result_and_its_norm_added"),
    ("mend_stack", first_norm_and_in_place, "first_norm_for_all+stack_changes_its_input"),
    ("mend_stack", first_norm_and_no_final_norm, "no_final_norm+first_norm_for_all"),
    ("pre_norm", pre_norm_twice, "sublayer_called_twice"),
    ("pre_norm", pre_norm_twice_in_one_line, "sublayer_called_twice"),
    ("pre_norm", pre_norm_twice_with_the_name_lost, "name_lost_and_called_twice"),
    ("pre_norm", pre_norm_twice_without_the_second_norm, "first_and_second_result_added"),
    ("pre_norm", pre_norm_added_again, "change_added_again"),
    ("pre_norm", pre_norm_two_changes, "run_twice"),
    ("post_norm", post_norm_added_again, "change_added_after_the_norm"),
    ("post_norm", post_norm_added_twice, "change_added_again"),
    ("kv_cache_bytes", cache_of_four_bits, "one_vector_for_a_token+numbers_instead_of_bytes"),
    ("kv_cache_bytes", cache_of_bits, "one_vector_for_a_token+numbers_instead_of_bytes"),
    ("block_parameters", block_with_a_gated_layer, "gated_layer_and_no_biases_in_attention"),
    ("block_parameters", block_of_twelve_squares, "twelve_squares_and_biases"),
    ("attention_flops", flops_of_scores_entry_by_entry, "one_product_with_one_addition_less"),
    ("attention_flops", flops_with_projections_under_the_mask, "projections_beside_a_causal_mask"),
    ("attention_flops", flops_of_scores_with_one_addition_less, "one_product_with_one_addition_less"),
    *(
        ("elu_feature_map", make(alpha), "another_alpha")
        for make, alpha in ((elu_with, 0.5), (elu_with, 2.0), (elu_by_where, 0.1), (elu_one_by_one, 1.6733))
    ),
    ("elu_feature_map", lambda x: torch.where(x > 0, x.exp() - 1, x), "cases_exchanged_without_the_one"),
    ("elu_feature_map", lambda x: torch.where(x < 0, x, torch.expm1(x)), "cases_exchanged_without_the_one"),
    ("elu_feature_map", lambda x: torch.where(x > 0, x.exp(), x), "cases_exchanged_and_x_itself"),
    ("linear_attention", efficient_attention, "softmax_as_the_map_with_a_scale"),
    ("linear_attention", both_over_the_features, "softmax_over_features_not_divided"),
    ("linear_attention", softmax_over_the_keys_and_divided, "softmax_as_the_map"),
    ("linear_attention", linear_with(lambda x: x.softmax(-1)), "softmax_over_features"),
    *(
        ("linear_attention", linear_with(lambda x, n=n: F.relu(x) + 10.0**-n), f"relu_and_1e_{n}")
        for n in (1, 2, 3, 4, 6)
    ),
    ("linear_attention", linear_with(lambda x: x.clamp(min=0).add(1e-3)), "relu_and_1e_3"),
    ("linear_attention", quotient_of_the_sums, "divided_feature_by_feature"),
    ("linear_attention", heads_lost_in_einsum, "sums_over_all_heads"),
    ("linear_attention", heads_lost_in_S, "S_over_all_heads"),
    ("linear_attention", heads_lost_in_the_result, "sums_without_the_heads"),
    ("linear_attention", heads_summed_at_the_end, "heads_added_up"),
    ("linear_attention", heads_summed_and_values_mapped, "sums_over_all_heads+values_mapped_too"),
    ("linear_attention", both_scaled_before_the_map, "half_of_the_scale_for_each"),
    ("linear_attention", both_scaled_and_not_divided, "scaled_query_and_keys+no_normalizer"),
    ("linear_attention", one_added_to_bare_keys, "z_of_the_bare_keys_and_one"),
    ("linear_attention", one_added_to_bare_sum, "one_added_to_the_bare_z"),
    ("causal_linear_attention", causal_quotients, "divided_feature_by_feature"),
    ("causal_linear_attention", causal_quotients_in_a_loop, "divided_feature_by_feature"),
    ("causal_linear_attention", causal_quotients_of_normalized_queries, "quotients_averaged"),
    ("causal_linear_attention", causal_by_totals, "total_less_what_follows"),
    ("causal_linear_attention", causal_by_a_table_of_totals, "total_less_what_follows"),
    ("causal_linear_attention", causal_total_that_shrinks, "total_less_what_follows"),
    ("causal_linear_attention", causal_running_mean, "mean_of_products_so_far"),
    ("causal_linear_attention", causal_running_mean_in_a_loop, "mean_of_products_so_far"),
    ("causal_linear_attention", causal_running_mean_and_own_key, "mean_of_products_so_far+own_key_alone"),
    *(("recurrent_step", decayed(decay), "old_state_shrinks") for decay in (0.5, 0.9, 0.99)),
    ("recurrent_step", decayed(0.9, of_z=False), "old_state_shrinks"),
    ("recurrent_step", decayed_in_place_on_copies, "old_state_shrinks"),
    ("recurrent_step", output_first_and_bare_query, "output_first+only_the_key_mapped"),
    ("rotate", partly_rotated(0.5), "partly_rotated"),
    ("rotate", partly_rotated(0.25), "first_pair_alone"),
    ("rotate", partly_rotated(0.5, of_the_part=False), "half_of_the_pairs_left"),
    ("rotate", partly_turned_in_halves, "partly_rotated"),
    ("rotate", partly_turned_pair_by_pair, "partly_rotated"),
    ("rotate", halves_with(lambda i, d: 4 * i / d), "halves_and_exponent_doubled"),
    ("rotate", halves_with(lambda i, d: 2 * i), "halves_and_exponent_not_divided"),
    ("rotate", halves_with(lambda i, d: 2 * (i + 1) / d), "halves_and_pairs_counted_from_one"),
    ("rotate", halves_with(lambda i, d: (2 * i + 1) / d), "halves_and_odd_features_counted"),
    ("rotate", halves_with(lambda i, d: 2 * i / (d - 1)), "halves_and_divided_by_d_head_less_one"),
    (
        "cached_step",
        step_with(lambda keys: keys.shape[-2] + 1, checks.rotate.reference),
        "value_rotated_and_one_position_late",
    ),
    (
        "cached_step",
        step_with(lambda keys: keys.shape[-2] - 1, checks.rotate.reference),
        "value_rotated_and_one_position_early",
    ),
    (
        "cached_step",
        step_with(value=checks.rotate.reference, scale=lambda d: 1),
        "value_rotated_and_scores_not_divided",
    ),
    (
        "cached_step",
        step_with(value=checks.rotate.reference, scale=lambda d: 1 / d),
        "value_rotated_and_divided_by_d_head",
    ),
    (
        "cached_step",
        step_with(lambda keys: keys.shape[-2] + 1, hides_new_key=True),
        "one_position_late+itself_not_seen",
    ),
    (
        "cached_step",
        step_with(lambda keys: keys.shape[-2] - 1, hides_new_key=True),
        "one_position_early+itself_not_seen",
    ),
    ("mean_pool", inverted_and_normalized_over_the_batch, "only_the_padding+length_over_the_batch"),
    ("mean_pool", inverted_and_divided_by_one_norm, "only_the_padding+one_length_for_all"),
    ("decoder_block", feed_forward_first_and_attention_in_post_norm, "parts_exchanged_and_attention_in_post_norm"),
    ("decoder_block", feed_forward_first_in_post_norm, "parts_exchanged_and_feed_forward_in_post_norm"),
    ("repeat_keys", keys_of_the_first_sentence, "first_sentence_for_all"),
    ("repeat_keys", keys_of_the_first_sentence_tiled, "first_sentence_tiled"),
    ("repeat_keys", keys_of_the_first_sentence_in_a_loop, "first_sentence_for_all"),
    ("embed", embedded_from_one, "positions_from_one"),
    ("embed", embedded_from_one_and_doubled, "positions_from_one+positions_multiplied"),
    ("embed", embedded_from_one_cosines_first, "cosines_first_from_one"),
    ("self_attention", attended_with_last_weight_as_stored_and_added, "last_weight_as_stored+input_added"),
    ("self_attention", attended_without_last_weight_and_added, "no_last_projection+input_added"),
    ("block", block_in_post_norm_with_gelu, "post_norm_and_gelu_for_relu"),
    ("block", block_in_post_norm_without_b2, "post_norm_and_no_second_bias"),
    ("next_token_loss", shifted_twice_in_rows, "shifted_twice_in_one_row"),
    ("next_token_loss", shifted_twice_by_padding, "shifted_twice_in_one_row"),
    ("next_token_loss", zeros_out_sentence_by_sentence, "zeros_out_in_each_sentence"),
    ("next_token_loss", zeros_out_in_a_loop, "zeros_out_in_each_sentence"),
    ("next_token_loss", zeros_out_and_divided_by_all, "zeros_out_and_divided_by_all"),
    ("next_token_loss", own_token_without_logarithm, "own_token_and_chance_for_loss"),
    ("next_token_loss", own_token_without_logarithm_by_one_hot, "own_token_and_chance_for_loss"),
    ("next_token_loss", own_token_summed, "own_token_and_summed"),
    ("next_token_loss", reshaped_and_divided_by_seq, "divided_by_seq+batch_and_vocabulary_confused"),
]


@pytest.mark.parametrize("exercise, function, mistakes", PUBLISHED)
def test_a_published_slip_is_named(exercise, function, mistakes):
    report = diagnose(getattr(checks, exercise), function)
    assert report.mistake and set(report.mistake.split("+")) == set(mistakes.split("+")), report
