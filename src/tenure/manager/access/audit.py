"""The audit: who changed what, from where, and with what result.

The audit writes a line before a change is made, and another with the answer. A change that cannot
be written down is not made: an audit exists to prevent changes that nobody can be asked about.
"""

import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from tenure.errors import ConfigurationError

BODY_CHARACTERS = 4096
"""How much of a body is kept: more are the split points of a pool, which its table has."""
MODE = 0o600

_log = logging.getLogger("tenure.audit")


class AuditEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: a change that is about to be made, or, with a status, its result."""

    at: str
    number: int
    """The number of the change, by this manager since its start; both lines of a change have it."""
    who: str
    role: str
    origin: str
    """The address that the request came from."""
    method: str
    path: str
    body: str = ""
    status: int | None = None


class Audit:
    """Writes to the log `tenure.audit`, and to a file if one is named."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._number = 0
        self._file: BinaryIO | None = None
        self._is_cut = False
        """Whether the file ends within a line."""

    def open(self) -> None:
        """Open the file. Raises ConfigurationError if it cannot be written."""
        if self._path is None:
            return
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, MODE)
        except OSError as error:
            raise ConfigurationError(
                f"the audit log {self._path} cannot be written: {error.strerror or error}; "
                "name another file with --audit-log"
            ) from error
        self._file = os.fdopen(handle, "ab", buffering=0)

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
            path=path,
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
            self._file = None

    def _write(self, entry: AuditEntry) -> None:
        line = msgspec.json.encode(entry)
        _log.info("%s", line.decode())
        if self._file is None:
            return
        rest = b"\n" * self._is_cut + line + b"\n"
        while rest:  # a disk that is nearly full takes a part, and no more the next time
            written = self._file.write(rest)
            rest = rest[written:]
            self._is_cut = bool(rest)


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
    return json.loads(body) if body else {}
