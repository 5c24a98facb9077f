"""Properties of the loss and of its labels."""

import torch
import torch.nn.functional as F

from ..trial import Fails, NotTried, WrongForm, format_number, multiply_weights
from .registry import audit_property


@audit_property("the loss asks for the next token")
def loss_predicts_next_token(trial):
    """Is the loss the mean over all tokens but the first, each predicted by the output at the previous token?"""
    loss = trial.adapter("loss")
    trial.require_tokens()
    x, model = trial.draw(3, trial.length), trial.modified_copy(multiply_weights(5.0))
    with torch.no_grad():
        loss_value = loss(model, x)
        scores = trial.run(x, model).log_softmax(-1)
    if not isinstance(loss_value, torch.Tensor) or loss_value.numel() != 1:
        raise WrongForm(f"loss must return one number, a tensor of shape (), got {type(loss_value).__name__}")
    actual, length = float(loss_value), trial.length
    loss_by_shift = {s: -float(scores[:, : length - s].gather(-1, x[:, s:, None]).mean()) for s in (0, 1, 2)}
    matching_shifts = [s for s, value in loss_by_shift.items() if abs(value - actual) <= 1e-4 * abs(actual)]
    if len(matching_shifts) > 1:
        raise NotTried("the losses for labels shifted by 0, 1 and 2 tokens are too similar to distinguish")
    if 1 not in matching_shifts:
        factor = format_number(actual / loss_by_shift[1])
        mismatch = f"; {SHIFTS[matching_shifts[0]]}" if matching_shifts else f"; the ratio is {factor}"
        raise Fails(f"the loss is {actual:.4f}, but the next token's loss is {loss_by_shift[1]:.4f}{mismatch}")


SHIFTS = {
    0: "the result equals the loss of the token itself: are the labels not shifted?",
    2: "the result equals the loss of the token after the next: are the labels shifted twice?",
}


@audit_property("small batches = one big")
def accumulation_equals_batch(trial):
    """Does accumulating small batches give the same gradient as one batch that contains them all?"""
    accumulate = trial.adapter("accumulate")
    trial.require_tokens()
    x = trial.draw(4, trial.length)
    labels = x.clone()
    labels[1:, 3:] = -100  # one long and three short answers: the mean of the batches' means is not the overall mean
    gradients = []
    for in_one_batch in (True, False):
        model = trial.fresh_copy().eval()
        if in_one_batch:
            F.cross_entropy(trial.forward(x, model)[:, :-1].flatten(0, 1), labels[:, 1:].flatten()).backward()
        else:
            accumulate(model, [(x[:1], labels[:1]), (x[1:], labels[1:])])
        parameter_gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
        gradients.append(torch.cat([gradient.flatten() for gradient in parameter_gradients]))
    if float((gradients[1] - gradients[0]).norm()) > 10 * trial.tolerance * float(gradients[0].norm()):
        ratio, cosine = gradients[1].norm() / gradients[0].norm(), F.cosine_similarity(*gradients, dim=0)
        raise Fails(f"gradients differ: the ratio of norms is {float(ratio):.3f}, the cosine is {float(cosine):.3f}")


@audit_property("every real token is a label", needs="nothing")
def labels_are_complete(trial):
    """Do the labels contain every token of a sentence, including its end, and no padding?"""
    sentences = [[5, 6, 7, trial.pad], [8, 9, trial.pad]]
    result = trial.adapter("collate")([list(sentence) for sentence in sentences])
    if not isinstance(result, tuple) or len(result) != 2 or not all(isinstance(part, torch.Tensor) for part in result):
        raise WrongForm("collate must return (tokens, labels), two tensors in a tuple")
    for row, (sentence, targets) in enumerate(zip(sentences, result[1].tolist())):
        targets = [label for label in targets if label != -100]
        if targets not in (sentence, sentence[1:]):
            raise Fails(f"sentence {row} is {sentence}, but its labels are {targets}")
