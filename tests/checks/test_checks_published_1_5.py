"""The checks of chapters 1 to 5 name these mistakes, which are written as in published code."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import transformer_lab as tl
from transformer_lab.checks.diagnose import diagnose

checks = tl.checks
PUBLISHED = []


def published(exercise, *names):
    """Return a decorator for a function in which the check of ``exercise`` must find exactly the mistakes ``names``."""

    def add(function):
        PUBLISHED.append(pytest.param(exercise, function, set(names), id=f"{exercise.name}-{function.__name__}"))
        return function

    return add


class ShapeError(Exception):
    pass


class IndexingError(RuntimeError):
    pass


def shape_of_broadcast(a, b, error):
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b)):
        raise error("no fit")
    return tuple(y if x == 1 else x for x, y in zip(a, b))


def shape_of_product(a, b, error=ValueError, column=True):
    left = (1, *a) if len(a) == 1 else tuple(a)
    right = ((*b, 1) if column else (1, *b)) if len(b) == 1 else tuple(b)
    if left[-1] != right[-2]:
        raise error("inner")
    ends = (left[-2],) * (len(a) > 1) + (right[-1],) * (len(b) > 1)
    return (*shape_of_broadcast(left[:-2], right[:-2], error), *ends)


def split(x, w, n):
    return (x @ w.T).unflatten(-1, (n, -1)).transpose(1, 2)


@published(checks.split_heads, "heads_and_batch_exchanged_after_a_cut")
def cut_with_heads_in_front_and_exchanged(x, n):
    b, s, d = x.shape
    return x.reshape(n, b, s, d // n).transpose(0, 1)


@published(checks.split_heads, "folded_with_heads_outside")
def heads_put_below_the_sentences(x, n):
    b, s, d = x.shape
    return torch.cat(x.split(d // n, 2), 0).view(b, n, s, d // n)


@published(checks.split_heads, "folded_with_heads_outside")
def folded_by_permute(x, n):
    b, s, d = x.shape
    return x.view(b, s, n, d // n).permute(2, 0, 1, 3).reshape(b, n, s, d // n)


@published(checks.split_heads, "heads_and_batch_exchanged_after_a_cut")
def cut_with_heads_in_front_and_permuted(x, n):
    b, s, d = x.shape
    return x.reshape(n, b, s, d // n).permute(1, 0, 2, 3).contiguous()


@published(checks.merge_heads, "read_with_heads_outside")
def view_with_heads_in_front(x):
    b, h, s, d = x.shape
    return x.reshape(h, b, s, d).permute(1, 2, 0, 3).reshape(b, s, h * d)


@published(checks.merge_heads, "read_with_heads_outside")
def folded_and_viewed(x):
    b, h, s, d = x.shape
    x = x.reshape(b * h, s, d).view(h, b, s, d)
    return torch.cat(list(x), -1)


@published(checks.merge_heads, "read_with_heads_outside")
def folded_and_split(x):
    b, h, s, d = x.shape
    return torch.cat(x.reshape(b * h, s, d).split(b, 0), -1)


@published(checks.merge_heads, "heads_reversed_and_reshaped")
def flipped_and_reshaped(x):
    b, h, s, d = x.shape
    return x.flip(1).reshape(b, s, h * d)


@published(checks.merge_heads, "heads_reversed_and_reshaped")
def stacked_backwards_and_reshaped(x):
    b, h, s, d = x.shape
    return torch.stack([x[:, i] for i in reversed(range(h))], 1).reshape(b, s, h * d)


@published(checks.merge_heads, "heads_added")
def added_in_a_loop(x):
    out = 0
    for h in range(x.shape[1]):
        out = out + x[:, h]
    return out


@published(checks.merge_heads, "heads_added")
def added_by_einsum(x):
    return torch.einsum("bhsd->bsd", x)


@published(checks.merge_heads, "heads_added_with_keepdim")
def added_with_keepdim(x):
    return x.sum(1, keepdim=True)


@published(checks.merge_heads, "heads_added")
def added_after_transpose(x):
    return x.transpose(1, 2).sum(2)


@published(checks.merge_heads, "last_head_only")
def overwritten_in_a_loop(x):
    _b, h, _s, _d = x.shape
    for i in range(h):
        out = x[:, i]
    return out


@published(checks.merge_heads, "heads_after_the_features")
def stacked_at_the_end(x):
    return torch.stack(x.unbind(1), -1)


@published(checks.linear, "bias_once_for_each_input")
def bias_in_the_loop_over_inputs(x, w, b):
    y = torch.zeros(*x.shape[:-1], w.shape[0], dtype=x.dtype)
    for i in range(w.shape[1]):
        y = y + x[..., i, None] * w[:, i] + b
    return y


@published(checks.linear, "bias_once_for_each_input")
def bias_in_the_inner_loop(x, w, b):
    outs = []
    for o in range(len(w)):
        t = 0
        for i in range(w.shape[1]):
            t = t + x[..., i] * w[o, i] + b[o]
        outs.append(t)
    return torch.stack(outs, -1)


@published(checks.linear, "bias_once_for_each_input")
def bias_in_the_sum(x, w, b):
    return (x[..., None, :] * w + b[:, None]).sum(-1)


@published(checks.linear, "bias_once_for_each_later_output")
def bias_in_the_loop_over_outputs(x, w, b):
    y = torch.zeros(*x.shape[:-1], w.shape[0], dtype=x.dtype)
    for o in range(len(w)):
        y[..., o] = (x * w[o]).sum(-1)
        y = y + b
    return y


@published(checks.linear, "bias_once_for_each_input")
def bias_in_the_sum_of_each_output(x, w, b):
    return torch.stack([(x * w[o] + b[o]).sum(-1) for o in range(len(w))], -1)


@published(checks.linear, "two_letters")
def einsum_bd_di(x, w, b):
    return torch.einsum("bd,di->bi", x, w) + b


@published(checks.linear, "letters_exchanged_for_three_axes")
def einsum_bsd_di(x, w, b):
    return torch.einsum("bsd,di->bsi", x, w) + b


@published(checks.linear, "letters_exchanged")
def einsum_dots_d_di(x, w, b):
    return torch.einsum("...d,di->...i", x, w) + b


@published(checks.sinusoidal_positions, "position_zero_left_at_zeros")
def zeros_in_a_list_of_numpy(seq, d):
    t = np.array(
        [[pos / np.power(10000, 2 * (j // 2) / d) for j in range(d)] if pos != 0 else np.zeros(d) for pos in range(seq)]
    )
    t[1:, 0::2] = np.sin(t[1:, 0::2])
    t[1:, 1::2] = np.cos(t[1:, 1::2])
    return torch.from_numpy(t).float()


@published(checks.sinusoidal_positions, "position_zero_left_at_zeros")
def zeros_and_rows_from_one(seq, d):
    t = torch.zeros(seq, d)
    pos = torch.arange(1, seq).float()[:, None]
    a = pos / 10000 ** (torch.arange(0, d, 2) / d)
    t[1:, 0::2] = a.sin()
    t[1:, 1::2] = a[:, : d // 2].cos()
    return t


@published(checks.sinusoidal_positions, "position_zero_left_at_zeros")
def loop_from_one(seq, d):
    t = torch.zeros(seq, d)
    for pos in range(1, seq):
        for j in range(d):
            a = pos / 10000 ** (2 * (j // 2) / d)
            t[pos, j] = math.sin(a) if j % 2 == 0 else math.cos(a)
    return t


@published(checks.sinusoidal_positions, "position_zero_left_at_zeros", "in_float64")
def zeros_in_float64(seq, d):
    t = np.array(
        [[pos / np.power(10000, 2 * (j // 2) / d) for j in range(d)] if pos != 0 else np.zeros(d) for pos in range(seq)]
    )
    t[1:, 0::2] = np.sin(t[1:, 0::2])
    t[1:, 1::2] = np.cos(t[1:, 1::2])
    return torch.from_numpy(t)


@published(checks.sinusoidal_positions, "base_1000")
def base_1000(seq, d):
    a = torch.arange(seq)[:, None] / 1000 ** (torch.arange(0, d, 2) / d)
    t = torch.zeros(seq, d)
    t[:, 0::2] = a.sin()
    t[:, 1::2] = a.cos()[:, : d // 2]
    return t


@published(checks.sinusoidal_positions, "base_1000")
def base_1000_by_exp(seq, d):
    f = torch.exp(torch.arange(0, d, 2) * (-math.log(1000.0) / d))
    a = torch.arange(seq)[:, None] * f
    t = torch.zeros(seq, d)
    t[:, 0::2] = a.sin()
    t[:, 1::2] = a.cos()[:, : d // 2]
    return t


@published(checks.sinusoidal_positions, "base_and_exponent_exchanged")
def exponent_to_the_power_of_1e_4(seq, d):
    e = torch.arange(0, d, 2) / d
    e = e**1e-4
    a = torch.arange(seq)[:, None] * e
    t = torch.zeros(seq, d)
    t[:, 0::2] = a.sin()
    t[:, 1::2] = a.cos()[:, : d // 2]
    return t


@published(checks.sinusoidal_positions, "base_and_exponent_exchanged")
def exponent_by_pow(seq, d):
    h = (d + 1) // 2
    e = torch.pow(torch.arange(h) * 2 / d, 1e-4)
    a = torch.outer(torch.arange(seq).float(), e)
    return torch.stack((a.sin(), a.cos()), -1).flatten(1)[:, :d]


@published(checks.sinusoidal_positions, "base_and_exponent_exchanged")
def exponent_in_loops(seq, d):
    t = torch.zeros(seq, d)
    for p_ in range(seq):
        for j in range(d):
            a = p_ * (2 * (j // 2) / d) ** 1e-4
            t[p_, j] = math.cos(a) if j % 2 else math.sin(a)
    return t


@published(checks.sinusoidal_positions, "last_feature_left_at_zero")
def range_d_minus_one(seq, d):
    t = torch.zeros(seq, d)
    for p_ in range(seq):
        for j in range(d - 1):
            a = p_ / 10000 ** (2 * (j // 2) / d)
            t[p_, j] = math.cos(a) if j % 2 else math.sin(a)
    return t


@published(checks.sinusoidal_positions, "last_sine_left_at_zero")
def range_in_twos_to_d_minus_one(seq, d):
    t = torch.zeros(seq, d)
    for i in range(0, d - 1, 2):
        for p_ in range(seq):
            t[p_, i] = math.sin(p_ / 10000 ** (i / d))
            t[p_, i + 1] = math.cos(p_ / 10000 ** (i / d))
    return t


@published(checks.sinusoidal_positions, "one_sine_too_few")
def arange_to_d_minus_one(seq, d):
    a = torch.arange(seq)[:, None] / 10000 ** (torch.arange(0, d - 1, 2) / d)
    t = torch.zeros(seq, d)
    t[:, 0::2] = a.sin()
    t[:, 1::2] = a.cos()
    return t


@published(checks.sinusoidal_positions, "one_feature_too_few")
def arange_to_d_minus_one_stacked(seq, d):
    a = torch.arange(seq)[:, None] / 10000 ** (torch.arange(0, d - 1, 2) / d)
    return torch.stack((a.sin(), a.cos()), -1).flatten(1)


@published(checks.sinusoidal_positions, "an_odd_width_refused")
def pairs_viewed(seq, d):
    a = torch.arange(seq)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.stack((a.sin(), a.cos()), -1).view(seq, d)


@published(checks.sinusoidal_positions, "complete_pairs_alone_for_reshape")
def complete_pairs_reshaped(seq, d):
    a = torch.arange(seq)[:, None] / 10000 ** (torch.arange(d // 2) * 2 / d)
    return torch.stack((a.sin(), a.cos()), -1).reshape(seq, d)


@published(checks.sinusoidal_positions, "an_odd_width_refused")
def odd_width_asserted(seq, d):
    assert d % 2 == 0
    return checks.sinusoidal_positions.reference(seq, d)


@published(checks.sinusoidal_positions, "an_odd_width_refused")
def odd_width_raised(seq, d):
    if d % 2:
        raise ValueError("even")
    return checks.sinusoidal_positions.reference(seq, d)


@published(checks.sinusoidal_positions, "an_odd_width_refused")
def filled_by_numpy(seq, d):
    t = np.zeros((seq, d), dtype=np.float32)
    a = np.arange(seq)[:, None] / np.power(10000, np.arange(0, d, 2) / d)
    t[:, 0::2] = np.sin(a)
    t[:, 1::2] = np.cos(a)
    return torch.from_numpy(t)


@published(checks.sinusoidal_positions, "an_odd_width_refused")
def filled_by_half(seq, d):
    h = d // 2
    a = torch.arange(seq)[:, None] * torch.exp(torch.arange(h) * (-math.log(10000.0) / h))
    t = torch.zeros(seq, d)
    t[:, 0::2] = a.sin()
    t[:, 1::2] = a.cos()
    return t


@published(checks.sinusoidal_positions, "pairs_minus_one", "in_float64")
def pairs_minus_one_in_numpy(seq, d):
    n = np.arange((d + 1) // 2) / max(d / 2 - 1, 1)
    a = np.arange(seq)[:, None] / 10000**n
    t = np.zeros((seq, d))
    t[:, 0::2] = np.sin(a)
    t[:, 1::2] = np.cos(a)[:, : d // 2]
    return torch.from_numpy(t)


@published(checks.sinusoidal_positions, "exponent_doubled", "in_float64")
def exponent_doubled_in_lists(seq, d):
    return torch.tensor(
        [[(math.cos if j % 2 else math.sin)(q / 10000 ** (4 * (j // 2) / d)) for j in range(d)] for q in range(seq)],
        dtype=torch.float64,
    )


@published(checks.sinusoidal_positions, "base_1000", "in_float64")
def base_1000_in_numpy(seq, d):
    a = np.arange(seq)[:, None] / np.power(1000, 2 * (np.arange(d) // 2) / d)
    a[:, 0::2] = np.sin(a[:, 0::2])
    a[:, 1::2] = np.cos(a[:, 1::2])
    return torch.tensor(a)


@published(checks.sinusoidal_positions, "counted_from_one", "in_float64")
def counted_from_one_in_numpy(seq, d):
    a = np.arange(1, seq + 1)[:, None] / np.power(10000, 2 * (np.arange(d) // 2) / d)
    a[:, 0::2] = np.sin(a[:, 0::2])
    a[:, 1::2] = np.cos(a[:, 1::2])
    return torch.tensor(a)


@published(checks.attention_weights, "heads_summed")
def einsum_bqk(q, k):
    return (torch.einsum("bhqd,bhkd->bqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)


@published(checks.attention_weights, "keys_of_all_heads")
def einsum_bgkd(q, k):
    return (torch.einsum("bhqd,bgkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)


@published(checks.attention_weights, "heads_share_a_table")
def einsum_bqk_with_an_axis(q, k):
    return (torch.einsum("bhqd,bhkd->bqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)[:, None]


@published(checks.attention_weights, "by_fourth_root_of_d")
def query_scaled(q, k):
    return ((q / q.shape[-1] ** 0.25) @ k.mT).softmax(-1)


@published(checks.attention_weights, "by_fourth_root_of_d")
def scores_to_the_minus_quarter(q, k):
    return (q @ k.mT * q.shape[-1] ** -0.25).softmax(-1)


@published(checks.attention_weights, "by_fourth_root_of_d")
def root_of_the_root(q, k):
    return (q @ k.mT / math.sqrt(math.sqrt(q.shape[-1]))).softmax(-1)


@published(checks.attention_weights, "keys_against_queries")
def einsum_bhkq(q, k):
    return (torch.einsum("bhqd,bhkd->bhkq", q, k) / q.shape[-1] ** 0.5).softmax(-1)


@published(checks.attention_weights, "keys_by_queries")
def weights_turned(q, k):
    return (torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1).mT


@published(checks.attention, "heads_share_a_table")
def einsum_bqk_bhkv(q, k, v):
    w = (torch.einsum("bhqd,bhkd->bqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bqk,bhkv->bhqv", w, v)


@published(checks.attention, "heads_share_a_table")
def einsum_bqk_for_all(q, k, v):
    w = (torch.einsum("bhqd,bhkd->bqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return w[:, None] @ v


@published(checks.attention, "heads_added_up")
def einsum_bqv(q, k, v):
    w = (torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhqk,bhkv->bqv", w, v)


@published(checks.attention, "values_of_all_heads")
def einsum_bgkv(q, k, v):
    w = (torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhqk,bgkv->bhqv", w, v)


@published(checks.attention, "keys_of_all_heads")
def einsum_bgkd_in_attention(q, k, v):
    w = (torch.einsum("bhqd,bgkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhqk,bhkv->bhqv", w, v)


@published(checks.attention, "by_fourth_root_of_d")
def query_scaled_in_attention(q, k, v):
    return ((q / q.shape[-1] ** 0.25) @ k.mT).softmax(-1) @ v


@published(checks.attention, "by_fourth_root_of_d")
def scale_of_pytorch(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.25)


@published(checks.attention, "weights_transposed_by_letters")
def einsum_bhkq_bhkv(q, k, v):
    w = (torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhkq,bhkv->bhqv", w, v)


@published(checks.attention, "weights_transposed_by_letters")
def einsum_bhqk_bhqv(q, k, v):
    w = (torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhqk,bhqv->bhkv", w, v)


@published(checks.attention, "keys_against_queries_by_letters")
def scores_bhkq(q, k, v):
    w = (torch.einsum("bhqd,bhkd->bhkq", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhqk,bhkv->bhqv", w, v)


@published(checks.attention, "keys_against_queries")
def scores_bhkq_and_matmul(q, k, v):
    w = (torch.einsum("bhqd,bhkd->bhkq", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return w @ v


@published(checks.attention, "weights_transposed")
def weights_transposed(q, k, v):
    w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return w.transpose(-2, -1) @ v


@published(checks.attention, "no_letter_shared")
def einsum_bhvd(q, k, v):
    w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhqk,bhvd->bhqd", w, v)


@published(checks.attention, "by_root_d_value", "over_queries")
def scaled_by_d_value_over_queries(q, k, v):
    return ((q @ k.mT) / v.shape[-1] ** 0.5).softmax(-2) @ v


@published(checks.attention, "by_root_d_value")
def scaled_by_d_value(q, k, v):
    return ((q @ k.mT) / v.shape[-1] ** 0.5).softmax(-1) @ v


@published(checks.attention, "queries_and_keys_exchanged_for_pytorch")
def key_first_for_pytorch(q, k, v):
    return F.scaled_dot_product_attention(k, q, v)


@published(checks.single_head, "weights_transposed")
def einsum_bkq_bkv(x, a, b, d):
    q, k, v = x @ a, x @ b, x @ d
    w = (torch.einsum("bqd,bkd->bqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bkq,bkv->bqv", w, v)


@published(checks.single_head, "weights_transposed")
def einsum_bqk_bqv(x, a, b, d):
    q, k, v = x @ a, x @ b, x @ d
    w = (torch.einsum("bqd,bkd->bqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bqk,bqv->bkv", w, v)


@published(checks.single_head, "by_fourth_root_of_d")
def query_scaled_in_a_head(x, a, b, d):
    q, k, v = x @ a, x @ b, x @ d
    return ((q * q.shape[-1] ** -0.25) @ k.mT).softmax(-1) @ v


@published(checks.single_head, "by_root_d_value", "over_queries")
def scaled_by_d_value_over_queries_in_a_head(x, a, b, d):
    q, k, v = x @ a, x @ b, x @ d
    return (q @ k.mT / v.shape[-1] ** 0.5).softmax(-2) @ v


@published(checks.single_head, "by_root_d_value")
def scaled_by_d_value_in_a_head(x, a, b, d):
    q, k, v = x @ a, x @ b, x @ d
    return (q @ k.mT / v.shape[-1] ** 0.5).softmax(-1) @ v


@published(checks.single_head, "values_added_back")
def values_added_back(x, a, b, d):
    q, k, v = x @ a, x @ b, x @ d
    return F.scaled_dot_product_attention(q, k, v) + v


@published(checks.multi_head_attention, "one_table_for_all_heads")
def einsum_bqk_in_multi_head(x, a, b, d, o, n):
    q, k, v = (split(x, w, n) for w in (a, b, d))
    w = (torch.einsum("bhqd,bhkd->bqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bqk,bhkd->bqhd", w, v).flatten(2) @ o.T


@published(checks.multi_head_attention, "keys_of_all_heads")
def einsum_bgkd_in_multi_head(x, a, b, d, o, n):
    q, k, v = (split(x, w, n) for w in (a, b, d))
    w = (torch.einsum("bhqd,bgkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhqk,bhkd->bqhd", w, v).flatten(2) @ o.T


@published(checks.multi_head_attention, "values_of_all_heads")
def einsum_bgkd_for_values(x, a, b, d, o, n):
    q, k, v = (split(x, w, n) for w in (a, b, d))
    w = (torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhqk,bgkd->bqhd", w, v).flatten(2) @ o.T


@published(checks.multi_head_attention, "by_fourth_root_of_d")
def fourth_root_in_multi_head(x, a, b, d, o, n):
    q, k, v = (split(x, w, n) for w in (a, b, d))
    return F.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.25).transpose(1, 2).flatten(2) @ o.T


@published(checks.multi_head_attention, "weights_transposed")
def einsum_bhkq_in_multi_head(x, a, b, d, o, n):
    q, k, v = (split(x, w, n) for w in (a, b, d))
    w = (torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhkq,bhkd->bqhd", w, v).flatten(2) @ o.T


@published(checks.multi_head_attention, "read_with_heads_outside")
def merged_with_heads_in_front(x, a, b, d, o, n):
    q, k, v = (split(x, w, n) for w in (a, b, d))
    z = F.scaled_dot_product_attention(q, k, v)
    B, H, L, D = z.shape
    return z.reshape(H, B, L, D).permute(1, 2, 0, 3).reshape(B, L, H * D) @ o.T


@published(checks.multi_head_attention, "heads_and_batch_exchanged_after_a_cut")
def split_with_heads_in_front(x, a, b, d, o, n):
    B, L, E = x.shape
    q, k, v = ((x @ w.T).reshape(n, B, L, E // n).transpose(0, 1) for w in (a, b, d))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2) @ o.T


@published(checks.multi_head_attention, "heads_reversed")
def merged_backwards(x, a, b, d, o, n):
    q, k, v = (split(x, w, n) for w in (a, b, d))
    return F.scaled_dot_product_attention(q, k, v).flip(1).transpose(1, 2).flatten(2) @ o.T


@published(checks.padding_mask, "batch_and_keys_exchanged", "batch_on_the_queries_axis")
def column_of_positions_in_front(lengths, k_len):
    return (torch.arange(k_len)[:, None] < lengths)[None, None]


@published(checks.padding_mask, "batch_and_keys_exchanged")
def column_of_positions(lengths, k_len):
    return (torch.arange(k_len)[:, None] < lengths)[:, None, None]


@published(checks.padding_mask, "one_key_too_many", "batch_and_keys_exchanged")
def column_of_positions_and_one_more(lengths, k_len):
    return (torch.arange(k_len)[:, None] <= lengths)[:, None, None]


@published(checks.padding_mask, "batch_and_keys_exchanged")
def table_turned(lengths, k_len):
    return (torch.arange(k_len) < lengths[:, None]).T.unsqueeze(1).unsqueeze(1)


@published(checks.causal_mask, "upper_triangle")
def lower_triangle_turned(n):
    return torch.ones(n, n).tril().bool().T


@published(checks.causal_mask, "additive_with_a_finite_number")
def minus_100(n):
    return torch.zeros(n, n).masked_fill(torch.ones(n, n).triu(1).bool(), -100.0)


@published(checks.causal_mask, "additive_with_a_finite_number")
def minus_10000_times_the_future(n):
    return torch.ones(n, n).triu(1) * -1e4


@published(checks.causal_mask, "additive_with_a_finite_number")
def lowest_float32(n):
    return torch.full((n, n), torch.finfo(torch.float32).min).triu(1)


@published(checks.to_additive, "lowest_number", "in_float64")
def lowest_of_float64_filled(m):
    return torch.zeros(m.shape, dtype=torch.float64).masked_fill(~m, torch.finfo(torch.float64).min)


@published(checks.to_additive, "lowest_number", "in_float64")
def lowest_of_float64_by_index(m):
    z = torch.zeros(m.shape, dtype=torch.float64)
    z[~m] = torch.finfo(z.dtype).min
    return z


@published(checks.to_additive, "lowest_number", "in_float64")
def lowest_of_float64_by_numpy(m):
    return torch.from_numpy(np.where(m.numpy(), 0.0, np.finfo(float).min))


@published(checks.to_additive, "mask_transposed")
def turned_by_mT(m):
    return torch.zeros(m.shape).masked_fill(~m, -math.inf).mT


@published(checks.to_additive, "mask_transposed")
def turned_by_transpose(m):
    return torch.zeros(m.shape).masked_fill(~m, -math.inf).transpose(-1, -2)


@published(checks.broadcast_shape, "error_of_another_class")
def error_of_own_class(a, b):
    return shape_of_broadcast(a, b, ShapeError)


@published(checks.broadcast_shape, "error_of_another_class")
def error_of_own_runtime_class(a, b):
    return shape_of_broadcast(a, b, IndexingError)


@published(checks.broadcast_shape, "error_of_another_class")
def error_of_runtime_class(a, b):
    return shape_of_broadcast(a, b, RuntimeError)


@published(checks.matmul_shape, "error_of_another_class")
def error_of_own_class_for_a_product(a, b):
    return shape_of_product(a, b, ShapeError)


@published(checks.matmul_shape, "vectors_get_an_axis_in_front")
def vector_padded_in_front(a, b):
    return shape_of_product(a, b, column=False)


@published(checks.matmul_shape, "vectors_get_an_axis_in_front", "added_axes_kept")
def both_padded_as_for_a_sum(a, b):
    n = max(len(a), len(b), 2)
    a = (1,) * (n - len(a)) + tuple(a)
    b = (1,) * (n - len(b)) + tuple(b)
    if a[-1] != b[-2]:
        raise ValueError("inner")
    return (*shape_of_broadcast(a[:-2], b[:-2], ValueError), a[-2], b[-1])


@published(checks.matmul_shape, "vectors_get_an_axis_in_front", "added_axes_kept")
def both_padded_as_rows(a, b):
    if len(a) == 1:
        a = (1, *a)
    if len(b) == 1:
        b = (1, *b)
    if a[-1] != b[-2]:
        raise ValueError("inner")
    return (*shape_of_broadcast(a[:-2], b[:-2], ValueError), a[-2], b[-1])


@published(checks.all_dot_products, "keys_by_queries", "divided_by_the_root")
def exchanged_and_scaled(q, k):
    return k @ q.mT / q.shape[-1] ** 0.5


@published(checks.all_dot_products, "keys_by_queries", "divided_by_the_root")
def exchanged_and_scaled_by_einsum(q, k):
    return torch.einsum("...qd,...kd->...kq", q, k) / math.sqrt(q.shape[-1])


@published(checks.all_dot_products, "summed_over_heads")
def einsum_hqd_hkd(q, k):
    return torch.einsum("...hqd,...hkd->...qk", q, k)


@published(checks.all_dot_products, "keys_of_all_heads")
def einsum_bhqd_bgkd(q, k):
    return torch.einsum("bhqd,bgkd->bhqk", q, k)


@published(checks.softmax, "sum_over_the_last_axis", "changed_in_place")
def maximum_in_place_and_last_axis(x, dim):
    x -= x.amax(dim, keepdim=True)
    e = x.exp()
    return e / e.sum(-1, keepdim=True)


@published(checks.softmax, "changed_in_place")
def maximum_in_place(x, dim):
    x -= x.amax(dim, keepdim=True)
    e = x.exp()
    return e / e.sum(dim, keepdim=True)


@published(checks.softmax, "nothing_subtracted", "changed_in_place")
def exp_in_place(x, dim):
    x.exp_()
    return x / x.sum(dim, keepdim=True)


@published(checks.mend_word_order, "positions_from_the_end", "tokens_scaled")
def last_rows_and_scale(x, pos, a, b, d):
    x = x * x.shape[-1] ** 0.5 + pos[-x.shape[1] :]
    return checks.single_head.reference(x, a, b, d)


@published(checks.mend_word_order, "as_given", "tokens_scaled")
def as_given_and_scale(x, pos, a, b, d):
    x = x * x.shape[-1] ** 0.5 + pos[: x.shape[0], None]
    return checks.single_head.reference(x, a, b, d)


@published(checks.merge_last_two, "merged_in_the_other_order", "all_after_the_first_merged")
def turned_and_all_joined(x):
    return x.mT.reshape(x.shape[0], -1)


@published(checks.merge_last_two, "merged_in_the_other_order", "all_after_the_first_merged")
def turned_and_flattened(x):
    return x.transpose(-1, -2).flatten(1)


@published(checks.merge_last_two, "merged_in_the_other_order")
def turned_and_last_two_joined(x):
    return x.mT.flatten(-2)


@published(checks.mend_columns, "first_tokens_dropped_in_reading_order")
def end_of_the_text_viewed(tokens, batch):
    return tokens[len(tokens) % batch :].view(-1, batch)


@published(checks.mend_columns, "first_tokens_dropped_in_reading_order")
def end_of_the_text_row_by_row(tokens, batch):
    tokens = tokens[len(tokens) % batch :]
    return torch.stack([tokens[i : i + batch] for i in range(0, len(tokens), batch)])


@pytest.mark.parametrize("exercise, function, names", PUBLISHED)
def test_a_published_slip_is_named(exercise, function, names):
    report = diagnose(exercise, function)
    assert set((report.mistake or "").split("+")) == names, report.message


@pytest.mark.parametrize("number", [-2.0, -10.0, -100.0, -1e3, -65504.0, -1e5, -1e6, -1e8, -1e30])
@pytest.mark.parametrize("kind", range(3))
def test_a_finite_number_in_place_of_infinity_is_named(number, kind):
    assert diagnose(checks.to_additive, additive_mask_with(number, kind)).mistake == "finite_number_below_zero"


def additive_mask_with(number, kind):
    return (
        lambda mask: torch.zeros(mask.shape).masked_fill(~mask, number),
        lambda mask: (1 - mask.float()) * number,
        lambda mask: torch.where(mask, 0.0, number),
    )[kind]
