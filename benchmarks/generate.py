"""How fast do published models load, read and write in this package and in transformers (same weights, same threads)?

    python benchmarks/generate.py [--quick]

The benchmark needs the weights (python -m transformer_lab.pretrained). If transformers is installed (pip install -e
.[references]), it is measured too. Times are processor times on one thread, and the functions take turns. The loading
time is measured in a fresh interpreter, after the imports.
"""

import argparse
import importlib.util
import subprocess
import sys
from functools import partial
from pathlib import Path

import torch
from table import DEVICE, begin, end, format_ratio, print_aim

import transformer_lab as tl

LOAD_CODE = """
import time, torch, transformer_lab as tl
from transformer_lab import pretrained
torch.set_num_threads(1)
start, cpu = time.perf_counter(), time.process_time()
model = pretrained.{model}()
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
{use}
import resource
print(cpu, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""
USE_CODE = {"minilm": "model.encode(['one sentence'] * 32)", "smollm2": "model.generate('Say something.', 16)"}
TEXT = "Attention lets every word look at every other word at once, and take from each as much as it needs. "


def print_loading_times():
    print(f"\n{'loading':<28}{'processor':>12}{'clock':>12}{'peak memory':>16}")
    for model, use in USE_CODE.items():
        code = LOAD_CODE.format(model=model, use=use)
        output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        cpu, seconds, memory = map(float, output.split())
        print(f"{model:<28}{cpu:>10.2f} s{seconds:>10.2f} s{memory:>13.2f} GB", flush=True)
        print_aim(
            "  loaded in under 3 s, and used with under 3 GB", f"{seconds:.2f} s, {memory:.2f} GB", seconds < 3 > memory
        )


def load_peers():
    """Return SmolLM2 models of transformers, by kind of attention, and MiniLM; without transformers, ``({}, None)``."""
    if not importlib.util.find_spec("transformers"):
        print("transformers is not installed: pip install -e .[references] adds the comparison")
        return {}, None
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
    import model_references

    models = {"eager": model_references.llama().to(DEVICE), "sdpa": model_references.llama().to(DEVICE)}
    for name, model in models.items():
        model.set_attn_implementation(name)
    return models, model_references.bert().to(DEVICE)


def print_comparison(label, calls, amount, budget):
    """Print our rate, and the time of every other implementation divided by our time.

    ``amount`` is what a call produces or reads, such as ``(32, "tokens")``.
    """
    count, unit = amount
    timing = tl.measure.compare(calls, budget)
    others = "".join(f"{other:>20}: {format_ratio(timing, other)}" for other in calls if other != "ours")
    print(f"{label:<28}{count / timing.seconds:>9.1f} {unit}/s{others}", flush=True)
    return timing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few tokens, to show that the benchmark runs")
    quick = parser.parse_args().quick
    start = begin()
    try:
        tl.pretrained.MINILM.locate(""), tl.pretrained.SMOLLM2.locate("")
    except ImportError as error:
        print(f"Nothing is measured: {error}.")
        return
    # Loading is measured first, because the peak memory of a new process includes the memory that its parent has when
    # the process starts.
    print_loading_times()
    smollm2, minilm = tl.pretrained.smollm2(), tl.pretrained.minilm()
    llamas, bert = load_peers()
    n_read, n_written, budget = (16, 4, 1) if quick else (256, 32, 30)
    prompt = smollm2.tokens(TEXT * 30)[:, :n_read]
    print(f"\nSmolLM2-135M, a batch of one: our rate, and the others' times divided by ours\n{'':<28}{'ours':>15}")
    with torch.no_grad():
        calls = {"ours": lambda: smollm2(prompt)}
        calls |= {f"transformers {name}": partial(model, prompt) for name, model in llamas.items()}
        print_comparison(f"reading {n_read} tokens", calls, (n_read, "tokens"), budget)
        options = {"max_new_tokens": n_written, "do_sample": False}
        for length in (n_read // 8, n_read):
            prefix = prompt[:, :length]
            calls = {"ours": partial(smollm2.model.generate, prefix, n_written)}
            if length < n_read:  # after a long prompt, this takes minutes
                calls["no cache"] = partial(smollm2.model.generate, prefix, n_written, use_cache=False)
            for name, model in llamas.items():
                attention = torch.ones_like(prefix)
                calls[f"transformers {name}"] = partial(
                    model.generate, prefix, attention_mask=attention, eos_token_id=None, pad_token_id=2, **options
                )
            timing = print_comparison(f"writing {n_written} after {length}", calls, (n_written, "tokens"), budget)
            if llamas:
                time_ratio = timing.median("transformers eager")
                print_aim(
                    "  no slower than transformers' eager attention, with a cache",
                    f"{time_ratio:.2f}",
                    time_ratio >= 0.97,
                )
        sentences = [TEXT.strip()]
        calls = {"ours": partial(minilm.encode, sentences)}
        if bert is not None:
            tokens, real = minilm.tokens(sentences)
            calls["transformers eager, only states"] = partial(bert, tokens, attention_mask=real.long())
        print_comparison("MiniLM, one sentence", calls, (1, "sentences"), budget / 10)
    end(start)


if __name__ == "__main__":
    main()
