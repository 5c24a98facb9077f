"""The feature map, elu(x) + 1, and maps that are not quite it."""

import torch
from torch.nn import functional as F

from ..exercise import exercise, family


def positive(x):
    """Make the features: elu(x) + 1."""
    # The exponential of a large number overflows, also where `where` does not take it, and its gradient is NaN there.
    # At zero, where clamp's gradient is 1 or 0 by the version of PyTorch, the other side is taken.
    return torch.where(x < 0, x.clamp(max=0).exp(), x + 1)


# Wrong feature maps


def elu_alone(x):
    """Your features are elu(x), without the 1: they go down to −1. Negative features make negative weights, and a
    normalizer that can be zero, so that results fly far off. What does the formula add to `elu`?"""
    return F.elu(x)


def relu_alone(x):
    """Your features are max(x, 0): zero for every negative number. A key whose numbers are all negative is never seen,
    and a query of that kind gets 0/0, which is NaN. The features must be greater than zero everywhere: what does the
    formula say below zero?"""
    return F.relu(x)


def one_below_zero(x):
    """Your features are max(x, 0) + 1: right above zero, and 1 for every negative number, be it −0.1 or −100. Such
    numbers can then not be told apart, and no gradient flows through them. What does the formula say below zero?"""
    return F.relu(x) + 1


def exponential_everywhere(x):
    """Your features are exp(x) everywhere: right below zero only. Above it they grow far too fast: 20 becomes 485
    million instead of 21, and 100 overflows float32. Which of the two cases has the exponential?"""
    return x.exp()


def no_map(x):
    """You multiply the numbers as they are, with no feature map. Each query's weights may still sum to one, but they
    can be negative, and where their sum comes close to zero the result flies far off. Both queries and keys need
    features: did you compute them and then go on with the old name?"""
    return x


def _numbers(draw, batch=2, heads=3, seq=7, d_head=5):
    return (draw(batch, heads, seq, d_head),)


@exercise(
    inputs=_numbers,
    axes={"x": "batch heads seq d_head", "return": "batch heads seq d_head"},
    hints=(
        "The map has two cases. What does each case return at 2, at 0 and at −3? And which of the two formulas can be "
        "computed safely even for numbers that belong to the other case?",
        "`torch.where(condition, a, b)` computes both `a` and `b` everywhere and then selects one of them. exp(100) "
        "is infinite in float32: use `clamp` to limit the numbers that would overflow.",
        "`torch.where(x < 0, x.clamp(max=…).exp(), …)`",
    ),
)
def elu_feature_map(x):
    """Return elu(x) + 1: x + 1 above zero, exp(x) below. x: any shape. Returns the same shape."""
    return positive(x)


@elu_feature_map.equivalent
def pytorchs_elu(x):
    return F.elu(x) + 1


@elu_feature_map.right
class RightAnswers:
    def sum_of_both(x):
        return x.clamp(max=0).exp() + x.clamp(min=0)

    def by_relu(x):
        return F.relu(x) + torch.exp(-F.relu(-x))

    def the_larger(x):
        return torch.maximum(x + 1, x.clamp(max=0).exp())

    def by_assignment(x):
        features = torch.empty_like(x)
        is_positive = x > 0
        features[is_positive] = x[is_positive] + 1
        features[~is_positive] = x[~is_positive].exp()
        return features

    def by_minimum(x):
        zeros = torch.zeros_like(x)
        return torch.minimum(x, zeros).exp() + torch.maximum(x, zeros)


elu_feature_map.example("numbers around −5", lambda draw: (draw(2, 3) - 5,))
elu_feature_map.example("numbers in the hundreds of both signs", lambda draw: (300 * draw(3, 4),))
elu_feature_map.example("zeros", torch.zeros(2, 3))
elu_feature_map.example("one number without axes", lambda draw: (draw() - 2,))


@elu_feature_map.property
def all_positive(function, x):
    """All features are greater than zero."""
    return bool((function(x) > 0).all())


@elu_feature_map.property
def rising(function, x):
    """A larger number has a larger feature."""
    return bool((function(x + 0.1) > function(x)).all())


def _has_another_alpha(probe, got, expected):
    """Whether numbers below zero came out as alpha · (exp(x) − 1) + 1 with one alpha, and all others are right."""
    (x,), mine, right = probe.arguments, got.value, expected.value
    if not isinstance(mine, torch.Tensor) or (mine.shape, mine.dtype) != (right.shape, right.dtype):
        return False
    below = x < -0.01  # closer to zero the difference has too few digits
    alphas = (mine[below] - 1) / torch.expm1(x[below])
    others = torch.allclose(mine[x >= 0], right[x >= 0], 1e-4)
    return others and bool(below.any()) and torch.allclose(alphas, alphas[:1].expand_as(alphas), 1e-3, 1e-3)


for _mistake in (elu_alone, relu_alone, one_below_zero, exponential_everywhere):
    elu_feature_map.mistake(_mistake)


@elu_feature_map.wrong
class WrongAnswers:
    def cases_exchanged(x):
        """The two cases have changed places: you take the exponential above zero and x + 1 below. Numbers below −1 get
        negative features, and the features of those above zero grow far too fast. Which value does your `where` take
        where its condition holds?"""
        return torch.where(x > 0, x.exp(), x + 1)

    def jump_at_zero(x):
        """Above zero your features are x itself, without the 1. The two cases then do not meet: the feature of −0.01 is
        0.99, and that of 0.01 is 0.01. What must the upper case give at zero for the two to meet?"""
        return torch.where(x > 0, x, x.clamp(max=0).exp())

    def one_added_below_too(x):
        """Below zero your features are exp(x) + 1, one too many: they go down to 1 instead of 0. `elu` is exp(x) − 1
        there, and its 1 and the 1 that is added cancel. What do you get at −1? It should be 0.37."""
        return torch.where(x > 0, x + 1, x.clamp(max=0).exp() + 1)

    def elu_below_only(x):
        """Below zero your features are exp(x) − 1, which is negative: the 1 is added above zero only. Where x is below
        zero, `elu` is exp(x) − 1; what is that plus 1?"""
        return torch.where(x > 0, x + 1, x.clamp(max=0).exp() - 1)

    def zero_below(x):
        """Below zero your features are zero{, and above it they are right}: that is where exp(x) should stand. A key
        whose numbers are all negative would never be seen, and a query of that kind would get 0/0. Was a case
        multiplied away by its condition?"""
        return torch.where(x > 0, x + 1, 0.0)

    def magnitudes(x):
        """Your features are |x| + 1: right above zero, and growing again below it, where they should fall towards zero.
        A key and its opposite would then look the same. What does the formula say below zero?"""
        return x.abs() + 1

    def both_cases_at_zero(x):
        """At zero your feature is 2: both cases hold there, `<=` and `>=`, and you add what they give. Padding and
        fresh tensors are full of zeros. To which one of the cases does zero belong?"""
        return (x <= 0) * x.clamp(max=0).exp() + (x >= 0) * (x + 1)

    def neither_case_at_zero(x):
        """At zero your feature is 0: neither case holds there, `<` and `>`, and nothing is left. Padding and fresh
        tensors are full of zeros. To which one of the cases does zero belong?"""
        return (x < 0) * x.clamp(max=0).exp() + (x > 0) * (x + 1)

    def cases_exchanged_and_cut_off(x):
        """The two cases have changed places: above zero all your features are 1, which is exp(x) cut off at zero, and
        below it they are x + 1, which is negative from −1 down. Which value does your `where` take where its condition
        holds?"""
        return x.clamp(max=0) + 1

    def straight_line(x):
        """Your features are x + 1 below zero too, where exp(x) should stand: from −1 down they are negative. Is the
        exponential missing, or did one case win for the whole tensor, as happens with `any()`? Each number has a case
        of its own."""
        return x + 1

    def cut_off_at_zero(x):
        """Your features are x + 1, and where that is negative, zero. From −1 down all numbers look the same, and a key
        of such numbers is never seen; between −1 and 0 they are too small. The features must be greater than zero
        everywhere: what does the formula say below zero?"""
        return F.relu(x + 1)

    def one_above_zero(x):
        """Above zero all your features are 1{, and below it they are right}: you have cut off the numbers at zero, and
        then used what was left for both cases. 2 and 200 look the same then. Which of the two cases needs the cut, and
        which needs x as it came?"""
        return x.clamp(max=0).exp()

    def exponential_not_cut_off(x):
        """Above zero your features have an exponential too many{, and below it they are right}: you add max(x, 0) and
        exp(x), and exp(x) goes on growing. If the two are added, the exponential must stop at 1. Where must x be cut
        off for that?"""
        return x.exp() + F.relu(x)

    def sign_turned_below(x):
        """Below zero you take exp(−x), which grows: −5 gets 148, where it should get 0.007. x is negative there
        already, so that exp(x) falls towards zero by itself. Which sign is one too many?"""
        return torch.where(x > 0, x + 1, (-x.clamp(max=0)).exp())

    def added_before_elu(x):
        """You add the 1 before `elu`, not after: elu(x + 1). Above zero that is the same, and below −1 it is negative.
        Where do the brackets close in elu(x) + 1?"""
        return F.elu(x + 1)

    def one_too_many(x):
        """All your features are too large by 1: zero gets 2, and what is far below zero gets 1. The two cases x + 1 and
        exp(x) are elu(x) + 1 already. Where is 1 added a second time?"""
        return positive(x) + 1

    def softplus_and_one(x):
        """Your features are log(1 + exp(x)) + 1: the softplus, another map that looks much like it, plus 1. It never
        falls below 1, and gives 1.69 at 0 instead of 1. What does `elu(x) + 1` give at 0?"""
        return F.softplus(x) + 1

    def one_question_to_all_numbers(x):
        """You ask the whole tensor with one `if`, and it raises: `x > 0` is a bool for each number, and `if` needs a
        single one. Each number has a case of its own, so the choice must be made element by element. Which function
        does that in one call?"""
        if x > 0:
            return x + 1
        return x.exp()

    def softmax_of_features(x):
        """You take the softmax over the features of each token. That makes them positive, and ties them to one another:
        they sum to one. The map of this chapter acts element by element; what does it make of a single number?"""
        return x.softmax(-1)

    def exponential_of_what_is_not_taken(x):
        """{The features are right, but} the gradient is NaN for numbers in the hundreds. exp(300) is infinite, and it
        is computed even where its result is not chosen: `backward` multiplies that infinity by 0. What smaller number
        can the exponential get wherever its result is not used?"""
        return torch.where(x > 0, x + 1, x.exp())

    def infinity_times_zero(x):
        """You compute both cases for every number and multiply each by its condition. For a number in the hundreds
        exp(x) is infinite, and infinity times zero is NaN, not zero. How can the exponential be kept from seeing what
        is not meant for it?"""
        return (x > 0) * (x + 1) + (x <= 0) * x.exp()

    def second_case_on_top_of_the_first(x):
        """You write the lower case into x first, and ask afterwards which numbers are above zero. By then all are:
        exp(x) is positive, so they get the other case as well. x itself is changed, too. Ask for both cases before you
        write, and write into a new tensor."""
        x[x <= 0] = x[x <= 0].exp()
        x[x > 0] += 1
        return x

    def written_into_float32(x):
        """A tensor made by `torch.zeros` or `torch.empty` without a dtype is of float32, and refuses numbers of float64
        that are written into it by an index. `zeros_like` and `empty_like` take shape and dtype of the tensor that they
        are given."""
        features, is_positive = torch.zeros(x.shape, device=x.device), x > 0
        features[is_positive] = x[is_positive] + 1
        features[~is_positive] = x[~is_positive].exp()
        return features

    def cases_exchanged_without_the_one(x):
        """The two cases have changed places, and the 1 is missing: above zero you take exp(x) − 1, and below it x
        itself. Negative numbers have negative features then. Which value does your `where` take where its condition
        holds, and what does the formula add?"""
        return torch.where(x > 0, x.exp() - 1, x)

    def cases_exchanged_and_x_itself(x):
        """The two cases have changed places, and the 1 is missing from x + 1: above zero you take exp(x), and below it
        x itself, which is negative. Which value does your `where` take where its condition holds, and what does the
        formula add to x?"""
        return torch.where(x > 0, x.exp(), x)

    @family(**{f"cut_off_above_{limit}": limit for limit in (10, 20, 30, 50, 80, 88, 100)})
    def cut_off_above(limit, x):
        """All numbers beyond a certain limit get the same feature: they are cut off in both cases. Only the exponential
        can overflow, and x + 1 needs x as it came. To which of the two cases does the `clamp` belong?"""
        return positive(x.clamp(max=limit))

    @family(selu_and_one=F.selu, gelu_and_one=F.gelu, silu_and_one=F.silu, leaky_relu_and_one=F.leaky_relu)
    def another_and_one(activation, x):
        """You add 1 to an activation other than `elu`: several have similar names. Compare with the formula at −1,
        where it gives exp(−1), which is 0.37, and at 2, where it gives 3."""
        return activation(x) + 1


@elu_feature_map.mistake
def softplus(x):
    """Your features are log(1 + exp(x)). They are positive and grow as they should, but it is another map: at 0 it
    gives 0.69 and not 1, and at 2 it gives 2.13 and not 3. What does `elu(x) + 1` give at 0?"""
    return F.softplus(x)


@elu_feature_map.mistake(sign=_has_another_alpha)
def another_alpha(x):
    """Below zero your features are α · (exp(x) − 1) + 1, with an α that is not 1{; above zero they are right}. `elu`
    has that number as an argument, and SELU has another than 1 built in. With a larger α features become negative, with
    a smaller one they stay away from 0. Which number stands before the exponential in the formula?"""
    return F.elu(x, alpha=0.5) + 1
