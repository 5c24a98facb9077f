'''Topics for practice: each topic is a short declaration, from which `tl.labs.Practice("strides_of")` makes questions.

Each chapter with topics has a file, ``ch1.py`` and so on. The name of a topic is the name of its variable, and differs
from the names of all other topics in the course:

    strides_of = Topic(
        title="Strides of a fresh tensor",
        rule="strides_of",                          # an exercise with a reference and known mistakes
        inputs=lambda draw: (random_shape(draw, axes=3),),
        question=lambda shape: f"A fresh tensor has the shape `{shape}`. What are its strides?",
        answer=Numbers(),
        excluded_mistakes=("bytes_of_float64",),
    )

From this declaration, `Topic.table` computes the table of cases that is stored in the page. The right answer of a case
is the result of the reference; the result of each known mistake is a wrong answer that the lab recognizes. A mistake is
skipped if its result cannot be an answer, because it raises an error or returns a different shape or dtype.

**The rule** is the name of an exercise or, if no exercise fits, a function in the same form:

    @rule(inputs=lambda draw: (choose(draw, OPERATIONS),))
    def is_view(operation):
        """What is true of the operation."""
        return VIEWS[operation]

    @is_view.mistake
    def reshape_always_copies(operation):
        """You assumed that `reshape` always copies. It copies only where it must: is this tensor contiguous?"""
        return ...

    what_is_a_view = Topic(title="Is it a view?", rule=is_view, ...)

**The inputs** are the inputs of the rule, with the topic's ``size_ranges``: ``size_ranges={"seq": (3, 6)}`` draws `seq`
from 3 to 6 for each case. If the exercise's input is fixed or too large, ``inputs=lambda draw: (…)`` replaces it and
returns the arguments of one call. ``accepts=lambda *arguments: …`` filters the arguments. Float tensors are rounded to
``decimals`` places (by default 1) and converted to float64, so that the answers follow from the numbers that the reader
sees. `draws` contains helpers: ``random_integer``, ``choose``, ``random_shape``, ``distinct_integers``.

**The question** is a function of the arguments: at most two sentences, with code between backticks. A matrix or a few
lines of code belong in ``given_text=lambda *arguments: …``, a text that is shown as code below the question, with at
most 36 characters per line. `write` formats a tensor or a shape as Python does.

**The answer** has one of the forms in `answers`. By default the lab asks for the result of the rule; ``asked_value``
computes the answer from the result and the arguments: ``asked_value=lambda result, x, n_heads: result.shape``.

========================================  ===========================================================================
`Number(unit="bytes")`                    one number, rounded to ``places=2``; an integer without ``places``
`Numbers(places=2)`                       a shape, a tuple or a tensor with one axis, of any length. With ``total=1``
                                          and ``total_of="Weights"``, a remark reports a wrong sum
`Table(places=2)`                         a matrix of numbers, up to 5 by 5; ``rows`` and ``columns`` are its labels
`Mask()`                                  a matrix of bools, painted, up to 8 by 8. ``what=("queries", "keys")`` says
                                          what rows and columns are; ``rows`` and ``columns`` are their names
`Choice({True: "a view", False: "…"})`    one of several options: results of the function, with their labels
`Order(("scores", "softmax", …))`         steps to be put in order: the function returns the right order
========================================  ===========================================================================

``rows``, ``columns``, the options and the steps are values, or functions of the arguments. If “it raises an error” can
be the right answer, the argument ``refusal="They do not fit"`` of `Number` and `Numbers` adds a button for it. The
question must name the number of ``places`` ("to two decimal places"): an answer is right if it is within half a unit in
the last place.

**The text** for a mistake is the first and the last sentence of its docstring: a description of the mistake, and a
hint. If these two sentences are unclear without the others, or refer to code that the reader has not written, pass
``mistake_texts={"from_the_left": "…"}`` with at most two sentences instead. The first clause, up to the first `:`, `;`
or full stop, must make sense on its own: the page Practice lists it among a reader's weaknesses. ``excluded_mistakes``
names mistakes to leave out.

Cases in which three or more mistakes give the same answer are left out. From the other cases, a topic selects the 24
that show the most mistakes, each mistake about equally often. A test requires of every topic at least 20
different cases and 5 recognized mistakes, at most 20 kB, and texts that fit the page. To print the cases of a topic:

    python -m transformer_lab.practice strides_of
'''

import re
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

MAX_CASES = 24


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
                all_topics[name] = value.with_name_and_chapter(name, chapter)
    return all_topics
