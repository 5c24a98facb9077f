"""Chapter 9: the cache, the parameters and the active experts of a modern block."""

from .answers import Number
from .draws import choose, random_integer
from .topic import Topic, rule


def _grouped_heads(draw):
    n_kv_heads, group = choose(draw, (1, 2, 3, 4)), choose(draw, (2, 3, 4))
    return n_kv_heads * group, n_kv_heads, choose(draw, (5, 10, 20, 100)), random_integer(draw, 2, 6)


@rule(inputs=_grouped_heads)
def cached_numbers(n_heads, n_kv_heads, d_head, n_layers):
    """Return how many numbers the cache stores for a token with grouped-query attention."""
    return 2 * n_layers * n_kv_heads * d_head


@cached_numbers.mistake
def query_heads(n_heads, n_kv_heads, d_head, n_layers):
    """You counted the query heads. The cache stores no queries: how many key heads are there?"""
    return 2 * n_layers * n_heads * d_head


@cached_numbers.mistake
def keys_alone(n_heads, n_kv_heads, d_head, n_layers):
    """You counted only the keys. What does attention average with its weights?"""
    return n_layers * n_kv_heads * d_head


@cached_numbers.mistake
def one_layer(n_heads, n_kv_heads, d_head, n_layers):
    """You counted one layer. Each layer has its own keys and values."""
    return 2 * n_kv_heads * d_head


@cached_numbers.mistake
def group_size(n_heads, n_kv_heads, d_head, n_layers):
    """You counted the heads of one group. This number says how many query heads share a key head, not how many
    key heads there are."""
    return 2 * n_layers * (n_heads // n_kv_heads) * d_head


@cached_numbers.mistake
def one_shared_head(n_heads, n_kv_heads, d_head, n_layers):
    """You counted a single key head, as in multi-query attention. Here each group has its own key head."""
    return 2 * n_layers * d_head


@cached_numbers.mistake
def queries_as_well(n_heads, n_kv_heads, d_head, n_layers):
    """You counted queries as well. A query is used only once, in its own step: which vectors are read again later?"""
    return n_layers * (2 * n_kv_heads + n_heads) * d_head


cache_of_grouped_heads = Topic(
    title="The cache of grouped heads",
    rule=cached_numbers,
    question=lambda n_heads, n_kv_heads, d_head, n_layers: (
        f"A model has {n_layers} layers, {n_heads} query heads, {n_kv_heads} key–value heads, and d_head = "
        f"{d_head}. How many numbers does its cache gain for each token?"
    ),
    answer=Number(),
)


def _gated_sizes(draw):
    return choose(draw, (2, 3, 4, 5, 8, 10)), choose(draw, (6, 9, 12, 20, 30))


@rule(inputs=_gated_sizes)
def gated_layer_parameters(d_model, d_ff):
    """Return the number of parameters of a gated feed-forward layer without biases."""
    return 3 * d_model * d_ff


@gated_layer_parameters.mistake
def two_matrices(d_model, d_ff):
    """You counted two matrices, as in the layer of 2017. A gate needs one more matrix: which two results are
    multiplied?"""
    return 2 * d_model * d_ff


@gated_layer_parameters.mistake
def four_matrices(d_model, d_ff):
    """You counted four matrices. Two matrices lead to d_ff features, and only one leads back."""
    return 4 * d_model * d_ff


@gated_layer_parameters.mistake
def gate_as_a_vector(d_model, d_ff):
    """You counted the gate as one number for each feature. The gate is computed from the token by its own linear
    map."""
    return 2 * d_model * d_ff + d_ff


@gated_layer_parameters.mistake
def gate_of_width_d_model(d_model, d_ff):
    """Your gate is a matrix of d_model by d_model. The gate multiplies d_ff features: how many numbers must its map
    compute?"""
    return 2 * d_model * d_ff + d_model * d_model


@gated_layer_parameters.mistake
def biases_counted(d_model, d_ff):
    """You counted biases, but this layer has none. What does the question say about biases?"""
    return 3 * d_model * d_ff + 2 * d_ff + d_model


@gated_layer_parameters.mistake
def one_matrix_alone(d_model, d_ff):
    """You counted one matrix. Two maps widen the token, and a third maps it back."""
    return d_model * d_ff


parameters_of_a_gated_layer = Topic(
    title="The parameters of a gated layer",
    rule=gated_layer_parameters,
    question=lambda d_model, d_ff: (
        f"A gated feed-forward layer (SwiGLU) has d_model = {d_model}, d_ff = {d_ff} and no biases. How many "
        "parameters does it have?"
    ),
    answer=Number(),
)


def _mixture_sizes(draw):
    n_experts = choose(draw, (4, 8, 16, 32))
    return n_experts, choose(draw, (1, 2, 3)), choose(draw, (10, 20, 30, 100)), choose(draw, (1, 2, 5))


@rule(inputs=_mixture_sizes)
def parameters_per_token(n_experts, n_active, expert, router):
    """Return the number of parameters that one token uses in a mixture of experts."""
    return n_active * expert + n_experts * router


@parameters_per_token.mistake
def all_experts(n_experts, n_active, expert, router):
    """You counted all experts. All experts must be in memory, but how many experts does one token use?"""
    return n_experts * expert + n_experts * router


@parameters_per_token.mistake
def router_left_out(n_experts, n_active, expert, router):
    """You left out the router. Each token uses the router, which scores every expert."""
    return n_active * expert


@parameters_per_token.mistake
def router_of_the_chosen(n_experts, n_active, expert, router):
    """You counted the router's numbers for the chosen experts only. The router has to score all experts before it can
    choose."""
    return n_active * (expert + router)


@parameters_per_token.mistake
def router_once(n_experts, n_active, expert, router):
    """You counted the router's numbers for one expert. The router has as many numbers for every other expert: how many
    experts are there?"""
    return n_active * expert + router


@parameters_per_token.mistake
def one_expert(n_experts, n_active, expert, router):
    """You counted one expert. How many experts does each token use?"""
    return expert + n_experts * router


@parameters_per_token.mistake
def experts_not_used(n_experts, n_active, expert, router):
    """You counted the experts that the token does not use. Which experts compute its output?"""
    return (n_experts - n_active) * expert + n_experts * router


active_parameters = Topic(
    title="The active parameters of experts",
    rule=parameters_per_token,
    question=lambda n_experts, n_active, expert, router: (
        f"A layer has {n_experts} experts of {expert} million parameters each, and a router with {router} million for "
        f"each expert. Each token uses {n_active} of the experts: how many million parameters are active for a token, "
        "including the router?"
    ),
    answer=Number(unit="million"),
)
