"""The journal of a simulated world, and the fate of calls to it.

Its contents are a `JournalContents`, as in a journal in memory. Every call takes time before it
takes effect and again before its answer arrives, so managers can be stopped, killed or overtaken in
between; answers get lost, and then it is not known whether the call took effect.
"""

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from tenure.base.instants import MILLISECOND_NS
from tenure.journals.memory import JournalContents
from tenure.protocol.lease.records import AnyRecord, JournalAction, JournalEvent, State
from tenure.protocol.log.journal import Append, Appended, Compact, JournalFailed, Resign, Unknown

LeaseContents: TypeAlias = JournalContents[AnyRecord, State]
"""The contents of a journal of leases."""


def waited_out(
    random: Random, on_commit: Callable[[LeaseContents, AnyRecord], None] = lambda *_: None
) -> LeaseContents:
    """The contents of a journal before which nothing was promised, so that its leader grants
    leases.
    """
    contents = LeaseContents(random, State(waited_out=True), on_commit)
    contents.state_lsn = 1
    return contents


JOURNAL = "journal"
"""The journal's place in the deployment. Managers may be cut from it."""

LATENCY_NS = 2 * MILLISECOND_NS
"""How long a call to the journal takes: about an fsync."""


def failure_of(action: JournalAction, why: str) -> JournalEvent | None:
    """The failure that the caller hears of if the answer to a call is lost."""
    match action:
        case Append(mandate=mandate, after_lsn=after_lsn):
            return Appended(mandate.leadership, after_lsn, Unknown(why))
        case Resign() | Compact():
            return None
        case _:
            return JournalFailed(action, why)
