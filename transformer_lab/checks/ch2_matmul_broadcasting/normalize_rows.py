"""Rows that sum to one."""

import operator

import torch
from torch.nn import functional as F

from ..exercise import exercise, family


def _positive(draw, batch=2, rows=7, columns=5):
    return (draw(batch, rows, columns).abs() + 0.1,)


def sum_of_each_row(x):
    """Sum each row, and keep its axis."""
    return x.sum(dim=-1, keepdim=True)


def divided(x, total):
    """Divide each row by its sum."""
    return x / total


@exercise(
    inputs=_positive,
    axes={"x": "batch rows columns", "return": "batch rows columns"},
    hints=(
        "Every row has one sum. What shape must the sums have, to stretch along the row that they belong to?",
        "A sum removes its axis, and the sums then line up with the columns. An argument of `sum` keeps the axis, with "
        "size 1. Count the axis from the end: there may be any number of axes before it.",
        "`x / x.sum(dim=…, keepdim=…)`",
    ),
)
def normalize_rows(x, *, total=sum_of_each_row, quotient=divided):
    """(..., columns) to the same shape: each row, along the last axis, divided by its sum."""
    return quotient(x, total(x))


normalize_rows.example("a matrix", lambda draw: (draw(7, 5).abs() + 0.1,))
normalize_rows.example("sizes that are all equal", batch=4, rows=4, columns=4, plain=True)
normalize_rows.example("a square matrix", lambda draw: (draw(5, 5).abs() + 0.1,))
normalize_rows.example("a single row", lambda draw: (draw(5).abs() + 0.1,))
normalize_rows.example("four axes", lambda draw: (draw(2, 3, 7, 5).abs() + 0.1,))
normalize_rows.example("one column", columns=1)


@normalize_rows.probe
def negative_numbers(draw):
    """negative numbers"""
    x = draw(2, 7, 5)
    return (x - x.sum(dim=-1, keepdim=True) / 5 + torch.tensor([1.0, -2.0, 1.5, 1.0, 0.7, 1.2, -1.0])[:, None],)


@normalize_rows.probe
def small_and_large(draw):
    """rows of very different size"""
    return ((draw(2, 7, 5).abs() + 0.1) * 10.0 ** torch.arange(-3, 4)[:, None],)


normalize_rows.example("numbers in the thousands", lambda draw: (1000 * (draw(2, 7, 5).abs() + 0.1),))


@normalize_rows.right
class RightAnswers:
    def axis_put_back(x):
        return x / x.sum(-1).unsqueeze(-1)

    def times_the_inverse(x):
        return x * (1 / torch.einsum("...c->...", x))[..., None]

    def row_by_row(x):
        rows = x.reshape(-1, x.shape[-1])
        return torch.stack([row / sum(row) for row in rows]).reshape(x.shape)

    def sums_as_a_product(x):
        ones = torch.ones(x.shape[-1], 1, dtype=x.dtype, device=x.device)
        return x / (x @ ones)

    def last_axis_in_front(x):
        x = x.movedim(-1, 0)
        return (x / x.sum(0)).movedim(0, -1)

    def on_a_copy(x):
        result = x.clone()
        result /= x.sum(dim=-1, keepdim=True)
        return result


@normalize_rows.property
def rows_sum_to_one(function, x):
    """Every row sums to one."""
    return torch.allclose(function(x).sum(dim=-1), torch.ones((), dtype=x.dtype), atol=1e-4)


@normalize_rows.property
def ratios_stay(function, x):
    """Within a row the ratios stay: what was twice as large as its neighbour is so afterwards."""
    result = function(x)
    return torch.allclose(result * x.flip(-1), result.flip(-1) * x, rtol=1e-4, atol=1e-5)


@normalize_rows.property
def rows_on_their_own(function, x):
    """A row does not depend on the others: when one changes, the rest stays."""
    changed = x.clone()
    changed[..., -1, :] *= 2
    return torch.allclose(function(changed)[..., :-1, :], function(x)[..., :-1, :], atol=1e-5)


@normalize_rows.wrong(stage="total")
class Total:
    def columns_instead_of_rows(x):
        """Your columns sum to one, not your rows: you sum down the second-to-last axis. The axis that you name in `sum`
        is the one that disappears; the sum of a row runs along the columns. Look at which index changes while you walk
        along a row."""
        return x.sum(dim=-2, keepdim=True)

    def over_axis_zero(x):
        """You sum over axis 0, which in this input is `batch`: numbers of different matrices are added. In a matrix,
        axis 0 runs down a column, so it is not the row there either. A row is what lies along the last axis; count from
        the end."""
        return x.sum(dim=0, keepdim=True)

    def over_axis_one(x):
        """You sum over axis 1. In a matrix that is the last axis, which is right; with axes in front, it is another
        one. The docstring allows any leading axes, also none: count from the end."""
        return x.sum(dim=1, keepdim=True)

    def over_axis_two(x):
        """You sum over axis 2. With three axes that is the last one, which is right; a matrix has no axis 2, and with
        four axes it is another one. The docstring allows any number of axes in front: count from the end."""
        return x.sum(dim=2, keepdim=True)

    def keepdim_missing(x):
        """The axis that you sum over is gone, and the sums stand under the columns: shapes are aligned from the right.
        Here that raises. In a square matrix it would not, and each column would be divided by some row's sum. Keep the
        axis, with size 1."""
        return x.sum(dim=-1)

    def axis_one_removed(x):
        """Two things at once: you sum over axis 1, which is the one of the columns in a matrix only, and the axis is
        gone afterwards, so that the sums stand under the wrong axes. Name the axis from the end, and keep it with size
        1."""
        return x.sum(dim=1)

    def axis_put_back_as_one(x):
        """The axis that the sum removed comes back in second place, which is the right one for a matrix only. With more
        axes in front the sums stand under the wrong ones, and it raises. Put the axis back where it was: at the end."""
        return x.sum(dim=-1).unsqueeze(1)

    def axis_put_back_as_two(x):
        """The axis that the sum removed comes back as axis 2. With three axes that is the last one, which is right; a
        matrix has no axis 2. Put it back where it was: at the end, counted from there."""
        return x.sum(dim=-1).unsqueeze(2)

    def axis_put_back_by_index(x):
        """The axis that the sum removed comes back by an index with two colons, and that takes exactly three axes for
        granted. Any number of axes may stand in front of a row: `...` stands for all of them."""
        return x.sum(dim=-1)[:, :, None]

    def sums_in_one_column(x):
        """You make one long column of all sums. For a matrix that is what is needed; with more axes there are more sums
        than the matrix has rows, and it raises. The sums must keep all axes of `x`, the last one with size 1."""
        return x.sum(dim=-1).reshape(-1, 1)

    def by_the_grand_total(x):
        """You divide by the sum of all numbers: the whole tensor sums to one, and a row to a share of that. `sum()`
        without an axis adds everything up. Each row has a sum of its own."""
        return x.sum()

    def by_the_matrix(x):
        """With three axes you divide by the sum of a whole matrix, so that its rows together sum to one. A table of
        probabilities for all pairs at once is like that. Here each row has a sum of its own, whatever the number of
        axes."""
        return x.sum(dim=(-2, -1), keepdim=True) if x.ndim > 1 else x.sum()

    def running_sums(x):
        """You divide each number by the sum of the row up to there: the first of each row becomes 1. `cumsum` makes
        these running sums. All numbers of a row are divided by one and the same sum."""
        return x.cumsum(dim=-1)

    def by_the_mean(x):
        """You divide each row by its mean: your rows sum to the number of columns. The mean is the sum divided by that
        number once too often."""
        return x.mean(dim=-1, keepdim=True)

    def by_the_number_of_columns(x):
        """You divide each row by how many numbers it has: that is what a mean does last. Here the numbers of a row must
        sum to one, so divide by what they sum to."""
        return torch.full_like(x[..., :1], x.shape[-1])

    def by_the_length(x):
        """You divide each row by its length, the root of the sum of squares: the squares of your rows sum to one. To
        normalize a vector often means that. Here the numbers themselves must sum to one."""
        return x.norm(dim=-1, keepdim=True)

    def by_the_sum_of_squares(x):
        """You divide each row by the sum of its squares. With the root it would be the vector's length. Here the
        numbers themselves must sum to one: divide by what they sum to, without squares."""
        return (x * x).sum(dim=-1, keepdim=True)

    def by_the_spread(x):
        """You divide each row by its standard deviation, which makes the spread one, and not the sum. Divide by what
        the numbers of the row sum to."""
        mean = x.mean(dim=-1, keepdim=True)
        return (((x - mean) ** 2).sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)).sqrt()

    def by_the_largest(x):
        """You divide each row by its largest number: that one becomes 1, and the row sums to more. Here the numbers of
        a row must sum to one, so divide by what they sum to."""
        return x.amax(dim=-1, keepdim=True)

    def by_the_smallest(x):
        """You divide each row by its smallest number: that one becomes 1, and the row sums to more. Divide by what the
        numbers of the row sum to."""
        return x.amin(dim=-1, keepdim=True)

    def by_the_first_number(x):
        """You divide each row by its first number: that one becomes 1. Divide by what the numbers of the row sum to."""
        return x[..., :1]

    def by_the_last_number(x):
        """You divide each row by its last number: that one becomes 1. It is what a running sum ends with, and not what
        a row does. Divide by what the numbers of the row sum to."""
        return x[..., -1:]

    def absolute_values(x):
        """You divide by the sum of the absolute values. For numbers that are not negative that is the same; with
        negative ones the row does not sum to one. `F.normalize(x, p=1)` does this as well. Divide by the plain sum."""
        return x.abs().sum(dim=-1, keepdim=True)

    @family(a_little_added=1e-5, very_little_added=1e-6)
    def added_to_the_sum(little, x):
        """You add something to the sum before you divide. That is a guard against a sum of zero, which the docstring
        rules out. For a row of small numbers it is no longer little: that row sums to less than one."""
        return x.sum(dim=-1, keepdim=True) + little

    def sums_of_at_least_one(x):
        """Sums below 1 count as 1, and so rows with such sums come back undivided. That guards against a sum of zero,
        which the docstring excludes. A row that sums to ¼ is divided by ¼."""
        return x.sum(dim=-1, keepdim=True).clamp(min=1)

    def negative_sums_cut_off(x):
        """No sum of yours is negative or zero: a smallest value takes the place of one that is, as `clamp` does it.
        That is a guard against a sum of zero, which the docstring rules out. A negative sum is as good as a positive
        one."""
        return x.sum(dim=-1, keepdim=True).clamp(min=1e-8)


@normalize_rows.wrong(stage="total", alone=True)
class TotalAlone:
    def pair_taken_for_a_tensor(x):
        """`max` with an axis returns a pair: the largest numbers, and the places where they stand. A tensor cannot be
        divided by a pair, hence the `TypeError`. But the largest number of a row is not what is asked for: the row must
        sum to one."""
        return x.max(dim=-1, keepdim=True)

    def sums_expanded(x):
        """You expand the sums to the shape of `x`, and PyTorch refuses: their axis is gone, and they stand under the
        columns. Keep the axis, with size 1; then they stretch by themselves."""
        return x.sum(dim=-1).expand_as(x)

    def maximum_of_python(x):
        """Python's `max` asks whether one tensor is larger than a number, which has no single answer for many numbers.
        Nothing has to be guarded here: the docstring says that no row sums to zero."""
        return max(x.sum(dim=-1, keepdim=True), 1e-8)

    def by_the_product(x):
        """You divide each row by the product of its numbers. Its sum is asked for: the row (1, 2, 1) sums to 4."""
        return x.prod(dim=-1, keepdim=True)

    def by_one_more_than_the_sum(x):
        """You add 1 to the sum of each row before you divide, and so the rows sum to less than one. That guards against
        a sum of zero, which the docstring excludes."""
        return 1 + x.sum(dim=-1, keepdim=True)


@normalize_rows.wrong(stage="quotient")
class Quotient:
    def in_place(x, total):
        """Your function changes its argument: `x` itself holds other numbers afterwards, for everybody else who has it.
        `/=` and `div_` write into the tensor that they are given. Make a new one."""
        return x.div_(total)

    @family(
        multiplied=(operator.mul, "multiply by what you should divide by", "(4, 8, 4)"),
        upside_down=(lambda x, total: total / x, "divide the sums by the numbers", "(4, 2, 4)"),
    )
    def not_divided(operation, x, total):
        """You {}. Check one row by hand: (1, 2, 1) sums to 4 and becomes (0.25, 0.5, 0.25), not {}."""
        return operation(x, total)

    def subtracted(x, total):
        """You subtract the sum from each number of its row. Then the row does not sum to one, and the ratios in it
        change. The task is a division."""
        return x - total

    def divided_twice(x, total):
        """You divide by the sum twice: the rows sum to one over their sum. Is a row normalized before the line that
        normalizes it?"""
        return x / total / total

    def the_sums_alone(x, total):
        """You return the sums of the rows. Each number of a row must still be divided by its row's sum: the result has
        the shape of `x`."""
        return total

    def in_percent(x, total):
        """Your rows sum to 100: these are percents. They must sum to one, so nothing is multiplied after the
        division."""
        return 100 * x / total

    def logarithms(x, total):
        """You return the logarithms of the shares. The rows must sum to one as they are: leave the quotient as it is,
        and `log` to the losses."""
        return (x / total).log()

    @family(rounded_to_two_digits=2, rounded_to_three_digits=3, rounded_to_four_digits=4)
    def rounded(digits, x, total):
        """Your numbers are rounded, so that the rows sum to one nearly, and small numbers become 0. Rounding is for
        printing; the function itself returns what the division gives."""
        return (x / total).round(decimals=digits)


@normalize_rows.wrong(stage="quotient", alone=True)
class QuotientAlone:
    def cut_to_whole_numbers(x, total):
        """You turn the shares into whole numbers, and almost all of them become 0. They lie between whole numbers, as
        floats: leave the quotient as it is."""
        return (x / total).long()


@normalize_rows.wrong
class OtherFunctions:
    def softmax_instead(x):
        """Your rows sum to one, by a softmax: the numbers are exponentiated first. That is another function: it turns
        (1, 3) into (0.12, 0.88), where the division gives (0.25, 0.75). Divide the numbers as they are."""
        return x.softmax(dim=-1)

    def log_softmax_instead(x):
        """This is the logarithm of a softmax: the numbers are exponentiated, and the result has no positive number.
        Here each number is divided by the sum of its row, and nothing else."""
        return x.log_softmax(dim=-1)

    def exponentials_over_the_sum(x):
        """You divide the exponentials of the numbers by the sum of the numbers. Nothing is exponentiated here: what was
        added up is to be divided."""
        return x.exp() / x.sum(dim=-1, keepdim=True)

    def standardized(x):
        """Your rows have mean 0 and variance 1: the mean is taken off and the rest divided by the standard deviation.
        Layers that are called normalization do that, in chapter 6. Here each row is divided by its sum, and nothing is
        taken off."""
        mean = x.mean(dim=-1, keepdim=True)
        variance = ((x - mean) ** 2).sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)  # x.std warns for a single number
        return (x - mean) / variance.sqrt()

    def layer_norm_instead(x):
        """Your rows have mean 0 and variance 1: the mean is taken off and the rest divided by the standard deviation,
        computed with n, not n − 1, as layer norm does it (chapter 6). Here each row is divided by its sum, and nothing
        is taken off."""
        return F.layer_norm(x, x.shape[-1:])

    def between_zero_and_one(x):
        """You stretch each row so that it goes from 0 to 1: the smallest number becomes 0. Data are often prepared like
        that. Here the numbers keep their ratios, and their sum becomes 1."""
        low, high = x.amin(dim=-1, keepdim=True), x.amax(dim=-1, keepdim=True)
        return (x - low) / (high - low)

    def squares_instead(x):
        """You divide the squares of the numbers by the sum of the squares. The rows sum to one, and the ratios are
        those of the squares. The numbers themselves are to be divided by their sum."""
        return normalize_rows.reference(x * x)

    def smallest_taken_off_first(x):
        """You take the smallest number off each row before you divide by the sum. The rows sum to one, and the ratios
        change: the smallest becomes 0. Nothing has to be taken off."""
        return normalize_rows.reference(x - x.amin(dim=-1, keepdim=True))

    def smallest_taken_off_above(x):
        """Your numbers are those of the row less its smallest, divided by the sum of the row as it was. So the rows do
        not sum to one. Only the division is asked for."""
        return (x - x.amin(-1, keepdim=True)) / x.sum(-1, keepdim=True)

    def mean_taken_off(x):
        """You take the mean off each row: its numbers sum to zero then, and not to one. Nothing has to be taken off: a
        division by the sum makes shares of the numbers."""
        return x - x.mean(dim=-1, keepdim=True)

    def negative_numbers_cut_off(x):
        """Negative numbers are set to zero before the division. The docstring allows them: they stay negative, and
        count in the sum as they are."""
        return normalize_rows.reference(x.clamp(min=0))

    def signs_lost(x):
        """Negative numbers lose their sign before the division. The docstring allows them: they count in the sum as
        they are, and their sign says how they come out."""
        return normalize_rows.reference(x.abs())

    def by_way_of_logarithms(x):
        """There is NaN in your result: a negative number has no logarithm. A difference of logarithms is a quotient, so
        it comes out right for positive numbers; the docstring allows negative ones. Divide."""
        return torch.exp(torch.log(x) - torch.log(x.sum(-1, keepdim=True)))

    def negative_sums_left_alone(x):
        """Rows whose sum is negative come back as they were: only a sum above zero is divided by. That is a guard
        against a sum of zero, which the docstring rules out. A negative sum is as good as a positive one."""
        total = x.sum(-1, keepdim=True)
        return torch.where(total > 0, x / total, x)

    def whole_numbers(x):
        """You divide with `//`, which rounds down to whole numbers: almost everything becomes 0. One slash divides."""
        return x // x.sum(dim=-1, keepdim=True)

    def columns_as_well(x):
        """You divide by the sums of the rows, and then by those of the columns: now the columns sum to one, and the
        rows no longer do. One division is enough."""
        result = normalize_rows.reference(x)
        return result / result.sum(dim=-2, keepdim=True) if x.ndim > 1 else result


@normalize_rows.wrong
class Axes:
    def turned_round(x):
        """You transpose `x`, so that the sums stand under its rows, and transpose back. For a matrix that works; with
        three axes, `.T` reverses them all, and the sums meet the wrong ones. There is a way without transposing: keep
        the axis that you sum over."""
        reverse = tuple(reversed(range(x.ndim)))  # x.T without its warning
        return (x.permute(reverse) / x.sum(dim=-1)).permute(reverse)

    def last_two_turned_round(x):
        """You transpose, divide, and transpose back. That lines the sums up with the rows of one matrix; with more axes
        in front, the sums still stand in the wrong place. `keepdim=True` keeps the axis of the sum where it must be,
        and then nothing needs to be turned."""
        return (x.mT / x.sum(-1)).mT

    def never_turned_back(x):
        """You transpose `x`, so that the sums stand under its rows, and do not transpose back; and with three axes `.T`
        reverses them all, so that the sums do not fit. Without transposing: keep the axis that you sum over."""
        return x.permute(*reversed(range(x.ndim))) / x.sum(dim=-1)

    def two_axes_unpacked(x):
        """Your function takes the shape apart into two sizes, as of a matrix, and every other number of axes raises.
        The docstring allows any number of axes in front of a row, also none. Which of the sizes do you need at all?"""
        rows, columns = x.shape
        return normalize_rows.reference(x.reshape(rows, columns))

    def three_axes_unpacked(x):
        """Your function takes the shape apart into three sizes, and every other number of axes raises. The docstring
        allows any number of axes in front of a row, also none. Which of the sizes do you need at all?"""
        batch, rows, columns = x.shape
        return normalize_rows.reference(x.reshape(batch, rows, columns))

    def two_letters(x):
        """Your letters name two axes, and there may be any number in front of the last. `...` stands for all of these,
        on both sides of the arrow."""
        return torch.einsum("ij,i->ij", x, 1 / x.sum(-1))

    def a_single_row_left_alone(x):
        """{Right for tensors of several axes.} A single row, with no axis in front, comes back as it was. It is a row
        like any other, and needs no case of its own."""
        return normalize_rows.reference(x) if x.ndim > 1 else x.clone()

    def only_the_first_one(x):
        """Only what stands at index 0 of the first axis is divided, and the rest comes back as it was. Most often a
        `return` is inside the loop, so that the function ends in the first round."""
        result = x.clone()
        result[0] = normalize_rows.reference(x[0]) if x.ndim > 1 else 1
        return result

    def made_one_long_table(x):
        """The rows {are right, and they} stand in one long table: the axes in front are joined to one. The shape must
        be that of `x`. Nothing has to be reshaped here; if it was, it must be taken back."""
        return normalize_rows.reference(x).reshape(-1, x.shape[-1])

    def unchanged(x):
        """Your numbers come back as they were. An operation on a tensor returns a new one: give that a name, or return
        it. Only operations in place change `x`, and here they must not be used."""
        return x.clone()

    def in_place_and_nothing_returned(x):
        """Your function changes its argument `x`, and returns `None`. The docstring asks for a new tensor: leave `x` as
        it is, and return the quotient."""
        x /= x.sum(dim=-1, keepdim=True)

    def in_float64(x):
        """The result comes in float64 whatever came in. It must have the dtype of `x`. Which line names a dtype, or
        passes through NumPy?"""
        return normalize_rows.reference(x.double())
