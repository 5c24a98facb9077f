"""Trains the two models of ``WholeLab``, which read a number in digits and write it in words: 342 becomes three
hundred and forty two. The training takes a minute or two on a CPU, and the tool writes the weights into the package.

python tools/train_whole_lab.py [seed]
python tools/train_whole_lab.py --learning    writes checkpoints, the loss, and the accuracy with each part switched off
python tools/train_whole_lab.py --seeds 10    prints the accuracy at each checkpoint for ten seeds, and writes nothing
"""

import argparse
import json
from pathlib import Path

import torch
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import OneCycleLR

import transformer_lab as tl
from transformer_lab.labs.whole import pack, unpack
from whole_switches import switched_off, switches_of

FILE = Path(tl.__file__).parent / "labs" / "whole_weights.json"
CHECKPOINTS = (0, 100, 150, 200, 300, 1500)  # the numbers of steps after which a checkpoint is stored
SEED, STEPS, BATCH, LEARNING_RATE = 0, 1500, 128, 3e-3
SIZES = {"d_model": 24, "n_heads": 4, "n_layers": 2, "d_ff": 48}
DIGITS = [*"0123456789"]
NAMES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand and"
)
WORDS = NAMES.split()
IGNORED_LABEL = -100  # cross_entropy ignores this label


def in_words(n):
    """Return the words of a number up to 999,999: 342 → ["three", "hundred", "and", "forty", "two"]."""
    if n <= 20:
        return [WORDS[n]]
    if n < 100:
        return [WORDS[18 + n // 10], *(in_words(n % 10) if n % 10 else [])]
    size, name = (1000, "thousand") if n >= 1000 else (100, "hundred")
    remainder = n % size
    joiner = ["and"] if 0 < remainder < 100 else []
    return [*in_words(n // size), name, *joiner, *(in_words(remainder) if remainder else [])]


class EncoderDecoder:
    """The encoder reads the digits, and the decoder writes the words."""

    target = ("<start>", "<end>", *WORDS)
    begin = target.index("<start>")
    end = target.index("<end>")

    def make(self):
        return tl.Transformer(len(DIGITS), len(self.target), **SIZES)

    def examples(self, texts):
        """Return the model's input and target."""
        digits = [torch.tensor([int(digit) for digit in text]) for text in texts]
        words = [torch.tensor([self.target.index(word) for word in in_words(int(text))]) for text in texts]
        given = [F.pad(x, (1, 0), value=self.begin) for x in words]
        labels = [F.pad(x, (0, 1), value=self.end) for x in words]
        source = pad_sequence(digits, batch_first=True)  # padded with the digit 0: the mask hides it
        mask = tl.padding_mask([len(x) for x in digits], source.shape[1])
        return (source, pad_sequence(given, batch_first=True), mask), pad_sequence(labels, True, IGNORED_LABEL)

    def write(self, model, texts):
        (source, _, mask), _ = self.examples(texts)
        return model.generate(source, mask, bos=self.begin, eos=self.end, max_new_tokens=12, use_cache=False)[:, 1:]


class DecoderOnly:
    """The model's text is one sequence: the digits, =, the words."""

    target = (*DIGITS, "=", "<end>", *WORDS)
    begin = target.index("=")
    end = target.index("<end>")

    def make(self):
        return tl.LanguageModel(len(self.target), **SIZES)

    def examples(self, texts):
        """Return the model's input and target."""
        given, labels = [], []
        for text in texts:
            words = [self.target.index(word) for word in in_words(int(text))]
            given.append(torch.tensor([int(digit) for digit in text] + [self.begin, *words]))
            labels.append(torch.tensor([IGNORED_LABEL] * len(text) + [*words, self.end]))  # digits are not predicted
        return (pad_sequence(given, batch_first=True),), pad_sequence(labels, True, IGNORED_LABEL)

    def write(self, model, texts):
        """Return the tokens that the model writes after texts of equal length."""
        prompt = torch.tensor([[int(digit) for digit in text] + [self.begin] for text in texts])
        return model.generate(prompt, max_new_tokens=12, stop=[self.end], use_cache=False)[:, prompt.shape[1] :]


def split_numbers(seed):
    """Return the training texts, and a held-out tenth, which contains none of the few numbers below 100."""
    order = (torch.randperm(9900, generator=torch.Generator().manual_seed(seed)) + 100).tolist()
    return [str(n) for n in [*range(100), *order[990:]]], [str(n) for n in order[:990]]


def train(task, texts, seed, losses=None, on_checkpoint=lambda step, model: None):
    """Return the trained model; call ``on_checkpoint`` at each checkpoint, and append every loss to ``losses``."""
    torch.manual_seed(seed)
    model = task.make()
    inputs, labels = task.examples(texts)
    # There are ten times as many numbers of n + 1 digits as of n digits; together, the longer numbers are drawn only
    # √10 times as often.
    weights = torch.tensor([10 ** (-len(text) / 2) for text in texts])
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    schedule = OneCycleLR(optimizer, max_lr=LEARNING_RATE, total_steps=STEPS, pct_start=0.1)
    for step in range(STEPS):
        if step in CHECKPOINTS:
            on_checkpoint(step, model)
        drawn = weights.multinomial(BATCH, replacement=True)
        scores = model(*(x[drawn] for x in inputs))
        loss = F.cross_entropy(scores.flatten(0, 1), labels[drawn].flatten(), ignore_index=IGNORED_LABEL)
        if losses is not None:
            losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"{type(task).__name__}, step {step + 1}: loss {loss.item():.4f}", flush=True)
    on_checkpoint(STEPS, model)
    return model.eval()


def count_right(task, model, texts):
    """Return how many texts the model answers without a wrong word; all texts have the same length."""
    right = 0
    for text, written in zip(texts, task.write(model, texts).tolist()):
        words = [*in_words(int(text)), "<end>"]
        right += [task.target[token] for token in written][: len(words)] == words
    return right


def count_unseen(task, model, texts, off=()):
    """Return how many of the texts the model answers without a mistake while the parts ``off`` are switched off."""
    with switched_off(model, off):
        return sum(count_right(task, model, [x for x in texts if len(x) == size]) for size in {len(x) for x in texts})


def measure(seed):
    """Train both models, and measure their checkpoints; for the last checkpoint, the stored model is measured.

    Rounding differs between machines, so models trained on another machine are close to the stored models, but not
    equal to them.
    """
    texts, held_out = split_numbers(seed)
    final_models = {each["family"]: each for each in json.loads(FILE.read_text("utf-8"))["models"]}
    measurements = {"held_out": held_out, "steps": list(CHECKPOINTS), "loss": {}, "right": {}, "switches": {}}
    stored = {step: [] for step in CHECKPOINTS}
    for task in (EncoderDecoder(), DecoderOnly()):
        losses, right = [], []

        def on_checkpoint(step, model, task=task, right=right):
            packed = pack(model, DIGITS, list(task.target), task.begin, task.end, "float16")
            stored[step].append(packed)
            with torch.random.fork_rng():  # unpacking draws random weights, but must not change the training
                right.append(count_unseen(task, unpack(packed), held_out))
            print(f"{type(task).__name__}, step {step}: {right[-1]} of {len(held_out)} right", flush=True)

        train(task, texts, seed, losses, on_checkpoint)
        family = stored[STEPS][-1]["family"]
        model = unpack(final_models[family])
        right[-1] = count_unseen(task, model, held_out)
        measurements["loss"][family] = [round(sum(losses[i : i + 25]) / 25, 4) for i in range(0, STEPS, 25)]
        measurements["right"][family] = right
        measurements["switches"][family] = {
            name: count_unseen(task, model, held_out, [name]) for name in switches_of(model)
        }
    return measurements, stored


def print_seeds(count):
    """Print the accuracy on unseen numbers at each checkpoint, with a row for each seed and model."""
    print("seed, model, right answers (of 990) after steps", *CHECKPOINTS)
    for seed in range(count):
        texts, held_out = split_numbers(seed)
        for task in (EncoderDecoder(), DecoderOnly()):
            print(seed, type(task).__name__, *_right_at_checkpoints(task, texts, held_out, seed), flush=True)


def _right_at_checkpoints(task, texts, held_out, seed):
    right = []
    train(task, texts, seed, [], lambda _, model: right.append(count_unseen(task, model, held_out)))
    return right


def questions(seed):
    """Return texts that the model was not trained on, by kind of question."""
    _, held_out = split_numbers(seed)
    numbers = torch.Generator().manual_seed(seed)
    long = {n: torch.randint(10 ** (n - 1), 10**n, (500,), generator=numbers).tolist() for n in (5, 6)}
    return {
        "3 digits": [text for text in held_out if len(text) == 3],
        "4 digits": [text for text in held_out if len(text) == 4],
        "with a zero in front": [f"0{n}" for n in range(100, 1000)],
        "5 digits": [str(n) for n in long[5]],
        "6 digits": [str(n) for n in long[6]],
    }


def main(seed=SEED):
    texts, held_out = split_numbers(seed)
    texts_by_kind = questions(seed)
    models, right = [], {}
    for task in (EncoderDecoder(), DecoderOnly()):
        model = train(task, texts, seed)
        stored = pack(model, DIGITS, list(task.target), task.begin, task.end, "float16")
        # The rounded model is stored, so its accuracy is measured after rounding.
        rounded = unpack(stored)
        right[stored["family"]] = {name: count_right(task, rounded, texts_by_kind[name]) for name in texts_by_kind}
        for name in texts_by_kind:
            before, after = count_right(task, model, texts_by_kind[name]), right[stored["family"]][name]
            print(f"{name}: {before} of {len(texts_by_kind[name])} right, {after} when rounded")
        models.append(stored)
    metadata = {"script": "tools/train_whole_lab.py", "seed": seed, "steps": STEPS, "batch": BATCH}
    metadata |= {"trained_on": len(texts), "held_out": len(held_out)}
    metadata |= {"asked": {name: len(texts_by_kind[name]) for name in texts_by_kind}, "right": right}
    FILE.write_text(json.dumps({"made": metadata, "models": models}) + "\n", "utf-8")


def write_learning(seed):
    """Write the checkpoints and the measurements beside the weights."""
    measurements, stored = measure(seed)
    for step in CHECKPOINTS[:-1]:  # the last is in whole_weights.json
        FILE.with_name(f"whole_checkpoint_{step}.json").write_text(json.dumps(stored[step]) + "\n", "utf-8")
    FILE.with_name("whole_learning.json").write_text(json.dumps(measurements) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Trains the two models of WholeLab.")
    parser.add_argument("seed", nargs="?", type=int, default=SEED)
    parser.add_argument("--seeds", type=int, help="print accuracies for this many seeds")
    parser.add_argument("--learning", action="store_true", help="write checkpoints and measurements, not the weights")
    arguments = parser.parse_args()
    if arguments.seeds:
        print_seeds(arguments.seeds)
    elif arguments.learning:
        write_learning(arguments.seed)
    else:
        main(arguments.seed)
