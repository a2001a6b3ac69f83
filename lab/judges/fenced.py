"""Fenced rows: the rows of owners, whose columns are registers but for one thing (D6).

While a row is adopted, a write of a former owner whose outcome is unknown may vanish, even if
somebody has read it. So such writes, and what was read of them, are left out: what is left must
have an order. Nobody sees who has deleted a column, so once a delete of it is unknown, a read that
shows nothing there says nothing either.
"""

from collections.abc import Iterator

from lab.judges.operations import NEVER, AnyOperation, Complaint, ReadOperation, WriteOperation
from lab.judges.registers import RegisterJudge


class FencedJudge:
    def __init__(self) -> None:
        self._registers = RegisterJudge()
        self._doubtful: dict[tuple[str, str, str | None], int] = {}
        """When the first unknown write of a value began, by key, column and value."""
        self._reads: list[ReadOperation] = []

    def add(self, operation: AnyOperation) -> None:
        """An operation has ended, or will not be heard of again."""
        match operation:
            case ReadOperation():
                self._reads.append(operation)
            case WriteOperation(is_sure=True):
                self._registers.add(operation)
            case WriteOperation(told="written" | "unknown", key=key, columns=columns, began=began):
                for name, value in columns.items():
                    since = self._doubtful.get((key, name, value), NEVER)
                    self._doubtful[key, name, value] = min(began, since)

    def judge(self, running_since: int = NEVER) -> Iterator[Complaint]:
        """What is wrong with reads that ended before `running_since`."""
        left = []
        for read in self._reads:
            if read.ended < running_since:
                self._registers.add(self._certain(read))
            else:
                left.append(read)
        self._reads = left
        since = min((read.began for read in left), default=running_since)
        yield from self._registers.judge(min(since, running_since))

    def _certain(self, read: ReadOperation) -> ReadOperation:
        columns = {
            name: value
            for name, value in read.columns.items()
            if self._doubtful.get((read.key, name, value), NEVER) > read.ended
        }
        return ReadOperation(read.client, read.key, columns, read.began, read.ended)
