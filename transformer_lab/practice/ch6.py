"""Chapter 6: norms by hand, which numbers share a mean, and the steps of a block."""

import torch

from .answers import Choice, Numbers, Order
from .draws import choose, integer, write
from .topic import Topic, rule

# Layer norm and RMS norm of four numbers.


def _four_with_a_round_spread(draw):
    """Draw four integers whose mean and standard deviation are integers, and a weight and a bias."""
    spread, mean = choose(draw, (1, 2, 3, 5)), integer(draw, 1, 9)
    signs = choose(draw, ((1, -1, 1, -1), (1, 1, -1, -1), (-1, 1, 1, -1), (-1, 1, -1, 1)))
    return torch.tensor([mean + spread * sign for sign in signs]), choose(draw, (1, 2, 3)), choose(draw, (0, 1, 10))


@rule(inputs=_four_with_a_round_spread)
def layer_norm_of_four(x, weight, bias):
    """Return the layer norm of a token of four features, with eps 0."""
    return (x - x.double().mean()) / x.double().std(correction=0) * weight + bias


@layer_norm_of_four.mistake
def unbiased_variance(x, weight, bias):
    """You divided by n − 1 for the variance. Layer norm divides by n: how many numbers are averaged?"""
    return (x - x.double().mean()) / x.double().std() * weight + bias


@layer_norm_of_four.mistake
def mean_left_in(x, weight, bias):
    """You divided by the right number, but did not subtract the mean first. What is the mean of your result?"""
    return x / x.double().std(correction=0) * weight + bias


@layer_norm_of_four.mistake
def rms_for_layer(x, weight, bias):
    """This is RMS norm: you did not subtract the mean. What does layer norm do first?"""
    return x / x.double().square().mean().sqrt() * weight + bias


@layer_norm_of_four.mistake
def variance_for_its_root(x, weight, bias):
    """You divided by the variance, not by its square root. If all features double, layer norm must return the
    same numbers."""
    return (x - x.double().mean()) / x.double().var(correction=0) * weight + bias


@layer_norm_of_four.mistake
def not_divided(x, weight, bias):
    """You subtracted the mean, but did not divide by the standard deviation. What is the variance of your result?"""
    return (x - x.double().mean()) * weight + bias


@layer_norm_of_four.mistake
def bias_before_the_weight(x, weight, bias):
    """You added the bias before you multiplied by the weight. Which of the two comes last?"""
    return ((x - x.double().mean()) / x.double().std(correction=0) + bias) * weight


@layer_norm_of_four.mistake
def weight_and_bias_left_out(x, weight, bias):
    """You did not apply weight and bias. What comes after the division by the standard deviation?"""
    return (x - x.double().mean()) / x.double().std(correction=0)


layer_norm_by_hand = Topic(
    title="Layer norm of four numbers",
    rule=layer_norm_of_four,
    question=lambda x, weight, bias: (
        f"A token has the features `{write(x)}`. What does layer norm return, with weight {weight} and bias "
        f"{bias}, to one place? (eps is 0.)"
    ),
    answer=Numbers(places=1),
)


def _four_with_a_round_size(draw):
    pair = choose(draw, ((1, 7), (2, 14), (3, 21), (7, 17), (7, 23), (5, 5)))  # the root mean square is an integer
    numbers = (*pair, *pair)
    order = torch.randperm(4, generator=draw.generator)
    signs = torch.randint(0, 2, (4,), generator=draw.generator) * 2 - 1
    return torch.tensor(numbers)[order] * signs, choose(draw, (1, 2, 3))


@rule(inputs=_four_with_a_round_size)
def rms_norm_of_four(x, weight):
    """Return the RMS norm of a token of four features, with eps 0."""
    return x / x.double().square().mean().sqrt() * weight


@rms_norm_of_four.mistake
def layer_for_rms(x, weight):
    """This is layer norm: you subtracted the mean. RMS norm keeps the mean: what is under its square root?"""
    return (x - x.double().mean()) / x.double().std(correction=0) * weight


@rms_norm_of_four.mistake
def mean_subtracted_above(x, weight):
    """You subtracted the mean before you divided. RMS norm subtracts no mean: it divides the features themselves."""
    return (x - x.double().mean()) / x.double().square().mean().sqrt() * weight


@rms_norm_of_four.mistake
def spread_for_size(x, weight):
    """You divided by the standard deviation. RMS norm subtracts no mean: square, average, take the root."""
    return x / x.double().std(correction=0) * weight


@rms_norm_of_four.mistake
def length_for_rms(x, weight):
    """You divided by the length of the token, the root of the *sum* of its squares. The M in RMS means *mean*."""
    return x / x.double().square().sum().sqrt() * weight


@rms_norm_of_four.mistake
def root_left_out(x, weight):
    """You divided by the mean square, but not by its square root. What does the R in RMS mean?"""
    return x / x.double().square().mean() * weight


@rms_norm_of_four.mistake
def mean_of_absolute_values(x, weight):
    """You divided by the mean of the absolute values. Square first, then average, then take the root."""
    return x / x.double().abs().mean() * weight


@rms_norm_of_four.mistake
def factor_left_out(x, weight):
    """You did not apply the weight. What comes after the division?"""
    return x / x.double().square().mean().sqrt()


rms_norm_by_hand = Topic(
    title="RMS norm of four numbers",
    rule=rms_norm_of_four,
    question=lambda x, weight: (
        f"A token has the features `{write(x)}`. What does RMS norm return, with weight {weight}, to one place? "
        "(eps is 0.)"
    ),
    answer=Numbers(places=1),
)


# Which numbers share a mean?


def _a_batch(draw):
    sizes = torch.randperm(5, generator=draw.generator)[:3] + 2
    return *sizes.tolist(), choose(draw, ("layer norm", "batch norm", "instance norm"))


@rule(inputs=_a_batch)
def shared_means(batch, seq, d_model, norm):
    """Return the number of means that a norm computes for a tensor of this shape."""
    return {"layer norm": batch * seq, "batch norm": d_model, "instance norm": batch * d_model}[norm]


@shared_means.mistake
def one_for_each_feature(batch, seq, d_model, norm):
    """You counted a mean for each feature, as batch norm does. Which numbers does this norm average?"""
    return d_model


@shared_means.mistake
def one_for_each_token(batch, seq, d_model, norm):
    """You counted a mean for each token, as layer norm does. Which numbers does this norm average?"""
    return batch * seq


@shared_means.mistake
def one_for_each_sentence(batch, seq, d_model, norm):
    """You counted a mean for each sentence. Over which axes is the mean computed, and which axes are left?"""
    return batch


@shared_means.mistake
def one_for_each_place(batch, seq, d_model, norm):
    """You counted a mean for each position in the sequence. Over which axes is the mean computed, and which axes are
    left?"""
    return seq


@shared_means.mistake
def one_for_each_feature_of_a_sentence(batch, seq, d_model, norm):
    """You counted a mean for each feature of each sentence, as instance norm does. Which numbers does this norm
    average?"""
    return batch * d_model


@shared_means.mistake
def one_for_all(batch, seq, d_model, norm):
    """You counted a single mean for the whole tensor. Over which axes is the mean computed, and which axes are left?"""
    return 1


@shared_means.mistake
def one_for_each_number(batch, seq, d_model, norm):
    """You counted a mean for every number. Several numbers share a mean: over which axes is the mean computed?"""
    return batch * seq * d_model


means = Topic(
    title="How many means does a norm compute?",
    rule=shared_means,
    question=lambda batch, seq, d_model, norm: (
        f"`x` has the shape `(batch {batch}, seq {seq}, d_model {d_model})`. How many means does {norm} compute?"
    ),
    answer=Choice(
        lambda batch, seq, d_model, norm: {
            n: str(n) for n in sorted({d_model, batch * seq, batch, seq, batch * d_model, 1, batch * seq * d_model})
        }
    ),
)


# The steps of a block

_STRETCHES = {  # a section: its location, the steps before its parts, its parts, and the steps after its parts
    "looks": ("in the first two parts of a {} decoder layer", (), (("self-attention",), ("cross-attention",)), ()),
    "rest": ("in the last two parts of a {} decoder layer", (), (("cross-attention",), ("feed-forward",)), ()),
    "dropped": ("in the attention part of a {} layer with dropout", (), (("attention", "dropout"),), ()),
    "wide": ("in the feed-forward part of a {} layer", (), (("linear map to d_ff", "ReLU", "linear map back"),), ()),
    "encoder": ("in a {} encoder layer", (), (("self-attention",), ("feed-forward",)), ()),
    "heads": (
        "in the attention part of a {} layer",
        (),
        (("projections to q, k, v", "weighted averages", "output projection"),),
        (),
    ),
    "bottom": (
        "from the token ids to the end of the first part of a {} model",
        ("embedding", "add positions"),
        (("self-attention",),),
        (),
    ),
    "top": (
        "from the last feed-forward part of a {} decoder to the scores",
        (),
        (("feed-forward",),),
        ("linear map to the scores",),
    ),
}
_WITH_BACKWARD = ("encoder", "looks", "rest", "wide", "heads")


def _a_stretch(draw):
    stretch = choose(draw, tuple(_STRETCHES))
    return choose(draw, ("pre-norm", "post-norm")), stretch, stretch in _WITH_BACKWARD and not integer(draw, 0, 2)


def _halves(stretch):
    """Return the steps, the norm and the sum of each part of a section."""
    parts = _STRETCHES[stretch][2]
    first = 2 if stretch == "rest" else 1
    numbers = [f" {first + i}" if len(parts) > 1 else "" for i in range(len(parts))]
    return [(part, f"norm{number}", f"residual sum{number}") for part, number in zip(parts, numbers)]


def _pre(part, norm, total):
    return norm, *part, total


def _post(part, norm, total):
    return *part, total, norm


def _placed(order):
    return _pre if order == "pre-norm" else _post


def _with_surroundings(steps, order, stretch, backward):
    """Return the steps of the parts with the steps before and after, in the direction of the question."""
    _, before, _, after = _STRETCHES[stretch]
    final = ("final norm",) if after and order == "pre-norm" else ()
    steps = (*before, *steps, *final, *after)
    return steps[::-1] if backward else steps


def _forwards(steps, order, stretch, backward):
    """Return the same steps for a mistake that concerns only the forward pass."""
    return None if backward else _with_surroundings(steps, order, stretch, backward)


def _each(halves, placed):
    return [step for half in halves for step in placed(*half)]


def _moved(steps, step, *, before=None, after=None):
    """Return the steps with one step moved, or None if no step has this name."""
    if step not in steps or (before or after) not in steps:
        return None
    others = [each for each in steps if each != step]
    at = others.index(before) if before else others.index(after) + 1
    return (*others[:at], step, *others[at:])


@rule(inputs=_a_stretch)
def steps_of_a_block(order, stretch, backward):
    """Return the steps of a section of a model in the right order."""
    return _with_surroundings(_each(_halves(stretch), _placed(order)), order, stretch, backward)


@steps_of_a_block.mistake
def post_norm_for_pre_norm(order, stretch, backward):
    """You normalized the sum, as post-norm does. In pre-norm the sum is not normalized: to what is the norm applied?"""
    return _with_surroundings(_each(_halves(stretch), _post), order, stretch, backward)


@steps_of_a_block.mistake
def pre_norm_for_post_norm(order, stretch, backward):
    """You normalized the input of the part, as in pre-norm. In post-norm, the part reads the input without a norm."""
    return _with_surroundings(_each(_halves(stretch), _pre), order, stretch, backward)


@steps_of_a_block.mistake
def norm_between_part_and_sum(order, stretch, backward):
    """You normalized the output of the part, before the sum. Neither pre-norm nor post-norm does this: what do they
    normalize?"""
    halves = _halves(stretch)
    steps = _each(halves, lambda part, norm, total: (*part, norm, total))
    return _with_surroundings(steps, order, stretch, backward)


@steps_of_a_block.mistake
def summed_before_the_part(order, stretch, backward):
    """You took the sum before the part. The sum adds the output of the part to its input: can the sum come first?"""
    halves = [((total, *part), norm) for part, norm, total in _halves(stretch)]
    steps = [(norm, *part) if order == "pre-norm" else (*part, norm) for part, norm in halves]
    return _forwards(sum(steps, ()), order, stretch, backward)


@steps_of_a_block.mistake
def parts_exchanged(order, stretch, backward):
    """You exchanged the two parts. Self-attention comes first, and feed-forward last: where is cross-attention?"""
    halves = _halves(stretch)
    parts = [part for part, _, _ in halves][::-1]
    halves = [(part, norm, total) for part, (_, norm, total) in zip(parts, halves)]
    return _forwards(_each(halves, _placed(order)), order, stretch, backward)


@steps_of_a_block.mistake
def sums_left_for_the_end(order, stretch, backward):
    """You put the sums at the end. Each part adds to the residual stream before the next part reads the stream."""
    halves = _halves(stretch)
    if len(halves) == 1:
        return None
    totals = [total for *_, total in halves]
    steps = [step for step in _each(halves, _placed(order)) if step not in totals]
    return _forwards([*steps, *totals], order, stretch, backward)


@steps_of_a_block.mistake
def all_norms_first(order, stretch, backward):
    """You put all norms at the beginning. Each part has its own norm: which numbers does the second norm normalize?"""
    halves = _halves(stretch)
    if len(halves) == 1:
        return None
    steps = [step for part, _, total in halves for step in (*part, total)]
    return _forwards([*(norm for _, norm, _ in halves), *steps], order, stretch, backward)


@steps_of_a_block.mistake
def all_norms_last(order, stretch, backward):
    """You put all norms at the end. Each part has its own norm: what does the second part read?"""
    halves = _halves(stretch)
    if len(halves) == 1:
        return None
    steps = [step for part, _, total in halves for step in (*part, total)]
    return _forwards([*steps, *(norm for _, norm, _ in halves)], order, stretch, backward)


@steps_of_a_block.mistake
def second_norm_misses_the_sum(order, stretch, backward):
    """Your second norm comes before the first sum, and so misses the output of the first part. What must this norm
    read?"""
    halves = _halves(stretch)
    if len(halves) == 1 or order == "post-norm":
        return None
    steps = _moved(_each(halves, _pre), halves[1][1], before=halves[0][2])
    return _forwards(steps, order, stretch, backward)


@steps_of_a_block.mistake
def first_norm_after_the_next_part(order, stretch, backward):
    """Your second part comes before the first norm. In post-norm, each sum is normalized before the next part reads
    it."""
    halves = _halves(stretch)
    if len(halves) == 1 or order == "pre-norm":
        return None
    steps = _moved(_each(halves, _post), halves[0][1], after=halves[1][0][-1])
    return _forwards(steps, order, stretch, backward)


@steps_of_a_block.mistake
def order_changed_halfway(order, stretch, backward):
    """Your two parts differ: one is pre-norm, and the other is post-norm. Which order does the question ask for?"""
    halves = _halves(stretch)
    if len(halves) == 1:
        return None
    places = (_pre, _post) if order == "pre-norm" else (_post, _pre)
    steps = [step for half, placed in zip(halves, places) for step in placed(*half)]
    return _with_surroundings(steps, order, stretch, backward)


@steps_of_a_block.mistake
def dropout_after_the_sum(order, stretch, backward):
    """Your dropout acts on the sum, and so on the residual stream. Dropout should act on the output of the part: when
    is this output added?"""
    return _moved(steps_of_a_block.reference(order, stretch, backward), "dropout", after="residual sum")


@steps_of_a_block.mistake
def dropout_before_the_part(order, stretch, backward):
    """Your dropout acts on the input of the part. Dropout should act on the output of the part: when does this output
    exist?"""
    return _moved(steps_of_a_block.reference(order, stretch, backward), "dropout", before="attention")


@steps_of_a_block.mistake
def maps_without_relu_between(order, stretch, backward):
    """Your two linear maps follow each other directly, so together they are a single linear map. What must come between
    the two maps?"""
    steps = _each(_halves(stretch), _placed(order))
    steps = _moved(steps, "ReLU", after="linear map back")
    return steps and _with_surroundings(steps, order, stretch, backward)


@steps_of_a_block.mistake
def output_projection_of_the_values(order, stretch, backward):
    """You applied the output projection before the heads averaged the values. The output projection mixes the outputs
    of the heads."""
    steps = _each(_halves(stretch), _placed(order))
    steps = _moved(steps, "output projection", before="weighted averages")
    return steps and _forwards(steps, order, stretch, backward)


@steps_of_a_block.mistake
def positions_after_attention(order, stretch, backward):
    """Your positions come after attention, which sees no order without positions. When are positions added?"""
    return _moved(steps_of_a_block.reference(order, stretch, backward), "add positions", after="self-attention")


@steps_of_a_block.mistake
def positions_of_the_normalized(order, stretch, backward):
    """You added the positions after the norm, outside the residual stream. Positions are added once, to the token
    vectors: when?"""
    steps = steps_of_a_block.reference(order, stretch, backward)
    return _moved(steps, "add positions", after="norm") if order == "pre-norm" else None


@steps_of_a_block.mistake
def final_norm_before_the_sum(order, stretch, backward):
    """Your final norm comes before the last sum, so no norm follows this sum. What is a final norm for?"""
    return _moved(steps_of_a_block.reference(order, stretch, backward), "final norm", before="residual sum")


@steps_of_a_block.mistake
def scores_normalized(order, stretch, backward):
    """Your last norm normalizes the scores. The last norm should normalize the input of the last map: where does the
    norm belong?"""
    steps = steps_of_a_block.reference(order, stretch, backward)
    return _moved(steps, "final norm" if order == "pre-norm" else "norm", after="linear map to the scores")


@steps_of_a_block.mistake
def way_forwards(order, stretch, backward):
    """This is the forward pass. The backward pass begins with the last step."""
    return steps_of_a_block.reference(order, stretch, False)


@steps_of_a_block.mistake
def parts_turned_one_by_one(order, stretch, backward):
    """You went backward through each part, but forward from part to part. Which part does the backward pass reach
    first?"""
    halves = _halves(stretch)
    if not backward or len(halves) == 1:
        return None
    return [step for half in halves for step in _placed(order)(*half)[::-1]]


order_of_a_block = Topic(
    title="The steps of a block",
    rule=steps_of_a_block,
    question=lambda order, stretch, backward: (
        f"Put in order what {'`backward` goes through' if backward else 'happens'} "
        f"{_STRETCHES[stretch][0].format(order)}{', from output to input' if backward else ''}."
    ),
    answer=Order(lambda *arguments: steps_of_a_block.reference(*arguments)),
)
