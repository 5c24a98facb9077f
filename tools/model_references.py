"""Runs the library transformers with the published weights, and stores the results that this package must reproduce.

    python tools/model_references.py

The tool needs the packages of the extra "references" and the packages that ``python -m transformer_lab.pretrained``
installs, and writes numbers, rounded to seven digits, to tests/maths/pretrained_references.json. It downloads nothing.
"""

import json
import os
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, BertModel
from transformers.utils import logging

from transformer_lab import pretrained

logging.disable_progress_bar()
REFERENCES_FILE = Path(__file__).resolve().parents[1] / "tests" / "maths" / "pretrained_references.json"
SENTENCES = [
    "The animal didn't cross the street because it was too tired.",
    "A man is eating food.",
    "Someone is having a meal.",
    "Attention is a lookup: every query takes a weighted mean of the values whose keys match it.",
]
QUESTION = "What is the capital of France?"
PARAGRAPH = (
    "Before 2017, a network that read a sentence went through it word by word, and what it knew of the beginning had "
    "faded when it came to the end. Attention lets every word look at every other word at once. In 12 heads, each with "
    "64 features, a word asks a question, and the words that have an answer give it; the rest are passed over."
)


def bert():
    """Return transformers' MiniLM without the library's fast paths, which return no attention weights."""
    folder = pretrained.MINILM.locate(pretrained.MINILM_WEIGHTS).parent
    return BertModel.from_pretrained(folder, attn_implementation="eager").eval()


def llama():
    """Return SmolLM2, which transformers reads from the same file as this package."""
    file = pretrained.SMOLLM2.locate(pretrained.SMOLLM2_WEIGHTS)
    return AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).eval()


def sentence_references():
    tokenizer = Tokenizer.from_file(str(pretrained.MINILM.locate(pretrained.MINILM_TOKENIZER)))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    model, tokens, vectors, heads = bert(), [], [], []
    for sentence in SENTENCES:
        ids = tokenizer.encode(sentence).ids
        output = model(torch.tensor([ids]), output_attentions=True)
        vectors.append(torch.nn.functional.normalize(output.last_hidden_state[0].mean(0), dim=0))
        tokens.append(ids)
        heads.append(torch.stack(output.attentions)[:, 0, :, -1, 0])  # the weight of the key [CLS] for the query [SEP]
    return {"sentences": SENTENCES, "tokens": tokens, "vectors": rounded(vectors), "sep_to_cls": rounded(heads)}


def score_references():
    """Return some tokens' scores and the top token at each position of a text, and the answer to a question."""
    smollm2 = pretrained.smollm2()
    tokens, model = smollm2.tokens(PARAGRAPH).cpu(), llama()
    logits = model(tokens).logits[0]
    token_ids = list(range(0, logits.shape[1], 4001))
    prompt = smollm2.tokens(smollm2.prompt(QUESTION)).cpu()
    answer = model.generate(prompt, max_new_tokens=20, do_sample=False, eos_token_id=list(smollm2.stop))
    return {
        "paragraph": PARAGRAPH,
        "tokens": tokens[0].tolist(),
        "some": token_ids,
        "scores": rounded(logits[:, token_ids]),
        "highest": logits.argmax(-1).tolist(),
        "question": QUESTION,
        "answer": answer[0, prompt.shape[1] :].tolist(),
    }


def rounded(x):
    x = x.tolist() if isinstance(x, torch.Tensor) else x
    return [rounded(part) for part in x] if isinstance(x, list) else float(f"{x:.7g}")


def main():
    torch.set_num_threads(1)
    with torch.no_grad():
        references = {"minilm": sentence_references(), "smollm2": score_references()}
    REFERENCES_FILE.write_text(json.dumps(references, separators=(",", ":"), ensure_ascii=False) + "\n", "utf-8")
    print(f"{REFERENCES_FILE.name}: {REFERENCES_FILE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
