"""The forms of an answer: which results are answers, how they travel, and which two a reader cannot tell apart."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

ERROR = "error"  # the answer that it raises


class Form:
    """What all forms have in common."""

    def of(self, result, arguments):
        """Return the answer that ``result`` is, as it stands in the table, or None where it cannot be one."""
        raise NotImplementedError

    def same(self, a, b):
        """Whether what a reader answers could be both of these."""
        return a == b

    def fits(self, answer, right):
        """Whether a reader can give this answer where ``right`` is the right one."""
        return True

    def for_all(self):
        """Return what the browser must know of this form."""
        return {}

    def for_case(self, arguments, right):
        """Return what it must know of one case besides."""
        return {}


@dataclass(frozen=True, kw_only=True)
class _Typed(Form):
    """Numbers that are typed; with ``places`` they are rounded, and whole numbers otherwise."""

    axes: ClassVar[int]
    places: int = 0
    refusal: str = ""  # what the answer is called that it raises

    def of(self, result, arguments):
        if isinstance(result, Exception):
            return ERROR if self.refusal else None
        answer = result.detach().cpu() if isinstance(result, torch.Tensor) else result
        try:
            answer = torch.as_tensor(answer, dtype=torch.float64)
        except (TypeError, ValueError, RuntimeError):
            return None
        if answer.ndim != self.axes or (not self.places and not (answer == answer.round()).all()):
            return None
        return self._plain(answer.tolist())

    def _plain(self, value):
        if isinstance(value, list):
            return [self._plain(item) for item in value]
        if value != value or abs(value) == float("inf"):
            return str(value)  # JSON has no word for it
        value = round(value, self.places + 2)  # two more than are asked for: 0.4449 is nearer to 0.44 than to 0.45
        return int(value) if value == int(value) else value

    def same(self, a, b):
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(self.same(*pair) for pair in zip(a, b))
        if not self.places or isinstance(a, (str, list)) or isinstance(b, (str, list)):
            return a == b
        return abs(a - b) <= 10**-self.places

    def for_all(self):
        return {"places": self.places, "refusal": self.refusal}


@dataclass(frozen=True, kw_only=True)
class Number(_Typed):
    """One number; ``unit`` stands after the field."""

    axes = 0
    unit: str = ""

    def for_all(self):
        return super().for_all() | {"unit": self.unit}


@dataclass(frozen=True, kw_only=True)
class Numbers(_Typed):
    """A shape, a tuple, or a tensor of one axis; ``total`` is what its numbers add up to, ``total_of`` their name."""

    axes = 1
    total: float | None = None
    total_of: str = "The numbers"

    def for_all(self):
        return super().for_all() | ({"total": self.total, "total_of": self.total_of} if self.total is not None else {})


@dataclass(frozen=True, kw_only=True)
class Table(_Typed):
    """A matrix of numbers. ``rows`` and ``columns`` name its lines: the names, or what makes them of the arguments."""

    axes = 2
    rows: Any = ()
    columns: Any = ()

    def fits(self, answer, right):
        return answer == ERROR or right == ERROR or (len(answer), len(answer[0])) == (len(right), len(right[0]))

    def for_case(self, arguments, right):
        return _names(self, arguments)


@dataclass(frozen=True, kw_only=True)
class Mask(Form):
    """A matrix of bools, painted. ``what`` says what its rows and columns are; they are named as those of a `Table`."""

    what: tuple[str, str] = ("queries", "keys")
    rows: Any = ()
    columns: Any = ()

    def fits(self, answer, right):
        return (len(answer), len(answer[0])) == (len(right), len(right[0]))

    def of(self, result, arguments):
        if not isinstance(result, torch.Tensor) or result.dtype != torch.bool or result.ndim != 2:
            return None
        return "/".join("".join("01"[cell] for cell in row) for row in result.tolist())

    def for_all(self):
        return {"what": list(self.what)}

    def for_case(self, arguments, right):
        return _names(self, arguments)


@dataclass(frozen=True)
class Choice(Form):
    """One of several: a dict of what is returned and how that is written, or what makes one of the arguments."""

    options: Any

    def of(self, result, arguments):
        options = list(_made(self.options, arguments))
        return options.index(result) if not isinstance(result, torch.Tensor) and result in options else None

    def for_case(self, arguments, right):
        return {"options": list(_made(self.options, arguments).values())}


@dataclass(frozen=True)
class Order(Form):
    """Steps to be put in order: their texts, or what makes them of the arguments. A tuple of them is returned."""

    steps: Any

    def of(self, result, arguments):
        steps = sorted(_made(self.steps, arguments))
        if not isinstance(result, (tuple, list)) or sorted(result) != steps:
            return None
        return [steps.index(step) for step in result]

    def for_case(self, arguments, right):
        steps = sorted(_made(self.steps, arguments))
        start = list(range(len(steps)))
        return {"options": steps, "start": start[::-1] if start == right else start}


def _made(thing, arguments):
    return thing(*arguments) if callable(thing) else thing


def _names(form, arguments):
    """The names of rows and columns, where there are any."""
    lines = {"rows": _made(form.rows, arguments), "columns": _made(form.columns, arguments)}
    return {name: list(names) for name, names in lines.items() if names}
