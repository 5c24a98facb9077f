"""How much each token takes from each, in every layer of a stack."""

import torch


def attention_maps(stack, x, *, is_causal=False):
    """Return all heads' attention weights in all layers, (n_layers, batch, heads, seq, seq)."""
    weights = []
    for layer in stack.layers:
        attends = layer.norm1(x) if layer.norm_first else x  # what self-attention gets
        weights.append(layer.self_attention.weights(attends, is_causal=is_causal))
        x = layer(x, is_causal=is_causal)
    return torch.stack(weights)
