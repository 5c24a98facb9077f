"""The strides of a fresh tensor, from its shape."""

import math

import torch

from ..exercise import exercise


@exercise(
    inputs=lambda draw: ((2, 3, 4),),
    axes={},
    hints=(
        "Take one step along an axis of a fresh tensor. How many numbers do you pass, and which sizes does that depend "
        "on?",
        "The stride of an axis is the product of all sizes to its right. So the last one is known at once, and each "
        "axis further left takes one more size into the product.",
        "Begin with `step = 1` and go through the sizes from the right: append `step` to a list, then "
        "`step = step * …`. Reverse the list at the end.",
    ),
)
def strides_of(shape):
    """Return the strides of a fresh tensor. shape: sizes of 1 and more. Returns as many ints."""
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
strides_of.example("a single number without axes", ())


@strides_of.equivalent
def by_products(shape):
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


@strides_of.equivalent
def by_dividing_the_total(shape):
    step, strides = math.prod(shape), []
    for size in shape:
        step //= size
        strides.append(step)
    return strides


@strides_of.equivalent
def filled_from_the_right(shape):
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


@strides_of.equivalent
def one_in_front_of_the_rest(shape):
    return (math.prod(shape[1:]), *one_in_front_of_the_rest(shape[1:])) if shape else ()


@strides_of.equivalent
def asked_of_a_tensor(shape):
    return torch.empty(shape, device="meta").stride()


@strides_of.mistake
def from_the_left(shape):
    """The products run from the left, and include the axis's own size: (2, 3, 4) gives (2, 6, 24). It is the running
    product that comes to mind first. One step along the first axis passes over everything to its right, and never over
    itself."""
    return tuple(math.prod(shape[: axis + 1]) for axis in range(len(shape)))


@strides_of.mistake
def first_axis_fastest(shape):
    """The products run over the sizes to the left: (2, 3, 4) gives (1, 2, 6). These are the strides of a tensor whose
    first axis is the fastest, as in Fortran and MATLAB. PyTorch lets the last axis run fastest: which numbers does one
    step along the first axis pass then?"""
    return tuple(math.prod(shape[:axis]) for axis in range(len(shape)))


@strides_of.mistake
def own_size_included(shape):
    """Each product includes the size of its own axis: (2, 3, 4) gives (24, 12, 4). The last stride shows it: neighbours
    in a row lie one place apart, whatever the length of the row. Look at where your product begins."""
    return tuple(math.prod(shape[axis:]) for axis in range(len(shape)))


@strides_of.mistake
def order_reversed(shape):
    """The strides are right, and in the opposite order: (2, 3, 4) gives (1, 4, 12). They are worked out from the last
    axis on, and have to be told from the first axis on. What is still to be done with the list?"""
    return strides_of.reference(shape)[::-1]


@strides_of.mistake
def own_size_included_and_reversed(shape):
    """Two things at once: each product includes the size of its own axis, and the list runs from the last axis to the
    first, so that (2, 3, 4) gives (4, 12, 24). Neighbours in a row lie one place apart: which entry should be 1, and
    where should it stand?"""
    return own_size_included(shape)[::-1]


@strides_of.mistake
def all_other_sizes(shape):
    """Each stride is the product of all sizes but its own: (2, 3, 4) gives (12, 8, 6). It is right that the axis's own
    size stays out. The sizes to its left must stay out as well: a step to the right in a matrix passes one number,
    however many rows there are."""
    return tuple(math.prod(shape) // size for size in shape)


@strides_of.mistake
def number_of_elements_in_front(shape):
    """There is one entry too many: the product of all sizes stands in front, and (2, 3, 4) gives (24, 12, 4, 1). 24 is
    the number of elements. It would be the stride of one more axis further left. Every axis has one stride: how many
    entries must the tuple have?"""
    return (math.prod(shape), *strides_of.reference(shape))


@strides_of.mistake
def only_the_next_size(shape):
    """Each stride is the size of the next axis alone: (2, 3, 4) gives (3, 4, 1). With two axes that is right, with
    three no longer. One step along the first axis passes over all axes to its right: over 3 rows of 4, here."""
    return (*shape[1:], 1) if shape else ()


@strides_of.mistake
def sizes_added(shape):
    """The sizes to the right are added where they have to be multiplied. A block of 3 rows of 4 holds 12 numbers, and
    one step along the axis before passes all of them."""
    return tuple(sum(shape[axis + 1 :]) or 1 for axis in range(len(shape)))


@strides_of.mistake
def last_stride_zero(shape):
    """The last stride is 0. Then every step along a row would stay where it is, and the whole row would be one number,
    as in an expanded tensor. The product over no sizes at all is not 0: by what can you multiply and change nothing?"""
    return (*strides_of.reference(shape)[:-1], 0) if shape else ()


@strides_of.mistake
def last_stride_missing(shape):
    """One stride is missing: the last. The last axis has nothing to its right, and it has a stride all the same, since
    its elements lie some number of places apart. Every axis has one: how many entries must the tuple have?"""
    return strides_of.reference(shape)[:-1]


@strides_of.mistake
def the_shape_itself(shape):
    """You return the sizes themselves. A size says how many places an axis has. A stride says how far one step along it
    moves in storage, and that depends on the axes to its right."""
    return tuple(shape)


@strides_of.mistake
def bytes_of_float32(shape):
    """Every stride is four times as large as it should be: it counts the bytes of float32 numbers. NumPy's `strides` do
    that. PyTorch counts numbers: neighbours in a row lie 1 apart."""
    return tuple(4 * stride for stride in strides_of.reference(shape))


@strides_of.mistake
def bytes_of_float64(shape):
    """Every stride is eight times as large as it should be: it counts the bytes of float64 numbers, as the `strides` of
    NumPy's arrays do. PyTorch counts numbers: neighbours in a row lie 1 apart."""
    return tuple(8 * stride for stride in strides_of.reference(shape))


@strides_of.mistake
def zero_where_the_size_is_one(shape):
    """An axis of size 1 gets the stride 0. A stride of 0 belongs to an axis that was stretched, as `expand` does it. A
    fresh tensor has no exception for size 1: the product of the sizes to its right is taken as everywhere, though
    nobody ever steps along this axis."""
    return tuple(0 if size == 1 else stride for size, stride in zip(shape, strides_of.reference(shape)))


@strides_of.mistake
def one_where_there_is_no_axis(shape):
    """Your result is right for shapes with axes. A single number has the shape `()`: no axis, and so no stride. Yours
    gets one, most often because the list begins with a 1 in it before the first size is looked at."""
    return strides_of.reference(shape) or (1,)


@strides_of.mistake
def three_axes_only(shape):
    """Your function takes shapes of three axes apart, and all others raise. Go through the sizes in a loop, from the
    right: then it does not matter how many there are."""
    _, rows, columns = shape
    return rows * columns, columns, 1


@strides_of.property
def neighbours_one_apart(function, shape):
    """Neighbours in the last axis lie 1 place apart."""
    return function(shape)[-1] == 1


@strides_of.property
def last_element_at_the_end(function, shape):
    """The last element lies at the number of all elements less one."""
    return sum((size - 1) * stride for size, stride in zip(shape, function(shape))) == math.prod(shape) - 1
