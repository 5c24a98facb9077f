"""Checks the form of the labs' and the book's scripts, and the types in their comments: biome checks neither.

``labs/lab.py`` relies on the rules of form when it joins the files of a lab line by line, without a parser. TypeScript,
which npm installs into .venv once, checks the types. If node is missing or npm cannot reach its registry, a line says
that the types are not checked; with ``TRANSFORMER_LAB_REQUIRE_NODE`` set, this is an error.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TYPESCRIPT = "7.0.2"
MAX_LINE = 120

COMMENT = re.compile(r" *(//|/\*\*|\*)")
# The beginnings that are allowed for a line without indentation: a definition, an import, the lab itself, a comment, a
# closing bracket.
UNINDENTED_LINE = re.compile(
    r'(export )?(const|let|class|(async )?function) \w|import \{[^}]*(\} from "\./\w+\.js";)?$'
    r"|export default \{ render \};$|//|/\*\*| \*|[)}\]]"
)


def complaints(text, in_lab=True):
    """Return the faults in a script's form: pairs of a line number and a sentence."""
    faults = []
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_LINE:
            faults.append((number, f"a line must have at most {MAX_LINE} characters, got {len(line)}"))
        if in_lab:
            faults += [(number, sentence) for breaks, sentence in RULES if breaks(line)]
    return faults


def _splits_a_template(line):
    return not COMMENT.match(line) and line.replace('"`"', "").count("`") % 2


def _is_top_level_code(line):
    return line[:1].strip() and not UNINDENTED_LINE.match(line)


RULES = (
    (_splits_a_template, "a template literal must end on its line, since lab.py drops indentation and lines of //"),
    (_is_top_level_code, "outside of functions there must be only imports and definitions that lab.py knows"),
)


def check_form():
    """Print the faults in the scripts' form; return whether there are none."""
    labs = sorted((ROOT / "transformer_lab" / "labs").glob("*.js"))
    other_scripts = sorted((ROOT / "book").glob("*.js")) + sorted((ROOT / "tests").rglob("*.js"))
    faults = [
        f"{path.relative_to(ROOT)}:{number}: {sentence}"
        for path in labs + other_scripts
        for number, sentence in complaints(path.read_text("utf-8"), path in labs)
    ]
    print(*faults, sep="\n", end="\n" * bool(faults))
    return not faults


def check_types():
    """Print TypeScript's complaints; return whether there are none."""
    folder = ROOT / ".venv" / f"typescript-{TYPESCRIPT}"
    tsc = folder / "node_modules" / ".bin" / "tsc"
    options = ["--no-save", "--silent", "--fetch-timeout=30000", "--fetch-retries=1"]  # offline, npm gives up soon
    install = ["npm", "install", *options, "--prefix", folder, f"typescript@{TYPESCRIPT}"]
    has_node = bool(shutil.which("node") and shutil.which("npm"))
    if has_node and not tsc.exists():
        subprocess.run(install, capture_output=True)
    if has_node and tsc.exists():
        return subprocess.run([tsc], cwd=ROOT).returncode == 0
    reason = "npm could not install TypeScript" if has_node else "this machine has no node"
    print(f"The types of the scripts are not checked: {reason}.")
    return not os.environ.get("TRANSFORMER_LAB_REQUIRE_NODE")


if __name__ == "__main__":
    sys.exit(not (check_form() & check_types()))
