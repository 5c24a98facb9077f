"""The arithmetic of maths.js agrees with PyTorch's, and words.js formats numbers and parses shapes correctly."""

import math
import random
from types import SimpleNamespace

import pytest
import torch
from hypothesis import example, given

import transformer_lab as tl
from javascript import ANY_TEXT, Engine, assert_close, many_examples, parse_checked
from transformer_lab.labs import BroadcastingLab, StridesLab
from transformer_lab.labs.lab import _SHARED, _join

SHAPE_LIMITS = BroadcastingLab().limits


@pytest.fixture(scope="module")
def engine():
    return Engine(SimpleNamespace(_esm=_join(_SHARED)))  # a lab's script contains only the definitions that it uses


def test_softmax_dot_and_blend_agree_with_torch(engine):
    generator = torch.Generator().manual_seed(0)
    for n_keys, features in [(1, 1), (2, 5), (5, 3), (8, 2)] * 10:
        scores = torch.randn(n_keys, generator=generator, dtype=torch.float64) * 10
        other_scores = torch.randn(n_keys, generator=generator, dtype=torch.float64)
        rows = torch.randn(n_keys, features, generator=generator, dtype=torch.float64)
        weights = tl.softmax(scores)
        assert_close(engine("softmax", scores.tolist()), weights)
        assert_close(engine("dot", scores.tolist(), other_scores.tolist()), scores @ other_scores)
        assert_close(engine("blend", weights.tolist(), rows.tolist()), weights @ rows)


def test_softmax_does_not_overflow(engine):
    assert engine("softmax", [1e4, 0, 1e4]) == [0.5, 0, 0.5]


def test_indices_agree_with_torch(engine):
    rng = random.Random(1)
    for _ in range(200):
        shape = [rng.choice((0, 1, 2, 3, 5)) for _ in range(rng.randrange(5))]
        x = torch.arange(math.prod(shape)).view(shape)
        assert tuple(engine("contiguousStrides", shape)) == x.stride()
        for flat in range(x.numel()):
            index = engine("unravel", flat, shape)
            assert x[tuple(index)] == flat == engine("ravel", index, shape)


def test_divisors_are_complete(engine):
    for n in range(1, 200):
        assert engine("divisors", n) == [i for i in range(1, n + 1) if n % i == 0]


def test_numbers_and_lists_are_formatted_for_reading(engine):
    assert [engine("minus", text) for text in ("-3", "-0.00", "2e-9", "0")] == ["−3", "0.00", "2e−9", "0"]
    assert [engine("fixed", x) for x in (-0.004, 0.005, -1.234)] == ["0.00", "0.01", "−1.23"]
    assert [engine("short", x) for x in (2.25, -0.04, 9.96, -12.34, 12345)] == ["2.3", "0.0", "10", "−12", "1e4"]
    assert engine._context.eval("short(-Infinity)") == "−∞"
    assert [engine("grouped", x) for x in (1, 1024, 2199023255552)] == ["1", "1,024", "2,199,023,255,552"]
    assert engine._context.eval("grouped(123456789012345678901234n)") == "123,456,789,012,345,678,901,234"
    assert [engine("plural", n, "axis", "axes") for n in (1, 0, 1000)] == ["1 axis", "0 axes", "1,000 axes"]
    assert [engine("listed", list("abc")[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert [engine("shapeText", shape) for shape in ([], [3], [2, 3])] == ["()", "(3,)", "(2, 3)"]


@many_examples
@given(text=ANY_TEXT)
@example(text="2, 3, 4")
@example(text="(1,)")
@example(text="99999999999999999999")
def test_typed_shapes_are_parsed_or_refused_in_words(text, engine):
    result = parse_checked(engine, "parseShape", text, SHAPE_LIMITS)
    if result:
        BroadcastingLab(a=result["value"])
    result = parse_checked(engine, "parseShape", text, {"size": 64, "axes": 5, "least": 1})
    if result and math.prod(result["value"]) <= 64:
        StridesLab(result["value"], "")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("2, x", "A size must be a whole number, not “x”. Write a shape as 2, 3, 4."),
        ("2.5", "A size must be a whole number, not “2.5”. Write a shape as 2, 3, 4."),
        ("-1", "A size must be a whole number, not “-1”. Write a shape as 2, 3, 4."),
        ("5000000000", "A size must be from 0 to 1,000,000,000, not 5000000000."),
        ("1 1 1 1 1 1 1 1 1", "At most 8 axes here, not 9."),
    ],
)
def test_invalid_shape_gets_an_error_message(engine, text, error):
    assert engine("parseShape", text, SHAPE_LIMITS) == {"error": error}
