'''What can be practised: a topic is one small declaration, and `tl.labs.Practice("strides_of")` asks it.

A file for each chapter that has topics, ``ch1.py`` and so on, holds them. The name of a topic is that of its variable,
and differs from all others in the course:

    strides_of = Topic(
        title="Strides of a fresh tensor",
        rule="strides_of",                          # an exercise's name: its reference and its known mistakes
        inputs=lambda draw: (a_shape(draw, axes=3),),
        question=lambda shape: f"A fresh tensor has the shape `{shape}`. What are its strides?",
        answer=Numbers(),
        without=("bytes_of_float64",),
    )

From that, `Topic.table` makes the table of cases that travels with the page. The right answer of a case is what the
reference returns; each known mistake's result is a wrong answer that is recognised. A mistake whose result cannot be an
answer (it raises, has another shape or kind of numbers) falls away by itself.

**The rule** is the name of an exercise, or where there is none, a rule of the topic's own, in the same form:

    @rule(inputs=lambda draw: (one_of(draw, OPERATIONS),))
    def is_view(operation):
        """What is true of the operation."""
        return VIEWS[operation]

    @is_view.mistake
    def reshape_always_copies(operation):
        """You take `reshape` for a copy every time. It copies only where it must: is this tensor contiguous?"""
        return ...

    what_is_a_view = Topic(title="Is it a view?", rule=is_view, ...)

**The inputs** are the rule's own, with the ``sizes`` that are given: ``sizes={"seq": (3, 6)}`` draws `seq` from 3 to 6
for each case. Where an exercise has one fixed input, or too large a one, ``inputs=lambda draw: (…)`` of the topic takes
their place; it returns the arguments of one call. ``keep=lambda *arguments: …`` says which to use. Tensors of floats
are rounded to ``decimals`` places (1) and computed with in float64: what the reader sees is what is computed with.
`draws` has what helps to draw: ``number``, ``one_of``, ``a_shape``, ``numbers``.

**The question** is written from the arguments: plain words, with code between backticks. At most two sentences. What is
longer than a line, such as a matrix or a few lines of code, is the topic's ``given=lambda *arguments: …``, a text that
is shown as code below the question; lines of at most 36 characters. `write` writes a tensor or a shape as Python does.

**The answer** is one of `answers`; each takes what a function returns, or what ``asks`` makes of that and of the
arguments: ``asks=lambda result, x, n_heads: result.shape``.

========================================  ===========================================================================
`Number(unit="bytes")`                    one number; ``places=2`` for one that is rounded, and whole otherwise
`Numbers(places=2)`                       a shape, a tuple or a tensor of one axis; of any length. With ``total=1`` and
                                          ``total_of="Weights"`` it says of a wrong sum that it is wrong
`Table(places=2)`                         a matrix of numbers, up to 5 by 5; ``rows`` and ``columns`` name its lines
`Mask()`                                  a matrix of bools, painted, up to 8 by 8. ``what=("queries", "keys")`` says
                                          what they are; ``rows`` and ``columns`` name its lines
`Choice({True: "a view", False: "…"})`    one of several: what the function returns, and how it is written
`Order(("scores", "softmax", …))`         steps to be put in order: the function returns them in their order
========================================  ===========================================================================

``rows``, ``columns``, the options and the steps are given as they are, or as a function of the arguments.
Where a right answer can be that it raises, ``refusal="They do not fit"`` of any of the first two adds that button.
``places`` must be named in the question ("to two places"): an answer counts as right within half a unit of the last.

**The words** for a mistake are its docstring's first and last sentence: what it is, and where to look. Where these do
not read well alone, or point to code that nobody wrote here, ``words={"from_the_left": "…"}`` gives others, two
sentences at most. The first clause, up to the first `:`, `;` or full stop, must make sense alone: it is what the page
Practice says somebody is weak in. ``without`` names mistakes to leave out.

A case is used only where no answer stands for three mistakes or more. Of those drawn, the 24 are taken that tell most
mistakes, each of them about as often as the others. One test goes through all topics: at least 20 cases that differ, at
least 5 mistakes named over them, at most 20 kB, every text short enough. To look at one:

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

    found = {}
    chapters = [int(name[2:]) for _, name, _ in iter_modules(__path__) if re.fullmatch(r"ch\d+", name)]
    for chapter in sorted(chapters):
        for name, thing in vars(import_module(f".ch{chapter}", __name__)).items():
            if isinstance(thing, Topic):
                if name in found:
                    raise ValueError(f"names of topics must differ, got {name!r} twice")
                found[name] = thing.named(name, chapter)
    return found
