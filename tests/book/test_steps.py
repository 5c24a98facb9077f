"""The first lab of a chapter steps through three states while the reader scrolls past it."""

import re
import sys

import nbformat
import pytest
from test_book import HTML, visit  # noqa: F401

from notebooks import ROOT

sys.path.append(str(ROOT))
from book.steps import STEPS


@pytest.mark.parametrize("page", STEPS)
def test_each_step_has_words_of_the_section(page):
    cells = nbformat.read(ROOT / "chapters" / f"{page}.ipynb", 4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    section = re.search(r"^## Try it first\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)[1]
    plain = re.sub(r"\s", " ", re.sub(r"[*`$]", "", section))
    assert [words for words, _ in STEPS[page] if words not in plain] == []


def shown(page):
    return page.locator(".tl-lookup").first.locator("[role=status]").inner_text()


LIT = "() => [...(CSS.highlights.get('tl-lit') ?? [])].map(String)"


def to(page, share):
    """Scroll until the top of the first lab is at a fraction of the window's height."""
    page.evaluate(
        "share => { const { top } = document.querySelector('[data-steps]').getBoundingClientRect();"
        "scrollBy(0, top - share * innerHeight); }",
        share,
    )
    page.wait_for_timeout(150)


def test_the_lab_follows_the_reader_until_it_is_touched(visit):  # noqa: F811
    page = visit((HTML / "03_attention_lookup.html").as_uri(), viewport={"width": 1200, "height": 850})
    highlights = {}
    for share in (0.9, 0.5, 0.3, 0.05):
        to(page, share)
        highlights[share] = shown(page), page.evaluate(LIT)
    assert len({text for text, _ in highlights.values()}) == 4
    assert [highlighted for _, highlighted in highlights.values()] == [
        [],
        *([words] for words, _ in STEPS["03_attention_lookup"]),
    ]
    to(page, 0.9)
    assert shown(page) == highlights[0.9][0], "scrolling back restores the state"
    assert "?" not in page.url, "the address of the page stays the same"

    to(page, 0.3)
    page.locator(".tl-lookup").first.locator(".tl-handle").first.press("ArrowLeft")
    mine = shown(page)
    assert mine != highlights[0.3][0] and page.evaluate(LIT) == []
    to(page, 0.05)
    assert shown(page) == mine


@pytest.mark.parametrize("how", ["less motion", "address"])
def test_nothing_moves_without_the_reader(visit, how):  # noqa: F811
    still = {"reduced_motion": "reduce"} if how == "less motion" else {}
    query = "" if still else "?lookup.query=0,0"
    page = visit((HTML / "03_attention_lookup.html").as_uri() + query, viewport={"width": 1200, "height": 850}, **still)
    to(page, 0.9)
    before = shown(page)
    for share in (0.5, 0.3, 0.05):
        to(page, share)
        assert shown(page) == before and page.evaluate(LIT) == []
