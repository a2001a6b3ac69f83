"""The faults of a world with two masters, and what a run of it is made of."""

from typing import Literal, TypeAlias

from tenure.protocol.lease.timing import PAPER, Timing
from tenure.sim.kernel.faults import (
    LATE_TIMER,
    MESSAGE_FAULTS,
    POINT_FAULTS,
    SKEW,
    Fault,
    FaultTable,
    terms_apart,
)
from tenure.sim.kernel.strikes import PAUSE_PAST_THE_TERM, SHORT_PAUSE, SUSPEND, Strikes
from tenure.sim.kernel.world import AnyTrial
from tenure.sim.lease.faults import JOURNAL_FAULTS
from tenure.sim.lease.processes import LeaseSite

Knows: TypeAlias = Literal["managers", "an owner", "in turn"]
"""Who can see that there are two: managers that name each other, or an owner that lists both. Or
the second begins when the first has ended for good, and nobody may say that there were two.
"""


class RivalsStrikes(Strikes):
    """The faults that strike at times of their own."""

    site: LeaseSite

    def crash_of_an_owner(self) -> None:
        """Kill an owner. Another one starts in its place."""
        self.crash(self.site.owners())

    def crash_of_a_manager(self) -> None:
        """Kill a manager. Another one starts in its place, on the same journal."""
        self.crash(self.site.managers())

    def cut_of_a_client(self) -> None:
        """Let nothing pass between an owner and a manager, or nothing in one direction."""
        both_ways = self.random.choice((True, False))
        self.cut_between(self.site.owners(), self.site.managers(), both_ways=both_ways)

    def cut_of_managers(self) -> None:
        """Let two managers not ask each other, for long enough that both grant."""
        managers = self.site.managers()
        if len(managers) > 1:
            one, other = self.random.sample(managers, 2)
            self.cut(one.slot, other.slot, both_ways=True, most_terms=8.0)


FAULTS = FaultTable(
    (
        Fault("crash of an owner", terms_apart, RivalsStrikes.crash_of_an_owner),
        Fault("crash of a manager", terms_apart, RivalsStrikes.crash_of_a_manager),
        Fault("cut of a client", terms_apart, RivalsStrikes.cut_of_a_client),
        Fault("cut of managers", terms_apart, RivalsStrikes.cut_of_managers),
        SHORT_PAUSE,
        PAUSE_PAST_THE_TERM,
        SUSPEND,
        *MESSAGE_FAULTS,
        *POINT_FAULTS,
        *JOURNAL_FAULTS,
        LATE_TIMER,
        SKEW,
    )
)


class RivalsTrial(AnyTrial, frozen=True, kw_only=True):
    """The settings of a run of one seed with two masters."""

    timing: Timing = PAPER
    owners: int = 5
    knows: Knows | None = None
    """Who can see both; None if it is to be drawn."""
    faults: tuple[str, ...] = FAULTS.kinds
