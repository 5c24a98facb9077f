"""Attention: a blend of the values for each query."""

import functools
import math

import torch
from torch.nn import functional as F

from .. import attention_steps as steps
from ..exercise import exercise, with_text_of
from .attention_weights import (
    SCORES_FAR_APART,
    attention_weights,
    query_and_key,
    scale_after_softmax,
    scaled_once_more,
    with_first_features,
)
from .properties import nearly_equal


def query_key_value(draw, batch=2, heads=3, q_len=7, k_len=9, d_head=4, d_value=5):
    return *query_and_key(draw, batch, heads, q_len, k_len, d_head), draw(batch, heads, k_len, d_value)


@exercise(
    inputs=query_key_value,
    axes={
        "query": "batch heads q_len d_head",
        "key": "batch heads k_len d_head",
        "value": "batch heads k_len d_value",
        "return": "batch heads q_len d_value",
    },
    hints=(
        "Each query gets one blend of all the values. A product of weights and values sums over an axis that both "
        "tensors have. Which axis is it?",
        "A row of the weights has one number for each key, and each key has one value. The matrix product of weights "
        "and values sums over the axis of the keys, with nothing transposed.",
        "`weights = attention_weights(…, …)`, then `… @ …`",
    ),
)
def attention(
    query,
    key,
    value,
    *,
    scores=steps.dot_products,
    scale=steps.by_root_d,
    weights=steps.over_keys,
    output=steps.weighted_sum,
):
    """Blend the values by how well their keys match each query: the result has shape (…, q_len, d_value)."""
    return output(weights(scale(scores(query, key), query.shape[-1])), value)


@attention.right
class RightAnswers:
    def attention_of_pytorch(query, key, value):
        return F.scaled_dot_product_attention(query, key, value)

    def attention_by_einsum(query, key, value):
        weights = torch.einsum("bhqd,bhkd->bhqk", query, key).div(query.size(-1) ** 0.5).softmax(3)
        return torch.einsum("bhqk,bhkv->bhqv", weights, value)

    def attention_query_by_query(query, key, value):
        rows = []
        for q in query.unbind(2):
            scores = (q.unsqueeze(2) * key).sum(-1) / math.sqrt(q.shape[-1])
            rows.append((scores.softmax(-1).unsqueeze(-1) * value).sum(2))
        return torch.stack(rows, dim=2)

    def attention_divided_last(query, key, value):
        scores = query @ key.mT * query.shape[-1] ** -0.5
        exp = (scores - scores.amax(-1, keepdim=True)).exp()
        return (exp @ value) / exp.sum(-1, keepdim=True)

    def attention_transposed(query, key, value):
        weights = (key @ (query / query.shape[-1] ** 0.5).mT).softmax(-2)
        return (value.mT @ weights).mT

    def attention_folded(query, key, value):
        sizes = query.shape[:2]
        query, key, value = (x.flatten(0, 1) for x in (query, key, value))
        weights = torch.bmm(query, key.transpose(1, 2)).div(math.sqrt(key.shape[2])).softmax(2)
        return torch.bmm(weights, value).unflatten(0, sizes)


@attention.property
def constant_values_stay(function, query, key, value):
    """If all values are 1, all outputs are 1, since the weights of a query sum to one."""
    return nearly_equal(function(query, key, torch.ones_like(value)), 1)


@attention.property
def zero_query_gets_the_mean(function, query, key, value):
    """A query of zeros gets the plain mean of the values."""
    return nearly_equal(function(torch.zeros_like(query), key, value), value.mean(-2, keepdim=True))


@attention.property
def heads_independent(function, query, key, value):
    """Head 0 of sentence 0 does not depend on the other heads or sentences."""
    return nearly_equal(function(query[:1, :1], key[:1, :1], value[:1, :1]), function(query, key, value)[:1, :1])


@attention.property
def queries_independent(function, query, key, value):
    """The output of query 0 does not depend on the other queries."""
    return nearly_equal(function(query[..., :1, :], key, value), function(query, key, value)[..., :1, :])


attention.example("equal lengths and equal widths", q_len=3, k_len=3, d_value=4, plain=True)
attention.example("more queries than keys", k_len=3)
attention.example("one query", q_len=1)
attention.example("one key", k_len=1)
attention.example("one sentence and one head", batch=1, heads=1)
attention.example("one feature", d_head=1, d_value=1)
for name, values in SCORES_FAR_APART.items():
    attention.example(name, lambda draw, values=values: with_first_features(query_key_value(draw), *values))


@attention.wrong
class Inputs:
    def values_from_keys(query, key, value):
        """You blend the keys and not the values: your result has the features of a key. Queries and keys are only
        compared; the output is a blend of values. Which of the three tensors is missing from your last line?"""
        return attention_weights.reference(query, key) @ key

    def values_from_queries(query, key, value):
        """You blend the queries and not the values. The product raises an error unless there are as many queries as
        keys, as in self-attention. Queries and keys are only compared; the output is a blend of values. Which of the
        three tensors is missing from your last line?"""
        return attention_weights.reference(query, key) @ query

    def keys_and_values_exchanged(query, key, value):
        """You swap keys and values: you compare the queries with the values, and blend the keys. With d_value = d_head
        this runs and returns the right shape. Look at the order of the arguments wherever you pass all three."""
        return attention.reference(query, value, key)

    @with_text_of(keys_and_values_exchanged)
    def keys_and_values_exchanged_for_pytorch(query, key, value):
        return F.scaled_dot_product_attention(query, value, key)

    @with_text_of(steps.keys_against_queries)
    def queries_and_keys_exchanged_for_pytorch(query, key, value):
        return F.scaled_dot_product_attention(key, query, value)

    @with_text_of(steps.keys_against_queries)
    def keys_against_queries_by_letters(query, key, value):
        weights = steps.over_keys(steps.by_root_d(key @ query.mT, query.shape[-1]))
        return torch.einsum("bhqk,bhkv->bhqv", weights, value)

    def values_before_the_weights(query, key, value):
        """The values are on the left of the product, which sums over the last axis of its left factor: the features of
        the values. The product must sum over the keys. Which of the two factors has the keys on its last axis?"""
        return value @ attention_weights.reference(query, key)

    def weights_times_values_element_by_element(query, key, value):
        """You multiply weights and values element by element, with `*`, not as matrices. Each query needs the sum of
        weight times value over all keys: which operator computes this sum for all queries at once?"""
        return attention_weights.reference(query, key) * value

    def softmax_of_the_blend(query, key, value):
        """You use the scores as weights, and apply the softmax to the output. The weights of a query must sum to one.
        Between which two products does the softmax belong?"""
        return steps.over_keys(steps.by_root_d(steps.dot_products(query, key), query.shape[-1]) @ value)

    def softmax_of_the_values(query, key, value):
        """You use the scores as weights, and apply the softmax to the values. Values may be any numbers; the weights of
        a query must sum to one. To which tensor do you apply the softmax?"""
        return steps.by_root_d(steps.dot_products(query, key), query.shape[-1]) @ steps.over_keys(value)


@attention.wrong
class Results:
    def weights_without_values(query, key, value):
        """You return the weights themselves, of shape (…, q_len, k_len): one number for each query and key. The weights
        say how much of each value is in the output. The product with the values is missing."""
        return attention_weights.reference(query, key)

    def output_and_weights(query, key, value):
        """You return two tensors, the output and the weights. PyTorch's `nn.MultiheadAttention` also returns both, but
        a caller who expects one tensor gets a pair. Here, return only the output."""
        return attention.reference(query, key, value), attention_weights.reference(query, key)

    def divided_by_the_number_of_keys(query, key, value):
        """You also divide the output by the number of keys. The weights of a query sum to one, so the weighted sum of
        the values is a mean already."""
        return attention.reference(query, key, value) / key.shape[-2]

    def query_added_back(query, key, value):
        """You add the query itself to the output. This is a residual connection, which belongs to a Transformer block
        and not to attention; the shapes fit only if d_value = d_head. Return only the blend of the values."""
        return query + attention.reference(query, key, value)

    def heads_merged(query, key, value):
        """The heads are merged: your result has shape (batch, q_len, heads · d_value). {The numbers are right.} Merging
        is a separate step, in chapter 4; here the heads keep their axis."""
        return attention.reference(query, key, value).transpose(1, 2).flatten(2)

    def heads_after_the_queries(query, key, value):
        """Your result has shape (batch, q_len, heads, d_value): `heads` and `q_len` are exchanged. {The numbers are
        right.} This is the first half of merging the heads, which is a separate step, in chapter 4; here `heads` stays
        where it is."""
        return attention.reference(query, key, value).transpose(1, 2)

    def heads_added_up(query, key, value):
        """Your result has shape (batch, q_len, d_value): the outputs of all heads are added up. In `einsum`, a letter
        that the output lacks is summed over. Here the heads keep their axis: which letter is missing?"""
        return attention.reference(query, key, value).sum(1)


@attention.wrong(stage="output", alone=True)
class OutputAlone:
    def values_transposed(weights, value):
        """You transpose the values, so the product sums over the keys of the weights and the features of the values. It
        raises an error unless there are as many keys as features. The weights have the keys on their last axis: which
        axis of the values must be second to last?"""
        return weights @ value.mT

    def transposed_values_left_of_the_weights(weights, value):
        """The transposed values are on the left of the product, so it sums over the keys of the values and the queries
        of the weights. It raises an error unless there are as many keys as queries. Which of the two factors has the
        keys on its last axis without a transpose?"""
        return value.mT @ weights

    def bmm_of_weights_with_four_axes(weights, value):
        """`bmm` multiplies tensors of exactly three axes, but your tensors have four. `@` and `matmul` multiply over
        the last two axes, with any number of axes in front."""
        return torch.bmm(weights, value)

    def weights_with_the_first_axis_of_the_values(weights, value):
        """`tensordot` with the number 1 sums over the last axis of the weights and the first axis of the values, which
        is the axis of the sentences. Sum over the keys in both tensors, in each head of each sentence. Which product
        sums over these two axes?"""
        return torch.tensordot(weights, value, 1)


@attention.mistake_around
def by_root_d_value(function):
    """You divide the scores by √d_value, the root of the number of features of a value. But a score is a sum over the
    features of a query and a key, so divide by √d_head. The two numbers are often equal, but not here."""

    @functools.wraps(function)
    def with_a_scaled_query(query, key, value):
        return function(query * (query.shape[-1] / value.shape[-1]) ** 0.5, key, value)

    return with_a_scaled_query


attention.mistakes_in(scale=steps.SCALE_MISTAKES, weights=steps.SOFTMAX_MISTAKES)
attention.mistakes_in(
    alone=True,
    scores=steps.SCORE_MISTAKES,
    scale=(steps.root_of_a_plain_number,),
    output=steps.OUTPUT_MISTAKES,
)
for mistake in (scaled_once_more, scale_after_softmax):
    attention.mistake(mistake)
