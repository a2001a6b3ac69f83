"""Files that only the user of this process may read, whatever the umask is, and that no other user
of the machine can stand in for.
"""

import logging
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO

MODE = 0o600
DIRECTORY_MODE = 0o700
PARENT_MODE = 0o755
"""The mode of a directory above one of ours: whoever may write there can replace ours."""
_log = logging.getLogger("tenure.transport")


def make_file(path: Path) -> None:
    """Make an empty file, unless there is one. Raises OSError."""
    with suppress(FileExistsError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
        os.fchmod(handle, MODE)  # the umask may have taken even more
        os.close(handle)


def overwrite(path: Path, data: bytes) -> None:
    """Write a file anew, durably. Raises OSError.

    It is another file than before: somebody else may have made that, or hold it open.
    """
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, MODE)
        file.write(data)
        file.flush()
        os.fsync(handle)


def replace(path: Path, data: bytes) -> None:
    """Put another file in the place of this one: it exists whole or not at all, whenever the power
    fails. Raises OSError.
    """
    beside = path.with_name(f"{path.name}.new")
    try:
        overwrite(beside, data)
        beside.replace(path)
        sync(path.parent)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise


def sync(path: Path) -> None:
    """Have a file, or the names in a directory, on the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_lock(path: Path) -> IO[bytes]:
    """Open a file to lock it; make it if there is none. Raises OSError.

    Whoever may read a file can lock it for ever, so nobody else may.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, MODE)
    try:
        os.fchmod(handle, MODE)
    except OSError:
        os.close(handle)
        raise
    return os.fdopen(handle, "r+b", buffering=0)


def make_directory(path: Path) -> None:
    """Make a directory, unless there is one. Raises OSError."""
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir(PARENT_MODE, exist_ok=True)
    try:
        path.mkdir(DIRECTORY_MODE)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        path.chmod(DIRECTORY_MODE)


def warn_of_writers(directory: Path, what: str) -> None:
    """Log if other users of this host can put files of theirs in the place of those in a directory.
    It is not refused, for the same reason as in `warn_of_readers`.
    """
    with suppress(OSError):
        found = directory.stat()
        mode = stat.S_IMODE(found.st_mode)
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            _log.warning(
                "every user of this host may replace %s in %s (mode %o): chmod o-w %s",
                what,
                directory,
                mode,
                directory,
            )
        elif found.st_uid not in (0, os.geteuid()):
            _log.warning(
                "the user %d of this host may replace %s in %s, which is theirs: chown it",
                found.st_uid,
                what,
                directory,
            )


def warn_of_readers(path: Path, what: str) -> None:
    """Log whom a secret file lets read it, if that is everybody on this host.

    It is not refused, unlike by ssh: what mounts secrets, such as Kubernetes, often makes them so,
    in a place to which nobody else comes.
    """
    with suppress(OSError):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & stat.S_IROTH:
            _log.warning(
                "every user of this host may read %s in %s (mode %o): chmod 600 %s",
                what,
                path,
                mode,
                path,
            )
