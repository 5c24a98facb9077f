"""A block of a language model: attention and a feed-forward layer, each in pre-norm."""

import torch
from torch.nn import functional as F

from ..ch6_normalization.residual import AXES, identity, some_norm, some_sublayer, zero_sublayer
from ..exercise import exercise, family


def _other_sublayer(x):
    return (0.7 * x).sin() - 0.2


def _other_norm(x):
    return 0.6 * some_norm(x).flip(-1) + 0.4


def _block_inputs(draw, batch=2, seq=7, d_model=5):
    return 1 + 2 * draw(batch, seq, d_model), some_sublayer, _other_sublayer, some_norm, _other_norm


def add_attention(x, attention, norm1):
    """Add to `x` the result of attention on the normalized `x`."""
    return x + attention(norm1(x))


def add_feed_forward(x, feed_forward, norm2):
    """Add to `x` the result of the feed-forward layer on the normalized `x`."""
    return x + feed_forward(norm2(x))


@exercise(
    inputs=_block_inputs,
    axes=AXES,
    hints=(
        "There are two parts, two norms and two sums. What does the second sum begin with: the `x` that came in, or "
        "the result of the first sum?",
        "Each part reads its input through its own norm; the part's result is added to the input as it was before the "
        "norm. The second part reads the result of the first sum.",
        "`x = x + …(…(x))`, then once more with the other two functions",
    ),
)
def decoder_block(x, attention, feed_forward, norm1, norm2, *, first_sum=add_attention, second_sum=add_feed_forward):
    """Apply attention and then the feed-forward layer, each in pre-norm. The shape (batch, seq, d_model) stays."""
    return second_sum(first_sum(x, attention, norm1), feed_forward, norm2)


@decoder_block.probe
def all_return_their_input(draw):
    """parts and norms that return the very tensor they are given"""
    return draw(2, 3, 5), identity, identity, identity, identity


@decoder_block.probe(plain=True)
def attention_of_zeros(draw):
    """attention that returns zeros"""
    x, _, feed_forward, norm1, norm2 = _block_inputs(draw)
    return x, zero_sublayer, feed_forward, norm1, norm2


@decoder_block.right
class RightAnswers:
    def step_by_step(x, attention, feed_forward, norm1, norm2):
        residual = x
        x = attention(norm1(x))
        x = residual + x
        residual = x
        x = feed_forward(norm2(x))
        return residual + x

    def by_a_loop(x, attention, feed_forward, norm1, norm2):
        for part, norm in ((attention, norm1), (feed_forward, norm2)):
            x = x + part(norm(x))
        return x


@decoder_block.property
def parts_of_zeros_change_nothing(function, x, attention, feed_forward, norm1, norm2):
    """With parts that return zeros, the result is `x`, unchanged."""
    return bool(torch.equal(function(x, zero_sublayer, zero_sublayer, norm1, norm2), x))


@decoder_block.wrong(stage="first_sum")
class FirstSum:
    def attention_without_residual(x, attention, norm1):
        """The result of attention replaces `x`: the first residual connection is missing. To which tensor is the result
        of attention added?"""
        return attention(norm1(x))

    def attention_without_norm(x, attention, norm1):
        """Attention reads `x` as it is: `norm1` has no effect on your result. What comes before a part in pre-norm?"""
        return x + attention(x)

    def attention_left_out(x, attention, norm1):
        """`attention` has no effect on your result. Is the function called, and is its result added?"""
        return x

    def attention_in_post_norm(x, attention, norm1):
        """The norm of attention comes after the sum, as in the paper of 2017. Here the norm comes before the part:
        attention reads the normalized `x`, and its result is added to the `x` that was not normalized."""
        return norm1(x + attention(x))

    def norm_after_attention(x, attention, norm1):
        """You normalize what attention returns, and attention reads `x` as it is. Here `norm1` prepares what attention
        *reads*: which of the two functions must be called first?"""
        return x + norm1(attention(x))

    def first_sum_from_the_norm(x, attention, norm1):
        """You add the result of attention to the normalized `x`. If both parts return zeros, the result must be `x`
        itself. Do you overwrite `x` with its normalized version?"""
        x = norm1(x)
        return x + attention(x)

    def attention_between_norms(x, attention, norm1):
        """You call `norm1` before attention and after it. The norm before attention is right, but the result of
        attention must be added without a norm."""
        return x + norm1(attention(norm1(x)))

    def first_sum_normalized(x, attention, norm1):
        """You call `norm1` before attention, which is right, and once more after the sum. In pre-norm a sum is passed
        on without a norm, and the next part has its own norm."""
        return norm1(x + attention(norm1(x)))

    def attention_in_post_norm_and_added(x, attention, norm1):
        """You normalize the sum of `x` and the result of attention, and then add `x` to this normalized sum once more.
        In pre-norm the norm comes first: attention reads what `norm1` returns, and one sum is enough."""
        return x + norm1(x + attention(x))

    def attention_alone(x, attention, norm1):
        """The result of attention replaces `x`, and attention reads `x` as it is: `norm1` and the first residual
        connection are missing. In pre-norm, what does attention read, and to which tensor is its result added?"""
        return attention(x)

    def attention_normalized_without_residual(x, attention, norm1):
        """The result of attention goes through `norm1` and replaces `x`. Here the norm comes before attention, and the
        result of attention is added to `x`."""
        return norm1(attention(x))

    def first_norm_for_attention(x, attention, norm1):
        """`norm1` is called, but attention is not: you add the normalized `x` to `x`. Which part reads the result of
        the norm?"""
        return x + norm1(x)

    def x_replaced_by_its_norm(x, attention, norm1):
        """The first half of your block returns the normalized `x`: the result of attention is lost, and nothing is
        added. Which two tensors does the first sum add?"""
        return norm1(x)

    def x_twice_in_the_first_sum(x, attention, norm1):
        """Your first sum contains `x` twice. Is `x` added to the result of attention, and then once more? With parts
        that return zeros, the result must be `x` itself."""
        return x + x + attention(norm1(x))

    def attention_subtracted(x, attention, norm1):
        """You subtract the result of attention from `x`. A residual connection adds: look at the sign between the two
        tensors."""
        return x - attention(norm1(x))

    def multiplied_with_attention(x, attention, norm1):
        """You multiply `x` by what attention returns. A gate multiplies; a residual connection adds."""
        return x * attention(norm1(x))

    def first_sum_halved(x, attention, norm1):
        """You return the mean of `x` and what attention returns. A residual connection adds the two and does not
        divide."""
        return (x + attention(norm1(x))) / 2

    def attention_twice(x, attention, norm1):
        """You call attention twice: the second call reads what the first one returned. How many parts does a block
        have, and how often is each called?"""
        return x + attention(attention(norm1(x)))

    def first_norm_twice(x, attention, norm1):
        """You call `norm1` twice before attention: the second call normalizes what the first one returned. Once is
        enough. In which two places is the norm called?"""
        return x + attention(norm1(norm1(x)))

    def x_changed_in_post_norm(x, attention, norm1):
        """Your first sum overwrites the caller's `x`, and the norm comes after the sum, as in the paper of 2017. How do
        you write a sum that creates a new tensor, and what does attention read in pre-norm?"""
        x += attention(x)
        return norm1(x)


@decoder_block.wrong(stage="second_sum")
class SecondSum:
    def feed_forward_without_residual(x, feed_forward, norm2):
        """The result of the feed-forward layer replaces `x`: the second residual connection is missing. To which tensor
        is the result of the layer added?"""
        return feed_forward(norm2(x))

    def feed_forward_without_norm(x, feed_forward, norm2):
        """The feed-forward layer reads `x` as it is: `norm2` has no effect on your result. What comes before a part in
        pre-norm?"""
        return x + feed_forward(x)

    def feed_forward_left_out(x, feed_forward, norm2):
        """`feed_forward` has no effect on your result. Is the function called, and is its result added?"""
        return x

    def feed_forward_in_post_norm(x, feed_forward, norm2):
        """The norm of the feed-forward layer comes after the sum, as in the paper of 2017. Here the norm comes before
        the part: the layer reads the normalized first sum, and its result is added to the first sum itself."""
        return norm2(x + feed_forward(x))

    def norm_after_feed_forward(x, feed_forward, norm2):
        """You normalize what the feed-forward layer returns, and the layer reads the first sum as it is. Here `norm2`
        prepares what the layer *reads*: which of the two functions must be called first?"""
        return x + norm2(feed_forward(x))

    def second_sum_from_the_norm(x, feed_forward, norm2):
        """You add the result of the feed-forward layer to the normalized first sum. If both parts return zeros, the
        result must be `x` itself. Do you overwrite the first sum with its normalized version?"""
        x = norm2(x)
        return x + feed_forward(x)

    def feed_forward_between_norms(x, feed_forward, norm2):
        """You call `norm2` before the feed-forward layer and after it. The norm before the layer is right, but the
        result of the layer must be added without a norm."""
        return x + norm2(feed_forward(norm2(x)))

    def feed_forward_in_post_norm_and_added(x, feed_forward, norm2):
        """You normalize the sum of the residual stream and the result of the feed-forward layer, and add this
        normalized sum to the stream once more. In pre-norm the norm comes first: the layer reads what `norm2` returns,
        and one sum is enough."""
        return x + norm2(x + feed_forward(x))

    def feed_forward_alone(x, feed_forward, norm2):
        """The result of the feed-forward layer replaces the residual stream, and the layer reads the stream as it is:
        `norm2` and the second residual connection are missing. In pre-norm, what does the layer read, and to which
        tensor is its result added?"""
        return feed_forward(x)

    def feed_forward_normalized_without_residual(x, feed_forward, norm2):
        """The result of the feed-forward layer goes through `norm2` and replaces the residual stream. Here the norm
        comes before the layer, and the result of the layer is added to the stream."""
        return norm2(feed_forward(x))

    def second_norm_for_feed_forward(x, feed_forward, norm2):
        """`norm2` is called, but the feed-forward layer is not: you add the normalized first sum to the first sum.
        Which part reads the result of the norm?"""
        return x + norm2(x)

    def sum_replaced_by_its_norm(x, feed_forward, norm2):
        """Your result is the normalized first sum: the result of the feed-forward layer is lost, and nothing is added.
        Which two tensors does the second sum add?"""
        return norm2(x)

    def stream_twice_in_the_second_sum(x, feed_forward, norm2):
        """Your second sum contains the first sum twice. One residual connection is enough: with parts that return
        zeros, the result must be `x` itself."""
        return x + x + feed_forward(norm2(x))

    def feed_forward_subtracted(x, feed_forward, norm2):
        """You subtract the result of the feed-forward layer from the first sum. A residual connection adds: look at the
        sign between the two tensors."""
        return x - feed_forward(norm2(x))

    def multiplied_with_feed_forward(x, feed_forward, norm2):
        """You multiply the residual stream by what the feed-forward layer returns. A gate multiplies; a residual
        connection adds."""
        return x * feed_forward(norm2(x))

    def second_sum_halved(x, feed_forward, norm2):
        """You return the mean of the residual stream and what the feed-forward layer returns. A residual connection
        adds the two and does not divide."""
        return (x + feed_forward(norm2(x))) / 2

    def second_norm_twice(x, feed_forward, norm2):
        """You call `norm2` twice before the feed-forward layer: the second call normalizes what the first one returned.
        Once is enough. In which two places is the norm called?"""
        return x + feed_forward(norm2(norm2(x)))


@decoder_block.wrong
class WrongAnswers:
    def second_sum_from_the_first_input(x, attention, feed_forward, norm1, norm2):
        """Your second sum begins with the original input `x`, so it loses what attention added. Which tensor is the
        result of the first sum?"""
        return x + feed_forward(norm2(x + attention(norm1(x))))

    def both_parts_read_the_input(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read the original input `x`, side by side, as in GPT-J. Here the feed-forward layer reads
        the result of the first sum."""
        return x + attention(norm1(x)) + feed_forward(norm2(x))

    def post_norm(x, attention, feed_forward, norm1, norm2):
        """Each norm comes after its sum, as in the paper of 2017. In these models each norm comes before its part, and
        the part's result is added to the `x` that was not normalized."""
        x = norm1(x + attention(x))
        return norm2(x + feed_forward(x))

    def norms_after_the_parts(x, attention, feed_forward, norm1, norm2):
        """You normalize what a part returns. Here the norm prepares what the part *reads*: which of the two functions
        must be called first?"""
        x = x + norm1(attention(x))
        return x + norm2(feed_forward(x))

    def norms_exchanged(x, attention, feed_forward, norm1, norm2):
        """The two norms are swapped. They accept the same shapes, so there is no error: which norm was trained with
        attention?"""
        x = x + attention(norm2(x))
        return x + feed_forward(norm1(x))

    @family(first_norm_for_both=(0, "`norm1`", "`norm2`"), second_norm_for_both=(1, "`norm2`", "`norm1`"))
    def one_norm_for_both(norm_index, x, attention, feed_forward, *norms):
        """You use {} for both parts: {} has no effect on your result. Each part has its own norm."""
        x = x + attention(norms[norm_index](x))
        return x + feed_forward(norms[norm_index](x))

    def parts_exchanged(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer comes first in your block. Attention collects information from the other tokens, and
        the feed-forward layer processes it: which part must come first?"""
        x = x + feed_forward(norm2(x))
        return x + attention(norm1(x))

    def stream_through_the_norms(x, attention, feed_forward, norm1, norm2):
        """You add the result of a part to the normalized `x`. If both parts return zeros, the result must be `x`
        itself. Which tensor is called `x` in each line?"""
        x = norm1(x)
        x = norm2(x + attention(x))
        return x + feed_forward(x)

    def normalized_at_the_end(x, attention, feed_forward, norm1, norm2):
        """Your block normalizes its result. In pre-norm only the whole stack normalizes its result, once, after its
        last block."""
        x = x + attention(norm1(x))
        return norm2(x + feed_forward(norm2(x)))

    def feed_forward_reads_attention_alone(x, attention, feed_forward, norm1, norm2):
        """You add `x` and the results of both parts at the end, but the feed-forward layer reads only what attention
        returned. Each part has its own residual connection, so there are two sums. Which sum must `norm2` read?"""
        attended = attention(norm1(x))
        return x + attended + feed_forward(norm2(attended))

    def one_residual_around_both(x, attention, feed_forward, norm1, norm2):
        """A single residual connection bypasses both parts: the feed-forward layer reads only what attention returned,
        and `x` is added once, at the end. How many sums does the block have, and what comes between them?"""
        return x + feed_forward(norm2(attention(norm1(x))))

    def first_norm_before_the_second(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer reads the first sum through both norms, first `norm1` and then `norm2`. Each part has
        one norm: which one belongs to the second part?"""
        x = x + attention(norm1(x))
        return x + feed_forward(norm2(norm1(x)))

    def second_norm_before_the_first(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer reads the first sum through both norms, first `norm2` and then `norm1`. Each part has
        one norm: which one belongs to the second part?"""
        x = x + attention(norm1(x))
        return x + feed_forward(norm1(norm2(x)))

    def both_parts_read_one_norm(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read `norm1(x)`, side by side, as in GPT-J. Here the feed-forward layer reads the result
        of the first sum, through its own norm."""
        normed = norm1(x)
        return x + attention(normed) + feed_forward(normed)

    def parts_side_by_side_with_norms_exchanged(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read the original input `x`, side by side, and each through the other's norm. Here the
        feed-forward layer reads the result of the first sum, through `norm2`."""
        return x + attention(norm2(x)) + feed_forward(norm1(x))

    def parts_side_by_side_without_norms(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read the original input `x`, side by side and without a norm. Here each part has a norm
        before it, and the feed-forward layer reads the result of the first sum."""
        return x + attention(x) + feed_forward(x)

    def parts_and_norms_exchanged(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer comes first in your block, through `norm1`, and attention second, through `norm2`. The
        norms are in the right order: which part must come first?"""
        x = x + feed_forward(norm1(x))
        return x + attention(norm2(x))

    def attention_in_both_halves(x, attention, feed_forward, norm1, norm2):
        """You call attention in both halves of your block, and `feed_forward` has no effect on your result. Which part
        is the second one?"""
        x = x + attention(norm1(x))
        return x + attention(norm2(x))

    def feed_forward_in_both_halves(x, attention, feed_forward, norm1, norm2):
        """You call the feed-forward layer in both halves of your block, and `attention` has no effect on your result.
        Which part is the first one?"""
        x = x + feed_forward(norm1(x))
        return x + feed_forward(norm2(x))

    def normalized_by_the_first_norm_at_the_end(x, attention, feed_forward, norm1, norm2):
        """Your block normalizes its result with `norm1`. In pre-norm only the whole stack normalizes its result, once,
        after its last block."""
        x = x + attention(norm1(x))
        return norm1(x + feed_forward(norm2(x)))

    def first_input_added_again(x, attention, feed_forward, norm1, norm2):
        """Your result contains the original input `x` twice: the first sum already contains `x`, and the second sum
        adds it once more. Which tensor does the second sum begin with?"""
        first_sum = x + attention(norm1(x))
        return x + first_sum + feed_forward(norm2(first_sum))

    def first_input_left_out(x, attention, feed_forward, norm1, norm2):
        """Your block returns the sum of what the two parts return, without the original input `x`. The feed-forward
        layer reads the first sum: which tensor does the second sum begin with?"""
        attended = attention(norm1(x))
        return attended + feed_forward(norm2(x + attended))

    def second_sum_from_the_first_norm(x, attention, feed_forward, norm1, norm2):
        """Your second sum begins with `norm1(x)` instead of the first sum. The result of a part is added to a tensor
        that no norm has changed: which tensor is the result of the first sum?"""
        return norm1(x) + feed_forward(norm2(x + attention(norm1(x))))

    def norms_of_your_own(x, attention, feed_forward, norm1, norm2):
        """You normalize with `layer_norm`, without weights, and `norm1` and `norm2` are never called. The two norms are
        passed as functions, with their own weights: which function do you call before each part?"""
        x = x + attention(F.layer_norm(x, x.shape[-1:]))
        return x + feed_forward(F.layer_norm(x, x.shape[-1:]))

    def x_changed_and_no_norms(x, attention, feed_forward, norm1, norm2):
        """Both sums overwrite the caller's `x`, and neither norm has an effect on your result. How do you write a sum
        that creates a new tensor, and what comes before each part?"""
        x += attention(x)
        x += feed_forward(x)
        return x

    def both_norms_before_attention(x, attention, feed_forward, norm1, norm2):
        """You call both norms before attention, one after the other, and the feed-forward layer reads the sum as it is.
        Each part has its own norm before it."""
        x = x + attention(norm2(norm1(x)))
        return x + feed_forward(x)

    def feed_forward_reads_the_first_norm(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer reads `norm1(x)` through `norm2`, without the result of attention. Which tensor is the
        result of the first sum?"""
        normed = norm1(x)
        return x + attention(normed) + feed_forward(norm2(normed))

    def attention_added_twice(x, attention, feed_forward, norm1, norm2):
        """Your result contains the result of attention twice: the first sum already contains it, and the second sum
        adds it once more. Which tensor does the second sum begin with?"""
        attended = attention(norm1(x))
        return x + 2 * attended + feed_forward(norm2(x + attended))

    def one_residual_and_one_norm(x, attention, feed_forward, norm1, norm2):
        """A single residual connection bypasses both parts, and `norm2` has no effect on your result: the feed-forward
        layer reads what attention returned, without a norm. How many sums does the block have, and how many norms?"""
        return x + feed_forward(attention(norm1(x)))

    def norms_after_parts_side_by_side(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read the original input `x`, side by side, and you normalize what they return. Here a norm
        comes before each part, and the feed-forward layer reads the result of the first sum."""
        return x + norm1(attention(x)) + norm2(feed_forward(x))

    def feed_forward_reads_the_bare_input(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer reads the original input `x`, without a norm and without the result of attention.
        Which tensor is the result of the first sum, and what comes before the part?"""
        return x + attention(norm1(x)) + feed_forward(x)

    def feed_forward_reads_bare_attention(x, attention, feed_forward, norm1, norm2):
        """You add `x` and the results of both parts at the end, but the feed-forward layer reads only what attention
        returned, without a norm. Which tensor is the result of the first sum, and what comes before the part?"""
        attended = attention(norm1(x))
        return x + attended + feed_forward(attended)

    def second_sum_from_the_first_input_without_norm(x, attention, feed_forward, norm1, norm2):
        """Your second sum begins with the original input `x`, so it loses what attention added, and the feed-forward
        layer has no norm before it. Which tensor is the result of the first sum?"""
        return x + feed_forward(x + attention(norm1(x)))

    def second_sum_from_the_first_input_in_post_norm(x, attention, feed_forward, norm1, norm2):
        """Your norms come after the sums, as in the paper of 2017, and the second sum begins with the original input
        `x`. Where does each norm come in pre-norm, and which tensor is the result of the first sum?"""
        return norm2(x + feed_forward(norm1(x + attention(x))))

    def norms_exchanged_after_the_parts(x, attention, feed_forward, norm1, norm2):
        """You normalize what each part returns: the result of attention with `norm2`, and that of the feed-forward
        layer with `norm1`. Here `norm1` prepares what attention *reads*, and `norm2` what the feed-forward layer reads:
        which must be called first, the norm or the part?"""
        x = x + norm2(attention(x))
        return x + norm1(feed_forward(x))

    def norms_exchanged_without_residuals(x, attention, feed_forward, norm1, norm2):
        """The two norms are swapped, and nothing is added: both residual connections are missing. Which norm was
        trained with attention, and to which tensor is each part's result added?"""
        return feed_forward(norm1(attention(norm2(x))))

    def first_norm_for_both_without_residuals(x, attention, feed_forward, norm1, norm2):
        """You use `norm1` for both parts, and nothing is added: both residual connections are missing. Which norm
        belongs to the second part, and to which tensor is each part's result added?"""
        return feed_forward(norm1(attention(norm1(x))))

    def parts_exchanged_without_residuals(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer comes first in your block, and nothing is added: both residual connections are
        missing. Which part collects the information that the other part processes, and to which tensor is each part's
        result added?"""
        return attention(norm1(feed_forward(norm2(x))))

    def parts_exchanged_in_post_norm(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer comes first in your block, and each norm comes after its sum, as in the paper of 2017.
        Which part collects the information that the other part processes, and what does each norm prepare?"""
        x = norm1(x + feed_forward(x))
        return norm2(x + attention(x))

    def x_changed_and_parts_side_by_side(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read the original input `x`, side by side, and a sum overwrites the caller's `x`. What
        does the feed-forward layer read? And how do you write a sum that creates a new tensor?"""
        feed_forward_result = feed_forward(norm2(x))
        x += attention(norm1(x))
        return x + feed_forward_result

    def parts_alone_added(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read the original input `x`, and your result is the sum of what the two return, without
        `x`. To which tensor is each part's result added, and what does the second part read?"""
        return attention(norm1(x)) + feed_forward(norm2(x))

    def norms_one_place_late(x, attention, feed_forward, norm1, norm2):
        """Each norm comes one place too late: attention reads `x` as it is, the feed-forward layer reads the first sum
        through `norm1`, and `norm2` ends your block. In pre-norm, which norm comes before which part?"""
        x = x + attention(x)
        return norm2(x + feed_forward(norm1(x)))

    def post_norm_with_norms_exchanged(x, attention, feed_forward, norm1, norm2):
        """Each norm comes after its sum, as in the paper of 2017, and the two norms are swapped as well. Here a norm
        comes before its part: `norm1` before attention, `norm2` before the feed-forward layer."""
        x = norm2(x + attention(x))
        return norm1(x + feed_forward(x))

    def norm_not_called(x, attention, feed_forward, norm1, norm2):
        """You pass the norm itself, a function, to `attention` instead of what the norm returns. Each of the four
        functions expects a tensor: with which argument do you call the norm?"""
        return x + attention(norm1)

    def attention_handed_to_the_norm(x, attention, feed_forward, norm1, norm2):
        """You pass the function `attention` to `norm1`, which expects a tensor. Call the two functions one after the
        other: which of them reads `x`?"""
        return x + norm1(attention)

    def attention_asks_for_three(x, attention, feed_forward, norm1, norm2):
        """You call `attention` with three arguments, as for query, key and value. Here `attention` is a function of one
        tensor, from which it computes all three."""
        normed = norm1(x)
        return x + attention(normed, normed, normed)

    def norm_handed_to_attention(x, attention, feed_forward, norm1, norm2):
        """You pass two arguments to `attention`. All four functions expect one tensor each: call the norm, and pass
        what it returns to the part."""
        return x + attention(x, norm1)

    def attention_not_called(x, attention, feed_forward, norm1, norm2):
        """You add a function to `x` instead of what the function returns. All four functions must be called: where are
        parentheses missing?"""
        return x + attention

    def in_a_tuple(x, attention, feed_forward, norm1, norm2):
        """The result {is right, but it} comes in a list or tuple with one entry: remove the brackets, or a comma. The
        next block expects the tensor itself."""
        return (decoder_block.reference(x, attention, feed_forward, norm1, norm2),)

    def both_sums_returned(x, attention, feed_forward, norm1, norm2):
        """You return two tensors. The next block expects one: the result of the second sum."""
        first_sum = x + attention(norm1(x))
        return first_sum + feed_forward(norm2(first_sum)), first_sum

    def attended_returned_too(x, attention, feed_forward, norm1, norm2):
        """You return two tensors, and the second is what attention returned. The next block expects one: the result of
        the second sum."""
        attended = attention(norm1(x))
        return x + attended + feed_forward(norm2(x + attended)), attended

    def second_sum_in_place(x, attention, feed_forward, norm1, norm2):
        """{The result is right, but} training stops with an error: your second sum overwrites the input of `norm2`. The
        backward pass of `norm2` needs the original numbers. `x = x + …` creates a new tensor, but a later `x += …`
        overwrites this tensor. Create a new tensor for each sum."""
        x = x + attention(norm1(x))
        x += feed_forward(norm2(x))
        return x

    def result_of_a_part_changed(x, attention, feed_forward, norm1, norm2):
        """You add in place to the tensor that attention returned. A part can return its input itself, as dropout does
        outside training, and so can a norm that is switched off: your sum then overwrites the caller's `x`. `+=` and
        methods whose names end in an underscore write in place. Create a new tensor for each sum."""
        y = attention(norm1(x))
        y += x
        return y + feed_forward(norm2(y))

    def parts_exchanged_and_attention_in_post_norm(x, attention, feed_forward, norm1, norm2):
        """Two things are wrong. The feed-forward layer comes first, but attention collects what the layer processes.
        And the norm of attention comes after the sum, as in the paper of 2017, instead of before attention."""
        x = x + feed_forward(norm2(x))
        return norm1(x + attention(x))

    def parts_exchanged_and_feed_forward_in_post_norm(x, attention, feed_forward, norm1, norm2):
        """Two things are wrong. The feed-forward layer comes first, but attention collects what the layer processes.
        And the norm of the feed-forward layer comes after the sum, as in the paper of 2017, instead of before the
        layer."""
        x = norm2(x + feed_forward(x))
        return x + attention(norm1(x))
