"""Tests of the front page and of the small Transformer at the top of each chapter, as built files and in a browser."""

import sys
from itertools import pairwise

import pytest
from test_book import CHAPTERS, ROOT, site, soup, visit  # noqa: F401

sys.path.append(str(ROOT))
from book.you_are_here import PART_LABELS, PARTS, PLACES

each_chapter = pytest.mark.parametrize("name", CHAPTERS)


# The front page


def test_the_first_screen_has_purpose_button_and_lab(visit, site):  # noqa: F811
    page = visit(f"{site}index.html", viewport={"width": 1200, "height": 850})
    lab, start = page.locator("[data-lab=ready]"), page.locator(".tl-start a")
    assert page.locator("[data-lab]").count() == lab.count() == 1
    assert start.all_inner_texts() == ["Play with it", "Start: chapter 1"]
    assert start.first.bounding_box()["y"] < lab.bounding_box()["y"] < 300
    page.set_viewport_size({"width": 320, "height": 850})
    first, last = start.first.bounding_box(), start.last.bounding_box()
    assert last["y"] - first["y"] - first["height"] >= 4, "there must be a gap between the buttons"
    start.last.click()
    page.wait_for_load_state()
    assert page.url == f"{site}{CHAPTERS[0]}"
    page.go_back()
    page.locator(".tl-front").wait_for()
    assert "PyTorch" in page.locator(".tl-front > p").first.inner_text()
    start.first.click()
    page.wait_for_function("Math.abs(document.getElementById('play').getBoundingClientRect().top) < 90")
    hours = page.locator(".tl-front > p").last.inner_text()
    assert "hours" in hours and "hours" not in page.locator(".tl-front h1").inner_text()


def test_the_front_page_begins_with_a_promise_but_links_to_it_have_the_books_name():
    assert soup("index.html").select_one("h1").get_text().startswith("See every number inside a Transformer.")
    for name in ("index.html", CHAPTERS[0]):
        front_page_link = soup(name).select_one(".bd-links a[href='index.html'], .bd-links a[href='#']")
        assert front_page_link.get_text().strip() == "Transformer Lab"


def test_the_list_of_sections_reaches_the_foot_of_the_window(visit, site):  # noqa: F811
    page = visit(f"{site}05_masks.html", viewport={"width": 1200, "height": 850})
    assert 840 < page.locator(".bd-sidebar-secondary").evaluate("node => node.getBoundingClientRect().bottom") <= 850


def test_the_keyboard_focus_in_the_header_is_visible(visit, site):  # noqa: F811
    page = visit(f"{site}05_masks.html", viewport={"width": 1200, "height": 850})
    page.keyboard.press("Tab")
    buttons = page.locator(".bd-header-article :is(a, button)").locator("visible=true")
    assert buttons.count() >= 3
    for button in buttons.all():
        button.focus()
        assert button.evaluate("node => node.matches(':focus-visible')")
        assert button.evaluate("node => getComputedStyle(node).outlineStyle") == "solid", button.inner_text()


@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_moves_while_the_lab_is_drawn(visit, site, width):  # noqa: F811
    page = visit(f"{site}index.html", viewport={"width": width, "height": 900})
    layout_shift = page.evaluate(
        """() => new Promise((resolve) => {
            let moved = 0;
            new PerformanceObserver((list) => { for (const { value } of list.getEntries()) moved += value; })
                .observe({ type: "layout-shift", buffered: true });
            setTimeout(() => resolve(moved), 500);
        })"""
    )
    # Some machines have wider fonts, which cause a small shift. If no space were reserved for the lab, the shift would
    # be 0.3.
    assert layout_shift < 0.05


@pytest.mark.parametrize("width", [1200, 320])
def test_each_chapter_has_a_card_that_leads_to_it(visit, site, width):  # noqa: F811
    page = visit(f"{site}index.html", viewport={"width": width, "height": 850})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    cards = page.locator(".tl-cards > li")
    assert cards.locator("a").evaluate_all("links => links.map(link => link.getAttribute('href'))") == CHAPTERS
    assert all(text.endswith("?") for text in cards.all_inner_texts())
    assert cards.locator("svg").count() == len(CHAPTERS)
    cards.last.locator("svg").click(force=True)  # the whole card is a link
    page.wait_for_load_state()
    assert page.url == site + CHAPTERS[-1]


# You are here


def drawing_groups(name):
    """Yield (part, arrow, whether it is marked, link) for each part and each arrow of a chapter's drawing."""
    (drawing,) = soup(name).select("nav.tl-here > svg")
    for group in drawing.select("[data-part], [data-flow]"):
        yield (
            group.get("data-part"),
            group.get("data-flow", ""),
            "here" in group.get("class", []),
            group.find_parent("a"),
        )


@each_chapter
def test_the_drawing_marks_the_place_of_its_chapter(name):
    about, marked_parts = PLACES[name.removesuffix(".html")]
    (drawing,) = soup(name).select("nav.tl-here")
    assert drawing["aria-label"] == f"Where you are in the Transformer: {about}"
    assert about in drawing.get_text() and not drawing.select("script, image, [role=img]")
    assert drawing.find_previous_sibling().name == "h1"
    for part, arrow, is_marked, _ in drawing_groups(name):
        names = {part, arrow.split(".")[-1], "arrow" if arrow else part}
        assert is_marked == bool(names & set(marked_parts)), (part, arrow)
    assert any(is_marked for *_, is_marked, _ in drawing_groups(name))


@each_chapter
def test_a_word_is_beside_each_marked_part(name):
    drawing = soup(name).select_one("nav.tl-here > svg")
    words = [text.get_text() for text in drawing.select("text.word")]
    marked_labels = {
        PART_LABELS[part] for part, _, is_marked, _ in drawing_groups(name) if is_marked and part in PART_LABELS
    }
    assert words and set(words) == (marked_labels - {"masked"} if "attention" in marked_labels else marked_labels)
    assert len(words) == len(set(words))
    texts_of_marks = [text.get_text() for text in soup(name).select(".tl-here .marks")]
    assert texts_of_marks == (
        [] if len(words) > 4 else [f"Marked: {', '.join(words)}".replace("masked", "masked attention")]
    )


@pytest.mark.parametrize("name", [CHAPTERS[4], CHAPTERS[9]])
def test_the_words_of_the_drawing_can_be_read(visit, site, name):  # noqa: F811
    page = visit(site + name, viewport={"width": 1200, "height": 800})
    boxes = [word.bounding_box() for word in page.locator(".tl-here text.word").all()]
    drawing_box = page.locator(".tl-here").bounding_box()
    for box in boxes:
        assert box["height"] >= 10 and box["x"] >= drawing_box["x"] - 20
        assert box["x"] + box["width"] <= drawing_box["x"] + drawing_box["width"] + 1
    boxes.sort(key=lambda box: box["y"])
    assert all(a["y"] + a["height"] * 0.8 <= b["y"] + 1 for a, b in pairwise(boxes))
    page.set_viewport_size({"width": 360, "height": 800})
    assert not page.locator(".tl-here text.word").first.is_visible()
    assert page.locator(".tl-here").bounding_box()["height"] < 170


@each_chapter
def test_every_part_links_to_its_chapter(name):
    for part, _, _, link in drawing_groups(name):
        chapter = PARTS[part][1] if part else None
        assert (link["href"] if link else None) == (f"{chapter}.html" if part and chapter + ".html" != name else None)
    links = soup(name).select("nav.tl-here > svg a")
    tab_stops = [link for link in links if link.get("tabindex") != "-1"]
    assert {link["href"] for link in tab_stops} == {link["href"] for link in links}
    assert len({link["href"] for link in tab_stops}) == len(tab_stops)  # each chapter is one Tab stop, not ten
    assert all(link["aria-hidden"] == "true" for link in links if link not in tab_stops)
    for link in tab_stops:
        chapter = soup(link["href"]).select_one("h1").get_text().rstrip("#")
        assert link["aria-label"].startswith(f"{chapter}: ") and link.title.text.endswith(chapter)


@pytest.mark.parametrize("width, max_height", [(1200, 360), (360, 170)])
def test_the_drawing_is_small_and_can_be_used(visit, site, width, max_height):  # noqa: F811
    for theme, name in (("light", CHAPTERS[0]), ("dark", CHAPTERS[5])):
        page = visit(site + name, viewport={"width": width, "height": 800}, color_scheme=theme)
        drawing = page.locator(".tl-here")
        assert drawing.bounding_box()["height"] < max_height
        assert drawing.locator("svg").first.bounding_box()["height"] <= 220
    softmax_link = drawing.locator("[data-part=softmax]")
    softmax_link.click()
    page.wait_for_load_state()
    assert page.url == f"{site}{PARTS['softmax'][1]}.html"


@pytest.mark.parametrize("width", [1200, 1440])
def test_the_list_of_sections_does_not_move_the_drawing(visit, site, width):  # noqa: F811
    page = visit(site + CHAPTERS[4], viewport={"width": width, "height": 800})
    boxes = [page.locator(".tl-here").bounding_box()]
    page.evaluate("document.querySelector('.bd-sidebar-secondary').remove()")  # this element comes last in the file
    assert [*boxes, page.locator(".tl-here").bounding_box()] == boxes * 2


@pytest.mark.parametrize("width", [1200, 360])
def test_the_running_number_opens_the_lab_at_the_chapters_place(visit, site, width):  # noqa: F811
    page = visit(f"{site}05_masks.html", viewport={"width": width, "height": 800})
    link = page.locator(".tl-running")
    assert link.inner_text() == "342 here: attention weights under the mask, (6,\xa06)"
    link.click()
    page.wait_for_selector("[data-lab=ready]")
    assert page.locator(".tl-whole input").first.input_value() == "342"
    assert page.locator(".tl-whole .open").first.get_attribute("data-part") == "masked_attention"
