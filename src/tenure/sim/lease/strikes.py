"""The table of faults of a world of leases, and the faults that strike at times of their own."""

from tenure.base.instants import MILLISECOND_NS
from tenure.protocol.lease.leader import events as manager_events
from tenure.protocol.lease.owner import events as owner_events
from tenure.sim.journal import JOURNAL
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.faults import (
    LATE_TIMER,
    MESSAGE_FAULTS,
    POINT_FAULTS,
    SKEW,
    Fault,
    FaultTable,
    terms_apart,
)
from tenure.sim.kernel.strikes import (
    PAUSE_PAST_THE_TERM,
    SHORT_PAUSE,
    SUSPEND,
    WALL_CLOCKS,
    Strikes,
)
from tenure.sim.lease.faults import CALLBACK_HANGS, HAND_OFF_FAULTS, JOURNAL_FAULTS, SHORTER_PRESET
from tenure.sim.lease.operator import Operator
from tenure.sim.lease.processes import LeaseSite, OwnerProcess
from tenure.sim.lease.traffic import LOAD, Traffic


class LeaseStrikes(Strikes):
    """The faults of managers, owners and lookups."""

    site: LeaseSite

    def __init__(
        self,
        site: LeaseSite,
        clocks: dict[str, SimClock],
        operator: Operator,
        traffic: Traffic,
        spare_slots: list[str],
    ) -> None:
        super().__init__(site, site.network, clocks)
        self.operator = operator
        self.traffic = traffic
        self.spare_slots = spare_slots
        """The slots of owners that come in bursts, and go."""

    def crash_of_an_owner(self) -> None:
        """Kill an owner. Another one starts in its place."""
        self.crash(self.site.owners())

    def crash_of_a_manager(self) -> None:
        """Kill a manager. Another one starts in its place."""
        self.crash(self.site.managers())

    def crash_of_a_lookup(self) -> None:
        """Kill a lookup. Another one starts in its place."""
        self.crash(self.site.lookups())

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

    def leaving(self) -> None:
        """Ask one owner to leave, or several at once."""
        there = [owner for owner in self.site.owners() if owner.alive and not owner.is_frozen]
        together = self.random.choice((1, 1, 2, len(there)))
        for owner in self.random.sample(there, min(together, len(there))):
            self.site.tell(owner.slot, "is asked to leave")
            self._leave(owner)
            self.site.restart_later(owner.slot, self.span(0.5, 3.0))

    def _leave(self, owner: OwnerProcess) -> None:
        """Ask an owner to leave at once, or after handing over what it can until a deadline."""
        if self.random.random() < 0.5:
            owner.post(owner_events.DrainRequested())
            at = self.site.now + self.span(0.1, 2.0)
            self.site.at(at, owner.post, owner_events.CloseRequested())
        else:
            owner.post(owner_events.CloseRequested())

    def burst_of_joins(self) -> None:
        """Start all spare owners at once."""
        for slot in self.spare_slots:
            self.site.restart_later(slot, self.random.randrange(200) * MILLISECOND_NS)

    def two_of_one_name(self) -> None:
        """Start a second process, on another host, under the name of an owner that lives."""
        owner = self.any_of(self.site.owners())
        if owner is None:
            return
        for slot in self.spare_slots:
            present = self.site.slots.get(slot)
            if present is None or not present.alive:
                self.site.tell(slot, "starts as a twin of", owner.slot)
                self.site.start_twin(slot, owner)
                return

    def journal_replaced(self) -> None:
        """Put an empty journal in place, with an identity of its own. The old one is gone."""
        self.site.begin_journal(None)

    def journal_restored(self) -> None:
        """Copy the journal now, and restore the copy some time later, as `tenure restore` does."""
        at = self.site.now + self.span(0.1, 2.0)
        self.site.at(at, self.site.begin_journal, self.site.copied_journal())

    def journal_put_back(self) -> None:
        """Copy the journal now, and put the copy in its place some time later, under its own
        identity, as if an operator had tried a backup out. A journal that nobody has led yet has
        nothing worth a backup.
        """
        site = self.site
        copy = (site.journal.journal, site.journal.seat, site.copied_journal())
        if not copy[2].secret:
            return
        site.at(site.now + self.span(0.1, 2.0), site.put_back, copy)

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

    def connection_lost(self) -> None:
        """Break a living owner's connections. It may hear of that later than its manager."""
        owner = self.any_of(self.site.owners())
        if owner is not None:
            self.network.lose_connections(owner)

    def first_thread_ended(self) -> None:
        """The first thread of an owner ends, and its others go on."""
        owner = self.any_of(self.site.owners())
        if owner is not None:
            self.site.tell(owner.slot, "goes on without its first thread")
            owner.on_host.first_thread_ended = True

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

    def lookup_away(self) -> None:
        """Stop a lookup for longer than changes are kept. It must not take what it missed for
        nothing.
        """
        lookup = self.any_of(self.site.lookups())
        if lookup is not None:
            kept_ns = self.site.timing.keep_changes_ns
            lookup.freeze(round(kept_ns * (0.9 + 0.6 * self.random.random())))

    def steering(self) -> None:
        """Let the operator steer. This is no fault, but it moves ranges as no policy would."""
        self.operator.steer()

    def load(self) -> None:
        """Make other keys hot. This is no fault, but it moves ranges away from owners that do
        well.
        """
        self.traffic.change()


def rarely(strength: float) -> float:
    """How often a fault strikes in a term on average, if it ends everything that was known."""
    return float(0.01 * 10**strength)


CRASHES = (
    Fault("crash of an owner", terms_apart, LeaseStrikes.crash_of_an_owner),
    Fault("crash of a manager", terms_apart, LeaseStrikes.crash_of_a_manager),
    Fault("crash of a lookup", terms_apart, LeaseStrikes.crash_of_a_lookup),
)
PAUSES = (SHORT_PAUSE, PAUSE_PAST_THE_TERM)
JOURNALS_CHANGED = (
    Fault("journal replaced", rarely, LeaseStrikes.journal_replaced),
    Fault("journal restored", rarely, LeaseStrikes.journal_restored),
)
PUT_BACK = Fault("journal put back", rarely, LeaseStrikes.journal_put_back)
CUTS = (
    Fault("one-way cut", terms_apart, LeaseStrikes.one_way_cut),
    Fault("two-way cut", terms_apart, LeaseStrikes.two_way_cut),
    Fault("cut from the journal", terms_apart, LeaseStrikes.cut_from_the_journal),
)
FAULTS = FaultTable(
    (
        *CRASHES,
        *PAUSES,
        SUSPEND,
        *CUTS,
        Fault("leaving", terms_apart, LeaseStrikes.leaving),
        Fault("burst of joins", terms_apart, LeaseStrikes.burst_of_joins),
        Fault("two of one name", terms_apart, LeaseStrikes.two_of_one_name),
        Fault("leadership revoked", terms_apart, LeaseStrikes.leadership_revoked),
        Fault("graceful stop of a manager", terms_apart, LeaseStrikes.graceful_stop_of_a_manager),
        WALL_CLOCKS,
        Fault("connection lost", terms_apart, LeaseStrikes.connection_lost),
        Fault("first thread ended", terms_apart, LeaseStrikes.first_thread_ended),
        Fault("steering", terms_apart, LeaseStrikes.steering),
        Fault(LOAD, terms_apart, LeaseStrikes.load),
        *JOURNALS_CHANGED,
        Fault("host suspended", terms_apart, LeaseStrikes.host_suspended),
        Fault("lookup away", terms_apart, LeaseStrikes.lookup_away),
        CALLBACK_HANGS,
        SHORTER_PRESET,
        *MESSAGE_FAULTS,
        *JOURNAL_FAULTS,
        *HAND_OFF_FAULTS,
        *POINT_FAULTS,
        LATE_TIMER,
        SKEW,
        PUT_BACK,
    ),
    {
        "crash": CRASHES,
        "pause": PAUSES,
        "cut": CUTS,
        "message": MESSAGE_FAULTS,
        "journal": (*JOURNAL_FAULTS, *JOURNALS_CHANGED, PUT_BACK),
        "hand-off": HAND_OFF_FAULTS,
        "point": POINT_FAULTS,
    },
)
