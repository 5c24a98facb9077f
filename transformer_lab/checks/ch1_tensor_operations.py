"""Chapter 1: places in storage, strides, a transpose without a copy, and merging two axes."""

import math
import operator

import torch

from .agree import agree
from .exercise import exercise


def _origin(right, arguments, result):
    """Whether the result is a view of ``x``. Of wrong numbers nobody asks: they count as the right ones do."""
    x = arguments[0]
    try:
        expected = right(*arguments)
    except IndexError:  # x itself has lost an axis, which is told as a change
        expected = x
    shown = result if agree(result, expected) else expected
    is_view = shown.data_ptr() == x.data_ptr()  # the first element is the same: only a copy has it elsewhere
    return {"what the result is": "a view of `x`" if is_view else "a copy of its numbers"}


def _numbered(*shape):
    """A fresh tensor in which every number is its own place in storage: what is wrong can be read off."""
    return torch.arange(math.prod(shape), dtype=torch.float32).view(shape)


# 1.1


@exercise(
    inputs=lambda draw: ((1, 2, 3), (12, 4, 1)),
    axes={},
    hints=(
        "How many places does one step along an axis move you, and how many steps does the index ask for on that axis?",
        "Section 1.1 has the formula. You count from the tensor's first element, so leave its offset out. The rest "
        "needs only the two tuples: each index meets the stride of its own "
        "axis, and `zip` walks through both at once.",
        "`place = 0`, then a loop `for i, stride in zip(…, …)` that adds `…` to `place`. The `return` stands behind "
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


@flat_offset.property
def _(function, index, strides):
    """One more in an index moves the place by the stride of that axis."""
    here = function(index, strides)
    steps = [(*index[:axis], index[axis] + 1, *index[axis + 1 :]) for axis in range(len(index))]
    return all(function(there, strides) - here == stride for there, stride in zip(steps, strides))


@flat_offset.property
def _(function, index, strides):
    """An index of zeros lies at place 0."""
    return function((0,) * len(index), strides) == 0


# 1.2


@exercise(
    inputs=lambda draw: ((2, 3, 4),),
    axes={},
    hints=(
        "Take one step along an axis of a fresh tensor. How many numbers do you pass, and which sizes does that depend "
        "on?",
        "The stride of an axis is the product of all sizes to its right. So the last one is known at once, and each "
        "axis further left takes one more size into the product.",
        "Begin with `step = 1` and go through the sizes from the right: note `step`, then `step = step * …`. Turn the "
        "list round at the end.",
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


@strides_of.property
def _(function, shape):
    """Neighbours in the last axis lie 1 place apart."""
    return function(shape)[-1] == 1


@strides_of.property
def _(function, shape):
    """The last element lies at the number of all elements less one."""
    return sum((size - 1) * stride for size, stride in zip(shape, function(shape))) == math.prod(shape) - 1


# 1.3


def _two_axes(draw, batch=2, heads=3, seq=7, d_head=5):
    return _numbered(batch, heads, seq, d_head), 0, 2


@exercise(
    inputs=_two_axes,
    axes={"x": "batch heads seq d_head"},
    hints=(
        "No number moves. Of the four things that a tensor is made of (storage, shape, strides, offset), which two "
        "have to change?",
        "`x.as_strided(sizes, strides)` reads the storage of `x` with the sizes and strides that you give. Take both "
        "from `x` itself, `x.shape` and `x.stride()`, since `x` may have any strides.",
        "`sizes, strides = list(…), list(…)`; swap entries `dim0` and `dim1` in both, with `a, b = b, a`; "
        "`return x.as_strided(…, …)`.",
    ),
    facts=lambda arguments, result, made: _origin(torch.transpose, arguments, result),
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


@transposed.probe(plain=True)
def _(draw):
    """a matrix"""
    return _numbered(3, 5), 0, 1


@transposed.probe(plain=True)
def _(draw):
    """the axes of a matrix named in the other order"""
    return _numbered(7, 2), 1, 0


@transposed.probe(plain=True)
def _(draw):
    """two neighbouring axes in the middle"""
    return _numbered(2, 7, 3, 5), 1, 2


@transposed.probe(plain=True)
def _(draw):
    """the outermost axes"""
    return _numbered(3, 2, 5), 0, 2


@transposed.probe
def _(draw):
    """axes counted from the end"""
    return _numbered(2, 3, 7, 5), -1, -3


@transposed.probe
def _(draw):
    """a tensor that is transposed already"""
    return _numbered(2, 7, 3, 5).transpose(1, 2), 1, 2


@transposed.probe
def _(draw):
    """a slice with gaps"""
    return _numbered(6, 7, 10)[::2, :, :5], 0, 2


@transposed.probe
def _(draw):
    """a slice that begins in the middle of its storage"""
    return _numbered(8, 3, 5)[6:], 0, 1


@transposed.probe
def _(draw):
    """a square matrix"""
    return _numbered(4, 4), 0, 1


@transposed.probe
def _(draw):
    """whole numbers"""
    return _numbered(2, 3, 7).long(), 0, 2


@transposed.equivalent
def with_the_offset_given(x, dim0, dim1):
    sizes, strides = _swapped(x.shape, dim0, dim1), _swapped(x.stride(), dim0, dim1)
    return torch.as_strided(x, sizes, strides, x.storage_offset())


@transposed.equivalent
def by_an_order(x, dim0, dim1):
    order = list(range(x.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return x.as_strided([x.shape[axis] for axis in order], [x.stride(axis) for axis in order])


@transposed.equivalent
def by_permute(x, dim0, dim1):
    return x.permute(_swapped(range(x.ndim), dim0, dim1))


@transposed.equivalent
def by_transpose(x, dim0, dim1):
    return x.transpose(dim0, dim1)


@transposed.equivalent
def by_moving_two_axes(x, dim0, dim1):
    return x.movedim((dim0, dim1), (dim1, dim0))


@transposed.mistake
def cut_in_reading_order(x, dim0, dim1):
    """The shape is right and the numbers stay in reading order, only cut into rows of another length: that is what
    `reshape` does, and what `as_strided` does with the strides of a fresh tensor. Column 0 of `x` should be row 0 of
    the result. The new tensor must walk with the steps that `x` has, in another order."""
    return x.reshape(_swapped(x.shape, dim0, dim1))


@transposed.mistake
def cut_by_view(x, dim0, dim1):
    """The shape is right and the numbers stay in reading order, only cut into rows of another length. And where `x` is
    not contiguous there is an error: that is how `view` behaves. `view` never moves an axis. The new tensor must walk
    with the steps that `x` has, in another order."""
    return x.view(_swapped(x.shape, dim0, dim1))


@transposed.mistake
def strides_of_the_new_shape(x, dim0, dim1):
    """The sizes are swapped, and the strides are those that a fresh tensor of the new shape would have. So the numbers
    come in the order in which they lie in memory: nothing is transposed, it is only cut into rows of another length. A
    transpose keeps the strides that `x` has and swaps two of them."""
    sizes = _swapped(x.shape, dim0, dim1)
    return x.as_strided(sizes, strides_of.reference(sizes))


@transposed.mistake
def strides_of_the_old_shape(x, dim0, dim1):
    """Right for a contiguous `x` only. You worked out the strides from the shape, and a shape does not know them: after
    a transpose, or in a slice, they are others. Section 1.11 has two tensors of one shape and one storage that read
    differently. Ask `x` for its strides."""
    return x.as_strided(_swapped(x.shape, dim0, dim1), _swapped(strides_of.reference(x.shape), dim0, dim1))


@transposed.mistake
def strides_not_swapped(x, dim0, dim1):
    """The sizes are swapped and the strides are not. Then the first axis has the length of the other and still takes
    its own long steps, which lead past the end of the storage wherever it became longer. The stride belongs to its
    axis: when an axis moves, its stride moves along."""
    return x.as_strided(_swapped(x.shape, dim0, dim1), x.stride())


@transposed.mistake
def sizes_not_swapped(x, dim0, dim1):
    """The strides are swapped and the sizes are not: the shape is still that of `x`. The size belongs to its axis as
    the stride does. Each axis now takes the other's steps, but as many as before: some numbers are never read, and the
    walk may run past the end of the storage."""
    return x.as_strided(x.shape, _swapped(x.stride(), dim0, dim1))


@transposed.mistake
def nothing_swapped(x, dim0, dim1):
    """The result is `x` as it was: nothing is swapped. Perhaps the swap happens in a list that is not used afterwards,
    or the result of an operation is thrown away. `x.transpose(…)` on a line of its own leaves `x` as it was."""
    return x.as_strided(x.shape, x.stride())


@transposed.mistake
def one_entry_lost(x, dim0, dim1):
    """Both axes end up with the same size and the same stride: one of the two entries got lost. This happens when a
    swap is written as two assignments, because the second one reads what the first has already overwritten. Python can
    assign two names at once."""
    sizes, strides = list(x.shape), list(x.stride())
    for entries in (sizes, strides):
        entries[dim0] = entries[dim1]
        entries[dim1] = entries[dim0]
    return x.as_strided(sizes, strides)


@transposed.mistake
def one_entry_lost_the_other_way(x, dim0, dim1):
    """Both axes end up with the size and the stride of `dim0`: the entry of `dim1` got lost. This happens when a swap
    is written as two assignments, because the second one reads what the first has already overwritten. Python can
    assign two names at once."""
    return one_entry_lost(x, dim1, dim0)


@transposed.mistake
def always_the_last_two(x, dim0, dim1):
    """The last two axes are swapped, whatever `dim0` and `dim1` say. That is what `.mT` does, and it is the usual case
    with matrices. Ask which axes the caller named."""
    return x.transpose(-1, -2)


@transposed.mistake
def always_the_first_two(x, dim0, dim1):
    """The first two axes are swapped, whatever `dim0` and `dim1` say. For a matrix there is no difference. Look at
    where your function uses its arguments `dim0` and `dim1`."""
    return x.transpose(0, 1)


@transposed.mistake
def all_axes_reversed(x, dim0, dim1):
    """All axes come in the opposite order, as the `.T` of NumPy does it. For a matrix that is the transpose; with more
    axes it moves those that should stay. Only two entries may change places."""
    return x.permute(tuple(reversed(range(x.ndim))))


@transposed.mistake
def moved_instead_of_swapped(x, dim0, dim1):
    """One axis moves to the place of the other, and the axes between them shift by one. For neighbours that is the same
    as a swap, and further apart it is not: with axes 0 and 2 of (a, b, c) you get (b, c, a). Every axis that is not
    named has to keep its place."""
    return x.movedim(dim0, dim1)


@transposed.mistake
def moved_the_other_way(x, dim0, dim1):
    """One axis moves to the place of the other, and the axes between them shift by one. For neighbours that is the same
    as a swap, and further apart it is not: with axes 0 and 2 of (a, b, c) you get (c, a, b). Every axis that is not
    named has to keep its place."""
    return x.movedim(dim1, dim0)


@transposed.mistake
def offset_zero(x, dim0, dim1):
    """Right as long as `x` begins where its storage begins. Of a slice such as `x[6:]`, yours reads from the start of
    the whole storage: numbers that do not belong to `x` at all. A tensor has a fourth part besides storage, shape and
    strides: which value does it get in your result?"""
    return x.as_strided(_swapped(x.shape, dim0, dim1), _swapped(x.stride(), dim0, dim1), 0)


@transposed.mistake
def negative_axes_overlooked(x, dim0, dim1):
    """Axes counted from the end are not recognised: with `-1` and `-3` nothing is swapped. A comparison such as `axis
    == dim0` never meets a negative number. An index into a list does, since it counts from the end by itself."""
    order = [dim1 if axis == dim0 else dim0 if axis == dim1 else axis for axis in range(x.ndim)]
    return x.permute(order)


@transposed.mistake
def copied(x, dim0, dim1):
    """The numbers are right, but they are copied: your result has memory of its own, and a write into it no longer
    shows in `x`. The copy is what note 000 believes a transpose to be. It costs time and memory for every number; a
    view costs two short lists. Which operation of yours puts numbers in new places?"""
    return x.transpose(dim0, dim1).clone(memory_format=torch.contiguous_format)


@transposed.mistake
def copied_into_reading_order(x, dim0, dim1):
    """The numbers are right, but they are copied, except where they lie in reading order already: that is what
    `contiguous()` does. A write into your result does not show in `x`. A transpose needs no particular order in memory:
    leave the numbers where they are."""
    return x.transpose(dim0, dim1).contiguous()


@transposed.mistake
def made_contiguous_first(x, dim0, dim1):
    """The numbers are right. But where `x` is not contiguous you copy it first, so that the result is no view of `x`: a
    write into it does not show there. A transpose works with any strides, as long as you take those that `x` has. Is
    there a `contiguous`, `reshape` or `flatten` before it?"""
    return x.contiguous().transpose(dim0, dim1)


@transposed.mistake
def x_itself_changed(x, dim0, dim1):
    """The result is right, and `x` is changed: whoever passed it finds its axes swapped afterwards. Operations that end
    in an underscore, such as `transpose_` and `as_strided_`, change the tensor they are called on. Their namesakes
    without the underscore return a new one over the same storage."""
    return x.as_strided_(_swapped(x.shape, dim0, dim1), _swapped(x.stride(), dim0, dim1))


@transposed.property
def _(function, x, dim0, dim1):
    """Swapped twice, all axes are where they were, and so are the numbers."""
    return torch.equal(function(function(x, dim0, dim1), dim0, dim1), x)


@transposed.property
def _(function, x, dim0, dim1):
    """What stands at index 1 of the one axis stood at index 1 of the other."""
    result = function(x, dim0, dim1)
    return torch.equal(result.select(dim0, 1).flatten().sort().values, x.select(dim1, 1).flatten().sort().values)


# 1.4


def _transposed_heads(draw, batch=2, seq=7, heads=3, d_head=5):
    return (_numbered(batch, heads, seq, d_head).transpose(1, 2),)


@exercise(
    inputs=_transposed_heads,
    axes={"x": "batch seq heads d_head", "return": "batch seq d_model"},
    hints=(
        "Which operation of section 1.4 keeps the reading order, makes a view where there can be one, and copies only "
        "where there cannot?",
        "Write down the new shape first: all sizes but the last two, then their product. `x.shape[:-2]` works for any "
        "number of axes.",
        "`x.…(*x.shape[:-2], x.shape[…] * x.shape[…])`",
    ),
    facts=lambda arguments, result, made: _origin(lambda x: x.flatten(-2), arguments, result),
)
def merge_last_two(x):
    """Merge the last two axes into one. x: (…, m, n). Returns (…, m · n), a view of x where there can be one."""
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def _merged(x):
    return (*x.shape[:-2], x.shape[-2] * x.shape[-1])


@merge_last_two.probe(plain=True)
def _(draw):
    """contiguous input"""
    return (_numbered(2, 7, 3, 5),)


@merge_last_two.probe(plain=True)
def _(draw):
    """input whose first two axes are swapped"""
    return (_numbered(7, 2, 3, 5).transpose(0, 1),)


@merge_last_two.probe
def _(draw):
    """a matrix"""
    return (_numbered(3, 5),)


@merge_last_two.probe
def _(draw):
    """a transposed matrix"""
    return (_numbered(3, 5).transpose(0, 1),)


@merge_last_two.probe
def _(draw):
    """three axes"""
    return (_numbered(7, 3, 5),)


@merge_last_two.probe
def _(draw):
    """five axes"""
    return (_numbered(2, 4, 7, 3, 5).transpose(1, 3),)


@merge_last_two.probe
def _(draw):
    """rows cut short by a slice"""
    return (_numbered(2, 7, 3, 10)[..., :5],)


@merge_last_two.probe
def _(draw):
    """every second number of a row"""
    return (_numbered(2, 7, 3, 10)[..., ::2],)


@merge_last_two.probe
def _(draw):
    """a slice that begins in the middle of its storage"""
    return (_numbered(6, 7, 3, 5)[4:],)


@merge_last_two.probe
def _(draw):
    """one head whose axis has a stride of its own"""
    return (_numbered(2, 7, 5, 3)[..., :1].transpose(2, 3),)


@merge_last_two.probe
def _(draw):
    """a batch of one sentence"""
    return (_numbered(1, 3, 7, 5).transpose(1, 2),)


@merge_last_two.probe
def _(draw):
    """heads of one feature"""
    return (_numbered(2, 7, 1, 3).transpose(2, 3),)


@merge_last_two.probe
def _(draw):
    """whole numbers"""
    return (_numbered(2, 3, 7, 5).long().transpose(1, 2),)


@merge_last_two.equivalent
def rest_left_to_reshape(x):
    return x.reshape(*x.shape[:-2], -1)


@merge_last_two.equivalent
def by_flatten(x):
    return torch.flatten(x, start_dim=-2)


@merge_last_two.equivalent
def view_or_copy(x):
    try:
        return x.view(_merged(x))
    except RuntimeError:
        return x.contiguous().view(_merged(x))


@merge_last_two.equivalent
def by_the_strides(x):
    *_, m, n = x.shape
    *leading, outer, inner = x.stride()
    if m == 1 or n == 1 or outer == n * inner:
        return x.as_strided(_merged(x), (*leading, outer if n == 1 else inner))
    return x.clone(memory_format=torch.contiguous_format).view(_merged(x))


@merge_last_two.mistake
def view_alone(x):
    """Where the last two axes cannot be walked with one stride, your function raises, as `view` does. It is right
    wherever a view exists. After a transpose that moves one of these two axes, a merged row usually takes uneven steps
    through storage, which no single stride can make: then a copy is needed. Section 1.4 names the operation that
    decides by itself."""
    return x.view(_merged(x))


@merge_last_two.mistake
def always_contiguous(x):
    """The numbers are right. But you copy the whole tensor wherever it is not contiguous, although the last two axes
    can often be merged as they lie: what matters is whether these two form one even walk, and not the axes in front.
    That is what `contiguous()` does when it is called in every case. Leave it to the operation that copies only if it
    must."""
    return x.contiguous().view(_merged(x))


@merge_last_two.mistake
def always_copied(x):
    """The numbers are right. But they are always copied, also where the last two axes lie one behind the other and a
    view would do: `cat` and `clone` make new memory every time. The docstring asks for a view where there can be one.
    Try it on a fresh tensor: a write into the result should show in `x`."""
    return x.reshape(_merged(x)).clone()


@merge_last_two.mistake
def size_one_takes_part_in_the_rule(x):
    """The numbers are right. But you copy where one of the two axes has size 1 and a view would do. Comparing the left
    stride with size times right stride is the rule for axes longer than 1. Along an axis of size 1 nobody ever steps,
    so its stride does not count."""
    *leading, outer, inner = x.stride()
    if outer == x.shape[-1] * inner:
        return x.as_strided(_merged(x), (*leading, inner))
    return x.contiguous().view(_merged(x))


@merge_last_two.mistake
def merged_in_the_other_order(x):
    """The last two axes are swapped before they are merged: the row runs through the first axis of the pair first. With
    heads and features, feature 0 of every head comes first, then feature 1 of every head. In reading order the last
    axis runs fastest, so that row 0 of the pair stands first as a whole."""
    return x.transpose(-1, -2).reshape(_merged(x))


@merge_last_two.mistake
def axes_swapped_back(x):
    """The shape is right and the numbers are scrambled: axes 1 and 2 of `x` are not where they were. Swapping axes 1
    and 2 back, so that the memory is in order again, makes `view` stop complaining. But then a row of the result holds
    several tokens of one head, where it should hold all heads of one token. The order of axes of `x` has to stay."""
    return x.transpose(1, 2).reshape(_merged(x))


@merge_last_two.mistake
def axes_swapped_back_for_view(x):
    """Axes 1 and 2 are swapped before the cut. Where that brings the memory into order, `view` no longer complains, and
    the numbers are scrambled: a row of the result holds several tokens of one head, where it should hold all heads of
    one token. Where it does not, there is an error. The order of axes of `x` has to stay."""
    return x.transpose(1, 2).view(_merged(x))


@merge_last_two.mistake
def read_as_it_lies_in_memory(x):
    """The numbers come in the order in which they lie in memory, not in the order in which `x` reads them. For a
    contiguous `x` that is the same, which is why it looks right in a small test. `as_strided` with the strides of a
    fresh tensor does that: it forgets the transpose."""
    return x.as_strided(_merged(x), strides_of.reference(_merged(x)))


@merge_last_two.mistake
def merged_without_asking(x):
    """The merged axis takes the stride of the last one, whether the two axes fit together or not. A step from the end
    of one row to the start of the next is longer in many tensors, so that yours runs into numbers of another row, or
    past the end of storage. Section 1.2 has the condition, and when it does not hold, a copy is needed."""
    return x.as_strided(_merged(x), (*x.stride()[:-2], x.stride(-1)))


@merge_last_two.mistake
def all_but_the_last_merged(x):
    """All axes but the last are merged, and the last stays: that gives (batch · seq · heads, d_head). It is the other
    frequent `reshape(-1, …)`, which lays all rows below one another. Here the last two axes become one, and those in
    front stay."""
    return x.reshape(-1, x.shape[-1])


@merge_last_two.mistake
def everything_merged(x):
    """All axes are merged into one: a bare `flatten()` or `reshape(-1)` does that. The axes in front of the last two
    have to stay, so their sizes have to appear in the new shape."""
    return x.reshape(-1)


@merge_last_two.mistake
def all_behind_the_first_merged(x):
    """Every axis behind the first is merged. With three axes that is right; with four it swallows one too many. Count
    the axes from the end: it is the last two that become one, however many stand in front."""
    return x.reshape(x.shape[0], -1)


@merge_last_two.mistake
def last_three_merged(x):
    """The last three axes are merged, one too many: (batch, seq · heads · d_head). The last two are to become one.
    Count from the end: `-1` and `-2`."""
    return x.flatten(-3)


@merge_last_two.mistake
def the_wrong_pair_merged(x):
    """You merge the second last axis with the one before it: (batch, seq · heads, d_head). The last two are to become
    one. Count from the end: `-1` and `-2`."""
    return x.reshape(*x.shape[:-3], -1, x.shape[-1])


@merge_last_two.mistake
def axes_counted_from_the_left(x):
    """Right for four axes only: axis 2 is where you begin to merge, and the last two axes are 2 and 3 of four. The
    docstring allows any number of axes in front. Counted from the end, the pair has the same numbers in every
    tensor."""
    return x.flatten(2)


@merge_last_two.mistake
def always_two_axes_in_front(x):
    """Right for four axes only: your result has two axes in front of the merged one, whatever `x` has. The docstring
    allows any number of axes in front, also none. `x.shape[:-2]` is all sizes but the last two, however many there
    are."""
    return x.reshape(x.shape[0], x.shape[1], -1)


@merge_last_two.mistake
def batch_of_one_squeezed_away(x):
    """Right until an axis in front has size 1: with a single sentence, your result has lost its batch axis. A bare
    `squeeze()` removes every axis of size 1, also those that the caller needs. Does anything have to be removed here at
    all?"""
    return x.reshape(_merged(x)).squeeze()


@merge_last_two.mistake
def four_axes_only(x):
    """Right for four axes only: your function takes the shape apart into exactly four names, and a matrix has no four
    sizes. The docstring allows any number of axes in front. `x.shape[:-2]` is all sizes but the last two, however many
    there are."""
    batch, seq, heads, d_head = x.shape
    return x.reshape(batch, seq, heads * d_head)


@merge_last_two.property
def _(function, x):
    """Each merged row begins with row 0 of the pair of axes."""
    return torch.equal(function(x)[..., : x.shape[-1]], x[..., 0, :])


# 1.5


def _text(draw, batch=3, seq=7, left_over=2):
    return torch.arange(batch * seq + left_over), batch


@exercise(
    inputs=_text,
    axes={"return": "seq batch"},
    hints=(
        "Read column 0 of the result from top to bottom. Do its tokens follow one another in the text?",
        "Two tokens that follow one another in the text must come to stand one below the other. Cutting in reading "
        "order puts neighbours side by side. So cut first so that each stretch is a row, then let rows become columns.",
        "`tokens[: …].view(…, …).…(0, 1)`",
    ),
)
def mend_columns(tokens, batch):
    """Lay a text out in columns. tokens: (n,). Returns (n // batch, batch): each column one stretch of the text."""
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(batch, seq).transpose(0, 1)


@mend_columns.probe(plain=True)
def _(draw):
    """tokens of which none is left over"""
    return torch.randperm(20, generator=draw.generator), 4


@mend_columns.probe(plain=True)
def _(draw):
    """many columns and few rows"""
    return torch.randperm(17, generator=draw.generator), 5


@mend_columns.probe
def _(draw):
    """one column"""
    return torch.randperm(6, generator=draw.generator), 1


@mend_columns.probe
def _(draw):
    """one row"""
    return torch.randperm(6, generator=draw.generator), 4


@mend_columns.probe
def _(draw):
    """as many columns as rows"""
    return torch.randperm(16, generator=draw.generator), 4


@mend_columns.probe
def _(draw):
    """every second token of a text"""
    return torch.randperm(46, generator=draw.generator)[::2], 3


@mend_columns.equivalent
def stretches_stacked(tokens, batch):
    seq = len(tokens) // batch
    return torch.stack([tokens[column * seq : (column + 1) * seq] for column in range(batch)], dim=1)


@mend_columns.equivalent
def split_and_stacked(tokens, batch):
    return torch.stack(tokens.split(len(tokens) // batch)[:batch], dim=-1)


@mend_columns.equivalent
def turned_and_copied(tokens, batch):
    return tokens.narrow(0, 0, len(tokens) // batch * batch).reshape(batch, -1).t().contiguous()


@mend_columns.equivalent
def by_index(tokens, batch):
    seq = len(tokens) // batch
    return tokens[torch.arange(seq)[:, None] + seq * torch.arange(batch)]


@mend_columns.equivalent
def by_as_strided(tokens, batch):
    seq, step = len(tokens) // batch, tokens.stride(0)
    return tokens.as_strided((seq, batch), (step, seq * step))


@mend_columns.mistake
def as_given(tokens, batch):
    """This gives the numbers of the program as it was given. Rows of `batch` neighbouring tokens are cut in reading
    order, so that the text runs from left to right, and a column takes every `batch`-th token. No `view` or `reshape`
    to the final shape can mend that. Read a column downwards: which token should come second?"""
    seq = len(tokens) // batch
    return tokens[: seq * batch].reshape(seq, batch)


@mend_columns.mistake
def stretches_left_as_rows(tokens, batch):
    """The stretches are right, and they are rows: the shape is (batch, seq). The text has to run downwards, so that row
    0 holds the first token of every stretch. One operation without a copy is missing."""
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(batch, seq)


@mend_columns.mistake
def cut_as_before_then_turned(tokens, batch):
    """You transpose what the program had cut, and the cut was the mistake. Now the shape is (batch, seq), and each row
    still takes every `batch`-th token. The transpose is needed, but of a table whose rows are stretches of the text.
    How many tokens are in such a row?"""
    seq = len(tokens) // batch
    return tokens[: seq * batch].reshape(seq, batch).transpose(0, 1)


@mend_columns.mistake
def cut_turned_and_cut_again(tokens, batch):
    """The shape is right, and the tokens are scrambled anew: the table that the program had cut is transposed, and then
    cut once more in reading order. A `reshape` after a transpose is no way back to the shape you want: it mixes the
    columns. Cut once, into stretches, and turn once."""
    seq = len(tokens) // batch
    return tokens[: seq * batch].reshape(seq, batch).transpose(0, 1).reshape(seq, batch)


@mend_columns.mistake
def left_over_kept(tokens, batch):
    """Where tokens are left over, there is an error: the text as a whole cannot be cut into `batch` equal parts. The
    program as it was given dropped the tokens that fill no row. Keep that line: `tokens[: seq * batch]`."""
    return tokens.view(batch, -1).transpose(0, 1)


@mend_columns.mistake
def left_over_kept_beside_the_length(tokens, batch):
    """Where tokens are left over, there is an error: you ask for `batch` times `seq` places, and there are more tokens
    than that. The program as it was given dropped the tokens that fill no row. Keep that line: `tokens[: seq *
    batch]`."""
    return tokens.view(batch, len(tokens) // batch).transpose(0, 1)


@mend_columns.mistake
def nothing_left_over_means_nothing_kept(tokens, batch):
    """Where no token is left over, your result has no rows at all. A slice up to `-left_over` cuts off the end, but
    Python reads `-0` as 0, and `tokens[:0]` is empty. Count from the front how many tokens stay, as the program did."""
    left_over = len(tokens) % batch
    return tokens[:-left_over].view(batch, -1).transpose(0, 1)


@mend_columns.mistake
def stride_taken_as_one(tokens, batch):
    """Right as long as the tokens lie side by side in memory. Of `text[::2]`, yours reads the tokens in between as
    well, since your strides take neighbours to be one place apart. Ask `tokens` for its stride, or leave the strides to
    `view` and `transpose`."""
    seq = len(tokens) // batch
    return tokens.as_strided((seq, batch), (1, seq))


@mend_columns.mistake
def single_column_squeezed_away(tokens, batch):
    """Right until there is only one column, or one row: then your result has a single axis. A bare `squeeze()` removes
    every axis of size 1, also one that the caller counts on. Does anything have to be removed here at all?"""
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(batch, seq).transpose(0, 1).squeeze()


@mend_columns.mistake
def parts_of_unequal_length(tokens, batch):
    """Where tokens are left over, the parts are not equally long: `chunk` rounds their length up and makes the last one
    shorter, and a table has no room for that. Drop the tokens that are left over first, as the program did."""
    return torch.stack(tokens.chunk(batch), dim=1)


@mend_columns.mistake
def first_tokens_dropped(tokens, batch):
    """The columns are stretches of the text, but the tokens that are left over are dropped at its start: the text
    begins a little late. The docstring says that what is left over at the end is dropped. Look at your slice: on which
    side of the colon does the number stand?"""
    seq = len(tokens) // batch
    return tokens[len(tokens) - seq * batch :].view(batch, seq).transpose(0, 1)


@mend_columns.mistake
def padded_with_zeros(tokens, batch):
    """The columns are stretches of the text, and what is missing in the last one is filled up with zeros, so that there
    is one row more. Zero is a token as well: the model would learn to predict it. The docstring says that tokens which
    fill no row are dropped."""
    missing = -len(tokens) % batch
    return torch.cat([tokens, tokens.new_zeros(missing)]).view(batch, -1).transpose(0, 1)


@mend_columns.mistake
def one_token_kept_back(tokens, batch):
    """Where no token is left over, one row is missing: the length is worked out from one token fewer than there are.
    This is done in training loops that keep the last token back as a target. Here every full row counts."""
    seq = (len(tokens) - 1) // batch
    return tokens[: seq * batch].view(batch, seq).transpose(0, 1)


@mend_columns.mistake
def columns_overlap(tokens, batch):
    """Each column begins one token after the one before it, so that the columns overlap and most of the text is left
    out. These are sliding windows. Column 1 has to go on where column 0 ends."""
    seq = len(tokens) // batch
    return torch.stack([tokens[column : column + seq] for column in range(batch)], dim=1)


@mend_columns.mistake
def columns_in_reverse(tokens, batch):
    """The columns are the right stretches, from the right to the left: the text begins in the last column. A turn by a
    quarter, as `rot90` makes it, is not a transpose. Column 0 has to hold the beginning of the text."""
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(batch, seq).rot90(-1)


@mend_columns.property
def _(function, tokens, batch):
    """Column 0 is the beginning of the text."""
    column = function(tokens, batch)[:, 0]
    return torch.equal(column, tokens[: len(column)])


@mend_columns.property
def _(function, tokens, batch):
    """No token stands in two places."""
    result = function(tokens, batch)
    return len(result.unique()) == result.numel()
