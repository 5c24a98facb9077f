"""Slips that any function of tensors can have: a result in float32, whatever went in, or one without gradients."""

import torch

from .probes import each_tensor


def left_in_float32(exercise):
    """The numbers {are right, and they} come in float32 whatever the dtype of the tensors that went in: of numbers in
    float64, half of the digits are lost. A `.float()` does that, and so does a tensor made by `torch.zeros` or
    `torch.empty` without a dtype, into which the result is written. Which line brings float32 in?"""

    def in_float32(*arguments):
        return each_tensor(_as_float32, exercise.reference(*arguments))

    in_float32.__doc__ = left_in_float32.__doc__
    exercise.mistake(in_float32)


def _as_float32(tensor):
    return tensor.to(torch.float32) if tensor.is_floating_point() else tensor


def cut_off(exercise):
    """The result {is right, and it} has lost its connection to what it was computed from. A model with such a function
    runs, and nothing in front of it learns. Does every step stay with PyTorch's tensors, as they are?"""

    def cut_off_from_gradients(*arguments):
        return each_tensor(torch.Tensor.detach, exercise.reference(*arguments))

    cut_off_from_gradients.__doc__ = cut_off.__doc__
    exercise.mistake(cut_off_from_gradients)
