"""Section 6.9: which of its deep stacks learn at which step size, from any seed, by the chapter's own cells."""

import pytest
import torch
from chapter_code import SEEDS, chapter_code


@pytest.fixture(scope="module")
def chapter():
    return chapter_code("06_normalization", constants=("ways",), sections={"6.9"})


def last_losses(chapter, way, **options):
    """The mean of the last five losses: a row for each seed, a column for each step size."""
    return chapter["losses_of_copying"](chapter["ways"][way], SEEDS, **options)[..., -5:].mean(dim=-1)


def test_without_residuals_no_step_size_helps(chapter):
    assert last_losses(chapter, "norm, no residual").min() > 2.2


def test_post_norm_learns_with_a_tenth_of_the_step(chapter):
    losses = chapter["losses_of_copying"](chapter["ways"]["post-norm"], SEEDS, steps=125)
    large, small = losses[..., 70:75].mean(dim=-1).unbind(dim=1)
    assert large.min() > 2.2
    assert (small < 1.2).sum() >= 0.9 * len(SEEDS)
    assert losses[:, 1, -5:].mean(dim=-1).max() < 1.2


def test_pre_norm_takes_the_large_step_and_learns_fastest_with_it(chapter):
    large, small = last_losses(chapter, "pre-norm").unbind(dim=1)
    assert large.max() < 0.6
    assert (large < small).all()
    assert small.max() < 1.3


def test_with_warm_up_post_norm_takes_the_large_step(chapter):
    large = last_losses(chapter, "post-norm", steps=100, warm_up=100)[:, 0]
    assert large.max() < 2
    assert (large < 0.55).sum() >= 0.9 * len(SEEDS)


def test_its_weights_are_as_wide_as_those_of_the_courses_parts(chapter):
    tl, width = chapter["tl"], chapter["WIDTH"]
    row, shapes, _ = chapter["new_weights"](0)
    cut = row.split([torch.Size(shape).numel() for shape in shapes])
    attention, feed_forward = tl.MultiHeadAttention(width, 1), tl.FeedForward(width)
    theirs = [
        torch.cat([attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight]),
        attention.out_proj.weight,
        feed_forward.linear1.weight,
        feed_forward.linear2.weight,
    ]
    for ours, weight in zip(cut[1:5], theirs):
        assert ours.std().item() == pytest.approx(weight.std().item(), rel=0.15)
