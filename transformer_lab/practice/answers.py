"""The forms of answers: which results can be answers, how answers are serialized, and which answers look the same."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

ERROR = "error"  # the answer “it raises an error”


class Form:
    """The base class of all forms."""

    def from_result(self, result, arguments):
        """Return ``result`` as an answer for the table, or None if it cannot be an answer."""
        raise NotImplementedError

    def indistinguishable(self, a, b):
        """Return whether a reader's answer could match both ``a`` and ``b``."""
        return a == b

    def fits(self, answer, right):
        """Return whether a reader can give this answer if ``right`` is the right answer."""
        return True

    def table_fields(self):
        """Return the table's fields that the browser needs for this form."""
        return {}

    def case_fields(self, arguments, right):
        """Return the fields that the browser needs for one case."""
        return {}


@dataclass(frozen=True, kw_only=True)
class _TypedNumbers(Form):
    """Typed numbers, rounded to ``places``; integers by default."""

    axes: ClassVar[int]
    places: int = 0
    refusal: str = ""  # the label of the answer “it raises an error”

    def from_result(self, result, arguments):
        if isinstance(result, Exception):
            return ERROR if self.refusal else None
        answer = result.detach().cpu() if isinstance(result, torch.Tensor) else result
        try:
            answer = torch.as_tensor(answer, dtype=torch.float64)
        except (TypeError, ValueError, RuntimeError):
            return None
        if answer.ndim != self.axes or (not self.places and not (answer == answer.round()).all()):
            return None
        return self._as_json(answer.tolist())

    def _as_json(self, value):
        if isinstance(value, list):
            return [self._as_json(item) for item in value]
        if value != value or abs(value) == float("inf"):
            return str(value)  # JSON cannot represent such a number
        value = round(value, self.places + 2)  # two guard digits: 0.4449 is closer to 0.44 than to 0.45
        return int(value) if value == int(value) else value

    def indistinguishable(self, a, b):
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(self.indistinguishable(*pair) for pair in zip(a, b))
        if not self.places or isinstance(a, (str, list)) or isinstance(b, (str, list)):
            return a == b
        return abs(a - b) <= 10**-self.places

    def table_fields(self):
        return {"places": self.places, "refusal": self.refusal}


@dataclass(frozen=True, kw_only=True)
class Number(_TypedNumbers):
    """One number; ``unit`` is shown after the field."""

    axes = 0
    unit: str = ""

    def table_fields(self):
        return super().table_fields() | {"unit": self.unit}


@dataclass(frozen=True, kw_only=True)
class Numbers(_TypedNumbers):
    """A shape, a tuple, or a tensor with one axis. ``total`` is the sum of its numbers, and ``total_of`` names them."""

    axes = 1
    total: float | None = None
    total_of: str = "The numbers"

    def table_fields(self):
        total = {} if self.total is None else {"total": self.total, "total_of": self.total_of}
        return super().table_fields() | total


@dataclass(frozen=True, kw_only=True)
class Table(_TypedNumbers):
    """A matrix of numbers. ``rows`` and ``columns`` are names, or functions of the arguments that return names."""

    axes = 2
    rows: Any = ()
    columns: Any = ()

    def fits(self, answer, right):
        return answer == ERROR or right == ERROR or (len(answer), len(answer[0])) == (len(right), len(right[0]))

    def case_fields(self, arguments, right):
        return _line_names(self, arguments)


@dataclass(frozen=True, kw_only=True)
class Mask(Form):
    """A painted matrix of bools. ``what`` describes rows and columns; their names are passed as in `Table`."""

    what: tuple[str, str] = ("queries", "keys")
    rows: Any = ()
    columns: Any = ()

    def fits(self, answer, right):
        return (len(answer), len(answer[0])) == (len(right), len(right[0]))

    def from_result(self, result, arguments):
        if not isinstance(result, torch.Tensor) or result.dtype != torch.bool or result.ndim != 2:
            return None
        return "/".join("".join("01"[cell] for cell in row) for row in result.tolist())

    def table_fields(self):
        return {"what": list(self.what)}

    def case_fields(self, arguments, right):
        return _line_names(self, arguments)


@dataclass(frozen=True)
class Choice(Form):
    """One of several options: a dict from results to labels, or a function of the arguments that returns such a
    dict."""

    options: Any

    def from_result(self, result, arguments):
        options = list(_resolve(self.options, arguments))
        return options.index(result) if not isinstance(result, torch.Tensor) and result in options else None

    def case_fields(self, arguments, right):
        return {"options": list(_resolve(self.options, arguments).values())}


@dataclass(frozen=True)
class Order(Form):
    """Steps to be ordered: their texts, or a function of the arguments that returns them. The rule returns a tuple."""

    steps: Any

    def from_result(self, result, arguments):
        steps = sorted(_resolve(self.steps, arguments))
        if not isinstance(result, (tuple, list)) or sorted(result) != steps:
            return None
        return [steps.index(step) for step in result]

    def case_fields(self, arguments, right):
        steps = sorted(_resolve(self.steps, arguments))
        start = list(range(len(steps)))
        return {"options": steps, "start": start[::-1] if start == right else start}


def _resolve(value, arguments):
    return value(*arguments) if callable(value) else value


def _line_names(form, arguments):
    """Return the names of rows and columns, if there are any."""
    lines = {"rows": _resolve(form.rows, arguments), "columns": _resolve(form.columns, arguments)}
    return {name: list(names) for name, names in lines.items() if names}
