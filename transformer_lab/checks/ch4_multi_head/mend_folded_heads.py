"""Find the mistake: a batch folded into the heads."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from .. import attention_steps as steps
from ..exercise import exercise, family
from .merge_heads import OtherShape, Refused, Scrambled, merge_heads


def _query_key_value(draw, batch=2, heads=3, seq=7, d_head=5):
    return tuple(draw(batch, heads, seq, d_head) for _ in range(3))


def fold(x):
    """Join batch and heads into one axis."""
    return x.flatten(0, 1)


def unfold(x, batch):
    """Split the joined axis into batch and heads again."""
    return x.unflatten(0, (batch, -1))


@exercise(
    inputs=_query_key_value,
    axes={
        "query": "batch heads seq d_head",
        "key": "batch heads seq d_head",
        "value": "batch heads seq d_head",
        "return": "batch seq d_model",
    },
    hints=(
        "The program is right for one sentence. What can go wrong only with two sentences?",
        "Two sentences with two heads make four tables. Write down the sentence and the head of each table, in the "
        "order of the folded axis. In which order does the program unfold them?",
        "The axes were folded in the order `batch`, `heads`: `view(…, …, seq, …)` must unfold them in this order.",
    ),
)
def mend_folded_heads(
    query,
    key,
    value,
    *,
    folded=fold,
    scores=steps.dot_products,
    scale=steps.by_root_d,
    weights=steps.over_keys,
    unfolded=unfold,
    merge=merge_heads.reference,
):
    """Attend in every head, with batch and heads folded into one axis. The arguments have shape (batch, heads, seq,
    d_head), and the result has shape (batch, seq, d_model)."""
    batch, d_head = query.shape[0], query.shape[-1]
    query, key, value = folded(query), folded(key), folded(value)
    output = weights(scale(scores(query, key), d_head)) @ value
    return merge(unfolded(output, batch))


@mend_folded_heads.right
class RightAnswers:
    def without_folding(query, key, value):
        weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
        return (weights @ value).transpose(1, 2).flatten(2)

    def by_bmm(query, key, value):
        batch, heads, seq, d_head = query.shape
        q, k, v = (x.reshape(batch * heads, seq, d_head) for x in (query, key, value))
        output = torch.bmm(torch.bmm(q, k.transpose(1, 2)).div(d_head**0.5).softmax(2), v)
        return output.view(batch, heads, seq, d_head).permute(0, 2, 1, 3).reshape(batch, seq, heads * d_head)

    def fused(query, key, value):
        return scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)

    def heads_outside_throughout(query, key, value):
        heads, batch = query.shape[1], query.shape[0]
        q, k, v = (x.transpose(0, 1).reshape(heads * batch, *x.shape[2:]) for x in (query, key, value))
        output = torch.bmm(torch.softmax(torch.bmm(q, k.mT) / q.shape[-1] ** 0.5, dim=-1), v)
        return output.reshape(heads, batch, *output.shape[1:]).permute(1, 2, 0, 3).flatten(2)

    def sentence_by_sentence(query, key, value):
        sentences = []
        for q, k, v in zip(query, key, value):  # (heads, seq, d_head)
            weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / q.size(-1) ** 0.5, dim=-1)
            sentences.append(torch.cat([w @ value for w, value in zip(weights, v)], dim=-1))
        return torch.stack(sentences)


mend_folded_heads.example("one sentence", batch=1)
mend_folded_heads.example("scores in the hundreds", lambda draw: tuple(15 * x for x in _query_key_value(draw)))


@mend_folded_heads.property
def sentences_independent(function, query, key, value):
    """A sentence has the same outputs in a batch as alone."""
    alone = function(query[:1], key[:1], value[:1])
    return torch.allclose(function(query, key, value)[:1], alone, atol=1e-5)


# For the text: what is folded in a different order, the other tensors, and the effect
QUERIES_ALONE = "queries", "the keys and values", "Queries of one sentence are then compared with keys"
KEYS_ALONE = "keys", "the queries and values", "Queries of one sentence are then compared with keys"
VALUES_ALONE = "values", "the queries and keys", "The weights of one sentence are then applied to values"


@mend_folded_heads.wrong(stage="folded")
class Folded:
    def all_folded_with_heads_outside(x):
        """You fold with `heads` outside and `batch` inside, or mix the two orders, but unfold with `batch` outside.
        {The tables are right, but} the outputs are in the wrong places. The two orders must agree: change one of
        them."""
        return x.transpose(0, 1).flatten(0, 1)


@mend_folded_heads.wrong(stage="folded", alone=True)
class FoldedAlone:
    def folded_by_view(x):
        """{Your function is right for ordinary input.} `view` raises an error for an input whose axes were exchanged,
        as after a split into heads: `batch` and `heads` are then not side by side in memory, and `view` never copies.
        `reshape` copies where it must."""
        return x.view(-1, *x.shape[2:])


@mend_folded_heads.wrong(stage="weights")
class Weights:
    def over_the_folded_axis(scores):
        """The softmax runs over the folded axis: for each query and key, the weights of all heads of all sentences sum
        to one. `F.softmax` without a `dim` uses axis 0 of a tensor with three axes. Over which axis must the weights
        sum to one?"""
        return scores.softmax(0)


@mend_folded_heads.wrong(stage="unfolded")
class Unfolded:
    def as_given(output, batch):
        """Your function does the same as the given program: it is right for one sentence, but with two sentences, some
        heads of one sentence end up in the other sentence. Run it on two sentences, then on each of them alone, and
        compare the outputs feature by feature: which block of features has moved?"""
        return output.unflatten(0, (-1, batch)).transpose(0, 1)

    def heads_and_batch_not_exchanged(output, batch):
        """You unfold the result as (heads, batch), and leave these axes where they are, so sentences and heads are
        exchanged. The folded axis has `batch` outside and `heads` inside."""
        return output.unflatten(0, (-1, batch))


@mend_folded_heads.wrong
class Folding:
    def only_the_unfolding_corrected(query, key, value):
        """{You unfold the axis as (batch, heads), which is right, but} the order in which you move the axes still fits
        (heads, batch). The shape is right, but tokens of several sentences end up in one sentence. Name the four axes
        before and after the move: which axis must stay in front?"""
        batch, heads, seq, d_head = query.shape
        output = scaled_dot_product_attention(query, key, value)
        return output.permute(1, 2, 0, 3).reshape(batch, seq, heads * d_head)

    def only_the_transpose_corrected(query, key, value):
        """You move the axes as is right for (batch, heads, seq, d_head), but you still unfold the folded axis as
        (heads, batch). The shape is right, but the numbers are scrambled. In which order do sentences and heads follow
        one another in the folded axis?"""
        batch, heads, seq, d_head = query.shape
        output = scaled_dot_product_attention(query, key, value).reshape(heads, batch, seq, d_head)
        return output.transpose(1, 2).reshape(batch, seq, heads * d_head)

    def keys_folded_with_heads_outside(query, key, value):
        """You fold the keys with `heads` outside and `batch` inside, but the queries and values in the opposite order:
        queries of one sentence are then compared with keys of another. Fold all three in the same order, and unfold in
        that order."""
        return mend_folded_heads.reference(query, fold(key.transpose(0, 1)).unflatten(0, key.shape[:2]), value)

    @family(
        keys_and_values_with_heads_outside_as_given=((1, 2, Unfolded.as_given), *QUERIES_ALONE),
        keys_and_values_with_heads_outside_unfold=((1, 2, unfold), *QUERIES_ALONE),
        queries_with_heads_outside_as_given=((0, Unfolded.as_given), *QUERIES_ALONE),
        queries_with_heads_outside_unfold=((0, unfold), *QUERIES_ALONE),
        queries_and_values_with_heads_outside_as_given=((0, 2, Unfolded.as_given), *KEYS_ALONE),
        queries_and_values_with_heads_outside_unfold=((0, 2, unfold), *KEYS_ALONE),
        keys_with_heads_outside_as_given=((1, Unfolded.as_given), *KEYS_ALONE),
        queries_and_keys_with_heads_outside_as_given=((0, 1, Unfolded.as_given), *VALUES_ALONE),
        queries_and_keys_with_heads_outside_unfold=((0, 1, unfold), *VALUES_ALONE),
        values_with_heads_outside_as_given=((2, Unfolded.as_given), *VALUES_ALONE),
        values_with_heads_outside_unfold=((2, unfold), *VALUES_ALONE),
    )
    def some_folded_with_heads_outside(indices_and_unfold, query, key, value):
        """You fold the {} in a different order from {}: one order has `batch` outside, and the other has `heads`
        outside. {} of another sentence. Fold all three in the same order, and unfold in that order."""
        *heads_outside, unfold_output = indices_and_unfold
        tensors = (query, key, value)
        folded = [fold(x.transpose(0, 1) if index in heads_outside else x) for index, x in enumerate(tensors)]
        return merge_heads.reference(unfold_output(scaled_dot_product_attention(*folded), len(query)))

    def heads_of_a_token_folded_together(query, key, value):
        """Your folded axis consists of `batch` and `seq`, so each table compares the heads of one token with each
        other, and no token attends to a different token. Fold the two axes whose entries need separate tables: which
        two axes are these?"""
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
        return scaled_dot_product_attention(query, key, value).flatten(2)

    def sentences_in_one_table(query, key, value):
        """The tokens of all sentences share one table in each head, so a token also attends to other sentences: you
        folded `seq` with `batch`. Each sentence needs its own table in each head. Which two axes belong in front?"""
        batch = len(query)
        joined = [x.transpose(0, 1).flatten(1, 2) for x in (query, key, value)]
        output = scaled_dot_product_attention(*joined)
        return output.unflatten(1, (batch, -1)).permute(1, 2, 0, 3).flatten(2)

    def heads_in_one_table(query, key, value):
        """The tokens of all heads share one table in each sentence, so a query is also compared with the keys of other
        heads: you folded `seq` with `heads`. Each head needs its own table. Which two axes belong in front?"""
        joined = [x.flatten(1, 2) for x in (query, key, value)]
        output = scaled_dot_product_attention(*joined)
        return output.unflatten(1, query.shape[1:3]).transpose(1, 2).flatten(2)

    def heads_in_one_table_not_unfolded(query, key, value):
        """Your result is (batch, heads · seq, d_head): you folded `seq` with `heads`, and never unfolded them. A query
        is then also compared with the keys of other heads. Each head needs its own table: which two axes belong in
        front?"""
        return scaled_dot_product_attention(*(x.flatten(1, 2) for x in (query, key, value)))

    def first_sentence_for_all(query, key, value):
        """All sentences get the outputs of the first sentence. The given program is right for one sentence, but your
        function computes only one sentence: the others are lost. Where in the folded axis are the tables of the second
        sentence?"""
        output = mend_folded_heads.reference(query[:1], key[:1], value[:1])
        return output.expand(len(query), -1, -1).clone()

    def left_folded(query, key, value):
        """Your result is (batch · heads, seq, d_head): sentences and heads still share the first axis. Unfold this axis
        in the order in which you folded it, and then put the heads side by side."""
        return scaled_dot_product_attention(query, key, value).flatten(0, 1)

    def sentences_side_by_side(query, key, value):
        """Your result is (heads, seq, batch · d_head): the outputs of all sentences are side by side, where the outputs
        of all heads should be. Each output is {right but} in the wrong place. Which axis of the result must count the
        sentences, and on which axis must the heads be side by side?"""
        return scaled_dot_product_attention(query, key, value).permute(1, 2, 0, 3).flatten(2)

    def heads_not_merged(query, key, value):
        """Your result is (batch, heads, seq, d_head): you unfold the axis correctly, but no longer put the heads side
        by side. The last line of the given program puts the heads side by side, and your function needs this step
        too."""
        return scaled_dot_product_attention(query, key, value)

    def last_two_axes_not_merged(query, key, value):
        """The heads are next to the features, (batch, seq, heads, d_head), but not joined with them: the last step is
        missing. The result must be (batch, seq, heads · d_head)."""
        return scaled_dot_product_attention(query, key, value).transpose(1, 2)

    def view_after_the_transpose(query, key, value):
        """`view` refuses to join the axes: after the move, heads and features are not side by side in memory, and
        `view` never copies. `reshape` copies where it must."""
        output = unfold(
            steps.over_keys(steps.by_root_d(steps.dot_products(fold(query), fold(key)), query.shape[-1])) @ fold(value),
            len(query),
        )
        return output.transpose(1, 2).view(len(query), query.shape[2], -1)


@mend_folded_heads.wrong
class Attention:
    def keys_and_values_exchanged(query, key, value):
        """You exchange keys and values: the queries are compared with the values, and the keys are averaged. If all
        three have equally many features, your function runs and returns the right shape. Check the order of the
        arguments wherever you pass queries, keys and values."""
        return mend_folded_heads.reference(query, value, key)

    def over_the_heads(query, key, value):
        """The softmax runs over the heads: for each query and key, the weights of all heads sum to one, and with one
        head every weight is 1. Without folding, axis 1 counts the heads. Over which axis must the weights sum to
        one?"""
        weights = steps.over_heads(steps.by_root_d(steps.dot_products(query, key), query.shape[-1]))
        return merge_heads.reference(weights @ value)

    def over_the_batch(query, key, value):
        """The softmax runs over the sentences of the batch: for each query and key, the weights of all sentences sum to
        one, and in a batch of one every weight is 1. Without folding, axis 0 counts the sentences. Over which axis must
        the weights sum to one?"""
        weights = steps.over_batch(steps.by_root_d(steps.dot_products(query, key), query.shape[-1]))
        return merge_heads.reference(weights @ value)

    def by_root_d_model(query, key, value):
        """You divide the scores by the root of the number of features of all heads together, √(heads · d_head). Each
        head compares only its own features, so the standard deviation of its dot products grows with √d_head; a larger
        divisor makes the weights too even. How many terms are added up in one score?"""
        return mend_folded_heads.reference(query / query.shape[1] ** 0.5, key, value)

    def one_table_for_all_heads(query, key, value):
        """You merge the heads before you compare queries with keys, so all features are compared in one table for each
        sentence. A token then has only one set of weights for the other tokens. What must be separate for each head?"""
        return scaled_dot_product_attention(*(merge_heads.reference(x) for x in (query, key, value)))

    def bmm_of_four_axes(query, key, value):
        """`bmm` multiplies tensors with exactly three axes, but you pass tensors with four. This is why programs fold
        two axes into one; `@` and `matmul` accept any number of leading axes. Fold, or use `@` or `matmul`."""
        return torch.bmm(query, key.mT)

    def heads_and_keys_exchanged(query, key, value):
        """You exchange axes 1 and 2 of `key`. After folding, these are the last two axes; with four axes they are
        `heads` and `seq`. Count from the end: which two axes must change places, so that the features of a key are
        second to last?"""
        return query @ key.transpose(1, 2)


mend_folded_heads.mistakes_in(
    merge=(Scrambled.reshape_alone, Scrambled.features_interleaved, Scrambled.features_for_tokens),
    scale=(steps.no_scale, steps.by_d, steps.times_root_d, steps.by_root_seq),
    weights=(steps.over_queries,),
)
mend_folded_heads.mistakes_in(
    alone=True,
    scores=(steps.keys_reshaped,),
    scale=(steps.by_half_of_d, steps.by_twice_d),
    weights=(steps.no_maximum, steps.no_softmax, steps.softmax_twice, steps.later_keys_hidden),
    merge=(
        OtherShape.heads_averaged,
        OtherShape.heads_added,
        OtherShape.heads_one_after_the_other,
        OtherShape.sizes_of_heads_and_seq_exchanged,
        OtherShape.tokens_joined_instead_of_heads,
        Scrambled.heads_and_features_exchanged,
        Scrambled.reshaped_with_seq_first,
        Scrambled.heads_before_the_batch,
        Refused.heads_plus_features,
    ),
)
