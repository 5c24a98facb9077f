"""Softmax that does not overflow."""

import math

import torch
from torch.nn import functional as F

from ..exercise import exercise, family
from .properties import nearly_equal


def _scores_and_dim(draw, batch=2, q_len=7, k_len=5):
    return 2 * draw(batch, q_len, k_len), -1


def minus_the_maximum(x, dim):
    """Subtract the largest number along the axis."""
    return x - x.amax(dim, keepdim=True)


def exponentials(shifted):
    """Take the exponential of each number."""
    return shifted.exp()


def divided_by_the_sum(exp, dim):
    """Divide by the sum along the axis."""
    return exp / exp.sum(dim, keepdim=True)


@exercise(
    inputs=_scores_and_dim,
    axes={},  # any shape
    hints=(
        "Softmax depends only on the differences of the scores. Which number may you subtract from all the scores of "
        "a row, so that the argument of `exp` is never large?",
        "`x.amax(dim)` is the largest number along `dim`, and `x.sum(dim)` is the sum. Both functions remove the axis "
        "`dim`, so their results no longer line up with `x`: look up `keepdim`.",
        "`exp = (x - x.amax(…, keepdim=…)).exp()`, then `exp / exp.sum(…, keepdim=…)`",
    ),
)
def softmax(x, dim, *, shift=minus_the_maximum, exp=exponentials, divide=divided_by_the_sum):
    """Turn scores into positive weights that sum to one along ``dim``. x: any shape. Returns a tensor of the same
    shape."""
    return divide(exp(shift(x, dim)), dim)


@softmax.right
class RightAnswers:
    def softmax_of_pytorch(x, dim):
        return torch.softmax(x, dim)

    def softmax_by_logarithms(x, dim):
        return (x - x.logsumexp(dim, keepdim=True)).exp()

    def softmax_by_unsqueeze(x, dim):
        exp = torch.exp(x - x.max(dim).values.unsqueeze(dim).detach())
        return exp / exp.sum(dim).unsqueeze(dim)

    def softmax_with_the_axis_last(x, dim):
        last = x.transpose(dim, -1)
        exp = math.e ** (last - torch.max(last, dim=-1, keepdim=True)[0])
        return exp.div(exp.sum(-1)[..., None]).transpose(dim, -1)

    def softmax_row_by_row(x, dim):
        last = x.movedim(dim, -1)
        rows = [torch.exp(row - row.max()) for row in last.reshape(-1, last.shape[-1])]
        return torch.stack([row / row.sum() for row in rows]).reshape(last.shape).movedim(-1, dim)


softmax.example("the first axis as `dim`", lambda draw: (2 * draw(7, 5), 0), plain=True)
softmax.example("the middle axis as `dim`", batch=3, q_len=6, k_len=4, dim=1, plain=True)
softmax.example("a square table", lambda draw: (2 * draw(4, 4), 1), plain=True)


@softmax.probe
def from_the_end(draw):
    """`dim` counted from the end"""
    return 2 * draw(2, 3, 6, 4), -3


softmax.example("one axis only", lambda draw: (2 * draw(5), 0))
softmax.example("one score in each row", lambda draw: (draw(4, 1), -1))
softmax.example("scores of a hundred and more", torch.tensor([[100.0, 101.0, 102.0], [700.0, 699.0, 701.0]]), 1)
softmax.example("scores far below zero", torch.tensor([[-1000.0, -1001.0, -1002.0]]), 1)
softmax.example("rows that lie a thousand apart", torch.tensor([[1000.0, 1001.0, 1003.0], [2.0, 1.0, 0.0]]), 1)
softmax.example("scores that lie a hundred apart in one row", torch.tensor([[0.0, 99.0, 100.0, 101.0]]), 1)
softmax.example("scores that lie a thousand apart in one row", torch.tensor([[0.0, -1000.0, -2000.0, 1.0]]), 1)


@softmax.property
def weights_sum_to_one(function, x, dim):
    """The weights along `dim` sum to one."""
    return nearly_equal(function(x, dim).sum(dim), 1)


@softmax.property
def only_differences_count(function, x, dim):
    """Adding the same number to all scores changes nothing."""
    return nearly_equal(function(x + 1, dim), function(x, dim))


@softmax.property
def largest_score_gets_the_largest_weight(function, x, dim):
    """The largest score has the largest weight."""
    return torch.equal(function(x, dim).argmax(dim), x.argmax(dim))


@softmax.wrong(stage="shift")
class Shift:
    def nothing_subtracted(x, dim):
        """Nothing keeps `exp` from overflowing. In float32, e to the power of 89 is infinite, and infinity divided by
        infinity is NaN; if all scores are far below zero, all exponentials are 0, and 0/0 is also NaN. Softmax depends
        only on differences, so you may subtract one number from all the scores of a row: which number keeps every
        exponent small?"""
        return x

    def largest_of_all_subtracted(x, dim):
        """You subtract the maximum of all rows. This prevents overflow, but if a row is far below that maximum (in
        float32, by 104 or more), all its exponentials are 0, and 0/0 is NaN. Each row has its own softmax: which
        maximum does it need?"""
        return x - x.amax()

    def largest_of_the_last_axis_subtracted(x, dim):
        """You sum along `dim`, but find the maximum along the last axis. You then subtract different amounts from
        numbers that share a sum, which changes their ratios; your function is right only if `dim` is the last axis.
        Follow the argument `dim` through every line."""
        return x - x.amax(-1, keepdim=True)

    def smallest_subtracted(x, dim):
        """You subtract the minimum of the row. The ratios stay right, but now no exponent is negative, and if the
        scores of a row are 89 or more apart, `exp` overflows and the result is NaN. Which number must you subtract, so
        that no exponent is above zero?"""
        return x - x.amin(dim, keepdim=True)

    def mean_subtracted(x, dim):
        """You subtract the mean of the row. The ratios stay right, but for a score that is 89 or more above the mean,
        `exp` still overflows, and the result is NaN. Which number must you subtract, so that no exponent is above
        zero?"""
        return x - x.mean(dim, keepdim=True)

    def scores_clamped(x, dim):
        """You clamp the scores to some limit, to keep `exp` from overflowing. All scores beyond the limit then become
        equal, but softmax depends on their differences: 100 and 102 must get weights in the ratio 1 to 7.4. Shift the
        scores instead of clamping them: what may be subtracted from a whole row?"""
        return x.clamp(-60, 60)

    def sign_reversed(x, dim):
        """The smallest score gets the largest weight: you take the exponential of the negative score, or of the maximum
        minus the score. Look at the order of the subtraction. Its result must be 0 for the largest score, and negative
        for all others."""
        return x.amax(dim, keepdim=True) - x

    def largest_without_its_axis(x, dim):
        """The maximum has lost the axis `dim`, and no longer lines up with `x`: broadcasting aligns shapes from the
        right. Usually the subtraction raises an error. With a square table it runs, but subtracts the maximum of a row
        from a column. Keep the axis, with size 1: functions such as `amax` have an argument for this."""
        return x - x.amax(dim)

    def largest_absolute_value_subtracted(x, dim):
        """You subtract the largest absolute value. If all scores of a row are far below zero, this moves them further
        down: all exponentials are 0, and 0/0 is NaN. Which number must you subtract, so that the largest score becomes
        0?"""
        return x - x.abs().amax(dim, keepdim=True)

    def divided_by_the_largest(x, dim):
        """You divide the scores by their maximum instead of subtracting it. `exp` no longer overflows, but you compute
        the weights of different scores: 100 and 101 become 0.99 and 1. Softmax depends on the differences of the
        scores, which a division changes."""
        return x / x.amax(dim, keepdim=True)

    def axis_of_the_maximum_put_back_last(x, dim):
        """The maximum has lost the axis `dim`, and you put this axis back at the end, which is right only if `dim` is
        the last axis. Put the axis back where it was, or keep it."""
        return x - x.amax(dim).unsqueeze(-1)


@softmax.wrong(stage="shift", alone=True)
class ShiftAlone:
    def pair_taken_for_a_tensor(x, dim):
        """`max` with an axis returns a pair: the largest numbers, and their places. A pair cannot be subtracted from a
        tensor, hence the `TypeError`. Use the pair's `.values`, or `amax`, which returns only the numbers."""
        return x - x.max(dim, keepdim=True)

    def scores_clamped_above(x, dim):
        """You clamp the scores to some upper limit, to keep `exp` from overflowing. All scores above the limit then
        become equal; and if all scores are far below zero, all exponentials are still 0, and 0/0 is NaN. Shift the
        scores instead of clamping them: what may be subtracted from a whole row?"""
        return x.clamp(max=60)

    def largest_added(x, dim):
        """If scores are large, `exp` overflows, and the whole row becomes NaN. If you add the maximum, this becomes
        worse; if you divide by the exponential of the maximum, the division comes too late, after the overflow.
        Subtract the maximum from the scores, before `exp`."""
        return x + x.amax(dim, keepdim=True)

    def largest_of_the_first_axis_subtracted(x, dim):
        """You sum along `dim`, but find the maximum along the first axis. You then subtract different amounts from
        numbers that share a sum, which changes their ratios. Follow the argument `dim` through every line."""
        return x - x.amax(0, keepdim=True)

    def divided_by_the_root_of_the_count(x, dim):
        """You first divide the scores by the root of their count, so the weights are too even. Attention divides its
        scores by a root before it calls the softmax; the softmax itself uses the scores as they are."""
        return (x - x.amax(dim, keepdim=True)) / x.shape[dim] ** 0.5

    def standardized(x, dim):
        """You standardize the scores to mean 0 and standard deviation 1 before `exp`. Subtracting the mean changes no
        weight, but dividing by the standard deviation does: the weights depend on the differences of the scores."""
        return (x - x.mean(dim, keepdim=True)) / x.std(dim, keepdim=True)


@softmax.wrong(stage="exp")
class Exp:
    def powers_of_two(shifted):
        """You take powers of 2 instead of e. The weights sum to one, but they are closer together than they should be:
        the scores 0 and ln 3 must get the weights ¼ and ¾. Which function has e as its base?"""
        return shifted.exp2()

    def exponential_of_math(shifted):
        """`math.exp` accepts one number and rejects a tensor with several numbers. PyTorch has a function of the same
        name for whole tensors."""
        return math.exp(shifted)

    def never_exponentiated(shifted):
        """The exponential is missing: you use the scores minus their maximum in place of their exponentials. None of
        these numbers is above zero, and the largest score gets weight 0. Which function makes each of them positive?"""
        return shifted

    def few_terms_of_the_series(shifted):
        """You replace the exponential with the first terms of its series, 1 + x + x²/2. The sum is close to the
        exponential only near 0: a score far below 0 gets a large weight again. PyTorch has the function itself."""
        return 1 + shifted + shifted**2 / 2


@softmax.wrong(stage="exp", alone=True)
class ExpAlone:
    def exponential_taken_twice(shifted):
        """You take the exponential twice, first of the scores and then of the result. Once is enough: the scores 0 and
        ln 3 must get the weights ¼ and ¾."""
        return shifted.exp().exp()

    def exponential_less_one(shifted):
        """You take the exponential minus 1, as `expm1` does. The largest score, which is 0 after the shift, then gets
        weight 0. Divide the exponentials themselves by their sum."""
        return shifted.expm1()

    def powers_of_ten(shifted):
        """You take powers of 10 instead of e. The weights sum to one, but they are further apart than they should be:
        the scores 0 and ln 3 must get the weights ¼ and ¾. Which function has e as its base?"""
        return 10**shifted

    def squares_for_exponentials(shifted):
        """You square the scores instead of taking their exponentials. Squares are positive too, but a score far below
        the maximum gets a large weight. The larger score must get the larger weight."""
        return shifted**2

    def logarithms_for_exponentials(shifted):
        """You take the logarithm of the scores instead of their exponential. A negative number has no logarithm, hence
        the NaN. Which function turns any number into a positive number?"""
        return shifted.log()

    def sigmoids_for_exponentials(shifted):
        """You take the sigmoid of each score instead of its exponential. The weights sum to one, but a sigmoid never
        exceeds 1, so the ratios are wrong: the scores 0 and ln 3 must get the weights ¼ and ¾."""
        return shifted.sigmoid()


@softmax.wrong(stage="divide")
class Divide:
    def sum_without_its_axis(exp, dim):
        """The sum has lost the axis `dim`, and no longer lines up with the exponentials: broadcasting aligns shapes
        from the right. The division usually raises an error. With a square table it runs, but divides a column by the
        sum of a row. Keep the axis, with size 1: `sum` has an argument for this."""
        return exp / exp.sum(dim)

    def sum_of_all(exp, dim):
        """You divide by the sum of all exponentials in the tensor, as `.sum()` without an axis does: all the numbers
        together sum to one. The weights of each row must sum to one, along `dim`."""
        return exp / exp.sum()

    def sum_over_the_last_axis(exp, dim):
        """The sum runs along the last axis, whatever `dim` says. {This is right only if `dim` is the last axis, as in
        most examples.} Follow the argument `dim` through every line."""
        return exp / exp.sum(-1, keepdim=True)

    def never_divided_by_the_sum(exp, dim):
        """You do not divide the exponentials. (Dividing by the largest exponential does nothing: after the subtraction,
        this exponential is 1.) The exponentials are positive, but do not sum to one. By which number must you divide
        them to make them sum to one?"""
        return exp

    def divided_by_the_mean(exp, dim):
        """You divide the exponentials by their mean and not by their sum, so the weights sum to the length of the axis
        instead of to one. Divide by the sum: weights are shares of a whole."""
        return exp / exp.mean(dim, keepdim=True)

    def divided_by_the_norm(exp, dim):
        """You divide the exponentials by the root of the sum of their squares, as for a unit vector. Then the squares
        of the weights sum to one, but the weights sum to more than one. Weights are shares of a whole: what must they
        sum to?"""
        return exp / exp.norm(dim=dim, keepdim=True)

    def axis_of_the_sum_put_back_last(exp, dim):
        """The sum has lost the axis `dim`, and you put this axis back at the end, which is right only if `dim` is the
        last axis. Put the axis back where it was, or keep it."""
        return exp / exp.sum(dim).unsqueeze(-1)

    def one_more_in_the_sum(exp, dim):
        """You add 1 to the sum, so the weights sum to less than one. Some models do this on purpose, to let a query
        ignore all keys. Here the weights must sum to one."""
        return exp / (1 + exp.sum(dim, keepdim=True))

    def logarithm_of_the_sum(exp, dim):
        """You divide by the logarithm of the sum. The logarithm belongs to `log_softmax`, where it is subtracted from
        the scores. Exponentials are divided by the sum itself."""
        return exp / exp.sum(dim, keepdim=True).log()

    def divided_by_the_count(exp, dim):
        """You divide the exponentials by their count, not by their sum. The count is equal to the sum only if all
        exponentials are 1. The weights must sum to one."""
        return exp / exp.shape[dim]


@softmax.wrong(stage="divide", alone=True)
class DivideAlone:
    def sum_over_the_first_axis(exp, dim):
        """The sum runs along the first axis, whatever `dim` says. Follow the argument `dim` through every line."""
        return exp / exp.sum(0, keepdim=True)

    def running_sums(exp, dim):
        """You divide each exponential by the running sum up to it, as `cumsum` returns it: the first weight is always
        1. Divide all numbers along `dim` by the same sum."""
        return exp / exp.cumsum(dim)

    def multiplied_by_the_sum(exp, dim):
        """You multiply by the sum, but should divide by it. Weights are shares of a whole, so none is larger than 1."""
        return exp * exp.sum(dim, keepdim=True)

    def sum_divided_by_exponentials(exp, dim):
        """You divide the sum by the exponentials, so the smallest score gets the largest weight. A weight is a share of
        the sum: which of the two is the divisor?"""
        return exp.sum(dim, keepdim=True) / exp

    def sum_subtracted(exp, dim):
        """You subtract the sum from the exponentials, but should divide by it: no weight is positive. A division
        becomes a subtraction only for logarithms, but these numbers are exponentials."""
        return exp - exp.sum(dim, keepdim=True)

    def only_the_sum(exp, dim):
        """You return the sum of the exponentials, not the weights. You must still divide each exponential by this sum:
        the result has the shape of `x`."""
        return exp.sum(dim, keepdim=True)


@softmax.wrong
class Axis:
    def over_the_last_axis(x, dim):
        """Your softmax runs along the last axis, whatever `dim` says. This is right in most examples, but wrong as soon
        as a caller passes a different axis. Follow the argument `dim` through every line."""
        return x.softmax(-1)

    def over_the_first_axis(x, dim):
        """Your softmax runs along the first axis, whatever `dim` says. With a single axis this is right; with a batch
        in front, the weights of all sentences together sum to one. Follow the argument `dim` through every line."""
        return x.softmax(0)

    def over_axis_one(x, dim):
        """Your softmax runs along axis 1, whatever `dim` says. This is the last axis of a matrix, but not of a tensor
        with a batch axis in front. Follow the argument `dim` through every line."""
        return x.softmax(1)

    def over_the_axis_before(x, dim):
        """Your softmax runs along the axis before `dim`. Axes are counted from 0, and so is `dim`: it needs no
        correction."""
        return x.softmax(dim - 1) if dim > -x.ndim else x.softmax(-1)

    def over_all_numbers(x, dim):
        """Your softmax runs over all the numbers at once: all of them together sum to one, instead of each row along
        `dim`. `.max()` and `.sum()` without an axis have this effect. Follow the argument `dim` through every line."""
        return x.flatten().softmax(0).reshape(x.shape)

    def over_all_but_the_first_axis(x, dim):
        """Your loop runs along the first axis, and all the numbers of each part together sum to one, whatever `dim`
        says. Each row along `dim` must sum to one. Leave out the loop: `sum` has an argument for the axis."""
        return torch.stack([part.flatten().softmax(0).reshape(part.shape) for part in x])

    def sign_of_dim_lost(x, dim):
        """If `dim` is negative, you drop its sign: −1 becomes 1, which may be a different axis, or may not exist.
        PyTorch accepts a negative axis; to convert it yourself, add the number of axes."""
        return x.softmax(abs(dim))

    def axis_left_to_pytorch(x, dim):
        """You do not pass `dim` on, so `F.softmax` chooses an axis itself: axis 0 of a tensor with one or three axes,
        axis 1 of a tensor with two or four. Follow the argument through every line. Also, the task asks for `exp` and a
        sum."""
        return x.softmax(0 if x.ndim in (0, 1, 3) else 1)

    @family(axis_moved_last=(-1, "last", "to the end"), axis_moved_first=(0, "first", "to the front"))
    def axis_moved(position, x, dim):
        """{The weights are right, but} the axis `dim` is {} in your result: you move the axis {}, and never move it
        back. The result must have the shape of `x`. If you pass `dim` to the operations, no axis has to move."""
        return x.softmax(dim).movedim(dim, position)

    def axis_left_swapped(x, dim):
        """{The weights are right, but} two axes are swapped: you swap `dim` with the last axis, and never swap back.
        The result must have the shape of `x`. If you pass `dim` to the operations, no axis has to move."""
        return x.softmax(dim).transpose(dim, -1)


@softmax.wrong
class OtherFunctions:
    def divided_by_their_sum(x, dim):
        """You divide the scores by their sum, without `exp`. Scores can be positive or negative, so some weights are
        negative, and if the sum is near zero, the weights are huge. Which function turns every score into a positive
        number, and a larger score into a larger number?"""
        return x / x.sum(dim, keepdim=True)

    def logarithms(x, dim):
        """You return the logarithms of the weights: none is above zero. The cause is `log_softmax`, or a missing `exp`
        after `logsumexp`. A loss needs the logarithms, but a weighted mean needs the weights."""
        return x.log_softmax(dim)

    def softmax_taken_twice(x, dim):
        """You apply the softmax twice, to the scores and then to the weights. The weights {still sum to one, but} are
        nearly equal, because numbers between 0 and 1 differ only a little."""
        return x.softmax(dim).softmax(dim)

    def sigmoid_of_each_score(x, dim):
        """You turn each score into a weight separately, with a sigmoid. All weights are between 0 and 1, but they do
        not sum to one. In a softmax, the weights along `dim` are shares of one whole: the larger one weight is, the
        smaller the others are."""
        return x.sigmoid()

    def tanh_of_each_score(x, dim):
        """You squeeze each score separately between −1 and 1, with `tanh`. No row sums to one. In a softmax, the
        weights along `dim` are shares of one whole: the larger one weight is, the smaller the others are."""
        return x.tanh()

    def sigmoids_over_their_sum(x, dim):
        """You take the sigmoid of each score and divide by the sum. The weights sum to one, but their ratios are wrong,
        since a sigmoid never exceeds 1: the scores 0 and ln 3 must get the weights ¼ and ¾. Which function must replace
        the sigmoid?"""
        return x.sigmoid() / x.sigmoid().sum(dim, keepdim=True)

    def between_zero_and_one(x, dim):
        """You scale the scores to the range from 0 to 1: the smallest gets 0 and the largest 1. No row sums to one.
        Take the exponentials, which are positive, and divide by their sum."""
        low = x.amin(dim, keepdim=True)
        return (x - low) / (x.amax(dim, keepdim=True) - low)

    def negative_scores_set_to_zero(x, dim):
        """You set negative scores to 0, and divide the others by their sum, without `exp`. The weights sum to one if
        any score is positive, but they must depend only on the differences of the scores, not on their signs. Which
        function makes any number positive?"""
        return x.relu() / x.relu().sum(dim, keepdim=True)

    def one_hot_of_the_largest(x, dim):
        """The largest score gets 1 and all others 0: a hard choice, as with `argmax`. Softmax gives every score some
        weight, so all scores get a gradient. Compute by hand: what are the weights of the scores 0 and ln 3?"""
        return F.one_hot(x.argmax(dim), x.shape[dim]).movedim(-1, dim).to(x.dtype)

    def one_hot_with_the_axis_last(x, dim):
        """The largest score gets 1 and all others 0, and the axis `dim` is now the last axis, because `one_hot` puts it
        there. A softmax gives every score some weight, along `dim`. Compute by hand: what are the weights of the scores
        0 and ln 3?"""
        return F.one_hot(x.argmax(dim), x.shape[dim]).to(x.dtype)

    def places_of_the_largest(x, dim):
        """You return the index of the largest score of each row. A softmax gives every score a weight, so the result
        has the shape of `x`."""
        return x.argmax(dim)

    def weights_sorted(x, dim):
        """The weights {are right, but they} are sorted, the largest first. Each weight belongs to the score at the same
        place: do not sort."""
        return x.softmax(dim).sort(dim, descending=True).values

    def exponentials_and_their_sum(x, dim):
        """You return two tensors, the exponentials and their sum. Return one tensor: divide the exponentials by their
        sum."""
        exp = (x - x.amax(dim, keepdim=True)).exp()
        return exp, exp.sum(dim, keepdim=True)


@softmax.wrong
class NumeratorAndDenominator:
    def only_the_denominator_shifted(x, dim):
        """You subtract the maximum in the denominator (the sum), but not in the numerator. Numerator and denominator
        then have different exponentials: the weights do not sum to one, and `exp` still overflows. Use the same
        exponentials in both places."""
        return x.exp() / (x - x.amax(dim, keepdim=True)).exp().sum(dim, keepdim=True)

    def only_the_numerator_shifted(x, dim):
        """You subtract the maximum in the numerator, but not in the denominator (the sum). Numerator and denominator
        then have different exponentials: the weights do not sum to one, and `exp` still overflows. Use the same
        exponentials in both places."""
        return (x - x.amax(dim, keepdim=True)).exp() / x.exp().sum(dim, keepdim=True)

    def scores_over_the_sum(x, dim):
        """You divide the scores themselves by the sum of the exponentials, so some weights are negative. A weight is a
        share of the sum: divide the exponentials that you add up."""
        return x / x.exp().sum(dim, keepdim=True)

    def shifted_scores_over_the_sum(x, dim):
        """You divide the scores minus their maximum by the sum of the exponentials, so no weight is above zero. A
        weight is a share of the sum: divide the exponentials that you add up."""
        shifted = x - x.amax(dim, keepdim=True)
        return shifted / shifted.exp().sum(dim, keepdim=True)

    def divided_by_the_sum_of_the_scores(x, dim):
        """You divide the exponentials by the sum of the scores. Divide them by the sum of the exponentials: otherwise
        the weights do not sum to one."""
        return (x - x.amax(dim, keepdim=True)).exp() / x.sum(dim, keepdim=True)

    def unshifted_over_the_sum_of_the_scores(x, dim):
        """You divide the exponentials by the sum of the scores, and nothing keeps `exp` from overflowing. Divide them
        by the sum of the exponentials: otherwise the weights do not sum to one."""
        return x.exp() / x.sum(dim, keepdim=True)

    def largest_subtracted_after_exp(x, dim):
        """You subtract the maximum after the exponential. Subtract it before `exp`: there the subtraction changes no
        ratio of weights, and keeps `exp` from overflowing. After `exp` it changes all ratios."""
        exp = x.exp() - x.amax(dim, keepdim=True)
        return exp / exp.sum(dim, keepdim=True)

    def largest_exponential_subtracted(x, dim):
        """You subtract the largest exponential from all exponentials. Subtract the largest score before `exp` instead:
        there the subtraction changes no ratio of weights, and keeps `exp` from overflowing. After `exp` it changes all
        ratios."""
        exp = x.exp() - x.exp().amax(dim, keepdim=True)
        return exp / exp.sum(dim, keepdim=True)


@softmax.wrong
class OverflowAndDtype:
    def nan_replaced_by_zero(x, dim):
        """Nothing keeps `exp` from overflowing, and you replace the resulting NaN with 0. Large scores then get no
        weight at all, and the row does not sum to one. Which number may be subtracted from all the scores of a row?"""
        exp = x.exp()
        return (exp / exp.sum(dim, keepdim=True)).nan_to_num()

    def epsilon_added_instead_of_a_shift(x, dim):
        """Nothing keeps `exp` from overflowing. The small number in your sum prevents only 0/0: for scores far below
        zero all weights are 0, and large scores still give NaN. Which number may be subtracted from all the scores of a
        row?"""
        exp = x.exp()
        return exp / (exp.sum(dim, keepdim=True) + 1e-9)

    def float64_in_place_of_a_shift(x, dim):
        """Nothing is subtracted: you compute in float64, where `exp` overflows at 710 instead of 89. Scores of a
        thousand still give NaN. Which number may be subtracted from all the scores of a row?"""
        exp = x.double().exp()
        return (exp / exp.sum(dim, keepdim=True)).to(x.dtype)

    def logarithm_of_the_sum_by_hand(x, dim):
        """Subtracting the logarithm of the sum is a good approach, but the exponentials in this sum overflow, and where
        they do, the weights are 0. `logsumexp` shifts the scores first. Which number may be subtracted from all scores
        of a row?"""
        return (x - x.exp().sum(dim, keepdim=True).log()).exp()
