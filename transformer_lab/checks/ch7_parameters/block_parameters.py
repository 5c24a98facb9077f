"""How many parameters a block has."""

from dataclasses import replace

import torch

from ...parameters import count_parameters
from ..common_mistakes import float_for_int
from ..exercise import exercise, family, with_text_of
from . import attention_parameters as of_attention
from .attention_parameters import attention_parameters, encoder_layer, no_output_projection


def attention_of_the_block(d_model, bias):
    """Count the parameters of the attention."""
    return attention_parameters.reference(d_model, bias)


def two_matrices(d_model, d_ff):
    """Count the two matrices of the feed-forward layer."""
    return 2 * d_model * d_ff


def wide_and_narrow(d_model, d_ff, bias):
    """Count its two biases, one for d_ff and one for d_model features."""
    return (d_ff + d_model) * bias


def two_norms(d_model, bias):
    """Count two norms, each with a weight, and with a bias where there are any."""
    return 2 * (1 + bias) * d_model


@exercise(
    inputs=lambda draw: (3, 5, True),
    axes={},
    hints=(
        "A block consists of attention, a feed-forward layer, and norms. You have already counted attention. Which "
        "shapes do the two maps of the feed-forward layer have, and what does a norm learn?",
        "The chapter's section 7.1 counts a block of width 4 with `d_ff = 16`, in a table and tensor by tensor. The "
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
    biases=wide_and_narrow,
    norms=two_norms,
):
    """Count the parameters of an encoder's layer (attention, feed-forward layer, two norms): an int, not a float."""
    return (
        attention(d_model, bias) + matrices(d_model, d_ff) + biases(d_model, d_ff, bias) + norms(d_model, bias)
    )  # each component is a stage: two forgotten ones are both named


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
        one = encoder_layer(d_model, d_ff, bias)
        return count_parameters(one) - count_parameters(replace(one, n_layers=0))

    def map_by_map(d_model, d_ff, bias):
        def linear(features_in, features_out):
            return (features_in + bias) * features_out

        norm = d_model + (d_model if bias else 0)
        return 4 * linear(d_model, d_model) + linear(d_model, d_ff) + linear(d_ff, d_model) + norm + norm


block_parameters.mistake(no_output_projection, stage="attention")


@block_parameters.property
def one_feature_more(function, d_model, d_ff, bias):
    """One feature more in the middle adds `2 * d_model` weights, and with biases one number."""
    return all(
        function(d_model, width + 1, with_bias) - function(d_model, width, with_bias) == 2 * d_model + with_bias
        for width in (d_ff, 3 * d_ff)
        for with_bias in (False, True)
    )


@block_parameters.property
def biases_double(function, d_model, d_ff, bias):
    """What biases add doubles when both widths double."""
    added = [function(k * d_model, k * d_ff, True) - function(k * d_model, k * d_ff, False) for k in (1, 2)]
    return added[1] == 2 * added[0] > 0


@block_parameters.property
def the_rest_grows_with_the_width(function, d_model, d_ff, bias):
    """Without biases, what a block has besides attention grows with `d_model`, and not with its square."""
    one, two, four = (
        function(width, d_ff, False) - attention_parameters.reference(width, False)
        for width in (d_model, 2 * d_model, 4 * d_model)
    )
    return four - two == 2 * (two - one)


@block_parameters.wrong(stage="attention")
class Attention:
    def attention_left_out(d_model, bias):
        """Attention is missing from your count, its weights and its biases. Your `attention_parameters` counts them. Is
        it called, with both of its arguments, and is its result added?"""
        return 0

    def attention_without_biases(d_model, bias):
        """The biases of attention are missing, four times `d_model` numbers with `bias=True`. They get lost where the
        weights of the layer are added up first, by the rule, and the biases of the feed-forward layer after them. Look
        at the first row of the table in the chapter's section 7.1."""
        return 4 * d_model**2

    def attention_twice(d_model, bias):
        """You count attention twice. A layer of a *decoder* that looks at a source has two attentions; here the layer
        has one. Look at what the docstring lists."""
        return 2 * attention_parameters.reference(d_model, bias)


@block_parameters.wrong(stage="matrices")
class Matrices:
    def one_matrix(d_model, d_ff):
        """You count one matrix in the feed-forward layer, the one that widens or the one that goes back. It has both,
        or its result could not be added to the tokens that came in. Look for `linear1` and `linear2` in the chapter's
        section 7.1."""
        return d_model * d_ff

    def three_matrices(d_model, d_ff):
        """You count three matrices in the feed-forward layer. Gated layers have three, as the chapter's section 7.1
        says in brackets. The plain one, which is asked for here, widens with one and goes back with the other."""
        return 3 * d_model * d_ff

    def square_of_d_ff(d_model, d_ff):
        """The matrices of your feed-forward layer are `d_ff` by `d_ff`. None of them is square: one has `d_model`
        features on its way in and `d_ff` on its way out, the other the reverse. Look at their shapes in the chapter's
        section 7.1."""
        return 2 * d_ff**2


@block_parameters.wrong(stage="biases")
class Biases:
    def feed_forward_biases_left_out(d_model, d_ff, bias):
        """The biases of the feed-forward layer are missing, although `bias=True` asks for them. In the rule of thumb
        they are missing as well, so if you start from the rule, you have to add them. Look for two tensors named `bias`
        in the feed-forward part of the list in the chapter's section 7.1."""
        return 0

    def feed_forward_biases_always(d_model, d_ff, bias):
        """With `bias=False` your feed-forward layer still has biases, `d_ff` and `d_model` numbers. {The rest is
        right.} Look at which of your terms see the argument `bias`."""
        return d_ff + d_model

    def one_bias_left_out(d_model, d_ff, bias):
        """With biases, `d_model` numbers are missing, as many as one bias has. Two get lost most easily: that of
        attention's output projection, and that of the feed-forward layer's second map, which goes back to `d_model`
        features. Lay your terms beside the list of the chapter's section 7.1: which tensor has none?"""
        return d_ff * bias

    def wide_bias_left_out(d_model, d_ff, bias):
        """With biases, `d_ff` numbers are missing: the bias in the wide middle of the feed-forward layer. It is the one
        bias of the layer that does not have `d_model` numbers. A bias has a number for each feature that comes *out* of
        its map."""
        return d_model * bias

    def two_wide_biases(d_model, d_ff, bias):
        """Both biases of your feed-forward layer have `d_ff` numbers. One of them is added at the end, where a token
        has `d_model` features again. A bias has a number for each feature that comes *out* of its map."""
        return 2 * d_ff * bias

    def two_biases_of_the_wider_side(d_model, d_ff, bias):
        """Both biases of your feed-forward layer have equally many numbers, those of the wider of the two sides. A bias
        has a number for each feature that comes *out* of its map: `d_ff` in one, and `d_model` in the other."""
        return 2 * max(d_model, d_ff) * bias

    def two_biases_of_the_narrower_side(d_model, d_ff, bias):
        """Both biases of your feed-forward layer have equally many numbers, those of the narrower of the two sides. A
        bias has a number for each feature that comes *out* of its map: `d_ff` in one, and `d_model` in the other."""
        return 2 * min(d_model, d_ff) * bias


@block_parameters.wrong(stage="norms")
class Norms:
    def norms_left_out(d_model, bias):
        """Both norms are missing. They are easy to overlook: a norm seems to do arithmetic only, and has no matrix. But
        after it has made mean 0 and variance 1, it multiplies each feature with a weight that is learned, and with
        `bias=True` adds another number. Look for `norm1` in the chapter's section 7.1."""
        return 0

    def one_norm(d_model, bias):
        """You count one norm, and a layer of an encoder has two: one for attention, one for the feed-forward layer.
        Look for `norm1` and `norm2` in the list of the chapter's section 7.1."""
        return (1 + bias) * d_model

    def three_norms(d_model, bias):
        """You count three norms, and this layer has two. A third one belongs to a decoder's layer with cross-attention,
        or stands after the *last* layer of a stack, where it belongs to the model and not to the layer."""
        return 3 * (1 + bias) * d_model

    def norms_without_their_biases(d_model, bias):
        """With biases, twice `d_model` numbers are missing, as many as the biases of the two norms have. A norm learns
        a weight for each feature, and with `bias=True` also a number to add to it. The formula of the norm has both,
        although only one looks like a bias of a linear map."""
        return 2 * d_model

    def norms_keep_their_biases(d_model, bias):
        """With `bias=False` your norms still have biases. The argument switches them off everywhere, in linear maps
        *and* in norms, as in `tl.EncoderLayer`; only the weights of the norms stay. Read the docstring again."""
        return 4 * d_model

    def norms_gone_with_the_biases(d_model, bias):
        """With `bias=False` your norms vanish altogether. They lose what they add, and keep what they multiply with: a
        weight for each feature. Which of a norm's two tensors does `bias` speak of?"""
        return 4 * d_model * bias

    def norms_of_single_numbers(d_model, bias):
        """Your norms learn one weight, and one bias, for all features together. Mean and variance are one number each
        for a token, but those are computed and not learned. What is learned has a number for each feature: look at the
        shape of `norm1.weight` in the chapter's section 7.1."""
        return 2 * (1 + bias)


@block_parameters.wrong
class WrongAnswers:
    def attention_with_biases_always(d_model, d_ff, bias):
        """With `bias=False` your attention still has biases{; the rest is right}. What do you hand to
        `attention_parameters` as its last argument?"""
        return block_parameters.reference(
            d_model, d_ff, bias, attention=lambda d_model, bias: 4 * d_model**2 + 4 * d_model
        )

    def two_narrow_biases(d_model, d_ff, bias):
        """Both biases of your feed-forward layer have `d_model` numbers. One of them is added in the middle, where a
        token has `d_ff` features. A bias has a number for each feature that comes *out* of its map."""

        return block_parameters.reference(d_model, d_ff, bias) + (d_model - d_ff) * bias

    def one_norm_without_its_bias(d_model, d_ff, bias):
        """For the norms you count `d_model` numbers, with biases as without: the weight of one norm. A layer of an
        encoder has two norms, and with `bias=True` each also has a number to add for every feature. Look for `norm1`
        and `norm2` in the list of the chapter's section 7.1."""
        return block_parameters.reference(d_model, d_ff, bias, norms=lambda d_model, bias: d_model)

    def attention_alone(d_model, d_ff, bias):
        """You return attention's parameters and nothing else. They are the first of three parts of a layer: the
        feed-forward layer is missing, and so are the norms."""
        return attention_parameters.reference(d_model, bias)

    def feed_forward_left_out(d_model, d_ff, bias):
        """The feed-forward layer is missing, with its weights and its biases: what you return does not depend on
        `d_ff`. It is the larger part of a layer. Look for `linear1` and `linear2` in the chapter's section 7.1."""
        return attention_parameters.reference(d_model, bias) + 2 * (1 + bias) * d_model

    def no_biases_of_linear_maps(d_model, d_ff, bias):
        """The biases of all six linear maps are missing, in attention and in the feed-forward layer. That is the rule
        of thumb with the norms added. Look at the column of biases in the table of the chapter's section 7.1: with
        `bias=True` all of it counts."""
        return block_parameters.reference(d_model, d_ff, False) + 2 * d_model * bias

    @family(
        bias_never_used=(False, "`bias=True` as without", "without any bias"),
        biases_counted_always=(True, "`bias=False` as with biases", "that has them everywhere"),
    )
    def argument_not_used(always, d_model, d_ff, bias):
        """Your count is the same with {}: what you return is right for a layer {}. Does each of your terms see the
        argument `bias`, and is it handed on to `attention_parameters`?"""
        return block_parameters.reference(d_model, d_ff, always)

    @with_text_of(of_attention.Biases.biases_the_wrong_way_round)
    def bias_the_wrong_way_round(d_model, d_ff, bias):
        return block_parameters.reference(d_model, d_ff, not bias)

    def rule_of_thumb(d_model, d_ff, bias):
        """You count the weights of the six matrices and nothing else: that is the rule of thumb. It is short by all
        biases and by the norms, in a layer of GPT-2 one number in 700. Look at the rows and the column of the table in
        the chapter's section 7.1 that are not in the rule."""
        return 4 * d_model**2 + 2 * d_model * d_ff

    def twelve_squares(d_model, d_ff, bias):
        """You return twelve times the square of `d_model`, whatever `d_ff` is. The rule holds where the middle is four
        times as wide as the rest, and leaves out biases and norms. Here `d_ff` is an argument, and every number
        counts."""
        return 12 * d_model**2

    def always_a_layer_of_gpt2(d_model, d_ff, bias):
        """What you return depends on `d_model` alone: it is right for a layer with biases that is four times as wide in
        its middle, as in GPT-2. This function is told how wide the middle is, and whether there are biases. Look at
        where you use `d_ff` and `bias`."""
        return 12 * d_model**2 + 13 * d_model

    def d_ff_not_used(d_model, d_ff, bias):
        """Your feed-forward layer is as wide in its middle as outside: what you return does not depend on `d_ff`. In
        GPT-2 this loses a third of all parameters. The two maps lead from `d_model` features to `d_ff` and back."""
        return block_parameters.reference(d_model, d_model, bias)

    def four_times_as_wide_always(d_model, d_ff, bias):
        """Your feed-forward layer is always four times as wide as the rest: what you return does not depend on `d_ff`.
        Most models choose four, and this function is told what they choose. Look at where you use the argument."""
        return block_parameters.reference(d_model, 4 * d_model, bias)

    def layer_of_a_decoder(d_model, d_ff, bias):
        """You count the layer of a decoder that looks at a source: two attentions and three norms. Here it is the layer
        of an encoder, which GPT-2 has as well, with a causal mask and without a source. Look at what the docstring
        lists."""
        attention, norm = attention_parameters.reference(d_model, bias), (1 + bias) * d_model
        return block_parameters.reference(d_model, d_ff, bias) + attention + norm

    @with_text_of(of_attention.WrongAnswers.nothing_without_biases)
    def no_block_without_biases(d_model, d_ff, bias):
        return block_parameters.reference(d_model, d_ff, bias) if bias else 0

    @family(
        norm_in_the_wide_middle=(1, "One of your two norms is"), both_norms_in_the_wide_middle=(2, "Your two norms are")
    )
    def wide_norms(number, d_model, d_ff, bias):
        """{} as wide as the middle of the feed-forward layer. Both stand where a token has `d_model` features. Look at
        the shapes of `norm1` and `norm2` in the list of the chapter's section 7.1."""
        return block_parameters.reference(d_model, d_ff, bias) + number * (1 + bias) * (d_ff - d_model)

    def gated_layer(d_model, d_ff, bias):
        """You count a gated feed-forward layer: two maps that widen, each with its bias, and one that goes back. The
        layer asked for is not gated. How many maps does it have then?"""
        return block_parameters.reference(d_model, d_ff, bias) + d_model * d_ff + d_ff * bias

    def gated_layer_and_no_biases_in_attention(d_model, d_ff, bias):
        """You count a gated feed-forward layer, with two maps that widen, and attention without biases. The layer asked
        for is not gated: how many maps does it have then? And with `bias=True` each of attention's four projections has
        a bias."""
        whole = block_parameters.reference(d_model, d_ff, bias)
        return whole + d_model * d_ff + (d_ff - 4 * d_model) * bias

    def twelve_squares_and_biases(d_model, d_ff, bias):
        """Your matrices are twelve times the square of `d_model`, whatever `d_ff` is, and the norms are missing. The
        rule holds where the middle is four times as wide as the rest. Here `d_ff` is an argument, and a norm has
        numbers that are learned."""
        return 12 * d_model**2 + (5 * d_model + d_ff) * bias


float_for_int(block_parameters)
