"""The heads lab: the attention weights of every head of a model."""

import base64
import math

import numpy as np
import torch
import traitlets

from ..arguments import format_value, type_name
from .lab import Lab, as_integer, as_option, as_strings, script, style

MAX_TOKENS, MAX_HEADS, MAX_LAYERS, MAX_WEIGHTS = 64, 32, 128, 2**21
OVERVIEWS = ("maps", "weight", "previous", "same", "induction", "first")  # heads_overview.js has their labels
MAX_LEVEL = 65535  # a weight is sent to the browser as an integer from 0 to this number


def _pack(weights, _):
    """Serialize weights for the browser: 16-bit integers, little-endian, in base64."""
    levels = (weights.double() * MAX_LEVEL).round().to(torch.int32).numpy().astype("<u2")
    return {
        "shape": list(weights.shape),
        "levels": MAX_LEVEL,
        "data": base64.b64encode(levels.tobytes()).decode("ascii"),
    }


def _pack_others(others, _):
    return [{"weights": _pack(weights, _), "tokens": tokens} for weights, tokens in others]


def _unpack_others(packed, _):
    return [(_unpack(each["weights"], _), each["tokens"]) for each in packed]


def _unpack(packed, _):
    levels = np.frombuffer(base64.b64decode(packed["data"]), "<u2").astype(np.float32)
    return torch.from_numpy(levels).view(packed["shape"]) / MAX_LEVEL


class HeadsLab(Lab):
    """See the attention weights of all heads of a model, token by token, and the pattern of each head.

    Parameters
    ----------
    weights : Tensor, shape (layers, heads, q_len, k_len)
        Attention weights, from 0 to 1. A single layer may have the shape ``(heads, q_len, k_len)``. A list of layers is
        stacked; each layer has that shape, with or without a batch axis of size 1 in front. At most 128 layers, 32
        heads, 64 queries, 64 keys, and 2**21 weights. The browser shows weights to within 1/131070.
    tokens : str or sequence of str
        The q_len query tokens. A string is split at its spaces.
    key_tokens : str or sequence of str, optional
        The k_len key tokens; ``tokens`` when left out.
    others : sequence of (weights, tokens), optional
        More sentences for the same layers and heads, each with its weights, ``(layers, heads, seq, seq)``, and its
        tokens; the reader chooses one.
    d_model : int, optional
        A multiple of the number of heads. If given, the lab shows which features of the model belong to a head.
    layer, head : int, optional
        The selected layer and head, counted from 0.
    query, key : int, optional
        The selected query and key token. When left out, ``query`` is the last token, and ``key`` the token with the
        largest weight.
    sentence : int, optional
        The sentence that is shown first: 0 is the sentence in ``tokens``, and the sentences in ``others`` follow.
    overview : str, optional
        If given, the lab shows all heads of all layers in one grid, with a row for each layer. With ``"maps"``, a cell
        shows the head's weights as a small map; with ``"weight"``, it shows the weight that ``query`` gives to ``key``
        in the head. Otherwise, a cell shows the head's score from 0 to 1 for a pattern: ``"previous"``, the mean weight
        on the token before; ``"same"``, on the same token, including the query itself; ``"induction"``, on the tokens
        after earlier occurrences of the same token; ``"first"``, on the first token. Patterns are defined only if
        queries and keys are the same tokens.
    controls : sequence of str, optional
        The groups of controls to show: any of ``"sentences"``, ``"layer"``, ``"heads"`` (small maps of the layer's
        heads), ``"patterns"`` and ``"tokens"``. When left out, all groups are shown, except ``"layer"`` and ``"heads"``
        if the lab has a grid of all heads.

    Attributes
    ----------
    layer, head, query, key, sentence : int
        The reader's selection. If a sentence has too few tokens, its last token is selected.
    overview : str
        What the grid shows; an empty string if there is no grid.
    weights : Tensor, float32
        The attention weights. You can replace them with weights of the same shape, to show a model during its training.
    chosen : Tensor, shape (k_len,)
        The weights of the selected query in the selected head of the selected sentence.

    Raises
    ------
    TypeError, ValueError
        If the weights are not numbers from 0 to 1, if there are too many of them, or if the numbers of tokens differ
        from q_len and k_len.

    Examples
    --------
    >>> lab = HeadsLab(torch.eye(3).expand(2, 4, 3, 3), "the cat sat", head=1)
    >>> lab
    HeadsLab(layer=0, head=1, query=2, key=2)
    >>> lab.chosen
    tensor([0., 0., 1.])

    All heads of all layers at once:

    >>> HeadsLab(torch.eye(3).expand(2, 4, 3, 3), "the cat sat", overview="maps", layer=1)
    HeadsLab(layer=1, head=0, query=2, key=2)
    """

    _esm = script("heads_patterns", "heads_pictures", "heads_overview", "heads")
    _css = style("heads")
    repr_traits = ("layer", "head", "query", "key")
    groups = ("sentences", "layer", "heads", "patterns", "tokens")

    weights = traitlets.Instance(torch.Tensor).tag(sync=True, to_json=_pack, from_json=_unpack)
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    key_tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    d_model = traitlets.Int(None, allow_none=True).tag(sync=True)
    others = traitlets.Any([]).tag(sync=True, to_json=_pack_others, from_json=_unpack_others)
    sentence = traitlets.Int().tag(sync=True)
    overview = traitlets.Unicode().tag(sync=True)
    layer = traitlets.Int().tag(sync=True)
    head = traitlets.Int().tag(sync=True)
    query = traitlets.Int().tag(sync=True)
    key = traitlets.Int().tag(sync=True)

    def __init__(
        self,
        weights,
        tokens,
        key_tokens=None,
        *,
        others=(),
        d_model=None,
        layer=0,
        head=0,
        query=None,
        key=None,
        sentence=0,
        overview="",
        controls=None,
    ):
        weights = _stack_layers(weights)
        tokens = _as_tokens("tokens", tokens, "q_len", weights.shape[2])
        key_tokens = tokens if key_tokens is None else _as_tokens("key_tokens", key_tokens, "k_len", weights.shape[3])
        if len(key_tokens) != weights.shape[3]:
            raise ValueError(
                f"key_tokens must be given if q_len and k_len differ, got weights of shape {tuple(weights.shape)}"
            )
        if d_model is not None and (not as_integer("d_model", d_model, 0, 2**20) or d_model % weights.shape[1]):
            raise ValueError(f"d_model must be a multiple of the {weights.shape[1]} heads, got {d_model}")
        others = _as_others(others, weights.shape[:2])
        lengths = [weights.shape[2:], *(each.shape[2:] for each, _ in others)]
        self._shape = tuple(weights.shape)
        self._sizes = {"layer": weights.shape[0], "head": weights.shape[1], "sentence": len(lengths)}
        self._sizes |= {"query": max(q_len for q_len, _ in lengths), "key": max(k_len for _, k_len in lengths)}
        sentence = self._check_range("sentence", sentence)
        shown_weights = [weights, *(each for each, _ in others)][sentence]
        selected = {"layer": layer, "head": head, "query": shown_weights.shape[2] - 1 if query is None else query}
        selected = {name: self._check_range(name, index) for name, index in selected.items()}
        if key is None:
            key = int(
                shown_weights[
                    selected["layer"], selected["head"], min(selected["query"], shown_weights.shape[2] - 1)
                ].argmax()
            )
        self._is_built = False
        fixed_traits = {"tokens": tokens, "key_tokens": key_tokens, "overview": overview}
        if controls is None and isinstance(overview, str) and overview:
            controls = [group for group in self.groups if group not in ("layer", "heads")]
        selected |= {"key": key, "sentence": sentence}
        super().__init__(weights=weights, **fixed_traits, others=others, d_model=d_model, **selected, controls=controls)
        self._is_built = True

    def _check_range(self, name, index):
        return as_integer(name, index, 0, self._sizes[name] - 1)

    @traitlets.validate("layer", "head", "query", "key", "sentence")
    def _check_selection(self, proposal):
        return self._check_range(proposal.trait.name, proposal.value)

    @traitlets.validate("overview")
    def _check_overview(self, proposal):
        overview = proposal.value
        if self._is_built and bool(overview) != bool(self.overview):
            raise ValueError(f"overview cannot change from {self.overview!r} to {overview!r}: make a new lab")
        if overview:
            as_option("overview", overview, OVERVIEWS)
            if overview not in ("maps", "weight") and self.tokens != self.key_tokens:
                rule = "'maps' or 'weight' if key_tokens are not the tokens"
                raise ValueError(f"overview must be {rule}, got {overview!r}")
        return overview

    @traitlets.validate("weights")
    def _check_weights(self, proposal):
        weights = _stack_layers(proposal.value)
        if weights.shape != self._shape:
            raise ValueError(f"weights must keep their shape {self._shape}, got {tuple(weights.shape)}")
        return weights

    @traitlets.validate("tokens", "key_tokens", "d_model")
    def _check_fixed(self, proposal):
        if self._is_built and proposal.value != getattr(self, proposal.trait.name):
            raise ValueError(f"{proposal.trait.name} cannot change, got {format_value(proposal.value)}: make a new lab")
        return proposal.value

    @traitlets.validate("others")
    def _check_others(self, proposal):
        if self._is_built and proposal.value is not self.others:
            new, current = ([tokens for _, tokens in each] for each in (proposal.value, self.others))
            if new != current:
                raise ValueError("others cannot change: make a new lab")
        return proposal.value

    @property
    def chosen(self):
        weights = [self.weights, *(each for each, _ in self.others)][self.sentence]
        return weights[self.layer, self.head, min(self.query, weights.shape[2] - 1)]


def _stack_layers(weights):
    """Return the weights as one float32 tensor (layers, heads, q_len, k_len), or raise an error."""
    given = weights
    if isinstance(given, (list, tuple)) and given and all(isinstance(w, torch.Tensor) for w in given):
        given = [w[0] if w.ndim == 4 and len(w) == 1 else w for w in given]
        if len({w.shape for w in given}) > 1 or given[0].ndim != 3:
            shapes = ", ".join(dict.fromkeys(str(tuple(w.shape)) for w in weights))
            raise ValueError(f"weights of layers must all have the same shape (heads, q_len, k_len), got {shapes}")
        given = torch.stack([w.detach().cpu() for w in given])
    try:
        weights = torch.as_tensor(given).detach().to("cpu", torch.float32)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"weights must be a tensor or a list of tensors, got {type_name(weights)}") from None
    if weights.ndim == 3:
        weights = weights[None]
    shape = tuple(weights.shape)
    if weights.ndim != 4 or not weights.numel():
        raise ValueError(f"weights must have shape (layers, heads, q_len, k_len) with no empty axis, got {shape}")
    limits = (MAX_LAYERS, MAX_HEADS, MAX_TOKENS, MAX_TOKENS)
    if any(size > most for size, most in zip(shape, limits)) or math.prod(shape) > MAX_WEIGHTS:
        raise ValueError(
            f"weights must be at most {limits} along (layers, heads, q_len, k_len), {MAX_WEIGHTS} in all, got {shape}"
        )
    if not ((weights >= 0) & (weights <= 1.001)).all():  # also false for NaN; 1.001 allows for half precision
        low, high = weights.min().item(), weights.max().item()
        raise ValueError(f"weights must be from 0 to 1, as after a softmax, got values from {low:g} to {high:g}")
    return weights.clamp(max=1)


def _as_others(others, layers_and_heads):
    """Return pairs of weights and tokens, with the layers and heads of the first sentence, or raise an error."""
    if not isinstance(others, (list, tuple)) or not all(isinstance(o, (list, tuple)) and len(o) == 2 for o in others):
        raise TypeError(f"others must be pairs of weights and tokens, got {format_value(others)}")
    pairs = []
    for given, tokens in others:
        weights = _stack_layers(given)
        if weights.shape[:2] != layers_and_heads or weights.shape[2] != weights.shape[3]:
            expected = f"({layers_and_heads[0]}, {layers_and_heads[1]}, seq, seq)"
            raise ValueError(f"others must have weights of shape {expected}, got {tuple(weights.shape)}")
        pairs.append((weights, _as_tokens("others", tokens, "q_len", weights.shape[2])))
    return pairs


def _as_tokens(name, tokens, axis, size):
    """Return the tokens as a list of str with the length of the axis, or raise an error."""
    tokens = as_strings(name, tokens)
    if len(tokens) != size:
        raise ValueError(f"{name} must have one token for each position along {axis}, {size}, got {len(tokens)}")
    return tokens
