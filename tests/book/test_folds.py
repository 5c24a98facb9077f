"""The summary of a fold says what the fold contains: code, or an output that readers should guess first."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from myst_nb.sphinx_ import HideCodeCellNode

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # book/conf.py does the same: the book's extensions are not in the package

from book.folds import begin_cell  # noqa: E402


# The name of each kind in myst-nb, and its label on the page.
@pytest.mark.parametrize("kind, label", [("source", "code"), ("output", "output")])
def test_a_fold_says_whether_it_holds_code_or_an_output(kind, label):
    settings = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["sphinx"]["config"]
    prompts = {
        f"prompt_{action}": settings[f"nb_code_prompt_{action}"].replace("{type}", kind) for action in ("show", "hide")
    }
    translator = SimpleNamespace(body=[])
    begin_cell(translator, HideCodeCellNode(classes=["below-input"], **prompts))
    assert re.findall(r"<span[^>]*>([^<]*)</span>", translator.body[0]) == [f"Show the {label}", f"Hide the {label}"]
