"""Where an element lies in storage, from its index and the strides."""

import functools
import math
import operator

import torch

from ..exercise import exercise


@exercise(
    inputs=lambda draw: ((1, 2, 3), (12, 4, 1)),
    axes={},
    hints=(
        "How many places does one step along an axis move you, and how many steps does the index ask for on that axis?",
        "Section 1.1 has the formula. You count from the tensor's first element, so leave its offset out. The rest "
        "needs only the two tuples: each index meets the stride of its own "
        "axis, and `zip` walks through both at once.",
        "`place = 0`, then a loop `for i, stride in zip(…, …)` that adds `…` to `place`. The `return` comes after "
        "the loop.",
    ),
)
def flat_offset(index, strides):
    """Return the place of an element in storage. index, strides: one int for each axis."""
    return sum(i * stride for i, stride in zip(index, strides))


flat_offset.example("a transposed tensor", (1, 2, 3), (1, 20, 5), plain=True)
flat_offset.example("a slice with gaps", (3, 4), (24, 2), plain=True)
flat_offset.example("one axis", (5,), (3,), plain=True)
flat_offset.example("an index with zeros", (0, 2, 0, 1), (60, 20, 5, 1), plain=True)
flat_offset.example("a stretched axis of stride 0", (2, 3, 4), (7, 0, 1))
flat_offset.example("the first element", (0, 0, 0), (12, 4, 1))
flat_offset.example("a single number without axes", (), ())


@flat_offset.equivalent
def by_loop(index, strides):
    place = 0
    for axis in range(len(index)):
        place += index[axis] * strides[axis]
    return place


@flat_offset.equivalent
def by_map(index, strides):
    return sum(map(operator.mul, index, strides))


@flat_offset.equivalent
def by_recursion(index, strides):
    return index[0] * strides[0] + by_recursion(index[1:], strides[1:]) if index else 0


@flat_offset.equivalent
def by_tensors(index, strides):
    return (torch.tensor(index) * torch.tensor(strides)).sum().item()


@flat_offset.equivalent
def by_asking_a_tensor(index, strides):
    sizes = [i + 1 for i in index]
    x = torch.empty_strided(sizes, strides)
    return x[index].storage_offset()


@flat_offset.mistake
def not_added_up(index, strides):
    """You return the move along each axis, one number for each. They have to be added up: storage is a single long row,
    and the element lies at one place in it."""
    return tuple(i * stride for i, stride in zip(index, strides))


@flat_offset.mistake
def strides_reversed(index, strides):
    """The first index is multiplied by the last stride, and so on: the pairs run against one another. It comes from
    reading the formula from the right on one side only. Index and stride of the same axis belong together. Try it with
    index (1, 0) and strides (3, 1), which is place 3."""
    return sum(i * stride for i, stride in zip(index, reversed(strides)))


@flat_offset.mistake
def strides_taken_as_shape(index, strides):
    """Your places come out as if `strides` were a shape: larger steps are worked out from it by multiplying. For that,
    one would need the sizes; here the work is done already, and each stride says directly how far one step goes. Ask
    what (1, 0) with strides (3, 1) should give without multiplying strides by one another."""
    place = 0
    for i, stride in zip(index, strides):
        place = place * stride + i
    return place


@flat_offset.mistake
def added_instead(index, strides):
    """Index and stride are added where they have to be multiplied: index 0 already moves you, by a whole stride. But no
    step means no move. Think of 3 steps of 4 places each: is that 7 places or 12?"""
    return sum(i + stride for i, stride in zip(index, strides))


@flat_offset.mistake
def products_multiplied(index, strides):
    """The moves along the axes are multiplied with one another, where they follow one after the other and add up. An
    index with a zero in it shows it: yours always ends at place 0 then. Walk to [1, 2] by hand: first down, then to the
    right."""
    return math.prod(i * stride for i, stride in zip(index, strides))


@flat_offset.mistake
def sums_multiplied(index, strides):
    """All indices are added, all strides are added, and the two sums are multiplied. That mixes the axes: a step on one
    axis is charged with the strides of all the others. Each index may meet the stride of its own axis only."""
    return sum(index) * sum(strides)


@flat_offset.mistake
def only_the_last_axis(index, strides):
    """Your result is that of the last axis alone. This happens when a loop sets the place anew in each round where it
    should go on from where it is. Look at what happens to the first axis's share in the second round."""
    return index[-1] * strides[-1] if index else 0


@flat_offset.mistake
def only_the_first_axis(index, strides):
    """Your result is that of the first axis alone. Most often a `return` stands inside the loop, so that the function
    ends in the first round. Look at how far the `return` is indented."""
    for i, stride in zip(index, strides):
        return i * stride


@flat_offset.mistake
def first_axis_left_out(index, strides):
    """The first axis does not count: all elements that differ in their first index get the same place. Often the loop
    begins at 1. Axes are counted from 0, and the first has the longest steps of a fresh tensor."""
    return sum(i * stride for i, stride in zip(index[1:], strides[1:]))


@flat_offset.mistake
def last_axis_left_out(index, strides):
    """The last axis does not count: all elements of a row get the same place. Often the loop ends one axis early, at
    `len(index) - 1`. `range(n)` leaves out n by itself."""
    return sum(i * stride for i, stride in zip(index[:-1], strides[:-1]))


@flat_offset.mistake
def last_stride_taken_as_one(index, strides):
    """The last index is added as it is, as if the last stride were always 1. So it is in a fresh tensor, and no longer
    after a transpose or in a slice such as `x[:, ::2]`. The tuple says what the last stride is: use it."""
    return sum(i * stride for i, stride in zip(index[:-1], strides)) + sum(index[-1:])


@flat_offset.mistake
def one_step_too_far(index, strides):
    """You walk one step too many on every axis: index 0 already moves. An index counts steps, not elements, and so the
    first element needs none. Check the index (0, 0, 0): it must lie at place 0."""
    return sum((i + 1) * stride for i, stride in zip(index, strides))


@flat_offset.mistake
def one_step_too_few(index, strides):
    """You walk one step too few on every axis, as if indices began at 1. In PyTorch they begin at 0: the index is the
    number of steps. Check the index (0, 0, 0): it must lie at place 0, and yours lies before the storage begins."""
    return sum((i - 1) * stride for i, stride in zip(index, strides))


@flat_offset.mistake
def counted_from_one(index, strides):
    """Every place is one too large: the first element gets place 1. Places are counted from 0, as indices are:
    `storage[0]` is the first number. Look at what your sum begins with."""
    return 1 + sum(i * stride for i, stride in zip(index, strides))


@flat_offset.mistake
def counted_in_bytes(index, strides):
    """Every place is four times as large as it should be, as if it counted the bytes of float32 numbers. NumPy's
    strides count bytes. PyTorch's count numbers, and so does a place in storage."""
    return 4 * sum(i * stride for i, stride in zip(index, strides))


@flat_offset.mistake
def index_only_as_a_question(index, strides):
    """A stride counts once where its index is not 0, however large the index is: 3 steps of 4 places come out as 4. The
    index says how many steps there are. What has to be done with the two numbers?"""
    return sum(stride for i, stride in zip(index, strides) if i)


@flat_offset.mistake
def strides_not_used(index, strides):
    """The numbers of the index are added up, and the strides have no part in the result. A step along an axis passes as
    many places as its stride says, and not one."""
    return sum(index)


@flat_offset.mistake
def two_axes_only(index, strides):
    """Two axes are counted, whatever the tensor has: with one axis it raises, and from the third on the steps are lost.
    A loop over both tuples counts as many as there are."""
    return index[0] * strides[0] + index[1] * strides[1]


@flat_offset.mistake
def nothing_to_begin_with(index, strides):
    """Right for every tensor with axes. A single number has none, and `reduce` raises when it finds nothing to begin
    with. It takes the first value as a third argument: where does an element lie that is 0 steps away?"""
    return functools.reduce(operator.add, [i * stride for i, stride in zip(index, strides)])


@flat_offset.property
def one_more_is_one_stride(function, index, strides):
    """One more in an index moves the place by the stride of that axis."""
    here = function(index, strides)
    steps = [(*index[:axis], index[axis] + 1, *index[axis + 1 :]) for axis in range(len(index))]
    return all(function(there, strides) - here == stride for there, stride in zip(steps, strides))


@flat_offset.property
def zeros_at_place_0(function, index, strides):
    """An index of zeros lies at place 0."""
    return function((0,) * len(index), strides) == 0
