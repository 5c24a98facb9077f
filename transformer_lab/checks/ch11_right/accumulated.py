"""The loss of one big batch, computed from small ones."""

import torch
from torch.nn import functional as F

from ..exercise import exercise

HIDDEN = -100


class _TableModel:
    """A model that looks up the scores of the next token in a table."""

    def __init__(self, table):
        self.table = table

    def __call__(self, tokens):
        return self.table.to(tokens.device)[tokens]


def _model_and_batches(draw, vocab=6, seq=8):
    return _make_batches(draw, [(seq - 1, 2), (3, 3, seq - 3), (seq - 2,)], vocab, seq)


def _make_batches(draw, answer_lengths, vocab=6, seq=8):
    """Make batches of texts. ``answer_lengths`` says for each text how many labels at its end are not hidden."""
    batches = []
    for lengths in answer_lengths:
        tokens = torch.randint(vocab, (len(lengths), seq), generator=draw.generator)
        is_hidden = torch.arange(seq) < seq - torch.tensor(lengths)[:, None]
        batches.append((tokens, tokens.masked_fill(is_hidden, HIDDEN)))
    return _TableModel(draw(vocab, vocab).requires_grad_()), batches


def _example(name, *answer_lengths):
    accumulated.example(name, lambda draw: _make_batches(draw, answer_lengths))


def align_with_next_tokens(logits, labels):
    """Align the logits with the labels of the next tokens."""
    return logits[:, :-1], labels[:, 1:]


def summed_loss(logits, labels):
    """Add up the losses of all labels that are not −100."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=HIDDEN, reduction="sum")


def count_labels(labels):
    """Count the labels that are not −100."""
    return (labels != HIDDEN).sum()


def overall_mean(sums, counts):
    """Divide the sum of all losses by the number of all labels."""
    return sum(sums) / sum(counts)


@exercise(
    inputs=_model_and_batches,
    axes={"return": ""},
    facts=lambda arguments, result, made: {"cut off from the gradient": not result.requires_grad},
    hints=(
        "One small batch has three labels, with the losses 1, 1 and 1, and another has one label, with the loss 5. "
        "What is the loss of the two batches together?",
        "Shift once: the logits at place i belong to the label at place i + 1. Add up losses, not means. After the "
        "shift, count the labels that are not −100. Divide once, at the end.",
        "`logits, labels = model(tokens)[:, :-1], labels[:, 1:]`, `F.cross_entropy(logits.flatten(0, 1), "
        "labels.flatten(), reduction=…)`, `(labels != -100).sum()`, then one division after the loop",
    ),
)
def accumulated(
    model, batches, *, align=align_with_next_tokens, add=summed_loss, count=count_labels, divide=overall_mean
):
    """Return the mean loss over all labels of all batches, as if the batches were one."""
    pairs = [align(model(tokens), labels) for tokens, labels in batches]
    return divide([add(*pair) for pair in pairs], [count(labels) for _, labels in pairs])


@accumulated.right
class RightAnswers:
    def as_one_batch(model, batches):
        tokens, labels = (torch.cat(parts) for parts in zip(*batches))
        return F.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=HIDDEN)

    def by_picking(model, batches):
        total, count = 0.0, 0
        for tokens, labels in batches:
            logp, wanted = model(tokens)[:, :-1].log_softmax(-1), labels[:, 1:]
            is_kept = wanted != HIDDEN
            picked = logp.gather(-1, wanted.clamp(min=0)[..., None])[..., 0]
            total, count = total - picked[is_kept].sum(), count + is_kept.sum()
        return total / count


_example("one batch", (4, 2))
_example("a batch without labels", (5,), (0, 0), (2, 1))
_example("equal answers in batches of two", (4, 4), (4, 4))
_example("whole texts that label the first token", (8, 3), (8,), (2, 2, 2))
_example("one label each", (1,), (1, 1))


@accumulated.wrong(stage="align")
class Shift:
    def not_shifted(logits, labels):
        """The labels are not shifted: the logits at each place are scored with the token at the same place. Logits at
        place i belong to the label at place i + 1."""
        return logits, labels

    def shifted_twice(logits, labels):
        """The labels are shifted by two: the logits at each place are scored with the token after the next. Shift by
        one."""
        return logits[:, :-2], labels[:, 2:]

    def shifted_backwards(logits, labels):
        """The labels are shifted in the wrong direction: the logits at each place are scored with the token before it.
        The logits must be scored with the next token."""
        return logits[:, 1:], labels[:, :-1]

    def rolled(logits, labels):
        """The labels are rolled: the logits at the last place are scored with the first token of the text. Leave the
        last place out."""
        return logits, labels.roll(-1, dims=1)


@accumulated.wrong(stage="add")
class Sum:
    def hidden_ones_too(logits, labels):
        """You score labels of −100 as token 0. These labels are hidden: leave them out, as `cross_entropy` does by
        default."""
        return F.cross_entropy(logits.flatten(0, 1), labels.clamp(min=0).flatten(), reduction="sum")

    def without_the_log(logits, labels):
        """You add up probabilities, not their logs. The loss of a label is minus the log of its probability."""
        is_kept = labels != HIDDEN
        return -logits.softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0][is_kept].sum()

    def over_the_places(logits, labels):
        """The softmax runs over the places of the text. It must run over the vocabulary, the last axis."""
        is_kept = labels != HIDDEN
        return -logits.log_softmax(1).gather(-1, labels.clamp(min=0)[..., None])[..., 0][is_kept].sum()

    def softmax_twice(logits, labels):
        """You apply the softmax twice: `cross_entropy` expects logits, but you pass it probabilities."""
        return summed_loss(logits.softmax(-1), labels)

    def sign_forgotten(logits, labels):
        """The minus is missing: your loss is negative, and training would make the model worse. A loss is −log p."""
        return -summed_loss(logits, labels)


@accumulated.wrong(stage="count")
class Count:
    def all_places(labels):
        """You count all places, including those with −100. Count only the labels that are not −100."""
        return torch.tensor(labels.numel(), device=labels.device)

    def texts(labels):
        """You count texts, but the mean is over labels: a text with a long answer must count more."""
        return torch.tensor(len(labels), device=labels.device)

    def texts_that_ask(labels):
        """You count the texts that have a label other than −100. The mean is over labels, and a text can have many."""
        return (labels != HIDDEN).any(dim=1).sum()


@accumulated.wrong(stage="divide")
class Division:
    def mean_of_means(sums, counts):
        """You average the means of the batches. A batch with one label then weighs as much as a batch with seven. Add
        up the losses, add up the numbers of labels, and divide once."""
        means = [total / count for total, count in zip(sums, counts) if count]
        return sum(means) / len(means)

    def mean_of_means_with_empty_ones(sums, counts):
        """You average the means of the batches. A batch with one label then weighs as much as a batch with seven, and
        the mean of a batch without a label is 0 / 0. Add up the losses, add up the numbers of labels, and divide
        once."""
        return sum(total / count for total, count in zip(sums, counts)) / len(sums)

    def means_added(sums, counts):
        """You add up the means of the batches, so the loss grows with the number of batches. Add up the losses, add up
        the numbers of labels, and divide once."""
        return sum(total / count.clamp(min=1) for total, count in zip(sums, counts))

    def not_divided(sums, counts):
        """You add up the losses but never divide. The size of your gradient then depends on the number of labels."""
        return sum(sums)

    def by_the_batches(sums, counts):
        """You divide the sum by the number of batches. Divide by the number of all labels that are not −100."""
        return sum(sums) / len(sums)

    def by_the_last_count(sums, counts):
        """You divide the sum of all losses by the number of labels in the last batch. Does the loop overwrite the
        count?"""
        return sum(sums) / counts[-1]

    def by_the_first_count(sums, counts):
        """You divide the sum of all losses by the number of labels in the first batch. Add up the numbers of labels of
        all batches."""
        return sum(sums) / counts[0]

    def last_batch_alone(sums, counts):
        """You return only the loss of the last batch. Does the loop overwrite the sum? Add up over all batches."""
        return sums[-1] / counts[-1]

    def first_batch_alone(sums, counts):
        """You return only the loss of the first batch. Does your loop end after its first iteration?"""
        return sums[0] / counts[0]


@accumulated.wrong
class WrongAnswers:
    def counted_before_the_shift(model, batches):
        """You count the labels before the shift. The count then includes the first label of a whole text, which no
        place predicts."""
        sums = [summed_loss(*align_with_next_tokens(model(tokens), labels)) for tokens, labels in batches]
        return overall_mean(sums, [count_labels(labels) for _, labels in batches])

    def detached(model, batches):
        """The loss is right, but it is detached from the graph: no gradient flows through it. Does `.item()` or `float`
        turn it into a number? Training needs the tensor."""
        return accumulated.reference(model, batches).detach()

    def a_number(model, batches):
        """You return a Python number, which has no gradient for training. Return the tensor."""
        return float(accumulated.reference(model, batches))
