"""Stores, which keep entities beyond the life of their process: a row for each, with its
envelope.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from tenure.base.keys import PoolKind
from tenure.base.names import shown
from tenure.client.lease import Lease
from tenure.errors import ConfigurationError, StoreFailed
from tenure.fencing.fenced_rows import FencedRows
from tenure.protocol.entity.envelope import Envelope

if TYPE_CHECKING:
    from tenure.fencing.databases import Database

_encode = msgspec.msgpack.Encoder().encode
_envelope: msgspec.msgpack.Decoder[Envelope] = msgspec.msgpack.Decoder(Envelope)


class EntityStore(FencedRows):
    """The entities of one pool."""

    async def load(self, key: str | int, lease: Lease) -> Envelope:
        """See `load_row`."""
        step, data = await self.load_row(key, lease)
        try:
            found = _envelope.decode(data) if data else Envelope()
        except ValueError as error:
            raise StoreFailed(f"the stored state of {key!r:.100} cannot be read: {error}") from None
        return msgspec.structs.replace(found, step=step)

    async def save(self, key: str | int, lease: Lease, envelope: Envelope) -> None:
        """See `save_row`."""
        step, due = envelope.step, envelope.next_alarm()
        await self.save_row(key, lease, step, _encode(envelope), due)


MakeStore: TypeAlias = Callable[[str, PoolKind], Awaitable[EntityStore]]


def store_for(url: str) -> MakeStore:
    """A function that opens the store at this URL. Raises ConfigurationError if it is not the URL
    of a store.
    """
    from tenure.fencing.databases import (  # noqa: PLC0415  # only who stores loads a driver
        PostgresDatabase,
        SqliteDatabase,
    )

    if url == "sqlite::memory:":
        raise ConfigurationError(
            f"store cannot be {url!r}, which each process has for itself and loses: name a file, "
            "or leave out store=, and entities move from process to process"
        )
    is_text = isinstance(url, str) and "\0" not in url
    if is_text and url.startswith("sqlite:") and url != "sqlite:":
        database: Database = SqliteDatabase(url.removeprefix("sqlite:"))
    elif is_text and url.startswith(("postgresql://", "postgres://")):
        database = PostgresDatabase(url)
    else:
        raise ConfigurationError(
            f'store is "sqlite:FILE" or "postgresql://HOST/DATABASE", not {shown(url)}'
        )

    async def make(pool: str, kind: PoolKind) -> EntityStore:
        store = EntityStore(database, pool, kind)
        try:
            await store.open()
        except BaseException:
            await store.close()
            raise
        return store

    return make
