"""Runs notebooks in place and writes them in canonical form; with --check, only lists deviations from that form.

    python tools/notebooks.py                        all notebooks below chapters/
    python tools/notebooks.py --check
    python tools/notebooks.py 06 solutions/05        those that have one of these words in their path
    python tools/notebooks.py somewhere/else.ipynb   a file

The canonical form contains only data that is the same after every run on every machine: no widget views or states, no
times, no versions. Text, HTML and LaTeX outputs stay, since nbval compares them; pictures lose their metadata.
Cells that the book folds because of their tags are also folded in JupyterLab and Notebook 7. An error, a warning on
stderr or an object's address has no canonical form, and is refused.
"""

import argparse
import asyncio
import base64
import binascii
import hashlib
import os
import re
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

from notebook_labs import WIDGET, store_labs

ROOT = Path(__file__).resolve().parents[1]

INSTALL_MODELS = ".venv/bin/python -m transformer_lab.pretrained installs them"
GENERATED_FROM = "generated_from"  # metadata of assignments only: see assignments.py
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = ("mystnb", "nbgrader", "section", "tags")
# Metadata with which JupyterLab folds a part that the book folds or leaves out; one click opens the part.
FOLDED_PARTS = {
    "hide-input": "source_hidden",
    "remove-input": "source_hidden",
    "remove-cell": "source_hidden",
    "hide-output": "outputs_hidden",
}
MIMES = ("text/plain", "text/html", "text/latex", "text/markdown", "image/png", "image/svg+xml")
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+|\b0x7[0-9a-fA-F]{9,}")
OVERWRITTEN_LINE = re.compile(r"[^\n]*\r(?=[^\n])")
MEASURED_NUMBER = re.compile(r"[\d.,]+(\s*(ns|µs|us|ms|s)\b)?")


def all_notebooks(root=ROOT):
    """Return the paths of all notebooks: chapters, assignments and solutions."""
    return sorted(path for path in root.glob("chapters/**/*.ipynb") if ".ipynb_checkpoints" not in path.parts)


def is_chapter(path):
    """Whether a notebook is a chapter; assignments, solutions and the front page are not chapters."""
    return path.parent.name == "chapters" and path.name[0].isdigit()


def chapters(root=ROOT):
    """Return the paths of the chapters in order."""
    return [path for path in all_notebooks(root) if is_chapter(path)]


def reads_models(path):
    """Whether a notebook reads published models."""
    return bool(re.search(r"pretrained\.(minilm|smollm2)\(", path.read_text("utf-8")))


def lacks_models(path):
    """Whether a notebook reads published models whose packages are not installed here, so that it cannot run."""
    return reads_models(path) and not models_are_installed()


def models_are_installed():
    pins = (ROOT / "transformer_lab" / "pretrained.txt").read_text("utf-8")
    try:
        return all(metadata.distribution(name) for name in re.findall(r"(?m)^([\w-]+)==", pins))
    except metadata.PackageNotFoundError:
        return False


def select_paths(words, paths):
    """Return the ``paths`` whose part below the repository contains one of the ``words``, or all if there are no words.

    A word may also be the path of any file.
    """
    matches = []
    for word in words:
        matching_paths = [path for path in paths if word in path.relative_to(ROOT).as_posix()]
        if not matching_paths and not Path(word).is_file():
            sys.exit(f"There is no notebook that has {word} in its path.")
        matches += matching_paths or [Path(word).resolve()]
    return sorted(set(matches)) if words else paths


# Canonical form


def canonical(notebook):
    """Return the notebook in canonical form, as a copy."""
    notebook = deepcopy(notebook)
    kept_metadata = {key: notebook.metadata[key] for key in [GENERATED_FROM] if key in notebook.metadata}
    notebook.metadata = {**kept_metadata, **deepcopy(METADATA)}
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    ids, count = set(), 0
    for cell in notebook.cells:
        cell.id = _new_id(cell, ids)
        ids.add(cell.id)
        cell.metadata = {key: cell.metadata[key] for key in CELL_METADATA if cell.metadata.get(key)}
        if folded := {FOLDED_PARTS[tag]: True for tag in cell.metadata.get("tags", []) if tag in FOLDED_PARTS}:
            cell.metadata["jupyter"] = folded
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            cell.outputs = [_clean(output, count) for output in _merge_streams(cell.outputs)]
    return nbformat.from_dict(notebook)


def _new_id(cell, used_ids):
    """Return the cell's id if it is unique among the cells so far, and otherwise an id made from the cell's text."""
    new, salt = cell.get("id"), 0
    while not new or new in used_ids:
        new = hashlib.sha256(f"{cell.cell_type}\n{cell.source}\n{salt}".encode()).hexdigest()[:8]
        salt += 1
    return new


def _merge_streams(outputs):
    """Return the outputs with consecutive streams joined, since the kernel splits streams at random.

    Only the last state of an overwritten line stays, as on a screen.
    """
    merged = []
    for output in outputs:
        last = merged[-1] if merged else {}
        if output.output_type == "stream" and last.get("name") == output.name:
            last.text += output.text
        else:
            merged.append(output)
    for output in merged:
        if output.output_type == "stream":
            output.text = OVERWRITTEN_LINE.sub("", output.text)
    return merged


def _clean(output, count):
    if output.output_type == "execute_result":
        output.execution_count = count
    if "data" in output:
        output.data.pop(WIDGET, None)
        output.metadata = {key: value for key, value in output.metadata.items() if key in output.data}
        if "image/png" in output.data:
            output.data["image/png"] = _without_comments(output.data["image/png"])
    return output


def _without_comments(png):
    """Return the picture without its text chunks, into which matplotlib writes its version."""
    try:
        data = base64.b64decode(png)
        chunks, offset = [data[:8]], 8
        while offset < len(data):
            (size,) = struct.unpack_from(">I", data, offset)
            if data[offset + 4 : offset + 8] not in (b"tEXt", b"zTXt", b"iTXt", b"tIME"):
                chunks.append(data[offset : offset + 12 + size])
            offset += 12 + size
    except (binascii.Error, struct.error):
        return png
    return base64.b64encode(b"".join(chunks)).decode()


def text(notebook):
    """Return a notebook as the text of a file."""
    return nbformat.writes(notebook, indent=1, ensure_ascii=False).rstrip("\n") + "\n"


def faults(notebook):
    """Yield a sentence for each difference from canonical form, cell by cell."""
    for number, cell in enumerate(notebook.cells, 1):
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                yield f"cell {number}: ends in {output.ename}: {output.evalue}"
            if output.get("name") == "stderr":
                yield f"cell {number}: prints to stderr: {output.text.strip()[:200]!r}"
            for mime in set(output.get("data", {})) - {*MIMES, WIDGET}:
                yield f"cell {number}: {mime} is not stored: output one of {', '.join(MIMES)}"
            for printed in (output.get("text"), output.get("data", {}).get("text/plain")):
                if printed and (match := ADDRESS.search(printed)):
                    yield f"cell {number}: an object's address, a different one in every run: {match[0]}"
        if cell.cell_type == "code" and not cell.source.strip():
            yield f"cell {number}: is empty"
    yield from _differences(notebook, canonical(notebook), [])


def _differences(actual, expected, key_path):
    if isinstance(expected, dict):
        for key in sorted({*actual, *expected}):
            if key not in expected:
                yield f"{_location(key_path)}{key} must not be stored"
            elif key not in actual:
                yield f"{_location(key_path)}{key} is missing"
            else:
                yield from _differences(actual[key], expected[key], [*key_path, key])
    elif isinstance(expected, list) and len(actual) == len(expected):
        for number, pair in enumerate(zip(actual, expected), 1):
            yield from _differences(*pair, [*key_path, number])
    elif actual != expected:
        yield f"{_location(key_path)}is {str(actual)[:60]!r}, must be {str(expected)[:60]!r}"


def _location(key_path):
    location = " ".join(str(part) for part in key_path)
    return location.replace("cells ", "cell ").replace("outputs ", "output ") + ": " if location else ""


def check(path):
    """Return a list of what is not in canonical form in the file ``path``."""
    stored_text = path.read_text("utf-8")
    try:
        notebook = nbformat.reads(stored_text, 4)
        nbformat.validate(notebook)
    except Exception as error:  # nbformat raises many kinds of errors for a broken file
        return [f"not a valid notebook: {str(error).splitlines()[0]}"]
    problems = list(faults(notebook))
    if not problems and stored_text != text(notebook):
        problems = ["not in canonical form: indent by 1, sort keys, write Unicode as it is, end with one newline"]
    return problems


# Running


def execute(notebook, folder, *, kernel="python3", env=os.environ, startup=""):
    """Run all cells of a notebook in ``folder``, as a reader would, and store the outputs in the notebook.

    ``startup`` is a line of code that the kernel runs before the first cell.
    """
    with TemporaryDirectory() as settings:  # without the user's IPython settings
        Path(settings, "profile_default", "startup").mkdir(parents=True)
        Path(settings, "profile_default", "startup", "startup.py").write_text(startup, "utf-8")
        client = NotebookClient(
            notebook,
            timeout=300,
            kernel_name=kernel,
            resources={"metadata": {"path": str(folder)}},
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
            record_timing=False,
        )
        # Texts are the same on any device; pictures have the same pixels everywhere only if the CPU computes their
        # numbers.
        env = {"TRANSFORMER_LAB_DEVICE": "cpu", **env, "IPYTHONDIR": settings}
        with ThreadPoolExecutor(1) as thread:  # with its own event loop: the caller's loop may be running
            thread.submit(lambda: asyncio.run(client.async_execute(env=env))).result()
    return notebook


def is_ignored(cell):
    """Whether the cell is marked so that nbval does not compare its outputs."""
    tags = cell.metadata.get("tags", [])
    return "nbval-ignore-output" in tags or re.search(r"^\s*#\s*NBVAL_IGNORE_OUTPUT", cell.source, re.MULTILINE)


def _keep_measurements(notebook, stored_notebook):
    """Restore the stored outputs of cells in which only measured times have changed."""
    stored = {cell.id: cell for cell in stored_notebook.cells if cell.cell_type == "code"}
    for cell in notebook.cells:
        if cell.cell_type == "code" and is_ignored(cell) and cell.get("id") in stored:
            stored_outputs = stored[cell.id].outputs
            if _without_measurements(stored_outputs) == _without_measurements(cell.outputs):
                cell.outputs = stored_outputs


def _without_measurements(outputs):
    """Return the outputs as text, with every number masked and pictures reduced to their type."""
    texts = []
    for output in outputs:
        texts += [output.get("text", ""), output.get("data", {}).get("text/plain", ""), *sorted(output.get("data", {}))]
    return re.sub(r"\s+", " ", MEASURED_NUMBER.sub("#", "\n".join(texts)))


def run(path):
    """Run the notebook ``path`` and write it in canonical form. Return ``(outcome, faults)``."""
    if lacks_models(path):
        return "failed", [f"reads published models: {INSTALL_MODELS}"]
    stored_text = path.read_text("utf-8")
    stored_notebook = canonical(nbformat.reads(stored_text, 4))
    notebook = deepcopy(stored_notebook)
    try:
        execute(notebook, path.parent)
    except Exception as error:  # an error of the notebook or its kernel is reported, and the file does not change
        return "failed", [describe_failure(notebook, error)]
    _keep_measurements(notebook, stored_notebook)
    executed, notebook = notebook, canonical(notebook)
    if problems := list(faults(notebook)):
        return "failed", problems
    if reads_models(path):
        store_labs(executed, path)
    if text(notebook) == stored_text:
        return "unchanged", []
    path.write_text(text(notebook), "utf-8")
    return "written", []


def describe_failure(notebook, error):
    """Return a text that names the failed cell, with the end of the traceback."""
    for number, cell in enumerate(notebook.cells, 1):
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output.traceback)).splitlines()
                return "\n".join([f"cell {number} failed:", "", cell.source, "", *trace[-8:]])
    return f"{type(error).__name__}: {error}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="list what is not in canonical form, run nothing")
    parser.add_argument("words", nargs="*", help="only notebooks that have one of these words in their path; or files")
    arguments = parser.parse_args()
    paths = select_paths(arguments.words, all_notebooks())

    def process(path):
        start = time.perf_counter()
        if arguments.check:
            outcome, problems = "checked", check(path)
        else:
            outcome, problems = run(path)
            print(f"{path.resolve().name:40} {time.perf_counter() - start:5.1f} s  {outcome}", flush=True)
        return [f"{path}: {problem}" for problem in problems]

    with ThreadPoolExecutor(1 if arguments.check else 2) as pool:
        all_problems = [problem for problems in pool.map(process, paths) for problem in problems]
    if all_problems:
        sys.exit("\n".join(all_problems))
    if arguments.check:
        print(f"{len(paths)} notebooks are in canonical form.")


if __name__ == "__main__":
    main()
