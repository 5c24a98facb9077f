"""Each part of attention's formula is tested on numbers that can be checked by hand.

These tests run first, and a failure states in one sentence what a part must do. The other tests then compare the
parts with PyTorch.
"""

import math

import pytest
import torch

import transformer_lab as tl
from agreement import DEVICE

D_HEAD, N_KEYS = 4, 4
IDENTITY = torch.eye(4, device=DEVICE)


def direct_weights(query, key, **options):
    return tl.attention_weights(query, key, **options)


def weights_from_attention(query, key, **options):
    """Return the weights, which attention outputs if the values are the rows of the identity matrix."""
    return tl.scaled_dot_product_attention(query, key, IDENTITY, **options)


def weights_from_two_heads(query, key, **options):
    """Return the weights, which each of two heads outputs if its projections are the identity."""
    output = module_with_identity_projections()(*(x.repeat(1, 2) for x in (query, key, IDENTITY)), **options)
    first_head, second_head = output.chunk(2, dim=-1)
    assert_close_or_explain(second_head, first_head, "heads with the same features must have the same output")
    return first_head


def module_with_identity_projections(**options):
    module = tl.MultiHeadAttention(2 * D_HEAD, 2, **options).to(DEVICE)
    with torch.no_grad():
        for projection in (module.q_proj, module.k_proj, module.v_proj, module.out_proj):
            projection.weight.copy_(torch.eye(2 * D_HEAD))
    return module


in_every_form = pytest.mark.parametrize("form", [direct_weights, weights_from_attention, weights_from_two_heads])


def assert_close_or_explain(actual, expected, sentence):
    """Fail with the sentence and the actual numbers, unless these numbers are close to the expected ones."""
    expected = torch.as_tensor(expected, dtype=torch.float32)
    actual = actual.detach().float().cpu()
    if actual.shape != expected.shape or not torch.allclose(actual, expected.cpu(), atol=1e-4):
        pytest.fail(f"{sentence}; got {format_numbers(actual.tolist())}", pytrace=False)


def format_numbers(x):
    return f"[{', '.join(map(format_numbers, x))}]" if isinstance(x, list) else f"{x:.3g}"


def one_query_and_four_keys(first_score):
    """Return a query and four keys; the scores before scaling are ``first_score`` for key 0 and 0 for the others."""
    return first_score * IDENTITY[:1], IDENTITY


def random_query_and_key():
    generator = torch.Generator().manual_seed(0)
    return (torch.randn(3, D_HEAD, generator=generator).to(DEVICE) for _ in range(2))


def test_heads_are_consecutive_features():
    features = torch.arange(6.0, device=DEVICE).view(1, 6)  # the features of one token
    heads = tl.split_heads(features, 3)
    assert_close_or_explain(
        heads, [[[0, 1]], [[2, 3]], [[4, 5]]], "head h gets features h · d_head to (h + 1) · d_head - 1 of a token"
    )
    tokens = torch.tensor([[[0.0], [10.0]], [[1.0], [11.0]]], device=DEVICE)  # 2 heads, 2 tokens, 1 feature
    assert_close_or_explain(
        tl.merge_heads(tokens),
        [[0, 1], [10, 11]],
        "merged heads are in order: the features of head 0 come first in every token",
    )


@in_every_form
def test_softmax_runs_over_the_keys(form):
    query, key = random_query_and_key()
    assert_close_or_explain(
        form(query, torch.cat([key, query[:1]])).sum(-1),
        [1.0, 1.0, 1.0],
        "the softmax runs over the keys, the last axis: the weights of each query sum to 1",
    )


@in_every_form
def test_scores_are_divided_by_the_root_of_d_head(form):
    """Scores are divided by √d_head, and not by d_head, by √d_model or by 1."""
    expected_weight = math.e**2 / (math.e**2 + 3)
    assert_close_or_explain(
        form(*one_query_and_four_keys(4.0))[0, 0],
        expected_weight,
        "scores are multiplied by 1/√d_head: with d_head 4 and q · k = 4, 0, 0, 0, key 0 has the weight "
        f"{expected_weight:.3f}",
    )


@in_every_form
def test_true_in_a_mask_means_attend(form):
    mask = torch.tensor([True, False, False, False], device=DEVICE)
    assert_close_or_explain(
        form(*one_query_and_four_keys(0.0), mask=mask) > 0,
        [[True, False, False, False]],
        "True in a mask means that a query may attend: with [True, False, False, False], only key 0 gets a weight",
    )


@in_every_form
def test_mask_is_applied_before_the_softmax(form):
    mask = torch.tensor([True, True, False, False], device=DEVICE)
    assert_close_or_explain(
        form(*one_query_and_four_keys(0.0), mask=mask),
        [[0.5, 0.5, 0.0, 0.0]],
        "the mask hides scores before the softmax: of four equal keys, the two that stay visible get 0.5 each",
    )


@in_every_form
def test_query_without_a_key_gets_zeros(form):
    mask = torch.zeros(1, N_KEYS, dtype=torch.bool, device=DEVICE)
    assert_close_or_explain(
        form(*one_query_and_four_keys(0.0), mask=mask), [[0.0] * N_KEYS], "a query that may attend to no key gets zeros"
    )


@in_every_form
def test_under_is_causal_no_query_sees_a_later_key(form):
    assert_close_or_explain(
        form(0 * IDENTITY, IDENTITY, is_causal=True),
        [[1, 0, 0, 0], [1 / 2, 1 / 2, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [1 / 4, 1 / 4, 1 / 4, 1 / 4]],
        "with is_causal, query i attends to keys 0 … i: equal scores get 1/(i + 1) each",
    )


@pytest.mark.parametrize("form", [direct_weights, weights_from_attention])
def test_bias_is_added_after_the_scale(form):
    expected_weight = math.e**2 / (math.e**2 + 3)
    assert_close_or_explain(
        form(*one_query_and_four_keys(0.0), bias=2 * IDENTITY[:1])[0, 0],
        expected_weight,
        f"a bias is added to the scores after the scale: a bias of 2 on one of four keys gives {expected_weight:.3f}",
    )


def test_the_module_keeps_the_order_of_heads():
    """Head 0 attends to keys 0 and 1, and head 1 attends to key 2; the two halves of the output show this."""
    module = module_with_identity_projections()
    mask = torch.tensor([[[True, True, False, False]], [[False, False, True, False]]], device=DEVICE)
    output = module(torch.zeros(1, 8, device=DEVICE), torch.zeros(4, 8, device=DEVICE), IDENTITY.repeat(1, 2), mask)
    assert_close_or_explain(
        output, [[0.5, 0.5, 0, 0, 0, 0, 1, 0]], "the output holds the heads side by side, head 0 first"
    )


def test_consecutive_heads_share_keys():
    query, key = torch.zeros(4, 1, 2, device=DEVICE), torch.zeros(2, 1, 2, device=DEVICE)
    value = torch.tensor([[[10.0]], [[20.0]]], device=DEVICE)
    output = tl.scaled_dot_product_attention(query, key, value, enable_gqa=True).flatten()
    assert_close_or_explain(
        output, [10, 10, 20, 20], "if 4 query heads share 2 key heads, the first two query heads use the first key head"
    )


@pytest.mark.parametrize("name", ["q_proj", "k_proj", "v_proj", "out_proj"])
def test_each_projection_adds_its_bias(name):
    module = module_with_identity_projections()
    x, bias = torch.zeros(1, 2 * D_HEAD, device=DEVICE), torch.arange(8.0, device=DEVICE)
    keys = IDENTITY.repeat(1, 2)
    output_of = {
        "q_proj": lambda x: module.weights(x, keys),
        # the weights do not show this bias, since it adds the same number to all scores of a query
        "k_proj": lambda x: module.project(x)[0],
        "v_proj": lambda x: module(x),
        "out_proj": lambda x: module(x),
    }[name]
    # The projections are the identity, so input 0 with bias b must have the same output as input b without a bias.
    expected = bias[None] if name == "out_proj" else output_of(bias[None])
    with torch.no_grad():
        getattr(module, name).bias.copy_(bias)
    assert_close_or_explain(output_of(x), expected, f"{name} adds its bias")


def test_dropout_acts_on_the_weights_in_training_only():
    torch.manual_seed(0)
    query, key = torch.zeros(64, D_HEAD, device=DEVICE), IDENTITY
    kept_weights = tl.scaled_dot_product_attention(query, key, IDENTITY, dropout_p=0.5).unique()
    assert_close_or_explain(
        kept_weights,
        [0.0, 0.5],
        "dropout acts on the weights: each weight of 0.25 becomes 0 or is divided by 1 - p, here 0.5",
    )
    module = module_with_identity_projections(dropout=0.5)
    x = torch.zeros(4, 2 * D_HEAD, device=DEVICE), torch.zeros(4, 2 * D_HEAD, device=DEVICE), IDENTITY.repeat(1, 2)
    assert_close_or_explain(module(*x).unique(), [0.0, 0.5], "a module drops weights in training")
    assert_close_or_explain(module.eval()(*x).unique(), [0.25], "a module drops nothing in evaluation")
