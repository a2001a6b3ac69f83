"""How long a pool's policy takes, and what it did: moves for balance, keys given alone."""

from tenure.base.instants import MILLISECOND_NS, SECOND_NS
from tenure.protocol.balance import ring
from tenure.protocol.balance.policy import NOBODY, Plan, Policy, Situation
from tenure.protocol.balance.round_memory import RoundMemory
from tenure.protocol.lease.records import AnyRecord, Changed
from tenure.sim.kernel.scene import random_for
from tenure.sim.lease.processes import LeaseSite


class PolicyWatch:
    """Watches the policies of all pools."""

    def __init__(self, site: LeaseSite) -> None:
        self.site = site
        self.random = random_for(site.random)
        self._policies: dict[str, str] = {}

    def planning_ns(self) -> int:
        """How long a pool's policy takes when it plans beside the machine."""
        return self.random.choice((MILLISECOND_NS, 300 * MILLISECOND_NS, 3 * SECOND_NS))

    def watched(self, policy: Policy) -> Policy:
        """Return the policy with its moves for balance counted."""

        def plan(situation: Situation) -> Plan:
            plan = policy(situation)
            for _ in range(_moved_for_load(situation, plan)):
                self.site.count_note("moved for balance")
            return plan

        return plan

    def on_commit(self, record: AnyRecord) -> None:
        """A record is durable."""
        if not isinstance(record, Changed):
            return
        for entry in record.entries:
            if entry.owner != NOBODY and entry.end == entry.start + b"\0":
                self.site.count_note("key given alone")
        policy = self._policies.get(record.pool, "")
        if record.steering is not None and record.steering.policy != policy:
            self._policies[record.pool] = record.steering.policy
            self.site.count_note("policy chosen")


def _moved_for_load(situation: Situation, plan: Plan) -> int:
    """How many ranges, or points of the ring, this plan has moved for load and no earlier
    plan had.
    """
    before, memory = situation.memory, plan.memory
    if isinstance(memory, RoundMemory):
        return sum(move.cools and move.at == situation.now for move in memory.moves)
    if isinstance(memory, ring.RingMemory) and isinstance(before, ring.RingMemory):
        return len(memory.counts.items() ^ before.counts.items()) // 2
    return 0
