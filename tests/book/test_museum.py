"""The museum has a card for each published bug, with the bug's thread, section and code, and with an audit's result."""

import re
import sys

import nbformat
import pytest

import notebooks
from notebooks import ROOT
from transformer_lab.bugs import BUGS
from transformer_lab.labs.influence import MODELS

sys.path.append(str(ROOT))
from book.museum import INFLUENCE_SETTINGS, PLACEHOLDER, card, cards, code_of, section_links

CARDS = cards()


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_card_has_every_part_of_its_bug(bug):
    text = card(bug)
    assert f"### {bug.title}\n" in CARDS and f"]({bug.link})" in text
    assert bug.description in text and bug.story in text and bug.repair in text and bug.symptoms in text
    assert len(bug.symptoms) > 30 and 60 < len(bug.story) < 330
    assert re.search(r"```python\n.+\n```", text, re.DOTALL) and "published(" not in code_of(bug)
    assert "broken" not in bug.story


def test_titles_are_distinct_and_the_page_has_a_place_for_the_cards():
    titles = [bug.title for bug in BUGS.values()]
    assert len(set(titles)) == 20 and CARDS.count("### ") == 20
    assert (ROOT / "chapters" / "museum.md").read_text("utf-8").count(PLACEHOLDER) == 1


def test_each_storys_section_exists_and_teaches_its_mechanism():
    mechanism_words = {  # for each bug, a word that the text of its section must contain
        "inverted_mask": "True", "weak_mask": "−10", "window_plus_one": "window", "causal_corner": "is_causal",
        "fully_masked_row": "NaN", "padding_of_the_target": "source", "left_padding": "positions",
        "packed_together": "packed", "batch_second": "batch_first", "positions_in_bfloat16": "position",
        "other_rope_layout": "halves", "tile_for_repeat": "repeat", "mean_of_means": "mean of means",
        "shifted_twice": "shift", "padding_is_the_end": "stop", "dropout_in_evaluation": "dropout",
        "bias_as_mask": "float", "dropout_gone": "dropout", "equal_layers": "begin with different weights",
        "no_clean_residual": "norm",
    }  # fmt: skip
    texts = {}
    for path in notebooks.chapters():
        number = None
        for cell in nbformat.read(path, 4).cells:
            if heading := cell.cell_type == "markdown" and re.match(r"## (\d+\.\d+) ", cell.source):
                number = heading[1]
            texts[number] = texts.get(number, "") + cell.source
    assert mechanism_words.keys() == BUGS.keys()
    for name, bug in BUGS.items():
        assert bug.section in section_links()
        assert mechanism_words[name].lower() in texts[bug.section].lower(), f"{name}: section {bug.section}"


# Each section that explains the mechanism of a bug, with the threads to which the section must link.
CITED_BUGS = {
    "5.4": ("transformers/issues/29623", "trl/issues/805"),
    "5.8": ("minGPT/issues/75",),
    "5.10": ("pytorch/issues/103082", "executorch/issues/22426"),
    "5.11": ("LLMs-from-scratch/issues/1061", "transformers/issues/3021", "nanoGPT/pull/240"),
    "6.9": ("pytorch/issues/61165",),
    "6.11": ("pytorch/issues/72253", "pytorch/issues/86274"),
    "7.9": ("transformers/pull/34191",),
    "10.12": ("llama.cpp/issues/2373", "CTranslate2/issues/1658", "Megatron-Bridge/pull/4661"),
}


def test_sections_cite_the_bugs_of_their_mechanism():
    for path in notebooks.chapters():
        number = None
        texts = {}
        for cell in nbformat.read(path, 4).cells:
            if heading := cell.cell_type == "markdown" and re.match(r"## (\d+\.\d+) ", cell.source):
                number = heading[1]
            texts[number] = texts.get(number, "") + cell.source
        for section in CITED_BUGS.keys() & texts.keys():
            assert [link for link in CITED_BUGS[section] if link not in texts[section]] == [], section


def test_the_tables_are_those_of_the_lab():
    letters = {model["letter"]: model["thread"] for model in MODELS}
    for name, (letter, *_) in INFLUENCE_SETTINGS.items():
        assert letters[letter] == BUGS[name].thread
        assert f"influence2.chosen={letter}" in card(BUGS[name])
