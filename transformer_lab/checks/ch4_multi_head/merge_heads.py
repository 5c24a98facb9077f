"""Merging heads back into features."""

import torch

from ..exercise import exercise
from .split_heads import split_heads


def _heads(draw, batch=2, heads=3, seq=7, d_value=5):
    return (draw(batch, heads, seq, d_value),)


@exercise(
    inputs=_heads,
    axes={"x": "batch heads seq d_value", "return": "batch seq d_model"},
    hints=(
        "After the merge, a token's features are side by side again. Which two axes have to be neighbours before the "
        "merge?",
        "Bring `heads` next to the features first. What does `view` say about a tensor whose axes have been swapped?",
        "`x.transpose(…, …).contiguous().view(batch, seq, …)`, or `reshape` for the last two",
    ),
)
def merge_heads(x):
    """Join (batch, heads, seq, d_value) to (batch, seq, heads · d_value)."""
    batch, heads, seq, d_value = x.shape
    return x.transpose(1, 2).reshape(batch, seq, heads * d_value)


def _cut(moved, x):
    """Reshape ``moved``, which was made from ``x``, to the right shape."""
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
    """`merge_heads(split_heads(x, n))` gives `x` back."""
    whole = merge_heads.reference(x)
    return torch.equal(function(split_heads.reference(whole, x.shape[1])), whole)


@merge_heads.wrong
class Scrambled:
    def reshape_alone(x):
        """The tensor is reshaped as it lies, with `heads` still before `seq`. {The shape is right and} the numbers are
        scrambled: the features of one token now come from vectors that follow one another in memory, and not from its
        own position in every head. A model can be trained with this mistake, so a falling loss does not reveal it. Take
        one token: which numbers belong in its row?"""
        return _cut(x, x)

    def features_for_tokens(x):
        """The last two axes have changed places before the tensor was joined: `seq` and the features, instead of
        `heads` and `seq`. {The shape is right and} the numbers are scrambled. Which two axes must become neighbours, so
        that the features of one token lie side by side?"""
        return _cut(x.transpose(2, 3), x)

    def heads_and_features_exchanged(x):
        """`heads` has changed places with the features, and the tensor was then cut into the right shape. The numbers
        are scrambled. Count the axes: 0 is `batch`, and 3 holds the features. Which one must `heads` change places
        with, so that it stands before them?"""
        return _cut(x.transpose(1, 3), x)

    def cut_over_the_batch(x):
        """`seq` was brought to the front, as PyTorch's older modules have it, and the tensor was then cut into (batch,
        seq, heads · d_value). {The shape is right, and} the sentences are mixed: the first holds the first tokens of
        all of them. `batch` must stay in front: which two axes should change places?"""
        return _cut(x.permute(2, 0, 1, 3), x)

    def heads_before_the_batch(x):
        """`batch` and `heads` have changed places, and the tensor was then cut into the right shape. The numbers are
        scrambled, and mixed among the sentences. Count the axes from 0: which number has `heads`, and which has the
        axis that it must change places with?"""
        return _cut(x.transpose(0, 1), x)

    def heads_backwards_and_cut_anew(x):
        """The heads come in reverse, and the tensor is then cut as it lies, with `heads` still before `seq`. {The shape
        is right and} the numbers are scrambled. The split gave head 0 the first block of features; and which two axes
        must change places before anything is joined?"""
        return _cut(x.flip(1), x)

    def read_with_heads_outside(x):
        """{Right for one sentence.} With more, heads and sentences are mixed: the tensor is cut anew with `heads` in
        front of `batch`, and it holds all heads of sentence 0 first. A `view` that begins with the heads does that, and
        so does `split` on an axis into which both were folded. Which of the two does `x` have first?"""
        batch, heads, seq, d_value = x.shape
        return x.reshape(heads, batch, seq, d_value).permute(1, 2, 0, 3).flatten(2)

    def features_interleaved(x):
        """The features are joined as (d_value, heads): feature 0 of every head first, then feature 1 of every head. The
        merge must undo the split, which gave each head a block of neighbours. Look at the order of the two axes that
        you join."""
        return x.permute(0, 2, 3, 1).flatten(2)

    def heads_backwards(x):
        """The heads stand side by side in reverse: the features of the last one come first. The split gave head 0 the
        first block of features. In which order does your loop run?"""
        return x.flip(1).transpose(1, 2).flatten(2)


@merge_heads.wrong
class OtherShape:
    def seq_before_batch(x):
        """Your result is (seq, batch, heads · d_value): `seq` comes first. That is the order of PyTorch's older
        modules, and of a `permute` that begins with axis 2. Here `batch` stays first."""
        return x.permute(2, 0, 1, 3).flatten(2)

    def not_joined(x):
        """Your result is (batch, seq, heads, d_value): the axes are in the right order, and `heads` still has one of
        its own. The features of a token lie side by side already. What makes one axis of the last two?"""
        return x.transpose(1, 2)

    def tokens_joined_as_well(x):
        """Your result is (batch, seq · heads · d_value): everything after `batch` was joined, the tokens too. `flatten`
        goes on to the last axis from where you let it begin. Which is the first axis that should be joined?"""
        return x.transpose(1, 2).flatten(1)

    def tokens_joined_across_features(x):
        """Your result is (batch, heads, d_value · seq): the last two axes have changed places and were joined, and
        `heads` still has an axis of its own. `.mT` exchanges the last two axes. Which two must be exchanged, so that
        `heads` comes to stand next to the features?"""
        return x.mT.flatten(2)

    def tokens_joined_instead_of_heads(x):
        """Your result is (batch, heads, seq · d_value): the last two axes were joined as they come, and that strings a
        head's tokens together. The features of a token must stand side by side, so `heads` must stand next to them
        first. Which two axes must change places?"""
        return x.flatten(2)

    def sizes_in_another_order(x):
        """Your result is (batch, heads, seq · d_value): the axes have changed places, and the tensor was then cut as if
        they had not. The sizes of `heads` and `seq` were taken for one another: what is merged comes as (batch, heads,
        seq, d_value), and after `transpose` it has another shape. Which names stand on the left of your `.shape`?"""
        return x.transpose(1, 2).reshape(*x.shape[:2], -1)

    def sentences_side_by_side(x):
        """Your result is (heads, seq, batch · d_value): the sentences stand side by side, where the heads should. A
        loop over `x`, or `unbind(0)`, takes axis 0, which counts the sentences. Which axis counts the heads?"""
        return x.permute(1, 2, 0, 3).flatten(2)

    def heads_in_front(x):
        """Your result is (heads, batch, seq · d_value): `heads` and `batch` have changed places, and a head's tokens
        were strung together. Count the axes from 0: which number has `heads`, and which has the axis that it must
        change places with?"""
        return x.transpose(0, 1).flatten(2)

    def all_axes_turned(x):
        """Your result is (d_value, seq, heads · batch): all the axes are reversed, that of the batch too. That is what
        `.T` does with more than two axes. Only `heads` and `seq` must change places."""
        return x.permute(3, 2, 1, 0).flatten(2)

    def heads_one_after_the_other(x):
        """The heads are joined along `seq`: your result is (batch, heads · seq, d_value), a sequence as many times
        longer as there are heads. Concatenate along the features: a token stays one token."""
        return x.flatten(1, 2)

    def heads_behind_the_features(x):
        """Your result is (batch, seq, d_value, heads): the heads were stacked along a new last axis, and not joined.
        `cat` puts them side by side along an axis that is there already. Which one must that be?"""
        return x.permute(0, 2, 3, 1)

    def heads_averaged(x):
        """The heads are averaged: your result has d_value features instead of heads · d_value. An average mixes what
        the heads found, and nothing after it can tell them apart; side by side, the output projection can weigh each of
        them."""
        return x.mean(dim=1)

    def heads_added(x):
        """The heads are added up: your result has d_value features instead of heads · d_value. A sum mixes what the
        heads found, and nothing after it can tell them apart; put them side by side."""
        return x.sum(dim=1)

    def heads_added_on_an_axis_of_one(x):
        """The heads are added up, and their axis stays with size 1: your result is (batch, 1, seq, d_value). A sum
        mixes what the heads found, and nothing after it can tell them apart. Put them side by side."""
        return x.sum(dim=1, keepdim=True)

    def first_head_only(x):
        """Your result holds the first head and nothing of the others: d_value features for every token instead of heads
        · d_value. An index where an axis was meant does that, and so does a `return` inside a loop. Where do the other
        heads go?"""
        return x[:, 0]

    def last_head_only(x):
        """Your result holds the last head and nothing of the others: d_value features for every token instead of heads
        · d_value. A loop that sets its result anew in each turn does that. Where do the other heads go?"""
        return x[:, -1]


@merge_heads.wrong
class Refused:
    def view_after_transpose(x):
        """`view` only reads memory in order, and after the axes of a tensor such as this one have been exchanged, it no
        longer lies in order: then `view` raises. `.contiguous()` writes it down anew, and `reshape` does so where it
        must. Swapping the two instead, `view` before `transpose`, would run and scramble."""
        batch, heads, seq, d_value = x.contiguous().shape
        return x.contiguous().transpose(1, 2).view(batch, seq, heads * d_value)

    def heads_plus_features(x):
        """The new sizes do not fit: heads + d_value is not as many features as the heads have together. Each of the
        heads brings d_value features. How many are that?"""
        batch, heads, seq, d_value = x.shape
        return x.transpose(1, 2).reshape(batch, seq, heads + d_value)

    def heads_looked_for_in_the_batch(x):
        """Your loop counts the heads and takes `x[h]`, which is a sentence: the first index belongs to the batch. With
        more heads than sentences it raises. Which place in the brackets belongs to `heads`?"""
        return torch.cat([x[h] for h in range(x.shape[1])], dim=-1)

    def more_heads_than_there_are(x):
        """Your loop over the heads runs as often as there are tokens, and with more tokens than heads it looks for a
        head that does not exist. `x` comes as (batch, heads, seq, d_value). Which entry of its shape counts the
        heads?"""
        return torch.cat([x[:, h] for h in range(x.shape[2])], dim=-1)

    def permuted_as_with_three_axes(x):
        """`permute` wants a number for each axis, and gets three for a tensor of four. The features count as well, even
        if they stay where they are."""
        return x.permute(0, 2, 1).flatten(2)

    def tensor_given_to_cat(x):
        """`torch.cat` wants a tuple or list of tensors, and gets one tensor, hence the `TypeError`. `unbind` takes a
        tensor apart along an axis: along which one, here?"""
        return torch.cat(x, dim=-1)
