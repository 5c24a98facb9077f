"""Labs: live figures to play with in a notebook and on the published pages."""

from .broadcasting import BroadcastingLab
from .budget import BudgetLab
from .experts import ExpertsLab
from .heads import HeadsLab
from .influence import InfluenceLab
from .lookup import LookupLab
from .masks import MaskLab
from .normalization import NormalizationLab
from .order import OrderLab
from .practice import Practice
from .sampling import SamplingLab
from .split import SplitLab
from .strides import StridesLab
from .whole import WholeLab

__all__ = [
    "BroadcastingLab",
    "BudgetLab",
    "ExpertsLab",
    "HeadsLab",
    "InfluenceLab",
    "LookupLab",
    "MaskLab",
    "NormalizationLab",
    "OrderLab",
    "Practice",
    "SamplingLab",
    "SplitLab",
    "StridesLab",
    "WholeLab",
]
