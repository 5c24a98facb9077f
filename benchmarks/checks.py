"""Times each check on a correct answer, and counts the mistakes that it names, among known mistakes and in the bank.

python benchmarks/checks.py
python benchmarks/checks.py --bank               only the bank
python benchmarks/checks.py --cards [held_out]   for each wrong answer of the bank, or of one part of the bank: the
                                                 mistake, and what the check says
python benchmarks/checks.py --unhit              for each exercise, the known mistakes that no answer of the bank makes
"""

import argparse
import statistics
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import bank

import transformer_lab as tl
from transformer_lab.checks.diagnose import diagnose
from transformer_lab.checks.observe import run_guarded

REPEATS = 5
COLUMNS = ("right", "rejected", "known", "named", "accepted")
# The possible outcomes of an answer. A card that names no mistake says where to look ("place"), or only shows numbers
# ("numbers"). "two": the answer has two slips. "both": the card names both slips.
OUTCOMES = ("right", "refused", "wrong", "accepted", "named", "two", "both", "false", "unjudged", "place", "numbers")
ONLY_NUMBERS = ("With ", "The smallest input that shows the mistake")  # beginnings of the paragraphs that show numbers
VERDICTS_FILE = Path(bank.__file__).with_name("judged.txt")


def check_report(exercise, function):
    """Return a check's report on a function, without showing the card."""
    report, _ = run_guarded(lambda: diagnose(exercise, function))
    return report


def measure_seconds(exercise, function):
    """Run a check without showing the card; return the seconds of the first run, and the median of the later runs."""
    times = []
    for _ in range(1 + REPEATS):
        start = time.perf_counter()
        check_report(exercise, function)
        times.append(time.perf_counter() - start)
    return times[0], statistics.median(times[1:])


def count_outcomes(exercise):
    """Return five counts: correct answers (all, rejected) and known mistakes (all, named by the check, accepted)."""
    right_functions = (exercise.reference, *exercise.equivalents.values())
    right_reports = [check_report(exercise, function) for function in right_functions]
    wrong_reports = {mistake.id: check_report(exercise, mistake.function) for mistake in exercise.mistakes.values()}
    return (
        len(right_reports),
        sum(report.status != "correct" for report in right_reports),
        len(wrong_reports),
        sum(report.mistake == mistake_id for mistake_id, report in wrong_reports.items()),
        sum(report.status == "correct" for report in wrong_reports.values()),
    )


def print_exercises():
    """Print how long each check takes, and how many of the exercise's known mistakes the check names."""
    print(f"{'exercise':30}{'first':>9}{'again':>9}" + "".join(f"{column:>10}" for column in COLUMNS))
    totals, slowest = [0] * len(COLUMNS), 0.0
    for exercise in tl.checks.EXERCISES:
        first, again = measure_seconds(exercise, exercise.reference)
        row = count_outcomes(exercise)
        totals = [total + count for total, count in zip(totals, row)]
        slowest = max(slowest, first)
        print(f"{exercise.name:30}{first:8.3f}s{again:8.3f}s" + "".join(f"{count:10}" for count in row), flush=True)
    print(
        f"{len(tl.checks.EXERCISES)} exercises, slowest{'':12}{slowest:8.3f}s{'':9}"
        + "".join(f"{total:10}" for total in totals)
    )


def read_verdicts():
    """Return a person's verdict on each named mistake: a dict from (answer, mistake) to "true", "half" or "false"."""
    lines = (line.split() for line in VERDICTS_FILE.read_text("utf-8").splitlines() if not line.startswith("#"))
    return {(answer, mistake): verdict for answer, mistake, verdict in lines}


def outcomes(answer, report, verdicts):
    """Return the `OUTCOMES` of an answer."""
    is_correct = report.status == "correct"
    if answer.truth is None:
        return {"right"} | (set() if is_correct else {"refused"})
    wrong_outcomes = {"wrong"} if answer.slips == 1 else {"wrong", "two"}
    if is_correct:
        return wrong_outcomes | {"accepted"}
    if report.mistake:
        verdict = verdicts.get((answer.name, report.mistake), "unjudged")
        names_both = answer.slips > 1 and verdict == "true"
        return wrong_outcomes | {"named"} | ({verdict} & {"unjudged", "false"}) | ({"both"} if names_both else set())
    paragraphs = filter(None, report.message.split("\n\n"))
    return wrong_outcomes | {"numbers" if all(text.startswith(ONLY_NUMBERS) for text in paragraphs) else "place"}


def print_bank():
    """Print how often each outcome occurs, for each exercise and each part of the bank."""
    verdicts = read_verdicts()
    print(f"{'bank':30}" + "".join(f"{outcome:>10}" for outcome in OUTCOMES))
    totals = {part: Counter() for part in ("all", *bank.PARTS)}
    for exercise in tl.checks.EXERCISES:
        exercise_counts = Counter()
        for answer in bank.answers():
            if answer.exercise is exercise:
                answer_outcomes = outcomes(answer, check_report(exercise, answer.function), verdicts)
                exercise_counts.update(answer_outcomes)
                totals[answer.part].update(answer_outcomes)
        totals["all"].update(exercise_counts)
        print(f"{exercise.name:30}" + "".join(f"{exercise_counts[outcome]:10}" for outcome in OUTCOMES), flush=True)
    for part, exercise_counts in totals.items():
        print(f"{part:30}" + "".join(f"{exercise_counts[outcome]:10}" for outcome in OUTCOMES))
    print("false: names that a person found false; unjudged: names not judged yet (--cards, judged.txt)")
    print("two: answers with two slips; both: answers whose card names both slips")


def print_unhit():
    """Print, for each exercise, the number and the ids of the known mistakes that no answer of the bank makes."""
    hit_mistakes = {exercise.name: set() for exercise in tl.checks.EXERCISES}
    for answer in bank.answers():
        if answer.truth is not None:
            hit_mistakes[answer.exercise.name].update(
                (check_report(answer.exercise, answer.function).mistake or "").split("+")
            )
    for exercise in tl.checks.EXERCISES:
        unhit_mistakes = [
            mistake_id for mistake_id in exercise.mistakes if mistake_id not in hit_mistakes[exercise.name]
        ]
        print(f"{exercise.name}: {len(unhit_mistakes)} of {len(exercise.mistakes)}", flush=True)
        print(textwrap.fill(" ".join(unhit_mistakes), 118, initial_indent="  ", subsequent_indent="  "))


def print_cards(part):
    """Print the true mistake of each wrong answer, and the card that the check shows."""
    verdicts = read_verdicts()
    for answer in bank.answers(part):
        if answer.truth is not None:
            report = check_report(answer.exercise, answer.function)
            shown_outcomes = outcomes(answer, report, verdicts) - {"wrong", "two"}
            print(answer.name, report.mistake or "-", *sorted(shown_outcomes))
            for title, text in (("truth", answer.truth), ("check", report.message.replace("\n\n", " | "))):
                print(textwrap.fill(f"{title}: {text}", 118, initial_indent="  ", subsequent_indent="         "))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bank", action="store_true", help="leave out the times and the known mistakes")
    parser.add_argument("--cards", choices=("all", *bank.PARTS), nargs="?", const="all", help="print what cards say")
    parser.add_argument("--unhit", action="store_true", help="list the known mistakes that no answer of the bank makes")
    arguments = parser.parse_args()
    if arguments.unhit:
        return print_unhit()
    if arguments.cards:
        return print_cards(None if arguments.cards == "all" else arguments.cards)
    if not arguments.bank:
        print_exercises()
    print_bank()


if __name__ == "__main__":
    main()
