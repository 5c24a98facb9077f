'''Topics for practice: each is one small declaration, and `tl.labs.Practice("strides_of")` asks questions about it.

A file for each chapter that has topics, ``ch1.py`` and so on, holds them. The name of a topic is that of its variable,
and differs from all others in the course:

    strides_of = Topic(
        title="Strides of a fresh tensor",
        rule="strides_of",                          # an exercise's name: its reference and its known mistakes
        inputs=lambda draw: (random_shape(draw, axes=3),),
        question=lambda shape: f"A fresh tensor has the shape `{shape}`. What are its strides?",
        answer=Numbers(),
        without=("bytes_of_float64",),
    )

From that, `Topic.table` makes the table of cases that is stored in the page. The right answer of a case is the result
of the reference; the result of each known mistake is a wrong answer that is recognized. A mistake whose result cannot
be an answer (it raises, or has another shape or dtype) is skipped.

**The rule** is the name of an exercise or, where there is none, a rule in the same form:

    @rule(inputs=lambda draw: (choose(draw, OPERATIONS),))
    def is_view(operation):
        """What is true of the operation."""
        return VIEWS[operation]

    @is_view.mistake
    def reshape_always_copies(operation):
        """You assumed that `reshape` always copies. It copies only where it must: is this tensor contiguous?"""
        return ...

    what_is_a_view = Topic(title="Is it a view?", rule=is_view, ...)

**The inputs** are those of the rule, with the topic's ``sizes``: ``sizes={"seq": (3, 6)}`` draws `seq` from 3 to 6 for
each case. If the exercise's input is fixed or too large, ``inputs=lambda draw: (…)`` replaces it and returns the
arguments of one call. ``keep=lambda *arguments: …`` filters them. Float tensors are rounded to ``decimals`` places (1)
and converted to float64, so that the answers follow from the numbers that the reader sees.
`draws` has helpers: ``integer``, ``choose``, ``random_shape``, ``distinct_integers``.

**The question** is a function of the arguments: at most two sentences, with code between backticks. A matrix or a few
lines of code belong in ``given=lambda *arguments: …``, a text that is shown as code below the question; its lines
have at most 36 characters. `write` formats a tensor or a shape as Python does.

**The answer** is one of the forms in `answers`, applied to the result of the rule, or to what ``asks`` makes of the
result and the arguments: ``asks=lambda result, x, n_heads: result.shape``.

========================================  ===========================================================================
`Number(unit="bytes")`                    one number; ``places=2`` for one that is rounded, and whole otherwise
`Numbers(places=2)`                       a shape, a tuple or a tensor of one axis; of any length. With ``total=1`` and
                                          ``total_of="Weights"`` a remark says when the sum is wrong
`Table(places=2)`                         a matrix of numbers, up to 5 by 5; ``rows`` and ``columns`` name its lines
`Mask()`                                  a matrix of bools, painted, up to 8 by 8. ``what=("queries", "keys")`` says
                                          what they are; ``rows`` and ``columns`` name its lines
`Choice({True: "a view", False: "…"})`    one of several: what the function returns, and how it is written
`Order(("scores", "softmax", …))`         steps to be put in order: the function returns them in their order
========================================  ===========================================================================

``rows``, ``columns``, the options and the steps are values, or functions of the arguments. If “it raises an error” can
be the right answer, ``refusal="They do not fit"`` of the first two adds a button for it. ``places`` must be named in
the question ("to two places"): an answer counts as right within half a unit of the last place.

**The text** for a mistake is the first and the last sentence of its docstring: what the mistake is, and where to look.
If these do not read well without the rest, or refer to code that nobody wrote here, ``words={"from_the_left": "…"}``
replaces them, with at most two sentences. The first clause, up to the first `:`, `;` or full stop, must make sense on
its own: the page Practice lists it among a reader's weaknesses. ``without`` names mistakes to leave out.

Cases in which three or more mistakes give the same answer are left out. Of the others, the 24 that show the most
mistakes are used, each mistake about equally often. A test holds every topic to at least 20 different cases,
5 recognized mistakes, 20 kB, and texts that fit. To print the cases of a topic:

    python -m transformer_lab.practice strides_of
'''

import re
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

MOST_CASES = 24


@cache
def topics():
    """Return all topics by name, in the order of the chapters."""
    from .topic import Topic

    all_topics = {}
    chapters = [int(name[2:]) for _, name, _ in iter_modules(__path__) if re.fullmatch(r"ch\d+", name)]
    for chapter in sorted(chapters):
        for name, value in vars(import_module(f".ch{chapter}", __name__)).items():
            if isinstance(value, Topic):
                if name in all_topics:
                    raise ValueError(f"names of topics must differ, got {name!r} twice")
                all_topics[name] = value.named(name, chapter)
    return all_topics
