"""Labs: live figures to play with, in a notebook and in the published page."""

from .broadcasting import BroadcastingLab
from .lookup import LookupLab
from .strides import StridesLab

__all__ = ["BroadcastingLab", "LookupLab", "StridesLab"]
