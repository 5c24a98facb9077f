"""The two masks of a decoder."""

import torch

from ..common_mistakes import fixed_length
from ..exercise import exercise, family, with_text_of
from .causal_mask import causal_mask
from .padding_mask import padding_mask, random_lengths


def _lengths_and_sizes(draw, batch=3, t_len=7, s_len=5):
    return random_lengths(draw, batch, t_len), random_lengths(draw, batch, s_len), t_len, s_len


def _causal_mask(seq, lengths):
    return causal_mask.reference(seq).to(lengths.device)


def no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len):
    """Hide the later tokens and the padding from each target token."""
    return _causal_mask(t_len, target_lengths) & padding_mask.reference(target_lengths, t_len)


def no_padding_of_the_source(target_lengths, source_lengths, t_len, s_len):
    """Hide the padding of the source."""
    return padding_mask.reference(source_lengths, s_len)


def own_mask_first(own, cross):
    """Return the two masks, the decoder's own mask first."""
    return own, cross


@exercise(
    inputs=_lengths_and_sizes,
    axes={
        "target_lengths": "batch",
        "source_lengths": "batch",
        "return": "batch heads t_len t_len, batch heads q_len s_len",
    },
    hints=(
        "The decoder attends twice: to its own tokens and to the encoder's tokens. Whose tokens are the keys each "
        "time, and which keys must be hidden?",
        "One mask is for the decoder's own tokens: it hides both the future and the padding. The other mask is for the "
        "encoder's tokens: it hides only the padding, since no token of the source is in the future.",
        "first `causal_mask(…) … padding_mask(…, …)`, then, as a second mask, `padding_mask(…, …)`",
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
    """Return the decoder's two masks: the mask for its own tokens has shape (batch, 1, t_len, t_len), and the mask for
    the source has shape (batch, 1, 1, s_len)."""
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
        own = _causal_mask(t_len, target_lengths)[None, None] * padding_mask.reference(target_lengths, t_len)
        return own, padding_mask.reference(source_lengths, s_len)

    def by_inverting_what_is_hidden(target_lengths, source_lengths, t_len, s_len):
        future = ~_causal_mask(t_len, target_lengths)
        own = torch.logical_or(future, ~padding_mask.reference(target_lengths, t_len)).logical_not()
        return own, padding_mask.reference(source_lengths, s_len)


decoder_masks.example("source and target of one length", torch.tensor([4, 2]), torch.tensor([3, 4]), 4, 4, plain=True)
decoder_masks.example("texts of 300 tokens", torch.tensor([300, 40]), torch.tensor([301, 20]), 300, 301)
decoder_masks.example("a batch of one", torch.tensor([3]), torch.tensor([2]), 4, 3)
decoder_masks.example("sentences without padding", torch.tensor([4, 4]), torch.tensor([3, 3]), 4, 3)
decoder_masks.example("sentences of one token", torch.tensor([1, 1]), torch.tensor([1, 1]), 1, 1)


@decoder_masks.property
def no_token_sees_the_future(function, *arguments):
    """No target token may see a later target token."""
    own, _ = function(*arguments)
    return not bool(own.float().triu(1).any())


@decoder_masks.property
def every_source_word_is_visible(function, target_lengths, source_lengths, *sizes):
    """Every target token may see every word of the source."""
    _, cross = function(target_lengths, source_lengths, *sizes)
    return torch.equal(cross.reshape(len(source_lengths), -1).sum(-1), source_lengths)


def masks_cut_from_a_fixed_table(target_lengths, source_lengths, t_len, s_len):
    own, cross = decoder_masks.reference(target_lengths, source_lengths, 64, 64)
    return own[..., :t_len, :t_len], cross[..., :s_len]


@decoder_masks.wrong(stage="own")
class Own:
    def no_causal_part(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask hides the padding but not the future: in training, each token can see the token that
        it has to predict. The loss falls quickly, but generation fails. The mask must hide both the future and the
        padding."""
        return padding_mask.reference(target_lengths, t_len)

    def no_causal_part_in_full(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask has its full size and hides the padding, but it does not hide the future: in training,
        each token can see the token that it has to predict. The loss falls quickly, but generation fails. The mask must
        hide both the future and the padding."""
        return padding_mask.reference(target_lengths, t_len).expand(-1, 1, t_len, -1)

    def no_target_padding(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask is causal, but does not hide the padding of the target. With padding at the end, only
        padded queries can see it, so the loss may not show the mistake; padding in front would be visible to real
        queries. The mask must hide both the future and the padding, and because of the padding, every sentence needs
        its own table."""
        return causal_mask.reference(t_len)

    def no_target_padding_in_full(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask has its full size and is causal, but it does not hide the padding of the target. With
        padding at the end, only padded queries can see it, so the loss may not show the mistake; padding in front would
        be visible to real queries. The mask must hide both the future and the padding."""
        return causal_mask.reference(t_len).expand(len(target_lengths), 1, t_len, t_len)

    def either_condition_is_enough(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask, a key is visible if it is in the past or is not padding: one of the two conditions
        is enough, as with `|` or `+`. So the future of the sentence is visible, and late queries also see the padding.
        A key must meet both conditions."""
        return causal_mask.reference(t_len) | padding_mask.reference(target_lengths, t_len)

    def causal_inverted(target_lengths, source_lengths, t_len, s_len):
        """The causal part of the decoder's own mask is inverted: a token sees the future but not the past. `True` means
        may attend."""
        return ~causal_mask.reference(t_len) & padding_mask.reference(target_lengths, t_len)

    def causal_triangle_reversed(target_lengths, source_lengths, t_len, s_len):
        """The causal part of the decoder's own mask is the wrong triangle: each token sees itself and what comes after
        it. Rows are queries and columns are keys."""
        return causal_mask.reference(t_len).mT & padding_mask.reference(target_lengths, t_len)

    def diagonal_hidden(target_lengths, source_lengths, t_len, s_len):
        """The causal part of the decoder's own mask hides the diagonal: no token sees itself, and the first token sees
        nothing. A token may attend to itself, because it must predict the token after it."""
        return causal_mask.reference(t_len).tril(-1) & padding_mask.reference(target_lengths, t_len)

    def own_padding_inverted(target_lengths, source_lengths, t_len, s_len):
        """The padding is inverted in the decoder's own mask: only padding is visible, and most padding is in the
        future, so some rows see nothing. `True` means may attend."""
        return causal_mask.reference(t_len) & ~padding_mask.reference(target_lengths, t_len)

    def own_mask_inverted(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask is inverted as a whole: it is `True` for the future and for the padding. PyTorch's
        modules use this convention: they ignore keys where a mask is `True`. In this course `True` means may attend."""
        return ~no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len)

    def own_mask_from_the_source(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask, you compute the padding from the lengths of the source. The keys of this mask are
        the decoder's own tokens: which lengths count these tokens?"""
        return causal_mask.reference(t_len) & padding_mask.reference(source_lengths, t_len)

    def padded_queries_hidden(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask, the rows of padded queries are all `False`: these queries see nothing, which
        causes NaN. Hide padding as keys, in columns. Nobody reads the output of a padded query."""
        padding = padding_mask.reference(target_lengths, t_len)
        return causal_mask.reference(t_len) & padding & padding.mT

    def one_token_too_far(target_lengths, source_lengths, t_len, s_len):
        """The causal part of the decoder's own mask ends one diagonal too late: each token sees the token after it,
        which it has to predict. At which diagonal does your triangle end?"""
        return torch.ones(t_len, t_len, dtype=torch.bool).tril(1) & padding_mask.reference(target_lengths, t_len)

    def own_padding_one_key_too_many(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask, one key of the padding is still visible: with a length of 2, the positions 0 and 1
        are real. Positions are counted from 0. Check the comparison with the lengths."""
        return causal_mask.reference(t_len) & padding_mask.reference(target_lengths + 1, t_len)

    def both_paddings_in_the_own_mask(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask hides the padding of the source as well as the padding of the target. Each mask may
        hide only the keys of its own attention: in the decoder's own attention, no key belongs to the source."""
        own = no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len)
        return own & padding_mask.reference(source_lengths, t_len)

    def own_padding_one_key_too_few(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask, the last real token of every sentence is hidden as if it were padding: with a
        length of 2, the positions 0 and 1 are real. Positions are counted from 0. Check the comparison with the
        lengths."""
        return causal_mask.reference(t_len) & padding_mask.reference(target_lengths - 1, t_len)

    def own_padding_in_front(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask hides the first places of a sentence and keeps the last places, as if the padding came
        first. Sentences begin at position 0 and are padded at the end: which positions are smaller than the length?"""
        return causal_mask.reference(t_len) & padding_mask.reference(target_lengths, t_len).flip(-1)

    def own_mask_as_long_as_the_longest(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask is as large as the longest sentence of this batch. The batch can be padded beyond that
        length, and you cannot compute its padded size from the lengths. Which argument holds this size?"""
        longest = int(target_lengths.max())
        return causal_mask.reference(longest) & padding_mask.reference(target_lengths, longest)

    def no_target_padding_for_any_sentence(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask is causal and the same for all sentences, (1, 1, t_len, t_len): it does not hide the
        padding of the target. The mask must hide both the future and the padding, and because of the padding, every
        sentence needs its own table."""
        return causal_mask.reference(t_len)[None, None]


@decoder_masks.wrong(stage="own", alone=True)
class OwnAlone:
    @family(
        the_word_and=lambda causal, padding: causal and padding,
        the_word_and_after_the_padding=lambda causal, padding: padding and causal,
        the_word_not=lambda causal, padding: not (causal & padding),
    )
    def python_keyword(combine, target_lengths, source_lengths, t_len, s_len):
        """Python's words `and`, `or`, `not` and `if` need one `True` or `False`, and try to convert the whole tensor:
        "Boolean value of Tensor with more than one value is ambiguous". Which operators work on bool tensors entry by
        entry?"""
        return combine(causal_mask.reference(t_len), padding_mask.reference(target_lengths, t_len))

    def padding_without_its_axes(target_lengths, source_lengths, t_len, s_len):
        """You combine the causal mask, (t_len, t_len), with a table of the padding, (batch, t_len), so the sentences
        line up with the queries, which raises an error for most sizes. Each sentence needs its own table. Where do the
        two missing axes belong?"""
        return causal_mask.reference(t_len) & padding_mask.reference(target_lengths, t_len)[:, 0, 0]

    def exactly_one_condition(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask, a key is visible if exactly one condition holds: it is in the past, or it is not
        padding. `^` works in this way, and hides the real tokens of the past, which meet both conditions. A key must
        meet both conditions."""
        return causal_mask.reference(t_len) ^ padding_mask.reference(target_lengths, t_len)

    def padding_of_the_longest_alone(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask, every sentence has the padding of the longest sentence, so some padding of the
        shorter sentences stays visible. Each sentence has its own length. How can you compare the positions with all
        lengths at once, in one row for each length?"""
        longest = target_lengths.max().expand(len(target_lengths))
        return causal_mask.reference(t_len) & padding_mask.reference(longest, t_len)

    def own_padding_of_the_first_sentence(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask, every sentence has the padding of the first sentence. Each sentence has its own
        length. How can you compare the positions with all lengths at once, in one row for each length?"""
        first = target_lengths[:1].expand(len(target_lengths))
        return causal_mask.reference(t_len) & padding_mask.reference(first, t_len)

    def padded_queries_see_everything(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask, the rows of padded queries are all `True`. This is meant to avoid queries that see
        nothing, but every query sees the first key anyway, because this key is real. Nobody reads the output of a
        padded query."""
        padding = padding_mask.reference(target_lengths, t_len)
        return causal_mask.reference(t_len) & padding | ~padding.mT

    def own_mask_with_an_axis_too_many(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask {has the right numbers, but} has one axis too many: (batch, 1, 1, t_len, t_len).
        `padding_mask` returns a mask that already has the axis for the heads. Which line adds a second one?"""
        return no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len)[:, None]

    @family(
        triangle_of_numbers=lambda triangle, padding: triangle & padding,
        padding_with_a_triangle_of_numbers=lambda triangle, padding: padding & triangle,
    )
    def bitwise_and_of_numbers(combine, target_lengths, source_lengths, t_len, s_len):
        """A triangle made with `torch.ones` holds the floating-point numbers 1 and 0, and `&` does not accept them: it
        combines `True` and `False`, bit by bit. Which argument of `ones` makes the triangle bool?"""
        return combine(torch.ones(t_len, t_len).tril(), padding_mask.reference(target_lengths, t_len))

    def causal_part_of_the_source(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask, the causal part has the size of the source, (s_len, s_len), but the padding has
        the size of the target, so your function raises an error. In this mask, both the queries and the keys are the
        decoder's own tokens. How many places does the target have?"""
        return causal_mask.reference(s_len) & padding_mask.reference(target_lengths, t_len)

    def own_padding_as_wide_as_the_source(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask, the causal part has the size of the target, but the padding has the size of the
        source: t_len and s_len keys do not fit together, so your function raises an error. How many places does the
        target have?"""
        return causal_mask.reference(t_len) & padding_mask.reference(target_lengths, s_len)

    def lengths_without_their_axis(target_lengths, source_lengths, t_len, s_len):
        """You compare the positions, (t_len,), with the lengths, (batch,), as they are: broadcasting aligns from the
        right, so positions line up with sentences, which raises an error for most sizes. Every sentence needs its own
        row. Which axis do the lengths lack?"""
        return causal_mask.reference(t_len) & (torch.arange(t_len, device=target_lengths.device) < target_lengths)

    def own_mask_transposed(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask, rows and columns are exchanged: tokens see what comes after them, and padding is
        hidden in rows. Rows are queries and columns are keys. Which index counts the queries?"""
        return no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len).mT

    def sentences_on_the_axis_of_heads(target_lengths, source_lengths, t_len, s_len):
        """In the decoder's own mask, {the numbers are right, but} the first two axes are exchanged: (1, batch, t_len,
        t_len). Sentences come first; the axis of size 1 is for the heads. Where do you insert the new axis?"""
        return no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len).transpose(0, 1)

    def own_mask_additive(target_lengths, source_lengths, t_len, s_len):
        """The decoder's own mask is additive: 0 where attention is allowed, -inf where it is not. The exercise asks for
        masks of `True` and `False`; `to_additive` converts them."""
        own = no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len)
        return torch.zeros(own.shape).masked_fill(~own, float("-inf"))


@decoder_masks.wrong(stage="cross")
class Cross:
    def source_padding_inverted(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source is inverted: the decoder sees the padding of the source and none of its words. `True`
        means may attend."""
        return ~padding_mask.reference(source_lengths, s_len)

    def no_source_padding(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source hides nothing. The source has no future, but it has padding. People forget this mask
        because the encoder has hidden the same padding already, but the encoder's mask has no effect in the decoder's
        attention."""
        return torch.ones(len(source_lengths), 1, 1, s_len, dtype=torch.bool)

    def cross_from_the_target(target_lengths, source_lengths, t_len, s_len):
        """You make the mask for cross-attention from the target's lengths. The keys of this mask are the encoder's
        tokens: the source's lengths say how many of them are real. Nothing raises an error, but the mask hides words of
        the source or shows its padding."""
        return padding_mask.reference(target_lengths, s_len)

    def cross_is_the_targets_padding(target_lengths, source_lengths, t_len, s_len):
        """The mask for cross-attention is the padding mask of the target, (batch, 1, 1, t_len). In cross-attention the
        queries come from the target and the keys from the source. Does a padding mask hide queries or keys?"""
        return padding_mask.reference(target_lengths, t_len)

    def cross_of_the_targets_size(target_lengths, source_lengths, t_len, s_len):
        """The mask for cross-attention has the lengths of the source but the size of the target, (batch, 1, 1, t_len).
        Its keys are the words of the source: how many places does the source have?"""
        return padding_mask.reference(source_lengths, t_len)

    def causal_over_the_source(target_lengths, source_lengths, t_len, s_len):
        """The mask for cross-attention is also causal: target token 0 may see only word 0 of the source. The whole
        source is known before the decoder writes its first word, so the decoder may read all of it. Hide only its
        padding."""
        return padding_mask.reference(source_lengths, s_len) & torch.ones(t_len, s_len, dtype=torch.bool).tril()

    def causal_within_the_source(target_lengths, source_lengths, t_len, s_len):
        """The mask for cross-attention is causal and has the shape (batch, 1, s_len, s_len), as if the source attended
        to itself. Its queries come from the target. Also, the whole source is known before the decoder writes its first
        word: hide only its padding."""
        return padding_mask.reference(source_lengths, s_len) & causal_mask.reference(s_len)

    def copied_for_every_target_token(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source is {right, but} copied for every target token: (batch, 1, t_len, s_len). Broadcasting
        has the same effect without the extra memory. An axis of size 1 is enough."""
        return padding_mask.reference(source_lengths, s_len).repeat(1, 1, t_len, 1)

    def source_padding_one_key_too_many(target_lengths, source_lengths, t_len, s_len):
        """In the mask for the source, one key of the padding is still visible: with a length of 2, the positions 0 and
        1 are real. Positions are counted from 0. Check the comparison with the lengths."""
        return padding_mask.reference(source_lengths + 1, s_len)

    def padded_queries_hidden_from_the_source(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source has a row for every target token, and the rows of padded tokens are all `False`:
        these queries see nothing, which causes NaN. Hide padding as keys, in columns. Nobody reads the output of a
        padded query."""
        return padding_mask.reference(source_lengths, s_len) & padding_mask.reference(target_lengths, t_len).mT

    def cross_only_causal(target_lengths, source_lengths, t_len, s_len):
        """The mask for cross-attention is a triangle, (t_len, s_len), and does not hide the padding of the source. The
        whole source is known before the decoder writes its first word, so there is no future to hide, but there is
        padding."""
        return torch.ones(t_len, s_len, dtype=torch.bool).tril()

    def source_rows_and_columns(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source has the shape (batch, 1, s_len, s_len), with padding hidden in rows and in columns,
        as if the source attended to itself. In cross-attention the queries are the decoder's tokens. Which axis belongs
        to the source's keys?"""
        keys = padding_mask.reference(source_lengths, s_len)
        return keys & keys.mT

    def source_on_the_queries(target_lengths, source_lengths, t_len, s_len):
        """The padding of the source is on the axis of the queries: your second mask has the shape (batch, 1, s_len, 1).
        In cross-attention the queries are the decoder's tokens, and the keys are the source's words. Keys are on the
        last axis."""
        return padding_mask.reference(source_lengths, s_len).mT

    def cross_without_axes(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source {has the right numbers, but} has the shape (batch, s_len). With scores (batch, heads,
        t_len, s_len), its sentences line up with the target tokens. Which two axes does the mask lack?"""
        return padding_mask.reference(source_lengths, s_len)[:, 0, 0]

    def cross_without_the_heads_axis(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source {has the right numbers, but} has the shape (batch, 1, s_len). With scores (batch,
        heads, t_len, s_len), its sentences line up with the heads; if there are as many sentences as heads, nothing
        raises an error. Which axis does the mask lack?"""
        return padding_mask.reference(source_lengths, s_len)[:, 0]

    def source_padding_one_key_too_few(target_lengths, source_lengths, t_len, s_len):
        """In the mask for the source, the last real word of every sentence is hidden as if it were padding: with a
        length of 2, the positions 0 and 1 are real. Positions are counted from 0. Check the comparison with the
        lengths."""
        return padding_mask.reference(source_lengths - 1, s_len)

    def source_padding_in_front(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source hides the first places of a sentence and keeps the last places, as if the padding
        came first. Sentences begin at position 0 and are padded at the end: which positions are smaller than the
        length?"""
        return padding_mask.reference(source_lengths, s_len).flip(-1)

    def cross_as_long_as_the_longest(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source is as wide as the longest source sentence of this batch. The batch can be padded
        beyond that length, and you cannot compute its padded size from the lengths. Which argument holds this size?"""
        return padding_mask.reference(source_lengths, int(source_lengths.max()))

    def only_causal_within_the_source(target_lengths, source_lengths, t_len, s_len):
        """The second mask is a triangle, (s_len, s_len), as if the source attended to itself, and does not hide the
        padding. In cross-attention the queries come from the target, and there is no future in the source. Which keys
        of the source must be hidden?"""
        return causal_mask.reference(s_len)


@decoder_masks.wrong(stage="cross", alone=True)
class CrossAlone:
    def causal_mask_of_the_target_for_the_source(target_lengths, source_lengths, t_len, s_len):
        """You combine the padding of the source with the causal mask of the target. The first has s_len keys and the
        second has t_len: your function raises an error, or, if the two numbers are equal, hides words of the source.
        The whole source is known before the decoder writes its first word, so the decoder may read all of it."""
        return padding_mask.reference(source_lengths, s_len) & causal_mask.reference(t_len)

    def both_paddings_towards_the_source(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source combines the padding of the source with the padding of the target, both on the axis
        of the keys. The first has s_len keys and the second has t_len: your function raises an error, or, if the two
        numbers are equal, hides words of the source. Whose keys does cross-attention see?"""
        return padding_mask.reference(source_lengths, s_len) & padding_mask.reference(target_lengths, t_len)

    def cross_with_an_axis_too_many(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source {has the right numbers, but} has one axis too many: (batch, 1, 1, 1, s_len).
        `padding_mask` returns a mask that already has the axes for heads and queries. Which line adds another axis?"""
        return padding_mask.reference(source_lengths, s_len)[:, None]

    def source_padding_of_the_first_sentence(target_lengths, source_lengths, t_len, s_len):
        """In the mask for the source, every sentence has the padding of the first sentence. Each sentence has its own
        length. How can you compare the positions with all lengths at once, in one row for each length?"""
        return padding_mask.reference(source_lengths[:1].expand(len(source_lengths)), s_len)

    def source_padding_of_the_longest_alone(target_lengths, source_lengths, t_len, s_len):
        """In the mask for the source, every sentence has the padding of the longest sentence, so some padding of the
        shorter sentences stays visible. Each sentence has its own length. How can you compare the positions with all
        lengths at once, in one row for each length?"""
        return padding_mask.reference(source_lengths.max().expand(len(source_lengths)), s_len)

    def source_mask_additive(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source is additive: 0 where attention is allowed, -inf where it is not. The exercise asks
        for masks of `True` and `False`; `to_additive` converts them."""
        hidden = ~padding_mask.reference(source_lengths, s_len)
        return torch.zeros(hidden.shape).masked_fill(hidden, float("-inf"))

    def causal_towards_the_end_of_the_source(target_lengths, source_lengths, t_len, s_len):
        """The mask for cross-attention is also causal, so early target tokens do not see all words of the source. The
        whole source is known before the decoder writes its first word, so the decoder may read all of it. Hide only its
        padding."""
        causal = torch.ones(t_len, s_len, dtype=torch.bool).tril(s_len - t_len)
        return padding_mask.reference(source_lengths, s_len) & causal

    @with_text_of(Cross.cross_only_causal)
    def cross_only_causal_towards_the_end(target_lengths, source_lengths, t_len, s_len):
        return torch.ones(t_len, s_len, dtype=torch.bool).tril(s_len - t_len)

    def copied_for_every_source_word(target_lengths, source_lengths, t_len, s_len):
        """The mask for the source is copied for every word of the source: (batch, 1, s_len, s_len). In cross-attention
        the queries come from the target, and an axis of size 1 is enough for all of them."""
        return padding_mask.reference(source_lengths, s_len).repeat(1, 1, s_len, 1)

    def no_mask_for_the_source(target_lengths, source_lengths, t_len, s_len):
        """You return `None` in place of the second mask. The source has no future, but it has padding, which the
        decoder must not see either: return a mask that hides it."""
        return None


@decoder_masks.wrong(stage="returned")
class Returned:
    def exchanged(own, cross):
        """The two masks are in the wrong order. First comes the mask for the decoder's own tokens, then the mask for
        the source."""
        return cross, own

    def both_as_numbers(own, cross):
        """Both masks consist of the numbers 1 and 0. PyTorch's attention adds a mask of numbers to the scores, so these
        masks hide nothing. The exercise asks for `True` and `False`: comparisons return them, and `&` keeps them."""
        return own.float(), cross.float()

    def both_additive(own, cross):
        """Both masks are additive: 0 where attention is allowed, -inf where it is not. The exercise asks for masks of
        `True` and `False`; `to_additive` converts them."""
        return tuple(torch.zeros(mask.shape).masked_fill(~mask, float("-inf")) for mask in (own, cross))

    def own_mask_alone(own, cross):
        """You return one mask, the decoder's own. The exercise asks for two: the decoder also attends to the source,
        and must not see the padding there. Which mask comes second, according to the docstring?"""
        return own


@decoder_masks.wrong(stage="returned", alone=True)
class ReturnedAlone:
    def one_mask_for_both(own, cross):
        """You return the first mask twice. In cross-attention the queries come from the target and the keys from the
        source: there is no future to hide, and the padding is different."""
        return own, own

    def the_first_sentence_only(own, cross):
        """You return the masks of the first sentence alone, (t_len, t_len) and (s_len,). A `return` inside a loop ends
        the function in its first iteration. Every sentence needs its own table, and both masks need their axes of size
        1."""
        return own[0, 0], cross[0, 0, 0]

    def stacked(own, cross):
        """You stack the two masks, but they have different shapes, so `stack` raises an error. The masks belong to two
        different attentions, so keep them as two tensors. How does a function return two things?"""
        return torch.stack([own, cross])


@decoder_masks.wrong
class WrongAnswers:
    def causal_and_padding_not_combined(target_lengths, source_lengths, t_len, s_len):
        """You return three masks: the causal mask and the target's padding mask are still separate. In the decoder's
        own attention, one mask must hide both the future and the padding. Which operator combines the two masks?"""
        paddings = padding_mask.reference(target_lengths, t_len), padding_mask.reference(source_lengths, s_len)
        return causal_mask.reference(t_len), *paddings

    def source_and_target_exchanged(target_lengths, source_lengths, t_len, s_len):
        """You exchange source and target: your first mask is causal over the source, and the second hides the padding
        of the target. The decoder writes the target, so hide the future there."""
        return decoder_masks.reference(source_lengths, target_lengths, s_len, t_len)


fixed_length(decoder_masks, masks_cut_from_a_fixed_table, "texts of 300 tokens")
