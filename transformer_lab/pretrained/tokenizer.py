"""Tokenizers, and checks of texts. The package tokenizers is imported on first use."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ..arguments import format_value, type_name
from .packages import HOW_TO_INSTALL


def load_tokenizers() -> Any:
    """Return the package tokenizers, or raise an error that says how to install it."""
    try:
        return import_module("tokenizers")
    except ImportError:
        raise ImportError(f"text is converted to tokens by the package tokenizers: {HOW_TO_INSTALL}") from None


def special_tokens(tokenizer: Any) -> list[str]:
    """Return the tokens that are not part of any text, such as ``[SEP]``."""
    return [token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special]


def require_text(text, name, forbidden_tokens):
    """Raise an error unless ``text`` is a str that is not blank and contains none of the forbidden tokens."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, got {type_name(text)}")
    if not text.strip():
        raise ValueError(f"{name} must contain readable text, got {format_value(text)}")
    for token in forbidden_tokens:
        if token in text:
            raise ValueError(
                f"{name} must contain only ordinary text, got the special token {token} in {format_value(text)}"
            )
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{name} must contain whole characters, got a lone surrogate: {format_value(text)}")


def byte_pair_tokenizer(
    tokenizers: Any, tokens: Sequence[str], merges: Sequence[str], token_types: Sequence[int]
) -> Any:
    """Return a byte-pair tokenizer like GPT-2's, but with one token per digit. Type 3 marks special tokens."""
    token_ids = {token: token_id for token_id, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(token_ids, pairs))
    digits = tokenizers.pre_tokenizers.Digits(individual_digits=True)
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([digits, byte_level])
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    special = [token for token, token_type in zip(tokens, token_types) if token_type == 3]
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer
