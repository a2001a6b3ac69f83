"""The faults of managers, their journal and connections, which strike at times of their own."""

from tenure.base.instants import MILLISECOND_NS
from tenure.protocol.lease.leader import events as manager_events
from tenure.sim.journal import JOURNAL
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.faults import Fault, terms_apart
from tenure.sim.kernel.strikes import Strikes
from tenure.sim.lease.operator import Operator
from tenure.sim.lease.processes import LeaseSite


class LeaseStrikes(Strikes):
    """The faults of managers, and of what is between them and their clients."""

    site: LeaseSite

    def __init__(
        self,
        site: LeaseSite,
        clocks: dict[str, SimClock],
        operator: Operator,
        spare_slots: list[str],
    ) -> None:
        super().__init__(site, site.network, clocks)
        self.operator = operator
        self.spare_slots = spare_slots
        """The slots of owners that come in bursts, and go."""

    def crash_of_a_manager(self) -> None:
        """Kill a manager. Another one starts in its place."""
        self.crash(self.site.managers())

    def one_way_cut(self) -> None:
        """Let nothing pass from a client to a manager, or from the manager to the client."""
        self.cut_between(self.site.clients(), self.site.managers(), both_ways=False)

    def two_way_cut(self) -> None:
        """Let nothing pass between a client and a manager."""
        self.cut_between(self.site.clients(), self.site.managers(), both_ways=True)

    def cut_from_the_journal(self) -> None:
        """Cut a manager from its journal, but not from its clients: for so long that another leads,
        and has waited out what this one may have promised.
        """
        both_ways = self.random.random() < 0.5
        manager = self.any_of(self.site.managers())
        if manager is not None:
            self.cut(JOURNAL, manager.slot, both_ways=both_ways, most_terms=5.0)

    def burst_of_joins(self) -> None:
        """Start all spare owners at once."""
        for slot in self.spare_slots:
            self.site.restart_later(slot, self.random.randrange(200) * MILLISECOND_NS)

    def journal_replaced(self) -> None:
        """Put an empty journal in place, with an identity of its own. The old one is gone."""
        self.site.begin_journal(None)

    def journal_restored(self) -> None:
        """Copy the journal now, and restore the copy some time later, as `tenure restore` does."""
        at = self.site.now + self.span(0.1, 2.0)
        self.site.restore_journal(at, self.site.copied_journal())

    def leadership_revoked(self) -> None:
        """The journal takes a leader for dead. The seat is vacant, and its holder does not know."""
        self.site.journal.vacate()
        self.site.tell("journal", "leadership revoked")

    def graceful_stop_of_a_manager(self) -> None:
        """Ask a manager to resign. It ends soon after."""
        manager = self.any_of(self.site.managers())
        if manager is not None:
            manager.post(manager_events.StopRequested())
            self.site.at(self.site.now + 100 * MILLISECOND_NS, self.site.bring_down, manager)

    def host_suspended(self) -> None:
        """Suspend all processes of one host for the same time."""
        running = [each for each in self.site.processes() if each.alive and not each.is_frozen]
        if not running:
            return
        host = self._host(self.random.choice(running).slot)
        span = self.span(0.2, 2.5)
        for process in running:
            if self._host(process.slot) == host:
                process.freeze(span, suspended=True)

    def _host(self, slot: str) -> int:
        return self.site.hosts.place_of(slot).host

    def steering(self) -> None:
        """Let the operator steer. This is no fault, but it moves ranges as no policy would."""
        self.operator.steer()


def rarely(strength: float) -> float:
    """How often a fault strikes in a term on average, if it ends everything that was known."""
    return float(0.01 * 10**strength)


CRASH_OF_A_MANAGER = Fault("crash of a manager", terms_apart, LeaseStrikes.crash_of_a_manager)
CUTS = (
    Fault("one-way cut", terms_apart, LeaseStrikes.one_way_cut),
    Fault("two-way cut", terms_apart, LeaseStrikes.two_way_cut),
    Fault("cut from the journal", terms_apart, LeaseStrikes.cut_from_the_journal),
)
BURST_OF_JOINS = Fault("burst of joins", terms_apart, LeaseStrikes.burst_of_joins)
LEADERS_END = (
    Fault("leadership revoked", terms_apart, LeaseStrikes.leadership_revoked),
    Fault("graceful stop of a manager", terms_apart, LeaseStrikes.graceful_stop_of_a_manager),
)
STEERING = Fault("steering", terms_apart, LeaseStrikes.steering)
JOURNALS_CHANGED = (
    Fault("journal replaced", rarely, LeaseStrikes.journal_replaced),
    Fault("journal restored", rarely, LeaseStrikes.journal_restored),
)
HOST_SUSPENDED = Fault("host suspended", terms_apart, LeaseStrikes.host_suspended)
