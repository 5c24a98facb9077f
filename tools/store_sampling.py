"""Writes the data of the sampling lab: SmolLM2's scores after some prompts. The weights must be installed."""

import json
from pathlib import Path

import torch

from transformer_lab import pretrained
from transformer_lab.labs import sampling

PATH = Path(sampling.__file__).with_name("sampling_prompts.json")
SOURCE = (
    "Scores of SmolLM2-135M-Instruct, which is under the Apache License 2.0, after some prompts: the best tokens one "
    "by one, and sums over all others. Written by tools/store_sampling.py."
)
TEXTS = {
    "sea": "The sea is wide and blue and full of",
    "france": "The capital of France is",
    "colour": "My favourite colour is",
    "door": "She opened the door and saw a",
}
QUESTIONS = {"question": "Write one sentence about the sea.", "product": "What is 12 times 12?"}
ANSWERS = {"product": "12 times 12 is equal to 1"}  # the answer so far


def stored_prompts(model):
    """Return the stored data of every prompt."""

    def decode(token):
        return model.tokenizer.decode([token], skip_special_tokens=False)

    def scores(text):
        return model(model.tokens(text))[0, -1].cpu()

    with torch.no_grad():
        texts = [sampling.stored_prompt(key, text, scores(text), decode) for key, text in TEXTS.items()]
        for key, question in QUESTIONS.items():
            answer = ANSWERS.get(key, "")
            prompt = model.prompt(question) + answer
            text = f"{question} {answer}".strip()
            texts.append(sampling.stored_prompt(key, text, scores(prompt), decode, chat=True))
    return texts


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(prompt, ensure_ascii=False) for prompt in stored_prompts(pretrained.smollm2()))
    PATH.write_text(f'{{"source": {json.dumps(SOURCE)}, "prompts": [\n{lines}\n]}}\n', "utf-8")
    print(f"{PATH.stat().st_size:,} bytes")
