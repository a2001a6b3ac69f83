"""Disks of simulated nodes: which data outlives a process, and which a power failure takes."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from hashlib import sha256

from tenure.columns.engines.contract import Entry
from tenure.columns.engines.memory import MemoryCursor, MemoryEngine
from tenure.columns.node_replica import counter_of
from tenure.errors import StoreDamaged
from tenure.protocol.gossip.messages import NodeDigest
from tenure.protocol.topology.records import Node, Topology


class SimEngine(MemoryEngine):
    """An engine whose syncs take time: a sync does not make durable what is written
    after it began, and `crash` loses what is not. Some entries may be damaged: they cannot be read
    until they are written again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._undo: list[Entry] = []
        self.damaged: set[tuple[str, bytes]] = set()

    def get(self, space: str, keys: Sequence[bytes]) -> list[bytes | None]:
        for key in keys if self.damaged else ():
            self._check(space, key)
        return super().get(space, keys)

    def apply(self, batch: Sequence[Entry]) -> None:
        if self.damaged:
            self.damaged.difference_update((space, key) for space, key, _ in batch)
        for space, key, _ in batch:
            self._undo.append((space, key, self._spaces[space].values.get(key)))
        super().apply(batch)

    def cursor(self, space: str) -> MemoryCursor:
        return _Cursor(super().cursor(space), partial(self._check, space))

    passing_cursor = cursor

    def _check(self, space: str, key: bytes) -> None:
        if (space, key) in self.damaged:
            raise StoreDamaged(f"the block of {key!r} in {space} is damaged")

    def sync(self) -> None:
        """See `StorageEngine.sync`. A crash may or may not lose a batch that comes meanwhile."""
        self.end_sync(self.begin_sync())

    def begin_sync(self) -> int:
        """Begin a sync. Returns a mark that says how much the sync makes durable."""
        return len(self._undo)

    def end_sync(self, mark: int) -> None:
        """End the sync that has this mark."""
        del self._undo[:mark]

    def crash(self) -> None:
        """Lose what was applied after the last sync: what a power failure does."""
        super().apply(self._undo[::-1])
        self._undo.clear()


class _Cursor(MemoryCursor):
    """A cursor that does not read over damage."""

    def __init__(self, cursor: MemoryCursor, check: Callable[[bytes], None]) -> None:
        self._cursor = cursor
        self._check = check

    def get(self, key: bytes) -> bytes | None:
        self._check(key)
        return self._cursor.get(key)

    def walk(
        self, lower: bytes, upper: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._cursor.walk(lower, upper, reverse=reverse):
            self._check(key)
            yield key, value


class Disk:
    """The disk of one node: its identity, its store, and the topology that it knows."""

    def __init__(self, identity: Node, topology: Topology) -> None:
        self.identity = identity
        self.node = identity.id
        self.topology = topology
        self.lives = 0
        self.engine = SimEngine()
        self.is_full = False
        self.promises = 0
        """How often the node's counter had been raised when the copy was made."""
        self.known: tuple[NodeDigest, ...] = ()
        """The counters of others that the node had heard of."""
        self.replaces: Disk | None = None
        """What was in its place before, and was damaged."""

    @property
    def proof(self) -> bytes:
        """The secret of the node."""
        return sha256(b"%d" % self.node).digest()

    def copy(self) -> "Disk":
        """A backup of what is durable."""
        copy = deepcopy(self)
        copy.engine.crash()
        copy.engine.damaged.clear()
        copy.promises = counter_of(copy.engine)
        return copy
