"""Recording: what simulated clients ask and are told, for the judges of histories.

Only levels that promise something are judged: what is written at a weaker one counts as unknown,
and what is read there does not count.
"""

from collections.abc import Callable, Mapping

from tenure.sim.columns.registers import RegisterName
from tenure.sim.histories.operations import AnyOperation, ReadOperation, Told, WriteOperation
from tenure.sim.histories.registers import RegisterJudge
from tenure.sim.kernel.checkers import Violation

Values = Mapping[RegisterName, bytes | None]
KEPT_LINES = 40


class Recording:
    """The operations of all clients of one world."""

    def __init__(self, now: Callable[[], int], longest_ns: int) -> None:
        self._now = now
        self._longest_ns = longest_ns
        """No operation takes longer, unless its client is gone."""
        self._judge = RegisterJudge()
        self._begun = 0
        self._writes: dict[int, WriteOperation] = {}
        self._reads: dict[int, int] = {}

    # --- what clients do ---

    def write(self, client: str, key: str, values: Values) -> int:
        """A write begins; the number by which it ends."""
        self._begun += 1
        now = self._now()
        columns = _named(values)
        self._writes[self._begun] = WriteOperation(client, key, columns, now, now, "unknown")
        return self._begun

    def written(self, number: int, told: Told) -> None:
        """A write has ended, or its client has given up."""
        write = self._writes.pop(number)
        self._add(
            WriteOperation(write.client, write.key, write.columns, write.began, self._now(), told)
        )

    def read(self) -> int:
        """A read begins; the number by which it ends."""
        self._begun += 1
        self._reads[self._begun] = self._now()
        return self._begun

    def found(self, number: int, client: str, key: str, values: Values | None) -> None:
        """A read has ended, with these values, or with none if it failed."""
        began = self._reads.pop(number)
        if values is not None:
            self._add(ReadOperation(client, key, _named(values), began, self._now()))

    def _add(self, operation: AnyOperation) -> None:
        self._judge.add(operation)

    # --- judging ---

    def judge(self) -> None:
        """Judge what is settled. Raises Violation."""
        now = self._now()
        for number, write in list(self._writes.items()):
            if write.began < now - self._longest_ns:  # its client is gone
                self.written(number, "unknown")
        self._reads = {
            number: began
            for number, began in self._reads.items()
            if began >= now - self._longest_ns
        }
        under_way = (*(each.began for each in self._writes.values()), *self._reads.values())
        for complaint in self._judge.judge(min(under_way, default=now)):
            shown = "; ".join(complaint.lines()[:KEPT_LINES])
            raise Violation(complaint.promise, f"{complaint.what}: {shown}")

    @property
    def undecided(self) -> int:
        """How many searches were given up."""
        return self._judge.undecided


def _named(values: Values) -> dict[str, str | None]:
    return {
        "/".join(part if isinstance(part, str) else part.decode() for part in name if part): (
            None if value is None else value.decode()
        )
        for name, value in values.items()
    }
