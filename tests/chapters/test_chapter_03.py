"""Tests of statements that no cell of chapter 3 demonstrates, and of a result that a cell shows for only one seed."""

from functools import partial
from math import ceil, log

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import transformer_lab as tl
from chapter_code import chapter_code


@pytest.fixture(scope="module")
def chapter():
    return chapter_code("03_attention_lookup")


@pytest.mark.parametrize("seed", range(10))
def test_order_reaches_the_last_token_of_a_causal_decoder_in_the_second_layer(chapter, seed):
    torch.manual_seed(seed)
    first, second = chapter["SingleHead"](8, 4, 8), chapter["SingleHead"](8, 4, 8)
    x, permutation = torch.randn(1, 5, 8), torch.tensor([2, 0, 3, 1, 4])
    heads = partial(chapter["causal_head"], first), partial(chapter["causal_head"], second)
    output, permuted_output = heads[0](x), heads[0](x[:, permutation])
    assert (permuted_output - output[:, permutation]).abs().max() > 0.1
    assert (permuted_output - output)[:, -1].abs().max() < 1e-5
    assert (heads[1](permuted_output) - heads[1](output))[:, -1].abs().max() > 0.05
    # Without a causal mask, the layers are permutation equivariant.
    assert torch.allclose(second(first(x[:, permutation])), second(first(x))[:, permutation], atol=1e-5)


@pytest.mark.parametrize("d_head", [16, 64, 256])
def test_the_variances_of_new_layers_do_not_grow_with_the_size_of_a_head(d_head):
    torch.manual_seed(0)
    x = torch.randn(2000, 512)
    for layer, expected_variance in (
        (tl.SingleHeadAttention(512, d_head), 1 / 3),
        (tl.MultiHeadAttention(512, 512 // d_head), 1 / 2),
    ):
        query, key = layer.q_proj(x)[:, :d_head], layer.k_proj(x)[:, :d_head]
        assert query.var().item() == pytest.approx(expected_variance, rel=0.1)
        assert (query @ key.T / d_head**0.5).var().item() == pytest.approx(expected_variance**2, rel=0.2)


def multiply_adds(function, *inputs):
    with FlopCounterMode(display=False) as counter:
        function(*inputs)
    return counter.get_total_flops() // 2


def test_the_table_counts_multiply_adds(chapter):
    n, d_model, width = 128, 16, 3
    x, w = torch.randn(n, d_model), torch.randn(d_model, d_model)
    projection_size = d_model * d_model
    kernel = torch.randn(d_model, d_model, width)
    assert multiply_adds(chapter["attention"], x, x, x) == 2 * n * n * d_model
    assert multiply_adds(chapter["rnn"], x[:, None], w, w) == 2 * n * projection_size
    assert multiply_adds(chapter["convolution"], x, kernel) == width * n * projection_size


@pytest.mark.parametrize("width", [3, 5])
def test_the_table_counts_the_layers_from_the_first_token_to_the_last(chapter, width):
    generator = torch.Generator().manual_seed(0)
    draw = partial(torch.randn, generator=generator, dtype=torch.float64)
    kernel, x = draw(4, 4, width), draw(17, 4).requires_grad_()
    n_layers, states, first_token_reached = 0, x, False
    while not first_token_reached:
        n_layers, states = n_layers + 1, chapter["convolution"](states, kernel)
        first_token_reached = torch.autograd.grad(states[-1].sum(), x, retain_graph=True)[0][0].any()
    assert n_layers == ceil(2 * 16 / (width - 1))


def test_a_fast_hand_distinguishes_only_neighbours_and_all_hands_together_distinguish_distant_places():
    positions = tl.sinusoidal_positions(64, 32)

    def distances(features):
        return (features[[1, 44]] - features[0]).norm(dim=-1).tolist()

    (near, far), (slow_distance, _), (near_all, far_all) = map(
        distances, (positions[:, :2], positions[:, -2:], positions)
    )
    assert near > 0.9 and far < 0.02 and slow_distance < 0.001
    assert near_all > 1 and far_all > 3
    assert tl.sinusoidal_positions(3, 5).shape == (3, 5)  # if d_model is odd, there is one cosine fewer than sines


def test_exchanged_projections_transpose_the_scores_and_a_doubled_value_doubles_the_output():
    bank, near, river = [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [2.0, 0.0, 0.0, 0.0]
    x, w_q, w_k, a = torch.tensor([bank, near, river]), torch.zeros(4, 4), torch.eye(4), log(8)
    w_q[2], w_v = torch.tensor([a, a, -2 * a, 0.0]), torch.eye(4)[:, :2]
    weights = tl.attention_weights(x @ w_k, x @ w_q)
    torch.testing.assert_close(weights[2], torch.tensor([0.8, 0.1, 0.1]))
    torch.testing.assert_close((weights @ x @ w_v)[0], torch.tensor([1.0, 1 / 3]))
    doubled = tl.attention_weights(x @ w_q, x @ w_k) @ x @ (2 * w_v)
    torch.testing.assert_close(doubled[0], torch.tensor([3.4, 0.2]))
