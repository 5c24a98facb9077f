"""The components of a model, and how classes and names sort a module's parameters into these components."""

from torch import nn

# The components in the order in which a token passes through them. A tied matrix counts as the first component that
# uses it.
COMPONENTS = (
    "token embedding",
    "position embedding",
    "segment embedding",
    "embedding projection",
    "attention weights",
    "attention biases",
    "router",
    "feed-forward weights",
    "feed-forward biases",
    "norms",
    "pooler",
    "output head",
)
OTHER_PREFIX = "other: "  # followed by the name of the module, or parameter, that belongs to no component
# Parts of the class names of feed-forward layers in this package, GPT-2, DistilBERT, T5, BERT, timm, CS336 and
# nanoGPT's lecture (FeedFoward).
FEED_FORWARD = ("FeedForward", "FeedFoward", "MLP", "Mlp", "FFN", "LayerFF", "Intermediate", "GLU")
# Names of feed-forward layers, and of their linear maps where the whole layer contains them directly (PyTorch, OPT,
# BART).
FEED_FORWARD_NAMES = ("mlp", "ffn", "ffwd", "ff", "feed_forward", "feedforward", "linear1", "linear2", "fc1", "fc2")
HEAD_NAMES = ("output", "head", "lm_head", "embed_out", "decoder")


def of_module(module: nn.Module) -> dict[str, int]:
    """Count parameters by component, in order. A shared parameter counts as the first component that uses it.

    Parameters without a component come last, by name; numbered layers share a name.
    """
    holders = {}  # parameter → the components that use it
    _visit(module, [], None, holders)
    counts = dict.fromkeys(COMPONENTS, 0)
    for parameter in module.parameters():  # each parameter once, even if it is tied
        component = min(holders[parameter], key=lambda name: COMPONENTS.index(name) if name in COMPONENTS else 99)
        counts[component] = counts.get(component, 0) + parameter.numel()
    return {component: number for component, number in counts.items() if number}


def _visit(module, path, part, holders):
    part = _classify(module, path[-1] if path else "", part)
    for name, parameter in module.named_parameters(recurse=False):
        component = part or ("position embedding" if name.startswith("pos") else _other(module, [*path, name]))
        if part in ("attention", "feed-forward"):
            component = f"{part} biases" if name.endswith("bias") else f"{part} weights"
        holders.setdefault(parameter, []).append(component)
    for name, child in module.named_children():
        _visit(child, [*path, name], part, holders)


def _other(module, path):
    """Name a parameter without a component: its path without layer numbers, or the class of a single module."""
    words = [word for word in path if not word.isdigit()]
    place = words[:-1] if len(words) > 1 and words[-1] in ("weight", "bias") else words
    return OTHER_PREFIX + (type(module).__name__ if place in (["weight"], ["bias"]) else ".".join(place))


def _classify(module, name, part):
    """Return a module's component by its class and name, or else ``part``, the component of its container."""
    kind = type(module).__name__
    if "Norm" in kind:
        return "norms"
    if any(word in kind for word in FEED_FORWARD) or name in FEED_FORWARD_NAMES:
        return "feed-forward"
    if part == "attention" and isinstance(module, nn.Sequential) and _linear_maps(module) > 1:
        return "feed-forward"  # in a block that is named after its attention
    if "Attention" in kind and not _holds_attention(module):
        return "attention"
    if part is None and kind.endswith("Output") and not _is_linear(module):
        return "feed-forward"  # BertOutput; BertSelfOutput is inside the attention
    if part is None and "Embedding" in kind and next(module.parameters(recurse=False), None) is not None:
        if "pos" in name or name == "wpe":
            return "position embedding"
        return "segment embedding" if "segment" in name or "token_type" in name else "token embedding"
    if part is None and name == "pooler":
        return "pooler"
    if part is None and (kind == "Generator" or (_is_linear(module) and name in HEAD_NAMES)):
        return "output head"
    return part


def _is_linear(module):
    return isinstance(module, nn.Linear) or type(module).__name__.endswith("Linear")


def _linear_maps(module):
    return sum(_is_linear(part) for part in module.modules())


def _holds_attention(module):
    """Whether this is a layer around its attention, such as ``ResidualAttentionBlock`` or ``T5LayerSelfAttention``."""
    has_layer_name = any(word in type(module).__name__ for word in ("Block", "Layer"))
    inside = (part for part in module.modules() if part is not module)
    return has_layer_name and any("Attention" in type(part).__name__ for part in inside)
