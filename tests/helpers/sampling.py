"""What runs on every push and what weekly: of many similar cases, a push tries some.

`make everything`, which CI runs weekly, sets TRANSFORMER_LAB_EVERYTHING, and they take all. Set it as well to run all
cases of one file: `TRANSFORMER_LAB_EVERYTHING=1 pytest tests/checks/test_checks.py -k causal_mask`.
"""

import os

EVERYTHING = "TRANSFORMER_LAB_EVERYTHING" in os.environ


def sample(every, some):
    """Return all of them weekly, and ``some`` of them on a push."""
    every, some = list(every), list(some)
    assert [each for each in some if each not in every] == []
    return every if EVERYTHING else some


def every_third(cases, first=0):
    """Return all cases weekly, and every third on a push, from ``first`` on: each neighbourhood has one."""
    cases = list(cases)
    return cases if EVERYTHING else cases[first % 3 :: 3]
