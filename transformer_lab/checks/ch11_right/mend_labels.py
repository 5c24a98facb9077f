"""Find the mistake: labels of a batch whose padding is the end token."""

import torch

from ..exercise import exercise

HIDDEN = -100


def _batch(draw, batch=3, seq=6, vocab=9):
    return _texts(draw, [(3 + 3 * row) % (seq + 1) for row in range(batch)], seq, vocab)


def _texts(draw, lengths, seq=6, vocab=9):
    """Texts of these lengths, each followed by its end and by padding; one that fills the row has no end."""
    end = vocab - 2
    tokens = torch.randint(vocab, (len(lengths), seq), generator=draw.generator)
    tokens = torch.where(tokens == end, end - 1, tokens)
    return torch.where(torch.arange(seq) < torch.tensor(lengths)[:, None], tokens, end), end


def _example(name, *lengths):
    mend_labels.example(name, lambda draw: _texts(draw, lengths))


def behind_the_first_end(tokens, end):
    """Find the padding: every end token but the first of a row."""
    ends = tokens == end
    return ends & (ends.cumsum(dim=1) > 1)


def in_place(tokens, padding):
    """Hide the padding; each label stays where its token is."""
    return tokens.masked_fill(padding, HIDDEN)


@exercise(
    inputs=_batch,
    axes={"tokens": "batch seq", "return": "batch seq"},
    hints=(
        "A text of three tokens is in a row of six, so the end token appears three times. Which of the three must the "
        "model learn to write?",
        "Only the end tokens after the first one are padding. `cumsum` counts the end tokens so far. And the loss "
        "shifts the labels itself: what else shifts them?",
        "`ends = tokens == end`, `padding = ends & (ends.cumsum(…) > …)`, `return tokens.masked_fill(padding, …)`",
    ),
)
def mend_labels(tokens, end, *, padding=behind_the_first_end, place=in_place):
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
class ThePadding:
    def every_end(tokens, end):
        """Every end token is hidden, the first one too. The model is then never asked to end a text, and does not
        learn to stop. Hide those behind the first."""
        return tokens == end

    def nothing(tokens, end):
        """Nothing is hidden: the model is asked to write padding after the end. Hide the end tokens behind the
        first."""
        return torch.zeros_like(tokens).bool()

    def first_end_alone(tokens, end):
        """You hide the first end token and keep those behind it: the wrong way round. The model must learn to write
        the first."""
        ends = tokens == end
        return ends & (ends.cumsum(dim=1) == 1)

    def all_but_the_last(tokens, end):
        """You keep the *last* end token of a row, far behind the text. The end of the text is the first one."""
        ends = tokens == end
        later = ends.flip(1).cumsum(dim=1).flip(1)
        return ends & (later > 1)

    def last_end_alone(tokens, end):
        """You hide the last end token of each row alone. All end tokens behind the first are padding."""
        ends = tokens == end
        later = ends.flip(1).cumsum(dim=1).flip(1)
        return ends & (later == 1)

    def from_the_third_on(tokens, end):
        """You keep one end token too many: the second of a row is padding already, and must be hidden."""
        ends = tokens == end
        return ends & (ends.cumsum(dim=1) > 2)

    def counted_over_the_batch(tokens, end):
        """The end tokens are counted over the whole batch, and only the first text keeps its end. Count along each
        row."""
        ends = tokens == end
        return ends & (ends.flatten().cumsum(0).view_as(ends) > 1)

    def counted_down_the_columns(tokens, end):
        """The end tokens are counted down the columns, from text to text. Count along each row."""
        ends = tokens == end
        return ends & (ends.cumsum(dim=0) > 1)

    def one_length_for_all(tokens, end):
        """The length of the first text cuts all texts. Each text has its own end: count along each row."""
        length = int((tokens[0] != end).sum())
        return (torch.arange(tokens.shape[1], device=tokens.device) > length).expand_as(tokens)

    def everything_but_the_text(tokens, end):
        """The last token of each text is hidden as well: your padding begins one place too early."""
        ends = tokens == end
        first = (~ends).sum(dim=1, keepdim=True)
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return (places >= first - 1) & (places != first)

    def the_text(tokens, end):
        """You hide the text, and ask for the padding. −100 belongs where nothing is asked for: at the padding."""
        return ~behind_the_first_end(tokens, end)


@mend_labels.wrong(stage="place")
class ThePlace:
    def shifted_here_too(tokens, padding):
        """The labels are still shifted here. The loss shifts them again, so the model would be trained for the token
        after the next. Return them in the places of their tokens."""
        labels = tokens.masked_fill(padding, HIDDEN)
        return torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], HIDDEN)], dim=1)

    def shifted_the_other_way(tokens, padding):
        """The labels are shifted to the right. The loss does the shifting: return them in the places of their
        tokens."""
        labels = tokens.masked_fill(padding, HIDDEN)
        return torch.cat([torch.full_like(labels[:, :1], HIDDEN), labels[:, :-1]], dim=1)

    def first_token_cut_off(tokens, padding):
        """The first label is cut off, so there are fewer labels than tokens. The loss does the shifting."""
        return tokens.masked_fill(padding, HIDDEN)[:, 1:]

    def rolled(tokens, padding):
        """The labels are rolled: the first token of a text stands at its end. The loss does the shifting."""
        return tokens.masked_fill(padding, HIDDEN).roll(-1, dims=1)

    def minus_one(tokens, padding):
        """The padding gets −1. The loss leaves out −100, and with −1 it raises an error or worse."""
        return tokens.masked_fill(padding, -1)

    def zero(tokens, padding):
        """The padding gets 0, which is a token: the model is asked to write it. The loss leaves out −100."""
        return tokens.masked_fill(padding, 0)

    def as_a_mask(tokens, padding):
        """You return which places are padding. The task asks for the labels: tokens, and −100 there."""
        return padding

    def only_what_is_asked(tokens, padding):
        """You return one long row of the labels that are asked for. The loss needs their places: keep the shape."""
        return tokens[~padding]
