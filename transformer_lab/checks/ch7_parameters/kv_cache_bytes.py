"""How many bytes the cache of keys and values takes."""

import torch

from ... import compute
from ...parameters import ModelShape
from ..exercise import exercise


def keys_and_values():
    """Count keys and values."""
    return 2


def all_layers(n_layers):
    """Count keys and values in every layer."""
    return n_layers


def all_features(d_model):
    """Count every feature."""
    return d_model


def all_tokens(seq):
    """Count every token."""
    return seq


def all_sentences(batch):
    """Count every sentence of the batch."""
    return batch


def bytes_of_a_number(bytes_per_value):
    """Count the bytes of each number."""
    return bytes_per_value


@exercise(
    inputs=lambda draw: (3, 6, 7, 5, 4),
    axes={},
    hints=(
        "Take one token of one sentence in one layer. Which of its vectors does the cache keep, and how many numbers "
        "does each of these vectors have?",
        "The chapter's section 7.10 works out the bytes for one token of GPT-2 by hand. If you double any of the "
        "five arguments, the bytes double: each argument is a factor of a product. The product also has one factor "
        "that is not an argument.",
        "`per_token = … * n_layers * …` counts the numbers that the cache keeps for a token in all layers; then "
        "`return per_token * … * … * …`",
    ),
)
def kv_cache_bytes(
    n_layers,
    d_model,
    seq,
    batch,
    bytes_per_value,
    *,
    kinds=keys_and_values,
    layers=all_layers,
    features=all_features,
    tokens=all_tokens,
    sentences=all_sentences,
    size=bytes_of_a_number,
):
    """Count, as an int, the bytes of a key-value cache that holds ``seq`` tokens of each of ``batch`` sentences."""
    numbers = kinds() * layers(n_layers) * features(d_model) * tokens(seq) * sentences(batch)
    return numbers * size(bytes_per_value)


kv_cache_bytes.example("numbers of two bytes", 5, 14, 11, 3, 2, plain=True)
kv_cache_bytes.example("numbers of one byte", 7, 22, 13, 9, 1, plain=True)
kv_cache_bytes.example("GPT-2 with 32 full texts", 12, 768, 1024, 32, 4, plain=True)
kv_cache_bytes.example("one token of one sentence", 12, 768, 1, 1, 8)
kv_cache_bytes.example("a cache that is still empty", 2, 6, 0, 5, 4)


@kv_cache_bytes.right
class RightAnswers:
    def in_another_order(n_layers, d_model, seq, batch, bytes_per_value):
        return bytes_per_value * batch * seq * d_model * n_layers * 2

    def layer_by_layer(n_layers, d_model, seq, batch, bytes_per_value):
        total = 0
        for _ in range(n_layers):
            keys = values = batch * seq * d_model
            total += (keys + values) * bytes_per_value
        return total

    def of_a_gpt(n_layers, d_model, seq, batch, bytes_per_value):
        shape = ModelShape("gpt2", n_layers, d_model, 1, vocab_size=1, n_positions=1)
        return compute.kv_cache_bytes(shape, seq, batch, bytes_per_value)

    def of_tensors(n_layers, d_model, seq, batch, bytes_per_value):
        cache = torch.empty(n_layers, 2, batch, seq, d_model, device="meta")
        return cache.numel() * bytes_per_value

    def bits_to_bytes(n_layers, d_model, seq, batch, bytes_per_value):
        bits = 2 * n_layers * d_model * seq * batch * 8 * bytes_per_value
        return bits // 8


def _doubling_property(index):
    """Return a property: the result doubles if argument number ``index`` doubles."""

    def holds(function, *sizes):
        doubled = [size * (1 + (i == index)) for i, size in enumerate(sizes)]
        return function(*doubled) == 2 * function(*sizes) != 0

    return holds


@kv_cache_bytes.wrong(stage="kinds")
class Kinds:
    def one_vector_for_a_token(*sizes):
        """For each token and layer you count one vector: half of the cache is missing. Attention needs the keys for the
        scores and the values for the blend, so the cache keeps both kinds of vectors. Do you count only the keys or
        only the values, or does another factor cancel your 2 for keys and values?"""
        return 1

    def queries_kept_as_well(*sizes):
        """You count three vectors for each token and layer, as if the cache kept queries as well as keys and values. A
        query is used once, in the step of its own token, and never again. Which of the three do later tokens need?"""
        return 3

    def four_vectors_for_a_token(*sizes):
        """You count four vectors for each token and layer, but the cache keeps two, a key and a value. Probably your
        formula contains the factor 2 twice. The decoder of a model with a source also keeps keys and values of the
        source's tokens, but a GPT has no source."""
        return 4


@kv_cache_bytes.wrong(stage="layers")
class Layers:
    def cache_of_one_layer(n_layers):
        """You count the cache of one layer: your number does not change with `n_layers`. Every layer has its own keys
        and values, since it has its own projections."""
        return 1


@kv_cache_bytes.wrong(stage="features")
class Features:
    def vectors_instead_of_numbers(d_model):
        """You count vectors instead of the numbers in them: your result does not change with `d_model`. A key has
        `d_model` numbers, all heads together, and a value has as many."""
        return 1

    def projections_instead_of_vectors(d_model):
        """Your number grows with the square of `d_model`. Only the matrices that *compute* keys and values are square;
        they are parameters, and exist without any text. The cache keeps the keys and values themselves, each a vector
        of `d_model` numbers."""
        return d_model**2


@kv_cache_bytes.wrong(stage="tokens")
class Tokens:
    def one_token_only(seq):
        """Your number does not change with `seq`: it is what one token adds to the cache. The cache holds the keys and
        values of all tokens so far."""
        return 1

    def table_of_pairs(seq):
        """Your number grows with the square of `seq`, like the table of attention weights, which is used and then
        discarded. The cache has an entry for each token, not for each pair."""
        return seq**2

    def last_token_left_out(seq):
        """You count one token fewer than the cache holds. The newest token attends to itself too, so its key and its
        value are in the cache before its scores are computed. And according to the docstring, `seq` is the number of
        tokens that the cache *holds*."""
        return seq - 1

    def one_token_more(seq):
        """You count one token more than the cache holds. The token that the model writes next has no key yet: its key
        is computed when the token goes through the model, in the next step. And according to the docstring, `seq` is
        the number of tokens that the cache *holds*."""
        return seq + 1

    def caches_of_all_steps(seq):
        """You add up the caches of all steps, 1 + 2 + … + `seq` tokens, as if each step had its own cache. There is
        only one cache, and each step adds a token to it. How many tokens does the cache hold in the end?"""
        return seq * (seq + 1) // 2


@kv_cache_bytes.wrong(stage="sentences")
class Sentences:
    def one_sentence_only(batch):
        """Your number does not change with `batch`. All sentences of a batch share the weights, but not the cache: each
        sentence has its own tokens."""
        return 1


@kv_cache_bytes.wrong(stage="size")
class Size:
    def numbers_instead_of_bytes(bytes_per_value):
        """Your number does not change with `bytes_per_value`, as if each number took one byte. A number in float32
        takes four bytes, and a number in float16 takes two. Look at where you use the argument."""
        return 1

    def bits_instead_of_bytes(bytes_per_value):
        """Your number is eight times too large, as if you counted bits, eight for each byte. The size of a number is
        already in bytes here, so no conversion is needed; only the 32 in `float32` counts bits."""
        return 8 * bytes_per_value

    def an_eighth_of_the_bytes(bytes_per_value):
        """Your number is an eighth of the right number, as if the sizes were in bits. They are already in bytes, as the
        name `bytes_per_value` says. What do you divide by?"""
        return bytes_per_value / 8

    def always_four_bytes(bytes_per_value):
        """Your number does not change with `bytes_per_value`, as if each number took four bytes, as in float32. (If you
        also count only keys or only values, it is as if each number took eight bytes.) Caches are often kept in 16
        bits, to hold twice as many tokens. Look at where you use the argument."""
        return 4

    def always_two_bytes(bytes_per_value):
        """Your number does not change with `bytes_per_value`, as if each number took two bytes. (If you also count only
        keys or only values, it is as if each number took four bytes.) Look at where you use the argument."""
        return 2


@kv_cache_bytes.wrong
class WrongAnswers:
    def tokens_and_sentences_added(n_layers, d_model, seq, batch, bytes_per_value):
        """You add `seq` and `batch` instead of multiplying them: each of the `batch` sentences has `seq` tokens in the
        cache. How many tokens do 5 sentences of 7 tokens have?"""
        return 2 * n_layers * d_model * (seq + batch) * bytes_per_value

    def six_vectors_for_a_token(n_layers, d_model, seq, batch, bytes_per_value):
        """You count six vectors for each token and layer, but the cache keeps two, a key and a value. Six is three
        times two: perhaps you count queries and also multiply by 2 for keys and values. The cache keeps no queries."""
        return 6 * n_layers * d_model * seq * batch * bytes_per_value

    def weights_of_the_projections_too(n_layers, d_model, seq, batch, bytes_per_value):
        """{The cache is right, but} you also count the matrices that *compute* keys and values. These matrices are
        parameters: they exist without any text, and the cache does not keep them. What is in the cache before the first
        token?"""
        cache = kv_cache_bytes.reference(n_layers, d_model, seq, batch, bytes_per_value)
        return cache + 2 * n_layers * d_model**2 * bytes_per_value

    def divided_by_the_bytes(n_layers, d_model, seq, batch, bytes_per_value):
        """You divide by `bytes_per_value` instead of multiplying by it: by your count, numbers of two bytes need more
        memory than numbers of four. Each number takes `bytes_per_value` bytes. How many bytes do 10 numbers of 4 bytes
        take?"""
        return 2 * n_layers * d_model * seq * batch // bytes_per_value

    def projections_of_keys_and_values(n_layers, d_model, seq, batch, bytes_per_value):
        """You count the matrices that *compute* keys and values: your number changes neither with `seq` nor with
        `batch`. These matrices are parameters, and exist without any text. The cache keeps their results, for each
        token."""
        return 2 * n_layers * d_model**2 * bytes_per_value

    def length_in_place_of_the_width(n_layers, d_model, seq, batch, bytes_per_value):
        """Your number contains `seq` twice and `d_model` not at all. A table of attention weights has `seq` numbers for
        each token, but a key has `d_model` numbers. Compare each factor of your product with the arguments."""
        return 2 * n_layers * seq * seq * batch * bytes_per_value

    def cache_in_megabytes(n_layers, d_model, seq, batch, bytes_per_value):
        """You return megabytes of a million bytes each. The task asks for bytes: divide only where you print the
        number, so that no digits are lost."""
        return kv_cache_bytes.reference(n_layers, d_model, seq, batch, bytes_per_value) / 1e6

    def cache_in_mebibytes(n_layers, d_model, seq, batch, bytes_per_value):
        """You return your result in units of 1024 · 1024 bytes. The task asks for bytes: divide only where you print
        the number, and name the unit there. These units are mebibytes, which are five per cent larger than
        megabytes."""
        return kv_cache_bytes.reference(n_layers, d_model, seq, batch, bytes_per_value) / 2**20

    def cache_in_kibibytes(n_layers, d_model, seq, batch, bytes_per_value):
        """You return your result in units of 1024 bytes. The task asks for bytes: divide only where you print the
        number, so that no digits are lost."""
        return kv_cache_bytes.reference(n_layers, d_model, seq, batch, bytes_per_value) / 1024

    def cache_in_gigabytes(n_layers, d_model, seq, batch, bytes_per_value):
        """You return gigabytes of a billion bytes each. The task asks for bytes: divide only where you print the
        number, so that no digits are lost."""
        return kv_cache_bytes.reference(n_layers, d_model, seq, batch, bytes_per_value) / 1e9

    def cache_in_gibibytes(n_layers, d_model, seq, batch, bytes_per_value):
        """You return your result in units of 1024 · 1024 · 1024 bytes. The task asks for bytes: divide only where you
        print the number, so that no digits are lost."""
        return kv_cache_bytes.reference(n_layers, d_model, seq, batch, bytes_per_value) / 2**30

    def cache_in_whole_mebibytes(n_layers, d_model, seq, batch, bytes_per_value):
        """You return whole units of 1024 · 1024 bytes: for a small cache, your result is 0. The task asks for bytes:
        divide only where you print the number, so that no digits are lost."""
        return kv_cache_bytes.reference(n_layers, d_model, seq, batch, bytes_per_value) // 2**20

    def cache_in_whole_kibibytes(n_layers, d_model, seq, batch, bytes_per_value):
        """You return whole units of 1024 bytes, and the remainder is lost. The task asks for bytes: divide only where
        you print the number, so that no digits are lost."""
        return kv_cache_bytes.reference(n_layers, d_model, seq, batch, bytes_per_value) // 1024


for _index, _argument in enumerate(
    ("the layers", "the features", "the tokens", "the sentences", "the bytes of a value")
):
    _property = _doubling_property(_index)
    _property.__doc__ = f"With twice {_argument}, the cache takes twice as many bytes."
    kv_cache_bytes.property(_property)
