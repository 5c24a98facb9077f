"""Tests of what chapter 8 states; for example, softmax attention recalls more than linear attention from every seed."""

import re
from itertools import pairwise

import nbformat
import pytest
import torch

import notebooks
import transformer_lab as tl
from chapter_code import ALL_SEEDS, SEEDS, chapter_code

CONSTANTS = {"n_keys", "n_values", "n_questions", "pairs"}


@pytest.fixture(scope="module")
def chapter():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # operations on small tensors are faster with one thread
    yield chapter_code("08_linear_attention", CONSTANTS)
    torch.set_num_threads(threads)


@pytest.mark.parametrize("seed", SEEDS)
def test_softmax_attention_recalls_more_than_linear_attention_from_every_seed(chapter, seed):
    softmax = chapter["accuracy"](chapter["train"](tl.MultiHeadAttention, 16, seed))
    linear = chapter["accuracy"](chapter["train"](tl.LinearAttention, 16, seed))
    assert (softmax > 0.99).all()
    assert (linear < 0.95).all() and linear[-1] < 0.25
    assert (linear.diff() < 0).all()  # with more pairs, fewer answers are right


slow = pytest.mark.skipif(not ALL_SEEDS, reason="takes a long time: `make claims` runs this test")


@slow
@pytest.mark.parametrize("seed", [0, 1, 2, 5, 6, 7])
def test_more_steps_do_not_close_the_gap(chapter, seed):
    assert chapter["accuracy"](chapter["train"](tl.LinearAttention, 16, seed, steps=2000))[-1] < 0.25


@slow
@pytest.mark.parametrize("seed", SEEDS)
def test_features_and_width_recall_more_together_than_each_alone(chapter, seed):
    """With 64 pairs, many features are more accurate than a large width, and both together are the most accurate."""
    configurations = (chapter["few_features"], 64), (chapter["many_features"], 16), (tl.LinearAttention, 64)
    accuracy_of_width, accuracy_of_features, accuracy_of_both = (
        chapter["accuracy"](chapter["train"](*configuration, seed)) for configuration in configurations
    )
    assert 0.2 < accuracy_of_width[-1] < 0.45 < accuracy_of_features[-1] < 0.75
    assert (accuracy_of_both > 0.95).all()


def test_both_models_have_the_same_parameters(chapter):
    shapes = [
        {name: x.shape for name, x in chapter["Recall"](attention, 16).named_parameters()}
        for attention in (tl.MultiHeadAttention, tl.LinearAttention)
    ]
    assert shapes[0] == shapes[1]


def test_a_model_that_has_hardly_trained_recalls_nothing(chapter):
    accuracy = chapter["accuracy"](chapter["train"](tl.MultiHeadAttention, 16, seed=0, steps=20))
    assert (accuracy < 0.25).all()


def test_the_delta_rule_keeps_its_last_pairs_and_has_overwritten_the_first(chapter):
    """An empty state has an error of 1; a value that is unrelated to the correct one has an error of 2."""
    generator = torch.Generator().manual_seed(0)
    key = torch.nn.functional.normalize(torch.randn(200, 64, 16, generator=generator), dim=-1)
    value = torch.randn(200, 64, 16, generator=generator)
    S = torch.zeros(200, 16, 16)
    for k, v in zip(key.unbind(1), value.unbind(1)):
        S = chapter["delta"](S, k, v)
    error = (key @ S - value).square().mean((0, 2))
    assert error[-1] < 1e-6 and error[-4:].mean() < 0.4 and (error[:16] > 1.7).all()


def test_the_delta_rule_is_a_step_of_gradient_descent(chapter):
    S, k, v = torch.randn(4, 3, requires_grad=True), torch.randn(4), torch.randn(3)
    ((S.T @ k - v).square().sum() / 2).backward()
    torch.testing.assert_close(chapter["delta"](S, k, v, beta=0.3), S - 0.3 * S.grad)


def test_the_gated_delta_rule_is_the_gate_or_the_delta_rule_if_the_other_is_off(chapter):
    S, k, v, alpha = torch.randn(4, 3), torch.randn(4), torch.randn(3), torch.rand(4)
    torch.testing.assert_close(chapter["gated_delta"](S, k, v, torch.ones(4)), chapter["delta"](S, k, v))
    gated = chapter["gate"](torch.zeros(4, 3), k, v, alpha)
    torch.testing.assert_close(chapter["gated_delta"](S, k, v, torch.zeros(4)), gated)


@pytest.mark.parametrize(
    "squared_norm, error_grows", [(0.5, False), (1.0, False), (1.9, False), (2.1, True), (4.0, True)]
)
def test_a_key_with_too_large_a_norm_makes_the_error_grow(chapter, squared_norm, error_grows):
    """The error after a write is (1 - β|k|²) times the error before the write."""
    key, value = squared_norm**0.5 * torch.tensor([0.6, 0.8]), torch.tensor([1.0])
    S, errors = torch.zeros(2, 1), []
    for _ in range(20):
        errors.append(1 - (key @ S).item())
        S = chapter["delta"](S, key, value)
    for before, after in pairwise(errors):
        assert after == pytest.approx((1 - squared_norm) * before, abs=1e-4 * abs(errors[-1]) + 1e-5)
    assert (abs(errors[-1]) > 1) == error_grows


def test_elu_plus_one_is_zero_far_below_zero_but_the_packages_map_is_not():
    x = torch.tensor([-16.0, -18.0, -87.0])
    assert (torch.nn.functional.elu(x) + 1 > 0).tolist() == [True, False, False]
    assert (tl.elu_feature_map(x) > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_weights_on_the_diagonal_sum_to_at_most_the_number_of_features(seed):
    """The bound of section 8.8 holds for any positive features of 64 queries and keys, even of very different sizes."""
    generator = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(64, 16, generator=generator).mul(seed).exp() for _ in range(2))
    weights = (q @ k.T) / (q @ k.T).sum(dim=-1, keepdim=True)
    assert weights.trace() <= 16 + 1e-3


def read_state(state, features):
    S, z = state
    return (features @ S).item(), (features @ z).item()


def both_orders(chapter):
    n, width = 1000, 100
    q, k, v = (torch.empty(n, width, device="meta") for _ in range(3))
    first = chapter["multiply_adds"](lambda: (q @ k.T) @ v)
    second = chapter["multiply_adds"](lambda: q @ (k.T @ v))
    return [f"{first // 10**6} million", f"{second // 10**6} million", "above $N = 100$"]


def one_more_feature(chapter):
    q, k = torch.randn(4, 2), torch.randn(4, 2)
    features = [torch.cat([chapter["squares"](x), torch.ones(4, 1)], dim=-1) for x in (q, k)]
    torch.testing.assert_close(features[0] @ features[1].T, (q @ k.T) ** 2 + 1)
    return ["a fourth feature that is always 1"]


def another_query(chapter):
    numerator, denominator = read_state((torch.tensor([23.0, 49.0]), torch.tensor([3.0, 4.0])), torch.ones(2))
    return [f"{numerator:.0f}/{denominator:.0f}, about {numerator / denominator:.1f}"]


def third_token(chapter):
    key, value = torch.tensor([1.0, 0.0]), 6.0
    state = torch.tensor([23.0, 49.0]) + key * value, torch.tensor([3.0, 4.0]) + key
    numerator, denominator = read_state(state, torch.tensor([1.0, 2.0]))
    rounded_state = [", ".join(f"{x:.0f}" for x in sums.tolist()) for sums in state]
    return [
        f"({rounded_state[0]})",
        f"$z = ({rounded_state[1]})$",
        f"{numerator:.0f}/{denominator:.0f}, about {numerator / denominator:.1f}",
    ]


def state_and_cache(chapter):
    shape = tl.GPT2_XL
    d_head = shape.d_model // shape.n_heads
    S, z = tl.initial_state(1, shape.n_heads, d_head, d_head)
    state, token = S.numel() + z.numel(), tl.kv_cache_bytes(shape, seq=1) // shape.n_layers // 4
    return [f"= {state:,}", f"= {token:,} a token", f"after {state // token + 1} tokens"]


def error_of_many_pairs(chapter):
    assert chapter["store_and_read"](1000, 128, lists=4) == pytest.approx(999 / 128, rel=0.1)
    return [f"999/128 = {999 / 128:.1f}", f"{999 / 0.1:,.0f} features"]


def half_a_write(chapter):
    key = torch.tensor([0.6, 0.8])
    S = chapter["delta"](4 * key[:, None], key, torch.tensor([10.0]), beta=0.5)
    return [f"= {(key @ S).item():.0f}: half of the way"]


ANSWERS = [
    both_orders,
    one_more_feature,
    another_query,
    third_token,
    state_and_cache,
    error_of_many_pairs,
    half_a_write,
]


def test_folded_answers_agree_with_the_code(chapter):
    cells = nbformat.read(notebooks.ROOT / "chapters" / "08_linear_attention.ipynb", 4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    answers = re.findall(r"(?s)\*\*Before you read on:\*\*.*?<summary>Answer</summary>(.*?)</details>", text)
    assert len(answers) == len(ANSWERS)
    for answer, compute_phrases in zip(answers, ANSWERS):
        for phrase in compute_phrases(chapter):
            assert phrase in answer, (
                f"{compute_phrases.__name__}: the answer must contain {phrase}, but is {answer.strip()}"
            )


def test_linear_attention_needs_more_memory_than_a_fused_kernel():
    q, k, v = (torch.randn(1, 4, 4096, 64) for _ in range(3))
    with torch.no_grad():
        chunked_bytes, fused_bytes, bidirectional_bytes = (
            tl.measure.peak_bytes(call)
            for call in (
                lambda: tl.causal_linear_attention(q, k, v),
                lambda: tl.scaled_dot_product_attention(q, k, v, is_causal=True),
                lambda: tl.bidirectional_linear_attention(q, k, v),
            )
        )
    assert 1 < chunked_bytes / fused_bytes < 2 and 3 < bidirectional_bytes / fused_bytes < 4
