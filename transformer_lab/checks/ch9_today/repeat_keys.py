"""Keys and values that several query heads share."""

import torch

from ..exercise import exercise, family, rows_of


def group_size(x, n_heads):
    """Count the query heads that share one key head."""
    return n_heads // x.shape[1]


def copies_side_by_side(x, group):
    """Put the copies of each head side by side."""
    return x.repeat_interleave(group, dim=1)


@exercise(
    inputs=lambda draw, batch=2, kv_heads=3, seq=5, d_head=4: (draw(batch, kv_heads, seq, d_head), 2 * kv_heads),
    axes={"x": "batch kv_heads seq d_head", "return": "batch heads seq d_head"},
    hints=(
        "Six query heads share two key heads. Which key head do the query heads 0, 1 and 2 read, and which key head do "
        "the query heads 3, 4 and 5 read?",
        "Neighbouring query heads share one key head. So repeat each key head, once for each query head "
        "of its group, before the next key head begins.",
        "`x.repeat_interleave(…, dim=…)`: how many times, and along which axis?",
    ),
)
def repeat_keys(x, n_heads, *, group=group_size, copies=copies_side_by_side):
    """Give each query head a copy of its key head; the result has shape (batch, n_heads, seq, d_head)."""
    return copies(x, group(x, n_heads))


repeat_keys.example("one key head for all", lambda draw: (draw(2, 1, 5, 4), 6), plain=True)
repeat_keys.example("as many key heads as query heads", lambda draw: (draw(2, 3, 5, 4), 3), plain=True)
repeat_keys.example("two groups of four", lambda draw: (draw(1, 2, 3, 4), 8), plain=True)
repeat_keys.example("two groups of six", lambda draw: (draw(2, 2, 3, 4), 12), plain=True)


@repeat_keys.right
class RightAnswers:
    def by_expanding(x, n_heads):
        batch, kv_heads, seq, d_head = x.shape
        group = n_heads // kv_heads
        return x[:, :, None].expand(batch, kv_heads, group, seq, d_head).reshape(batch, n_heads, seq, d_head)

    def by_indices(x, n_heads):
        return x[:, torch.arange(n_heads, device=x.device) // (n_heads // x.shape[1])]

    def by_stacking(x, n_heads):
        group = n_heads // x.shape[1]
        return torch.stack([x[:, head // group] for head in range(n_heads)], dim=1)

    def by_repeating_the_tokens(x, n_heads):
        return x.repeat(1, 1, n_heads // x.shape[1], 1).reshape(x.shape[0], n_heads, *x.shape[2:])


@repeat_keys.wrong(stage="group")
class Group:
    def as_often_as_heads(x, n_heads):
        """Each head is copied `n_heads` times. How large is a group, when `n_heads` query heads share the heads of
        `x`?"""
        return n_heads

    def as_often_as_heads_of_keys(x, n_heads):
        """Each head is copied as often as there are key heads, whatever `n_heads` is. If six query heads share one key
        head, you copy it only once. How many query heads share one key head?"""
        return x.shape[1]

    @family(
        divided_by_the_batch=(0, "sentences: `x.shape[0]` is the batch. Count the axes of `x` from 0: which"),
        divided_by_the_tokens=(2, "tokens: axis 2 of (batch, kv_heads, seq, d_head) is seq. Which"),
        divided_by_the_features=(-1, "features: the last axis of (batch, kv_heads, seq, d_head) is d_head. Which"),
    )
    def divided_by_another_axis(axis, x, n_heads):
        """You divide `n_heads` by the number of {} axis counts the key heads?"""
        return n_heads // x.shape[axis]

    @family(always_twice=(2, "twice"), always_three_times=(3, "three times"), always_four_times=(4, "four times"))
    def always(n_copies, x, n_heads):
        """Each head is copied {}, whatever `n_heads` is. How large is a group, if six query heads share one key
        head?"""
        return n_copies

    def difference(x, n_heads):
        """Your number of copies is a difference, `n_heads` minus the number of key heads, which says how many heads are
        missing in all. How many query heads share *one* of the key heads?"""
        return n_heads - x.shape[1]

    def one_copy_too_many(x, n_heads):
        """Each head is copied once too often. A group of two needs the head twice, the original included: do you add 1
        for the original to a number that already includes it?"""
        return n_heads // x.shape[1] + 1

    def one_copy_too_few(x, n_heads):
        """There is one copy too few of each head: your count leaves out the original. How many copies does a group of
        query heads need, the original included?"""
        return n_heads // x.shape[1] - 1


@repeat_keys.wrong(stage="group", alone=True)
class GroupAlone:
    def division_upside_down(x, n_heads):
        """Your division is upside down: there are more query heads than key heads, so the quotient in whole numbers is
        0, and no head is left. How many query heads share one key head?"""
        return x.shape[1] // n_heads

    def remainder(x, n_heads):
        """You take the remainder of `n_heads` divided by the number of key heads, `%`, which is always 0 here: no head
        is copied even once. Which operator computes the quotient?"""
        return n_heads % x.shape[1]

    @family(
        always_two_of_keys=lambda kv_heads, n_heads: n_heads // 2,
        always_three_of_keys=lambda kv_heads, n_heads: n_heads // 3,
        always_four_of_keys=lambda kv_heads, n_heads: n_heads // 4,
        always_six_of_queries=lambda kv_heads, n_heads: 6 // kv_heads,
        always_eight_of_queries=lambda kv_heads, n_heads: 8 // kv_heads,
        always_nine_of_queries=lambda kv_heads, n_heads: 9 // kv_heads,
    )
    def heads_fixed(group, x, n_heads):
        """Your code fixes one of the two numbers of heads, such as the 9 or the 3 of SmolLM2. Both numbers differ from
        model to model: `n_heads` is an argument, and the key heads are an axis of `x`."""
        return group(x.shape[1], n_heads)


@repeat_keys.wrong(stage="copies")
class Copies:
    def tiled(x, group):
        """Your heads come in the order 0, 1, 2, 0, 1, 2 if there are three heads: you repeat the whole row of heads, as
        `repeat` and `tile` do. Neighbouring query heads share one key head: 0, 0, 1, 1, 2, 2. Nothing raises an error,
        but the model writes nonsense."""
        return x.repeat(1, group, 1, 1)

    def repeated_along_seq(x, group):
        """You repeat the tokens instead of the heads. Count the axes of (batch, kv_heads, seq, d_head): which axis
        counts the heads?"""
        return x.repeat_interleave(group, dim=2)

    def repeated_along_batch(x, group):
        """You repeat the sentences instead of the heads. Count the axes from 0: which axis counts the heads?"""
        return x.repeat_interleave(group, dim=0)

    def repeated_along_features(x, group):
        """You repeat the features instead of the heads. Count the axes from 0: which axis counts the heads?"""
        return x.repeat_interleave(group, dim=-1)

    def tiled_along_seq(x, group):
        """You join copies of the whole text along the axis of the tokens, and the number of heads stays the same. Count
        the axes of (batch, kv_heads, seq, d_head): which axis counts the heads? And the copies of a head belong side by
        side."""
        return x.repeat(1, 1, group, 1)

    def tiled_along_batch(x, group):
        """You repeat the whole batch, as `cat` or `repeat` along axis 0 does, and the number of heads stays the same.
        Which axis counts the heads? And the copies of a head belong side by side."""
        return x.repeat(group, 1, 1, 1)

    def tiled_along_features(x, group):
        """You repeat each vector along its features, and the number of heads stays the same. Which axis counts the
        heads? And the copies of a head belong side by side."""
        return x.repeat(1, 1, 1, group)

    def flattened(x, group):
        """You pass no axis, so everything is repeated in one long row. Which argument of `repeat_interleave` names the
        axis?"""
        return x.repeat_interleave(group)

    def wrong_order_in_view(x, group):
        """You reshape the repeated heads with their axes in the wrong order, so tokens and heads are mixed. Before you
        call `reshape`, the axis of the group must come right after the axis of the heads."""
        batch, kv_heads, seq, d_head = x.shape
        return x.repeat_interleave(group, dim=2).reshape(batch, kv_heads * group, seq, d_head)

    def features_mixed_in_view(x, group):
        """You copy single numbers, one beside the other, and then reshape them into heads, so the numbers of a head are
        mixed. `reshape` never moves an axis: before you call it, the axis of the copies must come right after the axis
        of the heads."""
        batch, kv_heads, seq, d_head = x.shape
        return x.repeat_interleave(group, dim=3).reshape(batch, kv_heads * group, seq, d_head)

    def sentences_mixed_in_view(x, group):
        """You concatenate copies of the whole batch, and then reshape them into heads: a sentence gets heads of a
        different sentence. `reshape` never moves an axis: where must the axis of the copies be before you call it?"""
        return x.repeat(group, 1, 1, 1).reshape(x.shape[0], -1, *x.shape[2:])

    def backwards(x, group):
        """Your groups are in reverse order: the first query heads get the last key head. Which key head belongs to
        query head 0?"""
        return x.flip(1).repeat_interleave(group, dim=1)

    def zeros_for_the_copies(x, group):
        """Only one head of each group is filled, and the others are zeros. A place in a tensor made by `zeros` stays 0
        until you write to it: how many places does each key head fill?"""
        return torch.stack([x, *[torch.zeros_like(x)] * (group - 1)], dim=2).flatten(1, 2)

    def first_group_alone(x, group):
        """You return the copies of the first head alone. The cause is either a `return` inside a loop, which ends the
        function in the first iteration, or an index that is always 0. Where do you copy the other heads?"""
        return x[:, :1].repeat_interleave(group, dim=1)

    def last_group_alone(x, group):
        """You return only the copies of the last head. A loop that assigns the result of each round to the same name
        keeps only the last result: how can you collect all of them?"""
        return x[:, -1:].repeat_interleave(group, dim=1)

    def mean_for_all(x, group):
        """All query heads get the mean of the key heads. Heads are not averaged: each group has its own head."""
        return x.mean(dim=1, keepdim=True).repeat(1, group * x.shape[1], 1, 1)

    def divided_by_the_group(x, group):
        """You divide the copies by their number. A copy has the numbers of the original: sharing a key head does not
        change the numbers that a query head reads."""
        return x.repeat_interleave(group, dim=1) / max(group, 1)

    def not_repeated(x, group):
        """You return `x` with the heads that it had: nothing has been repeated. Where do you use `n_heads`?"""
        return x.clone()

    def chunks_tiled(x, group):
        """You cut the heads into as many pieces as a group has members, and repeat each piece as a whole: the heads of
        a piece alternate, 0, 1, 0, 1. Which heads make up one group?"""
        return torch.cat([piece.repeat(1, group, 1, 1) for piece in x.chunk(max(group, 1), dim=1)], dim=1)

    def copies_on_an_axis_of_their_own(x, group):
        """The copies {are right, and they} have their own axis: your result has five axes. `expand` needs this axis,
        but afterwards heads and copies must become one axis: which two axes do you merge, and with which method?"""
        return x[:, :, None].repeat(1, 1, group, 1, 1)

    def copies_in_front_of_the_heads(x, group):
        """The copies have a separate axis, in front of the axis of the heads: your result has five axes. Merged in this
        order, the two axes would give 0, 1, 2, 0, 1, 2. Where must the axis of the copies be, so that copies of one
        head are neighbours?"""
        return x[:, None].repeat(1, group, 1, 1, 1)

    def copies_in_front_of_all(x, group):
        """The copies of `x` are on a new first axis, where `stack` puts them: your result has five axes. Where must the
        axis of the copies be, and with which axis must you merge it?"""
        return x.repeat(group, 1, 1, 1, 1)

    def copies_after_the_tokens(x, group):
        """The copies have a separate axis, after the axis of the tokens: your result has five axes. To become heads,
        the copies must be on an axis right after the axis of the heads; then you can merge these two axes."""
        return x[:, :, :, None].repeat(1, 1, 1, group, 1)

    def heads_merged_with_the_batch(x, group):
        """Heads and batch are merged into one axis: `flatten(0, 1)` joins the first two. When the copies have their own
        axis, count the axes from 0: which two axes must become one?"""
        return x[:, :, None].repeat(1, 1, group, 1, 1).flatten(0, 1)

    def heads_in_front(x, group):
        """The heads {are right, but they} come in front of the batch: `torch.stack` puts them on a new first axis
        unless you pass a different `dim`. Which axis must they be on?"""
        return x.repeat_interleave(group, dim=1).transpose(0, 1)

    def tokens_before_heads(x, group):
        """{The heads are right, and} tokens and heads have changed places: (batch, seq, n_heads, d_head). The task asks
        for the shape (batch, n_heads, seq, d_head). Which of your steps moves the axes?"""
        return x.repeat_interleave(group, dim=1).transpose(1, 2)

    def tokens_and_features_exchanged(x, group):
        """{The heads are right, and} tokens and features have changed places, as in the transposed keys from which
        scores are computed. Here the last two axes stay (seq, d_head)."""
        return x.repeat_interleave(group, dim=1).mT

    def reshaped_for_transposed(x, group):
        """The copies were right, but then you reshaped them to (batch, seq, n_heads, d_head). `reshape` moves no axis,
        so tokens and heads are mixed. The task asks for the shape (batch, n_heads, seq, d_head)."""
        batch, kv_heads, seq, d_head = x.shape
        return x.repeat_interleave(group, dim=1).reshape(batch, seq, kv_heads * group, d_head)

    def heads_joined_along_the_batch(x, group):
        """The copies are joined along the batch: (n_heads · batch, 1, seq, d_head). `cat` joins along axis 0 unless you
        pass a `dim`: which axis counts the heads?"""
        return x.repeat_interleave(group, dim=1).transpose(0, 1).flatten(0, 1)[:, None]

    def heads_last(x, group):
        """The heads {are right, and they} are on the last axis: (batch, seq, d_head, n_heads). The task asks for the
        shape (batch, n_heads, seq, d_head). On which axis do you stack them?"""
        return x.repeat_interleave(group, dim=1).movedim(1, -1)

    def heads_merged_into_the_tokens(x, group):
        """The copies are joined along the tokens: (batch, n_heads · seq, d_head), three axes. An index removes the axis
        of the heads, and `cat` adds none. Which function joins tensors along a new axis?"""
        return x.repeat_interleave(group, dim=1).flatten(1, 2)

    def heads_merged_into_the_batch(x, group):
        """The copies are joined along the batch: (n_heads · batch, seq, d_head), three axes. An index removes the axis
        of the heads, and `cat` adds none. Which function joins tensors along a new axis?"""
        return x.repeat_interleave(group, dim=1).transpose(0, 1).flatten(0, 1)

    def heads_merged_into_the_features(x, group):
        """The heads are merged into one long vector for each token: (batch, seq, n_heads · d_head), as after attention.
        Here the heads must stay separate, on axis 1. Which step merges them?"""
        return x.repeat_interleave(group, dim=1).transpose(1, 2).flatten(2)


@repeat_keys.wrong(stage="copies", alone=True)
class CopiesAlone:
    def copies_after_the_originals(x, group):
        """Your result contains each key head once, and all further copies after them. Neighbouring query heads share
        one key head: 0, 0, 1, 1, 2, 2. Where does the second copy of head 0 belong?"""
        return torch.cat([x, x.repeat_interleave(max(group - 1, 0), dim=1)], dim=1)

    def first_head_for_all(x, group):
        """All query heads get the first key head. That is multi-query attention; here each group has its own key
        head."""
        return x[:, :1].repeat(1, group * x.shape[1], 1, 1)

    def last_head_for_all(x, group):
        """All query heads get the last key head. Each group has its own key head: which one does query head 0 read?"""
        return x[:, -1:].repeat(1, group * x.shape[1], 1, 1)

    def view_of_copies(x, group):
        """`view` raises an error: the tensor that `expand` returns has each head only once in memory, so heads and
        copies cannot be merged into one axis without copying numbers. Which method copies numbers if necessary?"""
        batch, kv_heads, seq, d_head = x.shape
        return x[:, :, None].expand(-1, -1, group, -1, -1).view(batch, kv_heads * group, seq, d_head)

    @family(sentences_for_heads=1, sentences_for_heads_in_front=0)
    def sentences_for_heads(axis, x, group):
        """You select sentences instead of heads: `x[h]` selects index h on the first axis, which is the batch. How do
        you select an index on the second axis?"""
        return torch.stack([x[head] for head in range(x.shape[1]) for _ in range(group)], dim=axis)

    def indices_of_sentences(x, group):
        """You select sentences instead of heads: your indices are on the first axis, which is the batch. How do you
        select indices on the second axis?"""
        return x[torch.arange(x.shape[1]).repeat_interleave(group)]

    def indices_of_tokens(x, group):
        """You select tokens instead of heads: your indices are on axis 2, which is seq. Count the axes of (batch,
        kv_heads, seq, d_head) from 0."""
        return x[:, :, torch.arange(x.shape[1]).repeat_interleave(group)]

    def repeat_with_dim(x, group):
        """`x.repeat` has no argument `dim`: it needs a number for every axis, and would tile the row of heads, 0, 1, 2,
        0, 1, 2. A method with a longer name has this argument, and repeats each entry before the next one."""
        return x.repeat(group, dim=1)

    def repeat_for_too_few_axes(x, group):
        """`x.repeat` needs a number for every axis of `x`, but you pass fewer. And it would tile the row of heads, 0,
        1, 2, 0, 1, 2: which method repeats each entry of one axis?"""
        return x.repeat(1, group)

    def repeat_of_torch(x, group):
        """PyTorch has no function `torch.repeat`. A method of that name tiles the row of heads, 0, 1, 2, 0, 1, 2. A
        function with a longer name repeats each entry before the next one."""
        return torch.repeat(x, group)


@repeat_keys.wrong
class Order:
    """Heads in the wrong order, or on the wrong axis."""

    def features_cut_up(x, n_heads):
        """You cut the features of each head into smaller heads, as `split_heads` does. Then nothing is repeated, and
        each head has fewer features, but d_head must stay the same."""
        return x.reshape(x.shape[0], n_heads, x.shape[2], -1)

    def last_head_for_the_rest(x, n_heads):
        """Your result contains each key head once, and copies of the last head in all remaining places. All groups have
        the same size: where do the copies of head 0 belong?"""
        return x[:, torch.arange(n_heads).clamp(max=x.shape[1] - 1)]

    def slices_overlap(x, n_heads):
        """The places that you fill for one head overlap those of the next: `h : h + group` begins one place later for
        each head, but a group has several places. At which place does the group of head h begin?"""
        group = n_heads // x.shape[1]
        heads = x.new_zeros(x.shape[0], n_heads, *x.shape[2:])
        for head in range(x.shape[1]):
            heads[:, head : head + group] = x[:, head : head + 1]
        return heads

    def last_query_left_out(x, n_heads):
        """The last query head gets no copy: there is one head too few. Does a `range` or a slice end too early?"""
        return repeat_keys.reference(x, n_heads)[:, :-1]

    def last_query_left_at_zero(x, n_heads):
        """The last query head reads zeros: its place exists, but you write nothing to it. Does a `range` end too
        early?"""
        heads = repeat_keys.reference(x, n_heads)
        return torch.cat([heads[:, :-1], torch.zeros_like(heads[:, -1:])], dim=1)

    def zeros_for_the_rest(x, n_heads):
        """Your result contains each key head once, and zeros in the places after them. Each query head needs a key head
        to read: where do the copies belong?"""
        return torch.cat([x, x.new_zeros(x.shape[0], n_heads - x.shape[1], *x.shape[2:])], dim=1)


@repeat_keys.wrong
class ShapeOfTheResult:
    """The copies are right, but the result has the wrong shape."""

    def list_of_heads_with_their_axis(x, n_heads):
        """You return a list of heads, each (batch, 1, seq, d_head), instead of one tensor. These tensors already have
        an axis for the heads: which function joins tensors along such an axis?"""
        return list(repeat_keys.reference(x, n_heads).split(1, dim=1))

    def pair_returned(x, n_heads):
        """You return a pair: the copies, twice, as for keys and values. The function is called once for keys and once
        for values, and returns one tensor each time."""
        copies = repeat_keys.reference(x, n_heads)
        return copies, copies


@repeat_keys.wrong
class RaisingCalls:
    """Calls for which PyTorch raises an error."""

    def expanded_along_the_heads(x, n_heads):
        """`expand` stretches only an axis of size 1. With one key head it works; with several heads it raises an error,
        because it cannot know in which order you want the copies. Is there a method that repeats each entry of an axis?
        Or can each head get its own axis of size 1?"""
        return x.expand(x.shape[0], n_heads, x.shape[2], x.shape[3])

    def expanded_along_the_heads_alone(x, n_heads):
        """You tell `expand` to leave the other axes as they are, and to stretch the axis of the heads. `expand`
        stretches only an axis of size 1: with one key head it works, but with several it raises an error. Is there a
        method that repeats each entry of an axis? Or can each head get its own axis of size 1?"""
        return x.expand(-1, n_heads, -1, -1)

    def room_for_the_old_heads_only(x, n_heads):
        """You write into a tensor with the shape of `x`, which has only as many heads as there are key heads, so there
        is no place for the next query head. Which shape must your tensor have?"""
        heads = torch.empty_like(x)
        for head in range(n_heads):
            heads[:, head] = x[:, head // (n_heads // x.shape[1])]
        return heads

    def assertion_of_ones_own(x, n_heads):
        """Your own `assert` rejects what the task allows: `n_heads` is a multiple of the number of key heads, not the
        reverse. Try it with 3 and 6."""
        assert x.shape[1] % n_heads == 0
        return repeat_keys.reference(x, n_heads)

    def heads_read_from_the_tokens(x, n_heads):
        """You treat `x` as (batch, seq, heads, d_head), and the reshape at the end raises an error. The order here is
        (batch, kv_heads, seq, d_head): which size does each of your names hold?"""
        batch, seq, heads, d_head = x.shape
        group = n_heads // heads
        return x[:, :, :, None].expand(batch, seq, heads, group, d_head).reshape(batch, seq, n_heads, d_head)

    @family(
        reshaped_without_copies=(torch.Tensor.reshape, "reshape `x` to"),
        viewed_without_copies=(torch.Tensor.view, "view `x` with"),
    )
    def no_copies(cut, x, n_heads):
        """You {} more heads, but `x` has too few numbers for that: `view` and `reshape` never repeat a number. Which
        method makes copies?"""
        return cut(x, x.shape[0], n_heads, x.shape[2], x.shape[3])

    def as_often_as_heads_and_reshaped(x, n_heads):
        """Each head is copied `n_heads` times, too many times for the shape in your `reshape`. How large is a group,
        when `n_heads` query heads share the heads of `x`?"""
        return x.repeat_interleave(n_heads, dim=1).reshape(x.shape[0], n_heads, x.shape[2], x.shape[3])

    def first_sentence_tiled(x, n_heads):
        """Two things go wrong here. Every sentence gets the keys of the first sentence: which axis of (batch, kv_heads,
        seq, d_head) does `x[0]` remove? And your heads come in the order 0, 1, 2, 0, 1, 2, but neighbouring query heads
        share one key head: 0, 0, 1, 1, 2, 2."""
        return Copies.tiled(x[:1].expand_as(x), n_heads // x.shape[1])

    @family(
        float_copies=lambda x, group: x.repeat_interleave(group, dim=1),
        float_copies_in_order=lambda x, group: x.repeat_interleave(group, 1),
        float_copies_by_torch=lambda x, group: torch.repeat_interleave(x, group, dim=1),
        float_repeats=lambda x, group: x.repeat(1, group, 1, 1),
        float_list=lambda x, group: [x] * group,
        float_range=lambda x, group: range(group),
        float_expand=lambda x, group: x[:, :, None].expand(-1, -1, group, -1, -1),
        float_index=lambda x, group: x[:, 0 // group],
        float_indices=lambda x, group: x[:, torch.arange(round(group * x.shape[1])) // group],
    )
    def counted_in_floats(repeat, x, n_heads):
        """Your number of copies is a float: `/` returns a float even if there is no remainder, and PyTorch does not
        accept 2.0 as a number of copies. Which operator divides whole numbers?"""
        return repeat(x, n_heads / x.shape[1])


class Indices:
    """Wrong indices of the key head that query head ``head`` reads."""

    def divided_by_the_heads_of_keys(head, kv_heads, group):
        """Query head h reads key head h // kv_heads: you divide by the number of key heads. With 2 key heads and 6
        query heads, query head 5 would read key head 2, which does not exist. How many neighbouring query heads share
        one key head?"""
        return head // kv_heads

    def modulo_the_group(head, kv_heads, group):
        """Query head h reads key head h % group, so neighbouring query heads read different key heads. If a group has
        more query heads than there are key heads, some of these indices are out of range. Neighbouring query heads
        share one key head: which operation turns 0, 1, 2, 3 into 0, 0, 1, 1?"""
        return head % group

    def one_index_further(head, kv_heads, group):
        """Your groups begin one query head too early: the first group has one query head too few, and the last one
        reads a key head that does not exist. Count query heads from 0: which key head does each of them read?"""
        return (head + 1) // group

    def as_many_as_queries(head, kv_heads, group):
        """Query head h reads key head h, and there are fewer key heads than query heads: soon the index is out of
        range. Which query heads share key head 0?"""
        return head

    def times_the_group(head, kv_heads, group):
        """You multiply the number of a query head by the size of a group, so the later query heads read key heads that
        do not exist. Several query heads share one key head: is the number of a key head larger than the numbers of its
        query heads, or smaller?"""
        return head * group


@repeat_keys.wrong
class Picked:
    """Heads selected by index: if an index is out of range, a tensor of indices and a loop raise an error at different
    operations."""

    @family(**rows_of(Indices))
    def at_once(index, x, n_heads):
        return x[:, index(torch.arange(n_heads), x.shape[1], n_heads // x.shape[1])]

    @family(**rows_of(Indices, "{}_in_a_loop"))
    def in_a_loop(index, x, n_heads):
        indices = index(torch.arange(n_heads), x.shape[1], n_heads // x.shape[1])
        return torch.stack([x[:, head] for head in indices.tolist()], dim=1)


@repeat_keys.mistake_around
def first_sentence_for_all(function):
    """Every sentence gets the keys of the first sentence. An index such as `x[0]` selects one sentence of the batch,
    and `expand` or broadcasting hides that the others are missing. Which axis of (batch, kv_heads, seq, d_head) does
    `x[0]` remove?"""
    return lambda x, n_heads: function(x[:1].expand_as(x), n_heads)
