"""If an author of an exercise leaves something out, an error says in a sentence what is missing."""

import builtins
import re
import textwrap
from pathlib import Path

import nbformat
import pytest
import torch

import assignments
import transformer_lab as tl
from run_python import run_python
from transformer_lab.checks import course
from transformer_lab.checks.diagnose import diagnose
from transformer_lab.checks.exercise import exercise, family, rows_of, ways, with_text_of

FOLDER = Path(tl.checks.__file__).parent
HINTS = ("Which one?", "Look at the last axis.", "`x.flip(…)`")


def make_exercise(hints=HINTS, reference=None, **settings):
    """Return an exercise that is in no assignment."""

    def backwards(x, *, turned=lambda x: x.flip(-1)):
        """Return the numbers of each row in reverse order."""
        return turned(x)

    def inputs(draw, rows=2, columns=3):
        return (draw(rows, columns),)

    return exercise(inputs=inputs, axes={"x": "rows columns"}, hints=hints, **settings)(reference or backwards)


def test_the_exercise_in_contributing_names_each_of_its_mistakes():
    text = (assignments.ROOT / "CONTRIBUTING.md").read_text("utf-8")
    code = textwrap.dedent(re.search(r"^ *```python\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)[1])
    names = {
        "__name__": f"{tl.checks.__name__}.ch5_masks.window_mask",
        "__package__": f"{tl.checks.__name__}.ch5_masks",
    }
    exec(code, names)
    exercise = names["window_mask"]
    assert len(exercise.mistakes) == 4 and exercise.equivalents
    for function in (exercise.reference, *exercise.equivalents.values()):
        assert diagnose(exercise, function).status == "correct"
    for mistake in exercise.mistakes.values():
        assert diagnose(exercise, mistake.function).mistake == mistake.id
        assert 80 < len(mistake.text) < 700


def test_a_made_up_exercise_checks_answers(capsys):
    exercise = make_exercise()

    @exercise.mistake
    def not_turned(x):
        """The numbers are where they were. Which method reverses an axis?"""
        return x

    exercise.example("one row", rows=1)

    def own_answer(x):
        return x.flip(1)

    assert exercise(own_answer).status == "correct" and exercise.working is own_answer
    assert exercise(lambda x: x + 0).mistake == "not_turned" and exercise.working is exercise.reference
    assert "Your function is right with ordinary input, larger input, one row" in capsys.readouterr().out


@pytest.mark.parametrize("hints", [(), HINTS[:2], (*HINTS, "more")])
def test_an_exercise_must_have_three_hints(hints):
    message = "backwards must have three hints (a question, where to look, the shape of the code)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}, got {len(hints)}$"):
        make_exercise(hints=hints)


def test_hints_must_be_given():
    with pytest.raises(ValueError, match="must have three hints"):
        exercise(inputs=lambda draw: (draw(2),), axes={})(lambda x: x)


@pytest.mark.parametrize(
    "add, purpose",
    [
        (lambda exercise, function: exercise.mistake(function), "the text for a learner who makes the mistake"),
        (
            lambda exercise, function: exercise.mistake(function, stage="turned"),
            "the text for a learner who makes the mistake",
        ),
        (
            lambda exercise, function: exercise.mistakes_in(turned=(function,)),
            "the text for a learner who makes the mistake",
        ),
        (
            lambda exercise, function: exercise.wrong(type("Body", (), {"nameless": function})),
            "the text for a learner who makes the mistake",
        ),
        (lambda exercise, function: exercise.probe(function), "what is special about the input"),
        (lambda exercise, function: exercise.property(function), "a sentence that states the property"),
    ],
)
def test_a_docstring_is_required(add, purpose):
    def nameless(x):
        return x

    with pytest.raises(ValueError, match=f"^nameless of backwards must have a docstring: {purpose}$"):
        add(make_exercise(), nameless)


def test_every_mistake_must_have_its_own_name():
    def not_turned(x):
        """The numbers are where they were."""
        return x

    exercise = make_exercise()
    exercise.mistake(not_turned)
    with pytest.raises(ValueError, match=r"^mistakes of backwards must differ in name, got 'not_turned' twice$"):
        exercise.mistake(not_turned)


def test_a_mistake_must_be_in_a_stage_of_the_exercise():
    with pytest.raises(ValueError, match=r"^stage must be one of the stages of backwards \(turned\), got 'turn'$"):
        make_exercise().mistakes_in(turn=(lambda x: x,))


@pytest.mark.parametrize(
    "arguments, named, suggested",
    [
        ((), {"row": 1}, "row"),
        ((1,), {"rows": 1}, "1 in order and 1 by name"),
        ((1, 2), {}, "2 in order and 0 by name"),
        ((), {}, "0 in order and 0 by name"),
    ],
)
def test_an_example_must_name_sizes_or_arguments_of_the_exercise(arguments, named, suggested):
    with pytest.raises(ValueError, match=f"some of rows, columns, x by name, got {suggested} in 'an example'$"):
        make_exercise().example("an example", *arguments, **named)


def test_mistakes_in_two_stages_are_combined_unless_they_are_alone():
    def backwards(x, *, turned=lambda x: x.flip(-1), halved=lambda x: x / 2):
        """Return half of each number, in reverse order."""
        return halved(turned(x))

    def not_turned(x):
        """The numbers are where they were."""
        return x

    def not_halved(x):
        """The numbers are as large as they were."""
        return x

    def rolled(x):
        """The last number of each row comes first, and the others are in order."""
        return x.roll(1, -1)

    exercise = make_exercise(reference=backwards)
    exercise.mistakes_in(turned=(not_turned,), halved=(not_halved,))
    exercise.mistake(rolled, stage="turned", alone=True)
    assert list(exercise.known_outcomes) == [
        ("not_turned",),
        ("not_halved",),
        ("rolled",),
        ("not_turned", "not_halved"),
    ]
    report = diagnose(exercise, lambda x: x.roll(1, -1) / 2)
    assert (report.mistake, report.stage) == ("rolled", "turned")


def test_right_answers_may_be_given_in_a_class_body():
    exercise = make_exercise()

    @exercise.right
    class RightAnswers:
        def by_indices(x):
            return x[..., torch.arange(x.shape[-1] - 1, -1, -1)]

        @ways(with_numbers=-1, with_names=("columns",))
        def flipped(axis, x):
            return x.flip(-1)

    assert list(exercise.equivalents) == ["by_indices", "flipped_with_numbers", "flipped_with_names"]
    assert all(diagnose(exercise, function).status == "correct" for function in exercise.equivalents.values())


def test_mistakes_may_be_given_in_a_class_body():
    exercise = make_exercise()

    @exercise.wrong(stage="turned", alone=True)
    class Turned:
        """Wrong axes."""

        AXES = (0, 1)

        def not_turned(x):
            """The numbers are where they were."""
            return x

        def _by(steps, x):
            return x.roll(steps, -1)

        @family(
            rolled=(1, "The row moves by {} place."),
            rolled_twice=(2, "The row moves by {} places."),
        )
        def moved(steps, x):
            return Turned._by(steps, x)

        @family(halved=(2, "half"), quartered=(4, "a quarter"))
        def divided(by, x):
            """The numbers are {{} of what they were, and} in the old order, divided by {}."""
            return x / by

    assert list(exercise.mistakes) == ["not_turned", "rolled", "rolled_twice", "halved", "quartered"]
    assert all((mistake.stage, mistake.alone) == ("turned", True) for mistake in exercise.mistakes.values())
    assert exercise.mistakes["rolled_twice"].text == "The row moves by 2 places."
    assert exercise.mistakes["quartered"].text.endswith(
        "are a quarter of what they were, and in the old order, divided by 4."
    )
    assert torch.equal(exercise.mistakes["rolled_twice"].function(torch.arange(3)), torch.tensor([1, 2, 0]))
    assert diagnose(exercise, lambda x: x / 4).mistake == "quartered"


def test_words_of_a_family_must_have_a_place_in_the_docstring():
    message = "words of halved must fill a {} in the docstring of divided, got 'too much'"

    def divided(by, x):
        """The numbers are {} of what they were."""

    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        family(halved=(2, "half", "too much"))(divided)


def test_rows_of_a_family_may_be_functions_with_texts_of_their_own():
    class Turns:
        def halved(x):
            """The numbers are half of what they were."""
            return x / 2

        def doubled(x):
            """The numbers are twice what they were."""
            return 2 * x

    exercise = make_exercise()

    @exercise.wrong
    class WrongAnswers:
        @family(**rows_of(Turns))
        def once(turn, x):
            return turn(x)

        @family(**rows_of((Turns.halved,), "{}_again"))
        def again(turn, x):
            return turn(turn(x))

    texts = {id: mistake.text for id, mistake in exercise.mistakes.items()}
    half, twice = (f"The numbers are {ratio} what they were." for ratio in ("half of", "twice"))
    assert texts == {"halved": half, "doubled": twice, "halved_again": half}
    assert diagnose(exercise, lambda x: x / 4).mistake == "halved_again"


def test_a_mistake_may_have_several_spellings():
    exercise = make_exercise()

    @exercise.wrong
    class WrongAnswers:
        @ways(for_view=torch.Tensor.view, for_reshape=torch.Tensor.reshape)
        def no_columns(cut, x):
            """The row is cut into columns of size 0, which PyTorch refuses."""
            return cut(x, len(x), 0)

        @with_text_of(no_columns[0])
        def all_columns(x):
            return x.view(len(x), 2 * x.shape[1])

    with_view, with_reshape, all_columns = exercise.mistakes.values()
    assert (all_columns.id, all_columns.text) == ("all_columns", with_view.text)
    assert (with_view.id, with_reshape.id, with_view.text) == (
        "no_columns_for_view",
        "no_columns_for_reshape",
        with_reshape.text,
    )
    assert diagnose(exercise, lambda x: x.view(len(x), 0)).mistake == "no_columns_for_view"
    assert diagnose(exercise, lambda x: x.reshape(len(x), 0)).mistake == "no_columns_for_reshape"


def test_an_example_is_given_by_sizes_by_arguments_or_by_a_function():
    exercise = make_exercise()
    exercise.example("another x", x=torch.zeros(2))
    exercise.example("one row", rows=1)
    exercise.example("a vector", lambda draw: (draw(4),))
    another_x, one_row, vector = (
        probe.arguments[0] for probe in exercise.probes if probe.name in ("another x", "one row", "a vector")
    )
    assert torch.equal(another_x, torch.zeros(2)) and one_row.shape == (1, 3) and vector.shape == (4,)


def test_a_reference_must_not_raise():
    def backwards(x):
        """Return the numbers of each row in reverse order."""
        return x.flip(7)

    message = r"^the reference of backwards must not raise, got IndexError: .* with ordinary input$"
    with pytest.raises(ValueError, match=message):
        make_exercise(reference=backwards).expected  # noqa: B018
    with pytest.raises(ValueError, match="must not raise, got IndexError"):
        make_exercise(reference=backwards, raises=ZeroDivisionError).expected  # noqa: B018
    assert make_exercise(reference=backwards, raises=IndexError).expected[0].error is not None


def test_a_reference_must_not_be_random():
    def backwards(x):
        """Return the numbers of each row in a new order each time."""
        return x[:, torch.randperm(x.shape[1])] + torch.rand(1)

    with pytest.raises(ValueError, match=r"^the reference of backwards must not be random"):
        make_exercise(reference=backwards).expected  # noqa: B018


@pytest.mark.parametrize("inputs, given", [(torch.ones(2), "Tensor"), ((torch.ones(2), 1), "2")])
def test_inputs_must_be_a_tuple_of_the_arguments(inputs, given):
    def backwards(x):
        """Return the numbers of each row in reverse order."""
        return x.flip(-1)

    wrong_exercise = exercise(inputs=lambda draw: inputs, axes={}, hints=HINTS)(backwards)
    message = rf"^the inputs of backwards must be a tuple of its arguments \(x\), got {given} with ordinary input$"
    with pytest.raises(ValueError, match=message):
        wrong_exercise.expected  # noqa: B018


def test_axis_words_must_belong_to_an_argument():
    with pytest.raises(ValueError, match=r"^axes of backwards must be for one of x, return, got 'y'$"):
        exercise(inputs=lambda draw: (draw(2),), axes={"y": "rows"}, hints=HINTS)(make_exercise().reference)


def test_every_file_is_in_the_course():
    files = {
        (file.parent.name, file.stem) for file in FOLDER.glob("*/*.py") if "\n@exercise(" in file.read_text("utf-8")
    }
    names_in_course = {(folder, name) for folder, names in course.COURSE.items() for name in names}
    assert not files - names_in_course, "these exercises have a file, but no place in course.py"
    assert not names_in_course - files, "course.py names these exercises, but they have no file that defines them"
    folders = {file.parent.name for file in FOLDER.glob("*/__init__.py")}
    assert folders == set(course.COURSE), "each folder must have an __init__.py and a line in course.py"


def test_a_name_is_in_the_course_once():
    names = [name for names in course.COURSE.values() for name in names]
    assert len(names) == len(set(names)), "no two exercises may share a name"


def test_a_name_in_the_course_must_have_a_file(monkeypatch):
    monkeypatch.setitem(course.FOLDERS, "backwards", "ch5_masks")
    message = r"^course.py names backwards in ch5_masks, but there is no file ch5_masks/backwards.py$"
    with pytest.raises(ImportError, match=message):
        _ = tl.checks.backwards


def test_a_file_must_define_its_exercise(monkeypatch):
    monkeypatch.setitem(course.FOLDERS, "views", "ch1_tensor_operations")
    message = r"^ch1_tensor_operations/views.py must define the exercise views, as course.py names it$"
    with pytest.raises(ImportError, match=message):
        _ = tl.checks.views


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"^module 'transformer_lab.checks' has no attribute 'alibi_bias'$"):
        _ = tl.checks.alibi_bias
    with pytest.raises(AttributeError, match=r"has no attribute 'split_head'; did you mean 'split_heads'\?$"):
        _ = tl.checks.split_head
    assert "padding_mask" in dir(tl.checks)


def test_titles_number_the_assignments():
    assert course.title("ch5_masks") == "Assignment 5" and course.title("ch10_rotary") == "Assignment 10"
    assert course.title("project") == "Final project"


def test_loading_an_exercise_ignores_and_keeps_the_learners_settings():
    code = """
import torch, transformer_lab as tl
torch.set_default_dtype(torch.float64); torch.set_default_device("meta"); torch.manual_seed(1)
before = torch.get_rng_state()
tensors = [probe.arguments[0] for probe in tl.checks.softmax.probes if "thousand apart in" in probe.name]
tl.checks.mend_model_size
print(tensors[0].dtype, tensors[0].device, torch.get_default_dtype(), torch.equal(before, torch.get_rng_state()))
"""
    assert run_python(code) == "torch.float32 cpu torch.float64 True\n"


# The solutions, from which the assignments are generated

MASKS_SOLUTION = assignments.solution_of("ch5_masks")


def edited_solution(before, after):
    """Return the solution of chapter 5 with each match of ``before`` replaced by ``after``."""
    notebook = nbformat.read(MASKS_SOLUTION, 4)
    for cell in notebook.cells:
        cell.source = re.sub(before, after, cell.source, flags=re.DOTALL)
    return notebook


PADDING_HINTS = r"(`padding_mask`\n.*?)<details>\n<summary>Hint 1.*?</details>\n\n<details>.*</details>"


@pytest.mark.parametrize(
    "before, after, message",
    [
        (PADDING_HINTS, r"\1", "padding_mask must have hints: write {hints padding_mask} below its heading"),
        (
            PADDING_HINTS,
            r"\1{hints causal_mask}",
            "{hints causal_mask} must be below the heading of its exercise, but is below padding_mask",
        ),
        (
            r"^tl.checks.padding_mask\(padding_mask\)$",
            "tl.checks.padding_masks(padding_masks)",
            "the check of padding_masks must be in transformer_lab/checks/course.py, but is not",
        ),
        (
            r"^tl.checks.padding_mask\(padding_mask\)$",
            "tl.checks.causal_mask(causal_mask)",
            "the check of causal_mask must be below its heading, but is below padding_mask",
        ),
        (
            r"^tl.checks.padding_mask\(padding_mask\)$",
            "",
            "the checks must be those of ch5_masks in course.py and hunts.py, ",
        ),
        (
            "You write six functions",
            "You write functions",
            "the first cell must say how many functions there are: six ",
        ),
        ("About 70 minutes", "Soon done", "the first cell must say how long the assignment takes: About 70 minutes"),
    ],
)
def test_a_solution_with_something_missing_is_refused(before, after, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        assignments.with_derived_parts(edited_solution(before, after))


@pytest.mark.parametrize("folder", course.COURSE)
def test_a_hint_calls_only_what_its_notebook_has(folder):
    """Learners copy the third hint and fill its gaps, so the functions that it calls must exist in the notebook."""
    notebook = nbformat.read(assignments.solution_of(folder), 4)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    defined_names = {*dir(builtins), *re.findall(r"(?m)^(?:def )?(\w+)(?: =|\()", code)}
    for exercise_name in course.COURSE[folder]:
        exercise = getattr(tl.checks, exercise_name)
        for code_span in re.findall(r"`([^`]+)`", exercise.hints[2]):
            called_names = set(re.findall(r"(?<![\w.…])([a-z_]\w*)\(", code_span))
            missing = called_names - defined_names - set(exercise.arguments)
            assert not [name for name in missing if not hasattr(torch.Tensor, name)], exercise_name


@pytest.mark.parametrize(
    "before, after",
    [
        ("You write five functions", "You write nine functions"),
        ("About 55 minutes", "About 5 minutes"),
        ("`causal_mask` to `decoder_masks`", "`softmax` to `masked`"),
        ("`causal_mask = tl.checks.causal_mask.reference`", "`softmax = tl.checks.softmax.reference`"),
        ("## 5.2 ", "## "),
        ("## 5.2 ", "## 7.1 "),
        ("## 5.7 Hunt", "## Hunt"),
    ],
)
def test_derived_numbers_counts_and_minutes_replace_the_written_ones(before, after):
    notebook = assignments.with_derived_parts(edited_solution(before, after))
    assert assignments.text(notebook) == MASKS_SOLUTION.read_text("utf-8")


def test_an_assignment_must_end_with_a_hunt(monkeypatch):
    monkeypatch.setattr(assignments, "tasks", course.COURSE.get)
    with pytest.raises(ValueError, match=r"^ch5_masks must end with a hunt: add one of its exercises to .*hunts\.py"):
        assignments.with_derived_parts(edited_solution("$^", ""))


def test_parts_without_minutes_need_time_of_their_own():
    notebook = nbformat.read(MASKS_SOLUTION.with_stem("project"), 4)
    notebook.cells[0].source = notebook.cells[0].source.replace("About 105 minutes", "About 55 minutes")
    with pytest.raises(ValueError, match=r"^the first cell must state more than the 55 minutes of the tasks, got 55"):
        assignments.with_derived_parts(notebook)


def test_the_project_numbers_its_parts_without_a_chapter():
    notebook = nbformat.read(MASKS_SOLUTION.with_stem("project"), 4)
    for cell in notebook.cells:
        cell.source = re.sub(r"(?m)^## \d+ (?=`)", "## 10.3 ", cell.source)
    derived_notebook = assignments.with_derived_parts(notebook)
    assert assignments.text(derived_notebook) == MASKS_SOLUTION.with_stem("project").read_text("utf-8")


def test_hints_replace_their_placeholder():
    notebook = assignments.with_derived_parts(edited_solution(PADDING_HINTS, r"\1{hints padding_mask}"))
    assert assignments.text(notebook) == MASKS_SOLUTION.read_text("utf-8")
