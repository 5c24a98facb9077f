"""A residual connection with the norm in front of the part."""

import torch

from ..exercise import exercise
from .post_norm import Output, PlacesOfTheNorm, Total, sublayer_and_norm_unchanged, sublayer_of_zeros
from .residual import AXES, add_residual, apply_norm, apply_sublayer, residual_inputs, zero_sublayer


@exercise(
    inputs=residual_inputs,
    axes=AXES,
    hints=(
        "Before which step does pre-norm apply its norm, and is there a path from input to output that goes through no "
        "norm?",
        "Only the sublayer reads the normalized tokens. The tensor that is added to the sublayer's result is `x` as "
        "it was passed in.",
        "`return … + …(…(…))`, with `x` in two of the places",
    ),
)
def pre_norm(x, sublayer, norm, *, normalized=apply_norm, change=apply_sublayer, total=add_residual):
    """Connect a part as GPT-2 does, with the norm in front of the part. The result has the shape of ``x``, (batch, seq,
    d_model)."""
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
    """With a sublayer that returns zeros, the result is `x`, unchanged."""
    return bool(torch.allclose(function(x, zero_sublayer, norm), x, atol=1e-5))


@pre_norm.property
def sublayer_gets_the_norm(function, x, sublayer, norm):
    """The sublayer receives normalized tokens."""
    received = []
    function(x, lambda y: received.append(y) or sublayer(y), norm)
    return any(torch.allclose(y, norm(x), atol=1e-5) for y in received)


@pre_norm.wrong(stage="normalized")
class Normalized:
    def sublayer_given_x(x, norm):
        """You pass `x` to the sublayer as it is, and no norm acts anywhere. The stream grows with every layer, so each
        sublayer would receive larger numbers than the one before. Pre-norm has its norm before the sublayer."""
        return x


@pre_norm.wrong(stage="normalized", alone=True)
class NormalizedAlone:
    def norm_not_called(x, norm):
        """You pass the function `norm` itself to the sublayer, not its result. What is missing after the name of the
        function?"""
        return norm


@pre_norm.wrong(stage="change")
class Change:
    def sublayer_skipped(normalized, sublayer):
        """You never call the sublayer: you add `norm(x)` to `x`. The sublayer must receive the norm's result, and the
        sublayer's result is the change. Read the line from the inside out: which function comes first, and which
        second?"""
        return normalized

    def sublayer_called_twice(normalized, sublayer):
        """You call the sublayer twice in a row: its result is passed to the sublayer again. This happens when you
        assign the result to the name of the sublayer's input, and the line with the sum calls the sublayer again. In
        pre-norm, the sublayer is called once, on `norm(x)`."""
        return sublayer(sublayer(normalized))


@pre_norm.wrong
class WrongAnswers:
    def post_norm_instead(x, sublayer, norm):
        """This is post-norm: the norm acts on the sum, so every path from input to output goes through the norm. In
        pre-norm, the norm comes before the sublayer, and nothing normalizes the sum. Test your function with a sublayer
        that returns zeros: the result must be `x`, unchanged."""
        return norm(x + sublayer(x))

    def sublayer_then_norm(x, sublayer, norm):
        """The sublayer comes first, the norm comes last, and nothing is added: this is the order of post-norm without
        its residual connection. In pre-norm, the sublayer receives `norm(x)`, and its result is added to `x`."""
        return norm(sublayer(x))

    def stream_normed(x, sublayer, norm):
        """The norm's result replaces `x`: the sublayer receives it, and the change is added to it. The tensor that came
        in is lost: with a sublayer that returns zeros, your result is `norm(x)`, but it should be `x`. This happens
        when `x = norm(x)` comes before the line that keeps the residual."""
        x = norm(x)
        return x + sublayer(x)

    def norm_added_as_well(x, sublayer, norm):
        """You add three tensors: `x`, the sublayer's result and `norm(x)`. With a sublayer that returns zeros, the
        result must be `x` alone. The norm's result is only for the sublayer."""
        normalized = norm(x)
        return x + normalized + sublayer(normalized)

    def change_added_to(x, sublayer, norm):
        """You write your sum into the tensor that the sublayer returned. A sublayer may return its own input, as
        dropout does outside training, and so may a norm that is switched off: then you change `x` itself, and the
        caller's tensor holds other numbers. `+=` and operations whose names end in an underscore write in place. Make
        the sum a new tensor."""
        change = sublayer(norm(x))
        change += x
        return change

    def norm_around_the_sublayer(x, sublayer, norm):
        """The norm acts twice: on the sublayer's input and on the sublayer's result. Some models have both norms, such
        as Gemma 2. Pre-norm has one norm, before the sublayer, and adds the sublayer's result as it is."""
        return x + norm(sublayer(norm(x)))

    def sum_into_the_sublayer(x, sublayer, norm):
        """You add `x` and `norm(x)`, pass the sum through the sublayer, and return the sublayer's result. In pre-norm,
        the sum is the last step, so `x` has a path that goes through neither the norm nor the sublayer. What is added
        to `x`, and when?"""
        return sublayer(x + norm(x))

    def normed_twice(x, sublayer, norm):
        """The norm acts twice: you replace `x` with `norm(x)`, and then you normalize that result again for the
        sublayer. The tensor that came in is lost, and the change is added to normalized tokens. Which of your two calls
        of `norm` must you remove?"""
        x = norm(x)
        return x + sublayer(norm(x))

    def stream_normed_first_and_last(x, sublayer, norm):
        """The norm acts first and last: you replace `x` with `norm(x)` before anything else, and then you normalize the
        sum. In pre-norm, only the sublayer receives the norm's result, and the sum is returned as it is."""
        x = norm(x)
        return norm(x + sublayer(x))

    def post_norm_added(x, sublayer, norm):
        """This is post-norm with a second sum: the norm acts on the sum of `x` and the change, and then you add `x`
        again. In pre-norm, the norm comes before the sublayer, and the only sum is the last step."""
        return x + norm(x + sublayer(x))

    def norm_alone(x, sublayer, norm):
        """You return `norm(x)` alone: you do not call the sublayer, and you add nothing. The exercise combines `x`, the
        norm and the sublayer. Which of the two functions acts on the result of the other, and what do you add to
        `x`?"""
        return norm(x)

    def copy_added_to(x, sublayer, norm):
        """{The result is right, but} training raises an error: you write the change into a tensor that the norm has
        read, such as a copy of `x`. For the backward pass through the norm, PyTorch needs the original numbers. A sum
        such as `x + …` makes a new tensor, so you need no copy."""
        y = x.clone()
        y += sublayer(norm(y))
        return y

    def norm_and_x_into_the_sublayer(x, sublayer, norm):
        """You pass the sum of `x` and `norm(x)` to the sublayer, and you add the sublayer's result to `x`. In pre-norm,
        the sublayer receives `norm(x)` alone. How many sums should there be?"""
        return x + sublayer(x + norm(x))

    def name_lost_and_called_twice(x, sublayer, norm):
        """You call the sublayer twice, each time on normalized tokens, and add its two results. This happens when `x =
        sublayer(norm(x))` gives the name `x` to the result, and the next line uses `x` again. In pre-norm, the sublayer
        is called once, and `x` stays the tensor that came in."""
        x = sublayer(norm(x))
        return x + sublayer(norm(x))

    def first_and_second_result_added(x, sublayer, norm):
        """You call the sublayer twice and add its two results. This happens when `x = sublayer(…)` gives the name `x`
        to the result, and the next line uses `x` again. In pre-norm, the sublayer is called once, and `x` stays the
        tensor that came in."""
        x = sublayer(norm(x))
        return x + sublayer(x)

    def run_twice(x, sublayer, norm):
        """You do everything twice: the sum goes through the norm and the sublayer again, and you add a second change.
        One layer has one norm, one sublayer and one sum. Which line appears twice?"""
        x = x + sublayer(norm(x))
        return x + sublayer(norm(x))


# Mistakes that are also possible in post-norm
pre_norm.mistake(Output.norm_of_your_own, stage="normalized")
pre_norm.wrong(Total, stage="total")
pre_norm.wrong(PlacesOfTheNorm)
