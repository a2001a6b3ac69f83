"""A world of leases with one journal, which may fail, be slow, or be replaced."""

from typing import Any

from tenure.base.instants import MILLISECOND_NS
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader.receipts import SECRET_BYTES
from tenure.protocol.lease.records import AnyRecord, JournalAction, JournalEvent, State
from tenure.protocol.lease.restoration import restored
from tenure.sim.journal import LATENCY_NS, LeaseContents, failure_of
from tenure.sim.kernel.world import World
from tenure.sim.lease.checkers import LeaseCheckers
from tenure.sim.lease.faults import LeaseFaults
from tenure.sim.lease.policy_watch import PolicyWatch
from tenure.sim.lease.processes import LeaseSite, ManagerProcess


class JournaledWorld(World, LeaseSite):
    """The fate of the journal, and of managers' calls to it."""

    faults: LeaseFaults
    checkers: LeaseCheckers
    policy_watch: PolicyWatch
    journal_kind: str
    """"durable", or "memory" for a journal that is gone with its manager."""
    restored_by = 0
    """When the last restoration that was begun is over, which may be after the faults are."""

    def begin_journaling(self) -> None:
        """Put an empty journal in place, with a new identity."""
        self.journal = LeaseContents(self.random, State(), self._on_commit)

    def call_journal(self, manager: ManagerProcess, action: JournalAction) -> None:
        """Carry out a journal action, in its time."""
        late_ns, effective, answered = self.faults.of_a_journal_call(
            manager.slot, self.network.cuts
        )
        self.at(
            self.now + LATENCY_NS + late_ns,
            self._take_effect,
            (manager, action, effective, answered),
        )

    def _on_commit(self, journal: LeaseContents, record: AnyRecord) -> None:
        self.checkers.on_commit(journal, record)
        self.policy_watch.on_commit(record)

    def copied_journal(self) -> LeaseHistory:
        """Return a copy of the journal as it is now."""
        copy = LeaseHistory(self.journal.state, self.journal.state_lsn)
        for record in self.journal.records:
            copy.apply(record)
        return copy

    def begin_journal(self, copy: LeaseHistory | None) -> None:
        """Put another journal in the place of the present one: empty, or restored from a copy."""
        if self.journal_kind == "memory":
            return  # a journal in memory is replaced whenever its manager ends
        seat = self.journal.seat
        self.begin_journaling()
        if copy is not None:
            self.journal.seat, self.journal.state = restored(
                copy, seat, self.random.randbytes(SECRET_BYTES)
            )
            self.journal.state_lsn = copy.lsn
        self.mended_at = self.now
        self.checkers.begin_history(self.journal, self.copied_journal())
        self.tell("journal", "replaced" if copy is None else "restored")

    def restore_journal(self, at: int, copy: LeaseHistory) -> None:
        """Put a journal restored from the copy in the place of the present one, at that instant."""
        self.restored_by = max(self.restored_by, at)
        self.at(at, self.begin_journal, copy)

    def _opened_another(self, manager: ManagerProcess) -> bool:
        return self.journal_kind != "memory" and manager.journal != self.journal.journal

    def carry_out(self, manager: ManagerProcess, action: JournalAction) -> JournalEvent | None:
        """What the journal answers to a manager's call."""
        return self.journal.carry_out(action)

    def _take_effect(self, call: tuple[Any, ...]) -> None:
        manager, action, effective, answered = call
        if self.journal_kind == "memory" and not manager.alive:
            return
        if manager.alive and self._opened_another(manager):
            manager.give_up("another journal is in the place of the one that it has opened")
        if self._opened_another(manager):
            return
        event = self.carry_out(manager, action) if effective else None
        if not answered:
            patience = max(self.timing.beat_ns, 100 * MILLISECOND_NS)
            failure = failure_of(action, "no answer came")
            if failure is not None:
                self.at(self.now + patience, manager.post, failure)
        elif event is not None:
            late_ns = self.faults.lateness_of_an_answer()
            self.at(self.now + LATENCY_NS + late_ns, manager.post, event)
