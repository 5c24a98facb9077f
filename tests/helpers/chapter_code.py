"""Execute the definitions of a chapter, so that a test can train its models from seeds other than the chapter's."""

import ast
import os
import re

import nbformat

import notebooks

# The chapters use one seed, each push tests one more seed, and `make claims` tests all ten.
ALL_SEEDS = "TRANSFORMER_LAB_ALL_SEEDS" in os.environ
SEEDS = range(10) if ALL_SEEDS else range(1, 2)


def definitions(source, constants):
    """Yield the imports, functions and classes of a cell, and assignments to names in capitals or in ``constants``."""
    for node in ast.parse(source).body:
        names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
        is_constant = (
            isinstance(node, ast.Assign) and names and all(name.isupper() or name in constants for name in names)
        )
        if is_constant or isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
            yield node


def chapter_code(stem, constants=(), sections=None):
    """Return what a chapter's cells define, as a dict; with ``sections``, only the set-up and these sections count."""
    namespace, section = {}, None
    for cell in nbformat.read(notebooks.ROOT / "chapters" / f"{stem}.ipynb", 4).cells:
        if cell.cell_type == "markdown":
            headings = re.findall(r"(?m)^## (\d+\.\d+) ", cell.source)
            section = headings[-1] if headings else section
        elif section is None or sections is None or section in sections:
            nodes = list(definitions(cell.source, {"device", "generator", "randn", *constants}))
            exec(compile(ast.Module(nodes, []), stem, "exec"), namespace)
    return namespace
