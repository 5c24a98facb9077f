"""How many parameters attention has."""

from torch import nn

from ...parameters import ModelShape, parameter_breakdown
from ..exercise import exercise, family, with_text_of


def encoder_layer(d_model, d_ff, bias):
    """A shape whose layer is an encoder's."""
    return ModelShape("bert", 1, d_model, 1, d_ff, vocab_size=1, n_positions=1, bias=bias)


def four_squares(d_model):
    """Count four square matrices."""
    return 4 * d_model**2


def four_biases(d_model, bias):
    """Count four biases, where there are any."""
    return 4 * d_model if bias else 0


@exercise(
    inputs=lambda draw: (3, True),
    axes={},
    hints=(
        "A linear map from `a` features to `b` features learns a matrix and, if it has a bias, also a vector. How "
        "many numbers are in each of the two, and how many such maps does attention have?",
        "The chapter's section 7.1 lists the parameters of a layer of width 4, tensor by tensor: 64 weights and 16 "
        "biases belong to attention. Write down the four maps with their shapes, and then find out how the number of "
        "weights and the number of biases grow with the width.",
        "`weights = … * d_model**…`, then `biases = … * d_model if bias else 0`, each on its own line, and `return "
        "weights + biases`",
    ),
)
def attention_parameters(d_model, bias, *, weights=four_squares, biases=four_biases):
    """Count the parameters of multi-head attention, its output projection included: an int, not a float."""
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
        found = parameter_breakdown(encoder_layer(d_model, d_model, bias))
        return found["attention weights"] + found.get("attention biases", 0)

    def packed_and_output(d_model, bias):
        packed, output = 3 * d_model * d_model, d_model * d_model
        return packed + output + 4 * bias * d_model


@attention_parameters.mistake
def no_output_projection(d_model, bias):
    """In attention you count three linear maps, where it has four. The one that is forgotten most often is the output
    projection: queries, keys and values have names that everybody knows, and what follows the heads looks like mere
    glue. Look for `out_proj` in the list of the chapter's section 7.1."""
    return 3 * d_model**2 + 3 * d_model * bias


@attention_parameters.property
def four_times_for_twice_the_width(function, d_model, bias):
    """Without biases, twice the width has four times the parameters."""
    return function(2 * d_model, False) == 4 * function(d_model, False)


@attention_parameters.property
def biases_double(function, d_model, bias):
    """What biases add doubles with the width."""
    added = [function(width, True) - function(width, False) for width in (d_model, 2 * d_model)]
    return added[1] == 2 * added[0] > 0


@attention_parameters.wrong(stage="weights")
class Weights:
    def three_squares(d_model):
        """You count three matrices of weights, where attention has four. Three is the number of inputs of the scores
        and the blend: queries, keys and values. Look at what happens to the heads' results before they leave
        attention."""
        return 3 * d_model**2

    def one_square(d_model):
        """You count one matrix of weights, where attention has four. Perhaps you stopped at the shape of one map, or
        took them for strips of a single matrix: the heads are strips, the maps for queries, keys and values are not.
        Look at the list of the chapter's section 7.1."""
        return d_model**2

    def two_squares(d_model):
        """You count two matrices of weights, where attention has four. PyTorch's `nn.MultiheadAttention` does show two,
        and the first of them, `in_proj_weight`, has `3 * d_model` rows: queries, keys and values are stacked in it. How
        many square matrices do the two hold together?"""
        return 2 * d_model**2

    def square_of_four_widths(d_model):
        """You square the 4 along with the width: `(4 * d_model)**2` is 16 squares of `d_model`, not 4. Attention has
        four matrices side by side, not one that is four times as wide and four times as high. What stands inside your
        brackets?"""
        return (4 * d_model) ** 2

    def caret_for_a_power(d_model):
        """You write `^` for a power, as on paper. In Python `^` combines the bits of two numbers, and it comes after
        `*` and `+`, so that your number has little to do with a square. Which sign makes a power in Python?"""
        return 4 * d_model ^ 2

    def no_squares(d_model):
        """Your weights grow with the width, and not with its square: twice the width gives you twice the weights. A
        vector of features has `d_model` numbers; a map that takes such a vector in and gives one out has a number for
        each pair of an input and an output. Look at the shape of one `weight` in the chapter's section 7.1."""
        return 4 * d_model

    def eight_squares(d_model):
        """You count eight squares of the width as weights, twice too many. Eight is a number of this chapter, but of
        two other things: the weights of the feed-forward layer, and the FLOPs that one token costs in the four
        projections, two for each weight. Look at what attention *has*, matrix by matrix."""
        return 8 * d_model**2

    def twelve_squares_of_a_layer(d_model):
        """You count twelve squares of the width as weights. That is the rule for a whole layer, and two thirds of it
        belong to the feed-forward layer. Count again what belongs to attention alone."""
        return 12 * d_model**2

    @family(five_squares=(5, "five", "one has"), six_squares=(6, "six", "ones have"))
    def more_squares(number, d_model):
        """You count {} matrices of weights, where attention has four. Write them down by name with what goes in and
        what comes out: which {} no place in the list of the chapter's section 7.1?"""
        return number * d_model**2

    def fourth_power(d_model):
        """Your weights grow with the fourth power of the width: `d_model**4`. The four is how many matrices there are,
        and each has `d_model**2` numbers. Which of the two is a factor, and which an exponent?"""
        return d_model**4

    def caret_in_brackets(d_model):
        """You write `^` for a power, as on paper. In Python `^` combines the bits of two numbers: `3 ^ 2` is 1. Which
        sign makes a power in Python?"""
        return 4 * (d_model ^ 2)


@attention_parameters.wrong(stage="weights", alone=True)
class WeightsAlone:
    # without biases: no_squares, and biases_always
    def twice_the_width(d_model):
        """Your weights grow with the width, and not with its square: it looks as if you took twice the width for its
        square. A power is `**` in Python, and a single `*` multiplies. Check the line with a width of 3: a square
        matrix of that width has 9 numbers, not 6."""
        return 4 * d_model * 2

    def four_added(d_model):
        """The four stands in your count as a summand: one square of the width, and 4 numbers more. There are four
        matrices. Which sign takes a square four times?"""
        return d_model**2 + 4

    def third_power(d_model):
        """Your weights grow with the third power of the width. A matrix that leads from `d_model` to `d_model` features
        has two axes. How many numbers does one with 3 rows and 3 columns hold?"""
        return 4 * d_model**3


@attention_parameters.wrong(stage="biases")
class Biases:
    def biases_left_out(d_model, bias):
        """Your count is the same with biases and without: you leave them out. The rule of thumb does the same, and for
        the rule it is fine: in GPT-2 attention's biases are 36,864 of 124 million parameters. Here every number counts,
        so look at what `bias=True` adds to a linear map."""
        return 0

    def biases_always(d_model, bias):
        """Your count is the same with biases and without: you count them always. {That is right for BERT and GPT-2, and
        many newer models have none.} Look at where your function uses its argument `bias`."""
        return 4 * d_model

    def biases_the_wrong_way_round(d_model, bias):
        """You count biases when `bias` is `False`, and none when it is `True`. The two branches are exchanged: read the
        condition aloud, and see which of them it leads to."""
        return 0 if bias else 4 * d_model

    def three_biases(d_model, bias):
        """You count the biases of three maps, where each of the four has one. People who think of queries, keys and
        values first tend to forget the fourth a second time here. Look for the biases in the list of the chapter's
        section 7.1."""
        return 3 * d_model * bias

    def two_biases(d_model, bias):
        """You count biases of `2 * d_model` numbers together, as many as two maps have. All four maps add one,
        `d_model` numbers each. If you looked at PyTorch's `nn.MultiheadAttention`: how long is its `in_proj_bias`?"""
        return 2 * d_model * bias

    def eight_biases(d_model, bias):
        """You count biases of `8 * d_model` numbers, twice too many. Four maps have one bias each, and each is added to
        `d_model` features. Has a 2 come in twice?"""
        return 8 * d_model * bias

    def argument_added(d_model, bias):
        """You add `bias` itself: `True` counts as 1 in a sum, so that all biases together make one number. The argument
        only says whether there are biases. How many numbers are there, if it is `True`?"""
        return int(bias)

    def bias_of_one_map(d_model, bias):
        """You count one bias for all of attention: `d_model` numbers together. Each of its linear maps adds a bias of
        its own. Look for the biases in the list of the chapter's section 7.1, and count them."""
        return d_model * bias

    def biases_of_a_layer(d_model, bias):
        """You count nine widths of biases. That is how many a whole layer has: four in attention, and five in the
        feed-forward layer, whose middle is four times as wide. Count again what belongs to attention alone."""
        return 9 * d_model * bias

    def one_number_for_each_map(d_model, bias):
        """You count one number as the bias of a map, as if the same were added to all features. A bias is a vector:
        each feature that comes out of the map has a number of its own. Look at the shape of a `bias` in the chapter's
        section 7.1."""
        return 4 * bias

    def bias_of_one_map_always(d_model, bias):
        """You count `d_model` numbers as biases, with biases and without. Each of attention's linear maps adds a bias
        of its own, and where `bias` is `False`, none does. Look at where your function uses its argument `bias`."""
        return d_model

    def three_biases_always(d_model, bias):
        """You count the biases of three maps, with biases and without. There are four maps, and where `bias` is
        `False`, none of them has one. Look at where your function uses its argument `bias`."""
        return 3 * d_model

    def biases_as_large_as_weights(d_model, bias):
        """With biases you count twice as many numbers as without: a bias as large as the matrix beside it. A bias is a
        vector, with a number for each feature that comes out of the map. Look at the shape of a `bias` in the chapter's
        section 7.1."""
        return 4 * d_model**2 * bias

    def one_more_on_both_sides(d_model, bias):
        """With biases you count squares of `d_model + 1`. A bias is like a weight for one more input, whose value is
        always 1; the outputs stay as many as they were. How many rows and columns has a matrix with one more input?"""
        return (8 * d_model + 4) * bias

    def biases_subtracted(d_model, bias):
        """With biases your count is smaller than without: they are subtracted. They are learned as the weights are, and
        add to the count. Look at the sign in front of them."""
        return -4 * d_model * bias

    def biases_of_the_example(d_model, bias):
        """You count 16 numbers as biases, whatever the width is: as many as there are in the task's example, for
        `d_model = 4`. How many does each map add?"""
        return 16 * bias

    def bias_as_one_matrix(d_model, bias):
        """You count a whole matrix of biases. A bias is a vector, with a number for each feature that comes out of a
        map. How many maps are there, and how long is the bias of each?"""
        return d_model**2 * bias

    def three_biases_in_any_case(d_model, bias):
        """You count three of the biases always, and the fourth only where `bias` is `True`. Each of the four maps has
        one, or none has. How far does your condition reach?"""
        return 3 * d_model + d_model * bias

    def five_biases(d_model, bias):
        """You count biases of `5 * d_model` numbers. As many has the feed-forward layer, whose middle is four times as
        wide. Attention has four maps, each with a bias of `d_model` numbers."""
        return 5 * d_model * bias

    def twelve_biases(d_model, bias):
        """You count biases of `12 * d_model` numbers. Twelve squares of the width are the rule for the weights of a
        whole layer. How many linear maps has attention alone, and how long is the bias of each?"""
        return 12 * d_model * bias


@attention_parameters.wrong
class WrongAnswers:
    @with_text_of(Weights.caret_for_a_power)
    def caret_for_a_power_in_one_line(d_model, bias):
        return 4 * d_model ^ (2 + 4 * d_model * bias)

    def weights_and_biases_apart(d_model, bias):
        """You return two numbers, that of the weights and that of the biases. One is asked for: all that attention
        learns, together."""
        return 4 * d_model**2, 4 * d_model * bias

    @family(tensors_counted=(2, "module has"), tensors_of_four_maps_counted=(4, "four maps have"))
    def tensors_not_numbers(weights, d_model, bias):
        """You count how many tensors the {}, and not the numbers in them: your count does not grow with the width. What
        must be added up is each tensor's `numel()`."""
        return weights + weights * bias

    def heads_that_do_not_divide(d_model, bias):
        """You make a `nn.MultiheadAttention` with a number of heads that does not divide `d_model`, and it refuses. The
        number of heads changes nothing in the count. Which number divides every width? Or count without a module."""
        return sum(each.numel() for each in nn.MultiheadAttention(d_model, 8, bias=bias).parameters())

    def shapes_added_up(d_model, bias):
        """You add up the shapes of the tensors, and Python refuses to add a shape to a number. How many numbers a
        tensor holds says `numel()`."""
        return sum(each.shape for each in nn.MultiheadAttention(d_model, 1, bias=bias).parameters())

    def weights_times_the_argument(d_model, bias):
        """You multiply the weights by `bias`: `False` counts as 0 there, so that nothing is left without biases, and
        with them the biases are missing. The argument only says whether there are biases. What do they add?"""
        return 4 * d_model**2 * bias

    def nothing_returned_without_biases(d_model, bias):
        """With `bias=False` your function returns `None`{; with biases your count is right}. A `return` that stands
        inside `if bias:` is not met without them. What is to be returned then?"""
        return attention_parameters.reference(d_model, bias) if bias else None

    def the_example_itself(d_model, bias):
        """You return 80 with biases and 64 without, whatever the width is: that is the task's example, for `d_model =
        4`. Where does `d_model` stand in the count?"""
        return 80 if bias else 64

    def biases_alone(d_model, bias):
        """You return the biases alone; without biases, that is 0. The weights are missing: what has become of the
        matrices?"""
        return 4 * d_model * bias

    def a_whole_layer(d_model, bias):
        """You count a whole layer of an encoder: attention, feed-forward layer and two norms. The task asks for
        attention alone. Which of its tensors are listed under it in the chapter's section 7.1?"""
        return 12 * d_model**2 + (13 if bias else 2) * d_model

    def in_bytes(d_model, bias):
        """Your count is four times too large. Four bytes is what one number in float32 takes; asked for is how many
        numbers there are. Or have the four maps been counted twice over?"""
        return 4 * attention_parameters.reference(d_model, bias)

    @family(
        with_a_norm_in_any_case=(True, "and a bias for each feature, whatever `bias` says"),
        with_a_norm=(False, "for each feature, and with `bias=True` a bias for each"),
    )
    def norm_counted(always, d_model, bias):
        """You count a norm as well: a weight {}. A layer has norms beside its attention. They are not part of it, and
        the docstring does not list them."""
        return attention_parameters.reference(d_model, bias) + (1 + (always or bias)) * d_model

    def biases_in_place_of_weights(d_model, bias):
        """With `bias=True` you return the biases alone, and the weights are lost{; without biases your count is right}.
        A second assignment to one name forgets the first. Which sign adds to what is there?"""
        return 4 * d_model if bias else 4 * d_model**2

    def nothing_without_biases(d_model, bias):
        """Without biases you count nothing at all: with `bias=False` your function returns 0. So it does when a sum
        ends in `… if bias else 0`: Python takes all that stands before the `if` for the first branch, and not the last
        term alone. Where would brackets help?"""
        return attention_parameters.reference(d_model, bias) if bias else 0
