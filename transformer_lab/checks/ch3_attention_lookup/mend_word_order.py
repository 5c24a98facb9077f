"""Find the mistake: positions that number the wrong axis."""

import torch
from torch.nn import functional as F

from ..exercise import exercise
from .attention import attention
from .properties import nearly_equal
from .single_head import single_head, tokens_and_weights
from .sinusoidal_positions import sinusoidal_positions


def _sentences(draw, batch=2, seq=7, d_model=6, d_head=4, d_value=5):
    x, w_q, w_k, w_v = tokens_and_weights(draw, batch, seq, d_model, d_head, d_value)
    return x, draw(batch * seq + 3, d_model), w_q, w_k, w_v


def by_place(x, positions):
    """Add to each token the row of its own position."""
    return x + positions[: x.shape[1]]


@exercise(
    inputs=_sentences,
    axes={
        "x": "batch seq d_model",
        "positions": "max_len d_model",
        "w_q": "d_model d_head",
        "w_k": "d_model d_head",
        "w_v": "d_model d_value",
        "return": "batch seq d_value",
    },
    hints=(
        "Take a batch of two sentences. Which row of `positions` does the second word of sentence 0 get, and which "
        "the second word of sentence 1?",
        "Write a shape beside every line: of `x`, of the rows that are cut from `positions`, and of the sum. "
        "Which axis of `x` do the rows meet, and which should they meet?",
        "`x + positions[: …]`, and broadcasting does the rest",
    ),
)
def mend_word_order(x, positions, w_q, w_k, w_v, *, place=by_place, lookup=attention.reference):
    """Add positions to the tokens, then let them attend: x (batch, seq, d_model), positions (max_len, d_model)."""
    x = place(x, positions)
    return lookup(x @ w_q, x @ w_k, x @ w_v)


@mend_word_order.equivalent
def mended_with_an_axis_for_the_batch(x, positions, w_q, w_k, w_v):
    return single_head.reference(x + positions[: x.size(1)].unsqueeze(0), w_q, w_k, w_v)


@mend_word_order.equivalent
def mended_by_turning_twice(x, positions, w_q, w_k, w_v):
    turned = x.transpose(0, 1)  # seq first, as the program wanted it
    turned = turned + positions[: turned.size(0)].unsqueeze(1)
    return single_head.reference(turned.transpose(0, 1), w_q, w_k, w_v)


@mend_word_order.equivalent
def mended_by_lookup(x, positions, w_q, w_k, w_v):
    rows = F.embedding(torch.arange(x.shape[1], device=x.device), positions)
    x = x + rows.expand(len(x), -1, -1)
    return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)


@mend_word_order.equivalent
def mended_sentence_by_sentence(x, positions, w_q, w_k, w_v):
    return torch.cat([single_head.reference(s[None] + positions[: len(s)], w_q, w_k, w_v) for s in x])


@mend_word_order.equivalent
def mended_in_each_projection(x, positions, w_q, w_k, w_v):
    places = positions[: x.shape[1]]
    query, key, value = (x @ w + places @ w for w in (w_q, w_k, w_v))
    return attention.reference(query, key, value)


mend_word_order.example("matrices that are all square", d_model=4, d_value=4, plain=True)
mend_word_order.example("as many sentences as words", batch=4, seq=4)
mend_word_order.example("as many words as features", seq=6)
mend_word_order.example("a batch of one", batch=1)
mend_word_order.example("one word", seq=1)


@mend_word_order.probe
def no_row_to_spare(draw):
    """as many positions as words"""
    x, positions, *weights = _sentences(draw)
    return x, positions[: x.shape[1]], *weights


@mend_word_order.mistake(stage="place")
def as_given(x, positions):
    """This is the program as it was given. Run it on a sentence and on the same words in another order: every word gets
    the same vector in both. Then run it on a batch that holds one sentence twice: the two copies get different vectors.
    What do the positions number here, if not the words?"""
    return x + positions[: x.shape[0]].unsqueeze(1)


@mend_word_order.mistake(stage="place")
def rows_still_for_sentences(x, positions):
    """There is one row of `positions` for each sentence, and the rows now meet the words: with unequal counts it mostly
    raises. It runs for a batch of one, where all words get the row of the first place, and for as many sentences as
    words, where it is even right. How many rows are needed?"""
    return x + positions[: x.shape[0]]


@mend_word_order.mistake(stage="place")
def rows_still_along_the_batch(x, positions):
    """There is one row of `positions` for each word, and the rows are laid along the axis of the sentences: with
    unequal counts it mostly raises. With a batch of one it runs, and returns as many sentences as there were words.
    Broadcasting aligns shapes from the right; which axis of `x` do your rows meet?"""
    return x + positions[: x.shape[1]].unsqueeze(1)


@mend_word_order.mistake(stage="place")
def table_not_cut(x, positions):
    """You add the whole table. It has room for longer sentences, so it has more rows than there are words, and raises.
    One row for each word is needed: which ones?"""
    return x + positions


@mend_word_order.mistake(stage="place")
def places_from_one(x, positions):
    """The first word gets row 1 of `positions`, the second row 2: all are one place late. Python counts from 0, and so
    do the positions. Which row is for the first word?"""
    return x + positions[1 : x.shape[1] + 1]


@mend_word_order.mistake(stage="place")
def places_from_the_end(x, positions):
    """The words get the last rows of `positions` instead of the first. Which place a word has would then depend on how
    long the table is. Which end does your slice count from?"""
    return x + positions[-x.shape[1] :]


@mend_word_order.mistake(stage="place")
def places_go_on_through_the_batch(x, positions):
    """The places are numbered through the whole batch: the second sentence goes on where the first ended. The same
    sentence then gets other vectors in another row of the batch. Each sentence begins at place 0."""
    return x + positions[: x.shape[0] * x.shape[1]].reshape(x.shape)


@mend_word_order.mistake(stage="place")
def one_place_for_all(x, positions):
    """All words of all sentences get the same row of `positions`. Something is added, and still no word can tell where
    it stands: reversed sentences give reversed results. How many rows does a sentence need?"""
    return x + positions[0]


@mend_word_order.mistake(stage="place")
def no_places(x, positions):
    """The positions are left out altogether. The wrong results of the given program are gone, and word order with them:
    reversed sentences give reversed results. Which axis of `x` counts the words?"""
    return x


@mend_word_order.mistake(stage="place")
def places_multiplied(x, positions):
    """The tokens are multiplied by the positions, element by element. Where a position vector has a 0, that feature of
    the token is lost: with sines, every second feature of the first word. What should a position do to a token
    instead?"""
    return x * positions[: x.shape[1]]


@mend_word_order.mistake
def places_made_anew(x, positions, w_q, w_k, w_v):
    """You add sinusoidal positions of your own making; `positions` has no part in the result. The table that is handed
    in may be another one: BERT and GPT-2 learn theirs. Use its rows."""
    places = sinusoidal_positions.reference(*x.shape[1:]).to(x)
    return single_head.reference(x + places, w_q, w_k, w_v)


@mend_word_order.mistake
def sentences_attend_to_one_another(x, positions, w_q, w_k, w_v):
    """The axes `batch` and `seq` have changed places for the sake of the positions, and are still exchanged when the
    words look one another up. So each word attends to itself and to the words at the same place in the other sentences,
    and to no other word of its own; in a batch of one, to itself alone. Between which two lines must the axes come
    back?"""
    turned = x.transpose(0, 1) + positions[: x.shape[1]].unsqueeze(1)
    return single_head.reference(turned, w_q, w_k, w_v).transpose(0, 1)


@mend_word_order.mistake
def words_in_front(x, positions, w_q, w_k, w_v):
    """The axes `batch` and `seq` have changed places for the sake of the positions, and never come back: your result is
    (seq, batch, d_value), and the words looked up words of other sentences instead of their own. Between which two
    lines must the axes come back?"""
    turned = x.transpose(0, 1) + positions[: x.shape[1]].unsqueeze(1)
    return single_head.reference(turned, w_q, w_k, w_v)


@mend_word_order.mistake
def values_without_places(x, positions, w_q, w_k, w_v):
    """Queries and keys know their places, and the values are made of the tokens as they were. Some models do that on
    purpose. The given program adds the positions to the tokens, before all three projections, and only the rows were
    wrong."""
    placed = x + positions[: x.shape[1]]
    return attention.reference(placed @ w_q, placed @ w_k, x @ w_v)


@mend_word_order.mistake
def places_in_the_values_only(x, positions, w_q, w_k, w_v):
    """Only the values know their places; queries and keys are made of the tokens as they were, so whom a word looks at
    does not depend on the order. The given program adds the positions to the tokens, before all three projections, and
    only the rows were wrong."""
    placed = x + positions[: x.shape[1]]
    return attention.reference(x @ w_q, x @ w_k, placed @ w_v)


@mend_word_order.mistake
def places_added_afterwards(x, positions, w_q, w_k, w_v):
    """The positions are added to the output, after the words have looked one another up. That look-up was blind to
    their order, and the sizes fit only if d_value = d_model. Before which line must a word know its place?"""
    return single_head.reference(x, w_q, w_k, w_v) + positions[: x.shape[1]]


@mend_word_order.mistake(stage="place")
def last_place_for_all(x, positions):
    """All words get one and the same row of `positions`, that of the last word. `positions[n]` is a single row, and
    `positions[:n]` are the first n. Something is added, and still no word can tell where it stands."""
    return x + positions[x.shape[1] - 1]


@mend_word_order.mistake(stage="place")
def row_of_the_length_for_all(x, positions):
    """All words get one and the same row of `positions`, the one after the last word's. `positions[n]` is a single row,
    and `positions[:n]` are the first n. Something is added, and still no word can tell where it stands."""
    return x + positions[x.shape[1]]


@mend_word_order.mistake(stage="place")
def as_many_places_as_features(x, positions):
    """You take as many rows of `positions` as a word has features. One row for each word is needed, and the sizes fit
    only if there are as many words as features. Which axis of `x` counts the words?"""
    return x + positions[: x.shape[-1]]


@mend_word_order.mistake(stage="place")
def words_changed_in_place(x, positions):
    """The result is right, but your function changes its argument `x`: whoever calls it finds the positions added
    there, and a second call adds them again. An operation in place does that, such as `x += …`. `x = x + …` makes a new
    tensor."""
    return x.add_(positions[: x.shape[1]])


@mend_word_order.mistake(stage="place", alone=True)
def axis_at_the_end(x, positions):
    """The rows of `positions` have got an axis of size 1 at the end, (seq, d_model, 1), and do not line up with `x`.
    Broadcasting aligns shapes from the right: (seq, d_model) meets the last two axes of `x` as it is."""
    return x + positions[: x.shape[1]].unsqueeze(-1)


@mend_word_order.mistake(stage="place", alone=True)
def places_beside_the_words(x, positions):
    """The positions are put beside the words, and the tokens have twice as many features as the projections take. They
    are added, feature by feature."""
    return torch.cat((x, positions[: x.shape[1]].expand_as(x)), dim=-1)


@mend_word_order.mistake(stage="place")
def places_backwards(x, positions):
    """The places are counted from the end of the sentence: the last word gets row 0. The first word stands at place
    0."""
    return x + positions[: x.shape[1]].flip(0)


@mend_word_order.property
def a_sentence_is_the_same_everywhere(function, x, *rest):
    """A sentence that stands twice in the batch gets the same result twice."""
    output = function(torch.cat((x, x)), *rest)
    return nearly_equal(output[: len(x)], output[len(x) :])


@mend_word_order.property
def word_order_matters(function, x, *rest):
    """Reversing the words changes more than the order of the results."""
    return not nearly_equal(function(x.flip(1), *rest), function(x, *rest).flip(1))
