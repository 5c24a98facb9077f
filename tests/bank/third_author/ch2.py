"""Answers to assignment 2, by a third author."""

from itertools import zip_longest

import torch
import torch.nn.functional as F

from transformer_lab.checks import (
    all_dot_products,
    broadcast_shape,
    linear,
    matmul_shape,
    mend_cosines,
    normalize_rows,
)

from .. import right, wrong


def own_broadcast_shape(a, b):
    """What the learner has written for 2.1, for use in 2.2."""
    shape = []
    for m, n in zip_longest(reversed(a), reversed(b), fillvalue=1):
        if m != n and m != 1 and n != 1:
            raise ValueError(f"{a} and {b} do not fit")
        shape.append(n if m == 1 else m)
    return tuple(reversed(shape))


@wrong(broadcast_shape, "The leading axes of the longer shape are lost: zip stops where the shorter one ends.")
def _(a, b):
    shape = []
    for m, n in zip(reversed(a), reversed(b)):
        if m == n or n == 1:
            shape.append(m)
        elif m == 1:
            shape.append(n)
        else:
            raise ValueError(f"sizes {m} and {n} do not fit")
    return tuple(shape[::-1])


@wrong(broadcast_shape, "Shapes that do not fit raise a RuntimeError instead of a ValueError.")
def _(a, b):
    return tuple((torch.empty(a) + torch.empty(b)).shape)


@wrong(
    broadcast_shape,
    "A size that divides the other is stretched too, as if it were repeated: 2 and 4 give 4, with no error.",
)
def _(a, b):
    length = max(len(a), len(b))
    a = (1,) * (length - len(a)) + tuple(a)
    b = (1,) * (length - len(b)) + tuple(b)
    out = ()
    for m, n in zip(a, b):
        if m == n or n == 1:
            out += (m,)
        elif m == 1:
            out += (n,)
        elif m and n and max(m, n) % min(m, n) == 0:
            out += (max(m, n),)  # the smaller one is repeated
        else:
            raise ValueError("shapes do not fit")
    return out


@wrong(
    broadcast_shape,
    "Where both sizes are 1 (or one is 1 and the other missing), it raises a KeyError instead of giving 1.",
)
def _(a, b):
    result = []
    for pair in zip_longest(a[::-1], b[::-1], fillvalue=1):
        sizes = set(pair) - {1}
        if len(sizes) > 1:
            raise ValueError(f"cannot broadcast {a} with {b}")
        result.append(sizes.pop())
    return tuple(reversed(result))


@right(broadcast_shape)
def _(a, b):
    shape = ()
    for pair in zip_longest(reversed(a), reversed(b), fillvalue=1):
        size, *others = {*pair} - {1} or {1}
        if others:
            raise ValueError(f"shapes {a} and {b} do not fit: {pair[0]} stands over {pair[1]}")
        shape = (size, *shape)
    return shape


@wrong(matmul_shape, "The batch axes of both are put one after another, as np.dot does, instead of being broadcast.")
def _(a, b):
    inner = b[-1] if len(b) == 1 else b[-2]
    if a[-1] != inner:
        raise ValueError(f"inner sizes differ: {a[-1]} and {inner}")
    if len(b) == 1:
        return tuple(a[:-1])
    return tuple(a[:-1]) + tuple(b[:-2]) + (b[-1],)


@wrong(
    matmul_shape,
    "With a vector on either side, all axes of size 1 are removed, not only the one that the vector was given.",
)
def _(a, b):
    left = (1, *a) if len(a) == 1 else a
    right = (*b, 1) if len(b) == 1 else b
    if left[-1] != right[-2]:
        raise ValueError("inner sizes must agree")
    shape = own_broadcast_shape(left[:-2], right[:-2]) + (left[-2], right[-1])
    if len(a) == 1 or len(b) == 1:
        shape = tuple(size for size in shape if size != 1)
    return shape


@wrong(matmul_shape, "An inner size of 1 is stretched to the other inner size instead of raising a ValueError.")
def _(a, b):
    left = (1,) + tuple(a) if len(a) == 1 else tuple(a)
    right = tuple(b) + (1,) if len(b) == 1 else tuple(b)
    own_broadcast_shape(left[-1:], right[-2:-1])  # raises if they do not fit
    shape = list(own_broadcast_shape(left[:-2], right[:-2]))
    if len(a) > 1:
        shape.append(left[-2])
    if len(b) > 1:
        shape.append(right[-1])
    return tuple(shape)


@wrong(
    matmul_shape,
    "The batch axes of the input that has more of them are taken as they are: not broadcast, and not checked.",
)
def _(a, b):
    rows = () if len(a) == 1 else (a[-2],)
    columns = () if len(b) == 1 else (b[-1],)
    if a[-1] != (b[0] if len(b) == 1 else b[-2]):
        raise ValueError(f"{a} and {b} do not fit")
    batch = max(a[:-2], b[:-2], key=len)
    return tuple(batch) + rows + columns


@right(matmul_shape)
def _(a, b):
    x, y = torch.empty(a, device="meta"), torch.empty(b, device="meta")
    try:
        return tuple((x @ y).shape)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


@wrong(
    all_dot_products, "Each query also meets the keys of all other leading positions: right only without leading axes."
)
def _(query, key):
    return torch.inner(query, key)


@wrong(all_dot_products, "The dot products are divided by the root of d_head.")
def _(query, key):
    d_head = query.size(-1)
    return torch.matmul(query, key.transpose(-2, -1)) / d_head**0.5


@wrong(
    all_dot_products,
    "The key is reshaped to (..., d_head, k_len) instead of transposed, which mixes numbers of different keys.",
)
def _(query, key):
    *lead, k_len, d_head = key.shape
    return query @ key.reshape(*lead, d_head, k_len)


@wrong(
    all_dot_products,
    "The table comes out transposed, (..., k_len, q_len): a row for each key, a column for each query.",
)
def _(query, key):
    products = query.unsqueeze(-3) * key.unsqueeze(-2)
    return products.sum(dim=-1)


@right(all_dot_products)
def _(query, key):
    return (key @ query.mT).mT


@wrong(normalize_rows, "Each row is divided by the sum of its absolute values: wrong where numbers are negative.")
def _(x):
    return F.normalize(x, p=1, dim=-1)


@wrong(normalize_rows, "Each slice along the first axis is divided by its whole sum: right with exactly two axes only.")
def _(x):
    out = x.clone()
    for i in range(len(out)):
        out[i] = out[i] / out[i].sum()
    return out


@wrong(normalize_rows, "A small constant is added to every sum, so that rows with tiny sums no longer sum to one.")
def _(x):
    total = x.sum(dim=-1, keepdim=True)
    return x / (total + 1e-6)


@wrong(
    normalize_rows,
    "The division happens in place, in a view of x: x itself is changed, and the result is no new tensor.",
)
def _(x):
    rows = x.view(-1, x.shape[-1])
    rows /= rows.sum(dim=1, keepdim=True)
    return rows.view(x.shape)


@right(normalize_rows)
def _(x):
    ones = x.new_ones(x.shape[-1], 1)
    return x.div(x @ ones)


@wrong(linear, "The product sums over d_out, the first axis of the weight: the weight is not transposed.")
def _(x, weight, bias):
    return torch.tensordot(x, weight, dims=1) + bias


@wrong(
    linear, "The weight is reshaped to (d_in, d_out) instead of transposed, so its numbers stand in the wrong places."
)
def _(x, weight, bias):
    d_out, d_in = weight.shape
    return x @ weight.reshape(d_in, d_out) + bias


@wrong(
    linear,
    "The 1 goes behind x but the bias in front of the weight: all numbers of x meet the wrong column.",
)
def _(x, weight, bias):
    ones = torch.ones(*x.shape[:-1], 1, dtype=x.dtype)
    x = torch.cat([x, ones], dim=-1)
    weight = torch.cat([bias[:, None], weight], dim=1)
    return x @ weight.T


@wrong(linear, "A single vector x, without axes in front, raises an error: only matrices can be transposed with mT.")
def _(x, weight, bias):
    y = weight @ x.mT  # (..., d_out, n)
    return y.mT + bias


@right(linear)
def _(x, weight, bias):
    extended = torch.cat((x, x.new_ones(*x.shape[:-1], 1)), dim=-1)
    return extended @ torch.cat((weight, bias.unsqueeze(1)), dim=1).T


@wrong(mend_cosines, "Query i is compared with key i only: one cosine for each pair instead of a table.")
def _(query, key):
    return F.cosine_similarity(query, key, dim=-1)


@wrong(
    mend_cosines,
    "The -1 is the order p of the norm, not the axis: each matrix is divided by one number for all its rows.",
)
def _(query, key):
    query = query / query.norm(-1, keepdim=True)
    key = key / key.norm(-1, keepdim=True)
    return query @ key.T


@wrong(mend_cosines, "Each vector is divided by the square of its length: the root is missing.")
def _(query, key):
    query = query / (query**2).sum(dim=-1, keepdim=True)
    key = key / (key**2).sum(dim=-1, keepdim=True)
    return query @ key.T


@wrong(
    mend_cosines,
    "The table of lengths is transposed: entry (i, j) is divided by the lengths of query j and key i.",
)
def _(query, key):
    dots = query @ key.T
    lengths = torch.outer(key.norm(dim=1), query.norm(dim=1))
    return dots / lengths


@right(mend_cosines)
def _(query, key):
    directions, others = (rows.T / torch.linalg.vector_norm(rows, dim=1) for rows in (query, key))
    return directions.T @ others
