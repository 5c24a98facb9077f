"""Merging heads back into features."""

import torch

from ..exercise import exercise
from .split_heads import split_heads


def _separate_heads(draw, batch=2, heads=3, seq=7, d_value=5):
    return (draw(batch, heads, seq, d_value),)


@exercise(
    inputs=_separate_heads,
    axes={"x": "batch heads seq d_value", "return": "batch seq d_model"},
    hints=(
        "After the merge, a token's features are side by side again. Which two axes have to be neighbours before the "
        "merge?",
        "Bring `heads` next to the features first. What happens if you call `view` on a tensor whose axes have been "
        "swapped?",
        "`x.transpose(…, …).contiguous().view(batch, seq, …)`, or `reshape` in place of the last two calls",
    ),
)
def merge_heads(x):
    """Merge the heads: (batch, heads, seq, d_value) becomes (batch, seq, heads · d_value)."""
    batch, heads, seq, d_value = x.shape
    return x.transpose(1, 2).reshape(batch, seq, heads * d_value)


def _reshape_to_result(moved, x):
    """Reshape ``moved``, which was made from ``x``, to the shape of ``merge_heads(x)``."""
    batch, heads, seq, d_value = x.shape
    return moved.reshape(batch, seq, heads * d_value)


@merge_heads.right
class RightAnswers:
    def merge_by_cat(x):
        return torch.cat(x.unbind(1), dim=-1)

    def merge_by_flatten(x):
        return x.permute(0, 2, 1, 3).flatten(2)

    def merge_with_contiguous(x):
        batch, _, seq, _ = x.shape
        return x.transpose(1, 2).contiguous().view(batch, seq, -1)


merge_heads.example("one token", seq=1)
merge_heads.example("one head", heads=1)
merge_heads.example("heads that were split off a moment ago", lambda draw: (draw(2, 7, 3, 5).transpose(1, 2),))


@merge_heads.property
def merging_undoes_splitting(function, x):
    """`merge_heads(split_heads(x, n))` returns the original `x`."""
    whole = merge_heads.reference(x)
    return torch.equal(function(split_heads.reference(whole, x.shape[1])), whole)


@merge_heads.wrong
class Scrambled:
    def reshape_alone(x):
        """You reshape the tensor while `heads` still comes before `seq`. {The shape is right, but} the numbers are
        scrambled: the features of a token now come from vectors that follow one another in `x`, not from the token's
        own position in every head. A model can be trained with this mistake, so a falling loss does not reveal it.
        Consider one token: which numbers belong in its row?"""
        return _reshape_to_result(x, x)

    def features_for_tokens(x):
        """You exchange `seq` and the features, instead of `heads` and `seq`, before you join the tensor. {The shape is
        right, but} the numbers are scrambled. Which two axes must become neighbours, so that the features of a token
        are side by side?"""
        return _reshape_to_result(x.transpose(2, 3), x)

    def heads_and_features_exchanged(x):
        """You exchange `heads` and the features, and then reshape the result to the right shape. The numbers are
        scrambled. Count the axes: axis 0 is `batch`, and axis 3 holds the features. Which axis must you exchange with
        `heads`, so that `heads` comes right before the features?"""
        return _reshape_to_result(x.transpose(1, 3), x)

    def reshaped_with_seq_first(x):
        """You bring `seq` to the front, as in PyTorch's older modules, and then reshape the result to (batch, seq,
        heads · d_value). {The shape is right, but} the sentences are mixed: the first sentence holds the first tokens
        of all sentences. `batch` must stay in front: which two axes should change places?"""
        return _reshape_to_result(x.permute(2, 0, 1, 3), x)

    def heads_before_the_batch(x):
        """You exchange `batch` and `heads`, and then reshape the result to the right shape. The numbers are scrambled,
        and the sentences are mixed. Count the axes from 0: what is the number of `heads`, and what is the number of the
        axis that you must exchange with `heads`?"""
        return _reshape_to_result(x.transpose(0, 1), x)

    def heads_reversed_and_reshaped(x):
        """You reverse the heads, and then reshape the tensor while `heads` still comes before `seq`. {The shape is
        right, but} the numbers are scrambled. The split gives head 0 the first block of features, so keep the order of
        the heads. Which two axes must change places before you join any axes?"""
        return _reshape_to_result(x.flip(1), x)

    def read_with_heads_outside(x):
        """{Your result is right for one sentence.} With several sentences, heads and sentences are mixed: you reshape
        the tensor with `heads` in front of `batch`, but it holds all heads of sentence 0 first. The cause is a `view`
        that begins with the heads, or a `split` of an axis into which `batch` and `heads` were folded. Which of these
        two axes comes first in `x`?"""
        batch, heads, seq, d_value = x.shape
        return x.reshape(heads, batch, seq, d_value).permute(1, 2, 0, 3).flatten(2)

    def features_interleaved(x):
        """You join the features as (d_value, heads): feature 0 of every head first, then feature 1 of every head. The
        merge must undo the split, which gives each head a block of neighbouring features. Look at the order of the two
        axes that you join."""
        return x.permute(0, 2, 3, 1).flatten(2)

    def heads_reversed(x):
        """You join the heads in reverse order: the features of the last head come first. The split gives head 0 the
        first block of features. In which order does your loop run?"""
        return x.flip(1).transpose(1, 2).flatten(2)


@merge_heads.wrong
class OtherShape:
    def seq_before_batch(x):
        """Your result is (seq, batch, heads · d_value): `seq` comes first. PyTorch's older modules use this order, and
        a `permute` that begins with axis 2 returns it. Here `batch` stays first."""
        return x.permute(2, 0, 1, 3).flatten(2)

    def not_joined(x):
        """Your result is (batch, seq, heads, d_value): the axes are in the right order, but `heads` is still a separate
        axis. The features of a token are side by side already. Which operation joins the last two axes into one?"""
        return x.transpose(1, 2)

    def tokens_joined_as_well(x):
        """Your result is (batch, seq · heads · d_value): you joined all axes after `batch`, including `seq`. `flatten`
        joins every axis from the number that you pass up to the last. Which is the first axis that should be joined?"""
        return x.transpose(1, 2).flatten(1)

    def tokens_joined_across_features(x):
        """Your result is (batch, heads, d_value · seq): you exchanged the last two axes and joined them, so `heads` is
        still a separate axis. `.mT` exchanges the last two axes. Which two axes must you exchange, so that `heads`
        comes next to the features?"""
        return x.mT.flatten(2)

    def tokens_joined_instead_of_heads(x):
        """Your result is (batch, heads, seq · d_value): you joined the last two axes without moving any, which
        concatenates a head's tokens. The features of a token must be side by side, so first bring `heads` next to the
        features. Which two axes must change places?"""
        return x.flatten(2)

    def sizes_of_heads_and_seq_exchanged(x):
        """Your result is (batch, heads, seq · d_value): you exchanged the axes, but reshaped as if they were in their
        old order. You mixed up the sizes of `heads` and `seq`: `x` is (batch, heads, seq, d_value), but `transpose`
        returns a tensor of a different shape. To which names do you assign `.shape`?"""
        return x.transpose(1, 2).reshape(*x.shape[:2], -1)

    def sentences_side_by_side(x):
        """Your result is (heads, seq, batch · d_value): the sentences are side by side, where the heads should be. A
        loop over `x`, or `unbind(0)`, runs along axis 0, which counts the sentences. Which axis counts the heads?"""
        return x.permute(1, 2, 0, 3).flatten(2)

    def heads_in_front(x):
        """Your result is (heads, batch, seq · d_value): you exchanged `heads` and `batch`, and then concatenated a
        head's tokens. Count the axes from 0: what is the number of `heads`, and what is the number of the axis that you
        must exchange with `heads`?"""
        return x.transpose(0, 1).flatten(2)

    def all_axes_reversed(x):
        """Your result is (d_value, seq, heads · batch): you reversed all axes, including `batch`. `.T` reverses the
        axes of a tensor even if it has more than two. Only `heads` and `seq` must change places."""
        return x.permute(3, 2, 1, 0).flatten(2)

    def heads_one_after_the_other(x):
        """You join the heads along `seq`: your result is (batch, heads · seq, d_value), so the sequence becomes `heads`
        times as long. Concatenate along the features, so that a token stays one token."""
        return x.flatten(1, 2)

    def heads_after_the_features(x):
        """Your result is (batch, seq, d_value, heads): you stacked the heads along a new last axis, but did not join
        them. `cat` puts them side by side along an axis that exists already. Which axis must that be?"""
        return x.permute(0, 2, 3, 1)

    def heads_averaged(x):
        """You average the heads: your result has d_value features instead of heads · d_value. An average mixes the
        results of the heads, and nothing after it can separate them. Put the heads side by side, so that the output
        projection can weigh each of them."""
        return x.mean(dim=1)

    def heads_added(x):
        """You add up the heads: your result has d_value features instead of heads · d_value. A sum mixes the results of
        the heads, and nothing after it can separate them. Put the heads side by side."""
        return x.sum(dim=1)

    def heads_added_with_keepdim(x):
        """You add up the heads, and keep their axis with size 1: your result is (batch, 1, seq, d_value). A sum mixes
        the results of the heads, and nothing after it can separate them. Put the heads side by side."""
        return x.sum(dim=1, keepdim=True)

    def first_head_only(x):
        """Your result holds the first head alone: d_value features for every token instead of heads · d_value. Do you
        use an index where you mean an axis, or is there a `return` inside a loop? Where do the other heads go?"""
        return x[:, 0]

    def last_head_only(x):
        """Your result holds the last head alone: d_value features for every token instead of heads · d_value. Does your
        loop overwrite its result in each iteration? Where do the other heads go?"""
        return x[:, -1]


@merge_heads.wrong
class Refused:
    def view_after_transpose(x):
        """`view` can only read memory in order. After you exchange two axes of a tensor, its numbers are no longer in
        order, so `view` raises an error. `.contiguous()` writes them in the new order, and `reshape` copies them where
        it must. If you swapped the two calls, `view` before `transpose`, your code would run and scramble the
        numbers."""
        batch, heads, seq, d_value = x.contiguous().shape
        return x.contiguous().transpose(1, 2).view(batch, seq, heads * d_value)

    def heads_plus_features(x):
        """The new sizes do not fit: you add the number of heads to the number of features of a head. Each head has
        d_value features. How many features are there in all?"""
        batch, heads, seq, d_value = x.shape
        return x.transpose(1, 2).reshape(batch, seq, heads + d_value)

    def heads_indexed_on_the_batch_axis(x):
        """Your loop counts the heads, but `x[h]` is a sentence: the first index belongs to the batch. With more heads
        than sentences, your loop raises an error. Which place in the brackets belongs to `heads`?"""
        return torch.cat([x[h] for h in range(x.shape[1])], dim=-1)

    def loop_over_tokens_for_heads(x):
        """Your loop over the heads runs as often as there are tokens. With more tokens than heads, the loop indexes a
        head that does not exist. `x` is (batch, heads, seq, d_value). Which entry of its shape counts the heads?"""
        return torch.cat([x[:, h] for h in range(x.shape[2])], dim=-1)

    def permuted_as_with_three_axes(x):
        """`permute` needs a number for each axis, but you pass three numbers for a tensor with four axes. Count the
        features too, even if they stay where they are."""
        return x.permute(0, 2, 1).flatten(2)

    def tensor_passed_to_cat(x):
        """`torch.cat` expects a tuple or list of tensors, but you pass one tensor, hence the `TypeError`. `unbind`
        splits a tensor along an axis. Along which axis must you split here?"""
        return torch.cat(x, dim=-1)
