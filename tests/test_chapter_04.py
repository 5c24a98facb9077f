"""Chapter 4 says of its small model that ten seeds give ten models whose heads have jobs: trained with its cells."""

import ast

import nbformat
import notebooks
import pytest
import torch

CONSTANTS = {"n_letters", "n_digits", "half", "d_model", "n_heads", "d_head", "test"}


def definitions(source):
    """What a cell defines: imports, functions, classes, and the constants of the model."""
    for node in ast.parse(source).body:
        names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
        constant = isinstance(node, ast.Assign) and names <= CONSTANTS
        if constant or isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
            yield node


@pytest.fixture(scope="module")
def chapter():
    """The names that sections 4.9 and 4.10 define."""
    cells = nbformat.read(notebooks.ROOT / "chapters" / "04_multi_head.ipynb", 4).cells
    heading = {cell.source.split(" ")[1]: at for at, cell in enumerate(cells) if cell.source.startswith("## 4.")}
    setup = next(cell for cell in cells if cell.source.startswith("import math"))
    cells = [cell for cell in cells[heading["4.9"] : heading["4.11"]] if cell.cell_type == "code"]
    names = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the chapter does: tensors this small are done sooner by one
    exec(setup.source, names)
    for cell in cells:
        exec(compile(ast.Module(list(definitions(cell.source)), []), "chapter 4", "exec"), names)
    yield names
    torch.set_num_threads(threads)


@pytest.mark.parametrize("seed", range(10))
def test_every_seed_gives_a_model_that_answers_and_heads_that_have_jobs(chapter, seed):
    model = chapter["model"] = chapter["train"](seed)
    assert (chapter["accuracy"](model) > 0.97).all()
    jobs = chapter["jobs"](model)  # (previous, twin, after the twin; layers; heads)
    previous, same = jobs[0, 0], jobs[1, 0]
    assert previous.max() > 0.8 and same.max() > 0.8 and jobs[2, 1].max() > 0.8
    assert previous.argmax() != same.argmax()
    before, digit, after = chapter["accuracy_without"]((0, previous.argmax()))
    assert before < 0.5 and digit > 0.97 and after < 0.5
    before, digit, after = chapter["accuracy_without"]((1, 0), (1, 1))
    assert before > 0.97 and digit > 0.97 and after < 0.5


def test_a_model_that_has_hardly_trained_has_none_of_this(chapter):
    model = chapter["train"](0, steps=20)
    assert (chapter["accuracy"](model) < 0.5).all() and chapter["jobs"](model).max() < 0.5
    assert torch.is_grad_enabled()
