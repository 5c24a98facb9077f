"""One token of linear attention: into the state, and out of it."""

import torch
from torch.nn import functional as F

from ..exercise import exercise, family, rows_of, with_text_of
from . import linear_attention as without_order
from .causal_linear_attention import causal_linear_attention
from .elu_feature_map import elu_alone, no_map, positive
from .linear_attention import RARE_MAPS, hundreds
from .properties import is_like


def _state_and_token(draw, batch=2, heads=3, d_head=5, d_value=4):
    earlier_keys, earlier_values = positive(draw(batch, heads, 6, d_head)), draw(batch, heads, 6, d_value)
    state = earlier_keys.mT @ earlier_values, earlier_keys.sum(-2)
    return state, draw(batch, heads, d_head), draw(batch, heads, d_head), draw(batch, heads, d_value)


def _with_a_state_of_zeros(arguments):
    (S, z), query, key, value = arguments
    return (torch.zeros_like(S), torch.zeros_like(z)), query, key, value


def one_product_more(S, k, value):
    """Add this key's features times its value to `S`."""
    return S + k.unsqueeze(-1) * value.unsqueeze(-2)


def one_key_more(z, k):
    """Add this key's features to `z`."""
    return z + k


def read(q, S, z):
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
    state, query, key, value, *, features=positive, new_S=one_product_more, new_z=one_key_more, output=read
):
    """Take one token into the state and read it: one step of causal linear attention.

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
        q, k = positive(query), positive(key)
        S = state[0] + torch.einsum("bhd,bhv->bhdv", k, value)
        z = state[1] + k
        return (S, z), torch.einsum("bhd,bhdv->bhv", q, S) / torch.einsum("bhd,bhd->bh", q, z)[..., None]

    def step_in_place_on_a_copy(state, query, key, value):
        S, z = (x.clone() for x in state)
        k = F.relu(key) + torch.exp(-F.relu(-key))
        S += k[..., :, None] * value[..., None, :]
        z += k
        weighted = positive(query)[..., None] * S
        return [S, z], weighted.sum(-2) / (positive(query) * z).sum(-1)[..., None]

    def step_with_a_small_number_added(state, query, key, value):
        return recurrent_step.reference(
            state,
            query,
            key,
            value,
            output=lambda q, S, z: Output.not_divided(q, S, z) / ((q * z).sum(-1, keepdim=True) + 1e-6),
        )

    def step_with_matrices(state, query, key, value):
        q, k = positive(query).unsqueeze(-2), positive(key).unsqueeze(-2)
        S = state[0] + k.transpose(-1, -2) @ value.unsqueeze(-2)
        z = state[1] + k.squeeze(-2)
        return (S, z), (q @ S / (q @ z.unsqueeze(-1))).squeeze(-2)

    def old_and_new_apart(state, query, key, value):
        S, z = state
        q, k = positive(query), positive(key)
        own = (q * k).sum(-1, keepdim=True)
        numerator = (S * q.unsqueeze(-1)).sum(-2) + own * value
        normalizer = (q * z).sum(-1, keepdim=True) + own
        return (S + k.unsqueeze(-1) * value.unsqueeze(-2), k + z), numerator / normalizer


recurrent_step.example(
    "the first token with a state of zeros", lambda draw: _with_a_state_of_zeros(_state_and_token(draw))
)


@recurrent_step.probe
def first_token_with_a_small_key(draw):
    """the first token with a key around −5"""
    state, query, key, value = _with_a_state_of_zeros(_state_and_token(draw))
    return state, query, key - 5, value


recurrent_step.example("one sequence and one value", batch=1, d_value=1)
recurrent_step.example("one head", heads=1)
recurrent_step.example("one feature", d_head=1)


@recurrent_step.probe
def in_the_hundreds(draw):
    """numbers in the hundreds"""
    state, query, key, value = _state_and_token(draw)
    return state, hundreds(query), hundreds(key), value


@recurrent_step.property
def first_token_gets_its_value(function, *arguments):
    """The first token, whose state is zero, gets its own value."""
    return is_like(function(*_with_a_state_of_zeros(arguments))[1], arguments[-1])


@recurrent_step.property
def query_leaves_no_trace(function, state, query, key, value):
    """The query reads the state and leaves no trace in it."""
    ((S, z), _), ((other_S, other_z), _) = (function(state, q, key, value) for q in (query, 1 - query))
    return torch.equal(S, other_S) and torch.equal(z, other_z)


@recurrent_step.property
def added_whatever_it_holds(function, state, query, key, value):
    """What is added to the state does not depend on what it holds."""
    (S, z), _ = function(state, query, key, value)
    (only_S, only_z), _ = function(*_with_a_state_of_zeros((state, query, key, value)))
    return is_like(S - state[0], only_S) and is_like(z - state[1], only_z)


@recurrent_step.property
def as_causal_linear_attention(function, state, query, key, value):
    """Token after token, from zeros on, it gives what causal linear attention gives the whole sequence."""
    state, results = _with_a_state_of_zeros((state, query, key, value))[0], []
    q, k, v = (torch.stack([x, x.flip(-1), -x], dim=2) for x in (query, key, value))
    for token in zip(q.unbind(2), k.unbind(2), v.unbind(2)):
        state, output = function(state, *token)
        results.append(output)
    return is_like(torch.stack(results, dim=2), causal_linear_attention.reference(q, k, v))


def _read_before(state, query, key, value, S, z):
    """The state as it should be, and an output that was read from another."""
    after, _ = recurrent_step.reference(state, query, key, value)
    return after, read(positive(query), S if S is not None else after[0], z if z is not None else after[1])


def _shrunk(probe, got, expected):
    """Whether the old `S` came in times a number other than 1, and `z` either so as well or as it should be."""
    try:
        (S, z), output = got.value
        (right_S, right_z), _ = expected.value
        (old_S, old_z), query, *_ = probe.arguments
        less = (S - right_S).mul(old_S).sum() / old_S.square().sum()
        z_is_right = torch.allclose(z, right_z, 1e-4)
        return bool(
            less.abs() > 1e-3
            and torch.allclose(S, right_S + less * old_S, 1e-4, 1e-4)
            and (z_is_right or torch.allclose(z, right_z + less * old_z, 1e-4, 1e-4))
            and torch.allclose(output, read(positive(query), S, z), 1e-3, 1e-4)
        )
    except (TypeError, ValueError, AttributeError, RuntimeError):  # not of this form at all
        return False


@recurrent_step.wrong(stage="new_S")
class NewS:
    def key_not_added_to_S(S, k, value):
        """Every feature of `S` gets the whole value, whatever the key is: `S` takes in the value without the key's
        features. Then all keys look the same to a query. What is the outer product made of?"""
        return S + value.unsqueeze(-2)

    def S_left_as_it_was(S, k, value):
        """`z` takes the token in, and `S` does not: its value is lost, and it makes the values of the others smaller.
        Is the new `S` computed and not kept, or does the output read the old one?"""
        return S + 0

    def S_overwritten(S, k, value):
        """`S` holds the last token alone: it is replaced by φ(key) valueᵀ, where that should be added to it. All values
        before are forgotten, and `z` still counts their keys. What happens to the old `S`?"""
        return k.unsqueeze(-1) * value.unsqueeze(-2)

    def values_mapped_too(S, k, value):
        """The value goes through the feature map as well, before it is added to `S`. The map makes weights of query and
        key; a value is what is carried, and must arrive as it is, negative numbers included. Which two of the three get
        a φ?"""
        return S + k.unsqueeze(-1) * positive(value).unsqueeze(-2)


@recurrent_step.wrong(stage="new_z")
class NewZ:
    def z_left_as_it_was(z, k):
        """`S` takes the token in, and `z` does not. The weights sum to more than one, and the first token of all is
        divided by zero. Is the new `z` computed and not kept, or does the output read the old one?"""
        return z + 0

    def z_overwritten(z, k):
        """`z` holds the last token's key alone: it is replaced by φ(key), where that should be added to it. `S` holds
        all tokens, so that results grow with every step. What happens to the old `z`?"""
        return k + 0

    def tokens_counted(z, k):
        """`z` grows by one with each token, and not by the token's features: it counts tokens. The query would read the
        same from every key, and the weights do not sum to one. `S` adds φ(key) times the value. What is left of that if
        every value is one? That is what `z` adds."""
        return z + 1


@recurrent_step.wrong(stage="output")
class Output:
    def not_divided(q, S, z):
        """You never divide: the output is a sum of values, not a mean, and it grows with every token. The first token
        of all does not get its own value back. What does the query read besides `S`?"""
        return (q.unsqueeze(-2) @ S).squeeze(-2)

    def divided_by_keys_alone(q, S, z):
        """You divide by the sum of `z` over its features, and the query's features have no part in it. So the weights
        do not sum to one: what a query finds by multiplying its features into `S`, it must also find in `z`."""
        return Output.not_divided(q, S, z) / z.sum(-1, keepdim=True)

    def divided_feature_by_feature(q, S, z):
        """You divide `S` by `z` feature by feature, and the query reads the quotients. Each feature then counts alike,
        however little of it the keys have. The query must read both sums first: one division of two numbers for each
        value, at the end."""
        return (q.unsqueeze(-2) @ (S / z.unsqueeze(-1))).squeeze(-2) / q.sum(-1, keepdim=True)

    def one_normalizer_for_all(q, S, z):
        """You divide by one number for all: the products of the query's features with `z`, summed over the features and
        over heads and sequences too. Each head of each sequence needs its own. Which argument of `sum` says over which
        axis?"""
        return Output.not_divided(q, S, z) / (q * z).sum()

    def divided_by_the_query_alone(q, S, z):
        """You divide by the sum of the query's own features, and `z` has no part in it. So the weights do not sum to
        one, and grow with every token. The normalizer is what the query would read if all values were one. Which of the
        two sums in the state says that?"""
        return Output.not_divided(q, S, z) / q.sum(-1, keepdim=True)

    def divided_by_root_of_d(q, S, z):
        """You divide by √d_head, and by nothing else. The root belongs to softmax attention. Here the weights are the
        similarities themselves, and to sum to one they need a normalizer, another number at each step. What does the
        query read besides `S`?"""
        return Output.not_divided(q, S, z) / q.shape[-1] ** 0.5

    def softmax_of_the_result(q, S, z):
        """You take a softmax over the numbers of the output. It makes them sum to one over `d_value`, where the weights
        should sum to one over the tokens. There is no softmax in linear attention: what takes its place is a division.
        By what?"""
        return Output.not_divided(q, S, z).softmax(-1)

    def divided_by_a_mean(q, S, z):
        """The query's features and `z` meet in a mean, where a sum should stand: the output is too large by the number
        of features. φ(query) · `z` is a dot product. What does a dot product do with its terms?"""
        return Output.not_divided(q, S, z) / (q * z).mean(-1, keepdim=True)


class RaisingOutputs:
    """Outputs that raise."""

    def query_without_its_new_axis(q, S, z):
        """You multiply the query with `S` as it is. `@` takes its last two axes, (heads, d_head), for a matrix, and it
        raises. In each head one row of features meets one table: make the query a row, (1, d_head), and take the axis
        away again afterwards. Which call does each of the two?"""
        return q @ S

    def query_behind_S(q, S, z):
        """You multiply `S` with the query as a column: `d_value` meets `d_head`, and it raises; with equal sizes it
        would be silently wrong. `S` has the axes (d_head, d_value), and the query's features must meet `d_head`. On
        which side of `S` must the query stand?"""
        return (S @ q.unsqueeze(-1)).squeeze(-1) / (q * z).sum(-1)[..., None]

    def query_as_a_column(q, S, z):
        """You multiply the query with `S` as a column, (d_head, 1): its 1 meets the `d_head` rows of `S`, and it
        raises. It must be a row, (1, d_head), so that features meet features. At which place did `unsqueeze` put the
        new axis?"""
        return q.unsqueeze(-1) @ S

    def normalizer_without_its_axis(q, S, z):
        """Your normalizer has the axes (batch, heads), and the output one more. Sizes are aligned from the end, so that
        heads meet `d_value`, and it raises. There is one number for each head: what keeps, or makes, a last axis of
        size 1?"""
        return Output.not_divided(q, S, z) / (q * z).sum(-1)

    def normalizer_with_an_axis_too_many(q, S, z):
        """Your normalizer has the axes (batch, heads, 1, 1), and the output has three. Sizes are aligned from the end,
        so that batch and heads meet, and it raises. Either take both through `squeeze`, or divide first and squeeze
        after that. Which of them still has four axes?"""
        return Output.not_divided(q, S, z) / (q.unsqueeze(-2) @ z.unsqueeze(-1))

    def normalizer_of_every_feature(q, S, z):
        """You divide by `d_head` numbers, one for each feature, and the output has `d_value`. It raises; with equal
        sizes it would be silently wrong. The normalizer is one number for each head, φ(query) · `z`. Over which axis
        does a dot product sum, and how does that axis stay as a 1?"""
        return Output.not_divided(q, S, z) / (q * z)

    def heads_with_heads(q, S, z):
        """You divide by a table of heads by heads: `query @ z.mT` multiplies every head's query with every head's `z`.
        It raises when it meets `d_value`. A head reads only its own `z`, element by element. Which product is that, and
        over which axis is it summed?"""
        return Output.not_divided(q, S, z) / (q @ z.mT)

    def queries_by_z(q, S, z):
        """You multiply the query's features with `z` by `@`. It takes the last two axes of each, (heads, d_head), for a
        matrix, and raises. A head reads only its own `z`, element by element: which product is that, and over which
        axis is it summed?"""
        return Output.not_divided(q, S, z) / (q @ z)


@recurrent_step.wrong
class WrongAnswers:
    @family(**rows_of(RaisingOutputs))
    def raising_output(output, *arguments):
        return recurrent_step.reference(*arguments, output=output)

    def read_before_the_token(state, query, key, value):
        """{The state you return is right, and} the output was read from the old one: the token misses itself. The first
        token of all finds only zeros there: its output is NaN (0/0), or 0 if something small is added below the line.
        In which order do you update and read?"""
        return _read_before(state, query, key, value, *state)

    def S_read_before_the_token(state, query, key, value):
        """{The state you return is right, and} the output divides the old `S` by the new `z`: between the two updates
        it is too early to read. The first token of all gets zeros. Which `S` does the numerator use?"""
        return _read_before(state, query, key, value, state[0], None)

    def z_read_before_the_token(state, query, key, value):
        """{The state you return is right, and} the output divides the new `S` by the old `z`: between the two updates
        it is too early to read. The first token of all is divided by zero, or by what you add to it. Which `z` does the
        normalizer use?"""
        return _read_before(state, query, key, value, None, state[1])

    def old_state_returned(state, query, key, value):
        """{The output is right, and} the state you return is the one that came in. Nobody then remembers this token:
        every later step begins where this one began. Which `S` and `z` does the `return` name?"""
        return tuple(x.clone() for x in state), recurrent_step.reference(state, query, key, value)[1]

    def old_S_returned(state, query, key, value):
        """{The output is right, and} of the state you return only `z` has taken the token in: `S` is the one that came
        in. Its value is forgotten after this step, while its key still counts. Which `S` does the `return` name?"""
        (_, z), output = recurrent_step.reference(state, query, key, value)
        return (state[0].clone(), z), output

    def old_z_returned(state, query, key, value):
        """{The output is right, and} of the state you return only `S` has taken the token in: `z` is the one that came
        in. From the next step on the weights sum to more than one. Which `z` does the `return` name?"""
        (S, _), output = recurrent_step.reference(state, query, key, value)
        return (S, state[1].clone()), output

    def only_what_is_added_returned(state, query, key, value):
        """{The output is right, and} the state you return holds this token alone: what was added, without what it was
        added to. The next step would begin as if there had been one token before it. Which sums does the `return`
        name?"""
        after, _ = recurrent_step.reference(*_with_a_state_of_zeros((state, query, key, value)))
        return after, recurrent_step.reference(state, query, key, value)[1]

    def nothing_remembered(state, query, key, value):
        """Both `S` and `z` are replaced by what the token brings. The output is the token's own value then, whatever
        came before. The state is a sum over all tokens so far: what happens to the one that comes in?"""
        return recurrent_step.reference(*_with_a_state_of_zeros((state, query, key, value)))

    def three_in_a_row(state, query, key, value):
        """You return three things, S, z and the output. It must be two, of which the first is itself a pair: ((S, z),
        output). Whoever calls passes the state on to the next step in one piece. What is missing in your `return`?"""
        (S, z), output = recurrent_step.reference(state, query, key, value)
        return S, z, output

    def z_before_S(state, query, key, value):
        """The two parts of the state you return have changed places: the next step would take `z` for `S`. It is (S,
        z), in and out. What does your `return` say?"""
        (S, z), output = recurrent_step.reference(state, query, key, value)
        return (z, S), output

    def S_alone_returned(state, query, key, value):
        """The state you return is `S` alone. The next step could not divide: the normalizer of all tokens so far is in
        `z`. Return both, as they came in: ((S, z), output). Which line makes the new `z`?"""
        (S, _), output = recurrent_step.reference(state, query, key, value)
        return S, output

    def output_alone(state, query, key, value):
        """You return the output alone. Without the new state the next step cannot know of this token: return both, ((S,
        z), output). What does the next call get as its `state`?"""
        return recurrent_step.reference(state, query, key, value)[1]

    def means_kept(state, query, key, value):
        """{The output is right, and} the `S` you return has been divided by `z`. The next step adds to it as if it were
        a sum, and is wrong. Keep the two sums as they are; the division is for the output only."""
        (S, z), output = recurrent_step.reference(state, query, key, value)
        return (S / z.unsqueeze(-1), z), output

    def z_of_the_bare_key(state, query, key, value):
        """`z` grows by the key as it is, `S` by the key's features. The two then count the same token differently, and
        the normalizer can become zero or negative. Which of the two names, before or after the map, stands in the line
        of `z`?"""
        return recurrent_step.reference(state, query, key, value, new_z=lambda z, k: z + key)

    def S_of_the_bare_key(state, query, key, value):
        """`S` grows by the key as it is, `z` by the key's features. The two then count the same token differently.
        Which of the two names, before or after the map, stands in the line of `S`?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: one_product_more(S, key, v))

    def only_the_query_mapped(state, query, key, value):
        """The query becomes features, and the key goes into the state as it is. Keys have negative numbers, so `z` can
        become zero or negative, and results fly far off. The similarity is φ(query) · φ(key): check what each name
        holds at the point where it is used."""
        return recurrent_step.reference(state, query, key, value, features=lambda x: positive(x) if x is query else x)

    def only_the_key_mapped(state, query, key, value):
        """The key becomes features, and the query reads as it is. It has negative numbers, so weights come out
        negative, and a normalizer close to zero makes results fly far off. The similarity is φ(query) · φ(key): check
        what each name holds at the point where it is used."""
        return recurrent_step.reference(state, query, key, value, features=lambda x: positive(x) if x is key else x)

    def key_turned_against_value(state, query, key, value):
        """The outer product has its axes in the order (d_value, d_head) and cannot be added to `S`, which has them the
        other way round. It raises; with equal sizes it would be silently wrong. Which of key and value must get its
        new axis at the end?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: one_product_more(S, v, k))

    def key_and_value_without_new_axes(state, query, key, value):
        """You multiply the key's features with the value element by element: `d_head` meets `d_value`, and it raises;
        with equal sizes it would be silently wrong. `S` needs every feature times every number of the value, a table
        in each head. Where does each of the two need a new axis of size 1?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: S + k * v)

    def value_without_its_new_axis(state, query, key, value):
        """The key's features have got a new axis at the end, and the value has none: `d_head` then meets the heads of
        the value, and it raises. The product must have the axes (batch, heads, d_head, d_value). Which axis of these
        must have the size 1 in the value?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: S + k.unsqueeze(-1) * v)

    def key_without_its_new_axis(state, query, key, value):
        """The value has got a new axis before its last, and the key's features have none: `d_head` then meets
        `d_value`, and it raises. The product must have the axes (batch, heads, d_head, d_value). Which axis of these
        must have the size 1 in the key?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: S + k * v.unsqueeze(-2))

    def torchs_outer(state, query, key, value):
        """`torch.outer` takes two vectors, and yours have a batch and heads before them: it raises. An outer product in
        every head is an ordinary product of a column and a row. Which new axis makes (batch, heads, d_head) a column in
        each head, and which makes a row?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: S + torch.outer(k, v))

    def product_over_the_heads(state, query, key, value):
        """You multiply keys and values as for a whole sequence, `k.mT @ value`. There it sums over the tokens; here
        there is one token, the last two axes are (heads, d_head), and the product sums over the *heads*. The result has
        none, and does not fit `S`. Which new axes make one table in each head?"""
        return recurrent_step.reference(state, query, key, value, new_S=lambda S, k, v: S + k.mT @ v)

    def every_axis_of_one_squeezed(state, query, key, value):
        """`squeeze()` without an argument takes away *every* axis of size 1. With one sequence, or one head, that axis
        goes as well, and what is left has another shape. Which axis did you mean? Name it in the brackets."""
        S, z = state
        q, k = positive(query), positive(key)
        S, z = one_product_more(S, k, value), z + k
        return (S, z), (q.unsqueeze(-2) @ S).squeeze() / (q * z).sum(-1, keepdim=True)

    @with_text_of(without_order.WrongAnswers.bare_queries_below_the_line)
    def read_with_the_bare_query_below(state, query, key, value):
        return recurrent_step.reference(
            state,
            query,
            key,
            value,
            output=lambda q, S, z: Output.not_divided(q, S, z) / (query * z).sum(-1, keepdim=True),
        )

    def divided_by_its_own_weight(state, query, key, value):
        """You divide by φ(query) · φ(key), the weight of this token alone; the values of all tokens stand above the
        line. {The first token is right, and} later outputs grow. The sum of all keys' features has just been made. What
        is its name?"""
        own = (positive(query) * positive(key)).sum(-1, keepdim=True)
        return recurrent_step.reference(
            state, query, key, value, output=lambda q, S, z: Output.not_divided(q, S, z) / own
        )

    def state_divided_by_the_normalizer(state, query, key, value):
        """{The output is right, and} the `S` you return has been divided by this query's normalizer. The next step adds
        to it as if it were a sum, and is wrong. The division belongs to the output: which name does it get?"""
        (S, z), output = recurrent_step.reference(state, query, key, value)
        return (S / (positive(query) * z).sum(-1)[..., None, None], z), output

    def read_with_the_key(state, query, key, value):
        """You read with the key: the output is what this token's key would find, and the query has no part in it. The
        key says where a value is put into the state. Which of the two asks?"""
        return recurrent_step.reference(state, key, key, value)

    def S_of_the_query(state, query, key, value):
        """`S` grows by the query's features times the value, and should grow by the key's. The key says under what a
        value is put down; the query only asks, and leaves no trace. Which letter stands in the line of `S`?"""
        return recurrent_step.reference(
            state, query, key, value, new_S=lambda S, k, v: one_product_more(S, positive(query), v)
        )

    def z_of_the_query(state, query, key, value):
        """`z` grows by the query's features, and should grow by the key's. The key says under what a value is put down;
        the query only asks, and leaves no trace. Which letter stands in the line of `z`?"""
        return recurrent_step.reference(state, query, key, value, new_z=lambda z, k: z + positive(query))

    def scaled_query(state, query, key, value):
        """You divide the query by √d_head before the feature map, as softmax attention does. There it tames the
        exponential; here a factor cancels in the quotient, and inside the map it bends the features. Leave the scale
        out: what does the formula of φ get?"""
        return recurrent_step.reference(state, query / query.shape[-1] ** 0.5, key, value)

    def written_into_the_pair(state, query, key, value):
        """The state is a tuple, and no entry of a tuple can be replaced, so `state[0] = …` and `state[0] += …` raise.
        The caller's tensors are to stay as they are, too. Take the pair apart, and return a new one."""
        state[0] += one_product_more(state[0] * 0, positive(key), value)


recurrent_step.mistakes_in(features=(elu_alone, no_map))
recurrent_step.mistakes_in(alone=True, features=RARE_MAPS)


@recurrent_step.mistake_around
def output_first(function):
    """You return the output first and the state second. It is the other way round: (state, output), so that a loop can
    write `state, output = recurrent_step(state, …)`. What does your `return` say?"""
    return lambda state, query, key, value: function(state, query, key, value)[::-1]


@recurrent_step.mistake(sign=_shrunk)
def old_state_shrinks(state, query, key, value):
    """What the state held is multiplied by a number before the token is added, so that old tokens count less at every
    step. Such a decay is in RetNet and in many recurrent models; here all tokens so far count alike. What is the old
    state multiplied by?"""
    S, z = state
    return recurrent_step.reference((0.9 * S, 0.9 * z), query, key, value)
