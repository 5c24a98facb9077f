"""Chapter 8 says that softmax attention recalls what linear attention of the same size does not, from every seed."""

import pytest
import torch
from chapter_code import ALL_SEEDS, SEEDS, chapter_code

import transformer_lab as tl

CONSTANTS = {"n_keys", "n_values", "n_questions", "pairs"}


@pytest.fixture(scope="module")
def chapter():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tensors this small are done sooner by one
    yield chapter_code("08_linear_attention", CONSTANTS)
    torch.set_num_threads(threads)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_seed_shows_the_gap(chapter, seed):
    softmax = chapter["accuracy"](chapter["train"](tl.MultiHeadAttention, 16, seed))
    linear = chapter["accuracy"](chapter["train"](tl.LinearAttention, 16, seed))
    assert (softmax > 0.99).all()
    assert (linear < 0.95).all() and linear[-1] < 0.25
    assert (linear.diff() < 0).all()  # the more pairs, the fewer answers


long = pytest.mark.skipif(not ALL_SEEDS, reason="takes long: `make claims` runs it")


@long
def test_more_steps_do_not_close_it(chapter):
    assert chapter["accuracy"](chapter["train"](tl.LinearAttention, 16, steps=2000))[-1] < 0.25


@long
def test_a_larger_state_recalls_more(chapter):
    assert (chapter["accuracy"](chapter["train"](tl.LinearAttention, 64, seed=1)) > 0.97).all()


def test_both_models_have_the_same_parameters(chapter):
    shapes = [
        {name: x.shape for name, x in chapter["Recall"](attention, 16).named_parameters()}
        for attention in (tl.MultiHeadAttention, tl.LinearAttention)
    ]
    assert shapes[0] == shapes[1]


def test_a_model_that_has_hardly_trained_recalls_nothing(chapter):
    accuracy = chapter["accuracy"](chapter["train"](tl.MultiHeadAttention, 16, seed=0, steps=20))
    assert (accuracy < 0.25).all()
