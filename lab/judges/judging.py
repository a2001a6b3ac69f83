"""Judging: all judges over one history, as its operations become known."""

from collections.abc import Iterator

from lab.judges.operations import NEVER, AnyRecord, Complaint, PageOperation, WriteOperation
from lab.judges.outcomes import OutcomeJudge
from lab.judges.pages import PageJudge
from lab.judges.registers import RegisterJudge


class HistoryJudge:
    """Takes operations in any order, each when it has ended or is given up."""

    def __init__(self) -> None:
        self.registers = RegisterJudge()
        self._others = (OutcomeJudge(), PageJudge())

    def add(self, record: AnyRecord) -> None:
        """An operation has ended, or will not be heard of again. A write that was given up is
        unknown; of a read that was given up nothing need be said.
        """
        if isinstance(record, PageOperation):
            record = record.over(self.registers.names(record.key))
        if isinstance(record, WriteOperation) and not record.columns:
            return
        self.registers.add(record)
        for judge in self._others:
            judge.add(record)

    def judge(self, running_since: int = NEVER) -> Iterator[Complaint]:
        """What is wrong with all that is settled, if no operation that is still to be added began
        before `running_since`. If that is NEVER, the history is at its end.
        """
        for judge in (self.registers, *self._others):
            yield from judge.judge(running_since)
