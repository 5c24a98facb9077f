"""The report of a check, and the card that shows it."""

import html
import os
import re
import sys
import textwrap
from dataclasses import dataclass, field

SIGNS = {"correct": "✓", "incorrect": "✗", "error": "✗", "not attempted": "○"}
COLOURS = {"correct": "#1a7f37", "incorrect": "#cf222e", "error": "#cf222e", "not attempted": "#6e7781"}
LINES = 8  # of what a function printed
HINTS = ("a question", "where to look", "the shape of the code")


@dataclass
class Report:
    """What a check found.

    Attributes
    ----------
    exercise : Exercise
    status : str
        ``"correct"``, ``"incorrect"``, ``"error"`` or ``"not attempted"``.
    message : str
        What the card says: paragraphs with code between backticks.
    mistake : str or None
        The id of the recognised mistake; two ids with a plus between where two were made.
    stage : str or None
        The first step that differs, where the exercise has steps.
    hints : tuple of three str
        A question, where to look, the shape of the code.
    wrong : list of lists of bool or None
        Which numbers of the result are wrong, in a table of its last two axes that has any.
    printed : str
        What the function printed.
    """

    exercise: object = field(repr=False)
    status: str
    message: str = field(default="", repr=False)
    mistake: str | None = None
    stage: str | None = None
    wrong: list | None = field(default=None, repr=False)
    printed: str = field(default="", repr=False)

    @property
    def hints(self):
        return self.exercise.hints

    def __repr__(self):
        named = f", {self.mistake}" if self.mistake else ""
        return f"<{self.exercise.name}: {self.status}{named}>"

    def __str__(self):
        """The card as plain text."""
        lines = [f"{SIGNS[self.status]} {self.exercise.name}: {self.status}"]
        for paragraph in filter(None, self.message.split("\n\n")):
            lines += ["", textwrap.fill(paragraph, 88, initial_indent="  ", subsequent_indent="  ")]
        if self.status in ("incorrect", "error"):
            lines += ["", "  Three hints, from a question to the shape of the code: report.hints[0], [1], [2]"]
        if self.printed:
            lines += ["", "  It printed:", textwrap.indent(_few_lines(self.printed), "  | ")]
        return "\n".join(lines)

    def _repr_html_(self):
        """The card for a notebook."""
        colour, name = COLOURS[self.status], html.escape(self.exercise.name)
        parts = [f"<b>{SIGNS[self.status]} <code>{name}</code>: {self.status}</b>"]
        parts += [f"<p>{_marked(paragraph)}</p>" for paragraph in filter(None, self.message.split("\n\n"))]
        if self.wrong:
            parts.append(_picture(self.wrong))
        if self.status in ("incorrect", "error"):
            parts += [
                f"<details><summary>Hint {number}: {kind}</summary><p>{_marked(hint)}</p></details>"
                for number, (kind, hint) in enumerate(zip(HINTS, self.hints), 1)
            ]
        if self.printed:
            parts.append(f"<p>It printed:</p><pre>{html.escape(_few_lines(self.printed))}</pre>")
        style = f"border-left: 4px solid {colour}; padding: 0.2em 1em; max-width: 45em"
        return f'<div style="{style}">{"".join(parts)}</div>'

    def _ipython_display_(self):
        """Nothing: the check has shown the card already."""

    def show(self):
        """Show the card: in a notebook as HTML, elsewhere as text."""
        if _in_notebook():
            from IPython.display import display

            display({"text/plain": str(self), "text/html": self._repr_html_()}, raw=True)
        else:
            print(self)
        # nbgrader gives a test's points unless it raises.
        if os.environ.get("NBGRADER_EXECUTION") and self.status != "correct":
            raise AssertionError(repr(self))


def _few_lines(text):
    lines = text.rstrip().split("\n")
    return "\n".join(lines[:LINES] + ["…"] * (len(lines) > LINES))


def _in_notebook():
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")


def _marked(text):
    """A paragraph as HTML, with its code marked."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def _picture(rows):
    """A grid of the result: wrong numbers filled, right ones outlined."""
    side, gap = 12, 2
    width, height = ((side + gap) * count for count in (len(rows[0]), len(rows)))
    squares = "".join(
        f'<rect x="{x * (side + gap)}" y="{y * (side + gap)}" width="{side}" height="{side}" '
        f'fill="{"#cf222e" if is_wrong else "none"}" stroke="currentColor" stroke-opacity="0.4"/>'
        for y, row in enumerate(rows)
        for x, is_wrong in enumerate(row)
    )
    count = sum(map(sum, rows))
    label = f"{count} of {len(rows) * len(rows[0])} numbers in this table of the result are wrong"
    svg = f'<svg role="img" aria-label="{label}" width="{width}" height="{height}" viewBox="-1 -1 {width} {height}">'
    return f"<figure>{svg}{squares}</svg><figcaption>Filled: wrong numbers.</figcaption></figure>"
