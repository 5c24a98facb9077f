"""The budget lab: what a model of a given shape costs, in parameters, FLOPs and memory."""

import json
from dataclasses import asdict, fields, replace
from functools import cache

import traitlets

from ..arguments import is_integer, type_name
from ..compute import flops_breakdown, kv_cache_bytes, memory_breakdown, weight_bytes
from ..config_models import CLASS_ENDINGS, MODELS, NEUTRAL_KEYS
from ..parameters import (
    ALWAYS_SET_OPTIONS,
    BERT_BASE,
    BERT_LARGE,
    BIAS_PARTS,
    FAMILIES,
    GPT2,
    GPT2_LARGE,
    GPT2_MEDIUM,
    GPT2_XL,
    SMOLLM2_135M,
    SUPPORTED_OPTIONS,
    ModelShape,
    parameter_breakdown,
    unsupported_options,
)
from .lab import Lab, as_integer, as_option, script, style

# The smallest and largest valid values.
RANGES = {
    "n_layers": (1, 128),
    "d_model": (1, 16_384),
    "n_heads": (1, 16_384),
    "d_ff": (1, 131_072),
    "vocab_size": (1, 262_144),
    "n_positions": (1, 1_048_576),
    "n_segments": (0, 64),
    "n_kv_heads": (1, 16_384),
    "n_window_layers": (0, 128),
    "seq": (1, 1_048_576),
    "batch": (1, 1024),
}
DEFAULT_RANGE = (0, 1_048_576)
BYTES_PER_VALUE = (4, 2)
QUANTITIES = ("parameters", "flops", "training", "generation")
# For each preset: a key for URLs, a label, the name in the package, the shape, the number of parameters in the
# published weights, and the number of parameters in the paper: for BERT in section 3, for GPT-2 in table 2, for SmolLM2
# in the title.
PRESETS = (
    ("bert-base", "BERT-base", "BERT_BASE", BERT_BASE, 109_482_240, "110 M"),
    ("bert-large", "BERT-large", "BERT_LARGE", BERT_LARGE, 335_141_888, "340 M"),
    ("gpt2", "GPT-2 small", "GPT2", GPT2, 124_439_808, "117 M"),
    ("gpt2-medium", "GPT-2 medium", "GPT2_MEDIUM", GPT2_MEDIUM, 354_823_168, "345 M"),
    ("gpt2-large", "GPT-2 large", "GPT2_LARGE", GPT2_LARGE, 774_030_080, "762 M"),
    ("gpt2-xl", "GPT-2 XL", "GPT2_XL", GPT2_XL, 1_557_611_200, "1542 M"),
    ("smollm2-135m", "SmolLM2 135M", "SMOLLM2_135M", SMOLLM2_135M, 134_515_008, "135 M"),
)
SHAPE_CODES = {shape: code for _, _, code, shape, _, _ in PRESETS}


def _setting(shape, seq, batch, bytes_per_value):
    return {"shape": asdict(shape), "seq": seq, "batch": batch, "bytes_per_value": bytes_per_value}


def _preset_table():
    """Return the presets for the browser, each with its full context, one sequence and 4 bytes per value."""
    columns = ("key", "name", "code", "setting", "published", "paper")
    return [
        dict(zip(columns, (key, name, code, _setting(shape, shape.n_positions, 1, 4), published, paper)))
        for key, name, code, shape, published, paper in PRESETS
    ]


@cache
def _config_tables():
    """Return the rules by which the browser reads a configuration. Keys refer to rules by number, since many keys
    share a rule."""
    rules = {}  # rule as JSON, in which 1 and True differ → number of the rule
    models = {}
    for name, model in MODELS.items():
        keys = {key: rules.setdefault(json.dumps(rule), len(rules)) for key, rule in model.keys.items()}
        models[name] = {**model._asdict(), "keys": keys}
    return {
        "models": models,
        "rules": [json.loads(rule) for rule in rules],
        "neutral": sorted(NEUTRAL_KEYS),
        "classes": CLASS_ENDINGS,
        "fields": [field.name for field in fields(ModelShape)],
        "families": FAMILIES,
        "own": sorted(SUPPORTED_OPTIONS),
        "always": sorted(ALWAYS_SET_OPTIONS),
        "places": BIAS_PARTS,
    }


def _require_supported_shape(shape):
    """Return the shape, or raise an error if the lab does not support it."""
    if not isinstance(shape, ModelShape):
        raise TypeError(f"shape must be a ModelShape, or the dict of a config.json, got {type_name(shape)}")
    if shape.family == "llama" and shape.n_kv_heads is None:
        shape = replace(shape, n_kv_heads=shape.n_heads)
    for name, size in vars(shape).items():
        least, most = RANGES.get(name, DEFAULT_RANGE)
        if is_integer(size) and not least <= size <= most:
            raise ValueError(f"shape must have {name} from {least} to {most}, got {size}")
    return shape


_QUOTED_PRESET_KEYS = ", ".join(f'``"{key}"``' for key, *_ in PRESETS)


def _limit(name):
    return f"{RANGES[name][1]:,}"


class BudgetLab(Lab):
    __doc__ = f"""Change the shape of a model, and see its exact cost in parameters, FLOPs and memory.

    Parameters
    ----------
    shape : ModelShape or dict
        A dict is read as a published ``config.json``. The largest values are {_limit("n_layers")} layers, ``d_model``
        {_limit("d_model")}, ``d_ff`` {_limit("d_ff")}, {_limit("vocab_size")} different tokens and
        {_limit("n_positions")} positions.
    seq : int, optional
        The number of tokens in a sequence, up to {_limit("seq")}. The default is the model's ``n_positions``, or
        512 if ``n_positions`` is None. In the family ``"transformer"``, source and target both have this length.
    batch : int, optional
        The number of sequences, up to {_limit("batch")}.
    bytes_per_value : {{4, 2}}, optional
    base : str or dict, optional
        The base of the comparison: {_QUOTED_PRESET_KEYS}, each with its full context, one sequence and 4 bytes per
        value, or ``"start"``, the initial state of the lab. A dict is read as a published ``config.json``, and its
        model uses the context, batch and bytes of the lab. If the initial state is a preset, the default is a
        small model of a different family; otherwise, the default is ``"start"``.
    quantity : {{"parameters", "flops", "training", "generation"}}, optional
        The quantity whose components the table lists.
    controls : sequence of str, optional
        The groups of controls to show beside the bars: any of ``"presets"``, ``"sliders"``, ``"table"`` and
        ``"config"``; all when left out.

    Attributes
    ----------
    shape, seq, batch, bytes_per_value, base, quantity
        What the reader has set.
    config, base_config : str
        The configurations that the reader has pasted, for the model and for the base: JSON of the keys that affect the
        shape, or an empty string.
    parameters, flops, training_memory, generation_memory : dict of str to int
        The model's costs, component by component: parameters; FLOPs of a forward pass; bytes of a training step with
        Adam, without activations if this package's layers differ from the model's; bytes of weights and key–value
        cache.

    Examples
    --------
    >>> from transformer_lab import GPT2
    >>> lab = BudgetLab(GPT2, seq=512)
    >>> lab
    BudgetLab(GPT2, seq=512, batch=1, bytes_per_value=4)
    >>> lab.parameters["position embedding"], lab.flops["scores and blend"]
    (786432, 9663676416)
    """

    _esm = script(
        "budget_counts",
        "budget_json",
        "budget_config",
        "budget_settings",
        "budget_words",
        "budget_known",
        "budget_address",
        "budget",
    )
    _css = style("budget")

    shape = traitlets.Any().tag(  # of type Any, so that the validators below raise the package's own errors
        sync=True, to_json=lambda shape, _: shape and asdict(shape), from_json=lambda fields, _: ModelShape(**fields)
    )
    seq = traitlets.Any().tag(sync=True)
    batch = traitlets.Any().tag(sync=True)
    bytes_per_value = traitlets.Any().tag(sync=True)
    base = traitlets.Any().tag(sync=True)
    quantity = traitlets.Any().tag(sync=True)
    config = traitlets.Unicode("").tag(sync=True)
    base_config = traitlets.Unicode("").tag(sync=True)
    presets = traitlets.List(_preset_table()).tag(sync=True)
    limits = traitlets.Dict({**RANGES, "bytes_per_value": (min(BYTES_PER_VALUE), max(BYTES_PER_VALUE))}).tag(sync=True)
    start = traitlets.Dict().tag(sync=True)  # the initial state
    tables = traitlets.Dict().tag(sync=True)  # empty if no configuration can be pasted

    groups = ("presets", "sliders", "table", "config")

    def __init__(
        self, shape=GPT2, seq=None, batch=1, *, bytes_per_value=4, base=None, quantity="parameters", controls=None
    ):
        if isinstance(shape, dict):
            shape = ModelShape.from_config(shape)
        shape = _require_supported_shape(shape)
        seq = (shape.n_positions or 512) if seq is None else seq
        super().__init__(
            shape=shape,
            seq=seq,
            batch=batch,
            bytes_per_value=bytes_per_value,
            base_config=json.dumps(base) if isinstance(base, dict) else "",
            base="other" if isinstance(base, dict) else "start" if base is None else base,
            quantity=quantity,
            controls=controls,
        )
        setting = _setting(shape, seq, batch, bytes_per_value)
        if base is None and any(preset["setting"] == setting for preset in self.presets):
            self.base = "bert-base" if shape.family == "gpt2" else "gpt2"
        self.tables = _config_tables() if "config" in self.controls or self.base_config else {}
        self.start = {
            **setting,
            "base": self.base,
            "quantity": quantity,
            "config": self.config,
            "base_config": self.base_config,
        }

    @traitlets.validate("shape")
    def _check_shape(self, proposal):
        return _require_supported_shape(proposal.value)

    @traitlets.validate("config", "base_config")
    def _check_config(self, proposal):
        if proposal.value:
            _require_supported_shape(ModelShape.from_config(json.loads(proposal.value)))
        return proposal.value

    @traitlets.validate("seq", "batch")
    def _check_size(self, proposal):
        return as_integer(proposal.trait.name, proposal.value, *RANGES[proposal.trait.name])

    @traitlets.validate("bytes_per_value", "base", "quantity")
    def _check_choice(self, proposal):
        keys = (*(key for key, *_ in PRESETS), "start", *(["other"] if self.base_config else []))
        options = {"bytes_per_value": BYTES_PER_VALUE, "base": keys, "quantity": QUANTITIES}
        return as_option(proposal.trait.name, proposal.value, options[proposal.trait.name])

    @property
    def parameters(self):
        return parameter_breakdown(self.shape)

    @property
    def flops(self):
        return flops_breakdown(self.shape, self.seq, self.batch)

    @property
    def training_memory(self):
        if not unsupported_options(self.shape):
            return memory_breakdown(self.shape, self.seq, self.batch, self.bytes_per_value)
        weights = weight_bytes(self.shape, self.bytes_per_value)
        memory = {"weights": weights, "gradients": weights, "optimizer state": 2 * weights}
        if self.shape.family != "bert":
            vocab_size = self.shape.tgt_vocab_size or self.shape.vocab_size
            memory["log-probabilities"] = self.batch * self.seq * vocab_size * self.bytes_per_value
        return memory

    @property
    def generation_memory(self):
        memory = {"weights": weight_bytes(self.shape, self.bytes_per_value)}
        if self.shape.family != "bert":
            memory["key–value cache"] = kv_cache_bytes(self.shape, self.seq, self.batch, self.bytes_per_value)
        return memory

    def __repr__(self):
        settings = ", ".join(f"{name}={getattr(self, name)}" for name in ("seq", "batch", "bytes_per_value"))
        return f"BudgetLab({SHAPE_CODES.get(self.shape, self.shape)}, {settings})"
