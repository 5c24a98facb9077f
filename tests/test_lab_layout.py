"""The labs hold their layout in any letters: wide, usual and narrow, and twice as large."""

import pytest
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

PLACES = {"page": (760, 100), "phone": (360, 100), "page, large": (1280, 200), "phone, large": (360, 200)}


def heads():
    sentence = "the cat sat on the mat and the cat slept".split()
    weights = torch.randn(13, 4, len(sentence), len(sentence), generator=torch.Generator().manual_seed(0)).mul(3).softmax(-1)
    return HeadsLab(weights, sentence)


LABS = {
    "strides": lambda: StridesLab((2, 3, 4), ".transpose(0, 1)"),
    "broadcasting": lambda: BroadcastingLab((3, 1), (4,)),
    "product": lambda: BroadcastingLab((3, 4), (4, 2), "matmul"),
    "lookup": LookupLab,
    "heads": heads,
    "masks": MaskLab,
    "mistake": lambda: MaskLab(preset="both", mistake="after softmax"),
    "long words": lambda: MaskLab("a b c d e f g h i j k mmmmmmmmmmmmmmmm", mistake="large negative"),
    "normalization": lambda: NormalizationLab(norm="batch"),
    "budget": BudgetLab,
    "bert": lambda: BudgetLab(tl.BERT_LARGE, 4096, base="gpt2", quantity="training"),
    "order": OrderLab,
    "steps": lambda: OrderLab(mode="steps"),
}
# What is pressed to bring a lab into all its states, one button after another.
PRESSED = {
    "lookup": ("distance", "dot product"),
    "masks": ("after the softmax", "inverted", "scores × 0", "diagonal too", "padded rows too", "−10⁹, not −∞", "none"),
    "normalization": ("layer norm", "instance norm", "group norm", "RMSNorm", "batch", "seq", "d_model", "subtract the mean"),
    "budget": ("FLOPs", "training", "generation", "parameters"),
    "order": ("softmax", "causal mask", "nothing"),
    "steps": ("Next token", "Back"),
}


@pytest.fixture(scope="session", params=FAMILIES)
def browser(launch, request):
    return launch(request.param)


@pytest.fixture
def lay(show):
    """Opens labs on a page of some width, with text of some size."""

    def lay(place, *labs):
        width, text = PLACES[place]
        style = f"<style>html {{ font-size: {text}% }}</style>"
        return show(*labs, width=width, change=lambda html: html.replace("</title>", f"</title>{style}"))

    return lay


# In a place of its own, wider content may scroll or be cut on purpose: tensors, bars' names, tokens.
OUT = """edge => {
    const scrolls = '.tl-grid, .tl-scroll, .tl-matrix, .tl-blend, .tl-piece, .tl-map, .tl-looks, .tl-long, .tl-plane';
    const nodes = [...document.querySelectorAll('.tl-lab *')].filter((node) => !node.closest(scrolls) && !node.closest('svg *')
        && getComputedStyle(node).visibility === 'visible');
    const name = (node) => `${node.closest('.tl-lab').getAttribute('aria-label')}: ${node.outerHTML.slice(0, 90)}`;
    const beyond = nodes.filter((node) => node.getBoundingClientRect().right > edge);
    const cut = nodes.filter((node) => node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).display !== 'inline'
        && !['INPUT', 'SELECT', 'CANVAS'].includes(node.tagName));
    const small = [...document.querySelectorAll('.tl-cell, .tl-square')].filter((node) => node.scrollWidth > node.clientWidth + 1);
    return [...beyond, ...cut, ...small].map(name);
}"""


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_cut_and_nothing_moves_by_itself(lay, place):
    page = lay(place, *(make() for make in LABS.values()))
    width = PLACES[place][0]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(OUT, width - 12 + 1) == []
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
@pytest.mark.parametrize("place", PLACES)
def test_nothing_moves_while_a_reader_plays(lay, name, place):
    page = lay(place, LABS[name]())
    assert page.evaluate(MOVED, list(PRESSED.get(name, ()))) == []
