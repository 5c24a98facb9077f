"""Chapter 7: counting parameters, FLOPs and bytes."""

from .answers import Number
from .draws import choose, random_integer
from .topic import Topic, rule


def _width_and_bias(draw):
    return choose(draw, (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 20, 30, 32, 64, 100)), choose(draw, (True, False))


parameters_of_attention = Topic(
    title="The parameters of attention",
    rule="attention_parameters",
    inputs=_width_and_bias,
    question=lambda d_model, bias: (
        f"Multi-head attention with d_model = {d_model}, "
        f"{'with biases' if bias else 'without biases'}: how many parameters does it have?"
    ),
    answer=Number(),
    excluded_mistakes=(
        "nothing_without_biases",
        "biases_in_place_of_weights",
        "biases_inverted",
        "argument_added",
        "caret_for_a_power",
        "caret_for_a_power_in_one_line",
        "caret_in_brackets",
        "bias_of_one_map_always",
        "three_biases_always",
        "three_biases_in_any_case",
        "weights_times_the_argument",
        "with_a_norm_in_any_case",
        "weights_and_biases_not_summed",
        "tensors_counted",
        "tensors_of_four_maps_counted",
        "heads_that_do_not_divide",
        "the_example_itself",
        "nothing_returned_without_biases",
    ),
    mistake_texts={
        "square_of_four_widths": "You squared the 4 along with the width. Attention has four separate matrices, not a "
        "single matrix with four times as many rows and columns.",
        "twice_the_width": "You doubled the width instead of squaring it. A square matrix of width 3 has 9 "
        "numbers, not 6.",
        "with_a_norm": "You counted a norm as well. A layer has norms, but norms are not part of its attention.",
        "biases_always": "You counted biases, but this attention has none. What does the question say about biases?",
        "biases_left_out": "You left the biases out. Each of the four maps has a bias: how long is each bias?",
        "biases_inverted": "You counted biases that this attention lacks, or left out biases that it has. "
        "What does the question say about biases?",
        "biases_alone": "You counted the biases alone. Each of the four maps also has a matrix of weights.",
        "eight_squares": "You counted eight squares of the width, twice the right number. Look at what attention "
        "has, matrix by matrix.",
        "in_bytes": "Your count is four times too large. Did you count the four bytes of each float32 number, or "
        "multiply by 4 twice?",
        "four_added": "You added 4 instead of multiplying by it. Attention has four square matrices.",
        "biases_subtracted": "You subtracted the biases. Biases are parameters, too: add their number.",
    },
)


def _layer_sizes(draw):
    d_model, factor = choose(draw, (2, 3, 4, 5, 10)), choose(draw, (2, 3, 4))
    return d_model, factor * d_model + choose(draw, (0, 1)), choose(draw, (True, False))


@rule(inputs=_layer_sizes)
def feed_forward_parameters(d_model, d_ff, bias):
    """Return the number of parameters of a feed-forward layer."""
    return 2 * d_model * d_ff + (d_ff + d_model if bias else 0)


@feed_forward_parameters.mistake
def one_matrix(d_model, d_ff, bias):
    """You counted one matrix. One map widens the token; the other maps it back."""
    return d_model * d_ff + (d_ff + d_model if bias else 0)


@feed_forward_parameters.mistake
def three_matrices(d_model, d_ff, bias):
    """You counted three matrices, as in a gated layer. A plain layer has two matrices."""
    return 3 * d_model * d_ff + (d_ff + d_model if bias else 0)


@feed_forward_parameters.mistake
def biases_left_out(d_model, d_ff, bias):
    """You left the biases out. Each of the two maps has a bias: how long is each bias?"""
    return 2 * d_model * d_ff


@feed_forward_parameters.mistake
def biases_counted(d_model, d_ff, bias):
    """You counted biases, but this layer has none. What does the question say about biases?"""
    return 2 * d_model * d_ff + d_ff + d_model


@feed_forward_parameters.mistake
def two_narrow_biases(d_model, d_ff, bias):
    """You gave both biases d_model numbers. One bias is added in the middle, where a token has d_ff features."""
    return 2 * d_model * d_ff + 2 * d_model * bias


@feed_forward_parameters.mistake
def two_wide_biases(d_model, d_ff, bias):
    """You gave both biases d_ff numbers. One bias is added at the end, where a token has d_model features again."""
    return 2 * d_model * d_ff + 2 * d_ff * bias


@feed_forward_parameters.mistake
def d_ff_squared(d_model, d_ff, bias):
    """You counted a matrix that is d_ff by d_ff. Each map has d_model features on one of its sides."""
    return d_model * d_ff + d_ff * d_ff + (d_ff + d_model if bias else 0)


@feed_forward_parameters.mistake
def norm_counted(d_model, d_ff, bias):
    """You counted a norm as well. The norm belongs to the block: the question asks only for the feed-forward layer."""
    return 2 * d_model * d_ff + (d_ff + d_model if bias else 0) + 2 * d_model


parameters_of_feed_forward = Topic(
    title="The parameters of a feed-forward layer",
    rule=feed_forward_parameters,
    question=lambda d_model, d_ff, bias: (
        f"A feed-forward layer with d_model = {d_model} and d_ff = {d_ff}, "
        f"{'with biases' if bias else 'without biases'}: how many parameters does it have?"
    ),
    answer=Number(),
)


flops_of_attention = Topic(
    title="The FLOPs of scores and blend",
    rule="attention_flops",
    inputs=lambda draw: (choose(draw, (2, 3, 4, 5, 6, 8, 10, 20)), choose(draw, (2, 3, 4, 5, 8, 10, 100))),
    question=lambda seq, d_model: (
        f"{seq} tokens attend to one another, with d_model = {d_model} over all heads. How many FLOPs do scores and "
        "blend take together?"
    ),
    answer=Number(unit="FLOPs"),
    excluded_mistakes=(
        "softmax_counted_too",
        "scale_counted_too",
        "two_operations_on_each_score",
        "four_operations_on_each_score",
        "five_operations_on_each_score",
        "first_addition_of_each_score_not_counted",
        "first_addition_of_both_not_counted",
        "caret_for_a_power",
    ),
    mistake_texts={
        "half_of_the_work": "You counted half of the FLOPs for each pair of a query and a key. Did you count 1 "
        "FLOP for a multiply-add, or leave out one of the two products?",
        "first_addition_not_counted": "You counted one addition too few in every sum. Your count is exact, but by "
        "convention a multiply-add is two FLOPs.",
        "pairs_under_the_causal_mask": "You counted only the pairs that a causal mask allows. The usual count "
        "includes every pair of a query and a key.",
        "three_products": "You counted three products of matrices, perhaps one each for queries, keys and values. The "
        "maps that compute these are projections, which the question does not ask for.",
        "three_projections_counted_too": "You counted the maps that compute queries, keys and values as well. The "
        "question asks only for scores and blend, the two products between the projections.",
        "one_projection_counted_too": "You counted one projection as well, most likely the output projection. The "
        "question asks only for scores and blend, the two products between the projections.",
        "projections_alone": "You counted the four projections. The question asks only for scores and blend, the two "
        "products between the projections.",
        "projections_counted_too": "You counted the four projections as well. The question asks only for scores and "
        "blend, the two products between the projections.",
        "whole_layer_counted": "You counted a whole layer, with its projections and its feed-forward layer. The "
        "question asks only for scores and blend, the two products between the projections.",
        "projections_beside_a_causal_mask": "You counted the four projections as well, and only those pairs that a "
        "causal mask leaves. The question asks for scores and blend, and the usual count includes every pair.",
        "work_of_training": "You counted three times the work, which is the work of a training step. The usual count "
        "is that of the forward pass alone.",
    },
)


def _cache_sizes(draw):
    return (
        random_integer(draw, 2, 6),
        choose(draw, (4, 8, 10, 100)),
        choose(draw, (5, 10, 100)),
        1,
        choose(draw, (2, 4)),
    )


bytes_of_a_cache = Topic(
    title="The bytes of a cache",
    rule="kv_cache_bytes",
    inputs=_cache_sizes,
    question=lambda n_layers, d_model, seq, batch, bytes_per_value: (
        f"A model has {n_layers} layers and d_model = {d_model}, and each number takes {bytes_per_value} bytes. "
        f"How many bytes does its key-value cache take after {seq} tokens?"
    ),
    answer=Number(unit="bytes"),
    excluded_mistakes=(
        "always_two_bytes",
        "always_four_bytes",
        "an_eighth_of_the_bytes",
        "cache_in_whole_mebibytes",
        "cache_in_whole_kibibytes",
        "tokens_and_sentences_added",
        "divided_by_the_bytes",
    ),
    mistake_texts={
        "last_token_left_out": "You counted one token fewer than the cache contains. The newest token attends to "
        "itself too, so the cache contains its key and value.",
        "one_token_more": "You counted one token more than the cache contains. The next token has no key yet: "
        "its key is computed in the next step.",
        "length_in_place_of_the_width": "Your product contains the length twice, but not the width. How many "
        "numbers does a key have?",
        "projections_of_keys_and_values": "You counted the matrices that compute keys and values. The cache "
        "stores the outputs of these matrices for each token.",
        "numbers_instead_of_bytes": "You counted numbers, not bytes. How many bytes does each number take?",
        "weights_of_the_projections_too": "You counted the cache, but also the matrices that compute keys and values. "
        "What is in the cache before the first token?",
    },
)
