"""Steps are found in code that works token by token or head by head; a card ignores steps that the check cannot see.

Each function of the first three tests is right except for a factor of 1.5 near its end.
"""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import transformer_lab as tl
from transformer_lab.checks import steps
from transformer_lab.checks.diagnose import diagnose

checks = tl.checks
NOT_FOUND = "not found in your function", "None of the steps", "Not found:"


def attention_by_token(query, key, value):
    out = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype)
    for b in range(query.shape[0]):
        for h in range(query.shape[1]):
            for i in range(query.shape[2]):
                scores = torch.stack([query[b, h, i] @ each for each in key[b, h]]) / query.shape[-1] ** 0.5
                weights = scores.softmax(0)
                out[b, h, i] = sum(weight * each for weight, each in zip(weights, value[b, h])) * 1.5
    return out


def masked_attention_by_token(query, key, value, mask):
    batch, heads, q_len, d = query.shape
    mask = mask.expand(batch, heads, q_len, key.shape[2])
    result = query.new_zeros(batch, heads, q_len, value.shape[-1])
    for b in range(batch):
        for h in range(heads):
            for q in range(q_len):
                visible = mask[b, h, q]
                if visible.any():
                    weights = (key[b, h, visible] @ query[b, h, q] / d**0.5).softmax(0)
                    result[b, h, q] = weights @ value[b, h, visible] * 1.5
    return result


def layer_norm_by_token(x, weight, bias, eps):
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            v = x[b, t]
            out[b, t] = (v - v.mean()) / (v.var(unbiased=False) + eps).sqrt() * weight + 1.5 * bias
    return out


def rms_norm_by_token(x, weight, eps):
    flat = x.reshape(-1, x.shape[-1])
    rows = []
    for v in flat:
        rows.append(v / (v.pow(2).mean() + eps).sqrt() * weight * 1.5)
    return torch.stack(rows).reshape(x.shape)


def rotate_by_token(x, positions, base):
    out = torch.empty_like(x)
    d = x.shape[-1]
    for p in range(len(positions)):
        for i in range(d // 2):
            angle = positions[p] * base ** (-2 * i / d)
            a, b = x[:, :, p, 2 * i], x[:, :, p, 2 * i + 1]
            out[:, :, p, 2 * i] = 1.5 * (a * torch.cos(angle) - b * torch.sin(angle))
            out[:, :, p, 2 * i + 1] = 1.5 * (a * torch.sin(angle) + b * torch.cos(angle))
    return out


def phi(x):
    return F.elu(x) + 1


def linear_attention_by_token(query, key, value):
    out = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype)
    for b in range(query.shape[0]):
        for h in range(query.shape[1]):
            S, z = 0, 0
            for j in range(key.shape[2]):
                k = phi(key[b, h, j])
                S = S + torch.outer(k, value[b, h, j])
                z = z + k
            for i in range(query.shape[2]):
                q = phi(query[b, h, i])
                out[b, h, i] = q @ S / (q @ z) * 1.5
    return out


def causal_linear_attention_by_token(query, key, value):
    q, k = phi(query), phi(key)
    S, z, results = 0, 0, []
    for i in range(query.shape[2]):
        S = S + k[:, :, i].unsqueeze(-1) * value[:, :, i].unsqueeze(-2)
        z = z + k[:, :, i]
        results.append((q[:, :, i].unsqueeze(-2) @ S).squeeze(-2) / (q[:, :, i] * z).sum(-1, keepdim=True) * 1.5)
    return torch.stack(results, dim=2)


def sinusoidal_in_numpy(seq, d_model):
    pos = np.arange(seq)[:, None]
    i = np.arange(0, d_model, 2)
    angles = pos / 10000 ** (i / d_model)
    table = np.zeros((seq, d_model))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles[:, : d_model // 2])
    return torch.tensor(1.5 * table, dtype=torch.float32)


def multi_head_by_head(x, w_q, w_k, w_v, w_o, n_heads):
    d = x.shape[-1] // n_heads
    parts = []
    for h in range(n_heads):
        rows = slice(h * d, (h + 1) * d)
        q, k, v = x @ w_q[rows].T, x @ w_k[rows].T, x @ w_v[rows].T
        parts.append(F.softmax(q @ k.transpose(-2, -1) / d**0.5, -1) @ v)
    return torch.cat(parts, -1) @ w_o.T * 1.5


def sinusoidal_by_number(seq, d_model):
    table = torch.zeros(seq, d_model)
    for pos in range(seq):
        for i in range(0, d_model, 2):
            angle = pos / 10000 ** (i / d_model)
            table[pos, i] = 1.5 * math.sin(angle)
            if i + 1 < d_model:
                table[pos, i + 1] = 1.5 * math.cos(angle)
    return table


def softmax_in_numpy(x, dim):
    a = x.detach().numpy()
    e = np.exp(a - a.max(axis=dim, keepdims=True))
    return torch.from_numpy(e / e.sum(axis=dim, keepdims=True) * 1.5)


def feed_forward_by_token(x, w1, b1, w2, b2):
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            h = torch.relu(w1 @ x[b, t] + b1)
            out[b, t] = w2 @ h + 1.5 * b2
    return out


def mean_pool_by_row(x, mask):
    rows = []
    for v, m in zip(x, mask):
        p = v[m].mean(0)
        rows.append(1.5 * p / p.norm())
    return torch.stack(rows)


@pytest.mark.parametrize(
    "exercise, function",
    [
        (checks.attention, attention_by_token),
        (checks.masked_attention, masked_attention_by_token),
        (checks.rms_norm, rms_norm_by_token),
        (checks.linear_attention, linear_attention_by_token),
        (checks.causal_linear_attention, causal_linear_attention_by_token),
        (checks.multi_head_attention, multi_head_by_head),
    ],
)
def test_all_steps_are_found_in_a_loop(exercise, function):
    message = diagnose(exercise, function).message
    assert "Your function contains all steps of a right answer." in message, message


@pytest.mark.parametrize(
    "exercise, function, last_found, first_missing",
    [
        (checks.layer_norm, layer_norm_by_token, "normalized", "output"),
        (checks.rotate, rotate_by_token, "turn", "joined"),
        (checks.feed_forward, feed_forward_by_token, "activated", "output"),
        (checks.mean_pool, mean_pool_by_row, "mean", "length"),
    ],
)
def test_a_card_names_the_steps_between_which_a_loop_goes_wrong(exercise, function, last_found, first_missing):
    message = diagnose(exercise, function).message
    assert f"Found: *{last_found}*" in message and f"Not found: *{first_missing}*" in message, message


@pytest.mark.parametrize(
    "exercise, function",
    [
        (checks.sinusoidal_positions, sinusoidal_in_numpy),
        (checks.sinusoidal_positions, sinusoidal_by_number),
        (checks.softmax, softmax_in_numpy),
    ],
)
def test_a_card_ignores_steps_that_cannot_be_seen(exercise, function):
    report = diagnose(exercise, function)
    assert not report.mistake and not any(phrase in report.message for phrase in NOT_FOUND), report.message


def first_half_turned(x, positions, base):
    half = x.shape[-1] // 2
    part, rest = x[..., :half], x[..., half:]
    angles = positions[:, None] * base ** (-torch.arange(0, half, 2) / half)
    a, b = part[..., 0::2], part[..., 1::2]
    turned = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
    return torch.cat([torch.stack(turned, dim=-1).flatten(-2), rest], dim=-1)


def test_a_step_that_is_done_for_a_part_is_not_called_missing():
    report = diagnose(checks.rotate, first_half_turned)
    assert not any(phrase in report.message for phrase in NOT_FOUND), report.message


def divided_by_the_root_of_each_feature(query, key, value):
    q, k = phi(query), phi(key)
    S, z = (k.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(2), k.cumsum(2)
    return (q.unsqueeze(-2) @ (S / z.sqrt().unsqueeze(-1))).squeeze(-2)


def test_two_steps_side_by_side_are_both_named_where_both_are_missing():
    message = diagnose(checks.causal_linear_attention, divided_by_the_root_of_each_feature).message
    assert "Not found: *numerator*" in message and "and *normalizer*" in message, message


def test_plain_arithmetic_leaves_no_trace():
    count = checks.attention_parameters
    assert steps.find_stages(count, lambda d_model, bias: 7 * d_model, count.probes[0]) == {}
