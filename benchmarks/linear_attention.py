"""Does linear attention take linear time and memory, and is ours as fast as any other implementation in PyTorch?

    python benchmarks/linear_attention.py [--quick]

One run compares all implementations, with batch 1, 8 heads of 64 features, and lengths from 256 to 65,536. Causal:

    ours      tl.causal_linear_attention
    fused     F.scaled_dot_product_attention(is_causal=True)
    plain     softmax(q kᵀ with the later keys at -∞) v written out
    cumsum    linear attention by its definition: the prefix sums of all tokens as one tensor, (length, 64, 64) per head
    steps     tl.linear_attention_step for every token
    fla       flash-linear-attention's reference in plain PyTorch: chunks of 64, all states at once, normalized
    kernel    flash-linear-attention's Triton kernel, on a GPU, if its package can be imported

Without causality: tl.bidirectional_linear_attention, fused and plain. All linear implementations use the same features,
elu(x) + 1. Before the timing, their results must agree, and so must the results of the two softmax implementations.

Time. On a CPU, the time is processor time on one thread, which excludes waiting for a busy core. In each round, all
functions take turns in shuffled order; a turn is one call or, if calls are short, as many calls as take about 10 ms. In
each round, the time of every other implementation is divided by the time of ours; the table shows the median of these
ratios, ± half the distance between their quartiles. An implementation many times slower than ours runs only in every
second, third or fourth round. "forward" runs under no_grad; "+backward" computes the gradients of query, key and value.

Memory. The table shows the peak memory of a call, including its output (and gradients), minus the memory in use before
the call. On a CPU, the peak is summed from the allocations that torch.profiler records: this sum is exact even for a
call whose memory is too small to show in the resident size of a process. On CUDA, the peak is
torch.cuda.max_memory_allocated. A dash marks an implementation that would take too long or too much memory.
"""

import argparse
import importlib.util
import math
from pathlib import Path

import torch
from table import DEVICE, begin, end, format_ratio, print_aim, print_row
from torch.nn import functional as F

import transformer_lab as tl
from transformer_lab.measure import compare, peak_bytes, slope

LENGTHS = [256, 1024, 2048, 4096, 16384, 65536]
QUICK_LENGTHS = [128, 256]
N_HEADS, D_HEAD = 8, 64
# The longest sequence for which each implementation is measured: in a forward pass, and with a backward pass.
MAX_LENGTHS = {
    "fused": (16384, 4096),
    "plain": (4096, 2048),
    "cumsum": (2048, 1024),
    "steps": (4096, 1024),
}
WIDTH = 12


def load_reference():
    """Load flash-linear-attention's reference from its file, because importing the package requires Triton."""
    package = importlib.util.find_spec("fla")
    if package is None:
        return None
    (folder, *_) = package.submodule_search_locations
    file = Path(folder, "ops", "linear_attn", "naive.py")
    spec = importlib.util.spec_from_file_location("fla_naive", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.naive_chunk_linear_attn


def load_kernel():
    """Return flash-linear-attention's kernel, or None if there is no GPU or the kernel cannot be imported."""
    if DEVICE.type != "cuda":
        return None
    try:
        from fla.ops.linear_attn import chunk_linear_attn
    except ImportError:
        return None
    return chunk_linear_attn


FLA, KERNEL = load_reference(), load_kernel()
# In flash-linear-attention, the axis of tokens comes before the axis of heads.
TOKENS_FIRST = {"fla", "kernel"}
SOFTMAX_IMPLEMENTATIONS = {"fused", "plain"}
# A function that allocates and frees much memory slows the function that runs next. Such functions are therefore timed
# in a second comparison, again together with ours.
HEAVY_IMPLEMENTATIONS = {"plain", "cumsum", "steps"}
PEERS = ["fused", "plain", "cumsum", "steps", *(["fla"] if FLA else []), *(["kernel"] if KERNEL else [])]


def plain(query, key, value, hidden_mask=None):
    scores = query @ key.mT * query.shape[-1] ** -0.5
    if hidden_mask is not None:
        scores = scores.masked_fill(hidden_mask, -torch.inf)
    return scores.softmax(-1) @ value


def cumsum(query, key, value):
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    S = (k.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(-3)
    return (q.unsqueeze(-2) @ S).squeeze(-2) / (q * k.cumsum(-2)).sum(-1, keepdim=True)


def steps(query, key, value):
    state = tl.initial_state(1, N_HEADS, D_HEAD, D_HEAD, device=DEVICE)
    outputs = []
    for tokens in zip(*(x.unbind(-2) for x in (query, key, value))):
        state, output = tl.linear_attention_step(state, *tokens)
        outputs.append(output)
    return torch.stack(outputs, -2)


def features_first(function, **options):
    """Return a function that applies the feature map to queries and keys, then calls ``function``."""
    return lambda q, k, v: function(tl.elu_feature_map(q), tl.elu_feature_map(k), v, **options)


def implementations(length, is_causal):
    """Return a dict of functions of query, key and value; ours comes first."""
    if not is_causal:
        return {
            "ours": tl.bidirectional_linear_attention,
            "fused": F.scaled_dot_product_attention,
            "plain": plain,
        }
    functions = {
        "ours": tl.causal_linear_attention,
        "fused": lambda *x: F.scaled_dot_product_attention(*x, is_causal=True),
        "cumsum": cumsum,
        "steps": steps,
    }
    if length <= max(MAX_LENGTHS["plain"]):
        hidden_mask = torch.ones(length, length, dtype=torch.bool, device=DEVICE).triu(1)
        functions["plain"] = lambda *x: plain(*x, hidden_mask)
    if FLA:
        functions["fla"] = features_first(FLA, normalize=True)
    if KERNEL:
        call = features_first(KERNEL, normalize=True)
        functions["kernel"] = lambda *x: call(*x)[0]
    return functions


def make_calls(length, is_causal, backward):
    """Return a dict of functions without arguments; each returns the output and, with ``backward``, the gradients."""
    query, key, value, upstream = (torch.randn(1, N_HEADS, length, D_HEAD).to(DEVICE) for _ in range(4))

    def call(name, function):
        tensors = [query, key, value, upstream]
        if name in TOKENS_FIRST:
            tensors = [x.transpose(1, 2).contiguous() for x in tensors]
        *inputs, upstream_gradient = (x.detach().clone() for x in tensors)
        for x in inputs:
            x.requires_grad_(backward)

        def forward():
            with torch.no_grad():
                return (function(*inputs),)

        def forward_and_backward():
            output = function(*inputs)
            return output, *torch.autograd.grad(output, inputs, upstream_gradient)

        return forward_and_backward if backward else forward

    functions = implementations(length, is_causal).items()
    max_lengths = {name: limits[backward] for name, limits in MAX_LENGTHS.items()}
    return {name: call(name, function) for name, function in functions if length <= max_lengths.get(name, math.inf)}


def check_agreement(calls):
    """Raise an error unless all linear implementations agree, and both softmax implementations agree."""
    results = {name: call() for name, call in calls.items()}
    for name, outputs in results.items():
        expected = results["fused" if name in SOFTMAX_IMPLEMENTATIONS else "ours"]
        tolerance = 1e-2 if name == "kernel" else 1e-4  # the kernel multiplies in lower precision
        for actual, wanted in zip(outputs, expected):
            actual = actual.transpose(1, 2) if name in TOKENS_FIRST else actual
            torch.testing.assert_close(
                actual, wanted, rtol=tolerance, atol=tolerance, msg=lambda text, n=name: f"{n}: {text}"
            )


def measure_row(length, is_causal, backward, budget):
    """Measure one length and print its rows; return seconds and bytes keyed by name, and the result of `compare`."""
    calls = make_calls(length, is_causal, backward)
    if length <= 1024:
        check_agreement(calls)
    memory = {name: peak_bytes(call) for name, call in calls.items()}
    timing = compare({name: call for name, call in calls.items() if name not in HEAVY_IMPLEMENTATIONS}, budget)
    if HEAVY_IMPLEMENTATIONS & calls.keys():
        heavy_calls = {name: call for name, call in calls.items() if name in {"ours", *HEAVY_IMPLEMENTATIONS}}
        heavy_timing = compare(heavy_calls, budget / 2)
        timing.ratios |= heavy_timing.ratios
    seconds = {"ours": timing.seconds} | {name: timing.seconds * timing.median(name) for name in timing.ratios}
    label = f"{length:>6} {'causal' if is_causal else 'both ways'}"
    peers = [name if name in calls else "" for name in PEERS]
    print_row(label, "time", f"{timing.seconds * 1e3:.2f} ms", [format_ratio(timing, name) for name in peers], WIDTH)
    if memory["ours"] is not None:
        cells = [f"{memory[name] / memory['ours']:.2f}      " if name in memory else "–" for name in peers]
        pass_name = "+backward" if backward else "forward"
        print_row(f"{'':<7}{pass_name}", "memory", f"{memory['ours'] / 1e6:.2f} MB", cells, WIDTH)
    return seconds, memory, timing


def time_per_token(lengths, is_causal, backward, budget):
    """Return our time per token at each later length, divided by the time per token at the first length."""
    calls = {length: make_calls(length, is_causal, backward)["ours"] for length in lengths}
    timing = compare(calls, budget)
    return {length: timing.median(length) * lengths[0] / length for length in lengths[1:]}


def print_slopes(rows, backward):
    """Print the slopes of time and memory from 1024 tokens on, for implementations with at least 3 measured lengths."""
    pass_name = "+backward" if backward else "forward"
    for is_causal in (True, False):
        for kind, index in (("time", 0), ("memory", 1)):
            cells = []
            for name in ("ours", *PEERS):
                values_by_length = {
                    length: row[index][name]
                    for (length, *settings), row in rows.items()
                    if settings == [is_causal, backward] and length >= 1024 and row[index].get(name)
                }
                lengths, values = list(values_by_length), list(values_by_length.values())
                cells.append(f"{slope(lengths, values):.2f}      " if len(lengths) > 2 else "–")
            label = f"{pass_name}, {'causal' if is_causal else 'both ways'}"
            print_row(label, kind, cells[0].strip(), cells[1:], WIDTH)


def print_aims(rows, time_ratios):
    def speed_up(length, is_causal):
        return rows[length, is_causal, False][2].median("fused")

    measured = 1 / speed_up(256, True)
    print_aim("causal, 256 tokens: at most 1.8 times the time of fused softmax", f"{measured:.2f}", measured <= 1.8)
    for length, is_causal, min_ratio in ((2048, True, 2), (16384, True, 12), (4096, False, 10)):
        measured, kind = speed_up(length, is_causal), "causal" if is_causal else "both ways"
        print_aim(
            f"{kind}, {length} tokens: {min_ratio} times faster than fused softmax",
            f"{measured:.1f}",
            measured >= min_ratio,
        )
    worst = max(time_ratios.values(), key=lambda time_ratio: abs(time_ratio - 1))
    print_aim(
        "causal, forward: time per token within 10 % from 1024 tokens to 65536", f"{worst:.2f}", abs(worst - 1) <= 0.1
    )
    causal_rows = {settings: row for settings, row in rows.items() if settings[0] >= 1024 and settings[1]}
    min_ratio, name, length, backward = min(
        (timing.median(name), name, length, backward)
        for (length, _, backward), (_, _, timing) in causal_rows.items()
        for name in timing.ratios.keys() - {*SOFTMAX_IMPLEMENTATIONS, "kernel"}
    )
    measured = f"{min_ratio:.2f} ({name}, {length}{', +backward' if backward else ''})"
    print_aim("causal: no slower than others in PyTorch from 1024 tokens on", measured, min_ratio >= 1)
    if all(memory["ours"] for _, memory, _ in causal_rows.values()):
        tensors = max(
            memory["ours"] / (4 * length * N_HEADS * D_HEAD)
            for (length, _, backward), (_, memory, _) in causal_rows.items()
            if not backward
        )
        print_aim(
            "causal, forward: memory of at most 2.5 tensors (length, heads * 64)", f"{tensors:.2f}", tensors <= 2.5
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="short sequences and few rounds, to show that the benchmark runs"
    )
    quick = parser.parse_args().quick
    lengths, budget = (QUICK_LENGTHS, 0.1) if quick else (LENGTHS, 2)
    start = begin()
    if not FLA:
        print("fla is left out: pip install -e .[bench] installs it.")
    print_row(f"length, {N_HEADS} heads of {D_HEAD}", "", "ours", [f"{name}/ours  " for name in PEERS], WIDTH)

    rows = {}
    for backward in (False, True):
        for is_causal in (True, False):
            for length in lengths:
                rows[length, is_causal, backward] = measure_row(length, is_causal, backward, budget)
    if quick:
        end(start)
        return
    print()
    print_row("slope from 1024 tokens on", "", "ours", [f"{name}  " for name in PEERS], WIDTH)
    for backward in (False, True):
        print_slopes(rows, backward)
    print()
    time_ratios = {}
    for backward in (False, True):
        time_ratios[backward] = time_per_token([1024, 4096, 16384, 65536], True, backward, 6 * budget)
        ratio_texts = "   ".join(f"{length}: {time_ratio:.2f}" for length, time_ratio in time_ratios[backward].items())
        pass_name = "+backward" if backward else "forward"
        print(f"time per token, {pass_name}, causal, divided by the time at 1024 tokens   {ratio_texts}")
    print()
    print_aims(rows, time_ratios[False])
    end(start)


if __name__ == "__main__":
    main()
