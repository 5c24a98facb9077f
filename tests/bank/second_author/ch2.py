"""A second author: answers to chapter 2's exercises."""

from itertools import zip_longest

import numpy as np
import torch
from torch.nn import functional as F

import transformer_lab as tl

from .. import right, wrong

E = tl.checks


def broadcast_shape(a, b):
    """Exercise 2.1, as its author calls it later."""
    return tuple(np.broadcast_shapes(a, b))


# broadcast_shape


@wrong(
    E.broadcast_shape,
    "The shapes are lined up at their first axes instead of at their last: (2, 3) and (2,) pass, (2, 3) and "
    "(3,) raise.",
)
def _(a, b):
    shape = []
    for m, n in zip_longest(a, b, fillvalue=1):
        if m != n and m != 1 and n != 1:
            raise ValueError(f"{a} and {b} do not fit")
        shape.append(n if m == 1 else m)
    return tuple(shape)


@wrong(
    E.broadcast_shape,
    "The larger of the two sizes is taken, which is wrong where a 1 meets a 0: (3, 1) and (0,) give (3, 1) instead of "
    "(3, 0).",
)
def _(a, b):
    n = max(len(a), len(b))
    a = (1,) * (n - len(a)) + tuple(a)
    b = (1,) * (n - len(b)) + tuple(b)
    for x, y in zip(a, b):
        if x != y and 1 not in (x, y):
            raise ValueError("shapes do not fit")
    return tuple(max(x, y) for x, y in zip(a, b))


@wrong(
    E.broadcast_shape,
    "PyTorch's own function returns the right shapes, but for shapes that do not fit it raises RuntimeError and not "
    "ValueError.",
)
def _(a, b):
    return tuple(torch.broadcast_shapes(a, b))


@right(E.broadcast_shape)
def _(a, b):
    return tuple(np.broadcast_shapes(a, b))


# matmul_shape


@wrong(
    E.matmul_shape,
    "The axis that a vector was given for the product is never taken away again: (3, 4) and (4,) give (3, 1), two "
    "vectors give (1, 1).",
)
def _(a, b):
    if len(a) == 1:
        a = (1, *a)
    if len(b) == 1:
        b = (*b, 1)
    if a[-1] != b[-2]:
        raise ValueError(f"inner sizes {a[-1]} and {b[-2]} differ")
    return (*broadcast_shape(a[:-2], b[:-2]), a[-2], b[-1])


@wrong(
    E.matmul_shape,
    "The batch axes do not broadcast: those of the argument with more axes are taken as they are. (6, 1, 3, 4) and "
    "(5, 4, 2) give (6, 1, 3, 2), and batch axes that do not fit do not raise.",
)
def _(a, b):
    left = (1, *a) if len(a) == 1 else a
    right_ = (*b, 1) if len(b) == 1 else b
    if left[-1] != right_[-2]:
        raise ValueError("inner sizes differ")
    shape = left[:-2] if len(left) >= len(right_) else right_[:-2]
    if len(a) > 1:
        shape += (left[-2],)
    if len(b) > 1:
        shape += (right_[-1],)
    return tuple(shape)


@wrong(
    E.matmul_shape,
    "An inner size of 1 is let through, as if inner sizes could broadcast: (3, 1) and (4, 2) give (3, 2) instead of "
    "raising ValueError.",
)
def _(a, b):
    left = (1, *a) if len(a) == 1 else a
    other = (*b, 1) if len(b) == 1 else b
    broadcast_shape((left[-1],), (other[-2],))  # raises where they do not fit
    shape = list(broadcast_shape(left[:-2], other[:-2]))
    if len(a) > 1:
        shape.append(left[-2])
    if len(b) > 1:
        shape.append(other[-1])
    return tuple(shape)


# all_dot_products


@wrong(
    E.all_dot_products,
    "transpose(1, 2) counts from the front: right with exactly one leading axis, but with two it swaps the second "
    "leading axis with k_len, and with none it raises.",
)
def _(query, key):
    return query @ key.transpose(1, 2)


@wrong(
    E.all_dot_products,
    "tensordot does not match the leading axes with each other: every query of every batch entry meets every key of "
    "every batch entry, and the result has the leading axes twice. Right only without leading axes.",
)
def _(query, key):
    return torch.tensordot(query, key, dims=([-1], [-1]))


@wrong(
    E.all_dot_products,
    "The dot products are divided by the root of d_head, as in attention; asked are the plain dot products.",
)
def _(query, key):
    d_head = query.size(-1)
    return torch.matmul(query, key.transpose(-2, -1)) / d_head**0.5


@right(E.all_dot_products)
def _(query, key):
    return (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1)


# normalize_rows


@wrong(
    E.normalize_rows,
    "No keepdim: the sums stand under the columns. For a square matrix each column is divided by another row's "
    "sum; for other shapes it mostly raises.",
)
def _(x):
    return x / x.sum(dim=-1)


@wrong(
    E.normalize_rows,
    "The division is in place: the numbers returned are right, but it is x itself and not a new tensor, and "
    "the caller's x is changed.",
)
def _(x):
    x /= x.sum(-1, keepdim=True)
    return x


@wrong(
    E.normalize_rows,
    "F.normalize with p=1 divides by the sum of the absolute values, which is another number as soon as a row holds "
    "negative numbers; rows then do not sum to one.",
)
def _(x):
    return F.normalize(x, p=1, dim=-1)


# linear


@wrong(
    E.linear,
    "The weight is not transposed: raises where d_in and d_out differ, and multiplies by the transposed matrix where "
    "they are equal.",
)
def _(x, weight, bias):
    return torch.matmul(x, weight) + bias


@wrong(
    E.linear,
    "addmm takes matrices only: right for x with two axes, raises for one axis or three and more.",
)
def _(x, weight, bias):
    return torch.addmm(bias, x, weight.t())


@wrong(
    E.linear,
    "The textbook's W x + b with x as a column: right for a single vector only. With axes in front, the weight meets "
    "the second-to-last axis of x instead of the last, and it mostly raises.",
)
def _(x, weight, bias):
    return weight @ x + bias


@right(E.linear)
def _(x, weight, bias):
    return torch.stack([(x * row).sum(-1) + b for row, b in zip(weight, bias)], dim=-1)


# mend_cosines


@wrong(
    E.mend_cosines,
    "The norms of the keys are now taken along the right axis, but without keepdim: they lie along d_head, so each "
    "column is divided by another key's length, and it raises where k_len and d_head differ.",
)
def _(query, key):
    query = query / query.norm(dim=-1, keepdim=True)
    key = key / key.norm(dim=1)
    return query @ key.T


@wrong(
    E.mend_cosines,
    "norm() without an axis is one number for the whole matrix, so all dot products are divided by the same number "
    "instead of by the lengths of their own two vectors. Right for one query and one key only.",
)
def _(query, key):
    return (query @ key.T) / (query.norm() * key.norm())


@wrong(
    E.mend_cosines,
    "cosine_similarity compares query i with key i only: one cosine for each pair of rows, shape (q_len,), no table; "
    "raises where the numbers of queries and keys differ.",
)
def _(query, key):
    return F.cosine_similarity(query, key, dim=-1)
