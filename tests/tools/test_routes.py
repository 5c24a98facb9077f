"""The routes through the course have no gaps, and the tool names every gap in an invalid route."""

import re

import pytest

import routes


@pytest.fixture
def edited_route(monkeypatch, tmp_path):
    """Return a function that writes the page of a route, with its text changed by ``edit``, to a separate folder."""
    routes.terms()  # read from the course's glossary, before `tmp_path` replaces the course

    def edit_page(route, edit):
        text = edit(route.path.read_text("utf-8"))
        monkeypatch.setattr(routes, "CHAPTERS", tmp_path)
        route.path.write_text(text, "utf-8")
        return route

    return edit_page


@pytest.mark.parametrize("route", routes.ROUTES, ids=lambda route: route.page)
def test_a_route_uses_nothing_before_it_is_introduced(route):
    assert list(routes.holes(route)) == []


@pytest.mark.parametrize(
    "omitted_section, hole",
    [("2.2", "broadcast"), ("3.5", "tl.attention_weights"), ("5.2", "tl.causal_mask")],
)
def test_a_section_that_is_left_out_leaves_a_hole(edited_route, omitted_section, hole):
    route = edited_route(routes.ROUTES[0], lambda text: re.sub(rf" {re.escape(omitted_section)}\b", "", text))
    assert hole in {word for _, word, _ in routes.holes(route)}


def test_a_word_that_the_page_no_longer_explains_leaves_a_hole(edited_route):
    route = edited_route(routes.ROUTES[0], lambda text: re.sub(r"(?m)^- \*\*padding\*\*.*\n", "", text))
    assert "padding" in {word for _, word, _ in routes.holes(route)}


def test_a_word_that_only_a_further_section_introduces_leaves_a_hole(monkeypatch):
    """If the section on positions were a further section, the later sections would use a word that nothing explains."""
    core_route = next(route for route in routes.ROUTES if route.skips_further)
    monkeypatch.setattr(routes, "_is_further", lambda number: number == "3.8")
    assert ("4.7", "position") in {(section, word) for section, word, _ in routes.holes(core_route)}


def test_minutes_are_the_sum_of_the_tables():
    for route in routes.ROUTES:
        core = re.sub(r"(?m)^.*\*further\*.*\n", "", route.path.read_text("utf-8"))
        rows = re.findall(r"(?m)^\| (Exercise )?\[.*\| (\d+) \|$", core)
        reading = sum(int(minutes) for exercise, minutes in rows if not exercise)
        writing = sum(int(minutes) for exercise, minutes in rows if exercise)
        assert routes.minutes(route) == (reading, writing)


def test_an_unknown_exercise_is_refused(edited_route):
    route = edited_route(routes.ROUTES[0], lambda text: text.replace("+ split_heads", "+ cut_heads"))
    with pytest.raises(SystemExit, match=r"^A route must name exercises of the assignments, got cut_heads\.$"):
        routes.minutes(route)
