"""What every Transformer of its kind must satisfy: each property is a function that asks one question of a `Trial`.

A property that does not hold raises `Fails` with the smallest example; one that cannot be asked raises `NotTried` and
says why. To add one, write a function with `@audit_property(name)` in the file of its kind.
"""

# The card lists the properties in the order of these imports.
# isort: off
from . import copies, moves, parts, modes, losses, weights, sources
from .registry import NEEDS, PROPERTIES

__all__ = ["NEEDS", "PROPERTIES", "copies", "losses", "modes", "moves", "parts", "sources", "weights"]
