"""The strides lab works in Python and in a browser, and its rules agree with PyTorch's."""

import math
import random
import re

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import transformer_lab as tl
from agreement import raises
from gestures import drag_slider, status
from javascript import ANY_TEXT, Engine, many_examples, parse_checked
from transformer_lab.arguments import format_value
from transformer_lab.labs import BroadcastingLab, LookupLab, StridesLab
from transformer_lab.labs.strides import OPERATIONS

LIMITS = StridesLab().limits
TORCH_ERRORS = (RuntimeError, IndexError, TypeError, ValueError)  # the errors of PyTorch for an impossible operation


@pytest.fixture(scope="module")
def strides():
    return Engine(StridesLab)


def random_operation(draw, x):
    """Return a random operation for ``x`` as code; about one in four raises an error."""

    def random_axis():
        return draw.randint(-x.ndim - 1, x.ndim) if draw.random() < 0.15 else draw.randrange(-x.ndim, max(x.ndim, 1))

    def random_sizes():
        shape, remaining = [], x.numel()
        for prime in (2, 2, 2, 2, 2, 2, 3, 3, 3, 5, 7):
            if remaining and remaining % prime == 0:
                remaining //= prime
                shape.append(prime)
        while len(shape) > 1 and draw.random() < 0.7:
            shape.append(shape.pop(draw.randrange(len(shape))) * shape.pop(draw.randrange(len(shape))))
        shape += [1] * draw.choice((0, 0, 1, 2))
        if not x.numel():
            shape = [*x.shape, 0] if draw.random() < 0.5 else list(x.shape)
        draw.shuffle(shape)
        if shape and draw.random() < 0.25:
            shape[draw.randrange(len(shape))] = draw.choice((-1, -1, -1, 3, -2))
        return shape

    def random_slice(size):
        low, high, step = (draw.choice(("", draw.randint(-size - 1, size + 1))) for _ in range(3))
        return draw.choice((str(draw.randint(-size, size)), ":", f"{low}:", f":{high}", f"{low}:{high}:{step}", "::2"))

    def random_index():
        parts = [random_slice(size) for size in x.shape[: draw.randrange(x.ndim + 1)]]
        if draw.random() < 0.3:
            parts.insert(draw.randrange(len(parts) + 1), "...")
        return ", ".join(parts or ["..."])

    def random_dims():
        dims = draw.sample(range(x.ndim), x.ndim)
        return dims[1:] if draw.random() < 0.1 else dims

    def random_expanded_sizes():
        shape = [draw.choice((2, 3, 1, -1)) if size == 1 else draw.choice((size, size, -1, 4)) for size in x.shape]
        return [draw.choice((1, 2, 0)) for _ in range(draw.randrange(3))] + shape

    def as_code(numbers):
        text = ", ".join(map(str, numbers))
        return draw.choice((text, f"({text}{',' if len(numbers) == 1 else ''})", f"[{text}]"))

    operation = draw.choice([*OPERATIONS, "view", "transpose", "["])
    if operation == "[":
        return f"[{random_index()}]"
    arguments = {
        "view": lambda: as_code(random_sizes()),
        "reshape": lambda: as_code(random_sizes()),
        "permute": lambda: as_code(random_dims()),
        "expand": lambda: as_code(random_expanded_sizes()),
        "flatten": lambda: draw.choice(("", f"{random_axis()}", f"{random_axis()}, {random_axis()}")),
        "transpose": lambda: f"{random_axis()}, {random_axis()}",
        "squeeze": lambda: draw.choice(("", f"{random_axis()}", f"{random_axis()}, {random_axis()}")),
        "unsqueeze": lambda: f"{random_axis()}",
    }.get(operation, str)()
    if draw.random() < 0.03:
        arguments = draw.choice(("", "0, 1, 1", "(0, 1)"))
    return f".{operation}({'' if arguments == '()' and operation == 'squeeze' else arguments})"


def assert_same_tensor(strides, lab_tensor, x):
    """Assert that the lab's tensor reads its storage exactly as PyTorch's tensor does."""
    assert tuple(lab_tensor["shape"]) == tuple(x.shape)
    assert tuple(lab_tensor["strides"]) == x.stride(), tuple(lab_tensor["shape"])
    assert lab_tensor["offset"] == x.storage_offset()
    assert strides("isContiguous", lab_tensor) == x.is_contiguous()
    if x.numel():
        storage = x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
        assert lab_tensor["storage"] == storage.tolist()
        assert [lab_tensor["storage"][i] for i in strides("storagePlaces", lab_tensor)] == x.flatten().tolist()


@pytest.mark.parametrize("seed", range(8))
def test_chains_agree_with_torch(strides, seed):
    draw = random.Random(seed)
    n_possible = n_impossible = 0
    for _ in range(150):
        shape = [draw.choice((1, 2, 3, 4, 5)) for _ in range(draw.randrange(5))]
        while math.prod(shape) > 64:
            shape.pop()
        x = torch.arange(math.prod(shape)).view(shape)
        chain, tensors = "", [x]
        for _ in range(draw.randint(1, 5)):
            chain += (operation := random_operation(draw, x))
            try:
                x = eval(f"x{operation}", {"x": x})
            except TORCH_ERRORS:
                break
            tensors.append(x)
            if x.numel() > 128:
                break
        steps = strides("parseChain", chain, LIMITS)
        assert "error" not in steps, chain
        actual = strides("runChain", shape, steps["value"])
        is_possible = len(tensors) == len(steps["value"]) + 1 and x.numel() <= 128
        assert actual.get("failedStep") == (None if is_possible else len(steps["value"]) - 1), (
            f"{shape} {chain} {actual}"
        )
        assert is_possible or actual["reason"]
        n_possible, n_impossible = n_possible + is_possible, n_impossible + (not is_possible)
        for previous, lab_tensor, tensor in zip([None, *tensors], actual["tensors"], tensors):
            try:
                assert_same_tensor(strides, lab_tensor, tensor)
            except AssertionError as error:
                raise AssertionError(f"{shape} {chain}: {error}") from None
            if previous is not None and tensor.numel():
                assert lab_tensor["copied"] != tl.layout(tensor).shares_storage_with(previous), chain
        if is_possible:  # Python parses the same chain as the browser, as typed and in canonical form
            for text in (chain, steps["text"]):
                lab = StridesLab(shape, text)
                assert tl.layout(lab.tensor) == tl.layout(x) or torch.equal(lab.tensor, x), text
    assert min(n_possible, n_impossible) > 30  # both cases occurred


@pytest.mark.parametrize(
    ("chain", "reason"),
    [
        (".transpose(0, 1).view(6)", "view cannot merge axes 0 and 1: a step along axis 0 moves 1"),
        (".view(4)", "view: the 6 elements of (2, 3) do not fit the shape (4,)."),
        (".view(-1, -1)", "view: only one size can be left open with −1."),
        (
            ".transpose(0, 2)",
            "transpose: dimension 2 is out of range; this tensor has 2 axes, so dimensions range from -2 to 1.",
        ),
        (".transpose(0)", "transpose needs two dimensions: .transpose(0, 1)."),
        (".transpose((0, 1))", "transpose takes plain numbers, not a list of them."),
        (".t(1)", "t takes no numbers; got 1."),
        (".unsqueeze(0, 1)", "unsqueeze takes 1 number; got 2."),
        (".flatten(0, 1, 1)", "flatten takes 2 numbers at most; got 3."),
        (".unsqueeze(0).t()", "t transposes a matrix; this tensor has 3 axes."),
        (".permute(0)", "permute: name each of the 2 axes once; got (0)."),
        (".view()", "view needs the shape."),
        (".expand(4, 3)", "expand: axis 0 has size 2 and cannot become 4; only an axis of size 1 can stretch."),
        (".unsqueeze(0).expand(50, 2, 3)", "expand: 300 elements are more than this lab draws (128)."),
        ("[2]", "Index 2 is out of range for axis 0 of size 2."),
        ("[0, 0, 0]", "Too many indices: 3 for 2 axes."),
        ("[::0]", "A slice's step must be greater than zero in PyTorch"),
    ],
)
def test_errors_agree_with_torch(strides, chain, reason):
    actual = strides("runChain", [2, 3], strides("parseChain", chain, LIMITS)["value"])
    assert actual["reason"].startswith(reason)


# Typed input.


chains = st.lists(
    st.sampled_from(
        [".", "view", "t", "squeeze", "(", ")", "[", "]", ",", ":", "...", "-1", "2", "3", "6", "0", " ", "x"]
    ),
    max_size=12,
).map("".join)


@many_examples
@given(text=ANY_TEXT | chains | st.builds("{}{}".format, st.just(".transpose(0, 1)"), chains))
@example(text=" x.transpose( 0,1 )\n.view([6])")
@example(text="[01, ::2]")
@example(text=".view((6,))")
@example(text=".view(2,3])")
@example(text="\xa0.t()")
def test_typed_chains_are_parsed_or_refused_in_words(text, strides):
    result = parse_checked(strides, "parseChain", text, LIMITS)
    if result is None:
        return
    actual = strides("runChain", [2, 3], result["value"])
    lab = StridesLab((2, 3), result["text"])  # Python can parse every chain from the browser
    if "reason" not in actual:
        assert tuple(actual["tensors"][-1]["shape"]) == tuple(lab.tensor.shape)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            ".view(6",
            "The error begins at “.view(6”. Write operations as .transpose(0, 1) or [:, 0].",
        ),
        (".view(six)", ".view takes whole numbers here; “six” is not one."),
        ("[None]", "“None” is not an index; write 1, or 0:2, or ::2, or “...”."),
    ],
)
def test_invalid_chain_gets_an_error_message(strides, text, error):
    assert strides("parseChain", text, LIMITS) == {"error": error}


def test_unknown_operation_lists_the_known_ones(strides):
    for name in ("flip", "constructor", "index", "toString"):
        error = strides("parseChain", f".{name}(0)", LIMITS)["error"]
        assert error.startswith(f"This lab has no .{name}. It knows view, reshape, flatten, ")


# The state in Python.


def test_tensor_agrees_with_torch():
    lab = StridesLab(shape=(2, 3, 4), chain=".transpose(1, 2)[:, ::2]")
    assert torch.equal(lab.tensor, torch.arange(24).view(2, 3, 4).transpose(1, 2)[:, ::2])
    lab.set_state({"shape": [6], "chain": ".view(2, 3)[-1, ...]"})  # in the form that the browser sends
    assert lab.tensor.tolist() == [3, 4, 5]
    assert StridesLab((), "").tensor.shape == ()
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        _ = StridesLab((2, 3), ".t().view(6)").tensor


CHAIN_ERROR = (
    "chain must consist of view, reshape, flatten, transpose, t, permute, contiguous, squeeze, unsqueeze, expand and "
    "[ ], as in .transpose(0, 1)[:, ::2], got {}"
)


SHAPE_ERROR = "shape must have at most 5 axes and 64 elements, and no size below 1, got {}"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: StridesLab((5, 13)), ValueError, SHAPE_ERROR.format((5, 13))),
        (lambda: StridesLab((0,)), ValueError, SHAPE_ERROR.format((0,))),
        (lambda: StridesLab((1,) * 6), ValueError, SHAPE_ERROR.format((1,) * 6)),
        *(
            (lambda chain=chain: StridesLab(chain=chain), ValueError, CHAIN_ERROR.format(format_value(chain)))
            for chain in (
                "view(6)",
                "foo",
                "y.t()",
                ".t",
                ".flip(0)",
                ".view(dim=1)",
                ".view(1.5)",
                ".view(True)",
                "[None]",
                "[1.5:]",
                "['a']",
                "[(0, 1), 2]",
                "__import__('os')",
                ".view(x.numel())",
                "\0",
                "(",
                "x + 1",
                ".t()" * 9999,
            )
        ),
        (lambda: StridesLab(3), TypeError, "shape must be a list of integers, got 3"),
    ],
)
def test_invalid_arguments_raise_clear_errors(make, error, text):
    raises(make, error, text)


# In a browser.


def element_sentence(x, flat):
    """Return the first sentence of the status line for element number ``flat`` of ``x``."""
    index = [int(i) for i in torch.unravel_index(torch.tensor(flat), x.shape)]
    storage_index = x.storage_offset() + sum(i * stride for i, stride in zip(index, x.stride()))
    return f"Element {index} is {x.flatten()[flat].item()}, at storage place {storage_index}."


def test_arrow_keys_move_through_a_tensor(show):
    lab = StridesLab((2, 3, 4), ".transpose(1, 2)[:, 1:]")
    page = show(lab)
    grid = page.get_by_label(re.compile("^The tensor"))
    grid.focus()
    flat = 0
    for key, step in [("ArrowRight", 1), ("ArrowDown", 3), ("ArrowRight", 1), ("PageDown", 9), ("ArrowLeft", -1)]:
        page.keyboard.press(key)
        flat += step
        assert status(page).startswith(element_sentence(lab.tensor, flat))
    element_slider = page.get_by_role("slider")
    element_slider.focus()
    page.keyboard.press("End")
    assert status(page).startswith(element_sentence(lab.tensor, lab.tensor.numel() - 1))
    assert "17, storage place 23" not in element_slider.get_attribute("aria-valuetext")
    assert element_slider.get_attribute("aria-valuetext") == "element 18 of 18, storage place 23"


def test_operations_are_added_and_undone_by_keyboard(show):
    page = show(StridesLab())
    for chain, name in [(".view(-1)", "+ .view(-1)"), ("", "Undo last")]:
        button = page.get_by_role("button", name=name)
        button.focus()
        page.keyboard.press("Enter")
        assert page.get_by_label("Operations on x").input_value() == (".transpose(1, 2)" + chain)
        assert page.evaluate("document.activeElement.tagName") == "BUTTON"
        if chain:
            assert "The two numbers must be equal" in page.get_by_role("alert").filter(has_text="view").inner_text()
            assert page.locator(".tl-failed").inner_text().startswith(".view(-1)")


@pytest.mark.parametrize("width", [760, 360])
def test_dragging_and_pointing_choose_an_element(show, width):
    lab = StridesLab()
    page = show(lab, width=width)
    element_slider, frame = page.get_by_role("slider"), page.locator(".tl-lab")
    height = frame.bounding_box()["height"]
    statuses = set()
    for _ in drag_slider(page, element_slider, [step / 12 for step in range(13)]):
        assert frame.bounding_box()["height"] == height, "the size of the lab must not change during a drag"
        statuses.add(status(page))
    assert len(statuses) > 10 and status(page).startswith(element_sentence(lab.tensor, 23))
    page.locator(".tl-grid .tl-cell").nth(7).hover()
    assert status(page).startswith(element_sentence(lab.tensor, 7))


def test_a_tensor_that_is_too_large_to_draw_is_reported(show):
    page = show(StridesLab((1, 64), ".expand(4, 64)"))
    assert "256 elements are more than this lab draws" in page.locator(".tl-chain-error").inner_text()


def test_storage_numbers_fit_beside_other_labs(show):
    page = show(StridesLab(), BroadcastingLab(), LookupLab())
    gap = "node => parseFloat(getComputedStyle(node).rowGap)"
    assert page.locator(".tl-storage").first.evaluate(gap) > 12, "the style of a different lab must not remove the gap"
