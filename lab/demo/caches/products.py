"""The products of one owner: those that were written here in memory, the others in a database.

The database refuses what an earlier owner sends late: each product has the highest number under
which it was read or written (V14).
"""

import sqlite3
from pathlib import Path

from tenure import Fenced, KeyedState

DATABASE = "products.sqlite"
BUSY_SECONDS = 10.0


def product(number: int) -> str:
    """A product's key."""
    return f"product-{number}"


def make_database(directory: Path, products: int) -> None:
    """A table with all of them, each in version 1."""
    connection = _connected(directory)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(
        "CREATE TABLE products (key TEXT PRIMARY KEY, version INTEGER, fence INTEGER) STRICT"
    )
    rows = [(product(number),) for number in range(products)]
    connection.executemany("INSERT INTO products VALUES (?, 1, 0)", rows)
    connection.close()


def _connected(directory: Path) -> sqlite3.Connection:
    path = directory / DATABASE
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")  # what a kill leaves, the kernel has
    return connection


def write_past(directory: Path, key: str, version: int) -> None:
    """Change a product and tell no owner, for tests."""
    connection = _connected(directory)
    connection.execute("UPDATE products SET version = ? WHERE key = ?", (version, key))
    connection.close()


class Products:
    """The products of this owner, which caches read and write."""

    def __init__(self, directory: Path) -> None:
        self.state: KeyedState[int] = KeyedState(value_type=int)
        self.loads = 0
        self.stores = 0
        self._database = _connected(directory)

    def load(self, key: str, fence: int) -> int | None:
        """The version of a product."""
        self.loads += 1
        version = self.state.get(key)
        if version is not None:
            return version
        row = self._database.execute(
            "UPDATE products SET fence = max(fence, ?) WHERE key = ? RETURNING version",
            (fence, key),
        ).fetchone()
        return None if row is None else row[0]

    def store(self, key: str, version: int, fence: int) -> None:
        """Keep a version. Raises Fenced where a later owner has been there."""
        row = self._database.execute(
            "UPDATE products SET version = ?, fence = ? WHERE key = ? AND fence <= ? RETURNING key",
            (version, fence, key, fence),
        ).fetchone()
        if row is None:
            raise Fenced(f"{key} has been read or written under a higher number than {fence}")
        self.state[key] = version
        self.stores += 1

    def close(self) -> None:
        """Close the database."""
        self._database.close()
