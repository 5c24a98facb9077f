"""Attention weights of all layers of a stack."""

import torch


def attention_maps(stack, x, *, is_causal=False):
    """Return all heads' attention weights in all layers, (n_layers, batch, heads, seq, seq)."""
    weights = []
    for layer in stack.layers:
        attends = layer.norm1(x) if layer.norm_first else x  # the input of self-attention
        weights.append(layer.self_attention.weights(attends, is_causal=is_causal))
        x = layer(x, is_causal=is_causal)
    return torch.stack(weights)
