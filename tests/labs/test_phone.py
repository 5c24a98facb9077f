"""On a phone, each control of a lab is on the same screen as its effects."""

import pytest

from lab_table import LABS
from test_lab_layout import LABS as LAYOUT_LABS

# The parts that show a control's effect. A slider must fit on the same screen as each of these parts; a button
# must fit on the same screen as at least one of them.
EFFECTS = {
    "strides": ".tl-grid",
    "broadcasting": ".tl-picture",
    "product": ".tl-picture",
    "lookup": ".tl-planes > :last-child svg, .tl-scores",
    "experts": ".tl-links",
    "heads": ".tl-sheet",
    "influence": ".tl-move",
    "sampling": "table",
    "split": ".tl-before-after",
    "masks": ".tl-matrix",
    "normalization": ".tl-grid",
    "budget": ".tl-bars",
    "order": ".tl-orders svg",
    "steps": ".tl-sum-of",
}
CONTROLS = "button:not(.tl-foot *), input, select"

# Return the controls for which no scroll position shows the control together with most of its effect.
FIND_CONTROLS_APART = """([controls, effects]) => {
    const all = (selector) => [...document.querySelectorAll(`.tl-lab :is(${selector})`)].filter((node) =>
        node.checkVisibility({ visibilityProperty: true }) && !node.closest('details:not([open]) > :not(summary)'));
    const visible = (node) => {
        const { left, top, width, height } = node.getBoundingClientRect();
        let count = 0;
        for (const across of [0.2, 0.5, 0.8]) for (const down of [0.1, 0.3, 0.5, 0.7, 0.9]) {
            const found = document.elementFromPoint(left + across * width, top + down * height);
            count += found !== null && (node.contains(found) || found.contains(node));
        }
        return count / 15;
    };
    const best = new Map();
    for (let place = 0; place < document.documentElement.scrollHeight; place += 60) {
        scrollTo(0, place);
        const shares = new Map(all(effects).map((effect) => [effect, visible(effect)]));
        for (const control of all(controls)) {
            if (visible(control) < 0.5) continue;
            const before = best.get(control) ?? new Map();
            for (const [effect, share] of shares) before.set(effect, Math.max(share, before.get(effect) ?? 0));
            best.set(control, before);
        }
    }
    return all(controls).flatMap((control) => {
        const shares = [...(best.get(control)?.values() ?? [0])];
        const share = control.matches('[type=range]') ? Math.min(...shares) : Math.max(...shares);
        return share >= 0.7 ? [] : `${control.getAttribute('aria-label') || control.textContent}: ${share.toFixed(2)}`;
    });
}"""


@pytest.mark.parametrize("name", EFFECTS)
def test_a_control_and_its_effect_are_on_one_screen(show, name):
    page = show(LAYOUT_LABS[name][0](), width=360, touch=True)
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate(FIND_CONTROLS_APART, [CONTROLS, EFFECTS[name]]) == []


def test_every_lab_is_measured():
    measured_labs = {type(LAYOUT_LABS[name][0]()).__name__ for name in EFFECTS}
    # Not measured here: WholeLab, which has separate tests, and a practice, which is only one question.
    assert measured_labs | {"WholeLab", "Practice"} == {type(case.make()).__name__ for case in LABS.values()}
