"""Every lab must pass these tests in Python and, by mouse, finger and keyboard, in a browser."""

import inspect
import json
from urllib.parse import parse_qsl, urlsplit

import ipywidgets
import pytest
import torch
import traitlets

import transformer_lab as tl
from accessibility import violations_in_both_themes
from gestures import assert_finger_scrolls, count_animated, status, tab_through
from lab_page import as_notebook
from lab_table import LABS
from sampling import every_third, sample

CONTROLS = ":is(button, input, select, summary, [tabindex='0'])"
each_lab = pytest.mark.parametrize("case", LABS.values(), ids=LABS)


def some_labs(first):
    """Parametrize a test over every third lab from index ``first`` on or, in weekly runs, over all labs."""
    names = every_third(LABS, first)
    return pytest.mark.parametrize("case", [LABS[name] for name in names], ids=names)


def settings(lab):
    """Return all traits that are synchronized with the browser, except script and style."""
    names = [name for name in lab.traits(sync=True) if not name.startswith("_") and name not in ("layout", "comm")]
    return json.loads(json.dumps(lab.get_state(names)))


def visible_html(page, excluded="[hidden]"):
    """Return everything that is visible in a lab or announced by a screen reader, after all animations."""
    page.wait_for_function("!document.querySelector('.tl-moving')")
    return page.locator(".tl-lab").evaluate(
        """(lab, excluded) => {
            const copy = lab.cloneNode(true);
            for (const node of copy.querySelectorAll(excluded)) node.remove();
            const inputs = [...lab.querySelectorAll('input, select')].filter((input) => !input.closest(excluded));
            const html = copy.innerHTML.replace(/tl-(field|cells)-\\w+-/g, ''); // these differ between visits
            return `${html} ${inputs.map((input) => input.value)}`;
        }""",
        excluded,
    )


def test_every_lab_is_in_the_table():
    assert {type(case.make()).__name__ for case in LABS.values()} == set(tl.labs.__all__)


# In Python.


@each_lab
def test_repr_is_reproducible(case):
    assert repr(case.make()) == repr(case.make()) == case.expected_repr


@each_lab
def test_state_from_the_browser_is_kept_and_restored(case):
    lab = case.make()
    initial_settings, text = settings(lab), repr(lab)
    lab.set_state(case.valid_settings)
    assert settings(lab) == initial_settings | case.valid_settings
    lab.set_state({name: initial_settings[name] for name in case.valid_settings})
    assert (settings(lab), repr(lab)) == (initial_settings, text)


@each_lab
def test_invalid_setting_changes_nothing(case):
    lab = case.make()
    initial_settings = settings(lab)
    for name, value in case.invalid_settings.items():
        with pytest.raises((TypeError, ValueError, traitlets.TraitError), match=name):
            setattr(lab, name, value)
        assert settings(lab) == initial_settings, name


@each_lab
def test_unknown_argument_suggests_the_closest_name(case):
    lab = getattr(tl.labs, type(case.make()).__name__)
    name = next(name for name in inspect.signature(lab).parameters if len(name) > 3)
    with pytest.raises(TypeError, match=rf"^{lab.__name__} has no argument '{name}x'; did you mean '\*?{name}'\?$"):
        lab(**{f"{name}x": 1})
    with pytest.raises(TypeError, match=rf"^{lab.__name__} has no argument 'zzz'; it has .*\b{name}\b"):
        lab(zzz=1)


@each_lab
@pytest.mark.parametrize("value", [torch.zeros(60, 60), ["x" * 500] * 500, object(), "z" * 5000, [2.5] * 900])
def test_errors_name_the_argument_and_are_short(case, value):
    lab = getattr(tl.labs, type(case.make()).__name__)
    required_arguments = (
        {"weights": torch.eye(3).expand(1, 2, 3, 3), "tokens": "a b c"} if lab is tl.labs.HeadsLab else {}
    )
    for name, parameter in inspect.signature(lab).parameters.items():
        is_positional = parameter.kind is parameter.VAR_POSITIONAL
        try:
            lab(value) if is_positional else lab(**{**required_arguments, name: value})
        except (TypeError, ValueError) as error:
            assert name.removesuffix("s") in str(error)
            assert len(str(error)) < (800 if is_positional else 220), "only an error that lists all topics may be long"


@each_lab
def test_a_lab_can_be_linked_to_other_widgets(case):
    lab = case.make()
    assert ipywidgets.HBox([lab]).children == (lab,)
    widget = ipywidgets.Text() if isinstance(getattr(lab, case.linked_trait), str) else ipywidgets.FloatText()
    assert ipywidgets.jslink((lab, case.linked_trait), (widget, "value")).source == (lab, case.linked_trait)
    ipywidgets.link((lab, case.linked_trait), (widget, "value"))
    assert widget.value == getattr(lab, case.linked_trait)
    value = getattr(lab, case.linked_trait)
    setattr(lab, case.linked_trait, type(value)(case.valid_settings.get(case.linked_trait, value)))
    assert widget.value == getattr(lab, case.linked_trait)


@each_lab
def test_script_is_small_and_self_contained(case):
    lab = case.make()
    script, style = lab._esm, lab._css
    assert len(script.encode()) <= case.script_bytes and len(style.encode()) <= 60_000
    assert script.rstrip().endswith("export default { render };") and script.count("export ") == 1
    assert "/**" not in script, "types are only in the source files"
    for text in (script.replace("http://www.w3.org/2000/svg", ""), style):
        forbidden_words = ("import ", "require(", "//cdn", "http:", "https:", "@import", "url(")
        assert not any(word in text for word in forbidden_words)


# In a browser.


@each_lab
def test_a_lab_can_be_used_by_keyboard(show, case):
    page = show(case.make())
    tab_through(page, f".tl-lab {CONTROLS}:not(:disabled, [tabindex='-1']):visible")
    statuses = page.get_by_role("status").all_inner_texts()
    control, key = case.control_and_key
    page.locator(f"{control}:visible").first.press(key)
    assert page.get_by_role("status").all_inner_texts() != statuses and all(statuses)
    assert page.locator("[role=status]:not([aria-live=polite])").count() == 0


# Computed styles are compared in the browser: transferring them to Python would take minutes.
CHANGED_STYLES = """async (sheet) => {
    const style = document.head.appendChild(document.createElement("style"));
    style.textContent = sheet;
    const names = new Set();
    const collect = (rule) => {
        for (const name of rule.style ?? []) names.add(name);
        for (const inner of rule.cssRules ?? []) collect(inner);
    };
    collect(style.sheet);
    const nodes = [...document.querySelectorAll(".tl-lab, .tl-lab *")];
    const allStyles = () => nodes.map((node) => {
        const computed = getComputedStyle(node);
        return [...names].map((name) => computed.getPropertyValue(name));
    });
    const withSheet = allStyles();
    style.remove();
    const withoutSheet = allStyles();
    const changes = new Set();
    nodes.forEach((node, i) => [...names].forEach((name, j) => {
        const [before, after] = [withoutSheet[i][j], withSheet[i][j]];
        const label = node.getAttribute("class") ?? node.localName;
        if (after !== before) changes.add(`${label}: ${name}, ${before}, then ${after}`);
    }));
    return [...changes];
}"""


@pytest.mark.parametrize("width", sample([360, 760], [360]))
@some_labs(1)
def test_the_style_of_a_different_lab_changes_nothing(show, case, width):
    """Every lab includes the shared style sheet, and a page can contain all labs: no lab may change another's style."""
    page = show(*[state() for state in (case.make, *case.extreme_states)], width=width)
    page.wait_for_function("!document.querySelector('.tl-moving')")
    all_styles = [case.make()._css for case in LABS.values()]
    assert page.evaluate(CHANGED_STYLES, "\n".join(all_styles)) == []


@each_lab
def test_status_line_comes_after_the_body_and_reset_last(show, case):
    page = show(case.make())
    assert page.get_by_role("status").count() == 1
    last_classes = page.locator(".tl-lab > *").evaluate_all("nodes => nodes.slice(-2).map((node) => node.className)")
    assert last_classes[0].split() == ["tl-reserved", "tl-status"] and last_classes[1] == "tl-foot"
    controls = page.locator(f".tl-lab {CONTROLS}:visible").all()
    assert [control.inner_text() for control in controls[-2:]] == ["Copy link", "Reset"]


@each_lab
def test_every_slider_has_a_text_field(show, case):
    page = show(case.make())
    for slider in page.locator("input[type=range]:not(.tl-steps)").all():  # a slider of steps has no field
        label = slider.get_attribute("aria-label")
        typed_field = page.get_by_label(f"{label}, typed", exact=True)
        assert typed_field.count() == 1 and typed_field.is_disabled() == slider.is_disabled()
        if slider.is_disabled() or not slider.is_visible():
            continue
        values_at_ends = []
        for key in ("Home", "End"):
            slider.press(key)
            values_at_ends.append((typed_field.input_value(), slider.input_value()))
        assert values_at_ends[0] != values_at_ends[1], label
        typed_field.fill(values_at_ends[0][0])
        assert slider.input_value() == values_at_ends[0][1], "the slider follows the typed value"
        typed_field.fill("x")
        error = page.locator(f"#{typed_field.get_attribute('aria-describedby')}")
        assert error.is_visible() and slider.input_value() == values_at_ends[0][1]
        typed_field.fill(values_at_ends[1][0])


def url_parameters(page):
    return parse_qsl(urlsplit(page.url).query)


def visit(page, url):
    page.goto("about:blank")
    page.goto(url)
    page.wait_for_selector("[data-lab=ready]")


@some_labs(0)
def test_url_restores_the_state(show, case):
    page = show(case.make())
    initial_html, url = visible_html(page), page.url
    case.play(page)
    page.wait_for_function("location.search")
    page.wait_for_timeout(300)
    status_before, values = (
        status(page),
        page.locator(".tl-lab input").evaluate_all("nodes => nodes.map((node) => node.value)"),
    )
    visit(page, page.url)
    assert (status(page) == status_before) == (type(case.make()).__name__ != "BudgetLab"), (
        "only the budget lab's status describes a change"
    )
    assert page.locator(".tl-lab input").evaluate_all("nodes => nodes.map((node) => node.value)") == values
    page.get_by_role("button", name="Reset").click()
    assert visible_html(page) == initial_html, "Reset must restore the initial state, not that of the address"
    page.wait_for_function("url => location.href === url", arg=url)


@some_labs(1)
def test_invalid_url_parameters_are_ignored_and_reported(show, case):
    page = show(case.make())
    initial_html, url = visible_html(page, ".tl-error"), page.url
    prefix = type(case.make()).__module__.split(".")[-1]
    for query in (f"{prefix}.nothing=1", f"{prefix}=%3Cb%3E&{prefix}.constructor=x&{prefix}.at=-1"):
        visit(page, f"{url}?{query}")
        alert = page.locator(".tl-lab > .tl-error")
        assert alert.is_visible() and alert.inner_text().startswith("The lab ignores part of the address: ")
        assert visible_html(page, ".tl-error") == initial_html
        page.wait_for_timeout(300)
        assert page.url.endswith(query), "the address must stay, so that the reader can correct it"
    visit(page, f"{url}?other=1")
    assert page.locator(".tl-lab > .tl-error").is_hidden()


@some_labs(2)
def test_labs_of_one_page_have_separate_url_parameters(show, case):
    page = show(case.make(), case.make())
    case.play(page)
    page.wait_for_function("location.search")
    page.wait_for_timeout(300)
    prefixes = {name.split(".")[0] for name, _ in url_parameters(page)}
    assert len(prefixes) == 1 and not any(prefix.endswith("2") for prefix in prefixes), (
        "the address must not name the second lab, whose state is the initial one"
    )
    page.evaluate("""() => Object.defineProperty(navigator, "clipboard", {
        configurable: true, value: { writeText: async (text) => { window.copied = text; } },
    })""")
    page.get_by_role("button", name="Copy link").nth(1).click()
    assert page.evaluate("window.copied") == page.url


@some_labs(0)
def test_notebook_url_is_never_changed(show, case):
    page = show(case.make(), change=as_notebook)
    url = page.url
    case.play(page)
    page.wait_for_timeout(400)
    assert page.url == url and page.get_by_role("button", name="Copy link").count() == 0


FIND_SMALL_TEXTS = """() => {
    const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) {
        const { data, parentNode: node } = texts.currentNode;
        if (!data.trim() || !node.closest('.tl-lab') || !node.checkVisibility({ visibilityProperty: true })) continue;
        const svg = node.ownerSVGElement;
        const unit = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
        const size = parseFloat(getComputedStyle(node).fontSize) * unit;
        if (size > 0 && size < 10.99) found.push([data, size]);
    }
    for (const node of document.querySelectorAll('.tl-lab *')) {
        for (const part of ['::before', '::after']) {
            const style = getComputedStyle(node, part);
            const shown = !['none', '""', ''].includes(style.content);
            if (shown && parseFloat(style.fontSize) < 10.99) found.push([part, style.fontSize]);
        }
    }
    return found;
}"""


@some_labs(2)
def test_no_text_is_smaller_than_eleven_pixels(show, case):
    page = show(case.make(), *(state() for state in case.extreme_states), width=790)
    for width in (790, 648, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(FIND_SMALL_TEXTS) == [], f"{width} px"


@pytest.mark.parametrize("name", ["heads", "split", "budget", "order"])
def test_a_lab_fits_one_screen(show, name):
    page = show(LABS[name].make(), width=798)
    assert page.locator(".tl-lab").bounding_box()["height"] <= 850


@some_labs(1)
def test_controls_can_be_hidden(show, case):
    lab = getattr(tl.labs, type(case.make()).__name__)
    if issubclass(lab, tl.labs.WholeLab):
        return  # this lab has no groups of controls
    assert lab.groups and case.make().controls == list(lab.groups)
    with pytest.raises(ValueError, match=f"controls must be one of {lab.groups[0]!r}.*, got 'x'"):
        case.make().controls = ["x"]
    lab_without_controls = case.make()
    lab_without_controls.controls = []
    page = show(case.make())
    count, height = page.locator(".tl-lab *").count(), page.locator(".tl-lab").bounding_box()["height"]
    page = show(lab_without_controls)
    assert page.locator(".tl-lab *").count() < count and page.locator(".tl-lab").bounding_box()["height"] < height
    assert status(page) and page.get_by_role("button", name="Reset").is_visible()
    for name in lab.groups:
        lab_with_one_group = case.make()
        lab_with_one_group.controls = [name]
        page = show(lab_with_one_group)
        assert page.locator("[data-group]").evaluate_all("nodes => nodes.map((node) => node.dataset.group)") in (
            [],
            *([name] * times for times in range(1, 9)),
        )
        assert status(page)


@some_labs(2)
def test_reset_restores_the_initial_state(show, case):
    page = show(case.make())
    initial_html = visible_html(page)
    case.play(page)
    assert visible_html(page) != initial_html
    page.get_by_role("button", name="Reset").click()
    assert visible_html(page) == initial_html


@some_labs(0)
def test_two_views_stay_synchronized(show, case):
    lab = case.make()
    page = show(lab, lab)
    initial_statuses = page.get_by_role("status").all_inner_texts()
    case.play(page)
    statuses = page.get_by_role("status").all_inner_texts()
    half = len(statuses) // 2
    assert statuses[:half] == statuses[half:] and statuses != initial_statuses


@some_labs(2)
def test_a_lab_can_be_used_by_finger(show, case):
    text_below = '<p style="margin-top: 100vh">Here the page goes on.</p></main>'
    page = show(case.make(), width=360, touch=True, change=lambda html: html.replace("</main>", text_below))
    assert case.touch(page), status(page)
    for selector in case.scroll_starts:
        target = page.locator(f"{selector}:visible").first
        target.scroll_into_view_if_needed()
        box = target.bounding_box()
        assert_finger_scrolls(page, (box["x"] + min(40, box["width"] / 2), box["y"] + min(12, box["height"] / 2)))


INVALID_INPUTS = [(name, *row) for name, case in LABS.items() for row in case.invalid_inputs]


@pytest.mark.parametrize(
    ("name", "label", "typed", "message", "valid_text", "expected_text"), every_third(INVALID_INPUTS)
)
def test_invalid_input_shows_error_and_keeps_value(show, name, label, typed, message, valid_text, expected_text):
    page = show(LABS[name].make())
    field, initial_status, may_change = (
        page.get_by_label(label, exact=True),
        status(page),
        "[hidden], .tl-field, .tl-input, .tl-error, .tl-verdict, .tl-sure, .tl-status",
    )
    initial_html, initial_value = visible_html(page, excluded=may_change), field.input_value()
    field.fill(typed)
    error = page.locator(f"#{field.get_attribute('aria-describedby').split()[0]}")
    assert error.is_visible() and error.inner_text().startswith(message)
    assert field.get_attribute("aria-invalid") == "true"
    assert visible_html(page, excluded=may_change) == initial_html
    assert status(page) in (initial_status, f"Not read: {error.inner_text()} Still showing {initial_value}.")
    page.get_by_role("button", name="Reset").click()
    assert (field.input_value(), error.inner_text(), status(page)) == (initial_value, "", initial_status)
    field.fill(typed)
    field.fill(valid_text)
    assert error.inner_text() == "" and field.get_attribute("aria-invalid") is None
    assert expected_text in page.locator(".tl-lab").inner_text()
    assert field.input_value() == valid_text


@each_lab
def test_a_lab_is_accessible_and_has_no_animation_at_rest(show, case):
    page = show(case.make(), *(state() for state in every_third(case.extreme_states)))
    if case.invalid_inputs:
        page.locator(".tl-input:visible").first.fill("nonsense,,")
    assert count_animated(page) == 0
    assert not violations_in_both_themes(page)


@some_labs(0)
def test_a_lab_follows_the_theme_of_page_and_system(show, case):
    page = show(case.make())
    background = "getComputedStyle(document.querySelector('.tl-lab')).backgroundColor"
    dark, light = "rgb(22, 25, 29)", "rgb(255, 255, 255)"
    assert page.evaluate(background) == light
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert page.evaluate(background) == dark
    page.emulate_media(color_scheme="dark")
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert page.evaluate(background) == light, "the page's own theme takes precedence"
    page.evaluate("delete document.documentElement.dataset.theme")
    assert page.evaluate(background) == dark


def test_error_at_start_is_reported(show, desktop_and_phone):
    page = show(LABS["strides"].make(), change=lambda html: html.replace("export default {render}", "export default {"))
    failed_lab = page.locator("[data-lab=failed]")
    assert "This live figure could not start in this browser." in failed_lab.inner_text()
    problems = desktop_and_phone[1]
    assert any("SyntaxError" in problem for problem in problems)
    problems.clear()
