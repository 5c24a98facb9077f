"""How many parameters a block has."""

from dataclasses import replace

import torch

from ...parameters import count_parameters
from ..common_mistakes import float_for_int
from ..exercise import exercise, family, with_text_of
from . import attention_parameters as attention_module
from .attention_parameters import attention_parameters, encoder_layer, no_output_projection


def attention_of_the_block(d_model, bias):
    """Count the parameters of the attention."""
    return attention_parameters.reference(d_model, bias)


def two_matrices(d_model, d_ff):
    """Count the two matrices of the feed-forward layer."""
    return 2 * d_model * d_ff


def wide_and_narrow_bias(d_model, d_ff, bias):
    """Count the feed-forward layer's two biases, one for d_ff and one for d_model features."""
    return (d_ff + d_model) * bias


def two_norms(d_model, bias):
    """Count two norms, each with a weight, and with a bias if the layer has biases."""
    return 2 * (1 + bias) * d_model


@exercise(
    inputs=lambda draw: (3, 5, True),
    axes={},
    hints=(
        "A block consists of attention, a feed-forward layer, and norms. You have already counted the parameters of "
        "attention. Which shapes do the two maps of the feed-forward layer have, and what does a norm learn?",
        "The chapter's section 7.1 counts the parameters of a block of width 4 with `d_ff = 16`, tensor by tensor. The "
        "biases have two different lengths. Which tensors would `bias=False` remove, and which would stay?",
        "`attention = attention_parameters(…)`; `weights = … * d_model * d_ff` and `biases = …` for the feed-forward "
        "layer; `norms = 2 * (…)`; then the sum",
    ),
)
def block_parameters(
    d_model,
    d_ff,
    bias,
    *,
    attention=attention_of_the_block,
    matrices=two_matrices,
    biases=wide_and_narrow_bias,
    norms=two_norms,
):
    """Count, as an int, the parameters of an encoder layer: attention, feed-forward layer and two norms."""
    return (
        attention(d_model, bias) + matrices(d_model, d_ff) + biases(d_model, d_ff, bias) + norms(d_model, bias)
    )  # each component is a stage, so the check can name two forgotten components at once


block_parameters.example("no biases", 7, 11, False, plain=True)
block_parameters.example("another width", 10, 37, True, plain=True)
block_parameters.example("a layer of GPT-2", 768, 3072, True, plain=True)
block_parameters.example("a layer of GPT-2 without biases", 768, 3072, False, plain=True)
block_parameters.example("a middle that is narrower than the rest", 19, 6, True, plain=True)
block_parameters.example("a single feature", 1, 2, True)


@block_parameters.right
class RightAnswers:
    def in_one_line(d_model, d_ff, bias):
        return 4 * d_model**2 + 2 * d_model * d_ff + 2 * d_model + bias * (7 * d_model + d_ff)

    def tensor_by_tensor(d_model, d_ff, bias):
        shapes = [(d_model, d_model)] * 4 + [(d_ff, d_model), (d_model, d_ff)] + [(d_model,)] * 2
        if bias:
            shapes += [(d_model,)] * 4 + [(d_ff,), (d_model,)] + [(d_model,)] * 2
        return sum(torch.Size(shape).numel() for shape in shapes)

    def of_a_shape(d_model, d_ff, bias):
        layer = encoder_layer(d_model, d_ff, bias)
        return count_parameters(layer) - count_parameters(replace(layer, n_layers=0))

    def map_by_map(d_model, d_ff, bias):
        def linear(features_in, features_out):
            return (features_in + bias) * features_out

        norm = d_model + (d_model if bias else 0)
        return 4 * linear(d_model, d_model) + linear(d_model, d_ff) + linear(d_ff, d_model) + norm + norm


block_parameters.mistake(no_output_projection, stage="attention")


@block_parameters.property
def one_feature_more(function, d_model, d_ff, bias):
    """One more feature in the middle adds `2 * d_model` weights and, if there are biases, one number to a bias."""
    return all(
        function(d_model, width + 1, with_bias) - function(d_model, width, with_bias) == 2 * d_model + with_bias
        for width in (d_ff, 3 * d_ff)
        for with_bias in (False, True)
    )


@block_parameters.property
def biases_double(function, d_model, d_ff, bias):
    """The number of parameters in the biases doubles when both widths double."""
    added = [function(k * d_model, k * d_ff, True) - function(k * d_model, k * d_ff, False) for k in (1, 2)]
    return added[1] == 2 * added[0] > 0


@block_parameters.property
def the_rest_grows_with_the_width(function, d_model, d_ff, bias):
    """With a fixed `d_ff` and no biases, all parameters outside attention grow with `d_model`, not with its square."""
    one, two, four = (
        function(width, d_ff, False) - attention_parameters.reference(width, False)
        for width in (d_model, 2 * d_model, 4 * d_model)
    )
    return four - two == 2 * (two - one)


@block_parameters.wrong(stage="attention")
class Attention:
    def attention_left_out(d_model, bias):
        """Attention is missing from your count, with its weights and its biases. Your `attention_parameters` counts
        them. Do you call it with both of its arguments, and do you add its result?"""
        return 0

    def attention_without_biases(d_model, bias):
        """With `bias=True`, the biases of attention are missing: four times `d_model` numbers. They are easily lost if
        you first count the weights of the layer by the rule of thumb and then add the biases of the feed-forward layer.
        Look at the first row of the table in the chapter's section 7.1."""
        return 4 * d_model**2

    def attention_twice(d_model, bias):
        """You count attention twice. A layer of a *decoder* with a source has two attention sublayers, but this layer
        has one. Look at what the docstring lists."""
        return 2 * attention_parameters.reference(d_model, bias)


@block_parameters.wrong(stage="matrices")
class Matrices:
    def one_matrix(d_model, d_ff):
        """You count only one of the feed-forward layer's two matrices. The first map leads from `d_model` to `d_ff`
        features and the second leads back: otherwise the result could not be added to the residual stream. Look for
        `linear1` and `linear2` in the chapter's section 7.1."""
        return d_model * d_ff

    def three_matrices(d_model, d_ff):
        """You count three matrices in the feed-forward layer. Gated layers have three, as the chapter's section 7.1
        says in brackets. This exercise asks for the plain layer, which has one map from `d_model` to `d_ff` features
        and one map back."""
        return 3 * d_model * d_ff

    def square_of_d_ff(d_model, d_ff):
        """The matrices of your feed-forward layer are `d_ff` by `d_ff`. Neither matrix is square: one maps `d_model`
        features to `d_ff`, the other maps `d_ff` features to `d_model`. Look at their shapes in the chapter's section
        7.1."""
        return 2 * d_ff**2


@block_parameters.wrong(stage="biases")
class Biases:
    def feed_forward_biases_left_out(d_model, d_ff, bias):
        """The biases of the feed-forward layer are missing, although `bias` is `True`. The rule of thumb leaves them
        out too, so if you start from the rule, you have to add them. Look for two tensors named `bias` in the
        feed-forward part of the list in the chapter's section 7.1."""
        return 0

    def feed_forward_biases_always(d_model, d_ff, bias):
        """With `bias=False` your feed-forward layer still has biases, with `d_ff` and `d_model` numbers. {The rest is
        right.} Which of your terms use the argument `bias`?"""
        return d_ff + d_model

    def one_bias_left_out(d_model, d_ff, bias):
        """With biases, `d_model` numbers are missing, as many as one bias has. Two biases are forgotten most easily:
        that of attention's output projection, and that of the feed-forward layer's second map, which leads back to
        `d_model` features. Compare your terms with the list of the chapter's section 7.1: which tensor has no term?"""
        return d_ff * bias

    def wide_bias_left_out(d_model, d_ff, bias):
        """With biases, `d_ff` numbers are missing: the bias in the wide middle of the feed-forward layer. It is the
        only bias of the layer that does not have `d_model` numbers. A bias has a number for each *output* feature of
        its map."""
        return d_model * bias

    def two_wide_biases(d_model, d_ff, bias):
        """Both biases of your feed-forward layer have `d_ff` numbers. One of them is added at the end, where a token
        has `d_model` features again. A bias has a number for each *output* feature of its map."""
        return 2 * d_ff * bias

    def two_biases_of_the_wider_side(d_model, d_ff, bias):
        """Both biases of your feed-forward layer have the same length, the larger of `d_model` and `d_ff`. A bias has a
        number for each *output* feature of its map: `d_ff` in the first map, and `d_model` in the second."""
        return 2 * max(d_model, d_ff) * bias

    def two_biases_of_the_narrower_side(d_model, d_ff, bias):
        """Both biases of your feed-forward layer have the same length, the smaller of `d_model` and `d_ff`. A bias has
        a number for each *output* feature of its map: `d_ff` in the first map, and `d_model` in the second."""
        return 2 * min(d_model, d_ff) * bias


@block_parameters.wrong(stage="norms")
class Norms:
    def norms_left_out(d_model, bias):
        """Both norms are missing. They are easy to overlook: a norm has no matrix, and seems to do only arithmetic. But
        after it has normalized a token to mean 0 and variance 1, it multiplies each feature by a learned weight, and
        with `bias=True` it also adds a learned bias. Look for `norm1` in the chapter's section 7.1."""
        return 0

    def one_norm(d_model, bias):
        """You count one norm, but a layer of an encoder has two: one for attention, one for the feed-forward layer.
        Look for `norm1` and `norm2` in the list of the chapter's section 7.1."""
        return (1 + bias) * d_model

    def three_norms(d_model, bias):
        """You count three norms, but this layer has two. A third norm occurs in a decoder's layer with cross-attention,
        or after the *last* layer of a stack, where it belongs to the model and not to the layer."""
        return 3 * (1 + bias) * d_model

    def norms_without_their_biases(d_model, bias):
        """With biases, twice `d_model` numbers are missing, as many as the biases of the two norms have. A norm learns
        a weight for each feature, and with `bias=True` also a bias for each feature. Both are in the formula of the
        norm, although a norm is not a linear map."""
        return 2 * d_model

    def norms_keep_their_biases(d_model, bias):
        """With `bias=False` your norms still have biases. The argument removes the biases everywhere, in linear maps
        *and* in norms, as in `tl.EncoderLayer`; norms keep only their weights. Read the docstring again."""
        return 4 * d_model

    def norms_gone_with_the_biases(d_model, bias):
        """With `bias=False` your norms have no parameters at all. Without biases, a norm still has a weight for each
        feature. Which of a norm's two tensors does `bias` remove?"""
        return 4 * d_model * bias

    def norms_of_single_numbers(d_model, bias):
        """Each of your norms learns only one weight and one bias for all features together. The mean and the variance
        of a token are single numbers, but they are computed and not learned. The learned tensors have a number for each
        feature: look at the shape of `norm1.weight` in the chapter's section 7.1."""
        return 2 * (1 + bias)


@block_parameters.wrong
class WrongAnswers:
    def attention_with_biases_always(d_model, d_ff, bias):
        """With `bias=False` your attention still has biases{; the rest is right}. What do you pass to
        `attention_parameters` as its last argument?"""
        return block_parameters.reference(
            d_model, d_ff, bias, attention=lambda d_model, bias: 4 * d_model**2 + 4 * d_model
        )

    def two_narrow_biases(d_model, d_ff, bias):
        """Both biases of your feed-forward layer have `d_model` numbers. One of them is added in the middle, where a
        token has `d_ff` features. A bias has a number for each *output* feature of its map."""

        return block_parameters.reference(d_model, d_ff, bias) + (d_model - d_ff) * bias

    def one_norm_without_its_bias(d_model, d_ff, bias):
        """For the norms you count `d_model` numbers, with and without biases: the weight of one norm. A layer of an
        encoder has two norms, and with `bias=True` each norm also has a bias for every feature. Look for `norm1` and
        `norm2` in the list of the chapter's section 7.1."""
        return block_parameters.reference(d_model, d_ff, bias, norms=lambda d_model, bias: d_model)

    def attention_alone(d_model, d_ff, bias):
        """You return attention's parameters and nothing else. Attention is the first of a layer's three parts: the
        feed-forward layer and the norms are missing."""
        return attention_parameters.reference(d_model, bias)

    def feed_forward_left_out(d_model, d_ff, bias):
        """The feed-forward layer is missing, with its weights and its biases: your result does not depend on `d_ff`.
        These parameters are usually the larger part of a layer. Look for `linear1` and `linear2` in the chapter's
        section 7.1."""
        return attention_parameters.reference(d_model, bias) + 2 * (1 + bias) * d_model

    def no_biases_of_linear_maps(d_model, d_ff, bias):
        """The biases of all six linear maps are missing, in attention and in the feed-forward layer. Your count is the
        rule of thumb plus the norms. Look at the column of biases in the table of the chapter's section 7.1: with
        `bias=True` every number in it counts."""
        return block_parameters.reference(d_model, d_ff, False) + 2 * d_model * bias

    @family(
        bias_never_used=(False, "no biases", "without any bias"),
        biases_counted_always=(True, "all biases", "with biases everywhere"),
    )
    def argument_not_used(assumed_bias, d_model, d_ff, bias):
        """Your count includes {}, whatever `bias` says: it is right for a layer {}. Does each of your terms use the
        argument `bias`, and do you pass it to `attention_parameters`?"""
        return block_parameters.reference(d_model, d_ff, assumed_bias)

    @with_text_of(attention_module.Biases.biases_inverted)
    def bias_inverted(d_model, d_ff, bias):
        return block_parameters.reference(d_model, d_ff, not bias)

    def rule_of_thumb(d_model, d_ff, bias):
        """You count the weights of the six matrices and nothing else: this is the rule of thumb. It leaves out all
        biases and the norms, together one in 700 of the numbers in a layer of GPT-2. In the table of the chapter's
        section 7.1, look at the row and the column that the rule leaves out."""
        return 4 * d_model**2 + 2 * d_model * d_ff

    def twelve_squares(d_model, d_ff, bias):
        """You return twelve times the square of `d_model`, whatever `d_ff` is. This rule is for layers whose middle is
        four times as wide, and it leaves out biases and norms. Here `d_ff` is an argument, and every number counts."""
        return 12 * d_model**2

    def always_a_layer_of_gpt2(d_model, d_ff, bias):
        """Your result depends on `d_model` alone: it is right for a layer with biases whose middle is four times as
        wide, as in GPT-2. Here the width of the middle and the biases are arguments. Look at where you use `d_ff` and
        `bias`."""
        return 12 * d_model**2 + 13 * d_model

    def d_ff_not_used(d_model, d_ff, bias):
        """The middle of your feed-forward layer has `d_model` features: your result does not depend on `d_ff`. In GPT-2
        this mistake loses a third of all parameters. The two maps lead from `d_model` features to `d_ff` and back."""
        return block_parameters.reference(d_model, d_model, bias)

    def four_times_as_wide_always(d_model, d_ff, bias):
        """The middle of your feed-forward layer is always four times as wide as `d_model`: your result does not depend
        on `d_ff`. Four is what most models choose, but here the width is an argument. Look at where you use `d_ff`."""
        return block_parameters.reference(d_model, 4 * d_model, bias)

    def layer_of_a_decoder(d_model, d_ff, bias):
        """You count the layer of a decoder with a source: two attention sublayers and three norms. The exercise asks
        for the layer of an encoder. GPT-2, which has no source, uses the same layer with a causal mask. Look at what
        the docstring lists."""
        attention, norm = attention_parameters.reference(d_model, bias), (1 + bias) * d_model
        return block_parameters.reference(d_model, d_ff, bias) + attention + norm

    @with_text_of(attention_module.WrongAnswers.nothing_without_biases)
    def no_block_without_biases(d_model, d_ff, bias):
        return block_parameters.reference(d_model, d_ff, bias) if bias else 0

    @family(
        norm_in_the_wide_middle=(1, "One of your two norms is"), both_norms_in_the_wide_middle=(2, "Your two norms are")
    )
    def wide_norms(number, d_model, d_ff, bias):
        """{} as wide as the middle of the feed-forward layer. In this layer both norms normalize `d_model` features.
        Look at the shapes of `norm1` and `norm2` in the list of the chapter's section 7.1."""
        return block_parameters.reference(d_model, d_ff, bias) + number * (1 + bias) * (d_ff - d_model)

    def gated_layer(d_model, d_ff, bias):
        """You count a gated feed-forward layer: two maps from `d_model` to `d_ff` features, each with its bias, and one
        map back. The layer of this exercise is not gated. How many maps does it have?"""
        return block_parameters.reference(d_model, d_ff, bias) + d_model * d_ff + d_ff * bias

    def gated_layer_and_no_biases_in_attention(d_model, d_ff, bias):
        """You count a gated feed-forward layer, with two maps to `d_ff` features, and attention without biases. The
        layer of this exercise is not gated: how many maps does it have? And with `bias=True` each of attention's four
        projections has a bias."""
        whole = block_parameters.reference(d_model, d_ff, bias)
        return whole + d_model * d_ff + (d_ff - 4 * d_model) * bias

    def twelve_squares_and_biases(d_model, d_ff, bias):
        """For the matrices you count twelve times the square of `d_model`, whatever `d_ff` is, and the norms are
        missing. The rule of twelve squares is for layers whose middle is four times as wide. Here `d_ff` is an
        argument, and a norm has learned numbers too."""
        return 12 * d_model**2 + (5 * d_model + d_ff) * bias


float_for_int(block_parameters)
