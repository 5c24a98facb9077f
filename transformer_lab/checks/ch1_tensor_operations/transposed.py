"""A transpose without a copy, from the strides."""

import torch

from ..exercise import exercise, family
from .strides_of import strides_of
from .views import numbered, view_or_copy


def _tensor_and_two_axes(draw, batch=2, heads=3, seq=7, d_head=5):
    return numbered(batch, heads, seq, d_head), 0, 2


@exercise(
    inputs=_tensor_and_two_axes,
    axes={"x": "batch heads seq d_head"},
    hints=(
        "No number moves in storage. Of the four things that a tensor is made of (storage, shape, strides, offset), "
        "which two have to change?",
        "`x.as_strided(sizes, strides)` reads the storage of `x` with the sizes and strides that you pass. Start from "
        "the tensor's own `x.shape` and `x.stride()`, since `x` may have any strides.",
        "`sizes, strides = list(…), list(…)`; swap entries `dim0` and `dim1` in both, with `a, b = b, a`; "
        "`return x.as_strided(…, …)`.",
    ),
    facts=lambda arguments, result, made: view_or_copy(torch.transpose, arguments, result),
)
def transposed(x, dim0, dim1):
    """Return a view of x with two axes swapped."""
    sizes, strides = list(x.shape), list(x.stride())
    for entries in (sizes, strides):
        entries[dim0], entries[dim1] = entries[dim1], entries[dim0]
    return x.as_strided(sizes, strides)


def _swapped(entries, dim0, dim1):
    entries = list(entries)
    entries[dim0], entries[dim1] = entries[dim1], entries[dim0]
    return entries


transposed.example("a matrix", numbered(3, 5), 0, 1, plain=True)
transposed.example("the axes of a matrix named in the other order", numbered(7, 2), 1, 0, plain=True)
transposed.example("two neighbouring axes in the middle", numbered(2, 7, 3, 5), 1, 2, plain=True)
transposed.example("the outermost axes", numbered(3, 2, 5), 0, 2, plain=True)
transposed.example("axes counted from the end", numbered(2, 3, 7, 5), -1, -3)
transposed.example("a tensor that is transposed already", numbered(2, 7, 3, 5).transpose(1, 2), 1, 2)
transposed.example("a slice with gaps", numbered(6, 7, 10)[::2, :, :5], 0, 2)
transposed.example("a slice that begins in the middle of its storage", numbered(8, 3, 5)[6:], 0, 1)
transposed.example("a square matrix", numbered(4, 4), 0, 1)
transposed.example("whole numbers", numbered(2, 3, 7).long(), 0, 2)


@transposed.right
class RightAnswers:
    def with_the_offset_given(x, dim0, dim1):
        sizes, strides = _swapped(x.shape, dim0, dim1), _swapped(x.stride(), dim0, dim1)
        return torch.as_strided(x, sizes, strides, x.storage_offset())

    def by_axis_order(x, dim0, dim1):
        order = list(range(x.ndim))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        return x.as_strided([x.shape[axis] for axis in order], [x.stride(axis) for axis in order])

    def by_permute(x, dim0, dim1):
        return x.permute(_swapped(range(x.ndim), dim0, dim1))

    def by_transpose(x, dim0, dim1):
        return x.transpose(dim0, dim1)

    def by_moving_two_axes(x, dim0, dim1):
        return x.movedim((dim0, dim1), (dim1, dim0))


@transposed.property
def two_swaps_cancel(function, x, dim0, dim1):
    """After two swaps, all axes and all numbers are where they were."""
    return torch.equal(function(function(x, dim0, dim1), dim0, dim1), x)


@transposed.property
def selected_axis_moves(function, x, dim0, dim1):
    """The numbers at index 1 of one axis were at index 1 of the other axis before the swap."""
    result = function(x, dim0, dim1)
    return torch.equal(result.select(dim0, 1).flatten().sort().values, x.select(dim1, 1).flatten().sort().values)


@transposed.wrong
class SizesAndStrides:
    def strides_of_the_new_shape(x, dim0, dim1):
        """You swap the sizes, and use the strides of a fresh tensor of the new shape. So the numbers keep the order in
        which they lie in memory: nothing is transposed, only the length of the rows changes. A transpose keeps the
        strides of `x` and swaps two of them."""
        sizes = _swapped(x.shape, dim0, dim1)
        return x.as_strided(sizes, strides_of.reference(sizes))

    def strides_of_the_old_shape(x, dim0, dim1):
        """{Your function is right for a contiguous `x` only.} You compute the strides from the shape, but the shape
        does not determine them: after a transpose, or in a slice, the strides are different. Section 1.10 shows two
        tensors that have the same shape and the same storage, but different entries. Ask `x` for its strides."""
        return x.as_strided(_swapped(x.shape, dim0, dim1), _swapped(strides_of.reference(x.shape), dim0, dim1))

    def strides_of_the_original_for_a_copy(x, dim0, dim1):
        """{Your function is right for a tensor whose numbers lie in reading order, and for no other:} you make `x`
        contiguous first, which may copy it, and then read the copy with the old strides of `x`. A copy has its own
        strides. Leave out the copy."""
        return x.contiguous().as_strided(_swapped(x.shape, dim0, dim1), _swapped(x.stride(), dim0, dim1))

    def strides_not_swapped(x, dim0, dim1):
        """The sizes are swapped, but the strides are not. An axis then has the length of the other axis, but still its
        own stride: if the axis became longer, its steps lead past the end of the storage. When an axis moves, its
        stride moves with it."""
        return x.as_strided(_swapped(x.shape, dim0, dim1), x.stride())

    def sizes_not_swapped(x, dim0, dim1):
        """The strides are swapped, but the sizes are not: the shape is still that of `x`. When an axis moves, its size
        moves with it. Each axis now has the stride of the other axis, but its old size: some numbers are never read,
        and the steps may lead past the end of the storage."""
        return x.as_strided(x.shape, _swapped(x.stride(), dim0, dim1))

    def nothing_swapped(x, dim0, dim1):
        """You return `x` unchanged: nothing is swapped. Perhaps you swap entries in a list that is not used afterwards,
        or throw away the result of an operation. `x.transpose(…)` on a line of its own does not change `x`."""
        return x.as_strided(x.shape, x.stride())

    def one_entry_lost(x, dim0, dim1):
        """Both axes end up with the size and the stride of `dim1`: the entry of `dim0` is lost. This happens when a
        swap is written as two assignments, because the second assignment reads an entry that the first has already
        overwritten. Python can make both assignments at once."""
        sizes, strides = list(x.shape), list(x.stride())
        for entries in (sizes, strides):
            entries[dim0] = entries[dim1]
            entries[dim1] = entries[dim0]
        return x.as_strided(sizes, strides)

    def one_entry_lost_the_other_way(x, dim0, dim1):
        """Both axes end up with the size and the stride of `dim0`: the entry of `dim1` is lost. This happens when a
        swap is written as two assignments, because the second assignment reads an entry that the first has already
        overwritten. Python can make both assignments at once."""
        return SizesAndStrides.one_entry_lost(x, dim1, dim0)

    def other_axes_left_out(x, dim0, dim1):
        """Your result has two axes, however many `x` has: the sizes and strides of all other axes are left out. All
        axes must stay; two of them change places."""
        return x.as_strided((x.shape[dim1], x.shape[dim0]), (x.stride(dim1), x.stride(dim0)))

    def sizes_and_strides_exchanged(x, dim0, dim1):
        """You pass the strides as sizes and the sizes as strides: PyTorch finds the storage too short for such a
        tensor. The first argument of `as_strided` is the sizes."""
        return x.as_strided(_swapped(x.stride(), dim0, dim1), _swapped(x.shape, dim0, dim1))

    def shape_assigned_to(x, dim0, dim1):
        """`x.shape` is a kind of tuple, and no entry of a tuple can be replaced. Turn the shape into a list first; the
        strides, `x.stride()`, are a tuple as well."""
        sizes = x.shape
        sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
        return x.as_strided(sizes, x.stride())

    def offset_zero(x, dim0, dim1):
        """{Your function is right as long as `x` begins where its storage begins.} For a slice such as `x[6:]`, your
        result begins at the start of the whole storage, with numbers that are not in `x`. A tensor has a fourth
        part, in addition to storage, shape and strides: what value does this part have in your result?"""
        return x.as_strided(_swapped(x.shape, dim0, dim1), _swapped(x.stride(), dim0, dim1), 0)


@transposed.wrong
class Axes:
    def always_the_last_two(x, dim0, dim1):
        """You swap the last two axes, as `.mT` does, whatever `dim0` and `dim1` are. Swap the two axes that the caller
        named."""
        return x.transpose(-1, -2)

    def always_the_first_two(x, dim0, dim1):
        """You swap the first two axes, whatever `dim0` and `dim1` are. For a matrix there is no difference. Look at
        where your function uses its arguments `dim0` and `dim1`."""
        return x.transpose(0, 1)

    def all_axes_reversed(x, dim0, dim1):
        """You reverse the order of all axes, as NumPy's `.T` does. For a matrix this gives the transpose; with more
        axes, it also moves axes that should stay. Only two axes may change places."""
        return x.permute(tuple(reversed(range(x.ndim))))

    @family(
        moved_instead_of_swapped=(lambda x, dim0, dim1: x.movedim(dim0, dim1), "(b, c, a)"),
        moved_the_other_way=(lambda x, dim0, dim1: x.movedim(dim1, dim0), "(c, a, b)"),
    )
    def moved(move, x, dim0, dim1):
        """One axis moves to the place of the other, and the axes between them shift by one. For neighbouring axes this
        is the same as a swap, but not for other axes: with axes 0 and 2 of (a, b, c) you get {}. Every axis that is not
        named has to keep its place."""
        return move(x, dim0, dim1)

    @family(
        permute_given_two_axes=lambda x, dim0, dim1: x.permute(dim1, dim0),
        two_axes_permuted=lambda x, dim0, dim1: x.permute(dim0, dim1),
    )
    def only_two_axes_named(permute, x, dim0, dim1):
        """`permute` requires the complete new order of the axes, one number for each axis, but you pass two numbers. So
        it raises an error for any tensor with more than two axes. Begin with the present order, `list(range(x.ndim))`:
        which two of its entries have to change places?"""
        return permute(x, dim0, dim1)

    def einsum_of_two_axes(x, dim0, dim1):
        """The letters of your `einsum` name two axes, but a tensor may have any number of axes. The arguments `dim0`
        and `dim1` say which two axes change places, but your letters do not depend on them."""
        return torch.einsum("ij->ji", x)

    def negative_axes_not_recognized(x, dim0, dim1):
        """Axes counted from the end are not recognized: with `-1` and `-3` nothing is swapped. A comparison such as
        `axis == dim0` is never true for a negative number. An index into a list may be negative: a list counts it from
        the end."""
        order = [dim1 if axis == dim0 else dim0 if axis == dim1 else axis for axis in range(x.ndim)]
        return x.permute(order)

    def negative_axes_off_by_one(x, dim0, dim1):
        """{Your function is right for axes counted from the start.} You turn a negative axis into the axis before the
        one that is meant. -1 is the last axis, `x.ndim - 1`: add `x.ndim`, not `x.ndim - 1`."""
        dim0, dim1 = (dim + x.ndim - 1 if dim < 0 else dim for dim in (dim0, dim1))
        return x.as_strided(_swapped(x.shape, dim0, dim1), _swapped(x.stride(), dim0, dim1))


@transposed.wrong
class Copies:
    def cut_in_reading_order(x, dim0, dim1):
        """{The shape is right, but} the numbers stay in reading order, only cut into rows of a different length. The
        cause is `reshape`, or `as_strided` with the strides of a fresh tensor. Column 0 of `x` should be row 0 of the
        result. The new tensor needs the strides of `x`, in a different order."""
        return x.reshape(_swapped(x.shape, dim0, dim1))

    def cut_by_view(x, dim0, dim1):
        """{The shape is right, but} the numbers stay in reading order, only cut into rows of a different length. And if
        `x` is not contiguous, `view` raises an error. `view` never moves an axis. The new tensor needs the strides of
        `x`, in a different order."""
        return x.view(_swapped(x.shape, dim0, dim1))

    def copied(x, dim0, dim1):
        """The numbers {are right, but they} are copied: your result has its own memory, and a write into it does not
        change `x`. Note 000 claims that a transpose is such a copy. A copy costs time and memory for every number; a
        view costs two short lists. Which of your operations puts numbers in new places?"""
        return x.transpose(dim0, dim1).clone(memory_format=torch.contiguous_format)

    def copied_into_reading_order(x, dim0, dim1):
        """The numbers {are right, but they} are copied, unless they are in reading order already: this is how
        `contiguous()` works. A write into your result does not change `x`. A transpose needs no particular order in
        memory: leave the numbers where they are."""
        return x.transpose(dim0, dim1).contiguous()

    def made_contiguous_first(x, dim0, dim1):
        """{The numbers are right. But} if `x` is not contiguous, you copy it first, so the result is not a view of `x`:
        a write into the result does not change `x`. A transpose works with any strides of `x`. Is there a `contiguous`,
        `reshape` or `flatten` before the swap?"""
        return x.contiguous().transpose(dim0, dim1)

    def x_itself_changed(x, dim0, dim1):
        """{The result is right, but} `x` is changed: the caller's tensor has its axes swapped afterwards. Operations
        whose name ends in an underscore, such as `transpose_` and `as_strided_`, change the tensor itself. Without the
        underscore they return a new tensor over the same storage."""
        return x.as_strided_(_swapped(x.shape, dim0, dim1), _swapped(x.stride(), dim0, dim1))
