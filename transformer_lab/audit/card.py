"""The report of an audit, and the card that shows the report. The card is HTML in a notebook, and text elsewhere."""

import html
import textwrap
from dataclasses import dataclass, field

from ..checks.report import CARD_STYLE, CODE_STYLE, COLOURS, PARAGRAPH_STYLE, SIGNS, SUMMARY_STYLE, in_notebook, to_html

STATUSES = {  # for each status: its sign, and the text for several properties and for one property
    "fails": (SIGNS["incorrect"], "{} fail", "{} fails"),
    "raises": ("!", "{} raise an error", "{} raises an error"),
    "holds": (SIGNS["correct"], "{} hold", "{} holds"),
    "not tried": (SIGNS["not attempted"], "{} not tried", "{} not tried"),
}
CHECK_STATES = {"fails": "incorrect", "raises": "incorrect", "holds": "correct", "not tried": "not attempted"}
LIST_STYLE = "list-style: none; margin: 0.4em 0 0; padding: 0"
LIMITS_TEXT = (
    "No property detects a mistake that results in another valid model: a missing division by `√d_head`, key heads in "
    "a different order, a different layout of RoPE, a different eps, or a different form of GELU. To find such a "
    "mistake, pass `reference=`, a module that computes the right outputs."
)


@dataclass
class AuditReport:
    """The result of an audit.

    Attributes
    ----------
    name : str
        The name of the model's class.
    rows : list of (str, str, str)
        Each property, its status, and a text. The status is ``"holds"``, ``"fails"``, ``"raises"`` or
        ``"not tried"``.
    notes : list of str
        Sentences that say where the audit had to deviate from its arguments.
    seconds : float
        The time that the audit took.
    """

    name: str
    rows: list = field(repr=False)
    notes: list = field(default_factory=list, repr=False)
    seconds: float = field(default=0.0, repr=False)

    @property
    def failed(self):
        """The names of the properties that fail."""
        return self.of("fails")

    def of(self, status):
        """Return the names of the properties with the given status."""
        return [name for name, row_status, _ in self.rows if row_status == status]

    @property
    def title(self):
        """The number of properties with each status, as a text such as "1 fails, 10 hold"."""
        counts = {status: len(self.of(status)) for status in STATUSES}
        texts = [STATUSES[s][2 if n == 1 else 1].format(n) for s, n in counts.items() if n or s in ("fails", "holds")]
        return ", ".join(texts)

    def __repr__(self):
        return f"<audit of {self.name}: {self.title}>"

    def __str__(self):
        """Return the card as plain text."""
        lines = [f"Audit of {self.name}: {self.title}"]
        lines += [textwrap.fill(note, 88, initial_indent="  ", subsequent_indent="  ") for note in self.notes]
        for status, (sign, *_) in STATUSES.items():
            rows = [(name, text) for name, row_status, text in self.rows if row_status == status]
            lines += [""] * bool(rows)
            for name, text in rows:
                line = f"{sign} {name}{': ' if text else ''}{text}"
                lines.append(textwrap.fill(line, 88, initial_indent="  ", subsequent_indent="      "))
        return "\n".join([*lines, "", textwrap.fill(LIMITS_TEXT, 88, initial_indent="  ", subsequent_indent="  ")])

    def _repr_html_(self):
        """Return the card as HTML for a notebook: failures and errors are expanded; a click expands the others."""
        name = html.escape(self.name)
        worst_status = next(status for status in STATUSES if status in ("holds",) or self.of(status))
        parts = [
            f'<div role="group" aria-label="The audit of {name}: {self.title}" '
            f'style="{CARD_STYLE.format(COLOURS[CHECK_STATES[worst_status]])}">',
            f'<p style="margin: 0"><b>{STATUSES[worst_status][0]} Audit of <code style="{CODE_STYLE}">{name}</code>: '
            f"{self.title}</b></p>",
            *(f'<p style="{PARAGRAPH_STYLE}">{to_html(note)}</p>' for note in self.notes),
        ]
        for status, (sign, *count_texts) in STATUSES.items():
            rows = [(name, text) for name, row_status, text in self.rows if row_status == status]
            list_html = f'<ul style="{LIST_STYLE}">{"".join(_list_item(sign, *row) for row in rows)}</ul>'
            if rows and status in ("holds", "not tried"):
                title = count_texts[len(rows) == 1].format(len(rows))
                list_html = f'<details><summary style="{SUMMARY_STYLE}">{title}</summary>{list_html}</details>'
            parts.append(list_html * bool(rows))
        return "".join([*parts, f'<p style="{PARAGRAPH_STYLE}">{to_html(LIMITS_TEXT)}</p></div>'])

    def _ipython_display_(self):
        """Show nothing, because the audit has already shown the card."""

    def show(self):
        """Show the card: as HTML in a notebook, and as text elsewhere."""
        if in_notebook():
            from IPython.display import display

            display({"text/plain": str(self), "text/html": self._repr_html_()}, raw=True)
        else:
            print(self)


def _list_item(sign, name, text):
    """Return a property as an item of the list on a notebook's card."""
    return f'<li style="margin: 0.25em 0"><b>{sign} {html.escape(name)}</b>{": " if text else ""}{to_html(text)}</li>'
