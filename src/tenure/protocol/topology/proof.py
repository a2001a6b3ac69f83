"""How a manager knows a node again: by a secret that the node has drawn, and shows to nobody else.

The id of a node is no secret: nodes and clients of the store read it. A manager keeps the *mark* of
the secret, a hash, in the topology, which everybody may read. What somebody else says in the node's
name is not taken down then, so that no life or counter that he makes up turns the node itself away.
"""

from hashlib import sha256

from tenure.protocol.topology.records import Node


def mark_of(proof: bytes) -> bytes:
    """The mark of a secret; empty for a node of a release that showed none."""
    return sha256(proof).digest() if proof else b""


def is_proven(known: Node | None, proof: bytes) -> bool:
    """Whether who shows this is the node; a node that never showed a secret needs none."""
    return known is None or not known.mark or known.mark == mark_of(proof)
