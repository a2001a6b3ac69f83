"""Why an Owner or a Lookup cannot be used, said at no cost to those that can.

`check` and `find` have no instruction to spare for asking "am I closed, or in a forked child?".
They read a table, and index a list in it. So an object that cannot be used gets a table whose list
raises.
"""

from collections.abc import Callable
from typing import NoReturn, TypeVar, cast

from tenure.errors import ClosedError, ForkedError, TenureError

T = TypeVar("T")


class _Raising:
    def __init__(self, make: Callable[[], TenureError]) -> None:
        self._make = make

    def __getitem__(self, index: object) -> NoReturn:
        raise self._make()

    def __iter__(self) -> NoReturn:
        raise self._make()


def raising_list(make: Callable[[], TenureError], kind: type[T]) -> list[T]:
    """A stand-in for a list of `kind` that raises what `make` makes whenever it is read."""
    del kind
    return cast("list[T]", _Raising(make))


def not_entered(what: str) -> ClosedError:
    """The error for an Owner or a Lookup before it is entered."""
    return ClosedError(
        f"this {what} is not entered yet: use it inside `async with {what}(...)` or "
        f"`with {what}(...)`"
    )


def left(what: str) -> ClosedError:
    """The error for one that was left."""
    return ClosedError(f"this {what} was left; make another to use the pool again")


def forked(what: str) -> ForkedError:
    """The error for one in a child process."""
    return ForkedError(
        f"this {what} belongs to the parent process: fork copied it without its thread, so nothing "
        "keeps it up here. Make another after the fork, or start processes with the method "
        "'spawn' or 'forkserver'"
    )
