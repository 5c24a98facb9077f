"""The broadcasting lab works in Python and in a browser, and its rules agree with PyTorch's."""

import math
import random
import re

import pytest
import torch

from agreement import raises
from gestures import drag, status
from javascript import Engine
from transformer_lab.labs import BroadcastingLab


@pytest.fixture(scope="module")
def broadcasting():
    return Engine(BroadcastingLab)


def two_shapes(draw, mode):
    """Return two shapes with at most 5 axes; about half of the pairs broadcast."""
    common_sizes = [draw.choice((0, 2, 2, 3, 3, 5)) for _ in range(draw.randrange(5))]

    def one_shape():
        sizes = [draw.choice((size, size, size, 1)) for size in common_sizes]
        if sizes and draw.random() < 0.3:
            sizes[draw.randrange(len(sizes))] = 7
        return sizes[draw.choice((0, 0, draw.randrange(len(sizes) + 1))) :]

    a, b = one_shape(), one_shape()
    if mode == "matmul":
        k, rows, columns = draw.choice((0, 1, 2, 3)), draw.choice((1, 2, 4)), draw.choice((1, 3, 5))
        a, b = draw.choice(([k], [*a[:3], rows, k])), draw.choice(([k], [*b[:3], k, columns]))
        if draw.random() < 0.25:
            draw.choice((a, b))[-1] += 1
        if draw.random() < 0.05:
            a = []
    return a, b


@pytest.mark.parametrize("mode", ["elementwise", "matmul"])
def test_shapes_and_elements_agree_with_torch(broadcasting, mode):
    draw = random.Random(mode)
    n_possible = n_impossible = n_elements = 0
    for _ in range(600):
        a, b = two_shapes(draw, mode)
        actual = broadcasting("combine", mode, a, b)
        columns = broadcasting("alignment", mode, a, b)
        has_clash = any(column["role"] == "clash" for column in columns)
        x = torch.arange(math.prod(a)).view(a) + 1
        y = torch.arange(math.prod(b)).view(b) + 1
        try:
            result = x @ y if mode == "matmul" else 10 * x + y
        except RuntimeError:
            n_impossible += 1
            assert actual["reason"] and has_clash and "shape" not in actual
            with pytest.raises(ValueError, match="a and b must have shapes that fit, got "):
                _ = BroadcastingLab(a, b, mode).result_shape
            continue
        n_possible += 1
        assert "reason" not in actual and not has_clash
        assert tuple(actual["shape"]) == tuple(result.shape) == BroadcastingLab(a, b, mode).result_shape
        drawn_shape = [
            column["out"] for column in columns if column["role"] != "summed" and column.get("out") is not None
        ]
        assert drawn_shape == actual["shape"]
        for flat in range(min(result.numel(), 4)):
            flat = flat if flat == 0 else draw.randrange(result.numel())
            index = broadcasting("unravel", flat, actual["shape"])
            element = broadcasting("explain", mode, a, b, actual, index)
            assert element["value"] == result[tuple(index)].item()
            assert element["text"].startswith(f"result[{', '.join(map(str, index))}] = ")
            assert element["text"].endswith(f" = {element['value']}")
            factors = zip(x.flatten()[element["usedA"]].tolist(), y.flatten()[element["usedB"]].tolist())
            terms = [p * q if mode == "matmul" else 10 * p + q for p, q in factors]
            assert sum(terms) == element["value"] and len(terms) == (actual["k"] if mode == "matmul" else 1)
            n_elements += 1
    assert min(n_possible, n_impossible) > 100 and n_elements > 300


def test_a_clash_names_the_axis(broadcasting):
    assert broadcasting("broadcastShapes", [4, 3], [2, 1])["reason"] == "4 and 2 differ on axis −2, and neither is 1"
    assert broadcasting("matmulShapes", [2, 3], [4, 5])["reason"] == (
        "the last axis of a (3) and the second-to-last axis of b (4) must be equal"
    )
    assert broadcasting("matmulShapes", [2, 3], [4])["reason"] == (
        "the last axis of a (3) and the only axis of b (4) must be equal"
    )
    assert broadcasting("matmulShapes", [6, 2, 3], [4, 3, 5])["reason"] == (
        "among the batch axes, 6 and 4 differ on axis −3, and neither is 1"
    )
    assert broadcasting("matmulShapes", [], [4])["reason"].startswith("matmul needs at least one axis on each side")


def test_huge_shapes_combine_without_memory(broadcasting):
    for mode, b in (("elementwise", [1]), ("matmul", [10**9, 7])):
        a = [10**9] * 4
        assert tuple(broadcasting("combine", mode, a, b)["shape"]) == BroadcastingLab(a, b, mode).result_shape


# The state in Python.


def test_the_result_shape_follows_the_state():
    lab = BroadcastingLab((3, 1), (4,))
    assert lab.result_shape == (3, 4)
    lab.set_state({"a": [5, 3, 2], "b": [2, 4], "mode": "matmul"})
    assert lab.result_shape == (5, 3, 4)
    with pytest.raises(ValueError, match=r"^a and b must have shapes that fit, got \(2,\) and \(3,\): "):
        _ = BroadcastingLab((2,), (3,)).result_shape


SHAPE_ERROR = "{} must have at most 8 axes of sizes from 0 to 10**9, got {}"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: BroadcastingLab((-1,)), ValueError, SHAPE_ERROR.format("a", (-1,))),
        (lambda: BroadcastingLab(b=(10**9 + 1,)), ValueError, SHAPE_ERROR.format("b", (10**9 + 1,))),
        (lambda: BroadcastingLab((1,) * 9), ValueError, SHAPE_ERROR.format("a", "(1, 1, 1, 1, 1, 1, ...)")),
        (lambda: BroadcastingLab(mode="x"), ValueError, "mode must be one of 'elementwise', 'matmul', got 'x'"),
        (lambda: BroadcastingLab((2.5,)), TypeError, "a must be a list of integers, got (2.5,)"),
    ],
)
def test_invalid_arguments_raise_clear_errors(make, error, text):
    raises(make, error, text)


# In a browser.


def sum_status_pattern(a, b, index):
    """Return a pattern for the status line about one element of a sum."""
    x = 10 * torch.arange(1, torch.tensor(a).prod() + 1).view(a)
    y = torch.arange(1, torch.tensor(b).prod() + 1).view(b)
    element, shape = re.escape(str(list(index))), re.escape(str(tuple((x + y).shape)))
    return rf"result{element} = .* = {(x + y)[index].item()}\. The sum has shape {shape}\."


def test_arrow_keys_change_sizes_and_move_through_the_result(show):
    page = show(BroadcastingLab())
    slider = page.get_by_label("a, axis 0")
    slider.focus()
    for key in ("ArrowUp", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert slider.get_attribute("aria-valuenow") == "4"
    assert slider.evaluate("node => node === document.activeElement")
    assert re.fullmatch(sum_status_pattern((4, 1), (4,), (0, 0)), status(page))
    page.get_by_label(re.compile("^The result")).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert re.fullmatch(sum_status_pattern((4, 1), (4,), (2, 1)), status(page))


def test_explained_product_agrees_with_torch(show):
    page = show(BroadcastingLab((2, 3), (3, 2)))
    page.get_by_role("button", name="a @ b").press("Enter")
    a, b = torch.arange(1, 7).view(2, 3), torch.arange(1, 7).view(3, 2)
    assert status(page) == f"result[0, 0] = 1×1 + 2×3 + 3×5 = {(a @ b)[0, 0]}. The product has shape (2, 2)."


@pytest.mark.parametrize("width", [760, 360])
def test_a_dragged_size_stays_under_the_pointer(show, width):
    page = show(BroadcastingLab(), width=width)
    slider, frame = page.get_by_label("a, axis 0"), page.locator(".tl-lab")
    height = frame.bounding_box()["height"]
    assert len(drag(page, slider, 54)) == 1, "the dragged slider must stay under the pointer"
    assert width < 500 or frame.bounding_box()["height"] == height, "the content below the lab must not move"
    assert page.get_by_label("Shape of a").input_value() == "6, 1"
    assert re.fullmatch(sum_status_pattern((6, 1), (4,), (0, 0)), status(page))
    drag(page, page.get_by_label("b, axis 0"), 400)
    assert page.get_by_label("Shape of b").input_value() == "8"
    page.locator(".tl-part").nth(1).locator(".tl-cell").nth(9).hover()
    assert re.fullmatch(sum_status_pattern((6, 1), (8,), (1, 1)), status(page)), (
        "pointing at an operand must choose the element of the result"
    )


def test_clash_is_reported_and_keeps_the_operands(show):
    page = show(BroadcastingLab((3, 4), (4,)))
    drag(page, page.get_by_label("b, axis 0"), -18)
    with pytest.raises(RuntimeError):
        torch.zeros(3, 4) + torch.zeros(3)
    assert status(page) == "These shapes do not fit: 4 and 3 differ on axis −1, and neither is 1."
    assert page.locator(".tl-part:visible").count() == 2


def test_a_result_that_is_too_large_to_draw_is_reported(show):
    page = show(BroadcastingLab())
    page.get_by_label("Shape of a").fill("1000, 1000, 1")
    assert "Too large to draw" in page.locator(".tl-lab").inner_text()
    assert status(page) == "The sum has shape (1000, 1000, 4): 4,000,000 elements."
    assert page.locator(".tl-part:visible").count() == 0
