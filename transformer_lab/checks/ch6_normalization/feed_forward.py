"""The feed-forward layer."""

import torch
from torch.nn import functional as F

from ..exercise import exercise, family


def _tokens_and_weights(draw, batch=2, seq=7, d_model=5, d_ff=12):
    return draw(batch, seq, d_model), draw(d_ff, d_model), draw(d_ff), draw(d_model, d_ff), draw(d_model)


def apply_first_map(x, w1, b1):
    """Apply the first map: multiply by the transposed `w1`, add `b1`."""
    return x @ w1.T + b1


def apply_relu(hidden):
    """Set every number below zero to zero."""
    return hidden.relu()


def apply_second_map(activated, w2, b2):
    """Apply the second map: multiply by the transposed `w2`, add `b2`."""
    return activated @ w2.T + b2


@exercise(
    inputs=_tokens_and_weights,
    axes={
        "x": "batch seq d_model",
        "w1": "d_ff d_model",
        "b1": "d_ff",
        "w2": "d_model d_ff",
        "b2": "d_model",
        "return": "batch seq d_model",
    },
    hints=(
        "Write down the shapes: the last axis of `x` is d_model, and `w1` is stored as (d_ff, d_model). What must you "
        "do with `w1` before the product, and which shape does the product have?",
        "Linear, ReLU, linear: the ReLU comes between the two maps and nowhere else, and each bias belongs to its own "
        "map. `F.linear(x, weight, bias)` expects weights as they are stored here.",
        "`hidden = x @ … + …`, `return ….relu() @ … + …`",
    ),
)
def feed_forward(x, w1, b1, w2, b2, *, hidden=apply_first_map, activated=apply_relu, output=apply_second_map):
    """Apply two linear maps, with a ReLU between them, to each position separately. The result has the shape of ``x``,
    (batch, seq, d_model)."""
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
        ones = torch.ones_like(x[..., :1])
        hidden = torch.cat([x, ones], -1) @ torch.cat([w1, b1[:, None]], -1).mT
        return torch.cat([(hidden + hidden.abs()) / 2, ones], -1) @ torch.cat([w2, b2[:, None]], -1).mT


@feed_forward.property
def not_linear(function, x, *parameters):
    """The layer is not linear: f(a + b) + f(0) differs from f(a) + f(b)."""
    a, b, zero = x, x.flip(0), torch.zeros_like(x)
    left_side = function(a + b, *parameters) + function(zero, *parameters)
    return not torch.allclose(left_side, function(a, *parameters) + function(b, *parameters), atol=1e-3)


@feed_forward.property
def negative_numbers_as_well(function, x, *parameters):
    """Some numbers of the result are negative, because no ReLU follows the second map."""
    return bool((function(x, *parameters) < 0).any())


@feed_forward.wrong(stage="hidden")
class Hidden:
    def no_first_bias(x, w1, b1):
        """Your result does not depend on `b1`. Without `b1`, every hidden feature has its threshold at 0; the bias
        moves the threshold to where the data need it. Look at the first map."""
        return x @ w1.T

    def first_weight_not_transposed(x, w1, b1):
        """The shapes of the first product do not fit: the last axis of `x` is d_model, but the first axis of `w1` as
        stored, (d_ff, d_model), is d_ff. PyTorch stores weights as (out, in), one row for each output feature. The
        inner sizes of a product must be equal: what swaps the axes of the weight?"""
        return x @ w1 + b1

    def weight_on_the_left(x, w1, b1):
        """You put the weight on the left of `x`, as in formulas where a token is a column. Here tokens are rows: the
        last axis of `x` is d_model, and a product pairs the last axis of its left factor with the second-to-last axis
        of its right factor. Must `x` or `w1` be on the left, and which of the two must be transposed?"""
        return w1 @ x + b1

    def first_bias_added_to_the_weight(x, w1, b1):
        """You add the first bias to the weight, before the product: every feature of `x` is then multiplied by the bias
        too. Python computes `@` before `+`, unless parentheses say otherwise. What should `b1` be added to?"""
        return x @ (w1.T + b1)

    def first_weight_reshaped(x, w1, b1):
        """The shape of your first weight fits, but its numbers are in the wrong places: you reshaped the weight from
        (out, in) to (in, out) instead of transposing it. `view` and `reshape` never swap axes. Which method transposes
        a weight?"""
        return x @ w1.reshape(w1.shape[::-1]) + b1


@feed_forward.wrong(stage="hidden", alone=True)
class HiddenAlone:
    def first_weight_transposed_for_linear(x, w1, b1):
        """You transpose `w1` for `F.linear`, which transposes its weight itself: `F.linear` expects weights as they are
        stored, (out, in). Your `.T` and `F.linear` both transpose: which of the two do you keep?"""
        return F.linear(x, w1.T, b1)


@feed_forward.wrong(stage="activated")
class Activated:
    def no_activation(hidden):
        """There is no ReLU between your two maps. Two linear maps in a row are one linear map, however wide the middle
        is: the layer's 2 · d_model · d_ff weights can do no more than d_model² weights could. Look at what happens to
        the first map's result."""
        return hidden

    def gelu(hidden):
        """Your activation is GELU, which BERT and GPT-2 use here. This exercise requires the layer of the 2017 paper,
        which uses max(0, ·). The two functions agree at 0 and far from 0, and differ most around −1 and 1: at −1, GELU
        is −0.16 and ReLU is 0."""
        return F.gelu(hidden)

    def gelu_by_tanh(hidden):
        """Your activation is GELU in the tanh approximation, which GPT-2 uses. This exercise requires the layer of
        the 2017 paper, which uses max(0, ·). The two functions agree at 0 and far from 0, and differ most around −1 and
        1: at −1, GELU is −0.16 and ReLU is 0."""
        return F.gelu(hidden, approximate="tanh")

    def silu(hidden):
        """Your activation is SiLU, also called swish: x times its sigmoid. Many language models use SiLU here; this
        exercise requires the layer of the 2017 paper, which uses max(0, ·). At −1, SiLU is −0.27."""
        return F.silu(hidden)

    @family(
        leaky=(F.leaky_relu, "multiplies negative numbers by 0.01, as a leaky ReLU does"),
        elu=(F.elu, "is ELU: e^x − 1 below zero, so negative numbers get through, down to −1"),
    )
    def lets_negatives_through(activation, hidden):
        """Your activation {}. The layer here uses max(0, ·), which sets every negative number to 0."""
        return activation(hidden)

    def sigmoid(hidden):
        """Your activation is the sigmoid, whose values are between 0 and 1. However strongly a hidden feature responds,
        no more than 1 gets through. The layer here uses max(0, ·), which has no upper limit."""
        return hidden.sigmoid()

    def tanh(hidden):
        """Your activation is tanh, whose values are between −1 and 1, so negative numbers get through. The layer here
        uses max(0, ·): nothing below 0, and no upper limit."""
        return hidden.tanh()

    def softmax_between(hidden):
        """You apply a softmax between your maps: the hidden features of a token become shares that, like attention
        weights, sum to 1. Hidden features do not compete: the layer keeps each feature that is positive, whatever the
        other features are."""
        return hidden.softmax(dim=-1)

    def negative_part(hidden):
        """You keep the negative hidden features and set the positive ones to 0: you take the minimum with 0, or clamp
        at the wrong end. ReLU is the maximum with 0."""
        return hidden.clamp(max=0)

    def absolute(hidden):
        """You take the absolute value of the hidden features: the negative ones get through with their sign changed.
        ReLU sets them to 0."""
        return hidden.abs()

    def softplus(hidden):
        """Your activation is softplus, log(1 + e^x), a ReLU with a rounded corner: it is 0.69 at 0, and positive
        everywhere. The layer here uses max(0, ·)."""
        return F.softplus(hidden)

    def limited_at_six(hidden):
        """Your activation is ReLU6, which lets through no more than 6. ReLU6 was designed for low-precision numbers.
        The layer here uses max(0, ·), which has no upper limit."""
        return F.relu6(hidden)

    def squared(hidden):
        """You square the result of ReLU. Some newer models use this activation; this exercise requires the layer of the
        2017 paper, which uses max(0, ·) without a square."""
        return hidden.relu().square()

    def ones_where_positive(hidden):
        """You replace every hidden feature with 1 or 0, depending on whether it is positive. A comparison only says
        where a feature is positive: how strongly it responds is lost. ReLU keeps the number itself where it is
        positive."""
        return (hidden > 0).to(hidden.dtype)

    def limited_at_one(hidden):
        """Your activation has an upper limit of 1, as `clamp(0, 1)` does: however strongly a hidden feature responds,
        no more than 1 gets through. The layer here uses max(0, ·), which has no upper limit."""
        return hidden.clamp(0, 1)


@feed_forward.wrong(stage="activated", alone=True)
class ActivatedAlone:
    def largest_along_an_axis(hidden):
        """If the second argument of `torch.max` is a number, it means an axis: you get a pair, the maximum values along
        this axis and their indices. ReLU is the maximum of each number and 0. Which function limits every number from
        below?"""
        return torch.max(hidden, 0)

    def maximum_with_a_plain_number(hidden):
        """`torch.maximum` compares two tensors and raises an error for a plain number such as 0; NumPy's `maximum`
        accepts a plain number. Which function limits every number from below?"""
        return torch.maximum(hidden, 0)

    def maximum_of_python(hidden):
        """Python's own `max` and `if` need a single `True` or `False`, but a tensor with several entries has no single
        truth value: "Boolean value of Tensor with more than one value is ambiguous". Which function compares entry by
        entry?"""
        return max(0, hidden)


@feed_forward.wrong(stage="output")
class Output:
    def activation_twice(activated, w2, b2):
        """You apply a ReLU between the maps and again after the second map. No result is ever negative: in a block,
        such a layer can only add to the features, never subtract. Convolutional networks end their layers with a ReLU;
        this layer ends with a linear map."""
        return apply_second_map(activated, w2, b2).relu()

    def no_second_bias(activated, w2, b2):
        """Your result does not depend on `b2`. Every position lacks the same shift: for a token with no positive hidden
        feature, the result must be `b2`. Look at the second map."""
        return activated @ w2.T

    def second_weight_not_transposed(activated, w2, b2):
        """The shapes of the second product do not fit: the last axis of the hidden features is d_ff, but the first axis
        of `w2` as stored, (d_model, d_ff), is d_model. PyTorch stores weights as (out, in), one row for each output
        feature. What did you do with `w1`?"""
        return activated @ w2 + b2

    def no_second_map(activated, w2, b2):
        """You return the hidden features, (batch, seq, d_ff): the second map is missing. A block adds the result to
        `x`, so the result must have d_model features again. Which arguments have you not used yet?"""
        return activated

    def activation_before_the_second_bias(activated, w2, b2):
        """You apply a ReLU to the second product, before you add `b2`: no result can be below `b2`. The only ReLU
        belongs between the two maps."""
        return (activated @ w2.T).relu() + b2

    def tokens_in_one_row(activated, w2, b2):
        """{The numbers are right, but} you merged batch and sequence into one axis: (batch · seq, d_model). A product
        works on the last axis and keeps the others, so you need no `view`. Which shape must the result have?"""
        return apply_second_map(activated, w2, b2).flatten(0, 1)

    def second_weight_reshaped(activated, w2, b2):
        """The shape of your second weight fits, but its numbers are in the wrong places: you reshaped the weight from
        (out, in) to (in, out) instead of transposing it. `view` and `reshape` never swap axes. Which method transposes
        a weight?"""
        return activated @ w2.reshape(w2.shape[::-1]) + b2


@feed_forward.wrong(stage="output", alone=True)
class OutputAlone:
    def second_weight_transposed_for_linear(activated, w2, b2):
        """You transpose `w2` for `F.linear`, which transposes its weight itself: `F.linear` expects weights as they are
        stored, (out, in). How did you pass `w1`?"""
        return F.linear(activated, w2.T, b2)


@feed_forward.wrong
class WrongAnswers:
    def activation_at_the_end(x, w1, b1, w2, b2):
        """You apply the ReLU after both maps instead of between them. Without a ReLU between them, the two maps amount
        to one linear map. With a ReLU at the end, no result is ever negative: in a block, such a layer can only add to
        the features, never subtract. Between which two steps does the ReLU belong?"""
        return apply_second_map(apply_first_map(x, w1, b1), w2, b2).relu()

    def activation_first(x, w1, b1, w2, b2):
        """You apply the ReLU to `x`, before the first map, and nothing between the maps. A token's negative features
        are lost before any map uses them, and the rest is linear. To which result should you apply the ReLU?"""
        return apply_second_map(apply_first_map(x.relu(), w1, b1), w2, b2)

    def no_biases(x, w1, b1, w2, b2):
        """Your result depends on neither bias. `b2` shifts every result, and `b1` moves the threshold of each hidden
        feature, so neither can replace the other. Each map has a bias."""
        return (x @ w1.T).relu() @ w2.T

    def first_bias_after_the_activation(x, w1, b1, w2, b2):
        """You add the first bias after the ReLU, as in the formula of note 004. After the ReLU, `b1` does nothing that
        `b2` could not do; before it, `b1` moves the threshold of each hidden feature. To which map does `b1` belong?"""
        return apply_second_map((x @ w1.T).relu() + b1, w2, b2)

    def weights_in_each_others_place(x, w1, b1, w2, b2):
        """You multiply by `w2` first and by `w1` second. As stored, (out, in), their shapes fit in that order without a
        transpose, so nothing raises an error. Which weight belongs to which map, and how must you change a weight of
        shape (d_ff, d_model) so that it fits to the right of `x`?"""
        return (x @ w2 + b1).relu() @ w1 + b2

    def weights_reshaped(x, w1, b1, w2, b2):
        """The shapes of your weights fit, but their numbers are in the wrong places: you reshaped the weights from
        (out, in) to (in, out) instead of transposing them. `view` and `reshape` never swap axes. Which method
        transposes a weight?"""
        return (x @ w1.reshape(w1.shape[::-1]) + b1).relu() @ w2.reshape(w2.shape[::-1]) + b2

    def biases_swapped(x, w1, b1, w2, b2):
        """The biases have changed places: you add `b2`, which has d_model numbers, after the first map, which returns
        d_ff features. A bias has one number for each output feature of its map. Look at the two shapes."""
        return (x @ w1.T + b2).relu() @ w2.T + b1

    def input_added(x, w1, b1, w2, b2):
        """You add `x` to the result. The residual connection belongs to the block around this layer: if the block and
        this layer both added `x`, every token would be added twice. This layer returns only the change."""
        return x + apply_second_map(apply_first_map(x, w1, b1).relu(), w2, b2)
