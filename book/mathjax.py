"""Serves MathJax from the book: its script and fonts, and the small TeX extensions that a page may ask for.

The package sphinx-mathjax-offline brings all 24 MB of MathJax; a page can load about one of them.
"""

from importlib.util import find_spec
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns

from docutils import nodes

SOURCE = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
FOLDERS = ("input/tex/extensions", "output/chtml/fonts/woff-v2")


def copy_mathjax(app, error):
    if error is None:
        target = Path(app.outdir, "_static", "mathjax")
        for folder in FOLDERS:
            copytree(SOURCE / folder, target / folder, ignore=ignore_patterns("all-packages.js"), dirs_exist_ok=True)
        copy2(SOURCE / "tex-chtml.js", target)


def leave_out(app, pagename, templatename, context, doctree):
    """Sphinx loads MathJax also where only a page further down has a formula."""
    if not (doctree and (doctree.next_node(nodes.math) or doctree.next_node(nodes.math_block))):
        context["script_files"] = [
            file for file in context["script_files"] if "mathjax" not in f"{file.filename}{file.attributes}".lower()
        ]


def setup(app):
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.config.mathjax3_config = {
        "options": {"enableMenu": False},  # it offers what would load the other 23 MB
        "tex": {"packages": {"[-]": ["noundefined"]}},  # a misspelt command is an error that tests can see
    }
    app.connect("html-page-context", leave_out, priority=600)
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True}
