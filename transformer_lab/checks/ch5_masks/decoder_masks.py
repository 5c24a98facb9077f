"""The two masks of a decoder."""

import torch

from ..common_mistakes import fixed_length
from ..exercise import exercise, family, with_text_of
from .causal_mask import causal_mask
from .padding_mask import padding_mask, some_lengths


def _sentences(draw, batch=3, t_len=7, s_len=5):
    return some_lengths(draw, batch, t_len), some_lengths(draw, batch, s_len), t_len, s_len


def _causal(seq, lengths):
    return causal_mask.reference(seq).to(lengths.device)


def no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len):
    """Hide from each target token what comes after it, and padding."""
    return _causal(t_len, target_lengths) & padding_mask.reference(target_lengths, t_len)


def no_padding_of_the_source(target_lengths, source_lengths, t_len, s_len):
    """Hide the padding of the source."""
    return padding_mask.reference(source_lengths, s_len)


def own_mask_first(own, cross):
    """Return the two masks, the decoder's own first."""
    return own, cross


@exercise(
    inputs=_sentences,
    axes={
        "target_lengths": "batch",
        "source_lengths": "batch",
        "return": "batch heads t_len t_len, batch heads q_len s_len",
    },
    hints=(
        "The decoder attends twice: to its own tokens and to the encoder's tokens. To whom do the keys belong each "
        "time, and which of the keys must the decoder not see?",
        "For the decoder's own tokens, hide the future and the padding, both at once. For the encoder's tokens, hide "
        "the padding of the source. The source is complete, so there is no future to hide.",
        "First `causal_mask(…) … padding_mask(…, …)`, then, as the second mask, `padding_mask(…, …)`",
    ),
)
def decoder_masks(
    target_lengths,
    source_lengths,
    t_len,
    s_len,
    *,
    own=no_future_and_no_padding,
    cross=no_padding_of_the_source,
    returned=own_mask_first,
):
    """Return the decoder's two masks, (batch, 1, t_len, t_len) for its own tokens, (batch, 1, 1, s_len) for the
    source."""
    arguments = target_lengths, source_lengths, t_len, s_len
    return returned(own(*arguments), cross(*arguments))


@decoder_masks.right
class RightAnswers:
    def by_comparisons(target_lengths, source_lengths, t_len, s_len):
        t, s = torch.arange(t_len, device=target_lengths.device), torch.arange(s_len, device=source_lengths.device)
        own = (t[None, :] <= t[:, None]) & (t < target_lengths.view(-1, 1, 1, 1))
        return own, s < source_lengths.view(-1, 1, 1, 1)

    def by_triangles(target_lengths, source_lengths, t_len, s_len):
        rows = torch.stack([torch.arange(t_len) < n for n in target_lengths.cpu()]).to(target_lengths.device)
        own = torch.tril(rows[:, None, None].expand(-1, 1, t_len, t_len).float()).bool()
        keys = torch.arange(s_len, device=source_lengths.device).expand(len(source_lengths), 1, 1, s_len)
        return [own, ~(keys >= source_lengths[:, None, None, None])]

    def by_product(target_lengths, source_lengths, t_len, s_len):
        own = _causal(t_len, target_lengths)[None, None] * padding_mask.reference(target_lengths, t_len)
        return own, padding_mask.reference(source_lengths, s_len)

    def by_what_is_hidden(target_lengths, source_lengths, t_len, s_len):
        future = ~_causal(t_len, target_lengths)
        own = torch.logical_or(future, ~padding_mask.reference(target_lengths, t_len)).logical_not()
        return own, padding_mask.reference(source_lengths, s_len)


decoder_masks.example("source and target of one length", torch.tensor([4, 2]), torch.tensor([3, 4]), 4, 4, plain=True)
decoder_masks.example("texts of 300 tokens", torch.tensor([300, 40]), torch.tensor([301, 20]), 300, 301)
decoder_masks.example("a batch of one", torch.tensor([3]), torch.tensor([2]), 4, 3)
decoder_masks.example("sentences without padding", torch.tensor([4, 4]), torch.tensor([3, 3]), 4, 3)
decoder_masks.example("sentences of one token", torch.tensor([1, 1]), torch.tensor([1, 1]), 1, 1)


@decoder_masks.property
def nobody_sees_the_future(function, *arguments):
    """No target token may see a later one."""
    own, _ = function(*arguments)
    return not bool(own.float().triu(1).any())


@decoder_masks.property
def all_of_the_source(function, target_lengths, source_lengths, *lengths):
    """Every word of the source may be seen, by every target token."""
    _, cross = function(target_lengths, source_lengths, *lengths)
    return torch.equal(cross.reshape(len(source_lengths), -1).sum(-1), source_lengths)


def masks_of_a_fixed_table(target_lengths, source_lengths, t_len, s_len):
    own, cross = decoder_masks.reference(target_lengths, source_lengths, 64, 64)
    return own[..., :t_len, :t_len], cross[..., :s_len]


@decoder_masks.wrong(stage="own")
class Own:
    def no_causal_part(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask hides the padding, and not the future: in training each token can see the one that it
        has to predict. The loss falls quickly, and generation fails. Two conditions must hold at once."""
        return padding_mask.reference(target_lengths, t_len)

    def no_causal_part_in_full(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask has its full size, hides the padding, and does not hide the future: in training each
        token can see the one that it has to predict. The loss falls quickly, and generation fails. Two conditions must
        hold at once."""
        return padding_mask.reference(target_lengths, t_len).expand(-1, 1, t_len, -1)

    def no_target_padding(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask is causal, and the padding of the target is missing in it. With padding at the end
        only padded queries could see it, so the loss may not notice; with padding anywhere else it leaks. Both
        conditions are asked for, and with the padding every sentence has a table of its own."""
        return causal_mask.reference(t_len)

    def no_target_padding_in_full(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask has its full size and is causal, and the padding of the target is not hidden in it.
        With padding at the end only padded queries could see it, so the loss may not notice; with padding anywhere else
        it leaks. Both conditions are asked for."""
        return causal_mask.reference(t_len).expand(len(target_lengths), 1, t_len, t_len)

    def one_or_the_other(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask a key is visible if it is in the past or is no padding: one of the two is enough,
        as with `|` or `+`. So the future of the sentence shows, and for late queries padding as well. A key must pass
        both."""
        return causal_mask.reference(t_len) | padding_mask.reference(target_lengths, t_len)

    def causal_inverted(target_lengths, source_lengths, t_len, s_len):
        """The causal part of the decoder's own mask is inverted: it sees the future and not the past. `True` means may
        attend."""
        return ~causal_mask.reference(t_len) & padding_mask.reference(target_lengths, t_len)

    def causal_turned(target_lengths, source_lengths, t_len, s_len):
        """The causal part of the decoder's own mask is the other triangle: each token sees itself and what comes after
        it. Rows are queries and columns are keys."""
        return causal_mask.reference(t_len).mT & padding_mask.reference(target_lengths, t_len)

    def itself_hidden(target_lengths, source_lengths, t_len, s_len):
        """The causal part of the decoder's own mask hides the diagonal: no token sees itself, and the first sees
        nothing. It may look at itself, because what it must predict is the token after it."""
        return causal_mask.reference(t_len).tril(-1) & padding_mask.reference(target_lengths, t_len)

    def own_padding_inverted(target_lengths, source_lengths, t_len, s_len):
        """The padding is inverted in the decoder's own mask: only padding is visible there, and that mostly lies in the
        future, so that rows see nothing. `True` means may attend."""
        return causal_mask.reference(t_len) & ~padding_mask.reference(target_lengths, t_len)

    def own_mask_inverted(target_lengths, source_lengths, t_len, s_len):
        """The whole of the decoder's own mask is inverted: it is `True` on the future and on the padding. PyTorch's
        modules mean it like that, where `True` is ignored. In this course `True` means may attend."""
        return ~no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len)

    def own_mask_from_the_source(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask the padding is taken from the lengths of the source. The keys there are the
        decoder's own tokens: which lengths count those?"""
        return causal_mask.reference(t_len) & padding_mask.reference(source_lengths, t_len)

    def padded_queries_hidden(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask the rows of padded queries are all `False`: they see nothing, which is where NaN
        comes from. Padding is hidden as a key, in columns. What a padded query finds, nobody reads."""
        padding = padding_mask.reference(target_lengths, t_len)
        return causal_mask.reference(t_len) & padding & padding.mT

    def one_token_too_far(target_lengths, source_lengths, t_len, s_len):
        """The causal part of the decoder's own mask ends one diagonal too late: each token sees the one that comes
        after it, the very token which it has to predict. Which diagonal does your triangle end at?"""
        return torch.ones(t_len, t_len, dtype=torch.bool).tril(1) & padding_mask.reference(target_lengths, t_len)

    def own_padding_one_key_too_many(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask one key of the padding is still visible: with a length of 2 the positions 0 and 1
        are real. Positions are counted from 0. Look at the comparison with the lengths."""
        return causal_mask.reference(t_len) & padding_mask.reference(target_lengths + 1, t_len)

    def both_paddings_in_the_own_mask(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask hides the padding of the source as well as that of the target. Both masks know only
        their own keys: in the decoder's own attention the source has no part."""
        own = no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len)
        return own & padding_mask.reference(source_lengths, t_len)

    def own_padding_one_key_too_few(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask the last real token of every sentence is hidden as if it were padding: with a
        length of 2 the positions 0 and 1 are real. Positions are counted from 0. Look at the comparison with the
        lengths."""
        return causal_mask.reference(t_len) & padding_mask.reference(target_lengths - 1, t_len)

    def own_padding_in_front(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask hides the first places of a sentence and keeps the last ones, as if the padding came
        first. Sentences begin at position 0 and are filled up at the end: which positions are smaller than the
        length?"""
        return causal_mask.reference(t_len) & padding_mask.reference(target_lengths, t_len).flip(-1)

    def own_mask_as_long_as_the_longest(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask is as large as the longest sentence of this batch. The batch can have more places than
        that: how many there are is not to be found in the lengths. Which argument says it?"""
        longest = int(target_lengths.max())
        return causal_mask.reference(longest) & padding_mask.reference(target_lengths, longest)

    def no_target_padding_for_any_sentence(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask is causal and the same for all sentences, (1, 1, t_len, t_len): the padding of the
        target is missing in it. Both conditions are asked for, and with the padding every sentence has a table of its
        own."""
        return causal_mask.reference(t_len)[None, None]


@decoder_masks.wrong(stage="own", alone=True)
class OwnAlone:
    @family(
        the_word_and=lambda causal, padding: causal and padding,
        the_word_and_after_the_padding=lambda causal, padding: padding and causal,
        the_word_not=lambda causal, padding: not (causal & padding),
    )
    def a_word_of_python(joined, target_lengths, source_lengths, t_len, s_len):
        """Python's words `and`, `or`, `not` and `if` want one `True` or `False`, and ask the whole tensor for it:
        "Boolean value of Tensor with more than one value is ambiguous". Which signs work on bool tensors entry by
        entry?"""
        return joined(causal_mask.reference(t_len), padding_mask.reference(target_lengths, t_len))

    def padding_without_its_axes(target_lengths, source_lengths, t_len, s_len):
        """The causal mask, (t_len, t_len), is joined with a table of the padding, (batch, t_len), and the sentences
        meet the queries: mostly that raises. Each sentence needs a table of its own. Where do the two missing axes
        belong?"""
        return causal_mask.reference(t_len) & padding_mask.reference(target_lengths, t_len)[:, 0, 0]

    def one_without_the_other(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask a key is visible if just one of two holds: it is in the past, or it is no padding.
        `^` works like that, and hides the real tokens of the past, of which both are true. A key must pass both."""
        return causal_mask.reference(t_len) ^ padding_mask.reference(target_lengths, t_len)

    def padding_behind_the_longest_alone(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask every sentence has the padding of the longest one: of the shorter ones some padding
        stays visible. Each sentence has a length of its own. What takes all of them at once, each in its row?"""
        longest = target_lengths.max().expand(len(target_lengths))
        return causal_mask.reference(t_len) & padding_mask.reference(longest, t_len)

    def own_padding_of_the_first_sentence(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask every sentence has the padding of the first one. Each sentence has a length of its
        own. What takes all of them at once, each in its row?"""
        first = target_lengths[:1].expand(len(target_lengths))
        return causal_mask.reference(t_len) & padding_mask.reference(first, t_len)

    def padded_queries_see_everything(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask the rows of padded queries are all `True`. That saves them from seeing nothing; but
        they see nothing only where every key is hidden, and the first one is real. What a padded query finds, nobody
        reads."""
        padding = padding_mask.reference(target_lengths, t_len)
        return causal_mask.reference(t_len) & padding | ~padding.mT

    def own_mask_with_an_axis_too_many(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask {has the right numbers, and} has an axis too many: (batch, 1, 1, t_len, t_len).
        `padding_mask` brings the axis for the heads with it. Which line adds another?"""
        return no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len)[:, None]

    @family(
        triangle_of_numbers=lambda triangle, padding: triangle & padding,
        padding_with_a_triangle_of_numbers=lambda triangle, padding: padding & triangle,
    )
    def numbers_and_bools(joined, target_lengths, source_lengths, t_len, s_len):
        """A triangle made of `torch.ones` has the numbers 1 and 0, in floating point, and `&` refuses those: it joins
        `True` and `False`, bit by bit. What must `ones` be told, so that the triangle is of bool?"""
        return joined(torch.ones(t_len, t_len).tril(), padding_mask.reference(target_lengths, t_len))

    def causal_part_of_the_source(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask the causal part has the size of the source, (s_len, s_len), and the padding that of
        the target: it raises. Queries and keys are the decoder's own tokens there. How many places do those have?"""
        return causal_mask.reference(s_len) & padding_mask.reference(target_lengths, t_len)

    def own_padding_of_the_sources_size(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask the causal part has the size of the target, and the padding that of the source:
        t_len and s_len keys do not fit together, and it raises. How many places do the decoder's own tokens have?"""
        return causal_mask.reference(t_len) & padding_mask.reference(target_lengths, s_len)

    def lengths_without_their_axis(target_lengths, source_lengths, t_len, s_len):
        """The positions, (t_len,), are compared with the lengths, (batch,), as they are: broadcasting aligns from the
        right, positions meet sentences, and mostly that raises. Every sentence needs a row of its own. Which axis do
        the lengths lack?"""
        return causal_mask.reference(t_len) & (torch.arange(t_len, device=target_lengths.device) < target_lengths)

    def own_mask_turned(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask rows and columns have changed places: tokens see what comes after them, and padding
        is hidden in rows. Rows are queries and columns are keys. Which index counts which?"""
        return no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len).mT

    def sentences_on_the_axis_of_heads(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask {the numbers are right, and} the first two axes have changed places: (1, batch,
        t_len, t_len). Sentences come first; the axis of size 1 is for the heads. Where is the new axis put?"""
        return no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len).transpose(0, 1)

    def own_mask_additive(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask is one to add to scores: 0 where attention is allowed, -inf where it is not. Here
        masks of `True` and `False` are asked for; turning one into the other kind is `to_additive`."""
        own = no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len)
        return torch.zeros(own.shape).masked_fill(~own, float("-inf"))


@decoder_masks.wrong(stage="cross")
class Cross:
    def source_padding_inverted(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source is inverted: the decoder looks at the padding of the source and at none of its words.
        `True` means may attend."""
        return ~padding_mask.reference(source_lengths, s_len)

    def no_source_padding(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source hides nothing. There is no future in the source, and there is padding: this is the
        mask that people forget, because the encoder has hidden the same padding already. The decoder does not know of
        that."""
        return torch.ones(len(source_lengths), 1, 1, s_len, dtype=torch.bool)

    def cross_from_the_target(target_lengths, source_lengths, t_len, s_len):
        """The mask for cross-attention was made from the target's lengths. Its keys are the encoder's: the source's
        lengths say how many of them are real. Nothing complains, and words of the source are cut off, or its padding is
        read."""
        return padding_mask.reference(target_lengths, s_len)

    def cross_is_the_targets_padding(target_lengths, source_lengths, t_len, s_len):
        """The mask for cross-attention is the padding mask of the target, (batch, 1, 1, t_len). In cross-attention the
        queries come from the target and the keys from the source. Which of the two does a padding mask belong to?"""
        return padding_mask.reference(target_lengths, t_len)

    def cross_of_the_targets_size(target_lengths, source_lengths, t_len, s_len):
        """The mask for cross-attention has the lengths of the source and the size of the target, (batch, 1, 1, t_len).
        Its keys are the words of the source: how many places do those have?"""
        return padding_mask.reference(source_lengths, t_len)

    def causal_towards_the_source(target_lengths, source_lengths, t_len, s_len):
        """The mask for cross-attention is causal as well: target token 0 may see only word 0 of the source. The whole
        source is known before the first word is written, so the decoder may read all of it. Only its padding is
        hidden."""
        return padding_mask.reference(source_lengths, s_len) & torch.ones(t_len, s_len, dtype=torch.bool).tril()

    def causal_within_the_source(target_lengths, source_lengths, t_len, s_len):
        """The mask for cross-attention is causal and has the shape (batch, 1, s_len, s_len), as if the source looked at
        itself. Its queries come from the target. And the whole source is known before the first word is written: only
        its padding is hidden."""
        return padding_mask.reference(source_lengths, s_len) & causal_mask.reference(s_len)

    def copied_for_every_target_token(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source is {right,} copied for every target token: (batch, 1, t_len, s_len). Broadcasting
        does that without the memory. An axis of size 1 is enough."""
        return padding_mask.reference(source_lengths, s_len).repeat(1, 1, t_len, 1)

    def source_padding_one_key_too_many(target_lengths, source_lengths, t_len, s_len):
        """In the mask for the source one key of the padding is still visible: with a length of 2 the positions 0 and 1
        are real. Positions are counted from 0. Look at the comparison with the lengths."""
        return padding_mask.reference(source_lengths + 1, s_len)

    def padded_queries_hidden_from_the_source(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source has a row for every target token, and the rows of padded ones are all `False`: they
        see nothing, which is where NaN comes from. Padding is hidden as a key, in columns. What a padded query finds,
        nobody reads."""
        return padding_mask.reference(source_lengths, s_len) & padding_mask.reference(target_lengths, t_len).mT

    def cross_only_causal(target_lengths, source_lengths, t_len, s_len):
        """The mask for cross-attention is a triangle, (t_len, s_len), and the padding of the source is not hidden in
        it. The whole source is known before the first word is written, so there is no future to hide, and there is
        padding."""
        return torch.ones(t_len, s_len, dtype=torch.bool).tril()

    def source_rows_and_columns(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source has the shape (batch, 1, s_len, s_len), with padding hidden in rows and in columns,
        as if the source looked at itself. In cross-attention the queries are the decoder's tokens. Which axis belongs
        to the source's keys?"""
        keys = padding_mask.reference(source_lengths, s_len)
        return keys & keys.mT

    def source_on_the_queries(target_lengths, source_lengths, t_len, s_len):
        """The padding of the source lies on the queries' axis: your second mask has the shape (batch, 1, s_len, 1). In
        cross-attention the queries are the decoder's tokens, and the source's words are the keys. Keys are the last
        axis."""
        return padding_mask.reference(source_lengths, s_len).mT

    def cross_without_axes(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source {has the right numbers, and} has the shape (batch, s_len). Against scores (batch,
        heads, t_len, s_len) the sentences would meet the target tokens. Which two axes does it lack?"""
        return padding_mask.reference(source_lengths, s_len)[:, 0, 0]

    def cross_without_the_heads_axis(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source {has the right numbers, and} has the shape (batch, 1, s_len). Against scores (batch,
        heads, t_len, s_len) the sentences then meet the heads, and with as many sentences as heads nothing complains.
        Which axis does it lack?"""
        return padding_mask.reference(source_lengths, s_len)[:, 0]

    def source_padding_one_key_too_few(target_lengths, source_lengths, t_len, s_len):
        """In the mask for the source the last real word of every sentence is hidden as if it were padding: with a
        length of 2 the positions 0 and 1 are real. Positions are counted from 0. Look at the comparison with the
        lengths."""
        return padding_mask.reference(source_lengths - 1, s_len)

    def source_padding_in_front(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source hides the first places of a sentence and keeps the last ones, as if the padding came
        first. Sentences begin at position 0 and are filled up at the end: which positions are smaller than the
        length?"""
        return padding_mask.reference(source_lengths, s_len).flip(-1)

    def cross_as_long_as_the_longest(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source has as many keys as the longest source sentence of this batch has words. The batch
        can have more places than that: how many there are is not to be found in the lengths. Which argument says it?"""
        return padding_mask.reference(source_lengths, int(source_lengths.max()))

    def only_causal_within_the_source(target_lengths, source_lengths, t_len, s_len):
        """The second mask is a triangle, (s_len, s_len), as if the source looked at itself, and the padding is not
        hidden in it. In cross-attention the queries come from the target, and there is no future in the source. What
        has it?"""
        return causal_mask.reference(s_len)


@decoder_masks.wrong(stage="cross", alone=True)
class CrossAlone:
    def causal_mask_of_the_target_for_the_source(target_lengths, source_lengths, t_len, s_len):
        """The padding of the source is joined with the causal mask of the target. One has s_len keys and the other
        t_len: it raises, and with equal lengths it hides words of the source. The whole source is known before the
        first word is written, so the decoder may read all of it."""
        return padding_mask.reference(source_lengths, s_len) & causal_mask.reference(t_len)

    def both_paddings_towards_the_source(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source joins the padding of the source with that of the target, both on the axis of the
        keys. One has s_len keys and the other t_len: it raises, and with equal lengths it hides words of the source.
        Whose keys does cross-attention look at?"""
        return padding_mask.reference(source_lengths, s_len) & padding_mask.reference(target_lengths, t_len)

    def cross_with_an_axis_too_many(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source {has the right numbers, and} has an axis too many: (batch, 1, 1, 1, s_len).
        `padding_mask` brings the axes for heads and queries with it. Which line adds another?"""
        return padding_mask.reference(source_lengths, s_len)[:, None]

    def source_padding_of_the_first_sentence(target_lengths, source_lengths, t_len, s_len):
        """In the mask for the source every sentence has the padding of the first one. Each sentence has a length of its
        own. What takes all of them at once, each in its row?"""
        return padding_mask.reference(source_lengths[:1].expand(len(source_lengths)), s_len)

    def source_padding_behind_the_longest_alone(target_lengths, source_lengths, t_len, s_len):
        """In the mask for the source every sentence has the padding of the longest one: of the shorter ones some
        padding stays visible. Each sentence has a length of its own. What takes all of them at once, each in its
        row?"""
        return padding_mask.reference(source_lengths.max().expand(len(source_lengths)), s_len)

    def source_mask_additive(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source is one to add to scores: 0 where attention is allowed, -inf where it is not. Here
        masks of `True` and `False` are asked for; turning one into the other kind is `to_additive`."""
        hidden = ~padding_mask.reference(source_lengths, s_len)
        return torch.zeros(hidden.shape).masked_fill(hidden, float("-inf"))

    def causal_towards_the_end_of_the_source(target_lengths, source_lengths, t_len, s_len):
        """The mask for cross-attention is causal as well, so that early target tokens miss words of the source. The
        whole source is known before the first word is written, so the decoder may read all of it. Only its padding is
        hidden."""
        causal = torch.ones(t_len, s_len, dtype=torch.bool).tril(s_len - t_len)
        return padding_mask.reference(source_lengths, s_len) & causal

    @with_text_of(Cross.cross_only_causal)
    def cross_only_causal_towards_the_end(target_lengths, source_lengths, t_len, s_len):
        return torch.ones(t_len, s_len, dtype=torch.bool).tril(s_len - t_len)

    def copied_for_every_source_word(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source is copied for every word of the source: (batch, 1, s_len, s_len). In cross-attention
        the queries come from the target, and an axis of size 1 serves all of them."""
        return padding_mask.reference(source_lengths, s_len).repeat(1, 1, s_len, 1)

    def no_mask_for_the_source(target_lengths, source_lengths, t_len, s_len):
        """In place of the second mask you return `None`. There is no future in the source, and there is padding, and
        the decoder must not see that either: it has a mask of its own."""
        return None


@decoder_masks.wrong(stage="returned")
class Returned:
    def exchanged(own, cross):
        """The two masks are in the wrong order. First comes the one for the decoder's own tokens, then the one for the
        source."""
        return cross, own

    def both_as_numbers(own, cross):
        """Both masks are made of the numbers 1 and 0. PyTorch's attention adds a mask of numbers to the scores, and
        hides nothing with it. `True` and `False` are asked for: comparisons give them, and `&` keeps them."""
        return own.float(), cross.float()

    def both_additive(own, cross):
        """These are masks to add to scores: 0 where attention is allowed, -inf where it is not. Here masks of `True`
        and `False` are asked for; turning one into the other kind is `to_additive`."""
        return tuple(torch.zeros(mask.shape).masked_fill(~mask, float("-inf")) for mask in (own, cross))

    def own_mask_alone(own, cross):
        """You return one mask, the decoder's own. Two are asked for: the decoder also looks at the source, and must not
        see the padding there. What does the docstring say comes second?"""
        return own


@decoder_masks.wrong(stage="returned", alone=True)
class ReturnedAlone:
    def one_mask_for_both(own, cross):
        """The second mask is the first once more. In cross-attention the queries come from the target and the keys from
        the source: there is no future to hide, and other padding."""
        return own, own

    def the_first_sentence_only(own, cross):
        """You return the masks of the first sentence alone, (t_len, t_len) and (s_len,). A `return` inside a loop ends
        it in its first round. Every sentence has a table of its own, and axes of size 1 go with it."""
        return own[0, 0], cross[0, 0, 0]

    def stacked(own, cross):
        """You stack the two masks, and they have different shapes: it raises. They belong to two attentions and stay
        two tensors. How does a function return two things?"""
        return torch.stack([own, cross])


@decoder_masks.wrong
class WrongAnswers:
    def causal_and_padding_apart(target_lengths, source_lengths, t_len, s_len):
        """You return three masks: the causal one and the target's padding are still two. In the decoder's own attention
        both hold at once, so they make one mask. Which sign joins them?"""
        paddings = padding_mask.reference(target_lengths, t_len), padding_mask.reference(source_lengths, s_len)
        return causal_mask.reference(t_len), *paddings

    def source_and_target_exchanged(target_lengths, source_lengths, t_len, s_len):
        """Source and target have changed roles: your first mask is causal over the source, and the second hides the
        padding of the target. The decoder writes the target, so that is where the future must be hidden."""
        return decoder_masks.reference(source_lengths, target_lengths, s_len, t_len)


fixed_length(decoder_masks, masks_of_a_fixed_table, "texts of 300 tokens")
