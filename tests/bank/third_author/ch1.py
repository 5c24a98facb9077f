"""Answers to assignment 1, by a third author."""

from itertools import accumulate
from operator import mul

import numpy as np
import torch

from transformer_lab.checks import flat_offset, mend_columns, merge_last_two, strides_of, transposed

from .. import right, wrong


@wrong(flat_offset, "Every index is multiplied by every stride, not only by the stride of its own axis.")
def _(index, strides):
    place = 0
    for i in index:
        for stride in strides:
            place += i * stride
    return place


@wrong(
    flat_offset, "The strides are used like sizes: the place so far is multiplied by each stride and the index added."
)
def _(index, strides):
    place = 0
    for i, n in zip(index, strides):
        place = place * n + i
    return place


@wrong(flat_offset, "The last stride is taken to be 1, whatever it is, and an empty index raises an IndexError.")
def _(index, strides):
    place = index[-1]  # the last axis is the fastest, one step is one place
    for axis in range(len(index) - 1):
        place += index[axis] * strides[axis]
    return place


@wrong(flat_offset, "The place is right but comes back as a tensor instead of an int (for empty tuples one of floats).")
def _(index, strides):
    return (torch.tensor(index) * torch.tensor(strides)).sum()


@right(flat_offset)
def _(index, strides):
    # let PyTorch say where the element would lie, without any memory for it
    sizes = tuple(i + 1 for i in index)
    return torch.empty_strided(sizes, strides, device="meta")[tuple(index)].storage_offset()


@wrong(strides_of, "Each stride is only the size of the next axis, not the product of all to its right; () gives (1,).")
def _(shape):
    return (*shape[1:], 1)


@wrong(strides_of, "The list begins with a 1 for the last axis, so that the empty shape gives (1,) instead of ().")
def _(shape):
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides)


@wrong(strides_of, "The strides count bytes instead of numbers: each is four times too large.")
def _(shape):
    return np.zeros(shape, dtype=np.float32).strides


@wrong(strides_of, "The product for each axis includes its own size: (2, 3, 4) gives (24, 12, 4).")
def _(shape):
    products = list(accumulate(reversed(shape), mul, initial=1))
    products.reverse()
    return tuple(products[:-1])


@right(strides_of)
def _(shape):
    left = 1
    for size in shape:
        left *= size
    strides = []
    for size in shape:
        left //= size  # how many numbers one step along this axis passes
        strides.append(left)
    return tuple(strides)


@wrong(transposed, "The axis dim0 is moved to dim1 and those between shift: right only for neighbouring axes.")
def _(x, dim0, dim1):
    return x.movedim(dim0, dim1)


@wrong(transposed, "The swap overwrites an entry before it is read: both axes get the size and the stride of dim1.")
def _(x, dim0, dim1):
    sizes = list(x.shape)
    strides = list(x.stride())
    sizes[dim0] = sizes[dim1]
    sizes[dim1] = sizes[dim0]
    strides[dim0] = strides[dim1]
    strides[dim1] = strides[dim0]
    return x.as_strided(sizes, strides)


@wrong(
    transposed,
    "An x that is not contiguous is copied first, and the copy is read with the strides of the original.",
)
def _(x, dim0, dim1):
    sizes, strides = list(x.size()), list(x.stride())
    sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
    strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
    flat = x.contiguous().view(-1)
    return flat.as_strided(sizes, strides)


@wrong(
    transposed, "Negative axes are not counted from the end: they match no axis, and the swap fails or does not happen."
)
def _(x, dim0, dim1):
    order = []
    for d in range(x.dim()):
        if d == dim0:
            order.append(dim1)
        elif d == dim1:
            order.append(dim0)
        else:
            order.append(d)
    return x.permute(order)


@right(transposed)
def _(x, dim0, dim1):
    return x.movedim((dim0, dim1), (dim1, dim0))


@wrong(merge_last_two, "The rows are concatenated, which always copies: the result is never a view of x.")
def _(x):
    return torch.cat(x.unbind(dim=-2), dim=-1)


@wrong(
    merge_last_two,
    "An x that is not contiguous is always copied, also where its last two axes could be merged in a view.",
)
def _(x):
    *front, m, n = x.shape
    return x.contiguous().view(*front, m * n)


@wrong(merge_last_two, "All axes in front are merged into one as well: the result always has two axes.")
def _(x):
    m, n = x.shape[-2:]
    return x.reshape(-1, m * n)


@wrong(
    merge_last_two,
    "It is always a view that goes on with the last stride: wrong (or an error) where the axes are no even walk.",
)
def _(x):
    sizes = (*x.shape[:-2], x.shape[-2] * x.shape[-1])
    strides = (*x.stride()[:-2], x.stride(-1))
    return x.as_strided(sizes, strides)


@right(merge_last_two)
def _(x):
    shape = (*x.shape[:-2], x.shape[-2] * x.shape[-1])
    try:
        return x.view(shape)
    except RuntimeError:  # no even walk
        return x.clone(memory_format=torch.contiguous_format).view(shape)


@wrong(mend_columns, "Column c begins at token c instead of token c * seq: the columns overlap.")
def _(tokens, batch):
    seq = len(tokens) // batch
    columns = [tokens[start : start + seq] for start in range(batch)]
    return torch.stack(columns, dim=1)


@wrong(mend_columns, "The tokens that are left over are dropped at the beginning of the text instead of at the end.")
def _(tokens, batch):
    seq = len(tokens) // batch
    tokens = tokens[len(tokens) - seq * batch :]
    return tokens.view(batch, seq).transpose(0, 1)


@wrong(
    mend_columns,
    "No tokens are dropped: if n is not a multiple of batch, the pieces do not fit together and it raises.",
)
def _(tokens, batch):
    return torch.stack(torch.chunk(tokens, batch), dim=1)


@wrong(
    mend_columns,
    "The text is cut into rows of batch tokens, transposed and cut again: no column is a stretch of the text.",
)
def _(tokens, batch):
    seq = len(tokens) // batch
    tokens = tokens[: seq * batch]
    return tokens.reshape(seq, batch).T.reshape(seq, batch)


@right(mend_columns)
def _(tokens, batch):
    seq = len(tokens) // batch
    starts = torch.arange(batch, device=tokens.device) * seq
    return tokens[torch.arange(seq, device=tokens.device)[:, None] + starts]
