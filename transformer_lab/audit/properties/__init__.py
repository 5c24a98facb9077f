"""The properties that every Transformer of a given kind must have.

Each property is a function that answers one question about the model of a `Trial`.

A property that does not hold raises `Fails` with the smallest example; a property that cannot be tried raises
`NotTried` with the reason. To add a property, write a function with `@audit_property(name)` in the file that contains
similar properties.
"""

# The card lists the properties in the order of these imports.
# isort: off
from . import copies, moves, parts, modes, losses, weights, sources
from .registry import NEEDS, PROPERTIES

__all__ = ["NEEDS", "PROPERTIES", "copies", "losses", "modes", "moves", "parts", "sources", "weights"]
