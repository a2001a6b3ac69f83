"""Recording: what simulated clients ask and are told, for the judges of histories.

What is written or read at a level that promises nothing to others is recorded as weak.
"""

from collections.abc import Callable, Mapping

import msgspec

from lab.judges.fenced import FencedJudge
from lab.judges.judging import HistoryJudge
from lab.judges.operations import AnyRecord, PageOperation, ReadOperation, Told, WriteOperation
from lab.worlds.columns.registers import RegisterName
from tenure.protocol.replication.levels import Level
from tenure.sim.kernel.checkers import Violation

WEAK: tuple[Level, ...] = ("one", "local_quorum")
"""Levels at which nobody else need see what was written, nor a reader what there is."""
Values = Mapping[RegisterName, bytes | None]
KEPT_LINES = 40


class Recording:
    """The operations of all clients of one world."""

    def __init__(self, now: Callable[[], int], longest_ns: int) -> None:
        self._now = now
        self._longest_ns = longest_ns
        """No operation takes longer, unless its client is gone."""
        self._judge = HistoryJudge()
        self._fenced = FencedJudge()
        self._begun = 0
        self._under_way: dict[int, AnyRecord] = {}
        self._of_owners: set[int] = set()

    # --- what clients do ---

    def write(
        self, client: str, key: bytes, values: Values, level: Level, *, is_owners: bool = False
    ) -> int:
        """A write begins; the number by which it ends."""
        now = self._now()
        columns, is_weak = _named(values), level in WEAK
        write = WriteOperation(client, key.decode(), columns, now, now, "unknown", is_weak)
        return self._begin(write, is_owners=is_owners)

    def written(self, number: int, told: Told) -> None:
        """A write has ended, or its client has given up."""
        write = self._under_way.pop(number)
        self._add(number, msgspec.structs.replace(write, ended=self._now(), told=told))

    def read(self, client: str, key: bytes, level: Level, *, is_owners: bool = False) -> int:
        """A read begins; the number by which it ends."""
        now = self._now()
        read = ReadOperation(client, key.decode(), {}, now, now, level in WEAK)
        return self._begin(read, is_owners=is_owners)

    def found(self, number: int, values: Values | None) -> None:
        """A read has ended with these values, or with none if it failed."""
        read = self._under_way.pop(number)
        if values is not None:
            ended = msgspec.structs.replace(read, columns=_named(values), ended=self._now())
            self._add(number, ended)

    def page(self, client: str, key: bytes, family: str, after: bytes | None) -> int:
        """A read of a set begins; the number by which it ends."""
        now, section = self._now(), f"{family}/"
        start = section + after.decode() if after else ""
        return self._begin(PageOperation(client, key.decode(), section, {}, now, now, start))

    def shown(self, number: int, values: Values, last: bytes | None) -> None:
        """A read of a set has ended, with these members, and up to this one if not to the end."""
        page = self._under_way.pop(number)
        assert isinstance(page, PageOperation)
        until = None if last is None else page.section + last.decode()
        columns, now = _named(values), self._now()
        self._add(number, msgspec.structs.replace(page, columns=columns, ended=now, until=until))

    def _begin(self, record: AnyRecord, *, is_owners: bool = False) -> int:
        self._begun += 1
        self._under_way[self._begun] = record
        if is_owners:
            self._of_owners.add(self._begun)
        return self._begun

    def _add(self, number: int, record: AnyRecord) -> None:
        if number in self._of_owners:
            self._of_owners.discard(number)
            assert not isinstance(record, PageOperation)
            self._fenced.add(record)
        else:
            self._judge.add(record)

    # --- judging ---

    def judge(self) -> None:
        """Judge what is settled. Raises Violation."""
        now = self._now()
        for number, record in list(self._under_way.items()):
            if record.began >= now - self._longest_ns:
                continue
            if isinstance(record, WriteOperation):  # its client is gone
                self.written(number, "unknown")
            else:
                self._under_way.pop(number)
        since = min((each.began for each in self._under_way.values()), default=now)
        for judge in (self._judge, self._fenced):
            for complaint in judge.judge(since):
                shown = "; ".join(complaint.lines()[:KEPT_LINES])
                raise Violation(complaint.promise, f"{complaint.what}: {shown}")

    @property
    def undecided(self) -> int:
        """How many searches were given up."""
        return self._judge.registers.undecided


def _named(values: Values) -> dict[str, str | None]:
    return {
        "/".join(part if isinstance(part, str) else part.decode() for part in name if part): (
            None if value is None else value.decode()
        )
        for name, value in values.items()
    }
