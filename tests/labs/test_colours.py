"""On a light page, the labs use the figures' colour maps; on a dark page, colours become brighter away from zero."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

from javascript import Engine
from transformer_lab import plots
from transformer_lab.labs.lab import _FOLDER, _SHARED, _join

BOOK = Path(__file__).parents[2] / "book"


@pytest.fixture(scope="module")
def engine():
    return Engine(SimpleNamespace(_esm=_join(_SHARED)))


def pixels(engine, name, theme):
    """Return the 256 steps of a map: red, green, blue and opacity."""
    steps = json.loads(engine._context.eval(f"JSON.stringify(pixelsOf({name}).{theme})"))
    return np.array(steps, dtype="<u4").view(np.uint8).reshape(256, 4)


@pytest.mark.parametrize(("name", "cmap"), [("BLUES", plots.WEIGHT_COLOURS), ("SIGNED", plots.SIGNED_COLOURS)])
def test_light_colour_maps_match_the_figures(engine, name, cmap):
    figure_pixels = matplotlib.colormaps[cmap](np.arange(256), bytes=True)
    assert np.abs(pixels(engine, name, "light").astype(int) - figure_pixels).max() <= 2


def test_dark_colour_maps_are_brighter_away_from_zero(engine):
    luminance = {name: pixels(engine, name, "dark")[:, :3] @ [0.2126, 0.7152, 0.0722] for name in ("BLUES", "SIGNED")}
    signed = luminance["SIGNED"]
    for values_outwards in (luminance["BLUES"], signed[127::-1], signed[128:]):
        assert (np.diff(values_outwards[::8]) > 0).all()


@pytest.mark.parametrize(("name", "legend"), [("SIGNED", "span"), ("BLUES", ":first-child")])
def test_legend_of_the_whole_lab_has_the_colours_of_the_maps(engine, name, legend):
    css = (_FOLDER / "whole.css").read_text("utf-8")
    gradient = re.search(rf"\.tl-scale > {legend}::before .*linear-gradient\((.*)\)", css)[1]
    legend_colours = re.findall(r"light-dark\(#(\w+), #(\w+)\)", gradient)
    stops = json.loads(engine._context.eval(f"JSON.stringify([{name}.light, {name}.dark])"))
    map_colours = list(zip(*([bytes(stop).hex() for stop in theme] for theme in stops)))
    assert legend_colours == [pair for pair in map_colours if pair in legend_colours]
    assert {map_colours[0], map_colours[-1]} <= set(legend_colours)


@pytest.mark.parametrize("role", ["query", "key", "value"])
def test_query_key_and_value_have_the_colours_of_the_prose(role):
    lab, page = ((path / name).read_text("utf-8") for path, name in ((_FOLDER, "lab.css"), (BOOK, "style.css")))
    assert re.search(rf"--{role}: (\d+);", lab)[1] == re.search(rf"\.role-{role} {{ --role: (\d+); }}", page)[1]
    colour = re.search(r"\[data-role\] ({.*})", lab)[1]
    assert colour in page
