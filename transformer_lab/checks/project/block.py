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


def normalized(x, norm):
    """Normalize the features of each token, with the weight and the bias of this norm."""
    weight, bias = norm
    return layer_norm(x, weight.shape, weight, bias)


def two_maps(x, weights):
    """Apply the feed-forward layer: two maps with a ReLU between."""
    return linear(relu(linear(x, weights["w1"], weights["b1"])), weights["w2"], weights["b2"])


def residual(x, change):
    """Add the result to what went into the norm before it."""
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
    first_norm=normalized,
    attention=self_attention.reference,
    first_residual=residual,
    second_norm=normalized,
    forward=two_maps,
    second_residual=residual,
):
    """One pre-norm block: attention, then the feed-forward layer, each added to what came in."""
    x = first_residual(x, attention(first_norm(x, weights["norm1"]), weights, n_heads, attend))
    return second_residual(x, forward(second_norm(x, weights["norm2"]), weights))


@block.probe
def small_numbers(draw):
    """numbers so small that eps counts"""
    x, *others = _block_inputs(draw)
    return x / 300, *others


block.example("an `attend` that is not softmax attention", attend=causal_linear_attention)
block.example("one token", seq=1)


@block.equivalent
def with_pre_norm(x, weights, n_heads, attend):
    def pre_norm(x, sublayer, norm):
        return x + sublayer(norm(x))

    x = pre_norm(x, lambda y: by_reshape(y, weights, n_heads, attend), lambda y: normalized(y, weights["norm1"]))
    return pre_norm(x, lambda y: two_maps(y, weights), lambda y: normalized(y, weights["norm2"]))


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
    result = as_one_projection(normalized(x, weights["norm1"]), weights, n_heads, attend)
    result += x
    return torch.add(result, two_maps(normalized(result, weights["norm2"]), weights))


def _with_eps(eps, x, weights, n_heads, attend):
    def norm(x, norm):
        return layer_norm(x, x.shape[-1:], *norm, eps=eps)

    return block.reference(x, weights, n_heads, attend, first_norm=norm, second_norm=norm)


@block.wrong(stage="first_norm")
class FirstNorm:
    def first_norm_left_out(x, norm):
        """The attention gets x as it is: `norm1` is not used. In a pre-norm block each sublayer reads a normalized
        copy."""
        return x

    def first_norm_bare(x, norm):
        """The first normalization lacks its weight and bias: it stops at mean 0 and variance 1. The two numbers of each
        feature are learned and belong to it."""
        return layer_norm(x, x.shape[-1:])


@block.wrong(stage="first_norm", alone=True)
class FirstNormAlone:
    def an_argument_of_the_norm_missing(x, norm):
        """`layer_norm` takes four arguments, x, weight, bias and eps, and got three. Is the eps there? And is the pair
        taken apart? `weights["norm1"]` is one argument; with a star before it, two."""
        return own_layer_norm.reference(x, *norm)


@block.wrong(stage="attention", alone=True)
class AttentionAlone:
    def attend_without_projections(x, weights, n_heads, attend):
        """`attend` was called in the block itself, without projections and heads. It is the innermost part: what the
        block calls is `self_attention`, which hands it on."""
        return attend(x, x, x)

    def no_attention(x, weights, n_heads, attend):
        """The attention has no part in the result: only the feed-forward layer changes x. A block has two sublayers,
        one after the other."""
        return torch.zeros_like(x)

    def attend_not_handed_on(x, weights, n_heads, attend):
        """The attention looks at all tokens, the later ones too: the `attend` that came in is not what reaches
        `self_attention`. Hand it on as it is."""
        return self_attention.reference(x, weights, n_heads, scaled_dot_product_attention)

    def n_heads_not_handed_on(x, weights, n_heads, attend):
        """The attention has one head, whatever `n_heads` says. Hand the number on to `self_attention`."""
        return self_attention.reference(x, weights, 1, attend)

    def heads_and_attend_exchanged(x, weights, n_heads, attend):
        """`n_heads` and `attend` have changed places where `self_attention` is called: the features are to be divided
        by a function. It takes x, weights, n_heads, attend, in this order."""
        return self_attention.reference(x, weights, attend, n_heads)

    def three_arguments_for_attention(x, weights, n_heads, attend):
        """`self_attention` takes four arguments, x, weights, n_heads and attend, and got three. Which of them is not
        handed on?"""
        return self_attention.reference(x, weights, attend)


@block.wrong(stage="first_residual")
class FirstResidual:
    def no_first_residual(x, change):
        """What came in is not added after the attention: a token keeps only what the attention gathered, and its own
        vector is lost. Through many blocks the signal, and the gradient, dies away."""
        return change


@block.wrong(stage="second_norm")
class SecondNorm:
    def second_norm_left_out(x, norm):
        """The feed-forward layer gets x as it is: `norm2` is not used. In a pre-norm block each sublayer reads a
        normalized copy."""
        return x

    def second_norm_bare(x, norm):
        """The second normalization lacks its weight and bias: it stops at mean 0 and variance 1. The two numbers of
        each feature are learned and belong to it."""
        return layer_norm(x, x.shape[-1:])


@block.wrong(stage="forward")
class Forward:
    def activated_at_the_end(x, weights):
        """The ReLU stands after the second map instead of between the two: the layer can only ever add to a feature,
        never take away, and the two maps are one. What must be between them?"""
        return relu(linear(linear(x, weights["w1"], weights["b1"]), weights["w2"], weights["b2"]))

    def no_activation(x, weights):
        """There is no activation between the two linear maps. Two linear maps in a row are one linear map: the layer
        could be replaced by a single matrix. What stands between them?"""
        return linear(linear(x, weights["w1"], weights["b1"]), weights["w2"], weights["b2"])

    def gelu_for_relu(x, weights):
        """The activation is GELU. GPT-2 has that; here, as in assignment 6, it is ReLU, which is zero for every
        negative number."""
        return linear(gelu(linear(x, weights["w1"], weights["b1"])), weights["w2"], weights["b2"])

    def no_biases(x, weights):
        """The feed-forward layer lacks both biases: `b1` and `b2` are not used. Nothing complains, since a map without
        them has the same shape."""
        return linear(relu(linear(x, weights["w1"])), weights["w2"])

    def gelu_by_tanh(x, weights):
        """The activation is GELU, in the form with tanh. GPT-2 has that; here, as in assignment 6, it is ReLU, which is
        zero for every negative number."""
        return linear(gelu(linear(x, weights["w1"], weights["b1"]), approximate="tanh"), weights["w2"], weights["b2"])

    def silu_for_relu(x, weights):
        """The activation is SiLU, as in Llama. Here, as in assignment 6, it is ReLU, which is zero for every negative
        number."""
        return linear(silu(linear(x, weights["w1"], weights["b1"])), weights["w2"], weights["b2"])

    def no_second_bias(x, weights):
        """The second map lacks its bias: `b2` is not used. Nothing complains, since a map without it has the same
        shape."""
        return linear(relu(linear(x, weights["w1"], weights["b1"])), weights["w2"])


@block.wrong(stage="forward", alone=True)
class ForwardAlone:
    def no_forward(x, weights):
        """The feed-forward layer has no part in the result: only the attention changes x. A block has two sublayers,
        one after the other."""
        return torch.zeros_like(x)

    def maps_as_stored(x, weights):
        """The first map of the feed-forward layer meets a matrix that does not fit: `w1` as it is stored, (out, in),
        where `x @ w` needs it transposed, or `w2` in its place. Which of the two comes first, and which way round?"""
        return torch.relu(x @ weights["w1"] + weights["b1"]) @ weights["w2"] + weights["b2"]

    def dict_for_four_weights(x, weights):
        """`feed_forward` got the whole dict as one argument. It takes five: x, and then `w1`, `b1`, `w2`, `b2`, each by
        itself. Pick the four out of the dict by their keys."""
        return feed_forward.reference(x, weights)

    def dict_unpacked(x, weights):
        """With two stars, `feed_forward` got every entry of the block's dict, and knows only four of them. Pick `w1`,
        `b1`, `w2` and `b2` out of the dict by their keys."""
        return feed_forward.reference(x, **weights)

    def matrices_before_biases(x, weights):
        """`b1` and `w2` have changed places: `feed_forward` takes x, w1, b1, w2, b2, and what stands where a bias
        belongs is a matrix. In which order do the maps use them?"""
        return linear(relu(x @ weights["w1"].mT + weights["w2"]), weights["b1"], weights["b2"])


@block.wrong(stage="second_residual")
class SecondResidual:
    def no_second_residual(x, change):
        """What came in is not added after the feed-forward layer. Both changes of a block are added to what they began
        with."""
        return change


@block.wrong
class WrongAnswers:
    def norms_exchanged(x, weights, n_heads, attend):
        """The two norms have changed places: `norm2` stands before the attention and `norm1` before the feed-forward
        layer. With fresh weights you would not notice, since both begin alike."""
        return block.reference(x, {**weights, "norm1": weights["norm2"], "norm2": weights["norm1"]}, n_heads, attend)

    def forward_first(x, weights, n_heads, attend):
        """The feed-forward layer runs first and the attention second. Each has its own norm, and both are added, but a
        block gathers from other tokens before it works on what it gathered."""
        x = x + two_maps(normalized(x, weights["norm2"]), weights)
        return x + self_attention.reference(normalized(x, weights["norm1"]), weights, n_heads, attend)

    def no_eps(x, weights, n_heads, attend):
        """{Right for ordinary numbers, and wrong for very small ones:} the eps in your norms is missing or is another
        one. 1e-5 is added to the variance before the root is taken. Is it 1e-5, and in both norms?"""

        def norm(x, weight, bias):
            return (x - x.mean(-1, keepdim=True)) / x.var(-1, keepdim=True, correction=0).sqrt() * weight + bias

        x = x + self_attention.reference(norm(x, *weights["norm1"]), weights, n_heads, attend)
        return x + two_maps(norm(x, *weights["norm2"]), weights)

    def post_norm_block(x, weights, n_heads, attend):
        """This is a post-norm block: each sum is normalized, as in the original Transformer. The project's model is
        pre-norm: the norm stands before the sublayer, and the sum goes on as it is."""
        x = normalized(x + self_attention.reference(x, weights, n_heads, attend), weights["norm1"])
        return normalized(x + two_maps(x, weights), weights["norm2"])

    def both_from_the_input(x, weights, n_heads, attend):
        """Both sublayers read what came into the block. The feed-forward layer must read the result of the attention:
        first `x = x + …`, then the second line with the new x. (Some models do it side by side; this one does not.)
        Look at which x your second line reads."""
        change = self_attention.reference(normalized(x, weights["norm1"]), weights, n_heads, attend)
        return x + change + two_maps(normalized(x, weights["norm2"]), weights)

    def added_to_the_normalized(x, weights, n_heads, attend):
        """The changes are added to the normalized x instead of to x itself. Then nothing passes a block untouched, and
        the way through which gradients reach the first layer is gone. Keep x, and normalize a copy."""
        first = normalized(x, weights["norm1"])
        x = first + self_attention.reference(first, weights, n_heads, attend)
        second = normalized(x, weights["norm2"])
        return second + two_maps(second, weights)

    def old_normalized_read_again(x, weights, n_heads, attend):
        """The feed-forward layer reads what the attention read: the normalized x from before it. After the attention
        there is a new x, and `norm2` makes a new normalized copy of that. Is a line missing, or a name used twice?"""
        normed = normalized(x, weights["norm1"])
        return x + self_attention.reference(normed, weights, n_heads, attend) + two_maps(normed, weights)

    def the_same_norm_twice(x, weights, n_heads, attend):
        """`norm1` is used in both places; perhaps a line was copied and not changed. Each sublayer has a norm of its
        own, with its own weight and bias."""
        return block.reference(x, {**weights, "norm2": weights["norm1"]}, n_heads, attend)

    def second_change_added_to_the_input(x, weights, n_heads, attend):
        """The feed-forward layer's change is added to the x that came into the block: what the attention changed is
        read, and then lost. Both changes stay: the second is added to the *new* x."""
        new = x + self_attention.reference(normalized(x, weights["norm1"]), weights, n_heads, attend)
        return x + two_maps(normalized(new, weights["norm2"]), weights)

    def forward_reads_the_change_alone(x, weights, n_heads, attend):
        """The feed-forward layer reads what the attention returned, before it was added to x: a token's own vector is
        not in it. Add first, and let `norm2` read the new x."""
        change = self_attention.reference(normalized(x, weights["norm1"]), weights, n_heads, attend)
        return x + change + two_maps(normalized(change, weights["norm2"]), weights)

    def one_residual_around_both(x, weights, n_heads, attend):
        """What came in is added once, at the end, and the attention's change goes through the feed-forward layer alone.
        A block adds twice: after the attention, and again after the feed-forward layer."""
        change = self_attention.reference(normalized(x, weights["norm1"]), weights, n_heads, attend)
        return x + two_maps(normalized(change, weights["norm2"]), weights)

    def first_change_added_to_the_normalized(x, weights, n_heads, attend):
        """The attention's change is added to the normalized x instead of to x itself: the x that came in was
        overwritten by its norm. {The second half is as it should be.} Keep x, and normalize a copy."""
        first = normalized(x, weights["norm1"])
        x = first + self_attention.reference(first, weights, n_heads, attend)
        return x + two_maps(normalized(x, weights["norm2"]), weights)

    def second_change_added_to_the_normalized(x, weights, n_heads, attend):
        """The feed-forward layer's change is added to the normalized x instead of to x itself: x was overwritten by its
        second norm. {The first half is as it should be.} Keep x, and normalize a copy."""
        x = x + self_attention.reference(normalized(x, weights["norm1"]), weights, n_heads, attend)
        second = normalized(x, weights["norm2"])
        return second + two_maps(second, weights)

    def changes_normalized(x, weights, n_heads, attend):
        """The norms stand after the sublayers: each change is normalized before it is added. In a pre-norm block the
        norm stands before: the sublayer reads a normalized copy, and its change is added as it is."""
        x = x + normalized(self_attention.reference(x, weights, n_heads, attend), weights["norm1"])
        return x + normalized(two_maps(x, weights), weights["norm2"])

    def second_norm_in_both_places(x, weights, n_heads, attend):
        """`norm2` is used in both places. Each sublayer has a norm of its own, with its own weight and bias: which one
        stands before the attention?"""
        return block.reference(x, {**weights, "norm1": weights["norm2"]}, n_heads, attend)

    def forward_first_norms_in_order(x, weights, n_heads, attend):
        """The feed-forward layer runs first, after `norm1`, and the attention second, after `norm2`: the two sublayers
        have changed places. A block gathers from other tokens before it works on what it gathered."""
        x = x + two_maps(normalized(x, weights["norm1"]), weights)
        return x + self_attention.reference(normalized(x, weights["norm2"]), weights, n_heads, attend)

    def weights_and_biases_exchanged(x, weights, n_heads, attend):
        """Weight and bias of the norms are exchanged: the normalized x was multiplied by the bias. The pair holds the
        weight first, and then the bias."""
        turned = {name: weights[name][::-1] for name in ("norm1", "norm2")}
        return block.reference(x, {**weights, **turned}, n_heads, attend)

    def eps_too_small(x, weights, n_heads, attend):
        """{Right for ordinary numbers, and wrong for very small ones:} the eps in your norms is 1e-6, which is common
        too. Here it is 1e-5, in both norms."""

        def norm(x, norm):
            return layer_norm(x, x.shape[-1:], *norm, eps=1e-6)

        x = x + self_attention.reference(norm(x, weights["norm1"]), weights, n_heads, attend)
        return x + two_maps(norm(x, weights["norm2"]), weights)

    def variance_divided_by_one_less(x, weights, n_heads, attend):
        """The variance in your norms is divided by d_model - 1, as `var` and `std` do if they are not told otherwise. A
        norm divides by d_model. Is it the function that passed its check in assignment 6?"""

        def norm(x, weight, bias):
            return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt() * weight + bias

        x = x + self_attention.reference(norm(x, *weights["norm1"]), weights, n_heads, attend)
        return x + two_maps(norm(x, *weights["norm2"]), weights)

    def second_sum_in_place(x, weights, n_heads, attend):
        """{The result is right, and} training stops with an error: the second change is written into a tensor that the
        second norm has read before. `x = x + …` makes a new tensor, and a later `x += …` writes over it. To go
        backwards through the norm, PyTorch needs the numbers as they were. Make both sums new tensors."""
        x = x + self_attention.reference(normalized(x, weights["norm1"]), weights, n_heads, attend)
        x += two_maps(normalized(x, weights["norm2"]), weights)
        return x

    @family(eps_of_1e_7=1e-7, eps_of_1e_8=1e-8)
    def smaller_eps(eps, x, weights, n_heads, attend):
        """Right for ordinary numbers, and wrong for very small ones: the eps in your norms is smaller than it should
        be. Here it is 1e-5, in both norms."""
        return _with_eps(eps, x, weights, n_heads, attend)

    @family(eps_of_1e_4=1e-4, eps_of_1e_3=1e-3, eps_of_1e_2=1e-2)
    def larger_eps(eps, x, weights, n_heads, attend):
        """The eps in your norms is larger than it should be. Here it is 1e-5, in both norms: of variances around 1 it
        changes nothing that could be seen, and yours does. How many zeros stand between the point and the 1?"""
        return _with_eps(eps, x, weights, n_heads, attend)


@block.wrong(alone=True)
class WrongAnswersAlone:
    def norm_of_the_model_looked_for(x, weights, n_heads, attend):
        """There is no `"norm"` in a block's dict: that is the model's last norm. A block has two, `"norm1"` before the
        attention and `"norm2"` before the feed-forward layer."""
        return normalized(x, weights["norm"])


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
        """Two things go wrong here. This is a post-norm block: each sum is normalized, and in this model the norm
        stands before the sublayer. And: {}"""
        x = normalized(x + self_attention.reference(x, weights, n_heads, attend), weights["norm1"])
        return normalized(x + forward(x, weights), weights["norm2"])
