"""Plots show their numbers, names and colours, and mark NaN."""

import matplotlib
import pytest
import torch

matplotlib.use("agg")
from matplotlib import pyplot as plt

import transformer_lab as tl


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def cell_texts(ax):
    return [text.get_text() for text in ax.texts]


def test_matrix_shows_each_number_in_its_cell():
    ax = tl.plots.matrix(torch.tensor([[1.0, -2.0, 0.5], [0.0, 4.0, 3.0]]), axes="q_len k_len", digits=1, title="t")
    assert cell_texts(ax) == ["1.0", "-2.0", "0.5", "0.0", "4.0", "3.0"]
    assert [text.get_position() for text in ax.texts][:4] == [(0, 0), (1, 0), (2, 0), (0, 1)]
    assert (ax.get_ylabel(), ax.get_xlabel(), ax.get_title()) == ("q_len", "k_len", "t")


def test_colours_are_symmetric_around_zero_by_default():
    image = tl.plots.matrix(torch.tensor([[1.0, -3.0]])).images[0]
    assert image.get_clim() == (-3, 3)
    assert tl.plots.matrix(torch.zeros(1, 1)).images[0].get_clim() == (-1, 1)


def test_numbers_stay_readable_on_dark_and_light_cells():
    ax = tl.plots.weights(torch.tensor([[1.0, 0.0]]))
    assert [text.get_color() for text in ax.texts] == ["white", "black"]


def test_weights_have_one_scale_and_one_colour_map():
    ax = tl.plots.weights(torch.full((2, 2), 0.5), queries=["a", "b"], keys=["c", "d"])
    assert ax.images[0].get_clim() == (0, 1)
    assert ax.images[0].get_cmap().name == tl.plots.WEIGHT_COLOURS
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["c", "d"]


def test_nan_is_shown_and_does_not_change_the_scale():
    ax = tl.plots.matrix(torch.tensor([[float("nan"), 2.0]]))
    assert cell_texts(ax) == ["nan", "2.00"]
    assert ax.images[0].get_clim() == (-2, 2)
    assert ax.texts[0].get_color() == "black"


def test_draws_into_given_axes_with_any_dtype_and_gradient():
    _, ax = plt.subplots()
    assert tl.plots.matrix(torch.ones(2, 2, dtype=torch.bfloat16, requires_grad=True), ax) is ax
    tl.plots.matrix(torch.eye(2, dtype=torch.bool, device=tl.device()), ax)


def test_digits_none_hides_the_numbers():
    assert cell_texts(tl.plots.matrix(torch.ones(30, 30), digits=None)) == []


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tl.plots.matrix([[1.0]]), TypeError, "x must be a tensor, got list: use torch.as_tensor(x)"),
        (
            lambda: tl.plots.matrix(torch.ones(3)),
            ValueError,
            "x must be a matrix, with 2 axes that are not empty, got shape (3,)",
        ),
        (
            lambda: tl.plots.weights(torch.ones(0, 3)),
            ValueError,
            "x must be a matrix, with 2 axes that are not empty, got shape (0, 3)",
        ),
        (
            lambda: tl.plots.weights(torch.ones(2, 3), keys=["a"]),
            ValueError,
            "keys must have 3 labels for x of shape (2, 3), got 1",
        ),
    ],
)
def test_errors_name_argument_rule_and_value(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == message
