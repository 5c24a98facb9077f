"""Tests of the tool that samples sentences for a blind reading, and computes statistics of these sentences."""

import subprocess
import sys

import nbformat
import pytest
from nbformat import v4

import prose
import sentences
from notebooks import ROOT


def test_a_file_belongs_to_one_area():
    paths = [path for area in prose.AREAS for path in prose.files(area)]
    assert len(paths) == len(set(paths)) > 300
    assert all(prose.files(area) for area in prose.AREAS)
    with pytest.raises(ValueError, match="an area must be one of"):
        prose.files("poems")


def passages_of(tmp_path, name, source):
    path = tmp_path / name
    path.write_text(source, "utf-8")
    return [tuple(passage) for passage in prose.passages(path)]


def test_markdown_is_read_without_code_and_links(tmp_path):
    source = "# A title\n\nSee [the mask](x.md) first.\nIt hides.\n\n```python\nx = 1\n```\n\n- One item.\n- Another.\n"
    assert passages_of(tmp_path, "a.md", source) == [
        (1, "A title"),
        (3, "See the mask first. It hides."),
        (10, "- One item."),
        (10, "- Another."),
    ]


def test_python_is_read_with_comments_and_placeholders(tmp_path):
    source = 'def f(x):\n    """Return the mask of x."""\n    # One comment\n    # of two lines.\n'
    source += "    return f'must have {x} axes, got none'  # said once only\n"
    assert passages_of(tmp_path, "a.py", source) == [
        (2, "Return the mask of x."),
        (3, "One comment of two lines."),
        (5, "must have … axes, got none"),
        (5, "said once only"),
    ]


def test_the_types_in_a_docstring_are_not_prose(tmp_path):
    source = '"""Mask it well.\n\nParameters\n----------\nx : Tensor of any shape\n    What is masked here.\n"""\n'
    assert passages_of(tmp_path, "a.py", source) == [(1, "Mask it well."), (1, "What is masked here.")]


def test_code_cells_are_read_like_python(tmp_path):
    cells = [
        v4.new_markdown_cell("Look at the mask."),
        v4.new_code_cell("%pwd\nx = 1  # one number only"),
    ]
    source = nbformat.writes(v4.new_notebook(cells=cells))
    assert passages_of(tmp_path, "a.ipynb", source) == [(1, "Look at the mask."), (2, "one number only")]


def test_scripts_are_read_with_comments_and_placeholders(tmp_path):
    source = '/** Draw the whole mask. */\nconst f = "no words";\nsay(`Row ${i} sees nothing.`); // after a change\n'
    assert passages_of(tmp_path, "a.js", source) == [
        (1, "Draw the whole mask."),
        (3, "Row … sees nothing."),
        (3, "after a change"),
    ]


def test_sentences_are_split_where_they_end():
    text = 'Divide by `x.sum(-1)`. "Why?" asks Ada (see 3.2). That is e.g. a mean.'
    assert sentences.split(text) == ["Divide by `x.sum(-1)`.", '"Why?" asks Ada (see 3.2).', "That is e.g. a mean."]
    assert sentences.is_sentence("`x.sum(-1)` loses its axis.") and not sentences.is_sentence("no capital letter here.")


def test_counts_are_those_of_the_sentences():
    n_sentences, words_per_sentence, small_verb_rate, bare_pronoun_rate = sentences.counts(
        ["It stands where the axis was.", "This axis is kept here.", "That makes it wrong.", "Whatever lies behind it."]
    )
    assert (n_sentences, words_per_sentence) == (4, 19 / 4)
    assert small_verb_rate == pytest.approx(2 / 19 * 1000) and bare_pronoun_rate == pytest.approx(2 / 19 * 1000)


def test_a_seed_draws_the_same_sentences_each_with_the_previous_one():
    command = [sys.executable, ROOT / "tools" / "sentences.py", "pages", "--sample", "3", "--seed", "5"]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2))
    assert first == second and len(first.splitlines()) == 9
    _, sentence, previous_sentence = next(triple for triple in sentences.sentences("pages") if triple[2])
    assert sentences.is_sentence(sentence) and previous_sentence
