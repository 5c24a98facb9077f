"""Trains the two models of the whole lab, which read a number in digits and write it in words: 342, three hundred and
forty two. A few minutes on a CPU.

python tools/train_whole_lab.py
"""

import json
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import OneCycleLR

import transformer_lab as tl
from transformer_lab.labs.whole import pack, unpack

FILE = Path(tl.__file__).parent / "labs" / "whole_weights.json"
SEED, STEPS, BATCH, RATE = 0, 6000, 128, 3e-3
SIZES = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 64}
WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand and"
)
DIGITS = [*"0123456789"]
NAMES = ["<end>", *WORDS.split()]
IGNORED = -100  # cross_entropy leaves it out


def in_words(n):
    """342 → ["three", "hundred", "and", "forty", "two"], up to 999,999."""
    if n < 20:
        return [NAMES[1 + n]]
    if n < 100:
        return [NAMES[19 + n // 10], *(in_words(n % 10) if n % 10 else [])]
    size, name = (1000, "thousand") if n >= 1000 else (100, "hundred")
    rest = n % size
    link = ["and"] if 0 < rest < 100 else []
    return [*in_words(n // size), name, *link, *(in_words(rest) if rest else [])]


class Both:
    """The encoder reads the digits, the decoder writes the words."""

    source, target, begin = DIGITS, ["<start>", *NAMES], "<start>"

    def make(self):
        return tl.Transformer(len(self.source), len(self.target), **SIZES)

    def batch(self, numbers):
        """What goes into the model, and what it shall say."""
        digits = [torch.tensor([int(digit) for digit in str(n)]) for n in numbers]
        words = [
            torch.tensor([self.target.index(word) for word in ["<start>", *in_words(n), "<end>"]]) for n in numbers
        ]
        source = pad_sequence(digits, True)  # with zeros, which the mask hides
        mask = tl.padding_mask([len(x) for x in digits], source.shape[1])
        given = pad_sequence([x[:-1] for x in words], True)  # with <start>, which no word before it sees
        return (source, given, mask), pad_sequence([x[1:] for x in words], True, IGNORED)

    def write(self, model, numbers):
        (source, _, mask), _ = self.batch(numbers)
        ends = {name: self.target.index(f"<{word}>") for name, word in (("bos", "start"), ("eos", "end"))}
        return model.generate(source, mask, **ends, max_new_tokens=16)[:, 1:]


class DecoderOnly:
    """One sequence: the digits, =, the words."""

    source, target, begin = DIGITS, [*DIGITS, "=", *NAMES], "="

    def make(self):
        return tl.LanguageModel(len(self.target), **SIZES)

    def batch(self, numbers):
        texts = [[*str(n), "=", *in_words(n), "<end>"] for n in numbers]
        tokens = [torch.tensor([self.target.index(token) for token in text]) for text in texts]
        wished = [x[1:].clone() for x in tokens]
        for x, n in zip(wished, numbers):
            x[: len(str(n))] = IGNORED  # nobody can know the next digit
        return (pad_sequence([x[:-1] for x in tokens], True),), pad_sequence(wished, True, IGNORED)

    def write(self, model, numbers):
        prompt = torch.tensor([[self.target.index(token) for token in [*str(n), "="]] for n in numbers])
        return model.generate(prompt, 16, stop=[self.target.index("<end>")])[:, prompt.shape[1] :]


def split(seed):
    """Numbers to train on, and the tenth that is held out. Below 100 there are too few to hold any out."""
    order = (torch.randperm(9900, generator=torch.Generator().manual_seed(seed)) + 100).tolist()
    return [*range(100), *order[990:]], order[:990]


def train(task, numbers, seed):
    torch.manual_seed(seed)
    model = task.make()
    inputs, wished = task.batch(numbers)
    # Short numbers are few, and come more often than their share: each length as the root of its count.
    weights = torch.tensor([10.0 ** (-len(str(n)) / 2) for n in numbers])
    optimizer = torch.optim.Adam(model.parameters())
    schedule = OneCycleLR(optimizer, max_lr=RATE, total_steps=STEPS, pct_start=0.1)
    for step in range(STEPS):
        drawn = weights.multinomial(BATCH, replacement=True)
        scores = model(*(x[drawn] for x in inputs))
        loss = F.cross_entropy(scores.flatten(0, 1), wished[drawn].flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 500 == 499:
            print(f"{type(task).__name__} step {step + 1} loss {loss.item():.4f}")
    return model.eval()


def share_right(task, model, numbers):
    """The share of numbers whose words are all right."""
    end, right = task.target.index("<end>"), 0
    for length in {len(str(n)) for n in numbers}:
        same = [n for n in numbers if len(str(n)) == length]
        for n, written in zip(same, task.write(model, same).tolist()):
            words = [task.target[token] for token in written]
            right += words[: written.index(end) if end in written else None] == in_words(n)
    return right / len(numbers)


def main(seed=SEED):
    trained, held_out = split(seed)
    models = []
    for task in (Both(), DecoderOnly()):
        start = time.perf_counter()
        model = train(task, trained, seed)
        print(f"{time.perf_counter() - start:.0f} s", sum(p.numel() for p in model.parameters()))
        begin, end = (task.target.index(word) for word in (task.begin, "<end>"))
        stored = pack(model, task.source, task.target, begin, end, "float16")
        rounded = unpack(stored)
        numbers = torch.Generator().manual_seed(seed)
        for m in (model, rounded):
            print("held out", share_right(task, m, held_out), "trained", share_right(task, m, trained))
            for length in (1, 2, 3, 4):
                print(length, share_right(task, m, [n for n in held_out + trained if len(str(n)) == length]))
        for length in (5, 6):
            some = torch.randint(10 ** (length - 1), 10**length, (500,), generator=numbers).tolist()
            print(length, share_right(task, rounded, some))
        models.append(stored)
    return models


if __name__ == "__main__":
    models = main(*map(int, sys.argv[1:]))
    FILE.write_text(json.dumps({"models": models}))
