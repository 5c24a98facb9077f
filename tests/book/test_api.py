"""The API page lists every public name; docstrings render without warnings, and entries link to the chapters."""

import inspect
import io
import sys

import pytest
import yaml
from docutils.core import publish_doctree
from docutils.parsers.rst import roles
from sphinx.ext.napoleon import Config, NumpyDocstring

import transformer_lab as tl
from notebooks import ROOT

sys.path.append(str(ROOT))
from book.api import NAMES_PARAGRAPH, chapter_sections, entry, lookup, names_in, sections_with

CHAPTERS = ROOT / "chapters"
PAGE = (CHAPTERS / "api.md").read_text("utf-8")
LISTED_NAMES = [name for names in NAMES_PARAGRAPH.findall(PAGE) for name in names_in(names)]
SETTINGS = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["sphinx"]["config"]
SETTINGS = {name: value for name, value in SETTINGS.items() if name.startswith("napoleon_")}
MODULES_WITHOUT_ENTRY = {"drawings"}  # the functions that draw the chapters' pictures


def test_the_page_lists_every_public_name_once():
    assert len(set(LISTED_NAMES)) == len(LISTED_NAMES)
    documented_names = {name.split(".")[0] for name in LISTED_NAMES}
    assert documented_names == set(tl.__all__) - MODULES_WITHOUT_ENTRY
    modules = {name for name in tl.__all__ if inspect.ismodule(getattr(tl, name))} - MODULES_WITHOUT_ENTRY
    assert {name for name in LISTED_NAMES if "." not in name} == set(tl.__all__) - MODULES_WITHOUT_ENTRY - modules


def test_the_page_lists_every_lab():
    assert {name for name in LISTED_NAMES if name.startswith("labs.")} == {f"labs.{name}" for name in tl.labs.__all__}


def documented_members():
    """Yield the name and the docstring of each function, class, method and property on the page."""
    for name in LISTED_NAMES:
        member = lookup(name)
        if inspect.isclass(member) or inspect.isroutine(member):
            yield name, inspect.getdoc(member)
        if inspect.isclass(member):
            public_members = ((key, value) for key, value in vars(member).items() if not key.startswith("_"))
            for key, value in public_members:
                if (inspect.isroutine(value) or isinstance(value, property)) and value.__doc__:
                    yield f"{name}.{key}", inspect.getdoc(value)


DOCSTRINGS = dict(documented_members())


@pytest.mark.parametrize("name", DOCSTRINGS)
def test_a_docstring_renders_without_a_warning(name):
    """A warning would stop the build of the book; this test finds the warning within seconds, without a build."""
    for role in ("func", "class", "meth", "attr", "mod"):
        roles.register_local_role(role, roles.GenericRole(role, roles.nodes.literal))
    text = str(NumpyDocstring(DOCSTRINGS[name], Config(**SETTINGS)))
    warnings = io.StringIO()
    publish_doctree(text, settings_overrides={"warning_stream": warnings})
    assert warnings.getvalue() == ""


def test_an_entry_includes_the_docstring_or_shows_the_value():
    text = entry("scaled_dot_product_attention")
    assert text.startswith("### `scaled_dot_product_attention`\n")
    assert ".. autofunction:: transformer_lab.scaled_dot_product_attention\n" in text
    assert "   :members:\n" in entry("RMSNorm")
    assert "ModelShape(family='gpt2'" in entry("GPT2")


def test_a_function_is_linked_to_the_sections_that_name_it():
    number, link = sections_with("softmax")[0]
    chapter, _, section = link.partition("#")
    assert (CHAPTERS / chapter).exists() and section.startswith(number.replace(".", ""))
    assert all(link.startswith(f"{int(number.split('.')[0]):02}_") for number, link, _ in chapter_sections())
    assert sections_with("no_such_name") == []
