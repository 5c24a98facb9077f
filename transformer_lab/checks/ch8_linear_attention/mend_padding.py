"""Find the mistake: padding in a sum."""

import torch

from ..exercise import exercise, family, with_text_of
from .elu_feature_map import elu_alone, feature_map
from .linear_attention import linear_attention, query_key_value
from .properties import is_all_ones, is_close


def _padded_inputs(draw, batch=2, heads=3, q_len=9, k_len=7, d_head=5, d_value=4):
    n_real = torch.tensor([max(1, k_len * (1 + number) // (batch + 1)) for number in range(batch)])
    key_mask = torch.arange(k_len) < n_real[:, None]
    return *query_key_value(draw, batch, heads, q_len, k_len, d_head, d_value), key_mask[:, None, None]


def _attend_with(query, key, value, key_mask, q=None, k=None, v=None, z=None):
    """Compute linear attention from the queries' features ``q``, the values ``v``, and two versions of the keys'
    features: ``k`` for the sum S, ``z`` for the sum z."""
    q, is_real = feature_map(query) if q is None else q, key_mask.mT
    k = feature_map(key).masked_fill(~is_real, 0) if k is None else k
    z = k if z is None else z
    return (q @ (k.mT @ (value if v is None else v))) / (q @ z.sum(-2).unsqueeze(-1))


@exercise(
    inputs=_padded_inputs,
    axes={
        "query": "batch heads q_len d_head",
        "key": "batch heads k_len d_head",
        "value": "batch heads k_len d_value",
        "return": "batch heads q_len d_value",
    },
    hints=(
        "What are the features of the zeros in the padding, and which of the two sums do they change?",
        "A padded key must be left out of both sums, `S` and `z`. Which does the program set to zero: the key, or its "
        "features? Print the normalizer with and without padding.",
        "`k = elu_feature_map(key).masked_fill(…, 0.0)`, with the mask's axes arranged so that k_len is second to last",
    ),
)
def mend_padding(query, key, value, key_mask):
    """Return linear attention that leaves padding out of both sums.

    query (batch, heads, q_len, d_head), key (batch, heads, k_len, d_head), value (batch, heads, k_len, d_value),
    key_mask (batch, 1, 1, k_len), True where the key is real. Returns (batch, heads, q_len, d_value).
    """
    return _attend_with(query, key, value, key_mask)


@mend_padding.right
class RightAnswers:
    def features_times_mask(query, key, value, key_mask):
        return _attend_with(query, key, value, key_mask, k=feature_map(key) * key_mask.transpose(-1, -2))

    def minus_infinity_before_the_map(query, key, value, key_mask):
        return linear_attention.reference(query, key.masked_fill(~key_mask.mT, -torch.inf), value)

    def very_negative_before_the_map(query, key, value, key_mask):
        return linear_attention.reference(query, torch.where(key_mask.mT, key, -1e9), value)

    def sequence_by_sequence(query, key, value, key_mask):
        rows = []
        for q, k, v, is_real in zip(query, key, value, key_mask[:, 0, 0]):
            rows.append(linear_attention.reference(q[None], k[None, :, is_real], v[None, :, is_real]))
        return torch.cat(rows)

    def ones_subtracted_from_z(query, key, value, key_mask):
        is_real = key_mask.mT
        q, k = feature_map(query), feature_map(key.masked_fill(~is_real, 0))  # the features of the padding are 1
        z = k.sum(-2) - (~is_real).sum(-2)
        return (q @ (k.mT @ value.masked_fill(~is_real, 0))) / (q @ z.unsqueeze(-1))

    def hidden_in_a_table(query, key, value, key_mask):
        weights = (feature_map(query) @ feature_map(key).mT) * key_mask
        return weights / weights.sum(-1, keepdim=True) @ value


mend_padding.example("no padding", key_mask=torch.ones(2, 1, 1, 7, dtype=torch.bool))


@mend_padding.probe
def padding_in_front(draw):
    """padding in front"""
    *tensors, key_mask = _padded_inputs(draw)
    return *tensors, key_mask.flip(-1)


@mend_padding.probe(plain=True)
def padding_on_either_side(draw):
    """padding after one sentence and in front of the next"""
    *tensors, key_mask = _padded_inputs(draw)
    return *tensors, torch.cat([key_mask[:1], key_mask[1:].flip(-1)])


mend_padding.example("one real key", key_mask=torch.arange(7).expand(2, 1, 1, 7) == 2)
mend_padding.example("as many queries as keys", q_len=7)


@mend_padding.probe
def huge_padding(draw):
    """huge numbers in the padding"""
    query, key, value, key_mask = _padded_inputs(draw)
    key, value = (torch.where(key_mask.mT, x, 1e12) for x in (key, value))
    return query, key, value, key_mask


@mend_padding.property
def padding_changes_nothing(function, query, key, value, key_mask):
    """The keys and values in the padding do not change the result."""
    other_key, other_value = (torch.where(key_mask.mT, x, 2.0) for x in (key, value))
    return is_close(function(query, other_key, other_value, key_mask), function(query, key, value, key_mask))


@mend_padding.property
def more_padding_changes_nothing(function, query, key, value, key_mask):
    """More padding changes nothing."""
    longer = [torch.cat([x, x[..., :1, :]], dim=-2) for x in (key, value)]
    longer_mask = torch.cat([key_mask, torch.zeros_like(key_mask[..., :1])], dim=-1)
    return is_close(function(query, *longer, longer_mask), function(query, key, value, key_mask))


@mend_padding.property
def ones_stay_ones(function, query, key, value, key_mask):
    """Values that are all one stay one: the weights of each query sum to one."""
    return is_all_ones(function(query, key, torch.ones_like(value), key_mask))


def _zero_padding(x, key_mask):
    return x.masked_fill(~key_mask.mT, 0)


def _drop_head_axis(key_mask):
    return key_mask[:, 0, 0, :, None]


@mend_padding.wrong
class WrongAnswers:
    def as_given(query, key, value, key_mask):
        """This function does what the given program does. The more padding there is, the closer its results are to
        zero: values that are all one do not stay one. So one of the two sums {is right, but the other} still counts the
        padding. Print both sums for a sentence with padding and for the same sentence without padding."""
        k = feature_map(_zero_padding(key, key_mask))
        return _attend_with(query, key, value, key_mask, k=k, v=_zero_padding(value, key_mask))

    def zero_keys_with_values(query, key, value, key_mask):
        """The features in the padding are 1, like those of keys that were set to zero before the feature map: φ(0) is
        1, not 0. So the padding is part of both sums like any token, and its values are added to the result. Which
        features add nothing?"""
        return _attend_with(query, key, value, key_mask, k=feature_map(_zero_padding(key, key_mask)))

    def only_the_values_hidden(query, key, value, key_mask):
        """You leave the padding out of `S`, but still count its keys in `z`: the weights of the real keys sum to less
        than one. You get the same result if you hide the padding after the division. A padded key must be left out of
        both sums: which keys does your `z` sum?"""
        return _attend_with(query, key, value, key_mask, z=feature_map(key))

    def only_the_normalizer_mended(query, key, value, key_mask):
        """You leave the padding out of `z`, but still add its keys and values to `S`: whatever the padding contains
        changes the result. A padded key must be left out of both sums. Which keys and values does your `S` sum?"""
        return _attend_with(
            query, key, value, key_mask, k=feature_map(key), z=_zero_padding(feature_map(key), key_mask)
        )

    def ones_left_in_S(query, key, value, key_mask):
        """You leave the padding out of `z`. But in `S` its keys still have the features φ(0) = 1, which add its values
        to the result. A padded key must be left out of both sums, or its value must be zero in `S`. Which keys does
        your `S` sum?"""
        zeroed = feature_map(_zero_padding(key, key_mask))
        return _attend_with(query, key, value, key_mask, k=zeroed, z=_zero_padding(feature_map(key), key_mask))

    def mask_ignored(query, key, value, key_mask):
        """The mask does not change the result: padding is treated like any token, whatever it contains. `masked_fill`
        without the trailing underscore returns a new tensor and leaves the old one unchanged. Do you use its result?"""
        return linear_attention.reference(query, key, value)

    def real_keys_hidden(query, key, value, key_mask):
        """The mask is inverted: the padding counts, but the real keys are left out. `True` means that a key is real,
        and `masked_fill` writes where its mask is `True`. Without padding your result is 0/0. Is a `~` missing, or is
        there one too many?"""
        return _attend_with(query, key, value, key_mask, k=feature_map(key).masked_fill(key_mask.mT, 0))

    def divided_by_real_keys(query, key, value, key_mask):
        """You divide by the number of real keys. The results no longer shrink with padding, but they are not means: the
        weights of a query sum to its mean similarity to the keys. The normalizer is a sum of features; which keys may
        it count?"""
        k = _zero_padding(feature_map(key), key_mask)
        return feature_map(query) @ (k.mT @ value) / key_mask.sum(-1, keepdim=True)

    def division_dropped(query, key, value, key_mask):
        """You no longer divide, so the results no longer shrink. But now they are sums of values, not means, and grow
        with the number of keys. The program must still divide: over which keys should the divisor be summed?"""
        return feature_map(query) @ (_zero_padding(feature_map(key), key_mask).mT @ value)

    def very_negative_features(query, key, value, key_mask):
        """You write a large negative number such as −1e9 into the features or the weights of the padding, after the
        map. But no exponential follows that would turn this number into zero: the padding outweighs all real keys, in
        both sums. Which number adds nothing to a sum?"""
        return _attend_with(query, key, value, key_mask, k=feature_map(key).masked_fill(~key_mask.mT, -1e9))

    @family(
        mask_times_keys=(lambda key, mask: feature_map(key * mask), "multiplies the keys"),
        mask_times_features=(lambda key, mask: feature_map(key) * mask, "multiplies the features"),
        keys_filled_along_the_features=(
            lambda key, mask: feature_map(key.masked_fill(~mask, 0)),
            "is applied to the keys",
        ),
        mask_along_the_features=(
            lambda key, mask: feature_map(key).masked_fill(~mask, 0),
            "is applied to the features",
        ),
        where_along_the_features=(
            lambda key, mask: torch.where(mask, feature_map(key), 0.0),
            "is applied to the features",
        ),
    )
    def mask_not_transposed(hide, query, key, value, key_mask):
        """The mask {}, (batch, heads, k_len, d_head), but the mask's last axis counts keys, not features, so PyTorch
        raises an error. With as many features as keys, the mask would silently hide features. On which axis must the
        mask count the keys?"""
        return _attend_with(query, key, value, key_mask, k=hide(key, key_mask))

    def softmax_with_the_mask(query, key, value, key_mask):
        """This is softmax attention with the mask. The softmax hides the padding, but its weights are not those of
        linear attention, and the function compares every query with every key. The program computed linear attention
        and should still do so: which of its lines is wrong?"""
        scores = query @ key.mT / query.shape[-1] ** 0.5
        return scores.masked_fill(~key_mask, -torch.inf).softmax(-1) @ value

    def infinity_in_a_sum(query, key, value, key_mask):
        """Where there is padding, an infinity or NaN is added to your sums, and the result is NaN. Perhaps you hide the
        padding with −∞ after the map, in the features, the weights or the values: no exponential follows that would
        turn −∞ into zero. Zero times infinity is NaN, and so is zero divided by zero. Which number adds nothing to a
        sum?"""
        return _attend_with(query, key, value, key_mask, k=feature_map(key).masked_fill(~key_mask.mT, -torch.inf))

    def first_keys_assumed_real(query, key, value, key_mask):
        """You count the real keys and use that many keys from the front. {Your result is right if the padding comes
        last, but wrong if it comes first or in between, as the docstring allows.} The mask says for each key whether it
        is real. How can you use the mask itself instead of a count?"""
        n = key_mask.sum(-1, keepdim=True)
        return mend_padding.reference(query, key, value, torch.arange(key.shape[-2], device=key.device) < n)

    def mask_of_the_first_sentence(query, key, value, key_mask):
        """{The first sentence is right, but} you apply the first sentence's mask to all sentences: the keys that are
        padding in the first sentence are left out, and the other sentences' own padding counts. The mask has a row for
        each sentence. Where do you use only the first row?"""
        return mend_padding.reference(query, key, value, key_mask[:1])

    def z_of_unmapped_keys(query, key, value, key_mask):
        """You compute `z` from the keys as they are, with zeros in the padding. These zeros add nothing, but the real
        keys now count without the feature map: the weights no longer sum to one, and the normalizer can become zero.
        Which numbers must be zero in the padding for `z` to be a sum of features?"""
        return _attend_with(query, key, value, key_mask, z=_zero_padding(key, key_mask))

    def feature_map_missing(query, key, value, key_mask):
        """You have removed the feature map so that a key of zeros adds nothing. But now weights can be negative, and
        where their sum is close to zero the result becomes huge. The map must stay. Where can you write a zero so that
        no map follows?"""
        key = _zero_padding(key, key_mask)
        return (query @ (key.mT @ value)) / (query @ key.sum(-2).unsqueeze(-1))

    def one_subtracted_from_all_keys(query, key, value, key_mask):
        """You subtract 1, which is φ(0), from the features of all keys. These features become elu(x), which is negative
        where x is below zero. The padding adds nothing, but the real keys have the wrong features. From the features of
        which keys must you subtract 1?"""
        return _attend_with(query, key, value, key_mask, k=elu_alone(_zero_padding(key, key_mask)))

    def keys_not_mapped(query, key, value, key_mask):
        """You no longer apply the feature map to the keys, so that a key of zeros adds nothing. But now weights can be
        negative, and where their sum is close to zero the result becomes huge. Queries and keys both need the map.
        Where can you write a zero so that no map follows?"""
        return _attend_with(query, key, value, key_mask, k=_zero_padding(key, key_mask))

    def elu_in_place_of_the_map(query, key, value, key_mask):
        """Your map is elu(x), without the 1, so that a key of zeros adds nothing. But now features can be negative, and
        where the sum of the weights is close to zero the result becomes huge. The map must stay as it was. Where can
        you write a zero so that no map follows?"""
        k = elu_alone(_zero_padding(key, key_mask))
        return (elu_alone(query) @ (k.mT @ value)) / (elu_alone(query) @ k.sum(-2).unsqueeze(-1))

    def query_not_mapped(query, key, value, key_mask):
        """{The padding is left out as it should be, but} the queries have lost their feature map: you use them as they
        are, including negative numbers, so weights can be negative. What did the given program do with the queries?"""
        k = _zero_padding(feature_map(key), key_mask)
        return (query @ (k.mT @ value)) / (query @ k.sum(-2).unsqueeze(-1))

    def rescaled_by_the_lengths(query, key, value, key_mask):
        """You multiply the result by the length with padding and divide it by the length without padding. In the
        example all features are equal, so these factors exactly compensate for the padding; in general a padded key
        weighs more or less than a real key. If the padding is left out of the sums, you need no correction afterwards.
        Which sum still counts the padding?"""
        return WrongAnswers.as_given(query, key, value, key_mask) * (
            key_mask.shape[-1] / key_mask.sum(-1, keepdim=True)
        )

    def softmax_of_similarities(query, key, value, key_mask):
        """You apply a softmax to the similarities φ(query) · φ(key), with the mask. The softmax hides the padding, but
        the similarities are already the weights, and the exponential changes them. The program computed linear
        attention and should still do so: which of its lines is wrong?"""
        scores = feature_map(query) @ feature_map(key).mT
        return scores.masked_fill(~key_mask, -torch.inf).softmax(-1) @ value

    @family(
        filled_without_an_axis_for_heads=lambda features, mask: features.masked_fill(~mask, 0.0),
        multiplied_without_an_axis_for_heads=lambda features, mask: features * mask,
    )
    def no_axis_for_heads(hide, query, key, value, key_mask):
        """Your mask has the axes (batch, k_len, 1), but the features have one axis more, for the heads. Shapes are
        aligned from the right, so sentences are aligned with heads, and PyTorch raises an error. `key_mask` came with
        an axis of size 1 for the heads. Where do you lose it?"""
        k = hide(feature_map(key), _drop_head_axis(key_mask))
        return _attend_with(query, key, value, key_mask, k=k)

    @family(
        mask_as_an_index=(lambda key_mask: key_mask, "On which axis must the mask count the keys for them?"),
        transposed_mask_as_an_index=(lambda key_mask: key_mask.mT, "The mask already has the right axes for them."),
    )
    def as_an_index(mask, query, key, value, key_mask):
        """You use the mask as an index, and PyTorch raises an error: an index of bools is not broadcast, so it must
        have the sizes of the tensor that it selects from. `masked_fill` and `where` do broadcast their mask. {}"""
        k = feature_map(key)
        k[~mask(key_mask)] = 0.0
        return _attend_with(query, key, value, key_mask, k=k)

    def queries_hidden(query, key, value, key_mask):
        """You hide queries or results with the keys' mask. PyTorch raises an error, since there can be more queries
        than keys, or fewer; with as many queries as keys, some queries are lost. The mask says which *keys* are real;
        every query gets a result. Which is the only tensor that needs the mask?"""
        q, k = feature_map(query).masked_fill(~key_mask.mT, 0.0), _zero_padding(feature_map(key), key_mask)
        return (q @ (k.mT @ value)) / (q @ k.sum(-2).unsqueeze(-1))

    @with_text_of(queries_hidden)
    def results_hidden(query, key, value, key_mask):
        return mend_padding.reference(query, key, value, key_mask).masked_fill(~key_mask.mT, 0.0)

    def results_times_mask(query, key, value, key_mask):
        """You multiply queries or results by the keys' mask. PyTorch raises an error, since there can be more queries
        than keys, or fewer; with as many queries as keys, some queries are lost. The mask says which *keys* are real;
        every query gets a result. Which is the only tensor that needs the mask?"""
        return linear_attention.reference(query, key, value) * key_mask.mT

    @with_text_of(results_times_mask)
    def queries_times_mask(query, key, value, key_mask):
        return mend_padding.reference(query * key_mask.mT, key, value, key_mask)

    def only_the_padding_in_z(query, key, value, key_mask):
        """You leave the padding out of `S`, but in `z` the mask is inverted: `z` counts the padding and leaves out the
        real keys. Without padding your result is divided by zero. `True` means that a key is real. Is a `~` missing, or
        is there one too many?"""
        return _attend_with(
            query, key, value, key_mask, z=feature_map(_zero_padding(key, key_mask)).masked_fill(key_mask.mT, 0)
        )

    def padding_counted_out_as_ones(query, key, value, key_mask):
        """You subtract 1 from the normalizer for every padded key. {The padded key's features are indeed ones, but} the
        query multiplies a padded key's features by its own features and sums the products, so the weight of each padded
        key is the sum of the query's features. Subtract the ones from `z`, before the query reads it, or never add
        them."""
        q, k = feature_map(query), feature_map(_zero_padding(key, key_mask))
        n_padding = (~key_mask).sum(-1, keepdim=True)
        return (q @ (k.mT @ _zero_padding(value, key_mask))) / (q @ k.sum(-2).unsqueeze(-1) - n_padding)

    def features_averaged_in_z(query, key, value, key_mask):
        """`z` is the mean of the keys' features, but `S` is a sum: the results are too large by a factor of k_len,
        which counts the padding too. Values that are all one must stay one. Which operation sums without dividing?"""
        k = _zero_padding(feature_map(key), key_mask)
        return _attend_with(query, key, value, key_mask, z=k / k.shape[-2])

    def z_summed_over_features(query, key, value, key_mask):
        """`z` is a sum over the features, one number for each key, (batch, heads, k_len), and does not fit the queries'
        features: the product raises an error. `z` must sum over the keys, feature by feature. Which axis counts
        keys?"""
        q, k = feature_map(query), _zero_padding(feature_map(key), key_mask)
        return (q @ (k.mT @ value)) / (q @ k.sum(-1).unsqueeze(-1))

    def z_without_a_last_axis(query, key, value, key_mask):
        """`z` has the shape (batch, heads, d_head), and `@` treats its last two axes as a matrix: the product raises an
        error. In each head `z` must be a column, (d_head, 1). Which axis did the given program add?"""
        q, k = feature_map(query), _zero_padding(feature_map(key), key_mask)
        return (q @ (k.mT @ value)) / (q @ k.sum(-2))

    def normalizer_without_its_last_axis(query, key, value, key_mask):
        """The normalizer has one number for each query, (batch, heads, q_len), but the numerator has one axis more.
        Shapes are aligned from the right, so `q_len` is aligned with `d_value`, and the division raises an error. Which
        axis of size 1 must the sum keep?"""
        q, k = feature_map(query), _zero_padding(feature_map(key), key_mask)
        return (q @ (k.mT @ value)) / (q * k.sum(-2, keepdim=True)).sum(-1)

    def products_not_added_up(query, key, value, key_mask):
        """You multiply the queries by `z` feature by feature, but do not sum the products: each query has d_head
        divisors, and the division raises an error. A dot product is one number. Which step does `@` do that `*` leaves
        out?"""
        q, k = feature_map(query), _zero_padding(feature_map(key), key_mask)
        return (q @ (k.mT @ value)) / (q * k.sum(-2, keepdim=True))

    def padding_up_to_the_longest(query, key, value, key_mask):
        """You keep as many keys as there are real keys in the longest sentence, and treat all of them as real: shorter
        sentences keep padding, and if padding comes first, real keys are lost. The mask says for each key whether it is
        real. How can you use the mask instead of a cut?"""
        n = int(key_mask.sum(-1).max())
        return linear_attention.reference(query, key[..., :n, :], value[..., :n, :])

    def values_overwritten(query, key, value, key_mask):
        """{The result is right, but} you have overwritten the values: the caller finds zeros in the padding instead of
        the original values. `masked_fill_`, with its trailing underscore, writes into its tensor, and so does `value[…]
        = …`. How do you get a new tensor instead?"""
        value.masked_fill_(~key_mask.mT, 0.0)
        return mend_padding.reference(query, key, value, key_mask)

    def exponential_for_the_map(query, key, value, key_mask):
        """Your map is the exponential. The exponential is positive and can be set to zero in the padding, but the
        program's map is elu(x) + 1, which leads to different weights. The map must stay as it was: how else can you
        hide the padding?"""
        return _attend_with(query, key, value, key_mask, q=query.exp(), k=_zero_padding(key.exp(), key_mask))

    def relu_for_the_map(query, key, value, key_mask):
        """Your map is relu(x), so that a key of zeros adds nothing. But every negative number becomes zero as well, and
        a query may get 0/0. The map must stay as it was, elu(x) + 1. Where can you write a zero so that no map
        follows?"""
        return _attend_with(query, key, value, key_mask, q=query.relu(), k=_zero_padding(key, key_mask).relu())

    def mapped_twice(query, key, value, key_mask):
        """You apply the map again to features, for example by passing features to a function that maps queries and keys
        itself. φ(0) is 1, so the padding counts again, and the other features are wrong as well. How often do you call
        the map?"""
        return linear_attention.reference(feature_map(query), _zero_padding(feature_map(key), key_mask), value)

    def keys_mapped_twice(query, key, value, key_mask):
        """{The padding is left out as it should be, but} you apply the feature map to the keys twice. What does the
        name `key` hold when you call the map?"""
        return _attend_with(query, key, value, key_mask, k=_zero_padding(feature_map(feature_map(key)), key_mask))

    def scaled_query(query, key, value, key_mask):
        """{The padding is left out as it should be, but} you divide the queries by √d_head before the map. This scale
        belongs to softmax attention; here it changes the features. What did the given program do with the queries?"""
        return mend_padding.reference(query / query.shape[-1] ** 0.5, key, value, key_mask)

    def later_keys_hidden(query, key, value, key_mask):
        """You hide the padding, but you also apply a triangular mask, which hides all keys after each query. The
        program was not causal: each query saw all keys. What is the only thing that must be left out?"""
        weights = (feature_map(query) @ feature_map(key).mT * key_mask).tril()
        return weights @ value / weights.sum(-1, keepdim=True)

    def S_masked(query, key, value, key_mask):
        """You apply the mask to `S`, but `S` no longer has an axis for keys: it is a sum over them, with the axes
        (d_head, d_value). So PyTorch raises an error. No single key can be removed from a finished sum. Which tensor
        still has a row for each key?"""
        q, k = feature_map(query), feature_map(key)
        return (q @ _zero_padding(k.mT @ value, key_mask)) / (q @ k.sum(-2).unsqueeze(-1))

    def an_axis_too_many(query, key, value, key_mask):
        """Your mask has a fifth axis, (batch, 1, 1, k_len, 1). Shapes are aligned from the right, so the mask's first
        axis is no longer aligned with the batch axis of the keys, and you compute every sentence with every mask.
        `key_mask` has four axes: which two must you exchange?"""
        return _attend_with(query, key, value, key_mask, k=feature_map(key) * key_mask.unsqueeze(-1))

    @family(
        one_minus_the_transposed_mask=lambda key_mask: 1 - key_mask.mT,
        one_minus_the_mask=lambda key_mask: (1 - key_mask).mT,
    )
    def one_minus_bools(subtract, query, key, value, key_mask):
        """`1 - mask` raises an error for a mask of `True` and `False`: PyTorch does not subtract bools. Which operator
        inverts such a mask?"""
        return _attend_with(query, key, value, key_mask, k=feature_map(key) * subtract(key_mask))

    @family(
        keys_picked_by_the_mask=lambda key_mask: key_mask,
        keys_selected_by_the_transposed_mask=lambda key_mask: key_mask.mT,
    )
    def keys_picked(mask, query, key, value, key_mask):
        """You use the mask as an index to select keys, and PyTorch raises an error: an index of bools must have the
        sizes of the tensor that it selects from. And the selected keys could not keep an axis for sentences, since each
        sentence has a different number of real keys. What can you write where a key is not real?"""
        return linear_attention.reference(query, key[mask(key_mask)], value)

    def times_the_share_of_real_keys(query, key, value, key_mask):
        """You multiply the result by the share of real keys, so values that are all one do not stay one. A key that was
        left out of both sums needs no correction. Which line comes after your division?"""
        return mend_padding.reference(query, key, value, key_mask) * key_mask.float().mean(-1, keepdim=True)

    def keys_that_are_real_in_every_sentence(query, key, value, key_mask):
        """You keep only the keys that are real in every sentence of the batch, so some sentences lose some of their
        real keys. The mask has a row for each sentence: do not combine its rows."""
        return mend_padding.reference(query, key, value, key_mask.all(0, keepdim=True))

    def keys_that_are_real_in_any_sentence(query, key, value, key_mask):
        """You keep the keys that are real in at least one sentence of the batch, so the padding of the other sentences
        counts as well. The mask has a row for each sentence: do not combine its rows."""
        return mend_padding.reference(query, key, value, key_mask.any(0, keepdim=True))

    def the_first_sentence_only(query, key, value, key_mask):
        """You return only the first sentence, (heads, q_len, d_value). A `return` inside a loop ends the function in
        the first round. Every sentence of the batch has a result."""
        return mend_padding.reference(query, key, value, key_mask)[0]

    def normalized_over_the_queries(query, key, value, key_mask):
        """You divide each key's weights by their sum over the queries; for a padded key, this is 0/0. A result is a
        mean over keys, so the weights of each *query* must sum to one. Which axis of the weights counts keys?"""
        weights = feature_map(query) @ feature_map(key).mT * key_mask
        return weights / weights.sum(-2, keepdim=True) @ value

    def map_after_the_sum(query, key, value, key_mask):
        """`z` is the map of a sum of keys, but should be a sum of their features: φ is not linear, so the order of map
        and sum matters. Which must come first?"""
        return _attend_with(
            query, key, value, key_mask, z=feature_map(_zero_padding(key, key_mask).sum(-2, keepdim=True))
        )

    def z_of_ones(query, key, value, key_mask):
        """`z` counts the real keys instead of summing their features: every key weighs the same in `z`, but not in `S`.
        Values that are all one must stay one. Which numbers does `S` use for a key?"""
        return _attend_with(query, key, value, key_mask, z=_zero_padding(torch.ones_like(key), key_mask))

    def query_missing_in_the_normalizer(query, key, value, key_mask):
        """You divide by the sum of all the keys' features, which is the same for every query. The weights of a query
        are the dot products of its features with the keys' features. By what must you multiply `z` before you
        divide?"""
        k = _zero_padding(feature_map(key), key_mask)
        return feature_map(query) @ (k.mT @ value) / k.sum((-2, -1), keepdim=True)

    def multiplied_by_the_normalizer(query, key, value, key_mask):
        """You multiply by the normalizer, but should divide by it: values that are all one come out as its square. What
        did the given program do with the normalizer?"""
        q, k = feature_map(query), _zero_padding(feature_map(key), key_mask)
        return (q @ (k.mT @ value)) * (q @ k.sum(-2).unsqueeze(-1))

    def keys_not_transposed(query, key, value, key_mask):
        """In `S` you multiply the keys' features, (k_len, d_head), by the values, (k_len, d_value), without a
        transpose, which raises an error. `S` sums over keys, so both inner axes must be k_len. What did the given
        program transpose?"""
        return feature_map(query) @ (_zero_padding(feature_map(key), key_mask) @ value)

    def mean_of_the_real_values(query, key, value, key_mask):
        """You return the plain mean of the real values: every key has the same weight, for every query. In attention
        the weights depend on the query. Where must your function use queries and keys?"""
        mean = _zero_padding(value, key_mask).sum(-2, keepdim=True) / key_mask.sum(-1, keepdim=True)
        return mean.expand(*query.shape[:-1], -1)

    def softmax_with_the_mask_and_no_scale(query, key, value, key_mask):
        """This is softmax attention with the mask, but without its scale. The softmax hides the padding, but its
        weights are not those of linear attention. The program computed linear attention and should still do so: which
        of its lines is wrong?"""
        return (query @ key.mT).masked_fill(~key_mask, -torch.inf).softmax(-1) @ value

    def scaled_softmax_of_similarities(query, key, value, key_mask):
        """You compute softmax attention from the features, with the mask. The softmax hides the padding, but φ(query) ·
        φ(key) are already the weights, and the scaling and the exponential change them. The program computed linear
        attention and should still do so: which of its lines is wrong?"""
        return WrongAnswers.softmax_with_the_mask(feature_map(query), feature_map(key), value, key_mask)

    def minus_infinity_in_the_values(query, key, value, key_mask):
        """You set the values in the padding to −∞, so every sum that contains them is −∞ or NaN. −∞ belongs before a
        softmax, whose exponential turns it into zero. Which number adds nothing to a sum?"""
        return linear_attention.reference(query, key, value.masked_fill(~key_mask.mT, -torch.inf))

    def divided_by_the_query(query, key, value, key_mask):
        """You divide by the sum of the query's features, without the keys' features, so the results grow with the
        number of keys. The weights of a query are the dot products of its features with the keys' features. What is `z`
        for?"""
        q = feature_map(query)
        return q @ (_zero_padding(feature_map(key), key_mask).mT @ value) / q.sum(-1, keepdim=True)

    def divided_by_all_keys(query, key, value, key_mask):
        """You divide by the number of keys, padding included. So the results are not means, and they shrink with
        padding. The normalizer is a sum of features; which keys may it count?"""
        return feature_map(query) @ (_zero_padding(feature_map(key), key_mask).mT @ value) / key.shape[-2]

    def weights_returned(query, key, value, key_mask):
        """You return the weights, (batch, heads, q_len, k_len){; those of the padding are zero, as they should be}. You
        must still sum the values with these weights."""
        weights = feature_map(query) @ feature_map(key).mT * key_mask
        return weights / weights.sum(-1, keepdim=True)

    def S_returned(query, key, value, key_mask):
        """You return the sum `S`, (batch, heads, d_head, d_value), before any query has read it. Which lines follow `S`
        in the given program?"""
        return _zero_padding(feature_map(key), key_mask).mT @ value

    def padding_counted_in_again(query, key, value, key_mask):
        """You add the padding to `z` a second time, but should subtract it: the results shrink twice as fast. The
        features of a zero key are 1. Which sign removes them from a sum that includes them?"""
        zeroed = feature_map(_zero_padding(key, key_mask))
        z = zeroed + (~key_mask.mT).to(zeroed)
        return _attend_with(query, key, value, key_mask, z=z)

    def values_mapped_too(query, key, value, key_mask):
        """{The padding is left out as it should be, but} you also apply the feature map to the values. The result is a
        mean of the values, which must stay as they are. Which two of the three tensors did the given program map?"""
        return mend_padding.reference(query, key, feature_map(value), key_mask)

    def map_of_the_products(query, key, value, key_mask):
        """You apply the map to the products of queries and keys. The padding is hidden, but the weights are different:
        the program maps queries and keys first and then multiplies their features. Which line of the program is
        wrong?"""
        weights = feature_map(query @ key.mT) * key_mask
        return weights / weights.sum(-1, keepdim=True) @ value

    def mask_expanded_along_the_features(query, key, value, key_mask):
        """You expand the mask, (batch, 1, 1, k_len), to the shape of the keys, (batch, heads, k_len, d_head). But the
        mask's last axis counts keys, not features, so PyTorch raises an error. On which axis must the mask count the
        keys?"""
        k = feature_map(key).masked_fill(~key_mask.expand_as(key), 0)
        return _attend_with(query, key, value, key_mask, k=k)

    def condition_on_the_mask(query, key, value, key_mask):
        """Python's `if`, `and`, `or` and `not` need a single `True` or `False`, but the mask holds one for each key, so
        PyTorch raises an error. Which functions of PyTorch choose for each key separately?"""
        return mend_padding.reference(query, key, value, key_mask) if key_mask else value

    def softmax_for_the_map(query, key, value, key_mask):
        """Your map is a softmax over the features. The softmax is positive and can be set to zero in the padding, but
        the program's map is elu(x) + 1, which leads to different weights. The map must stay as it was."""
        return _attend_with(
            query, key, value, key_mask, q=query.softmax(-1), k=_zero_padding(key.softmax(-1), key_mask)
        )

    def divided_before_the_query(query, key, value, key_mask):
        """You divide `S` by `z` before a query has read either sum, so each feature is divided by its own sum. A query
        must read both sums first; then you divide what it reads from `S` by what it reads from `z`. What is the order
        in the given program?"""
        k = _zero_padding(feature_map(key), key_mask)
        return feature_map(query) @ ((k.mT @ value) / k.sum(-2).unsqueeze(-1))

    def query_not_mapped_in_the_normalizer(query, key, value, key_mask):
        """In the normalizer you use the queries as they are, without the feature map, so the normalizer is not the sum
        of the weights. Numerator and normalizer need the same features."""
        k = _zero_padding(feature_map(key), key_mask)
        return (feature_map(query) @ (k.mT @ value)) / (query @ k.sum(-2).unsqueeze(-1))

    def query_mapped_in_the_normalizer_only(query, key, value, key_mask):
        """In the numerator you use the queries as they are, without the feature map; only the normalizer uses their
        features. Numerator and normalizer need the same features."""
        k = _zero_padding(feature_map(key), key_mask)
        return (query @ (k.mT @ value)) / (feature_map(query) @ k.sum(-2).unsqueeze(-1))
