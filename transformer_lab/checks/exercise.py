"""An exercise: the function to write, and all that is known about writing it.

    @exercise(inputs=..., axes=..., hints=...)
    def attention(query, key, value, *, scale=by_root): ...    # the reference: what is right

    @attention.equivalent                                      # right as well, and written differently
    @attention.mistake                                         # wrong: its docstring is what the learner is told
    @attention.mistake(part="scale")                           # wrong in one step of the reference
    @attention.probe                                           # one more input, named by its docstring
    attention.example("one query", q_len=1)                    # one more, by its sizes or by its arguments
    @attention.property                                        # what holds for every right answer

A step is a keyword-only argument of the reference whose default does it right. A mistake in one step is a function that
takes its place, so that two mistakes in two steps make a third wrong function, recognised as well.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations

import torch

from ..device import device
from .observe import Probe, observe


def exercise(*, inputs, axes, hints, facts=None, raises=None):
    """Make an exercise of its reference.

    Parameters
    ----------
    inputs : callable
        ``inputs(draw, **sizes)`` returns the arguments of one call. The sizes are keyword arguments named by axis
        words, with defaults that differ from one another, so that no wrong axis hides behind an equal size.
    axes : dict of str to str
        The axis words of each tensor among the arguments, and of what is returned, under ``"return"`` (of a tuple: one
        after another, with a comma between).
    hints : tuple of three str
        A question, where to look, the shape of the code.
    facts : callable, optional
        ``facts(arguments, result, made)`` returns what else must be as in the reference, besides the numbers: that the
        result is a view, say. ``made`` holds every tensor that was made on the way.
    raises : type, optional
        The error that some inputs must raise; its wording is free.

    Returns
    -------
    callable
        Takes the reference and returns the `Exercise`.
    """
    return lambda reference: Exercise(reference, inputs, axes, hints, facts, raises)


@dataclass(frozen=True)
class Mistake:
    """A wrong implementation, and what to tell those who wrote it."""

    id: str
    function: object
    text: str
    part: str | None = None


class Draw:
    """Random inputs, the same in every run.

    ``draw(2, 3)`` is a tensor of that shape, normally distributed. ``draw.generator`` is for what else is random.
    """

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape):
        return torch.randn(shape, generator=self.generator)


class Exercise:
    """A function to write. Calling it with the learner's function checks that, shows a card and returns a `Report`."""

    def __init__(self, reference, inputs, axes, hints, facts=None, raises=None):
        self.name, self.__doc__, self.__module__ = reference.__name__, reference.__doc__, reference.__module__
        self.reference, self.inputs, self.axes, self.hints = reference, inputs, axes, tuple(hints)
        self.facts, self.raises = facts, raises
        parameters = inspect.signature(reference).parameters.values()
        self.arguments = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
        self.parts = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        self.sizes = {p.name: p.default for p in inspect.signature(inputs).parameters.values() if p.name != "draw"}
        self.mistakes, self.equivalents, self.properties, self.own_probes = {}, {}, {}, []
        self.working = reference  # what the learner can go on with: their own function once it is right

    def __call__(self, function):
        from .diagnose import check  # which knows exercises

        report = check(self, function)
        self.working = function if report.status == "correct" else self.reference
        return report

    def __repr__(self):
        return f"<the check of {self.name}({', '.join(self.arguments)})>"

    # How it is described

    def mistake(self, function=None, *, part=None):
        """Add a known mistake: a wrong function, or with ``part`` what stands in for one step of the reference."""
        if function is None:
            return partial(self.mistake, part=part)
        if part is not None and part not in self.parts:
            raise ValueError(f"part must be a step of {self.name}, one of {', '.join(self.parts)}, got {part!r}")
        if function.__name__ in self.mistakes:
            raise ValueError(f"mistakes of {self.name} must differ in name, got {function.__name__!r} twice")
        whole = partial(self.reference, **{part: function}) if part else function
        self.mistakes[function.__name__] = Mistake(function.__name__, whole, inspect.cleandoc(function.__doc__), part)
        return function

    def equivalent(self, function):
        """Add a right answer that is written differently."""
        self.equivalents[function.__name__] = function
        return function

    def property(self, function):
        """Add what holds for every right answer: ``property(function, *arguments)`` says whether it does.

        The docstring is the sentence that holds.
        """
        self.properties[inspect.cleandoc(function.__doc__)] = function
        return function

    def probe(self, make=None, *, plain=False):
        """Add an input: ``make(draw)`` returns the arguments of one call. Its docstring says what is special about it.

        On a ``plain`` one a known mistake must act like the learner's function to be named; a special one may show
        something besides.
        """
        if make is None:
            return partial(self.probe, plain=plain)
        self.own_probes.append((inspect.cleandoc(make.__doc__), make, plain))
        return make

    def example(self, name, *arguments, plain=False, **sizes):
        """Add an input by its arguments, or by the sizes that it has in the place of the defaults."""

        def make(draw):
            return self.inputs(draw, **sizes) if sizes else arguments

        self.own_probes.append((name, make, plain))

    # What is known about it

    @cached_property
    def probes(self):
        """All inputs, the plain ones first: two of different sizes, the exercise's own, one in float64, one strided."""
        first = self.inputs(Draw(0))
        probes = [Probe("ordinary input", first, plain=True)]
        if self.sizes:
            larger = {name: size + 4 for name, size in self.sizes.items()}
            probes.append(Probe("larger input", self.inputs(Draw(1), **larger), plain=True))
        probes += [Probe(name, make(Draw(2)), plain) for name, make, plain in self.own_probes]
        if any(tensor.is_floating_point() for tensor in tensors_in(first)):
            probes.append(Probe("input in float64", each_tensor(_double, first)))
            probes.append(Probe("input that is not contiguous", each_tensor(_strided, first)))
            if device().type != "cpu":
                probes.append(Probe(f"input on the {device().type} device", each_tensor(_moved, first), here=True))
        return sorted(probes, key=lambda probe: not probe.plain)

    @cached_property
    def expected(self):
        """What the reference does with each probe."""
        return [observe(self, self.reference, probe) for probe in self.probes]

    @cached_property
    def known(self):
        """What each known mistake does with each probe, and each two in different steps: a dict of ids to outcomes."""
        single = [(mistake,) for mistake in self.mistakes.values()]
        pairs = [pair for pair in combinations(self.mistakes.values(), 2) if self._combine(pair)]
        return {
            tuple(mistake.id for mistake in mistakes): Outcomes(self, self.combined(mistakes))
            for mistakes in single + pairs
        }

    def combined(self, mistakes):
        """Return the wrong function that makes one mistake, or two at once."""
        if len(mistakes) == 1:
            return mistakes[0].function
        return partial(self.reference, **{m.part: m.function.keywords[m.part] for m in mistakes})

    @staticmethod
    def _combine(pair):
        return all(mistake.part for mistake in pair) and pair[0].part != pair[1].part


class Outcomes(Sequence):
    """What a function does with each probe of an exercise, found out when it is asked for."""

    def __init__(self, exercise, function):
        self.exercise, self.function, self.found = exercise, function, {}

    def __len__(self):
        return len(self.exercise.probes)

    def __getitem__(self, number):
        if number not in self.found:
            range(len(self))[number]  # ends a loop over all
            self.found[number] = observe(self.exercise, self.function, self.exercise.probes[number])
        return self.found[number]


def _double(tensor):
    return tensor.double() if tensor.is_floating_point() else tensor


def _strided(tensor):
    """The same numbers in memory that runs through the axes the other way round."""
    reverse = tuple(reversed(range(tensor.ndim)))
    return tensor.permute(reverse).contiguous().permute(reverse)


def _moved(tensor):
    return tensor.to(device())


def each_tensor(change, argument):
    """Change every tensor in an argument."""
    if isinstance(argument, torch.Tensor):
        return change(argument)
    if isinstance(argument, dict):
        return {key: each_tensor(change, value) for key, value in argument.items()}
    return (
        type(argument)(each_tensor(change, item) for item in argument) if type(argument) in (tuple, list) else argument
    )


def tensors_in(value):
    """All tensors in an argument or a result, one after the other."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for item in items for tensor in tensors_in(item)]
