"""A block of a language model: attention and a feed-forward layer, each in pre-norm."""

import torch
from torch.nn import functional as F

from ..ch6_normalization.residual import AXES, nothing, some_norm, some_sublayer, unchanged
from ..exercise import exercise, family


def _other_sublayer(x):
    return (0.7 * x).sin() - 0.2


def _other_norm(x):
    return 0.6 * some_norm(x).flip(-1) + 0.4


def _block(draw, batch=2, seq=7, d_model=5):
    return 1 + 2 * draw(batch, seq, d_model), some_sublayer, _other_sublayer, some_norm, _other_norm


def after_attention(x, attention, norm1):
    """Add to `x` what attention makes of the normalized `x`."""
    return x + attention(norm1(x))


def after_feed_forward(x, feed_forward, norm2):
    """Add what the feed-forward layer makes of that sum, normalized by its own norm."""
    return x + feed_forward(norm2(x))


@exercise(
    inputs=_block,
    axes=AXES,
    hints=(
        "There are two parts, two norms and two sums. What does the second sum begin with: the `x` that came in, or "
        "the result of the first sum?",
        "Each part reads its input through its own norm, and its result is added to the input without the norm. The "
        "second part reads the result of the first sum.",
        "`x = x + …(…(x))`, then once more with the other two functions",
    ),
)
def decoder_block(
    x, attention, feed_forward, norm1, norm2, *, first_sum=after_attention, second_sum=after_feed_forward
):
    """Attention, then the feed-forward layer, each in pre-norm: (batch, seq, d_model) stays."""
    return second_sum(first_sum(x, attention, norm1), feed_forward, norm2)


@decoder_block.probe
def all_return_their_input(draw):
    """parts and norms that return the very tensor they are given"""
    return draw(2, 3, 5), unchanged, unchanged, unchanged, unchanged


@decoder_block.probe(plain=True)
def silent_attention(draw):
    """attention that returns zeros"""
    x, _, feed_forward, norm1, norm2 = _block(draw)
    return x, nothing, feed_forward, norm1, norm2


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
def silent_parts_change_nothing(function, x, attention, feed_forward, norm1, norm2):
    """With parts that return zeros, `x` comes out as it went in."""
    return bool(torch.equal(function(x, nothing, nothing, norm1, norm2), x))


@decoder_block.wrong(stage="first_sum")
class FirstSum:
    def attention_without_residual(x, attention, norm1):
        """What attention returns replaces `x`: the first residual connection is missing. What is it added to?"""
        return attention(norm1(x))

    def attention_without_norm(x, attention, norm1):
        """Attention reads `x` as it is: `norm1` changes nothing in your result. What stands before the part in
        pre-norm?"""
        return x + attention(x)

    def attention_left_out(x, attention, norm1):
        """`attention` changes nothing in your result. Is it called, and is what it returns added?"""
        return x

    def attention_in_post_norm(x, attention, norm1):
        """The norm of attention comes after its sum, as in the paper of 2017. Here it comes before the part: attention
        reads the normalized `x`, and what it is added to has met no norm."""
        return norm1(x + attention(x))

    def norm_after_attention(x, attention, norm1):
        """You normalize what attention returns, and attention reads `x` as it is. Here `norm1` prepares what attention
        *reads*: which call is in the other?"""
        return x + norm1(attention(x))

    def first_sum_from_the_norm(x, attention, norm1):
        """What attention's result is added to has been through `norm1`. With parts that return zeros, `x` itself must
        come out: does the normalized `x` have a name of its own in your function?"""
        x = norm1(x)
        return x + attention(x)

    def attention_between_norms(x, attention, norm1):
        """`norm1` stands before attention and after it. Before the part it is right; what attention returns is added as
        it is."""
        return x + norm1(attention(norm1(x)))

    def first_sum_normalized(x, attention, norm1):
        """`norm1` stands before attention, as it should, and once more after the sum. In pre-norm a sum is passed on as
        it is, and the next part has a norm of its own."""
        return norm1(x + attention(norm1(x)))

    def attention_in_post_norm_and_added(x, attention, norm1):
        """You normalize the sum of `x` and what attention returns, and add that to `x` once more. In pre-norm the norm
        is the first thing: attention reads what `norm1` returns, and one sum is enough."""
        return x + norm1(x + attention(x))

    def attention_alone(x, attention, norm1):
        """What attention returns replaces `x`, and attention reads `x` as it is: `norm1` is missing, and so is the
        first residual connection. In pre-norm, what is attention given, and what is its result added to?"""
        return attention(x)

    def attention_normalized_without_residual(x, attention, norm1):
        """What attention returns goes through `norm1` and replaces `x`. Here the norm stands before attention, and what
        attention returns is added to `x`."""
        return norm1(attention(x))

    def first_norm_for_attention(x, attention, norm1):
        """`norm1` is called, and attention is not: what you add to `x` is `x` normalized. What does the norm
        prepare?"""
        return x + norm1(x)

    def x_replaced_by_its_norm(x, attention, norm1):
        """What comes out of your first half is `x` normalized: what attention returns is lost, and nothing is added.
        What should that sum be made of?"""
        return norm1(x)

    def x_twice_in_the_first_sum(x, attention, norm1):
        """Your first sum has `x` in it twice. Does attention's result already come with `x` added, and is `x` added
        again? With parts that return zeros, `x` itself must come out."""
        return x + x + attention(norm1(x))

    def attention_subtracted(x, attention, norm1):
        """What attention returns is subtracted from `x`. A residual connection adds: which sign stands between the
        two?"""
        return x - attention(norm1(x))

    def multiplied_with_attention(x, attention, norm1):
        """You multiply `x` with what attention returns. That is how a gate works; a residual connection adds."""
        return x * attention(norm1(x))

    def first_sum_halved(x, attention, norm1):
        """You take the mean of `x` and what attention returns. A residual connection adds the two, and leaves them as
        large as they are."""
        return (x + attention(norm1(x))) / 2

    def attention_twice(x, attention, norm1):
        """Attention reads what attention has returned: it is called twice, one call in the other. How many parts does a
        block have, and how often does each come?"""
        return x + attention(attention(norm1(x)))

    def first_norm_twice(x, attention, norm1):
        """`norm1` reads what `norm1` has returned, and attention gets what was normalized twice. Once is enough. In
        which two places is it called?"""
        return x + attention(norm1(norm1(x)))

    def x_changed_in_post_norm(x, attention, norm1):
        """Your first sum is written over the caller's `x`, and the norm comes after it, as in the paper of 2017. How do
        you write a sum that makes a new tensor, and what does attention read in pre-norm?"""
        x += attention(x)
        return norm1(x)


@decoder_block.wrong(stage="second_sum")
class SecondSum:
    def feed_forward_without_residual(x, feed_forward, norm2):
        """What the feed-forward layer returns replaces `x`: the second residual connection is missing. What is it added
        to?"""
        return feed_forward(norm2(x))

    def feed_forward_without_norm(x, feed_forward, norm2):
        """The feed-forward layer reads `x` as it is: `norm2` changes nothing in your result. What stands before the
        part in pre-norm?"""
        return x + feed_forward(x)

    def feed_forward_left_out(x, feed_forward, norm2):
        """`feed_forward` changes nothing in your result. Is it called, and is what it returns added?"""
        return x

    def feed_forward_in_post_norm(x, feed_forward, norm2):
        """The norm of the feed-forward layer comes after its sum, as in the paper of 2017. Here it comes before the
        part: the layer reads what is normalized, and what it is added to has met no norm."""
        return norm2(x + feed_forward(x))

    def norm_after_feed_forward(x, feed_forward, norm2):
        """You normalize what the feed-forward layer returns, and the layer reads the sum as it is. Here `norm2`
        prepares what the layer *reads*: which call is in the other?"""
        return x + norm2(feed_forward(x))

    def second_sum_from_the_norm(x, feed_forward, norm2):
        """What the feed-forward layer's result is added to has been through `norm2`. With parts that return zeros, `x`
        itself must come out: does what is normalized have a name of its own in your function?"""
        x = norm2(x)
        return x + feed_forward(x)

    def feed_forward_between_norms(x, feed_forward, norm2):
        """`norm2` stands before the feed-forward layer and after it. Before the part it is right; what the layer
        returns is added as it is."""
        return x + norm2(feed_forward(norm2(x)))

    def feed_forward_in_post_norm_and_added(x, feed_forward, norm2):
        """You normalize the sum of the stream and what the feed-forward layer returns, and add that to the stream once
        more. In pre-norm the norm is the first thing: the layer reads what `norm2` returns, and one sum is enough."""
        return x + norm2(x + feed_forward(x))

    def feed_forward_alone(x, feed_forward, norm2):
        """What the feed-forward layer returns replaces the stream, and the layer reads it as it is: `norm2` is missing,
        and so is the second residual connection. In pre-norm, what is the layer given, and what is its result added
        to?"""
        return feed_forward(x)

    def feed_forward_normalized_without_residual(x, feed_forward, norm2):
        """What the feed-forward layer returns goes through `norm2` and replaces the stream. Here the norm stands before
        the layer, and what the layer returns is added to what came in."""
        return norm2(feed_forward(x))

    def second_norm_for_feed_forward(x, feed_forward, norm2):
        """`norm2` is called, and the feed-forward layer is not: what you add is what the norm returns. What does the
        norm prepare?"""
        return x + norm2(x)

    def sum_replaced_by_its_norm(x, feed_forward, norm2):
        """Your result is the first sum normalized: what the feed-forward layer returns is lost, and nothing is added.
        What should the second sum be made of?"""
        return norm2(x)

    def stream_twice_in_the_second_sum(x, feed_forward, norm2):
        """Your second sum has the first one in it twice. One residual connection is enough: with parts that return
        zeros, `x` itself must come out."""
        return x + x + feed_forward(norm2(x))

    def feed_forward_subtracted(x, feed_forward, norm2):
        """What the feed-forward layer returns is subtracted. A residual connection adds: which sign stands there?"""
        return x - feed_forward(norm2(x))

    def multiplied_with_feed_forward(x, feed_forward, norm2):
        """You multiply the stream with what the feed-forward layer returns. That is how a gate works; a residual
        connection adds."""
        return x * feed_forward(norm2(x))

    def second_sum_halved(x, feed_forward, norm2):
        """You take the mean of the stream and what the feed-forward layer returns. A residual connection adds the two,
        and leaves them as large as they are."""
        return (x + feed_forward(norm2(x))) / 2

    def second_norm_twice(x, feed_forward, norm2):
        """`norm2` reads what `norm2` has returned, and the feed-forward layer gets what was normalized twice. Once is
        enough. In which two places is it called?"""
        return x + feed_forward(norm2(norm2(x)))


@decoder_block.wrong
class WrongAnswers:
    def second_sum_from_the_first_input(x, attention, feed_forward, norm1, norm2):
        """Your second sum begins with the `x` that came in, so that what attention added is lost on the way. Which
        tensor did the first sum make?"""
        return x + feed_forward(norm2(x + attention(norm1(x))))

    def both_parts_read_the_input(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read the `x` that came in, side by side. GPT-J is built so; here the feed-forward layer
        reads what attention has left."""
        return x + attention(norm1(x)) + feed_forward(norm2(x))

    def post_norm(x, attention, feed_forward, norm1, norm2):
        """Each norm comes after its sum, as in the paper of 2017. In these models each norm comes before its part, and
        the part's result is added to the `x` that was not normalized."""
        x = norm1(x + attention(x))
        return norm2(x + feed_forward(x))

    def norms_after_the_parts(x, attention, feed_forward, norm1, norm2):
        """You normalize what a part returns. Here the norm prepares what the part *reads*: which call is in the
        other?"""
        x = x + norm1(attention(x))
        return x + norm2(feed_forward(x))

    def norms_exchanged(x, attention, feed_forward, norm1, norm2):
        """The two norms have changed places. Their shapes are equal, so nothing complains: which one was trained with
        attention?"""
        x = x + attention(norm2(x))
        return x + feed_forward(norm1(x))

    @family(first_norm_for_both=(0, "`norm1`", "`norm2`"), second_norm_for_both=(1, "`norm2`", "`norm1`"))
    def one_norm_for_both(used, x, attention, feed_forward, *norms):
        """You use {} for both parts: {} changes nothing in your result. Each part has a norm of its own."""
        x = x + attention(norms[used](x))
        return x + feed_forward(norms[used](x))

    def parts_exchanged(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer comes first in your block. Attention collects, and the feed-forward layer works on
        what it has collected: which comes first?"""
        x = x + feed_forward(norm2(x))
        return x + attention(norm1(x))

    def stream_through_the_norms(x, attention, feed_forward, norm1, norm2):
        """What you add to a part's result has been through the norm. With parts that return zeros, `x` itself must come
        out: what does the name `x` stand for in each line?"""
        x = norm1(x)
        x = norm2(x + attention(x))
        return x + feed_forward(x)

    def normalized_at_the_end(x, attention, feed_forward, norm1, norm2):
        """Your block normalizes what leaves it. In pre-norm only the whole stack does that, once, after its last
        block."""
        x = x + attention(norm1(x))
        return norm2(x + feed_forward(norm2(x)))

    def feed_forward_reads_attention_alone(x, attention, feed_forward, norm1, norm2):
        """All three are added at the end, but the feed-forward layer has read only what attention returned. People
        write this who take the residual connection for something that belongs to the end of a block. Each part has its
        own: what has the first sum made by the time `norm2` is called?"""
        attended = attention(norm1(x))
        return x + attended + feed_forward(norm2(attended))

    def one_residual_around_both(x, attention, feed_forward, norm1, norm2):
        """One residual connection leads around both parts: the feed-forward layer reads only what attention returned,
        and `x` is added once, at the end. How many sums does the block have, and what stands between them?"""
        return x + feed_forward(norm2(attention(norm1(x))))

    def first_norm_before_the_second(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer reads what both norms have made, one after the other. Each part has one norm: which
        one is the second part's?"""
        x = x + attention(norm1(x))
        return x + feed_forward(norm2(norm1(x)))

    def second_norm_before_the_first(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer reads what both norms have made, one after the other, `norm2` first. Each part has one
        norm: which one is the second part's?"""
        x = x + attention(norm1(x))
        return x + feed_forward(norm1(norm2(x)))

    def both_parts_read_one_norm(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read `norm1(x)`, side by side, as in GPT-J. Here the feed-forward layer reads what
        attention has left, by a norm of its own."""
        normed = norm1(x)
        return x + attention(normed) + feed_forward(normed)

    def parts_side_by_side_with_norms_exchanged(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read the `x` that came in, side by side, and each through the other's norm. Here the
        feed-forward layer reads what attention has left, through `norm2`."""
        return x + attention(norm2(x)) + feed_forward(norm1(x))

    def parts_side_by_side_without_norms(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read the `x` that came in, side by side and without a norm. Here each part has its norm in
        front, and the feed-forward layer reads what attention has left."""
        return x + attention(x) + feed_forward(x)

    def parts_and_norms_exchanged(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer comes first in your block, through `norm1`, and attention second, through `norm2`. The
        norms stand in the right order: which part comes first?"""
        x = x + feed_forward(norm1(x))
        return x + attention(norm2(x))

    def attention_in_both_halves(x, attention, feed_forward, norm1, norm2):
        """Attention stands in both halves of your block, and `feed_forward` changes nothing in your result. What is the
        second part?"""
        x = x + attention(norm1(x))
        return x + attention(norm2(x))

    def feed_forward_in_both_halves(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer stands in both halves of your block, and `attention` changes nothing in your result.
        What is the first part?"""
        x = x + feed_forward(norm1(x))
        return x + feed_forward(norm2(x))

    def normalized_by_the_first_norm_at_the_end(x, attention, feed_forward, norm1, norm2):
        """Your block sends what leaves it through `norm1`. In pre-norm only the whole stack normalizes its result,
        once, after its last block."""
        x = x + attention(norm1(x))
        return norm1(x + feed_forward(norm2(x)))

    def first_input_added_again(x, attention, feed_forward, norm1, norm2):
        """The `x` that came in is in your result twice: the first sum has it already, and the second adds it once more.
        What does the second sum begin with?"""
        after = x + attention(norm1(x))
        return x + after + feed_forward(norm2(after))

    def first_input_left_out(x, attention, feed_forward, norm1, norm2):
        """What leaves your block is what the two parts return, and the `x` that came in is missing. The feed-forward
        layer reads the first sum: what does the second sum begin with?"""
        attended = attention(norm1(x))
        return attended + feed_forward(norm2(x + attended))

    def second_sum_from_the_first_norm(x, attention, feed_forward, norm1, norm2):
        """Your second sum begins with `norm1(x)` in place of the first sum. What is added to a part's result has met no
        norm: which tensor did the first sum make?"""
        return norm1(x) + feed_forward(norm2(x + attention(norm1(x))))

    def norms_of_your_own(x, attention, feed_forward, norm1, norm2):
        """You normalize by `layer_norm`, without weights, and `norm1` and `norm2` are never called. Both are given as
        functions, with weights of their own: what do you call before each part?"""
        x = x + attention(F.layer_norm(x, x.shape[-1:]))
        return x + feed_forward(F.layer_norm(x, x.shape[-1:]))

    def x_changed_and_no_norms(x, attention, feed_forward, norm1, norm2):
        """Both sums are written over the caller's `x`, and no norm changes anything in your result. How do you write a
        sum that makes a new tensor, and what stands before each part?"""
        x += attention(x)
        x += feed_forward(x)
        return x

    def both_norms_before_attention(x, attention, feed_forward, norm1, norm2):
        """Both norms stand before attention, one after the other, and the feed-forward layer reads the sum as it is.
        Each part has a norm of its own in front of it."""
        x = x + attention(norm2(norm1(x)))
        return x + feed_forward(x)

    def feed_forward_reads_the_first_norm(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer reads `norm1(x)`, sent through `norm2`, and nothing of what attention has found. Which
        tensor did the first sum make?"""
        normed = norm1(x)
        return x + attention(normed) + feed_forward(norm2(normed))

    def attention_added_twice(x, attention, feed_forward, norm1, norm2):
        """What attention returns is in your result twice: the first sum has it already, and the second adds it once
        more. What does the second sum begin with?"""
        attended = attention(norm1(x))
        return x + 2 * attended + feed_forward(norm2(x + attended))

    def one_residual_and_one_norm(x, attention, feed_forward, norm1, norm2):
        """One residual connection leads around both parts, and `norm2` changes nothing in your result: the feed-forward
        layer reads what attention returned as it is. How many sums does the block have, and how many norms?"""
        return x + feed_forward(attention(norm1(x)))

    def norms_after_parts_side_by_side(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read the `x` that came in, side by side, and what they return is normalized. Here a norm
        stands before each part, and the feed-forward layer reads what attention has left."""
        return x + norm1(attention(x)) + norm2(feed_forward(x))

    def feed_forward_reads_the_bare_input(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer reads the `x` that came in, without a norm and without what attention has found. Which
        tensor did the first sum make, and what stands before the part?"""
        return x + attention(norm1(x)) + feed_forward(x)

    def feed_forward_reads_bare_attention(x, attention, feed_forward, norm1, norm2):
        """All three are added at the end, but the feed-forward layer has read only what attention returned, and that
        without a norm. Which tensor did the first sum make, and what stands before the part?"""
        attended = attention(norm1(x))
        return x + attended + feed_forward(attended)

    def second_sum_from_the_first_input_without_norm(x, attention, feed_forward, norm1, norm2):
        """Your second sum begins with the `x` that came in, so that what attention added is lost on the way; and the
        feed-forward layer has no norm before it. Which tensor did the first sum make?"""
        return x + feed_forward(x + attention(norm1(x)))

    def second_sum_from_the_first_input_in_post_norm(x, attention, feed_forward, norm1, norm2):
        """Your norms come after the sums, as in the paper of 2017, and the second sum begins with the `x` that came in.
        Where does each norm stand in pre-norm, and which tensor did the first sum make?"""
        return norm2(x + feed_forward(norm1(x + attention(x))))

    def norms_exchanged_after_the_parts(x, attention, feed_forward, norm1, norm2):
        """You normalize what a part returns, attention's result by `norm2` and the other by `norm1`. Here `norm1`
        prepares what attention *reads*, and `norm2` what the feed-forward layer reads: which call is in the other?"""
        x = x + norm2(attention(x))
        return x + norm1(feed_forward(x))

    def norms_exchanged_without_residuals(x, attention, feed_forward, norm1, norm2):
        """The two norms have changed places, and nothing is added: both residual connections are missing. Which norm
        was trained with attention, and what is each part's result added to?"""
        return feed_forward(norm1(attention(norm2(x))))

    def first_norm_for_both_without_residuals(x, attention, feed_forward, norm1, norm2):
        """You use `norm1` for both parts, and nothing is added: both residual connections are missing. Which norm
        belongs to the second part, and what is each part's result added to?"""
        return feed_forward(norm1(attention(norm1(x))))

    def parts_exchanged_without_residuals(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer comes first in your block, and nothing is added: both residual connections are
        missing. Which part collects what the other works on, and what is each part's result added to?"""
        return attention(norm1(feed_forward(norm2(x))))

    def parts_exchanged_in_post_norm(x, attention, feed_forward, norm1, norm2):
        """The feed-forward layer comes first in your block, and each norm comes after its sum, as in the paper of 2017.
        Which part collects what the other works on, and what does each norm prepare?"""
        x = norm1(x + feed_forward(x))
        return norm2(x + attention(x))

    def x_changed_and_parts_side_by_side(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read the `x` that came in, side by side, and a sum is written over the caller's `x`. What
        does the feed-forward layer read? And how do you write a sum that makes a new tensor?"""
        fed = feed_forward(norm2(x))
        x += attention(norm1(x))
        return x + fed

    def parts_alone_added(x, attention, feed_forward, norm1, norm2):
        """Both of your parts read the `x` that came in, and the result is what the two return, without `x`. What is
        each part's result added to, and what does the second part read?"""
        return attention(norm1(x)) + feed_forward(norm2(x))

    def norms_one_place_late(x, attention, feed_forward, norm1, norm2):
        """Each norm comes one place late: attention reads `x` as it is, the feed-forward layer reads what `norm1`
        makes, and `norm2` is the end of your block. In pre-norm, which norm stands before which part?"""
        x = x + attention(x)
        return norm2(x + feed_forward(norm1(x)))

    def post_norm_with_norms_exchanged(x, attention, feed_forward, norm1, norm2):
        """Each norm comes after its sum, as in the paper of 2017, and the two have changed places besides. Here a norm
        stands before its part: `norm1` before attention, `norm2` before the feed-forward layer."""
        x = norm2(x + attention(x))
        return norm1(x + feed_forward(x))

    def norm_not_called(x, attention, feed_forward, norm1, norm2):
        """You hand `attention` the norm itself, a function, and not what it returns. Each of the four takes a tensor:
        what is the norm to be called with?"""
        return x + attention(norm1)

    def attention_handed_to_the_norm(x, attention, feed_forward, norm1, norm2):
        """You hand `norm1` the function `attention`, and it takes a tensor. Call the two one after the other: which of
        them gets `x`?"""
        return x + norm1(attention)

    def attention_asks_for_three(x, attention, feed_forward, norm1, norm2):
        """You call `attention` with three arguments, as for query, key and value. Here it is a function of one tensor,
        and makes all three from it."""
        normed = norm1(x)
        return x + attention(normed, normed, normed)

    def norm_handed_to_attention(x, attention, feed_forward, norm1, norm2):
        """You hand `attention` two arguments. All four functions take one tensor each: call the norm, and hand on what
        it returns."""
        return x + attention(x, norm1)

    def attention_not_called(x, attention, feed_forward, norm1, norm2):
        """You add a function to `x`, and not what it returns. All four must be called: which brackets are missing?"""
        return x + attention

    def in_a_tuple(x, attention, feed_forward, norm1, norm2):
        """The result {is right, and it} comes in a list or tuple of one: brackets or a comma too many. The next block
        takes the tensor itself."""
        return (decoder_block.reference(x, attention, feed_forward, norm1, norm2),)

    def both_sums_returned(x, attention, feed_forward, norm1, norm2):
        """You return two tensors. The next block takes one: what both parts have made of `x`."""
        after = x + attention(norm1(x))
        return after + feed_forward(norm2(after)), after

    def attended_returned_too(x, attention, feed_forward, norm1, norm2):
        """You return two tensors, and the second is what attention returned. The next block takes one: what both parts
        have made of `x`."""
        attended = attention(norm1(x))
        return x + attended + feed_forward(norm2(x + attended)), attended

    def second_sum_in_place(x, attention, feed_forward, norm1, norm2):
        """{The result is right, and} training stops with an error: the second change is written into a tensor that
        `norm2` has read before. `x = x + …` makes a new tensor, and a later `x += …` writes over it. To go backwards
        through the norm, PyTorch needs the numbers as they were. Make both sums new tensors."""
        x = x + attention(norm1(x))
        x += feed_forward(norm2(x))
        return x

    def result_of_a_part_changed(x, attention, feed_forward, norm1, norm2):
        """You add to the tensor that attention returned, in place. A part may return its very input, as dropout does
        outside training, and so may a norm that is switched off: then it is `x` that has been changed, and the caller
        finds other numbers there. `+=` and names that end in an underscore write so. Make each sum a new tensor."""
        y = attention(norm1(x))
        y += x
        return y + feed_forward(norm2(y))

    def parts_exchanged_and_attention_in_post_norm(x, attention, feed_forward, norm1, norm2):
        """Two things go wrong here. The feed-forward layer comes first, and it is attention that collects what the
        layer works on. And the norm of attention comes after its sum, as in the paper of 2017; here it comes before the
        part."""
        x = x + feed_forward(norm2(x))
        return norm1(x + attention(x))

    def parts_exchanged_and_feed_forward_in_post_norm(x, attention, feed_forward, norm1, norm2):
        """Two things go wrong here. The feed-forward layer comes first, and it is attention that collects what the
        layer works on. And the norm of the layer comes after its sum, as in the paper of 2017; here it comes before the
        part."""
        x = norm2(x + feed_forward(x))
        return x + attention(norm1(x))
