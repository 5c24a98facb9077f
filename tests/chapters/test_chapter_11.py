"""Tests of statements that no cell of chapter 11 demonstrates."""

import re

import nbformat
import pytest
import torch

import fresh_mistakes
import later_mistakes
import notebooks
from chapter_code import chapter_code
from transformer_lab.bugs import BUGS, SmallModel

TOKENS = torch.tensor([[3, 14, 15, 9, 26, 5, 35, 8]])


@pytest.fixture(scope="module")
def chapter():
    return chapter_code("11_right", sections={"11.2", "11.3", "11.5", "11.7"})


@pytest.fixture(scope="module")
def text():
    cells = nbformat.read(notebooks.ROOT / "chapters" / "11_right.ipynb", 4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


@pytest.fixture(scope="module")
def tokens(chapter):
    return TOKENS.to(chapter["device"])


def test_the_text_counts_the_fresh_mistakes_that_the_audit_finds(text):
    detecting_properties = [*fresh_mistakes.DETECTED_BY.values(), *later_mistakes.DETECTED_BY.values()]
    n_found, n_all = map(int, re.search(r"The full audit finds (\d+) of the (\d+)\.", text).groups())
    assert (n_found, n_all) == (sum(name is not None for name in detecting_properties), len(detecting_properties))


def test_a_running_mean_moves_as_the_answer_says():
    def running_means(x):
        return x.cumsum(0) / torch.arange(1, 4)

    change = running_means(torch.tensor([1.0, 5.0, 3.0])) - running_means(torch.tensor([1.0, 2.0, 3.0]))
    assert change.tolist() == [0.0, 1.5, 1.0]


def test_the_diagonal_is_the_largest_entry_although_the_mask_hides_it(chapter, tokens):
    for broken in (False, True):
        table = chapter["influence"](BUGS["inverted_mask"].arguments(broken)["model"].eval(), tokens)
        assert table.argmax(dim=1).tolist() == [*range(8)]


def test_the_staircase_passes_a_test_of_the_last_token_and_the_first_output(chapter, tokens):
    table = chapter["influence"](chapter["Blocks"]().eval(), tokens)
    assert table[-1, 0] < 1e-5
    assert table.tril(-1).max() > 1e-3


def test_a_feed_forward_layer_alone_moves_only_the_diagonal(chapter, tokens):
    class FeedForwardOnly(SmallModel):
        def layer(self, x, layer, *_):
            return self.add(x, self.feed_forward(self.norms[2 * layer + 1](x), layer))

    table = chapter["influence"](FeedForwardOnly().eval(), tokens)
    assert table.diagonal().min() > 1e-3
    assert (table - table.diagonal().diag()).abs().max() < 1e-5


def test_the_causal_corner_is_hidden_while_the_cache_receives_a_text_in_one_part(chapter, tokens):
    model = BUGS["causal_corner"].arguments()["model"].eval()
    for repeats in (1, 4):
        longer_text = tokens.repeat(1, repeats)
        assert chapter["same_with_cache"](model, longer_text, [longer_text.shape[1]]) < 1e-5


def test_quiet_weights_hide_a_finite_mask(chapter, tokens):
    tables = [
        chapter["influence"](BUGS["weak_mask"].arguments(broken)["model"].eval(), tokens) for broken in (True, False)
    ]
    torch.testing.assert_close(*tables)


def test_two_evaluations_agree_even_if_the_first_switches_dropout_off_for_good(chapter, tokens):
    def difference(model):
        return (model.train()(tokens) - model(tokens)).abs().max().item()

    for broken in (True, False):
        model = BUGS["dropout_gone"].arguments(broken)["model"]
        assert difference(model) > 0  # before any evaluation
        first = model.eval()(tokens)
        model.train()(tokens)
        torch.testing.assert_close(model.eval()(tokens), first)  # passes with the bug and without it
        assert (difference(model) == 0) is broken


def test_both_mistakes_of_the_small_gpt_are_in_one_line(chapter, tokens):
    source = notebooks.ROOT / "chapters" / "11_right.ipynb"
    code = "\n".join(cell.source for cell in nbformat.read(source, 4).cells if cell.cell_type == "code")
    wrong_lines = [line for line in code.split("\n") if "-1e4" in line and "dim=-2" in line]
    assert len(wrong_lines) == 1
    torch.manual_seed(0)
    broken, repaired = (chapter[name]().to(chapter["device"]).eval() for name in ("TinyGPT", "Repaired"))
    assert chapter["influence"](broken, tokens).tril(-1).max() > 1e-4
    assert chapter["influence"](repaired, tokens).tril(-1).max() < 1e-5
