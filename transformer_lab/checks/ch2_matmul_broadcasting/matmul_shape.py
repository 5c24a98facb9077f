"""The shape of a product."""

import operator

import numpy as np
import torch

from ..exercise import exercise
from .broadcast_shape import (
    Aligned,
    Size,
    broadcast_shape,
    by_recursion,
    equal_or_stretched,
    from_the_end,
)


def _two_batches(draw):
    return (6, 1, 3, 4), (5, 4, 2)


def row_and_column(a, b):
    """Turn a vector on the left into a row, and a vector on the right into a column."""
    return (1, *a) if len(a) == 1 else tuple(a), (*b, 1) if len(b) == 1 else tuple(b)


def require_equal(k_left, k_right):
    """Compare the inner sizes, which must be equal."""
    if k_left != k_right:
        raise ValueError(f"the inner sizes must be equal, got {k_left} and {k_right}")


def ends_without_added_axes(a, b, rows, columns):
    """Keep the rows and the columns, but not the axes of size 1 that were added to vectors."""
    return (rows,) * (len(a) > 1) + (columns,) * (len(b) > 1)


@exercise(
    inputs=_two_batches,
    axes={},
    raises=ValueError,
    hints=(
        "In a product of two matrices, one size of the first must equal one size of the second. Which two sizes? And "
        "what happens to the axes further left?",
        "There are four steps: turn a vector into a row or a column, compare the two inner sizes, broadcast the batch "
        "axes with your `broadcast_shape`, and remove the axis that was added to a vector.",
        "`left = (1, *a) if len(a) == 1 else a`, `right = … if len(b) == 1 else b`, `if left[…] != right[…]: raise …`, "
        "`shape = broadcast_shape(left[:-2], right[:-2])`, then append `left[…]` if `a` was not a vector, and "
        "`right[…]` if `b` was not one",
    ),
)
def matmul_shape(
    a, b, *, matrices=row_and_column, inner=require_equal, batch=broadcast_shape.reference, ends=ends_without_added_axes
):
    """Return the shape of ``x @ y``, a tuple of int, from two non-empty shapes; raise `ValueError` if they do not
    fit."""
    left, right = matrices(a, b)
    inner(left[-1], right[-2])
    return (*batch(left[:-2], right[:-2]), *ends(a, b, left[-2], right[-1]))


matmul_shape.example("two matrices", (3, 4), (4, 2), plain=True)
matmul_shape.example("a batch and one matrix", (10, 3, 4), (4, 5), plain=True)
matmul_shape.example("one matrix and a batch", (3, 4), (10, 4, 5), plain=True)
matmul_shape.example("the scores of attention", (2, 8, 7, 64), (2, 8, 64, 9), plain=True)
matmul_shape.example("a square matrix", (2, 3, 4), (4, 4), plain=True)
matmul_shape.example("heads that share one set of keys", (2, 8, 7, 64), (2, 1, 64, 9))
matmul_shape.example("a batch of one on the left", (1, 3, 4), (10, 4, 5))
matmul_shape.example("two vectors", (4,), (4,))
matmul_shape.example("a matrix and a vector", (3, 4), (4,))
matmul_shape.example("a vector and a matrix", (4,), (4, 5))
matmul_shape.example("a batch and a vector", (10, 3, 4), (4,))
matmul_shape.example("a vector and a batch", (4,), (10, 4, 5))
matmul_shape.example("an inner size of 0", (3, 0), (0, 4))
matmul_shape.example("an empty batch", (0, 3, 4), (1, 4, 5))
matmul_shape.example("rows and columns of size 1", (2, 1, 4), (2, 4, 1))
matmul_shape.example("one row and a vector", (1, 4), (4,))
matmul_shape.example("a vector and one column", (4,), (4, 1))
matmul_shape.example("a batch of one and a vector", (1, 3, 4), (4,))
matmul_shape.example("inner sizes that differ", (3, 4), (3, 4))
matmul_shape.example("an inner size of 1 on the left", (3, 1), (4, 5))
matmul_shape.example("an inner size of 1 on the right", (3, 4), (1, 5))
matmul_shape.example("batch axes that do not fit", (2, 3, 4), (5, 4, 6))
matmul_shape.example("batch axes that fit only from the left", (2, 7, 3, 4), (2, 4, 6))
matmul_shape.example("vectors of different length", (3,), (4,))
matmul_shape.example("a vector as long as the matrix has rows", (3, 4), (3,))
matmul_shape.example("a vector as long as the matrix has columns", (4,), (3, 4))
matmul_shape.example("what looks like a batch of vectors", (10, 3, 4), (10, 4))
matmul_shape.example("what looks like a batch of vectors on the left", (10, 4), (10, 4, 5))


@matmul_shape.right
class RightAnswers:
    def by_multiplying_zeros(a, b):
        try:
            return (torch.zeros(a) @ torch.zeros(b)).shape
        except RuntimeError as error:
            raise ValueError("they do not fit") from error

    def by_numpys_matmul(a, b):
        return np.matmul(np.ones(a), np.ones(b)).shape

    def case_by_case(a, b):
        k = b[0] if len(b) == 1 else b[-2]
        if a[-1] != k:
            raise ValueError(f"{a[-1]} columns and {k} rows")
        if len(a) == 1 and len(b) == 1:
            return ()
        if len(b) == 1:
            return a[:-1]
        if len(a) == 1:
            return b[:-2] + b[-1:]
        return (*from_the_end(a[:-2], b[:-2]), a[-2], b[-1])

    def by_removing_axes(a, b):
        left, right = list(a), list(b)
        if len(a) == 1:
            left.insert(0, 1)
        if len(b) == 1:
            right.append(1)
        if left[-1] != right[-2]:
            raise ValueError("the inner sizes differ")
        shape = [*by_recursion(left[:-2], right[:-2]), left[-2], right[-1]]
        if len(b) == 1:
            del shape[-1]
        if len(a) == 1:
            del shape[-2 if len(b) > 1 else -1]
        return shape


def _inner_size(b):
    return b[-1] if len(b) == 1 else b[-2]


@matmul_shape.property
def transposed_product(function, a, b):
    """If you transpose both matrices and exchange them, the product is transposed: `(…, n, k) @ (…, k, m)` gives `(…,
    n, m)`, and `(…, m, k) @ (…, k, n)` gives `(…, m, n)`."""
    return _transposed(function(_transposed(b), _transposed(a))) == tuple(function(a, b))


@matmul_shape.property
def only_ends_matter(function, a, b):
    """The inner size does not appear in the result: if it is changed to 11, the result stays the same."""
    return tuple(function((*a[:-1], 11), (*b[:-2], 11, *b[-1:]) if len(b) > 1 else (11,))) == tuple(function(a, b))


def _transposed(shape):
    return (*shape[:-2], *shape[-2:][::-1])


@matmul_shape.wrong(stage="matrices")
class Matrices:
    def vectors_get_an_axis_in_front(a, b):
        """You treat a vector on the right as a row, so `(3, 4) @ (4,)` raises an error. In broadcasting a missing axis
        is added on the left, but a vector on the right of `@` becomes a column: its numbers are multiplied by the
        numbers in a row of the matrix."""
        return (1, *a) if len(a) == 1 else a, (1, *b) if len(b) == 1 else b

    def vectors_become_columns(a, b):
        """You treat a vector on the left as a column, so `(4,) @ (4, 5)` raises an error. A vector is a column only on
        the right of `@`. On the left it becomes a row: its numbers are multiplied by the numbers in a column of the
        matrix."""
        return (*a, 1) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b


@matmul_shape.wrong(stage="inner")
class Inner:
    def inner_sizes_not_compared(k_left, k_right):
        """You never compare the inner sizes: `(3, 4) @ (3, 4)` gives a shape, but must raise a `ValueError`. A row of
        the left factor must have as many numbers as a column of the right factor."""

    def inner_size_stretches(k_left, k_right):
        """You let an inner size of 1 pass: `(3, 1) @ (4, 5)` gives a shape, but must raise a `ValueError`. A 1
        stretches among the batch axes only. The product sums over the inner axes, so their sizes must be equal."""
        equal_or_stretched(k_left, k_right)


@matmul_shape.wrong(stage="batch")
class Batch:
    def batch_of_the_first(a, b):
        """You take the batch axes from the first shape alone. {This is right as long as the second shape is one matrix
        or has the same batch axes.} In `(6, 1, 3, 4) @ (5, 4, 2)` the 1 is over a 5: batch axes broadcast, as in an
        addition."""
        return a

    def batch_of_the_second(a, b):
        """You take the batch axes from the second shape alone, whatever the first shape is. In `(10, 3, 4) @ (4, 5)`
        the second shape has no batch axes, so the 10 is lost. Batch axes broadcast, as in an addition: use both
        shapes."""
        return b

    def the_longer_batch(a, b):
        """You take the batch axes of the shape that has more of them. In `(6, 1, 3, 4) @ (5, 4, 2)` this gives `(6,
        1)`, but the 1 is over a 5 and stretches. Batch axes broadcast, as in an addition: one column at a time."""
        return a if len(a) >= len(b) else b

    def batches_one_after_the_other(a, b):
        """Your result has the batch axes of both shapes, one after the other: every matrix of the left factor times
        every matrix of the right factor. NumPy's `dot` and `tensordot` do this. `@` pairs the batches instead: it
        aligns the batch axes from the right, and broadcasts them."""
        return (*a, *b)

    def batches_must_be_equal(a, b):
        """You raise an error if batch axes are not equal, as `torch.bmm` does. `@` broadcasts them, so that one matrix
        can be used for a whole batch. Compare the batch axes by the rule for additions."""
        if tuple(a) != tuple(b):
            raise ValueError(f"batch axes differ: {a} and {b}")
        return a

    def equal_or_no_batch(a, b):
        """You accept two cases: equal batch axes, and one shape without batch axes. `@` accepts more: `(6, 1, 3, 4) @
        (5, 4, 2)` has the batch axes `(6, 1)` and `(5,)`, which broadcast to `(6, 5)`. Use the whole rule for
        additions."""
        if a and b and tuple(a) != tuple(b):
            raise ValueError(f"batch axes differ: {a} and {b}")
        return a or b

    def batch_from_the_left(a, b):
        """Your batch axes are aligned from the left. Align them from the right, as in an addition: in `(6, 1, 3, 4)`
        and `(5, 4, 2)` the batch axes are `(6, 1)` and `(5,)`, and the 5 is under the 1. Cut off the two matrix axes
        first, and align what is left."""
        return broadcast_shape.reference(a, b, aligned=Aligned.aligned_from_the_left)

    def batches_never_refused(a, b):
        """You return the larger of two batch sizes, whatever they are: 2 over 5 gives 5, but must raise a `ValueError`,
        as in an addition; 1 over 0 gives 1, but must give 0. If you call your own `broadcast_shape`, has it passed its
        check?"""
        return broadcast_shape.reference(a, b, size=Size.always_the_larger)


@matmul_shape.wrong(stage="ends")
class Ends:
    def added_axes_kept(a, b, rows, columns):
        """With a vector your result has one axis of size 1 too many: `(3, 4) @ (4,)` gives `(3, 1)`. The vector became
        a matrix for the product; remove the added axis afterwards, so that the result is `(3,)`."""
        return rows, columns

    def all_axes_of_size_one_removed(a, b, rows, columns):
        """You remove every axis of size 1 among the last two, even one that was there before: `(2, 1, 4) @ (2, 4, 1)`
        must stay `(2, 1, 1)`. Remove only the axis that you added to a vector. Test how many axes the shape had, not
        how large they are."""
        return tuple(size for size in (rows, columns) if size != 1)

    def rows_and_columns_exchanged(a, b, rows, columns):
        """The last two sizes of your result are exchanged: `(3, 4) @ (4, 2)` is `(3, 2)`, but you return `(2, 3)`. A
        row of the result belongs to a row of the left matrix. Which shape gives which size?"""
        return ends_without_added_axes(b, a, columns, rows)

    def dot_product_keeps_an_axis(a, b, rows, columns):
        """Two vectors give a single number, whose shape is `()`; your result has an axis of size 1 left. You added an
        axis to each vector for the product: remove both."""
        return ends_without_added_axes(a, b, rows, columns) or (1,)

    def length_of_the_vector_kept(a, b, rows, columns):
        """A vector on the right leaves its length in your result: `(3, 4) @ (4,)` gives `(3, 4)`, but should give
        `(3,)`. The last size of a vector is its only size, and the product sums over that axis. No axis of the vector
        remains."""
        return ends_without_added_axes(a, (1, *b), rows, b[-1])


@matmul_shape.wrong
class Vectors:
    def no_vectors(a, b):
        """Your function fails for a shape with a single axis: there is no second-to-last size to read. `@` turns a
        vector into a row on the left and into a column on the right, and removes the added axis at the end. Add the
        axis before you read any size."""
        require_equal(a[-1], b[-2])
        return (*broadcast_shape.reference(a[:-2], b[:-2]), a[-2], b[-1])

    def vectors_refused(a, b):
        """Your function accepts only shapes of two or more axes. `@` accepts vectors as well: on the left a vector
        becomes a row, on the right a column, and the added axis is removed at the end."""
        if 1 in (len(a), len(b)):
            raise ValueError("matrices only")
        return matmul_shape.reference(a, b)

    def vectors_not_compared(a, b):
        """With a vector you return a shape without comparing sizes: `(3,) @ (4,)` must raise a `ValueError`. The cases
        with vectors have an inner axis as well. Compare the inner sizes before you distinguish the cases."""
        left, right = row_and_column(a, b)
        if 1 not in (len(a), len(b)):
            require_equal(left[-1], right[-2])
        return matmul_shape.reference(a, b, inner=lambda *sizes: None)

    def two_vectors_not_compared(a, b):
        """Two vectors always give `()`, whatever their lengths: `(3,) @ (4,)` must raise a `ValueError`. The two
        vectors of a dot product must be equally long."""
        return () if len(a) == len(b) == 1 else matmul_shape.reference(a, b)

    def vector_on_the_right_not_compared(a, b):
        """With a vector on the right you return a shape without comparing sizes: `(3, 4) @ (3,)` must raise a
        `ValueError`. A row of the matrix must have as many numbers as the vector; otherwise there is no product."""
        return a[:-1] if len(b) == 1 < len(a) else matmul_shape.reference(a, b)

    def vector_on_the_left_not_compared(a, b):
        """With a vector on the left you return a shape without comparing sizes: `(4,) @ (3, 4)` must raise a
        `ValueError`. A column of the matrix must have as many numbers as the vector; otherwise there is no product."""
        return (*b[:-2], b[-1]) if len(a) == 1 < len(b) else matmul_shape.reference(a, b)

    def vector_against_the_first_axis(a, b):
        """A vector on the left is compared with the first axis of the other shape. This is right for a matrix; with
        batch axes in front, the first axis is a batch axis. The axis to compare is always the second to last."""
        if len(a) == 1 and len(b) > 1:
            if a[0] != b[0]:
                raise ValueError
            return tuple(b[1:])
        return matmul_shape.reference(a, b)

    def batch_of_vectors(a, b):
        """You treat `(10, 3, 4) @ (10, 4)` as ten matrices and ten vectors. `@` has no batch of vectors: two axes are
        always one matrix, here with 10 rows, and the inner sizes 4 and 10 differ. Raise a `ValueError`; ten vectors
        need the shape `(10, 4, 1)`."""
        if len(b) > 1 and tuple(a[:-2]) == tuple(b[:-1]) and a[-1] == b[-1]:
            return tuple(a[:-1])
        return matmul_shape.reference(a, b)

    def batch_lost_with_a_vector(a, b):
        """With a vector, the batch axes are lost: `(10, 3, 4) @ (4,)` is `(10, 3)`, but your shape has one size only. A
        vector is multiplied by every matrix of a batch: all axes stay except the inner one."""
        shape = matmul_shape.reference(a, b)
        return shape[-1:] if 1 in (len(a), len(b)) else shape

    def batch_lost_with_a_vector_on_the_left(a, b):
        """With a vector on the left, the batch axes are lost: `(4,) @ (10, 4, 5)` is `(10, 5)`, but your shape is
        `(5,)`. A vector is multiplied by every matrix of a batch: all axes stay except the inner one."""
        shape = matmul_shape.reference(a, b)
        return shape[-1:] if len(a) == 1 else shape

    def all_axes_of_size_one_removed_with_a_vector(a, b):
        """With a vector you remove all axes of size 1, even those that were there before, as a bare `squeeze()` does:
        `(1, 3, 4) @ (4,)` must stay `(1, 3)`. Remove only the axis that you added to the vector: you know its place."""
        shape = matmul_shape.reference(a, b)
        return tuple(size for size in shape if size != 1) if 1 in (len(a), len(b)) else shape

    def first_axis_of_size_one_removed(a, b):
        """You remove the first 1 in the shape, but a batch axis may have size 1 as well. `list.remove` removes the
        first equal value. Remove the axis by its place: the second to last for a vector on the left, the last for a
        vector on the right."""
        shape = list(matmul_shape.reference(a, b, ends=Ends.added_axes_kept))
        for _ in range((len(a) == 1) + (len(b) == 1)):
            shape.remove(1)
        return tuple(shape)

    def first_axis_removed(a, b):
        """With a vector on the left you remove the first axis of the result. But the axis that you added to the vector
        is the second-to-last, after the batch: `(4,) @ (10, 4, 5)` is `(10, 5)`, and the 10 must stay."""
        shape = matmul_shape.reference(a, b, ends=Ends.added_axes_kept)
        return shape[len(a) == 1 : len(shape) - (len(b) == 1)]

    def both_axes_removed_in_the_wrong_order(a, b):
        """Two vectors make your function raise an error: you remove the last axis first, and then there may be no
        second-to-last axis. Remove the two axes in the opposite order, or build the shape without them."""
        shape = list(matmul_shape.reference(a, b, ends=Ends.added_axes_kept))
        if len(b) == 1:
            shape.pop(-1)
        if len(a) == 1:
            shape.pop(-2)
        return tuple(shape)

    def dot_product_as_a_number(a, b):
        """For two vectors you return a number, the length of the vectors. The product of two vectors is a number, whose
        shape is the empty tuple, `()`."""
        shape = matmul_shape.reference(a, b)
        return a[0] if len(a) == len(b) == 1 else shape


@matmul_shape.wrong
class Axes:
    def inner_sizes_cut_off(a, b):
        """You drop the last size of `a` and append the last size of `b`. This is right for two matrices that fit. But
        inner sizes that differ must raise a `ValueError`, a vector on the right appends no size, and the batch axes of
        `b` count as well. Handle these three cases."""
        return (*a[:-1], *b[-1:])

    def first_axis_of_the_second(a, b):
        """You sum over the first axis of the second shape. For two matrices that is right, since the first axis is the
        second-to-last. With batch axes in front, the first axis is a batch axis: count from the end."""
        require_equal(a[-1], b[0])
        return (*a[:-1], *b[1:])

    def last_axes_of_both(a, b):
        """You sum over the last axis of both shapes. `@` sums over the last axis of the left factor and the
        second-to-last axis of the right factor: a row is multiplied by a column."""
        if a[-1] != b[-1]:
            raise ValueError(f"last axes differ: {a[-1]} and {b[-1]}")
        return (*broadcast_shape.reference(a[:-2], b[:-2]), *a[-2:-1], *b[-2:-1])

    def rows_against_columns(a, b):
        """You compare the number of rows on the left with the number of columns on the right, and keep the two inner
        sizes. The rule is the reverse: the inner two sizes must be equal, and the outer two stay."""
        left, right = row_and_column(a, b)
        require_equal(left[-2], right[-1])
        return (*broadcast_shape.reference(left[:-2], right[:-2]), left[-1], right[-2])

    def as_in_an_addition(a, b):
        """You broadcast all axes as in an addition, even the last two. In a product the last two axes are matrices: the
        left matrix must have as many columns as the right matrix has rows, and this size is not in the result."""
        return broadcast_shape.reference(a, b)

    def axes_of_both_as_np_dot(a, b):
        """Your result has the batch axes of both shapes, one after the other, as `np.dot` returns them: every matrix of
        `a` times every matrix of `b`. `@` pairs the matrices: batch axes broadcast, as in an addition."""
        if a[-1] != _inner_size(b):
            raise ValueError(f"the inner sizes must be equal, got {a[-1]} and {_inner_size(b)}")
        return tuple(a[:-1]) + tuple(b[:-2]) + tuple(b[-1:] if len(b) > 1 else ())

    def list_added_to_a_tuple(a, b):
        """You add a list to a tuple: `+` joins a tuple only to another tuple. Write the last two sizes in round
        brackets, or unpack the batch axes with a star in front."""
        if a[-1] != b[-2]:
            raise ValueError
        return operator.add(broadcast_shape.reference(a[:-2], b[:-2]), [a[-2], b[-1]])

    def none_for_no_fit(a, b):
        """For shapes that do not fit, your function returns `None`; the task asks for a `ValueError`. The caller would
        go on with `None` in place of a shape, and fail later, somewhere else. Write `raise ValueError(…)` with a text
        that names the two sizes."""
        try:
            return matmul_shape.reference(a, b)
        except ValueError:
            return None
