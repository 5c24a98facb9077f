"""The gated feed-forward layer."""

import math
from functools import partial

import torch
from torch.nn import functional as F

from ..exercise import exercise, family, with_text_of


def _tokens_and_maps(draw, batch=2, seq=7, d_model=5, d_ff=8):
    return draw(batch, seq, d_model), draw(d_ff, d_model), draw(d_ff, d_model), draw(d_model, d_ff)


def silu(x):
    """Multiply by the sigmoid: SiLU."""
    return x * x.sigmoid()


def gate_map(x, gate):
    """Apply the map of the gate: multiply by the transposed `gate`."""
    return x @ gate.T


def up_map(x, up):
    """Apply the map of the content: multiply by the transposed `up`."""
    return x @ up.T


def opened_by(opening, content, activation):
    """Multiply the content by the gate after its SiLU."""
    return activation(opening) * content


def down_map(middle, down):
    """Map back: multiply by the transposed `down`."""
    return middle @ down.T


def as_it_is(result, x):
    """Return what comes back, with nothing added."""
    return result


@exercise(
    inputs=_tokens_and_maps,
    axes={
        "x": "batch seq d_model",
        "gate": "d_ff d_model",
        "up": "d_ff d_model",
        "down": "d_model d_ff",
        "return": "batch seq d_model",
    },
    hints=(
        "There are three maps: two lead from `x` to d_ff features, and one leads back. Which of the two goes through "
        "SiLU?",
        "The gate goes through SiLU; the other map does not. The two results are multiplied element by element, and "
        "the third map takes the product back to d_model features.",
        "`return (F.silu(x @ …) * (x @ …)) @ …`, with weights as they are stored, (out, in)",
    ),
)
def gated_feed_forward(
    x,
    gate,
    up,
    down,
    *,
    opening=gate_map,
    content=up_map,
    activation=silu,
    product=opened_by,
    back=down_map,
    returned=as_it_is,
):
    """Two maps of the tokens multiplied, one of them through SiLU, and a map back: (batch, seq, d_model) stays."""
    middle = product(opening(x, gate), content(x, up), activation)
    return returned(back(middle, down), x)


@gated_feed_forward.probe(plain=True)
def large_tokens(draw):
    """tokens in the tens"""
    x, *maps = _tokens_and_maps(draw, batch=1, seq=3)
    return 20 * x, *maps


@gated_feed_forward.right
class RightAnswers:
    def by_linear(x, gate, up, down):
        return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)

    def by_one_map_and_chunks(x, gate, up, down):
        opening, content = (x @ torch.cat([gate, up]).T).chunk(2, dim=-1)
        return (torch.sigmoid(opening) * opening * content) @ down.T

    def by_einsum(x, gate, up, down):
        opening, content = torch.einsum("bsd,fd->bsf", x, gate), torch.einsum("bsd,fd->bsf", x, up)
        return torch.einsum("bsf,bsf,df->bsd", opening / (1 + (-opening).exp()), content, down)


@gated_feed_forward.property
def nothing_behind_a_closed_gate(function, x, gate, up, down):
    """With a gate of zeros nothing comes out, whatever the other maps are."""
    return bool((function(x, torch.zeros_like(gate), up, down) == 0).all())


def in_each_map(*, alone):
    """Add the mistakes in a class body for each of the three weights, whose name takes the place of ``{}``."""

    def add(body):
        for stage, weight in (("opening", "gate"), ("content", "up"), ("back", "down")):
            for name, function in vars(body).items():
                if callable(function):
                    mistake = partial(function)
                    mistake.__name__, mistake.__doc__ = f"{weight}_{name}", function.__doc__.format(weight)
                    gated_feed_forward.mistake(mistake, stage=stage, alone=alone)
        return body

    return add


@gated_feed_forward.wrong(stage="opening")
class Opening:
    def gate_scaled(x, gate):
        """Your gate is divided by √d_model, as scores are in attention. There is no scale in this layer: the map's
        result goes into SiLU as it is."""
        return x @ gate.T / x.shape[-1] ** 0.5


@gated_feed_forward.wrong(stage="activation")
class Activation:
    @family(
        gelu=(F.gelu, "GELU. Gemma has it in this place; this"),
        gelu_by_tanh=(
            partial(F.gelu, approximate="tanh"),
            "GELU, in its form with tanh. Gemma has it in this place; this",
        ),
        relu=(torch.relu, "ReLU, as in the paper of 2017. This"),
        tanh=(torch.tanh, "tanh, and can be no larger than 1. This"),
    )
    def of_other_models(activation, x):
        """Your gate goes through {} model was trained with SiLU, x · sigmoid(x)."""
        return activation(x)

    def sigmoid_alone(x):
        """Your gate is a plain sigmoid, as in the first gated layers. SiLU is x · sigmoid(x): the x is missing."""
        return x.sigmoid()

    def no_activation(x):
        """Neither of the two maps goes through SiLU: their product alone is left. Which of them is the gate?"""
        return x

    def softmax_over_features(x):
        """Your gate goes through a softmax, so that its features compete. SiLU looks at each number by itself."""
        return x.softmax(dim=-1)

    def sigmoid_of_the_negative(x):
        """The sign in your sigmoid is wrong: 1 / (1 + eˣ) falls where the sigmoid rises, and large gates are closed.
        For the token 2 by hand SiLU gives 1.76; what do you get?"""
        return x * (-x).sigmoid()

    def sigmoid_added(x):
        """You add the sigmoid to x, where SiLU multiplies the two: x · sigmoid(x). A gate of 0 would let half of
        everything through."""
        return x + x.sigmoid()

    def steeper_sigmoid(x):
        """The sigmoid in your gate is steeper than SiLU's: x · sigmoid(1.702 x) is a quick way to nearly GELU, which
        CLIP has. SiLU has no such factor."""
        return x * (1.702 * x).sigmoid()


@gated_feed_forward.wrong(stage="activation", alone=True)
class ActivationAlone:
    def softmax_over_tokens(x):
        """Your gate goes through a softmax, over another axis than its features: tokens or sentences compete. SiLU
        looks at each number by itself."""
        return x.softmax(dim=1)

    def falling_sigmoid_alone(x):
        """Your gate is 1 / (1 + eˣ), a sigmoid that falls: the sign in the exponent is wrong, and the factor x is
        missing. SiLU is x · sigmoid(x)."""
        return (-x).sigmoid()

    def silu_twice(x):
        """Your gate goes through SiLU twice. Once is enough: is there one in a name that you use again, or in both
        lines?"""
        return silu(silu(x))

    def sigmoid_of_the_result(x):
        """SiLU is multiplied by the sigmoid once more: x · sigmoid(x)². One sigmoid opens the gate. Where does the
        other come from?"""
        return silu(x) * x.sigmoid()

    def gate_squared(x):
        """The gate itself is a factor once too often: x² · sigmoid(x). SiLU holds one x already. Which line multiplies
        by the other?"""
        return silu(x) * x

    @family(
        parentheses_lost=(lambda x: x + (-x).exp(), "`x / 1 + exp(-x)`"),
        parentheses_of_the_sigmoid_lost=(lambda x: x * (1 + (-x).exp()), "`1 / 1 + exp(-x)`"),
    )
    def no_parentheses(formula, x):
        """The parentheses around the denominator are missing: {} divides by 1, and adds. What does `/` take for its
        right side?"""
        return formula(x)

    def minus_in_the_denominator(x):
        """There is a minus in your denominator: x / (1 − e⁻ˣ) divides by 0 at 0, and opens the gate for negative
        numbers. The sigmoid is 1 / (1 + e⁻ˣ)."""
        return x / (1 - (-x).exp())

    def positive_sigmoid(x):
        """Your gate is that of SiLU above zero, and 0 below it: relu(x) · sigmoid(x). SiLU keeps small negative
        numbers: −0.27 for −1."""
        return x.relu() * x.sigmoid()

    def silu_of_the_negative(x):
        """Your SiLU is turned around: it takes −x for x, so that negative gates open and positive ones close. Where
        does the minus come from?"""
        return silu(-x)

    def sign_turned(x):
        """Your gate has the wrong sign: what comes out is minus SiLU. In which line does the minus stand?"""
        return -silu(x)

    def one_less_the_sigmoid(x):
        """Your gate is 1 − SiLU: where it should be open, it closes, as the second gate of a GRU does. Here what the
        gate lets through is multiplied by SiLU itself."""
        return 1 - silu(x)

    def ones_where_positive(x):
        """Your gate is 1 or 0, by whether its map is positive. A comparison only says where. SiLU lets more through the
        larger the number is."""
        return (x > 0).to(x.dtype)

    def exponential_of_python(x):
        """`math.exp` and `float` take one number, and this is a tensor of many. Which function of PyTorch takes the
        exponential, or the sigmoid, of each number by itself?"""
        return x / (1 + math.exp(-x))

    @family(
        leaky_relu=(F.leaky_relu, "leaky ReLU, which keeps a small share of negative numbers"),
        leakier_relu=(partial(F.leaky_relu, negative_slope=0.2), "leaky ReLU, which keeps a fifth of negative numbers"),
        leaky_relu_of_a_tenth=(
            partial(F.leaky_relu, negative_slope=0.1),
            "leaky ReLU, which keeps a tenth of negative numbers",
        ),
        elu=(F.elu, "ELU, which is eˣ − 1 below zero"),
        selu=(F.selu, "SELU, a scaled ELU"),
        softplus=(F.softplus, "softplus, log(1 + eˣ), which is never 0"),
        mish=(F.mish, "Mish, x · tanh(softplus(x))"),
        hardswish=(F.hardswish, "Hardswish, which imitates SiLU with straight pieces"),
        hardsigmoid=(F.hardsigmoid, "a hard sigmoid, which is straight between −3 and 3"),
        relu6=(F.relu6, "ReLU6, which lets through no more than 6"),
        squared_relu=(lambda x: x.relu().square(), "a squared ReLU"),
        softsign=(F.softsign, "softsign, x / (1 + |x|)"),
        times_tanh=(lambda x: x * x.tanh(), "x · tanh(x), which is never negative"),
        log_sigmoid=(F.logsigmoid, "the logarithm of the sigmoid, which is never positive"),
        exponential=(torch.exp, "the exponential function, which has no end above"),
        absolute=(torch.abs, "the absolute value"),
        square=(torch.square, "the square"),
        twice_as_steep=(lambda x: x * (2 * x).sigmoid(), "a sigmoid twice as steep, x · sigmoid(2x)"),
        cut_off=(lambda x: x.clamp(0, 1), "a sigmoid that is cut off, x between 0 and 1"),
        derivative=(lambda x: x.sigmoid() * (1 + x * (1 - x.sigmoid())), "the derivative of SiLU"),
        derivative_of_the_sigmoid=(lambda x: x.sigmoid() * (1 - x.sigmoid()), "the derivative of the sigmoid"),
    )
    def another(activation, x):
        """Your gate goes through {}. This model was trained with SiLU, x · sigmoid(x): weights fit the activation that
        they were trained with, and no other."""
        return activation(x)

    @family(
        method_of_tensors=lambda x: x.silu(),
        function_of_torch=lambda x: torch.silu(x),
        function_called_swish=lambda x: F.swish(x),
        method_called_swish=lambda x: x.swish(),
    )
    def no_such_function(spelling, x):
        """PyTorch has no function of this name there. SiLU, also called swish, is `silu` in `torch.nn.functional`, and
        it is easily written with `torch.sigmoid`."""
        return spelling(x)


@gated_feed_forward.wrong(stage="product")
class Product:
    def gate_and_up_exchanged(opening, content, activation):
        """Gate and up have changed places: SiLU is applied to the wrong one of the two. Their shapes are equal, so
        nothing complains."""
        return opening * activation(content)

    def silu_after_the_product(opening, content, activation):
        """The activation comes after the product. It belongs to the gate alone, before it is multiplied."""
        return activation(opening * content)

    def silu_on_both(opening, content, activation):
        """Both maps go through the activation. Only the gate does: the other one is what the gate opens, and stays as
        it is."""
        return activation(opening) * activation(content)

    def added(opening, content, activation):
        """You add the gate where it multiplies. A gate that is 0 must let nothing through: what does a sum do there?"""
        return activation(opening) + content

    def subtracted(opening, content, activation):
        """You subtract where the gate multiplies. A gate that is 0 must let nothing through: what does a difference
        do?"""
        return activation(opening) - content

    def divided(opening, content, activation):
        """You divide by the second map, and near its zeros the numbers explode. The gate is multiplied with it, element
        by element."""
        return activation(opening) / content

    def added_on_top(opening, content, activation):
        """What you return is content + gate · content, or (1 + gate) · content: a closed gate lets everything through.
        The task asks for the product of the two alone. What is added to it?"""
        return content + activation(opening) * content

    def gate_added_on_top(opening, content, activation):
        """What you multiply is gate · (content + 1): 1 is added to the content, or the gate to the product once more.
        Then `up` cannot close what the gate opens. The task asks for the product alone."""
        return activation(opening) + activation(opening) * content

    def gate_alone(opening, content, activation):
        """The gate goes back by itself: `up` changes nothing in your result. What does the gate open?"""
        return activation(opening)

    def gate_left_out(opening, content, activation):
        """`gate` changes nothing in your result: the other map goes back by itself. What is multiplied with it?"""
        return content

    def plain_layer(opening, content, activation):
        """There is no gate: this is the plain feed-forward layer with an activation between two maps. `gate` is not
        used: what does it open?"""
        return activation(content)

    def up_twice(opening, content, activation):
        """Both factors are made with `up`, and `gate` changes nothing in your result. Look at the factor that goes
        through SiLU: which weight does it need?"""
        return activation(content) * content

    def summed_over_features(opening, content, activation):
        """You sum the products over the features, one number for each token, and d_ff is gone before `down` needs it.
        The two are multiplied element by element, and keep their shape."""
        return (activation(opening) * content).sum(dim=-1, keepdim=True)

    def joined_side_by_side(opening, content, activation):
        """The two maps are put side by side, and d_ff has doubled. They are multiplied, element by element."""
        return torch.cat([activation(opening), content], dim=-1)

    def matrix_product(opening, content, activation):
        """You join gate and content by `@`, a matrix product, whose inner sizes do not fit here. They have one shape,
        and each number of one meets the number at the same place of the other: which operator is that?"""
        return activation(opening) @ content

    def matrix_product_over_tokens(opening, content, activation):
        """You join gate and content by a matrix product, with one of the two transposed, as queries meet keys. Each
        token stays by itself here: a number meets the one at the same place, and which operator is that?"""
        return activation(opening) @ content.mT

    def matrix_product_over_features(opening, content, activation):
        """You join gate and content by a matrix product that sums over the tokens: what is left is (d_ff, d_ff). Each
        token stays by itself here: a number meets the one at the same place, and which operator is that?"""
        return activation(opening).mT @ content


@gated_feed_forward.wrong(stage="product", alone=True)
class ProductAlone:
    def silu_after_the_product_too(opening, content, activation):
        """There is an activation on the gate, where it belongs, and another one after the product. What is in the
        middle goes straight into `down`."""
        return activation(activation(opening) * content)

    def added_before_silu(opening, content, activation):
        """You add the two maps and put the sum through the activation. A sum of two maps is one map: there is no gate
        left. The gate goes through SiLU, and then *multiplies* the other."""
        return activation(opening + content)

    def gate_twice(opening, content, activation):
        """The gate is multiplied with its own map, and `up` changes nothing in your result. What does the gate open?
        Look at the two factors."""
        return activation(opening) * opening

    def tanh_on_the_content(opening, content, activation):
        """Your content goes through tanh and your gate through a sigmoid, as in an LSTM or WaveNet. Here the gate alone
        goes through anything, and that is SiLU, x · sigmoid(x)."""
        return opening.sigmoid() * content.tanh()

    def softmax_over_the_product(opening, content, activation):
        """A softmax makes shares of the products, as of attention's scores. They go back as they are: features do not
        compete here."""
        return (activation(opening) * content).softmax(dim=-1)

    def gate_limited(opening, content, activation):
        """Your gate is cut off at 0 and 1 after SiLU. SiLU has no end above, and is a little negative below zero: −0.27
        for −1. Nothing is cut off."""
        return activation(opening).clamp(0, 1) * content

    def gate_map_added_on_top(opening, content, activation):
        """The gate's map is added to the product once more, as it was before SiLU. Then `up` cannot close what the gate
        opens. The task asks for the product alone."""
        return opening + activation(opening) * content

    def sigmoid_of_the_product(opening, content, activation):
        """Your sigmoid sees the product of both maps. SiLU looks at the gate alone, x · sigmoid(x) with one x, and the
        content is multiplied afterwards."""
        return opening * (opening * content).sigmoid()

    @family(
        tanh_of_the_content=torch.tanh,
        sigmoid_of_the_content=torch.sigmoid,
        relu_of_the_content=torch.relu,
        gelu_of_the_content=F.gelu,
        softmax_of_the_content=partial(torch.softmax, dim=-1),
    )
    def squeezed_content(squeeze, opening, content, activation):
        """The content goes through a function of its own. The gate alone goes through SiLU: the other map is what the
        gate opens, and stays as it is."""
        return activation(opening) * squeeze(content)

    @family(
        module_times_content=lambda content: torch.nn.SiLU() * content,
        content_times_module=lambda content: content * torch.nn.SiLU(),
    )
    def module_for_a_function(product, opening, content, activation):
        """`nn.SiLU(…)` makes a layer and applies nothing: its argument says whether it works in place. The layer is
        called afterwards, or `F.silu` takes its place."""
        return product(content)


@gated_feed_forward.wrong(stage="back")
class Back:
    def result_scaled(middle, down):
        """Your result is divided by √d_ff. There is no scale in this layer: what `down` returns is the result."""
        return middle @ down.T / middle.shape[-1] ** 0.5

    def no_way_back(middle, down):
        """You return what is in the middle, with d_ff features: the way back is missing. The block adds the result to
        `x`, so that it must have d_model features. Which weight has not been used?"""
        return middle


@gated_feed_forward.wrong(stage="back", alone=True)
class BackAlone:
    def features_summed(middle, down):
        """You add up what is in the middle, and each token is left with one number. The way back is a map: `down` makes
        d_model features of d_ff."""
        return middle.sum(dim=-1)


@gated_feed_forward.wrong(stage="returned")
class Returned:
    def silu_at_the_end(result, x):
        """There is another SiLU after the last map. Nothing comes after it: what the layer adds may have any sign."""
        return silu(result)

    def input_gated(result, x):
        """Your result is multiplied with `x` again. SiLU's x is the number that goes into it, the gate's own map.
        Nothing is multiplied after `down`."""
        return x * result

    def residual_inside(result, x):
        """You add `x` at the end. The residual connection belongs to the block, which would add it a second time."""
        return x + result

    def tokens_in_one_row(result, x):
        """{The numbers are right, and} batch and sequence are one axis: (batch · seq, d_model). A product works on the
        last axis and leaves the others as they are, so that no `view` is needed. Which shape must come out?"""
        return result.flatten(0, 1)

    def features_before_tokens(result, x):
        """{The numbers are right, and} tokens and features have changed places: (batch, d_model, seq). You compute with
        tokens as columns; whoever calls the function wants them as rows."""
        return result.mT


@gated_feed_forward.wrong(stage="returned", alone=True)
class ReturnedAlone:
    @family(
        mean_of_the_tokens=(lambda result: result.mean(dim=1), "mean over the tokens", " by itself and", "own result"),
        sum_of_the_tokens=(lambda result: result.sum(dim=1), "sum over the tokens", " by itself and", "own result"),
        last_token_alone=(lambda result: result[:, -1], "result of the last token alone", " and", "own"),
    )
    def one_for_all_tokens(reduced, result, x):
        """You return the {}, (batch, d_model). Every token goes through this layer{} keeps its {}."""
        return reduced(result)

    def first_sentence_alone(result, x):
        """You return the result of the first sentence alone, (seq, d_model). `x[0]`, or a `return` inside a loop over
        the batch, leaves the others out."""
        return result[0]

    def last_token_for_all(result, x):
        """All tokens of a sentence get the result of the last one. Does each round of a loop write over all places?
        Every token has a place of its own."""
        return result[:, -1:].expand_as(result).clone()

    def last_token_left_out(result, x):
        """The last token of each sentence is left at 0: its place was made, and nothing is written there. Does a
        `range` end too early?"""
        return torch.cat([result[:, :-1], torch.zeros_like(result[:, -1:])], dim=1)

    def first_token_left_out(result, x):
        """The first token of each sentence is left at 0: its place was made, and nothing is written there. Does a
        `range` begin too late?"""
        return torch.cat([torch.zeros_like(result[:, :1]), result[:, 1:]], dim=1)

    def other_sentences_left_out(result, x):
        """Only the first sentence has a result, and the others are left at 0. Does an index of 0 stand where the number
        of the sentence belongs, or a `return` inside a loop?"""
        return torch.cat([result[:1], torch.zeros_like(result[1:])])


@gated_feed_forward.wrong
class Multiplied:
    """What is multiplied, and where SiLU stands."""

    def two_ways_back(x, gate, up, down):
        """Gate and content are mapped back each by itself, and multiplied there. They meet in the middle, with d_ff
        features: one product, and then `down`, once."""
        return (silu(x @ gate.T) @ down.T) * (x @ up.T @ down.T)

    def weights_multiplied(x, gate, up, down):
        """You multiply the two weights, `gate * up`, and apply them as one map. The gate depends on the token: first
        each weight maps `x`, then the two results are multiplied."""
        return silu(x @ (gate * up).T) @ down.T

    def silu_of_the_weight(x, gate, up, down):
        """SiLU is applied to the weight `gate`. What goes through it is what the map makes of `x`: the gate must depend
        on the token."""
        return ((x @ silu(gate).T) * (x @ up.T)) @ down.T

    def silu_first(x, gate, up, down):
        """SiLU is applied to `x` on its way to the gate, before the map. It comes after: the map of the gate reads the
        token as it is, and what it returns goes through SiLU."""
        return ((silu(x) @ gate.T) * (x @ up.T)) @ down.T

    def silu_first_for_both(x, gate, up, down):
        """SiLU is applied to `x`, before both maps. They read the token as it is; what the map of the gate returns goes
        through SiLU, and nothing else does."""
        return ((silu(x) @ gate.T) * (silu(x) @ up.T)) @ down.T

    def silu_only_at_the_end(x, gate, up, down):
        """SiLU comes after the last map. It belongs to the gate alone, before the product, and nothing comes after
        `down`."""
        return silu(((x @ gate.T) * (x @ up.T)) @ down.T)

    @family(
        layer_norm_inside=(F.layer_norm, "a layer"),
        rms_norm_inside=(F.rms_norm, "an RMS"),
    )
    def norm_inside(norm, x, gate, up, down):
        """The tokens go through {} norm first. The norm belongs to the block, and stands before this layer: here `x` is
        mapped as it comes."""
        return gated_feed_forward.reference(norm(x, x.shape[-1:]), gate, up, down)

    @family(
        token_times_sigmoid=lambda x, opened: x * opened.sigmoid(),
        sigmoid_times_token=lambda x, opened: opened.sigmoid() * x,
    )
    def the_token_for_x(product, x, gate, up, down):
        """In SiLU, x · sigmoid(x), x is the number that goes in: here the gate's map. You multiply by the tokens, which
        have d_model features and not d_ff."""
        return product(x, x @ gate.T)


@gated_feed_forward.wrong
class ThreeMaps:
    """The three maps."""

    @family(back_with_up=(1, "`up`"), back_with_gate=(0, "`gate`"))
    def back_with_another(weight, x, gate, up, down):
        """The way back goes through {}, which has led there: its shape would fit `down` transposed, so that nothing
        complains. The way back has a weight of its own."""
        return gated_feed_forward.reference(x, gate, up, (gate, up)[weight].T)

    def up_and_down_exchanged(x, gate, up, down):
        """`up` and `down` have changed places: turned around, the one has the shape of the other. `up` leads from
        d_model to d_ff, and `down` back."""
        return gated_feed_forward.reference(x, gate, down.T, up.T)

    def gate_and_down_exchanged(x, gate, up, down):
        """`gate` and `down` have changed places: turned around, the one has the shape of the other. `gate` leads from
        d_model to d_ff, and `down` back."""
        return gated_feed_forward.reference(x, down.T, up, gate.T)

    def all_weights_reshaped(x, gate, up, down):
        """The shapes of your weights fit, but their numbers are at the wrong places: they were reshaped from (out, in)
        to (in, out), not transposed. `view` and `reshape` never move an axis. Look at how you turn a weight around."""
        return gated_feed_forward.reference(x, *(w.reshape(w.shape[::-1]).T for w in (gate, up, down)))

    @family(
        joined_along_d_model=lambda x, weight: x @ weight.T,
        joined_along_d_model_for_linear=F.linear,
    )
    def both_weights_side_by_side(apply, x, gate, up, down):
        """You join `gate` and `up` side by side, along d_model, to apply both at once. Each feature that comes out has
        a row in a weight, (out, in): along which axis must the rows of both be joined?"""
        return apply(x, torch.cat([gate, up], dim=1))

    @family(
        content_back_before_the_product=lambda gate, content, down: gate * (content @ down.T),
        gate_back_before_the_product=lambda gate, content, down: (gate @ down.T) * content,
    )
    def back_before_the_product(product, x, gate, up, down):
        """One factor of your product has d_ff features, and the other d_model, as after `down`: they do not fit. First
        the product, and then the way back: where do the parentheses belong?"""
        return product(silu(x @ gate.T), x @ up.T, down)

    def weights_called(x, gate, up, down):
        """You call a weight as if it were a layer, `gate(x)`. Here the three maps are tensors, stored as (out, in): a
        layer without a bias multiplies by its weight transposed. Which function or operator does that?"""
        return down(silu(gate(x)) * up(x))

    @family(
        one_after_the_other=lambda x, weight: x @ weight.T,
        one_after_the_other_by_linear=F.linear,
    )
    def up_after_the_gate(apply, x, gate, up, down):
        """`up` is applied to what the gate has made, which has d_ff features already. Both maps read the same tokens,
        side by side: what goes into `up`?"""
        return apply(apply(silu(apply(x, gate)), up), down)

    @family(down_first=lambda x, weight: x @ weight.T, down_first_by_linear=F.linear)
    def tokens_into_down(apply, x, gate, up, down):
        """`down` is applied to the tokens as they come in, with d_model features. It leads back, from d_ff: what stands
        before it?"""
        return silu(apply(x, down))


@gated_feed_forward.wrong
class AnotherShape:
    """Another shape, or something else than numbers."""

    def viewed_in_one_row(x, gate, up, down):
        """`view` cannot join batch and sequence of every `x`: it depends on how the numbers lie in memory. The product
        works on the last axis and leaves the others as they are, so that none is needed."""
        return gated_feed_forward.reference(x.view(-1, x.shape[-1]), gate, up, down).view(x.shape)

    def tokens_summed(x, gate, up, down):
        """The tokens of a sentence are added up before the gate opens: your result has no axis for them. A letter that
        is left out on the right of an `einsum` is summed over. Every token goes through this layer by itself."""
        return gated_feed_forward.reference(x.sum(dim=1, keepdim=True), gate, up, down)[:, 0]

    def middle_returned_as_well(x, gate, up, down):
        """You return a pair: the result, and what was in the middle. Whoever calls the layer wants the result alone."""
        middle = silu(x @ gate.T) * (x @ up.T)
        return middle @ down.T, middle

    def unchanged(x, gate, up, down):
        """You return `x` as it came in: none of the three weights has changed anything. What becomes of the results?"""
        return x.clone()


@in_each_map(alone=False)
class EachMap:
    def reshaped(x, weight):
        """The shape of `{}` fits, but its numbers are at the wrong places: it was reshaped from (out, in) to (in, out),
        not transposed. `view` and `reshape` never move an axis. Which method turns a weight around?"""
        return x @ weight.reshape(weight.shape[::-1])


@in_each_map(alone=True)
class EachMapAlone:
    def not_transposed(x, weight):
        """The product with `{}` does not fit. PyTorch stores weights as (out, in), one row for each feature that comes
        out, and the inner sizes of a product must be equal. What turns the weight around?"""
        return x @ weight

    def turned_for_linear(x, weight):
        """You transpose `{}` for `F.linear`, which transposes its weight by itself: it takes weights as they are
        stored, (out, in). The one or the other turns the weight round; which of the two do you keep?"""
        return F.linear(x, weight.T)

    def on_the_left(x, weight):
        """`{}` stands on the left of the product, as in formulas where a token is a column. Here tokens are rows: which
        of the two must be on the left, and what has to be turned around?"""
        return weight @ x

    def in_two_axes(x, weight):
        """`mm` multiplies matrices of two axes, and here one factor has three. `@` and `matmul` take any number of
        axes, and so does `F.linear`. Look at the product with `{}`."""
        return torch.mm(x, weight.T)

    def in_batches(x, weight):
        """`bmm` wants two factors of three axes, and a weight has two: `{}` is the same for every sentence. `@` and
        `matmul` broadcast it, and so does `F.linear`."""
        return torch.bmm(x, weight.T)

    def times_by_element(x, weight):
        """`*` multiplies element by element, and a map needs a matrix product: each feature that comes out is a sum
        over all that go in. Look at what you do with `{}`."""
        return x * weight

    @with_text_of(times_by_element)
    def transposed_by_element(x, weight):
        return x * weight.T

    def with_letters_exchanged(x, weight):
        """The letters of `{}` in your `einsum` stand the wrong way round: weights are stored as (out, in). Which letter
        does the weight share with the tokens, and on which of its axes?"""
        return torch.einsum("bsi,io->bso", x, weight)

    def exchanged_with_the_tokens(x, weight):
        """`F.linear` takes the tokens first and the weight second, and got them the other way round. Look at the call
        with `{}`."""
        return F.linear(weight, x)
