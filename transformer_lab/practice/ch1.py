"""Chapter 1: places in storage, strides, views."""

from .answers import Number, Numbers
from .draws import a_shape, numbers, write
from .topic import Topic


def _index_and_strides(draw):
    shape = a_shape(draw, axes=3, most=5)
    strides = (shape[1] * shape[2], shape[2], 1)
    return tuple(min(i, size - 1) for i, size in zip(numbers(draw, 3, 1, 4), shape)), strides


offset = Topic(
    title="Where an element lies",
    rule="flat_offset",
    inputs=_index_and_strides,
    question=lambda index, strides: (
        f"`x` begins at place 0 of its storage and has the strides `{write(strides)}`. "
        f"At which place does `x{write(list(index))}` lie?"
    ),
    answer=Number(),
    words={
        "strides_taken_as_shape": "You took the strides for a shape, and worked out larger steps from them. Each "
        "stride says already how far one step goes: what is index (1, 0) with strides (3, 1)?",
    },
)

strides_of = Topic(
    title="Strides of a fresh tensor",
    rule="strides_of",
    inputs=lambda draw: (a_shape(draw, axes=3),),
    question=lambda shape: f"A fresh tensor has the shape `{write(shape)}`. What are its strides?",
    answer=Numbers(),
    without=("bytes_of_float64",),
)
