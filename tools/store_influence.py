"""Measures how far each output of sixteen models moves when a token is replaced: the data of the influence lab."""

import copy
import json
import math
from pathlib import Path

import torch
from torch.nn import functional as F

from transformer_lab.audit.trial import multiply_weights
from transformer_lab.bugs import BUGS, SmallModel
from transformer_lab.bugs.unpublished import (
    Blocks,
    NextToken,
    NoMask,
    NormOverTheSequence,
    PaddingRead,
    SoftmaxOverQueries,
)
from transformer_lab.labs import influence

PATH = Path(influence.__file__).with_name("influence_models.json")
TOKENS = [7, 3, 11, 2, 9, 5, 13, 4]  # one text of eight tokens
N_PADS, PAD_ID = 3, 0
TOKEN_SHIFT = 20  # number that is added to a token to replace it
DOCUMENTS = [0, 0, 0, 0, 1, 1, 1, 1]


class PrefixCausal(SmallModel):
    """The first three tokens see one another; each later token sees itself and the tokens before it."""

    def mask(self, q_len, k_len, keep, documents):
        positions = torch.arange(k_len)
        prefix = (positions[:, None] < 3) & (positions < 3)
        allowed = self.padding_and_document_mask(q_len, k_len, keep, documents)
        return (prefix | (self.distance_back(q_len, k_len) >= 0)) & allowed


def buggy_model(name):
    return lambda: BUGS[name].arguments()["model"]


# Each row has a model, its claimed design, the correct verdict, the model's story, and the published bug or the thread
# behind it.
MODELS = (
    (SmallModel, "causal", "right", "A token moves its own output and later ones, and nothing else moves.", None),
    (buggy_model("inverted_mask"), "causal", "future", None, "inverted_mask"),
    (NoMask, "causal", "future", "No mask arrives, so every token sees all others. In September 2026, four "
     "decoders of one library were found to have this bug: their loss fell to almost 0 on random tokens.",
     ("huggingface/transformers", 48745)),
    (lambda: SmallModel(window=3, n_layers=1), "causal, a window of 3", "right", "Each output depends on its own token "
     "and the two tokens before it.", None),
    (Blocks, "causal", "future", "Every token sees its whole block of four tokens. In August 2026 generated training "
     "scripts with this leak were reported; their validation losses looked like records.",
     ("karpathy/nanochat", 844)),
    (buggy_model("weak_mask"), "causal", "future", None, "weak_mask"),
    (lambda: SmallModel(causal=False), "two-sided", "right", "An encoder: every token may see all others.", None),
    (buggy_model("packed_together"), "causal", "documents", None, "packed_together"),
    (buggy_model("window_plus_one"), "causal, a window of 3", "window", None, "window_plus_one"),
    (lambda: SmallModel(n_kv_heads=2, rotary=True), "causal", "right", "Rotary positions and shared key heads change "
     "how far outputs move, but not which outputs move.", None),
    (NextToken, "causal", "future", "The triangle begins one place too far to the right, so each output sees the token "
     "that it has to predict.", None),
    (PaddingRead, "causal", "padding", "The padding mask never arrives, so a sentence gets different outputs alone and "
     "in a batch.", None),
    (SoftmaxOverQueries, "causal", "future", "The softmax runs over the queries. A hidden key has no weight, but a "
     "later query takes weight away from an earlier one.", None),
    (buggy_model("fully_masked_row"), "causal", "nan", None, "fully_masked_row"),
    (NormOverTheSequence, "causal", "future", "A norm takes its mean over all tokens of the text, the future among "
     "them. No mask can prevent it.", None),
    (PrefixCausal, "causal after a prefix of 3", "right", "The three tokens of the prefix see one another, as claimed; "
     "all later tokens are causal.", None),
)  # fmt: skip


def influence_of_replacing(model, tokens, **inputs):
    """Return a table whose entry (j, i) is the change of output i, in standard deviations, when token j is replaced."""
    baseline, rows = model(tokens, **inputs), []
    for j in range(tokens.shape[1]):
        replaced = tokens.clone()
        replaced[:, j] += TOKEN_SHIFT
        rows.append((model(replaced, **inputs) - baseline).abs().amax(-1)[0])
    std = baseline[baseline.isfinite()].std() if baseline.isfinite().any() else 1.0
    return torch.stack(rows) / std


def round_share(share):
    """Round to three digits; return 0 for a rounding error, and None for NaN."""
    return None if math.isnan(share) else 0 if share < 1e-9 else float(f"{share:.3g}")


def tables(model):
    """Return a model's table for each setting of the lab's switches; the rows are the replaced tokens."""
    plain = torch.tensor([TOKENS])
    padded = F.pad(plain[:, N_PADS:], (N_PADS, 0), value=PAD_ID)
    keep = torch.ones_like(plain, dtype=torch.bool)
    keep[:, :N_PADS] = False
    inputs = {
        "one": (plain, {}),
        "two": (plain, {"documents": torch.tensor([DOCUMENTS])}),
        "padded": (padded, {"keep": keep}),
    }
    by_input = {}
    for weights, factor in (("quiet", 1.0), ("loud", 3000.0)):
        scaled_model = copy.deepcopy(model).double().eval()
        multiply_weights(factor)(scaled_model)
        for input_name, (tokens, options) in inputs.items():
            table = [
                [round_share(x) for x in line]
                for line in influence_of_replacing(scaled_model, tokens, **options).tolist()
            ]
            by_input[f"{weights} {input_name}"] = table
    return by_input


@torch.no_grad()
def stored_models():
    """Return the stored data of each model."""
    models = []
    for letter, (build, claim, verdict, story, source) in zip("ABCDEFGHIJKLMNOP", MODELS):
        bug = BUGS.get(source) if isinstance(source, str) else None
        repository, number = (bug.repository, bug.number) if bug else source or ("", 0)
        models.append(
            {
                "letter": letter,
                "claim": claim,
                "verdict": verdict,
                "title": bug.title if bug else "",
                "story": f"{bug.description} {bug.story}" if bug else story,
                "thread": f"{repository}#{number}" if repository else "",
                "link": f"https://github.com/{repository}/issues/{number}" if repository else "",
                "tables": tables(build()),
            }
        )
    return models


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(model, ensure_ascii=False, separators=(",", ":")) for model in stored_models())
    PATH.write_text(f'{{"source": "Written by tools/store_influence.py.", "models": [\n{lines}\n]}}\n', "utf-8")
    print(f"{PATH.stat().st_size:,} bytes")
