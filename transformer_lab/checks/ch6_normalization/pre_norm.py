"""A residual connection with the norm in front of the part."""

import torch

from ..exercise import exercise
from .post_norm import Output, PlacesOfTheNorm, Total, sublayer_and_norm_unchanged, sublayer_of_zeros
from .residual import AXES, added, change_of, connected, norm_of, nothing


@exercise(
    inputs=connected,
    axes=AXES,
    hints=(
        "Pre-norm: the norm comes before something. Before what, and is there a path from input to output that passes "
        "no norm?",
        "The normalized tokens are for the sublayer only. The tensor that is added to the sublayer's result is `x` as "
        "it came in.",
        "`return … + …(…(…))`, with `x` in two of the places",
    ),
)
def pre_norm(x, sublayer, norm, *, normalized=norm_of, change=change_of, total=added):
    """Connect a part as GPT-2 does, with the norm in front of the part: (batch, seq, d_model) stays."""
    return total(x, change(normalized(x, norm), sublayer))


pre_norm.probe(sublayer_of_zeros, plain=True)
pre_norm.probe(sublayer_and_norm_unchanged)


@pre_norm.right
class RightAnswers:
    def step_by_step(x, sublayer, norm):
        residual = x
        x = norm(x)
        x = sublayer(x)
        return torch.add(x, residual)

    def on_a_copy_of_x(x, sublayer, norm):
        y = x.clone()
        y += sublayer(norm(x))
        return y

    def by_einsum_of_both(x, sublayer, norm):
        return torch.einsum("nbsd->bsd", torch.stack([sublayer(norm(x)), x]))


@pre_norm.property
def x_untouched(function, x, sublayer, norm):
    """With a sublayer that returns zeros, `x` comes out untouched."""
    return bool(torch.allclose(function(x, nothing, norm), x, atol=1e-5))


@pre_norm.property
def sublayer_gets_the_norm(function, x, sublayer, norm):
    """The sublayer is given tokens that have been through the norm."""
    given = []
    function(x, lambda y: given.append(y) or sublayer(y), norm)
    return any(torch.allclose(y, norm(x), atol=1e-5) for y in given)


@pre_norm.wrong(stage="normalized")
class Normalized:
    def sublayer_given_x(x, norm):
        """The sublayer is given `x` as it is, and no norm acts anywhere. The stream grows with every layer, so each
        sublayer would be given larger numbers than the one before. The norm's place in pre-norm is in front of the
        sublayer."""
        return x


@pre_norm.wrong(stage="normalized", alone=True)
class NormalizedAlone:
    def norm_not_called(x, norm):
        """The sublayer is given the function `norm` itself, and not what that returns. What is missing after its
        name?"""
        return norm


@pre_norm.wrong(stage="change")
class Change:
    def sublayer_skipped(normalized, sublayer):
        """The sublayer is never called: the norm of `x` is what you add to `x`. The norm is there for the sublayer, and
        the sublayer's result is the change. Say it from the inside out: which function comes first, and which
        second?"""
        return normalized

    def sublayer_called_twice(normalized, sublayer):
        """The sublayer is called twice in a row: its own result goes into it once more. That happens where a result
        keeps the old name, and the line that adds calls the sublayer again. In pre-norm it is called once, on the norm
        of `x`."""
        return sublayer(sublayer(normalized))


@pre_norm.wrong
class WrongAnswers:
    def post_norm_instead(x, sublayer, norm):
        """This is post-norm: the norm acts on the sum, so that no path from input to output goes past it. In pre-norm
        the norm stands in front of the sublayer, and the sum leaves without one. Test: with a sublayer that returns
        zeros, `x` must come out untouched."""
        return norm(x + sublayer(x))

    def sublayer_then_norm(x, sublayer, norm):
        """The sublayer comes first, the norm last, and nothing is added: the order of post-norm without its residual
        connection. In pre-norm the sublayer is given the norm of `x`, and its result is added to `x`."""
        return norm(sublayer(x))

    def stream_normed(x, sublayer, norm):
        """The norm's result has taken the place of `x`: it goes into the sublayer, and it is also what the change is
        added to. So what came in is lost: with a sublayer that returns zeros, the norm of `x` comes out, where it
        should be `x`. That happens where `x = norm(x)` stands before the residual is taken."""
        x = norm(x)
        return x + sublayer(x)

    def norm_added_as_well(x, sublayer, norm):
        """Three things are added up: `x`, the sublayer's result, and the norm of `x` as well. With a sublayer that
        returns zeros, `x` alone must come out. The norm's result is for the sublayer and for nothing else."""
        normalized = norm(x)
        return x + normalized + sublayer(normalized)

    def change_added_to(x, sublayer, norm):
        """Your sum is written into the tensor that the sublayer returned. A sublayer may return its very input, as
        dropout does outside training, and so may a norm that is switched off: then `x` itself has been changed, and the
        caller finds other numbers there. `+=` and operations whose names end in an underscore write so. Make the sum a
        new tensor."""
        change = sublayer(norm(x))
        change += x
        return change

    def norm_around_the_sublayer(x, sublayer, norm):
        """The norm acts twice: on what goes into the sublayer, and on what it returns. Some models do so (Gemma 2
        does). In pre-norm there is one norm, in front of the sublayer, and its result is added as it is."""
        return x + norm(sublayer(norm(x)))

    def sum_into_the_sublayer(x, sublayer, norm):
        """`x` and its norm are added up, the sum goes through the sublayer, and what comes out is returned. In pre-norm
        the sum is the last thing that happens, so that `x` has a path that meets neither. What is added to `x`, and
        when?"""
        return sublayer(x + norm(x))

    def normed_twice(x, sublayer, norm):
        """The norm acts twice: `x` is replaced by its norm, and that goes through the norm again on its way into the
        sublayer. So what came in is lost, and the change is added to the normalized tokens. One line too many says
        `norm`: which one?"""
        x = norm(x)
        return x + sublayer(norm(x))

    def stream_normed_first_and_last(x, sublayer, norm):
        """The norm acts first and last: `x` is replaced by its norm before anything else, and the sum goes through it
        again. In pre-norm its result goes into the sublayer and nowhere else, and the sum leaves as it is."""
        x = norm(x)
        return norm(x + sublayer(x))

    def post_norm_added(x, sublayer, norm):
        """This is post-norm with `x` added once more: the norm acts on the sum of `x` and the change, and then `x` is
        added again. In pre-norm the norm stands in front of the sublayer, and one sum is the last thing that
        happens."""
        return x + norm(x + sublayer(x))

    def norm_alone(x, sublayer, norm):
        """You return the norm of `x` and nothing else: the sublayer is not called, and nothing is added. Three things
        meet here, `x`, the norm and the sublayer. Which of them acts on which, and what is the sum of two?"""
        return norm(x)

    def copy_added_to(x, sublayer, norm):
        """{The result is right, and} training stops with an error: the change is written into a tensor that the norm
        has read before, such as a copy of `x`. To go backwards through the norm, PyTorch needs the numbers as they
        were. A sum such as `x + …` makes a new tensor, and no copy is needed."""
        y = x.clone()
        y += sublayer(norm(y))
        return y

    def norm_and_x_into_the_sublayer(x, sublayer, norm):
        """The sublayer is given the sum of `x` and its norm, and what it returns is added to `x`. In pre-norm the
        sublayer is given the norm of `x` alone. How many sums should there be?"""
        return x + sublayer(x + norm(x))

    def name_lost_and_called_twice(x, sublayer, norm):
        """The sublayer is called twice, and what is added up are its first result and its second, each of a norm. That
        happens where `x = sublayer(norm(x))` gives the name to the result, and the next line goes on with `x`. In
        pre-norm it is called once, and `x` stays what came in."""
        x = sublayer(norm(x))
        return x + sublayer(norm(x))

    def first_and_second_result_added(x, sublayer, norm):
        """The sublayer is called twice, and what is added up are its first result and its second. That happens where `x
        = sublayer(…)` gives the name to the result, and the next line goes on with `x`. In pre-norm it is called once,
        and `x` stays what came in."""
        x = sublayer(norm(x))
        return x + sublayer(x)

    def run_twice(x, sublayer, norm):
        """You do it twice: the sum goes through the norm and the sublayer once more, and a second change is added. One
        layer has one norm, one sublayer and one sum. Which line is there a second time?"""
        x = x + sublayer(norm(x))
        return x + sublayer(norm(x))


# Mistakes that post-norm shares
pre_norm.mistake(Output.norm_of_your_own, stage="normalized")
pre_norm.wrong(Total, stage="total")
pre_norm.wrong(PlacesOfTheNorm)
