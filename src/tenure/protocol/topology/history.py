"""Clusters in the managers' journal: records, their sum, and what a restore makes of it.

Each record has a cluster's whole topology. It takes some kilobytes, but changes are rare, and no
reader of a journal has to know what a change does.

A topology's version is the LSN of its record, so it grows with the journal. A journal that was
restored from an old copy knows less than the nodes, which may have seen later versions. So from
then on versions are far above its LSNs, and the nodes are asked what the topology is (`restored`).
"""

from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from tenure.protocol.topology.records import ClusterName, Topology

VERSIONS_PASSED = 10**12
"""At each restore: a thousand changes a second for thirty years."""


class ClusterRecord(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The base of the records of clusters."""


class TopologySet(ClusterRecord, frozen=True):
    """From here on this is a cluster's topology; its version follows from this record's LSN."""

    topology: Topology


class ClusterDeleted(ClusterRecord, frozen=True):
    """The cluster no longer exists."""

    cluster: ClusterName


AnyClusterRecord: TypeAlias = TopologySet | ClusterDeleted


class ClusterState(msgspec.Struct, frozen=True, array_like=True):
    """All of one cluster that a later leader must know."""

    topology: Topology
    restored: bool = False
    """It is from an old copy: before anything is changed, nodes are asked what they have."""


class Clusters:
    """The sum of the records of clusters."""

    def __init__(self, states: tuple[ClusterState, ...], passed: int) -> None:
        self.states = {state.topology.cluster: state for state in states}
        self.passed = passed
        """By so much versions are above LSNs."""

    def apply(self, record: AnyClusterRecord) -> None:
        """Make `record` so."""
        match record:
            case TopologySet(topology=topology):
                self.states[topology.cluster] = ClusterState(topology)
            case ClusterDeleted(cluster=cluster):
                self.states.pop(cluster, None)

    def state(self) -> tuple[ClusterState, ...]:
        """All of them, by name."""
        return tuple(self.states[name] for name in sorted(self.states))

    def restored(self) -> tuple[ClusterState, ...]:
        """What a history begins with that goes on from this, as an old copy."""
        return tuple(replace(state, restored=True) for state in self.state())

    def invariants(self) -> None:
        """Those of every topology."""
        for state in self.states.values():
            state.topology.invariants()
