'''An exercise consists of the function to write, the reference solution, and the known mistakes.

    @exercise(inputs=..., axes=..., hints=...)
    def attention(query, key, value, *, scale=by_root): ...    # the reference: what is right

    @attention.right                                           # other correct solutions: functions in a class body
    @attention.wrong                                           # known mistakes: the docstrings are for learners
    @attention.wrong(stage="scale")                            # known mistakes in one stage of the reference
    @attention.wrong(stage="scale", alone=True)                # the same, but never combined with other mistakes
    @attention.mistake                                         # a single known mistake: a function
    attention.mistakes_in(scale=(no_scale, by_d))              # mistakes in a stage, from existing functions
    attention.mistake_around(as_float)                         # a mistake that any function can make in addition
    @attention.probe                                           # a further input, named by its docstring
    attention.example("one query", q_len=1)                    # a further input, from sizes, arguments or a function
    @attention.property                                        # a property of every correct answer

A class only groups functions: it has no instances, and its functions take no ``self``. Under ``wrong``, each function
is a mistake, and its docstring is the text that a learner who made the mistake sees:

    @split_heads.wrong
    class Sizes:
        def n_heads_taken_for_d_head(x, n_heads):
            """`n_heads` is used as the number of features of a head. …"""
            return x.unflatten(-1, (-1, n_heads)).transpose(1, 2)

        @ways(for_view=torch.Tensor.view, for_reshape=torch.Tensor.reshape)
        def two_heads(cut, x, n_heads):
            """Your function always makes two heads, whatever `n_heads` says. …"""
            return cut(x, *x.shape[:2], 2, -1).transpose(1, 2)

        @family(
            heads_last=("batch, seq, d_head, heads", "the heads come last of all. `heads` belongs after `batch`."),
            no_transpose=("batch, seq, heads, d_head", "`heads` stays after `seq`. One operation is missing."),
        )
        def ordered(axes, x, n_heads):
            """The features are cut, but {}"""
            return cut_into_heads(x, n_heads).permute(order(axes))

`ways` writes one mistake in several ways, all with the same text: here `two_heads_for_view` and
`two_heads_for_reshape`. `family` makes a table of mistakes that differ in one argument, and in the words that replace
``{}`` in the docstring. `rows_of` makes the rows of a table from functions that have their own docstrings.
`@with_text_of(other)` gives a mistake the text of a different mistake.

Braces mark what a docstring says about the rest of the answer: ``{The triangle is right, and} its diagonal is
missing.`` If something else is wrong, too, a card omits the text in braces, and capitalizes a letter that then begins a
sentence.

A stage is a keyword-only argument of the reference. Its default is the correct function, whose docstring says what the
step does. A mistake in one stage is a function that replaces this default, so that mistakes in two stages can be
combined into a third wrong function, which a check recognizes as well.
'''

import inspect
import re
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations

from ..device import device
from . import source
from .agree import tensors_in
from .diagnose import check
from .observe import Probe, changes_each_time, observe
from .probes import Draw, Outcomes, each_tensor, in_float64, on_device, strided
from .report import HINT_KINDS


def exercise(*, inputs, axes, hints=(), facts=None, raises=None, make_strided=strided, as_function=None):
    """Make an exercise from its reference.

    Parameters
    ----------
    inputs : callable
        ``inputs(draw, **sizes)`` returns the arguments of one call. The sizes are keyword arguments named by axis words
        such as ``seq``, with defaults that differ from one another: with equal sizes, a wrong axis could go unnoticed.
    axes : dict of str to str
        The axis words of each tensor argument and, under ``"return"``, of the result (for a tuple, the words of each
        item, separated by commas).
    hints : tuple of three str
        Three hints: a question, where to look, and the shape of the code.
    facts : callable, optional
        ``facts(arguments, result, made)`` returns the facts, besides the numbers, that must be the same as for the
        reference: for example, whether the result is a view. ``made`` contains every tensor that was created
        during the call.
    raises : type, optional
        The type of the error that some inputs must raise; the error's message is not compared.
    make_strided : callable, optional
        Turns a contiguous tensor into one that is not contiguous. Pass `probes.strided_with_whole_rows` if a correct
        answer may require that a token's features are adjacent in memory, as `torch.view_as_complex` does.
    as_function : callable, optional
        Turns the learner's answer into a function, if the answer is a class; returns a function unchanged.

    Returns
    -------
    callable
        Takes the reference and returns the `Exercise`.
    """
    return lambda reference: Exercise(reference, inputs, axes, hints, facts, raises, make_strided, as_function)


@dataclass(frozen=True)
class Mistake:
    """A wrong implementation, and the text for learners who wrote it."""

    id: str
    function: object
    docstring: str
    stage: str | None = None
    alone: bool = False  # never combined with a different mistake
    # for a mistake that can be added to any function: ``wrap(function)`` is a function that also makes this mistake
    wrap: object = None
    recognizes: object = None  # ``recognizes(probe, got, expected)``: whether this mistake produced the outcome ``got``

    @cached_property
    def text(self):
        """The text that a learner sees if nothing else is wrong."""
        return re.sub(r"[{}]", "", self.docstring)

    @cached_property
    def text_beside_another(self):
        """The text, without the parts in braces, that a learner sees if something else is wrong as well."""
        return without_braced_text(self.docstring)


def without_braced_text(text):
    """Omit the text in braces, and capitalize a letter that then begins a sentence."""
    text = re.sub(r"(^|[.?!]\s+)\{[^{}]*\}\s*(\w?)", lambda match: match[1] + match[2].upper(), text)
    return re.sub(r"\s*\{[^{}]*\}", "", text).strip()


def family(**rows):
    """Make a table of mistakes, one function with a different first argument in each row: ``id=(argument, words)``.

    The words of a row replace ``{}`` in the function's docstring, in order; a ``{}`` that is left over is replaced by
    the argument. If there is no docstring, the words are the whole text. A row without words may be the bare argument
    instead of a tuple.
    """
    tuples = {id: row if isinstance(row, tuple) else (row,) for id, row in rows.items()}
    return lambda function: [_with_argument(function, id, *row) for id, row in tuples.items()]


def rows_of(functions, id="{}"):
    """Return rows for `family`: one for each function in a list or a class body, such as ``family(**rows_of(Joins))``.

    The function is the row's argument, and its docstring is the row's words; ``id`` is the format of the row's id, in
    which the function's name replaces ``{}``.
    """
    functions = _functions_in(functions) if isinstance(functions, type) else functions
    return {id.format(function.__name__): (function, function.__doc__) for function in functions}


def ways(**spellings):
    """Write one mistake in several ways, each of which may raise its own error: ``ways(for_view=torch.Tensor.view)``.

    The function's first argument is the operation that differs. The id is the function's name, followed by the
    keyword.
    """
    return lambda function: [
        _with_argument(function, f"{function.__name__}_{name}", spelling) for name, spelling in spellings.items()
    ]


def with_text_of(other):
    """Give a mistake the text of a different mistake: ``@with_text_of(two_heads)``."""

    def copy_text(function):
        function.__doc__ = other.__doc__
        return function

    return copy_text


def _with_argument(function, id, argument, *words):
    """Return a row of a table: the function with its first argument bound, and with its docstring filled in."""
    first_part, *other_parts = (function.__doc__ or "{}").split("{}")
    if len(words) > len(other_parts):
        raise ValueError(f"words of {id} must fill a {{}} in the docstring of {function.__name__}, got {words[-1]!r}")
    row = partial(function, argument)
    row.__name__ = id  # ty: ignore[missing-attribute]
    words += ("{}",) * (len(other_parts) - len(words))
    row.__doc__ = "".join([first_part, *map("".join, zip(words, other_parts))]).replace("{}", str(argument))
    return row


def _functions_in(body):
    """Return the functions in a class body and the rows of its tables, in order; omit names with a leading `_`."""
    public_values = [value for name, value in vars(body).items() if not name.startswith("_")]
    members = [member for value in public_values for member in (value if isinstance(value, list) else [value])]
    return [member for member in members if callable(member)]


class Exercise:
    """A function to write, and what a check knows about it.

    A call with the learner's function checks this function, shows a card and returns a `Report`.
    """

    def __init__(self, reference, inputs, axes, hints, facts=None, raises=None, make_strided=strided, as_function=None):
        self.name, self.__doc__, self.__module__ = reference.__name__, reference.__doc__, reference.__module__
        self.reference, self.inputs, self.axes, self.hints = reference, inputs, axes, tuple(hints)
        self.facts, self.raises, self.make_strided = facts, raises, make_strided
        self.as_function = as_function or (lambda function: function)
        if len(self.hints) != len(HINT_KINDS):
            raise ValueError(f"{self.name} must have three hints ({', '.join(HINT_KINDS)}), got {len(self.hints)}")
        parameters = inspect.signature(reference).parameters.values()
        self.arguments = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
        self.stages = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        for word in axes:
            if word not in (*self.arguments, "return"):
                allowed = ", ".join([*self.arguments, "return"])
                raise ValueError(f"axes of {self.name} must be for one of {allowed}, got {word!r}")
        self.sizes = {p.name: p.default for p in inspect.signature(inputs).parameters.values() if p.name != "draw"}
        self.mistakes, self.equivalents, self.properties, self.added_probes = {}, {}, {}, []
        self.working = reference  # the function for later exercises: the learner's own function once it is right

    def __call__(self, *functions):
        report = check(self, *map(self.as_function, functions))
        self.working = functions[0] if report.status == "correct" else self.reference
        return report

    def __repr__(self):
        return f"<the check of {self.name}({', '.join(self.arguments)})>"

    # Description of the exercise

    def mistake(self, function=None, *, stage=None, alone=False, recognizes=None):
        """Add a known mistake: a wrong function, or a function that replaces one ``stage`` of the reference.

        A mistake that is ``alone`` is not combined with mistakes in other stages, because it raises an error before
        those mistakes take effect, or because the combination would have the same outcomes as a different pair of
        mistakes. A mistake with ``recognizes`` is named even if its numbers are not known beforehand:
        ``recognizes(probe, got, expected)`` must be true for every probe on which the function fails; ``got`` and
        ``expected`` are outcomes.
        """
        if function is None:
            return partial(self.mistake, stage=stage, alone=alone, recognizes=recognizes)
        if stage is not None and stage not in self.stages:
            stages = ", ".join(self.stages) or "it has none"
            raise ValueError(f"stage must be one of the stages of {self.name} ({stages}), got {stage!r}")
        id = function.__name__
        if id in self.mistakes:
            raise ValueError(f"mistakes of {self.name} must differ in name, got {id!r} twice")
        text = self._docstring(function, "the text for a learner who makes the mistake")
        whole_function = partial(self.reference, **{stage: function}) if stage else function
        self.mistakes[id] = Mistake(id, whole_function, text, stage, alone, recognizes=recognizes)
        return function

    def wrong(self, body=None, *, stage=None, alone=False):
        """Add the known mistakes in a class body; ``stage`` and ``alone`` apply to all of them (see `mistake`)."""
        if body is None:
            return partial(self.wrong, stage=stage, alone=alone)
        for function in _functions_in(body):
            self.mistake(function, stage=stage, alone=alone)
        return body

    def mistake_around(self, wrap):
        """Add a known mistake that can be added to any function, and so can be combined with every other mistake.

        ``wrap(function)`` returns a function that makes this mistake in addition to those of ``function``.
        """
        id = wrap.__name__
        self.mistakes[id] = Mistake(
            id, wrap(self.reference), self._docstring(wrap, "the text for a learner who makes the mistake"), wrap=wrap
        )
        return wrap

    def mistakes_in(self, *, alone=False, **stages):
        """Add known mistakes by stage: ``mistakes_in(scale=(no_scale, by_d), weights=(over_queries,))``."""
        for stage, functions in stages.items():
            for function in functions:
                self.mistake(function, stage=stage, alone=alone)

    def right(self, body):
        """Add correct solutions besides the reference: the functions in a class body."""
        for function in _functions_in(body):
            self.equivalent(function)
        return body

    def equivalent(self, function):
        """Add a correct answer that is written differently from the reference."""
        self.equivalents[function.__name__] = function
        return function

    def property(self, function):
        """Add a property of every correct answer: ``property(function, *arguments)`` says whether the property holds.

        The docstring of ``property`` is a sentence that states the property.
        """
        self.properties[self._docstring(function, "a sentence that states the property")] = function
        return function

    def probe(self, make=None, *, plain=False):
        """Add an input: ``make(draw)`` returns the arguments of one call.

        The docstring of ``make`` says what is special about the input.

        A known mistake is named only if it has the same outcome as the learner's function on every ``plain`` input; on
        a special input, the learner's function may show a further mistake.
        """
        if make is None:
            return partial(self.probe, plain=plain)
        self.added_probes.append((self._docstring(make, "what is special about the input"), make, plain))
        return make

    def example(self, name, *arguments, plain=False, **named):
        """Add an input: pass all its arguments in order, or only its unusual sizes and arguments by name.

        A single function in place of the arguments draws them: ``example("one row", lambda draw: (draw(5), 0))``.
        """
        # only a plain function draws the arguments, since a callable model is an ordinary argument
        if len(arguments) == 1 and inspect.isfunction(arguments[0]) and not named:
            self.added_probes.append((name, arguments[0], plain))
            return
        sizes = {word: size for word, size in named.items() if word in self.sizes}
        other_arguments = {word: argument for word, argument in named.items() if word not in self.sizes}
        unknown_words = other_arguments.keys() - set(self.arguments)
        if unknown_words or bool(named) == bool(arguments) or len(arguments) not in (0, len(self.arguments)):
            allowed = ", ".join(dict.fromkeys([*self.sizes, *self.arguments]))
            given = ", ".join(sorted(unknown_words)) or f"{len(arguments)} in order and {len(named)} by name"
            raise ValueError(
                f"an example of {self.name} takes all its arguments in order, or some of {allowed} by name, "
                f"got {given} in {name!r}"
            )

        def make(draw):
            if arguments:
                return arguments
            drawn = zip(self.arguments, self.inputs(draw, **sizes))
            return tuple(other_arguments.get(word, value) for word, value in drawn)

        self.added_probes.append((name, make, plain))

    def _docstring(self, function, purpose):
        if not function.__doc__:
            raise ValueError(f"{function.__name__} of {self.name} must have a docstring: {purpose}")
        return inspect.cleandoc(function.__doc__)

    # Outcomes of the reference and of the known mistakes

    @cached_property
    def probes(self):
        """Return all inputs, plain inputs first: ordinary, larger, exercise-specific, float64 and non-contiguous."""
        ordinary_arguments = self.inputs(Draw(0))
        probes = [Probe("ordinary input", ordinary_arguments, plain=True)]
        if self.sizes:
            larger_sizes = {name: size + 4 for name, size in self.sizes.items()}
            probes.append(Probe("larger input", self.inputs(Draw(1), **larger_sizes), plain=True))
        probes += [Probe(name, make(Draw(2)), plain) for name, make, plain in self.added_probes]
        if any(tensor.is_floating_point() for tensor in tensors_in(ordinary_arguments)):
            probes.append(Probe("input in float64", each_tensor(in_float64, ordinary_arguments)))
            probes.append(Probe("input that is not contiguous", each_tensor(self.make_strided, ordinary_arguments)))
            if device().type != "cpu":
                arguments = each_tensor(on_device, ordinary_arguments)
                probes.append(Probe(f"input on the {device().type} device", arguments, this_device_only=True))
        for probe in probes:
            if not isinstance(probe.arguments, tuple) or len(probe.arguments) != len(self.arguments):
                given = (
                    f"{len(probe.arguments)}" if isinstance(probe.arguments, tuple) else type(probe.arguments).__name__
                )
                raise ValueError(
                    f"the inputs of {self.name} must be a tuple of its arguments ({', '.join(self.arguments)}), "
                    f"got {given} with {probe.name}"
                )
        return sorted(probes, key=lambda probe: not probe.plain)

    @cached_property
    def unneeded_arguments(self):
        """Return the arguments that an answer may leave unused, because some correct answer never reads them."""
        trees = filter(None, map(source.parse, self.equivalents.values()))
        return {name for tree in trees for name in source.unused_parameters(tree)}

    @cached_property
    def expected(self):
        """Return the outcome of the reference for each probe."""
        outcomes = [observe(self, self.reference, probe) for probe in self.probes]
        for probe, outcome in zip(self.probes, outcomes):
            if outcome.error is not None and not isinstance(outcome.error, self.raises or ()):
                raise ValueError(
                    f"the reference of {self.name} must not raise, got {outcome.error_text} with {probe.name}"
                ) from outcome.error
        if changes_each_time(self, self.reference, self.probes[0], outcomes[0]):
            raise ValueError(f"the reference of {self.name} must not be random: its results differ from call to call")
        return outcomes

    @cached_property
    def known_outcomes(self):
        """Return a dict from ids to outcomes, for each known mistake and for each pair that can be combined."""
        single_mistakes = [(mistake,) for mistake in self.mistakes.values()]
        pairs = [pair for pair in combinations(self.mistakes.values(), 2) if self._can_combine(pair)]
        return {
            tuple(mistake.id for mistake in mistakes): Outcomes(self, self.combined_function(mistakes))
            for mistakes in single_mistakes + pairs
        }

    def recognized_ids(self, outcomes):
        """Return a tuple with the id of the mistake whose ``recognizes`` holds for all wrong outcomes, or ()."""
        probe_outcomes = zip(self.probes, outcomes, self.expected)
        wrong_outcomes = [(probe, got, expected) for probe, got, expected in probe_outcomes if not got.same(expected)]
        candidates = ((mistake.id, mistake.recognizes) for mistake in self.mistakes.values() if mistake.recognizes)
        return next(
            ((id,) for id, recognizes in candidates if all(recognizes(*outcome) for outcome in wrong_outcomes)), ()
        )

    def combined_function(self, mistakes):
        """Return a function that makes one mistake, or two mistakes at the same time."""
        if len(mistakes) == 1:
            return mistakes[0].function
        inner, outer = sorted(mistakes, key=lambda mistake: mistake.wrap is not None)
        if outer.wrap:
            return outer.wrap(inner.function)
        return partial(self.reference, **{m.stage: m.function.keywords[m.stage] for m in mistakes})

    @staticmethod
    def _can_combine(pair):
        if any(mistake.wrap for mistake in pair):
            return not any(mistake.alone for mistake in pair) and pair[0].wrap != pair[1].wrap
        return all(mistake.stage and not mistake.alone for mistake in pair) and pair[0].stage != pair[1].stage
