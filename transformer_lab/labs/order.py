"""The order lab: two orders of one product, and the second order as a state that is updated token by token."""

import math

import traitlets

from ..linear_attention import causal_linear_attention, initial_state, linear_attention_step
from .lab import Lab, as_integer, as_option, as_tensor, script, style, tensor_trait

SIZE_RANGES = {"n": (16, 65_536), "d": (1, 256), "m": (1, 256)}
MODES = ("order", "steps")
BETWEEN_OPTIONS = ("nothing", "softmax", "causal")
MAX_TOKENS, MAX_FEATURES = 12, 6  # the size limits of the user's tensors
REACH = 10
MINUS_LOG_2 = -math.log(2)  # elu(x) + 1 is 1/2 for this x, so all numbers of the default sequence are short
QUERY = ((0, 1, 0), (1, MINUS_LOG_2, 0), (MINUS_LOG_2, 2, 0), (2, 0, MINUS_LOG_2), (0, 1, 1), (1, 0, 2))
KEY = ((1, 0, MINUS_LOG_2), (0, 2, 0), (MINUS_LOG_2, 1, 1), (2, MINUS_LOG_2, 0), (0, 0, 1), (1, 1, 0))
VALUE = ((2, 0), (0, 3), (-1, 1), (4, 0), (1, -2), (0, 2))


def _as_features(name, x):
    """Return the features, one row per token, or raise an error."""
    axes = "(seq, d_value)" if name == "value" else "(seq, d_head)"
    return as_tensor(name, x, axes, (1, 1), (MAX_TOKENS, MAX_FEATURES), REACH)


def _as_sequence(query, key, value):
    """Return the three tensors of one sequence, by default the tensors of the lab's example."""
    tensors = {"query": query, "key": key, "value": value}
    missing = [name for name, x in tensors.items() if x is None]
    if len(missing) == 3:
        tensors = {"query": QUERY, "key": KEY, "value": VALUE}
    elif missing:
        present = " and ".join(name for name in tensors if name not in missing)
        raise ValueError(f"query, key and value must be given together, got {present} without {' and '.join(missing)}")
    query, key, value = (_as_features(name, x) for name, x in tensors.items())
    for other, x in (("query", query), ("value", value)):
        if len(x) != len(key):
            raise ValueError(f"{other} and key must share seq, got {len(x)} and {len(key)}")
    if query.shape != key.shape:
        raise ValueError(f"query and key must share d_head, got {query.shape[1]} and {key.shape[1]}")
    return query, key, value


class OrderLab(Lab):
    """Multiply queries by keys first, or keys by values first; then update the second product token by token.

    Parameters
    ----------
    n, d, m : int
        The sizes of the rectangles for ``mode="order"``: the number of tokens (16 to 65,536), of features of a query or
        a key, and of features of a value (1 to 256 each).
    between : {"nothing", "softmax", "causal"}
        The operation between the two products; with softmax, only one order is possible.
    mode : {"order", "steps"}, optional
        Whether the lab shows the rectangles or the tokens one by one; ``"steps"`` when tensors are given, and otherwise
        ``"order"``.
    query, key : Tensor or sequences, shape (seq, d_head)
    value : Tensor or sequences, shape (seq, d_value)
        The sequence for ``mode="steps"``: at most 12 tokens and 6 features, values from -10 to 10. The
        default is a sequence of six tokens whose numbers can be checked by hand.
    token : int
        The number of tokens that have been read, at least 1.
    controls : sequence of str, optional
        The groups of controls to show: any of ``"mode"``, ``"sizes"``, ``"between"`` and ``"costs"``; all when left
        out.

    Attributes
    ----------
    n, d, m, between, mode, token
        What the reader has set.
    multiply_adds : tuple of int
        The total cost of the two products, in each of the two orders: queries with keys first, and keys with values
        first.
    held : tuple of int
        The number of values in the intermediate result, for the same two orders.
    state : tuple of Tensor, shapes (d_head, d_value) and (d_head,)
        ``S`` and ``z`` after the last token that has been read.
    output : Tensor, shape (d_value,)
        The output of the last token that has been read.

    Examples
    --------
    >>> lab = OrderLab(n=1024, d=64, m=64)
    >>> lab.multiply_adds
    (134217728, 8388608)
    >>> lab = OrderLab(query=[[0], [1]], key=[[0], [1]], value=[[3], [6]], token=2)
    >>> lab
    OrderLab(mode='steps', n=1024, d=64, m=64, between='nothing', token=2)
    >>> lab.state, lab.output  # φ(k) is 1 and 2, so S = 1·3 + 2·6 and z = 1 + 2
    ((tensor([[15.]]), tensor([3.])), tensor([5.]))
    """

    _esm = script("order_maths", "order_words", "order_pictures", "order")
    _css = style("order")
    repr_traits = ("mode", "n", "d", "m", "between", "token")
    groups = ("mode", "sizes", "between", "costs")

    query = tensor_trait()
    key = tensor_trait()
    value = tensor_trait()
    n = traitlets.Any().tag(sync=True)  # of type Any, so that the validators below raise the package's own errors
    d = traitlets.Any().tag(sync=True)
    m = traitlets.Any().tag(sync=True)
    between = traitlets.Any().tag(sync=True)
    mode = traitlets.Any().tag(sync=True)
    token = traitlets.Any().tag(sync=True)
    limits = traitlets.Dict(SIZE_RANGES).tag(sync=True)

    def __init__(
        self,
        n=1024,
        d=64,
        m=64,
        *,
        between="nothing",
        mode=None,
        query=None,
        key=None,
        value=None,
        token=1,
        controls=None,
    ):
        if mode is None:
            mode = "order" if query is key is value is None else "steps"
        query, key, value = _as_sequence(query, key, value)
        tensors = {"query": query, "key": key, "value": value}
        super().__init__(n=n, d=d, m=m, between=between, mode=mode, token=token, controls=controls, **tensors)

    @traitlets.validate("n", "d", "m")
    def _check_size(self, proposal):
        return as_integer(proposal.trait.name, proposal.value, *SIZE_RANGES[proposal.trait.name])

    @traitlets.validate("token")
    def _check_token(self, proposal):
        return as_integer("token", proposal.value, 1, len(self.key))

    @traitlets.validate("mode", "between")
    def _check_option(self, proposal):
        name = proposal.trait.name
        return as_option(name, proposal.value, MODES if name == "mode" else BETWEEN_OPTIONS)

    @traitlets.validate("query", "key", "value")
    def _check_features(self, proposal):
        name = proposal.trait.name
        x = _as_features(name, proposal.value)
        if x.shape != getattr(self, name).shape:
            raise ValueError(f"{name} must keep the shape that the lab began with, got {tuple(x.shape)}")
        return x

    @property
    def multiply_adds(self):
        return self.n**2 * (self.d + self.m), 2 * self.n * self.d * self.m

    @property
    def held(self):
        return self.n**2, self.d * self.m

    @property
    def state(self):
        state = initial_state(1, 1, self.key.shape[1], self.value.shape[1])
        for token in zip(self.query[: self.token], self.key, self.value):
            state, _ = linear_attention_step(state, *(x[None, None] for x in token))
        return tuple(x[0, 0] for x in state)

    @property
    def output(self):
        return causal_linear_attention(self.query, self.key, self.value)[self.token - 1]
