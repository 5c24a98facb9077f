"""Stores the labs of executed notebooks, and restores them in notebooks that cannot run without published models.

``NAME.labs.json`` next to the notebook contains the labs' states: attention weights and tokens, but no weights of the
models themselves. `make notebooks` writes the file if the models are installed. The labs' code is not stored: the
current code is used.
"""

import json
import re
from importlib import import_module

LAB = re.compile(r"(\w*Lab|Practice)\(")  # beginning of a lab's text
WIDGET = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
VERSION = {"version_major": 2, "version_minor": 0}
WIDGET_TRAITS = ("layout", "tabbable", "tooltip")  # no lab's script reads these traits or those that begin with _
SOURCE = (
    "What the labs of this notebook show: attention weights of all-MiniLM-L6-v2 and of SmolLM2-135M-Instruct, both "
    "under the Apache License 2.0, as the cells of the notebook compute them. Written by make notebooks."
)


def lab_outputs(notebook):
    """Return the outputs of a notebook that show a lab."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output for output in outputs if LAB.match(output.get("data", {}).get("text/plain", ""))]


def labs_file(path):
    """Return the file with the labs of the notebook ``path``."""
    return path.with_suffix(".labs.json")


def store_labs(notebook, path):
    """Write the states of an executed notebook's labs, in the order of the notebook."""
    models = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    states = [models[output.data[WIDGET]["model_id"]]["state"] for output in lab_outputs(notebook)]
    if not states:
        return
    labs = [{name: state[name] for name in sorted(state) if _is_stored(name, state)} for state in states]
    text = json.dumps({"source": SOURCE, "labs": labs}, indent=1, ensure_ascii=False)
    labs_file(path).write_text(f"{text}\n", "utf-8")


def _is_stored(name, state):
    excluded = (*WIDGET_TRAITS, *_class_of(state).constants)
    return name == "_anywidget_id" or (name[0] != "_" and name not in excluded)


def _class_of(state):
    module, _, name = state["_anywidget_id"].rpartition(".")
    return getattr(import_module(module), name)


def restore_labs(notebook, path):
    """Add the labs to a stored notebook: a view in each output that shows a lab, and the states of all labs."""
    outputs = lab_outputs(notebook)
    labs = json.loads(labs_file(path).read_text("utf-8"))["labs"] if outputs else []
    if len(labs) != len(outputs):
        raise ValueError(f"{labs_file(path).name} must hold {len(outputs)} labs, has {len(labs)}: run make notebooks")
    models = {}
    for number, (output, state) in enumerate(zip(outputs, labs), 1):
        lab = _class_of(state)
        code = {"_esm": str(lab._esm), "_css": str(lab._css), **lab.constants}
        models[f"stored{number}"] = {"model_name": "AnyModel", "model_module": "anywidget", "state": {**state, **code}}
        output.data[WIDGET] = {**VERSION, "model_id": f"stored{number}"}
    if models:
        notebook.metadata.widgets = {STATE: {**VERSION, "state": models}}
    return notebook
