"""What two extensions of the book make of a chapter's place in the Transformer, and of its card on the front page."""

import sys
from xml.etree import ElementTree

import pytest
from sphinx.errors import ExtensionError

from notebooks import ROOT

sys.path.append(str(ROOT))
from book import front_page, you_are_here
from book.you_are_here import PARTS, PLACES

DRAWING = ElementTree.parse(you_are_here.DRAWING).getroot()
NAMES = {group.get(f"data-{kind}") for group in DRAWING.iter() for kind in ("part", "flow")} - {None}


def test_the_tables_and_the_drawing_name_the_same_parts():
    assert set(PARTS) == {group.get("data-part") for group in DRAWING.iter()} - {None}
    assert {chapter for _, chapter in PARTS.values()} <= set(PLACES)
    known = {"arrow"} | {name.split(".")[-1] for name in NAMES}
    for chapter, (about, marked) in PLACES.items():
        assert about and marked and set(marked) <= known, f"{chapter}: {set(marked) - known}"
        parts_here = {part for part, (_, where) in PARTS.items() if where == chapter}
        assert parts_here <= set(marked), f"{chapter}: teaches what it does not mark: {parts_here - set(marked)}"


def test_a_chapter_without_a_place_fails_the_build_with_a_sentence():
    you_are_here.require_places(None, None, ["index", "glossary", "solutions/99_sample", *PLACES])
    with pytest.raises(ExtensionError, match=r"99_sample has no place in the Transformer: .* book/you_are_here.py"):
        you_are_here.require_places(None, None, ["01_tensor_operations", "99_sample"])


def test_a_chapter_without_a_picture_fails_the_build_with_a_sentence():
    with pytest.raises(ExtensionError, match=r"99_sample has no picture .* draw book/thumbnails/99_sample.svg"):
        front_page.thumbnail("99_sample")


@pytest.mark.parametrize("chapter", PLACES)
def test_pictures_have_no_script_no_file_and_no_letters(chapter):
    """They are inlined in the page, and must look right in dark and in every browser."""
    for element in ElementTree.fromstring(front_page.thumbnail(chapter).astext()).iter():
        assert element.tag.split("}")[1] in {"svg", "rect", "path", "circle"}
        for name in {"fill", "stroke"} & element.attrib.keys() - ({"fill"} if element.get("fill") == "none" else set()):
            assert element.get("class"), f"{chapter}: a {name} without a class keeps its colour in the dark"
