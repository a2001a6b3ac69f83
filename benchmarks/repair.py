"""The cost of comparing two replicas: if they are the same, and if some rows differ.

    python -m benchmarks repair        # a million rows on RocksDB, ten minutes
    python -m benchmarks repair --rows 100000
    python -m benchmarks --quick repair

Bytes are those of the messages as they go over the network, both ways. What mending takes is the
rows themselves, and is apart.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter, deque
from pathlib import Path
from random import Random

from benchmarks._quick import sized
from tenure.base.instants import SECOND_NS, Instant
from tenure.base.ranges import WHOLE
from tenure.columns.engines.rocksdb import RocksEngine
from tenure.columns.node_replica import NodeReplica
from tenure.columns.tables import Family, Table
from tenure.protocol.replication import node_events
from tenure.protocol.replication.messages import NodeMessage
from tenure.protocol.replication.node import StoreNode
from tenure.protocol.replication.operations import (
    ApplyRow,
    MergeState,
    ReadState,
    StateMerged,
    StateRead,
)
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.replication.tasks import BuildSums, FollowRanges, TaskDone
from tenure.protocol.replication.upkeep.comparing import Comparing
from tenure.protocol.replication.upkeep.errand import errand
from tenure.protocol.topology.records import Node, Placement, ReplicaRange, Topology
from tenure.wire.columns import FIRST_VERSION, encode_store

ROWS = sized(1_000_000, 20_000)
TOLD_ROWS = 50_000
DIFFERING = 100
EQUAL_BYTES = 64 << 10
DIFFERING_BYTES = 300_000
TABLE = Table("t", f=Family(columns=bytes))
NOW_US = 1_700_000_000_000_000
MENDS = (ReadState, StateRead, MergeState, StateMerged)


class _Network:
    """Two nodes, and what they say to each other."""

    def __init__(self, place: Path) -> None:
        nodes = tuple(
            Node(id=i, name=f"n{i}", address=f"n{i}", token=bytes([i]), since=1) for i in (1, 2)
        )
        self.topology = Topology(
            cluster="bench",
            id=9,
            version=1,
            placement=Placement(replicas=2),
            first_nodes=2,
            nodes=nodes,
            ranges=(ReplicaRange(b"", (1, 2)),),
            tables={TABLE.name: TABLE.record()},
        )
        self.now = Instant(SECOND_NS)
        self.messages: deque[NodeMessage] = deque()
        self.bytes: Counter[str] = Counter()
        self.nodes = {i: _Side(self, i, place / f"n{i}") for i in (1, 2)}

    def compare(self) -> Comparing:
        """Compare the first node with the second one, to the end."""
        self.bytes.clear()
        context = self.nodes[1].machine.context
        comparing = Comparing(context, 2, TABLE.name, WHOLE)
        work = errand(context, comparing.run)
        while not work.is_over:
            self.now = Instant(self.now + SECOND_NS // 1_000)
            for node in self.nodes.values():
                node.advance()
            while self.messages:
                message = self.messages.popleft()
                kind = "mends" if isinstance(message.body, MENDS) else "sums"
                self.bytes[kind] += len(encode_store(message, FIRST_VERSION))
                self.nodes[message.receiver].post(node_events.NodeTold(message))
        return comparing


class _Side:
    """A node over RocksDB."""

    def __init__(self, network: _Network, node: int, place: Path) -> None:
        self._network = network
        self.engine = RocksEngine.open(place)
        self.store = NodeReplica(self.engine, lambda: NOW_US * 2)
        self.store.open([TABLE])
        self.store.load()
        self.store.run(FollowRanges((WHOLE,)))
        result: object = None
        while not (isinstance(result, TaskDone) and result.is_all):
            result, _ = self.store.run(BuildSums())
        config = node_events.NodeConfig(node=node, topology=network.topology)
        self.machine = StoreNode(config, Random(node))

    def write(self, key: bytes, time_us: int) -> None:
        edit = Edit("f", None, b"name", b"a value of some bytes, as short ones are")
        self.store.run(
            ApplyRow(table=TABLE.name, key=key, edits=(edit,), attempt=Attempt(Version(0, time_us)))
        )

    def post(self, event: node_events.NodeEvent) -> None:
        self._perform(self.machine.handle(self._network.now, event).actions)

    def advance(self) -> None:
        self._perform(self.machine.advance(self._network.now).actions)

    def _perform(self, actions: list[node_events.NodeAction]) -> None:
        for action in actions:
            match action:
                case node_events.RunStep(ticket=ticket, step=step):
                    self.post(node_events.StepDone(ticket, *self.store.run(step)))
                case node_events.SyncUpTo():
                    self.engine.sync()
                    self.post(node_events.Synced(self.store.changes))
                case node_events.TellNode(message=message):
                    self._network.messages.append(message)


def measure(network: _Network, rows: int) -> bool:
    """Print the figures; whether each is within its bound."""
    for number in range(rows):
        for node in network.nodes.values():
            node.write(b"row-%d" % number, NOW_US + number)
        if number % TOLD_ROWS == TOLD_ROWS - 1:
            print(f"  {number + 1:,} of {rows:,} rows are written", flush=True)
    good = _is_kept(network, f"{rows:,} equal rows", 0, EQUAL_BYTES)
    for number in Random(7).sample(range(rows), DIFFERING):
        network.nodes[2].write(b"row-%d" % number, NOW_US + rows + number)
    good &= _is_kept(network, f"{DIFFERING} rows that differ", DIFFERING, DIFFERING_BYTES)
    return good & _is_kept(network, "the same after that", 0, EQUAL_BYTES)


def _is_kept(network: _Network, what: str, differing: int, most: int) -> bool:
    spent = time.process_time()
    comparing = network.compare()
    spent = time.process_time() - spent
    sums, mends = network.bytes["sums"], network.bytes["mends"]
    print(
        f"{what}: {sums:,} bytes (<= {most:,}), {mends:,} for {comparing.differing} rows, "
        f"{spent * 1000:.0f} ms of CPU"
    )
    return sums <= most and comparing.differing == differing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks repair")
    parser.add_argument("--rows", type=int, default=ROWS, help="how many rows each replica has")
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as place:
        network = _Network(Path(place))
        try:
            return 0 if measure(network, rows) else 1
        finally:
            for node in network.nodes.values():
                node.engine.close()


if __name__ == "__main__":
    sys.exit(main())
