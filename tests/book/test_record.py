"""Tests, without a browser, of how the reader's record validates stored data, imports files, and finds weak places."""

import json
import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from javascript import Engine, many_examples
from notebooks import ROOT

TIMESTAMP = "2026-11-26T10:00:00.000Z"
OUTLINE = {
    "chapters": [
        {
            "page": "01_one",
            "sections": [
                {"id": "predict-first", "minutes": 5, "questions": 2, "counts": True},
                {"id": "what", "minutes": 10, "questions": 0, "counts": True},
                {"id": "references", "minutes": 1, "questions": 0, "counts": False},
            ],
            "exercises": ["offset"],
        },
        {
            "page": "02_two",
            "sections": [{"id": "why", "minutes": 7, "questions": 1, "counts": True}],
            "exercises": [],
        },
    ],
    "topics": [{"name": "strides", "chapter": 1, "cases": 24}],
    "project": ["train"],
}
TITLES = {
    "chapters": {"01_one": "1 · One", "02_two": "2 · Two"},
    "sections": {"01_one": ["Predict first", "1.1 What?", "References"], "02_two": ["2.1 Why?"]},
    "topics": {"strides": "Strides"},
}
EMPTY_RECORD = {"place": None, "read": {}, "answers": {}, "checks": {}, "route": None, "keys": True}
WRONG_ANSWER = {"section": "predict-first", "first": "wrong", "opened": [1, 0]}
RIGHT_ANSWER = {"section": "predict-first", "first": "right", "opened": [2]}
FAKE_DOM = "class Event {} const document = { dispatchEvent() {} }, addEventListener = () => {};"


SCRIPTS = ("record.js", "record_file.js", "progress.js", "weak.js")


def new_engine():
    """Return an engine that runs the scripts without a browser or storage: a record lasts as long as its engine."""
    scripts = [(ROOT / "book" / name).read_text("utf-8") for name in SCRIPTS]
    data = f"const OUTLINE = {json.dumps(OUTLINE)}, TITLES = {json.dumps(TITLES)};"
    return Engine("\n".join([FAKE_DOM, data, *scripts]))


shared_engine = cache(new_engine)


@pytest.fixture
def engine():
    return new_engine()


def record_at(page, section, **fields):
    return {**EMPTY_RECORD, "place": {"page": page, "section": section, "when": TIMESTAMP}, **fields}


def exported_file(**reader):
    return json.dumps({"transformer-lab": 1, "reader": reader, "practice": {}})


def test_a_record_without_storage_lasts_until_the_page_is_left(engine):
    assert engine("RECORD.read") == EMPTY_RECORD and engine("RECORD.isStored") is False
    engine("RECORD_FILE.add", exported_file(read={"01_one": ["what"]}))
    assert engine("RECORD.read")["read"] == {"01_one": ["what"]}
    engine("RECORD.erase")
    assert engine("RECORD.read") == EMPTY_RECORD


def test_importing_an_exported_file_restores_everything(engine):
    reader = record_at("01_one", "what", read={"01_one": ["what"]}, answers={"01_one": {"k": WRONG_ANSWER}})
    practice = {"strides": {"solved": [1, 2], "missed": {"all_ones": 3}, "due": [{"mistake": "all_ones", "wait": 1}]}}
    engine("RECORD_FILE.add", json.dumps({"transformer-lab": 1, "reader": reader, "practice": practice}))
    text = engine("RECORD_FILE.write")
    engine("RECORD.erase")
    assert engine("RECORD_FILE.add", text) == "The record was added to yours."
    assert engine("RECORD.read") == reader and engine("RECORD.practised") == practice


def test_importing_loses_nothing_of_either_record(engine):
    engine(
        "RECORD_FILE.add",
        exported_file(
            place={"page": "02_two", "section": "why", "when": TIMESTAMP},
            read={"01_one": ["what"]},
            answers={"01_one": {"k": WRONG_ANSWER}},
            checks={"offset": {"checks": 2, "stars": 2}},
        ),
    )
    engine(
        "RECORD_FILE.add",
        exported_file(
            place={"page": "01_one", "section": "what", "when": "2025-01-01T00:00:00.000Z"},
            read={"01_one": ["predict-first"]},
            answers={"01_one": {"k": RIGHT_ANSWER, "other": RIGHT_ANSWER}},
            checks={"offset": {"checks": 5, "stars": 1, "correct": "2026-01-01 10:00 UTC"}},
        ),
    )
    assert engine("RECORD.read") == {
        **record_at("02_two", "why"),  # the place with the later date
        "read": {"01_one": ["what", "predict-first"]},
        "answers": {"01_one": {"k": WRONG_ANSWER, "other": RIGHT_ANSWER}},  # the answer that was imported first counts
        "checks": {"offset": {"checks": 5, "stars": 2, "correct": "2026-01-01 10:00 UTC"}},
    }


def test_the_record_of_the_checks_is_read(engine, tmp_path, monkeypatch, capsys):
    """Import the file that tl.checks writes after one correct and one wrong answer."""
    import transformer_lab as tl

    monkeypatch.setenv("TRANSFORMER_LAB_DATA", str(tmp_path))
    tl.checks.causal_mask(lambda seq: tl.causal_mask(seq))
    tl.checks.softmax(lambda x: x)
    message = engine("RECORD_FILE.add", (tmp_path / "progress.json").read_text("utf-8"))
    assert message == "The record of tl.checks with 2 exercises was added to yours."
    checks = engine("RECORD.read")["checks"]
    assert re.match(r"\d{4}-\d\d-\d\d ", checks["causal_mask"]["correct"]) and "correct" not in checks["softmax"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is not JSON"),
        ("[1, 2]", "neither a record of this page nor one of tl.checks"),
        ("null", "neither a record"),
        ('{"name": "package", "version": "1"}', "neither a record"),
        ('{"transformer-lab": 2}', "from a later edition"),
    ],
)
def test_other_files_are_refused_in_words(engine, text, message):
    assert message in engine("RECORD_FILE.add", text)
    assert engine("RECORD.read") == EMPTY_RECORD


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=9), children, max_size=3),
    max_leaves=9,
)
RECORD_FIELDS = st.sampled_from(["place", "read", "answers", "checks", "keys"])


@many_examples
@given(st.dictionaries(RECORD_FIELDS, ANY_JSON | st.dictionaries(st.just("01_one"), ANY_JSON)))
def test_whatever_a_file_holds_the_page_works(reader):
    engine = shared_engine()
    engine("RECORD_FILE.add", json.dumps({"transformer-lab": 1, "reader": reader, "practice": reader}))
    record, practice_record = engine("RECORD.read"), engine("RECORD.practised")
    assert engine("RECORD_FILE.parse", engine("RECORD_FILE.write"))["record"] == record  # the file is complete
    engine("PROGRESS.nextSection", record)
    engine("WEAK.find", record, practice_record)
    for page in ("01_one", "practice", "assignments/01_one", "how"):
        engine("PROGRESS.pageProgress", record, practice_record, page)


# Progress, weak sections, and the next section


def test_a_chapter_is_done_when_its_core_is_read(engine):
    sections = [
        {"id": "core", "minutes": 4, "questions": 0, "counts": 1, "further": 0},
        {"id": "more", "minutes": 6, "questions": 0, "counts": 1, "further": 1},
    ]
    chapter = {"page": "01_one", "sections": sections, "exercises": []}
    engine("((chapter) => { OUTLINE.chapters[0] = chapter; })", chapter)
    read_further, read_all = ({**EMPTY_RECORD, "read": {"01_one": ids}} for ids in (["more"], ["core", "more"]))
    assert engine("PROGRESS.minutesLeft", EMPTY_RECORD, chapter) == {"core": 4, "further": 6}
    assert engine("PROGRESS.minutesLeft", read_further, chapter) == {"core": 4, "further": 0}
    actual = engine("PROGRESS.pageProgress", read_further, {}, "01_one")
    assert actual == {"done": 0, "total": 1, "label": "0 of 1 core sections read, and 1 further"}
    assert engine("PROGRESS.pageProgress", read_all, {}, "01_one")["done"] == 1


def test_progress_counts_only_what_the_book_contains(engine):
    answers = {"01_one": {"a": WRONG_ANSWER, "b": RIGHT_ANSWER, "old": {**RIGHT_ANSWER, "section": "gone"}}}
    read = {"01_one": ["what", "references", "gone"]}
    record = {
        **EMPTY_RECORD,
        "answers": answers,
        "read": read,
        "checks": {"offset": {"checks": 1, "correct": "2026-01-01"}},
    }
    practice_record = {"strides": {"solved": [1, 2, 3], "missed": {}, "due": []}}
    first = OUTLINE["chapters"][0]
    assert engine("PROGRESS.chapterProgress", record, practice_record, first) == {
        "read": [1, 2],
        "rightAtFirst": [1, 2],
        "solved": [3, 24],
        "assignments": [1, 1],
    }
    assert engine("PROGRESS.minutesLeft", record, first) == {"core": 5, "further": 0}
    assert engine("PROGRESS.pageProgress", record, practice_record, "01_one")["label"] == "1 of 2 core sections read"
    assert engine("PROGRESS.pageProgress", record, practice_record, "practice")["label"] == "3 of 24 solved"
    assert engine("PROGRESS.pageProgress", record, practice_record, "assignments/01_one")["label"] == "1 of 1 correct"
    assert engine("PROGRESS.pageProgress", EMPTY_RECORD, {}, "01_one") is None


@pytest.mark.parametrize(
    ("place", "read", "expected"),
    [
        (("01_one", "what"), {}, ("01_one", "what", "1.1")),
        (("01_one", "predict-first"), {}, ("01_one", "predict-first", 1)),  # a section without a number
        (("01_one", "what"), {"01_one": ["what"]}, ("02_two", "why", "2.1")),  # the section after one that was read
        (("02_two", "why"), {"02_two": ["why"]}, ("01_one", "predict-first", 1)),  # the first section that was left out
        (("01_one", "references"), {}, ("01_one", "predict-first", 1)),
        (("02_two", "why"), {"01_one": ["predict-first", "what"], "02_two": ["why"]}, ("02_two", "why", "2.1")),
    ],
)
def test_the_book_goes_on_where_the_reader_was(engine, place, read, expected):
    actual = engine("PROGRESS.nextSection", record_at(*place, read=read))
    assert (actual["page"], actual["id"], actual["name"]) == expected


@pytest.mark.parametrize("place", [None, {"page": "gone", "section": "what", "when": TIMESTAMP}])
def test_without_a_place_the_book_begins_at_its_beginning(engine, place):
    assert engine("PROGRESS.nextSection", {**EMPTY_RECORD, "place": place}) is None


def test_the_weakest_topic_comes_first(engine):
    record = {
        **EMPTY_RECORD,
        "answers": {"01_one": {"a": WRONG_ANSWER, "b": WRONG_ANSWER, "c": RIGHT_ANSWER}},
        "checks": {"offset": {"checks": 5}, "train": {"checks": 1}, "gone": {"checks": 9}},
    }
    practice_record = {"strides": {"solved": [], "missed": {"all_ones": 2, "other": 1}, "due": []}}
    actual = [
        (entry["title"], entry["detail"], entry["page"]) for entry in engine("WEAK.find", record, practice_record)
    ]
    assert actual == [
        ("offset", "exercise: checked 5 times, not correct yet", "assignments/01_one"),
        ("Strides", "practice: 3 mistakes", "practice"),
        ("1 · One: Predict first", "2 of 3 questions wrong at the first try", "01_one"),
        ("train", "exercise: checked once, not correct yet", "assignments/project"),
    ]
