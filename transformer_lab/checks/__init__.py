"""Checks that say what went wrong: ``tl.checks.split_heads(my_function)``.

One file for each chapter holds its exercises: the right answer, and the mistakes that are known by what they do. The
engine is `exercise` (what is known about an exercise), `observe` (running a function safely), `agree` (whether results
are the same), `diagnose` and `describe` (from what it does to words), `report` (the card), `record` and `summary` (how
far somebody is).
"""

from .ch1_tensor_operations import flat_offset, mend_columns, merge_last_two, strides_of, transposed
from .ch2_matmul_broadcasting import (
    all_dot_products,
    broadcast_shape,
    linear,
    matmul_shape,
    mend_cosines,
    normalize_rows,
)
from .ch3_attention_lookup import (
    attention,
    attention_weights,
    mend_word_order,
    single_head,
    sinusoidal_positions,
    softmax,
)
from .ch4_multi_head import mend_folded_heads, merge_heads, multi_head_attention, split_heads, unpack_projection
from .ch5_masks import causal_mask, decoder_masks, masked_attention, mend_sentence_vectors, padding_mask, to_additive
from .ch6_normalization import feed_forward, layer_norm, mend_stack, post_norm, pre_norm, rms_norm
from .ch7_parameters import (
    attention_flops,
    attention_parameters,
    block_parameters,
    gpt2_parameters,
    kv_cache_bytes,
    mend_model_size,
)
from .ch8_linear_attention import (
    causal_linear_attention,
    elu_feature_map,
    linear_attention,
    mend_padding,
    recurrent_step,
)
from .ch9_project import block, embed, language_model, next_token_loss, self_attention
from .summary import assignments, progress, summary

EXERCISES = [exercise for exercises in assignments().values() for exercise in exercises]

__all__ = [
    "EXERCISES",
    "all_dot_products",
    "attention",
    "attention_flops",
    "attention_parameters",
    "attention_weights",
    "block",
    "block_parameters",
    "broadcast_shape",
    "causal_linear_attention",
    "causal_mask",
    "decoder_masks",
    "elu_feature_map",
    "embed",
    "feed_forward",
    "flat_offset",
    "gpt2_parameters",
    "kv_cache_bytes",
    "language_model",
    "layer_norm",
    "linear",
    "linear_attention",
    "masked_attention",
    "matmul_shape",
    "mend_columns",
    "mend_cosines",
    "mend_folded_heads",
    "mend_model_size",
    "mend_padding",
    "mend_sentence_vectors",
    "mend_stack",
    "mend_word_order",
    "merge_heads",
    "merge_last_two",
    "multi_head_attention",
    "next_token_loss",
    "normalize_rows",
    "padding_mask",
    "post_norm",
    "pre_norm",
    "progress",
    "recurrent_step",
    "rms_norm",
    "self_attention",
    "single_head",
    "sinusoidal_positions",
    "softmax",
    "split_heads",
    "strides_of",
    "summary",
    "to_additive",
    "transposed",
    "unpack_projection",
]
