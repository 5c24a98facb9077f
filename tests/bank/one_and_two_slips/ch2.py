"""Answers to assignment 2, with one slip and with two, by a fifth author."""

import torch
import torch.nn.functional as F

from transformer_lab.checks import broadcast_shape, linear, mend_cosines, normalize_rows

from .. import right, wrong


@right(broadcast_shape)
def _(a, b):
    try:
        return tuple((torch.empty(a, device="meta") + torch.empty(b, device="meta")).shape)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


@right(broadcast_shape)
def _(a, b):
    from itertools import zip_longest

    out = []
    for m, n in zip_longest(a[::-1], b[::-1], fillvalue=1):
        if m == n or n == 1:
            out.append(m)
        elif m == 1:
            out.append(n)
        else:
            raise ValueError(f"{a} and {b} do not fit: {m} and {n}")
    return out[::-1]


@wrong(broadcast_shape, "The larger of two sizes is taken, so that a 1 beside a 0 gives 1.")
def _(a, b):
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    for p, q in zip(a, b):
        if p != q and 1 not in (p, q):
            raise ValueError("do not fit")
    return tuple(max(p, q) for p, q in zip(a, b))


@wrong(broadcast_shape, "The shorter shape is filled with ones on the right.")
def _(a, b):
    n = max(len(a), len(b))
    a, b = tuple(a) + (1,) * (n - len(a)), tuple(b) + (1,) * (n - len(b))
    out = []
    for p, q in zip(a, b):
        if p != q and p != 1 and q != 1:
            raise ValueError("do not fit")
        out.append(q if p == 1 else p)
    return tuple(out)


@wrong(broadcast_shape, "Shapes that do not fit raise AssertionError.")
def _(a, b):
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    out = []
    for p, q in zip(a, b):
        assert p == q or p == 1 or q == 1, "shapes do not fit"
        out.append(q if p == 1 else p)
    return tuple(out)


@wrong(broadcast_shape, "The larger of two sizes is taken.", "Shapes that do not fit raise AssertionError.")
def _(a, b):
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    out = []
    for p, q in zip(a, b):
        assert p == q or p == 1 or q == 1
        out.append(max(p, q))
    return tuple(out)


@wrong(
    broadcast_shape, "The shorter shape is filled with ones on the right.", "Shapes that do not fit raise RuntimeError."
)
def _(a, b):
    n = max(len(a), len(b))
    a, b = tuple(a) + (1,) * (n - len(a)), tuple(b) + (1,) * (n - len(b))
    out = []
    for p, q in zip(a, b):
        if p != q and p != 1 and q != 1:
            raise RuntimeError(f"cannot broadcast {p} and {q}")
        out.append(q if p == 1 else p)
    return tuple(out)


@right(normalize_rows)
def _(x):
    return torch.einsum("...i,...->...i", x, 1 / torch.einsum("...i->...", x))


@right(normalize_rows)
def _(x):
    ones = torch.ones(x.shape[-1], 1, dtype=x.dtype, device=x.device)
    return x / (x @ ones)


@wrong(normalize_rows, "Each row is divided by the sum of its absolute values.")
def _(x):
    return x / x.abs().sum(-1, keepdim=True)


@wrong(normalize_rows, "x is changed in place.")
def _(x):
    x /= x.sum(dim=-1, keepdim=True)
    return x


@wrong(normalize_rows, "Each row is divided by its largest number.")
def _(x):
    return x / x.max(dim=-1, keepdim=True).values


@wrong(normalize_rows, "The sum runs over the first axis.", "It is the sum of absolute values.")
def _(x):
    return x / x.abs().sum(0, keepdim=True)


@wrong(normalize_rows, "The sum runs over the first axis.", "x is changed in place.")
def _(x):
    x.div_(x.sum(dim=0, keepdim=True))
    return x


@right(linear)
def _(x, weight, bias):
    return torch.einsum("...i,oi->...o", x, weight).add(bias)


@right(linear)
def _(x, weight, bias):
    return (x.unsqueeze(-2) * weight).sum(-1) + bias


@wrong(linear, "The bias is missing.")
def _(x, weight, bias):
    return x @ weight.T


@wrong(linear, "The bias is subtracted.")
def _(x, weight, bias):
    return x @ weight.T - bias


@wrong(linear, "The bias is added twice.")
def _(x, weight, bias):
    return (x.sum(-1, keepdim=True) * 0 + x @ weight.T) + 2 * bias


@wrong(linear, "The bias is missing.", "No gradient flows back.")
def _(x, weight, bias):
    with torch.no_grad():
        return x @ weight.T


@wrong(linear, "The bias is subtracted.", "There is an axis too many in front.")
def _(x, weight, bias):
    return (x @ weight.T - bias).unsqueeze(0)


@right(mend_cosines)
def _(query, key):
    return F.cosine_similarity(query[:, None], key[None], dim=-1)


@right(mend_cosines)
def _(query, key):
    lengths = query.pow(2).sum(-1).sqrt()[:, None] * key.pow(2).sum(-1).sqrt()
    return torch.einsum("qd,kd->qk", query, key) / lengths


@wrong(mend_cosines, "Queries are not divided by their lengths.")
def _(query, key):
    key = key / key.norm(dim=-1, keepdim=True)
    return query @ key.T


@wrong(mend_cosines, "Both are divided by the squares of their lengths.")
def _(query, key):
    query = query / query.pow(2).sum(-1, keepdim=True)
    key = key / key.pow(2).sum(-1, keepdim=True)
    return query @ key.T


@wrong(mend_cosines, "The table has keys as rows.")
def _(query, key):
    query = query / query.norm(dim=-1, keepdim=True)
    key = key / key.norm(dim=-1, keepdim=True)
    return key @ query.T


@wrong(mend_cosines, "The table has keys as rows.", "Queries are not divided by their lengths.")
def _(query, key):
    key = key / key.norm(dim=-1, keepdim=True)
    return key @ query.T


@wrong(mend_cosines, "Keys are not divided by their lengths.", "Queries are divided by the squares of their lengths.")
def _(query, key):
    query = query / query.pow(2).sum(-1, keepdim=True)
    return query @ key.T
