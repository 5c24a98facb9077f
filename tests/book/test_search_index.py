"""The search index includes the formulas of each section, so that the search finds and shows formulas."""

import sys

import pytest
from docutils import nodes

from notebooks import ROOT

sys.path.append(str(ROOT))
from book.search_index import as_typed, parts_of, sections_of, visible_text


@pytest.mark.parametrize(
    ("tex", "indexed"),
    [
        (r"d_\text{head}", "d_head"),
        (r"\frac{1}{\sqrt{d_\text{head}}}", "1/√d_head"),
        (r"q \cdot k \le \gamma", "q · k ≤ γ"),
        (r"\phi(q)^\top S", "φ(q)^ᵀ S"),
        (r"(\text{batch}, \text{seq})", "(batch, seq)"),
        (r"\left(x\right)\,y", "(x)y"),
    ],
)
def test_a_formula_is_indexed_as_readers_type_it(tex, indexed):
    assert as_typed(tex) == indexed


def test_a_sentence_is_indexed_with_its_formulas_and_without_outputs():
    sentence = nodes.paragraph(
        "", "", nodes.Text("Divide by "), nodes.math("", r"\sqrt{d_\text{head}}"), nodes.Text(".")
    )
    output = nodes.container("", nodes.literal_block("", "0.1234"), nb_element="cell_code_output")
    section = nodes.section("", nodes.title("", "Scale"), sentence, output)
    assert visible_text(section).split() == ["Divide", "by", "√d_head."]


def test_only_the_error_messages_of_an_output_are_indexed():
    printed = "tensor([1.5])\nRuntimeError: view size is not compatible with input tensor's size\nValueError"
    output = nodes.container("", nodes.literal_block("", printed), nb_element="cell_code_output")
    assert visible_text(output) == "RuntimeError: view size is not compatible with input tensor's size"


def document_with(*texts):
    """Return a page with a section that contains an inner section with these texts as paragraphs."""
    inner_section = nodes.section(
        "", nodes.title("", "Inside"), *(nodes.paragraph("", text) for text in texts), ids=["inside"]
    )
    outer_section = nodes.section(
        "", nodes.title("", "Above"), nodes.paragraph("", "First."), inner_section, ids=["above"]
    )
    document = nodes.document(None, None)
    document += outer_section
    return document


def test_a_section_has_its_own_text_and_the_first_section_has_no_anchor():
    assert sections_of(document_with("One.", "Two.")) == [["", "Above", "First."], ["inside", "Inside", "One. Two."]]


def test_solutions_do_not_repeat_the_text_of_their_assignment():
    _, task = document_with("The task.").findall(nodes.section)
    actual = sections_of(document_with("The task.", "The answer."), repeated=parts_of(task))
    assert actual[1] == ["inside", "Inside", "The answer."]
