"""Chapter 6: layer norm, RMS norm, the feed-forward layer, residual connections with a norm, and a whole stack."""

import torch
from torch import nn
from torch.nn import functional as F

from .exercise import exercise

# Layer norm and RMS norm


def _tokens(draw, batch=2, seq=7, d_model=5):
    x = 3 + 8 * draw(batch, seq, d_model)
    return x, draw(d_model), draw(d_model), 0.1  # an eps so large that its place shows


def mean_of_token(x):
    return x.mean(dim=-1, keepdim=True)


def biased(x):
    return x.var(dim=-1, correction=0, keepdim=True)


def eps_inside(numbers, spread, eps):
    return numbers / (spread + eps).sqrt()


def scaled_and_shifted(normalized, weight, bias):
    return normalized * weight + bias


@exercise(
    inputs=_tokens,
    axes={"x": "batch seq d_model", "weight": "d_model", "bias": "d_model", "return": "batch seq d_model"},
    hints=(
        "Write 1, 7, 9, 15 on paper and normalize them by hand. Which numbers share one mean, and what must its "
        "shape be so that it can be subtracted from `x`?",
        "Only the last axis is shared over; `keepdim=True` leaves it there with size 1. The variance is the mean of "
        "the squared distances, without a minus 1, and eps is added to it before the root.",
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
def _(draw):
    """a token whose features are all equal"""
    x, *others = _tokens(draw, seq=3)
    x[1, 2] = 2.0
    return x, *others


@layer_norm.probe
def _(draw):
    """features near 1100"""
    # The squares are all rounded up, and sums of them are exact: mean(x²) − mean(x)² is wrong in the same way whatever
    # the order of the sums.
    near = [[1109.5625, 1106.4375, 1097.5625, 1098.4375], [1090.4375, 1098.4375, 1101.5625, 1093.5625]]
    return torch.tensor([near]), draw(4), draw(4), 0.1


@layer_norm.probe
def _(draw):
    """one feature in each token"""
    return draw(2, 7, 1), draw(1), draw(1), 0.1


@layer_norm.probe(plain=True)
def _(draw):
    """tokens whose variance is below eps"""
    means = torch.tensor([0.0, 3.0])[:, None, None]
    return means + 0.28 * F.layer_norm(draw(2, 4, 6), (6,)), draw(6), draw(6), 0.1


@layer_norm.equivalent
def by_pytorch(x, weight, bias, eps):
    return F.layer_norm(x, weight.shape, weight, bias, eps)


@layer_norm.equivalent
def token_by_token(x, weight, bias, eps):
    rows = [
        (token - token.mean()) / ((token - token.mean()).pow(2).sum() / len(token) + eps) ** 0.5
        for token in x.flatten(0, 1)
    ]
    return torch.stack(rows).view(x.shape) * weight + bias


@layer_norm.equivalent
def by_var_mean(x, weight, bias, eps):
    variance, mean = torch.var_mean(x, dim=2, unbiased=False)
    return torch.addcmul(bias, (x - mean.unsqueeze(2)) * torch.rsqrt(variance.unsqueeze(2) + eps), weight)


@layer_norm.equivalent
def by_matrices(x, weight, bias, eps):
    d_model = x.shape[-1]
    centre = torch.eye(d_model, dtype=x.dtype, device=x.device) - 1 / d_model  # removes the mean
    distance = torch.einsum("bsd,de->bse", x, centre)
    variance = torch.einsum("bse,bse->bs", distance, distance) / d_model
    return distance / (variance[..., None] + eps).sqrt() @ torch.diag(weight) + bias


@layer_norm.property
def _(function, x, weight, bias, eps):
    """With weight 1 and bias 0, the features of every token have the mean 0."""
    y = function(x, torch.ones_like(weight), torch.zeros_like(bias), eps)
    return bool(y.mean(dim=-1).abs().max() < 1e-4)


@layer_norm.property
def _(function, x, weight, bias, eps):
    """A change of one token changes the result of that token alone."""
    changed = x.clone()
    changed[0, -1] *= 10
    return bool(torch.allclose(function(changed, weight, bias, eps)[0, 0], function(x, weight, bias, eps)[0, 0]))


def _digits_kept(function, x, *others):
    """In float64, a change in the tenth digit of `x` shows in the result. It is lost where float32 is on the way."""
    x, *others = (item.double() if isinstance(item, torch.Tensor) else item for item in (x, *others))
    nearby = x + 1e-9 * torch.linspace(1, 2, x.numel(), dtype=x.dtype, device=x.device).view(x.shape)
    return not torch.equal(function(x, *others), function(nearby, *others))


layer_norm.property(_digits_kept)


def _over(x, weight, bias, eps, dims, correction=0):
    distance = x - x.mean(dims, keepdim=True)
    count = torch.ones_like(x).sum(dims, keepdim=True) - correction
    variance = distance.square().sum(dims, keepdim=True) / count
    return distance / (variance + eps).sqrt() * weight + bias


@layer_norm.mistake
def over_sequence(x, weight, bias, eps):
    """Mean and variance are taken over `seq`: each feature shares them with the same feature of the other tokens of its
    sentence. That is instance norm. In a decoder it would let every token see the later ones. A layer norm looks at one
    token at a time: which axis is left to share over?"""
    return _over(x, weight, bias, eps, 1)


@layer_norm.mistake
def over_batch(x, weight, bias, eps):
    """Mean and variance are taken over `batch`, axis 0: each number shares them with the number at the same place in
    the other sentences. A sentence alone in its batch would come out as `bias` everywhere. A layer norm looks at one
    token at a time: which axis is left to share over?"""
    return _over(x, weight, bias, eps, 0)


@layer_norm.mistake
def over_batch_and_sequence(x, weight, bias, eps):
    """Mean and variance are taken over `batch` and `seq`, one of each for a feature: that is batch norm. A token then
    depends on its neighbours in the batch and on padding, which is why Transformers do without it. A layer norm looks
    at one token at a time: which axis is left to share over?"""
    return _over(x, weight, bias, eps, (0, 1))


@layer_norm.mistake
def over_all_but_batch(x, weight, bias, eps):
    """Mean and variance are taken over `seq` and `d_model` together, one of each for a sentence. For pictures this is
    called layer norm, so it stands in many explanations; in a Transformer the name means something else. Count the
    means: (2, 7, 5) should have 14 of them, one for each token, and here there are 2."""
    return _over(x, weight, bias, eps, (1, 2))


@layer_norm.mistake
def over_everything(x, weight, bias, eps):
    """One mean and one variance serve the whole tensor, as `mean()` and `var()` give them where no axis is named. Every
    number then depends on every other. Count the means: (2, 7, 5) should have 14 of them, one for each token."""
    return _over(x, weight, bias, eps, (0, 1, 2))


@layer_norm.mistake
def over_sequence_and_unbiased(x, weight, bias, eps):
    """Two things at once. Mean and variance are taken over `seq`, so that each feature shares them with the same
    feature of the other tokens; a layer norm looks at one token at a time. And the variance divides by one less than
    there are numbers, as `var` and `std` do unless they are told otherwise. Which axis is left to share over?"""
    return _over(x, weight, bias, eps, 1, correction=1)


@layer_norm.mistake
def over_all_but_batch_and_unbiased(x, weight, bias, eps):
    """Two things at once. Mean and variance are taken over `seq` and `d_model` together, one of each for a sentence; in
    a Transformer each token has its own. And the variance divides by one less than there are numbers, as `var` and
    `std` do unless they are told otherwise."""
    return _over(x, weight, bias, eps, (1, 2), correction=1)


@layer_norm.mistake
def over_everything_and_unbiased(x, weight, bias, eps):
    """Two things at once. One mean and one variance serve the whole tensor, as `mean()` and `var()` give them where no
    axis is named; each token should have its own. And the variance divides by one less than there are numbers, as `var`
    does unless it is told otherwise."""
    return _over(x, weight, bias, eps, (0, 1, 2), correction=1)


@layer_norm.mistake
def rms_norm_instead(x, weight, bias, eps):
    """This is RMS norm with a bias: the mean is neither subtracted nor left out of the spread. So `x` and `x + 5` come
    out differently, where layer norm makes the same of both. Look at both places in the formula where the mean
    stands."""
    return x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight + bias


@layer_norm.mistake(part="mean")
def mean_kept(x):
    """You divide by the right number, but the mean has not been subtracted before: with weight 1 and bias 0, the tokens
    come out with a mean that is not 0. Adding 5 to `x` must change nothing at all. Look at what you divide."""
    return torch.zeros_like(x[..., :1])


@layer_norm.mistake(part="variance")
def unbiased(x):
    """Your variance divides by `d_model - 1` instead of `d_model`. That is the unbiased variance, which `var` and `std`
    give unless they are told otherwise; it guesses at a population, and a norm guesses nothing. With 4 features the
    normalized numbers are 13 per cent too small, with 512 a thousandth, so many features hide it."""
    return summed(x) / (x.shape[-1] - 1)


@layer_norm.mistake(part="variance")
def squares_about_zero(x):
    """What stands under your root is the mean of the squares of `x`, not of its distances from the mean. Both are the
    same where the mean is 0, and only there. For 1, 7, 9, 15 it is 89 instead of 25. Look at what you square."""
    return x.square().mean(dim=-1, keepdim=True)


@layer_norm.mistake(part="variance")
def mean_of_squares_less_square_of_mean(x):
    """Your variance loses digits where the mean is large, as the mean of the squares less the square of the mean does.
    Near 1,100 the squares lie near 1,210,000, where float32 counts in steps of an eighth, and a variance of 18.44, as
    in the check's second token, comes out as 18.5; near 16,384 one of 2.5 comes out as 0. On paper the two formulas are
    equal. Do you square first, or subtract?"""
    return (x.square().mean(dim=-1, keepdim=True) - x.mean(dim=-1, keepdim=True).square()).clamp(min=0)


@layer_norm.mistake(part="variance")
def summed(x):
    """You add up the squared distances and do not divide by how many there are. The divisor then grows with the
    number of features: before weight and bias, every token has the length 1 instead of about √d_model. The variance
    is a mean."""
    return (x - x.mean(dim=-1, keepdim=True)).square().sum(dim=-1, keepdim=True)


@layer_norm.mistake(part="variance")
def root_twice(x):
    """You take a root of the standard deviation, which is a root already. For 1, 7, 9, 15 that divides by about √5 =
    2.24 instead of 5. Note 004 makes the same slip: its σ is already the standard deviation, and it divides by √σ. Is
    what you add eps to the variance, or its root?"""
    return x.std(dim=-1, correction=0, keepdim=True)


@layer_norm.mistake(part="output")
def no_weight(normalized, weight, bias):
    """Your result does not depend on `weight`. In a new layer it is 1 everywhere, so that nobody would notice; a
    trained one has learned another factor for each feature. Look at what happens after the division."""
    return normalized + bias


@layer_norm.mistake(part="output")
def no_bias(normalized, weight, bias):
    """Your result does not depend on `bias`. In a new layer it is 0 everywhere, so that nobody would notice; a trained
    one has learned a shift for each feature. Look at what happens after the division."""
    return normalized * weight


@layer_norm.mistake(part="output")
def neither_weight_nor_bias(normalized, weight, bias):
    """You standardize the tokens, and stop there: the result depends neither on `weight` nor on `bias`. In a new layer
    they are 1 and 0, so that nobody would notice. The learned factor and shift of each feature come last."""
    return normalized


@layer_norm.mistake(part="output")
def weight_and_bias_swapped(normalized, weight, bias):
    """`weight` and `bias` have changed places: you multiply by the bias and add the weight. Both have the shape
    (d_model,), so nothing complains. Which of them is 1 in a new layer, and which is 0?"""
    return normalized * bias + weight


@layer_norm.mistake(part="output")
def bias_first(normalized, weight, bias):
    """The bias is added before the weight multiplies, so that the weight scales the bias as well. In a new layer, with
    weight 1 and bias 0, it looks right. Put in a token of equal numbers: what comes out must be the bias itself."""
    return (normalized + bias) * weight


@layer_norm.mistake(part="output")
def one_plus_weight(normalized, weight, bias):
    """You multiply by 1 + weight. Some models store their factor that way, as what it differs from 1 by (Gemma does);
    here, as in PyTorch's layer, `weight` is the factor itself and begins at 1."""
    return normalized * (1 + weight) + bias


@layer_norm.mistake
def no_axis_kept(x, weight, bias, eps):
    """Your mean, or your variance, has lost the axis that it was taken over: its last axis is `seq`, and meets
    `d_model` when the two are combined. Broadcasting aligns shapes from the right; had the two sizes been equal, it
    would have mixed tokens without a word. Which argument of `mean` leaves the axis there, with size 1?"""
    return (x - x.mean(dim=-1)) / (x.var(dim=-1, correction=0) + eps).sqrt() * weight + bias


def _tokens_and_weight(draw, batch=2, seq=7, d_model=5):
    x, weight, _, eps = _tokens(draw, batch, seq, d_model)
    return x, weight, eps


def mean_square_of_token(x):
    return x.square().mean(dim=-1, keepdim=True)


def scaled(normalized, weight):
    return normalized * weight


@exercise(
    inputs=_tokens_and_weight,
    axes={"x": "batch seq d_model", "weight": "d_model", "return": "batch seq d_model"},
    hints=(
        "Normalize 1, 7, 1, 7 by hand: it becomes 0.2, 1.4, 0.2, 1.4. Which number was divided by, and is the mean "
        "needed anywhere?",
        "Read the name from the right: square, mean, root. The mean goes over the features of one token, and eps is "
        "added before the root.",
        "`mean_square = (…).mean(…)`, `return … / (… + …).sqrt() * …`",
    ),
)
def rms_norm(x, weight, eps, *, mean_square=mean_square_of_token, normalized=eps_inside, output=scaled):
    """Divide every token by the root of its features' mean square, and scale: (batch, seq, d_model) stays."""
    return output(normalized(x, mean_square(x), eps), weight)


@rms_norm.probe(plain=True)
def _(draw):
    """a token whose features are all 0"""
    x, *others = _tokens_and_weight(draw, seq=3)
    x[1, 2] = 0.0
    return x, *others


@rms_norm.probe(plain=True)
def _(draw):
    """tokens in the hundreds"""
    return 300 * draw(2, 4, 6), draw(6), 0.1


@rms_norm.probe(plain=True)
def _(draw):
    """tokens whose mean square is below eps"""
    return 0.2 * F.rms_norm(draw(2, 7, 2), (2,)), draw(2), 0.1


@rms_norm.equivalent
def by_pytorch_rms_norm(x, weight, eps):
    return F.rms_norm(x, weight.shape, weight, eps)


@rms_norm.equivalent
def by_rsqrt(x, weight, eps):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


@rms_norm.equivalent
def by_length(x, weight, eps):
    d_model = x.shape[2]
    length = torch.linalg.vector_norm(x, dim=2, keepdim=True)
    return x * weight * d_model**0.5 / (length**2 + d_model * eps).sqrt()


@rms_norm.equivalent
def by_einsum(x, weight, eps):
    mean_square = torch.einsum("bsd,bsd->bs", x, x) / x.shape[-1]
    return torch.einsum("bsd,bs,d->bsd", x, (mean_square + eps) ** -0.5, weight)


@rms_norm.property
def _(function, x, weight, eps):
    """With weight 1 and eps 0, the mean square of every token's features is 1."""
    y = function(x, torch.ones_like(weight), 0.0)
    return bool(torch.allclose(y.square().mean(dim=-1), torch.ones(()), atol=1e-4))


@rms_norm.property
def _(function, x, weight, eps):
    """A change of one token changes the result of that token alone."""
    changed = x.clone()
    changed[0, -1] *= 10
    return bool(torch.allclose(function(changed, weight, eps)[0, 0], function(x, weight, eps)[0, 0]))


rms_norm.property(_digits_kept)


@rms_norm.mistake
def layer_norm_instead(x, weight, eps):
    """This is layer norm: the mean is subtracted before the division. RMS norm forgets the size of a token only and
    leaves its mean alone, so 1, 7, 1, 7 must become 0.2, 1.4, 0.2, 1.4 and not −1, 1, −1, 1. Look at what you divide,
    and at what you square."""
    return F.layer_norm(x, weight.shape, weight, None, eps)


@rms_norm.mistake
def mean_subtracted_above(x, weight, eps):
    """You subtract the mean from what you divide, and divide by the root of the mean square of `x` as it was. RMS norm
    has no mean in it anywhere: 1, 7, 1, 7 must become 0.2, 1.4, 0.2, 1.4, with the mean still in it."""
    return (x - x.mean(dim=-1, keepdim=True)) / (mean_square_of_token(x) + eps).sqrt() * weight


@rms_norm.mistake(part="mean_square")
def variance_instead(x):
    """You divide by the standard deviation, about the mean. The mean square needs no mean: for 1, 7, 1, 7 it is 25, and
    the variance is 9. The two agree only for tokens whose mean is 0. Look at what you square."""
    return biased(x)


@rms_norm.mistake(part="mean_square")
def unbiased_variance_instead(x):
    """You divide by a standard deviation, and by the unbiased one, as `std()` and `var()` give it. The mean square
    needs no mean and no `d_model - 1`: for 1, 7, 1, 7 it is 25, and this variance is 12. Look at what you square."""
    return unbiased(x)


@rms_norm.mistake(part="mean_square")
def sum_of_squares(x):
    """You divide by the length of the token, the root of the sum of its squares. Before the weight, every token then
    has the length 1, where RMS norm gives it √d_model, so that features are about 1, however many there are. The M in
    RMS is missing."""
    return x.square().sum(dim=-1, keepdim=True)


@rms_norm.mistake
def unit_length(x, weight, eps):
    """Before the weight, you give every token the length 1, as `F.normalize` does, and the argument `eps` is not used.
    RMS norm divides by the root of the mean of the squares, which gives the length √d_model, so that features are about
    1, however many there are."""
    return F.normalize(x, dim=-1) * weight


@rms_norm.mistake(part="mean_square")
def square_of_mean(x):
    """You take the mean first and square it afterwards. Positive and negative features cancel in a mean, and the
    divisor comes near 0 although the token is large: for −3 and 3 it is 0 instead of 3. In which order does the name
    say it, read from the right?"""
    return x.mean(dim=-1, keepdim=True).square()


@rms_norm.mistake(part="mean_square")
def mean_square_over_sequence(x):
    """The mean square is taken over `seq`: a feature shares it with the same feature of the other tokens, later ones
    too. In a decoder the future would leak through it. Each token is normalized by itself: which axis is left?"""
    return x.square().mean(dim=1, keepdim=True)


@rms_norm.mistake(part="mean_square")
def mean_square_over_sentence(x):
    """The mean square is taken over `seq` and `d_model` together, one for each sentence. Long tokens stay longer than
    short ones then. Count: (2, 7, 5) should have 14 mean squares, one for each token."""
    return x.square().mean(dim=(1, 2), keepdim=True)


@rms_norm.mistake(part="mean_square")
def mean_square_of_everything(x):
    """One mean square serves the whole tensor, as `mean()` gives it where no axis is named. Long tokens stay longer
    than short ones then, and each depends on all others. Count: (2, 7, 5) should have 14 mean squares, one for each
    token."""
    return x.square().mean()


@rms_norm.mistake(part="output")
def no_factor(normalized, weight):
    """Your result does not depend on `weight`. In a new layer it is 1 everywhere, so that nobody would notice; a
    trained one has learned another factor for each feature. Look at what happens after the division."""
    return normalized


@rms_norm.mistake(part="output")
def weight_added(normalized, weight):
    """You add the weight where it multiplies. RMS norm has no shift at all: a token of zeros must stay zero. A new
    layer's weight is 1, the number that changes nothing: for which of the two operations is that so?"""
    return normalized + weight


@rms_norm.mistake(part="output")
def one_plus_factor(normalized, weight):
    """You multiply by 1 + weight. Some models store their factor that way, as what it differs from 1 by (Gemma does);
    here, as in PyTorch's layer, `weight` is the factor itself and begins at 1."""
    return normalized * (1 + weight)


@rms_norm.mistake
def no_axis_left(x, weight, eps):
    """Your mean square has lost the axis that it was taken over: its last axis is `seq`, and meets `d_model` in the
    division. Broadcasting aligns shapes from the right; had the two sizes been equal, it would have mixed tokens
    without a word. Which argument of `mean` leaves the axis there, with size 1?"""
    return x / (x.square().mean(dim=-1) + eps).sqrt() * weight


@layer_norm.mistake(part="normalized")
@rms_norm.mistake(part="normalized")
def eps_outside(numbers, spread, eps):
    """You add eps after the root has been taken. That prevents 0/0 as well, but gives other numbers where the mean
    under the root is small: where it is 0, an eps of 0.00001 under the root makes the divisor 0.003; behind it,
    0.00001. In which order does the formula have them? The check's eps is large, so that this shows."""
    return numbers / (spread.sqrt() + eps)


@layer_norm.mistake(part="normalized")
@rms_norm.mistake(part="normalized")
def no_root(numbers, spread, eps):
    """You divide by a mean of squares and have not taken its root. A token three times as large has a mean of squares
    nine times as large, whose root is three times as large. Without the root it comes out at a third, where it should
    come out the same. Numbers of size 1 hide it."""
    return numbers / (spread + eps)


@layer_norm.mistake(part="normalized")
@rms_norm.mistake(part="normalized")
def no_eps(numbers, spread, eps):
    """Your result does not depend on `eps`. Where the mean under the root is 0 you compute 0/0, which is NaN: layer
    norm for a token of equal features, RMS norm for a token of zeros. The next attention spreads it over the whole
    sentence. Look at the formula under the root."""
    return numbers / spread.sqrt()


@layer_norm.mistake(part="normalized")
@rms_norm.mistake(part="normalized")
def eps_as_floor(numbers, spread, eps):
    """Your eps is a lower limit of what stands under the root: the larger of the two is taken. The formula adds it,
    always, which changes the result a little everywhere. Weights trained with one do not quite fit the other."""
    return numbers / spread.clamp(min=eps).sqrt()


def _with_fixed_eps(name, fixed):
    """Add one mistake to both: a small eps in the argument's place."""
    text = """Your result does not depend on the argument `eps`: it is as if a small number of your own, or a default,
    stood in its place. Models differ in it (0.00001 for PyTorch's layer norm, 0.000000000001 for BERT), and the weights
    of one need its own. The check's eps is large, so that this shows."""
    for norm in (layer_norm, rms_norm):

        def with_fixed_eps(x, *parameters, norm=norm):
            return norm.reference(x, *parameters[:-1], fixed)

        with_fixed_eps.__name__, with_fixed_eps.__doc__ = name, text
        norm.mistake(with_fixed_eps)


_with_fixed_eps("eps_always_1e_5", 1e-5)
_with_fixed_eps("eps_always_1e_6", 1e-6)


# The feed-forward layer


def _token_and_layers(draw, batch=2, seq=7, d_model=5, d_ff=12):
    return draw(batch, seq, d_model), draw(d_ff, d_model), draw(d_ff), draw(d_model, d_ff), draw(d_model)


def first_map(x, w1, b1):
    return x @ w1.T + b1


def positive_part(hidden):
    return hidden.relu()


def second_map(activated, w2, b2):
    return activated @ w2.T + b2


@exercise(
    inputs=_token_and_layers,
    axes={
        "x": "batch seq d_model",
        "w1": "d_ff d_model",
        "b1": "d_ff",
        "w2": "d_model d_ff",
        "b2": "d_model",
        "return": "batch seq d_model",
    },
    hints=(
        "Write the shapes down: `x` ends in d_model, `w1` is stored as (d_ff, d_model). What must happen to `w1` "
        "before the product, and which shape comes out?",
        "Linear, ReLU, linear: the ReLU stands between the two maps and nowhere else, and each bias belongs to its "
        "own map. `F.linear(x, weight, bias)` takes weights as they are stored.",
        "`hidden = x @ … + …`, `return ….relu() @ … + …`",
    ),
)
def feed_forward(x, w1, b1, w2, b2, *, hidden=first_map, activated=positive_part, output=second_map):
    """Two linear maps with a ReLU between, for every position by itself: (batch, seq, d_model) stays."""
    return output(activated(hidden(x, w1, b1)), w2, b2)


feed_forward.example("one token", batch=1, seq=1)
feed_forward.example("d_ff smaller than d_model", d_model=6, d_ff=3, plain=True)


@feed_forward.equivalent
def by_linear(x, w1, b1, w2, b2):
    return F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)


@feed_forward.equivalent
def by_einsum_and_clamp(x, w1, b1, w2, b2):
    hidden = torch.einsum("bsd,fd->bsf", x, w1) + b1
    return torch.einsum("bsf,df->bsd", hidden.clamp(min=0), w2) + b2


@feed_forward.equivalent
def position_by_position(x, w1, b1, w2, b2):
    y = torch.empty_like(x)
    for sentence in range(x.shape[0]):
        for position in range(x.shape[1]):
            hidden = w1 @ x[sentence, position] + b1
            y[sentence, position] = w2 @ (hidden * (hidden > 0)) + b2
    return y


@feed_forward.equivalent
def with_ones_for_the_bias(x, w1, b1, w2, b2):
    one = torch.ones_like(x[..., :1])
    hidden = torch.cat([x, one], -1) @ torch.cat([w1, b1[:, None]], -1).mT
    return torch.cat([(hidden + hidden.abs()) / 2, one], -1) @ torch.cat([w2, b2[:, None]], -1).mT


@feed_forward.property
def _(function, x, *parameters):
    """The layer is not linear: f(a + b) + f(0) differs from f(a) + f(b)."""
    a, b, zero = x, x.flip(0), torch.zeros_like(x)
    one_side = function(a + b, *parameters) + function(zero, *parameters)
    return not torch.allclose(one_side, function(a, *parameters) + function(b, *parameters), atol=1e-3)


@feed_forward.property
def _(function, x, *parameters):
    """Some numbers of the result are negative: nothing stands behind the second map."""
    return bool((function(x, *parameters) < 0).any())


@feed_forward.mistake(part="activated")
def no_activation(hidden):
    """There is no ReLU between your two maps. Two linear maps in a row are one linear map, however wide the middle is:
    the layer's 2 · d_model · d_ff weights can do no more than d_model² weights could. Look at what becomes of the first
    map's result."""
    return hidden


@feed_forward.mistake
def activation_at_the_end(x, w1, b1, w2, b2):
    """The ReLU stands behind both maps instead of between them. So the maps are one linear map, and no result is ever
    negative: in a block, such a layer can only add to the features, never take away. Where is the middle?"""
    return second_map(first_map(x, w1, b1), w2, b2).relu()


@feed_forward.mistake(part="output")
def activation_twice(activated, w2, b2):
    """There is a ReLU between the maps, and another one behind the second. No result is ever negative then: in a block,
    such a layer can only add to the features, never take away. Convolutional networks end their layers so; this one
    ends in a linear map."""
    return second_map(activated, w2, b2).relu()


@feed_forward.mistake
def activation_first(x, w1, b1, w2, b2):
    """The ReLU acts on `x`, before the first map, and nothing stands between the maps. A token's negative features are
    lost before anything has looked at them, and the rest is linear. Which result should it act on?"""
    return second_map(first_map(x.relu(), w1, b1), w2, b2)


@feed_forward.mistake(part="activated")
def gelu(hidden):
    """Your activation is GELU. BERT and GPT-2 have it in this place; the layer here is that of the paper of 2017, with
    max(0, ·). The two agree at 0 and far from it, and differ most around −1 and 1: for −1 GELU gives −0.16, ReLU 0."""
    return F.gelu(hidden)


@feed_forward.mistake(part="activated")
def gelu_by_tanh(hidden):
    """Your activation is GELU, in the approximation by tanh that GPT-2 uses. The layer here is that of the paper of
    2017, with max(0, ·). The two agree at 0 and far from it, and differ most around −1 and 1: for −1 GELU gives −0.16,
    and ReLU 0."""
    return F.gelu(hidden, approximate="tanh")


@feed_forward.mistake(part="activated")
def silu(hidden):
    """Your activation is SiLU, also called swish: x times its sigmoid. Many language models have it in this place; the
    layer here is that of the paper of 2017, with max(0, ·). SiLU gives −0.27 for −1."""
    return F.silu(hidden)


@feed_forward.mistake(part="activated")
def leaky(hidden):
    """Your activation lets a hundredth of the negative numbers through: a leaky ReLU. The layer here has max(0, ·),
    which makes 0 of all of them."""
    return F.leaky_relu(hidden)


@feed_forward.mistake(part="activated")
def sigmoid(hidden):
    """Your activation is the sigmoid, which lies between 0 and 1. However strongly a hidden feature responds, no more
    than 1 gets through. The layer here has max(0, ·), without an upper end."""
    return hidden.sigmoid()


@feed_forward.mistake(part="activated")
def tanh(hidden):
    """Your activation is tanh, which lies between −1 and 1 and lets negative numbers through. The layer here has
    max(0, ·): nothing below 0, and no upper end."""
    return hidden.tanh()


@feed_forward.mistake(part="activated")
def softmax_between(hidden):
    """Between your maps stands a softmax: the hidden features of a token become shares that sum to 1, as attention's
    weights do. Here they do not compete: each one is kept where it is positive, by itself."""
    return hidden.softmax(dim=-1)


@feed_forward.mistake(part="activated")
def negative_part(hidden):
    """You keep the negative hidden features and make 0 of the positive ones: the minimum with 0, or a limit at the
    wrong end. ReLU is the maximum with 0."""
    return hidden.clamp(max=0)


@feed_forward.mistake(part="activated")
def absolute(hidden):
    """You take the absolute value of the hidden features: the negative ones come through with their sign turned. ReLU
    makes 0 of them."""
    return hidden.abs()


@feed_forward.mistake(part="hidden")
def no_first_bias(x, w1, b1):
    """Your result does not depend on `b1`. Without it every hidden feature bends at 0; the bias moves the bend to where
    the data need it. Look at the first map."""
    return x @ w1.T


@feed_forward.mistake(part="output")
def no_second_bias(activated, w2, b2):
    """Your result does not depend on `b2`. Every position lacks the same shift: put in a token for which no hidden
    feature is positive, and the result must be `b2`. Look at the second map."""
    return activated @ w2.T


@feed_forward.mistake
def no_biases(x, w1, b1, w2, b2):
    """Your result depends on neither bias. The second one shifts every result; the first one moves the point where each
    hidden feature bends, so neither can stand in for the other. Each map has one."""
    return (x @ w1.T).relu() @ w2.T


@feed_forward.mistake
def first_bias_behind_the_activation(x, w1, b1, w2, b2):
    """The first bias is added behind the ReLU, as note 004's formula has it. There it does nothing that `b2` could not
    do; inside, it moves the point where each hidden feature bends. To which map does `b1` belong?"""
    return second_map((x @ w1.T).relu() + b1, w2, b2)


@feed_forward.mistake
def weights_in_each_others_place(x, w1, b1, w2, b2):
    """You multiply by `w2` first and by `w1` second. As they are stored, (out, in), their shapes fit that way round
    without a transpose, so nothing complains. Which weight belongs to which map, and what makes (d_ff, d_model) fit
    behind `x`?"""
    return (x @ w2 + b1).relu() @ w1 + b2


@feed_forward.mistake
def weights_reshaped(x, w1, b1, w2, b2):
    """The shapes of your weights fit, but their numbers are at the wrong places: they were reshaped from (out, in) to
    (in, out), not transposed. `view` and `reshape` never move an axis. Look at how you turn a weight around."""
    return (x @ w1.reshape(w1.shape[::-1]) + b1).relu() @ w2.reshape(w2.shape[::-1]) + b2


@feed_forward.mistake(part="hidden")
def first_weight_not_transposed(x, w1, b1):
    """The first product does not fit: `x` ends in d_model, and `w1` as it is stored, (d_ff, d_model), begins with d_ff.
    PyTorch stores weights as (out, in), one row for each feature that comes out. The inner sizes of a product must be
    equal: what turns the weight around?"""
    return x @ w1 + b1


@feed_forward.mistake(part="output")
def second_weight_not_transposed(activated, w2, b2):
    """The second product does not fit: the hidden features end in d_ff, and `w2` as it is stored, (d_model, d_ff),
    begins with d_model. PyTorch stores weights as (out, in), one row for each feature that comes out. What did you do
    with `w1`?"""
    return activated @ w2 + b2


@feed_forward.mistake(part="hidden")
def weight_on_the_left(x, w1, b1):
    """The weight stands on the left of `x`, as in formulas where a token is a column. Here tokens are rows: `x` ends in
    d_model, and a product joins the last axis of what stands on the left with the last but one of what stands on the
    right. Which of the two must be on the left, and what has to be turned around?"""
    return w1 @ x + b1


@feed_forward.mistake
def biases_swapped(x, w1, b1, w2, b2):
    """The biases have changed places: `b2`, which has d_model numbers, is added behind the first map, which puts out
    d_ff features. A bias has one number for each feature that its map puts out. Look at the two shapes."""
    return (x @ w1.T + b2).relu() @ w2.T + b1


@feed_forward.mistake
def input_added(x, w1, b1, w2, b2):
    """You add `x` to the result. The residual connection belongs to the block around this layer: added in both places,
    every token would count twice. Here the change alone is returned."""
    return x + second_map(first_map(x, w1, b1).relu(), w2, b2)


# Residual connections with a norm


def _sublayer(x):
    """Some part that changes the features and looks at the token before."""
    return (x.flip(-1) + x.roll(1, dims=-2)).tanh() + 0.3


def _norm(x):
    """Some norm: weights that differ keep it from being its own inverse, and eps lets the size of its input show."""
    weight = torch.linspace(0.5, 2, x.shape[-1], dtype=x.dtype, device=x.device)
    return F.layer_norm(x, x.shape[-1:], weight, 0.2 * weight, 0.1)


def _nothing(x):
    return torch.zeros_like(x)


def _unchanged(x):
    return x


def _connected(draw, batch=2, seq=7, d_model=5):
    return 1 + 2 * draw(batch, seq, d_model), _sublayer, _norm


def change_of(x, sublayer):
    return sublayer(x)


def added(x, change):
    return x + change


def norm_of(x, norm):
    return norm(x)


AXES = {"x": "batch seq d_model", "return": "batch seq d_model"}


@exercise(
    inputs=_connected,
    axes=AXES,
    hints=(
        "Post-norm: the norm comes after something. After what, and what has been added up by then?",
        "The sublayer gets the token as it is; its result is a change. The sum of both goes through the norm, which "
        "is the last thing that happens.",
        "`return norm(…)`, where the … is a sum of two, and one of the two is `sublayer(…)`",
    ),
)
def post_norm(x, sublayer, norm, *, change=change_of, total=added, output=norm_of):
    """Connect a part as the paper of 2017 does, with the norm behind the sum: (batch, seq, d_model) stays."""
    return output(total(x, change(x, sublayer)), norm)


@exercise(
    inputs=_connected,
    axes=AXES,
    hints=(
        "Pre-norm: the norm comes before something. Before what, and is there a path from input to output that meets "
        "no norm?",
        "The normalized tokens are for the sublayer only. What is added to its result is `x` as it came in.",
        "`return … + …(…(…))`, with `x` in two of the places",
    ),
)
def pre_norm(x, sublayer, norm, *, normalized=norm_of, change=change_of, total=added):
    """Connect a part as GPT-2 does, with the norm in front of the part: (batch, seq, d_model) stays."""
    return total(x, change(normalized(x, norm), sublayer))


@post_norm.probe(plain=True)
@pre_norm.probe(plain=True)
def _(draw):
    """a sublayer that returns zeros"""
    return draw(2, 3, 5), _nothing, _norm


@post_norm.probe
@pre_norm.probe
def _(draw):
    """a sublayer and a norm that return their input"""
    return draw(2, 3, 5), _unchanged, _unchanged


@post_norm.equivalent
def change_first(x, sublayer, norm):
    change = sublayer(x)
    return norm(change + x)


@post_norm.equivalent
def on_a_copy(x, sublayer, norm):
    y = x.clone()
    y += sublayer(x)
    return norm(y)


@post_norm.equivalent
def by_stack(x, sublayer, norm):
    return norm(torch.stack([x, sublayer(x)]).sum(dim=0))


@pre_norm.equivalent
def step_by_step(x, sublayer, norm):
    residual = x
    x = norm(x)
    x = sublayer(x)
    return torch.add(x, residual)


@pre_norm.equivalent
def on_a_copy_of_x(x, sublayer, norm):
    y = x.clone()
    y += sublayer(norm(x))
    return y


@pre_norm.equivalent
def by_einsum_of_both(x, sublayer, norm):
    return torch.einsum("nbsd->bsd", torch.stack([sublayer(norm(x)), x]))


@post_norm.property
def _(function, x, sublayer, norm):
    """With a sublayer that returns zeros, the norm of `x` comes out."""
    return bool(torch.allclose(function(x, _nothing, norm), norm(x), atol=1e-5))


@post_norm.property
def _(function, x, sublayer, norm):
    """With a norm that returns its input, `x + sublayer(x)` comes out."""
    return bool(torch.allclose(function(x, sublayer, _unchanged), x + sublayer(x), atol=1e-5))


@pre_norm.property
def _(function, x, sublayer, norm):
    """With a sublayer that returns zeros, `x` comes out untouched."""
    return bool(torch.allclose(function(x, _nothing, norm), x, atol=1e-5))


@pre_norm.property
def _(function, x, sublayer, norm):
    """The sublayer is given tokens that have been through the norm."""
    given = []
    function(x, lambda y: given.append(y) or sublayer(y), norm)
    return any(torch.allclose(y, norm(x), atol=1e-5) for y in given)


@post_norm.mistake
def pre_norm_instead(x, sublayer, norm):
    """This is pre-norm: the norm stands in front of the sublayer, and the sum leaves without one. It runs with the same
    weights and the same shapes, but weights that were trained in post-norm do not fit. In post-norm the norm is the
    last thing that happens."""
    return x + sublayer(norm(x))


@pre_norm.mistake
def post_norm_instead(x, sublayer, norm):
    """This is post-norm: the norm acts on the sum, so that no path from input to output goes past it. In pre-norm the
    norm stands in front of the sublayer, and the sum leaves without one. Test: with a sublayer that returns zeros, `x`
    must come out untouched."""
    return norm(x + sublayer(x))


@post_norm.mistake(part="total")
@pre_norm.mistake(part="total")
def no_residual(x, change):
    """Your result has no residual connection: what came in is not added to what the sublayer made of it. With a
    sublayer that returns zeros the token is lost. In the chapter's section 6.8, 48 layers without one were still
    guessing after 25 steps. The sublayer computes a change: a change of what?"""
    return change


@post_norm.mistake
def norm_then_sublayer(x, sublayer, norm):
    """The norm comes first, the sublayer last, and nothing is added: the order of pre-norm without its residual
    connection. In post-norm the sublayer is given `x`, its result is added to `x`, and the norm is what happens
    last."""
    return sublayer(norm(x))


@pre_norm.mistake
def sublayer_then_norm(x, sublayer, norm):
    """The sublayer comes first, the norm last, and nothing is added: the order of post-norm without its residual
    connection. In pre-norm the sublayer is given the norm of `x`, and its result is added to `x`."""
    return norm(sublayer(x))


@post_norm.mistake(part="output")
def sum_not_normed(x, norm):
    """The sum is right, and no norm acts on it. Stacked, such layers make the numbers grow with every part. The norm's
    place in post-norm is behind the sum."""
    return x


@pre_norm.mistake(part="normalized")
def sublayer_given_x(x, norm):
    """The sublayer is given `x` as it is, and no norm acts anywhere. The stream grows with every layer, so each
    sublayer would be given larger numbers than the one before. The norm's place in pre-norm is in front of the
    sublayer."""
    return x


@post_norm.mistake
@pre_norm.mistake
def norm_of_the_change(x, sublayer, norm):
    """Only what the sublayer returns goes through the norm, before it is added to `x`. Some models do that (it is a
    third way, neither post-norm nor pre-norm). Say your line aloud, from the inside out: what is normalized, and when
    is the sum taken?"""
    return x + norm(sublayer(x))


@post_norm.mistake
@pre_norm.mistake
def norm_of_x_beside_the_change(x, sublayer, norm):
    """You add the norm of `x` to the sublayer's result, and the sublayer itself is given `x` as it came. So the norm
    acts on the path past the sublayer alone, and the sublayer's result leaves unnormalized. What should go through the
    norm here?"""
    return norm(x) + sublayer(x)


@pre_norm.mistake
def stream_normed(x, sublayer, norm):
    """The norm's result has taken the place of `x`: it goes into the sublayer, and it is also what the change is added
    to. So what came in is lost: with a sublayer that returns zeros, the norm of `x` comes out, where it should be `x`.
    That happens where `x = norm(x)` stands before the residual is taken."""
    x = norm(x)
    return x + sublayer(x)


@post_norm.mistake
def norm_comes_first(x, sublayer, norm):
    """The norm acts first: its result goes into the sublayer, and it is also what the change is added to. That is
    neither post-norm nor pre-norm, and the sum leaves unnormalized. In post-norm, both the sublayer and the sum get `x`
    as it came in. When does the norm act?"""
    x = norm(x)
    return x + sublayer(x)


@post_norm.mistake
@pre_norm.mistake
def norm_before_and_behind(x, sublayer, norm):
    """The norm acts twice: on what goes into the sublayer, and on the sum. That is pre-norm and post-norm at once. Each
    of them has one norm; which of your two belongs to the one asked for?"""
    return norm(x + sublayer(norm(x)))


@post_norm.mistake
def stream_normed_twice(x, sublayer, norm):
    """The norm acts first and last: `x` is replaced by its norm before anything else, and the sum goes through it
    again. In post-norm, both the sublayer and the sum get `x` as it came in. Which of the two norms is left?"""
    x = norm(x)
    return norm(x + sublayer(x))


@post_norm.mistake
def added_after_the_norm_as_well(x, sublayer, norm):
    """`x` is added twice: in the sum that goes through the norm, and once more behind it. In post-norm nothing comes
    after the norm. With a sublayer that returns zeros, the norm of `x` must come out alone."""
    return x + norm(x + sublayer(x))


@post_norm.mistake
def norm_alone_of_the_change(x, sublayer, norm):
    """You normalize `x` and the sublayer's result each by itself, and add them up. The sum of two normalized tokens is
    not normalized: its size depends on how alike they are. In post-norm one norm acts on one sum."""
    return norm(x) + norm(sublayer(x))


@pre_norm.mistake
def norm_added_as_well(x, sublayer, norm):
    """Three things are added up: `x`, the sublayer's result, and the norm of `x` as well. With a sublayer that returns
    zeros, `x` alone must come out. The norm's result is for the sublayer and for nothing else."""
    normalized = norm(x)
    return x + normalized + sublayer(normalized)


@post_norm.mistake
def sublayer_and_norm_swapped(x, sublayer, norm):
    """`sublayer` and `norm` have changed places: the norm makes the change, and the sublayer acts on the sum. Both are
    functions that keep the shape, so nothing complains. In which order do the arguments come, and which of them acts
    last?"""
    return sublayer(x + norm(x))


@post_norm.mistake
def changed_in_place(x, sublayer, norm):
    """The numbers are right, but your function changes its argument `x`: whoever called it finds the sum in their own
    tensor. `+=` does that, and so do operations whose names end in an underscore. Make the sum a new tensor."""
    x += sublayer(x)
    return norm(x)


@post_norm.mistake
def change_overwritten(x, sublayer, norm):
    """Your sum is written into the tensor that the sublayer returned. A sublayer may return its very input, as dropout
    does outside training: then `x` itself has been changed, and whoever called you finds other numbers there. `+=` and
    operations whose names end in an underscore write so. Make the sum a new tensor."""
    change = sublayer(x)
    change += x
    return norm(change)


@pre_norm.mistake
def argument_changed(x, sublayer, norm):
    """The numbers are right, but your function changes its argument `x`: whoever called it finds the sum in their own
    tensor. `+=` does that, and so do operations whose names end in an underscore. Make the sum a new tensor."""
    x += sublayer(norm(x))
    return x


@pre_norm.mistake
def change_added_to(x, sublayer, norm):
    """Your sum is written into the tensor that the sublayer returned. A sublayer may return its very input, as dropout
    does outside training, and so may a norm that is switched off: then `x` itself has been changed, and whoever called
    you finds other numbers there. `+=` and operations whose names end in an underscore write so. Make the sum a new
    tensor."""
    change = sublayer(norm(x))
    change += x
    return change


# A stack


class _Layer(nn.Module):
    """A part or a norm of a stack, with a number that tells it from the others."""

    def __init__(self, function, number):
        super().__init__()
        self.function, self.number = function, number

    def forward(self, x):
        return self.function(x + self.number)


def _stack(draw, batch=2, seq=7, d_model=5, n_layers=3):
    parts = nn.ModuleList(_Layer(_sublayer, 0.2 * layer) for layer in range(n_layers))
    norms = nn.ModuleList(_Layer(_shifted_norm, 0.5 * layer) for layer in range(n_layers))
    return 1 + 2 * draw(batch, seq, d_model), parts, norms, _final_norm


def _shifted_norm(x):
    return _norm(x) + 0.1 * x  # so that what was added before the norm shows behind it


def _final_norm(x):
    return 1.5 - _norm(x)


def in_pre_norm(x, part, norm):
    return x + part(norm(x))


@exercise(
    inputs=_stack,
    axes=AXES,
    hints=(
        "Silence every part and leave the final norm out. What must come out of a pre-norm stack, and what does come "
        "out here?",
        "Follow the name `x` through the loop: is what the part's result is added to still what came into the layer? "
        "Then count the arguments: is each of them used?",
        "`for part, norm in …:`, with one line in it that connects the two in pre-norm; after the loop, `return …(x)`",
    ),
)
def mend_stack(x, parts, norms, final_norm, *, layer=in_pre_norm, end=norm_of):
    """Run a pre-norm stack: each part with its norm, then the final norm: (batch, seq, d_model) stays."""
    for part, norm in zip(parts, norms):
        x = layer(x, part, norm)
    return end(x, final_norm)


@mend_stack.probe(plain=True)
def _(draw):
    """parts that return zeros"""
    x, _, norms, final_norm = _stack(draw)
    return x, nn.ModuleList(_Layer(_nothing, 0.0) for _ in norms), norms, final_norm


@mend_stack.equivalent
def by_numbers(x, parts, norms, final_norm):
    for layer in range(len(parts)):
        residual = x
        x = parts[layer](norms[layer](x))
        x = x + residual
    return final_norm(x)


@mend_stack.equivalent
def by_recursion(x, parts, norms, final_norm):
    def run(x, layer):
        return x if layer == len(parts) else run(x + parts[layer](norms[layer](x)), layer + 1)

    return final_norm(run(x, 0))


@mend_stack.equivalent
def by_sum_of_changes(x, parts, norms, final_norm):
    changes = [x]
    for norm, part in zip(norms, parts):
        changes.append(part(norm(sum(changes))))
    return final_norm(torch.stack(changes).sum(dim=0))


@mend_stack.property
def _(function, x, parts, norms, final_norm):
    """With parts that return zeros, the final norm of `x` comes out."""
    silent = nn.ModuleList(_Layer(_nothing, 0.0) for _ in parts)
    return bool(torch.allclose(function(x, silent, norms, final_norm), final_norm(x), atol=1e-5))


@mend_stack.property
def _(function, x, parts, norms, final_norm):
    """The final norm is called once, and its result is what comes out."""
    made = []
    y = function(x, parts, norms, lambda y: made.append(final_norm(y)) or made[-1])
    return len(made) == 1 and bool(torch.equal(y, made[0]))


@mend_stack.mistake
def as_given(x, parts, norms, final_norm):
    """This is the program as it was given, or one that does the same. Run it with parts that return zeros and a final
    norm that returns its input: a pre-norm stack gives `x` back, and this one gives something else. There are two
    faults in it, and each shows without the other."""
    for part, norm in zip(parts, norms):
        x = norm(x)
        x = x + part(x)
    return x


@mend_stack.mistake(part="layer")
def stream_through_the_norm(x, part, norm):
    """What a part's result is added to has been through the norm, so every layer loses what came in. With parts that
    return zeros, the final norm should be given `x` itself. What does the name `x` stand for in each line of the
    loop?"""
    x = norm(x)
    return x + part(x)


@mend_stack.mistake(part="end")
def no_final_norm(x, final_norm):
    """The last sum leaves the stack without any norm, so its size depends on the depth. Every layer adds to the stream,
    and nothing on its way brings it back to size. Is each of the four arguments used?"""
    return x


@mend_stack.mistake(part="layer")
def post_norm_layer(x, part, norm):
    """Each layer of yours is post-norm: its norm acts on the sum. The stack asked for is pre-norm, where a norm acts on
    what goes into the part and nothing on the sum, so that `x` has a path to the end that meets only the final norm."""
    return norm(x + part(x))


@mend_stack.mistake(part="layer")
def norm_before_and_after(x, part, norm):
    """Each norm acts twice: on what goes into the part, and on the sum. In pre-norm nothing acts on the sum, so that
    `x` has a path to the end that meets only the final norm. Which of your two norms belongs to pre-norm?"""
    return norm(x + part(norm(x)))


@mend_stack.mistake(part="layer")
def residual_dropped(x, part, norm):
    """There is no residual connection: each part's result takes the place of the stream, and is not added to it. With
    parts that return zeros, nothing is left of `x`. What is a part's result added to?"""
    return part(norm(x))


@mend_stack.mistake(part="layer")
def norm_on_the_branch(x, part, norm):
    """Each norm acts on what its part returns, and the part is given the stream as it is. In pre-norm the norm stands
    in front of the part. Read your line from the inside out: which of the two is called first?"""
    return x + norm(part(x))


@mend_stack.mistake(part="layer")
def norms_dropped(x, part, norm):
    """The norms of the layers are not used: each part is given the stream as it is, which grows with every layer. The
    final norm hides this at the end. Where does pre-norm have its norm?"""
    return x + part(x)


@mend_stack.mistake
def final_norm_in_every_layer(x, parts, norms, final_norm):
    """The final norm acts in every layer, on the sum. The stream then meets a norm on its way, which is what pre-norm
    avoids. It is called final because it comes once, behind the last layer. How far is its line indented?"""
    for part, norm in zip(parts, norms):
        x = final_norm(x + part(norm(x)))
    return x


@mend_stack.mistake
def final_norm_first(x, parts, norms, final_norm):
    """The final norm acts on what comes into the stack, and nothing acts on what leaves it. It is called final because
    it comes last: the stream has grown by then, and is brought back to size."""
    x = final_norm(x)
    for part, norm in zip(parts, norms):
        x = x + part(norm(x))
    return x


@mend_stack.mistake
def input_of_the_stack_added(x, parts, norms, final_norm):
    """Every part's result is added to the `x` that came into the stack, not to what came into its layer. So what the
    layers before have found is lost on the path past the part. Note 004 makes the same slip in a block of two parts. If
    you keep the residual under a name of its own, when must that happen?"""
    y = x
    for part, norm in zip(parts, norms):
        y = x + part(norm(y))
    return final_norm(y)


@mend_stack.mistake
def parts_given_the_input(x, parts, norms, final_norm):
    """The sum is right, but every part is given the norm of the `x` that came into the stack. The parts then work side
    by side, and none sees what the one before has found. Which name goes into the norm, and what does it stand for in
    the second round?"""
    y = x
    for part, norm in zip(parts, norms):
        y = y + part(norm(x))
    return final_norm(y)


@mend_stack.mistake
def added_once_at_the_end(x, parts, norms, final_norm):
    """The residual is added once, behind the last layer: inside the loop each part's result takes the place of the
    stream. A residual connection goes around every part, so that the part need only find a change."""
    y = x
    for part, norm in zip(parts, norms):
        y = part(norm(y))
    return final_norm(x + y)


@mend_stack.mistake
def first_norm_for_all(x, parts, norms, final_norm):
    """Every layer uses the first layer's norm. Each norm has learned a weight and a bias of its own, for its own place
    in the depth. Does your loop move on in `norms` as it does in `parts`?"""
    for part in parts:
        x = x + part(norms[0](x))
    return final_norm(x)


@mend_stack.mistake
def last_layer_only(x, parts, norms, final_norm):
    """Only one layer has left a trace, the last: the loop ends with it, and what the others made was thrown away. That
    happens where the result of each round has a new name, and the next round starts from `x` again."""
    for part, norm in zip(parts, norms):
        y = x + part(norm(x))
    return final_norm(y)


@mend_stack.mistake
def first_layer_only(x, parts, norms, final_norm):
    """Only the first layer has left a trace: your function returns when the loop has run once. How far is the line with
    `return` indented?"""
    for part, norm in zip(parts, norms):
        x = x + part(norm(x))
        return final_norm(x)


@mend_stack.mistake
def stack_changes_its_input(x, parts, norms, final_norm):
    """Both faults are mended and the numbers are right, but your function changes its argument `x`: whoever called it
    finds the stream in their own tensor. `+=` does that, for instance. The sum must be a new tensor."""
    for part, norm in zip(parts, norms):
        x += part(norm(x))
    return final_norm(x)
