"""The whole of multi-head attention."""

import torch
from torch.nn.functional import linear, multi_head_attention_forward, scaled_dot_product_attention

from .. import attention_steps as steps
from ..exercise import exercise, family
from .merge_heads import OtherShape, Refused, Scrambled, merge_heads
from .split_heads import Cuts, Sizes, split_heads


def _input_and_layer(draw, batch=2, seq=7, heads=3, d_head=5):
    d_model = heads * d_head
    weights = (draw(d_model, d_model) / d_model**0.5 for _ in range(4))
    return draw(batch, seq, d_model), *weights, heads


def separate_projections(x, w_q, w_k, w_v):
    """Make queries, keys and values, each with its own transposed weight."""
    return linear(x, w_q), linear(x, w_k), linear(x, w_v)


def output_projection(merged, w_o):
    """Multiply the merged heads by the last weight, transposed."""
    return linear(merged, w_o)


@exercise(
    inputs=_input_and_layer,
    axes={"x": "batch seq d_model", "return": "batch seq d_model"},
    hints=(
        "Which steps have you written already, and in which order does a tensor pass through them?",
        "Project, split, attend in every head (with the scale of one head), merge, project. The weights are (out, in), "
        "so each is transposed.",
        "`q, k, v = (split_heads(x @ w.T, n_heads) for w in …)`, `scores = q @ k.mT / …`, "
        "`merge_heads(scores.softmax(…) @ v) @ …`",
    ),
)
def multi_head_attention(
    x,
    w_q,
    w_k,
    w_v,
    w_o,
    n_heads,
    *,
    projections=separate_projections,
    split=split_heads.reference,
    scores=steps.dot_products,
    scale=steps.by_root_d,
    weights=steps.over_keys,
    output=steps.weighted_sum,
    merge=merge_heads.reference,
    combined=output_projection,
):
    """Apply self-attention in every head. ``x`` and the result have shape (batch, seq, d_model); each weight has shape
    (d_model, d_model), stored as in PyTorch."""
    query, key, value = (split(y, n_heads) for y in projections(x, w_q, w_k, w_v))
    table = weights(scale(scores(query, key), query.shape[-1]))
    return combined(merge(output(table, value)), w_o)


@multi_head_attention.right
class RightAnswers:
    def head_by_head(x, w_q, w_k, w_v, w_o, n_heads):
        parts = []
        for q, k, v in zip(*(w.chunk(n_heads) for w in (w_q, w_k, w_v))):
            scores = (x @ q.T) @ (x @ k.T).transpose(1, 2) / q.shape[0] ** 0.5
            parts.append(scores.softmax(-1) @ (x @ v.T))
        return torch.cat(parts, -1) @ w_o.T

    def by_einsum(x, w_q, w_k, w_v, w_o, n_heads):
        q, k, v = (torch.einsum("bsd,hed->bshe", x, w.unflatten(0, (n_heads, -1))) for w in (w_q, w_k, w_v))
        weights = torch.einsum("bqhe,bkhe->bhqk", q * q.shape[-1] ** -0.5, k).softmax(-1)
        return torch.einsum("bhqk,bkhe,ohe->bqo", weights, v, w_o.unflatten(1, (n_heads, -1)))

    def packed_and_fused(x, w_q, w_k, w_v, w_o, n_heads):
        packed = x @ torch.cat([w_q, w_k, w_v]).T
        q, k, v = (y.unflatten(-1, (n_heads, -1)).transpose(1, 2) for y in packed.chunk(3, -1))
        return scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2) @ w_o.T

    def by_multi_head_attention_forward(x, w_q, w_k, w_v, w_o, n_heads):
        x = x.transpose(0, 1)
        packed, bias = torch.cat([w_q, w_k, w_v]), torch.zeros(3 * len(w_q), dtype=x.dtype, device=x.device)
        settings = {"bias_k": None, "bias_v": None, "add_zero_attn": False, "dropout_p": 0.0, "out_proj_bias": None}
        output, _ = multi_head_attention_forward(
            x, x, x, x.shape[-1], n_heads, packed, bias, out_proj_weight=w_o, need_weights=False, **settings
        )
        return output.transpose(0, 1)

    def heads_added_after_their_own_projections(x, w_q, w_k, w_v, w_o, n_heads):
        total = 0
        for q, k, v, o in zip(*(w.split(len(w) // n_heads) for w in (w_q, w_k, w_v)), w_o.chunk(n_heads, dim=1)):
            weights = torch.softmax(x @ q.T @ k @ x.mT * len(q) ** -0.5, dim=2)
            total = total + weights @ (x @ (o @ v).T)  # the weights of values and output in one matrix
        return total

    def folded(x, w_q, w_k, w_v, w_o, n_heads):
        batch, seq, d_model = x.shape
        q, k, v = (linear(x, w).view(batch, seq, n_heads, -1).transpose(1, 2).flatten(0, 1) for w in (w_q, w_k, w_v))
        scores = torch.bmm(q / (d_model // n_heads) ** 0.5, k.transpose(1, 2))
        exp = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
        merged = torch.bmm(exp / exp.sum(-1, keepdim=True), v).view(batch, n_heads, seq, -1).permute(0, 2, 1, 3)
        return linear(merged.reshape(batch, seq, d_model), w_o)


multi_head_attention.example("one head", heads=1)
multi_head_attention.example("one token", seq=1)


@multi_head_attention.probe
def large_scores(draw):
    """scores in the hundreds"""
    x, *weights, heads = _input_and_layer(draw)
    return 10 * x, *weights, heads


@multi_head_attention.property
def same_input_gives_the_same_result(function, *arguments):
    """The same input gives the same result every time, which rules out new random weights and dropout."""
    return torch.equal(function(*arguments), function(*arguments))


@multi_head_attention.property
def shuffled_tokens_shuffle_the_outputs(function, x, *rest):
    """Shuffle the tokens, and the outputs are shuffled in the same way: attention ignores the order of the tokens."""
    order = torch.arange(x.shape[1]).roll(2)
    return torch.allclose(function(x[:, order], *rest), function(x, *rest)[:, order], atol=1e-4)


@multi_head_attention.property
def sentences_independent(function, x, *rest):
    """Change one sentence of the batch, and the outputs of the other sentences stay the same."""
    changed = x.clone()
    changed[-1] += 1
    return torch.allclose(function(changed, *rest)[:-1], function(x, *rest)[:-1], atol=1e-4)


@multi_head_attention.wrong(stage="projections")
class Projections:
    def weights_not_transposed(x, w_q, w_k, w_v):
        """The projections multiply by the weights as they are stored, `x @ w`. PyTorch stores a weight as (out, in), so
        the product needs its transpose. With square weights nothing raises an error, but every projection is a
        different map from the one you want."""
        return x @ w_q, x @ w_k, x @ w_v


@multi_head_attention.wrong(stage="projections", alone=True)
class ProjectionsAlone:
    @family(
        queries_not_transposed=((0,), "queries"),
        keys_not_transposed=((1,), "keys"),
        values_not_transposed=((2,), "values"),
        queries_and_keys_not_transposed=((0, 1), "queries and the keys"),
        queries_and_values_not_transposed=((0, 2), "queries and the values"),
        keys_and_values_not_transposed=((1, 2), "keys and the values"),
    )
    def some_weights_not_transposed(not_transposed, x, *weights):
        """You make the {} with the stored weight itself, `x @ w`, but the others with a transposed weight. PyTorch
        stores a weight as (out, in), so each product needs the transpose. With square weights nothing raises an error.
        Compare your three projections character by character."""
        return tuple(x @ w if index in not_transposed else linear(x, w) for index, w in enumerate(weights))

    def no_projections(x, w_q, w_k, w_v):
        """You split the input itself into heads, without the three projections. Queries and keys are then the same, so
        the score of two tokens is the same in both directions, and a head reads only the features of its own block."""
        return x, x, x

    def keys_and_values_exchanged(x, w_q, w_k, w_v):
        """You exchange keys and values: the values' weight makes the keys, and the keys' weight makes the values. This
        happens when three results are unpacked in a different order from the order in which they were made. Compare the
        names on the two sides of the `=`."""
        return linear(x, w_q), linear(x, w_v), linear(x, w_k)

    def queries_and_keys_exchanged(x, w_q, w_k, w_v):
        """You exchange queries and keys: the table of scores is the transpose of the right table, so row 1 holds the
        scores of token 1's key with all queries, not the scores of token 1's query with all keys. Compare the names on
        the two sides of the `=`, and check the order of the arguments of your attention."""
        return linear(x, w_k), linear(x, w_q), linear(x, w_v)

    def values_from_the_keys(x, w_q, w_k, w_v):
        """You make the values with the keys' weight, so the key and the value of a token are the same vector. Perhaps a
        line was copied, and then changed in only one of two places. Check which weight makes the values."""
        return linear(x, w_q), linear(x, w_k), linear(x, w_k)

    def keys_from_the_queries(x, w_q, w_k, w_v):
        """You make the keys with the queries' weight, or compare the queries with themselves. The score of two tokens
        is then the same in both directions, and each token tends to match itself best. One of the four weights is
        unused: which one?"""
        return linear(x, w_q), linear(x, w_q), linear(x, w_v)

    def values_from_the_queries(x, w_q, w_k, w_v):
        """You average the queries, not the values. A query says what a token looks for, and a value is what the token
        passes on. One of the four weights is unused: which one?"""
        return linear(x, w_q), linear(x, w_k), linear(x, w_q)

    def input_for_values(x, w_q, w_k, w_v):
        """You average the input itself, without the values' projection. Queries and keys are projected correctly. One
        of the four weights is unused: which one?"""
        return linear(x, w_q), linear(x, w_k), x

    def all_from_the_queries(x, w_q, w_k, w_v):
        """You make queries, keys and values with the same weight, `w_q`. Perhaps you copied a line twice without
        changing the copies. Two of the four weights are unused: which ones?"""
        return (linear(x, w_q),) * 3

    def queries_and_values_exchanged(x, w_q, w_k, w_v):
        """You exchange queries and values: the values are compared with the keys, and the queries are averaged. All the
        sizes fit. Check the order of queries, keys and values wherever you make them or pass them to a function."""
        return linear(x, w_v), linear(x, w_k), linear(x, w_q)


@multi_head_attention.wrong(stage="scores", alone=True)
class ScoresAlone:
    # Several causes raise the same error about sizes; the text covers all these causes.

    def factors_do_not_fit(query, key):
        """A matrix product raises an error: the last axis of its left factor holds d_head features, the second-to-last
        axis of its right factor holds tokens, and a product sums over these two axes. Either you do not transpose the
        keys for the scores (or you multiply them by the queries elementwise), or the values are on the left of the
        weights. Write the shapes beside both products: over which axis does each product sum?"""
        return query @ key


@multi_head_attention.wrong(stage="scale")
class Scale:
    def scaled_by_d_model(scores, d_head):
        """You divide the scores by √d_model instead of √d_head. A head's dot product is a sum of d_head terms, so its
        standard deviation grows with √d_head; a larger divisor makes the weights of every head too even. With one head
        the two roots are equal, so a test with one head does not notice the mistake."""
        return scores / (scores.shape[1] * d_head) ** 0.5


@multi_head_attention.wrong(stage="scale", alone=True)
class ScaleAlone:
    def by_d_model(scores, d_head):
        """You divide the scores by d_model itself. The scores become much too small, so the weights of every head are
        nearly even. Divide by a root, and by the root of a different number: how many products are added up in one
        score of one head?"""
        return scores / (scores.shape[1] * d_head)


@multi_head_attention.wrong(stage="merge", alone=True)
class MergeAlone:
    def heads_joined_along_the_tokens(x):
        """The last projection raises an error: its input has heads · seq tokens of d_head features each. You joined the
        heads along `seq`. Concatenate along the features, so that a token stays one token."""
        return x.flatten(1, 2)

    def heads_not_side_by_side(x):
        """The last projection raises an error: it needs d_model features for every token, but gets the d_head features
        of one head. You averaged the heads, added them up, or kept only one. Nothing can recover the heads from an
        average or a sum; if the heads are side by side, `w_o` can weigh each of them."""
        return x.mean(dim=1)

    def tokens_joined_with_features(x):
        """The last projection raises an error: its input is (batch, heads, seq · d_head). When you joined the last two
        axes, `heads` was before `seq`, so a head's tokens were concatenated instead of a token's heads. The split or
        the merge lacks an exchange of axes: write down the shape beside each of them."""
        return x.flatten(2)


@multi_head_attention.wrong(stage="combined")
class Combined:
    def no_output_projection(merged, w_o):
        """The last projection is missing: you return the merged heads as they are. Each output feature then comes from
        one head alone, and no output can combine the results of two heads. One of the four weights is unused."""
        return merged

    def output_weight_not_transposed(merged, w_o):
        """The last projection multiplies by `w_o` as it is stored. PyTorch stores a weight as (out, in), so the product
        needs its transpose. The matrix is square, so nothing raises an error."""
        return merged @ w_o


@multi_head_attention.wrong(stage="combined", alone=True)
class CombinedAlone:
    def last_weight_on_the_left(merged, w_o):
        """The last projection has the weight on the left: the product then sums over the last axis of `w_o` and the
        second-to-last axis of the merged heads, which counts tokens. The features of a token are on the last axis of
        the merged heads. On which side of the weight must the merged heads be?"""
        return w_o @ merged


@multi_head_attention.wrong
class WrongAnswers:
    def scale_after_softmax(x, w_q, w_k, w_v, w_o, n_heads):
        """The scale comes after the softmax: you divide the weights (or the output) by √d_head, not the scores. The
        weights then sum to 1/√d_head, and the softmax has saturated already. The scale is there to keep the scores
        small: before which step must it come?"""
        stages = {
            "scale": steps.no_scale,
            "weights": lambda scores: scores.softmax(-1) / (x.shape[-1] / n_heads) ** 0.5,
        }
        return multi_head_attention.reference(x, w_q, w_k, w_v, w_o, n_heads, **stages)

    def diagonal_blocks_only(x, w_q, w_k, w_v, w_o, n_heads):
        """Each head projects its own block of the input's features, with one square block on the diagonal of each
        weight. The rest of each weight is unused, so a head sees no feature outside its block. A head needs one block
        of the projection's outputs, but all of its inputs: project whole tokens, then split."""
        head = torch.arange(len(w_q)) // (len(w_q) // n_heads)
        block_mask = (head[:, None] == head).to(w_q)  # ones on the diagonal blocks
        weights = (w * block_mask for w in (w_q, w_k, w_v))
        return multi_head_attention.reference(x, *weights, w_o, n_heads)

    def first_head_repeated(x, w_q, w_k, w_v, w_o, n_heads):
        """All heads are the same: each uses the first d_head rows of the weights. Your merge joins `n_heads` copies of
        one head. In a loop over the heads, what must change from one iteration to the next?"""
        weights = (w[: len(w) // n_heads].repeat(n_heads, 1) for w in (w_q, w_k, w_v))
        return multi_head_attention.reference(x, *weights, w_o, n_heads)

    def one_table_averaged_over_the_heads(x, w_q, w_k, w_v, w_o, n_heads):
        """You average the heads' tables of weights into one table, and compute all features of the output with it. The
        average loses what each head found. `nn.MultiheadAttention` returns averaged weights, but computes its output
        with each table separately. Which features of the values belong to which table?"""

        def averaged(scores):
            return steps.over_keys(scores).mean(1, keepdim=True).expand_as(scores)

        return multi_head_attention.reference(x, w_q, w_k, w_v, w_o, n_heads, weights=averaged)

    def averaged_and_w_o_cut(x, w_q, w_k, w_v, w_o, n_heads):
        """You average the heads, and use only a part of the last weight, so that it fits the average. An average mixes
        the results of the heads, and nothing after it can separate them. Put the heads side by side, and all of `w_o`
        fits."""

        def cut(merged, w_o):
            return merged @ w_o[:, : merged.shape[-1]].T

        return multi_head_attention.reference(
            x, w_q, w_k, w_v, w_o, n_heads, merge=OtherShape.heads_averaged, combined=cut
        )

    def heads_of_a_token_compared(x, w_q, w_k, w_v, w_o, n_heads):
        """The scores compare the heads of one token with each other: `heads` comes after `seq` in the matrix product,
        which works on the last two axes. The tables are heads × heads, and no token ever sees a different token: change
        one token, and only its own output changes. Which axes must be the last two?"""
        query, key, value = (linear(x, w).unflatten(-1, (n_heads, -1)) for w in (w_q, w_k, w_v))
        return linear((steps.over_keys(steps.by_root_d(query @ key.mT, key.shape[-1])) @ value).flatten(2), w_o)

    def over_the_batch(x, w_q, w_k, w_v, w_o, n_heads):
        """You compare the tokens along the batch: each position attends to the same position of the other sentences.
        Code for (seq, batch, d_model) does this with a (batch, seq, d_model) input, for example `nn.MultiheadAttention`
        without `batch_first=True`. If one sentence changes, the outputs of the other sentences must stay the same, but
        in your function they change."""
        seq_first = multi_head_attention.reference(x.transpose(0, 1), w_q, w_k, w_v, w_o, n_heads)
        return seq_first.transpose(0, 1)

    def one_head_only(x, w_q, w_k, w_v, w_o, n_heads):
        """You compare all features in one table: there is one head, whatever `n_heads` is, and the result is the same
        for every `n_heads`. A token then has only one set of weights for the other tokens. Split before the scores, so
        that every head has its own table."""
        return multi_head_attention.reference(x, w_q, w_k, w_v, w_o, 1)

    def one_table_for_all_heads(x, w_q, w_k, w_v, w_o, n_heads):
        """You divide by √d_head, as for one head, but you compare all features in one table, without a split into
        heads. A token then has only one set of weights for the other tokens. What must be separate for each head?"""
        factor = n_heads**0.5  # √d_model over √d_head
        return multi_head_attention.reference(x, w_q * factor, w_k, w_v, w_o, 1)

    def seq_comes_first(x, w_q, w_k, w_v, w_o, n_heads):
        """Your result is (seq, batch, d_model). PyTorch's older modules expect and return `seq` first: perhaps you
        exchanged the axes of the input for such a module, or wrote your own code in this order. {The numbers are
        right.} Exchange the axes of the result back."""
        return multi_head_attention.reference(x, w_q, w_k, w_v, w_o, n_heads).transpose(0, 1)

    def input_added(x, w_q, w_k, w_v, w_o, n_heads):
        """You add the input to the output. Layers of a Transformer do this around their attention; it is the residual
        connection of chapter 6. Here, return the result of attention alone."""
        return x + multi_head_attention.reference(x, w_q, w_k, w_v, w_o, n_heads)

    def output_and_weights(x, w_q, w_k, w_v, w_o, n_heads):
        """You return two things, the output and the weights. `nn.MultiheadAttention` also returns both, with the
        weights averaged over the heads, but a caller who expects one tensor gets a pair. Here, return only the
        output."""
        query, key = (split_heads.reference(linear(x, w), n_heads) for w in (w_q, w_k))
        weights = steps.over_keys(steps.by_root_d(steps.dot_products(query, key), query.shape[-1]))
        return multi_head_attention.reference(x, w_q, w_k, w_v, w_o, n_heads), weights.mean(1)

    def weights_returned_too(x, w_q, w_k, w_v, w_o, n_heads):
        """You return a tuple, the result and the weights of the heads. The tuple is useful if you want to look at the
        weights, but the exercise asks for the result alone."""
        query, key = (split_heads.reference(linear(x, w), n_heads) for w in (w_q, w_k))
        weights = steps.over_keys(steps.by_root_d(steps.dot_products(query, key), query.shape[-1]))
        return multi_head_attention.reference(x, w_q, w_k, w_v, w_o, n_heads), weights

    def features_of_one_head_projected(x, w_q, w_k, w_v, w_o, n_heads):
        """The last weight needs d_model features, but gets d_head: you averaged the heads, added them up, or lost all
        but one. A merge loses nothing: it puts the features of all heads side by side."""
        query, key, value = (split_heads.reference(linear(x, w), n_heads) for w in (w_q, w_k, w_v))
        return scaled_dot_product_attention(query, key, value).mean(1) @ w_o.T

    def weights_packed_side_by_side(x, w_q, w_k, w_v, w_o, n_heads):
        """You pack the three weights along axis 1, the axis of their inputs, so the product with the transposed weight
        needs 3 · d_model features. A weight is (out, in), and three maps of one input are concatenated along their
        outputs. Which axis is that?"""
        return x @ torch.cat([w_q, w_k, w_v], dim=1).T

    @family(
        input_split_before_the_projections=lambda x, w, n_heads: split_heads.reference(x, n_heads) @ w.T,
        last_projection_before_the_merge=lambda x, w, n_heads: split_heads.reference(linear(x, w), n_heads),
    )
    def single_heads_projected(make_heads, x, w_q, w_k, w_v, w_o, n_heads):
        """A projection raises an error: a weight needs all d_model features of a token, but gets only the d_head
        features of one head. Either you split the input before you project it, or the last projection comes before the
        merge. Write down the five steps of the task in order: do the first and the last step work on whole tokens or on
        single heads?"""
        query, key, value = (make_heads(x, w, n_heads) for w in (w_q, w_k, w_v))
        return merge_heads.reference(scaled_dot_product_attention(query, key, value) @ w_o.T)

    def heads_joined_along_the_tokens_for_pytorch(x, w_q, w_k, w_v, w_o, n_heads):
        query, key, value = (split_heads.reference(linear(x, w), n_heads) for w in (w_q, w_k, w_v))
        return scaled_dot_product_attention(query, key, value).flatten(1, 2) @ w_o.T

    heads_joined_along_the_tokens_for_pytorch.__doc__ = MergeAlone.heads_joined_along_the_tokens.__doc__


# The common mistakes are also tried in pairs, one from each of two stages; the rarer mistakes are only tried alone.
multi_head_attention.mistakes_in(
    split=(Cuts.view_alone, Cuts.every_nth_feature),
    merge=(Scrambled.reshape_alone, Scrambled.features_interleaved),
    scale=(steps.no_scale, steps.by_d),
    weights=(steps.over_queries, steps.over_heads),
)
multi_head_attention.mistakes_in(
    alone=True,
    split=(
        Cuts.n_heads_taken_for_d_head,
        Cuts.transposed_and_reshaped,
        Cuts.heads_and_batch_exchanged_after_a_cut,
        Cuts.folded_with_heads_outside,
        *Sizes.float_size,
    ),
    merge=(
        Refused.view_after_transpose,
        Scrambled.features_for_tokens,
        Scrambled.read_with_heads_outside,
        Scrambled.heads_reversed,
    ),
    scores=(
        steps.keys_reshaped,
        steps.heads_and_keys_transposed,
        steps.all_axes_reversed,
        steps.keys_of_all_heads,
        steps.bmm_of_four_axes,
    ),
    scale=(
        steps.times_root_d,
        steps.by_half_of_d,
        steps.by_twice_d,
        steps.by_fourth_root_of_d,
        steps.by_root_seq,
        steps.by_root_heads,
        steps.root_of_a_plain_number,
    ),
    weights=steps.RARE_SOFTMAX_MISTAKES,
    output=(steps.weights_transposed, steps.values_of_all_heads, steps.no_letter_shared),
)
