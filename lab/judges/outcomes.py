"""Outcomes: whether what writers were told is true (D9).

A write that was said not to be written must never be seen, at no level. One whose outcome is
unknown may be seen or not. That an acknowledged write is seen is for the registers to judge, and so
is a delete that was said not to be written: nobody sees who deleted something.
"""

from collections.abc import Iterator

from lab.judges.operations import NEVER, AnyOperation, Complaint, ReadOperation, WriteOperation

PROMISE = "D9: a write is there of which its writer was told that it is not"


class OutcomeJudge:
    def __init__(self) -> None:
        self._denied: dict[tuple[str, str, str], WriteOperation] = {}
        self._reads: list[ReadOperation] = []

    def add(self, operation: AnyOperation) -> None:
        """An operation has ended, or will not be heard of again."""
        match operation:
            case ReadOperation():
                self._reads.append(operation)
            case WriteOperation(told="not written", key=key, columns=columns):
                for name, value in columns.items():
                    if value is not None:
                        self._denied[key, name, value] = operation

    def judge(self, running_since: int = NEVER) -> Iterator[Complaint]:
        """What is wrong with reads that ended before `running_since`: whatever they have seen began
        before, and what its writer was told is known by now.
        """
        left = []
        for read in self._reads:
            if read.ended < running_since:
                yield from self._complaints(read)
            else:
                left.append(read)
        self._reads = left

    def _complaints(self, read: ReadOperation) -> Iterator[Complaint]:
        for name, value in read.columns.items():
            denied = None if value is None else self._denied.get((read.key, name, value))
            if denied is not None:
                yield Complaint(PROMISE, f"{read.key} {name}: {value}", (denied, read))
