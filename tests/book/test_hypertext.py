"""In the built book, mentions are links, terms link to the glossary, and cards describe the targets of links."""

import json
import re

import pytest
from bs4 import BeautifulSoup
from test_book import CHAPTERS, HTML, NOTEBOOKS, PAGES, ids_of, serious_violations, site, soup, visit  # noqa: F401

CHAPTER_3 = CHAPTERS[2]
DESKTOP_VIEWPORT = {"width": 1280, "height": 850}
UNLINKED_MENTION = re.compile(
    r"(?i)\b(?:sections? \d+\.\d+|(?:chapters?|assignments?) \d+|exercises? \d+\.\d+)(?![.\d]*\d)"
)
# The text before a section's number, if the section belongs to a published paper: the paper's year, *its* or *their*.
BEFORE_SECTION_OF_A_PAPER = re.compile(r"(?:\d{4}[,:]|[Ii]ts|[Tt]heir)\s$")
TEXT_PAGES = [page for page in PAGES if not page.startswith("_modules") and page not in ("api.html", "references.html")]


def prose(page):
    """Return a copy of the page's article without code, headings, labs, outputs, links or lists of papers.

    In the copy, each section has its number as an attribute.
    """
    article = BeautifulSoup(str(soup(page).select_one("article")), "html.parser")
    for section in article.select("section"):
        number = re.match(r"(?:Assignment )?(\d+(?:\.\d+)?) ", section.find(["h1", "h2", "h3"]).get_text())
        section["data-number"] = number[1] if number else ""
    for node in article.select("code, pre, math, h1, h2, h3, nav, script, summary, .cell_output, #references"):
        node.decompose()
    for link in article.select("a"):
        link.replace_with("→")
    return article


def cards():
    return json.loads((HTML / "_static" / "cards.js").read_text("utf-8").removeprefix("const CARDS = ").rstrip(";\n"))


@pytest.mark.parametrize("page", TEXT_PAGES)
def test_every_mention_is_a_link(page):
    """Within a section, a mention of that section needs no link."""
    unlinked = [
        match[0]
        for text in prose(page).find_all(string=UNLINKED_MENTION)
        for match in UNLINKED_MENTION.finditer(text)
        if match[0].split()[1] not in [section["data-number"] for section in text.find_parents("section")]
        if not BEFORE_SECTION_OF_A_PAPER.search(text[: match.start()])
    ]
    assert unlinked == []


@pytest.mark.parametrize("page", TEXT_PAGES)
def test_a_term_is_a_link_once_in_a_section_and_leads_to_its_entry(page):
    article = soup(page).select_one("article")
    terms = article.select("a.term") if article else []
    assert {link["href"].rsplit("#")[1] for link in terms} <= ids_of("glossary.html")
    assert not article or not article.select(":is(h1, h2, h3, pre, code, summary, .cell_output, nav, a) a.term")
    for section in article.select(":scope > section > section") if article else ():
        words = [link.get_text().lower().rstrip("s") for link in section.select("a.term")]
        assert len(words) == len(set(words)), f"{page}#{section['id']}"


def test_terms_are_linked_throughout_the_book():
    assert sum(len(soup(page).select("a.term")) for page in TEXT_PAGES) > 2000
    assert all(soup(page).select("a.term") for page in NOTEBOOKS if page != "index.html")
    assert not soup("glossary.html").select("a.term")


def test_every_link_to_a_numbered_section_and_to_a_term_has_a_card():
    cards_by_address = cards()
    links_without_card = {
        link["href"]
        for page in CHAPTERS
        for link in soup(page).select("article a.reference.internal")
        for target, _, anchor in [link["href"].partition("#")]
        if anchor and re.match(r"\d+\.\d+|(?i:section)|.*term", link.get_text() + " ".join(link["class"]))
        if anchor not in cards_by_address.get(target or page, {})
    }
    assert links_without_card == set()


# In a browser


def show_card(link):
    """Move the mouse to a link, and return the texts of its card."""
    link.hover()
    link.page.wait_for_function("node => node.hasAttribute('aria-describedby')", arg=link.element_handle())
    card = link.page.locator(f"#{link.get_attribute('aria-describedby')}")
    assert card.is_visible()
    return card.locator("b, span").all_inner_texts()


@pytest.fixture
def chapter_and_links(visit):  # noqa: F811
    """Open chapter 3 from disk in a desktop window; return the page and its first links to a section and to a term."""
    page = visit((HTML / CHAPTER_3).as_uri(), viewport=DESKTOP_VIEWPORT)
    mention = page.locator(
        "article a.reference.internal:not(.term):visible", has_text=re.compile(r"^[Ss]ection \d")
    ).first
    return page, mention, page.locator("article a.term:visible").first


def count_card_scripts(page):
    return page.evaluate("performance.getEntriesByType('resource').filter(({ name }) => /cards/.test(name)).length")


def test_the_mouse_shows_a_card_that_can_be_entered_and_escape_hides_it(chapter_and_links):
    page, mention, term = chapter_and_links
    assert count_card_scripts(page) == 0 and page.locator(".tl-card").count() == 0
    for link in (mention, term):
        target, _, anchor = link.get_attribute("href").partition("#")
        assert show_card(link) == cards()[target or CHAPTER_3][anchor]
    box = page.locator(".tl-card").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20, steps=5)
    page.wait_for_timeout(600)
    assert page.locator(".tl-card").is_visible()
    page.keyboard.press("Escape")
    assert page.locator(".tl-card").is_hidden() and term.get_attribute("aria-describedby") is None
    show_card(mention)
    page.mouse.move(2, 2)
    page.wait_for_selector(".tl-card", state="hidden")


def test_a_passing_mouse_shows_no_card(chapter_and_links):
    page, mention, _ = chapter_and_links
    # Both events are sent in one task: between two separate moves on a busy machine, the mouse could rest on the link
    # for too long.
    mention.evaluate("""node => {
        const over = (target) => target.dispatchEvent(
            new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse" }));
        over(node);
        over(node.closest("article"));
    }""")
    page.wait_for_timeout(600)
    assert page.locator(".tl-card").count() == 0


def test_the_keyboard_shows_a_card_and_follows_the_link(chapter_and_links):
    page, mention, _ = chapter_and_links
    mention.evaluate("node => node.focus({ focusVisible: true })")
    page.wait_for_selector(".tl-card:visible")
    assert mention.evaluate("node => node === document.activeElement")
    page.keyboard.press("Escape")
    assert page.locator(".tl-card").is_hidden() and mention.evaluate("node => node === document.activeElement")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    page.wait_for_selector(".tl-card:visible")
    target = mention.get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{target}")
    assert page.locator(".tl-card:visible").count() == 0


def test_a_card_is_inside_the_window(chapter_and_links):
    page, _, _ = chapter_and_links
    for link in page.locator("article a.term:visible").all()[:40:4]:
        show_card(link)
        box = page.locator(".tl-card").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= DESKTOP_VIEWPORT["width"]
        assert box["y"] >= 0 and box["y"] + box["height"] <= DESKTOP_VIEWPORT["height"]


def test_a_tap_follows_the_link_and_shows_no_card(visit, site):  # noqa: F811
    page = visit(f"{site}{CHAPTER_3}", viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    link = page.locator("article a.term:visible").first
    link.tap()
    page.wait_for_url("**/glossary.html#*")
    assert count_card_scripts(page) == 0 and page.locator(".tl-card").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_with_a_card_is_accessible(chapter_and_links, theme):
    page, mention, _ = chapter_and_links
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    mention.hover()
    page.wait_for_selector(".tl-card:visible")
    # test_book.py tests the colours of code.
    page.evaluate("document.querySelectorAll('pre').forEach((code) => code.remove())")
    page.wait_for_timeout(300)
    assert serious_violations(page, only_colours=theme == "dark") == []
