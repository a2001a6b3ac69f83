"""How far one manager goes: to 10,000 owners and 100,000 lookups, in virtual time.

One machine cannot have so many sockets beside the manager, but the manager's machine can serve
them. Here it gets the bytes that clients send, at the times when they would send them. Its answers
are encoded as the service encodes them, and then thrown away, except for what clients need. The
benchmark counts the time of decoding, deciding and encoding. Sockets cost more on top; smaller
sizes measure them (`at_rest`, `scale`).
"""

import ctypes
import gc
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from random import Random
from time import process_time
from typing import NamedTuple

from benchmarks import renewal
from benchmarks._quick import sized
from benchmarks._report import Section, Table, prose, say
from tenure.base.instants import Instant, in_seconds, seconds
from tenure.base.noted import Noted
from tenure.journals.memory import MemoryJournal
from tenure.journals.perform import perform
from tenure.protocol.lease.leader.events import (
    AnswerQuestion,
    ClientSaid,
    GiveUp,
    MakePlan,
    ManagerAction,
    ManagerEvent,
    PlanMade,
    TellClient,
    TellClients,
    TellNodes,
)
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig
from tenure.protocol.lease.messages import (
    FromManager,
    Held,
    Hello,
    Introduction,
    Join,
    LeaseResponse,
    Poke,
    ShortResponse,
    Sync,
    SyncResponse,
)
from tenure.protocol.lease.timing import PRESETS, Timing
from tenure.wire.lease import WholeTables, decode_to_manager, encode
from tenure.wire.lease_records import LEASE_RECORDS
from tenure.wire.versions import NEWEST

SIZES = ((200, 2_000), (1_000, 10_000), (10_000, 100_000))[: sized(3, 1)]
REST_SECONDS = float(sized(30, 5))
STEP = seconds(0.05)
TEXT = """The machine of one manager in virtual time, memory journal, policy `weighted` with 64
ranges for each owner, and clients that ask as the library does. *Joining* is the CPU of taking all
owners in at once, their plans included, and of telling every lookup the whole table. *At rest* is
CPU for each simulated second, in percent of a core, with the terms of either preset; *limit* is how
many times as many clients one core could answer at rest, sockets not counted. Memory is what the
process grew by, its clients here included, which are little more than numbers. Table is the bytes
of the whole lease table, which a lookup is told once."""


class Cost(NamedTuple):
    """The cost of one size."""

    owners: int
    lookups: int
    joining: float
    rest: dict[str, float]
    memory: float
    table: int


class VirtualManager:
    """A manager's machine, its journal, and the time that they take."""

    def __init__(self, timing: Timing) -> None:
        config = ManagerConfig(url="manager", timing=timing, first_start=True)
        self.machine = Manager(config, Random(1))
        self.journal = MemoryJournal(LEASE_RECORDS)
        self.now = Instant(seconds(100))
        self.wake_at = self.now
        self.cpu = 0.0
        self.told: list[tuple[int, FromManager]] = []
        """Messages to single clients, to be taken from here."""
        self.sent = 0
        """Bytes."""
        self._events: deque[ManagerEvent] = deque()
        self._tables = WholeTables()
        self.synced: SyncResponse | None = None
        """The last answer to a lookup."""
        self.table = 0
        """Bytes of the last table that was told."""

    def pass_time(self, until: Instant) -> None:
        """Let time pass until this instant."""
        while self.wake_at <= until:
            self.now = max(self.now, self.wake_at)
            self._take(None)
        self.now = until

    def hear(self, connection: int, data: bytes) -> None:
        """A client says something."""
        began = process_time()
        message = decode_to_manager(data, NEWEST)
        self.cpu += process_time() - began
        self._take(ClientSaid(connection, message))

    def _take(self, event: ManagerEvent | None) -> None:
        """An event, or the time alone, and what follows from it."""
        began = process_time()
        machine = self.machine
        while True:
            output = machine.advance(self.now) if event is None else machine.handle(self.now, event)
            self.wake_at = max(output.wake_at, Instant(self.now + 1))
            for action in output.actions:
                self._perform(action)
            if not self._events:
                break
            event = self._events.popleft()
        self.cpu += process_time() - began

    def _perform(self, action: ManagerAction) -> None:
        match action:
            case TellClient(connection=connection, message=message):
                self._send((connection,), message)
            case TellClients(connections=connections, message=message):
                self._send(connections, message)
            case MakePlan(work=work):
                self._events.append(PlanMade(work, work.carry_out()))
            case Noted() | TellNodes() | AnswerQuestion():
                pass
            case GiveUp(why=why):
                raise AssertionError(why)
            case _:
                self._ask_journal(action)

    def _ask_journal(self, action: object) -> None:
        asked = perform(self.journal, action)  # type: ignore[arg-type]
        try:
            asked.send(None)
        except StopIteration as done:
            if done.value is not None:
                self._events.append(done.value)
        else:
            raise AssertionError("a journal in memory waits for nothing")

    def _send(self, connections: Sequence[int], message: FromManager) -> None:
        if not isinstance(message, SyncResponse):
            data = encode(message, NEWEST)
            self.told.extend((each, message) for each in connections if each >= 0)
        else:
            self.synced = message
            is_table = message.snapshot
            data = encode(self._tables.prepared(message) if is_table else message, NEWEST)
            self.table = len(data) if is_table else self.table
        self.sent += len(data) * len(connections)


class Clients:
    """Owners and lookups, by the numbers of their connections: lookups' are below 0."""

    def __init__(self, manager: VirtualManager, owners: int, lookups: int) -> None:
        self.manager = manager
        self.owners = [renewal.Owner(n, None) for n in range(owners)]  # type: ignore[arg-type]
        self.lookups = lookups
        self._sequence = 0

    def join(self) -> None:
        """All owners at once, until each holds something and nothing moves."""
        manager = self.manager
        while manager.machine.leader is None:
            manager.pass_time(Instant(manager.now + STEP))
        for owner in self.owners:
            manager.hear(owner.number, encode(Hello(pool="bench", token=1), NEWEST))
        self._hear_all()
        due = list(range(len(self.owners)))
        while due:
            manager.pass_time(Instant(manager.now + STEP))
            self._hear_all()
            for number in due:
                owner = self.owners[number]
                if owner.receipt:
                    self._ask(owner)
            self._hear_all()
            due = [n for n in due if not (self.owners[n].held and self.owners[n].is_settled())]

    def _ask(self, owner: renewal.Owner) -> None:
        request = owner._request()
        self.manager.hear(owner.number, encode(request, NEWEST))

    def _hear_all(self) -> None:
        while self.manager.told:
            told, self.manager.told = self.manager.told, []
            for connection, message in told:
                self._hear(self.owners[connection], message)

    def _hear(self, owner: renewal.Owner, message: FromManager) -> None:
        match message:
            case Introduction():
                owner.seal = message
                owner.sequence += 1
                join = Join(
                    pool="bench",
                    kind="hashed",
                    name=f"owner-{owner.number}",
                    address=f"http://owner-{owner.number}:8000",
                    owner_nonce=owner.number + (1 << 62),
                    manager_nonce=message.manager_nonce,
                    sequence=owner.sequence,
                )
                self.manager.hear(owner.number, encode(join, NEWEST))
            case LeaseResponse():
                owner.incarnation, owner.receipt = message.incarnation, message.receipt
                owner.told = message.fingerprint
                owner.held = tuple(
                    Held(start=each.start, end=each.end, number=each.number)
                    for each in message.leases
                    if each.mark != "recalled"
                )

    def sync(self, number: int, *, is_new: bool = False) -> None:
        """One lookup asks what has changed."""
        known = self.manager.synced
        self._sequence += 1
        asked = Sync(
            pool="bench",
            sequence=self._sequence,
            journal=known.journal if known and not is_new else 0,
            leadership=known.leadership if known and not is_new else 0,
            lsn=known.lsn if known and not is_new else 0,
            nonce=number + 1,
            receipt=known.receipt if known and not is_new else b"",
            reads_columns=True,
        )
        self.manager.hear(-number - 1, encode(asked, NEWEST))

    def rest(self, timing: Timing, period: float) -> float:
        """Change nothing for this many seconds, and return the CPU of each."""
        manager, before = self.manager, self.manager.cpu
        due = {"owners": 0.0, "lookups": 0.0}
        at = {"owners": 0, "lookups": 0}
        for _ in range(round(period / in_seconds(STEP))):
            manager.pass_time(Instant(manager.now + STEP))
            due["owners"] += len(self.owners) * STEP / timing.renew_ns
            due["lookups"] += self.lookups * STEP / timing.sync_ns
            while due["owners"] >= 1:
                owner = self.owners[at["owners"] % len(self.owners)]
                short = renewal.in_short(owner._request(), owner.told)
                manager.hear(owner.number, encode(short, NEWEST))
                due["owners"], at["owners"] = due["owners"] - 1, at["owners"] + 1
            while due["lookups"] >= 1:
                self.sync(at["lookups"] % self.lookups)
                due["lookups"], at["lookups"] = due["lookups"] - 1, at["lookups"] + 1
            assert all(isinstance(each, ShortResponse | Poke) for _, each in manager.told)
            manager.told.clear()
        return (manager.cpu - before) / period


def measure(owners: int, lookups: int, tell: Callable[[str], None]) -> Cost:
    """One size, from nothing."""
    memory = resident()
    manager = VirtualManager(PRESETS["paper"])
    clients = Clients(manager, owners, lookups)
    tell(f"{owners:,} owners join")
    clients.join()
    tell(f"{lookups:,} lookups are told the table")
    for number in range(lookups):
        clients.sync(number, is_new=True)
    joining = manager.cpu
    for owner in clients.owners:
        owner.held = ()
    grown = resident() - memory
    rest = {}
    for preset in ("paper", "default"):
        tell(f"{owners:,} owners and {lookups:,} lookups at rest, `{preset}`")
        rest[preset] = clients.rest(PRESETS[preset], REST_SECONDS)
    return Cost(owners, lookups, joining, rest, grown, manager.table)


def resident() -> float:
    """MB that this process has, without what it could give back."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1000


def run(tell: Callable[[str], None], sizes: Sequence[tuple[int, int]] = SIZES) -> Section:
    """Each size in a process of its own, so that memory is its own."""
    found = []
    for owners, lookups in sizes:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            found.append(pool.submit(measure, owners, lookups, say).result())
        tell(f"{owners:,} owners are measured")
    head = [
        *("", "joining, s", "`paper`: CPU at rest", "limit"),
        *("`default`: CPU at rest", "limit", "memory, MB", "table, MB"),
    ]
    rows = [
        [
            f"tenure, {cost.owners:,} owners and {cost.lookups:,} lookups",
            f"{cost.joining:.1f}",
            *(f"{cost.rest['paper']:.1%}", f"{1 / cost.rest['paper']:.1f}"),
            *(f"{cost.rest['default']:.1%}", f"{1 / cost.rest['default']:.1f}"),
            *(f"{cost.memory:,.0f}", f"{cost.table / 1e6:.1f}"),
        ]
        for cost in found
    ]
    return Section(
        title="How far one manager goes",
        text=prose(TEXT),
        tables=[Table(head, rows)],
    )
