"""Searches all tensors that a function computes for the steps of a correct answer.

A step is a stage of the reference, and a card describes the step by the stage's name and docstring. A step may be found
whole; in pieces, if the code works head by head; or in the iterations of a loop, if the code works token by token.
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
from .agree import is_readable, tensors_in
from .observe import Recorder, observe

# a score counts as hidden if it is not above this number: a softmax treats it like minus infinity
HIDDEN_SCORE = -1e4


def find_stages(exercise, function, probe):
    """Return a dict that says for each stage, in order, whether the function computes the stage's result.

    A stage also counts as found if its result is read by a later stage that is found. A stage that reads the result of
    a missing stage is left out. The dict is empty if stages leave no trace, as in plain arithmetic, or if the reference
    raises an error. It is also empty if a stage is missing and the function may compute the stage unseen: in NumPy, in
    Python numbers, in a loop whose iterations show no stage, or only for a part of the input.
    """
    if not exercise.stages or (expected := observe(exercise, exercise.reference, probe)).error is not None:
        return {}
    # If the task itself requires minus infinity, no other number counts as a hidden score.
    min_score = HIDDEN_SCORE if all(tensor.isfinite().all() for tensor in tensors_in(expected.value)) else -math.inf
    results, inputs_of, moving_stages = {}, {}, set()  # a moving stage only moves numbers

    def record_stage(name, stage):
        def run(*arguments):
            inputs = tensors_in(arguments)
            result = stage(*arguments)
            inputs_of[name] = [
                earlier for earlier, tensors in results.items() if any(one is x for one in tensors for x in inputs)
            ]
            results.setdefault(name, []).extend(filter(is_readable, tensors_in(result)))
            if isinstance(result, torch.Tensor) and any(_is_reordering(x, result) for x in inputs):
                moving_stages.add(name)
            return result

        return run

    exercise.reference(*probe.arguments, **{name: record_stage(name, stage) for name, stage in exercise.stages.items()})
    trace, reference_trace = (_trace(exercise, each, probe) for each in (function, exercise.reference))
    tables = [_Table(tensor, min_score) for tensor in trace.tensors if is_readable(tensor) and tensor.numel()]
    iterations = list(trace.iterations())
    found_stages, stages_in_iterations, partial_stages = set(), set(), set()
    stages = [stage for stage, tensors in results.items() if tensors]
    for stage in reversed(stages):
        expected_tables = [_Table(result, min_score) for result in results[stage]]
        only_moves = stage in moving_stages
        if stage in found_stages or all(_is_among(expected, tables, only_moves) for expected in expected_tables):
            found_stages.update([stage, *inputs_of[stage]])
        elif all(_is_in_iterations(expected, iterations, only_moves, min_score) for expected in expected_tables):
            stages_in_iterations.add(stage)
            found_stages.update([stage, *inputs_of[stage]])
        elif any(_is_partly_among(expected, tables) for expected in expected_tables):
            partial_stages.add(stage)
    found_by_stage = {stage: stage in found_stages for stage in stages if found_stages.issuperset(inputs_of[stage])}
    missing = [stage for stage, found in found_by_stage.items() if not found]
    # A loop of three iterations may merely apply one operation to queries, keys and values; such a loop hides no step.
    in_a_loop = trace.most_iterations() > (3 if found_stages else 1) and reference_trace.most_iterations() == 1
    leaves_pytorch = trace.leaves_pytorch or source.uses_name(function, "from_numpy")
    may_be_unseen = leaves_pytorch or (in_a_loop and not stages_in_iterations)
    return {} if missing and (may_be_unseen or missing[0] in partial_stages) else found_by_stage


def _is_reordering(given, result):
    """Return whether a result consists of the input's numbers in a different order."""
    return given.numel() == result.numel() > 1 and torch.equal(given.flatten().sort()[0], result.flatten().sort()[0])


def describe_step(exercise, stage):
    """Describe a stage with its docstring: ``scale (divide the scores by √d_head)``."""
    first_sentence, *_ = re.split(r"\.(\s|$)", inspect.getdoc(exercise.stages[stage]) or "")
    summary = " ".join(first_sentence.replace("``", "`").split())
    return f"*{stage.replace('_', ' ')}*" + (f" ({summary[0].lower()}{summary[1:]})" if summary else "")


class _Table:
    """The numbers of a tensor, and the sum of their absolute values, which does not depend on the axes' order."""

    def __init__(self, tensor, min_score=-math.inf):
        numbers = tensor.detach().double()
        # Scores that a softmax treats as minus infinity become equal, whatever their values.
        self.numbers = numbers.clamp(min=min_score) if tensor.is_floating_point() else numbers
        self.total = float(self.numbers.abs().sum())

    def matches(self, other, only_moves):
        """Return whether two tables agree in any order of the axes; if ``only_moves`` is False, axes may also be
        joined."""
        numbers, other_numbers = self.numbers, other.numbers
        if numbers.numel() != other_numbers.numel() or not math.isclose(self.total, other.total, rel_tol=1e-3):
            return False
        permuted = map(other_numbers.permute, itertools.permutations(range(other_numbers.ndim)))
        return any(self.contains(table) for table in permuted if not only_moves or table.shape == numbers.shape)

    def contains(self, numbers):
        """Return whether a table contains these numbers in this order."""
        return torch.allclose(self.numbers, numbers.reshape(self.numbers.shape), 1e-4, 1e-5)


def _is_among(result, tables, only_moves):
    """Return whether the tables contain a result, either whole or in pieces: one for each sentence or for each head.

    The order of the axes does not matter. Joined axes do not matter either, unless the stage only moves numbers.
    """
    if any(table.matches(result, only_moves) for table in tables):
        return True
    cuts = (result.numbers.unbind(axis) for axis in range(min(2, result.numbers.ndim - 1)))
    return any(all(any(table.matches(_Table(p), only_moves) for table in tables) for p in pieces) for pieces in cuts)


def _is_in_iterations(result, iterations, only_moves, min_score):
    """Return whether a loop computed the result piece by piece, with one piece per iteration or per few iterations.

    If the stage only moves numbers, the last axes of a piece must have the sizes of the result's last axes.
    """
    for iteration in iterations:
        n_pieces, remainder = divmod(result.numbers.numel(), iteration[0].numel())
        if remainder or len(iteration) % max(n_pieces, 1) or n_pieces < 2:
            continue
        step = len(iteration) // n_pieces  # iterations per piece
        pieces = _Table(iteration[step - 1 :: step], min_score)
        axes = iteration.ndim - 1
        permuted = map(result.numbers.permute, itertools.permutations(range(result.numbers.ndim)))
        fitting_tables = (
            table for table in permuted if not only_moves or table.shape[table.ndim - axes :] == iteration.shape[1:]
        )
        if math.isclose(pieces.total, result.total, rel_tol=1e-3) and any(map(pieces.contains, fitting_tables)):
            return True
    return False


def _is_partly_among(result, tables):
    """Return whether the first or the last part of a result, along one axis, is among the tables."""
    numbers = result.numbers
    for part in (table.numbers for table in tables if table.numbers.ndim == numbers.ndim):
        shorter_axes = [axis for axis in range(numbers.ndim) if part.shape[axis] != numbers.shape[axis]]
        if len(shorter_axes) != 1 or part.numel() < 2:
            continue
        (axis,) = shorter_axes
        size, full_size = part.shape[axis], numbers.shape[axis]
        if size > full_size:
            continue
        ends = numbers.narrow(axis, 0, size), numbers.narrow(axis, full_size - size, size)
        if any(torch.allclose(part, end, 1e-4, 1e-5) for end in ends):
            return True
    return False


class TracingRecorder(Recorder):
    """A recorder that notes which place in the code made each tensor; a place in a loop makes one per iteration."""

    def __init__(self, given):
        super().__init__()
        self.tensors += tensors_in(given)
        self.call_sites, self.leaves_pytorch = defaultdict(list), False

    def __torch_function__(self, func, types, args: tuple = (), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs)
        name, call_site = getattr(func, "__name__", ""), _call_site(sys._getframe(1))
        if self.tensors and result is self.tensors[-1]:
            self.call_sites[call_site].append(result)
        # Numbers that are computed in Python enter a tensor from a list or an array, or one by one in a loop.
        enters_number = name == "__setitem__" and isinstance(args[2], (float, np.generic))
        if enters_number:
            self.call_sites[call_site].append(None)
        is_from_list = name in ("tensor", "as_tensor", "asarray") and not tensors_in(args) and result.numel() > 1
        self.leaves_pytorch |= (
            _is_outside_pytorch(result) or is_from_list or (enters_number and len(self.call_sites[call_site]) > 1)
        )
        return result

    def most_iterations(self):
        """Return the largest number of tensors that a single place in the code made."""
        return max(map(len, self.call_sites.values()), default=1)

    def iterations(self):
        """Yield, for each place in a loop, its tensors stacked along a new first axis."""
        for tensors in self.call_sites.values():
            are_tables = all(isinstance(each, torch.Tensor) and is_readable(each) for each in tensors)
            if len(tensors) < 2 or not are_tables or not tensors[0].numel():
                continue
            if len({(tensor.shape, tensor.dtype) for tensor in tensors}) == 1:
                yield torch.stack([each.detach() for each in tensors])


def _trace(exercise, function, probe):
    """Run a function on a probe, and return the recorder of its intermediate tensors."""
    recorders = []

    def run(*given):
        recorders.append(TracingRecorder(given))
        with recorders[0]:
            return function(*given)

    observe(exercise, run, probe)
    return recorders[0]


def _call_site(frame):
    """Return the place in the code from which a call came, with the calls that led to this place."""
    call_site = []
    while frame is not None and frame.f_code is not observe.__code__:
        call_site.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(call_site)


def _is_outside_pytorch(result):
    """Return whether a result is outside PyTorch: an array, a float, or a list of these."""
    while isinstance(result, list) and result:
        result = result[0]
    return isinstance(result, (float, np.ndarray))
