"""The normalization lab works in Python and in a browser, and its arithmetic agrees with PyTorch's."""

import itertools
import math
import random
import re

import pytest
import torch
from torch.nn import functional as F

import transformer_lab as tl
from agreement import raises
from gestures import status
from javascript import Engine, assert_close
from lab_table import cell
from transformer_lab.labs import NormalizationLab
from transformer_lab.labs.normalization import MOVE_THRESHOLD, NORMS, REACH

NORM_LABELS = {"batch": "batch norm", "layer": "layer norm", "instance": "instance norm", "group": "group norm"}
NORM_LABELS |= {"rms": "RMSNorm"}
AXIS_CHOICES = [dims for count in range(4) for dims in itertools.combinations(range(3), count)]


def norm_by_torch(x, norm, n_groups=2, eps=1e-5):
    """Apply PyTorch's norm of this name to x, with the features as channels."""
    channels = x.transpose(1, 2)  # (batch, d_model, seq)
    if norm == "batch":
        return F.batch_norm(channels, None, None, training=True, eps=eps).transpose(1, 2)
    if norm == "instance":
        return F.instance_norm(channels, eps=eps).transpose(1, 2)
    if norm == "group":
        return F.group_norm(channels, n_groups, eps=eps).transpose(1, 2)
    if norm == "layer":
        return F.layer_norm(x, x.shape[-1:], eps=eps)
    return F.rms_norm(x, x.shape[-1:], eps=eps)


def shares_statistics(entry, other_entry, dims, d_model, n_groups):
    """Return whether two entries share statistics, that is, differ only along dims and within one group of features."""
    group_size = d_model // n_groups
    differ_only_along_dims = all(i == j or axis in dims for axis, (i, j) in enumerate(zip(entry, other_entry)))
    are_in_one_group = 2 not in dims or entry[2] // group_size == other_entry[2] // group_size
    return differ_only_along_dims and are_in_one_group


def entries_that_share_statistics(lab, index):
    indices = list(itertools.product(*map(range, lab.shape)))
    return {
        flat
        for flat, other in enumerate(indices)
        if other != tuple(index) and shares_statistics(index, other, lab.dims, lab.shape[2], lab.n_groups)
    }


def divisors(d_model):
    return [n for n in range(1, d_model + 1) if d_model % n == 0]


def smallest_divisor(d_model):
    return min((n for n in divisors(d_model) if n > 1), default=1)


def some_labs(count, seed=0):
    """Yield labs with random values, shapes and settings; in some of the labs, one or two values are changed."""
    draw, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    for _ in range(count):
        shape = [draw.randint(1, largest) for largest in (4, 6, 6)]
        x = torch.randn(shape, generator=generator) * 10 ** draw.uniform(-1, 1) + draw.uniform(-3, 3)
        lab = NormalizationLab(x, dims=draw.choice(AXIS_CHOICES), n_groups=draw.choice(divisors(shape[2])))
        lab.center = draw.random() < 0.7
        for _ in range(draw.choice((0, 1, 2))):
            changed_x = lab.x.clone()
            changed_x[tuple(draw.randrange(size) for size in shape)] += draw.uniform(-20, 20)
            lab.x = changed_x
        if draw.random() < 0.5:
            lab.lengths = [draw.randint(1, shape[1]) for _ in range(shape[0])]
        yield lab


def settings(lab):
    return {"dims": lab.dims, "groups": lab.n_groups, "center": lab.center, "eps": lab.eps}


# The arithmetic.


@pytest.fixture(scope="module")
def engine():
    return Engine(NormalizationLab)


def test_entries_that_differ_only_along_dims_share_statistics(engine):
    for lab in some_labs(40):
        ids = engine("statisticsIds", lab.shape, lab.dims, lab.n_groups)
        for flat, index in enumerate(itertools.product(*map(range, lab.shape))):
            group = {other for other, number in enumerate(ids) if number == ids[flat] and other != flat}
            assert group == entries_that_share_statistics(lab, index)


@pytest.mark.parametrize("norm", NORMS)
def test_browser_and_python_agree_with_torch(engine, norm):
    generator = torch.Generator().manual_seed(1)
    for shape in [(2, 4, 4), (4, 6, 6), (3, 2, 5), (1, 4, 6), (2, 5, 2)]:
        x = (torch.randn(shape, generator=generator, dtype=torch.float64) * 5 + 2).float()
        lab = NormalizationLab(x, norm)
        expected = norm_by_torch(x.double(), norm, lab.n_groups)
        actual = engine("standardize", x.flatten().tolist(), shape, settings(lab))
        assert_close(actual["values"], expected.flatten())
        assert_close(lab.normalized, expected, atol=1e-4)  # float32: two close values, far from zero, lose digits
        package_norm = {
            "batch": lambda x: tl.batch_norm(x.mT, training=True).mT,
            "layer": tl.layer_norm,
            "instance": lambda x: tl.instance_norm(x.mT).mT,
            "group": lambda x, groups=lab.n_groups: tl.group_norm(x.mT, groups).mT,
            "rms": lambda x: tl.rms_norm(x, eps=1e-5),
        }[norm]
        assert_close(actual["values"], package_norm(x.double()).flatten())


def test_norms_over_any_axes_agree_between_browser_and_python(engine):
    for lab in some_labs(60, seed=2):
        actual = engine("standardize", lab.padded.flatten().tolist(), lab.shape, settings(lab))
        # Compute the norm by its definition, entry by entry.
        values, indices = lab.padded.double(), list(itertools.product(*map(range, lab.shape)))
        for flat, index in enumerate(indices):
            group = torch.stack(
                [values[index], *(values[indices[other]] for other in entries_that_share_statistics(lab, index))]
            )
            mean = group.mean() * lab.center
            mean_square = (group - mean).square().mean()
            assert actual["values"][flat] == pytest.approx(
                ((values[index] - mean) / (mean_square + lab.eps).sqrt()).item(), rel=1e-6, abs=1e-6
            )
            assert actual["mean"][flat] == pytest.approx(group.mean().item(), rel=1e-6, abs=1e-6)
            assert actual["meanSquare"][flat] == pytest.approx(mean_square.item(), rel=1e-6, abs=1e-6)
        assert_close(actual["values"], lab.normalized.flatten().double(), atol=1e-3 if not lab.dims else 1e-4)
        assert_close(actual["values"], lab._normalize(lab.padded.double()).flatten())


def test_changed_entries_are_counted_in_the_same_and_in_other_sentences(engine):
    n_moved = 0
    for lab in some_labs(60, seed=3):
        original = lab.original.flatten().tolist()
        disturbed = engine("disturbX", lab.x.flatten().tolist(), original, lab.shape, lab.lengths)
        assert disturbed["x"] == lab.padded.flatten().tolist()
        actual = engine("countLeaks", original, disturbed, lab.shape, settings(lab), MOVE_THRESHOLD)
        assert actual["moved"] == lab.moved.flatten().tolist()
        padding = torch.arange(lab.shape[1]) >= torch.tensor(lab.lengths)[:, None]
        changed_tokens = (lab.x != lab.original).any(-1) | padding
        changed_sentences = changed_tokens.any(-1)
        for place, sentences in (("sameSentence", changed_sentences), ("otherSentences", ~changed_sentences)):
            unchanged_tokens = ~changed_tokens[sentences]
            assert actual[place] == {
                "moved": lab.moved[sentences].sum().item(),
                "all": unchanged_tokens.sum().item() * lab.shape[2],
            }
        n_moved += sum(actual["moved"])
    assert n_moved > 100


def test_only_norms_over_features_leave_other_tokens_unchanged(engine):
    # One of the changes is an outlier, and the other is padding.
    x = NormalizationLab().x.clone()
    x[0, 1, 1] = 30
    for change in ({"x": x}, {"lengths": [4, 2]}):
        moved = {}
        for norm in NORMS:
            lab = NormalizationLab(norm=norm)
            for name, value in change.items():
                setattr(lab, name, value)
            difference = norm_by_torch(lab.original, norm) - norm_by_torch(lab.padded, norm)
            untouched = (lab.padded == lab.original).all(-1, keepdim=True)
            assert torch.equal(lab.moved, untouched & (difference.abs() > 1e-3))
            moved[norm] = [lab.moved[0].any().item(), lab.moved[1].any().item()]
        sentence = 0 if "x" in change else 1
        assert moved["batch"] == [True, True]
        assert moved["layer"] == moved["rms"] == [False, False]
        assert moved["instance"] == moved["group"] == [sentence == 0, sentence == 1]


def test_displayed_code_computes_displayed_numbers(engine):
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(2, 3, 4, generator=generator)
    for dims, groups in itertools.product(AXIS_CHOICES[1:], (1, 2, 4)):
        lab = NormalizationLab(x, dims=dims, n_groups=groups)
        code = engine("normCode", lab.shape, dims, groups, True)
        displayed_result = eval(code, {"standardize": tl.standardize, "x": x})
        torch.testing.assert_close(displayed_result.view_as(x), lab.normalized)
        lab.center = False
        code = engine("normCode", lab.shape, dims, groups, False).replace("²", ".square()").replace("dims=", "")
        names = {"sqrt": torch.sqrt, "mean": lambda x, dims: x.mean(dims, keepdim=True), "eps": lab.eps, "x": x}
        argument = re.search(r"mean\((.*)\.square", code)[1]
        displayed_result = eval(code.replace("x /", f"{argument} /", 1), names)
        torch.testing.assert_close(displayed_result.view_as(x), lab.normalized)


def test_every_choice_of_axes_has_a_description(engine):
    texts = [str(engine("statisticsText", dims, groups)) for dims in AXIS_CHOICES for groups in (1, 2)]
    assert all(re.search(r"[a-z]{4}", text) for text in texts)
    distinct_texts = [str(engine("statisticsText", dims, 1)) for dims in AXIS_CHOICES]
    distinct_texts += [str(engine("statisticsText", dims, 2)) for dims in AXIS_CHOICES if 2 in dims]
    assert len(set(distinct_texts)) == 12
    assert len({engine("sharersText", dims, 1) for dims in AXIS_CHOICES}) == 8


@pytest.mark.parametrize(
    ("values", "reach", "step"),
    [([8, 0], 40, 1), ([0, 0], 10, 1), ([-2.3], 20, 1), ([1], 5, 0.1), ([0.1], 0.5, 0.01), ([100], 100, 10)],
)
def test_slider_range_exceeds_the_values(engine, values, reach, step):
    assert engine("sliderRange", values, REACH) == {"reach": pytest.approx(reach), "step": pytest.approx(step)}


def test_numbers_are_formatted_for_reading(engine):
    assert [engine("numberText", x) for x in (3, -3, 2.25, -0.004)] == ["3", "−3", "2.25", "0.00"]
    assert [engine("changeText", x) for x in (0.004, 0.5, -1.234, 12.34)] == ["≈0", "+0.50", "−1.23", "+12.3"]


# The state in Python.


def test_norm_and_axes_determine_each_other():
    lab = NormalizationLab()
    assert repr(lab) == "NormalizationLab(shape=(2, 4, 4), norm='layer', dims=(2,), n_groups=1)"
    axes = {"batch": (0, 1), "layer": (2,), "instance": (1,), "group": (1, 2), "rms": (2,)}
    assert axes.keys() == NORMS.keys()
    for norm, dims in axes.items():
        lab.norm = norm
        assert (lab.norm, tuple(lab.dims), lab.center) == (norm, dims, norm != "rms")
        assert lab.n_groups == (2 if norm == "group" else 1)
        assert repr(NormalizationLab(norm=norm)) == repr(lab)
    lab.set_state({"dims": [0, 2], "center": True})  # in the form that the browser sends
    assert lab.norm is None
    lab.dims, lab.n_groups = (-1,), 2
    assert lab.dims == [2] and lab.norm is None, "layer norm in groups has no name in the lab"
    lab.dims = [0, 1]
    assert lab.norm == "batch", "groups have no effect if features share no statistics"
    assert NormalizationLab(torch.zeros(1, 2, 5), "group").n_groups == 5
    assert NormalizationLab(torch.zeros(1, 1, 1), "group").n_groups == 1


def test_state_from_the_browser_is_kept():
    lab = NormalizationLab(norm="batch")
    changed_x = lab.get_state()["x"]
    changed_x[0][1][1] = 30
    lab.set_state({"x": changed_x, "lengths": [4, 3]})
    assert lab.x.dtype == torch.float32 and lab.x[0, 1, 1] == 30 and lab.original[0, 1, 1] == 6
    assert lab.padded[1, 3].tolist() == [0, 0, 0, 0] != lab.x[1, 3].tolist()
    assert_close(lab.normalized, norm_by_torch(lab.padded, "batch").double(), atol=1e-5)
    assert lab.moved.sum() == lab.moved[:, [0, 2, 3]].sum() + lab.moved[1, 1].sum() > 0


def test_inputs_are_copied():
    x = torch.ones(2, 3, 4)
    lab = NormalizationLab(x)
    x.zero_()
    assert lab.x.eq(1).all() and lab.original.eq(1).all()
    lab.x = lab.x * 2
    assert lab.original.eq(1).all()


SHAPE_ERROR = "x must have shape (batch, seq, d_model), from (1, 1, 1) to (4, 6, 6), got {}"
NORM_ERROR = "norm must be one of the norms, got {}"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"x": "four"}, TypeError, "x must be a tensor or sequences of numbers, got 'four'"),
        ({"x": torch.zeros(4, 4)}, ValueError, SHAPE_ERROR.format((4, 4))),
        ({"x": torch.zeros(2, 7, 4)}, ValueError, SHAPE_ERROR.format((2, 7, 4))),
        ({"x": torch.zeros(2, 0, 4)}, ValueError, SHAPE_ERROR.format((2, 0, 4))),
        ({"x": torch.full((1, 1, 1), math.nan)}, ValueError, "x must have values from -100 to 100, got nan"),
        ({"x": torch.full((1, 1, 1), -101.0)}, ValueError, "x must have values from -100 to 100, got -101"),
        ({"norm": "weight"}, ValueError, NORM_ERROR.format("'weight'")),
        ({"norm": ["layer"]}, ValueError, NORM_ERROR.format("['layer']")),
        ({"dims": (0, 3)}, ValueError, "dims must be axes of x from -3 to 2, each once, got (0, 3)"),
        ({"dims": (2, -1)}, ValueError, "dims must be axes of x from -3 to 2, each once, got (2, -1)"),
        ({"n_groups": 3}, ValueError, "n_groups must divide d_model, got 3 and 4"),
        ({"n_groups": 0}, ValueError, "n_groups must divide d_model, got 0 and 4"),
        ({"eps": 0.0}, ValueError, "eps must be positive, got 0.0"),
        ({"eps": math.nan}, ValueError, "eps must be positive, got nan"),
        ({"lengths": [4]}, ValueError, "lengths must be 2 numbers from 1 to 4, got (4,)"),
        ({"lengths": [4, 0]}, ValueError, "lengths must be 2 numbers from 1 to 4, got (4, 0)"),
        ({"index": [0, 0, 4]}, ValueError, "index must name an entry of shape (2, 4, 4), got (0, 0, 4)"),
    ],
)
def test_invalid_arguments_raise_clear_errors(arguments, error, message):
    raises(lambda: NormalizationLab(**arguments), error, message)


def test_shape_cannot_change():
    lab = NormalizationLab()
    with pytest.raises(ValueError, match=r"^x must keep the shape that the lab began with, got \(1, 4, 4\)"):
        lab.x = torch.zeros(1, 4, 4)
    assert lab.x.shape == (2, 4, 4)


# In a browser.


VALUE_LABEL, PADDING_LABEL = "Value of the chosen entry", "Padding at the end of the sentence"


def entries_with_class(page, name, grid=0):
    """Return the entries of a grid that have the class ``name``."""
    cells = page.locator(".tl-grid").nth(grid).locator(f".tl-cell.{name}")
    return set(cells.evaluate_all("nodes => nodes.map((node) => Number(node.dataset.flat))"))


def number_text(number, digits=2):
    text = f"{number:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def status_sentences(lab, index):
    """Return the expected beginning of the status line, and a sentence that must follow."""
    x, group = lab.padded, entries_that_share_statistics(lab, index)
    values = torch.stack([x[tuple(index)], *x.flatten()[sorted(group)]])
    statistics = f"its root mean square {number_text(values.square().mean().sqrt())}"
    if lab.center:
        statistics = (
            f"its mean {number_text(values.mean())} and standard deviation {number_text(values.std(correction=0))}"
        )
    value = lab.x[tuple(index)].item()
    return (
        f"x[{', '.join(map(str, index))}] = {value:g} shares {statistics} with {len(group)} others: ",
        f"Its normalized value is {number_text(lab.normalized[tuple(index)])}",
    )


def counts_of_leaks(page):
    rows = page.locator(".tl-leaks tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.children].map((node) => node.textContent))"
    )
    return {name: tuple(counts) for name, *counts in rows}


@pytest.mark.parametrize("norm", NORMS)
def test_entries_that_share_statistics_are_highlighted(show, norm):
    page, lab = show(NormalizationLab()), NormalizationLab(norm=norm)
    page.get_by_role("button", name=NORM_LABELS[norm]).click()
    grid = page.get_by_label("x, the values")
    grid.focus()
    index = [0, 1, 1]
    keys = {"ArrowRight": (2, 1), "ArrowDown": (1, 1), "PageDown": (0, 1), "ArrowUp": (1, -1), "ArrowLeft": (2, -1)}
    for key, (axis, step) in {"": (0, 0), **keys}.items():
        if key:
            page.keyboard.press(key)
        index[axis] += step
        flat = 16 * index[0] + 4 * index[1] + index[2]
        for view in (0, 1):
            assert entries_with_class(page, "tl-chosen", view) == {flat}
            assert entries_with_class(page, "tl-outlined", view) == entries_that_share_statistics(lab, index)
        begins, ends = status_sentences(lab, index)
        assert status(page).startswith(begins) and ends in status(page)
    displayed_numbers = page.locator(".tl-grid").nth(1).locator(".tl-cell").all_inner_texts()
    assert displayed_numbers == [number_text(value, 1) for value in lab.normalized.flatten()]


def test_axes_can_be_toggled_freely(show):
    page = show(NormalizationLab())
    lab = NormalizationLab()
    pressed_buttons = page.locator("button[aria-pressed=true]")
    for button, dims in [("batch", [0, 2]), ("seq", [0, 1, 2]), ("d_model", [0, 1]), ("batch", [1]), ("seq", [])]:
        page.get_by_role("button", name=button, exact=True).click()
        lab.dims = dims
        assert entries_with_class(page, "tl-outlined") == entries_that_share_statistics(lab, (0, 1, 1))
        names = pressed_buttons.all_inner_texts()
        assert [name for name in ("batch", "seq", "d_model") if name in names] == [
            ("batch", "seq", "d_model")[dim] for dim in dims
        ]
        assert [name for name in names if name in NORM_LABELS.values()] == ([NORM_LABELS[lab.norm]] if lab.norm else [])
        groups = page.get_by_role("group", name="Groups of features").get_by_role("button")
        assert groups.first.is_enabled() == (2 in dims)
    assert "mean 6.00 and standard deviation 0.00 with no other entry. Its normalized value is 0.00." in status(page)
    page.get_by_role("button", name="group norm").click()
    page.get_by_role("button", name="4", exact=True).click()
    lab.norm, lab.n_groups = "group", 4
    assert entries_with_class(page, "tl-outlined") == entries_that_share_statistics(lab, (0, 1, 1))
    page.get_by_role("button", name="subtract the mean").click()
    assert "its root mean square" in status(page)


@pytest.mark.parametrize("change", ["outlier", "padding", "both"])
@pytest.mark.parametrize("norm", NORMS)
def test_disturbance_marks_and_counts_changed_entries(show, norm, change):
    page = show(NormalizationLab(norm=norm))
    assert set(counts_of_leaks(page).values()) == {("–", "–")}
    assert not entries_with_class(page, "tl-moved", 1)
    if change != "padding":
        page.get_by_label(VALUE_LABEL, exact=True).fill("30")
    if change != "outlier":
        page.get_by_label(PADDING_LABEL, exact=True).fill("1")
    counts = counts_of_leaks(page)
    for name in NORMS:
        lab = NormalizationLab(norm=name, lengths=[4 if change == "outlier" else 3, 4])
        if change != "padding":
            changed_x = lab.x.clone()
            changed_x[0, 1, 1] = 30
            lab.x = changed_x
        delta = norm_by_torch(lab.padded, name) - norm_by_torch(lab.original, name)
        touched = {"outlier": [1], "padding": [3], "both": [1, 3]}[change]
        is_unchanged = torch.ones(2, 4, 4, dtype=torch.bool)
        is_unchanged[0, touched] = False
        is_moved = is_unchanged & (delta.abs() > 1e-3)
        assert counts[NORM_LABELS[name]] == (
            f"{is_moved[0].sum()} of {is_unchanged[0].sum()}",
            f"{is_moved[1].sum()} of 16",
        )
        if name != norm:
            continue
        assert entries_with_class(page, "tl-moved", 1) == set(is_moved.flatten().nonzero().flatten().tolist())
        for flat in entries_with_class(page, "tl-moved", 1):
            number = delta.flatten()[flat].item()
            text = "≈0" if abs(number) < 0.005 else f"{'+' if number > 0 else ''}{number_text(number)}"
            assert cell(page, flat, 1).get_attribute("data-delta") == text
        count = is_moved.sum().item() or "none"
        assert f" Of {is_unchanged.sum()} entries of other tokens, {count} ha" in status(page)
        assert page.locator(".tl-grid").nth(0).locator(".tl-pad").count() == (0 if change == "outlier" else 4)
    page.get_by_role("button", name="Restore x").click()
    assert set(counts_of_leaks(page).values()) == {("–", "–")}


def test_sliders_change_the_chosen_entry(show):
    page = show(NormalizationLab())
    cell(page, 4 * 7 + 2).click()  # the last token of the second sentence
    for _ in range(3):
        page.get_by_label(VALUE_LABEL, exact=True).press("ArrowLeft")
    assert cell(page, 30).inner_text() == "−2" and "tl-edited" in cell(page, 30).get_attribute("class")
    page.get_by_label(PADDING_LABEL, exact=True).press("ArrowRight")
    assert entries_with_class(page, "tl-pad") == {28, 29, 30, 31}
    assert page.get_by_label(VALUE_LABEL, exact=True).is_disabled(), "padding has no value to choose"
    assert "Chosen entry x[1, 3, 2] = 0: padding" in page.locator(".tl-disturb").inner_text()
    page.get_by_label(PADDING_LABEL, exact=True).press("Home")
    assert page.get_by_label(VALUE_LABEL, exact=True).is_enabled() and cell(page, 30).inner_text() == "−2"


def test_hover_previews_and_click_chooses(show):
    page = show(NormalizationLab())
    initial_status, lab = status(page), NormalizationLab()
    for grid in (0, 1):
        cell(page, 18, grid).hover()
        assert entries_with_class(page, "tl-outlined", 1) == entries_that_share_statistics(lab, (1, 0, 2)) and status(
            page
        ).startswith("x[1, 0, 2] = 3 ")
        assert "Chosen entry x[0, 1, 1]" in page.locator(".tl-disturb").inner_text()
        page.get_by_label(VALUE_LABEL, exact=True).hover()
        assert status(page) == initial_status
    cell(page, 18, 1).click()
    page.get_by_label(VALUE_LABEL, exact=True).hover()
    assert entries_with_class(page, "tl-outlined") == entries_that_share_statistics(lab, (1, 0, 2))
    assert "Chosen entry x[1, 0, 2] = 3" in page.locator(".tl-disturb").inner_text()
