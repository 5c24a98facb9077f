"""Sinusoidal positions."""

import math

import numpy as np
import torch

from ..common_mistakes import fixed_length
from ..exercise import exercise, with_text_of
from .properties import nearly_equal


def _sizes(draw, seq=7, d_model=6):
    return seq, d_model


def even_numbers(d_model):
    """Return 0, 2, 4, …: the 2i of each pair."""
    return torch.arange(0, d_model, 2)


def angles_of_pairs(seq, d_model):
    """For each position, compute one angle for every two features."""
    return torch.arange(seq)[:, None] / 10000 ** (even_numbers(d_model) / d_model)


def sines_and_cosines_alternating(angles, d_model):
    """Alternate sines and cosines along the features."""
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, :d_model]


@exercise(
    inputs=_sizes,
    axes={"return": "seq d_model"},
    hints=(
        "Features 2i and 2i + 1 use the same angle. How many different angles does a position have, and how does each "
        "angle follow from the number of its pair?",
        "First make the table of angles, of shape (seq, number of pairs): broadcast a column of positions against a "
        "row of divisors. `torch.arange(0, d_model, 2)` counts 0, 2, 4, …: these numbers are already 2i.",
        "`angles = torch.arange(seq)[:, None] / 10000 ** (… / d_model)`, then `table[:, 0::2] = …` and `table[:, "
        "1::2] = …`",
    ),
)
def sinusoidal_positions(seq, d_model, *, angles=angles_of_pairs, layout=sines_and_cosines_alternating):
    """Return the sines and cosines that encode a token's position, as a float32 tensor of shape (seq, d_model)."""
    return layout(angles(seq, d_model), d_model)


@sinusoidal_positions.right
class RightAnswers:
    def positions_filled_in(seq, d_model):
        table = torch.zeros(seq, d_model)
        position = torch.arange(seq, dtype=torch.float).unsqueeze(1)
        factors = torch.exp(even_numbers(d_model).float() * (-math.log(10000.0) / d_model))
        table[:, 0::2] = torch.sin(position * factors)
        table[:, 1::2] = torch.cos(position * factors[: d_model // 2])
        return table

    def positions_one_by_one(seq, d_model):
        table = torch.empty(seq, d_model)
        for p in range(seq):
            for j in range(d_model):
                angle = p / 10000 ** (2 * (j // 2) / d_model)
                table[p, j] = math.cos(angle) if j % 2 else math.sin(angle)
        return table

    def positions_as_shifted_sines(seq, d_model):
        feature = torch.arange(d_model, dtype=torch.float64)
        angles = torch.arange(seq).outer(10000 ** (-(feature - feature % 2) / d_model))
        return torch.sin(angles + math.pi / 2 * (feature % 2)).float()

    def positions_by_lists(seq, d_model):
        def feature(p, j):
            return (math.sin, math.cos)[j % 2](p * 10000 ** (-(j - j % 2) / d_model))

        return torch.tensor([[feature(p, j) for j in range(d_model)] for p in range(seq)])

    def positions_by_numpy(seq, d_model):
        angles = np.arange(seq)[:, None] / np.power(10000, 2 * (np.arange(d_model)[None, :] // 2) / d_model)
        angles[:, 0::2] = np.sin(angles[:, 0::2])
        angles[:, 1::2] = np.cos(angles[:, 1::2])
        return torch.tensor(angles, dtype=torch.float32)

    def positions_by_where(seq, d_model):
        j = torch.arange(d_model)
        angles = torch.arange(seq).unsqueeze(1) * torch.pow(10000.0, -(j // 2 * 2) / d_model)
        return torch.where(j % 2 == 0, angles.sin(), angles.cos())


sinusoidal_positions.example("two features", 5, 2)
sinusoidal_positions.example("one position", 1, 6)
sinusoidal_positions.example("an odd number of features", 7, 5)
sinusoidal_positions.example("one feature", 7, 1)
# With 2 features all angles are whole numbers, which float32 stores exactly, so every formula gives the same result.
sinusoidal_positions.example("a text of 5,100 tokens", 5100, 2)


def _raises_for_an_odd_width(probe, got, expected):
    return probe.arguments[1] % 2 == 1 and isinstance(got.error, Exception)


def an_odd_width_refused(seq, d_model):
    """{Your function is right for an even `d_model`.} With an odd `d_model` your function raises an error. Every pair
    has two features, but the last sine of an odd width has no cosine: write only as many cosines as there are places
    for them."""
    if d_model % 2:
        raise ValueError("d_model must be even")
    return sinusoidal_positions.reference(seq, d_model)


@sinusoidal_positions.property
def sine_and_cosine_of_one_angle(function, seq, d_model):
    """The squares of features 2i and 2i + 1 sum to one, as those of the sine and cosine of one angle do."""
    squares = function(seq, d_model)[:, : d_model // 2 * 2].square()
    return nearly_equal(squares[:, 0::2] + squares[:, 1::2], 1)


@sinusoidal_positions.property
def position_zero_alternates_0_and_1(function, seq, d_model):
    """The vector of position 0 is 0, 1, 0, 1, …"""
    first = function(seq, d_model)[0]
    return first.shape == (d_model,) and nearly_equal(first, torch.arange(d_model) % 2.0)


@sinusoidal_positions.property
def slower_from_pair_to_pair(function, seq, d_model):
    """Each pair turns more slowly than the previous pair: at position 1, the sines become smaller from pair to pair."""
    sines = function(seq, d_model)[1, 0::2]
    return bool((sines.diff() < 0).all() and (sines > 0).all())


@sinusoidal_positions.property
def first_pair_turns_by_one_radian(function, seq, d_model):
    """The first pair turns by one radian from one position to the next."""
    first = function(seq, d_model)[:, 0]
    return nearly_equal(first, torch.arange(seq).sin())


def table_of_fixed_length(seq, d_model):
    return sinusoidal_positions.reference(64, d_model)[:seq]


@sinusoidal_positions.wrong(stage="angles")
class Angles:
    def exponent_doubled(seq, d_model):
        """The exponent is twice as large as it should be, so every divisor is squared, and the slow half of the pairs
        hardly turns at all. If `i` counts pairs (0, 1, 2, …), the formula needs 2i; an `i` from `arange(0, d_model, 2)`
        is already that 2i. For 4 features, the second pair must turn a hundred times more slowly than the first: does
        yours?"""
        return torch.arange(seq)[:, None] / 10000 ** (2 * even_numbers(d_model) / d_model)

    def exponent_halved(seq, d_model):
        """The exponent is half as large as it should be, so all divisors are below 100 instead of below 10000. If `i`
        counts pairs (0, 1, 2, …), what does the formula divide by d_model? For 4 features, the second pair must turn a
        hundred times more slowly than the first: does yours?"""
        return torch.arange(seq)[:, None] / 10000 ** (even_numbers(d_model) / 2 / d_model)

    def exponent_cut_to_zero(seq, d_model):
        """All pairs turn at the same speed, because every divisor is 1: the integer division `2 * i // d_model` is 0
        for every `i` that occurs. Which division keeps the fraction?"""
        return torch.arange(seq)[:, None] / 10000 ** (even_numbers(d_model) // d_model)

    def exponent_rounded_down(seq, d_model):
        """{The first pair is right, but} all pairs after the first hardly turn, or not at all, because their exponents
        are all -1: the integer division `-i // d_model` rounds down, to -1 for every `i` but 0. Which division keeps
        the fraction?"""
        return torch.arange(seq)[:, None] * 10000.0 ** (-even_numbers(d_model) // d_model)

    @with_text_of(exponent_rounded_down)
    def exponent_rounded_down_in_whole_numbers(seq, d_model):
        return torch.arange(seq)[:, None] * 10000 ** (-even_numbers(d_model) // d_model)

    def pairs_minus_one(seq, d_model):
        """In the exponent you divide by the number of pairs minus one, so the last divisor is 10000 itself. Some
        libraries do this, but in the formula here the last divisor is below 10000. Compare the divisor of your last
        pair with the formula."""
        pairs = torch.arange((d_model + 1) // 2)
        return torch.arange(seq)[:, None] / 10000 ** (pairs / max(d_model / 2 - 1, 1))

    def pairs_counted_without_the_last(seq, d_model):
        """Your exponent is i / (d_model // 2). For an even `d_model` that is 2i / d_model; with an odd `d_model`, `//`
        rounds down, and all pairs but the first turn too slowly. What is the denominator in the formula?"""
        pairs = torch.arange((d_model + 1) // 2)
        return torch.arange(seq)[:, None] / 10000 ** (pairs / (d_model // 2))

    def times_the_divisor(seq, d_model):
        """You multiply the position by 10000^(2i / d_model), instead of dividing: each pair turns faster than the
        previous pair, so fast that the vectors of neighbouring positions look unrelated. The first pair must be the
        fastest. Which sign must the exponent have?"""
        return torch.arange(seq)[:, None] * 10000 ** (even_numbers(d_model) / d_model)

    def base_1000(seq, d_model):
        """The base of your divisors is 1000, but the formula has 10000. The table looks similar, but the slow pairs
        turn too fast. Count the zeros."""
        return torch.arange(seq)[:, None] / 1000 ** (even_numbers(d_model) / d_model)

    def base_and_exponent_exchanged(seq, d_model):
        """Base and exponent have changed places: you raise 2i / d_model to the power 1e-4, which is 0 for the first
        pair and almost 1 for every other pair. In the formula the base is 10000, and the exponent is 2i / d_model.
        Which of the two belongs on the left of `**`?"""
        return torch.arange(seq)[:, None] * (even_numbers(d_model) / d_model) ** 1e-4

    def logarithm_to_base_ten(seq, d_model):
        """Your divisors are powers of e^4 (about 55) instead of powers of 10000: you pass `exp` a logarithm to base 10,
        which is 4 for 10000. `exp` is the inverse of the natural logarithm, `math.log`."""
        return torch.arange(seq)[:, None] * torch.exp(-even_numbers(d_model) * math.log10(10000.0) / d_model)

    def power_before_division(seq, d_model):
        """You raise 10000 to the power 2i, and then divide the result by `d_model`: in `10000 ** i / d_model`, Python
        computes `**` before `/`. Even the first pair does not turn by one radian from position to position.
        Where are brackets missing?"""
        return torch.arange(seq)[:, None] / (10000 ** even_numbers(d_model).float() / d_model)

    def angle_divided_by_d_model(seq, d_model):
        """You raise 10000 to the power 2i, and also divide the angle by `d_model`: `**` is applied before `/`, and `/`
        from left to right. Even the first pair does not turn by one radian from position to position. Where are
        brackets missing?"""
        return torch.arange(seq)[:, None] / 10000 ** even_numbers(d_model) / d_model

    def counted_from_one(seq, d_model):
        """Your positions count from 1. The first token is at position 0, where all sines are 0 and all cosines are 1;
        your first row is what the second row should be."""
        return angles_of_pairs(seq + 1, d_model)[1:]

    def positions_between_0_and_1(seq, d_model):
        """You divide the positions by the length of the sequence, so the angle of a token depends on how many tokens
        there are. What is the numerator in the formula?"""
        return angles_of_pairs(seq, d_model) / seq

    def angles_taken_for_degrees(seq, d_model):
        """You convert the angles from degrees to radians, which makes them 57 times too small. `sin` and `cos` expect
        radians, and the angles of the formula are already in radians."""
        return torch.deg2rad(angles_of_pairs(seq, d_model))


@sinusoidal_positions.wrong(stage="angles", alone=True)
class AnglesAlone:
    def exponent_without_its_minus(seq, d_model):
        """The exponent in `exp` lacks its minus: you multiply the position by 10000^(2i / d_model), instead of
        dividing, so each pair turns faster than the previous pair. The first pair must be the fastest."""
        factors = torch.exp(even_numbers(d_model).float() * (math.log(10000.0) / d_model))
        return torch.arange(seq)[:, None] * factors

    def positions_not_a_column(seq, d_model):
        """Positions and divisors are both rows, and they line up only if there are as many positions as divisors. Every
        position must be divided by every divisor. Which of the two needs an axis of size 1, and where?"""
        return torch.arange(seq) / 10000 ** (even_numbers(d_model) / d_model)


@sinusoidal_positions.wrong(stage="layout")
class Layout:
    def sines_then_cosines(angles, d_model):
        """All sines come first and all cosines after them, but they should alternate. The numbers are the same in a
        different order: a model trained with your order works equally well, but the weights of other models do not fit.
        Where does the cosine of pair 0 belong?"""
        return torch.cat((angles.sin(), angles[:, : d_model // 2].cos()), dim=1)

    def cosine_first(angles, d_model):
        """The cosine comes before the sine in every pair. Row 0 must begin with 0, 1, 0, 1, but your row 0 begins with
        1, 0, 1, 0. Which of the two belongs to the even features, counted from 0?"""
        return torch.stack((angles.cos(), angles.sin()), dim=-1).flatten(1)[:, :d_model]

    def sines_only(angles, d_model):
        """All features are sines. A sine alone does not determine its angle: it is 0.5 once on the way up and once on
        the way down. The odd features are a different function of the same angle."""
        return angles.sin().repeat_interleave(2, dim=1)[:, :d_model]

    def angles_as_they_are(angles, d_model):
        """You return the angles themselves. They grow without bound, so at late positions they would be much larger
        than the tokens to which they are added. Sine and cosine stay between -1 and 1: which function belongs to the
        even features, and which to the odd?"""
        return angles.repeat_interleave(2, dim=1)[:, :d_model]

    def table_transposed(angles, d_model):
        """Your table has shape (d_model, seq), with a row for each feature. It is added to tokens of shape (seq,
        d_model), so each row must belong to one position. Which of the two `arange` tensors must be a column?"""
        return sines_and_cosines_alternating(angles, d_model).mT

    def position_zero_left_at_zeros(angles, d_model):
        """Row 0 is all zeros. Programs that reserve row 0 for padding leave it at zero, with `if pos != 0 else zeros`
        or a loop from 1. Here the first token is at position 0, and the cosine of 0 is 1: compute row 0 by the formula
        as well."""
        return torch.cat([torch.zeros(1, d_model), sines_and_cosines_alternating(angles, d_model)[1:]])

    def last_feature_left_at_zero(angles, d_model):
        """The last feature is 0 at every position: your loop over the features ends one feature too early. `range(n)`
        already leaves out n, so do not subtract 1."""
        table = sines_and_cosines_alternating(angles, d_model)
        table[:, -1] = 0
        return table

    def places_for_cosines_missing(angles, d_model):
        """With an odd `d_model` there is one sine more than there are places for cosines, so writing as many cosines as
        sines raises an error from `d_model = 3` on. The last sine has no cosine. How many cosines are there, and how do
        you cut the angles to that number?"""
        table = torch.zeros(len(angles), d_model)
        table[:, 0::2] = angles.sin()
        table[:, 1::2] = angles.cos()
        return table

    def one_sine_too_few(angles, d_model):
        """With an odd `d_model` there is one more place for sines than `d_model // 2`, the number of complete pairs, so
        writing the sines raises an error. The last sine has no cosine. How many angles are there?"""
        table, angles = torch.zeros(len(angles), d_model), angles[:, : d_model // 2]
        table[:, 0::2] = angles.sin()
        table[:, 1::2] = angles.cos()
        return table

    def one_feature_too_many(angles, d_model):
        """With an odd `d_model` your table has one feature too many: the last pair is complete, but there is a place
        only for its sine. What must be cut off at the end?"""
        return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)

    def one_feature_too_few(angles, d_model):
        """With an odd `d_model` your table has one feature too few: `d_model // 2` counts the complete pairs, and the
        last sine, which has no cosine, is left out. How many sines are there?"""
        return sines_and_cosines_alternating(angles, d_model)[:, : d_model // 2 * 2]

    def no_feature_for_the_last_cosine(angles, d_model):
        """With an odd `d_model` there is no place for the cosine of the last pair, so writing it raises an error. The
        last sine has no cosine: check before you write whether there is a place."""
        table = torch.zeros(len(angles), d_model)
        for row in range(len(angles)):
            for pair in range(angles.shape[1]):
                table[row, 2 * pair] = math.sin(angles[row, pair])
                table[row, 2 * pair + 1] = math.cos(angles[row, pair])
        return table

    def last_sine_left_at_zero(angles, d_model):
        """With an odd `d_model` the last feature stays 0: a loop over `d_model // 2` pairs fills only the complete
        pairs. Write the last sine, which has no cosine, as well. How many pairs are there, including the incomplete
        pair?"""
        table = sines_and_cosines_alternating(angles, d_model)
        table[:, d_model // 2 * 2 :] = 0
        return table


@sinusoidal_positions.wrong(stage="layout", alone=True)
class LayoutAlone:
    def angles_by_pairs(angles, d_model):
        """Your angles have a row for each pair and a column for each position, but the table has a row for each
        position, so the angles do not fit. The first argument of `outer` makes the rows. Which of the two vectors must
        come first?"""
        table, angles = torch.zeros(len(angles), d_model), angles.mT.contiguous()
        table[:, 0::2] = angles.sin()
        table[:, 1::2] = angles.cos()[:, : d_model // 2]
        return table

    def sine_of_a_plain_number(angles, d_model):
        """`torch.sin` and `torch.cos` accept tensors only, but you pass a plain number. `math.sin` accepts numbers; or
        make a tensor of all the angles first, without a loop."""
        return torch.sin(angles[0, 0].item())

    def truncated_to_integers(angles, d_model):
        """Your table has an integer dtype, so every sine and cosine is truncated to -1, 0 or 1. A table keeps the dtype
        with which it was created, whatever is written into it. The exercise asks for float32."""
        return sines_and_cosines_alternating(angles, d_model).long()


@sinusoidal_positions.wrong
class Features:
    def angle_for_each_feature(seq, d_model):
        """The cosines have different angles from the sines: your exponent changes with every feature, instead of with
        every pair. {The sines are right.} A sine and its cosine are the two coordinates of *one* hand of a clock: which
        number do features 2i and 2i + 1 share?"""
        feature = torch.arange(d_model)
        angles = torch.arange(seq)[:, None] / 10000 ** (feature / d_model)
        return torch.where(feature % 2 == 0, angles.sin(), angles.cos())

    def feature_taken_for_pair(seq, d_model):
        """You use the number of the feature where the formula has the number of the pair: feature 2 gets the exponent 4
        / d_model, feature 3 the exponent 6 / d_model. Features 2i and 2i + 1 form pair i and share its angle. How do
        you compute the number of a pair from the number of a feature?"""
        feature = torch.arange(d_model)
        angles = torch.arange(seq)[:, None] / 10000 ** (2 * feature / d_model)
        return torch.where(feature % 2 == 0, angles.sin(), angles.cos())

    def exponent_of_the_next_pair_for_cosines(seq, d_model):
        """The cosines turn too slowly: the exponent of feature 2i + 1 is (2i + 2) / d_model. {The sines are right.} A
        sine and its cosine share one angle. What must you subtract from the number of an odd feature to get the number
        of its sine?"""
        feature = torch.arange(d_model)
        angles = torch.arange(seq)[:, None] / 10000 ** ((feature + feature % 2) / d_model)
        return torch.where(feature % 2 == 0, angles.sin(), angles.cos())

    def as_many_pairs_as_features(seq, d_model):
        """Your loop runs over `d_model` pairs, and writes past the last feature. Two features make a pair. How many
        pairs are there, and what happens to the last feature of an odd `d_model`?"""
        table = torch.zeros(seq, d_model)
        for position in range(seq):
            for pair in range(d_model):
                table[position, 2 * pair] = math.sin(position / 10000 ** (2 * pair / d_model))
                table[position, 2 * pair + 1] = math.cos(position / 10000 ** (2 * pair / d_model))
        return table

    def pairs_alone_for_reshape(seq, d_model):
        """{Your function is right for an even `d_model`.} With an odd `d_model` there are more sines and cosines than
        places: you complete every pair, but the last sine has no cosine. So `view` or `reshape` into (seq, d_model)
        raises an error. Join the pairs first, then cut off the last column."""
        angles = angles_of_pairs(seq, d_model)
        return torch.stack((angles.sin(), angles.cos()), dim=-1).reshape(seq, d_model)

    def complete_pairs_alone_for_reshape(seq, d_model):
        """{Your function is right for an even `d_model`.} With an odd `d_model` there are fewer sines and cosines than
        places: `d_model // 2` counts the complete pairs, without the last sine. So `view` or `reshape` into (seq,
        d_model) raises an error. How many angles are there?"""
        angles = angles_of_pairs(seq, d_model)[:, : d_model // 2]
        return torch.stack((angles.sin(), angles.cos()), dim=-1).reshape(seq, d_model)


sinusoidal_positions.mistake(an_odd_width_refused, recognizes=_raises_for_an_odd_width)


fixed_length(sinusoidal_positions, table_of_fixed_length, "a text of 5,100 tokens")
