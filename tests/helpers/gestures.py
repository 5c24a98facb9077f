"""Make gestures on a page of labs, and assert properties of the page; the tests of all labs use these functions."""

# A handle on a plane has no outline; instead, a ring around the handle shows the focus.
FOCUS_IS_VISIBLE = """() => {
    const node = document.activeElement, style = getComputedStyle(node), ring = node.querySelector('.tl-touch');
    if (ring) return getComputedStyle(ring).stroke !== 'none';
    return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
}"""


def status(page, view=0):
    return page.get_by_role("status").nth(view).inner_text()


def middle(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag_slider(page, slider, fractions):
    """Drag a slider to positions that are given as fractions of its length; yield at each position after the first."""
    slider.scroll_into_view_if_needed()
    box, y = slider.bounding_box(), middle(slider)[1]
    # The thumb is 16 pixels wide, so its middle stays 8 pixels away from either end.
    first, *others = (box["x"] + 8 + (box["width"] - 16) * fraction for fraction in fractions)
    page.mouse.move(first, y)
    page.mouse.down()
    for x in others:
        page.mouse.move(x, y)
        yield
    page.mouse.up()


def drag(page, locator, dx, dy=0, steps=8):
    """Drag with the mouse, in steps; return the y positions that the locator's top has during a horizontal drag."""
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
    session = page.context.new_cdp_session(page)
    for step in range(steps + 1):
        point = {"x": start[0] + dx * step / steps, "y": start[1] + dy * step / steps}
        kind = "touchMove" if step else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


def assert_finger_scrolls(page, start):
    """Assert that a swipe from ``start`` scrolls the page; the finger moves down if there is room, otherwise up."""
    initial_scroll = page.evaluate("scrollY")
    swipe(page, start, 0, 120 if start[1] < 400 and initial_scroll > 120 else -120)
    page.wait_for_function("before => Math.abs(scrollY - before) > 60", arg=initial_scroll)


def tab_through(page, selector):
    """Assert that Tab reaches these controls one by one with a visible focus; return the number of controls."""
    controls = page.locator(selector).evaluate_all(
        "nodes => nodes.map((node, i) => { node.dataset.control = i; return String(i); })"
    )
    reached_controls = []
    for _ in controls:
        page.keyboard.press("Tab")
        reached_controls.append(page.evaluate("document.activeElement.dataset.control"))
        assert page.evaluate(FOCUS_IS_VISIBLE), page.evaluate("document.activeElement.outerHTML.slice(0, 120)")
    assert reached_controls == controls, f"Tab reached {reached_controls} of {len(controls)} controls"
    return len(controls)


def count_animated(page):
    """Return how many elements of the labs have animations or transitions."""
    return page.locator(".tl-lab, .tl-lab *").evaluate_all("""nodes => nodes
        .flatMap((node) => [null, '::before', '::after'].map((part) => getComputedStyle(node, part)))
        .filter((style) => style.animationName !== 'none' || parseFloat(style.transitionDuration) > 0).length""")
