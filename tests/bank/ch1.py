"""Answers to assignment 1."""

import math

import torch

from transformer_lab.checks import flat_offset, mend_columns, merge_last_two, strides_of, transposed

from . import right, wrong


@wrong(flat_offset, "The strides are added up; the index only decides which of them count.")
def _(index, strides):
    place = 0
    for i, stride in zip(index, strides):
        if i > 0:
            place += stride
    return place


@wrong(flat_offset, "The place is multiplied by each step instead of adding it up from zero.")
def _(index, strides):
    place = 1
    for i, stride in zip(index, strides):
        place *= i * stride
    return place


@wrong(flat_offset, "It counts from one: the element at index (0, 0) lands at place 1.")
def _(index, strides):
    return sum(i * s for i, s in zip(index, strides)) + 1


@wrong(flat_offset, "The last axis is left out: the loop stops one axis too early.")
def _(index, strides):
    place = 0
    for k in range(len(index) - 1):
        place += index[k] * strides[k]
    return place


@right(flat_offset)
def _(index, strides):
    return math.sumprod(index, strides) if hasattr(math, "sumprod") else sum(map(int.__mul__, index, strides))


@wrong(strides_of, "The strides come out from last to first: the list is not reversed at the end.")
def _(shape):
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(strides)


@wrong(strides_of, "The axis's own size is in its stride: the slice begins one axis too early.")
def _(shape):
    return tuple(math.prod(shape[axis:]) for axis in range(len(shape)))


@wrong(strides_of, "The strides are in bytes: each is multiplied by the four bytes of a float32.")
def _(shape):
    step = 4
    strides = ()
    for size in shape[::-1]:
        strides = (step,) + strides
        step *= size
    return strides


@wrong(strides_of, "The sizes to the right are added up, not multiplied.")
def _(shape):
    strides = []
    for axis in range(len(shape)):
        step = sum(shape[axis + 1 :])
        strides.append(step if step else 1)
    return tuple(strides)


@right(strides_of)
def _(shape):
    return torch.empty(shape, device="meta").stride()


@wrong(transposed, "Only the sizes are swapped; the strides stay as they were.")
def _(x, dim0, dim1):
    sizes = list(x.shape)
    sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
    return x.as_strided(sizes, x.stride())


@wrong(transposed, "The result is a copy: contiguous() at the end.")
def _(x, dim0, dim1):
    return x.transpose(dim0, dim1).contiguous()


@wrong(
    transposed, "The strides are computed anew from the swapped shape, as for a fresh tensor, instead of taken from x."
)
def _(x, dim0, dim1):
    sizes = list(x.shape)
    sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= size
    return x.as_strided(sizes, strides)


@wrong(transposed, "x.permute is given only the two axes, which PyTorch refuses for more than two.")
def _(x, dim0, dim1):
    return x.permute(dim1, dim0)


@right(transposed)
def _(x, dim0, dim1):
    order = list(range(x.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return x.permute(order)


@right(transposed)
def _(x, dim0, dim1):
    dim0, dim1 = dim0 % x.dim(), dim1 % x.dim()
    other = {dim0: dim1, dim1: dim0}
    sizes = [x.size(other.get(d, d)) for d in range(x.dim())]
    strides = [x.stride(other.get(d, d)) for d in range(x.dim())]
    return torch.as_strided(x, sizes, strides, x.storage_offset())


@wrong(merge_last_two, "view is used, which refuses tensors whose axes do not form one even walk.")
def _(x):
    return x.view(*x.shape[:-2], -1)


@wrong(merge_last_two, "All axes but the first are merged.")
def _(x):
    return x.flatten(1)


@wrong(merge_last_two, "The last two axes are transposed before they are merged, so it reads down the columns.")
def _(x):
    return x.transpose(-1, -2).reshape(*x.shape[:-2], -1)


@wrong(merge_last_two, "The sizes of the last two axes are added, not multiplied.")
def _(x):
    return x.reshape(*x.shape[:-2], x.shape[-2] + x.shape[-1])


@right(merge_last_two)
def _(x):
    return x.flatten(start_dim=-2)


@wrong(mend_columns, "The program as given: reshape to (seq, batch) puts tokens that follow one another side by side.")
def _(tokens, batch):
    seq = len(tokens) // batch
    return tokens[: seq * batch].reshape(seq, batch)


@wrong(mend_columns, "The tokens that do not fill a row are not dropped, so view refuses.")
def _(tokens, batch):
    return tokens.view(batch, len(tokens) // batch).t()


@wrong(
    mend_columns,
    "It takes every batch-th token for a column, with a stride, so the columns are no stretches of the text.",
)
def _(tokens, batch):
    seq = len(tokens) // batch
    tokens = tokens[: seq * batch]
    return torch.stack([tokens[b::batch] for b in range(batch)], dim=1)


@wrong(mend_columns, "The result of the transpose is thrown away, so rows and columns are not swapped.")
def _(tokens, batch):
    seq = len(tokens) // batch
    columns = tokens[: seq * batch].reshape(batch, seq)
    columns.transpose(0, 1)
    return columns


@right(mend_columns)
def _(tokens, batch):
    seq = tokens.numel() // batch
    return torch.stack([tokens[b * seq : (b + 1) * seq] for b in range(batch)], dim=-1)
