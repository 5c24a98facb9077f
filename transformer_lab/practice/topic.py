"""A topic: a rule, how a question about it is asked, and the table of cases that is made of both."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch

from ..checks import course
from ..checks.exercise import Exercise
from ..checks.probes import Draw, each_tensor
from . import MOST_CASES as CASES
from .answers import Form
from .draws import number

_DRAWN = 400  # inputs that are tried, at most
_SPARE = 2  # times as many cases as are used: the best are taken
_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z0-9`(])")


def rule(*, inputs):
    """Make a rule of its reference: an exercise that nobody is asked to write."""
    return lambda reference: Exercise(reference, inputs, axes={}, hints=("", "", ""))


@dataclass(frozen=True, kw_only=True)
class Topic:
    """One thing to practise; the package's docstring says what each of these is."""

    title: str
    rule: Any
    question: Any
    answer: Form
    inputs: Any = None
    sizes: dict = field(default_factory=dict)
    keep: Any = None
    decimals: int = 1
    given: Any = None
    asks: Any = None
    words: dict = field(default_factory=dict)
    without: tuple = ()
    name: str = ""
    chapter: int = 0

    def named(self, name, chapter):
        return replace(self, name=name, chapter=chapter)

    @cached_property
    def exercise(self):
        return course.load(self.rule) if isinstance(self.rule, str) else self.rule

    @cached_property
    def mistakes(self):
        """The known mistakes that are looked for, by their names."""
        known = self.exercise.mistakes
        unknown = [name for name in (*self.without, *self.words) if name not in known]
        if unknown:
            raise ValueError(f"mistakes of {self.title!r} must be known to its rule, got {', '.join(unknown)}")
        return {name: mistake for name, mistake in known.items() if name not in self.without}

    @cached_property
    def text(self):
        """The table as it travels."""
        return json.dumps(self.table(), ensure_ascii=False, separators=(",", ":"))

    def table(self):
        """Return all that the browser needs: the cases with their answers, and what is said of each mistake."""
        cases = self._best(list(self._drawn()))
        used = sorted({name for case in cases for _, names in case["wrong"] for name in names})
        for case in cases:
            case["wrong"] = [[answer, [used.index(name) for name in names]] for answer, names in case["wrong"]]
        return {
            "name": self.name or self.title,
            "title": self.title,
            "kind": type(self.answer).__name__.lower(),
            **self.answer.for_all(),
            "mistakes": [[name, *self.said(name)] for name in used],
            "cases": cases,
        }

    def said(self, name):
        """Return two sentences about a mistake: what it is, and where to look; the second may be empty."""
        text = self.words.get(name) or self.mistakes[name].text
        first, *rest = _SENTENCE.split(re.sub(r"\s+", " ", text))
        return first, rest[-1] if rest else ""

    def _drawn(self):
        """Cases that differ, more than are used."""
        seen, count = set(), 0
        for seed in range(_DRAWN):
            arguments = self._arguments(seed)
            asked = self.question(*arguments), self.given(*arguments) if self.given else ""
            if asked in seen or not (self.keep is None or self.keep(*arguments)):
                continue
            seen.add(asked)
            if case := self._case(arguments):
                yield case
                count += 1
            if count == _SPARE * CASES:
                return

    def _arguments(self, seed):
        draw = Draw(seed)
        sizes = {name: number(draw, *ends) for name, ends in self.sizes.items()}
        arguments = (self.inputs or self.exercise.inputs)(draw, **sizes)
        return each_tensor(self._as_shown, arguments if isinstance(arguments, tuple) else (arguments,))

    def _as_shown(self, x):
        return x.double().round(decimals=self.decimals) if x.is_floating_point() else x

    def _case(self, arguments):
        """Return what is asked and answered with these arguments; None where that is not a case for a person."""
        right = self._answer(self.exercise.reference, arguments)
        if right is None:
            return None
        wrong = []
        for name, mistake in self.mistakes.items():
            answer = self._answer(mistake.function, arguments)
            if answer is None or not self.answer.fits(answer, right) or self.answer.same(answer, right):
                continue
            alike = [names for other, names in wrong if self.answer.same(answer, other)]
            if len(alike) > 1 or (alike and len(alike[0]) == 2):
                return None
            if alike:
                alike[0].append(name)
            else:
                wrong.append([answer, [name]])
        return {
            "question": self.question(*arguments),
            **({"given": self.given(*arguments)} if self.given else {}),
            **self.answer.for_case(arguments, right),
            "right": right,
            "wrong": wrong,
        }

    def _answer(self, function, arguments):
        try:
            copies = each_tensor(torch.clone, arguments)
            result = function(*copies)
            result = self.asks(result, *copies) if self.asks else result
        except Exception as error:
            result = error
        return self.answer.of(result, arguments)

    @staticmethod
    def _best(cases):
        """Those that tell the most mistakes, each of them about as often as the others; in the order of the draw."""
        left, taken, met = list(range(len(cases))), [], Counter()

        def news(i):
            """How much a case tells: the less, the more often its mistakes are told already."""
            return sum(1 / len(names) / (1 + met[name]) for _, names in cases[i]["wrong"] for name in names)

        while left and len(taken) < CASES:
            best = max(left, key=news)
            left.remove(best)
            taken.append(best)
            met.update(name for _, names in cases[best]["wrong"] for name in names)
        return [cases[i] for i in sorted(taken)]
