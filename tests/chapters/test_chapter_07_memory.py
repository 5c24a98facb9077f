"""Softmax in pieces, remedies and caches: what chapter 7 says of them, beyond what its cells assert."""

import re
from dataclasses import replace

import nbformat
import pytest
import torch

import notebooks
import transformer_lab as tl

CELLS = nbformat.read(notebooks.ROOT / "chapters" / "07_parameters.ipynb", 4).cells
TEXT = "\n\n".join(cell.source for cell in CELLS if cell.cell_type == "markdown")


def in_pieces():
    source = next(cell.source for cell in CELLS if cell.source.startswith("def attention_in_pieces"))
    space = {"torch": torch}
    exec(source.split("\n\n\n")[0], space)
    return space["attention_in_pieces"]


@pytest.mark.parametrize("size", [1, 3, 7, 20])
@pytest.mark.parametrize("scale", [1.0, 40.0])  # exp(40²/√5) overflows
def test_pieces_give_attention_and_the_sums_of_its_rows(size, scale):
    query, key, value = (torch.randn(2, 3, n, 5, dtype=torch.float64) for n in (4, 7, 7))
    scores = scale**2 * query @ key.mT / 5**0.5
    found, log_sum = in_pieces()(scale * query, scale * key, value, size)
    torch.testing.assert_close(found, scores.softmax(-1) @ value)
    torch.testing.assert_close(log_sum, scores.logsumexp(-1, keepdim=True))


def test_a_third_piece_by_hand():
    query, value = torch.ones(1, 1), torch.tensor([[8.0], [0.0], [2.0], [4.0], [0.0]])
    output, log_sum = in_pieces()(query, torch.tensor([[1.0], [2], [4], [1], [8]]).log(), value, 2)
    assert round(output.item(), 4) == 1.25 and round(log_sum.exp().item(), 4) == 16
    assert "the output 1.25. Check: 20 / 16." in TEXT


def test_the_folded_answers_are_what_the_package_counts():
    smollm, ungrouped = tl.SMOLLM2_135M, replace(tl.SMOLLM2_135M, n_kv_heads=None)
    numbers = [tl.kv_cache_bytes(shape, 1, bytes_per_value=1) for shape in (smollm, tl.GPT2, ungrouped)]
    answer = re.search(r"= ([\d,]+), against ([\d,]+) in GPT-2.*?would be ([\d,]+)", TEXT)
    assert [int(number.replace(",", "")) for number in answer.groups()] == numbers
    assert f"8 · 1.56 billion = {8 * tl.count_parameters(tl.GPT2_XL) / 1e9:.1f} GB" in TEXT
    assert f"The weights are {tl.weight_bytes(tl.GPT2_XL) / 1e9:.2f} GB, so 6.2 ms." in TEXT


def test_smollm2_has_longer_bars_than_gpt2_and_a_shorter_cache():
    labs = [tl.labs.BudgetLab(shape, seq=1024) for shape in (tl.SMOLLM2_135M, tl.GPT2)]
    for quantity in ("parameters", "flops", "training_memory", "generation_memory"):
        here, there = (sum(getattr(lab, quantity).values()) for lab in labs)
        assert here > there
    assert labs[0].generation_memory["key–value cache"] < 2 / 3 * labs[1].generation_memory["key–value cache"]
