"""What every lab has in common: its scripts, its style, its name."""

from pathlib import Path

import anywidget

_FOLDER = Path(__file__).parent


def script(name):
    """Return the browser's script of lab ``name``: the shared arithmetic and drawing, then the lab's own."""
    return "\n".join((_FOLDER / file).read_text("utf-8") for file in ("maths.js", "ui.js", f"{name}.js"))


def style(name):
    """Return the style sheet of lab ``name``: the shared one, then the lab's own if it has one."""
    files = (_FOLDER / "lab.css", _FOLDER / f"{name}.css")
    return "\n".join(file.read_text("utf-8") for file in files if file.exists())


class Lab(anywidget.AnyWidget):
    """A live figure: an ipywidget whose drawing needs no Python.

    Python prepares the numbers and keeps what the reader sets. Everything that a reader does happens in the browser, so
    a lab is as alive in a published page as in a notebook.
    """

    shown = ()
    """The traits that the lab's text form names."""

    def __repr__(self):
        settings = ", ".join(f"{name}={_plain(getattr(self, name))!r}" for name in self.shown)
        return f"{type(self).__name__}({settings})"


def _plain(value):
    """Tensors and lists as tuples, numbers with four places: text that is the same in every run."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)
    return round(value, 4) if isinstance(value, float) else value
