"""Inputs of the project's functions: two attention functions, and the weights of a block."""

from torch.nn.functional import elu, scaled_dot_product_attention


def causal_softmax_attention(query, key, value):
    _require_heads(query, key, value)
    return scaled_dot_product_attention(query, key, value, is_causal=True)


def causal_linear_attention(query, key, value):
    _require_heads(query, key, value)
    weights = ((elu(query) + 1) @ (elu(key) + 1).mT).tril()
    return weights @ value / weights.sum(dim=-1, keepdim=True)


def _require_heads(*tensors):
    """Raise a ValueError unless every tensor has four axes, as the exercise promises to ``attend``."""
    for tensor in tensors:
        if tensor.ndim != 4:
            raise ValueError(f"attend takes (batch, heads, seq, d_head), got {tuple(tensor.shape)}")


def block_weights(draw, d_model, d_ff):
    """Return the weights of a block, as PyTorch stores them. The weights of the norms differ from 1, and all biases
    differ from 0, so that the result changes if one of them is left out. The first bias also keeps the sums before the
    ReLU away from 0, where rounding would turn a gradient on or off."""
    bias = draw(d_ff)
    return {
        **{name: draw(d_model, d_model) / d_model**0.5 for name in ("w_q", "w_k", "w_v", "w_o")},
        "w1": draw(d_ff, d_model) / d_model**0.5,
        "b1": bias / 2 + 1.5 * bias.sign(),
        "w2": draw(d_model, d_ff) / d_ff**0.5 / 3,
        "b2": draw(d_model) / 4,
        "norm1": (1 + draw(d_model) / 4, draw(d_model) / 4),
        "norm2": (1 + draw(d_model) / 4, draw(d_model) / 4),
    }
