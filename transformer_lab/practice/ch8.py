"""Chapter 8: features, the order of products, and the state."""

import torch

from .answers import Number, Numbers
from .draws import number, one_of, write
from .topic import Topic, rule


def _some_numbers(draw):
    return (torch.tensor([one_of(draw, (-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0)) for _ in range(3)]),)


features = Topic(
    title="The features elu(x) + 1",
    rule="elu_feature_map",
    inputs=_some_numbers,
    question=lambda x: (
        f"What are the features of `{write(x)}`, elu(x) + 1, to two places? (exp of −0.5, −1, −2, −3: 0.61, 0.37, "
        "0.14, 0.05)"
    ),
    answer=Numbers(places=2),
    without=("second_case_on_top_of_the_first", "zero_below"),
    words={
        "one_added_below_too": "Below zero your features are exp(x) + 1, one too many. Where x is below zero, `elu` is "
        "exp(x) − 1; what is that plus 1?",
        "cases_exchanged": "The two cases have changed places: you took the exponential above zero and x + 1 below. "
        "Which of the two can become negative?",
        "neither_case_at_zero": "At zero your feature is 0. exp(0) is 1, and 0 + 1 is 1: both cases agree there.",
        "both_cases_at_zero": "At zero your feature is 2: you added what both cases give. Only one of them holds.",
    },
)


# The order of the products


def _sizes(draw):
    return one_of(draw, (4, 10, 20, 100, 1000)), one_of(draw, (2, 4, 8)), one_of(draw, (2, 3, 5)), one_of(draw, (0, 1))


@rule(inputs=_sizes)
def multiply_adds(seq, d_head, d_value, from_the_right):
    """The multiply-adds of Q Kᵀ V: by way of a table of N by N, or from the right, of one of d_head by d_value."""
    return 2 * seq * d_head * d_value if from_the_right else seq * seq * d_head + seq * seq * d_value


@multiply_adds.mistake
def other_order(seq, d_head, d_value, from_the_right):
    """You counted the other order. Which two of the three are multiplied first here?"""
    return multiply_adds.reference(seq, d_head, d_value, not from_the_right)


@multiply_adds.mistake
def first_product_alone(seq, d_head, d_value, from_the_right):
    """You counted the first product alone. Its result still has to meet the third factor."""
    return seq * d_head * d_value if from_the_right else seq * seq * d_head


@multiply_adds.mistake
def second_product_alone(seq, d_head, d_value, from_the_right):
    """You counted the second product alone, or one of two that are alike. How many products are there?"""
    return None if from_the_right else seq * seq * d_value


@multiply_adds.mistake
def flops_for_multiply_adds(seq, d_head, d_value, from_the_right):
    """You counted FLOPs, and a multiply-add is two of them. The question asks for multiply-adds."""
    return 2 * multiply_adds.reference(seq, d_head, d_value, from_the_right)


@multiply_adds.mistake
def sizes_multiplied(seq, d_head, d_value, from_the_right):
    """You multiplied all sizes at once, N² · d_head · d_value. Each product sums over one axis: count one at a time."""
    return seq * seq * d_head * d_value


@multiply_adds.mistake
def results_counted(seq, d_head, d_value, from_the_right):
    """You counted the numbers of the two results. Each of them is a sum: of how many terms?"""
    return d_head * d_value + seq * d_value if from_the_right else seq * seq + seq * d_value


cost_of_an_order = Topic(
    title="The cost of an order of products",
    rule=multiply_adds,
    question=lambda seq, d_head, d_value, from_the_right: (
        f"`{'Q @ (K.T @ V)' if from_the_right else '(Q @ K.T) @ V'}` for {seq} tokens, d_head = {d_head} and "
        f"d_value = {d_value}: how many multiply-adds?"
    ),
    answer=Number(unit="multiply-adds"),
)


# The state


@rule(inputs=lambda draw: (number(draw, 2, 4), number(draw, 2, 5), number(draw, 6, 9), one_of(draw, (10, 100, 1000))))
def numbers_of_the_state(heads, d_head, d_value, tokens):
    """How many numbers linear attention keeps of a past, S and z of each head, with d_head features."""
    return heads * (d_head * d_value + d_head)


@numbers_of_the_state.mistake
def z_left_out(heads, d_head, d_value, tokens):
    """You left out z, the sum of the keys' features. Without it the weights do not sum to one."""
    return heads * d_head * d_value


@numbers_of_the_state.mistake
def s_left_out(heads, d_head, d_value, tokens):
    """You counted z alone. What the values have left in the state is S: how large is an outer product?"""
    return heads * d_head


@numbers_of_the_state.mistake
def one_head(heads, d_head, d_value, tokens):
    """You counted the state of one head. Each head has its own."""
    return d_head * d_value + d_head


@numbers_of_the_state.mistake
def grows_with_the_past(heads, d_head, d_value, tokens):
    """Your state grows with the tokens. Each adds its outer product to the same table: what grows then?"""
    return tokens * heads * (d_head * d_value + d_head)


@numbers_of_the_state.mistake
def key_value_cache(heads, d_head, d_value, tokens):
    """This is the key-value cache: a key and a value for each token. Linear attention has added them all up."""
    return tokens * heads * (d_head + d_value)


@numbers_of_the_state.mistake
def z_as_wide_as_a_value(heads, d_head, d_value, tokens):
    """Your z is as wide as a value. It is a sum of the keys' features: how many are they?"""
    return heads * (d_head * d_value + d_value)


@numbers_of_the_state.mistake
def sizes_added(heads, d_head, d_value, tokens):
    """You added the two sizes where S is their product. A table of d_head by d_value has how many numbers?"""
    return heads * (d_head + d_value)


size_of_the_state = Topic(
    title="How large is the state?",
    rule=numbers_of_the_state,
    question=lambda heads, d_head, d_value, tokens: (
        f"Linear attention with {heads} heads, {d_head} features of a key and d_value = {d_value} has read {tokens} "
        "tokens. How many numbers does its state keep, S and z together?"
    ),
    answer=Number(),
)
