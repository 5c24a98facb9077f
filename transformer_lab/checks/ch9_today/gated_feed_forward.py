"""The gated feed-forward layer."""

import math
from functools import partial

import torch
from torch.nn import functional as F

from ..exercise import exercise, family, with_text_of


def _tokens_and_maps(draw, batch=2, seq=7, d_model=5, d_ff=8):
    return draw(batch, seq, d_model), draw(d_ff, d_model), draw(d_ff, d_model), draw(d_model, d_ff)


def silu(x):
    """Multiply each number by its sigmoid: SiLU."""
    return x * x.sigmoid()


def gate_map(x, gate):
    """Apply the map of the gate: multiply by the transposed `gate`."""
    return x @ gate.T


def up_map(x, up):
    """Apply the map of the content: multiply by the transposed `up`."""
    return x @ up.T


def gated_content(opening, content, activation):
    """Multiply the content by the gate after SiLU."""
    return activation(opening) * content


def down_map(middle, down):
    """Map back: multiply by the transposed `down`."""
    return middle @ down.T


def unchanged_result(result, x):
    """Return the result, with nothing added."""
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
        "There are three maps: two lead from `x` to d_ff features, and one leads back. Which of the first two maps is "
        "followed by SiLU?",
        "Only the result of `gate` goes through SiLU. SiLU's result is multiplied by the result of `up`, element by "
        "element, and the third map leads from the product back to d_model features.",
        "`return (F.silu(x @ …) * (x @ …)) @ …`; the weights are stored as (out, in)",
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
    product=gated_content,
    back=down_map,
    returned=unchanged_result,
):
    """Apply two maps to the tokens and SiLU to the result of one map, multiply the two results, and map the product
    back to (batch, seq, d_model)."""
    middle = product(opening(x, gate), content(x, up), activation)
    return returned(back(middle, down), x)


@gated_feed_forward.probe(plain=True)
def large_tokens(draw):
    """tokens with numbers in the tens"""
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
def zero_gate_gives_zero(function, x, gate, up, down):
    """With a gate of zeros, the result is zero, whatever the other maps are."""
    return bool((function(x, torch.zeros_like(gate), up, down) == 0).all())


def add_for_each_map(*, alone):
    """Add the mistakes of a class once for each of the three weights; the name of the weight replaces ``{}``."""

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
        """Your gate is divided by √d_model, as attention scores are. This layer has no scale: the result of the map
        goes into SiLU unscaled."""
        return x @ gate.T / x.shape[-1] ** 0.5


@gated_feed_forward.wrong(stage="activation")
class Activation:
    @family(
        gelu=(F.gelu, "GELU, as in Gemma. This"),
        gelu_by_tanh=(
            partial(F.gelu, approximate="tanh"),
            "GELU, approximated by tanh, as in Gemma. This",
        ),
        relu=(torch.relu, "ReLU, as in the paper of 2017. This"),
        tanh=(torch.tanh, "tanh, which is never larger than 1. This"),
    )
    def of_other_models(activation, x):
        """Your gate goes through {} model was trained with SiLU, x · sigmoid(x)."""
        return activation(x)

    def sigmoid_alone(x):
        """Your gate is a plain sigmoid, as in the first gated layers. SiLU is x · sigmoid(x): the x is missing."""
        return x.sigmoid()

    def no_activation(x):
        """Neither of the two maps goes through SiLU: you multiply them without an activation. Which of them is the
        gate?"""
        return x

    def softmax_over_features(x):
        """Your gate goes through a softmax, so its features compete. SiLU is applied to each number separately."""
        return x.softmax(dim=-1)

    def sigmoid_of_the_negative(x):
        """The sign in your sigmoid is wrong: 1 / (1 + eˣ) falls where the sigmoid rises, so it closes large gates. SiLU
        of 2 is 1.76: what does your formula return?"""
        return x * (-x).sigmoid()

    def sigmoid_added(x):
        """You add the sigmoid to x, but SiLU multiplies the two: x · sigmoid(x). With your sum, a gate of 0 would let
        half of the content through."""
        return x + x.sigmoid()

    def steeper_sigmoid(x):
        """The sigmoid in your gate is steeper than SiLU's: x · sigmoid(1.702 x) is a fast approximation of GELU, as in
        CLIP. SiLU has no such factor."""
        return x * (1.702 * x).sigmoid()


@gated_feed_forward.wrong(stage="activation", alone=True)
class ActivationAlone:
    def softmax_over_tokens(x):
        """Your gate goes through a softmax along an axis that is not the features' axis: tokens or sentences compete.
        SiLU is applied to each number separately."""
        return x.softmax(dim=1)

    def falling_sigmoid_alone(x):
        """Your gate is 1 / (1 + eˣ), a sigmoid that falls: the sign in the exponent is wrong, and the factor x is
        missing. SiLU is x · sigmoid(x)."""
        return (-x).sigmoid()

    def silu_twice(x):
        """Your gate goes through SiLU twice. Once is enough: do you reuse a name that already holds the result of SiLU,
        or call SiLU in two lines?"""
        return silu(silu(x))

    def sigmoid_of_the_result(x):
        """You multiply the result of SiLU by the sigmoid once more: x · sigmoid(x)². SiLU contains one sigmoid. Where
        does the second come from?"""
        return silu(x) * x.sigmoid()

    def gate_squared(x):
        """You multiply by the result of the gate's map once too often: x² · sigmoid(x). SiLU already contains the
        factor x. Which line multiplies by x again?"""
        return silu(x) * x

    @family(
        parentheses_lost=(lambda x: x + (-x).exp(), "`x / 1 + exp(-x)`"),
        parentheses_of_the_sigmoid_lost=(lambda x: x * (1 + (-x).exp()), "`1 / 1 + exp(-x)`"),
    )
    def no_parentheses(formula, x):
        """The parentheses around the denominator are missing: {} divides by 1, and then adds `exp(-x)`. What is the
        right operand of `/`?"""
        return formula(x)

    def minus_in_the_denominator(x):
        """Your denominator contains a minus: x / (1 − e⁻ˣ) divides by 0 at 0 and opens the gate for negative numbers.
        The sigmoid is 1 / (1 + e⁻ˣ)."""
        return x / (1 - (-x).exp())

    def positive_sigmoid(x):
        """Your gate is SiLU above zero, and 0 below: relu(x) · sigmoid(x). SiLU is slightly negative below zero: −0.27
        for −1."""
        return x.relu() * x.sigmoid()

    def silu_of_the_negative(x):
        """You apply SiLU to −x instead of x, so negative gates open and positive gates close. Where does the minus come
        from?"""
        return silu(-x)

    def sign_reversed(x):
        """Your gate has the wrong sign: it is minus SiLU. Which line of your code contains the minus?"""
        return -silu(x)

    def one_minus_silu(x):
        """Your gate is 1 − SiLU, which closes where the gate should open, like the factor 1 − z of a GRU. Here the
        content is multiplied by SiLU itself."""
        return 1 - silu(x)

    def ones_where_positive(x):
        """Your gate is 1 where its map is positive, and 0 elsewhere: a comparison. The larger the number, the more of
        the content SiLU lets through."""
        return (x > 0).to(x.dtype)

    def exponential_of_python(x):
        """`math.exp` and `float` accept one number, but you pass a tensor with many numbers. Which function of PyTorch
        computes the exponential, or the sigmoid, of each number separately?"""
        return x / (1 + math.exp(-x))

    @family(
        leaky_relu=(F.leaky_relu, "leaky ReLU, which multiplies negative numbers by 0.01"),
        leakier_relu=(
            partial(F.leaky_relu, negative_slope=0.2),
            "leaky ReLU, which multiplies negative numbers by 0.2",
        ),
        leaky_relu_of_a_tenth=(
            partial(F.leaky_relu, negative_slope=0.1),
            "leaky ReLU, which multiplies negative numbers by 0.1",
        ),
        elu=(F.elu, "ELU, which is eˣ − 1 below zero"),
        selu=(F.selu, "SELU, a scaled ELU"),
        softplus=(F.softplus, "softplus, log(1 + eˣ), which is never 0"),
        mish=(F.mish, "Mish, x · tanh(softplus(x))"),
        hardswish=(F.hardswish, "Hardswish, a piecewise approximation of SiLU"),
        hardsigmoid=(F.hardsigmoid, "a hard sigmoid, which is linear between −3 and 3"),
        relu6=(F.relu6, "ReLU6, which is never larger than 6"),
        squared_relu=(lambda x: x.relu().square(), "a squared ReLU"),
        softsign=(F.softsign, "softsign, x / (1 + |x|)"),
        times_tanh=(lambda x: x * x.tanh(), "x · tanh(x), which is never negative"),
        log_sigmoid=(F.logsigmoid, "the logarithm of the sigmoid, which is never positive"),
        exponential=(torch.exp, "the exponential function, which has no upper limit"),
        absolute=(torch.abs, "the absolute value"),
        square=(torch.square, "the square"),
        twice_as_steep=(lambda x: x * (2 * x).sigmoid(), "x · sigmoid(2x), whose sigmoid is twice as steep as in SiLU"),
        cut_off=(lambda x: x.clamp(0, 1), "a clamp to the range from 0 to 1"),
        derivative=(lambda x: x.sigmoid() * (1 + x * (1 - x.sigmoid())), "the derivative of SiLU"),
        derivative_of_the_sigmoid=(lambda x: x.sigmoid() * (1 - x.sigmoid()), "the derivative of the sigmoid"),
    )
    def another(activation, x):
        """Your gate goes through {}. This model was trained with SiLU, x · sigmoid(x): the weights fit only the
        activation that they were trained with."""
        return activation(x)

    @family(
        method_of_tensors=lambda x: x.silu(),
        function_of_torch=lambda x: torch.silu(x),
        function_called_swish=lambda x: F.swish(x),
        method_called_swish=lambda x: x.swish(),
    )
    def no_such_function(spelling, x):
        """PyTorch has no function of this name where you look for it. SiLU, also called swish, is `silu` in
        `torch.nn.functional`, and you can also write it with `torch.sigmoid`."""
        return spelling(x)


@gated_feed_forward.wrong(stage="product")
class Product:
    def gate_and_up_exchanged(opening, content, activation):
        """Gate and up are swapped: SiLU is applied to the content. The shapes are equal, so there is no error."""
        return opening * activation(content)

    def silu_after_the_product(opening, content, activation):
        """You apply the activation after the product. SiLU must be applied to the gate alone, before the product."""
        return activation(opening * content)

    def silu_on_both(opening, content, activation):
        """You apply the activation to both maps. Only the gate needs the activation: the content is multiplied as it
        is."""
        return activation(opening) * activation(content)

    def added(opening, content, activation):
        """You add gate and content, but a gate multiplies. A gate of 0 must let nothing through: what does a sum return
        for such a gate?"""
        return activation(opening) + content

    def subtracted(opening, content, activation):
        """You subtract the content from the gate, but a gate multiplies. A gate of 0 must let nothing through: what
        does a difference return for such a gate?"""
        return activation(opening) - content

    def divided(opening, content, activation):
        """You divide the gate by the content, and where the content is near zero, the quotient is huge. Gate and
        content are multiplied, element by element."""
        return activation(opening) / content

    def added_on_top(opening, content, activation):
        """You compute content + gate · content, or (1 + gate) · content: a closed gate lets everything through. The
        task asks for the product of gate and content alone. What do you add to the product?"""
        return content + activation(opening) * content

    def gate_added_on_top(opening, content, activation):
        """You compute gate · (content + 1): you add 1 to the content, or the gate to the product. Then `up` cannot
        close what the gate opens. The task asks for the product alone."""
        return activation(opening) + activation(opening) * content

    def gate_alone(opening, content, activation):
        """The gate alone is mapped back: `up` has no effect on your result. By what must the gate be multiplied?"""
        return activation(opening)

    def gate_left_out(opening, content, activation):
        """The content alone is mapped back: `gate` has no effect on your result. By what must the content be
        multiplied?"""
        return content

    def plain_layer(opening, content, activation):
        """Your layer has no gate: it is the plain feed-forward layer, with an activation between two maps. `gate` is
        not used: what is multiplied by the result of its map?"""
        return activation(content)

    def up_twice(opening, content, activation):
        """You compute both factors with `up`, and `gate` has no effect on your result. Look at the factor that goes
        through SiLU: which weight does it need?"""
        return activation(content) * content

    def summed_over_features(opening, content, activation):
        """You sum the products over the features, which leaves one number for each token, but `down` needs d_ff
        features. Gate and content are multiplied element by element, and the product keeps their shape."""
        return (activation(opening) * content).sum(dim=-1, keepdim=True)

    def joined_side_by_side(opening, content, activation):
        """You concatenate the two maps along the features, so you have 2 · d_ff features. Multiply the maps element by
        element instead."""
        return torch.cat([activation(opening), content], dim=-1)

    def matrix_product(opening, content, activation):
        """You combine gate and content in a matrix product, `@`, whose inner sizes do not fit here. The two have the
        same shape, and each number must be multiplied by the number at the same place: which operator does that?"""
        return activation(opening) @ content

    def matrix_product_over_tokens(opening, content, activation):
        """You combine gate and content in a matrix product, with one of the two transposed, as for attention scores.
        Here tokens do not mix: each number is multiplied by the number at the same place. Which operator does that?"""
        return activation(opening) @ content.mT

    def matrix_product_over_features(opening, content, activation):
        """You combine gate and content in a matrix product that sums over the tokens and leaves (d_ff, d_ff). Here
        tokens do not mix: each number is multiplied by the number at the same place. Which operator does that?"""
        return activation(opening).mT @ content


@gated_feed_forward.wrong(stage="product", alone=True)
class ProductAlone:
    def silu_after_the_product_too(opening, content, activation):
        """You apply the activation to the gate, which is right, and once more after the product. The product must go
        straight into `down`."""
        return activation(activation(opening) * content)

    def added_before_silu(opening, content, activation):
        """You add the two maps and apply the activation to the sum. A sum of two maps is one map: your layer has no
        gate. The gate goes through SiLU and then *multiplies* the content."""
        return activation(opening + content)

    def gate_twice(opening, content, activation):
        """You multiply the gate by its own map, and `up` has no effect on your result. Look at the two factors: by what
        must the gate be multiplied?"""
        return activation(opening) * opening

    def tanh_on_the_content(opening, content, activation):
        """Your content goes through tanh and your gate through a sigmoid, as in an LSTM or WaveNet. Here only the gate
        goes through an activation: SiLU, x · sigmoid(x)."""
        return opening.sigmoid() * content.tanh()

    def softmax_over_the_product(opening, content, activation):
        """You apply a softmax to the products, as to attention scores. Here features do not compete: the products go
        into `down` as they are."""
        return (activation(opening) * content).softmax(dim=-1)

    def gate_limited(opening, content, activation):
        """Your gate is clamped to the range from 0 to 1 after SiLU. SiLU has no upper limit and is slightly negative
        below zero: −0.27 for −1. Remove the clamp."""
        return activation(opening).clamp(0, 1) * content

    def gate_map_added_on_top(opening, content, activation):
        """You add the gate's map, before SiLU, to the product. Then `up` cannot close what the gate opens. The task
        asks for the product alone."""
        return opening + activation(opening) * content

    def sigmoid_of_the_product(opening, content, activation):
        """Your sigmoid reads the product of both maps. SiLU reads the gate's map alone: in x · sigmoid(x), x is the
        same number twice. The content is multiplied afterwards."""
        return opening * (opening * content).sigmoid()

    @family(
        tanh_of_the_content=torch.tanh,
        sigmoid_of_the_content=torch.sigmoid,
        relu_of_the_content=torch.relu,
        gelu_of_the_content=F.gelu,
        softmax_of_the_content=partial(torch.softmax, dim=-1),
    )
    def squeezed_content(squeeze, opening, content, activation):
        """You apply an activation to the content. Only the gate needs an activation, SiLU: the content is multiplied as
        it is."""
        return activation(opening) * squeeze(content)

    @family(
        module_times_content=lambda content: torch.nn.SiLU() * content,
        content_times_module=lambda content: content * torch.nn.SiLU(),
    )
    def module_for_a_function(product, opening, content, activation):
        """`nn.SiLU(…)` creates a layer and computes nothing: its argument says whether the layer works in place. Call
        the layer afterwards, or use `F.silu` instead."""
        return product(content)


@gated_feed_forward.wrong(stage="back")
class Back:
    def result_scaled(middle, down):
        """Your result is divided by √d_ff. This layer has no scale: what `down` returns is the result."""
        return middle @ down.T / middle.shape[-1] ** 0.5

    def no_way_back(middle, down):
        """You return the product, with d_ff features: the map back is missing. The block adds the result to `x`, so the
        result must have d_model features. Which weight is not used?"""
        return middle


@gated_feed_forward.wrong(stage="back", alone=True)
class BackAlone:
    def features_summed(middle, down):
        """You sum the product over its features, which leaves one number for each token. The last step is a map: `down`
        maps d_ff features to d_model features."""
        return middle.sum(dim=-1)


@gated_feed_forward.wrong(stage="returned")
class Returned:
    def silu_at_the_end(result, x):
        """You apply SiLU once more, after the last map. The last map ends the layer: what the layer adds to `x` can
        have any sign."""
        return silu(result)

    def input_gated(result, x):
        """You multiply your result by `x`. The x in SiLU is the input of SiLU itself, an output of the gate's map.
        Nothing is multiplied after `down`."""
        return x * result

    def residual_inside(result, x):
        """You add `x` at the end. The residual connection belongs to the block, which would add `x` a second time."""
        return x + result

    def tokens_in_one_row(result, x):
        """{The numbers are right, but} batch and sequence are merged into one axis: (batch · seq, d_model). A matrix
        product works on the last axis and keeps the others, so you need no `view`. Which shape must the result have?"""
        return result.flatten(0, 1)

    def features_before_tokens(result, x):
        """{The numbers are right, but} the axes of tokens and features are swapped: (batch, d_model, seq). You compute
        with tokens as columns, but the caller expects tokens as rows."""
        return result.mT


@gated_feed_forward.wrong(stage="returned", alone=True)
class ReturnedAlone:
    @family(
        mean_of_the_tokens=(lambda result: result.mean(dim=1), "mean over the tokens", " separately and", "own result"),
        sum_of_the_tokens=(lambda result: result.sum(dim=1), "sum over the tokens", " separately and", "own result"),
        last_token_alone=(lambda result: result[:, -1], "result of the last token alone", " and", "own"),
    )
    def one_for_all_tokens(reduce, result, x):
        """You return the {}, (batch, d_model). Every token goes through this layer{} keeps its {}."""
        return reduce(result)

    def first_sentence_alone(result, x):
        """You return the result of the first sentence alone, (seq, d_model). `x[0]`, or a `return` inside a loop over
        the batch, leaves out the other sentences."""
        return result[0]

    def last_token_for_all(result, x):
        """All tokens of a sentence get the result of the last token. Does each round of your loop overwrite all places?
        Each token has its own place."""
        return result[:, -1:].expand_as(result).clone()

    def last_token_left_out(result, x):
        """The result for the last token of each sentence is 0: nothing is written to its place. Does a `range` end too
        early?"""
        return torch.cat([result[:, :-1], torch.zeros_like(result[:, -1:])], dim=1)

    def first_token_left_out(result, x):
        """The result for the first token of each sentence is 0: nothing is written to its place. Does a `range` begin
        too late?"""
        return torch.cat([torch.zeros_like(result[:, :1]), result[:, 1:]], dim=1)

    def other_sentences_left_out(result, x):
        """Only the first sentence has a result: the others are 0. Do you use the index 0 instead of the number of the
        sentence, or is there a `return` inside a loop?"""
        return torch.cat([result[:1], torch.zeros_like(result[1:])])


@gated_feed_forward.wrong
class Multiplied:
    """Mistakes in what is multiplied, or in what goes through SiLU."""

    def two_ways_back(x, gate, up, down):
        """You map gate and content back separately, and multiply the results. Multiply gate and content before the map
        back, while both have d_ff features, and apply `down` once."""
        return (silu(x @ gate.T) @ down.T) * (x @ up.T @ down.T)

    def weights_multiplied(x, gate, up, down):
        """You multiply the two weights, `gate * up`, and apply the product as one map. The gate depends on the token:
        first apply each weight to `x`, then multiply the two results."""
        return silu(x @ (gate * up).T) @ down.T

    def silu_of_the_weight(x, gate, up, down):
        """You apply SiLU to the weight `gate`. SiLU must be applied to what the map returns for `x`: the gate depends
        on the token."""
        return ((x @ silu(gate).T) * (x @ up.T)) @ down.T

    def silu_first(x, gate, up, down):
        """You apply SiLU to `x`, before the map of the gate. SiLU comes after the map: the gate's map reads the token
        as it is, and its result goes through SiLU."""
        return ((silu(x) @ gate.T) * (x @ up.T)) @ down.T

    def silu_first_for_both(x, gate, up, down):
        """You apply SiLU to `x`, before both maps. Both maps read the token as it is, and SiLU is applied only to what
        the gate's map returns."""
        return ((silu(x) @ gate.T) * (silu(x) @ up.T)) @ down.T

    def silu_only_at_the_end(x, gate, up, down):
        """You apply SiLU after the last map. SiLU must be applied to the gate alone, before the product: the last map
        ends the layer."""
        return silu(((x @ gate.T) * (x @ up.T)) @ down.T)

    @family(
        layer_norm_inside=(F.layer_norm, "a layer"),
        rms_norm_inside=(F.rms_norm, "an RMS"),
    )
    def norm_inside(norm, x, gate, up, down):
        """The tokens go through {} norm first. The norm belongs to the block and comes before this layer: here `x` is
        mapped as it is."""
        return gated_feed_forward.reference(norm(x, x.shape[-1:]), gate, up, down)

    @family(
        token_times_sigmoid=lambda x, opened: x * opened.sigmoid(),
        sigmoid_times_token=lambda x, opened: opened.sigmoid() * x,
    )
    def the_token_for_x(product, x, gate, up, down):
        """In SiLU, x · sigmoid(x), x is the input of SiLU: here an output of the gate's map. You multiply by the
        tokens, which have d_model features and not d_ff."""
        return product(x, x @ gate.T)


@gated_feed_forward.wrong
class ThreeMaps:
    """Mistakes in the three maps."""

    @family(back_with_up=(1, "`up`"), back_with_gate=(0, "`gate`"))
    def back_with_another(weight, x, gate, up, down):
        """You map back with {}, which already maps to d_ff. Its transpose has the shape of `down`, so there is no
        error. The map back has its own weight."""
        return gated_feed_forward.reference(x, gate, up, (gate, up)[weight].T)

    def up_and_down_exchanged(x, gate, up, down):
        """`up` and `down` are swapped: transposed, each has the shape of the other. `up` maps from d_model to d_ff, and
        `down` maps back."""
        return gated_feed_forward.reference(x, gate, down.T, up.T)

    def gate_and_down_exchanged(x, gate, up, down):
        """`gate` and `down` are swapped: transposed, each has the shape of the other. `gate` maps from d_model to d_ff,
        and `down` maps back."""
        return gated_feed_forward.reference(x, down.T, up, gate.T)

    def all_weights_reshaped(x, gate, up, down):
        """The shapes of your weights fit, but their numbers are in the wrong places: you reshape from (out, in) to (in,
        out), but `view` and `reshape` never move an axis. How do you transpose a weight?"""
        return gated_feed_forward.reference(x, *(w.reshape(w.shape[::-1]).T for w in (gate, up, down)))

    @family(
        joined_along_d_model=lambda x, weight: x @ weight.T,
        joined_along_d_model_for_linear=F.linear,
    )
    def both_weights_side_by_side(apply, x, gate, up, down):
        """You concatenate `gate` and `up` along d_model, to apply both at once. A weight, (out, in), has one row for
        each output feature: along which axis must you join the rows of both weights?"""
        return apply(x, torch.cat([gate, up], dim=1))

    @family(
        content_back_before_the_product=lambda gate, content, down: gate * (content @ down.T),
        gate_back_before_the_product=lambda gate, content, down: (gate @ down.T) * content,
    )
    def back_before_the_product(product, x, gate, up, down):
        """One factor of your product has d_ff features, but the other, after `down`, has d_model: the shapes do not
        fit. The product comes first, then the map back: where do the parentheses belong?"""
        return product(silu(x @ gate.T), x @ up.T, down)

    def weights_called(x, gate, up, down):
        """You call a weight as if it were a layer, `gate(x)`. Here the three maps are tensors, stored as (out, in): a
        layer without a bias multiplies by its transposed weight. Which function or operator does that?"""
        return down(silu(gate(x)) * up(x))

    @family(
        one_after_the_other=lambda x, weight: x @ weight.T,
        one_after_the_other_by_linear=F.linear,
    )
    def up_after_the_gate(apply, x, gate, up, down):
        """You apply `up` to the result of the gate, which already has d_ff features. Both maps read the same tokens:
        what is the input of `up`?"""
        return apply(apply(silu(apply(x, gate)), up), down)

    @family(down_first=lambda x, weight: x @ weight.T, down_first_by_linear=F.linear)
    def tokens_into_down(apply, x, gate, up, down):
        """You apply `down` to the tokens, which have d_model features. `down` maps back, from d_ff: which steps come
        before it?"""
        return silu(apply(x, down))


@gated_feed_forward.wrong
class AnotherShape:
    """A different shape, or a result that is not a tensor of numbers."""

    def viewed_in_one_row(x, gate, up, down):
        """`view` cannot merge batch and sequence for every `x`, but only for some orders of the numbers in memory. A
        matrix product works on the last axis and keeps the others, so you need no `view`."""
        return gated_feed_forward.reference(x.view(-1, x.shape[-1]), gate, up, down).view(x.shape)

    def tokens_summed(x, gate, up, down):
        """You add up the tokens of a sentence before the gate, so your result has no axis for the tokens. `einsum` sums
        over every letter that is missing on the right. This layer processes each token separately."""
        return gated_feed_forward.reference(x.sum(dim=1, keepdim=True), gate, up, down)[:, 0]

    def middle_returned_as_well(x, gate, up, down):
        """You return a pair: the result, and the product before the map back. The caller expects the result alone."""
        middle = silu(x @ gate.T) * (x @ up.T)
        return middle @ down.T, middle

    def unchanged(x, gate, up, down):
        """You return `x` unchanged: none of the three weights has an effect. Where are the results of your maps
        used?"""
        return x.clone()


@add_for_each_map(alone=False)
class EachMap:
    def reshaped(x, weight):
        """The shape of `{}` fits, but its numbers are in the wrong places: you reshape from (out, in) to (in, out), but
        `view` and `reshape` never move an axis. Which method transposes a weight?"""
        return x @ weight.reshape(weight.shape[::-1])


@add_for_each_map(alone=True)
class EachMapAlone:
    def not_transposed(x, weight):
        """The shapes in the product with `{}` do not fit. PyTorch stores weights as (out, in), one row for each output
        feature, and the inner sizes of a matrix product must be equal. How do you transpose the weight?"""
        return x @ weight

    def weight_transposed_for_linear(x, weight):
        """You transpose `{}` for `F.linear`, which transposes its weight itself: it expects weights as they are stored,
        (out, in). One transpose is enough: which of the two do you keep?"""
        return F.linear(x, weight.T)

    def on_the_left(x, weight):
        """`{}` is the left factor of the product, as in formulas where a token is a column. Here tokens are rows: which
        factor must be on the left, and which one must be transposed?"""
        return weight @ x

    def in_two_axes(x, weight):
        """`mm` multiplies matrices with two axes, but here one factor has three. `@`, `matmul` and `F.linear` accept
        any number of axes. Look at the product with `{}`."""
        return torch.mm(x, weight.T)

    def in_batches(x, weight):
        """`bmm` expects two factors with three axes, but a weight has two: `{}` is the same for every sentence. `@`,
        `matmul` and `F.linear` broadcast the weight."""
        return torch.bmm(x, weight.T)

    def times_by_element(x, weight):
        """`*` multiplies element by element, but a map needs a matrix product: each output feature is a sum over all
        input features. Look at the product with `{}`."""
        return x * weight

    @with_text_of(times_by_element)
    def transposed_by_element(x, weight):
        return x * weight.T

    def with_letters_exchanged(x, weight):
        """The letters of `{}` in your `einsum` are in the wrong order: weights are stored as (out, in). Which letter
        does the weight share with the tokens, and on which of its axes?"""
        return torch.einsum("bsi,io->bso", x, weight)

    def exchanged_with_the_tokens(x, weight):
        """`F.linear` expects the tokens first and the weight second, but you pass the weight first. Look at the call
        with `{}`."""
        return F.linear(weight, x)
