"""A process with clients: it sends what they do to the owners, and republishes what was lost.

The PRS paper's frontends pass a loss on to their clients, and those publish once more. Here the
clients live in the frontend, so it knows what they have published.
"""

import asyncio
from collections.abc import Coroutine
from random import Random, SystemRandom
from typing import Any

import msgspec

from tenure import KeyRange, Lookup
from tenure.base.keys import hashed_key
from tenure.base.ranges import WHOLE
from tenure.cli.demo.leash import Leash, tell
from tenure.cli.demo.operations import Operations, PresenceRequest, operations
from tenure.cli.demo.presence import Status
from tenure.cli.demo.reports import POOL, Crowd, FrontendOrders, FrontendReport

REPORT_SECONDS = 0.2
THINKS_SECONDS = 0.8
"""How long a client does nothing between two things that it does, on average."""
READS_OF_TEN = 6
CROWDED_OF_TEN = 8
"""Reads, where there are users whom nearly everybody looks up: half of all requests."""
TEXTS = ("online", "busy", "away", "in a call", "out to lunch", "be right back")


class ConnectedUser:
    """A user who is connected here, with what they have published."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.key = hashed_key(user)
        self.published: Status | None = None
        self.answered = 0
        """The newest version whose publication was answered."""
        self.is_lost = False
        """Whether the user's presence is to be republished, and that has not begun yet."""
        self.publishing = asyncio.Lock()

    @property
    def has_come(self) -> bool:
        """The first publication was answered."""
        return self.answered > 0

    def next_status(self, random: Random) -> Status:
        """Return the status that the user publishes next."""
        version = self.published.version + 1 if self.published else 1
        return Status(random.choice(TEXTS), version)


class Frontend:
    """The clients of this process, and what they do."""

    def __init__(self, orders: FrontendOrders, does: Operations) -> None:
        self._operations = does
        self._users = orders.users
        self._random = SystemRandom()
        self._clients = {user: ConnectedUser(user) for user in orders.clients}
        self._crowd: tuple[str, ...] = ()
        """The users that nearly everybody looks up."""
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._found_nothing = 0
        self._losses_signalled = 0
        self._ranges_lost = 0
        self._keys_republished = 0
        self._contact_lost = 0
        self._lost: set[str] = set()
        """The users whose state was lost once."""

    def start(self) -> None:
        """Have all clients come."""
        for client in self._clients.values():
            self._start(self._live(client))

    def look_at(self, crowd: Crowd) -> None:
        """Make nearly everybody look up the users of `crowd` from now on."""
        self._crowd = crowd.users

    async def stop(self) -> None:
        """Begin nothing more, and wait for what is under way; then look once whether what every
        client has published is there. All of it has deadlines.
        """
        self._stopping.set()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.gather(*map(self._read, self._clients))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        task.result()

    # --- what clients do ---

    async def _live(self, client: ConnectedUser) -> None:
        while not client.has_come and not self._stopping.is_set():
            await self._publish(client)
        while not await self._stopped_within(self._random.expovariate(1 / THINKS_SECONDS)):
            if self._random.randrange(10) < READS_OF_TEN:
                await self._read(self._random.choice(self._looked_at()))
            else:
                await self._publish(client)

    def _looked_at(self) -> tuple[str, ...]:
        is_crowded = self._crowd and self._random.randrange(10) < CROWDED_OF_TEN
        return self._crowd if is_crowded else self._users

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True

    async def _read(self, user: str) -> None:
        client = self._clients.get(user)
        answered = client.answered if client else 0
        done = await self._operations.do(PresenceRequest(user))
        if done is None:
            return
        if done.status is None:
            self._found_nothing += 1
        if (done.status.version if done.status else 0) < answered:
            self._lost.add(user)

    async def _publish(self, client: ConnectedUser) -> None:
        async with client.publishing:
            # Kept before it is sent: what was sent may be stored, whether or not it is answered.
            client.published = client.next_status(self._random)
            if await self._operations.do(PresenceRequest(client.user, client.published)):
                client.answered = client.published.version

    # --- what is done about losses ---

    def on_loss(self, ranges: tuple[KeyRange, ...]) -> None:
        """The state of `ranges` is gone: whatever was published there is published again."""
        self._losses_signalled += 1
        self._ranges_lost += len(ranges)
        self._contact_lost += WHOLE in ranges
        for client in self._clients.values():
            is_meant = any(client.key in each for each in ranges)
            if is_meant and client.published and not client.is_lost:
                client.is_lost = True
                self._lost.add(client.user)
                self._start(self._republish(client))

    async def _republish(self, client: ConnectedUser) -> None:
        async with client.publishing:
            assert client.published is not None
            client.is_lost = False  # a loss that is signalled from here on is another one
            if self._stopping.is_set():
                return
            done = await self._operations.do(PresenceRequest(client.user, client.published))
            self._keys_republished += done is not None

    def report(self) -> FrontendReport:
        """How it is."""
        return FrontendReport(
            has_published=all(client.has_come for client in self._clients.values()),
            found_nothing=self._found_nothing,
            losses_signalled=self._losses_signalled,
            ranges_lost=self._ranges_lost,
            keys_republished=self._keys_republished,
            contact_lost=self._contact_lost,
            keys_lost=len(self._lost),
            **vars(self._operations.counts),
        )


async def be_frontend(leash: Leash) -> None:
    """Serve clients until told to stop."""
    orders = msgspec.json.decode(await leash.orders(), type=FrontendOrders)

    def on_loss(ranges: tuple[KeyRange, ...]) -> None:
        frontend.on_loss(ranges)

    async with (
        Lookup(orders.manager, pool=POOL, on_loss=on_loss) as lookup,
        operations(lookup, orders.hold_ns) as does,
    ):
        frontend = Frontend(orders, does)
        frontend.start()
        looking = asyncio.create_task(_look_where_told(leash, frontend))
        while not await leash.stopped_within(REPORT_SECONDS):
            tell(frontend.report())
            if looking.done():
                looking.result()
        looking.cancel()
        await frontend.stop()
    tell(frontend.report())


async def _look_where_told(leash: Leash, frontend: Frontend) -> None:
    while True:
        frontend.look_at(msgspec.json.decode(await leash.orders(), type=Crowd))
