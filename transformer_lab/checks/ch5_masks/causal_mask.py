"""The causal mask."""

import torch

from ..common_mistakes import fixed_length
from ..exercise import exercise, family


def triangle_of_the_past(seq):
    """Make the triangle of the past, with the diagonal."""
    return torch.ones(seq, seq, dtype=torch.bool).tril()


def true_where_allowed(past):
    """Mark with `True` the places that a token may attend to."""
    return past


def keep_bool(mask):
    """Keep the mask boolean."""
    return mask


def keep_two_axes(mask):
    """Keep both axes of the mask, queries by keys."""
    return mask


@exercise(
    inputs=lambda draw, seq=5: (seq,),
    axes={"return": "seq seq"},
    hints=(
        "Row 2 belongs to the third token. Which of the tokens 0, 1, 2, 3, … may this token see, itself included?",
        "Rows are queries, and columns are keys; `True` means may attend. The allowed part is a triangle. Which one?",
        "`torch.ones(seq, seq, dtype=torch.bool)` and a function that keeps a triangle: `.tril()` or `.triu()`",
    ),
)
def causal_mask(
    seq, *, triangle=triangle_of_the_past, allowed=true_where_allowed, dtype=keep_bool, shape=keep_two_axes
):
    """Return a bool mask of shape (seq, seq): a token may attend to itself and to the tokens before it."""
    return shape(dtype(allowed(triangle(seq))))


@causal_mask.right
class RightAnswers:
    def by_comparing_positions(seq):
        position = torch.arange(seq)
        return position[:, None] >= position

    def by_inverting_the_future(seq):
        return ~torch.triu(torch.ones(seq, seq, dtype=torch.bool), diagonal=1)

    def by_two_loops(seq):
        return torch.tensor([[key <= query for key in range(seq)] for query in range(seq)])

    def by_indices(seq):
        mask = torch.zeros(seq, seq).bool()
        rows, columns = torch.tril_indices(seq, seq)
        mask[rows, columns] = True
        return mask


causal_mask.example("one token", 1)
causal_mask.example("two tokens", 2)
causal_mask.example("a text of 300 tokens", 300)


@causal_mask.property
def first_sees_itself_and_last_sees_all(function, seq):
    """The first token sees only its own key; the last token sees all keys."""
    mask = function(seq)
    return bool(mask[0, 0]) and int(mask[0].sum()) == 1 and bool(mask[-1].all())


def _has_a_finite_number_on_the_future(probe, got, expected):
    result, past = got.value, expected.value
    if not isinstance(result, torch.Tensor) or result.shape != past.shape or not result.is_floating_point():
        return False
    future = result[~past]
    return not result[past].any() and bool(
        (future == future[:1]).all() and (future < 0).all() and future.isfinite().all()
    )


def additive_with_a_finite_number(seq):
    return torch.zeros(seq, seq).masked_fill(torch.ones(seq, seq, dtype=torch.bool).triu(1), -1e4)


def cut_from_a_buffer(seq):
    return torch.ones(64, 64, dtype=torch.bool).tril()[:seq, :seq]


@causal_mask.wrong(stage="triangle")
class Triangle:
    def upper_triangle(seq):
        """Your mask is the other triangle: each token sees itself and what comes after it. Rows are queries and columns
        are keys. Read row 0 aloud: the first token may see only itself."""
        return torch.ones(seq, seq, dtype=torch.bool).triu()

    def diagonal_hidden(seq):
        """You hide the diagonal: no token sees itself, and the first token sees nothing. A token may attend to itself,
        because it must predict the next token. At which diagonal does your triangle end?"""
        return torch.ones(seq, seq, dtype=torch.bool).tril(-1)

    def one_diagonal_too_far(seq):
        """Each token sees the token after it, which it must predict: the triangle ends one diagonal too late. The
        training loss is then tiny, but the model has only learned to copy."""
        return torch.ones(seq, seq, dtype=torch.bool).tril(1)

    def itself_only(seq):
        """Only the diagonal is `True`: each token sees itself and nothing before it. A token may attend to every token
        up to and including itself."""
        return torch.eye(seq, dtype=torch.bool)

    def triangle_flipped(seq):
        """Your triangle is in the lower right corner: token 0 sees only the last key, and token 1 sees only the last
        two keys. Each row shows one key more than the row above, as it should, but begins on the wrong side: the first
        key must be visible to every token."""
        return torch.ones(seq, seq, dtype=torch.bool).tril().flip(1)


@causal_mask.wrong(stage="triangle", alone=True)
class TriangleAlone:
    def all_visible(seq):
        """Every entry is `True`: every token sees all tokens, even those in the future. Which operation must hide the
        keys after the query?"""
        return torch.ones(seq, seq, dtype=torch.bool)

    def all_hidden(seq):
        """Every entry is `False`: no token sees any token, not even itself. A triangle cut out of zeros holds only
        zeros. Which table do you begin with, and which step sets an entry to `True`?"""
        return torch.zeros(seq, seq, dtype=torch.bool)


@causal_mask.wrong(stage="allowed")
class Allowed:
    def inverted(past):
        """Your mask is `True` where a token must not look: it is the inverse of the right mask. This is the convention
        of `nn.MultiheadAttention`, where `True` means ignored. In this course, as in `scaled_dot_product_attention`,
        `True` means may attend. With your mask, every token would see only the future, and the last token would see
        nothing."""
        return ~past


@causal_mask.wrong(stage="dtype")
class Dtype:
    @family(
        already_additive=(float("-inf"), "the", "-inf"),
        additive_with_a_large_number=(-1e9, "a", "and a large negative number"),
    )
    def additive(hiding, mask):
        """This is {} mask to add to scores: 0 where a token may attend, {} where it may not. Return a mask of `True`
        and `False`; converting such a mask to an additive mask is a separate exercise, `to_additive`."""
        return torch.zeros(mask.shape).masked_fill(~mask, hiding)

    def nan_where_allowed_and_minus_infinity(mask):
        """Your mask is made of numbers: -inf where a token must not look, and NaN where it may. You multiply a table of
        0 and 1 by -inf, but 0 times infinity is NaN. Return a mask of `True` and `False`, and multiply nothing."""
        return (~mask).float() * float("-inf")


@causal_mask.wrong(stage="shape")
class Shape:
    def with_axes_for_batch_and_heads(mask):
        """The triangle {is right, but} has axes of size 1 in front, for the batch and the heads. Broadcasting adds such
        axes, so they are not needed. The docstring asks for (seq, seq)."""
        return mask[None, None]


@causal_mask.wrong
class WrongAnswers:
    def ones_where_hidden(seq):
        """Your mask has the number 1 where a token must not look, and 0 where it may. Some programs write masks in this
        way and multiply them by a large negative number later. Here return `True` and `False`, where `True` means may
        attend."""
        return torch.ones(seq, seq).triu(1)

    def one_row(seq):
        """Your mask has one axis, and every entry is `True`, as if you had compared each position only with itself. A
        causal mask is a table: which keys are visible depends on the query, so every query needs its own row. Along
        which axis are the positions of the queries, and along which axis are the positions of the keys?"""
        return torch.ones(seq, dtype=torch.bool)

    def tril_of_one_axis(seq):
        """A triangle needs a table with two axes, but your table has one axis: `tril` and `triu` raise an error. Every
        query needs its own row. How many tokens are there along each axis?"""
        return torch.ones(seq, dtype=torch.bool).tril()

    def tilde_of_floats(seq):
        """`~` works on bools and whole numbers, and raises an error for floats such as 0.0 and 1.0. Begin with a table
        of bools, or convert your numbers to bools before you negate them. Which dtype does `torch.ones` return by
        default?"""
        return ~torch.ones(seq, seq).triu(1)

    def one_row_and_column_too_few(seq):
        """Your mask is a triangle, but one row and one column are missing: (seq − 1, seq − 1). `range` and `arange`
        leave out their end, so if they begin at 1, they return one number too few. Every token needs a row and a
        column: how many tokens are there?"""
        return torch.ones(seq - 1, seq - 1, dtype=torch.bool).tril()


additive_with_a_finite_number.__doc__ = """This is a mask to add to scores: 0 where a token may attend, and a negative
number where it may not. Return a mask of `True` and `False`; converting such a mask to an additive mask is a separate
exercise, `to_additive`."""


causal_mask.mistake(additive_with_a_finite_number, recognizes=_has_a_finite_number_on_the_future)
fixed_length(causal_mask, cut_from_a_buffer, "a text of 300 tokens")
