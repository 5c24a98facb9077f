"""What readers search for, and where it must lead: one place must come first; of two or three, each among three.

The first 18 are a reviewer's. The others were written down before any of them was tried.
"""

QUERIES = {
    "rope": (
        "09_today.html#rotary-positions-rope-how-does-a-score-see-the-distance",
        "glossary.html#rope-rotary-positions",
    ),
    "kv cache": ("glossary.html#keyvalue-cache", "07_parameters.html#what-does-the-keyvalue-cache-cost"),
    "why divide by sqrt": ("03_attention_lookup.html#why-divide-by-d",),
    "mask true or false": ("05_masks.html#which-true-does-pytorch-mean",),
    "layernorm vs batchnorm": ("06_normalization.html#why-not-batch-norm-for-sentences",),
    "flash attention": ("07_parameters.html#softmax-in-pieces-what-does-fused-mean",),
    "gqa": ("09_today.html#grouped-query-attention-gqa-who-shares-a-head-of-keys", "glossary.html#gqa"),
    "softmaxx": ("glossary.html#softmax", "03_attention_lookup.html#what-does-softmax-do-and-how-does-it-break"),
    "positional encodings": ("glossary.html#position", "03_attention_lookup.html#where-is-word-order"),
    "how many parameters gpt2": ("07_parameters.html#and-a-whole-model",),
    "einsum": ("02_matmul_broadcasting.html#einsum-what-if-the-axes-had-names",),
    "attention is all you need": ("references.html#the-transformer",),
    "multihead attention": ("glossary.html#multi-head-attention", "04_multi_head.html"),
    "contigous": ("glossary.html#contiguous", "01_tensor_operations.html#reshape-and-contiguous-when-do-they-copy"),
    "temperature": ("glossary.html#temperature", "10_real_models.html#how-does-a-score-become-a-token"),
    "moe": ("09_today.html#mixture-of-experts-moe-what-if-each-token-uses-a-few-experts", "glossary.html#moe"),
    "backpropagation": ("07_parameters.html#what-has-to-be-in-memory-to-train",),
    "nan": ("05_masks.html#what-does-a-query-get-that-sees-nothing", "museum.html#row-without-keys-is-nan"),
    # An engineer's own words.
    "rotary embeddings": (
        "09_today.html#rotary-positions-rope-how-does-a-score-see-the-distance",
        "glossary.html#rope-rotary-positions",
    ),
    "grouped query attention": (
        "09_today.html#grouped-query-attention-gqa-who-shares-a-head-of-keys",
        "glossary.html#grouped-query-attention",
    ),
    "why is my loss nan": (
        "05_masks.html#what-does-a-query-get-that-sees-nothing",
        "museum.html#row-without-keys-is-nan",
    ),
    "transpose vs permute": ("01_tensor_operations.html#what-do-transpose-and-permute-do",),
    "view size is not compatible": ("01_tensor_operations.html#when-can-view-work-and-when-does-it-raise",),
    "pre norm vs post norm": (
        "glossary.html#pre-norm-post-norm",
        "06_normalization.html#normalize-after-the-sum-or-before-the-part",
    ),
    "causal masks": ("glossary.html#causal", "05_masks.html#how-do-you-hide-the-future"),
    "softmax wrong dim": ("03_attention_lookup.html#where-it-goes-wrong",),
    "kv cache size": ("07_parameters.html#what-does-the-keyvalue-cache-cost",),
    "why multiple heads": ("04_multi_head.html#what-can-two-heads-do-that-one-cannot",),
    "broadcasting rules": ("02_matmul_broadcasting.html#when-do-two-shapes-broadcast",),
    "cross attention": ("glossary.html#cross-attention", "04_multi_head.html#the-module-and-two-sequences"),
    "rmsnorm": ("glossary.html#rmsnorm", "09_today.html#rmsnorm-which-norm-and-where-is-it-placed"),
    "sliding window": (
        "glossary.html#sliding-window",
        "09_today.html#windows-and-sinks-which-layers-see-the-whole-text",
    ),
    "mixture of experts": (
        "09_today.html#mixture-of-experts-moe-what-if-each-token-uses-a-few-experts",
        "glossary.html#moe",
    ),
    "mla": ("09_today.html#latent-attention-mla-what-if-the-cache-holds-one-small-vector", "glossary.html#mla"),
    "weight tying": ("glossary.html#tying", "07_parameters.html#and-a-whole-model"),
    "attention sinks": (
        "glossary.html#sink",
        "09_today.html#windows-and-sinks-which-layers-see-the-whole-text",
        "10_real_models.html#why-does-everyone-look-at-the-first-token",
    ),
    "load gpt2 weights": (
        "10_real_models.html#how-do-their-names-become-yours",
        "10_real_models.html#what-is-in-a-file-of-weights",
    ),
    "embeding": ("glossary.html#embedding", "01_tensor_operations.html#how-does-a-sentence-become-a-tensor"),
}


def is_right(wanted, found):
    """Whether what is found, the best first, begins as it must."""
    return found[:1] == [*wanted] if len(wanted) == 1 else set(wanted) <= set(found[:3])
