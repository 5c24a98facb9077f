"""Prints the headers, rows and aims of the benchmarks. The measurements are in transformer_lab/measure.py."""

import os
import platform
import random
import time

import torch

import transformer_lab as tl

DEVICE = tl.device()


def begin():
    """Use one thread, fix the seeds, and print the versions and the machine."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    device_name = (
        torch.cuda.get_device_name() if DEVICE.type == "cuda" else f"{DEVICE.type}, {platform.machine()}, 1 thread"
    )
    print(f"torch {torch.__version__}, float32, {device_name}{_load_text()}")
    return time.perf_counter()


def end(start):
    print(f"{time.perf_counter() - start:.0f} s{_load_text()}")


def format_ratio(comparison, name):
    """Format the median ratio to our time, ± half the distance between the quartiles; without ratios, return a dash."""
    if name not in comparison.ratios:
        return "–"
    median = comparison.median(name)
    digits = 2 if median < 10 else 1 if median < 100 else 0
    return f"{median:.{digits}f} ±{comparison.spread(name):.{digits}f}"


def print_row(labels, kind, ours, cells, width=14):
    print(f"{labels:<28}{kind:<8}{ours:>10} " + "".join(f"{cell:>{width}}" for cell in cells).rstrip(), flush=True)


def print_aim(text, value, is_met):
    print(f"{text:<74}{value:>30}   {'met' if is_met else 'missed'}", flush=True)


def _load_text():
    return f", load average {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores" if hasattr(os, "getloadavg") else ""
