"""Splitting features into heads."""

import torch

from ..exercise import exercise, family, ways


def _inputs(draw, batch=2, seq=7, heads=3, d_head=5):
    return draw(batch, seq, heads * d_head), heads


@exercise(
    inputs=_inputs,
    axes={"x": "batch seq d_model", "return": "batch heads seq d_head"},
    hints=(
        "Every token's features are divided among the heads. Which axis must be split, and which axes must stay whole?",
        "A `view` splits the last axis in two. To bring `heads` before `seq`, you need an operation that moves axes.",
        "`x.view(batch, seq, …, …).transpose(…, …)`",
    ),
)
def split_heads(x, n_heads):
    """Cut (batch, seq, d_model) into (batch, heads, seq, d_head)."""
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
def a_head_sees_its_features(function, x, n_heads):
    """Head 0 holds the first d_model / n_heads features of every token."""
    width = x.shape[-1] // n_heads
    return torch.equal(function(x, n_heads)[:, 0], x[..., :width])


AFTER_THE_CUT = ("batch", "seq", "heads", "d_head")


@split_heads.wrong
class Axes:
    def no_transpose(x, n_heads):
        """The features are cut rightly, and `heads` stays after `seq`: your result is (batch, seq, heads, d_head).
        Matrix products work on the last two axes, so attention would compare the heads of one token with each other
        instead of the tokens of one head. One operation is missing after the cut."""
        batch, seq, d_model = x.shape
        return x.reshape(batch, seq, n_heads, d_model // n_heads)

    @family(
        heads_before_batch=(
            "heads, batch, seq, d_head",
            "({}): the heads come first of all. That is what stacking slices along axis 0 gives, or a `permute` that "
            "begins with the wrong axis. Everything that comes later expects `batch` first.",
        ),
        features_before_seq=(
            "batch, heads, d_head, seq",
            "({}): one exchange too many, or the wrong two axes. Keys are needed like that inside the product with the "
            "queries, and are turned there; splitting leaves a token's features last.",
        ),
        batch_and_seq_exchanged=(
            "seq, batch, heads, d_head",
            "({}): the first two axes have changed places, and not the two in the middle. Axes are counted from 0, and "
            "the batch is number 0. Which two numbers do `seq` and `heads` have after the cut?",
        ),
        heads_last=(
            "batch, seq, d_head, heads",
            "({}): the heads come last of all. That is what stacking slices along the last axis gives, or an exchange "
            "of the last two axes. `heads` belongs after `batch`.",
        ),
        seq_and_features_exchanged=(
            "batch, d_head, heads, seq",
            "({}): `seq` and the features have changed places, and not `seq` and `heads`. Axes are counted from 0. "
            "Which two numbers do `seq` and `heads` have after the cut?",
        ),
        features_in_place_of_heads=(
            "batch, d_head, seq, heads",
            "({}): the features of a head stand where the heads should, and the heads last. Look at the order of the "
            "two sizes that you cut the last axis into, and at which of them is moved.",
        ),
        batch_and_heads_exchanged=(
            "heads, seq, batch, d_head",
            "({}): the batch and the heads have changed places, and not `seq` and the heads. Axes are counted from 0. "
            "Which two numbers do `seq` and `heads` have after the cut?",
        ),
        batch_moved_behind_the_heads=(
            "seq, heads, batch, d_head",
            "({}). The batch must stay in front: `x` is (batch, seq, d_model), and only `seq` and the heads change "
            "places after the cut.",
        ),
        all_axes_turned=(
            "d_head, heads, seq, batch",
            "({}): all the axes are reversed, that of the batch too. That is what `.T` does with more than two axes. "
            "Only `heads` and `seq` must change places.",
        ),
    )
    def axes_in_this_order(order, x, n_heads):
        """Your result is {}"""
        return x.unflatten(-1, (n_heads, -1)).permute([AFTER_THE_CUT.index(axis) for axis in order.split(", ")])

    def sizes_read_as_seq_first(x, n_heads):
        """Your result is (seq, heads, batch, d_head): the sizes of `batch` and `seq` were taken for one another. `x`
        comes as (batch, seq, d_model). Look at the names on the left of your `x.shape`, and at the order in which you
        use them."""
        batch, seq, d_model = x.shape
        return x.reshape(seq, batch, n_heads, d_model // n_heads).transpose(1, 2)

    def cut_in_the_other_order_alone(x, n_heads):
        """Your result is (batch, seq, d_head, heads): the last axis is cut with its two sizes the wrong way round, so
        that a head gets every `n_heads`-th feature, and `heads` stays last. Which features must lie side by side?"""
        return x.unflatten(-1, (-1, n_heads))

    def heads_folded_into_the_batch(x, n_heads):
        """Your result is (batch · heads, seq, d_head): the heads are there, and share an axis with the batch. Programs
        for `torch.bmm` fold them so, and must take them apart again later. Here, `heads` stays an axis of its own."""
        return split_heads.reference(x, n_heads).flatten(0, 1)

    def only_turned(x, n_heads):
        """Your result is (batch, d_model, seq): two axes have changed places, and nothing is cut. First the features
        must be cut into heads; which axes are exchanged then?"""
        return x.transpose(1, 2)

    def unchanged(x, n_heads):
        """You return `x` as it came. An operation on a tensor returns a new one, which needs a name; and to cut
        features and join them again changes nothing. The result has four axes."""
        return x

    @family(
        single_head_squeezed_away=(
            1,
            "head: then the axis of the heads",
            "A `squeeze` removes axes of size 1, also those that",
        ),
        axes_of_size_one_squeezed_away=(
            (0, 1, 2, 3),
            "head, or one feature in each: then an axis",
            "A bare `squeeze()` removes every axis of size 1, also one that",
        ),
    )
    def squeezed_away(axes, x, n_heads):
        """Right, until there is one {} is gone. {} the caller counts on. Does anything have to be removed here at
        all?"""
        return split_heads.reference(x, n_heads).squeeze(axes)

    def first_sentence_alone(x, n_heads):
        """Your result has no batch: only the first sentence is split, and the others are lost. `x[0]` takes an axis
        away. All sentences can be split at once."""
        return split_heads.reference(x, n_heads)[0]


@split_heads.wrong
class Cuts:
    def view_alone(x, n_heads):
        """The tensor is cut as `view` cuts it, straight into (batch, heads, seq, d_head). {The shape is right and} the
        numbers are scrambled: `view` never moves an axis, so a head gets a stretch of whole tokens instead of some
        features of every token{, and a model with this still trains}. Look at where the features of token 0 lie in
        memory, and where yours went."""
        batch, seq, d_model = x.shape
        return x.reshape(batch, n_heads, seq, d_model // n_heads)

    def turned_and_cut_anew(x, n_heads):
        """Tokens and features have changed places, and the tensor was then cut into (batch, heads, seq, d_head), all at
        once. {The shape is right and} the numbers are scrambled: after the exchange the tokens vary fastest, so the
        last axis holds one feature of several tokens. What must be cut first, while a token's features still lie side
        by side?"""
        batch, seq, d_model = x.shape
        return x.transpose(1, 2).reshape(batch, n_heads, seq, d_model // n_heads)

    def turned_and_viewed(x, n_heads):
        """Tokens and features have changed places, and then a `view` was to cut both at once, which PyTorch refuses: no
        view can show the numbers like that. A `reshape` would copy them, and scramble them. What must be cut first,
        while a token's features still lie side by side?"""
        batch, seq, d_model = x.shape
        return x.transpose(1, 2).view(batch, n_heads, seq, d_model // n_heads)

    def turned_back_by_view(x, n_heads):
        """The heads are split, and then cut anew into (batch, seq, heads, d_head): a `view` or a `reshape` at the end
        scrambles what was in order. After `heads` and `seq` have changed places, nothing is left to do."""
        batch, seq, d_model = x.shape
        return split_heads.reference(x, n_heads).reshape(batch, seq, n_heads, d_model // n_heads)

    def cut_in_the_other_order_then_exchanged(x, n_heads):
        """The tensor is cut straight into (batch, heads, seq, d_head), and then `heads` and `seq` change places: your
        result is (batch, seq, heads, d_head), and its numbers are scrambled. `seq` must stay whole while the last axis
        is cut: write `seq` first in the cut, and move axes only afterwards."""
        batch, seq, d_model = x.shape
        return x.reshape(batch, n_heads, seq, d_model // n_heads).transpose(1, 2)

    def heads_and_batch_exchanged_after_a_cut(x, n_heads):
        """The tensor is cut straight into (heads, batch, seq, d_head), and then `heads` and `batch` change places. {The
        shape is right, and} the numbers are scrambled: a cut never moves an axis, so a head gets whole tokens, and not
        some features of every token. Cut the last axis alone, and move axes afterwards."""
        batch, seq, d_model = x.shape
        return x.reshape(n_heads, batch, seq, d_model // n_heads).transpose(0, 1)

    def folded_with_heads_outside(x, n_heads):
        """{Right for one sentence.} With more, heads and sentences are mixed: the first axis holds all sentences of
        head 0, then all of head 1, and it is taken apart as if each sentence held its heads. Programs that put the
        heads below the sentences with `cat(…, dim=0)` make such an axis. Which of the two comes first when you take it
        apart?"""
        return torch.stack(x.chunk(n_heads, dim=-1)).reshape(len(x), n_heads, x.shape[1], -1)

    @family(
        heads_in_front_by_view=((1, 0, 2, 3), "(heads, batch, seq, d_head)", "the batch must come first besides"),
        features_before_seq_by_view=((0, 1, 3, 2), "(batch, heads, d_head, seq)", "`seq` belongs before `d_head`"),
    )
    def cut_at_once(order, x, n_heads):
        """The tensor is cut straight into {}. A cut never moves an axis, so the numbers are scrambled, and {}. Cut the
        last axis alone, and move axes only afterwards."""
        sizes = split_heads.reference(x, n_heads).shape
        return x.reshape([sizes[axis] for axis in order])

    def heads_cut_out_of_the_batch(x, n_heads):
        """The tensor is cut straight into (batch · heads, seq, d_head). A cut never moves an axis, so the numbers are
        scrambled, and `heads` must be an axis of its own. Cut the last axis alone, and move axes only afterwards."""
        return x.reshape(-1, x.shape[1], x.shape[2] // n_heads)

    def every_nth_feature(x, n_heads):
        """Each head gets every `n_heads`-th feature instead of a block of neighbours: the last axis is cut as (d_head,
        heads). A model trained from scratch would not mind; weights from anywhere else would be read in the wrong
        order. Look at the order of the last two sizes where you cut."""
        batch, seq, d_model = x.shape
        return x.reshape(batch, seq, d_model // n_heads, n_heads).permute(0, 3, 1, 2)

    def n_heads_taken_for_d_head(x, n_heads):
        """`n_heads` is used as the number of features of a head: your result has d_model / n_heads heads with n_heads
        features each. The argument says how many heads there are; the features of one follow from it."""
        batch, seq, d_model = x.shape
        return x.reshape(batch, seq, d_model // n_heads, n_heads).transpose(1, 2)

    def tokens_put_last(x, n_heads):
        """Your result is (batch, heads, d_head, seq): the features were cut anew with the number of tokens as the last
        size. A token's features no longer stand together. In which order do the four sizes stand before `heads` and
        `seq` change places?"""
        return x.reshape(x.shape[0], -1, n_heads, x.shape[1]).transpose(1, 2)

    def batch_joined_with_seq(x, n_heads):
        """Your result has three axes: the sentences are joined to one long axis of tokens. The batch must stay an axis
        of its own, in front: each sentence is split for itself."""
        return x.reshape(-1, n_heads, x.shape[-1] // n_heads)

    def tokens_joined_with_their_heads(x, n_heads):
        """Your result is (batch, seq · heads, d_head): each token has become `n_heads` short ones on the same axis.
        `heads` must be an axis of its own, before `seq`."""
        batch, seq, d_model = x.shape
        return x.reshape(batch, seq * n_heads, d_model // n_heads)


@split_heads.wrong
class Sizes:
    @ways(for_view=torch.Tensor.view, for_reshape=torch.Tensor.reshape)
    def float_size(cut, x, n_heads):
        """The features of a head are counted with `/`, which gives a float in Python even where nothing is left over,
        and a size must be a whole number. `//` divides whole numbers and gives one."""
        batch, seq, d_model = x.shape
        return cut(x, batch, seq, n_heads, d_model / n_heads).transpose(1, 2)

    @ways(for_view=torch.Tensor.view, for_reshape=torch.Tensor.reshape)
    def all_features(cut, x, n_heads):
        """Each head is to have all d_model features, and PyTorch refuses: there are not so many numbers. The heads
        share the features of a token. How many does one head get?"""
        batch, seq, d_model = x.shape
        return cut(x, batch, seq, n_heads, d_model).transpose(1, 2)

    @ways(for_view=torch.Tensor.view, for_reshape=torch.Tensor.reshape)
    def two_heads(cut, x, n_heads):
        """Your function always makes two heads, whatever `n_heads` says, and where two do not divide the features it
        raises. Two was the number in the example. Follow the argument through every line."""
        batch, seq, d_model = x.shape
        return cut(x, batch, seq, 2, d_model // 2).transpose(1, 2)

    @ways(for_view=torch.Tensor.view, for_reshape=torch.Tensor.reshape)
    def heads_of_64(cut, x, n_heads):
        """A head has 64 features in your function, as in many models, and where that does not fit it raises. How many
        there are follows from the two arguments."""
        batch, seq, _ = x.shape
        return cut(x, batch, seq, n_heads, 64).transpose(1, 2)

    @ways(for_view=torch.Tensor.view, for_reshape=torch.Tensor.reshape)
    def tokens_divided(cut, x, n_heads):
        """The number of *tokens* is divided by the heads, and PyTorch refuses to cut the features so. Look at which
        size of `x.shape` you divide: the axes are (batch, seq, d_model)."""
        batch, seq, _ = x.shape
        return cut(x, batch, seq, n_heads, seq // n_heads).transpose(1, 2)

    def as_many_features_as_heads(x, n_heads):
        """You ask for as many features in a head as there are heads, and PyTorch refuses: that is another number. How
        many features does each of `n_heads` heads get of d_model?"""
        batch, seq, _ = x.shape
        return x.view(batch, seq, n_heads, n_heads).transpose(1, 2)

    def no_features_for_view(x, n_heads):
        """A head is to have 0 features, and PyTorch refuses: there are more numbers than that. `%` gives what is left
        over, and a `//` with its two sides exchanged gives 0. Which of the two numbers is divided?"""
        batch, seq, d_model = x.shape
        return x.view(batch, seq, n_heads, d_model % n_heads).transpose(1, 2)

    def no_size_for_the_features(x, n_heads):
        """You ask for three axes, (batch, seq, heads), and PyTorch refuses: there are more numbers than that. The
        features of a head need an axis of their own, the last."""
        batch, seq, _ = x.shape
        return x.view(batch, seq, n_heads).transpose(1, 2)

    def seq_and_features_mixed_up(x, n_heads):
        """You take axis 1 for the features and axis 2 for the tokens, and PyTorch refuses the cut. The axes of `x` are
        (batch, seq, d_model), in this order."""
        batch, d_model, seq = x.shape
        return x.view(batch, seq, n_heads, d_model // n_heads).transpose(1, 2)

    def one_size_for_unflatten(x, n_heads):
        """`unflatten` wants all the sizes that an axis is cut into, as a tuple, and gets one number, hence the
        `TypeError`. Two axes are to come of one; one of the two sizes may be -1."""
        return x.unflatten(-1, n_heads)

    def three_axes_permuted(x, n_heads):
        """`permute` needs the number of every axis once, and after the cut there are four: hence the error. To exchange
        two axes alone, there is `transpose`."""
        return x.unflatten(-1, (n_heads, -1)).permute(0, 2, 1)


@split_heads.wrong
class Parts:
    def tokens_cut_into_parts(x, n_heads):
        """You cut the tokens into parts, along axis 1, and not the features: each head would get a part of the
        sentence. The parts are not equally long here, and `stack` refuses them. Every head sees all tokens: which axis
        must be cut?"""
        return torch.stack(x.chunk(n_heads, dim=1), dim=1)

    def tokens_cut_by_unflatten(x, n_heads):
        """You cut axis 1, the tokens, and not the features: each head would get a part of the sentence, and here the
        tokens cannot be cut into equal parts. Every head sees all tokens: which axis must be cut?"""
        return x.unflatten(1, (n_heads, -1))

    def tokens_cut_by_view(x, n_heads):
        """You cut the tokens and not the features: each head would get a part of the sentence, with all d_model
        features, and here the tokens cannot be cut into equal parts. Every head sees all tokens: which axis must be
        cut?"""
        batch, seq, d_model = x.shape
        return x.view(batch, n_heads, seq // n_heads, d_model)

    def tokens_sliced(x, n_heads):
        """You take slices of axis 1, the tokens, and not of the features: each head would get a part of the sentence.
        Here the parts are not equally long besides, and `stack` refuses them. A colon alone takes the whole axis: how
        many belong in front?"""
        d_head = x.shape[-1] // n_heads
        return torch.stack([x[:, head * d_head : (head + 1) * d_head] for head in range(n_heads)], dim=1)

    def every_head_gets_all(x, n_heads):
        """Every head gets all features: `x` is repeated, and nothing is cut. Your result is (batch, heads, seq,
        d_model). The heads share the features of a token: how many does one get?"""
        return x[:, None].repeat(1, n_heads, 1, 1)

    def every_head_gets_the_first_block(x, n_heads):
        """Every head gets the same features, the first block of them, and the others are lost. Head 1 must go on where
        head 0 ends."""
        return x[:, None, :, : x.shape[-1] // n_heads].repeat(1, n_heads, 1, 1)

    def only_the_first_head(x, n_heads):
        """You return the first head alone, and its axis is gone. Most often a `return` is inside the loop, so that
        the function ends in the first round. All heads belong in the result, along an axis of their own."""
        return x[..., : x.shape[-1] // n_heads]

    def one_head_on_its_axis(x, n_heads):
        """Your result has one head, the first: the features of all the others are lost. The axis of the heads must have
        the size `n_heads`."""
        return x[:, None, :, : x.shape[-1] // n_heads]

    def heads_in_reverse(x, n_heads):
        """The heads come in the opposite order: head 0 gets the last features. With two heads, the token `[1, 2, 3, 4]`
        must give `[1, 2]` to head 0."""
        return split_heads.reference(x, n_heads).flip(1)

    def heads_overlap(x, n_heads):
        """Each head begins one feature after the one before it, so that they overlap and the last features are left
        out. Head 1 must go on where head 0 ends: how far is that?"""
        d_head = x.shape[-1] // n_heads
        return torch.stack([x[..., head : head + d_head] for head in range(n_heads)], dim=1)

    def heads_begin_n_heads_apart(x, n_heads):
        """Each head begins `n_heads` features after the one before it. A head has d_head of them, so the heads overlap,
        or leave features out. Head 1 must go on where head 0 ends: how far is that?"""
        d_head = x.shape[-1] // n_heads
        places = n_heads * torch.arange(n_heads)[:, None] + torch.arange(d_head)
        return x[..., places.clamp(max=x.shape[-1] - 1)].transpose(1, 2)

    def blocks_of_n_heads_features(x, n_heads):
        """The blocks have `n_heads` features each, and the features after them are lost: both ends of your slice count
        in steps of `n_heads`. Head 1 begins where head 0 ends. How many features has a head?"""
        blocks = [x[..., head * n_heads : (head + 1) * n_heads] for head in range(n_heads)]
        return torch.stack(blocks, dim=1)

    @family(
        heads_joined_along_seq=(1, "(batch, heads · seq, d_head): the heads stand one below the other on one axis"),
        heads_joined_along_the_batch=(
            0,
            "(heads · batch, seq, d_head): the heads stand one after the other on the axis of the batch",
        ),
    )
    def joined(axis, x, n_heads):
        """Your result is {}. `cat` joins along an axis that is there, and `stack` makes a new one."""
        return torch.cat(x.chunk(n_heads, dim=-1), dim=axis)

    def scaled(x, n_heads):
        """{The heads are right, and} every number is divided by the root of d_head. That scale belongs to the scores,
        later. To split only moves numbers: each must come out as it went in."""
        d_head = x.shape[-1] // n_heads
        return split_heads.reference(x, n_heads) / d_head**0.5
