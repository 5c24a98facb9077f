"""The labs keep their layout in wide, usual and narrow fonts, and at twice the text size."""

from pathlib import Path

import pytest
import torch

import test_order_lab
import transformer_lab as tl
from fonts import FAMILIES
from lab_table import LABS as EVERY_LAB
from lab_table import SENTENCE
from sampling import every_third, sample
from transformer_lab.labs import (
    BroadcastingLab,
    BudgetLab,
    ExpertsLab,
    HeadsLab,
    InfluenceLab,
    LookupLab,
    MaskLab,
    NormalizationLab,
    OrderLab,
    Practice,
    SamplingLab,
    SplitLab,
    StridesLab,
    WholeLab,
)

# For each text size in per cent, two widths of the page: wide, and as narrow as a phone.
WIDTHS = {100: (760, 360), 200: (1280, 360)}
# All fonts at the usual text size, and the widest font at twice this size. On a push, only the widest font is used,
# since its texts are the most likely to overflow.
FONTS_AND_SIZES = [*((family, 100) for family in FAMILIES), ("wide", 200)]
TESTED_FONTS = sample(FONTS_AND_SIZES, [("wide", 100), ("wide", 200)])
each_font = pytest.mark.parametrize(("family", "size"), TESTED_FONTS, scope="session")

MANY_HEADS = torch.randn(13, 4, 10, 10, generator=torch.Generator().manual_seed(0)).mul(3).softmax(-1)
# For each lab, a function that makes it, and the buttons that bring it into all its states.
LABS = {
    "strides": (lambda: StridesLab((2, 3, 4), ".transpose(0, 1)"), []),
    "broadcasting": (lambda: BroadcastingLab((3, 1), (4,)), []),
    "product": (lambda: BroadcastingLab((3, 4), (4, 2), "matmul"), []),
    "lookup": (LookupLab, ["distance", "dot product"]),
    "experts": (
        ExpertsLab,
        ["10 steps", "4", "top-k, then softmax", "sigmoid, then top-k", "renormalize", "shared expert", "All biases 0"],
    ),
    "heads": (lambda: HeadsLab(MANY_HEADS, SENTENCE), []),
    "all heads": (
        lambda: HeadsLab(MANY_HEADS, SENTENCE, overview="maps"),
        ["chosen weight", "previous token", "same token", "induction", "first token", "small maps"],
    ),
    "influence": (
        InfluenceLab,
        [
            "weights × 3,000",
            "two documents",
            "padding in front",
            "N",
            "gives NaN",
            "F",
            "reads the future",
            "E",
            "right, as claimed",
        ],
    ),
    "sampling": (SamplingLab, ["france", "colour", "door", "question", "product", "Draw", "Draw 100", "Clear", "sea"]),
    "split": (lambda: SplitLab(SENTENCE, 4, d_model=32), ["view alone to split", "view alone to merge"]),
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
    "practice": (lambda: Practice("decoder"), ["Check", "Show answer", "Another"]),
    "steps of a block": (lambda: Practice("order_of_a_block"), ["Check", "Another", "Another", "Another", "Another"]),
    "steps of attention": (lambda: Practice("order_of_linear_attention"), ["Check", "Another", "Another", "Another"]),
    "whole": (WholeLab, ["13", "2003", "12345", "342"]),
}
# Large, wide and invalid states. Four small labs share a page.
SMALL_LABS = ("strides", "broadcasting", "lookup", "painting")
EXTREME_LABS = {"small labs": [state for name in SMALL_LABS for state in EVERY_LAB[name].extreme_states]}
EXTREME_LABS |= {name: [case.make, *case.extreme_states] for name, case in EVERY_LAB.items() if name not in SMALL_LABS}


@pytest.fixture(scope="session")
def browser(launch, family):
    return launch(family)


@pytest.fixture
def layout(show, size):
    """Return a function that opens labs on a page with this text size, and yields the page at each width."""

    def open_at_widths(*labs):
        style = f"<style>html {{ font-size: {size}% }}</style></head>"
        page = show(*labs, width=WIDTHS[size][0], change=lambda html: html.replace("<body>", f"{style}<body>"))
        page.add_script_tag(path=Path(__file__).with_name("layout.js"))
        page.locator(".tl-lab details").evaluate_all("nodes => nodes.forEach((node) => { node.open = true; })")
        for width in WIDTHS[size]:
            page.set_viewport_size({"width": width, "height": 800})
            page.evaluate("nextDrawing()")
            assert page.evaluate("document.documentElement.scrollWidth") == width
            yield page, width

    return open_at_widths


@each_font
@pytest.mark.parametrize("kind", EXTREME_LABS)
def test_no_text_is_cut_off(layout, kind):
    for page, width in layout(*(make() for make in EXTREME_LABS[kind])):
        assert page.evaluate("findOutside()") == [], f"{width} px"


# On a push, each text size is tested with a different third of the labs.
LABS_IN_FONTS = [(*font, name) for font in TESTED_FONTS for name in every_third(LABS, font[1] // 100)]


@pytest.mark.parametrize(("family", "size", "name"), LABS_IN_FONTS, scope="session")
def test_layout_is_stable_during_interaction(layout, name, size):
    make, button_texts = LABS[name]
    for page, width in layout(make()):
        if (size, width) == (200, 360):
            break  # at a width of ten characters, text may wrap, but must not be clipped
        assert page.evaluate("pressed => findMoved(pressed)", button_texts) == [], f"{width} px"
        assert page.evaluate("findOutside()") == [], f"{width} px"


@each_font
@pytest.mark.parametrize("between", ["nothing", "softmax", "causal"])
def test_labels_in_pictures_do_not_overlap(layout, between):
    for page, width in layout(*(OrderLab(**sizes, between=between) for sizes in test_order_lab.some_sizes(4, seed=5))):
        assert page.evaluate("findOverlaps()") == [], f"{width} px"
