"""Run a lab's script, or a script of the book, in a JavaScript engine, without a browser."""

import json

import torch
from hypothesis import settings
from hypothesis import strategies as st
from py_mini_racer import MiniRacer


class Engine:
    """An engine with a lab's script, or with a text: ``engine("softmax", [0, 1])`` calls the script's ``softmax``."""

    def __init__(self, script):
        self._context = MiniRacer()
        self._context.eval(getattr(script, "_esm", script).replace("export default { render };", ""))

    def __call__(self, function, *arguments):
        given = ", ".join(json.dumps(argument) for argument in arguments)
        text = self._context.eval(f"JSON.stringify({function}({given}))")
        return json.loads(text) if isinstance(text, str) else None  # undefined cannot be serialized as JSON


def agree(actual, expected, rtol=1e-6, atol=1e-6):
    """Require that the engine's numbers have the expected shape and are close to ``expected``, which is float64."""
    actual = torch.as_tensor(actual, dtype=torch.float64)
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol)


# Any text that a reader may type into a field must give a value or an error in words, and never an exception.
ANYTHING = st.text(max_size=30) | st.text("()[]., :−-x0123456789evw\n", max_size=20)
many = settings(max_examples=300, deadline=None, derandomize=True)


def read(engine, parse, text, *options):
    """Parse ``text`` as a field does; require an error in words, or a value that writing and parsing preserve."""
    result = engine(parse, text, *options)
    if "error" in result:
        assert result.keys() == {"error"} and len(result["error"]) > 10
        return None
    again = engine(parse, result["text"], *options)
    assert again == result
    return result
