"""How far the outputs computed in parts, with a cache, are from the outputs computed at once."""

import torch

from ..exercise import exercise
from .tiny_models import CachedStep, MixingModel


def _model_and_step(draw, seq=7, features=3, vocab=9):
    return _make_inputs(draw, seq=seq, features=features, vocab=vocab)


def _make_inputs(draw, seq=7, features=3, vocab=9, parts=None, distort=None, scale=1.0):
    model = MixingModel(scale * draw(vocab, features), (0.5 + draw(seq, seq).abs()).tril(), draw(features))
    tokens = torch.randint(vocab, (1, seq), generator=draw.generator)
    long_parts = [3, 2] if seq > 5 else []
    return model, CachedStep(model, distort), tokens, list(parts or long_parts + [1] * (seq - sum(long_parts)))


def _example(name, **changes):
    same_with_cache.example(name, lambda draw: _make_inputs(draw, **changes))


def offset_between(first, last, sign=1.0):
    """Return a function that changes the outputs at positions ``first`` to ``last`` by 0.4, all features in the same
    direction."""

    def distort(out, start):
        places = torch.arange(start, start + out.shape[1], device=out.device)
        return out + sign * 0.4 * ((places >= first) & (places <= last))[:, None]

    return distort


def add_tilted_errors(out, start):
    """Add errors whose sum is 0, larger at later positions."""
    places = torch.arange(start, start + out.shape[1], device=out.device)[:, None]
    return out + 0.1 * places * torch.linspace(-1, 1, out.shape[-1], device=out.device)


def add_errors_by_length(out, start):
    """Add errors that grow with the length of the part, like the errors of a mask that is right for one length only."""
    return out + 0.1 * out.shape[1] * (1 + start)


def cut(tokens, parts):
    """Cut the tokens into parts of these lengths."""
    return tokens.split(parts, dim=1)


def run_all_steps(step, pieces):
    """Run the parts one after another, each with the cache of the previous part."""
    cache, outputs = None, []
    for piece in pieces:
        output, cache = step(piece, cache)
        outputs.append(output)
    return torch.cat(outputs, dim=1)


def largest_gap(in_parts, at_once):
    """Take the largest absolute difference."""
    return (in_parts - at_once).abs().max()


@exercise(
    inputs=_model_and_step,
    axes={"tokens": "1 seq"},
    hints=(
        "Which two things does `step` return after the first part, and which of the two does the next call need?",
        "Split the tokens into the parts. Run the parts in order: each call gets the cache that the previous call "
        "returned, and the first call gets `None`. Join the outputs along the tokens, and compare them with the "
        "model's own outputs.",
        "`for piece in tokens.split(parts, dim=…):`, `output, cache = step(piece, cache)`, then "
        "`(torch.cat(outputs, dim=…) - model(tokens)).abs().max()`",
    ),
)
def same_with_cache(model, step, tokens, parts, *, pieces=cut, run=run_all_steps, gap=largest_gap):
    """Return the largest difference between the outputs computed in parts, with a cache, and those computed at once."""
    return float(gap(run(step, pieces(tokens, parts)), model(tokens)))


@same_with_cache.right
class RightAnswers:
    def part_by_part(model, step, tokens, parts):
        expected, cache, start, largest = model(tokens), None, 0, 0.0
        for length in parts:
            output, cache = step(tokens[:, start : start + length], cache)
            largest = max(largest, float((output - expected[:, start : start + length]).abs().max()))
            start += length
        return largest


_example("a step that is wrong", distort=offset_between(0, 6))
_example("a step that is wrong in the first part", distort=offset_between(0, 2))
_example("a step that is wrong in the middle", distort=offset_between(3, 4))
_example("a step that is wrong at the last token", distort=offset_between(6, 6))
_example("a step whose outputs are too small", distort=offset_between(2, 5, -1.0))
_example("errors that add up to 0", distort=add_tilted_errors)
_example("one token at a time", parts=(1,) * 7, distort=offset_between(4, 5))
_example("one part", parts=(7,), distort=add_tilted_errors)
_example("parts of equal length, and a shorter last part", parts=(2, 2, 2, 1), distort=add_tilted_errors)
_example("errors that depend on the length of a part", distort=add_errors_by_length)
_example("a short part first", parts=(1, 4, 2), distort=add_errors_by_length)
_example("a long part last", parts=(2, 5), distort=add_errors_by_length)
_example("a last part that begins wrong", parts=(4, 3), distort=offset_between(4, 4))
_example("large outputs", scale=1000.0, distort=offset_between(5, 6))


@same_with_cache.wrong(stage="pieces")
class Pieces:
    def first_length_for_all(tokens, parts):
        """You cut all parts to the length of the first part. `split` accepts a number or a list: pass the whole
        list."""
        return tokens.split(parts[0], dim=1)

    def one_at_a_time(tokens, parts):
        """You run one token at a time, whatever `parts` says. A mistake that shows only in parts of several tokens then
        stays hidden."""
        return tokens.split(1, dim=1)

    def all_at_once(tokens, parts):
        """You pass all tokens in one part. There are then as many queries as keys, so a causal mask that is aligned
        with the wrong corner of the table is right by chance. Cut the tokens into parts."""
        return (tokens,)

    def as_many_parts(tokens, parts):
        """You cut the tokens into nearly equal parts, as many as `parts` has numbers. The numbers in `parts` are the
        lengths."""
        return tokens.tensor_split(len(parts), dim=1)

    def reversed_lengths(tokens, parts):
        """You use the lengths in reverse: the first part has the last length. Use them in their order."""
        return tokens.split(parts[::-1], dim=1)


@same_with_cache.wrong(stage="run")
class Run:
    def cache_forgotten(step, pieces):
        """Every part begins with `None`, so each call loses the earlier tokens. Pass on the cache that `step`
        returned."""
        return torch.cat([step(piece, None)[0] for piece in pieces], dim=1)

    def first_cache_kept(step, pieces):
        """You pass the cache of the first call to all later calls. Each call of `step` returns a longer cache: pass the
        newest cache."""
        output, cache = step(pieces[0], None)
        return torch.cat([output, *(step(piece, cache)[0] for piece in pieces[1:])], dim=1)

    def newest_first(step, pieces):
        """You join the outputs in reverse: each new output is put in front. Append each output after the earlier
        outputs."""
        cache, outputs = None, []
        for piece in pieces:
            output, cache = step(piece, cache)
            outputs.insert(0, output)
        return torch.cat(outputs, dim=1)


@same_with_cache.wrong(stage="gap")
class Gap:
    def signed(in_parts, at_once):
        """You return the largest difference with its sign: an output that is too small has a negative difference, which
        you miss. Take the absolute value first."""
        return (in_parts - at_once).max()

    def signed_the_other_way(in_parts, at_once):
        """You return the largest difference with its sign: an output that is too large has a negative difference, which
        you miss. Take the absolute value first."""
        return (at_once - in_parts).max()

    def averaged(in_parts, at_once):
        """You average the differences. In a long text, one wrong token hardly changes the mean. Take the largest
        difference."""
        return (in_parts - at_once).abs().mean()

    def summed(in_parts, at_once):
        """You add up the differences. The sum of the rounding errors then grows with the length of the text. Take the
        largest difference."""
        return (in_parts - at_once).abs().sum()

    def length_of_all(in_parts, at_once):
        """You compute the norm of the difference, the root of a sum of squares. The task asks for the largest
        difference."""
        return (in_parts - at_once).norm()

    def mean_square(in_parts, at_once):
        """You average the squares. The square of a small error is tiny. Take the largest absolute difference."""
        return (in_parts - at_once).square().mean()

    def of_sums(in_parts, at_once):
        """You compare sums, in which errors of opposite signs cancel. Subtract number by number first."""
        return (in_parts.sum() - at_once.sum()).abs()

    def of_means(in_parts, at_once):
        """You compare means, in which errors of opposite signs cancel. Subtract number by number first."""
        return (in_parts.mean() - at_once.mean()).abs()

    def of_largest(in_parts, at_once):
        """You compare the largest output of the parts with the largest output of the model. Subtract number by number
        first, then take the largest difference."""
        return (in_parts.max() - at_once.max()).abs()

    def last_token_alone(in_parts, at_once):
        """You compare only the last token. You miss a step that is wrong at earlier tokens but right at the last."""
        return (in_parts - at_once)[:, -1].abs().max()

    def first_token_alone(in_parts, at_once):
        """You compare only the first token, which needs no cache. Compare all tokens: a mistake shows where the cache
        is used."""
        return (in_parts - at_once)[:, 0].abs().max()

    def all_but_the_last(in_parts, at_once):
        """You do not compare the last token, and a step can be wrong at the last token alone. Where does your slice
        end?"""
        return (in_parts - at_once)[:, :-1].abs().max()

    def smallest(in_parts, at_once):
        """You return the smallest difference. One right number then hides all wrong numbers. Take the largest
        difference."""
        return (in_parts - at_once).abs().min()

    def relative(in_parts, at_once):
        """You divide the largest difference by the largest output. The task asks for the difference itself."""
        return (in_parts - at_once).abs().max() / at_once.abs().max()

    def relative_each(in_parts, at_once):
        """You divide each difference by its own output. The task asks for the largest difference itself."""
        return ((in_parts - at_once) / at_once).abs().max()

    def whether(in_parts, at_once):
        """You return whether the outputs agree. The task asks how far apart they are: a number distinguishes rounding
        from a mistake."""
        return torch.allclose(in_parts, at_once)


@same_with_cache.wrong
class WrongAnswers:
    def last_part_alone(model, step, tokens, parts):
        """You compare only the last part. Is the comparison outside the loop, or does the loop overwrite `output`?"""
        cache = None
        for piece in tokens.split(parts, dim=1):
            output, cache = step(piece, cache)
        return float((output - model(tokens)[:, -parts[-1] :]).abs().max())

    def first_part_alone(model, step, tokens, parts):
        """You compare only the first part, which has no cache yet. Does your loop end after its first iteration?"""
        output, _ = step(tokens[:, : parts[0]], None)
        return float((output - model(tokens)[:, : parts[0]]).abs().max())

    def yes_or_no(model, step, tokens, parts):
        """You return whether the outputs agree, `True` or `False`. The task asks how far apart they are: a number
        distinguishes rounding from a mistake."""
        in_parts = run_all_steps(step, tokens.split(parts, dim=1))
        return torch.allclose(in_parts, model(tokens), atol=1e-5)

    def each_part_alone(model, step, tokens, parts):
        """You compare each part with the outputs of the model on this part alone, without the earlier tokens. Compare
        with the outputs of the whole text."""
        pieces = tokens.split(parts, dim=1)
        alone = torch.cat([model(piece) for piece in pieces], dim=1)
        return float(largest_gap(run_all_steps(step, pieces), alone))

    def with_itself(model, step, tokens, parts):
        """You compare the parts with what the same `step` returns for all tokens at once. Both results come from the
        same code. Compare with `model(tokens)`."""
        in_parts = run_all_steps(step, tokens.split(parts, dim=1))
        return float((in_parts - step(tokens, None)[0]).abs().max())
