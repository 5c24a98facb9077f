"""Find the mistake: labels of a batch whose padding is the end token."""

import torch

from ..exercise import exercise

HIDDEN = -100


def _padded_batch(draw, batch=3, seq=6, vocab=9):
    return _make_texts(draw, [(3 + 3 * row) % (seq + 1) for row in range(batch)], seq, vocab)


def _make_texts(draw, lengths, seq=6, vocab=9):
    """Make texts of these lengths, each followed by its end token and by padding. A text that fills the row has no end
    token."""
    end = vocab - 2
    tokens = torch.randint(vocab, (len(lengths), seq), generator=draw.generator)
    tokens = torch.where(tokens == end, end - 1, tokens)
    return torch.where(torch.arange(seq) < torch.tensor(lengths)[:, None], tokens, end), end


def _example(name, *lengths):
    mend_labels.example(name, lambda draw: _make_texts(draw, lengths))


def ends_after_the_first(tokens, end):
    """Find the padding: every end token of a row except the first."""
    ends = tokens == end
    return ends & (ends.cumsum(dim=1) > 1)


def hide_padding(tokens, padding):
    """Hide the padding; each label stays where its token is."""
    return tokens.masked_fill(padding, HIDDEN)


@exercise(
    inputs=_padded_batch,
    axes={"tokens": "batch seq", "return": "batch seq"},
    hints=(
        "A row has six places, and its text has three tokens, so the end token fills the other three places. Which of "
        "the three end tokens must the model learn to write?",
        "Only the end tokens after the first one are padding. `cumsum` counts the end tokens so far. The loss "
        "shifts the labels: which line of the program shifts them, too?",
        "`ends = tokens == end`, `padding = ends & (ends.cumsum(…) > …)`, `return tokens.masked_fill(padding, …)`",
    ),
)
def mend_labels(tokens, end, *, padding=ends_after_the_first, place=hide_padding):
    """Return the tokens as labels, with -100 at the padding."""
    return place(tokens, padding(tokens, end))


@mend_labels.right
class RightAnswers:
    def row_by_row(tokens, end):
        labels = tokens.clone()
        for row in labels:
            ends = (row == end).nonzero().flatten()
            row[ends[1:]] = HIDDEN
        return labels


_example("no padding", 6, 6)
_example("an end without padding", 5, 5, 5)
_example("an empty text", 0, 4)
_example("one text", 2)
_example("short texts", 1, 2, 4)


@mend_labels.wrong(stage="padding")
class Padding:
    def every_end(tokens, end):
        """You hide every end token, including the first. Then no label is the end of a text, and the model does not
        learn to stop. Hide only the end tokens after the first."""
        return tokens == end

    def nothing(tokens, end):
        """You hide nothing, so the model is trained to write padding after the end. Hide the end tokens after the
        first."""
        return torch.zeros_like(tokens).bool()

    def first_end_alone(tokens, end):
        """You hide the first end token and keep the end tokens after it: do the reverse. The model must learn to write
        the first end token."""
        ends = tokens == end
        return ends & (ends.cumsum(dim=1) == 1)

    def all_but_the_last(tokens, end):
        """You keep the *last* end token of a row, far after the text. The text ends with the first end token."""
        ends = tokens == end
        ends_from_here = ends.flip(1).cumsum(dim=1).flip(1)
        return ends & (ends_from_here > 1)

    def last_end_alone(tokens, end):
        """You hide only the last end token of each row. All end tokens after the first are padding."""
        ends = tokens == end
        ends_from_here = ends.flip(1).cumsum(dim=1).flip(1)
        return ends & (ends_from_here == 1)

    def from_the_third_on(tokens, end):
        """You keep one end token too many: the second end token of a row is already padding and must be hidden."""
        ends = tokens == end
        return ends & (ends.cumsum(dim=1) > 2)

    def counted_over_the_batch(tokens, end):
        """You count the end tokens over the whole batch, so only the first end token of the batch is kept. Count along
        each row."""
        ends = tokens == end
        return ends & (ends.flatten().cumsum(0).view_as(ends) > 1)

    def counted_down_the_columns(tokens, end):
        """You count the end tokens down the columns, from text to text. Count along each row."""
        ends = tokens == end
        return ends & (ends.cumsum(dim=0) > 1)

    def one_length_for_all(tokens, end):
        """You apply the length of the first text to all texts. Each text has its own end: count along each row."""
        length = int((tokens[0] != end).sum())
        return (torch.arange(tokens.shape[1], device=tokens.device) > length).expand_as(tokens)

    def everything_but_the_text(tokens, end):
        """You also hide the last token of each text: your padding begins one place too early."""
        ends = tokens == end
        first = (~ends).sum(dim=1, keepdim=True)
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return (places >= first - 1) & (places != first)

    def the_text(tokens, end):
        """You hide the text and keep the padding. −100 belongs at the padding, which the model must not learn to
        write."""
        return ~ends_after_the_first(tokens, end)


@mend_labels.wrong(stage="place")
class Place:
    def shifted_here_too(tokens, padding):
        """You still shift the labels here. The loss shifts them again, so the model would be trained to predict the
        token after the next. Keep each label at the place of its token."""
        labels = tokens.masked_fill(padding, HIDDEN)
        return torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], HIDDEN)], dim=1)

    def shifted_the_other_way(tokens, padding):
        """You shift the labels to the right. The loss does the shifting: keep each label at the place of its token."""
        labels = tokens.masked_fill(padding, HIDDEN)
        return torch.cat([torch.full_like(labels[:, :1], HIDDEN), labels[:, :-1]], dim=1)

    def first_token_cut_off(tokens, padding):
        """You cut off the first label, so there are fewer labels than tokens. The loss does the shifting."""
        return tokens.masked_fill(padding, HIDDEN)[:, 1:]

    def rolled(tokens, padding):
        """You roll the labels: the first token of a text ends up at the end of its row. The loss does the shifting."""
        return tokens.masked_fill(padding, HIDDEN).roll(-1, dims=1)

    def minus_one(tokens, padding):
        """You label the padding with −1. The loss ignores −100, but a label of −1 makes it raise an error."""
        return tokens.masked_fill(padding, -1)

    def zero(tokens, padding):
        """You label the padding with 0, which is a token: the model is trained to write it. The loss ignores −100."""
        return tokens.masked_fill(padding, 0)

    def as_a_mask(tokens, padding):
        """You return a mask of the padding. The task asks for the labels: the tokens, with −100 at the padding."""
        return padding

    def only_what_is_asked(tokens, padding):
        """You return the labels other than −100 in one long row. The loss needs their places: keep the shape."""
        return tokens[~padding]
