"""Bugs in the loss and in its labels."""

import torch.nn.functional as F

from .bug import choose_model, published
from .small_model import SmallModel, accumulate, audit_arguments, collate


@published(
    "Accumulated gradients are a mean of means",
    "huggingface/transformers",
    34191,
    date="October 2024",
    section="7.9",
    found_by="small batches = one big",
    symptoms="gradient accumulation gives a different loss than a big batch",
    story=(
        "Users saw that accumulation changed the loss. The library's authors explained the mistake in an article and "
        "repaired it; the first repairs were corrected twice."
    ),
    repair="Divide the sum of all losses by the number of all labels.",
)
def mean_of_means(broken):
    """Accumulated gradients are the mean of the small batches' means."""

    def average_batch_means(model, batches):
        for tokens, labels in batches:
            scores = model(tokens)[:, :-1].flatten(0, 1)
            (F.cross_entropy(scores, labels[:, 1:].flatten()) / len(batches)).backward()

    return audit_arguments(SmallModel(), accumulate=average_batch_means if broken else accumulate)


@published(
    "Labels shifted twice",
    "huggingface/transformers",
    37830,
    date="April 2025",
    section="6.14",
    found_by="the loss asks for the next token",
    symptoms="the model predicts the token after the next; labels are shifted by the model and by the loss",
    story=(
        "A contributor noticed that the logits were shifted and then passed to a loss function that shifts them again, "
        "and called the result next-next-token prediction. By July 2026 the same pattern had been fixed in four more "
        "models."
    ),
    repair="Shift once.",
)
def shifted_twice(broken):
    """The model shifts the labels, and the loss shifts them again."""

    class Mistake(SmallModel):
        def loss(self, tokens):
            scores, labels = self(tokens)[:, :-1], tokens[:, 1:]
            return F.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())

    return audit_arguments(choose_model(broken, Mistake))


@published(
    "End of the text hidden from the loss",
    "huggingface/transformers",
    23530,
    date="May 2023",
    section="10.7",
    found_by="every real token is a label",
    symptoms="the model never stops; pad_token = eos_token",
    story=(
        "The padding token was set to the end token, as in a tutorial, so the label of every end token was hidden. "
        "Models trained in this way rarely stopped writing, as users of a second library reported (trl#976)."
    ),
    repair="Hide only the labels that follow the first end token.",
)
def padding_is_the_end(broken):
    """The padding token is the end token, so the label of every end token is hidden from the loss."""

    def collate_without_end(sentences):
        tokens, _ = collate(sentences)
        return tokens, tokens.masked_fill(tokens == 0, -100)

    return audit_arguments(SmallModel(), collate=collate_without_end if broken else collate)
