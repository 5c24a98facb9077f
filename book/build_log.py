"""Prints what Sphinx is doing and how long it took, instead of Sphinx's hundred lines."""

from time import perf_counter

started = perf_counter()


def seconds_since_last_call():
    """Return the seconds since the last call."""
    global started
    before, started = started, perf_counter()
    return started - before


def read(app, env, names):
    seconds_since_last_call()
    print(f"  reading {len(names)} pages … ", end="", flush=True)


def write(app, env):
    print(f"{seconds_since_last_call():.0f} s\n  writing … ", end="", flush=True)


def end(app, error):
    print(f"{seconds_since_last_call():.0f} s", flush=True)


def setup(app):
    app.connect("env-before-read-docs", read)
    app.connect("env-updated", write)
    app.connect("build-finished", end, priority=900)  # after the other handlers
