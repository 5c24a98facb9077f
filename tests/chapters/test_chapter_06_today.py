"""Section 6.15: the block of 2017 and that of today on two tasks. What decides between them is the positions."""

from functools import cache

import nbformat
import pytest
import torch
from chapter_code import ALL_SEEDS, SEEDS, chapter_code

import notebooks
import transformer_lab as tl

STEP_SIZES = (5e-3, 1e-2) if ALL_SEEDS else (1e-2,)


@pytest.fixture(scope="module")
def chapter():
    return chapter_code("06_normalization")


@pytest.fixture(scope="module")
def final_loss(chapter):
    then, now = (chapter["FORMS"][name] for name in ("2017", "today"))
    forms = {
        "2017": then,
        "today": now,
        "2017, rotary": then | {"positions": "rotary"},
        "today, added": now | {"positions": "sinusoidal"},
        "2017, none": then | {"positions": lambda x, positions: x},
    }

    @cache
    def final_loss(task, form, seed, step_size):
        losses = chapter["train_form"](task, forms[form], seed=seed, step_size=step_size)[1]
        return sum(losses[-10:]) / 10

    return final_loss


@pytest.mark.parametrize("step_size", STEP_SIZES)
@pytest.mark.parametrize("seed", SEEDS)
def test_each_form_is_ahead_on_one_task(seed, step_size, final_loss):
    assert final_loss("copy", "today", seed, step_size) < final_loss("copy", "2017", seed, step_size)
    assert final_loss("reverse", "2017", seed, step_size) < final_loss("reverse", "today", seed, step_size)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_the_positions_decide_which_task_is_learned_sooner(task, seed, final_loss):
    rotary = [final_loss(task, form, seed, 1e-2) for form in ("today", "2017, rotary")]
    added = [final_loss(task, form, seed, 1e-2) for form in ("2017", "today, added")]
    sooner, later = (rotary, added) if task == "copy" else (added, rotary)
    assert max(sooner) < min(later)


@pytest.mark.parametrize("seed", SEEDS)
def test_without_positions_both_tasks_stay_hard(seed, final_loss):
    assert 0.5 < final_loss("copy", "2017, none", seed, 1e-2) < 1.3
    assert 0.8 < final_loss("reverse", "2017, none", seed, 1e-2) < 1.7


@pytest.mark.parametrize("seed", SEEDS)
def test_rotary_positions_do_not_copy_at_a_length_that_they_have_not_seen(seed, chapter):
    model, _ = chapter["train_form"]("copy", chapter["FORMS"]["today"], seed=seed)
    assert chapter["share_copied"](model, length=5) > 0.95
    assert chapter["share_copied"](model, length=7) < 0.05


def test_folded_answers_are_right():
    cells = nbformat.read(notebooks.ROOT / "chapters" / "06_normalization.ipynb", 4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    target, memory = torch.zeros(2, 7, 12), torch.zeros(2, 5, 12)
    attention = tl.MultiHeadAttention(12, n_heads=3)
    for weights in (attention.weights(target), attention.weights(target, memory)):
        assert f"`{tuple(weights.shape)}`" in text
    with torch.device("meta"):
        key, _ = tl.MultiHeadAttention(8 * 64, n_heads=8, n_kv_heads=2).project(torch.zeros(3, 20, 8 * 64))
        gated, plain = tl.FeedForward(4096, 14336, bias=False, gated=True), tl.FeedForward(4096, bias=False)
    assert f"`key` is `{tuple(key.shape)}`" in text
    millions = [tl.count_parameters(part) // 10**6 for part in (gated, plain)]
    assert f"{millions[0]} million instead of {millions[1]} million" in text
