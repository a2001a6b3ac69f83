"""Canaries of any tier: the system with one rule left out and nothing else changed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TypeVar

from tenure.errors import ConfigurationError

Patch = tuple[type | ModuleType, str, object]
"""A class or module, the name of one of its attributes, and the value that replaces it."""


@dataclass(frozen=True)
class RuleLeftOut:
    """One rule left out. Each tier adds its own kinds."""

    name: str
    leaves_out: str = ""
    patches: tuple[Patch, ...] = ()

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Break the machines of this process for as long as this context lasts."""
        kept = [(owner, name, owner.__dict__[name]) for owner, name, _ in self.patches]
        for owner, name, replacement in self.patches:
            setattr(owner, name, replacement)
        try:
            yield
        finally:
            for owner, name, original in kept:
                setattr(owner, name, original)


C = TypeVar("C", bound=RuleLeftOut)


def called(name: str, shown: Sequence[C], others: Sequence[C] = ()) -> C:
    """The canary of that name. Raises ConfigurationError, which lists those that are `shown`."""
    for candidate in (*shown, *others):
        if candidate.name == name:
            return candidate
    there = ", ".join(candidate.name for candidate in shown)
    raise ConfigurationError(f"no canary is called {name!r}; there are {there}")
