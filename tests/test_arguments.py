"""What every function asks of its arguments: numbers of Python and of NumPy, and errors by argument, rule and value."""

import numpy as np
import pytest
import torch
from agreement import DEVICE, agree, normal, says

import transformer_lab as tl
from transformer_lab import arguments


@pytest.mark.parametrize("integer", [np.int64, np.int32, np.int8, np.uint8])
def test_numpys_integers_serve_as_sizes(integer):
    two, four, five = map(integer, (2, 4, 5))
    assert torch.equal(tl.causal_mask(four, five), tl.causal_mask(4, 5))
    assert torch.equal(tl.sliding_window_mask(five, two), tl.sliding_window_mask(5, 2))
    assert torch.equal(tl.prefix_mask(five, two), tl.prefix_mask(5, 2))
    assert torch.equal(tl.padding_mask([two, four], five), tl.padding_mask([2, 4], 5))
    assert torch.equal(tl.padding_mask(np.array([2, 4], dtype=integer), five), tl.padding_mask([2, 4], 5))
    assert torch.equal(tl.sinusoidal_positions(five, four), tl.sinusoidal_positions(5, 4))
    assert tl.initial_state(two, two, four, five)[0].shape == (2, 2, 4, 5)
    x = normal(2, 5, 4, seed=1)
    agree(tl.split_heads(x, two), tl.split_heads(x, 2))
    agree(tl.softmax(x, np.int64(-1)), tl.softmax(x))
    agree(tl.standardize(x, np.int64(-1)), tl.standardize(x, -1))
    agree(tl.group_norm(x, integer(5)), tl.group_norm(x, 5))
    model = tl.Transformer(*map(integer, (9, 9, 8, 2, 1, 16))).to(DEVICE)
    src = torch.zeros(2, 3, dtype=torch.long, device=DEVICE)
    assert model.generate(src, bos=integer(1), max_new_tokens=integer(2)).shape == (2, 3)


@pytest.mark.parametrize("number", [np.float64, np.float32, np.float16])
def test_numpys_floats_serve_as_numbers(number):
    x = normal(2, 5, 4, seed=1)
    half = number(0.5)
    agree(tl.attention_weights(x, x, scale=half), tl.attention_weights(x, x, scale=0.5))
    agree(tl.scaled_dot_product_attention(x, x, x, scale=-half), tl.scaled_dot_product_attention(x, x, x, scale=-0.5))
    agree(tl.standardize(x, -1, eps=half), tl.standardize(x, -1, eps=0.5))
    agree(tl.layer_norm(x, eps=half), tl.layer_norm(x, eps=0.5))
    agree(tl.rms_norm(x, eps=half), tl.rms_norm(x, eps=0.5))
    layer = tl.EncoderLayer(4, 2, 8, dropout=half).to(DEVICE)
    assert layer(x).shape == x.shape and layer.self_attention.dropout == 0.5


def test_true_is_no_number():
    says(lambda: tl.causal_mask(True), TypeError, "q_len must be an integer, got True")
    says(lambda: tl.causal_mask(np.True_), TypeError, f"q_len must be an integer, got {np.True_!r}")
    x = normal(2, 5, 4, seed=1)
    says(lambda: tl.attention_weights(x, x, scale=True), ValueError, "scale must be a finite number, got True")
    says(lambda: tl.layer_norm(x, eps=True), ValueError, "eps must be a number, 0 or more, got True")
    says(lambda: tl.FeedForward(4, dropout=True), ValueError, "dropout must be a probability from 0 to 1, got True")


def test_sizes_come_back_as_pythons_integers():
    assert [type(size) for size in arguments.as_sizes(least=0, seq=np.int32(0), batch=3)] == [int, int]
    says(lambda: arguments.as_sizes(seq=np.int32(0)), ValueError, "seq must be at least 1, got 0")
