"""Twenty published bugs, each with two small models: one with the bug, and one without it. ``BUGS`` maps names to bugs.

`small_model` defines the model, each part of which is a method; most bugs replace one of these methods. The modules
`masks`, `batches`, `positions`, `losses` and `modes` contain the bugs, each with its thread, its date and the story of
how it was noticed.

>>> from transformer_lab.bugs import BUGS
>>> BUGS["weak_mask"].thread, BUGS["weak_mask"].found_by
('karpathy/minGPT#75', 'the future, with loud weights')
"""

from importlib import import_module

from .bug import BUGS, Bug
from .small_model import SmallModel

FAMILIES = ("masks", "batches", "positions", "losses", "modes")
for _family in FAMILIES:  # in the order in which the course presents them
    import_module(f".{_family}", __name__)

__all__ = ["BUGS", "FAMILIES", "Bug", "SmallModel"]
