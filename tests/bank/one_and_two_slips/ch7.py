"""Answers to assignment 7, with one slip and with two, by a fifth author."""

import math

from transformer_lab.checks import block_parameters, kv_cache_bytes

from .. import right, wrong


@right(block_parameters)
def _(d_model, d_ff, bias):
    shapes = [(d_model, d_model)] * 4 + [(d_ff, d_model), (d_model, d_ff)] + [(d_model,)] * 2
    if bias:
        shapes += [(d_model,)] * 7 + [(d_ff,)]
    return sum(math.prod(s) for s in shapes)


@right(block_parameters)
def _(d_model, d_ff, bias):
    return 2 * d_model * (2 * d_model + d_ff + 1) + (7 * d_model + d_ff) * int(bias)


@wrong(block_parameters, "Only one norm is counted.")
def _(d_model, d_ff, bias):
    n = 4 * d_model**2 + 2 * d_model * d_ff + d_model
    return n + (6 * d_model + d_ff if bias else 0)


@wrong(block_parameters, "The norms keep their biases where there are none.")
def _(d_model, d_ff, bias):
    n = 4 * d_model**2 + 2 * d_model * d_ff + 4 * d_model
    return n + (5 * d_model + d_ff if bias else 0)


@wrong(block_parameters, "The second bias of the feed-forward layer has d_ff numbers.")
def _(d_model, d_ff, bias):
    n = 4 * d_model**2 + 2 * d_model * d_ff + 2 * d_model
    return n + (6 * d_model + 2 * d_ff if bias else 0)


@wrong(block_parameters, "The output projection is left out.", "The norms keep their biases where there are none.")
def _(d_model, d_ff, bias):
    n = 3 * d_model**2 + 2 * d_model * d_ff + 4 * d_model
    return n + (4 * d_model + d_ff if bias else 0)


@wrong(block_parameters, "The norms are left out.", "The count is a float.")
def _(d_model, d_ff, bias):
    n = 4 * d_model**2 + 2 * d_model * d_ff
    return float(n + (5 * d_model + d_ff if bias else 0))


@right(kv_cache_bytes)
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return (n_layers * d_model * seq * batch * bytes_per_value) << 1


@right(kv_cache_bytes)
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return sum(batch * seq * d_model * bytes_per_value for _ in range(n_layers) for part in "kv")


@wrong(kv_cache_bytes, "Only the keys are counted.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return n_layers * d_model * seq * batch * bytes_per_value


@wrong(kv_cache_bytes, "Four bytes for each value, whatever is asked for.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return 2 * n_layers * d_model * seq * batch * 4


@wrong(kv_cache_bytes, "One token too many.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return 2 * n_layers * d_model * (seq + 1) * batch * bytes_per_value


@wrong(kv_cache_bytes, "Only the keys are counted.", "The batch is left out.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return n_layers * d_model * seq * bytes_per_value


@wrong(kv_cache_bytes, "The layers are left out.", "Bits, not bytes.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return 2 * d_model * seq * batch * bytes_per_value * 8
