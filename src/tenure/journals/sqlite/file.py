"""The file of an SQLite journal: made whole or not at all, and read through before it is used.

A new journal is written in a directory of its own, synced, and only then linked to its name, which
fails if another manager was first. So a manager that is killed while it makes a journal leaves none
behind, two managers that start together use the same one, and an empty file is damage, not a
beginning.

An existing journal is first opened for reading only, so that a refusal comes before anything of it
has changed: opening it for writing could fold its write-ahead log into it.

The file is opened only through SQLite. Closing any other descriptor of it would drop the locks of
all connections of this process: POSIX locks belong to the process, not to the descriptor.
"""

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tenure.errors import (
    ConfigurationError,
    JournalDamaged,
    JournalError,
    JournalTooNew,
    JournalUnwritable,
)
from tenure.journals.contract import draw_identity
from tenure.journals.sqlite.errors import replaced, translated, unwritable
from tenure.journals.sqlite.filesystems import refuse_shared
from tenure.journals.sqlite.rows import TABLES, begin, damaged, history
from tenure.protocol.log.journal import R, S
from tenure.runtime import private_files
from tenure.wire.journal_codec import JournalCodec

APPLICATION_ID: Final = 0x6C686C64
"""The number in the file's header that tells to which program it belongs."""
VERSION: Final = 1
"""The version of the tables; their contents have a format of their own."""

BUSY_SECONDS: Final = 1.0
"""How long to wait for another process's write: longer than a sync takes on a disk worth using,
shorter than a leader can afford to wait for its beat."""


class FileWatch:
    """Notices that other files now have the names of an open journal's files.

    It watches all three: without its write-ahead log a journal forgets what it acknowledged, and
    two managers with different shared-memory files do not see each other.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        names = [f"{path}{end}" for end in ("", "-wal", "-shm")]
        self._seen = [(name, _file_id(name)) for name in names]
        self.check()

    def check(self) -> None:
        """Raise JournalDamaged if a file was deleted or replaced."""
        for name, seen in self._seen:
            if seen is None or _file_id(name) != seen:
                raise replaced(self._path)


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """A connection that begins no transaction by itself, and makes no file but in mode "rwc"."""
    uri = f"file:{quote(str(path))}?mode={mode}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_SECONDS)


def prepare(given: Path, codec: JournalCodec[R, S]) -> Path:
    """Make the journal `given` if it is missing, otherwise check it; its real path.

    Raises ConfigurationError or JournalError, and then has changed nothing.
    """
    try:
        path = given.expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise ConfigurationError(f"no journal can be at {given}: {error}") from error
    refuse_shared(path.parent)
    with _system_errors(path):
        if not _exists(path):
            _make(path, codec.encode_state(codec.empty))
    _check_permissions(path)
    private_files.warn_of_readers(path, "the secrets of the managers")
    private_files.warn_of_writers(path.parent, "the journal of the managers")
    _read_through(path, codec)
    return path


def _read_through(path: Path, codec: JournalCodec[R, S]) -> None:
    had_log = Path(f"{path}-wal").exists()
    try:
        with translated(path), closing(connect(path, "ro")) as connection:
            _inspect(connection, path)
            history(connection, path, codec)
    except JournalError:
        if not had_log:  # reading has made an empty one, which whoever closes last removes
            with suppress(sqlite3.Error), closing(connect(path)) as connection:
                connection.execute("SELECT * FROM sqlite_master").fetchone()
        raise


def _exists(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise ConfigurationError(f"{path} is not a file; name one, such as {path}/journal.sqlite")
    return True


def _check_permissions(path: Path) -> None:
    effective = os.access in os.supports_effective_ids
    for place, wanted in ((path, os.R_OK | os.W_OK), (path.parent, os.W_OK | os.X_OK)):
        if not os.access(place, wanted, effective_ids=effective):
            raise unwritable(path, f"no permission to write {place}")


def _inspect(connection: sqlite3.Connection, path: Path) -> None:
    def ask(question: str) -> object:
        row = connection.execute(question).fetchone()
        return row[0] if row else None

    if ask("PRAGMA application_id") != APPLICATION_ID:
        raise JournalDamaged(
            f"{path} is not a journal of tenure, or no longer one; nothing was touched. Name "
            "another path, or move that file away"
        )
    version = ask("PRAGMA user_version")
    if not isinstance(version, int) or version < 1:
        raise damaged(path, f"it is of version {version}")
    if version > VERSION:
        raise JournalTooNew(
            f"the journal {path} is of version {version}, and this tenure reads {VERSION}: run "
            "the tenure that wrote it, or a later one; nothing was touched"
        )
    found = ask("PRAGMA quick_check(1)")
    if found != "ok":
        raise damaged(path, str(found))
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    missing = sorted(TABLES.keys() - tables)
    if missing:
        raise damaged(path, f"it has no table {' and no table '.join(missing)}")


def _make(path: Path, state: bytes) -> None:
    _make_directory(path.parent)
    place = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        draft = place / "journal"
        with translated(path):
            _write(draft, state)
        private_files.sync(draft)
        try:
            os.link(draft, path)
        except FileExistsError:
            return  # another manager was first, and has made it whole
        private_files.sync(path.parent)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _write(draft: Path, state: bytes) -> None:
    with closing(connect(draft, "rwc")) as connection:
        draft.chmod(0o600)  # it holds the nonces that messages are sealed with
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("PRAGMA journal_mode = WAL")
        begin(connection, draw_identity(), state)


def _make_directory(directory: Path) -> None:
    if directory.is_dir():
        return
    _make_directory(directory.parent)
    directory.mkdir(private_files.PARENT_MODE, exist_ok=True)
    private_files.sync(directory.parent)


def _file_id(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)  # noqa: PTH116 - as fast as it gets: this runs at every write
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _system_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise JournalUnwritable(
            f"the journal {path} cannot be made ({error}). The manager's user needs to write its "
            "directory, on a disk with space and with hard links: see to that, or name another path"
        ) from error
