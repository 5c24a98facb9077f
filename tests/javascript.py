"""Runs a lab's script in a JavaScript engine, without a browser, so that its arithmetic can be asked anything."""

import json

import torch
from py_mini_racer import MiniRacer


class Engine:
    """The script of one kind of lab, loaded: ``engine("softmax", [0, 1])`` calls its function ``softmax``."""

    def __init__(self, lab):
        self._context = MiniRacer()
        self._context.eval(lab._esm.replace("export default { render };", ""))

    def __call__(self, function, *arguments):
        given = ", ".join(json.dumps(argument) for argument in arguments)
        text = self._context.eval(f"JSON.stringify({function}({given}))")
        return None if text is None else json.loads(text)


def agree(found, expected, rtol=1e-6, atol=1e-6):
    """Demand that the engine's numbers are these, in float64 as JavaScript's are, and of the same shape."""
    found = torch.as_tensor(found, dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=rtol, atol=atol)
