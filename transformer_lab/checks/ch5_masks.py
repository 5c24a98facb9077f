"""Chapter 5: masks for the causal order and for padding, attention under them, and where the decoder's go."""

import torch
from torch.nn.functional import pad, scaled_dot_product_attention

from .ch3_attention_lookup import (
    by_d,
    by_root_d,
    by_root_d_model,
    dot_products,
    keys_against_queries,
    keys_not_turned,
    no_scale,
    over_batch,
    over_heads,
    over_keys,
    over_queries,
    softmax_twice,
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


causal_mask.example("one token", 1)
causal_mask.example("two tokens", 2)


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
    """The triangle is right, and made of numbers, not of `True` and `False`. PyTorch's attention adds a mask of numbers
    to the scores: 1 on what may be seen, 0 on what may not, and hides nothing. Which dtype does your mask need?"""
    return torch.ones(seq, seq).tril()


@causal_mask.mistake
def whole_numbers(seq):
    """The triangle is right, and made of whole numbers instead of `True` and `False`. `~mask` of a whole number is not
    its opposite (`~1` is -2), and PyTorch refuses masks of whole numbers. Which dtype does your mask need?"""
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
    """Your mask has one axis, and every entry is `True`: as if each position had been compared with itself alone. A
    causal mask is a table: which keys are visible depends on the query, so every query needs a row of its own. Which
    axis do the queries' positions lie on, and which the keys'?"""
    return torch.ones(seq, dtype=torch.bool)


@causal_mask.mistake
def bytes_of_one_and_zero(seq):
    """The triangle is right, and made of bytes. Old programs have such masks; today PyTorch refuses them, and `~` turns
    1 into 254. Which dtype does your mask need?"""
    return torch.ones(seq, seq, dtype=torch.uint8).tril()


@causal_mask.mistake
def ones_where_hidden(seq):
    """Your mask has the number 1 where a token must not look, and 0 where it may. Some programs write it like that and
    multiply by a large negative number later. Here `True` means may attend, and `True` and `False` are asked for."""
    return torch.ones(seq, seq).triu(1)


@causal_mask.mistake
def nan_where_allowed_and_infinity(seq):
    """Your mask is made of numbers: -inf where a token must not look, and NaN where it may. That is what a table of 0
    and 1 times -inf gives, since 0 times infinity is NaN. Here `True` and `False` are asked for, and nothing has to be
    multiplied."""
    return torch.ones(seq, seq).triu(1) * float("-inf")


@causal_mask.mistake
def with_axes_for_batch_and_heads(seq):
    """The triangle is right, and has axes of size 1 in front, for the batch and the heads. It would work. But
    broadcasting adds such axes by itself, so they are not needed. The docstring asks for (seq, seq)."""
    return torch.ones(1, 1, seq, seq, dtype=torch.bool).tril()


@causal_mask.mistake
def with_one_axis_in_front(seq):
    """The triangle is right, and has one axis of size 1 in front. It would work, because broadcasting adds such axes by
    itself, so it is not needed. The docstring asks for (seq, seq)."""
    return torch.ones(1, seq, seq, dtype=torch.bool).tril()


@causal_mask.mistake
def from_the_end(seq):
    """Your triangle lies in the lower right corner: token 0 sees only the last key, token 1 the last two. The rows grow
    as they should, from the wrong side: the first key is the one that every token may see."""
    return torch.ones(seq, seq, dtype=torch.bool).tril().flip(1)


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
    axes={"lengths": "batch", "return": "batch heads q_len k_len"},
    hints=(
        "A sentence of 2 tokens, filled up to 4: which of the keys 0, 1, 2, 3 may be looked at, and by which queries?",
        "Compare the positions 0, 1, … with the lengths. Broadcasting makes the table, if each has its axis in the "
        "right place; then the axes of `heads` and `q_len`, of size 1, go in between.",
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
def _one_key(draw):
    """one key"""
    return torch.tensor([1, 1]), 1


@padding_mask.probe
def _all_shorter(draw):
    """sentences that are all shorter than the table"""
    return torch.tensor([2, 3, 1]), 6


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
    from the right: `batch` would meet `q_len`, which raises, or masks the wrong thing where the two are equal. Which
    two axes of the scores does your mask lack?"""
    return torch.arange(k_len) < lengths[:, None]


@padding_mask.mistake
def one_axis_missing(lengths, k_len):
    """The numbers are right, and the shape is (batch, 1, k_len). Against scores (batch, heads, q_len, k_len) `batch`
    then meets `heads`: with as many sentences as heads nothing complains, and every head gets another sentence's mask.
    One axis of the scores has none in your mask yet."""
    return (torch.arange(k_len) < lengths[:, None])[:, None, :]


@padding_mask.mistake
def on_the_queries(lengths, k_len):
    """The mask lies on the queries' axis: its shape is (batch, 1, k_len, 1). A padded query is harmless, nobody reads
    its output; a padded key must not be looked at. Keys are the last axis."""
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
    programs do for generation. Here the real tokens come first."""
    return (torch.arange(k_len) >= k_len - lengths[:, None])[:, None, None, :]


@padding_mask.mistake
def numbers(lengths, k_len):
    """The mask is made of the numbers 1 and 0. PyTorch's attention adds a mask of numbers to the scores, and hides
    nothing with it; `True` and `False` are asked for. A comparison gives them, and needs no conversion."""
    return padding_mask.reference(lengths, k_len).float()


@padding_mask.mistake
def batch_and_keys_exchanged(lengths, k_len):
    """The axes of batch and keys have changed places: in the comparison the lengths stand where the positions should.
    Each row must belong to one sentence and have k_len entries."""
    return (torch.arange(k_len)[:, None] < lengths)[:, None, None, :]


@padding_mask.mistake
def one_key_too_few(lengths, k_len):
    """One key too few is visible: the last real token of every sentence is hidden. With a length of 2 the positions 0
    and 1 are real. Positions are counted from 0: which is the last one below the length?"""
    return (torch.arange(k_len) < lengths[:, None] - 1)[:, None, None, :]


@padding_mask.mistake
def lengths_without_an_axis(lengths, k_len):
    """The positions, (k_len,), are compared with the lengths, (batch,), and the two axes meet: mostly that raises. With
    as many sentences as keys it runs, and compares key 0 with sentence 0 only, key 1 with sentence 1 only, and so on.
    Every sentence must meet every key, in a table. What must the lengths get first?"""
    return (torch.arange(k_len) < lengths)[:, None, None, None]


@padding_mask.mistake
def batch_on_the_queries_axis(lengths, k_len):
    """The numbers are right, and both new axes stand in front: (1, 1, batch, k_len). Against scores (batch, heads,
    q_len, k_len) the sentences then meet the queries. The sentences' axis is the first one; the new ones go between."""
    return (torch.arange(k_len) < lengths[:, None])[None, None]


@padding_mask.mistake
def keys_on_the_heads_axis(lengths, k_len):
    """The numbers are right, and both new axes stand at the end: (batch, k_len, 1, 1). Against scores (batch, heads,
    q_len, k_len) the keys then meet the heads. The keys' axis is the last one; the new ones go between."""
    return (torch.arange(k_len) < lengths[:, None])[..., None, None]


@padding_mask.mistake
def one_length_for_all(lengths, k_len):
    """Every sentence is masked as if it were as long as the longest. In the longest the mask is right, and in all
    others it lets padding through. Each row must be compared with a length of its own."""
    return (torch.arange(k_len) < lengths.max()).expand(len(lengths), 1, 1, k_len)


@padding_mask.mistake
def padding_additive(lengths, k_len):
    """This is the mask to add to scores: 0 on the real tokens, -inf on the padding. Here a mask of `True` and `False`
    is asked for; turning it into the other kind is an exercise of its own, `to_additive`."""
    return torch.zeros(len(lengths), 1, 1, k_len).masked_fill(~padding_mask.reference(lengths, k_len), float("-inf"))


@padding_mask.mistake
def padding_in_whole_numbers(lengths, k_len):
    """The mask is made of the whole numbers 1 and 0. `~` of a whole number is not its opposite (`~1` is -2), and
    PyTorch refuses such masks. A comparison gives `True` and `False`, and needs no conversion."""
    return padding_mask.reference(lengths, k_len).long()


@padding_mask.property
def as_many_as_the_length(function, lengths, k_len):
    """In every sentence as many keys are `True` as it has tokens."""
    return torch.equal(function(lengths, k_len).reshape(len(lengths), -1).sum(-1), lengths)


# 3. masked_attention


def _some(draw, *shape):
    """A mask in which every row has a True and a False, where there is room for both; so has every column, then."""
    mask, rows = draw(*shape) > 0, torch.arange(shape[-2])
    mask[..., rows, (rows + 1) % shape[-1]] = False
    mask[..., rows, rows % shape[-1]] = True
    return mask


def _masked(draw, batch=2, heads=3, q_len=7, k_len=6, d_head=5, d_value=4):
    query, key = draw(batch, heads, q_len, d_head), draw(batch, heads, k_len, d_head)
    return query, key, draw(batch, heads, k_len, d_value), _some(draw, batch, heads, q_len, k_len)


def with_a_large_negative_number(scores, mask):
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)


def zeros_for_empty_rows(weights, mask):
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0)


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
        "Which score gets the weight zero? And what does the softmax make of a row in which every score is like that? "
        "`mask.any(dim=-1, keepdim=True)` says of each row whether it sees anything, and `masked_fill` can set the "
        "weights of the rows that do not.",
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
    """Attend to the keys that ``mask`` allows: (batch, heads, q_len, d_value), zeros where a query may see nothing."""
    table = masked(scale(scores(query, key), query.shape[-1]), mask)
    return output(empty_rows(weights(table), mask), value)


def _scores(query, key):
    return query @ key.mT / query.shape[-1] ** 0.5


@masked_attention.equivalent
def with_infinity_except_in_empty_rows(query, key, value, mask):
    rows = mask.any(-1, keepdim=True)
    scores = _scores(query, key).masked_fill(~mask & rows, float("-inf"))
    return torch.where(rows, scores.softmax(-1), 0) @ value


@masked_attention.equivalent
def with_infinity_and_nan_to_num(query, key, value, mask):
    weights = _scores(query, key).masked_fill(mask == 0, float("-inf")).softmax(-1)
    return torch.nan_to_num(weights) @ value


@masked_attention.equivalent
def with_minus_a_billion(query, key, value, mask):
    scores = torch.einsum("bhqd,bhkd->bhqk", query / query.shape[-1] ** 0.5, key)
    scores = torch.where(mask, scores, torch.tensor(-1e9, dtype=scores.dtype))
    return torch.einsum("bhqk,bhkv->bhqv", scores.softmax(-1) * mask, value)


@masked_attention.equivalent
def added_to_the_scores(query, key, value, mask):
    bias = torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, -1e5)
    weights = (query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5 + bias).softmax(-1)
    return (weights * mask) @ value


@masked_attention.equivalent
def renormalized(query, key, value, mask):
    scores = _scores(query, key).masked_fill(~mask, torch.finfo(query.dtype).min)
    shares = (scores - scores.amax(-1, keepdim=True)).exp() * mask
    return (shares / shares.sum(-1, keepdim=True).clamp(min=1e-30)) @ value


@masked_attention.equivalent
def zeros_in_the_output(query, key, value, mask):
    output = _scores(query, key).masked_fill(mask.logical_not(), -1e20).softmax(dim=3).matmul(value)
    return output * mask.any(-1)[..., None]


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
def _same_for_all(draw):
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
def _one_for_each_head(draw):
    """a mask (heads, q_len, k_len)"""
    query, key, value, mask = _masked(draw)
    return query, key, value, mask[0]


masked_attention.example("as many queries as keys", q_len=6, plain=True)
masked_attention.example("one query of one sentence", batch=1, heads=1, q_len=1)


@masked_attention.probe
def _nothing_hidden(draw):
    """a mask that hides nothing"""
    query, key, value, mask = _masked(draw)
    return query, key, value, torch.ones_like(mask)


@masked_attention.probe
def _empty(draw):
    """queries that may see nothing"""
    query, key, value, mask = _masked(draw)
    mask[:, :, ::3] = False
    return query, key, value, mask


@masked_attention.probe
def _thousands(draw):
    """scores in the thousands"""
    query, key, value, mask = _masked(draw)
    scores = _scores(query, key)
    mask[:, 0] = (scores <= scores.kthvalue(2, keepdim=True).values)[:, 0]  # in one head, the two lowest scores only
    return 30 * query, 30 * key, value, mask


masked_attention.mistake(part="scores")(keys_against_queries)
masked_attention.mistake(part="scores")(keys_not_turned)
masked_attention.mistake(part="scale")(no_scale)
masked_attention.mistake(part="scale")(by_d)
masked_attention.mistake(part="scale")(by_root_d_model)
masked_attention.mistake(part="weights")(over_queries)
masked_attention.mistake(part="weights")(over_heads)
masked_attention.mistake(part="weights")(over_batch)
masked_attention.mistake(part="weights")(softmax_twice)


@masked_attention.mistake(part="masked")
def mask_inverted(scores, mask):
    """The mask is used the wrong way round: the keys that may be seen are hidden, and the hidden ones are seen. `True`
    means may attend here. `masked_fill` fills where its own mask is `True`, and so it needs the opposite one."""
    return scores.masked_fill(mask, torch.finfo(scores.dtype).min)


@masked_attention.mistake(part="masked")
def score_of_zero(scores, mask):
    """Hidden keys get the score 0, or a number next to it such as 1e-9. Zero is a score like any other: its exponential
    is 1, often more than that of a key which may be seen. That comes of multiplying scores by the mask, or of a minus
    sign that slipped into the exponent, 1e-9 for -1e9. Which score has the exponential 0?"""
    return scores * mask


@masked_attention.mistake(part="masked")
def mask_added(scores, mask):
    """The mask is added to the scores as the numbers 1 and 0: visible keys gain a factor of e, and nothing is hidden.
    What is added must leave the score of a visible key as it is, and push a hidden one down without end."""
    return scores + mask


@masked_attention.mistake(part="masked")
def a_small_negative_number(scores, mask):
    """Hidden keys get the score -1, and that is a score like any other: its exponential is 0.37, far from zero. The
    score of a hidden key must be so low that its exponential is zero beside any other."""
    return scores.masked_fill(~mask, -1.0)


@masked_attention.mistake(part="masked")
def plus_a_billion(scores, mask):
    """Hidden keys get a very large score, and a minus sign is missing: they share all the weight among themselves, and
    the keys that may be seen get none. Look at the number that you fill in."""
    return scores.masked_fill(~mask, 1e9)


@masked_attention.mistake(part="masked")
def mask_turned(scores, mask):
    """The mask is transposed: its rows are taken for keys. With as many queries as keys nothing complains, and a causal
    mask then shows each token the future. Rows are queries and columns are keys, in the mask as in the scores."""
    return scores.masked_fill(~mask.mT, torch.finfo(scores.dtype).min)


@masked_attention.mistake(part="masked")
def one_axis_too_many(scores, mask):
    """The mask gets an axis of its own for the heads, with `unsqueeze(1)` or `None`, and has one already: with five
    axes it makes a result of five. The axes that a mask lacks are on its left, and broadcasting adds those by
    itself."""
    return scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min)


@masked_attention.mistake
def mask_inverted_with_infinity(query, key, value, mask):
    """The mask is used the wrong way round: the keys that may be seen are hidden, and the hidden ones are seen. A query
    that may see every key therefore gets NaN, the softmax of nothing. `True` means may attend here. `masked_fill` fills
    where its own mask is `True`, and so it needs the opposite one."""
    return over_keys(_scores(query, key).masked_fill(mask, float("-inf"))) @ value


@masked_attention.mistake
def mask_inverted_with_zeros(query, key, value, mask):
    """The mask is used the wrong way round: the keys that may be seen are hidden, and the hidden ones are seen. A query
    that may see every key therefore gets zeros, as if it might see nothing. `True` means may attend here, and
    `masked_fill` fills where its own mask is `True`: is the one that you give it the one that you mean?"""
    return masked_attention.reference(query, key, value, ~mask)


@masked_attention.mistake
def mask_without_effect(query, key, value, mask):
    """The mask has no effect: every query attends to every key. Is its result used? `masked_fill` returns a new tensor
    and leaves the old one as it was; the one with an underscore at its end changes it."""
    return over_keys(_scores(query, key)) @ value


@masked_attention.mistake
def plus_infinity(query, key, value, mask):
    """Every query with a hidden key gets NaN: the hidden score is +inf, and the softmax divides inf by inf. The sign is
    lost, or there twice, as in `-float("-inf")`. A hidden key needs the lowest score there is, not the highest."""
    return over_keys(_scores(query, key).masked_fill(~mask, float("inf"))) @ value


@masked_attention.mistake
def zero_times_infinity(query, key, value, mask):
    """Everything is NaN, also where nothing is hidden: 0 times infinity is NaN. A mask of 0 and 1 times -inf spoils the
    very places that should stay as they are. Choose between two numbers instead of multiplying: `masked_fill` or
    `where`."""
    return over_keys(_scores(query, key) + (~mask) * float("-inf")) @ value


@masked_attention.mistake
def heads_share_with_infinity(query, key, value, mask):
    """The softmax runs over axis 1, which counts the heads: for each query and key the weights of all heads sum to one.
    Where a key is hidden in every head it divides 0 by 0, and that is the NaN. Over which axis must the weights sum to
    one?"""
    return _scores(query, key).masked_fill(~mask, float("-inf")).softmax(1) @ value


@masked_attention.mistake
def queries_share_with_infinity(query, key, value, mask):
    """The softmax runs over the queries: every column of the weights sums to one, instead of every row. A column in
    which all is hidden becomes NaN on top of that, and it spreads. In a table (…, q_len, k_len), which axis counts the
    keys?"""
    return _scores(query, key).masked_fill(~mask, float("-inf")).softmax(-2) @ value


@masked_attention.mistake
def sentences_share_with_infinity(query, key, value, mask):
    """The softmax runs over axis 0, which counts the sentences of the batch: they compete for weight although they have
    nothing to do with one another. Where a key is hidden in all of them it divides 0 by 0, and that is the NaN. Over
    which axis must the weights sum to one?"""
    return _scores(query, key).masked_fill(~mask, float("-inf")).softmax(0) @ value


@masked_attention.mistake
def after_the_softmax(query, key, value, mask):
    """The mask comes after the softmax: hidden keys have the weight 0, and their share of the whole is missing. The
    weights of a query no longer sum to one, and a hidden key with a high score makes the query's output small. Where
    must the mask come, so that the hidden keys are never counted?"""
    return (over_keys(_scores(query, key)) * mask) @ value


@masked_attention.mistake
def infinity_after_the_softmax(query, key, value, mask):
    """The weights of hidden keys are -inf, and so the output is infinite or NaN. The fill is meant for scores: the
    softmax turns a score of -inf into the weight 0. Here it comes after the softmax, and nothing turns it into
    anything."""
    return over_keys(_scores(query, key)).masked_fill(~mask, float("-inf")) @ value


@masked_attention.mistake
def a_billion_after_the_softmax(query, key, value, mask):
    """The weights of hidden keys are -1e9, and so the output is a number of billions. The fill is meant for scores: the
    softmax turns such a score into the weight 0. Here it comes after the softmax, and nothing turns it into
    anything."""
    return over_keys(_scores(query, key)).masked_fill(~mask, -1e9) @ value


@masked_attention.mistake
def divided_again(query, key, value, mask):
    """You mask after the softmax and divide the weights by their sum. On paper that is right. But when a hidden score
    lies 110 and more above the visible ones, all their weights have become 0 in the softmax already, and 0/0 is NaN.
    Where must the mask come, so that the hidden keys are never counted?"""
    weights = over_keys(_scores(query, key)) * mask
    return torch.where(mask.any(-1, keepdim=True), weights / weights.sum(-1, keepdim=True), 0) @ value


@masked_attention.mistake
def divided_again_with_care(query, key, value, mask):
    """You mask after the softmax and divide the weights by their sum, guarded against 0. On paper that is right. But
    when a hidden score lies 110 and more above the visible ones, all their weights have become 0 in the softmax
    already, and the query gets nothing. Where must the mask come, so that the hidden keys are never counted?"""
    weights = over_keys(_scores(query, key)) * mask
    return (weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)) @ value


@masked_attention.mistake
def overflow(query, key, value, mask):
    """Nothing keeps `exp` from overflowing. In float32, e to the 89 is infinite already, and infinity divided by
    infinity is NaN. A softmax sees differences only: `torch.softmax` subtracts the largest score of each row first."""
    shares = _scores(query, key).exp() * mask
    return (shares / shares.sum(-1, keepdim=True).clamp(min=1e-30)) @ value


@masked_attention.mistake
def mask_as_an_index(query, key, value, mask):
    """The mask is used as an index, `scores[…] = …`. An index must have the scores' own shape: unlike in `masked_fill`
    and `where`, its axes of size 1 are not stretched and missing ones are not added. So it works with a mask (batch,
    heads, q_len, k_len), and raises with a causal or a padding mask."""
    scores = _scores(query, key)
    scores[~mask] = torch.finfo(scores.dtype).min
    return zeros_for_empty_rows(over_keys(scores), mask) @ value


@masked_attention.mistake
def three_axes_for_the_batch(query, key, value, mask):
    """A mask of three axes is taken for (batch, q_len, k_len) and gets an axis for the heads. Many programs agree on
    that; broadcasting does not. It aligns from the right, so that the first of three axes counts the heads. Masks for
    the sentences come with four."""
    return masked_attention.reference(query, key, value, mask[:, None] if mask.ndim == 3 else mask)


@masked_attention.mistake(part="empty_rows")
def nan_for_empty_rows(weights, mask):
    """A query that may see nothing gets NaN. With -inf in all its scores, the softmax divides 0 by 0. One such row is
    enough to spoil every weight of a model in the next step of training. What must its output be?"""
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), float("nan"))


@masked_attention.mistake(part="empty_rows")
def empty_rows_kept(weights, mask):
    """A query that may see nothing gets an output all the same. When all its scores are one large negative number, the
    softmax makes them even, and the output is the average of the very values that were to be hidden. No NaN and no
    error. The docstring says what such a query must get."""
    return weights


@masked_attention.mistake
def weights_without_values(query, key, value, mask):
    """You return the weights themselves: (…, q_len, k_len), one number for each key. They say how much to take of each
    value. One step is missing, the taking."""
    return masked_attention.reference(query, key, torch.eye(key.shape[-2], dtype=key.dtype, device=key.device), mask)


@masked_attention.property
def hidden_values_change_nothing(function, query, key, value, mask):
    """Change what a query must not see, and its output stays."""
    seen = mask.expand(*query.shape[:-1], key.shape[-2])[:, :, :1]
    before = function(query, key, value, mask)
    after = function(query, key, torch.where(seen.mT, value, value + 10), mask)
    return torch.allclose(before[:, :, 0], after[:, :, 0], atol=1e-4)


@masked_attention.property
def masked_weights_sum_to_one(function, query, key, value, mask):
    """Values that are all 1 give 1, where anything may be seen: the weights of a query sum to one."""
    result = function(query, key, torch.ones_like(value), mask)
    sees = mask.any(-1, keepdim=True).expand_as(result)
    return torch.allclose(result[sees], torch.ones_like(result[sees]), atol=1e-4)


# 4. to_additive


def _allowed(draw, q_len=5, k_len=4):
    return (draw(q_len, k_len) > 0,)


@exercise(
    inputs=_allowed,
    axes={"mask": "q_len k_len", "return": "q_len k_len"},
    hints=(
        "What must be added to a score so that it stays as it is, and what so that its weight becomes zero?",
        "Begin with zeros of the mask's shape, in float32, and fill in -inf where the mask is `False`. Multiplying by "
        "infinity is a trap: 0 · inf is NaN.",
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


@to_additive.probe
def _one_axis(draw):
    """a mask with one axis"""
    return (torch.tensor([True, False, True]),)


@to_additive.mistake
def additive_inverted(mask):
    """It is the wrong way round: -inf where the mask is `True`. Here `True` means may attend, and what may be attended
    to keeps its score. `masked_fill` fills where its own mask is `True`: is that the place you want?"""
    return torch.zeros(mask.shape).masked_fill(mask, float("-inf"))


@to_additive.mistake
def one_and_zero(mask):
    """This is the mask as 1 and 0. Added to the scores it raises the allowed ones by 1 and hides nothing. Which number,
    added to a score, makes its weight zero?"""
    return mask.float()


@to_additive.mistake
def zero_and_minus_one(mask):
    """Hidden places get -1. Added to a score, that divides its exponential by 2.7, and the key is still seen. Which
    number, added to a score, makes its weight zero?"""
    return mask.float() - 1


@to_additive.mistake
def nan_where_allowed(mask):
    """It is NaN where attention is allowed: 0 times infinity is NaN. A mask of 0 and 1 times -inf looks right and
    cannot be computed. Choose between two numbers instead of multiplying: `masked_fill` or `where`."""
    return (~mask) * float("-inf")


@to_additive.mistake
def nan_where_hidden(mask):
    """It is NaN where attention is hidden, and -inf where it is allowed: the mask itself was multiplied by -inf, and 0
    times infinity is NaN. Choose between two numbers instead of multiplying: `masked_fill` or `where`."""
    return mask * float("-inf")


@to_additive.mistake
def infinity_without_its_sign(mask):
    """Hidden places get +inf: added to a score it makes that the largest of all, and the softmax gives NaN. The sign is
    lost, or there twice, as in `-float("-inf")`."""
    return torch.zeros(mask.shape).masked_fill(~mask, float("inf"))


@to_additive.mistake
def minus_a_billion(mask):
    """Hidden places get -1e9 instead of -inf. The weights are zero with both, as long as something is visible. In a row
    that sees nothing the difference shows: -1e9 makes all keys equal and mixes hidden values in, without a sound. And
    in `float16` -1e9 does not exist. The docstring asks for -inf."""
    return torch.zeros(mask.shape).masked_fill(~mask, -1e9)


@to_additive.mistake
def minus_ten_thousand(mask):
    """Hidden places get -10000 instead of -inf. Older programs do so, because `float16` ends at 65504. The weights are
    zero with both as long as something is visible and no score is that large. In a row that sees nothing all scores
    sink by the same amount, and nothing is hidden. The docstring asks for -inf."""
    return torch.zeros(mask.shape).masked_fill(~mask, -1e4)


@to_additive.mistake
def lowest_number(mask):
    """Hidden places get the lowest number of float32 instead of -inf. Many libraries do so, to avoid NaN in rows that
    see nothing; such rows then attend to everything evenly. Added to another mask like it, it overflows. The docstring
    asks for -inf."""
    return torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)


@to_additive.mistake
def ones_where_allowed(mask):
    """Hidden places get -inf, and allowed ones get 1 instead of 0: they kept the 1 that `True` becomes. In a softmax
    that changes nothing, since all visible scores rise together. But whoever turns such a mask back into bool with
    `mask == 0` then finds nothing allowed. Which number leaves a score as it is?"""
    return mask.float().masked_fill(~mask, float("-inf"))


@to_additive.mistake
def in_double_precision(mask):
    """The numbers are right, in float64: scores in float32 added to it become float64 as well, and every later product
    with float32 raises. The docstring asks for float32."""
    return torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, float("-inf"))


@to_additive.mistake
def in_half_precision(mask):
    """The numbers are right, in float16. Added to scores in float32 it would work; as `attn_mask` beside a float32
    query it is refused by PyTorch. The docstring asks for float32."""
    return torch.zeros(mask.shape, dtype=torch.float16).masked_fill(~mask, float("-inf"))


@to_additive.mistake
def bool_for_numbers(mask):
    """The result is bool, `True` where -inf should stand. You filled a tensor of `False`, and bool cannot hold -inf:
    every number but 0 becomes `True`, without an error. `zeros_like` takes the dtype of the mask as well; which other
    one must your zeros have?"""
    return torch.zeros_like(mask).masked_fill(~mask, float("-inf"))


@to_additive.mistake
def bool_filled(mask):
    """The result is bool, and `True` everywhere. You filled the mask itself, and bool cannot hold -inf: every number
    but 0 becomes `True`, without an error. Begin with a tensor of numbers."""
    return mask.masked_fill(~mask, float("-inf"))


@to_additive.mistake
def minus_on_a_bool(mask):
    """PyTorch does not subtract bools, so `1 - mask` and the like raise. The opposite of a mask is `~mask`. And if you
    turn it into numbers first, mind what comes next: 0 times infinity is NaN. Choosing between two numbers needs
    neither."""
    return (1 - mask) * float("-inf")


@to_additive.property
def only_zero_and_minus_infinity(function, mask):
    """Every entry is 0 or -inf."""
    result = function(mask)
    return bool(((result == 0) | (result == float("-inf"))).all())


@to_additive.property
def infinity_where_false(function, mask):
    """It is -inf where the mask is `False`, and nowhere else."""
    return torch.equal(function(mask) == float("-inf"), ~mask)


# 5. decoder_masks


def _sentences(draw, batch=3, t_len=7, s_len=5):
    return _lengths(draw, batch, t_len), _lengths(draw, batch, s_len), t_len, s_len


def _causal(seq, lengths):
    return causal_mask.reference(seq).to(lengths.device)


def no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len):
    return _causal(t_len, target_lengths) & padding_mask.reference(target_lengths, t_len)


def no_padding_of_the_source(target_lengths, source_lengths, t_len, s_len):
    return padding_mask.reference(source_lengths, s_len)


@exercise(
    inputs=_sentences,
    axes={
        "target_lengths": "batch",
        "source_lengths": "batch",
        "return": "batch heads t_len t_len, batch heads q_len s_len",
    },
    hints=(
        "The decoder looks twice: at its own tokens and at the encoder's. Whose keys are they each time, and which of "
        "them must it not see?",
        "Among its own tokens: not the future, and no padding, both at once. At the encoder's: no padding of the "
        "source. There is no future there.",
        "first `causal_mask(…) … padding_mask(…, …)`, then, as a second mask, `padding_mask(…, …)`",
    ),
)
def decoder_masks(
    target_lengths,
    source_lengths,
    t_len,
    s_len,
    *,
    own=no_future_and_no_padding,
    cross=no_padding_of_the_source,
):
    """Return the decoder's two masks, (batch, 1, t_len, t_len) for its own tokens, (batch, 1, 1, s_len) for the
    source."""
    arguments = target_lengths, source_lengths, t_len, s_len
    return own(*arguments), cross(*arguments)


@decoder_masks.equivalent
def by_comparisons(target_lengths, source_lengths, t_len, s_len):
    t, s = torch.arange(t_len, device=target_lengths.device), torch.arange(s_len, device=source_lengths.device)
    own = (t[None, :] <= t[:, None]) & (t < target_lengths.view(-1, 1, 1, 1))
    return own, s < source_lengths.view(-1, 1, 1, 1)


@decoder_masks.equivalent
def by_triangles(target_lengths, source_lengths, t_len, s_len):
    rows = torch.stack([torch.arange(t_len) < n for n in target_lengths.cpu()]).to(target_lengths.device)
    own = torch.tril(rows[:, None, None].expand(-1, 1, t_len, t_len).float()).bool()
    keys = torch.arange(s_len, device=source_lengths.device).expand(len(source_lengths), 1, 1, s_len)
    return [own, ~(keys >= source_lengths[:, None, None, None])]


@decoder_masks.equivalent
def by_product(target_lengths, source_lengths, t_len, s_len):
    own = _causal(t_len, target_lengths)[None, None] * padding_mask.reference(target_lengths, t_len)
    return own, padding_mask.reference(source_lengths, s_len)


@decoder_masks.equivalent
def by_what_is_hidden(target_lengths, source_lengths, t_len, s_len):
    future = ~_causal(t_len, target_lengths)
    own = torch.logical_or(future, ~padding_mask.reference(target_lengths, t_len)).logical_not()
    return own, padding_mask.reference(source_lengths, s_len)


@decoder_masks.probe(plain=True)
def _equally_long(draw):
    """source and target of one length"""
    return torch.tensor([4, 2]), torch.tensor([3, 4]), 4, 4


@decoder_masks.probe
def _one_sentence_pair(draw):
    """a batch of one"""
    return torch.tensor([3]), torch.tensor([2]), 4, 3


@decoder_masks.probe
def _without_padding(draw):
    """sentences without padding"""
    return torch.tensor([4, 4]), torch.tensor([3, 3]), 4, 3


@decoder_masks.probe
def _single_tokens(draw):
    """sentences of one token"""
    return torch.tensor([1, 1]), torch.tensor([1, 1]), 1, 1


@decoder_masks.mistake(part="own")
def no_causal_part(target_lengths, source_lengths, t_len, s_len):
    """The decoder's own mask hides the padding, and not the future: in training each token can see the one that it has
    to predict. The loss falls quickly, and generation fails. Two conditions must hold at once."""
    return padding_mask.reference(target_lengths, t_len)


@decoder_masks.mistake(part="own")
def no_causal_part_in_full(target_lengths, source_lengths, t_len, s_len):
    """The decoder's own mask has its full size, hides the padding, and does not hide the future: in training each token
    can see the one that it has to predict. The loss falls quickly, and generation fails. Two conditions must hold at
    once."""
    return padding_mask.reference(target_lengths, t_len).expand(-1, 1, t_len, -1)


@decoder_masks.mistake(part="own")
def no_target_padding(target_lengths, source_lengths, t_len, s_len):
    """The decoder's own mask is causal, and the padding of the target is missing in it. With padding at the end only
    padded queries could see it, so the loss may not notice; with padding anywhere else it leaks. Both conditions are
    asked for, and with the padding every sentence has a table of its own."""
    return causal_mask.reference(t_len)


@decoder_masks.mistake(part="own")
def no_target_padding_in_full(target_lengths, source_lengths, t_len, s_len):
    """The decoder's own mask has its full size and is causal, and the padding of the target is not hidden in it. With
    padding at the end only padded queries could see it, so the loss may not notice; with padding anywhere else it
    leaks. Both conditions are asked for."""
    return causal_mask.reference(t_len).expand(len(target_lengths), 1, t_len, t_len)


@decoder_masks.mistake(part="own")
def one_or_the_other(target_lengths, source_lengths, t_len, s_len):
    """In the decoder's own mask a key is visible if it is in the past or is no padding: one of the two is enough, as
    with `|` or `+`. So the future of the sentence shows, and for late queries padding as well. A key must pass both."""
    return causal_mask.reference(t_len) | padding_mask.reference(target_lengths, t_len)


@decoder_masks.mistake(part="own")
def the_word_and(target_lengths, source_lengths, t_len, s_len):
    """Python's words `and`, `or`, `not` and `if` want one `True` or `False`, and ask the whole tensor for it: "Boolean
    value of Tensor with more than one value is ambiguous". Which signs work on bool tensors entry by entry?"""
    return causal_mask.reference(t_len) and padding_mask.reference(target_lengths, t_len)


@decoder_masks.mistake(part="own")
def causal_inverted(target_lengths, source_lengths, t_len, s_len):
    """The causal part of the decoder's own mask is inverted: it sees the future and not the past. `True` means may
    attend."""
    return ~causal_mask.reference(t_len) & padding_mask.reference(target_lengths, t_len)


@decoder_masks.mistake(part="own")
def causal_turned(target_lengths, source_lengths, t_len, s_len):
    """The causal part of the decoder's own mask is the other triangle: each token sees itself and what comes after it.
    Rows are queries and columns are keys."""
    return causal_mask.reference(t_len).mT & padding_mask.reference(target_lengths, t_len)


@decoder_masks.mistake(part="own")
def itself_hidden(target_lengths, source_lengths, t_len, s_len):
    """The causal part of the decoder's own mask hides the diagonal: no token sees itself, and the first sees nothing.
    It may look at itself, because what it must predict is the token after it."""
    return causal_mask.reference(t_len).tril(-1) & padding_mask.reference(target_lengths, t_len)


@decoder_masks.mistake(part="own")
def own_padding_inverted(target_lengths, source_lengths, t_len, s_len):
    """The padding is inverted in the decoder's own mask: only padding is visible there, and that mostly lies in the
    future, so that rows see nothing. `True` means may attend."""
    return causal_mask.reference(t_len) & ~padding_mask.reference(target_lengths, t_len)


@decoder_masks.mistake(part="own")
def own_mask_inverted(target_lengths, source_lengths, t_len, s_len):
    """The whole of the decoder's own mask is inverted: it is `True` on the future and on the padding. PyTorch's modules
    mean it like that, where `True` is ignored. In this course `True` means may attend."""
    return ~no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len)


@decoder_masks.mistake(part="own")
def own_mask_from_the_source(target_lengths, source_lengths, t_len, s_len):
    """In the decoder's own mask the padding is taken from the lengths of the source. The keys there are the decoder's
    own tokens: which lengths count those?"""
    return causal_mask.reference(t_len) & padding_mask.reference(source_lengths, t_len)


@decoder_masks.mistake(part="own")
def padded_queries_hidden(target_lengths, source_lengths, t_len, s_len):
    """In the decoder's own mask the rows of padded queries are all `False`: they see nothing, which is where NaN comes
    from. Padding is hidden as a key, in columns. What a padded query finds, nobody reads."""
    padding = padding_mask.reference(target_lengths, t_len)
    return causal_mask.reference(t_len) & padding & padding.mT


@decoder_masks.mistake(part="own")
def no_axis_for_the_heads(target_lengths, source_lengths, t_len, s_len):
    """The numbers of the decoder's own mask are right, and the axis of the heads is missing: (batch, t_len, t_len).
    Against scores (batch, heads, t_len, t_len) the sentences then meet the heads, and with as many sentences as heads
    nothing complains."""
    return no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len)[:, 0]


@decoder_masks.mistake(part="cross")
def source_padding_inverted(target_lengths, source_lengths, t_len, s_len):
    """The mask for the source is inverted: the decoder looks at the padding of the source and at none of its words.
    `True` means may attend."""
    return ~padding_mask.reference(source_lengths, s_len)


@decoder_masks.mistake(part="cross")
def no_source_padding(target_lengths, source_lengths, t_len, s_len):
    """The mask for the source hides nothing. There is no future in the source, and there is padding: this is the mask
    that people forget, because the encoder has hidden the same padding already. The decoder does not know of that."""
    return torch.ones(len(source_lengths), 1, 1, s_len, dtype=torch.bool)


@decoder_masks.mistake(part="cross")
def cross_from_the_target(target_lengths, source_lengths, t_len, s_len):
    """The mask for cross-attention was made from the target's lengths. Its keys are the encoder's: the source's lengths
    say how many of them are real. Nothing complains, and words of the source are cut off, or its padding is read."""
    return padding_mask.reference(target_lengths, s_len)


@decoder_masks.mistake(part="cross")
def cross_is_the_targets_padding(target_lengths, source_lengths, t_len, s_len):
    """The mask for cross-attention is the padding mask of the target, (batch, 1, 1, t_len). In cross-attention the
    queries come from the target and the keys from the source. Which of the two does a padding mask belong to?"""
    return padding_mask.reference(target_lengths, t_len)


@decoder_masks.mistake(part="cross")
def cross_of_the_targets_size(target_lengths, source_lengths, t_len, s_len):
    """The mask for cross-attention has the lengths of the source and the size of the target, (batch, 1, 1, t_len). Its
    keys are the words of the source: how many places do those have?"""
    return padding_mask.reference(source_lengths, t_len)


@decoder_masks.mistake(part="cross")
def causal_towards_the_source(target_lengths, source_lengths, t_len, s_len):
    """The mask for cross-attention is causal as well: target token 0 may see only word 0 of the source. The whole
    source is known before the first word is written, so the decoder may read all of it. Only its padding is hidden."""
    return padding_mask.reference(source_lengths, s_len) & torch.ones(t_len, s_len, dtype=torch.bool).tril()


@decoder_masks.mistake(part="cross")
def causal_mask_of_the_target_for_the_source(target_lengths, source_lengths, t_len, s_len):
    """The padding of the source is joined with the causal mask of the target. One has s_len keys and the other t_len:
    it raises, and with equal lengths it hides words of the source. The whole source is known before the first word is
    written, so the decoder may read all of it."""
    return padding_mask.reference(source_lengths, s_len) & causal_mask.reference(t_len)


@decoder_masks.mistake(part="cross")
def causal_within_the_source(target_lengths, source_lengths, t_len, s_len):
    """The mask for cross-attention is causal and has the shape (batch, 1, s_len, s_len), as if the source looked at
    itself. Its queries come from the target. And the whole source is known before the first word is written: only its
    padding is hidden."""
    return padding_mask.reference(source_lengths, s_len) & causal_mask.reference(s_len)


@decoder_masks.mistake(part="cross")
def copied_for_every_target_token(target_lengths, source_lengths, t_len, s_len):
    """The numbers of the mask for the source are right, copied for every target token: (batch, 1, t_len, s_len).
    Broadcasting does that without the memory. An axis of size 1 is enough."""
    return padding_mask.reference(source_lengths, s_len).repeat(1, 1, t_len, 1)


@decoder_masks.mistake
def one_mask_for_both(target_lengths, source_lengths, t_len, s_len):
    """The second mask is the first once more. In cross-attention the queries come from the target and the keys from the
    source: there is no future to hide, and other padding."""
    own = no_future_and_no_padding(target_lengths, source_lengths, t_len, s_len)
    return own, own


@decoder_masks.mistake
def exchanged(target_lengths, source_lengths, t_len, s_len):
    """The two masks are in the wrong order. First comes the one for the decoder's own tokens, then the one for the
    source."""
    own, cross = decoder_masks.reference(target_lengths, source_lengths, t_len, s_len)
    return cross, own


@decoder_masks.mistake
def source_and_target_exchanged(target_lengths, source_lengths, t_len, s_len):
    """Source and target have changed roles: your first mask is causal over the source, and the second hides the padding
    of the target. The decoder writes the target, so that is where the future must be hidden."""
    return decoder_masks.reference(source_lengths, target_lengths, s_len, t_len)


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
        "The padding is set to zero before the average, so the sum is right. By how many numbers does an average "
        "divide?",
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
def _single_token(draw):
    """sentences of one token"""
    return draw(2, 4, 5), torch.tensor([1, 1])


@mend_sentence_vectors.probe
def _one_sentence_alone(draw):
    """a batch of one"""
    return draw(1, 6, 5), torch.tensor([4])


@mend_sentence_vectors.probe(plain=True)
def _as_many_sentences_as_features(draw):
    """as many sentences as features"""
    return draw(4, 6, 4), torch.tensor([4, 1, 6, 3])


@mend_sentence_vectors.probe
def _zeros(draw):
    """a real token whose vector is zero"""
    x = draw(3, 6, 5)
    x[0, 1] = 0
    return x, torch.tensor([4, 2, 6])


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


@mend_sentence_vectors.mistake(part="divided")
def by_the_number_of_sentences(total, lengths, seq):
    """The sums are divided by the number of sentences. What is averaged are the tokens of one sentence; how many
    sentences there are beside it must not matter. How many numbers went into each sum?"""
    return total / len(lengths)


@mend_sentence_vectors.mistake(part="divided")
def divided_twice(total, lengths, seq):
    """The sums are divided twice, by the length and by the number of places. `mean` has divided already: where it
    stands, the padding has been counted. Which function adds up and does not divide?"""
    return total / seq / lengths[:, None]


@mend_sentence_vectors.mistake(part="divided")
def by_one_more(total, lengths, seq):
    """Every sum is divided by one more than there are tokens: a sentence of one token gets half of that token. Adding 1
    keeps the divisor from being zero, and every average becomes too small."""
    return total / (lengths[:, None] + 1)


@mend_sentence_vectors.mistake(part="divided")
def lengths_on_the_features_axis(total, lengths, seq):
    """The sums, (batch, d_model), are divided by the lengths, (batch,), and broadcasting aligns from the right:
    sentences meet features. It raises, unless there are as many sentences as features, and then every feature is
    divided by another sentence's length. What must the lengths get first?"""
    return total / lengths


@mend_sentence_vectors.mistake(part="kept")
def one_token_too_many(x, lengths):
    """One token of the padding is still in the sum: position `lengths[b]` is the first that is not real. Positions are
    counted from 0; look at the comparison."""
    return real_tokens(x, lengths + 1)


@mend_sentence_vectors.mistake(part="kept")
def one_token_too_few(x, lengths):
    """The last real token of every sentence is missing in the sum. Positions are counted from 0, so that a sentence of
    2 has the positions 0 and 1. Look at the comparison."""
    return real_tokens(x, lengths - 1)


@mend_sentence_vectors.mistake(part="kept")
def the_padding_only(x, lengths):
    """The mask is the wrong way round: the sum runs over the padding, and the real tokens are left out."""
    return x - real_tokens(x, lengths)


@mend_sentence_vectors.mistake
def numbers_that_are_not_zero(x, lengths):
    """You count which tokens are zero to find the padding. A real token can be zero as well, and is then not counted:
    its sentence's vector comes out too large. How long each sentence is, you are told."""
    kept = real_tokens(x, lengths)
    return kept.sum(1) / (kept != 0).any(-1).sum(1, keepdim=True)


@mend_sentence_vectors.mistake
def cut_to_the_longest(x, lengths):
    """The batch is cut to its longest sentence, and the mean runs over what is left. The others still have padding
    there: it goes in, and is counted. Each sentence has a length of its own."""
    return x[:, : int(lengths.max())].mean(dim=1)


@mend_sentence_vectors.mistake
def the_last_token(x, lengths):
    """You return the last real token of each sentence. That is one way to get a vector for a sentence, and not what is
    asked for: the average of all its real tokens."""
    return x[torch.arange(len(x), device=x.device), lengths - 1]


@mend_sentence_vectors.mistake
def plain_mean(x, lengths):
    """This is the plain mean over all places, padding included: what stands in the padding goes in, and is counted.
    Only the first `lengths[b]` tokens belong to sentence b."""
    return x.mean(dim=1)


@mend_sentence_vectors.mistake
def mean_over_features(x, lengths):
    """The mean runs over the features: each token has become one number, (batch, seq). What must be averaged are the
    tokens of a sentence, feature by feature. Which axis counts the tokens?"""
    return x.mean(dim=-1)


@mend_sentence_vectors.property
def more_padding_changes_nothing(function, x, lengths):
    """Fill the sentences up further, with whatever numbers, and the vectors stay."""
    longer = torch.cat([x, x + 1], dim=1)
    return torch.allclose(function(longer, lengths), function(x, lengths), atol=1e-5)
