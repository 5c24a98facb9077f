"""One step of a model that writes: attention of the newest token, with a cache and rotary positions."""

import torch

from ..ch9_today.rotate import halves, rotate
from ..common_mistakes import fixed_length
from ..exercise import exercise, family
from ..probes import strided_with_whole_rows


def _new_token_and_cache(draw, batch=3, heads=7, past=5, d_head=4):  # no other size is d_head / 2
    new = [draw(batch, heads, 1, d_head) for _ in range(3)]
    return *new, draw(batch, heads, past, d_head), draw(batch, heads, past, d_head), 20.0


def _rotate_by_position(x, position, base):
    return rotate.reference(x, torch.tensor([position], device=x.device), base)


def position_after_cache(keys):
    """Count the tokens of the cache: their number is the position of the new token."""
    return keys.shape[-2]


def rotate_query(query, position, base):
    """Rotate the query by its position."""
    return _rotate_by_position(query, position, base)


def rotate_key(key, position, base):
    """Rotate the new key by its position."""
    return _rotate_by_position(key, position, base)


def append_to_cache(past, new):
    """Append the new vectors to those in the cache."""
    return torch.cat([past, new], dim=-2)


def attention_weights(query, keys):
    """Divide the scores by √d_head, and apply the softmax."""
    return (query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(dim=-1)


def blend_values(weights, values):
    """Add up the values, each times its weight."""
    return weights @ values


@exercise(
    inputs=_new_token_and_cache,
    axes={
        "query": "batch heads 1 d_head",
        "key": "batch heads 1 d_head",
        "value": "batch heads 1 d_head",
        "keys": "batch heads past d_head",
        "values": "batch heads past d_head",
        "return": "batch heads 1 d_head, batch heads k_len d_head, batch heads k_len d_head",
    },
    hints=(
        "Five tokens are in the cache. What is the position of the new token, counted from 0?",
        "Rotate the query and the key of the new token by the token's position; each key in the cache has already "
        "been rotated by its own position. Values are never rotated. The new token sees itself, too.",
        "`position = torch.tensor([keys.shape[…]])`, `keys = torch.cat([keys, rotate(key, …)], dim=…)`, the same for "
        "`values`, then softmax and blend as always: `return …, keys, values`",
    ),
    make_strided=strided_with_whole_rows,
)
def cached_step(
    query,
    key,
    value,
    keys,
    values,
    base,
    *,
    position=position_after_cache,
    turn_query=rotate_query,
    turn_key=rotate_key,
    longer_keys=append_to_cache,
    longer_values=append_to_cache,
    weights=attention_weights,
    blend=blend_values,
):
    """Return the result of attention for the newest token, and the caches of keys and values with the token's rotated
    key and its value at the end."""
    new_position = position(keys)
    keys, values = longer_keys(keys, turn_key(key, new_position, base)), longer_values(values, value)
    return blend(weights(turn_query(query, new_position, base), keys), values), keys, values


cached_step.example("an empty cache", lambda draw: _new_token_and_cache(draw, past=0), plain=True)
cached_step.example("twenty tokens in the cache", lambda draw: _new_token_and_cache(draw, batch=1, past=20), plain=True)
cached_step.example("300 tokens in the cache", lambda draw: _new_token_and_cache(draw, batch=1, heads=2, past=300))


@cached_step.right
class RightAnswers:
    def by_pytorch_attention(query, key, value, keys, values, base):
        position = torch.tensor([keys.shape[2]], device=keys.device)
        keys, values = torch.cat((keys, rotate.reference(key, position, base)), 2), torch.cat((values, value), 2)
        query = rotate.reference(query, position, base)
        return torch.nn.functional.scaled_dot_product_attention(query, keys, values), keys, values

    def both_rotated_at_once(query, key, value, keys, values, base):
        position = torch.full((1,), keys.shape[-2], device=keys.device)
        query, key = rotate.reference(torch.cat([query, key]), position, base).chunk(2)
        keys, values = torch.cat([keys, key], dim=-2), torch.cat([values, value], dim=-2)
        scores = torch.einsum("bhqd,bhkd->bhqk", query, keys) * query.shape[-1] ** -0.5
        return torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), values), keys, values


@cached_step.wrong(stage="position")
class Position:
    def one_position_late(keys):
        """The position of your new token is too large by one. Positions are counted from 0: with five tokens in the
        cache, which position does the sixth have?"""
        return keys.shape[-2] + 1

    def one_position_early(keys):
        """Your new token has the position of the last token in the cache. With five tokens in the cache, which
        positions are in use?"""
        return keys.shape[-2] - 1

    def rotated_backwards(keys):
        """You rotate query and new key in the wrong direction: by minus their position, or with the signs of the sines
        exchanged. The keys of the cache have been rotated forwards."""
        return -keys.shape[-2]


def _with_other_keys_for_scores(query, key, value, keys, values, base, *, prepare_stored_key, prepare_seen_keys):
    """Compute a step in which the query sees keys other than those in the cache."""
    new_position = keys.shape[-2]
    keys, values = append_to_cache(keys, prepare_stored_key(key, new_position, base)), append_to_cache(values, value)
    return (
        attention_weights(_rotate_by_position(query, new_position, base), prepare_seen_keys(keys, base)) @ values,
        keys,
        values,
    )


def _keep_unrotated(key, position, base):
    return key


def _rotate_by_index(keys, base):
    return rotate.reference(keys, torch.arange(keys.shape[-2], device=keys.device), base)


def _rotate_past_by_index(keys, base):
    return append_to_cache(_rotate_by_index(keys[:, :, :-1], base), keys[:, :, -1:])


def _rotate_last_by_index(keys, base):
    return append_to_cache(keys[:, :, :-1], _rotate_by_position(keys[:, :, -1:], keys.shape[-2] - 1, base))


def table_of_fixed_length(query, key, value, keys, values, base):
    if keys.shape[-2] >= 64:
        raise IndexError(f"index {keys.shape[-2]} is out of bounds for dimension 0 with size 64")
    return cached_step.reference(query, key, value, keys, values, base)


def _add_mistake_with_rotated_value(mistaken):
    """Two things go wrong here. You rotate the value, but only queries and keys must be rotated. {}"""
    stage = cached_step.mistakes[mistaken.__name__].stage

    def with_the_value_rotated(query, key, value, keys, values, base):
        new_position = mistaken(keys) if stage == "position" else position_after_cache(keys)
        value = _rotate_by_position(value, new_position, base)
        return cached_step.reference(query, key, value, keys, values, base, **{stage: mistaken})

    with_the_value_rotated.__name__ = f"value_rotated_and_{mistaken.__name__}"
    with_the_value_rotated.__doc__ = _add_mistake_with_rotated_value.__doc__.format(mistaken.__doc__)
    cached_step.mistake(with_the_value_rotated)


@cached_step.wrong(stage="position", alone=True)
class PositionAlone:
    def one_is_the_position(keys):
        """Your new token is always at position 1. Do you count along the axis of the new token, which has size 1? Count
        the tokens of the cache, which come before the new token."""
        return 1

    def one_position_early_unless_empty(keys):
        """Your new token has the position of the last token in the cache. This position is right only if the cache is
        empty. With five tokens in the cache, which positions are in use?"""
        return max(keys.shape[-2] - 1, 0)

    @family(
        heads_counted=(1, "the number of heads", "counted"),
        features_counted=(-1, "d_head", "counted"),
        batch_counted=(0, "the size of the batch", "counted"),
    )
    def another_axis(axis, keys):
        """You use {} as the position. A different axis counts the tokens of the cache: which axis, {} from the end?"""
        return keys.shape[axis]


@cached_step.wrong(stage="turn_query")
class TurnQuery:
    def query_not_rotated(query, position, base):
        """Your scores are the same as if the query were not rotated. Either you leave the query as it is, or you rotate
        it by position 0, or you rotate the query and all keys by the same position, which changes no score. The keys of
        the cache have already been rotated. Which two tensors are new?"""
        return query


@cached_step.wrong(stage="turn_query", alone=True)
class TurnQueryAlone:
    def query_one_position_late(query, position, base):
        """You rotate the query one position too far, but not the new key. Do you count the tokens of the cache again
        after you append the new key?"""
        return _rotate_by_position(query, position + 1, base)

    def query_one_position_early(query, position, base):
        """You rotate the query by the position of the last token in the cache, but the new key by its own position.
        Query and key belong to the same token: which position does that token have?"""
        return _rotate_by_position(query, position - 1, base)

    def query_rotated_backwards(query, position, base):
        """You rotate the query in the wrong direction, by minus its position. A score depends on a distance only if
        query and key are rotated in the *same* direction: only then does the difference of the positions remain."""
        return _rotate_by_position(query, -position, base)

    def query_rotated_twice(query, position, base):
        """You rotate the query twice, by twice its position in all. Once is enough: which line rotates it, and which
        line rotates it again?"""
        return _rotate_by_position(query, 2 * position, base)


@cached_step.wrong(stage="turn_key")
class TurnKey:
    def key_not_rotated(key, position, base):
        """Your new key is not rotated: the cache stores it as if it were at position 0. Which tensors must be rotated
        by the position?"""
        return key


@cached_step.wrong(stage="turn_key", alone=True)
class TurnKeyAlone:
    def key_one_position_late(key, position, base):
        """You rotate the new key one position too far, but not the query. Query and key belong to the same token: when
        do you count the tokens of the cache?"""
        return _rotate_by_position(key, position + 1, base)

    def key_one_position_early(key, position, base):
        """You rotate the new key by the position of the last token in the cache, but the query by its own position.
        Query and key belong to the same token: which position does that token have?"""
        return _rotate_by_position(key, position - 1, base)

    def key_rotated_backwards(key, position, base):
        """You rotate the new key in the wrong direction, by minus its position. A score depends on a distance only if
        query and key are rotated in the *same* direction: only then does the difference of the positions remain."""
        return _rotate_by_position(key, -position, base)

    def key_rotated_twice(key, position, base):
        """You rotate the new key twice, by twice its position in all. Once is enough: which line rotates it, and which
        line rotates it again?"""
        return _rotate_by_position(key, 2 * position, base)


@cached_step.wrong(stage="longer_keys")
class LongerKeys:
    def key_in_front(past, new):
        """The new key is at the front of the cache but its value is at the end, so each weight multiplies the value of
        a different token. Both caches grow at the end."""
        return torch.cat([new, past], dim=-2)


@cached_step.wrong(stage="longer_keys", alone=True)
class LongerKeysAlone:
    @family(
        joined_along_the_heads=(1, "heads"),
        joined_along_the_features=(-1, "features"),
        joined_along_the_batch=(0, "batch, as `cat` does when no `dim` is given"),
    )
    def joined_along(axis, past, new):
        """You join the keys along the axis of the {}. `cat` needs all other axes to have equal sizes, but the cache has
        more tokens than the new key. Along which axis does a cache grow?"""
        return torch.cat([past, new], dim=axis)

    def stacked(past, new):
        """`stack` needs tensors of equal shape, and joins them along a new axis. A cache grows along an axis that it
        already has: which function joins along such an axis?"""
        return torch.stack([past, new], dim=-2)

    @family(
        cat_without_a_list=(lambda past, new: torch.cat(past, new, dim=-2), "."),
        cat_without_a_list_or_a_name=(lambda past, new: torch.cat(past, new, -2), ", with the axis last."),
    )
    def no_brackets(spelling, past, new):
        """`cat` expects the tensors in a list or tuple, as its first argument, but you pass them separately{} Which
        brackets are missing?"""
        return spelling(past, new)

    def append_called(past, new):
        """A tensor has no `append`: it cannot grow. Join the old tensor and the new one into a longer tensor."""
        return past.append(new)

    def written_past_the_end(past, new):
        """You write the new key to a place that the cache does not have yet: with five tokens, index 5 is past the end.
        Which function joins the cache and the new key into a longer tensor?"""
        past[:, :, past.shape[-2]] = new[:, :, 0]
        return past


@cached_step.wrong(stage="longer_values")
class LongerValues:
    def value_in_front(past, new):
        """The new value is at the front of the cache but its key is at the end, so each weight multiplies the value of
        a different token. Both caches grow at the end."""
        return torch.cat([new, past], dim=-2)


@cached_step.wrong(stage="longer_values", alone=True)
class LongerValuesAlone:
    @family(
        values_joined_along_the_heads=(1, "heads"),
        values_joined_along_the_features=(-1, "features"),
        values_joined_along_the_batch=(0, "batch, as `cat` does when no `dim` is given"),
    )
    def joined_along(axis, past, new):
        """You join the values along the axis of the {}. `cat` needs all other axes to have equal sizes, but the cache
        has more tokens than the new value. Along which axis does a cache grow?"""
        return torch.cat([past, new], dim=axis)


@cached_step.wrong(stage="weights")
class Weights:
    def softmax_over_the_queries(query, keys):
        """All weights are 1, so the values are simply added up. Does your softmax run along the axis of the queries,
        which has size 1? The weights of *all keys* must sum to one: on which axis are the keys?"""
        return (query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(dim=-2)

    def softmax_over_the_heads(query, keys):
        """Your softmax runs along the axis of the heads. Each head has its own weights, and the weights of *all keys*
        must sum to one: on which axis are the keys?"""
        return (query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(dim=1)

    def oldest_alone_seen(query, keys):
        """Your token sees only the oldest token. In a causal mask, such as that of `is_causal=True`, the first query
        sees only the first key, and here there is only one query. Is there any token in the cache that the newest token
        must not see?"""
        return torch.eye(1, keys.shape[-2], dtype=query.dtype, device=query.device).expand(*query.shape[:-1], -1)

    def scores_not_divided(query, keys):
        """The scores are not divided by √d_head. Where in your code do you use the size of a head?"""
        return (query @ keys.transpose(-2, -1)).softmax(dim=-1)

    def divided_by_d_head(query, keys):
        """You divide the scores by d_head instead of its root. For heads of 64 features, you divide by 64 instead of
        8."""
        return (query @ keys.transpose(-2, -1) / query.shape[-1]).softmax(dim=-1)

    def scores_for_weights(query, keys):
        """You use the scores themselves as weights: the softmax is missing. What must the weights of a token sum to?"""
        return query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5

    def weights_divided(query, keys):
        """You divide after the softmax, so the weights sum to less than one. √d_head keeps the scores small: where does
        the division belong?"""
        return (query @ keys.transpose(-2, -1)).softmax(dim=-1) / query.shape[-1] ** 0.5


@cached_step.wrong(stage="weights", alone=True)
class WeightsAlone:
    def multiplied_by_the_root(query, keys):
        """You multiply the scores by √d_head instead of dividing them. What does the root keep small?"""
        return (query @ keys.transpose(-2, -1) * query.shape[-1] ** 0.5).softmax(dim=-1)

    @family(
        divided_by_the_tokens=(lambda query, keys: keys.shape[-2], "keys", "axis holds the features"),
        divided_by_the_heads=(lambda query, keys: query.shape[1], "heads", "axis holds the features"),
    )
    def divided_by_another_size(size, query, keys):
        """You divide the scores by the root of the number of {}. A score sums over the features: which {}?"""
        return (query @ keys.transpose(-2, -1) / size(query, keys) ** 0.5).softmax(dim=-1)

    def weights_divided_again(query, keys):
        """You divide both the scores and the weights by √d_head, so the weights sum to less than one. One division is
        enough: on which side of the softmax does it belong?"""
        return attention_weights(query, keys) / query.shape[-1] ** 0.5

    def softmax_over_the_batch(query, keys):
        """Your softmax runs along the axis of the batch, so the weights of one text depend on other texts. The weights
        of *all keys* must sum to one: on which axis are the keys?"""
        return (query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(dim=0)

    def itself_masked(query, keys):
        """Your mask hides the newest key, so the token does not see itself. What does a causal mask hide: the token
        itself, or only the tokens after it?"""
        scores = query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5
        scores[..., -1] = -torch.inf
        return scores.softmax(dim=-1)

    def all_keys_weigh_the_same(query, keys):
        """All keys get the same weight: you return the mean of the values. Where do you use the query?"""
        return (0 * (query @ keys.transpose(-2, -1))).softmax(dim=-1)

    def powers_not_divided(query, keys):
        """You use the exponentials of the scores as weights, without dividing by their sum. What must the weights of a
        token sum to?"""
        return (query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5).exp()

    def pair_taken_for_a_tensor(query, keys):
        """With an axis, `max` returns a pair, the largest numbers and their indices, and you subtract the pair. Which
        part of the pair do you need?"""
        scores = query @ keys.transpose(-2, -1)
        return scores - scores.max(dim=-1, keepdim=True)

    def keys_not_transposed(query, keys):
        """You multiply the query by the keys without a transpose. A score multiplies features by features: on which
        axis of the right factor must the features be?"""
        return query @ keys

    def keys_transposed_too_far(query, keys):
        """In the keys, you exchange axes that must stay in place, those of the batch or of the heads: `.T` reverses all
        axes. Which two axes must change places?"""
        return query @ keys.permute(3, 2, 1, 0)

    def heads_and_tokens_of_keys_exchanged(query, keys):
        """You exchange the axes of heads and tokens in the keys, instead of tokens and features. A score multiplies
        features by features: which two axes must change places?"""
        return query @ keys.transpose(1, 2)


@cached_step.wrong(stage="blend")
class Blend:
    def itself_not_seen(weights, values):
        """The new token does not see itself: you blend before its key and its value are in the cache. Which step must
        come first?"""
        others = weights[..., :-1]  # the softmax over the other tokens; without other tokens, an empty sum
        shares = others / others.sum(dim=-1, keepdim=True) if others.shape[-1] else others
        return shares @ values[..., :-1, :]


@cached_step.wrong(stage="blend", alone=True)
class BlendAlone:
    def all_axes_of_one_lost(weights, values):
        """`squeeze()` without an argument removes every axis of size 1, including the axis of the token. The result
        keeps four axes: (batch, heads, 1, d_head)."""
        return (weights @ values).squeeze()

    def heads_merged(weights, values):
        """You merge the heads in the blended values. Merging comes later, outside this function: here the result has
        the shape (batch, heads, 1, d_head)."""
        return (weights @ values).transpose(1, 2).flatten(-2)

    def heads_after_the_token(weights, values):
        """In the blended values, the axes of the heads and of the token have changed places. The result must have the
        shape (batch, heads, 1, d_head)."""
        return (weights @ values).transpose(1, 2)


@cached_step.wrong
class WrongAnswers:
    def neither_rotated(query, key, value, keys, values, base):
        """Your result is the same as if neither the query nor the new key were rotated. Either you rotate neither of
        the two, or you rotate both by position 0, or, for the scores, you rotate the query and all keys by the same
        position, which changes no score. At which position is the new token, and which tensors have not been rotated
        yet?"""
        keys, values = append_to_cache(keys, key), append_to_cache(values, value)
        return attention_weights(query, keys) @ values, keys, values

    def cache_rotated_again(query, key, value, keys, values, base):
        """You rotate the keys of the cache, but each of them was already rotated when it was new. The stored keys are
        ready for use: which tensor is new in this step?"""
        positions = torch.arange(keys.shape[-2] + 1, device=keys.device)
        keys, values = rotate.reference(append_to_cache(keys, key), positions, base), append_to_cache(values, value)
        return attention_weights(_rotate_by_position(query, len(positions) - 1, base), keys) @ values, keys, values

    def all_rotated_again(query, key, value, keys, values, base):
        """You rotate the new key, append it to the cache, and rotate all keys of the cache once more. Each key was
        rotated when it was new, and once is enough. Which of your rotations is one too many?"""
        positions = torch.arange(keys.shape[-2] + 1, device=keys.device)
        keys = rotate.reference(
            append_to_cache(keys, _rotate_by_position(key, len(positions) - 1, base)), positions, base
        )
        values = append_to_cache(values, value)
        return attention_weights(_rotate_by_position(query, len(positions) - 1, base), keys) @ values, keys, values

    def all_rotated_again_for_scores(query, key, value, keys, values, base):
        """{The cache that you return is right.} For the scores you rotate the keys of the cache once more, but each of
        them was already rotated when it was new. Does the cache hold unrotated keys or rotated keys?"""
        return _with_other_keys_for_scores(
            query,
            key,
            value,
            keys,
            values,
            base,
            prepare_stored_key=_rotate_by_position,
            prepare_seen_keys=_rotate_by_index,
        )

    def past_rotated_again_for_scores(query, key, value, keys, values, base):
        """{The cache that you return is right.} For the scores you rotate the keys of the earlier tokens once more, but
        each of these keys was already rotated when it was new. Which key has not been rotated yet?"""
        return _with_other_keys_for_scores(
            query,
            key,
            value,
            keys,
            values,
            base,
            prepare_stored_key=_rotate_by_position,
            prepare_seen_keys=_rotate_past_by_index,
        )

    def cache_stored_unrotated(query, key, value, keys, values, base):
        """You store the new key unrotated, and rotate all keys for the scores. That would be right for a cache of
        unrotated keys. In this cache, each key was rotated when it was new, so your scores rotate it twice. In which
        form must you store the new key?"""
        return _with_other_keys_for_scores(
            query,
            key,
            value,
            keys,
            values,
            base,
            prepare_stored_key=_keep_unrotated,
            prepare_seen_keys=_rotate_by_index,
        )

    def key_stored_unrotated(query, key, value, keys, values, base):
        """{The result of attention is right, but} the key that you store is not rotated. The next step expects rotated
        keys in the cache. Which of your two keys, the one before the rotation or the one after it, goes into the
        cache?"""
        return _with_other_keys_for_scores(
            query,
            key,
            value,
            keys,
            values,
            base,
            prepare_stored_key=_keep_unrotated,
            prepare_seen_keys=_rotate_last_by_index,
        )

    def rotated_after_appending(query, key, value, keys, values, base):
        """You rotate all keys by the position of the new token, but those of the cache have already been rotated, each
        by its own position. Do you append the new key first, and rotate afterwards? Which of these two steps must come
        first?"""
        new_position = keys.shape[-2]
        keys, values = (
            _rotate_by_position(append_to_cache(keys, key), new_position, base),
            append_to_cache(values, value),
        )
        return attention_weights(_rotate_by_position(query, new_position, base), keys) @ values, keys, values

    def value_rotated(query, key, value, keys, values, base):
        """You rotate the value as well. Positions affect only the scores, through queries and keys: the values stay as
        they are."""
        new_position = keys.shape[-2]
        keys, values = (
            append_to_cache(keys, _rotate_by_position(key, new_position, base)),
            append_to_cache(values, _rotate_by_position(value, new_position, base)),
        )
        return attention_weights(_rotate_by_position(query, new_position, base), keys) @ values, keys, values

    def cache_returned_unchanged(query, key, value, keys, values, base):
        """{The result of attention is right, but} you return the cache as it came in. The next step needs this token's
        key and value too."""
        blend, *_ = cached_step.reference(query, key, value, keys, values, base)
        return blend, keys, values

    def only_itself(query, key, value, keys, values, base):
        """Your token sees only itself, so you return its own value. What are the keys of the cache for?"""
        new_position = keys.shape[-2]
        return (
            value,
            append_to_cache(keys, _rotate_by_position(key, new_position, base)),
            append_to_cache(values, value),
        )

    def both_in_front(query, key, value, keys, values, base):
        """The new key and value are at the front of the cache. The blend does not depend on the order of the keys, but
        a cache keeps the order of the text: the newest token comes last."""
        new_position = keys.shape[-2]
        keys, values = (
            torch.cat([_rotate_by_position(key, new_position, base), keys], dim=-2),
            torch.cat([value, values], dim=-2),
        )
        return attention_weights(_rotate_by_position(query, new_position, base), keys) @ values, keys, values

    def pairs_in_halves(query, key, value, keys, values, base):
        """You pair feature i with feature i + d_head/2. Here neighbouring features form a pair, as in exercise 9.1: use
        your own `rotate`."""
        new_position = torch.tensor([keys.shape[-2]], device=keys.device)
        keys, values = append_to_cache(keys, halves(key, new_position, base)), append_to_cache(values, value)
        return attention_weights(halves(query, new_position, base), keys) @ values, keys, values

    def position_is_a_plain_number(query, key, value, keys, values, base):
        """You index a whole number as if it were a tensor. Do you pass `keys.shape[…]` itself to `rotate` as its
        positions? `rotate` expects a tensor of the shape (seq,), one position for each token, and indexes this tensor
        with `[:, None]`. How many tokens do you pass here?"""
        new_position = keys.shape[-2]
        # a `rotate` that follows its hint begins with this index
        return _rotate_by_position(query, new_position[:, None], base)

    def position_without_an_axis(query, key, value, keys, values, base):
        """You index a tensor without axes as if it had one. Do you pass `torch.tensor(keys.shape[…])` to `rotate` as
        its positions? This tensor has no axis, but `rotate` expects the shape (seq,), one position for each token, even
        for a single token. Which shape does `torch.tensor([5])` have?"""
        new_position = torch.tensor(keys.shape[-2], device=keys.device)
        return _rotate_by_position(query, new_position[:, None], base)

    def position_in_a_list(query, key, value, keys, values, base):
        """You index a list as if it were a tensor. Do you pass `[keys.shape[…]]` to `rotate` as its positions? `rotate`
        expects a tensor of the shape (seq,): which function makes a tensor from a list?"""
        new_position = [keys.shape[-2]]
        return _rotate_by_position(query, new_position[:, None], base)

    def base_for_the_positions(query, key, value, keys, values, base):
        """You index a floating-point number as if it were a tensor. Do you pass such a number, perhaps the base, to
        `rotate` where it expects the positions? `rotate` has the arguments `x`, `positions` and `base`, in this
        order."""
        return _rotate_by_position(query, base[:, None], base)

    def rotate_without_an_argument(query, key, value, keys, values, base):
        """`rotate` expects three arguments, but you pass two: which tensor, by which positions, and with which base?"""
        return rotate.reference(query, base)

    @family(
        all_positions_for_one_token=(1, "all tokens", "what shape must `positions` have"),
        past_positions_for_one_token=(0, "the cache's tokens", "which number comes after those of the cache"),
    )
    def positions_for_one_token(n_new, query, key, value, keys, values, base):
        """You rotate the single query and the single key by the positions of {}, so you get a query and a key for each
        of these positions. There is one new token, at one position: {}?"""
        positions = torch.arange(keys.shape[-2] + n_new, device=keys.device)
        keys, values = append_to_cache(keys, rotate.reference(key, positions, base)), append_to_cache(values, value)
        return attention_weights(rotate.reference(query, positions, base), keys) @ values, keys, values

    def all_positions_for_the_query(query, key, value, keys, values, base):
        """You rotate the single query by the positions of all tokens, so you get a query for each of these positions.
        There is one new token, at one position: what shape must `positions` have?"""
        positions = torch.arange(keys.shape[-2] + 1, device=keys.device)
        keys, values = (
            append_to_cache(keys, _rotate_by_position(key, len(positions) - 1, base)),
            append_to_cache(values, value),
        )
        return attention_weights(rotate.reference(query, positions, base), keys) @ values, keys, values

    @family(
        base_always_10000=(10000.0, "10,000", "The keys of the cache have been rotated with"),
        base_always_100000=(100000.0, "100,000", "This model has that base, but other models have"),
    )
    def fixed_base(fixed, query, key, value, keys, values, base):
        """Your base is always {}, whatever `base` is. {} a different base: where do you use the argument `base`?"""
        return cached_step.reference(query, key, value, keys, values, fixed)

    def halves_for_the_query_alone(query, key, value, keys, values, base):
        """In the new key you pair neighbouring features, but in the query you pair feature i with feature i + d_head/2.
        Rotate both with the same function, `rotate` of exercise 9.1."""
        new_position = torch.tensor([keys.shape[-2]], device=keys.device)
        keys, values = append_to_cache(keys, rotate.reference(key, new_position, base)), append_to_cache(values, value)
        return attention_weights(halves(query, new_position, base), keys) @ values, keys, values


@cached_step.wrong
class Cache:
    """Mistakes in the cache."""

    def added_to_each_token(query, key, value, keys, values, base):
        """`+` adds the new key and value to those of every token, and the cache does not get longer. Which function
        appends one tensor to another?"""
        new_position = keys.shape[-2]
        keys, values = keys + _rotate_by_position(key, new_position, base), values + value
        return attention_weights(_rotate_by_position(query, new_position, base), keys) @ values, keys, values

    def keys_alone_grow(query, key, value, keys, values, base):
        """When you blend, the new key is in the cache but the new value is not: there are more weights than values.
        What must you do with the new value before you blend?"""
        new_position = keys.shape[-2]
        keys = append_to_cache(keys, _rotate_by_position(key, new_position, base))
        return attention_weights(_rotate_by_position(query, new_position, base), keys) @ values, keys, values

    def values_alone_grow(query, key, value, keys, values, base):
        """When you blend, the new value is in the cache, but you computed the scores without the new key: there are
        fewer weights than values. What must you do with the new key before you compute the scores?"""
        new_position = keys.shape[-2]
        values = append_to_cache(values, value)
        return attention_weights(_rotate_by_position(query, new_position, base), keys) @ values, keys, values

    def cache_never_longer(query, key, value, keys, values, base):
        """The cache stays unchanged, so neither the new token nor the next one sees the new key. Do you call
        `torch.cat`? `cat` returns a new tensor and changes nothing else: to which name do you assign the result?"""
        return attention_weights(_rotate_by_position(query, keys.shape[-2], base), keys) @ values, keys, values

    def oldest_left_out(query, key, value, keys, values, base):
        """For each new token you drop the oldest, so the cache never gets longer. A cache of fixed length is a window,
        but here the new token attends to all tokens."""
        new_position = keys.shape[-2]
        keys, values = (
            append_to_cache(keys[:, :, 1:], _rotate_by_position(key, new_position, base)),
            append_to_cache(values[:, :, 1:], value),
        )
        return attention_weights(_rotate_by_position(query, new_position, base), keys) @ values, keys, values

    def last_overwritten(query, key, value, keys, values, base):
        """You overwrite the last key and value of the cache with the new ones, in the caller's tensors. The cache must
        get longer by one, and the old key and value are still needed."""
        new_position = keys.shape[-2]
        keys[:, :, -1:], values[:, :, -1:] = _rotate_by_position(key, new_position, base), value
        return attention_weights(_rotate_by_position(query, new_position, base), keys) @ values, keys, values

    def empty_cache_sent_back(query, key, value, keys, values, base):
        """When the cache is empty, you return it empty. The very first token has a key and a value too: the next token
        must see them. Does an empty cache need a special case?"""
        if not keys.shape[-2]:
            return value, keys, values
        return cached_step.reference(query, key, value, keys, values, base)

    def past_rotated_by_the_new_position(query, key, value, keys, values, base):
        """You rotate the keys of the cache by the position of the new token, and append the new key unrotated. Do the
        reverse: which keys have already been rotated, and which key has not?"""
        new_position = keys.shape[-2]
        keys, values = (
            append_to_cache(_rotate_by_position(keys, new_position, base), key),
            append_to_cache(values, value),
        )
        return attention_weights(_rotate_by_position(query, new_position, base), keys) @ values, keys, values

    def past_rotated_and_new_key_unrotated(query, key, value, keys, values, base):
        """You rotate the keys of the cache by their positions, and append the new key unrotated. Do the reverse: which
        keys have already been rotated, and which key has not?"""
        new_position = keys.shape[-2]
        keys, values = append_to_cache(_rotate_by_index(keys, base), key), append_to_cache(values, value)
        return attention_weights(_rotate_by_position(query, new_position, base), keys) @ values, keys, values

    def all_keys_rotated_but_not_the_query(query, key, value, keys, values, base):
        """You rotate all keys, so the keys of the cache are rotated twice, and you leave the query unrotated. Of the
        keys, only the new key must still be rotated: which other tensor must be rotated too?"""
        keys, values = _rotate_by_index(append_to_cache(keys, key), base), append_to_cache(values, value)
        return attention_weights(query, keys) @ values, keys, values

    def itself_not_seen_and_cache_not_kept(query, key, value, keys, values, base):
        """The new token does not see itself, and you return only the new key and value. The next step needs all keys
        and values: where do you join the old ones and the new?"""
        new_position = keys.shape[-2]
        return (
            attention_weights(_rotate_by_position(query, new_position, base), keys) @ values,
            _rotate_by_position(key, new_position, base),
            value,
        )

    def query_in_the_cache(query, key, value, keys, values, base):
        """You store the rotated query in the cache, and `key` has no effect on your result. A token is found by its
        key: with which tensor do later queries compute their scores?"""
        return cached_step.reference(query, query, value, keys, values, base)

    def query_and_key_exchanged(query, key, value, keys, values, base):
        """Query and key have changed places: you search with the key, and store the query in the cache. A query
        searches, and a key is found: which of the two do later tokens need?"""
        return cached_step.reference(key, query, value, keys, values, base)

    def key_for_the_value(query, key, value, keys, values, base):
        """You store the rotated key in both caches, and `value` has no effect on your result. What is a token's value
        for?"""
        new_position = keys.shape[-2]
        return cached_step.reference(query, key, _rotate_by_position(key, new_position, base), keys, values, base)

    def bare_key_for_the_value(query, key, value, keys, values, base):
        """You store the unrotated key in the cache of the values, and `value` has no effect on your result. What is a
        token's value for?"""
        return cached_step.reference(query, key, key, keys, values, base)

    def caches_exchanged(query, key, value, keys, values, base):
        """You append the new key to the values, and the new value to the keys. The shapes are equal, so PyTorch raises
        no error: to which of the two caches does the new key belong?"""
        new_position = keys.shape[-2]
        keys, values = (
            append_to_cache(keys, value),
            append_to_cache(values, _rotate_by_position(key, new_position, base)),
        )
        return attention_weights(_rotate_by_position(query, new_position, base), keys) @ values, keys, values


@cached_step.wrong
class Attention:
    """Mistakes in the attention."""

    def keys_blended(query, key, value, keys, values, base):
        """You blend the keys, and the values have no effect on the blend. The keys determine the weights: which tensor
        do the weights multiply?"""
        new_position = keys.shape[-2]
        keys, values = (
            append_to_cache(keys, _rotate_by_position(key, new_position, base)),
            append_to_cache(values, value),
        )
        return attention_weights(_rotate_by_position(query, new_position, base), keys) @ keys, keys, values

    def keys_and_values_exchanged(query, key, value, keys, values, base):
        """Keys and values have changed places in your attention: you compare the query with the values and blend the
        keys. Which tensor must be compared with the query, and which must be blended?"""
        _, keys, values = cached_step.reference(query, key, value, keys, values, base)
        return attention_weights(_rotate_by_position(query, keys.shape[-2] - 1, base), values) @ keys, keys, values

    def value_rotated_for_the_blend(query, key, value, keys, values, base):
        """{The cache is right, but} for the blend you rotate the new value. Positions affect only the scores: the
        values stay as they are."""
        _, keys, longer_values = cached_step.reference(query, key, value, keys, values, base)
        new_position = values.shape[-2]
        return (
            attention_weights(_rotate_by_position(query, new_position, base), keys)
            @ append_to_cache(values, _rotate_by_position(value, new_position, base)),
            keys,
            longer_values,
        )

    def value_stored_rotated(query, key, value, keys, values, base):
        """{The result of attention is right, but} the value that you store is rotated. Positions affect only the
        scores: the values stay as they are, in this step and in the next."""
        blend, longer_keys, _ = cached_step.reference(query, key, value, keys, values, base)
        return blend, longer_keys, append_to_cache(values, _rotate_by_position(value, keys.shape[-2], base))

    def query_added(query, key, value, keys, values, base):
        """You add the query to the blend. A residual connection goes around the whole attention layer, outside this
        function."""
        blend, *cache = cached_step.reference(query, key, value, keys, values, base)
        return query + blend, *cache

    def value_added(query, key, value, keys, values, base):
        """You add the token's own value to the blend. The value is already in the cache, and the blend contains the
        value with its weight: why do you add it again?"""
        blend, *cache = cached_step.reference(query, key, value, keys, values, base)
        return value + blend, *cache

    def values_rotated_for_the_blend(query, key, value, keys, values, base):
        """{The cache is right, but} for the blend you rotate all values by their positions. Positions affect only the
        scores: the values stay as they are."""
        _, keys, values = cached_step.reference(query, key, value, keys, values, base)
        query = _rotate_by_position(query, keys.shape[-2] - 1, base)
        return attention_weights(query, keys) @ _rotate_by_index(values, base), keys, values


@cached_step.wrong
class Returned:
    """Mistakes in what is returned."""

    def blend_alone(query, key, value, keys, values, base):
        """You return the result of attention, and nothing else. The next step needs the longer cache: return three
        tensors."""
        return cached_step.reference(query, key, value, keys, values, base)[0]

    def weights_returned_too(query, key, value, keys, values, base):
        """You return the weights as well. Return three tensors: the result of attention, the keys and the values."""
        blend, keys, values = cached_step.reference(query, key, value, keys, values, base)
        return blend, keys, values, attention_weights(_rotate_by_position(query, keys.shape[-2] - 1, base), keys)

    def cache_alone(query, key, value, keys, values, base):
        """You return keys and values, but the result of attention is missing. Return three tensors: which comes
        first?"""
        return cached_step.reference(query, key, value, keys, values, base)[1:]

    def cache_in_a_tuple(query, key, value, keys, values, base):
        """You return two things, and the second is a pair of keys and values. Return three tensors, side by side: which
        brackets must you remove?"""
        blend, *cache = cached_step.reference(query, key, value, keys, values, base)
        return blend, tuple(cache)

    def cache_first(query, key, value, keys, values, base):
        """You return the cache first, and the result of attention last. The caller unpacks three tensors in order:
        which does the docstring name first?"""
        blend, *cache = cached_step.reference(query, key, value, keys, values, base)
        return *cache, blend

    def values_before_keys(query, key, value, keys, values, base):
        """You return the values before the keys. Their shapes are equal, so PyTorch raises no error, and the next step
        uses the keys as values and the values as keys."""
        return tuple(cached_step.reference(query, key, value, keys, values, base)[i] for i in (0, 2, 1))

    def keys_returned_unchanged(query, key, value, keys, values, base):
        """{The result of attention is right, and so are the values, but} you return the keys that came in. Which name
        holds the longer tensor?"""
        blend, _, longer_values = cached_step.reference(query, key, value, keys, values, base)
        return blend, keys, longer_values

    def values_returned_unchanged(query, key, value, keys, values, base):
        """{The result of attention is right, and so are the keys, but} you return the values that came in. Which name
        holds the longer tensor?"""
        return *cached_step.reference(query, key, value, keys, values, base)[:2], values

    def only_new_key_and_value_returned(query, key, value, keys, values, base):
        """The result of attention is right, but you return only the new key and value. The next step needs all keys and
        values, the old ones and the new."""
        blend, *_ = cached_step.reference(query, key, value, keys, values, base)
        return blend, _rotate_by_position(key, keys.shape[-2], base), value

    def only_unrotated_key_and_value_returned(query, key, value, keys, values, base):
        """The result of attention is right, but instead of the caches you return `key` and `value` unchanged. The next
        step needs the whole cache, including the rotated new key."""
        blend, *_ = cached_step.reference(query, key, value, keys, values, base)
        return blend, key, value


fixed_length(cached_step, table_of_fixed_length, "300 tokens in the cache")


for _mistaken in (
    Position.one_position_late,
    Position.one_position_early,
    Position.rotated_backwards,
    Weights.scores_not_divided,
    Weights.divided_by_d_head,
    Weights.weights_divided,
    Weights.scores_for_weights,
):
    _add_mistake_with_rotated_value(_mistaken)
