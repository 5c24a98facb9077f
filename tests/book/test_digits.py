"""Every digit that a notebook prints is the same on every device."""

import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook

import digits
import notebooks
from executed import executed_notebook


@pytest.mark.parametrize(
    "shown, n_near",
    [
        ([0.12345], 1),  # a tie between rounding up and down
        ([0.1234501, 0.3], 1),
        ([0.12341], 0),
        ([0.03125], 1),  # exact, but a tie
        ([2.5, 10000.0, 0.0], 0),  # exact, and printed in full
        ([1234.5678], 1),  # more digits than are exact in float32 after a few operations
        ([0.3 + 0.12345j], 1),
        ([float("nan"), float("inf")], 0),
        ([1, 2], 0),
        (torch.tensor([0.12345678], dtype=torch.float64), 0),
        (torch.full((2000,), 0.12345), 6),  # the middle of this tensor is not printed
    ],
)
def test_digits_near_a_boundary_are_found(shown, n_near):
    assert len(digits.near_boundary(torch.as_tensor(shown), digits=4)) == n_near


def test_values_near_a_boundary_are_reported_and_not_left_in_the_notebook(tmp_path):
    sources = [
        "import torch, transformer_lab as tl",
        "tl.show(torch.tensor([0.12345]))\ntl.show(torch.tensor([0.12345]), digits=6)",
        "print([name for name in dir() if name in ('runpy', 'watch', 'digits')])",
    ]
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    notebooks.execute(notebook, tmp_path, startup=digits.STARTUP)
    (sentence,) = digits.pop_near_boundary(notebook)
    assert sentence.startswith("cell 2 shows 0.1234") and sentence.endswith("with 4 digits")
    shown_texts, visible_names = ([output.text for output in cell.outputs] for cell in notebook.cells[1:])
    assert "".join(shown_texts) == "(1,) · float32\n[0.1234]\n(1,) · float32\n[0.123450]\n"
    assert visible_names == ["[]\n"]


@pytest.mark.parametrize("path", notebooks.all_notebooks(), ids=lambda path: path.stem)
def test_shown_digits_are_the_same_on_a_different_device(path):
    near_values = executed_notebook(path)[1]["near"]
    assert not near_values, "\n".join(near_values)
