"""The labs hold their layout in any letters: wide, usual and narrow, and twice as large."""

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

SENTENCE = "the cat sat on the mat and the cat slept".split()
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
pytestmark = pytest.mark.parametrize(
    ("family", "place"),
    [(family, place) for family in FAMILIES for place in PLACES if family == "wide" or "large" not in place],
    scope="session",
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
        return page

    return lay


# Every text stands inside its box, and every box inside its lab. A tensor may scroll in its own place; names of tokens and of a
# bar's pieces may be cut there.
OUT = """() => {
    const own = '.tl-grid, .tl-scroll, .tl-map, .tl-matrix, .tl-blend, .tl-piece, .tl-looks, .tl-long, option, svg', found = [];
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT), range = document.createRange();
    const boxOf = (node) => {
        const lab = node.closest('.tl-lab').getBoundingClientRect();
        while (getComputedStyle(node).display.startsWith('inline')) node = node.parentNode;
        const { left, right } = node.getBoundingClientRect();
        return node.matches('.tl-cell, .tl-square, .tl-scroll *, .tl-sum-of *') ? [left, right] : [Math.max(left, lab.left + 1), Math.min(right, lab.right - 1)];
    };
    while (walker.nextNode()) {
        const text = walker.currentNode, node = text.parentNode;
        if (!text.data.trim() || !node.closest('.tl-lab') || !node.checkVisibility({ visibilityProperty: true })) continue;
        if (node.closest(own) && !node.matches('.tl-cell, .tl-square')) continue;
        const [left, right] = boxOf(node);
        range.selectNodeContents(text);
        for (const rect of range.getClientRects()) {
            if (rect.left < left - 1 || rect.right > right + 1) found.push(`${node.closest('.tl-lab').getAttribute('aria-label')}: ${text.data.slice(0, 60)}, ${node.className}`);
        }
    }
    for (const node of document.querySelectorAll('.tl-lab :is(button, input, select, svg, canvas, table, .tl-grid)')) {
        const lab = node.closest('.tl-lab').getBoundingClientRect(), { left, right } = node.getBoundingClientRect();
        if (node.checkVisibility() && !node.closest('.tl-scroll, .tl-sum-of') && (left < lab.left || right > lab.right)) found.push(node.outerHTML.slice(0, 90));
    }
    return found;
}"""


@pytest.mark.parametrize("kind", EXTREMES)
def test_nothing_is_cut_and_nothing_moves_by_itself(lay, kind):
    page = lay(*(make() for make in EXTREMES[kind]))
    assert page.evaluate(OUT) == []
    assert moving(page) == 0


# Drags every slider from end to end, draws the pointer over every cell and every knob, and collects what moved: the lab's own
# height, and the tops of all that can be used or read as a picture.
MOVED = """async (pressed) => {
    const found = [], labs = [...document.querySelectorAll('.tl-lab')];
    const parts = (lab) => [...lab.querySelectorAll('button, input, select, svg, table, .tl-grid, .tl-matrix, .tl-sheet, .tl-label')]
        .filter((node) => node.checkVisibility({ visibilityProperty: true }) && !node.closest('div.tl-picture, .tl-before-after'));
    const settle = async () => { await null; await null; await null; };
    const tops = (lab) => new Map([...(lab.querySelector('div.tl-picture') ? [] : [[lab, lab.offsetHeight]]), ...parts(lab).map((node) => [node, node.getBoundingClientRect().top - lab.getBoundingClientRect().top])]);
    const compare = (before, lab, what) => {
        const now = tops(lab);
        for (const [node, top] of before) {
            if (now.has(node) && Math.abs(now.get(node) - top) > 0.5) {
                found.push(`${what}: ${(node.getAttribute('aria-label') ?? node.textContent).slice(0, 60)} by ${now.get(node) - top}`);
                return;
            }
        }
    };
    const event = (name, node, more = {}) => {
        const box = node.getBoundingClientRect();
        node.dispatchEvent(new PointerEvent(name, { bubbles: true, pointerType: 'mouse', pointerId: 1, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, ...more }));
    };
    for (const lab of labs) {
        for (const slider of lab.querySelectorAll('input[type=range]:not(:disabled)')) {
            if (!slider.checkVisibility()) continue;
            const began = slider.value, before = tops(lab), [least, most] = [Number(slider.min), Number(slider.max)];
            for (let i = 0; i <= 24; i++) {
                slider.value = least + ((most - least) * i) / 24;
                slider.dispatchEvent(new Event('input'));
                await settle();
                compare(before, lab, `${slider.getAttribute('aria-label')} at ${slider.value}`);
            }
            slider.value = began;
            slider.dispatchEvent(new Event('input'));
            slider.dispatchEvent(new Event('change'));
            await settle();
        }
        for (const knob of lab.querySelectorAll('.tl-knob')) {
            const before = tops(lab);
            knob.setPointerCapture = () => {};
            const box = knob.getBoundingClientRect();
            event('pointerdown', knob);
            for (const by of [-36, -18, 18, 36, 54, 72, 0]) {
                event('pointermove', knob, { clientX: box.x + box.width / 2 + by });
                await settle();
                compare(before, lab, `${knob.getAttribute('aria-label')} ${by} aside`);
            }
            event('pointerup', knob);
        }
        const before = tops(lab);
        for (const cell of lab.querySelectorAll('.tl-grid .tl-cell, .tl-matrix .tl-square, .tl-sheet')) {
            if (!cell.checkVisibility()) continue;
            cell.scrollIntoView({ block: 'nearest' });
            const sides = cell.matches('.tl-sheet') ? [0.05, 0.35, 0.65, 0.95].flatMap((x) => [0.05, 0.5, 0.95].map((y) => [x, y])) : [[0.5, 0.5]];
            const box = cell.getBoundingClientRect();
            for (const [x, y] of sides) {
                event('pointermove', cell, { clientX: box.x + box.width * x, clientY: box.y + box.height * y });
                await settle();
                compare(before, lab, `over ${(cell.getAttribute('aria-label') ?? cell.textContent)}`);
            }
        }
        for (const radio of lab.querySelectorAll('[role=radio]')) {
            radio.click();
            await settle();
            compare(before, lab, `${radio.textContent}, chosen`);
        }
        for (const name of pressed) {
            const button = [...lab.querySelectorAll('button')].find((each) => each.textContent === name && each.checkVisibility());
            const place = button.getBoundingClientRect().top - lab.getBoundingClientRect().top;
            button.click();
            await settle();
            const by = button.getBoundingClientRect().top - lab.getBoundingClientRect().top - place;
            if (Math.abs(by) > 0.5) found.push(`${name}, pressed, moves by ${by}`);
        }
    }
    return found;
}"""


@pytest.mark.parametrize("name", LABS)
def test_nothing_moves_while_a_reader_plays(lay, name):
    make, pressed = LABS[name]
    page = lay(make())
    assert page.evaluate(MOVED, pressed) == []
    assert page.evaluate(OUT) == []
