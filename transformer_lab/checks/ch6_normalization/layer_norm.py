"""Layer norm."""

import math

import torch
from torch.nn import functional as F

from ..common_mistakes import cut_off, left_in_float32
from ..exercise import exercise, family


def tokens(draw, batch=2, seq=7, d_model=5):
    x = 3 + 8 * draw(batch, seq, d_model)
    return x, draw(d_model), draw(d_model), 0.1  # a large eps, so that its place in the formula changes the result


def mean_of_token(x):
    """Take the mean of each token's features."""
    return x.mean(dim=-1, keepdim=True)


def biased(x):
    """Take the mean squared distance from it, without Bessel's correction."""
    return x.var(dim=-1, correction=0, keepdim=True)


def eps_inside(numbers, spread, eps):
    """Divide by the root of that, with eps added under the root."""
    return numbers / (spread + eps).sqrt()


def scaled_and_shifted(normalized, weight, bias):
    """Multiply by `weight` and add `bias`."""
    return normalized * weight + bias


@exercise(
    inputs=tokens,
    axes={"x": "batch seq d_model", "weight": "d_model", "bias": "d_model", "return": "batch seq d_model"},
    hints=(
        "Write 1, 7, 9, 15 on paper and normalize the four numbers by hand. Which numbers share a mean, and which "
        "shape must the mean have so that you can subtract it from `x`?",
        "Only the numbers along the last axis share a mean and a variance; `keepdim=True` keeps this axis, with size "
        "1. The variance is the mean of the squared distances: divide by the number of features, not by one less. Add "
        "eps to the variance before you take the root.",
        "`mean = x.mean(…)`, `variance = (… - …).square().mean(…)`, `return (…) / (… + eps).sqrt() * … + …`",
    ),
)
def layer_norm(
    x, weight, bias, eps, *, mean=mean_of_token, variance=biased, normalized=eps_inside, output=scaled_and_shifted
):
    """Standardize every token over its own features, scale, and shift: (batch, seq, d_model) stays."""
    distance = x - mean(x)
    return output(normalized(distance, variance(x), eps), weight, bias)


@layer_norm.probe(plain=True)
def equal_features(draw):
    """a token whose features are all equal"""
    x, *others = tokens(draw, seq=3)
    x[1, 2] = 2.0
    return x, *others


@layer_norm.probe
def near_1100(draw):
    """features near 1100"""
    # The squares are all rounded up, and sums of them are exact: mean(x²) − mean(x)² is wrong in the same way whatever
    # the order of the sums.
    near = [[1109.5625, 1106.4375, 1097.5625, 1098.4375], [1090.4375, 1098.4375, 1101.5625, 1093.5625]]
    return torch.tensor([near]), draw(4), draw(4), 0.1


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
        centre = torch.eye(d_model, dtype=x.dtype, device=x.device) - 1 / d_model  # removes the mean
        distance = torch.einsum("bsd,de->bse", x, centre)
        variance = torch.einsum("bse,bse->bs", distance, distance) / d_model
        return distance / (variance[..., None] + eps).sqrt() @ torch.diag(weight) + bias


@layer_norm.property
def mean_zero(function, x, weight, bias, eps):
    """With weight 1 and bias 0, the features of every token have the mean 0."""
    y = function(x, torch.ones_like(weight), torch.zeros_like(bias), eps)
    return bool(y.mean(dim=-1).abs().max() < 1e-4)


@layer_norm.property
def each_token_on_its_own(function, x, weight, bias, eps):
    """A change of one token changes the result of that token alone."""
    changed = x.clone()
    changed[0, -1] *= 10
    return bool(torch.allclose(function(changed, weight, bias, eps)[0, 0], function(x, weight, bias, eps)[0, 0]))


def digits_kept(function, x, *others):
    """In float64, a change in the tenth digit of `x` shows in the result. It is lost where float32 is on the way."""
    x, *others = (item.double() if isinstance(item, torch.Tensor) else item for item in (x, *others))
    nearby = x + 1e-9 * torch.linspace(1, 2, x.numel(), dtype=x.dtype, device=x.device).view(x.shape)
    return not torch.equal(function(x, *others), function(nearby, *others))


layer_norm.property(digits_kept)


def _over(x, weight, bias, eps, dims, correction=0):
    distance = x - x.mean(dims, keepdim=True)
    count = torch.ones_like(x).sum(dims, keepdim=True) - correction
    variance = distance.square().sum(dims, keepdim=True) / count
    return distance / (variance + eps).sqrt() * weight + bias


def fixed_eps(norm):
    """Return the mistakes in which a norm does not use its `eps`."""

    @family(eps_always_1e_5=1e-5, eps_always_1e_6=1e-6)
    def eps_always(eps, x, *parameters):
        """Your result does not depend on the argument `eps`: it is as if a small number of your own, or a default,
        stood in its place. Models differ in it (0.00001 for PyTorch's layer norm, 0.000000000001 for BERT), and the
        weights of one need its own. The check's eps is large, so that this shows."""
        return norm.reference(x, *parameters[:-1], eps)

    return eps_always


@layer_norm.wrong(stage="mean")
class Mean:
    def mean_kept(x):
        """You divide by the right number, but the mean has not been subtracted before: with weight 1 and bias 0, the
        tokens come out with a mean that is not 0. Adding 5 to `x` must change nothing at all. Look at what you
        divide."""
        return torch.zeros_like(x[..., :1])


@layer_norm.wrong(stage="variance")
class Variance:
    def squares_about_zero(x):
        """What stands under your root is the mean of the squares of `x`, not of its distances from the mean. Both are
        the same where the mean is 0, and only there. For 1, 7, 9, 15 it is 89 instead of 25. Look at what you
        square."""
        return x.square().mean(dim=-1, keepdim=True)

    def mean_of_squares_less_square_of_mean(x):
        """Your variance loses digits where the mean is large, as the mean of the squares less the square of the mean
        does. Near 1,100 the squares lie near 1,210,000, where float32 counts in steps of an eighth, and a variance of
        18.44, as in the check's second token, comes out as 18.5; near 16,384 one of 2.5 comes out as 0. On paper the
        two formulas are equal. Do you square first, or subtract?"""
        return (x.square().mean(dim=-1, keepdim=True) - x.mean(dim=-1, keepdim=True).square()).clamp(min=0)

    def summed(x):
        """You add up the squared distances and do not divide by how many there are. The divisor then grows with the
        number of features: before weight and bias, every token has the length 1 instead of about √d_model. The variance
        is a mean."""
        return (x - x.mean(dim=-1, keepdim=True)).square().sum(dim=-1, keepdim=True)

    def root_twice(x):
        """You take a root of the standard deviation, which is a root already. For 1, 7, 9, 15 that divides by about √5
        = 2.24 instead of 5. Note 004 makes the same slip: its σ is already the standard deviation, and it divides by
        √σ. Is what you add eps to the variance, or its root?"""
        return x.std(dim=-1, correction=0, keepdim=True)

    def unbiased_root_twice(x):
        """You take a root of the standard deviation, which is a root already, and the standard deviation is the
        unbiased one, as `std()` gives it. For 1, 7, 9, 15 that divides by about 2.4, where it should be 5. Is
        what you add eps to the variance, or its root?"""
        return Variance.unbiased(x).sqrt()

    def unbiased(x):
        """Your variance divides by `d_model - 1` instead of `d_model`. That is the unbiased variance, which
        `var` and `std` give unless they are told otherwise: it estimates the variance of a larger set from a sample,
        and a norm needs the variance of just these numbers. With 4 features the normalized numbers are 13 per cent too
        small, with 512 a thousandth, so many features hide it."""
        return Variance.summed(x) / (x.shape[-1] - 1)


@layer_norm.wrong(stage="normalized")
class Normalized:
    def not_divided(numbers, spread, eps):
        """You subtract the mean, and divide by nothing: a token three times as large comes out three times as large.
        What does the standard deviation do in the formula?"""
        return numbers


@layer_norm.wrong(stage="normalized")
class RootAndEps:
    """Mistakes that RMS norm shares."""

    def eps_outside(numbers, spread, eps):
        """You add eps after the root has been taken. That prevents 0/0 as well, but gives other numbers where the mean
        under the root is small: where it is 0, an eps of 0.00001 under the root makes the divisor 0.003; after it,
        0.00001. In which order does the formula have them? The check's eps is large, so that this shows."""
        return numbers / (spread.sqrt() + eps)

    def no_root(numbers, spread, eps):
        """You divide by a mean of squares and have not taken its root. A token three times as large has a mean of
        squares nine times as large, whose root is three times as large. Without the root it comes out at a third, where
        it should come out the same. Numbers of size 1 hide it."""
        return numbers / (spread + eps)

    def no_eps(numbers, spread, eps):
        """Your result does not depend on `eps`. Where the mean under the root is 0 you compute 0/0, which is NaN: layer
        norm for a token of equal features, RMS norm for a token of zeros. The next attention spreads it over the whole
        sentence. Look at the formula under the root."""
        return numbers / spread.sqrt()

    def eps_as_floor(numbers, spread, eps):
        """Your eps is a lower limit of what stands under the root: the larger of the two is taken. The formula adds it,
        always, which changes the result a little everywhere. Weights trained with one do not quite fit the other."""
        return numbers / spread.clamp(min=eps).sqrt()

    def multiplied_by_the_root(numbers, spread, eps):
        """You multiply by the root where you should divide, so that what is large becomes larger still. `sqrt` is the
        root, and `rsqrt` is one divided by the root. Which of the two stands after a `*`?"""
        return numbers * (spread + eps).sqrt()

    def root_of_the_root(numbers, spread, eps):
        """You take the root twice, with `eps` under both: the divisor is the fourth root. Code that has one root in its
        standard deviation and another in the division does so. Which of the two roots is one too many?"""
        return numbers / (spread + eps).sqrt().sqrt()

    def square_for_root(numbers, spread, eps):
        """You square where a root is to be taken: what is divided by is the square of a mean of squares. `** 2` and `**
        0.5` are easily confused, and published code has had the one for the other. A token three times as large comes
        out 27 times as small. Which power is a root?"""
        return numbers / (spread + eps) ** 2

    def eps_added_to_the_result(numbers, spread, eps):
        """You add `eps` to what has been divided, and not to what you divide by. `x / root + eps` is `(x / root) +
        eps`, since `/` goes before `+`. Where the mean under the root is 0, you still compute 0/0. Where do the
        parentheses belong?"""
        return numbers / spread.sqrt() + eps


@layer_norm.wrong(stage="output")
class Output:
    @family(
        no_weight=(lambda normalized, weight, bias: normalized + bias, "`weight`", "1", "another factor"),
        no_bias=(lambda normalized, weight, bias: normalized * weight, "`bias`", "0", "a shift"),
    )
    def one_not_used(other, normalized, weight, bias):
        """Your result does not depend on {}. In a new layer it is {} everywhere, so that nobody would notice; a trained
        one has learned {} for each feature. Look at what happens after the division."""
        return other(normalized, weight, bias)

    def neither_weight_nor_bias(normalized, weight, bias):
        """You standardize the tokens, and stop there: the result depends neither on `weight` nor on `bias`. In a new
        layer they are 1 and 0, so that nobody would notice. The learned factor and shift of each feature come last."""
        return normalized

    def weight_and_bias_swapped(normalized, weight, bias):
        """`weight` and `bias` have changed places: you multiply by the bias and add the weight. Both have the shape
        (d_model,), so nothing complains. Which of them is 1 in a new layer, and which is 0?"""
        return normalized * bias + weight

    def bias_first(normalized, weight, bias):
        """The bias is added before the weight multiplies, so that the weight scales the bias as well. In a new layer,
        with weight 1 and bias 0, it looks right. Put in a token of equal numbers: what comes out must be the bias
        itself."""
        return (normalized + bias) * weight

    def one_plus_weight(normalized, weight, bias):
        """You multiply by 1 + weight. Some models store their factor that way, as what it differs from 1 by (Gemma
        does); here, as in PyTorch's layer, `weight` is the factor itself and begins at 1."""
        return normalized * (1 + weight) + bias

    def divided_by_the_weight(normalized, weight, bias):
        """You divide by the weight where it multiplies. Behind a `/`, parentheses around the root and the weight do
        that. In a new layer the weight is 1 everywhere, so that nobody would notice."""
        return normalized / weight + bias


@layer_norm.wrong
class WrongAnswers:
    eps_always = fixed_eps(layer_norm)

    def over_sequence(x, weight, bias, eps):
        """Mean and variance are taken over `seq`: each feature shares them with the same feature of the other tokens of
        its sentence. That is instance norm. In a decoder it would let every token see the later ones. A layer norm
        looks at one token at a time: which axis is left to share over?"""
        return _over(x, weight, bias, eps, 1)

    def over_batch(x, weight, bias, eps):
        """Mean and variance are taken over `batch`, axis 0: each number shares them with the number at the same place
        in the other sentences. A sentence alone in its batch would come out as `bias` everywhere. A layer norm looks at
        one token at a time: which axis is left to share over?"""
        return _over(x, weight, bias, eps, 0)

    def over_batch_and_sequence(x, weight, bias, eps):
        """Mean and variance are taken over `batch` and `seq`, one of each for a feature: that is batch norm. A token
        then depends on its neighbours in the batch and on padding, which is why Transformers do without it. A layer
        norm looks at one token at a time: which axis is left to share over?"""
        return _over(x, weight, bias, eps, (0, 1))

    def over_all_but_batch(x, weight, bias, eps):
        """Mean and variance are taken over `seq` and `d_model` together, one of each for a sentence. For pictures this
        is called layer norm, so it stands in many explanations; in a Transformer the name means something else. Count
        the means: (2, 7, 5) should have 14 of them, one for each token, and here there are 2."""
        return _over(x, weight, bias, eps, (1, 2))

    def over_everything(x, weight, bias, eps):
        """One mean and one variance serve the whole tensor, as `mean()` and `var()` give them where no axis is named.
        Every number then depends on every other. Count the means: (2, 7, 5) should have 14 of them, one for each
        token."""
        return _over(x, weight, bias, eps, (0, 1, 2))

    def over_sequence_and_unbiased(x, weight, bias, eps):
        """Two things at once. Mean and variance are taken over `seq`, so that each feature shares them with the same
        feature of the other tokens; a layer norm looks at one token at a time. And the variance divides by one less
        than there are numbers, as `var` and `std` do unless they are told otherwise. Which axis is left to share
        over?"""
        return _over(x, weight, bias, eps, 1, correction=1)

    def over_all_but_batch_and_unbiased(x, weight, bias, eps):
        """Two things at once. Mean and variance are taken over `seq` and `d_model` together, one of each for a
        sentence; in a Transformer each token has its own. And the variance divides by one less than there are numbers,
        as `var` and `std` do unless they are told otherwise."""
        return _over(x, weight, bias, eps, (1, 2), correction=1)

    def over_everything_and_unbiased(x, weight, bias, eps):
        """Two things at once. One mean and one variance serve the whole tensor, as `mean()` and `var()` give them where
        no axis is named; each token should have its own. And the variance divides by one less than there are numbers,
        as `var` does unless it is told otherwise."""
        return _over(x, weight, bias, eps, (0, 1, 2), correction=1)

    def rms_norm_instead(x, weight, bias, eps):
        """This is RMS norm with a bias: the mean is neither subtracted nor left out of the spread. So `x` and `x + 5`
        come out differently, where layer norm makes the same of both. Look at both places in the formula where the mean
        stands."""
        return x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight + bias

    def no_axis_kept(x, weight, bias, eps):
        """Your mean, or your variance, has lost the axis that it was taken over: its last axis is `seq`, and meets
        `d_model` when the two are combined. Broadcasting aligns shapes from the right; had the two sizes been equal, it
        would have mixed tokens without a word. Which argument of `mean` leaves the axis there, with size 1?"""
        return (x - x.mean(dim=-1)) / (x.var(dim=-1, correction=0) + eps).sqrt() * weight + bias

    def mean_alone_divided(x, weight, bias, eps):
        """Only the mean is divided by the root, and not the distance from it: `x - mean / root` is `x - (mean / root)`,
        since `/` goes before `-`. Where do the parentheses belong?"""
        return x - mean_of_token(x) / (biased(x) + eps).sqrt() * weight + bias

    def whole_shape_handed_over(x, weight, bias, eps):
        """`F.layer_norm` is told to normalize over all axes of `x`: its second argument is the shape that mean and
        variance are taken over. Then `weight` and `bias` would need that shape as well, and it raises. Which axes of a
        token are there to normalize over?"""
        return F.layer_norm(x, x.shape, weight, bias, eps)

    def width_as_a_plain_number(x, weight, bias, eps):
        """The second argument of `F.layer_norm` is a shape, and it was given a plain number. (`nn.LayerNorm` takes
        both.) How is a tuple written that has one entry?"""
        return F.layer_norm(x, x.shape[-1], weight, bias, eps)

    def root_of_math(x, weight, bias, eps):
        """`math.sqrt` takes one number, and refuses a tensor of several: there is a root to take for each token. Which
        function or method of PyTorch takes the root of every number in a tensor?"""
        return (x - mean_of_token(x)) / math.sqrt(biased(x) + eps) * weight + bias

    def eps_added_at_the_end(x, weight, bias, eps):
        """You add `eps` at the very end, to the finished result, and not to the variance. There it keeps no division
        from being 0/0. Which number is it to keep away from 0?"""
        return scaled_and_shifted(eps_inside(x - mean_of_token(x), biased(x), 0.0), weight, bias) + eps

    def weight_on_eps_alone(x, weight, bias, eps):
        """The weight multiplies `eps` alone, and the product is added to what has been divided: `*` goes before `+`.
        `eps` is to be added to the variance, before the root, and the weight is to multiply what has been divided.
        Where do the parentheses belong?"""
        return (x - mean_of_token(x)) / biased(x).sqrt() + eps * weight + bias


cut_off(layer_norm)


left_in_float32(layer_norm)
