"""A sentence encoder.

A BERT model computes a vector for each token; the mean of these vectors, scaled to norm 1, is the sentence's vector.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..arguments import format_value, require_sizes, type_name
from ..normalization import LayerNorm
from ..transformer import Encoder, TokenEmbedding
from ..weight_files import read_safetensors
from .attention import attention_maps
from .names import BERT_NAMES, BERT_UNUSED, fill
from .packages import MINILM, MINILM_CONFIG, MINILM_TOKENIZER, MINILM_WEIGHTS
from .tokenizer import load_tokenizers, require_text, special_tokens


class BertEmbedding(nn.Module):
    """BERT's embedding: the normalized sum of the learned rows for the token, the position and the segment.

    Parameters
    ----------
    vocab_size : int
    d_model : int
    n_positions : int
        The length of the longest sequence: each position has a row.
    n_segments : int
        Number of rows that distinguish a first sentence from a second. Here all tokens use row 0.
    eps : float
        The eps of the norm.

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
        self.tokens = TokenEmbedding(vocab_size, d_model, sinusoidal=False)
        self.positions = TokenEmbedding(n_positions, d_model, sinusoidal=False)
        self.segments = TokenEmbedding(n_segments, d_model, sinusoidal=False)
        self.norm = LayerNorm(d_model, eps)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map token numbers of shape (batch, seq) to vectors of shape (batch, seq, d_model)."""
        seq, n_positions = tokens.shape[-1], len(self.positions.weight)
        if seq > n_positions:
            raise ValueError(f"tokens must have a length of at most n_positions, which is {n_positions}, got {seq}")
        return self.norm(self.tokens(tokens) + self.positions.weight[:seq] + self.segments.weight[0])


class SentenceEncoder(nn.Module):
    """Maps sentences to unit vectors: the closer the meanings, the closer the directions.

    :func:`minilm` returns such an encoder.

    Parameters
    ----------
    embedding : BertEmbedding
    encoder : Encoder
    tokenizer : tokenizers.Tokenizer
        Adds ``[CLS]`` before each text and ``[SEP]`` after it.

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
            How many texts are encoded together.

        Returns
        -------
        Tensor, shape (len(texts), d_model)
            Each vector has norm 1, so that ``vectors @ vectors.T`` contains the cosines.

        Raises
        ------
        TypeError
            If ``texts`` is not a list of str.
        ValueError
            If a text is empty, has more tokens than the model has positions, or contains a special token such as
            ``[SEP]``.
        """
        require_sizes(batch_size=batch_size)
        tokens = self._token_ids(texts)
        vectors = self.embedding.tokens.weight.new_empty(len(tokens), self.embedding.tokens.weight.shape[1])
        order = sorted(range(len(tokens)), key=lambda i: len(tokens[i]))  # by length, to need little padding
        with torch.no_grad():
            for start in range(0, len(tokens), batch_size):
                batch_indices = order[start : start + batch_size]
                batch, real = self._pad([tokens[i] for i in batch_indices])
                vectors[batch_indices] = self.pool(self(batch, real), real)
        return vectors

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return the texts' padded token numbers and a mask, which is ``True`` at real tokens; both have shape (batch,
        seq)."""
        return self._pad(self._token_ids(texts))

    def forward(self, tokens: Tensor, real: Tensor | None = None) -> Tensor:
        """Return one vector for each token, computed from all tokens of its text.

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
        """Return the mean of each text's vectors at real tokens, scaled to norm 1, with shape (batch, d_model)."""
        mean = (states * real[..., None]).sum(-2) / real.sum(-1, keepdim=True)
        return F.normalize(mean, dim=-1)

    def attention(self, text: str) -> tuple[list[str], Tensor]:
        """Return a text's tokens as words, and all attention weights: Tensor, (n_layers, heads, seq, seq)."""
        tokens = self.tokens([text])[0]
        with torch.no_grad():
            weights = attention_maps(self.encoder, self.embedding(tokens))
        return [self.tokenizer.id_to_token(token) for token in tokens[0].tolist()], weights[:, 0]

    def _token_ids(self, texts):
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            fix = ": use [texts]" if isinstance(texts, str) else ""
            raise TypeError(f"texts must be a list of str, got {type_name(texts)}{fix}")
        forbidden_tokens = special_tokens(self.tokenizer)
        for i, text in enumerate(texts):
            require_text(text, f"texts[{i}]", forbidden_tokens)
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        n_positions = len(self.embedding.positions.weight)
        for i, tokens in enumerate(ids):
            if len(tokens) > n_positions:
                raise ValueError(
                    f"texts[{i}] must have at most {n_positions} tokens, [CLS] and [SEP] included, got {len(tokens)}"
                )
            if len(tokens) == 2:
                raise ValueError(f"texts[{i}] must contain readable text, got {format_value(texts[i])}")
        return ids

    def _pad(self, tokens):
        seq = max(map(len, tokens), default=0)
        padded = torch.zeros(len(tokens), seq, dtype=torch.long)  # 0 is [PAD]
        real = torch.zeros(len(tokens), seq, dtype=torch.bool)
        for row, ids in enumerate(tokens):
            padded[row, : len(ids)] = torch.tensor(ids)
            real[row, : len(ids)] = True
        device = self.embedding.tokens.weight.device
        return padded.to(device), real.to(device)


def minilm() -> SentenceEncoder:
    """Return all-MiniLM-L6-v2, a sentence encoder with 22.6 million parameters, on the device of :func:`.device`.

    Returns
    -------
    SentenceEncoder
        The model is in evaluation mode, and its weights are frozen.

    Raises
    ------
    ImportError
        If the package with the weights is not installed or has a different version, or if the tokenizers package is not
        installed.
    ValueError
        If a file is not the published file.

    References
    ----------
    Wang et al., "MiniLM", 2020. Reimers and Gurevych, "Sentence-BERT", 2019.

    Examples
    --------
    >>> model = minilm()  # doctest: +SKIP
    >>> model.encode(["A man is eating food.", "Someone is having a meal."]).shape  # doctest: +SKIP
    torch.Size([2, 384])
    """
    tokenizers = load_tokenizers()
    config = json.loads(MINILM.read(MINILM_CONFIG))
    tokenizer = tokenizers.Tokenizer.from_str(MINILM.read(MINILM_TOKENIZER).decode("utf-8"))
    return build_sentence_encoder(config, read_safetensors(MINILM.read(MINILM_WEIGHTS)), tokenizer)


def build_sentence_encoder(config: Mapping[str, Any], tensors: Mapping[str, Tensor], tokenizer: Any) -> SentenceEncoder:
    """Build a sentence encoder from these weights and from the sizes in BERT's ``config.json``."""
    d_model, n_layers, eps = config["hidden_size"], config["num_hidden_layers"], config["layer_norm_eps"]
    n_heads, d_ff = config["num_attention_heads"], config["intermediate_size"]
    table_sizes = (config["vocab_size"], d_model, config["max_position_embeddings"], config["type_vocab_size"])
    with torch.device("meta"):
        embedding = BertEmbedding(*table_sizes, eps=eps)
        encoder = Encoder(d_model, n_heads, n_layers, d_ff, activation=config["hidden_act"], eps=eps)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    model = SentenceEncoder(embedding, encoder, tokenizer)
    fill(model, {name: x for name, x in tensors.items() if name not in BERT_UNUSED}, BERT_NAMES, n_layers)
    return model.eval().requires_grad_(False)
