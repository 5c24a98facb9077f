"""Finds unused parameters and discarded results in the source of a function, without running the function."""

import ast
import inspect
import re
import sys
import textwrap

import torch

# Tensor methods that do more than return a new tensor, as well as `sort` and `index`, which lists have, too.
METHODS_WITH_EFFECTS = {"backward", "index", "register_hook", "retain_grad", "sort"}


def parse(function):
    """Return a function's source as a tree; None if this is impossible, as for a lambda within a longer line."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    return tree if isinstance(tree, ast.FunctionDef) else None


def uses_name(function, name):
    """Return whether the code of a function, or of a function nested in it, uses this name."""
    codes = [code] if (code := getattr(inspect.unwrap(function), "__code__", None)) else []
    for code in codes:
        codes += [constant for constant in code.co_consts if inspect.iscode(constant)]
    return any(name in code.co_names for code in codes)


def find_syntax_error(name):
    """Return the `SyntaxError` of the newest cell that defines a function of this name; None if there is no such error.

    After such an error, the name still refers to the function from an older cell.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    cells = reversed(shell.user_ns.get("In", [])) if shell else ()
    newest = next((cell for cell in cells if re.search(rf"^def {name}\b", cell, re.MULTILINE)), None)
    if shell is None or newest is None:
        return None
    try:
        ast.parse(shell.transform_cell(newest))
    except SyntaxError as error:
        return error
    return None


def unused_parameters(tree):
    """Return the names of the parameters that the function never reads."""
    read_names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    parameters = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
    return [] if "locals" in read_names else [p.arg for p in parameters if p.arg not in read_names]


def discarded_result(tree):
    """Return, as text, the first line that computes a new tensor and does not store it; None if there is none."""
    lines = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    methods_with_effects = METHODS_WITH_EFFECTS | ({"add"} if any(map(_is_a_set, ast.walk(tree))) else set())
    discarded_lines = (
        line for line in lines if isinstance(line, ast.BinOp) or _returns_new_tensor(line, methods_with_effects)
    )
    return next(map(ast.unparse, discarded_lines), None)


def _is_a_set(node):
    """Return whether a node is a Python set: ``add`` changes a set, whereas a tensor's ``add`` returns a new tensor."""
    return isinstance(node, (ast.Set, ast.SetComp)) or (isinstance(node, ast.Name) and node.id == "set")


def _returns_new_tensor(node, methods_with_effects):
    """Return whether a node calls a method that returns a new tensor, such as ``x.transpose(1, 2)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, keyword_names = node.func.attr, {keyword.arg for keyword in node.keywords}
    return (
        hasattr(torch.Tensor, name)
        and not name.endswith("_")
        and name not in methods_with_effects
        and "out" not in keyword_names
    )
