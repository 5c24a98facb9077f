"""A known mistake is named even in code that differs from the mistake's own code, and correct answers pass."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import transformer_lab as tl
from transformer_lab.checks.diagnose import diagnose

checks = tl.checks

# A table or a loop of fixed length, which is right only for short inputs


def mask_from_a_table_of(rows):
    def answer(seq):
        return torch.tril(torch.ones(rows, rows)).view(1, 1, rows, rows)[0, 0, :seq, :seq] == 1

    return answer


def positions_from_a_table_of(rows):
    def answer(seq, d_model):
        table = torch.zeros(rows, d_model)
        position = torch.arange(rows).unsqueeze(1)
        factors = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        table[:, 0::2] = torch.sin(position * factors)
        table[:, 1::2] = torch.cos(position * factors[: d_model // 2])
        return table[:seq]

    return answer


def positions_in_a_loop_to_64(seq, d_model):
    return torch.cat([positions_from_a_table_of(64)(min(seq, 64), d_model), torch.zeros(max(seq - 64, 0), d_model)])


def rotated_by_a_table_of(rows):
    def answer(x, positions, base):
        speeds = base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
        angle = torch.outer(torch.arange(rows), speeds)[positions].to(x.dtype)
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2)

    return answer


def padding_mask_of_at_most_128_keys(lengths, k_len):
    return torch.tensor([[j < n for j in range(min(k_len, 128))] for n in lengths.tolist()])[:, None, None]


def decoder_masks_from_a_buffer(target_lengths, source_lengths, t_len, s_len):
    own_mask = torch.ones(100, 100, dtype=torch.bool).tril()[:t_len, :t_len]
    return own_mask & checks.padding_mask.reference(target_lengths, t_len), checks.padding_mask.reference(
        source_lengths, s_len
    )


def causal_attention_with_a_buffer(query, key, value):
    weights = (F.elu(query) + 1) @ (F.elu(key) + 1).mT
    seq = query.shape[-2]
    weights = weights.masked_fill(torch.ones(256, 256).tril()[:seq, :seq] == 0, 0)
    return weights @ value / weights.sum(-1, keepdim=True)


def embedding_with_a_table(tokens, table):
    return table[tokens] + checks.sinusoidal_positions.reference(5000, table.shape[1])[: tokens.shape[1]].to(table)


def model_of_128_positions(tokens, weights, n_heads, attend):
    assert tokens.shape[1] <= 128, "too long"
    return checks.language_model.reference(tokens, weights, n_heads, attend)


def average_with_a_table(x, lengths):
    real = (torch.arange(256) < lengths[:, None])[:, : x.shape[1], None]
    return (x * real).sum(1) / lengths[:, None]


def step_with_a_table(query, key, value, keys, values, base):
    table = torch.arange(128)
    position = table[keys.shape[2]].reshape(1)
    keys = torch.cat([keys, checks.rotate.reference(key, position, base)], 2)
    values = torch.cat([values, value], 2)
    return F.scaled_dot_product_attention(checks.rotate.reference(query, position, base), keys, values), keys, values


FIXED_LENGTH_ANSWERS = [
    *((checks.causal_mask, mask_from_a_table_of(rows)) for rows in (12, 32, 64, 256)),
    *((checks.sinusoidal_positions, positions_from_a_table_of(rows)) for rows in (16, 64, 5000)),
    (checks.sinusoidal_positions, positions_in_a_loop_to_64),
    *((checks.rotate, rotated_by_a_table_of(rows)) for rows in (24, 2048, 4096)),
    (checks.padding_mask, padding_mask_of_at_most_128_keys),
    (checks.decoder_masks, decoder_masks_from_a_buffer),
    (checks.causal_linear_attention, causal_attention_with_a_buffer),
    (checks.embed, embedding_with_a_table),
    (checks.language_model, model_of_128_positions),
    (checks.mend_sentence_vectors, average_with_a_table),
    (checks.cached_step, step_with_a_table),
]


@pytest.mark.parametrize("exercise, answer", FIXED_LENGTH_ANSWERS)
def test_a_fixed_length_is_named(exercise, answer):
    report = diagnose(exercise, answer)
    assert report.mistake and "something in it has a fixed length" in report.message, report.message
    assert "Besides" not in report.message


def test_the_card_shows_how_many_rows_a_fixed_table_has():
    assert "(32, 32)" in diagnose(checks.causal_mask, mask_from_a_table_of(32)).message
    assert "with size 2048" in diagnose(checks.rotate, rotated_by_a_table_of(2048)).message


def test_endless_recursion_on_long_input_is_not_named_a_fixed_length():
    def calls_itself(seq):
        if seq > 60:
            return calls_itself(seq)
        return checks.causal_mask.reference(seq)

    assert diagnose(checks.causal_mask, calls_itself).mistake is None


def test_new_tokens_returned_without_the_prompt_are_named():
    def answer(model, tokens, max_new_tokens, stop):
        for _ in range(max_new_tokens):
            token = model(tokens[:, -128:])[:, -1].argmax(-1, keepdim=True)
            if token == stop:
                break
            tokens = torch.cat([tokens, token], 1)
        return tokens

    def new_tokens_alone(model, tokens, max_new_tokens, stop):
        return answer(model, tokens, max_new_tokens, stop)[:, tokens.shape[1] :]

    assert diagnose(checks.mend_writing, new_tokens_alone).mistake == "last_tokens_alone"


# A float where an int is expected

FLOAT_ANSWERS = [
    (checks.flat_offset, lambda index, strides: float(sum(i * s for i, s in zip(index, strides)))),
    (checks.attention_parameters, lambda d, bias: 4.0 * d * (d + bias)),
    (checks.attention_flops, lambda seq, d: 8 * seq * seq * d / 2),
    (checks.kv_cache_bytes, lambda layers, d, seq, batch, size: 2.0 * layers * d * seq * batch * size),
    (checks.kv_cache_bytes, lambda layers, d, seq, batch, size: 16 * layers * d * seq * batch * size / 8),
    (checks.gpt2_parameters, lambda *sizes: checks.gpt2_parameters.reference(*sizes) / 1),
    (checks.block_parameters, lambda d, d_ff, bias: np.float64(checks.block_parameters.reference(d, d_ff, bias))),
    (checks.strides_of, lambda shape: tuple(math.prod(shape[i:]) / n for i, n in enumerate(shape))),
    (checks.mend_model_size, lambda model: [float(n) for n in checks.mend_model_size.reference(model)]),
]


@pytest.mark.parametrize("exercise, answer", FLOAT_ANSWERS)
def test_a_float_in_place_of_an_int_is_named(exercise, answer):
    report = diagnose(exercise, answer)
    assert (report.status, report.mistake) == ("incorrect", "as_float"), report.message


@pytest.mark.parametrize(
    "exercise, answer, other_mistake",
    [
        (checks.attention_parameters, lambda d, bias: 3.0 * d * (d + bias), "no_output_projection"),
        (checks.attention_flops, lambda seq, d: 4 * seq * seq * d / 2, "half_of_the_work"),
        (checks.strides_of, lambda shape: [math.prod(shape[i:]) / 1 for i in range(len(shape))], "own_size_included"),
    ],
)
def test_a_float_and_another_mistake_are_both_named(exercise, answer, other_mistake):
    assert set(diagnose(exercise, answer).mistake.split("+")) == {"as_float", other_mistake}


@pytest.mark.parametrize(
    "exercise, answer",
    [
        (checks.flat_offset, lambda index, strides: np.dot(np.array(index, int), np.array(strides, int))),
        (checks.attention_parameters, lambda d, bias: torch.tensor(4 * d * (d + bias))),
        (checks.strides_of, lambda shape: list(torch.empty(shape).stride())),
        (checks.broadcast_shape, lambda a, b: list(checks.broadcast_shape.reference(a, b))),
        (checks.matmul_shape, lambda a, b: list(checks.matmul_shape.reference(a, b))),
        (checks.unpack_projection, lambda weight: list(weight.chunk(3))),
    ],
)
def test_integers_of_numpy_and_torch_and_lists_for_tuples_are_right(exercise, answer):
    report = diagnose(exercise, answer)
    assert report.status == "correct", report.message


# Correct answers that change an intermediate result in place


def block_with_sums_in_place(x, attention, feed_forward, norm1, norm2):
    y = attention(norm1(x))
    y += x
    z = feed_forward(norm2(y))
    z.add_(y)
    return z


def stack_with_sums_in_place(x, parts, norms, final_norm):
    for i in range(len(parts)):
        change = parts[i](norms[i](x))
        change += x
        x = change
    return final_norm(x)


def stack_that_doubles(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = part(norm(x))
        x = x + x
    return final_norm(x)


def test_the_result_of_a_part_must_not_be_changed_in_place():
    assert diagnose(checks.decoder_block, block_with_sums_in_place).status == "incorrect"
    assert diagnose(checks.mend_stack, stack_with_sums_in_place).mistake == "result_of_a_part_changed"
    assert diagnose(checks.mend_stack, stack_that_doubles).mistake == "result_of_the_part_doubled"


# Correct answers for which the two features of a pair must be adjacent in memory


def rotary_as_in_llama(x, positions, base):
    speeds = 1.0 / (base ** (torch.arange(0, x.shape[-1], 2)[: x.shape[-1] // 2].float() / x.shape[-1]))
    angle = torch.outer(positions, speeds).float()
    turns = torch.polar(torch.ones_like(angle), angle).view(1, 1, len(positions), -1)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(3).type_as(x)


def step_as_in_llama(query, key, value, keys, values, base):
    position = torch.tensor([keys.shape[2]])
    keys, values = torch.cat([keys, rotary_as_in_llama(key, position, base)], 2), torch.cat([values, value], 2)
    return F.scaled_dot_product_attention(rotary_as_in_llama(query, position, base), keys, values), keys, values


@pytest.mark.parametrize(
    "exercise, answer", [(checks.rotate, rotary_as_in_llama), (checks.cached_step, step_as_in_llama)]
)
def test_rotating_with_view_as_complex_is_right(exercise, answer):
    report = diagnose(exercise, answer)
    assert report.status == "correct", report.message


def test_exercises_that_allow_view_as_complex_still_try_non_contiguous_input():
    for exercise in (checks.rotate, checks.cached_step):
        non_contiguous_probe = next(probe for probe in exercise.probes if probe.name == "input that is not contiguous")
        assert not any(
            x.is_contiguous() for x in non_contiguous_probe.arguments if isinstance(x, torch.Tensor) and x.ndim == 4
        )


# Masks with a finite number instead of −∞


def attend(scores, value, mask):
    return scores.softmax(-1).masked_fill(~mask.any(-1, keepdim=True), 0) @ value


def masked_fill_with(number):
    def answer(query, key, value, mask):
        scores = query @ key.mT / query.shape[-1] ** 0.5
        return attend(scores.masked_fill(~mask, number), value, mask)

    return answer


def mask_added_times(number):
    def answer(query, key, value, mask):
        return attend(query @ key.mT / query.shape[-1] ** 0.5 + ~mask * number, value, mask)

    return answer


def largest_score_clamped_at(number):
    def answer(query, key, value, mask):
        scores = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
        exponentials = (scores - scores.amax(-1, keepdim=True).clamp(min=number)).exp()
        return (exponentials / exponentials.sum(-1, keepdim=True)).masked_fill(~mask.any(-1, keepdim=True), 0) @ value

    return answer


def rows_emptied_below(number):
    def answer(query, key, value, mask):
        scores = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask, -1e30)
        return scores.softmax(-1).masked_fill(scores.amax(-1, keepdim=True) < number, 0) @ value

    return answer


def exponentials_without_shift(query, key, value, mask):
    exponentials = (query @ key.mT / query.shape[-1] ** 0.5).exp() * mask
    return (exponentials / exponentials.sum(-1, keepdim=True)).masked_fill(~mask.any(-1, keepdim=True), 0) @ value


@pytest.mark.parametrize("masked", [masked_fill_with, mask_added_times])
@pytest.mark.parametrize("number", [-20.0, -50.0, -100.0, -300.0, -1e3, -2000.0, -5000.0, -1e4, -65504.0, -1e5])
def test_a_mask_value_too_small_to_hide_is_named(masked, number):
    report = diagnose(checks.masked_attention, masked(number))
    assert report.mistake and "Hidden keys get a fixed number" in report.message, report.message
    assert "Besides" not in report.message and "Two things" not in report.message


def test_minus_ten_is_a_separate_mistake():
    assert diagnose(checks.masked_attention, masked_fill_with(-10.0)).mistake == "minus_ten"
    assert diagnose(checks.masked_attention, mask_added_times(-10.0)).mistake == "plus_minus_10"


@pytest.mark.parametrize("masked", [masked_fill_with, mask_added_times])
@pytest.mark.parametrize("number", [-1e9, -1e20, torch.finfo(torch.float32).min])
def test_a_mask_value_far_below_any_score_is_right(masked, number):
    report = diagnose(checks.masked_attention, masked(number))
    assert report.status == "correct", report.message


@pytest.mark.parametrize(
    "answer", [*map(largest_score_clamped_at, (-100.0, -1e4, -1e5)), *map(rows_emptied_below, (-1e4, -1e5))]
)
def test_vanishing_rows_of_low_scores_are_named(answer):
    report = diagnose(checks.masked_attention, answer)
    assert report.mistake == "rows_of_low_scores_vanish", report.message


def test_an_overflow_is_not_named_vanishing_rows():
    assert diagnose(checks.masked_attention, exponentials_without_shift).mistake == "overflow"


def test_beside_a_mistake_with_a_sign_the_card_says_what_else_is_wrong():
    def answer(query, key, value, mask):
        return (query @ key.mT / query.shape[-1] ** 0.5 + ~mask * -65504.0).softmax(-1) @ value

    report = diagnose(checks.masked_attention, answer)
    assert report.mistake == "plus_minus_10000"
    assert (
        "Besides, with queries that may not see any key, your function goes wrong in a different way." in report.message
    )


@pytest.mark.parametrize("number", [-5.0, -100.0, -1e3, -65504.0, -1e5, -1e8, -1e20])
def test_an_additive_mask_with_a_finite_number_is_named(number):
    report = diagnose(checks.to_additive, lambda mask: (1 - mask.float()) * number)
    assert report.mistake == "finite_number_below_zero", report.message


# Parts of a packed weight


def split_by_heads(n_heads):
    def answer(weight):
        d_model = weight.shape[1]
        if d_model % n_heads:
            return weight.chunk(3)
        return [part.reshape(d_model, d_model) for part in weight.view(n_heads, 3, -1, d_model).unbind(1)]

    return answer


@pytest.mark.parametrize("n_heads", [2, 3, 4, 5, 6, 8, 12])
def test_a_weight_split_head_by_head_is_named(n_heads):
    assert diagnose(checks.unpack_projection, split_by_heads(n_heads)).mistake == "head_by_head"


@pytest.mark.parametrize(
    "answer, mistake",
    [
        (lambda weight: weight.split(weight.shape[1])[0], "queries_alone"),
        (lambda weight: weight[-weight.shape[1] :], "values_alone"),
        (lambda weight: (weight[: weight.shape[1]],), "keys_and_values_missing"),
        (lambda weight: weight.split(weight.shape[1])[1:], "queries_missing"),
        (lambda weight: weight.split([weight.shape[1], 2 * weight.shape[1]]), "keys_and_values_together"),
        (lambda weight: weight.split([2 * weight.shape[1], weight.shape[1]]), "queries_and_keys_together"),
        (lambda weight: weight.T.tensor_split(3)[0].T, "first_columns_alone"),
    ],
)
def test_a_wrong_part_of_a_packed_weight_is_named(answer, mistake):
    assert diagnose(checks.unpack_projection, answer).mistake == mistake
