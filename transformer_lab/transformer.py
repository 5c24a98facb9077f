"""Embeddings, stacks of layers, and two models that generate tokens: the Transformer and a language model."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypedDict

import torch
from torch import Tensor, nn
from typing_extensions import Self, Unpack

from .arguments import (
    format_value,
    is_integer,
    is_number,
    require_integers,
    require_known_options,
    require_mask,
    require_one_of,
    require_probability,
    require_sizes,
    suggest_float,
    values_are_known,
)
from .cache import KeyValueCache, StateCache
from .layers import AllLayerOptions, DecoderLayer, EncoderLayer, LayerOptions
from .masks import causal_mask
from .normalization import LayerNorm, RMSNorm, new_norm
from .positions import rotary, sinusoidal_positions


class _Stack(nn.Module):
    """The parts that encoder and decoder share: layers, and an optional norm after the last layer."""

    Layer: type[EncoderLayer] | type[DecoderLayer]
    norm: LayerNorm | RMSNorm | None
    TorchStack: type[nn.Module]

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        n_layers: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: str = "relu",
        bias: bool = True,
        *,
        final_norm: bool | None = None,
        **options: Unpack[LayerOptions],
    ):
        super().__init__()
        require_known_options(type(self), LayerOptions.__annotations__, options)
        require_sizes(minimum=0, n_layers=n_layers)
        final_norm = norm_first if final_norm is None else final_norm
        layer_options = AllLayerOptions(
            dropout=dropout, norm_first=norm_first, activation=activation, bias=bias, **options
        )
        self.layers = nn.ModuleList(self.Layer(d_model, n_heads, d_ff, **layer_options) for _ in range(n_layers))
        norm, eps = layer_options.get("norm", "layer"), layer_options.get("eps")
        self.norm = new_norm(norm, d_model, eps, bias) if final_norm else None

    @classmethod
    def from_torch(cls, module: nn.TransformerEncoder | nn.TransformerDecoder) -> Self:
        """Return a stack that computes the same as ``module``, a PyTorch stack, from copies of the module's weights."""
        if not isinstance(module, cls.TorchStack):
            raise TypeError(f"module must be a torch.nn.{cls.TorchStack.__name__}, got {type(module).__name__}")
        stack = cls.__new__(cls)
        nn.Module.__init__(stack)
        copies = {
            layer: cls.Layer.from_torch(layer) for layer in dict.fromkeys(module.layers)
        }  # shared layers stay shared
        stack.layers = nn.ModuleList(copies[layer] for layer in module.layers)
        stack.norm = None if module.norm is None else LayerNorm.from_torch(module.norm)
        return stack.train(module.training)


class Encoder(_Stack):
    """A stack of encoder layers.

    With a causal mask, this is also the body of a decoder-only model.

    Parameters
    ----------
    d_model, n_heads, n_layers, d_ff : int
    dropout, norm_first, activation, bias : optional
        As in :class:`EncoderLayer`.
    final_norm : bool, optional
        Whether the output of the last layer is normalized once more; ``norm_first`` by default, since a pre-norm
        layer does not normalize its last sum.
    **options : optional
        ``norm``, ``eps``, ``gated``, ``n_kv_heads``, ``rotate``, ``d_head``, ``qk_norm`` and ``window``,
        as in :class:`EncoderLayer`.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.1.

    Examples
    --------
    >>> Encoder(d_model=8, n_heads=2, n_layers=3, d_ff=32)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 8])
    """

    Layer, TorchStack = EncoderLayer, nn.TransformerEncoder
    layers: Sequence[EncoderLayer]

    def forward(self, x: Tensor, mask: Tensor | None = None, *, is_causal: bool = False) -> Tensor:
        """Return one vector for each token, computed from all tokens that it may attend to.

        Parameters
        ----------
        x : Tensor, shape (..., seq, d_model)
        mask : Tensor of bool, broadcastable to (..., heads, seq, seq), optional
        is_causal : bool, optional

        Returns
        -------
        Tensor, shape (..., seq, d_model)
        """
        for layer in self.layers:
            x = layer(x, mask, is_causal=is_causal)
        return x if self.norm is None else self.norm(x)

    @torch.no_grad()
    def step(self, x: Tensor, caches: Sequence[KeyValueCache | StateCache]) -> Tensor:
        """Return the outputs for new tokens, as the causal stack would compute them from the whole sequence.

        ``caches`` contains one ``self_attention.new_cache()`` for each layer.
        """
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer.step(x, cache)
        return x if self.norm is None else self.norm(x)


class Decoder(_Stack):
    """A stack of decoder layers.

    Parameters
    ----------
    d_model, n_heads, n_layers, d_ff : int
    dropout, norm_first, activation, bias : optional
        As in :class:`EncoderLayer`.
    final_norm : bool, optional
        As in :class:`Encoder`.
    **options : optional
        As in :class:`Encoder`.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.1.

    Examples
    --------
    >>> decoder = Decoder(d_model=8, n_heads=2, n_layers=3, d_ff=32)
    >>> decoder(torch.zeros(2, 5, 8), torch.zeros(2, 7, 8), is_causal=True).shape
    torch.Size([2, 5, 8])
    """

    Layer, TorchStack = DecoderLayer, nn.TransformerDecoder
    layers: Sequence[DecoderLayer]

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
    ) -> Tensor:
        """Return one vector for each target token, computed from all target and source tokens that it may attend to.

        Parameters
        ----------
        x : Tensor, shape (..., q_len, d_model)
        memory : Tensor, shape (..., k_len, d_model)
        mask : Tensor of bool, broadcastable to (..., heads, q_len, q_len), optional
        memory_mask : Tensor of bool, broadcastable to (..., heads, q_len, k_len), optional
        is_causal : bool, optional

        Returns
        -------
        Tensor, shape (..., q_len, d_model)
        """
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask, is_causal=is_causal)
        return x if self.norm is None else self.norm(x)

    def project_memory(self, memory: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return the keys and values that each layer computes from the encoder's output, for :meth:`step`."""
        return [layer.cross_attention.project(memory) for layer in self.layers]

    @torch.no_grad()
    def step(
        self,
        x: Tensor,
        caches: Sequence[KeyValueCache | StateCache],
        memories: Sequence[tuple[Tensor, Tensor]],
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the outputs for new tokens, as the causal stack would compute them from the whole target.

        ``caches`` contains one ``self_attention.new_cache()`` for each layer, and ``memories`` is the result of
        :meth:`project_memory`.
        """
        for layer, cache, memory in zip(self.layers, caches, memories, strict=True):
            x = layer.step(x, cache, memory, memory_mask)
        return x if self.norm is None else self.norm(x)


class TokenEmbedding(nn.Module):
    """Map token numbers to vectors: a learned row for each token, times ``√d_model``, plus the position vector.

    Parameters
    ----------
    vocab_size : int
    d_model : int
    dropout : float, optional
        Probability with which a feature of the sum is dropped in training.
    sinusoidal : bool, optional
        ``False`` returns the rows unscaled and without positions, for attention with rotary positions.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, sections 3.4, 3.5 and 5.4.

    Examples
    --------
    >>> TokenEmbedding(vocab_size=10, d_model=4)(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 4])
    """

    argument_names = ("tokens", "vocab_size")  # in errors, the names of the tokens and of the vocabulary size

    def __init__(self, vocab_size: int, d_model: int, dropout: float = 0.0, *, sinusoidal: bool = True):
        super().__init__()
        require_sizes(vocab_size=vocab_size, d_model=d_model)
        require_probability(dropout=dropout)
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        if not self.weight.is_meta:  # on meta, PyTorch would import its decompositions, which takes seconds
            # Multiplying by √d_model gives features a variance of 1; positions (mean square ½) are of similar size.
            nn.init.normal_(self.weight, std=d_model**-0.5)
        self.register_buffer("positions", self._positions(128) if sinusoidal else None, persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, start: int = 0) -> Tensor:
        """Return a vector for each token.

        Parameters
        ----------
        tokens : Tensor of integers, shape (..., seq)
        start : int, optional
            The position of the first token.

        Returns
        -------
        Tensor, shape (..., seq, d_model)
        """
        vocab_size, d_model = self.weight.shape
        _require_tokens(tokens, vocab_size, self.weight.device, *self.argument_names)
        require_sizes(minimum=0, start=start)
        if self.positions is None:
            return self.dropout(nn.functional.embedding(tokens, self.weight))
        end = start + tokens.shape[-1]
        if self.positions.device != self.weight.device:  # weights were assigned to a module built on meta
            self.positions = self._positions(len(self.positions))
        if end > len(self.positions):
            self.positions = self._positions(2 * end)
        vectors = nn.functional.embedding(tokens, self.weight) * math.sqrt(d_model)  # (..., seq, d_model)
        return self.dropout(vectors + self.positions[start:end])

    def _positions(self, length):
        return sinusoidal_positions(length, self.weight.shape[1], device=self.weight.device).to(self.weight.dtype)

    def _apply(self, fn, recurse=True):
        # Positions follow the device and dtype of the weights. The positions are computed again, because to_empty would
        # leave them without values, and values on meta cannot be moved.
        positions, self.positions = self.positions, None
        super()._apply(fn, recurse)
        self.positions = None if positions is None else self._positions(len(positions))
        return self


class Transformer(nn.Module):
    """The model of the 2017 paper: it maps source and target tokens to scores of the next target token.

    Parameters
    ----------
    src_vocab, tgt_vocab : int
        Sizes of the source and target vocabularies.
    d_model, n_heads : int
    n_layers : int
        Number of layers in the encoder, and in the decoder.
    d_ff : int
    dropout, norm_first, activation, bias : optional
        As in :class:`EncoderLayer`; the output layer has no bias.
    final_norm : bool, optional
        As in :class:`Encoder`.
    share_embeddings : bool, optional
        Whether both embeddings and the output layer are one matrix, as in the paper. This requires one vocabulary for
        source and target.
    **options : optional
        As in :class:`Encoder`, for all layers.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3 and figure 1; section 3.4 for the shared matrix.

    Examples
    --------
    >>> model = Transformer(src_vocab=11, tgt_vocab=13, d_model=8, n_heads=2, n_layers=2, d_ff=32)
    >>> src, tgt = torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, 7, dtype=torch.long)
    >>> model(src, tgt).shape
    torch.Size([2, 7, 13])
    >>> model.generate(src, bos=1, max_new_tokens=4).shape
    torch.Size([2, 5])
    """

    # These three modules are None in a model that from_torch returns.
    src_embedding: TokenEmbedding | None
    tgt_embedding: TokenEmbedding | None
    output: nn.Linear | None

    def __init__(
        self,
        src_vocab: int,
        tgt_vocab: int,
        d_model: int,
        n_heads: int,
        n_layers: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: str = "relu",
        bias: bool = True,
        *,
        final_norm: bool | None = None,
        share_embeddings: bool = False,
        **options: Unpack[LayerOptions],
    ):
        super().__init__()
        require_known_options(type(self), LayerOptions.__annotations__, options)
        require_sizes(src_vocab=src_vocab, tgt_vocab=tgt_vocab)
        if share_embeddings and src_vocab != tgt_vocab:
            raise ValueError(
                f"share_embeddings requires one vocabulary, got src_vocab {src_vocab} and tgt_vocab {tgt_vocab}"
            )
        layer_options = AllLayerOptions(
            dropout=dropout, norm_first=norm_first, activation=activation, bias=bias, **options
        )
        self.src_embedding = TokenEmbedding(src_vocab, d_model, dropout)
        self.tgt_embedding = TokenEmbedding(tgt_vocab, d_model, dropout)
        self.src_embedding.argument_names = ("src", "src_vocab")
        self.tgt_embedding.argument_names = ("tgt", "tgt_vocab")
        self.encoder = Encoder(d_model, n_heads, n_layers, d_ff, final_norm=final_norm, **layer_options)
        self.decoder = Decoder(d_model, n_heads, n_layers, d_ff, final_norm=final_norm, **layer_options)
        self.output = nn.Linear(d_model, tgt_vocab, bias=False)
        if share_embeddings:
            self.src_embedding.weight = self.output.weight = self.tgt_embedding.weight

    @classmethod
    def from_torch(cls, module: nn.Transformer) -> Self:
        """Return the same model as ``module``, a ``torch.nn.Transformer``, with copies of its weights.

        Like ``torch.nn.Transformer``, the returned model has no embeddings and no output layer: its inputs and output
        are vectors, (..., length, d_model).
        """
        if not isinstance(module, nn.Transformer):
            raise TypeError(f"module must be a torch.nn.Transformer, got {type(module).__name__}")
        model = cls.__new__(cls)
        nn.Module.__init__(model)
        model.src_embedding = model.tgt_embedding = model.output = None
        model.encoder = Encoder.from_torch(module.encoder)
        model.decoder = Decoder.from_torch(module.decoder)
        return model.train(module.training)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        *,
        is_causal: bool = True,
    ) -> Tensor:
        """Return the scores of the next token at every position of the target (teacher forcing).

        Parameters
        ----------
        src : Tensor of integers, shape (batch, src_len)
        tgt : Tensor of integers, shape (batch, tgt_len)
            The decoder's input: begin-of-sequence, then the target without its last token.
        src_mask : Tensor of bool, broadcastable to (batch, heads, 1, src_len), optional
            ``True`` at real tokens, as in :func:`padding_mask`. Both the encoder and the decoder's cross-attention use
            this mask.
        tgt_mask : Tensor of bool, broadcastable to (batch, heads, tgt_len, tgt_len), optional
            ``True`` where a target token (row) may attend to a target token (column), in addition to causality.
        is_causal : bool, optional
            Whether target tokens see only themselves and earlier tokens.

        Returns
        -------
        Tensor, shape (batch, tgt_len, tgt_vocab)
        """
        memory = self.encode(src, src_mask)  # (batch, src_len, d_model)
        if src_mask is not None:
            _require_source_mask(src_mask, memory)
        _require_one_batch(src, tgt)
        return self.decode(tgt, memory, tgt_mask, src_mask, is_causal=is_causal)

    def encode(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Return one vector for each source token: Tensor, shape (batch, src_len, d_model).

        ``src_mask`` broadcasts to (batch, heads, src_len, src_len); in :meth:`forward` and :meth:`generate`, the mask
        must hide whole tokens, since the decoder also uses it to read the source.
        """
        x = src if self.src_embedding is None else self.src_embedding(src)
        if src_mask is not None:
            _require_mask_for(self.encoder, x, src_mask, "src_mask")
        return self.encoder(x, src_mask)

    def decode(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        is_causal: bool = True,
    ) -> Tensor:
        """Return the scores of the next token at every position, (batch, tgt_len, tgt_vocab), given the memory."""
        x = tgt if self.tgt_embedding is None else self.tgt_embedding(tgt)
        if is_causal and tgt_mask is not None:
            _require_mask_for(self.decoder, x, tgt_mask, "tgt_mask")
            tgt_mask, is_causal = tgt_mask & causal_mask(x.shape[-2], device=x.device), False
        x = self.decoder(x, memory, tgt_mask, memory_mask, is_causal=is_causal)
        return x if self.output is None else self.output(x)

    @torch.no_grad()
    def generate(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        *,
        bos: int,
        eos: int | None = None,
        max_new_tokens: int,
        use_cache: bool = True,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Generate a target for each source, one token at a time.

        Dropout is off during generation, in every mode of the model.

        Parameters
        ----------
        src : Tensor of integers, shape (batch, src_len)
        src_mask : Tensor of bool, broadcastable to (batch, heads, 1, src_len), optional
            ``True`` at real tokens.
        bos : int
            The token that every target begins with.
        eos : int, optional
            The token that ends a target. All positions after the first ``eos`` are filled with ``eos``.
        max_new_tokens : int
            The maximum number of generated tokens, ``bos`` not counted.
        use_cache : bool, optional
            Whether to cache keys and values of earlier tokens instead of computing them again. The result is the same.
        temperature : float, optional
            0 selects the token with the highest score; otherwise a token is drawn from ``softmax(scores /
            temperature)``.
        generator : torch.Generator, optional
            Random generator for the draws.

        Returns
        -------
        Tensor of int64, shape (batch, at most 1 + max_new_tokens)
            Shorter if all targets end early.
        """
        embedding, output = self.tgt_embedding, self.output
        if embedding is None or output is None:
            raise ValueError(
                "generate requires embeddings and an output layer: this model was made by from_torch and has neither"
            )
        require_sizes(minimum=0, bos=bos, max_new_tokens=max_new_tokens, **({} if eos is None else {"eos": eos}))
        for name, token in (("bos", bos), ("eos", eos)):
            if token is not None and token >= len(embedding.weight):
                raise ValueError(f"{name} must be below tgt_vocab, {len(embedding.weight)}, got {token}")
        _require_temperature(temperature)
        with _eval_mode(self):
            memory = self.encode(src, src_mask)  # (batch, src_len, d_model)
            if src_mask is not None:
                _require_source_mask(src_mask, memory)
            if src.ndim != 2:
                fix = ": use src[None]" if src.ndim == 1 else ""
                raise ValueError(f"src must have shape (batch, src_len), got {tuple(src.shape)}{fix}")
            if use_cache:
                caches = [layer.self_attention.new_cache() for layer in self.decoder.layers]
                memories = self.decoder.project_memory(memory)

            def next_scores(tokens, start):
                if not use_cache:
                    return self.decode(tokens, memory, memory_mask=src_mask)[:, -1]
                x = embedding(tokens[:, start:], start)
                return output(self.decoder.step(x, caches, memories, src_mask))[:, -1]

            tokens = src.new_full((src.shape[0], 1), bos, dtype=torch.long)
            stop = () if eos is None else (eos,)
            new_tokens = _generate_steps(tokens, next_scores, max_new_tokens, stop, temperature, generator)
            return torch.cat([tokens, *new_tokens], dim=1)


class SamplingOptions(TypedDict, total=False):
    """The options with which :meth:`LanguageModel.generate` chooses tokens; other functions pass these options on."""

    temperature: float
    top_k: int | None
    use_cache: bool
    generator: torch.Generator | None


class LanguageModel(nn.Module):
    """A decoder-only model, which maps tokens to the scores of the next token at every position.

    Parameters
    ----------
    vocab_size : int
    d_model, n_heads, n_layers, d_ff : int
    dropout, norm_first, activation, bias : optional
        As in :class:`EncoderLayer`; the output layer has no bias.
    final_norm : bool, optional
        As in :class:`Encoder`.
    share_embeddings : bool, optional
        Whether embedding and output layer are one matrix.
    positions : {"sinusoidal", "rotary"} or function, optional
        ``"sinusoidal"`` adds positions to the embedding, as :class:`TokenEmbedding` does; ``"rotary"`` rotates queries
        and keys in every layer, as :func:`rotary` does. A function, such as ``partial(rotary, base=500_000.0)``,
        rotates queries and keys in place of :func:`rotary`.
    **options : optional
        ``norm``, ``eps``, ``gated``, ``n_kv_heads``, ``d_head``, ``qk_norm`` and ``window``, as in
        :class:`EncoderLayer`.

    References
    ----------
    Radford et al., "Improving Language Understanding by Generative Pre-Training", 2018, section 3.1. Touvron et al.,
    "LLaMA", 2023, section 2.2, for the second example.

    Examples
    --------
    >>> model = LanguageModel(vocab_size=11, d_model=8, n_heads=2, n_layers=2, d_ff=32)
    >>> tokens = torch.zeros(2, 5, dtype=torch.long)
    >>> model(tokens).shape
    torch.Size([2, 5, 11])
    >>> model.generate(tokens, max_new_tokens=4).shape
    torch.Size([2, 9])
    >>> llama = {"norm_first": True, "norm": "rms", "activation": "silu", "gated": True, "bias": False}
    >>> LanguageModel(11, 8, 4, 2, 24, **llama, positions="rotary", n_kv_heads=2)(tokens).shape
    torch.Size([2, 5, 11])
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        n_heads: int,
        n_layers: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: str = "relu",
        bias: bool = True,
        *,
        final_norm: bool | None = None,
        share_embeddings: bool = False,
        positions: str | Callable[[Tensor, Tensor], Tensor] = "sinusoidal",
        **options: Unpack[LayerOptions],
    ):
        super().__init__()
        if "rotate" in options:
            raise TypeError("rotate must be passed as positions=, for example positions=rotate, got rotate")
        require_known_options(type(self), LayerOptions.__annotations__.keys() - {"rotate"}, options)
        if not callable(positions):
            require_one_of(("sinusoidal", "rotary"), positions=positions)
        sinusoidal = positions == "sinusoidal"
        if not sinusoidal:
            options["rotate"] = rotary if isinstance(positions, str) else positions
        layer_options = AllLayerOptions(
            dropout=dropout, norm_first=norm_first, activation=activation, bias=bias, **options
        )
        self.embedding = TokenEmbedding(vocab_size, d_model, dropout, sinusoidal=sinusoidal)
        # Without cross-attention, a decoder is an encoder with a causal mask.
        self.decoder = Encoder(d_model, n_heads, n_layers, d_ff, final_norm=final_norm, **layer_options)
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        if share_embeddings:
            self.output.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens, (batch, seq), to the scores of the next token at each position, (batch, seq, vocab_size)."""
        return self.output(self.decoder(self.embedding(tokens), is_causal=True))

    @torch.no_grad()
    def generate(
        self,
        tokens: Tensor,
        max_new_tokens: int,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        stop: Sequence[int] = (),
        use_cache: bool = True,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Continue each sequence, one token at a time.

        Dropout is off during generation, in every mode of the model.

        Parameters
        ----------
        tokens : Tensor of integers, shape (batch, seq)
            The prompt, with at least one token.
        max_new_tokens : int
        temperature : float, optional
            0 selects the token with the highest score; otherwise a token is drawn from ``softmax(scores /
            temperature)``.
        top_k : int, optional
            Draw only from the tokens with the ``top_k`` highest scores.
        stop : sequence of int, optional
            Tokens that end a sequence. All positions after the first stop token are filled with this
            token.
        use_cache : bool, optional
            Whether to cache keys and values of earlier tokens instead of computing them again. The result is the same.
        generator : torch.Generator, optional
            Random generator for the draws.

        Returns
        -------
        Tensor of int64, shape (batch, at most seq + max_new_tokens)
            The prompt and the generated tokens; shorter if all sequences end early.
        """
        options = {"temperature": temperature, "top_k": top_k, "stop": stop, "use_cache": use_cache}
        new_tokens = self.stream(tokens, max_new_tokens, **options, generator=generator)
        return torch.cat([tokens.long(), *new_tokens], dim=1)

    def stream(
        self,
        tokens: Tensor,
        max_new_tokens: int,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        stop: Sequence[int] = (),
        use_cache: bool = True,
        generator: torch.Generator | None = None,
    ) -> Iterator[Tensor]:
        """Yield the tokens that :meth:`generate` returns, each as soon as it is chosen: Tensors of int64, (batch, 1).

        The parameters are those of :meth:`generate`. The model is in evaluation mode from the first token until the
        last, or until the iterator is closed.
        """
        vocab_size = len(self.embedding.weight)
        require_sizes(minimum=0, max_new_tokens=max_new_tokens)
        _require_temperature(temperature)
        if top_k is not None:
            require_sizes(top_k=top_k)
        if is_integer(stop) or getattr(stop, "shape", None) == ():
            raise TypeError(f"stop must be a sequence of tokens, got {format_value(stop)}: use [stop]")
        if not all(is_integer(token) and 0 <= token < vocab_size for token in stop):
            rule = f"hold tokens from 0 to vocab_size - 1, which is {vocab_size - 1}"
            raise ValueError(f"stop must {rule}, got {format_value(stop)}")
        _require_tokens(tokens, vocab_size, self.embedding.weight.device, *self.embedding.argument_names)
        if tokens.ndim != 2 or not tokens.shape[1]:
            fix = ": use tokens[None]" if tokens.ndim == 1 and len(tokens) else ""
            raise ValueError(f"tokens must have shape (batch, seq), seq at least 1, got {tuple(tokens.shape)}{fix}")
        return self._stream(tokens.long(), max_new_tokens, stop, temperature, generator, top_k, use_cache)

    @torch.no_grad()
    def _stream(self, tokens, max_new_tokens, stop, temperature, generator, top_k, use_cache):
        caches = [layer.self_attention.new_cache() for layer in self.decoder.layers]

        def next_scores(tokens, start):
            if not use_cache:
                return self(tokens)[:, -1]
            return self.output(self.decoder.step(self.embedding(tokens[:, start:], start), caches)[:, -1])

        with _eval_mode(self):
            yield from _generate_steps(tokens, next_scores, max_new_tokens, stop, temperature, generator, top_k)


def _generate_steps(tokens, next_scores, max_new_tokens, stop, temperature, generator, top_k=None):
    """Yield the next token of each sequence, (batch, 1), until each sequence has produced a stop token.

    ``next_scores(tokens, start)`` returns the scores of the next token; the tokens before ``start`` are in the
    function's cache.
    """
    has_ended = torch.zeros_like(tokens[:, -1:], dtype=torch.bool)
    start = 0
    for _ in range(max_new_tokens):
        token = _sample(next_scores(tokens, start), temperature, generator, top_k)
        token = torch.where(has_ended, tokens[:, -1:], token)
        start = tokens.shape[1]
        tokens = torch.cat([tokens, token], dim=1)
        yield token
        for stop_token in stop:
            has_ended = has_ended | (token == stop_token)
        if stop and bool(has_ended.all()):
            break


def _sample(scores, temperature, generator, top_k):
    """Choose the next token of each sequence, (batch, 1), from its scores (batch, vocab)."""
    if temperature == 0:
        return scores.argmax(dim=-1, keepdim=True)
    # Shift the highest score to 0 first, because a large score divided by a small temperature would be infinite. The
    # reciprocal of the temperature, by which CUDA multiplies, must also be finite.
    temperature = max(temperature, torch.finfo(torch.float32).tiny)
    scores = (scores - scores.amax(dim=-1, keepdim=True)).float() / temperature
    if top_k is not None and top_k < scores.shape[-1]:
        best_tokens = scores.topk(top_k).indices
        scores = torch.full_like(scores, -math.inf).scatter(-1, best_tokens, scores.gather(-1, best_tokens))
    return torch.multinomial(torch.softmax(scores, dim=-1), 1, generator=generator)


def _require_temperature(temperature):
    if not is_number(temperature) or not temperature >= 0:
        fix = suggest_float("temperature", temperature)
        raise ValueError(f"temperature must be a number, 0 or more, got {format_value(temperature)}{fix}")


@contextmanager
def _eval_mode(model):
    """Put a model in evaluation mode, and restore the mode of every part afterwards."""
    training_modules = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training_modules:
            module.training = True


def _require_mask_for(stack, x, mask, name):
    """Raise an error, with the caller's name for the mask, unless the mask fits the stack's attention over ``x``."""
    n_heads = next((layer.self_attention.n_heads for layer in stack.layers), 1)
    require_mask(mask, (*x.shape[:-2], n_heads, x.shape[-2], x.shape[-2]), x.device, name)


def _require_one_batch(src, tgt):
    """Raise an error unless there is one source for each target: the axes of batch and length are easily swapped."""
    if not isinstance(tgt, torch.Tensor) or src.ndim != 2 or tgt.ndim != 2 or 1 in (len(src), len(tgt)):
        return
    if len(src) != len(tgt):
        swapped = src.shape[1] == tgt.shape[1]
        fix = ": use src.T and tgt.T if they are (length, batch)" if swapped else ""
        actual = f"{tuple(src.shape)} and {tuple(tgt.shape)}{fix}"
        raise ValueError(f"src and tgt must share batch, their first axis, got {actual}")


def _require_source_mask(mask, memory):
    """Raise an error unless the mask hides whole source tokens, since the target's queries also use the mask."""
    if mask.ndim > 1 and mask.shape[-2] != 1:
        raise ValueError(
            f"src_mask must hide whole source tokens, in shape (batch, heads, 1, src_len), got {tuple(mask.shape)}: "
            f"for a different mask in the encoder, use model.decode(tgt, model.encode(src, mask), memory_mask=…)"
        )


def _require_tokens(tokens, vocab_size, device, name, vocab_size_name):
    """Raise an error, with the caller's names, unless the tokens are integers from 0 to ``vocab_size - 1``."""
    if not isinstance(tokens, torch.Tensor) or tokens.dtype not in (torch.int64, torch.int32):
        require_integers("a tensor of int64 or int32", **{name: tokens})
        raise TypeError(f"{name} must be a tensor of int64 or int32, got {tokens.dtype}: use {name}.long()")
    if tokens.ndim < 1:
        raise ValueError(f"{name} must have shape (..., seq), got {tuple(tokens.shape)}: use {name}[None]")
    if tokens.device != device:
        actual = f"{tokens.device}: use {name}.to({str(device)!r})"
        raise ValueError(f"{name} must be on the device of the module's weights, {device}, got {actual}")
    if not values_are_known(tokens):
        return
    # This check waits for the device. Without the check, a number out of range raises an error on CUDA only at some
    # later line.
    out_of_range = (tokens < 0) | (tokens >= vocab_size)
    if out_of_range.any():
        bad_token = int(tokens[out_of_range][0])
        raise ValueError(f"{name} must be from 0 to {vocab_size_name} - 1, which is {vocab_size - 1}, got {bad_token}")
