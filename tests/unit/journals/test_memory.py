"""The contents of a journal tell of every commit, once: that is what the simulator judges by."""

from random import Random

from tenure.protocol.lease.records import AnyRecord, State, WaitedOut
from tenure.protocol.log.journal import Append, Campaign, Mandate, Seat
from tenure.sim.journal import LeaseContents


def test_every_commit_is_told_once() -> None:
    told: list[AnyRecord] = []
    contents = LeaseContents(Random(1), State(), lambda _, record: told.append(record))
    contents.carry_out(Campaign(Seat(), Seat(1, 0, "m0")))
    for _ in range(2):
        contents.carry_out(Append(Mandate(contents.journal, 1), 0, (WaitedOut(), WaitedOut())))
    assert told == [WaitedOut(), WaitedOut()]
