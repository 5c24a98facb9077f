"""A block of a language model: attention and a feed-forward layer, each in pre-norm."""

import torch

from ..ch6_normalization.residual import AXES, nothing, some_norm, some_sublayer
from ..exercise import exercise


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
        "Two parts, two norms, two sums. What does the second sum begin with: the `x` that came in, or what the first "
        "sum has made of it?",
        "Each norm stands before its part, and what is added to a part's result has met no norm. The second part reads "
        "the result of the first sum.",
        "`x = x + …(…(x))`, then once more with the other two functions",
    ),
)
def decoder_block(
    x, attention, feed_forward, norm1, norm2, *, first_sum=after_attention, second_sum=after_feed_forward
):
    """Attention, then the feed-forward layer, each in pre-norm: (batch, seq, d_model) stays."""
    return second_sum(first_sum(x, attention, norm1), feed_forward, norm2)


@decoder_block.probe(plain=True)
def silent_attention(draw):
    """attention that returns zeros"""
    x, _, feed_forward, norm1, norm2 = _block(draw)
    return x, nothing, feed_forward, norm1, norm2


@decoder_block.equivalent
def step_by_step(x, attention, feed_forward, norm1, norm2):
    residual = x
    x = attention(norm1(x))
    x = residual + x
    residual = x
    x = feed_forward(norm2(x))
    return residual + x


@decoder_block.equivalent
def by_a_loop(x, attention, feed_forward, norm1, norm2):
    for part, norm in ((attention, norm1), (feed_forward, norm2)):
        x = x + part(norm(x))
    return x


@decoder_block.property
def silent_parts_change_nothing(function, x, attention, feed_forward, norm1, norm2):
    """With parts that return zeros, `x` comes out as it went in."""
    return bool(torch.equal(function(x, nothing, nothing, norm1, norm2), x))


@decoder_block.mistake
def second_sum_from_the_first_input(x, attention, feed_forward, norm1, norm2):
    """Your second sum begins with the `x` that came in, so that what attention added is lost on the way. Which tensor
    did the first sum make?"""
    return x + feed_forward(norm2(x + attention(norm1(x))))


@decoder_block.mistake
def both_parts_read_the_input(x, attention, feed_forward, norm1, norm2):
    """Both of your parts read the `x` that came in, side by side. GPT-J is built so; here the feed-forward layer reads
    what attention has left."""
    return x + attention(norm1(x)) + feed_forward(norm2(x))


@decoder_block.mistake
def post_norm(x, attention, feed_forward, norm1, norm2):
    """Each norm comes after its sum, as in the paper of 2017. In these models it comes before the part: what is added
    to a part's result has met no norm."""
    x = norm1(x + attention(x))
    return norm2(x + feed_forward(x))


@decoder_block.mistake
def norms_after_the_parts(x, attention, feed_forward, norm1, norm2):
    """You normalize what a part returns. Here the norm prepares what the part *reads*: which call is in the other?"""
    x = x + norm1(attention(x))
    return x + norm2(feed_forward(x))


@decoder_block.mistake
def norms_exchanged(x, attention, feed_forward, norm1, norm2):
    """The two norms have changed places. Their shapes are equal, so nothing complains: which one was trained with
    attention?"""
    x = x + attention(norm2(x))
    return x + feed_forward(norm1(x))


@decoder_block.mistake
def first_norm_for_both(x, attention, feed_forward, norm1, norm2):
    """You use `norm1` for both parts: `norm2` changes nothing in your result. Each part has a norm of its own."""
    x = x + attention(norm1(x))
    return x + feed_forward(norm1(x))


@decoder_block.mistake
def second_norm_for_both(x, attention, feed_forward, norm1, norm2):
    """You use `norm2` for both parts: `norm1` changes nothing in your result. Each part has a norm of its own."""
    x = x + attention(norm2(x))
    return x + feed_forward(norm2(x))


@decoder_block.mistake
def parts_exchanged(x, attention, feed_forward, norm1, norm2):
    """The feed-forward layer comes first in your block. Attention collects, and the feed-forward layer works on what it
    has collected: which comes first?"""
    x = x + feed_forward(norm2(x))
    return x + attention(norm1(x))


@decoder_block.mistake
def stream_through_the_norms(x, attention, feed_forward, norm1, norm2):
    """What you add to a part's result has been through the norm. With parts that return zeros, `x` itself must come
    out: what does the name `x` stand for in each line?"""
    x = norm1(x)
    x = norm2(x + attention(x))
    return x + feed_forward(x)


@decoder_block.mistake(stage="first_sum")
def attention_without_residual(x, attention, norm1):
    """What attention returns replaces `x`: the first residual connection is missing. What is it added to?"""
    return attention(norm1(x))


@decoder_block.mistake(stage="second_sum")
def feed_forward_without_residual(x, feed_forward, norm2):
    """What the feed-forward layer returns replaces `x`: the second residual connection is missing. What is it added
    to?"""
    return feed_forward(norm2(x))


@decoder_block.mistake(stage="first_sum")
def attention_without_norm(x, attention, norm1):
    """Attention reads `x` as it is: `norm1` changes nothing in your result. What stands before the part in pre-norm?"""
    return x + attention(x)


@decoder_block.mistake(stage="second_sum")
def feed_forward_without_norm(x, feed_forward, norm2):
    """The feed-forward layer reads `x` as it is: `norm2` changes nothing in your result. What stands before the part in
    pre-norm?"""
    return x + feed_forward(x)


@decoder_block.mistake(stage="first_sum")
def attention_left_out(x, attention, norm1):
    """`attention` changes nothing in your result. Is it called, and is what it returns added?"""
    return x


@decoder_block.mistake(stage="second_sum")
def feed_forward_left_out(x, feed_forward, norm2):
    """`feed_forward` changes nothing in your result. Is it called, and is what it returns added?"""
    return x


@decoder_block.mistake
def normalized_at_the_end(x, attention, feed_forward, norm1, norm2):
    """Your block normalizes what leaves it. In pre-norm only the whole stack does that, once, after its last block."""
    x = x + attention(norm1(x))
    return norm2(x + feed_forward(norm2(x)))


@decoder_block.mistake
def feed_forward_reads_attention_alone(x, attention, feed_forward, norm1, norm2):
    """All three are added at the end, but the feed-forward layer has read only what attention returned. People write
    this who take the residual connection for something that belongs to the end of a block. Each part has its own: what
    has the first sum made by the time `norm2` is called?"""
    attended = attention(norm1(x))
    return x + attended + feed_forward(norm2(attended))


@decoder_block.mistake
def one_residual_around_both(x, attention, feed_forward, norm1, norm2):
    """One residual connection leads around both parts: the feed-forward layer reads only what attention returned, and
    `x` is added once, at the end. How many sums does the block have, and what stands between them?"""
    return x + feed_forward(norm2(attention(norm1(x))))


@decoder_block.mistake
def x_changed_in_place(x, attention, feed_forward, norm1, norm2):
    """The result is right, and the caller's `x` has been written over. `x += …` works in place, and so do names that
    end in an underscore. It looks like `x = x + …`: which of the two makes a new tensor?"""
    x += attention(norm1(x))
    x += feed_forward(norm2(x))
    return x


@decoder_block.mistake
def x_changed_by_the_first_sum(x, attention, feed_forward, norm1, norm2):
    """The result is right, and your first sum has been written over the caller's `x`. `x += …` works in place, and so
    do names that end in an underscore. What does your second sum do that the first does not?"""
    x += attention(norm1(x))
    return x + feed_forward(norm2(x))
