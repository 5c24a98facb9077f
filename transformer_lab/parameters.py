"""Parameters: how many numbers a model learns, component by component, from its shape alone or from its modules."""

from dataclasses import dataclass

from torch import nn

from .arguments import (
    is_integer,
    require_flags,
    require_heads,
    require_kv_heads,
    require_one_of,
    require_sizes,
    type_name,
)
from .layers import default_d_ff

# The options that each family has beside its sizes.
FAMILIES = {
    "bert": {"n_segments", "pooler"},
    "gpt2": {"final_norm", "tied"},
    "llama": {"final_norm", "gated", "n_kv_heads", "tied"},
    "transformer": {"tgt_vocab_size", "final_norm", "tied"},
}
# Parts of the class names of feed-forward layers, in this package, GPT-2, DistilBERT, T5 and BERT.
FEED_FORWARD = ("FeedForward", "MLP", "FFN", "LayerFF", "Intermediate")
# In the order in which a token passes them. A tied matrix counts as the first component that uses it.
COMPONENTS = (
    "token embedding",
    "position embedding",
    "segment embedding",
    "attention weights",
    "attention biases",
    "feed-forward weights",
    "feed-forward biases",
    "norms",
    "pooler",
    "output head",
    "other",
)


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a model: all that it takes to count its parameters, its work and its memory.

    ``dataclasses.replace(shape, n_layers=24)`` is the same shape with another depth. With another ``d_model``, add
    ``d_ff=None`` to let ``d_ff`` follow.

    Parameters
    ----------
    family : {"bert", "gpt2", "llama", "transformer"}
        ``"bert"`` is an encoder without a head; ``"gpt2"`` a decoder alone; ``"llama"`` one with RMS norm, SiLU and
        rotary positions; ``"transformer"`` encoder and decoder, with sinusoidal positions: :class:`Transformer`.
    n_layers : int
        Layers of each stack; ``"transformer"`` has two.
    d_model : int
    n_heads : int
        A divisor of ``d_model``.
    d_ff : int, optional
        When left out ``4 * d_model``, and gated ``8 * d_model // 3``.
    vocab_size : int
        Different tokens: those of the source in ``"transformer"``.
    n_positions : int
        The longest sequence. ``"llama"`` and ``"transformer"`` learn no positions, and may leave it out.
    n_segments : int, optional
        ``"bert"``: rows of the embedding that tells a first sentence from a second.
    pooler : bool, optional
        ``"bert"``: whether a last linear map reads the first token.
    tgt_vocab_size : int, optional
        ``"transformer"``: different tokens of the target; ``vocab_size`` when left out.
    tied : bool, optional
        All but ``"bert"``: whether embeddings and output head are one matrix, as published, but for large Llamas.
    final_norm : bool, optional
        All but ``"bert"``: whether a norm follows each stack. When left out, as published: not in ``"transformer"``.
    bias : bool, optional
        Whether linear maps and norms add a bias; when left out, as published: not in ``"llama"``. The output head has
        none, nor has RMS norm.
    n_kv_heads : int, optional
        ``"llama"``: heads of keys and values, a divisor of ``n_heads``, which takes its place when left out.
    gated : bool, optional
        ``"llama"``: whether feed-forward layers have a gate, a third matrix.

    Raises
    ------
    TypeError
        If a size is not an integer, or an option not a bool.
    ValueError
        If the family is unknown or has no such option, a size is too small, ``n_heads`` does not divide ``d_model``,
        ``n_kv_heads`` does not divide ``n_heads``, or two vocabularies are to be tied.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, table 3. Devlin et al., "BERT", 2019, section 3. Radford et al.,
    "Language Models are Unsupervised Multitask Learners", 2019, table 2. Grattafiori et al., "The Llama 3 Herd of
    Models", 2024, table 3.

    Examples
    --------
    >>> ModelShape("bert", 12, 768, 12, vocab_size=30522, n_positions=512) == BERT_BASE
    True
    >>> BERT_BASE.d_ff
    3072
    """

    family: str
    n_layers: int
    d_model: int
    n_heads: int
    d_ff: int = None  # ty: ignore[invalid-assignment] (4 * d_model takes its place)
    vocab_size: int | None = None
    n_positions: int | None = None
    n_segments: int = 2
    pooler: bool = True
    tgt_vocab_size: int | None = None
    tied: bool = True
    final_norm: bool | None = None
    bias: bool = None  # ty: ignore[invalid-assignment] (the family decides)
    n_kv_heads: int | None = None
    gated: bool = True

    def __post_init__(self):
        require_one_of(FAMILIES, family=self.family)
        if self.bias is None:
            object.__setattr__(self, "bias", self.family != "llama")
        for name, size in vars(self).items():
            if is_integer(size):
                object.__setattr__(self, name, int(size))  # NumPy's would overflow in the counts
        require_sizes(minimum=0, n_layers=self.n_layers, n_segments=self.n_segments)
        require_sizes(d_model=self.d_model, n_heads=self.n_heads)
        require_heads(self.n_heads, self.d_model)
        if self.n_kv_heads is not None:
            require_kv_heads(self.n_kv_heads, self.n_heads)
        if self.d_ff is None:
            object.__setattr__(self, "d_ff", default_d_ff(self.d_model, is_gated(self)))
        require_sizes(d_ff=self.d_ff, vocab_size=self.vocab_size)
        if self.family in ("bert", "gpt2") or self.n_positions is not None:
            require_sizes(n_positions=self.n_positions)
        if self.tgt_vocab_size is not None:
            require_sizes(tgt_vocab_size=self.tgt_vocab_size)
        for name in ("pooler", "tied", "bias", "final_norm", "gated"):
            flag = getattr(self, name)
            if not (name == "final_norm" and flag is None):
                require_flags(**{name: flag})
        for name in sorted(set().union(*FAMILIES.values()) - FAMILIES[self.family]):
            if getattr(self, name) != getattr(type(self), name):
                families = " or ".join(repr(family) for family in FAMILIES if name in FAMILIES[family])
                raise ValueError(f"{name} is an option of family {families}, got it with {self.family!r}")
        if self.tied and self.tgt_vocab_size not in (None, self.vocab_size):
            raise ValueError(
                f"tied asks for one vocabulary, got vocab_size {self.vocab_size} and "
                f"tgt_vocab_size {self.tgt_vocab_size}"
            )


def has_final_norm(shape: ModelShape) -> bool:
    """Whether a norm follows each stack, which the family decides where the shape does not."""
    return shape.family in ("gpt2", "llama") if shape.final_norm is None else shape.final_norm


def is_gated(shape: ModelShape) -> bool:
    """Whether feed-forward layers have a gate."""
    return shape.family == "llama" and shape.gated


def key_features(shape: ModelShape) -> int:
    """The features of a token's keys in all heads together, and of its values: ``d_kv`` in the tables."""
    return shape.d_model // shape.n_heads * (shape.n_kv_heads or shape.n_heads)


BERT_BASE = ModelShape("bert", 12, 768, 12, vocab_size=30522, n_positions=512)
BERT_LARGE = ModelShape("bert", 24, 1024, 16, vocab_size=30522, n_positions=512)
GPT2 = ModelShape("gpt2", 12, 768, 12, vocab_size=50257, n_positions=1024)
GPT2_MEDIUM = ModelShape("gpt2", 24, 1024, 16, vocab_size=50257, n_positions=1024)
GPT2_LARGE = ModelShape("gpt2", 36, 1280, 20, vocab_size=50257, n_positions=1024)
GPT2_XL = ModelShape("gpt2", 48, 1600, 25, vocab_size=50257, n_positions=1024)
SMOLLM2_135M = ModelShape("llama", 30, 576, 9, 1536, vocab_size=49152, n_positions=8192, n_kv_heads=3)
LLAMA3_8B = ModelShape("llama", 32, 4096, 32, 14336, vocab_size=128256, n_positions=8192, n_kv_heads=8, tied=False)


def count_parameters(shape_or_module: ModelShape | nn.Module) -> int:
    """Return how many parameters a model has.

    Parameters
    ----------
    shape_or_module : ModelShape or torch.nn.Module
        A module may be on any device, ``meta`` included.

    Returns
    -------
    int
        Of a module, every parameter counts once, however often it is used, and also where it is frozen; buffers do
        not count.

    Raises
    ------
    TypeError
        If the argument is neither.

    References
    ----------
    Devlin et al., "BERT", 2019, section 3, for the rounded numbers. Radford et al., "Language Models are Unsupervised
    Multitask Learners", 2019, table 2, whose numbers are not those of the published weights.

    Examples
    --------
    >>> count_parameters(BERT_BASE), count_parameters(GPT2)
    (109482240, 124439808)
    >>> count_parameters(nn.Linear(3, 4))
    16
    """
    return sum(parameter_breakdown(shape_or_module).values())


def parameter_breakdown(shape_or_module: ModelShape | nn.Module) -> dict[str, int]:
    """Return how many parameters each component of a model has.

    From a shape, with ``L = n_layers``, ``vocab = vocab_size``, and ``d_kv`` for the features of all heads of keys,
    ``n_kv_heads * d_head``:

    ====================  ===================  =======================  ============================
    component             ``"bert"``           ``"gpt2"``               ``"llama"``
    ====================  ===================  =======================  ============================
    token embedding       vocab·d_model        vocab·d_model            vocab·d_model
    position embedding    n_positions·d_model  n_positions·d_model
    segment embedding     n_segments·d_model
    attention weights     L·4·d_model²         L·4·d_model²             L·2·d_model·(d_model + d_kv)
    attention biases      L·4·d_model          L·4·d_model
    feed-forward weights  L·2·d_model·d_ff     L·2·d_model·d_ff         L·3·d_model·d_ff
    feed-forward biases   L·(d_ff + d_model)   L·(d_ff + d_model)
    norms                 (2·L + 1)·2·d_model  (2·L + 1)·2·d_model      (2·L + 1)·d_model
    pooler                d_model² + d_model
    output head                                0; untied vocab·d_model  0; untied vocab·d_model
    ====================  ===================  =======================  ============================

    ====================  =======================================================
    component             ``"transformer"``, with ``tgt_vocab = tgt_vocab_size``
    ====================  =======================================================
    token embedding       vocab·d_model if tied, else (vocab + tgt_vocab)·d_model
    attention weights     3·L·4·d_model²
    attention biases      3·L·4·d_model
    feed-forward weights  2·L·2·d_model·d_ff
    feed-forward biases   2·L·(d_ff + d_model)
    norms                 5·L·2·d_model; with ``final_norm`` 2·2·d_model more
    output head           0; untied tgt_vocab·d_model
    ====================  =======================================================

    The rule of thumb ``12·L·d_model² + vocab·d_model`` is three of the rows: token embedding, attention weights,
    feed-forward weights. The number of heads is in none of them, unless keys are shared: ``d_kv`` is then less than
    ``d_model``.

    Parameters
    ----------
    shape_or_module : ModelShape or torch.nn.Module
        The parameters of a module are sorted by the classes and the names of the modules that hold them.

    Returns
    -------
    dict of str to int
        In the order of the table. The components add up to :func:`count_parameters`; one of which the model has nothing
        is left out. What a module has besides is ``"other"``.

    Raises
    ------
    TypeError
        If the argument is neither a shape nor a module.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3. Kaplan et al., "Scaling Laws for Neural Language
    Models", 2020, table 1, which leaves out embeddings, biases and norms.

    Examples
    --------
    >>> parameter_breakdown(nn.MultiheadAttention(embed_dim=8, num_heads=2))
    {'attention weights': 256, 'attention biases': 32}
    >>> parameter_breakdown(GPT2)["position embedding"]
    786432
    """
    if isinstance(shape_or_module, ModelShape):
        found = _of_shape(shape_or_module)
    elif isinstance(shape_or_module, nn.Module):
        found = _of_module(shape_or_module)
    else:
        raise TypeError(
            "shape_or_module must be a ModelShape, such as tl.GPT2, or a torch.nn.Module, "
            f"got {type_name(shape_or_module)}"
        )
    return {component: found[component] for component in COMPONENTS if found.get(component)}


def _of_shape(shape):
    """The table of :func:`parameter_breakdown`."""
    layers, d_model, d_ff, bias = shape.n_layers, shape.d_model, shape.d_ff, int(shape.bias)
    embeddings = {"token embedding": shape.vocab_size * d_model}
    head = {}
    attentions, feed_forwards, norms = layers, layers, 2 * layers
    if shape.family == "bert":
        embeddings["position embedding"] = shape.n_positions * d_model
        embeddings["segment embedding"] = shape.n_segments * d_model
        norms += 1  # that of the embeddings
        head["pooler"] = shape.pooler * (d_model**2 + bias * d_model)
    elif shape.family in ("gpt2", "llama"):
        if shape.family == "gpt2":
            embeddings["position embedding"] = shape.n_positions * d_model
        norms += has_final_norm(shape)
        head["output head"] = (not shape.tied) * shape.vocab_size * d_model
    else:
        attentions, feed_forwards, norms = 3 * layers, 2 * layers, 5 * layers + 2 * has_final_norm(shape)
        target = (not shape.tied) * (shape.tgt_vocab_size or shape.vocab_size) * d_model
        embeddings["token embedding"] += target
        head["output head"] = target
    projected, wide = 2 * d_model + 2 * key_features(shape), (1 + is_gated(shape)) * d_ff
    return {
        **embeddings,
        "attention weights": attentions * d_model * projected,
        "attention biases": attentions * projected * bias,
        "feed-forward weights": feed_forwards * d_model * (wide + d_ff),
        "feed-forward biases": feed_forwards * (wide + d_model) * bias,
        "norms": norms * (1 if shape.family == "llama" else 1 + bias) * d_model,
        **head,
    }


def _of_module(module):
    """Count parameters by component. A shared parameter counts as the first component, in order, that uses it."""
    holders = {}  # parameter → the components that use it
    _visit(module, "", None, holders)
    found = dict.fromkeys(COMPONENTS, 0)
    for parameter in module.parameters():  # each once, also where it is tied
        found[min(holders[parameter], key=COMPONENTS.index)] += parameter.numel()
    return found


def _visit(module, name, part, holders):
    part = _classify(module, name, part)
    for parameter_name, parameter in module.named_parameters(recurse=False):
        component = part or "other"
        if part in ("attention", "feed-forward"):
            component = f"{part} biases" if parameter_name.endswith("bias") else f"{part} weights"
        holders.setdefault(parameter, set()).add(component)
    for child_name, child in module.named_children():
        _visit(child, child_name, part, holders)


def _classify(module, name, part):
    """Classify a module by its class and its name, otherwise as ``part``, the class of its container."""
    kind = type(module).__name__
    if "Norm" in kind:
        return "norms"
    if "Attention" in kind:
        return "attention"
    if any(word in kind for word in FEED_FORWARD) or name in ("linear1", "linear2"):
        return "feed-forward"
    if part is None and kind.endswith("Output") and not isinstance(module, nn.Linear):
        return "feed-forward"  # BertOutput; BertSelfOutput is inside the attention
    if part is None and "Embedding" in kind and next(module.parameters(recurse=False), None) is not None:
        if "pos" in name or name == "wpe":
            return "position embedding"
        return "segment embedding" if "segment" in name or "token_type" in name else "token embedding"
    if part is None and name == "pooler":
        return "pooler"
    if part is None and isinstance(module, nn.Linear) and name in ("output", "head", "lm_head"):
        return "output head"
    return part
