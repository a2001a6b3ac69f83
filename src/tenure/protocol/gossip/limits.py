"""How long the parts of gossip may be: all that a node sends to another at once is one datagram."""

from typing import Final

DATAGRAM_BYTES: Final = 1_200
"""The most bytes of a datagram. It passes every network whole: IPv6 carries 1,280 bytes, of which
headers take some. A datagram that is cut into pieces is lost with any of them.
"""
ENVELOPE_BYTES: Final = 64
"""The bytes that a transport adds: the sender, the start of its life, a number, and a seal."""
MESSAGE_BYTES: Final = DATAGRAM_BYTES - ENVELOPE_BYTES
FRAME_BYTES: Final = 40
"""The bytes around the parts of a message."""
PARTS_BYTES: Final = MESSAGE_BYTES - FRAME_BYTES
HEADS_SHARE: Final = 0.75
"""The largest share of a message that heartbeats take, so that values get through however many
nodes there are.
"""
VALUE_BYTES: Final = 256
"""The most bytes of one value: one always fits beside the heartbeats."""
KEY_CHARACTERS: Final = 64
"""The most characters in the name of a value."""
KEYS: Final = 4_096
"""The most values that a node may tell: some for each of its ranges."""
NODES: Final = 1_024
"""The most nodes that are known. Anybody with the cluster's secret could name others without end.
"""
