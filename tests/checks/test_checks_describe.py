"""If a function makes no known mistake, its card states nothing false, and shows where to look."""

import math

import pytest
import torch
from torch.nn import functional as F

import transformer_lab as tl
from sampling import every_third
from transformer_lab.checks import steps
from transformer_lab.checks.describe import source_findings
from transformer_lab.checks.diagnose import diagnose
from transformer_lab.checks.exercise import without_braced_text
from transformer_lab.checks.observe import observe
from transformer_lab.checks.probes import Outcomes
from transformer_lab.checks.relation import Case, describe_relation
from transformer_lab.checks.smallest_input import failing_case
from transformer_lab.checks.words import axis_sizes, shortest_distinct

checks = tl.checks


# Errors whose text alone does not identify the mistake


def input_added_to_the_hidden(x, w1, b1, w2, b2):
    return (x @ w1.T + x).relu() @ w2.T + b2


def residual_inside(x, w1, b1, w2, b2):
    h = (x @ w1.T + b1).relu() + x
    return h @ w2.T + b2


def transposed_though_linear_does_it(x, w1, b1, w2, b2):
    return F.linear(F.relu(F.linear(x, w1.T, b1)), w2, b2)


def view_at_the_split(x, w_q, w_k, w_v, w_o, n_heads):
    b, s, _ = x.shape
    q, k, v = ((x @ w.T).transpose(1, 2).view(b, n_heads, s, -1) for w in (w_q, w_k, w_v))
    return checks.merge_heads.reference(tl.scaled_dot_product_attention(q, k, v)) @ w_o.T


def bias_of_the_wrong_map(x, w1, b1, w2, b2):
    return F.relu(x @ w1.t() + b2) @ w2.t() + b1


ERRORS_AND_MISTAKES = [
    (checks.feed_forward, input_added_to_the_hidden, None),
    (checks.feed_forward, residual_inside, None),
    (checks.feed_forward, transposed_though_linear_does_it, "first_weight_transposed_for_linear"),
    (checks.linear, lambda x, weight, bias: F.linear(x, weight.T, bias), None),
    (checks.multi_head_attention, view_at_the_split, None),
    (checks.feed_forward, bias_of_the_wrong_map, "biases_swapped"),
    (checks.linear, lambda x, weight, bias: torch.matmul(x, weight) + bias, "weight_not_transposed"),
]


@pytest.mark.parametrize("exercise, function, mistake", ERRORS_AND_MISTAKES)
def test_a_mistake_is_named_by_what_pytorch_refused_and_not_by_the_text(exercise, function, mistake):
    report = diagnose(exercise, function)
    assert (report.status, report.mistake) == ("error", mistake), report.message


def test_what_pytorch_refused_is_reported_with_its_rule():
    message = diagnose(checks.feed_forward, input_added_to_the_hidden).message
    assert "PyTorch refused `add` of (batch 2, seq 7, d_ff 12) and `x`, (batch 2, seq 7, d_model 5)." in message
    assert "On axis −1, the sizes are 12 and 5." in message
    message = diagnose(checks.linear, lambda x, weight, bias: x @ (2 * weight) + bias).message
    assert "axis of the right factor, but the sizes of these axes differ: 5 and 3." in message


def the_pair_taken_for_a_tensor(x, dim):
    x = x - x.max(dim, keepdim=True)
    return x.exp() / x.exp().sum(dim, keepdim=True)


@pytest.mark.parametrize(
    "exercise, function, message",
    [
        (checks.softmax, the_pair_taken_for_a_tensor, "`.values`"),
        (checks.causal_mask, lambda seq: torch.arange(seq).softmax(0), "but the tensor contains whole numbers"),
        (checks.masked_attention, lambda query, key, value, mask: mask.softmax(-1), "but the tensor contains bools"),
        (checks.masked_attention, lambda query, key, value, mask: value if mask else key, "a single bool"),
    ],
)
def test_some_errors_are_reworded(exercise, function, message):
    assert message in diagnose(exercise, function).message


# The source


def without_the_second_bias(x, w1, b1, w2, b2):
    return (x @ w1.T + b1).relu() @ w2.T * 0.5


def without_both_biases(x, w1, b1, w2, b2):
    return x.relu() @ w1.T @ w2.T


def transposed_and_thrown_away(x, n_heads):
    pieces = x.unflatten(-1, (n_heads, -1))
    pieces.transpose(1, 2)
    return pieces * 2


def test_a_parameter_that_is_never_used_is_reported():
    assert (
        "Your function never uses `b2`. Where does it belong?"
        in diagnose(checks.feed_forward, without_the_second_bias).message
    )
    message = diagnose(checks.feed_forward, without_both_biases).message
    assert "Your function never uses `b1` and `b2`. Where do they belong?" in message


def test_a_result_that_is_thrown_away_is_reported():
    message = diagnose(checks.split_heads, transposed_and_thrown_away).message
    assert "The result of `pieces.transpose(1, 2)` is thrown away" in message
    assert "never uses" not in message


def once_by_address(model):
    counted, count = set(), 0
    addresses = {0}
    for p in model.parameters():
        count += p.numel() * (p.data_ptr() not in counted | addresses)
        counted.add(p.data_ptr())
        addresses.add(p.data_ptr())
    return count, 8 * count


def test_a_set_that_grows_is_no_result_thrown_away():
    assert "thrown away" not in diagnose(checks.mend_model_size, once_by_address).message


def uses_every_result(x, n_heads):
    """A function that stores or returns the result of every call, except for calls that have a side effect."""
    parts = [x]
    parts.sort(key=len)
    x.add_(n_heads)
    torch.add(x, 1, out=x)
    print(x)
    inner = lambda: n_heads  # noqa: E731
    return inner()


def test_a_source_that_is_used_completely_has_no_findings():
    assert source_findings(uses_every_result) == []
    assert source_findings(torch.add) == source_findings(checks.split_heads) == []
    assert source_findings(eval("lambda x: 1")) == []


# The steps


def cosine_distances(query, key):
    return 1 - (query / query.norm(dim=-1, keepdim=True)) @ (key / key.norm(dim=-1, keepdim=True)).T


def scaled_logits(tokens, weights, n_heads, attend):
    return checks.language_model.reference(tokens, weights, n_heads, attend) * weights["table"].shape[1] ** 0.5


def weights_dropped_out(query, key):
    weights = (query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(-1)
    return F.dropout(weights, 0.3)


def loss_in_bits(logits, tokens):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()) / torch.tensor(2.0).log()


def normalized_sum_added(x, parts, norms, final_norm):
    for part, norm in zip(parts, norms):
        x = x + part(norm(x))
    return x + final_norm(x)


def output_before_this_key(state, query, key, value):
    _, output = checks.recurrent_step.reference(state, query, key, value)
    return state, output


ANSWERS_WITH_ALL_STEPS = [
    (checks.mend_cosines, cosine_distances),
    (checks.language_model, scaled_logits),
    (checks.attention_weights, weights_dropped_out),
    (checks.next_token_loss, loss_in_bits),
    (checks.mend_stack, normalized_sum_added),
    (checks.recurrent_step, output_before_this_key),
]


@pytest.mark.parametrize("exercise, function", ANSWERS_WITH_ALL_STEPS)
def test_no_step_is_missing_where_all_are_there(exercise, function):
    found_by_step = steps.find_stages(exercise, function, exercise.probes[0])
    assert list(found_by_step) and all(found_by_step.values()), found_by_step


def halves_of_the_products(x, weight, bias):
    return (x @ weight.T + bias) / 2


def test_a_card_says_that_all_steps_are_there():
    report = diagnose(checks.linear, halves_of_the_products)
    assert "Your function contains all steps of a right answer. It does something else as well" in report.message
    assert report.stage is None


def test_no_low_number_is_taken_for_minus_infinity_where_that_is_asked_for():
    report = diagnose(checks.to_additive, lambda mask: torch.zeros(mask.shape).masked_fill(~mask, -1e20))
    assert (report.stage, report.mistake) == ("filled", "finite_number_below_zero")


def blocks_run_twice(tokens, weights, n_heads, attend):
    return checks.language_model.reference(tokens, weights | {"blocks": 2 * weights["blocks"]}, n_heads, attend)


def features_interleaved(x, weights, n_heads, attend):
    q, k, v = ((x @ weights[name].T).unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2) for name in ("w_q", "w_k", "w_v"))
    return attend(q, k, v).transpose(1, 2).flatten(2) @ weights["w_o"].T


def hidden_then_divided_by_two(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = scores.masked_fill(~mask, float("-inf")).softmax(-1).nan_to_num() / 2
    return (weights * 1.5) @ value


def head_by_head(x, w_q, w_k, w_v, w_o, n_heads):
    parts = []
    for q, k, v in zip(*(w.chunk(n_heads) for w in (w_q, w_k, w_v))):
        scores = (x @ q.T) @ (x @ k.T).transpose(1, 2) / q.shape[0] ** 0.3
        parts.append(scores.softmax(-1) @ (x @ v.T))
    return torch.cat(parts, -1) @ w_o.T


WRONG_BETWEEN_STEPS = [
    (checks.language_model, blocks_run_twice, "through", "last_norm"),
    (checks.self_attention, features_interleaved, "projections", "split"),
    (checks.masked_attention, hidden_then_divided_by_two, "empty_rows", "output"),
    (checks.multi_head_attention, head_by_head, "scores", "scale"),
]


@pytest.mark.parametrize("exercise, function, last_found, first_missing", WRONG_BETWEEN_STEPS)
def test_the_steps_between_which_an_answer_goes_wrong_are_found(exercise, function, last_found, first_missing):
    found_by_step = steps.find_stages(exercise, function, exercise.probes[0])
    missing_index = list(found_by_step.values()).index(False)
    assert list(found_by_step)[missing_index - 1 : missing_index + 1] == [last_found, first_missing]


def attention_in_one_call(query, key, value, mask):
    causal = torch.ones(query.shape[-2], key.shape[-2]).tril().bool()
    return F.scaled_dot_product_attention(query, key, value, causal)


def test_a_card_says_that_no_step_is_found():
    """A fused operation does not show its steps."""
    found_by_step = steps.find_stages(checks.masked_attention, attention_in_one_call, checks.masked_attention.probes[0])
    assert not any(found_by_step.values())
    halved = diagnose(checks.linear, lambda x, weight, bias: x.sum() + bias.expand(*x.shape[:-1], -1))
    assert "Your function contains none of the steps of a right answer. It should begin with *product*" in (
        halved.message
    )


def test_a_card_says_between_which_steps():
    report = diagnose(checks.language_model, blocks_run_twice)
    assert report.stage == "last_norm"
    assert "Found: *through* (run all blocks, each on the result of the one before). Not found: *last norm* (norm" in (
        report.message
    )


@pytest.mark.parametrize("exercise", [pytest.param(e, id=e.name) for e in checks.EXERCISES if e.stages])
def test_every_step_has_a_sentence_that_a_learner_knows(exercise):
    for stage in exercise.stages:
        sentence = steps.describe_step(exercise, stage)
        assert 10 < len(sentence) < 140 and "`" * 2 not in sentence, sentence


# The numbers


def message_of(exercise, function):
    report = diagnose(exercise, function)
    assert report.status == "incorrect"
    return report.message


def loss_not_shifted(logits, tokens):
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def test_the_smallest_input_is_one_that_the_docstring_allows():
    """With one token, there is nothing to predict, and the reference itself returns NaN."""
    for loss in (loss_not_shifted, lambda logits, tokens: F.cross_entropy(logits.mT, tokens, reduction="sum")):
        message = message_of(checks.next_token_loss, loss)
        assert "nan" not in message and "seq 2" in message
    for name in ("halves", "joined_as_halves", "exponent_without_the_two"):
        message = message_of(checks.rotate, checks.rotate.mistakes[name].function)
        assert "d_head 4" in message, "a single pair of features does not show the mistake, and d_head is even"
    assert "d_head 2" in message_of(checks.rotate, lambda x, positions, base: x.flip(-1))


@pytest.mark.parametrize("exercise", every_third(pytest.param(e, id=e.name) for e in checks.EXERCISES if e.sizes))
def test_on_the_smallest_inputs_all_right_answers_agree_and_sizes_are_those_of_the_card(exercise):
    """If a correct answer raises an error or differs from the reference, the docstring does not allow the input."""
    tried_sizes = set()
    for mistake in exercise.mistakes.values():
        outcomes = Outcomes(exercise, mistake.function)
        failing = (n for n, expected in enumerate(exercise.expected) if not outcomes[n].same(expected))
        sizes, probe, _, expected = failing_case(exercise, mistake.function, outcomes, next(failing, 0))
        for word, size in axis_sizes(exercise, probe) if sizes else ():
            assert sizes.get(word, size) == size, f"{mistake.id}: {sizes}"
        if sizes and tuple(sizes.values()) not in tried_sizes:
            tried_sizes.add(tuple(sizes.values()))
            for name, equivalent in exercise.equivalents.items():
                assert observe(exercise, equivalent, probe).same(expected), f"{name} with {sizes}, for {mistake.id}"


def normalizer_with_a_little_added(query, key, value):
    q, k = (checks.elu_feature_map.reference(x) for x in (query, key))
    weights = (q @ k.mT).tril()
    return weights @ value / (weights.sum(-1, keepdim=True) + 1e-4)


def test_nearly_right_is_no_factor():
    assert "the right one times" not in message_of(checks.causal_linear_attention, normalizer_with_a_little_added)
    message = message_of(checks.linear, lambda x, weight, bias: 1.0005 * F.linear(x, weight, bias))
    assert "the right one times" not in message and "All numbers are nearly right" in message


def test_a_factor_is_that_of_the_numbers_shown():
    message = message_of(checks.language_model, scaled_logits)
    assert "Every number is the right one times √d_model." in message
    message = message_of(checks.linear, lambda x, weight, bias: 0.3 * (x @ weight.T + bias))
    assert "Every number is the right one times 0.3." in message
    message = message_of(checks.linear, lambda x, weight, bias: (x @ weight.T + bias) / (x.shape[0] + x.shape[2]))
    assert "Every number is the right one times a factor that changes with the sizes." in message


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda y: torch.cat([-y[:, :1], y[:, 1:]], 1), "The wrong numbers are all at seq 0; the others are right."),
        (lambda y: torch.cat([y[:, :1], y[:, 1:] + 1], 1), "All numbers are wrong, except at seq 0."),
        (lambda y: torch.cat([y[:1], y[1:].exp()]), "The wrong numbers are all at batch 1; the others are right."),
        (lambda y: y.flip(1).flip(2), "These are the right numbers, but in the wrong places."),
        (
            lambda y: y * torch.arange(y.numel()).cos().sign().reshape(y.shape),
            "The wrong numbers differ from the right ones only in sign.",
        ),
        (lambda y: y + y.abs() + 1, "Each wrong number is larger than the right one."),
        (lambda y: y / (2 + y.abs()), "Each wrong number is closer to zero than the right one."),
        (lambda y: y / (y.abs() > 1e9), "Your result contains infinity"),
        (lambda y: y * torch.nan, "Your result contains NaN"),
    ],
)
def test_wrong_numbers_are_described_by_their_positions_and_what_they_have_in_common(wrong, message):
    assert message in message_of(checks.linear, lambda x, weight, bias: wrong(F.linear(x, weight, bias)))


def test_wrong_bools_are_described():
    message = message_of(checks.causal_mask, lambda seq: torch.ones(seq, seq).tril().bool() | (torch.arange(seq) > 5))
    assert "The wrong numbers are all" in message
    every_third_key = lambda seq: torch.ones(seq, seq).tril(-1).bool() | (torch.arange(seq) % 3 == 2)  # noqa: E731
    message = message_of(checks.causal_mask, every_third_key)
    assert "You return `True` where `False` belongs, and `False` where `True` belongs." in message


def test_the_picture_says_which_input_it_shows():
    report = diagnose(checks.causal_mask, lambda seq: torch.ones(seq, seq).tril(-1).bool())
    assert "A table of the result with ordinary input. Filled squares" in report._repr_html_()


def test_an_error_that_is_returned_is_reported():
    def returned(a, b):
        try:
            return checks.broadcast_shape.reference(a, b)
        except ValueError as error:
            return error

    report = diagnose(checks.broadcast_shape, returned)
    assert "each time" not in report.message
    assert "must raise a `ValueError`. It returns an error: use `raise` instead of `return`." in report.message


def test_a_wrong_whole_number_is_compared_with_the_right_one():
    message = message_of(checks.attention_parameters, lambda d_model, bias: d_model + 1)
    assert "Your number is too small for" in message


# Known mistakes that are named even if a learner's function rounds differently from the course's


FREQUENCIES = [  # base^(sign · 2i / d_head) in the forms that people write, always in float32
    lambda base, d, sign: base ** (sign * torch.arange(0, d, 2) / d),
    lambda base, d, sign: torch.exp(sign * torch.arange(0, d, 2).float() * (math.log(base) / d)),
    lambda base, d, sign: 1 / base ** (-sign * torch.arange(0, d, 2).float() / d),
    lambda base, d, sign: torch.tensor([base ** (sign * 2 * i / d) for i in range(d // 2)]),
]


def rotate_with(frequencies, sign=-1, factor=1.0, in_computed_dtype=True):
    def rotate(x, positions, base):
        angle = positions[:, None] * (factor * frequencies(base, x.shape[-1], sign))
        a, b = x[..., 0::2], x[..., 1::2]
        pairs = torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).flatten(-2)
        return pairs if in_computed_dtype else pairs.float()

    return rotate


@pytest.mark.parametrize("frequencies", FREQUENCIES)
def test_angles_in_float32_are_right_and_have_the_names_of_their_mistakes(frequencies):
    assert diagnose(checks.rotate, rotate_with(frequencies)).status == "correct"
    for wrong, mistake in (({"sign": 1}, "base_upside_down"), ({"factor": 2 * math.pi}, "whole_circles")):
        report = diagnose(checks.rotate, rotate_with(frequencies, **wrong))
        assert report.mistake == mistake and "Besides" not in report.message, report.message


def test_a_second_difference_in_float64_is_reported():
    report = diagnose(checks.rotate, rotate_with(FREQUENCIES[0], factor=2 * math.pi, in_computed_dtype=False))
    assert report.mistake == "whole_circles+in_float32" and "whatever the dtype" in report.message
    faster_rotation = rotate_with(lambda base, d, sign: 1.001 * FREQUENCIES[0](base, d, sign), factor=2 * math.pi)
    message = message_of(checks.rotate, faster_rotation)
    assert "2π" not in message, "this is not a difference of rounding"


def test_a_gradient_of_zeros_may_be_missing():
    def cached_step(query, key, value, keys, values, base):
        if keys.shape[-2]:
            return checks.cached_step.reference(query, key, value, keys, values, base)
        _, longer, _ = checks.cached_step.reference(query, key, value, keys, values, base)
        return value, longer, value  # a single key gets all the weight, whatever the query is

    assert diagnose(checks.cached_step, cached_step).status == "correct"
    detached_query = lambda query, *others: checks.cached_step.reference(query.detach(), *others)  # noqa: E731
    assert "no gradient flows" in diagnose(checks.cached_step, detached_query).message


def test_an_error_that_the_card_shows_is_not_reported_twice():
    def merge_heads(x):
        return x.transpose(1, 2).view(x.shape[0], x.shape[2], -1)  # `view` always raises an error; `reshape` never does

    report = diagnose(checks.merge_heads, merge_heads)
    assert report.mistake == "view_after_transpose" and "`RuntimeError`" in report.message
    assert "Besides" not in report.message


# A step with a cache


rotate = checks.rotate.reference


def attend(query, keys, values):
    return (query @ keys.mT / query.shape[-1] ** 0.5).softmax(dim=-1) @ values


def step_with(rotate_new=False, rotate_cached=False, rotate_for_scores=None):
    """Return a step that rotates the new key, all cached keys, or the keys from which scores are computed."""

    def cached_step(query, key, value, keys, values, base):
        position = torch.tensor([keys.shape[-2]])
        keys = torch.cat([keys, rotate(key, position, base) if rotate_new else key], dim=-2)
        values = torch.cat([values, value], dim=-2)
        query = rotate(query, position, base)
        if rotate_cached:
            keys = rotate_cached(keys, base)
        return attend(query, rotate_for_scores(keys, base) if rotate_for_scores else keys, values), keys, values

    return cached_step


def all_rotated(keys, base):
    return rotate(keys, torch.arange(keys.shape[-2]), base)


def all_rotated_alike(keys, base):
    return rotate(keys, torch.tensor([keys.shape[-2] - 1]), base)


def all_but_the_last_rotated(keys, base):
    return torch.cat([all_rotated(keys[:, :, :-1], base), keys[:, :, -1:]], dim=-2)


def last_rotated(keys, base):
    return torch.cat([keys[:, :, :-1], all_rotated(keys, base)[:, :, -1:]], dim=-2)


@pytest.mark.parametrize(
    "function, mistake",
    [
        (step_with(rotate_cached=all_rotated), "cache_rotated_again"),
        (step_with(rotate_new=True, rotate_for_scores=all_rotated), "all_rotated_again_for_scores"),
        (step_with(rotate_new=True, rotate_for_scores=all_but_the_last_rotated), "past_rotated_again_for_scores"),
        (step_with(rotate_new=True, rotate_cached=all_rotated), "all_rotated_again"),
        (step_with(rotate_for_scores=all_rotated), "cache_stored_unrotated"),
        (step_with(rotate_for_scores=last_rotated), "key_stored_unrotated"),
        (step_with(rotate_cached=all_rotated_alike), "rotated_after_appending"),
        (step_with(rotate_new=True, rotate_for_scores=all_rotated_alike), "query_not_rotated"),
        (step_with(rotate_for_scores=all_rotated_alike), "neither_rotated"),
    ],
)
def test_a_mistake_in_the_rotation_of_keys_is_named(function, mistake):
    report = diagnose(checks.cached_step, function)
    assert report.mistake == mistake, report.message


@pytest.mark.parametrize("mistake", ["query_not_rotated", "neither_rotated"])
def test_a_card_says_that_equal_rotations_of_query_and_keys_cancel(mistake):
    """Equal rotations of query and keys give the same result as no rotation: the card must name both cases."""
    text = " ".join(checks.cached_step.mistakes[mistake].text.split())
    assert "all keys by the same position, which changes no score" in text


def test_a_card_says_which_result_it_shows():
    function = step_with(rotate_for_scores=last_rotated)
    assert "In the second result you return `[[[[" in message_of(checks.cached_step, function)
    first_wrong = step_with(rotate_new=True, rotate_for_scores=all_rotated)
    assert "In the first result you return `[[[[" in message_of(checks.cached_step, first_wrong)
    assert "In the" not in message_of(checks.linear, lambda x, weight, bias: x.sum() + bias.expand(*x.shape[:-1], -1))

    def values_turned_round(*arguments):
        blend, keys, values = step_with(rotate_new=True)(*arguments)
        return blend, keys, values.mT

    message = message_of(checks.cached_step, values_turned_round)
    assert "The third result has the shape (batch " in message

    def normalizer_doubled(state, query, key, value):
        (s, z), output = checks.recurrent_step.reference(state, query, key, value)
        return (s, 2 * z + output.sum()), output

    assert "In the second item of the first result you return" in message_of(checks.recurrent_step, normalizer_doubled)


def my_rotate(x, positions, base):
    i = torch.arange(x.shape[-1] // 2)
    angle = positions[:, None] * base ** (-2 * i / x.shape[-1])
    a, b = x[..., 0::2], x[..., 1::2]
    turned = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
    return torch.stack(turned, dim=-1).flatten(-2)


def step_at(position, rotate):
    def cached_step(query, key, value, keys, values, base):
        positions = position(keys.shape[-2])
        keys, values = torch.cat([keys, rotate(key, positions, base)], dim=-2), torch.cat([values, value], dim=-2)
        return attend(rotate(query, positions, base), keys, values), keys, values

    return cached_step


my_rotate.__code__ = my_rotate.__code__.replace(co_name="rotate")  # the name that the function has in the assignment


@pytest.mark.parametrize("rotate", [my_rotate, checks.rotate.reference])
@pytest.mark.parametrize("position, message", [(int, "the number 5"), (torch.tensor, "a tensor of shape ()")])
def test_a_number_in_the_place_of_a_tensor_is_reported(rotate, position, message):
    report = diagnose(checks.cached_step, step_at(position, rotate))
    assert report.status == "error"
    assert f"`rotate` takes a tensor of shape (seq,) as `positions`, but was given {message}." in report.message
    assert "For a single number, pass a tensor of shape (1,)." in report.message
    assert diagnose(checks.cached_step, step_at(lambda place: torch.tensor([place]), rotate)).status == "correct"


def three_made_of_five(x, w1, b1, w2, b2):
    some, one, means = x[0, 0, 3:], x.mean(1)[:, None, :1], x.mean(-1)
    return torch.cat([some, one, means])


def test_axes_are_named_in_arguments_and_where_several_sizes_identify_them():
    """A size alone does not identify an axis of a tensor that the learner made: d_head / 2 may equal the batch size."""
    message = diagnose(checks.cached_step, step_at(int, my_rotate)).message
    assert "There, the shapes are: `x` (batch 3, heads 7, 1, d_head 4), `i` (2)." in message
    message = diagnose(checks.feed_forward, three_made_of_five).message
    assert "`x` (batch 2, seq 7, d_model 5)" in message and "`w1` (d_ff 12, d_model 5)" in message
    assert "`some` (2), `one` (2, 1, 1), `means` (batch 2, seq 7)" in message


def pairs_added_to_the_token(x, positions, base):
    i = torch.arange(3)
    return x + i


def test_a_tensor_of_one_axis_that_is_no_argument_has_no_axis_word():
    message = diagnose(checks.rotate, pairs_added_to_the_token).message
    assert "PyTorch refused `add` of `x`, (batch 3, heads 5, seq 7, d_head 4) and (3)." in message


def test_right_numbers_that_come_too_often_are_reported():
    right = torch.tensor([1.5, 1.5, 2.5, 2.5, 3.5, 3.5])
    case = Case(torch.tensor([1.5, 1.5, 1.5, 2.5, 2.5, 2.5]), right, {})
    assert "some occur too often" in describe_relation(case, case, ["heads"])
    case = Case(torch.tensor([1.5, 1.5, 1.5, 2.5, 2.5, 2.0]), right, {})
    assert "some occur too often" not in describe_relation(case, case, ["heads"])


def pairs_that_fit_by_chance(x, positions, base):
    # starts one feature too late: if d_head is 4, `b` has one number, which broadcasts to two
    a, b = x[..., ::2], x[..., 2::2]
    angle = positions[:, None] * base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).flatten(-2)


def test_a_card_shows_no_smaller_input_on_which_the_shape_is_wrong_as_well():
    message = message_of(checks.rotate, pairs_that_fit_by_chance)
    assert "You return" in message and "shape" not in message


# What a card says about the rest of an answer, and about a second slip


def features(x):
    return F.elu(x) + 1


def read_before_the_update(state, query, key, value):
    S, z = state
    q, k = features(query), features(key)
    output = torch.einsum("bhd,bhdv->bhv", q, S) / ((q * z).sum(-1, keepdim=True) + 1e-6)
    return (S + k[..., None] * value[..., None, :], z + k), output


def divided_by_the_old_z(state, query, key, value):
    S, z = state
    q, k = features(query), features(key)
    S = S + k[..., None] * value[..., None, :]
    output = torch.einsum("bhd,bhdv->bhv", q, S) / ((q * z).sum(-1, keepdim=True) + 1e-6)
    return (S, z + k), output


def real_keys_hidden(query, key, value, key_mask):
    q, k = features(query), features(key).masked_fill(key_mask.mT, 0.0)
    return (q @ (k.mT @ value)) / (q @ k.sum(-2).unsqueeze(-1) + 1e-6)


def last_axes_of_both_shapes(left, right):
    if left[-1] != right[-1]:
        raise ValueError("sizes differ")
    return torch.broadcast_shapes(left[:-2], right[:-2]) + left[-2:-1] + (right[-1:] if len(right) > 1 else ())


def strides_in_a_tensor(shape):
    return torch.tensor([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])


@pytest.mark.parametrize(
    "exercise, function, mistake",
    [
        (checks.recurrent_step, read_before_the_update, "read_before_the_token"),
        (checks.recurrent_step, divided_by_the_old_z, "z_read_before_the_token"),
        (checks.mend_padding, real_keys_hidden, None),
        (checks.matmul_shape, last_axes_of_both_shapes, "last_axes_of_both"),
        (checks.strides_of, strides_in_a_tensor, "not_a_tuple"),
    ],
)
def test_a_guard_or_another_form_of_the_same_slip_is_not_reported_as_a_second_slip(exercise, function, mistake):
    report = diagnose(exercise, function)
    assert report.mistake and report.mistake == (mistake or report.mistake), report.mistake
    assert "Besides" not in report.message, report.message


def no_scale_and_no_score_above_50(query, key):
    scores = query @ key.mT
    return scores.masked_fill(scores > 50, 0.0).softmax(-1)


def test_a_second_slip_is_reported_where_the_first_is_wrong_as_well():
    message = message_of(checks.attention_weights, no_scale_and_no_score_above_50)
    assert "The scale is missing" in message and "with scores of more than a hundred, your function goes" in message


@pytest.mark.parametrize(
    "exercise, mistakes, false_claim",
    [
        (checks.attention_weights, "no_scale+over_queries", "Every row still sums to one"),
        (checks.attention_weights, "times_root_d+over_heads", "One key gets nearly all the weight"),
    ],
)
def test_claims_about_the_rest_are_left_out_beside_a_second_slip(exercise, mistakes, false_claim):
    ids = tuple(mistakes.split("+"))
    report = diagnose(exercise, exercise.combined_function([exercise.mistakes[id] for id in ids]))
    assert set(report.mistake.split("+")) == set(ids), report.mistake
    messages = [
        " ".join(text.split())
        for text in (report.message, diagnose(exercise, exercise.mistakes[ids[0]].function).message)
    ]
    assert false_claim not in messages[0] and false_claim in messages[1]


def inverted_with_axes(seq):
    return torch.ones(1, 1, seq, seq).triu(1).bool()


def no_diagonal_in_whole_numbers(seq):
    return torch.ones(seq, seq).tril(-1).long()


@pytest.mark.parametrize("function", [inverted_with_axes, no_diagonal_in_whole_numbers])
def test_a_triangle_with_another_slip_is_not_called_right(function):
    message = message_of(checks.causal_mask, function)
    assert "Two things go wrong here." in message and "The triangle is right" not in message, message


def test_braces_mark_claims_about_the_rest():
    text = "{The heads are right, but} they are sorted. Each is {right and} in the wrong place.\n{It would work.} Why?"
    assert without_braced_text(text) == "They are sorted. Each is in the wrong place.\nWhy?"
    mistake = checks.merge_last_two.mistakes["axes_swapped_back"]
    assert mistake.text.startswith("The shape is right, but the numbers are scrambled")
    assert mistake.text_beside_another.startswith("The numbers are scrambled")


def test_one_slip_with_key_and_query_is_reported_once():
    exercise = checks.mend_cosines
    ids = "root_forgotten", "root_forgotten_of_queries"
    message = message_of(exercise, exercise.combined_function([exercise.mistakes[id] for id in ids]))
    assert message.startswith("You made the same mistake twice: the following is true of both *key* and *query*.")
    assert message.count("without the root") == 1 and "Two things" not in message


def weights_of_hidden_keys_made_small(query, key, value, mask):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    weights = torch.where(mask, weights, weights * 1e-4)
    return (weights / weights.sum(-1, keepdim=True)).masked_fill(~mask.any(-1, keepdim=True), 0) @ value


def test_numbers_that_a_leak_makes_nearly_right_are_not_put_down_to_an_eps():
    message = message_of(checks.masked_attention, weights_of_hidden_keys_made_small)
    assert "Change the values that a query must not see, and its output" in message and "nearly right" not in message


@pytest.mark.parametrize(
    "masked", [lambda scores, mask: scores * mask, lambda scores, mask: scores.masked_fill(mask, -1e30)]
)
def test_the_output_of_a_query_that_sees_nothing_is_not_explained_beside_another_slip(masked):
    function = lambda query, key, value, mask: (  # noqa: E731
        masked(query @ key.mT / query.shape[-1] ** 0.5, mask).softmax(-1) @ value
    )
    message = message_of(checks.masked_attention, function)
    assert "still gets an output" in message and "one large negative number" not in message


def bits_taken_for_bytes(n_layers, d_model, seq, batch, bytes_per_value):
    return 2 * n_layers * d_model * 4 * seq * batch // 8


def test_a_number_that_has_several_causes_names_them_all():
    message = " ".join(message_of(checks.kv_cache_bytes, bits_taken_for_bytes).split())
    assert "or does another factor cancel your 2 for keys and values?" in message
    assert "are forgotten" not in message and "You count numbers" not in message


def loss_shifted_twice(logits, tokens):
    predictions, targets = logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
    return F.cross_entropy(predictions[:-1], targets[1:])


def without_token_0_by_sentence(logits, tokens):
    losses = F.cross_entropy(logits[:, :-1].mT, tokens[:, 1:], reduction="none")
    counted = tokens[:, 1:] != 0
    return ((losses * counted).sum(1) / counted.sum(1)).mean()


@pytest.mark.parametrize("function", [loss_shifted_twice, without_token_0_by_sentence])
def test_the_smallest_input_shows_a_finite_number_where_it_can(function):
    assert "nan" not in message_of(checks.next_token_loss, function)


def test_beside_an_axis_too_many_a_card_says_whether_the_numbers_are_right():
    steeper = lambda seq: (torch.arange(seq)[:, None] >= 2 * torch.arange(seq))[None]  # noqa: E731
    assert "Apart from axes of size 1, " in message_of(checks.causal_mask, steeper)
    axis_in_front = lambda query, key, value: checks.attention.reference(query, key, value)[None]  # noqa: E731
    assert "Apart from that, your results are right." in message_of(checks.attention, axis_in_front)
    doubled = lambda logits, tokens: 2 * checks.next_token_loss.reference(logits, tokens)[None, None]  # noqa: E731
    assert "The number in your result is wrong as well" in message_of(checks.next_token_loss, doubled)


@pytest.mark.parametrize(("error", "is_nearly_right"), [(1e-3, True), (0.01, False), (0.1, False)])
def test_numbers_are_nearly_right_only_within_a_fraction_of_a_percent(error, is_nearly_right):
    expected = torch.tensor([[0.3, -0.5], [0.8, 1.0], [-0.9, 0.4]])
    actual = expected + error * torch.tensor([[1.0, -0.4], [0.3, 0.8], [-0.7, 0.6]])
    sizes = {"seq": 3, "d_head": 2}
    sentence = describe_relation(Case(actual, expected, sizes), Case(actual, expected, sizes), ["seq", "d_head"])
    assert ("nearly right" in sentence) == is_nearly_right


@pytest.mark.parametrize(
    ("first_value", "second_value", "expected"),
    [
        (0.25, 0.5, (0.25, 0.5)),
        (0.12345612345, 0.12345712345, (0.123456, 0.123457)),
        (1.00000012345, 1.00000022345, (1.000000123, 1.000000223)),
        (0.1, 0.30000000000000004 - 0.2, (0.1, 0.30000000000000004 - 0.2)),
    ],
)
def test_two_numbers_are_shown_with_the_digits_in_which_they_differ(first_value, second_value, expected):
    assert shortest_distinct(first_value, second_value) == expected
