"""The padding mask: which keys of each sentence are real."""

import torch
from torch.nn.functional import pad

from ..exercise import exercise


def some_lengths(draw, batch, longest):
    return torch.randint(1, longest + 1, (batch,), generator=draw.generator)


def _padded(draw, batch=3, k_len=7):
    return some_lengths(draw, batch, k_len), k_len


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


padding_mask.example("a full sentence and an empty one", torch.tensor([4, 0]), 4)
padding_mask.example("a batch of one", torch.tensor([2]), 5)
padding_mask.example("one key", torch.tensor([1, 1]), 1)
padding_mask.example("sentences that are all shorter than the table", torch.tensor([2, 3, 1]), 6)
padding_mask.example("as many sentences as keys", torch.tensor([1, 3, 2]), 3)


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
