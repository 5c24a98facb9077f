"""Finds out whether a function fails only after other calls, because it stores something between calls."""

import contextlib
import functools
import types
from copy import deepcopy

import numpy as np
import torch

from .observe import Timed, observe

CACHE_TYPE = type(functools.lru_cache(len))
DEEPCOPIED_TYPES = (torch.Tensor, torch.nn.Module, np.ndarray)


class FreshCopy:
    """A copy of a function without the data that the function may have stored in earlier calls.

    Dicts, lists, sets and caches to which the function's code refers are empty in the copy. PyTorch modules, tensors,
    NumPy arrays, and objects of the learner's own classes keep their contents.
    """

    def __init__(self, function):
        self.namespace = getattr(function, "__globals__", {})  # the session's variables
        self.copied_namespace = dict(self.namespace)  # the variables of the copy
        self.copies = {}  # id of an original -> its copy
        self.stores = []  # (name, copy, whether the original contained anything)
        self.function = Timed(self._copy_of("", function))
        self.initial_namespace = dict(self.copied_namespace)

    def is_right(self, exercise, probe, expected):
        """Return whether the copy is right on a probe, and has refilled every store that the original had filled."""
        is_expected = observe(exercise, self.function, probe).same(expected)
        return is_expected and not any(was_filled and not _is_filled(store) for _, store, was_filled in self.stores)

    def filled_stores(self):
        """Return the names of the stores that the copy has filled."""
        filled_names = [name for name, store, _ in self.stores if name and _is_filled(store)]
        rebound_names = [
            name for name, value in self.copied_namespace.items() if value is not self.initial_namespace.get(name)
        ]
        return list(dict.fromkeys(filled_names + rebound_names))

    def _copy_of(self, name, value):
        if id(value) not in self.copies:
            self.copies[id(value)] = value  # a placeholder until the copy exists, since a function may call itself
            with contextlib.suppress(Exception):  # an object that cannot be copied is used as it is
                self._register_copy(name, value)
        return self.copies[id(value)]

    def _register_copy(self, name, value):
        if isinstance(value, types.FunctionType) and value.__globals__ is self.namespace:
            self._copy_function(name, value)
        elif isinstance(value, CACHE_TYPE):
            wrapped = self._copy_of(name, value.__wrapped__)
            self._add_store(name, value, functools.lru_cache(**value.cache_parameters())(wrapped))
        elif isinstance(value, (dict, list, set)):
            empty = value.copy()
            empty.clear()
            self._add_store(name, value, empty)
        elif isinstance(value, DEEPCOPIED_TYPES) or type(value).__module__ == self.namespace.get("__name__"):
            self.copies[id(value)] = deepcopy(value)

    def _add_store(self, name, value, copy):
        self.copies[id(value)] = copy
        self.stores.append((name, copy, _is_filled(value)))

    def _copy_function(self, name, function):
        copy = types.FunctionType(
            function.__code__, self.copied_namespace, function.__name__, closure=_empty_cells(function)
        )
        self.copies[id(function)] = copy
        for variable in _global_names(function.__code__) & self.namespace.keys():
            self.copied_namespace[variable] = self._copy_of(variable, self.namespace[variable])
        cells, copied_cells = function.__closure__ or (), copy.__closure__ or ()
        for variable, cell, copied_cell in zip(function.__code__.co_freevars, cells, copied_cells):
            with contextlib.suppress(ValueError):  # the closure's cell is still empty
                copied_cell.cell_contents = self._copy_of(variable, cell.cell_contents)
        arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
        defaults = function.__defaults__ or ()
        copy.__defaults__ = tuple(map(self._copy_of, arguments[len(arguments) - len(defaults) :], defaults))
        copy.__kwdefaults__ = {
            argument: self._copy_of(argument, value) for argument, value in (function.__kwdefaults__ or {}).items()
        }
        for attribute, value in vars(function).items():
            setattr(copy, attribute, self._copy_of(f"{function.__name__}.{attribute}", value))


def _empty_cells(function):
    return function.__closure__ and tuple(types.CellType() for _ in function.__closure__)


def _global_names(code):
    """Return the global names that a function's code or the code of its inner functions uses."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return {*code.co_names}.union(*map(_global_names, inner))


def _is_filled(store):
    return store.cache_info().currsize > 0 if isinstance(store, CACHE_TYPE) else len(store) > 0
