"""Tests of what the final project states about the functions that it provides and about its plans."""

import ast
import inspect
import re

import nbformat
import pytest
import torch

import notebooks
import transformer_lab as tl
from chapter_code import ALL_SEEDS, definitions

PATH = notebooks.ROOT / "chapters" / "solutions" / "project.ipynb"
CONSTANTS = {"device", "letters", "bar", "length", "vocab", "d_model", "d_ff", "n_blocks"}


@pytest.fixture(scope="module")
def cells():
    return nbformat.read(PATH, 4).cells


def test_the_table_has_the_signature_of_every_function_that_the_project_provides(cells):
    (text,) = [cell.source for cell in cells if "## Your functions" in cell.source]
    (code,) = [cell.source for cell in cells if cell.source.startswith("sinusoidal_positions = ")]
    rows = dict(re.findall(r"(?m)^\| `(\w+)\((.*?)\)` \|", text))
    assert list(rows) == re.findall(r"(?m)^(\w+) = ", code)
    for name, arguments in rows.items():
        parameters = inspect.signature(getattr(tl.checks, name).reference).parameters.values()
        argument_names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert arguments.split(", ") == argument_names, name


@pytest.fixture(scope="module")
def project(cells):
    """Return the definitions before the optional section, with the course's functions in place of the learner's."""
    namespace = {}
    for cell in cells:
        if "## 11 " in cell.source:
            break
        if cell.cell_type == "code":
            nodes = list(definitions(cell.source, CONSTANTS))
            exec(compile(ast.Module(nodes, []), PATH.stem, "exec"), namespace)
    for name in ("causal_mask", "masked_attention"):
        namespace[name] = getattr(tl.checks, name).reference
    namespace["causal_linear_attention"] = tl.causal_linear_attention
    namespace["model"] = tl.checks.language_model.reference
    namespace["loss_of"] = tl.checks.next_token_loss.reference
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield namespace
    torch.set_num_threads(threads)


slow = pytest.mark.skipif(not ALL_SEEDS, reason="takes a long time: `make claims` runs this test")


@slow
@pytest.mark.parametrize("seed", range(4))
def test_the_three_statements_about_plans_hold_for_four_seeds(project, seed):
    softmax, linear = project["with_softmax"], project["with_linear"]
    configurations = (softmax, 8), (linear, 8), (linear, 1)
    softmax_accuracy, linear_accuracy_8, linear_accuracy_1 = (
        project["train"]("", *configuration, seed=seed)[1][-1] for configuration in configurations
    )
    assert softmax_accuracy > 0.97 and linear_accuracy_8 < 0.80 and linear_accuracy_1 > linear_accuracy_8 + 0.1
