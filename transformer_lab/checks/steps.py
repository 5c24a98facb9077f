"""The steps of a right answer, looked for among all that a function computes.

A step is a stage of the reference. Its name and its docstring are what a card calls it. It is found whole; in pieces,
as code computes it that goes head by head; or in the turns of a loop, as code computes it that goes token by token.
"""

import inspect
import itertools
import math
import re
import sys
from collections import defaultdict

import numpy as np
import torch

from . import source
from .agree import readable, tensors_in
from .observe import Recorder, observe

HIDDEN_SCORE = -1e4  # a hidden score: minus infinity, or any number that a softmax takes for it


def find_stages(exercise, function, probe):
    """Find the stages of the reference in what the function computes: a dict of str to bool, in order.

    A stage counts as done if a later stage that reads it is done. A stage that reads a missing one is left out. The
    dict is empty if stages leave no trace, as in plain arithmetic, or if the reference raises. It is also empty if a
    stage is missing and the function may compute it unseen: in NumPy, in Python numbers, in a loop without an iteration
    that shows a stage, or for a part only.
    """
    if not exercise.stages or (right := observe(exercise, exercise.reference, probe)).error is not None:
        return {}
    # Where the task requires minus infinity itself, no other number is taken for it.
    least = HIDDEN_SCORE if all(tensor.isfinite().all() for tensor in tensors_in(right.value)) else -math.inf
    results, used, moved = {}, {}, set()

    def recorded(name, stage):
        def run(*arguments):
            given = tensors_in(arguments)
            result = stage(*arguments)
            used[name] = [each for each, tensors in results.items() if any(one is a for one in tensors for a in given)]
            results.setdefault(name, []).extend(filter(readable, tensors_in(result)))
            if isinstance(result, torch.Tensor) and any(_moved(a, result) for a in given):
                moved.add(name)
            return result

        return run

    exercise.reference(*probe.arguments, **{name: recorded(name, stage) for name, stage in exercise.stages.items()})
    mine, theirs = (_traced(exercise, each, probe) for each in (function, exercise.reference))
    tables = [_Table(tensor, least) for tensor in mine.tensors if readable(tensor) and tensor.numel()]
    iterations = list(mine.iterations())
    done, in_iterations, in_part = set(), set(), set()
    stages = [stage for stage, tensors in results.items() if tensors]
    for stage in reversed(stages):
        rights = [_Table(result, least) for result in results[stage]]
        if stage in done or all(_is_among(right, tables, stage in moved) for right in rights):
            done.update([stage, *used[stage]])
        elif all(_is_in_iterations(right, iterations, stage in moved, least) for right in rights):
            in_iterations.add(stage)
            done.update([stage, *used[stage]])
        elif any(_is_in_part(right, tables) for right in rights):
            in_part.add(stage)
    found_stages = {stage: stage in done for stage in stages if done.issuperset(used[stage])}
    missing = [stage for stage, is_found in found_stages.items() if not is_found]
    # Code that does the same to queries, keys and values is a loop of three iterations, and hides nothing.
    in_a_loop = mine.most_iterations() > (3 if done else 1) and theirs.most_iterations() == 1
    hidden = mine.left_pytorch or source.uses_name(function, "from_numpy") or (in_a_loop and not in_iterations)
    return {} if missing and (hidden or missing[0] in in_part) else found_stages


def _moved(given, result):
    """Whether a result is the input's numbers in a different order."""
    return given.numel() == result.numel() > 1 and torch.equal(given.flatten().sort()[0], result.flatten().sort()[0])


def sentence(exercise, stage):
    """Say what a stage does, as its docstring does: ``scale (divide the scores by √d_head)``."""
    first, *_ = re.split(r"\.(\s|$)", inspect.getdoc(exercise.stages[stage]) or "")
    summary = " ".join(first.replace("``", "`").split())
    return f"*{stage.replace('_', ' ')}*" + (f" ({summary[0].lower()}{summary[1:]})" if summary else "")


class _Table:
    """A tensor to compare: its numbers, and how large they are in sum, which no order of the axes changes."""

    def __init__(self, tensor, least=-math.inf):
        numbers = tensor.detach().double()
        # A score that a softmax takes for minus infinity is hidden, whatever its value.
        self.numbers = numbers.clamp(min=least) if tensor.is_floating_point() else numbers
        self.total = float(self.numbers.abs().sum())

    def is_like(self, other, moved):
        """Whether two tables hold the same numbers, in any order of the axes; unless ``moved``, also joined."""
        mine, others = self.numbers, other.numbers
        if mine.numel() != others.numel() or not math.isclose(self.total, other.total, rel_tol=1e-3):
            return False
        turned = map(others.permute, itertools.permutations(range(others.ndim)))
        return any(self.has(table) for table in turned if not moved or table.shape == mine.shape)

    def has(self, numbers):
        """Whether a table holds these numbers in this order."""
        return torch.allclose(self.numbers, numbers.reshape(self.numbers.shape), 1e-4, 1e-5)


def _is_among(result, tables, moved):
    """Whether a result is among the tables, whole, or in pieces: sentence by sentence, or head by head.

    The order of its axes does not count. Nor does it count which are joined, unless a stage only moves numbers.
    """
    if any(table.is_like(result, moved) for table in tables):
        return True
    pieces = (result.numbers.unbind(axis) for axis in range(min(2, result.numbers.ndim - 1)))
    return any(all(any(table.is_like(_Table(p), moved) for table in tables) for p in each) for each in pieces)


def _is_in_iterations(result, iterations, moved, least):
    """Whether a loop computed a result in its iterations: a piece in each, or a sum whose last terms make a piece.

    Where a stage only moves numbers, a piece must have its last axes.
    """
    for iteration in iterations:
        needed, rest = divmod(result.numbers.numel(), iteration[0].numel())
        if rest or len(iteration) % max(needed, 1) or needed < 2:
            continue
        each = len(iteration) // needed
        pieces = _Table(iteration[each - 1 :: each], least)
        axes = iteration.ndim - 1
        turned = map(result.numbers.permute, itertools.permutations(range(result.numbers.ndim)))
        fitting = (table for table in turned if not moved or table.shape[table.ndim - axes :] == iteration.shape[1:])
        if math.isclose(pieces.total, result.total, rel_tol=1e-3) and any(map(pieces.has, fitting)):
            return True
    return False


def _is_in_part(result, tables):
    """Whether the first or the last part of a result, along one axis, is among the tables."""
    right = result.numbers
    for mine in (table.numbers for table in tables if table.numbers.ndim == right.ndim):
        shorter = [axis for axis in range(right.ndim) if mine.shape[axis] != right.shape[axis]]
        if len(shorter) != 1 or mine.numel() < 2 or mine.shape[shorter[0]] > right.shape[shorter[0]]:
            continue
        axis, size = shorter[0], mine.shape[shorter[0]]
        ends = right.narrow(axis, 0, size), right.narrow(axis, right.shape[axis] - size, size)
        if any(torch.allclose(mine, end, 1e-4, 1e-5) for end in ends):
            return True
    return False


class TracingRecorder(Recorder):
    """Keeps also which place of the code made a tensor: a place in a loop makes one in each turn."""

    def __init__(self, given):
        super().__init__()
        self.tensors += tensors_in(given)
        self.places, self.left_pytorch = defaultdict(list), False

    def __torch_function__(self, func, types, args: tuple = (), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs)
        name, place = getattr(func, "__name__", ""), _place(sys._getframe(1))
        if self.tensors and result is self.tensors[-1]:
            self.places[place].append(result)
        # Numbers that are computed in Python come in by a list or an array, or one by one in a loop.
        entered = name == "__setitem__" and isinstance(args[2], (float, np.generic))
        if entered:
            self.places[place].append(None)
        lists = name in ("tensor", "as_tensor", "asarray") and not tensors_in(args) and result.numel() > 1
        self.left_pytorch |= _is_of_numbers(result) or lists or (entered and len(self.places[place]) > 1)
        return result

    def most_iterations(self):
        """Return the largest number of tensors from one place in the code."""
        return max(map(len, self.places.values()), default=1)

    def iterations(self):
        """Yield the tensors of each place in a loop, stacked along a first axis of iterations."""
        for tensors in self.places.values():
            are_tables = all(isinstance(each, torch.Tensor) and readable(each) for each in tensors)
            if len(tensors) < 2 or not are_tables or not tensors[0].numel():
                continue
            if len({(tensor.shape, tensor.dtype) for tensor in tensors}) == 1:
                yield torch.stack([each.detach() for each in tensors])


def _traced(exercise, function, probe):
    """Return the recorder of a function's intermediate tensors for a probe."""
    traced = []

    def run(*given):
        traced.append(TracingRecorder(given))
        with traced[0]:
            return function(*given)

    observe(exercise, run, probe)
    return traced[0]


def _place(frame):
    """Return the place in the code that a call came from, with the calls that led there."""
    place = []
    while frame is not None and frame.f_code is not observe.__code__:
        place.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(place)


def _is_of_numbers(result):
    """Whether a result has left PyTorch: an array, a number with a point, or a list of such."""
    while isinstance(result, list) and result:
        result = result[0]
    return isinstance(result, (float, np.ndarray))
