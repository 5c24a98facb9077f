"""The learner's record loses no result, and `summary` and `progress` report the results correctly."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

import transformer_lab as tl
from transformer_lab.checks import record
from transformer_lab.checks.hunts import tasks

TASKS_OF_ASSIGNMENT_4 = tasks("ch4_multi_head")


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LAB_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(record, "session_reports", {})
    return tmp_path / "data"


*_, right_answer = tl.checks.merge_heads.equivalents.values()
wrong_answer = tl.checks.merge_heads.mistakes["reshape_alone"].function


def stub(*arguments):
    raise NotImplementedError


def test_an_exercise_that_was_correct_once_stays_correct(data_folder):
    check = tl.checks.merge_heads
    check(stub)
    assert not data_folder.exists()  # a check of an unwritten function writes nothing
    check(wrong_answer)
    assert record.read() == {"merge_heads": {"checks": 1}}
    check(right_answer)
    first_entry = record.read()["merge_heads"]
    check(wrong_answer)
    assert record.read()["merge_heads"] == {**first_entry, "checks": 3} and "UTC" in first_entry["correct"]
    old_entry = {**first_entry, "correct": "2020-01-01 00:00 UTC"}
    record._write({"merge_heads": old_entry})
    check(right_answer)
    assert record.read()["merge_heads"] == {**old_entry, "checks": 3}


def test_the_courses_own_function_is_not_recorded(data_folder, capsys):
    report = tl.checks.merge_heads(tl.checks.merge_heads.reference)
    assert report.status == "not attempted" and "the course's own" in capsys.readouterr().out
    assert not data_folder.exists()


def test_the_summary_shows_the_latest_assignment_of_this_session(capsys):
    tl.checks.merge_heads(right_answer)
    tl.checks.split_heads(stub)
    tl.checks.multi_head_attention(lambda x, w_q, w_k, w_v, w_o, n_heads: None)
    capsys.readouterr()
    tl.checks.summary()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Assignment 4: 1 of {len(TASKS_OF_ASSIGNMENT_4)}"
    signs = {"merge_heads": "✓", "split_heads": "○", "multi_head_attention": "✗"}
    assert [line.split()[0] for line in lines[1:]] == [signs.get(task, "○") for task in TASKS_OF_ASSIGNMENT_4]
    assert lines[3].split(maxsplit=2)[2] == "incorrect" and lines[4].split(maxsplit=2)[2] == "not attempted"
    tl.checks.softmax(stub)
    tl.checks.summary()
    assert "Assignment 3: 0 of 7" in capsys.readouterr().out


def test_a_summary_without_a_check_says_so(capsys):
    tl.checks.summary()
    assert capsys.readouterr().out == "No check has run yet. Run the cells above first.\n"


def test_progress_shows_the_course_and_can_be_handed_in(capsys, tmp_path, data_folder):
    tl.checks.merge_heads(right_answer)
    capsys.readouterr()
    tl.checks.progress(tmp_path / "progress.txt")
    printed = capsys.readouterr().out
    assert f"Assignment 4: 1 of {len(TASKS_OF_ASSIGNMENT_4)}" in printed and "Assignment 1: 0 of 6" in printed
    assert str(data_folder / "progress.json") in printed
    entry = record.read()["merge_heads"]
    assert f"✓ merge_heads                  correct since {entry['correct']}, checks: 1" in printed
    file_text = (tmp_path / "progress.txt").read_text("utf-8")
    assert file_text.startswith("Transformer Lab, ") and printed in file_text


def test_entries_of_a_different_version_of_the_course_stay(data_folder):
    data_folder.mkdir()
    (data_folder / "progress.json").write_text(
        json.dumps({"an_older_exercise": {"checks": 2, "correct": "2026-01-01"}})
    )
    tl.checks.merge_heads(right_answer)
    assert record.read()["an_older_exercise"] == {"checks": 2, "correct": "2026-01-01"}


def test_an_exercise_that_moved_to_another_assignment_stays_solved(data_folder, capsys):
    """`rotate` and `mean_pool` used to be in one assignment; the record stores no names of assignments."""
    data_folder.mkdir()
    solved_entry = {"checks": 2, "correct": "2026-11-24 10:00 UTC"}
    old_entries = {"rotate": solved_entry, "mean_pool": solved_entry, "test_rotate": {**solved_entry, "stars": 3}}
    (data_folder / "progress.json").write_text(json.dumps(old_entries))
    tl.checks.progress()
    ninth, tenth = re.split(r"Assignment (?:9|10): ", capsys.readouterr().out)[1:]
    assert "✓ rotate " in ninth and "✓ test_rotate " in ninth and "✓ mean_pool " in tenth


@pytest.mark.parametrize("nonsense", ["", "{", "[]", '{"merge_heads": 3}', "\x00"])
def test_a_file_that_cannot_be_read_is_kept_aside(data_folder, nonsense):
    data_folder.mkdir()
    (data_folder / "progress.json").write_text(nonsense)
    tl.checks.merge_heads(right_answer)
    assert record.read()["merge_heads"]["checks"] == 1
    assert (data_folder / "progress.unreadable.json").read_text() == nonsense


def test_a_card_is_shown_even_if_the_record_cannot_be_written(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRANSFORMER_LAB_DATA", str(tmp_path / "file"))
    assert tl.checks.merge_heads(right_answer).status == "correct"
    output = capsys.readouterr()
    assert output.out.startswith("✓ merge_heads") and "could not be written" in output.out + output.err


def test_nbgrader_sees_an_error_where_the_answer_is_wrong(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert tl.checks.merge_heads(right_answer).status == "correct"
    for function in (wrong_answer, stub):
        with pytest.raises(AssertionError, match=r"^<merge_heads: "):
            tl.checks.merge_heads(function)


NOTE_150_CHECKS = """
import sys
from transformer_lab.checks import record
from transformer_lab.checks.report import Report


class Exercise:
    def __init__(self, name):
        self.name = name


print("ready", flush=True)
sys.stdin.readline()
for i in range(150):
    name = sys.argv[1] if i % 2 else "shared"
    record.store(Report(Exercise(name), "correct"))
"""
HOLD_THE_LOCK = """
from transformer_lab.checks import record

record.path().parent.mkdir(parents=True, exist_ok=True)
with record._file_lock():
    print("ready", flush=True)
    input()
"""


def start_process(code, *arguments):
    """Start a process that runs this code, and wait until it prints that it is ready."""
    command = [sys.executable, "-c", code, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stdout.readline() == "ready\n"
    return process


def test_processes_that_write_at_once_lose_nothing():
    processes = [start_process(NOTE_150_CHECKS, f"own_{i}") for i in range(3)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0
    checks = {name: entry["checks"] for name, entry in record.read().items()}
    assert checks == {"own_0": 75, "own_1": 75, "own_2": 75, "shared": 225}


def test_a_lock_of_a_stopped_or_dead_process_blocks_no_check(monkeypatch):
    holder = start_process(HOLD_THE_LOCK)
    monkeypatch.setattr(record, "LOCK_TIMEOUT", 0.2)
    tl.checks.merge_heads(right_answer)  # is recorded after the timeout, even though the lock is held
    assert record.read()["merge_heads"]["checks"] == 1
    holder.kill()
    holder.communicate(timeout=60)
    monkeypatch.setattr(record, "LOCK_TIMEOUT", 600)  # the test would hang if the check waited for the dead process
    start = time.monotonic()
    tl.checks.merge_heads(right_answer)
    assert record.read()["merge_heads"]["checks"] == 2 and time.monotonic() - start < 300


def test_the_record_is_written_on_systems_without_file_locks(monkeypatch):
    monkeypatch.setattr(record, "fcntl", None)
    monkeypatch.setattr(record, "msvcrt", None)
    tl.checks.merge_heads(right_answer)
    assert record.read()["merge_heads"]["checks"] == 1


def test_a_crash_while_the_record_is_written_loses_nothing(data_folder, monkeypatch):
    tl.checks.merge_heads(right_answer)
    before = record.read()
    monkeypatch.setattr(record.json, "dumps", lambda *_, **__: "{ half")
    monkeypatch.setattr(type(data_folder), "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        tl.checks.merge_heads(right_answer)
    assert record.read() == before
