"""In all labs, buttons with the same kind of function look the same."""

import pytest

from lab_table import LABS
from transformer_lab.labs import MaskLab, NormalizationLab, SamplingLab, WholeLab

KINDS = ".tl-modes > *, .tl-chips > *, .tl-on-off"
# Buttons that mark a place on a slider or a word of the answer, and the buttons in the panels of WholeLab.
OTHER_BUTTONS = ".tl-root, .tl-mark, .tl-marks *, .tl-aside *, .tl-slider *, .tl-answers *, .tl-whole *"


@pytest.mark.parametrize("name", [name for name in LABS if name not in ("practice", "painting", "whole")])
def test_every_button_that_stays_pressed_is_of_a_known_kind_and_at_most_one_action_is_filled(show, name):
    page = show(LABS[name].make())
    toggle_buttons = page.locator("button[aria-pressed]")
    buttons_of_no_kind = toggle_buttons.evaluate_all(
        "(buttons, kinds) => buttons.filter((each) => !each.matches(kinds)).map((each) => each.textContent)",
        f"{KINDS}, {OTHER_BUTTONS}",
    )
    assert buttons_of_no_kind == []
    assert page.locator(".tl-main").count() <= 1


def test_each_kind_has_its_look(show):
    page = show(NormalizationLab(), MaskLab(), SamplingLab())
    first, second = (page.locator(".tl-modes > button").nth(i).bounding_box() for i in (0, 1))
    assert abs(first["x"] + first["width"] - second["x"]) < 0.5, "the buttons of modes must touch each other"
    chips = [page.locator(".tl-presets .tl-chips > button").nth(i) for i in (0, 1)]
    first, second = (chip.bounding_box() for chip in chips)
    assert second["x"] - first["x"] - first["width"] > 3
    radius = chips[0].evaluate("chip => parseFloat(getComputedStyle(chip).borderRadius)")
    assert radius >= first["height"] / 2 - 1, "the button of an example must have round ends"
    switch = page.get_by_role("button", name="subtract the mean")
    track_style = "node => getComputedStyle(node, '::before').backgroundImage"
    before = switch.evaluate(track_style)
    switch.click()
    assert "radial-gradient" in before and switch.evaluate(track_style) != before
    action = page.get_by_role("button", name="Draw", exact=True)
    plain_button = page.get_by_role("button", name="Draw 100")
    background = "node => getComputedStyle(node).backgroundColor"
    assert action.evaluate(background) != plain_button.evaluate(background)


@pytest.mark.parametrize(
    "lab",
    [
        lambda: WholeLab(part="encoder.0.self"),
        lambda: WholeLab(tool="break", off=["positions"]),
        SamplingLab,
    ],
)
def test_a_pressed_button_under_the_mouse_keeps_the_colour_of_its_text(show, lab):
    page = show(lab())
    colour = "node => getComputedStyle(node).color"
    pressed_buttons = page.locator("button[aria-pressed=true]:not(.tl-on-off):visible").all()
    assert pressed_buttons
    for button in pressed_buttons:
        page.mouse.move(0, 0)
        before = button.evaluate(colour)
        button.hover()
        assert button.evaluate(colour) == before, button.text_content()
