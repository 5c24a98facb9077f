"""Find the mistake: a text cut into columns."""

import torch

from ..exercise import exercise


def _text(draw, batch=3, seq=7, left_over=2):
    return torch.arange(batch * seq + left_over), batch


@exercise(
    inputs=_text,
    axes={"return": "seq batch"},
    hints=(
        "Read column 0 of the result from top to bottom. Do its tokens follow one another in the text?",
        "Tokens that follow one another in the text must end up one below the other. Cutting in reading order puts "
        "them side by side. So first cut the text so that each stretch is a row, then turn rows into columns.",
        "`tokens[: …].view(…, …).…(0, 1)`",
    ),
)
def mend_columns(tokens, batch):
    """Lay a text out in columns. tokens: (n,). Returns (n // batch, batch): each column one stretch of the text."""
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(batch, seq).transpose(0, 1)


@mend_columns.probe(plain=True)
def none_left_over(draw):
    """tokens of which none is left over"""
    return torch.randperm(20, generator=draw.generator), 4


@mend_columns.probe(plain=True)
def many_columns(draw):
    """many columns and few rows"""
    return torch.randperm(17, generator=draw.generator), 5


@mend_columns.probe
def one_column(draw):
    """one column"""
    return torch.randperm(6, generator=draw.generator), 1


@mend_columns.probe
def one_row(draw):
    """one row"""
    return torch.randperm(6, generator=draw.generator), 4


@mend_columns.probe
def as_many_columns_as_rows(draw):
    """as many columns as rows"""
    return torch.randperm(16, generator=draw.generator), 4


@mend_columns.probe
def every_second_token(draw):
    """every second token of a text"""
    return torch.randperm(46, generator=draw.generator)[::2], 3


@mend_columns.equivalent
def stretches_stacked(tokens, batch):
    seq = len(tokens) // batch
    return torch.stack([tokens[column * seq : (column + 1) * seq] for column in range(batch)], dim=1)


@mend_columns.equivalent
def split_and_stacked(tokens, batch):
    return torch.stack(tokens.split(len(tokens) // batch)[:batch], dim=-1)


@mend_columns.equivalent
def turned_and_copied(tokens, batch):
    return tokens.narrow(0, 0, len(tokens) // batch * batch).reshape(batch, -1).t().contiguous()


@mend_columns.equivalent
def by_index(tokens, batch):
    seq = len(tokens) // batch
    return tokens[torch.arange(seq)[:, None] + seq * torch.arange(batch)]


@mend_columns.equivalent
def by_as_strided(tokens, batch):
    seq, step = len(tokens) // batch, tokens.stride(0)
    return tokens.as_strided((seq, batch), (step, seq * step))


@mend_columns.mistake
def as_given(tokens, batch):
    """This gives the numbers of the program as it was given. Rows of `batch` neighbouring tokens are cut in reading
    order, so that the text runs from left to right, and a column takes every `batch`-th token. No `view` or `reshape`
    to the final shape can fix that. Read a column downwards: which token should come second?"""
    seq = len(tokens) // batch
    return tokens[: seq * batch].reshape(seq, batch)


@mend_columns.mistake
def stretches_left_as_rows(tokens, batch):
    """The stretches are right, and they are rows: the shape is (batch, seq). The text has to run downwards, so that row
    0 holds the first token of every stretch. One operation without a copy is missing."""
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(batch, seq)


@mend_columns.mistake
def cut_as_before_then_turned(tokens, batch):
    """You transpose what the program had cut, and the cut was the mistake. Now the shape is (batch, seq), and each row
    still takes every `batch`-th token. The transpose is needed, but of a table whose rows are stretches of the text.
    How many tokens are in such a row?"""
    seq = len(tokens) // batch
    return tokens[: seq * batch].reshape(seq, batch).transpose(0, 1)


@mend_columns.mistake
def cut_turned_and_cut_again(tokens, batch):
    """The shape is right, and the tokens are scrambled anew: the table that the program had cut is transposed, and then
    cut once more in reading order. A `reshape` after a transpose is no way back to the shape you want: it mixes the
    columns. Cut once, into stretches, and turn once."""
    seq = len(tokens) // batch
    return tokens[: seq * batch].reshape(seq, batch).transpose(0, 1).reshape(seq, batch)


@mend_columns.mistake
def left_over_kept(tokens, batch):
    """Where tokens are left over, there is an error: the text as a whole cannot be cut into `batch` equal parts. The
    program as it was given dropped the tokens that fill no row. Keep that line: `tokens[: seq * batch]`."""
    return tokens.view(batch, -1).transpose(0, 1)


@mend_columns.mistake
def left_over_kept_beside_the_length(tokens, batch):
    """Where tokens are left over, there is an error: you ask for `batch` times `seq` places, and there are more tokens
    than that. The program as it was given dropped the tokens that fill no row. Keep that line: `tokens[: seq *
    batch]`."""
    return tokens.view(batch, len(tokens) // batch).transpose(0, 1)


@mend_columns.mistake
def nothing_left_over_means_nothing_kept(tokens, batch):
    """Where no token is left over, your result has no rows at all. A slice up to `-left_over` cuts off the end, but
    Python reads `-0` as 0, and `tokens[:0]` is empty. Count from the front how many tokens stay, as the program did."""
    left_over = len(tokens) % batch
    return tokens[:-left_over].view(batch, -1).transpose(0, 1)


@mend_columns.mistake
def stride_taken_as_one(tokens, batch):
    """Right as long as the tokens lie side by side in memory. Of `text[::2]`, yours reads the tokens in between as
    well, since your strides take neighbours to be one place apart. Ask `tokens` for its stride, or leave the strides to
    `view` and `transpose`."""
    seq = len(tokens) // batch
    return tokens.as_strided((seq, batch), (1, seq))


@mend_columns.mistake
def single_column_squeezed_away(tokens, batch):
    """Right until there is only one column, or one row: then your result has a single axis. A bare `squeeze()` removes
    every axis of size 1, also one that the caller counts on. Does anything have to be removed here at all?"""
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(batch, seq).transpose(0, 1).squeeze()


@mend_columns.mistake
def parts_of_unequal_length(tokens, batch):
    """Where tokens are left over, the parts are not equally long: `chunk` rounds their length up and makes the last one
    shorter, and a table has no room for that. Drop the tokens that are left over first, as the program did."""
    return torch.stack(tokens.chunk(batch), dim=1)


@mend_columns.mistake
def first_tokens_dropped(tokens, batch):
    """The columns are stretches of the text, but the tokens that are left over are dropped at its start: the text
    begins a little late. The docstring says that what is left over at the end is dropped. Look at your slice: on which
    side of the colon does the number stand?"""
    seq = len(tokens) // batch
    return tokens[len(tokens) - seq * batch :].view(batch, seq).transpose(0, 1)


@mend_columns.mistake
def padded_with_zeros(tokens, batch):
    """The columns are stretches of the text, and what is missing in the last one is filled up with zeros, so that there
    is one row more. Zero is a token as well: the model would learn to predict it. The docstring says that tokens which
    fill no row are dropped."""
    missing = -len(tokens) % batch
    return torch.cat([tokens, tokens.new_zeros(missing)]).view(batch, -1).transpose(0, 1)


@mend_columns.mistake
def one_token_kept_back(tokens, batch):
    """Where no token is left over, one row is missing: the length is worked out from one token fewer than there are.
    This is done in training loops that keep the last token back as a target. Here every full row counts."""
    seq = (len(tokens) - 1) // batch
    return tokens[: seq * batch].view(batch, seq).transpose(0, 1)


@mend_columns.mistake
def columns_overlap(tokens, batch):
    """Each column begins one token after the one before it, so that the columns overlap and most of the text is left
    out. These are sliding windows. Column 1 has to go on where column 0 ends."""
    seq = len(tokens) // batch
    return torch.stack([tokens[column : column + seq] for column in range(batch)], dim=1)


@mend_columns.mistake
def columns_in_reverse(tokens, batch):
    """The columns are the right stretches, from the right to the left: the text begins in the last column. A turn by a
    quarter, as `rot90` makes it, is not a transpose. Column 0 has to hold the beginning of the text."""
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(batch, seq).rot90(-1)


@mend_columns.mistake
def a_list_of_columns(tokens, batch):
    """The columns are right, and they come in a list. A tensor (seq, batch) is asked for: `stack` lays them side by
    side, along a new axis. Which one?"""
    seq = len(tokens) // batch
    return list(tokens[: seq * batch].split(seq))


@mend_columns.property
def column_0_begins_the_text(function, tokens, batch):
    """Column 0 is the beginning of the text."""
    column = function(tokens, batch)[:, 0]
    return torch.equal(column, tokens[: len(column)])


@mend_columns.property
def no_token_twice(function, tokens, batch):
    """No token stands in two places."""
    result = function(tokens, batch)
    return len(result.unique()) == result.numel()
