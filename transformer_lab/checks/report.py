"""Defines the report of a check, and the card that shows the report."""

import html
import os
import re
import sys
import textwrap
from dataclasses import dataclass, field
from typing import Any

SIGNS = {"correct": "✓", "incorrect": "✗", "error": "✗", "not attempted": "○"}
# Each colour contrasts with white and with the dark backgrounds of the book, Jupyter, Colab and VS Code, since a card
# does not know where it is shown. Text inherits the page's colour, and backgrounds are translucent.
COLOURS = {"correct": "#1f9d4d", "incorrect": "#e5484d", "error": "#e5484d", "not attempted": "#8a929b"}
FAINT_BACKGROUND = "rgba(127, 127, 127, 0.16)"
CARD_STYLE = (
    "box-sizing: border-box; max-width: 46em; margin: 0.4em 0; padding: 0.7em 1em 0.8em; line-height: 1.5; "
    "border: 1px solid rgba(127, 127, 127, 0.4); border-left: 5px solid {}; border-radius: 6px; "
    "overflow-wrap: anywhere; break-inside: avoid"
)
CODE_STYLE = (
    f"padding: 0.1em 0.3em; border: 0; border-radius: 4px; background: {FAINT_BACKGROUND}; color: inherit; "
    "font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.9em; white-space: pre-wrap"
)
PRINTED_OUTPUT_STYLE = (
    "margin: 0.3em 0 0; padding: 0.5em 0.7em; border: 0; border-radius: 4px; "
    f"background: {FAINT_BACKGROUND}; color: inherit; "
    "font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.9em; overflow-x: auto"
)
PARAGRAPH_STYLE = "margin: 0.6em 0 0"
SUMMARY_STYLE = "padding: 0.2em 0; cursor: pointer"
MAX_PRINTED_LINES = 8  # lines of a function's printed output that a card shows
HINT_KINDS = ("a question", "where to look", "the shape of the code")


@dataclass
class Report:
    """What a check found.

    Attributes
    ----------
    exercise : Exercise
    status : str
        ``"correct"``, ``"incorrect"``, ``"error"`` or ``"not attempted"``.
    message : str
        The text of the card: paragraphs with code between backticks.
    mistake : str or None
        The id of the recognized mistake; for two mistakes, the two ids joined by a plus sign. ``nothing_returned`` is a
        mistake that every exercise knows.
    stage : str or None
        The first stage that differs from the reference, if the exercise has stages.
    hints : tuple of three str
        Three hints: a question, where to look, and the shape of the code.
    wrong_cells : list of lists of bool or None
        The first matrix with a wrong number (the last two axes of the result), as bools: True for wrong numbers.
    probe : str
        The name of the input for which the function returns the wrong result.
    printed : str
        The printed output of the function.
    interrupted : Interrupted or None
        The exception that the cell raises after the card is shown, if the learner stopped the check.
    """

    exercise: Any = field(repr=False)
    status: str
    message: str = field(default="", repr=False)
    mistake: str | None = None
    stage: str | None = None
    wrong_cells: list | None = field(default=None, repr=False)
    printed: str = field(default="", repr=False)
    probe: str = field(default="", repr=False)
    interrupted: BaseException | None = field(default=None, repr=False)

    stars = 0  # only the report of a hunt has stars

    @property
    def hints(self):
        return self.exercise.hints

    @property
    def state(self):
        """The state that the summary shows."""
        return self.status

    @property
    def sign_and_verdict(self):
        """The sign before the exercise's name, and the text after the name."""
        return SIGNS[self.status], self.status

    @property
    def colour(self):
        return COLOURS[self.status]

    def __repr__(self):
        mistake_text = f", {self.mistake}" if self.mistake else ""
        return f"<{self.exercise.name}: {self.status}{mistake_text}>"

    def __str__(self):
        """Return the card as plain text."""
        sign, verdict = self.sign_and_verdict
        lines = [f"{sign} {self.exercise.name}: {verdict}"]
        for paragraph in filter(None, self.message.split("\n\n")):
            lines += ["", textwrap.fill(paragraph, 88, initial_indent="  ", subsequent_indent="  ")]
        lines += self._table_as_text()
        if self.status in ("incorrect", "error"):
            hints = f"tl.checks.{self.exercise.name}.hints"
            lines += ["", f"  Three hints, from a question to the shape of the code: {hints}[0], [1], [2]"]
        if self.printed:
            lines += ["", "  It printed:", textwrap.indent(_first_lines(self.printed), "  | ")]
        return "\n".join(lines)

    def _repr_html_(self):
        """Return the card as HTML for a notebook."""
        name, (sign, verdict) = html.escape(self.exercise.name), self.sign_and_verdict
        parts = [
            f'<div role="group" aria-label="The check of {name}: {verdict}" style="{CARD_STYLE.format(self.colour)}">',
            f'<p style="margin: 0"><b>{sign} <code style="{CODE_STYLE}">{name}</code>: {verdict}</b></p>',
        ]
        parts += [_paragraph(text) for text in filter(None, self.message.split("\n\n"))]
        parts.append(self._table())
        if self.printed:
            printed_html = html.escape(_first_lines(self.printed))
            parts.append(f'{_paragraph("It printed:")}<pre style="{PRINTED_OUTPUT_STYLE}">{printed_html}</pre>')
        if self.status in ("incorrect", "error"):
            hints = "".join(
                f'<details><summary style="{SUMMARY_STYLE}">Hint {number}: {kind}</summary>'
                f'<p style="margin: 0.2em 0 0.5em 1.1em">{to_html(hint)}</p></details>'
                for number, (kind, hint) in enumerate(zip(HINT_KINDS, self.hints), 1)
            )
            parts.append(f'<div style="margin-top: 0.7em">{hints}</div>')
        return "".join([*parts, "</div>"])

    def _table(self):
        """Return HTML that the card shows below its text: a table of the wrong numbers."""
        if not self.wrong_cells or all(map(all, self.wrong_cells)):
            return ""
        return _draw_wrong_cells(self.wrong_cells, self.exercise.axes.get("return", "").split()[-2:], self.probe)

    def _table_as_text(self):
        return []

    def _ipython_display_(self):
        """Show nothing, because the check has already shown the card."""

    def show(self):
        """Show the card: as HTML in a notebook, and as text elsewhere."""
        if in_notebook():
            from IPython.display import display

            display({"text/plain": str(self), "text/html": self._repr_html_()}, raw=True)
        else:
            print(self)
        if self.interrupted is not None:  # the rest of the cell, and the cells after it, must not run
            raise self.interrupted
        # nbgrader awards a test's points unless the test raises an error.
        if is_graded() and not self.earns_points():
            raise AssertionError(repr(self))

    def earns_points(self):
        return self.status == "correct"


def is_graded():
    """Return whether nbgrader is running the notebook."""
    return bool(os.environ.get("NBGRADER_EXECUTION"))


def _first_lines(text):
    lines = text.rstrip().split("\n")
    return "\n".join(lines[:MAX_PRINTED_LINES] + ["…"] * (len(lines) > MAX_PRINTED_LINES))


def in_notebook():
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")


def _paragraph(text):
    return f'<p style="{PARAGRAPH_STYLE}">{to_html(text)}</p>'


def to_html(text):
    """Return a paragraph as HTML, with its code and its emphasized words marked up."""

    def mark(match):
        code, emphasized = match.groups()
        return f"<em>{emphasized}</em>" if code is None else f'<code style="{CODE_STYLE}">{code}</code>'

    return re.sub(r"`([^`]+)`|\*(\w[^*`]*)\*", mark, html.escape(text, quote=False))


def _draw_wrong_cells(rows, axes, probe):
    """Return one table of the result as a grid of squares: filled for wrong numbers, outlined for right ones."""
    side, gap = 14, 3
    width, height = ((side + gap) * count + gap for count in (len(rows[0]), len(rows)))
    squares = "".join(
        f'<rect x="{gap + x * (side + gap)}" y="{gap + y * (side + gap)}" width="{side}" height="{side}" rx="2" '
        + (f'fill="{COLOURS["incorrect"]}"/>' if is_wrong else 'fill="none" stroke="#8a929b"/>')
        for y, row in enumerate(rows)
        for x, is_wrong in enumerate(row)
    )
    count = f"{sum(map(sum, rows))} of {len(rows) * len(rows[0])}"
    axes_text = " Rows: {}, columns: {}.".format(*axes) if len(axes) == 2 else ""
    svg = (
        f'<svg role="img" aria-label="{count} numbers in this table are wrong.{axes_text}" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" style="display: block; max-width: 100%; height: auto">'
    )
    caption = f"A table of the result with {probe}. Filled squares mark the wrong numbers: {count}.{axes_text}"
    return (
        f'<figure style="margin: 0.7em 0 0">{svg}{squares}</svg>'
        f'<figcaption style="margin-top: 0.3em; font-size: 0.9em">{caption}</figcaption></figure>'
    )
