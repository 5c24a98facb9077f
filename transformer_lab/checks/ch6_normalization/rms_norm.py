"""RMS norm."""

import math

import torch
from torch.nn import functional as F

from ..exercise import exercise, family, with_text_of
from . import layer_norm as layer_norm_module
from .layer_norm import (
    RootAndEps,
    Variance,
    biased_variance,
    divide_by_root,
    fixed_eps_mistakes,
    keeps_digits,
    norm_inputs,
)


def _tokens_and_weight(draw, batch=2, seq=7, d_model=5):
    x, weight, _, eps = norm_inputs(draw, batch, seq, d_model)
    return x, weight, eps


def mean_square_of_token(x):
    """Compute the mean of the squares of each token's features."""
    return x.square().mean(dim=-1, keepdim=True)


def multiply_by_weight(normalized, weight):
    """Multiply by `weight`."""
    return normalized * weight


@exercise(
    inputs=_tokens_and_weight,
    axes={"x": "batch seq d_model", "weight": "d_model", "return": "batch seq d_model"},
    hints=(
        "Normalize 1, 7, 1, 7 by hand: the result is 0.2, 1.4, 0.2, 1.4. What was each number divided by, and is the "
        "mean needed anywhere?",
        "Read the words *root mean square* from right to left: square, mean, root. Take the mean over the features of "
        "one token, and add eps before you take the root.",
        "`mean_square = (…).mean(…)`, `return … / (… + …).sqrt() * …`",
    ),
)
def rms_norm(x, weight, eps, *, mean_square=mean_square_of_token, normalized=divide_by_root, output=multiply_by_weight):
    """Divide every token by the root of the mean square of its features, then scale it. The result has the shape of
    ``x``, (batch, seq, d_model)."""
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

    def by_vector_norm(x, weight, eps):
        d_model = x.shape[2]
        norm = torch.linalg.vector_norm(x, dim=2, keepdim=True)
        return x * weight * d_model**0.5 / (norm**2 + d_model * eps).sqrt()

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
    """A change in one token changes only the result of that token."""
    changed = x.clone()
    changed[0, -1] *= 10
    return bool(torch.allclose(function(changed, weight, eps)[0, 0], function(x, weight, eps)[0, 0]))


rms_norm.property(keeps_digits)


@rms_norm.wrong(stage="mean_square")
class MeanSquare:
    def variance_instead(x):
        """You divide by the standard deviation, which uses distances from the mean. The mean square uses the features
        themselves: for 1, 7, 1, 7 the mean square is 25, and the variance is 9. The mean square and the variance are
        equal only for tokens whose mean is 0. Look at what you square."""
        return biased_variance(x)

    def unbiased_variance_instead(x):
        """You divide by the unbiased standard deviation: `std()` and `var()` divide by `d_model - 1` by default. The
        mean square uses the features themselves and the divisor `d_model`: for 1, 7, 1, 7 the mean square is 25, and
        this variance is 12. Look at what you square."""
        return Variance.unbiased(x)

    def sum_of_squares(x):
        """You divide by the Euclidean norm of the token, the root of the sum of its squares. Before the weight is
        applied, every token then has a Euclidean norm of 1. RMS norm gives every token a Euclidean norm of √d_model, so
        that features are about 1, however many there are. The M in RMS is missing."""
        return x.square().sum(dim=-1, keepdim=True)

    def square_of_mean(x):
        """You compute the mean first and square it afterwards. Positive and negative features cancel in a mean, so the
        divisor can be near 0 although the token is large: for −3 and 3 the divisor is 0 instead of 3. Read the name
        from the right: in which order are the steps?"""
        return x.mean(dim=-1, keepdim=True).square()

    def mean_square_over_sequence(x):
        """You take the mean square over `seq`: a feature shares its mean square with the same feature of the other
        tokens, later tokens included. In a decoder, the future would leak through the mean square. Each token is
        normalized separately: which axis holds the features of one token?"""
        return x.square().mean(dim=1, keepdim=True)

    def mean_square_over_sentence(x):
        """You take the mean square over `seq` and `d_model` together, one for each sentence. Large tokens then stay
        larger than small tokens. Count the mean squares: a tensor (2, 7, 5) should have 14, one for each token."""
        return x.square().mean(dim=(1, 2), keepdim=True)

    def mean_square_of_everything(x):
        """You use one mean square for the whole tensor: `mean()` without an axis returns one number. Large tokens then
        stay larger than small tokens, and each token depends on all the others. Count the mean squares: a tensor (2, 7,
        5) should have 14, one for each token."""
        return x.square().mean()

    def mean_square_over_batch(x):
        """You take the mean square over `batch`, axis 0: each number shares its mean square with the number at the same
        place in the other sentences. Each token is normalized separately: which axis holds the features of one
        token?"""
        return x.square().mean(dim=0, keepdim=True)

    def by_one_less(x):
        """You divide the sum of the squares by `d_model - 1`, as for the unbiased variance. The M in RMS is a mean: a
        sum of d_model squares is divided by d_model."""
        return x.square().sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)

    def mean_without_squares(x):
        """You take the root of the mean of the features, but square nothing. If the mean of a token is negative, the
        root is NaN; in any mean, positive and negative features cancel. Read the name from the right: which letter
        comes first?"""
        return x.mean(dim=-1, keepdim=True)

    def square_of_each_feature(x):
        """You divide each feature by the root of its own square and compute no mean, so every feature is about ±1
        before the weight is applied. All features of a token share one mean square. What comes between the square and
        the root?"""
        return x.square()

    def root_of_the_root_mean_square(x):
        """You take the root of the mean of the squares, add `eps`, and take a root again. PyTorch's own documentation
        once printed this formula, but the name RMS already includes the root. One root is enough: which of the two
        roots comes after `eps`?"""
        return x.square().mean(dim=-1, keepdim=True).sqrt()


@rms_norm.wrong(stage="normalized")
class Normalized:
    def neither_root_nor_eps(x, mean_square, eps):
        """You divide by the mean square itself: the root and `eps` are missing. If a token becomes three times as
        large, its result becomes a third as large; for a token of zeros, you compute 0/0. Look at the R in the name,
        and at the arguments."""
        return x / mean_square

    def one_divided_by_the_root(x, mean_square, eps):
        """Your result is the reciprocal of the root, times the weight. The token itself is missing, so the features
        of your result differ only through the weight. `rsqrt` returns only the factor. What must you multiply by
        this factor?"""
        return torch.ones_like(x) / (mean_square + eps).sqrt()

    def squares_divided(x, mean_square, eps):
        """You divide the squares by the root, so no result is negative. The squares are only for the mean: divide the
        token as it came in. Did you give the name `x` to the square?"""
        return x.square() / (mean_square + eps).sqrt()


@rms_norm.wrong(stage="output")
class Output:
    def no_factor(normalized, weight):
        """Your result does not depend on `weight`. In a new layer, `weight` is 1 everywhere, so nobody would notice the
        mistake; a trained layer has learned a different factor for each feature. Look at what happens after the
        division."""
        return normalized

    def weight_added(normalized, weight):
        """You add the weight instead of multiplying by it. RMS norm has no shift at all: a token of zeros must stay
        zero. In a new layer the weight is 1 and must change nothing: for which of the two operations does 1 change
        nothing?"""
        return normalized + weight

    def one_plus_factor(normalized, weight):
        """You multiply by 1 + weight. Some models, such as Gemma, store only the difference from 1 and add 1 when they
        use the factor. Here, as in PyTorch's layer, `weight` is the factor itself and is initialized to 1."""
        return normalized * (1 + weight)

    @with_text_of(layer_norm_module.Output.divided_by_the_weight)
    def divided_by_the_weight(normalized, weight):
        return normalized / weight

    def dot_product_with_the_weight(normalized, weight):
        """`@` with the weight sums over the features, so each token becomes one number. The weight has a factor for
        each feature, and a product entry by entry keeps the features separate. Which operator computes this product?"""
        return normalized @ weight


@rms_norm.wrong
class WrongAnswers:
    def layer_norm_instead(x, weight, eps):
        """This is layer norm: you subtract the mean before the division. RMS norm removes only the size of a token and
        keeps its mean, so 1, 7, 1, 7 must become 0.2, 1.4, 0.2, 1.4 and not −1, 1, −1, 1. Look at what you divide, and
        at what you square."""
        return F.layer_norm(x, weight.shape, weight, None, eps)

    def mean_subtracted_above(x, weight, eps):
        """You subtract the mean from the numbers that you divide, but the mean square under the root is that of the
        original `x`. RMS norm uses no mean anywhere: 1, 7, 1, 7 must become 0.2, 1.4, 0.2, 1.4, whose mean is not 0."""
        return (x - x.mean(dim=-1, keepdim=True)) / (mean_square_of_token(x) + eps).sqrt() * weight

    def unit_length(x, weight, eps):
        """Before you apply the weight, you divide every token by its Euclidean norm, as `F.normalize` does, and you do
        not add `eps` to the mean of the squares. RMS norm divides by the root of the mean of the squares. Every token
        then has a Euclidean norm of √d_model, so that features are about 1, however many there are."""
        return F.normalize(x, dim=-1) * weight

    def no_axis_left(x, weight, eps):
        """Your divisor has lost the axis of its mean: its last axis is now `seq`, which the division aligns with
        `d_model`. Broadcasting aligns shapes from the right; if the two sizes were equal, broadcasting would silently
        mix tokens. Which argument of `mean` keeps the axis, with size 1?"""
        return x / (x.square().mean(dim=-1) + eps).sqrt() * weight

    def mean_absolute_value(x, weight, eps):
        """You divide by the mean of the absolute values. This is a different measure of the size of a token, and a
        smaller one: for 1 and 7, this mean is 4, but the root of the mean square is 5. Read the name from the right: in
        which order are the steps?"""
        return x / (x.abs().mean(dim=-1, keepdim=True) + eps) * weight

    def weight_before_the_norm(x, weight, eps):
        """You multiply by the weight first and normalize the product. The weight then changes the mean square too, and
        a weight that is 2 everywhere has no effect. Which of the two steps comes last?"""
        y = x * weight
        return y / (mean_square_of_token(y) + eps).sqrt()

    def argument_divided_in_place(x, weight, eps):
        """Your function changes its argument `x`: the caller's own tensor then holds normalized numbers. `/=` and `*=`
        write in place, and so do methods that end in an underscore. Make the result a new tensor."""
        x /= (mean_square_of_token(x) + eps).sqrt()
        return x * weight

    def whole_shape_handed_over(x, weight, eps):
        """You tell `F.rms_norm` to normalize over all axes of `x`: its second argument is the shape of the axes over
        which it computes the mean square. `weight` would then need this shape too, so `F.rms_norm` raises an error.
        Which axes does a single token have?"""
        return F.rms_norm(x, x.shape, weight, eps)

    def width_as_a_plain_number(x, weight, eps):
        """The second argument of `F.rms_norm` must be a shape, but you pass a plain number. (`nn.RMSNorm` accepts
        both.) How do you write a tuple with one entry?"""
        return F.rms_norm(x, x.shape[-1], weight, eps)

    @with_text_of(layer_norm_module.WrongAnswers.root_of_math)
    def root_of_math(x, weight, eps):
        return x / math.sqrt(mean_square_of_token(x) + eps) * weight

    def root_of_the_root_with_eps_twice(x, weight, eps):
        """You add `eps` and take the root, and then you do both again. The root mean square already includes its root
        and its `eps`: only the division is left. Which line repeats the two steps?"""
        return x / ((mean_square_of_token(x) + eps).sqrt() + eps).sqrt() * weight

    def length_divided_by_the_root(x, weight, eps):
        """Before the weight is applied, your tokens have a Euclidean norm of 1/√d_model, but RMS norm gives them a
        Euclidean norm of √d_model. `F.normalize` makes this norm 1, and the factor after it must be `d_model ** 0.5`:
        published code has had the exponent `-0.5`. Where is `eps`, and which sign does the exponent have?"""
        return F.normalize(x, dim=-1) * x.shape[-1] ** -0.5 * weight

    eps_always = fixed_eps_mistakes(rms_norm)

    @family(
        along_the_tokens=(0.5, ""),
        along_the_tokens_and_divided=(-0.5, "The factor is 1/√d_model, but it should be √d_model. "),
        along_the_tokens_and_no_factor=(0, "The factor √d_model is missing. "),
    )
    def along_the_tokens(power, x, weight, eps):
        """You divide each feature by its Euclidean norm over the tokens, axis 1, and you do not use `eps`.
        `F.normalize` uses axis 1 unless you pass `dim`: it was written for (batch, features). {}Each token is
        normalized separately. Which axis holds the features of a token?"""
        return F.normalize(x, dim=1) * x.shape[-1] ** power * weight


rms_norm.wrong(RootAndEps, stage="normalized")
