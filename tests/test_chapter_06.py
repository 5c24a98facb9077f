"""Chapter 6 ends in a model that learns its task: from any seed, by the chapter's own cells."""

import ast

import nbformat
import notebooks
import pytest
import torch

CHAPTER = notebooks.ROOT / "chapters" / "06_normalization.ipynb"


def definitions(source):
    """Imports, functions, classes and constants of a cell: what it brings along, without what it does."""
    kept = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            names = {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            brings = all(name.isupper() or name in ("device", "generator") for name in names)
        else:
            brings = isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef))
        if brings:
            kept.append(ast.get_source_segment(source, node))
    return "\n".join(kept)


@pytest.fixture(scope="module")
def chapter():
    """The names that the chapter's cells define."""
    names = {}
    for cell in nbformat.read(CHAPTER, 4).cells:
        if cell.cell_type == "code":
            exec(compile(definitions(cell.source), CHAPTER.name, "exec"), names)
    return names


@pytest.mark.parametrize("seed", [1, 2])
def test_its_model_learns_to_reverse_from_other_seeds(seed, chapter):
    """From seed 0 the chapter trains it itself. (Tried: ten seeds, all of them without a single wrong sequence.)"""
    model, losses = chapter["train"](seed)
    numbers = torch.Generator().manual_seed(99)
    assert sum(losses[-20:]) / 20 < 0.05
    assert chapter["share_right"](model, 500, numbers) >= 0.99

    source, _ = chapter["draw"](50, numbers)
    whole, mask = chapter["as_transformer"](model), chapter["padding"](source)
    with_cache = whole.generate(source, mask, bos=chapter["BOS"], max_len=9)
    assert torch.equal(with_cache, chapter["write"](model, source, steps=9))


def test_a_model_that_has_learned_nothing_is_seen_to_fail(chapter):
    model, _ = chapter["train"](seed=1, steps=2)
    assert chapter["share_right"](model, 100, torch.Generator().manual_seed(99)) < 0.1
