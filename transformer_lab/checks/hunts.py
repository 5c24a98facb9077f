"""Lists the hunt of each assignment: the exercise whose mistakes are hunted, and three hints for writing the test."""

from .course import COURSE, FOLDERS

HUNTS = {
    "transposed": (
        "Which tensors have strides that do not follow from their shape? And how can you tell a view from a copy?",
        "Pass `f` a fresh tensor, a transposed tensor, and a slice from the middle of a tensor. Compare every number. "
        "`data_ptr()` is the address of the first element.",
        "`for x in (…, ….transpose(…), …[1::2, :, 2:]):`, then `assert torch.equal(f(x, …), x.transpose(…))` and "
        "`assert f(x, …).data_ptr() == …`; also try axes that are counted from the end",
    ),
    "normalize_rows": (
        "Softmax also returns rows that sum to one. Which relation between the numbers of a row must stay the same "
        "when you divide the row?",
        "Compare every number with the right one: divide one row at a time by its sum. Then vary the input as the "
        "docstring allows: any number of axes, equal sizes, negative numbers, tiny numbers. Also check that `x` is "
        "unchanged afterwards.",
        "`for shape in ((5,), (4, 4), …):`, `x = …`, `rows = [row / row.sum() for row in x.reshape(-1, …)]`, then "
        "`assert torch.allclose(f(x), torch.stack(rows).reshape(…))`",
    ),
    "attention_weights": (
        "Which wrong functions return rows that sum to one? What must you compare to tell wrong functions from right "
        "ones?",
        "Compare every number with the right one, which you work out by hand or with another function. Choose sizes "
        "that all differ. Then test large scores, too.",
        "`expected = (query @ key.mT / …).softmax(…)`, then `assert torch.allclose(f(query, key), expected, atol=…)`, "
        "for ordinary queries and for queries that are hundreds of times as large",
    ),
    "merge_heads": (
        "Which wrong merges return the right shape? How do they change the sum of all numbers, and how do they change "
        "the places of the numbers?",
        "Take an input in which no number occurs twice, and sizes that all differ. Then follow one token: which "
        "numbers belong side by side in its row?",
        "`x = torch.arange(…).view(…)`, then `assert torch.equal(f(x)[…, …], torch.cat([…]))` for each sentence and "
        "each token",
    ),
    "masked_attention": (
        "The docstring says how many axes a mask may have, and what the result is for a query that sees nothing. "
        "Which of these cases does your test try?",
        "For a mask of each shape, compare every number with the result of a softmax over the visible keys. Let some "
        "queries see nothing, and make the scores very large, in the millions.",
        "`for shape in ((q_len, k_len), …, (batch, heads, q_len, k_len)):`, `mask = torch.rand(shape) < 0.5`, "
        "`expected = … .masked_fill(~mask, …).softmax(…).nan_to_num() @ value`, then `assert torch.allclose(…)`",
    ),
    "layer_norm": (
        "Which argument could a wrong function ignore, and still return numbers with mean 0 and variance 1?",
        "Compare the result with `F.layer_norm`, for a weight that is not 1 and a bias that is not 0, for an `eps` "
        "that is not small compared with the variance, and for numbers far from zero. Then read in the docstring "
        "which dtype the result has.",
        "`for tokens, eps in ((x, …), (x, …), (x + …, …)):`, then `assert torch.allclose(f(tokens, weight, bias, "
        "eps), F.layer_norm(…), atol=…)`",
    ),
    "block_parameters": (
        "In GPT-2, `d_ff` is 4 times `d_model`, and every map has a bias. Which mistakes do these two facts hide?",
        "Choose sizes none of which is a multiple of another, and count by hand. Then do the same without biases: "
        "which parameters are missing? Also read in the docstring which type is returned: a comparison does not test "
        "the type, since a float may equal an int.",
        "`assert f(3, 7, True) == …` and `assert f(3, 7, False) == …`, then `assert not isinstance(…, float)`",
    ),
    "causal_linear_attention": (
        "If all values are 1, with which wrong weights is the weighted mean still 1? And what must a test compare to "
        "notice such weights?",
        "For a short sequence and one of 100 tokens, compute the table of weights, hide the later keys, and compare "
        "every number. Then make the last key huge: no earlier token may change.",
        "`weights = (φ(query) @ φ(key).mT).tril()`, `expected = weights @ value / …`, then `assert "
        "torch.allclose(f(query, key, value), expected, atol=…)`, for an ordinary last key and a huge one",
    ),
    "rotate": (
        "Which wrong functions keep the length of every vector, and leave a token at position 0 unchanged? What must "
        "you compare to tell wrong functions from right ones?",
        "Read a pair (a, b) as the complex number a + bi: a rotation is then a multiplication by cos + i sin. Compare "
        "every number, for several pairs, for positions that do not begin at 0, for some large positions, and for two "
        "bases. Then read in the docstring which dtype the result has.",
        "`speeds = base ** (-torch.arange(0, d_head, 2) / d_head)`, `turns = torch.polar(torch.ones(…), positions[:, "
        "None] * speeds)`, then compare `torch.view_as_complex(…) * turns` with `f(x, positions, base)`",
    ),
    "mean_pool": (
        "Which wrong functions return vectors of length 1? What must you compare to tell wrong functions from right "
        "ones?",
        "Take one text at a time: compute the mean, scale it to length 1, and compare every number with the result of "
        "`f`. Then vary the mask as the docstring allows: padding after the text, in front of it, between its tokens, "
        "or no padding. And which numbers may the padding contain?",
        "`for real in (…, ….flip(1), …):`, `states[~real] *= …`, `means = [text[kept].mean(dim=…) for text, kept in "
        "zip(…)]`, then compare `f(states, real)` with each `mean / mean.norm()`, and their shapes",
    ),
    "next_token_loss": (
        "If all logits are equal, every guess has the same loss. Can a test with such logits notice which guess is "
        "compared with which token?",
        "Take random logits and a few tokens, including token 0. Work out the loss of each guess separately: minus "
        "the log of the probability that the guess gives to the token that follows. Then make the logits large.",
        "`log_p = logits.log_softmax(…)`, `losses = [-log_p[…, i, tokens[…, i + 1]] for …]`, then `assert "
        "torch.allclose(f(logits, tokens), torch.stack(losses).mean())`, for ordinary logits and for logits that are "
        "hundreds of times as large",
    ),
}

# Hints for the exercises that HUNTS does not contain.
GENERAL_HINTS = (
    "Which wrong functions would pass your test? What must the test look at to tell these functions from the "
    "right one?",
    "Choose sizes that all differ, and compare every number of the result with the right one. Then try inputs that the "
    "docstring allows but that are easy to forget: one row, no rows, very large numbers, a different order in memory.",
    "`expected = …`, then `assert torch.allclose(f(…), expected)`, for each of several inputs",
)


WHOLE_MODEL = "test_whole_model"  # the hunt on whole models, which belongs to no exercise: model_hunt.py


def tasks(folder):
    """Return the names of all tasks of an assignment: its exercises, then the test of its hunt."""
    hunted = [f"test_{name}" for name in HUNTS if FOLDERS[name] == folder]
    return [*COURSE[folder], *hunted, *([WHOLE_MODEL] if folder == "ch11_right" else [])]


TASKS = {name: folder for folder in COURSE for name in tasks(folder)}
