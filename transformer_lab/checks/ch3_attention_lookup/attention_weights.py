"""The weights of attention: how much weight each query gives to each key."""

import math

import torch
from torch.nn import functional as F

from .. import attention_steps as steps
from ..exercise import exercise
from .properties import nearly_equal
from .softmax import softmax


def query_and_key(draw, batch=2, heads=3, q_len=7, k_len=9, d_head=4):
    # √4 is exact in float32, so an answer that computes the root in float32 is right in float64 as well.
    return draw(batch, heads, q_len, d_head), draw(batch, heads, k_len, d_head)


@exercise(
    inputs=query_and_key,
    axes={
        "query": "batch heads q_len d_head",
        "key": "batch heads k_len d_head",
        "return": "batch heads q_len k_len",
    },
    hints=(
        "Every query is compared with every key. Over which axis do the dot products sum, and along which axis must "
        "the weights sum to one?",
        "A matrix product sums over the last axis of the left factor and the second-to-last axis of the right factor: "
        "swap two axes of `key`. The divisor depends on the number of terms in one dot product.",
        "`scores = query @ key.transpose(…, …) / …`, then `softmax(scores, dim=…)`",
    ),
)
def attention_weights(query, key, *, scores=steps.dot_products, scale=steps.by_root_d, weights=steps.over_keys):
    """Return the weight of each key (…, k_len, d_head) for each query (…, q_len, d_head), as a tensor of shape (…,
    q_len, k_len)."""
    return weights(scale(scores(query, key), query.shape[-1]))


@attention_weights.right
class RightAnswers:
    def weights_by_einsum(query, key):
        scores = torch.einsum("bhqd,bhkd->bhqk", query, key)
        return torch.softmax(scores / math.sqrt(key.size(-1)), dim=-1)

    def weights_of_scaled_queries(query, key):
        return softmax.reference((query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1), -1)

    def weights_with_a_root_in_float32(query, key):
        d_head = torch.tensor(key.shape[-1], dtype=torch.float32)
        return F.softmax(torch.matmul(query, key.permute(0, 1, 3, 2)) / torch.sqrt(d_head), dim=3)

    def weights_scaled_on_both_sides(query, key):
        root = query.shape[-1] ** 0.25
        scores = ((query / root).unsqueeze(-2) * (key / root).unsqueeze(-3)).sum(-1)
        return (scores - scores.logsumexp(-1, keepdim=True)).exp()

    def weights_by_columns(query, key):
        return (key @ query.mT / key.shape[-1] ** 0.5).softmax(-2).mT

    def weights_query_by_query(query, key):
        rows = [(key @ q.unsqueeze(-1)).squeeze(-1) / key.shape[-1] ** 0.5 for q in query.unbind(-2)]
        return torch.stack([row.softmax(-1) for row in rows], dim=-2)


@attention_weights.property
def rows_sum_to_one(function, query, key):
    """Every row of the weights sums to one."""
    return nearly_equal(function(query, key).sum(-1), 1)


@attention_weights.property
def zero_query_gets_equal_weights(function, query, key):
    """A query of zeros gives every key the same weight."""
    return nearly_equal(function(torch.zeros_like(query), key), 1 / key.shape[-2])


@attention_weights.property
def heads_independent(function, query, key):
    """Head 0 of sentence 0 does not depend on the other heads and sentences."""
    return nearly_equal(function(query[:1, :1], key[:1, :1]), function(query, key)[:1, :1])


@attention_weights.property
def queries_independent(function, query, key):
    """The weights of query 0 do not depend on the other queries."""
    return nearly_equal(function(query[..., :1, :], key), function(query, key)[..., :1, :])


SCORES_FAR_APART = {  # the first feature of even and odd queries, and of even and odd keys
    "scores of more than a hundred": ((16, 16), (16, 16)),
    "queries whose scores lie far apart": ((16, -16), (16, 16)),
    "keys whose scores lie far apart": ((16, 16), (16, -16)),
}


def with_first_features(tensors, query_values, key_values):
    """Set the first feature of the queries and of the keys, at even and at odd positions, so that the scores become
    large or lie far apart."""
    for vectors, (even, odd) in zip(tensors, (query_values, key_values)):
        vectors[..., ::2, 0], vectors[..., 1::2, 0] = even, odd
    return tensors


attention_weights.example("equal lengths and equal widths", q_len=3, k_len=3, plain=True)
attention_weights.example("more queries than keys", k_len=3)
attention_weights.example("one query", q_len=1)
attention_weights.example("one key", k_len=1)
attention_weights.example("one sentence and one head", batch=1, heads=1)
attention_weights.example("one feature", d_head=1)
for name, values in SCORES_FAR_APART.items():
    attention_weights.example(name, lambda draw, values=values: with_first_features(query_and_key(draw), *values))


@attention_weights.wrong
class WrongAnswers:
    def keys_by_queries(query, key):
        """Your result has shape (…, k_len, q_len): a row for each key instead of one for each query. The numbers may be
        right, but the product with the values sums over the last axis, which must be the keys. Does a row of the
        weights belong to a query or to a key?"""
        return attention_weights.reference(query, key).mT

    def keys_blended(query, key):
        """Your result has the features of a key: you multiply the weights by the keys, as
        `scaled_dot_product_attention` does with the values. Return the weights themselves, one number for each query
        and key."""
        return attention_weights.reference(query, key) @ key

    def scores_negated(query, key):
        """The scores have the wrong sign: the key that matches best gets the smallest weight. A large dot product means
        a good match and needs no minus. Where is the minus in your function?"""
        return attention_weights.reference(-query, key)

    def by_cosine(query, key):
        """You compare only directions: you divide queries and keys by their norms, so the scores are between -1 and 1,
        and the weights are nearly equal. Attention divides the dot products only by √d_head."""
        return steps.over_keys(F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT)

    def always_divided_by_eight(query, key):
        """You divide the scores by 8, whatever `d_head` is. The heads of the original Transformer have 64 features, and
        8 is the root of 64. How many features do these heads have?"""
        return steps.over_keys(query @ key.mT / 8)


attention_weights.mistakes_in(alone=True, scores=steps.SCORE_MISTAKES)
attention_weights.mistakes_in(scale=steps.SCALE_MISTAKES, weights=steps.SOFTMAX_MISTAKES)
attention_weights.mistakes_in(alone=True, scale=(steps.root_of_a_plain_number,))


@attention_weights.mistake
def scaled_once_more(query, key, value=None):
    """You scale the scores correctly, but divide the weights (or the output) by √d_head once more. The weights then sum
    to 1/√d_head. Does one of the functions that you call already scale the scores?"""
    weights = attention_weights.reference(query, key) / query.shape[-1] ** 0.5
    return weights if value is None else weights @ value


@attention_weights.mistake
def scale_after_softmax(query, key, value=None):
    """The scale comes after the softmax: you divide the weights (or the output) by √d_head, not the scores. The weights
    then sum to 1/√d_head, and the softmax has saturated already. The scale keeps the scores small: before which step
    must you divide?"""
    weights = (query @ key.mT).softmax(-1) / query.shape[-1] ** 0.5
    return weights if value is None else weights @ value
