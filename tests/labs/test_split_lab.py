"""The split lab works in Python and in a browser, and each of its steps agrees with PyTorch."""

import itertools
import math

import pytest
import torch

import transformer_lab as tl
from agreement import raises
from gestures import status
from javascript import Engine
from lab_table import SENTENCE
from transformer_lab.labs import SplitLab

SIZES = [(4, 2, 3), (3, 5, 2), (7, 3, 5), (1, 2, 1), (5, 1, 4), (2, 7, 3)]  # seq, heads, d_head
MISTAKES = list(itertools.product((False, True), repeat=2))


def small_lab():
    return SplitLab(SENTENCE, 4, d_model=32)


@pytest.fixture(scope="module")
def engine():
    return Engine(SplitLab)


# The steps.


def tensors_by_torch(seq, heads, width, split_by_view, merge_by_view):
    """Compute each step's layout with view and transpose; a score is represented by its first pair of factors."""
    x = torch.arange(seq * heads * width).view(1, seq, -1)
    if split_by_view:
        divided = split = x.view(1, heads, seq, width)
    else:
        divided = x.view(1, seq, heads, width)
        split = divided.transpose(1, 2)
        assert torch.equal(split, tl.split_heads(x, heads))
    score_pairs = torch.stack(torch.broadcast_tensors(split[..., :, None, 0], split[..., None, :, 0]), -1)
    before_merge = split if merge_by_view else split.transpose(1, 2)
    merged = before_merge.reshape(1, seq, heads * width)
    if not merge_by_view:
        assert torch.equal(merged, tl.merge_heads(split))
    return [x, x, divided, split, score_pairs, score_pairs, split, before_merge, merged, merged]


@pytest.mark.parametrize("mistakes", MISTAKES)
@pytest.mark.parametrize(("seq", "heads", "width"), SIZES)
def test_every_step_agrees_with_torch(engine, seq, heads, width, mistakes):
    actual = engine("journeySteps", {"seq": seq, "heads": heads, "d_head": width}, *mistakes)
    expected = tensors_by_torch(seq, heads, width, *mistakes)
    assert len(actual) == len(expected)
    for i, (step, tensor) in enumerate(zip(actual, expected)):
        shape = tensor.shape[1:-1] if i in (4, 5) else tensor.shape[1:]
        assert tuple(step["shape"]) == tuple(shape)
        assert step["ids"] == tensor.reshape(math.prod(shape), -1).squeeze(-1).tolist() or i in (4, 5)
        if i in (4, 5):
            assert step["ids"] == tensor.reshape(-1, 2).tolist()


@pytest.mark.parametrize(("seq", "heads", "width"), SIZES)
def test_the_tokens_in_a_head_after_view_alone_agree_with_torch(engine, seq, heads, width):
    split = torch.arange(seq * heads * width).view(heads, seq, width)
    for head in range(heads):
        tokens = split[head] // (heads * width)
        assert engine("tokensOfHead", head, heads, seq) == [tokens.min().item(), tokens.max().item()]


@pytest.mark.parametrize("mistakes", MISTAKES)
def test_displayed_code_runs_with_the_displayed_shapes(engine, mistakes):
    layer = tl.MultiHeadAttention(12, 3)
    sizes = {"batch": 2, "seq": 5, "q_len": 5, "k_len": 5, "heads": 3, "d_model": 12, "d_head": 4}
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))
    names = sizes | {"x": x, "q_proj": layer.q_proj, "out_proj": layer.out_proj}
    names |= {"k": tl.split_heads(layer.k_proj(x), 3), "v": tl.split_heads(layer.v_proj(x), 3)}
    if mistakes[0]:
        names |= {name: getattr(layer, f"{name}_proj")(x).view(2, 3, 5, 4) for name in "kv"}
    steps = engine("stepTexts", *mistakes)
    result = "x"
    for step in steps:
        code = step["text"].replace("√d_head", "d_head**0.5")
        if "=" in code:
            exec(code, names)
            result = code.split()[0]
        assert tuple(names[result].shape) == tuple(sizes[axis] for axis in step["shape"]), code
    assert [i for i, step in enumerate(steps) if step["wrong"]] == [2, 3] * mistakes[0] + [7, 8] * mistakes[1]
    with torch.no_grad():
        assert torch.allclose(names["y"], layer(x), atol=1e-6) == (mistakes == (False, False))
        if mistakes == (True, True):
            assert names["y"].shape == layer(x).shape


# The state in Python.


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"tokens": ""}, ValueError, "the number of tokens must be from 1 to 64, got 0"),
        ({"tokens": ["a"] * 65}, ValueError, "the number of tokens must be from 1 to 64, got 65"),
        ({"n_heads": 0}, ValueError, "n_heads must be from 1 to 32, got 0"),
        ({"n_heads": 1.5}, TypeError, "n_heads must be an integer, got 1.5"),
        ({"n_heads": 4, "d_model": 30}, ValueError, "d_model must be a multiple of n_heads 4, got 30"),
        ({"stage": 10}, ValueError, "stage must be from 0 to 9, got 10"),
    ],
)
def test_invalid_arguments_raise_clear_errors(arguments, error, message):
    raises(lambda: SplitLab(**arguments), error, message)


# In a browser.


def test_steps_are_chosen_by_keyboard(show):
    page = show(small_lab())
    steps = page.get_by_role("radiogroup", name="Steps of multi-head attention")
    steps.get_by_role("radio", checked=True).focus()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.textContent").startswith("q = q.view(batch, seq, heads, d_head)")
    assert status(page) == "b3, feature 3 of token b, is at [1, 1, 0]: token b, piece 1."


# The picture of the split.


def cell_texts(page, grid):
    return page.locator(".tl-before-after .tl-grid").nth(grid).locator(".tl-cell").all_inner_texts()


def letters_of(numbers):
    return ["abcd"[number // 6] + str(number % 6) for number in numbers]


@pytest.mark.parametrize("mistakes", MISTAKES)
def test_picture_agrees_with_torch(show, mistakes):
    page = show(small_lab())
    for name, is_wrong in zip(("view alone to split", "view alone to merge"), mistakes):
        if is_wrong:
            page.get_by_role("button", name=name).click()
    for i, tensor in enumerate(tensors_by_torch(4, 2, 3, *mistakes)):
        page.locator(".tl-stage").nth(i).click()
        if i in (4, 5):
            expected = [f"{'abcd'[a // 6]}·{'abcd'[b // 6]}" for a, b in tensor.view(-1, 2).tolist()]
            rows, columns = torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")
            misplaced = ((tensor // 6) != torch.stack([rows, columns], -1)).any(-1).sum().item()
        else:
            expected = letters_of(tensor.flatten().tolist())
            by_heads = tensor.ndim == 4 and tensor.shape[1] == 2
            place = torch.arange(4).view((-1, 1) if by_heads else (-1, *[1] * (tensor.ndim - 2)))
            misplaced = (tensor // 6 != place).sum().item()
        assert cell_texts(page, 1) == expected
        assert page.locator(".tl-before-after .tl-grid").nth(1).locator(".tl-misplaced").count() == misplaced
        text = status(page)
        assert (f"{misplaced} of {tensor[..., 0].numel() if i in (4, 5) else 24}" in text) == bool(misplaced)


def test_marked_number_is_found_at_every_step(show):
    page = show(small_lab())
    grid_after = page.locator(".tl-before-after .tl-grid").nth(1)
    grid_after.locator(".tl-cell").nth(14).hover()  # head 1, row a, last column: a5
    assert status(page) == "a5, feature 5 of token a, is at [1, 0, 2]: head 1, row a."
    for stage, position in [(1, "[0, 5]: row a"), (3, "[1, 0, 2]: head 1, row a"), (7, "[0, 1, 2]: token a, piece 1")]:
        page.locator(".tl-stage").nth(stage).click()
        assert status(page).endswith(f"is at {position}.")
        assert page.locator(".tl-grid .tl-chosen").all_inner_texts() == ["a5", "a5"]
    page.locator(".tl-stage").nth(4).click()
    grid_after.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert grid_after.locator(".tl-chosen").inner_text() == "b·b"


def test_view_alone_is_explained_with_own_sentence(show):
    page = show(small_lab())
    page.get_by_role("button", name="view alone to split").click()
    x = torch.arange(10 * 32).view(10, 32)
    shown_tokens = x.view(4, 10, 8)[0] // 32
    assert (shown_tokens.min(), shown_tokens.max()) == (0, 2)
    assert status(page).endswith("In your sentence, head 0 of 4 would read the tokens from “the” [0] to “sat”.")


def test_known_shapes_are_shown_in_numbers(show):
    page = show(small_lab())
    layer, x = tl.MultiHeadAttention(32, 4), torch.zeros(1, 10, 32)
    shapes = page.locator(".tl-sizes").all_inner_texts()
    assert shapes[0] == str(tuple(x.shape)) and shapes[3] == str(tuple(tl.split_heads(layer.q_proj(x), 4).shape))
    assert shapes[5] == str(tuple(layer.weights(x).shape)) and shapes[9] == str(tuple(layer(x).shape))
    page = show(SplitLab("a " * 64, 12))
    assert page.locator(".tl-sizes").nth(3).inner_text() == "(1, 12, 64, d_head)"
