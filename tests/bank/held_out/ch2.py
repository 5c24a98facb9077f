"""Held out: answers to assignment 2."""

from itertools import zip_longest

import torch
import torch.nn.functional as F

from transformer_lab.checks import all_dot_products, broadcast_shape, linear, matmul_shape, mend_cosines, normalize_rows

from .. import right, wrong


@wrong(broadcast_shape, "The larger size is taken, so a 1 beside a 0 gives 1, not 0.")
def _(a, b):
    n = max(len(a), len(b))
    a = (1,) * (n - len(a)) + a
    b = (1,) * (n - len(b)) + b
    shape = []
    for m, k in zip(a, b):
        if m != k and 1 not in (m, k):
            raise ValueError(f"{m} and {k} do not fit")
        shape.append(max(m, k))
    return tuple(shape)


@wrong(broadcast_shape, "Sizes that do not fit raise nothing: the larger one is taken.")
def _(a, b):
    pairs = zip_longest(reversed(a), reversed(b), fillvalue=1)
    return tuple(k if m == 1 else m if k == 1 else max(m, k) for m, k in pairs)[::-1]


@wrong(broadcast_shape, "The error is returned, not raised.")
def _(a, b):
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    shape = ()
    for m, k in zip(a, b):
        if m == k or k == 1:
            shape += (m,)
        elif m == 1:
            shape += (k,)
        else:
            return ValueError("shapes do not fit")
    return shape


@wrong(broadcast_shape, "A size that divides the other is taken to stretch as well, as if numbers were repeated.")
def _(a, b):
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    shape = []
    for m, k in zip(a, b):
        if m == k:
            shape.append(m)
        elif m == 1 or (m and k % m == 0):
            shape.append(k)
        elif k == 1 or (k and m % k == 0):
            shape.append(m)
        else:
            raise ValueError("shapes do not fit")
    return tuple(shape)


@right(broadcast_shape)
def _(a, b):
    shape = []
    for pair in zip_longest(a[::-1], b[::-1], fillvalue=1):
        sizes = set(pair) - {1}
        if len(sizes) > 1:
            raise ValueError(pair)
        shape.insert(0, sizes.pop() if sizes else 1)
    return tuple(shape)


@wrong(matmul_shape, "Vectors are not thought of: b[-2] of a vector raises an IndexError.")
def _(a, b):
    if a[-1] != b[-2]:
        raise ValueError("inner sizes differ")
    return tuple(torch.broadcast_shapes(a[:-2], b[:-2])) + (a[-2], b[-1])


@wrong(
    matmul_shape,
    "The inner sizes are compared as last with last, as for rows that are dotted, not last with second to last.",
)
def _(a, b):
    left = (1, *a) if len(a) == 1 else a
    right = (*b, 1) if len(b) == 1 else b
    if left[-1] != right[-1]:
        raise ValueError("inner sizes differ")
    shape = list(torch.broadcast_shapes(left[:-2], right[:-2]))
    if len(a) > 1:
        shape.append(left[-2])
    if len(b) > 1:
        shape.append(right[-2])
    return tuple(shape)


@wrong(
    matmul_shape,
    "torch multiplies two tensors of these shapes, and its RuntimeError is let through where a ValueError is asked.",
)
def _(a, b):
    return tuple((torch.empty(a) @ torch.empty(b)).shape)


@wrong(matmul_shape, "Two vectors give the shape (1,), where the product is a single number with shape ().")
def _(a, b):
    if len(a) == 1 and len(b) == 1:
        if a != b:
            raise ValueError("lengths differ")
        return (1,)
    try:
        return tuple((torch.empty(a, device="meta") @ torch.empty(b, device="meta")).shape)
    except RuntimeError:
        raise ValueError("shapes do not fit") from None


@right(matmul_shape)
def _(a, b):
    k = b[0] if len(b) == 1 else b[-2]
    if a[-1] != k:
        raise ValueError("inner")
    out = list(a[-2:-1]) + list(b[-1:] if len(b) > 1 else [])
    for m, n in zip_longest(a[-3::-1] if len(a) > 2 else (), b[-3::-1] if len(b) > 2 else (), fillvalue=1):
        if m != n and m != 1 and n != 1:
            raise ValueError("batch")
        out.insert(0, n if m == 1 else m)
    return tuple(out)


@wrong(all_dot_products, "key.T turns round all axes, not just the last two.")
def _(query, key):
    return torch.matmul(query, key.T)


@wrong(
    all_dot_products,
    "Axes are counted from the start: transpose(1, 2) swaps heads and k_len where there are four axes.",
)
def _(query, key):
    return query @ key.transpose(1, 2)


@wrong(all_dot_products, "Query i meets only key i: an elementwise product, summed over the features.")
def _(query, key):
    return (query * key).sum(dim=-1)


@wrong(all_dot_products, "torch.bmm takes three axes and no other number of them.")
def _(query, key):
    return torch.bmm(query, key.transpose(-1, -2))


@right(all_dot_products)
def _(query, key):
    return (key @ query.mT).mT


@wrong(normalize_rows, "Each column is divided by its sum: the wrong axis.")
def _(x):
    return x / x.sum(dim=-2, keepdim=True)


@wrong(normalize_rows, "x is changed in place.")
def _(x):
    x /= x.sum(dim=-1, keepdim=True)
    return x


@wrong(normalize_rows, "It divides by the sum of absolute values, which is another number where some are negative.")
def _(x):
    return F.normalize(x, p=1, dim=-1)


@wrong(normalize_rows, "dim=1 is the rows' axis only where there are two axes.")
def _(x):
    return x / x.sum(dim=1, keepdim=True)


@right(normalize_rows)
def _(x):
    return torch.einsum("...c,...->...c", x, 1 / x.sum(-1))


@wrong(linear, "The bias is forgotten.")
def _(x, weight, bias):
    return x @ weight.T


@wrong(linear, "weight and x change places: weight @ x sums over the tokens' axis, if it fits at all.")
def _(x, weight, bias):
    return weight @ x + bias


@wrong(linear, "einsum sums over the wrong letter: the output feature's axis of the weight is taken for the input.")
def _(x, weight, bias):
    return torch.einsum("...i,io->...o", x, weight) + bias


@wrong(linear, "The bias is turned into a column, so it is added along the tokens, not along the features.")
def _(x, weight, bias):
    return x @ weight.T + bias[:, None]


@right(linear)
def _(x, weight, bias):
    return torch.tensordot(x, weight, dims=([-1], [1])).add(bias)


@wrong(mend_cosines, "keepdim is missing at the key, so the lengths stand under the features.")
def _(query, key):
    query = query / query.norm(dim=-1, keepdim=True)
    key = key / key.norm(dim=-1)
    return query @ key.T


@wrong(mend_cosines, "cosine_similarity of the two as they are compares query i with key i alone.")
def _(query, key):
    return F.cosine_similarity(query, key, dim=-1)


@wrong(mend_cosines, "The whole table is divided by the lengths of both tables of vectors, two single numbers.")
def _(query, key):
    return query @ key.T / (query.norm() * key.norm())


@wrong(mend_cosines, "The lengths of queries and keys are added, where they should be multiplied.")
def _(query, key):
    lengths = query.norm(dim=-1)[:, None] + key.norm(dim=-1)[None, :]
    return (query @ key.T) / lengths


@right(mend_cosines)
def _(query, key):
    dots = torch.einsum("qd,kd->qk", query, key)
    squares = torch.outer(query.square().sum(1), key.square().sum(1))
    return dots / squares.sqrt()
