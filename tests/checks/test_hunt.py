"""The card of a hunt says what a learner's test misses or gets wrong; to the test, all functions look alike."""

import inspect
import re
from copy import deepcopy

import pytest
import torch

import notebooks
import transformer_lab as tl
from assignments import solution_of
from chapter_code import chapter_code
from sampling import every_third
from transformer_lab.checks import hunt_report, observe, record
from transformer_lab.checks.agree import agree, tensors_in
from transformer_lab.checks.hunt import FunctionUnderTest, hunt_of
from transformer_lab.checks.hunt_kinds import kinds_by_id, without_facts
from transformer_lab.checks.hunts import HUNTS, TASKS

weights_hunt = tl.checks.test_attention_weights
QUERY_AND_KEY_SHAPES = (2, 3, 4, 5), (2, 3, 7, 5)


@pytest.fixture(autouse=True)
def temporary_record(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LAB_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(record, "session_reports", {})
    torch.manual_seed(0)


def query_and_key(scale=1):
    query, key = (torch.randn(size) for size in QUERY_AND_KEY_SHAPES)
    return scale * query, key


def shape_test(f):
    return f(*query_and_key()).shape == (2, 3, 4, 7)


def row_sums_test(f):
    assert torch.allclose(f(*query_and_key()).sum(dim=-1), torch.ones(2, 3, 4))


def numbers_test(f, scale=1):
    query, key = query_and_key(scale)
    assert torch.allclose(f(query, key), tl.attention_weights(query, key), atol=1e-4)


def large_numbers_test(f):
    numbers_test(f)
    numbers_test(f, 1000)


def call_without_assert_test(f):
    f(*query_and_key())


def test_a_better_test_catches_more_and_chapter_3_says_how_many():
    n_mistakes = len(kinds_by_id(weights_hunt.exercise))
    caught = [
        weights_hunt.report(test).caught for test in (shape_test, row_sums_test, numbers_test, large_numbers_test)
    ]
    assert caught == sorted(set(caught)) and caught[3] == n_mistakes
    assert caught[0] < 0.3 * n_mistakes and caught[1] < 0.6 * n_mistakes, (
        "a test of shapes or sums must catch only a small share of the mistakes"
    )
    text = (notebooks.ROOT / "chapters" / "03_attention_lookup.ipynb").read_text("utf-8")
    expected = (
        f"know {n_mistakes} mistakes in `attention_weights` alone: a test of the shape catches {caught[0]} of them, a "
        f"test of the row sums {caught[1]}, and a comparison with known numbers {caught[2]}. "
    )
    assert expected in text, f"03_attention_lookup.ipynb, section 3.10, must say: {expected}"


def test_the_card_names_an_escaped_mistake_and_its_effect():
    report = weights_hunt.report(row_sums_test)
    assert (report.status, report.refused, report.stars) == ("incorrect", 0, 0)
    kind_text, count, n_all = report.kinds[0]
    assert kind_text == "wrong numbers, but each row has the right sum" and count == n_all > 10
    match = re.search(
        r"for `query = (.*?)`, `key = (.*?)`, it returns `(.*?)`; it must return `(.*?)`\.", report.message
    )
    query, key, returned, expected = (torch.tensor(eval(numbers)) for numbers in match.groups())
    assert query.numel() + key.numel() <= 6
    assert torch.allclose(tl.attention_weights(query, key), expected, atol=1e-3) and not torch.equal(returned, expected)
    assert not any(mistake.id in str(report) for mistake in weights_hunt.exercise.mistakes.values())
    assert f"{count} of {n_all}  {kind_text}" in str(report) and f"{count} of {n_all}</td>" in report._repr_html_()


def test_a_card_names_the_special_input_that_shows_an_escaped_mistake():
    report = weights_hunt.report(numbers_test)
    (kind,) = report.kinds
    assert kind[0] == "wrong only with queries whose scores lie far apart" and report.stars == 2
    effect = "it returns `nan` at index [0, 0, 0, 0]; it must return"
    assert f"One that escapes, with queries whose scores lie far apart: {effect}" in report.message


@pytest.mark.parametrize(
    "name, message",
    [
        ("merge_last_two", r"with a matrix: its numbers are right, but the result is a copy of its numbers\.$"),
        (
            "broadcast_shape",
            r"\(`a = \(6, 4\)`, `b = \(3, 4\)`\): it returns `\(6, 4\)`; it must raise `ValueError`\.$",
        ),
        (
            "post_norm",
            r"its numbers are right, but it changes its argument `x`\.$",
        ),
        ("strides_of", r"\(`shape = \(\)`\): it returns `\(1,\)`; it must return `\(\)`\.$"),
        ("flat_offset", r"\(`index = \(\)`, `strides = \(\)`\): it raises `IndexError`\.$"),
    ],
)
def test_the_effect_of_a_mistake_is_described(name, message):
    exercise = getattr(tl.checks, name)
    arguments, expected = exercise.probes[0].arguments, exercise.expected[0].value
    report = getattr(tl.checks, f"test_{name}").report(lambda f: agree(f(*deepcopy(arguments)), expected))
    assert re.search(f"One that escapes.*{message}", report.message), report.message


@pytest.mark.parametrize("caught, stars", [(0, 0), (20, 0), (21, 1), (28, 1), (29, 2), (33, 2), (34, 3)])
def test_stars_begin_at_three_fifths_at_85_percent_and_at_all_mistakes(caught, stars):
    report = hunt_report.HuntReport(weights_hunt, "incorrect", caught=caught, known=34)
    assert report.stars == stars
    report.refused = 1
    assert report.stars == 0


# Errors in a test


def refuses_all(f):
    assert False, "never"  # noqa: B011


def demands_equality(f):
    query, key = query_and_key()
    assert torch.equal(f(query, key), weights_hunt.exercise.reference(query, key))


def passes_three_axes(f):
    query, key = query_and_key()
    f(query[0], key[0])


def looks_at_the_name(f):
    assert f.__name__ == "attention_weights"


def looks_at_the_source(f):
    assert "softmax" in inspect.getsource(f)


def never_calls(f):
    assert callable(f)


def calls_an_unwritten_function(f):
    unwritten(f)


def unwritten(*_):
    raise NotImplementedError


@pytest.mark.parametrize(
    "test, status, message",
    [
        (
            refuses_all,
            "incorrect",
            "the course's own function and every other right answer, so it gets no star",
        ),
        (
            demands_equality,
            "incorrect",
            "computes the same sums as the course's own function, but in a different order",
        ),
        (passes_three_axes, "incorrect", r"of shape \(3, 4, 5\).* raises `RuntimeError`, .*docstring promises nothing"),
        (call_without_assert_test, "incorrect", "Even a function that returns `None` passes your test"),
        (looks_at_the_name, "error", r"looks at `f.__name__`"),
        (looks_at_the_source, "error", "looks at the source of `f`"),
        (never_calls, "error", "never calls `f`"),
        (unwritten, "not attempted", "^$"),
        (calls_an_unwritten_function, "not attempted", "Your test calls `unwritten`, which is not written yet"),
        (torch.ones(2), "error", "without calling it"),
    ],
)
def test_a_fault_of_a_test_is_reported(test, status, message):
    report = weights_hunt.report(test)
    assert (report.status, report.stars) == (status, 0)
    assert re.search(message, report.message), report.message


def test_an_endless_test_and_a_slow_test_are_distinguished(monkeypatch):
    kinds_by_id(weights_hunt.exercise)
    monkeypatch.setattr(observe, "TIME_LIMIT", 0.3)

    def endless(f):
        while True:
            pass

    def slow(f):
        total = f(*query_and_key()).sum()
        for _ in range(4000):
            total = total + 1

    assert "did not come to an end" in weights_hunt.report(endless).message
    assert re.search(r"seconds was reached after \d+ functions", weights_hunt.report(slow).message)


outside = torch.ones(2, 3, 4, 5)


def test_the_state_outside_the_test_is_restored_after_each_function():
    def changes_its_input(f):
        outside.mul_(1.5)
        row_sums_test(f)

    def passes_it_to_f(f):
        return f(outside, outside).shape == (2, 3, 4, 4)

    message = weights_hunt.report(changes_its_input).message
    assert "changes `outside`, which is outside the test" in message and (outside == 1).all()
    assert "outside" not in weights_hunt.report(passes_it_to_f).message
    in_place = tl.checks.test_normalize_rows
    rows = torch.full((2, 3), 2.0)
    assert "outside" not in in_place.report(lambda f: f(rows).shape == (2, 3)).message
    assert (rows == 2).all(), "the known mistake that divides in place must get a copy of the rows"


def test_a_setting_of_the_session_is_restored():
    def in_double(f):
        torch.set_default_dtype(torch.float64)
        row_sums_test(lambda *given: f(*given).float())

    assert "changes a setting of the whole session, `set_default_dtype`" in weights_hunt.report(in_double).message
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize("false", [False, torch.tensor(False), torch.tensor([True, False]).numpy(), torch.zeros(2) > 1])
def test_a_false_of_any_type_refuses_a_function(false):
    assert weights_hunt.report(lambda f: false if f(*query_and_key()) is not None else None).refused


# A correct answer and a mistake look the same to a test


def test_a_function_under_test_has_no_name_that_identifies_it():
    exercise = weights_hunt.exercise
    mistake = exercise.mistakes["no_scale"].function
    for function in (exercise.reference, *exercise.equivalents.values(), mistake):
        f = FunctionUnderTest(exercise, function)
        assert f.__name__ == "attention_weights" and repr(f) == "<a function attention_weights>"
        assert str(inspect.signature(f)) == "(query, key)"
        query, key = query_and_key()
        assert torch.equal(f(key=key, query=query), function(query, key))
        with pytest.raises(TypeError):
            f(query, key, scale=None)


def test_a_mistake_that_only_a_check_can_see_is_not_counted():
    exercise = tl.checks.linear_attention
    assert exercise.mistakes.keys() - kinds_by_id(exercise).keys() == {
        "each_pair_compared",
        "row_by_row",
    }
    assert "copied" in kinds_by_id(tl.checks.transposed), "a test can detect a copy by writing into it"
    assert without_facts(tl.checks.softmax) is tl.checks.softmax


@pytest.mark.parametrize("exercise", every_third(pytest.param(e, id=e.name) for e in tl.checks.EXERCISES))
def test_a_test_that_looks_at_nothing_is_reported(exercise):
    """The first test ignores the result, and the second unpacks the result and forgets the `assert`."""
    arguments = exercise.probes[0].arguments

    def only_calls(f):
        f(*deepcopy(arguments))

    def compares_in_vain(f):
        result = f(*deepcopy(arguments))
        [tensor.shape == () for tensor in tensors_or_error(result)] or result + type(result)()

    report = hunt_of(exercise).report(only_calls)
    assert "Even a function that returns `None` passes your test" in report.message, report.message
    report = hunt_of(exercise).report(compares_in_vain)
    assert "Even a function that returns nonsense passes your test" in report.message, report.message


def tensors_or_error(result):
    """Return the tensors of a result; raise an error if the result is `None`."""
    if result is None:
        raise TypeError
    return tensors_in(result)


def test_a_hunt_must_get_an_exercise_of_the_course():
    with pytest.raises(
        TypeError, match=r"^exercise must be one of the course's exercises, such as tl.checks.softmax, got <f"
    ):
        tl.checks.hunt(shape_test, shape_test)


# In the course


def compares_numbers(f):
    x = torch.rand(2, 3, 4)
    assert torch.equal(f(x, 0, 2), x.transpose(0, 2))


def compares_row_sums(f):
    assert torch.allclose(f(torch.rand(2, 3, 4)).sum(dim=-1), torch.ones(2, 3))


def compares_the_shape(f):
    assert f(torch.rand(2, 3, 7, 5)).shape == (2, 7, 15)


def compares_the_shape_and_the_sum(f):
    x = torch.rand(2, 3, 7, 5)
    compares_the_shape(f)
    assert torch.allclose(f(x).sum(), x.sum())


def checks_that_the_past_stays(f):
    query, key = torch.randn(2, 2, 3, 6, 5)
    value, mask = torch.randn(2, 3, 6, 4), torch.ones(6, 6, dtype=torch.bool).tril()
    before = f(query, key, value, mask)[:, :, :-1]
    value[:, :, -1] += 5
    assert torch.allclose(f(query, key, value, mask)[:, :, :-1], before)


def checks_mean_0_and_variance_1(f):
    result = f(torch.randn(2, 7, 5), torch.ones(5), torch.zeros(5), 1e-5)
    assert torch.allclose(result.mean(dim=-1), torch.zeros(2, 7), atol=1e-5)
    assert torch.allclose(result.var(dim=-1, correction=0), torch.ones(2, 7), atol=1e-3)


def compares_the_size_of_gpt2s_block(f):
    assert f(768, 3072, True) == 7_087_872


def checks_ones_and_the_past(f):
    query, key = torch.randn(2, 2, 3, 7, 5)
    value = torch.randn(2, 3, 7, 4)
    assert torch.allclose(f(query, key, torch.ones(2, 3, 7, 4)), torch.ones(2, 3, 7, 4))
    before = f(query, key, value)[:, :, :-1]
    value[:, :, -1] += 5
    assert torch.allclose(f(query, key, value)[:, :, :-1], before)


def checks_lengths_and_position_0(f):
    x = torch.randn(2, 3, 7, 6)
    assert torch.allclose(f(x, torch.arange(7), 50.0).norm(dim=-1), x.norm(dim=-1), rtol=1e-4)
    assert torch.allclose(f(x, torch.zeros(7, dtype=torch.long), 50.0), x, atol=1e-5)


def checks_lengths_of_one(f):
    states, real = torch.randn(3, 6, 4), torch.arange(6) < torch.tensor([[2], [6], [3]])
    assert torch.allclose(f(states, real).norm(dim=-1), torch.ones(3), atol=1e-5)


def checks_the_loss_of_equal_guesses(f):
    assert torch.allclose(f(torch.zeros(2, 7, 5), torch.randint(5, (2, 7))), torch.tensor(5.0).log())


INSUFFICIENT_TESTS = {
    "transposed": compares_numbers,
    "normalize_rows": compares_row_sums,
    "attention_weights": row_sums_test,
    "merge_heads": compares_the_shape_and_the_sum,
    "masked_attention": checks_that_the_past_stays,
    "layer_norm": checks_mean_0_and_variance_1,
    "block_parameters": compares_the_size_of_gpt2s_block,
    "causal_linear_attention": checks_ones_and_the_past,
    "rotate": checks_lengths_and_position_0,
    "mean_pool": checks_lengths_of_one,
    "next_token_loss": checks_the_loss_of_equal_guesses,
}


@pytest.mark.parametrize("name", HUNTS)
def test_the_test_that_the_text_asks_about_is_not_enough(name):
    report = getattr(tl.checks, f"test_{name}").report(INSUFFICIENT_TESTS[name])
    assert report.refused == 0 and 0 < report.caught < 0.85 * report.known, report


def test_a_sum_catches_no_merge_that_the_shape_lets_pass():
    merges = tl.checks.test_merge_heads
    assert merges.report(compares_the_shape_and_the_sum).caught == merges.report(compares_the_shape).caught


@pytest.mark.parametrize("name", HUNTS)
def test_the_test_in_every_solution_gets_all_stars(name):
    """Both versions of the test in the solution must get all stars."""
    folder = TASKS[test := f"test_{name}"]
    solution = chapter_code(f"solutions/{solution_of(folder).stem}")
    for function in (solution[test], solution[f"{test}_otherwise"]):
        report = getattr(tl.checks, test).report(function)
        assert report.stars == 3, report


def test_the_record_keeps_the_most_stars(capsys):
    tl.checks.hunt(weights_hunt.exercise, numbers_test)
    tl.checks.hunt(weights_hunt.exercise, shape_test)
    assert record.read()["test_attention_weights"] == {"checks": 2, "stars": 2}
    tl.checks.progress()
    assert "○ test_attention_weights       ★★☆, checks: 2" in capsys.readouterr().out
    tl.checks.summary()
    assert capsys.readouterr().out.splitlines()[-1] == "  ✗ test_attention_weights   ☆☆☆"
    tl.checks.hunt(weights_hunt.exercise, large_numbers_test)
    capsys.readouterr()
    tl.checks.summary()
    assert capsys.readouterr().out.startswith("Assignment 3: 1 of 7")
    tl.checks.hunt(weights_hunt.exercise, numbers_test)
    assert {"stars": 3, "checks": 4}.items() < record.read()["test_attention_weights"].items()


def test_nbgrader_gets_the_stars_as_points(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert tl.checks.hunt(weights_hunt.exercise, numbers_test) == 2
    with pytest.raises(AssertionError, match=r"^<test_attention_weights: \d+ of \d+ mistakes caught>$"):
        tl.checks.hunt(weights_hunt.exercise, shape_test)
