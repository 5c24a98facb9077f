"""Every function accepts Python and NumPy numbers; its error messages state the argument, the rule and the value."""

import numpy as np
import pytest
import torch

import transformer_lab as tl
from agreement import DEVICE, assert_close, normal, raises, raises_exactly
from transformer_lab import arguments


@pytest.mark.parametrize("integer", [np.int64, np.int32, np.int8, np.uint8])
def test_numpy_integers_are_accepted_as_sizes(integer):
    two, four, five = map(integer, (2, 4, 5))
    assert torch.equal(tl.causal_mask(four, five), tl.causal_mask(4, 5))
    assert torch.equal(tl.sliding_window_mask(five, two), tl.sliding_window_mask(5, 2))
    assert torch.equal(tl.prefix_mask(five, two), tl.prefix_mask(5, 2))
    assert torch.equal(tl.padding_mask([two, four], five), tl.padding_mask([2, 4], 5))
    assert torch.equal(tl.padding_mask(np.array([2, 4], dtype=integer), five), tl.padding_mask([2, 4], 5))
    assert torch.equal(tl.sinusoidal_positions(five, four), tl.sinusoidal_positions(5, 4))
    assert tl.initial_state(two, two, four, five)[0].shape == (2, 2, 4, 5)
    x = normal(2, 5, 4, seed=1)
    assert_close(tl.split_heads(x, two), tl.split_heads(x, 2))
    assert_close(tl.softmax(x, np.int64(-1)), tl.softmax(x))
    assert_close(tl.standardize(x, np.int64(-1)), tl.standardize(x, -1))
    assert_close(tl.group_norm(x, integer(5)), tl.group_norm(x, 5))
    model = tl.Transformer(*map(integer, (9, 9, 8, 2, 1, 16))).to(DEVICE)
    src = torch.zeros(2, 3, dtype=torch.long, device=DEVICE)
    assert model.generate(src, bos=integer(1), max_new_tokens=integer(2)).shape == (2, 3)


@pytest.mark.parametrize("number", [np.float64, np.float32, np.float16])
def test_numpy_floats_are_accepted_as_numbers(number):
    x = normal(2, 5, 4, seed=1)
    half = number(0.5)
    assert_close(tl.attention_weights(x, x, scale=half), tl.attention_weights(x, x, scale=0.5))
    assert_close(
        tl.scaled_dot_product_attention(x, x, x, scale=-half), tl.scaled_dot_product_attention(x, x, x, scale=-0.5)
    )
    assert_close(tl.standardize(x, -1, eps=half), tl.standardize(x, -1, eps=0.5))
    assert_close(tl.layer_norm(x, eps=half), tl.layer_norm(x, eps=0.5))
    assert_close(tl.rms_norm(x, eps=half), tl.rms_norm(x, eps=0.5))
    layer = tl.EncoderLayer(4, 2, 8, dropout=half).to(DEVICE)
    assert layer(x).shape == x.shape and layer.self_attention.dropout == 0.5


def test_bool_is_not_a_number():
    raises(lambda: tl.causal_mask(True), TypeError, "q_len must be an integer, got True")
    raises(lambda: tl.causal_mask(np.True_), TypeError, f"q_len must be an integer, got {np.True_!r}")
    x = normal(2, 5, 4, seed=1)
    raises(lambda: tl.attention_weights(x, x, scale=True), ValueError, "scale must be a finite number, got True")
    raises(lambda: tl.layer_norm(x, eps=True), ValueError, "eps must be a number, 0 or more, got True")
    raises(lambda: tl.FeedForward(4, dropout=True), ValueError, "dropout must be a probability from 0 to 1, got True")


def test_sizes_become_python_integers():
    assert [type(size) for size in arguments.as_sizes(minimum=0, seq=np.int32(0), batch=3)] == [int, int]
    raises(lambda: arguments.as_sizes(seq=np.int32(0)), ValueError, "seq must be at least 1, got 0")


# The exact message of each rule.

x, half, integers = torch.zeros(2, 3, 4), torch.zeros(2, 3, 4).half(), torch.zeros(2, 3, 4, dtype=torch.long)
on_meta = x.to("meta")
weight = torch.zeros(5, 4)
scores = (2, 6, 3, 4)


def call_with_tensors(query=x, key=x, value=x, mask=None):
    return lambda: arguments.require_attention(query, key, mask, value)


def call_with_mask(*shape, dtype=torch.bool, device="cpu"):
    return lambda: arguments.require_mask(torch.zeros(shape, dtype=dtype, device=device), scores, x.device)


def call_with_bias(*shape, dtype=torch.float32, device="cpu"):
    return lambda: arguments.require_bias(torch.zeros(shape, dtype=dtype, device=device), scores, x)


CALLS_AND_ERRORS = [
    (lambda: arguments.require_floating(x=[1.0]), TypeError, "x must be a tensor, got list: use torch.as_tensor(x)"),
    (
        lambda: arguments.require_floating(x=integers),
        TypeError,
        "x must be floating point, got torch.int64: use x.float()",
    ),
    (
        lambda: arguments.require_sizes(seq=2.0),
        TypeError,
        "seq must be an integer, got 2.0: use int(seq), or // where you divide",
    ),
    (lambda: arguments.require_sizes(seq=0), ValueError, "seq must be at least 1, got 0"),
    (
        lambda: arguments.require_probability(dropout=1.5),
        ValueError,
        "dropout must be a probability from 0 to 1, got 1.5",
    ),
    (
        lambda: arguments.require_kv_heads(4, 6),
        ValueError,
        "n_kv_heads must divide n_heads, got n_kv_heads 4 and n_heads 6",
    ),
    (
        lambda: arguments.require_one_of(("layer", "rms"), norm="batch"),
        ValueError,
        "norm must be one of layer, rms, got 'batch'",
    ),
    (lambda: arguments.require_axis(x, 1.0), TypeError, "dim must be an integer, got 1.0"),
    (lambda: arguments.require_axis(x, 3), IndexError, "dim must be an axis of x, from -3 to 2, got 3"),
    (
        lambda: arguments.require_features(weight, query=on_meta),
        ValueError,
        "query must be on the device of the module's weights, cpu, got meta",
    ),
    (
        lambda: arguments.require_features(weight, query=half),
        TypeError,
        "query must have the dtype of the module's weights, torch.float32, got torch.float16: "
        "use query.to(torch.float32)",
    ),
    (
        lambda: arguments.require_features(weight, memory=x[..., :3]),
        ValueError,
        "memory must have shape (..., k_len, d_model) with d_model 4, got (2, 3, 3)",
    ),
    (
        lambda: arguments.require_mask([True], scores, x.device),
        TypeError,
        "mask must be a tensor of bool, got list: use torch.as_tensor(mask)",
    ),
    (
        call_with_mask(3, 4, dtype=torch.float32),
        TypeError,
        "mask must be bool, True where a query may attend, got torch.float32: "
        "use mask == 0 if 0 lets a query attend, or mask != 0 if 0 hides a key",
    ),
    (
        call_with_mask(3, 4, dtype=torch.uint8),
        TypeError,
        "mask must be bool, True where a query may attend, got torch.uint8: "
        "use mask == 0 if 0 lets a query attend, or mask != 0 if 0 hides a key",
    ),
    (call_with_mask(3, 4, device="meta"), ValueError, "query and mask must be on one device, got cpu and meta"),
    (
        call_with_mask(1, 2, 6, 3, 4),
        ValueError,
        "mask must have at most the 4 axes of the scores (2, 6, 3, 4), got shape (1, 2, 6, 3, 4): use mask.squeeze(0)",
    ),
    (
        call_with_mask(5, 4),
        ValueError,
        "mask must broadcast to the scores (2, 6, 3, 4), got shape (5, 4): its axis -2 (q_len) must be 1 or 3, not 5",
    ),
    (
        lambda: arguments.require_mask(torch.ones(2, 4, dtype=torch.bool), scores, x.device),
        ValueError,
        "mask must broadcast to the scores (2, 6, 3, 4), got shape (2, 4): its axis -2 (q_len) must be 1 or 3, not 2. "
        "Use mask[:, None, None, :], applied to ~mask if True hides a key, as in PyTorch's key_padding_mask",
    ),
    (
        call_with_bias(3, 4, dtype=torch.bool),
        TypeError,
        "bias must be floating point, got torch.bool: if it is a mask, pass it as mask=bias",
    ),
    (
        call_with_bias(3, 4, dtype=torch.float16),
        TypeError,
        "query and bias must share a dtype, got torch.float32 and torch.float16: use bias.to(torch.float32)",
    ),
    (call_with_bias(3, 4, device="meta"), ValueError, "query and bias must be on one device, got cpu and meta"),
    (
        call_with_bias(3, 5),
        ValueError,
        "bias must broadcast to the scores (2, 6, 3, 4), got shape (3, 5): its axis -1 (k_len) must be 1 or 4, not 5",
    ),
    (
        lambda: arguments.require_attention(x, x[:0], None, x, enable_gqa=True),
        ValueError,
        "enable_gqa must be used with equally many heads in key and value, a divisor of the number in query, "
        "got leading axes (2,) and (0,) and (2,)",
    ),
    (
        call_with_tensors(x[0, 0]),
        ValueError,
        "query must have at least 2 axes (..., length, features), got shape (4,): use query[None]",
    ),
    (
        call_with_tensors(key=half),
        TypeError,
        "query and key must share a dtype, got torch.float32 and torch.float16: use key.to(torch.float32)",
    ),
    (call_with_tensors(value=on_meta), ValueError, "query and value must be on one device, got cpu and meta"),
    (call_with_tensors(key=x[..., :3]), ValueError, "query and key must share d_head, got 4 and 3"),
    (call_with_tensors(value=x[:, :2]), ValueError, "key and value must share k_len, got 3 and 2"),
    (
        call_with_tensors(value=torch.zeros(3, 3, 4)),
        ValueError,
        "query and key and value must have leading axes that broadcast, got (2,) and (2,) and (3,)",
    ),
]


@pytest.mark.parametrize(
    ("call", "error", "text"), CALLS_AND_ERRORS, ids=[text[:40] for _, _, text in CALLS_AND_ERRORS]
)
def test_each_error_has_its_exact_text(call, error, text):
    raises_exactly(call, error, text)


ones_and_zeros, zeros = torch.ones(3, 4).tril(), torch.zeros(3, 4)
BOTH_CONVERSIONS = "mask == 0 if 0 lets a query attend, or mask != 0 if 0 hides a key"
MASKS_AND_CONVERSIONS = [
    (ones_and_zeros, "mask.bool(), or mask == 0 if 1 hides a key"),
    (ones_and_zeros.long(), "mask.bool(), or mask == 0 if 1 hides a key"),
    (zeros.masked_fill(ones_and_zeros == 0, -torch.inf), "mask == 0"),
    (zeros.masked_fill(ones_and_zeros == 0, -1e9), "mask == 0"),
    ((ones_and_zeros.int() - 1) * 10_000, "mask == 0"),
    (zeros, BOTH_CONVERSIONS),
    (torch.arange(12).reshape(3, 4), BOTH_CONVERSIONS),
    (torch.full((3, 4), torch.nan), BOTH_CONVERSIONS),
    (torch.zeros(3, 4, device="meta"), BOTH_CONVERSIONS),
]


@pytest.mark.parametrize(("mask", "conversion"), MASKS_AND_CONVERSIONS)
def test_suggested_conversion_depends_on_the_values_of_the_mask(mask, conversion):
    with pytest.raises(TypeError) as raised:
        tl.additive_mask(mask)
    assert str(raised.value).endswith(f": use {conversion}")
    if conversion != BOTH_CONVERSIONS:  # these masks all allow the lower triangle
        repaired = eval(conversion.partition(",")[0], {"mask": mask})
        assert torch.equal(repaired, ones_and_zeros.bool())


def test_unknown_option_names_the_class_that_was_called():
    sizes = {"d_model": 6, "n_heads": 3, "n_layers": 1, "d_ff": 8}
    for build, vocabularies in ((tl.Encoder, {}), (tl.Decoder, {}), (tl.LanguageModel, {"vocab_size": 11})):
        with pytest.raises(TypeError, match=f"^{build.__name__} has no argument 'num_heads'; did you mean 'n_heads'"):
            build(**vocabularies, **sizes, num_heads=3)
    with pytest.raises(TypeError, match=r"^Transformer has no argument 'n_kv_head'; did you mean 'n_kv_heads'"):
        tl.Transformer(11, 11, **sizes, n_kv_head=3)
    with pytest.raises(TypeError, match=r"^LanguageModel has no argument 'max_len'; it has vocab_size, d_model, n_hea"):
        tl.LanguageModel(11, **sizes, max_len=6)


def test_exchanged_batch_and_length_suggest_a_transpose():
    model = tl.Transformer(11, 11, 6, 3, 1, 8)
    src, tgt = torch.ones(2, 5, dtype=torch.long), torch.ones(2, 7, dtype=torch.long)
    with pytest.raises(ValueError, match=r"^src and tgt must share batch.*use src.T and tgt.T"):
        model(src.T, tgt.T)
    with pytest.raises(ValueError, match=r"^x must have shape .* got \(2, 6, 5\): use x.mT$"):
        model.encoder(torch.zeros(2, 6, 5))
    with pytest.raises(ValueError, match=r"^tgt must be from 0 to tgt_vocab - 1, which is 10, got 11$"):
        model(src, tgt + 10)
