"""Find the mistake: a pre-norm stack."""

import torch
from torch import nn

from ..exercise import exercise
from .residual import AXES, apply_norm, identity, some_norm, some_sublayer, zero_sublayer


class _NumberedPart(nn.Module):
    """A part or a norm of a stack, with a number that distinguishes it from the other parts or norms."""

    def __init__(self, function, number):
        super().__init__()
        self.function, self.number = function, number

    def forward(self, x):
        return self.function(x + self.number)


def _stack_inputs(draw, batch=2, seq=7, d_model=5, n_layers=3):
    parts = nn.ModuleList(_NumberedPart(some_sublayer, 0.2 * layer) for layer in range(n_layers))
    norms = nn.ModuleList(_NumberedPart(_shifted_norm, 0.5 * layer) for layer in range(n_layers))
    return 1 + 2 * draw(batch, seq, d_model), parts, norms, _final_norm


def _shifted_norm(x):
    return some_norm(x) + 0.1 * x  # without this term, the norm would remove a number that was added to all features


def _final_norm(x):
    return 1.5 - some_norm(x)


def pre_norm_layer(x, part, norm):
    """For each part in turn, normalize `x`, apply the part, and add its result to `x`."""
    return x + part(norm(x))


@exercise(
    inputs=_stack_inputs,
    axes=AXES,
    hints=(
        "Replace every part by one that returns zeros, and leave out the final norm. What must a pre-norm stack "
        "return, and what does the given program return?",
        "Follow the name `x` through the loop: is the part's result added to the `x` that entered the layer? Then "
        "look at the arguments: is each of them used?",
        "`for part, norm in …:`, with one line in it that combines `part` and `norm` as in pre-norm; after the loop, "
        "`return …(x)`",
    ),
)
def mend_stack(x, parts, norms, final_norm, *, layer=pre_norm_layer, end=apply_norm):
    """Run a pre-norm stack, each part with its norm, and then the final norm. The result has the shape of ``x``,
    (batch, seq, d_model)."""
    for part, norm in zip(parts, norms):
        x = layer(x, part, norm)
    return end(x, final_norm)


@mend_stack.probe(plain=True)
def parts_of_zeros(draw):
    """parts that return zeros"""
    x, _, norms, final_norm = _stack_inputs(draw)
    return x, nn.ModuleList(_NumberedPart(zero_sublayer, 0.0) for _ in norms), norms, final_norm


@mend_stack.probe
def all_return_their_input(draw):
    """parts and norms that return the very tensor they are given"""
    identities = nn.ModuleList(nn.Identity() for _ in range(3))
    return draw(2, 3, 5), identities, identities, identity


@mend_stack.right
class RightAnswers:
    def by_numbers(x, parts, norms, final_norm):
        for layer in range(len(parts)):
            residual = x
            x = parts[layer](norms[layer](x))
            x = x + residual
        return final_norm(x)

    def by_recursion(x, parts, norms, final_norm):
        def run(x, layer):
            return x if layer == len(parts) else run(x + parts[layer](norms[layer](x)), layer + 1)

        return final_norm(run(x, 0))

    def by_sum_of_changes(x, parts, norms, final_norm):
        changes = [x]
        for norm, part in zip(norms, parts):
            changes.append(part(norm(sum(changes))))
        return final_norm(torch.stack(changes).sum(dim=0))


@mend_stack.property
def final_norm_of_x_alone(function, x, parts, norms, final_norm):
    """With parts that return zeros, the result is `final_norm(x)`."""
    zero_parts = nn.ModuleList(_NumberedPart(zero_sublayer, 0.0) for _ in parts)
    return bool(torch.allclose(function(x, zero_parts, norms, final_norm), final_norm(x), atol=1e-5))


@mend_stack.property
def final_norm_once(function, x, parts, norms, final_norm):
    """The final norm is called once, and its result is returned."""
    results = []
    y = function(x, parts, norms, lambda y: results.append(final_norm(y)) or results[-1])
    return len(results) == 1 and bool(torch.equal(y, results[0]))


@mend_stack.wrong(stage="layer")
class Layer:
    def stream_through_the_norm(x, part, norm):
        """You add a part's result to the normalized stream, so every layer loses its input. With parts that return
        zeros, the final norm should get `x` itself. Which tensor does the name `x` hold in each line of the loop?"""
        x = norm(x)
        return x + part(x)

    def post_norm_layer(x, part, norm):
        """Each of your layers is post-norm: its norm is applied to the sum. The exercise asks for pre-norm, where a
        norm is applied to the part's input but never to the sum, so that `x` reaches the end through no norm except the
        final one."""
        return norm(x + part(x))

    def norm_before_and_after(x, part, norm):
        """You apply each norm twice: to the part's input, and to the sum. In pre-norm no norm is applied to the sum, so
        that `x` reaches the end through no norm except the final one. Which of your two norms belongs to pre-norm?"""
        return norm(x + part(norm(x)))

    def residual_dropped(x, part, norm):
        """There is no residual connection: each part's result replaces the stream instead of being added to it. With
        parts that return zeros, nothing is left of `x`. To what must you add a part's result?"""
        return part(norm(x))

    def norm_on_the_branch(x, part, norm):
        """You apply each norm to the part's result, but pass the stream to the part as it is. In pre-norm the norm
        comes before the part. Read your line from the inside out: do you call the norm or the part first?"""
        return x + norm(part(x))

    def norms_dropped(x, part, norm):
        """You do not use the norms of the layers: each part gets the stream as it is, and the stream grows with every
        layer. The final norm hides this growth. Where does pre-norm have its norm?"""
        return x + part(x)

    def stack_changes_its_input(x, part, norm):
        """Your function changes its argument `x`: you write every sum into the caller's own tensor. `+=` has this
        effect, for instance. The sum must be a new tensor."""
        x += part(norm(x))
        return x

    def norm_added_as_well(x, part, norm):
        """Each layer adds three tensors: its input, its normalized input, and the part's result. This happens if you
        replace `x` with the normalized `x`, add the part's result to it, and add the residual last. With parts that
        return zeros, `x` must pass through the layers unchanged."""
        normalized = norm(x)
        return x + normalized + part(normalized)

    def norm_on_the_stream_alone(x, part, norm):
        """You normalize the tensor to which you add the part's result, but pass the stream to the part without a norm.
        Pre-norm is the reverse: the part gets the normalized stream, and you add its result to the stream as it is.
        Which of the two places in your line needs the norm?"""
        return norm(x) + part(x)

    def norm_twice_in_front(x, part, norm):
        """You apply the norm twice: you replace the stream with the normalized stream, and then normalize it again
        before the part. Your first norm is one of the two faults in the given program. Which line must you remove?"""
        x = norm(x)
        return x + part(norm(x))

    def norm_around_the_part(x, part, norm):
        """You apply each norm twice: to the part's input, and to its result. In pre-norm a layer has one norm, before
        its part, and you add the part's result as it is."""
        return x + norm(part(norm(x)))

    def sum_into_the_part(x, part, norm):
        """You add the normalized stream to the stream, pass the sum to the part, and replace the stream with its
        result. In pre-norm the part gets only the normalized stream, and the sum comes last. What must you add to `x`,
        and when?"""
        return part(x + norm(x))

    def stream_doubled(x, part, norm):
        """In every layer you add the stream twice, and the part's result once. With parts that return zeros, `x` must
        pass through the layers unchanged, but each of your layers doubles it. Do two of your lines add `x`?"""
        return x + x + part(norm(x))

    def norm_first_and_last(x, part, norm):
        """You apply each norm twice: you replace the stream with the normalized stream, and then normalize the sum as
        well. In pre-norm only the part gets the norm's result, and no norm is applied to the stream until the final
        norm."""
        x = norm(x)
        return norm(x + part(x))

    def result_of_a_part_changed(x, part, norm):
        """You add the stream in place to the tensor that the part returned. A part may return its own input, as dropout
        does outside training, and so may a norm that is switched off: you then change the stream itself, and in the
        first layer the caller's `x`. `+=` and names that end in an underscore write in place. Make the sum a new
        tensor."""
        y = part(norm(x))
        y += x
        return y

    def result_of_the_part_doubled(x, part, norm):
        """Each layer adds the part's result to itself, and the layer's input is lost: `x = part(x)` assigns the result
        to the name `x`, so `x + x` is twice the result. Keep the layer's input under a different name."""
        x = part(norm(x))
        return x + x

    def bare_result_doubled(x, part, norm):
        """Each layer adds the part's result to itself, the layer's input is lost, and no norm is applied: `x = part(x)`
        assigns the result to the name `x`, so `x + x` is twice the result. Keep the layer's input under a different
        name. Which tensor must the part get?"""
        x = part(x)
        return x + x

    def result_and_its_norm_added(x, part, norm):
        """Each layer adds `part(x)` and `norm(part(x))`, and the layer's input is lost: `x = part(x)` assigns the
        part's result to the name `x` too early. In pre-norm the part gets the layer's normalized input. Which name
        keeps the layer's input?"""
        x = part(x)
        return x + norm(x)


@mend_stack.wrong(stage="end")
class End:
    def no_final_norm(x, final_norm):
        """Your stack returns the last sum without a norm, so the size of the result depends on the depth: every layer
        adds to the stream, and nothing in the stack rescales it. Do you use each of the four arguments?"""
        return x

    def final_norm_beside_the_stream(x, final_norm):
        """Your stack returns the sum of the stream and the result of the final norm. The final norm rescales the
        stream, so you must return only its result."""
        return x + final_norm(x)

    def final_norm_not_called(x, final_norm):
        """You return the function `final_norm` itself, not its result for the stream. What is missing after its
        name?"""
        return final_norm


@mend_stack.wrong
class WrongAnswers:
    def as_given(x, parts, norms, final_norm):
        """This is the given program, or one with the same results. Run it with parts that return zeros and a final norm
        that returns its input: a pre-norm stack returns `x` unchanged, but this program does not. It has two faults,
        and each of them changes the result even without the other."""
        for part, norm in zip(parts, norms):
            x = norm(x)
            x = x + part(x)
        return x

    def final_norm_in_every_layer(x, parts, norms, final_norm):
        """You apply the final norm in every layer, to the sum. So the stream passes through a norm in each layer, which
        pre-norm avoids. The norm is called final because it comes once, after the last layer. How far do you indent the
        line that calls it?"""
        for part, norm in zip(parts, norms):
            x = final_norm(x + part(norm(x)))
        return x

    def final_norm_first(x, parts, norms, final_norm):
        """You apply the final norm to the input of the stack, and no norm to its result. The norm is called final
        because it comes last: the stream has grown by then, and the norm rescales it."""
        x = final_norm(x)
        for part, norm in zip(parts, norms):
            x = x + part(norm(x))
        return x

    def input_of_the_stack_added(x, parts, norms, final_norm):
        """You add every part's result to the `x` that entered the stack, not to the input of its layer. So the path
        around a part loses the results of the earlier layers. Note 004 makes the same mistake in a block of two parts.
        If you keep the residual under a separate name, when must you assign this name?"""
        y = x
        for part, norm in zip(parts, norms):
            y = x + part(norm(y))
        return final_norm(y)

    def parts_given_the_input(x, parts, norms, final_norm):
        """{The sum is right, but} every part gets the normalized input of the stack. So the parts work side by side,
        and no part sees the results of the parts before it. Which name do you pass to the norm, and to which tensor
        does this name refer in the second iteration of the loop?"""
        y = x
        for part, norm in zip(parts, norms):
            y = y + part(norm(x))
        return final_norm(y)

    def added_once_at_the_end(x, parts, norms, final_norm):
        """You add the residual once, after the last layer: inside the loop each part's result replaces the stream. A
        residual connection goes around every part, so that the part only has to learn a change."""
        y = x
        for part, norm in zip(parts, norms):
            y = part(norm(y))
        return final_norm(x + y)

    def last_layer_only(x, parts, norms, final_norm):
        """Only the last layer changes the result: the results of the other layers are lost. This happens if you assign
        the result of each iteration to a new name, and the next iteration starts from `x` again."""
        for part, norm in zip(parts, norms):
            y = x + part(norm(x))
        return final_norm(y)

    def first_layer_only(x, parts, norms, final_norm):
        """Only the first layer changes the result: your function returns in the first iteration of the loop. How far do
        you indent the line with `return`?"""
        for part, norm in zip(parts, norms):
            x = x + part(norm(x))
            return final_norm(x)

    def input_added_after_the_final_norm(x, parts, norms, final_norm):
        """After the final norm, you again add the `x` that entered the stack. The stream already contains this `x`:
        each layer has added to it. In a pre-norm stack, nothing comes after the final norm."""
        y = x
        for part, norm in zip(parts, norms):
            y = y + part(norm(y))
        return x + final_norm(y)

    def last_layer_s_norm_at_the_end(x, parts, norms, final_norm):
        """You use the norm of the last layer instead of the final norm. After a loop, its variables keep their last
        values, so `norm(x)` raises no error there. Do you use each of the four arguments?"""
        for part, norm in zip(parts, norms):
            x = x + part(norm(x))
        return norms[-1](x)

    def final_norm_in_every_layer_and_after_the_last(x, parts, norms, final_norm):
        """You apply the final norm in every layer, and again after the last one. So the stream passes through a norm in
        each layer, which pre-norm avoids. The norm is called final because it comes once. Which of the two lines must
        stay?"""
        for part, norm in zip(parts, norms):
            x = final_norm(x + part(norm(x)))
        return final_norm(x)

    def final_norm_for_all(x, parts, norms, final_norm):
        """Every part gets the final norm of the stream, and you do not use the norms of the layers. `norms[i]` belongs
        to `parts[i]`: each norm has learned a weight and a bias for its own place. Which names does your loop get from
        `zip`?"""
        for part in parts:
            x = x + part(final_norm(x))
        return final_norm(x)

    def one_loop_in_the_other(x, parts, norms, final_norm):
        """You have two loops, one inside the other: you combine every part with every norm, so the stack has far more
        layers than it should. `norms[i]` belongs to `parts[i]`. Which function goes through two lists in parallel?"""
        for part in parts:
            for norm in norms:
                x = x + part(norm(x))
        return final_norm(x)

    def parts_first_then_norms(x, parts, norms, final_norm):
        """You run all parts first and all norms after them, in two loops. Each norm belongs before its own part. Which
        function goes through two lists in parallel?"""
        for part in parts:
            x = x + part(x)
        for norm in norms:
            x = norm(x)
        return final_norm(x)

    def last_layer_missing(x, parts, norms, final_norm):
        """The last layer is missing: your loop ends one layer early. `range(n)` already ends before n, and a slice ends
        before its end index. How many iterations does a stack of one layer need?"""
        for part, norm in zip(parts[:-1], norms[:-1]):
            x = x + part(norm(x))
        return final_norm(x)

    def layers_from_last_to_first(x, parts, norms, final_norm):
        """You run the layers from the last to the first. They were trained in the order of the list: the second layer
        needs the result of the first. Do you reverse a list somewhere?"""
        for part, norm in zip(reversed(parts), reversed(norms)):
            x = x + part(norm(x))
        return final_norm(x)


@mend_stack.mistake_around
def first_norm_for_all(function):
    """You use the first layer's norm in every layer. Each norm has learned a weight and a bias for its own place in the
    stack. Does your loop advance in `norms` as it does in `parts`?"""

    def with_the_first_norm(x, parts, norms, final_norm):
        return function(x, parts, nn.ModuleList([norms[0]] * len(norms)), final_norm)

    return with_the_first_norm
