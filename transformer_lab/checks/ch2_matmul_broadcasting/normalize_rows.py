"""Rows that sum to one."""

import operator

import torch
from torch.nn import functional as F

from ..exercise import exercise, family


def _positive_numbers(draw, batch=2, rows=7, columns=5):
    return (draw(batch, rows, columns).abs() + 0.1,)


def sum_of_each_row(x):
    """Sum each row, and keep the axis, with size 1."""
    return x.sum(dim=-1, keepdim=True)


def divide(x, total):
    """Divide each row by its sum."""
    return x / total


@exercise(
    inputs=_positive_numbers,
    axes={"x": "batch rows columns", "return": "batch rows columns"},
    hints=(
        "Every row has one sum. Which shape must the tensor of sums have, so that each sum broadcasts along its own "
        "row?",
        "`sum` removes the axis that it sums over, so the sums line up with the columns. An argument of `sum` keeps "
        "the axis, with size 1. Count the axis from the end: there may be any number of axes before it.",
        "`x / x.sum(dim=…, keepdim=…)`",
    ),
)
def normalize_rows(x, *, total=sum_of_each_row, quotient=divide):
    """Divide each row by its sum. x: (..., columns). Returns a tensor of the same shape."""
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
    """Within a row the ratios stay the same: a number that is twice as large as its neighbour stays twice as large."""
    result = function(x)
    return torch.allclose(result * x.flip(-1), result.flip(-1) * x, rtol=1e-4, atol=1e-5)


@normalize_rows.property
def rows_independent(function, x):
    """A row does not depend on the others: if one row changes, the others stay the same."""
    changed = x.clone()
    changed[..., -1, :] *= 2
    return torch.allclose(function(changed)[..., :-1, :], function(x)[..., :-1, :], atol=1e-5)


@normalize_rows.wrong(stage="total")
class Total:
    def columns_instead_of_rows(x):
        """Your columns sum to one, not your rows: you sum along the second-to-last axis. `sum` adds up the numbers
        along the axis that you name. Which index changes while you walk along a row?"""
        return x.sum(dim=-2, keepdim=True)

    def over_axis_zero(x):
        """You sum over axis 0, which in this input is `batch`: numbers of different matrices are added. In a matrix,
        axis 0 runs down a column, so axis 0 is wrong there too. A row runs along the last axis: count from the end."""
        return x.sum(dim=0, keepdim=True)

    def over_axis_one(x):
        """You sum over axis 1. In a matrix that is the last axis, which is right; with leading axes, axis 1 is not the
        last. The docstring allows any leading axes, even none: count from the end."""
        return x.sum(dim=1, keepdim=True)

    def over_axis_two(x):
        """You sum over axis 2. With three axes that is the last axis, which is right; but a matrix has no axis 2, and
        with four axes, axis 2 is not the last. The docstring allows any number of axes in front: count from the end."""
        return x.sum(dim=2, keepdim=True)

    def keepdim_missing(x):
        """The axis that you sum over is gone, so the sums line up with the columns: shapes are aligned from the right.
        Here the division raises an error. With a square matrix it would run, and divide each column by the sum of some
        row. Keep the axis, with size 1."""
        return x.sum(dim=-1)

    def axis_one_removed(x):
        """There are two mistakes: you sum over axis 1, which is the last axis only in a matrix, and the axis is gone
        afterwards, so the sums line up with the wrong axes. Count the axis from the end, and keep it with size 1."""
        return x.sum(dim=1)

    def axis_put_back_as_one(x):
        """You restore the axis that the sum removed, but as axis 1: this is right for a matrix only. With more axes the
        sums line up with the wrong axes, and the division raises an error. Put the axis back where it was: at the
        end."""
        return x.sum(dim=-1).unsqueeze(1)

    def axis_put_back_as_two(x):
        """You restore the axis that the sum removed, but as axis 2. With three axes that is the last axis, which is
        right; but a matrix has no axis 2. Put the axis back at the end: counted from the end, its number is -1."""
        return x.sum(dim=-1).unsqueeze(2)

    def axis_put_back_by_index(x):
        """To restore the axis that the sum removed, you use an index with two colons: this is right for exactly three
        axes of `x`. There may be any number of axes in front of a row: `...` names all of them."""
        return x.sum(dim=-1)[:, :, None]

    def sums_in_one_column(x):
        """You put all sums into one long column. For a matrix that is right; with more axes there are more sums than
        a matrix has rows, and the division raises an error. The sums must keep all axes of `x`, the last one with
        size 1."""
        return x.sum(dim=-1).reshape(-1, 1)

    def by_the_grand_total(x):
        """You divide by the sum of all numbers: the whole tensor sums to one, and each row to less than one. `sum()`
        without an axis adds up all numbers. Each row has its own sum."""
        return x.sum()

    def by_the_matrix(x):
        """With three axes you divide by the sum of a whole matrix, so all rows of the matrix together sum to one, like
        a table of joint probabilities. Here each row has its own sum, whatever the number of axes."""
        return x.sum(dim=(-2, -1), keepdim=True) if x.ndim > 1 else x.sum()

    def running_sums(x):
        """You divide each number by the sum of the row up to that number: the first number of each row becomes 1.
        `cumsum` returns these running sums. Divide all numbers of a row by the same sum."""
        return x.cumsum(dim=-1)

    def by_the_mean(x):
        """You divide each row by its mean: your rows sum to the number of columns. The mean is the sum divided by the
        number of columns: divide by the sum itself."""
        return x.mean(dim=-1, keepdim=True)

    def by_the_number_of_columns(x):
        """You divide each row by the number of columns, as in a mean. Here the numbers of a row must sum to one: divide
        by their sum."""
        return torch.full_like(x[..., :1], x.shape[-1])

    def by_the_length(x):
        """You divide each row by its length, the root of the sum of squares: the squares of your rows sum to one. For a
        vector, "normalize" often means this, but here the numbers themselves must sum to one."""
        return x.norm(dim=-1, keepdim=True)

    def by_the_sum_of_squares(x):
        """You divide each row by the sum of its squares. Here the numbers themselves must sum to one: divide by their
        sum, without squares."""
        return (x * x).sum(dim=-1, keepdim=True)

    def by_the_standard_deviation(x):
        """You divide each row by its standard deviation, so its standard deviation becomes one, but its sum does not.
        Divide by the sum of the row."""
        mean = x.mean(dim=-1, keepdim=True)
        return (((x - mean) ** 2).sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)).sqrt()

    def by_the_largest(x):
        """You divide each row by its largest number: that number becomes 1, and the row sums to more than one. Here the
        numbers of a row must sum to one: divide by their sum."""
        return x.amax(dim=-1, keepdim=True)

    def by_the_smallest(x):
        """You divide each row by its smallest number: that number becomes 1, and the row sums to more than one. Divide
        by the sum of the row."""
        return x.amin(dim=-1, keepdim=True)

    def by_the_first_number(x):
        """You divide each row by its first number: that number becomes 1. Divide by the sum of the row."""
        return x[..., :1]

    def by_the_last_number(x):
        """You divide each row by its last number: that number becomes 1. The last entry of `cumsum` is the sum of the
        row, but the last entry of the row is not. Divide by the sum of the row."""
        return x[..., -1:]

    def absolute_values(x):
        """You divide by the sum of the absolute values. Without negative numbers this sum equals the plain sum; with
        negative numbers the row does not sum to one. `F.normalize(x, p=1)` does the same. Divide by the plain sum."""
        return x.abs().sum(dim=-1, keepdim=True)

    @family(epsilon_of_1e_5=1e-5, epsilon_of_1e_6=1e-6)
    def added_to_the_sum(epsilon, x):
        """You add a small number to the sum before you divide. This guards against a sum of zero, which the docstring
        rules out. For a row of small numbers the added number matters: after the division, the row sums to less than
        one."""
        return x.sum(dim=-1, keepdim=True) + epsilon

    def sums_of_at_least_one(x):
        """You replace sums below 1 with 1, so rows with such sums come back undivided. This guards against a sum of
        zero, which the docstring rules out. A row that sums to ¼ must be divided by ¼."""
        return x.sum(dim=-1, keepdim=True).clamp(min=1)

    def sums_clamped_above_zero(x):
        """You replace every sum below a small positive value with that value, as `clamp` does. This guards against a
        sum of zero, which the docstring rules out. You can divide by a negative sum as well."""
        return x.sum(dim=-1, keepdim=True).clamp(min=1e-8)


@normalize_rows.wrong(stage="total", alone=True)
class TotalAlone:
    def pair_taken_for_a_tensor(x):
        """`max` with an axis returns a pair: the largest numbers, and their places. A tensor cannot be divided by a
        pair, hence the `TypeError`. But do not divide by the largest number of a row: the row must sum to one."""
        return x.max(dim=-1, keepdim=True)

    def sums_expanded(x):
        """You expand the sums to the shape of `x`, and PyTorch raises an error: the axis that you sum over is gone, so
        the sums line up with the columns. Keep the axis, with size 1; then the sums broadcast without `expand`."""
        return x.sum(dim=-1).expand_as(x)

    def max_of_python(x):
        """Python's `max` compares a whole tensor with a number, but the comparison has no single answer for many
        numbers. You need no guard: the docstring says that no row sums to zero."""
        return max(x.sum(dim=-1, keepdim=True), 1e-8)

    def by_the_product(x):
        """You divide each row by the product of its numbers. Divide by the sum: the row (1, 2, 1) sums to 4."""
        return x.prod(dim=-1, keepdim=True)

    def by_one_more_than_the_sum(x):
        """You add 1 to the sum of each row before you divide, so the rows sum to less than one. This guards against a
        sum of zero, which the docstring rules out."""
        return 1 + x.sum(dim=-1, keepdim=True)


@normalize_rows.wrong(stage="quotient")
class Quotient:
    def in_place(x, total):
        """Your function changes its argument: the caller's tensor `x` holds different numbers afterwards. `/=` and
        `div_` write into the tensor itself. Return a new tensor."""
        return x.div_(total)

    @family(
        multiplied=(operator.mul, "multiply by the sums instead of dividing by them", "(4, 8, 4)"),
        sums_divided_by_numbers=(lambda x, total: total / x, "divide the sums by the numbers", "(4, 2, 4)"),
    )
    def not_divided(operation, x, total):
        """You {}. Check one row by hand: (1, 2, 1) sums to 4 and becomes (0.25, 0.5, 0.25), not {}."""
        return operation(x, total)

    def subtracted(x, total):
        """You subtract the sum from each number of its row. The row then does not sum to one, and the ratios in it
        change. The task is a division."""
        return x - total

    def divided_twice(x, total):
        """You divide by the sum twice: each row then sums to the reciprocal of its original sum. Does an earlier line
        already normalize the rows?"""
        return x / total / total

    def the_sums_alone(x, total):
        """You return the sums of the rows. Each number of a row must still be divided by its row's sum: the result has
        the shape of `x`."""
        return total

    def in_percent(x, total):
        """Your rows sum to 100: the numbers are percentages. They must sum to one, so multiply nothing after the
        division."""
        return 100 * x / total

    def logarithms(x, total):
        """You return the logarithms of the shares. The rows must sum to one without a logarithm: leave out `log`."""
        return (x / total).log()

    @family(rounded_to_two_digits=2, rounded_to_three_digits=3, rounded_to_four_digits=4)
    def rounded(digits, x, total):
        """You round the numbers, so the rows no longer sum exactly to one, and small numbers become 0. Rounding is for
        printing; the function itself must return the quotients unrounded."""
        return (x / total).round(decimals=digits)


@normalize_rows.wrong(stage="quotient", alone=True)
class QuotientAlone:
    def cut_to_whole_numbers(x, total):
        """You turn the shares into whole numbers, and almost all of them become 0. Shares are fractions, so they must
        be floats: leave the quotient as it is."""
        return (x / total).long()


@normalize_rows.wrong
class OtherFunctions:
    def softmax_of_rows(x):
        """Your rows sum to one because you apply a softmax, which exponentiates the numbers first: it turns (1, 3) into
        (0.12, 0.88), but the division gives (0.25, 0.75). Divide the numbers as they are."""
        return x.softmax(dim=-1)

    def log_softmax_instead(x):
        """You return the logarithm of a softmax: the numbers are exponentiated, and the result has no positive number.
        Only divide each number by the sum of its row."""
        return x.log_softmax(dim=-1)

    def exponentials_over_the_sum(x):
        """You divide the exponentials of the numbers by the sum of the numbers. Divide the numbers themselves, without
        `exp`."""
        return x.exp() / x.sum(dim=-1, keepdim=True)

    def standardized(x):
        """Your rows have mean 0 and variance 1: you subtract the mean and divide by the standard deviation. The
        normalization layers of chapter 6 standardize in this way. Here divide each row by its sum, and subtract
        nothing."""
        mean = x.mean(dim=-1, keepdim=True)
        variance = ((x - mean) ** 2).sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)  # x.std warns for a single number
        return (x - mean) / variance.sqrt()

    def layer_norm_instead(x):
        """Your rows have mean 0 and variance 1: you subtract the mean and divide by the standard deviation, computed
        with n, not n − 1, as layer norm does (chapter 6). Here divide each row by its sum, and subtract nothing."""
        return F.layer_norm(x, x.shape[-1:])

    def between_zero_and_one(x):
        """You scale each row to the range from 0 to 1: the smallest number becomes 0. Data are often prepared in this
        way. Here the numbers must keep their ratios, and their sum must become 1."""
        low, high = x.amin(dim=-1, keepdim=True), x.amax(dim=-1, keepdim=True)
        return (x - low) / (high - low)

    def squares_over_their_sum(x):
        """You divide the squares of the numbers by the sum of the squares. The rows sum to one, but the ratios are
        those of the squares. Divide the numbers themselves by their sum."""
        return normalize_rows.reference(x * x)

    def smallest_subtracted_first(x):
        """You subtract the smallest number of each row before you divide by the sum. The rows sum to one, but the
        ratios change: the smallest number becomes 0. Subtract nothing."""
        return normalize_rows.reference(x - x.amin(dim=-1, keepdim=True))

    def smallest_subtracted_after_the_sum(x):
        """You subtract the smallest number of each row and divide by the sum of the unchanged row. So the rows do not
        sum to one. Only divide; subtract nothing."""
        return (x - x.amin(-1, keepdim=True)) / x.sum(-1, keepdim=True)

    def mean_subtracted(x):
        """You subtract the mean of each row, so its numbers sum to zero, not to one. Subtract nothing, and divide by
        the sum."""
        return x - x.mean(dim=-1, keepdim=True)

    def negative_numbers_clamped(x):
        """Negative numbers are set to zero before the division. The docstring allows negative numbers: include them in
        the sum, and divide them like all others."""
        return normalize_rows.reference(x.clamp(min=0))

    def signs_lost(x):
        """Negative numbers lose their sign before the division. The docstring allows negative numbers: they count in
        the sum with their signs, and a quotient may be negative."""
        return normalize_rows.reference(x.abs())

    def difference_of_logarithms(x):
        """There is NaN in your result: a negative number has no logarithm. A difference of logarithms is the logarithm
        of a quotient, so your result is right for positive numbers, but the docstring allows negative ones. Use a plain
        division."""
        return torch.exp(torch.log(x) - torch.log(x.sum(-1, keepdim=True)))

    def rows_with_negative_sums_unchanged(x):
        """Rows whose sum is negative come back unchanged: you divide only by sums above zero. This guards against a sum
        of zero, which the docstring rules out. You can divide by a negative sum as well."""
        total = x.sum(-1, keepdim=True)
        return torch.where(total > 0, x / total, x)

    def whole_numbers(x):
        """You divide with `//`, which rounds down to whole numbers: almost every number becomes 0. Divide with one
        slash, `/`."""
        return x // x.sum(dim=-1, keepdim=True)

    def columns_as_well(x):
        """You divide by the sums of the rows, and then by the sums of the columns: now the columns sum to one, but the
        rows do not. Divide by the sums of the rows only."""
        result = normalize_rows.reference(x)
        return result / result.sum(dim=-2, keepdim=True) if x.ndim > 1 else result


@normalize_rows.wrong
class Axes:
    def transposed_with_T(x):
        """You transpose `x`, so that the sums line up with its rows, and transpose back. For a matrix that works; with
        three axes, `.T` reverses them all, and the sums line up with the wrong axes. Do not transpose: keep the axis
        that you sum over."""
        reverse = tuple(reversed(range(x.ndim)))  # x.T without its warning
        return (x.permute(reverse) / x.sum(dim=-1)).permute(reverse)

    def last_two_axes_transposed(x):
        """You transpose, divide, and transpose back. This lines the sums up with the rows of one matrix, but with
        leading axes, the sums still line up with the wrong axes. Use `keepdim=True`, which keeps the axis of the sum in
        its place, and do not transpose."""
        return (x.mT / x.sum(-1)).mT

    def not_transposed_back(x):
        """You transpose `x`, so that the sums line up with its rows, but do not transpose back; and with three axes
        `.T` reverses them all, so the sums do not fit. Do not transpose: keep the axis that you sum over."""
        return x.permute(*reversed(range(x.ndim))) / x.sum(dim=-1)

    def two_axes_unpacked(x):
        """Your function unpacks the shape into two sizes, those of a matrix, and raises an error for every other number
        of axes. The docstring allows any number of axes in front of a row, even none. Which of the sizes do you
        need?"""
        rows, columns = x.shape
        return normalize_rows.reference(x.reshape(rows, columns))

    def three_axes_unpacked(x):
        """Your function unpacks the shape into three sizes and raises an error for any other number of axes. The
        docstring allows any number of axes in front of a row, even none. Which of the sizes do you need?"""
        batch, rows, columns = x.shape
        return normalize_rows.reference(x.reshape(batch, rows, columns))

    def two_letters(x):
        """Your letters name two axes, but there may be any number of axes in front of the last. `...` names all of
        them, on both sides of the arrow."""
        return torch.einsum("ij,i->ij", x, 1 / x.sum(-1))

    def single_row_unchanged(x):
        """{Your function is right for tensors of several axes.} A single row, with no axis in front, comes back
        unchanged. It is a row like any other, and needs no special case."""
        return normalize_rows.reference(x) if x.ndim > 1 else x.clone()

    def only_index_zero_divided(x):
        """You divide only index 0 of the first axis, and the rest comes back unchanged. Most often a `return` is inside
        the loop, so that the function ends in the first iteration."""
        result = x.clone()
        result[0] = normalize_rows.reference(x[0]) if x.ndim > 1 else 1
        return result

    def leading_axes_joined(x):
        """The rows {are right, but they} form one long table: the axes in front are joined into one. The result must
        have the shape of `x`. Do not reshape, or reshape back at the end."""
        return normalize_rows.reference(x).reshape(-1, x.shape[-1])

    def unchanged(x):
        """Your numbers come back unchanged. An operation on a tensor returns a new tensor: give the new tensor a name,
        or return it. Only in-place operations change `x`, and here they must not be used."""
        return x.clone()

    def in_place_and_nothing_returned(x):
        """Your function changes its argument `x`, and returns `None`. The docstring asks for a new tensor: leave `x` as
        it is, and return the quotient."""
        x /= x.sum(dim=-1, keepdim=True)

    def in_float64(x):
        """The result is float64, whatever the dtype of `x` is. It must have the dtype of `x`. Which line names a dtype,
        or uses NumPy?"""
        return normalize_rows.reference(x.double())
