"""Find the mistake: a text cut into columns."""

import torch

from ..exercise import exercise, family, with_text_of


def _tokens_and_batch(draw, batch=3, seq=7, left_over=2):
    return torch.arange(batch * seq + left_over), batch


@exercise(
    inputs=_tokens_and_batch,
    axes={"return": "seq batch"},
    hints=(
        "Read column 0 of the result from top to bottom. Do its tokens follow one another in the text?",
        "Tokens that follow one another in the text must be in the same column, one below the other. If you reshape "
        "in reading order, they are side by side in a row. So first cut the text so that each stretch is a row, then "
        "turn rows into columns.",
        "`tokens[: …].view(…, …).…(0, 1)`",
    ),
)
def mend_columns(tokens, batch):
    """Lay a text out in columns. tokens: (n,). Returns (n // batch, batch): each column is one stretch of the text."""
    seq = len(tokens) // batch
    return tokens[: seq * batch].view(batch, seq).transpose(0, 1)


@mend_columns.probe(plain=True)
def no_tokens_left_over(draw):
    """no token left over"""
    return torch.randperm(20, generator=draw.generator), 4


@mend_columns.probe(plain=True)
def many_columns(draw):
    """many columns and few rows"""
    return torch.randperm(17, generator=draw.generator), 5


mend_columns.example("one column", lambda draw: (torch.randperm(6, generator=draw.generator), 1))
mend_columns.example("one row", lambda draw: (torch.randperm(6, generator=draw.generator), 4))
mend_columns.example("as many columns as rows", lambda draw: (torch.randperm(16, generator=draw.generator), 4))


@mend_columns.probe
def every_second_token(draw):
    """every second token of a text"""
    return torch.randperm(46, generator=draw.generator)[::2], 3


def _table_in_reading_order(tokens, batch):
    return tokens[: len(tokens) // batch * batch].reshape(-1, batch)


@mend_columns.right
class RightAnswers:
    def stretches_stacked(tokens, batch):
        seq = len(tokens) // batch
        return torch.stack([tokens[column * seq : (column + 1) * seq] for column in range(batch)], dim=1)

    def split_and_stacked(tokens, batch):
        return torch.stack(tokens.split(len(tokens) // batch)[:batch], dim=-1)

    def transposed_and_copied(tokens, batch):
        return tokens.narrow(0, 0, len(tokens) // batch * batch).reshape(batch, -1).t().contiguous()

    def by_index(tokens, batch):
        seq = len(tokens) // batch
        return tokens[torch.arange(seq)[:, None] + seq * torch.arange(batch)]

    def by_as_strided(tokens, batch):
        seq, step = len(tokens) // batch, tokens.stride(0)
        return tokens.as_strided((seq, batch), (step, seq * step))


@mend_columns.property
def column_0_begins_the_text(function, tokens, batch):
    """Column 0 is the beginning of the text."""
    column = function(tokens, batch)[:, 0]
    return torch.equal(column, tokens[: len(column)])


@mend_columns.property
def no_token_twice(function, tokens, batch):
    """No token is in two places."""
    result = function(tokens, batch)
    return len(result.unique()) == result.numel()


@mend_columns.wrong
class Cuts:
    def as_given(tokens, batch):
        """Your function does the same as the given program. It cuts rows of `batch` neighbouring tokens in reading
        order, so the text runs from left to right, and a column holds every `batch`-th token. No `view` or `reshape` to
        the final shape can fix this. Read a column downwards: which token should come second?"""
        return _table_in_reading_order(tokens, batch)

    def stretches_left_as_rows(tokens, batch):
        """The stretches {are right, but they} are rows: the shape is (batch, seq). The text has to run downwards, so
        that row 0 holds the first token of every stretch. One operation is missing, and it needs no copy."""
        return mend_columns.reference(tokens, batch).T

    def cut_as_before_then_transposed(tokens, batch):
        """You transpose the table that the given program cuts, but this cut is the mistake. Now the shape is (batch,
        seq), and each row still holds every `batch`-th token. You need a transpose of a table whose rows are stretches
        of the text. How many tokens are in such a row?"""
        return _table_in_reading_order(tokens, batch).transpose(0, 1)

    def cut_transposed_and_cut_again(tokens, batch):
        """{The shape is right, but} the tokens are scrambled: you transpose the table that the given program cuts, and
        then cut it once more in reading order. A `reshape` after a transpose mixes the columns. Cut once, into
        stretches, and transpose once."""
        return _table_in_reading_order(tokens, batch).transpose(0, 1).reshape(-1, batch)

    def view_after_transpose(tokens, batch):
        """A `view` after a transpose raises an error here: no view can show the numbers in reading order once the axes
        are exchanged. A `reshape` would not raise an error, but it would mix the columns. The shape must be right after
        one cut and one transpose: what must each row hold after the cut?"""
        seq = len(tokens) // batch
        return tokens[: seq * batch].view(seq, batch).transpose(0, 1).view(seq, batch)

    def transposed_and_cut_into_rows(tokens, batch):
        """The table {is right, but it} is cut once more at the end, into (batch, seq), which scrambles it. After the
        transpose the shape is (seq, batch) already, and nothing is left to do."""
        return mend_columns.reference(tokens, batch).reshape(batch, -1)

    def columns_read_into_one_row(tokens, batch):
        """Your result has one axis: the table {is right, but it} is read row by row into a single row at the end. The
        result must stay a table (seq, batch)."""
        return mend_columns.reference(tokens, batch).flatten()

    def text_transposed_before_it_is_cut(tokens, batch):
        """You transpose the text while it has one axis only, hence the `IndexError`: there is no second axis to swap.
        Cut the text into stretches first."""
        seq = len(tokens) // batch
        return tokens[: seq * batch].transpose(0, 1).view(seq, batch)

    def axis_two_of_a_table(tokens, batch):
        """You name axis 2 of a table, hence the `IndexError`. Axes are counted from 0, so a table has the axes 0 and
        1."""
        seq = len(tokens) // batch
        return tokens[: seq * batch].view(batch, seq).transpose(1, 2)

    def transposed_without_axes(tokens, batch):
        """In PyTorch, `transpose` requires the two axes that change places; in NumPy it needs no arguments. For a
        matrix, write `.T` or `.transpose(0, 1)`."""
        seq = len(tokens) // batch
        return tokens[: seq * batch].reshape(batch, seq).transpose()

    def columns_in_reverse(tokens, batch):
        """The columns are the right stretches, but in reverse order, from right to left: the text begins in the last
        column. A quarter turn, such as `rot90`, is not a transpose. Column 0 has to hold the beginning of the text."""
        return mend_columns.reference(tokens, batch).flip(1)

    def columns_upside_down(tokens, batch):
        """The columns are the right stretches, but upside down: each runs from bottom to top. A quarter turn, such as
        `rot90`, is not a transpose. Row 0 has to hold the first token of every stretch."""
        return mend_columns.reference(tokens, batch).flip(0)

    def rows_flipped(tokens, batch):
        """You cut rows of `batch` neighbours in reading order, as the given program does, and then reverse their order.
        A flip is not a transpose: the tokens of a row are still neighbours in the text."""
        return Cuts.as_given(tokens, batch).flip(0)

    def stretches_joined_along_axis_one(tokens, batch):
        """The stretches have one axis only, and `cat` joins along an existing axis. There is no axis 1, hence the
        `IndexError`. `stack` joins tensors along a new axis."""
        seq = len(tokens) // batch
        return torch.cat(tokens[: seq * batch].split(seq), dim=1)

    def all_in_one_column(tokens, batch):
        """Your result has a single column, with the stretches one below the other. `cat` joins along an existing axis:
        which axis must grow so that the stretches lie side by side?"""
        return tokens[: len(tokens) // batch * batch, None]

    def text_left_uncut(tokens, batch):
        """Your result has one axis: the text without the tokens at the end. Either `cat` joins the pieces into one row
        again, or the result of a cut is lost because you do not assign it. The result must be a table (seq, batch)."""
        return tokens[: len(tokens) // batch * batch]

    def text_unchanged(tokens, batch):
        """You return the text unchanged. An operation on a tensor returns a new tensor: give the new tensor a name, or
        return it."""
        return tokens

    def always_two_columns(tokens, batch):
        """Your result has two columns, whatever `batch` says. Only the example has two. Follow the argument `batch`
        through every line."""
        return mend_columns.reference(tokens, 2)

    def first_column_of_the_given_program(tokens, batch):
        """You return a single row of every `batch`-th token, as in the first column of the given program's result.
        Column 0 has to hold the first `seq` tokens of the text, and there are `batch` columns."""
        return tokens[::batch]

    def single_column_squeezed_away(tokens, batch):
        """{Your function is right unless there is only one column, or one row:} with one column or one row, your result
        has a single axis. A bare `squeeze()` removes every axis of size 1, even one that the caller needs. Does any
        axis have to be removed here?"""
        return mend_columns.reference(tokens, batch).squeeze()

    def stride_taken_as_one(tokens, batch):
        """{Your function is right as long as the tokens lie side by side in memory.} For `text[::2]`, your function
        reads the tokens in between as well, since your strides assume that neighbours lie one place apart. Ask `tokens`
        for its stride, or leave the strides to `view` and `transpose`."""
        seq = len(tokens) // batch
        return tokens.as_strided((seq, batch), (1, seq))

    def tokens_sorted(tokens, batch):
        """You sort the tokens, but their order *is* the text. Only whole stretches may move: leave the tokens inside
        them in order."""
        return mend_columns.reference(tokens.sort().values, batch)

    def tokens_changed_in_place(tokens, batch):
        """Your function changes its argument `tokens`, so the caller's tensor has a different shape afterwards.
        `resize_`, like every method whose name ends in an underscore, changes the tensor itself. A slice or a `view`
        leaves it unchanged."""
        return tokens.resize_(batch, len(tokens) // batch).transpose(0, 1)


@mend_columns.wrong
class LeftOver:
    @family(left_over_kept=torch.Tensor.view, left_over_kept_by_reshape=torch.Tensor.reshape)
    def all_cut(cut, tokens, batch):
        """If tokens are left over, your function raises an error: the text as a whole cannot be cut into `batch` equal
        parts. The given program drops the tokens that fill no row. Keep the line that does this: `tokens[: seq *
        batch]`."""
        return cut(tokens, batch, -1).transpose(0, 1)

    @family(
        left_over_kept_with_the_length=torch.Tensor.view,
        left_over_kept_with_the_length_by_reshape=torch.Tensor.reshape,
    )
    def all_cut_to_the_length(cut, tokens, batch):
        """If tokens are left over, your function raises an error: you ask for `batch` times `seq` places, but there are
        more tokens than that. The given program drops the tokens that fill no row. Keep the line that does this:
        `tokens[: seq * batch]`."""
        return cut(tokens, batch, len(tokens) // batch).transpose(0, 1)

    @family(rows_of_the_whole_text=torch.Tensor.view, rows_of_the_whole_text_by_reshape=torch.Tensor.reshape)
    def all_cut_into_rows(cut, tokens, batch):
        """There are two mistakes: you do not drop the tokens that are left over, hence the error, and you cut the text
        into rows of `batch` neighbours, as the given program does. Keep the given line `tokens[: seq * batch]`, and cut
        the result into `batch` stretches instead."""
        return cut(tokens, -1, batch)

    def left_over_as_one_more_part(tokens, batch):
        """If tokens are left over, `split` puts them into one more part, shorter than the others, and `stack` raises an
        error. Drop these tokens first, as the given program does."""
        return torch.stack(tokens.split(len(tokens) // batch), dim=1)

    def extra_columns_if_they_are_short(tokens, batch):
        """{Your function is right as long as fewer tokens are left over than one column holds.} If columns are short,
        as with 6 tokens in 4 columns, the tokens left over fill further columns. There must be only `batch` columns:
        before you cut, drop the tokens that are left over."""
        seq = len(tokens) // batch
        return tokens.unfold(0, seq, seq).transpose(0, 1)

    def parts_of_unequal_length(tokens, batch):
        """If tokens are left over, `chunk` rounds the length of its parts up: either the last part is shorter and
        `stack` raises an error, or there are too few parts. First drop the tokens that are left over, as the given
        program does."""
        return torch.stack(tokens.chunk(batch), dim=1)

    def parts_nearly_equal(tokens, batch):
        """If tokens are left over, the parts are not equally long: the first parts of `tensor_split` have one token
        more than the others, and `stack` raises an error. First drop the tokens that are left over, as the given
        program does."""
        return torch.stack(tokens.tensor_split(batch), dim=1)

    def slice_to_minus_zero(tokens, batch):
        """If no token is left over, your result has no rows at all. A slice up to `-left_over` cuts off the end, but
        `-0` is 0, and `tokens[:0]` is empty. Compute how many tokens stay, and slice up to this number, as the given
        program does."""
        return tokens[: -(len(tokens) % batch)].view(batch, -1).transpose(0, 1)

    def first_tokens_dropped(tokens, batch):
        """{The columns are stretches of the text, but} you drop the left-over tokens at the start of the text, so the
        columns begin a little late. Only tokens at the end may be dropped. Look at your slice: on which side of the
        colon is the number?"""
        return tokens[len(tokens) % batch :].view(batch, -1).transpose(0, 1)

    def first_tokens_dropped_in_reading_order(tokens, batch):
        """You drop the left-over tokens at the start of the text and cut the rest in reading order, as the given
        program does: a column holds every `batch`-th token. Read a column downwards: which token should come second?
        Also, the tokens to drop are at the end."""
        return tokens[len(tokens) % batch :].reshape(-1, batch)

    def padded_with_zeros(tokens, batch):
        """The columns are stretches of the text, but you fill the last column up with zeros, so there is one row too
        many. Zero is a token as well: the model would learn to predict it. The docstring says that tokens which fill no
        row are dropped."""
        missing = -len(tokens) % batch
        return torch.cat([tokens, tokens.new_zeros(missing)]).view(batch, -1).transpose(0, 1)

    @family(
        padded_with_the_last_token=(lambda tokens, missing: tokens[-1:].repeat(missing), "the last token again"),
        padded_from_the_beginning=(lambda tokens, missing: tokens[:missing], "the first tokens of the text"),
    )
    def padded(padding, tokens, batch):
        """The columns are stretches of the text, but you fill the last column up with {}, so there is one row too many.
        The docstring says that tokens which fill no row are dropped."""
        return torch.cat([tokens, padding(tokens, -len(tokens) % batch)]).view(batch, -1).transpose(0, 1)

    def first_token_dropped(tokens, batch):
        """The first token of the text is missing: your columns begin with the second. In training, the targets begin
        with the second token; here column 0 must begin with the first."""
        return mend_columns.reference(tokens[1:], batch)

    def columns_one_token_late(tokens, batch):
        """All columns begin one token too late, and if no token is left over, one token is missing at the end, hence
        the error. In training, the targets begin with the second token; here column 0 must begin with the first."""
        seq = len(tokens) // batch
        return tokens[1 : seq * batch + 1].view(batch, seq).transpose(0, 1)


@mend_columns.wrong
class Length:
    def one_token_kept_back(tokens, batch):
        """If no token is left over, one row is missing: you compute the length from one token fewer than there are.
        Training loops use this length when they keep the last token back as a target. Here every full row counts."""
        seq = (len(tokens) - 1) // batch
        return tokens[: seq * batch].view(batch, seq).transpose(0, 1)

    def length_as_a_float(tokens, batch):
        """You compute the length of a column with `/`, which returns a float, but a slice must end at an int: hence the
        `TypeError`. `//` returns an int."""
        seq = len(tokens) / batch
        return tokens[: seq * batch].view(batch, -1)

    def remainder_for_the_length(tokens, batch):
        """You compute the length of a column with `%`, which returns the number of tokens left over. `//` returns how
        often `batch` goes into the number of tokens."""
        seq = len(tokens) % batch
        return tokens[: seq * batch].view(batch, seq).transpose(0, 1)

    def one_row_too_few(tokens, batch):
        """Each column lacks its last token, and the next column begins with that token: the length is one too small.
        Only the tokens that fill no row are dropped."""
        seq = len(tokens) // batch - 1
        return tokens[: seq * batch].view(batch, seq).transpose(0, 1)

    def last_row_cut_off(tokens, batch):
        """The last row is missing: every column lacks its last token. Only the tokens that fill no row are dropped, and
        this row is full."""
        return mend_columns.reference(tokens, batch)[:-1]

    def one_row_too_many(tokens, batch):
        """You ask for one row more than the text can fill: there are not that many tokens, hence the error. The result
        of `//` is rounded down already, and the tokens left over are dropped."""
        seq = len(tokens) // batch + 1
        return tokens[: seq * batch].view(batch, seq).transpose(0, 1)

    @family(
        rounded_up=lambda tokens, batch, seq: tokens[: seq * batch].view(batch, seq),
        rounded_up_by_reshape=lambda tokens, batch, seq: tokens.reshape(batch, seq),
    )
    def columns_too_long(cut, tokens, batch):
        """If tokens are left over, you ask for a row that they cannot fill, hence the error: you round the length of a
        column up. The tokens left over must be dropped, so round the length down."""
        return cut(tokens, batch, -(-len(tokens) // batch)).transpose(0, 1)

    def only_one_row_kept(tokens, batch):
        """Your result has a single row: you keep only `batch` tokens, which is one row. How many tokens are there in
        all rows together?"""
        return tokens[:batch].view(batch, -1).transpose(0, 1)

    @family(only_one_stretch_kept=torch.Tensor.view, only_one_stretch_kept_by_reshape=torch.Tensor.reshape)
    def one_stretch_cut(cut, tokens, batch):
        """You keep `seq` tokens, which is one column, and cut this column into `batch` parts, which usually raises an
        error. How many tokens are there in all columns together?"""
        return cut(tokens[: len(tokens) // batch], batch, -1).transpose(0, 1)

    def only_the_length_kept(tokens, batch):
        """You keep `seq` tokens, the length of a single column, and cut them into `batch` columns of that length, but
        there are too few tokens. How many tokens fill all columns?"""
        seq = len(tokens) // batch
        return tokens[:seq].reshape(batch, seq).T


@mend_columns.wrong
class Stretches:
    def columns_overlap(tokens, batch):
        """Each column begins only one token later than the previous column, so the columns overlap, like sliding
        windows, and most of the text is left out. Column 1 has to begin where column 0 ends."""
        seq = len(tokens) // batch
        return torch.stack([tokens[column : column + seq] for column in range(batch)], dim=1)

    def columns_begin_batch_tokens_apart(tokens, batch):
        """Each column begins `batch` tokens later than the previous column. A column holds `seq` tokens, so the columns
        overlap, or leave tokens out. Column 1 has to begin where column 0 ends: how far is that?"""
        seq = len(tokens) // batch
        return torch.stack([tokens[column * batch : column * batch + seq] for column in range(batch)], dim=1)

    @with_text_of(columns_begin_batch_tokens_apart)
    def columns_filled_from_batch_tokens_apart(tokens, batch):
        seq = len(tokens) // batch
        result = tokens.new_zeros(seq, batch)
        for column in range(batch):
            result[:, column] = tokens[column * batch : column * batch + seq]
        return result

    def one_token_between_columns(tokens, batch):
        """Between two columns one token of the text is skipped. Column 1 must begin where column 0 ends: with `seq`
        tokens in a column, at which place does the next column begin?"""
        seq = len(tokens) // batch
        return torch.stack([tokens[column * (seq + 1) :][:seq] for column in range(batch)], dim=1)

    def the_first_stretch_in_every_column(tokens, batch):
        """Every column holds the beginning of the text: the same stretch comes `batch` times, and the rest of the text
        is left out. `repeat` and `expand` only repeat tokens. Column 1 has to begin where column 0 ends."""
        return tokens[: len(tokens) // batch, None].repeat(1, batch)

    def the_first_stretch_in_reading_order(tokens, batch):
        """You use only the first `seq` tokens, again and again, laid out in reading order. All columns together must
        hold `seq * batch` different tokens."""
        return tokens[: len(tokens) // batch].repeat(batch).view(-1, batch)

    def the_last_stretch_missing(tokens, batch):
        """The last column is missing: the loop over the stretches ends one stretch too early. `range(n)` already leaves
        out n."""
        return mend_columns.reference(tokens, batch)[:, :-1]

    def first_column_alone(tokens, batch):
        """You return the first stretch alone. Most often a `return` is inside the loop, so that the function ends in
        the first iteration. Look at how far the `return` is indented."""
        return tokens[: len(tokens) // batch]

    def stretches_written_into_rows(tokens, batch):
        """You write each stretch into a row of the result, where it does not fit: a row holds `batch` numbers, but a
        stretch has `seq`. A stretch must become a column: on which side of the comma does `column` belong?"""
        seq = len(tokens) // batch
        result = tokens.new_zeros(seq, batch)
        for column in range(batch):
            result[column] = tokens[column * seq : (column + 1) * seq]
        return result
