"""A residual connection with the norm after the sum."""

import torch

from ..exercise import exercise
from .residual import (
    AXES,
    add_residual,
    apply_norm,
    apply_sublayer,
    identity,
    residual_inputs,
    some_norm,
    zero_sublayer,
)


@exercise(
    inputs=residual_inputs,
    axes=AXES,
    hints=(
        "After which step does post-norm apply its norm, and which tensors have been added up by then?",
        "The sublayer receives the token as it is and returns a change. Add this change to the token; normalizing the "
        "sum is the last step.",
        "`return norm(…)`, where … is a sum of two terms, one of which is `sublayer(…)`",
    ),
)
def post_norm(x, sublayer, norm, *, change=apply_sublayer, total=add_residual, output=apply_norm):
    """Connect a part as the paper of 2017 does, with the norm after the sum. The result has the shape of ``x``, (batch,
    seq, d_model)."""
    return output(total(x, change(x, sublayer)), norm)


@post_norm.probe(plain=True)
def sublayer_of_zeros(draw):
    """a sublayer that returns zeros"""
    return draw(2, 3, 5), zero_sublayer, some_norm


@post_norm.probe
def sublayer_and_norm_unchanged(draw):
    """a sublayer and a norm that return their input"""
    return draw(2, 3, 5), identity, identity


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
    """With a sublayer that returns zeros, the result is `norm(x)`."""
    return bool(torch.allclose(function(x, zero_sublayer, norm), norm(x), atol=1e-5))


@post_norm.property
def sum_alone(function, x, sublayer, norm):
    """With a norm that returns its input, the result is `x + sublayer(x)`."""
    return bool(torch.allclose(function(x, sublayer, identity), x + sublayer(x), atol=1e-5))


@post_norm.wrong(stage="change", alone=True)
class ChangeAlone:
    def sublayer_not_called(x, sublayer):
        """You add the function `sublayer` itself to `x`, not its result, and Python cannot add a function to a tensor.
        What is missing after the name of the function?"""
        return sublayer


@post_norm.wrong(stage="total")
class Total:
    def no_residual(x, change):
        """Your result has no residual connection: `x` is not added to the sublayer's result. With a sublayer that
        returns zeros, the token is lost. In the chapter's section 6.9, a stack of 48 layers learns the task with
        residual connections, but still guesses without them. The sublayer computes a change: a change to what?"""
        return change

    def sublayer_without_effect(x, change):
        """Your result does not depend on what `sublayer` returns. Either you never call `sublayer`, or you do not keep
        its result: methods such as `x.add(…)` return a new tensor and leave `x` as it was. Where does the change enter
        the sum?"""
        return x

    def change_twice(x, change):
        """You add the sublayer's result to itself, not to `x`. This happens after `x = sublayer(x)`, which gives the
        name `x` to the result: the tensor that came in is lost before the sum. Which line must keep that tensor under a
        different name?"""
        return change + change

    def x_twice(x, change):
        """You add `x` twice and the sublayer's result once. A residual connection adds its input exactly once. Do
        two of your lines add `x`, or does the sublayer's line add `x` too?"""
        return x + x + change

    def multiplied(x, change):
        """You multiply `x` by the sublayer's result instead of adding the two. With a sublayer that returns zeros,
        nothing is left of the token. A residual connection adds a change to the tensor that came in."""
        return x * change

    def side_by_side(x, change):
        """You concatenate `x` and the sublayer's result, so each token has twice as many features. Some image networks
        join their layers like this. A residual connection adds the two tensors, and the shape stays the same."""
        return torch.cat([x, change], dim=-1)

    def subtracted(x, change):
        """You subtract the sublayer's result from `x` instead of adding it. A sublayer could learn the opposite sign,
        but weights that were trained with a sum do not fit. A residual connection is a sum."""
        return x - change

    def change_added_again(x, change):
        """You add the sublayer's result twice and `x` once. This happens when the line that adds the change has been
        copied, or when the sublayer you use already adds its input. A residual connection adds each of the two exactly
        once. Which line adds the change again?"""
        return x + change + change


@post_norm.wrong(stage="output")
class Output:
    def sum_not_normed(x, norm):
        """{The sum is right, but} no norm acts on the sum. In a stack of such layers the numbers grow with every part.
        Post-norm has its norm after the sum."""
        return x

    def norm_of_your_own(x, norm):
        """Instead of the argument `norm`, you use a layer norm without weights. The caller may pass any norm, with
        learned weights. Call `norm` as you call `sublayer`."""
        return torch.nn.functional.layer_norm(x, x.shape[-1:])


@post_norm.wrong
class PlacesOfTheNorm:
    """Mistakes that are also possible in pre-norm."""

    def norm_of_the_change(x, sublayer, norm):
        """You normalize only the sublayer's result, before you add it to `x`. Some models use this third way, which is
        neither post-norm nor pre-norm. Read your line from the inside out: what is normalized, and when do you compute
        the sum?"""
        return x + norm(sublayer(x))

    def norm_of_x_beside_the_change(x, sublayer, norm):
        """You add `norm(x)` to the sublayer's result, and you pass `x` to the sublayer as it came in. The norm acts
        only on the path around the sublayer, and the sublayer's result stays unnormalized. What should go through the
        norm here?"""
        return norm(x) + sublayer(x)

    def norm_before_and_after(x, sublayer, norm):
        """The norm acts twice: on the sublayer's input and on the sum. That is pre-norm and post-norm at once, but each
        of these has only one norm. Which of your two norms does this exercise need?"""
        return norm(x + sublayer(norm(x)))


@post_norm.wrong
class WrongAnswers:
    def pre_norm_instead(x, sublayer, norm):
        """This is pre-norm: the norm comes before the sublayer, and nothing normalizes the sum. Pre-norm runs with the
        same weights and shapes, but weights that were trained in post-norm do not fit pre-norm. In post-norm, the norm
        is the last step."""
        return x + sublayer(norm(x))

    def norm_then_sublayer(x, sublayer, norm):
        """The norm comes first, the sublayer comes last, and nothing is added: this is the order of pre-norm without
        its residual connection. In post-norm, the sublayer receives `x`, its result is added to `x`, and the norm is
        the last step."""
        return sublayer(norm(x))

    def norm_comes_first(x, sublayer, norm):
        """The norm acts first: the sublayer receives the normalized `x`, and the change is added to the normalized `x`
        too. That is neither post-norm nor pre-norm, and the sum stays unnormalized. In post-norm, the sublayer and the
        sum both use `x` as it came in. When does the norm act?"""
        x = norm(x)
        return x + sublayer(x)

    def stream_normed_twice(x, sublayer, norm):
        """The norm acts first and last: you replace `x` with `norm(x)` before anything else, and then you normalize the
        sum. In post-norm, the sublayer and the sum both use `x` as it came in. Which of your two norms must you
        remove?"""
        x = norm(x)
        return norm(x + sublayer(x))

    def added_after_the_norm_as_well(x, sublayer, norm):
        """You add `x` twice: in the sum that goes through the norm, and again after the norm. In post-norm, nothing
        comes after the norm. With a sublayer that returns zeros, the result must be `norm(x)` alone."""
        return x + norm(x + sublayer(x))

    def norm_alone_of_the_change(x, sublayer, norm):
        """You normalize `x` and the sublayer's result separately and then add them. The sum of two normalized tokens is
        not normalized: its size depends on how similar they are. In post-norm, one norm acts on one sum."""
        return norm(x) + norm(sublayer(x))

    def sublayer_and_norm_swapped(x, sublayer, norm):
        """`sublayer` and `norm` are swapped: the norm computes the change, and the sublayer acts on the sum. Both
        functions keep the shape, so nothing raises an error. In which order do the arguments come, and which of the two
        functions acts last?"""
        return sublayer(x + norm(x))

    def change_overwritten(x, sublayer, norm):
        """You write your sum into the tensor that the sublayer returned. A sublayer may return its own input, as
        dropout does outside training: then you change `x` itself, and the caller's tensor holds other numbers. `+=` and
        operations whose names end in an underscore write in place. Make the sum a new tensor."""
        change = sublayer(x)
        change += x
        return norm(change)

    def norm_given_two(x, sublayer, norm):
        """You call `norm` with two arguments. In some books, a layer called "add and norm" receives two tensors and
        adds them; here `norm` is a function of one tensor. What must you compute before you call it?"""
        return norm(x, sublayer(x))

    def sublayer_called_twice(x, sublayer, norm):
        """You call the sublayer twice and add its two results. This happens when `x = sublayer(x)` gives the name `x`
        to the result, and the next line uses `x` again. In post-norm, the sublayer is called once, and `x` stays the
        tensor that came in."""
        x = sublayer(x)
        return norm(x + sublayer(x))

    def norm_around_the_sublayer(x, sublayer, norm):
        """The norm acts twice, on the sublayer's input and on the sublayer's result, but not on the sum. Some models
        have both norms, such as Gemma 2. Post-norm has one norm, and it acts last."""
        return x + norm(sublayer(norm(x)))

    def change_and_sum_normed(x, sublayer, norm):
        """The norm acts twice: on the sublayer's result and on the sum. In post-norm, the change is added as it is, and
        one norm acts on the sum. Which of your two norms must stay?"""
        return norm(x + norm(sublayer(x)))

    def stream_and_sum_normed(x, sublayer, norm):
        """The norm acts twice: on the `x` that is added, and on the sum. In post-norm, `x` is added as it came in, and
        one norm acts on the sum. Which of your two norms must stay?"""
        return norm(norm(x) + sublayer(x))

    def norm_alone_added(x, sublayer, norm):
        """You never call the sublayer: you add `norm(x)` to `x`. The exercise combines `x`, the sublayer and the norm.
        Which of them computes the change, and which acts on the sum?"""
        return x + norm(x)

    def residual_changed_as_well(x, sublayer, norm):
        """`residual = x` makes no copy: it gives the same tensor a second name, and `x += …` changes the tensor behind
        both names. You therefore add the sum to itself, and the caller's tensor has changed too. Make the sum a new
        tensor."""
        residual = x
        x += sublayer(x)
        return norm(residual + x)

    def change_added_after_the_norm(x, sublayer, norm):
        """You add the sublayer's result twice: in the sum that goes through the norm, and again after the norm. In
        post-norm, nothing comes after the norm. A sublayer that returns zeros hides this mistake. What does your last
        line add?"""
        change = sublayer(x)
        return norm(x + change) + change
