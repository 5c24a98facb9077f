"""One head of self-attention, with its three projections."""

import functools
import math

import torch
from torch.nn import functional as F

from .. import attention_steps as steps
from ..exercise import exercise, family, with_text_of
from .attention import Inputs, Results
from .attention_weights import scale_after_softmax, scaled_once_more
from .properties import nearly_equal
from .softmax import softmax


def tokens_and_weights(draw, batch=2, seq=7, d_model=6, d_head=4, d_value=5):
    w_q, w_k, w_v = (2 * draw(d_model, width) / d_model**0.5 for width in (d_head, d_head, d_value))
    return draw(batch, seq, d_model), w_q, w_k, w_v


def project(x, w):
    """Multiply the tokens by the weight of this projection."""
    return x @ w


@exercise(
    inputs=tokens_and_weights,
    axes={
        "x": "batch seq d_model",
        "w_q": "d_model d_head",
        "w_k": "d_model d_head",
        "w_v": "d_model d_value",
        "return": "batch seq d_value",
    },
    hints=(
        "Each token has three roles. Which matrix projects a token to its query, which to its key, and which to its "
        "value?",
        "Each projection is the product of `x` and one matrix, with the matrix on the right. You have already written "
        "the rest.",
        "`attention(x @ …, x @ …, x @ …)`",
    ),
)
def single_head(
    x,
    w_q,
    w_k,
    w_v,
    *,
    query=project,
    key=project,
    value=project,
    scores=steps.dot_products,
    scale=steps.by_root_d,
    weights=steps.over_keys,
    output=steps.weighted_sum,
):
    """Let the tokens attend to one another: x (batch, seq, d_model), weights (d_model, d_head or d_value)."""
    q, k, v = query(x, w_q), key(x, w_k), value(x, w_v)
    return output(weights(scale(scores(q, k), w_q.shape[-1])), v)


@single_head.right
class RightAnswers:
    def head_of_attention(x, w_q, w_k, w_v):
        return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)

    def head_by_linear(x, w_q, w_k, w_v):
        query, key, value = F.linear(x, w_q.T), F.linear(x, w_k.T), F.linear(x, w_v.T)
        scores = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(key.shape[-1])
        return torch.bmm(torch.softmax(scores, dim=2), value)

    def head_with_one_matrix_for_both(x, w_q, w_k, w_v):
        w_qk = w_q @ w_k.T / w_q.shape[1] ** 0.5  # the scores depend on this product alone
        return (x @ w_qk @ x.mT).softmax(-1) @ x @ w_v

    def head_with_packed_weights(x, w_q, w_k, w_v):
        sizes = [w.shape[1] for w in (w_q, w_k, w_v)]
        query, key, value = (x @ torch.cat((w_q, w_k, w_v), dim=1)).split(sizes, dim=-1)
        scores = torch.einsum("bqd,bkd->bqk", query, key) * sizes[0] ** -0.5
        return torch.einsum("bqk,bkv->bqv", scores.softmax(-1), value)

    def head_sentence_by_sentence(x, w_q, w_k, w_v):
        outputs = []
        for sentence in x:
            scores = (sentence @ w_q) @ (sentence @ w_k).T
            outputs.append(softmax.reference(scores / w_k.shape[1] ** 0.5, 1) @ (sentence @ w_v))
        return torch.stack(outputs)


single_head.example("matrices that are all square", d_model=4, d_value=4, plain=True)
single_head.example("as many tokens as features", seq=4, plain=True)
single_head.example("one token", seq=1)
single_head.example("one sentence", batch=1)


def _with_shifted_scores(draw, even, odd):
    """Draw inputs whose scores are shifted by `even` for queries at even positions, and by `odd` for queries at odd
    positions."""
    x, w_q, w_k, w_v = tokens_and_weights(draw)
    w_q[:2], w_k[:2] = 0, 0
    # Feature 1 makes queries larger; feature 0, which is 1 in every token, makes keys larger.
    w_q[1, 0], w_k[0, 0] = 1, 2
    x[..., 0], x[:, ::2, 1], x[:, 1::2, 1] = 1, even, odd
    return x, w_q, w_k, w_v


single_head.example("scores of more than a hundred", lambda draw: _with_shifted_scores(draw, 128, 128))
single_head.example("queries whose scores lie far apart", lambda draw: _with_shifted_scores(draw, 128, -128))


single_head.mistakes_in(
    scale=(
        steps.no_scale,
        steps.by_d,
        steps.times_root_d,
        steps.by_half_of_d,
        steps.by_fourth_root_of_d,
        steps.by_root_seq,
    ),
    weights=(steps.over_queries, *steps.RARE_SOFTMAX_MISTAKES),
)
single_head.mistakes_in(
    alone=True,
    scores=(
        steps.keys_against_queries,
        steps.keys_not_transposed,
        steps.keys_reshaped,
        steps.all_axes_reversed,
        steps.element_by_element,
    ),
    output=(steps.weights_transposed, steps.no_letter_shared),
    scale=(steps.by_root_batch, steps.root_of_a_plain_number),
)


def in_a_head(mistake):
    """Turn a mistake of attention into a mistake of one head, with the same id."""

    @functools.wraps(mistake)
    def head(x, w_q, w_k, w_v):
        return mistake(x @ w_q, x @ w_k, x @ w_v)

    return head


for mistake in (
    scaled_once_more,
    scale_after_softmax,
    Inputs.values_from_keys,
    Inputs.keys_and_values_exchanged,
    Results.weights_without_values,
    Results.output_and_weights,
):
    single_head.mistake(in_a_head(mistake))


@single_head.mistake_around
def by_root_d_value(function):
    """You divide the scores by the root of the number of features of a value. But a score is a sum over the features of
    a query and a key, so divide by √d_head. The two numbers are often equal, but not here."""

    @functools.wraps(function)
    def with_a_scaled_w_q(x, w_q, w_k, w_v):
        return function(x, w_q * (w_q.shape[-1] / w_v.shape[-1]) ** 0.5, w_k, w_v)

    return with_a_scaled_w_q


@single_head.property
def sentences_independent(function, x, w_q, w_k, w_v):
    """The outputs of a sentence do not depend on the other sentences of the batch."""
    return nearly_equal(function(x[:1], w_q, w_k, w_v), function(x, w_q, w_k, w_v)[:1])


@single_head.property
def equal_tokens_get_their_projection(function, x, w_q, w_k, w_v):
    """If all tokens of a sentence are equal, each output is the token's projection by `w_v`."""
    equal_tokens = x[:, :1].expand_as(x)
    return nearly_equal(function(equal_tokens, w_q, w_k, w_v), equal_tokens @ w_v)


@single_head.property
def reversed_tokens_reverse_the_outputs(function, x, w_q, w_k, w_v):
    """Tokens in reverse order get the same outputs in reverse order."""
    return nearly_equal(function(x.flip(1), w_q, w_k, w_v), function(x, w_q, w_k, w_v).flip(1))


@single_head.wrong(stage="query", alone=True)
class QueryAlone:
    def queries_unprojected(x, w_q):
        """You use the tokens themselves as queries, without `w_q`. With d_model = d_head this runs; otherwise the sizes
        do not fit. Each of the three roles needs a projection: which matrix makes the queries?"""
        return x


@single_head.wrong(stage="key", alone=True)
class KeyAlone:
    def keys_unprojected(x, w_k):
        """You use the tokens themselves as keys, without `w_k`. With d_model = d_head this runs; otherwise the sizes do
        not fit. Each of the three roles needs a projection: which matrix makes the keys?"""
        return x


@single_head.wrong(stage="value", alone=True)
class ValueAlone:
    def values_unprojected(x, w_v):
        """You blend the tokens themselves, without `w_v`, so the result has the features of a token. A third matrix
        projects each token to its value. Where do you use this matrix?"""
        return x


@single_head.wrong(stage="scores", alone=True)
class ScoresAlone:
    def keys_transposed_as_with_four_axes(query, key):
        """You swap axes 2 and 3 of the keys, but there is no axis 3: with three axes the last two are 1 and 2. Counted
        from the end, they are -2 and -1, with any number of axes in front."""
        return query @ key.transpose(2, 3)

    def sentences_and_keys_transposed(query, key):
        """You swap axes 0 and 1 of `key`, which are `batch` and `seq`. With two axes these are the last two, and code
        for two axes is often copied. Count from the end: which two axes must change places so that the features of a
        key are second to last?"""
        return query @ key.transpose(0, 1)


@single_head.wrong(stage="weights", alone=True)
class WeightsAlone:
    def softmax_as_with_four_axes(scores):
        """You apply the softmax along axis 3, which does not exist: with three axes the last is axis 2. Counted from
        the end, the last axis is -1, with any number of axes in front."""
        return scores.softmax(3)


@single_head.wrong
class Projections:
    def no_projections(x, w_q, w_k, w_v):
        """You use the tokens themselves as queries, keys and values, without the three matrices. Each token then
        usually matches itself best, and nothing can be learned. How is a token turned into its query, its key and its
        value?"""
        return F.scaled_dot_product_attention(x, x, x)

    def tokens_compared_unprojected(x, w_q, w_k, w_v):
        """You compare the tokens themselves, `x` with `x`, without `w_q` and `w_k`. Such scores are symmetric, and
        nothing in them can be learned. How is a token turned into its query and its key?"""
        return (x @ x.mT / x.shape[-1] ** 0.5).softmax(-1) @ (x @ w_v)

    @family(
        queries_from_w_k=(lambda w_q, w_k: w_k, "w_k", "w_q"),
        keys_from_w_q=(lambda w_q, w_k: w_q, "w_q", "w_k"),
    )
    def one_matrix_twice(chosen, x, w_q, w_k, w_v):
        """You compute both queries and keys with `{}`, and never use `{}`. This happens when a line is copied and one
        name in the copy is not changed. The shape is right, but the scores are symmetric. Compare your three
        projections character by character."""
        w = chosen(w_q, w_k)
        return single_head.reference(x, w, w, w_v)

    def values_from_w_q(x, w_q, w_k, w_v):
        """You compute the values with `w_q` and never use `w_v`, so the result has `d_head` features. This happens when
        a line is copied and one name in the copy is not changed; with d_head = d_value the shape is right. Compare your
        three projections character by character."""
        return single_head.reference(x, w_q, w_k, w_q)

    def weights_read_as_out_in(x, w_q, w_k, w_v):
        """You multiply by the transposed matrices, as `nn.Linear` does with the weights that it stores as (out, in).
        Here the matrices are stored as (in, out). Unequal widths raise an error; with square matrices the function
        runs, but every number is wrong. Which axis of the matrix has the features of `x`?"""
        return single_head.reference(x, w_q.T, w_k.T, w_v.T)

    def weights_passed_to_linear(x, w_q, w_k, w_v):
        """`F.linear` multiplies by the transposed matrix, since `nn.Linear` stores weights as (out, in). Here the
        matrices are stored as (in, out). Unequal widths raise an error; with square matrices the function runs, but
        every number is wrong. Which product needs no transpose here?"""
        return single_head.reference(x, w_q, w_k, w_v, query=F.linear, key=F.linear, value=F.linear)

    def w_k_not_transposed_between_the_tokens(x, w_q, w_k, w_v):
        """You compute the scores as `x @ w_q @ w_k @ …`, without the transpose of `w_k`. The transpose of a product
        transposes each factor and reverses their order: (x w_k)ᵀ = w_kᵀ xᵀ."""
        return (x @ w_q @ w_k @ x.mT / w_q.shape[1] ** 0.5).softmax(-1) @ x @ w_v

    def weights_multiplied_element_by_element(x, w_q, w_k, w_v):
        """You multiply tokens and weights element by element, with `*`, not as matrices. A projection sums over the
        features of a token: which operator computes these sums?"""
        return F.scaled_dot_product_attention(x * w_q, x * w_k, x * w_v)

    def weights_before_the_tokens(x, w_q, w_k, w_v):
        """The weight is on the left of the tokens, so the product sums over the wrong axes: the last axis of the
        weight, and the second-to-last axis of `x`, which counts tokens. The features of a token are the last axis of
        `x`. On which side of the weight must `x` be?"""
        return F.scaled_dot_product_attention(w_q @ x, w_k @ x, w_v @ x)

    def cut_into_three_equal_parts(x, w_q, w_k, w_v):
        """You compute the three projections at once and then cut the result into parts of equal size, but d_value need
        not equal d_head. With a larger d_value, features of the values end up among the keys. `split` accepts a list of
        sizes: which three?"""
        query, key, value = (x @ torch.cat((w_q, w_k, w_v), dim=-1)).chunk(3, dim=-1)
        return F.scaled_dot_product_attention(query, key, value)

    def cut_into_parts_of_d_head(x, w_q, w_k, w_v):
        """You compute the three projections at once and then cut the result into parts of d_head features. With a
        larger d_value there are more than three parts. `split` also accepts a list of sizes: which three sizes?"""
        query, key, value = (x @ torch.cat((w_q, w_k, w_v), dim=-1)).split(w_q.shape[1], dim=-1)
        return F.scaled_dot_product_attention(query, key, value)

    @with_text_of(QueryAlone.queries_unprojected)
    def queries_unprojected_for_pytorch(x, w_q, w_k, w_v):
        return F.scaled_dot_product_attention(x, x @ w_k, x @ w_v)

    @with_text_of(KeyAlone.keys_unprojected)
    def keys_unprojected_for_pytorch(x, w_q, w_k, w_v):
        return F.scaled_dot_product_attention(x @ w_q, x, x @ w_v)

    @with_text_of(Inputs.keys_and_values_exchanged)
    def keys_and_values_exchanged_for_pytorch(x, w_q, w_k, w_v):
        return F.scaled_dot_product_attention(x @ w_q, x @ w_v, x @ w_k)


@single_head.wrong
class Attention:
    def by_root_d_model_of_the_tokens(x, w_q, w_k, w_v):
        """You divide the scores by the root of `d_model`, the number of features of `x`. But a score is a dot product
        of two projections, with `d_head` terms. With d_model = d_head the two numbers are equal. Use the number of
        features of a query."""
        return single_head.reference(x, w_q * (w_q.shape[-1] / x.shape[-1]) ** 0.5, w_k, w_v)

    def batch_and_seq_exchanged(x, w_q, w_k, w_v):
        """Each token attends to the tokens at the same place in all sentences, and to no other token of its own
        sentence: `batch` and `seq` have changed places. PyTorch's older modules expect `seq` first, and code for them
        swaps the two axes. The scores must be (batch, seq, seq). Which axis of `x` must come first?"""
        return single_head.reference(x.transpose(0, 1), w_q, w_k, w_v).transpose(0, 1)

    def sentences_concatenated(x, w_q, w_k, w_v):
        """You treat all sentences of the batch as one long sequence, and each token attends to all of them. Flattening
        `batch` and `seq` is harmless for a projection, but not for the scores. Which axes must the scores have?"""
        return single_head.reference(x.reshape(1, -1, x.shape[-1]), w_q, w_k, w_v).reshape(*x.shape[:2], -1)


@single_head.wrong
class Result:
    def values_added_back(x, w_q, w_k, w_v):
        """You add the token's own value to its output. This is a residual connection. In a Transformer block, it
        surrounds the whole of attention and adds the token itself. A head returns only the blend of the values."""
        return single_head.reference(x, w_q, w_k, w_v) + x @ w_v

    def token_added_back(x, w_q, w_k, w_v):
        """You add the token itself to the output. This is a residual connection, which belongs to a Transformer block
        and not to a head; the shapes fit only if d_value = d_model. Return only the blend of the values."""
        return single_head.reference(x, w_q, w_k, w_v) + x

    @with_text_of(token_added_back)
    def output_added_to_the_token(x, w_q, w_k, w_v):
        return x + single_head.reference(x, w_q, w_k, w_v)

    def leading_axis_not_removed(x, w_q, w_k, w_v):
        """Your result has an axis of size 1 in front, (1, batch, seq, d_value). You added this axis for `attention`:
        remove it again afterwards, or let `attention` count its axes from the end."""
        return single_head.reference(x, w_q, w_k, w_v)[None]

    def every_axis_of_size_one_squeezed(x, w_q, w_k, w_v):
        """{Your function is right for ordinary sizes, but if there is one sentence or one token, an axis is missing:}
        `squeeze()` removes every axis of size 1. Name the axis that you want to remove."""
        return single_head.reference(x, w_q, w_k, w_v).squeeze()
