"""Rotary positions."""

import math

import torch

from ..common_mistakes import fixed_length, left_in_float32
from ..exercise import exercise, family
from ..probes import strided_with_whole_rows


# With base 16, and 4 or 8 features, all speeds are powers of 2, which float32 holds: angles are exact there, and agree
# with those of float64 also where a mistake makes them large. No other size is d_head / 2.
def _heads_and_positions(draw, batch=3, heads=5, seq=7, d_head=4):
    if d_head % 2:  # whole pairs, in the smallest input as well
        raise ValueError(f"d_head must be even, got {d_head}")
    first = 3 + torch.arange(seq)
    return draw(batch, heads, seq, d_head), torch.where(first > 5, first + 4, first), 16.0


def neighbours(x):
    """Take features 0 and 1 as a pair, 2 and 3, and so on."""
    return x[..., 0::2], x[..., 1::2]


def angles_of(positions, d_head, base):
    """Multiply each position by the speed of each pair, base^(−2i / d_head)."""
    speeds = base ** (-torch.arange(0, d_head, 2, dtype=torch.float64, device=positions.device) / d_head)
    return positions[:, None] * speeds


def turned(a, b, angle):
    """Turn each pair by its angle."""
    cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
    return a * cos - b * sin, a * sin + b * cos


def back_in_place(a, b):
    """Put both features of a pair back where they were."""
    return torch.stack([a, b], dim=-1).flatten(-2)


@exercise(
    inputs=_heads_and_positions,
    axes={"x": "batch heads seq d_head", "positions": "seq", "return": "batch heads seq d_head"},
    hints=(
        "Rotate the pair (1, 0) by a quarter of a circle: in which direction does it point? Which of the two numbers "
        "is cos, and which is sin?",
        "Feature 0 is rotated with feature 1, and 2 with 3. The angle of pair i is position · base^(−2i / d_head): "
        "the table of angles has one row for each position and one column for each pair.",
        "`a, b = x[..., 0::2], x[..., 1::2]`, `angle = positions[:, None] * …`, then `torch.stack([a * … - b * …, "
        "a * … + b * …], dim=-1).flatten(-2)`",
    ),
    scattered=strided_with_whole_rows,
)
def rotate(x, positions, base, *, pairs=neighbours, angles=angles_of, turn=turned, joined=back_in_place):
    """Turn pair i of every token's features by the angle position · base^(−2i / d_head)."""
    a, b = pairs(x)
    return joined(*turn(a, b, angles(positions, x.shape[-1], base)))


rotate.example("a single pair", lambda draw: (draw(1, 1, 4, 2), torch.arange(4), 10000.0), plain=True)
rotate.example("one token at position 20", lambda draw: (draw(1, 2, 1, 8), torch.tensor([20]), 16.0), plain=True)


@rotate.probe(plain=True)
def positions_out_of_order(draw):
    """positions that do not grow"""
    return draw(1, 2, 4, 4), torch.tensor([5, 0, 2, 2]), 100.0


@rotate.probe
def a_long_text_far_on(draw):
    """300 tokens from position 5,000 on"""
    return draw(1, 2, 300, 2), 5000 + torch.arange(300), 10000.0  # a single pair: angles that float32 holds


@rotate.right
class RightAnswers:
    def by_complex_numbers(x, positions, base):
        d_head = x.shape[-1]
        speeds = base ** (-torch.arange(0, d_head, 2, device=x.device).double() / d_head)
        turns = torch.polar(torch.ones_like(positions[:, None] * speeds), positions[:, None] * speeds)
        pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)

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
        for place, position in enumerate(positions.tolist()):
            for i in range(x.shape[-1] // 2):
                angle = torch.tensor(position * base ** (-2 * i / x.shape[-1]))
                a, b = x[:, :, place, 2 * i], x[:, :, place, 2 * i + 1]
                result[:, :, place, 2 * i] = a * angle.cos() - b * angle.sin()
                result[:, :, place, 2 * i + 1] = a * angle.sin() + b * angle.cos()
        return result


@rotate.property
def lengths_stay(function, x, positions, base):
    """A turn changes no token's length."""
    return bool(torch.allclose(function(x, positions, base).norm(dim=-1), x.norm(dim=-1), rtol=1e-3))


@rotate.property
def nothing_at_position_0(function, x, positions, base):
    """A token at position 0 stays as it is."""
    return bool(torch.allclose(function(x, torch.zeros_like(positions), base), x, atol=1e-5))


@rotate.mistake
def halves(x, positions, base):
    """You pair feature i with feature i + d_head/2, as `transformers` does for Llama. In this file neighbours are a
    pair: 0 and 1, 2 and 3. Both are rotary positions, and the weights decide which one is right."""
    a, b = turned(*x.chunk(2, dim=-1), angles_of(positions, x.shape[-1], base))
    return torch.cat([a, b], dim=-1)


def _speeds(positions, d_head, base):
    return angles_of(torch.ones_like(positions[:1]), d_head, base)[0]


def _rotated_with_partners(x, partner, angle):
    return x * angle.cos().to(x.dtype) + partner * angle.sin().to(x.dtype)


def _neighbours_exchanged(x):
    return torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)


def _halves_exchanged(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


def table_of_fixed_length(x, positions, base):
    d_head = x.shape[-1]
    table = angles_of(torch.arange(64, device=x.device), d_head, base)
    return back_in_place(*turned(*neighbours(x), table[positions]))


def _rest_unchanged(probe, got, expected):
    """Whether the first features of every head were turned somehow, and all after them came back as they were."""
    x, mine = probe.arguments[0], got.value
    if x.shape[-1] == 2:  # a head of one pair has no part to leave unchanged
        return True
    if not isinstance(mine, torch.Tensor) or (mine.shape, mine.dtype) != (x.shape, x.dtype):
        return False
    changed = (mine != x).flatten(0, -2).any(0).nonzero().flatten().tolist()
    if not changed or changed[-1] == x.shape[-1] - 1:
        return False
    part = changed[-1] + 1
    return torch.allclose(mine[..., :part].norm(dim=-1), x[..., :part].norm(dim=-1), 1e-4)


@rotate.wrong(stage="pairs")
class Pairs:
    def halves_taken(x):
        """You take the features apart in halves, and put them together as neighbours. One of the two must change: which
        two features are a pair?"""
        return x.chunk(2, dim=-1)

    @family(
        first_features_twice=(0, "first feature: the second", "odd"),
        second_features_twice=(1, "second feature: the first", "even"),
    )
    def one_feature_twice(first, x):
        """Both numbers of your pairs are the {} one, of the {} number, is never read. Where does each of your two
        slices begin?"""
        return x[..., first::2], x[..., first::2]

    def partners_exchanged(x):
        """You take the second feature of each pair for the first, and the other way round. In a pair (a, b) which of
        the two has the even number?"""
        return neighbours(x)[::-1]

    def in_float64(x):
        """The features come out in float64, twice as large in memory, whatever came in. Angles may have so many digits;
        the result has the dtype of `x`. Which tensor brings the 64 bits in, and where do they end?"""
        return neighbours(x.double())


@rotate.wrong(stage="pairs", alone=True)
class PairsAlone:
    def pieces_of_two(x):
        """`split(2)` makes pieces of two features each, and not two pieces: how many come out depends on d_head. Which
        slices take every second feature?"""
        a, b = x.split(2, dim=-1)
        return a, b


@rotate.wrong(stage="angles")
class Angles:
    def base_upside_down(positions, d_head, base):
        """Your later pairs turn faster than the first: the exponent's sign is missing. Pair 0 turns by 1 for each
        position, and all others more slowly."""
        return angles_of(positions, d_head, 1 / base)

    def exponent_without_the_two(positions, d_head, base):
        """Your exponent is i / d_head, half of what it should be. Pair i holds the features 2i and 2i + 1: with the 2,
        the speeds reach almost down to 1 / base."""
        return angles_of(positions, d_head, base**0.5)

    def degrees(positions, d_head, base):
        """Your angles are taken for degrees and converted. They are radians already: at position 1, pair 0 turns by 1,
        a sixth of a circle."""
        return torch.deg2rad(angles_of(positions, d_head, base))

    def whole_circles(positions, d_head, base):
        """You multiply the angles by 2π. They are not counted in circles: at position 1, pair 0 turns by 1."""
        return angles_of(positions, d_head, base) * 2 * torch.pi

    def counted_from_one(positions, d_head, base):
        """Every token is turned one position too far. Scores would not show it, since they see distances; position 0
        must leave a token as it is."""
        return angles_of(positions + 1, d_head, base)

    def places_for_positions(positions, d_head, base):
        """You number the tokens 0, 1, 2 … yourself, and `positions` is not used. In a step with a cache the only token
        given has a late position: where does your function learn it?"""
        return angles_of(torch.arange(len(positions), device=positions.device), d_head, base)

    def first_pair_alone(positions, d_head, base):
        """Only pair 0 is turned, and all others come back as they were. Does a loop end too early, with a `return`
        inside it, perhaps? Or are the speeds whole numbers, of which all but the first become 0?"""
        return angles_of(positions, d_head, base) * (torch.arange(d_head // 2, device=positions.device) == 0)

    def last_pair_left(positions, d_head, base):
        """The last pair comes back as it was; the others are turned. How many pairs are there, and where does your loop
        end?"""
        pairs = torch.arange(d_head // 2, device=positions.device)
        return angles_of(positions, d_head, base) * (pairs < d_head // 2 - 1)

    @family(
        base_always_100000=(100000.0, "100,000", "That is this model's, and others have another"),
        base_never_used=(10000.0, "10,000", "This model has 100,000"),
    )
    def base_always(number, positions, d_head, base):
        """Your base is always {}, whatever is given. {}: where is the argument `base` used?"""
        return angles_of(positions, d_head, number)

    def one_speed(positions, d_head, base):
        """All of your pairs turn by the same angle. Each has a speed of its own, base^(−2i / d_head): where is the
        i?"""
        return positions[:, None].double().expand(-1, d_head // 2)

    def divided_by_the_pairs_less_one(positions, d_head, base):
        """Your exponent goes from 0 to 1, both ends included, as `linspace` does. It is 2i / d_head, which stops one
        step before 1."""
        steps = torch.linspace(0, 1, d_head // 2, dtype=torch.float64, device=positions.device)
        return positions[:, None] * base**-steps

    def exponent_doubled(positions, d_head, base):
        """Your exponent is 4i / d_head, twice what it should be. Has the 2 come in twice, as with `arange(0, d_head,
        2)`, which counts 2i already, or with a division by the number of pairs?"""
        return angles_of(positions, d_head, base**2)

    def exponent_not_divided(positions, d_head, base):
        """Your exponent is 2i, and not divided by d_head: from pair to pair the speed falls by the square of the base.
        The slowest pair should come only near 1 / base."""
        return angles_of(positions, d_head, base**d_head)

    def pairs_counted_from_one(positions, d_head, base):
        """You count the pairs from 1: each turns at the speed of the next. Pair 0 must turn by 1 for each position,
        since base^0 is 1."""
        return angles_of(positions, d_head, base) * base ** (-2 / d_head)


@rotate.wrong(stage="angles", alone=True)
class AnglesAlone:
    def counted_from_one_less(positions, d_head, base):
        """Every token is turned one position too little. Scores would not show it, since they see distances; a token at
        position 1 must be turned by 1, and not left as it is."""
        return angles_of(positions - 1, d_head, base)

    def counted_from_the_first(positions, d_head, base):
        """You subtract the first position from all of them, so that the first token given is never turned. `positions`
        says where the tokens stand: may they begin anywhere?"""
        return angles_of(positions - positions[0], d_head, base)

    def positions_without_gaps(positions, d_head, base):
        """Of `positions` you take only the first, and count on from there. They need not follow one another: where does
        your function use the others?"""
        return angles_of(positions[0] + torch.arange(len(positions), device=positions.device), d_head, base)

    def first_position_for_all(positions, d_head, base):
        """All of your tokens are turned by the position of the first. Each has its own: one row of angles for each
        position."""
        return angles_of(positions[:1].expand(len(positions)), d_head, base)

    def divided_after_the_power(positions, d_head, base):
        """You take the power first, and divide by d_head afterwards: `**` binds more tightly than `/`. Pair 0 must turn
        by 1 for each position. Which part belongs in brackets?"""
        return angles_of(positions, d_head, base**d_head) / d_head

    def one_speed_from_the_base(positions, d_head, base):
        """All of your pairs turn by the same angle, position · base^(−2 / d_head). Each has a speed of its own: where
        is the i?"""
        return (positions[:, None] * base ** (-2 / d_head)).double().expand(-1, d_head // 2)

    def pair_times_the_power(positions, d_head, base):
        """The i stands beside the power and not in it: you multiply base^(−2 / d_head) with the number of the pair, so
        that pair 0 is never turned. Which part belongs in the exponent?"""
        pairs = torch.arange(d_head // 2, device=positions.device)
        return positions[:, None] * pairs * base ** (-2 / d_head)

    def pair_outside_the_power(positions, d_head, base):
        """Only −2 is in your exponent, and i / d_head stands beside the power: `**` binds more tightly than `*` and
        `/`. Pair 0 is then never turned. Which part belongs in brackets?"""
        pairs = torch.arange(d_head // 2, device=positions.device)
        return positions[:, None] * (base**-2 * pairs / d_head).double()

    def nothing_raised_to_a_power(positions, d_head, base):
        """The base is multiplied with the exponent, and not raised to it: pair 0 is never turned, and the next ones
        turn very fast. Which sign means *to the power of* in Python?"""
        pairs = torch.arange(d_head // 2, device=positions.device)
        return positions[:, None] * (base * -2 * pairs / d_head).double()

    def as_at_position_1(positions, d_head, base):
        """Every token is turned as if it stood at position 1: your angles are the speeds themselves. What are these to
        be multiplied with?"""
        return angles_of(torch.ones_like(positions), d_head, base)

    def positions_as_shares(positions, d_head, base):
        """Your positions are divided by their number, so that they become shares of the length. They count tokens as
        they are: the token at position 1 turns pair 0 by 1, however long the text is."""
        return angles_of(positions, d_head, base) / len(positions)

    def exponents_rounded_down(positions, d_head, base):
        """All of your pairs but the first turn at the speed 1 / base: their exponents are whole numbers, rounded down
        as `//` does. Which division keeps what stands after the point?"""
        pairs = torch.arange(d_head // 2, device=positions.device)
        return positions[:, None] * base ** -(pairs > 0).double()

    def e_for_the_base(positions, d_head, base):
        """Your speeds are powers of e, as `exp` makes them, and the argument `base` plays no part. How does base^y
        become a power of e?"""
        return angles_of(positions, d_head, math.e)

    @family(logarithm_to_base_10=(math.log10, "10"), logarithm_to_base_2=(math.log2, "2"))
    def another_logarithm(logarithm, positions, d_head, base):
        """You go through `exp` and a logarithm, and these two do not belong together: `exp` undoes the natural
        logarithm, and yours is the one to base {}."""
        return angles_of(positions, d_head, math.exp(logarithm(base)))

    def position_in_the_power(positions, d_head, base):
        """The position has come into the power: you raise position · base to −2i / d_head. Only the base is raised, and
        the position is multiplied with what comes out. Which part belongs in brackets?"""
        exponents = torch.arange(0, d_head, 2, dtype=torch.float64, device=positions.device) / d_head
        return (positions[:, None] * base) ** -exponents

    def whole_angles(positions, d_head, base):
        """Your angles are whole numbers: all that stands after the point has been cut off. Which dtype do they have?"""
        return angles_of(positions, d_head, base).long().double()

    def half_the_angle(positions, d_head, base):
        """Every pair is turned by half of its angle. At position 1, pair 0 turns by 1: where do you divide by 2?"""
        return angles_of(positions, d_head, base) / 2

    def twice_the_angle(positions, d_head, base):
        """Every pair is turned by twice its angle: either the angle is doubled, or the turn is made twice. At position
        1, pair 0 turns by 1."""
        return angles_of(positions, d_head, base) * 2

    def half_circles(positions, d_head, base):
        """You multiply the angles by π. They are radians already: at position 1, pair 0 turns by 1."""
        return angles_of(positions, d_head, base) * torch.pi

    def into_degrees(positions, d_head, base):
        """You convert the angles into degrees, and `cos` and `sin` take radians. They are radians already: at position
        1, pair 0 turns by 1, a sixth of a circle."""
        return torch.rad2deg(angles_of(positions, d_head, base))

    def first_pair_left(positions, d_head, base):
        """Pair 0 comes back as it was; the others are turned. Its exponent is 0, and its speed is 1: it turns fastest
        of all."""
        return angles_of(positions, d_head, base) * (torch.arange(d_head // 2, device=positions.device) > 0)

    def first_token_alone(positions, d_head, base):
        """Only the first token is turned, and all others come back as they were. Does a loop end too early, with a
        `return` inside it, perhaps?"""
        return (
            angles_of(positions, d_head, base) * (torch.arange(len(positions), device=positions.device) == 0)[:, None]
        )

    def last_token_left(positions, d_head, base):
        """The last token comes back as it was; the others are turned. How many tokens are there, and where does your
        loop end?"""
        tokens = torch.arange(len(positions), device=positions.device)
        return angles_of(positions, d_head, base) * (tokens < len(positions) - 1)[:, None]

    def half_of_the_pairs_left(positions, d_head, base):
        """Only the pairs in the first half of the features are turned. There are d_head / 2 pairs, and they reach to
        the last feature: where does your loop end?"""
        pairs = torch.arange(d_head // 2, device=positions.device)
        return angles_of(positions, d_head, base) * (2 * pairs < d_head // 2)

    def table_of_too_few_rows(positions, d_head, base):
        """Your table has a row for each token given, and you look the positions up in it: they reach beyond its end.
        Positions need not begin at 0. Do you need a table, or can you multiply the positions with the speeds?"""
        return Angles.places_for_positions(positions, d_head, base)[positions]

    def axis_behind_the_pairs(positions, d_head, base):
        """Your table of angles has an axis of length 1 after that of the pairs, which then meets that of the tokens.
        Axes are compared from the right: which should the last one be?"""
        return angles_of(positions, d_head, base)[..., None]

    def tokens_before_heads(positions, d_head, base):
        """Your table of angles meets the axis of the heads, as if `x` were (batch, seq, heads, d_head). Here the heads
        come first: on which axis do the tokens lie, counted from the end?"""
        return angles_of(positions, d_head, base)[:, None]

    def angles_transposed(positions, d_head, base):
        """Your table of angles lies on its side: one row for each pair, one column for each position. The last axis of
        the features counts the pairs: which axis must that be in your table?"""
        return angles_of(positions, d_head, base).T

    def angle_for_each_feature(positions, d_head, base):
        """Your table has an angle for each feature, and `x` has been taken apart into pairs: there are half as many.
        How many speeds does a head have?"""
        return angles_of(positions, 2 * d_head, base)

    def positions_beside_speeds(positions, d_head, base):
        """You multiply positions and speeds one by one, and there are not as many of the one as of the other. Every
        position meets every speed: which shape makes rows of the positions?"""
        return positions * _speeds(positions, d_head, base)

    def floating_positions_beside_speeds(positions, d_head, base):
        """You multiply the positions, as floating-point numbers, and the speeds one by one, and there are not as many
        of the one as of the other. Every position meets every speed: which shape makes rows of the positions?"""
        return positions.float() * _speeds(positions, d_head, base)

    def speeds_beside_positions(positions, d_head, base):
        """You multiply speeds and positions one by one, and there are not as many of the one as of the other. Every
        position meets every speed: which shape makes rows of the positions?"""
        return _speeds(positions, d_head, base) * positions

    def positions_in_a_row(positions, d_head, base):
        """The positions lie in a row, as the speeds do, and the two rows do not fit. Every position meets every speed:
        one of the two must be a column. Which one, if each token has a row of angles?"""
        return positions[None] * _speeds(positions, d_head, base)

    def whole_positions_in_a_product(positions, d_head, base):
        """You make the table by `@`, and a matrix product wants one dtype: the positions are whole numbers, the speeds
        are not. What must become of the positions first? Or is there a product that takes both?"""
        return positions[:, None] @ _speeds(positions, d_head, base).float()[None]

    def odd_features_counted(positions, d_head, base):
        """Your exponent counts 1, 3, 5 … where it should count 0, 2, 4 …: 2i + 1 stands for 2i. Pair 0 must turn by 1
        for each position."""
        return angles_of(positions, d_head, base) * base ** (-1 / d_head)

    def slowest_first(positions, d_head, base):
        """Your speeds are in reverse order: the first pair is the slowest, and the last turns by 1 for each position.
        It is pair 0 that must be the fastest."""
        return angles_of(positions, d_head, base).flip(-1)

    def divided_by_d_head_less_one(positions, d_head, base):
        """Your exponent is divided by d_head − 1. It is 2i / d_head: by what do you divide?"""
        return angles_of(positions, d_head, base ** (d_head / (d_head - 1)))


@rotate.wrong(stage="turn")
class Turn:
    def backwards(a, b, angle):
        """You turn the other way: the signs of the two sines are exchanged. Turn (1, 0) by a quarter of a circle: it
        must become (0, 1)."""
        return turned(a, b, -angle)

    def mirrored(a, b, angle):
        """Your second number comes out with the opposite sign: the pair is mirrored, and not turned. At the angle 0 a
        pair must stay as it is: does yours?"""
        first, second = turned(a, b, angle)
        return first, -second

    def second_subtracts_b(a, b, angle):
        """Your second number subtracts b · cos. At the angle 0 a pair must stay as it is, and yours becomes (a, −b).
        Which sign stands between the two parts there?"""
        return turned(a, b, angle)[0], turned(a, -b, angle)[1]

    def minus_twice(a, b, angle):
        """Both of your numbers subtract the sine's part. In a turn only one of the two does: turn (1, 0) by a quarter
        of a circle, and see where it must lie."""
        return turned(a, b, angle)[0], turned(a, b, -angle)[1]

    def second_overwritten(a, b, angle):
        """The first number is made from the second one *after* it was turned. Both need the old pair: keep it until
        both are there."""
        b = turned(a, b, angle)[1]
        return turned(a, b, angle)[0], b

    def cos_and_sin_exchanged(a, b, angle):
        """The cosine stands where the sine belongs. At the angle 0 a pair must stay as it is, and cos(0) is 1: which
        number does that keep?"""
        cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
        return a * sin - b * cos, a * cos + b * sin

    def partners_left_out(a, b, angle):
        """You multiply both numbers by the cosine, and neither takes anything of its partner. A turn moves part of each
        into the other: where is the sine?"""
        return a * angle.cos().to(a.dtype), b * angle.cos().to(a.dtype)

    def first_overwritten(a, b, angle):
        """The second number is made from the first one *after* it was turned. Both need the old pair: keep it until
        both are there."""
        cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
        a = a * cos - b * sin
        return a, a * sin + b * cos

    def same_sign_twice(a, b, angle):
        """Both of your numbers add the sine's part. In a turn one of the two subtracts it: turn (0, 1) by a quarter of
        a circle, and see where it must lie."""
        cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
        return a * cos + b * sin, a * sin + b * cos


@rotate.wrong(stage="turn", alone=True)
class TurnAlone:
    def mirrored_on_a_line(a, b, angle):
        """The minus has come into the wrong number: your first adds its two parts, and your second subtracts b · cos.
        That mirrors the pair. At the angle 0 a pair must stay as it is: does yours?"""
        return turned(a, -b, angle)

    def cosines_left_out(a, b, angle):
        """You keep only the sine's part of each number, so that at the angle 0 nothing is left of the pair. What does a
        number keep of itself?"""
        sin = angle.sin().to(a.dtype)
        return -b * sin, a * sin

    def each_times_both(a, b, angle):
        """You multiply each number by its cosine and by its sine, and add the two: neither takes anything of its
        partner. In a turn the sine is multiplied with the other number of the pair."""
        both = (angle.cos() + angle.sin()).to(a.dtype)
        return a * both, b * both

    def each_from_itself(a, b, angle):
        """Your first number is made of a alone, and your second of b alone. A turn moves part of each into the other:
        which of the two does the sine belong to in each line?"""
        cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
        return a * (cos - sin), b * (sin + cos)

    def same_products_twice(a, b, angle):
        """Both of your numbers are made of a · cos and b · sin, with another sign in between. The second number of a
        turn has a with the sine and b with the cosine."""
        cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
        return a * cos - b * sin, a * cos + b * sin

    def one_table_for_each_number(a, b, angle):
        """Your first number uses the cosine alone, and your second the sine alone. Each of the two needs both: turn (1,
        0) and (0, 1) by a quarter of a circle, and see where they must lie."""
        return (a - b) * angle.cos().to(a.dtype), (a + b) * angle.sin().to(a.dtype)

    def second_left_as_it_was(a, b, angle):
        """The first feature of each pair is turned, and the second comes back as it was. A turn makes two new
        numbers."""
        return turned(a, b, angle)[0], b

    def first_left_as_it_was(a, b, angle):
        """The second feature of each pair is turned, and the first comes back as it was. A turn makes two new
        numbers."""
        return a, turned(a, b, angle)[1]

    def second_takes_nothing_of_the_first(a, b, angle):
        """{Your first number is right, and} your second number is b · cos alone: it takes nothing of its partner. What
        does the sine bring over?"""
        return turned(a, b, angle)[0], b * angle.cos().to(b.dtype)

    def first_takes_nothing_of_the_second(a, b, angle):
        """{Your second number is right, and} your first number is a · cos alone: it takes nothing of its partner. What
        does the sine bring over?"""
        return a * angle.cos().to(a.dtype), turned(a, b, angle)[1]

    def second_never_written(a, b, angle):
        """The second feature of each pair comes out as 0: only the first ones are written. A turn makes two new
        numbers."""
        return turned(a, b, angle)[0], 0 * b

    def first_never_written(a, b, angle):
        """The first feature of each pair comes out as 0: only the second ones are written. A turn makes two new
        numbers."""
        return 0 * a, turned(a, b, angle)[1]

    def added_to_what_was_there(a, b, angle):
        """You add the turned pair to the pair as it was. A turn replaces the old pair: what does a token at position 0
        look like?"""
        first, second = turned(a, b, angle)
        return a + first, b + second

    def python_s_math_on_a_tensor(a, b, angle):
        """`math.cos` and `math.sin` take a single number, and you give them a whole table of angles. PyTorch has
        functions of the same names: where are they?"""
        cos, sin = math.cos(angle), math.sin(angle)
        return a * cos - b * sin, a * sin + b * cos


@rotate.wrong(stage="joined")
class Joined:
    def joined_as_halves(a, b):
        """The pairs are turned, and their features do not return to their places: all first ones stand before all
        second ones. Feature 1 is the partner of feature 0: what stands beside it now?"""
        return torch.cat([a, b], dim=-1)


@rotate.wrong(stage="joined", alone=True)
class JoinedAlone:
    def second_put_first(a, b):
        """Both features of each pair are turned as they should be, and have changed places afterwards: the second
        stands first. In which order are they put together?"""
        return back_in_place(b, a)

    def pairs_on_an_axis(a, b):
        """{The numbers are right, and} the two features of a pair have an axis of their own at the end: the result has
        five axes. It must have the shape of `x`: which two axes become one?"""
        return torch.stack([a, b], dim=-1)

    def pairs_on_an_axis_before_them(a, b):
        """The first features of all pairs and the second ones lie on an axis of their own, the last but one: the result
        has five axes. It must have the shape of `x`, with the two of a pair side by side."""
        return torch.stack([a, b], dim=-2)

    def pairs_on_an_axis_in_front(a, b):
        """The first features of all pairs and the second ones lie on a new axis in front, as `stack` makes it when no
        `dim` is given. The result must have the shape of `x`, with the two of a pair side by side."""
        return torch.stack([a, b])

    def one_long_row(a, b):
        """All numbers come out in one single row: `flatten()` without an argument joins every axis. Which two should
        become one?"""
        return back_in_place(a, b).flatten()

    def tokens_joined_too(a, b):
        """You join one axis too many: the features of all tokens of a head lie in one row. The result must have the
        shape of `x`: from which axis on may `flatten` join?"""
        return back_in_place(a, b).flatten(-2)

    def in_another_order(a, b):
        """The shape {is right, and} is forced: first features of all tokens are written in one after the other, and
        then all second ones. `reshape` keeps the order in which numbers lie. On which axis must the two of a pair be
        stacked?"""
        return torch.stack([a, b]).reshape(*a.shape[:-1], -1)

    def joined_along_the_tokens(a, b):
        """You join first and second features along the axis of the tokens, which becomes twice as long, while each
        token has half of its features. Where do the two of a pair belong?"""
        return torch.cat([a, b], dim=-2)

    def joined_along_the_batch(a, b):
        """You join first and second features along the axis of the batch, as `cat` does when no `dim` is given. Each
        token has half of its features then. Where do the two of a pair belong?"""
        return torch.cat([a, b])

    def tokens_and_heads_exchanged(a, b):
        """{The turn is right, and} in the result the axes of heads and tokens have changed places. Do you transpose `x`
        first? Then it must be transposed back at the end."""
        return back_in_place(a, b).transpose(1, 2)

    def two_tensors(a, b):
        """You return two tensors, the first features of all pairs and the second ones. The result is one tensor of the
        shape of `x`: how do the two of a pair come to lie side by side?"""
        return a, b

    def first_features_alone(a, b):
        """You return the first feature of each pair alone, so that half of the features is missing. Where have the
        second ones gone?"""
        return a

    def complex_numbers(a, b):
        """{The turn is right, and} you return complex numbers, one for each pair. The result has the shape of `x`, in
        real numbers: which function leads back?"""
        return torch.complex(a, b)


@rotate.wrong
class WrongAnswers:
    def not_turned(x, positions, base):
        """You return `x` as it came in: nothing has been turned. Where does the result of your work go?"""
        return x.clone()

    @family(
        added_like_sines=(1, "sines and cosines", "does"),
        added_like_cosines=(-1, "cosines and sines", "adds its positions"),
    )
    def added(order, x, positions, base):
        """You add {} to the features, as the paper of 2017 {}. Rotary positions multiply: they turn each pair, and add
        nothing to it."""
        angle = angles_of(positions, x.shape[-1], base)
        return x + torch.stack([angle.sin(), angle.cos()][::order], dim=-1).flatten(-2).to(x.dtype)

    def speeds_outside(x, positions, base):
        """You take cosine and sine of the position alone, and multiply them with the speed afterwards. The speed
        belongs to the angle: what are cosine and sine taken of?"""
        a, b = turned(*neighbours(x), Angles.one_speed(positions, x.shape[-1], base))
        speeds = _speeds(positions, x.shape[-1], base).to(x.dtype)
        return back_in_place(a * speeds, b * speeds)

    def halves_with_half_the_exponent(x, positions, base):
        """Two things go wrong here: you pair feature i with feature i + d_head/2, and your exponent is i / d_head, half
        of what it should be. In this file neighbours are a pair: 0 and 1, 2 and 3."""
        return halves(x, positions, base**0.5)

    def halves_from_position_one(x, positions, base):
        """Two things go wrong here: you pair feature i with feature i + d_head/2, and every token is turned one
        position too far. In this file neighbours are a pair, and position 0 leaves a token as it is."""
        return halves(x, positions + 1, base)

    def halves_without_positions(x, positions, base):
        """Two things go wrong here: you pair feature i with feature i + d_head/2, and you number the tokens 0, 1, 2 …
        yourself. In this file neighbours are a pair, and `positions` says where the tokens stand."""
        return halves(x, torch.arange(len(positions), device=positions.device), base)

    def halves_with_a_base_of_10000(x, positions, base):
        """Two things go wrong here: you pair feature i with feature i + d_head/2, and your base is always 10,000. In
        this file neighbours are a pair, and `base` is given."""
        return halves(x, positions, 10000.0)

    def halves_with_the_base_upside_down(x, positions, base):
        """Two things go wrong here: you pair feature i with feature i + d_head/2, and your later pairs turn faster than
        the first. In this file neighbours are a pair, and the exponent has a minus."""
        return halves(x, positions, 1 / base)

    def halves_backwards(x, positions, base):
        """Two things go wrong here: you pair feature i with feature i + d_head/2, and you turn the other way. In this
        file neighbours are a pair, 0 with 1, and (1, 0) turned by a quarter of a circle becomes (0, 1)."""
        angle = angles_of(positions, x.shape[-1], base).repeat(1, 2)
        return _rotated_with_partners(x, -_halves_exchanged(x), angle)

    def partners_from_the_other_half(x, positions, base):
        """Your angles stand as for neighbours, each twice side by side, and the sine is multiplied with a feature from
        the other half. Neighbours are a pair: 0 with 1, 2 with 3. How do you make each feature's partner?"""
        angle = angles_of(positions, x.shape[-1], base).repeat_interleave(2, -1)
        return _rotated_with_partners(x, _halves_exchanged(x), angle)

    def angles_as_for_halves(x, positions, base):
        """The partners are the right ones, and the angles stand as for halves: the whole row of them, and then the row
        once more. The two features of a pair turn by one angle: where do its two copies belong?"""
        angle = angles_of(positions, x.shape[-1], base).repeat(1, 2)
        return _rotated_with_partners(x, _neighbours_exchanged(x), angle)

    def angle_of_its_own_for_each_feature(x, positions, base):
        """The two features of a pair turn by different angles: there is a speed for each feature. A pair has one angle,
        which both features share."""
        angle = angles_of(positions, 2 * x.shape[-1], base)
        return _rotated_with_partners(x, _neighbours_exchanged(x), angle)

    def partners_joined_as_halves(x, positions, base):
        """The sine is multiplied with features that are no partners: you put all negated odd ones first, and then all
        even ones. Beside each cosine of a feature its own neighbour must stand: how are the two interleaved?"""
        angle = angles_of(positions, x.shape[-1], base).repeat_interleave(2, -1)
        a, b = neighbours(x)
        return _rotated_with_partners(x, torch.cat([-b, a], dim=-1), angle)

    def repeated_without_an_axis(x, positions, base):
        """`repeat_interleave` without a `dim` makes one long row of your table of angles. Along which axis does each
        angle come twice?"""
        angle = angles_of(positions, x.shape[-1], base).repeat_interleave(2)
        return _rotated_with_partners(x, _neighbours_exchanged(x), angle)

    def each_angle_once(x, positions, base):
        """You multiply all features of `x` with a table that has an angle for each pair: half as many. Either `x` is
        taken apart into pairs, or each angle comes twice."""
        return _rotated_with_partners(x, _neighbours_exchanged(x), angles_of(positions, x.shape[-1], base))

    def x_overwritten(x, positions, base):
        """You write into the caller's `x`, and the second number is made from the first one *after* it was turned,
        since `x[..., 0::2]` is a view of `x`. Make a new tensor, and keep the old pair until both numbers are there."""
        (a, b), angle = neighbours(x), angles_of(positions, x.shape[-1], base)
        a[:] = turned(a, b, angle)[0]
        b[:] = turned(a, b, angle)[1]
        return x

    def cut_off_from_gradients(x, positions, base):
        """Your function works outside of PyTorch's record of what was computed, so that no gradient passes through the
        turn and nothing before it can learn."""
        return rotate.reference(x.detach(), positions, base)


left_in_float32(rotate)


fixed_length(rotate, table_of_fixed_length, "300 tokens from position 5,000 on")


@rotate.mistake(sign=_rest_unchanged)
def partly_turned(x, positions, base):
    """Only the first features of every head are turned; the others come back as they were. GPT-NeoX and Phi do so on
    purpose (`partial_rotary_factor`), and a loop or a slice that ends too early does so by mistake. Here all `d_head`
    features are turned. Where does your slice, or your loop, end?"""
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
        """Two things go wrong here: you pair feature i with feature i + d_head/2, and your pairs have other speeds than
        base^(−2i / d_head). In this file neighbours are a pair: 0 and 1, 2 and 3. At position 1, by which angle must
        pair 1 be turned, and by which is yours?"""
        a, b = turned(*x.chunk(2, dim=-1), angles(positions, x.shape[-1], base))
        return torch.cat([a, b], dim=-1)
