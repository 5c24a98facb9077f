"""Tests of what chapter 7 states about softmax in pieces, memory for training, and caches but asserts in no cell."""

import nbformat
import pytest
import torch

import notebooks
import transformer_lab as tl

CELLS = nbformat.read(notebooks.ROOT / "chapters" / "07_parameters.ipynb", 4).cells


def function_of_the_chapter(name):
    source = next(cell.source for cell in CELLS if cell.source.startswith(f"def {name}"))
    namespace = {"torch": torch}
    exec(source.split("\n\n\n")[0], namespace)
    return namespace[name]


def attention_in_pieces():
    return function_of_the_chapter("attention_in_pieces")


@pytest.mark.parametrize("size", [1, 3, 7, 20])
@pytest.mark.parametrize("scale", [1.0, 40.0])  # exp(40²/√5) overflows
def test_pieces_give_attention_and_the_sums_of_its_rows(size, scale):
    query, key, value = (torch.randn(2, 3, n, 5, dtype=torch.float64) for n in (4, 7, 7))
    scores = scale**2 * query @ key.mT / 5**0.5
    actual, log_sum = attention_in_pieces()(scale * query, scale * key, value, size)
    torch.testing.assert_close(actual, scores.softmax(-1) @ value)
    torch.testing.assert_close(log_sum, scores.logsumexp(-1, keepdim=True))


def test_a_third_piece_gives_the_numbers_of_the_calculation_by_hand():
    query, value = torch.ones(1, 1), torch.tensor([[8.0], [0.0], [2.0], [4.0], [0.0]])
    output, log_sum = attention_in_pieces()(query, torch.tensor([[1.0], [2], [4], [1], [8]]).log(), value, 2)
    assert round(output.item(), 4) == 1.25 and round(log_sum.exp().item(), 4) == 16


def test_in_pieces_autograd_keeps_two_tables_and_every_blend():
    n, size = 256, 64
    tensors = [torch.randn(n, 64, requires_grad=True) for _ in range(3)]
    n_saved = function_of_the_chapter("kept_bytes")(lambda: attention_in_pieces()(*tensors, size)[0]) / 4
    # the rest, at most 5 per cent, is tensors with one number for each row and piece
    assert 1 <= n_saved / (3 * n * 64 + 2 * n**2 + n // size * n * 64) < 1.05


def test_smollm2_has_longer_bars_than_gpt2_but_a_smaller_cache():
    labs = [tl.labs.BudgetLab(shape, seq=1024) for shape in (tl.SMOLLM2_135M, tl.GPT2)]
    for quantity in ("parameters", "flops", "training_memory", "generation_memory"):
        smollm2, gpt2 = (sum(getattr(lab, quantity).values()) for lab in labs)
        assert smollm2 > gpt2
    assert labs[0].generation_memory["key–value cache"] < 2 / 3 * labs[1].generation_memory["key–value cache"]
