"""What does an audit find in models that people use, and how long does an audit take?

    python benchmarks/audit.py [--versions 5.17.0 5.24.0]

The first part audits ten correct models and, for each of the twenty bugs in ``transformer_lab.bugs``, the broken and
the repaired model. It prints how many of the broken models fail the property that should find their bug, how many of
the correct and repaired models fail any property, and the median and the longest processor time of an audit, in
seconds. The second part audits tiny models with random weights from Hugging Face's library transformers, in each
version of the library that --versions lists: pip installs the version into _build/benchmark-peers, and a separate
process audits its models. Version 5.17.0 has five decoders that read the future (transformers#48745, #48748); later
versions have none.
"""

import argparse
import contextlib
import io
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

import transformer_lab as tl
from transformer_lab.bugs import BUGS
from transformer_lab.bugs.right import RIGHT_MODELS
from transformer_lab.bugs.small_model import audit_arguments

PEERS = Path(__file__).parents[1] / "_build" / "benchmark-peers"
VERSIONS = ("5.17.0", "5.24.0")
SMALL_CONFIG = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
LLAMA_CONFIG = {**SMALL_CONFIG, "num_key_value_heads": 2, "max_position_embeddings": 1024}
BERT_CONFIG = {**SMALL_CONFIG, "max_position_embeddings": 1024, "is_decoder": True}
# For each model, the beginning of its class name and the settings of its configuration.
MODELS = {
    "GPT-2": ("GPT2", {"vocab_size": 50, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 1024}),
    "Llama": ("Llama", LLAMA_CONFIG),
    "Mistral, window 3": ("Mistral", {**LLAMA_CONFIG, "sliding_window": 3}),
    "Qwen3": ("Qwen3", {**LLAMA_CONFIG, "head_dim": 8}),
    "BERT as a decoder": ("Bert", BERT_CONFIG),
    "RoFormer": ("RoFormer", {**BERT_CONFIG, "embedding_size": 32}),
    "BigBird": ("BigBird", {**BERT_CONFIG, "attention_type": "original_full"}),
    "RemBert": ("RemBert", {**BERT_CONFIG, "input_embedding_size": 16, "output_embedding_size": 16}),
    "MegatronBert": ("MegatronBert", BERT_CONFIG),
    "Doge, sdpa": ("Doge", {**LLAMA_CONFIG, "attn_implementation": "sdpa"}),
    "Doge, eager": ("Doge", {**LLAMA_CONFIG, "attn_implementation": "eager"}),
}
MODEL_CLASSES = {"Bert": "BertLMHeadModel", "GPT2": "GPT2LMHeadModel"}


def run_audit(arguments):
    """Run an audit; return its report and its processor time in seconds."""
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        report = tl.audit(**arguments)
    return report, time.process_time() - start


def audit_small_models():
    seconds, n_found, alarms = [], 0, 0
    for bug in BUGS.values():
        for broken in (True, False):
            report, elapsed = run_audit(bug.arguments(broken))
            seconds.append(elapsed)
            n_found += broken and bug.found_by in report.failed
            alarms += not broken and bool(report.failed)
    for build_model in RIGHT_MODELS.values():
        report, elapsed = run_audit(audit_arguments(build_model()))
        seconds.append(elapsed)
        alarms += bool(report.failed)
    print(f"bugs found {n_found} of {len(BUGS)}, alarms on right models {alarms} of {len(BUGS) + len(RIGHT_MODELS)}")
    print(f"processor seconds of an audit: median {statistics.median(seconds):.2f}, longest {max(seconds):.2f}")


def step(model, tokens, cache):
    output = model(tokens, past_key_values=cache, use_cache=True)
    return output.logits, output.past_key_values


def audit_transformers_models():
    """Audit the models in the version of transformers that this process imports."""
    import transformers

    transformers.logging.set_verbosity_error()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    for name, (family, settings) in MODELS.items():
        try:
            config = getattr(transformers, f"{family}Config")(**settings)
            torch.manual_seed(0)
            class_name = MODEL_CLASSES.get(family, f"{family}ForCausalLM")
            model = getattr(transformers, class_name)(config).eval()
            window = settings.get("sliding_window")
            report, elapsed = run_audit(
                {
                    "model": model,
                    "vocab_size": 50,
                    "forward": lambda model, x: model(x).logits,
                    "padded": lambda model, x, keep: (
                        model(
                            x, attention_mask=keep.long(), position_ids=(keep.long().cumsum(-1) - 1).clamp(min=0)
                        ).logits
                    ),
                    "step": step,
                    "loss": lambda model, x: model(x, labels=x).loss,
                    **({"window": window, "n_layers": 2} if window else {}),
                }
            )
            failed_text = "; ".join(report.failed) or "nothing fails"
            raised_text = f" · raises: {'; '.join(report.of('raises'))}" if report.of("raises") else ""
            print(f"  {name:20} {elapsed:5.1f} s  {failed_text}{raised_text}")
        except Exception as error:
            print(f"  {name:20}          not made: {type(error).__name__}: {str(error).splitlines()[0][:70]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--versions",
        nargs="*",
        default=VERSIONS,
        help="versions of transformers; without a version, this part is skipped",
    )
    parser.add_argument("--peers", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peers:
        return audit_transformers_models()
    audit_small_models()
    for version in arguments.versions:
        folder = PEERS / f"transformers-{version}"
        if not folder.exists():
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, f"transformers=={version}"]
            if subprocess.run(pip, stderr=subprocess.DEVNULL).returncode:
                print(f"transformers {version} could not be installed: its models are left out.")
                continue
        root = str(Path(__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), root])}
        subprocess.run([sys.executable, __file__, "--peers"], env=environment, check=True)


if __name__ == "__main__":
    main()
