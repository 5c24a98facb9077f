"""A pytest plugin that makes nbval compare the stored outputs with the cached execution (``executed.py``).

    PYTHONPATH=tools python -m pytest -p nbval_replay --nbval --nbval-current-env chapters

nbval collects, compares and reports as usual, but its kernel is replaced by a kernel that answers from the cache.
"""

from pathlib import Path
from queue import Empty

import nbval.plugin

from executed import executed_notebook


class ReplayedKernel:
    """A replacement for nbval's kernel: it answers nbval's calls with the messages of the cached execution."""

    def __init__(self, notebook):
        self.cells = iter(notebook.cells)
        self.messages = []

    def execute_cell_input(self, source, allow_stdin=None):
        cell = next((cell for cell in self.cells if cell.source == source), None)
        if cell is None:
            raise RuntimeError(
                "The cached execution is of a different notebook, or nbval requested its cells in a different order."
            )
        self.messages.append(("status", {"execution_state": "busy"}))
        self.messages += [(output.output_type, output) for output in cell.outputs]
        self.messages.append(("status", {"execution_state": "idle"}))
        return cell.execution_count

    def get_message(self, stream, timeout=None):
        if not self.messages:
            raise Empty
        kind, content = self.messages.pop(0)
        return {"msg_type": kind, "content": content, "parent_header": {"msg_id": self.message_id}}

    def await_reply(self, msg_id, timeout=None):
        self.message_id = msg_id

    def is_alive(self):
        return True

    def stop(self):
        pass


def replay(file):
    """Set up the tests of one notebook, in place of ``IPyNbFile.setup``."""
    notebook, _ = executed_notebook(Path(file.fspath))
    file.kernel = ReplayedKernel(notebook)
    file.setup_sanitize_files()


def pytest_configure():
    nbval.plugin.IPyNbFile.setup = replay
