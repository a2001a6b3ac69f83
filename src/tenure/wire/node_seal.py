"""The seal of a message from one node of the store to another.

A node is connected to as a client is, and a message says of itself who has sent it. So each message
ends with a hash of all its bytes under the cluster's secret, which nodes have and clients do not.
The message names its receiver, so the seal does not count at another node. Whoever repeats a sealed
message to its receiver repeats what that node has heard: tickets and versions make it harmless.

Releases before there were seals skip the field. They seal nothing themselves, so their messages are
told apart by what the nodes gossip: see `GossipEngine.seals`.
"""

import hmac
from hashlib import blake2b

import msgspec

from tenure.protocol.replication.messages import SEAL_BYTES, NodeMessage
from tenure.wire.cluster_key import cluster_key
from tenure.wire.columns import ToStore, ToStoreClient, encode_store

_UNSEALED = bytes(SEAL_BYTES)


class NodeSeal:
    """Seals what a node sends to others of its cluster, and knows what they have sealed."""

    def __init__(self, secret: bytes, cluster: str) -> None:
        self._key = cluster_key(secret, cluster, b"tenure-nodes")

    def encode(self, message: ToStore | ToStoreClient, version: int) -> bytes:
        """The bytes of a message, for a connection of `version`: sealed, if it is of a node."""
        if not isinstance(message, NodeMessage):
            return encode_store(message, version)
        data = encode_store(msgspec.structs.replace(message, seal=_UNSEALED), version)
        said = memoryview(data)[:-SEAL_BYTES]
        return b"".join((said, self._seal_of(said)))

    def is_on(self, data: bytes) -> bool:
        """Whether a node of the cluster has sealed these bytes of a message."""
        said = memoryview(data)[:-SEAL_BYTES]
        return hmac.compare_digest(data[-SEAL_BYTES:], self._seal_of(said))

    def _seal_of(self, said: memoryview) -> bytes:
        return blake2b(said, key=self._key, digest_size=SEAL_BYTES).digest()
