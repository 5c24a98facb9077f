"""The stages of attention, right and wrong: the exercises of several chapters are made of them."""

import math

import torch
from torch.nn import functional as F


def dot_products(query, key):
    """Multiply each query with each key."""
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
    """Query and key have changed places: the scores are those of every key against every query. The table is then (…,
    k_len, q_len), and only where it meets the values can it raise. With as many queries as keys nothing raises there
    either, and what token 1 looks for in token 2 is taken for what token 2 looks for in token 1. Which of the two do
    the rows of the table belong to? Look at the order of the arguments as well."""
    return key @ query.mT


def keys_not_turned(query, key):
    """You multiply the queries by the keys as they are, and the matrix product then sums over the wrong axis: over the
    keys instead of the features. It raises unless there happen to be as many keys as features, where it is silently
    wrong. Queries and keys are compared feature by feature: which axis of `key` must stand second to last?"""
    return query @ key


def all_axes_turned(query, key):
    """The axes of `key` are all reversed, that of the batch too: that is what `.T` does with more than two axes.
    Sentences then meet other sentences, and mostly the sizes do not fit. Only the last two axes must change places."""
    return query @ key.permute(*range(key.ndim - 1, -1, -1))


def heads_and_keys_turned(query, key):
    """In `key`, the axes 1 and 2 have changed places. With three axes these are the last two, and code for three axes
    is often carried over; with four they are `heads` and `k_len`. Count from the end: which two must change places so
    that the features of a key stand second to last?"""
    return query @ key.transpose(1, 2)


def keys_reshaped(query, key):
    """The keys are cut anew with `view` or `reshape` into (…, d_head, k_len), and not transposed. The shape is the
    right one and the numbers are scrambled: `view` reads memory in its old order, so a column holds bits of several
    keys. Which operation moves an axis?"""
    return query @ key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])


def element_by_element(query, key):
    """Queries and keys are multiplied element by element, `*`, and not as matrices. That pairs query 1 with key 1 and
    query 2 with key 2 alone, and raises when their counts differ. Every query must meet every key: which operator makes
    the table of all dot products?"""
    return query * key


def bmm_of_four_axes(query, key):
    """`bmm` multiplies tensors of exactly three axes, and gets four. `@` and `matmul` take any number of axes in front,
    and multiply the last two."""
    return torch.bmm(query, key.mT)


def every_table_with_every_other(query, key):
    """Your table has the axes of the query and then those of the key, heads and sentences twice: `tensordot` sums over
    the features, and pairs every query with every key of all the other heads and sentences as well. Each head of each
    sentence has keys of its own. Which product keeps the axes in front together?"""
    return torch.tensordot(query, key, ([-1], [-1]))


def heads_summed(query, key):
    """The scores have no axis of their own for the heads: the dot products of all heads are added up. In `einsum`, a
    letter that the output lacks is summed over. Each head has a table of its own: which letter is missing?"""
    return torch.einsum("bhqd,bhkd->bqk", query, key)


def heads_share_a_table(query, key):
    """There is one table for all heads: their dot products are added up, and the result meets the values of every head
    alike. In `einsum`, a letter that the output lacks is summed over. Each head has a table of its own: which letter is
    missing?"""
    return heads_summed(query, key)[:, None]


def keys_of_all_heads(query, key):
    """Each query meets the keys of all heads, added up. In `einsum`, the axis of the heads needs one and the same
    letter in both factors; a letter that only one of them has, and not the output, is summed over. Do the heads have
    one letter throughout?"""
    return query @ key.sum(1, keepdim=True).mT


# The scale, wrong


def no_scale(scores, d_head):
    """The scale is missing: the scores go into the softmax as they are. Dot products of `d_head` features spread like
    √d_head, so the best key gets too much of the weight, and in wide heads nearly all of it. {Every row still sums to
    one, so only the numbers tell.} What stands under the scores in the formula?"""
    return scores


def by_d(scores, d_head):
    """In all, the scores are divided by `d_head` and not by its root; perhaps the root stands in two places. They come
    out too small, and the weights too even: 64 features end with a spread of 1/8 instead of 1. It is the variance that
    is `d_head`; what is the spread?"""
    return scores / d_head


def times_root_d(scores, d_head):
    """The scores are multiplied by √d_head, where they should be divided by it. {One key gets nearly everything, and
    the more so the more features there are.} The scale is a factor below one: which sign has its exponent?"""
    return scores * d_head**0.5


def by_half_of_d(scores, d_head):
    """The scores are divided by half of `d_head`. That is what `(d_head ** 1 / 2)` comes to: `**` goes before `/`, so
    it is a half and no root. It goes unnoticed for 4 features, where both are 2. Look at how you write the root."""
    return scores / (d_head / 2)


def by_twice_d(scores, d_head):
    """The scores are divided by twice `d_head`. That is what `scores / d_head ** 1 / 2` comes to, and `scores * d_head
    ** -1 / 2`: `**` goes before `/`, so the exponent is 1, and the 2 divides once more. Look at how you write the
    root."""
    return scores / (2 * d_head)


def by_fourth_root_of_d(scores, d_head):
    """The scores are divided by the fourth root of `d_head`, and so they come out too large. That is half of a scale:
    some programs divide queries and keys by it, both, so that the product is divided by the root. One of the two is
    missing, or a root is taken twice."""
    return scores / d_head**0.25


def by_root_k_len(scores, d_head):
    """The scores are divided by the root of the number of keys. A dot product does not become larger because there are
    more keys; it is a sum over features, and their number decides. It comes out right by accident if there are as many
    keys as features. Which axis do you take the size of?"""
    return scores / scores.shape[-1] ** 0.5


def by_root_q_len(scores, d_head):
    """The scores are divided by the root of the number of queries. A dot product does not become larger because there
    are more queries; it is a sum over features, and their number decides. It comes out right by accident if there are
    as many queries as features. Which axis do you take the size of?"""
    return scores / scores.shape[-2] ** 0.5


def by_root_seq(scores, d_head):
    """The scores are divided by the root of the number of tokens. A dot product does not become larger because the text
    is longer; it is a sum over features, and their number decides. It comes out right by accident if there are as many
    tokens as features. Which axis do you take the size of?"""
    return scores / scores.shape[-1] ** 0.5


def by_root_heads(scores, d_head):
    """The scores are divided by the root of the number of heads. `shape[1]` counts the features where there are two
    axes, and something else where there are four. Counted from the end, the axis of the features has the same number in
    both: which?"""
    return scores / scores.shape[1] ** 0.5


def by_root_batch(scores, d_head):
    """The scores are divided by the root of the number of sentences: `len(query)` and `shape[0]` count those. What a
    sentence gets would then depend on how many others are computed with it. Which axis has the features?"""
    return scores / scores.shape[0] ** 0.5


def root_of_a_plain_number(scores, d_head):
    """`torch.sqrt` takes a tensor, and the size of an axis is a plain number. `math.sqrt` takes numbers, and so does
    `** 0.5`."""
    return scores / torch.sqrt(d_head)


def by_root_d_model(scores, d_head):
    """The scores are divided by the root of all heads' features together, √(heads · d_head). Each head compares its own
    features only, so its dot products spread like √d_head, and divided by more its weights are too even. With one head
    the two are the same. How many terms does one score sum?"""
    return scores / (scores.shape[1] * d_head) ** 0.5


# The weights, wrong


def over_queries(scores):
    """The softmax runs over the queries: every column of the weights sums to one, instead of every row. Each key then
    hands out a total weight of 1 among the queries, and the weights of one query need not sum to one. In a table (…,
    q_len, k_len), which axis counts the keys?"""
    return scores.softmax(-2)


def over_heads(scores):
    """The softmax runs over axis 1, which counts the heads: for each query and key, the weights of all heads sum to
    one. The heads then compete, and with one head every weight is 1. `F.softmax` without a `dim` also takes axis 1 of
    four. Over which axis must the weights sum to one?"""
    return scores.softmax(1)


def over_batch(scores):
    """The softmax runs over axis 0, which counts the sentences of the batch: they compete for weight although they have
    nothing to do with one another, and in a batch of one every weight is 1. `dim=0` is quickly typed. Over which axis
    must the weights sum to one?"""
    return scores.softmax(0)


def over_the_table(scores):
    """The softmax runs over queries and keys together: all the weights of a table sum to one, so that each query has
    only a share to give. The outputs are too small, by a factor that is about `q_len`. Each query has a whole one for
    its keys: which axis alone belongs in the sum?"""
    return scores.flatten(-2).softmax(-1).unflatten(-1, scores.shape[-2:])


def over_everything(scores):
    """You divide by one sum of everything, batch and all: all the weights of the whole tensor together sum to one. That
    is what `.sum()` without an axis does. Each query has a whole one for its keys: along which axis must the sum
    run?"""
    return scores.flatten().softmax(0).reshape(scores.shape)


def keepdim_forgotten(scores):
    """The sum over the keys (or their maximum) has lost its axis, and no longer fits the table that it belongs to.
    Broadcasting aligns shapes from the right, so it lines up with the wrong axes, and raises here. Keep the axis, with
    size 1: sums and maxima have an option for that."""
    return scores.exp() / scores.exp().sum(-1)


def no_maximum(scores):
    """Nothing keeps `exp` from overflowing. In float32, e to the 89 is infinite already, and infinity divided by
    infinity is NaN. Softmax sees differences only, so you may take the same number from all scores of a row: which one
    makes sure that no exponent is large?"""
    exp = scores.exp()
    return exp / exp.sum(-1, keepdim=True)


def maximum_of_all(scores):
    """You subtract the maximum of all the scores together. That prevents overflow, but where the scores of a row lie
    104 and more below it, all their exponentials are 0, and 0/0 is NaN. Each row is a softmax of its own: whose maximum
    does it need?"""
    exp = (scores - scores.detach().amax()).exp()
    return exp / exp.sum(-1, keepdim=True)


def no_softmax(scores):
    """The softmax is missing: the scores themselves serve as weights. They can be negative, and they do not sum to one,
    so the result is no mean of the values. What turns scores into weights?"""
    return scores


def softmax_twice(scores):
    """The softmax is taken twice, once of the scores and once more of the weights. The weights {still sum to one, and}
    are nearly equal, because numbers between 0 and 1 differ by little. Does one of the functions that you call take a
    softmax already?"""
    return scores.softmax(-1).softmax(-1)


def never_exponentiated(scores):
    """The scores are divided by their sum, without `exp`. Scores have both signs, so some weights are negative, and
    where the sum is near zero they are huge. What must be done to a score first, so that it is positive and a larger
    one stays larger?"""
    return scores / scores.sum(-1, keepdim=True)


def never_divided(scores):
    """The exponentials serve as weights, and are not divided by their sum. They are positive but do not sum to one, so
    a query with good matches gets a large output instead of a mean of the values. What is missing from the softmax?"""
    return scores.exp()


def each_score_alone(scores):
    """Each score becomes a weight on its own, by a sigmoid. All weights lie between 0 and 1, and they do not sum to
    one: a query that matches nothing gets half of everything. In a softmax the keys share one whole."""
    return scores.sigmoid()


def logarithms_of_weights(scores):
    """The weights are logarithms: none is above zero. `log_softmax` gives those. Losses want logarithms; a weighted
    mean wants weights that sum to one."""
    return scores.log_softmax(-1)


def later_keys_hidden(scores):
    """Query 0 sees key 0 only, query 1 the first two, and so on: that is a causal mask, as a decoder has. Without a
    mask, every query looks at every key. Masks are the matter of chapter 5."""
    return scores.where(torch.ones_like(scores).tril().bool(), -math.inf).softmax(-1)


def only_the_best(scores):
    """Each query gets the value of its best key, and nothing of the others: a hard lookup, as with `argmax`. No
    gradient flows through it, so nothing can be learned about the choice. A soft lookup lets every key match a
    little."""
    return F.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)


# The output, wrong


def weights_turned(weights, value):
    """The weights are transposed before they meet the values, so that each output is blended by a column of the table,
    and columns do not sum to one. It raises unless there are as many queries as keys; in self-attention there are, and
    nobody notices. Each row of the weights belongs to one query: how many rows must the output have?"""
    return weights.mT @ value


def weights_turned_by_letters(weights, value):
    return torch.einsum("bhkq,bhkv->bhqv", weights, value)


weights_turned_by_letters.__doc__ = weights_turned.__doc__


def values_of_all_heads(weights, value):
    """The weights of each head blend the values of all heads, added up. In `einsum`, the axis of the heads needs one
    and the same letter in both factors; a letter that only one of them has, and not the output, is summed over. Do the
    heads have one letter throughout?"""
    return weights @ value.sum(1, keepdim=True)


def no_letter_shared(weights, value):
    """The weights of a query are added up, and so are the values of all keys, before the two meet: every query gets the
    same sum of values. In `einsum`, the keys need one and the same letter in both factors, or they never meet. Which
    letter has their axis in the weights, and which in the values?"""
    return weights.sum(-1, keepdim=True) * value.sum(-2, keepdim=True)


SCORE_MISTAKES = (
    keys_against_queries,
    keys_not_turned,
    keys_reshaped,
    all_axes_turned,
    heads_and_keys_turned,
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
OUTPUT_MISTAKES = (weights_turned, weights_turned_by_letters, values_of_all_heads, no_letter_shared)
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
