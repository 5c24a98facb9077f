"""Splitting features into heads."""

import torch

from ..exercise import exercise


def _tokens(draw, batch=2, seq=7, heads=3, d_head=5):
    return draw(batch, seq, heads * d_head), heads


@exercise(
    inputs=_tokens,
    axes={"x": "batch seq d_model", "return": "batch heads seq d_head"},
    hints=(
        "Every token's features are shared out among the heads. Which axis must be cut, and which must stay whole?",
        "Cutting the last axis in two is a `view`. Bringing `heads` before `seq` takes an operation that moves axes.",
        "`x.view(batch, seq, …, …).transpose(…, …)`",
    ),
)
def split_heads(x, n_heads):
    """Cut (batch, seq, d_model) into (batch, heads, seq, d_head)."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model // n_heads).transpose(1, 2)


@split_heads.equivalent
def split_by_slices(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


@split_heads.equivalent
def split_by_unflatten(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).movedim(-2, 1)


@split_heads.equivalent
def split_by_einsum(x, n_heads):
    return torch.einsum("bshd->bhsd", x.unflatten(-1, (n_heads, -1)))


split_heads.example("one head", heads=1)
split_heads.example("heads of one feature each", d_head=1)


@split_heads.mistake
def view_alone(x, n_heads):
    """The tensor is cut as `view` cuts it, straight into (batch, heads, seq, d_head). The shape is right and the
    numbers are scrambled: `view` never moves an axis, so a head gets some whole tokens instead of some features of
    every token, and a model with this still trains. Look at where the features of token 0 lie in memory, and where
    yours went."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, n_heads, seq, d_model // n_heads)


@split_heads.mistake
def no_transpose(x, n_heads):
    """The features are cut rightly, and `heads` stays after `seq`: your result is (batch, seq, heads, d_head). Matrix
    products work on the last two axes, so attention would compare the heads of one token with each other instead of the
    tokens of one head. One operation is missing after the cut."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model // n_heads)


@split_heads.mistake
def every_nth_feature(x, n_heads):
    """Each head gets every `n_heads`-th feature instead of a block of neighbours: the last axis is cut as (d_head,
    heads). A model trained from scratch would not mind; weights from anywhere else would be read in the wrong order.
    Look at the order of the last two sizes where you cut."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, d_model // n_heads, n_heads).permute(0, 3, 1, 2)


@split_heads.mistake
def heads_before_batch(x, n_heads):
    """Your result is (heads, batch, seq, d_head): the heads come first of all. That is what stacking slices along axis
    0 gives, or a `permute` that begins with the wrong axis. Everything that comes later expects `batch` first."""
    return torch.stack(x.chunk(n_heads, dim=-1), dim=0)


@split_heads.mistake
def features_before_seq(x, n_heads):
    """Your result is (batch, heads, d_head, seq): one exchange too many, or the wrong two axes. Keys are needed like
    that inside the product with the queries, and are turned there; splitting leaves a token's features last."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model // n_heads).permute(0, 2, 3, 1)


@split_heads.mistake
def n_heads_taken_for_d_head(x, n_heads):
    """`n_heads` is used as the number of features of a head: your result has d_model / n_heads heads with n_heads
    features each. The argument says how many heads there are; the features of one follow from it."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, d_model // n_heads, n_heads).transpose(1, 2)


@split_heads.mistake
def turned_and_cut_anew(x, n_heads):
    """Tokens and features have changed places, and the tensor was then cut into (batch, heads, seq, d_head), all at
    once. The shape is right and the numbers are scrambled: after the exchange the tokens vary fastest, so the last axis
    holds one feature of several tokens. What must be cut first, while a token's features still lie side by side?"""
    batch, seq, d_model = x.shape
    return x.transpose(1, 2).reshape(batch, n_heads, seq, d_model // n_heads)


@split_heads.mistake
def batch_and_seq_exchanged(x, n_heads):
    """Your result is (seq, batch, heads, d_head): the first two axes have changed places, and not the two in the
    middle. Axes are counted from 0, and the batch is number 0. Which two numbers do `seq` and `heads` have after the
    cut?"""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model // n_heads).transpose(0, 1)


@split_heads.mistake
def heads_folded_into_the_batch(x, n_heads):
    """Your result is (batch · heads, seq, d_head): the heads are there, and share an axis with the batch. Programs for
    `torch.bmm` fold them so, and must take them apart again later. Here, `heads` stays an axis of its own."""
    return split_heads.reference(x, n_heads).flatten(0, 1)


@split_heads.mistake
def a_list_of_heads(x, n_heads):
    """Your function returns the heads one by one, as a tuple or a list. Each of them may be right. One tensor can do
    the same for all heads at once, without a loop: how do several tensors of one shape become one, with a new axis for
    `heads` after `batch`?"""
    return x.chunk(n_heads, dim=-1)


@split_heads.mistake
def float_size_for_view(x, n_heads):
    """The features of a head are counted with `/`, which gives a float in Python even where nothing is left over, and a
    size must be a whole number. `//` divides whole numbers and gives one."""
    batch, seq, d_model = x.shape
    return x.view(batch, seq, n_heads, d_model / n_heads).transpose(1, 2)


@split_heads.mistake
def all_features_for_view(x, n_heads):
    """Each head is to have all d_model features, and PyTorch refuses: there are not so many numbers. The heads share
    the features of a token. How many does one head get?"""
    batch, seq, d_model = x.shape
    return x.view(batch, seq, n_heads, d_model).transpose(1, 2)


@split_heads.mistake
def float_size_for_reshape(x, n_heads):
    """The features of a head are counted with `/`, which gives a float in Python even where nothing is left over, and a
    size must be a whole number. `//` divides whole numbers and gives one."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model / n_heads).transpose(1, 2)


@split_heads.mistake
def all_features_for_reshape(x, n_heads):
    """Each head is to have all d_model features, and PyTorch refuses: there are not so many numbers. The heads share
    the features of a token. How many does one head get?"""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model).transpose(1, 2)


@split_heads.mistake
def heads_last(x, n_heads):
    """Your result is (batch, seq, d_head, heads): the heads come last of all. That is what stacking slices along the
    last axis gives, or an exchange of the last two axes. `heads` belongs after `batch`."""
    return torch.stack(x.chunk(n_heads, dim=-1), dim=-1)


@split_heads.mistake
def seq_and_features_exchanged(x, n_heads):
    """Your result is (batch, d_head, heads, seq): `seq` and the features have changed places, and not `seq` and
    `heads`. Axes are counted from 0. Which two numbers do `seq` and `heads` have after the cut?"""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 3)


@split_heads.mistake
def features_in_place_of_heads(x, n_heads):
    """Your result is (batch, d_head, seq, heads): the features of a head stand where the heads should, and the heads
    last. Look at the order of the two sizes that you cut the last axis into, and at which of them is moved."""
    return x.unflatten(-1, (n_heads, -1)).permute(0, 3, 1, 2)


@split_heads.mistake
def cut_in_the_other_order_then_exchanged(x, n_heads):
    """The tensor is cut straight into (batch, heads, seq, d_head), and then `heads` and `seq` change places: your
    result is (batch, seq, heads, d_head), and its numbers are scrambled. `seq` must stay whole while the last axis is
    cut: write `seq` first in the cut, and move axes only afterwards."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, n_heads, seq, d_model // n_heads).transpose(1, 2)


@split_heads.property
def a_head_sees_its_features(function, x, n_heads):
    """Head 0 holds the first d_model / n_heads features of every token."""
    width = x.shape[-1] // n_heads
    return torch.equal(function(x, n_heads)[:, 0], x[..., :width])
