"""Find the mistake: padding in a sum."""

import torch

from ..exercise import exercise, family, with_text_of
from .elu_feature_map import elu_alone, positive
from .linear_attention import linear_attention, query_key_value
from .properties import is_like, is_one


def _padded_inputs(draw, batch=2, heads=3, q_len=9, k_len=7, d_head=5, d_value=4):
    real = torch.tensor([max(1, k_len * (1 + number) // (batch + 1)) for number in range(batch)])
    key_mask = torch.arange(k_len) < real[:, None]
    return *query_key_value(draw, batch, heads, q_len, k_len, d_head, d_value), key_mask[:, None, None]


def _with_sums(query, key, value, key_mask, q=None, k=None, v=None, z=None):
    """Linear attention; ``q``, ``k``, ``v`` and ``z`` are the queries' features, those in S, the values, those in z."""
    q, real = positive(query) if q is None else q, key_mask.mT
    k = positive(key).masked_fill(~real, 0) if k is None else k
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
        "What does the feature map return for the zeros in the padding, and which of the two sums does this change?",
        "A key must be left out of both sums, `S` and `z`. What does the program set to zero: the key, or the key's "
        "features? Print the normalizer with and without padding.",
        "`k = elu_feature_map(key).masked_fill(…, 0.0)`, with the mask's axes arranged so that k_len is the "
        "second-to-last axis",
    ),
)
def mend_padding(query, key, value, key_mask):
    """Return linear attention that leaves padding out of both sums.

    query (batch, heads, q_len, d_head), key (batch, heads, k_len, d_head), value (batch, heads, k_len, d_value),
    key_mask (batch, 1, 1, k_len), True where the key is real. Returns (batch, heads, q_len, d_value).
    """
    return _with_sums(query, key, value, key_mask)


@mend_padding.right
class RightAnswers:
    def features_times_mask(query, key, value, key_mask):
        return _with_sums(query, key, value, key_mask, k=positive(key) * key_mask.transpose(-1, -2))

    def minus_infinity_before_the_map(query, key, value, key_mask):
        return linear_attention.reference(query, key.masked_fill(~key_mask.mT, -torch.inf), value)

    def very_negative_before_the_map(query, key, value, key_mask):
        return linear_attention.reference(query, torch.where(key_mask.mT, key, -1e9), value)

    def sequence_by_sequence(query, key, value, key_mask):
        rows = []
        for q, k, v, real in zip(query, key, value, key_mask[:, 0, 0]):
            rows.append(linear_attention.reference(q[None], k[None, :, real], v[None, :, real]))
        return torch.cat(rows)

    def padding_counted_out_again(query, key, value, key_mask):
        real = key_mask.mT
        q, k = positive(query), positive(key.masked_fill(~real, 0))  # the features of padding are one
        z = k.sum(-2) - (~real).sum(-2)
        return (q @ (k.mT @ value.masked_fill(~real, 0))) / (q @ z.unsqueeze(-1))

    def hidden_in_a_table(query, key, value, key_mask):
        weights = (positive(query) @ positive(key).mT) * key_mask
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
    """What stands in the padding changes nothing."""
    other_key, other_value = (torch.where(key_mask.mT, x, 2.0) for x in (key, value))
    return is_like(function(query, other_key, other_value, key_mask), function(query, key, value, key_mask))


@mend_padding.property
def more_padding_changes_nothing(function, query, key, value, key_mask):
    """More padding changes nothing."""
    longer = [torch.cat([x, x[..., :1, :]], dim=-2) for x in (key, value)]
    longer_mask = torch.cat([key_mask, torch.zeros_like(key_mask[..., :1])], dim=-1)
    return is_like(function(query, *longer, longer_mask), function(query, key, value, key_mask))


@mend_padding.property
def ones_stay_ones(function, query, key, value, key_mask):
    """Values that are all one stay one: the weights of each query sum to one."""
    return is_one(function(query, key, torch.ones_like(value), key_mask))


def _zeroed(x, key_mask):
    return x.masked_fill(~key_mask.mT, 0)


def _without_an_axis_for_heads(key_mask):
    return key_mask[:, 0, 0, :, None]


@mend_padding.wrong
class WrongAnswers:
    def as_given(query, key, value, key_mask):
        """This does what the given program does. Its results shrink towards zero, the more padding there is: values
        that are all one do not stay one. So one of the two sums {is right and the other} still counts the padding.
        Print both for a sentence with padding and for the same one without."""
        k = positive(_zeroed(key, key_mask))
        return _with_sums(query, key, value, key_mask, k=k, v=_zeroed(value, key_mask))

    def zero_keys_with_values(query, key, value, key_mask):
        """The features in the padding are 1, as they are of keys that were set to zero before the feature map: φ(0) is
        1, not 0. So padding takes part in both sums as if it were a token, and its values go into the result. Which
        features add nothing?"""
        return _with_sums(query, key, value, key_mask, k=positive(_zeroed(key, key_mask)))

    def only_the_values_hidden(query, key, value, key_mask):
        """Padding is kept out of `S`, and its keys are still counted in `z`: the weights of the real keys sum to less
        than one. The same comes of hiding padding after the division. A key that is left out must be left out of both
        sums: where does `z` get its keys from?"""
        return _with_sums(query, key, value, key_mask, z=positive(key))

    def only_the_normalizer_mended(query, key, value, key_mask):
        """Padding is kept out of `z`, and its keys and values still go into `S`: what stands in the padding shows in
        the result. A key that is left out must be left out of both sums. Where does `S` get its keys and values
        from?"""
        return _with_sums(query, key, value, key_mask, k=positive(key), z=_zeroed(positive(key), key_mask))

    def ones_left_in_S(query, key, value, key_mask):
        """Padding is kept out of `z`. In `S` its keys still have the features φ(0) = 1, and its values go into the
        result with them. A key that is left out must be left out of both sums, or its value must be zero in `S`. Where
        does `S` get its keys from?"""
        zeroed = positive(_zeroed(key, key_mask))
        return _with_sums(query, key, value, key_mask, k=zeroed, z=_zeroed(positive(key), key_mask))

    def mask_ignored(query, key, value, key_mask):
        """The mask changes nothing in the result: padding is attended to like any token, with whatever stands in it.
        `masked_fill` without the underscore returns a new tensor and leaves the old one as it is. Is its result
        used?"""
        return linear_attention.reference(query, key, value)

    def real_keys_hidden(query, key, value, key_mask):
        """The mask is the wrong way round: the padding is attended to, and the real keys are left out. `True` means
        that a key is real, and `masked_fill` writes where its mask is `True`. Without padding your result is 0/0. Is a
        `~` missing, or one too many?"""
        return _with_sums(query, key, value, key_mask, k=positive(key).masked_fill(key_mask.mT, 0))

    def divided_by_real_keys(query, key, value, key_mask):
        """You divide by the number of real keys. Results no longer shrink with padding, but they are no means: the
        weights of a query sum to whatever its similarities happen to be on average. The normalizer is a sum of
        features; which keys may it count?"""
        k = _zeroed(positive(key), key_mask)
        return positive(query) @ (k.mT @ value) / key_mask.sum(-1, keepdim=True)

    def division_dropped(query, key, value, key_mask):
        """The division is gone, and with it the shrinking. But now results are sums of values, not means, and grow with
        the number of keys. The normalizer was there for a reason: what should it have counted?"""
        return positive(query) @ (_zeroed(positive(key), key_mask).mT @ value)

    def very_negative_features(query, key, value, key_mask):
        """You write a large negative number such as −1e9 into the features or the weights of the padding, after the
        map. No exponential follows that would make zero of it: the padding outweighs all real keys, in both sums. Which
        number adds nothing to a sum?"""
        return _with_sums(query, key, value, key_mask, k=positive(key).masked_fill(~key_mask.mT, -1e9))

    @family(
        mask_times_keys=(lambda key, mask: positive(key * mask), "is multiplied with the keys"),
        mask_times_features=(lambda key, mask: positive(key) * mask, "is multiplied with the features"),
        keys_filled_along_the_features=(lambda key, mask: positive(key.masked_fill(~mask, 0)), "meets the keys"),
        mask_along_the_features=(lambda key, mask: positive(key).masked_fill(~mask, 0), "meets the features"),
        where_along_the_features=(lambda key, mask: torch.where(mask, positive(key), 0.0), "meets the features"),
    )
    def mask_not_turned(hidden, query, key, value, key_mask):
        """The mask {}, (batch, heads, k_len, d_head), and its last axis counts keys where theirs counts features: it
        raises. With as many features as keys it would hide features in silence. On which axis must the mask have its
        k_len?"""
        return _with_sums(query, key, value, key_mask, k=hidden(key, key_mask))

    def softmax_with_the_mask(query, key, value, key_mask):
        """This is softmax attention with the mask. Padding is hidden, but the weights are not those of linear
        attention, and each query meets each key again. The program was linear attention and should stay so: which of
        its lines needs mending?"""
        scores = query @ key.mT / query.shape[-1] ** 0.5
        return scores.masked_fill(~key_mask, -torch.inf).softmax(-1) @ value

    def infinity_in_a_sum(query, key, value, key_mask):
        """Where there is padding, an infinity or NaN gets into your sums, and the result is NaN. Perhaps you hide the
        padding with −∞ after the map, in the features, the weights or the values: no exponential follows that would
        make zero of it. Zero times infinity is NaN, and so is zero by zero. Which number adds nothing to a sum?"""
        return _with_sums(query, key, value, key_mask, k=positive(key).masked_fill(~key_mask.mT, -torch.inf))

    def first_keys_taken_for_real(query, key, value, key_mask):
        """You count the real keys and take as many from the front. {That is right where padding stands at the end, and
        wrong where it stands in front or in between, as the docstring allows.} The mask says of every single key
        whether it is real. What can be done with it in place of a count?"""
        n = key_mask.sum(-1, keepdim=True)
        return mend_padding.reference(query, key, value, torch.arange(key.shape[-2], device=key.device) < n)

    def mask_of_the_first_sentence(query, key, value, key_mask):
        """{The first sentence is right, and} every other sentence is treated with the mask of the first: with the first
        sentence's keys left out, and its own padding counted. The mask has a row for each sentence. Where do you take
        the first row alone?"""
        return mend_padding.reference(query, key, value, key_mask[:1])

    def z_of_the_bare_keys(query, key, value, key_mask):
        """`z` is a sum of the keys as they are, with zeros in the padding. Those zeros do add nothing, but the real
        keys now count without the feature map: the weights no longer sum to one, and the normalizer can become zero.
        Which numbers must be zero in the padding for `z` to be a sum of features?"""
        return _with_sums(query, key, value, key_mask, z=_zeroed(key, key_mask))

    def map_dropped(query, key, value, key_mask):
        """You have taken the feature map out, so that a key of zeros does count for nothing. But then weights can be
        negative, and where their sum comes close to zero the result flies far off. The map must stay. Where can a zero
        be written so that no map follows?"""
        key = _zeroed(key, key_mask)
        return (query @ (key.mT @ value)) / (query @ key.sum(-2).unsqueeze(-1))

    def one_taken_from_all_keys(query, key, value, key_mask):
        """You take the 1 of φ(0) = 1 away again, from the features of all keys: they are elu(x) then, which is negative
        below zero. The padding counts for nothing, and the real keys count for something else than they should. From
        which keys alone must something be taken?"""
        return _with_sums(query, key, value, key_mask, k=elu_alone(_zeroed(key, key_mask)))

    def keys_not_mapped(query, key, value, key_mask):
        """You have taken the feature map off the keys, so that a key of zeros does count for nothing. But then weights
        can be negative, and where their sum comes close to zero the result flies far off. Both sides need the map.
        Where can a zero be written so that no map follows?"""
        return _with_sums(query, key, value, key_mask, k=_zeroed(key, key_mask))

    def elu_in_place_of_the_map(query, key, value, key_mask):
        """Your map is elu(x), without the 1, so that a key of zeros does count for nothing. But then features can be
        negative, and where the sum of the weights comes close to zero the result flies far off. The map must stay as it
        was. Where can a zero be written so that no map follows?"""
        k = elu_alone(_zeroed(key, key_mask))
        return (elu_alone(query) @ (k.mT @ value)) / (elu_alone(query) @ k.sum(-2).unsqueeze(-1))

    def query_not_mapped(query, key, value, key_mask):
        """{The padding is left out as it should be, and} the queries have lost their feature map: they go in as they
        are, negative numbers included, so that weights can be negative. What did the program do with the queries before
        you mended it?"""
        k = _zeroed(positive(key), key_mask)
        return (query @ (k.mT @ value)) / (query @ k.sum(-2).unsqueeze(-1))

    def rescaled_by_the_lengths(query, key, value, key_mask):
        """You multiply the result by the length with padding and divide by that without. In the example all features
        are alike, so that this makes up for the padding exactly; elsewhere a padded key weighs more or less than a real
        one. If a padded key is kept out of the sums, nothing has to be corrected afterwards. Into which sum does it
        still go?"""
        return WrongAnswers.as_given(query, key, value, key_mask) * (
            key_mask.shape[-1] / key_mask.sum(-1, keepdim=True)
        )

    def softmax_of_similarities(query, key, value, key_mask):
        """You take a softmax of the similarities φ(query) · φ(key), with the mask. Padding is hidden, but the
        similarities are the weights already, and the exponential changes them. The program was linear attention and
        should stay so: which of its lines needs mending?"""
        scores = positive(query) @ positive(key).mT
        return scores.masked_fill(~key_mask, -torch.inf).softmax(-1) @ value

    @family(
        filled_without_an_axis_for_heads=lambda features, mask: features.masked_fill(~mask, 0.0),
        multiplied_without_an_axis_for_heads=lambda features, mask: features * mask,
    )
    def no_axis_for_heads(hidden, query, key, value, key_mask):
        """Your mask has the axes (batch, k_len, 1), and the features have one more, for the heads. Sizes are aligned
        from the end, so that sentences meet heads, and it raises. `key_mask` came with an axis of size 1 for the heads.
        Where did it get lost?"""
        k = hidden(positive(key), _without_an_axis_for_heads(key_mask))
        return _with_sums(query, key, value, key_mask, k=k)

    @family(
        mask_as_an_index=(lambda key_mask: key_mask, "On which axis must k_len stand for them?"),
        turned_mask_as_an_index=(lambda key_mask: key_mask.mT, "Its axes are right for them as they are."),
    )
    def as_an_index(mask, query, key, value, key_mask):
        """You use the mask as an index, and it raises: an index by bools is not stretched to the shape of what it picks
        from, so that each of its sizes must be the tensor's own. `masked_fill` and `where` do stretch it. {}"""
        k = positive(key)
        k[~mask(key_mask)] = 0.0
        return _with_sums(query, key, value, key_mask, k=k)

    def queries_hidden(query, key, value, key_mask):
        """You hide queries or results with the keys' mask. It raises, since there may be another number of queries than
        of keys, and where there is not, some of them are lost. The mask says which *keys* are real; every query gets a
        result. Which tensor alone needs the mask?"""
        q, k = positive(query).masked_fill(~key_mask.mT, 0.0), _zeroed(positive(key), key_mask)
        return (q @ (k.mT @ value)) / (q @ k.sum(-2).unsqueeze(-1))

    @with_text_of(queries_hidden)
    def results_hidden(query, key, value, key_mask):
        return mend_padding.reference(query, key, value, key_mask).masked_fill(~key_mask.mT, 0.0)

    def results_times_mask(query, key, value, key_mask):
        """You multiply queries or results with the keys' mask. It raises, since there may be another number of queries
        than of keys, and where there is not, some of them are lost. The mask says which *keys* are real; every query
        gets a result. Which tensor alone needs the mask?"""
        return linear_attention.reference(query, key, value) * key_mask.mT

    @with_text_of(results_times_mask)
    def queries_times_mask(query, key, value, key_mask):
        return mend_padding.reference(query * key_mask.mT, key, value, key_mask)

    def only_the_padding_in_z(query, key, value, key_mask):
        """Padding is kept out of `S`, and in `z` the mask is the wrong way round: it counts the padding and leaves the
        real keys out. Without padding your result is divided by zero. `True` means that a key is real. Is a `~`
        missing, or one too many?"""
        return _with_sums(query, key, value, key_mask, z=positive(_zeroed(key, key_mask)).masked_fill(key_mask.mT, 0))

    def padding_counted_out_as_ones(query, key, value, key_mask):
        """You take 1 off the normalizer for every padded key. {The key's features are ones, that is right; but} a query
        multiplies them with its own features and adds up, so that each padded key weighs as much as the query's
        features together. Take them off `z`, before the query reads it, or never let them in."""
        q, k = positive(query), positive(_zeroed(key, key_mask))
        counted = (~key_mask).sum(-1, keepdim=True)
        return (q @ (k.mT @ _zeroed(value, key_mask))) / (q @ k.sum(-2).unsqueeze(-1) - counted)

    def features_averaged_in_z(query, key, value, key_mask):
        """`z` is the mean of the keys' features, where `S` is a sum: results come out larger by the number of keys,
        padding included. Values that are all one must stay one. What adds up and does not divide?"""
        k = _zeroed(positive(key), key_mask)
        return _with_sums(query, key, value, key_mask, z=k / k.shape[-2])

    def z_summed_over_features(query, key, value, key_mask):
        """`z` is a sum over the features, one number for each key, (batch, heads, k_len), and it does not fit the
        queries' features: it raises. What is added up in `z` are the keys, feature by feature. Which axis counts
        keys?"""
        q, k = positive(query), _zeroed(positive(key), key_mask)
        return (q @ (k.mT @ value)) / (q @ k.sum(-1).unsqueeze(-1))

    def z_without_a_last_axis(query, key, value, key_mask):
        """`z` has the shape (batch, heads, d_head), and in a product with `@` its last two axes are taken for a matrix:
        it raises. As a column, (d_head, 1), each query can meet it. Which axis did the given program add?"""
        q, k = positive(query), _zeroed(positive(key), key_mask)
        return (q @ (k.mT @ value)) / (q @ k.sum(-2))

    def normalizer_without_its_last_axis(query, key, value, key_mask):
        """The normalizer has one number for each query, (batch, heads, q_len), and the numerator one axis more: aligned
        from the right, queries meet values, and it raises. Which axis of size 1 must the sum keep?"""
        q, k = positive(query), _zeroed(positive(key), key_mask)
        return (q @ (k.mT @ value)) / (q * k.sum(-2, keepdim=True)).sum(-1)

    def products_not_added_up(query, key, value, key_mask):
        """The queries are multiplied with `z` feature by feature, and the products are not added up: there are d_head
        divisors for each query, and it raises. A dot product is one number. What does `@` do that `*` leaves out?"""
        q, k = positive(query), _zeroed(positive(key), key_mask)
        return (q @ (k.mT @ value)) / (q * k.sum(-2, keepdim=True))

    def padding_up_to_the_longest(query, key, value, key_mask):
        """Keys are cut off after the largest number of real keys in the batch, and what is left counts as real: shorter
        sentences keep padding, and with padding in front real keys are lost. The mask says it of every single key. What
        can be done with it in place of a cut?"""
        n = int(key_mask.sum(-1).max())
        return linear_attention.reference(query, key[..., :n, :], value[..., :n, :])

    def values_overwritten(query, key, value, key_mask):
        """{The result is right, and} the values have been written over: the caller finds zeros in the padding, where
        values stood. `masked_fill_`, with its underscore, writes into the tensor that it gets, and so does `value[…] =
        …`. How do you get a new tensor instead?"""
        value.masked_fill_(~key_mask.mT, 0.0)
        return mend_padding.reference(query, key, value, key_mask)

    def exponential_for_the_map(query, key, value, key_mask):
        """Your map is the exponential. It is positive and can be made zero in the padding, but the program's is elu(x)
        + 1, and only that gives its weights. The map must stay as it was: what else hides the padding?"""
        return _with_sums(query, key, value, key_mask, q=query.exp(), k=_zeroed(key.exp(), key_mask))

    def relu_for_the_map(query, key, value, key_mask):
        """Your map is relu(x), so that a key of zeros counts for nothing. But so does every negative feature, and a
        query may be left with 0/0. The map must stay as it was, elu(x) + 1. Where can a zero be written so that no map
        follows?"""
        return _with_sums(query, key, value, key_mask, q=query.relu(), k=_zeroed(key, key_mask).relu())

    def mapped_twice(query, key, value, key_mask):
        """Features have gone through the map again, as when a function that maps queries and keys itself gets features.
        φ(0) is 1, so that the padding is back, and the other features are no longer right. How often is the map
        called?"""
        return linear_attention.reference(positive(query), _zeroed(positive(key), key_mask), value)

    def keys_mapped_twice(query, key, value, key_mask):
        """{The padding is left out as it should be, and} the keys went through the feature map twice. What does the
        name `key` hold when the map is called?"""
        return _with_sums(query, key, value, key_mask, k=_zeroed(positive(positive(key)), key_mask))

    def scaled_query(query, key, value, key_mask):
        """{The padding is left out as it should be, and} the queries are divided by √d_head before the map. That
        belongs to softmax attention; here it bends the features. What did the program do with the queries before you
        mended it?"""
        return mend_padding.reference(query / query.shape[-1] ** 0.5, key, value, key_mask)

    def later_keys_hidden(query, key, value, key_mask):
        """Padding is hidden, and with it what comes after each query, by a triangle. The program was not causal: each
        query met all keys. What alone must be left out?"""
        weights = (positive(query) @ positive(key).mT * key_mask).tril()
        return weights @ value / weights.sum(-1, keepdim=True)

    def mask_on_S(query, key, value, key_mask):
        """You hide padding in `S`, and `S` has no keys any more: they have been added up, and its axes are (d_head,
        d_value). So it raises. What has been added to a sum cannot be found in it. Where do keys still stand one by
        one?"""
        q, k = positive(query), positive(key)
        return (q @ _zeroed(k.mT @ value, key_mask)) / (q @ k.sum(-2).unsqueeze(-1))

    def an_axis_too_many(query, key, value, key_mask):
        """The mask has got a fifth axis, (batch, 1, 1, k_len, 1). Aligned from the right, its sentences no longer meet
        those of the keys, and every sentence is computed with every mask. It has four axes as it comes: which two must
        change places?"""
        return _with_sums(query, key, value, key_mask, k=positive(key) * key_mask.unsqueeze(-1))

    @family(
        one_minus_the_turned_mask=lambda key_mask: 1 - key_mask.mT,
        one_minus_the_mask=lambda key_mask: (1 - key_mask).mT,
    )
    def one_minus_bools(difference, query, key, value, key_mask):
        """`1 - mask` raises for a mask of `True` and `False`: PyTorch has no `-` for them. Which sign turns such a mask
        round?"""
        return _with_sums(query, key, value, key_mask, k=positive(key) * difference(key_mask))

    @family(
        keys_picked_by_the_mask=lambda key_mask: key_mask,
        keys_picked_by_the_turned_mask=lambda key_mask: key_mask.mT,
    )
    def keys_picked(mask, query, key, value, key_mask):
        """You use the mask as an index to pick keys, and it raises: its sizes must be the tensor's own. Nor would the
        picked keys be a tensor of sentences, since each has another number of them. What can be written where a key is
        not real?"""
        return linear_attention.reference(query, key[mask(key_mask)], value)

    def times_the_share_of_real_keys(query, key, value, key_mask):
        """You multiply the result by the share of real keys: values that are all one do not stay one. A key that was
        left out of both sums needs no making up for. Which line comes after the division?"""
        return mend_padding.reference(query, key, value, key_mask) * key_mask.float().mean(-1, keepdim=True)

    def keys_that_are_real_in_every_sentence(query, key, value, key_mask):
        """You keep the keys that are real in every sentence of the batch, and so sentences lose keys of their own. The
        mask has a row for each sentence: nothing is to be gathered over the batch."""
        return mend_padding.reference(query, key, value, key_mask.all(0, keepdim=True))

    def keys_that_are_real_in_any_sentence(query, key, value, key_mask):
        """You keep the keys that are real in any sentence of the batch, and the padding of the others goes in with
        them. The mask has a row for each sentence: nothing is to be gathered over the batch."""
        return mend_padding.reference(query, key, value, key_mask.any(0, keepdim=True))

    def the_first_sentence_only(query, key, value, key_mask):
        """You return the first sentence alone, (heads, q_len, d_value). A `return` inside a loop ends it in its first
        round. Every sentence of the batch has a result."""
        return mend_padding.reference(query, key, value, key_mask)[0]

    def normalized_over_the_queries(query, key, value, key_mask):
        """Each key's weights are divided by their sum over the queries: for a padded key, that is 0/0. A result is a
        mean over keys, so that the weights of each *query* must sum to one. Which axis of the weights counts keys?"""
        weights = positive(query) @ positive(key).mT * key_mask
        return weights / weights.sum(-2, keepdim=True) @ value

    def map_after_the_sum(query, key, value, key_mask):
        """`z` is the map of a sum of keys, where it should be a sum of their features: φ bends, so that the order of
        the two matters. What is done with each key first?"""
        return _with_sums(query, key, value, key_mask, z=positive(_zeroed(key, key_mask).sum(-2, keepdim=True)))

    def z_of_ones(query, key, value, key_mask):
        """`z` counts the real keys, and does not add up their features: every key weighs the same there, and not in
        `S`. Values that are all one must stay one. Which numbers does `S` have for a key?"""
        return _with_sums(query, key, value, key_mask, z=_zeroed(torch.ones_like(key), key_mask))

    def query_missing_in_the_normalizer(query, key, value, key_mask):
        """You divide by the sum of all the keys' features, the same for every query. The weights of a query are its
        products with the keys' features: what must `z` meet before it can divide?"""
        k = _zeroed(positive(key), key_mask)
        return positive(query) @ (k.mT @ value) / k.sum((-2, -1), keepdim=True)

    def multiplied_by_the_normalizer(query, key, value, key_mask):
        """You multiply by the normalizer, where you should divide by it: values that are all one come out as its
        square. What did the given program do with it?"""
        q, k = positive(query), _zeroed(positive(key), key_mask)
        return (q @ (k.mT @ value)) * (q @ k.sum(-2).unsqueeze(-1))

    def keys_not_turned(query, key, value, key_mask):
        """In `S` the keys' features, (k_len, d_head), are multiplied with the values, (k_len, d_value), as they are: it
        raises. Keys are added up in `S`, so that k_len must stand in the middle. What did the given program turn?"""
        return positive(query) @ (_zeroed(positive(key), key_mask) @ value)

    def mean_of_the_real_values(query, key, value, key_mask):
        """You return the plain mean of the real values: every key weighs the same, for every query. In attention a
        query chooses. Where do queries and keys come in?"""
        mean = _zeroed(value, key_mask).sum(-2, keepdim=True) / key_mask.sum(-1, keepdim=True)
        return mean.expand(*query.shape[:-1], -1)

    def softmax_with_the_mask_and_no_scale(query, key, value, key_mask):
        """This is softmax attention with the mask, and without its scale. Padding is hidden, but the weights are not
        those of linear attention. The program was linear attention and should stay so: which of its lines needs
        mending?"""
        return (query @ key.mT).masked_fill(~key_mask, -torch.inf).softmax(-1) @ value

    def scaled_softmax_of_similarities(query, key, value, key_mask):
        """You give the features to softmax attention, with the mask. Padding is hidden, but φ(query) · φ(key) are the
        weights already, and scale and exponential change them. The program was linear attention and should stay so:
        which of its lines needs mending?"""
        return WrongAnswers.softmax_with_the_mask(positive(query), positive(key), value, key_mask)

    def minus_infinity_in_the_values(query, key, value, key_mask):
        """The values in the padding are −∞, and so is every sum that they go into. That belongs before a softmax, whose
        exponential makes zero of it. Which number adds nothing to a sum?"""
        return linear_attention.reference(query, key, value.masked_fill(~key_mask.mT, -torch.inf))

    def divided_by_the_query(query, key, value, key_mask):
        """You divide by the sum of the query's features, and the keys' are missing there: results grow with the number
        of keys. The weights of a query are its products with the keys' features. What is `z` for?"""
        q = positive(query)
        return q @ (_zeroed(positive(key), key_mask).mT @ value) / q.sum(-1, keepdim=True)

    def divided_by_all_keys(query, key, value, key_mask):
        """You divide by the number of keys, padding included. Results are no means then, and shrink with padding. The
        normalizer is a sum of features; which keys may it count?"""
        return positive(query) @ (_zeroed(positive(key), key_mask).mT @ value) / key.shape[-2]

    def weights_returned(query, key, value, key_mask):
        """You return the weights, (batch, heads, q_len, k_len){, and padding has none: that is right}. The values are
        still to be blended with them."""
        weights = positive(query) @ positive(key).mT * key_mask
        return weights / weights.sum(-1, keepdim=True)

    def S_returned(query, key, value, key_mask):
        """You return the sum `S`, (batch, heads, d_head, d_value), before any query has read it. What comes after it in
        the given program?"""
        return _zeroed(positive(key), key_mask).mT @ value

    def padding_counted_in_again(query, key, value, key_mask):
        """You count the padding into `z` once more, where it was to be taken out: results shrink twice as fast. The
        features of a zero key are 1. Which sign takes them out of a sum that has them?"""
        zeroed = positive(_zeroed(key, key_mask))
        z = zeroed + (~key_mask.mT).to(zeroed)
        return _with_sums(query, key, value, key_mask, z=z)

    def values_mapped_too(query, key, value, key_mask):
        """{The padding is left out as it should be, and} the values go through the feature map as well. A value is what
        is carried, and must arrive as it is. Which two of the three did the given program map?"""
        return mend_padding.reference(query, key, positive(value), key_mask)

    def map_of_the_products(query, key, value, key_mask):
        """You apply the map to the products of queries and keys. Padding is hidden, but the weights are others: the
        program maps queries and keys first, and multiplies their features. Which of its lines needs mending?"""
        weights = positive(query @ key.mT) * key_mask
        return weights / weights.sum(-1, keepdim=True) @ value

    def mask_expanded_along_the_features(query, key, value, key_mask):
        """You expand the mask, (batch, 1, 1, k_len), to the shape of the keys, (batch, heads, k_len, d_head): its last
        axis counts keys where theirs counts features, and it raises. On which axis must the mask have its k_len?"""
        k = positive(key).masked_fill(~key_mask.expand_as(key), 0)
        return _with_sums(query, key, value, key_mask, k=k)

    def if_of_the_mask(query, key, value, key_mask):
        """Python's words `if`, `and`, `or` and `not` want one `True` or `False`, and the mask holds one for each key:
        it raises. Which functions of PyTorch decide for each key by itself?"""
        return mend_padding.reference(query, key, value, key_mask) if key_mask else value

    def softmax_for_the_map(query, key, value, key_mask):
        """Your map is a softmax over the features. It is positive and can be made zero in the padding, but the
        program's is elu(x) + 1, and only that gives its weights. The map must stay as it was."""
        return _with_sums(query, key, value, key_mask, q=query.softmax(-1), k=_zeroed(key.softmax(-1), key_mask))

    def divided_before_the_query(query, key, value, key_mask):
        """`S` is divided by `z` before a query has read either: each feature is divided by its own sum. A query must
        meet both first, and then divide one number by the other. What is the order in the given program?"""
        k = _zeroed(positive(key), key_mask)
        return positive(query) @ ((k.mT @ value) / k.sum(-2).unsqueeze(-1))

    def query_not_mapped_in_the_normalizer(query, key, value, key_mask):
        """In the normalizer the queries go in as they are, without the feature map, and so it is not the sum of the
        weights. The same features belong above and below."""
        k = _zeroed(positive(key), key_mask)
        return (positive(query) @ (k.mT @ value)) / (query @ k.sum(-2).unsqueeze(-1))

    def query_mapped_in_the_normalizer_only(query, key, value, key_mask):
        """In the numerator the queries go in as they are, without the feature map; only the normalizer has their
        features. The same ones belong above and below."""
        k = _zeroed(positive(key), key_mask)
        return (query @ (k.mT @ value)) / (positive(query) @ k.sum(-2).unsqueeze(-1))
