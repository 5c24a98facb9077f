"""The sentences of a card: what a wrong function does, where its result differs first, on how small an input.

A function named after what happened, such as `raised`, returns what is said of it.
"""

import dis
import inspect
import linecache
import os
import re
import sysconfig
import traceback
from copy import deepcopy

import torch

from . import source, steps
from .agree import agree, as_int, close, like, readable, tensors_in
from .course import FOLDERS, load
from .observe import Probe, observe, settings_kept
from .probes import Draw, each_tensor
from .relation import Case, relation, share, term, wrong_places
from .words import axis_sizes, axis_words, dtype_name, in_words, results, short, shortest_distinct

MAX_NUMBERS_SHOWN = 8  # results up to this size are printed in full
MAX_INPUTS_NAMED = 8  # of the inputs that a correct function was tried on
# Folders whose code is not the learner's.
LIBRARIES = (
    os.path.dirname(os.__file__),
    sysconfig.get_path("purelib"),
    os.path.dirname(torch.__file__),
    os.path.dirname(os.path.dirname(__file__)),
)


# Functions without a result


def timed_out(end, what="function"):
    """Say that a function, or a test, ran out of time; ``end`` is the `TimeUp`."""
    said = f"Your {what} did not come to an end within {end.seconds:g} seconds"
    advice = "A right answer takes far less than one. " if what == "function" else ""
    advice += "Is there a loop that waits for something that never happens?"
    if end.runs_on:
        return f"{said}. {advice} It {STILL_RUNNING}"
    return f"{said}, and was stopped. {advice}{_stopped_at(end)}"


def interrupted(end, what="function"):
    """Say that the learner stopped the check; ``end`` is the `Interrupted`."""
    if end.runs_on:
        return f"You stopped the check. Your {what} {STILL_RUNNING}"
    return f"You stopped the check, and your {what} with it.{_stopped_at(end)}"


STILL_RUNNING = "is still running: restart the kernel before you go on."


def _stopped_at(end):
    """Say in which of the learner's lines a function was stopped."""
    lines = _learner_lines(end.stopped) if end.stopped else []
    return f"\n\nIt was stopped in {_quote_line(*lines[-1])}" if lines else ""


def fault(error, could_not):
    """Say that the check itself failed: ``could_not`` is what it could not do. The learner did nothing wrong."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = str(error).strip().split("\n")[0]
    return (
        f"The check could not {could_not}. This is a fault of the check, not yours. Please report it, together with "
        f"your code: `{type(error).__name__}: {text}`, in line {frame.lineno} of "
        f"`{os.path.basename(frame.filename)}`."
    )


def is_stub(error):
    """Whether an error comes from ``raise NotImplementedError`` in a cell, and not from PyTorch."""
    if not isinstance(error, NotImplementedError):
        return False
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    code = last.tb_frame.f_code.co_code
    return not is_library(last.tb_frame) and code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def outdated(exercise, error):
    """Say that the newest cell with this function has a syntax error, and that an older version was checked."""
    return (
        f"Your newest cell with `{exercise.name}` ended with `SyntaxError`: {error.msg}, in line {error.lineno}. So "
        "this card is about the function from before. Correct that cell and run it first."
    )


def not_written(function, error):
    """Say that a function which the learner's calls is not written yet; nothing if it is the learner's own."""
    stub = traceback.extract_tb(error.__traceback__)[-1].name
    if stub == getattr(function, "__name__", stub) or stub.startswith("<"):  # "<lambda>", "<module>"
        return ""
    said = f"Your function calls `{stub}`, which is not written yet. Write that first"
    if stub in FOLDERS:
        said += f", or go on with the course's: `{stub} = tl.checks.{stub}.reference`"
    return f"{said}."


def raised(exercise, function, probe, error, refused=None):
    """Say which error was raised, at which of the learner's lines, and what PyTorch refused to do there."""
    name, text = type(error).__name__, str(error).strip().split("\n")[0]
    said = f"`{name}`: {text}" if text else f"`{name}`"
    lines = _learner_lines(error)
    if isinstance(error, SystemExit):
        said = "Your function ends Python itself, with `exit()` or the like."
    if isinstance(error, RecursionError):
        said = "Your function calls itself without an end (`RecursionError`)."
    if not lines:
        if isinstance(error, TypeError) and (parameters := _parameters(function)) is not None:
            return f"`{exercise.name}` takes ({', '.join(exercise.arguments)}), and yours takes ({parameters}). {said}"
        return said
    frame, _ = lines[-1]
    said += f"\n\nIt happens in {_quote_line(*lines[-1])}"
    if isinstance(error, (SystemExit, RecursionError)):
        return said
    words = axis_words(exercise, probe)
    shapes = [
        f"`{name}` {_shape_in_words(value.shape, words, name in _argument_names(frame))}"
        for name, value in frame.f_locals.items()
        if isinstance(value, torch.Tensor)
    ]
    there = f"There, the shapes are: {', '.join(shapes)}." if shapes else ""
    number = _number_for_tensor(exercise, error)
    return "\n\n".join(filter(None, [said, there, _refused(refused, words), number, _explained(text)]))


def _learner_lines(error):
    """Return the learner's lines that an error passed through, the innermost last: pairs of frame and line number."""
    return [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if not is_library(frame)]


def _quote_line(frame, number):
    """Quote a line of a function, numbered from its first: ``line 2 of `f`: `return x` ``."""
    text = linecache.getline(frame.f_code.co_filename, number).strip()
    at = f"line {number - frame.f_code.co_firstlineno + 1} of `{frame.f_code.co_name}`"
    return f"{at}: `{text}`" if text else f"{at}."


def _shape_in_words(shape, words, is_argument):
    """Write a shape with the names of its axes, where these are certain.

    They are for an argument. Another tensor must have several axes, each of a size that belongs to a name: a single
    size proves little, since half of d_head may be as large as some other axis.
    """
    certain = is_argument or (len(shape) > 1 and all(size in words for size in shape))
    return in_words(shape, words if certain else {})


def _argument_names(frame):
    code = frame.f_code
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _number_for_tensor(exercise, error):
    """Say which function of another exercise got a single number in place of a row, such as positions or lengths.

    The weight and bias of a layer are left out: as single numbers they would broadcast.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_name
        if name == exercise.name or name not in FOLDERS:
            continue
        for argument, axes in load(name).axes.items():
            value = frame.f_locals.get(argument) if argument in _argument_names(frame) else None
            is_tensor = isinstance(value, torch.Tensor)
            is_row = len(axes.split()) == 1 and not axes.startswith("d_")
            if is_row and (type(value) in (int, float) or (is_tensor and value.ndim == 0)):
                given = "a tensor of shape ()" if is_tensor else f"the number {short(value)}"
                return (
                    f"`{name}` takes a tensor of shape ({axes},) as `{argument}`, and was given {given}. A single one "
                    "must be a tensor of shape (1,)."
                )
    return ""


def _refused(refused, words):
    """Say which operation PyTorch refused, and the rule that it enforced."""
    if refused is None or len(refused.tensors) < 2:  # about a single tensor, the error says enough
        return ""
    operation, tensors = refused
    named = [f"{f'`{name}`, ' if name else ''}{_shape_in_words(shape, words, bool(name))}" for name, shape in tensors]
    said = f"PyTorch refused `{operation}` of {' and '.join(named)}."
    shapes = [shape for _, shape in tensors]
    if operation in PRODUCTS and len(shapes) == 2 and min(map(len, shapes)) > 1:
        left, right = shapes[0][-1], shapes[1][-2]
        if left != right:
            said += (
                " A matrix product sums over the last axis of the left factor and the second to last of the right, "
                f"and these differ: {left} and {right}."
            )
    elif operation in ELEMENTWISE and len(shapes) == 2:
        pairs = enumerate(zip(reversed(shapes[0]), reversed(shapes[1])), 1)
        for axis, (one, other) in pairs:
            if one != other and 1 not in (one, other):
                said += (
                    " Axes are compared from the right; two must be equal, or one of them 1. Axis "
                    f"−{axis} has {one} and {other}."
                )
                break
    return said


def _explained(text):
    """Explain an error of PyTorch, if it is one of those in ``EXPLAINED``."""
    return next((words for part, words in EXPLAINED.items() if part in text), "")


PRODUCTS = {"matmul"}
ELEMENTWISE = {"add", "sub", "mul", "div", "masked_fill", "where", "eq", "lt", "le", "gt", "ge", "and", "or"}
EXPLAINED = {
    "torch.return_types": "Along an axis, `max`, `min`, `sort` and the like return a pair: the values and their "
    "indices. Take `.values`, or `amax` and `amin`, which return the values alone.",
    "not implemented for 'Long'": "PyTorch computes this for floating-point numbers only, and these are whole "
    "numbers. Is this the tensor that you mean?",
    "not implemented for 'Bool'": "PyTorch computes this for floating-point numbers only, and these are bools. Is "
    "this the tensor that you mean?",
    "Boolean value of Tensor": "`if`, `and`, `or` and `not` ask a whole tensor for one single bool. For each number "
    "by itself there are `&`, `|`, `~` and `torch.where`.",
    "view size is not compatible": "No view can show the numbers like that, as they do not lie in this order in "
    "memory. `reshape` would copy them. Ask first whether the axes stand in the order in which they are to be joined.",
    "is invalid for input of size": "The new sizes, multiplied, must give as many numbers as there are.",
}


def is_library(frame):
    return frame.f_code.co_filename.startswith((*LIBRARIES, "<frozen"))


def _parameters(function):
    try:
        return ", ".join(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


# A result, right or wrong


def inputs_tried(exercise):
    """Say what a correct function was tried on: a few inputs by name, and the same ones on every device."""
    names = [probe.name for probe in exercise.probes if not probe.this_device_only]
    if len(names) > MAX_INPUTS_NAMED + 1:
        names[MAX_INPUTS_NAMED:] = [f"and {len(names) - MAX_INPUTS_NAMED} more"]
    return f"Right with {', '.join(names)}."


RANDOM = (
    "With the same input your function returns something else each time. Does it draw random numbers, as dropout and "
    "new weights do, or keep something from one call to the next?"
)


def kept_between_calls(probe, names):
    """Say that a function is right only when called alone; ``names`` are the variables in which it keeps something."""
    where = f", in {' and '.join(f'`{name}`' for name in names)}" if names else ""
    return (
        f"Called alone, your function is right with {probe.name}; called after other inputs, it is wrong. It keeps "
        f"something from one call to the next{where}: what it stored for one input returns for another. On what does "
        "the stored value depend, and under which key do you store it?"
    )


NOTHING = (
    "Your function returns `None`, as every function does that ends without a `return`. What it prints, or gives a "
    "name, is not handed back."
)


def wrong(exercise, function, outcomes, first, done, case):
    """Say what is wrong with a function that makes no known mistake.

    ``done`` maps each step of a right answer to whether the function computes it; ``case`` is its `failing_case`.
    """
    probe, got, expected = exercise.probes[first], outcomes[first], exercise.expected[first]
    sentences = [] if probe.plain else [f"Right for ordinary input, and wrong for {probe.name}."]
    if expected.error is not None:
        instead = " Yours returns one: `raise` takes the place of `return`." if isinstance(got.value, Exception) else ""
        sentences.append(f"This input must raise a `{type(expected.error).__name__}`.{instead}")
    if got.error is not None:
        sentences.append(raised(exercise, function, probe, got.error, got.refused))
        sentences += source_findings(function, exercise.unneeded)
    elif said := mismatch(exercise, probe, got, expected):
        sentences += [
            said,
            _apart_from_axes_of_one(got.value, expected.value),
            *source_findings(function, exercise.unneeded),
        ]
    else:
        sentences += source_findings(function, exercise.unneeded)
        broken = _broken_properties(exercise, function, probe)
        if broken:
            sentences.append(f"This should hold, and does not: {broken[0]}")
        # If a property is broken that nearly right numbers keep, such as that hidden keys change nothing, the cause is
        # more than a small inaccuracy, such as another eps.
        nearly = not set(broken) - set(_broken_properties(exercise, _nearly_right(exercise), probe))
        sentences.append(_related(exercise, outcomes, first, case, nearly))
        sentences.append(_steps(exercise, done))
    return "\n\n".join(filter(None, sentences))


def _apart_from_axes_of_one(got, expected):
    """Say how many numbers are right in a result whose shape has axes of size 1 too many or too few."""
    are_tensors = isinstance(got, torch.Tensor) and isinstance(expected, torch.Tensor)
    if not are_tensors or like(got) == like(expected) or not readable(got):
        return ""
    got, expected = got.squeeze(), expected.squeeze()
    if like(got) != like(expected) or not expected.numel():
        return ""
    if agree(got, expected):
        return "Apart from axes of size 1 it is right."
    wrong = wrong_places(got, expected)
    if wrong.numel() == 1:
        return "Apart from axes of size 1 its number is wrong as well."
    return f"Apart from axes of size 1, {int(wrong.sum())} of its {wrong.numel()} numbers are wrong as well."


def _related(exercise, outcomes, first, case, nearly):
    """Say how the wrong numbers follow from the right ones, in the first failing probe and in the case shown.

    ``nearly`` says whether they may be called nearly right.
    """
    if said := term(exercise, outcomes) or share(exercise, outcomes):
        return said
    sizes, *shown = case
    pairs = [(exercise.probes[first], outcomes[first], exercise.expected[first]), shown]
    cases = []
    for probe, got, expected in pairs:
        item, mine, right = _first_wrong_item(got.value, expected.value)
        cases.append(Case(mine, right, dict(axis_sizes(exercise, probe)) | (sizes or exercise.sizes)))
    axes = exercise.axes.get("return", "").split(", ")
    return relation(*cases, axes[item].split() if item < len(axes) else [], nearly)


def _first_wrong_item(got, expected, item=0):
    """Return the index of the first wrong tensor in a result, what was returned there, and what was expected."""
    if isinstance(expected, tuple) and not all(isinstance(each, int) for each in expected):
        for one, other in zip(got, expected):
            if not agree(one, other):
                return _first_wrong_item(one, other, item)
            item += len(tensors_in(other))
    return item, got, expected


def _steps(exercise, done):
    """Say between which two steps of a right answer the function goes wrong."""
    if not done:
        return ""
    if all(done.values()):
        return "All steps of a right answer are there. Something is done besides, or the wrong thing is returned."
    names = list(done)
    missing = [name for name in names if not done[name]]
    before = names[: names.index(missing[0])]
    last = before[-1] if before else None
    found = steps.sentence(exercise, last) if last else ""
    lacking = " and ".join(steps.sentence(exercise, name) for name in missing)
    if not any(done.values()):
        return f"None of the steps of a right answer is found in your function. The first of them: {lacking}."
    if last is None:
        return f"The first step of a right answer is not found in your function: {lacking}."
    look = "between the two" if len(missing) == 1 else "between what is found and what is not"
    return (
        f"The steps of a right answer, looked for in your function. Found: {found}. Not found: {lacking}. Look {look}."
    )


def source_findings(function, unneeded=()):
    """Say what the source code alone reveals: unused parameters, but for those ``unneeded``; a discarded result."""
    if (tree := source.parse(function)) is None:
        return []
    said = []
    if unused := [f"`{name}`" for name in source.unused_parameters(tree) if name not in unneeded]:
        do = "does it" if len(unused) == 1 else "do they"
        said.append(f"Your function never uses {' and '.join(unused)}. Where {do} belong?")
    if lost := source.discarded_result(tree):
        said.append(
            f"What `{lost}` computes is thrown away: it does not change a tensor, it returns a new one. Give that a "
            "name, as in `x = …`."
        )
    return said


def recognised(exercise, function, outcomes, first, found):
    """Say which known mistakes and slips a function makes, and what else goes wrong."""
    got, mistakes = outcomes[first], [exercise.mistakes[id] for id in found.ids]
    has_own_numbers = any(mistake.sign for mistake in mistakes)  # recognised by a sign: the card says how they differ
    besides = _besides(exercise, found, got)
    several = len(found.names) > 1 or besides
    texts = [mistake.beside_another if several else mistake.text for mistake in mistakes]
    slips = [undone.said(exercise) for undone in found.slips]
    sentences = _as_one(*texts) if len(texts) == 2 and not slips else _counted([*texts, *slips])
    if slips and not several:
        sentences.append("Apart from that, your results are right.")
    if got.error is not None:
        sentences.append(raised(exercise, function, exercise.probes[first], got.error, got.refused))
    elif has_own_numbers:
        sentences.append(mismatch(exercise, exercise.probes[first], got, exercise.expected[first]))
    return "\n\n".join(filter(None, [*sentences, besides]))


def _counted(texts):
    """Put in front of two or more texts how many things go wrong."""
    return texts if len(texts) < 2 else [f"{NUMBERS.get(len(texts), 'Several')} things go wrong here.", *texts]


NUMBERS = {2: "Two", 3: "Three"}


def _as_one(one, other):
    """Return the texts of two mistakes, or one if they differ in one word throughout, as *key* and *query*."""
    words = one.split(), other.split()
    pairs = [[re.sub(r"\W", "", word) for word in pair] for pair in zip(*words) if pair[0] != pair[1]]
    # Three letters are compared: a plural counts as the same word.
    if len(words[0]) == len(words[1]) and len({(a[:3], b[:3]) for a, b in pairs}) == 1:
        a, b = min(pairs)
        return [f"One slip, made twice: read this with *{a}*, and then with *{b}*.", one]
    return _counted([one, other])


def _besides(exercise, found, got):
    """Say what else goes wrong, on another input; not the error of ``got``, which the card shows already."""
    # No entry: only shared slips were found, or several mistakes, each on inputs of its own.
    known = exercise.known.get(found.ids, found.outcomes)
    signs = [exercise.mistakes[id].sign for id in found.ids if exercise.mistakes[id].sign]
    for probe, mine, theirs, right in zip(exercise.probes, found.outcomes, known, exercise.expected):
        # Rounding to float32 on the way is no further mistake, even where the known mistake magnifies it.
        rounded = not theirs.same(right) and (
            mine.same(theirs, torch.float32) or _differs_by_rounding(mine.value, theirs.value)
        )
        is_shown = got.error is not None and type(mine.error) is type(got.error)
        is_shown = is_shown or any(sign(probe, mine, right) for sign in signs)
        if rounded or is_shown or mine.same(theirs) or mine.same(right):
            continue
        if theirs.same(right) or _is_worse(exercise, probe, mine, theirs, right):
            what = f"it raises `{type(mine.error).__name__}`" if mine.error else "it goes wrong in another way"
            return f"Besides, with {probe.name} {what}."
    return ""


def _differs_by_rounding(mine, theirs):
    """Whether two results differ by 1% at most, as angles of thousands do in float32 and in float64."""
    pairs = list(zip(tensors_in(mine), tensors_in(theirs)))
    return bool(pairs) and all(
        like(one) == like(other) and _is_float(one) and bool((one - other).norm() <= other.norm() / 100)
        for one, other in pairs
    )


def _is_worse(exercise, probe, mine, theirs, right):
    """Whether a function is worse on a probe than a known mistake that is wrong there too.

    A result that is merely different may have the same cause: a small number in the denominator turns NaN into 0.
    """
    if mine.error is not None or theirs.error is not None:
        return theirs.error is None
    if right.error is not None or mismatch(exercise, probe, theirs, right):
        return False
    return bool(mismatch(exercise, probe, mine, right)) or (bool(tensors_in(right.value)) and _is_finite(theirs.value))


def mismatch(exercise, probe, got, expected):
    """Say what is wrong with a result, its numbers aside: type, shape, dtype, changed arguments, facts."""
    if got.error is not None or expected.error is not None:
        return ""
    value, right = got.value, expected.value
    words = axis_words(exercise, probe)
    if value is None:
        return "Here your function returns `None`. Is a `return` missing?"
    if isinstance(right, torch.Tensor) and not isinstance(value, torch.Tensor):
        return f"Your function returns a value of type `{type(value).__name__}`; it must be a tensor."
    if isinstance(right, tuple) and not isinstance(value, (tuple, list)):
        return f"Your function returns a value of type `{type(value).__name__}`; it must be a tuple."
    if tensors_in(right) and isinstance(right, tuple) and len(value) != len(right):
        return f"Your function returns {len(value)} values; it must return {len(right)}."
    if type(right) is int and not isinstance(value, float) and as_int(value) is None:
        return f"Your function returns a value of type `{type(value).__name__}`; it must be a whole number."
    if isinstance(right, tuple) and (said := _items(value, right, "your result")):
        return said
    names = results(right)
    for name, mine, theirs in zip(names, tensors_in(value), tensors_in(right)):
        it = "Your result" if len(names) == 1 else f"The {name}"
        if mine.is_nested:
            return f"{it} is a nested tensor, and should be an ordinary one."
        if mine.shape != theirs.shape:
            is_now, should_be = in_words(mine.shape, words), in_words(theirs.shape, words)
            return f"{it} has the shape {is_now}, and should have {should_be}."
        if mine.dtype != theirs.dtype:
            return f"{it} is of {dtype_name(mine.dtype)}, and should be of {dtype_name(theirs.dtype)}."
        if mine.device.type != theirs.device.type or mine.layout != theirs.layout:
            is_now, wanted = (f"a tensor on `{t.device.type}`, {dtype_name(t.layout)}" for t in (mine, theirs))
            return f"{it} is {is_now}, and should be {wanted}."
    if got.changed:
        return (
            f"Your function changes its argument `{got.changed}`: whoever calls it finds other numbers there later. "
            "An operation in place does that: `+=`, `x[…] = …`, or a name that ends in an underscore."
        )
    for fact in (expected.facts or ()) if agree(value, right) else ():
        wanted, found = expected.facts[fact], (got.facts or {}).get(fact)
        if found != wanted:
            return f"The numbers are right. One thing is not: {fact} (should be {wanted}, is {found})."
    return ""


def _items(value, right, whole_result):
    """Say which item of a result, or of a tuple in it, has the wrong type or length."""
    for number, (mine, theirs) in enumerate(zip(value, right), 1):
        item = f"item {number} of {whole_result}"
        if isinstance(theirs, torch.Tensor) and not isinstance(mine, torch.Tensor):
            return f"{item.capitalize()} is of type `{type(mine).__name__}`; it must be a tensor."
        if isinstance(theirs, tuple) and tensors_in(theirs):
            if not isinstance(mine, (tuple, list)):
                return f"{item.capitalize()} is of type `{type(mine).__name__}`; it must be a tuple."
            if len(mine) != len(theirs):
                return f"{item.capitalize()} has the length {len(mine)}; it must have the length {len(theirs)}."
            if said := _items(mine, theirs, item):
                return said
    return ""


def _broken_properties(exercise, function, probe):
    """Return the sentences of the properties that do not hold."""
    broken = []
    for sentence, holds in exercise.properties.items():
        try:
            kept = holds(function, *deepcopy(probe.arguments))  # a function may change them
        except Exception:  # the property calls the function in a way that it cannot handle, which is reported elsewhere
            continue
        if not kept:
            broken.append(sentence)
    return broken


def _nearly_right(exercise):
    """Return a function whose numbers are off by one in a thousand."""
    return lambda *arguments: each_tensor(
        lambda tensor: 1.001 * tensor if _is_float(tensor) else tensor, exercise.reference(*arguments)
    )


OVERWRITTEN = (
    "PyTorch finds that an operation in place, such as `+=`, has overwritten numbers which it needs for a gradient: "
    "those that an earlier step had read."
)


CUT_OFF = (
    "The numbers are right, and no gradient flows back through them, so that nothing can be trained. What cuts it off: "
    "`.detach()`, `.data`, `.item()`, `.numpy()`, `torch.no_grad()`, or a new tensor made from numbers."
)


def gradients(exercise, function):
    """Say what is wrong with the gradients of a function whose results are right; an empty string if nothing is."""
    for probe in exercise.probes:
        names = [name for name, a in zip(exercise.arguments, probe.arguments) for _ in filter(_is_float, tensors_in(a))]
        if not names or not any(map(_is_float, tensors_in(exercise.expected[0].value))):
            continue
        right = _gradients(exercise.reference, probe)
        if right is None:
            continue
        try:
            mine = _gradients(function, probe)
        except Exception as error:
            why = OVERWRITTEN if "modified by an inplace operation" in str(error) else error
            return f"The numbers are right; without gradients through them nothing can be trained. {why}"
        mine = mine or [None] * len(right)
        if any(ours is None and _is_nonzero(theirs) for ours, theirs in zip(mine, right)):
            return CUT_OFF
        for name, ours, theirs in zip(names, mine, right):
            if ours is None or theirs is None or not theirs.isfinite().all():
                continue
            # On special inputs, such as very large scores, rounding alone can change a gradient's digits.
            equal = close(ours, theirs) or torch.allclose(ours, theirs, atol=1e-6)  # also where the right one is zero
            if not ours.isfinite().all() or (probe.plain and not equal):
                how = "is wrong" if ours.isfinite().all() else "has NaN or infinity in it"
                return f"The numbers are right; the gradient with respect to `{name}` {how}, with {probe.name}."
    return ""


def gradients_flow(function, probe):
    """Whether gradients flow back through a function; None where that cannot be seen."""
    try:
        return any(map(_is_nonzero, _gradients(function, probe) or ()))
    except Exception:
        return None


def _is_nonzero(gradient):
    """Whether a gradient is not zero: one of zeros, as of a softmax over a single key, may as well be missing."""
    return gradient is not None and not torch.allclose(gradient, torch.zeros_like(gradient), atol=1e-6)


def _gradients(function, probe):
    """Return the gradient of each floating-point argument, or None where it has none; None if the result has none."""
    leaves = []

    def as_leaf(tensor):
        if _is_float(tensor):
            leaves.append(tensor.detach().clone().requires_grad_())
            return leaves[-1]
        return tensor.clone()  # a function may change it

    arguments = each_tensor(as_leaf, probe.arguments)
    with settings_kept():
        results = [tensor for tensor in tensors_in(function(*arguments)) if tensor.requires_grad]
    if not results:
        return None
    # Weights that differ much from number to number: a plain sum is blind to errors that cancel, and weights that are
    # nearly equal leave a normalization's gradient as a small difference of large numbers.
    total = sum((r * torch.arange(r.numel()).cos().to(r).reshape(r.shape)).sum() for r in results)
    return torch.autograd.grad(total, leaves, allow_unused=True)


# The evidence


def failing_case(exercise, function, outcomes, first):
    """Return the sizes, the probe and the two outcomes that a card shows, of the smallest input that fails.

    The sizes are empty where no smaller input was searched for.
    """
    case = exercise.probes[first], outcomes[first], exercise.expected[first]
    if first != 0 or not exercise.sizes or outcomes[first].error is not None or mismatch(exercise, *case):
        return {}, *case
    return shrink(exercise, function, *case)


def evidence(exercise, sizes, probe, got, expected):
    """Show an input, what the function returns, and what is expected."""
    if mismatch(exercise, probe, got, expected):
        return ""
    at = f" ({', '.join(f'{name} {size}' for name, size in sizes.items())})" if sizes else ""
    given = [
        f"`{name} = {short(value)}`"
        for name, value in zip(exercise.arguments, probe.arguments)
        if (isinstance(value, (int, float, str, tuple, list)) and not tensors_in(value))
        or (got.error is None and 0 < sum(tensor.numel() for tensor in tensors_in(value)) <= MAX_NUMBERS_SHOWN)
    ]
    intro = f"The smallest input that shows it{at}" if at else f"With {probe.name}"
    intro += f"{': ' if given else ''}{', '.join(given)}."
    if got.error is not None:
        return intro if given else ""
    if expected.error is not None:
        return f"{intro} You return `{short(got.value)}`, expected a `{type(expected.error).__name__}`."
    return f"{intro} {_difference(got.value, expected.value)}"


def shrink(exercise, function, *case):
    """Shrink the sizes, one after another, as long as the function stays wrong, and in its numbers alone if it was."""
    sizes, numbers_alone = dict(exercise.sizes), not mismatch(exercise, *case)
    for name in sizes:
        for size in range(1, sizes[name]):
            try:
                probe = Probe("", exercise.inputs(Draw(0), **{**sizes, name: size}), plain=True)
                expected = observe(exercise, exercise.reference, probe)
            except Exception:  # a size that the inputs do not allow
                continue
            got = observe(exercise, function, probe)
            wrong = expected.error is None and got.error is None and not agree(got.value, expected.value)
            wrong = wrong and not (numbers_alone and mismatch(exercise, probe, got, expected))
            # At sizes too small to make sense, one of the two or both return NaN, such as the mean of no tokens.
            pairs = zip((got, expected), case[1:])
            finite = wrong and all(_is_finite(now.value) or not _is_finite(before.value) for now, before in pairs)
            if finite and _has_sizes(exercise, probe, {**sizes, name: size}):
                sizes[name], case = size, (probe, got, expected)
                break
    return sizes, *case


def _has_sizes(exercise, probe, sizes):
    """Whether a probe has the sizes that were asked for; enough tokens left over make one more row, say."""
    return all(sizes.get(word, size) == size for word, size in axis_sizes(exercise, probe))


def _difference(got, expected):
    """Say where two results differ first."""
    names = results(expected)
    item, got, expected = _first_wrong_item(got, expected)
    you = f"in the {names[item]} you return" if item < len(names) > 1 else "you return"
    if not isinstance(expected, torch.Tensor) or expected.numel() <= MAX_NUMBERS_SHOWN:
        return "{} `{}`, expected `{}`.".format(you[0].upper() + you[1:], *shortest_distinct(got, expected))
    wrong = wrong_places(got, expected)
    index = wrong.nonzero()[0].tolist()
    mine, right = shortest_distinct(*(tensor[tuple(index)].item() for tensor in (got, expected)))
    share = f"{int(wrong.sum())} of {wrong.numel()} numbers are wrong"
    return f"At index {index} {you} {mine}, expected {right}; {share}."


def wrong_numbers(got, expected):
    """Return which numbers are wrong, as rows of bools: in the first matrix (last two axes) that has any; or None."""
    is_tensor = isinstance(got, torch.Tensor) and isinstance(expected, torch.Tensor)
    if not is_tensor or like(got) != like(expected) or got.ndim == 0 or max(got.shape[-2:]) > 24:
        return None
    wrong = wrong_places(got, expected)
    tables = wrong.reshape(-1, *wrong.shape[-2:]) if wrong.ndim > 1 else wrong[None, None]
    return next((table.tolist() for table in tables if table.any()), None)


def _is_finite(value):
    return all(tensor.isfinite().all() for tensor in tensors_in(value))


def _is_float(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()
