"""Answers to assignment 1, by a fourth author."""

import math

import torch

from transformer_lab.checks import flat_offset, mend_columns, merge_last_two, strides_of, transposed

from .. import right, wrong


@wrong(flat_offset, "It takes the last stride to be 1, and adds the last index as it is.")
def _(index, strides):
    if not index:
        return 0
    *front, last = index
    place = last
    for i, stride in zip(front, strides):
        place += i * stride
    return place


@wrong(flat_offset, "It returns a tensor instead of an int.")
def _(index, strides):
    return (torch.tensor(index) * torch.tensor(strides)).sum()


@wrong(strides_of, "It collects the strides from the right and does not turn them round at the end.")
def _(shape):
    step = 1
    strides = []
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(strides)


@wrong(strides_of, "Each stride is the size of the next axis alone, not the product of all sizes to the right.")
def _(shape):
    strides = []
    for axis in range(len(shape)):
        if axis == len(shape) - 1:
            strides.append(1)
        else:
            strides.append(shape[axis + 1])
    return tuple(strides)


@right(strides_of)
def _(shape):
    left = math.prod(shape)
    strides = ()
    for size in shape:
        left //= size
        strides += (left,)
    return strides


@wrong(transposed, "Axes counted from the end are not recognised: two of them change nothing, and one of them raises.")
def _(x, dim0, dim1):
    swap = {dim0: dim1, dim1: dim0}
    order = [swap.get(axis, axis) for axis in range(x.ndim)]
    return x.permute(order)


@wrong(transposed, "It reads from the start of the storage, also where x begins further on.")
def _(x, dim0, dim1):
    shape, stride = list(x.size()), list(x.stride())
    shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    stride[dim0], stride[dim1] = stride[dim1], stride[dim0]
    return torch.as_strided(x, shape, stride, storage_offset=0)


@wrong(merge_last_two, "It copies every tensor that is not contiguous, also where a view is possible.")
def _(x):
    *front, m, n = x.shape
    if x.is_contiguous():
        return x.view(*front, m * n)
    return x.contiguous().view(*front, m * n)


@wrong(merge_last_two, "It merges all axes in front into one as well, and adds one where there is none.")
def _(x):
    m, n = x.shape[-2:]
    return x.reshape(-1, m * n)


@right(merge_last_two)
def _(x):
    shape = x.shape[:-2] + (x.size(-2) * x.size(-1),)
    try:
        return x.view(shape)
    except RuntimeError:
        return x.clone(memory_format=torch.contiguous_format).view(shape)


@wrong(mend_columns, "It cuts the text into stretches of batch tokens, so the result is (batch, seq).")
def _(tokens, batch):
    seq = len(tokens) // batch
    stretches = tokens[: seq * batch].split(batch)
    return torch.stack(stretches, dim=1)


@wrong(mend_columns, "The tokens left over are dropped at the ends of the columns, not at the end of the text.")
def _(tokens, batch):
    seq = len(tokens) // batch
    parts = tokens.tensor_split(batch)
    return torch.stack([part[:seq] for part in parts], dim=1)
