"""Choose which of many similar cases run on every push; weekly runs include all of them.

`make everything`, which CI runs weekly, sets TRANSFORMER_LAB_EVERYTHING, and then all cases run. You can also set this
variable to run all cases of one file: `TRANSFORMER_LAB_EVERYTHING=1 pytest tests/checks/test_checks.py -k causal_mask`.
"""

import os

EVERYTHING = "TRANSFORMER_LAB_EVERYTHING" in os.environ


def sample(cases, push_cases):
    """Return ``cases`` in weekly runs, and ``push_cases`` on a push."""
    cases, push_cases = list(cases), list(push_cases)
    assert [case for case in push_cases if case not in cases] == []
    return cases if EVERYTHING else push_cases


def every_third(cases, first=0):
    """Return all cases in weekly runs, and on a push every third case from index ``first`` on."""
    cases = list(cases)
    return cases if EVERYTHING else cases[first % 3 :: 3]
