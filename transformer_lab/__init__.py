"""The parts of a Transformer, small enough to read: the package of the course Transformer Lab.

    import transformer_lab as tl

One vocabulary names the axes of every tensor, in docstrings, errors, figures and chapters:

=========  ==========================================================================
word       the axis counts
=========  ==========================================================================
batch      independent examples
heads      attention heads, each with its own queries, keys and values
q_len      queries: the positions that look
k_len      keys (and values): the positions that are looked at
seq        positions of one sequence, where queries and keys are the same positions
d_model    features of a token as it travels from layer to layer
d_head     features of a query and of a key inside one head
d_value    features of a value inside one head
d_ff       features inside the feed-forward layer
=========  ==========================================================================

``True`` in a mask means *may attend*, everywhere.
"""

from importlib import import_module

from .attention import SingleHeadAttention, attention_weights, scaled_dot_product_attention, softmax
from .device import device
from .positions import sinusoidal_positions
from .tensors import layout, show

__all__ = [
    "SingleHeadAttention",
    "attention_weights",
    "device",
    "labs",
    "layout",
    "plots",
    "scaled_dot_product_attention",
    "show",
    "sinusoidal_positions",
    "softmax",
]

__version__ = "0.1.0"


def __getattr__(name):
    # matplotlib and the widgets load when first used, so that the import adds little to torch's own.
    if name in ("labs", "plots"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
