"""Keys and values that several heads of queries share."""

import torch

from ..exercise import exercise


@exercise(
    inputs=lambda draw, batch=2, kv_heads=3, seq=5, d_head=4: (draw(batch, kv_heads, seq, d_head), 2 * kv_heads),
    axes={"x": "batch kv_heads seq d_head", "return": "batch heads seq d_head"},
    hints=(
        "Six heads of queries share two heads of keys. Which head of keys do the query heads 0, 1 and 2 read, and "
        "which do 3, 4 and 5?",
        "Neighbouring heads of queries share one. Each head of keys stands there as often as its group has members, "
        "before the next one comes.",
        "`x.repeat_interleave(…, dim=…)`: how often, and along which axis?",
    ),
)
def repeat_keys(x, n_heads):
    """Give each head of queries its head of keys: (batch, kv_heads, seq, d_head) to (batch, n_heads, seq, d_head)."""
    return x.repeat_interleave(n_heads // x.shape[1], dim=1)


@repeat_keys.probe(plain=True)
def one_for_all(draw):
    """one head of keys for all"""
    return draw(2, 1, 5, 4), 6


@repeat_keys.probe(plain=True)
def one_for_each(draw):
    """as many heads of keys as of queries"""
    return draw(2, 3, 5, 4), 3


@repeat_keys.probe(plain=True)
def groups_of_four(draw):
    """two groups of four"""
    return draw(1, 2, 3, 4), 8


@repeat_keys.equivalent
def by_expanding(x, n_heads):
    batch, kv_heads, seq, d_head = x.shape
    group = n_heads // kv_heads
    return x[:, :, None].expand(batch, kv_heads, group, seq, d_head).reshape(batch, n_heads, seq, d_head)


@repeat_keys.equivalent
def by_indices(x, n_heads):
    return x[:, torch.arange(n_heads, device=x.device) // (n_heads // x.shape[1])]


@repeat_keys.equivalent
def by_stacking(x, n_heads):
    group = n_heads // x.shape[1]
    return torch.stack([x[:, head // group] for head in range(n_heads)], dim=1)


@repeat_keys.equivalent
def by_repeating_the_tokens(x, n_heads):
    return x.repeat(1, 1, n_heads // x.shape[1], 1).reshape(x.shape[0], n_heads, *x.shape[2:])


@repeat_keys.mistake
def tiled(x, n_heads):
    """Your heads go 0, 1, 2, 0, 1, 2: the whole row is repeated, as `repeat` and `tile` do. Neighbours share one: 0, 0,
    1, 1, 2, 2. Nothing complains, and the model talks nonsense."""
    return x.repeat(1, n_heads // x.shape[1], 1, 1)


@repeat_keys.mistake
def as_often_as_heads(x, n_heads):
    """Each head stands there `n_heads` times. How large is a group, when `n_heads` queries share the heads of `x`?"""
    return x.repeat_interleave(n_heads, dim=1)


@repeat_keys.mistake
def repeated_along_seq(x, n_heads):
    """The tokens are repeated, and not the heads. Count the axes of (batch, kv_heads, seq, d_head): which one are the
    heads?"""
    return x.repeat_interleave(n_heads // x.shape[1], dim=2)


@repeat_keys.mistake
def repeated_along_batch(x, n_heads):
    """The sentences are repeated, and not the heads. Count the axes from 0: which one are the heads?"""
    return x.repeat_interleave(n_heads // x.shape[1], dim=0)


@repeat_keys.mistake
def repeated_along_features(x, n_heads):
    """The features are repeated, and not the heads. Count the axes from 0: which one are the heads?"""
    return x.repeat_interleave(n_heads // x.shape[1], dim=-1)


@repeat_keys.mistake
def flattened(x, n_heads):
    """No axis is named, so everything is repeated in one long row. Which argument of `repeat_interleave` names the
    axis?"""
    return x.repeat_interleave(n_heads // x.shape[1])


@repeat_keys.mistake
def features_cut_up(x, n_heads):
    """You cut the features of each head into smaller heads, as `split_heads` does. Nothing is repeated then, and each
    head has fewer features: d_head must stay."""
    return x.reshape(x.shape[0], n_heads, x.shape[2], -1)


@repeat_keys.mistake
def wrong_order_in_view(x, n_heads):
    """The repeated heads are reshaped along another order of the axes, so that tokens and heads are mixed. The axis of
    the group belongs right after that of the heads before the two are merged."""
    batch, kv_heads, seq, d_head = x.shape
    group = n_heads // kv_heads
    return x[:, :, :, None].expand(batch, kv_heads, seq, group, d_head).reshape(batch, n_heads, seq, d_head)


@repeat_keys.mistake
def first_head_for_all(x, n_heads):
    """All heads of queries get the first head of keys. That is multi-query attention; here each group has its own."""
    return x[:, :1].expand(-1, n_heads, -1, -1).clone()


@repeat_keys.mistake
def mean_for_all(x, n_heads):
    """All heads of queries get the mean of the heads of keys. No head is averaged: each group reads the one that is its
    own."""
    return x.mean(dim=1, keepdim=True).expand(-1, n_heads, -1, -1).clone()


@repeat_keys.mistake
def not_repeated(x, n_heads):
    """You return `x` with the heads that it had: nothing has been repeated. Where does `n_heads` enter?"""
    return x.clone()


@repeat_keys.mistake
def always_twice(x, n_heads):
    """Each head stands there twice, whatever `n_heads` is. How large is a group, if six queries share one head?"""
    return x.repeat_interleave(2, dim=1)


@repeat_keys.mistake
def backwards(x, n_heads):
    """Your groups run backwards: the first heads of queries get the last head of keys. Which one belongs to query 0?"""
    return x.flip(1).repeat_interleave(n_heads // x.shape[1], dim=1)


@repeat_keys.mistake
def copies_on_an_axis_of_their_own(x, n_heads):
    """The copies are right, and they have an axis to themselves: your result has five axes. `expand` needs that axis
    for a while. Afterwards heads and copies must become one axis: which two do you merge, and with which method?"""
    return x[:, :, None].expand(-1, -1, n_heads // x.shape[1], -1, -1).clone()


@repeat_keys.mistake
def copies_in_front_of_the_heads(x, n_heads):
    """The copies have an axis to themselves, in front of that of the heads: your result has five axes. Merged as they
    stand, these two give 0, 1, 2, 0, 1, 2. Where must the axis of the copies stand, so that copies of one head are
    neighbours?"""
    return x[:, None].expand(-1, n_heads // x.shape[1], -1, -1, -1).clone()


@repeat_keys.mistake
def expanded_along_the_heads(x, n_heads):
    """`expand` stretches an axis of size 1, and no other. With one head of keys it works; with several it raises,
    because it cannot know in which order you want them. Is there a method that repeats each entry of an axis? Or can
    each head get an axis of size 1 of its own?"""
    return x.expand(x.shape[0], n_heads, x.shape[2], x.shape[3])


@repeat_keys.mistake
def expanded_along_the_heads_alone(x, n_heads):
    """`expand` is told to leave the other axes as they are, and to stretch that of the heads. It stretches an axis of
    size 1, and no other: with one head of keys it works, with several it raises. Is there a method that repeats each
    entry of an axis? Or can each head get an axis of size 1 of its own?"""
    return x.expand(-1, n_heads, -1, -1)


@repeat_keys.mistake
def tiled_as_often_as_heads(x, n_heads):
    """The whole row of heads is repeated, and `n_heads` times: far too many heads, and in the order 0, 1, 2, 0, 1, 2.
    How large is a group, and in which order do its members stand?"""
    return x.repeat(1, n_heads, 1, 1)
