"""The pages beside the chapters say what the chapters say: times, needs, axis words, references, sections."""

import re

import nbformat
import pytest
import yaml
from notebooks import ROOT

import transformer_lab as tl

CHAPTERS = sorted((ROOT / "chapters").glob("0*.ipynb"))
PROJECT = ROOT / "chapters" / "09_project.ipynb"  # which has an assignment, and no chapter
NAMES = ("index", "glossary", "notes", "teach", "references")
PAGES = {name: (ROOT / "chapters" / f"{name}.md").read_text("utf-8") for name in NAMES}
LINK = re.compile(r"\]\(([^)\s]+)\)")


def markdown(path):
    return [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown"]


def assignment_of(path):
    return ROOT / "chapters" / "assignments" / path.name


def points(path):
    """What the checks of a chapter's assignment give."""
    cells = nbformat.read(assignment_of(path), 4).cells
    return sum(cell.metadata.get("nbgrader", {}).get("points", 0) for cell in cells)


def test_the_book_has_every_chapter_and_every_page():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    files = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
    chapters = [path.stem for path in CHAPTERS]
    assignments, solutions = (
        [f"{kind}/{name}" for name in [*chapters, "09_project"]] for kind in ("assignments", "solutions")
    )
    assert files == [*chapters, *assignments, "glossary", "notes", "teach", "references", *solutions]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_syllabus_agrees_with_the_chapters_own_first_lines(path):
    first = markdown(path)[0]
    title = re.match(r"# (\d) · (.+)\n", first)
    minutes, needs = re.search(r"\b[Aa]bout (\d+) minutes · needs: (.+)\n", first).groups()
    row = next(line for line in PAGES["index"].splitlines() if f"]({path.name})" in line)
    _, link, question, row_minutes, row_needs, _ = (cell.strip() for cell in row.split("|"))
    assert link == f"[{title[1]} {title[2]}]({path.name})"
    assert question.endswith("?")
    assert row_minutes == minutes
    assert re.findall(r"\d", row_needs) == re.findall(r"\d", needs)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_plan_for_a_class_agrees_with_chapter_and_assignment(path):
    minutes = [re.search(r"[Aa]bout (\d+) minutes", markdown(file)[0])[1] for file in (path, assignment_of(path))]
    title = re.match(r"# \d · (.+)\n", markdown(path)[0])[1]
    row = next(line for line in PAGES["teach"].splitlines() if f"]({path.name})" in line)
    assert row == f"| [{path.name[1]} {title}]({path.name}) | {' | '.join(minutes)} | {points(path)} |"


def test_the_points_for_a_class_add_up():
    assert f"the stars of the functions, {sum(map(points, CHAPTERS))} in the eight assignments" in PAGES["teach"]
    assert f"worth {points(PROJECT)} points" in re.sub(r"\s+", " ", PAGES["teach"])


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_leads_to_its_assignment_at_its_beginning_and_its_end(path):
    cells = markdown(path)
    link = f"](assignments/{path.name})"
    assert link in cells[0]
    assert any(link in source for source in cells[1:])
    assert link in PAGES["index"]


def test_the_glossary_has_the_axis_words_of_the_package_in_their_order():
    words = re.findall(r"(?m)^(\w+) +(?:[a-z])", tl.__doc__.split("=\n")[2])
    table = PAGES["glossary"].split("## Terms")[0]
    assert re.findall(r"(?m)^\| `(\w+)` \|", table) == words and len(words) == 9


def test_the_glossarys_terms_are_sorted_and_each_leads_to_a_section():
    entries = PAGES["glossary"].split("## Terms")[1].split("\n### ")[1:]
    terms = [entry.splitlines()[0] for entry in entries]
    assert terms == sorted(terms, key=str.lower) and len(terms) > 50
    for entry in entries:
        assert LINK.search(entry), f"{entry.splitlines()[0]} leads nowhere"


@pytest.mark.parametrize("name", PAGES)
def test_a_link_to_a_section_names_the_section(name):
    """The book's build finds a link to a section that is not there; here, one whose number is not that section's."""
    links = re.findall(r"\[(\d\.\d+)\]\((0\d_\w+\.ipynb)#([\w-]+)\)", PAGES[name])
    for number, file, anchor in links:
        assert file[1] == number[0] and anchor.startswith(number.replace(".", "") + "-")


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_references_have_all_that_a_chapter_cites(path):
    cited = next(source for source in markdown(path) if source.startswith("## References"))
    lines = re.sub(r"\n {2,}", " ", PAGES["references"]).splitlines()
    for link in LINK.findall(cited):
        line = next((line for line in lines if f"({link})" in line), None)
        assert line, f"{link} is missing"
        assert path.name[1] in re.search(r"\(([\d, ]+)\)$", line)[1], f"{link}: chapter {path.name[1]} is not named"


def test_every_note_of_the_five_has_its_section():
    assert re.findall(r"(?m)^## Note (\d+):", PAGES["notes"]) == ["000", "001", "002", "003", "004"]
