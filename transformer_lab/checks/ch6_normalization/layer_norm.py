"""Layer norm."""

import math

import torch
from torch.nn import functional as F

from ..common_mistakes import cut_off, left_in_float32
from ..exercise import exercise, family


def norm_inputs(draw, batch=2, seq=7, d_model=5):
    x = 3 + 8 * draw(batch, seq, d_model)
    return x, draw(d_model), draw(d_model), 0.1  # a large eps, so that its place in the formula changes the result


def mean_of_token(x):
    """Take the mean of each token's features."""
    return x.mean(dim=-1, keepdim=True)


def biased_variance(x):
    """Take the mean squared distance from the mean, without Bessel's correction."""
    return x.var(dim=-1, correction=0, keepdim=True)


def divide_by_root(numbers, mean_square, eps):
    """Divide by the root of the mean of squares, with eps added under the root."""
    return numbers / (mean_square + eps).sqrt()


def scale_and_shift(normalized, weight, bias):
    """Multiply by `weight` and add `bias`."""
    return normalized * weight + bias


@exercise(
    inputs=norm_inputs,
    axes={"x": "batch seq d_model", "weight": "d_model", "bias": "d_model", "return": "batch seq d_model"},
    hints=(
        "Write 1, 7, 9, 15 on paper and normalize the four numbers by hand. Which numbers share a mean, and which "
        "shape must the mean have so that you can subtract it from `x`?",
        "Only the numbers along the last axis share a mean and a variance; `keepdim=True` keeps this axis, with size "
        "1. The variance is the mean of the squared distances: divide by the number of features, not by this number "
        "minus 1. Add eps to the variance before you take the root.",
        "`mean = x.mean(…)`, `variance = (… - …).square().mean(…)`, `return (…) / (… + eps).sqrt() * … + …`",
    ),
)
def layer_norm(
    x,
    weight,
    bias,
    eps,
    *,
    mean=mean_of_token,
    variance=biased_variance,
    normalized=divide_by_root,
    output=scale_and_shift,
):
    """Standardize every token over its own features, then scale and shift it. The result has the shape of ``x``,
    (batch, seq, d_model)."""
    distance = x - mean(x)
    return output(normalized(distance, variance(x), eps), weight, bias)


@layer_norm.probe(plain=True)
def equal_features(draw):
    """a token whose features are all equal"""
    x, *others = norm_inputs(draw, seq=3)
    x[1, 2] = 2.0
    return x, *others


@layer_norm.probe
def near_1100(draw):
    """features near 1100"""
    # Every square is rounded up, and the sums of the squares are exact. So mean(x²) − mean(x)² has the same error in
    # whatever order the squares are added.
    rows = [[1109.5625, 1106.4375, 1097.5625, 1098.4375], [1090.4375, 1098.4375, 1101.5625, 1093.5625]]
    return torch.tensor([rows]), draw(4), draw(4), 0.1


layer_norm.example("one feature in each token", lambda draw: (draw(2, 7, 1), draw(1), draw(1), 0.1))


@layer_norm.probe(plain=True)
def variance_below_eps(draw):
    """tokens whose variance is below eps"""
    means = torch.tensor([0.0, 3.0])[:, None, None]
    return means + 0.28 * F.layer_norm(draw(2, 4, 6), (6,)), draw(6), draw(6), 0.1


@layer_norm.right
class RightAnswers:
    def by_pytorch(x, weight, bias, eps):
        return F.layer_norm(x, weight.shape, weight, bias, eps)

    def token_by_token(x, weight, bias, eps):
        rows = [
            (token - token.mean()) / ((token - token.mean()).pow(2).sum() / len(token) + eps) ** 0.5
            for token in x.flatten(0, 1)
        ]
        return torch.stack(rows).view(x.shape) * weight + bias

    def by_var_mean(x, weight, bias, eps):
        variance, mean = torch.var_mean(x, dim=2, unbiased=False)
        return torch.addcmul(bias, (x - mean.unsqueeze(2)) * torch.rsqrt(variance.unsqueeze(2) + eps), weight)

    def by_matrices(x, weight, bias, eps):
        d_model = x.shape[-1]
        centring = torch.eye(d_model, dtype=x.dtype, device=x.device) - 1 / d_model  # removes the mean
        distance = torch.einsum("bsd,de->bse", x, centring)
        variance = torch.einsum("bse,bse->bs", distance, distance) / d_model
        return distance / (variance[..., None] + eps).sqrt() @ torch.diag(weight) + bias


@layer_norm.property
def mean_zero(function, x, weight, bias, eps):
    """With weight 1 and bias 0, the features of every token have a mean of 0."""
    y = function(x, torch.ones_like(weight), torch.zeros_like(bias), eps)
    return bool(y.mean(dim=-1).abs().max() < 1e-4)


@layer_norm.property
def each_token_on_its_own(function, x, weight, bias, eps):
    """A change in one token changes only the result of that token."""
    changed = x.clone()
    changed[0, -1] *= 10
    return bool(torch.allclose(function(changed, weight, bias, eps)[0, 0], function(x, weight, bias, eps)[0, 0]))


def keeps_digits(function, x, *others):
    """In float64, a change in the tenth digit of `x` changes the result. A step in float32 loses this change."""
    x, *others = (item.double() if isinstance(item, torch.Tensor) else item for item in (x, *others))
    nearby = x + 1e-9 * torch.linspace(1, 2, x.numel(), dtype=x.dtype, device=x.device).view(x.shape)
    return not torch.equal(function(x, *others), function(nearby, *others))


layer_norm.property(keeps_digits)


def _normalize_over(x, weight, bias, eps, dims, correction=0):
    distance = x - x.mean(dims, keepdim=True)
    count = torch.ones_like(x).sum(dims, keepdim=True) - correction
    variance = distance.square().sum(dims, keepdim=True) / count
    return distance / (variance + eps).sqrt() * weight + bias


def fixed_eps_mistakes(norm):
    """Return the mistakes in which a norm does not use its `eps`."""

    @family(eps_always_1e_5=1e-5, eps_always_1e_6=1e-6)
    def eps_always(eps, x, *parameters):
        """Your result does not depend on the argument `eps`: you seem to use a fixed number or a default instead.
        Models use different values (0.00001 for PyTorch's layer norm, 0.000000000001 for BERT), and the weights of a
        model need that model's eps. The check's eps is large, to make the difference visible."""
        return norm.reference(x, *parameters[:-1], eps)

    return eps_always


@layer_norm.wrong(stage="mean")
class Mean:
    def mean_kept(x):
        """You divide by the right number, but without subtracting the mean first: with weight 1 and bias 0, the
        resulting tokens have a mean that is not 0. Adding 5 to `x` must not change the result at all. Which tensor do
        you divide?"""
        return torch.zeros_like(x[..., :1])


@layer_norm.wrong(stage="variance")
class Variance:
    def squares_about_zero(x):
        """You take the root of the mean of the squares of `x`, not of the mean of the squared distances from the mean.
        These two means are equal only for a token whose mean is 0. For 1, 7, 9, 15 the mean of the squares is 89
        instead of 25. What do you square?"""
        return x.square().mean(dim=-1, keepdim=True)

    def mean_of_squares_less_square_of_mean(x):
        """Your variance loses digits where the mean is large, probably because you compute the mean of the squares
        minus the square of the mean. Near 1,100, the squares are near 1,210,000, where neighbouring float32 numbers are
        an eighth apart: a variance of 18.44, as in the check's second token, comes out as 18.5. Near 16,384, a variance
        of 2.5 comes out as 0. In exact arithmetic the two formulas are equal. Which do you do first, square or
        subtract?"""
        return (x.square().mean(dim=-1, keepdim=True) - x.mean(dim=-1, keepdim=True).square()).clamp(min=0)

    def summed(x):
        """You sum the squared distances, but do not divide the sum by their number. The divisor then grows with the
        number of features: before weight and bias are applied, every token has a norm of 1 instead of about √d_model.
        The variance is a mean."""
        return (x - x.mean(dim=-1, keepdim=True)).square().sum(dim=-1, keepdim=True)

    def root_twice(x):
        """You take the root of the standard deviation, which is already a root. For 1, 7, 9, 15 you divide by √5 ≈
        2.24 instead of 5. Note 004 makes the same mistake: its σ is already the standard deviation, but it divides by
        √σ. Do you add eps to the variance, or to its root?"""
        return x.std(dim=-1, correction=0, keepdim=True)

    def unbiased_root_twice(x):
        """You take the root of the standard deviation, which is already a root, and you use the unbiased standard
        deviation, the default of `std()`. For 1, 7, 9, 15 you divide by about 2.4 instead of 5. Do you add eps to the
        variance, or to its root?"""
        return Variance.unbiased(x).sqrt()

    def unbiased(x):
        """Your variance divides by `d_model - 1` instead of `d_model`. This is the unbiased variance, the default of
        `var` and `std`: it estimates the variance of a larger set from a sample, but a norm needs the variance of
        exactly these numbers. With 4 features, the normalized numbers are too small by 13 per cent, but with 512
        features only by a thousandth, so the mistake is hard to see with many features."""
        return Variance.summed(x) / (x.shape[-1] - 1)


@layer_norm.wrong(stage="normalized")
class Normalized:
    def not_divided(numbers, mean_square, eps):
        """You subtract the mean, but do not divide: a token three times as large comes out three times as large. What
        does the formula do with the standard deviation?"""
        return numbers


@layer_norm.wrong(stage="normalized")
class RootAndEps:
    """Mistakes that are also possible in RMS norm."""

    def eps_outside(numbers, mean_square, eps):
        """You add eps after the root. This also prevents 0/0, but changes the result where the mean under the root is
        small. Where that mean is 0, the divisor is 0.003 if an eps of 0.00001 is added under the root, but 0.00001 if
        it is added after the root. Which comes first in the formula, eps or the root? The check's eps is large, to make
        the difference visible."""
        return numbers / (mean_square.sqrt() + eps)

    def no_root(numbers, mean_square, eps):
        """You divide by a mean of squares without taking its root. If a token becomes three times as large, its mean of
        squares becomes nine times as large, and the root of this mean three times as large. So with the root, the
        result stays the same; without the root, it becomes a third as large. A mean of squares close to 1 hides the
        mistake."""
        return numbers / (mean_square + eps)

    def no_eps(numbers, mean_square, eps):
        """Your result does not depend on `eps`. Where the mean under the root is 0, you compute 0/0, which is NaN: in
        layer norm for a token with equal features, in RMS norm for a token of zeros. The next attention layer spreads
        the NaN over the whole sentence. What does the formula add under the root?"""
        return numbers / mean_square.sqrt()

    def eps_as_floor(numbers, mean_square, eps):
        """You use eps as a lower limit: you take the root of eps or of the mean of squares, whichever is larger. The
        formula always adds eps, which changes every result a little. Weights trained with one formula do not quite fit
        the other."""
        return numbers / mean_square.clamp(min=eps).sqrt()

    def multiplied_by_the_root(numbers, mean_square, eps):
        """You multiply by the root, but should divide by it: large numbers become even larger. `sqrt` is the root, and
        `rsqrt` is the reciprocal of the root. Which of the two belongs after a `*`?"""
        return numbers * (mean_square + eps).sqrt()

    def root_of_the_root(numbers, mean_square, eps):
        """You take the root twice, with `eps` under both roots: the divisor is a fourth root. This happens if one root
        is part of your standard deviation and another is in the division. Which of the two roots must you remove?"""
        return numbers / (mean_square + eps).sqrt().sqrt()

    def square_for_root(numbers, mean_square, eps):
        """You square instead of taking a root: you divide by the square of a mean of squares. `** 2` and `** 0.5` are
        easily confused, even in published code. If a token becomes three times as large, its result becomes 1/27 as
        large. Which power is a root?"""
        return numbers / (mean_square + eps) ** 2

    def eps_added_to_the_result(numbers, mean_square, eps):
        """You add `eps` to the quotient, not to the divisor. `x / root + eps` is `(x / root) + eps`, since `/` comes
        before `+`. Where the mean under the root is 0, you still compute 0/0. Where do the parentheses belong?"""
        return numbers / mean_square.sqrt() + eps


@layer_norm.wrong(stage="output")
class Output:
    @family(
        no_weight=(lambda normalized, weight, bias: normalized + bias, "`weight`", "1", "a different factor"),
        no_bias=(lambda normalized, weight, bias: normalized * weight, "`bias`", "0", "a shift"),
    )
    def one_not_used(other, normalized, weight, bias):
        """Your result does not depend on {}. In a new layer this parameter is {} everywhere, so nobody would notice the
        mistake; a trained layer has learned {} for each feature. What comes after the division?"""
        return other(normalized, weight, bias)

    def neither_weight_nor_bias(normalized, weight, bias):
        """You only standardize the tokens: the result depends neither on `weight` nor on `bias`. In a new layer they
        are 1 and 0, so nobody would notice the mistake. The learned factor and shift of each feature come last."""
        return normalized

    def weight_and_bias_swapped(normalized, weight, bias):
        """You have swapped `weight` and `bias`: you multiply by the bias and add the weight. Both have the shape
        (d_model,), so PyTorch raises no error. Which of the two is 1 in a new layer, and which is 0?"""
        return normalized * bias + weight

    def bias_first(normalized, weight, bias):
        """You add the bias before you multiply by the weight, so the weight scales the bias as well. In a new layer,
        with weight 1 and bias 0, the result is right. Try a token of equal numbers: the result must be the bias
        itself."""
        return (normalized + bias) * weight

    def one_plus_weight(normalized, weight, bias):
        """You multiply by 1 + weight. Some models, such as Gemma, store the factor minus 1; here, as in PyTorch's
        layer, `weight` is the factor itself and is initialized to 1."""
        return normalized * (1 + weight) + bias

    def divided_by_the_weight(normalized, weight, bias):
        """You divide by the weight, but should multiply by it. This happens if you write `… / (root * weight)`: the
        parentheses put the weight into the divisor. In a new layer the weight is 1 everywhere, so nobody would notice
        the mistake."""
        return normalized / weight + bias


@layer_norm.wrong
class WrongAnswers:
    eps_always = fixed_eps_mistakes(layer_norm)

    def over_sequence(x, weight, bias, eps):
        """You compute the mean and the variance over `seq`: each feature shares them with the same feature of the other
        tokens in its sentence. This is instance norm. In a decoder, every token would see the later tokens. A layer
        norm uses one token at a time: over which axis must you compute the mean and the variance?"""
        return _normalize_over(x, weight, bias, eps, 1)

    def over_batch(x, weight, bias, eps):
        """You compute the mean and the variance over `batch`, axis 0: each number shares them with the number at the
        same place in the other sentences. For a batch of one sentence, every result would be `bias`. A layer norm uses
        one token at a time: over which axis must you compute the mean and the variance?"""
        return _normalize_over(x, weight, bias, eps, 0)

    def over_batch_and_sequence(x, weight, bias, eps):
        """You compute the mean and the variance over `batch` and `seq`, one pair for each feature: this is batch norm.
        The result for a token then depends on the other tokens in the batch and on padding, which is why Transformers
        do not use batch norm. A layer norm uses one token at a time: over which axis must you compute the mean and the
        variance?"""
        return _normalize_over(x, weight, bias, eps, (0, 1))

    def over_all_but_batch(x, weight, bias, eps):
        """You compute the mean and the variance over `seq` and `d_model` together, one pair for each sentence. For
        images this is called layer norm, and many explanations show it; in a Transformer the name means something else.
        Count the means: a tensor (2, 7, 5) should have 14, one for each token, but you have 2."""
        return _normalize_over(x, weight, bias, eps, (1, 2))

    def over_everything(x, weight, bias, eps):
        """You use one mean and one variance for the whole tensor, as `mean()` and `var()` return them if you name no
        axis. Every number then depends on every other number. Count the means: a tensor (2, 7, 5) should have 14, one
        for each token."""
        return _normalize_over(x, weight, bias, eps, (0, 1, 2))

    def over_sequence_and_unbiased(x, weight, bias, eps):
        """You make two mistakes at once. You compute the mean and the variance over `seq`, so each feature shares them
        with the same feature of the other tokens; a layer norm uses one token at a time. And your variance divides by
        one less than the number of its terms, the default of `var` and `std`. Over which axis must you compute the mean
        and the variance?"""
        return _normalize_over(x, weight, bias, eps, 1, correction=1)

    def over_all_but_batch_and_unbiased(x, weight, bias, eps):
        """You make two mistakes at once. You compute the mean and the variance over `seq` and `d_model` together, one
        pair for each sentence; in a Transformer each token has its own pair. And your variance divides by one less than
        the number of its terms, the default of `var` and `std`."""
        return _normalize_over(x, weight, bias, eps, (1, 2), correction=1)

    def over_everything_and_unbiased(x, weight, bias, eps):
        """You make two mistakes at once. You use one mean and one variance for the whole tensor, as `mean()` and
        `var()` return them if you name no axis; each token should have its own mean and variance. And your variance
        divides by one less than the number of its terms, the default of `var`."""
        return _normalize_over(x, weight, bias, eps, (0, 1, 2), correction=1)

    def rms_norm_instead(x, weight, bias, eps):
        """This is RMS norm with a bias: you subtract the mean neither from `x` nor inside the root. So your results for
        `x` and `x + 5` differ, but layer norm returns the same result for both. At which two places does the formula
        use the mean?"""
        return x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight + bias

    def no_axis_kept(x, weight, bias, eps):
        """Your mean, or your variance, has lost the axis over which you computed it: its last axis is `seq`, which is
        then aligned with `d_model`. Broadcasting aligns shapes from the right; if the two sizes were equal,
        broadcasting would silently mix tokens. Which argument of `mean` keeps the axis, with size 1?"""
        return (x - x.mean(dim=-1)) / (x.var(dim=-1, correction=0) + eps).sqrt() * weight + bias

    def mean_alone_divided(x, weight, bias, eps):
        """You divide only the mean by the root, not the distance from the mean: `x - mean / root` is `x - (mean /
        root)`, since `/` comes before `-`. Where do the parentheses belong?"""
        return x - mean_of_token(x) / (biased_variance(x) + eps).sqrt() * weight + bias

    def whole_shape_handed_over(x, weight, bias, eps):
        """You tell `F.layer_norm` to normalize over all axes of `x`: its second argument is the shape of the axes over
        which it computes the mean and the variance. `weight` and `bias` would need that shape as well, so PyTorch
        raises an error. Over which axes must you normalize a token?"""
        return F.layer_norm(x, x.shape, weight, bias, eps)

    def width_as_a_plain_number(x, weight, bias, eps):
        """The second argument of `F.layer_norm` must be a shape, but you pass a plain number. (`nn.LayerNorm` accepts
        both.) How do you write a tuple with one entry?"""
        return F.layer_norm(x, x.shape[-1], weight, bias, eps)

    def root_of_math(x, weight, bias, eps):
        """`math.sqrt` accepts one number and raises an error for a tensor with several numbers, but each token has its
        own root. Which function or method of PyTorch takes the root of every number in a tensor?"""
        return (x - mean_of_token(x)) / math.sqrt(biased_variance(x) + eps) * weight + bias

    def eps_added_at_the_end(x, weight, bias, eps):
        """You add `eps` at the very end, to the finished result, not to the variance. There `eps` cannot prevent 0/0.
        Which number must `eps` keep away from 0?"""
        return scale_and_shift(divide_by_root(x - mean_of_token(x), biased_variance(x), 0.0), weight, bias) + eps

    def weight_on_eps_alone(x, weight, bias, eps):
        """You multiply only `eps` by the weight, and add the product to the quotient: `*` comes before `+`. You must
        add `eps` to the variance, before the root, and multiply the quotient by the weight. Where do the parentheses
        belong?"""
        return (x - mean_of_token(x)) / biased_variance(x).sqrt() + eps * weight + bias


cut_off(layer_norm)


left_in_float32(layer_norm)
