"""In some labs, cells move visibly to their new positions, but never if the reader prefers reduced motion."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from transformer_lab.labs import LookupLab, NormalizationLab, SplitLab, StridesLab


def press_action(name):
    """Return a function that presses the button called ``name`` on a page."""
    return lambda page: page.get_by_role("button", name=name, exact=True).first.click()


@dataclass(frozen=True)
class Animation:
    """An interaction, and the cells that it animates from their old positions or from the positions of other cells."""

    make_lab: Callable
    start: Callable
    cells: str
    box: str
    start_cells: str | None = None
    identity_property: str = "textContent"


ANIMATIONS = {
    "a transpose": Animation(
        lambda: StridesLab((2, 3, 4), ""), press_action("+ .transpose(1, 2)"), ".tl-grid .tl-cell", ".tl-grid"
    ),
    "a view": Animation(
        lambda: StridesLab((2, 3, 4), ""), press_action("+ .view(-1)"), ".tl-grid .tl-cell", ".tl-grid"
    ),
    "a permutation": Animation(
        lambda: StridesLab((2, 3, 4), ""),
        lambda page: page.get_by_label("Operations on x").fill(".permute(2, 0, 1)"),
        ".tl-grid .tl-cell",
        ".tl-grid",
    ),
    "a copy": Animation(
        lambda: StridesLab((2, 3), ".transpose(0, 1)"),
        press_action("+ .contiguous()"),
        ".tl-storage .tl-cell",
        ".tl-storage",
    ),
    "a split": Animation(
        lambda: SplitLab(stage=2),
        lambda page: page.locator(".tl-stage").nth(3).click(),
        ".tl-before-after > :last-child .tl-cell",
        ".tl-before-after",
        start_cells=".tl-before-after > :first-child .tl-cell",
    ),
    "a merge": Animation(
        lambda: SplitLab(stage=6),
        lambda page: page.locator(".tl-stage").nth(7).click(),
        ".tl-before-after > :last-child .tl-cell",
        ".tl-before-after",
        start_cells=".tl-before-after > :first-child .tl-cell",
    ),
    "a scale": Animation(
        lambda: LookupLab(temperature=0.1),
        press_action("√d"),
        ".tl-bar, .tl-weight",
        ".tl-scores",
        identity_property="dataset.part",
    ),
    "the walk of a norm": Animation(
        NormalizationLab,
        press_action("batch norm"),
        ".tl-cubes > :last-child .tl-cell:is(.tl-outlined, .tl-chosen)",
        ".tl-cubes",
        start_cells=".tl-cubes > :first-child .tl-cell:is(.tl-outlined, .tl-chosen)",
        identity_property="dataset.flat",
    ),
}
each_animation = pytest.mark.parametrize("animation", ANIMATIONS.values(), ids=list(ANIMATIONS))

# Animations are paused at their start, so that no test depends on timing.
PAUSE_ANIMATIONS = """() => {
    const animate = Element.prototype.animate;
    Element.prototype.animate = function (...given) {
        const animation = animate.apply(this, given);
        animation.pause();
        return animation;
    };
}"""
FINISH_ANIMATIONS = "document.getAnimations().forEach((move) => move.finish())"
# Return the positions and sizes in the layout, which transforms do not change.
LAYOUT = """() => [document.documentElement, ...document.querySelectorAll('.tl-lab, .tl-lab *')].map((node) =>
    [node.offsetLeft, node.offsetTop, node.offsetWidth, node.offsetHeight, node.clientWidth, node.clientHeight])"""
RUNNING_ANIMATIONS = """() => document.getAnimations().map((move) => [
    move.effect.getTiming().duration,
    ...move.effect.getKeyframes().flatMap((frame) => Object.keys(frame)),
])"""
ANIMATED_PROPERTIES = {"offset", "computedOffset", "easing", "composite", "transform", "transformOrigin"}


def drawn_positions(page, animation, cells=None):
    """Map each cell's content to the cell's drawn position in its box; if contents are equal, use the first cell."""
    return page.locator(cells or animation.cells).evaluate_all(
        f"""cells => Object.fromEntries(cells.reverse().map((cell) => {{
            const box = cell.closest('{animation.box}').getBoundingClientRect();
            const {{ left, top, width }} = cell.getBoundingClientRect();
            return [cell.{animation.identity_property}, [left - box.left, top - box.top, width].map(Math.round)];
        }}))"""
    )


def start_animation(page, animation):
    page.evaluate(PAUSE_ANIMATIONS)
    animation.start(page)
    page.evaluate("() => new Promise((done) => setTimeout(done))")  # a lab draws after the event


@each_animation
def test_cells_animate_while_the_layout_is_final(show, animation):
    page = show(animation.make_lab())
    initial_positions = drawn_positions(page, animation)
    start_animation(page, animation)
    running_animations = page.evaluate(RUNNING_ANIMATIONS)
    assert running_animations
    for duration, *properties in running_animations:
        assert duration <= 400
        assert set(properties) <= ANIMATED_PROPERTIES
    start_positions = drawn_positions(page, animation)
    expected_positions = (
        drawn_positions(page, animation, animation.start_cells) if animation.start_cells else initial_positions
    )
    common_cells = [cell for cell in start_positions if cell in expected_positions]
    assert common_cells
    for cell in common_cells:
        assert start_positions[cell] == pytest.approx(expected_positions[cell], abs=1)
    layout = page.evaluate(LAYOUT)
    page.evaluate(FINISH_ANIMATIONS)
    page.wait_for_function("!document.querySelector('.tl-moving')")
    assert page.evaluate(LAYOUT) == layout
    assert drawn_positions(page, animation) != start_positions


@each_animation
def test_there_is_no_animation_under_reduced_motion(show, animation):
    page = show(animation.make_lab())
    start_animation(page, animation)
    page.evaluate(FINISH_ANIMATIONS)
    final_positions = drawn_positions(page, animation)

    page = show(animation.make_lab())
    page.emulate_media(reduced_motion="reduce")
    try:
        start_animation(page, animation)
        assert drawn_positions(page, animation) == final_positions
        assert page.evaluate("document.getAnimations().length") == 0
    finally:
        page.emulate_media(reduced_motion="no-preference")


def test_bars_follow_a_drag_without_animation(show):
    page = show(LookupLab())
    page.evaluate(PAUSE_ANIMATIONS)
    page.get_by_label("Temperature", exact=True).press("ArrowLeft")
    page.evaluate("() => new Promise((done) => setTimeout(done))")
    assert page.evaluate("document.getAnimations().length") == 0
