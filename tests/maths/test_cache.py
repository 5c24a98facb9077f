"""With a cache, tokens one by one, or several at a time, give the same results as all tokens at once."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import transformer_lab as tl
from agreement import DEVICE, DTYPES, assert_close, few_examples, normal, prepare, raises

CHUNKS = [[1] * 7, [3, 2, 2], [7], [1, 6], [6, 1], [0, 4, 0, 3]]


@few_examples
@given(chunks=st.lists(st.integers(0, 5), min_size=1, max_size=8), lead=st.sampled_from([(), (2,), (2, 1)]))
def test_cache_returns_tokens_in_order(chunks, lead):
    keys = normal(*lead, 3, sum(chunks), 4, seed=1).detach()
    values = normal(*lead, 3, sum(chunks), 2, seed=2).detach()
    cache, end = tl.KeyValueCache(), 0
    assert cache.length == 0
    for n_new in chunks:
        positions = slice(end, end + n_new)
        actual = cache.append(keys[..., positions, :], values[..., positions, :])
        end += n_new
        assert cache.length == end
        for actual_tensor, expected in zip(actual, (keys, values)):
            assert torch.equal(actual_tensor, expected[..., :end, :])


def test_cache_grows_by_doubling_and_keeps_returned_views_valid():
    cache, storage_addresses, returned_views = tl.KeyValueCache(), set(), []
    for token in range(100):
        tokens = torch.full((1, 2, 1, 3), float(token), device=DEVICE)
        key, value = cache.append(tokens, -tokens)
        storage_addresses.add(key.untyped_storage().data_ptr())
        returned_views.append((key, value))
        assert key.untyped_storage().nbytes() <= 2 * max(key.nbytes, 1)
    assert len(storage_addresses) <= 8  # memory is not reallocated for each token
    expected = torch.arange(100.0, device=DEVICE)[:, None].expand(100, 3)
    for n, (key, value) in enumerate(returned_views, 1):
        assert torch.equal(key[0, 1], expected[:n]) and torch.equal(value[0, 0], -expected[:n])


def test_the_cache_holds_copies_without_gradients():
    tokens = normal(1, 2, 1, 3, seed=0)
    key, value = tl.KeyValueCache().append(tokens, tokens)
    assert not key.requires_grad and not value.requires_grad
    with torch.no_grad():
        tokens += 1
    assert not torch.equal(key, tokens)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("lead", [(), (2,)])
def test_steps_match_causal_attention(chunks, lead, dtype):
    torch.manual_seed(0)
    attention = prepare(tl.MultiHeadAttention(12, 3), dtype).eval()
    x = normal(*lead, 7, 12, seed=1, dtype=dtype)
    cache = tl.KeyValueCache()
    steps = torch.cat([attention.step(new, cache) for new in x.split(chunks, dim=-2)], dim=-2)
    assert_close(steps, attention(x, is_causal=True))
    assert cache.length == 7


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("chunks", CHUNKS)
def test_encoder_steps_match_the_causal_encoder(chunks, norm_first):
    torch.manual_seed(0)
    encoder = prepare(tl.Encoder(12, 3, 2, 24, norm_first=norm_first))
    x = normal(2, 7, 12, seed=1)
    caches = [tl.KeyValueCache() for _ in encoder.layers]
    steps = torch.cat([encoder.step(new, caches) for new in x.split(chunks, dim=-2)], dim=-2)
    assert_close(steps, encoder(x, is_causal=True))
    layer, cache = encoder.layers[0], tl.KeyValueCache()
    steps = torch.cat([layer.step(new, cache) for new in x.split(chunks, dim=-2)], dim=-2)
    assert_close(steps, layer(x, is_causal=True))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("chunks", CHUNKS)
def test_decoder_steps_match_the_causal_decoder(chunks, norm_first):
    torch.manual_seed(0)
    decoder = prepare(tl.Decoder(12, 3, 2, 24, norm_first=norm_first))
    x, memory = normal(2, 7, 12, seed=1), normal(2, 5, 12, seed=2)
    mask = tl.padding_mask([5, 2], 5, device=DEVICE)
    caches, memories = [tl.KeyValueCache() for _ in decoder.layers], decoder.project_memory(memory)
    steps = torch.cat([decoder.step(new, caches, memories, mask) for new in x.split(chunks, dim=-2)], dim=-2)
    assert_close(steps, decoder(x, memory, memory_mask=mask, is_causal=True))
    assert not torch.allclose(steps, decoder(x, memory, is_causal=True), atol=1e-3)
    layer, cache, memories = decoder.layers[0], tl.KeyValueCache(), decoder.layers[0].cross_attention.project(memory)
    steps = torch.cat([layer.step(new, cache, memories, mask) for new in x.split(chunks, dim=-2)], dim=-2)
    assert_close(steps, layer(x, memory, memory_mask=mask, is_causal=True))


# The state of linear attention.


def build_linear_attention(dtype=torch.float32, **options):
    torch.manual_seed(0)
    return prepare(tl.LinearAttention(12, 3, **options), dtype).eval()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("lead", [(), (2,), (2, 1)])
def test_steps_match_causal_linear_attention(chunks, lead, dtype):
    attention = build_linear_attention(dtype, chunk_size=2)
    x = normal(*lead, 7, 12, seed=1, dtype=dtype)
    cache = attention.new_cache()
    assert type(cache) is tl.StateCache and cache.length == 0 and cache.state is None
    steps = torch.cat([attention.step(new, cache) for new in x.split(chunks, dim=-2)], dim=-2)
    assert_close(steps, attention(x, is_causal=True))
    assert cache.length == 7
    assert [x.shape for x in cache.state] == [(*lead, 3, 4, 4), (*lead, 3, 4)]


@pytest.mark.parametrize("chunks", CHUNKS)
def test_steps_accept_any_feature_map(chunks):
    attention = build_linear_attention(feature_map=lambda x: torch.cat((x.relu(), (-x).relu()), -1), chunk_size=3)
    x, cache = normal(2, 7, 12, seed=1), attention.new_cache()
    steps = torch.cat([attention.step(new, cache) for new in x.split(chunks, dim=-2)], dim=-2)
    assert_close(steps, attention(x, is_causal=True))
    assert [x.shape for x in cache.state] == [(2, 3, 8, 4), (2, 3, 8)]


@pytest.mark.parametrize("chunks", CHUNKS)
def test_steps_match_an_encoder_with_both_kinds_of_attention(chunks):
    torch.manual_seed(0)
    encoder = prepare(tl.Encoder(12, 3, 2, 24))
    encoder.layers[1].self_attention = build_linear_attention()
    x = normal(2, 7, 12, seed=1)
    caches = [layer.self_attention.new_cache() for layer in encoder.layers]
    assert [type(cache) for cache in caches] == [tl.KeyValueCache, tl.StateCache]
    steps = torch.cat([encoder.step(new, caches) for new in x.split(chunks, dim=-2)], dim=-2)
    assert_close(steps, encoder(x, is_causal=True))


def test_state_has_constant_size_and_earlier_states_stay_valid():
    attention, cache, earlier_states = build_linear_attention(), tl.StateCache(), []
    x = normal(2, 30, 12, seed=1).detach()
    for token in x.split(1, dim=-2):
        attention.step(token, cache)
        earlier_states.append((cache.state, [tensor.clone() for tensor in cache.state]))
    assert cache.length == 30
    for state, copies in earlier_states:  # earlier states are unchanged
        assert all(torch.equal(*pair) for pair in zip(state, copies))
        assert all(tensor.untyped_storage().nbytes() == tensor.nbytes for tensor in state)


def test_state_carries_no_gradient():
    attention, cache = build_linear_attention(), tl.StateCache()
    for tokens in normal(2, 5, 12, seed=1).split([3, 1, 1], dim=-2):
        assert not attention.step(tokens, cache).requires_grad
        assert not any(tensor.requires_grad for tensor in cache.state)


@pytest.mark.parametrize("n_new", [1, 2])
def test_state_of_another_batch_is_refused(n_new):
    attention, cache = tl.LinearAttention(12, 3), tl.StateCache()
    double_attention = tl.LinearAttention(12, 3).double()
    attention.step(torch.zeros(2, 2, 12), cache)
    text = "state's S must have shape ({}, 3, 4, 4), got (2, 3, 4, 4)"
    raises(lambda: attention.step(torch.zeros(1, n_new, 12), cache), ValueError, text.format(1))
    raises(lambda: attention.step(torch.zeros(3, n_new, 12), cache), ValueError, text.format(3))
    text = "state's S must be torch.float64, got torch.float32"
    raises(lambda: double_attention.step(torch.zeros(2, n_new, 12).double(), cache), TypeError, text)
    assert cache.length == 2  # a rejected call changes nothing


# The exact text of every error.


def filled_cache():
    cache = tl.KeyValueCache()
    cache.append(torch.zeros(2, 3, 1, 4), torch.zeros(2, 3, 1, 5))
    return cache


SHAPE_ERROR = "key and value must have shapes (..., heads, new, features) with equally many new tokens, got {} and {}"
DTYPE_AND_DEVICE_ERROR = "{} must have the dtype and the device of the cache, torch.float32 on cpu, got {}"
WRONG_CALLS = [
    ((torch.zeros(1, 3, 1, 4), torch.zeros(2, 3, 1, 5)), ValueError, "key", (2, 3, 2, 4), (1, 3, 1, 4)),
    ((torch.zeros(2, 2, 1, 4), torch.zeros(2, 3, 1, 5)), ValueError, "key", (2, 3, 2, 4), (2, 2, 1, 4)),
    ((torch.zeros(2, 3, 1, 5), torch.zeros(2, 3, 1, 5)), ValueError, "key", (2, 3, 2, 4), (2, 3, 1, 5)),
    ((torch.zeros(2, 3, 1, 4), torch.zeros(2, 3, 1, 4)), ValueError, "value", (2, 3, 2, 5), (2, 3, 1, 4)),
    ((torch.zeros(3, 1, 4), torch.zeros(2, 3, 1, 5)), ValueError, "key", (2, 3, 2, 4), (3, 1, 4)),
]


@pytest.mark.parametrize(("key_and_value", "error", "name", "cached_shape", "new_shape"), WRONG_CALLS)
def test_shapes_that_differ_from_the_cache_are_refused(key_and_value, error, name, cached_shape, new_shape):
    cache = filled_cache()
    raises(
        lambda: cache.append(*key_and_value),
        error,
        f"{name} must have the cache's shape, {cached_shape}, except for axis -2, got {new_shape}",
    )
    assert cache.length == 1
    key, value = cache.append(torch.ones(2, 3, 1, 4), torch.ones(2, 3, 1, 5))  # a rejected call changes nothing
    assert key[0, 0, :, 0].tolist() == value[0, 0, :, 0].tolist() == [0, 1]


def test_other_errors_of_the_cache_name_the_argument():
    key, value = torch.zeros(2, 3, 1, 4), torch.zeros(2, 3, 1, 5)
    raises(
        lambda: filled_cache().append(key, value[:, :, :0]), ValueError, SHAPE_ERROR.format((2, 3, 1, 4), (2, 3, 0, 5))
    )
    raises(lambda: filled_cache().append(key[0, 0, 0], value), ValueError, SHAPE_ERROR.format((4,), (2, 3, 1, 5)))
    raises(lambda: filled_cache().append([1.0], value), TypeError, "key must be a tensor, got list")
    raises(lambda: filled_cache().append(key, value.long()), TypeError, "value must be floating point, got torch.int64")
    raises(
        lambda: filled_cache().append(key.double(), value),
        TypeError,
        DTYPE_AND_DEVICE_ERROR.format("key", "torch.float64 on cpu"),
    )
    raises(
        lambda: filled_cache().append(key, value.to("meta")),
        TypeError,
        DTYPE_AND_DEVICE_ERROR.format("value", "torch.float32 on meta"),
    )
    encoder = tl.Encoder(12, 3, 2, 24)
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        encoder.step(torch.zeros(1, 1, 12), [tl.KeyValueCache()])


@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("chunks", [[1] * 40, [100, *[1] * 20], [3, 50, 1, 1, 0, 2]])
def test_a_cache_with_a_window_keeps_what_later_tokens_see(window, chunks):
    keys, cache, end = normal(1, 2, sum(chunks), 4, seed=0).detach(), tl.KeyValueCache(window), 0
    for n_new in chunks:
        key, value = cache.append(keys[..., end : end + n_new, :], -keys[..., end : end + n_new, :])
        start, end = max(0, end - window + 1), end + n_new
        assert torch.equal(key, keys[..., start:end, :]) and torch.equal(value, -key)
        assert key.untyped_storage().nbytes() <= 2 * max(key.nbytes, 1) and cache.length == end
