"""A time limit for code that may never end."""

import ctypes
import threading
from contextlib import contextmanager

SECONDS = 20  # time limit for the first forward pass, and for each property
PASSES = 200  # a property may take as long as this number of forward passes, if that is longer than SECONDS


class TimeLimitExceeded(BaseException):
    """The model did not return in time.

    The class is a `BaseException`, so that ``except Exception`` in the model does not catch it.
    """


@contextmanager
def time_limit(seconds):
    """Throw `TimeLimitExceeded` into the block if the block does not end in time."""
    thread_id, lock, ended = threading.get_ident(), threading.Lock(), []

    def stop():
        with lock:
            if not ended:
                exception = ctypes.py_object(TimeLimitExceeded)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), exception)

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            ended.append(True)
        timer.cancel()
