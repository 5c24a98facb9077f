"""What every lab has in common: its scripts and its style, its tensors, its text, and its words for a wrong setting."""

import inspect
import operator
import re
from pathlib import Path

import anywidget
import torch
import traitlets

from ..arguments import did_you_mean, is_number, shown

_FOLDER = Path(__file__).parent
_SHARED = ("maths", "words", "colours", "ui", "grid", "address", "frame", "paint")
# What is there for those who edit: imports of the files from one another, exports, types, comments; and indentation.
# That this is enough, and no parser needed, tools/script_rules.py sees to.
_FOR_EDITORS = re.compile(
    r'^import [^"]*"\./\w+\.js";\n|^export (?!default)|^ */\*\*(?:(?!\*/).)*\*/\n|^ *//[^\n]*\n',
    re.DOTALL | re.MULTILINE,
)
_SPACE = re.compile(r"^\s+", re.MULTILINE)  # indentation, and lines with nothing else
# Shown where no widget lives: before a notebook has run, in one that is reopened without its state, on GitHub.
_WITHOUT_WIDGETS = "<p>▶ <em>Run all cells, and a live figure appears here.</em></p>"
_DEFINES = r"^(?:const|let|class|(?:async )?function) "
_DEFINITION = re.compile(rf"{_DEFINES}(\w+).*?(?={_DEFINES}|\Z)", re.DOTALL | re.MULTILINE)


def script(*names):
    """Return a lab's script for the browser, one module: what it uses of what labs share, then its own."""
    own = _read(names)
    return _SPACE.sub("", "".join(_used(own, _read(_SHARED))) + own)


def _read(names):
    text = "\n".join((_FOLDER / f"{name}.js").read_text("utf-8") for name in names)
    return _FOR_EDITORS.sub("", text)


def _used(own, shared):
    """The definitions of ``shared`` whose names stand in ``own``, or in another one that is used."""
    used, before = [], None
    while used != before:
        before, words = used, set(re.findall(r"\w+", own + "".join(used)))
        used = [definition[0] for definition in _DEFINITION.finditer(shared) if definition[1] in words]
    return used


def style(name):
    """Return the style sheet of lab ``name``: the shared one, then the lab's own."""
    return "\n".join((_FOLDER / f"{file}.css").read_text("utf-8") for file in ("lab", name))


class Lab(anywidget.AnyWidget):
    """A live figure: an ipywidget whose drawing needs no Python.

    Python prepares the numbers and keeps what the reader sets. Everything that a reader does happens in the browser, so
    a lab is as alive in a published page as in a notebook.
    """

    shown = ()
    """The traits that the lab's text form names."""
    groups = ()
    """The groups of controls that it can be shown with, or without."""

    controls = traitlets.List(traitlets.Unicode()).tag(sync=True)

    _ipython_display_ = None  # with that of ipywidgets 7, IPython would not ask for the MIME bundle below

    def __new__(cls, *args, **settings):
        stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        names = [stars.get(x.kind, "") + x.name for x in inspect.signature(cls).parameters.values()]
        for name in settings:
            if name not in names and not names[-1].startswith("**"):
                meant = did_you_mean(name, names) or f"; it has {', '.join(names)}"
                raise TypeError(f"{cls.__name__} has no argument {name!r}{meant}")
        return super().__new__(cls, *args, **settings)

    def __init__(self, *, controls=None, **settings):
        settings["controls"] = list(self.groups) if controls is None else strings("controls", controls)
        try:
            super().__init__(**settings)
        except traitlets.TraitError as error:
            for name, trait in self.traits().items():
                if f"'{name}' trait" in str(error):
                    raise TypeError(f"{name} must be {_rule(trait)}, got {shown(settings[name])}") from None
            raise

    @traitlets.validate("controls")
    def _check_controls(self, proposal):
        for name in proposal.value:
            one_of("controls", name, self.groups)
        return proposal.value

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:  # a widget without a view
            return None
        data, metadata = bundle
        return {**data, "text/html": _WITHOUT_WIDGETS}, metadata

    def __repr__(self):
        settings = ", ".join(f"{name}={_plain(getattr(self, name))!r}" for name in self.shown)
        return f"{type(self).__name__}({settings})"


def _plain(value):
    """Tensors and lists as tuples, numbers with four places: text that is the same in every run."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)
    return round(value, 4) if isinstance(value, float) else value


def _rule(trait):
    """What a trait holds, in words."""
    if isinstance(trait, traitlets.List):
        return {traitlets.Int: "a list of integers", traitlets.Unicode: "a list of strings"}[type(trait._trait)]
    one = {traitlets.Int: "an integer", traitlets.Float: "a number", traitlets.Bool: "True or False"}
    return one.get(type(trait), "a string")


def tensor_trait():
    """Return a trait that holds a float32 tensor, and travels as a list."""
    return traitlets.Instance(torch.Tensor).tag(
        sync=True,
        to_json=lambda x, _: x.numpy().astype(str).astype(float).tolist(),  # 1.6, not 1.600000023841858
        from_json=lambda x, _: torch.tensor(x, dtype=torch.float32),  # JavaScript writes 1.0 as 1
    )


def as_tensor(name, x, axes, least, most, reach=None):
    """Return ``x`` as a float32 tensor of its own, or raise an error that says what is wrong with it.

    Its shape is written ``axes``, and goes from ``least`` to ``most``; its values go from ``-reach`` to ``reach``, or
    are any numbers that are finite.
    """
    try:
        x = torch.as_tensor(x, dtype=torch.float32).detach().cpu().clone()
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{name} must be a tensor or sequences of numbers, got {shown(x)}") from None
    shape = tuple(x.shape)
    if len(shape) != len(least) or any(not a <= size <= b for a, size, b in zip(least, shape, most)):
        sizes = "" if least == most else f", from {least} to {most}"
        raise ValueError(f"{name} must have shape {axes}{sizes}, got {shape}")
    fits = x.isfinite() if reach is None else x.abs() <= reach  # also false for NaN
    if not fits.all():
        values = "be finite" if reach is None else f"have values from {-reach:g} to {reach:g}"
        raise ValueError(f"{name} must {values}, got {x[~fits][0].item():g}")
    return x


def one_of(name, found, options):
    """Return ``found``, or raise an error that lists the options."""
    if any(isinstance(found, type(option)) and found == option for option in options):
        return found
    words = [option for option in options if isinstance(option, str)]
    meant = did_you_mean(found, words) if isinstance(found, str) else ""
    listed = f"the {len(options)} that there are" if meant and len(options) > 12 else ", ".join(map(repr, options))
    raise ValueError(f"{name} must be one of {listed}, got {shown(found)}{meant}")


def between(name, found, least, most):
    """Return ``found``, or raise an error that says from where to where it goes."""
    if not is_number(found):
        raise TypeError(f"{name} must be a number, got {shown(found)}")
    if not least <= found <= most:  # also false for NaN
        raise ValueError(f"{name} must be from {least} to {most}, got {found}")
    return found


def whole(name, found, least, most):
    """Return ``found`` as an int, or raise an error that says what it is instead, or from where to where it goes."""
    try:
        number = operator.index(found)
    except TypeError:
        number = None
    if number is None or isinstance(found, bool):
        raise TypeError(f"{name} must be an integer, got {shown(found)}")
    return between(name, number, least, most)


def strings(name, found):
    """Return the strings as a list, a text split at its spaces; or raise an error that says what they are instead."""
    words = found.split() if isinstance(found, str) else found
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise TypeError(f"{name} must be a text or a list of strings, got {shown(found)}")
    return list(words)
