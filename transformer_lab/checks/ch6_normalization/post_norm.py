"""A residual connection with the norm after the sum."""

import torch

from ..exercise import exercise
from .residual import AXES, added, change_of, connected, norm_of, nothing, some_norm, unchanged


@exercise(
    inputs=connected,
    axes=AXES,
    hints=(
        "Post-norm: the norm comes after something. After what, and what has been added up by then?",
        "The sublayer receives the token as it is, and its result is a change. The sum of both goes through the norm, "
        "which is the last step.",
        "`return norm(…)`, where the … is a sum of two terms, one of which is `sublayer(…)`",
    ),
)
def post_norm(x, sublayer, norm, *, change=change_of, total=added, output=norm_of):
    """Connect a part as the paper of 2017 does, with the norm after the sum: (batch, seq, d_model) stays."""
    return output(total(x, change(x, sublayer)), norm)


@post_norm.probe(plain=True)
def sublayer_of_zeros(draw):
    """a sublayer that returns zeros"""
    return draw(2, 3, 5), nothing, some_norm


@post_norm.probe
def sublayer_and_norm_unchanged(draw):
    """a sublayer and a norm that return their input"""
    return draw(2, 3, 5), unchanged, unchanged


@post_norm.right
class RightAnswers:
    def change_first(x, sublayer, norm):
        change = sublayer(x)
        return norm(change + x)

    def on_a_copy(x, sublayer, norm):
        y = x.clone()
        y += sublayer(x)
        return norm(y)

    def by_stack(x, sublayer, norm):
        return norm(torch.stack([x, sublayer(x)]).sum(dim=0))


@post_norm.property
def norm_of_x_alone(function, x, sublayer, norm):
    """With a sublayer that returns zeros, the norm of `x` comes out."""
    return bool(torch.allclose(function(x, nothing, norm), norm(x), atol=1e-5))


@post_norm.property
def sum_alone(function, x, sublayer, norm):
    """With a norm that returns its input, `x + sublayer(x)` comes out."""
    return bool(torch.allclose(function(x, sublayer, unchanged), x + sublayer(x), atol=1e-5))


@post_norm.wrong(stage="change", alone=True)
class ChangeAlone:
    def sublayer_not_called(x, sublayer):
        """A function itself is added to `x`, and not what it returns: a tensor and a function have no sum. What is
        missing after its name?"""
        return sublayer


@post_norm.wrong(stage="total")
class Total:
    def no_residual(x, change):
        """Your result has no residual connection: what came in is not added to what the sublayer made of it. With a
        sublayer that returns zeros the token is lost. In the chapter's section 6.9, 48 layers without one are still
        guessing when those with one have learned. The sublayer computes a change: a change of what?"""
        return change

    def sublayer_without_effect(x, change):
        """Your result does not depend on what `sublayer` returns. Either it is never called, or its result is not kept:
        methods such as `x.add(…)` return a new tensor and leave `x` as it was. Where does the change come in?"""
        return x

    def change_twice(x, change):
        """The sublayer's result is added to itself, and not to `x`. That happens where `x = sublayer(x)` gives the name
        to the result: what came in is lost by the time of the sum. Which line must keep it under another name?"""
        return change + change

    def x_twice(x, change):
        """`x` is added twice, and the sublayer's result once. A residual connection adds what came in one single time.
        Is it added in two lines, or by the sublayer's line as well?"""
        return x + x + change

    def multiplied(x, change):
        """You multiply `x` by the sublayer's result where they are added. With a sublayer that returns zeros nothing is
        left of the token. A residual connection adds a change to what came in."""
        return x * change

    def side_by_side(x, change):
        """You put `x` and the sublayer's result side by side, so that there are twice as many features. Some networks
        of images join their layers so. A residual connection adds the two, and the shape stays."""
        return torch.cat([x, change], dim=-1)

    def subtracted(x, change):
        """You subtract the sublayer's result from `x` where it is added. A sublayer could learn the other sign, but
        weights that were trained with a sum do not fit. A residual connection is a sum."""
        return x - change

    def change_added_again(x, change):
        """The sublayer's result is added twice, and `x` once. That happens where a line that adds the change has been
        copied, or a sublayer is used that adds its input already. Each of the two is added one single time. In which
        line is the change added again?"""
        return x + change + change


@post_norm.wrong(stage="output")
class Output:
    def sum_not_normed(x, norm):
        """{The sum is right, and} no norm acts on it. Stacked, such layers make the numbers grow with every part. The
        norm's place in post-norm is after the sum."""
        return x

    def norm_of_your_own(x, norm):
        """The argument `norm` is not used: a layer norm without weights stands in its place. The norm that you are
        given may be any, with weights that were learned. Call it as you call `sublayer`."""
        return torch.nn.functional.layer_norm(x, x.shape[-1:])


@post_norm.wrong
class PlacesOfTheNorm:
    """Mistakes that pre-norm shares."""

    def norm_of_the_change(x, sublayer, norm):
        """Only what the sublayer returns goes through the norm, before it is added to `x`. Some models do that (it is a
        third way, neither post-norm nor pre-norm). Say your line aloud, from the inside out: what is normalized, and
        when is the sum taken?"""
        return x + norm(sublayer(x))

    def norm_of_x_beside_the_change(x, sublayer, norm):
        """You add the norm of `x` to the sublayer's result, and the sublayer itself is given `x` as it came. So the
        norm acts on the path past the sublayer alone, and the sublayer's result leaves unnormalized. What should go
        through the norm here?"""
        return norm(x) + sublayer(x)

    def norm_before_and_behind(x, sublayer, norm):
        """The norm acts twice: on what goes into the sublayer, and on the sum. That is pre-norm and post-norm at once.
        Each of them has one norm; which of your two belongs to the one asked for?"""
        return norm(x + sublayer(norm(x)))


@post_norm.wrong
class WrongAnswers:
    def pre_norm_instead(x, sublayer, norm):
        """This is pre-norm: the norm stands in front of the sublayer, and the sum leaves without one. It runs with the
        same weights and the same shapes, but weights that were trained in post-norm do not fit. In post-norm the norm
        is the last thing that happens."""
        return x + sublayer(norm(x))

    def norm_then_sublayer(x, sublayer, norm):
        """The norm comes first, the sublayer last, and nothing is added: the order of pre-norm without its residual
        connection. In post-norm the sublayer is given `x`, its result is added to `x`, and the norm is what happens
        last."""
        return sublayer(norm(x))

    def norm_comes_first(x, sublayer, norm):
        """The norm acts first: its result goes into the sublayer, and it is also what the change is added to. That is
        neither post-norm nor pre-norm, and the sum leaves unnormalized. In post-norm, both the sublayer and the sum get
        `x` as it came in. When does the norm act?"""
        x = norm(x)
        return x + sublayer(x)

    def stream_normed_twice(x, sublayer, norm):
        """The norm acts first and last: `x` is replaced by its norm before anything else, and the sum goes through it
        again. In post-norm, both the sublayer and the sum get `x` as it came in. Which of your two norms has to go?"""
        x = norm(x)
        return norm(x + sublayer(x))

    def added_after_the_norm_as_well(x, sublayer, norm):
        """`x` is added twice: in the sum that goes through the norm, and once more after it. In post-norm nothing comes
        after the norm. With a sublayer that returns zeros, the norm of `x` must come out alone."""
        return x + norm(x + sublayer(x))

    def norm_alone_of_the_change(x, sublayer, norm):
        """You normalize `x` and the sublayer's result each by itself, and add them up. The sum of two normalized tokens
        is not normalized: its size depends on how alike they are. In post-norm one norm acts on one sum."""
        return norm(x) + norm(sublayer(x))

    def sublayer_and_norm_swapped(x, sublayer, norm):
        """`sublayer` and `norm` have changed places: the norm makes the change, and the sublayer acts on the sum. Both
        are functions that keep the shape, so nothing complains. In which order do the arguments come, and which of them
        acts last?"""
        return sublayer(x + norm(x))

    def change_overwritten(x, sublayer, norm):
        """Your sum is written into the tensor that the sublayer returned. A sublayer may return its very input, as
        dropout does outside training: then `x` itself has been changed, and the caller finds other numbers there. `+=`
        and operations whose names end in an underscore write so. Make the sum a new tensor."""
        change = sublayer(x)
        change += x
        return norm(change)

    def norm_given_two(x, sublayer, norm):
        """`norm` is called with two arguments. In some books a layer "add and norm" takes two tensors and adds them up
        by itself; here `norm` is a function of one. What must you have done before you call it?"""
        return norm(x, sublayer(x))

    def sublayer_called_twice(x, sublayer, norm):
        """The sublayer is called twice, and what is added up are its first result and its second. That happens where `x
        = sublayer(x)` gives the name to the result, and the next line goes on with `x`. In post-norm it is called once,
        and `x` stays what came in."""
        x = sublayer(x)
        return norm(x + sublayer(x))

    def norm_around_the_sublayer(x, sublayer, norm):
        """The norm acts twice, on what goes into the sublayer and on what it returns, and not on the sum. Some models
        do so (Gemma 2 does). In post-norm there is one norm, and it acts last."""
        return x + norm(sublayer(norm(x)))

    def change_and_sum_normed(x, sublayer, norm):
        """The norm acts twice: on what the sublayer returns, and on the sum. In post-norm the change is added as it is,
        and one norm acts on the sum. Which of your two is left?"""
        return norm(x + norm(sublayer(x)))

    def stream_and_sum_normed(x, sublayer, norm):
        """The norm acts twice: on the `x` that is added, and on the sum. In post-norm `x` is added as it came in, and
        one norm acts on the sum. Which of your two is left?"""
        return norm(norm(x) + sublayer(x))

    def norm_alone_added(x, sublayer, norm):
        """The sublayer is never called: you add the norm of `x` to `x`. Three things meet here, `x`, the sublayer and
        the norm. Which of them makes the change, and which acts on the sum?"""
        return x + norm(x)

    def residual_changed_as_well(x, sublayer, norm):
        """`residual = x` gives a second name to one tensor, and makes no copy: `x += …` changes what both names stand
        for. So the sum is added to itself, and the caller's tensor has changed too. Make the sum a new tensor."""
        residual = x
        x += sublayer(x)
        return norm(residual + x)

    def change_added_after_the_norm(x, sublayer, norm):
        """The sublayer's result is added twice: in the sum that goes through the norm, and once more after it. In
        post-norm nothing comes after the norm. With a sublayer that returns zeros you cannot see it; what does your
        last line add?"""
        change = sublayer(x)
        return norm(x + change) + change
