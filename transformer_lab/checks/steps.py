"""The steps of a right answer, looked for among all that a function computes.

A step is a stage of the reference. Its name and its docstring are what a card calls it.
"""

import inspect
import itertools
import math
import re

import torch

from .agree import readable, tensors_in
from .observe import Made, observe

FAR_BELOW = -1e4  # a hidden score: minus infinity, or any number that a softmax takes for it


def looked_for(exercise, function, probe):
    """Return the stages of the reference in order, each with whether the function computes it: a dict of str to bool.

    It is empty where stages leave no trace: in plain arithmetic, and where the reference raises. A stage that a done
    one takes its input from is done as well: what was left out because a later line does its work is no fault.
    """
    if not exercise.stages or (right := observe(exercise, exercise.reference, probe)).error is not None:
        return {}
    # Where minus infinity itself is asked for, no other number is taken for it.
    least = FAR_BELOW if all(tensor.isfinite().all() for tensor in tensors_in(right.value)) else -math.inf
    results, used, moved = {}, {}, set()

    def recorded(name, stage):
        def run(*arguments):
            given = tensors_in(arguments)
            result = stage(*arguments)
            used[name] = [each for each, made in results.items() if any(one is a for one in made for a in given)]
            results.setdefault(name, []).extend(filter(readable, tensors_in(result)))
            if isinstance(result, torch.Tensor) and any(_moved(a, result) for a in given):
                moved.add(name)
            return result

        return run

    exercise.reference(*probe.arguments, **{name: recorded(name, stage) for name, stage in exercise.stages.items()})
    with Made() as made:
        observe(exercise, function, probe)
    tables = [_Table(tensor, least) for tensor in made.tensors if readable(tensor) and tensor.numel()]
    stages = [stage for stage, tensors in results.items() if tensors]
    done = set()
    for stage in reversed(stages):
        if stage in done or all(_is_among(_Table(result, least), tables, stage in moved) for result in results[stage]):
            done.update([stage, *used[stage]])
    return {stage: stage in done for stage in stages}


def _moved(given, result):
    """Say whether a result is the numbers that went in, in another order."""
    return given.numel() == result.numel() > 1 and torch.equal(given.flatten().sort()[0], result.flatten().sort()[0])


def sentence(exercise, stage):
    """Say what a stage does, as its docstring does: ``scale (divide the scores by √d_head)``."""
    first, *_ = re.split(r"\.(\s|$)", inspect.getdoc(exercise.stages[stage]) or "")
    said = " ".join(first.replace("``", "`").split())
    return f"*{stage.replace('_', ' ')}*" + (f" ({said[0].lower()}{said[1:]})" if said else "")


class _Table:
    """A tensor to compare: its numbers, and how large they are in sum, which no order of the axes changes."""

    def __init__(self, tensor, least=-math.inf):
        numbers = tensor.detach().double()
        # A score that a softmax takes for minus infinity is hidden, whatever stands there.
        self.numbers = numbers.clamp(min=least) if tensor.is_floating_point() else numbers
        self.total = float(self.numbers.abs().sum())

    def is_like(self, other, moved):
        """Say whether two tables hold the same numbers, in any order of the axes; unless ``moved``, also joined."""
        mine, others = self.numbers, other.numbers
        if mine.numel() != others.numel() or not math.isclose(self.total, other.total, rel_tol=1e-3):
            return False
        turned = map(others.permute, itertools.permutations(range(others.ndim)))
        return any(
            torch.allclose(mine, table.reshape(mine.shape), 1e-4, 1e-5)
            for table in turned
            if not moved or table.shape == mine.shape
        )


def _is_among(result, tables, moved):
    """Say whether a result is among the tables, whole, or in pieces: sentence by sentence, or head by head.

    The order of its axes does not count. Nor does it count which are joined, unless a stage only moves numbers.
    """
    if any(table.is_like(result, moved) for table in tables):
        return True
    pieces = (result.numbers.unbind(axis) for axis in range(min(2, result.numbers.ndim - 1)))
    return any(all(any(table.is_like(_Table(p), moved) for table in tables) for p in each) for each in pieces)
