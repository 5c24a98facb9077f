"""Does tl.MultiHeadAttention need more time or memory than PyTorch's module or than the leanest implementation?

    python benchmarks/attention.py [--quick] [--masks none causal padding]

One run compares implementations of self-attention with equal weights, after a check that their results agree:

    ours      tl.MultiHeadAttention
    torch     torch.nn.MultiheadAttention in training mode, need_weights=False
    infer     the same module in evaluation mode: PyTorch's inference fast path, which exists only without gradients
    lean      one packed projection, F.scaled_dot_product_attention, one projection out, no checks: the usual GPT code
    x-tr      x_transformers.Attention(flash=True)
    plain     the lean implementation with softmax(q kᵀ + mask) v written out

Time. On a CPU, the time is processor time on one thread, which excludes waiting for a busy core. In each round, all
functions take turns in shuffled order; a turn is one call, or several short calls in about 10 ms. In each round, the
time of every other implementation is divided by the time of ours; the table shows the median of these ratios, ± half
the distance between their quartiles. An implementation many times slower than ours runs only in every second, third or
fourth round.
"forward" runs under no_grad; "+backward" computes the gradients of the input and of all weights.

Memory. The table shows the peak memory of a call, including its output (and gradients), minus the memory in use before
the call. On a CPU, the peak is summed from the allocations that torch.profiler records: this sum is exact even for a
call whose memory is too small to show in the resident size of a process. On CUDA, the peak is
torch.cuda.max_memory_allocated.
"""

import argparse
import copy

import torch
from table import DEVICE, begin, end, format_ratio, print_aim, print_row
from torch import nn
from torch.nn import functional as F

import transformer_lab as tl
from transformer_lab.measure import compare, peak_bytes

try:
    from x_transformers.x_transformers import Attention as XAttention
except ImportError:
    XAttention = None

SHAPES = [(1, 128, 256, 4), (8, 512, 512, 8), (1, 4096, 512, 8)]  # batch, seq, d_model, heads
QUICK_SHAPES = [(1, 128, 256, 4), (1, 512, 512, 8)]
MASKS = ["none", "causal", "padding"]
PEERS = ["torch", "infer", "lean", "x-tr", "plain"]


class Lean(nn.Module):
    """The shortest implementation of self-attention."""

    def __init__(self, reference, is_causal, real=None):
        super().__init__()
        d_model = reference.embed_dim
        self.n_heads, self.is_causal, self.real = reference.num_heads, is_causal, real
        self.packed, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.packed.weight, self.packed.bias = reference.in_proj_weight, reference.in_proj_bias
        self.out.weight, self.out.bias = reference.out_proj.weight, reference.out_proj.bias

    def forward(self, x):
        batch, seq, d_model = x.shape
        projections = self.packed(x).split(d_model, dim=2)
        heads = (
            projection.view(batch, seq, self.n_heads, d_model // self.n_heads).transpose(1, 2)
            for projection in projections
        )
        return self.out(self.attend(*heads).transpose(1, 2).contiguous().view(batch, seq, d_model))

    def attend(self, query, key, value):
        return F.scaled_dot_product_attention(query, key, value, self.real, is_causal=self.is_causal)


class Plain(Lean):
    """Like `Lean`, but holds all attention weights in memory. The mask is created once, in the constructor."""

    def __init__(self, reference, is_causal, real, seq):
        super().__init__(reference, is_causal)
        self.hidden_mask = None if real is None else ~real
        if is_causal:
            self.hidden_mask = torch.ones(seq, seq, dtype=torch.bool, device=DEVICE).triu(1)

    def attend(self, query, key, value):
        scores = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5
        if self.hidden_mask is not None:
            scores = scores.masked_fill(self.hidden_mask, -torch.inf)
        return scores.softmax(-1) @ value


def real_token_mask(shape):
    """Return the mask of the real tokens, seq / 2 to 3 seq / 4 in each sentence; it has shape (batch, 1, 1, seq)."""
    batch, seq, _, _ = shape
    lengths = torch.linspace(3 * seq // 4, seq // 2, batch, device=DEVICE).long()
    return tl.padding_mask(lengths, seq)


def implementations(shape, mask):
    """Return two dicts keyed by name: functions of x with equal results, and each function's parameters."""
    _, seq, d_model, n_heads = shape
    is_causal, real = mask == "causal", real_token_mask(shape) if mask == "padding" else None
    reference = nn.MultiheadAttention(d_model, n_heads, batch_first=True, device=DEVICE)  # biases are initially zero
    ours = tl.MultiHeadAttention.from_torch(reference)
    hidden_mask = torch.ones(seq, seq, dtype=torch.bool, device=DEVICE).triu(1) if is_causal else None

    is_padding = None if real is None else ~real[:, 0, 0]

    def call_torch_module(module):
        # PyTorch requires the mask even if is_causal is True, but the fused kernel does not read it.
        options = {
            "attn_mask": hidden_mask,
            "is_causal": is_causal,
            "key_padding_mask": is_padding,
            "need_weights": False,
        }
        return lambda x: module(x, x, x, **options)[0]

    eval_reference = copy.deepcopy(reference).eval().requires_grad_(False)
    lean, plain = Lean(reference, is_causal, real), Plain(reference, is_causal, real, seq)
    functions = {
        "ours": lambda x: ours(x, mask=real, is_causal=is_causal),
        "torch": call_torch_module(reference),
        "infer": call_torch_module(eval_reference),
        "lean": lean,
        "plain": plain,
    }
    modules = {"ours": ours, "torch": reference, "infer": eval_reference, "lean": lean, "plain": plain}
    if XAttention:
        x_attention = XAttention(d_model, d_model // n_heads, heads=n_heads, causal=is_causal, flash=True).to(DEVICE)
        weights = {"to_out.weight": ours.out_proj.weight}
        weights |= {f"to_{name}.weight": ours.get_parameter(f"{name}_proj.weight") for name in "qkv"}
        x_attention.load_state_dict(weights)  # x-tr has no biases; the other modules' biases are zero
        modules["x-tr"] = x_attention
        functions["x-tr"] = x_attention if real is None else lambda x: x_attention(x, mask=~is_padding)
    return functions, {name: list(module.parameters()) for name, module in modules.items()}


def make_calls(functions, parameters, shape, backward, mask):
    """Return functions without arguments; each returns the output and, if ``backward`` is true, the gradients."""
    batch, seq, d_model, _ = shape
    x, upstream = (torch.randn(batch, seq, d_model).to(DEVICE) for _ in range(2))
    x.requires_grad_(backward)
    if mask == "padding":  # outputs at padding differ, but do not matter
        upstream *= real_token_mask(shape)[:, 0, 0, :, None]

    def call(name):
        function = functions[name]

        def forward():
            with torch.no_grad():
                return (function(x),)

        def forward_and_backward():
            output = function(x)
            return output, *torch.autograd.grad(output, [x, *parameters[name]], upstream)

        return forward_and_backward if backward else forward

    return {name: call(name) for name in functions if not (backward and name == "infer")}


def check_agreement(calls, shape, mask):
    """Raise an error unless, at real tokens, all functions have the same output and the same gradient of the input."""
    every_token = torch.ones((), dtype=torch.bool, device=DEVICE)
    real = real_token_mask(shape)[:, 0, 0, :, None] if mask == "padding" else every_token
    expected = [x * real for x in calls["ours"]()[:2]]
    for name, call in calls.items():
        for actual, wanted in zip((x * real for x in call()[:2]), expected):
            torch.testing.assert_close(actual, wanted, rtol=1e-3, atol=1e-4, msg=lambda text, n=name: f"{n}: {text}")


def print_attention_row(shape, mask, backward, budget):
    functions, parameters = implementations(shape, mask)
    calls = make_calls(functions, parameters, shape, backward, mask)
    check_agreement(calls, shape, mask)
    memory = {name: peak_bytes(call) for name, call in calls.items()}
    timing = compare(calls, budget)
    pass_name = "+backward" if backward else "forward"
    cells = [format_ratio(timing, name) for name in PEERS]
    label = "(" + ",".join(map(str, shape)) + ")"
    print_row(f"{label:<17}{mask}", "time", f"{timing.seconds * 1e3:.2f} ms", cells)
    if memory["ours"] is None:
        return timing, None
    memory_ratios = {name: n_bytes / memory["ours"] for name, n_bytes in memory.items()}
    cells = [f"{memory_ratios[name]:.2f}      " if name in calls else "–" for name in PEERS]
    print_row(f"{'':<17}{pass_name}", "memory", f"{memory['ours'] / 1e6:.2f} MB", cells)
    return timing, memory_ratios


def print_extra_row(label, calls, budget):
    names = list(calls)
    with torch.no_grad():
        for call in calls.values():
            torch.testing.assert_close(call(), calls[names[0]](), rtol=1e-3, atol=1e-4)
        timing = compare(calls, budget)
    for name in names[1:]:
        print(f"{label:<36}{name + ' / ' + names[0]:<58}{format_ratio(timing, name):>14}", flush=True)
    return timing


def print_extra_rows(quick, budget):
    """Measure variants of some operations; print the ratio of each variant's time to that of the first."""
    seq = 1024 if quick else 4096
    query, key, value = (torch.randn(1, 8, seq, 64).to(DEVICE) for _ in range(3))
    triangle = tl.causal_mask(seq, device=DEVICE)
    calls = {
        "tl is_causal": lambda: tl.scaled_dot_product_attention(query, key, value, is_causal=True),
        "F is_causal": lambda: F.scaled_dot_product_attention(query, key, value, is_causal=True),
        "F, a boolean triangle": lambda: F.scaled_dot_product_attention(query, key, value, triangle),
        "tl, a boolean triangle": lambda: tl.scaled_dot_product_attention(query, key, value, triangle),
    }
    print_extra_row(f"(1, 8, {seq}, 64), causal, forward", calls, budget)

    for q_len in (seq, 1):  # a whole text, and one step of generation
        cut_query = query[:, :, :q_len]
        shared_heads = [x[:, :2] for x in (key, value)]
        options = {"is_causal": q_len > 1, "enable_gqa": True}
        calls = {
            "tl enable_gqa": lambda q=cut_query, kv=shared_heads, o=options: tl.scaled_dot_product_attention(
                q, *kv, **o
            ),
            "F enable_gqa": lambda q=cut_query, kv=shared_heads, o=options: F.scaled_dot_product_attention(q, *kv, **o),
            "F, keys and values repeated": lambda q=cut_query, kv=shared_heads, n=q_len: F.scaled_dot_product_attention(
                q, *(x.repeat_interleave(4, 1) for x in kv), is_causal=n > 1
            ),
        }
        print_extra_row(f"8 heads on 2, {q_len} on {seq} tokens", calls, budget)

    def rotate_half(x):  # as in transformers, which computes cos and sin once per model
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)

    angle = torch.arange(seq).double()[:, None] / 10000 ** (torch.arange(0, 64, 2).double() / 64)
    cos, sin = (x.repeat(1, 2).float().to(DEVICE) for x in (angle.cos(), angle.sin()))
    heads, positions = query.transpose(1, 2).contiguous().transpose(1, 2), torch.arange(seq, device=DEVICE)
    calls = {
        "tl.rotary": lambda: tl.rotary(heads),
        "x * cos + rotate_half(x) * sin": lambda: heads * cos + rotate_half(heads) * sin,
        "tl.rotary of positions, as modules call it": lambda: tl.rotary(heads, positions),
    }
    print_extra_row(f"(1, 8, {seq}, 64), rotary", calls, budget)

    n_rows = 512 if quick else 4096
    x, weight, bias = (torch.randn(*size, 512).to(DEVICE) for size in ((n_rows,), (), ()))
    calls = {
        "tl.layer_norm": lambda: tl.layer_norm(x, weight, bias),
        "F.layer_norm": lambda: F.layer_norm(x, (512,), weight, bias),
        "tl.standardize(x, -1) * weight + bias": lambda: tl.standardize(x, -1) * weight + bias,
    }
    print_extra_row(f"({n_rows}, 512), forward", calls, budget)

    max_new_tokens = 16 if quick else 64
    model = tl.Transformer(100, 100, d_model=256, n_heads=4, n_layers=2, d_ff=1024).to(DEVICE).eval()
    source = torch.randint(100, (4, 16)).to(DEVICE)
    calls = {
        "generate with cache": lambda: model.generate(source, bos=0, max_new_tokens=max_new_tokens),
        "without cache": lambda: model.generate(source, bos=0, max_new_tokens=max_new_tokens, use_cache=False),
    }
    print_extra_row(f"{max_new_tokens} tokens, 2 layers, d_model 256", calls, budget)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="small shapes and few rounds, to show that the benchmark runs"
    )
    parser.add_argument("--masks", nargs="+", choices=MASKS, default=MASKS)
    options = parser.parse_args()
    quick = options.quick
    budget = 0.3 if quick else 12
    start = begin()
    if not XAttention:
        print("x-tr is left out: pip install -e .[bench] installs it.")
    print_row("(batch,seq,d_model,heads)", "", "ours", [f"{name}/ours" for name in PEERS])

    rows = {}
    for shape in QUICK_SHAPES if quick else SHAPES:
        for mask in options.masks:
            for backward in (False, True):
                rows[shape, mask, backward] = print_attention_row(shape, mask, backward, budget)
    if quick or options.masks == MASKS:
        print()
        print_extra_rows(quick, budget / 2)
    if quick or options.masks != MASKS:
        return
    print()
    torch_ratio = min(timing.median("torch") for timing, _ in rows.values())
    lean_ratio = min(timing.median("lean") for (_, mask, _), (timing, _) in rows.items() if mask == "causal")
    timing, memory_ratios = rows[SHAPES[-1], "causal", False]
    print_aim(
        "no slower than torch.nn.MultiheadAttention in training mode", f"worst row {torch_ratio:.2f}", torch_ratio >= 1
    )
    print_aim("causal: within 5% of the lean implementation", f"worst row {lean_ratio:.2f}", lean_ratio >= 1 / 1.05)
    print_aim(
        "seq 4096, causal: 4 times faster than plain", f"{timing.median('plain'):.1f}", timing.median("plain") >= 4
    )
    if memory_ratios:
        print_aim(
            "seq 4096, causal: a twentieth of plain's memory",
            f"1/{memory_ratios['plain']:.0f}",
            memory_ratios["plain"] >= 20,
        )
    end(start)


if __name__ == "__main__":
    main()
