"""Every topic has enough cases and short texts, and no two of its mistakes always give the same answer."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import transformer_lab as tl
from javascript import Engine
from transformer_lab import practice
from transformer_lab.checks import course
from transformer_lab.labs import Practice
from transformer_lab.labs.lab import script
from transformer_lab.practice.answers import Choice, Number, Numbers, Order
from transformer_lab.practice.draws import write
from transformer_lab.practice.topic import Topic, rule

TOPICS = practice.topics()
each_topic = pytest.mark.parametrize("topic", TOPICS.values(), ids=TOPICS)
SENTENCE = re.compile(r"[.?!](?=\s+[A-Z0-9`(]|$)")


@pytest.fixture(scope="module")
def engine():
    return Engine(SimpleNamespace(_esm=script("practice_answers", "practice_record")))


@each_topic
def test_no_two_mistakes_always_give_the_same_answer(topic):
    """If two mistakes always gave the same answer, readers would always see two possible reasons, and never a hint."""
    answers_by_mistake = {}
    for case in topic.table()["cases"]:
        for answer, mistakes in case["wrong"]:
            for mistake in mistakes:
                answers_by_mistake.setdefault(mistake, []).append((case["question"], case.get("given"), str(answer)))
    assert len({tuple(answers) for answers in answers_by_mistake.values()}) == len(answers_by_mistake)


@each_topic
def test_topic_has_enough_cases_and_short_texts(topic, engine):
    table = json.loads(topic.table_json)
    cases, mistakes = table["cases"], table["mistakes"]
    size = len(topic.table_json.encode())
    assert len(cases) >= 20 and len(mistakes) >= 5 and size <= 20_000, (len(cases), len(mistakes), size)
    assert len({(case["question"], case.get("given")) for case in cases}) == len(cases)
    assert len({str(case["right"]) for case in cases}) > 1, "the right answers differ"
    assert engine("everyAnswerIsFound", table) == []

    # Texts are short enough for a phone.
    assert 3 <= len(topic.title) <= 40
    for case in cases:
        assert len(case["question"]) <= 240 and 1 <= len(SENTENCE.findall(case["question"])) <= 2, case["question"]
        assert case["question"].count("`") % 2 == 0
        assert all(len(line) <= 36 for line in case.get("given", "").splitlines()), case["given"]
        assert all(1 <= len(names) <= 2 for _, names in case["wrong"])
    for name, explanation, guiding_question in mistakes:
        assert explanation[-1] in ".?!" and (not guiding_question or guiding_question[-1] in ".?!"), (
            name,
            explanation,
            guiding_question,
        )
        assert (
            len(f"{explanation} {guiding_question}") <= 330 and (explanation + guiding_question).count("`") % 2 == 0
        ), (
            name,
            explanation,
            guiding_question,
        )
        assert re.match(r"[^:;.]{8,}[:;.]", f"{explanation} "), f"{name}: the first clause must make sense alone"
    assert all(len(SENTENCE.findall(text)) <= 2 for text in topic.mistake_texts.values())


# In JavaScript, the correct answer of each case is accepted, and each wrong answer matches only itself.
FIND_ANSWERS = """
function everyAnswerIsFound(table) {
    const failed = [];
    for (const example of table.cases) {
        const answers = [[example.right, null], ...example.wrong];
        for (const [answer, mistakes] of answers) {
            const parsed = parseAnswer(formatAnswer(answer, table), table, example);
            const matching = answers.filter(([other]) => parsed !== null && matches(parsed, other, table));
            if (matching.length !== 1 || matching[0][1] !== mistakes) failed.push([example.question, answer, parsed]);
            if (mistakes && !matches(parsed, example.right, table)) remarkOn(parsed, example, table);
        }
    }
    return failed;
}
"""


@pytest.fixture(scope="module", autouse=True)
def _define_find_answers(engine):
    engine._context.eval(FIND_ANSWERS)


def test_every_topic_knows_its_name_and_its_chapter():
    chapters = {int(path.stem[:2]) for path in (Path(__file__).parents[2] / "chapters").glob("[0-9]*.ipynb")}
    assert all(topic.name == name and topic.chapter in chapters for name, topic in TOPICS.items())
    with pytest.raises(ValueError, match=r"topic must be one of .*'offset', .*, got 'x'"):
        Practice("x")


def test_topics_of_a_new_chapter_need_only_its_file(monkeypatch, tmp_path):
    for number in (98, 101):
        text = f"from transformer_lab.practice import ch1\n\nof_chapter_{number} = ch1.strides_of\n"
        (tmp_path / f"ch{number}.py").write_text(text)
    monkeypatch.setattr(practice, "__path__", [*practice.__path__, str(tmp_path)])
    topics = practice.topics.__wrapped__()
    assert [*topics] == [*TOPICS, "of_chapter_98", "of_chapter_101"]
    assert [topic.chapter for topic in topics.values()][-2:] == [98, 101]


# Topics whose rule is also an exercise. Each topic has the exercise's name, a function that converts a case to the
# arguments of the exercise's reference, and a function that converts the reference's result to the topic's answer.
TOPICS_LIKE_EXERCISES = {
    "shape_of_a_sum": ("broadcast_shape", lambda a, b: (a, b), lambda shape: shape),
    "shape_of_a_product": ("matmul_shape", lambda a, b: (a, b), lambda shape: shape),
    "softmax_of_logarithms": (
        "softmax",
        lambda base, counts: ((base + torch.tensor(counts).double().log())[None], -1),
        lambda weights: weights[0],
    ),
    "weights_of_two_keys": (
        "attention_weights",
        lambda query, *keys: (query[None].double(), torch.stack(keys).double()),
        lambda weights: weights[0],
    ),
    "merged_rows": ("merge_heads", lambda heads: (heads[None],), lambda rows: rows[0]),
    "layer_norm_by_hand": (
        "layer_norm",
        lambda x, weight, bias: (x[None].double(), torch.full((4,), weight), torch.full((4,), bias), 0),
        lambda y: y[0],
    ),
    "rms_norm_by_hand": (
        "rms_norm",
        lambda x, weight: (x[None].double(), torch.full((4,), weight), 0),
        lambda y: y[0],
    ),
}


@pytest.mark.parametrize("name", TOPICS_LIKE_EXERCISES)
def test_rule_agrees_with_its_exercise(name):
    topic = TOPICS[name]
    exercise, arguments_of, part_of = TOPICS_LIKE_EXERCISES[name]

    def answer(function, arguments, part):
        try:
            result = part(function(*arguments))
        except (ValueError, RuntimeError) as error:
            result = error
        return topic.answer.from_result(result, arguments)

    for seed in range(60):
        arguments = topic._arguments(seed)
        actual = answer(topic.exercise.reference, arguments, lambda result: result)
        expected = answer(course.load(exercise).reference, arguments_of(*arguments), part_of)
        assert actual is not None
        assert topic.answer.indistinguishable(actual, expected), arguments


def test_table_does_not_depend_on_the_default_dtype():
    before = TOPICS["head_1"].table()
    torch.set_default_dtype(torch.float64)
    try:
        assert TOPICS["head_1"].table() == before
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("order", ["pre-norm", "post-norm"])
@pytest.mark.parametrize("section", ["encoder", "decoder"])
def test_steps_of_a_block_match_the_layers(order, section):
    layer = {"encoder": tl.EncoderLayer, "decoder": tl.DecoderLayer}[section](8, 2, 16, norm_first=order == "pre-norm")
    called_steps, x = [], torch.randn(1, 3, 8)
    for name, module in layer.named_children():
        step_name = name.replace("norm", "norm ").replace("_", "-")
        module.register_forward_pre_hook(lambda *_, step_name=step_name: called_steps.append(step_name))
    layer(x) if section == "encoder" else layer(x, x)
    block_rule = practice.topics()["order_of_a_block"].exercise.reference
    parts = {"encoder": [("encoder", 6)], "decoder": [("attentions", 6), ("last_parts", 3)]}[section]
    steps = [step for name, last in parts for step in block_rule(order, name, False)[-last:]]
    assert [step for step in steps if "sum" not in step] == [step for step in called_steps if step in steps]


# A custom topic


@rule(inputs=lambda draw, n=3: (float(n), draw(2)))
def halved(n, x):
    return n / 2


@halved.mistake
def doubled(n, x):
    """You double it. It comes from reading too fast. Is a half more or less than the whole?"""
    return n * 2


@halved.mistake
def doubled_as_well(n, x):
    """It is twice as large, which is more. Which number is less?"""
    return n + n


@halved.mistake
def raises_an_error(n, x):
    """It raises. Why?"""
    raise ValueError


@halved.mistake
def slightly_off(n, x):
    """It is a little off. Which digit?"""
    return n / 2 + 0.01


def topic_of_halves(**settings):
    defaults = {"title": "Halves", "rule": halved, "question": lambda n, x: f"Half of {n}?", "answer": Number(places=1)}
    return Topic(**defaults | {"size_ranges": {"n": (1, 60)}} | settings)


def test_table_matches_the_rule():
    table = topic_of_halves().table()
    assert len(table["cases"]) == 24 and [name for name, *_ in table["mistakes"]] == ["doubled", "doubled_as_well"]
    assert table["mistakes"][0][1:] == ["You double it.", "Is a half more or less than the whole?"]
    for case in table["cases"]:
        n = float(re.search(r"\d+", case["question"])[0])
        assert case["right"] == n / 2 and case["wrong"] == [[2 * n, [0, 1]]], "a nearly right answer is not a mistake"


def test_case_with_three_equal_mistakes_is_left_out():
    assert topic_of_halves(mistake_texts={"slightly_off": "So."}).table()["cases"]
    topic_with_three_mistakes = topic_of_halves(
        asked_value=lambda result, n, x: result if result <= n else -1.0, accepts=lambda n, x: n > 3
    )
    assert all(len(names) == 2 for case in topic_with_three_mistakes.table()["cases"] for _, names in case["wrong"])
    assert (
        topic_of_halves(asked_value=lambda result, n, x: float(result > n / 2), answer=Number()).table()["cases"] == []
    )


@pytest.mark.parametrize("name", [name for name, topic in TOPICS.items() if getattr(topic.answer, "refusal", "")])
def test_some_cases_raise_if_any_can(name):
    right_answers = [case["right"] for case in json.loads(TOPICS[name].table_json)["cases"]]
    assert 3 <= right_answers.count("error") <= len(right_answers) / 2


def test_error_is_an_answer_only_with_refusal():
    table = topic_of_halves(answer=Number(places=1, refusal="It raises")).table()
    assert "raises_an_error" in [name for name, *_ in table["mistakes"]]
    assert ["error", [2]] in table["cases"][0]["wrong"]


def test_unknown_mistake_names_raise():
    with pytest.raises(ValueError, match="mistakes of 'Halves' must be known to its rule, got tripled"):
        topic_of_halves(excluded_mistakes=("tripled",)).table()


def test_inputs_are_rounded_as_displayed():
    displayed_inputs = []
    topic_of_halves(question=lambda n, x: displayed_inputs.append(x) or f"{n}", decimals=1).table()
    assert all(x.dtype == torch.float64 and write(x) == write(x, 4).replace("000", "") for x in displayed_inputs)


@pytest.mark.parametrize(
    ("form", "result", "answer"),
    [
        (Number(), torch.tensor(6), 6),
        (Number(), 6.5, None),
        (Number(places=2), 1 / 3, 0.3333),
        (Number(places=1), -torch.inf, "-inf"),
        (Number(), torch.ones(2), None),
        (Number(), ValueError("no"), None),
        (Numbers(), torch.Size([2, 3]), [2, 3]),
        (Numbers(), (), []),
        (Numbers(refusal="no"), ValueError("no"), "error"),
        (Choice({True: "a view", False: "a copy"}), False, 1),
        (Choice({True: "a view", False: "a copy"}), 3, None),
        (Order(("b", "a", "c")), ("c", "a", "b"), [2, 0, 1]),
        (Order(("b", "a", "c")), ("c", "a"), None),
    ],
)
def test_a_result_becomes_an_answer_or_none(form, result, answer):
    assert form.from_result(result, ()) == answer


def test_own_topic_can_be_practised():
    assert repr(Practice(topic_of_halves())) == "Practice(topic='Halves', case=0)"


# Typed input.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3,4,5", [3, 4, 5]),
        ("(3, 4, 5)", [3, 4, 5]),
        ("[3 4 5]", [3, 4, 5]),
        ("torch.Size([3, 4])", [3, 4]),
        ("(7,)", [7]),
        ("()", []),
        ("3*4, 2×2 ; 2 ** 3", [12, 4, 8]),
        ("1e3 -0.5 1/4", [1000, -0.5, 0.25]),
        ("−1, 2", [-1, 2]),
    ],
)
def test_several_numbers_are_parsed_in_any_notation(engine, text, value):
    assert engine("parseNumbers", text, {"places": 0}, 3) == {"value": value, "text": text}


@pytest.mark.parametrize(
    ("text", "value"), [("1,024", 1024), (" 12 ", 12), ("(5)", 5), ("2^10", 1024), ("4*5*6", 120), ("+.5", 0.5)]
)
def test_one_number_is_parsed_in_any_notation(engine, text, value):
    assert engine("parseOneNumber", text)["value"] == value


@pytest.mark.parametrize(
    ("given", "right", "places", "is_right"),
    [
        (0.27, 0.2689, 2, True),
        (0.2689, 0.2689, 2, True),
        (0.26, 0.2689, 2, False),
        (0.27, 0.265, 2, True),
        (6, 6, 0, True),
        (6.004, 6, 0, False),
        ([0.27, 0.73], [0.2689, 0.7311], 2, True),
        ([0.27], [0.2689, 0.7311], 2, False),
        ("error", 6, 0, False),
    ],
)
def test_tolerance_is_half_a_unit_of_the_last_place(engine, given, right, places, is_right):
    assert engine("matches", given, right, {"places": places}) == is_right


@pytest.mark.parametrize("text", ["-inf", "-∞", "−Infinity"])
def test_infinity_is_a_number(engine, text):
    assert engine._context.eval(f"matches(parseOneNumber({text!r}).value, '-inf', {{ places: 2 }})")


def test_decimal_comma_gets_an_error_message(engine):
    assert engine("parseOneNumber", "0,27") == {"error": "Please write a decimal point: “0.27”."}
    for text in ("0,27, 0,73", "0,27; 0,73", "0,27 0,73"):
        assert engine("parseNumbers", text, {"places": 2}, 2) == {"error": "Please write a decimal point: “0.27”."}
    assert engine("parseNumbers", "0,1,0,0", {"places": 2}, 4)["value"] == [0, 1, 0, 0]


@pytest.mark.parametrize("text", ["", "(", "-", "3,", "3, -", "2*", "1.", "1e", "-in", "torch.Si", "(3, 4"])
def test_incomplete_answer_is_no_error(engine, text):
    assert "error" not in engine("parseNumbers", text, {"places": 2}, 3)
    assert "error" in engine("parseNumbers", f"{text} x", {"places": 2}, 3)


@pytest.mark.parametrize(
    ("form", "case", "given", "remark"),
    [
        ({"kind": "number", "places": 0}, {"right": 6}, 7, "Your number is too large."),
        ({"kind": "number", "places": 0}, {"right": 6}, -6, "The sign is wrong."),
        ({"kind": "number", "places": 2}, {"right": 0.2689}, 0.26, "Almost right: check the last decimal place."),
        (
            {"kind": "numbers", "places": 0},
            {"right": [3, 4, 5]},
            [3, 4],
            "The right answer has 3 numbers; yours has two.",
        ),
        ({"kind": "numbers", "places": 0}, {"right": [3, 4, 5]}, [3, 4, 6], "Only the third number is wrong."),
        ({"kind": "numbers", "places": 0}, {"right": [3, 4, 5]}, [5, 4, 3], "the right numbers, in a different order."),
        ({"kind": "numbers", "places": 0}, {"right": [3, 4, 5]}, [1, 4, 1], "The first and third numbers are wrong."),
        ({"kind": "numbers", "places": 0}, {"right": [3, 4]}, [1, 1], "None of the numbers is right."),
        (
            {"kind": "numbers", "places": 2, "total": 1, "total_of": "Weights"},
            {"right": [0.5, 0.5]},
            [0.5, 0.4],
            "Weights add up to 1; yours add up to 0.9.",
        ),
        ({"kind": "table", "places": 0}, {"right": [[1, 2], [3, 4]]}, [[1, 2], [4, 3]], "Two numbers are wrong, the f"),
        ({"kind": "mask"}, {"right": "10/11"}, "11/11", "1 cell too many; look at row 0."),
        ({"kind": "mask"}, {"right": "10/11", "rows": ["3", "4"]}, "11/11", "1 cell too many; look at row 3."),
        ({"kind": "mask"}, {"right": "10/11", "rows": ["cat", "sat"]}, "11/11", "look at row “cat”."),
        ({"kind": "mask"}, {"right": "10/11"}, "11/00", "1 cell too many and 2 cells missing; look at row 0."),
        ({"kind": "order"}, {"right": [2, 0, 1]}, [2, 1, 0], "The first step is right, but the next is wrong."),
        ({"kind": "number", "places": 0}, {"right": 6}, "error", "This question has a numerical answer."),
    ],
)
def test_unrecognised_answers_get_a_remark(engine, form, case, given, remark):
    assert remark in engine("remarkOn", given, case, form)


# The next case.


def test_a_missed_mistake_comes_back_with_different_numbers(engine):
    cases = [{"wrong": [[0, [i % 2]]]} for i in range(8)]
    topic = {"name": "t", "mistakes": [["even", "", ""], ["odd", "", ""]], "cases": cases}
    engine._context.eval("recordMissed('t', ['odd'])")
    index, asked_cases = 1, []
    for _ in range(4):
        actual = engine("nextCase", topic, index)
        index = actual["index"]
        asked_cases.append((index, actual["isRepeat"]))
    assert asked_cases == [(2, False), (3, False), (5, True), (6, False)]


def test_solved_cases_repeat_after_all_are_solved(engine):
    topic = {"name": "s", "mistakes": [], "cases": [{"wrong": []}] * 3}
    engine._context.eval("recordSolved('s', 1)")
    assert engine("nextCase", topic, 0)["index"] == 2
    for position in range(3):
        engine._context.eval(f"recordSolved('s', {position})")
    assert engine("nextCase", topic, 0)["index"] == 1
