"""Chapter 2: the shapes of sums and products, and which axis a sum runs along."""

import torch

from .answers import Numbers
from .draws import choose, distinct_integers, random_integer, write
from .topic import Topic, rule

_DO_NOT_FIT = "They do not fit"


# The shape of a sum


def _two_summands(draw):
    """Draw two shapes that broadcast or, in about one case of four, do not broadcast."""
    shape = distinct_integers(draw, random_integer(draw, 2, 3), 2, 7)
    a, b = list(shape), list(shape)
    for axis in range(len(shape)):
        choose(draw, (a, b, [0] * 3, [0] * 3))[axis] = 1
    if random_integer(draw, 0, 3) == 0:
        axis = random_integer(draw, 0, len(shape) - 1)
        a[axis], b[axis] = shape[axis], shape[axis] + random_integer(draw, 1, 2)
    shorter = choose(draw, (a, b))
    del shorter[: random_integer(draw, 0, len(shape) - 1)]
    return tuple(a), tuple(b)


def _pad_with_ones(a, b):
    """Return both shapes with the same number of axes: the shorter shape gets sizes of 1 in front."""
    n_axes = max(len(a), len(b))
    return [(1,) * (n_axes - len(shape)) + shape for shape in (a, b)]


@rule(inputs=_two_summands)
def broadcast_shape(a, b):
    """Return the shape of a sum of two tensors."""
    return tuple(torch.broadcast_shapes(a, b))


@broadcast_shape.mistake
def shapes_from_the_left(a, b):
    """You aligned the shapes from the left. Write one shape below the other, with their right ends aligned: a missing
    axis is on the left."""
    n_axes = max(len(a), len(b))
    return tuple(torch.broadcast_shapes(*(shape + (1,) * (n_axes - len(shape)) for shape in (a, b))))


@broadcast_shape.mistake
def ones_do_not_stretch(a, b):
    """You assumed that a 1 and another size do not fit. A 1 stretches: with which size is it paired?"""
    size_pairs = [(m, n) for m, n in zip(a[::-1], b[::-1])]
    if any(m != n and 1 in (m, n) for m, n in size_pairs):
        raise ValueError
    return None


@broadcast_shape.mistake
def missing_axes_refused(a, b):
    """You treated a missing axis as an error. An axis that is missing on the left counts as 1."""
    if len(a) != len(b):
        raise ValueError
    return None


@broadcast_shape.mistake
def sizes_that_differ_pass(a, b):
    """You accepted two sizes that differ, and took the larger size. Only a 1 stretches: compare column by column."""
    return tuple(max(sizes) for sizes in zip(*_pad_with_ones(a, b)))


@broadcast_shape.mistake
def longer_shape_taken(a, b):
    """You gave the longer shape unchanged. A 1 in this shape stretches too."""
    return a if len(a) > len(b) else b if len(b) > len(a) else None


@broadcast_shape.mistake
def axes_in_front_lost(a, b):
    """You lost the axes that only one of the shapes has. An axis that is missing counts as 1, and the other size
    stays."""
    n_axes = min(len(a), len(b))
    return tuple(torch.broadcast_shapes(a[len(a) - n_axes :], b[len(b) - n_axes :]))


@broadcast_shape.mistake
def ones_win(a, b):
    """You kept a 1 that is paired with a different size. The 1 stretches to the other size."""
    return tuple(min(sizes) for sizes in zip(*_pad_with_ones(a, b)))


@broadcast_shape.mistake
def axes_back_to_front(a, b):
    """You wrote the sizes from the last to the first. Sizes are compared from the right, but written from the left."""
    return tuple(torch.broadcast_shapes(a, b))[::-1]


shape_of_a_sum = Topic(
    title="The shape of a sum",
    rule=broadcast_shape,
    question=lambda a, b: f"The shapes of `a` and `b` are `{write(a)}` and `{write(b)}`. What is the shape of `a + b`?",
    answer=Numbers(refusal=_DO_NOT_FIT),
)


# The shape of a product


def _two_factors(draw):
    """Draw the shapes of two factors of `@`: matrices, batches or vectors, which do not always fit together."""
    n, p, m, i, j = distinct_integers(draw, 5, 2, 8)
    return choose(
        draw,
        (
            ((n, p), (p, m)),
            ((i, n, p), (p, m)),
            ((i, n, p), (p, m)),
            ((n, p), (i, p, m)),
            ((n, p), (i, p, m)),
            ((i, n, p), (i, p, m)),
            ((i, 1, n, p), (j, p, m)),
            ((i, 1, n, p), (j, p, m)),
            ((1, n, p), (i, p, m)),
            ((i, j, n, p), (j, p, m)),
            ((n, p), (p,)),
            ((i, n, p), (p,)),
            ((p,), (p, m)),
            ((n, p), (m, p)),
            ((i, n, p), (i, m, p)),
            ((i, n, p), (j, p, m)),
        ),
    )


def _as_matrices(a, b):
    """Return both shapes, in which a vector has become a row or a column."""
    return (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b


def _product_shape(batch, a, b):
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    return (*batch, *rows, *columns)


@rule(inputs=_two_factors)
def matmul_result_shape(a, b):
    """Return the shape of a matrix product."""
    return tuple((torch.empty(a, device="meta") @ torch.empty(b, device="meta")).shape)


def _inner_sizes_match(a, b):
    """Return whether the inner sizes are equal."""
    left, right = _as_matrices(a, b)
    return left[-1] == right[-2]


@matmul_result_shape.mistake
def last_over_last(a, b):
    """You compared the last size of the left factor with the last size of the right. The last size on the left is
    paired with the second-to-last size on the right; to multiply rows with rows, transpose the right factor."""
    if len(b) == 1 or _inner_sizes_match(a, b) or a[-1] != b[-1]:
        return None
    return _product_shape(torch.broadcast_shapes(a[:-2], b[:-2]), a, (*b[:-2], b[-1], b[-2]))


@matmul_result_shape.mistake
def inner_sizes_ignored(a, b):
    """You did not compare the inner sizes. The last size on the left and the second-to-last size on the right must be
    equal: the product sums over this axis."""
    return None if _inner_sizes_match(a, b) else _product_shape(torch.broadcast_shapes(a[:-2], b[:-2]), a, b)


@matmul_result_shape.mistake
def batches_that_differ_pass(a, b):
    """You accepted two batch sizes that differ. Batch axes broadcast as in a sum: only a 1 stretches."""
    if a[:-2] == b[:-2] or len(a) != len(b) or not _inner_sizes_match(a, b) or 1 in (a[0], b[0]):
        return None
    return _product_shape(a[:-2], a, b)


@matmul_result_shape.mistake
def batch_of_the_left_alone(a, b):
    """You took only the batch axes of the left factor. The batch axes of both factors broadcast, aligned from the
    right."""
    return _product_shape(a[:-2], a, b) if _inner_sizes_match(a, b) else None


@matmul_result_shape.mistake
def batches_side_by_side(a, b):
    """You wrote the batch axes of both factors side by side. Batch axes broadcast as in a sum: they are aligned from
    the right, and two equal sizes become one size."""
    return _product_shape((*a[:-2], *b[:-2]), a, b) if _inner_sizes_match(a, b) and a[:-2] and b[:-2] else None


@matmul_result_shape.mistake
def inner_size_kept(a, b):
    """You kept the inner size. The product sums over this axis, so its size does not appear in the result."""
    if not _inner_sizes_match(a, b) or len(a) == 1:
        return None
    return (*torch.broadcast_shapes(a[:-2], b[:-2]), *a[-2:], *b[-1:]) if len(b) > 1 else a


@matmul_result_shape.mistake
def rows_and_columns_swapped(a, b):
    """You swapped rows and columns. The rows come from the left factor, the columns from the right."""
    shape = matmul_result_shape.reference(a, b)
    return (*shape[:-2], *shape[-2:][::-1]) if len(a) > 1 and len(b) > 1 else None


@matmul_result_shape.mistake
def vector_leaves_a_one(a, b):
    """You kept the axis of size 1 that a vector gets. The product removes this axis again."""
    if len(a) > 1 and len(b) > 1:
        return None
    left, right = _as_matrices(a, b)
    return matmul_result_shape.reference(left, right)


@matmul_result_shape.mistake
def vectors_refused(a, b):
    """You treated a vector as an error. On the right a vector becomes a column, on the left a row."""
    if len(a) == 1 or len(b) == 1:
        raise ValueError
    return None


@matmul_result_shape.mistake
def one_matrix_refused(a, b):
    """You assumed that the batch axes do not fit. Batch axes broadcast as in a sum: a missing axis counts as 1, and a 1
    stretches."""
    if len(a) > 1 and len(b) > 1 and a[:-2] != b[:-2] and _inner_sizes_match(a, b):
        raise ValueError
    return None


shape_of_a_product = Topic(
    title="The shape of a product",
    rule=matmul_result_shape,
    question=lambda a, b: f"The shapes of `a` and `b` are `{write(a)}` and `{write(b)}`. What is the shape of `a @ b`?",
    answer=Numbers(refusal=_DO_NOT_FIT),
)


# Which axis


def _matrix_and_axis(draw):
    rows, columns = choose(draw, ((2, 3), (3, 2), (2, 4), (3, 3), (3, 3)))
    x = torch.randint(0, 10, (rows, columns), generator=draw.generator)
    return x, choose(draw, ("sum", "amax")), choose(draw, (0, 1, -1, -2))


@rule(inputs=_matrix_and_axis)
def along_an_axis(x, operation, dim):
    """Return the sums or the largest numbers along an axis."""
    return getattr(x, operation)(dim=dim)


@along_an_axis.mistake
def along_the_other_axis(x, operation, dim):
    """You combined the numbers along the other axis. The named axis disappears: axis 0 runs down the columns."""
    return getattr(x, operation)(dim=1 - dim) if dim >= 0 else None


@along_an_axis.mistake
def counted_from_the_front(x, operation, dim):
    """You combined the numbers along the other axis: −1 is the last axis, and −2 the axis before it. In a matrix, the
    last axis runs along the rows."""
    return getattr(x, operation)(dim=-3 - dim) if dim < 0 else None


@along_an_axis.mistake
def over_everything(x, operation, dim):
    """You combined all numbers. Only one axis disappears; the other stays."""
    return getattr(x, operation)()[None]


@along_an_axis.mistake
def sum_for_largest(x, operation, dim):
    """You added up the numbers. `amax` returns the largest number."""
    return x.sum(dim=dim) if operation == "amax" else None


@along_an_axis.mistake
def largest_for_sum(x, operation, dim):
    """You took the largest number. `sum` adds up all the numbers."""
    return x.amax(dim=dim) if operation == "sum" else None


@along_an_axis.mistake
def place_for_largest(x, operation, dim):
    """You gave the index of the largest number, as `argmax` does. `amax` returns the number itself."""
    return x.argmax(dim=dim) if operation == "amax" else None


@along_an_axis.mistake
def smallest_for_largest(x, operation, dim):
    """You took the smallest number. `amax` returns the largest number."""
    return x.amin(dim=dim) if operation == "amax" else None


@along_an_axis.mistake
def multiplied_for_sum(x, operation, dim):
    """You multiplied the numbers. `sum` adds up the numbers."""
    return x.prod(dim=dim) if operation == "sum" else None


@along_an_axis.mistake
def first_ones_picked(x, operation, dim):
    """You picked the numbers at index 0 of the axis. Combine all numbers along the axis."""
    return x.select(dim, 0)


which_axis = Topic(
    title="Along which axis?",
    rule=along_an_axis,
    question=lambda x, operation, dim: f"What is `x.{operation}(dim={dim})`?",
    given_text=lambda x, operation, dim: write(x),
    answer=Numbers(),
)
