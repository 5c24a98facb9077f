"""Run a learner's function on an input and record what the function does, without letting it do harm.

The function runs in a separate thread with a time limit and gets copies of the inputs; its printed output is captured;
and the settings that it may have changed are restored. If no thread can be started, as in Python in a browser, the
function runs in the caller's thread, without a time limit.
"""

import contextlib
import ctypes
import functools
import io
import itertools
import os
import random
import re
import sys
import threading
import time
import warnings
from collections.abc import Iterable
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from .agree import agree, tensors_in

TIME_LIMIT = 7  # seconds for all calls of the learner's function in one check
GRACE_PERIOD = 1  # seconds after the limit during which the check tries to stop the function
IMPORT_TIME_LIMIT = 60  # extra seconds for imports: some parts of PyTorch import others when first called
MIN_CPU_SHARE = 1 / 4  # fraction of the wall time; a runnable thread is charged at least this much CPU time
# seconds without CPU time after which a thread counts as asleep; a runnable thread gets CPU time sooner
IDLE_AFTER = 0.5
POLL_INTERVAL = 0.02  # seconds between two polls of the thread
SEEDS = itertools.count(271828)  # a new seed for each call, so that no random numbers repeat
MAX_OUTPUT = 2000  # characters of the printed output that are kept


@dataclass(frozen=True)
class Probe:
    """The arguments of one call."""

    name: str
    arguments: tuple
    plain: bool = False
    # cards do not name such a probe, since cards would then differ from one machine to another
    this_device_only: bool = False


# the letter of an axis in an error message of `einsum`; the author of the function chooses the letter
EINSUM_LETTER = re.compile(r"subscript [A-Za-z]\b")


@dataclass(frozen=True)
class Outcome:
    """What a call did: the value that it returned or the error that it raised, a changed argument, and the facts."""

    value: object = None
    error: BaseException | None = None
    error_text: str = ""  # the error's type and message, or its type alone if any message is accepted
    rejected_operation: "RejectedOperation | None" = None
    changed_argument: str | None = None
    facts: object = None
    facts_error: Exception | None = None  # the error that the check's ``facts`` raised
    rounded_to: torch.dtype | None = None  # the dtype that the numbers had before they were converted

    def same(self, other, rounded_to=None):
        """Return whether two calls had the same outcome; one of them may have rounded to the dtype ``rounded_to``.

        Two errors are the same if their texts are the same, and if PyTorch rejected the same operation on the same
        arguments. Facts that could not be computed are not compared.
        """
        compare_facts = self.facts_error is None and other.facts_error is None
        outcomes = [
            (
                EINSUM_LETTER.sub("a letter", outcome.error_text),
                outcome.rejected_operation and outcome.rejected_operation.key(outcome.error_text),
                outcome.changed_argument,
                compare_facts and outcome.facts,
            )
            for outcome in (self, other)
        ]
        rounded_to = rounded_to or self.rounded_to
        return outcomes[0] == outcomes[1] and (self.error is not None or agree(self.value, other.value, rounded_to))


def observe(exercise, function, probe):
    """Call a function with a probe's arguments, and return the `Outcome`."""
    # Unlike a clone, a deep copy keeps strides, offset, and the rest of the storage.
    given, recorder = deepcopy(probe.arguments), Recorder()
    try:
        with settings_kept(CALL_SETTINGS), recorder if exercise.facts else contextlib.nullcontext():
            value = function(*given)
        snapshot = _snapshot(value)  # raises for a list that contains itself
    except BaseException as error:  # also SystemExit: the function may call exit()
        if is_stop(error):
            raise
        if exercise.raises is not None and isinstance(error, exercise.raises):
            return Outcome(error=error, error_text=type(error).__name__)
        text = f"{type(error).__name__}: {error}"
        rejected_operation = _find_rejected_operation(exercise, function, probe, error)
        return Outcome(error=error, error_text=text, rejected_operation=rejected_operation)
    pairs = zip(exercise.arguments, probe.arguments, given)
    changed_argument = next((name for name, before, after in pairs if not agree(after, before)), None)
    return Outcome(
        snapshot, changed_argument=changed_argument, **_compute_facts(exercise, given, value, recorder.tensors)
    )


def _find_rejected_operation(exercise, function, probe, error):
    """Repeat a call that raised an error, guarded like the first call; return the operation that PyTorch rejected."""
    if not isinstance(error, Exception):
        return None
    given = deepcopy(probe.arguments)
    recorder = Recorder(dict(zip(exercise.arguments, given)))
    try:
        with settings_kept(CALL_SETTINGS), recorder:
            function(*given)
    except Exception as second_error:
        return recorder.rejected_operations.get(second_error)
    return None


def changes_each_time(exercise, function, probe, first_outcome):
    """Return whether a function returns something different from ``first_outcome`` when the random seeds differ."""

    def seeded(*arguments):
        seed = next(SEEDS)
        for set_seed in (torch.manual_seed, random.seed, np.random.seed):
            set_seed(seed)
        return function(*arguments)

    second_outcome = observe(exercise, seeded, probe)
    # An object that differs from its own copy, such as an error, cannot be compared.
    is_comparable = agree(deepcopy(first_outcome.value), first_outcome.value)
    return (
        first_outcome.error is None
        and second_outcome.error is None
        and is_comparable
        and not agree(second_outcome.value, first_outcome.value)
    )


def _compute_facts(exercise, *arguments):
    """Return the `facts` of an `Outcome`, or its `facts_error`: computing the facts of a wrong result can fail."""
    try:
        return {"facts": exercise.facts and exercise.facts(*arguments)}
    except Exception as error:
        return {"facts_error": error}


class RejectedOperation(NamedTuple):
    """An operation that PyTorch rejected: the operation's name, and the name and the shape of each tensor passed to it.

    A tensor that is an argument, or a view of one, has the argument's name; a tensor that the function created has the
    name "".
    """

    operation: str
    tensors: tuple

    def key(self, message):
        """Return what two rejected operations must share to count as the same operation.

        Shapes must be the same only if the error's message has no sizes.
        """
        # the digits in "mat2" and "4-D tensor" are not sizes
        message_has_sizes = re.search(r"(?<![A-Za-z])\d+(?!\d|-D)", message)
        return self.operation, tuple((name, () if message_has_sizes else shape) for name, shape in self.tensors)


# Different names of the same operation, mapped to the name that a card uses.
ALIASES = {"truediv": "div", "true_divide": "div", "divide": "div", "multiply": "mul", "subtract": "sub"}
ALIASES |= {"mm": "matmul", "bmm": "matmul", "iadd": "add", "isub": "sub", "imul": "mul", "itruediv": "div"}


class Recorder(TorchFunctionMode):
    """A mode that records the tensors that PyTorch's functions return and, for each error, the rejected operation.

    Inside `torch.func.vmap` and similar transforms, a tensor is a wrapper, which becomes invalid when the transform
    ends. The recorder stores the wrapped tensor, which also has the batch axis.
    """

    def __init__(self, given=None):
        super().__init__()
        self.tensors, self.rejected_operations = [], {}
        pairs = ((name, tensor) for name, value in (given or {}).items() for tensor in tensors_in(value))
        self.names = {_storage_key(tensor): name for name, tensor in pairs}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            operation = getattr(func, "__name__", "").strip("_")
            tensors = tensors_in([*args, *kwargs.values()])
            names_and_shapes = tuple(
                (self.names.get(_storage_key(tensor), ""), () if tensor.is_nested else tuple(tensor.shape))
                for tensor in tensors
            )
            self.rejected_operations[error] = RejectedOperation(ALIASES.get(operation, operation), names_and_shapes)
            raise
        if isinstance(result, torch.Tensor):
            self.tensors.append(_unwrapped(result))
        return result


def _unwrapped(tensor):
    """Return the tensor inside the wrappers of `torch.func`."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def _storage_key(tensor):
    """Return a key that a tensor shares with its views."""
    try:
        return tensor.untyped_storage()._cdata
    except NotImplementedError:  # a sparse tensor has no storage
        return id(tensor)


def _snapshot(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return type(value)(map(_snapshot, value)) if type(value) in (tuple, list) else value


# The thread


class Stopped(BaseException):
    """Thrown into the learner's function when its time is up, or when the learner stops the check."""


class TimeUp(Exception):
    """The function did not end in time.

    Attributes
    ----------
    still_running : bool
        Whether the function is still running because it could not be stopped.
    stop_exception : Stopped or None
        The exception whose traceback leads to the line in which the function was stopped.
    seconds : float
        The time limit.
    """

    def __init__(self, still_running, stop_exception, seconds):
        self.still_running, self.stop_exception, self.seconds = still_running, stop_exception, seconds


class Interrupted(KeyboardInterrupt):
    """The learner stopped the check, by a notebook's stop button or by Ctrl-C; see `TimeUp` for the attributes."""

    def __init__(self, still_running, stop_exception):
        self.still_running, self.stop_exception = still_running, stop_exception

    def _render_traceback_(self):
        """Return the text that IPython shows instead of a traceback; the card has already said the rest."""
        return ["The check was stopped."]


def is_stop(error):
    """Return whether an error ends the check, as opposed to an error in the learner's function.

    Python raises `KeyboardInterrupt` in the main thread, where the function runs only if no thread can be started.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    return isinstance(error, Stopped) or (isinstance(error, KeyboardInterrupt) and in_main_thread)


RUNNING_THREADS = set()  # the idents of the threads that are currently running a learner's function


class Timed:
    """The learner's function with a timer: only the function's own time counts, not the time of the check."""

    def __init__(self, function):
        functools.update_wrapper(self, function, updated=())
        self.function = function

    def __call__(self, *arguments, **named):
        thread = threading.get_ident()
        RUNNING_THREADS.add(thread)
        try:
            return self.function(*arguments, **named)
        finally:
            RUNNING_THREADS.discard(thread)


def run_guarded(job, time_factor=1):
    """Run ``job()`` in a separate thread; return its result and what it printed.

    ``time_factor`` multiplies the time limit, for a job that takes longer than an ordinary function.

    Raises
    ------
    TimeUp
        If a `Timed` function in the job ran for ``time_factor * TIME_LIMIT`` seconds. Imports do not count, nor does
        most of the time in which other processes used the processor.
    Interrupted
        If the learner stopped the check.
    """
    results, lock, clock, importing_before = [], threading.Lock(), [], _importing_modules()
    limit = time_factor * TIME_LIMIT
    finished = threading.Event()  # up to Python 3.12, an interrupted `join` makes `is_alive` False for a live thread

    def work():
        try:
            result = job(), None
        except BaseException as error:
            result = None, error
        with lock:
            results.append(result)

    def run():
        if hasattr(time, "pthread_getcpuclockid"):  # not on Windows
            clock.append(time.pthread_getcpuclockid(threading.get_ident()))
        try:
            with contextlib.suppress(Stopped):  # in case `Stopped` is thrown just after the work has ended
                work()
        finally:
            finished.set()

    # The thread is a daemon: even if it can never be stopped, it must not keep Python from ending.
    thread = threading.Thread(target=run, daemon=True)
    printed = CapturedOutput()
    try:
        with session_unchanged(printed):
            try:
                if not _try_start(thread):
                    finished.set()
                    return job(), printed.text()
                _wait(thread, finished, clock, importing_before, limit)
            finally:  # even if the learner presses the stop button, and even while the thread starts
                has_ended = finished.is_set()
                _stop(thread, finished, lock, results, importing_before)
    except KeyboardInterrupt:
        raise Interrupted(*_stop_state(finished, results)) from None
    if not has_ended:
        raise TimeUp(*_stop_state(finished, results), limit)
    (value, error) = results[0]
    if error is not None:
        raise error
    return value, printed.text()


def _try_start(thread):
    """Start a thread and return True, or return False if this Python cannot start threads."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def _stop_state(finished, results):
    """Return whether the work is still running, and the `Stopped` that ended it, or None."""
    errors = (error for _, error in results)
    return not finished.is_set(), next((error for error in errors if isinstance(error, Stopped)), None)


def _wait(thread, finished, clock, importing_before, limit):
    """Wait until a thread's work is finished, or until the learner's function or its imports reach their time limit.

    On a busy machine, the CPU time of the thread counts, or ``MIN_CPU_SHARE`` of the wall time, whichever is more. A
    thread that has used no CPU time for a while counts as asleep; then all of the wall time counts. If a poll itself is
    late, the machine was suspended, for example because a laptop was closed, and at most ``IDLE_AFTER`` of the gap
    counts.
    """
    now, cpu_time = time.monotonic(), 0.0
    last_active = now
    counted_time = import_time = 0.0
    while not finished.is_set() and counted_time < limit and import_time < IMPORT_TIME_LIMIT:
        finished.wait(POLL_INTERVAL)
        previous, now = now, time.monotonic()
        cpu_time_before, cpu_time = cpu_time, _cpu_time(clock, cpu_time)
        elapsed, cpu_elapsed = min(now - previous, IDLE_AFTER), cpu_time - cpu_time_before
        last_active = now if cpu_elapsed > 0 else last_active
        if _importing_modules() - importing_before:
            import_time += elapsed
        elif thread.ident in RUNNING_THREADS:
            counted_time += max(cpu_elapsed, MIN_CPU_SHARE * elapsed) if now - last_active < IDLE_AFTER else elapsed


def _cpu_time(clock, last_value):
    """Return the CPU seconds of a thread, or ``last_value`` if the clock cannot be read."""
    try:
        return time.clock_gettime(clock[0]) if clock else last_value
    except OSError:
        return last_value


def _stop(thread, finished, lock, results, importing_before):
    """Throw `Stopped` into a thread repeatedly, since a bare ``except`` in a loop catches one `Stopped` and continues.

    Never throw `Stopped` during an import: if a module stayed half loaded, later imports of it in the session would
    fail.
    """
    deadline = time.monotonic() + GRACE_PERIOD
    with _stopped_unreported():
        while not finished.is_set() and time.monotonic() < deadline:
            with contextlib.suppress(KeyboardInterrupt):  # the learner may press the stop button again
                with lock:
                    if thread.ident and not results and not _importing_modules() - importing_before:
                        ident = ctypes.c_ulong(thread.ident)
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(Stopped))
                finished.wait(POLL_INTERVAL)


@contextlib.contextmanager
def _stopped_unreported():
    """Print nothing about a `Stopped` that Python ignores because it was raised in a callback of a weak reference."""
    original_hook = sys.unraisablehook
    sys.unraisablehook = lambda ignored: None if ignored.exc_type is Stopped else original_hook(ignored)
    try:
        yield
    finally:
        sys.unraisablehook = original_hook


def _importing_modules():
    """Return the names of the modules that any thread is importing; Python keeps a lock for each of them.

    The frames of a single thread would show which module it is importing, but reading them while the thread runs can
    crash Python 3.11.
    """
    return set(getattr(sys.modules["_frozen_importlib"], "_module_locks", ()))


class CapturedOutput(io.TextIOBase):
    """A stream that keeps the first ``MAX_OUTPUT`` characters of what was printed, and counts the rest."""

    def __init__(self):
        self.parts, self.size = [], 0

    def write(self, text):
        self.parts.append(text[: max(0, MAX_OUTPUT - self.size)])
        self.size += len(text)
        if self.size > MAX_OUTPUT:
            self.parts = ["".join(self.parts)]
        return len(text)

    def text(self):
        rest_text = f"… and {self.size - MAX_OUTPUT:,} more characters" if self.size > MAX_OUTPUT else ""
        return "".join(self.parts) + rest_text


# The settings


def _default_device():
    """Return the default device; None if none was set, as in a new thread."""
    chosen = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return chosen and chosen.device


SETTINGS = (
    (torch.get_rng_state, torch.set_rng_state),
    (torch.get_default_dtype, torch.set_default_dtype),
    (_default_device, torch.set_default_device),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    (lambda: copy(torch._tensor_str.PRINT_OPTS), lambda options: setattr(torch._tensor_str, "PRINT_OPTS", options)),
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),
    (np.geterr, lambda modes: np.seterr(**modes)),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (os.getcwd, os.chdir),
)


def _swap_generator():
    """Replace NumPy's bit generator with a spare; return the original. At most one number that NumPy cached is lost."""
    generator = np.random.get_bit_generator()  # ty: ignore[missing-attribute]
    np.random.set_bit_generator(SPARE_GENERATOR)  # ty: ignore[missing-attribute]
    return generator


SPARE_GENERATOR = np.random.MT19937()
# The settings that are restored after each call. NumPy's generator is swapped, since copying its state would take
# longer than storing all other settings.
CALL_SETTINGS = [
    *(pair for pair in SETTINGS if pair[0] != np.random.get_state),
    (_swap_generator, np.random.set_bit_generator),  # ty: ignore[missing-attribute]
]


@contextlib.contextmanager
def settings_kept(settings: Iterable = SETTINGS):
    """Restore the settings of the session and of the thread after the block."""
    saved_settings = [(set_value, get()) for get, set_value in settings]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        saved_settings.append((torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
    try:
        with torch.enable_grad():
            yield
    finally:
        for set_value, value in saved_settings:
            set_value(value)


@contextlib.contextmanager
def session_unchanged(printed):
    """Leave the session unchanged, capture printed text, and make ``exit()`` end only the function."""
    with (
        settings_kept(),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        _exit_raises(),
    ):
        warnings.simplefilter("ignore")
        torch.set_default_dtype(torch.float32)
        # The matrix products of an exercise are so small that several threads, which wait for one another on a busy
        # machine, would be slower.
        torch.set_num_threads(1)
        yield


@contextlib.contextmanager
def _exit_raises():
    """Make ``exit()`` raise SystemExit in a notebook as well, where it otherwise only asks the kernel to exit."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        yield
        return
    shell.ask_exit = sys.exit
    try:
        yield
    finally:
        del shell.ask_exit  # this uncovers the method of the class again
