"""Sinusoidal positions against the paper's formula, number by number in float64."""

import math

import pytest
import torch

import transformer_lab as tl

DEVICE = tl.device()


def formula(position, feature, d_model):
    angle = position / 10000 ** ((feature - feature % 2) / d_model)
    return math.cos(angle) if feature % 2 else math.sin(angle)


@pytest.mark.parametrize("d_model", [1, 2, 5, 8, 33])
def test_every_number_is_the_formulas(d_model):
    found = tl.sinusoidal_positions(50, d_model, device=DEVICE)
    assert found.shape == (50, d_model) and found.dtype == torch.float32 and found.device.type == DEVICE.type
    for p in range(50):
        for feature in range(d_model):
            assert abs(found[p, feature].item() - formula(p, feature, d_model)) < 6e-8


def test_late_positions_are_as_exact_as_early_ones():
    found = tl.sinusoidal_positions(100_001, 6)
    for p in (99_999, 100_000):
        for feature in range(6):
            assert abs(found[p, feature].item() - formula(p, feature, 6)) < 6e-8


def test_a_shift_is_a_rotation_of_every_pair():
    """Position ``p + 7`` is position ``p`` times one matrix, whatever ``p`` (Vaswani et al., section 3.5)."""
    found = tl.sinusoidal_positions(40, 8).double()
    for pair in range(4):
        turn = 7 / 10000 ** (2 * pair / 8)
        rotation = torch.tensor(
            [[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]], dtype=torch.float64
        )
        columns = found[:, 2 * pair : 2 * pair + 2]
        torch.testing.assert_close(columns[:-7] @ rotation.T, columns[7:], rtol=0, atol=3e-7)


def test_they_lie_on_the_default_device_which_may_have_no_float64():
    with torch.device(DEVICE):
        found = tl.TokenEmbedding(3, 6).positions
    assert found.device.type == DEVICE.type
    assert torch.equal(found[:9].cpu(), tl.sinusoidal_positions(9, 6, device="cpu"))


def test_no_positions():
    assert tl.sinusoidal_positions(0, 4, device=DEVICE).shape == (0, 4)


@pytest.mark.parametrize(
    ("sizes", "error", "text"),
    [
        ((2.0, 4), TypeError, "seq must be an integer, got 2.0"),
        ((True, 4), TypeError, "seq must be an integer, got True"),
        ((2, "4"), TypeError, "d_model must be an integer, got '4'"),
        ((-1, 4), ValueError, "seq must be at least 0, got -1"),
        ((2, 0), ValueError, "d_model must be at least 1, got 0"),
    ],
)
def test_errors_say_what_is_wrong(sizes, error, text):
    with pytest.raises(error) as raised:
        tl.sinusoidal_positions(*sizes)
    assert type(raised.value) is error and str(raised.value) == text
