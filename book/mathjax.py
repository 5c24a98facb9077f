"""Serves MathJax from the book: its script and fonts, and the small TeX extensions that a page may ask for.

The package sphinx-mathjax-offline brings all 24 MB of MathJax; a page can load about one of them. A page only fetches
the script; page.js runs it when there is time.
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


def fetch_only(app, pagename, templatename, context, doctree):
    """Where a page has formulas, put a preload in place of Sphinx's script; elsewhere nothing.

    Sphinx loads MathJax also where only a page further down has a formula.
    """
    has_formulas = doctree and (doctree.next_node(nodes.math) or doctree.next_node(nodes.math_block))
    script = context["pathto"](f"_static/{app.config.mathjax_path}", 1)

    def wanted(file):
        if "mathjax" in str(file.filename):
            return False
        return has_formulas or "MathJax" not in file.attributes.get("body", "")

    context["script_files"] = [file for file in context["script_files"] if wanted(file)]
    if has_formulas:
        link = f'<link id="mathjax" rel="preload" as="script" fetchpriority="low" href="{script}" />'
        context["metatags"] = "\n".join([context.get("metatags", ""), link])


def setup(app):
    app.config.mathjax_path = "mathjax/tex-chtml.js"
    app.config.mathjax3_config = {
        "options": {"enableMenu": False},  # it offers what would load the other 23 MB
        "tex": {"packages": {"[-]": ["noundefined"]}},  # a misspelt command is an error that tests can see
    }
    app.connect("html-page-context", fetch_only, priority=600)
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True}
