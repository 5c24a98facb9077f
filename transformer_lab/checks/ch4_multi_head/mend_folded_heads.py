"""Find the mistake: a batch folded into the heads."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from .. import attention_steps as steps
from ..exercise import exercise, family
from .merge_heads import OtherShape, Refused, Scrambled, merge_heads


def _folded(draw, batch=2, heads=3, seq=7, d_head=5):
    return tuple(draw(batch, heads, seq, d_head) for _ in range(3))


def fold(x):
    """Join batch and heads to one axis."""
    return x.flatten(0, 1)


def unfold(x, batch):
    """Cut the joined axis into batch and heads again."""
    return x.unflatten(0, (batch, -1))


@exercise(
    inputs=_folded,
    axes={
        "query": "batch heads seq d_head",
        "key": "batch heads seq d_head",
        "value": "batch heads seq d_head",
        "return": "batch seq d_model",
    },
    hints=(
        "The program is right for one sentence. What can go wrong only when there are two?",
        "Two sentences with two heads make four tables. For each table, in the order of the folded axis, write down "
        "the sentence and the head to which it belongs. In which order does the program split the folded axis?",
        "In the folded axis, `batch` is the outer axis and `heads` the inner one: `view(…, …, seq, …)` must split "
        "them in this order.",
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
    """Attend in every head, with batch and heads folded into one axis: (batch, heads, seq, d_head) to (batch, seq,
    d_model)."""
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
mend_folded_heads.example("scores in the hundreds", lambda draw: tuple(15 * x for x in _folded(draw)))


@mend_folded_heads.property
def folded_sentences_apart(function, query, key, value):
    """A sentence in a batch has the outputs that it has alone."""
    alone = function(query[:1], key[:1], value[:1])
    return torch.allclose(function(query, key, value)[:1], alone, atol=1e-5)


# The one that is folded otherwise, the others, and the effect
QUERIES_ALONE = "queries", "the keys", "Queries of one sentence then meet keys"
KEYS_ALONE = "keys", "queries and values", "Queries of one sentence then meet keys"
VALUES_ALONE = "values", "queries and keys", "The weights of one sentence then blend values"


@mend_folded_heads.wrong(stage="folded")
class Folded:
    def folded_otherwise(x):
        """The folding was changed, to `heads` outside and `batch` inside, or mixes the two up; taken apart it is with
        `batch` outside. {The tables are right, and} the outputs land in other places. Folding and taking apart must
        agree: change one of the two."""
        return x.transpose(0, 1).flatten(0, 1)


@mend_folded_heads.wrong(stage="folded", alone=True)
class FoldedAlone:
    def folded_by_view(x):
        """{Right for ordinary input, and `view` raises for one whose axes were exchanged, as a split into heads leaves
        it:} batch and heads do not lie side by side in memory there, and `view` never copies. `reshape` copies where it
        must."""
        return x.view(-1, *x.shape[2:])


@mend_folded_heads.wrong(stage="weights")
class Weights:
    def over_the_folded_axis(scores):
        """The softmax runs over the folded axis: for each query and key, the weights of all heads of all sentences sum
        to one. `F.softmax` without a `dim` takes axis 0 when there are three. Over which axis must the weights sum to
        one?"""
        return scores.softmax(0)


@mend_folded_heads.wrong(stage="unfolded")
class Unfolded:
    def as_given(output, batch):
        """This does what the given program does: right for one sentence, and with two, some heads of one sentence end
        up in the other. Give it two sentences, then each of them alone, and compare the outputs feature by feature:
        which block of features has moved?"""
        return output.unflatten(0, (-1, batch)).transpose(0, 1)

    def heads_and_batch_not_exchanged(output, batch):
        """The result is taken apart as (heads, batch), and left so: sentences and heads have changed places. The folded
        axis was made of `batch` outside and `heads` inside."""
        return output.unflatten(0, (-1, batch))


@mend_folded_heads.wrong
class Folding:
    def only_the_cut_was_mended(query, key, value):
        """{The folded axis is taken apart as (batch, heads), which is right, and} the order in which the axes are moved
        still fits (heads, batch). The shape comes out right, and tokens of several sentences end up in one. Name the
        four axes before the move and after it: which one must stay in front?"""
        batch, heads, seq, d_head = query.shape
        output = scaled_dot_product_attention(query, key, value)
        return output.permute(1, 2, 0, 3).reshape(batch, seq, heads * d_head)

    def only_the_move_was_mended(query, key, value):
        """The axes are moved as if they were (batch, heads, seq, d_head), which they should be, and the folded axis is
        still taken apart as (heads, batch). The shape comes out right, and the numbers are scrambled. In which order do
        sentences and heads follow one another in the folded axis?"""
        batch, heads, seq, d_head = query.shape
        output = scaled_dot_product_attention(query, key, value).reshape(heads, batch, seq, d_head)
        return output.transpose(1, 2).reshape(batch, seq, heads * d_head)

    def folded_the_other_way(query, key, value):
        """The keys are folded in another order than queries and values, with `heads` outside and `batch` inside:
        queries of one sentence then meet keys of another. All three must be folded alike, and taken apart in that
        order."""
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
    def one_folded_otherwise(heads_outside, query, key, value):
        """The {} are folded in another order than {}: in one folded axis `batch` stands outside, in the other `heads`.
        {} of another. All three must be folded alike, and taken apart in that order."""
        *heads_outside, taken_apart = heads_outside
        each = (query, key, value)
        folded = [fold(x.transpose(0, 1) if number in heads_outside else x) for number, x in enumerate(each)]
        return merge_heads.reference(taken_apart(scaled_dot_product_attention(*folded), len(query)))

    def heads_of_a_token_folded_together(query, key, value):
        """The folded axis is made of `batch` and `seq`, so that each table compares the heads of one token with each
        other, and no token sees another one. What belongs in front is whatever has a table of its own: which two
        axes?"""
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
        return scaled_dot_product_attention(query, key, value).flatten(2)

    def sentences_see_one_another(query, key, value):
        """The tokens of all sentences share one table in each head, so that a token attends to other sentences as well:
        `seq` was folded with `batch`. Each sentence needs a table of its own in each head. Which two axes belong in
        front?"""
        batch = len(query)
        joined = [x.transpose(0, 1).flatten(1, 2) for x in (query, key, value)]
        output = scaled_dot_product_attention(*joined)
        return output.unflatten(1, (batch, -1)).permute(1, 2, 0, 3).flatten(2)

    def heads_see_one_another(query, key, value):
        """The tokens of all heads share one table in each sentence, so that a query meets the keys of other heads as
        well: `seq` was folded with `heads`. Each head needs a table of its own. Which two axes belong in front?"""
        joined = [x.flatten(1, 2) for x in (query, key, value)]
        output = scaled_dot_product_attention(*joined)
        return output.unflatten(1, query.shape[1:3]).transpose(1, 2).flatten(2)

    def heads_of_a_sentence_in_one_long_text(query, key, value):
        """Your result is (batch, heads · seq, d_head): `seq` was folded with `heads`, and never taken apart. A query
        then meets the keys of other heads as well. Each head needs a table of its own: which two axes belong in
        front?"""
        return scaled_dot_product_attention(*(x.flatten(1, 2) for x in (query, key, value)))

    def first_sentence_for_all(query, key, value):
        """All sentences get the outputs of the first. The program was right for one sentence, and that is how it was
        kept right; the others are lost. Where do the tables of the second sentence stand in the folded axis?"""
        output = mend_folded_heads.reference(query[:1], key[:1], value[:1])
        return output.expand(len(query), -1, -1).clone()

    def left_folded(query, key, value):
        """Your result is (batch · heads, seq, d_head): it is still folded. Sentences and heads share the first axis.
        Take them apart, in the order in which they were folded, then put the heads side by side."""
        return scaled_dot_product_attention(query, key, value).flatten(0, 1)

    def sentences_side_by_side(query, key, value):
        """Your result is (heads, seq, batch · d_head): the outputs of all sentences stand side by side, where those of
        all heads should. Each output is {right and} in the wrong place. Along which axis does a sentence go on, and
        along which do its heads?"""
        return scaled_dot_product_attention(query, key, value).permute(1, 2, 0, 3).flatten(2)

    def heads_left_apart(query, key, value):
        """Your result is (batch, heads, seq, d_head): the folded axis is taken apart as it should be, and the heads are
        not put side by side any more. The given program did that in its last line, and so must yours."""
        return scaled_dot_product_attention(query, key, value)

    def last_two_axes_left_apart(query, key, value):
        """The heads stand beside the features, (batch, seq, heads, d_head), and are not joined with them: the last step
        is missing. The result is (batch, seq, heads · d_head)."""
        return scaled_dot_product_attention(query, key, value).transpose(1, 2)

    def view_after_the_move(query, key, value):
        """`view` refuses to join the axes: after the move, heads and features do not lie side by side in memory, and
        `view` never copies. `reshape` copies where it must."""
        output = unfold(
            steps.over_keys(steps.by_root_d(steps.dot_products(fold(query), fold(key)), query.shape[-1])) @ fold(value),
            len(query),
        )
        return output.transpose(1, 2).view(len(query), query.shape[2], -1)


@mend_folded_heads.wrong
class Attention:
    def keys_and_values_exchanged(query, key, value):
        """Keys and values have changed places: the queries are compared with the values, and the keys are blended. With
        equal widths it runs and returns the right shape. Look at the order of the arguments wherever you hand three
        on."""
        return mend_folded_heads.reference(query, value, key)

    def over_the_heads(query, key, value):
        """The softmax runs over the heads: for each query and key, the weights of all heads sum to one, and with one
        head every weight is 1. Without folding, axis 1 counts the heads. Over which axis must the weights sum to
        one?"""
        weights = steps.over_heads(steps.by_root_d(steps.dot_products(query, key), query.shape[-1]))
        return merge_heads.reference(weights @ value)

    def over_the_batch(query, key, value):
        """The softmax runs over the sentences of the batch: they compete for weight, and in a batch of one every weight
        is 1. Without folding, axis 0 counts the sentences. Over which axis must the weights sum to one?"""
        weights = steps.over_batch(steps.by_root_d(steps.dot_products(query, key), query.shape[-1]))
        return merge_heads.reference(weights @ value)

    def by_root_d_model(query, key, value):
        """The scores are divided by the root of all heads' features together, √(heads · d_head). Each head compares its
        own features only, so its dot products spread like √d_head, and divided by more its weights are too even. How
        many terms does one score sum?"""
        return mend_folded_heads.reference(query / query.shape[1] ** 0.5, key, value)

    def one_table_for_all_heads(query, key, value):
        """The heads are merged before the queries meet the keys, so that all features are compared in one table for
        each sentence. A token can then look in one way only. What does each head need of its own?"""
        return scaled_dot_product_attention(*(merge_heads.reference(x) for x in (query, key, value)))

    def bmm_of_four_axes(query, key, value):
        """`bmm` multiplies tensors of exactly three axes, and gets four. That is what the folding is for; `@` and
        `matmul` take any number of axes in front. Fold, or use one of these."""
        return torch.bmm(query, key.mT)

    def heads_and_keys_exchanged(query, key, value):
        """In `key`, the axes 1 and 2 have changed places. After folding these are the last two; with four axes they are
        `heads` and `seq`. Count from the end: which two must change places so that the features of a key stand second
        to last?"""
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
        OtherShape.sizes_in_another_order,
        OtherShape.tokens_joined_instead_of_heads,
        Scrambled.heads_and_features_exchanged,
        Scrambled.cut_over_the_batch,
        Scrambled.heads_before_the_batch,
        Refused.heads_plus_features,
    ),
)
