"""A whole cluster in your test's process: managers, owners and lookups, without a socket.

    async with InProcessCluster(["rooms"]) as cluster:
        async with cluster.owner(on_grant=...) as owner, cluster.lookup() as lookup:
            await owner.ready()

The owners and lookups are the public ones, and their machines and the managers' are those of
production. Only their surroundings are different: messages pass in memory, though serialised, and
all engines share one thread beside your test's. With the preset `test` a term is 1.2 s.

With a clock that is turned by hand nothing waits, and nothing depends on the machine's speed:

    clock = TurnedClock()
    async with InProcessCluster(["rooms"], clock=clock) as cluster:
        async with cluster.owner() as owner:
            await cluster.turn(1)           # the pool's ranges are granted
            cluster.kill_manager()
            await cluster.turn(2)           # and their term runs out
            assert owner.check("room-42") is None
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from random import Random
from threading import Thread
from typing import TYPE_CHECKING, Any, Self, TypedDict, TypeVar, Unpack

from tenure.base.instants import Instant, in_seconds
from tenure.client.callbacks import Callback
from tenure.client.lookup import Lookup
from tenure.client.options import OwnerOptions
from tenure.client.owner import Owner
from tenure.errors import ConfigurationError
from tenure.journals.memory import MemoryJournal
from tenure.protocol.lease.answers import Answer, Impossible
from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.leader.events import CreatePool, Question
from tenure.protocol.lease.leader.manager import ManagerConfig
from tenure.protocol.lease.messages import Process
from tenure.protocol.lease.records import State
from tenure.protocol.lease.timing import DEFAULT, TEST, Timing
from tenure.runtime.clock import Clock, LoopTimers, Timers, boot_clock
from tenure.runtime.loops import SharedLoop
from tenure.testing.clock import TurnedClock, come_to_rest
from tenure.testing.manager import MemoryManager
from tenure.transport.channels import Channels
from tenure.transport.contract import Role, Transport
from tenure.transport.credentials import NOTHING
from tenure.transport.doors import Door
from tenure.transport.faulty import Faults, FaultyTransport
from tenure.transport.in_process import MemoryDoor, MemoryNetwork
from tenure.transport.in_process_channels import MemoryChannelNetwork
from tenure.transport.pool_secret import PoolSecret
from tenure.wire.lease_records import LEASE_RECORDS

FIRST_WALL = 1_700_000_000.0
"""The wall time of a cluster when its clock says 0."""
if TYPE_CHECKING:
    from tenure.testing.programs import AppSource
    from tenure.testing.serving import ServedSite

NOWHERE = "127.0.0.1:0"
"""Channels within the process do not look at where they listen."""
M = TypeVar("M")
T = TypeVar("T")


class LookupOptions(TypedDict, total=False):
    """The arguments that `InProcessCluster.lookup` passes on to `Lookup`."""

    on_loss: Callback | None
    enter_timeout: float


class InProcessCluster:
    """Managers with one journal in memory, and the network to them. `async with`, or `with`.

    `pools` has names, for hashed pools, or CreatePool for others; first owners create further
    pools. `faults` treats the messages of all clients badly. All random draws come from `seed`.
    """

    def __init__(
        self,
        pools: Sequence[str | CreatePool] = (),
        *,
        managers: int = 1,
        timing: Timing = TEST,
        clock: TurnedClock | None = None,
        faults: Faults | None = None,
        seed: int = 0,
    ) -> None:
        if managers < 1:
            raise ConfigurationError(f"a cluster has at least one manager, not {managers}")
        self.pools = tuple(
            CreatePool(pool, "hashed") if isinstance(pool, str) else pool for pool in pools
        )
        self.urls = tuple(f"http://manager-{i + 1}.test:7400" for i in range(managers))
        self.timing = timing
        self.network = MemoryNetwork()
        self.channels = MemoryChannelNetwork()
        """The channels over which owners hand over state."""
        self.journal = MemoryJournal(LEASE_RECORDS, State(waited_out=True))
        self.clock: Clock = clock or boot_clock
        self._turned = clock
        self._faults = faults
        self._random = Random(seed)
        self._seed = seed
        self._managers: dict[str, MemoryManager] = {}
        self._addresses = 0
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="tenure cluster", daemon=True)

    # --- clients ---

    def owner(self, address: str = "", *, pool: str = "", **options: Unpack[OwnerOptions]) -> Owner:
        """An Owner of this cluster; of its first pool, and at an address of its own, by default."""
        self._addresses += 1
        where = address or f"http://owner-{self._addresses}.test"
        name = pool or self._first_pool()
        kinds = {each.pool: each.kind for each in self.pools}
        options.setdefault("kind", kinds.get(name, "hashed"))
        if options.get("hand_off") is not None:
            options.setdefault("hand_off_listen", NOWHERE)
        environment = ClusterEnvironment(self)
        return Owner(self.urls, pool=name, address=where, _environment=environment, **options)

    def lookup(self, *, pool: str = "", **options: Unpack[LookupOptions]) -> Lookup:
        """A Lookup of this cluster; of its first pool by default."""
        environment = ClusterEnvironment(self)
        name = pool or self._first_pool()
        return Lookup(self.urls, pool=name, _environment=environment, **options)

    def _first_pool(self) -> str:
        if not self.pools:
            raise ConfigurationError(
                "which pool? Name it with pool=, or give the cluster its pools when it is made"
            )
        return self.pools[0].pool

    # --- managers ---

    @property
    def leader(self) -> str | None:
        """The URL of the manager that leads."""
        leading = (url for url, manager in self._managers.items() if manager.leads.is_set())
        return next(leading, None)

    def kill_manager(self, url: str | None = None) -> str:
        """End a manager as kill -9 does; the one that leads by default. Its URL."""
        return self._now(self._kill(url))

    def stop_manager(self, url: str | None = None) -> str:
        """End a manager as SIGTERM does: it resigns. Its URL."""
        return self._now(self._stop(url))

    def start_manager(self, url: str) -> None:
        """Start a manager at `url` again, where none runs."""
        self._now(self._start(url))

    def crash(self, client: Owner | Lookup) -> None:
        """End an owner's or lookup's engine as kill -9 does: nothing is returned, nobody told."""
        gone = client._gone  # noqa: SLF001  # there is no public way to crash
        if gone is not None:
            gone.cancel()

    def ask(self, question: Question) -> Answer:
        """Ask the leading manager, as over the JSON API."""
        return self._now(self._ask(question))

    async def _kill(self, url: str | None) -> str:
        manager = self._managers.pop(url or self._leading())
        manager.kill()
        return manager.url

    async def _stop(self, url: str | None) -> str:
        manager = self._managers.pop(url or self._leading())
        await manager.stop()
        return manager.url

    def _leading(self) -> str:
        leader = self.leader
        if leader is None:
            raise ConfigurationError(f"no manager leads; there are {', '.join(self._managers)}")
        return leader

    async def _start(self, url: str) -> None:
        if url in self._managers:
            raise ConfigurationError(f"a manager runs at {url} already")
        config = ManagerConfig(url=url, timing=self.timing)
        manager = MemoryManager(
            config, self.journal, self.network, self.draw(), self.clock, self.timers()
        )
        self._managers[url] = manager
        manager.start()

    async def _ask(self, question: Question) -> Answer:
        return await self._managers[self._leading()].ask(question)

    def draw(self) -> Random:
        """A random source of its own for each caller."""
        return Random(self._random.getrandbits(64))

    @asynccontextmanager
    async def serve(self, app: "AppSource", *, processes: int = 2) -> "AsyncIterator[ServedSite]":
        """Serve an ASGI application in memory, in so many processes: `async with`.

        `app` is "module:name", imported once for each process, or a function that makes it. The
        site has managers and a clock of its own, of the preset `default`: as many managers as the
        cluster has. Raises ConfigurationError if there is no such application.
        """
        if processes < 1:
            raise ConfigurationError(f"a site has at least one process, not {processes}")
        from tenure.testing.serving import serve  # noqa: PLC0415  # it loads the simulator

        async with serve(
            app, processes=processes, managers=len(self.urls), timing=DEFAULT, seed=self._seed
        ) as site:
            yield site

    # --- time ---

    def timers(self) -> Timers:
        """Alarms by the cluster's clock."""
        return self._turned.alarm if self._turned else LoopTimers(self.clock)

    async def turn(self, duration_seconds: float) -> None:
        """Turn the clock, and let all that is due happen: messages, and callbacks in this loop.

        A callback that waits for something else than this cluster is not waited for.
        """
        turned = self._need_turned()
        until = turned.after(duration_seconds)
        await self._rest_here()
        while await asyncio.wrap_future(self._submit(self._step(turned, until))):
            await self._rest_here()
        await self._rest_here()

    async def _rest_here(self) -> None:
        """Both loops, and this one again: callbacks here may have something to say there."""
        for _ in range(2):
            await asyncio.wrap_future(self._submit(self._rest()))
            await come_to_rest()

    def turn_blocking(self, duration_seconds: float) -> None:
        """Turn the clock as `turn` does, in tests without an event loop. Callbacks run in threads
        of their own: wait for what they do.
        """
        turned = self._need_turned()
        until = turned.after(duration_seconds)
        self._now(self._rest())
        while self._now(self._step(turned, until)):
            pass

    def _need_turned(self) -> TurnedClock:
        if self._turned is None:
            raise ConfigurationError(
                "this cluster goes by the real clock; make it with clock=TurnedClock() to turn it"
            )
        return self._turned

    async def _step(self, turned: TurnedClock, until: Instant) -> bool:
        went_on = turned.step(until)
        await self._rest()
        return went_on

    async def _rest(self) -> None:
        await come_to_rest(lambda: self.network.carried + self.channels.carried)

    # --- from beginning to end ---

    async def _begin(self) -> None:
        for url in self.urls:
            await self._start(url)
        first = self._managers[self.urls[0]]
        await first.leads.wait()
        for pool in self.pools:
            answer = await first.ask(pool)
            if isinstance(answer, Impossible):
                raise ConfigurationError(f"pool {pool.pool!r}: {answer.why}")

    async def _end(self) -> None:
        for manager in self._managers.values():
            manager.kill()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _now(self, work: Coroutine[Any, Any, T]) -> T:
        return self._submit(work).result()

    def _finish(self) -> None:
        self._now(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def runner(self) -> SharedLoop:
        """The loop in which the engines run."""
        return SharedLoop(self._loop)

    def transport(self, role: Role[M]) -> Transport[M]:
        """A client's way to the managers."""
        plain = self.network.transport(role)
        if self._faults is None:
            return plain
        return FaultyTransport(plain, self._faults, self.draw(), self.clock, self.timers())

    def __enter__(self) -> Self:
        self._thread.start()
        self._now(self._begin())
        return self

    def __exit__(self, *_: object) -> None:
        self._finish()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self._finish()


class ClusterEnvironment:
    """The environment of the engines of one client."""

    def __init__(self, cluster: InProcessCluster) -> None:
        self.clock = cluster.clock
        self.runner = cluster.runner
        self.managers: tuple[str, ...] = ()  # each client names its own
        self.credentials = NOTHING
        self.secret = PoolSecret()
        self._cluster = cluster
        self._random = cluster.draw()

    def begins(self, engine: object) -> None:
        """See `Environment`. Its machine is not watched."""

    def timers(self) -> Timers:
        return self._cluster.timers()

    def wall(self) -> float:
        """See `Environment`. It goes as the cluster's clock does."""
        return FIRST_WALL + in_seconds(self.clock())

    def random(self) -> Random:
        return self._random

    def transport(self, role: Role[M]) -> Transport[M]:
        return self._cluster.transport(role)

    def has_successor(self, waited: float) -> bool:
        """See `Environment`. Nobody can be seen here."""
        return False

    def own_process(self) -> Process | None:
        """See `Environment`. All owners here live in one process: none can attest for another."""
        return None

    def look(self, suspect: Process) -> Sight:
        return Sight(seen_from=None)

    def channels(self) -> Channels:
        return self._cluster.channels.channels()

    def door(self, path: str) -> Door:
        return MemoryDoor(self._cluster.network)
