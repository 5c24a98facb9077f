"""The normalization lab: a cube of values, and the values that share a mean and a variance."""

import math
from dataclasses import asdict, dataclass

import torch
import traitlets

from ..arguments import format_value
from ..normalization import EPS, standardize
from .lab import Lab, as_option, as_tensor, script, style, tensor_trait

LARGEST_SHAPE = (4, 6, 6)
REACH = 100
MOVE_THRESHOLD = 0.001  # the smallest change that counts as a move


@dataclass(frozen=True)
class Norm:
    """One row of the lab's table of norms."""

    name: str  # for readers
    dims: tuple  # the axes of the statistics
    note: str  # for readers
    center: bool = True  # whether the mean is subtracted
    grouped: bool = False  # whether features are grouped


NORMS = {
    "batch": Norm(
        "batch norm", (0, 1), note="only in training; afterwards, running statistics replace those of the batch"
    ),
    "layer": Norm("layer norm", (2,), note="each token has its own statistics"),
    "instance": Norm("instance norm", (1,), note="PyTorch's channels are the features"),
    "group": Norm("group norm", (1, 2), grouped=True, note="PyTorch's channels are the features"),
    "rms": Norm("RMSNorm", (2,), center=False, note="layer norm without subtracting the mean"),
}
DEFAULT_X = (
    ((1, 5, 3, 3), (2, 6, 2, 6), (0, 4, 4, 8), (3, 3, 1, 5)),
    ((1, 7, 3, 5), (2, 4, 0, 6), (4, 8, 2, 2), (3, 3, 1, 5)),
)


def _as_values(name, x):
    """Return a copy of the values as a float32 tensor, or raise an error."""
    return as_tensor(name, x, "(batch, seq, d_model)", (1, 1, 1), LARGEST_SHAPE, REACH)


class NormalizationLab(Lab):
    """Choose the axes of a mean and a variance, disturb one entry, and see which other entries move.

    Parameters
    ----------
    x : Tensor or nested sequences, shape (batch, seq, d_model)
        At most (4, 6, 6), with values from -100 to 100; small round numbers when left out.
    norm : {"batch", "layer", "instance", "group", "rms"}
        Batch norm computes its statistics over batch and seq, layer norm over d_model, instance norm over seq, and
        group norm over seq and a group of features. RMSNorm uses the axes of layer norm, but does not subtract the
        mean.
    dims : sequence of int, optional
        The axes of the statistics, instead of the axes of ``norm``: 0 (batch), 1 (seq), 2 (d_model).
    n_groups : int, optional
        The number of groups of features, each with its own statistics: a divisor of d_model. The default
        is the smallest divisor above 1 for group norm, and 1 for all other norms.
    eps : float
        A small number that is added to the variance before the square root.
    lengths : sequence of int, optional
        The number of real tokens in each sentence, by default all; the tokens after them are padding, with zeros.
    index : sequence of int, optional
        The chosen entry; when left out, ``[0, 1, 1]``, with 0 for an axis of size 1.
    controls : sequence of str, optional
        The groups of controls to show: any of ``"norm"``, ``"axes"``, ``"disturb"`` and ``"table"``; all when left out.

    Attributes
    ----------
    x, lengths
        The values and lengths after the reader's changes.
    original : Tensor, shape of ``x``
        The initial values, without padding; moves are measured from these values.
    norm : str or None
        The name of the norm with the current axes, groups and centring, if there is one. You can assign a name.
    dims, n_groups, center
        The axes of the statistics, the number of groups of features, and whether the mean is subtracted.
    padded : Tensor, shape of ``x``
        ``x`` with zeros in place of padding: the input of the norm.
    normalized : Tensor, shape of ``x``
    moved : Tensor of bool, shape of ``x``
        Whether each entry has moved by 0.001 or more, although the reader has not changed the entry's token.

    Examples
    --------
    >>> lab = NormalizationLab(norm="layer")
    >>> lab
    NormalizationLab(shape=(2, 4, 4), norm='layer', dims=(2,), n_groups=1)
    >>> lab.normalized[0, 1]
    tensor([-1.0000,  1.0000, -1.0000,  1.0000])

    Padding at the end of one sentence moves the numbers of the other sentence if the norm computes its statistics over
    the batch:

    >>> lab.lengths = [4, 2]
    >>> lab.moved[0].any(), NormalizationLab(norm="batch", lengths=[4, 2]).moved[0].all()
    (tensor(False), tensor(True))
    """

    _esm = script("motion", "normalization_maths", "normalization_words", "normalization")
    _css = style("normalization")
    repr_traits = ("shape", "norm", "dims", "n_groups")
    groups = ("norm", "axes", "disturb", "table")

    x = tensor_trait()
    original = tensor_trait()
    lengths = traitlets.List(traitlets.Int()).tag(sync=True)
    index = traitlets.List(traitlets.Int()).tag(sync=True)
    dims = traitlets.List(traitlets.Int()).tag(sync=True)
    n_groups = traitlets.Int().tag(sync=True)
    center = traitlets.Bool().tag(sync=True)
    eps = traitlets.Float().tag(sync=True)
    norms = traitlets.List([asdict(norm) for norm in NORMS.values()]).tag(sync=True)
    limits = traitlets.Dict({"reach": REACH, "moved": MOVE_THRESHOLD}).tag(sync=True)

    def __init__(
        self, x=DEFAULT_X, norm="layer", *, dims=None, n_groups=None, eps=EPS, lengths=None, index=None, controls=None
    ):
        x = _as_values("x", x)
        settings = _norm_traits(norm, x.shape[2])
        super().__init__(
            original=x,
            x=x,
            dims=settings["dims"] if dims is None else dims,
            n_groups=settings["n_groups"] if n_groups is None else n_groups,
            center=settings["center"],
            eps=eps,
            lengths=[x.shape[1]] * x.shape[0] if lengths is None else lengths,
            index=[0, min(1, x.shape[1] - 1), min(1, x.shape[2] - 1)] if index is None else index,
            controls=controls,
        )

    @traitlets.validate("x", "original")
    def _check_values(self, proposal):
        name = proposal.trait.name
        x = _as_values(name, proposal.value)
        if x.shape != self.x.shape or x.shape != self.original.shape:
            raise ValueError(f"{name} must keep the shape that the lab began with, got {tuple(x.shape)}")
        return x

    @traitlets.validate("lengths")
    def _check_lengths(self, proposal):
        batch, seq, _ = self.shape
        lengths = proposal.value
        if len(lengths) != batch or any(not 1 <= length <= seq for length in lengths):
            raise ValueError(f"lengths must be {batch} numbers from 1 to {seq}, got {format_value(tuple(lengths))}")
        return lengths

    @traitlets.validate("index")
    def _check_index(self, proposal):
        index = proposal.value
        if len(index) != 3 or any(not 0 <= i < size for i, size in zip(index, self.shape)):
            raise ValueError(f"index must name an entry of shape {self.shape}, got {format_value(tuple(index))}")
        return index

    @traitlets.validate("dims")
    def _check_dims(self, proposal):
        dims = sorted(dim % 3 for dim in proposal.value)
        if any(not -3 <= dim < 3 for dim in proposal.value) or len(set(dims)) != len(dims):
            raise ValueError(
                f"dims must be axes of x from -3 to 2, each once, got {format_value(tuple(proposal.value))}"
            )
        return dims

    @traitlets.validate("n_groups")
    def _check_groups(self, proposal):
        d_model, n_groups = self.shape[2], proposal.value
        if n_groups < 1 or d_model % n_groups:
            raise ValueError(f"n_groups must divide d_model, got {n_groups} and {d_model}")
        return n_groups

    @traitlets.validate("eps")
    def _check_eps(self, proposal):
        if not 0 < proposal.value < math.inf:  # also false for NaN
            raise ValueError(f"eps must be positive, got {proposal.value}")
        return proposal.value

    @property
    def shape(self):
        return tuple(self.original.shape)

    @property
    def norm(self):
        for name, norm in NORMS.items():
            groups_fit = norm.grouped or self.n_groups == 1 or 2 not in norm.dims
            if (tuple(self.dims), self.center) == (norm.dims, norm.center) and groups_fit:
                return name
        return None

    @norm.setter
    def norm(self, norm):
        with self.hold_trait_notifications():
            for name, value in _norm_traits(norm, self.shape[2]).items():
                setattr(self, name, value)

    @property
    def padded(self):
        return self.x.masked_fill(~self._real_token_mask, 0.0)

    @property
    def normalized(self):
        return self._normalize(self.padded)

    @property
    def moved(self):
        touched = (self.x != self.original).any(-1, keepdim=True) | ~self._real_token_mask
        after, before = (self._normalize(x.double()) for x in (self.padded, self.original))
        return ~touched & ((after - before).abs() >= MOVE_THRESHOLD)

    @property
    def _real_token_mask(self):
        """Return a mask of shape (batch, seq, 1), which is true for tokens that are not padding."""
        return (torch.arange(self.shape[1]) < torch.tensor(self.lengths)[:, None])[..., None]

    def _normalize(self, x):
        # The view has an axis for the groups, and an axis of size 1, so that there is always an axis to reduce.
        grouped = x.unflatten(2, (self.n_groups, -1))[..., None]
        dims = (4, *({0: 0, 1: 1, 2: 3}[dim] for dim in self.dims))
        if self.center:
            return standardize(grouped, dims, self.eps).view_as(x)
        return (grouped / (grouped.square().mean(dims, keepdim=True) + self.eps).sqrt()).view_as(x)


def _norm_traits(norm, d_model):
    """Return the traits of ``norm``, or raise an error that lists the norms."""
    norm = NORMS[as_option("norm", norm, tuple(NORMS))]
    default_groups = next((n for n in range(2, d_model + 1) if d_model % n == 0), 1)
    return {"dims": list(norm.dims), "center": norm.center, "n_groups": default_groups if norm.grouped else 1}
