"""Every lesson keeps the rules, every rule can complain, and notebooks have one form."""

import base64
import re
import subprocess
import sys
from copy import deepcopy

import lessons
import nbformat
import notebooks
import pytest
import repository
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

CHAPTERS = notebooks.chapters()
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def test_there_are_chapters():
    assert len(CHAPTERS) >= 3


@each_chapter
@pytest.mark.parametrize("rule", lessons.RULES, ids=lambda rule: rule.__name__)
def test_every_lesson_keeps_the_rule(rule, path):
    assert list(rule(nbformat.read(path, 4), path)) == []


@each_chapter
def test_every_file_is_written_in_the_one_form(path):
    assert notebooks.check(path) == []


# The rules themselves

PATH = notebooks.ROOT / "chapters" / "00_sample.ipynb"
ADDRESS = repository.Address("ada/course", "main", "https://ada.github.io/course/")
DOT = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(12)).decode()  # a picture as far as the rules look


def sample(address=ADDRESS):
    """A lesson that keeps all rules, with every part that a rule looks at."""
    link = f"[Open in Colab]({address.colab('chapters/00_sample.ipynb')})" if address else "About 5 minutes"
    cells = [
        new_markdown_cell(f"# Sample\n\n{link}\n\n## Predict"),
        new_code_cell(repository.first_cell(address)),
        new_code_cell("print(6 * 7)", outputs=[new_output("stream", text="42\n")]),
        new_markdown_cell(
            "<details><summary>A. <code>6 * 7</code></summary>\n\n"
            "**Right.** Six sevens are forty-two, and so are seven sixes.\n\n</details>\n"
            "<details><summary>B. 41</summary>\n\n"
            "**No.** Six sevens are one more than forty-one: count them.\n\n</details>"
        ),
        new_code_cell(
            "figure = plot()",
            metadata={"mystnb": {"image": {"alt": "A line that climbs from left to right."}}},
            outputs=[new_output("display_data", {"image/png": DOT, "text/plain": "<Figure>"})],
        ),
        new_code_cell(
            "# NBVAL_IGNORE_OUTPUT\nstart = time.perf_counter()\nprint(time.perf_counter() - start)\nassert start > 0",
            outputs=[new_output("stream", text="0.1\n")],
        ),
        new_markdown_cell(
            "> [!NOTE]\n> Rows first: $a < b$, `<b>`, `{x}`.\n\n"
            "[Plan](index.md#plan)\n\n```text\n# + <b> just %\n```\n\n"
            + "\n".join(["A line of a list that goes on for the whole width of the page.", *["- An item of it."] * 50])
        ),
    ]
    return notebooks.canonical(new_notebook(cells=cells))


LAST, QUESTION, PICTURE, TIMED, PRINTED, INSTALLED = -1, 3, 4, 5, 2, 1


def said(source):
    """A spoiler: the lesson's text says this as well."""

    def spoil(notebook):
        notebook.cells[LAST].source += f"\n\n{source}\n"

    return spoil


def written(number, old, new):
    """A spoiler: in this cell, other words."""

    def spoil(notebook):
        assert old in notebook.cells[number].source
        notebook.cells[number].source = notebook.cells[number].source.replace(old, new)

    return spoil


def put_out(**output):
    """A spoiler: a cell puts out this."""

    def spoil(notebook):
        notebook.cells[PRINTED].outputs.append(new_output(**output))

    return spoil


def tagged(tag):
    return lambda notebook: notebook.cells[PRINTED].metadata.update(tags=[tag])


WIDGET = {notebooks.WIDGET: {"model_id": "1"}, "text/plain": "Lab()"}
SPOILED = [
    (lessons.is_valid, lambda notebook: notebook.cells[0].pop("source")),
    (lessons.is_valid, lambda notebook: notebook.cells[1].update(outputs=[{"output_type": "sound"}])),
    (lessons.is_canonical, lambda notebook: notebook.metadata.update(widgets={"state": {}})),
    (lessons.is_canonical, lambda notebook: notebook.metadata.language_info.update(version="3.11.7")),
    (lessons.is_canonical, lambda notebook: notebook.cells[PRINTED].metadata.update(execution={})),
    (lessons.is_canonical, lambda notebook: notebook.cells[PRINTED].update(execution_count=9)),
    (lessons.is_canonical, lambda notebook: notebook.cells[1].update(id=notebook.cells[0].id)),
    (lessons.is_canonical, put_out(output_type="display_data", data=WIDGET)),
    (lessons.is_canonical, put_out(output_type="display_data", data={"image/svg+xml": "<svg/>"})),
    (lessons.is_canonical, put_out(output_type="display_data", data={"text/plain": "<Lab object at 0x7f00>"})),
    (lessons.is_canonical, put_out(output_type="stream", name="stdout", text="in another chunk\n")),
    (lessons.is_canonical, put_out(output_type="stream", name="stderr", text="a warning\n")),
    (lessons.is_canonical, put_out(output_type="error", ename="ValueError", evalue="no", traceback=[])),
    (lessons.has_run, lambda notebook: notebook.cells[PRINTED].update(execution_count=None)),
    (lessons.has_run, lambda notebook: notebook.cells[PRINTED].update(execution_count=9)),
    (lessons.has_run, lambda notebook: notebook.cells[PRINTED].update(outputs=[])),
    (lessons.is_small, said("<br>" * 400_000)),
    (lessons.opens_in_colab, written(0, "00_sample", "01_sample")),
    (lessons.opens_in_colab, written(0, "/github/", "/github/somebody/")),
    (lessons.opens_in_colab, written(0, "[Open in Colab]", "")),
    (lessons.installs_the_package, written(INSTALLED, "github.com/", "github.com/somebody/")),
    (lessons.installs_the_package, written(INSTALLED, '"--quiet", ', "")),
    (lessons.installs_the_package, lambda notebook: notebook.cells.pop(INSTALLED)),
    (lessons.has_no_absolute_paths, said("It lies in /home/ada/course.")),
    (lessons.has_no_absolute_paths, put_out(output_type="stream", name="stdout", text="/usr/lib/python3/ast.py:7")),
    (lessons.links_lead_somewhere, said("[Next](77_nowhere.ipynb#here)")),
    (lessons.hides_only_times, written(TIMED, "time.perf_counter()", "now()")),
    (lessons.hides_only_times, written(TIMED, "assert start > 0", "")),
    (lessons.hides_only_times, written(PRINTED, "print", "# NBVAL_IGNORE_OUTPUT\nprint")),
    (lessons.hides_only_times, written(PRINTED, "print", "# NBVAL_SKIP\nprint")),
    (lessons.hides_only_times, written(PRINTED, "print", "# NBVAL_RAISES_EXCEPTION\nprint")),
    (lessons.hides_only_times, written(PRINTED, "print", "# PYTEST_VALIDATE_IGNORE_OUTPUT\nprint")),
    (lessons.hides_only_times, tagged("nbval-ignore-output")),
    (lessons.hides_only_times, tagged("nbval-skip")),
    (lessons.hides_only_times, tagged("raises-exception")),
    (lessons.ends_no_cell_in_a_semicolon, written(PRINTED, "print(6 * 7)", "print(6 * 7);  # quiet")),
    (lessons.has_plain_markdown, said("```{note}\nOnly in the book.\n```")),
    (lessons.has_plain_markdown, said(":::{note}\nOnly in the book.\n:::")),
    (lessons.has_plain_markdown, said("See {ref}`chapter`.")),
    (lessons.has_plain_markdown, said("% not for readers")),
    (lessons.has_plain_markdown, said("(a-label)=")),
    (lessons.has_plain_markdown, said("+++")),
    (lessons.has_little_html, said('<div class="box">')),
    (lessons.has_little_html, said("<script>")),
    (lessons.has_little_html, said("<!-- to do -->")),
    (lessons.has_little_html, said('<img src="a.png">')),
    (lessons.has_little_html, said('<code style="color: red">')),
    (lessons.calls_out_as_github_does, said("> [!HINT]\n> Look.")),
    (lessons.calls_out_as_github_does, said("> [!NOTE] Look.")),
    (lessons.calls_out_as_github_does, said("> **Note:** look.")),
    (lessons.calls_out_as_github_does, said("**Warning.** Look.")),
    (lessons.describes_its_pictures, lambda notebook: notebook.cells[PICTURE].metadata.clear()),
    (lessons.describes_its_pictures, lambda notebook: notebook.cells[PICTURE].outputs.append(picture())),
    (lessons.describes_its_pictures, said("![](lab.png)")),
    (lessons.has_short_paragraphs, said("A sentence of a paragraph without an end. " * 14)),
    (lessons.has_short_paragraphs, said("- " + "A sentence of an item without an end. " * 15)),
    (lessons.has_short_paragraphs, said("> [!NOTE]\n" + "> A sentence of a callout without an end.\n" * 14)),
    (lessons.does_not_belittle, said("Just add them.")),
    (lessons.does_not_belittle, said("It is simply a sum.")),
    (lessons.explains_every_option, written(QUESTION, "**No.**", "**Right.**")),
    (lessons.explains_every_option, written(QUESTION, "**Right.**", "**No.**")),
    (lessons.explains_every_option, written(QUESTION, "**No.** ", "")),
    (lessons.explains_every_option, written(QUESTION, "one more than forty-one: count them", "not")),
    (lessons.explains_every_option, written(QUESTION, "<summary>B. 41</summary>", "")),
    (lessons.explains_every_option, written(QUESTION, "B. 41", "C. 41")),
    (lessons.explains_every_option, written(QUESTION, "B. 41", "B. `41`")),
    (lessons.explains_every_option, written(QUESTION, "41</summary>\n", "41</summary>")),
    (lessons.has_ordered_headings, said("# Another")),
    (lessons.has_ordered_headings, said("#### Too deep")),
    (lessons.has_ordered_headings, written(0, "# Sample", "Sample")),
]


def picture():
    return new_output("display_data", {"image/png": DOT})


@pytest.mark.parametrize("address", [ADDRESS, None])
def test_the_sample_keeps_all_rules(address, monkeypatch):
    monkeypatch.setattr(lessons, "address", lambda: address)
    assert [complaint for rule in lessons.RULES for complaint in rule(sample(address), PATH)] == []


@pytest.mark.parametrize(
    "rule, spoil", SPOILED, ids=[f"{rule.__name__}-{number}" for number, (rule, _) in enumerate(SPOILED)]
)
def test_a_rule_complains_about_what_breaks_it(rule, spoil, monkeypatch):
    monkeypatch.setattr(lessons, "address", lambda: ADDRESS)
    spoiled = sample()
    spoil(spoiled)
    assert list(rule(spoiled, PATH)), "nothing was said"


@pytest.mark.parametrize("there, stored", [(ADDRESS, None), (None, ADDRESS)])
def test_a_lesson_of_the_other_state_breaks_two_rules(there, stored, monkeypatch):
    monkeypatch.setattr(lessons, "address", lambda: stored)
    broken = [rule for rule in lessons.RULES if list(rule(sample(there), PATH))]
    assert broken == [lessons.opens_in_colab, lessons.installs_the_package]


def test_every_rule_is_seen_to_complain():
    assert {rule for rule, _ in SPOILED} == set(lessons.RULES)


# The one form


def test_the_one_form_is_reached_in_one_step_and_keeps_what_is_read():
    notebook = sample()
    spoiled = deepcopy(notebook)
    spoiled.metadata.language_info.version = "3.11.7"
    spoiled.metadata.widgets = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    for cell in spoiled.cells:
        cell.metadata.update(execution={"shell.execute_reply": "2026-01-01"}, collapsed=True)
    # Cut up, and with a line that was written over, as a progress bar does.
    spoiled.cells[TIMED].outputs = [new_output("stream", text=text) for text in ("\r0.0", "\r0.", "1\n")]
    spoiled.cells[PRINTED].outputs.append(new_output("execute_result", WIDGET, execution_count=99))
    spoiled.cells[PRINTED].execution_count = 99
    notebook.cells[PRINTED].outputs.append(new_output("execute_result", {"text/plain": "Lab()"}, execution_count=2))
    assert notebooks.canonical(spoiled) == notebook == notebooks.canonical(notebook)


def test_cells_keep_their_ids_and_copies_get_new_ones():
    notebook = sample()
    ids = [cell.id for cell in notebook.cells]
    notebook.cells.append(deepcopy(notebook.cells[0]))
    twice = [[cell.id for cell in notebooks.canonical(notebook).cells] for _ in range(2)]
    assert twice[0] == twice[1] and twice[0][:-1] == ids and twice[0][-1] not in ids


def test_a_file_written_otherwise_is_named(tmp_path):
    path = tmp_path / "lesson.ipynb"
    path.write_text(notebooks.text(sample()), "utf-8")
    assert notebooks.check(path) == []
    path.write_text(notebooks.text(sample()) + "\n", "utf-8")
    assert "written otherwise" in notebooks.check(path)[0]
    path.write_text("{", "utf-8")
    assert "not a valid notebook" in notebooks.check(path)[0]


def lesson(path, *sources):
    """A file with these code cells, not run yet."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    path.write_text(notebooks.text(notebooks.canonical(notebook)), "utf-8")
    return path


def test_running_twice_changes_nothing_not_even_measured_times_and_pictures(tmp_path):
    path = lesson(
        tmp_path / "lesson.ipynb",
        "import sys, time\nimport matplotlib.pyplot as plt",
        "print('one')\nsys.stdout.flush()\nprint('two')",
        "# NBVAL_IGNORE_OUTPUT\nprint(f'{time.time() / 1e6:.6f} s')",
        "figure, ax = plt.subplots()\n_ = ax.plot([1, 2])",
        "from ipywidgets import IntSlider\nIntSlider(3)",
    )
    assert notebooks.run(path) == ("written", [])
    first = path.read_text("utf-8")
    assert notebooks.run(path) == ("unchanged", []) and path.read_text("utf-8") == first
    assert "Software" not in base64.b64decode(re.search(r'"image/png": "([^"]+)"', first)[1]).decode("latin-1")
    assert "widget-view" not in first and "IntSlider(value=3)" in first
    path.write_text(first.replace("IGNORE_OUTPUT", "OTHER"), "utf-8")  # a time that is compared must not be kept
    assert notebooks.run(path)[0] == "written"


def test_lessons_that_fail_are_told_and_left_as_they_were(tmp_path):
    failing = {
        "x = {}\nx['width']": ("cell 2 failed", "x['width']", "KeyError: 'width'"),
        "import warnings\nwarnings.warn('old')": ("cell 2: prints to stderr", "old"),
        "object()": ("cell 2: an object's address",),
        "import os\nos._exit(3)": ("Kernel died",),
    }
    paths = [lesson(tmp_path / f"{number}.ipynb", "1 + 1", source) for number, source in enumerate(failing)]
    before = [path.read_text("utf-8") for path in paths]
    tool = [sys.executable, notebooks.__file__, *map(str, paths)]
    told = subprocess.run(tool, capture_output=True, text=True, timeout=120)
    assert told.returncode == 1 and [path.read_text("utf-8") for path in paths] == before
    for number, words in enumerate(failing.values()):
        assert f"{number}.ipynb: {words[0]}" in told.stderr or words[0] == "Kernel died"
        assert all(word in told.stderr for word in words), told.stderr
