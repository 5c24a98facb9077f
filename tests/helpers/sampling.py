"""What runs on every push and what weekly: tests that say the same of many pages or letters take some of them on a push.

`make everything`, which CI runs weekly, sets TRANSFORMER_LAB_EVERYTHING, and they take all.
"""

import os

EVERYTHING = "TRANSFORMER_LAB_EVERYTHING" in os.environ


def sample(every, some):
    """All of them, weekly; on a push those of ``some``, which must be among them."""
    every, some = list(every), list(some)
    assert [each for each in some if each not in every] == []
    return every if EVERYTHING else some
