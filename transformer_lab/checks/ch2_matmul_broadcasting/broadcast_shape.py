"""The shape of a sum."""

import math
import operator
from itertools import takewhile, zip_longest

import numpy as np
import torch

from ..exercise import exercise, family, with_text_of


def _two_shapes(draw):
    return (1, 1, 5), (3, 1)  # they also fit when aligned from the left, with a different result


def padded_with_ones_in_front(a, b):
    """Align the two shapes at the right, and put ones in front of the shorter shape."""
    axes = max(len(a), len(b))
    a, b = ((1,) * (axes - len(shape)) + tuple(shape) for shape in (a, b))
    return list(zip(a, b))


def equal_or_stretched(m, n):
    """Keep the size if the two sizes of a column are equal; otherwise keep the one that is not 1."""
    if m != n and 1 not in (m, n):
        raise ValueError(f"two sizes in a column must be equal, or one of them must be 1, got {m} and {n}")
    return n if m == 1 else m


@exercise(
    inputs=_two_shapes,
    axes={},
    raises=ValueError,
    hints=(
        "Write one shape below the other. At which end do the shapes line up, and what fills up the shorter shape?",
        "First give both shapes the same number of axes: pad the shorter shape with axes of size 1, on the side where "
        "axes are missing. Then compare the shapes axis by axis. Three cases give a size (the sizes are equal, the "
        "first is 1, the second is 1); in all other cases, raise the error.",
        "`a = (1,) * … + a`, the same for `b`, then `for m, n in zip(a, b): if … elif … else: raise ValueError(…)`",
    ),
)
def broadcast_shape(a, b, *, aligned=padded_with_ones_in_front, size=equal_or_stretched):
    """Return the shape of ``x + y``, a tuple of int, from two such shapes; raise `ValueError` if they do not fit."""
    return tuple(size(m, n) for m, n in aligned(a, b))


broadcast_shape.example("a second shape with more axes", (7, 1), (1, 1, 2), plain=True)
broadcast_shape.example("a vector and a column", (8,), (8, 1), plain=True)
broadcast_shape.example("equal shapes", (2, 7, 5), (2, 7, 5), plain=True)
broadcast_shape.example("an axis that stretches in each shape", (4, 1, 3), (5, 1))
broadcast_shape.example("a column and a row", (7, 1), (1, 5), plain=True)
broadcast_shape.example("one row and many rows", (1, 5), (7, 5))
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


@broadcast_shape.right
class RightAnswers:
    def by_zip_longest(a, b):
        columns = [set(column) - {1} for column in zip_longest(a[::-1], b[::-1], fillvalue=1)]
        if any(len(sizes) > 1 for sizes in columns):
            raise ValueError("more than one size in a column")
        return tuple(sizes.pop() if sizes else 1 for sizes in columns[::-1])

    def by_pytorch(a, b):
        try:
            return torch.broadcast_tensors(torch.zeros(a), torch.zeros(b))[0].shape
        except RuntimeError as error:
            raise ValueError(f"{a} and {b} do not broadcast") from error

    def by_numpy(a, b):
        return np.broadcast_shapes(a, b)


@broadcast_shape.equivalent
def by_recursion(a, b):
    if not a or not b:
        return a or b
    if a[-1] != b[-1] and a[-1] != 1 and b[-1] != 1:
        raise ValueError(f"{a[-1]} and {b[-1]}")
    return (*by_recursion(a[:-1], b[:-1]), b[-1] if a[-1] == 1 else a[-1])


def shape_or_default(a, b, default):
    try:
        return broadcast_shape.reference(a, b)
    except ValueError:
        return default


@broadcast_shape.property
def order_does_not_matter(function, a, b):
    """The order of the two shapes does not matter: `broadcast_shape(a, b)` and `broadcast_shape(b, a)` are the same."""
    return tuple(function(a, b)) == tuple(function(b, a))


@broadcast_shape.property
def shape_with_itself_stays(function, a, b):
    """A shape combined with itself gives the same shape."""
    return tuple(function(a, a)) == tuple(a) and tuple(function(b, b)) == tuple(b)


@broadcast_shape.property
def as_many_axes_as_the_longer(function, a, b):
    """The result has as many axes as the longer of the two shapes."""
    return len(function(a, b)) == max(len(a), len(b))


@broadcast_shape.wrong(stage="aligned")
class Aligned:
    def aligned_from_the_left(a, b):
        """Your shapes are aligned from the left: the axes that the shorter shape lacks are added at its end. But a
        vector added to a table lines up with the table's last axis. Write the two shapes one below the other with their
        right ends aligned: where are axes missing?"""
        axes = max(len(a), len(b))
        a, b = (tuple(shape) + (1,) * (axes - len(shape)) for shape in (a, b))
        return list(zip(a, b))

    def cut_to_the_shorter(a, b):
        """The axes that only one of the two shapes has are lost: your result has as many axes as the shorter shape.
        `zip` stops where the first of its inputs ends. An axis that is missing in one shape counts as 1, so the result
        has as many axes as the longer shape."""
        return list(zip(a[::-1], b[::-1]))[::-1]

    def paired_from_the_left_and_cut(a, b):
        """There are two mistakes: you pair the axes from the left, and the extra axes of the longer shape are lost.
        `zip` causes both mistakes if you pass it the shapes unchanged. Shapes are aligned from the right, and a missing
        axis counts as 1: make the shapes equally long first."""
        return list(zip(a, b))

    def axes_reversed(a, b):
        """Your sizes come in the opposite order, the last axis first. A loop from the right collects the sizes in that
        order: reverse the list at the end."""
        return padded_with_ones_in_front(a, b)[::-1]

    def only_the_first_padded(a, b):
        """You put ones in front of `a` only, as if `b` were always the longer shape. When `a` has more axes, the number
        of ones is negative, so none are added, no error is raised, and axes are lost. Either shape can be the shorter
        one."""
        return list(zip((1,) * (len(b) - len(a)) + tuple(a), b))

    def only_the_second_padded(a, b):
        """You put ones in front of `b` only, as if `a` were always the longer shape. When `b` has more axes, the number
        of ones is negative, so none are added, no error is raised, and axes are lost. Either shape can be the shorter
        one."""
        return list(zip(a, (1,) * (len(a) - len(b)) + tuple(b)))

    def only_the_axes_of_the_first(a, b):
        """Your result always has as many axes as `a`: the extra leading axes of `b` are lost. Your loop counts the axes
        of `a` only, but either shape can be the longer one: how many axes does the result have?"""
        return [(m, b[-i] if i <= len(b) else 1) for i, m in zip(range(len(a), 0, -1), a)]

    def only_the_axes_of_the_second(a, b):
        """Your result always has as many axes as `b`: the extra leading axes of `a` are lost. Your loop counts the axes
        of `b` only, but either shape can be the longer one: how many axes does the result have?"""
        return [(a[-i] if i <= len(a) else 1, n) for i, n in zip(range(len(b), 0, -1), b)]

    def missing_axes_indexed(a, b):
        """Your function reads an axis that the shorter shape does not have, hence the `IndexError`. The loop runs over
        the axes of the longer shape, but a shape with two axes has no `shape[-3]`. A missing axis counts as 1: test for
        it before you read the size."""
        return [(a[-i], b[-i]) for i in range(max(len(a), len(b)), 0, -1)]

    def equal_numbers_of_axes_required(a, b):
        """Your function accepts only shapes with the same number of axes. But an axis may be missing: a vector `(8,)`
        can be added to a column `(8, 1)`. Missing axes count as 1; on which side are they missing?"""
        if len(a) != len(b):
            raise ValueError("different numbers of axes")
        return list(zip(a, b))

    def ones_for_every_axis(a, b):
        """In front of each shape you put as many ones as the longer shape has axes, so the lengths still differ. Only
        the shorter shape needs ones: how many axes does it lack?"""
        ones = (1,) * max(len(a), len(b))
        return list(zip(ones + tuple(a), ones + tuple(b)))

    def first_axis_left_out(a, b):
        """The first axis of the result is missing. Counted from the end, axes have the numbers −1 to −n, and `range(1,
        n)` leaves out n. How many axes does the longer shape have?"""
        return padded_with_ones_in_front(a, b)[1:]

    def last_axis_left_out(a, b):
        """The last axis of the result is missing: your loop never reaches it. From the left, `range(n - 1)` ends one
        axis too early; from the right, the last axis has the number −1."""
        return padded_with_ones_in_front(a, b)[:-1]


@broadcast_shape.wrong(stage="aligned", alone=True)
class AlignedAlone:
    def padded_with_zeros_in_front(a, b):
        """You fill up missing axes with zeros. An axis of size 0 has no entries, and it does not stretch. A missing
        axis counts as an axis with one entry."""
        axes = max(len(a), len(b))
        a, b = ((0,) * (axes - len(shape)) + tuple(shape) for shape in (a, b))
        return list(zip(a, b))

    def counted_from_minus_zero(a, b):
        """Your loop counts from the end, but it begins with `shape[-0]`, which is the first axis: −0 is 0. The last
        axis has the number −1. Which numbers must the loop go through?"""
        axes = range(max(len(a), len(b)))
        return [tuple(shape[-i] if i < len(shape) else 1 for shape in (a, b)) for i in reversed(axes)]


@broadcast_shape.wrong(stage="size")
class Size:
    def always_the_larger(m, n):
        """You take the larger of the two sizes, whatever they are. {The larger is right for equal sizes, and for a 1
        with a larger size. But} a 3 over a 2 does not fit and must raise a `ValueError`, and a 1 over a 0 gives 0, not
        1."""
        return max(m, n)

    def larger_size_if_they_fit(m, n):
        """{Your function is right except for sizes of 0:} a 1 over a 0 gives 0 (the 1 is repeated zero times), but you
        return 1. You check that the sizes fit and then return the larger size. It does not matter which size is larger:
        what becomes of a 1?"""
        equal_or_stretched(m, n)
        return max(m, n)

    @family(first_size_unchecked=(1, "3", "a", "b"), second_size_unchecked=(-1, "2", "b", "a"))
    def one_size_unchecked(order, m, n):
        """For shapes that do not fit, you return a shape, but must raise a `ValueError`: 3 over 2 gives {}. If neither
        size is 1, you return the size of `{}` without comparing it with the size of `{}`. Raise the error when the two
        sizes are not equal."""
        preferred, other = (m, n)[::order]
        return other if preferred == 1 else preferred

    @family(only_the_first_stretches=(1, "first", "second"), only_the_second_stretches=(-1, "second", "first"))
    def only_one_stretches(order, m, n):
        """For a 1 in the {} shape you return the other size, but for a 1 in the {} you raise an error. Either shape can
        have the 1, and a sum has the same shape in either order. Try your function with its arguments exchanged."""
        stretched, other = (m, n)[::order]
        if stretched not in (1, other):
            raise ValueError(f"{stretched} does not stretch to {other}")
        return other

    def zero_stretches(m, n):
        """Your function stretches a size of 0 like a 1: 0 over 2 gives 2. A single entry can be repeated twice, but an
        axis of size 0 has no entry to repeat. Look at your condition: is it true for `1` alone, or for every size that
        is small or counts as false?"""
        if n > 1 and m > 1 and m != n:
            raise ValueError(f"{m} and {n} do not fit")
        return n if m <= 1 else m

    def equal_sizes_only(m, n):
        """Your function accepts equal sizes only, and raises an error if a 1 is over a different size. In broadcasting
        a 1 stretches: a column `(8, 1)` and a row `(8,)` give `(8, 8)`. Raise a `ValueError` only if the two sizes
        differ and neither is 1."""
        if m != n:
            raise ValueError(f"{m} and {n} differ")
        return m

    def multiples_stretch(m, n):
        """You let 3 stretch to 6 and return the larger size. Broadcasting does not tile, even where one size is a
        multiple of the other: only an axis of size 1 stretches. Broadcasting 3 to 6 must raise a `ValueError`."""
        if m != n and min(m, n) == 0:
            return equal_or_stretched(m, n)
        if m != n and max(m, n) % min(m, n):
            raise ValueError(f"{m} is no multiple of {n}")
        return max(m, n)

    def smaller_size_if_they_fit(m, n):
        """A 1 over a different size stays 1 in your result: you return the smaller of the two sizes. But the 1
        stretches: a column `(8, 1)` and a row `(8,)` give `(8, 8)`. Which of the two sizes does the result have?"""
        equal_or_stretched(m, n)
        return min(m, n)

    def equal_sizes_refused(m, n):
        """Your function raises an error if the two sizes are equal and not 1. Equal sizes fit as they are: `(2, 3)` and
        `(2, 3)` give `(2, 3)`. Three cases give a size; which of them is missing from your conditions?"""
        if m != 1 and n != 1:
            raise ValueError(f"neither {m} nor {n} is 1")
        return n if m == 1 else m

    def sizes_multiplied(m, n):
        """You multiply the two sizes. If one of them is 1, this gives the other size, which is right, but two equal
        sizes give their square: 3 over 3 must stay 3. Equal sizes are a separate case."""
        equal_or_stretched(m, n)
        return m * n

    def smallest_common_multiple(m, n):
        """You return the least common multiple of the two sizes. {It is right for equal sizes, and for a 1 with a
        different size; but 3 over 2 gives 6 instead of a `ValueError`.} Broadcasting stretches only a 1."""
        return math.lcm(m, n)

    def none_for_a_size(m, n):
        """If two sizes do not fit, your shape contains `None`; the task asks for a `ValueError`. One of your cases has
        no `return` and no `raise`: what happens after the last condition?"""
        return n if m == 1 else m if n in (1, m) else None


@broadcast_shape.wrong(stage="size", alone=True)
class SizeAlone:
    def zero_refused(m, n):
        """Your function raises an error if a size is 0. A tensor may have an axis of size 0: 0 over 0 fits, and a 1
        stretches to 0 as to any other size. In a condition, 0 counts as false: write the comparison that you mean."""
        if m == 0 or n == 0:
            raise ValueError("a size of 0")
        return equal_or_stretched(m, n)

    def one_never_stretches_to_zero(m, n):
        """Your function raises an error if a 1 is over a 0. A 1 stretches to any size, even to 0: `(3, 1)` with `(0,)`
        gives `(3, 0)`. In a condition, 0 counts as false: write the comparison that you mean."""
        if m != n and 0 in (m, n):
            raise ValueError("a size of 0")
        return equal_or_stretched(m, n)

    def one_less_than_both(m, n):
        """You add the two sizes and subtract one. If one of them is 1, this gives the other size, which is right, but 3
        over 3 gives 5. Equal sizes are a separate case."""
        equal_or_stretched(m, n)
        return m + n - 1


@broadcast_shape.wrong
class NoFit:
    @family(none_for_no_fit=(None, "`None`", "`None`"), false_for_no_fit=(False, "`False`", "`False`"))
    def returned_for_no_fit(result, a, b):
        """For shapes that do not fit, your function returns {}; the task asks for a `ValueError`. The caller would go
        on with {} in place of a shape, and fail later, somewhere else. Write `raise ValueError(…)` with a text that
        names the two sizes."""
        return shape_or_default(a, b, result)

    @family(first_shape_for_no_fit=(0, "first"), second_shape_for_no_fit=(1, "second"))
    def one_shape_for_no_fit(index, a, b):
        """For shapes that do not fit, your function returns the {} shape; the task asks for a `ValueError`. The caller
        would use this as the shape of the sum. If you catch an error, raise it again as a `ValueError`."""
        return shape_or_default(a, b, (a, b)[index])

    def empty_for_no_fit(a, b):
        """For shapes that do not fit, your function returns an empty tuple; the task asks for a `ValueError`. But `()`
        is the shape of a single number. Write `raise ValueError(…)` with a text that names the two sizes."""
        return shape_or_default(a, b, ())

    def error_returned(a, b):
        """For shapes that do not fit, your function returns the error instead of raising it. The caller would go on
        with `ValueError` in place of a shape. Write `raise` in place of `return`."""
        return shape_or_default(a, b, ValueError)

    def text_raised(a, b):
        """If shapes do not fit, you raise a string, which causes a `TypeError`: only exceptions can be raised.
        `ValueError(…)` makes an exception from the string."""
        if shape_or_default(a, b, None) is None:
            raise "they do not fit"  # noqa: B016
        return broadcast_shape.reference(a, b)

    def all_but_the_last_unchecked(a, b):
        """You check the sizes of the last axis only: `(4, 7, 5)` and `(4, 3, 5)` must raise a `ValueError`. The rule is
        the same for every column."""
        pairs = padded_with_ones_in_front(a, b)
        return (*(n if m == 1 else m for m, n in pairs[:-1]), *(equal_or_stretched(m, n) for m, n in pairs[-1:]))

    def columns_that_do_not_fit_left_out(a, b):
        """You leave out the sizes that do not fit; the task asks for a `ValueError`. If you print a message, or go on
        with the next column, the caller does not notice: `raise` stops the function."""
        return tuple(n if m == 1 else m for m, n in padded_with_ones_in_front(a, b) if m == n or 1 in (m, n))

    def ends_at_the_first_mismatch(a, b):
        """At sizes that do not fit, you stop and return the sizes found so far; the task asks for a `ValueError`.
        `break` only ends the loop: `raise` stops the function with an error."""
        pairs = takewhile(lambda pair: pair[0] == pair[1] or 1 in pair, padded_with_ones_in_front(a, b))
        return tuple(n if m == 1 else m for m, n in pairs)

    def ordinary_shapes_refused(a, b):
        """Your function raises an error for nearly all shapes, even those that fit. Look at how your conditions are
        joined: `m != 1 or n != 1` is true as soon as one of the two is not 1. Say in words when two sizes do not fit:
        which word joins the conditions, *and* or *or*?"""
        if max(*a, *b, 0, 0) > 1:
            raise ValueError("not all ones")
        return broadcast_shape.reference(a, b)

    def true_for_a_fit(a, b):
        """Your function returns `True` where the shapes fit. The task asks for the shape of the sum, and for a
        `ValueError` where the shapes do not fit."""
        return shape_or_default(a, b, None) is not None


@broadcast_shape.wrong
class Shapes:
    @family(
        the_longer_shape=(operator.ge, "unchanged", "shorter"),
        the_longer_shape_or_the_second=(
            operator.gt,
            "unchanged, or the second shape if both have the same number of axes",
            "other",
        ),
    )
    def the_longer_of_two(is_longer, a, b):
        """You return the shape that has more axes, {}. {This shape is right as long as only the {} shape stretches.}
        Here a 1 of the longer shape is over a different size and stretches too: compare the sizes one column at a
        time."""
        broadcast_shape.reference(a, b)
        return a if is_longer(len(a), len(b)) else b

    @family(always_the_first_shape=(0, "first", "second"), always_the_second_shape=(1, "second", "first"))
    def always_one_shape(index, a, b):
        """You return the {} shape unchanged. {This shape is right if only the {} shape stretches.} Either shape can
        have a 1 or lack an axis: compare the sizes one column at a time."""
        return tuple((a, b)[index])

    def the_larger_tuple(a, b):
        """You return the larger of the two tuples, as `max` compares tuples: by their first numbers, and by their next
        numbers only if the first numbers are equal. Align the shapes from the right, and compare their sizes one by
        one."""
        return max(tuple(a), tuple(b))

    def shapes_joined(a, b):
        """You join the two shapes, so the result has the axes of both, like a table of all pairs. In a sum, two axes
        that line up become one."""
        return (*a, *b)

    def sizes_sorted(a, b):
        """The sizes {are right, but they} are sorted. Each size belongs to an axis: leave them in the order of the
        axes."""
        return tuple(sorted(broadcast_shape.reference(a, b)))

    def ones_left_out(a, b):
        """Axes of size 1 are missing from your result. If both sizes of a column are 1, the axis stays, with size 1: a
        result has as many axes as the longer shape."""
        return tuple(size for size in broadcast_shape.reference(a, b) if size != 1)

    @family(
        ends_after_one_axis=(slice(1), "first", "the loop"),
        ends_after_the_last_axis=(slice(-1, None), "last", "a loop from the right"),
    )
    def ends_after_one_iteration(kept, a, b):
        """Your result has the {} axis only. Most often a `return` is inside {}, so that the function ends in the first
        iteration. Look at how far the `return` is indented."""
        return tuple(equal_or_stretched(m, n) for m, n in padded_with_ones_in_front(a, b)[kept])

    def size_of_one_axis(a, b):
        """You return one number, the first size, instead of a tuple. Most often a `return` is inside the loop, so that
        the function ends in the first iteration. Collect the sizes, and return them after the loop."""
        for m, n in padded_with_ones_in_front(a, b):
            return equal_or_stretched(m, n)

    def number_of_axes(a, b):
        """You return one number: how many axes the sum has. The task asks for its shape, a tuple with a size for each
        axis."""
        return max(len(a), len(b))

    def number_of_elements(a, b):
        """You return one number: how many elements the sum has. The task asks for its shape, a tuple with a size for
        each axis."""
        return math.prod(broadcast_shape.reference(a, b))

    def a_tensor_of_that_shape(a, b):
        """You return a tensor that has the right shape. The task asks for the shape itself, a tuple of numbers, such as
        a tensor's `.shape`."""
        return torch.zeros(broadcast_shape.reference(a, b))

    def empty_shape_if_one_is_empty(a, b):
        """If one of the shapes is that of a single number, your function returns the shape `()`. The empty shape lacks
        all axes, and a missing axis counts as 1: `(2, 3)` and `()` give `(2, 3)`."""
        return broadcast_shape.reference(a, b) if a and b else ()


@broadcast_shape.wrong
class Refused:
    def empty_shape_refused(a, b):
        """Your function raises an error if a shape is empty. `()` is the shape of a single number, which can be added
        to anything: all its axes are missing, and a missing axis counts as 1."""
        if not a or not b:
            raise ValueError("an empty shape")
        return broadcast_shape.reference(a, b)

    def empty_shape_indexed(a, b):
        """If a shape is empty, your function tries to read one of its axes, hence the `IndexError`. `()` is the shape
        of a single number: all its axes are missing, and a missing axis counts as 1."""
        return (a[-1], b[-1]) and broadcast_shape.reference(a, b)

    def two_axes_unpacked(a, b):
        """Your function accepts shapes of two axes only. For all others Python raises a `ValueError`, because it cannot
        unpack them. Shapes may be of any length: loop over the columns."""
        (a_rows, a_columns), (b_rows, b_columns) = a, b
        return equal_or_stretched(a_rows, b_rows), equal_or_stretched(a_columns, b_columns)

    def bracket_for_a_tuple(a, b):
        """You add a number to a tuple, hence the `TypeError`. `(1)` is the number 1 in brackets; `(1,)`, with a comma,
        is a tuple."""
        return (1) * len(a) + b

    @with_text_of(bracket_for_a_tuple)
    def number_added_to_a_tuple(a, b):
        return a + (1)

    def list_and_tuple_joined(a, b):
        """A list and a tuple cannot be added, hence the `TypeError`. The shapes are tuples: put the added sizes into a
        tuple as well, or turn both shapes into lists first."""
        return list(a) + a

    @with_text_of(list_and_tuple_joined)
    def tuple_and_list_joined(a, b):
        return a + list(a)

    def tuple_changed(a, b):
        """A tuple has no `insert` and no `append`, hence the `AttributeError`: a tuple cannot be changed. Join two
        tuples into a new one, or turn the shapes into lists first."""
        return a.insert(0, 1)

    def pop_from_an_empty_set(a, b):
        """You remove the 1 from the set of sizes in a column and take the size that is left. If both sizes are 1, no
        size is left, hence the `KeyError`: in this case the result is 1."""
        return tuple(set.difference({m, n}, {1}).pop() for m, n in padded_with_ones_in_front(a, b))

    def missing_axes_are_none(a, b):
        """You compare a size with `None`, hence the `TypeError`: `zip_longest` fills missing places with `None` unless
        you pass a `fillvalue`. Which size does a missing axis count as?"""
        return tuple(max(m, n) for m, n in zip_longest(a[::-1], b[::-1]))[::-1]

    def len_of_a_reversed_iterator(a, b):
        """`reversed` returns an iterator, not a tuple, and an iterator has no length. `a[::-1]` is the reversed tuple;
        or compute the length first."""
        a, b = reversed(a), reversed(b)
        return tuple(range(max(len(a), len(b))))
