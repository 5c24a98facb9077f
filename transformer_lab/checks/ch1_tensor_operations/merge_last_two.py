"""Merging the last two axes: a view where possible."""

import functools

import torch

from ..exercise import exercise, ways
from .strides_of import strides_of
from .views import numbered, view_or_copy


def _transposed_heads(draw, batch=2, seq=7, heads=3, d_head=5):
    return (numbered(batch, heads, seq, d_head).transpose(1, 2),)


@exercise(
    inputs=_transposed_heads,
    axes={"x": "batch seq heads d_head", "return": "batch seq d_model"},
    hints=(
        "Which operation of section 1.4 keeps the reading order, returns a view if possible, and copies only if "
        "necessary?",
        "Write down the new shape first: all sizes except the last two, then the product of these two. `x.shape[:-2]` "
        "works for any number of axes.",
        "`x.…(*x.shape[:-2], x.shape[…] * x.shape[…])`",
    ),
    facts=lambda arguments, result, made: view_or_copy(lambda x: x.flatten(-2), arguments, result),
)
def merge_last_two(x):
    """Merge the last two axes into one. x: (…, m, n). Returns (…, m · n), a view of x where possible."""
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def _merged_shape(x):
    return (*x.shape[:-2], x.shape[-2] * x.shape[-1])


merge_last_two.example("contiguous input", numbered(2, 7, 3, 5), plain=True)
merge_last_two.example("input whose first two axes are swapped", numbered(7, 2, 3, 5).transpose(0, 1), plain=True)
merge_last_two.example("a matrix", numbered(3, 5))
merge_last_two.example("a transposed matrix", numbered(3, 5).transpose(0, 1))
merge_last_two.example("three axes", numbered(7, 3, 5))
merge_last_two.example("five axes", numbered(2, 4, 7, 3, 5).transpose(1, 3))
merge_last_two.example("rows cut short by a slice", numbered(2, 7, 3, 10)[..., :5])
merge_last_two.example("every second number of a row", numbered(2, 7, 3, 10)[..., ::2])
merge_last_two.example("a slice that begins in the middle of its storage", numbered(6, 7, 3, 5)[4:])
merge_last_two.example("one head whose axis has a stride of its own", numbered(2, 7, 5, 3)[..., :1].transpose(2, 3))
merge_last_two.example("a batch of one sentence", numbered(1, 3, 7, 5).transpose(1, 2))
merge_last_two.example("heads of one feature", numbered(2, 7, 1, 3).transpose(2, 3))
merge_last_two.example("whole numbers", numbered(2, 3, 7, 5).long().transpose(1, 2))


@merge_last_two.right
class RightAnswers:
    def last_size_inferred(x):
        return x.reshape(*x.shape[:-2], -1)

    def by_flatten(x):
        return torch.flatten(x, start_dim=-2)

    def by_view_or_a_copy(x):
        try:
            return x.view(_merged_shape(x))
        except RuntimeError:
            return x.contiguous().view(_merged_shape(x))

    def by_the_strides(x):
        *_, m, n = x.shape
        *leading, outer, inner = x.stride()
        if m == 1 or n == 1 or outer == n * inner:
            return x.as_strided(_merged_shape(x), (*leading, outer if n == 1 else inner))
        return x.clone(memory_format=torch.contiguous_format).view(_merged_shape(x))


@merge_last_two.property
def rows_begin_with_row_0(function, x):
    """Each merged row begins with row 0 of the pair of axes."""
    return torch.equal(function(x)[..., : x.shape[-1]], x[..., 0, :])


@merge_last_two.wrong
class Copies:
    def view_alone(x):
        """Your function, like `view`, raises an error if no single stride runs through the last two axes. After a
        transpose that moves one of these two axes, a merged row usually takes uneven steps through storage, which no
        single stride describes: then a copy is needed. Section 1.4 names the operation that copies only where it
        must."""
        return x.view(_merged_shape(x))

    def always_copied(x):
        """{The numbers are right. But} you always copy the numbers, even where one stride runs through the last two
        axes and a view is possible: `cat` and `clone` always copy. The docstring asks for a view where one is possible.
        Try your function on a fresh tensor: a write into the result should show in `x`."""
        return x.reshape(_merged_shape(x)).clone()

    def cloned_and_viewed(x):
        """Your copy cannot be viewed in the new shape: `clone` keeps the order in memory as it was. `contiguous` makes
        a copy in reading order, and `reshape` copies only where it must."""
        if x.is_contiguous():
            return x.view(*x.shape[:-2], -1)
        return x.clone().view(*x.shape[:-2], -1)

    def axes_swapped_back(x):
        """{The shape is right, but} the numbers are scrambled: you swap axes 1 and 2 of `x` before the cut. The swap
        puts the memory in order, so `view` no longer raises an error. But then a row of the result holds several tokens
        of one head instead of all heads of one token. Keep the order of the axes of `x`."""
        return x.transpose(1, 2).reshape(_merged_shape(x))

    def axes_swapped_back_for_view(x):
        """You swap axes 1 and 2 before the cut. If the swap puts the memory in order, `view` no longer raises an error,
        but the numbers are scrambled: a row of the result holds several tokens of one head instead of all heads of one
        token. If the swap does not put the memory in order, `view` still raises an error. Keep the order of the axes of
        `x`."""
        return x.transpose(1, 2).view(_merged_shape(x))

    def read_in_memory_order(x):
        """The numbers come in the order in which they lie in memory, not in the reading order of `x`. For a contiguous
        `x` the two orders are the same, so a small test passes. `as_strided` with the strides of a fresh tensor ignores
        a transpose."""
        return x.as_strided(_merged_shape(x), strides_of.reference(_merged_shape(x)))

    def merged_whatever_the_strides(x):
        """The merged axis gets the stride of the last axis, whether one stride runs through both axes or not. In many
        tensors the step from the end of one row to the start of the next is longer than this stride, so your result
        reads numbers of a different row, or past the end of storage. Section 1.2 has the condition; where it does not
        hold, a copy is needed."""
        return x.as_strided(_merged_shape(x), (*x.stride()[:-2], x.stride(-1)))


@merge_last_two.wrong(alone=True)
class CopiesAlone:
    def always_contiguous(x):
        """{The numbers are right. But} you copy the whole tensor whenever it is not contiguous, although the last two
        axes can often be merged without a copy: what matters is only whether one stride runs through these two axes.
        `contiguous()` looks at all axes. Use the operation that copies only where it must."""
        return x.contiguous().view(_merged_shape(x))

    def copied_for_axes_of_size_one(x):
        """{The numbers are right. But} you copy where one of the two axes has size 1 and a view is possible. The rule
        (the stride of the left axis equals the size times the stride of the right axis) applies only if both axes are
        longer than 1. Along an axis of size 1 there are no steps, so its stride does not matter."""
        *leading, outer, inner = x.stride()
        if outer == x.shape[-1] * inner:
            return x.as_strided(_merged_shape(x), (*leading, inner))
        return x.contiguous().view(_merged_shape(x))


@merge_last_two.wrong
class Axes:
    def all_but_the_last_merged(x):
        """You merge all axes but the last, which gives the shape (batch · seq · heads, d_head): `reshape(-1, …)` is
        often used in this way, to arrange all rows one below the other. Here the last two axes become one axis, and the
        axes in front stay."""
        return x.reshape(-1, x.shape[-1])

    def all_axes_merged(x):
        """All axes are merged into one: a bare `flatten()` or `reshape(-1)` does that. The axes in front of the last
        two have to stay, so their sizes have to appear in the new shape."""
        return x.reshape(-1)

    def all_after_the_first_merged(x):
        """You merge all axes after the first. With three axes that is right; with four axes you merge one axis too
        many. Count the axes from the end: the last two become one, however many axes are in front."""
        return x.reshape(x.shape[0], -1)

    def last_three_merged(x):
        """You merge the last three axes, one too many: the result has shape (batch, seq · heads · d_head). Only the
        last two must become one. Count from the end: `-1` and `-2`."""
        return x.flatten(-3)

    def pair_before_the_last_axis_merged(x):
        """You merge the second-to-last axis with the one before it: the result has shape (batch, seq · heads, d_head).
        Only the last two must become one. Count from the end: `-1` and `-2`."""
        return x.reshape(*x.shape[:-3], -1, x.shape[-1])

    def first_two_merged(x):
        """You merge the first two axes and not the last two. Counted from the end, the last two are -2 and -1, with any
        number of axes in front."""
        return x.flatten(0, 1)

    def leading_axes_merged_too(x):
        """You merge the last two axes, but you also merge the axes in front into one. The axes in front must stay as
        they are: `x.shape[:-2]`, however many there are."""
        return x.reshape(-1, x.shape[-2] * x.shape[-1])

    def axes_counted_from_the_left(x):
        """{Your function is right for four axes only:} you merge from axis 2 on, but the last two axes are 2 and 3 only
        if there are four axes. The docstring allows any number of axes in front. Count the last two from the end: then
        it does not matter how many axes are in front."""
        return x.flatten(2)

    def always_two_axes_in_front(x):
        """{Your function is right for four axes only:} your result has two axes in front of the merged one, however
        many `x` has. The docstring allows any number of axes in front, even none. `x.shape[:-2]` is all sizes but the
        last two, however many there are."""
        return x.reshape(x.shape[0], x.shape[1], -1)

    def batch_of_one_squeezed_away(x):
        """{Your function is right unless an axis in front has size 1:} with a single sentence, your result has lost its
        batch axis. A bare `squeeze()` removes every axis of size 1, even one that the caller needs. Does any axis have
        to be removed here?"""
        return x.reshape(_merged_shape(x)).squeeze()

    def four_axes_only(x):
        """{Your function is right for four axes only:} your function unpacks the shape into exactly four names, but a
        matrix has only two sizes. The docstring allows any number of axes in front. `x.shape[:-2]` is all sizes but the
        last two, however many there are."""
        batch, seq, heads, d_head = x.shape
        return x.reshape(batch, seq, heads * d_head)

    def three_axes_only(x):
        """Your function accepts tensors of three axes and raises an error for all others. There may be any number of
        axes in front, even none: `x.shape[:-2]` holds the sizes of all of them."""
        batch, rows, columns = x.shape
        return x.reshape(batch, rows * columns)

    def rows_added_up(x):
        """You add up the rows, so the axis before the last is gone: `sum` replaces several numbers by one. Here all
        numbers must stay, joined into one row."""
        return x.sum(-2)


@merge_last_two.wrong
class Sizes:
    @ways(for_reshape=torch.Tensor.reshape, for_view=torch.Tensor.view)
    def sizes_added(cut, x):
        """You add the sizes of the last two axes, and PyTorch raises an error: the new shape holds fewer numbers than
        `x`. A table of 3 rows of 5 holds 15 numbers, not 8. How do you combine the two sizes?"""
        return cut(x, *x.shape[:-2], x.shape[-2] + x.shape[-1])

    def number_added_to_a_shape(x):
        """You add a number to a shape: `x.shape[:-2]` is a tuple, and `+` joins a tuple only to another tuple. Make a
        tuple of the number, with a comma in the brackets, or unpack the shape with a star."""
        return x.reshape(x.shape[:-2] + x.shape[-2] * x.shape[-1])

    def shape_and_number_for_reshape(x):
        """You pass a shape and a number to `reshape`, which accepts one shape, or only numbers. A star unpacks the
        front axes: `*x.shape[:-2]`."""
        return x.reshape(x.shape[:-2], x.shape[-2] * x.shape[-1])


@merge_last_two.mistake_around
def merged_in_the_other_order(function):
    """The last two axes are swapped before they are merged, so the first axis of the pair runs fastest. With heads and
    features, feature 0 of every head comes first, then feature 1 of every head. In reading order the last axis runs
    fastest, so the whole of row 0 of these two axes comes first."""

    @functools.wraps(function)
    def with_swapped_axes(x):
        return function(x.transpose(-1, -2))

    return with_swapped_axes
