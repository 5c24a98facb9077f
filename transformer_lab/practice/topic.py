"""A topic: a rule, the question about it, and the table of cases computed from both."""

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
from . import MAX_CASES
from .answers import Form
from .draws import random_integer

_MAX_DRAWS = 400  # inputs are drawn at most this many times
_CANDIDATES_PER_CASE = 2  # cases drawn for each case of the table, which keeps the most informative ones
_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z0-9`(])")


def rule(*, inputs):
    """Return a decorator that turns a reference into a rule: an exercise without hints and without an assignment."""
    return lambda reference: Exercise(reference, inputs, axes={}, hints=("", "", ""))


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic to practise; the package's docstring explains the fields."""

    title: str
    rule: Any
    question: Any
    answer: Form
    inputs: Any = None
    size_ranges: dict = field(default_factory=dict)
    accepts: Any = None
    decimals: int = 1
    given_text: Any = None
    asked_value: Any = None
    mistake_texts: dict = field(default_factory=dict)
    excluded_mistakes: tuple = ()
    name: str = ""
    chapter: int = 0

    def with_name_and_chapter(self, name, chapter):
        return replace(self, name=name, chapter=chapter)

    @cached_property
    def exercise(self):
        return course.load(self.rule) if isinstance(self.rule, str) else self.rule

    @cached_property
    def mistakes(self):
        """Return the known mistakes that the topic recognizes, by name."""
        known = self.exercise.mistakes
        unknown = [name for name in (*self.excluded_mistakes, *self.mistake_texts) if name not in known]
        if unknown:
            raise ValueError(f"mistakes of {self.title!r} must be known to its rule, got {', '.join(unknown)}")
        return {name: mistake for name, mistake in known.items() if name not in self.excluded_mistakes}

    @cached_property
    def table_json(self):
        """Return the table as JSON."""
        return json.dumps(self.table(), ensure_ascii=False, separators=(",", ":"))

    def table(self):
        """Return the data for the browser: the cases with their answers, and two sentences about each mistake."""
        cases = self._most_informative(list(self._draw_cases()))
        shown_mistakes = sorted({name for case in cases for _, names in case["wrong"] for name in names})
        for case in cases:
            case["wrong"] = [
                [answer, [shown_mistakes.index(name) for name in names]] for answer, names in case["wrong"]
            ]
        return {
            "name": self.name or self.title,
            "title": self.title,
            "kind": type(self.answer).__name__.lower(),
            **self.answer.table_fields(),
            "mistakes": [[name, *self.sentences_about(name)] for name in shown_mistakes],
            "cases": cases,
        }

    def sentences_about(self, name):
        """Return two sentences about a mistake: a description, and a hint, which may be empty."""
        text = self.mistake_texts.get(name) or self.mistakes[name].text
        first, *rest = _SENTENCE.split(re.sub(r"\s+", " ", text))
        return first, rest[-1] if rest else ""

    def _draw_cases(self):
        """Yield different cases, up to twice as many as the table uses."""
        seen_questions, count = set(), 0
        for seed in range(_MAX_DRAWS):
            arguments = self._arguments(seed)
            question = self.question(*arguments), self.given_text(*arguments) if self.given_text else ""
            if question in seen_questions or not (self.accepts is None or self.accepts(*arguments)):
                continue
            seen_questions.add(question)
            if case := self._case(arguments):
                yield case
                count += 1
            if count == _CANDIDATES_PER_CASE * MAX_CASES:
                return

    def _arguments(self, seed):
        draw = Draw(seed)
        sizes = {name: random_integer(draw, *bounds) for name, bounds in self.size_ranges.items()}
        arguments = (self.inputs or self.exercise.inputs)(draw, **sizes)
        return each_tensor(self._round, arguments if isinstance(arguments, tuple) else (arguments,))

    def _round(self, x):
        return x.double().round(decimals=self.decimals) if x.is_floating_point() else x

    def _case(self, arguments):
        """Return the case for these arguments, or None if they do not lead to a good question."""
        right = self._answer(self.exercise.reference, arguments)
        if right is None:
            return None
        wrong = []
        for name, mistake in self.mistakes.items():
            answer = self._answer(mistake.function, arguments)
            if answer is None or not self.answer.fits(answer, right) or self.answer.indistinguishable(answer, right):
                continue
            names_with_same_answer = [names for other, names in wrong if self.answer.indistinguishable(answer, other)]
            if len(names_with_same_answer) > 1 or (names_with_same_answer and len(names_with_same_answer[0]) == 2):
                return None
            if names_with_same_answer:
                names_with_same_answer[0].append(name)
            else:
                wrong.append([answer, [name]])
        return {
            "question": self.question(*arguments),
            **({"given": self.given_text(*arguments)} if self.given_text else {}),
            **self.answer.case_fields(arguments, right),
            "right": right,
            "wrong": wrong,
        }

    def _answer(self, function, arguments):
        try:
            copies = each_tensor(torch.clone, arguments)
            result = function(*copies)
            result = self.asked_value(result, *copies) if self.asked_value else result
        except Exception as error:
            result = error
        return self.answer.from_result(result, arguments)

    @staticmethod
    def _most_informative(cases):
        """Return the cases that show the most mistakes, each mistake about equally often, in the order in which the
        cases were drawn."""
        remaining, selected, n_shown = list(range(len(cases))), [], Counter()

        def information(i):
            """Return how informative a case is. A mistake that the selected cases already show counts less."""
            return sum(1 / len(names) / (1 + n_shown[name]) for _, names in cases[i]["wrong"] for name in names)

        while remaining and len(selected) < MAX_CASES:
            best = max(remaining, key=information)
            remaining.remove(best)
            selected.append(best)
            n_shown.update(name for _, names in cases[best]["wrong"] for name in names)
        return [cases[i] for i in sorted(selected)]
