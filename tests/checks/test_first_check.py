"""The first check of a session is fast: it imports no large package that torch imports lazily."""

from run_python import run_python

# The answer is wrong on purpose: only a wrong answer is compared with every known mistake of the exercise.
FIRST_CHECK = """
import sys
import transformer_lab as tl

def broadcast_shape(a, b):
    return tuple(map(max, zip(a, b)))

modules_before = set(sys.modules)
assert tl.checks.broadcast_shape(broadcast_shape).status == "incorrect"
imported = {name.split(".")[0] for name in sys.modules.keys() - modules_before}
print("imported:", sorted(imported & {"sympy", "mpmath", "networkx", "scipy", "pandas", "matplotlib", "IPython"}))
"""


def test_the_first_check_imports_no_large_package():
    assert run_python(FIRST_CHECK).splitlines()[-1] == "imported: []"
