"""Properties of training and evaluation mode, and of half precision."""

import torch

from ..trial import Fails, NotTried, first_line, format_number, multiply_weights
from .registry import audit_property


def remove_noise(model):
    """Set every rate of dropout, jitter or noise to 0; the attributes are recognized by their names."""
    for module in model.modules():
        for name, value in vars(module).items():
            is_noise_rate = name == "p" or any(word in name for word in ("drop", "jitter", "noise"))
            if is_noise_rate and isinstance(value, float) and 0 < value < 1:
                setattr(module, name, 0.0)


@audit_property("train() = eval() without dropout")
def modes_agree(trial):
    """Is the output the same in training mode and in evaluation mode when all dropout is 0?"""
    training = trial.modified_copy(remove_noise).train()
    output = trial.run(trial.x, training)
    if not torch.equal(output, trial.run(trial.x, training)):
        raise NotTried("in training mode the outputs are random, even when all dropout is 0")
    trial.require_same(
        output, trial.run(trial.x, trial.modified_copy(remove_noise)), "train() and eval(), all dropout 0"
    )


@audit_property("training noise survives an evaluation", needs="outputs")
def noise_after_evaluation(trial):
    """Is dropout after an evaluation as strong as before the evaluation?"""
    model = trial.fresh_copy().train()

    def measure_noise():
        return sum(float((trial.run(trial.x, model) - trial.run(trial.x, model)).abs().mean()) for _ in range(6)) / 6

    noise_before = measure_noise()
    if noise_before <= trial.tolerance * trial.output_std:
        raise NotTried("there is no noise in training mode")
    trial.run(trial.x, model.eval())
    model.train()
    noise_after = measure_noise()
    if not 0.4 < noise_after / noise_before < 2.5:
        before_text, after_text = format_number(noise_before), format_number(noise_after)
        raise Fails(f"two passes differ by {before_text} before an evaluation, by {after_text} after it")


@audit_property("half precision, near and far")
def bfloat16_stays_accurate(trial):
    """Is bfloat16 as accurate at the end of a long sequence as near its beginning?"""
    length = trial.options.long
    if not length:
        raise NotTried("pass `long=`, a length that the model accepts, such as 600")
    trial.require_per_token()
    trial.require_length(length)

    def enlarge_and_round(model):
        multiply_weights(3.0)(model.float())  # with large weights, a wrong position changes the attention weights a lot
        for parameter in model.parameters():
            parameter.data = parameter.data.bfloat16().float()  # so that both models have the same weights

    x = trial.draw(1, length)
    float32_model, bfloat16_model = (
        trial.modified_copy(enlarge_and_round).to(dtype) for dtype in (torch.float32, torch.bfloat16)
    )
    takes_vectors = trial.vocab_size is None
    x = x.bfloat16() if takes_vectors else x
    try:
        bfloat16_output = trial.run(x, bfloat16_model).float()
    except Exception as error:
        raise NotTried(f"the model does not run in bfloat16: {first_line(error)}") from None
    errors = (bfloat16_output - trial.run(x.float() if takes_vectors else x, float32_model)).abs().mean(-1)[0]
    near_error, far_error = float(errors[8:72].mean()), float(errors[-64:].mean())
    near_text, far_text = format_number(near_error), format_number(far_error)
    if not far_error < 4 * near_error:
        raise Fails(f"bfloat16 is off by {near_text} near the beginning and by {far_text} at {length} tokens")
    return f"off by {near_text} near the beginning, by {far_text} at {length} tokens"
