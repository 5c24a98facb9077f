"""The labs in a real browser: by mouse, finger and keyboard, light and dark, wide and narrow, with the network off."""

import re

import pytest
import torch
from accessibility import violations_in_both_themes
from gestures import finger_scrolls, middle, slide, status, swipe, tab_through

from transformer_lab.labs import BroadcastingLab, LookupLab, StridesLab

LABS = [StridesLab, BroadcastingLab, LookupLab]
each_lab = pytest.mark.parametrize("make", LABS, ids=lambda make: make.__name__)

# What each lab can be brought to that is large, wide, or wrong.
STATES = [
    lambda: StridesLab((4, 16), ".t()"),
    lambda: StridesLab((2, 32), ".reshape(-1)[::3]"),
    lambda: StridesLab((2, 2, 2, 2, 4), ".transpose(0, 4).view(64)"),
    lambda: BroadcastingLab((2, 3, 1), (4,)),
    lambda: BroadcastingLab((8, 8), (8, 8), "matmul", (7, 7)),
    lambda: BroadcastingLab((3, 4), (3,)),
    lambda: BroadcastingLab((2, 1, 3, 4, 1, 2, 3, 1), (10**9,)),
    lambda: LookupLab((2, -2), [(2, -2), (-2, 2)], [(-2, -2), (2, -2)], labels=["a long name", "b"], temperature=100),
]


def drag(page, locator, dx, dy=0, steps=8):
    """Drag with the mouse, in steps; returns where the locator's top was on the way."""
    locator.scroll_into_view_if_needed()
    x, y = middle(locator)
    page.mouse.move(x, y)
    page.mouse.down()
    tops = set()
    for step in range(1, steps + 1):
        page.mouse.move(x + dx * step / steps, y + dy * step / steps)
        tops.add(round(locator.bounding_box()["y"], 1) if not dy else 0)
    page.mouse.up()
    return tops


def query(page):
    return page.get_by_label(re.compile("^Query at"))


# What PyTorch says that the labs should say.


def walked(x, flat):
    """The strides lab's first sentence about element number ``flat`` of ``x``."""
    index = [int(i) for i in torch.unravel_index(torch.tensor(flat), x.shape)]
    place = x.storage_offset() + sum(i * stride for i, stride in zip(index, x.stride()))
    return f"Element {index} is {x.flatten()[flat].item()}, at storage place {place}."


def added(a, b, index):
    """The broadcasting lab's sentence about one element of a sum."""
    x = 10 * torch.arange(1, torch.tensor(a).prod() + 1).view(a)
    y = torch.arange(1, torch.tensor(b).prod() + 1).view(b)
    element, shape = re.escape(str(list(index))), re.escape(str(tuple((x + y).shape)))
    return rf"result{element} = .* = {(x + y)[index].item()}\. The sum has shape {shape}\."


def weighed(lab):
    """The lookup lab's sentence."""
    best = lab.weights.argmax()
    output = ", ".join(f"{x:.2f}".replace("-", "−") for x in lab.output)
    return f"{lab.labels[best]} weighs most, {lab.weights[best]:.2f}. The output is ({output})."


# By keyboard.


@each_lab
def test_tab_reaches_every_control_and_shows_where_it_is(show, make):
    page = show(make())
    kinds = "button, input, [role=spinbutton], [role=application], [tabindex='0']"
    tab_through(page, f".tl-lab :is({kinds}):not(:disabled)")


def test_arrow_keys_walk_through_a_tensor(show):
    lab = StridesLab((2, 3, 4), ".transpose(1, 2)[:, 1:]")
    page = show(lab)
    grid = page.get_by_label(re.compile("^The tensor"))
    grid.focus()
    flat = 0
    for key, by in [("ArrowRight", 1), ("ArrowDown", 3), ("ArrowRight", 1), ("PageDown", 9), ("ArrowLeft", -1)]:
        page.keyboard.press(key)
        flat += by
        assert status(page).startswith(walked(lab.tensor, flat))
    walk = page.get_by_role("slider")
    walk.focus()
    page.keyboard.press("End")
    assert status(page).startswith(walked(lab.tensor, lab.tensor.numel() - 1))
    assert "17, storage place 23" not in walk.get_attribute("aria-valuetext")
    assert walk.get_attribute("aria-valuetext") == "element 18 of 18, storage place 23"


def test_operations_are_added_and_taken_back_by_keyboard(show):
    page = show(StridesLab())
    for chain, name in [(".view(-1)", "+ .view(-1)"), ("", "undo last")]:
        button = page.get_by_role("button", name=name)
        button.focus()
        page.keyboard.press("Enter")
        assert page.get_by_label("Operations on x").input_value() == (".transpose(1, 2)" + chain)
        assert page.evaluate("document.activeElement.tagName") == "BUTTON"
        if chain:
            assert "They would have to be equal" in page.get_by_role("alert").filter(has_text="view").inner_text()
            assert page.locator(".tl-failed").inner_text().startswith(".view(-1)")


def test_arrow_keys_change_a_size_and_walk_through_the_result(show):
    page = show(BroadcastingLab())
    knob = page.get_by_label("a, axis 0")
    knob.focus()
    for key in ("ArrowUp", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert knob.get_attribute("aria-valuenow") == "4"
    assert knob.evaluate("node => node === document.activeElement")
    assert re.fullmatch(added((4, 1), (4,), (0, 0)), status(page))
    page.get_by_label(re.compile("^The result")).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert re.fullmatch(added((4, 1), (4,), (2, 1)), status(page))


def test_a_product_is_explained_with_torch_numbers(show):
    page = show(BroadcastingLab((2, 3), (3, 2)))
    page.get_by_role("button", name="a @ b").press("Enter")
    a, b = torch.arange(1, 7).view(2, 3), torch.arange(1, 7).view(3, 2)
    assert status(page) == f"result[0, 0] = 1×1 + 2×3 + 3×5 = {(a @ b)[0, 0]}. The product has shape (2, 2)."


def test_arrow_keys_move_a_point(show):
    page = show(LookupLab(query=(0.9, 0.4)))
    query(page).focus()
    for key in ("ArrowLeft", "ArrowUp", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    assert page.get_by_label("Query", exact=True).input_value() == "0.3, 0.5"
    assert status(page) == weighed(LookupLab(query=(0.3, 0.5)))
    page.get_by_role("button", name="distance").press("Enter")
    assert status(page) == weighed(LookupLab(query=(0.3, 0.5), similarity="distance"))
    page.get_by_label("Temperature").press("Home")
    assert "a lookup that finds one key" in status(page)


# By mouse.


@pytest.mark.parametrize("width", [760, 360])
def test_walking_by_mouse(show, width):
    lab = StridesLab()
    page = show(lab, width=width)
    walk, frame = page.get_by_role("slider"), page.locator(".tl-lab")
    height = frame.bounding_box()["height"]
    seen = set()
    for _ in slide(page, walk, [step / 12 for step in range(13)]):
        assert frame.bounding_box()["height"] == height, "the lab changes its size under the finger"
        seen.add(status(page))
    assert len(seen) > 10 and status(page).startswith(walked(lab.tensor, 23))
    page.locator(".tl-grid .tl-cell").nth(7).hover()
    assert status(page).startswith(walked(lab.tensor, 7))


@pytest.mark.parametrize("width", [760, 360])
def test_a_size_follows_the_mouse_all_the_way(show, width):
    page = show(BroadcastingLab(), width=width)
    knob, frame = page.get_by_label("a, axis 0"), page.locator(".tl-lab")
    height = frame.bounding_box()["height"]
    assert len(drag(page, knob, 54)) == 1, "the size moves away from the pointer"
    assert width < 500 or frame.bounding_box()["height"] == height, "what is below the lab moves"
    assert page.get_by_label("Shape of a").input_value() == "6, 1"
    assert re.fullmatch(added((6, 1), (4,), (0, 0)), status(page))
    drag(page, page.get_by_label("b, axis 0"), 400)
    assert page.get_by_label("Shape of b").input_value() == "8"
    page.locator(".tl-part").nth(1).locator(".tl-cell").nth(9).hover()
    assert re.fullmatch(added((6, 1), (8,), (1, 1)), status(page)), "pointing at an operand points at the result"


def test_a_size_that_does_not_fit_says_so_and_keeps_the_operands(show):
    page = show(BroadcastingLab((3, 4), (4,)))
    drag(page, page.get_by_label("b, axis 0"), -18)
    with pytest.raises(RuntimeError):
        torch.zeros(3, 4) + torch.zeros(3)
    assert status(page) == "These shapes do not fit: axis −1: 4 and 3 differ, and neither is 1."
    assert page.locator(".tl-part:visible").count() == 2


def test_the_query_follows_the_mouse(show):
    page = show(LookupLab(query=(0.9, 0.4)))
    plane = page.locator(".tl-plane").first.bounding_box()
    unit = plane["width"] / 5
    x, y = middle(query(page).locator(".tl-query"))
    page.mouse.move(x + 3, y)
    page.mouse.down()
    before = status(page)
    page.mouse.up()
    assert status(page) == before, "pressing alone moves nothing"
    drag(page, query(page).locator(".tl-query"), -1.5 * unit, 0.8 * unit)
    point = [float(part) for part in page.get_by_label("Query", exact=True).input_value().split(", ")]
    assert point == pytest.approx([-0.6, -0.4], abs=0.02)
    assert status(page) == weighed(LookupLab(query=point))
    drag(page, query(page).locator(".tl-query"), -900, 900)
    assert page.get_by_label("Query", exact=True).input_value() == "-2, -2"
    drag(page, page.get_by_label(re.compile("^Key cat")).locator(".tl-point"), -0.5 * unit)
    assert page.get_by_label(re.compile("^Key cat")).get_attribute("aria-label").startswith("Key cat at (1.1")


# By touch.


def test_labs_by_touch(show):
    page = show(StridesLab(), BroadcastingLab(), LookupLab(query=(0.9, 0.4)), width=360, touch=True)
    cell = page.locator(".tl-grid .tl-cell").nth(7)
    cell.tap()
    assert status(page).startswith(walked(StridesLab().tensor, 7))

    knob = page.get_by_label("a, axis 0")
    knob.scroll_into_view_if_needed()
    swipe(page, middle(knob), 54)
    assert re.fullmatch(added((6, 1), (4,), (0, 0)), status(page, 1))

    query(page).scroll_into_view_if_needed()
    unit = page.locator(".tl-plane").first.bounding_box()["width"] / 5
    swipe(page, middle(query(page).locator(".tl-query")), -0.5 * unit, 1.5 * unit)
    point = [float(part) for part in page.get_by_label("Query", exact=True).input_value().split(", ")]
    assert point == pytest.approx([0.4, -1.1], abs=0.02)
    assert status(page, 2) == weighed(LookupLab(query=point))


@pytest.mark.parametrize("place", [".tl-grid", ".tl-knob", ".tl-ground", "input[type=range]", ".tl-storage"])
def test_a_finger_still_scrolls_the_page(show, place):
    page = show(StridesLab(), BroadcastingLab(), LookupLab(), width=360, touch=True)
    target = page.locator(place).first
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    finger_scrolls(page, (box["x"] + 12, box["y"] + 12))


# What is typed.

HTML = "nodes => nodes.map((node) => node.outerHTML)"
NONSENSE = [
    (StridesLab, "Shape of x", "two", "A size is a whole number", "2, 5", "shape (2, 5)"),
    (StridesLab, "Shape of x", "9, 9", "81 elements are more than this lab draws (64).", "8, 8", "shape (8, 8)"),
    (StridesLab, "Operations on x", ".explode()", ".explode is not in this lab.", ".view(24)", "shape (24,)"),
    (StridesLab, "Operations on x", "<img src=x>", "This can be read up to", "[0]", "shape (3, 4)"),
    (BroadcastingLab, "Shape of a", "3, -1", "A size is a whole number", "5, 1", "shape (5, 4)"),
    (BroadcastingLab, "Shape of b", "99999999999", "A size here goes from 0 to 1,000,000,000", "7", "shape (3, 7)"),
    (LookupLab, "Query", "one, two", "Write a point as two numbers: 1, 0.5.", "1, 0.5", "dog weighs most"),
    (LookupLab, "Query", "3, 0", "The plane goes from −2 to 2 both ways.", "2, 0", "cat weighs most"),
]


@pytest.mark.parametrize(("make", "label", "typed", "message", "right", "then"), NONSENSE)
def test_nonsense_is_answered_beside_the_field_and_nothing_is_lost(show, make, label, typed, message, right, then):
    page = show(make())
    shown = page.locator(".tl-lab > :not(.tl-row)").evaluate_all(HTML)
    field, first = page.get_by_label(label, exact=True), status(page)
    old = field.input_value()
    field.fill(typed)
    complaint = page.locator(f"#{field.get_attribute('aria-describedby').split()[0]}")
    assert complaint.is_visible() and complaint.inner_text().startswith(message)
    assert field.get_attribute("aria-invalid") == "true"
    assert page.locator(".tl-lab > :not(.tl-row)").evaluate_all(HTML) == shown
    page.get_by_role("button", name="Reset").click()
    assert (field.input_value(), complaint.inner_text(), status(page)) == (old, "", first)
    field.fill(typed)
    field.fill(right)
    assert complaint.inner_text() == "" and field.get_attribute("aria-invalid") is None
    assert then in page.locator(".tl-lab").inner_text()
    assert field.input_value() == right


def test_what_is_too_large_to_draw_is_said(show):
    page = show(BroadcastingLab(), StridesLab((1, 64), ".expand(4, 64)"))
    page.get_by_label("Shape of a").fill("1000, 1000, 1")
    assert "Too large to draw" in page.locator(".tl-lab").first.inner_text()
    assert status(page) == "The sum has shape (1000, 1000, 4): 4,000,000 elements."
    assert page.locator(".tl-part:visible").count() == 0
    assert "256 elements are more than this lab draws" in page.locator(".tl-refusal").inner_text()


@each_lab
def test_reset_puts_everything_back(show, make):
    page = show(make())
    shown = page.locator(".tl-lab").inner_html()
    if make is StridesLab:
        page.get_by_label("Shape of x").fill("4, 4")
        page.get_by_role("button", name="+ .view(-1)").click()
        page.locator(".tl-grid .tl-cell").nth(3).click()
    elif make is BroadcastingLab:
        drag(page, page.get_by_label("b, axis 0"), 40)
        page.get_by_role("button", name="a @ b").click()
    else:
        drag(page, query(page).locator(".tl-query"), -60, 60)
        drag(page, page.get_by_label(re.compile("^Value owl")).locator(".tl-point"), 30, 30)
        page.get_by_label("Temperature").fill("900")
        page.get_by_role("button", name="distance").click()
    assert page.locator(".tl-lab").inner_html() != shown
    page.get_by_role("button", name="Reset").click()
    assert page.locator(".tl-lab").inner_html() == shown


# On the page.


@each_lab
def test_two_views_of_one_lab_stay_in_step(show, make):
    lab = make()
    page = show(lab, lab)
    before = status(page, 1)
    if make is StridesLab:
        page.locator(".tl-grid .tl-cell").nth(5).click()
    elif make is BroadcastingLab:
        drag(page, page.get_by_label("a, axis 0").first, 36)
    else:
        drag(page, query(page).first.locator(".tl-query"), -80, 20)
    assert status(page) == status(page, 1) != before


def test_a_lab_that_cannot_start_says_so(show, windows):
    page = show(StridesLab(), change=lambda html: html.replace("export default { render };", "export default {"))
    failed = page.locator("[data-lab=failed]")
    assert "This live figure could not start in this browser." in failed.inner_text()
    troubles = windows[1]
    assert any("SyntaxError" in trouble for trouble in troubles)
    troubles.clear()


@each_lab
def test_axe_finds_nothing(show, make):
    states = [make(), *(lab for state in STATES if isinstance(lab := state(), make))]
    page = show(*states)
    page.locator(".tl-input").first.fill("nonsense,,")
    assert not violations_in_both_themes(page)


def test_labs_follow_the_theme_of_the_page_and_of_the_system(show):
    page = show(LookupLab())
    ground = "getComputedStyle(document.querySelector('.tl-lab')).backgroundColor"
    dark, light = "rgb(22, 25, 29)", "rgb(255, 255, 255)"
    assert page.evaluate(ground) == light
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert page.evaluate(ground) == dark
    page.emulate_media(color_scheme="dark")
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert page.evaluate(ground) == light, "the page's own theme wins"
    page.evaluate("delete document.documentElement.dataset.theme")
    assert page.evaluate(ground) == dark


def test_numbers_of_places_have_room_beside_other_labs(show):
    page = show(*(make() for make in LABS))
    gap = "node => parseFloat(getComputedStyle(node).rowGap)"
    assert page.locator(".tl-storage").first.evaluate(gap) > 12, "another lab's style hides them"
