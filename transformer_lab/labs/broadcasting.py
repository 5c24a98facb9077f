"""The broadcasting lab: two shapes, aligned from the right."""

import torch
import traitlets

from ..arguments import format_value
from .lab import Lab, as_option, script, style

MODES = ("elementwise", "matmul")
MAX_AXES, LARGEST_SIZE = 8, 10**9


class BroadcastingLab(Lab):
    """See how two shapes combine, elementwise or as a matrix product, or why they do not fit.

    Parameters
    ----------
    a, b : sequence of int
        The two shapes, each with at most 8 axes and with sizes from 0 to 10⁹.
    mode : {"elementwise", "matmul"}
    index : sequence of int, optional
        The index of the chosen element of the result; the index of the first element when left out.
    controls : sequence of str, optional
        The groups of controls to show: any of ``"mode"``, ``"shapes"`` and ``"picture"``; all when left out.

    Attributes
    ----------
    result_shape : tuple of int
        The shape of the result, computed by PyTorch. Reading this attribute raises ``ValueError`` if the shapes do not
        fit.

    Examples
    --------
    >>> lab = BroadcastingLab((3, 1), (4,))
    >>> lab
    BroadcastingLab(a=(3, 1), b=(4,), mode='elementwise')
    >>> lab.result_shape
    (3, 4)
    """

    _esm = script("broadcasting_rules", "broadcasting")
    _css = style("broadcasting")
    repr_traits = ("a", "b", "mode")
    groups = ("mode", "shapes", "picture")

    a = traitlets.List(traitlets.Int()).tag(sync=True)
    b = traitlets.List(traitlets.Int()).tag(sync=True)
    mode = traitlets.Unicode().tag(sync=True)
    index = traitlets.List(traitlets.Int()).tag(sync=True)
    limits = traitlets.Dict({"axes": MAX_AXES, "size": LARGEST_SIZE}).tag(sync=True)

    def __init__(self, a=(3, 1), b=(4,), mode="elementwise", index=(), *, controls=None):
        super().__init__(a=a, b=b, mode=mode, index=index, controls=controls)

    @traitlets.validate("a", "b")
    def _check_shape(self, proposal):
        shape = proposal.value
        if len(shape) > MAX_AXES or any(not 0 <= size <= LARGEST_SIZE for size in shape):
            rule = f"at most {MAX_AXES} axes of sizes from 0 to 10**9"
            raise ValueError(f"{proposal.trait.name} must have {rule}, got {format_value(tuple(shape))}")
        return shape

    @traitlets.validate("mode")
    def _check_mode(self, proposal):
        return as_option("mode", proposal.value, MODES)

    @property
    def result_shape(self):
        try:
            if self.mode == "elementwise":
                return tuple(torch.broadcast_shapes(self.a, self.b))
            # A tensor on the meta device has a shape but no data, so matrices of any size need no memory.
            a, b = (torch.empty(shape[-2:], device="meta") for shape in (self.a, self.b))
            return (*torch.broadcast_shapes(self.a[:-2], self.b[:-2]), *torch.matmul(a, b).shape)
        except RuntimeError as error:
            raise ValueError(
                f"a and b must have shapes that fit, got {tuple(self.a)} and {tuple(self.b)}: {error}"
            ) from None
