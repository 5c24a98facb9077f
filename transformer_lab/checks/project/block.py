"""One pre-norm block."""

import torch
from torch.nn.functional import gelu, layer_norm, linear, relu, scaled_dot_product_attention, silu

from ..ch6_normalization.feed_forward import feed_forward
from ..ch6_normalization.layer_norm import layer_norm as own_layer_norm
from ..exercise import exercise, family, rows_of
from .inputs import block_weights, causal_linear_attention, causal_softmax_attention
from .self_attention import as_one_projection, by_einsum, by_reshape, self_attention


def _block_inputs(draw, batch=2, seq=7, heads=3, d_head=5, d_ff=11):
    d_model = heads * d_head
    return draw(batch, seq, d_model), block_weights(draw, d_model, d_ff), heads, causal_softmax_attention


def apply_norm(x, norm):
    """Normalize the features of each token, with the weight and the bias of this norm."""
    weight, bias = norm
    return layer_norm(x, weight.shape, weight, bias)


def apply_two_maps(x, weights):
    """Apply the feed-forward layer: two maps with a ReLU between them."""
    return linear(relu(linear(x, weights["w1"], weights["b1"])), weights["w2"], weights["b2"])


def add_change(x, change):
    """Add the sublayer's result to the input of the norm before it."""
    return x + change


@exercise(
    inputs=_block_inputs,
    axes={"x": "batch seq d_model", "return": "batch seq d_model"},
    hints=(
        "A pre-norm block changes its input twice. Is each change added to the input, or to the normalized input?",
        "First `x + attention(norm1(x))`, then the same with `norm2` and the feed-forward layer, on the *new* x.",
        "`x = x + self_attention(layer_norm(x, *weights[…], 1e-5), …)`, then `return x + feed_forward(…)`",
    ),
)
def block(
    x,
    weights,
    n_heads,
    attend,
    *,
    first_norm=apply_norm,
    attention=self_attention.reference,
    first_residual=add_change,
    second_norm=apply_norm,
    forward=apply_two_maps,
    second_residual=add_change,
):
    """Apply one pre-norm block: attention, then the feed-forward layer, and add each result to x."""
    x = first_residual(x, attention(first_norm(x, weights["norm1"]), weights, n_heads, attend))
    return second_residual(x, forward(second_norm(x, weights["norm2"]), weights))


@block.probe
def small_numbers(draw):
    """numbers so small that eps matters"""
    x, *others = _block_inputs(draw)
    return x / 300, *others


block.example("an `attend` that is not softmax attention", attend=causal_linear_attention)
block.example("one token", seq=1)


@block.equivalent
def with_pre_norm(x, weights, n_heads, attend):
    def pre_norm(x, sublayer, norm):
        return x + sublayer(norm(x))

    x = pre_norm(x, lambda y: by_reshape(y, weights, n_heads, attend), lambda y: apply_norm(y, weights["norm1"]))
    return pre_norm(x, lambda y: apply_two_maps(y, weights), lambda y: apply_norm(y, weights["norm2"]))


@block.equivalent
def written_out(x, weights, n_heads, attend):
    def norm(x, weight, bias):
        mean = x.mean(-1, keepdim=True)
        return (x - mean) / ((x - mean).square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight + bias

    x = by_einsum(norm(x, *weights["norm1"]), weights, n_heads, attend) + x
    hidden = (norm(x, *weights["norm2"]) @ weights["w1"].T + weights["b1"]).clamp(min=0)
    return x + (hidden @ weights["w2"].T + weights["b2"])


@block.equivalent
def added_in_place(x, weights, n_heads, attend):
    result = as_one_projection(apply_norm(x, weights["norm1"]), weights, n_heads, attend)
    result += x
    return torch.add(result, apply_two_maps(apply_norm(result, weights["norm2"]), weights))


def _block_with_eps(eps, x, weights, n_heads, attend):
    def norm(x, norm):
        return layer_norm(x, x.shape[-1:], *norm, eps=eps)

    return block.reference(x, weights, n_heads, attend, first_norm=norm, second_norm=norm)


@block.wrong(stage="first_norm")
class FirstNorm:
    def first_norm_left_out(x, norm):
        """The attention reads x as it is: `norm1` is not used. In a pre-norm block, each sublayer reads a normalized
        copy of x."""
        return x

    def first_norm_bare(x, norm):
        """The first normalization lacks its weight and bias: it stops at mean 0 and variance 1. `norm1` has a learned
        weight and a learned bias for each feature."""
        return layer_norm(x, x.shape[-1:])


@block.wrong(stage="first_norm", alone=True)
class FirstNormAlone:
    def an_argument_of_the_norm_missing(x, norm):
        """`layer_norm` takes four arguments, x, weight, bias and eps, but received three. Did you pass eps? Did you
        unpack the pair? `weights["norm1"]` is one argument; with a star before it, the pair becomes two arguments."""
        return own_layer_norm.reference(x, *norm)


@block.wrong(stage="attention", alone=True)
class AttentionAlone:
    def attend_without_projections(x, weights, n_heads, attend):
        """The block calls `attend` directly, without projections and heads. Call `self_attention`, and pass `attend` to
        it."""
        return attend(x, x, x)

    def no_attention(x, weights, n_heads, attend):
        """The attention has no effect on the result: only the feed-forward layer changes x. A block has two sublayers,
        one after the other."""
        return torch.zeros_like(x)

    def attend_not_handed_on(x, weights, n_heads, attend):
        """The attention sees all tokens, even the later ones: `self_attention` does not receive the `attend` of the
        block. Pass `attend` to `self_attention` as it is."""
        return self_attention.reference(x, weights, n_heads, scaled_dot_product_attention)

    def n_heads_not_handed_on(x, weights, n_heads, attend):
        """The attention has one head, whatever `n_heads` is. Pass `n_heads` to `self_attention`."""
        return self_attention.reference(x, weights, 1, attend)

    def heads_and_attend_exchanged(x, weights, n_heads, attend):
        """`n_heads` and `attend` have changed places in the call of `self_attention`, so the features would be divided
        by a function. `self_attention` takes x, weights, n_heads, attend, in this order."""
        return self_attention.reference(x, weights, attend, n_heads)

    def three_arguments_for_attention(x, weights, n_heads, attend):
        """`self_attention` takes four arguments, x, weights, n_heads and attend, but received three. Which argument is
        missing?"""
        return self_attention.reference(x, weights, attend)


@block.wrong(stage="first_residual")
class FirstResidual:
    def no_first_residual(x, change):
        """x is not added after the attention: a token keeps only what the attention gathered, and loses its own vector.
        Through many blocks, the signal and the gradient die away."""
        return change


@block.wrong(stage="second_norm")
class SecondNorm:
    def second_norm_left_out(x, norm):
        """The feed-forward layer reads x as it is: `norm2` is not used. In a pre-norm block, each sublayer reads a
        normalized copy of x."""
        return x

    def second_norm_bare(x, norm):
        """The second normalization lacks its weight and bias: it stops at mean 0 and variance 1. `norm2` has a learned
        weight and a learned bias for each feature."""
        return layer_norm(x, x.shape[-1:])


@block.wrong(stage="forward")
class Forward:
    def activated_at_the_end(x, weights):
        """The ReLU comes after the second map instead of between the two maps. The layer can then only add to a
        feature, never subtract, and the two maps amount to a single map. What must come between them?"""
        return relu(linear(linear(x, weights["w1"], weights["b1"]), weights["w2"], weights["b2"]))

    def no_activation(x, weights):
        """There is no activation between the two linear maps. Two linear maps in a row are one linear map: a single
        matrix could replace the layer. What comes between the maps?"""
        return linear(linear(x, weights["w1"], weights["b1"]), weights["w2"], weights["b2"])

    def gelu_for_relu(x, weights):
        """The activation is GELU, as in GPT-2. Here, as in assignment 6, the activation is ReLU, which is zero for
        every negative number."""
        return linear(gelu(linear(x, weights["w1"], weights["b1"])), weights["w2"], weights["b2"])

    def no_biases(x, weights):
        """The feed-forward layer lacks both biases: `b1` and `b2` are not used. A map without a bias returns the same
        shape, so PyTorch raises no error."""
        return linear(relu(linear(x, weights["w1"])), weights["w2"])

    def gelu_by_tanh(x, weights):
        """The activation is GELU in the tanh approximation, as in GPT-2. Here, as in assignment 6, the activation is
        ReLU, which is zero for every negative number."""
        return linear(gelu(linear(x, weights["w1"], weights["b1"]), approximate="tanh"), weights["w2"], weights["b2"])

    def silu_for_relu(x, weights):
        """The activation is SiLU, as in Llama. Here, as in assignment 6, the activation is ReLU, which is zero for
        every negative number."""
        return linear(silu(linear(x, weights["w1"], weights["b1"])), weights["w2"], weights["b2"])

    def no_second_bias(x, weights):
        """The second map lacks its bias: `b2` is not used. A map without a bias returns the same shape, so PyTorch
        raises no error."""
        return linear(relu(linear(x, weights["w1"], weights["b1"])), weights["w2"])


@block.wrong(stage="forward", alone=True)
class ForwardAlone:
    def no_forward(x, weights):
        """The feed-forward layer has no effect on the result: only the attention changes x. A block has two sublayers,
        one after the other."""
        return torch.zeros_like(x)

    def maps_as_stored(x, weights):
        """The first map of the feed-forward layer multiplies by a matrix that does not fit. Either you use `w1` as
        stored, (out, in), although `x @ w` needs it transposed, or you use `w2` first. Which matrix comes first, and
        must it be transposed?"""
        return torch.relu(x @ weights["w1"] + weights["b1"]) @ weights["w2"] + weights["b2"]

    def dict_for_four_weights(x, weights):
        """`feed_forward` received the whole dict as one argument. It takes five arguments: x, then `w1`, `b1`, `w2` and
        `b2`. Pick the four weights out of the dict by their keys."""
        return feed_forward.reference(x, weights)

    def dict_unpacked(x, weights):
        """With two stars, `feed_forward` received every entry of the block's dict, but it takes only four of them. Pick
        `w1`, `b1`, `w2` and `b2` out of the dict by their keys."""
        return feed_forward.reference(x, **weights)

    def matrices_before_biases(x, weights):
        """`b1` and `w2` have changed places: `feed_forward` takes x, w1, b1, w2, b2, but received a matrix in place of
        the first bias. In which order do the maps use the four weights?"""
        return linear(relu(x @ weights["w1"].mT + weights["w2"]), weights["b1"], weights["b2"])


@block.wrong(stage="second_residual")
class SecondResidual:
    def no_second_residual(x, change):
        """x is not added after the feed-forward layer. A block adds each of its two changes to x as it was before the
        norm."""
        return change


@block.wrong
class WrongAnswers:
    def norms_exchanged(x, weights, n_heads, attend):
        """The two norms have changed places: `norm2` comes before the attention and `norm1` before the feed-forward
        layer. With fresh weights the mistake does not show, since both norms have the same initial numbers."""
        return block.reference(x, {**weights, "norm1": weights["norm2"], "norm2": weights["norm1"]}, n_heads, attend)

    def forward_first(x, weights, n_heads, attend):
        """The feed-forward layer runs first and the attention second. Each sublayer has its own norm, and both results
        are added, but a block gathers vectors from other tokens before it works on them."""
        x = x + apply_two_maps(apply_norm(x, weights["norm2"]), weights)
        return x + self_attention.reference(apply_norm(x, weights["norm1"]), weights, n_heads, attend)

    def no_eps(x, weights, n_heads, attend):
        """{Your block is right for ordinary numbers, but wrong for very small ones:} the eps in your norms is missing
        or wrong. 1e-5 is added to the variance before the root is taken. Do both norms use an eps of 1e-5?"""

        def norm(x, weight, bias):
            return (x - x.mean(-1, keepdim=True)) / x.var(-1, keepdim=True, correction=0).sqrt() * weight + bias

        x = x + self_attention.reference(norm(x, *weights["norm1"]), weights, n_heads, attend)
        return x + apply_two_maps(norm(x, *weights["norm2"]), weights)

    def post_norm_block(x, weights, n_heads, attend):
        """This is a post-norm block: each sum is normalized, as in the original Transformer. The project's model is
        pre-norm: the norm comes before the sublayer, and the sum is not normalized."""
        x = apply_norm(x + self_attention.reference(x, weights, n_heads, attend), weights["norm1"])
        return apply_norm(x + apply_two_maps(x, weights), weights["norm2"])

    def both_from_the_input(x, weights, n_heads, attend):
        """Both sublayers read the x that came into the block. The feed-forward layer must read the result of the
        attention: first `x = x + …`, then the second line with the new x. (Some models run both sublayers side by side;
        this model does not.) Which x does your second line read?"""
        change = self_attention.reference(apply_norm(x, weights["norm1"]), weights, n_heads, attend)
        return x + change + apply_two_maps(apply_norm(x, weights["norm2"]), weights)

    def added_to_the_normalized(x, weights, n_heads, attend):
        """You add the changes to the normalized x instead of x. Nothing then passes through a block unchanged, and
        gradients lose their direct path to the first layer. Keep x, and normalize a copy."""
        first = apply_norm(x, weights["norm1"])
        x = first + self_attention.reference(first, weights, n_heads, attend)
        second = apply_norm(x, weights["norm2"])
        return second + apply_two_maps(second, weights)

    def old_normalized_read_again(x, weights, n_heads, attend):
        """The feed-forward layer reads the same normalized x as the attention. After the attention there is a new x,
        and `norm2` must normalize this new x. Is a line missing, or is a name used twice?"""
        normed = apply_norm(x, weights["norm1"])
        return x + self_attention.reference(normed, weights, n_heads, attend) + apply_two_maps(normed, weights)

    def the_same_norm_twice(x, weights, n_heads, attend):
        """`norm1` is used in both places. Did you copy a line without changing it? Each sublayer has its own norm, with
        its own weight and bias."""
        return block.reference(x, {**weights, "norm2": weights["norm1"]}, n_heads, attend)

    def second_change_added_to_the_input(x, weights, n_heads, attend):
        """You add the feed-forward layer's change to the x that came into the block. The feed-forward layer reads the
        attention's change, but the result loses it. Both changes must stay: add the second to the *new* x."""
        new = x + self_attention.reference(apply_norm(x, weights["norm1"]), weights, n_heads, attend)
        return x + apply_two_maps(apply_norm(new, weights["norm2"]), weights)

    def forward_reads_the_change_alone(x, weights, n_heads, attend):
        """The feed-forward layer reads the attention's result before x is added to it, so each token's own vector is
        missing. Add first, then normalize the new x with `norm2`."""
        change = self_attention.reference(apply_norm(x, weights["norm1"]), weights, n_heads, attend)
        return x + change + apply_two_maps(apply_norm(change, weights["norm2"]), weights)

    def one_residual_around_both(x, weights, n_heads, attend):
        """x is added only once, at the end, and the feed-forward layer reads the attention's change alone. A block adds
        twice: after the attention, and again after the feed-forward layer."""
        change = self_attention.reference(apply_norm(x, weights["norm1"]), weights, n_heads, attend)
        return x + apply_two_maps(apply_norm(change, weights["norm2"]), weights)

    def first_change_added_to_the_normalized(x, weights, n_heads, attend):
        """You add the attention's change to the normalized x instead of x: the normalized x has overwritten the x that
        came in. {The second half is right.} Keep x, and normalize a copy."""
        first = apply_norm(x, weights["norm1"])
        x = first + self_attention.reference(first, weights, n_heads, attend)
        return x + apply_two_maps(apply_norm(x, weights["norm2"]), weights)

    def second_change_added_to_the_normalized(x, weights, n_heads, attend):
        """You add the feed-forward layer's change to the normalized x instead of x: the second norm has overwritten x.
        {The first half is right.} Keep x, and normalize a copy."""
        x = x + self_attention.reference(apply_norm(x, weights["norm1"]), weights, n_heads, attend)
        second = apply_norm(x, weights["norm2"])
        return second + apply_two_maps(second, weights)

    def changes_normalized(x, weights, n_heads, attend):
        """The norms come after the sublayers: each change is normalized before it is added. In a pre-norm block, the
        norm comes first: the sublayer reads a normalized copy, and its change is added as it is."""
        x = x + apply_norm(self_attention.reference(x, weights, n_heads, attend), weights["norm1"])
        return x + apply_norm(apply_two_maps(x, weights), weights["norm2"])

    def second_norm_in_both_places(x, weights, n_heads, attend):
        """`norm2` is used in both places. Each sublayer has its own norm, with its own weight and bias: which norm
        comes before the attention?"""
        return block.reference(x, {**weights, "norm1": weights["norm2"]}, n_heads, attend)

    def forward_first_norms_in_order(x, weights, n_heads, attend):
        """The feed-forward layer runs first, after `norm1`, and the attention second, after `norm2`: the two sublayers
        have changed places. A block gathers vectors from other tokens before it works on them."""
        x = x + apply_two_maps(apply_norm(x, weights["norm1"]), weights)
        return x + self_attention.reference(apply_norm(x, weights["norm2"]), weights, n_heads, attend)

    def weights_and_biases_exchanged(x, weights, n_heads, attend):
        """Weight and bias of the norms are exchanged: you multiply the normalized x by the bias. In each pair, the
        weight comes first, then the bias."""
        swapped_norms = {name: weights[name][::-1] for name in ("norm1", "norm2")}
        return block.reference(x, {**weights, **swapped_norms}, n_heads, attend)

    def eps_too_small(x, weights, n_heads, attend):
        """{Your block is right for ordinary numbers, but wrong for very small ones:} the eps in your norms is 1e-6,
        which is common too. Here eps is 1e-5, in both norms."""

        def norm(x, norm):
            return layer_norm(x, x.shape[-1:], *norm, eps=1e-6)

        x = x + self_attention.reference(norm(x, weights["norm1"]), weights, n_heads, attend)
        return x + apply_two_maps(norm(x, weights["norm2"]), weights)

    def variance_divided_by_one_less(x, weights, n_heads, attend):
        """The variance in your norms is divided by d_model - 1, the default of `var` and `std`. A norm divides by
        d_model. Is your `layer_norm` the function that passed its check in assignment 6?"""

        def norm(x, weight, bias):
            return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt() * weight + bias

        x = x + self_attention.reference(norm(x, *weights["norm1"]), weights, n_heads, attend)
        return x + apply_two_maps(norm(x, *weights["norm2"]), weights)

    def second_sum_in_place(x, weights, n_heads, attend):
        """{The result is right, but} training raises an error: you write the second change into a tensor that the
        second norm has read. `x = x + …` makes a new tensor, and a later `x += …` overwrites that tensor. The backward
        pass through the norm needs the old numbers. Make both sums new tensors."""
        x = x + self_attention.reference(apply_norm(x, weights["norm1"]), weights, n_heads, attend)
        x += apply_two_maps(apply_norm(x, weights["norm2"]), weights)
        return x

    @family(eps_of_1e_7=1e-7, eps_of_1e_8=1e-8)
    def smaller_eps(eps, x, weights, n_heads, attend):
        """Your block is right for ordinary numbers, but wrong for very small ones: the eps in your norms is too small.
        Here eps is 1e-5, in both norms."""
        return _block_with_eps(eps, x, weights, n_heads, attend)

    @family(eps_of_1e_4=1e-4, eps_of_1e_3=1e-3, eps_of_1e_2=1e-2)
    def larger_eps(eps, x, weights, n_heads, attend):
        """The eps in your norms is too large. Here eps is 1e-5, in both norms: added to variances around 1, it has no
        visible effect, but your eps has one. How many zeros come between the decimal point and the 1?"""
        return _block_with_eps(eps, x, weights, n_heads, attend)


@block.wrong(alone=True)
class WrongAnswersAlone:
    def norm_of_the_model_looked_for(x, weights, n_heads, attend):
        """A block's dict has no `"norm"`: this key belongs to the model's last norm. A block has two norms, `"norm1"`
        before the attention and `"norm2"` before the feed-forward layer."""
        return apply_norm(x, weights["norm"])


@block.wrong
class PostNorm:
    @family(
        **rows_of(
            (
                Forward.no_activation,
                Forward.gelu_for_relu,
                Forward.gelu_by_tanh,
                Forward.silu_for_relu,
                Forward.no_biases,
                Forward.no_second_bias,
            ),
            "post_norm_and_{}",
        )
    )
    def post_norm_and(forward, x, weights, n_heads, attend):
        """Two things go wrong here. This is a post-norm block: each sum is normalized, but in this model the norm comes
        before the sublayer. And: {}"""
        x = apply_norm(x + self_attention.reference(x, weights, n_heads, attend), weights["norm1"])
        return apply_norm(x + forward(x, weights), weights["norm2"])
