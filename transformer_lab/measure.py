"""Measure the time and the memory of functions.

Times vary between runs, so report ratios within one run.
"""

import inspect
import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .arguments import require_sizes
from .device import device

MIN_TIMED_SECONDS = 0.01  # a call is repeated until all its repeats together take this long


@dataclass
class Comparison:
    """The result of :func:`compare`.

    Parameters
    ----------
    seconds : float
        Time of one call of the first function: the median over all rounds.
    ratios : dict of str to list of float
        For each function but the first, its time divided by the first function's time: one number for each round in
        which the function was timed.

    Examples
    --------
    >>> comparison = Comparison(seconds=0.5, ratios={"other": [2.0, 4.0, 3.0]})
    >>> comparison.median("other"), comparison.spread("other")
    (3.0, 1.0)
    """

    seconds: float
    ratios: dict[str, list[float]]

    def median(self, name: str) -> float:
        """Return the median ratio: this function's time divided by the first function's time."""
        return statistics.median(self.ratios[name])

    def spread(self, name: str) -> float:
        """Return half the distance between the quartiles of the ratios."""
        low, _, high = statistics.quantiles(self.ratios[name], n=4)
        return (high - low) / 2


def compare(calls: Mapping[str, Callable[[], object]], budget: float = 1.0) -> Comparison:
    """Time functions in turn.

    A round times each function once, in shuffled order, but a function that is many times slower than the first takes
    part in fewer rounds. Ratios are taken within rounds, since a slow phase of the machine slows all functions of a
    round alike.

    Parameters
    ----------
    calls : dict of str to function
        Functions without arguments. Every function is compared with the first one.
    budget : float, optional
        Seconds for all rounds together; each function is timed in at least three rounds, even if they take longer.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> x = torch.ones(200, 200)
    >>> compared = compare({"once": lambda: x @ x, "three times": lambda: x @ x @ x @ x}, budget=0.05)
    >>> list(compared.ratios), len(compared.ratios["three times"]) >= 3
    (['three times'], True)
    """
    baseline = next(iter(calls))
    single_seconds = {name: seconds(call) for name, call in calls.items()}
    repeats = {name: max(1, round(MIN_TIMED_SECONDS / single_seconds[name])) for name in calls}
    round_interval = {name: min(4, max(1, int(single_seconds[name] / single_seconds[baseline] / 2))) for name in calls}
    baseline_seconds, ratios = [], {name: [] for name in calls if name != baseline}
    end, i = time.perf_counter() + budget, 0
    while time.perf_counter() < end or min(map(len, (baseline_seconds, *ratios.values()))) < 3:
        names = [name for name in calls if i % round_interval[name] == 0]
        random.shuffle(names)
        elapsed = {name: seconds(calls[name], repeats[name]) for name in names}
        baseline_seconds.append(elapsed[baseline])
        for name in names:
            if name != baseline:
                ratios[name].append(elapsed[name] / elapsed[baseline])
        i += 1
    return Comparison(statistics.median(baseline_seconds), ratios)


def seconds(call: Callable[[], object], times: int = 1) -> float:
    """Call a function ``times`` times in a row, and return the seconds that one call takes.

    On a CPU this is the processor time of all threads of this process, without the time spent waiting for a busy core.
    On any other device, it is the time until the device has finished.

    Parameters
    ----------
    call : function
        Without arguments.
    times : int, optional

    Returns
    -------
    float

    Examples
    --------
    >>> x = torch.ones(100, 100)
    >>> seconds(lambda: x @ x, times=10) > 0
    True
    """
    require_sizes(times=times)
    clock = time.process_time if device().type == "cpu" else time.perf_counter
    _synchronize()
    start = clock()
    for _ in range(times):
        call()
    _synchronize()
    # A coarse clock may not advance during a call; a time of zero would make ratios infinite.
    return max(clock() - start, 1e-9) / times


def large_enough(call_of: Callable[[int], Callable[[], object]], size: int, least: float) -> int:
    """Double a size until one call takes long enough to be timed.

    A size that keeps a CPU busy may be too small for a GPU, where only the launch would be measured.

    Parameters
    ----------
    call_of : function
        ``call_of(size)`` returns a function without arguments.
    size : int
        The smallest size to try.
    least : float
        The least number of seconds that a call with the returned size must take.

    Returns
    -------
    int

    Examples
    --------
    >>> def product(n):
    ...     x = torch.ones(n, n)
    ...     return lambda: x @ x
    >>> large_enough(product, 8, least=1e-5) >= 8
    True
    """
    require_sizes(size=size)
    while True:
        call = call_of(size)
        call()  # warm-up
        if seconds(call, max(1, round(MIN_TIMED_SECONDS / seconds(call)))) >= least:
            return size
        size *= 2


def peak_bytes(call: Callable[[], object]) -> int | None:
    """Return the peak memory of a call, its result included, minus the memory in use before the call.

    On a CPU, the peak is computed from the allocations that ``torch.profiler`` records: it is exact and reproducible,
    but does not include the internal buffers of math libraries. On CUDA, it is ``torch.cuda.max_memory_allocated``.

    Parameters
    ----------
    call : function
        Without arguments.

    Returns
    -------
    int or None
        ``None`` on a device that is neither a CPU nor CUDA.

    Examples
    --------
    >>> x = torch.ones(100, 100, device=device())
    >>> peak_bytes(lambda: x + x) in (40_000, 40_448, None)  # 100 · 100 numbers of 4 bytes; CUDA rounds up to 512
    True
    """
    device_type = device().type
    if device_type == "cuda":
        _synchronize()
        bytes_before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        result = call()
        _synchronize()
        del result
        return torch.cuda.max_memory_allocated() - bytes_before
    if device_type != "cpu":
        return None
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # silences the profiler's start and stop messages on stderr
    options: dict[str, Any] = {"activities": [torch.profiler.ProfilerActivity.CPU], "profile_memory": True}
    if "acc_events" in inspect.signature(torch.profiler.profile).parameters:
        options["acc_events"] = True  # some versions of PyTorch warn without this argument
    with torch.profiler.profile(**options) as profile:
        result = call()
    del result
    events = (event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]")
    allocated = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        allocated += event.nbytes()  # a deallocation is negative
        peak = max(peak, allocated)
    return peak


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the exponent ``p`` in ``values ≈ c · sizesᵖ``: the slope of the line that fits the logarithms best.

    Parameters
    ----------
    sizes, values : sequence of float
        Positive numbers; both sequences have the same length.

    Returns
    -------
    float

    Examples
    --------
    >>> round(slope([1, 10, 100], [3, 300, 30000]), 6)
    2.0
    """
    x, y = (torch.tensor(list(numbers), dtype=torch.float64, device="cpu").log() for numbers in (sizes, values))
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / (x * x).sum())


def _synchronize():
    device_type = device().type
    if device_type != "cpu":
        getattr(torch, device_type).synchronize()
