"""Pages such as the glossary must agree with the chapters in times, prerequisites, axis names and references."""

import json
import re
import runpy
from functools import partial
from shutil import copy, copytree

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import assignments
import notebook_rules
import notebooks
import repository
import routes
import transformer_lab as tl
from notebooks import ROOT
from reading_times import core_minutes, minutes, sittings, stated_core, stated_minutes

PROJECT = "project"  # the project has an assignment, but no chapter
PAGE_FILES = [
    "index.ipynb",
    "afternoon.md",
    "today.md",
    "whole.md",
    "practice.ipynb",
    "record.md",
    "museum.md",
    "audit.ipynb",
    "next.md",
    "how.md",
    "glossary.md",
    "remember.md",
    "api.md",
    "notes.md",
    "teach.md",
    "references.md",
]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def markdown_cells(path):
    return [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown"]


def read_page(path):
    return "\n\n".join(markdown_cells(path)) if path.suffix == ".ipynb" else path.read_text("utf-8")


def read_pages(root):
    return {file.split(".")[0]: read_page(root / "chapters" / file) for file in PAGE_FILES}


CHAPTERS, PAGES = notebooks.chapters(ROOT), read_pages(ROOT)
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def number_of(file):
    """Return the number of a chapter, from the name of its file."""
    return int(str(file).split("/")[-1].split("_")[0])


def file_of_page(page):
    return next(f"chapters/{file}" for file in PAGE_FILES if file.startswith(f"{page}."))


def row(page, path, prefix="|"):
    """Return the only row that links to a chapter, from a page's table or list."""
    rows = [line for line in PAGES[page].splitlines() if line.startswith(prefix) and f"]({path.name})" in line]
    kind = {"|": "table", "-": "list"}[prefix]
    assert len(rows) == 1, f"{file_of_page(page)}: the {kind} must have one row for {path.name}, has {len(rows)}"
    return rows[0]


def table(name):
    """Return the table with this name in ``book/you_are_here.py``."""
    return runpy.run_path(str(ROOT / "book" / "you_are_here.py"))[name]


def assignment_of(path):
    return path.parent / "assignments" / path.name


def points(path):
    """Return the total number of points for the checks in a chapter's assignment."""
    cells = nbformat.read(assignment_of(path), 4).cells
    return sum(cell.metadata.get("nbgrader", {}).get("points", 0) for cell in cells)


def test_the_book_has_every_chapter_and_every_page():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    files = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
    names = [path.stem for path in CHAPTERS]
    assignments, solutions = ([f"{kind}/{name}" for name in [*names, PROJECT]] for kind in ("assignments", "solutions"))
    pages = ["how", "glossary", "remember", "api", "notes", "teach", "references"]
    routes, others = ["afternoon", "whole", "today"], ["practice", "record", "museum", "audit", "next"]
    expected = [*routes, *names, *others, *assignments, *pages, *solutions]
    missing = [file for file in expected if file not in files]
    assert not missing, f"_toc.yml: must name {', '.join(missing)}"
    assert files == expected, "_toc.yml: must name chapters, assignments, pages and solutions, each in order"


@each_chapter
def test_the_syllabus_agrees_with_the_chapters_own_first_lines(path):
    first = markdown_cells(path)[0]
    title = re.match(r"# (\d+) · (.+)\n", first)
    needs = re.search(r"\b[Aa]bout \d+ minutes.* · needs: (.+)\n", first)[1]
    _, link, row_minutes, row_core, row_needs, assignment, _ = (cell.strip() for cell in row("index", path).split("|"))
    assert link == f"[{title[1]} {title[2]}]({path.name})"
    assert row_minutes == " + ".join(map(str, stated_minutes(first)))
    assert row_core == str(stated_core(first))
    assert re.findall(r"\d+", row_needs) == re.findall(r"\d+", needs)
    assert assignment == f"[assignment {title[1]}](assignments/{path.name})"


@each_chapter
def test_a_chapter_takes_as_long_as_it_says(path):
    """A sitting's stated time differs by at most a quarter from the time that ``tools/reading_times.py`` computes."""
    notebook = nbformat.read(path, 4)
    claimed, computed = stated_minutes(notebook.cells[0].source), list(map(minutes, sittings(notebook)))
    assert len(claimed) == len(computed)
    for claimed_minutes, computed_minutes in zip(claimed, computed):
        assert 0.75 * computed_minutes <= claimed_minutes <= 1.25 * computed_minutes, (
            f"{path.stem}: states {claimed} minutes, but takes {computed}"
        )
    core = core_minutes(notebook)
    assert 0.9 * core <= stated_core(notebook.cells[0].source) <= min(1.1 * core, sum(claimed)), (
        f"{path.stem}: {core:.0f}"
    )


def test_a_minute_is_150_words_or_seven_and_a_half_lines_of_code():
    def code_cell(lines, **metadata):
        return new_code_cell("\n\n".join(["x = 1"] * lines), metadata=metadata)

    assert minutes([new_markdown_cell("## Two [words](where.md#they-stand)" + " – word" * 148)]) == 1
    assert minutes([code_cell(15), code_cell(8, tags=["hide-input"])]) == 2
    option = "<details><summary>{}. Perhaps</summary>\n\n</details>\n"
    assert minutes([new_markdown_cell(option.format("A") + option.format("B"))]) == pytest.approx(1 + 4 / 150)
    lab = code_cell(9, tags=["remove-input"])
    lab.outputs = [new_output("execute_result", {"text/plain": "MaskLab(preset='causal')"})]
    assert minutes([lab]) == 3


@each_chapter
def test_every_chapter_has_a_card_with_its_question_and_a_picture(path):
    title = re.match(r"# (\d+) · (.+)\n", markdown_cells(path)[0])
    card = row("index", path, "-")
    assert re.fullmatch(rf"- \[{title[1]} {re.escape(title[2])}\]\({path.name}\)<br>[^?]+\?", card), card
    assert (ROOT / "book" / "thumbnails" / f"{path.stem}.svg").exists(), f"book/thumbnails: must have {path.stem}.svg"


@each_chapter
def test_every_chapter_has_its_place_in_the_drawing(path):
    assert path.stem in table("PLACES"), f"book/you_are_here.py: PLACES must have a row for {path.stem}"


@each_chapter
def test_the_page_of_the_course_has_every_chapter(path):
    title = re.match(r"# (\d+) · (.+)\n", markdown_cells(path)[0])
    part = rf"(?m)^## {title[1]} {re.escape(title[2])}\n[^#]*^<!-- route: chapter {title[1]} -->$"
    assert re.search(part, PAGES["whole"]), f"chapters/whole.md: must have a part for {path.stem}"


@each_chapter
def test_every_chapter_has_a_title_and_a_description_for_search_engines(path):
    pages = runpy.run_path(str(ROOT / "book" / "descriptions.py"))["TITLES_AND_DESCRIPTIONS"]
    assert path.stem in pages, f"book/descriptions.py: TITLES_AND_DESCRIPTIONS must have a row for {path.stem}"
    title, description = pages[path.stem]
    assert 20 <= len(title) <= 65 and 100 <= len(description) <= 160, (
        f"book/descriptions.py: {path.stem}: its title or description is too short or too long"
    )


def test_the_front_page_has_the_total_time():
    minutes = sum(sum(stated_minutes(markdown_cells(path)[0])) for path in CHAPTERS)
    afternoon = sum(routes.minutes(routes.ROUTES[0]))
    match = re.search(r"About (\d+) hours for attention, about (\d+) hours for all chapters", PAGES["index"])
    assert match.groups() == (str(round(afternoon / 60)), str(round(minutes / 60)))


@each_chapter
def test_the_plan_for_a_class_agrees_with_chapter_and_assignment(path):
    minutes = [" + ".join(map(str, stated_minutes(markdown_cells(file)[0]))) for file in (path, assignment_of(path))]
    title = re.match(r"# \d+ · (.+)\n", markdown_cells(path)[0])[1]
    expected = f"| [{number_of(path)} {title}]({path.name}) | {' | '.join(minutes)} | {points(path)} |"
    assert row("teach", path) == expected, f"chapters/teach.md: the row for {path.name} must be {expected}"


def test_the_points_for_a_class_add_up():
    text = re.sub(r"\s+", " ", PAGES["teach"])
    for words in (
        f"one for each star, {sum(map(points, CHAPTERS))} in the chapters' assignments",
        f"worth {points(CHAPTERS[0].with_stem(PROJECT))} points",
    ):
        assert words in text, f"chapters/teach.md: must say {words!r}"


@each_chapter
def test_a_chapter_leads_to_its_assignment_at_its_beginning_and_its_end(path):
    cells = markdown_cells(path)
    link = f"](assignments/{path.name})"
    assert link in cells[0]
    assert any(link in source for source in cells[1:])


def test_the_glossary_has_the_axis_words_of_the_package_in_their_order():
    words = re.findall(r"(?m)^(\w+) +(?:[a-z])", tl.__doc__.split("=\n")[2])
    table = PAGES["glossary"].split("## Terms")[0]
    assert re.findall(r"(?m)^\| `(\w+)` \|", table) == words and len(words) == 9


def test_the_glossarys_terms_are_sorted_and_each_leads_to_a_section():
    entries = PAGES["glossary"].split("## Terms")[1].split("\n### ")[1:]
    terms = [entry.splitlines()[0] for entry in entries]
    assert terms == sorted(terms, key=str.lower) and len(terms) > 50
    for entry in entries:
        assert LINK.search(entry), f"{entry.splitlines()[0]} must link to a section"


@pytest.mark.parametrize("name", PAGES)
def test_a_link_to_a_section_names_the_section(name):
    """The build finds links to missing sections; this test finds links with a wrong section number."""
    links = re.findall(r"\[(\d+)\.(\d+)\]\((\d+_\w+\.ipynb)#(heading=)?([^)]+)\)", PAGES[name])
    assert links or name not in ("glossary", "notes")
    for chapter, section, file, as_jupyter, anchor in links:
        dot = "." if as_jupyter else ""
        assert number_of(file) == int(chapter) and anchor.startswith(f"{chapter}{dot}{section}-")


def sections(root):
    """Return ``{address: text and code}`` for every section of every chapter."""
    text_by_address, address = {}, None
    for path in notebooks.chapters(root):
        for cell in nbformat.read(path, 4).cells:
            for part in re.split(r"(?m)^(?=## )", cell.source) if cell.cell_type == "markdown" else [cell.source]:
                if heading := re.match(r"## (.+)", part):
                    address = f"{path.name}#{anchor(heading[1])}"
                    text_by_address[address] = ""
                if address and address.startswith(path.name):
                    text_by_address[address] += f"{part}\n"
    return text_by_address


def anchor(heading):
    """Return a heading's anchor, which is the same in the book and on GitHub."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def letters_only(words):
    """Return words in lower case without spaces or punctuation: a term may be a name, as in `MultiHeadAttention`."""
    return re.sub(r"[\W_]", "", words.lower())


@pytest.mark.parametrize("name", ["next", "glossary", "notes", "teach", "how", "references"])
def test_links_to_sections_are_valid(name):
    addresses = sections(ROOT)
    links = [link for link in LINK.findall(PAGES[name]) if re.match(r"\d\d_\w+\.ipynb#", link)]
    assert [link for link in links if link not in addresses] == []
    assert links or name not in ("next", "glossary", "notes")


def test_a_term_occurs_in_the_sections_that_the_glossary_names():
    axis_words, terms = PAGES["glossary"].split("## Terms")
    entries = [(row.split("`")[1], row) for row in axis_words.splitlines() if row.startswith("| `")]
    entries += [(entry.splitlines()[0], entry) for entry in terms.split("\n### ")[1:]]
    text_by_address = sections(ROOT)
    missing = [
        f"{term} in {link}"
        for title, entry in entries
        for link in LINK.findall(entry)
        for term in title.split(", ")
        if letters_only(term) not in letters_only(text_by_address.get(link, ""))
    ]
    assert missing == []


@each_chapter
def test_the_references_have_all_that_a_chapter_cites(path):
    references = markdown_cells(path)[-1]
    assert references.startswith("## References"), f"{path.name}: the last cell must hold the references"
    lines = re.sub(r"\n {2,}", " ", PAGES["references"]).splitlines()
    for link in LINK.findall(references):
        line = next((line for line in lines if f"({link})" in line), None)
        assert line, f"chapters/references.md: {link} is missing"
        chapters_of_reference = re.search(r"\(([\d, ]+)\)$", line)[1].split(", ")
        assert str(number_of(path)) in chapters_of_reference, (
            f"chapters/references.md: {link} must name chapter {number_of(path)}"
        )


def test_each_of_the_five_notes_has_a_section():
    assert re.findall(r"(?m)^## Note (\d+):", PAGES["notes"]) == ["000", "001", "002", "003", "004"]


# Another chapter

FIRST_CELL = "# {name} · Sample\n\nAbout 5 minutes{core} · needs: {needs}"
LINK_TO_ASSIGNMENT = "[Write it yourself](assignments/99_sample.ipynb)."
PAPER = "https://example.org/paper"


def cell_with_lab(source):
    output = new_output("execute_result", {"text/plain": "MaskLab(preset='causal')"})
    return new_code_cell(source, metadata={"tags": ["remove-input"]}, outputs=[output])


CHAPTER = [
    new_markdown_cell(
        f"{FIRST_CELL.format(name=99, core=', 4 of them core', needs='chapter 1')}\n\n{LINK_TO_ASSIGNMENT}"
    ),
    new_code_cell(repository.first_cell(None)),
    new_markdown_cell("## Try it first"),
    cell_with_lab("lab"),
    new_markdown_cell(f"## Predict first\n\n{LINK_TO_ASSIGNMENT}"),
    cell_with_lab("another_lab"),
    new_markdown_cell(f"## References\n\n- Ada, [A paper]({PAPER})"),
]
COURSE = {"ch99_sample": ["softmax", "attention_weights"]}
FUNCTION = "def {name}(x):\n    ### BEGIN SOLUTION\n    return x.softmax(-1)\n    ### END SOLUTION"


def task(name, check):
    """Return the three cells of a task in a solution; the tool has not yet inserted texts such as the hints."""
    return [
        new_markdown_cell(f"## `{name}`\n\n★★☆ · 5 minutes\n\n{{hints {name}}}"),
        new_code_cell(FUNCTION.format(name=name)),
        new_code_cell(check),
    ]


SOLUTION = [
    new_markdown_cell(
        f"{FIRST_CELL.format(name='Assignment 99', core='', needs='[chapter 99](../99_sample.ipynb)')}\n\n"
        "You write nine functions, from `this` to `that`."
    ),
    new_code_cell(repository.first_cell(None)),
    *task("softmax", "tl.checks.softmax(softmax)"),
    *task("attention_weights", "tl.checks.attention_weights(attention_weights)"),
    *task("test_attention_weights", "tl.checks.hunt(tl.checks.attention_weights, test_attention_weights)"),
]


def rows_of_a_new_chapter(last):
    """Return the rows that a new last chapter needs, as ``{file: [(text before the row, row)]}``."""
    return {
        "_toc.yml": [
            (f"- file: {folder}{last.stem}\n", f"      - file: {folder}99_sample\n")
            for folder in ("", "assignments/", "solutions/")
        ],
        "chapters/index.ipynb": [
            (
                row("index", last),
                "\n| [99 Sample](99_sample.ipynb) | 5 | 4 | 1 | [assignment 99](assignments/99_sample.ipynb) |",
            ),
            (row("index", last, "-"), "\n- [99 Sample](99_sample.ipynb)<br>Does it fit?"),
        ],
        "book/you_are_here.py": [("PLACES = {\n", '    "99_sample": ("a sample", ("linear",)),\n')],
        "book/descriptions.py": [
            (
                "TITLES_AND_DESCRIPTIONS = {\n",
                f'    "99_sample": ("A sample of a chapter", "{"A chapter that fits. " * 6}"),\n',
            )
        ],
        "chapters/whole.md": [
            (f"<!-- route: chapter {number_of(last)} -->\n", "<!-- end -->\n## 99 Sample\n<!-- route: chapter 99 -->\n")
        ],
        "chapters/teach.md": [(f"{row('teach', last)}\n", "| [99 Sample](99_sample.ipynb) | 5 | 15 | 6 |\n")],
        "chapters/references.md": [("## The Transformer\n\n", f"- Ada, [A paper]({PAPER}). (99)\n")],
    }


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Return a copy of the course with one more chapter and assignment; the copy has no address."""
    for folder in ("chapters", "book"):
        copytree(ROOT / folder, tmp_path / folder)
    for name in ("_toc.yml", "_config.yml", "CITATION.cff", "README.md"):
        copy(ROOT / name, tmp_path)
    for path, text in repository.changes(None, tmp_path).items():
        path.write_text(text, "utf-8")
    for name, cells in {"99_sample": CHAPTER, "solutions/99_sample": SOLUTION}.items():
        notebook = notebooks.canonical(new_notebook(cells=cells))
        (tmp_path / "chapters" / f"{name}.ipynb").write_text(notebooks.text(notebook), "utf-8")
    tasks_by_folder = {folder: [*names, "test_attention_weights"] for folder, names in COURSE.items()}
    monkeypatch.setattr(assignments, "COURSE", COURSE)
    monkeypatch.setattr(assignments, "TASKS", {name: folder for folder in COURSE for name in tasks_by_folder[folder]})
    monkeypatch.setattr(assignments, "tasks", tasks_by_folder.get)
    copy(
        tmp_path / "book" / "thumbnails" / f"{CHAPTERS[-1].stem}.svg",
        tmp_path / "book" / "thumbnails" / "99_sample.svg",
    )
    for path, text in assignments.files_from(tmp_path / "chapters" / "solutions" / "99_sample.ipynb").items():
        path.write_text(text, "utf-8")
    monkeypatch.setattr(notebook_rules, "stored_address", lambda: None)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    return tmp_path


def complaints(course, monkeypatch):
    """Run some of the tests above on a copy of the course; yield the first line of each failure."""
    monkeypatch.setitem(globals(), "CHAPTERS", notebooks.chapters(course))
    monkeypatch.setitem(globals(), "PAGES", read_pages(course))
    tests_of_course = [test_the_book_has_every_chapter_and_every_page, test_the_points_for_a_class_add_up]
    tests_of_chapters = [
        test_the_syllabus_agrees_with_the_chapters_own_first_lines,
        test_every_chapter_has_a_card_with_its_question_and_a_picture,
        test_every_chapter_has_its_place_in_the_drawing,
        test_the_page_of_the_course_has_every_chapter,
        test_every_chapter_has_a_title_and_a_description_for_search_engines,
        test_the_plan_for_a_class_agrees_with_chapter_and_assignment,
        test_a_chapter_leads_to_its_assignment_at_its_beginning_and_its_end,
        test_the_references_have_all_that_a_chapter_cites,
    ]
    for test in [*tests_of_course, *(partial(test, path) for test in tests_of_chapters for path in CHAPTERS)]:
        try:
            test()
        except AssertionError as error:
            yield str(error).splitlines()[0]


def test_a_new_chapter_needs_the_rows_that_tests_name(course, monkeypatch):
    for path in course.glob("chapters/**/99_sample.ipynb"):
        assert notebooks.check(path) == notebook_rules.complaints(path) == []
    assert repository.changes(None, course) == {}
    assignment = (course / "chapters" / "assignments" / "99_sample.ipynb").read_text("utf-8")
    assert '"metadata": {\n  "generated_from": "solutions/99_sample.ipynb, by make notebooks",\n' in assignment
    assert (
        "About 15 minutes" in assignment
        and "You write two functions, from `softmax` to `attention_weights`." in assignment
    )
    assert re.findall(r"## [\d.]+ `\w+`", assignment)[-1] == "## 99.3 `test_attention_weights`"
    sentences = list(complaints(course, monkeypatch))
    rows_by_file = rows_of_a_new_chapter(CHAPTERS[-2])
    assert {line.split(":")[0] for line in sentences} == rows_by_file.keys(), sentences
    for name, rows in rows_by_file.items():
        text = (course / name).read_text("utf-8")
        for text_before, new_row in rows:
            if name.endswith(".ipynb"):  # in notebooks, text is in JSON strings
                text_before, new_row = (json.dumps(words, ensure_ascii=False)[1:-1] for words in (text_before, new_row))
            assert text.count(text_before) == 1, text_before
            text = text.replace(text_before, text_before + new_row)
        text = re.sub(r"\d+(?= in the chapters' assignments)", str(sum(map(points, CHAPTERS))), text)
        (course / name).write_text(text, "utf-8")
    assert list(complaints(course, monkeypatch)) == []


def test_reserved_heights_match_the_pictures():
    pictures = json.loads((ROOT / "book" / "pictures" / "pictures.json").read_text("utf-8"))
    heights = {lab["file"]: (lab["height"], lab["rooms"]["desk"]) for labs in pictures.values() for lab in labs}
    assert {name: sizes for name, sizes in heights.items() if abs(sizes[0] - sizes[1]) > 2} == {}
