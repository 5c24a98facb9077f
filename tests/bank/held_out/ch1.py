"""Held out: answers to assignment 1."""

import math

import torch

from transformer_lab.checks import flat_offset, mend_columns, merge_last_two, strides_of, transposed

from .. import right, wrong


@wrong(flat_offset, "The return stands inside the loop, so only the first axis counts.")
def _(index, strides):
    place = 0
    for i, stride in zip(index, strides):
        place += i * stride
        return place
    return place


@wrong(flat_offset, "The strides are walked through from the last to the first, the index from the first to the last.")
def _(index, strides):
    return sum(i * s for i, s in zip(index, reversed(strides)))


@wrong(flat_offset, "It is written for exactly two axes, and unpacks the index into row and column.")
def _(index, strides):
    row, column = index
    return row * strides[0] + column * strides[1]


@wrong(flat_offset, "The stride of the last axis is taken to be 1, whatever it is.")
def _(index, strides):
    if not index:
        return 0
    return sum(i * s for i, s in zip(index[:-1], strides[:-1])) + index[-1]


@right(flat_offset)
def _(index, strides):
    place = 0
    for axis in reversed(range(len(strides))):
        for _ in range(index[axis]):
            place += strides[axis]
    return place


@wrong(strides_of, "Each stride is the product of the sizes to its left, not to its right.")
def _(shape):
    strides = []
    for axis in range(len(shape)):
        strides.append(math.prod(shape[:axis]))
    return tuple(strides)


@wrong(strides_of, "Each stride is the size of the next axis alone, not the product of all to the right.")
def _(shape):
    return tuple(shape[1:]) + (1,)


@wrong(strides_of, "Off by one: the stride to the right is multiplied by the axis's own size, not by the next one's.")
def _(shape):
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i]
    return tuple(strides)


@wrong(strides_of, "A single number with shape () gets one stride, where it has none.")
def _(shape):
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides)


@right(strides_of)
def _(shape):
    numbers, strides = math.prod(shape), []
    for size in shape:
        numbers //= size
        strides.append(numbers)
    return tuple(strides)


@wrong(transposed, "reshape to the swapped sizes keeps the reading order, so no number changes its index as it should.")
def _(x, dim0, dim1):
    sizes = list(x.shape)
    sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
    return x.reshape(sizes)


@wrong(transposed, "dim0 and dim1 are not used: it always swaps the last two axes.")
def _(x, dim0, dim1):
    return x.mT


@wrong(transposed, "The two entries are not swapped: the first is overwritten before it is saved.")
def _(x, dim0, dim1):
    sizes, strides = list(x.shape), list(x.stride())
    sizes[dim0] = sizes[dim1]
    sizes[dim1] = sizes[dim0]
    strides[dim0] = strides[dim1]
    strides[dim1] = strides[dim0]
    return x.as_strided(sizes, strides)


@wrong(transposed, "x itself is changed: transpose_ works in place.")
def _(x, dim0, dim1):
    return x.transpose_(dim0, dim1)


@right(transposed)
def _(x, dim0, dim1):
    return torch.movedim(x, (dim0, dim1), (dim1, dim0))


@wrong(merge_last_two, "The first two axes are merged, not the last two.")
def _(x):
    return x.flatten(0, 1)


@wrong(merge_last_two, "The result is always a copy, even where a view is possible.")
def _(x):
    return x.contiguous().clone().view(*x.shape[:-2], x.shape[-2] * x.shape[-1])


@wrong(merge_last_two, "The sizes are hard-coded for four axes: batch, seq, heads and d_head.")
def _(x):
    b, s, h, d = x.shape
    return x.reshape(b, s, h * d)


@wrong(merge_last_two, "It stacks a list of rows with torch.cat: the numbers are right, but always copied.")
def _(x):
    return torch.cat([x[..., i, :] for i in range(x.shape[-2])], dim=-1)


@right(merge_last_two)
def _(x):
    *front, m, n = x.size()
    try:
        return x.view(front + [m * n])
    except RuntimeError:
        return x.contiguous().view(front + [m * n])


@wrong(mend_columns, "Rows and columns are not swapped at the end: the result has shape (batch, seq).")
def _(tokens, batch):
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(batch, seq)


@wrong(mend_columns, "It drops the tokens at the beginning of the text, not those at the end.")
def _(tokens, batch):
    seq = len(tokens) // batch
    return tokens[-seq * batch :].view(batch, seq).t()


@wrong(
    mend_columns,
    "torch.chunk cuts before the rest is dropped: the columns are one token too long, and the last is shorter.",
)
def _(tokens, batch):
    return torch.stack(torch.chunk(tokens, batch), dim=1)


@wrong(mend_columns, "The tokens are turned into floats.")
def _(tokens, batch):
    seq = len(tokens) // batch
    out = torch.zeros(seq, batch)
    for b in range(batch):
        out[:, b] = tokens[b * seq : (b + 1) * seq]
    return out


@right(mend_columns)
def _(tokens, batch):
    seq = tokens.size(0) // batch
    place = torch.arange(seq).unsqueeze(1) + seq * torch.arange(batch)
    return tokens[place]
