"""The padding mask: which keys of each sentence are real."""

import torch
from torch.nn.functional import pad

from ..common_mistakes import fixed_length
from ..exercise import exercise


def random_lengths(draw, batch, longest):
    return torch.randint(1, longest + 1, (batch,), generator=draw.generator)


def _lengths_and_k_len(draw, batch=3, k_len=7):
    return random_lengths(draw, batch, k_len), k_len


def below_the_length(lengths, k_len):
    """Compare each position with each length."""
    return torch.arange(k_len, device=lengths.device) < lengths[:, None]


def true_on_real_tokens(real):
    """Make the real tokens `True`."""
    return real


def keep_one_row_for_each_sentence(visible):
    """Keep a row for each sentence, and a column for each key."""
    return visible


def insert_axes_of_heads_and_queries(visible):
    """Insert the axes of the heads and the queries between sentences and keys."""
    return visible[:, None, None, :]


@exercise(
    inputs=_lengths_and_k_len,
    axes={"lengths": "batch", "return": "batch heads q_len k_len"},
    hints=(
        "A sentence of 2 tokens is padded to 4. Which of the keys 0, 1, 2, 3 may be attended to, and by which queries?",
        "Compare the positions 0, 1, … with the lengths. Broadcasting makes a table (batch, k_len) if the axis of the "
        "lengths is in the right place. Then insert axes of size 1 for `heads` and `q_len` between the two axes of "
        "the table.",
        "`torch.arange(k_len) … lengths[:, …]`, then `[:, None, None, :]`",
    ),
)
def padding_mask(
    lengths,
    k_len,
    *,
    compared=below_the_length,
    visible=true_on_real_tokens,
    rows=keep_one_row_for_each_sentence,
    placed=insert_axes_of_heads_and_queries,
):
    """Return a bool mask of shape (batch, 1, 1, k_len): the first ``lengths[b]`` keys of sentence b may be attended
    to."""
    return placed(rows(visible(compared(lengths, k_len))))


@padding_mask.right
class RightAnswers:
    def by_one_comparison(lengths, k_len):
        return torch.arange(k_len, device=lengths.device) < lengths.view(-1, 1, 1, 1)

    def by_loops(lengths, k_len):
        rows = [[key < length for key in range(k_len)] for length in lengths.tolist()]
        return torch.tensor(rows, device=lengths.device).reshape(len(lengths), 1, 1, k_len)

    def by_inverting(lengths, k_len):
        padding = torch.arange(k_len, device=lengths.device).expand(len(lengths), k_len) >= lengths.unsqueeze(1)
        return ~padding.unsqueeze(1).unsqueeze(2)

    def by_padding_ones(lengths, k_len):
        rows = [pad(torch.ones(n, dtype=torch.bool), (0, k_len - n)) for n in lengths.tolist()]
        return torch.stack(rows)[:, None, None].to(lengths.device)


padding_mask.example("a full sentence and an empty one", torch.tensor([4, 0]), 4)
padding_mask.example("a batch of one", torch.tensor([2]), 5)
padding_mask.example("one key", torch.tensor([1, 1]), 1)
padding_mask.example("sentences that are all shorter than the table", torch.tensor([2, 3, 1]), 6)
padding_mask.example("a table of 300 keys", torch.tensor([300, 170]), 300)
padding_mask.example("as many sentences as keys", torch.tensor([1, 3, 2]), 3)


@padding_mask.property
def true_keys_count_the_tokens(function, lengths, k_len):
    """Every sentence has as many `True` keys as it has tokens."""
    return torch.equal(function(lengths, k_len).reshape(len(lengths), -1).sum(-1), lengths)


def positions_cut_from_a_fixed_table(lengths, k_len):
    real = torch.arange(64) < lengths[:, None]
    return insert_axes_of_heads_and_queries(real[:, :k_len])


@padding_mask.wrong(stage="compared")
class Compared:
    def one_key_too_many(lengths, k_len):
        """One key too many is visible: with a length of 2 the positions 0 and 1 are real, but your mask shows position
        2 as well, the first of the padding. Positions are counted from 0. Look at the comparison."""
        return torch.arange(k_len) <= lengths[:, None]

    def one_key_too_few(lengths, k_len):
        """One key too few is visible: the last real token of every sentence is hidden. With a length of 2 the positions
        0 and 1 are real. Positions are counted from 0: which is the last position below the length?"""
        return torch.arange(k_len) < lengths[:, None] - 1

    def padding_on_the_left(lengths, k_len):
        """The last `lengths[b]` keys are visible: your mask is for sentences that are padded on the left, as in some
        programs that generate text. Here the real tokens come first."""
        return torch.arange(k_len) >= k_len - lengths[:, None]

    def one_length_for_all(lengths, k_len):
        """Every sentence is masked as if it were as long as the longest. The mask is right for the longest sentence,
        but in all others it shows padding. Compare each row with the length of its own sentence."""
        return (torch.arange(k_len) < lengths.max()).expand(len(lengths), -1)

    def as_long_as_the_longest(lengths, k_len):
        """The mask has a column for each token of the longest sentence, but must have `k_len` columns. The keys may be
        padded further, to a length that all batches share, and then the mask does not fit the scores. Which argument
        says how many keys there are?"""
        return torch.arange(int(lengths.max())) < lengths[:, None]

    def one_column_missing(lengths, k_len):
        """The mask has one column too few: `arange(1, k_len)` counts from 1 and stops before `k_len`. Every key needs a
        column. What does `arange` do with its second argument?"""
        return torch.arange(1, k_len) <= lengths[:, None]

    def full_sentence_hidden(lengths, k_len):
        """A sentence without padding is hidden from its first token to its last. A slice that counts from the end is
        wrong for 0: `[-2:]` is the last two entries, but `[-0:]` is all entries. Which entries are in a slice that
        begins at the length itself?"""
        visible = torch.ones(len(lengths), k_len, dtype=torch.bool)
        for sentence, length in enumerate(lengths.tolist()):
            visible[sentence, -(k_len - length) :] = False
        return visible

    def empty_sentence_visible(lengths, k_len):
        """In a sentence of length 0 every key is visible. You use row `length - 1` of a triangle as the mask of a
        sentence; for length 0 this is row -1, the last. For which length is the first row right?"""
        return torch.ones(k_len, k_len, dtype=torch.bool).tril()[lengths - 1]


@padding_mask.wrong(stage="compared", alone=True)
class ComparedAlone:
    def nothing_hidden(lengths, k_len):
        """Every key is visible, even the padding, whatever the lengths are. Which operation must distinguish the
        positions below the length from all others?"""
        return torch.ones(len(lengths), k_len, dtype=torch.bool)


@padding_mask.wrong(stage="visible")
class Visible:
    def padding_true(real):
        """Your mask is inverted: it is `True` on the padding, like `key_padding_mask` of `nn.MultiheadAttention`. In
        this course `True` means may attend, so the real tokens are `True`."""
        return ~real

    def ones_on_the_padding(real):
        """Your mask has the number 1 on the padding, and 0 on the real tokens. Some programs write masks in this way
        and multiply them by a large negative number later. Here return `True` and `False`, where `True` means may
        attend."""
        return (~real).float()

    def padding_additive(real):
        """This is the mask to add to scores: 0 on the real tokens, -inf on the padding. Return a mask of `True` and
        `False`; converting such a mask to an additive mask is a separate exercise, `to_additive`."""
        return torch.zeros(real.shape).masked_fill(~real, float("-inf"))


@padding_mask.wrong(stage="rows")
class Rows:
    def batch_and_keys_exchanged(visible):
        """The axes of batch and keys are swapped: in the comparison, the lengths are along the last axis, where the
        positions should be. Each row must belong to one sentence and have k_len entries."""
        return visible.T

    def table_reshaped(visible):
        """{The shape is right, but} the entries are in the wrong places: your table has a row for each key, and you
        reshape it to have a row for each sentence. `view` and `reshape` never move an axis. In the comparison, do the
        positions or the lengths need the new axis?"""
        return visible.T.reshape(visible.shape)


@padding_mask.wrong(stage="placed")
class Placed:
    def without_axes(visible):
        """{The numbers are right, but} the shape is (batch, k_len). When the mask is aligned from the right with scores
        (batch, heads, q_len, k_len), `batch` lines up with `q_len`: this raises an error or, if the two sizes are
        equal, masks the wrong scores. Which two axes of the scores does your mask lack?"""
        return visible

    def on_the_queries(visible):
        """Your mask is along the axis of the queries: its shape is (batch, 1, k_len, 1). A padded query is harmless,
        since its output is not used, but no query may attend to a padded key. The keys are on the last axis."""
        return visible[:, None, :, None]

    def batch_on_the_queries_axis(visible):
        """{The numbers are right, but} both new axes are in front: (1, 1, batch, k_len). With scores (batch, heads,
        q_len, k_len) the sentences then line up with the queries. The axis of the sentences must stay first: insert the
        new axes after it."""
        return visible[None, None]

    def batch_on_the_heads_axis(visible):
        """{The numbers are right, but} the new axes are in the wrong places: (1, batch, 1, k_len). With scores (batch,
        heads, q_len, k_len) the sentences then line up with the heads. The axis of the sentences must stay first:
        insert the new axes after it."""
        return visible[None, :, None]

    def keys_on_the_heads_axis(visible):
        """{The numbers are right, but} both new axes are at the end: (batch, k_len, 1, 1). With scores (batch, heads,
        q_len, k_len) the keys then line up with the heads. The axis of the keys must stay last: insert the new axes
        before it."""
        return visible[..., None, None]

    def rows_and_columns(visible):
        """You hide the padding both as queries and as keys: (batch, 1, k_len, k_len). The padded queries then see no
        key, which causes NaN. Mask the keys alone: the output of a padded query is not used."""
        return visible[:, None, None] * visible[:, None, :, None]

    def copied_for_every_query(visible):
        """The numbers are {right, but} copied for every query: (batch, 1, k_len, k_len). Broadcasting has the same
        effect without the extra memory, for any number of queries. An axis of size 1 is enough."""
        return visible[:, None, None].repeat(1, 1, visible.shape[-1], 1)

    def causal_as_well(visible):
        """Your mask is causal as well, (batch, 1, k_len, k_len): it hides the future together with the padding. A later
        exercise, about a decoder, asks for such a mask. Here every query may attend to all real tokens."""
        return (visible[:, None, None] * torch.ones(2 * visible.shape[-1:]).tril()).to(visible.dtype)


@padding_mask.wrong
class WrongAnswers:
    def lengths_without_an_axis(lengths, k_len):
        """The positions and the lengths are along the same axis, which usually raises an error. With as many sentences
        as keys, your function runs, but compares key 0 with sentence 0 only, key 1 with sentence 1 only, and so on.
        Compare every sentence with every key, in a table: do the lengths or the positions need a new axis?"""
        return (torch.arange(k_len) < lengths)[:, None, None, None]


fixed_length(padding_mask, positions_cut_from_a_fixed_table, "a table of 300 keys")
