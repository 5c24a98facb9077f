"""Who moves when one token changes: the table of tokens and outputs."""

from itertools import pairwise

import torch

from ..exercise import exercise
from .tiny_models import Mixing


def _model_and_tokens(draw, seq=5, features=3, vocab=7):
    return _seeing(torch.tril, draw, seq, features, vocab)


def _seeing(mask, draw, seq=5, features=3, vocab=7):
    tokens = torch.randint(1, vocab, (1, seq), generator=draw.generator)
    tokens[0, seq // 2] = 0  # one token is 0 already
    return Mixing(draw(vocab, features), mask(0.5 + draw(seq, seq).abs()), draw(features)), tokens


def replaced(tokens, j):
    """Replace one token, by 0 or by 1, in a copy of the tokens."""
    other = tokens.clone()
    other[:, j] = (tokens[:, j] == 0).long()
    return other


def moved(outputs, right):
    """Measure how far each output moved: its feature that changed most."""
    return (outputs - right).abs().amax(dim=(0, 2))


@exercise(
    inputs=_model_and_tokens,
    axes={"tokens": "1 seq", "return": "seq seq"},
    hints=(
        "You change token 2 alone, and compare the outputs before and after. How many numbers does that give, and "
        "what does each of them belong to?",
        "Compute the right outputs once. For each token, take a copy of the tokens, change that one, and compare with "
        "the right outputs: the largest absolute difference over the features. Each token gives a row.",
        "`right = model(tokens)`; in a loop over `j`: `other = tokens.clone()`, `other[:, j] = …`, "
        "`rows.append((model(other) - right).abs().amax(…))`; then `torch.stack(rows)`",
    ),
)
def influence(model, tokens, *, replace=replaced, measure=moved):
    """Return, at (j, i), how far output i moves when token j is replaced."""
    right = model(tokens)
    return torch.stack([measure(model(replace(tokens, j)), right) for j in range(tokens.shape[1])])


@influence.right
class RightAnswers:
    def all_at_once(model, tokens):
        outputs = [model(replaced(tokens, j)) for j in range(tokens.shape[1])]
        return (torch.cat(outputs) - model(tokens)).abs().amax(dim=-1)

    def number_by_number(model, tokens):
        n = tokens.shape[1]
        table = torch.zeros(n, n)
        right = model(tokens)[0]
        for j in range(n):
            other = model(replaced(tokens, j))[0]
            for i in range(n):
                table[j, i] = max(abs(float(a) - float(b)) for a, b in zip(other[i], right[i]))
        return table


influence.example("a model that sees the future", lambda draw: _seeing(torch.triu, draw))
influence.example("a model that sees everything", lambda draw: _seeing(torch.clone, draw))
influence.example("a window of two tokens", lambda draw: _seeing(lambda mixing: mixing.tril().triu(-1), draw))
influence.example("as many features as tokens", seq=4, features=4)


@influence.wrong
class TheTable:
    def rows_and_columns_exchanged(model, tokens):
        """Rows and columns are exchanged: {your numbers are right, and} they stand at (i, j). Row j belongs to the
        token that is replaced, column i to the output that is watched. Which index do you stack over?"""
        return influence.reference(model, tokens).T

    def diagonal_left_out(model, tokens):
        """The diagonal is 0. An output depends on its own token, even where attention does not look at it: the
        residual connection carries it. What do you do with i = j?"""
        return influence.reference(model, tokens).fill_diagonal_(0)

    def yes_or_no(model, tokens):
        """Your table says whether an output moved, as 1 or 0. How far it moved is lost, and with it the difference
        between a leak and rounding. What do you return before you compare with 0?"""
        return (influence.reference(model, tokens) > 0).float()

    def with_the_batch(model, tokens):
        """Your table has an axis too many, that of the batch. There is one text: the axis has size 1 and can go, with
        the features, in one maximum."""
        return influence.reference(model, tokens)[:, None]

    def rows_sum_to_one(model, tokens):
        """Each row is divided by its sum. The table then says how the movement is shared out, and no longer how far an
        output moved."""
        table = influence.reference(model, tokens)
        return table / table.sum(dim=-1, keepdim=True)

    def compared_with_the_one_before(model, tokens):
        """From the second row on you compare with the outputs of the replacement before, in which another token is
        replaced. Compare each time with the outputs of the tokens as they were."""
        outputs = [model(tokens), *(model(replaced(tokens, j)) for j in range(tokens.shape[1]))]
        return torch.stack([moved(after, before) for before, after in pairwise(outputs)])

    def last_row_alone(model, tokens):
        """One row comes back, that of the last token. Each token gets its turn: what is outside your loop that belongs
        into it, or the reverse?"""
        return influence.reference(model, tokens)[-1:]


@influence.wrong(stage="replace")
class TheTokens:
    def always_by_zero(tokens, j):
        """The token is replaced by 0 also where it is 0 already. Then nothing changes, nothing moves, and a leak is
        missed. Take a token that is different by construction."""
        other = tokens.clone()
        other[:, j] = 0
        return other

    def all_from_here_on(tokens, j):
        """You replace token j and all that follow it. Then you cannot say which of them moved an output. Replace one
        at a time."""
        return torch.cat([tokens[:, :j], replaced(tokens, slice(None))[:, j:]], dim=1)

    def all_up_to_here(tokens, j):
        """You replace token j and all tokens before it: is one copy changed again and again? Each experiment starts
        from the tokens as they were, so take the copy inside the loop."""
        return torch.cat([replaced(tokens, slice(None))[:, : j + 1], tokens[:, j + 1 :]], dim=1)

    def the_next_one(tokens, j):
        """Row j belongs to another token: you replace the one after it. Where does your loop begin to count?"""
        return replaced(tokens, (j + 1) % tokens.shape[1])

    def next_number(tokens, j):
        """You replace the token by the number that follows it. The docstring says by which: 0, or 1 where the token
        is 0."""
        other = tokens.clone()
        other[:, j] += 1
        return other % 7

    def by_one(tokens, j):
        """The token is replaced by 1 everywhere. The docstring says: by 0, and by 1 only where the token is 0."""
        other = tokens.clone()
        other[:, j] = 1
        return other


@influence.wrong(stage="measure")
class TheMeasure:
    def signs_kept(outputs, right):
        """The largest difference is taken with its sign: where all features became smaller, your number is negative.
        Which operation comes before the maximum?"""
        return (outputs - right).amax(dim=(0, 2))

    def summed(outputs, right):
        """The differences of all features are added up. The task asks for the one that changed most."""
        return (outputs - right).abs().sum(dim=(0, 2))

    def averaged(outputs, right):
        """You take the mean of the features' differences. The task asks for the one that changed most."""
        return (outputs - right).abs().mean(dim=(0, 2))

    def length(outputs, right):
        """You take the length of the difference, a root of a sum of squares. The task asks for the feature that changed
        most."""
        return (outputs - right).norm(dim=-1)[0]

    def squared(outputs, right):
        """The largest *square* of a difference comes back. Its order is the same, its size is not."""
        return (outputs - right).square().amax(dim=(0, 2))

    def first_feature(outputs, right):
        """Only the first feature of each output is compared. A change can be in another one."""
        return (outputs - right).abs()[0, :, 0]

    def largest_features_compared(outputs, right):
        """You take the largest feature of each output first, and then the difference. Two outputs can differ in every
        feature and have the same largest one. Subtract first."""
        return (outputs.amax(dim=(0, 2)) - right.amax(dim=(0, 2))).abs()

    def over_the_sequence(outputs, right):
        """The maximum runs over the outputs, and what is left is one number for each feature. Over which axes must it
        run so that one number for each output is left?"""
        return (outputs - right).abs().amax(dim=(0, 1))

    def relative(outputs, right):
        """The difference is divided by the right output. The task asks how far the output moved, in its own
        units."""
        return ((outputs - right).abs() / right.abs()).amax(dim=(0, 2))

    def after_a_softmax(outputs, right):
        """You compare probabilities: a softmax is taken of both outputs first. The task asks for the outputs
        themselves."""
        return (outputs.softmax(-1) - right.softmax(-1)).abs().amax(dim=(0, 2))
