"""Entities in a database of SQL: each is one row, with its envelope as one value."""

import msgspec

from tenure.client.lease import Lease
from tenure.errors import StoreFailed
from tenure.fencing.fenced_rows import FencedRows, Key
from tenure.protocol.entity.envelope import Envelope

_encode = msgspec.msgpack.Encoder().encode
_envelope: msgspec.msgpack.Decoder[Envelope] = msgspec.msgpack.Decoder(Envelope)


class SqlEntityStore(FencedRows):
    """The entities of one pool, as an `EntityStore`."""

    async def load(self, key: Key, lease: Lease) -> Envelope:
        """Load the row, and decode its value. Raises as `EntityStore.load` does."""
        step, data = await self.load_row(key, lease)
        try:
            found = _envelope.decode(data) if data else Envelope()
        except ValueError as error:
            raise StoreFailed(f"the stored state of {key!r:.100} cannot be read: {error}") from None
        return msgspec.structs.replace(found, step=step)

    async def save(self, key: Key, lease: Lease, stored: Envelope, new: Envelope) -> Envelope:
        """Save the row, if it still has the step of `stored`. Raises as `EntityStore.save` does."""
        kept = msgspec.structs.replace(new, step=stored.step + 1)
        await self.save_row(key, lease, kept.step, _encode(kept.plain()), kept.next_alarm())
        return kept
