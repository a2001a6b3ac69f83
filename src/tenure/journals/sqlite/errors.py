"""What SQLite's errors mean for a journal, in one place.

There are three kinds. A *damaged* journal cannot be mended by trying again, so the manager stops.
An operator must change one that is *not writable*, perhaps while the manager runs: it tries again.
A *locked* one becomes free without help.

A failed fsync counts as damage. The kernel reports it once, drops the pages, and the next fsync
succeeds without them: after that, this process can rely on none of its writes.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenure.errors import JournalDamaged, JournalError, JournalUnwritable
from tenure.wire.journal_codec import WAY_OUT

_PRIMARY = 0xFF  # an extended code carries its primary one in the lowest byte

_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_FORBIDDEN = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
_WRITE_REFUSED = {  # the disk said no before it took anything: a quota, a limit, memory to map
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
    sqlite3.SQLITE_IOERR_LOCK,
    sqlite3.SQLITE_IOERR_SHMLOCK,
    sqlite3.SQLITE_IOERR_NOMEM,
}


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about the journal at `path` into ours."""
    try:
        yield
    except sqlite3.Error as error:
        ours = translation(error, path)
        if ours is None:
            raise
        raise ours from error


def translation(error: sqlite3.Error, path: Path) -> JournalError | None:
    """Our error for SQLite's; None for one that is not about the file, but a mistake of ours."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None or code == sqlite3.SQLITE_MISUSE:
        return None
    if code & _PRIMARY in _LOCKED:
        return JournalError(
            f"the journal {path} is locked ({error}): another process is in the middle of a write. "
            "If it was stopped there, let it go on, or kill it"
        )
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        return replaced(path)
    if code == sqlite3.SQLITE_FULL or code in _WRITE_REFUSED:
        return JournalUnwritable(
            f"the journal {path} cannot be written ({error}), and nothing was: there is no space, "
            "or a quota or limit on file sizes is reached. Make room: a manager that runs goes on "
            "then by itself"
        )
    if code & _PRIMARY in _FORBIDDEN:
        return unwritable(path, str(error))
    return JournalDamaged(f"the journal {path} cannot be relied on: {error}. {WAY_OUT}")


def unwritable(path: Path, why: str) -> JournalUnwritable:
    """The error for a journal that this process may not write."""
    return JournalUnwritable(
        f"the journal {path} cannot be written ({why}); nothing was touched. The manager's user "
        "needs to write the file and its directory: change their permissions, or name another path"
    )


def replaced(path: Path) -> JournalDamaged:
    """The error for files that were deleted or replaced while the journal was open.

    Not `Deposed`: a deposed manager stands by on the journal it has open, and would lead again, on
    files that no other manager sees.
    """
    return JournalDamaged(
        f"the journal {path} was deleted or replaced while it was in use. Stop every manager of "
        "it, see which files are there, and start them again"
    )
