"""Looking at processes on this host, with Linux's `/proc` and pidfds.

This module only reports what it saw; `protocol.lease.attestation` decides whether that proves that
a process is gone. Whatever cannot be read is None, for any reason: no such file, another system,
`hidepid`, a sandbox.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path

from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.messages import Process

PROC = Path("/proc")
STATE, START_TIME = 0, 19
"""The positions in `stat` after the name, which may itself contain spaces and parentheses; proc(5)
counts from 1, and these are its fields 3 and 22."""
ENDED = (b"Z", b"X")


def own_process(proc: Path = PROC) -> Process | None:
    """Return this process as others on the host see it; None if it cannot see itself in that
    way.
    """
    with suppress(OSError, ValueError, IndexError):
        if not _shows_own_pids(proc):
            return None
        return Process(
            boot_id=(proc / "sys/kernel/random/boot_id").read_text().strip(),
            pid_namespace=(proc / "self/ns/pid").stat().st_ino,
            time_namespace=(proc / "self/ns/time").stat().st_ino,
            pid=os.getpid(),
            start_time=int(stat_fields(proc / "self")[START_TIME]),
        )
    return None


def _shows_own_pids(proc: Path) -> bool:
    """Return whether the pids in `/proc` are those of our namespace.

    If our namespace lies below that of the mount, we have one pid in each, and our own pid would
    name another process in `/proc`.
    """
    for line in (proc / "self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "NSpid":
            return [int(pid) for pid in value.split()] == [os.getpid()]
    return False


def look(suspect: Process, proc: Path = PROC) -> Sight:
    """Look at the process that has the suspect's pid here."""
    is_there = _is_there(suspect.pid)
    start_time, ended, others = None, False, None
    with suppress(OSError, ValueError, IndexError):
        fields = stat_fields(proc / str(suspect.pid))
        start_time, ended = int(fields[START_TIME]), fields[STATE] in ENDED
        if ended:
            threads = {int(thread.name) for thread in (proc / str(suspect.pid) / "task").iterdir()}
            others = None if suspect.pid not in threads else len(threads) > 1
    return Sight(
        seen_from=own_process(proc),
        is_there=is_there,
        start_time=start_time,
        first_thread_ended=ended,
        has_other_threads=others,
    )


def _is_there(pid: int) -> bool | None:
    try:
        os.close(os.pidfd_open(pid))
    except OSError as error:
        return False if error.errno == errno.ESRCH else None
    except (AttributeError, OverflowError):
        return None
    return True


def stat_fields(process: Path) -> list[bytes]:
    """The fields of its `stat` that come after its name."""
    return (process / "stat").read_bytes().rpartition(b")")[2].split()
