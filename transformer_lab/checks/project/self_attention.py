"""Multi-head self-attention around any attention function."""

import torch
from torch.nn.functional import linear, scaled_dot_product_attention

from ..ch4_multi_head.merge_heads import Scrambled, merge_heads
from ..ch4_multi_head.split_heads import split_heads
from ..exercise import exercise
from .inputs import block_weights, causal_linear_attention, causal_softmax_attention


def _attention_inputs(draw, batch=2, seq=7, heads=3, d_head=5):
    d_model = heads * d_head
    weights = block_weights(draw, d_model, 2)
    return draw(batch, seq, d_model), weights, heads, causal_softmax_attention


def three_projections(x, weights):
    """Compute queries, keys and values, each with its own transposed weight."""
    return tuple(linear(x, weights[name]) for name in ("w_q", "w_k", "w_v"))


def last_projection(x, weights):
    """Multiply the merged heads by the transposed `w_o`."""
    return linear(x, weights["w_o"])


@exercise(
    inputs=_attention_inputs,
    axes={"x": "batch seq d_model", "return": "batch seq d_model"},
    hints=(
        "`attend` takes heads and returns heads. In multi-head attention, which steps come before `attend`, and which "
        "steps after it?",
        "Project three times, split, `attend(query, key, value)`, merge, project. `attend` does the scaling and the "
        "masking.",
        "`attend(*(split_heads(x @ weights[…].T, n_heads) for … in …))`, then `merge_heads(…) @ …`",
    ),
)
def self_attention(
    x,
    weights,
    n_heads,
    attend,
    *,
    projections=three_projections,
    split=split_heads.reference,
    merge=merge_heads.reference,
    combined=last_projection,
):
    """Apply multi-head self-attention around any ``attend(query, key, value)``.

    x (batch, seq, d_model). Returns (batch, seq, d_model).
    """
    heads = attend(*(split(y, n_heads) for y in projections(x, weights)))
    return combined(merge(heads), weights)


@self_attention.equivalent
def by_reshape(x, weights, n_heads, attend):
    batch, seq, _ = x.shape
    q, k, v = (
        (x @ weights[name].T).reshape(batch, seq, n_heads, -1).permute(0, 2, 1, 3) for name in ("w_q", "w_k", "w_v")
    )
    return attend(q, k, v).permute(0, 2, 1, 3).reshape(batch, seq, -1) @ weights["w_o"].T


@self_attention.equivalent
def by_einsum(x, weights, n_heads, attend):
    q, k, v = (
        torch.einsum("bsd,hed->bhse", x, weights[name].unflatten(0, (n_heads, -1))) for name in ("w_q", "w_k", "w_v")
    )
    return torch.einsum("bhse,ohe->bso", attend(q, k, v), weights["w_o"].unflatten(1, (n_heads, -1)))


@self_attention.equivalent
def as_one_projection(x, weights, n_heads, attend):
    packed = torch.cat([weights[name] for name in ("w_q", "w_k", "w_v")])
    heads = linear(x, packed).unflatten(-1, (3, n_heads, -1)).permute(2, 0, 3, 1, 4)
    return linear(attend(*heads).transpose(1, 2).flatten(2), weights["w_o"])


self_attention.example("an `attend` that is not softmax attention", attend=causal_linear_attention)
self_attention.example("one token", seq=1)


@self_attention.property
def later_tokens_change_nothing(function, x, weights, n_heads, attend):
    """When the last token changes, the outputs before it stay the same: `attend` is causal."""
    changed = torch.cat([x[:, :-1], x[:, -1:] + 1], dim=1)
    return torch.allclose(
        function(changed, weights, n_heads, attend)[:, :-1], function(x, weights, n_heads, attend)[:, :-1], atol=1e-4
    )


@self_attention.wrong(stage="projections")
class Projections:
    def weights_as_stored(x, weights):
        """The projections multiply by the weights as stored, (out, in), but `x @ w` needs them transposed. The weights
        are square, so PyTorch raises no error."""
        return tuple(x @ weights[name] for name in ("w_q", "w_k", "w_v"))

    def keys_for_values(x, weights):
        """Keys and values are exchanged. Look at the order of the names, and at the order in which `attend` takes
        them."""
        query, key, value = three_projections(x, weights)
        return query, value, key

    def queries_for_keys(x, weights):
        """Queries and keys are exchanged, so the table of scores is transposed: row i holds the scores of key i, not of
        query i. Look at the order of the names, and at the order in which `attend` takes them."""
        query, key, value = three_projections(x, weights)
        return key, query, value

    def input_for_all_three(x, weights):
        """The heads are cut out of the input itself. The projections are missing, so the query, the key and the value
        of a token are the same vector. Where do you use `w_q`, `w_k` and `w_v`?"""
        return x, x, x

    def keys_serve_as_values(x, weights):
        """The keys serve as values too: `w_v` is not used. A token is found by its key and passes on its value, and the
        two vectors are different. Did you copy a line without changing it?"""
        query, key, _ = three_projections(x, weights)
        return query, key, key

    def queries_serve_as_keys(x, weights):
        """The queries serve as keys too: `w_k` is not used. A token searches with its query and is found by its key,
        and the two vectors are different. Did you copy a line without changing it?"""
        query, _, value = three_projections(x, weights)
        return query, query, value

    def one_weight_for_all_three(x, weights):
        """Queries, keys and values come from one projection, `w_q`: `w_k` and `w_v` are not used. Did you copy a line
        without changing it? Self-attention projects the same x to three different vectors for each token."""
        query, _, _ = three_projections(x, weights)
        return query, query, query

    def values_not_projected(x, weights):
        """The values are the input itself: `w_v` is not used. You project the queries and the keys, but the values need
        their own projection too."""
        query, key, _ = three_projections(x, weights)
        return query, key, x

    def values_serve_as_keys(x, weights):
        """Keys and values come from one projection, `w_v`: `w_k` is not used. Did you copy a line without changing it?
        A token is found by its key and passes on its value, and the two vectors are different."""
        query, _, value = three_projections(x, weights)
        return query, value, value


@self_attention.wrong(stage="split")
class Split:
    def split_by_view_alone(x, n_heads):
        """You reshape straight to (batch, heads, seq, d_head): {the shape is right, but} the numbers are scrambled. Is
        your `split_heads` the function that passed its check in assignment 4?"""
        batch, seq, d_model = x.shape
        return x.reshape(batch, n_heads, seq, d_model // n_heads)

    def features_dealt_out(x, n_heads):
        """The features are dealt out to the heads in turn, like cards: you cut the last axis into (d_head, heads), the
        wrong order. Head 0 must get the first `d_head` features, which are neighbours."""
        batch, seq, d_model = x.shape
        return x.reshape(batch, seq, d_model // n_heads, n_heads).permute(0, 3, 1, 2)

    def heads_and_features_confused(x, n_heads):
        """The number of heads and their width are exchanged: there are `d_head` heads of `n_heads` features. Is the
        second argument of your `split_heads` the number of heads or their width?"""
        return split_heads.reference(x, x.shape[-1] // n_heads)


@self_attention.wrong(stage="split", alone=True)
class SplitAlone:
    def not_split(x, n_heads):
        """Nothing is split: `attend` received (batch, seq, d_model), but it takes (batch, heads, seq, d_head). Where do
        you use `n_heads`?"""
        return x


@self_attention.wrong(stage="merge")
class Merge:
    def merged_without_transpose(x):
        """You merge the heads before you move them next to their features: {the shape is right, but} the numbers are
        scrambled. Is your `merge_heads` the function that passed its check in assignment 4?"""
        batch, _, seq, _ = x.shape
        return x.reshape(batch, seq, -1)

    def merged_feature_by_feature(x):
        """The features of the heads are interleaved: the first feature of every head, then the second of every head. In
        the merged vector, all features of head 0 must come first. In which order must the last two axes be before you
        join them?"""
        return x.permute(0, 2, 3, 1).flatten(2)


@self_attention.wrong(stage="combined")
class Combined:
    def no_last_projection(x, weights):
        """The last projection is missing: `w_o` is not used, and no feature of the output combines the results of
        several heads."""
        return x

    def last_weight_as_stored(x, weights):
        """The last projection multiplies by `w_o` as stored, (out, in), but `x @ w` needs it transposed. `w_o` is
        square, so PyTorch raises no error."""
        return x @ weights["w_o"]


@self_attention.wrong
class WrongAnswers:
    def attention_of_its_own(x, weights, n_heads, attend):
        """In place of `attend`, or in addition to it, you use an attention function that sees all tokens, even the
        later ones. `attend` decides which tokens a query may see. With your function, a model reads the token that it
        has to predict."""
        return self_attention.reference(x, weights, n_heads, scaled_dot_product_attention)

    def softmax_whatever_is_given(x, weights, n_heads, attend):
        """You compute causal softmax attention yourself, whatever `attend` is. The project trains one model with
        softmax and one with linear attention: with your function, the two models would be the same. Where do you call
        `attend`?"""
        return self_attention.reference(x, weights, n_heads, causal_softmax_attention)

    def scaled_twice(x, weights, n_heads, attend):
        """The scores are divided by √d_head twice: in your function, and again in `attend`. The weights of each row are
        too even. Pass queries and keys to `attend` as they come out of the projections."""
        return self_attention.reference(
            x, weights, n_heads, lambda query, key, value: attend(query / query.shape[-1] ** 0.5, key, value)
        )

    def one_head(x, weights, n_heads, attend):
        """All features are compared in one table of scores: there is one head, whatever `n_heads` is. Split before
        `attend`."""
        return self_attention.reference(x, weights, 1, attend)

    def heads_attend_to_heads(x, weights, n_heads, attend):
        """You cut the last axis but do not move the heads in front of `seq`: `attend` received (batch, seq, heads,
        d_head) and treated the heads as tokens. The heads of one token attended to each other, and no token saw
        another. Which two axes must change places before `attend`, and change back after it?"""
        heads = attend(*(y.unflatten(-1, (n_heads, -1)) for y in three_projections(x, weights)))
        return last_projection(heads.flatten(2), weights)

    def heads_returned(x, weights, n_heads, attend):
        """You return the result of `attend`, (batch, heads, seq, d_head). Two steps are missing: merge the heads, then
        combine their results in the last projection."""
        return attend(*(split_heads.reference(y, n_heads) for y in three_projections(x, weights)))


@self_attention.wrong(alone=True)
class WrongAnswersAlone:
    def heads_one_by_one(x, weights, n_heads, attend):
        """You call `attend` with one head at a time, (batch, seq, d_head). `attend` takes four axes, (batch, heads,
        seq, d_head), and computes all heads in one call."""
        query, key, value = (split_heads.reference(y, n_heads) for y in three_projections(x, weights))
        return last_projection(torch.cat([attend(query[:, 0], key[:, 0], value[:, 0])] * n_heads, dim=-1), weights)

    def heads_in_the_batch(x, weights, n_heads, attend):
        """You join the heads with the batch, so `attend` received three axes. `attend` takes four, (batch, heads, seq,
        d_head): leave the heads on a separate axis."""
        return attend(*(split_heads.reference(y, n_heads).flatten(0, 1) for y in three_projections(x, weights)))

    def split_before_projecting(x, weights, n_heads, attend):
        """You cut the heads out of x before the projections: a weight multiplies all `d_model` features of a token, but
        a head has only `d_head`. Project first, then split."""
        heads = split_heads.reference(x, n_heads)
        return attend(heads @ weights["w_q"].T, heads, heads)

    def keys_transposed_for_attend(x, weights, n_heads, attend):
        """You transpose the keys before you call `attend`, as for `query @ key.mT`. `attend` computes that product: it
        takes keys in the shape of the queries, (batch, heads, seq, d_head)."""
        query, key, value = (split_heads.reference(y, n_heads) for y in three_projections(x, weights))
        return attend(query, key.mT, value)

    def mask_handed_over(x, weights, n_heads, attend):
        """`attend` received a fourth argument, perhaps a mask. It takes query, key and value, and nothing else: the
        masking and the scaling are part of `attend`."""
        return attend(x, x, x, None)

    def result_taken_for_weights(x, weights, n_heads, attend):
        """You multiply the result of `attend` by the values, as if it were a table of weights. `attend` has multiplied
        by the values already: merge the heads of its result, (batch, heads, seq, d_head)."""
        query, key, value = (split_heads.reference(y, n_heads) for y in three_projections(x, weights))
        return attend(query, key, value) @ value

    def features_of_one_head_projected(x, weights, n_heads, attend):
        """The last projection received d_head features, but it takes d_model: you averaged or added the heads, or kept
        only one. Merging loses nothing: the features of all heads end up side by side."""
        heads = attend(*(split_heads.reference(y, n_heads) for y in three_projections(x, weights)))
        return heads.mean(1) @ weights["w_o"].T

    def heads_beside_the_features(x, weights, n_heads, attend):
        """You moved the heads beside their features but did not join the two axes: the last projection received (batch,
        seq, heads, d_head), but it takes d_model features. Join the last two axes with `reshape` or `flatten`."""
        heads = attend(*(split_heads.reference(y, n_heads) for y in three_projections(x, weights)))
        return heads.transpose(1, 2) @ weights["w_o"].T

    def heads_projected_before_merging(x, weights, n_heads, attend):
        """You apply the last projection to each head separately: a head has d_head features, but `w_o` takes d_model.
        `w_o` combines the features of all heads, so they must be side by side first. Which comes first, merging or
        projecting?"""
        heads = attend(*(split_heads.reference(y, n_heads) for y in three_projections(x, weights)))
        return heads @ weights["w_o"].T


self_attention.mistakes_in(merge=(Scrambled.features_for_tokens,))


@self_attention.mistake_around
def input_added(function):
    """You add the input to the result. The block does that after its attention, so x would be added twice.
    `self_attention` returns only the change."""
    return lambda x, weights, n_heads, attend: x + function(x, weights, n_heads, attend)
