"""The check of `masked_multi_head`, a class, builds the learner's layer and loads given weights into it."""

import pytest
from torch import nn

import transformer_lab as tl
from chapter_code import chapter_code


@pytest.fixture(scope="module")
def solution():
    return chapter_code("solutions/05_masks")


def remove_key_bias(layer_class):
    class Answer(layer_class):
        def __init__(self, d_model, n_heads):
            super().__init__(d_model, n_heads)
            self.k_proj = nn.Linear(d_model, d_model, bias=False)

    return Answer


def forget_last_layer(layer_class):
    class Answer(layer_class):
        def forward(self, query, key, value, mask=None):
            self.out_proj = nn.Identity()
            return super().forward(query, key, value, mask)

    return Answer


@pytest.mark.parametrize("name", ["MaskedMultiHead", "MaskedMultiHeadOtherwise"])
def test_the_solutions_are_right(solution, name):
    assert tl.checks.masked_multi_head(solution[name]).status == "correct"


def test_the_class_of_the_chapter_is_right():
    chapter = chapter_code("05_masks")
    assert tl.checks.masked_multi_head(chapter["MultiHead"]).status == "correct"


def test_a_class_of_the_package_is_right():
    assert tl.checks.masked_multi_head(tl.MultiHeadAttention).status == "correct"


def test_a_parameter_of_a_different_shape_is_named(solution):
    report = tl.checks.masked_multi_head(remove_key_bias(solution["MaskedMultiHead"]))
    assert report.status == "error" and "of a wrong shape: k_proj.bias" in report.message


def test_a_class_that_is_no_module_is_reported():
    report = tl.checks.masked_multi_head(type("Plain", (), {"__init__": lambda self, d_model, n_heads: None}))
    assert report.status == "error" and "a subclass of `nn.Module`" in report.message


def test_a_forgotten_layer_is_named(solution):
    report = tl.checks.masked_multi_head(forget_last_layer(solution["MaskedMultiHead"]))
    assert report.mistake == "no_output_projection", report


def test_a_class_that_is_not_written_yet_is_not_attempted():
    class Stub(nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()
            raise NotImplementedError

    report = tl.checks.masked_multi_head(Stub)
    assert (report.status, report.message) == ("not attempted", "")


def test_a_module_in_place_of_the_class_is_reported(solution):
    report = tl.checks.masked_multi_head(solution["MaskedMultiHead"](12, 3))
    assert report.status == "error" and "not a layer made from it" in report.message, report
