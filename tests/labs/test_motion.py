"""Cells animate to their new positions in some labs, and never under reduced motion."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from transformer_lab.labs import LookupLab, NormalizationLab, SplitLab, StridesLab


def press(name):
    return lambda page: page.get_by_role("button", name=name, exact=True).first.click()


@dataclass(frozen=True)
class Journey:
    """An interaction, and the cells that it animates from their old positions or from the positions of other cells."""

    make: Callable
    act: Callable
    cells: str
    box: str
    source: str | None = None
    name: str = "textContent"


JOURNEYS = {
    "a transpose": Journey(
        lambda: StridesLab((2, 3, 4), ""), press("+ .transpose(1, 2)"), ".tl-grid .tl-cell", ".tl-grid"
    ),
    "a view": Journey(lambda: StridesLab((2, 3, 4), ""), press("+ .view(-1)"), ".tl-grid .tl-cell", ".tl-grid"),
    "a permutation": Journey(
        lambda: StridesLab((2, 3, 4), ""),
        lambda page: page.get_by_label("Operations on x").fill(".permute(2, 0, 1)"),
        ".tl-grid .tl-cell",
        ".tl-grid",
    ),
    "a copy": Journey(
        lambda: StridesLab((2, 3), ".transpose(0, 1)"), press("+ .contiguous()"), ".tl-storage .tl-cell", ".tl-storage"
    ),
    "a split": Journey(
        lambda: SplitLab(stage=2),
        lambda page: page.locator(".tl-stage").nth(3).click(),
        ".tl-before-after > :last-child .tl-cell",
        ".tl-before-after",
        source=".tl-before-after > :first-child .tl-cell",
    ),
    "a merge": Journey(
        lambda: SplitLab(stage=6),
        lambda page: page.locator(".tl-stage").nth(7).click(),
        ".tl-before-after > :last-child .tl-cell",
        ".tl-before-after",
        source=".tl-before-after > :first-child .tl-cell",
    ),
    "a scale": Journey(
        lambda: LookupLab(temperature=0.1), press("√d"), ".tl-bar, .tl-weight", ".tl-scores", name="dataset.part"
    ),
    "the walk of a norm": Journey(
        NormalizationLab,
        press("batch norm"),
        ".tl-cubes > :last-child .tl-cell:is(.tl-outlined, .tl-chosen)",
        ".tl-cubes",
        source=".tl-cubes > :first-child .tl-cell:is(.tl-outlined, .tl-chosen)",
        name="dataset.flat",
    ),
}
each_journey = pytest.mark.parametrize("journey", JOURNEYS.values(), ids=list(JOURNEYS))

# Animations are paused at their start, so that no test depends on timing.
HOLD = """() => {
    const animate = Element.prototype.animate;
    Element.prototype.animate = function (...given) {
        const animation = animate.apply(this, given);
        animation.pause();
        return animation;
    };
}"""
ARRIVE = "document.getAnimations().forEach((move) => move.finish())"
# Return the layout positions, without transforms.
LAID_OUT = """() => [document.documentElement, ...document.querySelectorAll('.tl-lab, .tl-lab *')].map((node) =>
    [node.offsetLeft, node.offsetTop, node.offsetWidth, node.offsetHeight, node.clientWidth, node.clientHeight])"""
MOVES = """() => document.getAnimations().map((move) => [
    move.effect.getTiming().duration,
    ...move.effect.getKeyframes().flatMap((frame) => Object.keys(frame)),
])"""
OWN = {"offset", "computedOffset", "easing", "composite", "transform", "transformOrigin"}


def drawn(page, journey, cells=None):
    """Return each cell's drawn position in its box, by content; the first of several with the same content counts."""
    return page.locator(cells or journey.cells).evaluate_all(
        f"""cells => Object.fromEntries(cells.reverse().map((cell) => {{
            const box = cell.closest('{journey.box}').getBoundingClientRect();
            const {{ left, top, width }} = cell.getBoundingClientRect();
            return [cell.{journey.name}, [left - box.left, top - box.top, width].map(Math.round)];
        }}))"""
    )


def act(page, journey):
    page.evaluate(HOLD)
    journey.act(page)
    page.evaluate("() => new Promise((done) => setTimeout(done))")  # a lab draws after the event


@each_journey
def test_cells_animate_while_the_layout_is_final(show, journey):
    page = show(journey.make())
    before = drawn(page, journey)
    act(page, journey)
    moves = page.evaluate(MOVES)
    assert moves
    for duration, *properties in moves:
        assert duration <= 400
        assert set(properties) <= OWN
    starts = drawn(page, journey)
    came_from = drawn(page, journey, journey.source) if journey.source else before
    known = [name for name in starts if name in came_from]
    assert known
    for name in known:
        assert starts[name] == pytest.approx(came_from[name], abs=1)
    layout = page.evaluate(LAID_OUT)
    page.evaluate(ARRIVE)
    page.wait_for_function("!document.querySelector('.tl-moving')")
    assert page.evaluate(LAID_OUT) == layout
    assert drawn(page, journey) != starts


@each_journey
def test_no_animation_under_reduced_motion(show, journey):
    page = show(journey.make())
    act(page, journey)
    page.evaluate(ARRIVE)
    arrived = drawn(page, journey)

    page = show(journey.make())
    page.emulate_media(reduced_motion="reduce")
    try:
        act(page, journey)
        assert drawn(page, journey) == arrived
        assert page.evaluate("document.getAnimations().length") == 0
    finally:
        page.emulate_media(reduced_motion="no-preference")


def test_bars_follow_a_drag_without_animation(show):
    page = show(LookupLab())
    page.evaluate(HOLD)
    page.get_by_label("Temperature", exact=True).press("ArrowLeft")
    page.evaluate("() => new Promise((done) => setTimeout(done))")
    assert page.evaluate("document.getAnimations().length") == 0
