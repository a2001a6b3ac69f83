"""Journals on disks as they are in the world, for the tests of this folder."""

import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tenure.journals.sqlite.store import SqliteStore
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.log.journal import Mandate, Seat
from tenure.wire.lease_records import LEASE_RECORDS

NOBODY = 65534  # a user without rights, on every Unix
SEAT = Seat(1, 0, "http://a", 1_625_000_000)


@contextmanager
def opened(path: Path) -> Iterator[SqliteStore[AnyRecord, State]]:
    store = SqliteStore(path, LEASE_RECORDS)
    try:
        yield store
    finally:
        store.close()


def first(store: SqliteStore[AnyRecord, State], leadership: int = 1) -> Mandate:
    """Return a mandate of the first leadership in the journal, or of another; also if the journal
    is unusable.
    """
    return Mandate(store._journal, leadership)


def execute(path: Path, statement: str, *values: object) -> None:
    """Do what somebody might do to the journal with another program."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


@contextmanager
def without_rights() -> Iterator[None]:
    """Become a user who is bound by permissions: root is not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Limit files to this size, as a full disk does: the system refuses to make any file longer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
