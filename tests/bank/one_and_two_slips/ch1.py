"""Answers to assignment 1, with one slip and with two, by a fifth author."""

import math

import torch

from transformer_lab.checks import mend_columns, strides_of, transposed

from .. import right, wrong


@right(strides_of)
def _(shape):
    from itertools import accumulate
    from operator import mul

    return tuple(list(accumulate((1, *shape[:0:-1]), mul))[::-1]) if shape else ()


@right(strides_of)
def _(shape):
    def again(shape):
        if len(shape) < 2:
            return (1,) * len(shape)
        rest = again(shape[1:])
        return (rest[0] * shape[1], *rest)

    return again(shape)


@wrong(strides_of, "Each stride is the product of the sizes from its own axis on, its own included.")
def _(shape):
    out = []
    for i in range(len(shape)):
        out.append(math.prod(shape[i:]))
    return tuple(out)


@wrong(strides_of, "The first axis changes fastest.")
def _(shape):
    out, step = [], 1
    for n in shape:
        out.append(step)
        step *= n
    return tuple(out)


@wrong(strides_of, "The strides are floats, made by division.")
def _(shape):
    total = math.prod(shape)
    out = []
    for n in shape:
        total = total / n
        out.append(total)
    return tuple(out)


@wrong(strides_of, "The first axis changes fastest.", "The strides are floats.")
def _(shape):
    import numpy as np

    return tuple(float(v) for v in np.cumprod((1, *shape[:-1]))) if shape else ()


@wrong(strides_of, "The strides come out from the last axis to the first.", "Each includes the size of its own axis.")
def _(shape):
    out, step = [], 1
    for n in reversed(shape):
        step *= n
        out.append(step)
    return tuple(out)


@right(transposed)
def _(x, dim0, dim1):
    order = list(range(x.dim()))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return x.as_strided([x.size(i) for i in order], [x.stride(i) for i in order], x.storage_offset())


@right(transposed)
def _(x, dim0, dim1):
    return torch.swapaxes(x, dim0, dim1)


@wrong(transposed, "Only the sizes change places, not the strides.")
def _(x, dim0, dim1):
    sizes = list(x.shape)
    sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
    return x.as_strided(sizes, x.stride())


@wrong(transposed, "The view begins at the first number of the storage, whatever the offset of x.")
def _(x, dim0, dim1):
    sizes, strides = list(x.size()), list(x.stride())
    sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
    strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
    return x.as_strided(sizes, strides, 0)


@wrong(transposed, "The numbers are copied.")
def _(x, dim0, dim1):
    return x.transpose(dim0, dim1).contiguous()


@wrong(transposed, "Only the sizes change places.", "The view begins at the first number of the storage.")
def _(x, dim0, dim1):
    sizes = list(x.shape)
    sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
    return x.as_strided(sizes, x.stride(), 0)


@wrong(transposed, "The last two axes are swapped, whichever are asked for.", "The numbers are copied.")
def _(x, dim0, dim1):
    return x.transpose(-1, -2).clone()


@right(mend_columns)
def _(tokens, batch):
    seq = tokens.shape[0] // batch
    return torch.stack([tokens[b * seq : (b + 1) * seq] for b in range(batch)], dim=1)


@right(mend_columns)
def _(tokens, batch):
    seq = len(tokens) // batch
    at = torch.arange(seq, device=tokens.device)[:, None] + seq * torch.arange(batch, device=tokens.device)
    return tokens[at]


@wrong(mend_columns, "The stretches are rows, not columns.")
def _(tokens, batch):
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(batch, seq)


@wrong(mend_columns, "The tokens that do not fill a row are dropped at the beginning.")
def _(tokens, batch):
    seq = len(tokens) // batch
    return tokens[len(tokens) - seq * batch :].view(batch, seq).T


@wrong(mend_columns, "The given program: the text runs along the rows.")
def _(tokens, batch):
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(seq, batch)


@wrong(mend_columns, "The stretches are rows, not columns.", "Tokens are dropped at the beginning.")
def _(tokens, batch):
    seq = len(tokens) // batch
    return tokens[-seq * batch :].reshape(batch, seq)


@wrong(mend_columns, "The columns come in the opposite order.", "The tokens are floats.")
def _(tokens, batch):
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(batch, seq).T.flip(1).float()
