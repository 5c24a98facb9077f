"""Sections are found, and shown, with the formulas of their sentences."""

import sys

import pytest
from docutils import nodes

from notebooks import ROOT

sys.path.append(str(ROOT))
from book.search_index import as_typed, words


@pytest.mark.parametrize(
    ("tex", "letters"),
    [
        (r"d_\text{head}", "d_head"),
        (r"\frac{1}{\sqrt{d_\text{head}}}", "1/√d_head"),
        (r"q \cdot k \le \gamma", "q · k ≤ γ"),
        (r"\phi(q)^\top S", "φ(q)^ᵀ S"),
        (r"(\text{batch}, \text{seq})", "(batch, seq)"),
        (r"\left(x\right)\,y", "(x)y"),
    ],
)
def test_a_formula_is_indexed_as_readers_type_it(tex, letters):
    assert as_typed(tex) == letters


def test_a_sentence_is_indexed_with_its_formulas_and_without_outputs():
    sentence = nodes.paragraph(
        "", "", nodes.Text("Divide by "), nodes.math("", r"\sqrt{d_\text{head}}"), nodes.Text(".")
    )
    output = nodes.container("", nodes.literal_block("", "0.1234"), nb_element="cell_code_output")
    section = nodes.section("", nodes.title("", "Scale"), sentence, output)
    assert words(section).split() == ["Divide", "by", "√d_head."]
