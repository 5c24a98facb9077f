"""The model of chapter 6 learns from any seed, and the chapter's statements about numbers and mistakes are true."""

import ast

import nbformat
import pytest
import torch
from torch import nn

import notebooks
import transformer_lab as tl
from chapter_code import SEEDS, chapter_code


@pytest.fixture(scope="module")
def chapter():
    return chapter_code("06_normalization")


@pytest.fixture(scope="module")
def cells():
    return nbformat.read(notebooks.ROOT / "chapters" / "06_normalization.ipynb", 4).cells


@pytest.mark.parametrize("seed", SEEDS)
def test_the_chapters_model_learns_to_reverse_from_other_seeds(seed, chapter):
    model, losses = chapter["train"](seed)
    generator = torch.Generator().manual_seed(99)
    assert sum(losses[-20:]) / 20 < 0.05
    assert chapter["share_right"](model, 500, generator) >= 0.99

    source, _ = chapter["draw"](50, generator)
    transformer, mask = chapter["as_transformer"](model), chapter["source_mask"](source)
    tokens_with_cache = transformer.generate(source, mask, bos=chapter["BOS"], max_new_tokens=9)
    assert torch.equal(tokens_with_cache, chapter["write"](model, source, steps=9))


def test_a_model_that_has_hardly_trained_does_not_reverse(chapter):
    model, _ = chapter["train"](seed=1, steps=2)
    assert chapter["share_right"](model, 100, torch.Generator().manual_seed(99)) < 0.1


@pytest.mark.parametrize("seed", SEEDS)
def test_without_its_causal_mask_the_decoder_learns_to_copy(seed, chapter, monkeypatch):
    original_forward = tl.MultiHeadAttention.forward
    monkeypatch.setattr(
        tl.MultiHeadAttention,
        "forward",
        lambda self, *inputs, is_causal=False, **options: original_forward(self, *inputs, **options),
    )
    model, losses = chapter["train"](seed)
    assert sum(losses[-20:]) / 20 < 0.05
    assert chapter["share_right"](model, 200, torch.Generator().manual_seed(99)) < 0.05


def test_weights_are_copied_by_name(chapter):
    """Copying from a model with a renamed part raises an error instead of silently leaving out weights."""
    model = chapter["Reverser"](13, **chapter["SIZES"])
    model.head = model.output
    del model.output
    with pytest.raises(RuntimeError, match=r"Missing key.*output\.weight.*\n.*Unexpected key.*head\.weight"):
        chapter["as_transformer"](model)


def test_no_name_is_a_function_in_one_cell_and_a_value_in_another(cells):
    """If a later cell used a function's name for a value, running an earlier cell again could raise an error."""
    functions, values = set(), set()
    for cell in cells:
        for node in ast.parse(cell.source).body if cell.cell_type == "code" else []:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                functions.add(node.name)
            else:
                assigned_names = (name for name in ast.walk(node) if isinstance(name, ast.Name))
                values |= {name.id for name in assigned_names if isinstance(name.ctx, ast.Store)}
    assert not functions & values


@pytest.mark.parametrize("seed", SEEDS)
def test_residuals_and_initial_weights_decide_the_size_of_a_gradient(seed, chapter):
    def gradient_ratio(added, he):
        torch.manual_seed(100 + seed)
        chapter["x"], chapter["label"] = torch.randn(2, 100, 64, device=tl.device())
        lengths = chapter["gradient_lengths"](added, he, seed)
        return lengths[0] / lengths[-1]

    assert gradient_ratio(added=False, he=False) < 0.5**24
    assert 1 < gradient_ratio(added=True, he=False) < 1.17**24
    assert 0.4 < gradient_ratio(added=False, he=True) < 1.4
    assert gradient_ratio(added=True, he=True) > 1e4


def test_batch_norm_remembers_the_numbers_of_the_answer(cells):
    x, norm = torch.tensor([[1.0], [3.0]]), nn.BatchNorm1d(1)
    mean, variance = torch.zeros(1), torch.ones(1)
    torch.testing.assert_close(norm(x), tl.batch_norm(x, mean, variance, training=True))
    torch.testing.assert_close(norm.running_var, variance)
    assert [round(each.item(), 3) for each in (mean, variance)] == [0.2, 1.1]
    training_output = norm(x)[0].item()
    norm = norm.eval()
    norm.running_mean.fill_(0.2)
    norm.running_var.fill_(1.1)
    (folded_answer,) = [cell.source for cell in cells if "<summary>What batch norm remembers" in cell.source]
    assert "become 0.2 and 0.9 · 1 + 0.1 · **2** = 1.1" in folded_answer
    assert (
        f"(1 − 2)/1 = −{-training_output:.0f}; in evaluation, it becomes (1 − 0.2)/√1.1 = {norm(x)[0].item():.2f}"
        in folded_answer
    )


# Mistakes that the page of notes mentions but no section runs


def test_the_root_taken_twice_leaves_a_variance_of_five():
    x = torch.tensor([1.0, 7.0, 9.0, 15.0])
    sigma = x.var(correction=0).sqrt()
    assert ((x - x.mean()) / sigma.sqrt()).var(correction=0).item() == pytest.approx(5)


def test_a_bias_after_the_activation_adds_a_constant():
    feed_forward, x = tl.FeedForward(8, 32), torch.randn(5, 8)
    w1, b1, w2, b2 = feed_forward.parameters()
    bias_after_activation = (torch.relu(x @ w1.T) + b1) @ w2.T + b2
    torch.testing.assert_close(bias_after_activation, torch.relu(x @ w1.T) @ w2.T + (b1 @ w2.T + b2))
    assert (bias_after_activation - feed_forward(x)).abs().max() > 0.01


def test_a_misspelt_key_is_found_when_the_layer_is_made():
    with pytest.raises(KeyError, match="hiden"):
        nn.LayerNorm({"hidden": 8}["hiden"])
    with pytest.raises(TypeError, match="d_modle"):
        tl.EncoderLayer(d_modle=8, n_heads=2, d_ff=16)


def test_cloned_layers_share_no_memory_but_begin_with_equal_weights():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    clones = [layer.linear1.weight for layer in nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).layers]
    assert len({weight.data_ptr() for weight in [*clones, layer.linear1.weight]}) == 4
    assert all(torch.equal(weight, layer.linear1.weight) for weight in clones)
    transformer = nn.Transformer(8, 2, 3, 3, 16, batch_first=True)
    first, second = (layer.linear1.weight for layer in transformer.encoder.layers[:2])
    assert not torch.equal(first, second)
