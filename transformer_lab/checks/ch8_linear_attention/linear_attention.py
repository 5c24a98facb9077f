"""Linear attention that sees all keys."""

from collections import Counter
from itertools import combinations_with_replacement

import torch

from ..agree import agree
from ..exercise import exercise, family
from .elu_feature_map import (
    elu_alone,
    exponential_everywhere,
    feature_map,
    no_map,
    one_below_zero,
    pytorchs_elu,
    relu_alone,
    softplus,
)
from .properties import is_all_ones, is_close, is_within
from .similarities import add_similarity_mistakes


def query_key_value(draw, batch=2, heads=3, q_len=9, k_len=7, d_head=5, d_value=4):
    return draw(batch, heads, q_len, d_head), draw(batch, heads, k_len, d_head), draw(batch, heads, k_len, d_value)


def scale_to_hundreds(x):
    """Return numbers in the hundreds, of both signs. The first feature of each token is above zero: a token without
    such a feature would match no key."""
    return torch.cat([300 * x[..., :1].abs() + 1, 300 * x[..., 1:]], dim=-1)


def sum_of_values(q, k, value):
    """Multiply each query's features by `S`, the sum of features times value over all keys."""
    return q @ (k.mT @ value)


def sum_of_weights(q, k):
    """Multiply each query's features by `z`, the sum of the keys' features."""
    return q @ k.sum(-2).unsqueeze(-1)


def divide_by_normalizer(numerator, normalizer):
    """Divide the numerator by the normalizer."""
    return numerator / normalizer


def _pair_comparison_fact(arguments, result, tensors_made):
    """Return a dict with one fact: whether the function compares every query with every key. A function that does so
    makes a tensor with both lengths among its sizes, or uses far more memory than the sums need.

    If the result is wrong, the function is not examined further: the fact is `False`.
    """
    query, key, value = arguments
    fact = "each query is compared with each key"
    with torch._C.DisableTorchFunction():  # so that the check does not record the tensors made here
        if not agree(result, linear_attention.reference(query, key, value)):
            return {fact: False}
    lengths = query.shape[-2], key.shape[-2]
    other_sizes = (*query.shape[:-2], query.shape[-1], value.shape[-1], 1)
    products = {size * other_size for size, other_size in combinations_with_replacement(other_sizes, 2)}
    if products.isdisjoint(lengths) and any(Counter(lengths) <= Counter(tensor.shape) for tensor in tensors_made):
        return {fact: True}
    bytes_by_address = {
        tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors_made
    }
    n_numbers = query.numel() + key.numel() + value.numel() + key.numel() * value.shape[-1]
    return {fact: sum(bytes_by_address.values()) > 12 * n_numbers * query.element_size()}


@exercise(
    inputs=query_key_value,
    axes={
        "query": "batch heads q_len d_head",
        "key": "batch heads k_len d_head",
        "value": "batch heads k_len d_value",
        "return": "batch heads q_len d_value",
    },
    hints=(
        "Which two of the three matrices can be multiplied without using the queries?",
        "Sum over the keys: in each head, `S` is the sum of features times value, (d_head, d_value), and `z` is the "
        "sum of the features, (d_head). Each query reads both sums, and what it reads from `S` is divided by what it "
        "reads from `z`.",
        "`q, k = φ(query), φ(key)`, then `S = k.mT @ …`, `z = k.sum(dim=…)` and `(q @ S) / (q @ z.unsqueeze(…))`",
    ),
    facts=_pair_comparison_fact,
)
def linear_attention(
    query,
    key,
    value,
    *,
    features=feature_map,
    numerator=sum_of_values,
    normalizer=sum_of_weights,
    output=divide_by_normalizer,
):
    """Return the mean of the values, weighted by φ(query) · φ(key), with no table of weights.

    query (batch, heads, q_len, d_head), key (batch, heads, k_len, d_head), value (batch, heads, k_len, d_value).
    Returns (batch, heads, q_len, d_value).
    """
    q, k = features(query), features(key)
    return output(numerator(q, k, value), normalizer(q, k))


@linear_attention.right
class RightAnswers:
    def with_a_small_number_added(query, key, value):
        q, k = pytorchs_elu(query), pytorchs_elu(key)
        return (q @ (k.mT @ value)) / (q @ k.sum(-2)[..., None] + 1e-6)

    def by_einsum(query, key, value):
        q, k = feature_map(query), feature_map(key)
        S = torch.einsum("bhkd,bhkv->bhdv", k, value)
        normalizer = torch.einsum("bhqd,bhd->bhq", q, k.sum(2))
        return torch.einsum("bhqd,bhdv->bhqv", q, S) / normalizer[..., None]

    def one_key_after_the_other(query, key, value):
        q, k = feature_map(query), feature_map(key)
        S, z = 0.0, 0.0
        for j in range(k.shape[2]):
            S = S + k[:, :, j, :, None] * value[:, :, j, None, :]
            z = z + k[:, :, j]
        rows = [(q[:, :, i, None] @ S).squeeze(2) / (q[:, :, i] * z).sum(-1, keepdim=True) for i in range(q.shape[2])]
        return torch.stack(rows, dim=2)

    def ones_beside_the_values(query, key, value):
        value = torch.cat([value, torch.ones_like(value[..., :1])], dim=-1)
        both_sums = feature_map(query) @ (feature_map(key).transpose(-1, -2) @ value)
        return both_sums[..., :-1] / both_sums[..., -1:]

    def divided_first(query, key, value):
        q, k = feature_map(query), feature_map(key)
        return q / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True) @ (k.mT @ value)

    def means_instead_of_sums(query, key, value):
        q, k = feature_map(query), feature_map(key)
        S = k.mT @ value / k.shape[-2]
        return (q @ S) / (q @ k.mean(-2).unsqueeze(-1))

    def head_by_head(query, key, value):
        result = query.new_empty(*query.shape[:-1], value.shape[-1])
        for b in range(query.shape[0]):
            for h in range(query.shape[1]):
                q, k = feature_map(query[b, h]), feature_map(key[b, h])
                result[b, h] = (q @ (k.T @ value[b, h])) / (q @ k.sum(0))[:, None]
        return result


linear_attention.example("fewer queries than keys", q_len=5, k_len=11, d_head=2, d_value=7, plain=True)
linear_attention.example("as many queries as keys", q_len=7, k_len=7, plain=True)
linear_attention.example("one token", q_len=1, k_len=1)
linear_attention.example("one sequence and one value", batch=1, d_value=1)
linear_attention.example("one head", heads=1)
linear_attention.example("one feature", d_head=1)


@linear_attention.probe
def keys_around_minus_5(draw):
    """keys around −5 with small features"""
    query, key, value = query_key_value(draw)
    return query, key - 5, value


@linear_attention.probe
def numbers_in_the_hundreds(draw):
    """numbers in the hundreds"""
    query, key, value = query_key_value(draw)
    return scale_to_hundreds(query), scale_to_hundreds(key), value


linear_attention.example("150 tokens", batch=1, heads=1, q_len=150, k_len=150, d_head=2, d_value=1)


@linear_attention.property
def ones_stay_ones(function, query, key, value):
    """Values that are all one stay one: the weights of each query sum to one."""
    return is_all_ones(function(query, key, torch.ones_like(value)))


@linear_attention.property
def within_the_values(function, query, key, value):
    """No result is outside the range of the values: no weight is negative."""
    return is_within(function(query, key, value), value)


@linear_attention.property
def keys_in_any_order(function, query, key, value):
    """The keys may come in any order, as long as each keeps its value."""
    return is_close(function(query, key.flip(-2), value.flip(-2)), function(query, key, value))


def no_normalizer(numerator, normalizer):
    """You never divide: your results are sums of values, not means, and they grow with the number of keys. Values that
    are all one should stay one. Apart from `S`, each query reads a second sum, `z`: what does `z` sum?"""
    return numerator


# Maps that are positive or nearly so: rarer than the others, and not combined with other mistakes
RARE_MAPS = (relu_alone, one_below_zero, exponential_everywhere, softplus)


@linear_attention.wrong(stage="features", alone=True)
class FeaturesAlone:
    def softmax_over_features(x):
        """Your map is a softmax over the features of each token. A softmax makes the features positive, but also
        dependent on one another: they sum to one. The map of this chapter acts element by element: x + 1 above zero,
        exp(x) below."""
        return x.softmax(-1)

    def mapped_twice(x):
        """Queries and keys go through the feature map twice: once in one line and again in the next, or in a function
        that applies the map itself. A feature is positive, so the second map only adds 1 to it. Which of the two calls
        is one too many?"""
        return feature_map(feature_map(x))


@linear_attention.wrong(stage="numerator")
class Numerator:
    """Wrong sums. Queries and keys are passed as their features."""

    def mean_of_products(q, k, value):
        """In the numerator you take a mean over the keys, but in the normalizer a sum. The result is too small by a
        factor of k_len: values that are all one come out as 1/k_len. Use a sum in numerator and normalizer, or a mean
        in both."""
        return sum_of_values(q, k, value) / k.shape[-2]

    def S_over_all_heads(q, k, value):
        """You also sum `S` over the heads, so every head reads the values of all heads. Each head has its own `S`.
        Which letter is missing on the right side of your `einsum`, or over which axes does your sum run?"""
        return q @ (k.mT @ value).sum(1, keepdim=True)


@linear_attention.wrong(stage="normalizer")
class Normalizer:
    def mean_of_keys(q, k):
        """In the normalizer you take the mean of the keys' features, but in the numerator a sum over the keys. The
        result is too large by a factor of k_len: values that are all one come out as k_len. Use a sum in numerator and
        normalizer, or a mean in both."""
        return sum_of_weights(q, k) / k.shape[-2]

    def keys_alone(q, k):
        """You divide by the sum of all features of all keys, without the query's features. So the weights of a query do
        not sum to one: in the numerator the query's features multiply `S`. What must the query's features multiply in
        the normalizer?"""
        return k.sum((-2, -1), keepdim=True)

    def queries_alone(q, k):
        """You divide by the sum of the query's own features, without the keys. So the weights do not sum to one, and
        they grow with the number of keys. The normalizer is what the query would read from `S` if all values were one.
        Which sum is that?"""
        return q.sum(-1, keepdim=True)

    def one_normalizer_for_all(q, k):
        """You divide all queries of a head by one number, the sum of the whole table of weights. The results of all
        queries then add up to one mean, and each result is too small. Every query needs its own normalizer: you summed
        over an axis that must stay. Which axis?"""
        return sum_of_weights(q, k).sum(-2, keepdim=True)

    def z_over_all_heads(q, k):
        """You also sum `z` over the heads, so every head is divided by the weights of the keys of all heads. Each head
        has its own `z`. Which letter is missing on the right side of your `einsum`, or over which axes does your sum
        run?"""
        return q @ k.sum((1, 2)).unsqueeze(1).unsqueeze(-1)


@linear_attention.wrong(stage="normalizer", alone=True)
class NormalizerAlone:
    def one_number_for_everything(q, k):
        """You divide by a single number, the sum of the normalizers of all queries, heads and sequences. Every query
        needs its own normalizer. Which argument of `sum` names the axis, and is there anything left to sum after the
        product with `z`?"""
        return sum_of_weights(q, k).sum()

    def z_of_the_queries(q, k):
        """`z` is a sum of the queries' features, but should be a sum of the keys' features: the normalizer is what a
        query would read if all values were one, and values belong to keys. Which tensor do you sum in the line that
        computes `z`?"""
        return q @ q.sum(-2).unsqueeze(-1)


@linear_attention.wrong(stage="output")
class Output:
    def softmax_of_the_result(numerator, normalizer):
        """You apply a softmax over the features of the result. So each result sums to one over `d_value`, but the
        weights should sum to one over the keys. Linear attention uses a division instead of a softmax: by what must you
        divide?"""
        return numerator.softmax(-1)

    def divided_by_its_own_sum(numerator, normalizer):
        """You divide each result by the sum of its own numbers. So each result sums to one over `d_value`, but the
        weights should sum to one over the keys; and values may have any sign, so the sum of a result can be zero.
        Divide by what the query would read from `S` if all values were one. What would the query read then?"""
        return numerator / numerator.sum(-1, keepdim=True)

    def heads_added_up(numerator, normalizer):
        """You sum the results over the heads, so the axis of the heads is missing: (batch, q_len, d_value). The results
        of the heads stay separate until the heads are merged. Which letter is missing on the right side of your
        `einsum`, or over which axis does a sum run?"""
        return divide_by_normalizer(numerator, normalizer).sum(1)

    def sums_without_the_heads(numerator, normalizer):
        """You sum the numerator and the normalizer over the heads before you divide, so the axis of the heads is
        missing: (batch, q_len, d_value). Each head has its own mean. Which letter is missing on the right side of your
        `einsum`?"""
        return numerator.sum(1) / normalizer.sum(1)


@linear_attention.wrong
class WrongAnswers:
    def features_meet_keys(query, key, value):
        """In one of your products, features are aligned with keys, `d_head` with `k_len`. The product raises an error;
        with as many keys as features it would be silently wrong. Either `key` is not transposed before its product, or
        you summed `z` over the features, so that its axis still counts keys. `S` and `z` both sum over the keys: which
        axis of `key` remains after such a sum?"""
        return query @ (key @ value)

    def features_meet_values(query, key, value):
        """In one of your products, the features of a query or key, `d_head`, are aligned with those of a value,
        `d_value`. These two sizes are unrelated. The product raises an error; with equal sizes it would be silently
        wrong. Most often `S` has its axes in the order (d_value, d_head): with which of these two axes must the query's
        features be aligned?"""
        return query @ (value.mT @ key)

    def keys_not_transposed(query, key, value):
        """You multiply the keys' features, not transposed, by the values: (k_len, d_head) by (k_len, d_value). The
        product raises an error; with as many keys as features it would be silently wrong. `S` is a sum over the keys:
        which axis must then come last in the first factor, and which method moves it there?"""
        return feature_map(query) @ (feature_map(key) @ value)

    def S_with_its_axes_exchanged(query, key, value):
        """Your `S` has its axes in the order (d_value, d_head), so the query's features are aligned with the wrong
        axis. The product raises an error; with equal sizes it would be silently wrong. The features must be on the
        second-to-last axis of `S`: which factor comes first in the product that computes `S`?"""
        return feature_map(query) @ (value.mT @ feature_map(key))

    def z_over_the_features(query, key, value):
        """You multiply the query's features by a tensor that has a row for each key, so `d_head` is aligned with
        `k_len`. Either you summed `z` over the features, or you did not transpose the keys. The product raises an
        error; with as many keys as features it would be silently wrong. `S` and `z` are both sums over the keys. With
        which axis must the query's features then be aligned?"""
        q, k = feature_map(query), feature_map(key)
        return (q @ (k.mT @ value)) / (q @ k.sum(-1, keepdim=True))

    def z_over_the_heads(query, key, value):
        """You multiply the query's features by a tensor whose axis 1 counts keys instead of heads, and the product
        raises an error. Either you summed `z` along axis 1, or you transposed the wrong axes of the keys. In (batch,
        heads, k_len, d_head) the second-to-last axis counts the keys. Which number does this axis have?"""
        q, k = feature_map(query), feature_map(key)
        return (q @ (k.mT @ value)) / (q @ k.sum(1).unsqueeze(-1))

    def z_as_a_row(query, key, value):
        """`z` is a row, (1, d_head), and the query's features cannot be multiplied by a row: `q @ …` aligns the last
        axis of `q` with the second-to-last axis of the second factor. `z` must be a column, (d_head, 1). On which side
        of its features does `z` need the axis of size 1?"""
        q, k = feature_map(query), feature_map(key)
        return (q @ (k.mT @ value)) / (q @ k.sum(-2, keepdim=True))

    def z_as_a_matrix(query, key, value):
        """`z` has the axes (batch, heads, d_head), one fewer than the queries, and `@` treats the last two as a matrix,
        so features are aligned with heads. The product raises an error. `z` must be a column in each head, (batch,
        heads, d_head, 1). Which call adds that axis?"""
        q, k = feature_map(query), feature_map(key)
        return (q @ (k.mT @ value)) / (q @ k.sum(-2))

    def z_without_its_axis(query, key, value):
        """`z` has the axes (batch, heads, d_head), one fewer than the queries. Shapes are aligned from the right, so
        the heads of `z` are aligned with the queries' tokens, which raises an error. All queries of a head read the
        same `z`: where does `z` need an axis of size 1, and which argument of `sum` keeps such an axis?"""
        q, k = feature_map(query), feature_map(key)
        return (q @ (k.mT @ value)) / (q * k.sum(-2)).sum(-1, keepdim=True)

    def normalizer_without_its_axis(query, key, value):
        """Your normalizer has one number for each query, (batch, heads, q_len), and no last axis. Shapes are aligned
        from the right, so `q_len` is aligned with `d_value`, and the division raises an error; with equal sizes it
        would be silently wrong. Which operation adds a last axis of size 1?"""
        q, k = feature_map(query), feature_map(key)
        return (q @ (k.mT @ value)) / (q * k.sum(-2, keepdim=True)).sum(-1)

    def normalizer_of_every_feature(query, key, value):
        """You divide by `d_head` numbers, one for each feature, but the result has `d_value` numbers. The division
        raises an error; with equal sizes it would be silently wrong. The normalizer is one number for each query,
        φ(query) · `z`. Over which axis does a dot product sum?"""
        q, k = feature_map(query), feature_map(key)
        return (q @ (k.mT @ value)) / (q * k.sum(-2, keepdim=True))

    def features_in_place_of_queries(query, key, value):
        """You divide by `z` itself, as a column: it has a row for each feature, but the result has a row for each
        query. The division raises an error; with as many queries as features it would be silently wrong. The normalizer
        needs the query as well: which product turns a query and `z` into one number?"""
        q, k = feature_map(query), feature_map(key)
        return (q @ (k.mT @ value)) / k.sum(-2).unsqueeze(-1)

    def keys_in_place_of_queries(query, key, value):
        """You divide by the sum of each key's features: a number for each key, but the result has a row for each query.
        With as many queries as keys the division is silently wrong; otherwise it raises an error. The normalizer is one
        number for each query. Which sum over the keys does a query read?"""
        q, k = feature_map(query), feature_map(key)
        return (q @ (k.mT @ value)) / k.sum(-1, keepdim=True)

    def other_axes_exchanged(query, key, value):
        """You transpose the keys, but not only in the last two axes: `.T` reverses all axes, and `transpose(1, 2)`
        exchanges heads and keys. The product with the values then raises an error. Here the axes are (batch, heads,
        k_len, d_head). How do you exchange only the last two?"""
        return feature_map(query) @ (feature_map(key).transpose(1, 2) @ value)

    def queries_and_keys_exchanged(query, key, value):
        """You have exchanged queries and keys: `S` sums over the queries, whose number differs from that of the values.
        The product raises an error; with as many queries as keys it would be silently wrong. A value belongs to a key.
        Whose features are multiplied by the values in `S`?"""
        return linear_attention.reference(key, query, value)

    def z_of_unmapped_keys(query, key, value):
        """You compute `z` from the keys as they are, but `S` from the keys' features. So the two sums give the same key
        different weights, and the normalizer can become zero or negative. Which name does the line of `z` use: the name
        of the keys or the name of their features?"""
        return linear_attention.reference(query, key, value, normalizer=lambda q, k: sum_of_weights(q, key))

    def S_of_the_bare_keys(query, key, value):
        """You compute `S` from the keys as they are, but `z` from the keys' features. So the two sums give the same key
        different weights, and the weights do not sum to one. Which name does the line of `S` use: the name of the keys
        or the name of their features?"""
        return linear_attention.reference(query, key, value, numerator=lambda q, k, value: sum_of_values(q, key, value))

    def bare_queries_below_the_line(query, key, value):
        """In the numerator you multiply the query's features by `S`, but in the normalizer you multiply the query as it
        is, without the map, by `z`. The weights do not sum to one, and the normalizer can become zero or negative.
        Which name do you multiply by `z`: the name of the query or the name of its features?"""
        return linear_attention.reference(query, key, value, normalizer=lambda q, k: sum_of_weights(query, k))

    def relu_and_a_small_number(query, key, value):
        """Your features are max(x, 0), and a small number in the normalizer prevents 0/0. But a key whose numbers are
        all negative is still never seen, and a query with only negative numbers gets zeros. The features must be
        greater than zero everywhere: what does the formula say below zero?"""
        return linear_attention.reference(
            query, key, value, features=relu_alone, output=lambda numerator, normalizer: numerator / (normalizer + 1e-6)
        )

    def softmax_as_the_map(query, key, value):
        """You apply a softmax to the queries over their features, and to the keys over the tokens, so no division is
        needed. This attention exists under the name *efficient attention*, but it is not the attention of this chapter.
        Here φ acts element by element, and a division by φ(query) · `z` makes the weights sum to one. What is φ in the
        docstring?"""
        return query.softmax(-1) @ (key.softmax(-2).mT @ value)

    def divided_feature_by_feature(query, key, value):
        """You divide `S` by `z` feature by feature, and the query reads the quotients. Values that are all one then
        come out as the sum of the query's features. The query must read both sums first; then you divide once, at the
        end."""
        q, k = feature_map(query), feature_map(key)
        return q @ (k.mT @ value / k.sum(-2).unsqueeze(-1))

    def divided_by_length(query, key, value):
        """You divide by the number of keys, not by the sum of the weights. The results then do not grow with the
        length, but they are not means: the weights of a query sum to its mean similarity to the keys. What does a query
        read from `z`?"""
        return sum_of_values(feature_map(query), feature_map(key), value) / key.shape[-2]

    def divided_by_root_of_d(query, key, value):
        """You divide only by √d_head. The root belongs to softmax attention, where it keeps the scores from growing.
        Here the weights are the similarities themselves, and need a normalizer in order to sum to one: a different
        number for each query."""
        return sum_of_values(feature_map(query), feature_map(key), value) / query.shape[-1] ** 0.5

    def mean_divided_by_root_of_d(query, key, value):
        """{Your means are right, but} you also divide by √d_head. The root belongs to softmax attention, where it keeps
        the scores from growing. Here the normalizer makes the weights sum to one, and you must not divide again after
        it. What does your function return for values that are all one?"""
        return linear_attention.reference(query, key, value) / query.shape[-1] ** 0.5

    def last_key_alone_in_S(query, key, value):
        """`S` contains only the last key and its value, but `z` contains all keys: in a loop over the keys each round
        overwrites what the earlier rounds have added. Which operator adds to a name, and which replaces its value?"""
        return linear_attention.reference(
            query, key, value, numerator=lambda q, k, value: sum_of_values(q, k[..., -1:, :], value[..., -1:, :])
        )

    def each_pair_compared(query, key, value):
        """{The numbers are right, but} you still compare every query with every key, one by one or in a table of q_len
        × k_len similarities. Linear attention exists to avoid these comparisons. You multiply three matrices: which two
        do you multiply first, and how large is the result?"""
        weights = feature_map(query) @ feature_map(key).mT
        return weights @ value / weights.sum(-1, keepdim=True)

    def row_by_row(query, key, value):
        """The numbers are right, but the cost is still that of a table of weights: for each query you compute its
        similarity to every key. You keep no table, but compute as many similarities as a table has entries. Which
        computation is the same for all queries, so that you need it only once?"""
        q, k = feature_map(query), feature_map(key)
        rows = []
        for i in range(q.shape[2]):
            weights = (k @ q[:, :, i, :, None]).squeeze(-1)
            rows.append((weights[:, :, None] @ value).squeeze(2) / weights.sum(-1, keepdim=True))
        return torch.stack(rows, dim=2)

    def normalized_over_queries(query, key, value):
        """Your weights sum to one over the queries, but should sum to one over the keys. Each key then divides its
        weight among the queries, and values that are all one do not stay one. Whose features are summed in `z`?"""
        q, k = feature_map(query), feature_map(key)
        return q @ ((k / (k @ q.sum(-2).unsqueeze(-1))).mT @ value)

    def features_normalized(query, key, value):
        """You divide the features themselves: each feature of the keys by its sum over the keys, and the features of
        each query by their sum. The weights of a query sum to one, but they are different weights: a rare feature
        counts as much as a common one. Leave the features as they are: only the similarities φ(query) · φ(key) are
        divided by their sum."""
        q, k = feature_map(query), feature_map(key)
        return q / q.sum(-1, keepdim=True) @ ((k / k.sum(-2, keepdim=True)).mT @ value)

    def z_of_the_summed_keys(query, key, value):
        """For `z` you sum the keys first and apply the map to the sum. The map is not linear: the features of a sum are
        not the sum of the features, so the weights do not sum to one. Which must come first, the map or the sum?"""
        z = feature_map(key.sum(-2, keepdim=True))
        return linear_attention.reference(query, key, value, normalizer=lambda q, k: sum_of_weights(q, z))

    def sums_over_all_heads(query, key, value):
        """You also sum `S` and `z` over the heads, so every head reads the keys and values of all heads. Each head has
        its own `S` and `z`. Which letters are missing on the right side of your `einsum`, or over which axes does your
        sum run?"""
        k = feature_map(key)
        S, z = (k.mT @ value).sum(1, keepdim=True), k.sum((1, 2), keepdim=True)
        return feature_map(query) @ S / (feature_map(query) @ z.mT)

    def sums_over_batch_and_heads(query, key, value):
        """You also sum `S` and `z` over the sentences and the heads, so every query reads the keys of the whole batch.
        Each head of each sentence has its own `S` and `z`. Which letters are missing on the right side of your
        `einsum`, or over which axes does your sum run?"""
        k = feature_map(key)
        S, z = (k.mT @ value).sum((0, 1)), k.sum((0, 1, 2))
        return feature_map(query) @ S / (feature_map(query) @ z[:, None])

    def softmax_as_the_map_with_a_scale(query, key, value):
        """You apply a softmax to the queries over their features, and to the keys over the tokens, and divide by
        √d_head. Some published models do this, but it is a different attention: its weights do not sum to one. Here φ
        acts element by element, and a division by φ(query) · `z` comes last. What is φ in the docstring?"""
        return query.softmax(-1) / query.shape[-1] ** 0.5 @ (key.softmax(-2).mT @ value)

    def softmax_over_features_not_divided(query, key, value):
        """Your map is a softmax over the features of each token, and you never divide. The features are positive and
        sum to one, but the weights of a query do not sum to one over the keys. Here φ acts element by element. A query
        reads a sum from `S`: by what must you divide this sum?"""
        return query.softmax(-1) @ (key.softmax(-1).mT @ value)

    def z_of_the_bare_keys_and_one(query, key, value):
        """You compute `z` as a sum of key + 1, but `S` from the keys' features. φ is elu(x) + 1: where a key is below
        zero, key + 1 is not its feature, and can be negative. So the weights do not sum to one. Which name holds the
        features?"""
        return linear_attention.reference(query, key, value, normalizer=lambda q, k: sum_of_weights(q, key + 1))

    def one_added_to_the_bare_z(query, key, value):
        """For `z` you sum the keys as they are, and add 1 to the sum. Both `elu` and the 1 of elu(x) + 1 belong to each
        feature of each key, before the sum. Which name holds the features?"""
        return linear_attention.reference(
            query, key, value, normalizer=lambda q, k: q @ (key.sum(-2) + 1).unsqueeze(-1)
        )

    @family(**{f"relu_and_1e_{power}": 10.0**-power for power in (1, 2, 3, 4, 6)})
    def relu_and(number, query, key, value):
        """Your features are max(x, 0) plus a small number. The small number keeps the normalizer from being 0, but
        below zero all numbers look the same: −0.1 and −100 get the same feature, and no gradient. Some Performers use
        this map. What does the formula of φ say below zero?"""
        return linear_attention.reference(query, key, value, features=lambda x: relu_alone(x) + number)


linear_attention.mistakes_in(features=(elu_alone, no_map), output=(no_normalizer,))
linear_attention.mistakes_in(features=RARE_MAPS, alone=True)
add_similarity_mistakes(linear_attention, hide=lambda scores: scores)
