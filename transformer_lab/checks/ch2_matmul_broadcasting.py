"""Chapter 2: which shapes fit, what comes out, and the products of rows that attention is made of."""

from itertools import zip_longest

import numpy as np
import torch
from torch.nn import functional as F

from .exercise import exercise

# The shape of a sum


def _two_shapes(draw):
    return (1, 1, 5), (3, 1)  # chosen so that these fit from the left as well, and give something else


def ones_in_front(a, b):
    axes = max(len(a), len(b))
    a, b = ((1,) * (axes - len(shape)) + tuple(shape) for shape in (a, b))
    return list(zip(a, b))


def equal_or_stretched(m, n):
    if m != n and 1 not in (m, n):
        raise ValueError(f"sizes over one another must be equal, or one of them 1, got {m} and {n}")
    return n if m == 1 else m


@exercise(
    inputs=_two_shapes,
    axes={},
    raises=ValueError,
    hints=(
        "Write the two shapes one over the other. Which ends stand over one another, and what is where one is shorter?",
        "First give both shapes the same number of axes: ones, on the side where axes are missing. Then go from column "
        "to column. Three cases give a size (the two are equal, the first is 1, the second is 1); all others raise.",
        "`a = (1,) * … + a`, the same for `b`, then `for m, n in zip(a, b): if … elif … else: raise ValueError(…)`",
    ),
)
def broadcast_shape(a, b, *, aligned=ones_in_front, size=equal_or_stretched):
    """Shape of ``x + y``. Shapes, tuples of int, to a tuple of int; `ValueError` where they do not fit."""
    return tuple(size(m, n) for m, n in aligned(a, b))


broadcast_shape.example("a second shape with more axes", (7, 1), (1, 1, 2), plain=True)
broadcast_shape.example("a vector and a column", (8,), (8, 1), plain=True)
broadcast_shape.example("equal shapes", (2, 7, 5), (2, 7, 5), plain=True)
broadcast_shape.example("an axis that stretches in each shape", (4, 1, 3), (5, 1))
broadcast_shape.example("a column and a row", (7, 1), (1, 5), plain=True)
broadcast_shape.example("one row and many", (1, 5), (7, 5))
broadcast_shape.example("a vector for every token", (2, 7, 5), (5,))
broadcast_shape.example("a vector in front of a batch", (5,), (2, 7, 5))
broadcast_shape.example("the empty shape of a number", (2, 3), ())
broadcast_shape.example("the empty shape in front", (), (2, 3))
broadcast_shape.example("two empty shapes", (), ())
broadcast_shape.example("size 1 over size 0", (3, 1), (0,))
broadcast_shape.example("size 0 over size 1", (0,), (3, 1))
broadcast_shape.example("size 0 in both", (0, 4), (0, 1))
broadcast_shape.example("shapes that do not fit", (2, 3), (2,))
broadcast_shape.example("a shorter shape in front that does not fit", (5,), (7, 3))
broadcast_shape.example("one axis in the middle that does not fit", (4, 7, 5), (4, 3, 5))
broadcast_shape.example("a first axis that does not fit", (3, 7, 5), (4, 7, 5))
broadcast_shape.example("a size that is a multiple of the other", (6, 4), (3, 4))
broadcast_shape.example("a size that divides the other", (3, 4), (6, 4))
broadcast_shape.example("size 0 over size 2", (3, 0), (3, 2))
broadcast_shape.example("size 2 over size 0", (3, 2), (3, 0))


@broadcast_shape.equivalent
def from_the_end(a, b):
    result = []
    for i in range(1, max(len(a), len(b)) + 1):
        m = a[-i] if i <= len(a) else 1
        n = b[-i] if i <= len(b) else 1
        if m == n or n == 1:
            result.insert(0, m)
        elif m == 1:
            result.insert(0, n)
        else:
            raise ValueError("they do not fit")
    return tuple(result)


@broadcast_shape.equivalent
def by_zip_longest(a, b):
    columns = [set(column) - {1} for column in zip_longest(a[::-1], b[::-1], fillvalue=1)]
    if any(len(sizes) > 1 for sizes in columns):
        raise ValueError("more than one size in a column")
    return tuple(sizes.pop() if sizes else 1 for sizes in columns[::-1])


@broadcast_shape.equivalent
def by_recursion(a, b):
    if not a or not b:
        return a or b
    if a[-1] != b[-1] and a[-1] != 1 and b[-1] != 1:
        raise ValueError(f"{a[-1]} and {b[-1]}")
    return (*by_recursion(a[:-1], b[:-1]), b[-1] if a[-1] == 1 else a[-1])


@broadcast_shape.equivalent
def by_pytorch(a, b):
    try:
        return torch.broadcast_tensors(torch.zeros(a), torch.zeros(b))[0].shape
    except RuntimeError as error:
        raise ValueError(f"{a} and {b} do not broadcast") from error


@broadcast_shape.equivalent
def by_numpy(a, b):
    return np.broadcast_shapes(a, b)


@broadcast_shape.mistake(part="aligned")
def aligned_from_the_left(a, b):
    """Your shapes are aligned from the left: the axes that the shorter one lacks are counted as missing at its end. One
    reads from the left, and so writes so; but a vector added to a table stands under the table's last axis. Write the
    two shapes on paper with their right ends under one another: where are the ones missing?"""
    axes = max(len(a), len(b))
    a, b = (tuple(shape) + (1,) * (axes - len(shape)) for shape in (a, b))
    return list(zip(a, b))


@broadcast_shape.mistake(part="aligned")
def cut_to_the_shorter(a, b):
    """The axes that only one of the two shapes has are lost: your result has as many axes as the shorter shape. That is
    what `zip` does, it stops where the first of its inputs ends. An axis that is missing in one shape counts as 1
    there, so the result has as many axes as the longer shape."""
    return list(zip(a[::-1], b[::-1]))[::-1]


@broadcast_shape.mistake(part="aligned")
def paired_from_the_left_and_cut(a, b):
    """Two things at once: your axes are paired from the left, and what the longer shape has more is lost at its end.
    `zip` on two shapes as they are does both. Shapes are aligned from the right, and an axis that is missing counts as
    1: make them equally long first."""
    return list(zip(a, b))


@broadcast_shape.mistake(part="aligned")
def back_to_front(a, b):
    """Your sizes come in the opposite order, the last axis first. One goes through the shapes from the right and
    collects the sizes on the way; whoever does that must turn the list round at the end."""
    return ones_in_front(a, b)[::-1]


@broadcast_shape.mistake(part="aligned")
def only_the_second_filled(a, b):
    """The first shape is taken to be the longer one: when the second has more axes, the result is wrong or axes are
    lost. Ones are put in front of `b` only, and a negative number of ones is none at all, without an error. Either
    shape can be the shorter one."""
    return list(zip(a, (1,) * (len(a) - len(b)) + tuple(b)))


@broadcast_shape.mistake(part="aligned")
def only_the_axes_of_the_first(a, b):
    """Your result always has as many axes as `a`: what `b` has more in front is lost. That happens when the loop counts
    the axes of one shape only. Which of the two is longer is not known before; how many axes does the result have?"""
    return [(m, b[-i] if i <= len(b) else 1) for i, m in zip(range(len(a), 0, -1), a)]


@broadcast_shape.mistake(part="aligned")
def missing_axes_are_read(a, b):
    """Your function reads an axis that the shorter shape does not have, hence the `IndexError`. The loop runs over the
    axes of the longer shape, and `shape[-3]` of a shape with two axes is no size. A missing axis counts as 1: say so
    before it is read."""
    return [(a[-i], b[-i]) for i in range(max(len(a), len(b)), 0, -1)]


@broadcast_shape.mistake(part="size")
def always_the_larger(m, n):
    """You take the larger of the two sizes, whatever they are. It is right for equal sizes, and for a 1 with a larger
    size, which is all one tries at first. But 3 over 2 does not fit and must raise a `ValueError`, and a 1 over a 0
    gives 0, not 1."""
    return max(m, n)


@broadcast_shape.mistake(part="size")
def the_larger_once_they_fit(m, n):
    """Everything is right but a size of 0: a 1 over a 0 gives 0 (the 1 is repeated no times), and you return 1. You
    check that the sizes fit and then take the larger one. The rule is not about which is larger: what becomes of a
    1?"""
    equal_or_stretched(m, n)
    return max(m, n)


@broadcast_shape.mistake(part="size")
def zero_stretches(m, n):
    """A size of 0 stretches in your function, as a 1 does: 0 over 2 comes out as 2. A 1 can be repeated two times, and
    nothing that is repeated gives 0 the size 2. Look at your condition: which sizes does it let pass, `1` alone or all
    that are small or count as false?"""
    if n > 1 and m > 1 and m != n:
        raise ValueError(f"{m} and {n} do not fit")
    return n if m <= 1 else m


@broadcast_shape.mistake(part="size")
def the_second_wins(m, n):
    """Shapes that do not fit come out as a shape, where a `ValueError` must be raised: 3 over 2 gives 2. Where neither
    size is 1, you return the one of `b` without a look at the one of `a`. The two must be equal then: say what happens
    when they are not."""
    return m if n == 1 else n


@broadcast_shape.mistake(part="size")
def the_first_wins(m, n):
    """Shapes that do not fit come out as a shape, where a `ValueError` must be raised: 3 over 2 gives 3. Where neither
    size is 1, you return the one of `a` without a look at the one of `b`. The two must be equal then: say what happens
    when they are not."""
    return n if m == 1 else m


@broadcast_shape.mistake(part="size")
def nothing_stretches(m, n):
    """Your function accepts equal sizes only, and raises where a 1 stands over another size. That a 1 stretches is what
    broadcasting is for: a column `(8, 1)` and a row `(8,)` give `(8, 8)`. A `ValueError` is for two sizes that differ
    and of which neither is 1."""
    if m != n:
        raise ValueError(f"{m} and {n} differ")
    return m


@broadcast_shape.mistake(part="size")
def only_the_second_stretches(m, n):
    """A 1 in the second shape stretches, a 1 in the first raises. Either of the two shapes can have the 1, and
    an addition has the same shape in either order. Try your function with its arguments exchanged."""
    if n not in (1, m):
        raise ValueError(f"{n} does not stretch to {m}")
    return m


@broadcast_shape.mistake(part="size")
def only_the_first_stretches(m, n):
    """A 1 in the first shape stretches, a 1 in the second raises. Either of the two shapes can have the 1, and
    an addition has the same shape in either order. Try your function with its arguments exchanged."""
    if m not in (1, n):
        raise ValueError(f"{m} does not stretch to {n}")
    return n


@broadcast_shape.mistake(part="size")
def multiples_stretch(m, n):
    """You let 3 stretch to 6, because it fits twice. Broadcasting does not tile: it repeats one number along an axis,
    and only an axis of size 1 has no more than one to repeat. 3 over 6 must raise a `ValueError`."""
    if m != n and min(m, n) == 0:
        return equal_or_stretched(m, n)
    if m != n and max(m, n) % min(m, n):
        raise ValueError(f"{m} is no multiple of {n}")
    return max(m, n)


@broadcast_shape.mistake(part="size")
def asserted(m, n):
    """Where shapes do not fit, your function stops with an `AssertionError`; the task asks for a `ValueError`. An
    `assert` is for what can never be false, and Python leaves it out when it runs with `-O`. For wrong arguments, write
    a condition and `raise`."""
    assert m == n or m == 1 or n == 1
    return n if m == 1 else m


@broadcast_shape.mistake
def none_for_no_fit(a, b):
    """For shapes that do not fit your function returns `None`; the task asks for a `ValueError`. Whoever calls it would
    go on with `None` in place of a shape, and fail somewhere else, later. Write `raise ValueError(…)` with a text that
    names the two sizes."""
    try:
        return broadcast_shape.reference(a, b)
    except ValueError:
        return None


@broadcast_shape.mistake
def false_for_no_fit(a, b):
    """For shapes that do not fit your function returns `False`; the task asks for a `ValueError`. Whoever calls it
    would go on with `False` in place of a shape, and fail somewhere else, later. Write `raise ValueError(…)` with a
    text that names the two sizes."""
    try:
        return broadcast_shape.reference(a, b)
    except ValueError:
        return False


@broadcast_shape.mistake
def error_of_an_addition(a, b):
    """You add two tensors and look at the shape. The answers are right; but for shapes that do not fit PyTorch raises a
    `RuntimeError`, and the task asks for a `ValueError`. Written out, the rule takes five lines, and you will need it
    on paper, where there are no tensors."""
    return tuple((torch.empty(a) + torch.empty(b)).shape)


@broadcast_shape.mistake
def the_longer_shape(a, b):
    """You return the shape that has more axes, as it is. It is right as long as only the shorter one stretches. Here a
    1 of the longer shape stands over another size, and stretches too: go through the sizes one column at a time."""
    broadcast_shape.reference(a, b)
    return a if len(a) >= len(b) else b


@broadcast_shape.mistake
def the_longer_shape_or_the_second(a, b):
    """You return the shape that has more axes, as it is, or the second if they have as many. It is right as long as
    only the other one stretches. Here a 1 of the longer shape stands over another size, and stretches too: go through
    the sizes one column at a time."""
    broadcast_shape.reference(a, b)
    return a if len(a) > len(b) else b


@broadcast_shape.mistake(part="aligned")
def as_many_axes_in_both(a, b):
    """Your function accepts shapes with equally many axes only. That an axis may be missing is half of the rule: a
    vector `(8,)` can be added to a column `(8, 1)`. Missing axes count as 1; on which side are they missing?"""
    if len(a) != len(b):
        raise ValueError("not as many axes")
    return list(zip(a, b))


@broadcast_shape.property
def _either_order(function, a, b):
    """The order of the two shapes does not matter: `broadcast_shape(a, b)` and `broadcast_shape(b, a)` are the same."""
    return tuple(function(a, b)) == tuple(function(b, a))


@broadcast_shape.property
def _with_itself(function, a, b):
    """A shape with itself gives that shape."""
    return tuple(function(a, a)) == tuple(a) and tuple(function(b, b)) == tuple(b)


@broadcast_shape.property
def _as_long_as_the_longer(function, a, b):
    """The result has as many axes as the longer of the two shapes."""
    return len(function(a, b)) == max(len(a), len(b))


# The shape of a product


def _two_batches(draw):
    return (6, 1, 3, 4), (5, 4, 2)


def row_and_column(a, b):
    return (1, *a) if len(a) == 1 else tuple(a), (*b, 1) if len(b) == 1 else tuple(b)


def must_agree(k_left, k_right):
    if k_left != k_right:
        raise ValueError(f"the inner sizes must be equal, got {k_left} and {k_right}")


def without_added_axes(a, b, rows, columns):
    return (rows,) * (len(a) > 1) + (columns,) * (len(b) > 1)


@exercise(
    inputs=_two_batches,
    axes={},
    raises=ValueError,
    hints=(
        "A product of two matrices needs one size of each to agree. Which? And what happens to the axes further left?",
        "Four steps: a vector becomes a row or a column; the two inner sizes are compared; the batch axes broadcast, "
        "which your `broadcast_shape` can do; and the axis that a vector was given is taken away again.",
        "`left = (1, *a) if len(a) == 1 else a`, `right = … if len(b) == 1 else b`, `if left[…] != right[…]: raise …`, "
        "`shape = broadcast_shape(left[:-2], right[:-2])`, then append `left[…]` if `a` was no vector, and `right[…]` "
        "if `b` was none",
    ),
)
def matmul_shape(
    a, b, *, matrices=row_and_column, inner=must_agree, batch=broadcast_shape.reference, ends=without_added_axes
):
    """Shape of ``x @ y``. Shapes of one axis or more to a tuple of int; `ValueError` where they do not fit."""
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


@matmul_shape.equivalent
def by_trying(a, b):
    try:
        return (torch.zeros(a) @ torch.zeros(b)).shape
    except RuntimeError as error:
        raise ValueError("they do not fit") from error


@matmul_shape.equivalent
def by_numpys_matmul(a, b):
    return np.matmul(np.ones(a), np.ones(b)).shape


@matmul_shape.equivalent
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


@matmul_shape.equivalent
def by_removing_axes(a, b):
    left, right = list(a), list(b)
    if len(a) == 1:
        left.insert(0, 1)
    if len(b) == 1:
        right.append(1)
    if left[-1] != right[-2]:
        raise ValueError("inner")
    shape = [*by_recursion(left[:-2], right[:-2]), left[-2], right[-1]]
    if len(b) == 1:
        del shape[-1]
    if len(a) == 1:
        del shape[-2 if len(b) > 1 else -1]
    return shape


@matmul_shape.mistake(part="matrices")
def vectors_get_an_axis_in_front(a, b):
    """A vector on the right is taken for a row: `(3, 4) @ (4,)` is refused. In broadcasting a missing axis stands at
    the left, and you do the same here. A vector on the right of `@` becomes a column: its numbers meet those of a row
    of the matrix."""
    return (1, *a) if len(a) == 1 else a, (1, *b) if len(b) == 1 else b


@matmul_shape.mistake(part="matrices")
def vectors_become_columns(a, b):
    """A vector on the left is taken for a column: `(4,) @ (4, 5)` is refused. It is a column where it stands on the
    right. On the left it becomes a row, so that its numbers meet those of a column of the matrix."""
    return (*a, 1) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b


@matmul_shape.mistake(part="inner")
def inner_sizes_not_compared(k_left, k_right):
    """You never compare the inner sizes: `(3, 4) @ (3, 4)` gives a shape, where a `ValueError` must be raised. In the
    result the inner axis is gone, which makes it easy to forget. A row of the left must have as many numbers as a
    column of the right."""


@matmul_shape.mistake(part="inner")
def inner_size_stretches(k_left, k_right):
    """You let an inner size of 1 pass: `(3, 1) @ (4, 5)` gives a shape, where a `ValueError` must be raised. A 1
    stretches among the batch axes only. The inner axis is summed over, and the two sizes must be equal there."""
    equal_or_stretched(k_left, k_right)


@matmul_shape.mistake(part="batch")
def batch_of_the_first(a, b):
    """You take the batch axes from the first shape alone. That is right as long as the second is one matrix or has the
    same batch axes. In `(6, 1, 3, 4) @ (5, 4, 2)` the 1 stands over a 5: batch axes broadcast, as in an addition."""
    return a


@matmul_shape.mistake(part="batch")
def batch_of_the_second(a, b):
    """You take the batch axes from the second shape alone, whatever the first one has. In `(10, 3, 4) @ (4, 5)` the
    second has none, and the 10 is lost. Batch axes broadcast, as in an addition: both shapes have a say."""
    return b


@matmul_shape.mistake(part="batch")
def the_longer_batch(a, b):
    """You take the batch axes of the shape that has more of them. In `(6, 1, 3, 4) @ (5, 4, 2)` that gives `(6, 1)`,
    but the 1 stands over a 5 and stretches. Batch axes broadcast, as in an addition: one column at a time."""
    return a if len(a) >= len(b) else b


@matmul_shape.mistake(part="batch")
def batches_one_after_the_other(a, b):
    """Your result has the batch axes of both, one after the other: every matrix of the left times every matrix of the
    right. NumPy's `dot` and `tensordot` do that. `@` pairs the batches instead: they are aligned from the right, and
    broadcast."""
    return (*a, *b)


@matmul_shape.mistake(part="batch")
def batches_must_be_equal(a, b):
    """You refuse batch axes that are not equal. `torch.bmm` is as strict as that; `@` lets them broadcast, so that one
    matrix can be used for a whole batch. Compare them by the rule for additions."""
    if tuple(a) != tuple(b):
        raise ValueError(f"batch axes differ: {a} and {b}")
    return a


@matmul_shape.mistake(part="batch")
def equal_or_no_batch(a, b):
    """You know two cases: equal batch axes, and one shape that has none. `@` knows more: `(6, 1, 3, 4) @ (5, 4, 2)` has
    the batch axes `(6, 1)` and `(5,)`, which broadcast to `(6, 5)`. Use the rule for additions, all of it."""
    if a and b and tuple(a) != tuple(b):
        raise ValueError(f"batch axes differ: {a} and {b}")
    return a or b


@matmul_shape.mistake(part="batch")
def batch_from_the_left(a, b):
    """Your batch axes are aligned from the left. They are aligned from the right, as in an addition: in `(6, 1, 3, 4)`
    and `(5, 4, 2)` the batch axes are `(6, 1)` and `(5,)`, and the 5 stands under the 1. Whether a batch axis is
    missing shows once the two matrix axes are cut off."""
    return broadcast_shape.reference(a, b, aligned=aligned_from_the_left)


@matmul_shape.mistake(part="batch")
def batches_never_refused(a, b):
    """Of two batch sizes you take the larger, whatever they are: 2 over 5 gives 5, and must raise a `ValueError`, as in
    an addition; 1 over 0 gives 1, and must give 0. If `broadcast_shape` does this part, has yours passed its check?"""
    return broadcast_shape.reference(a, b, size=always_the_larger)


@matmul_shape.mistake(part="ends")
def added_axes_stay(a, b, rows, columns):
    """With a vector your result has an axis of size 1 too many: `(3, 4) @ (4,)` gives `(3, 1)`. The vector was made a
    matrix for the product; afterwards the axis that it was given goes again, and the result is `(3,)`."""
    return rows, columns


@matmul_shape.mistake(part="ends")
def all_ones_go(a, b, rows, columns):
    """Of the last two axes you remove each that has size 1, also one that was there before: `(2, 1, 4) @ (2, 4, 1)`
    must stay `(2, 1, 1)`. Only the axis that a vector was given goes again. Ask how many axes the shape had, not how
    large they are."""
    return tuple(size for size in (rows, columns) if size != 1)


@matmul_shape.mistake(part="ends")
def rows_and_columns_exchanged(a, b, rows, columns):
    """The last two sizes of your result are exchanged: `(3, 4) @ (4, 2)` is `(3, 2)`, and you return `(2, 3)`. A row of
    the result belongs to a row of the left matrix. Which shape gives which size?"""
    return without_added_axes(b, a, columns, rows)


@matmul_shape.mistake(part="ends")
def dot_product_keeps_an_axis(a, b, rows, columns):
    """Two vectors give a single number, whose shape is `()`; yours has an axis of size 1 left. Both vectors were given
    an axis for the product, and both of these go again."""
    return without_added_axes(a, b, rows, columns) or (1,)


@matmul_shape.mistake(part="ends")
def length_of_the_vector_stays(a, b, rows, columns):
    """A vector on the right leaves its length in your result: `(3, 4) @ (4,)` gives `(3, 4)`, and should give `(3,)`.
    Its last size is also its only one, the one that is summed over. Nothing of the vector remains."""
    return without_added_axes(a, (1, *b), rows, b[-1])


@matmul_shape.mistake
def every_one_removed(a, b):
    """With a vector you remove all axes of size 1, also those that were there before: `(1, 3, 4) @ (4,)` must stay `(1,
    3)`. That is what a bare `squeeze()` does. Only the axis that the vector was given goes again, and you know where it
    stands."""
    shape = matmul_shape.reference(a, b)
    return tuple(size for size in shape if size != 1) if 1 in (len(a), len(b)) else shape


@matmul_shape.mistake
def first_axis_removed(a, b):
    """With a vector on the left you remove the first axis of the result. The row that the vector was made of is the
    second-to-last axis, behind the batch: `(4,) @ (10, 4, 5)` is `(10, 5)`, and the 10 must stay."""
    left, right = row_and_column(a, b)
    must_agree(left[-1], right[-2])
    shape = (*broadcast_shape.reference(left[:-2], right[:-2]), left[-2], right[-1])
    return shape[len(a) == 1 : len(shape) - (len(b) == 1)]


@matmul_shape.mistake
def vectors_not_compared(a, b):
    """With a vector you return a shape without comparing sizes: `(3,) @ (4,)` must raise a `ValueError`. The cases with
    vectors have an inner axis as well. Compare before you look at which case it is."""
    left, right = row_and_column(a, b)
    if 1 not in (len(a), len(b)):
        must_agree(left[-1], right[-2])
    return matmul_shape.reference(a, b, inner=lambda *sizes: None)


@matmul_shape.mistake
def vectors_refused(a, b):
    """Your function accepts shapes of two axes and more. `@` takes vectors as well: on the left a vector becomes a row,
    on the right a column, and the axis that it was given is taken away again at the end."""
    if 1 in (len(a), len(b)):
        raise ValueError("matrices only")
    return matmul_shape.reference(a, b)


@matmul_shape.mistake
def inner_sizes_cut_off(a, b):
    """You take `a` without its last size and append the last of `b`. For two matrices that fit, that is all. But sizes
    that differ must raise a `ValueError`, a vector on the right leaves nothing behind, and the batch axes of `b` count
    as well. Go through these three one by one."""
    return (*a[:-1], *b[-1:])


@matmul_shape.mistake
def first_axis_of_the_second(a, b):
    """You sum over the first axis of the second shape. For two matrices that is right, since the first axis is the
    second-to-last. With batch axes in front it is a batch axis: count from the end."""
    must_agree(a[-1], b[0])
    return (*a[:-1], *b[1:])


@matmul_shape.mistake
def last_axes_of_both(a, b):
    """You sum over the last axis of both. So does the table of dot products of queries and keys, before the keys are
    transposed. `@` takes the last axis of the left and the second-to-last of the right: a row meets a column."""
    if a[-1] != b[-1]:
        raise ValueError(f"last axes differ: {a[-1]} and {b[-1]}")
    return (*broadcast_shape.reference(a[:-2], b[:-2]), *a[-2:-1], *b[-2:-1])


@matmul_shape.mistake
def no_vectors(a, b):
    """Your function fails for a shape with a single axis: there is no second-to-last size to read. `@` makes a vector a
    row on the left and a column on the right, and takes that axis away again at the end. Decide that before you read
    any size."""
    must_agree(a[-1], b[-2])
    return (*broadcast_shape.reference(a[:-2], b[:-2]), a[-2], b[-1])


@matmul_shape.mistake
def batch_of_vectors(a, b):
    """You take `(10, 3, 4) @ (10, 4)` for ten matrices and ten vectors. `@` knows no batch of vectors: two axes are
    always one matrix, here of 10 rows, and 4 does not meet 10. That must raise a `ValueError`; whoever means ten
    vectors gives them the shape `(10, 4, 1)`."""
    if len(b) > 1 and tuple(a[:-2]) == tuple(b[:-1]) and a[-1] == b[-1]:
        return tuple(a[:-1])
    return matmul_shape.reference(a, b)


@matmul_shape.mistake
def nones_for_no_fit(a, b):
    """For shapes that do not fit your function returns `None`; the task asks for a `ValueError`. Whoever calls it would
    go on with `None` in place of a shape, and fail somewhere else, later. Write `raise ValueError(…)` with a text that
    names the two sizes."""
    try:
        return matmul_shape.reference(a, b)
    except ValueError:
        return None


@matmul_shape.mistake
def error_of_a_product(a, b):
    """You multiply two tensors and look at the shape. The answers are right; but for shapes that do not fit PyTorch
    raises a `RuntimeError`, and the task asks for a `ValueError`. The rule is what you need on paper, where there are
    no tensors."""
    return tuple((torch.empty(a) @ torch.empty(b)).shape)


@matmul_shape.property
def _transposed_product(function, a, b):
    """Both transposed and exchanged, the product is transposed: `(…, n, k) @ (…, k, m)` gives `(…, n, m)`, and `(…, m,
    k) @ (…, k, n)` gives `(…, m, n)`."""
    return _turned(function(_turned(b), _turned(a))) == tuple(function(a, b))


@matmul_shape.property
def _only_ends_matter(function, a, b):
    """The inner size is not seen in the result: with 11 in its place, the result is the same."""
    return tuple(function((*a[:-1], 11), (*b[:-2], 11, *b[-1:]) if len(b) > 1 else (11,))) == tuple(function(a, b))


def _turned(shape):
    return (*shape[:-2], *shape[-2:][::-1])


# All dot products


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
        "A product sums over the last axis of the left and the second-to-last of the right. Where does `d_head` stand "
        "in `key`, and where must it stand?",
        "The two last axes of `key` have to change places, and no others. Count them from the end, so that it does not "
        "matter how many axes come before. `einsum` can name the axes instead.",
        "`query @ key.transpose(…, …)` or `torch.einsum('...qd,…->…', query, key)`",
    ),
)
def all_dot_products(query, key):
    """(..., q_len, d_head) and (..., k_len, d_head) to (..., q_len, k_len), whatever the leading axes."""
    return query @ key.transpose(-2, -1)


@all_dot_products.probe
def _only_matrices(draw):
    """two matrices"""
    return draw(7, 5), draw(6, 5)


@all_dot_products.probe
def _one_leading_axis(draw):
    """one leading axis"""
    return draw(2, 7, 5), draw(2, 6, 5)


@all_dot_products.probe
def _three_leading_axes(draw):
    """three leading axes"""
    return draw(2, 3, 4, 7, 5), draw(2, 3, 4, 6, 5)


@all_dot_products.probe
def _one_query(draw):
    """one query"""
    return draw(2, 3, 1, 5), draw(2, 3, 6, 5)


@all_dot_products.probe
def _one_key(draw):
    """one key"""
    return draw(2, 3, 7, 5), draw(2, 3, 1, 5)


@all_dot_products.probe
def _as_many_queries_as_keys(draw):
    """as many queries as keys"""
    return draw(2, 3, 7, 5), draw(2, 3, 7, 5)


@all_dot_products.probe(plain=True)
def _equal_sizes(draw):
    """sizes that are all equal"""
    return draw(4, 4, 4, 4), draw(4, 4, 4, 4)


@all_dot_products.equivalent
def named_axes(query, key):
    return torch.einsum("...qd,...kd->...qk", query, key)


@all_dot_products.equivalent
def by_broadcasting(query, key):
    return (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(dim=-1)


@all_dot_products.equivalent
def query_by_query(query, key):
    rows = [(key * query[..., i : i + 1, :]).sum(-1) for i in range(query.shape[-2])]
    return torch.stack(rows, dim=-2)


@all_dot_products.equivalent
def key_by_key(query, key):
    return torch.stack([(query @ key[..., j, :, None]).squeeze(-1) for j in range(key.shape[-2])], -1)


@all_dot_products.equivalent
def turned_afterwards(query, key):
    return (key @ query.mT).mT


@all_dot_products.equivalent
def folded_into_one_batch(query, key):
    q, k = (x.reshape(-1, *x.shape[-2:]) for x in (query, key))
    return torch.bmm(q, k.transpose(1, 2)).view(*query.shape[:-1], key.shape[-2])


@all_dot_products.mistake
def not_transposed(query, key):
    """You multiply `query` by `key` as it is. A product sums over the last axis of the left and the second-to-last of
    the right, and there `key` has its positions, not its features. So it raises; were there as many keys as features,
    it would run and be wrong. Here 5 features were to meet 6 positions."""
    return query @ key


@all_dot_products.mistake
def all_axes_reversed(query, key):
    """All axes of `key` are reversed, not the last two exchanged: with four axes that is (d_head, k_len, heads, batch).
    `.T` does it, and so it is right for matrices and for nothing else. Which two axes must change places, and which
    stay in front?"""
    return query @ key.permute(tuple(reversed(range(key.ndim))))  # what key.T is, without its warning


@all_dot_products.mistake
def axes_one_and_two(query, key):
    """The axes 1 and 2 of `key` change places. With three axes these are the right ones; with four they are heads and
    positions, and when the sizes happen to be equal nothing raises. The features are the last axis: count from the
    end."""
    return query @ key.transpose(1, 2)


@all_dot_products.mistake
def axes_two_and_three(query, key):
    """Right for four axes, and for no other number: you count the axes from the left, as 2 and 3. The docstring allows
    any leading axes, also none. Counted from the end, the two axes have the same numbers everywhere."""
    return query @ key.transpose(2, 3)


@all_dot_products.mistake
def four_axes_named(query, key):
    """Right for four axes, and for no other number: `permute` wants to be told all axes, and you name four. The
    docstring allows any leading axes, also none. There is an operation that exchanges two axes and leaves the
    others."""
    return query @ key.permute(0, 1, 3, 2)


@all_dot_products.mistake
def axes_zero_and_one(query, key):
    """The first two axes of `key` change places, which is right for two matrices only. With leading axes in front, the
    first two are `batch` and `heads`. The docstring allows any leading axes: count the axes from the end."""
    return query @ key.transpose(0, 1)


@all_dot_products.mistake
def cut_anew(query, key):
    """Your `key` gets the shape of a transposed matrix, but its numbers stay in their order: `view` and `reshape` cut
    the same row of numbers anew and never move an axis. The shapes fit, and every dot product mixes several keys.
    Exchanging two axes is another operation."""
    return query @ key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])


@all_dot_products.mistake
def queries_transposed(query, key):
    """It is `query` that you transposed. Then the product sums over positions, and would give a table of features by
    features if the lengths agreed. The features must disappear: they have to be last in `query`, where they are, and
    second-to-last in `key`."""
    return query.mT @ key


@all_dot_products.mistake
def keys_by_queries(query, key):
    """Your table has a row for every key and a column for every query: the transpose of what is asked for. Papers that
    keep vectors in columns write it that way, as KᵀQ. Here a row belongs to a query: which of the two stands on the
    left?"""
    return key @ query.mT


@all_dot_products.mistake
def element_by_element(query, key):
    """`*` multiplies number by number and sums nothing. It raises, because 7 queries do not stand over 6 keys; with
    equal lengths it would return features, not dot products. You want every query with every key, and a sum over the
    features."""
    return query * key


@all_dot_products.mistake
def pair_by_pair(query, key):
    """You compare query 0 with key 0, query 1 with key 1, and so on: `*` lines the positions up. It raises here,
    because the lengths differ; with equal lengths you would get the diagonal of the table. You want every query with
    every key."""
    return (query * key).sum(dim=-1)


@all_dot_products.mistake
def one_letter_for_both(query, key):
    """In your `einsum` the positions of queries and keys have the same letter. A letter in two inputs lines them up:
    query 0 with key 0, query 1 with key 1, and nothing else, which is the diagonal of the table. Give each of the two
    lengths a letter of its own, and let both stand behind the arrow."""
    return torch.einsum("...qd,...qd->...q", query, key)


@all_dot_products.mistake
def features_not_summed(query, key):
    """Every query meets every key, and the products of the single features are still there: your result has an axis of
    size d_head too many. A dot product is their sum. Over which axis?"""
    return query.unsqueeze(-2) * key.unsqueeze(-3)


@all_dot_products.mistake
def mean_of_products(query, key):
    """Every number is the dot product divided by d_head: that is the mean of the products, where a dot product is their
    sum. Check one by hand: (1, 2) · (3, 4) = 11, and not 5.5."""
    return (query.unsqueeze(-2) * key.unsqueeze(-3)).mean(dim=-1)


@all_dot_products.mistake
def divided_by_the_root(query, key):
    """You divide by √d_head, as attention does. That comes in chapter 3; here the plain dot products are asked for.
    Check one by hand: (1, 2) · (3, 4) = 11."""
    return query @ key.mT / query.shape[-1] ** 0.5


@all_dot_products.mistake
def softmax_of_the_products(query, key):
    """Your rows sum to one: there is a softmax over the dot products. That is attention's next step, in chapter 3. Here
    the plain dot products are asked for, which may be negative and of any size."""
    return (query @ key.mT).softmax(dim=-1)


@all_dot_products.mistake
def cosines_instead(query, key):
    """Your numbers lie between −1 and 1: they are cosines, the dot products of vectors that were first scaled to length
    1. Here the lengths count. Check one by hand: (1, 2) · (3, 4) = 11."""
    return F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT


@all_dot_products.mistake
def queries_with_themselves(query, key):
    """You compare the queries with the queries: `key` is never looked at. In self-attention both come from the same
    tokens, which is how one comes to write it. Here they are two tensors, of different length."""
    return query @ query.mT


@all_dot_products.mistake
def summed_over_heads(query, key):
    """The axis in front of the positions is gone: you sum over it, so that the heads run into one another. In `einsum`,
    a letter that is missing behind the arrow is summed over. Only the features may go."""
    return torch.einsum("...hqd,...hkd->...qk", query, key)


@all_dot_products.mistake
def every_batch_with_every_batch(query, key):
    """You compare queries and keys of different sentences and heads too: your result has the leading axes of both, one
    after the other. `tensordot` does that, and an `einsum` with two letters for one axis. The leading axes must be
    paired."""
    return torch.tensordot(query, key, dims=([-1], [-1]))


@all_dot_products.mistake
def three_axes_by_bmm(query, key):
    """`torch.bmm` takes exactly three axes, and the docstring allows any leading axes: here there are four. `@` does
    the same for any number, and pairs the leading axes by itself."""
    return torch.bmm(query, key.mT)


@all_dot_products.mistake
def three_letters(query, key):
    """Your `einsum` names exactly three axes, and the docstring allows any leading axes: here there are four. Three
    dots in place of the leading letters, in both inputs and behind the arrow, stand for as many axes as there are."""
    return torch.einsum("bqd,bkd->bqk", query, key)


@all_dot_products.mistake
def four_letters(query, key):
    """Right for four axes, and for no other number: your `einsum` names `batch` and `heads` one by one. The docstring
    allows any leading axes, also none. Three dots in their place stand for as many axes as there are."""
    return torch.einsum("bhqd,bhkd->bhqk", query, key)


@all_dot_products.property
def _exchanged(function, query, key):
    """With queries and keys exchanged, the table is transposed."""
    return torch.allclose(function(key, query), function(query, key).mT, atol=1e-5)


@all_dot_products.property
def _twice_as_long(function, query, key):
    """Queries that are twice as long have dot products that are twice as large."""
    return torch.allclose(function(2 * query, key), 2 * function(query, key), atol=1e-5)


@all_dot_products.property
def _one_entry_of_its_own(function, query, key):
    """Row i of the table depends on query i alone: when another query changes, it stays."""
    changed = query.clone()
    changed[..., -1, :] += 1
    return torch.allclose(function(changed, key)[..., :-1, :], function(query, key)[..., :-1, :], atol=1e-5)


# Rows that sum to one


def _positive(draw, batch=2, rows=7, columns=5):
    return (draw(batch, rows, columns).abs() + 0.1,)


def sum_of_each_row(x):
    return x.sum(dim=-1, keepdim=True)


def divided(x, total):
    return x / total


@exercise(
    inputs=_positive,
    axes={"x": "batch rows columns", "return": "batch rows columns"},
    hints=(
        "Every row has one sum. What shape must the sums have, to stretch along the row that they belong to?",
        "A sum removes its axis, and then the sums stand under the columns. An argument of `sum` keeps the axis, with "
        "size 1. Name the axis from the end: there may be any number in front.",
        "`x / x.sum(dim=…, keepdim=…)`",
    ),
)
def normalize_rows(x, *, total=sum_of_each_row, quotient=divided):
    """(..., columns) to the same shape: each row, along the last axis, divided by its sum."""
    return quotient(x, total(x))


@normalize_rows.probe
def _one_matrix_of_rows(draw):
    """a matrix"""
    return (draw(7, 5).abs() + 0.1,)


@normalize_rows.probe(plain=True)
def _cube(draw):
    """sizes that are all equal"""
    return (draw(4, 4, 4).abs() + 0.1,)


@normalize_rows.probe
def _square(draw):
    """a square matrix"""
    return (draw(5, 5).abs() + 0.1,)


@normalize_rows.probe
def _single_row(draw):
    """a single row"""
    return (draw(5).abs() + 0.1,)


@normalize_rows.probe
def _four_axes(draw):
    """four axes"""
    return (draw(2, 3, 7, 5).abs() + 0.1,)


@normalize_rows.probe
def _single_column(draw):
    """one column"""
    return (draw(2, 7, 1).abs() + 0.1,)


@normalize_rows.probe
def _negative(draw):
    """negative numbers"""
    x = draw(2, 7, 5)
    return (x - x.sum(dim=-1, keepdim=True) / 5 + torch.tensor([1.0, -2.0, 1.5, 1.0, 0.7, 1.2, -1.0])[:, None],)


@normalize_rows.probe
def _small_and_large(draw):
    """rows of very different size"""
    return ((draw(2, 7, 5).abs() + 0.1) * 10.0 ** torch.arange(-3, 4)[:, None],)


@normalize_rows.probe
def _large_numbers(draw):
    """numbers in the thousands"""
    return (1000 * (draw(2, 7, 5).abs() + 0.1),)


@normalize_rows.equivalent
def axis_put_back(x):
    return x / x.sum(-1).unsqueeze(-1)


@normalize_rows.equivalent
def times_the_inverse(x):
    return x * (1 / torch.einsum("...c->...", x))[..., None]


@normalize_rows.equivalent
def row_by_row(x):
    rows = x.reshape(-1, x.shape[-1])
    return torch.stack([row / sum(row) for row in rows]).reshape(x.shape)


@normalize_rows.equivalent
def sums_as_a_product(x):
    ones = torch.ones(x.shape[-1], 1, dtype=x.dtype, device=x.device)
    return x / (x @ ones)


@normalize_rows.equivalent
def last_axis_in_front(x):
    x = x.movedim(-1, 0)
    return (x / x.sum(0)).movedim(0, -1)


@normalize_rows.equivalent
def on_a_copy(x):
    result = x.clone()
    result /= x.sum(dim=-1, keepdim=True)
    return result


@normalize_rows.mistake(part="total")
def keepdim_missing(x):
    """The axis that you sum over is gone, and the sums stand under the columns: shapes are aligned from the right. Here
    that raises. In a square matrix it would not, and each column would be divided by some row's sum. Keep the axis,
    with size 1."""
    return x.sum(dim=-1)


@normalize_rows.mistake(part="total")
def columns_instead_of_rows(x):
    """Your columns sum to one, not your rows: you sum down the second-to-last axis. The axis that you name in `sum` is
    the one that disappears; the sum of a row runs along the columns. Look at which index changes while you walk along a
    row."""
    return x.sum(dim=-2, keepdim=True)


@normalize_rows.mistake(part="total")
def over_axis_zero(x):
    """You sum over axis 0, which in this input is `batch`: numbers of different matrices are added. In a matrix, axis 0
    runs down a column, so it is not the row there either. A row is what lies along the last axis; count from the
    end."""
    return x.sum(dim=0, keepdim=True)


@normalize_rows.mistake(part="total")
def over_axis_one(x):
    """You sum over axis 1. In a matrix that is the last axis, which is right; with axes in front, it is another one.
    The docstring allows any leading axes, also none: count from the end."""
    return x.sum(dim=1, keepdim=True)


@normalize_rows.mistake(part="total")
def axis_put_back_as_one(x):
    """The axis that the sum removed comes back in second place, which is the right one for a matrix only. With more
    axes in front the sums stand under the wrong ones, and it raises. Put the axis back where it was: at the end."""
    return x.sum(dim=-1).unsqueeze(1)


@normalize_rows.mistake(part="total")
def axis_one_removed(x):
    """Two things at once: you sum over axis 1, which is the one of the columns in a matrix only, and the axis is gone
    afterwards, so that the sums stand under the wrong axes. Name the axis from the end, and keep it with size 1."""
    return x.sum(dim=1)


@normalize_rows.mistake(part="total")
def sums_in_one_column(x):
    """You make one long column of all sums. For a matrix that is what is needed; with more axes there are more sums
    than the matrix has rows, and it raises. The sums must keep all axes of `x`, the last one with size 1."""
    return x.sum(dim=-1).reshape(-1, 1)


@normalize_rows.mistake
def turned_round(x):
    """You turn `x` round, so that the sums stand under its rows, and turn it back. For a matrix that works; with three
    axes, `.T` reverses them all, and the sums meet the wrong ones. There is a way without turning: keep the axis that
    you sum over."""
    reverse = tuple(reversed(range(x.ndim)))  # what x.T is, without its warning
    return (x.permute(reverse) / x.sum(dim=-1)).permute(reverse)


@normalize_rows.mistake(part="total")
def by_the_grand_total(x):
    """You divide by the sum of all numbers: the whole tensor sums to one, and a row to a share of that. `sum()` without
    an axis adds everything up. Each row has a sum of its own."""
    return x.sum()


@normalize_rows.mistake(part="total")
def by_the_matrix(x):
    """You divide by the sum of the whole matrix: its rows together sum to one. A table of probabilities for all pairs
    at once is like that. Here each row has a sum of its own."""
    return x.sum(dim=(-2, -1), keepdim=True) if x.ndim > 1 else x.sum()


@normalize_rows.mistake(part="total")
def by_the_length(x):
    """You divide each row by its length, the root of the sum of squares: the squares of your rows sum to one. To
    normalize a vector often means that. Here the numbers themselves must sum to one."""
    return x.norm(dim=-1, keepdim=True)


@normalize_rows.mistake(part="total")
def by_the_largest(x):
    """You divide each row by its largest number: that one becomes 1, and the row sums to more. Here the numbers of a
    row must sum to one, so divide by what they sum to."""
    return x.amax(dim=-1, keepdim=True)


@normalize_rows.mistake(part="total")
def by_the_mean(x):
    """You divide each row by its mean: your rows sum to the number of columns. The mean is the sum divided by that
    number once too often."""
    return x.mean(dim=-1, keepdim=True)


@normalize_rows.mistake(part="total")
def absolute_values(x):
    """You divide by the sum of the absolute values. For numbers that are not negative that is the same; with negative
    ones the row does not sum to one. `F.normalize(x, p=1)` does this as well. Divide by the plain sum."""
    return x.abs().sum(dim=-1, keepdim=True)


@normalize_rows.mistake(part="total")
def a_little_added(x):
    """You add something to the sum before you divide. That is a guard against a sum of zero, which the docstring rules
    out. For a row of small numbers it is no longer little: that row sums to less than one."""
    return x.sum(dim=-1, keepdim=True) + 1e-5


@normalize_rows.mistake
def softmax_instead(x):
    """Your rows sum to one, by a softmax: the numbers are exponentiated first. That is another function: it turns (1,
    3) into (0.12, 0.88), where the division gives (0.25, 0.75). Divide the numbers as they are."""
    return x.softmax(dim=-1)


@normalize_rows.mistake
def standardized(x):
    """Your rows have mean 0 and variance 1: the mean is taken off and the rest divided by the standard deviation.
    Layers that are called normalization do that, in chapter 6. Here each row is divided by its sum, and nothing is
    taken off."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)  # as x.std, which warns of one number
    return (x - mean) / variance.sqrt()


@normalize_rows.mistake
def layer_norm_instead(x):
    """Your rows have mean 0 and variance 1: the mean is taken off and the rest divided by the standard deviation,
    computed with n, not n − 1, as layer norm does it (chapter 6). Here each row is divided by its sum, and nothing is
    taken off."""
    return F.layer_norm(x, x.shape[-1:])


@normalize_rows.mistake
def between_zero_and_one(x):
    """You stretch each row so that it goes from 0 to 1: the smallest number becomes 0. Data are often prepared like
    that. Here the numbers keep their ratios, and their sum becomes 1."""
    low, high = x.amin(dim=-1, keepdim=True), x.amax(dim=-1, keepdim=True)
    return (x - low) / (high - low)


@normalize_rows.mistake(part="quotient")
def in_place(x, total):
    """Your function changes its argument: `x` itself holds other numbers afterwards, for everybody else who has it.
    `/=` and `div_` write into the tensor that they are given. Make a new one."""
    return x.div_(total)


@normalize_rows.mistake(part="quotient")
def multiplied(x, total):
    """You multiply by what you should divide by. Check one row by hand: (1, 2, 1) sums to 4 and becomes (0.25, 0.5,
    0.25), not (4, 8, 4)."""
    return x * total


@normalize_rows.mistake
def whole_numbers(x):
    """You divide with `//`, which rounds down to whole numbers: almost everything becomes 0. One slash divides."""
    return x // x.sum(dim=-1, keepdim=True)


@normalize_rows.property
def _rows_sum_to_one(function, x):
    """Every row sums to one."""
    return torch.allclose(function(x).sum(dim=-1), torch.ones((), dtype=x.dtype), atol=1e-4)


@normalize_rows.property
def _ratios_stay(function, x):
    """Within a row the ratios stay: what was twice as large as its neighbour is so afterwards."""
    result = function(x)
    return torch.allclose(result * x.flip(-1), result.flip(-1) * x, rtol=1e-4, atol=1e-5)


@normalize_rows.property
def _rows_on_their_own(function, x):
    """A row does not depend on the others: when one changes, the rest stays."""
    changed = x.clone()
    changed[..., -1, :] *= 2
    return torch.allclose(function(changed)[..., :-1, :], function(x)[..., :-1, :], atol=1e-5)


# A linear layer


def _layer(draw, batch=2, seq=7, d_in=5, d_out=3):
    return draw(batch, seq, d_in), draw(d_out, d_in), draw(d_out)


def rows_of_the_weight(x, weight):
    return x @ weight.T


def added(y, bias):
    return y + bias


@exercise(
    inputs=_layer,
    axes={"x": "batch seq d_in", "weight": "d_out d_in", "bias": "d_out", "return": "batch seq d_out"},
    hints=(
        "The weight is stored as (d_out, d_in). Which of its axes must meet the last axis of `x`, and where must that "
        "axis stand?",
        "The product goes along the last axis of `x`, whatever stands in front. The weight is a matrix, so turning it "
        "round is `.T`. The bias has one number for each output feature, and broadcasting puts it there.",
        "`y = x @ …`, then `return y + …`: no loop, and no axis that has to be moved in `x`",
    ),
)
def linear(x, weight, bias, *, product=rows_of_the_weight, plus=added):
    """x (..., d_in), weight (d_out, d_in), bias (d_out,) to (..., d_out)."""
    return plus(product(x, weight), bias)


@linear.probe
def _one_vector(draw):
    """one vector"""
    return draw(5), draw(3, 5), draw(3)


@linear.probe
def _rows_only(draw):
    """a matrix of rows"""
    return draw(7, 5), draw(3, 5), draw(3)


@linear.probe
def _with_heads(draw):
    """four axes"""
    return draw(2, 4, 7, 5), draw(3, 5), draw(3)


@linear.probe(plain=True)
def _all_square(draw):
    """sizes that are all equal"""
    return draw(4, 4, 4), draw(4, 4), draw(4)


@linear.probe
def _one_output(draw):
    """one output feature"""
    return draw(2, 7, 5), draw(1, 5), draw(1)


@linear.probe
def _one_input(draw):
    """one input feature"""
    return draw(2, 7, 1), draw(3, 1), draw(3)


@linear.probe
def _one_row(draw):
    """a batch of one sentence of one token"""
    return draw(1, 1, 5), draw(3, 5), draw(3)


@linear.equivalent
def built_in(x, weight, bias):
    return F.linear(x, weight, bias)


@linear.equivalent
def with_letters(x, weight, bias):
    return torch.einsum("...i,oi->...o", x, weight) + bias


@linear.equivalent
def as_columns(x, weight, bias):
    return (weight @ x[..., None] + bias[:, None]).squeeze(-1)


@linear.equivalent
def output_by_output(x, weight, bias):
    return torch.stack([(x * w).sum(dim=-1) + b for w, b in zip(weight, bias)], dim=-1)


@linear.equivalent
def bias_as_a_weight(x, weight, bias):
    return torch.cat([x, torch.ones_like(x[..., :1])], -1) @ torch.cat([weight, bias[:, None]], 1).mT


@linear.equivalent
def folded(x, weight, bias):
    return torch.addmm(bias, x.reshape(-1, x.shape[-1]), weight.t()).view(*x.shape[:-1], -1)


@linear.mistake(part="product")
def weight_not_transposed(x, weight):
    """You multiply by the weight as it is stored. It is (d_out, d_in), so the input features meet the axis of the
    outputs: here that raises, and with a square weight it would run and be wrong. The formula has a transpose in it for
    that reason."""
    return x @ weight


@linear.mistake(part="product")
def weight_on_the_left(x, weight):
    """The weight stands on the left: `weight @ x` is right for one vector, which is how books write it. For rows it
    mixes the tokens instead of their features. Here it raises; with equal sizes it would not. On which side must a
    matrix stand to do the same to every row?"""
    return weight @ x


@linear.mistake(part="product")
def weight_cut_anew(x, weight):
    """Your weight gets the shape (d_in, d_out), but its numbers stay in their order: `view` and `reshape` do not
    exchange axes, they cut the same row of numbers anew. The shapes fit and the numbers are wrong. Transposing is
    another operation."""
    return x @ weight.reshape(weight.shape[1], weight.shape[0])


@linear.mistake(part="product")
def tokens_not_folded_back(x, weight):
    """The leading axes are folded into one and stay so: your result has two axes, whatever `x` had. The product works
    without folding, for any number of leading axes; whoever folds must unfold at the end."""
    return x.reshape(-1, x.shape[-1]) @ weight.T


@linear.mistake(part="product")
def three_axes_alone(x, weight):
    """Right for three axes, and for no other number: your `einsum` has one letter for `batch` and one for `seq`. The
    docstring allows any leading axes, also none. Three dots in their place stand for as many axes as there are."""
    return torch.einsum("bsi,oi->bso", x, weight)


@linear.mistake(part="product")
def matrices_alone(x, weight):
    """`torch.mm` takes two matrices and nothing else; `x` may have any leading axes, and has three axes here. `@` goes
    along the last axis, whatever stands in front."""
    return torch.mm(x, weight.T)


@linear.mistake(part="product")
def letters_exchanged(x, weight):
    """In your `einsum` the weight is (in, out), and it is stored as (out, in). So the letter of the input features
    stands for two sizes, and it raises; with a square weight it would run and be wrong. Which axis of the weight must
    have the letter that `x` has last?"""
    return torch.einsum("...i,io->...o", x, weight)


@linear.mistake(part="product")
def multiplied_by_elements(x, weight):
    """`*` multiplies number by number and lines the tokens up with the outputs. Here that raises, since there are more
    tokens than outputs; with equal sizes it would run. Every token has to meet every row of the weight: a product,
    `@`."""
    return (x * weight).sum(dim=-1)


@linear.mistake(part="plus")
def bias_forgotten(y, bias):
    """The bias is missing: for an input of zeros you return zeros, and the layer must return its bias. The addition is
    still to come."""
    return y


@linear.mistake(part="plus")
def bias_twice(y, bias):
    """The bias is added twice. `F.linear` and `addmm` add it already when they are given one. For an input of zeros the
    layer must return the bias, and yours returns twice that."""
    return y + bias + bias


@linear.mistake(part="plus")
def bias_taken_off(y, bias):
    """You subtract the bias where it must be added: for an input of zeros the layer must return its bias, and yours
    returns the opposite."""
    return y - bias


@linear.mistake(part="plus")
def bias_for_each_token(y, bias):
    """Your bias is a column: it gives every token a number, where every output feature must get one. Here there are
    more tokens than outputs, so it raises; with equal sizes it would not. A shape of (d_out,) stands under the last
    axis by itself."""
    return y + bias[:, None]


@linear.mistake(part="plus")
def activation_added(y, bias):
    """No number of yours is negative: there is a ReLU behind the layer. A network often has one there, and a linear
    layer has none. The result is the product plus the bias, and nothing else."""
    return (y + bias).relu()


@linear.mistake
def one_matrix_by_addmm(x, weight, bias):
    """`torch.addmm` takes a matrix and nothing else; `x` may have any leading axes, and has three axes here. `@` goes
    along the last axis, whatever stands in front, and the bias is added afterwards."""
    return torch.addmm(bias, x, weight.T)


@linear.mistake
def bias_in_front(x, weight, bias):
    """You add the bias to the input, before the product. It has one number for each output feature: here the sizes
    differ, and it raises; with a square weight it would run and be wrong. First the product, then the bias."""
    return (x + bias) @ weight.T


@linear.mistake
def everything_in_columns(x, weight, bias):
    """Your result has the features in front of the tokens: (batch, d_out, seq). That is the form of papers that keep a
    token in a column, W X + b. In code a token is a row, and goes through the layer as a row."""
    return weight @ x.mT + bias[:, None]


@linear.mistake
def columns_with_a_row_of_bias(x, weight, bias):
    """The weight stands on the left and the tokens are turned into columns, so that the product is (…, d_out, seq);
    then the bias, which is a row, stands under the tokens. Here that raises; with equal sizes it would run. Keep the
    tokens in rows: on which side must the weight stand?"""
    return weight @ x.mT + bias


@linear.property
def _zeros_give_the_bias(function, x, weight, bias):
    """An input of zeros gives the bias."""
    return torch.allclose(function(torch.zeros_like(x), weight, bias), bias)


@linear.property
def _tokens_on_their_own(function, x, weight, bias):
    """Tokens do not meet: with the tokens in another order, the results come in that order."""
    return torch.allclose(function(x.flip(-2), weight, bias), function(x, weight, bias).flip(-2), atol=1e-5)


@linear.property
def _twice_the_weight(function, x, weight, bias):
    """Without a bias, twice the input gives twice the output."""
    none = torch.zeros_like(bias)
    return torch.allclose(function(2 * x, weight, none), 2 * function(x, weight, none), atol=1e-5)


# Find the mistake


def _vectors(draw, q_len=7, k_len=6, d_head=5):
    return draw(q_len, d_head), draw(k_len, d_head)


def one_long(rows):
    return rows / rows.norm(dim=-1, keepdim=True)


def table_of_products(query, key):
    return query @ key.T


@exercise(
    inputs=_vectors,
    axes={"query": "q_len d_head", "key": "k_len d_head", "return": "q_len k_len"},
    hints=(
        "A vector and itself have the cosine 1. How long is each row of `query` and of `key` after the first two "
        "lines?",
        "Print the shapes of the two norms, and write each under the shape that it divides. One number for each row, "
        "or one for each column?",
        "`key = key / key.norm(dim=…, keepdim=…)`",
    ),
)
def mend_cosines(query, key, *, queries=one_long, keys=one_long, table=table_of_products):
    """query (q_len, d_head), key (k_len, d_head) to the cosine of every query with every key: (q_len, k_len)."""
    return table(queries(query), keys(key))


@mend_cosines.probe
def _as_many_as_keys(draw):
    """as many queries as keys"""
    return draw(7, 5), draw(7, 5)


@mend_cosines.probe(plain=True)
def _square_tables(draw):
    """sizes that are all equal"""
    return draw(5, 5), draw(5, 5)


@mend_cosines.probe
def _the_same_vectors(draw):
    """the same vectors on both sides"""
    vectors = draw(6, 5)
    return vectors, vectors.clone()


@mend_cosines.probe
def _long_and_short(draw):
    """long and short vectors"""
    return draw(7, 5) * torch.tensor([1e-2, 1, 1e2, 1, 10, 1e3, 0.1])[:, None], draw(6, 5) * 1000


@mend_cosines.probe
def _one_of_each(draw):
    """one query and one key"""
    return draw(1, 5), draw(1, 5)


@mend_cosines.equivalent
def lengths_divided_out_afterwards(query, key):
    return query @ key.T / (query.norm(dim=1, keepdim=True) * key.norm(dim=1))


@mend_cosines.equivalent
def by_normalize(query, key):
    return torch.einsum("qd,kd->qk", F.normalize(query, dim=-1), F.normalize(key, dim=-1))


@mend_cosines.equivalent
def pair_after_pair(query, key):
    return F.cosine_similarity(query[:, None], key[None], dim=-1)


@mend_cosines.equivalent
def written_out(query, key):
    lengths = [(x * x).sum(-1).sqrt() for x in (query, key)]
    return (query @ key.mT) / lengths[0][:, None] / lengths[1][None, :]


@mend_cosines.mistake(part="keys")
def as_given(key):
    """The mistake of the program as it was given is still in yours. Look at its symptom first: a vector and itself do
    not get 1. Then take one row of each matrix as it enters the product, and compute its length by hand: where is it
    not 1, and by what was that matrix divided?"""
    return key / key.norm(dim=0)


@mend_cosines.mistake
def both_down_the_columns(query, key):
    """Now both matrices are divided by the lengths of their columns. They agree with each other, and neither has rows
    of length 1: a vector and itself still do not get 1. Which of the two lines was right in the program as given?"""
    return (query / query.norm(dim=0)) @ (key / key.norm(dim=0)).T


@mend_cosines.mistake
def wrong_line_mended(query, key):
    """The two lines have changed places: now the keys are divided by the lengths of their rows, and the queries by the
    lengths of their columns. One of the two was right before. A row is right when its length is 1."""
    return (query / query.norm(dim=0)) @ (key / key.norm(dim=-1, keepdim=True)).T


@mend_cosines.mistake
def clamped(query, key):
    """Your cosines are cut off, so that none is too large any more. That hides the symptom and leaves the cause: the
    other numbers are as wrong as before. Rows of length 1 give no number that has to be cut."""
    return mend_cosines.reference(query, key, keys=as_given).clamp(-1, 1)


@mend_cosines.mistake(part="keys")
def keepdim_left_out(key):
    """The lengths of the keys are right, one for each row, and they stand under the columns: their axis is gone, and
    shapes are aligned from the right. Here that raises; with as many keys as features it would not. Keep the axis, with
    size 1."""
    return key / key.norm(dim=-1)


@mend_cosines.mistake(part="queries")
def keepdim_left_out_of_queries(query):
    """The lengths of the queries are right, one for each row, and they stand under the columns: their axis is gone, and
    shapes are aligned from the right. That line was right in the program as given, with its `keepdim=True`."""
    return query / query.norm(dim=-1)


@mend_cosines.mistake(part="keys")
def keys_as_they_are(key):
    """The keys keep their lengths: a key that is twice as long gets twice the number. A cosine looks at directions
    alone, so the keys must be divided as well as the queries."""
    return key


@mend_cosines.mistake(part="queries")
def queries_as_they_are(query):
    """The queries keep their lengths: the row of a query that is twice as long is twice as large. A cosine looks at
    directions alone, so the queries must be divided as well as the keys."""
    return query


@mend_cosines.mistake(part="keys")
def one_length_for_all_keys(key):
    """You divide all keys by one number, the length of the whole matrix: `norm()` without an axis takes everything
    together. Then the keys differ in length as before. Each row has a length of its own."""
    return key / key.norm()


@mend_cosines.mistake(part="keys")
def keys_by_their_sums(key):
    """You divide each key by its sum, as `normalize_rows` does. Then its numbers sum to one, and its length is
    something else. For a cosine the length must be 1: the root of the sum of squares."""
    return key / key.sum(dim=-1, keepdim=True)


@mend_cosines.mistake
def both_by_their_sums(query, key):
    """You divide each row by its sum, as `normalize_rows` does. Then its numbers sum to one, and its length is
    something else. For a cosine the length must be 1: the root of the sum of squares."""
    return (query / query.sum(dim=-1, keepdim=True)) @ (key / key.sum(dim=-1, keepdim=True)).T


@mend_cosines.mistake(part="keys")
def root_forgotten(key):
    """You divide each key by the sum of its squares, and the root is missing: a key of length 2 comes out with length
    ½. The length is the root of that sum."""
    return key / (key * key).sum(dim=-1, keepdim=True)


@mend_cosines.mistake(part="table")
def keys_in_the_rows(query, key):
    """Your table has a row for every key and a column for every query: the transpose of what is asked for. The last
    line of the program as given was right."""
    return key @ query.T


@mend_cosines.mistake
def lengths_of_the_keys_in_a_column(query, key):
    """You divide the finished table by the lengths, which is a good way. But the lengths of the keys form a column,
    (k_len, 1), and so they stand beside the queries. In the table a key is a column: under which axis must its length
    stand?"""
    return query @ key.T / (query.norm(dim=-1, keepdim=True) * key.norm(dim=-1, keepdim=True))


@mend_cosines.mistake
def correlations(query, key):
    """You take the mean off every vector before you compare: these are correlations. A vector and itself do get 1, and
    (1, 3) with (3, 1) gets −1, where the cosine is 0.6. Only the lengths have to be divided out."""
    return mend_cosines.reference(query - query.mean(-1, keepdim=True), key - key.mean(-1, keepdim=True))


@mend_cosines.mistake
def divided_by_the_largest(query, key):
    """You divide the finished table by its largest number, so that none is above 1. That hides the symptom and leaves
    the cause: a vector and itself still do not get 1. Rows of length 1 need no correction afterwards."""
    products = mend_cosines.reference(query, key, keys=as_given)
    return products / products.abs().max()


@mend_cosines.property
def _itself(function, query, key):
    """A vector and itself have the cosine 1."""
    return torch.allclose(function(query, query).diagonal(), torch.ones((), dtype=query.dtype), atol=1e-4)


@mend_cosines.property
def _length_does_not_count(function, query, key):
    """A key that is made longer keeps its cosines."""
    longer = key.clone()
    longer[0] *= 3
    return torch.allclose(function(query, longer), function(query, key), atol=1e-4)


@mend_cosines.property
def _opposite(function, query, key):
    """A vector that is turned round gets the opposite cosine."""
    return torch.allclose(function(query, -key), -function(query, key), atol=1e-4)


@mend_cosines.property
def _at_most_one(function, query, key):
    """No cosine is larger than 1."""
    return bool(function(query, key).abs().max() <= 1 + 1e-5)
