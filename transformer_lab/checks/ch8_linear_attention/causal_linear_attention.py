"""Linear attention in which each query sees only the keys up to its own place."""

import torch
from torch.nn.functional import elu

from ..common_mistakes import cut_off, fixed_length
from ..exercise import exercise, family, with_text_of
from . import linear_attention as linear_attention_module
from .elu_feature_map import elu_alone, feature_map, no_map
from .linear_attention import (
    RARE_MAPS,
    divide_by_normalizer,
    linear_attention,
    no_normalizer,
    scale_to_hundreds,
    sum_of_values,
    sum_of_weights,
)
from .properties import is_all_ones, is_close
from .similarities import add_similarity_mistakes, hide_later_keys


def _sequence_inputs(draw, batch=2, heads=3, seq=7, d_head=5, d_value=4):
    return draw(batch, heads, seq, d_head), draw(batch, heads, seq, d_head), draw(batch, heads, seq, d_value)


def values_so_far(q, k, value):
    """Multiply each query's features by `S`, the sum of features times value up to the query's own place."""
    S = (k.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(-3)  # (batch, heads, seq, d_head, d_value)
    return (q.unsqueeze(-2) @ S).squeeze(-2)


def weights_so_far(q, k):
    """Multiply each query's features by `z`, the sum of the keys' features up to the query's own place."""
    return (q * k.cumsum(-2)).sum(-1, keepdim=True)


@exercise(
    inputs=_sequence_inputs,
    axes={
        "query": "batch heads seq d_head",
        "key": "batch heads seq d_head",
        "value": "batch heads seq d_value",
        "return": "batch heads seq d_value",
    },
    hints=(
        "Query 0 sees one key, and query 1 sees two keys. What are `S` and `z` for each of these queries, and what "
        "must you add to both sums to get from query 0 to query 1?",
        "Both sums run over the keys up to and including the query's own place. You can use a loop over the places, "
        "`cumsum` along `seq`, or, for short sequences, the table of weights with the entries of later keys set to "
        "zero. Numerator and normalizer must use the same keys.",
        "`S, z = 0, 0`, then for each place i: `S = S + …`, `z = z + …`, and the result `(q_i.unsqueeze(…) @ "
        "S).squeeze(…) / …`. At the end, `torch.stack(results, dim=…)`.",
    ),
)
def causal_linear_attention(
    query,
    key,
    value,
    *,
    features=feature_map,
    numerator=values_so_far,
    normalizer=weights_so_far,
    output=divide_by_normalizer,
):
    """Return, for each query, the mean of the values up to its own place, weighted by φ(query) · φ(key).

    query, key (batch, heads, seq, d_head), value (batch, heads, seq, d_value). Returns (batch, heads, seq, d_value).
    """
    q, k = features(query), features(key)
    return output(numerator(q, k, value), normalizer(q, k))


@causal_linear_attention.right
class RightAnswers:
    def by_a_table(query, key, value):
        weights = (feature_map(query) @ feature_map(key).mT).tril()
        return weights @ value / weights.sum(-1, keepdim=True)

    def with_a_small_number_added(query, key, value):
        weights = ((elu(query) + 1) @ (elu(key) + 1).mT).tril()
        return weights @ value / (weights.sum(-1, keepdim=True) + 1e-6)

    def by_a_mask(query, key, value):
        seq = query.shape[2]
        mask = torch.ones(seq, seq, device=query.device).triu(1).bool()
        weights = torch.einsum("bhqd,bhkd->bhqk", feature_map(query), feature_map(key)).masked_fill(mask, 0)
        return torch.einsum("bhqk,bhkv->bhqv", weights / weights.sum(-1, keepdim=True), value)

    def by_a_loop(query, key, value):
        q, k = feature_map(query), feature_map(key)
        S = q.new_zeros(*q.shape[:2], q.shape[-1], value.shape[-1])
        z = q.new_zeros(*q.shape[:2], q.shape[-1])
        results = []
        for i in range(q.shape[2]):
            S = S + k[:, :, i, :, None] * value[:, :, i, None]
            z = z + k[:, :, i]
            results.append(torch.einsum("bhd,bhdv->bhv", q[:, :, i], S) / (q[:, :, i] * z).sum(-1, keepdim=True))
        return torch.stack(results, dim=2)

    def by_prefixes(query, key, value):
        ends = range(1, query.shape[2] + 1)
        return torch.cat(
            [linear_attention.reference(query[:, :, i - 1 : i], key[:, :, :i], value[:, :, :i]) for i in ends], dim=2
        )

    def by_chunks(query, key, value, chunk_size=4):
        S, z, results = 0, 0, []
        for q, k, v in zip(*(x.split(chunk_size, dim=2) for x in (feature_map(query), feature_map(key), value))):
            weights = (q @ k.mT).tril()
            from_earlier_chunks = (q @ S, q @ z) if torch.is_tensor(S) else (0, 0)
            results.append(
                (weights @ v + from_earlier_chunks[0]) / (weights.sum(-1, keepdim=True) + from_earlier_chunks[1])
            )
            S, z = S + k.mT @ v, z + k.sum(2).unsqueeze(-1)
        return torch.cat(results, dim=2)


causal_linear_attention.example("one token", seq=1)
causal_linear_attention.example("one sequence and one value", batch=1, d_value=1)
causal_linear_attention.example("one head", heads=1)


@causal_linear_attention.probe
def one_huge_key(draw):
    """262 tokens with one huge key late in the second sequence"""
    query, key, value = _sequence_inputs(draw, batch=2, heads=1, seq=262, d_head=3, d_value=2)
    key[1, :, 259], value[1, :, 259] = 1e12, 1.0
    return query, key, value


@causal_linear_attention.probe
def keys_around_minus_4(draw):
    """keys around −4 with small features"""
    query, key, value = _sequence_inputs(draw)
    return query, key - 4, value


@causal_linear_attention.probe
def numbers_in_the_hundreds(draw):
    """numbers in the hundreds"""
    query, key, value = _sequence_inputs(draw)
    return scale_to_hundreds(query), scale_to_hundreds(key), value


@causal_linear_attention.property
def later_tokens_change_nothing(function, query, key, value):
    """Later tokens do not change the results of earlier tokens."""
    first_changed = max(1, query.shape[-2] - 3)
    changed = []
    for x in (query, key, value):
        x = x.clone()
        x[..., first_changed:, :] = 3.0
        changed.append(x)
    return is_close(function(*changed)[..., :first_changed, :], function(query, key, value)[..., :first_changed, :])


@causal_linear_attention.property
def ones_stay_ones(function, query, key, value):
    """Values that are all one stay one: the weights of each query sum to one."""
    return is_all_ones(function(query, key, torch.ones_like(value)))


@causal_linear_attention.property
def first_token_gets_its_value(function, query, key, value):
    """The first token, which sees only itself, gets its own value."""
    return is_close(function(query, key, value)[..., 0, :], value[..., 0, :])


@causal_linear_attention.property
def last_token_sees_all(function, query, key, value):
    """The last token sees all keys: its result is the same as in linear attention that is not causal."""
    return is_close(function(query, key, value)[..., -1, :], linear_attention.reference(query, key, value)[..., -1, :])


def _attend_by_table(query, key, value, mask):
    weights = mask(feature_map(query) @ feature_map(key).mT)
    return weights @ value / weights.sum(-1, keepdim=True)


def _loses_digits_to_a_later_key(probe, got, expected):
    """Whether the result is wrong only at tokens before the huge key, and only in the sentence of this key."""
    got_value, expected_value = got.value, expected.value
    if probe.name != "262 tokens with one huge key late in the second sequence":
        return False
    if not isinstance(got_value, torch.Tensor):
        return False
    if (got_value.shape, got_value.dtype) != (expected_value.shape, expected_value.dtype):
        return False
    return is_close(got_value[0], expected_value[0]) and is_close(got_value[1, :, 259:], expected_value[1, :, 259:])


def triangle_of_fixed_length(query, key, value):
    seq, triangle = query.shape[2], torch.ones(64, 64, dtype=query.dtype).tril()
    weights = feature_map(query) @ feature_map(key).mT * triangle[:seq, :seq]
    return weights @ value / weights.sum(-1, keepdim=True)


def _read_quotients(q, k, value):
    S = (k.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(-3)
    return (q.unsqueeze(-2) @ (S / k.cumsum(-2).unsqueeze(-1))).squeeze(-2)


@causal_linear_attention.wrong(stage="numerator")
class Numerator:
    # Wrong sums over the places

    def future_in_the_numerator(q, k, value):
        """In the numerator every query reads the sum over all keys, including later ones; in the normalizer it reads
        the sum up to its own place. So later tokens leak into earlier results, and the weights sum to more than one.
        Which of the two sums must still stop at the query's place?"""
        return sum_of_values(q, k, value)

    def one_too_few_in_the_numerator(q, k, value):
        """You sum the values up to the previous token, but the normalizer up to the token itself. Token 0 gets zeros,
        and every later token misses its own value. In which order do you update the sum and read it?"""
        return values_so_far(q, k, value) - (q * k).sum(-1, keepdim=True) * value

    def summed_over_features(q, k, value):
        """Your running sum over the products of keys and values runs along the features, not along the tokens: axis -2
        of a key counts tokens, but axis -2 of a product, which has both `d_head` and `d_value`, counts features. So no
        token sees another. Which axis of the product counts the tokens?"""
        S = (k.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(-2)
        return (q.unsqueeze(-2) @ S).squeeze(-2)

    def own_value_alone(q, k, value):
        """The numerator contains only the token's own key and value; the normalizer contains all keys so far. You
        restart the sum of key times value at each place, or overwrite it instead of adding to it. {Token 0 is right,
        but} the results of all later tokens are too small. What happens to `S` from one token to the next?"""
        return (q * k).sum(-1, keepdim=True) * value

    def mean_of_products_so_far(q, k, value):
        """In the numerator you take the mean of the products so far, but in the normalizer a sum. So the second token's
        result is too small by a factor of 2, and the third token's by a factor of 3. Use a sum in numerator and
        normalizer, or a mean in both."""
        return values_so_far(q, k, value) / torch.arange(1, k.shape[-2] + 1).unsqueeze(-1).to(k)


@causal_linear_attention.wrong(stage="normalizer")
class Normalizer:
    def future_in_the_normalizer(q, k):
        """You divide by the sum over all keys, but sum the values only up to the query's place. The weights of early
        tokens then sum to much less than one: token 0 gets a fraction of its own value. The same happens if you
        normalize a table of weights and only then set the later keys to zero. Which keys may the normalizer see?"""
        return sum_of_weights(q, k)

    def one_too_few_in_the_normalizer(q, k):
        """You sum the normalizer up to the previous token, but the values up to the token itself. The result of token 0
        is divided by zero, and every later weight is too large. In which order do you update the sum and read it?"""
        return weights_so_far(q, k) - (q * k).sum(-1, keepdim=True)

    def own_key_alone(q, k):
        """The normalizer contains only the token's own key; the numerator contains all keys so far. {Token 0 is right,
        but} the results of later tokens grow with their place. What happens to `z` from one token to the next?"""
        return (q * k).sum(-1, keepdim=True)

    def keys_so_far_alone(q, k):
        """You divide by the sum of all features of the keys so far, without the query's features. So the weights of a
        query do not sum to one: in the numerator the query's features multiply `S`. What must the query's features
        multiply in the normalizer?"""
        return k.cumsum(-2).sum(-1, keepdim=True)

    def mean_of_keys_so_far(q, k):
        """In the normalizer you take the mean of the keys so far, but in the numerator a sum. So the second token's
        result is too large by a factor of 2, and the third token's by a factor of 3. Use a sum in numerator and
        normalizer, or a mean in both."""
        return weights_so_far(q, k) / torch.arange(1, k.shape[-2] + 1).unsqueeze(-1).to(k)

    def z_runs_over_the_features(q, k):
        """`z` is a running sum along the features, not along the tokens: each token's `z` contains only the token's own
        key. The axes are (batch, heads, seq, d_head). Along which of these axes must `cumsum` run?"""
        return (q * k.cumsum(-1)).sum(-1, keepdim=True)


@causal_linear_attention.wrong
class WrongAnswers:
    def sees_the_future(query, key, value):
        """Every query reads the sums over all keys, including later ones: as in linear attention that is not causal, or
        in a chunk in which nothing is hidden. All shapes are right, and so is the last token's result. A model trained
        with this function sees the very word that it has to predict. Where do the sums stop for query 0?"""
        return linear_attention.reference(query, key, value)

    def sees_only_what_follows(query, key, value):
        """Each query sees the keys from its own place on, but no earlier ones: the first token sees all keys, and the
        last token sees only itself. The wrong half of the table is set to zero, or the running sum runs backwards.
        Which corner of a table (q_len, k_len) holds the later keys?"""
        return _attend_by_table(query, key, value, torch.triu)

    def sees_only_later_keys(query, key, value):
        """Each query sees only the keys after its own place; the last query, which has no such keys, gets NaN. The mask
        is inverted: `masked_fill` writes where its mask is `True`, but in this course `True` means that a key may be
        seen. Is a `~` missing?"""
        return _attend_by_table(query, key, value, lambda weights: weights.triu(1))

    def sees_one_ahead(query, key, value):
        """Each query sees one key too many, the one after its own place. The diagonal is off by one, or the sum runs
        one place too far. Token 0 should get its own value and nothing else. How many keys does token 0 see?"""
        return _attend_by_table(query, key, value, lambda weights: weights.tril(1))

    def summed_over_heads(query, key, value):
        """Your running sums run along axis 1, which counts the heads: head 1 reads head 0 as well, and no token sees
        another. Which axis counts the tokens in (batch, heads, seq, d_head)?"""
        q, k = feature_map(query), feature_map(key)
        S = (k.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(1)
        return (q.unsqueeze(-2) @ S).squeeze(-2) / (q * k.cumsum(1)).sum(-1, keepdim=True)

    def misses_itself(query, key, value):
        """No token sees itself: each token gets the mean over the tokens before it, and the first token, which has none
        before it, gets 0/0, which is NaN. You read the sums before you add the token, or you also hide the diagonal of
        the table. In which order do you update the state and read it?"""
        return _attend_by_table(query, key, value, lambda weights: weights.tril(-1))

    def misses_itself_and_starts_at_zero(query, key, value):
        """No token sees itself: each token gets the mean over the tokens before it, and the first token, which has none
        before it, gets zeros. You read the sums before you add the token, or you also hide the diagonal of the table,
        and something turns the 0/0 of the first token into 0. In which order do you update the state and read it?"""
        return WrongAnswers.misses_itself(query, key, value).nan_to_num()

    def misses_itself_but_the_first(query, key, value):
        """No token sees itself except the first, which is treated separately: each later token gets the mean over the
        tokens before it. You read the sums before you add the token, and for token 0, which would then read nothing,
        you return its value. If you added every token first, would token 0 need separate treatment?"""
        result = WrongAnswers.misses_itself(query, key, value)
        return torch.cat([value[:, :, :1], result[:, :, 1:]], dim=2)

    def minus_infinity(query, key, value):
        """You hide later keys with −∞, as before a softmax. But here no exponential follows that would turn −∞ into
        zero: you add −∞ to the sums, and all results except the last token's are NaN. What must the weight of a hidden
        key be, when the weights are the similarities themselves?"""
        return _attend_by_table(query, key, value, hide_later_keys)

    def large_negative_number(query, key, value):
        """You hide later keys with a large negative number such as −1e9, as before a softmax. But here no exponential
        follows that would turn this number into zero: the hidden keys outweigh all others, with nearly equal weights.
        What must the weight of a hidden key be, when the weights are the similarities themselves?"""
        return _attend_by_table(query, key, value, lambda weights: hide_later_keys(weights).clamp(min=-1e9))

    def softmax_of_hidden_zeros(query, key, value):
        """You set the similarities of later keys to zero and apply a softmax. exp(0) is 1, so later keys still get some
        weight. And the similarities are already the weights, up to a factor for each query. By what must you divide the
        similarities of a query, so that they sum to one?"""
        return (feature_map(query) @ feature_map(key).mT).tril().softmax(-1) @ value

    def divided_by_place(query, key, value):
        """You divide by the number of keys so far, not by the sum of their weights. The results then do not grow along
        the sequence, but they are not means: token 0 does not get its own value. What does a query read from `z`?"""
        positions = torch.arange(1, query.shape[-2] + 1).unsqueeze(-1)
        return values_so_far(feature_map(query), feature_map(key), value) / positions.to(query)

    def state_overwritten(query, key, value):
        """Every token gets its own value back, unchanged. This happens if each token overwrites the state instead of
        being added to it: the state then holds only this token, with a weight of one. What happens to `S` and `z` from
        one token to the next?"""
        return value.clone()

    def total_of_values_less_what_follows(query, key, value):
        """You sum `S` over all keys and then subtract the later keys, but you sum `z` from the front. The formula is
        correct, and works for ordinary numbers. But if a later key is huge, the sum keeps none of the digits of the
        small keys, and the difference is wrong. If you sum `S` from the front as well, there is nothing to subtract."""
        q, k = feature_map(query), feature_map(key)
        products = k.unsqueeze(-1) * value.unsqueeze(-2)
        S = products.sum(-3, keepdim=True) - (products.flip(-3).cumsum(-3).flip(-3) - products)
        return (q.unsqueeze(-2) @ S).squeeze(-2) / weights_so_far(q, k)

    def tokens_in_front_of_heads(query, key, value):
        """{The numbers are right, but} the result has the axes (batch, seq, heads, d_value): you stacked the tokens'
        results along axis 1, before the heads. The token axis must come after the heads, as in `query`. Which `dim` of
        `torch.stack` puts it there?"""
        return causal_linear_attention.reference(query, key, value).transpose(1, 2)

    def query_without_its_row(query, key, value):
        """You multiply the queries as they are by a running `S`, (batch, heads, seq, d_head, d_value). `@` treats the
        last two axes of the queries, (seq, d_head), as a matrix, so the other axes do not match, and the product raises
        an error. Every token has its own `S`, and the token's query must multiply this `S` as a row: where does the
        query need an axis of size 1?"""
        q, k = feature_map(query), feature_map(key)
        return q @ (k.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(-3)

    def normalizer_without_its_axis(query, key, value):
        """Your normalizer has one number for each query, (batch, heads, seq), and no last axis. Shapes are aligned from
        the right, so `seq` is aligned with `d_value`, and the division raises an error; with equal sizes it would be
        silently wrong. Which operation adds, or keeps, a last axis of size 1?"""
        q, k = feature_map(query), feature_map(key)
        return values_so_far(q, k, value) / weights_so_far(q, k).squeeze(-1)

    def keys_and_values_without_new_axes(query, key, value):
        """You multiply keys and values element by element: `d_head` is aligned with `d_value`, which raises an error;
        with equal sizes it would be silently wrong. Each token adds a table to `S`: every feature times every number of
        the value. Where do keys and values each need a new axis of size 1?"""
        q, k = feature_map(query), feature_map(key)
        return q * (k * value).cumsum(-2)

    def tokens_in_front_of_all(query, key, value):
        """{The numbers are right, but} the result has the axes (seq, batch, heads, d_value): you stacked the tokens'
        results along a new first axis, as `torch.stack` does by default. The token axis must come after the heads, as
        in `query`. Which `dim` puts it there?"""
        return causal_linear_attention.reference(query, key, value).movedim(2, 0)

    @with_text_of(linear_attention_module.WrongAnswers.divided_feature_by_feature)
    def divided_feature_by_feature(query, key, value):
        return _read_quotients(feature_map(query), feature_map(key), value)

    def quotients_averaged(query, key, value):
        """You divide `S` by `z` feature by feature, and the query averages the quotients. Values that are all one stay
        one, but the weights are different: only the query decides how much a feature counts, however small the feature
        is in the keys. The query must read both sums before you divide."""
        q = feature_map(query)
        return _read_quotients(q, feature_map(key), value) / q.sum(-1, keepdim=True)

    @family(
        S_with_its_axes_exchanged=lambda q, S: q.unsqueeze(-2) @ S.cumsum(2),
        S_with_its_axes_exchanged_in_a_loop=lambda q, S: q[:, :, 0].unsqueeze(-2) @ S[:, :, 0],
    )
    def S_transposed(read, query, key, value):
        """Your `S` has its axes in the order (d_value, d_head), so the query's features are aligned with the wrong
        axis. The product raises an error; with equal sizes it would be silently wrong. The features must be on the
        second-to-last axis of `S`: which gets its new axis at the end, the key or the value?"""
        return read(feature_map(query), value.unsqueeze(-1) * feature_map(key).unsqueeze(-2)).squeeze(-2)


causal_linear_attention.mistakes_in(
    features=(
        elu_alone,
        no_map,
    ),
    output=(no_normalizer,),
)


causal_linear_attention.mistakes_in(alone=True, features=RARE_MAPS)
add_similarity_mistakes(causal_linear_attention, hide=hide_later_keys)


@causal_linear_attention.mistake(recognizes=_loses_digits_to_a_later_key)
def total_less_what_follows(query, key, value):
    """You compute a sum that includes later keys, and then subtract them. The formula is correct, and works for
    ordinary numbers. But if a later key is huge, the sum keeps none of the digits of the small keys, and the difference
    is zero. If you sum from the front, there is nothing to subtract."""
    q, k = feature_map(query), feature_map(key)
    products = k.unsqueeze(-1) * value.unsqueeze(-2)
    S = products.sum(-3, keepdim=True) - (products.flip(-3).cumsum(-3).flip(-3) - products)
    z = k.sum(-2, keepdim=True) - (k.flip(-2).cumsum(-2).flip(-2) - k)
    return (q.unsqueeze(-2) @ S).squeeze(-2) / (q * z).sum(-1, keepdim=True)


cut_off(causal_linear_attention)


fixed_length(
    causal_linear_attention, triangle_of_fixed_length, "262 tokens with one huge key late in the second sequence"
)
