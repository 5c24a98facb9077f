"""What runs on every push and what weekly: of similar pages or fonts, a push tries some.

`make everything`, which CI runs weekly, sets TRANSFORMER_LAB_EVERYTHING, and they take all.
"""

import os

EVERYTHING = "TRANSFORMER_LAB_EVERYTHING" in os.environ


def sample(every, some):
    """Return all of them weekly, and ``some`` of them on a push."""
    every, some = list(every), list(some)
    assert [each for each in some if each not in every] == []
    return every if EVERYTHING else some
