"""RMS norm."""

import math

import torch
from torch.nn import functional as F

from ..exercise import exercise, family, with_text_of
from . import layer_norm as with_mean
from .layer_norm import RootAndEps, Variance, biased, digits_kept, eps_inside, fixed_eps, tokens


def _tokens_and_weight(draw, batch=2, seq=7, d_model=5):
    x, weight, _, eps = tokens(draw, batch, seq, d_model)
    return x, weight, eps


def mean_square_of_token(x):
    """Take the mean of the squares of each token's features."""
    return x.square().mean(dim=-1, keepdim=True)


def scaled(normalized, weight):
    """Multiply by `weight`."""
    return normalized * weight


@exercise(
    inputs=_tokens_and_weight,
    axes={"x": "batch seq d_model", "weight": "d_model", "return": "batch seq d_model"},
    hints=(
        "Normalize 1, 7, 1, 7 by hand: it becomes 0.2, 1.4, 0.2, 1.4. What was each number divided by, and is the "
        "mean needed anywhere?",
        "Read the name from the right: square, mean, root. The mean runs over the features of one token, and eps is "
        "added before the root.",
        "`mean_square = (…).mean(…)`, `return … / (… + …).sqrt() * …`",
    ),
)
def rms_norm(x, weight, eps, *, mean_square=mean_square_of_token, normalized=eps_inside, output=scaled):
    """Divide every token by the root of its features' mean square, and scale: (batch, seq, d_model) stays."""
    return output(normalized(x, mean_square(x), eps), weight)


@rms_norm.probe(plain=True)
def features_of_zero(draw):
    """a token whose features are all 0"""
    x, *others = _tokens_and_weight(draw, seq=3)
    x[1, 2] = 0.0
    return x, *others


rms_norm.example("tokens in the hundreds", lambda draw: (300 * draw(2, 4, 6), draw(6), 0.1), plain=True)


@rms_norm.probe(plain=True)
def mean_square_below_eps(draw):
    """tokens whose mean square is below eps"""
    return 0.2 * F.rms_norm(draw(2, 7, 2), (2,)), draw(2), 0.1


@rms_norm.right
class RightAnswers:
    def by_pytorch_rms_norm(x, weight, eps):
        return F.rms_norm(x, weight.shape, weight, eps)

    def by_rsqrt(x, weight, eps):
        return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))

    def by_length(x, weight, eps):
        d_model = x.shape[2]
        length = torch.linalg.vector_norm(x, dim=2, keepdim=True)
        return x * weight * d_model**0.5 / (length**2 + d_model * eps).sqrt()

    def by_einsum(x, weight, eps):
        mean_square = torch.einsum("bsd,bsd->bs", x, x) / x.shape[-1]
        return torch.einsum("bsd,bs,d->bsd", x, (mean_square + eps) ** -0.5, weight)


@rms_norm.property
def mean_square_one(function, x, weight, eps):
    """With weight 1 and eps 0, the mean square of every token's features is 1."""
    y = function(x, torch.ones_like(weight), 0.0)
    return bool(torch.allclose(y.square().mean(dim=-1), torch.ones(()), atol=1e-4))


@rms_norm.property
def each_token_on_its_own(function, x, weight, eps):
    """A change of one token changes the result of that token alone."""
    changed = x.clone()
    changed[0, -1] *= 10
    return bool(torch.allclose(function(changed, weight, eps)[0, 0], function(x, weight, eps)[0, 0]))


rms_norm.property(digits_kept)


@rms_norm.wrong(stage="mean_square")
class MeanSquare:
    def variance_instead(x):
        """You divide by the standard deviation, about the mean. The mean square needs no mean: for 1, 7, 1, 7 it is 25,
        and the variance is 9. The two agree only for tokens whose mean is 0. Look at what you square."""
        return biased(x)

    def unbiased_variance_instead(x):
        """You divide by a standard deviation, and by the unbiased one, as `std()` and `var()` give it. The mean square
        needs no mean and no `d_model - 1`: for 1, 7, 1, 7 it is 25, and this variance is 12. Look at what you
        square."""
        return Variance.unbiased(x)

    def sum_of_squares(x):
        """You divide by the length of the token, the root of the sum of its squares. Before the weight, every token
        then has the length 1, where RMS norm gives it √d_model, so that features are about 1, however many there are.
        The M in RMS is missing."""
        return x.square().sum(dim=-1, keepdim=True)

    def square_of_mean(x):
        """You take the mean first and square it afterwards. Positive and negative features cancel in a mean, and the
        divisor comes near 0 although the token is large: for −3 and 3 it is 0 instead of 3. In which order does the
        name say it, read from the right?"""
        return x.mean(dim=-1, keepdim=True).square()

    def mean_square_over_sequence(x):
        """The mean square is taken over `seq`: a feature shares it with the same feature of the other tokens, later
        ones too. In a decoder the future would leak through it. Each token is normalized by itself: which axis is
        left?"""
        return x.square().mean(dim=1, keepdim=True)

    def mean_square_over_sentence(x):
        """The mean square is taken over `seq` and `d_model` together, one for each sentence. Long tokens stay longer
        than short ones then. Count: (2, 7, 5) should have 14 mean squares, one for each token."""
        return x.square().mean(dim=(1, 2), keepdim=True)

    def mean_square_of_everything(x):
        """One mean square serves the whole tensor, as `mean()` gives it where no axis is named. Long tokens stay longer
        than short ones then, and each depends on all others. Count: (2, 7, 5) should have 14 mean squares, one for each
        token."""
        return x.square().mean()

    def mean_square_over_batch(x):
        """The mean square is taken over `batch`, axis 0: each number shares it with the number at the same place in the
        other sentences. Each token is normalized by itself: which axis is left?"""
        return x.square().mean(dim=0, keepdim=True)

    def by_one_less(x):
        """You divide the sum of the squares by `d_model - 1`, as the unbiased variance is computed. The M in RMS is a
        mean: a sum of d_model squares is divided by d_model."""
        return x.square().sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)

    def mean_without_squares(x):
        """You take the root of the mean, and have squared nothing. For a token whose mean is negative the root is NaN,
        and in any other mean positive and negative features cancel. Which letter of the name comes first, read from the
        right?"""
        return x.mean(dim=-1, keepdim=True)

    def square_of_each_feature(x):
        """Each feature is divided by the root of its own square, so that about ±1 comes out everywhere, and no mean is
        taken. All features of a token share one mean square. What comes between the square and the root?"""
        return x.square()

    def root_of_the_root_mean_square(x):
        """You take the root of the mean of the squares, add `eps`, and take a root again. PyTorch's own documentation
        once printed the formula so: the name RMS has its root inside already. Once is enough: which of the two comes
        after `eps`?"""
        return x.square().mean(dim=-1, keepdim=True).sqrt()


@rms_norm.wrong(stage="normalized")
class Normalized:
    def neither_root_nor_eps(x, mean_square, eps):
        """You divide by the mean square itself: the root is missing, and `eps` as well. A token three times as large
        then comes out at a third, and a token of zeros gives 0/0. Look at the R of the name, and at the arguments."""
        return x / mean_square

    def one_divided_by_the_root(x, mean_square, eps):
        """Your result is one divided by the root, times the weight: the token itself is not in it, so that its features
        differ by the weight alone. `rsqrt` gives only the factor. What must it be multiplied with?"""
        return torch.ones_like(x) / (mean_square + eps).sqrt()

    def squares_divided(x, mean_square, eps):
        """You divide the squares by the root, so that no result is negative. The squares are only for the mean: what is
        divided is the token as it came in. Has the name `x` been given to its square?"""
        return x.square() / (mean_square + eps).sqrt()


@rms_norm.wrong(stage="output")
class Output:
    def no_factor(normalized, weight):
        """Your result does not depend on `weight`. In a new layer it is 1 everywhere, so that nobody would notice; a
        trained one has learned another factor for each feature. Look at what happens after the division."""
        return normalized

    def weight_added(normalized, weight):
        """You add the weight where it multiplies. RMS norm has no shift at all: a token of zeros must stay zero. A new
        layer's weight is 1, the number that changes nothing: for which of the two operations is that so?"""
        return normalized + weight

    def one_plus_factor(normalized, weight):
        """You multiply by 1 + weight. Some models (Gemma, for one) store only the difference from 1, and add the 1 when
        they use it; here, as in PyTorch's layer, `weight` is the factor itself and begins at 1."""
        return normalized * (1 + weight)

    @with_text_of(with_mean.Output.divided_by_the_weight)
    def divided_by_the_weight(normalized, weight):
        return normalized / weight

    def dot_product_with_the_weight(normalized, weight):
        """`@` with the weight adds the features up, so that each token has become one number. The weight has a factor
        for each feature, and a product entry by entry keeps them apart. Which sign is that?"""
        return normalized @ weight


@rms_norm.wrong
class WrongAnswers:
    def layer_norm_instead(x, weight, eps):
        """This is layer norm: the mean is subtracted before the division. RMS norm forgets the size of a token only and
        leaves its mean alone, so 1, 7, 1, 7 must become 0.2, 1.4, 0.2, 1.4 and not −1, 1, −1, 1. Look at what you
        divide, and at what you square."""
        return F.layer_norm(x, weight.shape, weight, None, eps)

    def mean_subtracted_above(x, weight, eps):
        """You subtract the mean from what you divide, and divide by the root of the mean square of `x` as it was. RMS
        norm has no mean in it anywhere: 1, 7, 1, 7 must become 0.2, 1.4, 0.2, 1.4, with the mean still in it."""
        return (x - x.mean(dim=-1, keepdim=True)) / (mean_square_of_token(x) + eps).sqrt() * weight

    def unit_length(x, weight, eps):
        """Before the weight, you divide every token by its length, as `F.normalize` does, and `eps` is not added to the
        mean of the squares. RMS norm divides by the root of the mean of the squares, which gives the length √d_model,
        so that features are about 1, however many there are."""
        return F.normalize(x, dim=-1) * weight

    def no_axis_left(x, weight, eps):
        """What you divide by has lost the axis that it was taken over: its last axis is `seq`, and meets `d_model` in
        the division. Broadcasting aligns shapes from the right; had the two sizes been equal, it would have mixed
        tokens without a word. Which argument of `mean` leaves the axis there, with size 1?"""
        return x / (x.square().mean(dim=-1) + eps).sqrt() * weight

    def mean_absolute_value(x, weight, eps):
        """You divide by the mean of the absolute values. That is another measure of how large a token is, and smaller:
        for 1 and 7 it is 4, and the root of the mean square is 5. In which order does the name say it, read from the
        right?"""
        return x / (x.abs().mean(dim=-1, keepdim=True) + eps) * weight

    def weight_before_the_norm(x, weight, eps):
        """The weight multiplies first, and the product is normalized. Then the weight has its part in the mean square,
        and a weight that is 2 everywhere does nothing. Which of the two comes last?"""
        y = x * weight
        return y / (mean_square_of_token(y) + eps).sqrt()

    def argument_divided_in_place(x, weight, eps):
        """Your function changes its argument `x`: the caller finds normalized numbers in its own tensor. `/=` and `*=`
        do that, and so do methods that end in an underscore. Make the result a new tensor."""
        x /= (mean_square_of_token(x) + eps).sqrt()
        return x * weight

    def whole_shape_handed_over(x, weight, eps):
        """`F.rms_norm` is told to normalize over all axes of `x`: its second argument is the shape that the mean square
        is taken over. Then `weight` would need that shape as well, and it raises. Which axes of a token are there to
        normalize over?"""
        return F.rms_norm(x, x.shape, weight, eps)

    def width_as_a_plain_number(x, weight, eps):
        """The second argument of `F.rms_norm` is a shape, and it was given a plain number. (`nn.RMSNorm` takes both.)
        How is a tuple written that has one entry?"""
        return F.rms_norm(x, x.shape[-1], weight, eps)

    @with_text_of(with_mean.WrongAnswers.root_of_math)
    def root_of_math(x, weight, eps):
        return x / math.sqrt(mean_square_of_token(x) + eps) * weight

    def root_of_the_root_with_eps_twice(x, weight, eps):
        """You add `eps` and take the root, and then do both once more. The root mean square has its root and its `eps`
        inside already, and what is left to do is to divide by it. Which line does it again?"""
        return x / ((mean_square_of_token(x) + eps).sqrt() + eps).sqrt() * weight

    def length_divided_by_the_root(x, weight, eps):
        """Before the weight, every token has the length 1/√d_model, where RMS norm gives it √d_model. `F.normalize`
        makes the length 1, and after it the factor is `d_model ** 0.5`: published code has had `-0.5` there. Where is
        `eps`, and which sign has the power?"""
        return F.normalize(x, dim=-1) * x.shape[-1] ** -0.5 * weight

    eps_always = fixed_eps(rms_norm)

    @family(
        along_the_tokens=(0.5, ""),
        along_the_tokens_and_divided=(-0.5, "And the factor is 1/√d_model, where it should be √d_model. "),
        along_the_tokens_and_no_factor=(0, "And the factor √d_model is missing. "),
    )
    def along_the_tokens(power, x, weight, eps):
        """Each feature is divided by its length along the tokens, axis 1, and `eps` is not used. `F.normalize` takes
        axis 1 where it is given no `dim`: it was written for (batch, features). {}Each token is normalized by itself.
        Over which axis do its features lie?"""
        return F.normalize(x, dim=1) * x.shape[-1] ** power * weight


rms_norm.wrong(RootAndEps, stage="normalized")
