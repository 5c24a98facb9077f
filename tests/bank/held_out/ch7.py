"""Held out: answers to assignment 7."""

import torch

from transformer_lab.checks import (
    attention_flops,
    attention_parameters,
    block_parameters,
    gpt2_parameters,
    kv_cache_bytes,
    mend_model_size,
)

from .. import right, wrong


@wrong(attention_parameters, "bias is not used: biases are always counted.")
def _(d_model, bias):
    return 4 * (d_model**2 + d_model)


@wrong(attention_parameters, "Each map has one bias number, not d_model of them.")
def _(d_model, bias):
    count = 4 * d_model * d_model
    if bias:
        count += 4
    return count


@wrong(attention_parameters, "The output projection has no bias here.")
def _(d_model, bias):
    qkv = 3 * d_model * d_model
    out = d_model * d_model
    return qkv + out + (3 * d_model if bias else 0)


@wrong(attention_parameters, "The number of heads, 8, is built in as a factor.")
def _(d_model, bias):
    n_heads = 8
    d_head = d_model // n_heads
    return 4 * n_heads * d_model * d_head + (4 * d_model if bias else 0)


@right(attention_parameters)
def _(d_model, bias):
    total = 0
    for _ in "qkvo":
        total += d_model * (d_model + int(bias))
    return total


@wrong(block_parameters, "The norms are forgotten.")
def _(d_model, d_ff, bias):
    attn = 4 * d_model**2
    ff = 2 * d_model * d_ff
    if bias:
        attn += 4 * d_model
        ff += d_ff + d_model
    return attn + ff


@wrong(block_parameters, "The norms keep their biases where there are none.")
def _(d_model, d_ff, bias):
    n = 4 * d_model**2 + 2 * d_model * d_ff + 4 * d_model
    if bias:
        n += 4 * d_model + d_ff + d_model
    return n


@wrong(block_parameters, "d_ff is not used: 4 * d_model stands in its place.")
def _(d_model, d_ff, bias):
    d_ff = 4 * d_model
    n = 4 * d_model**2 + 2 * d_model * d_ff + 2 * d_model
    if bias:
        n += 4 * d_model + d_ff + d_model + 2 * d_model
    return n


@wrong(block_parameters, "Only one matrix of the feed-forward layer is counted.")
def _(d_model, d_ff, bias):
    n = 4 * d_model**2 + d_model * d_ff + 2 * d_model
    if bias:
        n += 4 * d_model + d_ff + d_model + 2 * d_model
    return n


@right(block_parameters)
def _(d_model, d_ff, bias):
    linear = lambda i, o: i * o + (o if bias else 0)  # noqa: E731
    norm = d_model * (2 if bias else 1)
    return sum([linear(d_model, d_model)] * 4) + linear(d_model, d_ff) + linear(d_ff, d_model) + norm + norm


@wrong(gpt2_parameters, "The last norm is left out.")
def _(n_layers, d_model, vocab_size, n_positions):
    layer = 12 * d_model**2 + 13 * d_model
    return (vocab_size + n_positions) * d_model + n_layers * layer


@wrong(gpt2_parameters, "The tables are multiplied by the number of layers as well.")
def _(n_layers, d_model, vocab_size, n_positions):
    layer = 12 * d_model**2 + 13 * d_model
    return n_layers * ((vocab_size + n_positions) * d_model + layer) + 2 * d_model


@wrong(gpt2_parameters, "The biases of the layers are not counted.")
def _(n_layers, d_model, vocab_size, n_positions):
    attention = 4 * d_model**2
    mlp = 8 * d_model**2
    norms = 4 * d_model
    return (vocab_size + n_positions) * d_model + n_layers * (attention + mlp + norms) + 2 * d_model


@wrong(gpt2_parameters, "The feed-forward layer is taken to be d_model wide, not four times that.")
def _(n_layers, d_model, vocab_size, n_positions):
    attention = 4 * (d_model**2 + d_model)
    mlp = 2 * (d_model**2 + d_model)
    return (vocab_size + n_positions) * d_model + n_layers * (attention + mlp + 4 * d_model) + 2 * d_model


@right(gpt2_parameters)
def _(n_layers, d_model, vocab_size, n_positions):
    return d_model * (vocab_size + n_positions + 2 + n_layers * (12 * d_model + 13))


@wrong(attention_flops, "Only the scores are counted, not the blend.")
def _(seq, d_model):
    return 2 * seq**2 * d_model


@wrong(attention_flops, "A causal mask halves the pairs.")
def _(seq, d_model):
    return 4 * (seq * (seq + 1) // 2) * d_model


@wrong(attention_flops, "seq and d_model change places: seq · d_model².")
def _(seq, d_model):
    return 4 * seq * d_model**2


@wrong(attention_flops, "seq counts once, not squared: each query meets one key alone.")
def _(seq, d_model):
    scores = 2 * seq * d_model
    blend = 2 * seq * d_model
    return scores + blend


@right(attention_flops)
def _(seq, d_model):
    return (2 * seq) ** 2 * d_model


@wrong(kv_cache_bytes, "The batch is left out.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return 2 * n_layers * d_model * seq * bytes_per_value


@wrong(kv_cache_bytes, "The layers are left out.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    per_token = 2 * d_model * bytes_per_value
    return per_token * seq * batch


@wrong(kv_cache_bytes, "The numbers are counted, not the bytes.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return 2 * n_layers * d_model * seq * batch


@wrong(kv_cache_bytes, "It is counted in bits: eight times as much.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return 2 * n_layers * d_model * seq * batch * bytes_per_value * 8


@right(kv_cache_bytes)
def _(n_layers, d_model, seq, batch, bytes_per_value):
    cache = torch.empty(n_layers, 2, batch, seq, d_model, device="meta")
    return cache.numel() * bytes_per_value


@wrong(mend_model_size, "Each parameter counts once, but is taken for float32: four bytes.")
def _(model):
    numbers = sum(p.numel() for p in model.parameters())
    return numbers, 4 * numbers


@wrong(mend_model_size, "The bytes of the first parameter are taken for all, so mixed types go wrong.")
def _(model):
    params = list(model.parameters())
    numbers = sum(p.numel() for p in params)
    return numbers, numbers * (params[0].element_size() if params else 0)


@wrong(mend_model_size, "remove_duplicate=False counts tied parameters twice.")
def _(model):
    n = size = 0
    for _, p in model.named_parameters(remove_duplicate=False):
        n += p.numel()
        size += p.numel() * p.element_size()
    return n, size


@wrong(mend_model_size, "children() misses the module's own parameters, and counts what children share twice.")
def _(model):
    n = size = 0
    for child in model.children():
        for p in child.parameters():
            n += p.numel()
            size += p.nbytes
    return n, size


@right(mend_model_size)
def _(model):
    sizes = [(p.nelement(), p.element_size()) for _, p in model.named_parameters()]
    return sum(n for n, _ in sizes), sum(n * b for n, b in sizes)
