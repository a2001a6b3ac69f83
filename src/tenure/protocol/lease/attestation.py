"""Attestation: when a witness may say that a process is gone (rule P14), decided from a look at it.

A false word here gives keys to two owners, so a witness must have seen one of three things. No
process has the pid; or the process that has it began at another time; or the process ended and
waits for its parent to notice: its first thread is a zombie, and it has no other thread. (The first
thread alone may end while the others go on believing.) A value that could not be read proves
nothing: under `hidepid`, a living neighbour and a missing one look the same.

A start time is compared as it was printed, never made into a date; clocks are set, and a time
namespace prints it by a clock of its own. So the witness must look from the suspect's own place.
"""

import msgspec

from tenure.protocol.lease.messages import Process


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of one look at a pid. None stands for a value that could not be read."""

    seen_from: Process | None
    """The process that looked, as it sees itself at this moment."""
    is_there: bool | None = None
    """Whether a process has the pid at all."""
    start_time: int | None = None
    """The start time of the process that has the pid."""
    first_thread_ended: bool = False
    has_other_threads: bool | None = None

    def shows_gone(self, suspect: Process) -> bool:
        """Whether `suspect`, at whose pid a process of the same place looked, is certainly gone."""
        if self.is_there is False:
            return True
        if self.start_time is None:
            return False
        if self.start_time != suspect.start_time:
            return True
        return self.first_thread_ended and self.has_other_threads is False


def may_attest(witness: Process | None, suspect: Process) -> bool:
    """Whether `witness` sees the same pids and start times as `suspect`, and is another process."""
    return witness is not None and witness.place == suspect.place and witness != suspect
