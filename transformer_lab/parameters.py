"""Count the parameters of a model, component by component, from the model's modules or from its shape alone."""

import re
from dataclasses import dataclass

from torch import nn

from .arguments import (
    format_value,
    is_integer,
    require_flags,
    require_heads,
    require_kv_heads,
    require_one_of,
    require_sizes,
    type_name,
)
from .components import count_by_component
from .layers import default_d_ff

# The options of each family in addition to the sizes, and their default values.
FAMILIES = {
    "bert": {"n_segments": 2, "pooler": True, "d_embedding": None, "shared_layers": None, "n_relative": None},
    "gpt2": {"final_norm": None, "tied": True},
    "llama": {
        "final_norm": None,
        "gated": True,
        "n_kv_heads": None,
        "tied": True,
        "qk_norm": False,
        "norm": "rms",
        "norms_per_layer": 2,
        "embedding_norm": False,
        "learned_positions": False,
        "window": None,
        "n_window_layers": None,
        "n_experts": None,
        "experts_per_token": None,
        "d_expert": None,
        "d_shared_expert": 0,
        "shared_expert_gate": False,
    },
    "transformer": {
        "tgt_vocab_size": None,
        "final_norm": None,
        "tied": True,
        "gated": False,
        "norm": "layer",
        "embedding_norm": False,
        "learned_positions": False,
        "n_relative": None,
        "shared_embedding": None,
    },
}
# The options that this package's own layers support; activation_bytes and the budget lab support no others.
SUPPORTED_OPTIONS = {"n_segments", "pooler", "final_norm", "tied", "tgt_vocab_size", "n_kv_heads"}
# If one of these options is left out, its field contains the family's default. The field of any other option is None if
# the option has its family's default, so that dataclasses.replace may change the family.
ALWAYS_SET_OPTIONS = {"n_segments", "pooler", "tied", "gated"}
NORMS = ("layer", "rms", "unlearned")
# The parts that can have biases; ``bias=True`` means all parts but the last.
BIAS_PARTS = ("qkv", "output", "feed-forward", "norms", "head")


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a model: all that is needed to count its parameters, FLOPs and memory.

    ``dataclasses.replace(shape, n_layers=24)`` is the same shape with a different depth. When you change ``d_model``,
    add ``d_ff=None`` to compute ``d_ff`` again. If the description of a parameter begins with names of families, only
    these families have the parameter.

    Parameters
    ----------
    family : {"bert", "gpt2", "llama", "transformer"}
        ``"bert"`` is an encoder without a head; ``"gpt2"`` is a decoder; ``"llama"`` is a decoder with parts to choose
        from, by default RMS norm, SiLU and rotary positions; ``"transformer"`` is an encoder with a decoder, by default
        with sinusoidal positions: :class:`Transformer`.
    n_layers : int
        Number of layers in each stack; ``"transformer"`` has two stacks.
    d_model : int
    n_heads : int
        A divisor of ``d_model``, unless ``d_head`` is given.
    d_ff : int, optional
        ``4 * d_model`` by default, or ``8 * d_model // 3`` with a gate.
    vocab_size : int
        Number of different tokens; in ``"transformer"``, of the source.
    n_positions : int
        The number of rows in the table of positions. This number is not needed if a model learns no positions.
    n_segments : int, optional
        ``"bert"``: number of rows in the embedding that distinguishes a first sentence from a second.
    pooler : bool, optional
        ``"bert"``: whether a last linear map reads the first token.
    tgt_vocab_size : int, optional
        ``"transformer"``: number of different tokens of the target; ``vocab_size`` by default.
    tied : bool, optional
        All but ``"bert"``: whether embeddings and output head are one matrix, as in the published models except large
        Llamas.
    final_norm : bool, optional
        All but ``"bert"``: whether a norm follows each stack. The default follows the published models: yes, except in
        ``"transformer"``.
    bias : bool or sequence of str, optional
        Whether linear maps and norms add a bias. The default follows the published models: yes, except in ``"llama"``.
        A sequence lists the parts that have a bias, out of ``"qkv"``, ``"output"`` (of attention), ``"feed-forward"``,
        ``"norms"`` and ``"head"``; ``True`` means all but ``"head"``. RMS norm never has a bias.
    n_kv_heads : int, optional
        ``"llama"``: number of key–value heads, a divisor of ``n_heads``; ``n_heads`` by default.
    gated : bool, optional
        ``"llama"`` and ``"transformer"``: whether feed-forward layers have a gate, a third matrix.
    d_head : int, optional
        Number of features of each head; ``d_model // n_heads`` by default.
    qk_norm : bool or "all", optional
        ``"llama"``: whether queries and keys are normalized. With ``True``, all heads share the same weights; with
        ``"all"``, every head has its own weights.
    norm : {"layer", "rms", "unlearned"}, optional
        ``"llama"`` and ``"transformer"``: the norm; ``"unlearned"`` has no parameters.
    norms_per_layer : int, optional
        ``"llama"``: number of norms in each layer: 2 by default, 1 if attention and feed-forward layer share one input,
        4 if their outputs are normalized as well.
    embedding_norm : bool, optional
        ``"llama"`` and ``"transformer"``: whether a norm follows the embeddings, as it does in ``"bert"``.
    learned_positions : bool, optional
        ``"llama"`` and ``"transformer"``: whether each stack learns a table of positions.
    n_relative : int, optional
        ``"bert"`` and ``"transformer"``: number of buckets for relative positions; each stack learns one bias per
        bucket and head (T5).
    window : int, optional
        ``"llama"``: how many tokens a query attends to in a layer with sliding-window attention.
    n_window_layers : int, optional
        ``"llama"``: how many layers have a window; all by default.
    n_experts, experts_per_token : int, optional
        ``"llama"``: how many experts replace each feed-forward layer, and how many of them a token uses.
    d_expert : int, optional
        Number of features of an expert; ``d_ff`` by default.
    d_shared_expert : int, optional
        Total number of features of the experts that every token uses.
    shared_expert_gate : bool, optional
        Whether a gate of ``d_model`` weights scales the result of the shared experts.
    d_embedding : int, optional
        ``"bert"``: number of features of the embeddings, if a linear map projects them to ``d_model`` (ALBERT).
    shared_layers : bool, optional
        ``"bert"``: whether all layers share their parameters (ALBERT).
    shared_embedding : bool, optional
        ``"transformer"``: whether source and target share one embedding; equal to ``tied`` by default.

    Raises
    ------
    TypeError
        If a size is not an integer, or an option is not a bool.
    ValueError
        If the family is unknown or does not have a given option, a size is too small, ``n_heads`` does not divide
        ``d_model``, ``n_kv_heads`` does not divide ``n_heads``, source and target share embeddings but not a
        vocabulary, or an option requires a further option that is not set.

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
    n_segments: int | None = None
    pooler: bool | None = None
    tgt_vocab_size: int | None = None
    tied: bool | None = None
    final_norm: bool | None = None
    bias: bool | tuple[str, ...] = None  # ty: ignore[invalid-assignment] (the family decides)
    n_kv_heads: int | None = None
    gated: bool | None = None
    d_head: int | None = None
    qk_norm: bool | str | None = None
    norm: str | None = None
    norms_per_layer: int | None = None
    embedding_norm: bool | None = None
    learned_positions: bool | None = None
    n_relative: int | None = None
    window: int | None = None
    n_window_layers: int | None = None
    n_experts: int | None = None
    experts_per_token: int | None = None
    d_expert: int | None = None
    d_shared_expert: int | None = None
    shared_expert_gate: bool | None = None
    d_embedding: int | None = None
    shared_layers: bool | None = None
    shared_embedding: bool | None = None

    def __post_init__(self):
        require_one_of(FAMILIES, family=self.family)
        family_options = FAMILIES[self.family]
        for name, value in vars(self).items():
            if is_integer(value):
                object.__setattr__(self, name, int(value))  # NumPy's integers would overflow in the counts
            elif value is None and name in ALWAYS_SET_OPTIONS and name in family_options:
                object.__setattr__(self, name, family_options[name])
        for name in sorted(set().union(*FAMILIES.values()) - set(family_options)):
            if getattr(self, name) is not None:
                families = " or ".join(repr(family) for family in FAMILIES if name in FAMILIES[family])
                raise ValueError(f"{name} is an option of family {families}, got it with {self.family!r}")
        object.__setattr__(self, "bias", _canonical_biases(self.family != "llama" if self.bias is None else self.bias))
        require_sizes(minimum=0, n_layers=self.n_layers)
        require_sizes(d_model=self.d_model, n_heads=self.n_heads)
        if self.d_head is None:
            require_heads(self.n_heads, self.d_model)
        if self.n_kv_heads is not None:
            require_kv_heads(self.n_kv_heads, self.n_heads)
        if self.d_ff is None:
            object.__setattr__(self, "d_ff", default_d_ff(self.d_model, is_gated(self)))
        require_sizes(d_ff=self.d_ff, vocab_size=self.vocab_size)
        if learns_positions(self) or self.n_positions is not None:
            require_sizes(n_positions=self.n_positions)
        self._require_options()

    def _require_options(self):
        for name in ("n_segments", "n_relative", "d_shared_expert", "n_window_layers", "norms_per_layer"):
            if getattr(self, name) is not None:
                require_sizes(minimum=0, **{name: getattr(self, name)})
        for name in ("tgt_vocab_size", "d_head", "window", "n_experts", "experts_per_token", "d_expert", "d_embedding"):
            if getattr(self, name) is not None:
                require_sizes(**{name: getattr(self, name)})
        flags = ("pooler", "tied", "final_norm", "gated", "embedding_norm", "learned_positions", "shared_expert_gate")
        for name in (*flags, "shared_layers", "shared_embedding"):
            if getattr(self, name) is not None:
                require_flags(**{name: getattr(self, name)})
        if self.norm is not None:
            require_one_of(NORMS, norm=self.norm)
        if self.qk_norm not in (None, False, True, "all") or is_integer(self.qk_norm):
            raise ValueError(f"qk_norm must be False, True or 'all', got {format_value(self.qk_norm)}")
        for name, required in (
            ("n_window_layers", "window"),
            ("experts_per_token", "n_experts"),
            ("d_expert", "n_experts"),
            ("d_shared_expert", "n_experts"),
            ("shared_expert_gate", "d_shared_expert"),
            ("n_experts", "experts_per_token"),
        ):
            if getattr(self, name) and not getattr(self, required):
                raise ValueError(f"{name} requires {required}, got {name} {getattr(self, name)} without it")
        for name, limit in (("n_window_layers", "n_layers"), ("experts_per_token", "n_experts")):
            if (getattr(self, name) or 0) > (getattr(self, limit) or 0):
                raise ValueError(
                    f"{name} must be at most {limit}, "
                    f"got {name} {getattr(self, name)} and {limit} {getattr(self, limit)}"
                )
        if (self.tied or self.shared_embedding) and self.tgt_vocab_size not in (None, self.vocab_size):
            raise ValueError(
                f"{'tied' if self.tied else 'shared_embedding'} requires one vocabulary, got vocab_size "
                f"{self.vocab_size} and tgt_vocab_size {self.tgt_vocab_size}"
            )
        if self.tied and self.shared_embedding is False:
            raise ValueError("tied requires one embedding, got tied True and shared_embedding False")
        for name, default in FAMILIES[self.family].items():
            if name not in SUPPORTED_OPTIONS | ALWAYS_SET_OPTIONS and getattr(self, name) == default:
                object.__setattr__(self, name, None)

    def __repr__(self):
        set_fields = {name: value for name, value in vars(self).items() if value is not None}
        defaults = {**FAMILIES[self.family], "bias": self.family != "llama"}
        return f"ModelShape({', '.join(f'{k}={v!r}' for k, v in set_fields.items() if defaults.get(k) is not v)})"

    @classmethod
    def from_config(cls, config: dict) -> "ModelShape":
        """Return the shape of a published model from its ``config.json``.

        The counted models, with their names in the ``transformers`` library, are: an encoder with its pooler and
        without a head (``BertModel`` and similar classes); a decoder with its head (``…ForCausalLM``), where a tied
        head counts once; an encoder and a decoder with their head (``…ForConditionalGeneration``).

        Parameters
        ----------
        config : dict
            The configuration as ``json.load`` returns it.

        Returns
        -------
        ModelShape

        Raises
        ------
        TypeError
            If ``config`` is not a dict.
        ValueError
            If the ``model_type`` is unknown, a key is missing or unknown, or a value cannot be counted exactly: the
            error names the key.

        Examples
        --------
        >>> config = {"model_type": "qwen3", "hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 32}
        >>> config |= {"num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 9728, "vocab_size": 151936}
        >>> config |= {"tie_word_embeddings": True}
        >>> count_parameters(ModelShape.from_config(config))
        4022468096
        """
        from .config import shape_fields  # config.py imports this module

        fields, keys = shape_fields(config)
        try:
            return cls(**fields)
        except ValueError as error:  # the error names fields, but the caller knows only the keys
            message = re.sub(r"[a-z_]+", lambda word: keys.get(word[0], word[0]), str(error))
            raise ValueError(f"config cannot be counted: {message}") from None


def _canonical_biases(bias):
    """Return the biases in canonical form: True, False, or a tuple in the order of BIAS_PARTS."""
    if isinstance(bias, (list, tuple)) and all(isinstance(part, str) for part in bias):
        for part in bias:
            require_one_of(BIAS_PARTS, bias=part)
        bias = tuple(part for part in BIAS_PARTS if part in bias)
        return bias if bias not in ((), BIAS_PARTS[:-1]) else bool(bias)
    require_flags(bias=bias)
    return bias


def has_bias(shape: ModelShape, part: str) -> bool:
    """Whether the linear maps or norms of ``part``, one of BIAS_PARTS, add a bias."""
    if isinstance(shape.bias, tuple):
        return part in shape.bias
    return shape.bias and part != "head"


def learns_positions(shape: ModelShape) -> bool:
    """Whether the model has a table of positions."""
    return shape.family in ("bert", "gpt2") or bool(shape.learned_positions)


def has_final_norm(shape: ModelShape) -> bool:
    """Whether a norm follows each stack: ``final_norm`` of the shape, or the family's default if that is None."""
    return shape.family in ("gpt2", "llama") if shape.final_norm is None else shape.final_norm


def is_gated(shape: ModelShape) -> bool:
    """Whether feed-forward layers have a gate."""
    return bool(shape.gated)


def head_features(shape: ModelShape) -> int:
    """Return how many features each head has."""
    return shape.d_head or shape.d_model // shape.n_heads


def query_features(shape: ModelShape) -> int:
    """Return how many features a token's queries have in all heads together: ``d_model``, unless ``d_head`` is set."""
    return head_features(shape) * shape.n_heads


def key_features(shape: ModelShape) -> int:
    """Return how many features a token's keys (or values) have in all heads together: ``d_kv`` in the tables."""
    return head_features(shape) * (shape.n_kv_heads or shape.n_heads)


def unsupported_options(shape: ModelShape) -> list[str]:
    """Return the options of the shape that the layers of this package do not support."""
    used_options = [
        name for name in FAMILIES[shape.family] if name not in SUPPORTED_OPTIONS and getattr(shape, name) is not None
    ]
    if "gated" in used_options and (shape.family == "llama" or not shape.gated):
        used_options.remove("gated")
    return used_options + ["d_head"] * (shape.d_head is not None) + ["bias"] * isinstance(shape.bias, tuple)


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
        Every parameter of a module counts once, however often it is used, and even if it is frozen; buffers do not
        count.

    Raises
    ------
    TypeError
        If the argument is neither a shape nor a module.

    References
    ----------
    Devlin et al., "BERT", 2019, section 3, for the rounded numbers. Radford et al., "Language Models are Unsupervised
    Multitask Learners", 2019, table 2, whose numbers differ from those of the published weights.

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

    For a shape, with ``L = n_layers``, ``vocab = vocab_size``, and ``d_kv`` for the number of features of all key
    heads, ``n_kv_heads * d_head``, the numbers are:

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

    The rule of thumb ``12·L·d_model² + vocab·d_model`` is the sum of three rows: token embedding, attention weights and
    feed-forward weights. The number of heads matters only if heads share keys: ``d_kv`` is then less than ``d_model``.

    Parameters
    ----------
    shape_or_module : ModelShape or torch.nn.Module
        The parameters of a module are assigned to components by the classes and names of the modules that contain them.
        Modules of this package, of PyTorch and of well-known models are recognized.

    Returns
    -------
    dict of str to int
        In the order of the table. The numbers add up to :func:`count_parameters`; a component without parameters is
        left out. Parameters of other components, and parameters whose component is unknown, come last, each under its
        name: ``"other: encoder.convolution"``. Numbered layers share a name.

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
    >>> parameter_breakdown(nn.ModuleDict({"stem": nn.Conv1d(3, 8, 5), "norm": nn.LayerNorm(8)}))
    {'norms': 16, 'other: stem': 128}
    """
    if isinstance(shape_or_module, ModelShape):
        return {component: number for component, number in _shape_breakdown(shape_or_module).items() if number}
    if isinstance(shape_or_module, nn.Module):
        return count_by_component(shape_or_module)
    raise TypeError(
        f"shape_or_module must be a ModelShape, such as tl.GPT2, or a torch.nn.Module, got {type_name(shape_or_module)}"
    )


def active_parameters(shape: ModelShape) -> int:
    """Return how many parameters one token uses: all except the parameters of experts that do not process the token.

    Parameters
    ----------
    shape : ModelShape

    Returns
    -------
    int
        :func:`count_parameters`, minus the parameters of ``n_experts - experts_per_token`` experts in each layer.

    Raises
    ------
    TypeError
        If ``shape`` is not a ModelShape.

    References
    ----------
    Jiang et al., "Mixtral of Experts", 2024, section 2.1.

    Examples
    --------
    >>> from dataclasses import replace
    >>> mixtral = replace(LLAMA3_8B, vocab_size=32000, n_experts=8, experts_per_token=2)
    >>> f"{active_parameters(mixtral) / 1e9:.1f} of {count_parameters(mixtral) / 1e9:.1f} billion"
    '12.9 of 46.7 billion'
    """
    if not isinstance(shape, ModelShape):
        raise TypeError(f"shape must be a ModelShape, such as tl.GPT2, got {type_name(shape)}")
    n_idle_experts = (shape.n_experts or 0) - (shape.experts_per_token or 0)
    weights, biases = _feed_forward_parameters(shape, shape.d_expert or shape.d_ff)
    return count_parameters(shape) - shape.n_layers * n_idle_experts * (weights + biases)


def _feed_forward_parameters(shape, d_ff):
    """Return how many weights and how many biases a feed-forward layer with ``d_ff`` features has."""
    d_inner = (1 + is_gated(shape)) * d_ff
    return shape.d_model * (d_inner + d_ff), (d_inner + shape.d_model) * has_bias(shape, "feed-forward")


def _parameters_per_norm_feature(shape):
    """Return how many parameters a norm has for each feature."""
    norm = shape.norm or FAMILIES[shape.family].get("norm", "layer")
    if norm == "unlearned":
        return 0
    return 1 if norm == "rms" else 1 + has_bias(shape, "norms")


def _shape_breakdown(shape):
    """Return the table of :func:`parameter_breakdown`."""
    n_stacks = 2 if shape.family == "transformer" else 1
    n_layers = 1 if shape.shared_layers and shape.n_layers else shape.n_layers
    n_attentions, n_feed_forwards = n_layers * (2 * n_stacks - 1), n_layers * n_stacks
    d_queries, d_keys, d_model = query_features(shape), key_features(shape), shape.d_model
    weights, biases = _feed_forward_parameters(shape, shape.d_ff)
    router_weights = 0
    if shape.n_experts:
        expert_weights, expert_biases = _feed_forward_parameters(shape, shape.d_expert or shape.d_ff)
        shared_weights, shared_biases = (
            _feed_forward_parameters(shape, shape.d_shared_expert) if shape.d_shared_expert else (0, 0)
        )
        weights = shape.n_experts * expert_weights + shared_weights
        biases = shape.n_experts * expert_biases + shared_biases
        router_weights = d_model * (shape.n_experts + bool(shape.shared_expert_gate))
    d_embedding = shape.d_embedding or d_model
    tgt_vocab_size = shape.tgt_vocab_size or shape.vocab_size
    has_tgt_embedding = n_stacks == 2 and not (shape.tied if shape.shared_embedding is None else shape.shared_embedding)
    has_head = shape.family != "bert" and not shape.tied
    # A decoder layer of a "transformer" has a third norm; the norm of an embedding has the embedding's width.
    n_norms = n_layers * (5 if n_stacks == 2 else shape.norms_per_layer or 2) + n_stacks * has_final_norm(shape)
    n_embedding_norms = n_stacks * (shape.family == "bert" or bool(shape.embedding_norm))
    norm_parameters = (n_norms * d_model + n_embedding_norms * d_embedding) * _parameters_per_norm_feature(shape)
    if shape.qk_norm:
        norm_parameters += n_layers * (d_queries + d_keys if shape.qk_norm == "all" else 2 * head_features(shape))
    position_weights = n_stacks * learns_positions(shape) and n_stacks * shape.n_positions * d_embedding
    return {
        "token embedding": (shape.vocab_size + has_tgt_embedding * tgt_vocab_size) * d_embedding,
        "position embedding": position_weights + n_stacks * (shape.n_relative or 0) * shape.n_heads,
        "segment embedding": (shape.n_segments or 0) * d_embedding,
        "embedding projection": (d_embedding + 1) * d_model if shape.d_embedding else 0,
        "attention weights": n_attentions * d_model * 2 * (d_queries + d_keys),
        "attention biases": n_attentions
        * ((d_queries + 2 * d_keys) * has_bias(shape, "qkv") + d_model * has_bias(shape, "output")),
        "router": n_layers * router_weights,
        "feed-forward weights": n_feed_forwards * weights,
        "feed-forward biases": n_feed_forwards * biases,
        "norms": norm_parameters,
        "pooler": bool(shape.pooler) * d_model * (d_model + has_bias(shape, "output")),
        "output head": has_head * tgt_vocab_size * d_model + has_bias(shape, "head") * tgt_vocab_size,
    }
