"""One step of a model that writes: attention of the newest token, with a cache and rotary positions."""

import torch

from ..ch9_today.rotate import halves, rotate
from ..common_mistakes import fixed_length
from ..exercise import exercise, family
from ..probes import strided_with_whole_rows


def _new_token_and_cache(draw, batch=3, heads=7, past=5, d_head=4):  # no other size is d_head / 2
    new = [draw(batch, heads, 1, d_head) for _ in range(3)]
    return *new, draw(batch, heads, past, d_head), draw(batch, heads, past, d_head), 20.0


def _rotated(x, position, base):
    return rotate.reference(x, torch.tensor([position], device=x.device), base)


def after_the_past(keys):
    """Count the tokens of the cache: that is the position of the new one."""
    return keys.shape[-2]


def turned_query(query, position, base):
    """Turn the query by its position."""
    return _rotated(query, position, base)


def turned_key(key, position, base):
    """Turn the new key by its position."""
    return _rotated(key, position, base)


def appended(past, new):
    """Put the new one after those of the cache."""
    return torch.cat([past, new], dim=-2)


def weights_of(query, keys):
    """Take the softmax of the scores, divided by √d_head."""
    return (query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(dim=-1)


def blend_of(weights, values):
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
        "Query and key of the new token are rotated by its position; each key in the cache has already been rotated "
        "by its own position. Values are never rotated. The new token looks at itself, too.",
        "`position = torch.tensor([keys.shape[…]])`, `keys = torch.cat([keys, rotate(key, …)], dim=…)`, the same for "
        "`values`, then softmax and blend as always: `return …, keys, values`",
    ),
    scattered=strided_with_whole_rows,
)
def cached_step(
    query,
    key,
    value,
    keys,
    values,
    base,
    *,
    position=after_the_past,
    turn_query=turned_query,
    turn_key=turned_key,
    longer_keys=appended,
    longer_values=appended,
    weights=weights_of,
    blend=blend_of,
):
    """Return what the newest token collects, and the cache with its key, turned, and its value."""
    here = position(keys)
    keys, values = longer_keys(keys, turn_key(key, here, base)), longer_values(values, value)
    return blend(weights(turn_query(query, here, base), keys), values), keys, values


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

    def both_turned_at_once(query, key, value, keys, values, base):
        position = torch.full((1,), keys.shape[-2], device=keys.device)
        query, key = rotate.reference(torch.cat([query, key]), position, base).chunk(2)
        keys, values = torch.cat([keys, key], dim=-2), torch.cat([values, value], dim=-2)
        scores = torch.einsum("bhqd,bhkd->bhqk", query, keys) * query.shape[-1] ** -0.5
        return torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), values), keys, values


@cached_step.wrong(stage="position")
class Position:
    def one_position_late(keys):
        """Your new token stands one position too late. Positions are counted from 0: with five tokens in the cache,
        which number does the sixth have?"""
        return keys.shape[-2] + 1

    def one_position_early(keys):
        """Your new token stands where the last one of the cache stands. With five tokens in the cache, which numbers
        are taken?"""
        return keys.shape[-2] - 1

    def turned_backwards(keys):
        """You turn query and new key the wrong way round: by minus their position, or with the sines' signs exchanged.
        The keys of the cache have been turned forwards."""
        return -keys.shape[-2]


def _with_other_keys_for_scores(query, key, value, keys, values, base, *, stored, seen):
    """Make a step in which the query sees other keys than the cache holds."""
    here = keys.shape[-2]
    keys, values = appended(keys, stored(key, here, base)), appended(values, value)
    return weights_of(_rotated(query, here, base), seen(keys, base)) @ values, keys, values


def _not_rotated(key, position, base):
    return key


def _rotated_by_place(keys, base):
    return rotate.reference(keys, torch.arange(keys.shape[-2], device=keys.device), base)


def _past_rotated_by_place(keys, base):
    return appended(_rotated_by_place(keys[:, :, :-1], base), keys[:, :, -1:])


def _last_rotated_by_place(keys, base):
    return appended(keys[:, :, :-1], _rotated(keys[:, :, -1:], keys.shape[-2] - 1, base))


def table_of_fixed_length(query, key, value, keys, values, base):
    if keys.shape[-2] >= 64:
        raise IndexError(f"index {keys.shape[-2]} is out of bounds for dimension 0 with size 64")
    return cached_step.reference(query, key, value, keys, values, base)


def _value_rotated_and(mistaken):
    """Two things go wrong here. You turn the value, and only queries and keys are to be turned. {}"""
    stage = cached_step.mistakes[mistaken.__name__].stage

    def with_the_value_turned(query, key, value, keys, values, base):
        here = mistaken(keys) if stage == "position" else after_the_past(keys)
        value = _rotated(value, here, base)
        return cached_step.reference(query, key, value, keys, values, base, **{stage: mistaken})

    with_the_value_turned.__name__ = f"value_turned_and_{mistaken.__name__}"
    with_the_value_turned.__doc__ = _value_rotated_and.__doc__.format(mistaken.__doc__)
    cached_step.mistake(with_the_value_turned)


@cached_step.wrong(stage="position", alone=True)
class PositionAlone:
    def one_is_the_position(keys):
        """Your new token always stands at position 1. Do you count the axis of the new token, which is always 1? It is
        the tokens of the cache that say how many came before."""
        return 1

    def one_position_early_unless_empty(keys):
        """Your new token stands where the last one of the cache stands; only with an empty cache is its position right.
        With five tokens in the cache, which numbers are taken?"""
        return max(keys.shape[-2] - 1, 0)

    @family(
        heads_counted=(1, "the number of heads", "counted"),
        features_counted=(-1, "d_head", "seen"),
        batch_counted=(0, "the size of the batch", "counted"),
    )
    def another_axis(axis, keys):
        """You take {} for the position. The tokens of the cache lie on another axis: which one, {} from the end?"""
        return keys.shape[axis]


@cached_step.wrong(stage="turn_query")
class TurnQuery:
    def query_not_turned(query, position, base):
        """Your scores are those of a query that is not turned: you leave it as it came, or turn it by position 0, or
        you turn it and all keys by the same position, which changes no score. The keys of the cache have been turned
        already. Which two tensors are new?"""
        return query


@cached_step.wrong(stage="turn_query", alone=True)
class TurnQueryAlone:
    def query_one_position_late(query, position, base):
        """Your query is turned one position too far, and the new key is not. Do you count the tokens of the cache again
        once the new key is in it?"""
        return _rotated(query, position + 1, base)

    def query_one_position_early(query, position, base):
        """Your query is turned by the position of the last token of the cache, and the new key by its own. Both belong
        to the same token: which position does it have?"""
        return _rotated(query, position - 1, base)

    def query_turned_back(query, position, base):
        """Your query is turned the other way, by minus its position. Scores know distances since *both* are turned the
        same way: only then the difference of two positions is left."""
        return _rotated(query, -position, base)

    def query_turned_twice(query, position, base):
        """Your query is turned twice, by twice its position in all. Once is enough: which line turns it, and which does
        so again?"""
        return _rotated(query, 2 * position, base)


@cached_step.wrong(stage="turn_key")
class TurnKey:
    def key_not_turned(key, position, base):
        """Your new key is not turned: it goes into the cache as if it stood at position 0. Which tensors does the
        position belong to?"""
        return key


@cached_step.wrong(stage="turn_key", alone=True)
class TurnKeyAlone:
    def key_one_position_late(key, position, base):
        """Your new key is turned one position too far, and the query is not. Both belong to the same token: when do you
        count the tokens of the cache?"""
        return _rotated(key, position + 1, base)

    def key_one_position_early(key, position, base):
        """Your new key is turned by the position of the last token of the cache, and the query by its own. Both belong
        to the same token: which position does it have?"""
        return _rotated(key, position - 1, base)

    def key_turned_back(key, position, base):
        """Your new key is turned the other way, by minus its position. Scores know distances since *both* are turned
        the same way: only then the difference of two positions is left."""
        return _rotated(key, -position, base)

    def key_turned_twice(key, position, base):
        """Your new key is turned twice, by twice its position in all. Once is enough: which line turns it, and which
        does so again?"""
        return _rotated(key, 2 * position, base)


@cached_step.wrong(stage="longer_keys")
class LongerKeys:
    def key_in_front(past, new):
        """The new key stands in front of the cache and its value at the end, so that each weight meets the value of
        another token. Both belong at the end."""
        return torch.cat([new, past], dim=-2)


@cached_step.wrong(stage="longer_keys", alone=True)
class LongerKeysAlone:
    @family(
        joined_along_the_heads=(1, "heads"),
        joined_along_the_features=(-1, "features"),
        joined_along_the_batch=(0, "batch, as `cat` does when no `dim` is given"),
    )
    def joined_along(axis, past, new):
        """You join along the axis of the {}. `cat` wants all other axes to be of the same length, and the cache has
        more tokens than one. Along which axis does a cache grow?"""
        return torch.cat([past, new], dim=axis)

    def stacked(past, new):
        """`stack` wants tensors of the same shape, and puts them on a new axis. A cache grows along an axis that it
        has: which function joins along it?"""
        return torch.stack([past, new], dim=-2)

    @family(
        cat_without_a_list=(lambda past, new: torch.cat(past, new, dim=-2), "."),
        cat_without_a_list_or_a_name=(lambda past, new: torch.cat(past, new, -2), ", with the axis last."),
    )
    def no_brackets(spelling, past, new):
        """`cat` takes the tensors in a list or tuple, as its first argument, and you give them one after the other{}
        Which brackets are missing?"""
        return spelling(past, new)

    def append_called(past, new):
        """A tensor has no `append`: it cannot grow. Make a new one of both, the old one and what comes after it."""
        return past.append(new)

    def written_behind_the_end(past, new):
        """You write the new key to a place that the cache does not have yet: with five tokens in it, index 5 lies after
        the end. Which function makes a longer tensor of both?"""
        past[:, :, past.shape[-2]] = new[:, :, 0]
        return past


@cached_step.wrong(stage="longer_values")
class LongerValues:
    def value_in_front(past, new):
        """The new value stands in front of the cache and its key at the end, so that each weight meets the value of
        another token. Both belong at the end."""
        return torch.cat([new, past], dim=-2)


@cached_step.wrong(stage="longer_values", alone=True)
class LongerValuesAlone:
    @family(
        values_joined_along_the_heads=(1, "heads"),
        values_joined_along_the_features=(-1, "features"),
        values_joined_along_the_batch=(0, "batch, as `cat` does when no `dim` is given"),
    )
    def joined_along(axis, past, new):
        """You join the values along the axis of the {}. `cat` wants all other axes to be of the same length, and the
        cache has more tokens than one. Along which axis does a cache grow?"""
        return torch.cat([past, new], dim=axis)


@cached_step.wrong(stage="weights")
class Weights:
    def softmax_over_the_queries(query, keys):
        """All weights are 1, so that the values are simply added up. Does a softmax run along the axis of the queries,
        of which there is one? The weights of *all keys* must sum to one: on which axis do these lie?"""
        return (query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(dim=-2)

    def softmax_over_the_heads(query, keys):
        """Your softmax runs along the axis of the heads. Each head has weights of its own, and those of *all keys* must
        sum to one: on which axis do these lie?"""
        return (query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(dim=1)

    def oldest_alone_seen(query, keys):
        """Your token sees the oldest token alone. With a causal mask, as `is_causal=True` makes it, the first query
        sees the first key, and here there is only one query. What is there in the cache that the newest token must not
        see?"""
        return torch.eye(1, keys.shape[-2], dtype=query.dtype, device=query.device).expand(*query.shape[:-1], -1)

    def scores_not_divided(query, keys):
        """The scores are not divided by √d_head. Where does the size of a head enter your function?"""
        return (query @ keys.transpose(-2, -1)).softmax(dim=-1)

    def divided_by_d_head(query, keys):
        """The scores are divided by d_head, and not by its root. For heads of 64 that is 64 in place of 8."""
        return (query @ keys.transpose(-2, -1) / query.shape[-1]).softmax(dim=-1)

    def scores_for_weights(query, keys):
        """You blend with the scores themselves: the softmax is missing. What must the weights of a token sum to?"""
        return query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5

    def weights_divided(query, keys):
        """You divide after the softmax, so that the weights sum to less than one. It is the scores that √d_head keeps
        small: where does the division belong?"""
        return (query @ keys.transpose(-2, -1)).softmax(dim=-1) / query.shape[-1] ** 0.5


@cached_step.wrong(stage="weights", alone=True)
class WeightsAlone:
    def multiplied_by_the_root(query, keys):
        """The scores are multiplied by √d_head, and should be divided by it. What does the root keep small?"""
        return (query @ keys.transpose(-2, -1) * query.shape[-1] ** 0.5).softmax(dim=-1)

    @family(
        divided_by_the_tokens=(lambda query, keys: keys.shape[-2], "keys", "size is theirs"),
        divided_by_the_heads=(lambda query, keys: query.shape[1], "heads", "axis has their size"),
    )
    def divided_by_another_size(size, query, keys):
        """The scores are divided by the root of the number of {}. It is the features that a score adds up: which {}?"""
        return (query @ keys.transpose(-2, -1) / size(query, keys) ** 0.5).softmax(dim=-1)

    def weights_divided_again(query, keys):
        """You divide the scores by √d_head and the weights as well, so that these sum to less than one. Once is enough:
        on which side of the softmax?"""
        return weights_of(query, keys) / query.shape[-1] ** 0.5

    def softmax_over_the_batch(query, keys):
        """Your softmax runs along the axis of the batch, so that texts take weight from one another. Those of *all
        keys* must sum to one: on which axis do these lie?"""
        return (query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(dim=0)

    def itself_masked(query, keys):
        """Your mask hides the newest key, so that the token does not look at itself. What is hidden in a causal mask:
        the token itself, or only what comes after it?"""
        scores = query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5
        scores[..., -1] = -torch.inf
        return scores.softmax(dim=-1)

    def all_keys_weigh_the_same(query, keys):
        """All keys get the same weight: what you return is the mean of the values. Where does the query enter?"""
        return (0 * (query @ keys.transpose(-2, -1))).softmax(dim=-1)

    def powers_not_divided(query, keys):
        """You blend with the exponentials of the scores, which are never divided by their sum. What must the weights of
        a token sum to?"""
        return (query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5).exp()

    def pair_taken_for_a_tensor(query, keys):
        """Along an axis, `max` returns a pair, the largest numbers and where they lie, and you subtract the pair. Which
        part of it do you want?"""
        scores = query @ keys.transpose(-2, -1)
        return scores - scores.max(dim=-1, keepdim=True)

    def keys_not_transposed(query, keys):
        """You multiply the query with the keys as they lie. A score multiplies features with features: on which axis of
        the right factor must they be?"""
        return query @ keys

    def keys_transposed_too_far(query, keys):
        """You turn round axes of the keys that must stay where they are, those of the batch or of the heads: `.T` turns
        all of them round. Which two change places?"""
        return query @ keys.permute(3, 2, 1, 0)

    def heads_and_tokens_of_keys_exchanged(query, keys):
        """You exchange the axes of heads and tokens in the keys, and not those of tokens and features. A score
        multiplies features with features: which two axes change places?"""
        return query @ keys.transpose(1, 2)


@cached_step.wrong(stage="blend")
class Blend:
    def itself_not_seen(weights, values):
        """The new token does not look at itself: you blend before both its key and its value are in the cache. Which
        comes first?"""
        others = weights[..., :-1]  # the softmax over the others alone, or a sum of nothing
        shares = others / others.sum(dim=-1, keepdim=True) if others.shape[-1] else others
        return shares @ values[..., :-1, :]


@cached_step.wrong(stage="blend", alone=True)
class BlendAlone:
    def all_axes_of_one_lost(weights, values):
        """`squeeze()` without an argument takes away every axis of length 1, that of the token and others as well. The
        result keeps four axes: (batch, heads, 1, d_head)."""
        return (weights @ values).squeeze()

    def heads_merged(weights, values):
        """You merge the heads in what the token collects. That comes later, outside of this function: the result is
        (batch, heads, 1, d_head)."""
        return (weights @ values).transpose(1, 2).flatten(-2)

    def heads_behind_the_token(weights, values):
        """In what the token collects its axis and that of the heads have changed places. The result is (batch, heads,
        1, d_head)."""
        return (weights @ values).transpose(1, 2)


@cached_step.wrong
class WrongAnswers:
    def neither_turned(query, key, value, keys, values, base):
        """It comes out as if neither the query nor the new key were turned: you turn neither, or both by position 0, or
        you turn the query and, for the scores, all keys by the same position, which changes no score. Where does the
        new token stand, and which tensors have not been turned yet?"""
        keys, values = appended(keys, key), appended(values, value)
        return weights_of(query, keys) @ values, keys, values

    def cache_turned_again(query, key, value, keys, values, base):
        """You turn the keys of the cache, and they have been turned already, each when it was new. What is kept is
        ready for use: which tensor is new in this step?"""
        here = torch.arange(keys.shape[-2] + 1, device=keys.device)
        keys, values = rotate.reference(appended(keys, key), here, base), appended(values, value)
        return weights_of(_rotated(query, len(here) - 1, base), keys) @ values, keys, values

    def all_turned_again(query, key, value, keys, values, base):
        """You turn the new key, put it into the cache, and turn all keys of the cache once more. Each has been turned
        when it was new, and once is enough. Which of your turns is one too many?"""
        here = torch.arange(keys.shape[-2] + 1, device=keys.device)
        keys = rotate.reference(appended(keys, _rotated(key, len(here) - 1, base)), here, base)
        values = appended(values, value)
        return weights_of(_rotated(query, len(here) - 1, base), keys) @ values, keys, values

    def all_turned_again_for_scores(query, key, value, keys, values, base):
        """{The cache that you return is right.} For the scores you turn its keys once more, and each has been turned
        already, when it was new. What does the cache hold: keys as they come, or keys ready for use?"""
        return _with_other_keys_for_scores(
            query, key, value, keys, values, base, stored=_rotated, seen=_rotated_by_place
        )

    def past_turned_again_for_scores(query, key, value, keys, values, base):
        """{The cache that you return is right.} For the scores you turn the keys of the earlier tokens once more, and
        they have been turned already, each when it was new. Which key has not been turned yet?"""
        return _with_other_keys_for_scores(
            query, key, value, keys, values, base, stored=_rotated, seen=_past_rotated_by_place
        )

    def cache_kept_unturned(query, key, value, keys, values, base):
        """You store the new key as it comes, and turn all keys for the scores. That would do for a cache of keys that
        are not turned; in this one each has been turned already, when it was new, and in your scores it is turned
        twice. In which state must the new key go into the cache?"""
        return _with_other_keys_for_scores(
            query, key, value, keys, values, base, stored=_not_rotated, seen=_rotated_by_place
        )

    def key_stored_unturned(query, key, value, keys, values, base):
        """{What the token collects is right;} the key that you store is not turned. The next step takes all keys of the
        cache for turned ones. Which of your two keys, the one before the turn or the one after it, goes into the
        cache?"""
        return _with_other_keys_for_scores(
            query, key, value, keys, values, base, stored=_not_rotated, seen=_last_rotated_by_place
        )

    def turned_after_appending(query, key, value, keys, values, base):
        """You turn all keys by the position of the new token, and those of the cache have been turned already, each by
        its own. Have you put the new key into the cache first, and turned then? Which of the two comes first?"""
        here = keys.shape[-2]
        keys, values = _rotated(appended(keys, key), here, base), appended(values, value)
        return weights_of(_rotated(query, here, base), keys) @ values, keys, values

    def value_turned(query, key, value, keys, values, base):
        """You turn the value as well. Positions decide who looks at whom, and that is the matter of queries and keys;
        what is collected stays as it is."""
        here = keys.shape[-2]
        keys, values = appended(keys, _rotated(key, here, base)), appended(values, _rotated(value, here, base))
        return weights_of(_rotated(query, here, base), keys) @ values, keys, values

    def cache_returned_as_it_was(query, key, value, keys, values, base):
        """{What the token collects is right, and} you return the cache as it came in. The next step needs this token's
        key and value, too."""
        blend, *_ = cached_step.reference(query, key, value, keys, values, base)
        return blend, keys, values

    def only_itself(query, key, value, keys, values, base):
        """Your token looks at itself alone, so that its own value comes back. What are the keys of the cache for?"""
        here = keys.shape[-2]
        return value, appended(keys, _rotated(key, here, base)), appended(values, value)

    def both_in_front(query, key, value, keys, values, base):
        """The new key and value stand in front of the cache. The blend is the same, since order does not matter to it;
        the cache is in the order of the text, and the newest is last."""
        here = keys.shape[-2]
        keys, values = torch.cat([_rotated(key, here, base), keys], dim=-2), torch.cat([value, values], dim=-2)
        return weights_of(_rotated(query, here, base), keys) @ values, keys, values

    def pairs_in_halves(query, key, value, keys, values, base):
        """You pair feature i with feature i + d_head/2. Here neighbours are a pair, as in exercise 9.1: your own
        `rotate` does it."""
        here = torch.tensor([keys.shape[-2]], device=keys.device)
        keys, values = appended(keys, halves(key, here, base)), appended(values, value)
        return weights_of(halves(query, here, base), keys) @ values, keys, values

    def position_is_a_plain_number(query, key, value, keys, values, base):
        """A whole number is indexed as if it were a tensor. Does `rotate` get `keys.shape[…]` itself as its positions?
        It expects a tensor of the shape (seq,), one position for each token, and reads it with `[:, None]`. How many
        tokens are given here?"""
        here = keys.shape[-2]
        return _rotated(query, here[:, None], base)  # the first line of a `rotate` that follows its hint

    def position_without_an_axis(query, key, value, keys, values, base):
        """A tensor without axes is indexed as if it had one. Does `rotate` get `torch.tensor(keys.shape[…])` as its
        positions? That is a single number in a tensor, and `rotate` expects the shape (seq,), one position for each
        token, even if it is just one. Which shape does `torch.tensor([5])` have?"""
        here = torch.tensor(keys.shape[-2], device=keys.device)
        return _rotated(query, here[:, None], base)

    def position_in_a_list(query, key, value, keys, values, base):
        """A list is indexed as if it were a tensor. Does `rotate` get `[keys.shape[…]]` as its positions? It expects a
        tensor of the shape (seq,): what makes one of a list?"""
        here = [keys.shape[-2]]
        return _rotated(query, here[:, None], base)

    def base_for_the_positions(query, key, value, keys, values, base):
        """A floating-point number is indexed as if it were a tensor. Does `rotate` get one, the base perhaps, where it
        expects the positions? Its arguments are `x`, `positions` and `base`, in this order."""
        return _rotated(query, base[:, None], base)

    def rotate_without_an_argument(query, key, value, keys, values, base):
        """`rotate` takes three arguments, and you give it two: what is turned, by which positions, and with which
        base?"""
        return rotate.reference(query, base)

    @family(
        all_positions_for_one_token=(1, "all tokens", "there are positions", "what shape must `positions` have"),
        past_positions_for_one_token=(0, "the cache's tokens", "these", "which number comes after those of the cache"),
    )
    def positions_for_one_token(more, query, key, value, keys, values, base):
        """You turn the one query and the one key by the positions of {}, so that they become as many as {}. There is
        one new token, at one position: {}?"""
        here = torch.arange(keys.shape[-2] + more, device=keys.device)
        keys, values = appended(keys, rotate.reference(key, here, base)), appended(values, value)
        return weights_of(rotate.reference(query, here, base), keys) @ values, keys, values

    def all_positions_for_the_query(query, key, value, keys, values, base):
        """You turn the one query by the positions of all tokens, and as many queries come out of it. There is one new
        token, at one position: what shape must `positions` have?"""
        here = torch.arange(keys.shape[-2] + 1, device=keys.device)
        keys, values = appended(keys, _rotated(key, len(here) - 1, base)), appended(values, value)
        return weights_of(rotate.reference(query, here, base), keys) @ values, keys, values

    @family(
        base_always_10000=(10000.0, "10,000", "The keys of the cache have been turned with"),
        base_always_100000=(100000.0, "100,000", "That is this model's, and others have"),
    )
    def fixed_base(always, query, key, value, keys, values, base):
        """Your base is always {}, whatever is given. {} another: where is the argument `base` used?"""
        return cached_step.reference(query, key, value, keys, values, always)

    def halves_for_the_query_alone(query, key, value, keys, values, base):
        """The new key is turned with neighbours as pairs, and the query with feature i and feature i + d_head/2. One
        `rotate` must turn both, that of exercise 9.1."""
        here = torch.tensor([keys.shape[-2]], device=keys.device)
        keys, values = appended(keys, rotate.reference(key, here, base)), appended(values, value)
        return weights_of(halves(query, here, base), keys) @ values, keys, values


@cached_step.wrong
class Cache:
    """The cache."""

    def added_to_each_token(query, key, value, keys, values, base):
        """`+` adds the new key and value to those of every token, and the cache does not become longer. Which function
        puts one tensor after another?"""
        here = keys.shape[-2]
        keys, values = keys + _rotated(key, here, base), values + value
        return weights_of(_rotated(query, here, base), keys) @ values, keys, values

    def keys_alone_grow(query, key, value, keys, values, base):
        """When you blend, the new key is in the cache and the new value is not: there are more weights than values.
        What must have happened to the value by then?"""
        here = keys.shape[-2]
        keys = appended(keys, _rotated(key, here, base))
        return weights_of(_rotated(query, here, base), keys) @ values, keys, values

    def values_alone_grow(query, key, value, keys, values, base):
        """When you blend, the new value is in the cache, and the scores were made without the new key: there are fewer
        weights than values. What must have happened to the key by then?"""
        here = keys.shape[-2]
        values = appended(values, value)
        return weights_of(_rotated(query, here, base), keys) @ values, keys, values

    def cache_never_longer(query, key, value, keys, values, base):
        """The cache stays as it came in: the new token does not look at itself, and the next one will not see it. If
        you do call `torch.cat`: it changes nothing, it returns a new tensor. Which name gets that?"""
        return weights_of(_rotated(query, keys.shape[-2], base), keys) @ values, keys, values

    def oldest_left_out(query, key, value, keys, values, base):
        """For each token that comes in you drop the oldest, so that the cache never becomes longer. That is a window;
        here the new token attends to all."""
        here = keys.shape[-2]
        keys, values = appended(keys[:, :, 1:], _rotated(key, here, base)), appended(values[:, :, 1:], value)
        return weights_of(_rotated(query, here, base), keys) @ values, keys, values

    def last_overwritten(query, key, value, keys, values, base):
        """You write the new key and value over the last ones of the cache, in the tensors that were given. The cache
        must become longer by one, and the old ones are still needed."""
        here = keys.shape[-2]
        keys[:, :, -1:], values[:, :, -1:] = _rotated(key, here, base), value
        return weights_of(_rotated(query, here, base), keys) @ values, keys, values

    def empty_cache_sent_back(query, key, value, keys, values, base):
        """When the cache is empty you send it back empty. The first token of all has a key and a value, too: the next
        one must see them. Does an empty cache need a case of its own?"""
        if not keys.shape[-2]:
            return value, keys, values
        return cached_step.reference(query, key, value, keys, values, base)

    def past_turned_by_the_new_position(query, key, value, keys, values, base):
        """You turn the keys of the cache by the position of the new token, and put its own key after them as it came.
        It is the other way round: which keys have been turned already, and which has not?"""
        here = keys.shape[-2]
        keys, values = appended(_rotated(keys, here, base), key), appended(values, value)
        return weights_of(_rotated(query, here, base), keys) @ values, keys, values

    def past_turned_and_new_key_bare(query, key, value, keys, values, base):
        """You turn the keys of the cache by their positions, and put the new key after them as it came. It is the other
        way round: which keys have been turned already, and which has not?"""
        here = keys.shape[-2]
        keys, values = appended(_rotated_by_place(keys, base), key), appended(values, value)
        return weights_of(_rotated(query, here, base), keys) @ values, keys, values

    def all_turned_with_the_query_bare(query, key, value, keys, values, base):
        """You turn all keys, those of the cache once more, and leave the query as it came. Of the keys only the new one
        has not been turned yet: which other tensor has not?"""
        keys, values = _rotated_by_place(appended(keys, key), base), appended(values, value)
        return weights_of(query, keys) @ values, keys, values

    def itself_not_seen_and_cache_not_kept(query, key, value, keys, values, base):
        """The new token does not look at itself, and of keys and values you return the new ones alone. The next step
        needs all of them: where do the old ones and the new come together?"""
        here = keys.shape[-2]
        return weights_of(_rotated(query, here, base), keys) @ values, _rotated(key, here, base), value

    def query_in_the_cache(query, key, value, keys, values, base):
        """You put the turned query into the cache, and `key` changes nothing in your result. A token is found by its
        key: which of the two do later tokens look for?"""
        return cached_step.reference(query, query, value, keys, values, base)

    def query_and_key_exchanged(query, key, value, keys, values, base):
        """Query and key have changed places: you look with the key, and put the query into the cache. A query asks, and
        a key is found: which of the two do later tokens need?"""
        return cached_step.reference(key, query, value, keys, values, base)

    def key_for_the_value(query, key, value, keys, values, base):
        """The turned key goes into both caches, and `value` changes nothing in your result. What is a token's value
        for?"""
        here = keys.shape[-2]
        return cached_step.reference(query, key, _rotated(key, here, base), keys, values, base)

    def bare_key_for_the_value(query, key, value, keys, values, base):
        """The key, as it came in, goes into the cache of the values, and `value` changes nothing in your result. What
        is a token's value for?"""
        return cached_step.reference(query, key, key, keys, values, base)

    def caches_exchanged(query, key, value, keys, values, base):
        """The new key goes after the values, and the new value after the keys. The shapes are equal, so nothing
        complains: which belongs to which?"""
        here = keys.shape[-2]
        keys, values = appended(keys, value), appended(values, _rotated(key, here, base))
        return weights_of(_rotated(query, here, base), keys) @ values, keys, values


@cached_step.wrong
class Attention:
    """The attention."""

    def keys_blended(query, key, value, keys, values, base):
        """You blend the keys, and the values change nothing in what the token collects. Keys say where to look: what is
        collected there?"""
        here = keys.shape[-2]
        keys, values = appended(keys, _rotated(key, here, base)), appended(values, value)
        return weights_of(_rotated(query, here, base), keys) @ keys, keys, values

    def keys_and_values_exchanged(query, key, value, keys, values, base):
        """You look in the values and blend the keys: the two have changed places in your attention. Which of them is
        compared with the query, and which is collected?"""
        _, keys, values = cached_step.reference(query, key, value, keys, values, base)
        return weights_of(_rotated(query, keys.shape[-2] - 1, base), values) @ keys, keys, values

    def value_turned_for_the_blend(query, key, value, keys, values, base):
        """{The cache is right, and} for the blend you turn the new value. Positions decide who looks at whom; what is
        collected stays as it is."""
        _, keys, longer = cached_step.reference(query, key, value, keys, values, base)
        here = values.shape[-2]
        return (
            weights_of(_rotated(query, here, base), keys) @ appended(values, _rotated(value, here, base)),
            keys,
            longer,
        )

    def value_stored_turned(query, key, value, keys, values, base):
        """{What the token collects is right;} the value that you store is turned. Positions decide who looks at whom;
        what is collected stays as it is, in this step and in the next."""
        blend, longer, _ = cached_step.reference(query, key, value, keys, values, base)
        return blend, longer, appended(values, _rotated(value, keys.shape[-2], base))

    def query_added(query, key, value, keys, values, base):
        """You add the query to what the token collects. A residual connection leads around the whole of attention,
        outside of this function."""
        blend, *cache = cached_step.reference(query, key, value, keys, values, base)
        return query + blend, *cache

    def value_added(query, key, value, keys, values, base):
        """You add the token's own value to what it collects. The value is in the cache by then, and comes in with its
        weight: what is the sum for?"""
        blend, *cache = cached_step.reference(query, key, value, keys, values, base)
        return value + blend, *cache

    def values_turned_for_the_blend(query, key, value, keys, values, base):
        """{The cache is right, and} for the blend you turn all values by their positions. Positions decide who looks at
        whom; what is collected stays as it is."""
        _, keys, values = cached_step.reference(query, key, value, keys, values, base)
        query = _rotated(query, keys.shape[-2] - 1, base)
        return weights_of(query, keys) @ _rotated_by_place(values, base), keys, values


@cached_step.wrong
class Returned:
    """What is returned."""

    def blend_alone(query, key, value, keys, values, base):
        """You return what the token collects, and nothing else. The next step needs the longer cache: three things come
        back."""
        return cached_step.reference(query, key, value, keys, values, base)[0]

    def weights_returned_too(query, key, value, keys, values, base):
        """You return the weights as well. Three things come back: what the token collects, the keys and the values."""
        blend, keys, values = cached_step.reference(query, key, value, keys, values, base)
        return blend, keys, values, weights_of(_rotated(query, keys.shape[-2] - 1, base), keys)

    def cache_alone(query, key, value, keys, values, base):
        """You return keys and values, and what the token collects is missing. Three things come back: which comes
        first?"""
        return cached_step.reference(query, key, value, keys, values, base)[1:]

    def cache_in_a_tuple(query, key, value, keys, values, base):
        """You return two things, and the second is a pair of keys and values. Three come back, side by side: which
        brackets are too many?"""
        blend, *cache = cached_step.reference(query, key, value, keys, values, base)
        return blend, tuple(cache)

    def cache_first(query, key, value, keys, values, base):
        """You return the cache first, and what the token collects last. Whoever calls takes three things apart in
        order: which does the docstring name first?"""
        blend, *cache = cached_step.reference(query, key, value, keys, values, base)
        return *cache, blend

    def values_before_keys(query, key, value, keys, values, base):
        """You return the values before the keys. Their shapes are equal, so nothing complains, and the next step takes
        the one for the other."""
        return tuple(cached_step.reference(query, key, value, keys, values, base)[i] for i in (0, 2, 1))

    def keys_returned_as_they_were(query, key, value, keys, values, base):
        """{What the token collects is right, and so are the values;} the keys that you return are those that came in.
        Which name holds the longer ones?"""
        blend, _, longer = cached_step.reference(query, key, value, keys, values, base)
        return blend, keys, longer

    def values_returned_as_they_were(query, key, value, keys, values, base):
        """{What the token collects is right, and so are the keys;} the values that you return are those that came in.
        Which name holds the longer ones?"""
        return *cached_step.reference(query, key, value, keys, values, base)[:2], values

    def new_ones_alone_returned(query, key, value, keys, values, base):
        """What the token collects is right; of keys and values you return the new ones alone. The next step needs all
        of them, the old ones and the new."""
        blend, *_ = cached_step.reference(query, key, value, keys, values, base)
        return blend, _rotated(key, keys.shape[-2], base), value

    def bare_new_ones_alone_returned(query, key, value, keys, values, base):
        """What the token collects is right; besides it you return `key` and `value` as they came in. The next step
        needs the whole cache, and in it the new key, turned."""
        blend, *_ = cached_step.reference(query, key, value, keys, values, base)
        return blend, key, value


fixed_length(cached_step, table_of_fixed_length, "300 tokens in the cache")


for _mistaken in (
    Position.one_position_late,
    Position.one_position_early,
    Position.turned_backwards,
    Weights.scores_not_divided,
    Weights.divided_by_d_head,
    Weights.weights_divided,
    Weights.scores_for_weights,
):
    _value_rotated_and(_mistaken)
