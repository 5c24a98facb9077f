"""The attention weights of all layers of a stack."""

import torch


def attention_maps(stack, x, *, is_causal=False):
    """Return the attention weights of all heads in all layers, of shape (n_layers, batch, heads, seq, seq)."""
    weights = []
    for layer in stack.layers:
        attention_input = layer.norm1(x) if layer.norm_first else x
        weights.append(layer.self_attention.weights(attention_input, is_causal=is_causal))
        x = layer(x, is_causal=is_causal)
    return torch.stack(weights)
