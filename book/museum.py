"""Makes the museum's cards, one for each published bug, from ``transformer_lab.bugs`` when the book is built."""

import inspect
import io
import re
import textwrap
from contextlib import redirect_stdout
from functools import cache

import transformer_lab as tl
from book.api import chapter_sections
from transformer_lab.audit.properties import PROPERTIES
from transformer_lab.bugs import BUGS, FAMILIES
from transformer_lab.labs.influence import MODELS

PAGE = "museum"
PLACEHOLDER = "<!-- cards -->"
# The bugs that the table of changed outputs reveals, each with the influence lab's settings that show the bug: the
# model, the weights, and the row.
INFLUENCE_SETTINGS = {
    "inverted_mask": ("B", "quiet", "one"),
    "weak_mask": ("F", "loud", "one"),
    "window_plus_one": ("I", "quiet", "one"),
    "fully_masked_row": ("N", "quiet", "padded"),
    "packed_together": ("H", "quiet", "two"),
}
CELL_SIZE = 14  # pixels
TITLES = {
    "masks": "Who may attend to whom",
    "batches": "Texts of a batch, documents of a row",
    "positions": "Positions, and the order of heads",
    "losses": "What the loss asks for",
    "modes": "Modes, initialization, structure",
}


def code_of(bug):
    """Return the lines that rebuild a bug: the body of its function, without the docstring and the audit arguments."""
    source = textwrap.dedent(inspect.getsource(bug.build))
    body = textwrap.dedent(source.split('"""', 2)[2]).strip("\n")
    return re.sub(r"\n\nreturn audit_arguments\(choose_model\(.*\)\Z", "", body)


@cache
def audit_sentence(bug):
    """Return what the audit of the broken model reports about the property that finds the bug."""
    other_properties = PROPERTIES.keys() - {bug.found_by}
    with redirect_stdout(io.StringIO()):
        report = tl.audit(**bug.arguments(), expect=[*other_properties])
    text = next(text for name, _, text in report.rows if name == bug.found_by)
    return text if text.endswith("?") else f"{text}."


def picture(name):
    """Return the table of changed outputs as a drawing with a link to the lab, or nothing if no table shows the bug."""
    if name not in INFLUENCE_SETTINGS:
        return []
    letter, weights, row = INFLUENCE_SETTINGS[name]
    table = next(model for model in MODELS if model["letter"] == letter)["tables"][f"{weights} {row}"]
    cells = "".join(
        f'<rect x="{CELL_SIZE * i + 1}" y="{CELL_SIZE * j + 1}" width="{CELL_SIZE - 2}" height="{CELL_SIZE - 2}" '
        f'class="{_css_class(x)}"/>'
        for j, changes in enumerate(table)
        for i, x in enumerate(changes)
    )
    moved_outputs = "; ".join(f"token {j}: {_list_moved_outputs(changes)}" for j, changes in enumerate(table))
    size = CELL_SIZE * len(table)
    drawing = (
        f'<svg class="tl-moves" viewBox="0 0 {size} {size}" width="{size}" height="{size}" role="img" '
        f'aria-label="Which outputs move when a token is replaced. {moved_outputs}.">{cells}</svg>'
    )
    weights_setting = "&influence2.loud=yes" if weights == "loud" else ""
    row_setting = f"&influence2.row={row}" if row != "one" else ""
    link = f"11_right.html?influence2.chosen={letter}{row_setting}{weights_setting}#the-lab-who-moved"
    caption = f'A row for each token that is replaced, a column for each output: <a href="{link}">try it</a>.'
    return [f"{drawing}\n\n{caption}"]


def _css_class(move):
    return "nan" if move is None else "still" if move == 0 else "moved"


def _list_moved_outputs(changes):
    if all(x is None for x in changes):
        return "all NaN"
    return " ".join(str(i) for i, x in enumerate(changes) if x != 0) or "none"


@cache
def section_links():
    return {number: link for number, link, _ in chapter_sections()}


def card(bug):
    """Return the card of a bug as Markdown."""
    return "\n\n".join(
        [
            f"### {bug.title}",
            f"{bug.date} · [{bug.thread}]({bug.link}) · taught in [{bug.section}]({section_links()[bug.section]})",
            f"**What people see:** {bug.symptoms}.",
            f"**From outside,** the property *{bug.found_by}* fails: {audit_sentence(bug)}",
            *picture(bug.name),
            "**Find the line:**",
            f"```python\n{code_of(bug)}\n```",
            f"<details><summary>The line, the story and the repair</summary>\n\n{bug.description} {bug.story}\n\n"
            f"**Repair:** {bug.repair}\n\n</details>",
        ]
    )


def cards():
    """Return all cards, family by family."""
    parts = []
    for family in FAMILIES:
        parts.append(f"## {TITLES[family]}")
        parts += [card(bug) for bug in BUGS.values() if bug.family == family]
    return "\n\n".join(parts)


def write_cards(app, docname, source):
    if docname == PAGE:
        source[0] = re.sub(re.escape(PLACEHOLDER), lambda _: cards(), source[0])


def setup(app):
    app.connect("source-read", write_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
