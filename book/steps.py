"""The first lab of a chapter steps through three states as the reader scrolls past the lab: see steps.js.

A state consists of words of the section, which are highlighted, and of values for the lab's traits; for a trait that is
a dict, the state has only the keys that change.
"""

import json
from html import escape

import transformer_lab as tl

LAB_PLACEHOLDER = '<div class="lab-placeholder"'
INITIAL_INPUT = tl.labs.NormalizationLab().x.tolist()


def with_changed_value(value):
    """Return the lab's numbers with ``value`` as feature 1 of token 1 in the first sentence."""
    sentence, *others = INITIAL_INPUT
    rows = [[value if (i, j) == (1, 1) else x for j, x in enumerate(row)] for i, row in enumerate(sentence)]
    return [rows, *others]


STEPS = {
    "01_tensor_operations": (
        ("Drag the slider slowly from left to right.", {"index": [0, 1]}),
        ("the walk alternates: three places forward, then two back.", {"index": [1, 0]}),
        ("Without it, the walk goes one place at a time.", {"chain": "", "index": [0, 1]}),
    ),
    "02_matmul_broadcasting": (
        ("Change all four sizes, one after another.", {"a": [4, 3]}),
        ("if you change only one of them, the product is refused.", {"a": [2, 4]}),
        ("The two outer sizes may be anything, and the result has both.", {"a": [4, 3], "b": [3, 2]}),
    ),
    "03_attention_lookup": (
        ("Drag the query onto a key", {"query": [1.6, 0.2]}),
        ("then halfway between two keys.", {"query": [1.35, 0.75]}),
        ("Can you make the output equal to a single value?", {"query": [-1.6, 1.9]}),
    ),
    "04_multi_head": (
        ("In head 0 every word attends to the word before it", {"head": 0}),
        ("in head 1 to the word after it", {"head": 1}),
        ("Head 2 gives half of its weight to dogs and half to cats.", {"head": 2}),
    ),
    "05_masks": (
        ("Hide from sat everything that comes after it", {"flipped": [[2, 3]]}),
        ("click the cells of all later words.", {"flipped": [[2, 3], [2, 4]]}),
        ("The hidden weights become 0, and the others grow", {"flipped": [[2, 3], [2, 4], [2, 5]]}),
    ),
    "06_normalization": (
        ("all the way to the right.", {"x": with_changed_value(20)}),
        ("Which of the normalized numbers move?", {"x": with_changed_value(40)}),
        ("Choose batch norm and look again.", {"x": with_changed_value(40), "dims": [0, 1]}),
    ),
    "07_parameters": (
        ("Then set the layers to 12", {"shape": {"n_layers": 12}}),
        ("back to 24", {}),
        ("set d_model to 768, and read the factor again.", {"shape": {"d_model": 768, "n_heads": 12, "d_ff": 3072}}),
    ),
    "08_linear_attention": (
        ("the number of tokens, to the right.", {"n": 4096}),
        ("What grows in the first order, and what stays small in the second?", {"n": 32768}),
        ("Then press softmax.", {"n": 32768, "between": "softmax"}),
    ),
    "11_right": (
        ("Choose a token.", {"token": 5}),
        ("In model B a token moves its own output and", {"chosen": "B", "token": 5}),
        ("In model C every output moves.", {"chosen": "C", "token": 5}),
    ),
}


def add_steps(app, pagename, templatename, context, doctree):
    if pagename in STEPS:
        app.add_js_file("steps.js")  # not deferred, because the first lab is drawn while the page is being parsed
        steps = escape(json.dumps(STEPS[pagename]))
        context["body"] = context["body"].replace(LAB_PLACEHOLDER, f'{LAB_PLACEHOLDER} data-steps="{steps}"', 1)


def setup(app):
    app.connect("html-page-context", add_steps, priority=580)  # after lab_pictures, which makes the placeholders
    return {"parallel_read_safe": True, "parallel_write_safe": True}
