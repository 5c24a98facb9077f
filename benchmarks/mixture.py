"""Is a mixture of experts as fast as a loop over its experts?

    python benchmarks/mixture.py [--quick]

One run compares implementations with the same weights, after a check that their results agree:

    ours      tl.MixtureOfExperts: tokens gathered once, sorted by expert
    loop      for each expert, torch.where finds its tokens, and index_add_ adds its output, as in transformers
    dense     every expert for every token: the computation that the mixture avoids

Ratios are computed as in benchmarks/attention.py. "forward" runs under no_grad; "+backward" computes the gradients of
the tokens and of all weights.
"""

import argparse

import torch
from table import DEVICE, begin, end, format_ratio, print_aim, print_row

import transformer_lab as tl
from transformer_lab.measure import compare

# Sizes (d_model, d_ff, n_experts, n_active) and the number of tokens: few large experts, many small experts, a step of
# generation, and a small mixture; with --quick, only the small mixture is measured.
SIZES = [((256, 512, 8, 2), 1024), ((256, 64, 64, 8), 1024), ((256, 64, 128, 8), 1), ((64, 32, 8, 2), 128)]


def loop(mixture, x):
    indices, weights = mixture.route(x)
    output = torch.zeros_like(x)
    for expert_index, expert in enumerate(mixture.experts):
        rows, slots = torch.where(indices == expert_index)
        if len(rows):
            output.index_add_(0, rows, expert(x[rows]) * weights[rows, slots, None])
    return output


def dense(mixture, x):
    indices, weights = mixture.route(x)
    expert_weights = torch.zeros(len(x), len(mixture.experts), device=x.device).scatter(1, indices, weights)
    return sum(
        expert(x) * expert_weight for expert, expert_weight in zip(mixture.experts, expert_weights[..., None].unbind(1))
    )


def main(quick):
    start, slowest = begin(), 0.0
    print_row("sizes, tokens", "", "ours", ["loop/ours", "dense/ours"])
    for sizes, seq in SIZES[-1:] if quick else SIZES:
        mixture, x = tl.MixtureOfExperts(*sizes).to(DEVICE), torch.randn(seq, sizes[0]).to(DEVICE).requires_grad_()
        variants = {"ours": mixture, "loop": lambda x, m=mixture: loop(m, x), "dense": lambda x, m=mixture: dense(m, x)}
        for variant in variants.values():
            torch.testing.assert_close(variant(x), mixture(x), rtol=0, atol=1e-5)
        for kind in ("forward", "+backward"):

            def call(variant, x=x, backward=kind == "+backward"):
                with torch.set_grad_enabled(backward):
                    output = variant(x)
                return output.sum().backward() if backward else output

            calls = {name: lambda variant=variant, call=call: call(variant) for name, variant in variants.items()}
            timing = compare(calls, 0.2 if quick else 4.0)
            slowest = max(slowest, 1 / timing.median("loop"))
            cells = [format_ratio(timing, name) for name in ("loop", "dense")]
            print_row(f"{sizes}, {seq}", kind, f"{timing.seconds * 1e3:.2f} ms", cells)
    print_aim("our time divided by that of the loop: at most 1.05", f"{slowest:.2f} at most", slowest <= 1.05)
    end(start)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small size, to show that the benchmark runs")
    main(parser.parse_args().quick)
