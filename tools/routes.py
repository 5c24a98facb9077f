"""Routes through the course: their sections, their minutes, and whether earlier sections prepare each section.

    python tools/routes.py            write the tables of the routes' pages
    python tools/routes.py --check    complain about outdated tables and about holes

A route has a hole where a section uses a term of the glossary, or a name of the package, that the route has not
introduced yet. A section introduces a term if the term's glossary entry links to the section. It introduces a name if
no earlier section of the course uses the name, or if the section's own prose mentions the name.

The whole course is also a route. Its readers may skip the further sections: if only a further section introduces a
term, a later core section that uses the term has a hole.
"""

import argparse
import re
import sys
from dataclasses import dataclass
from functools import cache

import nbformat

import reading_times
from notebooks import ROOT, chapters

CHAPTERS = ROOT / "chapters"
TABLES = re.compile(r"(?ms)^(<!-- route: (.+?) -->\n).*?(?=^<!-- end -->)")
EXPLAINED_TERM = re.compile(r"(?m)^- \*\*(.+?)\*\*")  # terms that the page of a route itself explains
PACKAGE_NAME = re.compile(r"\btl\.(?!labs|checks|drawings|show|device|measure|progress_bar)(\w+)")
EVERYDAY_TERMS = {"memory", "norm", "state"}  # terms with a second meaning, which is not in the glossary
SUMMARIES = ("In one table", "Check yourself")  # sections about a whole chapter, with its further sections


@dataclass(frozen=True)
class Route:
    """A route: its page, the chapters that its readers already know, and the words that its sections announce."""

    page: str
    known_chapters: str = ""
    announced: tuple = ()  # (section, word) pairs: the section announces the word, which comes later on the route
    # whether readers skip further sections; then a word that only a later section introduces is no hole
    skips_further: bool = False

    @property
    def path(self):
        return CHAPTERS / f"{self.page}.md"

    @property
    def stops(self):
        """Return the numbers of the sections, in order."""
        return [number for mark in _marks(self) for number in _section_numbers(mark)]

    @property
    def sections_and_exercises(self):
        """Return the sections and exercises in order: ("section", number) or ("exercise", number)."""
        for mark in _marks(self):
            yield from (("section", number) for number in _section_numbers(mark))
            yield from (("exercise", number) for number in _exercises(mark))


ROUTES = (
    Route("afternoon", announced=(("3.7", "output projection"), ("2.1", "broadcast"))),
    Route("whole", announced=(("7.13", "tl.activation_bytes"),), skips_further=True),
    Route(
        "today",
        "1 2 3 4 5 6 7 8",
        (("7.1", "SwiGLU"), ("7.2", "rotary positions"), ("8.9", "expert"), ("9.1", "QK-norm")),
    ),
)


def _section_numbers(mark):
    """Return the sections in a mark such as ``3.1 3.2 + softmax``: the numbers before the plus sign.

    The mark ``chapter 3`` means the chapter's core and all exercises of its assignment.
    """
    if chapter := _chapter(mark):
        return [number for number in sections() if _is_in(number, chapter) and not _is_further(number)]
    return mark.split(" + ")[0].split()


def _exercises(mark):
    if chapter := _chapter(mark):
        return [number for number in exercises() if _is_in(number, chapter)]
    numbers = {heading.split("`")[1]: number for number, (_, heading, _) in exercises().items()}
    names = mark.partition(" + ")[2].split()
    if unknown := [name for name in names if name not in numbers]:
        sys.exit(f"A route must name exercises of the assignments, got {', '.join(unknown)}.")
    return [numbers[name] for name in names]


def _chapter(mark):
    return mark.removeprefix("chapter ") if mark.startswith("chapter ") else None


def _is_in(number, chapter):
    return number.split(".")[0] == chapter


def _minutes(number):
    return round(reading_times.minutes(sections()[number][2]))


def _is_further(number):
    return reading_times.is_further(sections()[number][2])


@cache
def sections():
    """Return ``{number: (stem of the chapter's file, heading, cells)}`` for all sections."""
    by_number = {}
    for path in chapters():
        number = None
        for cell in nbformat.read(path, 4).cells:
            heading = re.match(r"## (?:(\d+\.\d+) )?(.*)", cell.source) if cell.cell_type == "markdown" else None
            if heading:
                number = heading[1]
                if number:
                    by_number[number] = (path.stem, heading[2], [])
            if number:
                by_number[number][2].append(cell)
    return by_number


@cache
def terms():
    """Return the terms of the glossary, each with the sections that explain the term."""
    entries = re.split(r"(?m)^### ", (CHAPTERS / "glossary.md").read_text("utf-8"))[1:]
    by_term = {
        term: set(re.findall(r"\[(\d+\.\d+)\]\(", entry))
        for entry in entries
        for term in entry.splitlines()[0].split(", ")
    }
    return {term: explained_in for term, explained_in in by_term.items() if explained_in and term not in EVERYDAY_TERMS}


def _text(cells):
    return "\n".join(reading_times._visible_text(cell.source) for cell in cells if cell.cell_type == "markdown")


def _names(cells):
    return {name for cell in cells for name in PACKAGE_NAME.findall(cell.source)}


@cache
def introductions():
    """Return, for each name of the package, the first section that uses the name."""
    first_section = {}
    for number, (_, _, cells) in sections().items():
        for name in _names(cells):
            first_section.setdefault(name, number)
    return first_section


def holes(route):
    """Return words used before the route introduces them: (section, word, section that introduces the word)."""
    order = [*sections()]
    seen = {number for number in sections() if number.split(".")[0] in route.known_chapters.split()}
    mentioned = set()
    explained_terms = {term.lower() for term in EXPLAINED_TERM.findall(route.path.read_text("utf-8"))}
    for number in route.stops:
        seen.add(number)
        _, heading, cells = sections()[number]
        if route.skips_further and heading in SUMMARIES:
            continue
        earlier = set(order[: order.index(number) + 1]) if route.skips_further else set(order)
        for term, explained_in in terms().items():
            word = re.escape(term.split(" (")[0]).replace(r"\ ", r"\s+")
            is_known = explained_in & seen or term.lower() in explained_terms or (number, term) in route.announced
            if not is_known and explained_in & earlier and re.search(rf"(?i)\b{word}s?\b", _text(cells)):
                yield number, term, " ".join(sorted(explained_in))
        mentioned |= set(PACKAGE_NAME.findall(_text(cells)))
        for name in _names(cells) - mentioned:
            is_known = introductions()[name] in seen or (number, f"tl.{name}") in route.announced
            if not is_known and introductions()[name] in earlier:
                yield number, f"tl.{name}", introductions()[name]


def heading(kind, number):
    """Return the heading of a section or exercise without the number."""
    return {"section": sections, "exercise": exercises}[kind]()[number][1]


# The tables


@cache
def exercises():
    """Return ``{number: (stem of the assignment's file, heading, minutes)}`` for the exercises of all assignments."""
    by_number = {}
    for path in sorted((CHAPTERS / "assignments").glob("[01]*.ipynb")):
        for cell in nbformat.read(path, 4).cells:
            task = re.match(r"## (\d+\.\d+) (.*)\n\n[★☆]+ · (\d+) minutes", cell.source)
            if task:
                by_number[task[1]] = (path.stem, task[2], int(task[3]))
    return by_number


def _link(folder, stem, number, heading):
    anchor = re.sub(r"[^\w\- ]", "", f"{number} {heading}".lower()).replace(" ", "-")
    return f"[{number} {heading}]({folder}{stem}.ipynb#{anchor})"


def _shown_sections(mark):
    """Return the sections that a table lists. For a whole chapter, these are its core and its further sections."""
    if chapter := _chapter(mark):
        return [number for number in sections() if _is_in(number, chapter)]
    return _section_numbers(mark)


def _row(number):
    stem, heading, _ = sections()[number]
    further = " · *further*" if _is_further(number) else ""
    return _link("", stem, number, heading) + further, _minutes(number)


def _opening_rows(mark):
    """Yield the row, if any, for the lab and questions before a chapter's first section."""
    for path in chapters():
        if path.stem.split("_")[0].lstrip("0") == _chapter(mark):
            cells = nbformat.read(path, 4).cells
            first_section = next(i for i, cell in enumerate(cells) if re.match(r"## \d", cell.source))
            yield (
                f"[Try it, and predict]({path.name}#try-it-first)",
                round(reading_times.minutes(cells[:first_section])),
            )


def table(mark):
    """Return a table of a mark's sections and then its exercises, each with its minutes."""
    rows = [*_opening_rows(mark), *map(_row, _shown_sections(mark))]
    rows += [
        (f"Exercise {_link('assignments/', stem, number, heading)}", minutes)
        for number in _exercises(mark)
        for stem, heading, minutes in [exercises()[number]]
    ]
    lines = [f"| {title} | {minutes} |" for title, minutes in rows]
    return "\n".join(["", "| section | minutes |", "|---|---|", *lines, ""]) + "\n"


def _marks(route):
    return [mark for _, mark in TABLES.findall(route.path.read_text("utf-8"))]


def minutes(route):
    """Return the minutes for the route's reading, labs and questions, and the minutes for its exercises."""
    marks = _marks(route)
    reading = sum(_minutes(number) for number in route.stops) + sum(m for mark in marks for _, m in _opening_rows(mark))
    return reading, sum(exercises()[number][2] for mark in marks for number in _exercises(mark))


def _duration_line(route):
    """Return the line of a route's page that says how long the route takes."""
    reading, writing = minutes(route)
    shown = [number for mark in _marks(route) for number in _shown_sections(mark)]
    further = sum(_minutes(number) for number in shown if number not in route.stops)
    purpose = "to read the core" if further else "to read"
    further_text = f" · {_duration(further)} more for the further sections" if further else ""
    return f"{_duration(reading)} {purpose}, with labs and questions{further_text} · {_duration(writing)} of exercises"


def _duration(minutes):
    return f"{minutes} minutes" if minutes < 300 else f"{round(minutes / 60)} hours"


def page(route):
    """Return the page of a route with up-to-date tables and minutes."""
    stated = _duration_line(route)
    text = re.sub(r"(?m)^\d+ \w+ to read.*", stated, route.path.read_text("utf-8"))
    return TABLES.sub(lambda mark: mark[1] + table(mark[2]), text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, and list complaints")
    check = parser.parse_args().check
    complaints = []
    for route in ROUTES:
        if check and page(route) != route.path.read_text("utf-8"):
            complaints.append(f"{route.path.name}: its tables are out of date: run tools/routes.py")
        elif not check:
            route.path.write_text(page(route), "utf-8")
        complaints += [
            f"{route.path.name}: {section} uses {word!r} before the route introduces it; the course introduces it in "
            f"{where}"
            for section, word, where in holes(route)
        ]
        reading, writing = minutes(route)
        text = sum(reading_times.text_minutes(sections()[number][2]) for number in route.stops)
        times = f"{reading} minutes, {text:.0f} of them text; exercises: {writing} minutes"
        print(f"{route.page}: {len(route.stops)} sections, {times}.")
    if complaints:
        sys.exit("\n".join(complaints))


if __name__ == "__main__":
    main()
