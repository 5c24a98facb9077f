"""A lab's files are joined into one script without losing code; files that cannot be joined are refused."""

import graphlib
import re

import pytest

import script_rules
from transformer_lab.labs import lab

FILES = sorted(lab._FOLDER.glob("*.js"))
IMPORT = re.compile(r'(?m)^(?:import|\}) .*from "\./(\w+)\.js";$')


@pytest.mark.parametrize(
    ("script", "line", "message"),
    [
        ("const a = `one\n  // two`;", 1, "a template literal must end on its line"),
        ("const a = 1;\nfor (const b of [a]) b();", 2, "there must be only imports and definitions"),
        ("export { a };", 1, "there must be only imports and definitions"),
        ('import "./a.js";', 1, "there must be only imports and definitions"),
        ("const { a } = b;", 1, "there must be only imports and definitions"),
        ("export default render;", 1, "there must be only imports and definitions"),
        (f"// {'long ' * 30}", 1, "at most 120 characters, got 153"),
    ],
)
def test_scripts_that_cannot_be_joined_are_refused(script, line, message):
    ((number, sentence),) = script_rules.complaints(script)
    assert number == line
    assert message in sentence


def test_the_form_of_the_labs_scripts_is_allowed():
    script = """// A comment, with `code` and a lone ` in it.
/** @typedef {object} A */
/**
 * @type {(a: A) => void}
 */
import {
  a,
} from "./a.js";
import { b } from "./b.js";

export const c = `${a} // no comment`;
const d = [
  "`",
];
class E {}
async function f() {}
export default { render };
"""
    assert script_rules.complaints(script) == []
    assert script_rules.complaints("for (;;) ;\n`\n`", in_lab=False) == []


def test_imports_have_no_cycle():
    imports = {path.stem: IMPORT.findall(path.read_text("utf-8")) for path in FILES}
    assert imports["frame"] == ["address", "ui"]
    list(graphlib.TopologicalSorter(imports).static_order())  # raises CycleError


def test_joining_removes_imports_and_comments_but_no_code():
    text = (
        'import { a } from "./a.js";\n/** @type {A} */ (b).c();\n/** Two\n * lines. */\nexport const d = 1;\n  // e\n'
    )
    assert lab._REMOVED_WHEN_JOINED.sub("", text) == "/** @type {A} */ (b).c();\nconst d = 1;\n"
