"""A second author: answers to chapter 1's exercises."""

import math
import operator

import numpy as np
import torch

import transformer_lab as tl

from .. import right, wrong

E = tl.checks


# flat_offset


@wrong(
    E.flat_offset,
    "Written for exactly two axes: with one axis or none it raises IndexError, with three or more the further axes are "
    "left out.",
)
def _(index, strides):
    return index[0] * strides[0] + index[1] * strides[1]


@wrong(
    E.flat_offset,
    "The strides are treated as if they were the sizes of the axes (Horner's scheme, offset * stride + i): the first "
    "stride has no effect at all. (1, 2) with (3, 1) gives 3 instead of 5.",
)
def _(index, strides):
    offset = 0
    for i, s in zip(index, strides):
        offset = offset * s + i
    return offset


@wrong(
    E.flat_offset,
    "The sum itself is right, but it is returned as a tensor and not as an int (for empty tuples a float tensor).",
)
def _(index, strides):
    return (torch.tensor(index) * torch.tensor(strides)).sum()


@right(E.flat_offset)
def _(index, strides):
    return sum(map(operator.mul, index, strides))


# strides_of


@wrong(
    E.strides_of,
    "The products are of the sizes to the left instead of those to the right: column-major (Fortran) order, (1, 2, 6) "
    "for the shape (2, 3, 4).",
)
def _(shape):
    return tuple(math.prod(shape[:i]) for i in range(len(shape)))


@wrong(
    E.strides_of,
    "Off by one: each axis's own size is in its product, so (2, 3, 4) gives (24, 12, 4) and the last stride is not 1.",
)
def _(shape):
    strides = []
    step = 1
    for size in reversed(shape):
        step *= size
        strides.append(step)
    return tuple(reversed(strides))


@wrong(
    E.strides_of,
    "NumPy's strides count bytes, not elements: for float32 each stride is four times too large.",
)
def _(shape):
    return np.empty(shape, dtype=np.float32).strides


# transposed


@wrong(
    E.transposed,
    "The strides are worked out from the shape, as if x were contiguous, and not taken from x.stride(). Right "
    "for a fresh tensor, wrong numbers for one that is transposed already or for a slice.",
)
def _(x, dim0, dim1):
    sizes = list(x.shape)
    strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
    strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
    return x.as_strided(sizes, strides)


@wrong(
    E.transposed,
    "transpose_ with the underscore swaps the axes of x itself, in place: the result is right, but the caller's x has "
    "changed its shape.",
)
def _(x, dim0, dim1):
    return x.transpose_(dim0, dim1)


@wrong(
    E.transposed,
    "The storage offset is given as 0, so for a slice that begins in the middle of its storage the view begins at the "
    "wrong element.",
)
def _(x, dim0, dim1):
    sizes, strides = list(x.shape), list(x.stride())
    sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
    strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
    return torch.as_strided(x, sizes, strides, 0)


@right(E.transposed)
def _(x, dim0, dim1):
    dims = list(range(x.dim()))
    dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return x.permute(dims)


# merge_last_two


@wrong(
    E.merge_last_two,
    "view never copies: where the two axes do not form one even walk (for example after a transpose) it raises a "
    "RuntimeError instead of returning a copy.",
)
def _(x):
    return x.view(*x.shape[:-2], -1)


@wrong(
    E.merge_last_two,
    "contiguous() copies every tensor that is not contiguous, also where a view is possible (for example a slice along "
    "a front axis, whose last two axes still lie evenly). The numbers are right, but a write into the result does not "
    "show in x.",
)
def _(x):
    *front, m, n = x.shape
    return x.contiguous().view(*front, m * n)


@wrong(
    E.merge_last_two,
    "flatten(1) merges everything after the first axis. That is right for three axes only: with two axes nothing is "
    "merged, with four or more too many are.",
)
def _(x):
    return x.flatten(1)


# mend_columns


@wrong(
    E.mend_columns,
    "Each stretch is a row, and the rows are never turned into columns: the shape is (batch, seq), the "
    "transpose of what is asked.",
)
def _(tokens, batch):
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(batch, seq)


@wrong(
    E.mend_columns,
    "The tokens left over are not dropped, so the reshape raises whenever batch does not divide the number of tokens.",
)
def _(tokens, batch):
    return tokens.reshape(batch, -1).T


@wrong(
    E.mend_columns,
    "The tokens that do not fill a row are dropped at the beginning of the text instead of at its end, so all columns "
    "are shifted when there is a remainder.",
)
def _(tokens, batch):
    tokens = tokens[len(tokens) % batch :]
    return tokens.reshape(batch, -1).t()


@right(E.mend_columns)
def _(tokens, batch):
    seq = len(tokens) // batch
    return torch.stack([tokens[i * seq : (i + 1) * seq] for i in range(batch)], dim=-1)
