"""The report of a hunt is a check's report with stars in its title and with a table of the mistakes that escape."""

import math
import textwrap
from dataclasses import dataclass, field

from .report import COLOURS, PARAGRAPH_STYLE, Report, to_html

STAR_SHARES = (0.6, 0.85, 1.0)  # the fractions of all mistakes that a test must catch for one, two and three stars
AMBER = "#c77700"
ESCAPES_TITLE = "Mistakes that your test does not catch, by kind:"
TABLE_STYLE = "margin: 0.3em 0 0; border-collapse: collapse; border: 0; font-size: inherit; color: inherit"
CELL_STYLE = "padding: 0.1em 0.8em 0.1em 0; border: 0; vertical-align: top; background: none; color: inherit"


@dataclass(repr=False)
class HuntReport(Report):
    """The result of a hunt.

    Attributes
    ----------
    caught, known : int
        How many mistakes the test catches, and how many a test can catch; both 0 if the test was not run.
    refused : int
        How many correct answers the test rejects.
    kinds : list of (str, int, int)
        For each kind with escaped mistakes: its description, the number of these mistakes, and the number of all
        mistakes of the kind.
    """

    caught: int = 0
    known: int = 0
    refused: int = 0
    kinds: list = field(default_factory=list)

    @property
    def stars(self):
        """The number of stars, up to three; 0 if a correct answer is rejected."""
        if not self.known or self.refused:
            return 0
        return sum(self.caught >= share * self.known for share in STAR_SHARES)

    def next_star_text(self):
        """Say how many mistakes a test must catch for the next star."""
        needed = (math.ceil(share * self.known) for share in STAR_SHARES)
        return f"For the next star, it must catch {next(count for count in needed if count > self.caught)} mistakes."

    @property
    def state(self):
        return format_stars(self.stars) if self.known else self.status

    @property
    def sign_and_verdict(self):
        if not self.known:
            return super().sign_and_verdict
        refused_text = f", {self.refused} right answer{'s' * (self.refused > 1)} refused" if self.refused else ""
        return format_stars(self.stars), f"{self.caught} of {self.known} mistakes caught{refused_text}"

    @property
    def colour(self):
        return AMBER if self.stars in (1, 2) else COLOURS[self.status]

    def earns_points(self):
        return self.stars > 0

    def __repr__(self):
        return f"<{self.exercise.name}: {self.sign_and_verdict[1] if self.known else self.status}>"

    def _rows(self):
        return [(f"{count} of {total}", words) for words, count, total in self.kinds]

    def _table(self):
        rows = "".join(
            f'<tr style="background: none">'
            f'<td style="{CELL_STYLE}; white-space: nowrap; text-align: right">{count}</td>'
            f'<td style="{CELL_STYLE}; text-align: left">{to_html(words)}</td></tr>'
            for count, words in self._rows()
        )
        return rows and f'<p style="{PARAGRAPH_STYLE}">{ESCAPES_TITLE}</p><table style="{TABLE_STYLE}">{rows}</table>'

    def _table_as_text(self):
        rows = [
            textwrap.fill(words, 88, initial_indent=f"  {count:>8}  ", subsequent_indent=" " * 12)
            for count, words in self._rows()
        ]
        return rows and ["", f"  {ESCAPES_TITLE}", *rows]


def format_stars(count):
    """Return a number of stars, out of three, as text."""
    return "★" * count + "☆" * (len(STAR_SHARES) - count)
