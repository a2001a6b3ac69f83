"""The state of each node, as far as it is known: its values in the order in which it told them.

Every value has a version of its node's own count. Whoever knows a node up to a version knows every
value up to it, so one number says what is missing (Scuttlebutt).
"""

from collections.abc import Iterator

import msgspec

from tenure.protocol.gossip.messages import NodeDelta, NodeDigest, NodeId, StateEntry


class NodeState:
    """One node, as others know it."""

    def __init__(self, node: NodeId) -> None:
        self.head = NodeDigest(node, 0, 0, 0)
        self._entries: dict[str, StateEntry] = {}
        """The entries in the order of their versions, the newest last."""

    def put(self, entry: StateEntry) -> None:
        """Take a value that is newer than all before."""
        assert entry.version > self.head.version
        self._entries.pop(entry.key, None)
        self._entries[entry.key] = entry
        self.head = msgspec.structs.replace(self.head, version=entry.version)

    def get(self, key: str) -> bytes | None:
        """The value under that name."""
        entry = self._entries.get(key)
        return entry.value if entry else None

    def since(self, version: int) -> Iterator[StateEntry]:
        """All values after that version, in order."""
        return (entry for entry in self._entries.values() if entry.version > version)

    def all(self) -> dict[str, bytes]:
        """All values."""
        return {key: entry.value for key, entry in self._entries.items()}

    def see(self, head: NodeDigest) -> bool:
        """Take what a digest tells of the node itself. Returns whether it is new.

        A new life tells all its values anew.
        """
        if head.age <= self.head.age:
            return False
        if head.generation > self.head.generation:
            self.begin_anew(head)
        else:
            self.head = msgspec.structs.replace(head, version=self.head.version)
        return True

    def begin_anew(self, head: NodeDigest) -> None:
        """Begin with a new life: know what its digest tells, and none of its values."""
        self._entries.clear()
        self.head = msgspec.structs.replace(head, version=0)

    def take(self, delta: NodeDelta) -> list[StateEntry]:
        """Take values, except any that would leave a gap. Returns those that are new."""
        head = self.head
        if delta.head.generation != head.generation or delta.after > head.version:
            return []
        news = [entry for entry in delta.entries if entry.version > head.version]
        for entry in news:
            self.put(entry)
        return news

    def invariants(self) -> None:
        """Values stand in the order of their versions."""
        versions = [entry.version for entry in self._entries.values()]
        assert versions == sorted(set(versions))
        assert not versions or versions[-1] <= self.head.version
        assert all(key == entry.key for key, entry in self._entries.items())
