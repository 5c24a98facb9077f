"""Lists the exercises in the folder of each assignment, in the order of the assignment's headings.

Exercise 5.2, for example, is the second name in the list for ``ch5_masks``: the file ch5_masks/padding_mask.py defines
the exercise `padding_mask`.
"""

from importlib import import_module

import torch

from .observe import settings_kept

COURSE = {
    "ch1_tensor_operations": ["flat_offset", "strides_of", "transposed", "merge_last_two", "mend_columns"],
    "ch2_matmul_broadcasting": [
        "broadcast_shape",
        "matmul_shape",
        "all_dot_products",
        "normalize_rows",
        "linear",
        "mend_cosines",
    ],
    "ch3_attention_lookup": [
        "softmax",
        "attention_weights",
        "attention",
        "single_head",
        "sinusoidal_positions",
        "mend_word_order",
    ],
    "ch4_multi_head": [
        "split_heads",
        "merge_heads",
        "multi_head_attention",
        "unpack_projection",
        "mend_folded_heads",
    ],
    "ch5_masks": [
        "causal_mask",
        "padding_mask",
        "masked_attention",
        "to_additive",
        "decoder_masks",
        "masked_multi_head",
        "mend_sentence_vectors",
    ],
    "ch6_normalization": ["layer_norm", "rms_norm", "feed_forward", "post_norm", "pre_norm", "mend_stack"],
    "ch7_parameters": [
        "attention_parameters",
        "block_parameters",
        "gpt2_parameters",
        "attention_flops",
        "kv_cache_bytes",
        "mend_model_size",
    ],
    "ch8_linear_attention": [
        "elu_feature_map",
        "linear_attention",
        "causal_linear_attention",
        "recurrent_step",
        "mend_padding",
    ],
    "ch9_today": [
        "rotate",
        "repeat_keys",
        "gated_feed_forward",
        "decoder_block",
        "route",
        "mixture_of_experts",
        "latent_cache_bytes",
    ],
    "ch10_real_models": ["cached_step", "mean_pool", "next_token", "mend_writing"],
    "ch11_right": ["influence", "first_leak", "same_with_cache", "label_shift", "accumulated", "mend_labels"],
    "project": ["embed", "self_attention", "block", "language_model", "next_token_loss"],
}
FOLDERS = {name: folder for folder, names in COURSE.items() for name in names}


def title(folder):
    """Return the name of a folder's assignment."""
    return "Final project" if folder == "project" else f"Assignment {folder.split('_')[0].removeprefix('ch')}"


def load(name):
    """Return the exercise of this name, from the file of the same name."""
    folder = FOLDERS[name]
    module = f"{__package__}.{folder}.{name}"
    try:
        # Without these settings, the tensors of the exercise's examples would use the default device or dtype that the
        # learner has set.
        with settings_kept(), torch.device("cpu"):
            torch.set_default_dtype(torch.float32)
            return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ImportError(f"course.py names {name} in {folder}, but there is no file {folder}/{name}.py") from None
    except AttributeError as error:
        if error.name != name:
            raise
        raise ImportError(f"{folder}/{name}.py must define the exercise {name}, as course.py names it") from None
