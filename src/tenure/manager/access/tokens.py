"""The file of tokens: a line of JSON for each, with a hash in place of the token.

A token is 256 random bits, so one round of a fast hash is enough: nobody can guess what to hash. A
reader of the file cannot use it. Several tokens of one role are valid at once, so that one can be
replaced while the other is still in use; the file is read again when it changes.

Commands replace the file as a whole, so a manager sees the old one or the new. An editor may write
it in place: for a moment it is empty, or its last lines are missing. That would revoke valid
tokens, so a file that was written in place is read only once it has stayed the same for a second.
"""

import fcntl
import hashlib
import hmac
import logging
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from tenure.errors import MALFORMED, ConfigurationError
from tenure.manager.access.roles import AccessRole, Permit
from tenure.manager.pool_spec import check_name
from tenure.runtime import private_files

PREFIX = "tenure"
SCHEME = "Bearer "
ID_BYTES = 4
SECRET_BYTES = 32
NOTE_CHARACTERS = 200
SETTLED_SECONDS = 1.0
"""How long a file that is written in place stays the same before it is believed to be whole."""
MODE = 0o600
"""The mode of a new file: whoever can write it can do everything."""

_log = logging.getLogger("tenure.manager")


class TokenEntry(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One token, as the file has it."""

    id: str
    sha256: str
    role: AccessRole
    created: str
    pool: str = ""
    note: str = ""

    @property
    def permit(self) -> Permit:
        """The rights that the token gives."""
        return Permit(self.id, self.role, self.pool)


class NewToken(NamedTuple):
    """A new token: its text, which is stored nowhere, and its entry in the file."""

    text: str
    entry: TokenEntry


def new_token(role: AccessRole, pool: str = "", note: str = "") -> NewToken:
    """Draw a token. Raises ConfigurationError if the role and the pool do not fit."""
    if role.is_of_a_pool and not pool:
        raise ConfigurationError(f"a token for the role {role} is for one pool: name it")
    if pool and not role.is_of_a_pool:
        raise ConfigurationError(f"the role {role} is for all pools: leave the pool {pool!r} out")
    if pool:
        check_name(pool)
    if len(note) > NOTE_CHARACTERS or not note.isprintable():
        raise ConfigurationError(f"a note is at most {NOTE_CHARACTERS} printable characters")
    which = secrets.token_hex(ID_BYTES)
    text = f"{PREFIX}_{which}_{secrets.token_urlsafe(SECRET_BYTES)}"
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return NewToken(text, TokenEntry(which, _hash(text), role, created, pool, note))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class TokenFile:
    """The tokens that a manager takes, or that a command changes."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._seen: _Stamp | None = None
        self._changing: tuple[_Stamp, float] | None = None
        """The look of a file that is being written in place, and since when."""
        self._entries: dict[str, TokenEntry] = {}

    def load(self) -> None:
        """Read it. Raises ConfigurationError, which names the file and the line."""
        try:
            with self.path.open("rb") as file:
                found = os.fstat(file.fileno())
                data = file.read()
        except OSError as error:
            raise self._unreadable(error) from error
        self._entries = _parsed(self.path, data)
        self._seen, self._changing = _Stamp.of(found), None

    def _unreadable(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(
            f"the file of tokens {self.path} cannot be read: {error.strerror or error}; "
            f"make a token with `tenure token new --role admin --file {self.path}`"
        )

    def load_if_changed(self) -> bool:
        """Read it again if it changed. An unreadable file leaves the tokens as they were."""
        try:
            stamp = _Stamp.of(self.path.stat())
            if stamp == self._seen or not self._is_whole(stamp):
                return False
            self.load()
        except (ConfigurationError, OSError) as error:
            _log.warning("going on with the tokens that there were: %s", error)
            return False
        _log.info("read %s tokens again from %s", len(self._entries), self.path)
        return True

    def _is_whole(self, stamp: "_Stamp") -> bool:
        if self._seen is None or stamp.file != self._seen.file:
            return True  # the file was replaced
        if self._changing is None or self._changing[0] != stamp:
            self._changing = stamp, self._clock()
        return self._clock() - self._changing[1] >= SETTLED_SECONDS

    @property
    def entries(self) -> tuple[TokenEntry, ...]:
        """All, in the order of the file."""
        return tuple(self._entries.values())

    @property
    def oldest(self) -> str:
        """When the oldest was made; empty if there is none."""
        return min((each.created for each in self._entries.values()), default="")

    def permit(self, text: str) -> Permit | None:
        """The rights that a token gives; None if it is not one of these."""
        _, _, rest = text.partition("_")
        entry = self._entries.get(rest.partition("_")[0])
        if entry is None:
            return None
        return entry.permit if hmac.compare_digest(entry.sha256, _hash(text)) else None

    def shown(self, header: str) -> Permit | None:
        """The rights of the token in an `Authorization` header, by the file as it is now."""
        self.load_if_changed()
        return self.permit(header[len(SCHEME) :]) if header.startswith(SCHEME) else None

    def has(self, permit: Permit) -> bool:
        """Whether a token that was taken once still counts."""
        entry = self._entries.get(permit.who)
        return entry is not None and entry.permit == permit

    # --- changing it ---

    def add(self, entry: TokenEntry) -> None:
        """Add a token; make the file if it does not exist."""
        self._make()
        with self._alone():
            self.load()
            self._entries[entry.id] = entry
            self._write()

    def remove(self, which: str) -> TokenEntry:
        """Take a token out. Raises ConfigurationError if it is not there."""
        with self._alone():
            self.load()
            entry = self._entries.pop(which, None)
            if entry is None:
                there = ", ".join(self._entries) or "none"
                raise ConfigurationError(f"{self.path} has no token {which!r}; there are: {there}")
            self._write()
        return entry

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two commands at once would each write what they read, and one token would be lost. The
        lock is the file's: the directory's could be held for ever by whoever may look into it. The
        file is replaced by each command, so the lock counts if it is still that file's.
        """
        while True:
            with self._opened() as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if self._is_in_place(file):
                    yield
                    return

    def _opened(self) -> IO[bytes]:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise self._unreadable(error) from error

    def _is_in_place(self, file: IO[bytes]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self.path.stat())
        except OSError:
            return False

    def _make(self) -> None:
        try:
            private_files.make_file(self.path)
        except OSError as error:
            raise self._not_written(error) from error

    def _write(self) -> None:
        """Write the file in one go: a manager that reads it meanwhile sees the old or the new.
        Whoever may read the old file may read the new one: a manager often runs as a user of its
        own.
        """
        lines = (msgspec.json.encode(entry) + b"\n" for entry in self._entries.values())
        try:
            handle, name = tempfile.mkstemp(prefix=self.path.name, dir=self.path.parent)
        except OSError as error:
            raise self._not_written(error) from error
        try:
            with os.fdopen(handle, "wb") as file:
                self._give_rights(handle)
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.path)
        except OSError as error:
            Path(name).unlink(missing_ok=True)
            raise self._not_written(error) from error

    def _give_rights(self, handle: int) -> None:
        try:
            before = self.path.stat()
        except FileNotFoundError:
            os.fchmod(handle, MODE)
            return
        now = os.fstat(handle)
        if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
            os.fchown(handle, before.st_uid, before.st_gid)
        os.fchmod(handle, stat.S_IMODE(before.st_mode))

    def _not_written(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(
            f"the file of tokens {self.path} cannot be written: {error.strerror or error}; "
            "nothing was changed"
        )


class _Stamp(NamedTuple):
    """The stamp by which a change of the file is noticed."""

    file: tuple[int, int]
    size: int
    written_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> "_Stamp":
        return cls((found.st_dev, found.st_ino), found.st_size, found.st_mtime_ns)


def _parsed(path: Path, data: bytes) -> dict[str, TokenEntry]:
    entries: dict[str, TokenEntry] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            entry = msgspec.json.decode(line, type=TokenEntry)
        except MALFORMED as error:
            raise ConfigurationError(
                f"{where} is not a token: {error}; `tenure token new` writes such lines"
            ) from error
        if entry.role.is_of_a_pool != bool(entry.pool):
            raise ConfigurationError(f"{where}: the role {entry.role} and the pool do not fit")
        if entry.id in entries:
            raise ConfigurationError(f"{where}: the id {entry.id} stands there twice")
        entries[entry.id] = entry
    return entries
