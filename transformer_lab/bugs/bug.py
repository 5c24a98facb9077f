"""A `Bug` records what was wrong and where the bug was reported, and builds a small model with or without the bug."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .small_model import SmallModel, seeded

BUGS: dict[str, "Bug"] = {}  # bugs by name, in the order in which the course presents them


@dataclass(frozen=True)
class Bug:
    """A published bug, rebuilt in our own code.

    ``arguments(broken)`` returns the arguments of `transformer_lab.audit` for the small model, which has the bug if
    ``broken`` is True, and is repaired otherwise. ``found_by`` is the audit property that distinguishes the two models;
    ``section`` is the section of the course that explains the mechanism.
    """

    name: str
    title: str
    description: str  # what is wrong
    repository: str
    number: int
    date: str
    symptoms: str  # what people notice, and search for
    story: str  # how the bug was noticed, and how long it existed if that is known
    repair: str
    family: str  # the module that defines the bug
    section: str
    found_by: str
    build: Callable[[bool], dict[str, Any]]

    @property
    def thread(self) -> str:
        return f"{self.repository}#{self.number}"

    @property
    def link(self) -> str:
        return f"https://github.com/{self.repository}/issues/{self.number}"

    def arguments(self, broken: bool = True) -> dict[str, Any]:
        with seeded(0):
            return self.build(broken)


def published(title: str, repository: str, number: int, **details: str) -> Callable:
    """Register a function that builds a model with a published bug; the function's docstring describes the bug."""

    def register(build):
        name, family = build.__name__, build.__module__.rpartition(".")[2]
        BUGS[name] = Bug(
            name=name, title=title, description=build.__doc__, repository=repository, number=number, family=family,
            build=build, **details,
        )  # fmt: skip
        return build

    return register


def choose_model(broken: bool, Mistake: type[SmallModel], *sizes: int, **options: Any) -> SmallModel:
    """Return the model with the mistake, or without it."""
    return (Mistake if broken else SmallModel)(*sizes, **options)
