"""Reports of owners about caches and entities, and when they become an event.

Reports come with every renewal and mostly say that all is well. Trouble that an operator should
know of is noted once when it begins, and once when it is over. Nothing is decided by it.
"""

from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.reports import TierReport

WRITE_WAITS_SECONDS = 1.0
"""A write that waits longer than this is noted: caches that are well acknowledge in a
round trip.
"""
TURN_TAKES_SECONDS = 10.0
"""A turn that takes longer than this is noted: a call waits no longer for its turn by default, so
the next one fails.
"""


def take_report(
    context: LeaderContext, pool: str, session: Session, report: TierReport | None
) -> None:
    """Keep an owner's report of what it runs, and note what has begun or ended."""
    before, session.report = session.report, report
    write, wrote = _waiting_write(report), _waiting_write(before)
    if write and not wrote:
        context.note(LeaderKind.WRITE_WAITS, pool, f"{session.name}: {write}")
    elif wrote and not write:
        context.note(LeaderKind.WRITE_GOES_ON, pool, f"{session.name}: {wrote}")
    turn, turned = _long_turn(report), _long_turn(before)
    if turn and turn != turned:
        context.note(LeaderKind.TURN_TAKES_LONG, pool, f"{session.name}: {turn}")


def _waiting_write(report: TierReport | None) -> str:
    """The write that has waited longest, and for whom; empty if none has waited long."""
    volume = None if report is None else report.volume
    if volume is None or not volume.waiting:
        return ""
    longest = max(volume.waiting, key=lambda write: write.seconds)
    if longest.seconds < WRITE_WAITS_SECONDS:
        return ""
    return f"{longest.keys} waits for {', '.join(longest.readers) or 'its time'}"


def _long_turn(report: TierReport | None) -> str:
    entities = None if report is None else report.entities
    if entities is None or entities.longest_seconds < TURN_TAKES_SECONDS:
        return ""
    return entities.longest
