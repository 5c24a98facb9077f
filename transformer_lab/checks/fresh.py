"""Whether a function is right when it is called alone, and wrong after other calls: it keeps something between them."""

import contextlib
import functools
import types
from copy import deepcopy

import numpy as np
import torch

from .observe import Timed, observe

CACHE = type(functools.lru_cache(len))
COPIED = (torch.Tensor, torch.nn.Module, np.ndarray)


class Fresh:
    """A copy of a function as it is now, except that what it may have stored in earlier calls is gone.

    Dicts, lists and sets that its code names are empty in the copy, and so are its caches. Modules, tensors and objects
    of the learner's own classes are copied as they are.
    """

    def __init__(self, function):
        self.home = getattr(function, "__globals__", {})  # the session's variables
        self.space = dict(self.home)  # those of the copy
        self.copies = {}  # id of an original -> its copy
        self.stores = []  # (name, copy, whether the original held anything)
        self.function = Timed(self._copied("", function))
        self.before = dict(self.space)

    def is_right(self, exercise, probe, expected):
        """Whether the copy does what is expected with a probe, and nothing that was emptied may be the reason."""
        right = observe(exercise, self.function, probe).same(expected)
        return right and not any(held and not _holds(store) for _, store, held in self.stores)

    def used(self):
        """Return the names of what the copy has stored something in."""
        filled = [name for name, store, _ in self.stores if name and _holds(store)]
        bound = [name for name, value in self.space.items() if value is not self.before.get(name)]
        return list(dict.fromkeys(filled + bound))

    def _copied(self, name, value):
        if id(value) not in self.copies:
            self.copies[id(value)] = value  # until the copy is there: a function may call itself
            with contextlib.suppress(Exception):  # what cannot be copied stays as it is
                self._copy(name, value)
        return self.copies[id(value)]

    def _copy(self, name, value):
        if isinstance(value, types.FunctionType) and value.__globals__ is self.home:
            self._copy_function(name, value)
        elif isinstance(value, CACHE):
            wrapped = self._copied(name, value.__wrapped__)
            self._keep(name, value, functools.lru_cache(**value.cache_parameters())(wrapped))
        elif isinstance(value, (dict, list, set)):
            empty = value.copy()
            empty.clear()
            self._keep(name, value, empty)
        elif isinstance(value, COPIED) or type(value).__module__ == self.home.get("__name__"):
            self.copies[id(value)] = deepcopy(value)

    def _keep(self, name, value, copy):
        self.copies[id(value)] = copy
        self.stores.append((name, copy, _holds(value)))

    def _copy_function(self, name, function):
        copy = types.FunctionType(function.__code__, self.space, function.__name__, closure=_cells(function))
        self.copies[id(function)] = copy
        for each in _names(function.__code__) & self.home.keys():
            self.space[each] = self._copied(each, self.home[each])
        for each, old, new in zip(function.__code__.co_freevars, function.__closure__ or (), copy.__closure__ or ()):
            with contextlib.suppress(ValueError):  # nothing is in it yet
                new.cell_contents = self._copied(each, old.cell_contents)
        arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
        defaults = function.__defaults__ or ()
        copy.__defaults__ = tuple(map(self._copied, arguments[len(arguments) - len(defaults) :], defaults))
        copy.__kwdefaults__ = {each: self._copied(each, it) for each, it in (function.__kwdefaults__ or {}).items()}
        for each, it in vars(function).items():
            setattr(copy, each, self._copied(f"{function.__name__}.{each}", it))


def _cells(function):
    return function.__closure__ and tuple(types.CellType() for _ in function.__closure__)


def _names(code):
    """Return the global names that a function's code uses, those of the functions within it too."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return {*code.co_names}.union(*map(_names, inner))


def _holds(store):
    return store.cache_info().currsize > 0 if isinstance(store, CACHE) else len(store) > 0
