"""Chapter 6: norms by hand, and which numbers share a mean."""

import torch

from .answers import Choice, Numbers
from .draws import number, one_of, write
from .topic import Topic, rule

# Layer norm and RMS norm of four numbers


def _four_with_a_round_spread(draw):
    """Four whole numbers whose mean and standard deviation are whole, a weight and a bias."""
    spread, mean = one_of(draw, (1, 2, 3, 5)), number(draw, 1, 9)
    signs = one_of(draw, ((1, -1, 1, -1), (1, 1, -1, -1), (-1, 1, 1, -1), (-1, 1, -1, 1)))
    return torch.tensor([mean + spread * sign for sign in signs]), one_of(draw, (1, 2, 3)), one_of(draw, (0, 1, 10))


@rule(inputs=_four_with_a_round_spread)
def layer_norm_of_four(x, weight, bias):
    """The layer norm of a token of four features, with eps 0."""
    return (x - x.double().mean()) / x.double().std(correction=0) * weight + bias


@layer_norm_of_four.mistake
def unbiased_variance(x, weight, bias):
    """You divided by n − 1 in the variance. Layer norm divides by n: how many numbers are averaged?"""
    return (x - x.double().mean()) / x.double().std() * weight + bias


@layer_norm_of_four.mistake
def mean_left_in(x, weight, bias):
    """You divided by the right number, and did not subtract the mean before. What is the mean of your result?"""
    return x / x.double().std(correction=0) * weight + bias


@layer_norm_of_four.mistake
def rms_for_layer(x, weight, bias):
    """This is RMS norm: the mean is neither subtracted nor left out of the spread. What does layer norm do first?"""
    return x / x.double().square().mean().sqrt() * weight + bias


@layer_norm_of_four.mistake
def variance_for_its_root(x, weight, bias):
    """You divided by the variance, and not by its root. A token twice as large must come out the same."""
    return (x - x.double().mean()) / x.double().var(correction=0) * weight + bias


@layer_norm_of_four.mistake
def not_divided(x, weight, bias):
    """You subtracted the mean and did not divide by the spread. What is the variance of your result?"""
    return (x - x.double().mean()) * weight + bias


@layer_norm_of_four.mistake
def bias_before_the_weight(x, weight, bias):
    """You added the bias before you multiplied by the weight. Which of the two comes last?"""
    return ((x - x.double().mean()) / x.double().std(correction=0) + bias) * weight


@layer_norm_of_four.mistake
def weight_and_bias_left_out(x, weight, bias):
    """You stopped after mean and spread: weight and bias change nothing in your answer. What comes after them?"""
    return (x - x.double().mean()) / x.double().std(correction=0)


layer_norm_by_hand = Topic(
    title="Layer norm of four numbers",
    rule=layer_norm_of_four,
    question=lambda x, weight, bias: (
        f"A token has the features `{write(x)}`. What does layer norm make of it, with weight {weight} and bias "
        f"{bias}, to one place? (eps is 0.)"
    ),
    answer=Numbers(places=1),
)


def _four_with_a_round_size(draw):
    pair = one_of(draw, ((1, 7), (2, 14), (3, 21), (7, 17), (7, 23), (5, 5)))  # a root mean square that is whole
    numbers = (*pair, *pair)
    order = torch.randperm(4, generator=draw.generator)
    signs = torch.randint(0, 2, (4,), generator=draw.generator) * 2 - 1
    return torch.tensor(numbers)[order] * signs, one_of(draw, (1, 2, 3))


@rule(inputs=_four_with_a_round_size)
def rms_norm_of_four(x, weight):
    """The RMS norm of a token of four features, with eps 0."""
    return x / x.double().square().mean().sqrt() * weight


@rms_norm_of_four.mistake
def layer_for_rms(x, weight):
    """This is layer norm: you subtracted the mean. RMS norm leaves it in: what stands under its root?"""
    return (x - x.double().mean()) / x.double().std(correction=0) * weight


@rms_norm_of_four.mistake
def mean_subtracted_above(x, weight):
    """You subtracted the mean from what you divide. RMS norm has no mean in it: it divides the token as it is."""
    return (x - x.double().mean()) / x.double().square().mean().sqrt() * weight


@rms_norm_of_four.mistake
def spread_for_size(x, weight):
    """You divided by the standard deviation. The mean square needs no mean: square, average, take the root."""
    return x / x.double().std(correction=0) * weight


@rms_norm_of_four.mistake
def length_for_rms(x, weight):
    """You divided by the length of the token, the root of the *sum* of its squares. The M in RMS says mean."""
    return x / x.double().square().sum().sqrt() * weight


@rms_norm_of_four.mistake
def root_left_out(x, weight):
    """You divided by the mean square, and did not take its root. What does the R in RMS say?"""
    return x / x.double().square().mean() * weight


@rms_norm_of_four.mistake
def mean_of_absolute_values(x, weight):
    """You divided by the mean of the absolute values. Square first, then average, then take the root."""
    return x / x.double().abs().mean() * weight


@rms_norm_of_four.mistake
def factor_left_out(x, weight):
    """The weight changes nothing in your answer. What comes after the division?"""
    return x / x.double().square().mean().sqrt()


rms_norm_by_hand = Topic(
    title="RMS norm of four numbers",
    rule=rms_norm_of_four,
    question=lambda x, weight: (
        f"A token has the features `{write(x)}`. What does RMS norm make of it, with weight {weight}, to one place? "
        "(eps is 0.)"
    ),
    answer=Numbers(places=1),
)


# Which numbers share a mean?


def _a_batch(draw):
    sizes = torch.randperm(5, generator=draw.generator)[:3] + 2
    return *sizes.tolist(), one_of(draw, ("layer norm", "batch norm", "instance norm"))


@rule(inputs=_a_batch)
def shared_means(batch, seq, d_model, norm):
    """How many means a norm takes of a tensor of this shape."""
    return {"layer norm": batch * seq, "batch norm": d_model, "instance norm": batch * d_model}[norm]


@shared_means.mistake
def one_for_each_feature(batch, seq, d_model, norm):
    """You counted a mean for each feature, as batch norm takes it. Which numbers does this norm average?"""
    return d_model


@shared_means.mistake
def one_for_each_token(batch, seq, d_model, norm):
    """You counted a mean for each token, as layer norm takes it. Which numbers does this norm average?"""
    return batch * seq


@shared_means.mistake
def one_for_each_sentence(batch, seq, d_model, norm):
    """You counted a mean for each sentence. Over which axes is the mean taken, and which are left?"""
    return batch


@shared_means.mistake
def one_for_each_place(batch, seq, d_model, norm):
    """You counted a mean for each place in the sequence. Over which axes is the mean taken, and which are left?"""
    return seq


@shared_means.mistake
def one_for_each_feature_of_a_sentence(batch, seq, d_model, norm):
    """You counted a mean for each feature of each sentence, as instance norm takes it. Which does this one take?"""
    return batch * d_model


@shared_means.mistake
def one_for_all(batch, seq, d_model, norm):
    """You counted a single mean for the whole tensor. Over which axes is the mean taken, and which are left?"""
    return 1


@shared_means.mistake
def one_for_each_number(batch, seq, d_model, norm):
    """You counted a mean for every number. A mean is shared by several: which axis is averaged away?"""
    return batch * seq * d_model


means = Topic(
    title="How many means does a norm take?",
    rule=shared_means,
    question=lambda batch, seq, d_model, norm: (
        f"`x` has the shape `(batch {batch}, seq {seq}, d_model {d_model})`. How many means does {norm} take?"
    ),
    answer=Choice(
        lambda batch, seq, d_model, norm: {
            n: str(n) for n in sorted({d_model, batch * seq, batch, seq, batch * d_model, 1, batch * seq * d_model})
        }
    ),
)
