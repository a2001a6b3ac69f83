"""Levels: how many replicas must answer before a request is answered.

A level must be met in each list of a range: usually there is one list, but in the joint step of a
change of the ring there are the old and the new (R15). In a list, a level asks for one or more
*needs*: so many of these nodes. So two quorums of the same row share a node whatever the ring does
between them: both lists count in the joint step, and no change can skip the step.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from tenure.protocol.topology.records import NodeId

Level = Literal["one", "quorum", "all", "local_quorum", "each_quorum"]
"""How many replicas must answer. With one replica they are all the same."""
DatacentreOf: TypeAlias = Callable[[NodeId], str]


class Need(NamedTuple):
    """A count of nodes that must answer, and the nodes that may."""

    nodes: tuple[NodeId, ...]
    enough: int

    def is_met(self, answered: Collection[NodeId]) -> bool:
        missing = self.enough
        for node in self.nodes:
            missing -= node in answered
        return missing <= 0

    def may_be_met(self, gone: Collection[NodeId]) -> bool:
        """Whether enough of them are left without those that are gone."""
        left = len(self.nodes)
        for node in self.nodes if gone else ():
            left -= node in gone
        return left >= self.enough


def majority(nodes: Sequence[NodeId]) -> int:
    return len(nodes) // 2 + 1


def needs_of(
    lists: Iterable[tuple[NodeId, ...]], level: Level, datacentre_of: DatacentreOf, local: str
) -> list[Need]:
    """The needs of a level in these lists, for a coordinator in the datacentre `local`.

    A list without any node of a datacentre that the level names cannot meet it, and says so with a
    need of one node among none.
    """
    found: list[Need] = []
    for nodes in lists:
        match level:
            case "one":
                found.append(Need(nodes, 1))
            case "quorum":
                found.append(Need(nodes, majority(nodes)))
            case "all":
                found.append(Need(nodes, len(nodes)))
            case "local_quorum":
                here = tuple(node for node in nodes if datacentre_of(node) == local)
                found.append(Need(here, majority(here)))
            case "each_quorum":
                for datacentre in sorted({datacentre_of(node) for node in nodes}):
                    there = tuple(node for node in nodes if datacentre_of(node) == datacentre)
                    found.append(Need(there, majority(there)))
    return found


def are_met(needs: Iterable[Need], answered: Collection[NodeId]) -> bool:
    # This is asked with every answer: a generator would cost as much as the answer.
    for need in needs:  # noqa: SIM110
        if not need.is_met(answered):
            return False
    return True


def may_be_met(needs: Iterable[Need], gone: Collection[NodeId]) -> bool:
    for need in needs:  # noqa: SIM110 - as above
        if not need.may_be_met(gone):
            return False
    return True


def fewest(needs: Iterable[Need], nearest_first: Sequence[NodeId]) -> list[NodeId]:
    """As few of the nodes as meet every need, the nearest first; all of them if none do."""
    chosen: list[NodeId] = []
    for need in needs:
        missing = need.enough - sum(node in chosen for node in need.nodes)
        for node in nearest_first:
            if missing <= 0:
                break
            if node in need.nodes and node not in chosen:
                chosen.append(node)
                missing -= 1
    return chosen
