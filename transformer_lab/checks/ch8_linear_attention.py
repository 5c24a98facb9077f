"""Chapter 8: positive features, linear attention in its three forms, and padding in a sum."""

from collections import Counter
from functools import wraps
from itertools import combinations_with_replacement

import torch
from torch.nn import functional as F

from .agree import agree
from .exercise import exercise

# The feature map, right


def positive(x):
    # The exponential of a large number overflows, also where `where` does not take it, and its gradient is NaN there.
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


# The feature map, wrong


def elu_alone(x):
    """Your features are elu(x), without the 1: they go down to −1. Negative features make negative weights, and a
    normalizer that can be zero, so that results fly far off. What does the formula add to `elu`?"""
    return F.elu(x)


def relu_alone(x):
    """Your features are max(x, 0): zero for every negative number. A key whose numbers are all negative is never seen,
    and a query of that kind gets 0/0, which is NaN. The features must be greater than zero everywhere: what does the
    formula say below zero?"""
    return F.relu(x)


def one_below_zero(x):
    """Your features are max(x, 0) + 1: right above zero, and 1 for every negative number, be it −0.1 or −100. Such
    numbers can then not be told apart, and no gradient flows through them. What does the formula say below zero?"""
    return F.relu(x) + 1


def exponential_everywhere(x):
    """Your features are exp(x) everywhere: right below zero only. Above it they grow far too fast: 20 becomes 485
    million instead of 21, and 100 overflows float32. Which of the two cases has the exponential?"""
    return x.exp()


def no_map(x):
    """You multiply the numbers as they are, with no feature map. Each query's weights may still sum to one, but they
    can be negative, and where their sum comes close to zero the result flies far off. Both queries and keys need
    features: did you compute them and then go on with the old name?"""
    return x


# Chapter 8.3: the feature map itself


def _numbers(draw, batch=2, heads=3, seq=7, d_head=5):
    return (draw(batch, heads, seq, d_head),)


@exercise(
    inputs=_numbers,
    axes={"x": "batch heads seq d_head", "return": "batch heads seq d_head"},
    hints=(
        "The map has two cases. What does each give at 2, at 0 and at −3, and which may be computed for a number "
        "that belongs to the other?",
        "`torch.where(condition, a, b)` computes both sides everywhere and takes one. exp(100) is infinite in "
        "float32: cut off, with `clamp`, what would overflow.",
        "`torch.where(x > 0, …, x.clamp(max=…).exp())`",
    ),
)
def elu_feature_map(x):
    """Return elu(x) + 1: x + 1 above zero, exp(x) below. x: any shape. Returns the same shape."""
    return positive(x)


@elu_feature_map.equivalent
def pytorchs_elu(x):
    return F.elu(x) + 1


@elu_feature_map.equivalent
def sum_of_both(x):
    return x.clamp(max=0).exp() + x.clamp(min=0)


@elu_feature_map.equivalent
def by_relu(x):
    return F.relu(x) + torch.exp(-F.relu(-x))


@elu_feature_map.equivalent
def the_larger(x):
    return torch.maximum(x + 1, x.clamp(max=0).exp())


@elu_feature_map.equivalent
def by_assignment(x):
    features = torch.empty_like(x)
    is_positive = x > 0
    features[is_positive] = x[is_positive] + 1
    features[~is_positive] = x[~is_positive].exp()
    return features


@elu_feature_map.equivalent
def by_minimum(x):
    zeros = torch.zeros_like(x)
    return torch.minimum(x, zeros).exp() + torch.maximum(x, zeros)


@elu_feature_map.probe
def _(draw):
    """numbers around −5"""
    return (draw(2, 3) - 5,)


@elu_feature_map.probe
def _(draw):
    """numbers in the hundreds of both signs"""
    return (300 * draw(3, 4),)


@elu_feature_map.probe
def _(draw):
    """zeros"""
    return (torch.zeros(2, 3),)


@elu_feature_map.probe
def _(draw):
    """one number without axes"""
    return (draw() - 2,)


@elu_feature_map.property
def _(function, x):
    """All features are greater than zero."""
    return bool((function(x) > 0).all())


@elu_feature_map.property
def _(function, x):
    """A larger number has a larger feature."""
    return bool((function(x + 0.1) > function(x)).all())


for _mistake in (elu_alone, relu_alone, one_below_zero, exponential_everywhere):
    elu_feature_map.mistake(_mistake)


@elu_feature_map.mistake
def cases_exchanged(x):
    """The two cases have changed places: you take the exponential above zero and x + 1 below. Numbers below −1 get
    negative features, and the features of those above zero grow far too fast. Which value does your `where` take where
    its condition holds?"""
    return torch.where(x > 0, x.exp(), x + 1)


@elu_feature_map.mistake
def jump_at_zero(x):
    """Above zero your features are x itself, without the 1. The two cases then do not meet: the feature of −0.01 is
    0.99, and that of 0.01 is 0.01. What must the upper case give at zero for the two to meet?"""
    return torch.where(x > 0, x, x.clamp(max=0).exp())


@elu_feature_map.mistake
def one_added_below_too(x):
    """Below zero your features are exp(x) + 1, one too many: they go down to 1 instead of 0. `elu` is exp(x) − 1 there,
    and its 1 and the 1 that is added cancel. What do you get at −1? It should be 0.37."""
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp() + 1)


@elu_feature_map.mistake
def elu_below_only(x):
    """Below zero your features are exp(x) − 1, which is negative: the 1 is added above zero only. Where x is below
    zero, `elu` is exp(x) − 1; what is that plus 1?"""
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp() - 1)


@elu_feature_map.mistake
def zero_below(x):
    """Above zero your features are right, and below they are zero: that is where exp(x) should stand. A key whose
    numbers are all negative would never be seen, and a query of that kind would get 0/0. Was a case multiplied away by
    its condition?"""
    return torch.where(x > 0, x + 1, 0.0)


@elu_feature_map.mistake
def magnitudes(x):
    """Your features are |x| + 1: right above zero, and growing again below it, where they should fall towards zero. A
    key and its opposite would then look the same. What does the formula say below zero?"""
    return x.abs() + 1


@elu_feature_map.mistake
def both_cases_at_zero(x):
    """At zero your feature is 2: both cases hold there, `<=` and `>=`, and you add what they give. Padding and fresh
    tensors are full of zeros. To which one of the cases does zero belong?"""
    return (x <= 0) * x.clamp(max=0).exp() + (x >= 0) * (x + 1)


@elu_feature_map.mistake
def neither_case_at_zero(x):
    """At zero your feature is 0: neither case holds there, `<` and `>`, and nothing is left. Padding and fresh tensors
    are full of zeros. To which one of the cases does zero belong?"""
    return (x < 0) * x.clamp(max=0).exp() + (x > 0) * (x + 1)


@elu_feature_map.mistake
def softplus(x):
    """Your features are log(1 + exp(x)). They are positive and grow as they should, but it is another map: at 0 it
    gives 0.69 and not 1, and at 2 it gives 2.13 and not 3. What does `elu(x) + 1` give at 0?"""
    return F.softplus(x)


@elu_feature_map.mistake
def softmax_of_features(x):
    """You take the softmax over the features of each token. That makes them positive, and ties them to one another:
    they sum to one. The map of this chapter acts number by number; what does it make of a single number?"""
    return x.softmax(-1)


@elu_feature_map.mistake
def infinity_times_zero(x):
    """You compute both cases for every number and multiply each by its condition. For a number in the hundreds exp(x)
    is infinite, and infinity times zero is NaN, not zero. How can the exponential be kept from seeing what is not meant
    for it?"""
    return (x > 0) * (x + 1) + (x <= 0) * x.exp()


@elu_feature_map.mistake
def argument_overwritten(x):
    """The features are right, and they have been written over the argument: whoever passed x to you finds other numbers
    in it. An operation in place does that: a name that ends in an underscore, `inplace=True`, or `x[…] = …`. Make a new
    tensor instead."""
    features = positive(x)
    return x.copy_(features)


@elu_feature_map.mistake
def second_case_on_top_of_the_first(x):
    """You write the lower case into x first, and ask afterwards which numbers are above zero. By then all are: exp(x)
    is positive, so they get the other case as well. x itself is changed, too. Ask for both cases before you write, and
    write into a new tensor."""
    x[x <= 0] = x[x <= 0].exp()
    x[x > 0] += 1
    return x


# Chapter 8.3: linear attention


def _attention(draw, batch=2, heads=3, q_len=9, k_len=7, d_head=5, d_value=4):
    return draw(batch, heads, q_len, d_head), draw(batch, heads, k_len, d_head), draw(batch, heads, k_len, d_value)


def _hundreds(x):
    """Numbers of both signs, and one feature above zero: a token that has none would match no key."""
    return torch.cat([300 * x[..., :1].abs() + 1, 300 * x[..., 1:]], dim=-1)


def sum_of_values(q, k, value):
    return q @ (k.mT @ value)


def sum_of_weights(q, k):
    return q @ k.sum(-2).unsqueeze(-1)


def mean(numerator, normalizer):
    return numerator / normalizer


def _pairs(arguments, result, made):
    """Whether every query was compared with every key: seen from a table of both sizes, or from the amount of numbers.

    A result that is wrong is not looked at: it may come from a table as well as from sums.
    """
    query, key, value = arguments
    fact = "each query meets each key on the way"
    with torch._C.DisableTorchFunction():  # whoever watches the function must not see what is computed here
        if not agree(result, linear_attention.reference(query, key, value)):
            return {fact: False}
    pair = query.shape[-2], key.shape[-2]
    others = (*query.shape[:-2], query.shape[-1], value.shape[-1], 1)
    products = {one * other for one, other in combinations_with_replacement(others, 2)}
    if products.isdisjoint(pair) and any(Counter(pair) <= Counter(tensor.shape) for tensor in made):
        return {fact: True}
    memories = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in made}
    linear = query.numel() + key.numel() + value.numel() + key.numel() * value.shape[-1]
    return {fact: sum(memories.values()) > 12 * linear * query.element_size()}


@exercise(
    inputs=_attention,
    axes={
        "query": "batch heads q_len d_head",
        "key": "batch heads k_len d_head",
        "value": "batch heads k_len d_value",
        "return": "batch heads q_len d_value",
    },
    hints=(
        "Which two of the three matrices can be multiplied without a single look at the queries?",
        "`S` is the sum over the keys of features times value, (d_head, d_value) in each head; `z` is the sum of the "
        "features, (d_head). Each query reads both, and the second divides the first.",
        "`q, k = φ(query), φ(key)`, then `S = k.mT @ …`, `z = k.sum(dim=…)` and `(q @ S) / (q @ z.unsqueeze(…))`",
    ),
    facts=_pairs,
)
def linear_attention(
    query, key, value, *, features=positive, numerator=sum_of_values, normalizer=sum_of_weights, output=mean
):
    """Return the mean of the values, weighted by φ(query) · φ(key), with no table of weights.

    query (batch, heads, q_len, d_head), key (batch, heads, k_len, d_head), value (batch, heads, k_len, d_value).
    Returns (batch, heads, q_len, d_value).
    """
    q, k = features(query), features(key)
    return output(numerator(q, k, value), normalizer(q, k))


@linear_attention.equivalent
def with_a_small_number_added(query, key, value):
    q, k = pytorchs_elu(query), pytorchs_elu(key)
    return (q @ (k.mT @ value)) / (q @ k.sum(-2)[..., None] + 1e-6)


@linear_attention.equivalent
def by_einsum(query, key, value):
    q, k = positive(query), positive(key)
    S = torch.einsum("bhkd,bhkv->bhdv", k, value)
    normalizer = torch.einsum("bhqd,bhd->bhq", q, k.sum(2))
    return torch.einsum("bhqd,bhdv->bhqv", q, S) / normalizer[..., None]


@linear_attention.equivalent
def one_key_after_the_other(query, key, value):
    q, k = positive(query), positive(key)
    S, z = 0.0, 0.0
    for j in range(k.shape[2]):
        S = S + k[:, :, j, :, None] * value[:, :, j, None, :]
        z = z + k[:, :, j]
    rows = [(q[:, :, i, None] @ S).squeeze(2) / (q[:, :, i] * z).sum(-1, keepdim=True) for i in range(q.shape[2])]
    return torch.stack(rows, dim=2)


@linear_attention.equivalent
def ones_beside_the_values(query, key, value):
    value = torch.cat([value, torch.ones_like(value[..., :1])], dim=-1)
    both = positive(query) @ (positive(key).transpose(-1, -2) @ value)
    return both[..., :-1] / both[..., -1:]


@linear_attention.equivalent
def divided_first(query, key, value):
    q, k = positive(query), positive(key)
    return q / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True) @ (k.mT @ value)


@linear_attention.equivalent
def means_instead_of_sums(query, key, value):
    q, k = positive(query), positive(key)
    S = k.mT @ value / k.shape[-2]
    return (q @ S) / (q @ k.mean(-2).unsqueeze(-1))


@linear_attention.equivalent
def head_by_head(query, key, value):
    result = query.new_empty(*query.shape[:-1], value.shape[-1])
    for b in range(query.shape[0]):
        for h in range(query.shape[1]):
            q, k = positive(query[b, h]), positive(key[b, h])
            result[b, h] = (q @ (k.T @ value[b, h])) / (q @ k.sum(0))[:, None]
    return result


linear_attention.example("fewer queries than keys", q_len=5, k_len=11, d_head=2, d_value=7, plain=True)
linear_attention.example("as many queries as keys", q_len=7, k_len=7, plain=True)
linear_attention.example("one token", q_len=1, k_len=1)
linear_attention.example("one sequence and one value", batch=1, d_value=1)
linear_attention.example("one head", heads=1)
linear_attention.example("one feature", d_head=1)


@linear_attention.probe
def _(draw):
    """keys around −5 with small features"""
    query, key, value = _attention(draw)
    return query, key - 5, value


@linear_attention.probe
def _(draw):
    """numbers in the hundreds"""
    query, key, value = _attention(draw)
    return _hundreds(query), _hundreds(key), value


linear_attention.example("150 tokens", batch=1, heads=1, q_len=150, k_len=150, d_head=2, d_value=1)


@linear_attention.property
def _(function, query, key, value):
    """Values that are all one stay one: the weights of each query sum to one."""
    return _is_one(function(query, key, torch.ones_like(value)))


@linear_attention.property
def _(function, query, key, value):
    """No result lies outside the values: no weight is negative."""
    return _is_within(function(query, key, value), value)


@linear_attention.property
def _(function, query, key, value):
    """The keys may come in any order, as long as each keeps its value."""
    return _is_like(function(query, key.flip(-2), value.flip(-2)), function(query, key, value))


def _is_one(result):
    return _is_like(result, torch.ones_like(result))


def _is_within(result, value):
    room = 1e-4 * float(value.abs().max())
    return bool(result.min() >= value.min() - room and result.max() <= value.max() + room)


def _is_like(result, other):
    return torch.allclose(result, other, rtol=1e-3, atol=1e-4)


# Wrong sums. A query comes as its features, as keys do.


def mean_of_products(q, k, value):
    """Above the line you take a mean over the keys, and below it a sum. The result is too small by the number of keys:
    values that are all one come out as 1/k_len. Take the sum in both, or the mean in both."""
    return sum_of_values(q, k, value) / k.shape[-2]


def mean_of_keys(q, k):
    """Below the line you take the mean of the keys' features, and above it a sum over the keys. The result is too large
    by the number of keys: values that are all one come out as k_len. Take the sum in both, or the mean in both."""
    return sum_of_weights(q, k) / k.shape[-2]


def keys_alone(q, k):
    """You divide by the sum of all features of all keys, and the query's features have no part in it. So the weights of
    a query do not sum to one: what a query finds by multiplying its own features into `S`, it must also find in `z`.
    What is multiplied with `z`?"""
    return k.sum((-2, -1), keepdim=True)


def queries_alone(q, k):
    """You divide by the sum of the query's own features. The keys have no part in it, so that the weights do not sum to
    one and grow with the number of keys. The normalizer is what the query would get if all values were one. Which sum
    is that?"""
    return q.sum(-1, keepdim=True)


def one_normalizer_for_all(q, k):
    """You divide by one number for all queries of a head: the sum of the whole table of weights. The results of all
    queries then add up to one mean, and each by itself is too small. Every query needs its own normalizer: which axis
    was summed that should have stayed?"""
    return sum_of_weights(q, k).sum(-2, keepdim=True)


# Wrong output


def no_normalizer(numerator, normalizer):
    """You never divide: these are sums of values, not means, and they grow with the number of keys. Values that are all
    one should stay one. Which second sum, `z`, does each query read besides `S`?"""
    return numerator


def softmax_of_the_result(numerator, normalizer):
    """You take a softmax over the features of the result. It makes each result sum to one over `d_value`, where the
    weights should sum to one over the keys. There is no softmax in linear attention: what takes its place is a
    division. By what?"""
    return numerator.softmax(-1)


def _with_other_maps(exercise):
    """Add what comes of maps that are positive or nearly so: rarer than the others, and not told in pairs."""

    def with_map(feature_map):
        @wraps(feature_map)
        def whole(*arguments):
            return exercise.reference(*arguments, features=feature_map)

        return whole

    for feature_map in (relu_alone, one_below_zero, exponential_everywhere, softplus):
        exercise.mistake(with_map(feature_map))


# Wrong as a whole, whether later keys are hidden or not


def _with_other_similarities(exercise, hidden):
    """Add the mistakes in what is compared, or in what makes weights of it. ``hidden`` puts −∞ where no key is seen."""

    @exercise.mistake
    def only_the_query_mapped(query, key, value):
        """The queries become features, and the keys go in as they are. Keys have negative numbers, so weights come out
        negative, and a normalizer close to zero makes results fly far off. The similarity is φ(query) · φ(key): check
        what each name holds at the point where it is used."""
        return exercise.reference(query, key, value, features=lambda x: positive(x) if x is query else x)

    @exercise.mistake
    def only_the_keys_mapped(query, key, value):
        """The keys become features, and the queries go in as they are. Queries have negative numbers, so weights come
        out negative, and a normalizer close to zero makes results fly far off. The similarity is φ(query) · φ(key):
        check what each name holds at the point where it is used."""
        return exercise.reference(query, key, value, features=lambda x: positive(x) if x is key else x)

    @exercise.mistake
    def scaled_query(query, key, value):
        """You divide the queries by √d_head before the feature map, as softmax attention does. There it tames the
        exponential; here a factor cancels in the quotient, and inside the map it bends the features. Leave the scale
        out: what does the formula of φ get?"""
        return exercise.reference(query / query.shape[-1] ** 0.5, key, value)

    @exercise.mistake
    def scaled_query_and_keys(query, key, value):
        """You divide queries and keys by √d_head before the feature map. The scale belongs to softmax attention; here a
        factor cancels in the quotient, and inside the map it bends the features. What does the formula of φ get?"""
        root = query.shape[-1] ** 0.5
        return exercise.reference(query / root, key / root, value)

    @exercise.mistake
    def values_mapped_too(query, key, value):
        """The values go through the feature map as well. It makes weights of queries and keys; a value is what is
        carried, and must arrive as it is, negative numbers included. Which two of the three get a φ in the formula?"""
        return exercise.reference(query, key, positive(value))

    @exercise.mistake
    def map_after_the_product(query, key, value):
        """You apply the map to the dot products of queries and keys. That is an attention with positive weights, but
        with another similarity, which does not factor: it needs every pair, and no state can hold it. What does φ act
        on, in φ(query) · φ(key)?"""
        weights = positive(query @ key.mT).masked_fill(hidden(query @ key.mT).isinf(), 0.0)
        return weights @ value / weights.sum(-1, keepdim=True)

    @exercise.mistake
    def softmax_attention(query, key, value):
        """This is softmax attention, with its scale. Linear attention is not a faster way to the same numbers: it has
        different weights, φ(query) · φ(key) divided by their sum. Where do the features come in?"""
        return hidden(query @ key.mT / query.shape[-1] ** 0.5).softmax(-1) @ value

    @exercise.mistake
    def softmax_of_similarities(query, key, value):
        """You take a softmax of the similarities φ(query) · φ(key). They are the weights already, up to a factor for
        each query, and the exponential changes them. What do you divide weights by, so that they sum to one?"""
        return hidden(positive(query) @ positive(key).mT).softmax(-1) @ value

    @exercise.mistake
    def scaled_softmax_of_similarities(query, key, value):
        """You take a softmax of the similarities φ(query) · φ(key), divided by √d_head. They are the weights already,
        up to a factor for each query; exponential and root belong to the other form. What do you divide weights by, so
        that they sum to one?"""
        return hidden(positive(query) @ positive(key).mT / query.shape[-1] ** 0.5).softmax(-1) @ value

    @exercise.mistake
    def multiplied_by_the_normalizer(query, key, value):
        """You multiply by the normalizer, where you should divide by it. Values that are all one come out as the square
        of the normalizer, and grow with the square of the number of keys. Is a reciprocal missing, or taken twice?"""
        return exercise.reference(query, key, value, output=lambda numerator, normalizer: numerator * normalizer)


def _hidden(scores):
    is_later = torch.ones(scores.shape[-2:], device=scores.device).triu(1).bool()
    return scores.masked_fill(is_later, -torch.inf)


_with_other_maps(linear_attention)
_with_other_similarities(linear_attention, hidden=lambda scores: scores)
for _mistake in (elu_alone, no_map):
    linear_attention.mistake(part="features")(_mistake)
for _mistake in (mean_of_keys, keys_alone, queries_alone, one_normalizer_for_all):
    linear_attention.mistake(part="normalizer")(_mistake)
for _mistake in (no_normalizer, softmax_of_the_result):
    linear_attention.mistake(part="output")(_mistake)
linear_attention.mistake(part="numerator")(mean_of_products)


@linear_attention.mistake
def features_meet_keys(query, key, value):
    """In one of your products the features of one side meet the keys of the other, `d_head` against `k_len`. It raises;
    with as many keys as features it would be wrong in silence. Either `key` goes into its product untransposed, or `z`
    was summed over the features, so that it still counts keys. Both sums run over the keys: which axis is left?"""
    return query @ (key @ value)


@linear_attention.mistake
def features_meet_values(query, key, value):
    """In one of your products the features of a query or key, `d_head`, meet those of a value, `d_value`, which have
    nothing to do with each other. It raises; with equal sizes it would be wrong in silence. Most often `S` has its axes
    in the order (d_value, d_head): which of the two must the query's features find?"""
    return query @ (value.mT @ key)


@linear_attention.mistake
def divided_by_length(query, key, value):
    """You divide by the number of keys, and not by the sum of the weights. Results then do not grow with the length,
    but they are no means: the weights of a query sum to whatever its similarities happen to be on average. What does a
    query find in `z`?"""
    return sum_of_values(positive(query), positive(key), value) / key.shape[-2]


@linear_attention.mistake
def divided_by_root_of_d(query, key, value):
    """You divide by √d_head, and by nothing else. The root belongs to softmax attention, where it keeps scores from
    growing. Here the weights are the similarities themselves, and to sum to one they need a normalizer: another number
    for each query."""
    return sum_of_values(positive(query), positive(key), value) / query.shape[-1] ** 0.5


@linear_attention.mistake
def each_pair_compared(query, key, value):
    """The numbers are right, at the old cost: each query is compared with each key, one by one or in a table of q_len ×
    k_len similarities, which is what this form is there to avoid. Three matrices are multiplied: with which two do you
    begin, and how large is what they make?"""
    weights = positive(query) @ positive(key).mT
    return weights @ value / weights.sum(-1, keepdim=True)


@linear_attention.mistake
def row_by_row(query, key, value):
    """The numbers are right, at the old cost: for each query you compute its similarity to every key. No table is kept,
    but as many similarities are computed as it has. What do you do for each query that is the same for all of them, and
    could be done once?"""
    q, k = positive(query), positive(key)
    rows = []
    for i in range(q.shape[2]):
        weights = (k @ q[:, :, i, :, None]).squeeze(-1)
        rows.append((weights[:, :, None] @ value).squeeze(2) / weights.sum(-1, keepdim=True))
    return torch.stack(rows, dim=2)


@linear_attention.mistake
def normalized_over_queries(query, key, value):
    """Your weights sum to one over the queries, and should over the keys. A key then shares itself out among the
    queries, and values that are all one do not stay one. Whose features are summed in `z`?"""
    q, k = positive(query), positive(key)
    return q @ ((k / (k @ q.sum(-2).unsqueeze(-1))).mT @ value)


@linear_attention.mistake
def features_normalized(query, key, value):
    """You divide the features themselves: each feature of the keys by its sum over the keys, and each query's by their
    sum. The weights of a query do sum to one, but they are different weights: a rare feature counts as much as a common
    one. The similarities are divided by their sum, after the features have met."""
    q, k = positive(query), positive(key)
    return q / q.sum(-1, keepdim=True) @ ((k / k.sum(-2, keepdim=True)).mT @ value)


# Chapter 8.4: the causal form


def _sequence(draw, batch=2, heads=3, seq=7, d_head=5, d_value=4):
    return draw(batch, heads, seq, d_head), draw(batch, heads, seq, d_head), draw(batch, heads, seq, d_value)


def values_so_far(q, k, value):
    S = (k.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(-3)  # (batch, heads, seq, d_head, d_value)
    return (q.unsqueeze(-2) @ S).squeeze(-2)


def weights_so_far(q, k):
    return (q * k.cumsum(-2)).sum(-1, keepdim=True)


@exercise(
    inputs=_sequence,
    axes={
        "query": "batch heads seq d_head",
        "key": "batch heads seq d_head",
        "value": "batch heads seq d_value",
        "return": "batch heads seq d_value",
    },
    hints=(
        "Query 0 sees one key, query 1 sees two. What are `S` and `z` for each of them, and what must be added to get "
        "from one to the next?",
        "Both sums run over the keys up to the query's own place, that one included. A loop over the places does it. "
        "So does `cumsum` along `seq`, or, for short sequences, the table of weights with the entries of later keys "
        "set to zero. Numerator and normalizer must see the same keys.",
        "`S, z = 0, 0`, then for each place i: `S = S + …`, `z = z + …`, and the result `(q_i.unsqueeze(…) @ "
        "S).squeeze(…) / …`. At the end, "
        "`torch.stack(results, dim=…)`.",
    ),
)
def causal_linear_attention(
    query, key, value, *, features=positive, numerator=values_so_far, normalizer=weights_so_far, output=mean
):
    """Return, for each query, the mean of the values up to its own place, weighted by φ(query) · φ(key).

    query, key (batch, heads, seq, d_head), value (batch, heads, seq, d_value). Returns (batch, heads, seq, d_value).
    """
    q, k = features(query), features(key)
    return output(numerator(q, k, value), normalizer(q, k))


@causal_linear_attention.equivalent
def by_a_table(query, key, value):
    weights = (positive(query) @ positive(key).mT).tril()
    return weights @ value / weights.sum(-1, keepdim=True)


@causal_linear_attention.equivalent
def by_a_mask(query, key, value):
    seq = query.shape[2]
    mask = torch.ones(seq, seq, device=query.device).triu(1).bool()
    weights = torch.einsum("bhqd,bhkd->bhqk", positive(query), positive(key)).masked_fill(mask, 0)
    return torch.einsum("bhqk,bhkv->bhqv", weights / weights.sum(-1, keepdim=True), value)


@causal_linear_attention.equivalent
def by_a_loop(query, key, value):
    q, k = positive(query), positive(key)
    S = q.new_zeros(*q.shape[:2], q.shape[-1], value.shape[-1])
    z = q.new_zeros(*q.shape[:2], q.shape[-1])
    results = []
    for i in range(q.shape[2]):
        S = S + k[:, :, i, :, None] * value[:, :, i, None]
        z = z + k[:, :, i]
        results.append(torch.einsum("bhd,bhdv->bhv", q[:, :, i], S) / (q[:, :, i] * z).sum(-1, keepdim=True))
    return torch.stack(results, dim=2)


@causal_linear_attention.equivalent
def by_prefixes(query, key, value):
    ends = range(1, query.shape[2] + 1)
    return torch.cat(
        [linear_attention.reference(query[:, :, i - 1 : i], key[:, :, :i], value[:, :, :i]) for i in ends], dim=2
    )


@causal_linear_attention.equivalent
def by_chunks(query, key, value, chunk_size=4):
    S, z, results = 0, 0, []
    for q, k, v in zip(*(x.split(chunk_size, dim=2) for x in (positive(query), positive(key), value))):
        weights = (q @ k.mT).tril()
        before = (q @ S, q @ z) if torch.is_tensor(S) else (0, 0)
        results.append((weights @ v + before[0]) / (weights.sum(-1, keepdim=True) + before[1]))
        S, z = S + k.mT @ v, z + k.sum(2).unsqueeze(-1)
    return torch.cat(results, dim=2)


causal_linear_attention.example("one token", seq=1)
causal_linear_attention.example("one sequence and one value", batch=1, d_value=1)
causal_linear_attention.example("one head", heads=1)


@causal_linear_attention.probe
def _(draw):
    """262 tokens with one huge key late in the second sequence"""
    query, key, value = _sequence(draw, batch=2, heads=1, seq=262, d_head=3, d_value=2)
    key[1, :, 259], value[1, :, 259] = 1e12, 1.0
    return query, key, value


@causal_linear_attention.probe
def _(draw):
    """keys around −5 with small features"""
    query, key, value = _sequence(draw)
    return query, key - 5, value


@causal_linear_attention.probe
def _(draw):
    """numbers in the hundreds"""
    query, key, value = _sequence(draw)
    return _hundreds(query), _hundreds(key), value


@causal_linear_attention.property
def _(function, query, key, value):
    """What stands at later tokens changes nothing at earlier ones."""
    late = max(1, query.shape[-2] - 3)
    changed = []
    for x in (query, key, value):
        x = x.clone()
        x[..., late:, :] = 3.0
        changed.append(x)
    return _is_like(function(*changed)[..., :late, :], function(query, key, value)[..., :late, :])


@causal_linear_attention.property
def _(function, query, key, value):
    """Values that are all one stay one: the weights of each query sum to one."""
    return _is_one(function(query, key, torch.ones_like(value)))


@causal_linear_attention.property
def _(function, query, key, value):
    """The first token, which sees itself alone, gets its own value."""
    return _is_like(function(query, key, value)[..., 0, :], value[..., 0, :])


@causal_linear_attention.property
def _(function, query, key, value):
    """The last token sees all keys: it gets what linear attention that is not causal gives it."""
    return _is_like(function(query, key, value)[..., -1, :], linear_attention.reference(query, key, value)[..., -1, :])


# Wrong sums over the places


def future_in_the_numerator(q, k, value):
    """Above the line, every query reads the sum over all keys, later ones too; below the line it reads those up to its
    own place. So later tokens leak into earlier results, and the weights sum to more than one. Which of the two sums
    must still stop at the query's place?"""
    return sum_of_values(q, k, value)


def future_in_the_normalizer(q, k):
    """You divide by the sum over all keys, while the values are summed up to the query's place. The weights of early
    tokens then sum to much less than one: token 0 gets a fraction of its own value. This is also what comes of
    normalizing a table before its later part is set to zero. Which keys may the normalizer see?"""
    return sum_of_weights(q, k)


def one_too_few_in_the_numerator(q, k, value):
    """The values are summed up to the token before, and the normalizer up to the token itself. Token 0 gets zeros, and
    every other misses its own value. In which order do you update the sum and read it?"""
    return values_so_far(q, k, value) - (q * k).sum(-1, keepdim=True) * value


def one_too_few_in_the_normalizer(q, k):
    """The normalizer is summed up to the token before, and the values up to the token itself. Token 0 is divided by
    zero, and every later weight comes out too large. In which order do you update the sum and read it?"""
    return weights_so_far(q, k) - (q * k).sum(-1, keepdim=True)


def summed_over_features(q, k, value):
    """Your running sum over the products of keys and values runs along the features, not along the tokens: the axis
    counted from the end is another once a product has both `d_head` and `d_value`. So tokens never meet. Which axis of
    the product counts the tokens?"""
    S = (k.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(-2)
    return (q.unsqueeze(-2) @ S).squeeze(-2)


def own_value_alone(q, k, value):
    """Above the line there is only the token's own key and value; below it, all keys so far. The sum of key times value
    starts anew at each place, or is overwritten instead of added to. Token 0 is right, and all others fall short. What
    happens to `S` from one token to the next?"""
    return (q * k).sum(-1, keepdim=True) * value


def own_key_alone(q, k):
    """Below the line there is only the token's own key; above it, all so far. Token 0 is right, and the results of the
    others grow with their place. What happens to `z` from one token to the next?"""
    return (q * k).sum(-1, keepdim=True)


def keys_so_far_alone(q, k):
    """You divide by the sum of all features of the keys so far, and the query's features have no part in it. So the
    weights of a query do not sum to one: what a query finds by multiplying its own features into `S`, it must also find
    in `z`. What is multiplied with `z`?"""
    return k.cumsum(-2).sum(-1, keepdim=True)


def mean_of_keys_so_far(q, k):
    """Below the line you take the mean of the keys so far, above it a sum. The result of each token is too large by its
    place: twice for the second, three times for the third. Take the sum in both, or the mean in both."""
    return weights_so_far(q, k) / torch.arange(1, k.shape[-2] + 1).unsqueeze(-1).to(k)


for _mistake in (elu_alone, no_map):
    causal_linear_attention.mistake(part="features")(_mistake)
for _mistake in (future_in_the_numerator, one_too_few_in_the_numerator, summed_over_features, own_value_alone):
    causal_linear_attention.mistake(part="numerator")(_mistake)
for _mistake in (
    future_in_the_normalizer,
    one_too_few_in_the_normalizer,
    own_key_alone,
    keys_so_far_alone,
    mean_of_keys_so_far,
):
    causal_linear_attention.mistake(part="normalizer")(_mistake)
for _mistake in (no_normalizer,):
    causal_linear_attention.mistake(part="output")(_mistake)


_with_other_maps(causal_linear_attention)
_with_other_similarities(causal_linear_attention, hidden=_hidden)


def _by_table(query, key, value, mask):
    weights = mask(positive(query) @ positive(key).mT)
    return weights @ value / weights.sum(-1, keepdim=True)


@causal_linear_attention.mistake
def sees_the_future(query, key, value):
    """Every query reads the sums over all keys, later ones too: this is linear attention that is not causal, or a chunk
    in which nothing is hidden. No shape tells, and the last token is even right. A model trained so looks at the word
    it should guess. Where do the sums stop for query 0?"""
    return linear_attention.reference(query, key, value)


@causal_linear_attention.mistake
def sees_only_what_follows(query, key, value):
    """Each query sees the keys from its own place on, and none before: the first token sees all, and the last itself
    alone. The wrong half of the table is set to zero, or the running sum runs backwards. Which corner of a table
    (q_len, k_len) holds the later keys?"""
    return _by_table(query, key, value, torch.triu)


@causal_linear_attention.mistake
def sees_only_later_keys(query, key, value):
    """Each query sees the keys after its own place, and neither itself nor those before; the last, which has none, gets
    NaN. The mask is the wrong way round: `masked_fill` writes where its mask is `True`, and in this course `True` means
    that a key may be seen. Is a `~` missing?"""
    return _by_table(query, key, value, lambda weights: weights.triu(1))


@causal_linear_attention.mistake
def sees_one_ahead(query, key, value):
    """Each query sees one key too many: the one after its own place. A diagonal was counted wrongly, or the sum runs
    one place too far. Token 0 should get its own value, unmixed. How many keys does it see?"""
    return _by_table(query, key, value, lambda weights: weights.tril(1))


@causal_linear_attention.mistake
def summed_over_heads(query, key, value):
    """Your running sums run along axis 1, which counts the heads: head 1 reads head 0 as well, and tokens never meet.
    Which axis counts the tokens in (batch, heads, seq, d_head)?"""
    q, k = positive(query), positive(key)
    S = (k.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(1)
    return (q.unsqueeze(-2) @ S).squeeze(-2) / (q * k.cumsum(1)).sum(-1, keepdim=True)


@causal_linear_attention.mistake
def misses_itself(query, key, value):
    """No token sees itself: each gets the mean over those before it, and the first, which has none, gets 0/0, which is
    NaN. You read the sums before you add the token, or the diagonal of the table is hidden as well. In which order do
    you update the state and read it?"""
    return _by_table(query, key, value, lambda weights: weights.tril(-1))


@causal_linear_attention.mistake
def misses_itself_and_starts_at_zero(query, key, value):
    """No token sees itself: each gets the mean over those before it, and the first, which has none, gets zeros. You
    read the sums before you add the token, or the diagonal of the table is hidden as well, and something turns the
    first 0/0 into 0. In which order do you update the state and read it?"""
    return misses_itself(query, key, value).nan_to_num()


@causal_linear_attention.mistake
def minus_infinity(query, key, value):
    """You hide later keys with −∞, as before a softmax. Here no exponential follows that would make zero of it: −∞ goes
    into the sums, and all results but the last token's are NaN. What must the weight of a hidden key be, when the
    weights are the similarities themselves?"""
    return _by_table(query, key, value, _hidden)


@causal_linear_attention.mistake
def large_negative_number(query, key, value):
    """You hide later keys with a large negative number such as −1e9, as before a softmax. Here no exponential follows
    that would make zero of it: the hidden keys outweigh all others, with weights that are nearly equal. What must the
    weight of a hidden key be, when the weights are the similarities themselves?"""
    return _by_table(query, key, value, lambda weights: _hidden(weights).clamp(min=-1e9))


@causal_linear_attention.mistake
def softmax_of_hidden_zeros(query, key, value):
    """You set the similarities of later keys to zero and take a softmax. exp(0) is 1: later keys still get weight. And
    the similarities are the weights already, up to a factor for each query. What do you divide them by, so that they
    sum to one?"""
    return (positive(query) @ positive(key).mT).tril().softmax(-1) @ value


@causal_linear_attention.mistake
def divided_by_place(query, key, value):
    """You divide by how many keys there are so far, and not by the sum of their weights. Results then do not grow along
    the sequence, but they are no means: token 0 does not get its own value. What does a query find in `z`?"""
    places = torch.arange(1, query.shape[-2] + 1).unsqueeze(-1)
    return values_so_far(positive(query), positive(key), value) / places.to(query)


@causal_linear_attention.mistake
def state_overwritten(query, key, value):
    """Every token gets its own value back, unchanged. That is what is left when the state is overwritten at each token,
    in place of being added to: the only weight is then one. What happens to `S` and `z` from one token to the next?"""
    return value.clone()


@causal_linear_attention.mistake
def total_less_what_follows(query, key, value):
    """You take a sum that holds later keys as well, and subtract them again. On paper that is right, and with ordinary
    numbers too. But when a later key is huge, the sum keeps none of the digits of the small ones, and what is left
    after the subtraction is zero. Add up from the front: what has not been added need not be taken away."""
    q, k = positive(query), positive(key)
    products = k.unsqueeze(-1) * value.unsqueeze(-2)
    S = products.sum(-3, keepdim=True) - (products.flip(-3).cumsum(-3).flip(-3) - products)
    z = k.sum(-2, keepdim=True) - (k.flip(-2).cumsum(-2).flip(-2) - k)
    return (q.unsqueeze(-2) @ S).squeeze(-2) / (q * z).sum(-1, keepdim=True)


# Chapter 8.4: one token


def _token(draw, batch=2, heads=3, d_head=5, d_value=4):
    earlier_keys, earlier_values = positive(draw(batch, heads, 6, d_head)), draw(batch, heads, 6, d_value)
    state = earlier_keys.mT @ earlier_values, earlier_keys.sum(-2)
    return state, draw(batch, heads, d_head), draw(batch, heads, d_head), draw(batch, heads, d_value)


def _nothing_yet(arguments):
    (S, z), query, key, value = arguments
    return (torch.zeros_like(S), torch.zeros_like(z)), query, key, value


def one_product_more(S, k, value):
    return S + k.unsqueeze(-1) * value.unsqueeze(-2)


def one_key_more(z, k):
    return z + k


def read(q, S, z):
    return (q.unsqueeze(-2) @ S).squeeze(-2) / (q * z).sum(-1, keepdim=True)


@exercise(
    inputs=_token,
    axes={
        "query": "batch heads d_head",
        "key": "batch heads d_head",
        "value": "batch heads d_value",
        "return": "batch heads d_head d_value, batch heads d_head, batch heads d_value",
    },
    hints=(
        "A token sees itself. So which comes first: the sums take the token in, or the query reads them?",
        "`S` grows by the outer product of φ(key) and value, one table (d_head, d_value) in each head: two new axes of "
        "size 1 make it. `z` grows by φ(key). Make new tensors: `+=` would change the state of whoever called.",
        "`S, z = state`, then `S = S + k.unsqueeze(…) * value.unsqueeze(…)`, `z = z + …`, "
        "`output = (q.unsqueeze(…) @ S).squeeze(…) / …` and `return (S, z), output`",
    ),
)
def recurrent_step(
    state, query, key, value, *, features=positive, new_S=one_product_more, new_z=one_key_more, output=read
):
    """Take one token into the state and read it: one step of causal linear attention.

    state: S (batch, heads, d_head, d_value) and z (batch, heads, d_head), query and key (batch, heads, d_head),
    value (batch, heads, d_value). Returns ((S, z), output), with output (batch, heads, d_value).
    """
    S, z = state
    q, k = features(query), features(key)
    S, z = new_S(S, k, value), new_z(z, k)
    return (S, z), output(q, S, z)


@recurrent_step.equivalent
def step_by_einsum(state, query, key, value):
    q, k = positive(query), positive(key)
    S = state[0] + torch.einsum("bhd,bhv->bhdv", k, value)
    z = state[1] + k
    return (S, z), torch.einsum("bhd,bhdv->bhv", q, S) / torch.einsum("bhd,bhd->bh", q, z)[..., None]


@recurrent_step.equivalent
def step_in_place_on_a_copy(state, query, key, value):
    S, z = (x.clone() for x in state)
    k = F.relu(key) + torch.exp(-F.relu(-key))
    S += k[..., :, None] * value[..., None, :]
    z += k
    weighted = positive(query)[..., None] * S
    return [S, z], weighted.sum(-2) / (positive(query) * z).sum(-1)[..., None]


@recurrent_step.equivalent
def step_with_matrices(state, query, key, value):
    q, k = positive(query).unsqueeze(-2), positive(key).unsqueeze(-2)
    S = state[0] + k.transpose(-1, -2) @ value.unsqueeze(-2)
    z = state[1] + k.squeeze(-2)
    return (S, z), (q @ S / (q @ z.unsqueeze(-1))).squeeze(-2)


@recurrent_step.equivalent
def old_and_new_apart(state, query, key, value):
    S, z = state
    q, k = positive(query), positive(key)
    own = (q * k).sum(-1, keepdim=True)
    numerator = (S * q.unsqueeze(-1)).sum(-2) + own * value
    normalizer = (q * z).sum(-1, keepdim=True) + own
    return (S + k.unsqueeze(-1) * value.unsqueeze(-2), k + z), numerator / normalizer


@recurrent_step.probe
def _(draw):
    """the first token with a state of zeros"""
    return _nothing_yet(_token(draw))


@recurrent_step.probe
def _(draw):
    """the first token with a key around −5"""
    state, query, key, value = _nothing_yet(_token(draw))
    return state, query, key - 5, value


recurrent_step.example("one sequence and one value", batch=1, d_value=1)
recurrent_step.example("one head", heads=1)
recurrent_step.example("one feature", d_head=1)


@recurrent_step.probe
def _(draw):
    """numbers in the hundreds"""
    state, query, key, value = _token(draw)
    return state, _hundreds(query), _hundreds(key), value


@recurrent_step.property
def _(function, *arguments):
    """The first token, whose state is zero, gets its own value."""
    return _is_like(function(*_nothing_yet(arguments))[1], arguments[-1])


@recurrent_step.property
def _(function, state, query, key, value):
    """The query reads the state and leaves no trace in it."""
    ((S, z), _), ((other_S, other_z), _) = (function(state, q, key, value) for q in (query, 1 - query))
    return torch.equal(S, other_S) and torch.equal(z, other_z)


@recurrent_step.property
def _(function, state, query, key, value):
    """What is added to the state does not depend on what it holds."""
    (S, z), _ = function(state, query, key, value)
    (only_S, only_z), _ = function(*_nothing_yet((state, query, key, value)))
    return _is_like(S - state[0], only_S) and _is_like(z - state[1], only_z)


@recurrent_step.property
def _(function, state, query, key, value):
    """Token after token, from zeros on, it gives what causal linear attention gives the whole sequence."""
    state, results = _nothing_yet((state, query, key, value))[0], []
    q, k, v = (torch.stack([x, x.flip(-1), -x], dim=2) for x in (query, key, value))
    for token in zip(q.unbind(2), k.unbind(2), v.unbind(2)):
        state, output = function(state, *token)
        results.append(output)
    return _is_like(torch.stack(results, dim=2), causal_linear_attention.reference(q, k, v))


def key_not_added_to_S(S, k, value):
    """Every feature of `S` gets the whole value, whatever the key is: `S` takes in the value without the key's
    features. Then all keys look the same to a query. What is the outer product made of?"""
    return S + value.unsqueeze(-2)


def S_left_as_it_was(S, k, value):
    """`z` takes the token in, and `S` does not: its value is lost, and it makes the values of the others smaller. Is
    the new `S` computed and not kept, or does the output read the old one?"""
    return S + 0


def S_overwritten(S, k, value):
    """`S` holds the last token alone: it is replaced by φ(key) valueᵀ, where that should be added to it. All values
    before are forgotten, and `z` still counts their keys. What happens to the old `S`?"""
    return k.unsqueeze(-1) * value.unsqueeze(-2)


def z_left_as_it_was(z, k):
    """`S` takes the token in, and `z` does not. The weights sum to more than one, and the first token of all is divided
    by zero. Is the new `z` computed and not kept, or does the output read the old one?"""
    return z + 0


def z_overwritten(z, k):
    """`z` holds the last token's key alone: it is replaced by φ(key), where that should be added to it. `S` holds all
    tokens, so that results grow with every step. What happens to the old `z`?"""
    return k + 0


def tokens_counted(z, k):
    """`z` grows by one with each token, and not by the token's features: it counts tokens. The query would read the
    same from every key, and the weights do not sum to one. `S` adds φ(key) times the value. What is left of that if
    every value is one? That is what `z` adds."""
    return z + 1


def not_divided(q, S, z):
    """You never divide: the output is a sum of values, not a mean, and it grows with every token. The first token of
    all does not get its own value back. What does the query read besides `S`?"""
    return (q.unsqueeze(-2) @ S).squeeze(-2)


def divided_by_keys_alone(q, S, z):
    """You divide by the sum of `z` over its features, and the query's features have no part in it. So the weights do
    not sum to one: what a query finds by multiplying its features into `S`, it must also find in `z`."""
    return not_divided(q, S, z) / z.sum(-1, keepdim=True)


def divided_feature_by_feature(q, S, z):
    """You divide `S` by `z` feature by feature, and the query reads the quotients. Each feature then counts alike,
    however little of it the keys have. The query must read both sums first: one division of two numbers for each value,
    at the end."""
    return (q.unsqueeze(-2) @ (S / z.unsqueeze(-1))).squeeze(-2) / q.sum(-1, keepdim=True)


for _mistake in (elu_alone, no_map):
    recurrent_step.mistake(part="features")(_mistake)
_with_other_maps(recurrent_step)
for _mistake in (key_not_added_to_S, S_left_as_it_was, S_overwritten):
    recurrent_step.mistake(part="new_S")(_mistake)
for _mistake in (z_left_as_it_was, z_overwritten, tokens_counted):
    recurrent_step.mistake(part="new_z")(_mistake)
for _mistake in (not_divided, divided_by_keys_alone, divided_feature_by_feature):
    recurrent_step.mistake(part="output")(_mistake)


def _read_before(state, query, key, value, S, z):
    """The state as it should be, and an output that was read from another."""
    after, _ = recurrent_step.reference(state, query, key, value)
    return after, read(positive(query), S if S is not None else after[0], z if z is not None else after[1])


@recurrent_step.mistake
def read_before_the_token(state, query, key, value):
    """The state you return is right, and the output was read from the old one: the token misses itself. The first token
    of all reads zeros, 0/0, which is NaN. In which order do you update and read?"""
    return _read_before(state, query, key, value, *state)


@recurrent_step.mistake
def S_read_before_the_token(state, query, key, value):
    """The state you return is right, and the output divides the old `S` by the new `z`: between the two updates it is
    too early to read. The first token of all gets zeros. Which `S` does the numerator use?"""
    return _read_before(state, query, key, value, state[0], None)


@recurrent_step.mistake
def z_read_before_the_token(state, query, key, value):
    """The state you return is right, and the output divides the new `S` by the old `z`: between the two updates it is
    too early to read. The first token of all is divided by zero. Which `z` does the normalizer use?"""
    return _read_before(state, query, key, value, None, state[1])


@recurrent_step.mistake
def old_state_returned(state, query, key, value):
    """The output is right, and the state you return is the one that came in. Nobody then remembers this token: every
    later step begins where this one began. Which `S` and `z` does the `return` name?"""
    return tuple(x.clone() for x in state), recurrent_step.reference(state, query, key, value)[1]


@recurrent_step.mistake
def nothing_remembered(state, query, key, value):
    """Both `S` and `z` are replaced by what the token brings. The output is the token's own value then, whatever came
    before. The state is a sum over all tokens so far: what happens to the one that comes in?"""
    return recurrent_step.reference(*_nothing_yet((state, query, key, value)))


@recurrent_step.mistake
def state_changed(state, query, key, value):
    """The numbers are right, and the state that came in has changed as well: `+=` and names that end in an underscore
    write into the tensor that the caller still holds. Two continuations of one text, begun from one state, then spoil
    each other. How do you write the sum so that a new tensor is made?"""
    (S, z), output = recurrent_step.reference(state, query, key, value)
    return (state[0].copy_(S), state[1].copy_(z)), output


@recurrent_step.mistake
def output_first(state, query, key, value):
    """You return the output first and the state second. It is the other way round: (state, output), so that a loop can
    write `state, output = recurrent_step(state, …)`. What does your `return` say?"""
    return recurrent_step.reference(state, query, key, value)[::-1]


@recurrent_step.mistake
def three_in_a_row(state, query, key, value):
    """You return three things, S, z and the output. It must be two, of which the first is itself a pair: ((S, z),
    output). Whoever calls passes the state on to the next step in one piece. What is missing in your `return`?"""
    (S, z), output = recurrent_step.reference(state, query, key, value)
    return S, z, output


@recurrent_step.mistake
def z_before_S(state, query, key, value):
    """The two parts of the state you return have changed places: the next step would take `z` for `S`. It is (S, z), in
    and out. What does your `return` say?"""
    (S, z), output = recurrent_step.reference(state, query, key, value)
    return (z, S), output


@recurrent_step.mistake
def S_alone_returned(state, query, key, value):
    """The state you return is `S` alone. The next step could not divide: the normalizer of all tokens so far is in `z`.
    Return both, as they came in: ((S, z), output). Which line makes the new `z`?"""
    (S, _), output = recurrent_step.reference(state, query, key, value)
    return S, output


@recurrent_step.mistake
def output_alone(state, query, key, value):
    """You return the output alone. Without the new state the next step cannot know of this token: return both, ((S, z),
    output). What does the next call get as its `state`?"""
    return recurrent_step.reference(state, query, key, value)[1]


@recurrent_step.mistake
def means_kept(state, query, key, value):
    """The output is right, and the `S` you return has been divided by `z`. The next step adds to it as if it were a
    sum, and is wrong. Keep the two sums as they are; the division is for the output only."""
    (S, z), output = recurrent_step.reference(state, query, key, value)
    return (S / z.unsqueeze(-1), z), output


@recurrent_step.mistake
def z_of_the_bare_key(state, query, key, value):
    """`z` grows by the key as it is, `S` by the key's features. The two then count the same token differently, and
    the normalizer can become zero or negative. Which of the two names, before or after the map, stands in the line
    of `z`?"""
    return recurrent_step.reference(state, query, key, value, new_z=lambda z, k: z + key)


@recurrent_step.mistake
def S_of_the_bare_key(state, query, key, value):
    """`S` grows by the key as it is, `z` by the key's features. The two then count the same token differently. Which of
    the two names, before or after the map, stands in the line of `S`?"""
    return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: one_product_more(S, key, v))


@recurrent_step.mistake
def only_the_query_mapped(state, query, key, value):
    """The query becomes features, and the key goes into the state as it is. Keys have negative numbers, so `z` can
    become zero or negative, and results fly far off. The similarity is φ(query) · φ(key): check what each name holds at
    the point where it is used."""
    return recurrent_step.reference(state, query, key, value, features=lambda x: positive(x) if x is query else x)


@recurrent_step.mistake
def only_the_key_mapped(state, query, key, value):
    """The key becomes features, and the query reads as it is. It has negative numbers, so weights come out negative,
    and a normalizer close to zero makes results fly far off. The similarity is φ(query) · φ(key): check what each name
    holds at the point where it is used."""
    return recurrent_step.reference(state, query, key, value, features=lambda x: positive(x) if x is key else x)


@recurrent_step.mistake
def key_turned_against_value(state, query, key, value):
    """The outer product has its axes in the order (d_value, d_head) and cannot be added to `S`, which has them the
    other way round. It raises; with equal sizes it would be wrong in silence. Which of key and value must get its new
    axis at the end?"""
    return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: one_product_more(S, v, k))


# Chapter 8.4 and 8.10: padding in a sum


def _padded(draw, batch=2, heads=3, q_len=9, k_len=7, d_head=5, d_value=4):
    real = torch.tensor([max(1, k_len * (1 + number) // (batch + 1)) for number in range(batch)])
    key_mask = torch.arange(k_len) < real[:, None]
    return *_attention(draw, batch, heads, q_len, k_len, d_head, d_value), key_mask[:, None, None]


def _with_sums(query, key, value, key_mask, k=None, v=None, z=None):
    """Linear attention; ``k``, ``v`` and ``z`` are the features in S, the values, and the features in z."""
    q, real = positive(query), key_mask.mT
    k = positive(key).masked_fill(~real, 0) if k is None else k
    z = k if z is None else z
    return (q @ (k.mT @ (value if v is None else v))) / (q @ z.sum(-2).unsqueeze(-1))


@exercise(
    inputs=_padded,
    axes={
        "query": "batch heads q_len d_head",
        "key": "batch heads k_len d_head",
        "value": "batch heads k_len d_value",
        "return": "batch heads q_len d_value",
    },
    hints=(
        "What does the feature map make of the zeros that stand in the padding, and which of the two sums notices?",
        "A key must be left out of both sums, `S` and `z`. What is zero in there: the key, or its features? Print "
        "the normalizer with and without padding.",
        "`k = elu_feature_map(key).masked_fill(…, 0.0)`, with the mask's axes so that k_len stands second to last",
    ),
)
def mend_padding(query, key, value, key_mask):
    """Return linear attention that leaves padding out of both sums.

    query (batch, heads, q_len, d_head), key (batch, heads, k_len, d_head), value (batch, heads, k_len, d_value),
    key_mask (batch, 1, 1, k_len), True where the key is real. Returns (batch, heads, q_len, d_value).
    """
    return _with_sums(query, key, value, key_mask)


@mend_padding.equivalent
def features_times_mask(query, key, value, key_mask):
    return _with_sums(query, key, value, key_mask, k=positive(key) * key_mask.transpose(-1, -2))


@mend_padding.equivalent
def minus_infinity_before_the_map(query, key, value, key_mask):
    return linear_attention.reference(query, key.masked_fill(~key_mask.mT, -torch.inf), value)


@mend_padding.equivalent
def very_negative_before_the_map(query, key, value, key_mask):
    return linear_attention.reference(query, torch.where(key_mask.mT, key, -1e9), value)


@mend_padding.equivalent
def sequence_by_sequence(query, key, value, key_mask):
    rows = []
    for q, k, v, real in zip(query, key, value, key_mask[:, 0, 0]):
        rows.append(linear_attention.reference(q[None], k[None, :, real], v[None, :, real]))
    return torch.cat(rows)


@mend_padding.equivalent
def padding_counted_out_again(query, key, value, key_mask):
    real = key_mask.mT
    q, k = positive(query), positive(key.masked_fill(~real, 0))  # the features of padding are one
    z = k.sum(-2) - (~real).sum(-2)
    return (q @ (k.mT @ value.masked_fill(~real, 0))) / (q @ z.unsqueeze(-1))


@mend_padding.equivalent
def hidden_in_a_table(query, key, value, key_mask):
    weights = (positive(query) @ positive(key).mT) * key_mask
    return weights / weights.sum(-1, keepdim=True) @ value


@mend_padding.probe
def _(draw):
    """no padding"""
    *tensors, key_mask = _padded(draw)
    return *tensors, torch.ones_like(key_mask)


@mend_padding.probe
def _(draw):
    """padding in front"""
    *tensors, key_mask = _padded(draw)
    return *tensors, key_mask.flip(-1)


@mend_padding.probe
def _(draw):
    """one real key"""
    *tensors, key_mask = _padded(draw)
    return *tensors, torch.arange(key_mask.shape[-1]).expand(key_mask.shape) == 2


mend_padding.example("as many queries as keys", q_len=7)


@mend_padding.probe
def _(draw):
    """huge numbers in the padding"""
    query, key, value, key_mask = _padded(draw)
    key, value = (torch.where(key_mask.mT, x, 1e12) for x in (key, value))
    return query, key, value, key_mask


@mend_padding.property
def _(function, query, key, value, key_mask):
    """What stands in the padding changes nothing."""
    other_key, other_value = (torch.where(key_mask.mT, x, 2.0) for x in (key, value))
    return _is_like(function(query, other_key, other_value, key_mask), function(query, key, value, key_mask))


@mend_padding.property
def _(function, query, key, value, key_mask):
    """More padding changes nothing."""
    longer = [torch.cat([x, x[..., :1, :]], dim=-2) for x in (key, value)]
    longer_mask = torch.cat([key_mask, torch.zeros_like(key_mask[..., :1])], dim=-1)
    return _is_like(function(query, *longer, longer_mask), function(query, key, value, key_mask))


@mend_padding.property
def _(function, query, key, value, key_mask):
    """Values that are all one stay one: the weights of each query sum to one."""
    return _is_one(function(query, key, torch.ones_like(value), key_mask))


def _zeroed(x, key_mask):
    return x.masked_fill(~key_mask.mT, 0)


@mend_padding.mistake
def as_given(query, key, value, key_mask):
    """This is still the program as it was given. Its results shrink towards zero, the more padding there is: values
    that are all one do not stay one. So one of the two sums is right and the other still counts the padding. Print both
    for a sentence with padding and for the same one without."""
    k = positive(_zeroed(key, key_mask))
    return _with_sums(query, key, value, key_mask, k=k, v=_zeroed(value, key_mask))


@mend_padding.mistake
def zero_keys_with_values(query, key, value, key_mask):
    """The keys in the padding are set to zero before the feature map, and φ(0) is 1, not 0. So padding takes part in
    both sums as if it were a token, and its values go into the result. At which point must a key become zero, so that
    it adds nothing?"""
    return _with_sums(query, key, value, key_mask, k=positive(_zeroed(key, key_mask)))


@mend_padding.mistake
def only_the_values_hidden(query, key, value, key_mask):
    """Padding is kept out of `S`, and its keys are still counted in `z`: the weights of the real keys sum to less than
    one. The same comes of hiding padding after the division. A key that is left out must be left out of both sums:
    where does `z` get its keys from?"""
    return _with_sums(query, key, value, key_mask, z=positive(key))


@mend_padding.mistake
def only_the_normalizer_mended(query, key, value, key_mask):
    """Padding is kept out of `z`, and its keys and values still go into `S`: what stands in the padding shows in the
    result. A key that is left out must be left out of both sums. Where does `S` get its keys and values from?"""
    return _with_sums(query, key, value, key_mask, k=positive(key), z=_zeroed(positive(key), key_mask))


@mend_padding.mistake
def ones_left_in_S(query, key, value, key_mask):
    """Padding is kept out of `z`. In `S` its keys still have the features φ(0) = 1, and its values go into the result
    with them. A key that is left out must be left out of both sums, or its value must be zero in `S`. Where does `S`
    get its keys from?"""
    zeroed = positive(_zeroed(key, key_mask))
    return _with_sums(query, key, value, key_mask, k=zeroed, z=_zeroed(positive(key), key_mask))


@mend_padding.mistake
def mask_ignored(query, key, value, key_mask):
    """The mask changes nothing in the result: padding is attended to like any token, with whatever stands in it.
    `masked_fill` without the underscore returns a new tensor and leaves the old one as it is. Is its result used?"""
    return linear_attention.reference(query, key, value)


@mend_padding.mistake
def real_keys_hidden(query, key, value, key_mask):
    """The mask is the wrong way round: the padding is attended to, and the real keys are left out. `True` means that a
    key is real, and `masked_fill` writes where its mask is `True`. Without padding your result is 0/0. Is a `~`
    missing, or one too many?"""
    return _with_sums(query, key, value, key_mask, k=positive(key).masked_fill(key_mask.mT, 0))


@mend_padding.mistake
def divided_by_real_keys(query, key, value, key_mask):
    """You divide by the number of real keys. Results no longer shrink with padding, but they are no means: the weights
    of a query sum to whatever its similarities happen to be on average. The normalizer is a sum of features; which keys
    may it count?"""
    k = _zeroed(positive(key), key_mask)
    return positive(query) @ (k.mT @ value) / key_mask.sum(-1, keepdim=True)


@mend_padding.mistake
def division_dropped(query, key, value, key_mask):
    """The division is gone, and with it the shrinking. But now results are sums of values, not means, and grow with the
    number of keys. The normalizer was there for a reason: what should it have counted?"""
    return positive(query) @ (_zeroed(positive(key), key_mask).mT @ value)


@mend_padding.mistake
def very_negative_features(query, key, value, key_mask):
    """You write a large negative number such as −1e9 into the features of the padding, after the map. No exponential
    follows that would make zero of it: the padding outweighs all real keys, in both sums. Which number adds nothing to
    a sum?"""
    return _with_sums(query, key, value, key_mask, k=positive(key).masked_fill(~key_mask.mT, -1e9))


@mend_padding.mistake
def mask_times_features(query, key, value, key_mask):
    """The mask, (batch, 1, 1, k_len), is multiplied with keys or features, (batch, heads, k_len, d_head), as it is: its
    last axis counts keys, theirs counts features, and it raises. With as many features as keys it would hide features
    in silence. On which axis must the mask have its k_len?"""
    return linear_attention.reference(query, key * key_mask, value)


@mend_padding.mistake
def mask_along_the_features(query, key, value, key_mask):
    """The mask, (batch, 1, 1, k_len), meets keys or features, (batch, heads, k_len, d_head), as it is: its last axis
    counts keys, theirs counts features, and it raises. With as many features as keys it would hide features in silence.
    On which axis must the mask have its k_len?"""
    return linear_attention.reference(query, key.masked_fill(~key_mask, 0), value)


@mend_padding.mistake
def softmax_with_the_mask(query, key, value, key_mask):
    """This is softmax attention with the mask. Padding is hidden, but the weights are not those of linear attention,
    and each query meets each key again. The program was linear attention and should stay so: which of its lines needs
    mending?"""
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return scores.masked_fill(~key_mask, -torch.inf).softmax(-1) @ value
