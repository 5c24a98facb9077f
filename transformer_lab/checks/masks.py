"""Chapter 5: masks for the causal order and for padding, attention under them, and where the decoder's go."""

import torch
from torch.nn.functional import pad, scaled_dot_product_attention

from .attention_lookup import (
    by_d,
    by_root_d,
    dot_products,
    no_scale,
    over_heads,
    over_keys,
    over_queries,
    weighted_sum,
)
from .exercise import exercise

# 1. causal_mask


@exercise(
    inputs=lambda draw, seq=5: (seq,),
    axes={"return": "seq seq"},
    hints=(
        "Row 2 belongs to the third token. Which of the tokens 0, 1, 2, 3, … may it see, itself included?",
        "Rows are queries, columns are keys; `True` means may attend. The allowed part is a triangle. Which one?",
        "`torch.ones(seq, seq, dtype=torch.bool)` and a function that keeps a triangle: `.tril()` or `.triu()`",
    ),
)
def causal_mask(seq):
    """Return (seq, seq), bool: a token may attend to itself and to the tokens before it."""
    return torch.ones(seq, seq, dtype=torch.bool).tril()


@causal_mask.equivalent
def by_comparing_positions(seq):
    position = torch.arange(seq)
    return position[:, None] >= position


@causal_mask.equivalent
def by_turning_the_future_round(seq):
    return ~torch.triu(torch.ones(seq, seq, dtype=torch.bool), diagonal=1)


@causal_mask.equivalent
def by_two_loops(seq):
    return torch.tensor([[key <= query for key in range(seq)] for query in range(seq)])


@causal_mask.equivalent
def by_indices(seq):
    mask = torch.zeros(seq, seq).bool()
    rows, columns = torch.tril_indices(seq, seq)
    mask[rows, columns] = True
    return mask


@causal_mask.probe
def _alone(draw):
    """one token"""
    return (1,)


@causal_mask.probe
def _pair(draw):
    """two tokens"""
    return (2,)


@causal_mask.mistake
def inverted(seq):
    """Your mask is `True` where a token must not look: it is the right one inverted. That is the convention of
    `nn.MultiheadAttention`, where `True` means ignored. In this course, as in `scaled_dot_product_attention`, `True`
    means may attend. Used as it is, every token would see only the future, and the last one nothing."""
    return torch.ones(seq, seq, dtype=torch.bool).triu(1)


@causal_mask.mistake
def upper_triangle(seq):
    """Your mask is the other triangle: each token sees itself and what comes after it. Rows are queries and columns are
    keys. Read row 0 aloud: the first token may see only itself."""
    return torch.ones(seq, seq, dtype=torch.bool).triu()


@causal_mask.mistake
def diagonal_hidden(seq):
    """The diagonal is hidden: no token sees itself, and the first sees nothing at all. It may look at itself, because
    what it must predict is the token after it. Which diagonal does your triangle end at?"""
    return torch.ones(seq, seq, dtype=torch.bool).tril(-1)


@causal_mask.mistake
def one_too_far(seq):
    """Each token sees one token of the future: the triangle ends one diagonal too late. That is the very token which it
    has to predict, so training looks splendid and the model has learned to copy."""
    return torch.ones(seq, seq, dtype=torch.bool).tril(1)


@causal_mask.mistake
def ones_and_zeros(seq):
    """The triangle is right, and made of numbers, not of `True` and `False`. Attention adds a mask of numbers to the
    scores: 1 on what may be seen, 0 on what may not, and hides nothing. Which dtype does your mask need?"""
    return torch.ones(seq, seq).tril()


@causal_mask.mistake
def whole_numbers(seq):
    """The triangle is right, and made of whole numbers instead of `True` and `False`. `~mask` of a whole number is not
    its opposite (`~1` is -2), and masks of bytes are an error in PyTorch today. Which dtype does your mask need?"""
    return torch.ones(seq, seq, dtype=torch.long).tril()


@causal_mask.mistake
def already_additive(seq):
    """This is the mask to add to scores: 0 where a token may attend, -inf where it may not. Here a mask of `True` and
    `False` is asked for; turning it into the other kind is an exercise of its own, `to_additive`."""
    return torch.full((seq, seq), float("-inf")).triu(1)


@causal_mask.mistake
def everything(seq):
    """All is `True`: every token sees every other, the future included. Where does your mask treat keys before the
    query and keys after it differently?"""
    return torch.ones(seq, seq, dtype=torch.bool)


@causal_mask.mistake
def itself_only(seq):
    """Only the diagonal is `True`: each token sees itself and nothing before it. What it may attend to is everything up
    to and including itself."""
    return torch.eye(seq, dtype=torch.bool)


@causal_mask.mistake
def one_row(seq):
    """Your mask has one axis. A causal mask is a table: which keys are visible depends on the query, so every query
    needs a row of its own."""
    return torch.ones(seq, dtype=torch.bool)


@causal_mask.property
def first_and_last(function, seq):
    """The first token sees one key, itself; the last sees them all."""
    mask = function(seq)
    return bool(mask[0, 0]) and int(mask[0].sum()) == 1 and bool(mask[-1].all())


# 2. padding_mask


def _lengths(draw, batch, longest):
    return torch.randint(1, longest + 1, (batch,), generator=draw.generator)


def _padded(draw, batch=3, k_len=7):
    return _lengths(draw, batch, k_len), k_len


@exercise(
    inputs=_padded,
    axes={"lengths": "batch", "return": "batch 1 1 k_len"},
    hints=(
        "A sentence of 2 tokens, filled up to 4: which of the keys 0, 1, 2, 3 may be looked at, and by which queries?",
        "Compare the positions 0, 1, … with the lengths. Broadcasting makes the table, if each has its axis in the right "
        "place; then the axes of `heads` and `q_len`, of size 1, go in between.",
        "`torch.arange(k_len) … lengths[:, …]`, then `[:, None, None, :]`",
    ),
)
def padding_mask(lengths, k_len):
    """Return (batch, 1, 1, k_len), bool: the first ``lengths[b]`` keys of sentence b may be attended to."""
    position = torch.arange(k_len, device=lengths.device)
    return (position < lengths[:, None])[:, None, None, :]


@padding_mask.equivalent
def by_one_comparison(lengths, k_len):
    return torch.arange(k_len, device=lengths.device) < lengths.view(-1, 1, 1, 1)


@padding_mask.equivalent
def by_loops(lengths, k_len):
    rows = [[key < length for key in range(k_len)] for length in lengths.tolist()]
    return torch.tensor(rows, device=lengths.device).reshape(len(lengths), 1, 1, k_len)


@padding_mask.equivalent
def by_turning_round(lengths, k_len):
    ignored = torch.arange(k_len, device=lengths.device).expand(len(lengths), k_len) >= lengths.unsqueeze(1)
    return ~ignored.unsqueeze(1).unsqueeze(2)


@padding_mask.equivalent
def by_padding_ones(lengths, k_len):
    rows = [pad(torch.ones(n, dtype=torch.bool), (0, k_len - n)) for n in lengths.tolist()]
    return torch.stack(rows)[:, None, None].to(lengths.device)


@padding_mask.probe
def _full_and_empty(draw):
    """a full sentence and an empty one"""
    return torch.tensor([4, 0]), 4


@padding_mask.probe
def _one_sentence(draw):
    """a batch of one"""
    return torch.tensor([2]), 5


@padding_mask.probe
def _batch_as_long_as_the_sentence(draw):
    """as many sentences as keys"""
    return torch.tensor([1, 3, 2]), 3


@padding_mask.mistake
def padding_true(lengths, k_len):
    """Your mask is `True` on the padding: it is the right one inverted. `key_padding_mask` of `nn.MultiheadAttention`
    is like that. In this course `True` means may attend, so that the real tokens are `True`."""
    return ~padding_mask.reference(lengths, k_len)


@padding_mask.mistake
def one_key_too_many(lengths, k_len):
    """One key too many is visible: with a length of 2 the positions 0 and 1 are real, and yours lets position 2
    through, the first of the padding. Positions are counted from 0. Look at the comparison."""
    return (torch.arange(k_len) <= lengths[:, None])[:, None, None, :]


@padding_mask.mistake
def without_axes(lengths, k_len):
    """The numbers are right, and the shape is (batch, k_len). Against scores (batch, heads, q_len, k_len) it broadcasts
    from the right: `batch` would meet `q_len`, which raises, or masks the wrong thing where the two are equal. The axes
    of `heads` and `q_len` are missing, with size 1."""
    return torch.arange(k_len) < lengths[:, None]


@padding_mask.mistake
def one_axis_missing(lengths, k_len):
    """The numbers are right, and the shape is (batch, 1, k_len). Against scores (batch, heads, q_len, k_len) `batch`
    then meets `heads`: with as many sentences as heads nothing complains, and every head gets another sentence's mask.
    One more axis of size 1 is missing."""
    return (torch.arange(k_len) < lengths[:, None])[:, None, :]


@padding_mask.mistake
def on_the_queries(lengths, k_len):
    """The mask lies on the queries' axis: its shape is (batch, 1, k_len, 1). A padded query is harmless, nobody reads
    its output; a padded *key* must not be looked at. Keys are the last axis."""
    return padding_mask.reference(lengths, k_len).mT


@padding_mask.mistake
def rows_and_columns(lengths, k_len):
    """Queries and keys of the padding are both masked, (batch, 1, k_len, k_len). The padded rows then see nothing at
    all, which is where NaN comes from. Mask the keys alone: what a padded query finds, nobody reads."""
    columns = padding_mask.reference(lengths, k_len)
    return columns & columns.mT


@padding_mask.mistake
def copied_for_every_query(lengths, k_len):
    """The numbers are right, copied for every query: (batch, 1, k_len, k_len). Broadcasting does that without the
    memory, and works for any number of queries. An axis of size 1 is enough."""
    return padding_mask.reference(lengths, k_len).repeat(1, 1, k_len, 1)


@padding_mask.mistake
def padding_on_the_left(lengths, k_len):
    """The last `lengths[b]` keys are visible: your mask is for sentences that are filled up on the left, as some
    generating programs do. Here the real tokens come first."""
    return (torch.arange(k_len) >= k_len - lengths[:, None])[:, None, None, :]


@padding_mask.mistake
def numbers(lengths, k_len):
    """The mask is made of the numbers 1 and 0. Attention adds a mask of numbers to the scores, and hides nothing with
    it; `True` and `False` are asked for. A comparison gives them, and needs no conversion."""
    return padding_mask.reference(lengths, k_len).float()


@padding_mask.mistake
def batch_and_keys_exchanged(lengths, k_len):
    """The axes of batch and keys have changed places: in the comparison the lengths stand where the positions should.
    Each row must belong to one sentence and have k_len entries."""
    return (torch.arange(k_len)[:, None] < lengths)[:, None, None, :]


@padding_mask.property
def as_many_as_the_length(function, lengths, k_len):
    """In every sentence as many keys are `True` as it has tokens."""
    return torch.equal(function(lengths, k_len).reshape(len(lengths), -1).sum(-1), lengths)


# 3. masked_attention


def _masked(draw, batch=2, heads=3, q_len=7, k_len=6, d_head=5, d_value=4):
    query, key = draw(batch, heads, q_len, d_head), draw(batch, heads, k_len, d_head)
    mask = draw(batch, heads, q_len, k_len) > 0
    mask[..., 0] |= ~mask.any(dim=-1)  # every query sees something
    return query, key, draw(batch, heads, k_len, d_value), mask


def with_a_large_negative_number(scores, mask):
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)


def zeros_for_empty_rows(weights, mask):
    return weights.masked_fill(~mask, 0)


@exercise(
    inputs=_masked,
    axes={
        "query": "batch heads q_len d_head",
        "key": "batch heads k_len d_head",
        "value": "batch heads k_len d_value",
        "mask": "batch heads q_len k_len",
        "return": "batch heads q_len d_value",
    },
    hints=(
        "The weights of a query must sum to one over the keys that it may see. At which point, before the softmax or "
        "after it, is the mask still in time?",
        "What score gives a weight of zero? And what does the softmax make of a row in which every score is like that? "
        "Ask `mask.any(dim=-1)`, or look at the weights once more.",
        "`scores.masked_fill(~mask, …)`, softmax, then zeros for rows without any `True`, then `@ value`",
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
    """Attend to the keys that ``mask`` allows: (batch, heads, q_len, d_value), zeros where a query may see nothing."""
    table = masked(scale(scores(query, key), query.shape[-1]), mask)
    return output(empty_rows(weights(table), mask), value)


@masked_attention.equivalent
def with_infinity_and_nan_to_num(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    rows = mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~mask & rows, float("-inf"))
    return torch.where(rows, scores.softmax(-1), 0) @ value


@masked_attention.equivalent
def with_minus_a_billion(query, key, value, mask):
    scores = torch.einsum("bhqd,bhkd->bhqk", query / query.shape[-1] ** 0.5, key)
    scores = torch.where(mask, scores, torch.tensor(-1e9, dtype=scores.dtype))
    return torch.einsum("bhqk,bhkv->bhqv", scores.softmax(-1) * mask, value)


@masked_attention.equivalent
def added_to_the_scores(query, key, value, mask):
    bias = torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, -1e5)
    weights = (query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5 + bias).softmax(-1)
    return (weights @ value) * mask.any(-1, keepdim=True)


@masked_attention.equivalent
def renormalized(query, key, value, mask):
    scores = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask, torch.finfo(query.dtype).min)
    shares = (scores - scores.amax(-1, keepdim=True)).exp() * mask
    return (shares / shares.sum(-1, keepdim=True).clamp(min=1e-30)) @ value


@masked_attention.equivalent
def row_by_row(query, key, value, mask):
    batch, heads, q_len, d = query.shape
    mask = mask.expand(batch, heads, q_len, key.shape[2])
    result = query.new_zeros(batch, heads, q_len, value.shape[-1])
    for b, h, q in mask.any(-1).nonzero().tolist():
        seen = mask[b, h, q]
        weights = (key[b, h, seen] @ query[b, h, q] / d**0.5).softmax(0)
        result[b, h, q] = weights @ value[b, h, seen]
    return result


@masked_attention.probe
def _causal(draw):
    """a causal mask (seq, seq)"""
    query, key, value, _ = _masked(draw, q_len=6)
    return query, key, value, torch.ones(6, 6, dtype=torch.bool).tril()


@masked_attention.probe
def _padding(draw):
    """a padding mask (batch, 1, 1, k_len)"""
    query, key, value, _ = _masked(draw)
    return query, key, value, (torch.arange(6) < torch.tensor([[4], [2]]))[:, None, None]


@masked_attention.probe
def _one_for_all_heads(draw):
    """a mask (batch, 1, q_len, k_len)"""
    query, key, value, mask = _masked(draw)
    return query, key, value, mask[:, :1]


@masked_attention.probe
def _nothing_hidden(draw):
    """a mask that hides nothing"""
    query, key, value, mask = _masked(draw)
    return query, key, value, torch.ones_like(mask)


@masked_attention.probe
def _empty(draw):
    """queries that may see nothing"""
    query, key, value, mask = _masked(draw)
    mask = mask.clone()
    mask[:, :, ::3] = False
    return query, key, value, mask


@masked_attention.probe
def _masked_large(draw):
    """scores in the hundreds"""
    query, key, value, mask = _masked(draw)
    return 15 * query, 15 * key, value, mask


masked_attention.mistake(part="scale")(no_scale)
masked_attention.mistake(part="scale")(by_d)
masked_attention.mistake(part="weights")(over_queries)
masked_attention.mistake(part="weights")(over_heads)


@masked_attention.mistake(part="masked")
def mask_inverted(scores, mask):
    """The mask is used the wrong way round: the keys that may be seen are hidden, and the hidden ones are seen. `True`
    means may attend here; `masked_fill` fills where its mask is `True`. Between the two belongs a `~`."""
    return scores.masked_fill(mask, torch.finfo(scores.dtype).min)


@masked_attention.mistake(part="masked")
def scores_times_the_mask(scores, mask):
    """Hidden scores become 0, and 0 is a score like any other: its weight is e⁰ = 1 before dividing, often more than
    that of a key which may be seen. Multiplying by the mask, or filling in 0, hides nothing. Which score gives the
    weight 0?"""
    return scores * mask


@masked_attention.mistake(part="masked")
def mask_added(scores, mask):
    """The mask is added to the scores as 1 and 0: allowed keys gain a factor of e, and nothing is hidden. An additive
    mask has 0 where attention is allowed and -inf where it is not."""
    return scores + mask


@masked_attention.mistake(part="masked")
def a_tiny_number(scores, mask):
    """Hidden scores become 1e-9, which is zero to all intents: the weight of a hidden key is e⁰ = 1 before dividing.
    Meant was a large negative number, -1e9. Look at the two signs."""
    return scores.masked_fill(~mask, 1e-9)


@masked_attention.mistake(part="masked")
def plus_infinity(scores, mask):
    """Hidden scores become +inf, and the softmax of a row with that is NaN: inf / inf. The sign is lost, as in
    `-float("-inf")`. A hidden key needs the smallest score there is, not the largest."""
    return scores.masked_fill(~mask, float("inf"))


@masked_attention.mistake(part="masked")
def zero_times_infinity(scores, mask):
    """Everything is NaN: 0 times -inf is NaN, so multiplying a mask of 0 and 1 by -inf spoils the places that should
    stay as they are. Choose between two numbers instead of multiplying: `masked_fill` or `where`."""
    return scores + (~mask) * float("-inf")


@masked_attention.mistake(part="masked")
def not_masked(scores, mask):
    """The mask has no influence: every query attends to every key. Is its result used? `masked_fill` returns a new
    tensor and leaves the old one as it was; the one with an underscore changes it."""
    return scores


@masked_attention.mistake(part="masked")
def a_small_negative_number(scores, mask):
    """Hidden scores become -1: a small penalty, and a score like any other. Their weights stay far from zero. The
    number must be so low that its exponential is zero."""
    return scores.masked_fill(~mask, -1.0)


@masked_attention.mistake
def after_the_softmax(query, key, value, mask):
    """The mask comes after the softmax: hidden keys have the weight 0, and what they had is missing, so the weights of
    a query no longer sum to one and its output shrinks. Mask the scores, before the softmax, or divide again."""
    weights = over_keys(by_root_d(dot_products(query, key), query.shape[-1]))
    return (weights * mask) @ value


@masked_attention.mistake
def nan_for_empty_rows(query, key, value, mask):
    """A query that may see nothing gets NaN: all its scores are -inf, and the softmax divides 0 by 0. One such row is
    enough to spoil every weight of a model in the next step of training. Rows without any `True` need zeros."""
    scores = by_root_d(dot_products(query, key), query.shape[-1])
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ value


@masked_attention.mistake(part="empty_rows")
def average_for_empty_rows(weights, mask):
    """A query that may see nothing gets the average of all values: its scores are all the same large negative number,
    and the softmax makes them even. No NaN, no error, and hidden values in the output. Such rows need zeros."""
    return weights


@masked_attention.mistake
def nan_to_zero_at_the_end(query, key, value, mask):
    """The outputs are right, and `nan_to_num` at the end made them so: the gradients on the way back are NaN all the
    same, because the softmax of a row of -inf was computed. Keep -inf out of such rows before the softmax."""
    return nan_for_empty_rows(query, key, value, mask).nan_to_num(0.0)


@masked_attention.mistake(part="masked")
def mask_turned(scores, mask):
    """The mask is turned round: its rows are taken for keys. With as many queries as keys nothing complains, and a
    causal mask then shows each token the future. Rows are queries, columns are keys."""
    return scores.masked_fill(~mask.mT, torch.finfo(scores.dtype).min)


@masked_attention.property
def hidden_values_change_nothing(function, query, key, value, mask):
    """Change what a query must not see, and its output stays."""
    seen = mask[:, :, :1]
    others = torch.where(seen.mT, value, value + 10)
    return torch.allclose(
        function(query, key, value, mask)[:, :, 0], function(query, key, others, mask)[:, :, 0], atol=1e-4
    )


@masked_attention.property
def masked_weights_sum_to_one(function, query, key, value, mask):
    """Values that are all 1 give 1: the weights of a query sum to one."""
    result = function(query, key, torch.ones_like(value), mask)
    return torch.allclose(result, torch.ones_like(result), atol=1e-4)


# 4. to_additive


def _allowed(draw, q_len=5, k_len=4):
    return (draw(q_len, k_len) > 0,)


@exercise(
    inputs=_allowed,
    axes={"mask": "q_len k_len", "return": "q_len k_len"},
    hints=(
        "What must be added to a score so that it stays as it is, and what so that its weight becomes zero?",
        "Begin with zeros of the mask's shape and fill in -inf where the mask is `False`. Multiplying by infinity is a trap: "
        "0 · inf is NaN.",
        "`torch.zeros(mask.shape).masked_fill(…, …)`",
    ),
)
def to_additive(mask):
    """Return float32 of the mask's shape: 0 where ``mask`` is True, -inf where it is False."""
    return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, float("-inf"))


@to_additive.equivalent
def by_where(mask):
    return torch.where(mask, 0.0, float("-inf"))


@to_additive.equivalent
def by_the_logarithm(mask):
    return mask.float().log()


@to_additive.equivalent
def in_place(mask):
    bias = torch.zeros_like(mask, dtype=torch.float32)
    bias[~mask] = -torch.inf
    return bias


@to_additive.probe
def _all_hidden(draw):
    """a mask that hides all"""
    return (torch.zeros(3, 4, dtype=torch.bool),)


@to_additive.probe
def _all_allowed(draw):
    """a mask that hides nothing"""
    return (torch.ones(3, 4, dtype=torch.bool),)


@to_additive.probe
def _four_axes(draw):
    """a mask with four axes"""
    return (draw(2, 1, 1, 5) > 0,)


@to_additive.mistake
def additive_inverted(mask):
    """It is the wrong way round: -inf where the mask is `True`. Here `True` means may attend, and what may be attended
    to keeps its score. `masked_fill` fills where its mask is `True`: a `~` is missing."""
    return torch.zeros(mask.shape).masked_fill(mask, float("-inf"))


@to_additive.mistake
def one_and_zero(mask):
    """This is the mask as 1 and 0. Added to the scores it raises the allowed ones by 1 and hides nothing. Which number,
    added to a score, makes its weight zero?"""
    return mask.float()


@to_additive.mistake
def nan_where_allowed(mask):
    """It is NaN where attention is allowed: 0 · inf is NaN. The formula `(1 - mask) * -inf` looks right and cannot be
    computed. Choose between two numbers instead: `masked_fill` or `where`."""
    return (1 - mask.float()) * float("-inf")


@to_additive.mistake
def nan_where_hidden(mask):
    """It is NaN where attention is hidden, and infinite where it is allowed: the mask itself was multiplied by
    infinity, and 0 · inf is NaN. Choose between two numbers instead: `masked_fill` or `where`."""
    return mask.float() * float("-inf")


@to_additive.mistake
def infinity_without_its_sign(mask):
    """Hidden places get +inf: added to a score it makes that the largest of all, and the softmax gives NaN. The sign is
    lost, as in `-float("-inf")`."""
    return torch.zeros(mask.shape).masked_fill(~mask, float("inf"))


@to_additive.mistake
def minus_a_billion(mask):
    """Hidden places get -1e9 instead of -inf. The weights are zero with both, as long as something is visible. In a row
    that sees nothing the difference shows: -1e9 makes all keys equal and mixes hidden values in, without a sound. And
    in half precision -1e9 does not exist. The docstring asks for -inf."""
    return torch.zeros(mask.shape).masked_fill(~mask, -1e9)


@to_additive.mistake
def lowest_number(mask):
    """Hidden places get the lowest number of float32 instead of -inf. Many libraries do so, to avoid NaN in rows that
    see nothing; such rows then attend to everything evenly. The docstring asks for -inf."""
    return torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)


@to_additive.mistake
def ones_where_allowed(mask):
    """Hidden places get -inf, and allowed ones get 1 instead of 0. In a softmax that changes nothing, since all visible
    scores rise together; in a sum of two such masks or beside a bias it does. What is allowed must stay as it is: add
    0."""
    return mask.float().masked_fill(~mask, float("-inf"))


@to_additive.mistake
def in_double_precision(mask):
    """The numbers are right, in float64: scores in float32 added to it become float64 as well, and every later product
    with float32 raises. The docstring asks for float32."""
    return torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, float("-inf"))


@to_additive.property
def only_zero_and_minus_infinity(function, mask):
    """Every entry is 0 or -inf."""
    result = function(mask)
    return bool(((result == 0) | (result == float("-inf"))).all())


# 5. decoder_masks


def _sentences(draw, batch=3, t_len=7, s_len=5):
    return _lengths(draw, batch, t_len), _lengths(draw, batch, s_len), t_len, s_len


def both(causal, padding):
    return causal & padding


@exercise(
    inputs=_sentences,
    axes={"target_lengths": "batch", "source_lengths": "batch", "return": "batch 1 t_len t_len, batch 1 1 s_len"},
    hints=(
        "The decoder looks twice: at its own tokens and at the encoder's. Whose keys are they each time, and which of them "
        "must it not see?",
        "Among its own tokens: not the future, and no padding, both at once. At the encoder's: no padding of the *source*; "
        "there is no future there.",
        "`causal_mask(…) & padding_mask(…, …)` and `padding_mask(…, …)`",
    ),
)
def decoder_masks(
    target_lengths,
    source_lengths,
    t_len,
    s_len,
    *,
    causal=causal_mask.reference,
    target_padding=padding_mask.reference,
    together=both,
    cross=padding_mask.reference,
):
    """Return the decoder's two masks: (batch, 1, t_len, t_len) for its own tokens, (batch, 1, 1, s_len) for the
    source."""
    future = causal(t_len).to(target_lengths.device)
    return together(future, target_padding(target_lengths, t_len)), cross(source_lengths, s_len)


@decoder_masks.equivalent
def by_comparisons(target_lengths, source_lengths, t_len, s_len):
    t, s = torch.arange(t_len, device=target_lengths.device), torch.arange(s_len, device=source_lengths.device)
    own = (t[None, :] <= t[:, None]) & (t < target_lengths.view(-1, 1, 1, 1))
    return own, s < source_lengths.view(-1, 1, 1, 1)


@decoder_masks.equivalent
def by_products(target_lengths, source_lengths, t_len, s_len):
    rows = torch.stack([torch.arange(t_len) < n for n in target_lengths.cpu()]).to(target_lengths.device)
    own = torch.tril(rows[:, None, None].expand(-1, 1, t_len, t_len).float()).bool()
    keys = torch.arange(s_len, device=source_lengths.device).expand(len(source_lengths), 1, 1, s_len)
    return [own, ~(keys >= source_lengths[:, None, None, None])]


@decoder_masks.equivalent
def by_logical_and(target_lengths, source_lengths, t_len, s_len):
    causal = causal_mask.reference(t_len).to(target_lengths.device)[None, None]
    own = torch.logical_and(causal, padding_mask.reference(target_lengths, t_len))
    return own, padding_mask.reference(source_lengths, s_len)


@decoder_masks.probe
def _equally_long(draw):
    """source and target of one length"""
    return torch.tensor([4, 2]), torch.tensor([3, 4]), 4, 4


@decoder_masks.probe
def _single_tokens(draw):
    """sentences of one token"""
    return torch.tensor([1, 1]), torch.tensor([1, 1]), 1, 1


@decoder_masks.mistake(part="causal")
def no_causal_part(seq):
    """The decoder's own mask hides the padding, and not the future: in training each token can see the one that it has
    to predict. The loss falls quickly, and generation fails. Two conditions must hold at once."""
    return torch.ones(seq, seq, dtype=torch.bool)


@decoder_masks.mistake(part="causal")
def causal_inverted(seq):
    """The causal part is inverted: the decoder sees the future and not the past. `True` means may attend."""
    return inverted(seq)


@decoder_masks.mistake(part="causal")
def itself_hidden(seq):
    """The causal part hides the diagonal: no token of the decoder sees itself, and the first sees nothing. It may look
    at itself, because what it must predict is the token after it."""
    return diagonal_hidden(seq)


@decoder_masks.mistake(part="target_padding")
def no_target_padding(lengths, k_len):
    """The decoder's own mask is causal, and the padding of the target is missing in it. With padding at the end only
    padded queries could see it, so the loss may not notice; with padding anywhere else it leaks. Both conditions are
    asked for."""
    return torch.ones(len(lengths), 1, 1, k_len, dtype=torch.bool)


@decoder_masks.mistake(part="together")
def one_or_the_other(causal, padding):
    """The two conditions are joined with *or*: a key is visible if it is in the past *or* is no padding. So the future
    of the sentence shows, and padding as well. A key must pass both: *and*."""
    return causal | padding


@decoder_masks.mistake(part="target_padding")
def target_padding_inverted(lengths, k_len):
    """The padding of the target is inverted in the decoder's own mask: only padding is visible there, and that mostly
    lies in the future, so that rows see nothing. `True` means may attend."""
    return padding_true(lengths, k_len)


@decoder_masks.mistake(part="cross")
def source_padding_inverted(lengths, k_len):
    """The mask for the source is inverted: the decoder looks at the padding of the source and at none of its words.
    `True` means may attend."""
    return padding_true(lengths, k_len)


@decoder_masks.mistake
def the_targets_for_both(target_lengths, source_lengths, t_len, s_len):
    """The mask for cross-attention was made from the target's lengths. Its keys are the encoder's: how many of them are
    real is said by the source. Where both sides have one length nothing complains, and words of the source are cut
    off."""
    own, _ = decoder_masks.reference(target_lengths, source_lengths, t_len, s_len)
    return own, padding_mask.reference(target_lengths, s_len)


@decoder_masks.mistake
def cross_of_the_targets_size(target_lengths, source_lengths, t_len, s_len):
    """The mask for cross-attention is that of the target's own keys, (batch, 1, 1, t_len). In cross-attention queries
    come from the target and keys from the source: its last axis is s_len, and the source's lengths fill it."""
    own, _ = decoder_masks.reference(target_lengths, source_lengths, t_len, s_len)
    return own, padding_mask.reference(target_lengths, t_len)


@decoder_masks.mistake
def causal_towards_the_source(target_lengths, source_lengths, t_len, s_len):
    """The mask for cross-attention is causal as well: target token 0 may see only word 0 of the source. The whole
    source is known before the first word is written; the decoder may read all of it. Only its padding is hidden."""
    own, cross = decoder_masks.reference(target_lengths, source_lengths, t_len, s_len)
    return own, cross & torch.ones(t_len, s_len, dtype=torch.bool).tril()


@decoder_masks.mistake
def exchanged(target_lengths, source_lengths, t_len, s_len):
    """The two masks are in the wrong order: first the one for the decoder's own tokens, then the one for the source."""
    own, cross = decoder_masks.reference(target_lengths, source_lengths, t_len, s_len)
    return cross, own


@decoder_masks.mistake
def source_and_target_exchanged(target_lengths, source_lengths, t_len, s_len):
    """Source and target have changed roles: your first mask is causal over the source. The decoder writes the target,
    so that is where the future must be hidden."""
    return decoder_masks.reference(source_lengths, target_lengths, s_len, t_len)


@decoder_masks.mistake
def padded_queries_too(target_lengths, source_lengths, t_len, s_len):
    """In the decoder's own mask padded queries are hidden as well: their rows are all `False`, which is where NaN comes
    from. Hide keys only. What a padded query finds, nobody reads."""
    own, cross = decoder_masks.reference(target_lengths, source_lengths, t_len, s_len)
    return own & padding_mask.reference(target_lengths, t_len).mT, cross


@decoder_masks.property
def nobody_sees_the_future(function, *arguments):
    """No target token may see a later one."""
    own, _ = function(*arguments)
    return not bool(own.float().triu(1).any())


@decoder_masks.property
def all_of_the_source(function, target_lengths, source_lengths, *lengths):
    """Every word of the source may be seen, by every target token."""
    _, cross = function(target_lengths, source_lengths, *lengths)
    return torch.equal(cross.reshape(len(source_lengths), -1).sum(-1), source_lengths)


# 6. Find the mistake: one vector for a sentence


def _vectors(draw, batch=3, seq=7, d_model=5):
    return draw(batch, seq, d_model), _lengths(draw, batch, seq)


def real_tokens(x, lengths):
    return x * (torch.arange(x.shape[1], device=x.device) < lengths[:, None])[..., None]


def by_the_length(total, lengths, seq):
    return total / lengths[:, None]


@exercise(
    inputs=_vectors,
    axes={"x": "batch seq d_model", "lengths": "batch", "return": "batch d_model"},
    hints=(
        "Give the program the same sentence with more padding. Which of its two steps lets the padding in?",
        "The padding is set to zero before the average, so the sum is right. How many numbers does an average divide by?",
        "`(x * …).sum(dim=…) / lengths[:, …]`",
    ),
)
def mend_sentence_vectors(x, lengths, *, kept=real_tokens, divided=by_the_length):
    """Return the average of each sentence's real tokens: (batch, seq, d_model) to (batch, d_model)."""
    return divided(kept(x, lengths).sum(dim=1), lengths, x.shape[1])


@mend_sentence_vectors.equivalent
def sentence_by_sentence(x, lengths):
    return torch.stack([tokens[:length].mean(dim=0) for tokens, length in zip(x, lengths.tolist())])


@mend_sentence_vectors.equivalent
def as_attention(x, lengths):
    mask = padding_mask.reference(lengths, x.shape[1])[:, :, 0]
    zeros = x.new_zeros(len(x), 1, x.shape[1])
    return (zeros.masked_fill(~mask, float("-inf")).softmax(-1) @ x).squeeze(1)


@mend_sentence_vectors.equivalent
def by_nanmean(x, lengths):
    hidden = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]
    return x.masked_fill(hidden[..., None], float("nan")).nanmean(dim=1)


@mend_sentence_vectors.equivalent
def fused_attention(x, lengths):
    query = torch.zeros_like(x[:, :1])
    mask = padding_mask.reference(lengths, x.shape[1])[:, 0]
    return scaled_dot_product_attention(query, x, x, attn_mask=mask).flatten(1)


@mend_sentence_vectors.probe
def _no_padding(draw):
    """sentences without padding"""
    return draw(2, 4, 5), torch.tensor([4, 4])


@mend_sentence_vectors.probe
def _single(draw):
    """sentences of one token"""
    return draw(2, 4, 5), torch.tensor([1, 1])


@mend_sentence_vectors.mistake(part="divided")
def as_given(total, lengths, seq):
    """This does what the given program does: the padding adds nothing to the sum, and is counted all the same. A
    sentence of 2 tokens in 4 places gets half of its average. Fill it up further, and the vector shrinks further."""
    return total / seq


@mend_sentence_vectors.mistake(part="kept")
def padding_counts(x, lengths):
    """The sum still runs over the padding. What stands there is whatever the layers before made of it, and it ends up
    in the sentence's vector. Only the first `lengths[b]` tokens belong to sentence b."""
    return x


@mend_sentence_vectors.mistake(part="divided")
def not_divided(total, lengths, seq):
    """The tokens are added up and not divided: longer sentences get longer vectors. An average divides by how many
    there are."""
    return total


@mend_sentence_vectors.mistake(part="divided")
def by_the_longest(total, lengths, seq):
    """Every sentence is divided by the longest one's length: right for that one, and too small for the others,
    depending on who else is in the batch. Each sentence has a length of its own."""
    return total / lengths.max()


@mend_sentence_vectors.mistake(part="divided")
def by_all_tokens(total, lengths, seq):
    """Every sentence is divided by the number of tokens in the whole batch. Each has a length of its own: the sum over
    one sentence belongs to that one alone."""
    return total / lengths.sum()


@mend_sentence_vectors.mistake(part="kept")
def one_token_too_many(x, lengths):
    """One token of the padding is still in the sum: position `lengths[b]` is the first that is not real. Positions are
    counted from 0; look at the comparison."""
    return real_tokens(x, lengths + 1)


@mend_sentence_vectors.mistake(part="kept")
def the_padding_only(x, lengths):
    """The mask is the wrong way round: the sum runs over the padding, and the real tokens are left out."""
    return x - real_tokens(x, lengths)


@mend_sentence_vectors.mistake
def the_last_token(x, lengths):
    """You return the last real token of each sentence. That is one way to get a vector for a sentence, and not what is
    asked for: the average of all its real tokens."""
    return x[torch.arange(len(x)), lengths - 1]


@mend_sentence_vectors.mistake
def plain_mean(x, lengths):
    """This is the plain mean over all places, padding included: what stands in the padding goes in, and is counted.
    Only the first `lengths[b]` tokens belong to sentence b."""
    return x.mean(dim=1)


@mend_sentence_vectors.property
def more_padding_changes_nothing(function, x, lengths):
    """Fill the sentences up further, with whatever numbers, and the vectors stay."""
    longer = torch.cat([x, x + 1], dim=1)
    return torch.allclose(function(longer, lengths), function(x, lengths), atol=1e-5)
