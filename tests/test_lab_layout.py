"""The labs hold their layout in any letters: wide, usual and narrow, and twice as large."""

from pathlib import Path

import pytest
import test_budget_lab
import test_heads_lab
import test_labs_browser
import test_masks_lab
import test_normalization_lab
import test_order_lab
import torch
from fonts import FAMILIES
from gestures import moving

import transformer_lab as tl
from transformer_lab.labs import (
    BroadcastingLab,
    BudgetLab,
    HeadsLab,
    LookupLab,
    MaskLab,
    NormalizationLab,
    OrderLab,
    StridesLab,
)

# How wide a page is, and how large its text, in per cent.
PLACES = {"page": (760, 100), "phone": (360, 100), "large": (1280, 200), "phone, large": (360, 200)}

SENTENCE = ["the", "cat", "sat", "on", "the", "mat", "and", "the", "cat", "slept"]
WEIGHTS = torch.randn(13, 4, 10, 10, generator=torch.Generator().manual_seed(0)).mul(3).softmax(-1)
# A lab, and what is pressed to bring it into all its states, one button after another.
LABS = {
    "strides": (lambda: StridesLab((2, 3, 4), ".transpose(0, 1)"), []),
    "broadcasting": (lambda: BroadcastingLab((3, 1), (4,)), []),
    "product": (lambda: BroadcastingLab((3, 4), (4, 2), "matmul"), []),
    "lookup": (LookupLab, ["distance", "dot product"]),
    "heads": (lambda: HeadsLab(WEIGHTS, SENTENCE), ["view alone to split", "view alone to merge"]),
    "masks": (
        MaskLab,
        ["after the softmax", "inverted", "scores × 0", "diagonal too", "padded rows too", "−10⁹, not −∞", "none"],
    ),
    "mistake": (lambda: MaskLab(preset="both", mistake="after softmax"), []),
    "long words": (lambda: MaskLab(f"a b c d e f g h i j {'w' * 16} {'m' * 16}", mistake="large negative"), []),
    "normalization": (
        lambda: NormalizationLab(norm="batch"),
        ["layer norm", "group norm", "RMSNorm", "batch", "seq", "d_model", "subtract the mean"],
    ),
    "budget": (BudgetLab, ["FLOPs", "training", "generation", "parameters"]),
    "bert": (lambda: BudgetLab(tl.BERT_LARGE, 4096, base="gpt2", quantity="training"), []),
    "order": (OrderLab, ["softmax", "causal mask", "nothing"]),
    "steps": (lambda: OrderLab(mode="steps"), ["Next token", "Back"]),
}
# All letters are tried at the usual size, the widest also twice as large.
TRIED = [(family, place) for family in FAMILIES for place in PLACES if family == "wide" or "large" not in place]
everywhere = pytest.mark.parametrize(("family", "place"), TRIED, scope="session")
# With large letters on a phone, a lab is as wide as ten of them: nothing may be cut there, but a line may move.
where_lines_are_long = pytest.mark.parametrize(
    ("family", "place"), [case for case in TRIED if case[1] != "phone, large"], scope="session"
)
# What labs can be brought to that is large, wide, or wrong.
EXTREMES = {
    "small labs": test_labs_browser.STATES,
    "heads": [
        *test_heads_lab.STATES,
        lambda: HeadsLab(test_heads_lab.random_weights(13, 7, 20, 20), [f"aVeryLongTokenNumber{i}" for i in range(20)]),
    ],
    "masks": test_masks_lab.STATES,
    "normalization": test_normalization_lab.STATES,
    "budget": test_budget_lab.STATES,
    "order": test_order_lab.STATES,
}


@pytest.fixture(scope="session")
def browser(launch, family):
    return launch(family)


@pytest.fixture
def lay(show, place):
    """Opens labs on a page of some width, with text of some size."""
    width, size = PLACES[place]
    style = f"<style>html {{ font-size: {size}% }}</style></head>"

    def lay(*labs):
        page = show(*labs, width=width, change=lambda html: html.replace("<body>", f"{style}<body>"))
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.add_script_tag(path=Path(__file__).with_name("layout.js"))
        return page

    return lay


@everywhere
@pytest.mark.parametrize("kind", EXTREMES)
def test_nothing_is_cut_and_nothing_moves_by_itself(lay, kind):
    page = lay(*(make() for make in EXTREMES[kind]))
    assert page.evaluate("outside()") == []
    assert moving(page) == 0


@where_lines_are_long
@pytest.mark.parametrize("name", LABS)
def test_nothing_moves_while_a_reader_plays(lay, name):
    make, pressed = LABS[name]
    page = lay(make())
    assert page.evaluate("pressed => moves(pressed)", pressed) == []
    assert page.evaluate("outside()") == []


@everywhere
@pytest.mark.parametrize("between", ["nothing", "softmax", "causal"])
def test_names_in_pictures_do_not_touch(lay, between):
    page = lay(*(OrderLab(**sizes, between=between) for sizes in test_order_lab.some_sizes(4, seed=5)))
    assert page.evaluate("touching()") == []
