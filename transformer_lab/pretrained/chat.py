"""A Llama model that was trained to answer questions, together with its tokenizer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import Unpack

from ..arguments import format_value, require_sizes
from ..positions import apply_rotary
from ..transformer import LanguageModel, SamplingOptions
from ..weight_files import read_gguf
from .attention import attention_maps
from .names import LLAMA_NAMES, fill
from .packages import SMOLLM2, SMOLLM2_WEIGHTS
from .tokenizer import byte_pair_tokenizer, load_tokenizers, require_text, special_tokens


class ChatModel(nn.Module):
    """A language model with its tokenizer, which continues or answers a text. :func:`smollm2` returns such a model.

    Parameters
    ----------
    model : LanguageModel
    tokenizer : tokenizers.Tokenizer
    n_positions : int
        The length of the longest sequence that the model was trained for: prompt and answer together.
    stop : sequence of int, optional
        The tokens that end an answer.

    Examples
    --------
    >>> print(ChatModel.prompt("What is attention?"))
    <|im_start|>system
    You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
    <|im_start|>user
    What is attention?<|im_end|>
    <|im_start|>assistant
    <BLANKLINE>
    """

    def __init__(self, model: LanguageModel, tokenizer: Any, n_positions: int, stop: Sequence[int] = ()):
        super().__init__()
        self.model, self.tokenizer, self.n_positions, self.stop = model, tokenizer, n_positions, tuple(stop)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the scores of the next token at each position, (batch, seq, vocab_size), for tokens (batch, seq)."""
        return self.model(tokens)

    def generate(
        self,
        text: str,
        max_new_tokens: int = 128,
        *,
        stop: Sequence[str] = (),
        chat: bool = True,
        show: Callable[[str], object] | None = None,
        **options: Unpack[SamplingOptions],
    ) -> str:
        """Return the model's answer.

        Parameters
        ----------
        text : str
        max_new_tokens : int, optional
            The maximum number of tokens in the answer.
        stop : sequence of str, optional
            The answer is cut before the first of these texts.
        chat : bool, optional
            ``True`` puts the text into the form of :meth:`prompt`, so that the model answers the text; ``False`` lets
            the model continue the text.
        show : function, optional
            A function such as ``partial(print, end="", flush=True)``, which is called with each piece of the answer as
            soon as the piece is generated.
        **options : optional
            ``temperature``, ``top_k``, ``use_cache`` and ``generator``, as in :meth:`LanguageModel.generate`.

        Returns
        -------
        str
            The answer, without ``text``.

        Raises
        ------
        TypeError, ValueError
            If the text is not a str, is empty, contains a special token such as ``<|im_end|>``, or leaves no room for
            ``max_new_tokens``; and the errors of :meth:`LanguageModel.generate`.
        """
        pieces = []
        for piece in self.stream(text, max_new_tokens, stop=stop, chat=chat, **options):
            pieces.append(piece)
            if show is not None:
                show(piece)
        return "".join(pieces)

    def stream(
        self,
        text: str,
        max_new_tokens: int = 128,
        *,
        stop: Sequence[str] = (),
        chat: bool = True,
        **options: Unpack[SamplingOptions],
    ) -> Iterator[str]:
        """Yield the answer of :meth:`generate` piece by piece. The arguments are the same, except for ``show``."""
        require_sizes(minimum=0, max_new_tokens=max_new_tokens)
        if isinstance(stop, str) or not all(isinstance(stop_text, str) and stop_text for stop_text in stop):
            raise TypeError(f"stop must be a sequence of str, none of them empty, got {format_value(stop)}")
        require_text(text, "text", special_tokens(self.tokenizer))
        tokens = self.tokens(self.prompt(text) if chat else text)
        if tokens.shape[1] + max_new_tokens > self.n_positions:
            raise ValueError(
                f"text and max_new_tokens must fit into n_positions, {self.n_positions} tokens, "
                f"got {tokens.shape[1]} and {max_new_tokens}"
            )
        new_tokens = self.model.stream(tokens, max_new_tokens, stop=self.stop, **options)
        return _cut_at_stop(stop, self._decode_so_far(new_tokens))

    @staticmethod
    def prompt(text: str) -> str:
        """Return a question in the form of the training data: two turns, and the start of a third."""
        messages = {"system": "You are a helpful AI assistant named SmolLM, trained by Hugging Face", "user": text}
        turns = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in messages.items())
        return f"{turns}<|im_start|>assistant\n"

    def tokens(self, text: str) -> Tensor:
        """Return the ids of a text's tokens, including special ones: Tensor of int64, (1, seq)."""
        ids = self.tokenizer.encode(text).ids
        return torch.tensor([ids], dtype=torch.long, device=self.model.embedding.weight.device)

    def attention(self, text: str) -> tuple[list[str], Tensor]:
        """Return a text's tokens as words, and all attention weights: Tensor, (n_layers, heads, seq, seq)."""
        tokens = self.tokens(text)
        with torch.no_grad():
            weights = attention_maps(self.model.decoder, self.model.embedding(tokens), is_causal=True)
        words = [self.tokenizer.decode([token], skip_special_tokens=False) for token in tokens[0].tolist()]
        return words, weights[:, 0]

    def _decode_so_far(self, tokens):
        """Yield the answer so far after each token, unless the last character is incomplete."""
        ids, text = [], ""
        for token in tokens:
            ids.append(int(token))
            decoded = self.tokenizer.decode(ids)
            if not decoded.endswith("\N{REPLACEMENT CHARACTER}"):
                text = decoded
                yield text
        if ids and decoded != text:
            yield decoded


def _cut_at_stop(stop_texts, texts):
    """Yield the new part of each text, up to the first of ``stop_texts``; a possible start of a stop text is held back.

    Each text continues the one before it.
    """
    text, n_yielded = "", 0
    for text in texts:
        stop_indices = [text.find(stop_text) for stop_text in stop_texts if stop_text in text]
        if stop_indices:
            text = text[: min(stop_indices)]
            break
        prefixes = (stop_text[:length] for stop_text in stop_texts for length in range(1, len(stop_text)))
        n_final = len(text) - max((len(prefix) for prefix in prefixes if text.endswith(prefix)), default=0)
        if n_final > n_yielded:
            yield text[n_yielded:n_final]
            n_yielded = n_final
    if len(text) > n_yielded:
        yield text[n_yielded:]


def smollm2() -> ChatModel:
    """Return SmolLM2-135M-Instruct, a language model of 2024, on the device of :func:`.device`.

    The package stores the 134.5 million weights quantized to about four bits each; the returned model has float32
    weights, 0.54 GB.

    Returns
    -------
    ChatModel
        The model is in evaluation mode, and its weights are frozen.

    Raises
    ------
    ImportError
        If the package with the weights is not installed or has a different version, or if the tokenizers package is not
        installed.
    ValueError
        If the file is not the published file.

    References
    ----------
    Allal et al., "SmolLM2", 2025. Touvron et al., "LLaMA", 2023, section 2.2, for the kind of block.

    Examples
    --------
    >>> smollm2().generate("What is the capital of France?")  # doctest: +SKIP
    'The capital of France is Paris.'
    """
    tokenizers = load_tokenizers()
    metadata, tensors = read_gguf(SMOLLM2.read(SMOLLM2_WEIGHTS))
    vocabulary = (metadata[f"tokenizer.ggml.{name}"] for name in ("tokens", "merges", "token_type"))
    return build_chat_model(metadata, tensors, byte_pair_tokenizer(tokenizers, *vocabulary))


def build_chat_model(metadata: Mapping[str, Any], tensors: Mapping[str, Tensor], tokenizer: Any) -> ChatModel:
    stop_tokens = [tokenizer.token_to_id(token) for token in ("<|im_end|>", "<|endoftext|>")]
    return ChatModel(
        build_language_model(metadata, tensors), tokenizer, metadata["llama.context_length"], stop_tokens
    ).eval()


def build_language_model(metadata: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> LanguageModel:
    """Build a Llama model from these weights and from the sizes in the metadata of a GGUF file."""
    n_layers, vocab_size = metadata["llama.block_count"], metadata["llama.vocab_size"]
    # If the largest position is known, a GPU can also use the cached angles. In GGUF files, neighbouring features form
    # a pair.
    rotate = partial(
        apply_rotary,
        max_position=metadata["llama.context_length"] - 1,
        base=metadata["llama.rope.freq_base"],
        interleaved=True,
    )
    with torch.device("meta"):
        model = LanguageModel(
            vocab_size,
            metadata["llama.embedding_length"],
            metadata["llama.attention.head_count"],
            n_layers,
            metadata["llama.feed_forward_length"],
            norm_first=True,
            norm="rms",
            eps=metadata["llama.attention.layer_norm_rms_epsilon"],
            activation="silu",
            gated=True,
            bias=False,
            n_kv_heads=metadata["llama.attention.head_count_kv"],
            positions=rotate,
            share_embeddings=True,
        )
    fill(model, tensors, LLAMA_NAMES, n_layers)
    model.output.weight = model.embedding.weight  # tied again, since fill has replaced the embedding's weight
    return model.requires_grad_(False)
