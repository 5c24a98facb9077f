"""How much processor time do the first and the second run of a hunt take if the test tries only one ordinary input?

python benchmarks/hunts.py
"""

import time

import transformer_lab as tl
from transformer_lab.checks.agree import agree
from transformer_lab.checks.hunt import hunt_of


def one_input_test(exercise):
    """Return a test that tries a function on one input of ``exercise``."""
    arguments, expected = exercise.probes[0].arguments, exercise.expected[0].value
    return lambda f: agree(f(*arguments), expected)


def main():
    print(f"{'hunt':30}{'first':>9}{'again':>9}{'known':>8}{'caught':>8}")
    slowest = 0.0
    for exercise in tl.checks.EXERCISES:
        test, times = one_input_test(exercise), []
        for _ in range(2):
            start = time.process_time()
            report = hunt_of(exercise).report(test)
            times.append(time.process_time() - start)
        slowest = max(slowest, times[0])
        first, again = times
        print(f"{exercise.name:30}{first:8.3f}s{again:8.3f}s{report.known:8}{report.caught:8}", flush=True)
    print(f"{len(tl.checks.EXERCISES)} exercises, slowest{'':12}{slowest:8.3f}s")


if __name__ == "__main__":
    main()
