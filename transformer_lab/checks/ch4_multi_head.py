"""Chapter 4: splitting into heads and merging them, the whole of multi-head attention, and PyTorch's packed weights."""

import torch
from torch.nn.functional import linear, multi_head_attention_forward, scaled_dot_product_attention

from .ch3_attention_lookup import (
    WEIGHTS_SELDOM_WRONG,
    all_axes_turned,
    alone,
    by_d,
    by_half_of_d,
    by_root_d,
    by_root_heads,
    by_root_seq,
    by_twice_d,
    dot_products,
    heads_and_keys_turned,
    keys_reshaped,
    no_maximum,
    no_scale,
    over_heads,
    over_keys,
    over_queries,
    times_root_d,
    weighted_sum,
    weights_turned,
)
from .exercise import exercise

# 1. split_heads


def _tokens(draw, batch=2, seq=7, heads=3, d_head=5):
    return draw(batch, seq, heads * d_head), heads


@exercise(
    inputs=_tokens,
    axes={"x": "batch seq d_model", "return": "batch heads seq d_head"},
    hints=(
        "Every token's features are shared out among the heads. Which axis must be cut, and which must stay whole?",
        "Cutting the last axis in two is a `view`. Bringing `heads` before `seq` needs what moves axes.",
        "`x.view(batch, seq, …, …).transpose(…, …)`",
    ),
)
def split_heads(x, n_heads):
    """Cut (batch, seq, d_model) into (batch, heads, seq, d_head)."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model // n_heads).transpose(1, 2)


@split_heads.equivalent
def split_by_slices(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


@split_heads.equivalent
def split_by_unflatten(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).movedim(-2, 1)


@split_heads.equivalent
def split_by_einsum(x, n_heads):
    return torch.einsum("bshd->bhsd", x.unflatten(-1, (n_heads, -1)))


@split_heads.probe
def _one_head(draw):
    """one head"""
    return draw(2, 7, 5), 1


@split_heads.probe
def _heads_of_one_feature(draw):
    """heads of one feature each"""
    return draw(2, 7, 3), 3


@split_heads.mistake
def view_alone(x, n_heads):
    """The tensor is cut as `view` cuts it, straight into (batch, heads, seq, d_head). The shape is right and the
    numbers are scrambled: `view` never moves an axis, so a head gets some whole tokens instead of some features of
    every token, and a model with this still trains. Look at where the features of token 0 lie in memory, and where
    yours went."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, n_heads, seq, d_model // n_heads)


@split_heads.mistake
def no_transpose(x, n_heads):
    """The features are cut rightly, and `heads` stays behind `seq`: your result is (batch, seq, heads, d_head). Matrix
    products work on the last two axes, so attention would compare the heads of one token with each other instead of the
    tokens of one head. One operation is missing after the cut."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model // n_heads)


@split_heads.mistake
def every_nth_feature(x, n_heads):
    """Each head gets every `n_heads`-th feature instead of a block of neighbours: the last axis is cut as (d_head,
    heads). A model trained from scratch would not mind; weights from anywhere else would be read in the wrong order.
    Look at the order of the last two sizes where you cut."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, d_model // n_heads, n_heads).permute(0, 3, 1, 2)


@split_heads.mistake
def heads_before_batch(x, n_heads):
    """Your result is (heads, batch, seq, d_head): the heads come first of all. That is what stacking slices along axis
    0 gives, or a `permute` that begins with the wrong axis. Everything that comes later expects `batch` first."""
    return torch.stack(x.chunk(n_heads, dim=-1), dim=0)


@split_heads.mistake
def features_before_seq(x, n_heads):
    """Your result is (batch, heads, d_head, seq): one exchange too many, or the wrong two axes. Keys are needed like
    that inside the product with the queries, and are turned there; splitting leaves a token's features last."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model // n_heads).permute(0, 2, 3, 1)


@split_heads.mistake
def n_heads_taken_for_d_head(x, n_heads):
    """`n_heads` is used as the number of features of a head: your result has d_model / n_heads heads with n_heads
    features each. The argument says how many heads there are; the features of one follow from it."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, d_model // n_heads, n_heads).transpose(1, 2)


@split_heads.mistake
def turned_and_cut_anew(x, n_heads):
    """Tokens and features have changed places, and the tensor was then cut into (batch, heads, seq, d_head), all at
    once. The shape is right and the numbers are scrambled: after the exchange the tokens vary fastest, so the last axis
    holds one feature of several tokens. What must be cut first, while a token's features still lie side by side?"""
    batch, seq, d_model = x.shape
    return x.transpose(1, 2).reshape(batch, n_heads, seq, d_model // n_heads)


@split_heads.mistake
def batch_and_seq_exchanged(x, n_heads):
    """Your result is (seq, batch, heads, d_head): the first two axes have changed places, and not the two in the
    middle. Axes are counted from 0, and the batch is number 0. Which two numbers do `seq` and `heads` have after the
    cut?"""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model // n_heads).transpose(0, 1)


@split_heads.mistake
def heads_folded_into_the_batch(x, n_heads):
    """Your result is (batch · heads, seq, d_head): the heads are there, and share an axis with the batch. Programs for
    `torch.bmm` fold them so, and must take them apart again later. Here, `heads` stays an axis of its own."""
    return split_heads.reference(x, n_heads).flatten(0, 1)


@split_heads.mistake
def a_list_of_heads(x, n_heads):
    """Your function returns the heads one by one, as a tuple or a list. Each of them may be right. One tensor can do
    the same for all heads at once, without a loop: how do several tensors of one shape become one, with a new axis for
    `heads` behind `batch`?"""
    return x.chunk(n_heads, dim=-1)


@split_heads.property
def a_head_sees_its_features(function, x, n_heads):
    """Head 0 holds the first d_model / n_heads features of every token."""
    width = x.shape[-1] // n_heads
    return torch.equal(function(x, n_heads)[:, 0], x[..., :width])


# 2. merge_heads


def _heads(draw, batch=2, heads=3, seq=7, d_value=5):
    return (draw(batch, heads, seq, d_value),)


@exercise(
    inputs=_heads,
    axes={"x": "batch heads seq d_value", "return": "batch seq d_model"},
    hints=(
        "After the merge, a token's features stand side by side again. Which axes have to be neighbours for that?",
        "Bring `heads` next to the features first. What does `view` say about a tensor whose axes were exchanged?",
        "`x.transpose(…, …).contiguous().view(batch, seq, …)`, or `reshape` for the last two",
    ),
)
def merge_heads(x):
    """Join (batch, heads, seq, d_value) to (batch, seq, heads · d_value)."""
    batch, heads, seq, d_value = x.shape
    return x.transpose(1, 2).reshape(batch, seq, heads * d_value)


@merge_heads.equivalent
def merge_by_cat(x):
    return torch.cat(x.unbind(1), dim=-1)


@merge_heads.equivalent
def merge_by_flatten(x):
    return x.permute(0, 2, 1, 3).flatten(2)


@merge_heads.equivalent
def merge_with_contiguous(x):
    batch, _, seq, _ = x.shape
    return x.transpose(1, 2).contiguous().view(batch, seq, -1)


@merge_heads.probe
def _merge_one_token(draw):
    """one token"""
    return (draw(2, 3, 1, 5),)


@merge_heads.probe
def _merge_one_head(draw):
    """one head"""
    return (draw(2, 1, 7, 5),)


@merge_heads.probe
def _merge_what_was_split(draw):
    """heads that were split off a moment ago"""
    return (draw(2, 7, 3, 5).transpose(1, 2),)


@merge_heads.mistake
def reshape_alone(x):
    """The tensor is reshaped as it lies, with `heads` still before `seq`. The shape is right and the numbers are
    scrambled: the features of one token now come from several positions of one head. Training with it works somehow,
    and the loss hides it. Compare: `merge_heads(split_heads(x, n))` must give back `x`."""
    batch, heads, seq, d_value = x.shape
    return x.reshape(batch, seq, heads * d_value)


@merge_heads.mistake
def view_after_transpose(x):
    """`view` raises after the axes were exchanged: it only reads memory in order, and the exchanged tensor no longer
    lies in order. `.contiguous()` writes it down anew, and `reshape` does so where it must. Swapping the two lines
    instead, `view` before `transpose`, would run and scramble."""
    batch, heads, seq, d_value = x.contiguous().shape
    return x.contiguous().transpose(1, 2).view(batch, seq, heads * d_value)


@merge_heads.mistake
def heads_averaged(x):
    """The heads are averaged: your result has d_value features instead of heads · d_value. An average mixes what the
    heads found, and nothing after it can tell them apart; side by side, the output projection can weigh each of
    them."""
    return x.mean(dim=1)


@merge_heads.mistake
def heads_added(x):
    """The heads are added up: your result has d_value features instead of heads · d_value. A sum mixes what the heads
    found, and nothing after it can tell them apart; put them side by side."""
    return x.sum(dim=1)


@merge_heads.mistake
def features_interleaved(x):
    """The features are joined as (d_value, heads): feature 0 of every head first, then feature 1 of every head. The
    merge must undo the split, which gave each head a block of neighbours. Look at the order of the two axes that you
    join."""
    return x.permute(0, 2, 3, 1).flatten(2)


@merge_heads.mistake
def heads_one_after_the_other(x):
    """The heads are joined along `seq`: your result is (batch, heads · seq, d_value), a sequence as many times longer
    as there are heads. Concatenate along the features: a token stays one token."""
    return x.flatten(1, 2)


@merge_heads.mistake
def seq_before_batch(x):
    """Your result is (seq, batch, heads · d_value): `seq` comes first. That is the order of PyTorch's older modules,
    and of a `permute` that begins with axis 2. Here `batch` stays first."""
    return x.permute(2, 0, 1, 3).flatten(2)


@merge_heads.mistake
def features_for_tokens(x):
    """The last two axes have changed places before the tensor was joined: `seq` and the features, instead of `heads`
    and `seq`. The shape is right and the numbers are scrambled. Which two axes must become neighbours, so that the
    features of one token lie side by side?"""
    batch, heads, seq, d_value = x.shape
    return x.transpose(2, 3).reshape(batch, seq, heads * d_value)


@merge_heads.mistake
def heads_and_features_exchanged(x):
    """`heads` has changed places with the features, and the tensor was then cut into the right shape. The numbers are
    scrambled. Count the axes: 0 is `batch`, and 3 holds the features. Which one must `heads` change places with, so
    that it stands before them?"""
    batch, heads, seq, d_value = x.shape
    return x.transpose(1, 3).reshape(batch, seq, heads * d_value)


@merge_heads.mistake
def cut_over_the_batch(x):
    """`seq` was brought to the front, as PyTorch's older modules have it, and the tensor was then cut into (batch, seq,
    heads · d_value). The shape is right, and the sentences are mixed: the first holds the first tokens of all of them.
    `batch` must stay in front: which two axes should change places?"""
    batch, heads, seq, d_value = x.shape
    return x.permute(2, 0, 1, 3).reshape(batch, seq, heads * d_value)


@merge_heads.mistake
def heads_before_the_batch(x):
    """`batch` and `heads` have changed places, and the tensor was then cut into the right shape. The numbers are
    scrambled, and mixed among the sentences. Count the axes from 0: which number has `heads`, and which has the axis
    that it must change places with?"""
    batch, heads, seq, d_value = x.shape
    return x.transpose(0, 1).reshape(batch, seq, heads * d_value)


@merge_heads.mistake
def not_joined(x):
    """Your result is (batch, seq, heads, d_value): the axes are in the right order, and `heads` still has one of its
    own. The features of a token lie side by side already. What makes one axis of the last two?"""
    return x.transpose(1, 2)


@merge_heads.mistake
def tokens_joined_as_well(x):
    """Your result is (batch, seq · heads · d_value): everything behind `batch` was joined, the tokens too. `flatten`
    goes on to the last axis from where you let it begin. Which is the first axis that should be joined?"""
    return x.transpose(1, 2).flatten(1)


@merge_heads.mistake
def first_head_only(x):
    """Your result holds the first head and nothing of the others: d_value features for every token instead of heads ·
    d_value. An index where an axis was meant does that, and so does a `return` inside a loop. Where do the other heads
    go?"""
    return x[:, 0]


@merge_heads.property
def merging_undoes_splitting(function, x):
    """`merge_heads(split_heads(x, n))` gives `x` back."""
    whole = merge_heads.reference(x)
    return torch.equal(function(split_heads.reference(whole, x.shape[1])), whole)


# 3. multi_head_attention


def _layer(draw, batch=2, seq=7, heads=3, d_head=5):
    d_model = heads * d_head
    weights = (draw(d_model, d_model) / d_model**0.5 for _ in range(4))
    return draw(batch, seq, d_model), *weights, heads


def with_weights(x, w_q, w_k, w_v):
    return linear(x, w_q), linear(x, w_k), linear(x, w_v)


def output_projection(merged, w_o):
    return linear(merged, w_o)


@exercise(
    inputs=_layer,
    axes={"x": "batch seq d_model", "return": "batch seq d_model"},
    hints=(
        "Which of your functions do you already have, and in which order does a tensor pass through them?",
        "Project, split, attend in every head (with the scale of one head), merge, project. Weights are (out, in).",
        "`q, k, v = (split_heads(x @ w.T, n_heads) for w in …)` · `attention(q, k, v)` · `merge_heads(…) @ …`",
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
    projections=with_weights,
    split=split_heads.reference,
    scores=dot_products,
    scale=by_root_d,
    weights=over_keys,
    output=weighted_sum,
    merge=merge_heads.reference,
    combined=output_projection,
):
    """Attend to oneself in every head: (batch, seq, d_model) in and out, weights (d_model, d_model) as PyTorch stores
    them."""
    query, key, value = (split(y, n_heads) for y in projections(x, w_q, w_k, w_v))
    table = weights(scale(scores(query, key), query.shape[-1]))
    return combined(merge(output(table, value)), w_o)


@multi_head_attention.equivalent
def head_by_head(x, w_q, w_k, w_v, w_o, n_heads):
    parts = []
    for q, k, v in zip(*(w.chunk(n_heads) for w in (w_q, w_k, w_v))):
        scores = (x @ q.T) @ (x @ k.T).transpose(1, 2) / q.shape[0] ** 0.5
        parts.append(scores.softmax(-1) @ (x @ v.T))
    return torch.cat(parts, -1) @ w_o.T


@multi_head_attention.equivalent
def by_einsum(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (torch.einsum("bsd,hed->bshe", x, w.unflatten(0, (n_heads, -1))) for w in (w_q, w_k, w_v))
    weights = torch.einsum("bqhe,bkhe->bhqk", q * q.shape[-1] ** -0.5, k).softmax(-1)
    return torch.einsum("bhqk,bkhe,ohe->bqo", weights, v, w_o.unflatten(1, (n_heads, -1)))


@multi_head_attention.equivalent
def packed_and_fused(x, w_q, w_k, w_v, w_o, n_heads):
    packed = x @ torch.cat([w_q, w_k, w_v]).T
    q, k, v = (y.unflatten(-1, (n_heads, -1)).transpose(1, 2) for y in packed.chunk(3, -1))
    return scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2) @ w_o.T


@multi_head_attention.equivalent
def pytorchs_own(x, w_q, w_k, w_v, w_o, n_heads):
    x = x.transpose(0, 1)
    packed, bias = torch.cat([w_q, w_k, w_v]), torch.zeros(3 * len(w_q), dtype=x.dtype, device=x.device)
    settings = {"bias_k": None, "bias_v": None, "add_zero_attn": False, "dropout_p": 0.0, "out_proj_bias": None}
    output, _ = multi_head_attention_forward(
        x, x, x, x.shape[-1], n_heads, packed, bias, out_proj_weight=w_o, need_weights=False, **settings
    )
    return output.transpose(0, 1)


@multi_head_attention.equivalent
def heads_added_after_their_own_projections(x, w_q, w_k, w_v, w_o, n_heads):
    total = 0
    for q, k, v, o in zip(*(w.split(len(w) // n_heads) for w in (w_q, w_k, w_v)), w_o.chunk(n_heads, dim=1)):
        weights = torch.softmax(x @ q.T @ k @ x.mT * len(q) ** -0.5, dim=2)
        total = total + weights @ (x @ (o @ v).T)  # values and output, multiplied out
    return total


@multi_head_attention.equivalent
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
def _layer_with_large_scores(draw):
    """scores in the hundreds"""
    x, *weights, heads = _layer(draw)
    return 10 * x, *weights, heads


def no_projections(x, w_q, w_k, w_v):
    """The heads are cut out of the input itself: the three projections are not used. Queries and keys are then the
    same, so that each token matches itself best, and a head can only look at the features that happen to be in its
    block."""
    return x, x, x


def keys_and_values_exchanged(x, w_q, w_k, w_v):
    """Keys and values are exchanged: the values' weights make the keys, and the keys' weights make the values. It comes
    from unpacking three results in another order than they were made in. Look at the names on both sides of the `=`."""
    return linear(x, w_q), linear(x, w_v), linear(x, w_k)


def queries_and_keys_exchanged(x, w_q, w_k, w_v):
    """Queries and keys have changed places: the table of scores is the right one turned round, and what token 1 looks
    for in token 2 is taken for what token 2 looks for in token 1. Look at the names on both sides of the `=`, and at
    the order in which your attention takes them."""
    return linear(x, w_k), linear(x, w_q), linear(x, w_v)


def values_from_the_keys(x, w_q, w_k, w_v):
    """The values are made with the keys' weights: what a token answers to and what it hands over become the same. Often
    a line that was copied and changed in one of two places. Look at which weight makes the values."""
    return linear(x, w_q), linear(x, w_k), linear(x, w_k)


def keys_from_the_queries(x, w_q, w_k, w_v):
    """The keys are made with the queries' weights, or the queries are compared with themselves. Each score is then the
    same both ways, and each token tends to match itself best. One of the four weights is unused: which?"""
    return linear(x, w_q), linear(x, w_q), linear(x, w_v)


def values_from_the_queries(x, w_q, w_k, w_v):
    """What is blended are the queries, not the values. A query says what a token looks for, a value what it hands over.
    One of the four weights is unused: which?"""
    return linear(x, w_q), linear(x, w_k), linear(x, w_q)


def input_for_values(x, w_q, w_k, w_v):
    """The input itself is blended, without the values' projection. Queries and keys are projected rightly. One of the
    four weights is unused: which?"""
    return linear(x, w_q), linear(x, w_k), x


def all_from_the_queries(x, w_q, w_k, w_v):
    """Queries, keys and values are all made with the same weights, `w_q`. A line that was copied twice and not changed
    does that. Two of the four weights are unused: which?"""
    return (linear(x, w_q),) * 3


def queries_and_values_exchanged(x, w_q, w_k, w_v):
    """Queries and values have changed places: what is compared with the keys belongs in the blend, and what is blended
    are the queries. All the sizes fit. Look at the order of the three wherever you make them or hand them on."""
    return linear(x, w_v), linear(x, w_k), linear(x, w_q)


# Where sizes do not fit, the same error has several causes: the text holds for all of them.


def factors_do_not_fit(query, key):
    """A matrix product raises: its left factor has d_head features last, its right factor has tokens second to last,
    and a product sums over these two. Either the keys are not turned round for the scores (or meet the queries number
    by number), or the values stand on the left of the weights. Write the shapes behind both products: which axis is
    summed over in each?"""
    return query @ key


def heads_not_side_by_side(x):
    """The last projection raises: it takes d_model features for every token and gets those of one head, d_head. The
    heads were averaged or added up, or only one is left of them. Mixed like that, nothing can tell them apart again;
    side by side, `w_o` can weigh each of them."""
    return x.mean(dim=1)


def tokens_joined_with_features(x):
    """The last projection raises: what reaches it is (batch, heads, seq · d_head). When the last two axes were joined,
    `heads` stood before `seq`, so that a head's tokens were strung together instead of a token's heads. The split or
    the merge lacks an exchange of axes: write down the shape behind each of them."""
    return x.flatten(2)


def by_d_model(scores, d_head):
    """The scores are divided by d_model itself. They come out much too small, and every head's weights nearly even. It
    is a root that belongs there, and the root of another number: how many products does one score of one head sum?"""
    return scores / (scores.shape[1] * d_head)


@multi_head_attention.mistake(part="scale")
def scaled_by_d_model(scores, d_head):
    """The scores are divided by √d_model instead of √d_head. A head's dot product sums d_head terms, so that is how far
    it spreads; divided by more, the weights of every head come out too even. With one head the two are the same, which
    is why a test with one head does not see it."""
    return scores / (scores.shape[1] * d_head) ** 0.5


# What goes wrong in one step may come together with what goes wrong in another. The rarer ones are looked for alone.
for _part, _mistakes in {
    "split": (view_alone, every_nth_feature),
    "merge": (reshape_alone, features_interleaved),
    "scale": (no_scale, by_d),
    "weights": (over_queries, over_heads),
}.items():
    for _mistake in _mistakes:
        multi_head_attention.mistake(part=_part)(_mistake)
for _part, _mistakes in {
    "split": (n_heads_taken_for_d_head, turned_and_cut_anew),
    "merge": (view_after_transpose, features_for_tokens, heads_not_side_by_side, tokens_joined_with_features),
    "scores": (factors_do_not_fit, keys_reshaped, heads_and_keys_turned, all_axes_turned),
    "scale": (times_root_d, by_half_of_d, by_twice_d, by_d_model, by_root_seq, by_root_heads),
    "weights": WEIGHTS_SELDOM_WRONG,
    "output": (weights_turned,),
    "projections": (
        no_projections,
        keys_and_values_exchanged,
        queries_and_keys_exchanged,
        values_from_the_keys,
        keys_from_the_queries,
        values_from_the_queries,
        input_for_values,
        all_from_the_queries,
        queries_and_values_exchanged,
    ),
}.items():
    for _mistake in _mistakes:
        alone(multi_head_attention, _part, _mistake)


@multi_head_attention.mistake
def scale_after_softmax(x, w_q, w_k, w_v, w_o, n_heads):
    """The scale comes after the softmax: the weights (or the output) are divided by √d_head, not the scores. The
    weights then sum to 1/√d_head, and the softmax has saturated already. The scale is there to keep the scores small:
    before which step must it stand?"""
    steps = {"scale": no_scale, "weights": lambda scores: scores.softmax(-1) / (x.shape[-1] / n_heads) ** 0.5}
    return multi_head_attention.reference(x, w_q, w_k, w_v, w_o, n_heads, **steps)


@multi_head_attention.mistake(part="projections")
def weights_not_turned(x, w_q, w_k, w_v):
    """The projections multiply by the weights as they are stored, `x @ w`. PyTorch stores (out, in), so the product
    needs the weight turned round. With square weights nothing complains, and every projection is another one than was
    meant."""
    return x @ w_q, x @ w_k, x @ w_v


@multi_head_attention.mistake
def a_weight_meets_a_piece(x, w_q, w_k, w_v, w_o, n_heads):
    """A projection raises: a weight takes all d_model features of a token, and gets the d_head features of one head's
    piece. Either the input is split before it is projected, or the last projection comes before the merge. Write the
    five steps in a row, as in the task above: what are the first and the last of them done with, whole tokens or
    pieces?"""
    query, key, value = (split_heads.reference(x, n_heads) @ w.T for w in (w_q, w_k, w_v))
    return merge_heads.reference(scaled_dot_product_attention(query, key, value)) @ w_o.T


@multi_head_attention.mistake
def blocks_only(x, w_q, w_k, w_v, w_o, n_heads):
    """Each head projects its own block of the input's features, with the square on the diagonal of each weight. The
    rest of the weights is unused, so nothing that stands in another block can reach a head. A head owns a block of the
    projection's outputs, and all of its inputs: project whole tokens, then split."""
    head = torch.arange(len(w_q)) // (len(w_q) // n_heads)
    own = (head[:, None] == head).to(w_q)  # one on the blocks of the diagonal
    return multi_head_attention.reference(x, w_q * own, w_k * own, w_v * own, w_o, n_heads)


@multi_head_attention.mistake
def all_heads_alike(x, w_q, w_k, w_v, w_o, n_heads):
    """All heads do the same: each uses the first d_head rows of the weights. Side by side stand as many copies of one
    head as there are heads. In a loop over the heads, what must change from one turn to the next?"""
    first = (w[: len(w) // n_heads].repeat(n_heads, 1) for w in (w_q, w_k, w_v))
    return multi_head_attention.reference(x, *first, w_o, n_heads)


@multi_head_attention.mistake
def one_table_averaged_over_the_heads(x, w_q, w_k, w_v, w_o, n_heads):
    """The heads' tables of weights are averaged to one, and all features of the values are blended with that. What one
    head found is lost in the mean of all. `nn.MultiheadAttention` shows its weights averaged, and computes with each
    table on its own. Which features of the values belong to which table?"""

    def averaged(scores):
        return over_keys(scores).mean(1, keepdim=True).expand_as(scores)

    return multi_head_attention.reference(x, w_q, w_k, w_v, w_o, n_heads, weights=averaged)


@multi_head_attention.mistake
def averaged_and_w_o_cut(x, w_q, w_k, w_v, w_o, n_heads):
    """The heads are averaged, and a part of the last weight was made to fit the average. An average mixes what the
    heads found, and nothing after it can tell them apart. Put them side by side, and all of `w_o` fits."""

    def cut(merged, w_o):
        return merged @ w_o[:, : merged.shape[-1]].T

    return multi_head_attention.reference(x, w_q, w_k, w_v, w_o, n_heads, merge=heads_averaged, combined=cut)


@multi_head_attention.mistake
def heads_of_a_token_compared(x, w_q, w_k, w_v, w_o, n_heads):
    """The scores compare the heads of one token with each other: `heads` stands behind `seq` when the matrix product
    takes its last two axes. The tables are heads × heads, and no token ever sees another one: change one token, and
    only its own output changes. Which two axes must stand last?"""
    query, key, value = (linear(x, w).unflatten(-1, (n_heads, -1)) for w in (w_q, w_k, w_v))
    return linear((over_keys(by_root_d(query @ key.mT, key.shape[-1])) @ value).flatten(2), w_o)


@multi_head_attention.mistake(part="combined")
def no_output_projection(merged, w_o):
    """The last projection is missing: the merged heads are returned as they are. Each output feature then belongs to
    one head alone, and no layer of this kind can combine what two heads found. One of the four weights is unused."""
    return merged


@multi_head_attention.mistake(part="combined")
def output_weight_not_turned(merged, w_o):
    """The last projection multiplies by `w_o` as it is stored. PyTorch stores (out, in), so the product needs it turned
    round. The matrix is square, so nothing complains."""
    return merged @ w_o


@multi_head_attention.mistake
def over_the_batch(x, w_q, w_k, w_v, w_o, n_heads):
    """The tokens are compared along the batch: each position attends to the same position of the other sentences. That
    is what code for (seq, batch, d_model) does with (batch, seq, d_model), as `nn.MultiheadAttention` does without
    `batch_first=True`. Change one sentence: the outputs of the other must stay, and yours do not."""
    turned = multi_head_attention.reference(x.transpose(0, 1), w_q, w_k, w_v, w_o, n_heads)
    return turned.transpose(0, 1)


@multi_head_attention.mistake
def one_head_only(x, w_q, w_k, w_v, w_o, n_heads):
    """All features are compared in one table: there is one head, whatever `n_heads` says, and the result is the same
    for every `n_heads`. A token can then look in one way only. Split before the scores, so that every head has a table
    of its own."""
    return multi_head_attention.reference(x, w_q, w_k, w_v, w_o, 1)


@multi_head_attention.mistake
def one_table_for_all_heads(x, w_q, w_k, w_v, w_o, n_heads):
    """The scale is that of one head, and the scores are not: all features are compared in one table, with no split
    before it. A token can then look in one way only. What does each head need of its own?"""
    wider = n_heads**0.5  # √d_model over √d_head
    return multi_head_attention.reference(x, w_q * wider, w_k, w_v, w_o, 1)


@multi_head_attention.mistake
def seq_comes_first(x, w_q, w_k, w_v, w_o, n_heads):
    """Your result is (seq, batch, d_model): PyTorch's older modules take and give `seq` first, and you turned the input
    round for them, or your own axes. The numbers are right. Turn the result back."""
    return multi_head_attention.reference(x, w_q, w_k, w_v, w_o, n_heads).transpose(0, 1)


@multi_head_attention.mistake
def input_added(x, w_q, w_k, w_v, w_o, n_heads):
    """The input is added to the output. Layers of a transformer do that, around their attention; it is the residual
    connection of chapter 6. Here, return what attention gives."""
    return x + multi_head_attention.reference(x, w_q, w_k, w_v, w_o, n_heads)


@multi_head_attention.mistake
def output_and_weights(x, w_q, w_k, w_v, w_o, n_heads):
    """You return two things, the output and the weights. `nn.MultiheadAttention` does so, with the weights averaged
    over the heads, and whoever goes on computing with the result stumbles over the pair. Here, return the output
    alone."""
    query, key = (split_heads.reference(linear(x, w), n_heads) for w in (w_q, w_k))
    weights = over_keys(by_root_d(dot_products(query, key), query.shape[-1]))
    return multi_head_attention.reference(x, w_q, w_k, w_v, w_o, n_heads), weights.mean(1)


@multi_head_attention.property
def same_every_time(function, *arguments):
    """The same input gives the same result every time. New random weights do not, and neither does dropout."""
    return torch.equal(function(*arguments), function(*arguments))


@multi_head_attention.property
def order_of_tokens(function, x, *rest):
    """Shuffle the tokens, and the outputs are shuffled in the same way: attention knows no order."""
    order = torch.arange(x.shape[1]).roll(2)
    return torch.allclose(function(x[:, order], *rest), function(x, *rest)[:, order], atol=1e-4)


@multi_head_attention.property
def sentences_apart(function, x, *rest):
    """Change one sentence of the batch, and the others keep their outputs."""
    changed = x.clone()
    changed[-1] += 1
    return torch.allclose(function(changed, *rest)[:-1], function(x, *rest)[:-1], atol=1e-4)


# 4. unpack_projection


def _packed(draw, d_model=5):
    return (draw(3 * d_model, d_model),)


@exercise(
    inputs=_packed,
    axes={"in_proj_weight": "3·d_model d_model", "return": "d_model d_model, d_model d_model, d_model d_model"},
    hints=(
        "A linear map's weight is (out, in). Three maps were stacked: along which of the two axes, and in which order?",
        "The first axis has 3 · d_model rows. `chunk` cuts an axis into equal parts.",
        "`w_q, w_k, w_v = in_proj_weight.…(3, dim=…)`",
    ),
)
def unpack_projection(in_proj_weight):
    """Cut (3 · d_model, d_model) into the weights of queries, keys and values, (d_model, d_model) each."""
    return in_proj_weight.chunk(3, dim=0)


@unpack_projection.equivalent
def by_rows(in_proj_weight):
    d_model = in_proj_weight.shape[1]
    return tuple(in_proj_weight[start : start + d_model] for start in (0, d_model, 2 * d_model))


@unpack_projection.equivalent
def by_view(in_proj_weight):
    return list(in_proj_weight.reshape(3, -1, in_proj_weight.shape[1]))


@unpack_projection.equivalent
def by_unbind(in_proj_weight):
    return in_proj_weight.unflatten(0, (3, -1)).unbind()


@unpack_projection.equivalent
def copied(in_proj_weight):
    rows = torch.arange(len(in_proj_weight)).chunk(3)
    return tuple(in_proj_weight[some].clone() for some in rows)


@unpack_projection.equivalent
def by_split(in_proj_weight):
    return in_proj_weight.split(in_proj_weight.shape[1])


@unpack_projection.mistake
def every_third_row(in_proj_weight):
    """Every third row goes to the same weight: the rows are dealt out in turn. They are stacked in blocks: all rows of
    the queries' weight first, then all of the keys', then all of the values'."""
    return tuple(in_proj_weight[start::3] for start in range(3))


@unpack_projection.mistake
def along_the_inputs(in_proj_weight):
    """The cut goes through the second axis, the inputs: your parts have 3 · d_model rows. The three maps share their
    input and were stacked along their outputs, which a weight has first: (out, in)."""
    return in_proj_weight.tensor_split(3, dim=1)


@unpack_projection.mistake
def turned_round(in_proj_weight):
    """Your three weights are turned round, (in, out). As PyTorch stores them, (out, in), they can go straight into
    `linear` or into another module; turning belongs to the product, `x @ w.T`."""
    return tuple(part.T for part in in_proj_weight.chunk(3))


@unpack_projection.mistake
def in_another_order(in_proj_weight):
    """The three are in another order than PyTorch packs them: first the queries', then the keys', then the values'.
    Yours come as keys, queries, values, and attention with them compares the wrong way round."""
    w_q, w_k, w_v = in_proj_weight.chunk(3)
    return w_k, w_q, w_v


@unpack_projection.mistake
def backwards(in_proj_weight):
    """The three come out backwards: values', keys', queries'. PyTorch packs the queries' first."""
    return tuple(reversed(in_proj_weight.chunk(3)))


@unpack_projection.mistake
def values_before_keys(in_proj_weight):
    """Keys' and values' weights are exchanged: PyTorch packs queries', keys', values', in this order."""
    w_q, w_k, w_v = in_proj_weight.chunk(3)
    return w_q, w_v, w_k


@unpack_projection.mistake
def values_first(in_proj_weight):
    """The three come out as values', queries', keys'. PyTorch packs the queries' first, then the keys', then the
    values'. Look at the order of your names, or of your slices."""
    w_q, w_k, w_v = in_proj_weight.chunk(3)
    return w_v, w_q, w_k


@unpack_projection.mistake
def queries_last(in_proj_weight):
    """The three come out as keys', values', queries'. PyTorch packs the queries' first, then the keys', then the
    values'. Look at the order of your names, or of your slices."""
    w_q, w_k, w_v = in_proj_weight.chunk(3)
    return w_k, w_v, w_q


@unpack_projection.mistake
def three_times_the_first(in_proj_weight):
    """All three are the queries' weight, the rows at the top. A slice that was copied and not changed does that. Which
    row do the keys' begin with, and which the values'?"""
    return (in_proj_weight.chunk(3)[0],) * 3


@unpack_projection.mistake
def parts_of_three_rows(in_proj_weight):
    """Your parts have three rows each, and there are as many of them as d_model says. `split` takes the size of a part,
    where `chunk` takes how many parts. How many rows has one weight?"""
    return in_proj_weight.split(3)


@unpack_projection.mistake
def upper_ends_missing(in_proj_weight):
    """Your parts become shorter: each begins where it should, and runs on to the last row. A slice with nothing behind
    its colon goes to the end. Where must the queries' rows stop, and where the keys'?"""
    d_model = in_proj_weight.shape[1]
    return in_proj_weight, in_proj_weight[d_model:], in_proj_weight[2 * d_model :]


@unpack_projection.mistake
def every_third_number(in_proj_weight):
    """Every third number goes to the same weight: the three were cut out of the last axis of a `view` or `reshape`, and
    that axis runs fastest. The rows of one weight are whole, and stand in a block. As which axis, first or last, must
    the three stand?"""
    return in_proj_weight.reshape(*[in_proj_weight.shape[1]] * 2, 3).unbind(-1)


@unpack_projection.mistake
def as_one_tensor(in_proj_weight):
    """You return the packed weight as it is, uncut. Three tensors are asked for, as a tuple: `w_q, w_k, w_v =
    unpack_projection(…)` should work and give one weight to each name."""
    return in_proj_weight


@unpack_projection.mistake
def stacked_in_one_tensor(in_proj_weight):
    """You return one tensor, (3, d_model, d_model), which holds the three weights in the right order. What is asked for
    is a tuple of three tensors. Which operation takes an axis apart into a tuple?"""
    return in_proj_weight.unflatten(0, (3, -1))


@unpack_projection.property
def stacked_again(function, in_proj_weight):
    """Stacked again, the three give the packed weight back."""
    return torch.equal(torch.cat(tuple(function(in_proj_weight))), in_proj_weight)


# 5. Find the mistake: a batch folded into the heads


def _folded(draw, batch=2, heads=3, seq=7, d_head=5):
    return tuple(draw(batch, heads, seq, d_head) for _ in range(3))


def fold(x):
    return x.flatten(0, 1)


def unfold(x, batch):
    return x.unflatten(0, (batch, -1))


@exercise(
    inputs=_folded,
    axes={
        "query": "batch heads seq d_head",
        "key": "batch heads seq d_head",
        "value": "batch heads seq d_head",
        "return": "batch seq d_model",
    },
    hints=(
        "The program is right for one sentence. What can only go wrong when there are two?",
        "Two sentences with two heads make four tables. Write down whose they are, in the order in which the folded "
        "axis holds them. In which order does the program take them apart?",
        "Folding puts `batch` outside and `heads` inside: `view(…, …, seq, …)` must take them apart in this order.",
    ),
)
def mend_folded_heads(
    query,
    key,
    value,
    *,
    folded=fold,
    scores=dot_products,
    scale=by_root_d,
    weights=over_keys,
    unfolded=unfold,
    merge=merge_heads.reference,
):
    """Attend in every head, with batch and heads folded into one axis: (batch, heads, seq, d_head) to (batch, seq,
    d_model)."""
    batch, d_head = query.shape[0], query.shape[-1]
    query, key, value = folded(query), folded(key), folded(value)
    output = weights(scale(scores(query, key), d_head)) @ value
    return merge(unfolded(output, batch))


@mend_folded_heads.equivalent
def without_folding(query, key, value):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return (weights @ value).transpose(1, 2).flatten(2)


@mend_folded_heads.equivalent
def by_bmm(query, key, value):
    batch, heads, seq, d_head = query.shape
    q, k, v = (x.reshape(batch * heads, seq, d_head) for x in (query, key, value))
    output = torch.bmm(torch.bmm(q, k.transpose(1, 2)).div(d_head**0.5).softmax(2), v)
    return output.view(batch, heads, seq, d_head).permute(0, 2, 1, 3).reshape(batch, seq, heads * d_head)


@mend_folded_heads.equivalent
def fused(query, key, value):
    return scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)


@mend_folded_heads.equivalent
def heads_outside_throughout(query, key, value):
    heads, batch = query.shape[1], query.shape[0]
    q, k, v = (x.transpose(0, 1).reshape(heads * batch, *x.shape[2:]) for x in (query, key, value))
    output = torch.bmm(torch.softmax(torch.bmm(q, k.mT) / q.shape[-1] ** 0.5, dim=-1), v)
    return output.reshape(heads, batch, *output.shape[1:]).permute(1, 2, 0, 3).flatten(2)


@mend_folded_heads.equivalent
def sentence_by_sentence(query, key, value):
    sentences = []
    for q, k, v in zip(query, key, value):  # (heads, seq, d_head)
        weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / q.size(-1) ** 0.5, dim=-1)
        sentences.append(torch.cat([w @ value for w, value in zip(weights, v)], dim=-1))
    return torch.stack(sentences)


mend_folded_heads.example("one sentence", batch=1)


@mend_folded_heads.probe
def _folded_large(draw):
    """scores in the hundreds"""
    return tuple(15 * x for x in _folded(draw))


@mend_folded_heads.mistake(part="unfolded")
def as_given(output, batch):
    """This does what the given program does: right for one sentence, and with two, some heads of one sentence end up in
    the other. Give it two sentences, then each of them alone, and compare the outputs feature by feature: which block
    of features has moved?"""
    return output.unflatten(0, (-1, batch)).transpose(0, 1)


@mend_folded_heads.mistake(part="unfolded")
def heads_and_batch_not_exchanged(output, batch):
    """The result is taken apart as (heads, batch), and left so: sentences and heads have changed places. The folded
    axis was made of `batch` outside and `heads` inside."""
    return output.unflatten(0, (-1, batch))


@mend_folded_heads.mistake(part="folded")
def folded_otherwise(x):
    """The folding was changed, to `heads` outside and `batch` inside, or mixes the two up; taken apart it is with
    `batch` outside. The tables are right, and their outputs land in other places. Folding and taking apart must agree:
    change one of the two."""
    return x.transpose(0, 1).flatten(0, 1)


@mend_folded_heads.mistake
def only_the_cut_was_mended(query, key, value):
    """The folded axis is taken apart as (batch, heads), which is right, and the order in which the axes are moved still
    fits (heads, batch). The shape comes out right, and tokens of several sentences end up in one. Name the four axes
    before the move and behind it: which one must stay in front?"""
    batch, heads, seq, d_head = query.shape
    output = scaled_dot_product_attention(query, key, value)
    return output.permute(1, 2, 0, 3).reshape(batch, seq, heads * d_head)


@mend_folded_heads.mistake
def only_the_move_was_mended(query, key, value):
    """The axes are moved as if they were (batch, heads, seq, d_head), which they should be, and the folded axis is
    still taken apart as (heads, batch). The shape comes out right, and the numbers are scrambled. In which order do
    sentences and heads follow one another in the folded axis?"""
    batch, heads, seq, d_head = query.shape
    output = scaled_dot_product_attention(query, key, value).reshape(heads, batch, seq, d_head)
    return output.transpose(1, 2).reshape(batch, seq, heads * d_head)


@mend_folded_heads.mistake
def sentences_side_by_side(query, key, value):
    """Your result is (heads, seq, batch · d_head): the outputs of all sentences stand side by side, where those of all
    heads should. Each output is right and in the wrong place. Along which axis does a sentence go on, and along which
    do its heads?"""
    return scaled_dot_product_attention(query, key, value).permute(1, 2, 0, 3).flatten(2)


@mend_folded_heads.mistake
def heads_left_apart(query, key, value):
    """Your result is (batch, heads, seq, d_head): the folded axis is taken apart as it should be, and the heads are not
    put side by side any more. The given program did that in its last line, and so must yours."""
    return scaled_dot_product_attention(query, key, value)


@mend_folded_heads.mistake
def left_folded(query, key, value):
    """Your result is (batch · heads, seq, d_head): it is still folded. Sentences and heads share the first axis. Take
    them apart, in the order in which they were folded, then put the heads side by side."""
    return scaled_dot_product_attention(query, key, value).flatten(0, 1)


@mend_folded_heads.mistake
def first_sentence_for_all(query, key, value):
    """All sentences get the outputs of the first. The program was right for one sentence, and that is how it was kept
    right; the others are lost. Where do the tables of the second sentence stand in the folded axis?"""
    output = mend_folded_heads.reference(query[:1], key[:1], value[:1])
    return output.expand(len(query), -1, -1).clone()


@mend_folded_heads.mistake
def heads_of_a_token_folded_together(query, key, value):
    """The folded axis is made of `batch` and `seq`, so that each table compares the heads of one token with each other,
    and no token sees another one. What belongs in front is whatever has a table of its own: which two axes?"""
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    return scaled_dot_product_attention(query, key, value).flatten(2)


@mend_folded_heads.mistake(part="weights")
def over_the_folded_axis(scores):
    """The softmax runs over the folded axis: for each query and key, the weights of all heads of all sentences sum to
    one. `F.softmax` without a `dim` takes axis 0 when there are three. Over which axis must the weights sum to one?"""
    return scores.softmax(0)


mend_folded_heads.mistake(part="merge")(reshape_alone)
mend_folded_heads.mistake(part="merge")(features_interleaved)
for _mistake in (no_scale, by_d, times_root_d, by_root_seq):
    mend_folded_heads.mistake(part="scale")(_mistake)
mend_folded_heads.mistake(part="weights")(over_queries)
for _part, _mistake in {
    "scores": keys_reshaped,
    "weights": no_maximum,
    "merge": heads_averaged,
}.items():
    alone(mend_folded_heads, _part, _mistake)


@mend_folded_heads.mistake
def folded_the_other_way(query, key, value):
    """The keys are folded in another order than queries and values, with `heads` outside and `batch` inside: queries of
    one sentence then meet keys of another. All three must be folded alike, and taken apart in that order."""
    return mend_folded_heads.reference(query, fold(key.transpose(0, 1)).unflatten(0, key.shape[:2]), value)


@mend_folded_heads.property
def folded_sentences_apart(function, query, key, value):
    """A sentence in a batch has the outputs that it has alone."""
    alone = function(query[:1], key[:1], value[:1])
    return torch.allclose(function(query, key, value)[:1], alone, atol=1e-5)
