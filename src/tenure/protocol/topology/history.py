"""Clusters in the managers' journal: records, their sum, and what a restore makes of it.

Each record has a cluster's whole topology. It takes some kilobytes, but changes are rare, and no
reader of a journal has to know what a change does.

A topology's version is the LSN of its record, so it grows with the journal. A journal that was
restored from an old copy knows less than the nodes, which may have seen later versions. So from
then on versions are far above its LSNs, and the nodes are asked what the topology is (`restored`).
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from tenure.protocol.topology.records import ClusterId, ClusterName, Placement, Topology

VERSIONS_PASSED = 10**12
"""The versions that each restore skips: a thousand changes a second for thirty years."""


class ClusterRecord(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The base of the records of clusters."""


class TopologySet(ClusterRecord, frozen=True):
    """A cluster has this topology from here on; its version follows from this record's LSN."""

    topology: Topology


class ClusterDeleted(ClusterRecord, frozen=True):
    """The cluster no longer exists."""

    cluster: ClusterName


AnyClusterRecord: TypeAlias = TopologySet | ClusterDeleted


class ClusterState(msgspec.Struct, frozen=True, array_like=True):
    """Everything about one cluster that a later leader must know."""

    topology: Topology
    restored: bool = False
    """Whether the topology is from an old copy: nodes must tell what they have before it changes.
    """


class LostCluster(NamedTuple):
    """What is known of a cluster whose journal was lost, until its nodes have told the rest."""

    id: ClusterId
    version: int
    """The version of the topology that a node has."""


class Clusters:
    """The sum of the records of clusters."""

    def __init__(self, states: tuple[ClusterState, ...], passed: int) -> None:
        self.states = {state.topology.cluster: state for state in states}
        self.passed = passed
        """The difference between versions and LSNs."""

    def apply(self, record: AnyClusterRecord) -> None:
        """Apply `record`."""
        match record:
            case TopologySet(topology=topology):
                self.states[topology.cluster] = ClusterState(topology)
            case ClusterDeleted(cluster=cluster):
                self.states.pop(cluster, None)

    def state(self) -> tuple[ClusterState, ...]:
        """All of them, by name."""
        return tuple(self.states[name] for name in sorted(self.states))

    def restored(self, lost: Mapping[ClusterName, LostCluster]) -> tuple[ClusterState, ...]:
        """The states with which a history begins that continues this one from an old copy. The
        clusters that are `lost` are known to their nodes only.
        """
        known = [state.topology for state in self.state() if state.topology.cluster not in lost]
        known += [
            Topology(cluster=name, id=each.id, version=0, placement=Placement(), first_nodes=1)
            for name, each in sorted(lost.items())
        ]
        return tuple(ClusterState(topology, restored=True) for topology in known)

    def passed_by(self, lost: Mapping[ClusterName, LostCluster]) -> int:
        """The difference between versions and LSNs in that history."""
        return max(self.passed, *(each.version for each in lost.values()), 0) + VERSIONS_PASSED

    def invariants(self) -> None:
        """The invariants of every topology hold."""
        for state in self.states.values():
            state.topology.invariants()
