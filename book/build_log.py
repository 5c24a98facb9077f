"""Prints what Sphinx is doing and how long each part takes, instead of the hundred lines that Sphinx prints."""

from time import perf_counter

last_call = perf_counter()


def seconds_since_last_call():
    """Return the seconds since the previous call."""
    global last_call
    previous_call, last_call = last_call, perf_counter()
    return last_call - previous_call


def print_reading(app, env, names):
    seconds_since_last_call()
    print(f"  reading {len(names)} pages … ", end="", flush=True)


def print_writing(app, env):
    print(f"{seconds_since_last_call():.0f} s\n  writing … ", end="", flush=True)


def print_end(app, error):
    print(f"{seconds_since_last_call():.0f} s", flush=True)


def setup(app):
    app.connect("env-before-read-docs", print_reading)
    app.connect("env-updated", print_writing)
    app.connect("build-finished", print_end, priority=900)  # after the other handlers
