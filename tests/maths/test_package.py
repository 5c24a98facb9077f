"""The imports, public names and docstrings of the package follow the project's rules."""

import ast
import doctest
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import transformer_lab as tl
from run_python import run_python

FOLDER = Path(tl.__file__).parent
# The modules that are public as a whole; each is imported only when it is first used.
PUBLIC_MODULES = {"checks", "drawings", "labs", "measure", "plots", "pretrained"}
HEAVY_PACKAGES = ["matplotlib", "anywidget", "ipywidgets", "traitlets", "IPython"]


def public_objects():
    """Return every public function and class as a test case; its id is the name that users write."""
    objects = {name: getattr(tl, name) for name in tl.__all__ if name not in PUBLIC_MODULES and not name.isupper()}
    objects |= {f"labs.{name}": getattr(tl.labs, name) for name in tl.labs.__all__}
    objects |= {f"checks.{name}": getattr(tl.checks, name) for name in ("summary", "progress")}
    objects |= {f"drawings.{name}": value for name, value in vars(tl.drawings).items() if _draws(value)}
    for module in (tl.measure, tl.plots, tl.pretrained):
        label = module.__name__.split(".")[-1]
        objects |= {f"{label}.{name}": value for name, value in vars(module).items() if _is_defined_here(value, module)}
    return [pytest.param(value, id=name) for name, value in objects.items()]


def _is_defined_here(value, module):
    is_callable_of_module = getattr(value, "__module__", "").startswith(module.__name__) and callable(value)
    return is_callable_of_module and not value.__name__.startswith("_")


def _draws(value):
    return inspect.isfunction(value) and value.__annotations__.get("return") is tl.drawings.Drawing


def test_import_loads_neither_matplotlib_nor_widgets():
    code = f"import sys, transformer_lab; print([name for name in {HEAVY_PACKAGES} if name in sys.modules])"
    assert run_python(code) == "[]\n"


def test_labs_and_plots_load_on_first_use():
    code = "import transformer_lab as tl; print(tl.labs.StridesLab.__name__, 'matplotlib' in __import__('sys').modules)"
    assert run_python(code) == "StridesLab False\n"
    assert tl.plots.__name__ == "transformer_lab.plots" and tl.measure.__name__ == "transformer_lab.measure"
    with pytest.raises(AttributeError, match=r"^module 'transformer_lab' has no attribute 'nonsense'$"):
        _ = tl.nonsense
    with pytest.raises(AttributeError, match=r"no attribute 'causalmask'; did you mean 'causal_mask'\?$"):
        _ = tl.causalmask


def test_all_holds_every_public_name_in_order():
    defined = {
        name
        for name, value in vars(tl).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith(tl.__name__)
    }
    assert set(tl.__all__) == defined | PUBLIC_MODULES == set(dir(tl))
    for module in (tl, tl.labs):
        # Constants, then classes, then functions, as ruff orders them.
        assert list(module.__all__) == sorted(
            module.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)
        )
        assert len(set(module.__all__)) == len(module.__all__)


def test_no_name_hides_a_module():
    modules = {module.name for module in pkgutil.iter_modules(tl.__path__)}
    # There are two exceptions: ``device``, because ``tl.device()`` reads well and its module contains nothing else, and
    # ``audit``, because the folder must be runnable as ``python -m transformer_lab.audit``.
    assert modules & set(tl.__all__) - PUBLIC_MODULES == {"device", "audit"}
    names = {name for name, value in vars(sys.modules["transformer_lab.device"]).items() if inspect.isfunction(value)}
    assert names == {"device"}


@pytest.mark.parametrize("value", public_objects())
def test_docstrings_are_complete(value):
    text = inspect.getdoc(value)
    assert re.match(r"[A-Z][^\n]+[.!?]\n", text), "the first line must be a sentence with a full stop"
    sections = dict(re.findall(r"^(\w+)\n-+\n(.*?)(?=^\w+\n-+$|\Z)", text, flags=re.MULTILINE | re.DOTALL))
    arguments = [name for name in inspect.signature(value).parameters if name != "self"]
    documented = re.findall(r"^([\w*, ]+?) : ", sections.get("Parameters", ""), flags=re.MULTILINE)
    assert ", ".join(documented).replace("*", "").split(", ") == (arguments or [""]), (
        "describe every parameter, in order"
    )
    assert doctest.DocTestParser().get_examples(sections["Examples"]), "the docstring must have an example that runs"
    source = inspect.getsource(value)
    if inspect.isfunction(value):
        assert ("Returns" in sections) == bool(re.search(r"^    .*return \S", source, flags=re.MULTILINE))
        documented_errors = re.findall(r"^\w.*$", sections.get("Raises", ""), re.MULTILINE)
        assert set(re.findall(r"raise (\w+)\(", source)) <= set(re.findall(r"\w+", " ".join(documented_errors)))
    order = ["Parameters", "Attributes", "Returns", "Raises", "References", "Examples"]
    assert list(sections) == [name for name in order if name in sections]


@pytest.mark.parametrize("value", [case for case in public_objects() if not case.id.startswith(("labs.", "checks."))])
def test_public_names_have_type_hints(value):
    """The type checker in ``make lint`` verifies that the hints are true."""
    functions = [value]
    if inspect.isclass(value):
        functions = [method for name, method in vars(value).items() if not name.startswith("_") or name == "__init__"]
        functions = [getattr(method, "__func__", method) for method in functions]
    for function in filter(inspect.isfunction, functions):
        signature = inspect.signature(function)
        untyped = [
            name
            for name, parameter in signature.parameters.items()
            if name not in ("self", "cls") and parameter.annotation is parameter.empty
        ]
        assert not untyped and (function.__name__ == "__init__" or signature.return_annotation is not signature.empty)


@pytest.mark.parametrize("file", sorted(FOLDER.rglob("*.py")), ids=lambda file: str(file.relative_to(FOLDER)))
def test_maths_imports_no_plots_or_widgets(file):
    folder = file.relative_to(FOLDER).parts
    # These modules may import plots or widgets: they draw, use checks (practice topics) or show a card (an audit).
    if folder[0].removesuffix(".py") in {*PUBLIC_MODULES, "lesson", "practice", "audit"}:
        return
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(alias.name for alias in node.names)]
        imported = {part for name in names for part in name.split(".")}
        assert not imported & {*PUBLIC_MODULES, *HEAVY_PACKAGES}, f"{file.name}, line {node.lineno}"


def test_no_module_imports_a_chapter():
    for file in FOLDER.rglob("*.py"):
        assert not re.search(r"^\s*(from|import) +\.*chapters", file.read_text("utf-8"), flags=re.MULTILINE), file.name
