"""Rotary positions."""

import torch

from ..exercise import exercise


# With base 16, and 4 or 8 features, all speeds are powers of 2, which float32 holds: angles are exact there, and agree
# with those of float64 also where a mistake makes them large. Half of d_head is no other size.
def _turned(draw, batch=3, heads=5, seq=7, d_head=4):
    if d_head % 2:  # half a pair, which no smallest input may have
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
    inputs=_turned,
    axes={"x": "batch heads seq d_head", "positions": "seq", "return": "batch heads seq d_head"},
    hints=(
        "Turn the pair (1, 0) by a quarter of a circle: where does it lie? Which of cos and sin gives each of the two "
        "numbers?",
        "Feature 0 is turned with feature 1, 2 with 3. Pair i has the angle position · base^(−2i / d_head): one row of "
        "angles for each position, one column for each pair.",
        "`a, b = x[..., 0::2], x[..., 1::2]`, `angle = positions[:, None] * …`, then `torch.stack([a * … - b * …, "
        "a * … + b * …], dim=-1).flatten(-2)`",
    ),
)
def rotate(x, positions, base, *, pairs=neighbours, angles=angles_of, turn=turned, joined=back_in_place):
    """Turn pair i of every token's features by the angle position · base^(−2i / d_head)."""
    a, b = pairs(x)
    return joined(*turn(a, b, angles(positions, x.shape[-1], base)))


@rotate.probe(plain=True)
def one_pair(draw):
    """a single pair"""
    return draw(1, 1, 4, 2), torch.arange(4), 10000.0


@rotate.probe(plain=True)
def one_token_later_on(draw):
    """one token at position 20"""
    return draw(1, 2, 1, 8), torch.tensor([20]), 16.0


@rotate.probe(plain=True)
def positions_out_of_order(draw):
    """positions that do not grow"""
    return draw(1, 2, 4, 4), torch.tensor([5, 0, 2, 2]), 100.0


@rotate.equivalent
def by_complex_numbers(x, positions, base):
    d_head = x.shape[-1]
    speeds = base ** (-torch.arange(0, d_head, 2, device=x.device).double() / d_head)
    turns = torch.polar(torch.ones_like(positions[:, None] * speeds), positions[:, None] * speeds)
    pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


@rotate.equivalent
def by_partners(x, positions, base):
    d_head = x.shape[-1]
    angle = positions[:, None] / base ** (torch.arange(0, d_head, 2, device=x.device) / d_head)
    cos, sin = angle.cos().repeat_interleave(2, -1), angle.sin().repeat_interleave(2, -1)
    partner = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2)
    return x * cos.to(x.dtype) + partner * sin.to(x.dtype)


@rotate.equivalent
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


@rotate.mistake(stage="pairs")
def halves_taken(x):
    """You take the features apart in halves, and put them together as neighbours. One of the two must change: which
    two features are a pair?"""
    return x.chunk(2, dim=-1)


@rotate.mistake(stage="joined")
def joined_as_halves(a, b):
    """The pairs are turned, and their features do not return to their places: all first ones stand before all second
    ones. Feature 1 is the partner of feature 0: what stands beside it now?"""
    return torch.cat([a, b], dim=-1)


@rotate.mistake(stage="turn")
def backwards(a, b, angle):
    """You turn the other way: the signs of the two sines are exchanged. Turn (1, 0) by a quarter of a circle: it must
    become (0, 1)."""
    return turned(a, b, -angle)


@rotate.mistake(stage="turn")
def mirrored(a, b, angle):
    """Your second number has the wrong sign between its two parts: the pair is mirrored, and not turned. At the angle
    0 a pair must stay as it is: does yours?"""
    first, second = turned(a, b, angle)
    return first, -second


@rotate.mistake(stage="turn")
def cos_and_sin_exchanged(a, b, angle):
    """The cosine stands where the sine belongs. At the angle 0 a pair must stay as it is, and cos(0) is 1: which number
    does that keep?"""
    cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
    return a * sin - b * cos, a * cos + b * sin


@rotate.mistake(stage="turn")
def partners_left_out(a, b, angle):
    """You multiply both numbers by the cosine, and neither takes anything of its partner. A turn moves part of each
    into the other: where is the sine?"""
    return a * angle.cos().to(a.dtype), b * angle.cos().to(a.dtype)


@rotate.mistake(stage="turn")
def first_overwritten(a, b, angle):
    """The second number is made from the first one *after* it was turned. Both need the old pair: keep it until both
    are there."""
    cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
    a = a * cos - b * sin
    return a, a * sin + b * cos


@rotate.mistake(stage="turn")
def same_sign_twice(a, b, angle):
    """Both of your numbers add the sine's part. In a turn one of the two subtracts it: turn (0, 1) by a quarter of a
    circle, and see where it must lie."""
    cos, sin = angle.cos().to(a.dtype), angle.sin().to(a.dtype)
    return a * cos + b * sin, a * sin + b * cos


@rotate.mistake(stage="angles")
def base_upside_down(positions, d_head, base):
    """Your later pairs turn faster than the first: the exponent's sign is missing. Pair 0 turns by 1 for each position,
    and all others more slowly."""
    return angles_of(positions, d_head, 1 / base)


@rotate.mistake(stage="angles")
def exponent_without_the_two(positions, d_head, base):
    """Your exponent is i / d_head, half of what it should be. Pair i holds the features 2i and 2i + 1: with the 2, the
    speeds reach almost down to 1 / base."""
    return angles_of(positions, d_head, base**0.5)


@rotate.mistake(stage="angles")
def one_speed(positions, d_head, base):
    """All of your pairs turn by the same angle. Each has a speed of its own, base^(−2i / d_head): where is the i?"""
    return positions[:, None].double().expand(-1, d_head // 2)


@rotate.mistake(stage="angles")
def divided_by_the_pairs_less_one(positions, d_head, base):
    """Your exponent goes from 0 to 1, both ends included, as `linspace` does. It is 2i / d_head, which stops one step
    before 1."""
    steps = torch.linspace(0, 1, d_head // 2, dtype=torch.float64, device=positions.device)
    return positions[:, None] * base**-steps


@rotate.mistake(stage="angles")
def degrees(positions, d_head, base):
    """Your angles are taken for degrees and converted. They are radians already: at position 1, pair 0 turns by 1, a
    sixth of a circle."""
    return torch.deg2rad(angles_of(positions, d_head, base))


@rotate.mistake(stage="angles")
def whole_circles(positions, d_head, base):
    """You multiply the angles by 2π. They are not counted in circles: at position 1, pair 0 turns by 1."""
    return angles_of(positions, d_head, base) * 2 * torch.pi


@rotate.mistake(stage="angles")
def counted_from_one(positions, d_head, base):
    """Every token is turned one position too far. Scores would not show it, since they see distances; position 0 must
    leave a token as it is."""
    return angles_of(positions + 1, d_head, base)


@rotate.mistake(stage="angles")
def places_for_positions(positions, d_head, base):
    """You number the tokens 0, 1, 2 … yourself, and `positions` is not used. In a step with a cache the only token
    given has a late position: where does your function learn it?"""
    return angles_of(torch.arange(len(positions), device=positions.device), d_head, base)


@rotate.mistake(stage="angles")
def base_never_used(positions, d_head, base):
    """Your base is always 10,000, whatever is given. This model has 100,000: where is the argument `base` used?"""
    return angles_of(positions, d_head, 10000.0)


@rotate.mistake
def not_turned(x, positions, base):
    """You return `x` as it came in: nothing has been turned. Where does the result of your work go?"""
    return x.clone()


@rotate.mistake
def added_like_sines(x, positions, base):
    """You add sines and cosines to the features, as the paper of 2017 does. Rotary positions multiply: they turn each
    pair, and add nothing to it."""
    angle = angles_of(positions, x.shape[-1], base)
    return x + torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2).to(x.dtype)
