"""Gossipers with one rule left out, which the checkers must catch."""

from tenure.protocol.gossip.failure_detector import FailureDetector
from tenure.protocol.gossip.gossiper import Gossiper
from tenure.protocol.gossip.messages import NodeDelta, NodeDigest, StateEntry
from tenure.protocol.gossip.state import NodeState
from tenure.sim.kernel.canaries import RuleLeftOut, called


def _with_gaps(self: NodeState, told: NodeDelta) -> list[StateEntry]:
    news = [entry for entry in told.entries if entry.version > self.head.version]
    for entry in news:
        self.put(entry)
    return news


def _lives_are_one(self: NodeState, head: NodeDigest) -> bool:
    if head.age <= self.head.age:
        return False
    self.head = NodeDigest(
        head.node, head.generation, head.heartbeat, self.head.version, head.promises
    )
    return True


def _known_to_itself(self: Gossiper, _: NodeState, head: NodeDigest) -> None:
    self.gone_back.add(head.node)


def _vouched_by_nobody(_: Gossiper) -> bool:
    return True


def _blamed_on_others(self: FailureDetector, pause_ns: int) -> None:
    pass


NONE = RuleLeftOut("none")
CANARIES = (
    RuleLeftOut(
        "gaps-taken",
        "R29: what would leave a gap is not taken",
        ((NodeState, "take", _with_gaps),),
    ),
    RuleLeftOut(
        "lives-are-one",
        "R29: a new life tells all its values anew",
        ((NodeState, "see", _lives_are_one),),
    ),
    RuleLeftOut(
        "refusal-kept-to-itself",
        "R26: whoever refuses a node tells all others",
        ((Gossiper, "_give_up", _known_to_itself),),
    ),
    RuleLeftOut(
        "vouched-by-nobody",
        "R26: a life takes part when a majority of the ring vouches for it",
        ((Gossiper, "has_enough_vouching", _vouched_by_nobody),),
    ),
    RuleLeftOut(
        "own-pause-blamed-on-others",
        "R30: a process that stood still convicts nobody for that",
        ((FailureDetector, "on_own_pause", _blamed_on_others),),
    ),
)


def gossip_canary(name: str) -> RuleLeftOut:
    """The canary of that name. Raises ConfigurationError, which lists them."""
    return called(name, CANARIES, (NONE,))
