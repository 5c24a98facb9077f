"""Find the mistake: positions that are counted along the wrong axis."""

import functools

import torch
from torch.nn import functional as F

from ..exercise import exercise, family, with_text_of
from .attention import attention
from .properties import nearly_equal
from .single_head import single_head, tokens_and_weights
from .sinusoidal_positions import sinusoidal_positions


def _tokens_positions_and_weights(draw, batch=2, seq=7, d_model=6, d_head=4, d_value=5):
    x, w_q, w_k, w_v = tokens_and_weights(draw, batch, seq, d_model, d_head, d_value)
    return x, draw(batch * seq + 3, d_model), w_q, w_k, w_v


def add_rows_of_positions(x, positions):
    """Add to each token the row of its own position."""
    return x + positions[: x.shape[1]]


@exercise(
    inputs=_tokens_positions_and_weights,
    axes={
        "x": "batch seq d_model",
        "positions": "max_len d_model",
        "w_q": "d_model d_head",
        "w_k": "d_model d_head",
        "w_v": "d_model d_value",
        "return": "batch seq d_value",
    },
    hints=(
        "Take a batch of two sentences. Which row of `positions` is added to the second word of sentence 0, and which "
        "row to the second word of sentence 1?",
        "Beside every line, write the shapes of `x`, of the rows that are cut from `positions`, and of the sum. With "
        "which axis of `x` do the rows line up, and with which axis should they line up?",
        "`x + positions[: …]`; broadcasting does the rest",
    ),
)
def mend_word_order(x, positions, w_q, w_k, w_v, *, place=add_rows_of_positions, lookup=attention.reference):
    """Add positions to the tokens, then let the tokens attend to one another: x (batch, seq, d_model), positions
    (max_len, d_model)."""
    x = place(x, positions)
    return lookup(x @ w_q, x @ w_k, x @ w_v)


@mend_word_order.right
class RightAnswers:
    def mended_with_an_axis_for_the_batch(x, positions, w_q, w_k, w_v):
        return single_head.reference(x + positions[: x.size(1)].unsqueeze(0), w_q, w_k, w_v)

    def mended_by_transposing_twice(x, positions, w_q, w_k, w_v):
        seq_first = x.transpose(0, 1)  # as the given program expects
        seq_first = seq_first + positions[: seq_first.size(0)].unsqueeze(1)
        return single_head.reference(seq_first.transpose(0, 1), w_q, w_k, w_v)

    def mended_by_lookup(x, positions, w_q, w_k, w_v):
        rows = F.embedding(torch.arange(x.shape[1], device=x.device), positions)
        x = x + rows.expand(len(x), -1, -1)
        return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)

    def mended_sentence_by_sentence(x, positions, w_q, w_k, w_v):
        return torch.cat([single_head.reference(s[None] + positions[: len(s)], w_q, w_k, w_v) for s in x])

    def mended_in_each_projection(x, positions, w_q, w_k, w_v):
        rows = positions[: x.shape[1]]
        query, key, value = (x @ w + rows @ w for w in (w_q, w_k, w_v))
        return attention.reference(query, key, value)


mend_word_order.example("matrices that are all square", d_model=4, d_value=4, plain=True)
mend_word_order.example("as many sentences as words", batch=4, seq=4)
mend_word_order.example("as many words as features", seq=6)
mend_word_order.example("a batch of one", batch=1)
mend_word_order.example("one word", seq=1)


@mend_word_order.probe
def as_many_positions_as_words(draw):
    """as many positions as words"""
    x, positions, *weights = _tokens_positions_and_weights(draw)
    return x, positions[: x.shape[1]], *weights


@mend_word_order.property
def repeated_sentence_gets_the_same_result(function, x, *rest):
    """A sentence that is in the batch twice gets the same result twice."""
    output = function(torch.cat((x, x)), *rest)
    return nearly_equal(output[: len(x)], output[len(x) :])


@mend_word_order.property
def word_order_matters(function, x, *rest):
    """Reversing the words changes more than the order of the results."""
    return not nearly_equal(function(x.flip(1), *rest), function(x, *rest).flip(1))


@mend_word_order.wrong(stage="place")
class Place:
    def as_given(x, positions):
        """Your function does the same as the given program. Run it on a sentence and on the same words in a different
        order: every word gets the same vector in both orders. Then run it on a batch that holds one sentence twice: the
        two copies get different vectors. What do the positions count here, if not the words?"""
        return x + positions[: x.shape[0]].unsqueeze(1)

    def no_positions(x, positions):
        """You leave out the positions. The wrong results of the given program are gone, but so is the word order:
        reversed sentences give reversed results. Which axis of `x` counts the words?"""
        return x

    def first_row_for_all(x, positions):
        """All words of all sentences get the same row of `positions`. Every word has the same position, so the order is
        lost: reversed sentences give reversed results. How many rows does a sentence need?"""
        return x + positions[0]

    @family(
        last_row_for_all=(-1, "the row of the last word"),
        row_after_the_last_for_all=(0, "the row after the last word's row"),
    )
    def one_row_for_all(offset_from_length, x, positions):
        """All words get the same row of `positions`, {}. `positions[n]` is a single row, but `positions[:n]` is the
        first n rows. Every word has the same position, so the order is lost."""
        return x + positions[x.shape[1] + offset_from_length]

    def positions_from_one(x, positions):
        """The first word gets row 1 of `positions`, and the second word row 2: each row is one too far down. Python
        counts from 0, and so do the positions. Which row is for the first word?"""
        return x + positions[1 : x.shape[1] + 1]

    def positions_from_the_end(x, positions):
        """The words get the last rows of `positions` instead of the first. The position of a word would then depend on
        the length of the table. Which end does your slice count from?"""
        return x + positions[-x.shape[1] :]

    def positions_reversed(x, positions):
        """You count the positions from the end of the sentence: the last word gets row 0. The first word must get row
        0."""
        return x + positions[: x.shape[1]].flip(0)

    def positions_counted_through_the_batch(x, positions):
        """You number the positions through the whole batch: the second sentence continues the numbers of the first. The
        same sentence then gets different vectors in a different row of the batch. Each sentence begins at position
        0."""
        return x + positions[: x.shape[0] * x.shape[1]].reshape(x.shape)

    def rows_along_the_batch(x, positions):
        """There is one row of `positions` for each word, but the rows line up with the axis of the sentences: with
        unequal sizes the addition usually raises an error. With a batch of one your function runs, and returns as many
        sentences as there are words. Broadcasting aligns shapes from the right: with which axis of `x` do your rows
        line up?"""
        return x + positions[: x.shape[1]].unsqueeze(1)

    def rows_for_sentences(x, positions):
        """There is one row of `positions` for each sentence, but the rows line up with the words: with unequal sizes
        the addition usually raises an error. Your function runs for a batch of one, where all words get row 0, and is
        right only if there are as many sentences as words. How many rows do you need?"""
        return x + positions[: x.shape[0]]

    def table_not_cut(x, positions):
        """You add the whole table. The table has rows for longer sentences too. So it has more rows than there are
        words, and the addition raises an error. You need one row for each word: which rows?"""
        return x + positions

    def as_many_rows_as_features(x, positions):
        """You use as many rows of `positions` as a word has features. You need one row for each word; the sizes fit
        only if there are as many words as features. Which axis of `x` counts the words?"""
        return x + positions[: x.shape[-1]]

    def rows_repeat_interleaved(x, positions):
        """You repeat each row of `positions` as often as there are sentences, as `repeat_interleave` does, and then cut
        the rows into sentences. With two sentences, the first two words of the first sentence get row 0, and its next
        two words row 1. Each sentence needs the whole block of rows, and broadcasting repeats it for you."""
        return x + positions[: x.shape[1]].repeat_interleave(x.shape[0], dim=0).reshape(x.shape)

    def rows_repeated_and_cut_as_seq_first(x, positions):
        """The rows of `positions` are repeated for every sentence and then cut as (seq, batch, d_model), although they
        follow one another sentence by sentence. With several sentences, most words get the row of a different position.
        Add (seq, d_model) to `x` without repeating the rows."""
        rows = positions[: x.shape[1]].repeat(x.shape[0], 1)
        return x + rows.reshape(x.shape[1], x.shape[0], -1).transpose(0, 1)

    def positions_multiplied(x, positions):
        """You multiply the tokens by the positions, element by element. Where a position vector has a 0, the token
        loses this feature: with sinusoidal positions, the first word loses every second feature. What should a position
        do to a token instead?"""
        return x * positions[: x.shape[1]]

    def positions_added_twice(x, positions):
        """The positions are added twice. Is a line of the given program still there, next to the corrected line?"""
        return x + 2 * positions[: x.shape[1]]


@mend_word_order.wrong(stage="place", alone=True)
class PlaceAlone:
    @with_text_of(Place.rows_for_sentences)
    def rows_looked_up_for_sentences(x, positions):
        return x + positions[torch.arange(x.shape[0], device=x.device)]

    def axis_at_the_end(x, positions):
        """You add an axis of size 1 at the end of the rows, (seq, d_model, 1), so they do not line up with `x`.
        Broadcasting aligns shapes from the right: (seq, d_model) lines up with the last two axes of `x` as it is."""
        return x + positions[: x.shape[1]].unsqueeze(-1)

    def positions_concatenated(x, positions):
        """You concatenate tokens and positions, so the result has twice as many features as the projections accept. Add
        the positions, feature by feature."""
        return torch.cat((x, positions[: x.shape[1]].expand_as(x)), dim=-1)

    def rows_repeated_in_one_long_table(x, positions):
        """You repeat the rows of `positions` for every sentence into one table of batch · seq rows, which does not line
        up with `x`. Broadcasting repeats the rows for you: what happens if you add (seq, d_model) to (batch, seq,
        d_model)?"""
        return x + positions[: x.shape[1]].repeat(x.shape[0], 1)

    def rows_for_transposed_words(x, positions):
        """You exchange `batch` and `seq`, and then add one row for each word, so the rows line up with the sentences.
        Broadcasting aligns shapes from the right, and in (seq, batch, d_model) the words come first. Leave the axes of
        `x` in their order: with which axis do the rows line up then?"""
        return (x.transpose(0, 1) + positions[: x.shape[1]]).transpose(0, 1)

    def table_expanded_to_the_words(x, positions):
        """You expand the whole table to the shape of `x`. `expand` repeats axes of size 1 and adds new axes in front,
        but it does not cut off rows, and the table has more rows than there are words. Which of its rows are needed?"""
        return x + positions.expand_as(x)

    def tokens_as_row_numbers(x, positions):
        """You use the tokens themselves to pick rows of `positions`, hence the `IndexError`: a token is a vector of
        features, not an index. The row of a word follows from its position in the sentence. Which rows are those, for
        all the words of a sentence?"""
        return x + positions[x]


@mend_word_order.wrong
class Placement:
    @family(
        values_without_positions=(
            "qk",
            "Queries and keys contain the positions, but the values are made from the tokens without them. Some models "
            "do this on purpose",
        ),
        positions_in_the_values_only=(
            "v",
            "Only the values contain the positions; queries and keys are made from the tokens without them, so the "
            "weights of a word do not depend on the order",
        ),
        positions_in_the_queries_only=(
            "q",
            "Only the queries contain the positions; keys and values are made from the tokens without them. The score "
            "of a query and a key does not depend on the key's position",
        ),
        positions_in_the_keys_only=(
            "k",
            "Only the keys contain the positions; queries and values are made from the tokens without them. Which "
            "positions a word attends to is then independent of its own position",
        ),
    )
    def positions_in_some_roles(roles, x, positions, w_q, w_k, w_v):
        """{}. The given program adds the positions to the tokens, before all three projections; only the rows that it
        adds are wrong."""
        with_positions = add_rows_of_positions(x, positions)
        return attention.reference(
            *((with_positions if role in roles else x) @ w for role, w in zip("qkv", (w_q, w_k, w_v)))
        )

    def positions_added_to_the_projections(x, positions, w_q, w_k, w_v):
        """You add the positions to queries and keys, after the projection, but positions have d_model features, and
        queries and keys have d_head features. Some models add positions with d_head features there. Here the positions
        must be added to the tokens, before all three projections."""
        rows = positions[: x.shape[1]]
        return attention.reference(x @ w_q + rows, x @ w_k + rows, x @ w_v)

    def positions_added_afterwards(x, positions, w_q, w_k, w_v):
        """You add the positions to the output, after attention, so the weights do not depend on the order of the words;
        and the sizes fit only if d_value = d_model. Before which line must you add them?"""
        return single_head.reference(x, w_q, w_k, w_v) + positions[: x.shape[1]]

    def positions_computed_again(x, positions, w_q, w_k, w_v):
        """You compute sinusoidal positions yourself and do not use `positions`. A caller may pass a different table:
        BERT and GPT-2 learn theirs. Use the rows of `positions`."""
        sinusoids = sinusoidal_positions.reference(*x.shape[1:]).to(x)
        return single_head.reference(x + sinusoids, w_q, w_k, w_v)

    def sentences_attend_to_one_another(x, positions, w_q, w_k, w_v):
        """You exchange the axes `batch` and `seq` to add the positions, and leave them exchanged for attention. So each
        word attends only to itself and to the words at the same position in the other sentences; in a batch of one, it
        attends only to itself. Between which two lines must you exchange the axes back?"""
        seq_first = x.transpose(0, 1) + positions[: x.shape[1]].unsqueeze(1)
        return single_head.reference(seq_first, w_q, w_k, w_v).transpose(0, 1)

    def seq_first_not_exchanged_back(x, positions, w_q, w_k, w_v):
        """You exchange the axes `batch` and `seq` to add the positions, and never exchange them back: your result has
        shape (seq, batch, d_value), and words attend to words of other sentences instead of their own. Between which
        two lines must you exchange the axes back?"""
        seq_first = x.transpose(0, 1) + positions[: x.shape[1]].unsqueeze(1)
        return single_head.reference(seq_first, w_q, w_k, w_v)

    def weights_read_as_out_in(x, positions, w_q, w_k, w_v):
        """You multiply by the transposed matrices, as `nn.Linear` does with the weights that it stores as (out, in).
        Here the matrices are stored as (in, out), and the given program does not transpose them. Unequal widths raise
        an error; with square matrices your function runs, but every number is wrong."""
        return single_head.reference(x + positions[: x.shape[1]], w_q.T, w_k.T, w_v.T)


@mend_word_order.mistake_around
def tokens_scaled(function):
    """You multiply the tokens by √d_model before you add the positions. The original Transformer scales its embeddings
    in this way; the program here adds the positions to the unscaled tokens."""

    @functools.wraps(function)
    def with_scaled_tokens(x, *rest):
        return function(x * x.shape[-1] ** 0.5, *rest)

    return with_scaled_tokens
