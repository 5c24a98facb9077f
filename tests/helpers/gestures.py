"""Gestures on a page of labs, and assertions about the page, for the tests of all labs."""

# A handle on a plane has no outline; instead, a ring around the handle shows the focus.
FOCUS_IN_SIGHT = """() => {
    const node = document.activeElement, own = getComputedStyle(node), ring = node.querySelector('.tl-touch');
    if (ring) return getComputedStyle(ring).stroke !== 'none';
    return own.outlineStyle !== 'none' && parseFloat(own.outlineWidth) >= 2;
}"""


def status(page, view=0):
    return page.get_by_role("status").nth(view).inner_text()


def middle(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def slide(page, slider, shares):
    """Drag a slider to positions that are given as fractions of its length; yield at each position after the first."""
    slider.scroll_into_view_if_needed()
    box, y = slider.bounding_box(), middle(slider)[1]
    # The thumb is 16 pixels wide, so its middle stays 8 pixels away from either end.
    first, *others = (box["x"] + 8 + (box["width"] - 16) * share for share in shares)
    page.mouse.move(first, y)
    page.mouse.down()
    for x in others:
        page.mouse.move(x, y)
        yield
    page.mouse.up()


def drag(page, locator, dx, dy=0, steps=8):
    """Drag with the mouse, in steps; return the positions that the locator's top had on the way."""
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


def swipe(page, start, dx, dy=0, steps=8):
    """Drag with one finger."""
    touch = page.context.new_cdp_session(page)
    for step in range(steps + 1):
        point = {"x": start[0] + dx * step / steps, "y": start[1] + dy * step / steps}
        kind = "touchMove" if step else "touchStart"
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    touch.detach()


def finger_scrolls(page, start):
    """Assert that the page scrolls when a finger moves from here: down if there is room above, else up."""
    top = page.evaluate("scrollY")
    swipe(page, start, 0, 120 if start[1] < 400 and top > 120 else -120)
    page.wait_for_function("top => Math.abs(scrollY - top) > 60", arg=top)


def tab_through(page, selector):
    """Assert that Tab reaches these controls one by one with a visible focus; return the number of controls."""
    controls = page.locator(selector).evaluate_all(
        "nodes => nodes.map((node, i) => { node.dataset.control = i; return String(i); })"
    )
    reached = []
    for _ in controls:
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.control"))
        assert page.evaluate(FOCUS_IN_SIGHT), page.evaluate("document.activeElement.outerHTML.slice(0, 120)")
    assert reached == controls, f"Tab reached {reached} of {len(controls)} controls"
    return len(controls)


def count_moving(page):
    """Return how many elements of the labs have animations or transitions."""
    return page.locator(".tl-lab, .tl-lab *").evaluate_all("""nodes => nodes
        .flatMap((node) => [null, '::before', '::after'].map((part) => getComputedStyle(node, part)))
        .filter((style) => style.animationName !== 'none' || parseFloat(style.transitionDuration) > 0).length""")
