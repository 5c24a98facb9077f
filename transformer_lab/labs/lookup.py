"""The lookup lab: a query, its keys, and the weighted sum of their values."""

import math

import torch
import traitlets

from ..attention import attention_weights
from .lab import Lab, as_number, as_option, as_tensor, script, style, tensor_trait

REACH = 2  # the plane goes from -2 to 2 on both axes
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.01, 100  # the temperatures of a hard lookup and of a uniform average
MAX_KEYS = 8
SIMILARITIES = ("dot", "distance")
ROOT_D = math.sqrt(2)
DEFAULT_LABELS = ("cat", "dog", "owl", "carp", "oak")
DEFAULT_KEYS = ((1.6, 0.2), (1.1, 1.3), (-0.5, 1.6), (-1.5, -0.3), (0.4, -1.5))
DEFAULT_VALUES = ((1.4, 1.2), (0.6, 1.6), (-1.3, 1.0), (-1.2, -1.3), (1.3, -1.0))
DEFAULT_QUERY = (1.2, 0.3)


def _points(name, points):
    """Return the points as a float32 tensor, or raise an error."""
    if name == "query":
        return as_tensor(name, points, "(2,)", (2,), (2,), REACH)
    return as_tensor(name, points, "(k_len, 2)", (1, 2), (MAX_KEYS, 2), REACH)


class LookupLab(Lab):
    """Drag a query among keys and see which values it mixes; raise the temperature to go from a lookup to an average.

    Parameters
    ----------
    query : Tensor or sequence, shape (2,)
    key, value : Tensor or sequence, shape (k_len, 2)
        Points in the plane, with coordinates from -2 to 2; at most 8 keys and values.
    labels : sequence of str, optional
        One name for each key.
    temperature : float
        The number by which similarities are divided before the softmax, from 0.01 to 100; ``√d_head = √2`` when left
        out.
    similarity : {"dot", "distance"}
        The similarity of a query and a key: ``q · k``, or ``-|q - k|² / 2``.
    controls : sequence of str, optional
        The groups of controls to show beside the planes: any of ``"temperature"``, ``"query"``, ``"similarity"`` and
        ``"scores"``; all when left out.

    Attributes
    ----------
    query, key, value : Tensor, float32
        The positions to which the reader has dragged the points.
    weights : Tensor, shape (k_len,)
        The current weight of each key.
    output : Tensor, shape (2,)
        The weighted sum of the values.

    Examples
    --------
    >>> lab = LookupLab(query=(1, 0), key=[(1, 0), (0, 1)], value=[(2, 0), (0, 2)], labels=["a", "b"])
    >>> lab.weights
    tensor([0.6698, 0.3302])
    """

    _esm = script("motion", "lookup")
    _css = style("lookup")
    repr_traits = ("query", "labels", "temperature", "similarity")
    groups = ("temperature", "query", "similarity", "scores")

    query = tensor_trait()
    key = tensor_trait()
    value = tensor_trait()
    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    temperature = traitlets.Float().tag(sync=True)
    similarity = traitlets.Unicode().tag(sync=True)
    limits = traitlets.Dict({"reach": REACH, "coldest": LOWEST_TEMPERATURE, "hottest": HIGHEST_TEMPERATURE}).tag(
        sync=True
    )

    def __init__(
        self,
        query=DEFAULT_QUERY,
        key=DEFAULT_KEYS,
        value=DEFAULT_VALUES,
        labels=None,
        temperature=ROOT_D,
        similarity="dot",
        *,
        controls=None,
    ):
        key = _points("key", key)
        if labels is None:
            labels = DEFAULT_LABELS if len(key) == len(DEFAULT_LABELS) else [f"key {i}" for i in range(len(key))]
        super().__init__(
            query=_points("query", query),
            key=key,
            value=_points("value", value),
            labels=labels,
            temperature=temperature,
            similarity=similarity,
            controls=controls,
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
        return as_number("temperature", proposal.value, LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE)

    @traitlets.validate("similarity")
    def _check_similarity(self, proposal):
        return as_option("similarity", proposal.value, SIMILARITIES)

    @property
    def weights(self):
        if self.similarity == "dot":
            return attention_weights(self.query[None], self.key, scale=1 / self.temperature)[0]
        return torch.softmax(-0.5 * (self.query - self.key).square().sum(-1) / self.temperature, dim=-1)

    @property
    def output(self):
        return self.weights @ self.value
