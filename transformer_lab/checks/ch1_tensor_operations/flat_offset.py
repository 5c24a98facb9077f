"""Where an element lies in storage, from its index and the strides."""

import functools
import itertools
import math
import operator

import torch

from ..exercise import exercise, family, with_text_of


@exercise(
    inputs=lambda draw: ((1, 2, 3), (12, 4, 1)),
    axes={},
    hints=(
        "How many places does one step along an axis move you, and how many steps along that axis does the index "
        "specify?",
        "Section 1.1 has the formula. Places are counted from the tensor's first element, so ignore the tensor's "
        "offset. You need only the two tuples: multiply each entry of `index` by the stride of its axis. `zip` "
        "iterates over both tuples at once.",
        "`place = 0`, then a loop `for i, stride in zip(…, …)` that adds `…` to `place`. The `return` comes after "
        "the loop.",
    ),
)
def flat_offset(index, strides):
    """Return the place of an element in storage, as an int. index, strides: one int for each axis."""
    return sum(i * stride for i, stride in zip(index, strides))


flat_offset.example("a transposed tensor", (1, 2, 3), (1, 20, 5), plain=True)
flat_offset.example("a slice with gaps", (3, 4), (24, 2), plain=True)
flat_offset.example("one axis", (5,), (3,), plain=True)
flat_offset.example("an index with zeros", (0, 2, 0, 1), (60, 20, 5, 1), plain=True)
flat_offset.example("a stretched axis of stride 0", (2, 3, 4), (7, 0, 1))
flat_offset.example("the first element", (0, 0, 0), (12, 4, 1))
flat_offset.example("the same number of steps along each axis", (2, 2, 2), (12, 4, 1))
flat_offset.example("overlapping windows, with two equal strides", (3, 2, 1), (8, 1, 1))
flat_offset.example("nine axes", (1, 0, 2, 1, 0, 1, 1, 2, 1), (768, 768, 256, 128, 128, 64, 12, 4, 1))
flat_offset.example("a single number without axes", (), ())


@flat_offset.right
class RightAnswers:
    def by_loop(index, strides):
        place = 0
        for axis in range(len(index)):
            place += index[axis] * strides[axis]
        return place

    def by_map(index, strides):
        return sum(map(operator.mul, index, strides))

    def by_recursion(index, strides):
        return index[0] * strides[0] + RightAnswers.by_recursion(index[1:], strides[1:]) if index else 0

    def by_tensors(index, strides):
        index, strides = (torch.tensor(entries, dtype=torch.int64) for entries in (index, strides))
        return (index * strides).sum().item()

    def by_empty_strided(index, strides):
        sizes = [i + 1 for i in index]
        x = torch.empty_strided(sizes, strides)
        return x[index].storage_offset()


@flat_offset.property
def one_more_is_one_stride(function, index, strides):
    """Adding 1 to the index on one axis moves the place by the stride of that axis."""
    place = function(index, strides)
    neighbours = [(*index[:axis], index[axis] + 1, *index[axis + 1 :]) for axis in range(len(index))]
    return all(function(neighbour, strides) - place == stride for neighbour, stride in zip(neighbours, strides))


@flat_offset.property
def zeros_at_place_0(function, index, strides):
    """The element whose indices are all 0 lies at place 0."""
    return function((0,) * len(index), strides) == 0


@flat_offset.wrong
class Moves:
    def not_added_up(index, strides):
        """You return a list of moves, one for each axis. The moves have to be added up: storage is a single long row,
        and the element lies at one place in it."""
        return tuple(i * stride for i, stride in zip(index, strides))

    @with_text_of(not_added_up)
    def moves_in_a_tensor(index, strides):
        return torch.tensor(index) * torch.tensor(strides)

    def place_after_each_axis(index, strides):
        """You return the place reached after each axis: a list, of which only the last number is the answer. The
        element lies at one place."""
        return list(itertools.accumulate(i * stride for i, stride in zip(index, strides)))

    def largest_move_alone(index, strides):
        """Your result is the largest of the moves along the axes, and the others are lost. You walk along every axis,
        one after the other: how do several moves combine?"""
        return max((i * stride for i, stride in zip(index, strides)), default=0)

    def index_plus_stride(index, strides):
        """You add index and stride instead of multiplying them, so even index 0 moves you by a whole stride. But no
        step means no move. Think of 3 steps of 4 places each: is that 7 places or 12?"""
        return sum(i + stride for i, stride in zip(index, strides))

    def products_multiplied(index, strides):
        """You multiply the moves along the axes, but moves that follow one another add up. An index with a zero in it
        shows the mistake: your result is then always place 0. Walk to [1, 2] by hand: first down, then to the right."""
        return math.prod(i * stride for i, stride in zip(index, strides))

    def sums_multiplied(index, strides):
        """You add all indices, add all strides, and multiply the two sums. This mixes the axes: a step along one axis
        is multiplied by the strides of all the other axes too. Multiply each index only by the stride of its own
        axis."""
        return sum(index) * sum(strides)

    def product_of_index_plus_strides(index, strides):
        """You multiply the sums of index and stride: you have exchanged product and sum. First multiply each index by
        its stride, then add up the moves."""
        return math.prod(i + stride for i, stride in zip(index, strides))

    def place_multiplied_by_every_stride(index, strides):
        """In each iteration, you also multiply the place reached so far by the stride. Multiply only the index of the
        axis by its stride: the place reached so far stays as it is. Look at your brackets."""
        place = 0
        for i, stride in zip(index, strides):
            place = (place + i) * stride
        return place

    def negated(index, strides):
        """Every place has the wrong sign: you subtract the moves instead of adding them. Each step leads away from the
        first element, to larger places. Look at the sign where you collect the moves."""
        return -flat_offset.reference(index, strides)

    def moves_subtracted_in_turn(index, strides):
        """You subtract the moves along the later axes from the move along the first. But each move leads further into
        storage: a step to the right moves forward, as a step down does."""
        first, *rest = [i * stride for i, stride in zip(index, strides)] or [0]
        return first - sum(rest)

    def stride_once_if_index_is_not_zero(index, strides):
        """You add a stride once if its index is not 0, however large the index is: for 3 steps of 4 places you get 4.
        The index says how many steps there are. How do you combine it with the stride?"""
        return sum(stride for i, stride in zip(index, strides) if i)

    def strides_not_used(index, strides):
        """You add up the numbers of the index and do not use the strides. A step along an axis passes as many places as
        its stride says, not one."""
        return sum(index)

    def strides_added_up(index, strides):
        """Your result is the sum of the strides, whatever the index is: every element gets the same place. The index
        says how many steps there are along each axis."""
        return sum(strides)

    @family(
        to_the_power_of_the_stride=(pow, "index", "stride", "81"),
        stride_to_the_power_of_the_index=(lambda i, stride: stride**i, "stride", "index", "64"),
    )
    def powers(power, index, strides):
        """You raise the {} to the power of the {}. In Python `**` is a power and `*` a product: 3 steps of 4 places are
        12 places, not {}."""
        return sum(map(power, index, strides))

    @family(
        stride_squared=(lambda i, stride: i * stride**2, "stride", "48"),
        index_squared=(lambda i, stride: i**2 * stride, "index", "36"),
    )
    def factor_squared(move, index, strides):
        """You multiply each move by its {} once too often. For example, 3 steps of 4 places each are 12 places, not
        {}."""
        return sum(map(move, index, strides))

    @family(
        index_divided_by_the_stride=(operator.floordiv, " with `//`, which usually returns 0"),
        index_divided_to_a_float=(operator.truediv, ", which gives a fraction"),
    )
    def divided(divide, index, strides):
        """You divide the index by the stride{}. A step passes as many places as the stride says: 3 steps of 4 places
        are 12 places."""
        return sum(divide(i, stride) for i, stride in zip(index, strides) if stride)

    def stride_divided_by_the_index(index, strides):
        """You divide the stride by the index, and an index of 0 raises a `ZeroDivisionError`. More steps lead further:
        3 steps of 4 places are 12 places."""
        return sum(stride // i for i, stride in zip(index, strides))

    def one_step_too_far(index, strides):
        """You walk one step too many on every axis: even index 0 moves you. An index counts steps, not elements, so the
        first element needs no step. Check the index (0, 0, 0): its element must lie at place 0."""
        return sum((i + 1) * stride for i, stride in zip(index, strides))

    def one_step_too_few(index, strides):
        """You walk one step too few on every axis, as if indices began at 1. In PyTorch they begin at 0: the index is
        the number of steps. Check the index (0, 0, 0): its element must lie at place 0, but your place is before the
        start of the storage."""
        return sum((i - 1) * stride for i, stride in zip(index, strides))

    def counted_from_one(index, strides):
        """Every place is one too large: the first element gets place 1. Places are counted from 0, as indices are:
        `storage[0]` is the first number. Look at what your sum begins with."""
        return 1 + sum(i * stride for i, stride in zip(index, strides))

    def one_place_too_small(index, strides):
        """Every place is one too small: the first element gets place −1. An index of zeros needs no step, so its
        element lies at place 0. What is subtracted, and from what?"""
        return flat_offset.reference(index, strides) - 1

    def one_place_more_for_every_axis(index, strides):
        """You add one place too many for every axis. An index of zeros needs no step, so its element lies at place 0:
        only steps, multiplied by their strides, lead away from it."""
        return sum(i * stride + 1 for i, stride in zip(index, strides))

    @family(counted_in_bytes=(4, "four", "float32"), counted_in_bytes_of_float64=(8, "eight", "float64"))
    def bytes_instead_of_numbers(bytes_per_number, index, strides):
        """Every place is {} times as large as it should be, as if you counted the bytes of {} numbers. NumPy's strides
        count bytes. PyTorch's strides count numbers, and places in storage count numbers too."""
        return bytes_per_number * flat_offset.reference(index, strides)


@flat_offset.wrong
class Pairs:
    def strides_reversed(index, strides):
        """You multiply the first index by the last stride, and so on: you read one of the two tuples in reverse. Index
        and stride of the same axis belong together. Try index (1, 0) with strides (3, 1): the place is 3."""
        return sum(i * stride for i, stride in zip(index, reversed(strides)))

    def strides_reversed_and_counted_from_one(index, strides):
        """There are two mistakes: you multiply the first index by the last stride, and so on, and every place is one
        too large. Index and stride of the same axis belong together, and places are counted from 0."""
        return 1 + Pairs.strides_reversed(index, strides)

    def stride_of_the_next_axis(index, strides):
        """Each index is multiplied by the stride of the next axis, and the last index by 1. The stride of an axis says
        how far one step along that same axis goes: begin at entry 0 of both tuples."""
        return sum(i * stride for i, stride in zip(index, (*strides[1:], 1)))

    def stride_of_the_next_axis_without_the_last_index(index, strides):
        """Each index is multiplied by the stride of the next axis, and the last index is left out. The stride of an
        axis says how far one step along that same axis goes: begin at entry 0 of both tuples."""
        return sum(i * stride for i, stride in zip(index, strides[1:]))

    def index_of_the_next_axis(index, strides):
        """Each stride is multiplied by the index of the next axis, and the first index is left out. The stride of an
        axis says how far one step along that same axis goes: begin at entry 0 of both tuples."""
        return sum(i * stride for i, stride in zip(index[1:], strides))

    def beyond_the_last_axis(index, strides):
        """Your loop reads an entry that does not exist, hence the `IndexError`: it runs one axis too far, or reads the
        entry of the next axis. With n axes the last has the number n − 1, and `range(n)` ends there."""
        return sum(index[axis] * strides[axis] for axis in range(len(index) + 1))

    def strides_indexed_by_index_entries(index, strides):
        """You use each number of the index to pick a stride. But in `strides[i]`, your `i` counts steps: it is not the
        number of an axis. `zip(index, strides)` pairs each index with the stride of its own axis."""
        return sum(i * strides[i] for i in index)

    @family(first_stride_for_all=(0, "first"), last_stride_for_all=(-1, "last"))
    def one_stride_for_all(axis, index, strides):
        """Every index is multiplied by the {} stride. Each axis has its own stride: multiply each index by the stride
        of its axis."""
        return sum(i * strides[axis] for i in index)

    def number_of_the_axis_for_the_index(index, strides):
        """Each stride is multiplied by the number of its axis, and the index is not used. `enumerate` counts the
        iterations of a loop; the numbers of steps are in `index`."""
        return sum(axis * stride for axis, stride in enumerate(strides))

    def number_of_the_axis_for_the_stride(index, strides):
        """Each index is multiplied by the number of its axis, and the strides are not used. `enumerate` counts the
        iterations of a loop; the lengths of the steps are in `strides`."""
        return sum(axis * i for axis, i in enumerate(index))

    def equal_steps_counted_once(index, strides):
        """If two axes have the same index, you count only one of them: a `dict` holds each key once. The index (2, 2,
        2) is an example. Loop over the pairs of `zip` instead."""
        return sum(i * stride for i, stride in dict(zip(index, strides)).items())

    def equal_strides_counted_once(index, strides):
        """If two axes have the same stride, you count only one of them: a `dict` holds each key once. A tensor of
        overlapping windows has such strides. Loop over the pairs of `zip` instead."""
        return sum(i * stride for stride, i in dict(zip(strides, index)).items())

    def strides_taken_as_shape(index, strides):
        """You treat the strides as sizes, and multiply them to find how far a step goes. A stride already is this
        distance: with strides (3, 1), one step along the first axis is 3 places. At which place is index (1, 0)?"""
        place = 0
        for i, stride in zip(index, strides):
            place = place * stride + i
        return place

    def sizes_guessed_from_the_index(index, strides):
        """You work out strides from the index, as if it were the shape, and ignore the argument `strides`. The
        index does not tell you the sizes of the axes: only `strides` says how far one step goes."""
        return functools.reduce(lambda place, i: place * (i + 1) + i, index, 0)

    def strides_sorted(index, strides):
        """You sort the strides first, the largest in front, as in a fresh tensor. A transposed tensor has its strides
        in a different order, and each stride belongs to its own axis: use the strides in the order given."""
        return sum(i * stride for i, stride in zip(index, sorted(strides, reverse=True)))

    def last_stride_taken_as_one(index, strides):
        """The last index is added without its stride, as if the last stride were always 1. The last stride is 1 in a
        fresh tensor, but no longer after a transpose or in a slice such as `x[:, ::2]`. Use the last stride of the
        tuple."""
        return sum(i * stride for i, stride in zip(index[:-1], strides)) + sum(index[-1:])

    def stride_of_zero_taken_as_one(index, strides):
        """You replace a stride of 0 with 1. But 0 is a stride like any other: along a stretched axis every step stays
        at the same place. In `stride or 1`, and in an `if`, 0 counts as false."""
        return sum(i * (stride or 1) for i, stride in zip(index, strides))

    def axes_of_stride_one_left_out(index, strides):
        """You leave out the axes of stride 1: all elements of a row get the same place. One step along such an axis
        moves one place further, and this move counts like any other."""
        return sum(i * stride for i, stride in zip(index, strides) if stride > 1)


@flat_offset.wrong
class Axes:
    def only_the_last_axis(index, strides):
        """Your result is the move along the last axis alone. This happens when a loop overwrites the place in each
        iteration instead of adding to it. What happens to the first axis's move in the second iteration?"""
        return index[-1] * strides[-1] if index else 0

    def only_the_first_axis(index, strides):
        """Your result is the move along the first axis alone. Most often a `return` is inside the loop, so that the
        function ends in the first iteration. Look at how far the `return` is indented."""
        for i, stride in zip(index, strides):
            return i * stride

    def first_axis_left_out(index, strides):
        """You leave out the first axis: all elements that differ in their first index get the same place. Often the
        loop begins at 1. Axes are counted from 0, and in a fresh tensor the first axis has the longest steps."""
        return sum(i * stride for i, stride in zip(index[1:], strides[1:]))

    def last_axis_left_out(index, strides):
        """You leave out the last axis: all elements of a row get the same place. Often the loop ends one axis early, at
        `len(index) - 1`. `range(n)` already leaves out n."""
        return sum(i * stride for i, stride in zip(index[:-1], strides[:-1]))

    def ends_at_an_index_of_zero(index, strides):
        """Your loop ends at an index of 0, so the moves along the later axes are left out. An index of 0 only means
        that this axis needs no step. A `break` ends the whole loop, not one iteration."""
        pairs = itertools.takewhile(lambda pair: pair[0], zip(index, strides))
        return sum(i * stride for i, stride in pairs)

    @family(
        only_the_last_two_axes=(slice(-2, None), "last", "before"),
        only_the_first_two_axes=(slice(2), "first", "after"),
    )
    def two_of_all_axes(kept, index, strides):
        """You count only the {} two axes, and the steps along all axes {} them are lost. A matrix has two axes; a
        tensor may have more."""
        return flat_offset.reference(index[kept], strides[kept])

    @family(
        two_axes_only=(2, "two", "third"),
        three_axes_only=(3, "three", "fourth"),
    )
    def fixed_number_of_axes(n_axes, index, strides):
        """Your sum covers {} axes, however many the tensor has: with fewer axes your function raises an error, and with
        more, the steps from the {} axis on are lost. A loop over both tuples covers all axes."""
        return sum(index[axis] * strides[axis] for axis in range(n_axes))

    def two_axes_unpacked(index, strides):
        """Your function unpacks the tuples into two numbers each, so a tensor with any other number of axes raises an
        error. A loop over both tuples works for any number of axes."""
        (row, column), (row_stride, column_stride) = index, strides
        return row * row_stride + column * column_stride

    def three_axes_unpacked(index, strides):
        """Your function unpacks the tuples into three numbers each, so a tensor with any other number of axes raises an
        error. A loop over both tuples works for any number of axes."""
        (i, j, k), (stride_i, stride_j, stride_k) = index, strides
        return i * stride_i + j * stride_j + k * stride_k

    def reduce_without_initial_value(index, strides):
        """{Your function is right for every tensor with axes.} A single number has no axes, and without an initial
        value, `reduce` raises an error for an empty list. The initial value is the third argument of `reduce`: what is
        the place before the first step?"""
        return functools.reduce(operator.add, [i * stride for i, stride in zip(index, strides)])

    def nothing_returned_without_axes(index, strides):
        """{Your function is right for every tensor with axes.} For a single number, whose tuples are empty, your
        function returns `None`: no `return` with a number is reached. At which place does the first element of a tensor
        lie?"""
        return flat_offset.reference(index, strides) if index else None

    @family(place_1_without_axes=(1, "1"), before_the_start_without_axes=(-1, "−1"))
    def wrong_place_without_axes(place, index, strides):
        """{Your function is right for every tensor with axes.} A single number, whose tuples are empty, gets place {}.
        This number is the first element of its tensor, and places are counted from 0."""
        return flat_offset.reference(index, strides) if index else place

    def axes_taken_for_granted(index, strides):
        """{Your function is right for every tensor with axes.} A single number has no axes: its tuples are empty, and
        your function tries to read an entry, hence the `IndexError`. At which place does the first element of a tensor
        lie?"""
        return index[0] * strides[0] + flat_offset.reference(index[1:], strides[1:])

    def empty_tensor_of_floats(index, strides):
        """{The numbers are right.} For a single number the tuples are empty, and PyTorch turns empty tuples into
        tensors of floats: your result is the float `0.` in a tensor, not an int."""
        return flat_offset.reference(index, strides) if index else torch.tensor(0.0)


@flat_offset.wrong
class Types:
    def a_tensor_of_floats(index, strides):
        """The number {is right, but it} is a float in a tensor. A place in storage is an int. `.item()` takes a number
        out of a tensor; without tensors you need no `.item()`."""
        return torch.tensor(float(flat_offset.reference(index, strides)))

    @family(
        tuples_multiplied=(operator.mul, "does not multiply two tuples", "`*` works on numbers, and on tensors"),
        tuples_as_matrices=(operator.matmul, "has no product of two tuples", "`@` works on tensors"),
    )
    def product_of_tuples(product, index, strides):
        """Python {}, hence the `TypeError`: {}. Take one number from each tuple at a time; `zip` iterates over both at
        once."""
        return sum(product(index, strides))

    def pairs_added_to_a_number(index, strides):
        """You add a tuple to a number, hence the `TypeError`. If the tuple is a pair of an index and a stride, combine
        its two numbers into one number before you add: how?"""
        return sum(zip(index, strides))

    def pairs_reduced_without_initial_value(index, strides):
        """You add a number to a tuple, hence the `TypeError`. `reduce` begins with the first pair itself, unless you
        pass an initial value as the third argument: what is the place before the first step?"""
        return functools.reduce(lambda place, pair: place + pair[0] * pair[1], zip(index, strides))

    def pop_from_a_tuple(index, strides):
        """A tuple has no `pop`, hence the `AttributeError`: a tuple cannot be changed. Go through the tuples in a loop,
        and leave them as they are."""
        return index.pop() * strides.pop()
