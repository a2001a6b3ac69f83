"""The audit: who changed what, from where, and with what result.

The audit writes a line before a change is made, and another with the answer. A change that cannot
be written down is not made: an audit exists to prevent changes that nobody can be asked about.

What a client can have written is bounded: in a line, in lines per second, and in files.
"""

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from tenure.base.instants import Instant
from tenure.manager.access.audit_file import AuditFile
from tenure.transport.rate_bound import RateBound

BODY_CHARACTERS = 4096
"""How much of a body is kept: more are the split points of a pool, which its table has."""
READABLE_BYTES = 1 << 16
"""The most bytes of a body that are read as JSON for it: more would only take time."""
PATH_CHARACTERS = 1024
"""How much of a path is kept: two names of 200 characters take 600 in it, at three for a byte."""
CHANGES_A_SECOND = 50
"""The changes a second of one token; a person makes one, and a program that sets up pools ten."""
CHANGES_AT_ONCE = 1000
"""The changes at once of one token: as many as there may be pools to set up."""

_log = logging.getLogger("tenure.audit")


class AuditEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: a change that is about to be made, or, with a status, its result."""

    at: str
    number: int
    """The number of the change, by this manager since its start; both lines of a change have it."""
    who: str
    role: str
    """The role that was proven; empty if this manager asks for no tokens."""
    origin: str
    """The address that the request came from."""
    method: str
    path: str
    body: str = ""
    status: int | None = None


class Audit:
    """Writes to the log `tenure.audit`, and to a file if one is named."""

    def __init__(self, path: Path | None, clock: Callable[[], Instant]) -> None:
        self._file = None if path is None else AuditFile(path)
        self._clock = clock
        self._number = 0
        self._rates: dict[str, RateBound] = {}
        """By the tokens that have changed something: only proven ones get here."""

    def open(self) -> None:
        """Open the file. Raises ConfigurationError if it cannot be written."""
        if self._file is not None:
            self._file.open()

    def allows(self, who: str) -> bool:
        """Whether that token may change something now; if so, count it."""
        rate = self._rates.get(who)
        if rate is None:
            rate = self._rates[who] = RateBound(CHANGES_A_SECOND, CHANGES_AT_ONCE)
        return rate.allows(self._clock())

    def begins(  # the columns of a line
        self, *, who: str, role: str, origin: str, method: str, path: str, body: bytes
    ) -> AuditEntry:
        """Write down that somebody is about to change something. Raises OSError if that fails."""
        self._number += 1
        entry = AuditEntry(
            at=_now(),
            number=self._number,
            who=who,
            role=role,
            origin=origin,
            method=method,
            path=path[:PATH_CHARACTERS],
            body=_shown(body),
        )
        self._write(entry)
        return entry

    def ended(self, entry: AuditEntry, status: int) -> None:
        """This is the result. The change is made, so a full disk is only reported."""
        try:
            self._write(msgspec.structs.replace(entry, at=_now(), body="", status=status))
        except OSError as error:
            _log.error("the outcome %s of change %s: %s", status, entry.number, error)

    def close(self) -> None:
        """Stop writing."""
        if self._file is not None:
            self._file.close()

    def _write(self, entry: AuditEntry) -> None:
        line = msgspec.json.encode(entry)
        if self._file is not None:
            self._file.write(line)
        _log.info("%s", line.decode())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _shown(body: bytes) -> str:
    """A body on one line, cut: a client may send anything."""
    try:
        text = json.dumps(_parsed(body), ensure_ascii=True)
    except (ValueError, RecursionError):
        text = ascii(body[:BODY_CHARACTERS].decode(errors="replace"))
    return text[:BODY_CHARACTERS]


def _parsed(body: bytes) -> Any:  # noqa: ANN401
    if len(body) > READABLE_BYTES:
        raise ValueError("too long to be read for a line")
    return json.loads(body) if body else {}
