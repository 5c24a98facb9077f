"""Normalization: ``standardize``, four norms that standardize over different axes, and RMS norm."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import Self

from .arguments import (
    format_value,
    is_integer,
    is_number,
    require_flags,
    require_floating,
    require_one_of,
    require_probability,
    require_sizes,
    suggest_float,
)
from .conversion import load_copies
from .precision import accumulation_dtype, is_autocast_on, upcast

EPS = 1e-5  # for all norms except RMS norm, as in PyTorch
RMS_NORM_EPS = 1e-6


def standardize(x: Tensor, dims: int | Sequence[int], eps: float = EPS) -> Tensor:
    """Shift and scale entries that share a mean and a variance, so that the mean becomes 0 and the variance 1.

    Parameters
    ----------
    x : Tensor, any shape, floating point
    dims : int or sequence of int
        The axes over which mean and variance are computed. Entries whose indices differ only in these axes share a mean
        and a variance.
    eps : float, optional
        Added to the variance, inside the root, so that equal entries become 0 instead of 0/0.

    Returns
    -------
    Tensor, shape of ``x``
        Empty if ``x`` is empty.

    Raises
    ------
    TypeError
        If ``x`` is not a floating-point tensor, or ``dims`` are not integers.
    ValueError
        If ``dims`` is empty or contains an axis twice, or ``eps`` is negative.
    IndexError
        If ``x`` has no such axis.

    References
    ----------
    Ioffe and Szegedy, "Batch Normalization", 2015, algorithm 1. Wu and He, "Group Normalization", 2018, section 3.1:
    all norms as one function.

    Examples
    --------
    >>> standardize(torch.tensor([1.0, 2.0, 3.0, 4.0]), -1)
    tensor([-1.3416, -0.4472,  0.4472,  1.3416])
    """
    dims = _check_dims(x, dims, eps)
    x_upcast = upcast(x)
    mean = x_upcast.mean(dims, keepdim=True)
    variance = (x_upcast - mean).square().mean(dims, keepdim=True)
    return ((x_upcast - mean) / (variance + eps).sqrt()).to(x.dtype)


def batch_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = EPS,
) -> Tensor:
    """Standardize every channel over the whole batch.

    In training, this is ``standardize(x, all axes except axis 1)``; evaluation uses the running statistics instead of
    the batch's.

    Parameters
    ----------
    x : Tensor, shape (batch, channels, ...)
    running_mean, running_var : Tensor, shape (channels,), optional
        Running averages of the batches' statistics. Training updates them in place, as in PyTorch; no other function of
        this package changes an argument. ``running_var`` averages the *unbiased* variance.
    weight, bias : Tensor, shape (channels,), optional
        The standardized entries are multiplied by ``weight``, and ``bias`` is added.
    training : bool, optional
        Whether to use the batch's statistics. Without running statistics, the batch's statistics are always used.
    momentum : float, optional
        Weight of the new batch in the running statistics.
    eps : as in :func:`standardize`

    Returns
    -------
    Tensor, shape of ``x``

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a shape does not fit, only one of the running statistics is given, or, in training, a channel has only one
        value and therefore no variance.

    References
    ----------
    Ioffe and Szegedy, "Batch Normalization", 2015, algorithms 1 and 2.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    >>> batch_norm(x, training=True, eps=0.0)
    tensor([[-1., -1.],
            [ 1.,  1.]])
    """
    _require_channels(x, 2)
    dims = _check_dims(x, (0, *range(2, x.ndim)), eps)
    statistics = {"running_mean": running_mean, "running_var": running_var}
    _require_parameters(x, x.shape[1:2], weight=weight, bias=bias, **statistics)
    require_probability(momentum=momentum)
    require_flags(training=training)
    if (running_mean is None) != (running_var is None):
        only_given = "running_mean" if running_var is None else "running_var"
        raise ValueError(f"running_mean and running_var must be given together, got {only_given} alone")
    x_upcast = upcast(x)
    if not training and running_mean is not None:
        mean, variance = (_align_to_channels(statistic, x) for statistic in (running_mean, running_var))
        normalized = (x_upcast - mean) / (variance + eps).sqrt()
        return _scale_and_shift(normalized, weight, bias, x)
    if training and 0 < x.numel() == x.shape[1]:
        raise ValueError(f"x must have more than one value per channel in training, got shape {tuple(x.shape)}")
    if training and running_mean is not None and running_var is not None and x.numel():
        with torch.no_grad():
            running_mean.lerp_(x_upcast.mean(dims).to(running_mean.dtype), momentum)
            running_var.lerp_(x_upcast.var(dims, unbiased=True).to(running_var.dtype), momentum)
    return _scale_and_shift(standardize(x_upcast, dims, eps), weight, bias, x)


def instance_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = EPS) -> Tensor:
    """Standardize each channel of each example: ``standardize(x, all axes except axes 0 and 1)``.

    Parameters
    ----------
    x : Tensor, shape (batch, channels, ...)
        At least one axis comes after the channels.
    weight, bias, eps : as in :func:`batch_norm`

    Returns
    -------
    Tensor, shape of ``x``

    Raises
    ------
    TypeError, ValueError
        As in :func:`batch_norm` in training.

    References
    ----------
    Ulyanov et al., "Instance Normalization", 2016, equation 2.

    Examples
    --------
    >>> instance_norm(torch.tensor([[[1.0, 3.0], [10.0, 30.0]]]), eps=0.0)
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    _require_channels(x, 3)
    if x.numel() and math.prod(x.shape[2:]) == 1:
        raise ValueError(f"x must have more than one value per channel of an example, got shape {tuple(x.shape)}")
    _require_parameters(x, x.shape[1:2], weight=weight, bias=bias)
    return _scale_and_shift(standardize(upcast(x), tuple(range(2, x.ndim)), eps), weight, bias, x)


def group_norm(
    x: Tensor, n_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = EPS
) -> Tensor:
    """Standardize each group of neighbouring channels of each example.

    With one group, this is layer norm over all axes except the batch; with one channel per group, it is instance norm.

    Parameters
    ----------
    x : Tensor, shape (batch, channels, ...)
    n_groups : int
        A divisor of ``channels``.
    weight, bias, eps : as in :func:`batch_norm`

    Returns
    -------
    Tensor, shape of ``x``

    Raises
    ------
    TypeError, ValueError
        As in :func:`batch_norm`.

    References
    ----------
    Wu and He, "Group Normalization", 2018, equation 7.

    Examples
    --------
    >>> group_norm(torch.tensor([[1.0, 3.0, 10.0, 30.0]]), n_groups=2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])
    """
    _require_channels(x, 2)
    require_sizes(n_groups=n_groups)
    if x.shape[1] % n_groups:
        raise ValueError(f"n_groups must divide the channels, got n_groups {n_groups} and {x.shape[1]} channels")
    _require_parameters(x, x.shape[1:2], weight=weight, bias=bias)
    groups = upcast(x).unflatten(1, (n_groups, x.shape[1] // n_groups))  # (batch, groups, channels of a group, ...)
    normalized = standardize(groups, tuple(range(2, groups.ndim)), eps).flatten(1, 2)
    return _scale_and_shift(normalized, weight, bias, x)


def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = EPS) -> Tensor:
    """Standardize every token over its own features: ``standardize(x, -1) * weight + bias``, in one fused pass.

    Parameters
    ----------
    x : Tensor, shape (..., d_model)
    weight, bias : Tensor, shape (d_model,), optional
        If ``weight`` or ``bias`` has several axes, the entries along all these axes share a mean and a variance, as
        with ``normalized_shape`` in PyTorch.
    eps : as in :func:`standardize`

    Returns
    -------
    Tensor, shape of ``x``

    Raises
    ------
    TypeError, ValueError
        As in :func:`standardize`.

    References
    ----------
    Ba, Kiros and Hinton, "Layer Normalization", 2016, equation 3.

    Examples
    --------
    >>> layer_norm(torch.tensor([[1.0, 3.0], [10.0, 30.0]]), eps=0.0)
    tensor([[-1.,  1.],
            [-1.,  1.]])
    """
    shape = _normalized_shape(x, weight, bias)
    _require_eps(eps)
    if _differ_in_dtype(x, weight, bias) and not is_autocast_on(x):
        weight, bias = (None if parameter is None else upcast(parameter) for parameter in (weight, bias))
        return F.layer_norm(upcast(x), shape, weight, bias, eps).to(x.dtype)
    return F.layer_norm(x, shape, weight, bias, eps)


def rms_norm(x: Tensor, weight: Tensor | None = None, eps: float = RMS_NORM_EPS) -> Tensor:
    """Divide every token by the root of its features' mean square: layer norm without subtracting the mean.

    ``x / sqrt(mean(x²) + eps) * weight``, in one fused pass.

    Parameters
    ----------
    x : Tensor, shape (..., d_model)
    weight : Tensor, shape (d_model,), optional
    eps : float, optional
        Added to the mean square, inside the root.

    Returns
    -------
    Tensor, shape of ``x``

    Raises
    ------
    TypeError, ValueError
        As in :func:`standardize`.

    References
    ----------
    Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019, equation 4.

    Examples
    --------
    >>> rms_norm(torch.tensor([[3.0, 4.0]]), eps=0.0) * 12.5**0.5
    tensor([[3., 4.]])
    """
    shape = _normalized_shape(x, weight, None)
    _require_eps(eps)
    if _differ_in_dtype(x, weight):
        return F.rms_norm(upcast(x), shape, upcast(weight), eps).to(x.dtype)
    return F.rms_norm(x, shape, weight, eps)


class LayerNorm(nn.Module):
    """Layer norm with a learned weight and bias for each feature.

    Parameters
    ----------
    d_model : int
    eps : as in :func:`standardize`
    bias : bool, optional
        Whether the module has a bias; it always has a weight.

    References
    ----------
    Ba, Kiros and Hinton, "Layer Normalization", 2016.

    Examples
    --------
    >>> LayerNorm(2, eps=0.0)(torch.tensor([[1.0, 3.0]]))
    tensor([[-1.,  1.]], grad_fn=<NativeLayerNormBackward0>)
    """

    def __init__(self, d_model: int, eps: float = EPS, bias: bool = True):
        super().__init__()
        require_sizes(d_model=d_model)
        _require_eps(eps)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    @classmethod
    def from_torch(cls, module: nn.Module) -> Self:
        """Return the same layer as ``module``, a ``torch.nn.LayerNorm`` over one axis, with copies of its weights."""
        if not isinstance(module, nn.LayerNorm):
            raise TypeError(f"module must be a torch.nn.LayerNorm, got {type(module).__name__}")
        if len(module.normalized_shape) != 1:
            raise ValueError(f"module must normalize one axis, got normalized_shape={tuple(module.normalized_shape)}")
        if module.weight is None:
            raise ValueError("module must have a weight, got elementwise_affine=False, which is not supported")
        with torch.device("meta"):
            norm = cls(*module.normalized_shape, eps=module.eps, bias=module.bias is not None)
        return load_copies(norm, dict(module.named_parameters())).train(module.training)

    def forward(self, x: Tensor) -> Tensor:
        """Standardize every token over its features, then scale and shift it; the shape stays (..., d_model)."""
        return layer_norm(x, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{len(self.weight)}, eps={self.eps}, bias={self.bias is not None}"


class RMSNorm(nn.Module):
    """RMS norm with a learned weight for each feature.

    Parameters
    ----------
    d_model : int
    eps : float, optional
        Added to the mean square, inside the root.

    References
    ----------
    Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.

    Examples
    --------
    >>> RMSNorm(2)(torch.tensor([[1.0, 1.0]])).detach()
    tensor([[1.0000, 1.0000]])
    """

    def __init__(self, d_model: int, eps: float = RMS_NORM_EPS):
        super().__init__()
        require_sizes(d_model=d_model)
        _require_eps(eps)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Divide every token by the root of its mean square, and scale it; the shape stays (..., d_model)."""
        return rms_norm(x, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{len(self.weight)}, eps={self.eps}"


def new_norm(norm: str, d_model: int, eps: float | None = None, bias: bool = True) -> LayerNorm | RMSNorm:
    """Return the norm with this name, ``"layer"`` or ``"rms"``; without ``eps``, the norm uses its default eps."""
    require_one_of(("layer", "rms"), norm=norm)
    options = {} if eps is None else {"eps": eps}
    return RMSNorm(d_model, **options) if norm == "rms" else LayerNorm(d_model, **options, bias=bias)


def _scale_and_shift(normalized, weight, bias, x):
    """Apply the weight and bias of the channels (axis 1), and convert the result to the dtype of ``x``."""
    if weight is not None:
        normalized = normalized * _align_to_channels(weight, x)
    if bias is not None:
        normalized = normalized + _align_to_channels(bias, x)
    return normalized.to(x.dtype)


def _align_to_channels(parameter, x):
    """Reshape (channels,) to (1, channels, 1, …), which broadcasts with ``x``."""
    return parameter.view(1, -1, *[1] * (x.ndim - 2))


def _check_dims(x, dims, eps):
    """Check the tensor, its axes and the eps, and return the axes as a tuple."""
    require_floating(x=x)
    _require_eps(eps)
    dims = tuple(dims) if isinstance(dims, (list, tuple, range)) else (dims,)
    for dim in dims:
        if not is_integer(dim):
            raise TypeError(f"dims must be integers, got {format_value(dim)}")
        if not -x.ndim <= dim < x.ndim:
            raise IndexError(f"dims must be axes of x, from {-x.ndim} to {x.ndim - 1}, got {dim}")
    if not dims or len({dim % x.ndim for dim in dims}) < len(dims):
        raise ValueError(f"dims must name one axis or more, each once, got {format_value(dims)}")
    return dims


def _require_eps(eps):
    if type(eps) is float and eps >= 0:
        return
    if not is_number(eps) or not eps >= 0:
        raise ValueError(f"eps must be a number, 0 or more, got {format_value(eps)}{suggest_float('eps', eps)}")


def _require_channels(x, min_axes):
    require_floating(x=x)
    if x.ndim < min_axes:
        trailing_axes = ", ..." if min_axes == 2 else ", length, ..."
        raise ValueError(f"x must have shape (batch, channels{trailing_axes}), got {tuple(x.shape)}")


def _require_parameters(x, shape, **parameters):
    for name, parameter in parameters.items():
        if parameter is None:
            continue
        require_floating(**{name: parameter})
        if parameter.shape != shape:
            raise ValueError(f"{name} must have shape {tuple(shape)}, got {tuple(parameter.shape)}")
        if parameter.device != x.device:
            raise ValueError(f"x and {name} must be on one device, got {x.device} and {parameter.device}")


def _matches_last_axis(x, parameter):
    """Whether the tensor is a weight or bias of the last axis, with the dtype and device of ``x``."""
    if not isinstance(x, torch.Tensor) or not isinstance(parameter, torch.Tensor) or not x.is_floating_point():
        return False
    same_dtype_and_device = parameter.dtype == x.dtype and parameter.device == x.device
    return same_dtype_and_device and x.ndim > 0 and parameter.shape == x.shape[-1:]


def _differ_in_dtype(x, *parameters):
    """Whether the dtypes differ, as float16 and float32 do; only layer norm on a CPU has a kernel for two dtypes."""
    return any(parameter is not None and parameter.dtype != x.dtype for parameter in parameters)


def _normalized_shape(x, weight, bias):
    """Return the sizes of the axes that share statistics: the axes of weight and bias, or the last axis."""
    # Fast path: this function is called once per token and layer during generation.
    if _matches_last_axis(x, weight) and (bias is None or _matches_last_axis(x, bias)):
        return weight.shape
    require_floating(x=x)
    if x.ndim < 1:
        raise ValueError(f"x must have shape (..., d_model), got {tuple(x.shape)}")
    first_given = next((parameter for parameter in (weight, bias) if parameter is not None), None)
    n_axes = 1 if first_given is None or not isinstance(first_given, torch.Tensor) else max(first_given.ndim, 1)
    shape = x.shape[-n_axes:]
    _require_parameters(x, shape, weight=weight, bias=bias)
    for name, parameter in (("weight", weight), ("bias", bias)):
        # PyTorch's kernels accept float32 parameters for inputs in half precision, and otherwise require one dtype.
        if parameter is not None and parameter.dtype not in (x.dtype, accumulation_dtype(x)) and not is_autocast_on(x):
            raise TypeError(f"x and {name} must share a dtype, got {x.dtype} and {parameter.dtype}")
    return shape
