"""Attempts of simulated clients: one write until its outcome is known, and owners of a row."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from tenure.protocol.replication.admission import (
    Ahead,
    Attempt,
    AttemptKind,
    Late,
    Outranked,
    Outrun,
)
from tenure.protocol.replication.cells import value_in
from tenure.protocol.replication.edits import Edit
from tenure.protocol.replication.levels import Level
from tenure.protocol.replication.messages import (
    Adopted,
    AdoptRow,
    Failed,
    NotWritten,
    RowWritten,
    WriteRow,
)
from tenure.protocol.replication.versions import Version
from tenure.sim.columns.client import ClientProcess
from tenure.sim.columns.processes import StoreSite
from tenure.sim.columns.recording import WEAK, Recording
from tenure.sim.columns.registers import RegisterName, RowHistory
from tenure.sim.histories.operations import Told
from tenure.sim.kernel.checkers import Violation

MOST_ATTEMPTS = 8
MOST_WRITES = 12
"""The most writes of one owner."""
Ended = Callable[[str], None]
"""Told in words what became of a write."""


class ClientsOfRows(Protocol):
    """The part of a world's readers and writers that an attempt needs."""

    site: StoreSite
    random: Random
    counts: Counter[str]
    patience_ns: int
    apart_ns: float
    is_doubled: bool
    owned: dict[bytes, RowHistory]
    recording: Recording

    def history(self, key: bytes) -> RowHistory:
        """The history of a row."""
        ...

    def node(self) -> str:
        """One to ask."""
        ...

    def level(self) -> Level:
        """The level at which to write."""
        ...

    def value(self) -> bytes:
        """One that is written once."""
        ...

    def read_owned(
        self, client: ClientProcess, key: bytes, then: Callable[[ClientProcess], None]
    ) -> None:
        """Read all of a row that owners have."""
        ...


class RowAttempts:
    """One write of a client, until its outcome is known or given up."""

    def __init__(
        self,
        workload: ClientsOfRows,
        client: ClientProcess,
        row: tuple[str, bytes],
        edits: tuple[Edit, ...],
        ended: Ended,
        number: int = 0,
        level: Level | None = None,
    ) -> None:
        self._workload = workload
        self._client = client
        self._table, self._key = row
        self._edits = edits
        self._ended = ended
        self._number = number
        self._row = workload.history(self._key)
        self._level = level or ("quorum" if number else workload.level())
        self._before = {
            name: register.acknowledged for name, register in self._row.registers.items()
        }
        self._adopted = self._row.adopted
        """The lease number that had adopted the row when this began."""
        self.is_written = False
        self._attempts = 0
        self._cells: dict[RegisterName, bytes] = {}
        self._recorded = workload.recording.write(
            client.slot,
            self._key,
            values_of(self._row, edits),
            self._level,
            is_owners=self._table == "owned",
        )

    def begin(self) -> None:
        """Try it with a time that is drawn."""
        self._send(Version(self._number, self._client.draw()), "first")

    def _send(self, version: Version, kind: AttemptKind) -> None:
        self._attempts += 1
        attempt = Attempt(version, kind, journal=min(self._number, 1))
        self._cells = self._row.issue(attempt, self._edits)
        asked = WriteRow(
            request=self._client.request(),
            table=self._table,
            level=self._level,
            key=self._key,
            edits=self._edits,
            attempt=attempt,
        )

        def answered(answer: Any) -> None:
            self._answered(attempt, answer)

        workload = self._workload
        self._client.ask(workload.node(), asked, answered, workload.patience_ns * 2)

    def _answered(self, attempt: Attempt, answer: Any) -> None:
        workload, client = self._workload, self._client
        match answer:
            case RowWritten():
                self.is_written = True
                self._acknowledge(attempt)
                self._end(f"writes at {self._level}", "written")
            case NotWritten(refused=Outrun(newest)) if self._attempts < MOST_ATTEMPTS:
                client.clock_of_writes.see(newest)
                workload.counts["writes outrun"] += 1
                self.begin()
            case NotWritten(refused=Late(horizon)) if self._attempts < MOST_ATTEMPTS:
                client.clock_of_writes.see(Version(0, horizon))
                workload.counts["writes late"] += 1
                self.begin()
            case NotWritten(refused=Ahead(bound)):
                if client.wall_us() <= bound and self._attempts < MOST_ATTEMPTS:
                    client.clock_of_writes.begin_anew()  # it was set right
                    workload.counts["writes drawn anew"] += 1
                    self.begin()
                else:
                    self._end("writes too far ahead")
            case NotWritten(refused=Outranked()):
                self._end("writes of former owners refused")
            case NotWritten():
                self._end("writes refused")
            case Failed(why="too few replicas" | "overloaded"):
                is_denied = self._attempts == 1 and not workload.is_doubled
                self._end("writes not begun", "not written" if is_denied else "unknown")
            case _ if self._attempts < MOST_ATTEMPTS and workload.random.random() < 0.6:
                workload.counts["writes repeated"] += 1
                self._send(attempt.version, "repeat")
            case _:
                self._end("writes unknown")

    def _end(self, what: str, told: Told = "unknown") -> None:
        self._workload.recording.written(self._recorded, told)
        self._ended(what)

    def _acknowledge(self, attempt: Attempt) -> None:
        if self._level in WEAK:
            return
        if self._number and self._number < self._adopted:
            told = f"{self._key!r}: of {self._number}, after the adoption by {self._adopted}"
            raise Violation("D6: a former owner's write is acknowledged", told)
        self._row.acknowledge(self._cells, self._before)


def values_of(row: RowHistory, edits: tuple[Edit, ...]) -> dict[RegisterName, bytes | None]:
    """The value of each column that a mutation changes; of a set, of each member."""
    if row.registers:
        return {name: value_in(cell) for name, cell in row.cells(Version(0, 0), edits).items()}
    return {(edit.family or "", edit.super, edit.name or b""): edit.value for edit in edits}


class Ownership:
    """The acts of one owner with a row under one lease number, until a later one is there."""

    def __init__(
        self, workload: ClientsOfRows, client: ClientProcess, key: bytes, number: int
    ) -> None:
        self._workload = workload
        self._client = client
        self._key = key
        self._number = number
        self._row = workload.owned[key]
        self._attempt = 0
        self._writes = 0

    def begin(self) -> None:
        """Adopt the row."""
        self._attempt += 1
        self._row.adopting = max(self._row.adopting, self._number)
        asked = AdoptRow(
            request=self._client.request(),
            table="owned",
            key=self._key,
            number=self._number,
            journal=1,
            attempt=self._attempt,
        )
        workload = self._workload
        self._client.ask(workload.node(), asked, self._answered, workload.patience_ns * 2)

    def _answered(self, answer: Any) -> None:
        match answer:
            case Adopted(refused=None):
                self._workload.counts["rows adopted"] += 1
                self._row.adopted = max(self._row.adopted, self._number)
                self._workload.read_owned(self._client, self._key, self._go_on)
            case Adopted():
                self._workload.counts["adoptions refused"] += 1
            case _ if self._attempt < MOST_ATTEMPTS:
                self._workload.counts["adoptions tried again"] += 1
                self.begin()

    def _go_on(self, client: ClientProcess) -> None:
        """Write now and then, also when a later owner is there: nobody has told this one."""
        site, workload = self._workload.site, self._workload
        wait_ns = round(workload.random.expovariate(1.0) * workload.apart_ns)
        site.at(site.now + wait_ns, self._write, client)

    def _write(self, client: ClientProcess) -> None:
        if not client.alive or client.is_frozen or self._writes >= MOST_WRITES:
            return
        self._writes += 1
        name = self._workload.random.choice((b"a", b"b", b"c"))
        value = None if self._workload.random.random() < 0.2 else self._workload.value()

        def ended(what: str) -> None:
            self._workload.counts[f"owners' {what}"] += 1
            if attempts.is_written:
                self._go_on(client)

        edits = (Edit("names", None, name, value),)
        row = "owned", self._key
        attempts = RowAttempts(self._workload, client, row, edits, ended, self._number)
        attempts.begin()
