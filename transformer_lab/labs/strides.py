"""The strides lab: one storage, and the tensors that read it."""

import ast
import math

import torch
import traitlets

from ..arguments import format_value
from .lab import Lab, script, style

MAX_AXES, MAX_ELEMENTS = 5, 64
MAX_CHAIN_LENGTH = 1000  # characters: a longer chain exceeds the limits of Python's parser
OPERATIONS = ("view", "reshape", "flatten", "transpose", "t", "permute", "contiguous", "squeeze", "unsqueeze", "expand")


class StridesLab(Lab):
    """Apply a chain of operations to ``torch.arange(n).view(shape)``, and see storage, shape and strides change.

    Parameters
    ----------
    shape : sequence of int
        The shape of the first tensor: at most 5 axes and 64 elements; each size is at least 1.
    chain : str
        Operations as code, such as ``".transpose(0, 1).view(6)"`` or ``"[:, ::2]"``.
    index : sequence of int, optional
        The index of the chosen element of the last tensor; the first element when left out.
    controls : sequence of str, optional
        The groups of controls to show: any of ``"shape"``, ``"chain"`` and ``"walk"``; all when left out.

    Attributes
    ----------
    tensor : Tensor
        The result of the chain, computed by PyTorch. If the chain fails, reading this attribute raises PyTorch's error.

    Examples
    --------
    >>> lab = StridesLab(shape=(2, 3), chain=".transpose(0, 1)")
    >>> lab
    StridesLab(shape=(2, 3), chain='.transpose(0, 1)')
    >>> lab.tensor
    tensor([[0, 3],
            [1, 4],
            [2, 5]])
    """

    _esm = script("motion", "strides_rules", "strides_chain", "strides")
    _css = style("strides")
    repr_traits = ("shape", "chain")
    groups = ("shape", "chain", "walk")

    shape = traitlets.List(traitlets.Int()).tag(sync=True)
    chain = traitlets.Unicode().tag(sync=True)
    index = traitlets.List(traitlets.Int()).tag(sync=True)
    limits = traitlets.Dict({"axes": MAX_AXES, "elements": MAX_ELEMENTS, "chain": MAX_CHAIN_LENGTH}).tag(sync=True)

    def __init__(self, shape=(2, 3, 4), chain=".transpose(1, 2)", index=(), *, controls=None):
        super().__init__(shape=shape, chain=chain, index=index, controls=controls)

    @traitlets.validate("shape")
    def _check_shape(self, proposal):
        shape = proposal.value
        if len(shape) > MAX_AXES or any(size < 1 for size in shape) or math.prod(shape) > MAX_ELEMENTS:
            raise ValueError(
                f"shape must have at most {MAX_AXES} axes and {MAX_ELEMENTS} elements, and no size below 1, "
                f"got {format_value(tuple(shape))}"
            )
        return shape

    @traitlets.validate("chain")
    def _check_chain(self, proposal):
        _parse(proposal.value)
        return proposal.value

    @property
    def tensor(self):
        x = torch.arange(math.prod(self.shape)).view(self.shape)
        for name, arguments in _parse(self.chain):
            x = x[arguments] if name == "index" else getattr(x, name)(*arguments)
        return x


def _parse(chain):
    """Parse ``".view(2, 3)[0]"`` as ``[("view", (2, 3)), ("index", (0,))]``, without running any code."""
    steps = []
    try:
        if len(chain) > MAX_CHAIN_LENGTH:
            raise ValueError
        node = ast.parse(f"x{chain.strip().removeprefix('x')}", mode="eval").body
        while not isinstance(node, ast.Name):
            match node:
                case ast.Subscript(value=operand, slice=index):
                    parts = index.elts if isinstance(index, ast.Tuple) else [index]
                    steps.append(("index", tuple(_index_part(part) for part in parts)))
                case ast.Call(ast.Attribute(operand, name), arguments, []) if name in OPERATIONS:
                    steps.append((name, tuple(_number_or_list(argument) for argument in arguments)))
                case _:
                    raise ValueError
            node = operand
        if node.id != "x":
            raise ValueError
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        rule = f"consist of {', '.join(OPERATIONS)} and [ ], as in .transpose(0, 1)[:, ::2]"
        raise ValueError(f"chain must {rule}, got {format_value(chain)}") from None
    return steps[::-1]


def _number_or_list(node):
    """Return one argument of an operation: a number, or a list of numbers."""
    return tuple(_integer(item) for item in node.elts) if isinstance(node, (ast.Tuple, ast.List)) else _integer(node)


def _index_part(node):
    """Return one part of an index: a number, a slice, or an ellipsis."""
    if isinstance(node, ast.Slice):
        return slice(*(part and _integer(part) for part in (node.lower, node.upper, node.step)))
    return ... if isinstance(node, ast.Constant) and node.value is ... else _integer(node)


def _integer(node):
    value = ast.literal_eval(node)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError
    return value
