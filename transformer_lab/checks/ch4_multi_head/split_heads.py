"""Splitting features into heads."""

import torch

from ..exercise import exercise, family, ways


def _inputs(draw, batch=2, seq=7, heads=3, d_head=5):
    return draw(batch, seq, heads * d_head), heads


@exercise(
    inputs=_inputs,
    axes={"x": "batch seq d_model", "return": "batch heads seq d_head"},
    hints=(
        "Every token's features are divided among the heads. Which axis must be split, and which must stay whole?",
        "A `view` splits the last axis in two. To bring `heads` before `seq`, you need an operation that moves axes.",
        "`x.view(batch, seq, …, …).transpose(…, …)`",
    ),
)
def split_heads(x, n_heads):
    """Split the features into heads: (batch, seq, d_model) becomes (batch, heads, seq, d_head)."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model // n_heads).transpose(1, 2)


@split_heads.right
class RightAnswers:
    def split_by_slices(x, n_heads):
        return torch.stack(x.chunk(n_heads, dim=-1), dim=1)

    def split_by_unflatten(x, n_heads):
        return x.unflatten(-1, (n_heads, -1)).movedim(-2, 1)

    def split_by_einsum(x, n_heads):
        return torch.einsum("bshd->bhsd", x.unflatten(-1, (n_heads, -1)))


split_heads.example("one head", heads=1)
split_heads.example("heads of one feature each", d_head=1)


@split_heads.property
def head_0_holds_the_first_features(function, x, n_heads):
    """Head 0 holds the first d_model / n_heads features of every token."""
    width = x.shape[-1] // n_heads
    return torch.equal(function(x, n_heads)[:, 0], x[..., :width])


AXES_AFTER_THE_SPLIT = ("batch", "seq", "heads", "d_head")


@split_heads.wrong
class Axes:
    def no_transpose(x, n_heads):
        """You split the features correctly, but `heads` stays after `seq`: your result is (batch, seq, heads, d_head).
        Matrix products work on the last two axes, so attention would compare the heads of one token with each other
        instead of the tokens of one head. One operation is missing after the split."""
        batch, seq, d_model = x.shape
        return x.reshape(batch, seq, n_heads, d_model // n_heads)

    @family(
        heads_before_batch=(
            "heads, batch, seq, d_head",
            "({}): the heads come first. You get this shape if you stack slices along axis 0, or use a `permute` that "
            "begins with the wrong axis. All later steps expect `batch` first.",
        ),
        features_before_seq=(
            "batch, heads, d_head, seq",
            "({}): you exchange axes once too often, or exchange the wrong two axes. Attention transposes the keys "
            "in this way for their product with the queries, but the split leaves a token's features last.",
        ),
        batch_and_seq_exchanged=(
            "seq, batch, heads, d_head",
            "({}): you exchanged the first two axes, not the two in the middle. Axes are counted from 0, and "
            "the batch is number 0. Which two numbers do `seq` and `heads` have after the split?",
        ),
        heads_last=(
            "batch, seq, d_head, heads",
            "({}): the heads come last. You get this shape if you stack slices along the last axis, or exchange the "
            "last two axes. `heads` belongs after `batch`.",
        ),
        seq_and_features_exchanged=(
            "batch, d_head, heads, seq",
            "({}): you exchanged `seq` and the features, not `seq` and `heads`. Axes are counted from 0. "
            "Which two numbers do `seq` and `heads` have after the split?",
        ),
        features_in_place_of_heads=(
            "batch, d_head, seq, heads",
            "({}): the features of a head are where the heads should be, and the heads come last. Look at the order of "
            "the two sizes into which you split the last axis, and check which of the two new axes you move.",
        ),
        batch_and_heads_exchanged=(
            "heads, seq, batch, d_head",
            "({}): you exchanged `batch` and `heads`, not `seq` and `heads`. Axes are counted from 0. "
            "Which two numbers do `seq` and `heads` have after the split?",
        ),
        batch_moved_behind_the_heads=(
            "seq, heads, batch, d_head",
            "({}). The batch must stay in front: `x` is (batch, seq, d_model), and only `seq` and `heads` change "
            "places after the split.",
        ),
        all_axes_reversed=(
            "d_head, heads, seq, batch",
            "({}): you reversed all axes, including `batch`. `.T` does this to a tensor with more than two axes. "
            "Only `heads` and `seq` must change places.",
        ),
    )
    def axes_in_this_order(order, x, n_heads):
        """Your result is {}"""
        return x.unflatten(-1, (n_heads, -1)).permute([AXES_AFTER_THE_SPLIT.index(axis) for axis in order.split(", ")])

    def sizes_read_as_seq_first(x, n_heads):
        """Your result is (seq, heads, batch, d_head): you mixed up the sizes of `batch` and `seq`. `x` has shape
        (batch, seq, d_model). Look at the names to which you assign `x.shape`, and at the order in which you use
        them."""
        batch, seq, d_model = x.shape
        return x.reshape(seq, batch, n_heads, d_model // n_heads).transpose(1, 2)

    def split_as_d_head_by_heads(x, n_heads):
        """Your result is (batch, seq, d_head, heads): you split the last axis into (d_head, heads), the wrong order, so
        that a head gets every `n_heads`-th feature, and `heads` stays last. Which features must be side by side?"""
        return x.unflatten(-1, (-1, n_heads))

    def heads_folded_into_the_batch(x, n_heads):
        """Your result is (batch · heads, seq, d_head): you split the heads, but they share an axis with the batch.
        Programs fold the two axes in this way for `torch.bmm`, and must unfold them later. Here, `heads` stays a
        separate axis."""
        return split_heads.reference(x, n_heads).flatten(0, 1)

    def only_transposed(x, n_heads):
        """Your result is (batch, d_model, seq): you exchanged two axes, but split none. First split the features into
        heads. Which axes must you exchange then?"""
        return x.transpose(1, 2)

    def unchanged(x, n_heads):
        """You return `x` unchanged. An operation on a tensor returns a new tensor, which needs a name. Or do you split
        the features and then join them again? The result must have four axes."""
        return x

    @family(
        single_head_squeezed_away=(
            1,
            "head: then the axis of the heads",
            "A `squeeze` removes axes of size 1, even those that",
        ),
        axes_of_size_one_squeezed_away=(
            (0, 1, 2, 3),
            "head, sentence or token, or one feature in each head: then an axis",
            "A bare `squeeze()` removes every axis of size 1, even an axis that",
        ),
    )
    def squeezed_away(axes, x, n_heads):
        """Your function is right unless there is only one {} is missing from the result. {} the caller needs. Does
        anything have to be removed here at all?"""
        return split_heads.reference(x, n_heads).squeeze(axes)

    def first_sentence_alone(x, n_heads):
        """Your result has no batch axis: you split the first sentence alone, and the others are lost. `x[0]` removes an
        axis. You can split all sentences at once."""
        return split_heads.reference(x, n_heads)[0]


@split_heads.wrong
class Cuts:
    def view_alone(x, n_heads):
        """You reshape the tensor straight to (batch, heads, seq, d_head). {The shape is right, but} the numbers are
        scrambled: `view` never moves an axis, so a head gets a run of whole tokens instead of some features of every
        token. {A model with this mistake still trains.} Where are the features of token 0 in memory, and where are they
        in your result?"""
        batch, seq, d_model = x.shape
        return x.reshape(batch, n_heads, seq, d_model // n_heads)

    def transposed_and_reshaped(x, n_heads):
        """You exchange tokens and features, and then reshape the tensor straight to (batch, heads, seq, d_head).
        {The shape is right, but} the numbers are scrambled: after the exchange the tokens vary fastest, so the last
        axis holds one feature of several tokens. What must you split first, while a token's features are still side
        by side?"""
        batch, seq, d_model = x.shape
        return x.transpose(1, 2).reshape(batch, n_heads, seq, d_model // n_heads)

    def transposed_and_viewed(x, n_heads):
        """You exchange tokens and features, and then call `view` to split both at once, which PyTorch refuses: no view
        can show the numbers in this order. A `reshape` would copy them, and scramble them. What must you split first,
        while a token's features are still side by side?"""
        batch, seq, d_model = x.shape
        return x.transpose(1, 2).view(batch, n_heads, seq, d_model // n_heads)

    def axes_swapped_back_by_view(x, n_heads):
        """You split the heads, and then reshape the result to (batch, seq, heads, d_head): a `view` or a `reshape` at
        the end scrambles numbers that were in order. After `heads` and `seq` have changed places, you are done."""
        batch, seq, d_model = x.shape
        return split_heads.reference(x, n_heads).reshape(batch, seq, n_heads, d_model // n_heads)

    def reshaped_then_exchanged(x, n_heads):
        """You reshape the tensor straight to (batch, heads, seq, d_head), and then exchange `heads` and `seq`: your
        result is (batch, seq, heads, d_head), and its numbers are scrambled. `seq` must stay whole while you split the
        last axis: write `seq` first in the `view`, and move axes only afterwards."""
        batch, seq, d_model = x.shape
        return x.reshape(batch, n_heads, seq, d_model // n_heads).transpose(1, 2)

    def heads_and_batch_exchanged_after_a_cut(x, n_heads):
        """You reshape the tensor straight to (heads, batch, seq, d_head), and then exchange `heads` and `batch`. {The
        shape is right, but} the numbers are scrambled: a reshape never moves an axis, so a head gets whole tokens, not
        some features of every token. Split the last axis alone, and move axes afterwards."""
        batch, seq, d_model = x.shape
        return x.reshape(n_heads, batch, seq, d_model // n_heads).transpose(0, 1)

    def folded_with_heads_outside(x, n_heads):
        """{Your result is right for one sentence.} With several sentences, heads and sentences are mixed: the first
        axis holds all sentences of head 0, then all of head 1, but you unfold it as if it held all heads of sentence 0
        first. Programs that concatenate the heads with `cat(…, dim=0)` make such an axis. Which of the two sizes must
        come first when you unfold it?"""
        return torch.stack(x.chunk(n_heads, dim=-1)).reshape(len(x), n_heads, x.shape[1], -1)

    @family(
        heads_in_front_by_view=((1, 0, 2, 3), "(heads, batch, seq, d_head)", "`batch` must come first"),
        features_before_seq_by_view=((0, 1, 3, 2), "(batch, heads, d_head, seq)", "`seq` must come before `d_head`"),
    )
    def cut_at_once(order, x, n_heads):
        """You reshape the tensor straight to {}. A reshape never moves an axis, so the numbers are scrambled. Also, {}.
        Split the last axis alone, and move axes only afterwards."""
        sizes = split_heads.reference(x, n_heads).shape
        return x.reshape([sizes[axis] for axis in order])

    def heads_cut_out_of_the_batch(x, n_heads):
        """You reshape the tensor straight to (batch · heads, seq, d_head). A reshape never moves an axis, so the
        numbers are scrambled. Also, `heads` must be a separate axis. Split the last axis alone, and move axes only
        afterwards."""
        return x.reshape(-1, x.shape[1], x.shape[2] // n_heads)

    def every_nth_feature(x, n_heads):
        """Each head gets every `n_heads`-th feature instead of a block of neighbouring features: you split the last
        axis as (d_head, heads). A model trained from scratch would work with this, but it would read the weights of any
        other model in the wrong order. Look at the order of the two sizes into which you split the axis."""
        batch, seq, d_model = x.shape
        return x.reshape(batch, seq, d_model // n_heads, n_heads).permute(0, 3, 1, 2)

    def n_heads_taken_for_d_head(x, n_heads):
        """You use `n_heads` as the number of features of a head: your result has d_model / n_heads heads with n_heads
        features each. The argument is the number of heads; the number of features of a head follows from it."""
        batch, seq, d_model = x.shape
        return x.reshape(batch, seq, d_model // n_heads, n_heads).transpose(1, 2)

    def tokens_put_last(x, n_heads):
        """Your result is (batch, heads, d_head, seq): you reshaped the features with the number of tokens as the last
        size, so a token's features are no longer together. In which order do you write the four sizes before you
        exchange `heads` and `seq`?"""
        return x.reshape(x.shape[0], -1, n_heads, x.shape[1]).transpose(1, 2)

    def batch_joined_with_seq(x, n_heads):
        """Your result has three axes: you joined the sentences into one long axis of tokens. The batch must stay a
        separate axis, in front: each sentence is split separately."""
        return x.reshape(-1, n_heads, x.shape[-1] // n_heads)

    def tokens_joined_with_their_heads(x, n_heads):
        """Your result is (batch, seq · heads, d_head): each token has become `n_heads` tokens of d_head features on the
        same axis. `heads` must be a separate axis, before `seq`."""
        batch, seq, d_model = x.shape
        return x.reshape(batch, seq * n_heads, d_model // n_heads)


@split_heads.wrong
class Sizes:
    @ways(for_view=torch.Tensor.view, for_reshape=torch.Tensor.reshape)
    def float_size(cut, x, n_heads):
        """You compute the number of features of a head with `/`, which returns a float in Python even if there is no
        remainder, but a size must be an integer. `//` divides integers and returns an integer."""
        batch, seq, d_model = x.shape
        return cut(x, batch, seq, n_heads, d_model / n_heads).transpose(1, 2)

    @ways(for_view=torch.Tensor.view, for_reshape=torch.Tensor.reshape)
    def all_features(cut, x, n_heads):
        """You give each head all d_model features, and PyTorch refuses: the tensor does not hold that many numbers. The
        heads share the features of a token. How many features does one head get?"""
        batch, seq, d_model = x.shape
        return cut(x, batch, seq, n_heads, d_model).transpose(1, 2)

    @ways(for_view=torch.Tensor.view, for_reshape=torch.Tensor.reshape)
    def two_heads(cut, x, n_heads):
        """Your function always makes two heads, whatever `n_heads` is. If the number of features is odd, your function
        raises an error. The example had two heads. Follow the argument through every line."""
        batch, seq, d_model = x.shape
        return cut(x, batch, seq, 2, d_model // 2).transpose(1, 2)

    @ways(for_view=torch.Tensor.view, for_reshape=torch.Tensor.reshape)
    def heads_of_64(cut, x, n_heads):
        """A head has 64 features in your function, as in many models; unless d_model is `64 * n_heads`, your function
        raises an error. The number of features of a head follows from the two arguments."""
        batch, seq, _ = x.shape
        return cut(x, batch, seq, n_heads, 64).transpose(1, 2)

    @ways(for_view=torch.Tensor.view, for_reshape=torch.Tensor.reshape)
    def tokens_divided(cut, x, n_heads):
        """You divide the number of *tokens* by the number of heads, and PyTorch refuses to split the features in this
        way. Check which size of `x.shape` you divide: the axes are (batch, seq, d_model)."""
        batch, seq, _ = x.shape
        return cut(x, batch, seq, n_heads, seq // n_heads).transpose(1, 2)

    def as_many_features_as_heads(x, n_heads):
        """You use the number of heads as the number of features of a head, and PyTorch refuses: the sizes do not fit.
        How many of the d_model features does each of `n_heads` heads get?"""
        batch, seq, _ = x.shape
        return x.view(batch, seq, n_heads, n_heads).transpose(1, 2)

    def no_features_for_view(x, n_heads):
        """Your heads have 0 features, and PyTorch refuses: the new shape has no place for the numbers of `x`. `%`
        returns the remainder, and `//` with its operands swapped returns 0. Which of the two numbers must be
        divided?"""
        batch, seq, d_model = x.shape
        return x.view(batch, seq, n_heads, d_model % n_heads).transpose(1, 2)

    def no_size_for_the_features(x, n_heads):
        """You reshape to three axes, (batch, seq, heads), and PyTorch refuses: the new shape has too few places for the
        numbers of `x`. The features of a head need a separate axis, the last."""
        batch, seq, _ = x.shape
        return x.view(batch, seq, n_heads).transpose(1, 2)

    def seq_and_features_mixed_up(x, n_heads):
        """You use axis 1 as the features and axis 2 as the tokens, and PyTorch refuses to split them. The axes of `x`
        are (batch, seq, d_model), in this order."""
        batch, d_model, seq = x.shape
        return x.view(batch, seq, n_heads, d_model // n_heads).transpose(1, 2)

    def one_size_for_unflatten(x, n_heads):
        """`unflatten` expects all the sizes into which an axis is split, as a tuple, but you pass one number, hence the
        `TypeError`. You need two axes in place of one; one of the two sizes may be -1."""
        return x.unflatten(-1, n_heads)

    def three_axes_permuted(x, n_heads):
        """`permute` needs the number of every axis once. After the split there are four axes, but you pass three
        numbers, hence the error. `transpose` exchanges just two axes."""
        return x.unflatten(-1, (n_heads, -1)).permute(0, 2, 1)


@split_heads.wrong
class Parts:
    def tokens_cut_into_parts(x, n_heads):
        """You split the tokens, along axis 1, not the features: each head would get a part of the sentence. The parts
        have different lengths here, and `stack` refuses them. Every head sees all tokens: which axis must you split?"""
        return torch.stack(x.chunk(n_heads, dim=1), dim=1)

    def tokens_cut_by_unflatten(x, n_heads):
        """You split axis 1, the tokens, not the features: each head would get a part of the sentence. Here the tokens
        cannot even be split into equal parts. Every head sees all tokens: which axis must you split?"""
        return x.unflatten(1, (n_heads, -1))

    def tokens_cut_by_view(x, n_heads):
        """You split the tokens, not the features: each head would get a part of the sentence, with all d_model
        features. Here the tokens cannot even be split into equal parts. Every head sees all tokens: which axis must you
        split?"""
        batch, seq, d_model = x.shape
        return x.view(batch, n_heads, seq // n_heads, d_model)

    def tokens_sliced(x, n_heads):
        """You slice axis 1, the tokens, not the features: each head would get a part of the sentence. Here the parts
        also have different lengths, and `stack` refuses them. A colon alone selects the whole axis: how many colons
        must come first?"""
        d_head = x.shape[-1] // n_heads
        return torch.stack([x[:, head * d_head : (head + 1) * d_head] for head in range(n_heads)], dim=1)

    def all_features_in_every_head(x, n_heads):
        """Every head gets all features: you repeat `x`, and split nothing. Your result is (batch, heads, seq, d_model).
        The heads share the features of a token: how many features does one head get?"""
        return x[:, None].repeat(1, n_heads, 1, 1)

    def first_block_in_every_head(x, n_heads):
        """Every head gets the same features, the first block of them, and the others are lost. Head 1 must begin where
        head 0 ends."""
        return x[:, None, :, : x.shape[-1] // n_heads].repeat(1, n_heads, 1, 1)

    def only_the_first_head(x, n_heads):
        """You return the first head alone, without an axis of heads. Most often a `return` is inside the loop, so that
        the function ends in the first iteration. All heads belong in the result, along a separate axis."""
        return x[..., : x.shape[-1] // n_heads]

    def first_head_with_its_axis(x, n_heads):
        """Your result has one head, the first: the features of all other heads are lost. The axis of the heads must
        have the size `n_heads`."""
        return x[:, None, :, : x.shape[-1] // n_heads]

    def heads_in_reverse(x, n_heads):
        """The heads are in reverse order: head 0 gets the last features. With two heads, head 0 must get `[1, 2]` of
        the token `[1, 2, 3, 4]`."""
        return split_heads.reference(x, n_heads).flip(1)

    def heads_overlap(x, n_heads):
        """Each head begins one feature after the previous head, so the heads overlap and the last features are left
        out. Head 1 must begin where head 0 ends: at which feature?"""
        d_head = x.shape[-1] // n_heads
        return torch.stack([x[..., head : head + d_head] for head in range(n_heads)], dim=1)

    def heads_begin_n_heads_apart(x, n_heads):
        """Each head begins `n_heads` features after the previous head. A head has d_head features, so the heads
        overlap, or leave features out. Head 1 must begin where head 0 ends: at which feature?"""
        d_head = x.shape[-1] // n_heads
        features = n_heads * torch.arange(n_heads)[:, None] + torch.arange(d_head)
        return x[..., features.clamp(max=x.shape[-1] - 1)].transpose(1, 2)

    def blocks_of_n_heads_features(x, n_heads):
        """Each block has `n_heads` features, and the features after the last block are lost: both ends of your slice
        count in steps of `n_heads`. Head 1 begins where head 0 ends. How many features does a head have?"""
        blocks = [x[..., head * n_heads : (head + 1) * n_heads] for head in range(n_heads)]
        return torch.stack(blocks, dim=1)

    @family(
        heads_joined_along_seq=(
            1,
            "(batch, heads · seq, d_head): the heads follow one another on the axis of the tokens",
        ),
        heads_joined_along_the_batch=(
            0,
            "(heads · batch, seq, d_head): the heads follow one another on the axis of the batch",
        ),
    )
    def joined(axis, x, n_heads):
        """Your result is {}. `cat` joins tensors along an axis that exists already, and `stack` makes a new axis."""
        return torch.cat(x.chunk(n_heads, dim=-1), dim=axis)

    def scaled(x, n_heads):
        """{The heads are right, but} you divide every number by √d_head. This scale belongs to the scores, later. A
        split only moves numbers and must not change any."""
        d_head = x.shape[-1] // n_heads
        return split_heads.reference(x, n_heads) / d_head**0.5
