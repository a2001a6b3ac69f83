"""Removes from a store what has ended, and the rows of keys that have no value.

Nobody may ask again for a value that has ended, and its row would stay for ever. So the owner of a
key removes it when its time has come: it learns the ends in a range when it gains the range, and of
each value that it loads or keeps.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tenure.base.keys import UserKey
from tenure.base.ranges import KeyRange
from tenure.client.guard import Guards
from tenure.errors import Busy, StoreAway, StoreFailed, TenureError
from tenure.owned_state.kept_values import KeptValues
from tenure.owned_state.stored_turn import StoredTurn
from tenure.runtime.agenda import Agenda
from tenure.runtime.clock import LoopTimers, boot_clock

LOOK_SECONDS = 10.0
"""Seconds between two looks at what has been gained, and at what may be forgotten."""
AT_ONCE = 32
"""How many values are removed at a time. Millions may have ended while nobody was here, and turns
of the application share the store with this.
"""


class EndedValues:
    """What has ended among the values of one OwnedState; in the loop of its store."""

    def __init__(
        self,
        values: KeptValues,
        guards: Guards,
        sweep: Callable[[UserKey], StoredTurn[Any]],
    ) -> None:
        """`sweep` makes a turn that removes a value that has ended."""
        self._values = values
        self._guards = guards
        self._sweep = sweep
        self._known: frozenset[tuple[KeyRange, int]] = frozenset()
        self._agenda: Agenda[UserKey] = Agenda(
            boot_clock, values.wall, LoopTimers(boot_clock), self._remove, AT_ONCE
        )
        values.on_kept = self._agenda.arm

    async def run(self) -> None:
        """Do this until it is cancelled."""
        try:
            while True:
                with suppress(TenureError):  # the store has said that it is away
                    await self._look()
                    await self._values.tidy()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            await self._agenda.close()

    async def _look(self) -> None:
        """Learn the ends in what was gained since the last look."""
        held = [(each.range, each.number) for each in self._guards.board.leases()]
        gained = [each[0] for each in held if each not in self._known]
        if gained:
            for key, at in await self._values.store.due_within(gained):
                self._agenda.arm(key, at)
        self._known = frozenset(held)

    async def _remove(self, key: UserKey) -> None:
        try:
            async with self._sweep(key) as turn:
                if turn.ends_at is not None:  # the store, or an index, has told of an earlier end
                    self._agenda.arm(key, turn.ends_at)
        except (Busy, StoreAway, StoreFailed):
            self._agenda.later(key)
        except TenureError:  # another owner has the key, and removes it
            pass
