"""Runs a lab's script in a JavaScript engine, without a browser, so that its arithmetic can be asked anything."""

import json

from py_mini_racer import MiniRacer

from transformer_lab.labs.lab import script


class Engine:
    """The script of one lab, loaded: ``engine("softmax", [0, 1])`` calls its function ``softmax``."""

    def __init__(self, lab):
        self._context = MiniRacer()
        self._context.eval(script(lab).replace("export default { render };", ""))

    def __call__(self, function, *arguments):
        given = ", ".join(json.dumps(argument) for argument in arguments)
        text = self._context.eval(f"JSON.stringify({function}({given}))")
        return None if text is None else json.loads(text)
