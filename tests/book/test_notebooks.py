"""Tests of the rules for notebooks, and of the tool that runs notebooks and writes them in canonical form."""

import base64
import json
import re
import subprocess
import sys
from collections import Counter
from copy import deepcopy

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import notebook_rules
import notebooks
import repository

# The rules

PATH = notebooks.ROOT / "chapters" / "00_sample.ipynb"
ADDRESS = repository.Address("ada/course", "main", "https://ada.github.io/course/")
PNG_BYTES = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(12)).decode()  # enough bytes for the rules about pictures


def lab_cell():
    output = new_output("execute_result", {"text/plain": "MaskLab(preset='causal')"}, execution_count=1)
    return new_code_cell("tl.labs.MaskLab()", metadata={"tags": ["remove-input"]}, outputs=[output])


def sample(address=ADDRESS):
    """Return a notebook that follows all rules and contains every part that a rule checks."""
    link = f"[Open in Colab]({address.colab('chapters/00_sample.ipynb')})" if address else "About 5 minutes"
    cells = [
        new_markdown_cell(f"# Sample\n\n{link}"),
        new_code_cell(repository.first_cell(address)),
        new_code_cell("print(6 * 7)", outputs=[new_output("stream", text="42\n")]),
        new_markdown_cell("## Try it first"),
        lab_cell(),
        new_markdown_cell(
            "## Predict first\n\n<details><summary>A. <code>6 * 7</code></summary>\n\n"
            "**Right.** Six sevens are forty-two, and so are seven sixes.\n\n</details>\n"
            "<details><summary>B. 41</summary>\n\n"
            "**No.** Six sevens are one more than forty-one: count them.\n\n</details>"
        ),
        new_code_cell(
            "figure = plot()",
            metadata={"mystnb": {"image": {"alt": "A line that climbs from left to right."}}},
            outputs=[new_output("display_data", {"image/png": PNG_BYTES, "text/plain": "<Figure>"})],
        ),
        new_code_cell(
            "# NBVAL_IGNORE_OUTPUT\nstart = time.perf_counter()\nprint(time.perf_counter() - start)\nassert start > 0",
            outputs=[new_output("stream", text="0.1\n")],
        ),
        new_markdown_cell("## 1.1 Later", metadata={"section": "core"}),
        lab_cell(),
        new_markdown_cell(
            "> **Remember:** rows first: $a < b$, `<b>`, `{x}`.\n\n"
            "[Plan](how.md#plan), [all](index.ipynb#heading=Syllabus)\n\n```text\n# + <b> just %\n```\n\n"
            + "\n".join(["A line of a list that goes on for the whole width of the page.", *["- An item of it."] * 50])
        ),
    ]
    return notebooks.canonical(new_notebook(cells=cells))


LAST_CELL, QUESTION_CELL, PICTURE_CELL, TIMED_CELL, PRINTING_CELL, INSTALL_CELL = -1, 5, 6, 7, 2, 1
TRY_FIRST_CELL, FIRST_LAB_CELL, LATER_CELL, SECOND_LAB_CELL = 3, 4, 8, 9


def with_text(source):
    """Return a function that adds ``source`` to the last cell of a notebook."""

    def break_notebook(notebook):
        notebook.cells[LAST_CELL].source += f"\n\n{source}\n"

    return break_notebook


def with_words(number, old, new):
    """Return a function that replaces ``old`` with ``new`` in a cell of a notebook."""

    def break_notebook(notebook):
        assert old in notebook.cells[number].source
        notebook.cells[number].source = notebook.cells[number].source.replace(old, new)

    return break_notebook


def with_questions(letters):
    """Return a function that writes a question for each of ``letters``, the letters of the correct answers."""
    option = (
        "<details><summary>{}. Perhaps</summary>\n\n**{}.** It seems so, and many people think it is.\n\n</details>"
    )

    def break_notebook(notebook):
        questions = [[option.format(x, "Right" if x == letter else "No") for x in "ABC"] for letter in letters]
        notebook.cells[QUESTION_CELL].source = "\n\n".join("\n".join(options) for options in questions)

    return break_notebook


def with_output(**output):
    """Return a function that adds an output to a cell of a notebook."""

    def break_notebook(notebook):
        notebook.cells[PRINTING_CELL].outputs.append(new_output(**output))

    return break_notebook


def with_tag(tag):
    return lambda notebook: notebook.cells[PRINTING_CELL].metadata.update(tags=[tag])


def with_printed_texts(*texts):
    """Return a function that adds a cell to a notebook for each of ``texts``; the cell prints this text."""

    def break_notebook(notebook):
        for text in texts:
            printed = new_output("stream", name="stdout", text=f"{text}\n")
            notebook.cells.append(new_code_cell("print(answer)", outputs=[printed]))

    return break_notebook


def without_a_lab(number):
    return lambda notebook: notebook.cells[number].update(outputs=[])


BROKEN_NOTEBOOKS = [
    (notebook_rules.stores_what_it_prints, lambda notebook: notebook.cells[PRINTING_CELL].update(outputs=[])),
    (notebook_rules.is_small, with_text("<br>" * 400_000)),
    (notebook_rules.opens_in_colab, with_words(0, "00_sample", "01_sample")),
    (notebook_rules.opens_in_colab, with_words(0, "/github/", "/github/somebody/")),
    (notebook_rules.opens_in_colab, with_words(0, "[Open in Colab]", "")),
    (notebook_rules.installs_the_package, with_words(INSTALL_CELL, "github.com/", "github.com/somebody/")),
    (notebook_rules.installs_the_package, with_words(INSTALL_CELL, '"--quiet", ', "")),
    (notebook_rules.installs_the_package, lambda notebook: notebook.cells.pop(INSTALL_CELL)),
    (notebook_rules.has_no_absolute_paths, with_text("It lies in /home/ada/course.")),
    (
        notebook_rules.has_no_absolute_paths,
        with_output(output_type="stream", name="stdout", text="/usr/lib/python3/ast.py:7"),
    ),
    (notebook_rules.links_lead_somewhere, with_text("[Next](77_nowhere.ipynb#here)")),
    (notebook_rules.links_lead_somewhere, with_text("[Plan](index.ipynb#syllabus)")),
    (notebook_rules.links_lead_somewhere, with_text("[Plan](index.ipynb#heading=Syllabi)")),
    (notebook_rules.hides_only_times, with_words(TIMED_CELL, "time.perf_counter()", "now()")),
    (notebook_rules.hides_only_times, with_words(TIMED_CELL, "assert start > 0", "")),
    (notebook_rules.hides_only_times, with_words(PRINTING_CELL, "print", "# NBVAL_IGNORE_OUTPUT\nprint")),
    (notebook_rules.hides_only_times, with_words(PRINTING_CELL, "print", "# NBVAL_SKIP\nprint")),
    (notebook_rules.hides_only_times, with_words(PRINTING_CELL, "print", "# NBVAL_RAISES_EXCEPTION\nprint")),
    (notebook_rules.hides_only_times, with_words(PRINTING_CELL, "print", "# PYTEST_VALIDATE_IGNORE_OUTPUT\nprint")),
    (notebook_rules.hides_only_times, with_tag("nbval-ignore-output")),
    (notebook_rules.hides_only_times, with_tag("nbval-skip")),
    (notebook_rules.hides_only_times, with_tag("raises-exception")),
    (
        notebook_rules.shows_no_part_of_a_drawing,
        with_output(output_type="display_data", data={"text/plain": "Text(0, 0.5, 'token')"}),
    ),
    (notebook_rules.ends_no_cell_in_a_semicolon, with_words(PRINTING_CELL, "print(6 * 7)", "print(6 * 7);  # quiet")),
    (notebook_rules.has_plain_markdown, with_text("```{note}\nOnly in the book.\n```")),
    (notebook_rules.has_plain_markdown, with_text(":::{note}\nOnly in the book.\n:::")),
    (notebook_rules.has_plain_markdown, with_text("See {ref}`chapter`.")),
    (notebook_rules.has_plain_markdown, with_text("% not for readers")),
    (notebook_rules.has_plain_markdown, with_text("(a-label)=")),
    (notebook_rules.has_plain_markdown, with_text("+++")),
    (notebook_rules.has_little_html, with_text('<div class="box">')),
    (notebook_rules.has_little_html, with_text("<script>")),
    (notebook_rules.has_little_html, with_text("<!-- to do -->")),
    (notebook_rules.has_little_html, with_text('<img src="a.png">')),
    (notebook_rules.has_little_html, with_text('<code style="color: red">')),
    (notebook_rules.calls_out_in_bold, with_text("> [!NOTE]\n> **Remember:** look.")),
    (notebook_rules.calls_out_in_bold, with_text("> **Look out:** there.")),
    (notebook_rules.calls_out_in_bold, with_text("> **Remember:**\n>\n> Look.")),
    (notebook_rules.calls_out_in_bold, with_text("> **Note:** look.")),
    (notebook_rules.calls_out_in_bold, with_text("**Warning.** Look.")),
    (notebook_rules.describes_its_pictures, with_output(output_type="display_data", data={"image/svg+xml": "<svg/>"})),
    (notebook_rules.describes_its_pictures, lambda notebook: notebook.cells[PICTURE_CELL].metadata.clear()),
    (notebook_rules.describes_its_pictures, lambda notebook: notebook.cells[PICTURE_CELL].outputs.append(picture())),
    (notebook_rules.describes_its_pictures, with_text("![](lab.png)")),
    (notebook_rules.has_short_paragraphs, with_text("A sentence of a paragraph without an end. " * 14)),
    (notebook_rules.has_short_paragraphs, with_text("- " + "A sentence of an item without an end. " * 15)),
    (
        notebook_rules.has_short_paragraphs,
        with_text("> **Remember:** look.\n" + "> A sentence of a callout without an end.\n" * 14),
    ),
    (notebook_rules.does_not_belittle, with_text("Just add them.")),
    (notebook_rules.does_not_belittle, with_text("It is simply a sum.")),
    (notebook_rules.explains_every_option, with_words(QUESTION_CELL, "**No.**", "**Right.**")),
    (notebook_rules.explains_every_option, with_words(QUESTION_CELL, "**Right.**", "**No.**")),
    (notebook_rules.explains_every_option, with_words(QUESTION_CELL, "**No.** ", "")),
    (notebook_rules.explains_every_option, with_words(QUESTION_CELL, "one more than forty-one: count them", "not")),
    (notebook_rules.explains_every_option, with_words(QUESTION_CELL, "<summary>B. 41</summary>", "")),
    (notebook_rules.explains_every_option, with_words(QUESTION_CELL, "B. 41", "C. 41")),
    (notebook_rules.explains_every_option, with_words(QUESTION_CELL, "B. 41", "B. `41`")),
    (notebook_rules.explains_every_option, with_words(QUESTION_CELL, "41</summary>\n", "41</summary>")),
    (notebook_rules.spreads_the_right_answers, with_questions("ABAA")),
    (notebook_rules.has_short_lines_of_code, with_words(PRINTING_CELL, "print(6 * 7)", f"print(6 * 7)  # {'1' * 73}")),
    (notebook_rules.prints_numbers, with_printed_texts("True", "rows of 3 sum to one: True\nsorted False")),
    (notebook_rules.begins_with_something_to_do, with_words(QUESTION_CELL, "Predict first", "Set up")),
    (notebook_rules.begins_with_something_to_do, with_words(TRY_FIRST_CELL, "Try it first", "First section")),
    (notebook_rules.begins_with_something_to_do, without_a_lab(FIRST_LAB_CELL)),
    (notebook_rules.begins_with_something_to_do, without_a_lab(SECOND_LAB_CELL)),
    (notebook_rules.hides_what_makes_a_lab, lambda notebook: notebook.cells[FIRST_LAB_CELL].metadata.clear()),
    (notebook_rules.is_core_or_further, lambda notebook: notebook.cells[LATER_CELL].metadata.clear()),
    (notebook_rules.is_core_or_further, lambda notebook: notebook.cells[LATER_CELL].metadata.update(section="further")),
    (
        notebook_rules.is_core_or_further,
        with_words(LATER_CELL, "Later", "Later\n\n*Further: skip it, and you miss it.*"),
    ),
    (
        notebook_rules.is_core_or_further,
        lambda notebook: notebook.cells[TRY_FIRST_CELL].metadata.update(section="core"),
    ),
    (notebook_rules.is_core_or_further, with_text("## In the middle")),
    (notebook_rules.names_every_column, with_text("| | size |\n|---|---|\n| x | 1 |")),
    (notebook_rules.has_ordered_headings, with_text("# Another")),
    (notebook_rules.has_ordered_headings, with_text("#### Too deep")),
    (notebook_rules.has_ordered_headings, with_words(0, "# Sample", "Sample")),
]


def picture():
    return new_output("display_data", {"image/png": PNG_BYTES})


@pytest.mark.parametrize("address", [ADDRESS, None])
def test_the_sample_keeps_all_rules(address, monkeypatch):
    monkeypatch.setattr(notebook_rules, "stored_address", lambda: address)
    assert [complaint for rule in notebook_rules.RULES for complaint in rule(sample(address), PATH)] == []


@pytest.mark.parametrize(
    "rule, break_notebook",
    BROKEN_NOTEBOOKS,
    ids=[f"{rule.__name__}-{number}" for number, (rule, _) in enumerate(BROKEN_NOTEBOOKS)],
)
def test_a_rule_complains_about_what_breaks_it(rule, break_notebook, monkeypatch):
    monkeypatch.setattr(notebook_rules, "stored_address", lambda: ADDRESS)
    broken_notebook = sample()
    break_notebook(broken_notebook)
    assert list(rule(broken_notebook, PATH)), "the rule must complain"


@pytest.mark.parametrize("written_address, stored_address", [(ADDRESS, None), (None, ADDRESS)])
def test_a_notebook_with_a_different_address_breaks_two_rules(written_address, stored_address, monkeypatch):
    monkeypatch.setattr(notebook_rules, "stored_address", lambda: stored_address)
    broken_rules = [rule for rule in notebook_rules.RULES if list(rule(sample(written_address), PATH))]
    assert broken_rules == [notebook_rules.opens_in_colab, notebook_rules.installs_the_package]


def test_every_rule_has_a_notebook_that_breaks_it():
    assert {rule for rule, _ in BROKEN_NOTEBOOKS} == set(notebook_rules.RULES)


def test_right_answers_are_spread_over_the_letters():
    chapters = notebooks.chapters()
    letters = [letter for path in chapters for letter in notebook_rules.right_letters(nbformat.read(path, 4))]
    assert len(letters) > 70
    most_frequent, count = Counter(letters).most_common(1)[0]
    assert count <= notebook_rules.MAX_LETTER_SHARE * len(letters), f"{most_frequent} in {count} of {len(letters)}"


def test_a_line_of_code_may_have_88_letters_in_chapters_and_assignments():
    narrow, wide = sample(), sample()
    with_words(PRINTING_CELL, "print(6 * 7)", f"print(6 * 7)  # {'1' * 72}")(narrow)
    with_words(PRINTING_CELL, "print(6 * 7)", f"print(6 * 7)  # {'1' * 99}")(wide)
    for path in (PATH, PATH.parent / "assignments" / PATH.name):
        assert list(notebook_rules.has_short_lines_of_code(narrow, path)) == []
        assert len(list(notebook_rules.has_short_lines_of_code(wide, path))) == 1


def test_a_complaint_names_file_rule_and_cell(tmp_path, monkeypatch):
    path = tmp_path / "sample.ipynb"
    broken_notebook = sample()
    with_text("Just add them.")(broken_notebook)
    path.write_text(notebooks.text(broken_notebook), "utf-8")
    monkeypatch.setattr(notebook_rules, "stored_address", lambda: None)
    monkeypatch.setattr("sys.argv", ["notebook_rules.py", str(path)])
    with pytest.raises(
        SystemExit, match=r"sample\.ipynb: does_not_belittle: cell 11: says 'Just', which tells a reader"
    ):
        notebook_rules.main()


# Canonical form

WIDGET = {notebooks.WIDGET: {"model_id": "1"}, "text/plain": "Lab()"}
NOT_CANONICAL = [
    (lambda notebook: notebook.cells[0].pop("source"), "not a valid notebook"),
    (lambda notebook: notebook.cells[1].update(outputs=[{"output_type": "sound"}]), "not a valid notebook"),
    (lambda notebook: notebook.metadata.update(widgets={"state": {}}), "metadata: widgets must not be stored"),
    (lambda notebook: notebook.metadata.language_info.update(version="3.11.7"), "version must not be stored"),
    (lambda notebook: notebook.cells[PRINTING_CELL].metadata.update(execution={}), "execution must not be stored"),
    (lambda notebook: notebook.cells[PRINTING_CELL].update(execution_count=9), "execution_count: is '9', must be '2'"),
    (
        lambda notebook: notebook.cells[PRINTING_CELL].update(execution_count=None),
        "execution_count: is 'None', must be '2'",
    ),
    (with_output(output_type="display_data", data=WIDGET), "widget-view+json must not be stored"),
    (with_output(output_type="display_data", data={"image/jpeg": "/9j/"}), "image/jpeg is not stored: output one of"),
    (with_output(output_type="display_data", data={"text/plain": "<Lab object at 0x7f00>"}), "an object's address"),
    (with_output(output_type="stream", name="stdout", text="in another chunk\n"), "cell 3 outputs: is"),
    (with_output(output_type="stream", name="stderr", text="a warning\n"), "prints to stderr: 'a warning'"),
    (with_output(output_type="error", ename="ValueError", evalue="no", traceback=[]), "ends in ValueError: no"),
]


@pytest.mark.parametrize("break_notebook, message_part", NOT_CANONICAL, ids=[part for _, part in NOT_CANONICAL])
def test_differences_from_canonical_form_are_reported(break_notebook, message_part, tmp_path):
    broken_notebook = sample()
    break_notebook(broken_notebook)
    path = tmp_path / "sample.ipynb"
    path.write_text(json.dumps(broken_notebook), "utf-8")
    assert any(message_part in complaint for complaint in notebooks.check(path)), notebooks.check(path)


def test_canonical_form_is_idempotent_and_keeps_text():
    notebook = sample()
    broken_notebook = deepcopy(notebook)
    broken_notebook.metadata.language_info.version = "3.11.7"
    broken_notebook.metadata.widgets = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    for cell in broken_notebook.cells:
        cell.metadata.update(execution={"shell.execute_reply": "2026-01-01"}, collapsed=True)
    # The output comes in several parts, and a line of it is overwritten, as by a progress bar.
    broken_notebook.cells[TIMED_CELL].outputs = [new_output("stream", text=text) for text in ("\r0.0", "\r0.", "1\n")]
    broken_notebook.cells[PRINTING_CELL].outputs.append(new_output("execute_result", WIDGET, execution_count=99))
    broken_notebook.cells[PRINTING_CELL].execution_count = 99
    notebook.cells[PRINTING_CELL].outputs.append(
        new_output("execute_result", {"text/plain": "Lab()"}, execution_count=2)
    )
    assert notebooks.canonical(broken_notebook) == notebook == notebooks.canonical(notebook)


@pytest.mark.parametrize(
    "tags, folded",
    [
        (["hide-input"], {"source_hidden": True}),
        (["remove-input", "hide-output"], {"source_hidden": True, "outputs_hidden": True}),
        (["nbval-ignore-output"], None),
    ],
)
def test_jupyter_folds_what_the_book_folds(tags, folded):
    notebook = sample()
    notebook.cells[PRINTING_CELL].metadata.update(tags=tags, jupyter={"outputs_hidden": True})
    assert notebooks.canonical(notebook).cells[PRINTING_CELL].metadata.get("jupyter") == folded


def test_cells_keep_their_ids_and_copies_get_new_ones():
    notebook = sample()
    ids = [cell.id for cell in notebook.cells]
    notebook.cells.append(deepcopy(notebook.cells[0]))
    ids_of_two_runs = [[cell.id for cell in notebooks.canonical(notebook).cells] for _ in range(2)]
    assert (
        ids_of_two_runs[0] == ids_of_two_runs[1]
        and ids_of_two_runs[0][:-1] == ids
        and ids_of_two_runs[0][-1] not in ids
    )


def test_a_different_layout_of_the_file_is_reported(tmp_path):
    path, stored = tmp_path / "sample.ipynb", sample()
    path.write_text(notebooks.text(stored), "utf-8")
    assert notebooks.check(path) == []
    path.write_text(notebooks.text(stored) + "\n", "utf-8")
    assert "not in canonical form" in notebooks.check(path)[0]
    first, second = (cell.id for cell in stored.cells[:2])  # nbformat replaces the second of two equal ids
    path.write_text(notebooks.text(stored).replace(second, first), "utf-8")
    with pytest.warns(match="Non-unique cell id"):
        assert "not in canonical form" in notebooks.check(path)[0]
    path.write_text("{", "utf-8")
    assert "not a valid notebook" in notebooks.check(path)[0]


# Choosing and running


def test_words_choose_notebooks_by_their_path(tmp_path):
    def chosen_notebooks(*words):
        paths = notebooks.select_paths(words, notebooks.all_notebooks())
        return [path.relative_to(notebooks.ROOT / "chapters").as_posix() for path in paths]

    chapter_6 = "06_normalization.ipynb"
    assert chosen_notebooks("06") == [chapter_6, f"assignments/{chapter_6}", f"solutions/{chapter_6}"]
    assert chosen_notebooks("solutions/06", "chapters/06", chapter_6) == chosen_notebooks("06")
    assert len(chosen_notebooks()) == len(notebooks.all_notebooks())
    with pytest.raises(SystemExit, match=r"^There is no notebook that has 77 in its path\.$"):
        chosen_notebooks("06", "77")
    path = tmp_path / "other.ipynb"
    path.touch()
    assert notebooks.select_paths([str(path)], notebooks.all_notebooks()) == [path]


def write(path, *sources):
    """Write a notebook whose code cells, one for each of ``sources``, have not run yet."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    path.write_text(notebooks.text(notebooks.canonical(notebook)), "utf-8")
    return path


def test_running_twice_changes_nothing_not_even_measured_times_and_pictures(tmp_path):
    path = write(
        tmp_path / "sample.ipynb",
        "import sys, time\nimport matplotlib.pyplot as plt",
        "print('one')\nsys.stdout.flush()\nprint('two')",
        "# NBVAL_IGNORE_OUTPUT\nprint(f'{time.time() / 1e6:.6f} s')",
        "figure, ax = plt.subplots()\n_ = ax.plot([1, 2])",
        "from ipywidgets import IntSlider\nIntSlider(3)",
        "class Drawing:\n    __repr__ = lambda self: 'Drawing'\n    _repr_svg_ = lambda self: '<svg/>'\nDrawing()",
    )
    assert notebooks.run(path) == ("written", [])
    first = path.read_text("utf-8")
    assert notebooks.run(path) == ("unchanged", []) and path.read_text("utf-8") == first
    assert "Software" not in base64.b64decode(re.search(r'"image/png": "([^"]+)"', first)[1]).decode("latin-1")
    assert '"image/svg+xml": ' in first and "<svg/>" in first
    assert "widget-view" not in first and "IntSlider(value=3)" in first
    path.write_text(first.replace("IGNORE_OUTPUT", "OTHER"), "utf-8")  # a compared output must not contain a time
    assert notebooks.run(path)[0] == "written"


def test_notebooks_that_fail_are_reported_and_left_as_they_were(tmp_path):
    messages_by_source = {
        "x = {}\nx['width']": ("cell 2 failed", "x['width']", "KeyError: 'width'"),
        "import warnings\nwarnings.warn('old')": ("cell 2: prints to stderr", "old"),
        "object()": ("cell 2: an object's address",),
        "import os\nos._exit(3)": ("Kernel died",),
    }
    paths = [write(tmp_path / f"{number}.ipynb", "1 + 1", source) for number, source in enumerate(messages_by_source)]
    before = [path.read_text("utf-8") for path in paths]
    tool = [sys.executable, notebooks.__file__, *map(str, paths)]
    tool_run = subprocess.run(tool, capture_output=True, text=True, timeout=120)
    assert tool_run.returncode == 1 and [path.read_text("utf-8") for path in paths] == before
    for number, messages in enumerate(messages_by_source.values()):
        assert f"{number}.ipynb: {messages[0]}" in tool_run.stderr or messages[0] == "Kernel died"
        assert all(message in tool_run.stderr for message in messages), tool_run.stderr
