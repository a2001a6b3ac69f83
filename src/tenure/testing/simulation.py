"""A user's own service under all faults of the simulator, from one seed at a time.

    @simulated("chat:app", processes=3, seeds=200, minutes=10, faults="all")
    async def test_nobody_misses_a_line(world: World) -> None:
        ann, bob = await world.clients("/rooms/attic?name={}", "ann", "bob")
        async for n in world.until_healed():
            await ann.send(str(n))
        assert bob.gaps_while_open == [] and bob.repeats == []

The test itself runs in the simulated world, as the user of the service: nothing goes wrong with it,
and its time is the world's. The kit always checks that nothing leaves a process for a key that it
does not hold, and that there is one owner for each key. The report of a seed that fails has the
events before the failure; `pytest --tenure-seed` repeats it.
"""

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from traceback import format_tb
from typing import Any, NamedTuple

import msgspec

from tenure.base.instants import SECOND_NS
from tenure.errors import ConfigurationError, UsageError
from tenure.protocol.lease.timing import DEFAULT, Timing
from tenure.routing.template import PathKey
from tenure.sim.app.processes import AppProcess, RunOver
from tenure.sim.app.strikes import FAULTS
from tenure.sim.app.world import AppTrial, AppWorld
from tenure.testing.fakes import in_place
from tenure.testing.judge import Judge, turns_judged
from tenure.testing.programs import AppSource, Program, warm_up
from tenure.testing.users import Answer, ServiceUsers, UserSocket, gaps_between

MINUTES_AN_HOUR = 60
AFTER_SECONDS = 600.0
"""The simulated time for a test to end when all is healed."""
BEGINS_SECONDS = 60
"""The time for a service to begin, before its users do."""
STORY_LINES = 40
FRAMES_SHOWN = 8
"""The last frames of the failure: those of the test, or of the service."""

Test = Callable[..., Coroutine[Any, Any, object]]


class SeedFailed(AssertionError):
    """A seed under which a service fails."""


class ServiceWorld:
    """A simulated world, for the test that runs in it."""

    def __init__(self, world: AppWorld, process: AppProcess, program: Program) -> None:
        self._world = world
        self._users = ServiceUsers(process, program)
        self._sockets: list[WatchingSocket] = []
        self._is_healed = False

    @property
    def seed(self) -> int:
        """The seed of this run."""
        return self._world.trial.seed

    @property
    def now(self) -> float:
        """How many seconds have passed in this world."""
        return self._world.now / SECOND_NS

    async def clients(self, path: str, *names: str) -> "list[WatchingSocket]":
        """A WebSocket for each name, which stands for `{}` in the path; each is opened as soon as
        that is possible.
        """
        sockets = [await self.websocket(path.format(name)) for name in names]
        for socket in sockets:
            await socket.keep_open()
        return sockets

    async def websocket(self, path: str) -> "WatchingSocket":
        """A WebSocket that is not opened yet: `keep_open` opens it, and so does `send`."""
        socket = WatchingSocket(self._users, path, self._sockets)
        self._sockets.append(socket)
        return socket

    async def request(self, method: str, path: str, **options: Any) -> Answer:  # noqa: ANN401
        """Ask once, as `ServiceUsers.request` does. Raises ConnectionError and TimeoutError."""
        return await self._users.request(method, path, **options)

    async def get(self, path: str, **options: Any) -> Answer:  # noqa: ANN401
        return await self.request("GET", path, **options)

    async def post(self, path: str, **options: Any) -> Answer:  # noqa: ANN401
        return await self.request("POST", path, **options)

    async def until_healed(self, every: float = 1.0) -> AsyncIterator[int]:
        """0, 1, 2 and so on, every so many seconds, until all faults are over and all is well."""
        number = 0
        while not self._is_healed:
            yield number
            number += 1
            await asyncio.sleep(every)

    async def begins(self) -> None:
        """Wait until a process serves for the first time; not for ever, as it may never."""
        for _ in range(BEGINS_SECONDS):
            if self._users.is_served:
                return
            await asyncio.sleep(1)

    def heal(self) -> None:
        """All is well from here on."""
        self._is_healed = True

    def tell(self, what: str, detail: object = "") -> None:
        """Note something for the story that is told if the seed fails."""
        self._world.tell("test", what, detail)


class WatchingSocket(UserSocket):
    """A WebSocket of a user in a room with others."""

    def __init__(self, users: ServiceUsers, path: str, others: "list[WatchingSocket]") -> None:
        super().__init__(users, path)
        self._others = others

    @property
    def gaps_while_open(self) -> list[str]:
        """The frames that others at the same path received, between two frames that both received
        over one connection each, and this one did not. Frames must differ from each other.
        """
        place = self.path.partition("?")[0]
        others = [
            frames
            for each in self._others
            if each is not self and each.path.partition("?")[0] == place
            for frames in each.connections
        ]
        pairs = ((mine, theirs) for mine in self.connections for theirs in others)
        return [gap for mine, theirs in pairs for gap in gaps_between(mine, theirs)]


def simulated(  # what a simulation is, said once
    app: AppSource,
    *,
    processes: int = 3,
    seeds: int = 100,
    minutes: float = 10,
    faults: str = "all",
    key: PathKey | None = None,
    first_seed: int = 0,
    timing: Timing = DEFAULT,
) -> Callable[[Test], Callable[..., None]]:
    """Run a test, a coroutine function of a `World`, under many seeds, with `app` as its service.

    `app` is "module:name", imported anew for each of the `processes`, or a function that makes the
    application. `key` says where keys stand in paths, as Relay's does; without it, the Relay of the
    application says so. `faults` are names as `tenure simulate --faults` has them. Raises
    ConfigurationError for arguments that cannot be used; the test raises SeedFailed.
    """
    for name, given in (("processes", processes), ("seeds", seeds), ("minutes", minutes)):
        if not given > 0:
            raise ConfigurationError(f"{name} is more than 0, not {given!r}")
    trial = AppTrial(
        seed=first_seed,
        hours=minutes / MINUTES_AN_HOUR,
        processes=processes,
        faults=FAULTS.chosen(faults),
        timing=timing,
    )

    def decorate(test: Test) -> Callable[..., None]:
        parameters = list(inspect.signature(test).parameters.values())
        if not (inspect.iscoroutinefunction(test) and parameters):
            raise ConfigurationError(
                f"a simulated test is a coroutine function of a World, not {test!r}; write it like "
                "`async def test_it(world: World) -> None:`"
            )
        simulated_test = SimulatedTest(app, test, key, trial, range(first_seed, first_seed + seeds))

        def run(**fixtures: Any) -> None:  # noqa: ANN401
            __tracebackhide__ = True
            only = ONLY_SEED.get("seed")
            if only is not None:
                simulated_test.run(only, **fixtures)
                return
            judged = [simulated_test.run(seed, **fixtures) for seed in simulated_test.seeds]
            simulated_test.check_judged(sum(judged))

        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        run.__qualname__ = test.__qualname__
        run.__signature__ = inspect.Signature(parameters[1:])  # type: ignore[attr-defined]
        run.simulated = simulated_test  # type: ignore[attr-defined]  # for `tenure simulate`
        return run

    return decorate


class SimulatedTest(NamedTuple):
    """A test that `simulated` decorates, with what it runs in."""

    app: AppSource
    test: Test
    key: PathKey | None
    trial: AppTrial
    seeds: range

    def limited(self, minutes: float | None, faults: str | None) -> "SimulatedTest":
        """The same test for so many minutes, with these faults. Raises ConfigurationError."""
        trial = self.trial
        if minutes is not None:
            if not minutes > 0:
                raise ConfigurationError(f"--minutes {minutes:g}: more than 0")
            trial = msgspec.structs.replace(trial, hours=minutes / MINUTES_AN_HOUR)
        if faults is not None:
            trial = msgspec.structs.replace(trial, faults=FAULTS.chosen(faults))
        return self._replace(trial=trial)

    def run(self, seed: int, **fixtures: Any) -> int:  # noqa: ANN401
        """Run one seed; how much was judged. Raises SeedFailed."""
        __tracebackhide__ = True
        trial = msgspec.structs.replace(self.trial, seed=seed)
        return run_seed(trial, self.app, functools.partial(self.test, **fixtures), self.key)

    def check_judged(self, judged: int) -> None:
        """Raise UsageError if nothing was judged in any seed although there are keys."""
        if not judged and self.key != "":
            raise UsageError(
                "no answer and no frame of any key has left the service in any seed, so "
                "nothing was judged: use paths in which keys stand, and see that the service "
                "answers"
            )


ONLY_SEED: dict[str, int] = {}
"""The name under which the one seed to run is kept; empty for all of them. `pytest --tenure-seed`
sets it.
"""


def run_seed(trial: AppTrial, app: AppSource, test: Test, key: PathKey | None = None) -> int:
    """Run a test under one seed; how many answers and frames were judged. Raises SeedFailed, with
    the story.
    """
    warm_up(app)
    judge = Judge(key)
    program = Program(app, judge)
    world = AppWorld(trial, program.run)
    with in_place(trial.seed), turns_judged():
        try:
            _run(world, program, test)
        except RunOver:
            pass
        except UsageError as error:
            error.add_note(f"in seed {trial.seed}")
            raise  # it is the test that cannot be run
        except Exception as error:  # noqa: BLE001  # of the service, or of the test
            # Not `from error`: pytest would print all of that one before the sentence.
            raise SeedFailed(_told(world, error)) from None
        finally:
            world.abandon()
    return judge.judged


def _run(world: AppWorld, program: Program, test: Test) -> None:
    facade: list[ServiceWorld] = []

    async def use(process: AppProcess) -> None:
        facade.append(ServiceWorld(world, process, program))
        await facade[0].begins()
        await test(facade[0])

    user = world.use(use)
    world.run()
    for each in facade:
        each.heal()
    world.run_until(world.now + round(AFTER_SECONDS * SECOND_NS))
    where = " in ".join(_waiting_at(user.running.get_coro()))
    raise UsageError(
        f"the test does not end: {AFTER_SECONDS:g} s of simulated time after all was healed it "
        f"still waits: {where}. What it waits for never comes; give it a timeout"
    )


def _waiting_at(coroutine: object) -> Iterator[str]:
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        yield f"{frame.f_code.co_filename}:{frame.f_lineno}"
        coroutine = getattr(coroutine, "cr_await", None)


def _told(world: AppWorld, error: Exception) -> str:
    lines = world.story.lines(STORY_LINES, lambda event: event.what.startswith("gets Sync"))
    story = "\n".join(f"  {line}" for line in lines)
    said = str(error) or repr(error)
    return (
        f"seed {world.trial.seed} fails after {world.now / SECOND_NS:.3f} s of simulated time: "
        f"{said}\n\nwhat led to it (faults: {world.mix}):\n{story}\n\n"
        f"where it was raised:\n{''.join(format_tb(error.__traceback__, -FRAMES_SHOWN))}\n"
        f"repeat it with: pytest --tenure-seed {world.trial.seed}"
    )
