"""Chapter 3: softmax, attention as a lookup, one head, and positions."""

import functools
import math

import numpy as np
import torch
from torch.nn import functional as F

from .exercise import exercise

# The steps of attention. Later chapters take them from here, right and wrong.


def dot_products(query, key):
    return query @ key.mT


def by_root_d(scores, d_head):
    return scores / d_head**0.5


def over_keys(scores):
    return scores.softmax(-1)


def weighted_sum(weights, value):
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
    keys instead of the features. It raises unless there happen to be as many keys as features, where it is wrong in
    silence. Queries and keys are compared feature by feature: which axis of `key` must stand second to last?"""
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
    """Queries and keys are multiplied number by number, `*`, and not as matrices. That pairs query 1 with key 1 and
    query 2 with key 2 alone, and raises when their counts differ. Every query must meet every key: which operator makes
    the table of all dot products?"""
    return query * key


# The scale, wrong


def no_scale(scores, d_head):
    """The scale is missing: the scores go into the softmax as they are. Dot products of `d_head` features spread like
    √d_head, so the best key gets too much of the weight, and in wide heads nearly all of it. Every row still sums to
    one, so only the numbers tell. What stands under the scores in the formula?"""
    return scores


def by_d(scores, d_head):
    """The scores are divided by `d_head` itself, or twice by its root, once in the queries and once in the scores. They
    come out too small, and the weights too even: 64 features end with a spread of 1/8 instead of 1. It is the variance
    that is `d_head`; what is the spread?"""
    return scores / d_head


def times_root_d(scores, d_head):
    """The scores are multiplied by √d_head, where they should be divided by it. One key gets nearly everything, and the
    more so the more features there are. The scale is a factor below one: which sign has its exponent?"""
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


def by_root_d_model(scores, d_head):
    """The scores are divided by the root of all heads' features together, √(heads · d_head). Each head compares its own
    features only, so its dot products spread like √d_head, and divided by more its weights are too even. With one head
    the two are the same. How many terms does one score sum?"""
    return scores / (scores.shape[1] * d_head) ** 0.5


# The weights, wrong


def over_queries(scores):
    """The softmax runs over the queries: every column of the weights sums to one, instead of every row. A key then
    shares itself out among the queries, and the weights of one query sum to less than one, or to more. In a table (…,
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
    """The softmax is taken twice, once of the scores and once more of the weights. The weights still sum to one, and
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


# 1. softmax


def _rows(draw, batch=2, q_len=7, k_len=5):
    return 2 * draw(batch, q_len, k_len), -1


def minus_the_largest(x, dim):
    return x - x.amax(dim, keepdim=True)


def over_their_sum(exp, dim):
    return exp / exp.sum(dim, keepdim=True)


@exercise(
    inputs=_rows,
    axes={},  # any there are
    hints=(
        "Softmax sees differences only. Which number may you subtract from all the scores of a row, so that `exp` "
        "never meets a large one?",
        "`x.amax(dim)` is the largest along `dim`, `x.sum(dim)` the sum. Both lose the axis `dim`, and then no "
        "longer line up with `x`: look up `keepdim`.",
        "`exp = (x - x.amax(…, keepdim=…)).exp()`, then `exp / exp.sum(…, keepdim=…)`",
    ),
)
def softmax(x, dim, *, shift=minus_the_largest, exp=torch.exp, divide=over_their_sum):
    """Turn scores into positive weights that sum to one along ``dim``: any shape, and the same shape back."""
    return divide(exp(shift(x, dim)), dim)


@softmax.equivalent
def softmax_of_pytorch(x, dim):
    return torch.softmax(x, dim)


@softmax.equivalent
def softmax_by_logarithms(x, dim):
    return (x - x.logsumexp(dim, keepdim=True)).exp()


@softmax.equivalent
def softmax_by_unsqueeze(x, dim):
    exp = torch.exp(x - x.max(dim).values.unsqueeze(dim).detach())
    return exp / exp.sum(dim).unsqueeze(dim)


@softmax.equivalent
def softmax_with_the_axis_last(x, dim):
    last = x.transpose(dim, -1)
    exp = math.e ** (last - torch.max(last, dim=-1, keepdim=True)[0])
    return exp.div(exp.sum(-1)[..., None]).transpose(dim, -1)


@softmax.equivalent
def softmax_row_by_row(x, dim):
    last = x.movedim(dim, -1)
    rows = [torch.exp(row - row.max()) for row in last.reshape(-1, last.shape[-1])]
    return torch.stack([row / row.sum() for row in rows]).reshape(last.shape).movedim(-1, dim)


@softmax.probe(plain=True)
def _first_axis(draw):
    """the first axis as `dim`"""
    return 2 * draw(7, 5), 0


@softmax.probe(plain=True)
def _middle_axis(draw):
    """the middle axis as `dim`"""
    return 2 * draw(3, 6, 4), 1


@softmax.probe(plain=True)
def _square_table(draw):
    """a square table"""
    return 2 * draw(4, 4), 1


@softmax.probe
def _from_the_end(draw):
    """`dim` counted from the end"""
    return 2 * draw(2, 3, 6, 4), -3


@softmax.probe
def _one_row(draw):
    """one axis only"""
    return 2 * draw(5), 0


@softmax.probe
def _one_score(draw):
    """one score in each row"""
    return draw(4, 1), -1


@softmax.probe
def _large_scores(draw):
    """scores of a hundred and more"""
    return torch.tensor([[100.0, 101.0, 102.0], [700.0, 699.0, 701.0]]), 1


@softmax.probe
def _low_scores(draw):
    """scores far below zero"""
    return torch.tensor([[-1000.0, -1001.0, -1002.0]]), 1


@softmax.probe
def _rows_apart(draw):
    """rows that lie a thousand apart"""
    return torch.tensor([[1000.0, 1001.0, 1003.0], [2.0, 1.0, 0.0]]), 1


@softmax.probe
def _a_hundred_apart(draw):
    """scores that lie a hundred apart in one row"""
    return torch.tensor([[0.0, 99.0, 100.0, 101.0]]), 1


@softmax.probe
def _a_thousand_apart(draw):
    """scores that lie a thousand apart in one row"""
    return torch.tensor([[0.0, -1000.0, -2000.0, 1.0]]), 1


@softmax.mistake(part="shift")
def nothing_subtracted(x, dim):
    """Nothing keeps `exp` from overflowing. In float32, e to the 89 is infinite already, and infinity divided by
    infinity is NaN; far below zero all exponentials are 0, and 0/0 is NaN too. Softmax sees differences only, so you
    may subtract one number from all the scores of a row: which one makes sure that no exponent is large?"""
    return x


@softmax.mistake(part="shift")
def largest_of_all_subtracted(x, dim):
    """You subtract the maximum of all the numbers together. That prevents overflow, but where a row lies 104 and more
    below it, all its exponentials are 0, and 0/0 is NaN. Each row is a softmax of its own: whose maximum does it
    need?"""
    return x - x.amax()


@softmax.mistake(part="shift")
def largest_of_the_last_axis_subtracted(x, dim):
    """The sum runs along `dim`, but the maximum along the last axis. The numbers that share a sum then lose different
    amounts, and that changes their ratios; it is right only where `dim` is the last axis. Follow the argument `dim`
    through every line."""
    return x - x.amax(-1, keepdim=True)


@softmax.mistake(part="shift")
def smallest_subtracted(x, dim):
    """You subtract the minimum of the row. The ratios stay right, but now no exponent is negative, and where the scores
    of a row lie 89 and more apart `exp` overflows and the result is NaN. Which number, subtracted, leaves no exponent
    above zero?"""
    return x - x.amin(dim, keepdim=True)


@softmax.mistake(part="shift")
def mean_subtracted(x, dim):
    """You subtract the mean of the row. The ratios stay right, but a score that lies 89 and more above the mean still
    overflows `exp`, and the result is NaN. Which number, subtracted, leaves no exponent above zero?"""
    return x - x.mean(dim, keepdim=True)


@softmax.mistake(part="shift")
def scores_cut_off(x, dim):
    """The scores are cut off at some limit, to keep `exp` from overflowing. All scores beyond the limit then count the
    same, although their differences are what softmax is about: 100 and 102 must get weights in the ratio 1 to 7.4. Move
    the scores instead of cutting them: what may be subtracted from a whole row?"""
    return x.clamp(-60, 60)


@softmax.mistake(part="shift")
def sign_turned(x, dim):
    """The smallest score gets the largest weight: you take the exponential of the negative score, or of the maximum
    minus the score. Look at the order of that subtraction. After it, the largest score must be 0 and all others
    negative."""
    return x.amax(dim, keepdim=True) - x


@softmax.mistake(part="shift")
def largest_without_its_axis(x, dim):
    """The maximum has lost the axis `dim`, and no longer lines up with `x`: broadcasting aligns shapes from the right.
    Mostly that raises. In a square table it runs, and a column loses the maximum of a row. Keep the axis, with size 1:
    maxima have an option for that."""
    return x - x.amax(dim)


@softmax.mistake(part="divide")
def sum_without_its_axis(exp, dim):
    """The sum has lost the axis `dim`, and no longer lines up with the exponentials: broadcasting aligns shapes from
    the right. Mostly that raises. In a square table it runs, and a column is divided by the sum of a row. Keep the
    axis, with size 1: sums have an option for that."""
    return exp / exp.sum(dim)


@softmax.mistake(part="divide")
def sum_of_all(exp, dim):
    """The exponentials are divided by one sum of all of them, as `.sum()` without an axis makes it: all the numbers
    together sum to one. Along `dim`, the weights must sum to one for each row on its own."""
    return exp / exp.sum()


@softmax.mistake(part="divide")
def sum_over_the_last_axis(exp, dim):
    """The sum runs along the last axis, whatever `dim` says. That is right only where `dim` is the last axis, as in
    most examples. Follow the argument `dim` through every line."""
    return exp / exp.sum(-1, keepdim=True)


@softmax.mistake(part="divide")
def never_divided_by_the_sum(exp, dim):
    """The exponentials come back undivided. (Dividing by the largest of them does nothing: after the subtraction it is
    1.) They are positive, and do not sum to one. What makes shares of a whole out of positive numbers?"""
    return exp


@softmax.mistake(part="divide")
def divided_by_the_mean(exp, dim):
    """The exponentials are divided by their mean and not by their sum, so that the weights sum to the length of the
    axis instead of to one. Which of the two makes shares of a whole?"""
    return exp / exp.mean(dim, keepdim=True)


@softmax.mistake(part="divide")
def divided_by_the_norm(exp, dim):
    """The exponentials are divided by the root of the sum of their squares, as a vector is brought to length one. Then
    the squares sum to one, and the weights themselves to more. Weights are shares of a whole: what do they sum to?"""
    return exp / exp.norm(dim=dim, keepdim=True)


@softmax.mistake
def over_the_last_axis(x, dim):
    """Your softmax runs along the last axis, whatever `dim` says. That is right in most examples, and wrong as soon as
    somebody asks for another axis. Follow the argument `dim` through every line."""
    return x.softmax(-1)


@softmax.mistake
def over_the_first_axis(x, dim):
    """Your softmax runs along the first axis, whatever `dim` says. With one axis nobody notices; with a batch in front,
    its sentences share one unit of weight. Follow the argument `dim` through every line."""
    return x.softmax(0)


@softmax.mistake
def over_all_numbers(x, dim):
    """Your softmax runs over all the numbers at once: all of them together sum to one, instead of each row along `dim`.
    That is what `.max()` and `.sum()` without an axis do. Follow the argument `dim` through every line."""
    return x.flatten().softmax(0).reshape(x.shape)


@softmax.mistake
def divided_by_their_sum(x, dim):
    """The scores are divided by their sum, without `exp`. Scores have both signs, so some weights are negative, and
    where the sum is near zero they are huge. What must be done to a score first, so that it is positive and a larger
    one stays larger?"""
    return x / x.sum(dim, keepdim=True)


@softmax.mistake
def logarithms(x, dim):
    """You return the logarithms of the weights: none is above zero. `log_softmax` does that, and so does a last `exp`
    left out after `logsumexp`. Losses want the logarithms; a weighted mean wants the weights."""
    return x.log_softmax(dim)


@softmax.mistake
def taken_twice(x, dim):
    """The softmax is taken twice, once of the scores and once more of the weights. The weights still sum to one, and
    are nearly equal, because numbers between 0 and 1 differ by little."""
    return x.softmax(dim).softmax(dim)


@softmax.mistake
def each_score_by_itself(x, dim):
    """Each score becomes a weight on its own, by a sigmoid. All weights lie between 0 and 1, and they do not sum to
    one. In a softmax, the scores along `dim` share one whole: the more one gets, the less is left for the others."""
    return x.sigmoid()


@softmax.mistake
def all_to_the_largest(x, dim):
    """The largest score gets 1 and all others 0: a hard choice, as with `argmax`. Softmax gives every score some
    weight, and so a gradient to all of them. What are the weights of the scores 0 and ln 3, by hand?"""
    return F.one_hot(x.argmax(dim), x.shape[dim]).movedim(-1, dim).to(x.dtype)


@softmax.property
def weights_sum_to_one(function, x, dim):
    """The weights along `dim` sum to one."""
    return _equal(function(x, dim).sum(dim), 1)


@softmax.property
def only_differences_count(function, x, dim):
    """Adding the same number to all scores changes nothing."""
    return _equal(function(x + 1, dim), function(x, dim))


@softmax.property
def the_largest_has_most(function, x, dim):
    """The largest score has the largest weight."""
    return torch.equal(function(x, dim).argmax(dim), x.argmax(dim))


def _equal(a, b):
    return torch.allclose(a, torch.as_tensor(b, dtype=a.dtype, device=a.device).expand_as(a), 1e-4, 1e-5)


# 2. attention_weights


def _two(draw, batch=2, heads=3, q_len=7, k_len=9, d_head=4):
    # float32 knows the root of 4 exactly: whoever takes it in float32 is right in float64 as well.
    return draw(batch, heads, q_len, d_head), draw(batch, heads, k_len, d_head)


def _three(draw, batch=2, heads=3, q_len=7, k_len=9, d_head=4, d_value=5):
    return *_two(draw, batch, heads, q_len, k_len, d_head), draw(batch, heads, k_len, d_value)


@exercise(
    inputs=_two,
    axes={
        "query": "batch heads q_len d_head",
        "key": "batch heads k_len d_head",
        "return": "batch heads q_len k_len",
    },
    hints=(
        "Every query meets every key. Over which axis do the dot products sum, and along which must the weights "
        "sum to one?",
        "A matrix product sums over the last axis of the first factor and the last but one of the second: make two "
        "axes of `key` change places. The scale is made of the number of terms in one dot product.",
        "`scores = query @ key.transpose(…, …) / …`, then `softmax(scores, dim=…)`",
    ),
)
def attention_weights(query, key, *, scores=dot_products, scale=by_root_d, weights=over_keys):
    """Say how much each query takes from each key: (…, q_len, d_head) and (…, k_len, d_head) to (…, q_len, k_len)."""
    return weights(scale(scores(query, key), query.shape[-1]))


@attention_weights.equivalent
def weights_by_einsum(query, key):
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key)
    return torch.softmax(scores / math.sqrt(key.size(-1)), dim=-1)


@attention_weights.equivalent
def weights_of_scaled_queries(query, key):
    return softmax.reference((query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1), -1)


@attention_weights.equivalent
def weights_with_a_root_in_float32(query, key):
    d_head = torch.tensor(key.shape[-1], dtype=torch.float32)
    return F.softmax(torch.matmul(query, key.permute(0, 1, 3, 2)) / torch.sqrt(d_head), dim=3)


@attention_weights.equivalent
def weights_scaled_on_both_sides(query, key):
    root = query.shape[-1] ** 0.25
    scores = ((query / root).unsqueeze(-2) * (key / root).unsqueeze(-3)).sum(-1)
    return (scores - scores.logsumexp(-1, keepdim=True)).exp()


@attention_weights.equivalent
def weights_by_columns(query, key):
    return (key @ query.mT / key.shape[-1] ** 0.5).softmax(-2).mT


@attention_weights.equivalent
def weights_query_by_query(query, key):
    rows = [(key @ q.unsqueeze(-1)).squeeze(-1) / key.shape[-1] ** 0.5 for q in query.unbind(-2)]
    return torch.stack([row.softmax(-1) for row in rows], dim=-2)


@attention_weights.mistake
def keys_by_queries(query, key):
    """Your result is (…, k_len, q_len): a row for each key instead of one for each query. The numbers may be right; in
    this order they blend nothing, because the product with the values sums over the last axis. Whose choice does a row
    of the weights describe?"""
    return attention_weights.reference(query, key).mT


@attention_weights.property
def rows_sum_to_one(function, query, key):
    """Every row of the weights sums to one."""
    return _equal(function(query, key).sum(-1), 1)


@attention_weights.property
def no_query_no_preference(function, query, key):
    """A query of zeros shares itself out evenly among the keys."""
    return _equal(function(torch.zeros_like(query), key), 1 / key.shape[-2])


@attention_weights.property
def each_table_on_its_own(function, query, key):
    """Head 0 of sentence 0 does not depend on the other heads and sentences."""
    return _equal(function(query[:1, :1], key[:1, :1]), function(query, key)[:1, :1])


@attention_weights.property
def each_query_on_its_own(function, query, key):
    """The weights of query 0 do not depend on the other queries."""
    return _equal(function(query[..., :1, :], key), function(query, key)[..., :1, :])


# 3. attention


@exercise(
    inputs=_three,
    axes={
        "query": "batch heads q_len d_head",
        "key": "batch heads k_len d_head",
        "value": "batch heads k_len d_value",
        "return": "batch heads q_len d_value",
    },
    hints=(
        "Each query gets one blend of all the values. Which axis do the weights and the values share, to be summed "
        "over?",
        "A row of the weights has one number for each key, and each key has one value. A matrix product sums over "
        "exactly that axis, with nothing transposed.",
        "`weights = attention_weights(…, …)`, then `… @ …`",
    ),
)
def attention(query, key, value, *, scores=dot_products, scale=by_root_d, weights=over_keys, output=weighted_sum):
    """Blend the values by how well their keys match each query: the result is (…, q_len, d_value)."""
    return output(weights(scale(scores(query, key), query.shape[-1])), value)


@attention.equivalent
def attention_of_pytorch(query, key, value):
    return F.scaled_dot_product_attention(query, key, value)


@attention.equivalent
def attention_by_einsum(query, key, value):
    weights = torch.einsum("bhqd,bhkd->bhqk", query, key).div(query.size(-1) ** 0.5).softmax(3)
    return torch.einsum("bhqk,bhkv->bhqv", weights, value)


@attention.equivalent
def attention_query_by_query(query, key, value):
    rows = []
    for q in query.unbind(2):
        scores = (q.unsqueeze(2) * key).sum(-1) / math.sqrt(q.shape[-1])
        rows.append((scores.softmax(-1).unsqueeze(-1) * value).sum(2))
    return torch.stack(rows, dim=2)


@attention.equivalent
def attention_divided_last(query, key, value):
    scores = query @ key.mT * query.shape[-1] ** -0.5
    exp = (scores - scores.amax(-1, keepdim=True)).exp()
    return (exp @ value) / exp.sum(-1, keepdim=True)


@attention.equivalent
def attention_turned_round(query, key, value):
    weights = (key @ (query / query.shape[-1] ** 0.5).mT).softmax(-2)
    return (value.mT @ weights).mT


@attention.equivalent
def attention_folded(query, key, value):
    sizes = query.shape[:2]
    query, key, value = (x.flatten(0, 1) for x in (query, key, value))
    weights = torch.bmm(query, key.transpose(1, 2)).div(math.sqrt(key.shape[2])).softmax(2)
    return torch.bmm(weights, value).unflatten(0, sizes)


@attention.mistake
def values_from_keys(query, key, value):
    """The weights blend the keys and not the values: your result has the features of a key. A key says by what a thing
    is found, its value what is handed over then. With keys and values of one width the shape shows nothing. Which of
    the three is missing from your last line?"""
    return attention_weights.reference(query, key) @ key


@attention.mistake
def values_from_queries(query, key, value):
    """The weights blend the queries and not the values. It raises unless there are as many queries as keys; in
    self-attention it runs. A query says what is looked for, a value what is handed over. Which of the three is missing
    from your last line?"""
    return attention_weights.reference(query, key) @ query


@attention.mistake
def keys_and_values_exchanged(query, key, value):
    """Keys and values have changed places: the queries are compared with the values, and the keys are blended. With
    equal widths it runs and returns the right shape. Look at the order of the arguments wherever you hand three on."""
    return attention.reference(query, value, key)


@attention.mistake
def by_root_d_value(query, key, value):
    """The scores are divided by the root of the number of features of a value. What spreads is the dot product of a
    query and a key, and it has as many terms as these have features. The two numbers are often equal, and here they are
    not."""
    return attention_weights.reference(query * (query.shape[-1] / value.shape[-1]) ** 0.5, key) @ value


@attention.mistake
def weights_without_values(query, key, value):
    """You return the weights themselves: (…, q_len, k_len), one number for each key. They say how much to take of each
    value. One step is missing, the taking."""
    return attention_weights.reference(query, key)


@attention.mistake
def output_and_weights(query, key, value):
    """You return two things, the output and the weights. PyTorch's `nn.MultiheadAttention` does so, and whoever goes on
    computing with the result stumbles over the pair. Here, return the output alone."""
    return attention.reference(query, key, value), attention_weights.reference(query, key)


@attention.property
def constants_stay(function, query, key, value):
    """Values that are all one stay one, since the weights of a query sum to one."""
    return _equal(function(query, key, torch.ones_like(value)), 1)


@attention.property
def no_query_gets_the_mean(function, query, key, value):
    """A query of zeros gets the plain mean of the values."""
    return _equal(function(torch.zeros_like(query), key, value), value.mean(-2, keepdim=True))


@attention.property
def each_head_on_its_own(function, query, key, value):
    """Head 0 of sentence 0 does not depend on the other heads and sentences."""
    return _equal(function(query[:1, :1], key[:1, :1], value[:1, :1]), function(query, key, value)[:1, :1])


@attention.property
def each_output_on_its_own(function, query, key, value):
    """The output of query 0 does not depend on the other queries."""
    return _equal(function(query[..., :1, :], key, value), function(query, key, value)[..., :1, :])


# What goes wrong in both, and what both are tried on


SCORES_WRONG = (
    keys_against_queries,
    keys_not_turned,
    keys_reshaped,
    all_axes_turned,
    heads_and_keys_turned,
    element_by_element,
)
SCALES_WRONG = (
    no_scale,
    by_d,
    times_root_d,
    by_half_of_d,
    by_twice_d,
    by_root_q_len,
    by_root_k_len,
    by_root_heads,
    by_root_d_model,
)
WEIGHTS_SELDOM_WRONG = (
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
WEIGHTS_WRONG = (over_queries, over_heads, *WEIGHTS_SELDOM_WRONG)


def alone(exercise, part, mistake):
    """Add a mistake of one step that is not looked for together with others: it raises, or another two do the same."""
    exercise.mistake(functools.wraps(mistake)(functools.partial(exercise.reference, **{part: mistake})))


for _mistake in SCORES_WRONG:
    alone(attention_weights, "scores", _mistake)
    alone(attention, "scores", _mistake)
for _mistake in SCALES_WRONG:
    attention_weights.mistake(part="scale")(_mistake)
    attention.mistake(part="scale")(_mistake)
for _mistake in WEIGHTS_WRONG:
    attention_weights.mistake(part="weights")(_mistake)
    attention.mistake(part="weights")(_mistake)
alone(attention, "output", weights_turned)


@attention.mistake
@attention_weights.mistake
def scaled_once_more(query, key, value=None):
    """The scores are scaled rightly, and the weights (or the output) are divided by √d_head once more. The weights then
    sum to 1/√d_head. Does one of the functions that you call scale already?"""
    weights = attention_weights.reference(query, key) / query.shape[-1] ** 0.5
    return weights if value is None else weights @ value


@attention.mistake
@attention_weights.mistake
def scale_after_softmax(query, key, value=None):
    """The scale comes after the softmax: the weights (or the output) are divided by √d_head, not the scores. The
    weights then sum to 1/√d_head, and the softmax has saturated already. The scale is there to keep the scores small:
    before which step must it stand?"""
    weights = (query @ key.mT).softmax(-1) / query.shape[-1] ** 0.5
    return weights if value is None else weights @ value


def _tried_on(name, plain=False, towards=None, **sizes):
    """Add a probe to both exercises; ``towards`` moves the scores of even and odd queries, and of even and odd keys."""

    def make(draw):
        query, key, value = _three(draw, **sizes)
        if towards:
            (query[..., ::2, 0], query[..., 1::2, 0]), (key[..., ::2, 0], key[..., 1::2, 0]) = towards
        return query, key, value

    def weights(draw):
        return make(draw)[:2]

    make.__doc__ = weights.__doc__ = name
    attention.probe(make, plain=plain)
    attention_weights.probe(weights, plain=plain)


_tried_on("equal lengths and equal widths", plain=True, q_len=3, k_len=3, d_value=4)
_tried_on("more queries than keys", k_len=3)
_tried_on("one query", q_len=1)
_tried_on("one key", k_len=1)
_tried_on("one sentence and one head", batch=1, heads=1)
_tried_on("one feature", d_head=1, d_value=1)
_tried_on("scores of more than a hundred", towards=((16, 16), (16, 16)))
_tried_on("queries whose scores lie far apart", towards=((16, -16), (16, 16)))
_tried_on("keys whose scores lie far apart", towards=((16, 16), (16, -16)))


# 4. single_head


def _head(draw, batch=2, seq=7, d_model=6, d_head=4, d_value=5):
    w_q, w_k, w_v = (2 * draw(d_model, width) / d_model**0.5 for width in (d_head, d_head, d_value))
    return draw(batch, seq, d_model), w_q, w_k, w_v


def projected(x, w):
    return x @ w


def not_projected(x, w):
    return x


@exercise(
    inputs=_head,
    axes={
        "x": "batch seq d_model",
        "w_q": "d_model d_head",
        "w_k": "d_model d_head",
        "w_v": "d_model d_value",
        "return": "batch seq d_value",
    },
    hints=(
        "One token plays three roles. Which matrix makes of it what it looks for, which what it is found by, which "
        "what it hands over?",
        "Each projection is a product of `x` with one matrix, the matrix on the right. The rest you have written "
        "already.",
        "`attention(x @ …, x @ …, x @ …)`",
    ),
)
def single_head(
    x,
    w_q,
    w_k,
    w_v,
    *,
    query=projected,
    key=projected,
    value=projected,
    scores=dot_products,
    scale=by_root_d,
    weights=over_keys,
    output=weighted_sum,
):
    """Let the tokens attend to one another: x (batch, seq, d_model), weights (d_model, d_head or d_value)."""
    q, k, v = query(x, w_q), key(x, w_k), value(x, w_v)
    return output(weights(scale(scores(q, k), w_q.shape[-1])), v)


@single_head.equivalent
def head_of_attention(x, w_q, w_k, w_v):
    return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)


@single_head.equivalent
def head_by_linear(x, w_q, w_k, w_v):
    query, key, value = F.linear(x, w_q.T), F.linear(x, w_k.T), F.linear(x, w_v.T)
    scores = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(key.shape[-1])
    return torch.bmm(torch.softmax(scores, dim=2), value)


@single_head.equivalent
def head_with_one_matrix_for_both(x, w_q, w_k, w_v):
    both = w_q @ w_k.T / w_q.shape[1] ** 0.5  # all that the scores see of the two
    return (x @ both @ x.mT).softmax(-1) @ x @ w_v


@single_head.equivalent
def head_with_packed_weights(x, w_q, w_k, w_v):
    sizes = [w.shape[1] for w in (w_q, w_k, w_v)]
    query, key, value = (x @ torch.cat((w_q, w_k, w_v), dim=1)).split(sizes, dim=-1)
    scores = torch.einsum("bqd,bkd->bqk", query, key) * sizes[0] ** -0.5
    return torch.einsum("bqk,bkv->bqv", scores.softmax(-1), value)


@single_head.equivalent
def head_sentence_by_sentence(x, w_q, w_k, w_v):
    outputs = []
    for sentence in x:
        scores = (sentence @ w_q) @ (sentence @ w_k).T
        outputs.append(softmax.reference(scores / w_k.shape[1] ** 0.5, 1) @ (sentence @ w_v))
    return torch.stack(outputs)


single_head.example("matrices that are all square", d_model=4, d_value=4, plain=True)
single_head.example("as many tokens as features", seq=4, plain=True)
single_head.example("one token", seq=1)
single_head.example("one sentence", batch=1)


def _towards(draw, even, odd):
    """Move the scores of the even and of the odd queries by as much."""
    x, w_q, w_k, w_v = _head(draw)
    w_q[:2], w_k[:2] = 0, 0
    w_q[1, 0], w_k[0, 0] = 1, 2  # feature 1 makes queries larger; feature 0, one in every token, makes keys larger
    x[..., 0], x[:, ::2, 1], x[:, 1::2, 1] = 1, even, odd
    return x, w_q, w_k, w_v


@single_head.probe
def _tall_scores(draw):
    """scores of more than a hundred"""
    return _towards(draw, 128, 128)


@single_head.probe
def _scores_far_apart(draw):
    """queries whose scores lie far apart"""
    return _towards(draw, 128, -128)


for _wrong in (no_scale, by_d, times_root_d, by_half_of_d, by_root_seq):
    single_head.mistake(part="scale")(_wrong)
for _wrong in WEIGHTS_WRONG:
    if _wrong is not over_heads:
        single_head.mistake(part="weights")(_wrong)
for _mistake in (keys_against_queries, keys_not_turned, keys_reshaped, all_axes_turned, element_by_element):
    alone(single_head, "scores", _mistake)
alone(single_head, "output", weights_turned)


def in_a_head(mistake):
    """Turn a mistake of attention into one of a head, under the same name."""

    @functools.wraps(mistake)
    def head(x, w_q, w_k, w_v):
        return mistake(x @ w_q, x @ w_k, x @ w_v)

    return head


for _wrong in (
    scaled_once_more,
    scale_after_softmax,
    values_from_keys,
    keys_and_values_exchanged,
    by_root_d_value,
    weights_without_values,
    output_and_weights,
):
    single_head.mistake(in_a_head(_wrong))


@single_head.mistake
def by_root_d_model_of_the_tokens(x, w_q, w_k, w_v):
    """The scores are divided by the root of `d_model`, the features of `x`. What is compared are its projections, and a
    dot product of these has `d_head` terms. With d_model = d_head nobody notices. Take the size of a query that has
    been projected."""
    return single_head.reference(x, w_q * (w_q.shape[-1] / x.shape[-1]) ** 0.5, w_k, w_v)


@single_head.mistake
def tokens_compared_unprojected(x, w_q, w_k, w_v):
    """The scores compare the tokens themselves, `x` with `x`; neither `w_q` nor `w_k` has a part in them. Such scores
    are symmetric, and nothing in them can be learned. What must a token become before it asks, and before it is
    found?"""
    return (x @ x.mT / x.shape[-1] ** 0.5).softmax(-1) @ (x @ w_v)


def queries_unprojected(x, w_q):
    """The queries are the tokens themselves; `w_q` has no part in them. With d_model = d_head it runs, and otherwise
    the sizes do not fit. All three roles are projected: which matrix makes the queries?"""
    return x


def keys_unprojected(x, w_k):
    """The keys are the tokens themselves; `w_k` has no part in them. With d_model = d_head it runs, and otherwise the
    sizes do not fit. All three roles are projected: which matrix makes the keys?"""
    return x


def values_unprojected(x, w_v):
    """The weights blend the tokens themselves; `w_v` has no part in the result, which has the features of a token. What
    a token hands over is made of it by a third matrix. Where does yours use that?"""
    return x


alone(single_head, "query", queries_unprojected)
alone(single_head, "key", keys_unprojected)
alone(single_head, "value", values_unprojected)


@single_head.mistake
def queries_from_w_k(x, w_q, w_k, w_v):
    """Queries and keys are both made with `w_k`; `w_q` is never used. That happens when a line is copied and one name
    in it is not changed; the shape stays right. The scores come out symmetric. Look at your three projections letter by
    letter."""
    return single_head.reference(x, w_k, w_k, w_v)


@single_head.mistake
def keys_from_w_q(x, w_q, w_k, w_v):
    """Queries and keys are both made with `w_q`; `w_k` is never used. That happens when a line is copied and one name
    in it is not changed; the shape stays right. The scores come out symmetric. Look at your three projections letter by
    letter."""
    return single_head.reference(x, w_q, w_q, w_v)


@single_head.mistake
def values_from_w_q(x, w_q, w_k, w_v):
    """The values are made with `w_q`, and `w_v` is never used: the result has `d_head` features. That happens when a
    line is copied and one name in it is not changed; with d_head = d_value the shape stays right. Look at your three
    projections letter by letter."""
    return single_head.reference(x, w_q, w_k, w_q)


@single_head.mistake
def weights_read_as_out_in(x, w_q, w_k, w_v):
    """You multiply by the transposed matrices, as `nn.Linear` does with the weights that it stores as (out, in). Here
    they come as (in, out). Unequal widths raise; with square matrices it runs and every number is wrong. Which side of
    the matrix has the features of `x`?"""
    return single_head.reference(x, w_q.T, w_k.T, w_v.T)


@single_head.mistake
def sentences_look_at_one_another(x, w_q, w_k, w_v):
    """Each token attends to itself and to the tokens at the same place in the other sentences, and to no other token of
    its own sentence: the axes `batch` and `seq` have changed places. PyTorch's older modules want `seq` first, and code
    for them does that. The scores must be (batch, seq, seq). Which axis of `x` must stay in front of the matrix
    product?"""
    return single_head.reference(x.transpose(0, 1), w_q, w_k, w_v).transpose(0, 1)


@single_head.mistake
def sentences_run_together(x, w_q, w_k, w_v):
    """All sentences of the batch are one long sequence to you, and each token attends to all of them. Flattening
    `batch` and `seq` is harmless for a projection, and not for what follows. Which axes must the scores have?"""
    return single_head.reference(x.reshape(1, -1, x.shape[-1]), w_q, w_k, w_v).reshape(*x.shape[:2], -1)


@single_head.mistake
def token_added_back(x, w_q, w_k, w_v):
    """The token itself is added to the output. That is a residual connection, which a block of a Transformer has and
    one head has not; it fits only if d_value = d_model. Return what the lookup found, alone."""
    return single_head.reference(x, w_q, w_k, w_v) + x


@single_head.property
def each_sentence_on_its_own(function, x, w_q, w_k, w_v):
    """The outputs of a sentence do not depend on the other sentences of the batch."""
    return _equal(function(x[:1], w_q, w_k, w_v), function(x, w_q, w_k, w_v)[:1])


@single_head.property
def constant_tokens_stay(function, x, w_q, w_k, w_v):
    """Tokens that are all alike get what each of them hands over, its projection by `w_v`."""
    alike = x[:, :1].expand_as(x)
    return _equal(function(alike, w_q, w_k, w_v), alike @ w_v)


@single_head.property
def order_does_not_matter(function, x, w_q, w_k, w_v):
    """Tokens in reverse order get the same outputs in reverse order."""
    return _equal(function(x.flip(1), w_q, w_k, w_v), function(x, w_q, w_k, w_v).flip(1))


# 5. sinusoidal_positions


def _sizes(draw, seq=7, d_model=6):
    return seq, d_model


def one_angle_for_two(seq, d_model):
    pair = torch.arange(0, d_model, 2)
    return torch.arange(seq)[:, None] / 10000 ** (pair / d_model)


def in_turns(angles, d_model):
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, :d_model]


@exercise(
    inputs=_sizes,
    axes={"return": "seq d_model"},
    hints=(
        "Features 2i and 2i + 1 share one angle. How many different angles has a position, and how does each come "
        "from the one before?",
        "Make the table of angles first, (seq, number of pairs), by broadcasting a column of positions against a "
        "row of divisors. `torch.arange(0, d_model, 2)` counts 0, 2, 4, …: that is 2i already.",
        "`angles = torch.arange(seq)[:, None] / 10000 ** (… / d_model)`, then `table[:, 0::2] = …` and `table[:, "
        "1::2] = …`",
    ),
)
def sinusoidal_positions(seq, d_model, *, angles=one_angle_for_two, layout=in_turns):
    """Return the sines and cosines that tell a token where it stands: (seq, d_model), float32."""
    return layout(angles(seq, d_model), d_model)


@sinusoidal_positions.equivalent
def positions_filled_in(seq, d_model):
    table = torch.zeros(seq, d_model)
    position = torch.arange(seq, dtype=torch.float).unsqueeze(1)
    factors = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    table[:, 0::2] = torch.sin(position * factors)
    table[:, 1::2] = torch.cos(position * factors[: d_model // 2])
    return table


@sinusoidal_positions.equivalent
def positions_one_by_one(seq, d_model):
    table = torch.empty(seq, d_model)
    for p in range(seq):
        for j in range(d_model):
            angle = p / 10000 ** (2 * (j // 2) / d_model)
            table[p, j] = math.cos(angle) if j % 2 else math.sin(angle)
    return table


@sinusoidal_positions.equivalent
def positions_as_shifted_sines(seq, d_model):
    feature = torch.arange(d_model, dtype=torch.float64)
    angles = torch.arange(seq).outer(10000 ** (-(feature - feature % 2) / d_model))
    return torch.sin(angles + math.pi / 2 * (feature % 2)).float()


@sinusoidal_positions.equivalent
def positions_by_lists(seq, d_model):
    def feature(p, j):
        return (math.sin, math.cos)[j % 2](p * 10000 ** (-(j - j % 2) / d_model))

    return torch.tensor([[feature(p, j) for j in range(d_model)] for p in range(seq)])


@sinusoidal_positions.equivalent
def positions_by_numpy(seq, d_model):
    angles = np.arange(seq)[:, None] / np.power(10000, 2 * (np.arange(d_model)[None, :] // 2) / d_model)
    angles[:, 0::2] = np.sin(angles[:, 0::2])
    angles[:, 1::2] = np.cos(angles[:, 1::2])
    return torch.tensor(angles, dtype=torch.float32)


@sinusoidal_positions.equivalent
def positions_by_where(seq, d_model):
    j = torch.arange(d_model)
    angles = torch.arange(seq).unsqueeze(1) * torch.pow(10000.0, -(j // 2 * 2) / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


sinusoidal_positions.example("two features", 5, 2)
sinusoidal_positions.example("one position", 1, 6)
sinusoidal_positions.example("an odd number of features", 7, 5)
sinusoidal_positions.example("one feature", 7, 1)


@sinusoidal_positions.mistake(part="angles")
def exponent_doubled(seq, d_model):
    """The exponent is twice what it should be, so that every divisor is squared, and the slow half of the pairs hardly
    turns at all. Where `i` counts pairs (0, 1, 2, …) the formula has 2i; an `i` that comes from `arange(0, d_model, 2)`
    counts features, and is that 2i already. For 4 features, the second pair must turn a hundred times more slowly than
    the first: and yours?"""
    pair = torch.arange(0, d_model, 2)
    return torch.arange(seq)[:, None] / 10000 ** (2 * pair / d_model)


@sinusoidal_positions.mistake(part="angles")
def exponent_halved(seq, d_model):
    """The exponent is half of what it should be, so that all divisors stay below 100 instead of below 10000. With an
    `i` that counts pairs (0, 1, 2, …), what stands over d_model in the formula? For 4 features, the second pair must
    turn a hundred times more slowly than the first: and yours?"""
    pair = torch.arange(0, d_model, 2)
    return torch.arange(seq)[:, None] / 10000 ** (pair / 2 / d_model)


@sinusoidal_positions.mistake(part="angles")
def pairs_minus_one(seq, d_model):
    """The divisors are spread so that the last one is 10000 itself: the exponent is divided by the number of pairs less
    one. Some libraries do it so, and their tables differ from the formula here, in which the last pair stays below
    10000. Compare the divisor of the last pair with the formula."""
    pairs = torch.arange((d_model + 1) // 2)
    return torch.arange(seq)[:, None] / 10000 ** (pairs / max(d_model / 2 - 1, 1))


@sinusoidal_positions.mistake(part="angles")
def counted_from_one(seq, d_model):
    """The positions count from 1. The first token stands at position 0, where all sines are 0 and all cosines 1; your
    first row is what the second should be."""
    return one_angle_for_two(seq + 1, d_model)[1:]


@sinusoidal_positions.mistake(part="angles")
def times_the_divisor(seq, d_model):
    """The position is multiplied by 10000^(2i / d_model) and not divided by it: each pair turns faster than the one
    before, so fast that neighbours look like noise. Slow hands tell the hour, and the first pair is the fastest. Which
    sign must the exponent have?"""
    pair = torch.arange(0, d_model, 2)
    return torch.arange(seq)[:, None] * 10000 ** (pair / d_model)


@sinusoidal_positions.mistake(part="angles")
def exponent_cut_to_zero(seq, d_model):
    """All pairs turn at the same speed: every divisor is 1. A whole-number division does that: `2 * i // d_model` is 0
    for every `i` that occurs. Which division keeps the fraction?"""
    pair = torch.arange(0, d_model, 2)
    return torch.arange(seq)[:, None] / 10000 ** (pair // d_model)


@sinusoidal_positions.mistake(part="angles")
def base_of_a_thousand(seq, d_model):
    """The base of the divisors is 1000, where the formula has 10000. The table looks much the same, and its slow hands
    turn too fast. Count the zeros."""
    pair = torch.arange(0, d_model, 2)
    return torch.arange(seq)[:, None] / 1000 ** (pair / d_model)


@sinusoidal_positions.mistake
def each_feature_its_angle(seq, d_model):
    """The cosines have angles of their own: the exponent goes on from feature to feature, instead of once for two. The
    sines are right. A sine and its cosine are the two coordinates of *one* hand of a clock: which number do features 2i
    and 2i + 1 share?"""
    feature = torch.arange(d_model)
    angles = torch.arange(seq)[:, None] / 10000 ** (feature / d_model)
    return torch.where(feature % 2 == 0, angles.sin(), angles.cos())


@sinusoidal_positions.mistake
def feature_taken_for_pair(seq, d_model):
    """The number of the feature stands where the formula has the number of the pair: feature 2 gets the exponent 4 /
    d_model, feature 3 the exponent 6 / d_model. Features 2i and 2i + 1 form pair i and share its angle. How do you get
    from the number of a feature to that of its pair?"""
    feature = torch.arange(d_model)
    angles = torch.arange(seq)[:, None] / 10000 ** (2 * feature / d_model)
    return torch.where(feature % 2 == 0, angles.sin(), angles.cos())


@sinusoidal_positions.mistake(part="layout")
def halves(angles, d_model):
    """All sines stand first and all cosines after them; they should take turns. It is the same numbers in another
    order, so a model trained with it does not care, and weights from elsewhere do not fit. Where does the cosine of
    pair 0 belong?"""
    return torch.cat((angles.sin(), angles[:, : d_model // 2].cos()), dim=1)


@sinusoidal_positions.mistake(part="layout")
def cosine_first(angles, d_model):
    """The cosine comes before the sine in every pair. Position 0 must begin 0, 1, 0, 1; yours begins 1, 0, 1, 0. Which
    of the two belongs to the even features, counted from 0?"""
    return torch.stack((angles.cos(), angles.sin()), dim=-1).flatten(1)[:, :d_model]


@sinusoidal_positions.mistake(part="layout")
def sines_only(angles, d_model):
    """All features are sines. A sine alone cannot tell where its hand stands: 0.5 comes once on the way up and once on
    the way down. The odd features are another function of the same angle."""
    return angles.sin().repeat_interleave(2, dim=1)[:, :d_model]


@sinusoidal_positions.mistake(part="layout")
def angles_as_they_are(angles, d_model):
    """You return the angles themselves. They grow without bound, so late positions would drown the tokens that they are
    added to. Sine and cosine keep them between -1 and 1: which one for the even features, which for the odd?"""
    return angles.repeat_interleave(2, dim=1)[:, :d_model]


@sinusoidal_positions.mistake(part="layout")
def turned_table(angles, d_model):
    """Your table is (d_model, seq): a row for each feature. It is added to tokens of shape (seq, d_model), so each row
    must belong to one position. Which of the two `arange` must stand as a column?"""
    return in_turns(angles, d_model).mT


@sinusoidal_positions.mistake(part="layout")
def batch_in_front(angles, d_model):
    """Your result has an axis of size 1 in front. Many programs store it so, ready for a batch; broadcasting adds that
    axis by itself. Here, return (seq, d_model)."""
    return in_turns(angles, d_model)[None]


@sinusoidal_positions.mistake(part="layout")
def places_for_cosines_missing(angles, d_model):
    """An odd `d_model` has one sine more than it has places for cosines, and filling as many cosines as sines raises.
    The last sine stands alone. How many cosines are there, and how do you cut the angles to that?"""
    table = torch.zeros(len(angles), d_model)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


@sinusoidal_positions.mistake(part="layout")
def a_sine_too_few(angles, d_model):
    """An odd `d_model` has one place more for sines than `d_model // 2`, which counts complete pairs, and filling the
    places raises. The last sine stands alone. How many angles are there?"""
    table, angles = torch.zeros(len(angles), d_model), angles[:, : d_model // 2]
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


@sinusoidal_positions.mistake(part="layout")
def one_feature_too_many(angles, d_model):
    """With an odd `d_model` your table has one feature too many: the last pair is complete, although only its sine has
    a place. What must be cut off at the end?"""
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


@sinusoidal_positions.mistake(part="layout")
def one_feature_too_few(angles, d_model):
    """With an odd `d_model` your table has one feature too few: `d_model // 2` counts the complete pairs, and the last
    sine, which has no cosine beside it, is left out. How many sines are there?"""
    return in_turns(angles, d_model)[:, : d_model // 2 * 2]


@sinusoidal_positions.property
def sine_and_cosine_of_one_angle(function, seq, d_model):
    """The squares of features 2i and 2i + 1 sum to one, as those of the sine and cosine of one angle do."""
    squares = function(seq, d_model)[:, : d_model // 2 * 2].square()
    return _equal(squares[:, 0::2] + squares[:, 1::2], 1)


@sinusoidal_positions.property
def position_zero(function, seq, d_model):
    """Position 0 is 0, 1, 0, 1, …"""
    first = function(seq, d_model)[0]
    return first.shape == (d_model,) and _equal(first, torch.arange(d_model) % 2.0)


@sinusoidal_positions.property
def slower_from_pair_to_pair(function, seq, d_model):
    """Each pair turns more slowly than the one before: at position 1, the sines become smaller from pair to pair."""
    sines = function(seq, d_model)[1, 0::2]
    return bool((sines.diff() < 0).all() and (sines > 0).all())


@sinusoidal_positions.property
def first_pair(function, seq, d_model):
    """The first pair turns by one radian from one position to the next."""
    first = function(seq, d_model)[:, 0]
    return _equal(first, torch.arange(seq).sin())


# 6. mend_word_order


def _sentences(draw, batch=2, seq=7, d_model=6, d_head=4, d_value=5):
    x, w_q, w_k, w_v = _head(draw, batch, seq, d_model, d_head, d_value)
    return x, draw(batch * seq + 3, d_model), w_q, w_k, w_v


def by_place(x, positions):
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
        "Write the shape behind every line: of `x`, of the rows that are cut from `positions`, and of the sum. "
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
mend_word_order.example("a batch of one", batch=1)
mend_word_order.example("one word", seq=1)


@mend_word_order.probe
def _no_row_to_spare(draw):
    """as many positions as words"""
    x, positions, *weights = _sentences(draw)
    return x, positions[: x.shape[1]], *weights


@mend_word_order.mistake(part="place")
def as_given(x, positions):
    """This is the program as it was given. Run it on a sentence and on the same words in another order: every word gets
    the same vector in both. Then run it on a batch that holds one sentence twice: the two copies get different vectors.
    What do the positions number here, if not the words?"""
    return x + positions[: x.shape[0]].unsqueeze(1)


@mend_word_order.mistake(part="place")
def rows_still_for_sentences(x, positions):
    """There is one row of `positions` for each sentence, and the rows now meet the words: with unequal counts it mostly
    raises. It runs for a batch of one, where all words get the row of the first place, and for as many sentences as
    words, where it is even right. How many rows are needed?"""
    return x + positions[: x.shape[0]]


@mend_word_order.mistake(part="place")
def rows_still_along_the_batch(x, positions):
    """There is one row of `positions` for each word, and the rows are laid along the axis of the sentences: with
    unequal counts it mostly raises. With a batch of one it runs, and returns as many sentences as there were words.
    Broadcasting aligns shapes from the right; which axis of `x` do your rows meet?"""
    return x + positions[: x.shape[1]].unsqueeze(1)


@mend_word_order.mistake(part="place")
def table_not_cut(x, positions):
    """You add the whole table. It has room for longer sentences, so it has more rows than there are words, and raises.
    One row for each word is needed: which ones?"""
    return x + positions


@mend_word_order.mistake(part="place")
def places_from_one(x, positions):
    """The first word gets row 1 of `positions`, the second row 2: all are one place late. Python counts from 0, and so
    do the positions. Which row is for the first word?"""
    return x + positions[1 : x.shape[1] + 1]


@mend_word_order.mistake(part="place")
def places_from_the_end(x, positions):
    """The words get the last rows of `positions` instead of the first. Which place a word has would then depend on how
    long the table is. Which end does your slice count from?"""
    return x + positions[-x.shape[1] :]


@mend_word_order.mistake(part="place")
def places_go_on_through_the_batch(x, positions):
    """The places are numbered through the whole batch: the second sentence goes on where the first ended. The same
    sentence then gets other vectors in another row of the batch. Each sentence begins at place 0."""
    return x + positions[: x.shape[0] * x.shape[1]].reshape(x.shape)


@mend_word_order.mistake(part="place")
def one_place_for_all(x, positions):
    """All words of all sentences get the same row of `positions`. Something is added, and still no word can tell where
    it stands: reversed sentences give reversed results. How many rows does a sentence need?"""
    return x + positions[0]


@mend_word_order.mistake(part="place")
def no_places(x, positions):
    """The positions are left out altogether. The wrong results of the given program are gone, and word order with them:
    reversed sentences give reversed results. Which axis of `x` counts the words?"""
    return x


@mend_word_order.mistake(part="place")
def places_multiplied(x, positions):
    """The tokens are multiplied by the positions, number by number. Where a position vector has a 0, that feature of
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


@mend_word_order.property
def a_sentence_is_the_same_everywhere(function, x, *rest):
    """A sentence that stands twice in the batch gets the same result twice."""
    output = function(torch.cat((x, x)), *rest)
    return _equal(output[: len(x)], output[len(x) :])


@mend_word_order.property
def word_order_matters(function, x, *rest):
    """Reversing the words changes more than the order of the results."""
    return not _equal(function(x.flip(1), *rest), function(x, *rest).flip(1))
