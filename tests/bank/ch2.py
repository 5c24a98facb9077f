"""Answers to assignment 2."""

from itertools import zip_longest

import torch
import torch.nn.functional as F

from transformer_lab.checks import all_dot_products, broadcast_shape, linear, matmul_shape, mend_cosines, normalize_rows

from . import right, wrong


@wrong(broadcast_shape, "The shapes are lined up from the left: the missing ones are filled in on the right.")
def _(a, b):
    n = max(len(a), len(b))
    a = a + (1,) * (n - len(a))
    b = b + (1,) * (n - len(b))
    shape = []
    for m, k in zip(a, b):
        if m != k and m != 1 and k != 1:
            raise ValueError("do not fit")
        shape.append(max(m, k))
    return tuple(shape)


@wrong(broadcast_shape, "zip stops at the shorter shape, so the axes that only one of them has are lost.")
def _(a, b):
    shape = []
    for m, k in zip(reversed(a), reversed(b)):
        if m == k or k == 1:
            shape.append(m)
        elif m == 1:
            shape.append(k)
        else:
            raise ValueError("shapes do not fit")
    return tuple(reversed(shape))


@wrong(broadcast_shape, "The sizes come out from last to first: the list is not reversed at the end.")
def _(a, b):
    shape = []
    for m, k in zip_longest(reversed(a), reversed(b), fillvalue=1):
        if m == 1:
            shape.append(k)
        elif k == 1 or k == m:
            shape.append(m)
        else:
            raise ValueError("no")
    return tuple(shape)


@wrong(
    broadcast_shape,
    "torch adds two tensors of these shapes, and its RuntimeError is let through where a ValueError is asked.",
)
def _(a, b):
    return tuple((torch.zeros(a) + torch.zeros(b)).shape)


@right(broadcast_shape)
def _(a, b):
    try:
        return tuple(torch.broadcast_shapes(a, b))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


@wrong(matmul_shape, "The batch axes are not broadcast: those of the left are taken as they are.")
def _(a, b):
    left = (1, *a) if len(a) == 1 else a
    right = (*b, 1) if len(b) == 1 else b
    if left[-1] != right[-2]:
        raise ValueError("inner sizes differ")
    shape = left[:-2]
    if len(a) > 1:
        shape += (left[-2],)
    if len(b) > 1:
        shape += (right[-1],)
    return shape


@wrong(matmul_shape, "The axis that a vector was given stays in the result as a 1.")
def _(a, b):
    if len(a) == 1:
        a = (1,) + a
    if len(b) == 1:
        b = b + (1,)
    if a[-1] != b[-2]:
        raise ValueError("inner sizes differ")
    try:
        return tuple(torch.broadcast_shapes(a[:-2], b[:-2])) + (a[-2], b[-1])
    except RuntimeError as error:
        raise ValueError from error


@wrong(matmul_shape, "The inner sizes are never compared.")
def _(a, b):
    left = (1, *a) if len(a) == 1 else a
    right = (*b, 1) if len(b) == 1 else b
    try:
        batch = torch.broadcast_shapes(left[:-2], right[:-2])
    except RuntimeError:
        raise ValueError("batch axes do not fit") from None
    rows = () if len(a) == 1 else (left[-2],)
    columns = () if len(b) == 1 else (right[-1],)
    return tuple(batch) + rows + columns


@wrong(matmul_shape, "A right vector is made a row (1, n) as well, where it should become a column (n, 1).")
def _(a, b):
    left = (1, *a) if len(a) == 1 else a
    right = (1, *b) if len(b) == 1 else b
    if left[-1] != right[-2]:
        raise ValueError("inner sizes differ")
    try:
        shape = tuple(torch.broadcast_shapes(left[:-2], right[:-2]))
    except RuntimeError:
        raise ValueError("batch axes do not fit") from None
    if len(a) > 1:
        shape += (left[-2],)
    if len(b) > 1:
        shape += (right[-1],)
    return shape


@right(matmul_shape)
def _(a, b):
    try:
        return tuple(torch.matmul(torch.empty(a, device="meta"), torch.empty(b, device="meta")).size())
    except RuntimeError as error:
        raise ValueError(f"{a} and {b} do not fit: {error}") from error


@wrong(all_dot_products, "The key is not transposed.")
def _(query, key):
    return query @ key


@wrong(all_dot_products, "The table is the wrong way round: keys in the rows, queries in the columns.")
def _(query, key):
    return key @ query.transpose(-2, -1)


@wrong(
    all_dot_products, "The sum over the features is missing in the elementwise product, so an axis too many is left."
)
def _(query, key):
    return query.unsqueeze(-2) * key.unsqueeze(-3)


@wrong(all_dot_products, "The dot products are divided by the root of d_head, which nobody asked for here.")
def _(query, key):
    return query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5


@right(all_dot_products)
def _(query, key):
    return torch.einsum("...id,...jd->...ij", query, key)


@right(all_dot_products)
def _(query, key):
    return torch.stack([(query * key[..., j : j + 1, :]).sum(-1) for j in range(key.shape[-2])], dim=-1)


@wrong(normalize_rows, "keepdim is missing, so the sums stand under the columns.")
def _(x):
    return x / x.sum(dim=-1)


@wrong(normalize_rows, "All numbers are divided by the one sum of the whole tensor.")
def _(x):
    return x / x.sum()


@wrong(normalize_rows, "It is a softmax: the numbers are exponentiated first.")
def _(x):
    return x.softmax(dim=-1)


@wrong(normalize_rows, "The row is divided by its length, the root of the sum of squares.")
def _(x):
    return x / x.norm(dim=-1, keepdim=True)


@wrong(normalize_rows, "The sum is clamped to at least a small positive number, so rows with a negative sum explode.")
def _(x):
    return x / x.sum(-1, keepdim=True).clamp(min=1e-9)


@right(normalize_rows)
def _(x):
    return torch.div(x, x.sum(-1).unsqueeze(-1))


@wrong(linear, "The weight is not transposed.")
def _(x, weight, bias):
    return x @ weight + bias


@wrong(linear, "The bias is subtracted.")
def _(x, weight, bias):
    return x @ weight.T - bias


@wrong(linear, "The bias is added to x before the product.")
def _(x, weight, bias):
    return (x + bias) @ weight.T


@wrong(linear, "torch.addmm takes matrices only, so an x with three axes is refused.")
def _(x, weight, bias):
    return torch.addmm(bias, x, weight.t())


@right(linear)
def _(x, weight, bias):
    return (weight @ x.unsqueeze(-1)).squeeze(-1) + bias


@right(linear)
def _(x, weight, bias):
    flat = x.reshape(-1, x.shape[-1])
    return torch.addmm(bias, flat, weight.mT).reshape(*x.shape[:-1], -1)


@wrong(mend_cosines, "The program as given: the key's lengths are taken down the columns.")
def _(query, key):
    query = query / query.norm(dim=-1, keepdim=True)
    key = key / key.norm(dim=0)
    return query @ key.T


@wrong(mend_cosines, "Only the queries are brought to length one.")
def _(query, key):
    query = query / query.norm(dim=-1, keepdim=True)
    return query @ key.T


@wrong(mend_cosines, "It divides by the squares of the lengths: the root is forgotten.")
def _(query, key):
    q = query / (query**2).sum(dim=-1, keepdim=True)
    k = key / (key**2).sum(dim=-1, keepdim=True)
    return q @ k.T


@wrong(mend_cosines, "The result is the wrong way round, (k_len, q_len).")
def _(query, key):
    query = F.normalize(query, dim=-1)
    key = F.normalize(key, dim=-1)
    return key @ query.T


@right(mend_cosines)
def _(query, key):
    return F.cosine_similarity(query[:, None, :], key[None, :, :], dim=-1)
