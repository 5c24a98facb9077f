"""Tests of the drawing and the tensor at the top of each chapter, and of the chapter's picture on the front page."""

import json
import sys
from xml.etree import ElementTree

import pytest
import torch
from sphinx.errors import ExtensionError

from notebooks import ROOT

sys.path.append(str(ROOT))
from book import front_page, running_example, you_are_here
from book.you_are_here import PARTS, PLACES

DRAWING = ElementTree.parse(you_are_here.DRAWING).getroot()
DRAWN_PARTS = {group.get(f"data-{kind}") for group in DRAWING.iter() for kind in ("part", "flow")} - {None}


def test_the_tables_and_the_drawing_name_the_same_parts():
    assert set(PARTS) == {group.get("data-part") for group in DRAWING.iter()} - {None}
    assert {chapter for _, chapter in PARTS.values()} <= set(PLACES)
    part_names = {"arrow"} | {name.split(".")[-1] for name in DRAWN_PARTS}
    for chapter, (about, marked_parts) in PLACES.items():
        assert about and marked_parts and set(marked_parts) <= part_names, (
            f"{chapter}: {set(marked_parts) - part_names}"
        )
        parts_here = {part for part, (_, part_chapter) in PARTS.items() if part_chapter == chapter}
        assert parts_here <= set(marked_parts), (
            f"the drawing of {chapter} must also mark {parts_here - set(marked_parts)}, which this chapter teaches"
        )


def test_a_chapter_without_a_place_fails_the_build_with_a_sentence():
    you_are_here.require_places(None, None, ["index", "glossary", "solutions/99_sample", *PLACES])
    with pytest.raises(ExtensionError, match=r"99_sample has no place in the Transformer: .* book/you_are_here.py"):
        you_are_here.require_places(None, None, ["01_tensor_operations", "99_sample"])


def test_a_chapter_without_a_tensor_fails_the_build_with_a_sentence(monkeypatch):
    monkeypatch.delitem(running_example.TENSORS, "05_masks")
    with pytest.raises(ExtensionError, match="05_masks has no tensor: add a row to TENSORS"):
        you_are_here.require_places(None, None, PLACES)


def test_a_chapter_without_a_picture_fails_the_build_with_a_sentence():
    with pytest.raises(ExtensionError, match=r"99_sample has no picture .* draw book/thumbnails/99_sample.svg"):
        front_page.thumbnail("99_sample")


@pytest.mark.parametrize("chapter", PLACES)
def test_pictures_have_no_script_no_file_and_no_letters(chapter):
    """The drawings are inlined in the page, and must look right in the dark theme and in every browser."""
    for element in ElementTree.fromstring(front_page.thumbnail(chapter).astext()).iter():
        assert element.tag.split("}")[1] in {"svg", "rect", "path", "circle"}
        for name in {"fill", "stroke"} & element.attrib.keys() - ({"fill"} if element.get("fill") == "none" else set()):
            assert element.get("class"), f"{chapter}: a {name} without a class keeps its colour in the dark theme"


# The running number


def test_each_chapter_has_a_tensor_of_the_running_number_at_a_place_of_the_lab():
    text, tensors = running_example.tensors()
    places = json.loads(you_are_here.DRAWING.with_name("whole_words.json").read_text("utf-8"))["places"]
    assert text == "342" and set(running_example.TENSORS) == set(PLACES)
    for tensor, _, place in running_example.TENSORS.values():
        assert tensors[tensor].ndim == 2 and tensors[tensor].isfinite().all()
        assert place.split(".")[-1] in places


def test_the_running_tensors_are_those_of_the_model():
    tensors = running_example.tensors()[1]
    for name in ("encoder.0.self", "decoder.0.self", "decoder.0.cross"):
        assert tensors[f"{name}.heads"].shape[1] == 4 * tensors[f"{name}.head"].shape[1]
        torch.testing.assert_close(tensors[f"{name}.head"].sum(-1), torch.ones(len(tensors[f"{name}.head"])))
    assert not tensors["decoder.0.self.head"].triu(1).any() and tensors["encoder.0.self.head"].triu(1).any()
    assert tensors["decoder.logits"].argmax(-1).equal(tensors["decoder.probabilities"].argmax(-1))
    assert tensors["encoder.0.feed_forward.hidden"].min() == 0


def test_a_strip_has_the_colours_of_the_heat_map():
    low, *_, middle, _, _, _, _, high = running_example.colours("SIGNED")
    strip = running_example.heat_map(torch.tensor([[-2.0, 0.0], [0.1, 2.0]]), False)
    assert f'fill: {low}" d="M0 0h1v1h-1z"' in strip and f'fill: {high}" d="M1 1h1v1h-1z"' in strip
    assert f'fill: {middle}" d="M1 0h1v1h-1zM0 1h1v1h-1z"' in strip
    assert running_example.colours("BLUES")[0] == "light-dark(#f7fbff, #1c2128)"
