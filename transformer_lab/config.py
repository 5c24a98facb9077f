"""Read the published ``config.json`` of a model as the fields of a ModelShape.

Every key of a configuration sets a field, is known to change no count, or raises an error. A key may have a rule in the
table of its model type (``config_models.py``); keys without a rule must be in ``NEUTRAL_KEYS``.
"""

from typing import Any

from .arguments import did_you_mean, format_value, is_integer, type_name
from .config_models import CLASS_ENDINGS, MODELS, NEUTRAL_KEYS


def shape_fields(config: dict) -> tuple[dict, dict]:
    """Return the fields of a ModelShape that a configuration sets, and the key from which each field is read."""
    if not isinstance(config, dict):
        raise TypeError(f"config must be a dict, as json.load returns it, got {type_name(config)}")
    model_type = config.get("model_type")
    if "model_type" not in config:
        raise ValueError("config has no model_type: the key that names the architecture, such as 'llama'")
    if not isinstance(model_type, str) or model_type not in MODELS:
        suggestion = did_you_mean(model_type, MODELS) if isinstance(model_type, str) else ""
        raise ValueError(
            f"config's model_type must be one of {', '.join(sorted(MODELS))}, "
            f"got {format_value(model_type)}{suggestion}"
        )
    model = MODELS[model_type]
    config = _without_aliases(config, model.aliases or {})
    _require_standard_classes(config, model_type)
    for key, value in config.items():
        if key not in model.keys and key not in NEUTRAL_KEYS and key not in ("architectures", "auto_map"):
            raise ValueError(
                f"config's {key} is not known for model_type {model_type!r}, got {format_value(value)}: leave it out "
                "if it changes no count"
            )
    fields: dict[str, Any] = {"family": model.family, **model.fixed}
    keys: dict[str, str] = {}
    for key, rule in model.keys.items():
        if key not in config and "default" not in rule:
            raise ValueError(f"config has no {key}, which model_type {model_type!r} needs")
        key_fields = _READERS[rule["read"]](rule, key, config.get(key, rule.get("default")))
        keys |= dict.fromkeys(key_fields, key)
        if "bias" in key_fields:
            key_fields = {"bias": (*fields.get("bias", ()), *key_fields["bias"])}
        fields |= key_fields
    for first_key, second_key in model.same:
        if config.get(second_key) is not None and config[second_key] != config[first_key]:
            refuse(
                second_key,
                config[second_key],
                f"equal to {first_key}, {format_value(config[first_key])}, to be counted",
            )
    for conditions, changes in model.cases:
        values = {key: config.get(key, model.keys[key]["default"]) for key in conditions}
        if values == conditions:
            fields |= changes
    _require_counted_classes(config, fields)
    return _resolve_helper_fields(fields), keys


def refuse(key, value, rule):
    """Raise the error for a value that cannot be counted."""
    raise ValueError(f"config's {key} must be {rule}, got {format_value(value)}")


def _without_aliases(config, aliases):
    """Rename each key that the configuration contains under an alias."""
    renamed = {}
    for key, value in config.items():
        name = aliases.get(key, key)
        if renamed.setdefault(name, value) != value:
            pair = f"{format_value(value)} and {format_value(renamed[name])}"
            raise ValueError(f"config's {key} and {name} must be the same, got {pair}")
    return renamed


def _require_standard_classes(config, model_type):
    """Refuse a model with custom code, unless the names of its classes begin with its model type."""
    code = config.get("auto_map")
    if code is None:
        return
    if not isinstance(code, dict):
        refuse("auto_map", code, "a dict")
    for key, value in code.items():
        is_own_class = _letters_only(str(value).rsplit(".", 1)[-1]).startswith(_letters_only(model_type))
        if key.startswith("AutoModel") and not is_own_class:
            refuse(f"auto_map.{key}", value, f"a class of model_type {model_type!r}: other code may count differently")


def _letters_only(name):
    return name.replace("_", "").replace("-", "").lower()


def _require_counted_classes(config, fields):
    """Refuse a model whose head is not the head that is counted. A file may name several classes of one model."""
    architectures = config.get("architectures")
    if architectures is None:
        return
    if not isinstance(architectures, list) or not all(isinstance(name, str) for name in architectures):
        refuse("architectures", architectures, "a list of names")
    class_endings = CLASS_ENDINGS[fields["family"]]
    counted_endings, headless_endings = class_endings["counted"], class_endings["alone"]
    endings = " or ".join(counted_endings)
    if not architectures or any(name.endswith(tuple(counted_endings)) for name in architectures):
        return
    if not any(name.endswith(tuple(headless_endings)) for name in architectures):
        refuse("architectures", architectures, f"a name that ends in {endings} to be counted")
    if fields.get("tied") is False:
        refuse("architectures", architectures, f"a name that ends in {endings} where the head is not tied")


def _resolve_helper_fields(fields):
    """Replace fields such as ``expansion`` with the fields of a ModelShape that follow from them."""
    n_layers, d_model = fields["n_layers"], fields["d_model"]
    for name in [name for name, value in fields.items() if value is None]:
        del fields[name]
    if "expansion" in fields:
        fields["d_ff"] = fields.pop("expansion") * d_model
    d_embedding = fields.pop("d_embedding_unless_equal", d_model)
    if d_embedding != d_model:
        fields["d_embedding"] = d_embedding  # a linear map then follows the embedding
    key, n_named = fields.pop("named_layers", ("", n_layers))
    if n_named != n_layers:
        raise ValueError(f"config's {key} must name {n_layers} layers, got {n_named}")
    fields = _count_window_layers(fields, n_layers)
    if fields.get("d_head") and fields["d_head"] * fields["n_heads"] == d_model:
        del fields["d_head"]  # the default of ModelShape
    return fields


def _count_window_layers(fields, n_layers):
    """Count the layers with a window (none if no window is set), and drop a window that no layer uses."""
    uses_window = fields.pop("uses_window", True)
    first_layer, full_every = fields.pop("first_window_layer", None), fields.pop("full_every", None)
    if not uses_window and fields.get("n_window_layers"):
        refuse("use_sliding_window", False, "true where layer_types has sliding_attention")
    if "window" in fields and first_layer is not None:
        fields.setdefault("n_window_layers", max(0, n_layers - first_layer))
    elif "window" in fields and full_every is not None:
        fields.setdefault("n_window_layers", n_layers - n_layers // full_every)
    if "window" not in fields and fields.get("n_window_layers"):
        raise ValueError("config's sliding_window must be an integer where layer_types has sliding_attention")
    if not uses_window or "window" not in fields or fields.get("n_window_layers") == 0:
        fields.pop("window", None)
        fields.pop("n_window_layers", None)
    return fields


def _read_size(rule, key, value):
    minimum = rule.get("least", 1)
    if value is None and rule.get("null"):
        return {}
    if not is_integer(value) or value < minimum:
        refuse(key, value, f"an integer, at least {minimum}")
    return {rule["field"]: int(value) + rule.get("more", 0)}


def _read_switch(rule, key, value):
    if type(value) is not bool:
        refuse(key, value, "true or false")
    return rule["on"] if value else rule.get("off", {})


def _read_only_values(rule, key, value):
    if not any(type(value) is type(allowed) and value == allowed for allowed in rule["values"]):
        refuse(key, value, f"{' or '.join(map(repr, rule['values']))} to be counted")
    return {}


def _read_noted(rule, key, value):
    return {}


def _read_gate(rule, key, value):
    if not isinstance(value, str) or value.startswith("gated") != value.startswith("gated-"):
        refuse(key, value, "the name of an activation, such as 'relu' or 'gated-gelu'")
    return {"gated": value.startswith("gated-")}


def _read_layers(rule, key, value):
    if value is None:
        return {}
    if not isinstance(value, list) or not all(name in (rule["local"], rule["full"]) for name in value):
        refuse(key, value, f"a list of {rule['local']!r} and {rule['full']!r}")
    return {"n_window_layers": value.count(rule["local"]), "named_layers": (key, len(value))}


def _read_repeated_layers(rule, key, value):
    names = [rule["local"], rule["full"]]
    for pair in value if isinstance(value, list) else [None]:
        fits = isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], list) and is_integer(pair[1])
        if not fits or not all(name in names for name in pair[0]):
            refuse(key, value, f"pairs: a list of {names[0]!r} and {names[1]!r}, and how often the list repeats")
    n_local = sum(max(0, times) * group.count(rule["local"]) for group, times in value)
    n_named = sum(max(0, times) * len(group) for group, times in value)
    return {"n_window_layers": n_local, "named_layers": (key, n_named)}


def _read_nested(rule, key, value):
    if not isinstance(value, dict):
        refuse(key, value, "a dict")
    required, neutral = rule["known"], {*NEUTRAL_KEYS, *rule["neutral"]}
    for name, item in value.items():
        if name not in neutral and not (name in required and item == required[name]):
            refuse(f"{key}.{name}", item, repr(required[name]) if name in required else "left out to be counted")
    return {}


_READERS = {
    "size": _read_size,
    "switch": _read_switch,
    "only": _read_only_values,
    "noted": _read_noted,
    "gate": _read_gate,
    "layers": _read_layers,
    "layers repeated": _read_repeated_layers,
    "inside": _read_nested,
}
