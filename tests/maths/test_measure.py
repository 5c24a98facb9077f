"""``measure`` finds a size that is large enough to time, and its profiler is silent. No test asserts a duration."""

import subprocess
import sys

import pytest

from agreement import raises
from transformer_lab import measure


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock: the time of a measured call is the number that the call returns."""
    monkeypatch.setattr(measure, "seconds", lambda call, times=1: call())


@pytest.mark.parametrize(("least", "size"), [(0, 5), (4e-6, 5), (6e-6, 10), (1e-3, 1280), (1e-2, 10240)])
def test_large_enough_doubles_until_a_call_is_slow_enough(clock, least, size):
    calls = []

    def call_of(n):
        calls.append(n)
        return lambda: n * 1e-6

    assert measure.large_enough(call_of, 5, least) == size
    assert calls == [5 * 2**i for i in range(len(calls))] and calls[-1] == size


def test_large_enough_ignores_the_warm_up_call(clock):
    times = iter([100.0, 1e-6, 1e-6, 100.0, 1e-6, 1e-6, 100.0, 1.0, 1.0])
    assert measure.large_enough(lambda n: lambda: next(times), 1, 0.5) == 4


def test_large_enough_refuses_size_0():
    raises(lambda: measure.large_enough(None, 0, 1), ValueError, "size must be at least 1, got 0")


def test_the_profiler_is_silent_and_an_import_sets_no_environment_variable():
    code = """
import os, sys
os.environ.pop("KINETO_LOG_LEVEL", None)
from transformer_lab import measure
assert "KINETO_LOG_LEVEL" not in os.environ
measure.peak_bytes(lambda: None)
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode == 0 and "rofiler" not in process.stderr, process.stderr
