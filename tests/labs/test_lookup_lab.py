"""The lookup lab works in Python and in a browser, and its arithmetic agrees with the package's."""

import math
import re

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import transformer_lab as tl
from agreement import raises
from gestures import drag, middle, status
from javascript import ANY_TEXT, Engine, assert_close, many_examples
from transformer_lab.labs import LookupLab

LIMITS = LookupLab().limits


@pytest.fixture(scope="module")
def lookup():
    return Engine(LookupLab)


@pytest.mark.parametrize("kind", ["dot", "distance"])
@pytest.mark.parametrize("temperature", [0.01, 0.3, math.sqrt(2), 100])
def test_the_lookup_agrees_with_the_package(lookup, kind, temperature):
    generator = torch.Generator().manual_seed(3)
    for k_len in range(1, 9):
        query, key, value = (
            (torch.rand(n, 2, generator=generator, dtype=torch.float64) * 4 - 2).round(decimals=2)
            for n in (1, k_len, k_len)
        )
        scores = query @ key.T if kind == "dot" else -(torch.cdist(query, key) ** 2) / 2
        actual = lookup(
            "lookup",
            {"query": query[0].tolist(), "key": key.tolist(), "value": value.tolist()}
            | {"temperature": temperature, "similarity": kind},
        )
        assert_close(actual["scores"], scores[0])
        assert_close(actual["weights"], tl.softmax(scores / temperature)[0])
        if kind == "dot":
            scale = 1 / temperature
            assert_close(actual["weights"], tl.attention_weights(query, key, scale=scale)[0])
            assert_close(actual["output"], tl.scaled_dot_product_attention(query, key, value, scale=scale)[0])
        # Python computes in float32, and a low temperature amplifies the rounding errors.
        lab = LookupLab(query[0], key, value, temperature=temperature, similarity=kind)
        atol = 1e-6 * max(1, 1 / temperature)
        assert_close(actual["weights"], lab.weights.double(), atol=atol)
        assert_close(actual["output"], lab.output.double(), atol=4 * atol)


def test_slider_covers_all_temperatures(lookup):
    for position in range(0, 1001, 50):
        assert lookup("sliderPosition", lookup("temperatureOf", position, LIMITS), LIMITS) == position
    assert lookup("temperatureOf", 0, LIMITS) == pytest.approx(0.01)
    assert lookup("temperatureOf", 1000, LIMITS) == pytest.approx(100)


# Typed input.


@many_examples
@given(text=ANY_TEXT | st.builds("{} {}".format, st.floats(-3, 3), st.floats(-3, 3)))
@example(text="(1, −0.5)")
@example(text="1e400 0")
@example(text="NaN, 1")
def test_typed_points_are_parsed_or_refused_in_words(text, lookup):
    result = lookup("parsePoint", text, LIMITS)
    if "error" in result:
        assert result.keys() == {"error"} and len(result["error"]) > 10
    else:
        LookupLab(query=result["value"])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("1", "Write a point as two numbers, such as 1, 0.5."),
        ("3, 0", "Both coordinates must be from −2 to 2."),
    ],
)
def test_invalid_point_gets_an_error_message(lookup, text, error):
    assert lookup("parsePoint", text, LIMITS) == {"error": error}


# The state in Python.


def test_attributes_are_tensors():
    lab = LookupLab(query=(1, 0), key=[(1, 0), (0, 1)], value=[(2, 0), (0, 2)])
    assert lab.labels == ["key 0", "key 1"]
    events = []
    lab.observe(lambda change: events.append(change.new), "query")
    lab.set_state({"query": [0, 1]})  # integers, as in JavaScript's JSON
    assert lab.query.dtype == torch.float32 and lab.query.tolist() == [0, 1] and len(events) == 1
    expected = tl.softmax(torch.tensor([0.0, 1.0]) / math.sqrt(2))
    torch.testing.assert_close(lab.weights, expected)
    torch.testing.assert_close(lab.output, 2 * expected)
    lab.query = torch.tensor([2, 1])
    assert lab.query.dtype == torch.float32


def test_given_tensors_are_not_modified():
    query = torch.tensor([0.5, 0.25], dtype=torch.float64, requires_grad=True)
    lab = LookupLab(query=query)
    assert lab.query.dtype == torch.float32 and not lab.query.requires_grad
    assert query.dtype == torch.float64 and query.tolist() == [0.5, 0.25]


def test_repr_has_four_decimals():
    lab = LookupLab(query=(1 / 3, -2), labels=list("abcde"), temperature=1 / 3)
    assert repr(lab) == (
        "LookupLab(query=(0.3333, -2.0), labels=('a', 'b', 'c', 'd', 'e'), temperature=0.3333, similarity='dot')"
    )


def test_tensors_are_serialized_as_short_numbers():
    lab = LookupLab(query=(0.1, -1 / 3))
    assert lab.get_state()["query"] == [0.1, -0.33333334]
    query = lab.query
    lab.set_state({"query": lab.get_state()["query"]})
    assert torch.equal(lab.query, query)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: LookupLab("up"), TypeError, "query must be a tensor or sequences of numbers, got 'up'"),
        (lambda: LookupLab((1, 2, 3)), ValueError, "query must have shape (2,), got (3,)"),
        (lambda: LookupLab((3, 0)), ValueError, "query must have values from -2 to 2, got 3"),
        (lambda: LookupLab((math.nan, 0)), ValueError, "query must have values from -2 to 2, got nan"),
        (lambda: LookupLab(key=[]), ValueError, "key must have shape (k_len, 2), from (1, 2) to (8, 2), got (0,)"),
        (
            lambda: LookupLab(key=torch.zeros(9, 2), value=torch.zeros(9, 2)),
            ValueError,
            "key must have shape (k_len, 2), from (1, 2) to (8, 2), got (9, 2)",
        ),
        (
            lambda: LookupLab(value=[(0, 0)]),
            ValueError,
            "value must have one point for each of the 5 labels, got 1",
        ),
        (lambda: LookupLab(temperature=0), ValueError, "temperature must be from 0.01 to 100, got 0.0"),
        (lambda: LookupLab(temperature=math.nan), ValueError, "temperature must be from 0.01 to 100, got nan"),
        (
            lambda: LookupLab(similarity="cosine"),
            ValueError,
            "similarity must be one of 'dot', 'distance', got 'cosine'",
        ),
    ],
)
def test_invalid_arguments_raise_clear_errors(make, error, text):
    raises(make, error, text)


# In a browser.


def query_handle(page):
    return page.get_by_label(re.compile("^Query at"))


def expected_status(lab):
    """Return the status line that a page must show for ``lab``."""
    best = lab.weights.argmax()
    output = ", ".join(f"{x:.2f}".replace("-", "−") for x in lab.output)
    return f"{lab.labels[best]} has the largest weight, {lab.weights[best]:.2f}. The output is ({output})."


def test_arrow_keys_move_a_point(show):
    page = show(LookupLab(query=(0.9, 0.4)))
    query_handle(page).focus()
    for key in ("ArrowLeft", "ArrowUp", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    assert page.get_by_label("Query", exact=True).input_value() == "0.3, 0.5"
    assert status(page) == expected_status(LookupLab(query=(0.3, 0.5)))
    page.get_by_role("button", name="distance").press("Enter")
    assert status(page) == expected_status(LookupLab(query=(0.3, 0.5), similarity="distance"))
    page.get_by_label("Temperature", exact=True).press("Home")
    assert "the lookup finds one key" in status(page)


def test_dragging_moves_the_query_and_a_key(show):
    page = show(LookupLab(query=(0.9, 0.4)))
    plane = page.locator(".tl-plane").first.bounding_box()
    unit = plane["width"] / 5
    x, y = middle(query_handle(page).locator(".tl-query"))
    page.mouse.move(x + 3, y)
    page.mouse.down()
    before = status(page)
    page.mouse.up()
    assert status(page) == before, "pressing without moving changes nothing"
    drag(page, query_handle(page).locator(".tl-query"), -1.5 * unit, 0.8 * unit)
    point = [float(part) for part in page.get_by_label("Query", exact=True).input_value().split(", ")]
    assert point == pytest.approx([-0.6, -0.4], abs=0.02)
    assert status(page) == expected_status(LookupLab(query=point))
    drag(page, query_handle(page).locator(".tl-query"), -900, 900)
    assert page.get_by_label("Query", exact=True).input_value() == "-2, -2"
    drag(page, page.get_by_label(re.compile("^Key cat")).locator(".tl-point"), -0.5 * unit)
    assert page.get_by_label(re.compile("^Key cat")).get_attribute("aria-label").startswith("Key cat at (1.1")


@pytest.mark.parametrize("width", [320, 360, 760])
def test_the_names_of_the_ends_are_clear_of_the_mark(show, width):
    page = show(LookupLab(), width=width)
    mark, *end_names = (box.bounding_box() for box in page.locator(".tl-root, .tl-ends > span").all())
    for end_name in end_names:
        assert (
            end_name["x"] >= mark["x"] + mark["width"]
            or end_name["x"] + end_name["width"] <= mark["x"]
            or end_name["y"] >= mark["y"] + mark["height"]
        )
