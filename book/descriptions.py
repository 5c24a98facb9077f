"""Contains each page's title and description, which result lists, shared links, browser tabs and hover cards show.

A page that is not listed here is shown with its own title and its first paragraph.
"""

FRONT_PAGE = "index"
# For each page, its title and a description of at most 160 characters: result lists show no more.
TITLES_AND_DESCRIPTIONS = {
    FRONT_PAGE: (
        "Transformer Lab: an interactive course on Transformers in PyTorch",
        "Write every part of a Transformer in PyTorch, from attention to a model that writes. Live figures in your "
        "browser, and checks that name your mistake.",
    ),
    "01_tensor_operations": (
        "Tensors in memory: strides, view, reshape, copies",
        "Where does PyTorch keep each element of a tensor? Strides, when view works, when reshape copies, and code "
        "with the right shape and the wrong numbers.",
    ),
    "02_matmul_broadcasting": (
        "Matmul, broadcasting and einsum: predict the shape",
        "Predict the shape of any matmul, broadcast or einsum in PyTorch, read one product in four ways, and find the "
        "broadcast that you did not intend.",
    ),
    "03_attention_lookup": (
        "Attention as a key–value lookup, softmax and √d",
        "Attention as a dictionary in which every key matches a little: softmax, the division by √d, queries, keys and "
        "values, and where word order comes in.",
    ),
    "04_multi_head": (
        "Multi-head attention: split, attend, merge",
        "What two heads can do that one cannot: split features into heads, merge them, write the module, and look at "
        "the heads of a trained model.",
    ),
    "05_masks": (
        "Attention masks: causal, padding and window",
        "Masks (causal, padding, window and packed), PyTorch's two opposite conventions, where each mask goes, and how "
        "to test a mask: change a hidden token.",
    ),
    "06_normalization": (
        "LayerNorm, residuals and the whole Transformer block",
        "Batch, layer and RMS norm, pre-norm and post-norm, residual connections, and a Transformer that you assemble "
        "from its blocks, train, and use to write text.",
    ),
    "07_parameters": (
        "Parameters, FLOPs and memory of a Transformer",
        "Count the parameters, the FLOPs and the bytes of GPT-2 or a Llama by hand: will it fit, how long will the "
        "training take, and how large is the cache?",
    ),
    "08_linear_attention": (
        "Linear attention: three forms, and its price",
        "Why softmax forces attention to compare every pair, three ways to compute linear attention, and what its "
        "fixed state cannot hold.",
    ),
    "09_today": (
        "The block of 2026: RMSNorm, SwiGLU, RoPE, GQA, MLA, experts",
        "Read a published configuration key by key: RMSNorm, QK-norm, SwiGLU, RoPE, grouped and latent attention, "
        "experts, and what each of them costs.",
    ),
    "10_real_models": (
        "Load real models into your own Transformer",
        "Load published weights into parts that you wrote: an encoder that searches sentences, and a language model "
        "that answers, both checked to the last number.",
    ),
    "11_right": (
        "How to test a Transformer",
        "Twenty bugs that shipped in Transformer code, and the tests that find them: what each output depends on, what "
        "the loss asks for, what must be equal.",
    ),
}
