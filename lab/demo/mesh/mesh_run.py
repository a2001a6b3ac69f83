"""The scenario, round after round: in each, one server has trouble at one step.

The work PC subscribes and goes offline. The home PC gets a new address and says so; that is
published; the queue keeps it; the work PC comes online, drains, and connects. It must have learned
the address, or have been told to ask again. And whoever relied on what the server had must have
been told, if that was lost. There must never be silence: a work PC that believes an old address and
was told nothing.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count, product
from time import monotonic
from typing import Literal, TypeAlias, get_args

import msgspec

from lab.demo.mesh.live_mesh import OF_EACH, SERVICES, LiveMesh
from lab.demo.mesh.mesh_devices import (
    HOME_PC,
    WORK_PC,
    HomeDevice,
    MeshFrontend,
    WorkDevice,
    activity_of,
    told_by,
)
from lab.demo.mesh.mesh_losses import MeshLosses, mesh_losses
from lab.demo.mesh.service_processes import ServiceProcess
from tenure.services.queues.client import ReceivedEntry

Say: TypeAlias = Callable[[str], None]
Step: TypeAlias = Literal["address", "publish", "drain"]
Trouble: TypeAlias = Literal["kill", "stop"]
BEFORE: dict[Step, str] = {
    "address": "before the home PC says its address",
    "publish": "before that is published",
    "drain": "before the work PC comes online",
}
TROUBLES: dict[Trouble, str] = {
    "kill": "is killed",
    "stop": "is stopped past the term of its leases",
}
STOPPED_SECONDS = {"test": 4.0, "default": 16.0, "paper": 70.0}
"""How long a server is stopped, by preset: longer than a hold, after which others have its keys."""
STRIDE = 7
PATIENCE_SECONDS = 60.0
"""The longest wait for the work PC to learn the address, and for everybody to be told."""
BEGINS = """\
starting a manager, and two processes of each service:
  devices-1 and devices-2 keep where the home PC is, activities-1 and activities-2 what the user
  has done, topics-1 and topics-2 publish where it is,
  queues-1 and queues-2 keep it for the work PC, which wants to connect, and is offline
in each round one of them is killed or stopped; nothing is stored, so what it had is gone,
and whoever relies on that has to be told"""


class MeshTrouble(msgspec.Struct, frozen=True):
    """Trouble of one server, and who was told of what was lost."""

    server: str
    trouble: Trouble
    before: Step
    had: list[str]
    """The keys that the server had. If it had none, nobody has to be told."""
    told: list[str]


class MeshSummary(msgspec.Struct):
    """The results of all rounds."""

    rounds: int = 0
    kills: int = 0
    stops: int = 0
    learned_by_message: int = 0
    """Rounds in which the address arrived."""
    told_to_ask_again: int = 0
    """Rounds in which the work PC was told of a loss, and asked."""
    republished: int = 0
    """How often the home PC was told that its address was lost, and said it again."""
    silent: int = 0
    """Rounds in which the work PC neither learned the address nor was told, or in which somebody
    was not told of a loss.
    """
    troubles: list[MeshTrouble] = []

    @property
    def is_good(self) -> bool:
        """Whether nobody was left in the dark."""
        return self.rounds > 0 and not self.silent


class MeshRounds:
    """The participants of all rounds, and what is counted."""

    def __init__(
        self, mesh: LiveMesh, frontend: MeshFrontend, losses: MeshLosses, say: Say
    ) -> None:
        self.summary = MeshSummary()
        self.home = HomeDevice(frontend, self._tell)
        self._mesh = mesh
        self._frontend = frontend
        self._losses = losses
        self._work = WorkDevice(frontend, self._tell)
        self._say = say

    async def _tell(self, who: str, entries: list[ReceivedEntry]) -> None:
        self._losses.note(who, entries)
        await self._losses.note_asked_anew(who)
        self._say(f"  {who} is told: {'; '.join(map(told_by, entries))}")

    async def run(self, seconds: float) -> None:
        """Trouble with each server at each step in turn, until the time is over."""
        until = monotonic() + seconds
        await self._round(None, None, None)
        everything = list(product(get_args(Step), SERVICES, get_args(Trouble), range(OF_EACH)))
        for turn in count():
            if monotonic() > until:
                return
            # A stride that reaches all, and soon something of everything.
            step, service, trouble, number = everything[turn * STRIDE % len(everything)]
            await self._round(step, trouble, self._mesh.services[service][number])

    async def _round(
        self, step: Step | None, trouble: Trouble | None, server: ServiceProcess | None
    ) -> None:
        self.summary.rounds += 1
        address = f"10.0.{self.summary.rounds // 250}.{self.summary.rounds % 250}"
        what = "no trouble"
        if server is not None and step is not None and trouble is not None:
            what = f"{server.name} {TROUBLES[trouble]} {BEFORE[step]}"
        self._say(f"round {self.summary.rounds}: {what}")
        await self._work.begin()
        messages = losses = 0
        async with self._trouble(trouble, server) as begin:
            await begin(step == "address")
            self.home.present = address
            await self._frontend.put_address(address)
            await self._frontend.put_activity(activity_of(address))
            self._say(f"  the home PC is at {address} now, and the device service knows it")
            await begin(step == "publish")
            await self._frontend.publish(address)
            self._say("  it is published; the work PC is offline, and its queue keeps it")
            await begin(step == "drain")
            untold, until = [""], monotonic() + PATIENCE_SECONDS
            while (not self._knows(address) or untold) and monotonic() < until:
                more = await self._work.drain(wait=1.0)
                await self._work.look()
                messages, losses = messages + more[0], losses + more[1]
                untold = [] if server is None else await self._losses.untold()
        self._judge(address, messages, losses, untold)
        if server is not None and trouble is not None and step is not None:
            self._sum_up(server, trouble, step)

    def _knows(self, address: str) -> bool:
        """Whether the work PC knows where the home PC is, and what the user has done."""
        return self._work.believed == address and self._work.seen == activity_of(address)

    def _sum_up(self, server: ServiceProcess, trouble: Trouble, step: Step) -> None:
        had = [each.what for each in self._losses.had]
        told = sorted(self._losses.told)
        self.summary.troubles.append(MeshTrouble(server.name, trouble, step, had, told))
        whom = " and ".join(told) or "nobody, since nothing of theirs is lost"
        self._say(f"  {server.name} had {' and '.join(had) or 'nothing of theirs'}; told: {whom}")

    def _judge(self, address: str, messages: int, losses: int, untold: list[str]) -> None:
        summary = self.summary
        summary.republished = self.home.republished
        if not self._knows(address) or untold:
            summary.silent += 1
            for each in untold:
                self._say(f"  SILENCE: {each}")
            self._say(f"  the work PC believes {self._work.believed}; the address is {address}")
            self._say(f"  it has seen that the user {self._work.seen}")
        elif losses:
            summary.told_to_ask_again += 1
            self._say(f"  the work PC has asked again, and found {address}")
        else:
            summary.learned_by_message += 1
            what = "1 message" if messages == 1 else f"{messages} messages"
            self._say(f"  the work PC drained {what}, and connects to {address}")

    @asynccontextmanager
    async def _trouble(
        self, trouble: Trouble | None, server: ServiceProcess | None
    ) -> AsyncIterator["Callable[[bool], asyncio.Future[None]]"]:
        """Gives what begins the trouble; at the end the server is well again."""
        mending: asyncio.Task[object] | None = None

        async def begin(is_now: bool) -> None:  # noqa: FBT001  # a switch
            nonlocal mending
            if not is_now or server is None:
                return
            await self._losses.begin(server.name)
            if trouble == "kill":
                self.summary.kills += 1
                await server.kill()
                self._say(f"  {server.name} was killed, and another life of it starts")
                mending = asyncio.create_task(server.start())
            else:
                self.summary.stops += 1
                server.stop()
                self._say(f"  {server.name} was stopped, and wakes up past its term")
                mending = asyncio.create_task(_wake(server, self._mesh.preset))

        yield lambda is_now: asyncio.ensure_future(begin(is_now))
        if mending is not None:
            await mending


async def _wake(server: ServiceProcess, preset: str) -> None:
    await asyncio.sleep(STOPPED_SECONDS[preset])
    server.wake()


async def run_mesh(seconds: float, say: Say, preset: str) -> MeshSummary:
    """The scenario with real processes, again and again for so long."""
    mesh = LiveMesh(preset)
    say(BEGINS)
    async with (
        mesh.running(),
        MeshFrontend(mesh) as frontend,
        mesh_losses(mesh) as losses,
    ):
        rounds = MeshRounds(mesh, frontend, losses, say)
        watching = asyncio.create_task(rounds.home.watch())
        try:
            await rounds.run(seconds)
        finally:
            watching.cancel()
            await asyncio.wait({watching})
    return rounds.summary


def mesh_lines(summary: MeshSummary) -> list[str]:
    """Return the results as lines for people."""
    lines = [
        f"{summary.rounds} rounds, {summary.kills} kills, {summary.stops} stops past the term",
        f"{summary.learned_by_message} times the address arrived as a message",
        f"{summary.told_to_ask_again} times the work PC was told of a loss, and asked again",
        f"{summary.republished} times the home PC was told of one, and published again",
        f"{summary.silent} times there was silence",
    ]
    for name in SERVICES:
        of_it = [each for each in summary.troubles if each.server.startswith(name)]
        told = Counter(who for each in of_it for who in each.told)
        of_theirs = sum(1 for each in of_it if each.had)
        lines.append(
            f"{name}: in trouble {len(of_it)} times, {of_theirs} times with something of theirs; "
            f"told: {HOME_PC} {told[HOME_PC]} times, {WORK_PC} {told[WORK_PC]} times"
        )
    return lines
