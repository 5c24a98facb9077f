"""Chapter 6: norms by hand, which numbers share a mean, and the steps of a block."""

import torch

from .answers import Choice, Numbers, Order
from .draws import choose, random_integer, write
from .topic import Topic, rule

# Layer norm and RMS norm of four numbers.


def _four_with_an_integer_std(draw):
    """Draw four integers whose mean and standard deviation are integers, and a weight and a bias."""
    std, mean = choose(draw, (1, 2, 3, 5)), random_integer(draw, 1, 9)
    signs = choose(draw, ((1, -1, 1, -1), (1, 1, -1, -1), (-1, 1, 1, -1), (-1, 1, -1, 1)))
    return torch.tensor([mean + std * sign for sign in signs]), choose(draw, (1, 2, 3)), choose(draw, (0, 1, 10))


@rule(inputs=_four_with_an_integer_std)
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
def rms_norm_for_layer_norm(x, weight, bias):
    """This is RMS norm: you did not subtract the mean. What does layer norm do first?"""
    return x / x.double().square().mean().sqrt() * weight + bias


@layer_norm_of_four.mistake
def variance_for_std(x, weight, bias):
    """You divided by the variance, not by its square root. If all features double, layer norm must return the same
    numbers as before."""
    return (x - x.double().mean()) / x.double().var(correction=0) * weight + bias


@layer_norm_of_four.mistake
def not_divided(x, weight, bias):
    """You subtracted the mean, but did not divide by the standard deviation. What is the variance of your result?"""
    return (x - x.double().mean()) * weight + bias


@layer_norm_of_four.mistake
def bias_before_the_weight(x, weight, bias):
    """You added the bias before you multiplied by the weight. Which of the two steps comes last?"""
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
        f"{bias}, rounded to one decimal place? (eps is 0.)"
    ),
    answer=Numbers(places=1),
)


def _four_with_an_integer_rms(draw):
    pair = choose(draw, ((1, 7), (2, 14), (3, 21), (7, 17), (7, 23), (5, 5)))  # the root mean square is an integer
    numbers = (*pair, *pair)
    order = torch.randperm(4, generator=draw.generator)
    signs = torch.randint(0, 2, (4,), generator=draw.generator) * 2 - 1
    return torch.tensor(numbers)[order] * signs, choose(draw, (1, 2, 3))


@rule(inputs=_four_with_an_integer_rms)
def rms_norm_of_four(x, weight):
    """Return the RMS norm of a token of four features, with eps 0."""
    return x / x.double().square().mean().sqrt() * weight


@rms_norm_of_four.mistake
def layer_norm_for_rms_norm(x, weight):
    """This is layer norm: you subtracted the mean. RMS norm keeps the mean: what is under its square root?"""
    return (x - x.double().mean()) / x.double().std(correction=0) * weight


@rms_norm_of_four.mistake
def mean_subtracted_in_numerator(x, weight):
    """You subtracted the mean before you divided. RMS norm subtracts no mean: it divides the features themselves."""
    return (x - x.double().mean()) / x.double().square().mean().sqrt() * weight


@rms_norm_of_four.mistake
def std_for_rms(x, weight):
    """You divided by the standard deviation. RMS norm subtracts no mean: square, average, take the root."""
    return x / x.double().std(correction=0) * weight


@rms_norm_of_four.mistake
def l2_norm_for_rms(x, weight):
    """You divided by the root of the sum of the squares, not of their mean. What does the M in RMS stand for?"""
    return x / x.double().square().sum().sqrt() * weight


@rms_norm_of_four.mistake
def root_left_out(x, weight):
    """You divided by the mean square, not by its square root. What does the R in RMS stand for?"""
    return x / x.double().square().mean() * weight


@rms_norm_of_four.mistake
def mean_of_absolute_values(x, weight):
    """You divided by the mean of the absolute values. Square first, then average, then take the root."""
    return x / x.double().abs().mean() * weight


@rms_norm_of_four.mistake
def weight_left_out(x, weight):
    """You did not apply the weight. What comes after the division?"""
    return x / x.double().square().mean().sqrt()


rms_norm_by_hand = Topic(
    title="RMS norm of four numbers",
    rule=rms_norm_of_four,
    question=lambda x, weight: (
        f"A token has the features `{write(x)}`. What does RMS norm return, with weight {weight}, "
        "rounded to one decimal place? (eps is 0.)"
    ),
    answer=Numbers(places=1),
)


# Which numbers share a mean?


def _shape_and_norm(draw):
    sizes = torch.randperm(5, generator=draw.generator)[:3] + 2
    return *sizes.tolist(), choose(draw, ("layer norm", "batch norm", "instance norm"))


@rule(inputs=_shape_and_norm)
def number_of_means(batch, seq, d_model, norm):
    """Return the number of means that a norm computes for a tensor of this shape."""
    return {"layer norm": batch * seq, "batch norm": d_model, "instance norm": batch * d_model}[norm]


@number_of_means.mistake
def one_for_each_feature(batch, seq, d_model, norm):
    """You counted a mean for each feature, as batch norm does. Which numbers does this norm average?"""
    return d_model


@number_of_means.mistake
def one_for_each_token(batch, seq, d_model, norm):
    """You counted a mean for each token, as layer norm does. Which numbers does this norm average?"""
    return batch * seq


@number_of_means.mistake
def one_for_each_sentence(batch, seq, d_model, norm):
    """You counted a mean for each sentence. Over which axes is the mean computed, and which axes are left?"""
    return batch


@number_of_means.mistake
def one_for_each_position(batch, seq, d_model, norm):
    """You counted a mean for each position in the sequence. Over which axes is the mean computed, and which axes are
    left?"""
    return seq


@number_of_means.mistake
def one_for_each_feature_of_a_sentence(batch, seq, d_model, norm):
    """You counted a mean for each feature of each sentence, as instance norm does. Which numbers does this norm
    average?"""
    return batch * d_model


@number_of_means.mistake
def one_for_all(batch, seq, d_model, norm):
    """You counted a single mean for the whole tensor. Over which axes is the mean computed, and which axes are left?"""
    return 1


@number_of_means.mistake
def one_for_each_number(batch, seq, d_model, norm):
    """You counted a mean for every number. Several numbers share a mean: over which axes is the mean computed?"""
    return batch * seq * d_model


means = Topic(
    title="How many means does a norm compute?",
    rule=number_of_means,
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

_SECTIONS = {  # a section: its location, the steps before its parts, its parts, and the steps after its parts
    "attentions": ("in the first two parts of a {} decoder layer", (), (("self-attention",), ("cross-attention",)), ()),
    "last_parts": ("in the last two parts of a {} decoder layer", (), (("cross-attention",), ("feed-forward",)), ()),
    "dropped": ("in the attention part of a {} layer with dropout", (), (("attention", "dropout"),), ()),
    "feed_forward": (
        "in the feed-forward part of a {} layer",
        (),
        (("linear map to d_ff", "ReLU", "linear map back"),),
        (),
    ),
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
_WITH_BACKWARD = ("encoder", "attentions", "last_parts", "feed_forward", "heads")


def _draw_section(draw):
    section = choose(draw, tuple(_SECTIONS))
    return (
        choose(draw, ("pre-norm", "post-norm")),
        section,
        section in _WITH_BACKWARD and not random_integer(draw, 0, 2),
    )


def _sublayers(section):
    """Return a triple for each part of a section: the steps, the norm and the sum of the part."""
    parts = _SECTIONS[section][2]
    first = 2 if section == "last_parts" else 1
    suffixes = [f" {first + i}" if len(parts) > 1 else "" for i in range(len(parts))]
    return [(part, f"norm{suffix}", f"residual sum{suffix}") for part, suffix in zip(parts, suffixes)]


def _pre_norm(part, norm, residual_sum):
    return norm, *part, residual_sum


def _post_norm(part, norm, residual_sum):
    return *part, residual_sum, norm


def _arrangement(placement):
    return _pre_norm if placement == "pre-norm" else _post_norm


def _with_surroundings(steps, placement, section, backward):
    """Return the steps of the parts, with the section's steps before and after them; in reverse for the backward
    pass."""
    _, steps_before, _, steps_after = _SECTIONS[section]
    final = ("final norm",) if steps_after and placement == "pre-norm" else ()
    steps = (*steps_before, *steps, *final, *steps_after)
    return steps[::-1] if backward else steps


def _forward_only(steps, placement, section, backward):
    """Return the steps with their surroundings, or None for the backward pass, in which nobody makes this mistake."""
    return None if backward else _with_surroundings(steps, placement, section, backward)


def _arranged_steps(sublayers, arrange):
    return [step for sublayer in sublayers for step in arrange(*sublayer)]


def _move_step(steps, step, *, before=None, after=None):
    """Return the steps with one step moved, or None if no step has this name."""
    if step not in steps or (before or after) not in steps:
        return None
    others = [other for other in steps if other != step]
    index = others.index(before) if before else others.index(after) + 1
    return (*others[:index], step, *others[index:])


@rule(inputs=_draw_section)
def steps_of_a_block(placement, section, backward):
    """Return the steps of a section of a model in the right order."""
    return _with_surroundings(
        _arranged_steps(_sublayers(section), _arrangement(placement)), placement, section, backward
    )


@steps_of_a_block.mistake
def post_norm_for_pre_norm(placement, section, backward):
    """You normalized the sum, as post-norm does. In pre-norm the sum is not normalized: to what is the norm applied?"""
    return _with_surroundings(_arranged_steps(_sublayers(section), _post_norm), placement, section, backward)


@steps_of_a_block.mistake
def pre_norm_for_post_norm(placement, section, backward):
    """You normalized the input of the part, as in pre-norm. In post-norm, the part reads the input without a norm."""
    return _with_surroundings(_arranged_steps(_sublayers(section), _pre_norm), placement, section, backward)


@steps_of_a_block.mistake
def norm_between_part_and_sum(placement, section, backward):
    """You normalized the output of the part, before the sum. Neither pre-norm nor post-norm does this: what do they
    normalize?"""
    sublayers = _sublayers(section)
    steps = _arranged_steps(sublayers, lambda part, norm, residual_sum: (*part, norm, residual_sum))
    return _with_surroundings(steps, placement, section, backward)


@steps_of_a_block.mistake
def summed_before_the_part(placement, section, backward):
    """You put the sum before the part. The sum adds the output of the part to its input: can the sum come first?"""
    sublayers = [((residual_sum, *part), norm) for part, norm, residual_sum in _sublayers(section)]
    steps = [(norm, *part) if placement == "pre-norm" else (*part, norm) for part, norm in sublayers]
    return _forward_only(sum(steps, ()), placement, section, backward)


@steps_of_a_block.mistake
def parts_exchanged(placement, section, backward):
    """You exchanged the two parts. Self-attention comes first, and feed-forward last: where is cross-attention?"""
    sublayers = _sublayers(section)
    parts = [part for part, _, _ in sublayers][::-1]
    sublayers = [(part, norm, residual_sum) for part, (_, norm, residual_sum) in zip(parts, sublayers)]
    return _forward_only(_arranged_steps(sublayers, _arrangement(placement)), placement, section, backward)


@steps_of_a_block.mistake
def sums_left_for_the_end(placement, section, backward):
    """You put the sums at the end. Each part adds to the residual stream before the next part reads the stream."""
    sublayers = _sublayers(section)
    if len(sublayers) == 1:
        return None
    residual_sums = [residual_sum for *_, residual_sum in sublayers]
    steps = [step for step in _arranged_steps(sublayers, _arrangement(placement)) if step not in residual_sums]
    return _forward_only([*steps, *residual_sums], placement, section, backward)


@steps_of_a_block.mistake
def all_norms_first(placement, section, backward):
    """You put all norms at the beginning. Each part has its own norm: which numbers does the second norm normalize?"""
    sublayers = _sublayers(section)
    if len(sublayers) == 1:
        return None
    steps = [step for part, _, residual_sum in sublayers for step in (*part, residual_sum)]
    return _forward_only([*(norm for _, norm, _ in sublayers), *steps], placement, section, backward)


@steps_of_a_block.mistake
def all_norms_last(placement, section, backward):
    """You put all norms at the end. Each part has its own norm: what does the second part read?"""
    sublayers = _sublayers(section)
    if len(sublayers) == 1:
        return None
    steps = [step for part, _, residual_sum in sublayers for step in (*part, residual_sum)]
    return _forward_only([*steps, *(norm for _, norm, _ in sublayers)], placement, section, backward)


@steps_of_a_block.mistake
def second_norm_misses_the_sum(placement, section, backward):
    """Your second norm comes before the first sum, and so misses the output of the first part. What must this norm
    read?"""
    sublayers = _sublayers(section)
    if len(sublayers) == 1 or placement == "post-norm":
        return None
    steps = _move_step(_arranged_steps(sublayers, _pre_norm), sublayers[1][1], before=sublayers[0][2])
    return _forward_only(steps, placement, section, backward)


@steps_of_a_block.mistake
def first_norm_after_the_next_part(placement, section, backward):
    """Your second part comes before the first norm. In post-norm, each sum is normalized before the next part reads
    it."""
    sublayers = _sublayers(section)
    if len(sublayers) == 1 or placement == "pre-norm":
        return None
    steps = _move_step(_arranged_steps(sublayers, _post_norm), sublayers[0][1], after=sublayers[1][0][-1])
    return _forward_only(steps, placement, section, backward)


@steps_of_a_block.mistake
def order_changed_halfway(placement, section, backward):
    """Your two parts differ: one is pre-norm, and the other is post-norm. Which order does the question ask for?"""
    sublayers = _sublayers(section)
    if len(sublayers) == 1:
        return None
    arrangements = (_pre_norm, _post_norm) if placement == "pre-norm" else (_post_norm, _pre_norm)
    steps = [step for sublayer, arrange in zip(sublayers, arrangements) for step in arrange(*sublayer)]
    return _with_surroundings(steps, placement, section, backward)


@steps_of_a_block.mistake
def dropout_after_the_sum(placement, section, backward):
    """Your dropout acts on the sum, and so on the residual stream. Dropout should act on the output of the part: when
    is this output added?"""
    return _move_step(steps_of_a_block.reference(placement, section, backward), "dropout", after="residual sum")


@steps_of_a_block.mistake
def dropout_before_the_part(placement, section, backward):
    """Your dropout acts on the input of the part. Dropout should act on the output of the part: when does this output
    exist?"""
    return _move_step(steps_of_a_block.reference(placement, section, backward), "dropout", before="attention")


@steps_of_a_block.mistake
def maps_without_relu_between(placement, section, backward):
    """Your two linear maps follow each other directly, so together they are a single linear map. What must come between
    the two maps?"""
    steps = _arranged_steps(_sublayers(section), _arrangement(placement))
    steps = _move_step(steps, "ReLU", after="linear map back")
    return steps and _with_surroundings(steps, placement, section, backward)


@steps_of_a_block.mistake
def output_projection_before_averaging(placement, section, backward):
    """You applied the output projection before the heads averaged the values. The output projection mixes the outputs
    of the heads."""
    steps = _arranged_steps(_sublayers(section), _arrangement(placement))
    steps = _move_step(steps, "output projection", before="weighted averages")
    return steps and _forward_only(steps, placement, section, backward)


@steps_of_a_block.mistake
def positions_after_attention(placement, section, backward):
    """You added the positions after attention, which cannot see the order of tokens without positions. When
    are positions added?"""
    return _move_step(steps_of_a_block.reference(placement, section, backward), "add positions", after="self-attention")


@steps_of_a_block.mistake
def positions_after_the_norm(placement, section, backward):
    """You added the positions after the norm, outside the residual stream. Positions are added once, to the token
    vectors: when?"""
    steps = steps_of_a_block.reference(placement, section, backward)
    return _move_step(steps, "add positions", after="norm") if placement == "pre-norm" else None


@steps_of_a_block.mistake
def final_norm_before_the_sum(placement, section, backward):
    """Your final norm comes before the last sum, so no norm follows this sum. What is a final norm for?"""
    return _move_step(steps_of_a_block.reference(placement, section, backward), "final norm", before="residual sum")


@steps_of_a_block.mistake
def scores_normalized(placement, section, backward):
    """Your last norm normalizes the scores. The last norm should normalize the input of the last map: where does the
    norm belong?"""
    steps = steps_of_a_block.reference(placement, section, backward)
    return _move_step(steps, "final norm" if placement == "pre-norm" else "norm", after="linear map to the scores")


@steps_of_a_block.mistake
def forward_order(placement, section, backward):
    """This is the forward pass. The backward pass begins with the last step."""
    return steps_of_a_block.reference(placement, section, False)


@steps_of_a_block.mistake
def each_part_reversed(placement, section, backward):
    """You went backward through each part, but forward from part to part. Which part does the backward pass reach
    first?"""
    sublayers = _sublayers(section)
    if not backward or len(sublayers) == 1:
        return None
    return [step for sublayer in sublayers for step in _arrangement(placement)(*sublayer)[::-1]]


order_of_a_block = Topic(
    title="The steps of a block",
    rule=steps_of_a_block,
    question=lambda placement, section, backward: (
        f"Put these steps in order, as {'`backward` goes through them' if backward else 'they happen'} "
        f"{_SECTIONS[section][0].format(placement)}{', from output to input' if backward else ''}."
    ),
    answer=Order(lambda *arguments: steps_of_a_block.reference(*arguments)),
)
