"""One step of linear attention: add a token to the state, and read the state."""

import torch
from torch.nn import functional as F

from ..exercise import exercise, family, rows_of, with_text_of
from . import linear_attention as linear_attention_module
from .causal_linear_attention import causal_linear_attention
from .elu_feature_map import elu_alone, feature_map, no_map
from .linear_attention import RARE_MAPS, scale_to_hundreds
from .properties import is_close


def _state_and_token(draw, batch=2, heads=3, d_head=5, d_value=4):
    earlier_keys, earlier_values = feature_map(draw(batch, heads, 6, d_head)), draw(batch, heads, 6, d_value)
    state = earlier_keys.mT @ earlier_values, earlier_keys.sum(-2)
    return state, draw(batch, heads, d_head), draw(batch, heads, d_head), draw(batch, heads, d_value)


def _with_zero_state(arguments):
    (S, z), query, key, value = arguments
    return (torch.zeros_like(S), torch.zeros_like(z)), query, key, value


def add_product(S, k, value):
    """Add this key's features times its value to `S`."""
    return S + k.unsqueeze(-1) * value.unsqueeze(-2)


def add_key(z, k):
    """Add this key's features to `z`."""
    return z + k


def read_state(q, S, z):
    """Multiply the query's features by the new `S`, and divide by their product with the new `z`."""
    return (q.unsqueeze(-2) @ S).squeeze(-2) / (q * z).sum(-1, keepdim=True)


@exercise(
    inputs=_state_and_token,
    axes={
        "query": "batch heads d_head",
        "key": "batch heads d_head",
        "value": "batch heads d_value",
        "return": "batch heads d_head d_value, batch heads d_head, batch heads d_value",
    },
    hints=(
        "A token sees itself. So what comes first: do you add the token to the sums, or does the query read the sums?",
        "`S` grows by the outer product of φ(key) and value, one table (d_head, d_value) in each head: insert two new "
        "axes of size 1 to compute it. `z` grows by φ(key). Make new tensors: `+=` would change the caller's state.",
        "`S, z = state`, then `S = S + k.unsqueeze(…) * value.unsqueeze(…)`, `z = z + …`, `output = (q.unsqueeze(…) @ "
        "S).squeeze(…) / …` and `return (S, z), output`",
    ),
)
def recurrent_step(
    state, query, key, value, *, features=feature_map, new_S=add_product, new_z=add_key, output=read_state
):
    """Add one token to the state and read the new state: one step of causal linear attention.

    state: S (batch, heads, d_head, d_value) and z (batch, heads, d_head), query and key (batch, heads, d_head),
    value (batch, heads, d_value). Returns ((S, z), output), with output (batch, heads, d_value).
    """
    S, z = state
    q, k = features(query), features(key)
    S, z = new_S(S, k, value), new_z(z, k)
    return (S, z), output(q, S, z)


@recurrent_step.right
class RightAnswers:
    def step_by_einsum(state, query, key, value):
        q, k = feature_map(query), feature_map(key)
        S = state[0] + torch.einsum("bhd,bhv->bhdv", k, value)
        z = state[1] + k
        return (S, z), torch.einsum("bhd,bhdv->bhv", q, S) / torch.einsum("bhd,bhd->bh", q, z)[..., None]

    def step_in_place_on_a_copy(state, query, key, value):
        S, z = (x.clone() for x in state)
        k = F.relu(key) + torch.exp(-F.relu(-key))
        S += k[..., :, None] * value[..., None, :]
        z += k
        weighted = feature_map(query)[..., None] * S
        return [S, z], weighted.sum(-2) / (feature_map(query) * z).sum(-1)[..., None]

    def step_with_a_small_number_added(state, query, key, value):
        return recurrent_step.reference(
            state,
            query,
            key,
            value,
            output=lambda q, S, z: Output.not_divided(q, S, z) / ((q * z).sum(-1, keepdim=True) + 1e-6),
        )

    def step_with_matrices(state, query, key, value):
        q, k = feature_map(query).unsqueeze(-2), feature_map(key).unsqueeze(-2)
        S = state[0] + k.transpose(-1, -2) @ value.unsqueeze(-2)
        z = state[1] + k.squeeze(-2)
        return (S, z), (q @ S / (q @ z.unsqueeze(-1))).squeeze(-2)

    def old_and_new_read_separately(state, query, key, value):
        S, z = state
        q, k = feature_map(query), feature_map(key)
        own_weight = (q * k).sum(-1, keepdim=True)
        numerator = (S * q.unsqueeze(-1)).sum(-2) + own_weight * value
        normalizer = (q * z).sum(-1, keepdim=True) + own_weight
        return (S + k.unsqueeze(-1) * value.unsqueeze(-2), k + z), numerator / normalizer


recurrent_step.example("the first token with a state of zeros", lambda draw: _with_zero_state(_state_and_token(draw)))


@recurrent_step.probe
def first_token_with_a_small_key(draw):
    """the first token with a key around −5"""
    state, query, key, value = _with_zero_state(_state_and_token(draw))
    return state, query, key - 5, value


recurrent_step.example("one sequence and one value", batch=1, d_value=1)
recurrent_step.example("one head", heads=1)
recurrent_step.example("one feature", d_head=1)


@recurrent_step.probe
def numbers_in_the_hundreds(draw):
    """numbers in the hundreds"""
    state, query, key, value = _state_and_token(draw)
    return state, scale_to_hundreds(query), scale_to_hundreds(key), value


@recurrent_step.property
def first_token_gets_its_value(function, *arguments):
    """The first token, whose state is zero, gets its own value."""
    return is_close(function(*_with_zero_state(arguments))[1], arguments[-1])


@recurrent_step.property
def state_independent_of_query(function, state, query, key, value):
    """The query reads the state but does not change it."""
    ((S, z), _), ((other_S, other_z), _) = (function(state, q, key, value) for q in (query, 1 - query))
    return torch.equal(S, other_S) and torch.equal(z, other_z)


@recurrent_step.property
def added_to_any_state(function, state, query, key, value):
    """The terms added to the state do not depend on the state."""
    (S, z), _ = function(state, query, key, value)
    (only_S, only_z), _ = function(*_with_zero_state((state, query, key, value)))
    return is_close(S - state[0], only_S) and is_close(z - state[1], only_z)


@recurrent_step.property
def as_causal_linear_attention(function, state, query, key, value):
    """Token by token, starting from zeros, the results are those of causal linear attention for the whole sequence."""
    state, results = _with_zero_state((state, query, key, value))[0], []
    q, k, v = (torch.stack([x, x.flip(-1), -x], dim=2) for x in (query, key, value))
    for token in zip(q.unbind(2), k.unbind(2), v.unbind(2)):
        state, output = function(state, *token)
        results.append(output)
    return is_close(torch.stack(results, dim=2), causal_linear_attention.reference(q, k, v))


def _read_another_state(state, query, key, value, S, z):
    """Return the right state, and an output that was read from a different state."""
    new_state, _ = recurrent_step.reference(state, query, key, value)
    return new_state, read_state(
        feature_map(query), S if S is not None else new_state[0], z if z is not None else new_state[1]
    )


def _scales_old_state(probe, got, expected):
    """Whether the old `S` was multiplied by a number other than 1, and the old `z` by the same number or not at all."""
    try:
        (S, z), output = got.value
        (right_S, right_z), _ = expected.value
        (old_S, old_z), query, *_ = probe.arguments
        excess = (S - right_S).mul(old_S).sum() / old_S.square().sum()
        z_is_right = torch.allclose(z, right_z, 1e-4)
        return bool(
            excess.abs() > 1e-3
            and torch.allclose(S, right_S + excess * old_S, 1e-4, 1e-4)
            and (z_is_right or torch.allclose(z, right_z + excess * old_z, 1e-4, 1e-4))
            and torch.allclose(output, read_state(feature_map(query), S, z), 1e-3, 1e-4)
        )
    except (TypeError, ValueError, AttributeError, RuntimeError):  # the result is not a pair of a state and an output
        return False


@recurrent_step.wrong(stage="new_S")
class NewS:
    def key_not_added_to_S(S, k, value):
        """Every feature of `S` gets the whole value, whatever the key is: you add the value to `S` without the key's
        features. Then all keys look the same to a query. Which two vectors does the outer product multiply?"""
        return S + value.unsqueeze(-2)

    def S_not_updated(S, k, value):
        """You add the token to `z` but not to `S`: its value is lost, and its key makes the weights of the other values
        smaller. Do you compute the new `S` without keeping it, or does the output read the old `S`?"""
        return S + 0

    def S_overwritten(S, k, value):
        """`S` contains only the last token: you replace `S` by φ(key) valueᵀ instead of adding φ(key) valueᵀ to it. All
        earlier values are lost, but `z` still counts their keys. What happens to the old `S`?"""
        return k.unsqueeze(-1) * value.unsqueeze(-2)

    def values_mapped_too(S, k, value):
        """You also apply the feature map to the value before you add it to `S`. The map is for the weights, which
        depend on query and key; the value must stay as it is, including negative numbers. Which two of the three
        tensors get a φ?"""
        return S + k.unsqueeze(-1) * feature_map(value).unsqueeze(-2)


@recurrent_step.wrong(stage="new_z")
class NewZ:
    def z_not_updated(z, k):
        """You add the token to `S` but not to `z`. The weights sum to more than one, and for the very first token you
        divide by zero. Do you compute the new `z` without keeping it, or does the output read the old `z`?"""
        return z + 0

    def z_overwritten(z, k):
        """`z` contains only the last token's key: you replace `z` by φ(key) instead of adding φ(key) to it. `S`
        contains all tokens, so the results grow with every step. What happens to the old `z`?"""
        return k + 0

    def tokens_counted(z, k):
        """`z` grows by one with each token instead of by the token's features: it counts tokens. A query then reads the
        same from every key, and the weights do not sum to one. `S` adds φ(key) times the value. What does this term
        become if every value is one? That is what you must add to `z`."""
        return z + 1


@recurrent_step.wrong(stage="output")
class Output:
    def not_divided(q, S, z):
        """You never divide: the output is a sum of values, not a mean, and it grows with every token. The very first
        token does not get its own value. What does the query read besides `S`?"""
        return (q.unsqueeze(-2) @ S).squeeze(-2)

    def divided_by_keys_alone(q, S, z):
        """You divide by the sum of `z` over its features, without the query's features. So the weights do not sum to
        one: the query's features multiply `S` in the numerator, and must multiply `z` in the normalizer."""
        return Output.not_divided(q, S, z) / z.sum(-1, keepdim=True)

    def divided_feature_by_feature(q, S, z):
        """You divide `S` by `z` feature by feature, and the query averages the quotients. Only the query then decides
        how much a feature counts, however small the feature is in the keys. The query must read both sums first; then
        you divide once, at the end."""
        return (q.unsqueeze(-2) @ (S / z.unsqueeze(-1))).squeeze(-2) / q.sum(-1, keepdim=True)

    def one_normalizer_for_all(q, S, z):
        """You divide all outputs by one number: the products of the query's features with `z`, summed over the
        features, but also over heads and sequences. Each head of each sequence needs its own normalizer. Which argument
        of `sum` names the axis?"""
        return Output.not_divided(q, S, z) / (q * z).sum()

    def divided_by_the_query_alone(q, S, z):
        """You divide by the sum of the query's own features, without `z`. So the weights do not sum to one, and they
        grow with every token. The normalizer is what the query would read from `S` if all values were one. Which of the
        two sums in the state does it need?"""
        return Output.not_divided(q, S, z) / q.sum(-1, keepdim=True)

    def divided_by_root_of_d(q, S, z):
        """You divide only by √d_head. The root belongs to softmax attention. Here the weights are the similarities
        themselves, and need a normalizer in order to sum to one: a different number at each step. What does the query
        read besides `S`?"""
        return Output.not_divided(q, S, z) / q.shape[-1] ** 0.5

    def softmax_of_the_result(q, S, z):
        """You apply a softmax over the numbers of the output. So each output sums to one over `d_value`, but the
        weights should sum to one over the tokens. Linear attention uses a division instead of a softmax: by what must
        you divide?"""
        return Output.not_divided(q, S, z).softmax(-1)

    def divided_by_a_mean(q, S, z):
        """You take the mean of the products of the query's features and `z`, but need their sum: the output is too
        large by a factor of d_head. φ(query) · `z` is a dot product. What does a dot product do with its products?"""
        return Output.not_divided(q, S, z) / (q * z).mean(-1, keepdim=True)


class RaisingOutputs:
    """Wrong ways to read the state, for which PyTorch raises an error."""

    def query_without_its_new_axis(q, S, z):
        """You multiply the query by `S` as it is. `@` treats the query's last two axes, (heads, d_head), as a matrix,
        and raises an error. In each head one row of features is multiplied by one table: make the query a row, (1,
        d_head), and remove the new axis afterwards. Which call adds an axis, and which call removes one?"""
        return q @ S

    def query_right_of_S(q, S, z):
        """You multiply `S` by the query as a column: `d_value` is aligned with `d_head`, which raises an error; with
        equal sizes it would be silently wrong. `S` has the axes (d_head, d_value), and the query's features must be
        aligned with `d_head`. On which side of `S` must the query be?"""
        return (S @ q.unsqueeze(-1)).squeeze(-1) / (q * z).sum(-1)[..., None]

    def query_as_a_column(q, S, z):
        """You multiply the query as a column, (d_head, 1), by `S`: its axis of size 1 does not match the `d_head` rows
        of `S`, which raises an error. The query must be a row, (1, d_head), so that features match features. Where did
        `unsqueeze` insert the new axis?"""
        return q.unsqueeze(-1) @ S

    def normalizer_without_its_axis(q, S, z):
        """Your normalizer has the axes (batch, heads), but the output has one more. Shapes are aligned from the right,
        so heads are aligned with `d_value`, which raises an error. Each head has one number: which operation keeps, or
        adds, a last axis of size 1?"""
        return Output.not_divided(q, S, z) / (q * z).sum(-1)

    def normalizer_with_an_axis_too_many(q, S, z):
        """Your normalizer has the axes (batch, heads, 1, 1), but the output has three. Shapes are aligned from the
        right, so batch is aligned with heads, and the division raises an error. Either squeeze both tensors, or divide
        first and then squeeze. Which tensor still has four axes?"""
        return Output.not_divided(q, S, z) / (q.unsqueeze(-2) @ z.unsqueeze(-1))

    def normalizer_of_every_feature(q, S, z):
        """You divide by `d_head` numbers, one for each feature, but the output has `d_value` numbers. The division
        raises an error; with equal sizes it would be silently wrong. The normalizer is one number for each head,
        φ(query) · `z`. Over which axis does a dot product sum, and how can you keep this axis with size 1?"""
        return Output.not_divided(q, S, z) / (q * z)

    def heads_with_heads(q, S, z):
        """You divide by a table of heads by heads: `query @ z.mT` multiplies every head's query by every head's `z`.
        The table does not match `d_value`, so the division raises an error. Each head reads only its own `z`, element
        by element. Which product does this, and over which axis do you sum it?"""
        return Output.not_divided(q, S, z) / (q @ z.mT)

    def queries_by_z(q, S, z):
        """You multiply the query's features by `z` with `@`, which treats the last two axes of each, (heads, d_head),
        as a matrix, and raises an error. Each head reads only its own `z`, element by element: which product does this,
        and over which axis do you sum it?"""
        return Output.not_divided(q, S, z) / (q @ z)


@recurrent_step.wrong
class WrongAnswers:
    @family(**rows_of(RaisingOutputs))
    def raising_output(output, *arguments):
        return recurrent_step.reference(*arguments, output=output)

    def read_before_the_token(state, query, key, value):
        """{The state you return is right, but} the output was read from the old state: the token misses itself. The
        very first token reads only zeros there: its output is NaN (0/0), or 0 if you add a small number to the
        normalizer. In which order do you update and read?"""
        return _read_another_state(state, query, key, value, *state)

    def S_read_before_the_token(state, query, key, value):
        """{The state you return is right, but} you divide what the query reads from the old `S` by the new normalizer:
        you read between the two updates, which is too early. The very first token gets zeros. Which `S` does the
        numerator use?"""
        return _read_another_state(state, query, key, value, state[0], None)

    def z_read_before_the_token(state, query, key, value):
        """{The state you return is right, but} you divide what the query reads from the new `S` by the old normalizer:
        you read between the two updates, which is too early. For the very first token you divide by zero, or by a small
        number that you add. Which `z` does the normalizer use?"""
        return _read_another_state(state, query, key, value, None, state[1])

    def old_state_returned(state, query, key, value):
        """{The output is right, but} the state you return is the one that came in. This token is then forgotten: every
        later step starts from the same state as this one. Which `S` and `z` does the `return` name?"""
        return tuple(x.clone() for x in state), recurrent_step.reference(state, query, key, value)[1]

    def old_S_returned(state, query, key, value):
        """{The output is right, but} in the state you return, only `z` includes the token: `S` is the one that came in.
        The token's value is forgotten after this step, while its key still counts. Which `S` does the `return` name?"""
        (_, z), output = recurrent_step.reference(state, query, key, value)
        return (state[0].clone(), z), output

    def old_z_returned(state, query, key, value):
        """{The output is right, but} in the state you return, only `S` includes the token: `z` is the one that came in.
        From the next step on, the weights sum to more than one. Which `z` does the `return` name?"""
        (S, _), output = recurrent_step.reference(state, query, key, value)
        return (S, state[1].clone()), output

    def only_what_is_added_returned(state, query, key, value):
        """{The output is right, but} the state you return contains only this token: you return the terms to add, not
        the new sums. The next step would start as if this token had been the only one before it. Which sums does the
        `return` name?"""
        new_state, _ = recurrent_step.reference(*_with_zero_state((state, query, key, value)))
        return new_state, recurrent_step.reference(state, query, key, value)[1]

    def state_not_updated(state, query, key, value):
        """You replace both `S` and `z` by the terms of the new token. So the output is always the token's own value,
        whatever came before. The state is a sum over all tokens so far: what happens to the state that comes in?"""
        return recurrent_step.reference(*_with_zero_state((state, query, key, value)))

    def three_values_returned(state, query, key, value):
        """You return three things, S, z and the output. You must return two, the first of which is itself a pair: ((S,
        z), output). The caller passes (S, z) to the next step as one argument. What is missing in your `return`?"""
        (S, z), output = recurrent_step.reference(state, query, key, value)
        return S, z, output

    def z_before_S(state, query, key, value):
        """You have exchanged the two parts of the state you return: the next step would use `z` as `S`. The state is
        (S, z), as argument and as result. What does your `return` say?"""
        (S, z), output = recurrent_step.reference(state, query, key, value)
        return (z, S), output

    def S_alone_returned(state, query, key, value):
        """The state you return is only `S`. The next step could not divide: its normalizer needs `z`, the sum over all
        tokens so far. Return `S` and `z` as a pair, as they came in: ((S, z), output). Which line computes the new
        `z`?"""
        (S, _), output = recurrent_step.reference(state, query, key, value)
        return S, output

    def output_alone(state, query, key, value):
        """You return only the output. Without the new state, the next step cannot include this token: return both, ((S,
        z), output). What does the next call get as its `state`?"""
        return recurrent_step.reference(state, query, key, value)[1]

    def means_kept(state, query, key, value):
        """{The output is right, but} you return an `S` that has been divided by `z`. The next step adds to this `S` as
        if it were a sum, so its result is wrong. Return the two sums undivided; the division is for the output only."""
        (S, z), output = recurrent_step.reference(state, query, key, value)
        return (S / z.unsqueeze(-1), z), output

    def z_of_the_unmapped_key(state, query, key, value):
        """You add the key as it is to `z`, but the key's features to `S`. So the two sums give the same token different
        weights, and the normalizer can become zero or negative. Which name does the line of `z` use: the name of the
        key or the name of its features?"""
        return recurrent_step.reference(state, query, key, value, new_z=lambda z, k: z + key)

    def S_of_the_unmapped_key(state, query, key, value):
        """You add the key as it is to `S`, but the key's features to `z`. So the two sums give the same token different
        weights. Which name does the line of `S` use: the name of the key or the name of its features?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: add_product(S, key, v))

    def only_the_query_mapped(state, query, key, value):
        """You apply the feature map to the query, but add the key to the state as it is. Keys contain negative numbers,
        so the normalizer can become zero or negative, and results can be huge. The similarity is φ(query) · φ(key):
        check what each name holds at the point where you use it."""
        return recurrent_step.reference(
            state, query, key, value, features=lambda x: feature_map(x) if x is query else x
        )

    def only_the_key_mapped(state, query, key, value):
        """You apply the feature map to the key, but read the state with the query as it is. The query contains negative
        numbers, so weights can be negative, and where the normalizer is close to zero the results are huge. The
        similarity is φ(query) · φ(key): check what each name holds at the point where you use it."""
        return recurrent_step.reference(state, query, key, value, features=lambda x: feature_map(x) if x is key else x)

    def outer_product_transposed(state, query, key, value):
        """Your outer product has its axes in the order (d_value, d_head), but `S` has them in the order (d_head,
        d_value). The sum raises an error; with equal sizes it would be silently wrong. Which must get its new axis at
        the end, the key or the value?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: add_product(S, v, k))

    def key_and_value_without_new_axes(state, query, key, value):
        """You multiply the key's features by the value element by element: `d_head` is aligned with `d_value`, which
        raises an error; with equal sizes it would be silently wrong. `S` needs every feature times every number of the
        value, a table in each head. Where do key and value each need a new axis of size 1?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: S + k * v)

    def value_without_its_new_axis(state, query, key, value):
        """The key's features have a new last axis, but the value has no new axis: `d_head` is then aligned with the
        heads of the value, which raises an error. The product must have the axes (batch, heads, d_head, d_value). Which
        of these axes must have size 1 in the value?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: S + k.unsqueeze(-1) * v)

    def key_without_its_new_axis(state, query, key, value):
        """The value has a new axis before its last, but the key's features have no new axis: `d_head` is then aligned
        with `d_value`, which raises an error. The product must have the axes (batch, heads, d_head, d_value). Which of
        these axes must have size 1 in the key?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: S + k * v.unsqueeze(-2))

    def torch_outer_of_batches(state, query, key, value):
        """`torch.outer` needs two vectors, but your tensors also have axes for batch and heads, so it raises an error.
        The outer product in every head is an ordinary product of a column and a row. Which new axis makes (batch,
        heads, d_head) a column in each head, and which makes it a row?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: S + torch.outer(k, v))

    def product_over_the_heads(state, query, key, value):
        """You multiply keys and values as for a whole sequence, `k.mT @ value`. For a sequence this product sums over
        the tokens; here there is one token, the last two axes are (heads, d_head), and the product sums over the
        *heads*. The result has no axis for heads, and does not match `S`. Which new axes give one table in each
        head?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: S + k.mT @ v)

    def every_axis_of_one_squeezed(state, query, key, value):
        """`squeeze()` without an argument removes *every* axis of size 1. If there is only one sequence, or one head,
        the axis of the batch or of the heads is removed as well, and the shape is wrong. Which axis did you want to
        remove? Pass it as the argument."""
        S, z = state
        q, k = feature_map(query), feature_map(key)
        S, z = add_product(S, k, value), z + k
        return (S, z), (q.unsqueeze(-2) @ S).squeeze() / (q * z).sum(-1, keepdim=True)

    @with_text_of(linear_attention_module.WrongAnswers.bare_queries_below_the_line)
    def normalizer_of_the_unmapped_query(state, query, key, value):
        return recurrent_step.reference(
            state,
            query,
            key,
            value,
            output=lambda q, S, z: Output.not_divided(q, S, z) / (query * z).sum(-1, keepdim=True),
        )

    def divided_by_its_own_weight(state, query, key, value):
        """You divide by φ(query) · φ(key), the weight of this token alone, but the numerator contains the values of all
        tokens. {The first token is right, but} later outputs grow. You have already computed the sum of all keys'
        features. What is its name?"""
        own_weight = (feature_map(query) * feature_map(key)).sum(-1, keepdim=True)
        return recurrent_step.reference(
            state, query, key, value, output=lambda q, S, z: Output.not_divided(q, S, z) / own_weight
        )

    def state_divided_by_the_normalizer(state, query, key, value):
        """{The output is right, but} you return an `S` that has been divided by this query's normalizer. The next step
        adds to this `S` as if it were a sum, so its result is wrong. The division belongs to the output: to which name
        do you assign the quotient?"""
        (S, z), output = recurrent_step.reference(state, query, key, value)
        return (S / (feature_map(query) * z).sum(-1)[..., None, None], z), output

    def read_with_the_key(state, query, key, value):
        """You read with the key: the output is what this token's key would read, and your function does not use the
        query. The key decides where a value is stored in the state. With which tensor do you read the state?"""
        return recurrent_step.reference(state, key, key, value)

    def S_of_the_query(state, query, key, value):
        """You add the query's features times the value to `S`, but should use the key's features. The key decides where
        a value is stored; the query only reads, and does not change the state. Which name does the line of `S` use?"""
        return recurrent_step.reference(
            state, query, key, value, new_S=lambda S, k, v: add_product(S, feature_map(query), v)
        )

    def z_of_the_query(state, query, key, value):
        """You add the query's features to `z`, but should add the key's features. The key decides where a value is
        stored; the query only reads, and does not change the state. Which name does the line of `z` use?"""
        return recurrent_step.reference(state, query, key, value, new_z=lambda z, k: z + feature_map(query))

    def scaled_query(state, query, key, value):
        """You divide the query by √d_head, as in softmax attention, but before the feature map. Linear attention needs
        no scale: after the map a scale would cancel in the division, and before the map it changes the features. What
        is the argument of φ in the formula?"""
        return recurrent_step.reference(state, query / query.shape[-1] ** 0.5, key, value)

    def written_into_the_pair(state, query, key, value):
        """The state is a tuple, and you cannot replace an entry of a tuple, so `state[0] = …` and `state[0] += …` raise
        an error. The caller's tensors must not change either. Unpack the pair, and return a new pair."""
        state[0] += add_product(state[0] * 0, feature_map(key), value)


recurrent_step.mistakes_in(features=(elu_alone, no_map))
recurrent_step.mistakes_in(alone=True, features=RARE_MAPS)


@recurrent_step.mistake_around
def output_first(function):
    """You return the output first and the state second. The order must be (state, output), so that a loop can write
    `state, output = recurrent_step(state, …)`. What does your `return` say?"""
    return lambda state, query, key, value: function(state, query, key, value)[::-1]


@recurrent_step.mistake(recognizes=_scales_old_state)
def old_state_shrinks(state, query, key, value):
    """You multiply the old state by a number before you add the token, so that old tokens count less at every step.
    RetNet and many recurrent models have such a decay; here all tokens so far count equally. By what do you multiply
    the old state?"""
    S, z = state
    return recurrent_step.reference((0.9 * S, 0.9 * z), query, key, value)
