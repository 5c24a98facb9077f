"""Rotary positions."""

import math

import torch

from ..common_mistakes import fixed_length, left_in_float32
from ..exercise import exercise, family
from ..probes import strided_with_whole_rows


# With base 16 and 4 or 8 features, all speeds are powers of 2, which float32 represents exactly: the angles are exact,
# and agree with those in float64 even if a mistake makes them large. No other size equals d_head / 2.
def _heads_and_positions(draw, batch=3, heads=5, seq=7, d_head=4):
    if d_head % 2:  # the smallest input must consist of whole pairs, too
        raise ValueError(f"d_head must be even, got {d_head}")
    positions = 3 + torch.arange(seq)
    return draw(batch, heads, seq, d_head), torch.where(positions > 5, positions + 4, positions), 16.0


def neighbour_pairs(x):
    """Pair feature 0 with feature 1, 2 with 3, and so on."""
    return x[..., 0::2], x[..., 1::2]


def angles_of(positions, d_head, base):
    """Multiply each position by the speed of each pair, base^(−2i / d_head)."""
    speeds = base ** (-torch.arange(0, d_head, 2, dtype=torch.float64, device=positions.device) / d_head)
    return positions[:, None] * speeds


def rotate_pairs(a, b, angle):
    """Rotate each pair by its angle."""
    cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
    return a * cos - b * sin, a * sin + b * cos


def interleave_pairs(a, b):
    """Put both features of a pair back in their places."""
    return torch.stack([a, b], dim=-1).flatten(-2)


@exercise(
    inputs=_heads_and_positions,
    axes={"x": "batch heads seq d_head", "positions": "seq", "return": "batch heads seq d_head"},
    hints=(
        "Rotate the pair (1, 0) by a quarter of a circle: in which direction does it point? Which number of the new "
        "pair is the cosine of the angle, and which is the sine?",
        "Feature 0 is rotated with feature 1, and 2 with 3. The angle of pair i is position · base^(−2i / d_head): "
        "the table of angles has one row for each position and one column for each pair.",
        "`a, b = x[..., 0::2], x[..., 1::2]`, `angle = positions[:, None] * …`, then `torch.stack([a * … - b * …, "
        "a * … + b * …], dim=-1).flatten(-2)`",
    ),
    make_strided=strided_with_whole_rows,
)
def rotate(x, positions, base, *, pairs=neighbour_pairs, angles=angles_of, turn=rotate_pairs, joined=interleave_pairs):
    """Rotate pair i of every token's features by the angle position · base^(−2i / d_head)."""
    a, b = pairs(x)
    return joined(*turn(a, b, angles(positions, x.shape[-1], base)))


rotate.example("a single pair", lambda draw: (draw(1, 1, 4, 2), torch.arange(4), 10000.0), plain=True)
rotate.example("one token at position 20", lambda draw: (draw(1, 2, 1, 8), torch.tensor([20]), 16.0), plain=True)


@rotate.probe(plain=True)
def positions_out_of_order(draw):
    """positions that do not grow"""
    return draw(1, 2, 4, 4), torch.tensor([5, 0, 2, 2]), 100.0


@rotate.probe
def long_text_at_late_positions(draw):
    """300 tokens from position 5,000 on"""
    return draw(1, 2, 300, 2), 5000 + torch.arange(300), 10000.0  # a single pair: float32 represents its angles exactly


@rotate.right
class RightAnswers:
    def by_complex_numbers(x, positions, base):
        d_head = x.shape[-1]
        speeds = base ** (-torch.arange(0, d_head, 2, device=x.device).double() / d_head)
        rotations = torch.polar(torch.ones_like(positions[:, None] * speeds), positions[:, None] * speeds)
        pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(pairs * rotations).flatten(-2).to(x.dtype)

    def by_complex_numbers_of_neighbours_in_memory(x, positions, base):
        speeds = 1.0 / base ** (torch.arange(0, x.shape[-1], 2, device=x.device).float() / x.shape[-1])
        angle = torch.outer(positions, speeds)
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(3).type_as(x)

    def by_partners(x, positions, base):
        d_head = x.shape[-1]
        angle = positions[:, None] / base ** (torch.arange(0, d_head, 2, device=x.device) / d_head)
        cos, sin = angle.cos().repeat_interleave(2, -1), angle.sin().repeat_interleave(2, -1)
        partner = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2)
        return x * cos.to(x.dtype) + partner * sin.to(x.dtype)

    def by_loops(x, positions, base):
        result = x.clone()
        for index, position in enumerate(positions.tolist()):
            for i in range(x.shape[-1] // 2):
                angle = torch.tensor(position * base ** (-2 * i / x.shape[-1]))
                a, b = x[:, :, index, 2 * i], x[:, :, index, 2 * i + 1]
                result[:, :, index, 2 * i] = a * angle.cos() - b * angle.sin()
                result[:, :, index, 2 * i + 1] = a * angle.sin() + b * angle.cos()
        return result


@rotate.property
def norms_stay(function, x, positions, base):
    """A rotation does not change the norm of any token."""
    return bool(torch.allclose(function(x, positions, base).norm(dim=-1), x.norm(dim=-1), rtol=1e-3))


@rotate.property
def nothing_at_position_0(function, x, positions, base):
    """A token at position 0 stays as it is."""
    return bool(torch.allclose(function(x, torch.zeros_like(positions), base), x, atol=1e-5))


@rotate.mistake
def halves(x, positions, base):
    """You pair feature i with feature i + d_head/2, as `transformers` does for Llama. In this exercise neighbouring
    features form a pair: 0 with 1, 2 with 3. Both layouts are rotary positions, and the layout must fit the model's
    weights."""
    a, b = rotate_pairs(*x.chunk(2, dim=-1), angles_of(positions, x.shape[-1], base))
    return torch.cat([a, b], dim=-1)


def _speeds(positions, d_head, base):
    return angles_of(torch.ones_like(positions[:1]), d_head, base)[0]


def _rotate_with_partners(x, partner, angle):
    return x * angle.cos().to(x.dtype) + partner * angle.sin().to(x.dtype)


def _exchange_neighbours(x):
    return torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)


def _exchange_halves(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


def table_of_fixed_length(x, positions, base):
    d_head = x.shape[-1]
    table = angles_of(torch.arange(64, device=x.device), d_head, base)
    return interleave_pairs(*rotate_pairs(*neighbour_pairs(x), table[positions]))


def _leaves_rest_unchanged(probe, got, expected):
    """Return whether the function rotated the first features of every head in some way, and returned all later features
    unchanged."""
    x, result = probe.arguments[0], got.value
    if x.shape[-1] == 2:  # a head of one pair has no part to leave unchanged
        return True
    if not isinstance(result, torch.Tensor) or (result.shape, result.dtype) != (x.shape, x.dtype):
        return False
    changed = (result != x).flatten(0, -2).any(0).nonzero().flatten().tolist()
    if not changed or changed[-1] == x.shape[-1] - 1:
        return False
    part = changed[-1] + 1
    return torch.allclose(result[..., :part].norm(dim=-1), x[..., :part].norm(dim=-1), 1e-4)


@rotate.wrong(stage="pairs")
class Pairs:
    def halves_taken(x):
        """You split the features into halves, but put the results together as neighbours. You must change one of the
        two steps: which two features form a pair?"""
        return x.chunk(2, dim=-1)

    @family(
        first_features_twice=(0, "first", "odd"),
        second_features_twice=(1, "second", "even"),
    )
    def one_feature_twice(first, x):
        """You use the {} feature of each pair twice, and never read the features with {} numbers. At which feature does
        each of your two slices begin?"""
        return x[..., first::2], x[..., first::2]

    def partners_exchanged(x):
        """You exchange the two features of each pair: you use the second as the first. In a pair (a, b), which feature
        has the even number?"""
        return neighbour_pairs(x)[::-1]

    def in_float64(x):
        """Your result is in float64, whatever the dtype of `x`: it takes twice the memory of float32. Angles can be in
        float64, but the result needs the dtype of `x`. Which tensor is in float64, and where do you convert back?"""
        return neighbour_pairs(x.double())


@rotate.wrong(stage="pairs", alone=True)
class PairsAlone:
    def pieces_of_two(x):
        """`split(2)` splits the features into pieces of two features each, not into two pieces: the number of pieces
        depends on d_head. Which slices contain every other feature?"""
        a, b = x.split(2, dim=-1)
        return a, b


@rotate.wrong(stage="angles")
class Angles:
    def base_upside_down(positions, d_head, base):
        """Your later pairs rotate faster than the first: the minus sign of the exponent is missing. Pair 0 rotates by 1
        radian for each position, and all other pairs rotate more slowly."""
        return angles_of(positions, d_head, 1 / base)

    def exponent_without_the_two(positions, d_head, base):
        """Your exponent is i / d_head, half of the right exponent. Pair i contains the features 2i and 2i + 1: with the
        factor 2, the slowest speed is near 1 / base."""
        return angles_of(positions, d_head, base**0.5)

    def degrees(positions, d_head, base):
        """You convert the angles from degrees to radians, but they are already in radians: at position 1, pair 0
        rotates by 1 radian, about a sixth of a circle."""
        return torch.deg2rad(angles_of(positions, d_head, base))

    def whole_circles(positions, d_head, base):
        """You multiply the angles by 2π. They are already in radians: at position 1, pair 0 rotates by 1 radian."""
        return angles_of(positions, d_head, base) * 2 * torch.pi

    def counted_from_one(positions, d_head, base):
        """You rotate every token as if its position were one larger. Scores do not show the mistake, since they depend
        only on distances, but a token at position 0 must not change."""
        return angles_of(positions + 1, d_head, base)

    def places_for_positions(positions, d_head, base):
        """You number the tokens 0, 1, 2 … yourself, and never use `positions`. In a step with a cache, the function
        receives a single token with a late position: where does your function read this position?"""
        return angles_of(torch.arange(len(positions), device=positions.device), d_head, base)

    def first_pair_alone(positions, d_head, base):
        """You rotate only pair 0, and return all other pairs unchanged. Does a loop end too early, perhaps with a
        `return` inside it? Or are your speeds integers, so that all but the first become 0?"""
        return angles_of(positions, d_head, base) * (torch.arange(d_head // 2, device=positions.device) == 0)

    def last_pair_left(positions, d_head, base):
        """You return the last pair unchanged, and rotate all others. How many pairs are there, and where does your loop
        end?"""
        pairs = torch.arange(d_head // 2, device=positions.device)
        return angles_of(positions, d_head, base) * (pairs < d_head // 2 - 1)

    @family(
        base_always_100000=(100000.0, "100,000", "The model of chapter 10 has this base, but other models do not"),
        base_never_used=(10000.0, "10,000", "Many models have this base, but others do not"),
    )
    def base_always(number, positions, d_head, base):
        """Your base is always {}, whatever the argument is. {}. Where do you use the argument `base`?"""
        return angles_of(positions, d_head, number)

    def one_speed(positions, d_head, base):
        """All of your pairs rotate by the same angle. Each pair has its own speed, base^(−2i / d_head): where does your
        formula use i?"""
        return positions[:, None].double().expand(-1, d_head // 2)

    def divided_by_the_pairs_less_one(positions, d_head, base):
        """Your exponents run from 0 to 1, both ends included, as in `linspace`. The exponent is 2i / d_head, and its
        last value is one step below 1."""
        steps = torch.linspace(0, 1, d_head // 2, dtype=torch.float64, device=positions.device)
        return positions[:, None] * base**-steps

    def exponent_doubled(positions, d_head, base):
        """Your exponent is 4i / d_head, twice the right exponent. Do you multiply by 2 again, although `arange(0,
        d_head, 2)` already counts 2i, or do you divide by the number of pairs instead of d_head?"""
        return angles_of(positions, d_head, base**2)

    def exponent_not_divided(positions, d_head, base):
        """Your exponent is 2i, without the division by d_head: each pair is slower than the pair before it by a factor
        of base². Only the slowest pair should have a speed near 1 / base."""
        return angles_of(positions, d_head, base**d_head)

    def pairs_counted_from_one(positions, d_head, base):
        """You count the pairs from 1: each pair rotates at the speed of the next. Pair 0 must rotate by 1 radian for
        each position, since base^0 is 1."""
        return angles_of(positions, d_head, base) * base ** (-2 / d_head)


@rotate.wrong(stage="angles", alone=True)
class AnglesAlone:
    def counted_from_one_less(positions, d_head, base):
        """You rotate every token as if its position were one smaller. Scores do not show the mistake, since they depend
        only on distances, but pair 0 of a token at position 1 must rotate by 1 radian."""
        return angles_of(positions - 1, d_head, base)

    def counted_from_the_first(positions, d_head, base):
        """You subtract the first position from all positions, so the first token of `x` is never rotated. `positions`
        can begin at any number. Which subtraction must you remove?"""
        return angles_of(positions - positions[0], d_head, base)

    def positions_without_gaps(positions, d_head, base):
        """You use only the first of `positions`, and count on from there. Positions need not be consecutive: where does
        your function use the other positions?"""
        return angles_of(positions[0] + torch.arange(len(positions), device=positions.device), d_head, base)

    def first_position_for_all(positions, d_head, base):
        """You rotate all tokens by the position of the first token. Each token has its own position: the table of
        angles needs one row for each position."""
        return angles_of(positions[:1].expand(len(positions)), d_head, base)

    def divided_after_the_power(positions, d_head, base):
        """You compute the power first, and then divide by d_head: Python computes `**` before `/`. Pair 0 must rotate
        by 1 radian for each position. Which part belongs in brackets?"""
        return angles_of(positions, d_head, base**d_head) / d_head

    def one_speed_from_the_base(positions, d_head, base):
        """All of your pairs rotate by the same angle, position · base^(−2 / d_head). Each pair has its own speed: where
        does your formula use i?"""
        return (positions[:, None] * base ** (-2 / d_head)).double().expand(-1, d_head // 2)

    def pair_times_the_power(positions, d_head, base):
        """You multiply base^(−2 / d_head) by i, the number of the pair, instead of using i in the exponent, so pair 0
        is never rotated. Which part belongs in the exponent?"""
        pairs = torch.arange(d_head // 2, device=positions.device)
        return positions[:, None] * pairs * base ** (-2 / d_head)

    def pair_outside_the_power(positions, d_head, base):
        """Your exponent is only −2, and you multiply the power by i / d_head: Python computes `**` before `*` and `/`.
        Pair 0 is then never rotated. Which part belongs in brackets?"""
        pairs = torch.arange(d_head // 2, device=positions.device)
        return positions[:, None] * (base**-2 * pairs / d_head).double()

    def nothing_raised_to_a_power(positions, d_head, base):
        """You multiply the base by the exponent instead of raising it to a power: pair 0 is never rotated, and the next
        pairs rotate very fast. Which operator computes a power in Python?"""
        pairs = torch.arange(d_head // 2, device=positions.device)
        return positions[:, None] * (base * -2 * pairs / d_head).double()

    def as_at_position_1(positions, d_head, base):
        """You rotate every token as if its position were 1: your angles are the speeds themselves. By what must you
        multiply the speeds?"""
        return angles_of(torch.ones_like(positions), d_head, base)

    def positions_as_shares(positions, d_head, base):
        """You divide the positions by their number, so they become fractions of the length. Use the positions
        themselves: at position 1, pair 0 rotates by 1 radian, however long the text is."""
        return angles_of(positions, d_head, base) / len(positions)

    def exponents_rounded_down(positions, d_head, base):
        """All of your pairs except the first rotate at the speed 1 / base: their exponents are integers, rounded down
        as `//` does. Which division keeps the digits after the decimal point?"""
        pairs = torch.arange(d_head // 2, device=positions.device)
        return positions[:, None] * base ** -(pairs > 0).double()

    def e_for_the_base(positions, d_head, base):
        """Your speeds are powers of e, as `exp` computes them, and you never use the argument `base`. How can you write
        base^y as a power of e?"""
        return angles_of(positions, d_head, math.e)

    @family(logarithm_to_base_10=(math.log10, "10"), logarithm_to_base_2=(math.log2, "2"))
    def another_logarithm(logarithm, positions, d_head, base):
        """You use `exp` and a logarithm, but they do not fit together: `exp` is the inverse of the natural logarithm,
        but you use the logarithm to base {}."""
        return angles_of(positions, d_head, math.exp(logarithm(base)))

    def position_in_the_power(positions, d_head, base):
        """The position is inside the power: you raise position · base to the power −2i / d_head. Raise only the base to
        this power, and multiply the result by the position. Which part belongs in brackets?"""
        exponents = torch.arange(0, d_head, 2, dtype=torch.float64, device=positions.device) / d_head
        return (positions[:, None] * base) ** -exponents

    def whole_angles(positions, d_head, base):
        """Your angles are integers: all digits after the decimal point are lost. Which dtype does your table of angles
        have?"""
        return angles_of(positions, d_head, base).long().double()

    def half_the_angle(positions, d_head, base):
        """You rotate every pair by half of its angle. At position 1, pair 0 rotates by 1 radian: where do you divide by
        2?"""
        return angles_of(positions, d_head, base) / 2

    def twice_the_angle(positions, d_head, base):
        """You rotate every pair by twice its angle: either you double the angle, or you rotate twice. At position 1,
        pair 0 rotates by 1 radian."""
        return angles_of(positions, d_head, base) * 2

    def half_circles(positions, d_head, base):
        """You multiply the angles by π. They are already in radians: at position 1, pair 0 rotates by 1 radian."""
        return angles_of(positions, d_head, base) * torch.pi

    def into_degrees(positions, d_head, base):
        """You convert the angles to degrees, but `cos` and `sin` need radians. The angles are already in radians: at
        position 1, pair 0 rotates by 1 radian, about a sixth of a circle."""
        return torch.rad2deg(angles_of(positions, d_head, base))

    def first_pair_left(positions, d_head, base):
        """You return pair 0 unchanged, and rotate all others. The exponent of pair 0 is 0, so its speed is 1: it
        rotates faster than all other pairs."""
        return angles_of(positions, d_head, base) * (torch.arange(d_head // 2, device=positions.device) > 0)

    def first_token_alone(positions, d_head, base):
        """You rotate only the first token, and return all other tokens unchanged. Does a loop end too early, perhaps
        with a `return` inside it?"""
        return (
            angles_of(positions, d_head, base) * (torch.arange(len(positions), device=positions.device) == 0)[:, None]
        )

    def last_token_left(positions, d_head, base):
        """You return the last token unchanged, and rotate all others. How many tokens are there, and where does your
        loop end?"""
        tokens = torch.arange(len(positions), device=positions.device)
        return angles_of(positions, d_head, base) * (tokens < len(positions) - 1)[:, None]

    def half_of_the_pairs_left(positions, d_head, base):
        """You rotate only the pairs in the first half of the features. There are d_head / 2 pairs, and they extend to
        the last feature: where does your loop end?"""
        pairs = torch.arange(d_head // 2, device=positions.device)
        return angles_of(positions, d_head, base) * (2 * pairs < d_head // 2)

    def table_of_too_few_rows(positions, d_head, base):
        """Your table has a row for each token of `x`, but you index it with `positions`, whose numbers can be larger
        than the index of the table's last row. Positions need not begin at 0. Do you need a table, or can you multiply
        the positions by the speeds?"""
        return Angles.places_for_positions(positions, d_head, base)[positions]

    def axis_after_the_pairs(positions, d_head, base):
        """Your table of angles has an axis of size 1 after its pairs, so its pairs line up with the tokens of `x`.
        Broadcasting compares axes from the right: which axis must be the last?"""
        return angles_of(positions, d_head, base)[..., None]

    def tokens_before_heads(positions, d_head, base):
        """The positions of your table of angles line up with the heads, as if `x` were (batch, seq, heads, d_head).
        Here the heads come before the tokens: counted from the end, which axis counts the tokens?"""
        return angles_of(positions, d_head, base)[:, None]

    def angles_transposed(positions, d_head, base):
        """Your table of angles is transposed: it has one row for each pair and one column for each position. The last
        axis of the split features counts the pairs: which axis of your table must count them?"""
        return angles_of(positions, d_head, base).T

    def angle_for_each_feature(positions, d_head, base):
        """Your table has an angle for each feature, but you split `x` into pairs, and there are half as many pairs as
        features. How many speeds does a head have?"""
        return angles_of(positions, 2 * d_head, base)

    def positions_beside_speeds(positions, d_head, base):
        """You multiply positions and speeds element by element, but they have different lengths. Every position must be
        multiplied by every speed: which shape turns the positions into a column?"""
        return positions * _speeds(positions, d_head, base)

    def floating_positions_beside_speeds(positions, d_head, base):
        """You multiply positions, converted to floating-point numbers, and speeds element by element, but they have
        different lengths. Every position must be multiplied by every speed: which shape turns the positions into a
        column?"""
        return positions.float() * _speeds(positions, d_head, base)

    def speeds_beside_positions(positions, d_head, base):
        """You multiply speeds and positions element by element, but they have different lengths. Every position must be
        multiplied by every speed: which shape turns the positions into a column?"""
        return _speeds(positions, d_head, base) * positions

    def positions_in_a_row(positions, d_head, base):
        """Your positions are a row, like the speeds, but the two rows have different lengths. Every position must be
        multiplied by every speed, so one of the two must be a column: which one, if each token has a row of angles?"""
        return positions[None] * _speeds(positions, d_head, base)

    def whole_positions_in_a_product(positions, d_head, base):
        """You compute the table with `@`, but a matrix product needs one dtype: the positions are integers, and the
        speeds are floating-point numbers. To which dtype must you convert the positions? Or is there a product that
        accepts both dtypes?"""
        return positions[:, None] @ _speeds(positions, d_head, base).float()[None]

    def odd_features_counted(positions, d_head, base):
        """Your exponent counts 1, 3, 5 … instead of 0, 2, 4 …: you use 2i + 1 instead of 2i. Pair 0 must rotate by 1
        radian for each position."""
        return angles_of(positions, d_head, base) * base ** (-1 / d_head)

    def slowest_first(positions, d_head, base):
        """Your speeds are in reverse order: the first pair is the slowest, and the last rotates by 1 radian for each
        position. Pair 0 must be the fastest."""
        return angles_of(positions, d_head, base).flip(-1)

    def divided_by_d_head_less_one(positions, d_head, base):
        """You divide the exponent by d_head − 1. The right exponent is 2i / d_head: where do you subtract 1?"""
        return angles_of(positions, d_head, base ** (d_head / (d_head - 1)))


@rotate.wrong(stage="turn")
class Turn:
    def backwards(a, b, angle):
        """You rotate in the wrong direction: the signs of the two sines are exchanged. Rotate (1, 0) by a quarter of a
        circle: the result must be (0, 1)."""
        return rotate_pairs(a, b, -angle)

    def mirrored(a, b, angle):
        """Your new second feature has the opposite sign: you mirror the pair instead of rotating it. At an angle of 0,
        a pair must not change: what does your function return at this angle?"""
        first, second = rotate_pairs(a, b, angle)
        return first, -second

    def second_subtracts_b(a, b, angle):
        """In the new second feature you subtract b · cos. At an angle of 0, a pair must not change, but your function
        returns (a, −b). Which sign belongs between the two terms?"""
        return rotate_pairs(a, b, angle)[0], rotate_pairs(a, -b, angle)[1]

    def minus_twice(a, b, angle):
        """You subtract the sine's term in both new features. A rotation subtracts this term in only one of them: rotate
        (1, 0) by a quarter of a circle, and see where the result must point."""
        return rotate_pairs(a, b, angle)[0], rotate_pairs(a, b, -angle)[1]

    def second_overwritten(a, b, angle):
        """You compute the new first feature from the *new* second feature instead of the old one. Both formulas need
        the old pair: keep it until you have computed both features."""
        b = rotate_pairs(a, b, angle)[1]
        return rotate_pairs(a, b, angle)[0], b

    def cos_and_sin_exchanged(a, b, angle):
        """You exchange cosine and sine. At an angle of 0, a pair must not change, and cos(0) is 1: must the old first
        feature be multiplied by the cosine or by the sine?"""
        cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
        return a * sin - b * cos, a * cos + b * sin

    def partners_left_out(a, b, angle):
        """You multiply both features of a pair by the cosine, and nothing else: neither feature affects the other. A
        rotation adds a multiple of each feature to the other: where do you use the sine?"""
        return a * angle.cos().to(a.dtype), b * angle.cos().to(a.dtype)

    def first_overwritten(a, b, angle):
        """You compute the new second feature from the *new* first feature instead of the old one. Both formulas need
        the old pair: keep it until you have computed both features."""
        cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
        a = a * cos - b * sin
        return a, a * sin + b * cos

    def same_sign_twice(a, b, angle):
        """You add the sine's term in both new features. A rotation subtracts this term in one of them: rotate (0, 1) by
        a quarter of a circle, and see where the result must point."""
        cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
        return a * cos + b * sin, a * sin + b * cos


@rotate.wrong(stage="turn", alone=True)
class TurnAlone:
    def mirrored_on_a_line(a, b, angle):
        """The minus sign is in the wrong feature: in the new first feature you add the two terms, and in the new second
        feature you subtract b · cos. This mirrors the pair. At an angle of 0, a pair must not change: what does your
        function return at this angle?"""
        return rotate_pairs(a, -b, angle)

    def cosines_left_out(a, b, angle):
        """You keep only the sine's term of each new feature, so at an angle of 0 both features are 0. Which term with
        the cosine is missing from each feature?"""
        sin = angle.sin().to(a.dtype)
        return -b * sin, a * sin

    def each_times_both(a, b, angle):
        """You multiply each feature by its cosine and by its sine, and add the two products: neither feature affects
        the other. In a rotation the sine multiplies the other feature of the pair."""
        cos_plus_sin = (angle.cos() + angle.sin()).to(a.dtype)
        return a * cos_plus_sin, b * cos_plus_sin

    def each_from_itself(a, b, angle):
        """You compute each new feature from its own old value alone. A rotation adds a multiple of each feature to the
        other: which feature must the sine multiply in each line?"""
        cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
        return a * (cos - sin), b * (sin + cos)

    def same_products_twice(a, b, angle):
        """Both of your new features consist of a · cos and b · sin, with different signs. The new second feature is a ·
        sin + b · cos."""
        cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
        return a * cos - b * sin, a * cos + b * sin

    def one_table_for_each_number(a, b, angle):
        """Your new first feature uses the cosine alone, and your new second feature the sine alone. Each feature needs
        both: rotate (1, 0) and (0, 1) by a quarter of a circle, and see where they must point."""
        return (a - b) * angle.cos().to(a.dtype), (a + b) * angle.sin().to(a.dtype)

    def second_left_as_it_was(a, b, angle):
        """You rotate the first feature of each pair, but return the second unchanged. A rotation changes both
        features."""
        return rotate_pairs(a, b, angle)[0], b

    def first_left_as_it_was(a, b, angle):
        """You rotate the second feature of each pair, but return the first unchanged. A rotation changes both
        features."""
        return a, rotate_pairs(a, b, angle)[1]

    def second_takes_nothing_of_the_first(a, b, angle):
        """{Your new first feature is right, but} your new second feature is b · cos alone: it does not depend on the
        first feature. Which term with the sine is missing?"""
        return rotate_pairs(a, b, angle)[0], b * angle.cos().to(b.dtype)

    def first_takes_nothing_of_the_second(a, b, angle):
        """{Your new second feature is right, but} your new first feature is a · cos alone: it does not depend on the
        second feature. Which term with the sine is missing?"""
        return a * angle.cos().to(a.dtype), rotate_pairs(a, b, angle)[1]

    def second_never_written(a, b, angle):
        """The second feature of each pair is 0 in your result: you write only the first features. A rotation computes
        both features."""
        return rotate_pairs(a, b, angle)[0], 0 * b

    def first_never_written(a, b, angle):
        """The first feature of each pair is 0 in your result: you write only the second features. A rotation computes
        both features."""
        return 0 * a, rotate_pairs(a, b, angle)[1]

    def added_to_what_was_there(a, b, angle):
        """You add the rotated pair to the old pair. A rotation replaces the old pair: what must your function return
        for a token at position 0?"""
        first, second = rotate_pairs(a, b, angle)
        return a + first, b + second

    def python_s_math_on_a_tensor(a, b, angle):
        """`math.cos` and `math.sin` accept a single number, but you pass them a whole table of angles. PyTorch has
        functions of the same names: where are they?"""
        cos, sin = math.cos(angle), math.sin(angle)
        return a * cos - b * sin, a * sin + b * cos


@rotate.wrong(stage="joined")
class Joined:
    def joined_as_halves(a, b):
        """The pairs are rotated, but their features are not back in their places: all first features come before all
        second features. Feature 1 is the partner of feature 0: which feature comes after feature 0 in your result?"""
        return torch.cat([a, b], dim=-1)


@rotate.wrong(stage="joined", alone=True)
class JoinedAlone:
    def second_put_first(a, b):
        """You rotate both features of each pair correctly, but exchange them afterwards: the second feature comes
        first. In which order do you join them?"""
        return interleave_pairs(b, a)

    def pairs_on_an_axis(a, b):
        """{The numbers are right, but} the two features of a pair have their own axis at the end: the result has five
        axes. It must have the shape of `x`: which two axes must you merge?"""
        return torch.stack([a, b], dim=-1)

    def pairs_on_an_axis_before_them(a, b):
        """The two features of a pair have their own axis, the second to last: the result has five axes. It must have
        the shape of `x`, with the two features of a pair side by side."""
        return torch.stack([a, b], dim=-2)

    def pairs_on_an_axis_in_front(a, b):
        """The two features of a pair have a new axis in front, where `stack` puts it without a `dim`. The result must
        have the shape of `x`, with the two features of a pair side by side."""
        return torch.stack([a, b])

    def one_long_row(a, b):
        """Your result is one long row: `flatten()` without an argument merges every axis. Which two axes must you
        merge?"""
        return interleave_pairs(a, b).flatten()

    def tokens_joined_too(a, b):
        """You merge one axis too many: the features of all tokens of a head form one long row. The result must have the
        shape of `x`: at which axis must `flatten` begin?"""
        return interleave_pairs(a, b).flatten(-2)

    def in_another_order(a, b):
        """{The shape is right, but} the features are in the wrong places: the result contains the first features of all
        tokens, and then all second features. `reshape` keeps the order of the numbers in memory. On which axis must you
        stack the two features of a pair?"""
        return torch.stack([a, b]).reshape(*a.shape[:-1], -1)

    def joined_along_the_tokens(a, b):
        """You concatenate first and second features along the axis of the tokens, which becomes twice as long, while
        each token keeps half of its features. Where do the two features of a pair belong?"""
        return torch.cat([a, b], dim=-2)

    def joined_along_the_batch(a, b):
        """You concatenate first and second features along the axis of the batch, as `cat` does without a `dim`. Each
        token then has half of its features. Where do the two features of a pair belong?"""
        return torch.cat([a, b])

    def tokens_and_heads_exchanged(a, b):
        """{The rotation is right, but} in the result the axes of heads and tokens are exchanged. Do you transpose `x`
        first? Then you must transpose the result back at the end."""
        return interleave_pairs(a, b).transpose(1, 2)

    def two_tensors(a, b):
        """You return two tensors: one holds the first features of all pairs, the other the second features. The result
        is one tensor of the shape of `x`: how can you put the two features of a pair side by side?"""
        return a, b

    def first_features_alone(a, b):
        """You return only the first feature of each pair, so half of the features are missing. Where does your function
        lose the second features?"""
        return a

    def complex_numbers(a, b):
        """{The rotation is right, but} you return complex numbers, one for each pair. The result has the shape of `x`,
        in real numbers: which function converts complex numbers back?"""
        return torch.complex(a, b)


@rotate.wrong
class WrongAnswers:
    def not_rotated(x, positions, base):
        """You return `x` unchanged: nothing is rotated. What happens to the rotated features in your function?"""
        return x.clone()

    @family(
        added_like_sines=(1, "sines and cosines", "does"),
        added_like_cosines=(-1, "cosines and sines", "adds its positions"),
    )
    def added(order, x, positions, base):
        """You add {} to the features, as the Transformer of 2017 {}. Rotary positions multiply: they rotate each pair,
        and add nothing to it."""
        angle = angles_of(positions, x.shape[-1], base)
        return x + torch.stack([angle.sin(), angle.cos()][::order], dim=-1).flatten(-2).to(x.dtype)

    def speeds_outside(x, positions, base):
        """You compute cosine and sine of the position alone, and multiply them by the speed afterwards. The speed
        belongs to the angle: of which product must you compute cosine and sine?"""
        a, b = rotate_pairs(*neighbour_pairs(x), Angles.one_speed(positions, x.shape[-1], base))
        speeds = _speeds(positions, x.shape[-1], base).to(x.dtype)
        return interleave_pairs(a * speeds, b * speeds)

    def halves_with_half_the_exponent(x, positions, base):
        """You make two mistakes: you pair feature i with feature i + d_head/2, and your exponent is i / d_head, half of
        the right exponent. In this exercise neighbouring features form a pair: 0 with 1, 2 with 3."""
        return halves(x, positions, base**0.5)

    def halves_from_position_one(x, positions, base):
        """You make two mistakes: you pair feature i with feature i + d_head/2, and you rotate every token as if its
        position were one larger. In this exercise neighbouring features form a pair, and a token at position 0 does not
        change."""
        return halves(x, positions + 1, base)

    def halves_without_positions(x, positions, base):
        """You make two mistakes: you pair feature i with feature i + d_head/2, and you number the tokens 0, 1, 2 …
        yourself. In this exercise neighbouring features form a pair, and `positions` contains the position of each
        token."""
        return halves(x, torch.arange(len(positions), device=positions.device), base)

    def halves_with_a_base_of_10000(x, positions, base):
        """You make two mistakes: you pair feature i with feature i + d_head/2, and your base is always 10,000. In this
        exercise neighbouring features form a pair, and `base` is an argument."""
        return halves(x, positions, 10000.0)

    def halves_with_the_base_upside_down(x, positions, base):
        """You make two mistakes: you pair feature i with feature i + d_head/2, and your later pairs rotate faster than
        the first. In this exercise neighbouring features form a pair, and the exponent has a minus sign."""
        return halves(x, positions, 1 / base)

    def halves_backwards(x, positions, base):
        """You make two mistakes: you pair feature i with feature i + d_head/2, and you rotate in the wrong direction.
        In this exercise neighbouring features form a pair, 0 with 1, and (1, 0) rotated by a quarter of a circle
        becomes (0, 1)."""
        angle = angles_of(positions, x.shape[-1], base).repeat(1, 2)
        return _rotate_with_partners(x, -_exchange_halves(x), angle)

    def partners_from_the_other_half(x, positions, base):
        """Your angles are in the order for neighbours, each angle twice side by side, but you multiply the sine by a
        feature from the other half. Neighbouring features form a pair: 0 with 1, 2 with 3. How do you compute each
        feature's partner?"""
        angle = angles_of(positions, x.shape[-1], base).repeat_interleave(2, -1)
        return _rotate_with_partners(x, _exchange_halves(x), angle)

    def angles_as_for_halves(x, positions, base):
        """The partners are right, but the angles are in the order for halves: you concatenate the whole row of angles
        with itself. The two features of a pair rotate by the same angle: where do the two copies of an angle belong?"""
        angle = angles_of(positions, x.shape[-1], base).repeat(1, 2)
        return _rotate_with_partners(x, _exchange_neighbours(x), angle)

    def angle_of_its_own_for_each_feature(x, positions, base):
        """The two features of a pair rotate by different angles: you compute a speed for each feature. A pair has one
        angle, which both features share."""
        angle = angles_of(positions, 2 * x.shape[-1], base)
        return _rotate_with_partners(x, _exchange_neighbours(x), angle)

    def partners_joined_as_halves(x, positions, base):
        """You multiply the sine by features that are not partners: you concatenate all negated odd features and then
        all even features. Each feature's partner must be in the same column as the feature: how can you interleave the
        negated odd features with the even ones?"""
        angle = angles_of(positions, x.shape[-1], base).repeat_interleave(2, -1)
        a, b = neighbour_pairs(x)
        return _rotate_with_partners(x, torch.cat([-b, a], dim=-1), angle)

    def repeated_without_an_axis(x, positions, base):
        """`repeat_interleave` without a `dim` flattens your table of angles into one long row. Along which axis must
        you repeat each angle?"""
        angle = angles_of(positions, x.shape[-1], base).repeat_interleave(2)
        return _rotate_with_partners(x, _exchange_neighbours(x), angle)

    def each_angle_once(x, positions, base):
        """You multiply all features of `x` by a table that has an angle for each pair: half as many angles as features.
        Either split `x` into pairs, or repeat each angle."""
        return _rotate_with_partners(x, _exchange_neighbours(x), angles_of(positions, x.shape[-1], base))

    def x_overwritten(x, positions, base):
        """You write into the caller's `x`, and compute the new second feature from the *new* first feature, since
        `x[..., 0::2]` is a view of `x`. Create a new tensor, and keep the old pair until you have computed both
        features."""
        (a, b), angle = neighbour_pairs(x), angles_of(positions, x.shape[-1], base)
        a[:] = rotate_pairs(a, b, angle)[0]
        b[:] = rotate_pairs(a, b, angle)[1]
        return x

    def cut_off_from_gradients(x, positions, base):
        """PyTorch does not record the operations of your function, so no gradient passes through the rotation, and
        nothing before it can learn."""
        return rotate.reference(x.detach(), positions, base)


left_in_float32(rotate)


fixed_length(rotate, table_of_fixed_length, "300 tokens from position 5,000 on")


@rotate.mistake(recognizes=_leaves_rest_unchanged)
def partly_rotated(x, positions, base):
    """You rotate only the first features of every head, and return the others unchanged. GPT-NeoX and Phi do this on
    purpose (`partial_rotary_factor`), but a loop or a slice that ends too early does it by mistake. In this exercise
    all `d_head` features are rotated. Where does your slice, or your loop, end?"""
    part = max(2, x.shape[-1] // 2)
    return torch.cat([rotate.reference(x[..., :part], positions, base), x[..., part:]], dim=-1)


@rotate.wrong
class HalvesWithOtherSpeeds:
    @family(
        halves_and_exponent_doubled=Angles.exponent_doubled,
        halves_and_exponent_not_divided=Angles.exponent_not_divided,
        halves_and_pairs_counted_from_one=Angles.pairs_counted_from_one,
        halves_and_odd_features_counted=AnglesAlone.odd_features_counted,
        halves_and_divided_by_d_head_less_one=AnglesAlone.divided_by_d_head_less_one,
        halves_and_divided_by_the_pairs_less_one=Angles.divided_by_the_pairs_less_one,
        halves_and_slowest_first=AnglesAlone.slowest_first,
        halves_and_one_speed=Angles.one_speed,
    )
    def halves_and_other_angles(angles, x, positions, base):
        """You make two mistakes: you pair feature i with feature i + d_head/2, and the speeds of your pairs are not
        base^(−2i / d_head). In this exercise neighbouring features form a pair: 0 with 1, 2 with 3. At position 1, by
        which angle must pair 1 rotate, and by which angle does it rotate in your function?"""
        a, b = rotate_pairs(*x.chunk(2, dim=-1), angles(positions, x.shape[-1], base))
        return torch.cat([a, b], dim=-1)
