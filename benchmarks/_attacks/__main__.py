"""Attack in one role, in a process of its own, until the input ends.

The first line of the input says where, and with which tokens: `Orders` as JSON. The last line of
the output says what was done: `Done` as JSON.
"""

import asyncio
import logging
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import msgspec

from benchmarks._attacks import neighbours
from benchmarks._attacks.attempt import Attempt, Family, Shown
from benchmarks._attacks.rivals import RivalManager
from benchmarks._attacks.roles import RIVAL, ROLES, Role
from benchmarks._manager import allow_many_files
from tenure.errors import TenureError

AGAIN_SECONDS = 0.1
"""The pause before a connection is made again: the attackers use the owners' CPU, too."""
REFUSED_SECONDS = 2.0
END_SECONDS = 10.0
NICENESS = 15
"""Other machines attack with processors of their own. Here they have what those that they attack
leave.
"""


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What an attacker is told."""

    targets: Mapping[str, Sequence[str]]
    tokens: Mapping[str, str]
    share: float = 1.0
    """How many connections it makes, of those that the families name."""
    rival_port: int = 0


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What an attacker has done."""

    made: Mapping[str, int]
    refused: Mapping[str, int]
    reached: Mapping[str, int] = {}
    """How often it has achieved what it was after, of what says so itself."""
    opened: Sequence[str]
    is_another_user: bool


class Attacker:
    """All attempts of one role."""

    def __init__(self, role: Role, orders: Orders) -> None:
        self._role = role
        self._orders = orders
        self.made: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.reached: Counter[str] = Counter()

    def attempts(self) -> list[Awaitable[None]]:
        """One for each connection, without end."""
        return [
            self._go_on(family, number)
            for family in self._role.families
            for number in range(max(1, int(family.connections * self._orders.share)))
            if family.at in self._orders.targets
        ]

    async def _go_on(self, family: Family, number: int) -> None:
        """One connection after another."""
        urls = self._orders.targets[family.at]
        token = self._orders.tokens.get(family.shows, "")
        manager = self._orders.targets["manager"][0]
        shows = Shown(token, manager, family.shows.rpartition(" ")[2])
        while True:
            reach = partial(self.reached.update, (family.by.__name__,))
            it = Attempt(urls[number % len(urls)], number, self._role.peer(number), shows, reach)
            await asyncio.sleep(await self._once(family.by, it))

    async def _once(self, by: Callable[[Attempt], Awaitable[None]], it: Attempt) -> float:
        """How long to wait after one attempt."""
        self.made[by.__name__] += 1
        try:
            with suppress(EOFError, TimeoutError, asyncio.LimitOverrunError, ConnectionResetError):
                await by(it)
        except (OSError, TenureError):
            self.refused[by.__name__] += 1
            return REFUSED_SECONDS
        finally:
            it.abort()
        return AGAIN_SECONDS


async def attack(name: str, orders: Orders, made: Counter[str]) -> Done:
    """Attack until the input ends."""
    is_another = neighbours.become_another_user()
    ROLES[name].prepare()
    attacker = Attacker(ROLES[name], orders)
    tasks = [asyncio.ensure_future(each) for each in attacker.attempts()]
    rival = await RivalManager(made).open(orders.rival_port) if name == RIVAL else None
    print("begun", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for each in tasks:
        each.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=END_SECONDS)
    if rival is not None:
        await rival.cleanup()
    return Done(
        made=attacker.made + made,
        refused=attacker.refused,
        reached=attacker.reached,
        opened=sorted(set(neighbours.opened)),
        is_another_user=is_another,
    )


def main(name: str) -> None:
    """Be the attacker of that role."""
    allow_many_files()
    os.nice(NICENESS)
    logging.disable()  # a server that lies is let go of in the middle of its answers
    orders = msgspec.json.decode(sys.stdin.readline(), type=Orders)
    done = asyncio.run(attack(name, orders, Counter()))
    print(msgspec.json.encode(done).decode(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
