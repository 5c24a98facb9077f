"""The layers of the encoder and the decoder.

A layer consists of attention and a feed-forward network, each with a residual connection and a norm.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import TypedDict

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import Self

from .arguments import as_sizes, require_features, require_mask, require_one_of, require_probability
from .cache import KeyValueCache, StateCache
from .multi_head import MultiHeadAttention
from .normalization import LayerNorm, new_norm

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": partial(F.gelu, approximate="tanh"), "silu": F.silu}


def default_d_ff(d_model: int, gated: bool) -> int:
    """Return the default width of a feed-forward layer; a gate, which is a third matrix, reduces it to two thirds."""
    return 8 * d_model // 3 if gated else 4 * d_model


class FeedForward(nn.Module):
    """Two linear maps with an activation between them, applied to each position; with a gate, three linear maps.

    The output is ``linear2(activation(linear1(x)))`` without a gate, and ``linear2(activation(gate(x)) * linear1(x))``
    with a gate. The gated layer is called SwiGLU with SiLU, and GEGLU with GELU.

    Parameters
    ----------
    d_model : int
    d_ff : int, optional
        Number of features between the maps; by default ``4 * d_model``, or ``8 * d_model // 3`` with a gate, so that
        the three matrices have as many weights as the two matrices of a layer without a gate.
    activation : {"relu", "gelu", "gelu_tanh", "silu"}, optional
        ``"gelu_tanh"`` is GPT-2's approximation of GELU by a tanh; ``"silu"`` is ``x * sigmoid(x)``, also called swish.
    dropout : float, optional
        Probability with which a feature between the maps is dropped in training.
    bias : bool, optional
        Whether the maps add a bias.
    gated : bool, optional
        Whether the activation of a third map, ``gate``, multiplies the output of ``linear1``.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.3, equation 2. Shazeer, "GLU Variants Improve
    Transformer", 2020, equation 6.

    Examples
    --------
    >>> FeedForward(d_model=4, d_ff=16)(torch.zeros(2, 5, 4)).shape
    torch.Size([2, 5, 4])
    >>> FeedForward(d_model=576, activation="silu", bias=False, gated=True).gate
    Linear(in_features=576, out_features=1536, bias=False)
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int | None = None,
        activation: str = "relu",
        dropout: float = 0.0,
        bias: bool = True,
        gated: bool = False,
    ):
        super().__init__()
        (d_model,) = as_sizes(d_model=d_model)
        (d_ff,) = as_sizes(d_ff=default_d_ff(d_model, gated) if d_ff is None else d_ff)
        require_probability(dropout=dropout)
        require_one_of(ACTIVATIONS, activation=activation)
        self.activation = activation
        self.linear1 = nn.Linear(d_model, d_ff, bias=bias)
        self.linear2 = nn.Linear(d_ff, d_model, bias=bias)
        self.gate = nn.Linear(d_model, d_ff, bias=bias) if gated else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output at each position, with the shape of ``x``, (..., seq, d_model)."""
        require_features(self.linear1.weight, x=x)
        activation, features = ACTIVATIONS[self.activation], self.linear1(x)  # (..., seq, d_ff)
        features = activation(features) if self.gate is None else activation(self.gate(x)) * features
        return self.linear2(_apply_dropout(self.dropout, features))


class LayerOptions(TypedDict, total=False):
    """Layer options that stacks and models accept only by name; :class:`EncoderLayer` documents these options."""

    norm: str
    eps: float | None
    gated: bool
    n_kv_heads: int | None
    rotate: Callable[[Tensor, Tensor], Tensor] | None
    d_head: int | None
    qk_norm: bool
    window: int | None


class AllLayerOptions(LayerOptions, total=False):
    """All options of a layer. Stacks and models pass them by name, so that no two can be mixed up."""

    dropout: float
    norm_first: bool
    activation: str
    bias: bool


class _Layer(nn.Module):
    """The parts that both layers share. Stacks and models have the same options and defaults, as a test confirms."""

    TorchLayer: type[nn.Module]
    has_cross_attention: bool
    cross_attention: MultiHeadAttention

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: str = "relu",
        bias: bool = True,
        *,
        norm: str = "layer",
        eps: float | None = None,
        gated: bool = False,
        n_kv_heads: int | None = None,
        rotate: Callable[[Tensor, Tensor], Tensor] | None = None,
        d_head: int | None = None,
        qk_norm: bool = False,
        window: int | None = None,
    ):
        super().__init__()
        self.norm_first = norm_first
        options = {"n_kv_heads": n_kv_heads, "d_head": d_head, "qk_norm": qk_norm, "eps": eps}
        new_attention = partial(MultiHeadAttention, d_model, n_heads, bias=bias, dropout=dropout, **options)
        self.self_attention = new_attention(rotate=rotate, window=window)
        if self.has_cross_attention:
            self.cross_attention = new_attention()
        self.feed_forward = FeedForward(d_model, d_ff, activation, dropout, bias, gated)
        self.norm1 = new_norm(norm, d_model, eps, bias)
        self.norm2 = new_norm(norm, d_model, eps, bias)
        if self.has_cross_attention:
            self.norm3 = new_norm(norm, d_model, eps, bias)
        self.dropout = nn.Dropout(dropout)

    @classmethod
    def from_torch(cls, module: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> Self:
        """Return a layer that computes the same as ``module``, a PyTorch layer, from copies of the module's weights.

        The result is batch first, even if ``module`` is not. If this layer does not support an option of
        ``module``, a ValueError names the option.
        """
        if not isinstance(module, cls.TorchLayer):
            raise TypeError(f"module must be a torch.nn.{cls.TorchLayer.__name__}, got {type(module).__name__}")
        dropouts = {part.p for part in module.modules() if isinstance(part, nn.Dropout)}
        dropouts |= {part.dropout for part in module.modules() if isinstance(part, nn.MultiheadAttention)}
        if len(dropouts) > 1:
            raise ValueError(f"module must have one dropout for all its parts, got {sorted(dropouts)}")
        with torch.device("meta"):
            layer = cls(
                module.self_attn.embed_dim,
                module.self_attn.num_heads,
                module.linear1.out_features,
                dropout=dropouts.pop(),
                norm_first=module.norm_first,
                activation=_activation_name(module.activation),
            )
        layer.self_attention = MultiHeadAttention.from_torch(module.self_attn)
        layer.feed_forward.linear1 = deepcopy(module.linear1)
        layer.feed_forward.linear2 = deepcopy(module.linear2)
        layer.norm1 = LayerNorm.from_torch(module.norm1)
        layer.norm2 = LayerNorm.from_torch(module.norm2)
        if isinstance(module, nn.TransformerDecoderLayer):
            layer.cross_attention = MultiHeadAttention.from_torch(module.multihead_attn)
            layer.norm3 = LayerNorm.from_torch(module.norm3)
        return layer.train(module.training)

    def _residual(self, x, part, norm):
        """Return ``x + part(x)``, a residual connection, with a norm before the part or after the addition."""
        if self.norm_first:
            return x + _apply_dropout(self.dropout, part(norm(x)))
        return norm(x + _apply_dropout(self.dropout, part(x)))


class EncoderLayer(_Layer):
    """Self-attention, then a feed-forward network, each with a residual connection and a norm.

    With a causal mask, this is also the layer of a decoder-only model.

    Parameters
    ----------
    d_model, n_heads, d_ff : int
    dropout : float, optional
        Probability with which attention weights, features between the feed-forward maps, and features of each part's
        output are dropped in training.
    norm_first : bool, optional
        ``False`` normalizes sums, ``norm(x + part(x))``, as the paper does (post-norm). ``True`` normalizes the
        input of each part, ``x + part(norm(x))`` (pre-norm).
    activation : {"relu", "gelu", "gelu_tanh", "silu"}, optional
    bias : bool, optional
        Whether linear maps and norms add a bias; RMS norm has none.
    norm : {"layer", "rms"}, optional
        :class:`LayerNorm` or :class:`RMSNorm`.
    eps : float, optional
        The eps of the norms; by default 1e-5 for ``"layer"``, and 1e-6 for ``"rms"`` and for ``qk_norm``.
    gated : bool, optional
        As in :class:`FeedForward`.
    n_kv_heads : int, optional
        As in :class:`MultiHeadAttention`.
    rotate : function, optional
        As in :class:`MultiHeadAttention`, for self-attention.
    d_head, qk_norm : optional
        As in :class:`MultiHeadAttention`.
    window : int, optional
        As in :class:`MultiHeadAttention`, for self-attention. If only some layers have a window, as in Gemma 3, set
        ``layer.self_attention.window`` of each layer.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.1. Xiong et al., "On Layer Normalization in the
    Transformer Architecture", 2020, table 1, for pre-norm.

    Examples
    --------
    >>> EncoderLayer(d_model=8, n_heads=2, d_ff=32)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    TorchLayer, has_cross_attention = nn.TransformerEncoderLayer, False

    def forward(self, x: Tensor, mask: Tensor | None = None, *, is_causal: bool = False) -> Tensor:
        """Return the tokens after self-attention and the feed-forward network.

        Parameters
        ----------
        x : Tensor, shape (..., seq, d_model)
        mask : Tensor of bool, broadcastable to (..., heads, seq, seq), optional
            ``True`` where a token (row) may attend to a token (column).
        is_causal : bool, optional
            Whether tokens attend only to themselves and earlier tokens; used instead of a mask.

        Returns
        -------
        Tensor, shape (..., seq, d_model)
        """
        return self._run(x, lambda x: self.self_attention(x, mask=mask, is_causal=is_causal))

    @torch.no_grad()
    def step(self, x: Tensor, cache: KeyValueCache | StateCache) -> Tensor:
        """Return the outputs for new tokens, as the causal layer would compute them from the whole sequence.

        ``cache``, from ``self_attention.new_cache()``, contains the earlier tokens; the new tokens are added to it.
        """
        return self._run(x, lambda x: self.self_attention.step(x, cache))

    def _run(self, x, self_attend):
        require_features(self.self_attention.q_proj.weight, x=x)
        x = self._residual(x, self_attend, self.norm1)
        return self._residual(x, self.feed_forward, self.norm2)


class DecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, and a feed-forward network.

    Each part has a residual connection and a norm, as in :class:`EncoderLayer`.

    Parameters
    ----------
    d_model, n_heads, d_ff : int
    dropout, norm_first, activation, bias, norm, eps, gated, n_kv_heads, rotate, d_head, qk_norm, window : optional
        As in :class:`EncoderLayer`: ``rotate`` and ``window`` for self-attention, ``n_kv_heads``, ``d_head`` and
        ``qk_norm`` for both attentions.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.1.

    Examples
    --------
    >>> layer = DecoderLayer(d_model=8, n_heads=2, d_ff=32)
    >>> layer(torch.zeros(2, 5, 8), torch.zeros(2, 7, 8), is_causal=True).shape
    torch.Size([2, 5, 8])
    """

    TorchLayer, has_cross_attention = nn.TransformerDecoderLayer, True

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the target's tokens after self-attention, cross-attention and the feed-forward network.

        Parameters
        ----------
        x : Tensor, shape (..., q_len, d_model)
            The target.
        memory : Tensor, shape (..., k_len, d_model)
            The encoder's output for the source.
        mask : Tensor of bool, broadcastable to (..., heads, q_len, q_len), optional
            ``True`` where a target token (row) may attend to a target token (column).
        memory_mask : Tensor of bool, broadcastable to (..., heads, q_len, k_len), optional
            ``True`` where a target token may attend to a source token.
        is_causal : bool, optional
            Whether target tokens attend only to themselves and earlier tokens; used instead of ``mask``.

        Returns
        -------
        Tensor, shape (..., q_len, d_model)
        """
        require_features(self.cross_attention.k_proj.weight, memory=memory)
        if memory_mask is not None:
            require_features(self.self_attention.q_proj.weight, x=x)
            scores_shape = (*x.shape[:-2], self.cross_attention.n_heads, x.shape[-2], memory.shape[-2])
            require_mask(memory_mask, scores_shape, x.device, "memory_mask")
        return self._run(
            x,
            lambda x: self.self_attention(x, mask=mask, is_causal=is_causal),
            lambda x: self.cross_attention(x, memory, mask=memory_mask),
        )

    @torch.no_grad()
    def step(
        self,
        x: Tensor,
        cache: KeyValueCache | StateCache,
        memory: tuple[Tensor, Tensor],
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the outputs for new tokens, as the causal layer would compute them from the whole target.

        ``cache``, from ``self_attention.new_cache()``, contains the earlier tokens; the new tokens are added to it.
        ``memory`` is the pair of keys and values that ``cross_attention.project`` computes once, from the encoder's
        output.
        """
        return self._run(
            x,
            lambda x: self.self_attention.step(x, cache),
            lambda x: self.cross_attention.attend_projected(x, *memory, memory_mask),
        )

    def _run(self, x, self_attend, cross_attend):
        require_features(self.self_attention.q_proj.weight, x=x)
        x = self._residual(x, self_attend, self.norm1)
        x = self._residual(x, cross_attend, self.norm2)
        return self._residual(x, self.feed_forward, self.norm3)


def _apply_dropout(dropout, x):
    """Apply dropout in training. In evaluation, skipping the dropout modules saves three calls per layer and token."""
    return dropout(x) if dropout.training else x


def _activation_name(activation):
    if activation in (F.relu, torch.relu) or isinstance(activation, nn.ReLU):
        return "relu"
    if activation is F.gelu or isinstance(activation, nn.GELU):
        return "gelu_tanh" if getattr(activation, "approximate", "none") == "tanh" else "gelu"
    if activation is F.silu or isinstance(activation, nn.SiLU):
        return "silu"
    raise ValueError(f"module must have activation relu, gelu or silu, got {activation}")
