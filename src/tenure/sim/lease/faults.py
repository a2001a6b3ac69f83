"""The faults that strike the journal, hand-offs and witnesses when these are used."""

from collections.abc import Container

from tenure.sim.journal import JOURNAL
from tenure.sim.kernel.faults import LATE_TIMER, Fault, FaultDice

JOURNAL_SLOW = Fault("journal slow")
ANSWER_LOST = Fault("journal answer lost")
JOURNAL_FAILED = Fault("journal failed")
ANSWER_LATE = Fault("journal answer late")
JOURNAL_FAULTS = (JOURNAL_SLOW, ANSWER_LOST, JOURNAL_FAILED, ANSWER_LATE)
HAND_OFF_SLOW = Fault("hand-off slow")
HAND_OFF_BROKEN = Fault("hand-off broken")
IMPORT_LOST = Fault("import lost")
HAND_OFF_FAULTS = (HAND_OFF_SLOW, HAND_OFF_BROKEN, IMPORT_LOST)
CALLBACK_HANGS = Fault("callback hangs")
"""The application of an owner never lets go of what it was told to release."""
SHORTER_PRESET = Fault("shorter preset", lambda strength: 0.2 + 0.6 * strength)
"""A manager starts with half the durations that the others have."""


class LeaseFaults(FaultDice):
    """Strikes the actions of owners and managers."""

    def of_a_journal_call(
        self, manager: str, cuts: Container[tuple[str, str]]
    ) -> tuple[int, bool, bool]:
        """How much later a call takes effect, whether it does, and whether an answer comes."""
        if not self.is_on:
            return 0, True, True
        arrives, returns = (manager, JOURNAL) not in cuts, (JOURNAL, manager) not in cuts
        late_ns = self.span(0.005, 0.3) if self.strikes(JOURNAL_SLOW) else 0
        if not arrives or self.strikes(JOURNAL_FAILED):
            return late_ns, False, False
        return late_ns, True, returns and not self.strikes(ANSWER_LOST)

    def lateness_of_an_answer(self) -> int:
        """How long a journal's answer waits in the manager's socket."""
        return self.span(0.02, 0.6) if self.strikes(ANSWER_LATE) else 0

    def breaks_a_hand_off(self) -> bool:
        """Whether the connection between the two owners breaks now."""
        return self.strikes(HAND_OFF_BROKEN)

    def time_of_a_hand_off(self) -> int:
        """How much longer than usual a step of a hand-off takes."""
        return self.span(0.05, 2.5) if self.strikes(HAND_OFF_SLOW) else 0

    def loses_an_import(self) -> bool:
        """Whether the taker loses what it has just said that it has."""
        return self.strikes(IMPORT_LOST)

    def lateness_of_a_look(self) -> int:
        """How much later a starved witness reports what it saw. By then another process may have
        the pid.
        """
        return self.span(0.05, 1.0) if self.strikes(LATE_TIMER) else 0
