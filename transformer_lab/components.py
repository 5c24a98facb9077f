"""The components of a model, and the rules that assign parameters to components by the names of modules and classes."""

from torch import nn

# The components in the order in which a token passes through them. A tied matrix belongs to the first component that
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
FEED_FORWARD_CLASSES = ("FeedForward", "FeedFoward", "MLP", "Mlp", "FFN", "LayerFF", "Intermediate", "GLU")
# Names of feed-forward layers, and of their linear maps where a Transformer layer contains the maps directly (PyTorch,
# OPT, BART).
FEED_FORWARD_NAMES = ("mlp", "ffn", "ffwd", "ff", "feed_forward", "feedforward", "linear1", "linear2", "fc1", "fc2")
OUTPUT_HEAD_NAMES = ("output", "head", "lm_head", "embed_out", "decoder")


def count_by_component(module: nn.Module) -> dict[str, int]:
    """Count parameters by component, in the order of ``COMPONENTS``.

    A tied matrix is counted under the first component that uses it. Parameters without a component come last, each
    under its name; parameters of numbered layers share a name.
    """
    components_of = {}  # parameter → the components that use it
    _visit(module, [], None, components_of)
    counts = dict.fromkeys(COMPONENTS, 0)
    for parameter in module.parameters():  # each parameter once, even if it is tied
        component = min(components_of[parameter], key=lambda name: COMPONENTS.index(name) if name in COMPONENTS else 99)
        counts[component] = counts.get(component, 0) + parameter.numel()
    return {component: number for component, number in counts.items() if number}


def _visit(module, path, module_component, components_of):
    """Add the component of each parameter of the module, and of the modules inside it, to ``components_of``."""
    module_component = _classify(module, path[-1] if path else "", module_component)
    for name, parameter in module.named_parameters(recurse=False):
        fallback_component = "position embedding" if name.startswith("pos") else _other_component(module, [*path, name])
        component = module_component or fallback_component
        if module_component in ("attention", "feed-forward"):
            component = f"{module_component} biases" if name.endswith("bias") else f"{module_component} weights"
        components_of.setdefault(parameter, []).append(component)
    for name, child in module.named_children():
        _visit(child, [*path, name], module_component, components_of)


def _other_component(module, path):
    """Name a parameter that has no component, by its path without layer numbers or by its module's class."""
    names = [name for name in path if not name.isdigit()]
    module_path = names[:-1] if len(names) > 1 and names[-1] in ("weight", "bias") else names
    return OTHER_PREFIX + (type(module).__name__ if module_path in (["weight"], ["bias"]) else ".".join(module_path))


def _classify(module, name, inherited_component):
    """Return a module's component, found by class and name, or else the component of its container."""
    class_name = type(module).__name__
    if "Norm" in class_name:
        return "norms"
    if any(word in class_name for word in FEED_FORWARD_CLASSES) or name in FEED_FORWARD_NAMES:
        return "feed-forward"
    if inherited_component == "attention" and isinstance(module, nn.Sequential) and _count_linear_maps(module) > 1:
        return "feed-forward"  # in a block that is named after its attention
    if "Attention" in class_name and not _contains_attention(module):
        return "attention"
    if inherited_component is not None:
        return inherited_component
    if class_name.endswith("Output") and not _is_linear(module):
        return "feed-forward"  # BertOutput; BertSelfOutput is inside the attention
    has_own_parameters = next(module.parameters(recurse=False), None) is not None
    if "Embedding" in class_name and has_own_parameters:
        if "pos" in name or name == "wpe":
            return "position embedding"
        return "segment embedding" if "segment" in name or "token_type" in name else "token embedding"
    if name == "pooler":
        return "pooler"
    if class_name == "Generator" or (_is_linear(module) and name in OUTPUT_HEAD_NAMES):
        return "output head"
    return None


def _is_linear(module):
    return isinstance(module, nn.Linear) or type(module).__name__.endswith("Linear")


def _count_linear_maps(module):
    return sum(_is_linear(submodule) for submodule in module.modules())


def _contains_attention(module):
    """Whether this is a layer that wraps attention, such as ``ResidualAttentionBlock`` or ``T5LayerSelfAttention``."""
    has_layer_name = any(word in type(module).__name__ for word in ("Block", "Layer"))
    submodules = (submodule for submodule in module.modules() if submodule is not module)
    return has_layer_name and any("Attention" in type(submodule).__name__ for submodule in submodules)
