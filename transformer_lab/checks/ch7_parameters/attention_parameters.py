"""How many parameters attention has."""

from torch import nn

from ...parameters import ModelShape, parameter_breakdown
from ..exercise import exercise, family, with_text_of


def encoder_layer(d_model, d_ff, bias):
    """Return the shape of a model whose only layer is an encoder layer."""
    return ModelShape("bert", 1, d_model, 1, d_ff, vocab_size=1, n_positions=1, bias=bias)


def four_squares(d_model):
    """Count four square matrices."""
    return 4 * d_model**2


def four_biases(d_model, bias):
    """Count four biases, if there are any."""
    return 4 * d_model if bias else 0


@exercise(
    inputs=lambda draw: (3, True),
    axes={},
    hints=(
        "A linear map from `a` features to `b` features learns a matrix and, if it has a bias, also a vector. How many "
        "numbers are in the matrix and in the vector, and how many such maps does attention have?",
        "The chapter's section 7.1 lists the parameters of a layer of width 4, tensor by tensor: 64 weights and 16 "
        "biases belong to attention. Write down the four maps with their shapes, and then find out how the number of "
        "weights and the number of biases grow with the width.",
        "`weights = … * d_model**…`, then `biases = … * d_model if bias else 0`, each on its own line, and `return "
        "weights + biases`",
    ),
)
def attention_parameters(d_model, bias, *, weights=four_squares, biases=four_biases):
    """Count, as an int, the parameters of multi-head attention, its output projection included."""
    return weights(d_model) + biases(d_model, bias)


attention_parameters.example("no biases", 5, False, plain=True)
attention_parameters.example("a width of 14", 14, True, plain=True)
attention_parameters.example("GPT-2's width", 768, True, plain=True)
attention_parameters.example("GPT-2's width without biases", 768, False, plain=True)
attention_parameters.example("a single feature", 1, True)


@attention_parameters.right
class RightAnswers:
    def four_maps(d_model, bias):
        return 4 * d_model * (d_model + bias)

    def one_map_at_a_time(d_model, bias):
        total = 0
        for _ in ("queries", "keys", "values", "output"):
            total += d_model * d_model
            if bias:
                total += d_model
        return total

    def by_the_shape(d_model, bias):
        breakdown = parameter_breakdown(encoder_layer(d_model, d_model, bias))
        return breakdown["attention weights"] + breakdown.get("attention biases", 0)

    def packed_and_output(d_model, bias):
        packed, output = 3 * d_model * d_model, d_model * d_model
        return packed + output + 4 * bias * d_model


@attention_parameters.mistake
def no_output_projection(d_model, bias):
    """You count three linear maps in attention, but attention has four. The map that is forgotten most often is the
    output projection: queries, keys and values have names that everybody knows, but the map after the heads is easy to
    overlook. Look for `out_proj` in the list of the chapter's section 7.1."""
    return 3 * d_model**2 + 3 * d_model * bias


@attention_parameters.property
def four_times_for_twice_the_width(function, d_model, bias):
    """Without biases, attention of twice the width has four times the parameters."""
    return function(2 * d_model, False) == 4 * function(d_model, False)


@attention_parameters.property
def biases_double(function, d_model, bias):
    """The number of parameters in the biases doubles when the width doubles."""
    added = [function(width, True) - function(width, False) for width in (d_model, 2 * d_model)]
    return added[1] == 2 * added[0] > 0


@attention_parameters.wrong(stage="weights")
class Weights:
    def three_squares(d_model):
        """You count three weight matrices, but attention has four. Queries, keys and values need three, but the count
        includes every linear map of attention. Look at what happens to the heads' results before they leave
        attention."""
        return 3 * d_model**2

    def one_square(d_model):
        """You count one weight matrix, but attention has four. Perhaps you count only one map, or treat the maps as
        strips of a single matrix. Each head uses a strip of a matrix, but queries, keys and values have a whole matrix
        each. Look at the list of the chapter's section 7.1."""
        return d_model**2

    def two_squares(d_model):
        """You count two weight matrices, but attention has four. PyTorch's `nn.MultiheadAttention` does show two, but
        the first of them, `in_proj_weight`, has `3 * d_model` rows: queries, keys and values are concatenated in it.
        How many square matrices do PyTorch's two weight tensors contain together?"""
        return 2 * d_model**2

    def square_of_four_widths(d_model):
        """You square the 4 together with the width: `(4 * d_model)**2` is 16 squares of `d_model`, not 4. Attention has
        four separate matrices, not one matrix that is four times as wide and four times as high. Which factors are
        inside your brackets?"""
        return (4 * d_model) ** 2

    def caret_for_a_power(d_model):
        """You write `^` for a power, as some people do on paper. In Python `^` combines the bits of two numbers, and is
        computed after `*` and `+`, so your number has little to do with a square. Which operator computes a power in
        Python?"""
        return 4 * d_model ^ 2

    def no_squares(d_model):
        """Your number of weights grows with the width instead of its square: twice the width doubles your count. A
        vector has `d_model` features; a map from `d_model` to `d_model` features has a number for each pair of an input
        and an output. Look at the shape of one `weight` in the chapter's section 7.1."""
        return 4 * d_model

    def eight_squares(d_model):
        """You count eight squares of the width as weights, twice as many as there are. The factor 8 does occur in this
        chapter, but in two other counts: the weights of the feed-forward layer, and the FLOPs of one token in the four
        projections, two for each weight. List the matrices of attention, one by one."""
        return 8 * d_model**2

    def twelve_squares_of_a_layer(d_model):
        """You count twelve squares of the width as weights. This is the rule for a whole layer, and two thirds of those
        weights belong to the feed-forward layer. Count again what belongs to attention alone."""
        return 12 * d_model**2

    @family(five_squares=(5, "five", "of them is"), six_squares=(6, "six", "of them are"))
    def more_squares(number, d_model):
        """You count {} weight matrices, but attention has four. Write down each matrix by name, with its inputs and its
        outputs: which {} missing from the list of the chapter's section 7.1?"""
        return number * d_model**2

    def fourth_power(d_model):
        """Your number of weights grows with the fourth power of the width: `d_model**4`. There are four matrices, and
        each has `d_model**2` numbers. Which of the numbers 4 and 2 is a factor, and which is an exponent?"""
        return d_model**4

    def caret_in_brackets(d_model):
        """You write `^` for a power, as some people do on paper. In Python `^` combines the bits of two numbers: `3 ^
        2` is 1. Which operator computes a power in Python?"""
        return 4 * (d_model ^ 2)


@attention_parameters.wrong(stage="weights", alone=True)
class WeightsAlone:
    # without biases, twice_the_width returns the same as no_squares combined with biases_always
    def twice_the_width(d_model):
        """Your number of weights grows with the width instead of its square: you probably double the width instead of
        squaring it. In Python `**` is a power, and a single `*` multiplies. Try your line with a width of 3: a square
        matrix of width 3 has 9 numbers, not 6."""
        return 4 * d_model * 2

    def four_added(d_model):
        """You add 4 instead of multiplying by it: your count is one square of the width, plus 4 numbers. There are four
        matrices. Which operator multiplies the square by four?"""
        return d_model**2 + 4

    def third_power(d_model):
        """Your number of weights grows with the third power of the width. The matrix of a map from `d_model` to
        `d_model` features has two axes. How many numbers does a matrix of 3 rows and 3 columns contain?"""
        return 4 * d_model**3


@attention_parameters.wrong(stage="biases")
class Biases:
    def biases_left_out(d_model, bias):
        """Your count is the same with and without biases: you leave them out. The rule of thumb leaves them out too,
        which is fine for a rule: of GPT-2's 124 million parameters, only 36,864 belong to biases of attention. Here
        every number counts, so look at what `bias=True` adds to a linear map."""
        return 0

    def biases_always(d_model, bias):
        """Your count is the same with and without biases: you always count them. {This is right for BERT and GPT-2, but
        many newer models have no biases.} Look at where your function uses its argument `bias`."""
        return 4 * d_model

    def biases_inverted(d_model, bias):
        """You count biases when `bias` is `False`, and none when it is `True`. The two branches are exchanged: read the
        condition aloud, and check which branch Python runs for `True`."""
        return 0 if bias else 4 * d_model

    def three_biases(d_model, bias):
        """You count the biases of three maps, but each of the four maps has a bias. Perhaps you count the weights of
        the output projection, but not its bias. Look for the biases in the list of the chapter's section 7.1."""
        return 3 * d_model * bias

    def two_biases(d_model, bias):
        """You count `2 * d_model` numbers as biases, as many as two maps have. Each of the four maps has a bias of
        `d_model` numbers. If you looked at PyTorch's `nn.MultiheadAttention`: how long is its `in_proj_bias`?"""
        return 2 * d_model * bias

    def eight_biases(d_model, bias):
        """You count `8 * d_model` numbers as biases, twice as many as there are. Four maps have one bias each, and each
        bias has `d_model` numbers. Do you multiply by 2 somewhere?"""
        return 8 * d_model * bias

    def argument_added(d_model, bias):
        """You add `bias` itself: `True` counts as 1 in a sum, so all biases together add a single number. The argument
        only says whether there are biases. How many numbers do the biases have if `bias` is `True`?"""
        return int(bias)

    def bias_of_one_map(d_model, bias):
        """You count one bias for all of attention: `d_model` numbers. Each of its linear maps has its own bias. Look
        for the biases in the list of the chapter's section 7.1, and count them."""
        return d_model * bias

    def biases_of_a_layer(d_model, bias):
        """You count `9 * d_model` numbers as biases. The linear maps of a whole layer have this many: four widths in
        attention, and five in the feed-forward layer, whose middle is four times as wide. Count again what belongs to
        attention alone."""
        return 9 * d_model * bias

    def one_number_for_each_map(d_model, bias):
        """You count one number as the bias of a map, as if the same number were added to all features. A bias is a
        vector, with a number for each output feature of the map. Look at the shape of a `bias` in the chapter's section
        7.1."""
        return 4 * bias

    def bias_of_one_map_always(d_model, bias):
        """You count `d_model` numbers as biases, whatever `bias` says. Each of attention's linear maps has its own
        bias, but if `bias` is `False`, no map has a bias. Look at where your function uses its argument `bias`."""
        return d_model

    def three_biases_always(d_model, bias):
        """You count the biases of three maps, whatever `bias` says. There are four maps, and if `bias` is `False`, none
        of them has a bias. Look at where your function uses its argument `bias`."""
        return 3 * d_model

    def biases_as_large_as_weights(d_model, bias):
        """You count `4 * d_model**2` numbers as biases: for each map a bias as large as its matrix. A bias is a vector,
        with a number for each output feature of the map. Look at the shape of a `bias` in the chapter's section 7.1."""
        return 4 * d_model**2 * bias

    def one_more_on_both_sides(d_model, bias):
        """With biases you count squares of `d_model + 1`. A bias is like a weight for one more input, whose value is
        always 1, but the number of outputs stays the same. How many rows and columns does a matrix with one more input
        have?"""
        return (8 * d_model + 4) * bias

    def biases_subtracted(d_model, bias):
        """With `bias=True` your count is smaller than with `bias=False`: you subtract the biases. Biases are learned
        like the weights, so they increase the count. Look at the sign in front of them."""
        return -4 * d_model * bias

    def biases_of_the_example(d_model, bias):
        """You count 16 numbers as biases, whatever the width is. In the task's example, there are 16, because
        `d_model` is 4. How many numbers does the bias of each map have?"""
        return 16 * bias

    def bias_as_one_matrix(d_model, bias):
        """You count a whole matrix of biases. A bias is a vector, with a number for each output feature of a map. How
        many maps are there, and how long is the bias of each?"""
        return d_model**2 * bias

    def three_biases_in_any_case(d_model, bias):
        """You always count three of the biases, and the fourth only if `bias` is `True`. Either all four maps have a
        bias, or none of them has. How many terms does your condition apply to?"""
        return 3 * d_model + d_model * bias

    def five_biases(d_model, bias):
        """You count `5 * d_model` numbers as biases. The feed-forward layer has this many if its middle has `4 *
        d_model` features. Attention has four maps, each with a bias of `d_model` numbers."""
        return 5 * d_model * bias

    def twelve_biases(d_model, bias):
        """You count `12 * d_model` numbers as biases. The 12 belongs to the rule for the weights of a whole layer:
        twelve squares of the width. How many linear maps does attention alone have, and how long is the bias of
        each?"""
        return 12 * d_model * bias


@attention_parameters.wrong
class WrongAnswers:
    @with_text_of(Weights.caret_for_a_power)
    def caret_for_a_power_in_one_line(d_model, bias):
        return 4 * d_model ^ (2 + 4 * d_model * bias)

    def weights_and_biases_not_summed(d_model, bias):
        """You return two numbers, one for the weights and one for the biases. The task asks for one number: all the
        parameters of attention together."""
        return 4 * d_model**2, 4 * d_model * bias

    @family(tensors_counted=(2, "the module"), tensors_of_four_maps_counted=(4, "the four maps"))
    def tensors_not_numbers(weights, d_model, bias):
        """You count the tensors of {} instead of the numbers in them: your count does not grow with the width. Add up
        each tensor's `numel()`."""
        return weights + weights * bias

    def heads_that_do_not_divide(d_model, bias):
        """You create an `nn.MultiheadAttention` whose number of heads does not divide `d_model`, so PyTorch raises an
        error. The number of heads does not change the count. Which number divides every width? Or count without a
        module."""
        return sum(each.numel() for each in nn.MultiheadAttention(d_model, 8, bias=bias).parameters())

    def shapes_added_up(d_model, bias):
        """You add up the shapes of the tensors, but Python cannot add a shape to a number. A tensor's `numel()` returns
        how many numbers it contains."""
        return sum(each.shape for each in nn.MultiheadAttention(d_model, 1, bias=bias).parameters())

    def weights_times_the_argument(d_model, bias):
        """You multiply the weights by `bias`: with `bias=False` your count is 0, since `False` counts as 0, and with
        `bias=True` the biases are missing. The argument only says whether there are biases. How many numbers do the
        biases add?"""
        return 4 * d_model**2 * bias

    def nothing_returned_without_biases(d_model, bias):
        """With `bias=False` your function returns `None`{; with biases your count is right}. Python reaches a `return`
        inside `if bias:` only when `bias` is `True`. What must the function return otherwise?"""
        return attention_parameters.reference(d_model, bias) if bias else None

    def the_example_itself(d_model, bias):
        """You return 80 with biases and 64 without, whatever the width is: this is the task's example, for `d_model =
        4`. Where does your count use `d_model`?"""
        return 80 if bias else 64

    def biases_alone(d_model, bias):
        """You count only the biases, so with `bias=False` your result is 0. The weights are missing: where did you lose
        the matrices?"""
        return 4 * d_model * bias

    def a_whole_layer(d_model, bias):
        """You count a whole layer of an encoder: attention, feed-forward layer and two norms. The task asks for
        attention alone. Which tensors of the list in the chapter's section 7.1 belong to attention?"""
        return 12 * d_model**2 + (13 if bias else 2) * d_model

    def in_bytes(d_model, bias):
        """Your count is four times too large. Do you count the four bytes of each number in float32, although the task
        asks how many numbers there are, or do you multiply by 4 twice for the four maps?"""
        return 4 * attention_parameters.reference(d_model, bias)

    @family(
        with_a_norm_in_any_case=(True, "and a bias for each feature, whatever `bias` says"),
        with_a_norm=(False, "for each feature, and with `bias=True` also a bias for each"),
    )
    def norm_counted(always_with_bias, d_model, bias):
        """You count a norm as well: a weight {}. A layer has norms too, but they are not part of attention, and the
        docstring does not list them."""
        return attention_parameters.reference(d_model, bias) + (1 + (always_with_bias or bias)) * d_model

    def biases_in_place_of_weights(d_model, bias):
        """With `bias=True` you return the biases alone, and the weights are lost{; without biases your count is right}.
        A second assignment to a name discards its first value. Which operator adds to the value of a name?"""
        return 4 * d_model if bias else 4 * d_model**2

    def nothing_without_biases(d_model, bias):
        """Without biases you count nothing at all: with `bias=False` your function returns 0. A sum that ends in `… if
        bias else 0` causes this: Python treats everything before the `if`, not only the last term, as the first branch.
        Where would brackets help?"""
        return attention_parameters.reference(d_model, bias) if bias else 0
