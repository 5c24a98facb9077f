"""How many parameters GPT-2 has."""

from ...parameters import ModelShape, count_parameters
from ..exercise import exercise
from .block_parameters import block_parameters


def table_of_tokens(vocab_size, d_model):
    """Count a vector for each token of the vocabulary."""
    return vocab_size * d_model


def table_of_positions(n_positions, d_model):
    """Count a vector for each position."""
    return n_positions * d_model


def twelve_squares_in_a_layer(d_model):
    """Count the matrices of a layer."""
    return 12 * d_model**2


def thirteen_widths_in_a_layer(d_model):
    """Count the biases and the norms of a layer."""
    return 13 * d_model  # 4 in attention's biases, 5 in the feed-forward layer's, 4 in the two norms


def norm_at_the_end(d_model):
    """Count the last norm."""
    return 2 * d_model


def tied_head(vocab_size, d_model):
    """Count nothing for the head: it is the table of tokens."""
    return 0


@exercise(
    inputs=lambda draw: (2, 3, 11, 5),
    axes={},
    hints=(
        "Follow a token through the model: two tables, the layers one after another, a last norm, the head. Which of "
        "these parts does your `block_parameters` count, and how often do you need this count?",
        "The chapter's section 7.2 counts the parameters of a very small GPT and prints them by component. Try your "
        "function with the same sizes: 1 layer, width 4, 10 tokens, 6 positions. The table of that section names "
        "everything that the rule of thumb leaves out; the last column of the table says which of these parts GPT-2 "
        "has.",
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
    head=tied_head,
):
    """Count the parameters of a GPT-2 of any size: tables, pre-norm layers and the last norm; the head is tied.

    Returns an int, not a float.
    """
    tables = tokens(vocab_size, d_model) + positions(n_positions, d_model)
    layers = n_layers * (weights(d_model) + vectors(d_model))
    return tables + layers + last_norm(d_model) + head(vocab_size, d_model)


gpt2_parameters.example("a wide and shallow model", 3, 40, 101, 17, plain=True)
gpt2_parameters.example("a narrow and deep model", 29, 6, 13, 230, plain=True)
gpt2_parameters.example("GPT-2 as published", 12, 768, 50257, 1024, plain=True)
gpt2_parameters.example("a single layer", 1, 4, 10, 6)


@gpt2_parameters.right
class RightAnswers:
    def by_the_blocks(n_layers, d_model, vocab_size, n_positions):
        total = (vocab_size + n_positions) * d_model
        for _ in range(n_layers):
            total += block_parameters.reference(d_model, 4 * d_model, True)
        return total + 2 * d_model

    def as_one_polynomial(n_layers, d_model, vocab_size, n_positions):
        return d_model * (vocab_size + n_positions + 2 + n_layers * (12 * d_model + 13))

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

    def of_a_model_shape(n_layers, d_model, vocab_size, n_positions):
        return count_parameters(
            ModelShape("gpt2", n_layers, d_model, 1, vocab_size=vocab_size, n_positions=n_positions)
        )


@gpt2_parameters.property
def one_token_more(function, n_layers, d_model, vocab_size, n_positions):
    """One more token in the vocabulary adds one row of `d_model` numbers."""
    base = function(n_layers, d_model, vocab_size, n_positions)
    return function(n_layers, d_model, vocab_size + 1, n_positions) - base == d_model


@gpt2_parameters.property
def one_position_more(function, n_layers, d_model, vocab_size, n_positions):
    """One more position adds one row of `d_model` numbers."""
    base = function(n_layers, d_model, vocab_size, n_positions)
    return function(n_layers, d_model, vocab_size, n_positions + 1) - base == d_model


@gpt2_parameters.property
def one_layer_more(function, n_layers, d_model, vocab_size, n_positions):
    """One more layer adds what `block_parameters` counts for a layer with biases and a `d_ff` of `4 * d_model`."""

    base = function(n_layers, d_model, vocab_size, n_positions)
    added = function(n_layers + 1, d_model, vocab_size, n_positions) - base
    return added == block_parameters.reference(d_model, 4 * d_model, True)


@gpt2_parameters.property
def nothing_else_but_the_last_norm(function, n_layers, d_model, vocab_size, n_positions):
    """Apart from the layers and the two tables, the model has only the last norm, with twice `d_model` numbers."""

    base = function(n_layers, d_model, vocab_size, n_positions)
    layer = function(n_layers + 1, d_model, vocab_size, n_positions) - base
    rest = base - n_layers * layer
    return rest - (vocab_size + n_positions) * d_model == 2 * d_model


@gpt2_parameters.wrong(stage="tokens")
class Tokens:
    def tokens_as_single_numbers(vocab_size, d_model):
        """You count one number for each token of the vocabulary. The table has a *row* for each token: the features
        that represent it in the model. Look at its shape in the chapter's section 7.2."""
        return vocab_size

    def no_table_of_tokens(vocab_size, d_model):
        """The table of tokens is missing: 38.6 million numbers in GPT-2. Some papers leave embeddings out when they
        compare models. You also lose the table if you count it as part of the tied head, but count the head as 0. The
        table is learned, so it counts once."""
        return 0


@gpt2_parameters.wrong(stage="positions")
class Positions:
    def no_table_of_positions(n_positions, d_model):
        """The positions are missing: your count does not change with `n_positions`. In the first Transformer they are
        sines and cosines, which are not learned. GPT-2 learns a table with a row for each position."""
        return 0

    def positions_as_single_numbers(n_positions, d_model):
        """You count one number for each position. A position's vector is added to a token's vector, so it has as many
        features as the token. Look at the row of positions in the table of the chapter's section 7.2."""
        return n_positions


@gpt2_parameters.wrong(stage="weights")
class Weights:
    def weights_of_attention_alone(d_model):
        """The matrices of the feed-forward layer are missing, two thirds of a layer. In each layer they have eight
        squares of the width as weights, and attention's matrices have four. Which `d_ff` do you use in your count of a
        layer?"""
        return 4 * d_model**2

    def eight_squares_in_a_layer(d_model):
        """In each layer you count 8 × width² weights, but there are 12 × width². Either you leave out the four
        matrices of attention, or one of the feed-forward layer's two matrices, which is as large as those four.
        Compare your terms with the sum in the chapter's section 7.1."""
        return 8 * d_model**2

    def sixteen_squares_in_a_layer(d_model):
        """In each layer you count sixteen squares of the width as weights, but there are twelve. Either you add
        attention's four squares to the rule's twelve, which already include them, or you count three matrices in the
        feed-forward layer instead of two. Compare your terms with the sum in the chapter's section 7.1."""
        return 16 * d_model**2


@gpt2_parameters.wrong(stage="vectors")
class Vectors:
    def three_widths_too_many(d_model):
        """In each layer you count `3 * d_model` numbers too many. This happens if both biases of the feed-forward layer
        have `4 * d_model` numbers: the second bias is added where a token has `d_model` features again. Does your
        `block_parameters` pass its check?"""
        return 16 * d_model

    def one_width_short(d_model):
        """In each layer `d_model` numbers are missing. A single bias has this many numbers: for example, the bias of
        attention's output projection, or the bias of the feed-forward layer's second map. For which tensor of the list
        in the chapter's section 7.1 does your count have no term?"""
        return 12 * d_model

    def two_widths_short(d_model):
        """In each layer `2 * d_model` numbers are missing. One of the two norms has this many, and so do the biases of
        both norms together: a norm learns a weight and a bias for each feature. Which of these does your count leave
        out?"""
        return 11 * d_model

    def three_widths_short(d_model):
        """In each layer `3 * d_model` numbers are missing, as many as the biases of queries, keys and values have. (The
        same number is missing if both biases in the feed-forward layer have `d_model` numbers: the first bias must be
        longer.) Which of these mistakes is yours?"""
        return 10 * d_model

    def four_widths_short(d_model):
        """In each layer `4 * d_model` numbers are missing. Three parts have this many: the four biases of attention
        together, the two norms together, and the wide bias of the feed-forward layer. Which of the three does your
        count leave out?"""
        return 9 * d_model

    def five_widths_short(d_model):
        """In each layer `5 * d_model` numbers are missing: the biases of the feed-forward layer, the wide one and the
        narrow one. Look at the column of biases in the table of the chapter's section 7.1."""
        return 8 * d_model

    def nine_widths_short(d_model):
        """In each layer `9 * d_model` numbers are missing: the biases of all linear maps, four widths in attention and
        five in the feed-forward layer. The norms are in your count. Look at the column of biases in the table of the
        chapter's section 7.1."""
        return 4 * d_model

    def layers_without_biases(d_model):
        """Your layers have no biases, neither in their linear maps nor in their norms. GPT-2 has biases in both. Look
        at what you pass to `block_parameters` as its last argument."""
        return 2 * d_model

    def layers_of_matrices_alone(d_model):
        """You count only the matrices of each layer: its biases and its norms are missing. This is the rule of thumb,
        `12 * d_model**2`. Your `block_parameters` counts the biases and the norms too."""
        return 0


@gpt2_parameters.wrong(stage="last_norm")
class LastNorm:
    def no_last_norm(d_model):
        """The norm after the last layer is missing. It belongs to no layer, so it is easily lost when you multiply one
        layer by the number of layers; pre-norm needs it, as chapter 6 shows. How many numbers does a norm learn?"""
        return 0

    def last_norm_without_its_bias(d_model):
        """You count only half of the norm after the last layer, `d_model` numbers. Like the norms inside the layers, it
        has a weight and a bias for each feature."""
        return d_model

    def last_norm_of_single_numbers(d_model):
        """You count 2 numbers for the norm after the last layer: one weight and one bias for all features together. The
        mean and the variance of a token are single numbers, but they are computed and not learned. Each tensor that a
        norm learns has a number for each feature. Look at what your `block_parameters` counts for a norm."""
        return 2

    def one_norm_too_many(d_model):
        """Outside the layers you count `2 * d_model` numbers too many: a second norm, or two rows for segments. BERT
        has a norm after its embeddings and a table of two segments; GPT-2 has only the two tables and one norm at its
        end."""
        return 4 * d_model


@gpt2_parameters.wrong(stage="head")
class Head:
    def head_counted(vocab_size, d_model):
        """You count the output head as a separate matrix: `vocab_size * d_model` numbers too many, 38.6 million in
        GPT-2. The head is tied: it uses the table of tokens a second time, transposed, and has no parameters of its
        own. The chapter's section 7.3 builds a tied head."""
        return vocab_size * d_model

    def bias_of_the_head(vocab_size, d_model):
        """You count a bias for the output head, a number for each token of the vocabulary. A linear map usually has a
        bias, but the head of GPT-2 has none: it is the table of tokens and nothing else. Look at how the chapter's
        section 7.3 builds it."""
        return vocab_size

    def head_with_its_bias_counted(vocab_size, d_model):
        """You count the output head as an ordinary linear map, with its own matrix and bias. The head is tied: its
        matrix *is* the table of tokens, and it adds no bias. Look at how the chapter's section 7.3 builds it."""
        return vocab_size * d_model + vocab_size

    def pooler_counted(vocab_size, d_model):
        """You count a square map with its bias outside the layers: the pooler. BERT has a pooler, which reads the first
        token for a decision about the whole text. GPT-2 has none: look at GPT-2's column in the table of the chapter's
        section 7.2."""
        return d_model**2 + d_model


@gpt2_parameters.wrong
class WrongAnswers:
    def attention_counted_twice(n_layers, d_model, vocab_size, n_positions):
        """In each layer you count attention's weights and biases a second time: `block_parameters` counts them already,
        and the rule's twelve squares include the weights. (A third matrix in the feed-forward layer, with its bias, has
        as many numbers.) Compare your terms for a layer with the sum in the chapter's section 7.1: what do you count
        twice?"""
        right_count = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
        return right_count + n_layers * (4 * d_model**2 + 4 * d_model)

    def always_gpt2(n_layers, d_model, vocab_size, n_positions):
        """Your number is that of GPT-2, whatever the arguments are. Your function contains the sizes of GPT-2 as
        numbers: 12 layers, a width of 768, its vocabulary and its positions. The function must count a model of any
        size. Which argument replaces which number?"""
        return 124_439_808

    def always_twelve_layers(n_layers, d_model, vocab_size, n_positions):
        """You always count twelve layers: the result does not change with `n_layers`. GPT-2 has twelve, but the check
        also uses other models. (The 12 of the rule is a different number: it counts squares in a layer.) Look at where
        you use the argument."""
        return gpt2_parameters.reference(12, d_model, vocab_size, n_positions)

    def middle_of_gpt2(n_layers, d_model, vocab_size, n_positions):
        """Your feed-forward layers always have 3,072 features in the middle, as in GPT-2, whatever `d_model` is. The
        docstring says how much wider the middle is. What do you pass to `block_parameters` as its `d_ff`?"""
        layers = n_layers * block_parameters.reference(d_model, 3072, True)
        return (vocab_size + n_positions + 2) * d_model + layers

    def middle_of_four_features(n_layers, d_model, vocab_size, n_positions):
        """Your feed-forward layers have 4 features in the middle, but they need 4 times `d_model`. What do you pass to
        `block_parameters` as its `d_ff`: a factor, or a width?"""
        layers = n_layers * block_parameters.reference(d_model, 4, True)
        return (vocab_size + n_positions + 2) * d_model + layers

    def widths_exchanged(n_layers, d_model, vocab_size, n_positions):
        """In your layers the two widths are exchanged: attention and norms are `4 * d_model` wide, and the middle of
        the feed-forward layer has `d_model` features. What is the order of the arguments of `block_parameters`?"""
        layers = n_layers * block_parameters.reference(4 * d_model, d_model, True)
        return (vocab_size + n_positions + 2) * d_model + layers

    def table_for_each_pair(n_layers, d_model, vocab_size, n_positions):
        """You multiply the number of tokens by the number of positions, as if there were a row for each pair. There are
        two tables, and the model adds a row of one table to a row of the other: the token's row does not depend on the
        position. How do you combine the sizes of two separate tables?"""
        right_count = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
        return right_count + (vocab_size * n_positions - vocab_size - n_positions) * d_model

    def in_millions(n_layers, d_model, vocab_size, n_positions):
        """You return millions of parameters. The task asks for the exact number; divide where you print it."""
        return gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions) / 1e6

    def rule_of_thumb_for_a_model(n_layers, d_model, vocab_size, n_positions):
        """You compute the rule of thumb: the matrices of the layers and the table of tokens. For GPT-2 its result is
        0.7 per cent too low, by 907,776 numbers. The chapter's section 7.2 lists what the rule leaves out: for GPT-2,
        the positions, the biases and the norms."""
        return 12 * n_layers * d_model**2 + vocab_size * d_model

    def no_norms_at_all(n_layers, d_model, vocab_size, n_positions):
        """All norms are missing: those of the layers and the norm after the last layer. A norm has no matrix, but it
        learns a weight and a bias for each feature. How many norms does a model of `n_layers` layers have?"""
        right_count = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
        return right_count - (2 * n_layers + 1) * 2 * d_model

    def biases_of_all_norms_left_out(n_layers, d_model, vocab_size, n_positions):
        """All your norms, those in the layers and the last one, learn one number for each feature instead of two.
        RMSNorm learns one; GPT-2 has layer norms, which multiply each feature by a weight *and* add a bias."""
        right_count = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
        return right_count - (2 * n_layers + 1) * d_model

    def one_layer_only(n_layers, d_model, vocab_size, n_positions):
        """You always count one layer: the result does not change with `n_layers`. Each layer has its own weights and
        shares none with the other layers. Look at where you use the argument."""
        return gpt2_parameters.reference(1, d_model, vocab_size, n_positions)

    def tables_in_every_layer(n_layers, d_model, vocab_size, n_positions):
        """You multiply everything by `n_layers`, even the tables and the last norm. Only the layers are repeated: the
        model looks up a token once, before the first layer. Look at your brackets."""
        return n_layers * gpt2_parameters.reference(1, d_model, vocab_size, n_positions)

    def tables_and_layers_repeated(n_layers, d_model, vocab_size, n_positions):
        """You multiply the two tables by `n_layers`, but only the layers are repeated: the model looks up a token once,
        before the first layer. {The last norm is right.} Look at your brackets."""
        return n_layers * (gpt2_parameters.reference(1, d_model, vocab_size, n_positions) - 2 * d_model) + 2 * d_model

    def last_norm_in_every_layer(n_layers, d_model, vocab_size, n_positions):
        """You count a third norm in every layer. A layer has two norms; the third follows the last layer, once in the
        whole model. Look at your brackets, or at how many norms your layer has."""
        return gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions) + (n_layers - 1) * 2 * d_model

    def layers_alone(n_layers, d_model, vocab_size, n_positions):
        """You count the layers and nothing else. In GPT-2 nearly a third of all parameters is then missing: the two
        tables, which come before the first layer. Another part, after the last layer, is missing too."""
        return n_layers * block_parameters.reference(d_model, 4 * d_model, True)

    def a_table_at_either_end(n_layers, d_model, vocab_size, n_positions):
        """You count the layers and two tables of tokens, one at each end. The second table is the head's, but the head
        is tied: it uses the first table again. Two parts are missing: the learned positions, and the norm after the
        last layer."""
        layers = n_layers * block_parameters.reference(d_model, 4 * d_model, True)
        return 2 * vocab_size * d_model + layers

    def matrices_of_the_layers_alone(n_layers, d_model, vocab_size, n_positions):
        """You compute only the first half of the rule of thumb, the matrices of the layers. Its second half is the
        table of tokens, in GPT-2 nearly a third of all parameters. The chapter's section 7.2 lists what the rule leaves
        out."""
        return 12 * n_layers * d_model**2

    def middle_not_widened(n_layers, d_model, vocab_size, n_positions):
        """The middle of your feed-forward layers has `d_model` features: you use `d_model` as `d_ff`. In GPT-2 a third
        of all parameters is then missing. The docstring says how wide the middle is."""
        layers = n_layers * block_parameters.reference(d_model, d_model, True)
        return (vocab_size + n_positions + 2) * d_model + layers

    def output_projections_left_out(n_layers, d_model, vocab_size, n_positions):
        """In each layer one square map is missing, with its matrix and its bias. Attention has four such maps; the
        fourth, after the heads, is the one that people forget. Does your `attention_parameters` pass its check?"""
        right_count = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
        return right_count - n_layers * (d_model**2 + d_model)

    def attention_of_the_layers_left_out(n_layers, d_model, vocab_size, n_positions):
        """Attention is missing from your layers, with its weights and its biases: a third of each layer. Count a layer
        with your `block_parameters`, which includes attention."""
        right_count = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
        return right_count - n_layers * (4 * d_model**2 + 4 * d_model)

    def feed_forward_of_the_layers_left_out(n_layers, d_model, vocab_size, n_positions):
        """The feed-forward layer is missing from your layers, with its weights and its biases: two thirds of each
        layer. Count a layer with your `block_parameters`, which includes the feed-forward layer."""
        right_count = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
        return right_count - n_layers * (8 * d_model**2 + 5 * d_model)

    def tables_of_attention_counted(n_layers, d_model, vocab_size, n_positions):
        """In every layer you count a number for each pair of positions, a whole table. These are *attention weights*:
        the model computes them again for each text, and no optimizer ever changes them. Only what stays the same from
        text to text is a parameter."""
        right_count = gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions)
        return right_count + n_layers * n_positions**2

    def positions_in_every_layer(n_layers, d_model, vocab_size, n_positions):
        """You count the table of positions once for every layer. The positions are looked up and added once, before the
        first layer. Which terms are inside the brackets that you multiply by `n_layers`?"""
        extra_rows = (n_layers - 1) * table_of_positions(n_positions, d_model)
        return gpt2_parameters.reference(n_layers, d_model, vocab_size, n_positions) + extra_rows

    def vocabulary_rounded_up(n_layers, d_model, vocab_size, n_positions):
        """You round the vocabulary up to a multiple of 64. Some programs add rows to the table like this, because the
        computation is then faster: 50,257 tokens become 50,304. Here the table has a row for each of the `vocab_size`
        tokens, and no more."""
        rows = -(-vocab_size // 64) * 64
        return gpt2_parameters.reference(n_layers, d_model, rows, n_positions)
