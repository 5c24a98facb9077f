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
    plain_text = re.sub(r"\s", " ", re.sub(r"[*`$]", "", section))
    assert [words for words, _ in STEPS[page] if words not in plain_text] == []


def status_text(page):
    return page.locator(".tl-lookup").first.locator("[role=status]").inner_text()


HIGHLIGHTED_TEXTS = "() => [...(CSS.highlights.get('tl-lit') ?? [])].map(String)"


def scroll_to(page, fraction):
    """Scroll until the top of the first lab is at the given fraction of the window's height."""
    page.evaluate(
        "fraction => { const { top } = document.querySelector('[data-steps]').getBoundingClientRect();"
        "scrollBy(0, top - fraction * innerHeight); }",
        fraction,
    )
    page.wait_for_timeout(150)


def test_the_lab_follows_the_reader_until_it_is_touched(visit):  # noqa: F811
    page = visit((HTML / "03_attention_lookup.html").as_uri(), viewport={"width": 1200, "height": 850})
    highlights = {}
    for fraction in (0.9, 0.5, 0.3, 0.05):
        scroll_to(page, fraction)
        highlights[fraction] = status_text(page), page.evaluate(HIGHLIGHTED_TEXTS)
    assert len({text for text, _ in highlights.values()}) == 4
    assert [highlighted for _, highlighted in highlights.values()] == [
        [],
        *([words] for words, _ in STEPS["03_attention_lookup"]),
    ]
    scroll_to(page, 0.9)
    assert status_text(page) == highlights[0.9][0], "scrolling back must restore the state"
    assert "?" not in page.url, "the address of the page must stay the same"

    scroll_to(page, 0.3)
    page.locator(".tl-lookup").first.locator(".tl-handle").first.press("ArrowLeft")
    readers_status = status_text(page)
    assert readers_status != highlights[0.3][0] and page.evaluate(HIGHLIGHTED_TEXTS) == []
    scroll_to(page, 0.05)
    assert status_text(page) == readers_status


@pytest.mark.parametrize("reason", ["less motion", "address"])
def test_nothing_moves_without_the_reader(visit, reason):  # noqa: F811
    context_options = {"reduced_motion": "reduce"} if reason == "less motion" else {}
    query = "" if context_options else "?lookup.query=0,0"
    page = visit(
        (HTML / "03_attention_lookup.html").as_uri() + query, viewport={"width": 1200, "height": 850}, **context_options
    )
    scroll_to(page, 0.9)
    initial_status = status_text(page)
    for fraction in (0.5, 0.3, 0.05):
        scroll_to(page, fraction)
        assert status_text(page) == initial_status and page.evaluate(HIGHLIGHTED_TEXTS) == []
