"""Tests of what a reader who follows a route sees, and of what a page says about its further sections."""

import re

from test_book import HTML, site, visit  # noqa: F401

import routes

FIRST_ROUTE = routes.ROUTES[0]
NEXT_SECTION_ID = "(id) => document.getElementById(id).nextElementSibling.id"


def foot_link(page, side):
    return page.locator(f".prev-next-area a.{side}")


def test_next_leads_along_the_route_from_its_first_stop_to_its_last(visit, site):  # noqa: F811
    page = visit(f"{site}{FIRST_ROUTE.page}.html")
    section_numbers = [number for _, number in FIRST_ROUTE.sections_and_exercises]
    page.locator(".bd-article table a").first.click()
    page.wait_for_load_state()
    visited_sections = []
    for _ in range(60):
        section_id = page.evaluate("decodeURIComponent(location.hash.slice(1))")
        if page.url.startswith(f"{site}{FIRST_ROUTE.page}.html"):
            break
        heading = page.locator(f"[id='{section_id}'] > h2").first.inner_text()
        visited_sections.append(re.search(r"\d+\.\d+", heading)[0])
        link = page.locator(f"[id='{section_id}'] > .tl-next a")
        if link.count():
            link.click()
        else:  # the next section of the route is the section below
            page.goto(page.url.split("#")[0] + "#" + page.evaluate(NEXT_SECTION_ID, section_id))
        page.wait_for_load_state()
    assert visited_sections == section_numbers


def test_the_links_at_the_foot_and_the_list_follow_the_route_until_the_reader_leaves_it(visit, site):  # noqa: F811
    page = visit(f"{site}{FIRST_ROUTE.page}.html")
    button = page.locator(".tl-route button")
    assert button.inner_text() == "Follow this route"
    page.goto(f"{site}02_matmul_broadcasting.html")
    assert foot_link(page, "right-next").get_attribute("href").startswith("03_attention_lookup.html")
    assert page.locator(".tl-next, .tl-on-route").count() == 0
    page.goto(f"{site}{FIRST_ROUTE.page}.html")
    button.press("Enter")
    assert button.inner_text() == "Stop following this route"
    page.goto(f"{site}02_matmul_broadcasting.html")
    assert "3.1 What is it for?" in foot_link(page, "right-next").inner_text()
    assert "1.8 How does a sentence" in foot_link(page, "left-prev").inner_text()
    texts_on_route = page.locator(".bd-toc-nav a.tl-on-route").all_inner_texts()
    assert [text.split()[0] for text in texts_on_route] == ["2.1", "2.2", "2.5"]
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/03_attention_lookup.html#*")
    page.goto(f"{site}{FIRST_ROUTE.page}.html")
    button.click()
    page.goto(f"{site}02_matmul_broadcasting.html")
    assert page.locator(".tl-next").count() == 0


def test_a_followed_route_starts_on_its_own_page_with_its_first_section(visit, site):  # noqa: F811
    page = visit(f"{site}{FIRST_ROUTE.page}.html")
    button, start, next_link = (
        page.locator(".tl-route button"),
        page.locator(".tl-route a"),
        foot_link(page, "right-next"),
    )
    first_link = page.locator(".bd-article table a").first
    name, address = first_link.inner_text(), first_link.get_attribute("href")
    assert [start.inner_text(), start.get_attribute("href")] == [f"Start: {name}", address]
    initial_next_link = [next_link.get_attribute("href"), next_link.inner_text()]
    button.click()
    assert next_link.get_attribute("href") == address and name in next_link.inner_text()
    button.click()
    assert [next_link.get_attribute("href"), next_link.inner_text()] == initial_next_link
    button.click()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(site + address)
    page.goto(f"{site}{FIRST_ROUTE.page}.html")
    button.click()
    start.click()
    page.wait_for_url(site + address)
    assert page.locator("a.tl-on-route").count(), "the page must have a link that follows the route"


def test_a_section_before_a_jump_of_the_route_ends_with_a_link_over_the_jump(visit, site):  # noqa: F811
    page = visit(f"{site}{FIRST_ROUTE.page}.html")
    page.locator(".tl-route button").click()
    page.goto(f"{site}03_attention_lookup.html")
    lines = page.locator(".tl-next")
    assert [line.split("?")[0] for line in lines.all_inner_texts()] == [
        "Your route continues with 3.7 Why project to queries, keys and values",
        "Your route continues with 4.2 What is a head",
    ]
    PARENT_AND_IS_LAST_LINE = "(line) => line.parentElement.id + (line === line.parentElement.lastElementChild)"
    assert [line.evaluate(PARENT_AND_IS_LAST_LINE) for line in lines.all()] == [
        "all-queries-at-oncetrue",
        "why-project-to-queries-keys-and-valuestrue",
    ]
    assert lines.last.locator("a").get_attribute("href") == "04_multi_head.html#what-is-a-head"


def test_a_further_section_is_marked_in_its_heading_its_first_line_and_the_list(visit, site):  # noqa: F811
    page = visit(f"{site}02_matmul_broadcasting.html", viewport={"width": 1280, "height": 850})
    further_sections = page.locator("section.further")
    assert [text.split()[0] for text in further_sections.locator("h2").all_inner_texts()] == ["2.6", "2.9"]
    assert further_sections.first.locator(".tl-what-you-miss").inner_text().startswith("Further: skip it, and you miss")
    content = further_sections.first.locator("h2").evaluate("(node) => getComputedStyle(node, '::after').content")
    assert content == '"further"'
    listed_texts = page.locator(".bd-toc-nav a.tl-further").all_inner_texts()
    assert [text.split()[0] for text in listed_texts] == ["2.6", "2.9"] and all(
        "min · further" in text for text in listed_texts
    )
    assert re.fullmatch(r"\d+ min left · \d+ min further", page.locator(".tl-minutes-left").inner_text())


def test_a_page_without_a_stop_of_a_route_contains_no_routes():
    assert "const ROUTES" not in (HTML / "glossary.html").read_text("utf-8")
