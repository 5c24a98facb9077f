"""One step of a model that writes: attention of the newest token, with a cache and rotary positions."""

import torch

from ..exercise import exercise
from .rotate import halves, rotate


def _step(draw, batch=3, heads=7, past=5, d_head=4):  # half of d_head is no other size
    new = [draw(batch, heads, 1, d_head) for _ in range(3)]
    return *new, draw(batch, heads, past, d_head), draw(batch, heads, past, d_head), 20.0


def _turned(x, position, base):
    return rotate.reference(x, torch.tensor([position], device=x.device), base)


def after_the_past(keys):
    """Count the tokens of the cache: that is the position of the new one."""
    return keys.shape[-2]


def turned_query(query, position, base):
    """Turn the query by its position."""
    return _turned(query, position, base)


def turned_key(key, position, base):
    """Turn the new key by its position."""
    return _turned(key, position, base)


def appended(past, new):
    """Put the new one after those of the cache."""
    return torch.cat([past, new], dim=-2)


def weights_of(query, keys):
    """Take the softmax of the scores, divided by √d_head."""
    return (query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(dim=-1)


@exercise(
    inputs=_step,
    axes={
        "query": "batch heads 1 d_head",
        "key": "batch heads 1 d_head",
        "value": "batch heads 1 d_head",
        "keys": "batch heads past d_head",
        "values": "batch heads past d_head",
        "return": "batch heads 1 d_head, batch heads k_len d_head, batch heads k_len d_head",
    },
    hints=(
        "Five tokens are in the cache. At which position does the new one stand, counted from 0?",
        "Query and key of the new token are turned by its position; the keys of the cache have been turned already, "
        "each by its own. Values are never turned. The new token looks at itself, too.",
        "`position = torch.tensor([keys.shape[…]])`, `keys = torch.cat([keys, rotate(key, …)], dim=…)`, the same for "
        "`values`, then softmax and blend as always: `return …, keys, values`",
    ),
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
):
    """Return what the newest token collects, and the cache with its key, turned, and its value."""
    here = position(keys)
    keys = longer_keys(keys, turn_key(key, here, base))
    values = longer_values(values, value)
    return weights(turn_query(query, here, base), keys) @ values, keys, values


@cached_step.probe(plain=True)
def empty_cache(draw):
    """an empty cache"""
    return _step(draw, past=0)


@cached_step.probe(plain=True)
def long_past(draw):
    """twenty tokens in the cache"""
    return _step(draw, batch=1, past=20)


@cached_step.equivalent
def by_pytorch_attention(query, key, value, keys, values, base):
    position = torch.tensor([keys.shape[2]], device=keys.device)
    keys = torch.cat((keys, rotate.reference(key, position, base)), 2)
    values = torch.cat((values, value), 2)
    query = rotate.reference(query, position, base)
    return torch.nn.functional.scaled_dot_product_attention(query, keys, values), keys, values


@cached_step.equivalent
def both_turned_at_once(query, key, value, keys, values, base):
    position = torch.full((1,), keys.shape[-2], device=keys.device)
    query, key = rotate.reference(torch.cat([query, key]), position, base).chunk(2)
    keys, values = torch.cat([keys, key], dim=-2), torch.cat([values, value], dim=-2)
    scores = torch.einsum("bhqd,bhkd->bhqk", query, keys) * query.shape[-1] ** -0.5
    return torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), values), keys, values


@cached_step.mistake(stage="position")
def one_position_late(keys):
    """Your new token stands one position too late. Positions are counted from 0: with five tokens in the cache, which
    number does the sixth have?"""
    return keys.shape[-2] + 1


@cached_step.mistake(stage="position")
def one_position_early(keys):
    """Your new token stands where the last one of the cache stands. With five tokens in the cache, which numbers are
    taken?"""
    return keys.shape[-2] - 1


@cached_step.mistake(stage="turn_query")
def query_not_turned(query, position, base):
    """Your scores are those of a query that is not turned: you leave it as it came, or you turn it and all keys by the
    same position, which changes no score. The keys of the cache have been turned already. Which two tensors are new?"""
    return query


@cached_step.mistake(stage="turn_key")
def key_not_turned(key, position, base):
    """Your new key is not turned: it goes into the cache as if it stood at position 0. Which tensors does the position
    belong to?"""
    return key


@cached_step.mistake
def neither_turned(query, key, value, keys, values, base):
    """It comes out as if neither the query nor the new key were turned: you turn neither, or you turn the query and,
    for the scores, all keys by the same position, which changes no score. Where does the new token stand, and which
    tensors have not been turned yet?"""
    keys, values = appended(keys, key), appended(values, value)
    return weights_of(query, keys) @ values, keys, values


@cached_step.mistake
def cache_turned_again(query, key, value, keys, values, base):
    """You turn the keys of the cache, and they have been turned already, each when it was new. What is kept is ready
    for use: which tensor is new in this step?"""
    here = torch.arange(keys.shape[-2] + 1, device=keys.device)
    keys = rotate.reference(appended(keys, key), here, base)
    values = appended(values, value)
    return weights_of(_turned(query, len(here) - 1, base), keys) @ values, keys, values


@cached_step.mistake
def all_turned_again(query, key, value, keys, values, base):
    """You turn the new key, put it into the cache, and turn all keys of the cache once more. Each has been turned when
    it was new, and once is enough. Which of your turns is one too many?"""
    here = torch.arange(keys.shape[-2] + 1, device=keys.device)
    keys = rotate.reference(appended(keys, _turned(key, len(here) - 1, base)), here, base)
    values = appended(values, value)
    return weights_of(_turned(query, len(here) - 1, base), keys) @ values, keys, values


@cached_step.mistake
def all_turned_again_for_scores(query, key, value, keys, values, base):
    """The cache that you return is right. For the scores you turn its keys once more, and each has been turned already,
    when it was new. What does the cache hold: keys as they come, or keys ready for use?"""
    return _for_scores(query, key, value, keys, values, base, stored=_turned, seen=_by_places)


@cached_step.mistake
def past_turned_again_for_scores(query, key, value, keys, values, base):
    """The cache that you return is right. For the scores you turn the keys of the earlier tokens once more, and they
    have been turned already, each when it was new. Which key has not been turned yet?"""
    return _for_scores(query, key, value, keys, values, base, stored=_turned, seen=_past_by_places)


@cached_step.mistake
def cache_kept_unturned(query, key, value, keys, values, base):
    """You store the new key as it comes, and turn all keys for the scores. That would do for a cache of keys that are
    not turned; in this one each has been turned already, when it was new, and in your scores it is turned twice. In
    which state must the new key go into the cache?"""
    return _for_scores(query, key, value, keys, values, base, stored=_as_it_comes, seen=_by_places)


@cached_step.mistake
def key_stored_unturned(query, key, value, keys, values, base):
    """What the token collects is right; the key that you store is not turned. The next step takes all keys of the cache
    for turned ones. Which of your two keys, the one before the turn or the one after it, goes into the cache?"""
    return _for_scores(query, key, value, keys, values, base, stored=_as_it_comes, seen=_last_by_its_place)


@cached_step.mistake
def turned_after_appending(query, key, value, keys, values, base):
    """You turn all keys by the position of the new token, and those of the cache have been turned already, each by its
    own. Have you put the new key into the cache first, and turned then? Which of the two comes first?"""
    here = keys.shape[-2]
    keys = _turned(appended(keys, key), here, base)
    values = appended(values, value)
    return weights_of(_turned(query, here, base), keys) @ values, keys, values


def _for_scores(query, key, value, keys, values, base, *, stored, seen):
    """Make a step in which the query sees other keys than the cache holds."""
    here = keys.shape[-2]
    keys = appended(keys, stored(key, here, base))
    values = appended(values, value)
    return weights_of(_turned(query, here, base), seen(keys, base)) @ values, keys, values


def _as_it_comes(key, position, base):
    return key


def _by_places(keys, base):
    return rotate.reference(keys, torch.arange(keys.shape[-2], device=keys.device), base)


def _past_by_places(keys, base):
    return appended(_by_places(keys[:, :, :-1], base), keys[:, :, -1:])


def _last_by_its_place(keys, base):
    return appended(keys[:, :, :-1], _turned(keys[:, :, -1:], keys.shape[-2] - 1, base))


@cached_step.mistake
def value_turned(query, key, value, keys, values, base):
    """You turn the value as well. Positions decide who looks at whom, and that is the matter of queries and keys; what
    is collected stays as it is."""
    here = keys.shape[-2]
    keys = appended(keys, _turned(key, here, base))
    values = appended(values, _turned(value, here, base))
    return weights_of(_turned(query, here, base), keys) @ values, keys, values


@cached_step.mistake
def itself_not_seen(query, key, value, keys, values, base):
    """The new token does not look at itself: you blend before its key and value are in the cache. Which comes first?"""
    here = keys.shape[-2]
    blend = weights_of(_turned(query, here, base), keys) @ values
    return blend, appended(keys, _turned(key, here, base)), appended(values, value)


@cached_step.mistake
def cache_returned_as_it_was(query, key, value, keys, values, base):
    """What the token collects is right, and you return the cache as it came in. The next step needs this token's key
    and value, too."""
    blend, *_ = cached_step.reference(query, key, value, keys, values, base)
    return blend, keys, values


@cached_step.mistake
def only_itself(query, key, value, keys, values, base):
    """Your token looks at itself alone, so that its own value comes back. What are the keys of the cache for?"""
    here = keys.shape[-2]
    return value, appended(keys, _turned(key, here, base)), appended(values, value)


@cached_step.mistake(stage="longer_keys")
def key_in_front(past, new):
    """The new key stands in front of the cache and its value at the end, so that each weight meets the value of another
    token. Both belong at the end."""
    return torch.cat([new, past], dim=-2)


@cached_step.mistake
def both_in_front(query, key, value, keys, values, base):
    """The new key and value stand in front of the cache. The blend is the same, since order does not matter to it; the
    cache is in the order of the text, and the newest is last."""
    here = keys.shape[-2]
    keys = torch.cat([_turned(key, here, base), keys], dim=-2)
    values = torch.cat([value, values], dim=-2)
    return weights_of(_turned(query, here, base), keys) @ values, keys, values


@cached_step.mistake(stage="weights")
def scores_not_divided(query, keys):
    """The scores are not divided by √d_head. Where does the size of a head enter your function?"""
    return (query @ keys.transpose(-2, -1)).softmax(dim=-1)


@cached_step.mistake(stage="weights")
def divided_by_d_head(query, keys):
    """The scores are divided by d_head, and not by its root. For heads of 64 that is 64 in place of 8."""
    return (query @ keys.transpose(-2, -1) / query.shape[-1]).softmax(dim=-1)


@cached_step.mistake(stage="weights")
def scores_for_weights(query, keys):
    """You blend with the scores themselves: the softmax is missing. What must the weights of a token sum to?"""
    return query @ keys.transpose(-2, -1) / query.shape[-1] ** 0.5


@cached_step.mistake
def pairs_in_halves(query, key, value, keys, values, base):
    """You pair feature i with feature i + d_head/2. Here neighbours are a pair, as in exercise 9.1: your own `rotate`
    does it."""
    here = torch.tensor([keys.shape[-2]], device=keys.device)
    keys = appended(keys, halves(key, here, base))
    values = appended(values, value)
    return weights_of(halves(query, here, base), keys) @ values, keys, values


@cached_step.mistake
def position_is_a_plain_number(query, key, value, keys, values, base):
    """A whole number is indexed as if it were a tensor. Does `rotate` get `keys.shape[…]` itself as its positions? It
    expects a tensor of the shape (seq,), one position for each token, and reads it with `[:, None]`. How many tokens
    are given here?"""
    here = keys.shape[-2]
    return _turned(query, here[:, None], base)  # so a `rotate` that follows its hint begins


@cached_step.mistake
def position_without_an_axis(query, key, value, keys, values, base):
    """A tensor without axes is indexed as if it had one. Does `rotate` get `torch.tensor(keys.shape[…])` as its
    positions? That is a single number in a tensor, and `rotate` expects the shape (seq,), one position for each token,
    even if it is just one. Which shape does `torch.tensor([5])` have?"""
    here = torch.tensor(keys.shape[-2], device=keys.device)
    return _turned(query, here[:, None], base)
