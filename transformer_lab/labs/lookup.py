"""The lookup lab: a query among keys, and the blend of their values."""

import math

import torch
import traitlets

from ..attention import attention_weights
from .lab import Lab, script, style

COLDEST, HOTTEST, REACH = 0.01, 100.0, 2.0
ROOT_D = math.sqrt(2)
WORDS = ("cat", "dog", "owl", "carp", "oak")
KEYS = ((1.6, 0.2), (1.1, 1.3), (-0.5, 1.6), (-1.5, -0.3), (0.4, -1.5))
VALUES = ((1.4, 1.2), (0.6, 1.6), (-1.3, 1.0), (-1.2, -1.3), (1.3, -1.0))
QUERY = (1.2, 0.3)


def _plane():
    """A trait that holds points of the plane as a float32 tensor, and travels as a list."""
    return traitlets.Instance(torch.Tensor).tag(
        sync=True,
        to_json=lambda points, _: [_tidy(row) for row in points.tolist()],
        from_json=lambda points, _: torch.tensor(points, dtype=torch.float32),  # JavaScript writes 1.0 as 1
    )


def _points(name, points):
    """The points as a float32 tensor, or an error that says what is wrong with them."""
    try:
        points = torch.as_tensor(points, dtype=torch.float32).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{name} must be a tensor or a sequence of numbers, got {points!r}") from None
    wanted, fits = "(2,)", points.shape == (2,)
    if name != "query":
        wanted, fits = "(k_len, 2) with k_len from 1 to 8", points.shape[1:] == (2,) and 1 <= len(points) <= 8
    if not fits:
        raise ValueError(f"{name} must have shape {wanted}, got {tuple(points.shape)}")
    if not (points.abs() <= REACH).all():  # also false for NaN
        raise ValueError(f"{name} must have coordinates from -{REACH:g} to {REACH:g}, got {points.tolist()}")
    return points


def _tidy(value):
    """Six digits: float32 as a reader would write it."""
    return [_tidy(item) for item in value] if isinstance(value, list) else float(f"{value:.6g}")


class LookupLab(Lab):
    """Drag a query among keys and see which values it takes home; turn the temperature from lookup to average.

    Parameters
    ----------
    query : Tensor or sequence, shape (2,)
    key, value : Tensor or sequence, shape (k_len, 2)
        Points of the plane, coordinates from -2 to 2; at most 8 of each.
    labels : sequence of str, optional
        One name per key.
    temperature : float
        What scores are divided by before the softmax, from 0.01 to 100; ``√d_head = √2`` when left out.
    similarity : {"dot", "distance"}
        Scores are ``q · k``, or ``-|q - k|² / 2``.

    Attributes
    ----------
    query, key, value : Tensor, float32
        Where the reader has dragged them.
    weights : Tensor, shape (k_len,)
        What each key weighs now.
    output : Tensor, shape (2,)
        The blend of the values.

    Examples
    --------
    >>> lab = LookupLab(query=(1, 0), key=[(1, 0), (0, 1)], value=[(2, 0), (0, 2)], labels=["a", "b"])
    >>> lab.weights
    tensor([0.6698, 0.3302])
    """

    _esm = script("lookup")
    _css = style("lookup")
    shown = ("query", "labels", "temperature", "similarity")

    query = _plane()
    key = _plane()
    value = _plane()
    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    temperature = traitlets.Float().tag(sync=True)
    similarity = traitlets.Unicode().tag(sync=True)

    def __init__(self, query=QUERY, key=KEYS, value=VALUES, labels=None, temperature=ROOT_D, similarity="dot"):
        key = _points("key", key)
        if labels is None:
            labels = WORDS if len(key) == len(WORDS) else [f"key {i}" for i in range(len(key))]
        super().__init__(
            query=_points("query", query),
            key=key,
            value=_points("value", value),
            labels=labels,
            temperature=temperature,
            similarity=similarity,
        )

    @traitlets.validate("query", "key", "value")
    def _check_points(self, proposal):
        name = proposal.trait.name
        points = _points(name, proposal.value)
        if name != "query" and len(points) != len(self.labels):
            raise ValueError(f"{name} must have one point for each of the {len(self.labels)} labels, got {len(points)}")
        return points

    @traitlets.validate("temperature")
    def _check_temperature(self, proposal):
        if not COLDEST <= proposal.value <= HOTTEST:
            raise ValueError(f"temperature must be from {COLDEST} to {HOTTEST:g}, got {proposal.value}")
        return proposal.value

    @traitlets.validate("similarity")
    def _check_similarity(self, proposal):
        if proposal.value not in ("dot", "distance"):
            raise ValueError(f"similarity must be 'dot' or 'distance', got {proposal.value!r}")
        return proposal.value

    @property
    def weights(self):
        if self.similarity == "dot":
            return attention_weights(self.query[None], self.key, scale=1 / self.temperature)[0]
        return torch.softmax(-0.5 * (self.query - self.key).square().sum(-1) / self.temperature, dim=-1)

    @property
    def output(self):
        return self.weights @ self.value
