"""Right and wrong stages of attention for the exercises of several chapters."""

import math

import torch
from torch.nn import functional as F


def dot_products(query, key):
    """Multiply each query by each key."""
    return query @ key.mT


def by_root_d(scores, d_head):
    """Divide the scores by √d_head."""
    return scores / d_head**0.5


def over_keys(scores):
    """Take the softmax over the keys, for each query."""
    return scores.softmax(-1)


def weighted_sum(weights, value):
    """Blend the values with the weights."""
    return weights @ value


# The scores, wrong


def keys_against_queries(query, key):
    """Query and key have changed places: you compute the scores of every key against every query, and the table has the
    shape (…, k_len, q_len). Only the product with the values can then raise an error. With as many queries as keys
    there is no error, but the score of query 1 and key 2 is used for query 2 and key 1. Do the rows of your table
    belong to the queries or to the keys? Look at the order of the arguments as well."""
    return key @ query.mT


def keys_not_transposed(query, key):
    """You multiply the queries by the keys without a transpose, so the matrix product sums over the keys instead of the
    features. The product raises an error unless there are as many keys as features; if these sizes are equal, it is
    silently wrong. Queries and keys are compared feature by feature: which axis of `key` must be second to last?"""
    return query @ key


def all_axes_reversed(query, key):
    """You reverse the order of all the axes of `key`, including the batch: `.T` does this to a tensor with any number
    of axes. Sentences are then compared with other sentences, and usually the sizes do not fit. Only the last two axes
    must change places."""
    return query @ key.permute(*range(key.ndim - 1, -1, -1))


def heads_and_keys_transposed(query, key):
    """You swap axes 1 and 2 of `key`. With three axes these are the last two, and code for three axes is often copied;
    with four axes they are `heads` and `k_len`. Count from the end: which two axes must change places so that the
    features of a key are second to last?"""
    return query @ key.transpose(1, 2)


def keys_reshaped(query, key):
    """You use `view` or `reshape` to turn the keys into (…, d_head, k_len), instead of a transpose. The shape is right,
    but the numbers are scrambled: `view` reads memory in its old order, so a column contains numbers of several keys.
    Which operation moves an axis?"""
    return query @ key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])


def element_by_element(query, key):
    """You multiply queries and keys element by element, with `*`, not as matrices. This pairs query 1 only with key 1,
    and query 2 only with key 2; the product raises an error unless there are as many queries as keys. Every query must
    be compared with every key: which operator computes the table of all dot products?"""
    return query * key


def bmm_of_four_axes(query, key):
    """`bmm` multiplies tensors of exactly three axes, but yours have four. `@` and `matmul` multiply over the last two
    axes, with any number of axes in front."""
    return torch.bmm(query, key.mT)


def every_table_with_every_other(query, key):
    """Your table has all the axes of the query and then those of the key, so heads and sentences occur twice:
    `tensordot` sums over the features, and pairs every query with every key of all the heads and sentences. A query may
    be compared only with the keys of its own head and sentence. Which product matches the leading axes one to one?"""
    return torch.tensordot(query, key, ([-1], [-1]))


def heads_summed(query, key):
    """The scores have no axis for the heads: the dot products of all heads are added up. In `einsum`, a letter that the
    output lacks is summed over. Each head has its own table: which letter is missing?"""
    return torch.einsum("bhqd,bhkd->bqk", query, key)


def heads_share_a_table(query, key):
    """There is one table for all heads: their dot products are added up, and the same weights are used for the values
    of every head. In `einsum`, a letter that the output lacks is summed over. Each head has its own table: which letter
    is missing?"""
    return heads_summed(query, key)[:, None]


def keys_of_all_heads(query, key):
    """You compare each query with the sum of the keys of all heads. In `einsum`, the axis of the heads needs the same
    letter in both factors; a letter that is in only one factor, and not in the output, is summed over. Do the heads
    have the same letter everywhere?"""
    return query @ key.sum(1, keepdim=True).mT


# The scale, wrong


def no_scale(scores, d_head):
    """The scale is missing: the softmax receives the scores unscaled. The spread of a dot product of `d_head` features
    is about √d_head, so the best key gets too much of the weight, and in wide heads nearly all of it. {Every row still
    sums to one, so only the numbers show the mistake.} By what does the formula divide the scores?"""
    return scores


def by_d(scores, d_head):
    """You divide the scores by `d_head` itself instead of its root; perhaps you divide by the root twice. The scores
    become too small, and the weights too even: with 64 features the spread is 1/8 instead of 1. The variance of a score
    is `d_head`: how large is its spread?"""
    return scores / d_head


def times_root_d(scores, d_head):
    """You multiply the scores by √d_head, instead of dividing. {One key gets nearly all the weight, especially if there
    are many features.} The scale is a factor below one: which sign does its exponent have?"""
    return scores * d_head**0.5


def by_half_of_d(scores, d_head):
    """You divide the scores by half of `d_head`: `d_head ** 1 / 2` is half of `d_head`, because `**` is applied before
    `/`. With 4 features, half of `d_head` equals its root, and the mistake does not show. Look at how you write the
    root."""
    return scores / (d_head / 2)


def by_twice_d(scores, d_head):
    """You divide the scores by twice `d_head`: `scores / d_head ** 1 / 2` divides by 2 · d_head, and so does `scores *
    d_head ** -1 / 2`, because `**` is applied before `/`. The 2 is not part of the exponent: it divides the result once
    more. Look at how you write the root."""
    return scores / (2 * d_head)


def by_fourth_root_of_d(scores, d_head):
    """You divide the scores by the fourth root of `d_head`, so they are too large. Some programs divide both queries
    and keys by the fourth root, so that the product is divided by the root. Do you divide only the queries or only the
    keys, or take a root twice?"""
    return scores / d_head**0.25


def by_root_k_len(scores, d_head):
    """You divide the scores by the root of the number of keys. But a dot product is a sum over features: it does not
    become larger when there are more keys. The result is right by accident if there are as many keys as features. The
    size of which axis do you need?"""
    return scores / scores.shape[-1] ** 0.5


def by_root_q_len(scores, d_head):
    """You divide the scores by the root of the number of queries. But a dot product is a sum over features: it does not
    become larger when there are more queries. The result is right by accident if there are as many queries as features.
    The size of which axis do you need?"""
    return scores / scores.shape[-2] ** 0.5


def by_root_seq(scores, d_head):
    """You divide the scores by the root of the number of tokens. But a dot product is a sum over features: it does not
    become larger when the text is longer. The result is right by accident if there are as many tokens as features. The
    size of which axis do you need?"""
    return scores / scores.shape[-1] ** 0.5


def by_root_heads(scores, d_head):
    """You divide the scores by the root of the number of heads. `shape[1]` is the number of features if there are two
    axes, but not if there are four. Counted from the end, the axis of the features has the same number in both cases:
    which number?"""
    return scores / scores.shape[1] ** 0.5


def by_root_batch(scores, d_head):
    """You divide the scores by the root of the number of sentences, which is `len(query)` and `shape[0]`. The output
    for a sentence then depends on how many sentences are in the batch. Which axis counts the features?"""
    return scores / scores.shape[0] ** 0.5


def root_of_a_plain_number(scores, d_head):
    """`torch.sqrt` accepts tensors only, but the size of an axis is a plain number. `math.sqrt` accepts numbers, and so
    does `** 0.5`."""
    return scores / torch.sqrt(d_head)


def by_root_d_model(scores, d_head):
    """You divide the scores by √(heads · d_head), the root of the number of features of all heads together. Each head
    compares its own features only, so the spread of its scores is √d_head, and your weights are too even. With one head
    the two roots are the same. How many terms does one score sum?"""
    return scores / (scores.shape[1] * d_head) ** 0.5


# The weights, wrong


def over_queries(scores):
    """The softmax runs over the queries: every column of the weights sums to one, instead of every row. Each key then
    distributes a total weight of 1 over the queries, and the weights of one query need not sum to one. In a table (…,
    q_len, k_len), which axis counts the keys?"""
    return scores.softmax(-2)


def over_heads(scores):
    """The softmax runs over axis 1, which counts the heads: for each query and key, the weights of all heads sum to
    one. The heads then compete, and with one head every weight is 1. `F.softmax` without a `dim` also uses axis 1 when
    there are four axes. Over which axis must the weights sum to one?"""
    return scores.softmax(1)


def over_batch(scores):
    """The softmax runs over axis 0, which counts the sentences of the batch: unrelated sentences compete for weight,
    and in a batch of one every weight is 1. Over which axis must the weights sum to one?"""
    return scores.softmax(0)


def over_the_table(scores):
    """The softmax runs over queries and keys together: all the weights of a table sum to one, and the weights of a
    single query sum to less than one. The outputs are too small, by a factor of about `q_len`. Each query has a total
    weight of 1 for its keys: over which axis alone must you sum?"""
    return scores.flatten(-2).softmax(-1).unflatten(-1, scores.shape[-2:])


def over_everything(scores):
    """You divide by one sum over the whole tensor, batch and all, so all the weights together sum to one. `.sum()`
    without an axis adds up the whole tensor. Each query has a total weight of 1 for its keys: along which axis
    must the sum run?"""
    return scores.flatten().softmax(0).reshape(scores.shape)


def keepdim_forgotten(scores):
    """The sum (or the maximum) over the keys has lost its axis, and no longer fits the table of scores. Broadcasting
    aligns shapes from the right, so the sum lines up with the wrong axes, and PyTorch raises an error here. Keep the
    axis, with size 1: sums and maxima have an option for that."""
    return scores.exp() / scores.exp().sum(-1)


def no_maximum(scores):
    """Nothing prevents `exp` from overflowing. In float32, e to the power of 89 is already infinite, and infinity
    divided by infinity is NaN. A softmax depends only on the differences between the scores of a row, so you may
    subtract the same number from all of them: which number makes sure that no exponent is large?"""
    exp = scores.exp()
    return exp / exp.sum(-1, keepdim=True)


def maximum_of_all(scores):
    """You subtract the maximum of all the scores together. That prevents overflow, but if all the scores of a row are
    104 or more below this maximum, all their exponentials are 0, and 0/0 is NaN. Each row has its own softmax:
    which maximum does it need?"""
    exp = (scores - scores.detach().amax()).exp()
    return exp / exp.sum(-1, keepdim=True)


def no_softmax(scores):
    """The softmax is missing: you use the scores themselves as weights. Scores can be negative and do not sum to one,
    so the result is not a mean of the values. Which function turns scores into weights?"""
    return scores


def softmax_twice(scores):
    """You apply the softmax twice, once to the scores and once more to the weights. The weights {still sum to one, but}
    are nearly equal, because numbers between 0 and 1 differ by little. Does one of the functions that you call already
    apply a softmax?"""
    return scores.softmax(-1).softmax(-1)


def never_exponentiated(scores):
    """You divide the scores by their sum, without `exp`. Scores can be positive or negative, so some weights are
    negative, and where the sum is near zero the weights are huge. Which function makes all scores positive and keeps
    their order?"""
    return scores / scores.sum(-1, keepdim=True)


def never_divided(scores):
    """You use the exponentials as weights, without dividing them by their sum. They are positive but do not sum to one,
    so a query with good matches gets a large output instead of a mean of the values. What is missing from the
    softmax?"""
    return scores.exp()


def each_score_alone(scores):
    """You turn each score into a weight separately, by a sigmoid. All weights are between 0 and 1, but they do not sum
    to one: a query that matches nothing gives every key a weight of about a half. In a softmax the keys share a total
    weight of 1."""
    return scores.sigmoid()


def logarithms_of_weights(scores):
    """Your weights are logarithms, which `log_softmax` returns: none is above zero. Losses need logarithms; a weighted
    mean needs weights that sum to one."""
    return scores.log_softmax(-1)


def later_keys_hidden(scores):
    """Query 0 sees key 0 only, query 1 sees the first two keys, and so on: your function applies a causal mask, as a
    decoder does. Without a mask, every query sees every key. Chapter 5 introduces masks."""
    return scores.where(torch.ones_like(scores).tril().bool(), -math.inf).softmax(-1)


def only_the_best(scores):
    """Each query gets the value of its best key only: a hard lookup, as with `argmax`. No gradient flows through the
    choice, so the choice cannot be learned. In a soft lookup every key has some weight."""
    return F.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)


# The output, wrong


def weights_transposed(weights, value):
    """You transpose the weights before you multiply them by the values, so the weights of each output are a column of
    the table, and columns do not sum to one. This raises an error unless there are as many queries as keys; in
    self-attention these sizes are equal, and the result is silently wrong. Each row of the weights belongs to one
    query: how many rows must the output have?"""
    return weights.mT @ value


def weights_transposed_by_letters(weights, value):
    return torch.einsum("bhkq,bhkv->bhqv", weights, value)


weights_transposed_by_letters.__doc__ = weights_transposed.__doc__


def values_of_all_heads(weights, value):
    """The weights of each head blend the sum of the values of all heads. In `einsum`, the axis of the heads needs the
    same letter in both factors; a letter that is in only one factor, and not in the output, is summed over. Do the
    heads have the same letter everywhere?"""
    return weights @ value.sum(1, keepdim=True)


def no_letter_shared(weights, value):
    """You add up the weights of a query, and the values of all keys, before you multiply the two: every query gets the
    same sum of values. In `einsum`, the axis of the keys needs the same letter in both factors. Which letter does this
    axis have in the weights, and which in the values?"""
    return weights.sum(-1, keepdim=True) * value.sum(-2, keepdim=True)


SCORE_MISTAKES = (
    keys_against_queries,
    keys_not_transposed,
    keys_reshaped,
    all_axes_reversed,
    heads_and_keys_transposed,
    element_by_element,
    bmm_of_four_axes,
    every_table_with_every_other,
    heads_summed,
    heads_share_a_table,
    keys_of_all_heads,
)
SCALE_MISTAKES = (
    no_scale,
    by_d,
    times_root_d,
    by_half_of_d,
    by_twice_d,
    by_fourth_root_of_d,
    by_root_q_len,
    by_root_k_len,
    by_root_heads,
    by_root_batch,
    by_root_d_model,
)
OUTPUT_MISTAKES = (weights_transposed, weights_transposed_by_letters, values_of_all_heads, no_letter_shared)
RARE_SOFTMAX_MISTAKES = (
    over_batch,
    over_the_table,
    over_everything,
    keepdim_forgotten,
    no_maximum,
    maximum_of_all,
    no_softmax,
    softmax_twice,
    never_exponentiated,
    never_divided,
    each_score_alone,
    logarithms_of_weights,
    later_keys_hidden,
    only_the_best,
)
SOFTMAX_MISTAKES = (over_queries, over_heads, *RARE_SOFTMAX_MISTAKES)
