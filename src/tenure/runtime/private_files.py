"""Files that only the user of this process may read, whatever the umask is."""

import logging
import os
import stat
from contextlib import suppress
from pathlib import Path

MODE = 0o600
DIRECTORY_MODE = 0o700
_log = logging.getLogger("tenure.transport")


def make_file(path: Path) -> None:
    """Make an empty file, unless there is one. Raises OSError."""
    with suppress(FileExistsError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
        os.fchmod(handle, MODE)  # the umask may have taken even more
        os.close(handle)


def overwrite(path: Path, data: bytes) -> None:
    """Write a file anew, durably. Raises OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, MODE)
        file.write(data)
        file.flush()
        os.fsync(handle)


def make_directory(path: Path) -> None:
    """Make a directory, unless there is one. Raises OSError."""
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(DIRECTORY_MODE)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        path.chmod(DIRECTORY_MODE)


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
