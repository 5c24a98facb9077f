"""Choose which of many similar cases run on every push; weekly runs include all of them.

`make everything`, which CI runs weekly, sets TRANSFORMER_LAB_EVERYTHING, and then all cases run. You can also set this
variable to run all cases of one file: `TRANSFORMER_LAB_EVERYTHING=1 pytest tests/checks/test_checks.py -k causal_mask`.
"""

import os

EVERYTHING = "TRANSFORMER_LAB_EVERYTHING" in os.environ


def sample(every, some):
    """Return ``every`` in weekly runs, and ``some`` on a push."""
    every, some = list(every), list(some)
    assert [each for each in some if each not in every] == []
    return every if EVERYTHING else some


def every_third(cases, first=0):
    """Return all cases in weekly runs, and on a push every third case from index ``first`` on."""
    cases = list(cases)
    return cases if EVERYTHING else cases[first % 3 :: 3]
