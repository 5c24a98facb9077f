"""The mask lab: which query sees which key, the steps from scores to output, and the effects of classic mistakes."""

import math
import re
from dataclasses import KW_ONLY, asdict, dataclass

import torch
import traitlets

from ..arguments import format_value, type_name
from ..attention import attention_weights
from ..masks import causal_mask, sliding_window_mask
from .lab import Lab, as_integer, as_option, as_strings, as_tensor, script, style

PAD = "<pad>"
SENTENCE = "the cat sat on the mat"
SOURCE = "il gatto sedeva sul tappeto"
MAX_TOKENS, MAX_LETTERS, MAX_FEATURES = 12, 16, 256
D_HEAD, D_VALUE = 4, 2  # the number of features of the invented vectors


@dataclass(frozen=True)
class Preset:
    """A preset: what it hides, its label, and a description with placeholders for lengths."""

    label: str
    description: str
    _: KW_ONLY
    causal: bool = False
    padding: bool = False
    window: bool = False
    prefix: bool = False
    queries: str = "tokens"  # the sentence of the queries
    keys: str = "tokens"  # the sentence of the keys
    is_block: bool = False  # whether the preset is for one of a Transformer's attention blocks


PRESETS = {
    "everything": Preset("everything", "Every query sees every key: no mask."),
    "causal": Preset("causal", "A token sees itself and the tokens before it.{end}", causal=True),
    "padding": Preset(
        "padding", "Padding is hidden as a key, from every query: in columns, not in rows.", padding=True
    ),
    "both": Preset(
        "causal + padding", "A token sees itself and the tokens before it, except padding.", causal=True, padding=True
    ),
    "window": Preset("window", "A token sees {window}.{end}", causal=True, window=True),
    "prefix": Preset("prefix", "All tokens see the first {prefix}; the rest is causal.{end}", causal=True, prefix=True),
    "encoder": Preset(
        "encoder",
        "The encoder’s self-attention: the source sees itself, without its padding.",
        padding=True,
        queries="source",
        keys="source",
        is_block=True,
    ),
    "decoder self": Preset(
        "decoder: self",
        "The decoder’s self-attention: causal, and without the target’s own padding.",
        causal=True,
        padding=True,
        is_block=True,
    ),
    "decoder cross": Preset(
        "decoder: cross",
        "The decoder’s cross-attention: each target token sees the whole source, without the source’s padding. "
        "This mask is not causal.",
        padding=True,
        keys="source",
        is_block=True,
    ),
}
MISTAKES = ("none", "after softmax", "inverted", "times zero", "diagonal", "padded rows", "large negative")


class MaskLab(Lab):
    """Hide keys from queries, cell by cell or by a preset, and see how scores, weights and output change.

    Parameters
    ----------
    tokens : str or sequence of str, optional
        The sentence, at most 12 tokens of at most 16 characters; ``<pad>`` is padding. With your own tensors, the names
        of the queries.
    preset : str, optional
        The initial preset: ``"everything"`` (no mask), ``"causal"`` (the default), ``"padding"``, ``"both"`` (causal
        and padding), ``"window"``, ``"prefix"``, or a place in a Transformer: ``"encoder"`` (the source sees itself),
        ``"decoder self"`` (the sentence sees itself), ``"decoder cross"`` (the sentence sees the source).
    source : str or sequence of str, optional
        The source sentence, for the encoder and cross-attention. With your own tensors, the names of the keys.
    query : Tensor or sequence, shape (q_len, d_head), optional
        Your own tensors, with at most 12 rows and 256 features, instead of invented vectors for the words.
    key : Tensor or sequence, shape (k_len, d_head), optional
        The keys; ``query`` when left out.
    value : Tensor or sequence, shape (k_len, d_value), optional
        The values. Without them, the lab shows no output.
    mask : Tensor of bool, shape (q_len, k_len), optional
        The initial mask: ``True`` where a query may attend to a key.
    window : int
        The number of tokens that each token sees with the preset ``"window"``, from 1 to 12.
    prefix : int
        The number of tokens at the start that every token sees with the preset ``"prefix"``, from 0 to 12.
    mistake : str
        ``"none"``, ``"after softmax"`` (the weights are masked), ``"inverted"``, ``"times zero"`` (scores are
        multiplied by the mask), ``"diagonal"`` (the diagonal is hidden too), ``"padded rows"`` (rows of padding are
        hidden too), or ``"large negative"`` (-1e9 instead of -inf).

    controls : sequence of str, optional
        The groups of controls to show: any of ``"sentence"``, ``"mask"``, ``"place"`` (in a Transformer), ``"stages"``
        (all four tables; without it, the weights alone), ``"blend"`` and ``"mistake"``; all when left out.

    Attributes
    ----------
    mask : Tensor of bool, shape (q_len, k_len)
        The mask that the reader has set, without the mistake. You can also assign a mask.
    query, key, value : Tensor, float32
        The invented vectors of the words, or your own tensors. Equal words have equal vectors.
    scores : Tensor, shape (q_len, k_len)
        ``query · keyᵀ / √d_head``, before the mask.
    weights : Tensor, shape (q_len, k_len)
        The attention weights, computed with the chosen mistake. A row that sees nothing is all zeros.
    output : Tensor, shape (q_len, d_value)
        ``weights · value``; ``None`` without a value.

    Examples
    --------
    >>> lab = MaskLab("the cat sat", "causal")
    >>> lab
    MaskLab(tokens=('the', 'cat', 'sat'), preset='causal', mistake='none')
    >>> lab.mask
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])
    """

    _esm = script("masks_maths", "masks_words", "masks_stage", "masks")
    _css = style("masks")
    groups = ("sentence", "mask", "place", "stages", "blend", "mistake")

    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    source = traitlets.List(traitlets.Unicode()).tag(sync=True)
    preset = traitlets.Unicode().tag(sync=True)
    window = traitlets.Int().tag(sync=True)
    prefix = traitlets.Int().tag(sync=True)
    flipped = traitlets.List(traitlets.List(traitlets.Int())).tag(sync=True)  # the cells that differ from the preset
    mistake = traitlets.Unicode().tag(sync=True)
    at = traitlets.List(traitlets.Int()).tag(sync=True)  # the selected cell: [query, key]
    given = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)  # the user's tensors, as lists
    # This is a list, since a published page sorts the keys of dicts.
    presets = traitlets.List([{"name": name, **asdict(preset)} for name, preset in PRESETS.items()]).tag(sync=True)
    limits = traitlets.Dict({"tokens": MAX_TOKENS, "letters": MAX_LETTERS, "d_head": D_HEAD, "d_value": D_VALUE}).tag(
        sync=True
    )

    def __init__(
        self,
        tokens=None,
        preset=None,
        *,
        source=None,
        query=None,
        key=None,
        value=None,
        mask=None,
        window=3,
        prefix=2,
        mistake="none",
        controls=None,
    ):
        given = _own_tensors(query, key, value)
        if given is None:
            chosen = PRESETS.get(preset) if isinstance(preset, str) else None
            padded_sentence = chosen.keys if chosen and chosen.padding else None
            if tokens is None:
                tokens = SENTENCE + f" {PAD} {PAD}" * (padded_sentence == "tokens")
            if source is None:
                source = SOURCE + f" {PAD} {PAD}" * (padded_sentence == "source")
        else:
            tokens = _numbered_names(len(given["query"]), "x" if key is None else "q") if tokens is None else tokens
            if source is None:
                source = tokens if key is None else _numbered_names(len(given["key"]), "k")
        tokens, source = _as_tokens("tokens", tokens), _as_tokens("source", source)
        if given is not None:
            _check_names("tokens", tokens, "query", given)
            _check_names("source", source, "key", given)
        super().__init__(
            tokens=tokens,
            source=source,
            preset="causal" if preset is None else preset,
            window=window,
            prefix=prefix,
            flipped=[],
            mistake=mistake,
            at=[2, 0],
            given=given,
            controls=controls,
        )
        if mask is not None:
            self._set_mask(mask, find_preset=preset is None)

    @property
    def repr_traits(self):
        """Return the traits that the repr shows: the source only if it is used, and the flipped cells only if there are
        any."""
        names = ["tokens"] * (self._side_names != (self.source, self.source)) + ["source"] * (
            self.source in self._side_names
        )
        return (*names, "preset", *["flipped"] * bool(self.flipped), "mistake")

    @property
    def offered(self):
        """Return the presets that are possible for this lab's tokens."""
        possible = PRESETS
        if self.given is not None:
            possible = {
                name: preset
                for name, preset in PRESETS.items()
                if not preset.is_block and (not preset.padding or PAD in self.source)
            }
        return tuple(possible)

    @property
    def query(self):
        return self._vectors("query", self._side_names[0], D_HEAD)

    @property
    def key(self):
        return self._vectors("key", self._side_names[1], D_HEAD)

    @property
    def value(self):
        return self._vectors("value", self._side_names[1], D_VALUE)

    @property
    def mask(self):
        mask = self._preset_mask()
        for i, j in self.flipped:
            if 0 <= i < mask.shape[0] and 0 <= j < mask.shape[1]:  # a sentence may have become shorter
                mask[i, j] ^= True
        return mask

    @mask.setter
    def mask(self, mask):
        self._set_mask(mask)

    @property
    def scores(self):
        return self.query @ self.key.T / math.sqrt(self.query.shape[1])

    @property
    def weights(self):
        query, key, mask = self.query, self.key, self.mask
        if self.mistake == "after softmax":
            return attention_weights(query, key) * mask
        if self.mistake == "inverted":
            return attention_weights(query, key, ~mask)
        if self.mistake == "times zero":
            return torch.softmax(self.scores * mask, dim=-1)
        if self.mistake == "large negative":
            return torch.softmax(self.scores.masked_fill(~mask, -1e9), dim=-1)
        if self.mistake == "diagonal":
            q_len, k_len = mask.shape
            mask = mask & ~torch.ones_like(mask).tril(k_len - q_len).triu(k_len - q_len)
        if self.mistake == "padded rows":
            mask = mask & _real_token_mask(self._side_names[0])[:, None]
        return attention_weights(query, key, mask)

    @property
    def output(self):
        return None if self.value is None else self.weights @ self.value

    @property
    def _side_names(self):
        """Return the names of the queries and of the keys."""
        preset = PRESETS[self.preset]
        return getattr(self, preset.queries), self.source if self.given is not None else getattr(self, preset.keys)

    def _vectors(self, role, words, features):
        if self.given is None:
            return torch.tensor([hashed_vector(word, role, features) for word in words])
        rows = self.given[role]
        return None if rows is None else torch.tensor(rows, dtype=torch.float32)

    def _preset_mask(self):
        preset, (queries, keys) = PRESETS[self.preset], self._side_names
        q_len, k_len = len(queries), len(keys)
        mask = torch.ones(q_len, k_len, dtype=torch.bool)
        if preset.causal:
            mask = causal_mask(q_len, k_len)
        if preset.window:
            mask = sliding_window_mask(max(q_len, k_len), self.window)[-q_len:, -k_len:].clone()
        if preset.prefix:
            mask = mask | (torch.arange(k_len) < self.prefix)
        if preset.padding:
            mask = mask & _real_token_mask(keys)
        return mask

    def _set_mask(self, mask, find_preset=False):
        shape = tuple(len(names) for names in self._side_names)
        if not isinstance(mask, torch.Tensor):
            raise TypeError(f"mask must be a tensor of bool, got {type_name(mask)}")
        if mask.dtype != torch.bool:
            raise TypeError(f"mask must be bool, True where a query may attend, got {mask.dtype}")
        if tuple(mask.shape) != shape:
            raise ValueError(f"mask must have shape (q_len, k_len), here {shape}, got {tuple(mask.shape)}")
        mask = mask.cpu()
        if find_preset:
            for name in (
                "causal",
                *(name for name in self.offered if not PRESETS[name].is_block),
                "everything",
            ):
                self.preset = name
                if torch.equal(self._preset_mask(), mask):
                    break
        self.flipped = (mask ^ self._preset_mask()).nonzero().tolist()

    @traitlets.validate("tokens", "source")
    def _check_tokens(self, proposal):
        name, tokens = proposal.trait.name, proposal.value
        if not 1 <= len(tokens) <= MAX_TOKENS:
            raise ValueError(f"{name} must have from 1 to {MAX_TOKENS} tokens, got {len(tokens)}")
        for token in tokens:
            if token.split() != [token] or len(token) > MAX_LETTERS:
                raise ValueError(
                    f"{name} must be words of 1 to {MAX_LETTERS} characters without spaces, got {format_value(token)}"
                )
        if self.given is not None:
            _check_names(name, tokens, "query" if name == "tokens" else "key", self.given)
        return tokens

    @traitlets.validate("preset")
    def _check_preset(self, proposal):
        return as_option("preset", proposal.value, self.offered)

    @traitlets.validate("mistake")
    def _check_mistake(self, proposal):
        return as_option("mistake", proposal.value, MISTAKES)

    @traitlets.validate("window", "prefix")
    def _check_length(self, proposal):
        name = proposal.trait.name
        return as_integer(name, proposal.value, 1 if name == "window" else 0, MAX_TOKENS)

    @traitlets.validate("flipped", "at")
    def _check_cells(self, proposal):
        name, cells = proposal.trait.name, proposal.value
        for cell in cells if name == "flipped" else [cells]:
            if len(cell) != 2 or min(cell) < 0:
                cells_text = "a list of cells [query, key]" if name == "flipped" else "a cell [query, key]"
                raise ValueError(f"{name} must be {cells_text}, counted from 0, got {format_value(cell)}")
        return cells


def hashed_vector(word, role, features):
    """Return numbers from -2 to 2 with one decimal: a hash of word and role, as in hashedVector in masks_maths.js."""
    hash_value = 5728  # a seed with which the default sentence has varied scores
    for letter in role[0] + word:
        hash_value = (hash_value ^ ord(letter)) * 16777619 % 2**32  # as FNV-1a does
    numbers = []
    for _ in range(features):
        hash_value = (hash_value + 2654435769) % 2**32
        mixed = (hash_value ^ hash_value >> 16) * 2246822507 % 2**32  # the last steps of MurmurHash3
        mixed = (mixed ^ mixed >> 13) * 3266489909 % 2**32
        numbers.append(((mixed ^ mixed >> 16) % 41 - 20) / 10)
    return numbers


def _as_tokens(name, tokens):
    """Split a sentence into words and punctuation marks; a list of tokens is returned unchanged."""
    words = re.findall(r'[^\s.,;:!?"“”()…]+|[.,;:!?"“”()…]', tokens) if isinstance(tokens, str) else tokens
    return as_strings(name, words)


def _numbered_names(count, letter):
    return [f"{letter}{i}" for i in range(count)]


def _check_names(name, tokens, role, given):
    if len(tokens) != len(given[role]):
        raise ValueError(
            f"{name} must name the {len(given[role])} rows of {role}, got {len(tokens)}: {format_value(tuple(tokens))}"
        )


def _real_token_mask(tokens):
    return torch.tensor([token != PAD for token in tokens])


def _own_tensors(query, key, value):
    """Return the user's tensors as lists, or ``None`` if there are none; raise an error for invalid tensors."""
    if query is None:
        for name, x in (("key", key), ("value", value)):
            if x is not None:
                raise ValueError(f"{name} must come with a query, got {name} alone")
        return None
    query = _as_matrix("query", query, "(q_len, d_head)")
    key = query if key is None else _as_matrix("key", key, "(k_len, d_head)")
    if query.shape[1] != key.shape[1]:
        raise ValueError(f"query and key must share d_head, got {query.shape[1]} and {key.shape[1]}")
    if value is not None:
        value = _as_matrix("value", value, "(k_len, d_value)")
        if len(value) != len(key):
            raise ValueError(f"key and value must share k_len, got {len(key)} and {len(value)}")
        value = value.tolist()
    return {"query": query.tolist(), "key": key.tolist(), "value": value}


def _as_matrix(name, x, axes):
    return as_tensor(name, x, axes, (1, 1), (MAX_TOKENS, MAX_FEATURES))
