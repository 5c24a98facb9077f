"""Chapter 7: how many numbers a model learns, how much work its attention is, and what its cache takes."""

from copy import deepcopy
from dataclasses import replace

import torch
from torch import nn

from .. import compute
from ..parameters import ModelShape, count_parameters, parameter_breakdown
from .exercise import exercise

# attention_parameters


def _one_layer(d_model, d_ff, bias):
    """A shape whose layer is an encoder's."""
    return ModelShape("bert", 1, d_model, 1, d_ff, vocab_size=1, n_positions=1, bias=bias)


def four_squares(d_model):
    return 4 * d_model**2


def four_biases(d_model, bias):
    return 4 * d_model if bias else 0


@exercise(
    inputs=lambda draw: (3, True),
    axes={},
    hints=(
        "A linear map from `a` features to `b` features learns a matrix, and with a bias also a vector. How many "
        "numbers are in each, and how many such maps does attention have?",
        "The chapter's section 7.1 lists the parameters of a layer of width 4, tensor by tensor: 64 weights and 16 "
        "biases of them are attention's. Write the four maps down with their shapes, then look at how each grows.",
        "`weights = … * d_model**…`, then `biases = … * d_model if bias else 0`, each on a line of its own, and "
        "`return weights + biases`",
    ),
)
def attention_parameters(d_model, bias, *, weights=four_squares, biases=four_biases):
    """Count the parameters of multi-head attention, its output projection included."""
    return weights(d_model) + biases(d_model, bias)


attention_parameters.example("no biases", 5, False, plain=True)
attention_parameters.example("a width of 14", 14, True, plain=True)
attention_parameters.example("GPT-2's width", 768, True, plain=True)
attention_parameters.example("GPT-2's width without biases", 768, False, plain=True)
attention_parameters.example("a single feature", 1, True)


@attention_parameters.equivalent
def four_maps(d_model, bias):
    return 4 * d_model * (d_model + bias)


@attention_parameters.equivalent
def one_map_at_a_time(d_model, bias):
    total = 0
    for _ in ("queries", "keys", "values", "output"):
        total += d_model * d_model
        if bias:
            total += d_model
    return total


@attention_parameters.equivalent
def by_the_shape(d_model, bias):
    found = parameter_breakdown(_one_layer(d_model, d_model, bias))
    return found["attention weights"] + found.get("attention biases", 0)


@attention_parameters.equivalent
def packed_in_floating_point(d_model, bias):
    packed, output = 3.0 * d_model * d_model, 1.0 * d_model * d_model
    return packed + output + 4.0 * bias * d_model


@attention_parameters.mistake
def no_output_projection(d_model, bias):
    """In attention you count three linear maps, where it has four. The one that is forgotten most often is the output
    projection: queries, keys and values have names that everybody knows, and what follows the heads looks like mere
    glue. Look for `out_proj` in the list of the chapter's section 7.1."""
    return 3 * d_model**2 + 3 * d_model * bias


@attention_parameters.mistake(part="weights")
def three_squares(d_model):
    """You count three matrices of weights, where attention has four. Three is the number of inputs of the scores and
    the blend: queries, keys and values. Look at what happens to the heads' results before they leave attention."""
    return 3 * d_model**2


@attention_parameters.mistake(part="weights")
def one_square(d_model):
    """You count one matrix of weights, where attention has four. Perhaps you stopped at the shape of one map, or took
    them for strips of a single matrix: the heads are strips, the maps for queries, keys and values are not. Look at the
    list of the chapter's section 7.1."""
    return d_model**2


@attention_parameters.mistake(part="weights")
def no_squares(d_model):
    """Your weights grow with the width, and not with its square: twice the width gives you twice the weights. A vector
    of features has `d_model` numbers; a map that takes such a vector in and gives one out has a number for each pair of
    an input and an output. Look at the shape of one `weight` in the chapter's section 7.1."""
    return 4 * d_model


@attention_parameters.mistake(part="weights")
def eight_squares(d_model):
    """You count eight squares of the width as weights, twice too many. Eight is a number of this chapter, but of two
    other things: the weights of the feed-forward layer, and the FLOPs that one token costs in the four projections, two
    for each weight. Look at what attention *has*, matrix by matrix."""
    return 8 * d_model**2


@attention_parameters.mistake(part="weights")
def twelve_squares_of_a_layer(d_model):
    """You count twelve squares of the width as weights. That is the rule for a whole layer, and two thirds of it belong
    to the feed-forward layer. Count again what belongs to attention alone."""
    return 12 * d_model**2


@attention_parameters.mistake(part="biases")
def biases_left_out(d_model, bias):
    """Your count is the same with biases and without: you leave them out. The rule of thumb does the same, and for the
    rule it is fine: in GPT-2 attention's biases are 36,864 of 124 million parameters. Here every number counts, so look
    at what `bias=True` adds to a linear map."""
    return 0


@attention_parameters.mistake(part="biases")
def biases_always(d_model, bias):
    """Your count is the same with biases and without: you count them always. That is right for BERT and GPT-2, and many
    newer models have none. Look at where your function uses its argument `bias`."""
    return 4 * d_model


@attention_parameters.mistake(part="biases")
def biases_the_wrong_way_round(d_model, bias):
    """You count biases when `bias` is `False`, and none when it is `True`. The two branches are exchanged: read the
    condition aloud, and see which of them it leads to."""
    return 0 if bias else 4 * d_model


@attention_parameters.mistake(part="biases")
def three_biases(d_model, bias):
    """You count the biases of three maps, where each of the four has one. People who think of queries, keys and values
    first tend to forget the fourth a second time here. Look for the biases in the list of the chapter's section 7.1."""
    return 3 * d_model * bias


@attention_parameters.mistake(part="biases")
def bias_of_one_map(d_model, bias):
    """You count one bias for all of attention: `d_model` numbers together. Each of its linear maps adds a bias of its
    own. Look for the biases in the list of the chapter's section 7.1, and count them."""
    return d_model * bias


@attention_parameters.mistake(part="biases")
def biases_of_a_layer(d_model, bias):
    """You count nine widths of biases. That is how many a whole layer has: four in attention, and five in the
    feed-forward layer, whose middle is four times as wide. Count again what belongs to attention alone."""
    return 9 * d_model * bias


@attention_parameters.mistake(part="biases")
def one_number_for_each_map(d_model, bias):
    """You count one number as the bias of a map, as if the same were added to all features. A bias is a vector: each
    feature that comes out of the map has a number of its own. Look at the shape of a `bias` in the chapter's section
    7.1."""
    return 4 * bias


@attention_parameters.mistake
def nothing_without_biases(d_model, bias):
    """Without biases you count nothing at all: with `bias=False` your function returns 0. So it does when a sum ends in
    `… if bias else 0`: Python takes all that stands before the `if` for the first branch, and not the last term alone.
    Where would brackets help?"""
    return attention_parameters.reference(d_model, bias) if bias else 0


@attention_parameters.property
def _(function, d_model, bias):
    """Without biases, twice the width has four times the parameters."""
    return function(2 * d_model, False) == 4 * function(d_model, False)


@attention_parameters.property
def _(function, d_model, bias):
    """What biases add doubles with the width."""
    added = [function(width, True) - function(width, False) for width in (d_model, 2 * d_model)]
    return added[1] == 2 * added[0] > 0


# block_parameters


def attention_of_the_block(d_model, bias):
    return attention_parameters.reference(d_model, bias)


def two_matrices(d_model, d_ff):
    return 2 * d_model * d_ff


def wide_and_narrow(d_model, d_ff, bias):
    return (d_ff + d_model) * bias


def two_norms(d_model, bias):
    return 2 * (1 + bias) * d_model


@exercise(
    inputs=lambda draw: (3, 5, True),
    axes={},
    hints=(
        "A block is attention, a feed-forward layer, and the norms. You have counted the first. Which shapes do the "
        "two maps of the feed-forward layer have, and what does a norm learn?",
        "The chapter's section 7.1 counts a block of width 4 with `d_ff = 16`, in a table and tensor by tensor. Its "
        "biases are of two lengths. Which of its tensors would `bias=False` take away, and which stay?",
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
    """Count the parameters of an encoder's layer: attention, feed-forward layer, two norms."""
    return (
        attention(d_model, bias) + matrices(d_model, d_ff) + biases(d_model, d_ff, bias) + norms(d_model, bias)
    )  # each component is a step, so that two that are forgotten are both named


block_parameters.example("no biases", 7, 11, False, plain=True)
block_parameters.example("another width", 10, 37, True, plain=True)
block_parameters.example("a layer of GPT-2", 768, 3072, True, plain=True)
block_parameters.example("a layer of GPT-2 without biases", 768, 3072, False, plain=True)
block_parameters.example("a middle that is narrower than the rest", 19, 6, True, plain=True)
block_parameters.example("a single feature", 1, 2, True)


@block_parameters.equivalent
def in_one_line(d_model, d_ff, bias):
    return 4 * d_model**2 + 2 * d_model * d_ff + 2 * d_model + bias * (7 * d_model + d_ff)


@block_parameters.equivalent
def tensor_by_tensor(d_model, d_ff, bias):
    shapes = [(d_model, d_model)] * 4 + [(d_ff, d_model), (d_model, d_ff)] + [(d_model,)] * 2
    if bias:
        shapes += [(d_model,)] * 4 + [(d_ff,), (d_model,)] + [(d_model,)] * 2
    return sum(torch.Size(shape).numel() for shape in shapes)


@block_parameters.equivalent
def of_a_shape(d_model, d_ff, bias):
    one = _one_layer(d_model, d_ff, bias)
    return count_parameters(one) - count_parameters(replace(one, n_layers=0))


@block_parameters.equivalent
def map_by_map(d_model, d_ff, bias):
    def linear(features_in, features_out):
        return (features_in + bias) * features_out

    norm = d_model + (d_model if bias else 0)
    return 4 * linear(d_model, d_model) + linear(d_model, d_ff) + linear(d_ff, d_model) + norm + norm


block_parameters.mistake(part="attention")(no_output_projection)


@block_parameters.mistake(part="attention")
def attention_left_out(d_model, bias):
    """Attention is missing from your count, its weights and its biases. Your `attention_parameters` counts them. Is it
    called, with both of its arguments, and is its result added?"""
    return 0


@block_parameters.mistake(part="attention")
def attention_without_biases(d_model, bias):
    """The biases of attention are missing, four times `d_model` numbers with `bias=True`. They get lost where the
    weights of the layer are added up first, by the rule, and the biases of the feed-forward layer after them. Look at
    the first row of the table in the chapter's section 7.1."""
    return 4 * d_model**2


@block_parameters.mistake
def attention_with_biases_always(d_model, d_ff, bias):
    """With `bias=False` your attention still has biases; the rest is right. What do you hand to `attention_parameters`
    as its last argument?"""
    return block_parameters.reference(d_model, d_ff, bias, attention=lambda d_model, bias: 4 * d_model**2 + 4 * d_model)


@block_parameters.mistake(part="attention")
def attention_twice(d_model, bias):
    """You count attention twice. A layer of a *decoder* that looks at a source has two attentions; here the layer has
    one. Look at what the docstring lists."""
    return 2 * attention_parameters.reference(d_model, bias)


@block_parameters.mistake(part="matrices")
def one_matrix(d_model, d_ff):
    """You count one matrix in the feed-forward layer, the one that widens or the one that goes back. It has both, or
    its result could not be added to the tokens that came in. Look for `linear1` and `linear2` in the chapter's section
    7.1."""
    return d_model * d_ff


@block_parameters.mistake(part="matrices")
def three_matrices(d_model, d_ff):
    """You count three matrices in the feed-forward layer. Gated layers have three, as the chapter's section 7.1 says in
    brackets. The plain one, which is asked for here, widens with one and goes back with the other."""
    return 3 * d_model * d_ff


@block_parameters.mistake(part="matrices")
def square_of_d_ff(d_model, d_ff):
    """The matrices of your feed-forward layer are `d_ff` by `d_ff`. None of them is square: one has `d_model` features
    on its way in and `d_ff` on its way out, the other the reverse. Look at their shapes in the chapter's section
    7.1."""
    return 2 * d_ff**2


@block_parameters.mistake(part="biases")
def feed_forward_biases_left_out(d_model, d_ff, bias):
    """The biases of the feed-forward layer are missing, although `bias=True` asks for them. In the rule of thumb they
    are missing as well, so whoever starts from the rule has to add them. Look for two tensors named `bias` in the
    feed-forward part of the list in the chapter's section 7.1."""
    return 0


@block_parameters.mistake(part="biases")
def feed_forward_biases_always(d_model, d_ff, bias):
    """With `bias=False` your feed-forward layer still has biases, `d_ff` and `d_model` numbers. The rest is right. Look
    at which of your terms see the argument `bias`."""
    return d_ff + d_model


@block_parameters.mistake(part="biases")
def one_bias_left_out(d_model, d_ff, bias):
    """With biases, `d_model` numbers are missing, as many as one bias has. Two get lost most easily: that of
    attention's output projection, and that of the feed-forward layer's second map, which goes back to `d_model`
    features. Lay your terms beside the list of the chapter's section 7.1: which tensor has none?"""
    return d_ff * bias


@block_parameters.mistake(part="biases")
def wide_bias_left_out(d_model, d_ff, bias):
    """With biases, `d_ff` numbers are missing: the bias in the wide middle of the feed-forward layer. It is the one
    bias of the layer that does not have `d_model` numbers. A bias has a number for each feature that comes *out* of its
    map."""
    return d_model * bias


@block_parameters.mistake
def two_narrow_biases(d_model, d_ff, bias):
    """Both biases of your feed-forward layer have `d_model` numbers. One of them is added in the middle, where a token
    has `d_ff` features. A bias has a number for each feature that comes *out* of its map."""

    return block_parameters.reference(d_model, d_ff, bias) + (d_model - d_ff) * bias


@block_parameters.mistake(part="biases")
def two_wide_biases(d_model, d_ff, bias):
    """Both biases of your feed-forward layer have `d_ff` numbers. One of them is added at the end, where a token has
    `d_model` features again. A bias has a number for each feature that comes *out* of its map."""
    return 2 * d_ff * bias


@block_parameters.mistake(part="norms")
def norms_left_out(d_model, bias):
    """Both norms are missing. They are easy to overlook: a norm seems to do arithmetic only, and has no matrix. But
    after it has made mean 0 and variance 1, it multiplies each feature with a weight that is learned, and with
    `bias=True` adds another number. Look for `norm1` in the chapter's section 7.1."""
    return 0


@block_parameters.mistake(part="norms")
def one_norm(d_model, bias):
    """You count one norm, and a layer of an encoder has two: one for attention, one for the feed-forward layer. Look
    for `norm1` and `norm2` in the list of the chapter's section 7.1."""
    return (1 + bias) * d_model


@block_parameters.mistake
def one_norm_without_its_bias(d_model, d_ff, bias):
    """For the norms you count `d_model` numbers, with biases as without: the weight of one norm. A layer of an encoder
    has two norms, and with `bias=True` each also has a number to add for every feature. Look for `norm1` and `norm2` in
    the list of the chapter's section 7.1."""
    return block_parameters.reference(d_model, d_ff, bias, norms=lambda d_model, bias: d_model)


@block_parameters.mistake(part="norms")
def three_norms(d_model, bias):
    """You count three norms, and this layer has two. A third one belongs to a decoder's layer with cross-attention, or
    stands behind the *last* layer of a stack, where it belongs to the model and not to the layer."""
    return 3 * (1 + bias) * d_model


@block_parameters.mistake(part="norms")
def norms_without_their_biases(d_model, bias):
    """With biases, twice `d_model` numbers are missing, as many as the biases of the two norms have. A norm learns a
    weight for each feature, and with `bias=True` also a number to add to it. The formula of the norm has both, although
    only one looks like a bias of a linear map."""
    return 2 * d_model


@block_parameters.mistake(part="norms")
def norms_keep_their_biases(d_model, bias):
    """With `bias=False` your norms still have biases. The argument switches them off everywhere, in linear maps *and*
    in norms, as in `tl.EncoderLayer`; only the weights of the norms stay. Read the docstring again."""
    return 4 * d_model


@block_parameters.mistake(part="norms")
def norms_gone_with_the_biases(d_model, bias):
    """With `bias=False` your norms vanish altogether. They lose what they add, and keep what they multiply with: a
    weight for each feature. Which of a norm's two tensors does `bias` speak of?"""
    return 4 * d_model * bias


@block_parameters.mistake(part="norms")
def norms_of_single_numbers(d_model, bias):
    """Your norms learn one weight, and one bias, for all features together. Mean and variance are one number each for a
    token, but those are computed and not learned. What is learned has a number for each feature: look at the shape of
    `norm1.weight` in the chapter's section 7.1."""
    return 2 * (1 + bias)


@block_parameters.mistake
def attention_alone(d_model, d_ff, bias):
    """You return attention's parameters and nothing else. They are the first of three parts of a layer: the
    feed-forward layer is missing, and so are the norms."""
    return attention_parameters.reference(d_model, bias)


@block_parameters.mistake
def feed_forward_left_out(d_model, d_ff, bias):
    """The feed-forward layer is missing, with its weights and its biases: what you return does not depend on `d_ff`. It
    is the larger part of a layer. Look for `linear1` and `linear2` in the chapter's section 7.1."""
    return attention_parameters.reference(d_model, bias) + 2 * (1 + bias) * d_model


@block_parameters.mistake
def no_biases_of_linear_maps(d_model, d_ff, bias):
    """The biases of all six linear maps are missing, in attention and in the feed-forward layer. That is the rule of
    thumb with the norms added. Look at the column of biases in the table of the chapter's section 7.1: with `bias=True`
    all of it counts."""
    return block_parameters.reference(d_model, d_ff, False) + 2 * d_model * bias


@block_parameters.mistake
def bias_never_used(d_model, d_ff, bias):
    """Your count is the same with `bias=True` as without: what you return is right for a layer without any bias. Does
    each of your terms see the argument `bias`, and is it handed on to `attention_parameters`?"""
    return block_parameters.reference(d_model, d_ff, False)


@block_parameters.mistake
def biases_counted_always(d_model, d_ff, bias):
    """Your count is the same with `bias=False` as with biases: what you return is right for a layer that has them
    everywhere. Does each of your terms see the argument `bias`, and is it handed on to `attention_parameters`?"""
    return block_parameters.reference(d_model, d_ff, True)


@block_parameters.mistake
def bias_the_wrong_way_round(d_model, d_ff, bias):
    """You count biases when `bias` is `False`, and none when it is `True`. The two branches are exchanged: read the
    condition aloud, and see which of them it leads to."""
    return block_parameters.reference(d_model, d_ff, not bias)


@block_parameters.mistake
def rule_of_thumb(d_model, d_ff, bias):
    """You count the weights of the six matrices and nothing else: that is the rule of thumb. It is short by all biases
    and by the norms, in a layer of GPT-2 one number in 700. Look at the rows and the column of the table in the
    chapter's section 7.1 that are not in the rule."""
    return 4 * d_model**2 + 2 * d_model * d_ff


@block_parameters.mistake
def twelve_squares(d_model, d_ff, bias):
    """You return twelve times the square of `d_model`, whatever `d_ff` is. The rule holds where the middle is four
    times as wide as the rest, and leaves out biases and norms. Here `d_ff` is an argument, and every number counts."""
    return 12 * d_model**2


@block_parameters.mistake
def always_a_layer_of_gpt2(d_model, d_ff, bias):
    """What you return depends on `d_model` alone: it is right for a layer with biases that is four times as wide in its
    middle, as in GPT-2. This function is told how wide the middle is, and whether there are biases. Look at where you
    use `d_ff` and `bias`."""
    return 12 * d_model**2 + 13 * d_model


@block_parameters.mistake
def d_ff_not_used(d_model, d_ff, bias):
    """Your feed-forward layer is as wide in its middle as outside: what you return does not depend on `d_ff`. In GPT-2
    this loses a third of all parameters. The two maps lead from `d_model` features to `d_ff` and back."""
    return block_parameters.reference(d_model, d_model, bias)


@block_parameters.mistake
def four_times_as_wide_always(d_model, d_ff, bias):
    """Your feed-forward layer is always four times as wide as the rest: what you return does not depend on `d_ff`. Most
    models choose four, and this function is told what they choose. Look at where you use the argument."""
    return block_parameters.reference(d_model, 4 * d_model, bias)


@block_parameters.mistake
def layer_of_a_decoder(d_model, d_ff, bias):
    """You count the layer of a decoder that looks at a source: two attentions and three norms. Here it is the layer of
    an encoder, which GPT-2 has as well, with a causal mask and without a source. Look at what the docstring lists."""
    attention, norm = attention_parameters.reference(d_model, bias), (1 + bias) * d_model
    return block_parameters.reference(d_model, d_ff, bias) + attention + norm


@block_parameters.mistake
def no_block_without_biases(d_model, d_ff, bias):
    """Without biases you count nothing at all: with `bias=False` your function returns 0. So it does when a sum ends in
    `… if bias else 0`: Python takes all that stands before the `if` for the first branch, and not the last term alone.
    Where would brackets help?"""
    return block_parameters.reference(d_model, d_ff, bias) if bias else 0


@block_parameters.property
def _(function, d_model, d_ff, bias):
    """One feature more in the middle adds `2 * d_model` weights, and with biases one number."""
    return all(
        function(d_model, width + 1, with_bias) - function(d_model, width, with_bias) == 2 * d_model + with_bias
        for width in (d_ff, 3 * d_ff)
        for with_bias in (False, True)
    )


@block_parameters.property
def _(function, d_model, d_ff, bias):
    """What biases add doubles when both widths double."""
    added = [function(k * d_model, k * d_ff, True) - function(k * d_model, k * d_ff, False) for k in (1, 2)]
    return added[1] == 2 * added[0] > 0


@block_parameters.property
def _(function, d_model, d_ff, bias):
    """Without biases, what a block has besides attention grows with `d_model`, and not with its square."""
    one, two, four = (
        function(width, d_ff, False) - attention_parameters.reference(width, False)
        for width in (d_model, 2 * d_model, 4 * d_model)
    )
    return four - two == 2 * (two - one)


# gpt2_parameters


def table_of_tokens(vocab_size, d_model):
    return vocab_size * d_model


def table_of_positions(n_positions, d_model):
    return n_positions * d_model


def twelve_squares_in_a_layer(d_model):
    return 12 * d_model**2


def thirteen_widths_in_a_layer(d_model):
    return 13 * d_model  # four biases of attention, five widths in the feed-forward layer's, two norms of two


def norm_at_the_end(d_model):
    return 2 * d_model


def tied(vocab_size, d_model):
    return 0


@exercise(
    inputs=lambda draw: (2, 3, 11, 5),
    axes={},
    hints=(
        "Follow a token through the model: two tables, the layers one after the other, a last norm, the head. Which of "
        "these does your `block_parameters` count, and how often do you need it?",
        "The chapter's section 7.2 counts a very small GPT and prints the components. Try yours with its sizes: 1 "
        "layer, width 4, 10 tokens, 6 positions. The section's table names all that the rule of "
        "thumb leaves out; its last column says which of these GPT-2 has.",
        "`tables = (… + …) * d_model`, `layers = n_layers * block_parameters(d_model, …, …)`, and the last norm",
    ),
)
def gpt2_parameters(
    n_layers,
    d_model,
    vocab_size,
    n_positions,
    *,
    tokens=table_of_tokens,
    positions=table_of_positions,
    weights=twelve_squares_in_a_layer,
    vectors=thirteen_widths_in_a_layer,
    last_norm=norm_at_the_end,
    head=tied,
):
    """Count the parameters of a GPT-2 of any size: tables, pre-norm layers, the last norm; its head is tied."""
    tables = tokens(vocab_size, d_model) + positions(n_positions, d_model)
    layers = n_layers * (weights(d_model) + vectors(d_model))
    return tables + layers + last_norm(d_model) + head(vocab_size, d_model)


gpt2_parameters.example("a wide and shallow model", 3, 40, 101, 17, plain=True)
gpt2_parameters.example("a narrow and deep model", 29, 6, 13, 230, plain=True)
gpt2_parameters.example("GPT-2 as published", 12, 768, 50257, 1024, plain=True)
gpt2_parameters.example("a single layer", 1, 4, 10, 6)


@gpt2_parameters.equivalent
def by_the_blocks(n_layers, d_model, vocab_size, n_positions):
    total = (vocab_size + n_positions) * d_model
    for _ in range(n_layers):
        total += block_parameters.reference(d_model, 4 * d_model, True)
    return total + 2 * d_model


@gpt2_parameters.equivalent
def as_one_polynomial(n_layers, d_model, vocab_size, n_positions):
    return d_model * (vocab_size + n_positions + 2 + n_layers * (12 * d_model + 13))


@gpt2_parameters.equivalent
def component_by_component(n_layers, d_model, vocab_size, n_positions):
    d_ff = 4 * d_model
    return sum(
        {
            "tokens": vocab_size * d_model,
            "positions": n_positions * d_model,
            "attention": n_layers * 4 * (d_model + 1) * d_model,
            "feed-forward": n_layers * ((d_model + 1) * d_ff + (d_ff + 1) * d_model),
            "norms": (2 * n_layers + 1) * 2 * d_model,
        }.values()
    )


@gpt2_parameters.equivalent
def of_a_model_shape(n_layers, d_model, vocab_size, n_positions):
    return count_parameters(ModelShape("gpt2", n_layers, d_model, 1, vocab_size=vocab_size, n_positions=n_positions))


@gpt2_parameters.mistake(part="head")
def head_counted(vocab_size, d_model):
    """You count the output head as a matrix of its own: `vocab_size * d_model` too many, 38.6 million in GPT-2. The
    head is tied: it uses the table of tokens a second time, transposed, and learns nothing new. The chapter's section
    7.3 builds it."""
    return vocab_size * d_model


@gpt2_parameters.mistake(part="head")
def bias_of_the_head(vocab_size, d_model):
    """You give the output head a bias, a number for each token of the vocabulary. A linear map usually has one, but the
    head of GPT-2 has none: it is the table of tokens and nothing else. Look at how the chapter's section 7.3 makes
    it."""
    return vocab_size


@gpt2_parameters.mistake(part="head")
def head_with_its_bias_counted(vocab_size, d_model):
    """You count the output head as a linear map like any other, with a matrix and a bias of its own. It is tied: its
    matrix *is* the table of tokens, and it adds no bias. Look at how the chapter's section 7.3 makes it."""
    return vocab_size * d_model + vocab_size


@gpt2_parameters.mistake(part="head")
def pooler_counted(vocab_size, d_model):
    """You count a square map with its bias outside the layers: the pooler. BERT has one, which reads the first token
    for a decision about the whole text. GPT-2 has none. Look at its column in the table of the chapter's section
    7.2."""
    return d_model**2 + d_model


@gpt2_parameters.mistake(part="tokens")
def tokens_as_single_numbers(vocab_size, d_model):
    """You count one number for each token of the vocabulary. The table has a *row* for each, the features that stand
    for it in the model. Look at its shape in the chapter's section 7.2."""
    return vocab_size


@gpt2_parameters.mistake(part="tokens")
def no_table_of_tokens(vocab_size, d_model):
    """The table of tokens is missing, 38.6 million numbers in GPT-2. Some papers leave embeddings out when they compare
    models; and whoever takes the table for part of the tied head, and counts the head as 0, loses it as well. It is
    learned, so it counts once."""
    return 0


@gpt2_parameters.mistake(part="positions")
def no_table_of_positions(n_positions, d_model):
    """The positions are missing: your count does not change with `n_positions`. In the first Transformer they are sines
    and cosines, which nobody learns. GPT-2 learns a table with a row for each position."""
    return 0


@gpt2_parameters.mistake(part="positions")
def positions_as_single_numbers(n_positions, d_model):
    """You count one number for each position. A position is added to a token's features, so it has as many of them as a
    token has. Look at the row of positions in the table of the chapter's section 7.2."""
    return n_positions


@gpt2_parameters.mistake(part="last_norm")
def no_last_norm(d_model):
    """The norm behind the last layer is missing. It belongs to no layer, so it gets lost when you multiply one layer by
    their number; pre-norm needs it, as chapter 6 shows. How many numbers does a norm learn?"""
    return 0


@gpt2_parameters.mistake(part="last_norm")
def last_norm_without_its_bias(d_model):
    """You count half of the norm behind the last layer, `d_model` numbers. It has a weight for each feature and a bias
    for each, as the norms inside the layers do."""
    return d_model


@gpt2_parameters.mistake(part="last_norm")
def one_norm_too_many(d_model):
    """Outside the layers you count `2 * d_model` numbers that are not there: a second norm, or two rows for segments.
    BERT has a norm behind its embeddings and a table of two segments; GPT-2 has neither, and one norm at its end."""
    return 4 * d_model


@gpt2_parameters.mistake(part="weights")
def weights_of_attention_alone(d_model):
    """The matrices of the feed-forward layer are missing, two thirds of a layer. They are eight squares of the width in
    each layer, and attention's are four. Look at where your count of a layer takes `d_ff` from."""
    return 4 * d_model**2


@gpt2_parameters.mistake(part="weights")
def eight_squares_in_a_layer(d_model):
    """In each layer you count eight squares of the width as weights, where there are twelve. You miss the four matrices
    of attention, or one of the feed-forward layer's two, which is as large as those four. Lay your terms beside the sum
    of the chapter's section 7.1."""
    return 8 * d_model**2


@gpt2_parameters.mistake(part="vectors")
def one_width_short(d_model):
    """In each layer `d_model` numbers are missing. That is the length of one bias: that of attention's output
    projection, say, or of the second map in the feed-forward layer. Which tensor of the list in the chapter's section
    7.1 has no term in yours?"""
    return 12 * d_model


@gpt2_parameters.mistake(part="vectors")
def two_widths_short(d_model):
    """In each layer twice `d_model` numbers are missing. As many are in one of the two norms, and as many in the biases
    of both norms: a norm learns a weight and a bias for each feature. Which of these has no term in your count?"""
    return 11 * d_model


@gpt2_parameters.mistake(part="vectors")
def three_widths_short(d_model):
    """In each layer three times `d_model` numbers are missing, as many as the biases of queries, keys and values have.
    (The same number is missing if the biases in the feed-forward layer have `d_model` numbers each: the first of them
    is wider.) Which of the two is it?"""
    return 10 * d_model


@gpt2_parameters.mistake(part="vectors")
def four_widths_short(d_model):
    """In each layer four times `d_model` numbers are missing. As many are in the four biases of attention, in the two
    norms, and in the wide bias of the feed-forward layer. Which of the three has no term in your count?"""
    return 9 * d_model


@gpt2_parameters.mistake(part="vectors")
def five_widths_short(d_model):
    """In each layer five times `d_model` numbers are missing: the biases of the feed-forward layer, the wide one and
    the narrow one. Look at the column of biases in the table of the chapter's section 7.1."""
    return 8 * d_model


@gpt2_parameters.mistake(part="vectors")
def nine_widths_short(d_model):
    """In each layer nine times `d_model` numbers are missing: the biases of all linear maps, four of attention and, as
    five, the two of the feed-forward layer. The norms are there. Look at the column of biases in the table of the
    chapter's section 7.1."""
    return 4 * d_model


@gpt2_parameters.mistake(part="vectors")
def layers_without_biases(d_model):
    """Your layers have no biases, neither in their linear maps nor in their norms. GPT-2 has them in both. Look at what
    you hand to `block_parameters` as its last argument."""
    return 2 * d_model


@gpt2_parameters.mistake(part="vectors")
def layers_of_matrices_alone(d_model):
    """Of each layer you count the matrices alone: its biases and its norms are missing. That is the rule of thumb,
    `12 * d_model**2`. Your `block_parameters` has the rest."""
    return 0


@gpt2_parameters.mistake
def rule_of_thumb_for_a_model(n_layers, d_model, vocab_size, n_positions):
    """You return the rule of thumb: the matrices of the layers and the table of tokens. For GPT-2 it is short by 0.7
    per cent, 907,776 numbers. The chapter's section 7.2 lists what it leaves out, and for GPT-2 it is the positions,
    the biases and the norms."""
    return 12 * n_layers * d_model**2 + vocab_size * d_model


@gpt2_parameters.mistake
def no_norms_at_all(n_layers, d_model, vocab_size, n_positions):
    """All norms are missing: those of the layers and the one behind them. A norm has no matrix, and still learns a
    weight and a bias for each feature. How many norms does a model of `n_layers` layers have?"""
    right = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
    return right - (2 * n_layers + 1) * 2 * d_model


@gpt2_parameters.mistake
def biases_of_all_norms_left_out(n_layers, d_model, vocab_size, n_positions):
    """Your norms learn one number for each feature instead of two, those in the layers and the last one. RMSNorm does
    so; GPT-2 has layer norms, which multiply each feature *and* add to it."""
    right = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
    return right - (2 * n_layers + 1) * d_model


@gpt2_parameters.mistake
def one_layer_only(n_layers, d_model, vocab_size, n_positions):
    """You count one layer, however many there are: the result does not change with `n_layers`. Each layer has weights
    of its own, and shares none with the others. Look at where you use the argument."""
    return gpt2_parameters.reference(1, d_model, vocab_size, n_positions)


@gpt2_parameters.mistake
def tables_in_every_layer(n_layers, d_model, vocab_size, n_positions):
    """You multiply everything by `n_layers`, the tables and the last norm as well. Only the layers are repeated: a
    token is looked up once, before the first of them. Look at your brackets."""
    return n_layers * gpt2_parameters.reference(1, d_model, vocab_size, n_positions)


@gpt2_parameters.mistake
def tables_and_layers_repeated(n_layers, d_model, vocab_size, n_positions):
    """You multiply the two tables by `n_layers`, and only the layers are repeated: a token is looked up once, before
    the first of them. The last norm is right. Look at your brackets."""
    return n_layers * (gpt2_parameters.reference(1, d_model, vocab_size, n_positions) - 2 * d_model) + 2 * d_model


@gpt2_parameters.mistake
def last_norm_in_every_layer(n_layers, d_model, vocab_size, n_positions):
    """You count a third norm in every layer. Two norms are in a layer; the third stands behind the last layer, once in
    the whole model. Look at your brackets, or at how many norms your layer has."""
    return gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions) + (n_layers - 1) * 2 * d_model


@gpt2_parameters.mistake
def layers_alone(n_layers, d_model, vocab_size, n_positions):
    """You count the layers and nothing else. In GPT-2 that loses a third of all parameters: the two tables, which stand
    before the first layer. And behind the last layer there is something too."""
    return n_layers * block_parameters.reference(d_model, 4 * d_model, True)


@gpt2_parameters.mistake
def a_table_at_either_end(n_layers, d_model, vocab_size, n_positions):
    """You count the layers and a table of tokens at either end. The second table is the head's, and it is tied: the
    same table, used again. Two things are missing: positions are learned as well, and a norm stands behind the last
    layer."""
    layers = n_layers * block_parameters.reference(d_model, 4 * d_model, True)
    return 2 * vocab_size * d_model + layers


@gpt2_parameters.mistake
def matrices_of_the_layers_alone(n_layers, d_model, vocab_size, n_positions):
    """You return the first half of the rule of thumb, the matrices of the layers. Its other half is the table of
    tokens, in GPT-2 nearly a third of the whole. The chapter's section 7.2 lists what the rule leaves out besides."""
    return 12 * n_layers * d_model**2


@gpt2_parameters.mistake
def middle_not_widened(n_layers, d_model, vocab_size, n_positions):
    """Your feed-forward layers are no wider in the middle than outside: you take `d_ff` to be `d_model`. In GPT-2 that
    loses a third of all parameters. The docstring says how wide the middle is."""
    layers = n_layers * block_parameters.reference(d_model, d_model, True)
    return (vocab_size + n_positions + 2) * d_model + layers


@gpt2_parameters.mistake
def output_projections_left_out(n_layers, d_model, vocab_size, n_positions):
    """In each layer one square map is missing, its matrix and its bias. Attention has four such maps; the fourth, after
    the heads, is the one that people forget. Does your `attention_parameters` pass its check?"""
    right = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
    return right - n_layers * (d_model**2 + d_model)


@gpt2_parameters.mistake
def attention_of_the_layers_left_out(n_layers, d_model, vocab_size, n_positions):
    """Attention is missing from your layers, its weights and its biases: a third of each layer. Count a layer with your
    `block_parameters`, which has it."""
    right = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
    return right - n_layers * (4 * d_model**2 + 4 * d_model)


@gpt2_parameters.mistake
def feed_forward_of_the_layers_left_out(n_layers, d_model, vocab_size, n_positions):
    """The feed-forward layer is missing from your layers, its weights and its biases: two thirds of each layer. Count a
    layer with your `block_parameters`, which has it."""
    right = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
    return right - n_layers * (8 * d_model**2 + 5 * d_model)


@gpt2_parameters.mistake
def tables_of_attention_counted(n_layers, d_model, vocab_size, n_positions):
    """You count a weight for each pair of positions, in every layer: a whole table. Those are the weights of
    *attention*: they are computed anew for each text, and no optimizer ever sees them. Only what stays when the text
    has gone is a parameter."""
    right = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
    return right + n_layers * n_positions**2


@gpt2_parameters.property
def _(function, n_layers, d_model, vocab_size, n_positions):
    """One token more in the vocabulary adds one row of `d_model` numbers."""
    base = function(n_layers, d_model, vocab_size, n_positions)
    return function(n_layers, d_model, vocab_size + 1, n_positions) - base == d_model


@gpt2_parameters.property
def _(function, n_layers, d_model, vocab_size, n_positions):
    """One position more adds one row of `d_model` numbers."""
    base = function(n_layers, d_model, vocab_size, n_positions)
    return function(n_layers, d_model, vocab_size, n_positions + 1) - base == d_model


@gpt2_parameters.property
def _(function, n_layers, d_model, vocab_size, n_positions):
    """One layer more adds what `block_parameters` counts for a layer with biases, whose `d_ff` is `4 * d_model`."""

    base = function(n_layers, d_model, vocab_size, n_positions)
    added = function(n_layers + 1, d_model, vocab_size, n_positions) - base
    return added == block_parameters.reference(d_model, 4 * d_model, True)


@gpt2_parameters.property
def _(function, n_layers, d_model, vocab_size, n_positions):
    """Besides the layers and the rows of the two tables there is only the last norm, with twice `d_model` numbers."""

    base = function(n_layers, d_model, vocab_size, n_positions)
    layer = function(n_layers + 1, d_model, vocab_size, n_positions) - base
    rest = base - n_layers * layer
    return rest - (vocab_size + n_positions) * d_model == 2 * d_model


# attention_flops


def every_query_and_key(seq):
    return seq * seq


def two_products(d_model):
    return 2 * 2 * d_model


@exercise(
    inputs=lambda draw: (3, 5),
    axes={},
    hints=(
        "Between its projections attention multiplies matrices twice: queries with keys, weights with values. Which "
        "shapes meet in each, and how many FLOPs is a product of (n, k) with (k, m)?",
        "The chapter's section 7.4 counts one product, and 7.5 explains the 4 in its formula. Write both products for "
        "2 tokens of 1 feature on paper, number by number.",
        "`scores = 2 * … * … * …`, `blend = 2 * … * … * …`, and `return scores + blend`",
    ),
)
def attention_flops(seq, d_model, *, table=every_query_and_key, work=two_products):
    """Count the FLOPs of scores and blend, all heads together, for a text of ``seq`` tokens."""
    return table(seq) * work(d_model)


attention_flops.example("more tokens than features", 17, 2, plain=True)
attention_flops.example("a text of 100 tokens", 100, 8, plain=True)
attention_flops.example("a full text of GPT-2", 1024, 768, plain=True)
attention_flops.example("a single token", 1, 7)


@attention_flops.equivalent
def scores_then_blend(seq, d_model):
    scores = 2 * seq * d_model * seq  # (seq, d_model) @ (d_model, seq)
    blend = 2 * seq * seq * d_model  # (seq, seq) @ (seq, d_model)
    return scores + blend


@attention_flops.equivalent
def by_multiply_adds(seq, d_model):
    multiply_adds = seq**2 * d_model + seq**2 * d_model
    return 2.0 * multiply_adds


@attention_flops.equivalent
def query_by_query(seq, d_model):
    total = 0
    for _ in range(seq):
        total += 2 * seq * d_model  # this query's scores
        total += 2 * seq * d_model  # this query's blend
    return total


@attention_flops.equivalent
def with_as_many_keys(seq, d_model):
    return compute.attention_flops(seq, d_model, k_len=seq)


@attention_flops.mistake(part="work")
def half_of_the_work(d_model):
    """For each pair of a query and a key you count half of what there is. Three ways lead there: a multiply-add taken
    for one FLOP, when it is two; one of the two products left out, scores or blend; or the causal mask, which this
    count ignores. Which of them is yours?"""
    return 2 * d_model


@attention_flops.mistake(part="work")
def a_quarter_of_the_work(d_model):
    """For each pair of a query and a key you count `d_model`: the multiply-adds of one product. There are two products,
    scores and blend, and a multiply-add is two FLOPs. Count both for 2 tokens of 1 feature, on paper."""
    return d_model


@attention_flops.mistake(part="work")
def three_products(d_model):
    """You count three products of matrices for each pair, perhaps one each for queries, keys and values. There are only
    two products: queries with keys, then weights with values. The maps that *make* queries, keys and values are
    projections, and are not asked for."""
    return 6 * d_model


@attention_flops.mistake(part="work")
def twice_the_work(d_model):
    """For each pair you count twice the right number. The 2 for a multiply-add has probably come in twice, or one for
    the two products a second time. Count both for 2 tokens of 1 feature, on paper."""
    return 8 * d_model


@attention_flops.mistake(part="work")
def work_of_training(d_model):
    """You count three times the work of the two products: that is forward *and* backward, a training step. Here the
    forward pass alone is asked for."""
    return 12 * d_model


@attention_flops.mistake(part="work")
def features_squared(d_model):
    """Your number grows with the square of `d_model`. In the projections it is so, where each feature meets each
    feature. In scores and blend a feature of a query meets the same feature of a key: twice the width is twice the
    work."""
    return 4 * d_model**2


@attention_flops.mistake(part="work")
def features_left_out(d_model):
    """Your number does not change with `d_model`: you count a multiply-add for each pair and product. A score is the
    product of two *vectors*, and has a multiply-add for each of their features; so has each use of a weight."""
    return 4


@attention_flops.mistake(part="table")
def one_query(seq):
    """Your number grows with `seq`, and not with its square: so much is the work for one query, or for one token that
    looks at a cache. Each of the `seq` tokens asks all of them. Twice as long a text takes four times the work here."""
    return seq


@attention_flops.mistake(part="table")
def pairs_under_the_causal_mask(seq):
    """You count the pairs that a causal mask leaves, each query with itself and with what came before. A kernel may
    skip the rest. The usual count keeps it, and so does the docstring: every query with every key."""
    return seq * (seq + 1) // 2


@attention_flops.mistake(part="table")
def pairs_of_different_tokens(seq):
    """You leave out the pairs of a token with itself. A query meets its own key as well: for one token your number is
    0, and it should not be. How many entries does the table of scores have?"""
    return seq * (seq - 1)


@attention_flops.mistake
def linear_in_the_length(seq, d_model):
    """You have the square on the wrong size: your number grows with `seq` and with the square of `d_model`. That is the
    work of products with weights, or of linear attention in one head. In scores and blend each token meets each token,
    feature by feature."""
    return 4 * seq * d_model**2


@attention_flops.mistake
def projections_alone(seq, d_model):
    """You count the four projections: eight times `seq` times the square of `d_model`. They are the part of attention
    with weights. Asked for is what has none, the two products between the projections."""
    return 8 * seq * d_model**2


@attention_flops.mistake
def projections_counted_too(seq, d_model):
    """You count the whole of attention, its four projections included. Asked for is what has no weights: the two
    products between the projections, which grow with the square of the length."""
    return 4 * seq**2 * d_model + 8 * seq * d_model**2


@attention_flops.mistake
def whole_layer_counted(seq, d_model):
    """You count a whole layer: its projections and its feed-forward layer are in your number. Asked for is the part
    that has no weights, the two products between the projections."""
    return 4 * seq**2 * d_model + 24 * seq * d_model**2


@attention_flops.mistake
def softmax_counted_too(seq, d_model):
    """You count the two products, and with them some operations for each entry of the table: the softmax. It costs a
    few where the products cost hundreds, so by custom only products are counted. Read in the docstring what belongs to
    the count."""
    return 4 * seq**2 * d_model + 3 * seq**2


@attention_flops.mistake
def first_addition_not_counted(seq, d_model):
    """You count one addition less in every sum: to add k products, k − 1 additions are enough. True, and not the
    custom: the sum starts at 0, so that a product of matrices is exactly two FLOPs for each multiply-add. The chapter's
    section 7.4 says so."""
    return seq**2 * (2 * d_model - 1) + seq * d_model * (2 * seq - 1)


@attention_flops.property
def _(function, seq, d_model):
    """Twice as long a text takes four times the work."""
    return function(2 * seq, d_model) == 4 * function(seq, d_model)


@attention_flops.property
def _(function, seq, d_model):
    """Twice as many features take twice the work."""
    return function(seq, 2 * d_model) == 2 * function(seq, d_model)


# kv_cache_bytes


def keys_and_values():
    return 2


def all_layers(n_layers):
    return n_layers


def all_features(d_model):
    return d_model


def all_tokens(seq):
    return seq


def all_sentences(batch):
    return batch


def so_many_bytes(bytes_per_value):
    return bytes_per_value


@exercise(
    inputs=lambda draw: (3, 6, 7, 5, 4),
    axes={},
    hints=(
        "Take one token of one sentence in one layer. Which vectors does the cache keep of it, and how many numbers "
        "has each?",
        "The chapter's section 7.8 works out the bytes for one token of GPT-2 by hand. Each of your five arguments "
        "doubles the bytes if it doubles; one more factor is no argument.",
        "`per_token = … * n_layers * …`, the numbers that a token leaves in all layers, and "
        "`return per_token * … * … * …`",
    ),
)
def kv_cache_bytes(
    n_layers,
    d_model,
    seq,
    batch,
    bytes_per_value,
    *,
    kinds=keys_and_values,
    layers=all_layers,
    features=all_features,
    tokens=all_tokens,
    sentences=all_sentences,
    size=so_many_bytes,
):
    """Count the bytes of a key-value cache that holds ``seq`` tokens of each of ``batch`` sentences."""
    numbers = kinds() * layers(n_layers) * features(d_model) * tokens(seq) * sentences(batch)
    return numbers * size(bytes_per_value)


kv_cache_bytes.example("numbers of two bytes", 5, 14, 11, 3, 2, plain=True)
kv_cache_bytes.example("numbers of one byte", 7, 22, 13, 9, 1, plain=True)
kv_cache_bytes.example("GPT-2 with 32 full texts", 12, 768, 1024, 32, 4, plain=True)
kv_cache_bytes.example("one token of one sentence", 12, 768, 1, 1, 8)
kv_cache_bytes.example("a cache that is still empty", 2, 6, 0, 5, 4)


@kv_cache_bytes.equivalent
def in_another_order(n_layers, d_model, seq, batch, bytes_per_value):
    return bytes_per_value * batch * seq * d_model * n_layers * 2


@kv_cache_bytes.equivalent
def layer_by_layer(n_layers, d_model, seq, batch, bytes_per_value):
    total = 0
    for _ in range(n_layers):
        keys = values = batch * seq * d_model
        total += (keys + values) * bytes_per_value
    return total


@kv_cache_bytes.equivalent
def of_a_gpt(n_layers, d_model, seq, batch, bytes_per_value):
    shape = ModelShape("gpt2", n_layers, d_model, 1, vocab_size=1, n_positions=1)
    return compute.kv_cache_bytes(shape, seq, batch, bytes_per_value)


@kv_cache_bytes.equivalent
def of_tensors(n_layers, d_model, seq, batch, bytes_per_value):
    cache = torch.empty(n_layers, 2, batch, seq, d_model, device="meta")
    return cache.numel() * bytes_per_value


@kv_cache_bytes.equivalent
def bits_to_bytes(n_layers, d_model, seq, batch, bytes_per_value):
    bits = 2 * n_layers * d_model * seq * batch * 8 * bytes_per_value
    return bits / 8


@kv_cache_bytes.mistake(part="kinds")
def one_vector_for_a_token(*sizes):
    """You count one vector for each token and layer: half of the cache is missing. The keys are there and the values
    are forgotten, or the other way round; an output needs both, the keys to compare and the values to blend."""
    return 1


@kv_cache_bytes.mistake(part="kinds")
def queries_kept_as_well(*sizes):
    """You count three vectors for each token and layer, as if queries were kept beside keys and values. A query is used
    once, in the step of its own token, and never again. Which of the three do later tokens look at?"""
    return 3


@kv_cache_bytes.mistake(part="kinds")
def four_vectors_for_a_token(*sizes):
    """You count four vectors for each token and layer, and the cache keeps two, a key and a value. A factor 2 has
    probably come in twice. Two more are kept in a decoder that looks at a source, for the source's tokens; a GPT has no
    source."""
    return 4


@kv_cache_bytes.mistake(part="layers")
def cache_of_one_layer(n_layers):
    """You count the cache of one layer: your number does not change with `n_layers`. Every layer has keys and values of
    its own, since each has projections of its own."""
    return 1


@kv_cache_bytes.mistake(part="features")
def vectors_instead_of_numbers(d_model):
    """You count vectors, and not their numbers: the result does not change with `d_model`. A key has `d_model` numbers,
    all heads together, and so has a value."""
    return 1


@kv_cache_bytes.mistake(part="features")
def projections_instead_of_vectors(d_model):
    """Your number grows with the square of `d_model`. Square are the matrices that *make* keys and values; those are
    parameters, and are there without any text. The cache keeps what comes out of them, a vector for each token."""
    return d_model**2


@kv_cache_bytes.mistake(part="tokens")
def one_token_only(seq):
    """Your number does not change with `seq`: it is what one token adds to the cache. All tokens up to now are in it;
    that is what it is for."""
    return 1


@kv_cache_bytes.mistake(part="tokens")
def table_of_pairs(seq):
    """Your number grows with the square of `seq`. So does the table of attention weights, which is used and thrown
    away. The cache has an entry for each token, not for each pair."""
    return seq**2


@kv_cache_bytes.mistake(part="tokens")
def last_token_left_out(seq):
    """You count one token less than the cache holds. The newest token looks at itself too, so its key and its value are
    there before its scores are formed. And `seq` is how many the cache *holds*, says the docstring."""
    return seq - 1


@kv_cache_bytes.mistake(part="tokens")
def one_token_more(seq):
    """You count one token more than the cache holds. The token that is about to be written has no key yet: it gets one
    when it goes through the model, in the next step. And `seq` is how many the cache *holds*, says the docstring."""
    return seq + 1


@kv_cache_bytes.mistake(part="sentences")
def one_sentence_only(batch):
    """Your number does not change with `batch`. Weights are shared by all sentences of a batch; a cache is not, since
    each sentence has tokens of its own."""
    return 1


@kv_cache_bytes.mistake(part="size")
def numbers_instead_of_bytes(bytes_per_value):
    """You count numbers, and not bytes: the result does not change with `bytes_per_value`. A number in float32 takes
    four bytes, one in float16 two."""
    return 1


@kv_cache_bytes.mistake(part="size")
def bits_instead_of_bytes(bytes_per_value):
    """You count bits, eight for each byte. A value's size is given in bytes here, so nothing has to be converted; the
    32 in `float32` is what counts bits."""
    return 8 * bytes_per_value


@kv_cache_bytes.mistake(part="size")
def an_eighth_of_the_bytes(bytes_per_value):
    """You divide by eight, as if the sizes were given in bits. They are bytes already, as the name `bytes_per_value`
    says."""
    return bytes_per_value / 8


@kv_cache_bytes.mistake(part="size")
def always_four_bytes(bytes_per_value):
    """You take every number for float32: four bytes, whatever `bytes_per_value` says. Caches are often kept in 16 bits,
    to have room for twice as many tokens. Look at where you use the argument."""
    return 4


@kv_cache_bytes.mistake(part="size")
def always_two_bytes(bytes_per_value):
    """Your number does not change with `bytes_per_value`: it is as if each took two bytes. (Or four, if only keys or
    only values are counted: that comes to the same.) Look at where you use the argument."""
    return 2


@kv_cache_bytes.mistake
def projections_of_keys_and_values(n_layers, d_model, seq, batch, bytes_per_value):
    """You count the matrices that *make* keys and values: your number changes neither with `seq` nor with `batch`.
    Those are parameters, and are there without any text. The cache keeps what comes out of them, for each token."""
    return 2 * n_layers * d_model**2 * bytes_per_value


@kv_cache_bytes.mistake
def length_in_place_of_the_width(n_layers, d_model, seq, batch, bytes_per_value):
    """`seq` comes in twice in your number and `d_model` not at all. A table of attention weights has `seq` numbers for
    each token; a key has `d_model`. Look at which argument stands where."""
    return 2 * n_layers * seq * seq * batch * bytes_per_value


@kv_cache_bytes.mistake
def cache_in_megabytes(n_layers, d_model, seq, batch, bytes_per_value):
    """You return megabytes of a million bytes each. Asked for are bytes; divide where you print, so that nothing is
    lost on the way."""
    return kv_cache_bytes.reference(n_layers, d_model, seq, batch, bytes_per_value) / 1e6


@kv_cache_bytes.mistake
def cache_in_mebibytes(n_layers, d_model, seq, batch, bytes_per_value):
    """You return your result in units of 1024 · 1024 bytes. Asked for are bytes; divide where you print, and say then
    which unit it is: these are mebibytes, and five per cent larger than megabytes."""
    return kv_cache_bytes.reference(n_layers, d_model, seq, batch, bytes_per_value) / 2**20


@kv_cache_bytes.mistake
def cache_in_kibibytes(n_layers, d_model, seq, batch, bytes_per_value):
    """You return your result in units of 1024 bytes. Asked for are bytes; divide where you print, so that nothing is
    lost on the way."""
    return kv_cache_bytes.reference(n_layers, d_model, seq, batch, bytes_per_value) / 1024


def _twice(number):
    """Whether twice the argument of that number gives twice the result."""

    def holds(function, *sizes):
        doubled = [size * (1 + (place == number)) for place, size in enumerate(sizes)]
        return function(*doubled) == 2 * function(*sizes) != 0

    return holds


for _number, _what in enumerate(("the layers", "the features", "the tokens", "the sentences", "the bytes of a value")):
    _property = _twice(_number)
    _property.__doc__ = f"Twice {_what}, twice the bytes."
    kv_cache_bytes.property(_property)


# mend_model_size


def each_once(model):
    return list(model.parameters())


def by_its_type(parameter):
    return parameter.element_size()


def _size_of(tensors):
    tensors = list(tensors)
    return sum(t.numel() for t in tensors), sum(t.numel() * t.element_size() for t in tensors)


def _small_gpt(tie=True):
    """A model that nobody runs: two tables, a layer, a norm, and a head."""
    model = nn.ModuleDict(
        {
            "token": nn.Embedding(11, 6),
            "position": nn.Embedding(5, 6),
            "layer": nn.Sequential(nn.Linear(6, 24), nn.GELU(), nn.Linear(24, 6)),
            "norm": nn.LayerNorm(6),
            "head": nn.Linear(6, 11, bias=False),
        }
    )
    if tie:
        model["head"].weight = model["token"].weight
    return model


@exercise(
    inputs=lambda draw: (_small_gpt(),),
    axes={},
    hints=(
        "What does a `state_dict` hold: the parameters, each once, or something else? And how many bytes has a number?",
        "The chapter's section 7.12 prints what `state_dict()` makes of a tied head and of a batch norm. For the "
        "bytes, section 7.7 has a function that adds them up, tensor by tensor.",
        "`parameters = list(model.…())`, then one sum of `….numel()`, and one of `….numel() * ….…()`",
    ),
)
def mend_model_size(model, *, counted=each_once, size=by_its_type):
    """Return how many parameters a module has, each once, and how many bytes they take."""
    parameters = counted(model)
    return sum(p.numel() for p in parameters), sum(p.numel() * size(p) for p in parameters)


@mend_model_size.probe(plain=True)
def _(draw):
    """a head that is not tied"""
    return (_small_gpt(tie=False),)


@mend_model_size.probe(plain=True)
def _(draw):
    """a tied model in half precision"""
    return (_small_gpt().half(),)


@mend_model_size.probe(plain=True)
def _(draw):
    """a batch norm and its buffers"""
    return (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)),)


@mend_model_size.probe
def _(draw):
    """bfloat16"""
    return (nn.Linear(5, 3, dtype=torch.bfloat16),)


@mend_model_size.probe
def _(draw):
    """float64"""
    return (nn.Linear(4, 7, dtype=torch.float64),)


@mend_model_size.probe
def _(draw):
    """matrices in half precision between norms in float32"""
    model = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 9, dtype=torch.float16), nn.LayerNorm(9))
    return (model,)


@mend_model_size.probe
def _(draw):
    """frozen parameters"""
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    model[0].requires_grad_(False)
    return (model,)


@mend_model_size.probe
def _(draw):
    """a layer that is used twice"""
    layer = nn.Linear(4, 4)
    return (nn.ModuleList([layer, nn.ReLU(), layer]),)


@mend_model_size.probe(plain=True)
def _(draw):
    """a parameter that stands in no layer"""
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU())
    model.register_parameter("scale", nn.Parameter(torch.ones(7)))
    return (model,)


@mend_model_size.probe
def _(draw):
    """a model on the device meta"""
    return (nn.Sequential(nn.Linear(3, 8), nn.Linear(8, 2)).to_empty(device="meta"),)


@mend_model_size.probe
def _(draw):
    """a module without parameters"""
    return (nn.Sequential(nn.ReLU(), nn.BatchNorm1d(4, affine=False)),)


@mend_model_size.equivalent
def in_a_loop(model):
    count = size = 0
    for _, parameter in model.named_parameters():
        count += parameter.nelement()
        size += parameter.nelement() * parameter.dtype.itemsize
    return count, size


@mend_model_size.equivalent
def by_identity(model):
    seen = {}
    for module in model.modules():
        for parameter in module._parameters.values():
            if parameter is not None:
                seen[id(parameter)] = parameter
    return [sum(p.numel() for p in seen.values()), sum(p.nbytes for p in seen.values())]


@mend_model_size.equivalent
def sets_of_parameters(model):
    everything = set(dict(model.named_parameters(remove_duplicate=False)).values())
    return len([1 for p in everything for _ in range(p.numel())]), sum(p.element_size() * p.numel() for p in everything)


def everything_saved(model):
    """You count what `state_dict()` holds. It is made for saving: it lists a tied matrix under both of its names, and
    it holds buffers, which nobody learns. In this way you find 163 million parameters in a GPT-2, instead of 124. What
    does a module give you that has each parameter once?"""
    return list(model.state_dict().values())


def four_bytes(parameter):
    """You count four bytes for every number, as in float32. A model in half precision has as many parameters, and they
    take half the room. Ask each tensor how large its numbers are."""
    return 4


mend_model_size.mistake(part="counted")(everything_saved)
mend_model_size.mistake(part="size")(four_bytes)


@mend_model_size.mistake
def as_given(model):
    """This acts like the program as it was given. Three things do not fit: a tied table counts twice, the buffers of a
    batch norm count too, and in half precision the bytes are too many. Print the names that the loop goes through.
    Which of these tensors are parameters, and which came before under another name?"""
    numbers = sum(tensor.numel() for tensor in model.state_dict().values())
    return numbers, 4 * numbers


@mend_model_size.mistake
def bytes_of_all_that_is_saved(model):
    """The parameters are right. The bytes are still those of the `state_dict`, with tied matrices twice and with
    buffers. Add the bytes up over the same tensors as the count."""
    count = mend_model_size.reference(model)[0]
    return count, sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())


@mend_model_size.mistake
def all_saved_but_the_head(model):
    """You count what `state_dict()` holds, without what is called `head`. A tied head is right by that; one that is not
    tied has a matrix of its own, which then is missing; and the buffers of a batch norm are still counted. Whether a
    matrix is tied does not show in its name."""
    return _size_of([tensor for name, tensor in model.state_dict().items() if "head" not in name])


@mend_model_size.mistake(part="counted")
def tied_under_both_names(model):
    """You count a tied matrix under each of its names: a parameter that is used twice is there twice. Buffers are gone,
    so half of the mending is done. You go through all names, or through all modules, and meet the tied one twice. How
    can you tell that a second name leads to an object that you have counted?"""
    return [parameter for _, parameter in model.named_parameters(remove_duplicate=False)]


@mend_model_size.mistake(part="counted")
def buffers_counted(model):
    """Tied matrices are right, and buffers are counted: the running mean of a batch norm, its running variance, and a
    counter of steps. No optimizer sees them. They are stored with the model, and not learned."""
    return list(model.parameters()) + list(model.buffers())


@mend_model_size.mistake(part="counted")
def once_for_each_module_around(model):
    """You go through all submodules and ask each for its `parameters()`, which gives those of *its* submodules too. So
    a parameter counts once for every module around it: the layer of the chapter's section 7.12 has 716 instead of 244.
    Ask one module, the outermost."""
    return [parameter for module in model.modules() for parameter in module.parameters()]


@mend_model_size.mistake
def of_the_outermost_alone(model):
    """You count the parameters that the outermost module holds itself, and those of its submodules are missing. Mostly
    that is none at all: a model's parameters are held by its layers. Look at what `recurse` does in `parameters`."""
    return _size_of(model.parameters(recurse=False))


@mend_model_size.mistake(part="counted")
def trainable_alone(model):
    """Frozen parameters are missing from your count: you ask for `requires_grad`. Freezing a layer does not make the
    model smaller. Asked for is the size of the model, and not what this training changes."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


@mend_model_size.mistake
def those_with_a_gradient(model):
    """You find no parameters at all, in any model. That happens if you ask for a gradient: before the first backward
    pass no parameter has one. The size of a model does not depend on whether it has been trained."""
    return _size_of([])


@mend_model_size.mistake
def those_called_weight(model):
    """You count what is called `weight`. Biases are missing, and so is every parameter with a name of its own. What
    makes a tensor a parameter is not its name."""
    return _size_of([parameter for name, parameter in model.named_parameters() if "weight" in name])


@mend_model_size.mistake
def one_of_each_shape(model):
    """You take two tensors of one shape for the same tensor, and count them once. A tied matrix does have the shape of
    its twin; so do the weight and the bias of a norm, which are two. What makes two names mean one parameter?"""
    return _size_of(list({tuple(parameter.shape): parameter for parameter in model.parameters()}.values()))


@mend_model_size.mistake
def one_at_each_address(model):
    """You tell parameters apart by where their numbers lie in memory. On the device `meta` nothing lies anywhere: all
    have the address 0 there, and one of them is left. Two names mean one parameter when they are the same *object*."""
    return _size_of(list({parameter.data_ptr(): parameter for parameter in model.parameters()}.values()))


@mend_model_size.mistake(part="counted")
def head_never_counted(model):
    """You leave out what is called `head`. That is right for a tied head by luck; one that is not tied has a matrix of
    its own, which then is missing. Whether it is tied does not show in its name."""
    return [parameter for name, parameter in model.named_parameters() if "head" not in name]


@mend_model_size.mistake
def matrices_alone(model):
    """Biases and norms are missing from your count: you take matrices only. The rule of thumb does so as well. Here
    each parameter counts, whatever its shape."""
    return _size_of([parameter for parameter in model.parameters() if parameter.ndim > 1])


@mend_model_size.mistake
def embeddings_left_out(model):
    """The embeddings are missing from your count. Some papers leave them out to compare models; in GPT-2 that is nearly
    a third. They are learned, so they count, and a tied head does not bring them back."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    return _size_of([parameter for parameter in model.parameters() if id(parameter) not in tables])


@mend_model_size.mistake(part="size")
def bits(parameter):
    """You count bits, eight for each byte. The numbers in `float32` and in `finfo(…).bits` are bits; eight of them are
    a byte."""
    return 8 * parameter.element_size()


@mend_model_size.mistake
def two_bytes(model):
    """You count two bytes for every number, as in half precision. In float32 a number has four. Ask each tensor how
    large its numbers are."""
    return mend_model_size.reference(model, size=lambda parameter: 2)


@mend_model_size.mistake
def bytes_of_training(model):
    """You count four times the bytes of the parameters. That is what training with Adam takes: weights, gradients, and
    the two means of the optimizer. Asked for are the parameters alone."""
    return mend_model_size.reference(model, size=lambda parameter: 4 * parameter.element_size())


@mend_model_size.mistake
def two_or_four_bytes(model):
    """You know two sizes of a number: two bytes for float16, four for all others. There are more types: bfloat16 has
    two as well, float64 has eight. Ask each tensor how large its numbers are."""
    return mend_model_size.reference(model, size=lambda parameter: 2 if parameter.dtype == torch.float16 else 4)


@mend_model_size.mistake
def first_type_for_all(model):
    """You take the type of one parameter for that of all. In mixed precision a model may keep its norms in float32 and
    its matrices in 16 bits. Add up the bytes tensor by tensor."""
    parameters = list(model.parameters())
    count = sum(parameter.numel() for parameter in parameters)
    return count, count * parameters[0].element_size() if parameters else 0


@mend_model_size.mistake
def bytes_before_the_count(model):
    """You return the bytes first and the count second. Asked for is the count, then the bytes."""
    return mend_model_size.reference(model)[::-1]


@mend_model_size.mistake
def tensors_counted(model):
    """Your count is that of the *tensors*: how many parameters `model.parameters()` gives. A tensor holds many numbers,
    and each of them is learned. Ask each tensor how many it has."""
    return len(list(model.parameters())), mend_model_size.reference(model)[1]


@mend_model_size.mistake
def size_in_megabytes(model):
    """You return megabytes, and asked for are bytes. Divide where you print, so that nothing is lost on the way."""
    count, size = mend_model_size.reference(model)
    return count, size / 1e6


@mend_model_size.property
def _(function, model):
    """In float64 every parameter takes eight bytes."""
    count, size = function(deepcopy(model).double())
    return size == 8 * count


@mend_model_size.property
def _(function, model):
    """A buffer more changes nothing: it is not learned."""
    larger = deepcopy(model)
    larger.register_buffer("steps", torch.zeros(7))
    return function(larger) == function(deepcopy(model))


@mend_model_size.property
def _(function, model):
    """A second name for a layer that is there already changes nothing."""
    larger = nn.ModuleDict({"first": deepcopy(model)})
    larger["second"] = larger["first"]
    return function(larger) == function(deepcopy(model))
