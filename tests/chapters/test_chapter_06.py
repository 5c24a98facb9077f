"""Chapter 6 ends in a model that learns its task: from any seed, by the chapter's own cells."""

import pytest
import torch
from chapter_code import SEEDS, chapter_code


@pytest.fixture(scope="module")
def chapter():
    return chapter_code("06_normalization")


@pytest.mark.parametrize("seed", SEEDS)
def test_its_model_learns_to_reverse_from_other_seeds(seed, chapter):
    model, losses = chapter["train"](seed)
    numbers = torch.Generator().manual_seed(99)
    assert sum(losses[-20:]) / 20 < 0.05
    assert chapter["share_right"](model, 500, numbers) >= 0.99

    source, _ = chapter["draw"](50, numbers)
    whole, mask = chapter["as_transformer"](model), chapter["padding"](source)
    with_cache = whole.generate(source, mask, bos=chapter["BOS"], max_new_tokens=9)
    assert torch.equal(with_cache, chapter["write"](model, source, steps=9))


def test_a_model_that_has_learned_nothing_is_seen_to_fail(chapter):
    model, _ = chapter["train"](seed=1, steps=2)
    assert chapter["share_right"](model, 100, torch.Generator().manual_seed(99)) < 0.1
