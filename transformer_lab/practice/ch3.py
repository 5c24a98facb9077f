"""Chapter 3: the softmax of small numbers, the weights of two keys, and the features of a position."""

import math

import torch

from .answers import Choice, Numbers
from .draws import choose, distinct_integers, random_integer, write
from .topic import Topic, rule

# The softmax of logarithms, which can be computed with fractions


def _base_and_counts(draw):
    return random_integer(draw, 0, 3), distinct_integers(draw, 3, 1, 5)


def _scores(base, counts):
    return torch.tensor([base + math.log(count) for count in counts], dtype=torch.float64)


def _score_text(base, count):
    """Write a score, such as ``2 + ln 3``."""
    if count == 1:
        return str(base)
    return f"ln {count}" if base == 0 else f"{base} + ln {count}"


@rule(inputs=_base_and_counts)
def softmax_of_scores(base, counts):
    """Return the weights of the scores ``base + ln count``."""
    return _scores(base, counts).softmax(dim=0)


@softmax_of_scores.mistake
def scores_over_their_sum(base, counts):
    """You divided the scores by their sum. Exponentiate first: what is e to the power of a logarithm?"""
    scores = _scores(base, counts)
    return scores / scores.sum()


@softmax_of_scores.mistake
def not_divided_by_the_sum(base, counts):
    """You did not divide by the sum of the exponentials. Weights add up to 1."""
    return torch.tensor(counts, dtype=torch.float64)


@softmax_of_scores.mistake
def divided_by_the_largest(base, counts):
    """You divided by the largest exponential. Divide by the sum of all exponentials: weights add up to 1."""
    return torch.tensor(counts, dtype=torch.float64) / max(counts)


@softmax_of_scores.mistake
def largest_takes_all(base, counts):
    """You gave all the weight to the largest score. Every score gets some weight: how large are the exponentials?"""
    return torch.tensor([float(count == max(counts)) for count in counts])


@softmax_of_scores.mistake
def all_alike(base, counts):
    """You gave each score the same weight. A larger score gets a larger weight: how large are the exponentials?"""
    return torch.full((3,), 1 / 3)


@softmax_of_scores.mistake
def smaller_gets_more(base, counts):
    """You gave the smallest score the largest weight. The weight grows with the score: look at the sign of the
    exponent."""
    return (-_scores(base, counts)).softmax(dim=0)


@softmax_of_scores.mistake
def powers_added_to_the_base(base, counts):
    """You computed the exponential of a + ln b as a + b. The exponential of a sum is a product of two exponentials, and
    a factor that all scores share cancels."""
    exponentials = torch.tensor([float(count + base) for count in counts])
    return exponentials / exponentials.sum() if base else None


@softmax_of_scores.mistake
def weights_in_reverse(base, counts):
    """You have the right weights in reverse order. Each weight belongs at the position of its score."""
    return _scores(base, counts).softmax(dim=0).flip(0)


softmax_of_logarithms = Topic(
    title="The softmax of small numbers",
    rule=softmax_of_scores,
    question=lambda base, counts: (
        f"The scores are {_score_text(base, counts[0])}, {_score_text(base, counts[1])} and "
        f"{_score_text(base, counts[2])}. "
        "What are the weights, to two decimal places?"
    ),
    answer=Numbers(places=2, total=1, total_of="Weights"),
)


# The weights of two keys

_EXPONENTIALS = "e¹ = 2.7   e² = 7.4   e³ = 20.1"


def _query_and_keys(draw):
    query, first, second = (torch.randint(0, 4, (4,), generator=draw.generator) for _ in range(3))
    return query, first, second


def _has_integer_scores(query, first, second):
    """Return whether the scores are integers from 1 to 10, and 1 to 3 apart."""
    a, b = int(query @ first), int(query @ second)
    return a % 2 == b % 2 == 0 and abs(a - b) in (2, 4, 6) and min(a, b) > 0 and max(a, b) <= 20


def _two_weights(first, second):
    return torch.tensor([first, second], dtype=torch.float64).softmax(dim=0)


def _dot_products(query, first, second):
    return float(query @ first), float(query @ second)


@rule(inputs=_query_and_keys)
def two_key_weights(query, first, second):
    """Return the weights of two keys."""
    a, b = _dot_products(query, first, second)
    return _two_weights(a / 2, b / 2)


@two_key_weights.mistake
def root_left_out(query, first, second):
    """You left out the division by √d_head. How many features does the query have, and what is the root of that
    number?"""
    a, b = _dot_products(query, first, second)
    return _two_weights(a, b)


@two_key_weights.mistake
def divided_by_d_head(query, first, second):
    """You divided the dot products by d_head. Divide by the root of d_head: √4 = 2."""
    a, b = _dot_products(query, first, second)
    return _two_weights(a / 4, b / 4)


@two_key_weights.mistake
def shares_without_a_softmax(query, first, second):
    """You divided the scores by their sum. Softmax exponentiates first."""
    a, b = _dot_products(query, first, second)
    return torch.tensor([a / (a + b), b / (a + b)])


@two_key_weights.mistake
def keys_exchanged(query, first, second):
    """You gave each key the weight of the other key. Which key has the larger dot product with the query?"""
    a, b = _dot_products(query, first, second)
    return _two_weights(b / 2, a / 2)


@two_key_weights.mistake
def best_key_takes_all(query, first, second):
    """You gave all the weight to the key with the larger score. The other key gets some weight too: how large is its
    exponential?"""
    a, b = _dot_products(query, first, second)
    return torch.tensor([float(a > b), float(b > a)])


@two_key_weights.mistake
def keys_share_alike(query, first, second):
    """You gave both keys the same weight. Their scores differ: by how much?"""
    return torch.tensor([0.5, 0.5])


@two_key_weights.mistake
def scores_given(query, first, second):
    """You stopped at the scores. Exponentiate the scores, and divide by the sum."""
    a, b = _dot_products(query, first, second)
    return torch.tensor([a / 2, b / 2])


@two_key_weights.mistake
def products_given(query, first, second):
    """You stopped at the dot products. Divide the dot products by √d_head, exponentiate, and divide by the sum."""
    a, b = _dot_products(query, first, second)
    return torch.tensor([a, b])


weights_of_two_keys = Topic(
    title="The weights of two keys",
    rule=two_key_weights,
    accepts=_has_integer_scores,
    question=lambda query, first, second: (
        "One query attends to two keys: its dot products with the keys are divided by √d_head, and softmax follows. "
        "What weights do the keys get, to two decimal places?"
    ),
    given_text=lambda query, first, second: (
        f"query  {write(query)}\nkey 0  {write(first)}\nkey 1  {write(second)}\n\n{_EXPONENTIALS}"
    ),
    answer=Numbers(places=2, total=1, total_of="Weights"),
)


# The features of a position


def _position_and_feature(draw):
    d_model = choose(draw, (4, 8, 8))
    return random_integer(draw, 2, 9), random_integer(draw, 0, d_model - 1), d_model


def _sine_or_cosine(wave, position, pair, d_model):
    """Describe a feature: sine or cosine, the position, and the number by which the position is divided."""
    return wave, position, 10000 ** (2 * pair // d_model) if 2 * pair % d_model == 0 else 10 ** (8 * pair // d_model)


@rule(inputs=_position_and_feature)
def feature_of_a_position(position, feature, d_model):
    """Return the sine or cosine of a quotient: the position divided by a power of ten."""
    return _sine_or_cosine(("sin", "cos")[feature % 2], position, feature // 2, d_model)


@feature_of_a_position.mistake
def sine_and_cosine_exchanged(position, feature, d_model):
    """You exchanged sine and cosine. Features are counted from 0: the even ones are sines."""
    wave, *position_and_divisor = feature_of_a_position.reference(position, feature, d_model)
    return ("cos" if wave == "sin" else "sin", *position_and_divisor)


@feature_of_a_position.mistake
def feature_taken_for_its_pair(position, feature, d_model):
    """You mistook the number of the feature for the number of its pair. Two features form a pair, and share one
    frequency."""
    return _sine_or_cosine(("sin", "cos")[feature % 2], position, feature, d_model) if feature > 1 else None


@feature_of_a_position.mistake
def one_pair_too_far(position, feature, d_model):
    """You counted the pairs from 1. The first pair is pair 0, with the highest frequency: the position is divided by
    1."""
    return _sine_or_cosine(("sin", "cos")[feature % 2], position, feature // 2 + 1, d_model)


@feature_of_a_position.mistake
def sines_first_then_cosines(position, feature, d_model):
    """You put all sines before all cosines. Sines and cosines alternate: a sine and its cosine are neighbours."""
    half = d_model // 2
    return _sine_or_cosine("sin" if feature < half else "cos", position, feature % half, d_model)


@feature_of_a_position.mistake
def slowest_pair_first(position, feature, d_model):
    """You began with the pair of the lowest frequency. For the first pair the position is divided by 1, and for each
    later pair by a larger number."""
    return _sine_or_cosine(("sin", "cos")[feature % 2], position, d_model // 2 - 1 - feature // 2, d_model)


@feature_of_a_position.mistake
def same_speed_for_all(position, feature, d_model):
    """You gave all pairs the frequency of the first pair. Each pair has a lower frequency than the pair before: by what
    is the position divided?"""
    return _sine_or_cosine(("sin", "cos")[feature % 2], position, 0, d_model)


def _all_waves(position, feature, d_model):
    """Return all possible answers in order."""
    exponents = range(0, 4, 2) if d_model == 4 else range(4)
    return {
        (wave, position, 10**exponent): f"{wave}({position}" + (f"/{10**exponent:,})" if exponent else ")")
        for wave in ("sin", "cos")
        for exponent in exponents
    }


position_features = Topic(
    title="The features of a position",
    rule=feature_of_a_position,
    question=lambda position, feature, d_model: (
        f"Position {position} is encoded by sines and cosines in {d_model} features, counted from 0. "
        f"What is feature {feature}?"
    ),
    answer=Choice(_all_waves),
)
