"""Chapter 4 says of its small model that ten seeds give ten models whose heads have jobs: trained with its cells."""

import pytest
import torch
from chapter_code import SEEDS, chapter_code

CONSTANTS = {"n_letters", "n_digits", "half", "d_model", "n_heads", "d_head", "test"}


@pytest.fixture(scope="module")
def chapter():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the chapter does: tensors this small are done sooner by one
    yield chapter_code("04_multi_head", CONSTANTS, sections=("4.9", "4.10"))
    torch.set_num_threads(threads)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_seed_gives_a_model_that_answers_and_heads_that_have_jobs(chapter, seed):
    model = chapter["model"] = chapter["train"](seed)
    assert (chapter["accuracy"](model) > 0.97).all()
    jobs = chapter["jobs"](model)  # (previous, twin, after the twin; layers; heads)
    previous, same = jobs[0, 0], jobs[1, 0]
    assert previous.max() > 0.8 and same.max() > 0.8 and jobs[2, 1].max() > 0.8
    assert previous.argmax() != same.argmax()
    before, digit, after = chapter["accuracy_without"]((0, previous.argmax()))
    assert before < 0.5 and digit > 0.97 and after < 0.5
    before, digit, after = chapter["accuracy_without"]((1, 0), (1, 1))
    assert before > 0.97 and digit > 0.97 and after < 0.5


def test_a_model_that_has_hardly_trained_has_none_of_this(chapter):
    model = chapter["train"](0, steps=20)
    assert (chapter["accuracy"](model) < 0.5).all() and chapter["jobs"](model).max() < 0.5
    assert torch.is_grad_enabled()
