"""Messages between caches and servers as bytes."""

from typing import Any

import msgspec

from lab.worlds.volume.processes import AnyServer
from tenure.protocol.volume.messages import ToCache, ToVolumeServer
from tenure.sim.kernel.process import SimProcess


class VolumeCodec:
    """Messages as bytes."""

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._to_server: msgspec.msgpack.Decoder[ToVolumeServer] = msgspec.msgpack.Decoder(
            ToVolumeServer
        )
        self._to_cache: msgspec.msgpack.Decoder[ToCache] = msgspec.msgpack.Decoder(ToCache)

    def encode(self, message: Any) -> bytes:
        """Encode a message."""
        return self._encoder.encode(message)

    def decode(self, data: bytes, receiver: SimProcess) -> Any:
        """Decode a message as its receiver, a server or a client, reads it."""
        if isinstance(receiver, AnyServer):
            return self._to_server.decode(data)
        return self._to_cache.decode(data)
