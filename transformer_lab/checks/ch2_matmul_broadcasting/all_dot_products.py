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
        "A product sums over the last axis of the left factor and the second-to-last axis of the right factor. Which "
        "axis of `key` is `d_head`, and which must it be?",
        "The last two axes of `key` have to change places, and no others. Count them from the end, so that it does not "
        "matter how many axes come before. `einsum` can name the axes instead.",
        "`query @ key.transpose(…, …)` or `torch.einsum('...qd,…->…', query, key)`",
    ),
)
def all_dot_products(query, key):
    """(..., q_len, d_head) and (..., k_len, d_head) to (..., q_len, k_len), whatever the leading axes."""
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

    def turned_afterwards(query, key):
        return (key @ query.mT).mT

    def folded_into_one_batch(query, key):
        q, k = (x.reshape(-1, *x.shape[-2:]) for x in (query, key))
        return torch.bmm(q, k.transpose(1, 2)).view(*query.shape[:-1], key.shape[-2])


@all_dot_products.property
def queries_and_keys_exchanged(function, query, key):
    """With queries and keys exchanged, the table is transposed."""
    return torch.allclose(function(key, query), function(query, key).mT, atol=1e-5)


@all_dot_products.property
def twice_as_long(function, query, key):
    """Queries that are twice as long have dot products that are twice as large."""
    return torch.allclose(function(2 * query, key), 2 * function(query, key), atol=1e-5)


@all_dot_products.property
def one_entry_of_its_own(function, query, key):
    """Row i of the table depends on query i alone: when another query changes, it stays."""
    changed = query.clone()
    changed[..., -1, :] += 1
    return torch.allclose(function(changed, key)[..., :-1, :], function(query, key)[..., :-1, :], atol=1e-5)


@all_dot_products.wrong
class Transposed:
    def not_transposed(query, key):
        """You multiply `query` by `key` as it is. A product sums over the last axis of the left and the second-to-last
        of the right, and there `key` has its positions, not its features. So it raises; were there as many keys as
        features, it would run and be wrong. Here 5 features were to meet 6 positions."""
        return query @ key

    def queries_transposed(query, key):
        """It is `query` that you transposed. Then the product sums over positions, and would give a table of features
        by features if the lengths agreed. The features must disappear: they have to be last in `query`, where they are,
        and second-to-last in `key`."""
        return query.mT @ key

    def keys_by_queries(query, key):
        """Your table has a row for every key and a column for every query: the transpose of what is asked for. Papers
        that keep vectors in columns write it that way, as KᵀQ. Here a row belongs to a query: which of the two stands
        on the left?"""
        return key @ query.mT

    def all_axes_reversed(query, key):
        """All axes of `key` are reversed, not the last two exchanged: with four axes that is (d_head, k_len, heads,
        batch). `.T` does it, and so it is right for matrices and for nothing else. Which two axes must change places,
        and which stay in front?"""
        return query @ key.permute(tuple(reversed(range(key.ndim))))  # key.T without its warning

    def axes_zero_and_one(query, key):
        """The first two axes of `key` change places, which is right for two matrices only. With leading axes in front,
        the first two are `batch` and `heads`. The docstring allows any leading axes: count the axes from the end."""
        return query @ key.transpose(0, 1)

    def axes_one_and_two(query, key):
        """The axes 1 and 2 of `key` change places. With three axes these are the right ones; with four they are heads
        and positions, and when the sizes happen to be equal nothing raises. The features are the last axis: count from
        the end."""
        return query @ key.transpose(1, 2)

    def axes_two_and_three(query, key):
        """{Right for four axes, and for no other number:} you count the axes from the left, as 2 and 3. The docstring
        allows any leading axes, also none. Counted from the end, the two axes have the same numbers everywhere."""
        return query @ key.transpose(2, 3)

    def two_axes_permuted(query, key):
        """`permute` wants the whole new order of the axes, and gets two numbers: it raises for any tensor that has
        leading axes. `transpose(-2, -1)` exchanges two axes and leaves the others."""
        return query @ key.permute(-1, -2)

    def three_axes_permuted(query, key):
        """`permute` wants to be told all axes, and you name three: right for one leading axis, and for no other number.
        `transpose(-2, -1)` exchanges the last two, however many there are."""
        return query @ key.permute(0, 2, 1)

    def four_axes_named(query, key):
        """{Right for four axes, and for no other number:} `permute` wants to be told all axes, and you name four. The
        docstring allows any leading axes, also none. There is an operation that exchanges two axes and leaves the
        others."""
        return query @ key.permute(0, 1, 3, 2)

    def cut_anew(query, key):
        """Your `key` gets the shape of a transposed matrix, but its numbers stay in their order: `view` and `reshape`
        cut the same row of numbers anew and never move an axis. The shapes fit, and every dot product mixes several
        keys. Exchanging two axes is another operation."""
        return query @ key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])


@all_dot_products.wrong
class Sums:
    def element_by_element(query, key):
        """`*` multiplies element by element and sums nothing. It raises, because 7 queries do not stand over 6 keys;
        with equal lengths it would return features, not dot products. You want every query with every key, and a sum
        over the features."""
        return query * key

    def product_of_elements_with_the_transposed(query, key):
        """`*` multiplies element by element, also with a transposed `key`. Here the sizes do not fit, and it raises.
        You want sums over the features: a matrix product, `@`."""
        return query * key.mT

    def pair_by_pair(query, key):
        """You compare query 0 with key 0, query 1 with key 1, and so on: `*` lines the positions up. It raises here,
        because the lengths differ; with equal lengths you would get the diagonal of the table. You want every query
        with every key."""
        return (query * key).sum(dim=-1)

    def pair_by_pair_by_vecdot(query, key):
        """`vecdot` compares query 0 with key 0, query 1 with key 1, and so on. It raises here, because the lengths
        differ; with equal lengths you would get the diagonal of the table. A matrix product compares every query with
        every key."""
        return torch.linalg.vecdot(query, key)

    def features_not_summed(query, key):
        """Every query meets every key, and the products of the single features are still there: your result has an axis
        of size d_head too many. A dot product is their sum. Over which axis?"""
        return query.unsqueeze(-2) * key.unsqueeze(-3)

    def summed_over_heads(query, key):
        """The axis in front of the positions is gone: you sum over it, so that the heads run into one another. In
        `einsum`, a letter that is missing after the arrow is summed over. Only the features may go."""
        return torch.einsum("...hqd,...hkd->...qk", query, key)

    def keys_of_all_heads(query, key):
        """Each query meets the keys of all heads, added up. In `einsum`, a letter that only one factor has, and not the
        result, is summed over. The axes in front need one and the same letter in both factors, or three dots."""
        return (
            query @ key.sum(-3, keepdim=True).mT if key.ndim > 2 else torch.einsum("...hqd,...gkd->...hqk", query, key)
        )

    def mean_of_products(query, key):
        """Every number is the dot product divided by d_head: that is the mean of the products, where a dot product is
        their sum. Check one by hand: (1, 2) · (3, 4) = 11, and not 5.5."""
        return (query.unsqueeze(-2) * key.unsqueeze(-3)).mean(dim=-1)

    def softmax_of_the_products(query, key):
        """Your rows sum to one: there is a softmax over the dot products. That is attention's next step, in chapter 3.
        Here the plain dot products are asked for, which may be negative and of any size."""
        return (query @ key.mT).softmax(dim=-1)

    def cosines_instead(query, key):
        """Your numbers lie between −1 and 1: they are cosines, the dot products of vectors that were first scaled to
        length 1. Here the lengths count. Check one by hand: (1, 2) · (3, 4) = 11."""
        return F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT

    def queries_with_themselves(query, key):
        """You compare the queries with the queries: `key` is never looked at. In self-attention both come from the same
        tokens, which is how one comes to write it. Here they are two tensors, of different length."""
        return query @ query.mT

    def new_axes_in_one_place(query, key):
        """Both get their new axis in the same place, so that queries and keys still stand one above the other. One of
        the two needs its new axis before its positions, the other after them: then every query meets every key."""
        return (query[..., None, :] * key[..., :, None]).sum(-1)

    def new_axes_side_by_side(query, key):
        """Both get their new axis at -2, so that queries still stand above keys. One of the two needs its new axis
        before its positions, at -3, the other after them, at -2: then every query meets every key."""
        return (query.unsqueeze(-2) * key.unsqueeze(-2)).sum(-1)

    def axes_for_two_matrices(query, key):
        """The new axes are counted from the left, and so they fit two matrices alone: with axes in front, they stand
        among those. Counted from the end, -2 and -3, they stand right for any number."""
        return (query.unsqueeze(1) * key.unsqueeze(0)).sum(-1)


@all_dot_products.wrong
class Letters:
    def two_letters(query, key):
        """Your letters name two axes, and there may be any number in front of them. `...` stands for all of these, on
        both sides of the arrow."""
        return torch.einsum("qd,kd->qk", query, key)

    def three_letters(query, key):
        """Your `einsum` names exactly three axes, and the docstring allows any leading axes: here there are four. Three
        dots in place of the leading letters, in both inputs and after the arrow, stand for as many axes as there
        are."""
        return torch.einsum("bqd,bkd->bqk", query, key)

    def four_letters(query, key):
        """{Right for four axes, and for no other number:} your `einsum` names `batch` and `heads` one by one. The
        docstring allows any leading axes, also none. Three dots in their place stand for as many axes as there are."""
        return torch.einsum("bhqd,bhkd->bhqk", query, key)

    def one_letter_for_both(query, key):
        """In your `einsum` the positions of queries and keys have the same letter. A letter in two inputs lines them
        up: query 0 with key 0, query 1 with key 1, and nothing else, which is the diagonal of the table. Give each of
        the two lengths a letter of its own, and let both stand after the arrow."""
        return torch.einsum("...qd,...qd->...q", query, key)

    def leading_axes_missing_after_the_arrow(query, key):
        """Your table is the sum over all leading axes: the three dots, or the letters, in front are missing after the
        arrow of `einsum`, and what is missing there is summed over. Each pair of matrices needs a table of its own."""
        return torch.einsum("...qd,...kd->qk", query, key)


@all_dot_products.wrong
class OtherProducts:
    def dot_of_two_vectors(query, key):
        """`torch.dot` takes two vectors and makes one number. Here are many of both, and each query meets each key: a
        matrix product makes all these numbers at once."""
        return torch.dot(query, key)

    def two_matrices_by_mm(query, key):
        """`torch.mm` takes two matrices, and refuses axes in front of them. `@` and `matmul` take any number; turn the
        last two axes of `key` alone."""
        return torch.mm(query, key.permute(*range(key.ndim - 1, -1, -1)))

    def last_axes_turned_for_mm(query, key):
        """`torch.mm` takes two matrices and nothing else; the docstring allows any leading axes, and here there are
        two. `@` and `matmul` do the same for any number."""
        return torch.mm(query, key.mT)

    def three_axes_by_bmm(query, key):
        """`torch.bmm` takes exactly three axes, and the docstring allows any leading axes: here there are four. `@`
        does the same for any number, and pairs the leading axes by itself."""
        return torch.bmm(query, key.mT)

    def tensordot_of_the_transposed(query, key):
        """`tensordot` with a number sums over the last axes of the left and the first axes of the right, and the first
        axis of `key` is a leading one. It also pairs no leading axes: it would combine all with all. `@` pairs them."""
        return torch.tensordot(query, key.mT, dims=1)

    def every_batch_with_every_batch(query, key):
        """You compare queries and keys of different sentences and heads too: your result has the leading axes of both,
        one after the other. `tensordot` does that, and an `einsum` with two letters for one axis. The leading axes must
        be paired."""
        return torch.tensordot(query, key, dims=([-1], [-1]))


@all_dot_products.mistake_around
def divided_by_the_root(function):
    """You divide by √d_head, as attention does. That comes in chapter 3; here the plain dot products are asked for.
    Check one by hand: (1, 2) · (3, 4) = 11."""

    @functools.wraps(function)
    def divided(query, key):
        return function(query, key) / query.shape[-1] ** 0.5

    return divided
