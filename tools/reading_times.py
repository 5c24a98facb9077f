"""Prints how long each chapter and its core take: the time computed from the page, and the time stated on the page.

    python tools/reading_times.py

A minute is 150 words, or seven and a half lines of code: slow enough to follow each sentence and each shape. A question
with options takes one minute in addition to its words, and a lab takes three minutes.

A section is *core* or *further*, as the metadata of its heading's cell says. No core section needs a further section.
"""

import re

import nbformat

import notebook_rules
from notebooks import chapters

WORDS_PER_MINUTE = 150
SECONDS_PER_LINE = 8
MINUTES_PER_QUESTION = 1
MINUTES_PER_LAB = 3
END_OF_SITTING = re.compile(r"(?m)^> \*\*End of the \w+ sitting\.\*\*")  # in the last cell of a sitting
HIDDEN_TAGS = {
    "remove-cell",
    "remove-input",
    "hide-input",
}  # tags of cells whose code the page does not show, or folds away
STATED_MINUTES = re.compile(r"\b[Aa]bout (\d+) minutes(?:, in (?:two|three) sittings \((\d+)(?:, (\d+))? and (\d+)\))?")
STATED_CORE_MINUTES = re.compile(r"\b[Aa]bout \d+ minutes[^·]*, (\d+) of them core ·")


def sittings(notebook):
    """Return the cells of a chapter as one list per sitting."""
    cells_by_sitting = [[]]
    for cell in notebook.cells:
        cells_by_sitting[-1].append(cell)
        if cell.cell_type == "markdown" and END_OF_SITTING.search(cell.source):
            cells_by_sitting.append([])
    return cells_by_sitting


def cells_by_section(notebook):
    """Return the cells of a chapter section by section, without the cells before the first section."""
    sections = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            sections.append([])
        if sections:
            sections[-1].append(cell)
    return sections


def is_further(part):
    """Whether the cell of a section's heading marks the section as *further*. A section without a number is core."""
    return part[0].metadata.get("section") == "further"


def core_minutes(notebook):
    """Return how long the chapter takes without its further sections."""
    return minutes(notebook.cells) - sum(minutes(part) for part in cells_by_section(notebook) if is_further(part))


def text_minutes(cells):
    """Return how long it takes to read the words and the code of ``cells``."""
    words = lines = 0
    for cell in cells:
        if cell.cell_type == "markdown":
            words += sum(bool(re.search(r"\w", word)) for word in _visible_text(cell.source).split())
        elif not HIDDEN_TAGS & {*cell.metadata.get("tags", [])}:
            lines += sum(bool(line.strip()) for line in cell.source.splitlines())
    return words / WORDS_PER_MINUTE + lines * SECONDS_PER_LINE / 60


def minutes(cells):
    """Return how long it takes to read ``cells``, answer their questions and try their labs."""
    questions = sum(cell.cell_type == "markdown" and len(re.findall(r"<summary>A\. ", cell.source)) for cell in cells)
    labs = sum(map(notebook_rules.count_labs, cells))
    return text_minutes(cells) + questions * MINUTES_PER_QUESTION + labs * MINUTES_PER_LAB


def _visible_text(source):
    """Return the visible words of a Markdown cell, without the addresses of links and without tags."""
    return re.sub(r"\]\([^)]*\)|</?\w+[^>]*>", " ", source)


def stated_minutes(source):
    """Return the minutes that a chapter states, sitting by sitting."""
    total, *minutes_by_sitting = [int(number) for number in STATED_MINUTES.search(source).groups() if number]
    if minutes_by_sitting and sum(minutes_by_sitting) != total:
        raise ValueError(f"the sittings must add up to {total} minutes, got {minutes_by_sitting}")
    return minutes_by_sitting or [total]


def stated_core(source):
    """Return the minutes that a chapter states for its core."""
    return int(STATED_CORE_MINUTES.search(source)[1])


def main():
    for path in chapters():
        notebook = nbformat.read(path, 4)
        first_text, computed = notebook.cells[0].source, [round(minutes(cells)) for cells in sittings(notebook)]
        core = f"core: states {stated_core(first_text)}, computed {round(core_minutes(notebook))}"
        stated, text = stated_minutes(first_text), text_minutes(notebook.cells)
        print(f"{path.stem:24} states {stated}, computed {computed}; {core}; text {text:.0f}")


if __name__ == "__main__":
    main()
