"""Run a lab's script, or a script of the book, in a JavaScript engine, without a browser."""

import json

import torch
from hypothesis import settings
from hypothesis import strategies as st
from py_mini_racer import MiniRacer


class Engine:
    """An engine that runs a lab's script, or a script as text; ``engine("f", [0, 1])`` calls its function ``f``."""

    def __init__(self, script):
        self._context = MiniRacer()
        self._context.eval(getattr(script, "_esm", script).replace("export default { render };", ""))

    def __call__(self, function, *arguments):
        arguments_json = ", ".join(json.dumps(argument) for argument in arguments)
        result_json = self._context.eval(f"JSON.stringify({function}({arguments_json}))")
        return json.loads(result_json) if isinstance(result_json, str) else None  # undefined has no JSON


def assert_close(actual, expected, rtol=1e-6, atol=1e-6):
    """Require that the engine's numbers have the expected shape and are close to ``expected``, which is float64."""
    actual = torch.as_tensor(actual, dtype=torch.float64)
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol)


# Any text that a reader may type into a field must give a value or an error in words, and never an exception.
ANY_TEXT = st.text(max_size=30) | st.text("()[]., :−-x0123456789evw\n", max_size=20)
many_examples = settings(max_examples=300, deadline=None, derandomize=True)


def parse_checked(engine, parse, text, *options):
    """Parse ``text`` as a field does; require an error in words, or a value whose text is parsed to the same value."""
    result = engine(parse, text, *options)
    if "error" in result:
        assert result.keys() == {"error"} and len(result["error"]) > 10
        return None
    reparsed = engine(parse, result["text"], *options)
    assert reparsed == result
    return result
