"""The first leak: an output that depends on a token after it."""

import torch

from ..exercise import exercise

NOISE = 1e-5  # a share of the largest entry: smaller entries may be rounding errors


def _table(draw, seq=6):
    return _table_with_leaks(draw, seq, [(j, i) for j, i in ((4, 1), (5, 0), (3, 2)) if j < seq])


def _table_with_leaks(draw, seq, leaks, noise=1e-8, scale=1.0, smallest_leak=0.05):
    table = (0.5 + draw(seq, seq).abs()).triu()
    table = table + noise * draw(seq, seq).abs().tril(-1)
    for j, i in leaks:
        table[j, i] = smallest_leak * (1 + float(draw(1).abs()))
    return (scale * table,)


def _table_near_the_limit(draw):
    """Two entries below the limit and a later entry above it. The mean of a table is about a quarter of its largest
    entry."""
    (table,) = _table_with_leaks(draw, 6, ())
    for place, share in (((2, 0), 0.14), ((3, 1), 0.7), ((4, 1), 2)):
        table[place] = share * NOISE * table.max()
    return (table,)


def _example(name, leaks, **changes):
    first_leak.example(name, lambda draw: _table_with_leaks(draw, 6, leaks, **changes))


def pairs_with_later_token(table):
    """Find the pairs whose token comes after the output."""
    return torch.ones_like(table).tril(-1).bool()


def entries_above_rounding(table):
    """Decide which entries are too large to be rounding errors: those above a share of the largest entry."""
    return table > NOISE * table.max()


def choose_first(leaks):
    """Choose the leak with the smallest token, and among several such leaks the one with the smallest output."""
    found = leaks.nonzero().tolist()
    return tuple(found[0]) if found else None


@exercise(
    inputs=_table,
    axes={"table": "seq seq"},
    hints=(
        "The entry at (j, i) says how far output i moves when token j is replaced. For which pairs must the entry be 0 "
        "in a causal model?",
        "A leak is a pair with j > i, below the diagonal, whose entry is too large to be due to rounding. Compare the "
        "entry with the largest entry of the table.",
        "`for j in range(len(table)):`, `for i in range(…):`, `if table[j, i] > 1e-5 * …: return j, i`; and `None` at "
        "the end",
    ),
)
def first_leak(table, *, pairs=pairs_with_later_token, moved=entries_above_rounding, choose=choose_first):
    """Return the first (j, i) at which a later token j moves an output i, or None."""
    return choose(pairs(table) & moved(table))


@first_leak.right
class RightAnswers:
    def in_loops(table):
        largest = float(table.max())
        for j in range(len(table)):
            for i in range(j):
                if float(table[j, i]) > NOISE * largest:
                    return j, i
        return None


_example("no leak", ())
_example("leaks from the next token alone", ((1, 0), (2, 1)))
_example("small leaks", ((3, 2), (4, 1)), smallest_leak=0.001)
_example("the last token leaks", ((5, 3), (5, 1)))
_example("large numbers with large rounding errors", ((4, 2),), scale=1e6)
_example("small numbers", ((3, 1), (4, 0)), noise=0.0, scale=1e-7)
_example("large numbers without a leak", (), noise=1e-7, scale=1e6)
first_leak.example("numbers near the limit", _table_near_the_limit)
first_leak.example("an inverted mask", lambda draw: (_table_with_leaks(draw, 6, ())[0].T.contiguous(),))
first_leak.example("one token", lambda draw: (draw(1, 1).abs(),))


@first_leak.wrong(stage="pairs")
class Pairs:
    def earlier_tokens(table):
        """You look above the diagonal, where an *earlier* token moves a later output. This is what attention does. A
        leak is at j > i."""
        return torch.ones_like(table).triu(1).bool()

    def own_token_too(table):
        """You count pairs that are not leaks, among them the diagonal. A token moves its own output, through the
        residual connection, and later outputs, through attention. A leak is at j > i."""
        return torch.ones_like(table).tril().bool()

    def neighbours_left_out(table):
        """You leave out the pairs right below the diagonal, where token i + 1 moves output i. Output i has to predict
        this very token, so this leak does the most harm."""
        return torch.ones_like(table).tril(-2).bool()

    def next_token_alone(table):
        """You check only the next token, on one diagonal. A leak can come from any later token."""
        return torch.ones_like(table).tril(-1).triu(-1).bool()

    def last_token_alone(table):
        """You check only the last row, which is the row of the last token. In a model that looks ahead only inside
        blocks of tokens, the last token moves no output of a different block. Check every row."""
        last = torch.zeros_like(table).bool()
        last[-1, :-1] = True
        return last


@first_leak.wrong(stage="moved")
class Moved:
    def above_zero(table):
        """You count every number above 0 as a leak, but rounding errors are above 0 too. The docstring says which share
        of the largest entry a leak must exceed."""
        return table > 0

    def absolute(table):
        """You compare with a fixed number. In a table of large numbers, rounding errors exceed this number; in a table
        of small numbers, a leak is below it. Compare with the largest entry."""
        return table > NOISE

    def not_zero(table):
        """You compare with 0 to within a fixed tolerance, as `allclose` does. In a table of small numbers, every leak
        is within this tolerance. Compare with the largest entry."""
        return ~torch.isclose(table, torch.zeros_like(table))

    def one_per_cent(table):
        """Your limit is too high: you miss a leak of less than one per cent of the largest entry. The docstring says a
        hundred-thousandth."""
        return table > 0.01 * table.max()

    def one_per_mille(table):
        """Your limit is too high: you miss a leak of less than a thousandth of the largest entry. The docstring says a
        hundred-thousandth."""
        return table > 0.001 * table.max()

    def one_millionth(table):
        """Your limit is too low: you count entries below a hundred-thousandth of the largest entry. How many zeros does
        1e-5 have?"""
        return table > 1e-6 * table.max()

    def of_the_mean(table):
        """You compare with the mean of the table, which is below its largest entry, so your limit is too low."""
        return table > NOISE * table.mean()

    def of_the_largest_below(table):
        """You compare with the largest entry *below the diagonal*. Without a leak, this entry is a rounding error, so
        you count rounding errors as leaks. Compare with the largest entry of the whole table."""
        return table > NOISE * table.tril(-1).max()

    def of_the_row(table):
        """You compare with the largest entry of the same row. If all entries of a row are rounding errors, the largest
        is one too. Compare with the largest entry of the whole table."""
        off_diagonal = table - table.diag().diag()
        return table > NOISE * off_diagonal.amax(dim=-1, keepdim=True)


@first_leak.wrong(stage="choose")
class Choose:
    def output_first(leaks):
        """Of several leaks, you return the one with the smallest output. The task asks for the smallest token first,
        then the smallest output."""
        found = sorted(leaks.nonzero().tolist(), key=lambda pair: pair[::-1])
        return tuple(found[0]) if found else None

    def exchanged(leaks):
        """You return the two numbers in the wrong order. The token j, a row of the table, comes first, then the output
        i."""
        found = leaks.nonzero().tolist()
        return tuple(found[0][::-1]) if found else None

    def the_last(leaks):
        """You return the last leak, but the task asks for the first. Does your loop continue after it has found a
        leak?"""
        found = leaks.nonzero().tolist()
        return tuple(found[-1]) if found else None

    def all_of_them(leaks):
        """You return all leaks. The task asks for the first leak, as a pair: the smallest token j, then the smallest
        output i."""
        return [tuple(pair) for pair in leaks.nonzero().tolist()] or None

    def how_many(leaks):
        """You return the number of leaks. The task asks where the first leak is, as a pair (j, i)."""
        return int(leaks.sum())

    def origin_for_none(leaks):
        """Without a leak, you return (0, 0), which is itself a pair of the table. Return `None` instead."""
        found = leaks.nonzero().tolist()
        return tuple(found[0]) if found else (0, 0)

    def empty_for_none(leaks):
        """Without a leak, you return something empty, such as `()`. The docstring requires `None`."""
        found = leaks.nonzero().tolist()
        return tuple(found[0]) if found else ()

    def whether(leaks):
        """You return whether there is a leak. The task asks where the first leak is, as a pair (j, i)."""
        return bool(leaks.any())

    def error_for_none(leaks):
        """Without a leak, your function raises an error: it selects the first leak although there is none. Check first
        whether there is a leak."""
        return tuple(leaks.nonzero().tolist()[0])


@first_leak.wrong
class WrongAnswers:
    def largest(table):
        """You return the largest leak. The task asks for the first leak: the smallest token, then the smallest
        output."""
        leaks = torch.where(
            pairs_with_later_token(table) & entries_above_rounding(table), table, torch.zeros_like(table)
        )
        return divmod(int(leaks.argmax()), len(table)) if leaks.any() else None
