"""Attention under a mask."""

import torch

from ..agree import agree, metadata
from ..attention_steps import (
    all_axes_reversed,
    by_d,
    by_root_d,
    by_root_d_model,
    by_root_k_len,
    dot_products,
    keys_against_queries,
    keys_not_transposed,
    no_scale,
    over_batch,
    over_heads,
    over_keys,
    over_queries,
    softmax_twice,
    times_root_d,
    weighted_sum,
)
from ..common_mistakes import cut_off
from ..exercise import exercise, family
from ..relation import wrong_positions

LOW_SCORES, VERY_LOW_SCORES = "scores in the thousands", "scores of -720,000"


def _random_mask(draw, *shape):
    """A random mask in which every row and every column has a True and a False, where there is room for both."""
    mask, rows = draw(*shape) > 0, torch.arange(shape[-2])
    mask[..., rows, (rows + 1) % shape[-1]] = False
    mask[..., rows, rows % shape[-1]] = True
    return mask


def _attention_inputs(draw, batch=2, heads=3, q_len=7, k_len=6, d_head=5, d_value=4):
    query, key = draw(batch, heads, q_len, d_head), draw(batch, heads, k_len, d_head)
    return query, key, draw(batch, heads, k_len, d_value), _random_mask(draw, batch, heads, q_len, k_len)


def _scores(query, key):
    return query @ key.mT / query.shape[-1] ** 0.5


def _has_the_right_type(got, expected):
    """Whether a function returned a tensor with the expected shape and type."""
    return isinstance(got.value, torch.Tensor) and metadata(got.value) == metadata(expected.value)


def _leaks(probe, got, expected):
    """Whether hidden keys are seen only because the visible scores are low."""
    query, key, value, mask = probe.arguments
    if probe.name not in (LOW_SCORES, VERY_LOW_SCORES) or not _has_the_right_type(got, expected):
        return False
    if probe.name == VERY_LOW_SCORES:
        scores = _scores(query, key)
        tables = scores.masked_fill(~mask, -1e4), scores + ~mask * -1e4
        return any(agree(got.value, table.softmax(-1) @ value) for table in tables)
    low, high = value.amin(-2, keepdim=True) - 1e-4, value.amax(-2, keepdim=True) + 1e-4
    return bool(((got.value >= low) & (got.value <= high)).all())


def _wrong_queries_and_scores(probe, got, expected):
    """Return which queries get zeros or NaN by mistake, and each query's largest score, or None if something else is
    wrong."""
    query, key, _, mask = probe.arguments
    if probe.name not in (LOW_SCORES, VERY_LOW_SCORES) or not _has_the_right_type(got, expected):
        return None
    wrong = wrong_positions(got.value, expected.value)
    if not (got.value[wrong].isnan() | (got.value[wrong] == 0)).all():
        return None
    largest = _scores(query, key).masked_fill(~mask, float("-inf")).amax(-1)
    return wrong.any(-1), largest


def _vanishes(probe, got, expected):
    """Whether all queries that get zeros or NaN by mistake have only visible scores below zero."""
    found = _wrong_queries_and_scores(probe, got, expected)
    if found is None:
        return False
    wrong, largest = found
    return bool((largest[wrong] < 0).all())


def _overflows(probe, got, expected):
    """Whether the query with the largest visible score of all gets zeros or NaN by mistake."""
    found = _wrong_queries_and_scores(probe, got, expected)
    if found is None:
        return False
    wrong, largest = found
    return bool(wrong.flatten()[largest.argmax()])


def with_a_large_negative_number(scores, mask):
    """Put minus infinity, or a number far below any score, where the mask is `False`."""
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)


def zeros_for_empty_rows(weights, mask):
    """Set the weights of a query that sees no key to zero."""
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0)


@exercise(
    inputs=_attention_inputs,
    axes={
        "query": "batch heads q_len d_head",
        "key": "batch heads k_len d_head",
        "value": "batch heads k_len d_value",
        "mask": "batch heads q_len k_len",
        "return": "batch heads q_len d_value",
    },
    hints=(
        "The weights of a query must sum to one over the keys that it may see. So where must the mask be applied: "
        "before the softmax, or after it?",
        "Give hidden keys the score minus infinity, or a number far below any score, such as "
        "`torch.finfo(dtype).min`: their weight becomes zero. What does the softmax return for a row in which every "
        "score is such a number? `mask.any(dim=-1, keepdim=True)` says for each row whether the query sees any key; "
        "where it sees none, `masked_fill` can set the weights to zero.",
        "`scores.masked_fill(…, …)`, softmax, then zeros for the rows without any `True`, then `@ value`",
    ),
)
def masked_attention(
    query,
    key,
    value,
    mask,
    *,
    scores=dot_products,
    scale=by_root_d,
    masked=with_a_large_negative_number,
    weights=over_keys,
    empty_rows=zeros_for_empty_rows,
    output=weighted_sum,
):
    """Attend to the keys that ``mask`` allows. The result has shape (batch, heads, q_len, d_value), with zeros for a
    query that may not see any key.

    A hidden key has no weight, however low the scores of the visible keys are.
    """
    table = masked(scale(scores(query, key), query.shape[-1]), mask)
    return output(empty_rows(weights(table), mask), value)


@masked_attention.right
class RightAnswers:
    def with_infinity_except_in_empty_rows(query, key, value, mask):
        sees_a_key = mask.any(-1, keepdim=True)
        scores = _scores(query, key).masked_fill(~mask & sees_a_key, float("-inf"))
        return torch.where(sees_a_key, scores.softmax(-1), 0) @ value

    def with_infinity_and_nan_to_num(query, key, value, mask):
        weights = _scores(query, key).masked_fill(mask == 0, float("-inf")).softmax(-1)
        return torch.nan_to_num(weights) @ value

    def with_minus_a_billion(query, key, value, mask):
        scores = torch.einsum("bhqd,bhkd->bhqk", query / query.shape[-1] ** 0.5, key)
        scores = torch.where(mask, scores, torch.tensor(-1e9, dtype=scores.dtype))
        return torch.einsum("bhqk,bhkv->bhqv", scores.softmax(-1) * mask, value)

    def added_to_the_scores(query, key, value, mask):
        bias = torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, -1e9)
        weights = (query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5 + bias).softmax(-1)
        return (weights * mask) @ value

    def renormalized(query, key, value, mask):
        scores = _scores(query, key).masked_fill(~mask, torch.finfo(query.dtype).min)
        shares = (scores - scores.amax(-1, keepdim=True)).exp() * mask
        return (shares / shares.sum(-1, keepdim=True).clamp(min=1e-30)) @ value

    def zeros_in_the_output(query, key, value, mask):
        output = _scores(query, key).masked_fill(mask.logical_not(), -1e20).softmax(dim=3).matmul(value)
        return output * mask.any(-1)[..., None]

    def row_by_row(query, key, value, mask):
        batch, heads, q_len, d = query.shape
        mask = mask.expand(batch, heads, q_len, key.shape[2])
        result = query.new_zeros(batch, heads, q_len, value.shape[-1])
        for b, h, q in mask.any(-1).nonzero().tolist():
            visible = mask[b, h, q]
            weights = (key[b, h, visible] @ query[b, h, q] / d**0.5).softmax(0)
            result[b, h, q] = weights @ value[b, h, visible]
        return result


masked_attention.example("a causal mask (seq, seq)", q_len=6, mask=torch.ones(6, 6, dtype=torch.bool).tril())
masked_attention.example(
    "a padding mask (batch, 1, 1, k_len)", mask=(torch.arange(6) < torch.tensor([[4], [2]]))[:, None, None]
)


@masked_attention.probe
def one_for_all_heads(draw):
    """a mask (batch, 1, q_len, k_len)"""
    query, key, value, mask = _attention_inputs(draw)
    return query, key, value, mask[:, :1]


@masked_attention.probe
def one_for_each_head(draw):
    """a mask (heads, q_len, k_len)"""
    query, key, value, mask = _attention_inputs(draw)
    return query, key, value, mask[0]


masked_attention.example("as many queries as keys", q_len=6, plain=True)
masked_attention.example("one query of one sentence", batch=1, heads=1, q_len=1)
masked_attention.example("a mask that hides nothing", mask=torch.ones(2, 3, 7, 6, dtype=torch.bool))


@masked_attention.probe
def empty_rows_of_the_mask(draw):
    """queries that may not see any key"""
    query, key, value, mask = _attention_inputs(draw)
    mask[:, :, ::3] = False
    return query, key, value, mask


@masked_attention.probe
def scores_in_the_thousands(draw):
    """scores in the thousands"""
    query, key, value, mask = _attention_inputs(draw)
    scores = _scores(query, key)
    mask[:, 0] = (scores <= scores.kthvalue(2, keepdim=True).values)[:, 0]  # one head sees only the two lowest scores
    return 30 * query, 30 * key, value, mask


@masked_attention.probe
def scores_of_hundred_thousands(draw):
    """scores of -720,000"""
    query, key = torch.zeros(1, 1, 2, 4), torch.full((1, 1, 5, 4), -1200.0)
    query[..., 0, :2] = query[..., 1, 2:] = 600
    mask = torch.ones(1, 1, 2, 5, dtype=torch.bool)
    # The first query does not see the `hidden` keys, whose scores are 0 and -1. The second query sees all keys, and all
    # its scores are equal.
    hidden = [0, 3, 4]
    mask[..., 0, hidden], key[..., hidden, :2] = False, 0
    key[..., 4, 0] = -1 / 300
    return query, key, draw(1, 1, 5, 3), mask


masked_attention.mistakes_in(
    scores=(keys_against_queries, keys_not_transposed, all_axes_reversed),
    scale=(no_scale, by_d, times_root_d, by_root_k_len, by_root_d_model),
    weights=(over_queries, over_heads, over_batch, softmax_twice),
)


@masked_attention.property
def hidden_values_change_nothing(function, query, key, value, mask):
    """Change the values that a query must not see, and its output stays the same."""
    visible = mask.expand(*query.shape[:-1], key.shape[-2])[:, :, :1]
    before = function(query, key, value, mask)
    after = function(query, key, torch.where(visible.mT, value, value + 10), mask)
    return torch.allclose(before[:, :, 0], after[:, :, 0], atol=1e-4)


@masked_attention.property
def masked_weights_sum_to_one(function, query, key, value, mask):
    """If all values are 1, every query that sees a key returns 1: the weights of a query sum to one."""
    result = function(query, key, torch.ones_like(value), mask)
    sees_a_key = mask.any(-1, keepdim=True).expand_as(result)
    return torch.allclose(result[sees_a_key], torch.ones_like(result[sees_a_key]), atol=1e-4)


def _register_fixed_number(number, is_added=False):
    """Hidden keys get a fixed number, such as -100 or -1e4: it replaces their score or is added to it. The number hides
    a key only from a query with higher visible scores: where the visible scores are as low as this number or lower, the
    hidden key gets a weight. A score can be arbitrarily low. Which number is below every score?"""

    def hidden(scores, mask):
        return scores + ~mask * number if is_added else scores.masked_fill(~mask, number)

    hidden.__doc__ = _register_fixed_number.__doc__
    hidden.__name__ = f"{'plus' if is_added else 'filled_with'}_minus_{-number:.0f}"
    masked_attention.mistake(hidden, stage="masked", recognizes=_leaks)


@masked_attention.wrong(stage="masked")
class Masked:
    def mask_inverted(scores, mask):
        """You use the mask the wrong way round: visible keys are hidden, and hidden keys are visible. `True` means may
        attend here. `masked_fill` fills where its own mask is `True`, so it needs the opposite mask."""
        return scores.masked_fill(mask, torch.finfo(scores.dtype).min)

    def score_of_zero(scores, mask):
        """Hidden keys get the score 0, or a score close to 0, such as 1e-9. Zero is a score like any other: its
        exponential is 1, often more than the exponential of a visible score. Do you multiply the scores by the mask, or
        write 1e-9 for -1e9? Which score has the exponential 0?"""
        return scores * mask

    def mask_added(scores, mask):
        """You add the mask to the scores as the numbers 1 and 0: the exponentials of visible scores grow by a factor of
        e, and no key is hidden. Add 0 to the score of a visible key, and a very large negative number to the score of a
        hidden key."""
        return scores + mask

    @family(
        a_small_negative_number=(-1.0, "-1", "its exponential is 0.37, far from zero"),
        minus_ten=(-10.0, "-10", "where the visible scores are low as well, a hidden key keeps a large weight"),
    )
    def number_not_low_enough(number, scores, mask):
        """Hidden keys get the score {}, which is a score like any other: {}. The score of a hidden key must be so low
        that its exponential is zero compared with the exponential of any visible score."""
        return scores.masked_fill(~mask, number)

    def plus_a_billion(scores, mask):
        """Hidden keys get a very large score, because a minus sign is missing: they share all the weight among
        themselves, and the visible keys get none. Look at the number that you fill in."""
        return scores.masked_fill(~mask, 1e9)

    def mask_transposed(scores, mask):
        """You transpose the mask, so its rows are the keys. With as many queries as keys nothing raises an error, and a
        causal mask then shows each token the future. Rows are queries and columns are keys, in the mask as in the
        scores."""
        return scores.masked_fill(~mask.mT, torch.finfo(scores.dtype).min)

    def one_axis_too_many(scores, mask):
        """You add an axis for the heads to the mask, with `unsqueeze(1)` or `None`, but the mask has one already: your
        result has five axes. The axes that a mask lacks are on its left, and broadcasting adds them."""
        return scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min)


@masked_attention.wrong(stage="empty_rows")
class EmptyRows:
    def nan_for_empty_rows(weights, mask):
        """A query that may not see any key gets NaN. With -inf in all its scores, the softmax divides 0 by 0. One such
        row turns every parameter of a model into NaN in the next step of training. What must the output of this query
        be?"""
        return weights.masked_fill(~mask.any(dim=-1, keepdim=True), float("nan"))

    def empty_rows_not_zeroed(weights, mask):
        """A query that may not see any key still gets an output. {When all its scores are one large negative number,
        the softmax returns equal weights, and the output is the average of the hidden values.} There is no NaN and no
        error. The docstring says what the output of such a query must be."""
        return weights

    def empty_columns_for_rows(weights, mask):
        """You look for keys that are hidden from every query, but you should look for queries that may not see any key.
        In the mask, rows are queries and columns are keys: along which axis must `any` run to return one answer for
        each row?"""
        return weights.masked_fill(~mask.any(dim=-2, keepdim=True), 0)


@masked_attention.wrong
class WrongAnswers:
    def mask_inverted_with_infinity(query, key, value, mask):
        """You use the mask the wrong way round: visible keys are hidden, and hidden keys are visible. A query that may
        see every key therefore gets NaN. `True` means may attend here. `masked_fill` fills where its own mask is
        `True`, so it needs the opposite mask."""
        return over_keys(_scores(query, key).masked_fill(mask, float("-inf"))) @ value

    def mask_inverted_with_zeros(query, key, value, mask):
        """You use the mask the wrong way round: visible keys are hidden, and hidden keys are visible. A query that may
        see every key therefore gets zeros, as if it were allowed to see none. `True` means may attend here, but
        `masked_fill` fills where its own mask is `True`: do you pass it `mask` or the inverse of `mask`?"""
        return masked_attention.reference(query, key, value, ~mask)

    def mask_without_effect(query, key, value, mask):
        """The mask has no effect: every query attends to every key. Do you use the result of `masked_fill`?
        `masked_fill` returns a new tensor and leaves the old one unchanged; `masked_fill_` changes the old one."""
        return over_keys(_scores(query, key)) @ value

    def plus_infinity(query, key, value, mask):
        """Every query with a hidden key gets NaN: the hidden score is +inf, and the softmax divides inf by inf. The
        minus sign is missing, or is written twice, as in `-float("-inf")`. A hidden key needs the lowest score, not the
        highest."""
        return over_keys(_scores(query, key).masked_fill(~mask, float("inf"))) @ value

    def zero_times_infinity(query, key, value, mask):
        """Everything is NaN, even where nothing is hidden: 0 times infinity is NaN. You multiply a mask of 0 and 1 by
        -inf, so visible keys get NaN. Choose between two numbers instead of multiplying: `masked_fill` or `where`."""
        return over_keys(_scores(query, key) + (~mask) * float("-inf")) @ value

    def over_heads_with_infinity(query, key, value, mask):
        """The softmax runs over axis 1, which counts the heads: for each query and key the weights of all heads sum to
        one. If a key is hidden in every head, the softmax divides 0 by 0, which is NaN. Over which axis must the
        weights sum to one?"""
        return _scores(query, key).masked_fill(~mask, float("-inf")).softmax(1) @ value

    def over_queries_with_infinity(query, key, value, mask):
        """The softmax runs over the queries: every column of the weights sums to one, instead of every row. A column
        without a visible score becomes NaN, and the NaN spreads to every output. In a table (…, q_len, k_len), which
        axis counts the keys?"""
        return _scores(query, key).masked_fill(~mask, float("-inf")).softmax(-2) @ value

    def over_batch_with_infinity(query, key, value, mask):
        """The softmax runs over axis 0, which counts the sentences of the batch: the sentences compete for weight. If a
        key is hidden in all sentences, the softmax divides 0 by 0, which is NaN. Over which axis must the weights sum
        to one?"""
        return _scores(query, key).masked_fill(~mask, float("-inf")).softmax(0) @ value

    def after_the_softmax(query, key, value, mask):
        """You mask after the softmax: hidden keys have the weight 0, but their share of the sum is missing. The weights
        of a query no longer sum to one, and a hidden key with a high score makes the query's output small. Where must
        the mask come, so that the hidden keys are never counted?"""
        return (over_keys(_scores(query, key)) * mask) @ value

    @family(
        infinity_after_the_softmax=(float("-inf"), "-inf", "infinite or NaN", "a score of -inf"),
        a_billion_after_the_softmax=(-1e9, "-1e9", "of the order of billions", "such a score"),
    )
    def filled_after_the_softmax(number, query, key, value, mask):
        """The weights of hidden keys are {}, and so the output is {}. Fill the scores, not the weights: the softmax
        turns {} into the weight 0, but here you fill after the softmax."""
        return over_keys(_scores(query, key)).masked_fill(~mask, number) @ value

    def divided_again(query, key, value, mask):
        """You mask after the softmax and divide the weights by their sum. Mathematically this is right. But when a
        hidden score is 110 or more above the visible scores, the softmax rounds all visible weights to 0, and 0/0 is
        NaN. Where must the mask come, so that the hidden keys are never counted?"""
        weights = over_keys(_scores(query, key)) * mask
        return torch.where(mask.any(-1, keepdim=True), weights / weights.sum(-1, keepdim=True), 0) @ value

    def divided_again_with_a_guard(query, key, value, mask):
        """You mask after the softmax and divide the weights by their sum, with a guard against a sum of 0. When a
        hidden score is far above the visible scores, the visible weights are 0 or nearly 0 after the softmax, and the
        output is too small or zero. Where must the mask come, so that the hidden keys are never counted?"""
        weights = over_keys(_scores(query, key)) * mask
        return (weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)) @ value

    def mask_as_an_index(query, key, value, mask):
        """You use the mask as an index, `scores[…] = …`. Unlike the mask of `masked_fill` and `where`, an index does
        not broadcast: it must have the shape of the scores. So your function works with a mask (batch, heads, q_len,
        k_len), but raises an error with a causal or a padding mask."""
        scores = _scores(query, key)
        scores[~mask] = torch.finfo(scores.dtype).min
        return zeros_for_empty_rows(over_keys(scores), mask) @ value

    def three_axes_for_the_batch(query, key, value, mask):
        """You treat a mask of three axes as (batch, q_len, k_len) and add an axis for the heads, as many programs do.
        But broadcasting aligns from the right, so the first of three axes counts the heads. A mask that differs between
        sentences has four axes."""
        return masked_attention.reference(query, key, value, mask[:, None] if mask.ndim == 3 else mask)

    def weights_without_values(query, key, value, mask):
        """You return the weights themselves: (…, q_len, k_len), one number for each key. The weights say how much of
        each value is in the output. The product with the values is missing."""
        return masked_attention.reference(
            query, key, torch.eye(key.shape[-2], dtype=key.dtype, device=key.device), mask
        )

    def causal_whatever_the_mask(query, key, value, mask):
        """The argument `mask` has no effect: each query sees the keys up to its own place, as with `is_causal=True`. A
        caller may also pass a different mask, such as one that hides padding: use the argument."""
        causal = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        return masked_attention.reference(query, key, value, causal)

    def over_queries_with_nan_to_num(query, key, value, mask):
        """The softmax runs over the queries: every column of the weights sums to one, instead of every row. Columns
        without a visible score become zeros instead of NaN, which partly hides the mistake. In a table (…, q_len,
        k_len), which axis counts the keys?"""
        return _scores(query, key).masked_fill(~mask, float("-inf")).softmax(-2).nan_to_num() @ value

    def weights_as_well(query, key, value, mask):
        """You return two things, the output and the weights. Many programs return both, in order to plot the weights;
        here, return only the output."""
        weights = masked_attention.reference(
            query, key, torch.eye(key.shape[-2], dtype=key.dtype, device=key.device), mask
        )
        return weights @ value, weights

    def by_root_d_value(query, key, value, mask):
        """You divide the scores by √d_value, the width of the values. Divide by √d_head: each score is a sum of d_head
        products, over the features of a query and a key. In many models the two widths are equal, so nobody notices.
        Which tensor's last axis do you use?"""
        d_value = value.shape[-1]
        return masked_attention.reference(
            query, key, value, mask, scale=lambda scores, d_head: by_root_d(scores, d_value)
        )


@masked_attention.mistake(recognizes=_vanishes)
def rows_of_low_scores_vanish(query, key, value, mask):
    """A query whose visible scores are all far below zero gets zeros, or NaN, as if it were allowed to see nothing. Do
    you use a fixed number, such as -1e4, as a lower limit for the largest score of a row, or to decide whether the row
    sees any key? A score can have any value: subtract the largest score unchanged, and use only the mask to find the
    rows that see nothing."""
    scores = _scores(query, key).masked_fill(~mask, float("-inf"))
    shares = (scores - scores.amax(-1, keepdim=True).clamp(min=-1e4)).exp()
    return (shares / shares.sum(-1, keepdim=True).clamp(min=1e-30)) @ value


@masked_attention.mistake(recognizes=_overflows)  # the mistake above may be recognized as well
def overflow(query, key, value, mask):
    """Nothing keeps `exp` from overflowing. In float32, e to the power of 89 is infinite, and infinity divided by
    infinity is NaN. A softmax depends only on the differences between scores: `torch.softmax` subtracts the largest
    score of each row first."""
    shares = _scores(query, key).exp() * mask
    return (shares / shares.sum(-1, keepdim=True).clamp(min=1e-30)) @ value


for _number in (-1e4, -1e3, -100.0):
    _register_fixed_number(_number)
    _register_fixed_number(_number, is_added=True)


_register_fixed_number(-10.0, is_added=True)


cut_off(masked_attention)
