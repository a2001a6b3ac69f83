"""The differences between the databases that keep entities. One thread uses each of them."""

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from socket import SHUT_RDWR, socket
from time import monotonic, sleep
from typing import Any, ClassVar, Self

from tenure.base.names import shown_url
from tenure.errors import ConfigurationError
from tenure.fencing.database import BlockingDriver
from tenure.fencing.postgres_fence import PsycopgDriver
from tenure.fencing.sqlite_fence import Sqlite3Driver
from tenure.runtime import private_files

CONNECT_SECONDS = 5
RETRY_SECONDS = 0.01
LOCK_SECONDS = 3
DEADLOCK = "40P01"
"""PostgreSQL's code for it."""
_POOL = (
    "CREATE TABLE IF NOT EXISTS tenure_entity_pool (one INTEGER PRIMARY KEY, pool TEXT NOT NULL, "
    "kind TEXT NOT NULL, journal TEXT NOT NULL, past TEXT NOT NULL)"
)
_ALARMS = (
    "CREATE INDEX IF NOT EXISTS tenure_entity_alarms ON tenure_entity (place) "
    "WHERE alarm IS NOT NULL"
)


class Database(ABC):
    """A database. It connects when it is first used, and again after it was dropped."""

    tables: ClassVar[tuple[str, ...]]
    shared: ClassVar[str] = ""
    """The clause that makes a SELECT keep others from changing what it has read."""
    alone: ClassVar[str] = ""
    errors: type[Exception]
    """The errors that the driver raises."""
    driver: type[Sqlite3Driver | PsycopgDriver]

    def __init__(self, name: str) -> None:
        self.name = name
        self._connection: Any = None

    @contextmanager
    def transaction(self) -> Iterator[BlockingDriver]:
        """A transaction, which is kept at the end of the block, or not at all."""
        self.connect()
        driver: BlockingDriver = self.driver(self._connection)
        with driver.transaction():
            yield driver

    def connect(self) -> None:
        """Connect, where it is not connected."""
        if self._connection is None:
            self._connection = self._connect()

    @abstractmethod
    def _connect(self) -> Any:  # noqa: ANN401  # of the driver's own
        """A new connection."""

    def drop(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(self.errors):
                connection.close()

    def was_chosen(self, _: Exception) -> bool:
        """Whether the error says that two transactions waited for each other, and that this one
        was chosen to be undone. It may simply be run again.
        """
        return False

    def afresh(self) -> Self:
        """The same database, without a connection."""
        other = copy(self)
        vars(other)["_connection"] = None  # which is the other one's
        return other

    @abstractmethod
    def hang_up(self) -> None:
        """Called from another thread: end what waits for the database, where that can be done."""


class SqliteDatabase(Database):
    """A file of SQLite. A transaction that may write has the file for itself."""

    tables: ClassVar[tuple[str, ...]] = (
        _POOL,
        (
            "CREATE TABLE IF NOT EXISTS tenure_entity (key BLOB PRIMARY KEY, place BLOB NOT NULL, "
            "number INTEGER NOT NULL, step INTEGER NOT NULL, data BLOB NOT NULL, alarm REAL) "
            "WITHOUT ROWID"
        ),
        (
            "CREATE TABLE IF NOT EXISTS tenure_entity_item (key BLOB NOT NULL, name TEXT NOT NULL, "
            "place BLOB NOT NULL, data BLOB NOT NULL, PRIMARY KEY (key, name, place)) WITHOUT ROWID"
        ),
        _ALARMS,
    )
    errors = sqlite3.Error
    driver = Sqlite3Driver

    def __init__(self, path: str) -> None:
        super().__init__(f"sqlite:{path}")
        self._path = path

    def _connect(self) -> Any:  # noqa: ANN401
        with suppress(OSError, ValueError):  # SQLite says why
            private_files.make_file(Path(self._path))  # its log gets the same mode
        connection = sqlite3.connect(self._path, timeout=CONNECT_SECONDS, isolation_level=None)
        _keep_in_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def hang_up(self) -> None:
        """Do nothing: no thread can leave a disk that hangs."""


def _keep_in_wal(connection: sqlite3.Connection) -> None:
    """Raises SQLite's error if the file stays locked for as long as SQLite waits for other locks.

    SQLite waits for any lock but this one: of several processes that open a new file at once, some
    would fail.
    """
    until = monotonic() + CONNECT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > until:
                connection.close()
                raise
            sleep(RETRY_SECONDS)
        else:
            return


class PostgresDatabase(Database):
    """A database of PostgreSQL, by psycopg."""

    tables: ClassVar[tuple[str, ...]] = (
        "SELECT pg_advisory_xact_lock(6018927115)",  # otherwise one of two that create tables fails
        _POOL,
        (
            "CREATE TABLE IF NOT EXISTS tenure_entity (key BYTEA PRIMARY KEY, "
            "place BYTEA NOT NULL, number BIGINT NOT NULL, step BIGINT NOT NULL, "
            "data BYTEA NOT NULL, alarm DOUBLE PRECISION)"
        ),
        (
            "CREATE TABLE IF NOT EXISTS tenure_entity_item (key BYTEA NOT NULL, "
            "name TEXT NOT NULL, place BYTEA NOT NULL, data BYTEA NOT NULL, "
            "PRIMARY KEY (key, name, place))"
        ),
        _ALARMS,
    )
    shared: ClassVar[str] = " FOR SHARE"
    alone: ClassVar[str] = " FOR UPDATE"
    driver = PsycopgDriver

    def __init__(self, url: str) -> None:
        try:
            import psycopg  # noqa: PLC0415  # only who stores there needs it
        except ImportError:
            raise ConfigurationError(
                "a store in PostgreSQL needs psycopg, which is not installed: "
                "pip install 'tenure[postgres]'"
            ) from None
        try:
            parts = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error as error:
            raise ConfigurationError(
                f"{shown_url(url)} is not the URL of a PostgreSQL database: {_unquoted(error)}"
            ) from None
        _check_place(url, parts)
        super().__init__(f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}")
        self.errors = psycopg.Error
        self._connect_to = psycopg.connect
        self._url = url

    def _connect(self) -> Any:  # noqa: ANN401
        connection = self._connect_to(self._url, connect_timeout=CONNECT_SECONDS)
        # Whoever has a row locked keeps nobody waiting for other rows for long.
        connection.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
        connection.commit()
        return connection

    def was_chosen(self, error: Exception) -> bool:
        """As two processes do that both read the history, and begin the same journal."""
        return getattr(error, "sqlstate", None) == DEADLOCK

    def hang_up(self) -> None:
        """Break the connection: the driver, which waits for it, raises."""
        connection = self._connection
        if connection is not None:
            with suppress(OSError, self.errors), socket(fileno=os.dup(connection.fileno())) as it:
                it.shutdown(SHUT_RDWR)


def _unquoted(error: Exception) -> str:
    """What libpq says of a URL, without the part that it quotes, which may be a password."""
    return str(error).partition(': "')[0].strip()


def _check_place(url: str, parts: Mapping[str, object]) -> None:
    """Raise ConfigurationError where libpq takes a part of the password for the host, the port or
    the database, which are shown and logged.
    """
    host, ports = str(parts.get("host", "")), str(parts.get("port", ""))
    authority, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    is_numbered = all(each.isdecimal() for each in ports.split(",") if each)
    if authority.count("@") > 1 or "@" in host + path or not is_numbered:
        raise ConfigurationError(
            "the URL of the PostgreSQL database cannot be taken apart: write it like "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, and in these names each @ as %40, "
            "each / as %2F and each : as %3A"
        )
