"""Properties of training and evaluation mode, and of half precision."""

import torch

from ..trial import Fails, NotTried, first_line, multiply_weights, number
from .registry import audit_property


def without_noise(model):
    """Set every attribute that is called dropout, jitter or noise to 0."""
    for module in model.modules():
        for name, value in vars(module).items():
            noisy = name == "p" or any(word in name for word in ("drop", "jitter", "noise"))
            if noisy and isinstance(value, float) and 0 < value < 1:
                setattr(module, name, 0.0)


@audit_property("train() = eval() without dropout")
def modes(t):
    """Is training mode the same as evaluation mode when all dropout is 0?"""
    training = t.modified(without_noise).train()
    out = t.run(t.x, training)
    if not torch.equal(out, t.run(t.x, training)):
        raise NotTried("in training mode the outputs are random, even when all dropout is 0")
    t.require_same(out, t.run(t.x, t.modified(without_noise)), "train() and eval(), all dropout 0")


@audit_property("training noise survives an evaluation", needs="outputs")
def noise(t):
    """Is dropout after an evaluation as strong as before the evaluation?"""
    model = t.fresh_copy().train()

    def strength():
        return sum(float((t.run(t.x, model) - t.run(t.x, model)).abs().mean()) for _ in range(6)) / 6

    before = strength()
    if before <= t.tolerance * t.size:
        raise NotTried("there is no noise in training mode")
    t.run(t.x, model.eval())
    model.train()
    after = strength()
    if not 0.4 < after / before < 2.5:
        raise Fails(f"two passes differ by {number(before)} before an evaluation, by {number(after)} after it")


@audit_property("half precision, near and far")
def precision(t):
    """Is bfloat16 as accurate at the end of a long sequence as near its beginning?"""
    length = t.options.long
    if not length:
        raise NotTried("pass `long=`, such as 600: a length that the model takes")
    t.require_per_token()
    t.require_length(length)

    def enlarge_and_round(model):
        multiply_weights(3.0)(model.float())  # with large weights, a wrong position changes the attention weights a lot
        for parameter in model.parameters():
            parameter.data = parameter.data.bfloat16().float()  # so that both dtypes contain the same weights

    x = t.draw(1, length)
    full, half = (t.modified(enlarge_and_round).to(dtype) for dtype in (torch.float32, torch.bfloat16))
    vectors = t.n_tokens is None
    x = x.bfloat16() if vectors else x
    try:
        rounded = t.run(x, half).float()
    except Exception as error:
        raise NotTried(f"the model does not run in bfloat16: {first_line(error)}") from None
    off = (rounded - t.run(x.float() if vectors else x, full)).abs().mean(-1)[0]
    near, far = float(off[8:72].mean()), float(off[-64:].mean())
    if not far < 4 * near:
        raise Fails(f"bfloat16 is off by {number(near)} near the beginning and by {number(far)} at {length} tokens")
    return f"off by {number(near)} near the beginning, by {number(far)} at {length} tokens"
