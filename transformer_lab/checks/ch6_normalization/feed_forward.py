"""The feed-forward layer."""

import torch
from torch.nn import functional as F

from ..exercise import exercise, family


def _token_and_layers(draw, batch=2, seq=7, d_model=5, d_ff=12):
    return draw(batch, seq, d_model), draw(d_ff, d_model), draw(d_ff), draw(d_model, d_ff), draw(d_model)


def first_map(x, w1, b1):
    """Apply the first map: multiply by the transposed `w1`, add `b1`."""
    return x @ w1.T + b1


def positive_part(hidden):
    """Set what is below zero to zero."""
    return hidden.relu()


def second_map(activated, w2, b2):
    """Apply the second map: multiply by the transposed `w2`, add `b2`."""
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
        "Write down the shapes: the last axis of `x` is d_model, and `w1` is stored as (d_ff, d_model). What must "
        "happen to `w1` before the product, and which shape comes out?",
        "Linear, ReLU, linear: the ReLU comes between the two maps and nowhere else, and each bias belongs to its own "
        "map. `F.linear(x, weight, bias)` uses weights as they are stored.",
        "`hidden = x @ … + …`, `return ….relu() @ … + …`",
    ),
)
def feed_forward(x, w1, b1, w2, b2, *, hidden=first_map, activated=positive_part, output=second_map):
    """Two linear maps with a ReLU between, for every position separately: (batch, seq, d_model) stays."""
    return output(activated(hidden(x, w1, b1)), w2, b2)


feed_forward.example("one token", batch=1, seq=1)
feed_forward.example("d_ff smaller than d_model", d_model=6, d_ff=3, plain=True)


@feed_forward.right
class RightAnswers:
    def by_linear(x, w1, b1, w2, b2):
        return F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)

    def by_einsum_and_clamp(x, w1, b1, w2, b2):
        hidden = torch.einsum("bsd,fd->bsf", x, w1) + b1
        return torch.einsum("bsf,df->bsd", hidden.clamp(min=0), w2) + b2

    def position_by_position(x, w1, b1, w2, b2):
        y = torch.empty_like(x)
        for sentence in range(x.shape[0]):
            for position in range(x.shape[1]):
                hidden = w1 @ x[sentence, position] + b1
                y[sentence, position] = w2 @ (hidden * (hidden > 0)) + b2
        return y

    def with_ones_for_the_bias(x, w1, b1, w2, b2):
        one = torch.ones_like(x[..., :1])
        hidden = torch.cat([x, one], -1) @ torch.cat([w1, b1[:, None]], -1).mT
        return torch.cat([(hidden + hidden.abs()) / 2, one], -1) @ torch.cat([w2, b2[:, None]], -1).mT


@feed_forward.property
def not_linear(function, x, *parameters):
    """The layer is not linear: f(a + b) + f(0) differs from f(a) + f(b)."""
    a, b, zero = x, x.flip(0), torch.zeros_like(x)
    one_side = function(a + b, *parameters) + function(zero, *parameters)
    return not torch.allclose(one_side, function(a, *parameters) + function(b, *parameters), atol=1e-3)


@feed_forward.property
def negative_numbers_as_well(function, x, *parameters):
    """Some numbers of the result are negative: nothing stands after the second map."""
    return bool((function(x, *parameters) < 0).any())


@feed_forward.wrong(stage="hidden")
class Hidden:
    def no_first_bias(x, w1, b1):
        """Your result does not depend on `b1`. Without it every hidden feature bends at 0; the bias moves the bend to
        where the data need it. Look at the first map."""
        return x @ w1.T

    def first_weight_not_transposed(x, w1, b1):
        """The first product does not fit: `x` ends in d_model, and `w1` as it is stored, (d_ff, d_model), begins with
        d_ff. PyTorch stores weights as (out, in), one row for each feature that comes out. The inner sizes of a product
        must be equal: what turns the weight around?"""
        return x @ w1 + b1

    def weight_on_the_left(x, w1, b1):
        """The weight stands on the left of `x`, as in formulas where a token is a column. Here tokens are rows: `x`
        ends in d_model, and a product joins the last axis of what stands on the left with the last but one of what
        stands on the right. Which of the two must be on the left, and what has to be turned around?"""
        return w1 @ x + b1

    def first_bias_added_to_the_weight(x, w1, b1):
        """The first bias is added to the weight, before the product: every feature of `x` is then multiplied with it.
        `@` is computed before `+`, unless parentheses say otherwise. What should `b1` be added to?"""
        return x @ (w1.T + b1)

    def first_weight_reshaped(x, w1, b1):
        """The shape of your first weight fits, but its numbers are at the wrong places: it was reshaped from (out, in)
        to (in, out), not transposed. `view` and `reshape` never move an axis. Which method turns a weight around?"""
        return x @ w1.reshape(w1.shape[::-1]) + b1


@feed_forward.wrong(stage="hidden", alone=True)
class HiddenAlone:
    def first_weight_turned_for_linear(x, w1, b1):
        """You transpose `w1` for `F.linear`, which transposes its weight by itself: it takes weights as they are
        stored, (out, in). The one or the other turns the weight round; which of the two do you keep?"""
        return F.linear(x, w1.T, b1)


@feed_forward.wrong(stage="activated")
class Activated:
    def no_activation(hidden):
        """There is no ReLU between your two maps. Two linear maps in a row are one linear map, however wide the middle
        is: the layer's 2 · d_model · d_ff weights can do no more than d_model² weights could. Look at what becomes of
        the first map's result."""
        return hidden

    def gelu(hidden):
        """Your activation is GELU. BERT and GPT-2 have it in this place; the layer here is that of the paper of 2017,
        with max(0, ·). The two agree at 0 and far from it, and differ most around −1 and 1: for −1 GELU gives −0.16,
        ReLU 0."""
        return F.gelu(hidden)

    def gelu_by_tanh(hidden):
        """Your activation is GELU, in the approximation by tanh that GPT-2 uses. The layer here is that of the paper of
        2017, with max(0, ·). The two agree at 0 and far from it, and differ most around −1 and 1: for −1 GELU gives
        −0.16, and ReLU 0."""
        return F.gelu(hidden, approximate="tanh")

    def silu(hidden):
        """Your activation is SiLU, also called swish: x times its sigmoid. Many language models have it in this place;
        the layer here is that of the paper of 2017, with max(0, ·). SiLU gives −0.27 for −1."""
        return F.silu(hidden)

    @family(
        leaky=(F.leaky_relu, "lets a hundredth of the negative numbers through: a leaky ReLU"),
        elu=(F.elu, "is ELU: e^x − 1 below zero, so that negative numbers come through, down to −1"),
    )
    def lets_negatives_through(activation, hidden):
        """Your activation {}. The layer here has max(0, ·), which makes 0 of all of them."""
        return activation(hidden)

    def sigmoid(hidden):
        """Your activation is the sigmoid, which lies between 0 and 1. However strongly a hidden feature responds, no
        more than 1 gets through. The layer here has max(0, ·), without an upper end."""
        return hidden.sigmoid()

    def tanh(hidden):
        """Your activation is tanh, which lies between −1 and 1 and lets negative numbers through. The layer here has
        max(0, ·): nothing below 0, and no upper end."""
        return hidden.tanh()

    def softmax_between(hidden):
        """Between your maps stands a softmax: the hidden features of a token become shares that sum to 1, as
        attention's weights do. Here they do not compete: each one is kept where it is positive, by itself."""
        return hidden.softmax(dim=-1)

    def negative_part(hidden):
        """You keep the negative hidden features and make 0 of the positive ones: the minimum with 0, or a limit at the
        wrong end. ReLU is the maximum with 0."""
        return hidden.clamp(max=0)

    def absolute(hidden):
        """You take the absolute value of the hidden features: the negative ones come through with their sign turned.
        ReLU makes 0 of them."""
        return hidden.abs()

    def softplus(hidden):
        """Your activation is softplus, log(1 + e^x), which is ReLU with its corner rounded off: it gives 0.69 for 0,
        and is never 0. The layer here has max(0, ·)."""
        return F.softplus(hidden)

    def limited_at_six(hidden):
        """Your activation is ReLU6, which lets through no more than 6. It was made for numbers of few bits. The layer
        here has max(0, ·), without an upper end."""
        return F.relu6(hidden)

    def squared(hidden):
        """You square what ReLU returns. Some newer models do so; the layer here is that of the paper of 2017, with
        max(0, ·) as it is."""
        return hidden.relu().square()

    def ones_where_positive(hidden):
        """Between your maps every hidden feature has become 1 or 0, by whether it is positive. A comparison only says
        where: how strongly a feature responds is lost. ReLU keeps the number itself where it is positive."""
        return (hidden > 0).to(hidden.dtype)

    def limited_at_one(hidden):
        """Your activation ends at 1, as `clamp(0, 1)` does: however strongly a hidden feature responds, no more gets
        through. The layer here has max(0, ·), without an upper end."""
        return hidden.clamp(0, 1)


@feed_forward.wrong(stage="activated", alone=True)
class ActivatedAlone:
    def largest_along_an_axis(hidden):
        """`torch.max` with a number as its second argument looks for the largest along that axis, and returns a pair:
        the values and where they stand. ReLU is the maximum of each number and 0. Which function limits every number
        from below?"""
        return torch.max(hidden, 0)

    def maximum_with_a_plain_number(hidden):
        """`torch.maximum` compares two tensors, and raises for a plain number such as 0; NumPy's takes one. Which
        function limits every number from below?"""
        return torch.maximum(hidden, 0)

    def maximum_of_python(hidden):
        """Python's own `max`, and its `if`, want one `True` or `False`, and ask the whole tensor for it: "Boolean value
        of Tensor with more than one value is ambiguous". Which function compares entry by entry?"""
        return max(0, hidden)


@feed_forward.wrong(stage="output")
class Output:
    def activation_twice(activated, w2, b2):
        """There is a ReLU between the maps, and another one after the second. No result is ever negative then: in a
        block, such a layer can only add to the features, never take away. Convolutional networks end their layers so;
        this one ends in a linear map."""
        return second_map(activated, w2, b2).relu()

    def no_second_bias(activated, w2, b2):
        """Your result does not depend on `b2`. Every position lacks the same shift: put in a token for which no hidden
        feature is positive, and the result must be `b2`. Look at the second map."""
        return activated @ w2.T

    def second_weight_not_transposed(activated, w2, b2):
        """The second product does not fit: the hidden features end in d_ff, and `w2` as it is stored, (d_model, d_ff),
        begins with d_model. PyTorch stores weights as (out, in), one row for each feature that comes out. What did you
        do with `w1`?"""
        return activated @ w2 + b2

    def no_second_map(activated, w2, b2):
        """You return the hidden features, (batch, seq, d_ff): the second map is missing. A block adds the result to
        `x`, so that it must have d_model features again. Which arguments have not been used yet?"""
        return activated

    def activation_before_the_second_bias(activated, w2, b2):
        """There is a ReLU on the second product, before `b2` is added: no result can lie below `b2`. It stands between
        the two maps, and nowhere else."""
        return (activated @ w2.T).relu() + b2

    def tokens_in_one_row(activated, w2, b2):
        """{The numbers are right, and} batch and sequence are one axis: (batch · seq, d_model). A product works on the
        last axis and leaves the others as they are, so that no `view` is needed. Which shape must come out?"""
        return second_map(activated, w2, b2).flatten(0, 1)

    def second_weight_reshaped(activated, w2, b2):
        """The shape of your second weight fits, but its numbers are at the wrong places: it was reshaped from (out, in)
        to (in, out), not transposed. `view` and `reshape` never move an axis. Which method turns a weight around?"""
        return activated @ w2.reshape(w2.shape[::-1]) + b2


@feed_forward.wrong(stage="output", alone=True)
class OutputAlone:
    def second_weight_turned_for_linear(activated, w2, b2):
        """You transpose `w2` for `F.linear`, which transposes its weight by itself: it takes weights as they are
        stored, (out, in). How did `w1` go in?"""
        return F.linear(activated, w2.T, b2)


@feed_forward.wrong
class WrongAnswers:
    def activation_at_the_end(x, w1, b1, w2, b2):
        """The ReLU stands after both maps instead of between them. So the maps are one linear map, and no result is
        ever negative: in a block, such a layer can only add to the features, never take away. Where is the middle?"""
        return second_map(first_map(x, w1, b1), w2, b2).relu()

    def activation_first(x, w1, b1, w2, b2):
        """The ReLU acts on `x`, before the first map, and nothing stands between the maps. A token's negative features
        are lost before anything has looked at them, and the rest is linear. Which result should it act on?"""
        return second_map(first_map(x.relu(), w1, b1), w2, b2)

    def no_biases(x, w1, b1, w2, b2):
        """Your result depends on neither bias. The second one shifts every result; the first one moves the point where
        each hidden feature bends, so neither can stand in for the other. Each map has one."""
        return (x @ w1.T).relu() @ w2.T

    def first_bias_behind_the_activation(x, w1, b1, w2, b2):
        """The first bias is added after the ReLU, as note 004's formula has it. There it does nothing that `b2` could
        not do; inside, it moves the point where each hidden feature bends. To which map does `b1` belong?"""
        return second_map((x @ w1.T).relu() + b1, w2, b2)

    def weights_in_each_others_place(x, w1, b1, w2, b2):
        """You multiply by `w2` first and by `w1` second. As they are stored, (out, in), their shapes fit that way round
        without a transpose, so nothing complains. Which weight belongs to which map, and what makes (d_ff, d_model) fit
        after `x`?"""
        return (x @ w2 + b1).relu() @ w1 + b2

    def weights_reshaped(x, w1, b1, w2, b2):
        """The shapes of your weights fit, but their numbers are at the wrong places: they were reshaped from (out, in)
        to (in, out), not transposed. `view` and `reshape` never move an axis. Look at how you turn a weight around."""
        return (x @ w1.reshape(w1.shape[::-1]) + b1).relu() @ w2.reshape(w2.shape[::-1]) + b2

    def biases_swapped(x, w1, b1, w2, b2):
        """The biases have changed places: `b2`, which has d_model numbers, is added after the first map, which puts out
        d_ff features. A bias has one number for each feature that its map puts out. Look at the two shapes."""
        return (x @ w1.T + b2).relu() @ w2.T + b1

    def input_added(x, w1, b1, w2, b2):
        """You add `x` to the result. The residual connection belongs to the block around this layer: added in both
        places, every token would count twice. Here the change alone is returned."""
        return x + second_map(first_map(x, w1, b1).relu(), w2, b2)
