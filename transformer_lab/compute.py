"""The compute and the memory that a model needs, calculated from its shape.

One FLOP is one addition or one multiplication, so a multiply-add is two FLOPs. As is usual, only matrix products are
counted; element-wise operations (softmax, norms, activations, sums) take few FLOPs in comparison, but can take much
time.
"""

from torch import nn

from .arguments import as_sizes, require_heads, type_name
from .parameters import (
    ModelShape,
    count_parameters,
    has_final_norm,
    is_gated,
    key_features,
    query_features,
    unsupported_options,
)


def attention_flops(seq: int, d_model: int, k_len: int | None = None) -> int:
    """Return the FLOPs of softmax attention without its projections: only scores and the blend of values are counted.

    ``QKᵀ`` and the product of the weights with ``V`` take ``2 * q_len * k_len * d_model`` FLOPs each, for any number of
    heads. A causal mask does not lower the number, although a kernel may skip the hidden half.

    Parameters
    ----------
    seq : int
        Number of queries.
    d_model : int
        Number of features of all heads together.
    k_len : int, optional
        Number of keys; ``seq`` by default.

    Returns
    -------
    int
        ``4 * seq * k_len * d_model``.

    Raises
    ------
    TypeError
        If a size is not an integer.
    ValueError
        If a size is too small.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, table 1. Hoffmann et al., "Training Compute-Optimal Large
    Language Models", 2022, appendix F.

    Examples
    --------
    >>> attention_flops(1024, 768)
    3221225472
    >>> attention_flops(2048, 768) // attention_flops(1024, 768)
    4
    """
    k_len = seq if k_len is None else k_len
    seq, k_len = as_sizes(minimum=0, seq=seq, k_len=k_len)
    (d_model,) = as_sizes(d_model=d_model)
    return 4 * seq * k_len * d_model


def linear_attention_flops(seq: int, d_model: int, n_heads: int) -> int:
    """Return the FLOPs of linear attention without its projections.

    Each head adds up ``φ(k)vᵀ`` over the tokens, and multiplies every query by the sum. Each of these two steps takes
    ``2 * seq * d_head²`` FLOPs. The normalizer, an additional row of ``d_head`` numbers, is not counted.

    Parameters
    ----------
    seq : int
    d_model : int
    n_heads : int
        A divisor of ``d_model``. More heads take fewer FLOPs, because their states are smaller.

    Returns
    -------
    int
        ``4 * seq * d_model * d_head``.

    Raises
    ------
    TypeError
        If a size is not an integer.
    ValueError
        If a size is too small, or ``n_heads`` does not divide ``d_model``.

    References
    ----------
    Katharopoulos et al., "Transformers are RNNs", 2020, section 3.2.

    Examples
    --------
    >>> attention_flops(1024, 768) / linear_attention_flops(1024, 768, n_heads=12)
    16.0
    """
    (seq,) = as_sizes(minimum=0, seq=seq)
    d_model, n_heads = as_sizes(d_model=d_model, n_heads=n_heads)
    require_heads(n_heads, d_model)
    return 4 * seq * d_model * (d_model // n_heads)


def flops_breakdown(shape: ModelShape, seq: int, batch: int = 1, *, tgt_len: int | None = None) -> dict[str, int]:
    """Return the FLOPs of one forward pass, component by component.

    The tables show the FLOPs for one sequence, with ``N = seq``, ``L = n_layers``, ``vocab = vocab_size``, and ``d_kv``
    for the number of features of all key heads, ``n_kv_heads * d_head``:

    =====================  =============================  ==============================
    component              ``"bert", "gpt2"``             ``"llama"``
    =====================  =============================  ==============================
    attention projections  L·8·N·d_model²                 L·4·N·d_model·(d_model + d_kv)
    scores and blend       L·4·N²·d_model                 L·4·N²·d_model
    feed-forward           L·4·N·d_model·d_ff             L·6·N·d_model·d_ff
    pooler                 2·d_model², ``"bert"``
    output head            2·N·d_model·vocab, ``"gpt2"``  2·N·d_model·vocab
    =====================  =============================  ==============================

    =====================  ======================================================
    component              ``"transformer"``, with ``tgt_vocab = tgt_vocab_size``
    =====================  ======================================================
    attention projections  L·12·(N + tgt_len)·d_model²
    scores and blend       L·4·(N² + tgt_len² + tgt_len·N)·d_model
    feed-forward           L·4·(N + tgt_len)·d_model·d_ff
    output head            2·tgt_len·d_model·tgt_vocab
    =====================  ======================================================

    If the shape sets ``d_head``, ``n_heads * d_head`` replaces one ``d_model`` in each of the first two rows. A window
    that is shorter than ``N`` replaces one ``N`` in ``N²``. In a mixture of experts, only the router and the experts
    that a token uses are counted. Shared keys and values need smaller projections, but the number of scores stays the
    same. A feed-forward layer without a gate takes two thirds of the FLOPs of a gated layer.

    Only scores and blend grow with ``N²``. In ``"bert"`` and ``"gpt2"`` they overtake the feed-forward layer at ``N =
    d_ff``, usually ``4·d_model``. Attention with its projections overtakes the feed-forward layer at ``N = d_ff −
    2·d_model``, and scores and blend overtake the rest of the layer at ``N = d_ff + 2·d_model``. Looking up embeddings
    takes no FLOPs.

    Parameters
    ----------
    shape : ModelShape
    seq : int
        Number of tokens in each sequence; in ``"transformer"``, in each source. The number may exceed ``n_positions``,
        to compute the cost of a longer context.
    batch : int, optional
    tgt_len : int, optional
        For ``"transformer"``, the number of tokens in each target; ``seq`` by default.

    Returns
    -------
    dict of str to int
        In the order of the table, without the components that the family does not have.

    Raises
    ------
    TypeError
        If ``shape`` is not a ModelShape, or a size is not an integer.
    ValueError
        If a size is too small, or ``tgt_len`` is given for a family without a target.

    References
    ----------
    Kaplan et al., "Scaling Laws for Neural Language Models", 2020, table 1, which counts half of our FLOPs for
    scores and blend. Hoffmann et al., "Training Compute-Optimal Large Language Models", 2022, appendix F, where softmax
    and embeddings count too.

    Examples
    --------
    >>> from transformer_lab import GPT2
    >>> for component, flops in flops_breakdown(GPT2, seq=1024).items():
    ...     print(f"{component:22}{flops / 1e9:6.1f} GFLOP")
    attention projections   58.0 GFLOP
    scores and blend        38.7 GFLOP
    feed-forward           116.0 GFLOP
    output head             79.0 GFLOP
    >>> breakdown = flops_breakdown(GPT2, seq=GPT2.d_ff)
    >>> breakdown["scores and blend"] == breakdown["feed-forward"]
    True
    """
    src_len, tgt_len, batch = _resolve_lengths(shape, seq, batch, tgt_len)
    n_layers, d_model, d_queries = shape.n_layers, shape.d_model, query_features(shape)
    n_tokens = src_len
    projection_flops = 4 * src_len * d_model * (d_queries + key_features(shape))
    score_flops = attention_flops(src_len, d_queries)
    if shape.family == "transformer":
        n_tokens, projection_flops = src_len + tgt_len, 12 * (src_len + tgt_len) * d_model * d_queries
        score_flops += attention_flops(tgt_len, d_queries) + attention_flops(tgt_len, d_queries, src_len)
    n_window_layers = 0
    if shape.window is not None and shape.window < src_len:
        n_window_layers = n_layers if shape.n_window_layers is None else shape.n_window_layers
    flops = {"embedding projection": 2 * src_len * shape.d_embedding * d_model} if shape.d_embedding else {}
    flops |= {
        "attention projections": n_layers * projection_flops,
        "scores and blend": (n_layers - n_window_layers) * score_flops,
        "feed-forward": n_layers * n_tokens * d_model * _feed_forward_flops(shape),
    }
    if n_window_layers:
        flops["scores and blend"] += n_window_layers * attention_flops(src_len, d_queries, shape.window)
    if shape.family != "bert":
        flops["output head"] = 2 * tgt_len * d_model * _target_vocab_size(shape)
    elif shape.pooler:
        flops["pooler"] = 2 * d_model**2 * (src_len > 0)
    return {component: batch * number for component, number in flops.items()}


def forward_flops(shape: ModelShape, seq: int, batch: int = 1, *, tgt_len: int | None = None) -> int:
    """Return the FLOPs of one forward pass: the sum of :func:`flops_breakdown`.

    Each token takes 2 FLOPs for every weight of a matrix (embeddings, biases and norms do not count, but a tied head
    does), and ``4 * seq * d_model`` FLOPs in each layer for scores and blend.

    ``torch.utils.flop_counter.FlopCounterMode`` counts the same number if attention runs as plain products: on the
    ``meta`` device, or with ``sdpa_kernel(SDPBackend.MATH)``. Up to PyTorch 2.14 the counter has no formula for the
    fused kernel of the CPU, and leaves out the kernel's FLOPs.

    Parameters
    ----------
    shape, seq, batch, tgt_len : as in :func:`flops_breakdown`

    Returns
    -------
    int

    Raises
    ------
    TypeError, ValueError
        As in :func:`flops_breakdown`.

    References
    ----------
    Kaplan et al., "Scaling Laws for Neural Language Models", 2020, equation 2.2.

    Examples
    --------
    >>> from transformer_lab import GPT2
    >>> f"{forward_flops(GPT2, seq=1024) / 1e9:.1f} GFLOP"
    '291.6 GFLOP'
    """
    return sum(flops_breakdown(shape, seq, batch, tgt_len=tgt_len).values())


def training_flops(shape: ModelShape, seq: int, batch: int = 1, *, tgt_len: int | None = None) -> int:
    """Return the FLOPs of a forward and a backward pass: three times the FLOPs of the forward pass.

    For every product of the forward pass, the backward pass computes two products: one for the gradient of each factor.
    This explains the rule of thumb of 6 FLOPs for each parameter and token.

    ``FlopCounterMode`` counts the same number if it agrees with :func:`forward_flops` about the forward pass. In the
    backward pass, a fused kernel computes the scores again instead of storing them; a counter with the kernel's formula
    adds these FLOPs, which are half of the forward pass's FLOPs for scores and blend. As is usual, this function counts
    the model's FLOPs, not a kernel's.

    Parameters
    ----------
    shape, seq, batch, tgt_len : as in :func:`flops_breakdown`

    Returns
    -------
    int

    Raises
    ------
    TypeError, ValueError
        As in :func:`flops_breakdown`.

    References
    ----------
    Kaplan et al., "Scaling Laws for Neural Language Models", 2020, section 2.1. Hoffmann et al., "Training
    Compute-Optimal Large Language Models", 2022, appendix F. Chowdhery et al., "PaLM", 2022, appendix B, for the FLOPs
    that are not counted.

    Examples
    --------
    >>> from transformer_lab import GPT2, count_parameters
    >>> seq = 1024
    >>> round(training_flops(GPT2, seq) / (6 * count_parameters(GPT2) * seq), 3)
    1.144
    """
    return 3 * forward_flops(shape, seq, batch, tgt_len=tgt_len)


def weight_bytes(shape_or_module: ModelShape | nn.Module, bytes_per_value: int = 4) -> int:
    """Return the memory of a model's parameters. Their gradients take the same amount of memory.

    Parameters
    ----------
    shape_or_module : ModelShape or torch.nn.Module
    bytes_per_value : int, optional
        4 for float32, 2 for half precision. A byte has eight bits.

    Returns
    -------
    int

    Raises
    ------
    TypeError
        If the first argument is neither a shape nor a module, or ``bytes_per_value`` is not an integer.
    ValueError
        If ``bytes_per_value`` is below 1.

    References
    ----------
    Rajbhandari et al., "ZeRO", 2020, section 3.1.

    Examples
    --------
    >>> from transformer_lab import GPT2_XL
    >>> f"{weight_bytes(GPT2_XL) / 1e9:.2f} GB"
    '6.23 GB'
    """
    (bytes_per_value,) = as_sizes(bytes_per_value=bytes_per_value)
    return count_parameters(shape_or_module) * bytes_per_value


def optimizer_bytes(shape_or_module: ModelShape | nn.Module, bytes_per_value: int = 4) -> int:
    """Return the memory of Adam's state: two moments for every parameter.

    Parameters
    ----------
    shape_or_module, bytes_per_value : as in :func:`weight_bytes`

    Returns
    -------
    int
        ``2 * weight_bytes``. PyTorch also stores a step count of 4 bytes for each tensor of parameters.

    Raises
    ------
    TypeError, ValueError
        As in :func:`weight_bytes`.

    References
    ----------
    Kingma and Ba, "Adam", 2015, algorithm 1. Rajbhandari et al., "ZeRO", 2020, section 3.1.

    Examples
    --------
    >>> from transformer_lab import GPT2_XL
    >>> f"{optimizer_bytes(GPT2_XL) / 1e9:.2f} GB"
    '12.46 GB'
    """
    return 2 * weight_bytes(shape_or_module, bytes_per_value)


def activation_bytes(
    shape: ModelShape, seq: int, batch: int = 1, bytes_per_value: int = 4, *, tgt_len: int | None = None
) -> int:
    """Return the memory of the activations that a forward pass stores for the backward pass.

    These are the tensors that autograd saves between the input and the output of a model made of this package's layers,
    without dropout or masks. For each token, a layer of the encoder stores:

    ================================  =============================================================
    values                            stored as
    ================================  =============================================================
    d_model                           input of the projections of queries, keys and values
    3·d_model                         queries, keys, values
    d_model                           output of the heads, input of the output projection
    n_heads                           logarithm of each row's sum, at least 4 bytes each
    d_model                           input of the feed-forward layer
    d_ff; with GELU 2·d_ff            features after the activation; with GELU, also before it
    2·(d_model + 2)                   input of each norm, its mean, the reciprocal of its deviation
    ================================  =============================================================

    With GELU, as in ``"bert"`` and ``"gpt2"``, and ``d_ff = 4·d_model``, the sum is ``16·d_model + n_heads + 4``;
    ``"transformer"`` has ReLU, whose backward pass needs only the output, which the next linear map stores anyway. In
    ``"llama"``, keys and values take ``2·d_kv``, as in :func:`flops_breakdown`; a gated layer stores ``4·d_ff``: the
    gate, its SiLU, the features, and the product of the last two. RMS norm stores ``2·d_model + 1`` values of at least
    4 bytes each: its input before and after the division, and the reciprocal of the root. Rotary positions store
    ``4·d_head`` cosines and sines for each position, once for the whole batch.

    Nothing grows with ``seq²``, because the fused kernel does not store the attention weights. Plain attention stores
    at least these weights: ``n_heads * seq`` more values for each token.

    Parameters
    ----------
    shape, seq, batch : as in :func:`flops_breakdown`
    bytes_per_value : as in :func:`weight_bytes`
    tgt_len : as in :func:`flops_breakdown`

    Returns
    -------
    int
        Exactly the bytes that PyTorch stores on a CPU. On a GPU, a norm's mean and reciprocal deviation take 4 bytes
        each even in half precision, and a fused RMS norm stores its input only once. PyTorch 2.4 differs for
        ``"llama"``: it copies the keys and values that heads share. Token numbers, 8 bytes each, are not included;
        neither are the activations of the loss, which :func:`memory_breakdown` adds.

    Raises
    ------
    TypeError, ValueError
        As in :func:`flops_breakdown`; and if the shape has an option that the layers of this package do not have.

    References
    ----------
    Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022, equation 1: in half
    precision ``34·d_model + 5·n_heads·seq`` bytes. Of these, ``2·d_model`` are dropout masks, and the fused kernel does
    not store the last term. The remaining ``32·d_model`` bytes are our ``16·d_model`` values.

    Examples
    --------
    >>> from transformer_lab import GPT2
    >>> f"{activation_bytes(GPT2, seq=1024) / 1e6:.0f} MB"
    '611 MB'
    """
    (bytes_per_value,) = as_sizes(bytes_per_value=bytes_per_value)
    src_len, tgt_len, batch = _resolve_lengths(shape, seq, batch, tgt_len)
    unsupported_names = unsupported_options(shape)
    if unsupported_names:
        names = " and ".join(unsupported_names)
        raise ValueError(f"activations are known only for the layers of this package, got a shape with {names}")
    if shape.family == "llama":
        return _llama_activation_bytes(shape, src_len, batch, bytes_per_value)
    n_layers, d_model, norm_values = shape.n_layers, shape.d_model, shape.d_model + 2
    ff_values = shape.d_ff if shape.family == "transformer" else 2 * shape.d_ff
    layer_values = 5 * d_model + norm_values + d_model + ff_values + norm_values  # for each token
    if shape.family == "transformer":
        # Cross-attention stores the target's input, queries, output and norm, and the source's keys and values.
        cross_attention_values = tgt_len * (3 * d_model + norm_values) + src_len * 2 * d_model
        n_values = n_layers * ((src_len + tgt_len) * layer_values + cross_attention_values)
        n_values += has_final_norm(shape) * (src_len + tgt_len) * norm_values
        n_values += (n_layers > 0) * src_len * d_model + tgt_len * d_model  # inputs of the decoder and of the head
        n_row_sums = n_layers * (src_len + 2 * tgt_len) * shape.n_heads
    else:
        n_values = n_layers * src_len * layer_values
        n_row_sums = n_layers * src_len * shape.n_heads
        if shape.family == "bert":
            # The pooler's input is a view, so the vectors of all tokens are stored.
            n_values += src_len * norm_values + shape.pooler * (src_len + 1) * d_model
        else:
            n_values += has_final_norm(shape) * src_len * norm_values + src_len * d_model
    return batch * (n_values * bytes_per_value + n_row_sums * max(4, bytes_per_value))


def kv_cache_bytes(shape: ModelShape, seq: int, batch: int = 1, bytes_per_value: int = 4) -> int:
    """Return the memory of the key–value cache: two vectors for each token and layer.

    Parameters
    ----------
    shape : ModelShape
    seq : int
        Number of tokens in the cache.
    batch, bytes_per_value : as in :func:`activation_bytes`

    Returns
    -------
    int
        ``2 * n_layers * seq * d_model * batch * bytes_per_value``, for any number of heads; if heads share keys,
        ``n_kv_heads * d_head`` replaces ``d_model``. A layer with a window caches only the last ``window`` tokens. The
        result is 0 for ``"bert"``, which does not generate. In ``"transformer"`` the result counts the decoder's own
        tokens; cross-attention caches the same number of bytes for every source token. :class:`KeyValueCache` allocates
        up to twice as much, for future tokens.

    Raises
    ------
    TypeError, ValueError
        As in :func:`flops_breakdown`.

    References
    ----------
    Shazeer, "Fast Transformer Decoding", 2019, section 2.4. Ainslie et al., "GQA", 2023, section 2.2.

    Examples
    --------
    >>> from transformer_lab import GPT2, LLAMA3_8B
    >>> f"{kv_cache_bytes(GPT2, seq=1024) / 1e6:.1f} MB"
    '75.5 MB'
    >>> kv_cache_bytes(LLAMA3_8B, seq=1, bytes_per_value=2) // 1024  # KiB per token; 32 query heads, 8 key–value heads
    128
    """
    (bytes_per_value,) = as_sizes(bytes_per_value=bytes_per_value)
    seq, _, batch = _resolve_lengths(shape, seq, batch, None)
    if shape.family == "bert":
        return 0
    n_window_layers = 0
    if shape.window:
        n_window_layers = shape.n_layers if shape.n_window_layers is None else shape.n_window_layers
    n_tokens = (shape.n_layers - n_window_layers) * seq + n_window_layers * min(seq, shape.window or 0)
    return 2 * n_tokens * key_features(shape) * batch * bytes_per_value


def memory_breakdown(
    shape: ModelShape, seq: int, batch: int = 1, bytes_per_value: int = 4, *, tgt_len: int | None = None
) -> dict[str, int]:
    """Return the memory of one step of training with Adam, component by component.

    Parameters
    ----------
    shape, seq, batch : as in :func:`flops_breakdown`
    bytes_per_value : int, optional
        The size of a value, the same for weights, gradients, moments and activations.
    tgt_len : as in :func:`flops_breakdown`

    Returns
    -------
    dict of str to int
        ``"weights"``, ``"gradients"``, ``"optimizer state"``, ``"activations"``, and if the model has a
        head, ``"log-probabilities"``, which the cross-entropy stores: one value for each position and each token of
        the vocabulary.

    Raises
    ------
    TypeError, ValueError
        As in :func:`flops_breakdown`.

    References
    ----------
    Rajbhandari et al., "ZeRO", 2020, section 3.

    Examples
    --------
    >>> from transformer_lab import GPT2
    >>> for component, number in memory_breakdown(GPT2, seq=1024).items():
    ...     print(f"{component:18}{number / 1e6:5.0f} MB")
    weights             498 MB
    gradients           498 MB
    optimizer state     996 MB
    activations         611 MB
    log-probabilities   206 MB
    """
    _, target_len, batch = _resolve_lengths(shape, seq, batch, tgt_len)
    memory = {
        "weights": weight_bytes(shape, bytes_per_value),
        "gradients": weight_bytes(shape, bytes_per_value),
        "optimizer state": optimizer_bytes(shape, bytes_per_value),
        "activations": activation_bytes(shape, seq, batch, bytes_per_value, tgt_len=tgt_len),
    }
    if shape.family != "bert":
        memory["log-probabilities"] = batch * target_len * _target_vocab_size(shape) * bytes_per_value
    return memory


def _llama_activation_bytes(shape, seq, batch, bytes_per_value):
    """Return :func:`activation_bytes` for ``"llama"``, whose norms and rotary positions use at least float32."""
    n_layers, d_model = shape.n_layers, shape.d_model
    layer_values = 4 * d_model + 2 * key_features(shape) + (4 if is_gated(shape) else 2) * shape.d_ff  # for each token
    norm_values = (2 * n_layers + has_final_norm(shape)) * (2 * d_model + 1)
    float32_values = batch * seq * (norm_values + n_layers * shape.n_heads)
    float32_values += n_layers * seq * 4 * (d_model // shape.n_heads)
    other_values = batch * seq * (n_layers * layer_values + d_model)
    return other_values * bytes_per_value + float32_values * max(4, bytes_per_value)


def _feed_forward_flops(shape):
    """Return the FLOPs of a feed-forward layer, or of the experts that a token uses, per token and input feature."""
    n_matrices = 2 + is_gated(shape)
    if not shape.n_experts:
        return 2 * n_matrices * shape.d_ff
    features = shape.experts_per_token * (shape.d_expert or shape.d_ff) + (shape.d_shared_expert or 0)
    return 2 * (n_matrices * features + shape.n_experts + bool(shape.shared_expert_gate))


def _resolve_lengths(shape, seq, batch, tgt_len):
    """Check and return the numbers of source and target tokens (equal in a single stack), and the batch size."""
    if not isinstance(shape, ModelShape):
        raise TypeError(f"shape must be a ModelShape, such as tl.GPT2, got {type_name(shape)}")
    if tgt_len is not None and shape.family != "transformer":
        raise ValueError(f"tgt_len is only for family 'transformer', got family {shape.family!r}")
    tgt_len = seq if tgt_len is None else tgt_len
    return as_sizes(minimum=0, seq=seq, tgt_len=tgt_len, batch=batch)


def _target_vocab_size(shape):
    return shape.vocab_size if shape.tgt_vocab_size is None else shape.tgt_vocab_size
