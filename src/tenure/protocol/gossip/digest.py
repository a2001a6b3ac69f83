"""Digests: how much of each node is known, cut to fit a datagram."""

from collections.abc import Iterable
from random import Random

from tenure.protocol.gossip.limits import PARTS_BYTES
from tenure.protocol.gossip.messages import NodeDigest, size_of

DIGEST_BYTES = 46
"""The most bytes of a digest: the head of an array, and five numbers."""


def cut_digests(
    digests: Iterable[NodeDigest], random: Random, room: int = PARTS_BYTES
) -> tuple[NodeDigest, ...]:
    """As many digests as fit. If there is no room for all, each message has others, so that no node
    is left out for long.
    """
    shuffled = list(digests)
    random.shuffle(shuffled)
    if len(shuffled) * DIGEST_BYTES <= room:
        return tuple(shuffled)  # as in most rings, and then nothing need be measured
    fitting = []
    for digest in shuffled:
        room -= size_of(digest)
        if room < 0:
            break
        fitting.append(digest)
    return tuple(fitting)
