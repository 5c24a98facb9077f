"""Cells travel to their new places in the labs whose lesson it is, and nowhere where a reader asked for less motion."""

import pytest

from transformer_lab.labs import StridesLab

# What a hand does, and what travels then.
TRAVELS = {
    "a transpose": (
        lambda: StridesLab(shape=(2, 3, 4), chain=""),
        lambda page: page.get_by_role("button", name="+ .transpose(1, 2)").click(),
        ".tl-grid .tl-cell",
    ),
    "a copy": (
        lambda: StridesLab(shape=(2, 3), chain=".transpose(0, 1)"),
        lambda page: page.get_by_role("button", name="+ .contiguous()").click(),
        ".tl-storage .tl-cell",
    ),
    "a view": (
        lambda: StridesLab(shape=(2, 3, 4), chain=""),
        lambda page: page.get_by_role("button", name="+ .view(-1)").click(),
        ".tl-grid .tl-cell",
    ),
}
each_travel = pytest.mark.parametrize("make, act, selector", TRAVELS.values(), ids=list(TRAVELS))

# From here on what moves stands still at its start, so that no test depends on how fast it runs.
HOLD = """() => {
    const animate = Element.prototype.animate;
    Element.prototype.animate = function (...given) {
        const animation = animate.apply(this, given);
        animation.pause();
        return animation;
    };
}"""
# Where each cell is drawn in its picture, by what it holds; the first of those that hold the same.
DRAWN = """cells => Object.fromEntries(cells.reverse().map((cell) => {
    const box = cell.closest('.tl-grid, .tl-storage').getBoundingClientRect();
    const { left, top, width } = cell.getBoundingClientRect();
    return [cell.textContent, [left - box.left, top - box.top, width].map(Math.round)];
}))"""
# Where everything is laid out, wherever it is drawn.
LAID_OUT = """() => [document.documentElement, ...document.querySelectorAll('.tl-lab, .tl-lab *')].map((node) =>
    [node.offsetLeft, node.offsetTop, node.offsetWidth, node.offsetHeight, node.clientWidth, node.clientHeight])"""
MOVES = """() => document.getAnimations().map((move) => [
    move.effect.getTiming().duration,
    ...move.effect.getKeyframes().flatMap((frame) => Object.keys(frame)),
])"""
OWN = {"offset", "computedOffset", "easing", "composite", "transform", "transformOrigin"}


@each_travel
def test_cells_travel_from_where_they_stood_and_only_their_drawing_does(show, make, act, selector):
    page = show(make())
    cells = page.locator(selector)
    stood = cells.evaluate_all(DRAWN)
    page.evaluate(HOLD)
    act(page)
    page.wait_for_function("document.getAnimations().length")
    for duration, *properties in page.evaluate(MOVES):
        assert duration <= 400
        assert set(properties) <= OWN
    starts = cells.evaluate_all(DRAWN)
    travelling = {name: place for name, place in starts.items() if name in stood}
    assert travelling == {name: stood[name] for name in travelling}
    laid_out = page.evaluate(LAID_OUT)
    page.evaluate("document.getAnimations().forEach((move) => move.finish())")
    page.wait_for_function("!document.querySelector('.tl-moving')")
    assert page.evaluate(LAID_OUT) == laid_out
    assert cells.evaluate_all(DRAWN) != starts


@each_travel
def test_with_less_motion_cells_are_there_at_once(show, make, act, selector):
    page = show(make())
    page.evaluate(HOLD)
    act(page)
    page.wait_for_function("document.getAnimations().length")
    page.evaluate("document.getAnimations().forEach((move) => move.finish())")
    arrived = page.locator(selector).evaluate_all(DRAWN)

    page = show(make())
    page.emulate_media(reduced_motion="reduce")
    try:
        page.evaluate(HOLD)
        act(page)
        assert page.locator(selector).evaluate_all(DRAWN) == arrived
        assert page.evaluate("document.getAnimations().length") == 0
    finally:
        page.emulate_media(reduced_motion="no-preference")
