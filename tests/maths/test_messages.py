"""Every public function is called with common wrong values for each argument; the error messages must be short."""

from functools import partial

import numpy as np
import pytest
import torch

import transformer_lab as tl

B, H, N, D = 2, 3, 5, 4  # batch, heads, seq, d_head


def ramp(*shape):
    return torch.linspace(-1, 1, int(np.prod(shape))).reshape(shape)


def tokens(*shape):
    return torch.ones(*shape, dtype=torch.long)


q, vectors = ramp(B, H, N, D), ramp(B, N, 6)
token_mask = torch.ones(B, 1, N, N, dtype=torch.bool)
key_mask = torch.ones(B, 1, 1, N, dtype=torch.bool)
decoder_only = tl.LanguageModel(11, 6, 3, 1, 8)
encoder_decoder = tl.Transformer(11, 13, 6, 3, 1, 8)
state = tl.initial_state(B, H, D, D)
attention_arguments = {"query": q, "key": q, "mask": token_mask, "scale": 1.0, "bias": ramp(N, N)}
linear_attention_arguments = {"query": q, "key": q, "value": q, "key_mask": key_mask}
norm_arguments = {"weight": ramp(N), "bias": ramp(N), "eps": 1e-5}
layer_arguments = {
    "d_model": 6,
    "n_heads": 3,
    "d_ff": 8,
    "dropout": 0.1,
    "activation": "relu",
    "eps": 1e-5,
    "n_kv_heads": 1,
}
layer_arguments |= {"d_head": 4, "qk_norm": True, "window": 3}
head_arguments = {"d_model": 6, "n_heads": 3, "n_kv_heads": 1, "d_head": 4, "qk_norm": True, "eps": 1e-6}
count_arguments = {"shape": tl.GPT2, "seq": 5, "batch": 2}
byte_arguments = {**count_arguments, "bytes_per_value": 4}


def cache_after_append(key, value):
    return tl.KeyValueCache().append(key, value)


# Calls and their arguments, by the function's name in tl. A module has two entries: one for its constructor and one for
# its call.
CALLS = {
    "Decoder": (tl.Decoder, {**layer_arguments, "n_layers": 1}),
    "Decoder()": (
        tl.Decoder(6, 3, 1, 8),
        {"x": vectors, "memory": vectors, "mask": token_mask, "memory_mask": key_mask},
    ),
    "DecoderLayer": (tl.DecoderLayer, layer_arguments),
    "DecoderLayer()": (
        tl.DecoderLayer(6, 3, 8),
        {"x": vectors, "memory": vectors, "mask": token_mask, "memory_mask": key_mask},
    ),
    "Encoder": (tl.Encoder, {**layer_arguments, "n_layers": 1}),
    "Encoder()": (tl.Encoder(6, 3, 1, 8), {"x": vectors, "mask": token_mask}),
    "EncoderLayer": (tl.EncoderLayer, layer_arguments),
    "EncoderLayer()": (tl.EncoderLayer(6, 3, 8), {"x": vectors, "mask": token_mask}),
    "FeedForward": (tl.FeedForward, {"d_model": 6, "d_ff": 8, "activation": "relu", "dropout": 0.1}),
    "FeedForward()": (tl.FeedForward(6), {"x": vectors}),
    "KeyValueCache()": (cache_after_append, {"key": q, "value": q}),
    "LanguageModel": (tl.LanguageModel, {**layer_arguments, "vocab_size": 11, "n_layers": 1, "positions": "rotary"}),
    "LanguageModel()": (decoder_only, {"tokens": tokens(B, N)}),
    "LanguageModel().generate": (
        partial(decoder_only.generate, max_new_tokens=2),
        {"tokens": tokens(B, N), "max_new_tokens": 2, "temperature": 1.0, "top_k": 3, "stop": [1]},
    ),
    "LayerNorm": (tl.LayerNorm, {"d_model": 6, "eps": 1e-5}),
    "LayerNorm()": (tl.LayerNorm(6), {"x": vectors}),
    "LinearAttention": (tl.LinearAttention, {**head_arguments, "chunk_size": 4}),
    "LinearAttention()": (
        tl.LinearAttention(6, 3),
        {"query": vectors, "key": vectors, "value": vectors, "mask": key_mask},
    ),
    "MixtureOfExperts": (
        tl.MixtureOfExperts,
        {
            "d_model": 6,
            "d_ff": 4,
            "n_experts": 5,
            "n_active": 2,
            "n_shared": 1,
            "activation": "silu",
            "renormalize": True,
        },
    ),
    "MixtureOfExperts()": (tl.MixtureOfExperts(6, 4, 5, 2), {"x": vectors}),
    "MixtureOfExperts().route": (tl.MixtureOfExperts(6, 4, 5, 2).route, {"x": vectors}),
    "ModelShape": (
        partial(tl.ModelShape, "gpt2"),
        {"n_layers": 1, "d_model": 6, "n_heads": 3, "d_ff": 8, "vocab_size": 11, "n_positions": 7, "tied": True},
    ),
    "MultiHeadAttention": (tl.MultiHeadAttention, {**head_arguments, "dropout": 0.1, "window": 3}),
    "MultiHeadAttention()": (
        tl.MultiHeadAttention(6, 3),
        {"query": vectors, "key": vectors, "value": vectors, "mask": token_mask},
    ),
    "MultiHeadAttention().weights": (
        tl.MultiHeadAttention(6, 3).weights,
        {"query": vectors, "key": vectors, "mask": token_mask},
    ),
    "RMSNorm": (tl.RMSNorm, {"d_model": 6, "eps": 1e-5}),
    "RMSNorm()": (tl.RMSNorm(6), {"x": vectors}),
    "SingleHeadAttention": (tl.SingleHeadAttention, {"d_model": 6, "d_head": 4, "d_value": 5}),
    "SingleHeadAttention()": (tl.SingleHeadAttention(6, 4), {"x": vectors, "mask": token_mask[:, 0]}),
    "TokenEmbedding": (tl.TokenEmbedding, {"vocab_size": 11, "d_model": 6, "dropout": 0.1}),
    "TokenEmbedding()": (tl.TokenEmbedding(11, 6), {"tokens": tokens(B, N), "start": 0}),
    "Transformer": (tl.Transformer, {**layer_arguments, "src_vocab": 11, "tgt_vocab": 13, "n_layers": 1}),
    "Transformer()": (
        encoder_decoder,
        {"src": tokens(B, 7), "tgt": tokens(B, N), "src_mask": key_mask[..., :1], "tgt_mask": token_mask},
    ),
    "Transformer().generate": (
        partial(encoder_decoder.generate, bos=1, max_new_tokens=2),
        {"src": tokens(B, N), "src_mask": key_mask, "bos": 1, "eos": 2, "max_new_tokens": 2, "temperature": 1.0},
    ),
    "activation_bytes": (tl.activation_bytes, byte_arguments),
    "additive_mask": (tl.additive_mask, {"mask": token_mask, "dtype": torch.float32}),
    "alibi_bias": (tl.alibi_bias, {"n_heads": 3, "q_len": 5, "k_len": 7}),
    "attention_flops": (tl.attention_flops, {"seq": 5, "d_model": 6, "k_len": 7}),
    "attention_weights": (tl.attention_weights, attention_arguments),
    "audit": (
        partial(tl.audit, vocab_size=11),
        {
            "model": tl.FeedForward(6),
            "kind": "local",
            "branches": [],
            "window": 3,
            "n_layers": 1,
            "length": 8,
            "long": 200,
            "pad": 0,
            "expect": ["order is seen"],
        },
    ),
    "batch_norm": (
        tl.batch_norm,
        {"x": ramp(B, N, 4), "running_mean": ramp(N), "running_var": ramp(N).abs(), **norm_arguments, "momentum": 0.1},
    ),
    "bidirectional_linear_attention": (tl.bidirectional_linear_attention, linear_attention_arguments),
    "causal_linear_attention": (tl.causal_linear_attention, {**linear_attention_arguments, "chunk_size": 4}),
    "causal_mask": (tl.causal_mask, {"q_len": 5, "k_len": 7}),
    "count_parameters": (tl.count_parameters, {"shape_or_module": tl.GPT2}),
    "elu_feature_map": (tl.elu_feature_map, {"x": q}),
    "flops_breakdown": (tl.flops_breakdown, count_arguments),
    "forward_flops": (tl.forward_flops, count_arguments),
    "group_norm": (tl.group_norm, {"x": ramp(B, N, 4), "n_groups": 1, **norm_arguments}),
    "initial_state": (
        tl.initial_state,
        {"batch": 2, "heads": 3, "d_head": 4, "d_value": 5, "dtype": torch.float32},
    ),
    "instance_norm": (tl.instance_norm, {"x": ramp(B, N, 4), **norm_arguments}),
    "kv_cache_bytes": (tl.kv_cache_bytes, byte_arguments),
    "layer_norm": (tl.layer_norm, {"x": ramp(B, N), **norm_arguments}),
    "layout": (tl.layout, {"x": q}),
    "linear_attention_flops": (tl.linear_attention_flops, {"seq": 5, "d_model": 6, "n_heads": 3}),
    "linear_attention_step": (
        tl.linear_attention_step,
        {"state": state, "query": q[:, :, 0], "key": q[:, :, 0], "value": q[:, :, 0]},
    ),
    "memory_breakdown": (tl.memory_breakdown, byte_arguments),
    "merge_heads": (tl.merge_heads, {"x": q}),
    "optimizer_bytes": (tl.optimizer_bytes, {"shape_or_module": tl.GPT2, "bytes_per_value": 4}),
    "padding_mask": (tl.padding_mask, {"lengths": tokens(B), "k_len": 5}),
    "active_parameters": (tl.active_parameters, {"shape": tl.GPT2}),
    "parameter_breakdown": (tl.parameter_breakdown, {"shape_or_module": tl.GPT2}),
    "prefix_mask": (tl.prefix_mask, {"seq": 5, "prefix": 2}),
    "progress_bar": (tl.progress_bar, {"steps": 3, "label": "counting"}),
    "rms_norm": (tl.rms_norm, {"x": ramp(B, N), "weight": ramp(N), "eps": 1e-5}),
    "rotary": (tl.rotary, {"x": q, "positions": torch.arange(N), "base": 100.0, "interleaved": True, "n_features": 2}),
    "scaled_dot_product_attention": (
        tl.scaled_dot_product_attention,
        {**attention_arguments, "value": q, "dropout_p": 0.0},
    ),
    "show": (tl.show, {"x": q, "axes": "batch heads seq d_head", "digits": 2}),
    "sinusoidal_positions": (tl.sinusoidal_positions, {"seq": 5, "d_model": 6}),
    "sliding_window_mask": (tl.sliding_window_mask, {"seq": 5, "window": 2}),
    "softmax": (tl.softmax, {"x": q, "dim": -1}),
    "split_heads": (tl.split_heads, {"x": vectors, "n_heads": 3}),
    "standardize": (tl.standardize, {"x": q, "dims": -1, "eps": 1e-5}),
    "training_flops": (tl.training_flops, count_arguments),
    "weight_bytes": (tl.weight_bytes, {"shape_or_module": tl.GPT2, "bytes_per_value": 4}),
}


class Table:
    """An object that, like a pandas table, has columns and can be converted to an array."""

    shape = (100, 100)

    def __len__(self):
        return 100

    def __repr__(self):
        return "\n".join(["  ".join(["0.123456"] * 8)] * 60)

    def to_numpy(self):
        return np.zeros(self.shape)


WRONG_VALUES = {
    "array": np.linspace(0, 1, 2 * 300 * 4).reshape(2, 300, 4),
    "array of ints": np.arange(600).reshape(2, 300),
    "array read backwards": np.linspace(0, 1, 300)[::-1],
    "list of lists": np.linspace(0, 1, 600).reshape(2, 300).tolist(),
    "ragged list": [[1.0] * 200, [2.0] * 300],
    "list of tensors": [torch.zeros(300)] * 3,
    "table": Table(),
    "text": "the cat sat on the mat " * 40,
    "words": ["the", "cat", "sat"] * 100,
    "none": None,
    "int": 37,
    "float": 2.5,
    "whole float": 4.0,
    "minus": -3,
    "NaN": float("nan"),
    "bool": True,
    "tensor": torch.linspace(0, 1, 2400).reshape(2, 300, 4),
    "float64": torch.linspace(0, 1, 2400, dtype=torch.float64).reshape(2, 300, 4),
    "half": torch.linspace(0, 1, 2400).reshape(2, 300, 4).half(),
    "complex": torch.zeros(2, 300, 4, dtype=torch.complex64),
    "ints": torch.arange(600).reshape(2, 300),
    "bools": torch.ones(2, 300, dtype=torch.bool),
    "ones and zeros": torch.ones(5, 5).tril(),
    "one number": torch.tensor(3.0),
    "one integer": torch.tensor(3),
    "nothing in it": torch.zeros(0),
    "five axes": torch.zeros(1, 2, 3, 5, 4),
    "function": len,
    "module": torch.nn.Linear(300, 400),
    "object": object(),
    "dict": {str(i): i for i in range(300)},
}

CASES = [
    pytest.param(call, arguments, argument, id=f"{name}-{argument}")
    for name, (call, arguments) in CALLS.items()
    for argument in arguments
]
TENSOR_CASES = [case for case in CASES if isinstance(case.values[1][case.values[2]], torch.Tensor)]
NAMES_WITHOUT_ARGUMENTS = {"StateCache", "device"}


def error_message(call, arguments):
    """Return the text of a call's error, or None; the error must come from this package, not from inside torch."""
    try:
        call(**arguments)
    except Exception as error:
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        assert "transformer_lab" in trace.tb_frame.f_code.co_filename, f"{type(error).__name__}: {error}"
        return str(error)


def test_every_public_name_has_calls():
    public = {name for name in tl.__all__ if not name.isupper() and callable(getattr(tl, name))}
    assert {name.partition("()")[0] for name in CALLS} == public - NAMES_WITHOUT_ARGUMENTS
    for call, arguments in CALLS.values():
        assert error_message(call, arguments) is None


@pytest.mark.parametrize(("call", "arguments", "argument"), CASES)
def test_messages_are_short_and_show_no_tensor_values(call, arguments, argument):
    for wrong in WRONG_VALUES.values():
        text = error_message(call, {**arguments, argument: wrong})
        assert text is None or (len(text) <= 300 and "\n" not in text and "tensor([" not in text), text


@pytest.mark.parametrize(("call", "arguments", "argument"), TENSOR_CASES)
def test_non_tensors_suggest_a_conversion(call, arguments, argument):
    if argument == "lengths":  # this argument accepts arrays and lists
        return
    remedies = {
        "array": f"use torch.as_tensor({argument})",
        "list of lists": f"use torch.as_tensor({argument})",
        "array read backwards": f"use torch.as_tensor({argument}.copy())",
        "table": f"use torch.as_tensor({argument}.to_numpy())",
        "list of tensors": f"use torch.stack({argument})",
        "words": "with a tokenizer",
    }
    for wrong, remedy in remedies.items():
        text = error_message(call, {**arguments, argument: WRONG_VALUES[wrong]})
        assert text and f"{argument} must be" in text and remedy in text, text
    message_for_none = error_message(call, {**arguments, argument: None})
    assert message_for_none is None or message_for_none.startswith(("running_", f"{argument} must be")), (
        message_for_none
    )
