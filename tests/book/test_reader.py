"""Tests of the reader's record in the built book, of the list of sections, and of the shortcuts."""

import json
import re
from urllib.parse import urlsplit

import pytest
from test_book import CHAPTERS, HTML, serious_violations, site, soup, visit  # noqa: F401

from accessibility import violations
from sampling import sample
from transformer_lab.labs import Practice
from transformer_lab.practice import topics

STORAGE_KEY = "transformer-lab.reader"
CHAPTER_3 = CHAPTERS[2]
DESKTOP_VIEWPORT = {"width": 1280, "height": 850}


def reader_in_storage(page):
    return json.loads(page.evaluate(f"localStorage.getItem('{STORAGE_KEY}')") or "{}")


def store_reader(page, **reader):
    page.evaluate(f"(reader) => localStorage.setItem('{STORAGE_KEY}', JSON.stringify(reader))", reader)


def is_accessible(page):
    """Return True if axe-core finds no problem in either theme, light or dark."""
    problems = violations(page)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_timeout(100)  # until the change of colours has begun
    problems += violations(page, only_colours=True)
    print(*problems, sep="\n")  # pytest shows this if the test fails
    return problems == []


def place_in_chapter_3(section):
    return {"page": CHAPTER_3.removesuffix(".html"), "section": section, "when": "2026-11-26T10:00:00.000Z"}


# Questions


def test_answers_survive_a_reload_until_the_reader_answers_again(visit, site):  # noqa: F811
    page = visit(f"{site}{CHAPTER_3}#predict-first")
    options, score = page.locator("#predict-first details"), page.locator("#predict-first .score")
    retry_button = page.locator("#predict-first .again")
    options.nth(3).locator("summary").click()  # wrong
    options.nth(2).locator("summary").click()  # right, in a different question
    assert score.inner_text() == "1 of 2 right at the first try, 1 question to go."
    page.reload()
    assert score.inner_text() == "1 of 2 right at the first try, 1 question to go."
    assert options.nth(3).locator("summary").inner_text().endswith("✗ No")
    options.nth(4).locator("summary").click()  # right at the second attempt
    page.reload()
    assert score.inner_text() == "1 of 2 right at the first try, 1 question to go."
    retry_button.press("Enter")
    assert score.inner_text() == "3 questions. Your first choice counts."
    assert page.locator("#predict-first .verdict").count() == 0
    page.reload()
    assert score.inner_text() == "3 questions. Your first choice counts."


def test_a_question_that_was_rewritten_is_asked_again(visit, site):  # noqa: F811
    page = visit(f"{site}{CHAPTER_3}")
    store_reader(
        page, answers={CHAPTER_3.removesuffix(".html"): {"gone": {"section": "x", "first": "right", "opened": [0]}}}
    )
    page.reload()
    assert page.locator(".verdict").count() == 0


def test_options_are_choices_and_the_others_open_after_one_is_chosen(visit, site):  # noqa: F811
    page = visit(f"{site}{CHAPTER_3}#predict-first")
    options = page.locator("#predict-first details")
    letters = options.locator(".tl-letter")
    assert [text.strip(". ") for text in letters.all_text_contents()] == list("ABC") * 3
    assert options.first.locator("summary").text_content().startswith("A. One becomes"), "the text must stay the same"
    assert page.locator(".tl-why-label").count() == 0
    options.nth(1).locator("summary").click()
    options.nth(2).locator("summary").click()
    is_chosen = options.evaluate_all("folds => folds.map((fold) => 'chosen' in fold.dataset)")
    assert is_chosen == [False, True, *[False] * 7], "only the fold that is opened first counts as a choice"
    assert page.locator(".tl-why-label").count() == 1 and options.first.locator(".tl-why-label").is_visible()
    colours = letters.evaluate_all("discs => discs.slice(0, 3).map((disc) => getComputedStyle(disc).backgroundColor)")
    assert colours[1] != colours[0] == colours[2]


def test_keys_choose_an_option_while_the_focus_is_in_its_question(visit, site):  # noqa: F811
    page = visit(f"{site}{CHAPTER_3}#predict-first")
    options, score = page.locator("#predict-first details"), page.locator("#predict-first .score")
    page.keyboard.press("2")
    assert score.inner_text() == "3 questions. Your first choice counts."
    options.nth(3).locator("summary").focus()
    page.keyboard.press("9")
    page.keyboard.press("2")
    assert options.nth(4).get_attribute("data-answer") == "right"
    assert page.evaluate("document.activeElement.parentElement.open")
    page.keyboard.press("c")
    assert score.inner_text() == "1 of 1 right at the first try, 2 questions to go."
    assert options.nth(5).get_attribute("data-answer") == "wrong"
    store_reader(page, keys=False)
    options.nth(6).locator("summary").focus()
    page.keyboard.press("1")
    assert options.nth(6).get_attribute("data-answer") is None


def test_a_chapter_ends_with_the_total_and_what_to_look_at_again(visit, site):  # noqa: F811
    page = visit(f"{site}{CHAPTER_3}#predict-first")
    total = page.locator(".tl-chapter-total")
    assert not total.is_visible()
    options, last_options = (
        page.locator("#predict-first details"),
        page.locator("section:has(> .tl-chapter-total) details"),
    )
    options.nth(1).locator("summary").click()  # wrong
    last_options.nth(2).locator("summary").click()  # right
    assert total.locator("p").first.inner_text() == "The whole page: 1 of 2 right at the first try, 6 questions to go."
    links = total.locator("a").evaluate_all("links => links.map((link) => link.textContent)")
    assert links == ["Predict first, question 1", "section 3.3"]
    for link in total.locator("a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    assert is_accessible(page)
    page.reload()
    assert total.locator("a").count() == 2
    page.locator("#predict-first .again").click()
    assert total.locator("a").count() == 0 and total.is_visible()


# Sections and the place


def test_a_section_counts_as_read_after_a_while_at_its_end_and_the_book_continues_there(visit, site):  # noqa: F811
    page = visit(f"{site}how.html", viewport=DESKTOP_VIEWPORT)
    page.clock.install()
    page.goto(f"{site}{CHAPTER_3}#why-divide-by-d")
    page.clock.run_for(40_000)  # more than a tenth of the section's time, but the section's end is not reached
    assert reader_in_storage(page)["place"]["section"] == "why-divide-by-d" and not reader_in_storage(page)["read"]
    page.goto(f"{site}index.html")
    start_link = page.locator(".tl-start a").last
    assert start_link.inner_text().startswith("Continue: 3.4 Why divide by")
    assert start_link.get_attribute("href") == f"{CHAPTER_3}#why-divide-by-d"

    page.goto(f"{site}{CHAPTER_3}#why-divide-by-d")
    page.clock.run_for(80_000)
    assert not reader_in_storage(page)["read"]
    page.evaluate("document.querySelector('#why-divide-by-d').scrollIntoView({ block: 'end' })")
    page.clock.run_for(2_000)
    assert reader_in_storage(page)["read"] == {CHAPTER_3.removesuffix(".html"): ["why-divide-by-d"]}
    assert page.locator(".bd-toc-nav a[href='#why-divide-by-d']").inner_text().endswith("✓ read")
    page.goto(f"{site}index.html")
    assert start_link.inner_text().startswith("Continue: 3.5")
    for selector in (
        f".bd-links a[href='{CHAPTER_3}']",
        f".tl-cards a[href='{CHAPTER_3}']",
        f"td a[href='{CHAPTER_3}']",
    ):
        assert page.locator(f"{selector} .tl-progress").get_attribute("aria-label") == "1 of 13 core sections read"
    assert page.locator(f".bd-links a[href='{CHAPTERS[0]}'] .tl-progress").count() == 0


def test_a_section_counts_as_read_when_all_its_questions_have_been_answered(visit, site):  # noqa: F811
    page = visit(f"{site}{CHAPTER_3}#check-yourself", viewport=DESKTOP_VIEWPORT)
    first_options = page.locator("#check-yourself details:has(.tl-letter:text('A.')) > summary")
    assert first_options.count() == 5
    for summary in first_options.all()[:-1]:
        summary.click()
    first_options.first.locator(
        "xpath=../following-sibling::details[1]/summary"
    ).click()  # a second option of the first question
    assert not reader_in_storage(page)["read"]
    first_options.last.click()
    assert reader_in_storage(page)["read"] == {CHAPTER_3.removesuffix(".html"): ["check-yourself"]}
    assert page.locator(".bd-toc-nav a[href='#check-yourself']").inner_text().endswith("✓ read")


def test_a_short_look_at_a_section_or_a_step_back_in_the_chapter_does_not_move_the_place(visit, site):  # noqa: F811
    page = visit(f"{site}how.html", viewport=DESKTOP_VIEWPORT)
    page.clock.install()
    start_link = page.locator(".tl-start a").last

    def section_after_visit(address, seconds):
        page.goto(f"{site}how.html")  # so that the browser loads the next address again
        page.goto(site + address)
        page.clock.run_for(1_000 * seconds)
        return (reader_in_storage(page).get("place") or {}).get("section")

    assert section_after_visit(f"{CHAPTER_3}#why-divide-by-d", 20) is None  # a tenth of the section's time is 36 s
    assert section_after_visit(f"{CHAPTER_3}#all-queries-at-once", 60) == "all-queries-at-once"
    assert section_after_visit(f"{CHAPTER_3}#what-does-it-replace", 20) == "all-queries-at-once"
    assert section_after_visit(f"{CHAPTER_3}#what-does-it-replace", 40) == "what-does-it-replace"
    assert section_after_visit(f"{CHAPTER_3}#why-divide-by-d", 100) == "what-does-it-replace"
    assert section_after_visit(f"{CHAPTER_3}#references", 60) == "what-does-it-replace"
    assert section_after_visit(f"{CHAPTERS[3]}#what-is-a-head", 10) == "what-does-it-replace"
    page.goto(f"{site}index.html")
    assert start_link.inner_text().startswith("Continue: 3.9")
    assert section_after_visit(f"{CHAPTERS[3]}#what-is-a-head", 100) == "what-is-a-head"
    assert section_after_visit(f"{CHAPTER_3}#why-divide-by-d", 100) == "why-divide-by-d"


def test_scrolling_through_a_chapter_marks_no_section_as_read(visit, site):  # noqa: F811
    page = visit(f"{site}{CHAPTER_3}", viewport=DESKTOP_VIEWPORT)
    page.clock.install()
    page.reload()
    for _ in range(20):
        page.evaluate("scrollBy(0, 3000)")
        page.clock.run_for(1_000)
    assert page.evaluate("scrollY + innerHeight > document.documentElement.scrollHeight - 10")
    assert not reader_in_storage(page).get("read")


def test_a_new_reader_sees_the_front_page_as_it_was_built(visit, site):  # noqa: F811
    page = visit(f"{site}index.html")
    assert page.locator(".tl-start a").all_inner_texts() == ["Play with it", "Start: chapter 1"]
    assert page.locator(".tl-progress").count() == 0


# Storing a value under one of the book's own keys fails; under a key of the theme, it succeeds.
STORAGE_IS_FULL = """Storage.prototype.setItem = (key) => {
    if (key.startsWith("transformer-lab")) throw new DOMException("full", "QuotaExceededError");
};"""


@pytest.mark.parametrize("name", ["index.html", CHAPTER_3, "record.html"])
def test_a_page_works_if_nothing_can_be_stored(visit, site, name):  # noqa: F811
    page = visit(f"{site}how.html")
    page.add_init_script(STORAGE_IS_FULL)
    page.goto(site + name)
    page.locator(".bd-article h1").wait_for()
    if name == CHAPTER_3:
        page.locator("#predict-first details summary").first.click()
        assert page.locator(".verdict").count() == 1
    if name == "record.html":
        assert "stores nothing" in page.locator("#tl-record").inner_text()


def test_a_page_opened_from_disk_keeps_its_answers(visit):  # noqa: F811
    page = visit((HTML / CHAPTER_3).as_uri())
    page.locator("#predict-first details summary").first.click()
    page.reload()
    assert page.locator(".verdict").count() == 1


# The list of sections


ACTIVE_LINKS_WHILE_SCROLLING = """async (step) => {
    const links = [];
    for (let y = 0; y < document.documentElement.scrollHeight; y += step) {
        scrollTo(0, y);
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        const [link, ...others] = document.querySelectorAll(".bd-toc-nav a.active");
        if (!link) continue;
        const { top, bottom } = link.getBoundingClientRect();
        const box = document.querySelector(".bd-sidebar-secondary").getBoundingClientRect();
        const isVisible = box.top <= top && bottom <= box.bottom && !others.length;
        links.push([link.getAttribute("href"), isVisible]);
    }
    return links;
}"""


@pytest.mark.parametrize("name", sample(CHAPTERS, CHAPTERS[4:6]))
def test_the_list_marks_every_section_while_the_reader_scrolls(visit, site, name):  # noqa: F811
    page = visit(site + name, viewport={"width": 1280, "height": 600})
    active_links = page.evaluate(ACTIVE_LINKS_WHILE_SCROLLING, 120)
    assert [href for href, is_visible in active_links if not is_visible] == []
    expected = [link["href"] for link in soup(name).select(".bd-toc-nav a")]
    assert list(dict.fromkeys(href for href, _ in active_links)) == expected


@pytest.mark.parametrize("height", [500, 1200])
def test_the_section_that_a_link_leads_to_is_the_active_one(visit, site, height):  # noqa: F811
    page = visit(site + CHAPTERS[5], viewport={"width": 1280, "height": height})
    for link in page.locator(".bd-toc-nav a").all():
        link.click()
        page.wait_for_function(
            f"document.querySelector('.bd-toc-nav a.active')?.hash === '{link.get_attribute('href')}'"
        )
        assert link.get_attribute("aria-current") == "location"


def test_the_list_has_minutes_and_says_where_a_sitting_ends(visit, site):  # noqa: F811
    page = visit(site + CHAPTERS[3], viewport=DESKTOP_VIEWPORT)
    end_of_sitting = page.locator(".bd-toc-nav .tl-stop")
    assert end_of_sitting.all_inner_texts() == ["A good place to stop"]
    assert end_of_sitting.evaluate("line => line.previousElementSibling.textContent").startswith("4.9 ")
    assert re.fullmatch(r"\d+ min left · \d+ min further", page.locator(".tl-minutes-left").inner_text())
    assert serious_violations(page) == []
    (sitting_note,) = soup(CHAPTERS[3]).select(".tl-sitting")
    assert sitting_note.select("p")[-1].text == "A good place to stop: the rest of the chapter takes about 33 minutes."
    page.set_viewport_size({"width": 360, "height": 740})
    page.locator(".secondary-toggle").first.click()
    assert end_of_sitting.is_visible()


@pytest.mark.parametrize("height", [850, 400])
def test_name_and_search_stay_visible_only_in_a_tall_window(visit, site, height):  # noqa: F811
    page = visit(f"{site}references.html", viewport={"width": 1280, "height": height})
    is_sticky = height > 480
    page.evaluate("document.querySelector('.bd-sidebar-primary').scrollTop = 5000")
    for part in (".navbar-brand", ".bd-sidebar-primary .search-button__button"):
        assert (page.locator(part).bounding_box()["y"] >= 0) == is_sticky


def test_the_list_of_pages_shows_the_current_page(visit, site):  # noqa: F811
    page = visit(f"{site}references.html", viewport={"width": 1280, "height": 600})
    page.goto(site + CHAPTERS[0])  # the theme restores the scroll position of the list
    page.wait_for_load_state("load")
    page.wait_for_timeout(200)
    assert 130 < page.locator(".bd-links a.current").bounding_box()["y"] < 580


# Keys


def test_arrows_turn_pages_unless_the_focused_element_needs_them(visit, site):  # noqa: F811
    page = visit(site + CHAPTERS[4], viewport=DESKTOP_VIEWPORT)
    for target in (".tl-lab [tabindex='0']", ".tl-lab input", ".bd-article pre"):
        element = page.locator(target).first
        element.evaluate("node => { node.tabIndex = 0; node.focus(); }")
        # Outside a field, ? opens the card of keys.
        for key in ("ArrowRight", "/", *(["?"] if "input" in target else [])):
            element.evaluate(
                "(node, key) => node.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))", key
            )
        assert urlsplit(page.url).path.endswith(CHAPTERS[4])  # a lab's state may follow this path
        assert not page.locator("dialog[open], .search-button__wrapper.show").count()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Alt+ArrowDown")
    assert urlsplit(page.url).path.endswith(CHAPTERS[4])
    page.keyboard.press("ArrowRight")
    page.wait_for_url(site + CHAPTERS[5])
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(site + CHAPTERS[4])


def test_the_slash_key_opens_the_search(visit, site):  # noqa: F811
    page = visit(f"{site}how.html")
    page.keyboard.press("/")
    page.wait_for_function("document.activeElement.id === 'search-input'")
    assert page.locator("#search-input").input_value() == ""
    page.goto(f"{site}search.html")
    page.keyboard.press("/")
    page.wait_for_function("document.activeElement.id === 'search-page-input'")


@pytest.mark.parametrize("width", [1280, 360])
def test_a_card_lists_the_keys_and_turns_them_off(visit, site, width):  # noqa: F811
    page = visit(f"{site}how.html", viewport={"width": width, "height": 740})
    card = page.locator("dialog.tl-keys-card")
    page.keyboard.press("?")
    assert card.is_visible() and is_accessible(page)
    assert card.bounding_box()["width"] <= width
    page.keyboard.press("Escape")
    assert not card.is_visible()
    page.locator(".tl-keys-button").click()  # the card can also be opened without a keyboard
    card.locator("input").uncheck()
    card.locator("button").click()
    for _ in range(2):
        for key in ("?", "/", "ArrowRight"):
            page.keyboard.press(key)
        page.wait_for_timeout(100)
        assert page.url == f"{site}how.html" and not page.locator("dialog[open]").count()
        page.reload()


def test_a_missing_page_searches_for_the_words_of_its_address(visit, site):  # noqa: F811
    page = visit(f"{site}no/such/padding-mask_2.html")
    visit.problems.clear()  # only the page itself is missing
    field = page.locator(".tl-missing input")
    assert field.input_value() == "padding mask"
    field.press("Enter")
    page.locator("#search-results li").first.wait_for()
    assert page.url == f"{site}search.html?q=padding+mask"


# Your record


STORED_READER = {
    "place": place_in_chapter_3("why-divide-by-d"),
    "read": {CHAPTER_3.removesuffix(".html"): ["predict-first"]},
    "answers": {CHAPTER_3.removesuffix(".html"): {"k": {"section": "predict-first", "first": "wrong", "opened": [0]}}},
}


@pytest.fixture
def record(visit, site):  # noqa: F811
    page = visit(f"{site}record.html", viewport=DESKTOP_VIEWPORT)
    store_reader(page, **STORED_READER)
    page.reload()
    return page


def test_your_record_shows_progress_and_weak_topics(record):
    assert record.locator(".tl-start a").inner_text().startswith("Continue: 3.4")
    (row,) = [text for text in record.locator("#tl-record tr").all_inner_texts() if text.startswith("3 ·")]
    assert [cell.strip() for cell in row.split("\t")[1:3]] == ["1 of 15", "0 of 8"]
    weak_topics = record.locator(".tl-weak-list li")
    assert "1 of 1 question wrong" in weak_topics.inner_text()
    weak_topics.locator("a").click()
    assert record.url.endswith(f"{CHAPTER_3}#predict-first")


def test_a_practice_that_is_weak_opens_at_its_topic(record):
    practice = {"causal_places": {"solved": [], "missed": {"causal_inverted": 2}, "due": []}}
    record.evaluate("(text) => localStorage.setItem('transformer-lab.practice', text)", json.dumps(practice))
    record.reload()
    record.locator(".tl-weak-list a", has_text="Causal masks").click()
    record.locator(".tl-practice").wait_for()
    assert record.locator(".tl-practice .tl-choice-bar").inner_text().endswith("Causal masks")


def test_the_record_can_be_exported_deleted_and_imported(record, tmp_path):
    with record.expect_download() as download:
        record.get_by_role("button", name="Export as a file").click()
    download.value.save_as(tmp_path / "record.json")
    before = reader_in_storage(record)
    record.get_by_role("button", name="Delete the record").click()
    record.get_by_role("button", name="No, keep it").click()
    assert reader_in_storage(record)["read"]
    record.get_by_role("button", name="Delete the record").click()
    record.get_by_role("button", name="Yes, delete everything").click()
    assert record.evaluate("localStorage.getItem('transformer-lab.reader')") is None
    assert record.locator(".tl-progress").count() == 0
    record.locator("#tl-record input[type=file]").set_input_files(tmp_path / "record.json")
    status = record.locator(".tl-record-status")
    record.wait_for_function("document.querySelector('.tl-record-status').textContent.includes('added')")
    assert {name: reader_in_storage(record)[name] for name in STORED_READER} == {
        name: before.get(name) for name in STORED_READER
    }
    (tmp_path / "other.json").write_text("no record")
    record.locator("#tl-record input[type=file]").set_input_files(tmp_path / "other.json")
    record.wait_for_function("document.querySelector('.tl-record-status').textContent.includes('not a record')")
    assert status.get_attribute("role") == "status"


def test_a_file_of_the_checks_can_be_dropped_on_the_page(record):
    progress = json.dumps({"causal_mask": {"checks": 3, "correct": "2026-11-20 10:00 UTC", "stars": 3}})
    record.evaluate(
        """(text) => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([text], "progress.json"));
            document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
        }""",
        progress,
    )
    record.wait_for_function("document.querySelector('.tl-record-status').textContent.includes('1 exercise was added')")
    rows = record.locator("#tl-record tr").all_inner_texts()
    assert [row.split("\t")[4].strip() for row in rows if row.startswith("5 ·")] == ["1 of 8"]


def test_sections_are_ticked_by_keyboard(record):
    chapter_details = record.locator(".tl-checklists details").nth(2)
    chapter_details.locator("summary").press("Enter")
    box = chapter_details.locator("input").first  # the section *Try it first*
    box.press("Space")
    assert reader_in_storage(record)["read"][CHAPTER_3.removesuffix(".html")] == ["predict-first", "try-it-first"]
    assert box.evaluate("box => box === document.activeElement") and chapter_details.get_attribute("open") is not None
    box.press("Space")
    assert reader_in_storage(record)["read"][CHAPTER_3.removesuffix(".html")] == ["predict-first"]


@pytest.mark.parametrize("width", [1280, 360])
def test_your_record_fits_and_is_accessible(record, width):
    record.set_viewport_size({"width": width, "height": 740})
    record.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert record.evaluate("document.documentElement.scrollWidth") == width
    assert is_accessible(record)


# Questions from earlier chapters


def test_a_chapter_ends_with_questions_from_the_chapters_before_it():
    practice = Practice()
    assert not soup(CHAPTERS[0]).select(".tl-earlier")
    for name in CHAPTERS[1:]:
        (link,) = soup(name).select(".tl-earlier a")
        assert "Check yourself" in link.find_parent("section").h2.get_text()
        page, _, choice = link["href"].partition("?practice.choice=")
        practice.choice = choice  # the lab rejects an unknown choice
        assert page == "practice.html" and int(choice.removeprefix("to")) < int(name[:2])


def test_the_link_at_a_chapters_end_leads_to_a_question_from_earlier_chapters(visit, site):  # noqa: F811
    page = visit(f"{site}{CHAPTER_3}")
    page.locator(".tl-earlier a").click()
    page.locator("p.tl-question").wait_for()
    assert page.locator(".tl-choice-bar").inner_text().endswith("From chapters 1 to 2")
    titles = [topic.title for topic in topics().values() if topic.chapter < 3]
    assert page.locator(".tl-score").inner_text().startswith(tuple(titles))
