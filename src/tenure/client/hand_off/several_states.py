"""The states of an owner that has several: each has its own part of every range.

A range moves with all of them or with none: their chunks follow one another, and each chunk names
its state. States have names rather than an order, so that owners of two versions of a program agree
on them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from tenure.base.keys import PoolKind
from tenure.base.ranges import KeyRange
from tenure.client.guard import Guards
from tenure.client.hand_off.handler import (
    HandOffHandler,
    Mark,
    OwnersState,
    check_handler,
    exported_by,
    result_of,
    settling,
)
from tenure.errors import ConfigurationError

MOST_NAME_BYTES = 255
"""The length of a name is one byte of a chunk."""


class SeveralStates(OwnersState):
    """Handlers by name, as one."""

    def __init__(self, states: Mapping[str, HandOffHandler]) -> None:
        self._states = dict(states)

    async def export_range(
        self, key_range: KeyRange, since: Mark | None
    ) -> tuple[Mark, AsyncIterator[bytes]]:
        marks: dict[str, Mark] = {}
        parts: list[tuple[bytes, AsyncIterator[bytes]]] = []
        for name, state in self._states.items():
            known = None if since is None else since[name]
            marks[name], chunks = await exported_by(state, key_range, known)
            said = name.encode()
            parts.append((bytes((len(said),)) + said, chunks))
        return marks, _one_after_another(parts)

    async def import_chunk(self, key_range: KeyRange, chunk: bytes) -> None:
        end = 1 + chunk[0]
        name = chunk[1:end].decode(errors="replace")
        if name not in self._states:
            raise ValueError(
                f"a chunk is for the state {name!r}, and this owner has {', '.join(self._states)}: "
                "owners that hand over to each other have states of the same names in hand_off"
            )
        await result_of(self._states[name].import_chunk(key_range, chunk[end:]))

    async def discard_range(self, key_range: KeyRange) -> None:
        for state in self._states.values():
            await result_of(state.discard_range(key_range))

    async def settle_range(self, key_range: KeyRange, deadline: float) -> None:
        settles = [each for each in map(settling, self._states.values()) if each is not None]
        results = [each.settle_range(key_range, deadline) for each in settles]
        await asyncio.gather(*map(result_of, results))

    async def resume_range(self, key_range: KeyRange) -> None:
        for state in map(settling, self._states.values()):
            if state is not None:
                await result_of(state.resume_range(key_range))

    def belong_to(self, owner: str, kind: PoolKind, has_ended: Callable[[], bool]) -> None:
        for state in self._of_owner():
            state.belong_to(owner, kind, has_ended)

    def guard_with(self, guards: Guards) -> None:
        for state in self._of_owner():
            state.guard_with(guards)

    async def open_store(self, pool: str, name: str = "") -> None:  # theirs count
        for of, state in self._states.items():
            if isinstance(state, OwnersState):
                await state.open_store(pool, of)

    async def close_store(self) -> None:
        for state in self._of_owner():
            await state.close_store()

    def _of_owner(self) -> list[OwnersState]:
        return [each for each in self._states.values() if isinstance(each, OwnersState)]


async def _one_after_another(
    parts: list[tuple[bytes, AsyncIterator[bytes]]],
) -> AsyncIterator[bytes]:
    for tag, chunks in parts:
        async with aclosing(chunks):  # type: ignore[type-var]  # those of `exported_by` can
            async for chunk in chunks:
                yield tag + chunk


def one_handler(given: Any) -> HandOffHandler | None:  # noqa: ANN401  # as the user gave it
    """Return the handler that has all the state of an owner. Raises ConfigurationError if it cannot
    hand over.
    """
    if isinstance(given, list | tuple | set | frozenset):
        raise ConfigurationError(
            f"several states have names, by which their owners agree on them: pass hand_off as a "
            f'dict, like hand_off={{"carts": carts, "users": users}}, and not as a '
            f"{type(given).__name__}"
        )
    if not isinstance(given, dict):
        if given is not None:
            check_handler(given)
        return given  # type: ignore[no-any-return]
    if not given:
        raise ConfigurationError("hand_off is a dict without states; leave it out, or pass states")
    for name, state in given.items():
        if not (isinstance(name, str) and 0 < len(name.encode()) <= MOST_NAME_BYTES):
            raise ConfigurationError(
                f"a state in hand_off has the name {name!r}, where a str of 1 to {MOST_NAME_BYTES} "
                "bytes is wanted"
            )
        check_handler(state)
    if len({id(each) for each in given.values()}) < len(given):
        raise ConfigurationError(f"hand_off has one state under two names: {', '.join(given)}")
    return SeveralStates(given)
