"""Layers agree with PyTorch's layers that have the same weights, and some properties hold for any weights."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import transformer_lab as tl
from agreement import (
    DEVICE,
    DTYPES,
    FULL_PRECISION,
    assert_close,
    assert_gradients_close,
    assert_same_parameters,
    assert_separate_copies,
    gradients,
    normal,
    prepare,
    raises,
)

D_MODEL, N_HEADS, D_FF = 12, 3, 20
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "F.gelu": F.gelu, "nn.GELU": nn.GELU(), "nn.ReLU": nn.ReLU()}
ACTIVATIONS |= {"F.silu": F.silu, "nn.SiLU": nn.SiLU(), "tanh": nn.GELU(approximate="tanh")}


def build_torch_layer(torch_class, dtype=torch.float32, **options):
    torch.manual_seed(0)
    return prepare(torch_class(D_MODEL, N_HEADS, D_FF, **{"dropout": 0.0, "batch_first": True} | options), dtype)


def vectors(length, seed=1, batch=2, dtype=torch.float32):
    return normal(batch, length, D_MODEL, seed=seed, dtype=dtype)


def call_torch(module, batch_first, *inputs, **masks):
    """Call PyTorch's module with the order of axes that it expects; here, inputs and output have the batch first."""
    if batch_first:
        return module(*inputs, **masks)
    return module(*(x.transpose(0, 1) for x in inputs), **masks).transpose(0, 1)


def encoder_masks():
    random_mask = (normal(5, 5, seed=11) > 0).detach() | torch.eye(5, dtype=torch.bool, device=DEVICE)
    padding, causal = tl.padding_mask([3, 5], 5, device=DEVICE), tl.causal_mask(5, device=DEVICE)
    key_padding_mask = ~padding[:, 0, 0]
    return {
        "none": ({}, {}),
        "some": ({"mask": random_mask}, {"src_mask": ~random_mask}),
        "causal": ({"is_causal": True}, {"src_mask": ~causal, "is_causal": True}),
        "padding": ({"mask": padding}, {"src_key_padding_mask": key_padding_mask}),
        "both": ({"mask": padding & causal}, {"src_mask": ~causal, "src_key_padding_mask": key_padding_mask}),
    }


def decoder_masks():
    random_mask = (normal(5, 6, seed=11) > 0).detach()
    random_mask[:, 0] = True
    padding, causal = tl.padding_mask([3, 5], 5, device=DEVICE), tl.causal_mask(5, device=DEVICE)
    memory_mask = tl.padding_mask([6, 2], 6, device=DEVICE)
    tgt_padding, memory_padding = ~padding[:, 0, 0], ~memory_mask[:, 0, 0]
    return {
        "none": ({}, {}),
        "causal": ({"is_causal": True}, {"tgt_mask": ~causal, "tgt_is_causal": True}),
        "memory": ({"memory_mask": random_mask}, {"memory_mask": ~random_mask}),
        "all": (
            {"mask": padding & causal, "memory_mask": memory_mask & random_mask},
            {
                "tgt_mask": ~causal,
                "tgt_key_padding_mask": tgt_padding,
                "memory_mask": ~random_mask,
                "memory_key_padding_mask": memory_padding,
            },
        ),
    }


# Agreement with PyTorch's layers.

OPTIONS = [
    {"norm_first": norm_first, "bias": bias, "batch_first": batch_first, "activation": activation}
    for (norm_first, bias, batch_first), activation in zip(
        [(f, b, s) for f in (False, True) for b in (True, False) for s in (True, False)],
        ["relu", "gelu", "F.gelu", "nn.ReLU", "nn.GELU", "F.silu", "nn.SiLU", "tanh"],
    )
]


def assert_same_as_torch(torch_class, our_class, options, dtype, inputs, masks):
    options = options | {"activation": ACTIVATIONS[options["activation"]], "layer_norm_eps": 0.01}
    module = build_torch_layer(torch_class, dtype, **options)
    state = torch.get_rng_state()
    our_layer = our_class.from_torch(module)
    assert torch.equal(torch.get_rng_state(), state)  # no random numbers were drawn
    assert_separate_copies(our_layer, module)
    assert our_layer.norm_first == options["norm_first"] and our_layer.norm1.eps == our_layer.norm2.eps == 0.01
    for our_masks, torch_masks in masks.values():
        actual = our_layer(*inputs, **our_masks)
        expected = call_torch(module, options["batch_first"], *inputs, **torch_masks)
        assert_close(actual, expected)
        assert_gradients_close(actual, expected, inputs)
        assert_same_parameters(actual, our_layer, expected, module)


@pytest.mark.parametrize("dtype", FULL_PRECISION)
@pytest.mark.parametrize("options", OPTIONS)
def test_encoder_layer_matches_pytorch(options, dtype):
    inputs = [vectors(5, dtype=dtype)]
    assert_same_as_torch(nn.TransformerEncoderLayer, tl.EncoderLayer, options, dtype, inputs, encoder_masks())


@pytest.mark.parametrize("dtype", FULL_PRECISION)
@pytest.mark.parametrize("options", OPTIONS)
def test_decoder_layer_matches_pytorch(options, dtype):
    inputs = [vectors(5, dtype=dtype), vectors(6, seed=2, dtype=dtype)]
    assert_same_as_torch(nn.TransformerDecoderLayer, tl.DecoderLayer, options, dtype, inputs, decoder_masks())


@pytest.mark.parametrize("norm_first", [False, True])
def test_evaluation_matches_pytorchs_fast_path(norm_first):
    module = build_torch_layer(nn.TransformerEncoderLayer, norm_first=norm_first, activation="gelu").eval()
    our_layer, x = tl.EncoderLayer.from_torch(module), vectors(5)
    assert not any(part.training for part in our_layer.modules())
    with torch.no_grad():
        assert_close(our_layer(x), module(x))
        padding = tl.padding_mask([3, 5], 5, device=DEVICE)
        expected = module(x, src_key_padding_mask=~padding[:, 0, 0])
        assert_close(our_layer(x, padding)[1], expected[1])
        assert_close(our_layer(x, padding)[0, :3], expected[0, :3])


@pytest.mark.parametrize("norm_first", [False, True])
def test_dropout_matches_pytorch(norm_first):
    """With the same seed, dropout zeroes the same entries in attention, in feed-forward, and before every sum."""
    # one sequence each: for larger batches, PyTorch draws in an order other than ours
    x, memory = vectors(5, batch=1), vectors(6, seed=2, batch=1)
    for torch_class, our_class, inputs in (
        (nn.TransformerEncoderLayer, tl.EncoderLayer, (x,)),
        (nn.TransformerDecoderLayer, tl.DecoderLayer, (x, memory)),
    ):
        module = build_torch_layer(torch_class, norm_first=norm_first, dropout=0.3)
        our_layer = our_class.from_torch(module)
        outputs = []
        for layer in (our_layer, module):
            torch.manual_seed(1)
            outputs.append(layer(*inputs))
        assert_close(*outputs)
        assert not torch.equal(our_layer(*inputs), our_layer(*inputs))
        our_layer.eval()
        assert torch.equal(our_layer(*inputs), our_layer(*inputs))
        assert_close(our_layer(*inputs), module.eval()(*inputs))
        assert {part.p for part in our_layer.modules() if isinstance(part, nn.Dropout)} == {0.3}
        assert our_layer.self_attention.dropout == 0.3
        if our_class is tl.DecoderLayer:
            assert our_layer.cross_attention.dropout == 0.3


def test_dropout_of_everything_leaves_the_residual():
    x, memory = vectors(5), vectors(6, seed=2)
    pre = tl.EncoderLayer(D_MODEL, N_HEADS, D_FF, dropout=1.0, norm_first=True).to(DEVICE)
    assert_close(pre(x), x)
    post = tl.DecoderLayer(D_MODEL, N_HEADS, D_FF, dropout=1.0).to(DEVICE)
    assert_close(post(x, memory), tl.layer_norm(tl.layer_norm(tl.layer_norm(x))))
    feed_forward = prepare(tl.FeedForward(D_MODEL, D_FF, dropout=1.0))
    assert_close(feed_forward(x), feed_forward.linear2.bias.expand(x.shape))


def test_from_torch_refuses_unsupported_options():
    def encoder_layer(**options):
        return tl.EncoderLayer.from_torch(nn.TransformerEncoderLayer(8, 2, 16, **options))

    text = "module must have activation relu, gelu or silu, got {}"
    raises(lambda: encoder_layer(activation=F.elu), ValueError, text.format(F.elu))
    raises(lambda: encoder_layer(activation=nn.Tanh()), ValueError, text.format("Tanh()"))
    for part, value in (("dropout", nn.Dropout(0.2)), ("dropout2", nn.Dropout(0.2))):
        module = nn.TransformerEncoderLayer(8, 2, 16)
        setattr(module, part, value)
        text = "module must have one dropout for all its parts, got [0.1, 0.2]"
        raises(lambda module=module: tl.EncoderLayer.from_torch(module), ValueError, text)
    module = nn.TransformerDecoderLayer(8, 2, 16)
    module.self_attn.dropout = 0.5
    text = "module must have one dropout for all its parts, got [0.1, 0.5]"
    raises(lambda: tl.DecoderLayer.from_torch(module), ValueError, text)
    module = nn.TransformerDecoderLayer(8, 2, 16)
    module.multihead_attn.dropout = 0.5
    raises(lambda: tl.DecoderLayer.from_torch(module), ValueError, text)
    for torch_class, our_class, names in (
        (nn.TransformerEncoderLayer, tl.EncoderLayer, ("norm1", "norm2")),
        (nn.TransformerDecoderLayer, tl.DecoderLayer, ("norm1", "norm2", "norm3")),
    ):
        for name in names:
            module = torch_class(8, 2, 16)
            setattr(module, name, nn.Identity())
            text = "module must be a torch.nn.LayerNorm, got Identity"
            raises(lambda module=module, our_class=our_class: our_class.from_torch(module), TypeError, text)
        text = f"module must be a torch.nn.{torch_class.__name__}, got Linear"
        raises(lambda our_class=our_class: our_class.from_torch(nn.Linear(8, 8)), TypeError, text)
    module = nn.TransformerEncoderLayer(8, 2, 16)
    module.self_attn = nn.MultiheadAttention(8, 2, add_zero_attn=True, dropout=0.1)
    text = "module must have add_zero_attn=False, got True: extra keys are not supported"
    raises(lambda: tl.EncoderLayer.from_torch(module), ValueError, text)


# Properties for any weights.


def build_layers(**options):
    torch.manual_seed(0)
    encoder = prepare(tl.EncoderLayer(D_MODEL, N_HEADS, D_FF, **options))
    return encoder, prepare(tl.DecoderLayer(D_MODEL, N_HEADS, D_FF, **options), seed=1)


def normalize(module, x):
    return tl.standardize(x, -1) * module.weight + module.bias


@pytest.mark.parametrize("norm_first", [False, True])
def test_layers_match_their_parts(norm_first):
    encoder, decoder = build_layers(norm_first=norm_first)
    x, memory = vectors(5), vectors(6, seed=2)

    def add(x, part, module):
        return x + part(normalize(module, x)) if norm_first else normalize(module, x + part(x))

    def feed_forward(layer):
        linear1, linear2 = layer.feed_forward.linear1, layer.feed_forward.linear2
        return lambda x: torch.relu(x @ linear1.weight.T + linear1.bias) @ linear2.weight.T + linear2.bias

    expected = add(add(x, encoder.self_attention, encoder.norm1), feed_forward(encoder), encoder.norm2)
    assert_close(encoder(x), expected)
    expected = add(x, lambda x: decoder.self_attention(x, is_causal=True), decoder.norm1)
    expected = add(expected, lambda x: decoder.cross_attention(x, memory), decoder.norm2)
    assert_close(decoder(x, memory, is_causal=True), add(expected, feed_forward(decoder), decoder.norm3))


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("lead", [(), (2,), (2, 1, 3), (0,)])
def test_feed_forward_is_applied_to_each_position(activation, lead):
    module = prepare(tl.FeedForward(D_MODEL, D_FF, activation))
    x = normal(*lead, 4, D_MODEL, seed=1)
    actual = module(x)
    assert actual.shape == x.shape
    for position in range(4):
        assert_close(module(x[..., position : position + 1, :]), actual[..., position : position + 1, :])
    features = x @ module.linear1.weight.T + module.linear1.bias
    features = (
        features * (features > 0) if activation == "relu" else features * 0.5 * (1 + torch.erf(features / math.sqrt(2)))
    )
    assert_close(actual, features @ module.linear2.weight.T + module.linear2.bias)


def test_feed_forward_defaults_to_four_times_d_model():
    module = tl.FeedForward(D_MODEL)
    assert module.linear1.weight.shape == (4 * D_MODEL, D_MODEL)
    assert [name for name, _ in tl.FeedForward(D_MODEL, bias=False).named_parameters()] == [
        "linear1.weight",
        "linear2.weight",
    ]


@pytest.mark.parametrize("norm_first", [False, True])
def test_without_positions_the_model_is_permutation_equivariant(norm_first):
    encoder, decoder = build_layers(norm_first=norm_first)
    x, memory, order = vectors(5), vectors(6, seed=2), torch.tensor([3, 0, 4, 2, 1])
    assert_close(encoder(x[:, order]), encoder(x)[:, order])
    assert_close(decoder(x[:, order], memory), decoder(x, memory)[:, order])
    assert_close(decoder(x, memory[:, [5, 3, 0, 1, 2, 4]]), decoder(x, memory))
    assert not torch.allclose(encoder(x[:, order], is_causal=True), encoder(x, is_causal=True)[:, order], atol=1e-3)


@pytest.mark.parametrize("lead", [(), (2, 3)])
def test_leading_axes_are_independent(lead):
    encoder, decoder = build_layers()
    x, memory = normal(*lead, 5, D_MODEL, seed=1), normal(*lead, 6, D_MODEL, seed=2)
    encoded, decoded = encoder(x, is_causal=True), decoder(x, memory)
    assert encoded.shape == decoded.shape == x.shape
    for index in [()] if not lead else [(0, 0), (1, 2)]:
        assert_close(encoded[index], encoder(x[index], is_causal=True))
        assert_close(decoded[index], decoder(x[index], memory[index]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("norm_first", [False, True])
def test_fully_masked_tokens_are_finite(norm_first, dtype):
    encoder, decoder = (layer.to(dtype) for layer in build_layers(norm_first=norm_first))
    x, memory = vectors(5, dtype=dtype), vectors(6, seed=2, dtype=dtype)
    empty_mask = torch.zeros(5, 5, dtype=torch.bool, device=DEVICE)
    for output, layer in (
        (encoder(x, empty_mask), encoder),
        (decoder(x, memory, empty_mask, tl.padding_mask([0, 3], 6, device=DEVICE)), decoder),
    ):
        assert output.isfinite().all()
        inputs = [x, *layer.parameters()]
        assert all(grad is None or grad.isfinite().all() for grad in gradients(output, inputs))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast_agree_with_float32(dtype):
    for norm_first in (False, True):
        encoder, decoder = build_layers(norm_first=norm_first, activation="gelu")
        x, memory = vectors(5), vectors(6, seed=2)
        expected = encoder(x).detach(), decoder(x, memory).detach()
        with torch.autocast(DEVICE.type, dtype=dtype):
            assert_close(encoder(x).to(dtype), expected[0])
            assert_close(decoder(x, memory).to(dtype), expected[1])
        assert_close(encoder.to(dtype)(x.to(dtype)), expected[0])
        assert_close(decoder.to(dtype)(x.to(dtype), memory.to(dtype)), expected[1])


@pytest.mark.parametrize("norm_first", [False, True])
def test_norms_may_stay_in_float32(norm_first):
    encoder, decoder = build_layers(norm_first=norm_first)
    x, memory = vectors(5).bfloat16(), vectors(6, seed=2).bfloat16()
    with torch.no_grad():
        expected = encoder(x.float()), decoder(x.float(), memory.float())
    for layer in (encoder, decoder):
        layer.bfloat16()
        for norm in layer.children():
            if isinstance(norm, tl.LayerNorm):
                norm.float()
    assert_close(encoder(x), expected[0])
    assert_close(decoder(x, memory, memory_mask=tl.padding_mask([6, 6], 6, device=DEVICE)), expected[1])


def test_from_torch_keeps_frozen_parameters_and_knows_all_relus():
    module = nn.TransformerEncoderLayer(D_MODEL, N_HEADS, D_FF, dropout=0.0, activation=torch.relu)
    module.requires_grad_(False)
    our_layer = tl.EncoderLayer.from_torch(module)
    assert our_layer.feed_forward.activation == "relu"
    assert not any(parameter.requires_grad for parameter in our_layer.parameters())


def test_steps_carry_no_gradient():
    encoder, decoder = build_layers()
    x, memory = vectors(3), vectors(6, seed=2)
    cache = encoder.self_attention.new_cache()
    assert not any(encoder.step(new, cache).requires_grad for new in x.split(1, -2))
    cache, projected = decoder.self_attention.new_cache(), decoder.cross_attention.project(memory)
    assert not any(decoder.step(new, cache, projected).requires_grad for new in x.split(1, -2))


@pytest.mark.parametrize(("batch", "q_len", "k_len"), [(0, 3, 4), (2, 0, 4), (2, 3, 0), (2, 1, 1)])
def test_empty_and_single_token_inputs_keep_their_shape(batch, q_len, k_len):
    encoder, decoder = build_layers()
    x, memory = vectors(q_len, batch=batch), vectors(k_len, seed=2, batch=batch)
    for output in (encoder(x), encoder(x, is_causal=True), decoder(x, memory), decoder(x, memory, is_causal=True)):
        assert output.shape == x.shape and output.isfinite().all()


@pytest.mark.parametrize("bias", [True, False])
def test_parameter_counts_of_both_layers(bias):
    encoder = tl.EncoderLayer(D_MODEL, N_HEADS, D_FF, bias=bias)
    decoder = tl.DecoderLayer(D_MODEL, N_HEADS, D_FF, bias=bias)
    attention = 4 * D_MODEL**2 + bias * 4 * D_MODEL
    feed_forward = 2 * D_MODEL * D_FF + bias * (D_MODEL + D_FF)
    norms = (1 + bias) * D_MODEL
    assert sum(p.numel() for p in encoder.parameters()) == attention + feed_forward + 2 * norms
    assert sum(p.numel() for p in decoder.parameters()) == 2 * attention + feed_forward + 3 * norms
    assert any("bias" in name for name, _ in decoder.named_parameters()) == bias


# The Llama-style block.


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("bias", [True, False])
def test_gate_multiplies_the_features(activation, bias):
    module = prepare(tl.FeedForward(D_MODEL, D_FF, activation, bias=bias, gated=True))
    x = vectors(5)

    def activate(z):
        if activation == "silu":
            return z / (1 + (-z).exp())
        if activation == "gelu_tanh":
            return z / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
        return z * (z > 0) if activation == "relu" else z / 2 * (1 + torch.erf(z / math.sqrt(2)))

    def linear(z, layer):
        z = z @ layer.weight.double().cpu().T
        return z + layer.bias.double().cpu() if bias else z

    x_float64 = x.double().cpu()
    expected = linear(activate(linear(x_float64, module.gate)) * linear(x_float64, module.linear1), module.linear2)
    assert_close(module(x), expected)
    inputs = (x, *module.parameters())
    assert len(inputs) == (7 if bias else 4)
    assert_gradients_close(module(x), expected, inputs)


def test_gated_layer_has_as_many_parameters_as_a_plain_one():
    for d_model in (3, 576, 768):
        plain, gated = (tl.FeedForward(d_model, bias=False, gated=gated) for gated in (False, True))
        assert gated.linear1.out_features == gated.gate.out_features == 8 * d_model // 3
        assert abs(tl.count_parameters(gated) - tl.count_parameters(plain)) <= 3 * d_model
    assert tl.FeedForward(4, 5, gated=True).linear2.in_features == 5


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_layers_accept_either_norm_and_its_eps(norm, norm_first):
    norm_classes = {"layer": (tl.LayerNorm, 1e-5), "rms": (tl.RMSNorm, 1e-6)}
    norm_class, default_eps = norm_classes[norm]
    for layer_class in (tl.EncoderLayer, tl.DecoderLayer):
        for eps in (None, 0.25):
            layer = prepare(layer_class(D_MODEL, N_HEADS, D_FF, norm_first=norm_first, norm=norm, eps=eps))
            norms = [part for part in layer.modules() if isinstance(part, (tl.LayerNorm, tl.RMSNorm))]
            assert len(norms) == (2 if layer_class is tl.EncoderLayer else 3)
            assert all(type(part) is norm_class and part.eps == (default_eps if eps is None else eps) for part in norms)
    layer = prepare(tl.EncoderLayer(D_MODEL, N_HEADS, D_FF, norm_first=norm_first, norm=norm, eps=0.25))
    x = vectors(5)

    def normalized(x, part):
        x = x - x.mean(-1, keepdim=True) if norm == "layer" else x
        x = x / (x.square().mean(-1, keepdim=True) + 0.25).sqrt() * part.weight
        return x + part.bias if norm == "layer" else x

    y = x
    for part, part_norm in ((layer.self_attention, layer.norm1), (layer.feed_forward, layer.norm2)):
        y = y + part(normalized(y, part_norm)) if norm_first else normalized(y + part(y), part_norm)
    assert_close(layer(x), y)


def test_layers_pass_options_to_attention():
    encoder, decoder = (
        prepare(layer_class(D_MODEL, 6, D_FF, n_kv_heads=2, rotate=tl.rotary, gated=True)).eval()
        for layer_class in (tl.EncoderLayer, tl.DecoderLayer)
    )
    assert encoder.self_attention.n_kv_heads == decoder.cross_attention.n_kv_heads == 2
    assert encoder.self_attention.rotate is decoder.self_attention.rotate is tl.rotary
    # no rotation in cross-attention, since source and target are different sequences
    assert decoder.cross_attention.rotate is None
    x, memory = vectors(5), vectors(6, seed=2)
    for layer, memories in ((encoder, []), (decoder, [memory])):
        cache = layer.self_attention.new_cache()
        projected = [layer.cross_attention.project(memory)] if memories else []
        steps = [layer.step(new, cache, *projected) for new in x.split([2, 1, 1, 1], 1)]
        assert_close(torch.cat(steps, 1), layer(x, *memories, is_causal=True))


# The exact text of every error.

encoders = {norm_first: tl.EncoderLayer(8, 2, 16, norm_first=norm_first) for norm_first in (False, True)}
decoders = {norm_first: tl.DecoderLayer(8, 2, 16, norm_first=norm_first) for norm_first in (False, True)}
x, y = torch.zeros(3, 4, 8), torch.zeros(3, 6, 8)
bool_mask = torch.ones(4, 6, dtype=torch.bool)
DTYPE_ERROR = "{} must have the dtype of the module's weights, torch.float32, got torch.{}"
MASK_SHAPE_ERROR = "mask must broadcast to the scores (3, 2, 4, {}), got shape {}: its axis {} must be 1 or {}, not {}"
WRONG_CALLS = [
    (lambda: tl.FeedForward(0), ValueError, "d_model must be at least 1, got 0"),
    (lambda: tl.FeedForward(8, 0), ValueError, "d_ff must be at least 1, got 0"),
    (lambda: tl.FeedForward(8, 1.5), TypeError, "d_ff must be an integer, got 1.5"),
    (lambda: tl.FeedForward(8, 8, "tanh"), ValueError, "activation must be one of relu, gelu, got 'tanh'"),
    (lambda: tl.FeedForward(8, 8, ["relu"]), ValueError, "activation must be one of relu, gelu, got ['relu']"),
    (lambda: tl.EncoderLayer(8, 2, 16, norm="batch"), ValueError, "norm must be one of layer, rms, got 'batch'"),
    (lambda: tl.DecoderLayer(8, 2, 16, norm=None), ValueError, "norm must be one of layer, rms, got None"),
    (
        lambda: tl.EncoderLayer(8, 4, 16, n_kv_heads=3),
        ValueError,
        "n_kv_heads must divide n_heads, got n_kv_heads 3 and n_heads 4",
    ),
    (
        lambda: tl.EncoderLayer(6, 2, 16, rotate=tl.rotary)(torch.zeros(3, 4, 6)),
        ValueError,
        "x must have shape (..., heads, seq, d_head), d_head even, got (3, 2, 4, 3)",
    ),
    (lambda: tl.FeedForward(8, dropout=-1), ValueError, "dropout must be a probability from 0 to 1, got -1"),
    (
        lambda: tl.FeedForward(8)(x[..., :6]),
        ValueError,
        "x must have shape (..., seq, d_model) with d_model 8, got (3, 4, 6)",
    ),
    (lambda: tl.FeedForward(8)(x.long()), TypeError, "x must be floating point, got torch.int64"),
    (
        lambda: tl.EncoderLayer(8, 3, 16),
        ValueError,
        "n_heads must divide d_model, got n_heads 3 and d_model 8",
    ),
    (
        lambda: tl.EncoderLayer(8, 2, 16, dropout="0.1"),
        ValueError,
        "dropout must be a probability from 0 to 1, got '0.1'",
    ),
    (lambda: tl.DecoderLayer(8, 2, True), TypeError, "d_ff must be an integer, got True"),
    (lambda: tl.DecoderLayer(-8, 2, 16), ValueError, "d_model must be at least 1, got -8"),
]
for norm_first in (False, True):
    e, d = encoders[norm_first], decoders[norm_first]
    WRONG_CALLS += [
        (lambda e=e: e([1.0]), TypeError, "x must be a tensor, got list"),
        (lambda e=e: e(x.double()), TypeError, DTYPE_ERROR.format("x", "float64")),
        (lambda e=e: e(x.bool()), TypeError, "x must be floating point, got torch.bool"),
        (
            lambda e=e: e(x[..., :6]),
            ValueError,
            "x must have shape (..., seq, d_model) with d_model 8, got (3, 4, 6)",
        ),
        (lambda e=e: e(x[0, 0]), ValueError, "x must have shape (..., seq, d_model) with d_model 8, got (8,)"),
        (
            lambda e=e: e(x.to("meta")),
            ValueError,
            "x must be on the device of the module's weights, cpu, got meta",
        ),
        (lambda e=e: e(x, bool_mask), ValueError, MASK_SHAPE_ERROR.format(4, (4, 6), "-1 (k_len)", 4, 6)),
        (
            lambda e=e: e(x, bool_mask[:, :4], is_causal=True),
            ValueError,
            "mask and is_causal must not be given together, got both: combine them, mask & causal, with "
            "causal = torch.ones(q_len, k_len, dtype=torch.bool).tril()",
        ),
        (lambda d=d: d(x.half(), y), TypeError, DTYPE_ERROR.format("x", "float16")),
        (lambda d=d: d(x, None), TypeError, "memory must be a tensor, got None"),
        (lambda d=d: d(x, y.double()), TypeError, DTYPE_ERROR.format("memory", "float64")),
        (
            lambda d=d: d(x, y[..., :6]),
            ValueError,
            "memory must have shape (..., k_len, d_model) with d_model 8, got (3, 6, 6)",
        ),
        (
            lambda d=d: d(x, y, memory_mask=bool_mask.mT),
            ValueError,
            "memory_" + MASK_SHAPE_ERROR.format(6, (6, 4), "-1 (k_len)", 6, 4),
        ),
        (lambda d=d: d(x, y, bool_mask), ValueError, MASK_SHAPE_ERROR.format(4, (4, 6), "-1 (k_len)", 4, 6)),
        (
            lambda d=d: d(x, y, memory_mask=bool_mask.float()),
            TypeError,
            "memory_mask must be bool, True where a query may attend, got torch.float32 with 0 and 1: "
            "use memory_mask.bool(), or memory_mask == 0 if 1 hides a key",
        ),
    ]


@pytest.mark.parametrize(("call", "error", "text"), WRONG_CALLS)
def test_layer_errors_name_the_argument(call, error, text):
    raises(call, error, text)
