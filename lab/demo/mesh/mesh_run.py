"""The scenario, round after round: in each, one process has trouble at one step.

The work PC subscribes and goes offline. The home PC gets a new address and says so; the device
service keeps it and publishes it; the queue keeps that; the work PC comes online, drains, and
connects. It must have learned the address, or have been told to ask again. And whoever relied on
what a process had must have been told, if that was lost. There must never be silence: a work PC
that believes an old address and was told nothing. Nor may anything be applied twice, whatever is
sent again because a frontend, a server or a PC has died in the middle.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import SystemRandom
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TypeAlias

import msgspec

from lab.demo.mesh.device_processes import PATIENCE_SECONDS, DeviceProcess, Event
from lab.demo.mesh.live_mesh import SERVICES, LiveMesh
from lab.demo.mesh.mesh_devices import HOME_PC, WORK_PC, activity_of, told_by
from lab.demo.mesh.mesh_losses import MeshLosses, mesh_losses
from lab.demo.mesh.mesh_troubles import FIRST, Part, PlannedTrouble, Step, planned
from lab.demo.mesh.service_processes import ServiceProcess
from tenure.services.queues.client import ReceivedEntry

Say: TypeAlias = Callable[[str], None]
STOPPED_SECONDS = {"test": 4.0, "default": 16.0, "paper": 70.0}
"""How long a server is stopped, by preset: longer than a hold, after which others have its keys."""
MIDDLE_SECONDS = 0.05
"""At most so long after something has begun its process is killed in the middle of it."""
LOOK_SECONDS = 0.2
BEGINS = """\
starting a manager, two processes of each service, and two frontends:
  devices-1 and devices-2 keep where the home PC is, activities-1 and activities-2 what the user
  has done, topics-1 and topics-2 publish where it is,
  queues-1 and queues-2 keep it for the work PC, which wants to connect, and is offline
in each round one of these processes is killed or stopped, or one of the PCs is killed;"""
KEPT = "  everything is stored, so nothing that was acknowledged may be lost"
NOT_KEPT = """\
  nothing is stored, so what a server had is gone, and whoever relies on that has to be told"""


class MeshTrouble(msgspec.Struct, frozen=True):
    """Trouble of one process, and who was told of what was lost."""

    planned: PlannedTrouble
    had: list[str]
    """The keys that the process had. If it had none, nobody has to be told."""
    told: list[str]


class MeshSummary(msgspec.Struct):
    """The results of all rounds."""

    is_kept: bool
    """Whether the services kept everything in stores."""
    rounds: int = 0
    kills: dict[Part, int] = msgspec.field(default_factory=dict)
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
    doubled: int = 0
    """Changes that were applied, or arrived, twice, though nothing was lost."""
    troubles: list[MeshTrouble] = []

    @property
    def is_good(self) -> bool:
        """Whether nobody was left in the dark, and nothing that was stored was lost."""
        is_lost = self.is_kept and self.republished
        return self.rounds > 0 and not (self.silent or self.doubled or is_lost)


class HeardOfHome:
    """What the home PC has reported."""

    acknowledged = ""
    is_online = False


class HeardOfWork:
    """What the work PC has reported in this round."""

    address = ""
    seen = ""
    messages = 0
    losses = 0
    is_online = False
    has_looked = False


class MeshRounds:
    """The participants of all rounds, and what is counted."""

    def __init__(self, mesh: LiveMesh, losses: MeshLosses, directory: Path, say: Say) -> None:
        frontends = [each.url for each in mesh.frontends]
        self.summary = MeshSummary(mesh.is_kept)
        self.home = DeviceProcess(directory / "home", frontends, self._hear_home)
        self.work = DeviceProcess(directory / "work", frontends, self._hear_work)
        self._mesh = mesh
        self._losses = losses
        self._say = say
        self._random = SystemRandom()
        self._mending: asyncio.Task[object] | None = None
        self._odd: list[str] = []
        """What has happened to the PCs in this round that happens only after a loss, or if one of
        them was killed: something has changed that they had not changed, or comes again.
        """
        self._of_home = HeardOfHome()
        self._of_work = HeardOfWork()

    # --- what the PCs report ---

    def _hear_home(self, event: Event) -> None:
        match event["event"]:
            case "online":
                self._of_home.is_online = True
            case "acknowledged":
                self._of_home.acknowledged = event["address"]
            case "said again":
                self.summary.republished += 1
                self._say(f"  the home PC has found it lost, and says again: {event['address']}")
            case _:
                self._hear(HOME_PC, event)

    def _hear_work(self, event: Event) -> None:
        heard = self._of_work
        match event["event"]:
            case "online":
                heard.is_online = True
            case "knows":
                heard.address, heard.seen = event["address"], event["seen"]
                heard.has_looked = True
            case "took":
                heard.messages += event["messages"]
            case _:
                self._hear(WORK_PC, event)

    def _hear(self, who: str, event: Event) -> None:
        match event["event"]:
            case "told":
                entries = msgspec.convert(event["entries"], list[ReceivedEntry])
                self._losses.note(who, entries)
                self._of_work.losses += who == WORK_PC
                self._say(f"  {who} is told: {'; '.join(map(told_by, entries))}")
            case "asked anew":
                self._losses.note_asked_anew(who, event["leases"])
            case _:  # "doubled" or "overtaken"
                self._odd.append(f"{who} reports {event}")

    # --- rounds ---

    async def run(self, seconds: float) -> None:
        """Each kind of trouble once, and then further ones until the time is over."""
        until = monotonic() + seconds
        await self.home.start("home")
        await self.home.until(lambda: self._of_home.is_online)
        await self._comes_online("asking")
        await self.work.until(lambda: self._of_work.has_looked)
        await self.work.leave()
        await self._round(None)
        for number, each in enumerate(planned()):
            if number >= len(FIRST) and monotonic() > until:
                return
            await self._round(each)

    async def _round(self, trouble: PlannedTrouble | None) -> None:
        self.summary.rounds += 1
        number = self.summary.rounds
        address = f"10.0.{number // 250}.{number % 250}"
        self._say(f"round {number}: {trouble or 'no trouble'}")
        self._odd = []
        await self._losses.begin("" if trouble is None else trouble.who)
        await self._strike(trouble, "address")
        self.home.tell(address)
        await self._strike(trouble, "saying")
        if await self.home.until(lambda: self._of_home.acknowledged == address):
            self._say(f"  the home PC is at {address} now, and the device service knows it")
        await self._strike(trouble, "drain")
        self._say("  the work PC comes online")
        await self._comes_online("work")
        await self._strike(trouble, "draining")
        untold = await self._until_all_know(address)
        await self.work.leave()
        self._judge(address, untold)
        if self._mending is not None:
            await self._mending
        if trouble is None or trouble.part != "client":
            self._judge_odd()
        if trouble is not None:
            self._sum_up(trouble)

    async def _comes_online(self, role: str) -> None:
        heard = self._of_work = HeardOfWork()
        await self.work.start(role)
        await self.work.until(lambda: heard.is_online)

    async def _strike(self, trouble: PlannedTrouble | None, step: Step) -> None:
        """Have the trouble of this round begin, if it is time for that."""
        if trouble is None or trouble.step != step:
            return
        if step in ("saying", "draining"):
            await asyncio.sleep(self._random.uniform(0, MIDDLE_SECONDS))
        if trouble.part == "client":
            device = self.home if trouble.who == HOME_PC else self.work
            await self._kill(trouble, device)
        else:
            process = self._mesh.processes[trouble.who]
            if trouble.trouble == "kill":
                await self._kill(trouble, process)
            else:
                self.summary.stops += 1
                process.stop()
                self._say(f"  {process.name} was stopped, and wakes up past its term")
                self._mending = asyncio.create_task(_wake(process, self._mesh.preset))

    async def _kill(self, trouble: PlannedTrouble, victim: ServiceProcess | DeviceProcess) -> None:
        kills = self.summary.kills
        kills[trouble.part] = kills.get(trouble.part, 0) + 1
        await victim.kill()
        self._say(f"  {trouble.who} was killed, and another life of it starts")
        self._mending = asyncio.create_task(victim.start())

    async def _until_all_know(self, address: str) -> list[str]:
        """Wait until the work PC knows where the home PC is, and everybody has been told; return
        who was not.
        """
        untold, until = [""], monotonic() + PATIENCE_SECONDS
        while (not self._knows(address) or untold) and monotonic() < until:
            await asyncio.sleep(LOOK_SECONDS)
            untold = await self._losses.untold()
        return untold

    def _knows(self, address: str) -> bool:
        """Whether the work PC knows where the home PC is, and what the user has done."""
        return (self._of_work.address, self._of_work.seen) == (address, activity_of(address))

    # --- what came of it ---

    def _sum_up(self, trouble: PlannedTrouble) -> None:
        had = [each.what for each in self._losses.had]
        told = sorted(self._losses.told)
        self.summary.troubles.append(MeshTrouble(trouble, had, told))
        whom = " and ".join(told) or "nobody, since nothing of theirs is lost"
        what = "all keys" if trouble.part == "manager" else " and ".join(had)
        if trouble.part in ("client", "frontend"):
            self._say("  nothing was lost with it")
        else:
            self._say(f"  {trouble.who} had {what or 'nothing of theirs'}; told: {whom}")

    def _judge_odd(self) -> None:
        """Whoever has lost nothing finds everything as it was left, and gets nothing twice."""
        if self._losses.told:
            return
        self.summary.doubled += len(self._odd)
        for each in self._odd:
            self._say(f"  TWICE: {each}")

    def _judge(self, address: str, untold: list[str]) -> None:
        summary, heard = self.summary, self._of_work
        if not self._knows(address) or untold:
            summary.silent += 1
            for each in untold:
                self._say(f"  SILENCE: {each}")
            self._say(f"  the work PC believes {heard.address}; the address is {address}")
            self._say(f"  it has seen that the user {heard.seen}")
        elif heard.losses:
            summary.told_to_ask_again += 1
            self._say(f"  the work PC has asked again, and found {address}")
        else:
            summary.learned_by_message += 1
            what = "1 message" if heard.messages == 1 else f"{heard.messages} messages"
            self._say(f"  the work PC drained {what}, and connects to {address}")


async def _wake(server: ServiceProcess, preset: str) -> None:
    await asyncio.sleep(STOPPED_SECONDS[preset])
    server.wake()


async def run_mesh(seconds: float, say: Say, preset: str, *, is_kept: bool) -> MeshSummary:
    """The scenario with real processes, again and again for so long."""
    began = monotonic()

    def timed(line: str) -> None:
        say(f"{monotonic() - began:6.1f} s  {line}")

    logging.getLogger("tenure").setLevel(logging.ERROR)  # trouble is what this is about
    say(f"{BEGINS}\n{KEPT if is_kept else NOT_KEPT}")
    with TemporaryDirectory(prefix="tenure-mesh-") as found:
        directory = Path(found)
        mesh = LiveMesh(preset, directory, is_kept=is_kept)
        async with mesh.running(), mesh_losses(mesh) as losses:
            rounds = MeshRounds(mesh, losses, directory, timed)
            try:
                await rounds.run(seconds)
            finally:
                await asyncio.gather(rounds.home.kill(), rounds.work.kill())
    return rounds.summary


def mesh_lines(summary: MeshSummary) -> list[str]:
    """Return the results as lines for people."""
    kills = ", ".join(f"{number} of a {part}" for part, number in summary.kills.items())
    lines = [
        f"{summary.rounds} rounds; kills: {kills or 'none'}; {summary.stops} stops past the term",
        f"{summary.learned_by_message} times the address arrived as a message",
        f"{summary.told_to_ask_again} times the work PC was told of a loss, and asked again",
        f"{summary.republished} times the home PC found its address lost, and said it again",
        f"{summary.silent} times there was silence",
        f"{summary.doubled} times something was applied twice",
    ]
    for name in SERVICES:
        of_it = [each for each in summary.troubles if each.planned.who.startswith(name)]
        told = Counter(who for each in of_it for who in each.told)
        of_theirs = sum(1 for each in of_it if each.had)
        lines.append(
            f"{name}: in trouble {len(of_it)} times, {of_theirs} times with something of theirs; "
            f"told: {HOME_PC} {told[HOME_PC]} times, {WORK_PC} {told[WORK_PC]} times"
        )
    return lines
