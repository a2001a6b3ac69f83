"""Trouble: what goes wrong with the nodes of a ring while clients use it, drawn from a seed."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from random import Random

from lab.histories.outages import Spell
from lab.histories.ring import REPLICAS, NodeHost, Ring
from tenure.errors import TenureError

APART_SECONDS = 1.5
LASTS_SECONDS = (0.3, 1.0, 2.5, 6.0)
CHANGE_SECONDS = 40.0
"""How long a change of the ring may take before it is taken back."""
CLIENTS = 2
"""The number of the host of the clients."""
CALM_SECONDS, BAD_SECONDS = 20.0, 8.0
"""How long one node at most is in trouble, and how long two may be, in turn. Two leave half of the
rows without a quorum: clients mostly wait then.
"""
SETTLES_SECONDS = 1.0
"""How long the others may not know yet that a node takes part again."""
DISK_SECONDS = 2.5
"""When a node has seen that its disk has room again, and begun its next life."""


class Trouble:
    def __init__(self, ring: Ring, random: Random) -> None:
        self._ring = ring
        self._random = random
        self.counts: Counter[str] = Counter()
        self.story: list[tuple[float, str]] = []
        """What was done when, on the monotonic clock, as operations have it."""
        self.spells: list[Spell] = []
        self._began = time.monotonic()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changes = False
        self._kinds: list[Callable[[NodeHost], Awaitable[None]]] = [
            self._killed,
            self._killed,
            self._restarted,
            self._stopped,
            self._stopped,
        ]
        if ring.hosts.has_networks:
            self._kinds += [self._cut_from_a_node, self._cut_off, self._cut_from_clients]
        if ring.hosts.has_disks:
            self._kinds += [self._full]

    async def go_on(self) -> None:
        """Make trouble until cancelled."""
        while True:
            await asyncio.sleep(self._random.expovariate(1.0) * APART_SECONDS)
            if not self._changes and self._random.random() < 0.25:
                self._begin(self._ring_changes())
            free = [each for each in self._ring.nodes if not each.is_in_trouble]
            if len(self._ring.nodes) - len(free) < self._most_at_once() and free:
                self._begin(self._one(self._random.choice(free)))

    def _most_at_once(self) -> int:
        since = (time.monotonic() - self._began) % (CALM_SECONDS + BAD_SECONDS)
        return 1 if since < CALM_SECONDS else 2

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Wait until all is mended."""
        if self._tasks:
            await asyncio.gather(*self._tasks)

    async def _one(self, node: NodeHost) -> None:
        node.is_in_trouble = True
        began = time.monotonic_ns()
        try:
            await self._random.choice(self._kinds)(node)
            await self._ring.takes_part(node)
            await asyncio.sleep(SETTLES_SECONDS)
        finally:
            node.is_in_trouble = False
            self.spells.append(Spell(node.name, began, time.monotonic_ns()))

    def _tell(self, what: str, detail: str = "") -> None:
        self.counts[what] += 1
        self.story.append((time.monotonic(), f"{what} {detail}".strip()))

    async def _a_while(self) -> None:
        await asyncio.sleep(self._random.choice(LASTS_SECONDS) * (0.5 + self._random.random()))

    # --- processes ---

    async def _killed(self, node: NodeHost) -> None:
        self._tell("killed", node.name)
        await self._ring.kill(node)
        await self._a_while()
        await self._start(node)

    async def _restarted(self, node: NodeHost) -> None:
        self._tell("restarted", node.name)
        await self._ring.kill(node)
        await self._start(node)

    async def _start(self, node: NodeHost) -> None:
        if node in self._ring.nodes:  # it may have been removed meanwhile
            await self._ring.start_node(node)

    async def _stopped(self, node: NodeHost) -> None:
        self._tell("stopped", node.name)
        node.signal(signal.SIGSTOP)
        try:
            await self._a_while()
        finally:
            node.signal(signal.SIGCONT)

    # --- networks and disks ---

    async def _cut_from_a_node(self, node: NodeHost) -> None:
        other = self._random.choice([each for each in self._ring.nodes if each is not node])
        self._tell("cut", f"{node.name} from {other.name}")
        await self._cut(node, other.number)

    async def _cut_off(self, node: NodeHost) -> None:
        self._tell("cut off", node.name)
        others = [each.number for each in self._ring.nodes if each is not node]
        await self._cut(node, *others)

    async def _cut_from_clients(self, node: NodeHost) -> None:
        self._tell("cut from clients", node.name)
        await self._cut(node, CLIENTS)

    async def _cut(self, node: NodeHost, *others: int) -> None:
        for other in others:
            self._ring.hosts.cut(node.number, other)
        try:
            await self._a_while()
        finally:
            for other in others:
                self._ring.hosts.mend(node.number, other)

    async def _full(self, node: NodeHost) -> None:
        self._tell("disk full", node.name)
        await asyncio.to_thread(self._ring.hosts.fill, node.disk)
        try:
            await self._a_while()
        finally:
            self._ring.hosts.empty(node.disk)
        await asyncio.sleep(DISK_SECONDS)
        if node.has_ended:
            self._tell("ended with a full disk", node.name)
            await self._start(node)

    # --- the ring ---

    async def _ring_changes(self) -> None:
        self._changes = True
        try:
            await self._ring_change()
        except (TenureError, TimeoutError) as error:
            self._tell("change refused", str(error)[:80])
        finally:
            self._changes = False

    async def _ring_change(self) -> None:
        ring, random = self._ring, self._random
        old = random.choice(ring.nodes)
        if len(ring.nodes) > REPLICAS + 1 and random.random() < 0.5:
            self._tell("removing", old.name)
            await ring.steer("remove", node=old.name)
            await self._done(old)
            return
        new = ring.new_node()
        await ring.start_node(new)
        async with asyncio.timeout(CHANGE_SECONDS):
            while new.name not in {each.name for each in (await ring.read()).nodes}:  # noqa: ASYNC110 - it can only be asked
                await asyncio.sleep(0.2)
        if len(ring.nodes) <= REPLICAS + 1 or random.random() < 0.4:
            self._tell("adding", new.name)
            await ring.steer("add", node=new.name)
            await self._done(None)
        else:
            self._tell("replacing", f"{old.name} by {new.name}")
            await ring.steer("replace", node=old.name, by=new.name)
            await self._done(old)

    async def _done(self, old: NodeHost | None) -> None:
        try:
            async with asyncio.timeout(CHANGE_SECONDS):
                while (await self._ring.read()).change:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.3)
        except TimeoutError:
            self._tell("taken back")
            await self._ring.steer("take-back")
            return
        self._tell("changed")
        if old is not None:
            self._ring.nodes.remove(old)
            await self._ring.kill(old)
        self._ring.say_where()
