"""The table of faults of a world of leases, and the faults of its owners and lookups."""

from lab.worlds.lease.processes import OwnerProcess, OwnerSite
from lab.worlds.lease.traffic import LOAD, Traffic
from tenure.protocol.lease.owner import events as owner_events
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
from tenure.sim.kernel.strikes import PAUSE_PAST_THE_TERM, SHORT_PAUSE, SUSPEND, WALL_CLOCKS
from tenure.sim.lease.faults import CALLBACK_HANGS, HAND_OFF_FAULTS, JOURNAL_FAULTS, SHORTER_PRESET
from tenure.sim.lease.operator import Operator
from tenure.sim.lease.strikes import (
    BURST_OF_JOINS,
    CRASH_OF_A_MANAGER,
    CUTS,
    HOST_SUSPENDED,
    JOURNALS_CHANGED,
    LEADERS_END,
    STEERING,
    LeaseStrikes,
    rarely,
)


class OwnerStrikes(LeaseStrikes):
    """The faults of managers, owners and lookups."""

    site: OwnerSite

    def __init__(
        self,
        site: OwnerSite,
        clocks: dict[str, SimClock],
        operator: Operator,
        spare_slots: list[str],
        traffic: Traffic,
    ) -> None:
        super().__init__(site, clocks, operator, spare_slots)
        self.traffic = traffic

    def crash_of_an_owner(self) -> None:
        """Kill an owner. Another one starts in its place."""
        self.crash(self.site.owners())

    def crash_of_a_lookup(self) -> None:
        """Kill a lookup. Another one starts in its place."""
        self.crash(self.site.lookups())

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

    def lookup_away(self) -> None:
        """Stop a lookup for longer than changes are kept. It must not take what it missed for
        nothing.
        """
        lookup = self.any_of(self.site.lookups())
        if lookup is not None:
            kept_ns = self.site.timing.keep_changes_ns
            lookup.freeze(round(kept_ns * (0.9 + 0.6 * self.random.random())))

    def load(self) -> None:
        """Make other keys hot. This is no fault, but it moves ranges away from owners that do
        well.
        """
        self.traffic.change()


CRASHES = (
    Fault("crash of an owner", terms_apart, OwnerStrikes.crash_of_an_owner),
    CRASH_OF_A_MANAGER,
    Fault("crash of a lookup", terms_apart, OwnerStrikes.crash_of_a_lookup),
)
PAUSES = (SHORT_PAUSE, PAUSE_PAST_THE_TERM)
PUT_BACK = Fault("journal put back", rarely, OwnerStrikes.journal_put_back)
FAULTS = FaultTable(
    (
        *CRASHES,
        *PAUSES,
        SUSPEND,
        *CUTS,
        Fault("leaving", terms_apart, OwnerStrikes.leaving),
        BURST_OF_JOINS,
        Fault("two of one name", terms_apart, OwnerStrikes.two_of_one_name),
        *LEADERS_END,
        WALL_CLOCKS,
        Fault("connection lost", terms_apart, OwnerStrikes.connection_lost),
        Fault("first thread ended", terms_apart, OwnerStrikes.first_thread_ended),
        STEERING,
        Fault(LOAD, terms_apart, OwnerStrikes.load),
        *JOURNALS_CHANGED,
        HOST_SUSPENDED,
        Fault("lookup away", terms_apart, OwnerStrikes.lookup_away),
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
