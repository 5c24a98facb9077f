"""The feature map, elu(x) + 1, and wrong versions of it."""

import torch
from torch.nn import functional as F

from ..exercise import exercise, family


def feature_map(x):
    """Compute the features: elu(x) + 1."""
    # The exponential of a large number overflows, and its gradient is NaN even where `where` does not select it. At
    # zero, clamp's gradient is 1 or 0, depending on the version of PyTorch, so `where` selects x + 1 there.
    return torch.where(x < 0, x.clamp(max=0).exp(), x + 1)


# Wrong feature maps


def elu_alone(x):
    """Your features are elu(x), without the 1: they go down to −1. Negative features can make weights negative and the
    normalizer zero, so that results become huge. What does the formula add to `elu`?"""
    return F.elu(x)


def relu_alone(x):
    """Your features are max(x, 0): zero for every negative number. A key whose numbers are all negative is never seen,
    and a query whose numbers are all negative gets 0/0, which is NaN. The features must be greater than zero
    everywhere: what does the formula say below zero?"""
    return F.relu(x)


def one_below_zero(x):
    """Your features are max(x, 0) + 1: correct above zero, but 1 for every negative number, whether −0.1 or −100.
    Negative numbers then all look the same, and get no gradient. What does the formula say below zero?"""
    return F.relu(x) + 1


def exponential_everywhere(x):
    """Your features are exp(x) everywhere, which is right only below zero. Above zero they grow far too fast: 20
    becomes 485 million instead of 21, and 100 overflows float32. In which of the two cases does the exponential
    belong?"""
    return x.exp()


def no_map(x):
    """You multiply queries and keys as they are, without a feature map. Each query's weights may still sum to one, but
    they can be negative, and where their sum is close to zero the result is huge. Both queries and keys need features:
    did you compute the features and then use the old name?"""
    return x


def _random_numbers(draw, batch=2, heads=3, seq=7, d_head=5):
    return (draw(batch, heads, seq, d_head),)


@exercise(
    inputs=_random_numbers,
    axes={"x": "batch heads seq d_head", "return": "batch heads seq d_head"},
    hints=(
        "The map has two cases. What does each case return for 2, 0 and −3? Which of the two formulas can you "
        "compute safely even for a number of the other case?",
        "`torch.where(condition, a, b)` computes both sides everywhere and then selects one. exp(100) is infinite in "
        "float32: use `clamp` to cut off what would overflow.",
        "`torch.where(x < 0, x.clamp(max=…).exp(), …)`",
    ),
)
def elu_feature_map(x):
    """Return elu(x) + 1: x + 1 above zero, exp(x) below. x: any shape. Returns the same shape."""
    return feature_map(x)


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
    """Whether the results below zero are alpha · (exp(x) − 1) + 1 with one alpha, and all other results are right."""
    (x,), got_value, expected_value = probe.arguments, got.value, expected.value
    if not isinstance(got_value, torch.Tensor):
        return False
    if (got_value.shape, got_value.dtype) != (expected_value.shape, expected_value.dtype):
        return False
    is_below_zero = x < -0.01  # closer to zero the difference has too few digits
    alphas = (got_value[is_below_zero] - 1) / torch.expm1(x[is_below_zero])
    is_right_above_zero = torch.allclose(got_value[x >= 0], expected_value[x >= 0], 1e-4)
    return (
        is_right_above_zero
        and bool(is_below_zero.any())
        and torch.allclose(alphas, alphas[:1].expand_as(alphas), 1e-3, 1e-3)
    )


for _mistake in (elu_alone, relu_alone, one_below_zero, exponential_everywhere):
    elu_feature_map.mistake(_mistake)


@elu_feature_map.wrong
class WrongAnswers:
    def cases_exchanged(x):
        """You have exchanged the two cases: you take the exponential above zero and x + 1 below. Numbers below −1 get
        negative features, and the features of those above zero grow far too fast. Which value does your `where` return
        where its condition holds?"""
        return torch.where(x > 0, x.exp(), x + 1)

    def jump_at_zero(x):
        """Above zero your features are x itself, without the 1. So the map jumps at zero: the feature of −0.01 is 0.99,
        but that of 0.01 is 0.01. What must the case above zero return at zero so that the two cases agree?"""
        return torch.where(x > 0, x, x.clamp(max=0).exp())

    def one_added_below_too(x):
        """Below zero your features are exp(x) + 1, which is too large by 1: they go down to 1 instead of 0. `elu` is
        exp(x) − 1 there, so its −1 and the 1 that is added cancel. What do you get at −1? The feature should be
        0.37."""
        return torch.where(x > 0, x + 1, x.clamp(max=0).exp() + 1)

    def elu_below_only(x):
        """Below zero your features are exp(x) − 1, which is negative: you add the 1 only above zero. Where x is below
        zero, `elu` is exp(x) − 1; what is exp(x) − 1 plus 1?"""
        return torch.where(x > 0, x + 1, x.clamp(max=0).exp() - 1)

    def zero_below(x):
        """Below zero your features are zero, but should be exp(x){; above zero they are right}. A key whose numbers are
        all negative would never be seen, and a query whose numbers are all negative would get 0/0. Did a condition
        remove the case below zero?"""
        return torch.where(x > 0, x + 1, 0.0)

    def magnitudes(x):
        """Your features are |x| + 1: correct above zero, but below zero they grow again instead of falling towards
        zero. A key and its negative would then look the same. What does the formula say below zero?"""
        return x.abs() + 1

    def both_cases_at_zero(x):
        """At zero your feature is 2: both conditions, `<=` and `>=`, hold at zero, and you add the two cases. Padding
        and newly created tensors are full of zeros. To which of the two cases does zero belong?"""
        return (x <= 0) * x.clamp(max=0).exp() + (x >= 0) * (x + 1)

    def neither_case_at_zero(x):
        """At zero your feature is 0: neither condition, `<` nor `>`, holds at zero, so you add nothing. Padding and
        newly created tensors are full of zeros. To which of the two cases does zero belong?"""
        return (x < 0) * x.clamp(max=0).exp() + (x > 0) * (x + 1)

    def cases_exchanged_and_cut_off(x):
        """You have exchanged the two cases: above zero all your features are 1, which is exp(x) with x cut off at zero,
        and below zero they are x + 1, which is negative below −1. Which value does your `where` return where its
        condition holds?"""
        return x.clamp(max=0) + 1

    def straight_line(x):
        """Your features are x + 1 below zero too, where they should be exp(x): below −1 they are negative. Is the
        exponential missing, or do you choose one case for the whole tensor, as with `any()`? Each number needs its own
        case."""
        return x + 1

    def cut_off_at_zero(x):
        """Your features are x + 1, or zero where x + 1 is negative. Below −1 all numbers look the same, and a key of
        such numbers is never seen; between −1 and 0 the features are too small. The features must be greater than zero
        everywhere: what does the formula say below zero?"""
        return F.relu(x + 1)

    def one_above_zero(x):
        """Above zero all your features are 1{, but below zero they are right}: you have cut off the numbers at zero,
        and then used the result for both cases. So 2 and 200 look the same. Which of the two cases needs numbers that
        are cut off, and which needs x itself?"""
        return x.clamp(max=0).exp()

    def exponential_not_cut_off(x):
        """Above zero your features grow far too fast{, but below zero they are right}: you add max(x, 0) and exp(x),
        and exp(x) keeps growing. In this sum the exponential must stop at 1. Where must you cut off x for that?"""
        return x.exp() + F.relu(x)

    def sign_reversed_below_zero(x):
        """Below zero you compute exp(−x), which grows: −5 becomes 148, but should become 0.007. x is already negative
        there, so exp(x) falls towards zero without a minus sign. Which minus sign is one too many?"""
        return torch.where(x > 0, x + 1, (-x.clamp(max=0)).exp())

    def added_before_elu(x):
        """You add the 1 before `elu`, not after: elu(x + 1). Above zero your features are right, but below −1 they are
        negative. Where does the bracket close in elu(x) + 1?"""
        return F.elu(x + 1)

    def one_too_many(x):
        """All your features are too large by 1: that of zero is 2, and that of a number far below zero is 1. The two
        cases x + 1 and exp(x) already include the 1 of elu(x) + 1. Where do you add 1 again?"""
        return feature_map(x) + 1

    def softplus_and_one(x):
        """Your features are log(1 + exp(x)) + 1: the softplus, a different map that looks similar, plus 1. They never
        fall below 1, and the feature of 0 is 1.69 instead of 1. What is `elu(x) + 1` at 0?"""
        return F.softplus(x) + 1

    def one_question_to_all_numbers(x):
        """You test the whole tensor with one `if`, which raises an error: `x > 0` is a bool for each number, but `if`
        needs a single bool. Each number has its own case, so you must choose element by element. Which function chooses
        for all elements in one call?"""
        if x > 0:
            return x + 1
        return x.exp()

    def softmax_of_features(x):
        """You apply a softmax over the features of each token. A softmax makes the features positive, but also
        dependent on one another: they sum to one. The map of this chapter acts element by element; what does it return
        for a single number?"""
        return x.softmax(-1)

    def exponential_of_what_is_not_taken(x):
        """{The features are right, but} the gradient is NaN for numbers in the hundreds. exp(300) is infinite, and you
        compute it even where you do not select its result: `backward` multiplies that infinity by 0. Which smaller
        number can you pass to the exponential wherever its result is not used?"""
        return torch.where(x > 0, x + 1, x.exp())

    def infinity_times_zero(x):
        """You compute both cases for every number and multiply each case by its condition. For a number in the hundreds
        exp(x) is infinite, and infinity times zero is NaN, not zero. How can you keep large numbers out of the
        exponential?"""
        return (x > 0) * (x + 1) + (x <= 0) * x.exp()

    def second_case_on_top_of_the_first(x):
        """You first write the case below zero into x, and then test which numbers are above zero. By then all numbers
        are above zero, since exp(x) is positive, so the case above zero adds 1 to every number. You also change x
        itself. Compute both conditions before you write, and write into a new tensor."""
        x[x <= 0] = x[x <= 0].exp()
        x[x > 0] += 1
        return x

    def written_into_float32(x):
        """A tensor created by `torch.zeros` or `torch.empty` without a dtype has the dtype float32, and PyTorch raises
        an error when you write float64 numbers into it by an index. `zeros_like` and `empty_like` copy the shape and
        the dtype of their argument."""
        features, is_positive = torch.zeros(x.shape, device=x.device), x > 0
        features[is_positive] = x[is_positive] + 1
        features[~is_positive] = x[~is_positive].exp()
        return features

    def cases_exchanged_without_the_one(x):
        """You have exchanged the two cases, and the 1 is missing: you take exp(x) − 1 above zero, and x itself below.
        So negative numbers have negative features. Which value does your `where` return where its condition holds, and
        what does the formula add?"""
        return torch.where(x > 0, x.exp() - 1, x)

    def cases_exchanged_and_x_itself(x):
        """You have exchanged the two cases, and the 1 of x + 1 is missing: you take exp(x) above zero, and x itself
        below, which is negative. Which value does your `where` return where its condition holds, and what does the
        formula add to x?"""
        return torch.where(x > 0, x.exp(), x)

    @family(**{f"cut_off_above_{limit}": limit for limit in (10, 20, 30, 50, 80, 88, 100)})
    def cut_off_above(limit, x):
        """All numbers above a certain limit get the same feature: you cut them off in both cases. Only the exponential
        can overflow; x + 1 needs x itself. To which of the two cases does the `clamp` belong?"""
        return feature_map(x.clamp(max=limit))

    @family(selu_and_one=F.selu, gelu_and_one=F.gelu, silu_and_one=F.silu, leaky_relu_and_one=F.leaky_relu)
    def another_and_one(activation, x):
        """You add 1 to an activation other than `elu`: several activations have similar names. Compare your map with
        the formula at two points: at −1 the formula gives exp(−1) = 0.37, and at 2 it gives 3."""
        return activation(x) + 1


@elu_feature_map.mistake
def softplus(x):
    """Your features are log(1 + exp(x)). They are positive and grow as they should, but this is a different map: at 0
    its feature is 0.69 instead of 1, and at 2 it is 2.13 instead of 3. What is `elu(x) + 1` at 0?"""
    return F.softplus(x)


@elu_feature_map.mistake(recognizes=_has_another_alpha)
def another_alpha(x):
    """Below zero your features are α · (exp(x) − 1) + 1, with an α that is not 1{, but above zero they are right}.
    `elu` has α as an argument, and SELU uses a fixed α other than 1. With an α above 1, features become negative; with
    an α below 1, they stay away from 0. Which number multiplies the exponential in the formula?"""
    return F.elu(x, alpha=0.5) + 1
