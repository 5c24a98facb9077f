"""How long each check takes on a right answer, and how well the checks know the mistakes they know.

python benchmarks/checks.py
"""

import statistics
import time

import transformer_lab as tl
from transformer_lab.checks.diagnose import diagnose
from transformer_lab.checks.observe import watched

REPEATS = 5
COLUMNS = ("right", "rejected", "known", "named", "accepted")


def diagnosed(exercise, function):
    """Return the report on a function, as a check makes it, without showing its card."""
    report, _ = watched(lambda: diagnose(exercise, function))
    return report


def seconds(exercise, function):
    """Return how long a check takes, without showing its card: the first time and the median of the others."""
    times = []
    for _ in range(1 + REPEATS):
        start = time.perf_counter()
        diagnosed(exercise, function)
        times.append(time.perf_counter() - start)
    return times[0], statistics.median(times[1:])


def counts(exercise):
    """Return how many right answers are known and rejected; how many mistakes are known, named, and accepted."""
    right = [diagnosed(exercise, function) for function in (exercise.reference, *exercise.equivalents.values())]
    wrong = {mistake.id: diagnosed(exercise, mistake.function) for mistake in exercise.mistakes.values()}
    return (
        len(right),
        sum(report.status != "correct" for report in right),
        len(wrong),
        sum(report.mistake == id for id, report in wrong.items()),
        sum(report.status == "correct" for report in wrong.values()),
    )


def main():
    print(f"{'exercise':30}{'first':>9}{'again':>9}" + "".join(f"{column:>10}" for column in COLUMNS))
    totals, slowest = [0] * len(COLUMNS), 0.0
    for exercise in tl.checks.EXERCISES:
        first, again = seconds(exercise, exercise.reference)
        found = counts(exercise)
        totals = [total + count for total, count in zip(totals, found)]
        slowest = max(slowest, first)
        print(f"{exercise.name:30}{first:8.3f}s{again:8.3f}s" + "".join(f"{count:10}" for count in found), flush=True)
    print(
        f"{len(tl.checks.EXERCISES)} exercises, slowest{'':12}{slowest:8.3f}s{'':9}"
        + "".join(f"{t:10}" for t in totals)
    )


if __name__ == "__main__":
    main()
