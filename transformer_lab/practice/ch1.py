"""Chapter 1: places in storage, strides, views."""

import math

import torch

from .answers import Choice, Number, Numbers
from .draws import choose, distinct_integers, random_integer, random_shape, write
from .topic import Topic, rule


def _index_and_strides(draw):
    shape = random_shape(draw, axes=3, most=5)
    strides = (shape[1] * shape[2], shape[2], 1)
    return tuple(min(i, size - 1) for i, size in zip(distinct_integers(draw, 3, 1, 4), shape)), strides


offset = Topic(
    title="Where an element lies",
    rule="flat_offset",
    inputs=_index_and_strides,
    question=lambda index, strides: (
        f"`x` begins at place 0 of its storage and has the strides `{write(strides)}`. "
        f"At which place is `x{write(list(index))}`?"
    ),
    answer=Number(),
    excluded_mistakes=(  # these mistakes are made in code, not on paper
        "counted_in_bytes_of_float64",
        "equal_steps_counted_once",
        "equal_strides_counted_once",
        "index_divided_by_the_stride",
        "index_divided_to_a_float",
        "index_squared",
        "last_stride_for_all",
        "moves_subtracted_in_turn",
        "axes_of_stride_one_left_out",
        "number_of_the_axis_for_the_index",
        "number_of_the_axis_for_the_stride",
        "one_place_more_for_every_axis",
        "only_the_first_two_axes",
        "only_the_last_two_axes",
        "strides_reversed_and_counted_from_one",
        "largest_move_alone",
        "stride_once_if_index_is_not_zero",
        "strides_taken_as_shape",
        "two_axes_only",
        "place_multiplied_by_every_stride",
        "product_of_index_plus_strides",
        "sizes_guessed_from_the_index",
        "negated",
        "stride_divided_by_the_index",
        "stride_squared",
        "stride_to_the_power_of_the_index",
        "to_the_power_of_the_stride",
    ),
    mistake_texts={
        "not_added_up": "You gave the steps along each axis separately. Storage is a single long row: add the steps.",
        "strides_taken_as_shape": "You mistook the strides for a shape, and computed larger steps. Each "
        "stride already says how far one step goes: with strides (3, 1), at which place is index (1, 0)?",
        "index_plus_stride": "You added the index and the stride instead of multiplying them. Think of 3 steps of 4 "
        "places each: is that 7 places or 12?",
        "products_multiplied": "You multiplied the moves along the axes. The moves follow one another, so they add up.",
        "sums_multiplied": "You multiplied the sum of the indices by the sum of the strides. Multiply each index "
        "by the stride of its own axis only.",
        "only_the_last_axis": "You counted only the move along the last axis. What do the other axes add?",
        "only_the_first_axis": "You counted only the move along the first axis. What do the other axes add?",
        "first_axis_left_out": "You left out the first axis. In a fresh tensor, the first axis has the longest steps.",
        "last_axis_left_out": "You left out the last axis. A step along the last axis changes the place, too.",
        "one_step_too_far": "You took one step too many on every axis. An index counts steps: the first element "
        "needs none, so it is at place 0.",
        "one_step_too_few": "You took one step too few on every axis, as if indices began at 1. The first element "
        "has the index 0 on every axis: at which place is it?",
        "counted_from_one": "Your place is one too large. Places are counted from 0, like indices.",
        "counted_in_bytes": "Your place is four times too large, as if it counted the bytes of float32 numbers. "
        "PyTorch counts numbers.",
        "strides_reversed": "You multiplied the indices by the strides in reverse order. Each index belongs to "
        "the stride of its own axis.",
        "stride_once_if_index_is_not_zero": "You added each stride once, however large its index is: 3 steps of 4 "
        "places gave 4. How do you combine an index with its stride?",
        "two_axes_only": "You counted the steps along two axes only. The third axis has a stride, too.",
        "strides_indexed_by_index_entries": "You used the numbers of the index to pick strides. A number of the index "
        "says how many steps to take along its own axis.",
        "one_place_too_small": "Your place is one too small, as if the first element were at place −1. Places are "
        "counted from 0, like indices.",
        "first_stride_for_all": "You multiplied every index by the first stride. Each axis has a stride of its own.",
    },
)

strides_of = Topic(
    title="Strides of a fresh tensor",
    rule="strides_of",
    inputs=lambda draw: (random_shape(draw, axes=3),),
    question=lambda shape: f"A fresh tensor has the shape `{write(shape)}`. What are its strides?",
    answer=Numbers(),
    excluded_mistakes=(  # these mistakes are made in code, not on paper
        "bytes_of_float64",
        "ends_after_the_last_axis",
        "first_axis_missing_and_reversed",
        "from_the_left_with_own_size_reversed",
        "one_too_small",
        "last_size_left_out",
        "numbers_of_the_axes",
        "next_size_left_out",
        "one_less_of_each_size",
        "one_too_large",
        "own_size_for_the_next",
        "own_size_included_except_in_the_last",
        "powers_of_the_first_size",
        "powers_of_the_last_size",
        "second_size_first",
        "second_size_first_and_reversed",
        "sizes_added_from_the_axis_itself",
        "sizes_squared",
    ),
    mistake_texts={
        "own_size_included": "Each of your products includes the size of its own axis, as if (2, 3, 4) gave "
        "(24, 12, 4). A stride is the product of only those sizes that are to the right of its axis.",
        "own_size_included_and_reversed": "Each of your products includes the size of its own axis, and your strides "
        "run from the last axis to the first. Neighbours in a row are one place apart: at which end of the strides "
        "does the 1 belong?",
        "order_reversed": "Your strides run from the last axis to the first, as if (2, 3, 4) gave (1, 4, 12). Which "
        "axis has the longest steps?",
        "number_of_elements_in_front": "Your answer has one entry too many: the product of all sizes comes first. Each "
        "axis has one stride.",
        "last_stride_missing": "The last stride is missing. Each axis has a stride: how far is it to a "
        "neighbour in a row?",
        "last_stride_zero": "The last stride is 0. How far is it from a number to its neighbour in a row?",
        "the_shape_itself": "You gave the sizes themselves. A stride says how far one step along an axis moves in "
        "storage, and that depends on the axes to its right.",
        "first_axis_missing": "The stride of the first axis is missing. Each axis has a stride: how many numbers does "
        "one step along the first axis pass?",
        "first_stride_left_at_one": "All strides are right, except that the first stride is 1. How many numbers does "
        "one step along the first axis pass?",
        "all_zeros": "Every stride is 0. How far is it from a number to its neighbour in a row?",
        "only_the_last_size": "All your strides except the last equal the last size, as if (2, 3, 4) gave (4, 4, 1). "
        "One step along the first axis passes a whole matrix: what is the product of its two sizes?",
        "sizes_reversed": "You gave the sizes in the opposite order. A stride says how far one step along an axis "
        "moves in storage, and that depends on the axes to its right.",
    },
)


# permute


def _contiguous_strides(shape):
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _shape_and_order(draw):
    order = choose(draw, ((1, 2, 0), (2, 0, 1), (1, 2, 0), (2, 0, 1), (2, 1, 0), (0, 2, 1), (1, 0, 2)))
    return random_shape(draw, axes=3, most=5), order


@rule(inputs=_shape_and_order)
def strides_permuted(shape, order):
    """Return the old strides in the new order."""
    return tuple(_contiguous_strides(shape)[axis] for axis in order)


@strides_permuted.mistake
def strides_of_a_copy(shape, order):
    """These would be the strides of a copy in the new order. `permute` copies nothing: which strides did the axes have
    before the permutation?"""
    return _contiguous_strides([shape[axis] for axis in order])


@strides_permuted.mistake
def strides_left_as_they_were(shape, order):
    """These are the strides of `x` itself. Each axis keeps its stride at its new place."""
    return _contiguous_strides(shape)


@strides_permuted.mistake
def list_read_the_other_way(shape, order):
    """You read each argument as the new place of an old axis. The arguments are the old axes in their new order: which
    old axis comes first?"""
    strides = _contiguous_strides(shape)
    return tuple(strides[order.index(new_axis)] for new_axis in range(3))


@strides_permuted.mistake
def sizes_not_strides(shape, order):
    """This is the new shape. A stride says how many places one step along the axis moves in storage."""
    return tuple(shape[axis] for axis in order)


@strides_permuted.mistake
def strides_in_reverse(shape, order):
    """These are the strides of `x` from the last to the first. Which order do the arguments of `permute` specify?"""
    return _contiguous_strides(shape)[::-1]


@strides_permuted.mistake
def own_size_counted(shape, order):
    """Each of your strides includes the size of its own axis. A stride is the product of only those sizes that are to
    the right of its axis."""
    return tuple(math.prod(shape[axis:]) for axis in order)


@strides_permuted.mistake
def sizes_to_the_left(shape, order):
    """You multiplied the sizes to the left of each axis. In a fresh tensor the last axis has stride 1, and each stride
    is the product of the sizes to the right of its axis."""
    return tuple(math.prod(shape[:axis]) for axis in order)


permuted_strides = Topic(
    title="Strides after permute",
    rule=strides_permuted,
    question=lambda shape, order: (
        f"A fresh `x` has the shape `{write(shape)}`. What are the strides of `x.permute{write(order)}`?"
    ),
    answer=Numbers(),
)


# A view, a copy, or an error


def _slice_columns(x, length):
    return x[:, :length]


def _call_method(name):
    return lambda x, *arguments: getattr(x, name)(*arguments)


_OPERATIONS = {name: _call_method(name) for name in ("view", "reshape", "transpose", "permute", "contiguous")} | {
    "slice": _slice_columns
}


def _chain_code(steps):
    """Write the steps as code that follows ``x``."""
    return "".join(
        f"[:, :{arguments[0]}]" if name == "slice" else f".{name}({', '.join(map(str, arguments))})"
        for name, *arguments in steps
    )


def _random_chain(draw):
    a, b = distinct_integers(draw, 2, 2, 5)
    c = random_integer(draw, 2, 4)
    transpose, n_elements = ("transpose", 0, 1), a * b
    chains = (
        ((a, b), [("reshape", b, a)]),
        ((a, b), [("reshape", n_elements)]),
        ((a, b), [("contiguous",)]),
        ((a, b), [transpose]),
        ((a, b), [transpose, ("contiguous",)]),
        ((a, b), [transpose, ("reshape", n_elements)]),
        ((a, b), [transpose, ("view", n_elements)]),
        ((a, b), [transpose, ("view", a, b)]),
        ((a, b), [transpose, ("reshape", a, b)]),
        ((a, b), [transpose, transpose, ("view", n_elements)]),
        ((a, b), [transpose, transpose, ("contiguous",)]),
        ((a, b + 1), [("slice", b), ("view", a * b)]),
        ((a, b + 1), [("slice", b), ("reshape", a * b)]),
        ((a, b + 1), [("slice", b), ("contiguous",)]),
        ((a, b + 1), [("slice", b)]),
        ((a, 2 * c + 1), [("slice", 2 * c), ("view", a, 2, c)]),
        ((a, 2 * c + 1), [("slice", 2 * c), ("reshape", a, c, 2)]),
        ((a, b, c), [("permute", 2, 0, 1)]),
        ((a, b, c), [transpose, ("reshape", b, a * c)]),
        ((a, b, c), [("permute", 2, 0, 1), ("view", c, a * b)]),
        ((a, b, c), [("permute", 2, 0, 1), ("reshape", c, a * b)]),
        ((a, b, c), [("permute", 1, 2, 0), ("view", b * c, a)]),
        ((a, b, c), [("view", a * b, c)]),
    )
    return choose(draw, chains)


@rule(inputs=_random_chain)
def sharing_outcome(shape, steps):
    """Return whether the steps share the storage of a fresh tensor, make a copy, or raise an error."""
    x = result = torch.empty(shape)
    try:
        for name, *arguments in steps:
            result = _OPERATIONS[name](result, *arguments)
    except RuntimeError:
        return "raises"
    return "shares" if result.data_ptr() == x.data_ptr() else "copies"


def _last_step_is(steps, name, outcome, shape):
    """Return whether the last step has this name and this outcome."""
    return steps[-1][0] == name and sharing_outcome.reference(shape, steps) == outcome


@sharing_outcome.mistake
def reshape_always_copies(shape, steps):
    """You mistook `reshape` for a copy. It makes a view if strides for the new shape exist, and here they exist."""
    return "copies" if _last_step_is(steps, "reshape", "shares", shape) else None


@sharing_outcome.mistake
def reshape_never_copies(shape, steps):
    """You mistook `reshape` for a view. It copies if no strides can read the numbers in this order: can the merged axes
    be read with one stride?"""
    return "shares" if _last_step_is(steps, "reshape", "copies", shape) else None


@sharing_outcome.mistake
def reshape_refuses(shape, steps):
    """You assumed that `reshape` raises an error here. If no strides fit and `view` would raise an error, `reshape`
    copies."""
    return "raises" if _last_step_is(steps, "reshape", "copies", shape) else None


@sharing_outcome.mistake
def view_of_anything(shape, steps):
    """You assumed that `view` works here, but no strides fit. Can the merged axes be read with one stride?"""
    return "shares" if _last_step_is(steps, "view", "raises", shape) else None


@sharing_outcome.mistake
def view_copies(shape, steps):
    """You assumed that `view` makes a copy. `view` never copies: what does it do if no strides fit?"""
    return "copies" if _last_step_is(steps, "view", "raises", shape) else None


@sharing_outcome.mistake
def view_asks_for_contiguous(shape, steps):
    """You assumed that `view` raises an error here. `view` can split any axis; only axes that it merges must be
    readable with one stride."""
    return "raises" if _last_step_is(steps, "view", "shares", shape) else None


@sharing_outcome.mistake
def turning_copies(shape, steps):
    """You assumed that a change of axes moves the numbers. A change of axes changes shape and strides, but not the
    storage."""
    return "copies" if steps[-1][0] in ("transpose", "permute") else None


@sharing_outcome.mistake
def slices_copy(shape, steps):
    """You mistook a slice for a copy. A slice reads the same storage, with gaps."""
    return "copies" if steps[-1][0] == "slice" else None


@sharing_outcome.mistake
def contiguous_always_copies(shape, steps):
    """You assumed that `contiguous` copies numbers that are already in reading order. In that case it returns the
    tensor itself."""
    return "copies" if _last_step_is(steps, "contiguous", "shares", shape) else None


@sharing_outcome.mistake
def contiguous_never_copies(shape, steps):
    """You assumed that `contiguous` leaves the numbers where they are. Are they in reading order, without gaps?"""
    return "shares" if _last_step_is(steps, "contiguous", "copies", shape) else None


shares_storage = Topic(
    title="A view, a copy, or an error?",
    rule=sharing_outcome,
    question=lambda shape, steps: f"A fresh `x` has the shape `{write(shape)}`. What is `x{_chain_code(steps)}`?",
    answer=Choice({"shares": "It shares the storage of x", "copies": "It is a copy", "raises": "It raises an error"}),
)
