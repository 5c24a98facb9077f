"""Which outputs move when one token changes: a table of tokens and outputs."""

from itertools import pairwise

import torch

from ..exercise import exercise
from .tiny_models import MixingModel


def _model_and_tokens(draw, seq=5, features=3, vocab=7):
    return _model_with_mask(torch.tril, draw, seq, features, vocab)


def _model_with_mask(mask, draw, seq=5, features=3, vocab=7):
    tokens = torch.randint(1, vocab, (1, seq), generator=draw.generator)
    tokens[0, seq // 2] = 0  # one token is 0 already
    return MixingModel(draw(vocab, features), mask(0.5 + draw(seq, seq).abs()), draw(features)), tokens


def replace_token(tokens, j):
    """Replace one token, by 0 or by 1, in a copy of the tokens."""
    other = tokens.clone()
    other[:, j] = (tokens[:, j] == 0).long()
    return other


def largest_change(outputs, right):
    """Measure how far each output moved: the change in the feature that changed most."""
    return (outputs - right).abs().amax(dim=(0, 2))


@exercise(
    inputs=_model_and_tokens,
    axes={"tokens": "1 seq", "return": "seq seq"},
    hints=(
        "You change token 2 alone and compare the outputs before and after. How many differences do you get, and to "
        "which output does each difference belong?",
        "Compute the outputs of the unchanged tokens once. For each token, copy the tokens, change this one token, and "
        "compare the new outputs with those of the unchanged tokens: find the largest absolute difference over the "
        "features. The table has one row for each token.",
        "`right = model(tokens)`; in a loop over `j`: `other = tokens.clone()`, `other[:, j] = …`, "
        "`rows.append((model(other) - right).abs().amax(…))`; then `torch.stack(rows)`",
    ),
)
def influence(model, tokens, *, replace=replace_token, measure=largest_change):
    """Return a table: entry (j, i) says how far output i moves when token j is replaced."""
    right = model(tokens)
    return torch.stack([measure(model(replace(tokens, j)), right) for j in range(tokens.shape[1])])


@influence.right
class RightAnswers:
    def all_at_once(model, tokens):
        outputs = [model(replace_token(tokens, j)) for j in range(tokens.shape[1])]
        return (torch.cat(outputs) - model(tokens)).abs().amax(dim=-1)

    def number_by_number(model, tokens):
        n = tokens.shape[1]
        table = torch.zeros(n, n)
        right = model(tokens)[0]
        for j in range(n):
            other = model(replace_token(tokens, j))[0]
            for i in range(n):
                table[j, i] = max(abs(float(a) - float(b)) for a, b in zip(other[i], right[i]))
        return table


influence.example("a model that sees the future", lambda draw: _model_with_mask(torch.triu, draw))
influence.example("a model that sees everything", lambda draw: _model_with_mask(torch.clone, draw))
influence.example("a window of two tokens", lambda draw: _model_with_mask(lambda mixing: mixing.tril().triu(-1), draw))
influence.example("as many features as tokens", seq=4, features=4)


@influence.wrong
class WrongAnswers:
    def rows_and_columns_exchanged(model, tokens):
        """Rows and columns are exchanged: {your numbers are right, but} the number for (j, i) is stored at (i, j). Row
        j belongs to the token that is replaced, column i to the output that is compared. Over which index do you
        stack?"""
        return influence.reference(model, tokens).T

    def diagonal_left_out(model, tokens):
        """Your diagonal is 0. An output depends on its own token through the residual connection, even where attention
        does not look at the token. What do you compute for i = j?"""
        return influence.reference(model, tokens).fill_diagonal_(0)

    def yes_or_no(model, tokens):
        """Your table says whether an output moved, as 1 or 0. The size of the movement is lost, and so is the
        difference between a leak and rounding. Which number do you compare with 0? Return that number."""
        return (influence.reference(model, tokens) > 0).float()

    def with_the_batch(model, tokens):
        """Your table has an extra axis, the batch axis. There is one text, so this axis has size 1: one maximum can
        remove it together with the features."""
        return influence.reference(model, tokens)[:, None]

    def rows_sum_to_one(model, tokens):
        """You divide each row by its sum. The table then holds each output's share of the movement, not how far the
        output moved."""
        table = influence.reference(model, tokens)
        return table / table.sum(dim=-1, keepdim=True)

    def compared_with_the_one_before(model, tokens):
        """From the second row on, you compare with the outputs of the previous replacement, in which a different token
        is replaced. Compare each time with the outputs of the original tokens."""
        outputs = [model(tokens), *(model(replace_token(tokens, j)) for j in range(tokens.shape[1]))]
        return torch.stack([largest_change(after, before) for before, after in pairwise(outputs)])

    def last_row_alone(model, tokens):
        """You return one row, the row of the last token. The table needs a row for each token. Which line is outside
        your loop but belongs inside it, or the reverse?"""
        return influence.reference(model, tokens)[-1:]


@influence.wrong(stage="replace")
class Replace:
    def always_by_zero(tokens, j):
        """You replace the token by 0 even where it is 0 already. Then nothing changes, no output moves, and you miss a
        leak. Use a replacement that always differs from the token."""
        other = tokens.clone()
        other[:, j] = 0
        return other

    def all_from_here_on(tokens, j):
        """You replace token j and all later tokens, so you cannot say which of them moved an output. Replace one token
        at a time."""
        return torch.cat([tokens[:, :j], replace_token(tokens, slice(None))[:, j:]], dim=1)

    def all_up_to_here(tokens, j):
        """You replace token j and all tokens before it. Do you change one copy again and again? Each experiment begins
        with the original tokens, so copy them inside the loop."""
        return torch.cat([replace_token(tokens, slice(None))[:, : j + 1], tokens[:, j + 1 :]], dim=1)

    def the_next_one(tokens, j):
        """Row j belongs to the wrong token: you replace the token after token j. At which number does your loop
        begin?"""
        return replace_token(tokens, (j + 1) % tokens.shape[1])

    def next_number(tokens, j):
        """You replace the token by the next number. The docstring says which number to use: 0, or 1 where the token is
        0."""
        other = tokens.clone()
        other[:, j] += 1
        return other % 7

    def by_one(tokens, j):
        """You replace every token by 1. The docstring says to use 0, and to use 1 only where the token is 0."""
        other = tokens.clone()
        other[:, j] = 1
        return other


@influence.wrong(stage="measure")
class Measure:
    def signs_kept(outputs, right):
        """You return the largest difference with its sign: if all features became smaller, your number is negative.
        Which operation comes before the maximum?"""
        return (outputs - right).amax(dim=(0, 2))

    def summed(outputs, right):
        """You add up the differences of all features. The task asks for the feature that changed most."""
        return (outputs - right).abs().sum(dim=(0, 2))

    def averaged(outputs, right):
        """You average the differences of all features. The task asks for the feature that changed most."""
        return (outputs - right).abs().mean(dim=(0, 2))

    def length(outputs, right):
        """You compute the norm of the difference, the root of a sum of squares. The task asks for the feature that
        changed most."""
        return (outputs - right).norm(dim=-1)[0]

    def squared(outputs, right):
        """You return the largest *square* of a difference. Squaring keeps the order of the differences, but changes
        their size."""
        return (outputs - right).square().amax(dim=(0, 2))

    def first_feature(outputs, right):
        """You compare only the first feature of each output. If only a different feature changes, you miss the
        change."""
        return (outputs - right).abs()[0, :, 0]

    def largest_features_compared(outputs, right):
        """You find the largest feature of each output first, and then subtract. Two outputs can differ in every feature
        and still have the same largest feature. Subtract first."""
        return (outputs.amax(dim=(0, 2)) - right.amax(dim=(0, 2))).abs()

    def over_the_sequence(outputs, right):
        """You compute the maximum over the outputs, which leaves one number for each feature. Over which axes must the
        maximum run to leave one number for each output?"""
        return (outputs - right).abs().amax(dim=(0, 1))

    def relative(outputs, right):
        """You divide the difference by the output for the original tokens. The task asks how far the output moved, in
        its own units."""
        return ((outputs - right).abs() / right.abs()).amax(dim=(0, 2))

    def after_a_softmax(outputs, right):
        """You compare probabilities: you apply a softmax to both outputs first. The task asks you to compare the
        outputs themselves."""
        return (outputs.softmax(-1) - right.softmax(-1)).abs().amax(dim=(0, 2))
