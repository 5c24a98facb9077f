"""Answers to assignment 2, by a fourth author."""

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


@wrong(broadcast_shape, "It takes the larger of two sizes, so that a 1 beside a 0 gives 1.")
def _(a, b):
    sizes = []
    for m, n in zip_longest(reversed(a), reversed(b), fillvalue=1):
        if m != n and m != 1 and n != 1:
            raise ValueError(f"{a} and {b} do not fit")
        sizes.append(max(m, n))
    return tuple(reversed(sizes))


@wrong(broadcast_shape, "Only ones in the longer shape stretch: a 1 in the shorter one raises.")
def _(a, b):
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    result = list(longer)
    for i in range(1, len(shorter) + 1):
        if longer[-i] == 1:
            result[-i] = shorter[-i]
        elif longer[-i] != shorter[-i]:
            raise ValueError(f"sizes {longer[-i]} and {shorter[-i]} do not match")
    return tuple(result)


@right(broadcast_shape)
def _(a, b):
    shape = []
    for pair in zip_longest(a[::-1], b[::-1], fillvalue=1):
        sizes = set(pair) - {1}
        if len(sizes) > 1:
            raise ValueError(f"shapes {a} and {b} cannot be broadcast")
        shape.insert(0, sizes.pop() if sizes else 1)
    return tuple(shape)


@wrong(matmul_shape, "With a vector it never compares the inner sizes, so shapes that do not fit pass.")
def _(a, b):
    if len(a) == 1 and len(b) == 1:
        return ()
    if len(b) == 1:
        return tuple(a[:-1])
    if len(a) == 1:
        return tuple(b[:-2]) + (b[-1],)
    if a[-1] != b[-2]:
        raise ValueError(f"inner sizes {a[-1]} and {b[-2]} differ")
    return broadcast_shape.reference(a[:-2], b[:-2]) + (a[-2], b[-1])


@wrong(matmul_shape, "For a vector on the left it takes away the first axis, which is a batch axis if there is one.")
def _(a, b):
    a_is_vector, b_is_vector = len(a) == 1, len(b) == 1
    if a_is_vector:
        a = (1,) + a
    if b_is_vector:
        b = b + (1,)
    if a[-1] != b[-2]:
        raise ValueError("inner dimensions must agree")
    shape = (*broadcast_shape.reference(a[:-2], b[:-2]), a[-2], b[-1])
    if b_is_vector:
        shape = shape[:-1]
    if a_is_vector:
        shape = shape[1:]
    return shape


@wrong(all_dot_products, "With axes in front, it compares the queries with the keys of all other places too.")
def _(query, key):
    return torch.tensordot(query, key, dims=([-1], [-1]))


@wrong(all_dot_products, "It divides the dot products by the root of d_head.")
def _(query, key):
    d_head = query.size(-1)
    return torch.matmul(query, key.transpose(-2, -1)) / d_head**0.5


@right(all_dot_products)
def _(query, key):
    products = query[..., :, None, :] * key[..., None, :, :]
    return products.sum(dim=-1)


@wrong(normalize_rows, "It divides by the sum of the absolute values, which differs where numbers are negative.")
def _(x):
    return F.normalize(x, p=1, dim=-1)


@wrong(normalize_rows, "It sums along axis 1, which is the last one of a matrix only.")
def _(x):
    row_sums = x.sum(1, keepdim=True)
    return x / row_sums


@wrong(linear, "It takes away every axis of size 1 from the product.")
def _(x, weight, bias):
    y = weight @ x.unsqueeze(-1)
    return y.squeeze() + bias


@wrong(linear, "It reads the weight's numbers as (d_in, d_out) without transposing it.")
def _(x, weight, bias):
    d_out, d_in = weight.shape
    return x @ weight.reshape(d_in, d_out) + bias


@right(linear)
def _(x, weight, bias):
    return torch.tensordot(x, weight, dims=([-1], [1])).add(bias)


@wrong(mend_cosines, "The queries' lengths lie along the keys' axis, so each divides a column.")
def _(query, key):
    dots = query @ key.T
    lengths = query.norm(dim=-1) * key.norm(dim=-1)
    return dots / lengths


@wrong(mend_cosines, "It compares each query with the one key in the same row only.")
def _(query, key):
    return F.cosine_similarity(query, key, dim=-1)
