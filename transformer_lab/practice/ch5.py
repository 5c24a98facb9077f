"""Chapter 5: masks to paint. Rows are queries, columns are keys; a painted cell means that the query sees the key."""

import torch

from .answers import Mask
from .draws import choose, random_integer
from .topic import Topic, rule


def _positions(q_len, k_len):
    """Return the positions of queries and keys, with shapes (q_len, 1) and (k_len,): queries are the last tokens."""
    return torch.arange(k_len - q_len, k_len)[:, None], torch.arange(k_len)


# The causal mask, with or without earlier keys in a cache


def _query_and_key_lengths(draw):
    k_len = random_integer(draw, 3, 8)
    return random_integer(draw, 2, min(k_len, 6)), k_len


@rule(inputs=_query_and_key_lengths)
def causal_mask(q_len, k_len):
    """Return which keys the last ``q_len`` of ``k_len`` tokens may see."""
    query, key = _positions(q_len, k_len)
    return key <= query


@causal_mask.mistake
def counted_from_the_first_key(q_len, k_len):
    """You counted the queries from the first key, as `is_causal=True` does. These queries are the last tokens: which
    keys come before the first of them?"""
    return torch.ones(q_len, k_len, dtype=torch.bool).tril()


@causal_mask.mistake
def upper_triangle(q_len, k_len):
    """You painted the other triangle: each token sees itself and the tokens after it. Look at the first row: which keys
    come before this query?"""
    query, key = _positions(q_len, k_len)
    return key >= query


@causal_mask.mistake
def only_the_future(q_len, k_len):
    """You painted what must be hidden: the mask is inverted. Paint a cell if the query may see the key."""
    query, key = _positions(q_len, k_len)
    return key > query


@causal_mask.mistake
def not_itself(q_len, k_len):
    """Your mask hides each token from itself. A token may see itself, since it predicts only the token after it."""
    query, key = _positions(q_len, k_len)
    return key < query


@causal_mask.mistake
def one_too_far(q_len, k_len):
    """Your triangle ends one diagonal too late: each token sees the next token. A token must predict the next
    token without seeing it."""
    query, key = _positions(q_len, k_len)
    return key <= query + 1


@causal_mask.mistake
def only_itself(q_len, k_len):
    """Your mask lets each token see only itself. Which keys are in the past of a token?"""
    query, key = _positions(q_len, k_len)
    return key == query


@causal_mask.mistake
def everything(q_len, k_len):
    """Your mask lets every token see all tokens, including the future. Which keys come after the query of a row?"""
    return torch.ones(q_len, k_len, dtype=torch.bool)


@causal_mask.mistake
def no_past(q_len, k_len):
    """Your mask hides the keys before the first query. These keys are the past of all queries: what is a cache for?"""
    query, key = _positions(q_len, k_len)
    return (key <= query) & (key >= k_len - q_len)


def _queries_text(q_len, k_len):
    if q_len == k_len:
        return f"A sentence has {k_len} tokens, and each of them is a query."
    return f"A sentence has {k_len} tokens: {k_len - q_len} are in the cache, and the last {q_len} are the queries."


causal_places = Topic(
    title="Causal masks",
    rule=causal_mask,
    question=lambda q_len, k_len: f"{_queries_text(q_len, k_len)} Paint the causal mask.",
    answer=Mask(rows=lambda q_len, k_len: range(k_len - q_len, k_len), columns=lambda q_len, k_len: range(k_len)),
)


# Padding


def _padding_arguments(draw):
    seq = random_integer(draw, 4, 8)
    return random_integer(draw, 2, seq - 1), random_integer(draw, 2, 5), seq, choose(draw, ("after", "after", "before"))


@rule(inputs=_padding_arguments)
def padding_mask(length, q_len, k_len, side):
    """Return which keys are real: the first ``length`` of ``k_len`` keys, or the last if padding comes first."""
    key = torch.arange(k_len)
    real = key < length if side == "after" else key >= k_len - length
    return real.expand(q_len, k_len)


@padding_mask.mistake
def inverted_padding(length, q_len, k_len, side):
    """You painted the padding: the mask is inverted. Paint the real keys, since no token may see padding."""
    return ~padding_mask.reference(length, q_len, k_len, side)


@padding_mask.mistake
def one_key_too_many(length, q_len, k_len, side):
    """Your mask shows one key of the padding. How many tokens are real, and how many cells are painted in each row?"""
    return padding_mask.reference(length + 1, q_len, k_len, side)


@padding_mask.mistake
def one_key_too_few(length, q_len, k_len, side):
    """Your mask hides one real key. How many tokens are real, and how many cells are painted in each row?"""
    return padding_mask.reference(length - 1, q_len, k_len, side)


@padding_mask.mistake
def padding_on_the_other_side(length, q_len, k_len, side):
    """You hid the wrong end of the sentence. Is the padding before or after the words?"""
    return padding_mask.reference(length, q_len, k_len, "before" if side == "after" else "after")


@padding_mask.mistake
def causal_as_well(length, q_len, k_len, side):
    """You hid the future as well. The question is only about padding: every query may see a real key."""
    query, key = torch.arange(q_len)[:, None], torch.arange(k_len)
    return padding_mask.reference(length, q_len, k_len, side) & (key <= query)


@padding_mask.mistake
def causal_instead(length, q_len, k_len, side):
    """You painted a causal mask. Padding depends on the key alone: does any row differ from the row above it?"""
    return torch.ones(q_len, k_len, dtype=torch.bool).tril()


@padding_mask.mistake
def nothing_hidden(length, q_len, k_len, side):
    """Your mask shows every key, even the padding. Which columns contain no word?"""
    return torch.ones(q_len, k_len, dtype=torch.bool)


padding_places = Topic(
    title="Padding masks",
    rule=padding_mask,
    question=lambda length, q_len, k_len, side: (
        f"{q_len} queries attend to a sentence of {k_len} places: {length} real tokens, and padding {side} these "
        "tokens. Paint the keys that may be seen."
    ),
    answer=Mask(),
)


# The window


def _window_arguments(draw):
    seq = random_integer(draw, 4, 8)
    return seq, random_integer(draw, 2, min(seq - 1, 4)), choose(draw, (0, 0, 1))


@rule(inputs=_window_arguments)
def window_mask(seq, width, bidirectional):
    """Return which keys are less than ``width`` positions away, in the past or on both sides."""
    distance = torch.arange(seq)[:, None] - torch.arange(seq)
    return (distance.abs() if bidirectional else distance.where(distance >= 0, width)) < width


@window_mask.mistake
def one_wider(seq, width, bidirectional):
    """Your window is one place too wide. The width includes the query's own position: with a window of 1, each token
    sees only itself."""
    return window_mask.reference(seq, width + 1, bidirectional)


@window_mask.mistake
def one_narrower(seq, width, bidirectional):
    """Your window is one place too narrow. Count the painted cells of a row in the middle, including the query's own
    position."""
    return window_mask.reference(seq, width - 1, bidirectional)


@window_mask.mistake
def both_sides(seq, width, bidirectional):
    """Your window covers both sides. The question asks only for the past: which cells of a row are in the future?"""
    return None if bidirectional else window_mask.reference(seq, width, True)


@window_mask.mistake
def only_the_past(seq, width, bidirectional):
    """Your window covers only the past. The question asks for keys on both sides: what may the first token see?"""
    return window_mask.reference(seq, width, False) if bidirectional else None


@window_mask.mistake
def into_the_future(seq, width, bidirectional):
    """Your window covers the future: it is to the right of each query. Which side of the diagonal is the past?"""
    distance = torch.arange(seq) - torch.arange(seq)[:, None]
    return (distance >= 0) & (distance < width)


@window_mask.mistake
def the_whole_past(seq, width, bidirectional):
    """Your mask shows the whole past, as a causal mask does. How far back does a window go?"""
    return torch.ones(seq, seq, dtype=torch.bool).tril()


@window_mask.mistake
def outside_the_window(seq, width, bidirectional):
    """You painted the cells outside the window: the mask is inverted. Paint a cell if the query may see the key."""
    return ~window_mask.reference(seq, width, bidirectional)


@window_mask.mistake
def without_its_own_place(seq, width, bidirectional):
    """Your mask hides each token from itself. A window includes the token itself."""
    return window_mask.reference(seq, width, bidirectional) & ~torch.eye(seq, dtype=torch.bool)


@window_mask.mistake
def blocks(seq, width, bidirectional):
    """You cut the sentence into pieces that do not see one another. A window moves with the query: is each row the row
    above, shifted by one position?"""
    block = torch.arange(seq) // width
    return block[:, None] == block


windows = Topic(
    title="Windows",
    rule=window_mask,
    question=lambda seq, width, bidirectional: (
        f"{seq} tokens attend within a window of {width}: "
        + (
            f"keys less than {width} positions away, before and after. "
            if bidirectional
            else f"the last {width} tokens up to and including the query, and no later token. "
        )
        + "Paint the mask."
    ),
    answer=Mask(),
)


# The prefix


def _prefix_arguments(draw):
    seq = random_integer(draw, 3, 8)
    return seq, random_integer(draw, 1, seq - 2)


@rule(inputs=_prefix_arguments)
def prefix_mask(seq, length):
    """Return which keys may be seen if the first ``length`` tokens see one another and the rest is causal."""
    query, key = torch.arange(seq)[:, None], torch.arange(seq)
    return (key <= query) | (key < length)


@prefix_mask.mistake
def causal_prefix(seq, length):
    """Your mask hides the future inside the prefix, as a causal mask does. Tokens of a prefix see one another both
    ways."""
    return torch.ones(seq, seq, dtype=torch.bool).tril()


@prefix_mask.mistake
def one_token_too_long(seq, length):
    """Your prefix is one token too long: the first written token is seen before it is written. Positions are counted
    from 0: what is the position of the last token of the prefix?"""
    return prefix_mask.reference(seq, length + 1)


@prefix_mask.mistake
def one_token_too_short(seq, length):
    """Your prefix is one token too short. Positions are counted from 0: what is the position of the prefix's last
    token?"""
    return prefix_mask.reference(seq, length - 1)


@prefix_mask.mistake
def prefix_unseen_later(seq, length):
    """Your mask hides the prefix from the written tokens. The prefix is the past of these tokens: without it, what
    would they continue?"""
    query, key = torch.arange(seq)[:, None], torch.arange(seq)
    return ((key <= query) & (query >= length) & (key >= length)) | ((key < length) & (query < length))


@prefix_mask.mistake
def prefix_sees_everything(seq, length):
    """Your mask shows the written tokens to the prefix. The tokens of the prefix may see one another, but not the
    written tokens."""
    query, key = torch.arange(seq)[:, None], torch.arange(seq)
    return (key <= query) | (query < length)


@prefix_mask.mistake
def only_the_prefix(seq, length):
    """Your mask shows nothing but the prefix. A written token also sees itself and the written tokens before it."""
    return (torch.arange(seq) < length).expand(seq, seq)


@prefix_mask.mistake
def everything_visible(seq, length):
    """Your mask hides nothing, not even the future. The tokens after the prefix are written one by one."""
    return torch.ones(seq, seq, dtype=torch.bool)


@prefix_mask.mistake
def hidden_painted(seq, length):
    """You painted what must be hidden: the mask is inverted. Paint a cell if the query may see the key."""
    return ~prefix_mask.reference(seq, length)


prefixes = Topic(
    title="A prefix, then causal",
    rule=prefix_mask,
    question=lambda seq, length: (
        f"A sequence has {seq} tokens: a prefix of {length}, read at once, and {seq - length} written one by one. "
        "Paint the prefix mask."
    ),
    answer=Mask(),
)


# The decoder's own mask

decoder = Topic(
    title="A decoder's own mask",
    rule="decoder_masks",
    size_ranges={"batch": (1, 1), "t_len": (3, 7), "s_len": (4, 7)},
    question=lambda t_lengths, s_lengths, t_len, s_len: (
        f"A decoder has {t_len} places for its own tokens, of which "
        f"{'only the first is' if int(t_lengths) == 1 else f'the first {int(t_lengths)} are'} real. "
        "Paint the mask of its self-attention."
    ),
    answer=Mask(),
    asked_value=lambda masks, *arguments: masks[0][0, 0],
    excluded_mistakes=(
        "both_paddings_in_the_own_mask",  # the question mentions no source
        "own_mask_from_the_source",
        "source_and_target_exchanged",
        "no_target_padding_for_any_sentence",  # for one sentence, another mistake gives this answer
        "exactly_one_condition",
        "own_mask_transposed",
        "padded_queries_see_everything",
    ),
    mistake_texts={
        "no_target_padding_in_full": "Your mask is causal, but it does not hide the padding. It must hide both the "
        "future and the padding.",
        "no_causal_part_in_full": "Your mask hides the padding, but not the future: each token can see the token that "
        "it has to predict. The mask must hide both the future and the padding.",
        "either_condition_is_enough": "You painted each key that is in the past or is not padding. A key must meet "
        "both conditions.",
        "own_padding_one_key_too_few": "Your mask hides the last real token as if it were padding. If the first 2 "
        "tokens are real, their positions are 0 and 1.",
        "own_padding_one_key_too_many": "Your mask shows one key of the padding. If the first 2 tokens are real, "
        "their positions are 0 and 1.",
        "causal_inverted": "Your mask shows the future and hides the past: its causal part is inverted. Paint "
        "a cell if the query may see the key.",
        "own_mask_inverted": "You painted what must be hidden, the future and the padding: the mask is inverted. "
        "Paint a cell if the query may see the key.",
        "own_padding_inverted": "You painted padding and hid the real tokens. Paint the real keys, since no "
        "token may see padding.",
        "padded_queries_hidden": "You left the rows of the padded queries empty. A query that sees nothing causes "
        "NaN, and nobody reads the output of a padded query.",
    },
)
