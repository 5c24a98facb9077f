"""Find the mistake: a pre-norm stack."""

import torch
from torch import nn

from ..exercise import exercise
from .residual import AXES, norm_of, nothing, some_norm, some_sublayer, unchanged


class _Layer(nn.Module):
    """A part or a norm of a stack, with a number that tells it from the others."""

    def __init__(self, function, number):
        super().__init__()
        self.function, self.number = function, number

    def forward(self, x):
        return self.function(x + self.number)


def _stack(draw, batch=2, seq=7, d_model=5, n_layers=3):
    parts = nn.ModuleList(_Layer(some_sublayer, 0.2 * layer) for layer in range(n_layers))
    norms = nn.ModuleList(_Layer(_shifted_norm, 0.5 * layer) for layer in range(n_layers))
    return 1 + 2 * draw(batch, seq, d_model), parts, norms, _final_norm


def _shifted_norm(x):
    return some_norm(x) + 0.1 * x  # so that what was added before the norm shows after it


def _final_norm(x):
    return 1.5 - some_norm(x)


def in_pre_norm(x, part, norm):
    """Add to `x` what each part makes of the normalized `x`, for one part after the other."""
    return x + part(norm(x))


@exercise(
    inputs=_stack,
    axes=AXES,
    hints=(
        "Let every part return zeros, and leave the final norm out. What must a pre-norm stack return then, and what "
        "does this program return?",
        "Follow the name `x` through the loop: is the part's result added to the `x` that entered the layer? Then "
        "look at the arguments: is each of them used?",
        "`for part, norm in …:`, with one line in it that connects `part` and `norm` in pre-norm; after the loop, "
        "`return …(x)`",
    ),
)
def mend_stack(x, parts, norms, final_norm, *, layer=in_pre_norm, end=norm_of):
    """Run a pre-norm stack: each part with its norm, then the final norm: (batch, seq, d_model) stays."""
    for part, norm in zip(parts, norms):
        x = layer(x, part, norm)
    return end(x, final_norm)


@mend_stack.probe(plain=True)
def parts_of_zeros(draw):
    """parts that return zeros"""
    x, _, norms, final_norm = _stack(draw)
    return x, nn.ModuleList(_Layer(nothing, 0.0) for _ in norms), norms, final_norm


@mend_stack.probe
def all_return_their_input(draw):
    """parts and norms that return the very tensor they are given"""
    same = nn.ModuleList(nn.Identity() for _ in range(3))
    return draw(2, 3, 5), same, same, unchanged


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
    """With parts that return zeros, the final norm of `x` comes out."""
    silent = nn.ModuleList(_Layer(nothing, 0.0) for _ in parts)
    return bool(torch.allclose(function(x, silent, norms, final_norm), final_norm(x), atol=1e-5))


@mend_stack.property
def final_norm_once(function, x, parts, norms, final_norm):
    """The final norm is called once, and its result is what comes out."""
    made = []
    y = function(x, parts, norms, lambda y: made.append(final_norm(y)) or made[-1])
    return len(made) == 1 and bool(torch.equal(y, made[0]))


@mend_stack.wrong(stage="layer")
class Layer:
    def stream_through_the_norm(x, part, norm):
        """What a part's result is added to has been through the norm, so every layer loses what came in. With parts
        that return zeros, the final norm should be given `x` itself. What does the name `x` stand for in each line of
        the loop?"""
        x = norm(x)
        return x + part(x)

    def post_norm_layer(x, part, norm):
        """Each layer of yours is post-norm: its norm acts on the sum. The stack asked for is pre-norm, where a norm
        acts on what goes into the part and nothing on the sum, so that `x` has a path to the end that meets only the
        final norm."""
        return norm(x + part(x))

    def norm_before_and_after(x, part, norm):
        """Each norm acts twice: on what goes into the part, and on the sum. In pre-norm nothing acts on the sum, so
        that `x` has a path to the end that meets only the final norm. Which of your two norms belongs to pre-norm?"""
        return norm(x + part(norm(x)))

    def residual_dropped(x, part, norm):
        """There is no residual connection: each part's result takes the place of the stream, and is not added to it.
        With parts that return zeros, nothing is left of `x`. What is a part's result added to?"""
        return part(norm(x))

    def norm_on_the_branch(x, part, norm):
        """Each norm acts on what its part returns, and the part is given the stream as it is. In pre-norm the norm
        stands in front of the part. Read your line from the inside out: which of the two is called first?"""
        return x + norm(part(x))

    def norms_dropped(x, part, norm):
        """The norms of the layers are not used: each part is given the stream as it is, which grows with every layer.
        The final norm hides this at the end. Where does pre-norm have its norm?"""
        return x + part(x)

    def stack_changes_its_input(x, part, norm):
        """Your function changes its argument `x`: the caller finds the stream in its own tensor. `+=` does that, for
        instance. The sum must be a new tensor."""
        x += part(norm(x))
        return x

    def norm_added_as_well(x, part, norm):
        """Each layer adds up three things: what came in, its norm, and what the part makes of that. That happens where
        `x` is replaced by its norm, the part's result is added to it, and the residual is added last. With parts that
        return zeros, `x` must go through the layers unchanged."""
        normalized = norm(x)
        return x + normalized + part(normalized)

    def norm_on_the_stream_alone(x, part, norm):
        """The norm acts on what the part's result is added to, and the part is given the stream without one. In
        pre-norm it is the other way round: the part is given the norm, and the stream goes on as it is. Which of the
        two places in your line wants the norm?"""
        return norm(x) + part(x)

    def norm_twice_in_front(x, part, norm):
        """The norm acts twice: the stream is replaced by its norm, and that goes through the norm again on its way into
        the part. The first of the two was the fault of the given program. Which line is too many?"""
        x = norm(x)
        return x + part(norm(x))

    def norm_around_the_part(x, part, norm):
        """Each norm acts twice: on what goes into the part, and on what it returns. In pre-norm a layer has one norm,
        in front of its part, and the part's result is added as it is."""
        return x + norm(part(norm(x)))

    def sum_into_the_part(x, part, norm):
        """The stream and its norm are added up, and the part is given the sum; its result then takes the place of the
        stream. In pre-norm the part is given the norm alone, and the sum comes last. What is added to `x`, and when?"""
        return part(x + norm(x))

    def stream_doubled(x, part, norm):
        """The stream is added twice in every layer, and the part's result once. With parts that return zeros, `x` must
        go through the layers as it is, and yours doubles it each time. Is it added in two lines?"""
        return x + x + part(norm(x))

    def norm_first_and_last(x, part, norm):
        """Each norm acts first and last: the stream is replaced by its norm, and the sum goes through it again. In
        pre-norm the norm's result is for the part alone, and nothing acts on the stream until the final norm."""
        x = norm(x)
        return norm(x + part(x))

    def result_of_a_part_changed(x, part, norm):
        """You add the stream to the tensor that the part returned, in place. A part may return its very input, as
        dropout does outside training, and so may a norm that is switched off: then it is the stream that has been
        changed, and in the first layer the caller's `x`. `+=` and names that end in an underscore write so. Make the
        sum a new tensor."""
        y = part(norm(x))
        y += x
        return y

    def result_of_the_part_doubled(x, part, norm):
        """Each layer adds the part's result to itself, and what came in is lost: `x = part(x)` gives the name `x` to
        the result, and `x + x` is then twice that. Keep what came into the layer under a name of its own."""
        x = part(norm(x))
        return x + x

    def bare_result_doubled(x, part, norm):
        """Each layer adds the part's result to itself, what came in is lost, and no norm acts: `x = part(x)` gives the
        name `x` to the result, and `x + x` is then twice that. Keep what came into the layer under a name of its own.
        What is the part to be given?"""
        x = part(x)
        return x + x

    def result_and_its_norm_added(x, part, norm):
        """Each layer adds the part's result and the norm of that result, and what came in is lost: `x = part(x)` gives
        the name `x` to the result too early. In pre-norm the part is given the norm of what came in. Which name keeps
        what came in?"""
        x = part(x)
        return x + norm(x)


@mend_stack.wrong(stage="end")
class End:
    def no_final_norm(x, final_norm):
        """The last sum leaves the stack without any norm, so its size depends on the depth. Every layer adds to the
        stream, and nothing on its way brings it back to size. Is each of the four arguments used?"""
        return x

    def final_norm_beside_the_stream(x, final_norm):
        """The final norm is added to the stream: what leaves the stack is the last sum and its norm together. A final
        norm brings the stream back to size, so that its result alone must come out."""
        return x + final_norm(x)

    def final_norm_not_called(x, final_norm):
        """You return the function `final_norm` itself, and not what it makes of the stream. What is missing after its
        name?"""
        return final_norm


@mend_stack.wrong
class WrongAnswers:
    def as_given(x, parts, norms, final_norm):
        """This is the program as it was given, or one that does the same. Run it with parts that return zeros and a
        final norm that returns its input: a pre-norm stack gives `x` back, and this one gives something else. There are
        two faults in it, and each shows without the other."""
        for part, norm in zip(parts, norms):
            x = norm(x)
            x = x + part(x)
        return x

    def final_norm_in_every_layer(x, parts, norms, final_norm):
        """The final norm acts in every layer, on the sum. The stream then meets a norm on its way, which is what
        pre-norm avoids. It is called final because it comes once, after the last layer. How far is its line
        indented?"""
        for part, norm in zip(parts, norms):
            x = final_norm(x + part(norm(x)))
        return x

    def final_norm_first(x, parts, norms, final_norm):
        """The final norm acts on what comes into the stack, and nothing acts on what leaves it. It is called final
        because it comes last: the stream has grown by then, and is brought back to size."""
        x = final_norm(x)
        for part, norm in zip(parts, norms):
            x = x + part(norm(x))
        return x

    def input_of_the_stack_added(x, parts, norms, final_norm):
        """Every part's result is added to the `x` that came into the stack, not to what came into its layer. So what
        the layers before have found is lost on the path past the part. Note 004 makes the same slip in a block of two
        parts. If you keep the residual under a name of its own, when must that happen?"""
        y = x
        for part, norm in zip(parts, norms):
            y = x + part(norm(y))
        return final_norm(y)

    def parts_given_the_input(x, parts, norms, final_norm):
        """{The sum is right, but} every part is given the norm of the `x` that came into the stack. The parts then work
        side by side, and none sees what the one before has found. Which name goes into the norm, and what does it stand
        for in the second round?"""
        y = x
        for part, norm in zip(parts, norms):
            y = y + part(norm(x))
        return final_norm(y)

    def added_once_at_the_end(x, parts, norms, final_norm):
        """The residual is added once, after the last layer: inside the loop each part's result takes the place of the
        stream. A residual connection goes around every part, so that the part need only find a change."""
        y = x
        for part, norm in zip(parts, norms):
            y = part(norm(y))
        return final_norm(x + y)

    def last_layer_only(x, parts, norms, final_norm):
        """Only one layer has left a trace, the last: the loop ends with it, and what the others made was thrown away.
        That happens where the result of each round has a new name, and the next round starts from `x` again."""
        for part, norm in zip(parts, norms):
            y = x + part(norm(x))
        return final_norm(y)

    def first_layer_only(x, parts, norms, final_norm):
        """Only the first layer has left a trace: your function returns when the loop has run once. How far is the line
        with `return` indented?"""
        for part, norm in zip(parts, norms):
            x = x + part(norm(x))
            return final_norm(x)

    def input_added_behind_the_final_norm(x, parts, norms, final_norm):
        """The `x` that came into the stack is added once more, after the final norm. What came in is in the stream
        already: each layer has added to it. Nothing comes after the final norm."""
        y = x
        for part, norm in zip(parts, norms):
            y = y + part(norm(y))
        return x + final_norm(y)

    def last_layer_s_norm_at_the_end(x, parts, norms, final_norm):
        """The norm of the last layer stands where the final norm should. After a loop its names keep the last values,
        so that `norm(x)` raises no error there. Is each of the four arguments used?"""
        for part, norm in zip(parts, norms):
            x = x + part(norm(x))
        return norms[-1](x)

    def final_norm_in_every_layer_and_behind(x, parts, norms, final_norm):
        """The final norm acts in every layer, and after the last one again. The stream then meets a norm on its way,
        which is what pre-norm avoids. It is called final because it comes once. Which of the two lines is left?"""
        for part, norm in zip(parts, norms):
            x = final_norm(x + part(norm(x)))
        return final_norm(x)

    def final_norm_for_all(x, parts, norms, final_norm):
        """Every part is given the final norm of the stream, and the norms of the layers are not used. `norms[i]`
        belongs to `parts[i]`: each has learned a weight and a bias for its own place. Which name comes out of `zip`?"""
        for part in parts:
            x = x + part(final_norm(x))
        return final_norm(x)

    def one_loop_in_the_other(x, parts, norms, final_norm):
        """You have two loops, one inside the other: every part meets every norm, and the stack has many times as many
        layers. `norms[i]` belongs to `parts[i]`. Which function goes through two lists side by side?"""
        for part in parts:
            for norm in norms:
                x = x + part(norm(x))
        return final_norm(x)

    def parts_first_then_norms(x, parts, norms, final_norm):
        """All parts come first and all norms after them, in two loops. Each norm belongs in front of its own part.
        Which function goes through two lists side by side?"""
        for part in parts:
            x = x + part(x)
        for norm in norms:
            x = norm(x)
        return final_norm(x)

    def last_layer_missing(x, parts, norms, final_norm):
        """The last layer is missing: your loop ends one layer early. `range(n)` ends before n already, and a slice
        before its end. How many rounds does a stack of one layer need?"""
        for part, norm in zip(parts[:-1], norms[:-1]):
            x = x + part(norm(x))
        return final_norm(x)

    def layers_from_last_to_first(x, parts, norms, final_norm):
        """The layers run from the last to the first. They were trained in the order in which they stand: what the first
        has found is what the second looks at. Is a list reversed somewhere?"""
        for part, norm in zip(reversed(parts), reversed(norms)):
            x = x + part(norm(x))
        return final_norm(x)


@mend_stack.mistake_around
def first_norm_for_all(function):
    """Every layer uses the first layer's norm. Each norm has learned a weight and a bias of its own, for its own place
    in the depth. Does your loop move on in `norms` as it does in `parts`?"""

    def with_the_first_norm(x, parts, norms, final_norm):
        return function(x, parts, nn.ModuleList([norms[0]] * len(norms)), final_norm)

    return with_the_first_norm
