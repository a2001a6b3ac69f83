"""The directory of a store: checks that it can be one, and translates RocksDB's errors about it.

A store that cannot be opened must not be touched. RocksDB makes a new database if it finds no
`CURRENT`, even beside the files of a database that has lost it. It also reads no log in a directory
that nobody names, and so forgets acknowledged writes. So our directory has a file that says that it
is a store, in which format, and where its log is; and a directory of logs says to which store it
belongs. A directory that does not fit is refused before RocksDB sees it.
"""

import fcntl
import os
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from tenure.columns.engines.contract import EngineBusy
from tenure.errors import (
    MALFORMED,
    ConfigurationError,
    StoreDamaged,
    StoreError,
    StoreInUse,
    StoreTooNew,
    StoreUnwritable,
)
from tenure.runtime import private_files

FORMAT = 1
MARK = "tenure-store.json"
LOG_MARK = "tenure-log.json"
LOCK = f".{MARK}.lock"
"""Whoever makes the store holds it: the directory could be locked by all who may look into it."""


class StoreMark(msgspec.Struct, frozen=True):
    """The record in a directory about its store."""

    format: int
    identity: str
    """Drawn when the store was made. The directory of its log has the same."""
    log: str = ""
    """The directory of the commit log; empty if it is the same one."""
    store: str = ""
    """The directory of the store whose log this is: a copy of a store's directory has its identity,
    too.
    """


@cache
def rocksdict() -> Any:  # noqa: ANN401 - a module
    """The Python binding of RocksDB. Raises ConfigurationError if it is not installed."""
    try:
        import rocksdict as found  # noqa: PLC0415 - an extra
    except ImportError:
        raise ConfigurationError(
            "a store in a directory needs rocksdict: pip install 'tenure[columns]'"
        ) from None
    return found


def prepare(path: Path, log: Path | None) -> None:
    """Prepare a directory in which RocksDB may open or make the store. An existing store is
    checked, and not touched. Raises StoreError, and ConfigurationError for a directory of something
    else.
    """
    for each in (path, log):
        if each is not None and each.exists() and not each.is_dir():
            raise ConfigurationError(f"{each} is not a directory; name one for the store")
    if _is_blank(path) and _make(path, log):
        return
    said = read_mark(path)
    where = Path(said.log) if said.log else None
    if where != (log and log.resolve()):
        raise ConfigurationError(
            f"the store {path} has its commit log in {where or path}, and would lose what is "
            f"only there. Open it with {f'log={said.log!r}' if where else 'no log=...'}; if the "
            f"log was moved, correct the line in {path / MARK}"
        )
    if where is not None:
        _check_log(path, where, said)
    if not (path / "CURRENT").is_file() and _has_entries(path, where):
        raise StoreDamaged(
            f"the store {path} has lost its file CURRENT, which names the others; nothing was "
            "touched. Restore a backup: tenure columns restore"
        )
    for each in (path, where):
        if each is not None and not os.access(each, os.R_OK | os.W_OK | os.X_OK):
            raise unwritable(path, f"there is no permission to write {each}")


def _check_log(path: Path, log: Path, said: StoreMark) -> None:
    found = _read(log / LOG_MARK)
    if found is None or found.identity != said.identity:
        raise StoreDamaged(
            f"{log} is not the commit log of the store {path}; nothing was touched. Is its disk "
            "mounted? Otherwise restore a backup: tenure columns restore"
        )
    if found.store != str(path.resolve()):
        raise StoreDamaged(
            f"{log} is the commit log of the store {found.store}, and {path} looks like a copy of "
            "that: opened, it would take the log from it. To copy a store: tenure columns backup. "
            f"If the store itself was moved here, correct the line in {log / LOG_MARK}"
        )


def _has_entries(path: Path, log: Path | None) -> bool:
    """Whether anything was ever written; a store that was never completed is made again."""
    places = [path] if log is None else [path, log]
    return any(any(each.glob(kind)) for each in places for kind in ("*.sst", "*.log"))


def read_mark(path: Path) -> StoreMark:
    """What the directory says about itself. Raises if it is not a store that this version of tenure
    reads.
    """
    said = _read(path / MARK)
    if said is None:
        raise ConfigurationError(
            f"{path} is not empty, and not a store of tenure: there is no file {MARK} in it. Name "
            "another directory"
        )
    if said.format > FORMAT:
        raise StoreTooNew(
            f"the store {path} is of format {said.format}, and this tenure reads {FORMAT}: run the "
            "tenure that wrote it, or a later one; nothing was touched"
        )
    return said


def _read(file: Path) -> StoreMark | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=StoreMark)
    except FileNotFoundError:
        return None
    except MALFORMED as error:
        raise StoreDamaged(
            f"{file} cannot be read ({error}); nothing was touched. Take that file from a backup"
        ) from None


def _is_blank(path: Path) -> bool:
    return not path.exists() or all(each.name in (f".{MARK}", LOCK) for each in path.iterdir())


def _make(path: Path, log: Path | None) -> bool:
    """Write the marks first: a directory without a mark is never touched again. False if another
    process has made the store meanwhile.

    The mark of the directory comes last, so that an incomplete store is made again.
    """
    private_files.make_directory(path)
    private_files.warn_of_writers(path, "the store")
    with private_files.open_lock(path / LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_blank(path):
            return False
        _mark(path, log)
    return True


def _mark(path: Path, log: Path | None) -> None:
    said = StoreMark(FORMAT, uuid4().hex, "" if log is None else str(log.resolve()))
    if log is not None:
        if log.exists() and any(each.name not in _of_making(LOG_MARK) for each in log.iterdir()):
            raise ConfigurationError(
                f"{log} is not empty: name a directory for the commit log of this store alone"
            )
        _write(log, LOG_MARK, msgspec.structs.replace(said, store=str(path.resolve())))
    _write(path, MARK, said)


def _of_making(name: str) -> tuple[str, str]:
    """The names of a mark's file, while it is written and after."""
    return name, f".{name}"


def mark_backup(path: Path) -> None:
    """Mark a backup as a store of its own, with its log beside its files."""
    _write(path, MARK, StoreMark(FORMAT, uuid4().hex))


def _write(directory: Path, name: str, said: StoreMark) -> None:
    """Write the mark so that it exists whole or not at all, whenever the power fails."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = directory / f".{name}"
    with draft.open("wb") as file:
        file.write(msgspec.json.encode(said) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.rename(directory / name)
    private_files.sync(directory)


class StoreMoved(StoreUnwritable):
    """The directory of an open store was removed or replaced: to wait for room would not help."""


class DirectoryWatch:
    """Notices that the directory of an open store, or that of its log, was removed or replaced.

    Open files can still be written after they are removed, or moved with their directory: writes
    are synced and acknowledged, but nobody who opens the store later finds them.
    """

    def __init__(self, path: Path, log: Path | None) -> None:
        marks = [path / MARK] if log is None else [path / MARK, log / LOG_MARK]
        self._marks = {each: _directory_with(each) for each in marks}

    def check(self) -> None:
        """Raise StoreMoved if one of them is another directory now, or missing."""
        for mark, before in self._marks.items():
            if before is None or _directory_with(mark) != before:
                raise StoreMoved(
                    f"{mark.parent} is no longer the directory that this store has open: it was "
                    "removed, moved or replaced, and what was written since is not in it. Put it "
                    "back, and open the store again"
                )


def _directory_with(mark: Path) -> tuple[int, int] | None:
    """The identity of the directory that has the mark; None if there is no mark."""
    try:
        mark.stat()
        found = mark.parent.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Translated:
    """Within this context, errors of RocksDB and of the system become those of tenure."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.raise_from(error)

    def raise_from(self, error: BaseException) -> None:
        """Raise what an error becomes, if it becomes anything; for what is called so often that
        entering costs.
        """
        if isinstance(error, OSError):
            raise unwritable(self._path, str(error)) from error
        if type(error) is Exception:  # the only exception that the binding raises
            raise _translated(self._path, str(error)) from error


def _translated(path: Path, said: str) -> StoreError | EngineBusy:
    if "lock hold by current process" in said or "While lock file" in said:
        return StoreInUse(
            f"the store {path} is open already, in this process or another. One process has a "
            "directory at a time: close it there first"
        )
    if "incomplete" in said.lower() and "stall" in said.lower():
        return EngineBusy(said)
    if said.startswith("IO error") and not any(each in said for each in _LOST):
        return unwritable(path, said)
    return StoreDamaged(
        f"the store {path} is damaged: {said}. What is there was not changed. Restore a backup: "
        "tenure columns restore"
    )


_LOST = ("No such file", "Input/output error")
"""What the system says of a file that is gone, and of one that the disk cannot read."""


def unwritable(path: Path, said: str) -> StoreUnwritable:
    """The error to raise if the system refuses."""
    return StoreUnwritable(
        f"the store {path} cannot be used: {said}. Its user needs to write there, on a disk with "
        "space"
    )
