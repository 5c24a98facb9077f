"""A page stores only the labs that it shows, and each script only once; the labs still work in a browser."""

import json
import re

import torch

from book.widget_state import minify_script, trim_states, write_files
from transformer_lab.labs import BroadcastingLab, HeadsLab, MaskLab, Practice

STATE_SCRIPT = re.compile(r'(?s)(<script type="application/vnd.jupyter.widget-state\+json">)(.*?)(</script>)')


def test_only_shown_widgets_are_kept_and_each_script_and_style_only_once():
    first, second, unshown = ({"state": {"_esm": "draw", "_css": "red", "n": n}} for n in range(3))
    data = {"state": {"a": first, "b": unshown, "c": second, "d": {"state": {"width": "2em"}}}, "version_major": 2}
    assert trim_states(data, ["a", "c"]) == (
        {
            "state": {"a": first, "c": {"state": {"_esm": {"as": "a"}, "_css": {"as": "a"}, "n": 1}}},
            "version_major": 2,
        },
        {},
    )
    assert second["state"]["_esm"] == "draw"


def test_a_minified_script_keeps_its_strings_and_patterns():
    text = "const say = (a) => `${a ? `it is  ${a}, ` : ``}  1 + 2`; // why\n\nexport default { say, at: /[/`]  x/ };\n"
    minified = minify_script(text)
    assert len(minified) < len(text) - 10 and all(
        literal in minified for literal in ("it is  ", "  1 + 2`", "/[/`]  x/")
    ), minified


def test_labs_that_share_a_script_come_to_life(show, tmp_path):
    labs = [MaskLab("the cat"), BroadcastingLab(), MaskLab("sat on the mat"), Practice("strides_of")]

    def change(html):
        def trim_script(match):
            data = json.loads(match[2])
            remaining_states, files = trim_states(data, [lab.model_id for lab in labs])
            write_files(files, tmp_path)
            text = json.dumps(remaining_states).replace("</", "<\\/")
            assert len(text) < 0.75 * len(match[2])
            return match[1] + text + match[3]

        return STATE_SCRIPT.sub(trim_script, html)

    page = show(*labs, change=change)
    assert page.locator("[data-lab=ready]").count() == len(labs)
    assert page.locator(".tl-lab").nth(2).get_by_text("mat").count()
    assert page.locator("script[src*='practice-lab.js']").count() == 1


def test_large_values_of_a_later_lab_are_fetched_with_it(show, tmp_path):
    weights = torch.rand(4, 8, 24, 24).softmax(-1)
    labs = [MaskLab("the cat"), HeadsLab(weights, [f"word{i}" for i in range(24)])]

    def change(html):
        def trim_script(match):
            data = json.loads(match[2])
            remaining_states, files = trim_states(data, [lab.model_id for lab in labs])
            write_files(files, tmp_path)
            (address,) = (file for file in files if file.startswith("heads-weights"))
            assert remaining_states["state"][labs[1].model_id]["state"]["weights"] == {"file": address}
            return match[1] + json.dumps(remaining_states).replace("</", "<\\/") + match[3]

        return STATE_SCRIPT.sub(trim_script, html)

    page = show(*labs, change=change)
    assert page.locator("[data-lab=ready]").count() == 2
    assert "word0" in page.locator(".tl-lab").nth(1).inner_text()
    assert page.locator("script[src*='heads-weights']").count() == 1
