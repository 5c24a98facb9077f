"""The package of the course Transformer Lab. It contains the parts of a Transformer, each short enough to read.

    import transformer_lab as tl

The axes of tensors have the same names in all docstrings, errors, figures and chapters:

=========  ==========================================================================
word       the axis counts
=========  ==========================================================================
batch      independent examples
heads      attention heads, each with its own queries, keys and values
q_len      queries: the positions that attend
k_len      keys (and values): the positions that are attended to
seq        positions of one sequence, where queries and keys are the same positions
d_model    features of a token as it travels from layer to layer
d_head     features of a query and of a key inside one head
d_value    features of a value inside one head
d_ff       features inside the feed-forward layer
=========  ==========================================================================

``True`` in a mask always means *may attend*.
"""

from importlib import import_module

from .arguments import did_you_mean as _did_you_mean
from .attention import attention_weights, scaled_dot_product_attention, softmax
from .audit import audit
from .cache import KeyValueCache, StateCache
from .compute import (
    activation_bytes,
    attention_flops,
    flops_breakdown,
    forward_flops,
    kv_cache_bytes,
    linear_attention_flops,
    memory_breakdown,
    optimizer_bytes,
    training_flops,
    weight_bytes,
)
from .device import device
from .layers import DecoderLayer, EncoderLayer, FeedForward
from .linear_attention import (
    LinearAttention,
    bidirectional_linear_attention,
    causal_linear_attention,
    elu_feature_map,
    initial_state,
    linear_attention_step,
)
from .masks import additive_mask, causal_mask, padding_mask, prefix_mask, sliding_window_mask
from .mixture import MixtureOfExperts
from .multi_head import MultiHeadAttention, SingleHeadAttention, merge_heads, split_heads
from .normalization import (
    LayerNorm,
    RMSNorm,
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
    standardize,
)
from .parameters import (
    BERT_BASE,
    BERT_LARGE,
    GPT2,
    GPT2_LARGE,
    GPT2_MEDIUM,
    GPT2_XL,
    LLAMA3_8B,
    SMOLLM2_135M,
    ModelShape,
    active_parameters,
    count_parameters,
    parameter_breakdown,
)
from .positions import alibi_bias, rotary, sinusoidal_positions
from .progress import progress_bar
from .tensors import layout, show
from .transformer import Decoder, Encoder, LanguageModel, TokenEmbedding, Transformer

__all__ = [
    "BERT_BASE",
    "BERT_LARGE",
    "GPT2",
    "GPT2_LARGE",
    "GPT2_MEDIUM",
    "GPT2_XL",
    "LLAMA3_8B",
    "SMOLLM2_135M",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "KeyValueCache",
    "LanguageModel",
    "LayerNorm",
    "LinearAttention",
    "MixtureOfExperts",
    "ModelShape",
    "MultiHeadAttention",
    "RMSNorm",
    "SingleHeadAttention",
    "StateCache",
    "TokenEmbedding",
    "Transformer",
    "activation_bytes",
    "active_parameters",
    "additive_mask",
    "alibi_bias",
    "attention_flops",
    "attention_weights",
    "audit",
    "batch_norm",
    "bidirectional_linear_attention",
    "causal_linear_attention",
    "causal_mask",
    "checks",
    "count_parameters",
    "device",
    "drawings",
    "elu_feature_map",
    "flops_breakdown",
    "forward_flops",
    "group_norm",
    "initial_state",
    "instance_norm",
    "kv_cache_bytes",
    "labs",
    "layer_norm",
    "layout",
    "linear_attention_flops",
    "linear_attention_step",
    "measure",
    "memory_breakdown",
    "merge_heads",
    "optimizer_bytes",
    "padding_mask",
    "parameter_breakdown",
    "plots",
    "prefix_mask",
    "pretrained",
    "progress_bar",
    "rms_norm",
    "rotary",
    "scaled_dot_product_attention",
    "show",
    "sinusoidal_positions",
    "sliding_window_mask",
    "softmax",
    "split_heads",
    "standardize",
    "training_flops",
    "weight_bytes",
]

__version__ = "0.3.0"  # CHANGELOG.md says what a version number promises


def __getattr__(name):
    # These modules are imported on first use, so that importing the package takes little longer than importing torch.
    if name in ("checks", "drawings", "labs", "measure", "plots", "pretrained"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_did_you_mean(name, __all__)}")


def __dir__():
    return __all__
