"""Code that all labs share: scripts and styles, tensor traits, the repr, and the validation of settings."""

import inspect
import operator
import re
from pathlib import Path
from typing import ClassVar

import anywidget
import torch
import traitlets

from ..arguments import did_you_mean, format_value, is_number

_FOLDER = Path(__file__).parent
_SHARED = ("maths", "words", "colours", "ui", "grid", "address", "frame", "paint")
# When files are joined, this pattern removes exports, types, comments, and imports between the files.
# tools/script_rules.py ensures that a pattern is enough for this task.
_REMOVED_WHEN_JOINED = re.compile(
    r'^import [^"]*"\./\w+\.js";\n|^export (?!default)|^ */\*\*(?:(?!\*/).)*\*/\n|^ *//[^\n]*\n',
    re.DOTALL | re.MULTILINE,
)
_LEADING_WHITESPACE = re.compile(r"^\s+", re.MULTILINE)  # indentation and empty lines
# Shown in place of a live widget: before a notebook has run, after it is reopened without widget state, or on GitHub.
_FALLBACK_HTML = "<p>▶ <em>Run all cells to see a live figure here.</em></p>"
_DEFINITION_START = r"^(?:const|let|class|(?:async )?function) "
_DEFINITION = re.compile(rf"{_DEFINITION_START}(\w+).*?(?={_DEFINITION_START}|\Z)", re.DOTALL | re.MULTILINE)


def script(*names):
    """Return a lab's script for the browser as one module: the shared definitions that it uses, then its own files."""
    lab_code = _join(names)
    return _LEADING_WHITESPACE.sub("", "".join(_used_definitions(lab_code, _join(_SHARED))) + lab_code)


def _join(names):
    code = "\n".join((_FOLDER / f"{name}.js").read_text("utf-8") for name in names)
    return _REMOVED_WHEN_JOINED.sub("", code)


def _used_definitions(lab_code, shared_code):
    """Return the definitions in ``shared_code`` that ``lab_code`` uses, directly or through other definitions."""
    used, previous = [], None
    while used != previous:
        previous, names = used, set(re.findall(r"\w+", lab_code + "".join(used)))
        used = [definition[0] for definition in _DEFINITION.finditer(shared_code) if definition[1] in names]
    return used


def style(name):
    """Return the style sheet of lab ``name``: the shared rules, followed by the lab's own rules."""
    return "\n".join((_FOLDER / f"{file}.css").read_text("utf-8") for file in ("lab", name))


class Lab(anywidget.AnyWidget):
    """A live figure: an ipywidget that the browser draws without Python.

    Python prepares the numbers and stores the reader's settings. All interaction happens in the browser, so a lab works
    in a published page as well as in a notebook.
    """

    repr_traits = ()
    """The names of the traits in the lab's repr."""
    groups = ()
    """The names of the groups of controls that can be shown or hidden."""
    constants: ClassVar[dict] = {}
    """Synchronized traits that have the same value in all labs of a kind; stored notebooks leave them out."""

    controls = traitlets.List(traitlets.Unicode()).tag(sync=True)

    _ipython_display_ = None  # with the method of ipywidgets 7, IPython would ignore the MIME bundle below

    def __new__(cls, *args, **settings):
        prefixes = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        names = [
            prefixes.get(parameter.kind, "") + parameter.name
            for parameter in inspect.signature(cls).parameters.values()
        ]
        for name in settings:
            if name not in names and not names[-1].startswith("**"):
                suggestion = did_you_mean(name, names) or f"; it has {', '.join(names)}"
                raise TypeError(f"{cls.__name__} has no argument {name!r}{suggestion}")
        return super().__new__(cls, *args, **settings)

    def __init__(self, *, controls=None, **settings):
        settings["controls"] = list(self.groups) if controls is None else as_strings("controls", controls)
        try:
            super().__init__(**settings)
        except traitlets.TraitError as error:
            for name, trait in self.traits().items():
                if f"'{name}' trait" in str(error):
                    raise TypeError(
                        f"{name} must be {_expected_values(trait)}, got {format_value(settings[name])}"
                    ) from None
            raise

    @traitlets.validate("controls")
    def _check_controls(self, proposal):
        for name in proposal.value:
            as_option("controls", name, self.groups)
        return proposal.value

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:  # a widget without a view has no MIME bundle
            return None
        data, metadata = bundle
        return {**data, "text/html": _FALLBACK_HTML}, metadata

    def __repr__(self):
        settings = ", ".join(f"{name}={_printable(getattr(self, name))!r}" for name in self.repr_traits)
        return f"{type(self).__name__}({settings})"


def _printable(value):
    """Convert tensors and lists to tuples, and round floats to four places, for a reproducible repr."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return tuple(_printable(item) for item in value)
    return round(value, 4) if isinstance(value, float) else value


def _expected_values(trait):
    """Describe, for an error message, the values that a trait accepts."""
    if isinstance(trait, traitlets.List):
        return {traitlets.Int: "a list of integers", traitlets.Unicode: "a list of strings"}[type(trait._trait)]
    descriptions = {traitlets.Int: "an integer", traitlets.Float: "a number", traitlets.Bool: "True or False"}
    return descriptions.get(type(trait), "a string")


def tensor_trait():
    """Return a trait that holds a float32 tensor, and is serialized as a list."""
    return traitlets.Instance(torch.Tensor).tag(
        sync=True,
        to_json=lambda x, _: x.numpy().astype(str).astype(float).tolist(),  # 1.6, not 1.600000023841858
        from_json=lambda x, _: torch.tensor(x, dtype=torch.float32),  # JavaScript writes 1.0 as 1
    )


def as_tensor(name, x, axes, min_shape, max_shape, max_abs=None):
    """Return a copy of ``x`` as a float32 tensor, or raise an error.

    Each size in the shape must be between the corresponding sizes in ``min_shape`` and ``max_shape``; error messages
    write the shape as ``axes``. All values must be from ``-max_abs`` to ``max_abs``, or finite if ``max_abs`` is None.
    """
    try:
        x = torch.as_tensor(x, dtype=torch.float32).detach().cpu().clone()
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{name} must be a tensor or sequences of numbers, got {format_value(x)}") from None
    shape = tuple(x.shape)
    sizes_and_limits = zip(min_shape, shape, max_shape)
    if len(shape) != len(min_shape) or any(not least <= size <= most for least, size, most in sizes_and_limits):
        sizes = "" if min_shape == max_shape else f", from {min_shape} to {max_shape}"
        raise ValueError(f"{name} must have shape {axes}{sizes}, got {shape}")
    valid = x.isfinite() if max_abs is None else x.abs() <= max_abs  # also false for NaN
    if not valid.all():
        values = "be finite" if max_abs is None else f"have values from {-max_abs:g} to {max_abs:g}"
        raise ValueError(f"{name} must {values}, got {x[~valid][0].item():g}")
    return x


def as_option(name, value, options):
    """Return ``value`` if it is one of the options; otherwise raise an error that lists them."""
    if any(isinstance(value, type(option)) and value == option for option in options):
        return value
    text_options = [option for option in options if isinstance(option, str)]
    suggestion = did_you_mean(value, text_options) if isinstance(value, str) else ""
    listed = f"the {len(options)} valid values" if suggestion and len(options) > 12 else ", ".join(map(repr, options))
    raise ValueError(f"{name} must be one of {listed}, got {format_value(value)}{suggestion}")


def as_number(name, value, minimum, maximum):
    """Return ``value`` if it is a number in this range; otherwise raise an error that names the range."""
    if not is_number(value):
        raise TypeError(f"{name} must be a number, got {format_value(value)}")
    if not minimum <= value <= maximum:  # also false for NaN
        raise ValueError(f"{name} must be from {minimum} to {maximum}, got {value}")
    return value


def as_integer(name, value, minimum, maximum):
    """Return ``value`` as an int if it is an integer in this range; otherwise raise an error."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {format_value(value)}")
    return as_number(name, number, minimum, maximum)


def as_strings(name, value):
    """Return ``value`` as a list of strings, with a text split at its spaces, or raise an error."""
    strings = value.split() if isinstance(value, str) else value
    if not isinstance(strings, (list, tuple)) or not all(isinstance(item, str) for item in strings):
        raise TypeError(f"{name} must be a text or a list of strings, got {format_value(value)}")
    return list(strings)
