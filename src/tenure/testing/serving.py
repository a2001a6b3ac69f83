"""A site: an application served by several processes, in memory, with a test beside it.

Nothing goes wrong unless the test says so. The processes run in a simulated world without faults;
its clock goes on only while the test waits for the site, so nothing depends on how fast the machine
is, and an hour takes no longer than the events in it.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from tenure.base.instants import seconds
from tenure.base.keys import Key, UserKey, key_function
from tenure.errors import ConfigurationError
from tenure.protocol.lease.leader.events import QuestionAsked
from tenure.protocol.lease.steering_events import Freeze, PinKey, SteeringCommand, Unfreeze
from tenure.protocol.lease.timing import Timing
from tenure.sim.app.processes import AppProcess
from tenure.sim.app.world import AppTrial, AppWorld
from tenure.testing.fakes import in_place
from tenure.testing.judge import Judge
from tenure.testing.programs import AppSource, Program, warm_up
from tenure.testing.users import Answer, ServiceUsers, UserSocket

T = TypeVar("T")
WAIT_SECONDS = 120.0
"""The simulated time for anything that a test waits for."""
STEPS_AT_ONCE = 50
"""The number of steps after which the test's own event loop has its turn."""


class ServedSite:
    """The processes that serve an application, and its user. See `serve`."""

    def __init__(self, world: AppWorld, program: Program) -> None:
        self._world = world
        self._program = program
        self._user = world.use(_stay)
        self._users = ServiceUsers(self._user, program)
        self._tickets = 0

    # --- the processes ---

    @property
    def processes(self) -> list[str]:
        """The names of those that live."""
        return [process.slot for process in self._world.programs()]

    def owner_of(self, key: UserKey) -> str | None:
        """The process that holds a key at this moment."""
        for process in self._world.programs():
            if process.lease_of(self._key(key)) is not None:
                return process.slot
        return None

    def crash(self, name: str | None) -> None:
        """End a process as kill -9 does. It is not started again."""
        self._named(name).kill()

    def freeze(self, name: str | None, duration_seconds: float) -> None:
        """Stop a process for so long, as SIGSTOP does."""
        self._named(name).freeze(seconds(duration_seconds))

    async def leave(self, name: str) -> None:
        """End a process as SIGTERM does, and wait until it has ended."""
        process = self._named(name)
        process.ask_to_leave()
        await self._until(lambda: not process.alive, f"{name} did not end")

    async def start(self, name: str) -> None:
        """Start a process in the place of one that has ended, and wait until it serves."""
        if name in self.processes:
            raise ConfigurationError(f"{name} lives: crash it, or let it leave, before")
        self._world.restart_later(name, 0)
        await self._until(lambda: self._serves(name), f"{name} did not begin to serve")

    async def move(self, key: UserKey, to: str | None = None) -> str:
        """Have a key handed over to another process, and wait until that holds it; its name."""
        now = self.owner_of(key)
        others = [name for name in self.processes if name != now]
        to = to or (others[0] if others else None)
        if to is None or to not in self.processes:
            raise ConfigurationError(f"there is no other process to move {key!r} to: {to!r}")
        (owner, *_) = self._named(to).owners()
        name = owner.machine.view().config.name
        self._steer(PinKey(pool=owner.pool, key=self._key(key), owner=name))
        await self._until(lambda: self.owner_of(key) == to, f"{key!r} did not come to {to}")
        return to

    def freeze_assignment(self) -> None:
        """Let no key move of itself from here on, until `unfreeze_assignment`."""
        for pool in self._world.pools:
            self._steer(Freeze(pool=pool))

    def unfreeze_assignment(self) -> None:
        """Let keys move again."""
        for pool in self._world.pools:
            self._steer(Unfreeze(pool=pool))

    def _steer(self, command: SteeringCommand) -> None:
        self._tickets += 1
        for manager in self._world.managers():
            manager.post(QuestionAsked(-self._tickets, command))

    def _key(self, key: UserKey) -> Key:
        kinds = {*self._world.kinds.values()} or {"hashed"}
        return key_function(kinds.pop())(key)

    def _named(self, name: str | None) -> AppProcess:
        for process in self._world.programs():
            if process.slot == name:
                return process
        raise ConfigurationError(
            f"no process {name!r} lives; there are {', '.join(self.processes) or 'none'}"
        )

    def _serves(self, name: str) -> bool:
        return any(each.slot == name and each.alive for each in self._program.public)

    # --- time ---

    async def turn(self, duration_seconds: float) -> None:
        """Let so much time pass, and everything happen that happens in it."""
        until = self._world.now + seconds(duration_seconds)
        await self._until(lambda: self._world.now >= until, "", until)

    async def _until(self, is_so: Any, why_not: str, until: int = 0) -> None:  # noqa: ANN401
        deadline = until or self._world.now + seconds(WAIT_SECONDS)
        while not is_so():
            for _ in range(STEPS_AT_ONCE):
                if is_so():
                    break
                if not self._world.step(deadline):
                    break
            if self._world.now >= deadline and not is_so():
                raise TimeoutError(f"{why_not} within {WAIT_SECONDS:g} s of simulated time")
            await asyncio.sleep(0)

    async def begin(self) -> None:
        """Wait until every key has an owner, and every process serves."""
        self._world.start_all()
        slots = [slot for slot in self._world.slots if slot not in self._world.manager_slots]
        await self._until(
            lambda: all(map(self._serves, slots)) and self._world.not_well() is None,
            "the site did not begin to serve",
        )

    # --- whoever uses it ---

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine where the site's users are, in its time, until it is done."""
        task = self._user.loop.create_task(work)
        await self._until(task.done, "nothing came of it")
        return task.result()

    async def request(self, method: str, path: str, **options: Any) -> Answer:  # noqa: ANN401
        """Ask some process, as `ServiceUsers.request` does."""
        return await self.do(self._users.request(method, path, **options))

    async def get(self, path: str, **options: Any) -> Answer:  # noqa: ANN401
        return await self.request("GET", path, **options)

    async def post(self, path: str, **options: Any) -> Answer:  # noqa: ANN401
        return await self.request("POST", path, **options)

    async def websocket(self, path: str) -> "SiteSocket":
        """A WebSocket, connected to some process."""
        return SiteSocket(self, await self.do(self._users.websocket(path)))


class SiteSocket:
    """A user's WebSocket, for a test beside the site."""

    def __init__(self, site: ServedSite, socket: UserSocket) -> None:
        self._site = site
        self._socket = socket

    @property
    def received(self) -> list[str]:
        """All frames that were received."""
        return self._socket.received

    @property
    def close_code(self) -> int | None:
        """The code with which it was closed; None while it is open."""
        return self._socket.close_code

    async def send(self, text: str) -> None:
        """Send a frame, connecting again where that is needed. Raises ConnectionError."""
        if not await self._site.do(self._socket.send(text)):
            raise ConnectionResetError(f"{text!r} could not be sent")

    async def lines(self, count: int) -> list[str]:
        """All frames, once there are so many. Raises TimeoutError, saying what came."""
        return await self._site.do(self._socket.lines(count))

    async def close(self) -> None:
        await self._site.do(self._socket.close())


async def _stay(process: AppProcess) -> None:
    """Users are there as long as the site is."""
    del process
    await asyncio.Event().wait()


@asynccontextmanager
async def serve(
    app: AppSource, *, processes: int, managers: int, timing: Timing, seed: int
) -> AsyncIterator[ServedSite]:
    """A site, from when every key has an owner until the block ends."""
    trial = AppTrial(
        seed=seed,
        processes=processes,
        managers=managers,
        timing=timing,
        faults=(),
        spare_owners=0,
    )
    warm_up(app)
    judge = Judge("")
    program = Program(app, judge)
    world = AppWorld(trial, program.run)
    with in_place(seed):
        try:
            site = ServedSite(world, program)
            await site.begin()
            yield site
        finally:
            world.abandon()
