"""How long things last. Three presets; every figure with its reason.

All of them are the manager's (rule P7): owners and lookups are told, never configured, so that two
processes with different presets cannot disagree about how long a lease lasts.
"""

import msgspec

from tenure.base.instants import MILLISECOND_NS, seconds
from tenure.errors import ConfigurationError


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Every duration of the protocol, in nanoseconds of its holder's own clock."""

    name: str
    term_ns: int
    """How long an owner may count on its leases, from when it sent the request."""
    hold_ns: int
    """How long the manager waits, from when it received the request, before others get the ranges.
    """
    longest_hold_ns: int
    """The longest hold that any earlier manager of these owners may have had (rule P22)."""
    renew_ns: int
    """How often an owner asks when nobody pokes it."""
    sync_ns: int
    """How often a lookup asks what changed; changes are pushed in between."""
    bunch_ns: int
    """How far apart the instants are at which clients are told to ask. Those that ask at the same
    one wake the manager once, and not each for itself alone."""
    contact_ns: int
    """How long a lookup trusts its table after the last answered sync was sent (rule P17)."""
    recall_ns: int
    """How long a recalled range stays with its owner, so that `on_revoke` can finish (rule P10)."""
    hand_off_ns: int
    """How long a range may take to be handed over with its state, before it is recalled (P13)."""
    leadership_ns: int
    """How long a leader may count on leading, from when it sent its last confirmed beat (rule P19).
    """
    beat_ns: int
    """How often a leader beats, and a standby looks."""
    gather_ns: int
    """How long the manager waits for more owners before it plans, to take them together."""
    push_ns: int
    """How long changes are gathered before they are pushed to lookups."""
    keep_changes_ns: int
    """How long a change is kept for lookups; an older lookup gets the whole table."""

    def __post_init__(self) -> None:
        if not self.term_ns < self.hold_ns <= self.longest_hold_ns:
            msg = (
                f"timing {self.name!r}: the term ({self.term_ns} ns) must be below the hold "
                f"({self.hold_ns} ns), and the hold at most the longest hold "
                f"({self.longest_hold_ns} ns)"
            )
            raise ConfigurationError(msg)
        if not 0 < self.bunch_ns <= min(self.renew_ns, self.sync_ns) // 2:
            msg = (
                f"timing {self.name!r}: the bunches ({self.bunch_ns} ns) must be above 0, and at "
                f"most half the renewal ({self.renew_ns} ns) and half the sync ({self.sync_ns} ns)"
            )
            raise ConfigurationError(msg)

    def on_any_clock(self, duration_ns: int) -> int:
        """How long to wait here until `duration_ns` has passed on any clock within the bound."""
        return -(-duration_ns * self.hold_ns // self.term_ns)


PAPER = Timing(
    name="paper",
    term_ns=seconds(60),  # Centrifuge 2.1.2
    hold_ns=seconds(65),  # Centrifuge 2.3.1: clock rates within 8.33 %
    longest_hold_ns=seconds(65),  # no preset promises longer
    renew_ns=seconds(15),  # Centrifuge 2.3: three requests in a row must be lost to lose a lease
    sync_ns=seconds(30),  # Centrifuge 2.2.1
    bunch_ns=seconds(0.5),  # a thirtieth of a renewal: asking early costs at most as much more
    contact_ns=seconds(60),  # one sync may be lost
    recall_ns=seconds(30),  # half a term: a callback that flushes to a database fits easily
    hand_off_ns=seconds(120),  # it is served meanwhile: gigabytes fit, and a stuck one is noticed
    leadership_ns=seconds(15),  # a quarter of a term: a failover costs no owner its lease
    beat_ns=seconds(4),  # three beats in a row must be lost to lose the leadership
    gather_ns=seconds(
        1
    ),  # a deployment starts its machines within seconds, the paper's asks every 15
    push_ns=50 * MILLISECOND_NS,  # less than a client's retry backoff, more than a burst's spacing
    keep_changes_ns=seconds(300),  # Centrifuge 2.1.2
)

DEFAULT = Timing(
    name="default",
    term_ns=seconds(12),  # a crashed owner's keys are back in 13 s, and a 10 s stall loses nothing
    hold_ns=seconds(13),  # the paper's ratio of 65 to 60
    longest_hold_ns=seconds(65),  # an earlier manager may have run with the paper's preset
    renew_ns=seconds(3),  # as in the paper, a quarter of the term
    sync_ns=seconds(5),  # changes are pushed; this is the heartbeat
    bunch_ns=seconds(0.1),  # as in the paper's preset, a thirtieth of a renewal
    contact_ns=seconds(10),  # one sync may be lost
    recall_ns=seconds(6),  # half a term
    hand_off_ns=seconds(60),  # it is served meanwhile: gigabytes fit, and a stuck one is noticed
    leadership_ns=seconds(1.5),  # so that a new leader answers within 3 s of a crash
    beat_ns=seconds(0.3),  # four beats in a row must be lost to lose the leadership
    gather_ns=100 * MILLISECOND_NS,  # processes that one command starts come within this
    push_ns=20 * MILLISECOND_NS,  # below what a person or a retry notices
    keep_changes_ns=seconds(300),  # as in the paper
)

TEST = Timing(
    name="test",
    term_ns=seconds(1.2),  # the default, ten times faster
    hold_ns=seconds(1.3),
    longest_hold_ns=seconds(65),  # whoever tries this out beside other managers had longer holds
    renew_ns=seconds(0.3),
    sync_ns=seconds(0.5),
    bunch_ns=10 * MILLISECOND_NS,
    contact_ns=seconds(1),
    recall_ns=seconds(0.6),
    hand_off_ns=seconds(6),  # the default, ten times faster
    leadership_ns=seconds(0.6),  # less than a term, more than a busy test machine's hiccup
    beat_ns=seconds(0.1),
    gather_ns=20 * MILLISECOND_NS,
    push_ns=10 * MILLISECOND_NS,
    keep_changes_ns=seconds(30),
)

PRESETS = {timing.name: timing for timing in (PAPER, DEFAULT, TEST)}


def preset(name: str) -> Timing:
    """The preset called `name`. Raises ConfigurationError, naming those there are."""
    try:
        return PRESETS[name]
    except KeyError:
        msg = f"no preset is called {name!r}; there are {', '.join(PRESETS)}"
        raise ConfigurationError(msg) from None
