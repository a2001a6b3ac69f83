"""The databases that keep entities: where they differ. Each is used by one thread."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, Protocol

from tenure.errors import ConfigurationError

CONNECT_SECONDS = 5
_POOL = (
    "CREATE TABLE IF NOT EXISTS tenure_entity_pool (one INTEGER PRIMARY KEY, pool TEXT NOT NULL, "
    "kind TEXT NOT NULL, journal TEXT NOT NULL, past TEXT NOT NULL)"
)
_ALARMS = (
    "CREATE INDEX IF NOT EXISTS tenure_entity_alarms ON tenure_entity (place) "
    "WHERE alarm IS NOT NULL"
)


class Database(Protocol):
    """One of them. It connects when it is first used, and anew after it was dropped."""

    name: str
    tables: ClassVar[tuple[str, ...]]
    shared: ClassVar[str]
    """What makes a SELECT keep others from changing what it has read."""
    alone: ClassVar[str]

    def sql(self, statement: str) -> str:
        """The statement, with this driver's marks for values."""
        ...

    def errors(self) -> type[Exception]:
        """What the driver raises."""
        ...

    def transaction(self) -> Any:  # noqa: ANN401  # a context manager of a cursor
        """Kept at the end of the block, or nothing of it."""
        ...

    def drop(self) -> None:
        """Close the connection, if there is one."""
        ...


class SqliteDatabase:
    """A file."""

    tables: ClassVar[tuple[str, ...]] = (
        _POOL,
        (
            "CREATE TABLE IF NOT EXISTS tenure_entity (key BLOB PRIMARY KEY, place BLOB NOT NULL, "
            "number INTEGER NOT NULL, step INTEGER NOT NULL, data BLOB NOT NULL, alarm REAL) "
            "WITHOUT ROWID"
        ),
        _ALARMS,
    )
    shared: ClassVar[str] = ""  # a transaction that may write has the file for itself
    alone: ClassVar[str] = ""

    def __init__(self, path: str) -> None:
        self.name = f"sqlite:{path}"
        self._path = path
        self._connection: Any = None

    def sql(self, statement: str) -> str:
        """See `Database`."""
        return statement

    def errors(self) -> type[Exception]:
        """See `Database`."""
        import sqlite3  # noqa: PLC0415  # only who stores needs it

        return sqlite3.Error

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """See `Database`."""
        connection = self._connection or self._connect()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection.cursor()
        except BaseException:
            connection.rollback()
            raise
        connection.commit()

    def _connect(self) -> Any:  # noqa: ANN401  # of the driver's own
        import sqlite3  # noqa: PLC0415

        connection = sqlite3.connect(self._path, timeout=CONNECT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        self._connection = connection
        return connection

    def drop(self) -> None:
        """See `Database`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class PostgresDatabase:
    """A database of PostgreSQL, by psycopg."""

    tables: ClassVar[tuple[str, ...]] = (
        "SELECT pg_advisory_xact_lock(6018927115)",  # two that create one table fail otherwise
        _POOL,
        (
            "CREATE TABLE IF NOT EXISTS tenure_entity (key BYTEA PRIMARY KEY, "
            "place BYTEA NOT NULL, number BIGINT NOT NULL, step BIGINT NOT NULL, "
            "data BYTEA NOT NULL, alarm DOUBLE PRECISION)"
        ),
        _ALARMS,
    )
    shared: ClassVar[str] = " FOR SHARE"
    alone: ClassVar[str] = " FOR UPDATE"

    def __init__(self, url: str) -> None:
        try:
            import psycopg  # noqa: PLC0415  # only who stores there needs it
        except ImportError:
            raise ConfigurationError(
                "a store in PostgreSQL needs psycopg, which is not installed: "
                "pip install 'tenure[postgres]'"
            ) from None
        self._driver = psycopg
        parts = psycopg.conninfo.conninfo_to_dict(url)
        self.name = f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}"
        self._url = url
        self._connection: Any = None

    def sql(self, statement: str) -> str:
        """See `Database`."""
        return statement.replace("?", "%s")

    def errors(self) -> type[Exception]:
        """See `Database`."""
        return self._driver.Error

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """See `Database`."""
        if self._connection is None:
            self._connection = self._driver.connect(self._url, connect_timeout=CONNECT_SECONDS)
        with self._connection.transaction():
            yield self._connection.cursor()

    def drop(self) -> None:
        """See `Database`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(self._driver.Error):
                connection.close()
