"""The hunts of the assignments, one in each: whose mistakes are hunted, and three hints for writing the test."""

from .course import COURSE, FOLDERS

HUNTS = {
    "attention_weights": (
        "Which wrong functions return rows that sum to one? What must you compare to tell them from right ones?",
        "Compare every number with what is right, worked out by hand or by another function, for sizes that all "
        "differ. And ask what happens to large scores.",
        "`expected = (query @ key.mT / …).softmax(…)`, then `assert torch.allclose(f(query, key), expected)`, for "
        "ordinary queries and for some that are hundreds of times as large",
    ),
    "merge_heads": (
        "Which wrong merges return the right shape? What do they do to the sum, and what to the places of the numbers?",
        "Take an input in which no number occurs twice, and sizes that all differ. Then follow one token: which "
        "numbers must stand side by side in its row?",
        "`x = torch.arange(…).view(…)`, then `assert torch.equal(f(x)[…, …], torch.cat([…]))` for each sentence and "
        "each token",
    ),
}

# For an exercise whose mistakes no assignment hunts.
ANY = (
    "Which wrong functions would return what your test asks for? What must it look at to tell them from the right one?",
    "Compare every number of the result with the right one, for sizes that all differ. Then take the inputs that the "
    "docstring allows and that nobody tries: one row, no rows, very large numbers, another order in memory.",
    "`expected = …`, then `assert torch.allclose(f(…), expected)`, for each of several inputs",
)


def tasks(folder):
    """Return the names of all that an assignment asks for: its exercises, and below them the test of its hunt."""
    return [*COURSE[folder], *(f"test_{name}" for name in HUNTS if FOLDERS[name] == folder)]


TASKS = {name: folder for folder in COURSE for name in tasks(folder)}
