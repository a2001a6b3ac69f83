"""Attempts of simulated clients: one write until its outcome is known, and owners of a row."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from lab.judges.operations import Told
from lab.worlds.columns.client import ClientProcess
from lab.worlds.columns.processes import StoreSite
from lab.worlds.columns.recording import WEAK, Recording
from lab.worlds.columns.registers import RegisterName, RowHistory
from tenure.protocol.replication.levels import Level
from tenure.protocol.replication.messages import (
    Adopted,
    AdoptRow,
    DrawVersion,
    Failed,
    NotWritten,
    RowWritten,
    VersionDrawn,
    WriteRow,
)
from tenure.protocol.replication.row.admission import Ahead, Attempt, Late, Outranked
from tenure.protocol.replication.row.cells import value_in
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.versions import Version
from tenure.sim.kernel.checkers import Violation

MOST_ATTEMPTS = 8
GO_ON = 0.6
"""How likely a client tries again what was not answered."""
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
        above: int = 0,
    ) -> None:
        self._workload = workload
        self._client = client
        self._table, self._key = row
        self._edits = edits
        self._ended = ended
        self._number = number
        self._above = above
        self._sent = 0
        self.time = 0
        """The time of the version with which it was sent last."""
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
        """Have a version drawn, or draw it where nobody else need be asked."""
        client = self._client
        client.clock_of_writes.see(Version(0, self._above))
        time = client.draw()
        if self._number or self._level == "one":
            self._send(Attempt(Version(self._number, time), journal=min(self._number, 1)))
            return
        asked = DrawVersion(
            request=client.request(),
            table=self._table,
            level=self._level,
            key=self._key,
            floor=time,
        )
        workload = self._workload
        client.ask(workload.node(), asked, self._drawn, workload.patience_ns * 2)

    def _drawn(self, answer: Any) -> None:
        self._attempts += 1
        if isinstance(answer, VersionDrawn):
            self._send(Attempt(answer.version, above=answer.newest))
        elif self._attempts < MOST_ATTEMPTS and self._workload.random.random() < GO_ON:
            self.begin()
        else:
            self._end("writes not begun", "not written")

    def _send(self, attempt: Attempt) -> None:
        self._sent += 1
        self._attempts += 1
        self.time = attempt.version.time
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

    @property
    def _is_known_not_to_be_there(self) -> bool:
        """Whether what is refused now was not taken before, by this request or its double."""
        return self._sent == 1 and not self._workload.is_doubled

    def _answered(self, attempt: Attempt, answer: Any) -> None:
        workload, client = self._workload, self._client
        may_draw = self._is_known_not_to_be_there and self._attempts < MOST_ATTEMPTS
        match answer:
            case RowWritten():
                self.is_written = True
                client.clock_of_writes.see(attempt.version)
                self._acknowledge(attempt)
                self._end(f"writes at {self._level}", "written")
            case NotWritten(refused=Outranked()):
                self._end("writes of former owners refused")
            case NotWritten(refused=Late(horizon)) if may_draw:
                client.clock_of_writes.see(Version(0, horizon))
                workload.counts["writes late"] += 1
                self._draw_again()
            case NotWritten(refused=Ahead(bound)) if may_draw and client.wall_us() <= bound:
                client.clock_of_writes.begin_anew()  # it was set right
                workload.counts["writes drawn anew"] += 1
                self._draw_again()
            case NotWritten(refused=Ahead()):
                self._refuse("writes too far ahead")
            case NotWritten():
                self._refuse("writes refused")
            case Failed(why="too few replicas" | "overloaded"):
                self._refuse("writes not begun")
            case _ if self._attempts < MOST_ATTEMPTS and workload.random.random() < GO_ON:
                workload.counts["writes repeated"] += 1
                self._send(attempt)
            case _:
                self._end("writes unknown")

    def _end(self, what: str, told: Told = "unknown") -> None:
        self._workload.recording.written(self._recorded, told)
        self._ended(what)

    def _refuse(self, what: str) -> None:
        self._end(what, "not written" if self._is_known_not_to_be_there else "unknown")

    def _draw_again(self) -> None:
        self._sent = 0
        self.begin()

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
        self._newest = 0
        """The time of the newest version of the row when it was adopted, or of the last write."""

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
            case Adopted(refused=None, newest=newest):
                self._newest = newest.time
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
                self._newest = attempts.time
                self._go_on(client)

        edits = (Edit("names", None, name, value),)
        row = "owned", self._key
        attempts = RowAttempts(
            self._workload, client, row, edits, ended, self._number, above=self._newest
        )
        attempts.begin()
