"""Every query with every key: all dot products at once."""

import functools

import torch
from torch.nn import functional as F

from ..exercise import exercise


def _queries_and_keys(draw, batch=2, heads=3, q_len=7, k_len=6, d_head=5):
    return draw(batch, heads, q_len, d_head), draw(batch, heads, k_len, d_head)


@exercise(
    inputs=_queries_and_keys,
    axes={
        "query": "batch heads q_len d_head",
        "key": "batch heads k_len d_head",
        "return": "batch heads q_len k_len",
    },
    hints=(
        "A product sums over the last axis of the left factor and the second-to-last axis of the right factor. At "
        "which place is the axis `d_head` of `key`, and at which place must it be?",
        "Swap the last two axes of `key`, and no others. Count the axes from the end, so that it does not matter how "
        "many axes come before them. Alternatively, `einsum` can name the axes.",
        "`query @ key.transpose(…, …)` or `torch.einsum('...qd,…->…', query, key)`",
    ),
)
def all_dot_products(query, key):
    """Return the dot product of every query (..., q_len, d_head) with every key (..., k_len, d_head): a tensor of shape
    (..., q_len, k_len)."""
    return query @ key.transpose(-2, -1)


all_dot_products.example("two matrices", lambda draw: (draw(7, 5), draw(6, 5)))
all_dot_products.example("one leading axis", lambda draw: (draw(2, 7, 5), draw(2, 6, 5)))
all_dot_products.example("three leading axes", lambda draw: (draw(2, 3, 4, 7, 5), draw(2, 3, 4, 6, 5)))
all_dot_products.example("one query", q_len=1)
all_dot_products.example("one key", k_len=1)
all_dot_products.example("as many queries as keys", k_len=7)
all_dot_products.example("sizes that are all equal", batch=4, heads=4, q_len=4, k_len=4, d_head=4, plain=True)


@all_dot_products.right
class RightAnswers:
    def named_axes(query, key):
        return torch.einsum("...qd,...kd->...qk", query, key)

    def by_broadcasting(query, key):
        return (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(dim=-1)

    def query_by_query(query, key):
        rows = [(key * query[..., i : i + 1, :]).sum(-1) for i in range(query.shape[-2])]
        return torch.stack(rows, dim=-2)

    def key_by_key(query, key):
        return torch.stack([(query @ key[..., j, :, None]).squeeze(-1) for j in range(key.shape[-2])], -1)

    def product_transposed(query, key):
        return (key @ query.mT).mT

    def leading_axes_folded(query, key):
        q, k = (x.reshape(-1, *x.shape[-2:]) for x in (query, key))
        return torch.bmm(q, k.transpose(1, 2)).view(*query.shape[:-1], key.shape[-2])


@all_dot_products.property
def exchange_transposes_the_table(function, query, key):
    """With queries and keys exchanged, the table is transposed."""
    return torch.allclose(function(key, query), function(query, key).mT, atol=1e-5)


@all_dot_products.property
def doubled_queries_double_the_products(function, query, key):
    """Queries that are twice as long have dot products that are twice as large."""
    return torch.allclose(function(2 * query, key), 2 * function(query, key), atol=1e-5)


@all_dot_products.property
def rows_independent(function, query, key):
    """Of all the queries, only query i affects row i of the table: if a different query changes, the row stays the
    same."""
    changed = query.clone()
    changed[..., -1, :] += 1
    return torch.allclose(function(changed, key)[..., :-1, :], function(query, key)[..., :-1, :], atol=1e-5)


@all_dot_products.wrong
class Transposed:
    def not_transposed(query, key):
        """You multiply `query` by `key` without a transpose. A product sums over the last axis of the left factor and
        the second-to-last of the right, but the second-to-last axis of `key` holds positions, not features. Here 5
        features do not match 6 positions, so the product raises an error; with as many keys as features it would run
        and be wrong."""
        return query @ key

    def queries_transposed(query, key):
        """You transpose `query`, so the product sums over positions, and with equal lengths it would return a table of
        features by features. Sum over the features: they are already the last axis of `query`, and must become the
        second-to-last axis of `key`."""
        return query.mT @ key

    def keys_by_queries(query, key):
        """Your table has a row for every key and a column for every query: the transpose of the right table. Papers
        that keep vectors in columns write KᵀQ. Here a row belongs to a query: which factor must be on the left?"""
        return key @ query.mT

    def all_axes_reversed(query, key):
        """You reverse all axes of `key` instead of swapping the last two: four axes become (d_head, k_len, heads,
        batch). `.T` reverses all axes, which is right for matrices only. Which two axes must change places, and which
        stay in front?"""
        return query @ key.permute(tuple(reversed(range(key.ndim))))  # key.T without its warning

    def axes_zero_and_one(query, key):
        """You swap the first two axes of `key`, which is right for two matrices only. With leading axes, the first two
        are `batch` and `heads`. The docstring allows any leading axes: count the axes from the end."""
        return query @ key.transpose(0, 1)

    def axes_one_and_two(query, key):
        """You swap the axes 1 and 2 of `key`. With three axes this is right; with four, axes 1 and 2 are heads and
        positions, and if the sizes happen to fit, nothing raises an error. The features are the last axis: count from
        the end."""
        return query @ key.transpose(1, 2)

    def axes_two_and_three(query, key):
        """{Your function is right for four axes, and for no other number:} you count the axes from the left, as 2 and
        3. The docstring allows any leading axes, even none. Count the last two axes from the end: then it does not
        matter how many axes are in front."""
        return query @ key.transpose(2, 3)

    def two_axes_permuted(query, key):
        """`permute` requires the complete new order of the axes, but you pass two numbers: it raises an error for any
        tensor with leading axes. `transpose(-2, -1)` swaps two axes and leaves the others."""
        return query @ key.permute(-1, -2)

    def three_axes_permuted(query, key):
        """`permute` requires all axes, but you name three: this is right only with one leading axis. `transpose(-2,
        -1)` swaps the last two, however many axes there are."""
        return query @ key.permute(0, 2, 1)

    def four_axes_named(query, key):
        """{Your function is right for four axes, and for no other number:} `permute` requires all axes, but you name
        four. The docstring allows any leading axes, even none. Which operation swaps two axes and leaves the others?"""
        return query @ key.permute(0, 1, 3, 2)

    def keys_reshaped(query, key):
        """Your `key` gets the shape of a transposed matrix, but its numbers stay in their order: `view` and `reshape`
        cut the same row of numbers differently and never move an axis. The shapes fit, but every dot product mixes
        several keys. Which operation swaps two axes?"""
        return query @ key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])


@all_dot_products.wrong
class Sums:
    def element_by_element(query, key):
        """`*` multiplies element by element and sums nothing. It raises an error, because 7 queries and 6 keys do not
        line up; with equal lengths it would return products of single features, not dot products. Pair every query with
        every key, and sum over the features."""
        return query * key

    def element_by_element_with_transposed_keys(query, key):
        """`*` multiplies element by element, even with a transposed `key`. Here the sizes do not fit, so it raises an
        error. Sum over the features: use the matrix product, `@`."""
        return query * key.mT

    def pair_by_pair(query, key):
        """You compare query 0 with key 0, query 1 with key 1, and so on: `*` lines the positions up. It raises an error
        here, because the lengths differ; with equal lengths you would get the diagonal of the table. Pair every query
        with every key instead."""
        return (query * key).sum(dim=-1)

    def pair_by_pair_by_vecdot(query, key):
        """`vecdot` compares query 0 with key 0, query 1 with key 1, and so on. It raises an error here, because the
        lengths differ; with equal lengths you would get the diagonal of the table. A matrix product compares every
        query with every key."""
        return torch.linalg.vecdot(query, key)

    def features_not_summed(query, key):
        """You multiply every query by every key, but keep the products of the single features: your result has one axis
        too many, of size d_head. A dot product is the sum of these products: over which axis must you sum?"""
        return query.unsqueeze(-2) * key.unsqueeze(-3)

    def summed_over_heads(query, key):
        """You sum over the axis in front of the positions, so the heads are added up. `einsum` sums over a letter that
        is missing after the arrow. Sum over the features only."""
        return torch.einsum("...hqd,...hkd->...qk", query, key)

    def keys_of_all_heads(query, key):
        """You multiply each query by the sum of the keys of all heads. `einsum` sums over a letter that one factor has
        and the result lacks. Give each leading axis the same letter in both factors, or write three dots for all
        leading axes."""
        return (
            query @ key.sum(-3, keepdim=True).mT if key.ndim > 2 else torch.einsum("...hqd,...gkd->...hqk", query, key)
        )

    def mean_of_products(query, key):
        """Every number is the dot product divided by d_head: that is the mean of the products, but a dot product is
        their sum. Check one dot product by hand: (1, 2) · (3, 4) = 11, not 5.5."""
        return (query.unsqueeze(-2) * key.unsqueeze(-3)).mean(dim=-1)

    def softmax_of_the_products(query, key):
        """Your rows sum to one: you apply a softmax to the dot products, which is attention's next step, in chapter 3.
        Return the dot products themselves, which may be negative and of any size."""
        return (query @ key.mT).softmax(dim=-1)

    def cosines_instead(query, key):
        """Your numbers lie between −1 and 1: they are cosines, the dot products of vectors that were first scaled to
        length 1. Leave the lengths as they are. Check one dot product by hand: (1, 2) · (3, 4) = 11."""
        return F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT

    def queries_with_themselves(query, key):
        """You multiply the queries by the queries and never use `key`. In self-attention, queries and keys come from
        the same tokens. Here they are two tensors of different lengths."""
        return query @ query.mT

    def new_axes_in_one_place(query, key):
        """Both tensors get their new axis after their positions, so queries and keys still line up position by
        position. One of the two tensors needs its new axis before its positions: then every query is paired with every
        key."""
        return (query[..., None, :] * key[..., :, None]).sum(-1)

    def new_axes_side_by_side(query, key):
        """Both tensors get their new axis at -2, so queries and keys still line up position by position. One of the two
        tensors needs its new axis before its positions, at -3, and the other needs it after them, at -2: then every
        query is paired with every key."""
        return (query.unsqueeze(-2) * key.unsqueeze(-2)).sum(-1)

    def axes_for_two_matrices(query, key):
        """You count the new axes from the left, which is right for two matrices only: with leading axes, the new axes
        end up among the leading axes. Counted from the end, -2 and -3 are right for any number of axes."""
        return (query.unsqueeze(1) * key.unsqueeze(0)).sum(-1)


@all_dot_products.wrong
class Letters:
    def two_letters(query, key):
        """Your letters name two axes, but there may be any number of axes in front. `...` names all of them, on both
        sides of the arrow."""
        return torch.einsum("qd,kd->qk", query, key)

    def three_letters(query, key):
        """Your `einsum` names exactly three axes, but the docstring allows any leading axes: here there are four axes.
        Write three dots in place of the leading letters, in both inputs and after the arrow: they name all leading
        axes, however many there are."""
        return torch.einsum("bqd,bkd->bqk", query, key)

    def four_letters(query, key):
        """{Your function is right for four axes, and for no other number:} your `einsum` names `batch` and `heads` one
        by one. The docstring allows any leading axes, even none. Three dots in place of these letters name all leading
        axes, however many there are."""
        return torch.einsum("bhqd,bhkd->bhqk", query, key)

    def one_letter_for_both(query, key):
        """In your `einsum` the positions of queries and keys have the same letter. A letter in two inputs pairs their
        entries: query 0 with key 0, query 1 with key 1, which is the diagonal of the table. Give the positions of the
        queries and those of the keys different letters, and write both letters after the arrow."""
        return torch.einsum("...qd,...qd->...q", query, key)

    def leading_axes_missing_after_the_arrow(query, key):
        """Your table is the sum over all leading axes: the three dots, or the leading letters, are missing after the
        arrow of `einsum`, which sums over every axis that is missing there. Each pair of matrices needs its own
        table."""
        return torch.einsum("...qd,...kd->qk", query, key)


@all_dot_products.wrong
class OtherProducts:
    def dot_of_two_vectors(query, key):
        """`torch.dot` multiplies two vectors and returns one number. Here there are many queries and many keys: a
        matrix product returns the dot products of all pairs at once."""
        return torch.dot(query, key)

    def two_matrices_by_mm(query, key):
        """`torch.mm` accepts two matrices only, without leading axes. `@` and `matmul` accept any number of leading
        axes. Swap only the last two axes of `key`."""
        return torch.mm(query, key.permute(*range(key.ndim - 1, -1, -1)))

    def last_axes_transposed_for_mm(query, key):
        """`torch.mm` accepts two matrices only; the docstring allows any leading axes, and here there are two leading
        axes. `@` and `matmul` do the same with any number of leading axes."""
        return torch.mm(query, key.mT)

    def three_axes_by_bmm(query, key):
        """`torch.bmm` accepts exactly three axes, but the docstring allows any leading axes: here there are four axes.
        `@` does the same with any number of leading axes, and pairs them."""
        return torch.bmm(query, key.mT)

    def tensordot_of_the_transposed(query, key):
        """With a number for `dims`, `tensordot` sums over the last axes of the left factor and the first axes of the
        right factor, but the first axis of `key` is a leading axis. It also combines every leading index of the left
        factor with every leading index of the right factor. `@` pairs the leading axes."""
        return torch.tensordot(query, key.mT, dims=1)

    def every_batch_with_every_batch(query, key):
        """You compare queries and keys of different sentences and heads too: your result has the leading axes of both,
        one after the other. This happens with `tensordot`, and with an `einsum` with two different letters for the same
        axis. The leading axes must be paired."""
        return torch.tensordot(query, key, dims=([-1], [-1]))


@all_dot_products.mistake_around
def divided_by_the_root(function):
    """You divide by √d_head, as attention does in chapter 3. Return the dot products undivided. Check one dot product
    by hand: (1, 2) · (3, 4) = 11."""

    @functools.wraps(function)
    def divided(query, key):
        return function(query, key) / query.shape[-1] ** 0.5

    return divided
