"""The labs that a notebook shows, also of a notebook that cannot run here, since it reads published models.

``NAME.labs.json`` next to the notebook has their states: attention weights and tokens, and nothing of the models
themselves. `make notebooks` writes it where the models are installed. The labs' code is the current one.
"""

import json
import re
from importlib import import_module

LAB = re.compile(r"(\w*Lab|Practice)\(")  # how the text of a lab begins
WIDGET = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
VERSION = {"version_major": 2, "version_minor": 0}
OF_EVERY_WIDGET = ("layout", "tabbable", "tooltip")  # no lab's script reads these, nor names with an underscore
SOURCE = (
    "What the labs of this notebook show: attention weights of all-MiniLM-L6-v2 and of SmolLM2-135M-Instruct, both "
    "under the Apache License 2.0, as the cells of the notebook compute them. Written by make notebooks."
)


def shown(notebook):
    """Return the outputs that show a lab."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output for output in outputs if LAB.match(output.get("data", {}).get("text/plain", ""))]


def file_of(path):
    """Return the file with the labs of the notebook ``path``."""
    return path.with_suffix(".labs.json")


def keep(notebook, path):
    """Write the states of an executed notebook's labs, in their order."""
    models = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    states = [models[output.data[WIDGET]["model_id"]]["state"] for output in shown(notebook)]
    if not states:
        return
    labs = [{name: state[name] for name in sorted(state) if _is_own(name, state)} for state in states]
    written = json.dumps({"source": SOURCE, "labs": labs}, indent=1, ensure_ascii=False)
    file_of(path).write_text(f"{written}\n", "utf-8")


def _is_own(name, state):
    others = (*OF_EVERY_WIDGET, *_class_of(state).constants)
    return name == "_anywidget_id" or (name[0] != "_" and name not in others)


def _class_of(state):
    module, _, name = state["_anywidget_id"].rpartition(".")
    return getattr(import_module(module), name)


def restore_labs(notebook, path):
    """Give a stored notebook its labs: a view in each output that shows one, and their state."""
    outputs = shown(notebook)
    labs = json.loads(file_of(path).read_text("utf-8"))["labs"] if outputs else []
    if len(labs) != len(outputs):
        raise ValueError(f"{file_of(path).name} must hold {len(outputs)} labs, has {len(labs)}: run make notebooks")
    models = {}
    for number, (output, state) in enumerate(zip(outputs, labs), 1):
        lab = _class_of(state)
        code = {"_esm": str(lab._esm), "_css": str(lab._css), **lab.constants}
        models[f"stored{number}"] = {"model_name": "AnyModel", "model_module": "anywidget", "state": {**state, **code}}
        output.data[WIDGET] = {**VERSION, "model_id": f"stored{number}"}
    if models:
        notebook.metadata.widgets = {STATE: {**VERSION, "state": models}}
    return notebook
