"""Chapter 8: features, the order of products, the state, and the order of the steps."""

import torch

from .answers import Number, Numbers, Order
from .draws import choose, random_integer, write
from .topic import Topic, rule


def _three_numbers(draw):
    return (torch.tensor([choose(draw, (-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0)) for _ in range(3)]),)


features = Topic(
    title="The features elu(x) + 1",
    rule="elu_feature_map",
    inputs=_three_numbers,
    question=lambda x: (
        f"What are the features of `{write(x)}`, elu(x) + 1, to two decimal places? (exp of −0.5, −1, −2, −3: 0.61, "
        "0.37, 0.14, 0.05)"
    ),
    answer=Numbers(places=2),
    excluded_mistakes=(  # these mistakes are made in code, not on paper
        "second_case_on_top_of_the_first",
        "zero_below",
        "selu_and_one",
        "gelu_and_one",
        "silu_and_one",
        "leaky_relu_and_one",
        "another_alpha",
        "cases_exchanged_and_x_itself",
    ),
    mistake_texts={
        "one_added_below_too": "Below zero, your features are exp(x) + 1, which is 1 too large. For x below zero, "
        "`elu` is exp(x) − 1: what is elu(x) + 1?",
        "cases_exchanged": "You exchanged the two cases: you took the exponential above zero and x + 1 below zero. "
        "Which of the two expressions can become negative?",
        "neither_case_at_zero": "At zero your feature is 0. exp(0) is 1, and 0 + 1 is 1: both cases give 1.",
        "both_cases_at_zero": "At zero your feature is 2: you added the results of both cases. Only one case applies.",
        "cases_exchanged_and_cut_off": "You exchanged the two cases: your features are 1 above zero, and x + 1 below "
        "zero. Which of the two expressions can become negative?",
        "cases_exchanged_without_the_one": "You exchanged the two cases, and left out the 1. Above zero, the features "
        "are x + 1: what are they below zero?",
        "exponential_not_cut_off": "Above zero your features are x + exp(x): you added the results of both cases. "
        "Only one case applies.",
    },
)


# The order of the products


def _product_sizes(draw):
    return choose(draw, (4, 10, 20, 100, 1000)), choose(draw, (2, 4, 8)), choose(draw, (2, 3, 5)), choose(draw, (0, 1))


@rule(inputs=_product_sizes)
def multiply_adds(seq, d_head, d_value, from_the_right):
    """Return the multiply-adds of Q Kᵀ V, computed from the left, with a table of N by N, or from the right, with a
    table of d_head by d_value."""
    return 2 * seq * d_head * d_value if from_the_right else seq * seq * d_head + seq * seq * d_value


@multiply_adds.mistake
def other_order(seq, d_head, d_value, from_the_right):
    """You counted the other order. Which two of the three factors are multiplied first here?"""
    return multiply_adds.reference(seq, d_head, d_value, not from_the_right)


@multiply_adds.mistake
def first_product_alone(seq, d_head, d_value, from_the_right):
    """You counted only the first product. Its result is then multiplied by the third factor."""
    return seq * d_head * d_value if from_the_right else seq * seq * d_head


@multiply_adds.mistake
def second_product_alone(seq, d_head, d_value, from_the_right):
    """You counted only the second product, or one of two equal products. How many products are there?"""
    return None if from_the_right else seq * seq * d_value


@multiply_adds.mistake
def flops_for_multiply_adds(seq, d_head, d_value, from_the_right):
    """You counted FLOPs; a multiply-add is two FLOPs. The question asks for multiply-adds."""
    return 2 * multiply_adds.reference(seq, d_head, d_value, from_the_right)


@multiply_adds.mistake
def sizes_multiplied(seq, d_head, d_value, from_the_right):
    """You multiplied all sizes at once, N² · d_head · d_value. Each product sums over one axis: count one product at a
    time."""
    return seq * seq * d_head * d_value


@multiply_adds.mistake
def results_counted(seq, d_head, d_value, from_the_right):
    """You counted the numbers in the two results. Each number is a sum: of how many terms?"""
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


def _state_sizes(draw):
    return (
        random_integer(draw, 2, 4),
        random_integer(draw, 2, 5),
        random_integer(draw, 6, 9),
        choose(draw, (10, 100, 1000)),
    )


@rule(inputs=_state_sizes)
def numbers_in_the_state(heads, d_head, d_value, tokens):
    """Return how many numbers linear attention stores for the past: S and z of each head, with d_head features."""
    return heads * (d_head * d_value + d_head)


@numbers_in_the_state.mistake
def z_left_out(heads, d_head, d_value, tokens):
    """You left out z, the sum of the keys' features. Without z, the weights do not sum to one."""
    return heads * d_head * d_value


@numbers_in_the_state.mistake
def s_left_out(heads, d_head, d_value, tokens):
    """You counted only z. The values are in S: how large is an outer product?"""
    return heads * d_head


@numbers_in_the_state.mistake
def one_head(heads, d_head, d_value, tokens):
    """You counted the state of one head. Each head has its own state."""
    return d_head * d_value + d_head


@numbers_in_the_state.mistake
def grows_with_the_past(heads, d_head, d_value, tokens):
    """Your state grows with each token. Each token adds its outer product to the same table: does the table grow?"""
    return tokens * heads * (d_head * d_value + d_head)


@numbers_in_the_state.mistake
def key_value_cache(heads, d_head, d_value, tokens):
    """This is the key-value cache: a key and a value for each token. Linear attention stores only sums over tokens."""
    return tokens * heads * (d_head + d_value)


@numbers_in_the_state.mistake
def z_as_wide_as_a_value(heads, d_head, d_value, tokens):
    """Your z has the size of a value. The keys' features add up to z: how many features does a key have?"""
    return heads * (d_head * d_value + d_value)


@numbers_in_the_state.mistake
def sizes_added(heads, d_head, d_value, tokens):
    """You added the two sizes instead of multiplying them. How many numbers does a table of d_head by d_value have?"""
    return heads * (d_head + d_value)


size_of_the_state = Topic(
    title="How large is the state?",
    rule=numbers_in_the_state,
    question=lambda heads, d_head, d_value, tokens: (
        f"Linear attention with {heads} heads, {d_head} features per key and d_value = {d_value} has read {tokens} "
        "tokens. How many numbers does its state store, S and z together?"
    ),
    answer=Number(),
)


# The steps of linear attention

_FORMS = {  # the name of a form, its steps, and the index at which a mask may be applied
    "softmax": ("softmax attention", ("scaled scores", "softmax", "averages of the values"), 1),
    "left": ("linear attention with φ(Q) φ(K)ᵀ first", ("features", "similarities", "averages of the values"), 2),
    "right": (
        "linear attention with φ(K)ᵀ V first",
        ("features", "sums S and z", "read with q", "divide by the normalizer"),
        1,
    ),
    "all": (
        "the form that stores all states at once",
        ("features", "outer products", "cumulative sums", "read with q", "divide by the normalizer"),
        None,
    ),
    "step": (
        "one step of the recurrent form",
        ("features", "outer product", "add to S and z", "read with q", "divide by the normalizer"),
        None,
    ),
    "piece": (
        "one piece of the chunked form",
        ("features", "similarities", "averages, with the state", "add to S and z"),
        2,
    ),
}
_HIDDEN_KEYS = {  # for each form, the keys that can be hidden
    "softmax": ("", "later keys", "padded keys"),
    "left": ("", "later keys"),
    "right": ("", "padded keys"),
    "piece": ("later keys",),
}
_PROJECTIONS = ("projections to q, k, v",), ("output projection",)
_SCOPES = {
    ", from tokens to output": (1, 1),
    ", from the tokens on": (1, 0),
    "": (0, 0),
}  # whether the input and the output projections are among the steps


def _form_arguments(draw):
    form = choose(draw, (*_FORMS, "tokens"))
    if form == "tokens":
        return form, choose(draw, (0, 7)), random_integer(draw, 2, 3)
    hidden = choose(draw, _HIDDEN_KEYS.get(form, ("",)))
    return form, hidden, tuple(_SCOPES)[0 if form == "softmax" else random_integer(draw, 0, 2)]


def _token_steps(first, count, steps=("{} into the state", "{} reads")):
    return [step.format(f"token {first + i}") for i in range(count) for step in steps]


def _move_step(steps, step, *, before="", after=""):
    """Return the steps with one step moved, or None if the step or its new neighbour is missing."""
    matches = [[candidate for candidate in steps if candidate.startswith(start)] for start in (step, before or after)]
    if not all(matches):
        return None
    (step, *_), (neighbour, *_) = matches
    others = [candidate for candidate in steps if candidate != step]
    index = others.index(neighbour) + (not before)
    return (*others[:index], step, *others[index:])


@rule(inputs=_form_arguments)
def steps_of_a_form(form, hidden, scope):
    """Return the steps of a form of attention in the right order."""
    if form == "tokens":
        return tuple(_token_steps(hidden, scope))
    _, steps, mask_index = _FORMS[form]
    if hidden:
        steps = (*steps[:mask_index], f"{'zeros for' if form == 'right' else 'mask'} {hidden}", *steps[mask_index:])
    input_steps, output_steps = (projections[:count] for projections, count in zip(_PROJECTIONS, _SCOPES[scope]))
    return (*input_steps, *steps, *output_steps)


def _with_step_moved(form, hidden, scope, step, **neighbour):
    return _move_step(steps_of_a_form.reference(form, hidden, scope), step, **neighbour)


@steps_of_a_form.mistake
def features_after_a_product(form, hidden, scope):
    """You multiplied before you computed the features. The feature map is applied to each query and key: what is
    multiplied afterwards?"""
    return form in _FORMS and _with_step_moved(form, hidden, scope, "features", after=_FORMS[form][1][1])


@steps_of_a_form.mistake
def features_of_tokens(form, hidden, scope):
    """You computed features of the tokens. The feature map is applied to queries and keys: which step computes queries
    and keys?"""
    return _with_step_moved(form, hidden, scope, "features", before="projections")


@steps_of_a_form.mistake
def masked_after_the_softmax(form, hidden, scope):
    """You masked the output of softmax. Then a row no longer sums to one: what must the score of a hidden
    key be before the softmax?"""
    return _with_step_moved(form, hidden, scope, "mask", after="softmax")


@steps_of_a_form.mistake
def masked_after_the_averages(form, hidden, scope):
    """You masked the averages, which already contain all values. In which step does each key still have its own
    number?"""
    return _with_step_moved(form, hidden, scope, "mask", after="averages")


@steps_of_a_form.mistake
def masked_before_the_scores(form, hidden, scope):
    """You masked before there was a table to mask. Which step computes one number for each query and key?"""
    name = "scaled scores" if form == "softmax" else "similarities"
    return _with_step_moved(form, hidden, scope, "mask", before=name)


@steps_of_a_form.mistake
def padding_before_the_features(form, hidden, scope):
    """You set padded keys to zero before the feature map. The features of 0 are elu(0) + 1 = 1: are the padded keys
    left out then?"""
    return _with_step_moved(form, hidden, scope, "zeros", before="features")


@steps_of_a_form.mistake
def padding_after_the_sums(form, hidden, scope):
    """You set padded keys to zero after the sums. S and z already contain these keys: can the keys be removed
    again?"""
    return _with_step_moved(form, hidden, scope, "zeros", after="sums")


@steps_of_a_form.mistake
def softmax_of_averages(form, hidden, scope):
    """You took the softmax of the averages. Softmax turns scores into weights: what is averaged with the weights?"""
    return _with_step_moved(form, hidden, scope, "softmax", after="averages")


@steps_of_a_form.mistake
def read_before_it_is_added(form, hidden, scope):
    """You read the state before the token was added to it. Query i may see keys 0 to i: is its own key among them?"""
    if form == "tokens":
        return _token_steps(hidden, scope, ("{} reads", "{} into the state"))
    return form in ("step", "all") and _with_step_moved(form, hidden, scope, "read", before=_FORMS[form][1][2])


@steps_of_a_form.mistake
def read_before_the_sums(form, hidden, scope):
    """You read before there was a state. What are the queries multiplied by, if no table of queries and keys is
    computed?"""
    return _with_step_moved(form, hidden, scope, "read", before="sums")


@steps_of_a_form.mistake
def divided_before_it_is_read(form, hidden, scope):
    """You divided before the query had read the state. Each query has its own normalizer, φ(q) times z: when is the
    normalizer known?"""
    return _with_step_moved(form, hidden, scope, "divide", before="read")


@steps_of_a_form.mistake
def added_before_it_is_multiplied(form, hidden, scope):
    """You added up before key and value were multiplied. S is a sum of products: what does each token add to S?"""
    return form in ("step", "all") and _with_step_moved(form, hidden, scope, "outer", after=_FORMS[form][1][2])


@steps_of_a_form.mistake
def chunk_counted_twice(form, hidden, scope):
    """You added the piece to the state before you read the state. Then the keys of the piece count twice: where else
    are they counted?"""
    return form == "piece" and _with_step_moved(form, hidden, scope, "add to", before="averages")


@steps_of_a_form.mistake
def all_tokens_first(form, hidden, scope):
    """You added all tokens to the state before the first token read the state. What does the first token see then?"""
    steps = steps_of_a_form.reference(form, hidden, scope)
    return form == "tokens" and [*steps[::2], *steps[1::2]]


@steps_of_a_form.mistake
def last_token_first(form, hidden, scope):
    """You began with the last token. The state is the sum over earlier tokens: which token needs no other token?"""
    steps = steps_of_a_form.reference(form, hidden, scope)
    return form == "tokens" and [step for i in range(len(steps) - 2, -1, -2) for step in steps[i : i + 2]]


@steps_of_a_form.mistake
def output_projection_first(form, hidden, scope):
    """You applied the output projection to queries, keys and values. This projection mixes the outputs of the heads:
    when are the outputs known?"""
    return _with_step_moved(form, hidden, scope, "output", after="projections")


def _step_text(form, hidden, scope):
    if form == "tokens":
        tokens = f"{hidden}, {hidden + 1}" if scope > 2 else f"{hidden}"
        return f"when the recurrent form processes tokens {tokens} and {hidden + scope - 1} one by one"
    name, *_ = _FORMS[form]
    keys = {"later keys": " in a decoder", "padded keys": " with padding"}.get(hidden, "") if form != "piece" else ""
    return f"in {name}{',' if keys and 'with' in name else ''}{keys}{scope}"


order_of_linear_attention = Topic(
    title="Linear attention step by step",
    rule=steps_of_a_form,
    accepts=lambda form, hidden, scope: form == "tokens" or len(steps_of_a_form.reference(form, hidden, scope)) > 3,
    question=lambda *arguments: f"Put these steps in order, as they happen {_step_text(*arguments)}.",
    answer=Order(lambda *arguments: steps_of_a_form.reference(*arguments)),
)
