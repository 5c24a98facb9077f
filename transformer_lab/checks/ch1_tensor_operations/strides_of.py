"""The strides of a fresh tensor, from its shape."""

import functools
import math
import operator

import torch

from ..exercise import exercise, family


@exercise(
    inputs=lambda draw: ((2, 3, 4),),
    axes={},
    hints=(
        "Take one step along an axis of a fresh tensor. How many elements do you skip, and on which sizes does this "
        "count depend?",
        "The stride of an axis is the product of all sizes to its right. So you know the stride of the last axis at "
        "once, and for each axis further left, the product has one more factor.",
        "Begin with `step = 1` and go through the sizes from the right: append `step` to a list, then "
        "`step = step * …`. Reverse the list at the end.",
    ),
)
def strides_of(shape):
    """Return the strides of a fresh tensor. shape: sizes of 1 and more. Returns a tuple or list, one int for each
    axis."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


strides_of.example("an axis of size one among four", (5, 1, 7, 2), plain=True)
strides_of.example("a matrix", (3, 5), plain=True)
strides_of.example("a tensor of five axes", (2, 7, 3, 5, 4), plain=True)
strides_of.example("one axis", (7,))
strides_of.example("a last axis of size one", (4, 3, 1))
strides_of.example("a tensor of nine axes", (2, 1, 3, 2, 1, 2, 5, 3, 4))
strides_of.example("a single number without axes", ())


@strides_of.right
class RightAnswers:
    def by_products(shape):
        return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))

    def by_dividing_the_total(shape):
        step, strides = math.prod(shape), []
        for size in shape:
            step //= size
            strides.append(step)
        return strides

    def filled_from_the_right(shape):
        strides = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
        return tuple(strides)

    def by_recursion(shape):
        return (math.prod(shape[1:]), *RightAnswers.by_recursion(shape[1:])) if shape else ()

    def by_meta_tensor(shape):
        return torch.empty(shape, device="meta").stride()


@strides_of.property
def neighbours_one_apart(function, shape):
    """Neighbours along the last axis lie 1 place apart."""
    return function(shape)[-1] == 1


@strides_of.property
def last_element_at_the_end(function, shape):
    """The place of the last element is the number of elements minus one."""
    return sum((size - 1) * stride for size, stride in zip(shape, function(shape))) == math.prod(shape) - 1


@strides_of.wrong
class Products:
    def from_the_left(shape):
        """Your products run from the left and include the axis's own size: (2, 3, 4) gives (2, 6, 24). One step along
        the first axis passes over all the axes to its right; the size of the first axis itself does not count."""
        return tuple(math.prod(shape[: axis + 1]) for axis in range(len(shape)))

    def from_the_left_and_reversed(shape):
        """You multiply the sizes to the left of each axis, and then reverse the list: (2, 3, 4) gives (6, 2, 1). The 1
        is in the right place, but the stride of an axis is the product of the sizes to the right of this axis. From
        which end do you multiply?"""
        return Products.first_axis_fastest(shape)[::-1]

    def from_the_left_with_own_size_reversed(shape):
        """You compute the running product of the sizes from the left and reverse it: (2, 3, 4) gives (24, 6, 2). The
        stride of an axis is the product of the sizes to the right of this axis: from which end do you multiply, and
        with which number does the product begin?"""
        return Products.from_the_left(shape)[::-1]

    def first_axis_fastest(shape):
        """You multiply the sizes to the left of each axis: (2, 3, 4) gives (1, 2, 6). These are the strides of a tensor
        whose first axis is the fastest, as in Fortran and MATLAB. In PyTorch the last axis is the fastest: how many
        numbers does one step along the first axis then pass?"""
        return tuple(math.prod(shape[:axis]) for axis in range(len(shape)))

    def own_size_included(shape):
        """Each product includes the size of its own axis: (2, 3, 4) gives (24, 12, 4). The last stride shows the
        mistake: neighbours in a row lie one place apart, whatever the length of the row. Look at where your product
        begins."""
        return tuple(math.prod(shape[axis:]) for axis in range(len(shape)))

    def own_size_included_and_reversed(shape):
        """There are two mistakes: each product includes the size of its own axis, and the list runs from the last axis
        to the first, so that (2, 3, 4) gives (4, 12, 24). Neighbours in a row lie one place apart: which axis has
        the stride 1, and at which end of the tuple does it belong?"""
        return Products.own_size_included(shape)[::-1]

    def own_size_included_except_in_the_last(shape):
        """Each product but the last includes the size of its own axis: (2, 3, 4) gives (24, 12, 1). The stride of an
        axis is the product of only the sizes to the right of this axis: look at where your product begins."""
        return (*Products.own_size_included(shape)[:-1], 1) if shape else ()

    def own_size_for_the_next(shape):
        """Each stride includes the axis's own size and leaves out one size to its right: (2, 3, 4) gives (6, 3, 1).
        Multiply the stride of the next axis by the size of the next axis, not by the size of this axis. Work out by
        hand which entry of `shape` each iteration reads."""
        strides = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * shape[axis]
        return tuple(strides)

    def second_size_first(shape):
        """The sizes are multiplied in the wrong order: (2, 3, 4) gives (12, 3, 1). You fill the list from the right,
        but read the sizes from the left. Which size does a step along the second-to-last axis have to pass over?"""
        return tuple(math.prod(shape[1 : len(shape) - axis]) for axis in range(len(shape)))

    def second_size_first_and_reversed(shape):
        """Your products run from the second size to the right: (2, 3, 4) gives (1, 3, 12). The first axis must have the
        longest steps, over all axes to its right: from which end do you multiply?"""
        return Products.second_size_first(shape)[::-1]

    def all_other_sizes(shape):
        """Each stride is the product of all sizes but that of its own axis: (2, 3, 4) gives (12, 8, 6). Leaving out the
        axis's own size is right. Leave out the sizes to the left of the axis as well: a step to the right in a matrix
        passes one number, however many rows there are."""
        return tuple(math.prod(shape) // size for size in shape)

    def only_the_next_size(shape):
        """Each stride is the size of the next axis alone: (2, 3, 4) gives (3, 4, 1). With two axes that is right, but
        not with three. One step along the first axis passes over all axes to its right: here, over 3 rows of 4."""
        return (*shape[1:], 1) if shape else ()

    def only_the_last_size(shape):
        """Every stride but the last is the last size alone: (2, 3, 4) gives (4, 4, 1). For a matrix that is right. For
        each axis further left the product has one more factor: does your product grow from one iteration to the
        next?"""
        return tuple(shape[-1] for _ in shape[1:]) + (1,) * bool(shape)

    def two_sizes_at_most(shape):
        """{Your function is right for up to three axes.} With more than three axes, each stride is the product of the
        next two sizes only. One step along an axis passes over *all* axes to its right."""
        return tuple(math.prod(shape[axis + 1 : axis + 3]) for axis in range(len(shape)))

    def next_size_left_out(shape):
        """The next size is left out of each product: (2, 3, 4) gives (4, 1, 1). The sizes to the right of an axis begin
        with the size of the very next axis. Check where your slice or your loop begins."""
        return tuple(math.prod(shape[axis + 2 :]) for axis in range(len(shape)))

    def last_size_left_out(shape):
        """The last size is in none of your products: (2, 3, 4) gives (3, 1, 1). One step along the axis before the last
        passes a whole row, so the last size belongs in all products but the last."""
        return tuple(math.prod(shape[axis + 1 : -1]) for axis in range(len(shape)))

    def one_less_of_each_size(shape):
        """You subtract one from each size before you multiply: (2, 3, 4) gives (6, 3, 1). A row of 4 numbers is 4
        places long, and so the next row begins 4 places later."""
        return tuple(math.prod(size - 1 for size in shape[axis + 1 :]) for axis in range(len(shape)))

    def sizes_squared(shape):
        """Each stride is a power of the axis's own size. A step along an axis passes over the axes to its right: the
        product of their sizes is the stride."""
        return tuple(size ** (len(shape) - 1 - axis) for axis, size in enumerate(shape))

    @family(powers_of_the_first_size=(0, "first", "(4, 2, 1)"), powers_of_the_last_size=(-1, "last", "(16, 4, 1)"))
    def powers_of_one_size(axis, shape):
        """Your strides are powers of the {} size: (2, 3, 4) gives {}. For each axis further left the product has one
        more factor, a different size. Which entry of `shape` does each iteration of your loop read?"""
        return tuple(shape[axis] ** power for power in reversed(range(len(shape))))

    def sizes_added(shape):
        """You add the sizes to the right of each axis, but must multiply them. A block of 3 rows of 4 holds 12 numbers,
        and one step along the first axis of (2, 3, 4) passes all of them."""
        return tuple(sum(shape[axis + 1 :]) or 1 for axis in range(len(shape)))

    @family(
        sizes_added_to_one=(1, "the sizes", "(8, 5, 1)"),
        sizes_added_to_zero=(0, "the sizes to the right", "(7, 4, 0)"),
    )
    def added_to(start, shape):
        """You add {}, but must multiply them: (2, 3, 4) gives {}. A block of 3 rows of 4 holds 12 numbers, and one step
        along the first axis passes all of them."""
        return tuple(sum(shape[axis + 1 :], start) for axis in range(len(shape)))

    def sizes_added_from_the_axis_itself(shape):
        """You add the sizes, including the axis's own: (2, 3, 4) gives (9, 7, 4). Multiply them, and only the sizes to
        the right: a block of 3 rows of 4 holds 12 numbers."""
        return tuple(sum(shape[axis:]) for axis in range(len(shape)))


@strides_of.wrong
class Entries:
    def order_reversed(shape):
        """The strides are {right, but} in the opposite order: (2, 3, 4) gives (1, 4, 12). You compute them from the
        last axis to the first, but the tuple must begin with the first axis. What must still be done with the list?"""
        return strides_of.reference(shape)[::-1]

    def number_of_elements_in_front(shape):
        """There is one entry too many, the product of all sizes, which comes first: (2, 3, 4) gives (24, 12, 4, 1). The
        24 is the number of elements, not a stride. Every axis has one stride: how many entries must the tuple have?"""
        return (math.prod(shape), *strides_of.reference(shape))

    def last_stride_zero(shape):
        """The last stride is 0. With a stride of 0, every step along a row would stay at the same number, as in an
        expanded tensor. The product over no sizes at all is not 0: by which number can you multiply without changing
        anything?"""
        return (*strides_of.reference(shape)[:-1], 0) if shape else ()

    def last_stride_missing(shape):
        """The last stride is missing. The last axis has no axis to its right, but it still has a stride, since its
        elements are some number of places apart. How many entries must the tuple have?"""
        return strides_of.reference(shape)[:-1]

    def first_axis_missing(shape):
        """The stride of the first axis is missing. Every axis has a stride. Often a loop that counts down stops at 1: a
        `range` leaves out its end."""
        return strides_of.reference(shape)[1:]

    def first_axis_missing_and_reversed(shape):
        """There are two mistakes: the stride of the first axis is missing, and the others come in the opposite order.
        The tuple needs one stride for every axis, from the first axis to the last. Look at where your loop ends, and at
        the order of your list."""
        return strides_of.reference(shape)[:0:-1]

    def first_stride_left_at_one(shape):
        """{All strides are right except that} the first stride is 1: the loop ends one axis too early. A `range` leaves
        out its end, even where it counts down: `range(n, 0, -1)` ends at 1."""
        strides = [1] * len(shape)
        for axis in range(len(shape) - 2, 0, -1):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
        return tuple(strides)

    def ends_after_the_last_axis(shape):
        """Only the last axis gets its stride. Most often the `return` is inside the loop, so that the function ends in
        the first iteration. Look at how far the `return` is indented."""
        return (1,) * bool(shape)

    def stride_of_the_first_axis_alone(shape):
        """You return one number, the stride of the first axis. The tuple must hold the strides of all axes, from the
        first to the last."""
        return math.prod(shape[1:])

    def number_of_elements_alone(shape):
        """You return one number, the product of all sizes, which is the number of elements. The tuple must hold the
        strides of all axes. What must you keep in each iteration of the loop?"""
        return math.prod(shape)

    def all_ones(shape):
        """Every stride is 1. {This is right for the last axis:} neighbours in a row lie side by side. One step along
        the first axis passes whole rows: for each axis, multiply the sizes to its right."""
        return (1,) * len(shape)

    def all_zeros(shape):
        """Every stride is 0: a product that begins with 0 stays 0. The product over no sizes at all is not 0: by which
        number can you multiply without changing anything?"""
        return (0,) * len(shape)

    def numbers_of_the_axes(shape):
        """Your entries count the axes, from the last to the first, and do not depend on the sizes: every shape of three
        axes gives (2, 1, 0). A step along an axis passes all the numbers that the axes to its right hold."""
        return tuple(range(len(shape)))[::-1]

    def the_shape_itself(shape):
        """You return the sizes themselves. A size says how many entries an axis has. A stride says how far one step
        along the axis moves in storage, and this distance depends on the axes to its right."""
        return tuple(shape)

    def sizes_reversed(shape):
        """You return the sizes in the opposite order. A size says how many entries an axis has. A stride says how far
        one step along the axis moves in storage, and this distance is the product of the sizes to its right."""
        return tuple(shape[::-1])

    def one_too_small(shape):
        """Every stride is one too small: (2, 3, 4) gives (11, 3, 0). Place 11 is the last place inside a block, but one
        step leads to the first place after the block. What do you subtract, and why?"""
        return tuple(stride - 1 for stride in strides_of.reference(shape))

    def one_too_large(shape):
        """Every stride is one too large: (2, 3, 4) gives (13, 5, 2). Neighbours in a row lie one place apart, not two.
        What do you add to the product, or with which number does it begin?"""
        return tuple(stride + 1 for stride in strides_of.reference(shape))

    def bytes_of_float32(shape):
        """Every stride is four times as large as it should be: you count the bytes of float32 numbers, as NumPy's
        `strides` do. PyTorch counts numbers: neighbours in a row lie one place apart."""
        return tuple(4 * stride for stride in strides_of.reference(shape))

    def bytes_of_float64(shape):
        """Every stride is eight times as large as it should be: you count the bytes of float64 numbers, as NumPy's
        `strides` do. PyTorch counts numbers: neighbours in a row lie one place apart."""
        return tuple(8 * stride for stride in strides_of.reference(shape))

    def size_one_skipped(shape):
        """Axes of size 1 have no entry in your result. There are no steps along such an axis, but it still has a
        stride: the product of the sizes to its right."""
        return tuple(stride for size, stride in zip(shape, strides_of.reference(shape)) if size != 1)

    def zero_where_the_size_is_one(shape):
        """An axis of size 1 gets the stride 0, as if `expand` had stretched it. In a fresh tensor an axis of size 1 is
        no exception: its stride is the product of the sizes to its right, although there are no steps along it."""
        return tuple(0 if size == 1 else stride for size, stride in zip(shape, strides_of.reference(shape)))

    def one_where_the_size_is_one(shape):
        """An axis of size 1 gets the stride 1. In a fresh tensor an axis of size 1 is no exception: its stride is the
        product of the sizes to its right, although there are no steps along it."""
        return tuple(1 if size == 1 else stride for size, stride in zip(shape, strides_of.reference(shape)))

    def stride_one_without_axes(shape):
        """{Your function is right for every shape with axes.} A single number has the shape `()`: it has no axis, and
        so no stride. Your function returns one stride, most often because the list begins with a 1."""
        return strides_of.reference(shape) or (1,)

    @family(
        nothing_returned_without_axes=(None, "your function returns `None`"),
        number_zero_without_axes=(0, "you return the number 0"),
        number_one_without_axes=(1, "you return the number 1"),
    )
    def no_tuple_without_axes(result, shape):
        """{Your function is right for every shape with axes.} For a single number, whose shape is `()`, {}. A single
        number has no axis, and so no stride: which tuple has no entries?"""
        return strides_of.reference(shape) or result

    def stride_zero_without_axes(shape):
        """{Your function is right for every shape with axes.} A single number has the shape `()`: it has no axis, and
        so no stride. Your function returns the stride 0."""
        return strides_of.reference(shape) or (0,)


@strides_of.wrong
class Errors:
    def axes_taken_for_granted(shape):
        """{Your function is right for every shape with axes.} A single number has the shape `()`, and your function
        tries to read an entry of it, hence the `IndexError`. What should your function return if there are no axes?"""
        return (*strides_of.reference(shape)[:-1], shape[-1] // shape[-1])

    def last_entry_set_without_axes(shape):
        """{Your function is right for every shape with axes.} A single number has the shape `()`, and so your list has
        no last entry that could be set, hence the `IndexError`. What should your function return if there are no
        axes?"""
        strides = list(strides_of.reference(shape))
        strides[-1] = 1
        return strides

    def three_axes_only(shape):
        """Your function unpacks shapes of three axes and raises an error for all others. Go through the sizes in a
        loop, from the right: then it does not matter how many there are."""
        _, rows, columns = shape
        return rows * columns, columns, 1

    def beyond_the_last_axis(shape):
        """You read the size of an axis to the right of the last axis, hence the `IndexError`. With n axes the last has
        the number n − 1, and there is no axis to its right."""
        strides = [1] * len(shape)
        for axis in reversed(range(len(shape))):
            strides[axis] = strides[axis] * shape[axis + 1]
        return tuple(strides)

    def read_past_the_last_axis(shape):
        """You read a list one place past its end: the last axis has no axis to its right. Set the last stride to 1
        before the loop, and let the loop run to the left from the axis before the last."""
        strides = [1] * len(shape)
        for axis in range(len(shape)):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
        return tuple(strides)

    def index_into_an_empty_list(shape):
        """You use an entry that your list does not have, hence the `IndexError`. An empty list cannot be filled by
        index, and there is no axis to the right of the last axis. Make the list as long as the shape, or append."""
        strides = []
        for axis in reversed(range(len(shape))):
            strides[axis] = math.prod(shape[axis + 1 :])
        return tuple(strides)

    def written_into_a_tuple(shape):
        """A tuple cannot be changed, hence the `TypeError`. Collect the strides in a list, and convert the list to a
        tuple at the end."""
        strides = tuple(shape)
        strides[0] = 1
        return strides

    def appended_to_a_tuple(shape):
        """A tuple has no `append`, hence the `AttributeError`: a tuple cannot be changed. Collect the strides in a
        list, and convert the list to a tuple at the end."""
        return tuple(shape).append(1)

    def pop_from_a_tuple(shape):
        """A tuple has no `pop`, hence the `AttributeError`: a tuple cannot be changed. Go through the shape in a loop,
        or convert it to a list first."""
        return shape.pop()

    def reverse_of_a_tuple(shape):
        """A tuple has no `reverse`, hence the `AttributeError`: a tuple cannot be changed. `reversed(…)` and `[::-1]`
        work on tuples as well."""
        return tuple(shape).reverse()

    def reduced_without_initial_value(shape):
        """`reduce` raises an error because it has nothing to multiply: there are no sizes to the right of the last
        axis. A product of no numbers is 1. Pass `reduce` this 1 as its third argument, or use `math.prod`, which
        returns 1 for no numbers."""
        return tuple(functools.reduce(operator.mul, shape[axis + 1 :]) for axis in range(len(shape)))
