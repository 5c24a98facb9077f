"""How many bytes the cache of latent attention takes."""

import torch

from ..common_mistakes import float_for_int
from ..exercise import exercise


def all_layers(n_layers):
    """Count every layer."""
    return n_layers


def latent_and_rotary_key(n_heads, d_latent, d_rotary):
    """Count the features of a token's latent vector and of its rotary key, each once for all heads."""
    return d_latent + d_rotary


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
    # `n_heads` divides the features: a division then leaves no remainder, in whatever order the factors are used.
    inputs=lambda draw: (3, 6, 22, 8, 7, 5, 4),
    axes={},
    hints=(
        "Take one token in one layer. Which of its vectors does the cache keep, and how many heads read each of these "
        "vectors?",
        "Every layer keeps one latent vector for each token, from which all heads compute keys and values, and one "
        "rotary key, which all heads share. One of the arguments is not needed at all.",
        "`per_token = n_layers * (… + …)` counts the numbers that the cache keeps for one token in all layers; then "
        "`return per_token * … * … * …`",
    ),
)
def latent_cache_bytes(
    n_layers,
    n_heads,
    d_latent,
    d_rotary,
    seq,
    batch,
    bytes_per_value,
    *,
    layers=all_layers,
    features=latent_and_rotary_key,
    tokens=all_tokens,
    sentences=all_sentences,
    size=bytes_of_a_number,
):
    """Count the bytes of the cache of latent attention that holds ``seq`` tokens of each of ``batch`` sentences.

    n_heads: number of query heads. d_latent: features of the latent vector. d_rotary: features of the rotary key.
    """
    numbers = layers(n_layers) * features(n_heads, d_latent, d_rotary) * tokens(seq) * sentences(batch)
    return numbers * size(bytes_per_value)


latent_cache_bytes.example("numbers of two bytes", 5, 14, 33, 9, 11, 3, 2, plain=True)
latent_cache_bytes.example("numbers of one byte", 7, 4, 24, 12, 13, 9, 1, plain=True)
latent_cache_bytes.example("DeepSeek-V3 with one text of 4,096 tokens", 61, 128, 512, 64, 4096, 1, 2)
latent_cache_bytes.example("one head", 4, 1, 18, 6, 5, 3, 2)
latent_cache_bytes.example("one token of one sentence", 12, 16, 40, 8, 1, 1, 8)
latent_cache_bytes.example("a cache that is still empty", 2, 6, 20, 4, 0, 5, 4)
latent_cache_bytes.example("a cache without rotary keys", 3, 6, 24, 0, 7, 5, 4)


@latent_cache_bytes.right
class RightAnswers:
    def in_two_parts(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        vectors = n_layers * seq * batch
        return vectors * d_latent * bytes_per_value + vectors * d_rotary * bytes_per_value

    def layer_by_layer(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        return sum(batch * seq * (d_latent + d_rotary) * bytes_per_value for _ in range(n_layers))

    def of_tensors(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        latents = torch.empty(n_layers, batch, seq, d_latent, device="meta")
        keys = torch.empty(n_layers, batch, 1, seq, d_rotary, device="meta")
        return (latents.numel() + keys.numel()) * bytes_per_value


@latent_cache_bytes.property
def heads_cost_nothing(function, n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
    """With twice as many query heads, the cache takes as many bytes as before."""
    sizes = d_latent, d_rotary, seq, batch, bytes_per_value
    return function(n_layers, n_heads, *sizes) == function(n_layers, 2 * n_heads, *sizes)


def _doubling_property(index):
    """Return a property: the result doubles if argument number ``index`` doubles."""

    def holds(function, *sizes):
        doubled = [size * (1 + (i == index)) for i, size in enumerate(sizes)]
        return function(*doubled) == 2 * function(*sizes) != 0

    return holds


for _index, _argument in ((0, "the layers"), (4, "the tokens"), (5, "the sentences"), (6, "the bytes of a value")):
    _property = _doubling_property(_index)
    _property.__doc__ = f"With twice {_argument}, the cache takes twice as many bytes."
    latent_cache_bytes.property(_property)


@latent_cache_bytes.wrong(stage="features")
class Features:
    def rotary_key_forgotten(n_heads, d_latent, d_rotary):
        """The rotary key is missing: `d_rotary` has no effect on your number. The rotary key is computed from the token
        itself and not from the latent vector, so the cache must keep both."""
        return d_latent

    def latent_forgotten(n_heads, d_latent, d_rotary):
        """The latent vector is missing: `d_latent` has no effect on your number. Keys and values are computed from the
        latent vector; without it only the rotary keys are left."""
        return d_rotary

    def latent_for_keys_and_for_values(n_heads, d_latent, d_rotary):
        """You count the latent vector twice, once for the keys and once for the values. Keys and values are computed
        from the *same* vector: one is enough."""
        return 2 * d_latent + d_rotary

    def rotary_key_twice(n_heads, d_latent, d_rotary):
        """You count the rotary part twice, as if the cache also kept a rotary part of the queries or of the values.
        Only keys are compared with later queries, and values are never rotated."""
        return d_latent + 2 * d_rotary

    def keys_and_values(n_heads, d_latent, d_rotary):
        """Your number is twice the right number, as if keys and values each had their own latent vector and rotary key.
        Keys and values are computed from the *same* latent vector, and values have no rotary part."""
        return 2 * (d_latent + d_rotary)

    def a_cache_for_each_head(n_heads, d_latent, d_rotary):
        """You multiply by `n_heads`, as if each head kept its own latent vector and rotary key. The heads share both:
        each computes its keys and values from the same vector, with its own matrices."""
        return n_heads * (d_latent + d_rotary)

    def a_latent_for_each_head(n_heads, d_latent, d_rotary):
        """You count a latent vector for each head. There is one latent vector for each token: the heads compute their
        keys and values from the same vector, each with its own matrices."""
        return n_heads * d_latent + d_rotary

    def a_rotary_key_for_each_head(n_heads, d_latent, d_rotary):
        """You count a rotary key for each head. *Queries* have a rotary part in each head, but a token has a single
        rotary key, which all heads share."""
        return d_latent + n_heads * d_rotary

    def keys_and_values_of_each_head(n_heads, d_latent, d_rotary):
        """You count keys and values for each head, as ordinary attention keeps them. Latent attention keeps only the
        latent vector, from which all keys and values are computed, and one rotary key."""
        return 2 * n_heads * (d_latent + d_rotary)

    def latents_of_both_kinds_for_each_head(n_heads, d_latent, d_rotary):
        """You count two latent vectors for each head, one for keys and one for values. There is one latent vector for
        each token: all heads compute keys and values from it."""
        return 2 * n_heads * d_latent + d_rotary

    def divided_among_the_heads(n_heads, d_latent, d_rotary):
        """You divide by `n_heads`, as `d_model` is divided among the heads. `d_latent` and `d_rotary` are sizes of
        whole vectors, and every head reads all features of both vectors."""
        return (d_latent + d_rotary) // n_heads

    def latent_divided_among_the_heads(n_heads, d_latent, d_rotary):
        """You divide `d_latent` by `n_heads`, as `d_model` is divided among the heads. The latent vector does not
        consist of heads: each head reads all of it."""
        return d_latent // n_heads + d_rotary

    def rotary_key_divided_among_the_heads(n_heads, d_latent, d_rotary):
        """You divide `d_rotary` by `n_heads`. The rotary key has `d_rotary` features, and all heads read all of
        them."""
        return d_latent + d_rotary // n_heads

    def rotary_part_of_the_latent(n_heads, d_latent, d_rotary):
        """You subtract `d_rotary` from `d_latent`, as if the rotary features were part of the latent vector. The rotary
        key is a separate vector."""
        return d_latent - d_rotary

    def sizes_multiplied(n_heads, d_latent, d_rotary):
        """You multiply `d_latent` by `d_rotary`. A matrix that maps one of the vectors to the other would have this
        many numbers; the cache keeps two vectors for each token, side by side."""
        return d_latent * d_rotary

    def queries_of_each_head_as_well(n_heads, d_latent, d_rotary):
        """You count the rotary parts of the queries as well, one for each head, beside the key that all heads share. A
        query is used once, in the step of its own token: no cache keeps it."""
        return d_latent + d_rotary + n_heads * d_rotary

    def two_latents_alone(n_heads, d_latent, d_rotary):
        """You count the latent vector twice, once for keys and once for values, and no rotary key. Keys and values are
        computed from the *same* vector; the rotary key is kept beside it."""
        return 2 * d_latent

    def half_of_the_rotary_key(n_heads, d_latent, d_rotary):
        """You count half of the rotary key, one number for each pair of features. A pair is rotated by *one* angle, but
        it has two numbers, and the cache keeps both."""
        return d_latent + d_rotary // 2

    def one_vector(n_heads, d_latent, d_rotary):
        """You count vectors, and not the numbers in them: neither `d_latent` nor `d_rotary` changes your result. How
        many numbers does a token add to the cache of a layer?"""
        return 1

    def two_vectors(n_heads, d_latent, d_rotary):
        """You count vectors, two for each token, and not the numbers in them: neither `d_latent` nor `d_rotary` changes
        your result. How many numbers do the two vectors have?"""
        return 2

    def heads_added(n_heads, d_latent, d_rotary):
        """You add `n_heads` to the features. But `n_heads` counts heads, not features, and the cache of latent
        attention does not depend on the number of heads."""
        return d_latent + d_rotary + n_heads


@latent_cache_bytes.wrong(stage="layers")
class Layers:
    def one_layer(n_layers):
        """You count the cache of one layer: your number does not change with `n_layers`. Every layer computes its own
        latent vector from what it reads."""
        return 1

    def pairs_of_layers(n_layers):
        """Your number grows with the square of `n_layers`: where do you multiply by `n_layers` a second time?"""
        return n_layers**2


@latent_cache_bytes.wrong(stage="tokens")
class Tokens:
    def one_token(seq):
        """Your number does not change with `seq`: it is what one token adds to the cache. The cache holds all tokens so
        far."""
        return 1

    def pairs_of_tokens(seq):
        """Your number grows with the square of `seq`. So does the table of attention weights, but that table is used
        and then discarded. The cache has an entry for each token, not for each pair."""
        return seq**2

    def one_token_fewer(seq):
        """You count one token fewer than the cache holds. The newest token attends to itself too, and according to the
        docstring, `seq` is the number of tokens that the cache *holds*."""
        return seq - 1

    def one_token_more(seq):
        """You count one token more than the cache holds. According to the docstring, `seq` is the number of tokens that
        the cache *holds*. Which token do you add?"""
        return seq + 1


@latent_cache_bytes.wrong(stage="sentences")
class Sentences:
    def one_sentence(batch):
        """Your number does not change with `batch`. All sentences of a batch share the model's weights, but each
        sentence has its own tokens in the cache."""
        return 1

    def pairs_of_sentences(batch):
        """Your number grows with the square of `batch`: where do you multiply by `batch` a second time?"""
        return batch**2


@latent_cache_bytes.wrong(stage="size")
class Size:
    def numbers_for_bytes(bytes_per_value):
        """Your number does not change with `bytes_per_value`: it is as if each value took one byte. A number in
        bfloat16 takes two bytes, and a number in float32 takes four."""
        return 1

    def bits_for_bytes(bytes_per_value):
        """Your number is eight times too large, as if you counted bits. The size of a value is already in bytes here,
        so no conversion is needed; only the 16 in `bfloat16` counts bits."""
        return 8 * bytes_per_value

    def an_eighth(bytes_per_value):
        """Your number is an eighth of the right number, as if the sizes were in bits. They are already in bytes, as the
        name `bytes_per_value` says. What do you divide by?"""
        return bytes_per_value / 8

    def two_bytes_always(bytes_per_value):
        """Your number does not change with `bytes_per_value`: it is as if each value took two bytes, as in bfloat16.
        Look at where you use the argument."""
        return 2

    def four_bytes_always(bytes_per_value):
        """Your number does not change with `bytes_per_value`: it is as if each value took four bytes, as in float32.
        Look at where you use the argument."""
        return 4


@latent_cache_bytes.wrong
class WrongAnswers:
    def rotary_key_of_a_sentence(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        """You count one rotary key for each sentence, but a latent vector for each token. Every token has its own
        position, so it needs its own rotary key. Where do the brackets end?"""
        return n_layers * (d_latent * seq + d_rotary) * batch * bytes_per_value

    def rotary_key_of_one_layer(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        """You count the rotary keys of one layer, but the latent vectors of all layers. Every layer computes its own
        rotary key for each token from what the layer reads. Where do the brackets begin?"""
        return (n_layers * d_latent + d_rotary) * seq * batch * bytes_per_value

    def latent_of_one_layer(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        """You count the latent vectors of one layer, but the rotary keys of all layers. Every layer has both. Where do
        the brackets begin?"""
        return (d_latent + n_layers * d_rotary) * seq * batch * bytes_per_value

    def brackets_missing(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        """The brackets around `d_latent + d_rotary` are missing: Python computes products before sums, so `d_latent` is
        multiplied only by the factors before it, and `d_rotary` only by the factors after it."""
        return n_layers * d_latent + d_rotary * seq * batch * bytes_per_value

    def rotary_key_without_bytes(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        """You add the rotary features to the bytes of the latent vectors, without multiplying them by tokens, layers
        and bytes. Every token keeps a rotary key in every layer. Where are the brackets?"""
        return n_layers * d_latent * seq * batch * bytes_per_value + d_rotary

    def latent_without_the_rest(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        """You add the first of the two sizes without multiplying it by tokens, layers and bytes: Python computes
        products before sums. Where are the brackets around `d_latent + d_rotary`?"""
        return d_latent + d_rotary * n_layers * seq * batch * bytes_per_value

    def tokens_and_sentences_added(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        """You add `seq` and `batch` instead of multiplying them: each of the `batch` sentences has `seq` tokens in the
        cache. How many tokens do 5 sentences of 7 tokens have?"""
        return n_layers * (d_latent + d_rotary) * (seq + batch) * bytes_per_value

    def tokens_added_to_the_features(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        """You add `seq` to the number of features instead of multiplying the two: every token keeps a latent vector and
        a rotary key. Where do the brackets end?"""
        return n_layers * (d_latent + d_rotary + seq) * batch * bytes_per_value

    def divided_by_the_bytes(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        """You divide by `bytes_per_value` instead of multiplying by it: by your count, numbers of two bytes need more
        memory than numbers of four. How many bytes do 10 numbers of 4 bytes take?"""
        return n_layers * (d_latent + d_rotary) * seq * batch // bytes_per_value

    def cache_in_megabytes(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        """You return megabytes of a million bytes each. The task asks for bytes: divide only where you print the
        number, so that no digits are lost."""
        return n_layers * (d_latent + d_rotary) * seq * batch * bytes_per_value / 1e6

    def cache_in_mebibytes(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        """You return your result in units of 1024 · 1024 bytes, mebibytes. The task asks for bytes: divide only where
        you print the number, so that no digits are lost."""
        return n_layers * (d_latent + d_rotary) * seq * batch * bytes_per_value / 2**20

    def cache_in_gigabytes(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        """You return gigabytes of a billion bytes each. The task asks for bytes: divide only where you print the
        number, so that no digits are lost."""
        return n_layers * (d_latent + d_rotary) * seq * batch * bytes_per_value / 1e9

    def cache_in_gibibytes(n_layers, n_heads, d_latent, d_rotary, seq, batch, bytes_per_value):
        """You return your result in units of 1024 · 1024 · 1024 bytes. The task asks for bytes: divide only where you
        print the number, so that no digits are lost."""
        return n_layers * (d_latent + d_rotary) * seq * batch * bytes_per_value / 2**30


float_for_int(latent_cache_bytes)
