"""Leadership: a seat in the journal, taken and kept by compare-and-set (P19, P20, P23).

A standby watches the seat's beat. If it sees no beat for as long as the leader may count on, on any
clock within the bound, it campaigns: it takes the seat under the next leadership, if the seat is
still as the standby saw it. A leader counts on its leadership from when it *sent* its last
confirmed beat, so it falls silent before anybody can have taken over by waiting.

Safety does not depend on there being one leader at a time, because the number of the leadership
guards every append, nor on the journal's sense of time. A leadership that is revoked early costs a
failover, and the successor waits until no promise of its predecessor can still hold (P19).
"""

from typing import Literal, Protocol, TypeAlias

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.log.journal import (
    Beat,
    Beaten,
    Campaign,
    Campaigned,
    JournalFailed,
    Mandate,
    ReadSeat,
    Resign,
    Seat,
    SeatRead,
)

Phase = Literal["standby", "campaigning", "leading", "resigned"]
LONG_AGO = Instant(-FAR_FUTURE)


class LeadershipTiming(Protocol):
    """How long a leadership lasts, and how often it is shown."""

    @property
    def leadership_ns(self) -> int:
        """How long a leader may count on leading since it sent its last confirmed beat (P19)."""

    @property
    def beat_ns(self) -> int:
        """How often a leader beats, and a standby looks."""

    def on_any_clock(self, duration_ns: int) -> int:
        """How long to wait here until `duration_ns` has passed on any clock within the bound."""


SeatAction: TypeAlias = ReadSeat | Campaign | Beat | Resign


class Leadership:
    """One manager's view of the seat, and its hold on it."""

    def __init__(self, manager: str, timing: LeadershipTiming) -> None:
        self.manager = manager
        self.timing = timing
        self.phase: Phase = "standby"
        self.seat = Seat()
        self.leadership = 0
        """The leadership that this manager holds, or campaigns for."""
        self.mandate = Mandate()
        """The mandate under which this process leads, if it does."""
        self.proven_until = LONG_AGO
        self.is_proven = False
        """Whether this manager is known to lead, at the time of what is being handled."""
        self._doubted_at: Instant | None = None
        """When a peer was met that has seen more than this journal tells: the next beat decides."""
        self._highest_seen = 0
        """The highest leadership that was seen in the seat: it never goes back (P22)."""
        self._seen_since = LONG_AGO
        self.asked_at = LONG_AGO
        """When the request to the journal that is under way was sent."""
        self._under_way: SeatAction | None = None
        """The request under way: only its answer counts from `asked_at`, and answers to others are
        ignored.
        """
        self._next_at = LONG_AGO

    def is_proven_at(self, now: Instant) -> bool:
        """Whether this manager leads, and no other can have taken over by waiting."""
        return self.phase == "leading" and now < self.proven_until

    @property
    def leader(self) -> str | None:
        """The URL of the manager that leads, as far as known."""
        return self.seat.manager or None

    @property
    def wake_at(self) -> Instant:
        """When to look at the seat, or to beat, next."""
        done = self._under_way is not None or self.phase == "resigned"
        return FAR_FUTURE if done else self._next_at

    def advance(self, now: Instant) -> list[SeatAction]:
        """Look at the seat, or beat, if it is time."""
        self.is_proven = self._doubted_at is None and self.is_proven_at(now)
        if now < self.wake_at or self.wake_at == FAR_FUTURE:
            return []
        self._next_at = Instant(now + self.timing.beat_ns)
        if self.phase == "leading":
            return [self._ask(now, Beat(self.mandate, self.seat.beat + 1))]
        return [self._ask(now, ReadSeat())]

    def _ask(self, now: Instant, action: SeatAction) -> SeatAction:
        self._under_way = action
        self.asked_at = now
        return action

    # --- standing by ---

    def on_seat_read(self, now: Instant, event: SeatRead) -> list[SeatAction]:
        """Watch the beat; campaign if it has stopped, or if nobody leads."""
        if not isinstance(self._under_way, ReadSeat):
            return []
        self._under_way = None
        if self.phase != "standby":
            return []
        self._highest_seen = max(self._highest_seen, event.seat.leadership)
        if event.seat != self.seat or self._seen_since == LONG_AGO:
            self.seat = event.seat
            self._seen_since = now
        if self.seat.manager and not self.has_watched_enough(now):
            return []
        self.phase = "campaigning"
        self.leadership = self.seat.leadership + 1
        taken = Seat(self.leadership, 0, self.manager, self.timing.on_any_clock(self._patience()))
        return [self._ask(now, Campaign(self.seat, taken))]

    def has_gone_back(self, seat: Seat) -> bool:
        """Whether the journal is an old copy of the one that this manager knows (P22).

        Leading on it would use the number of a leadership for a second time.
        """
        return seat.leadership < self._highest_seen

    def _patience(self) -> int:
        return self.timing.leadership_ns

    def has_watched_enough(self, now: Instant) -> bool:
        """Whether the leader has not beaten for longer than it may count on (P23)."""
        return now >= self._seen_since + self.seat.watch_ns

    def on_campaigned(self, event: Campaigned) -> bool:
        """Take the seat if the campaign was won. Returns whether it was.

        The leadership counts from the time at which the campaign was sent.
        """
        asked = self._under_way
        if not isinstance(asked, Campaign) or asked.taken.leadership != event.leadership:
            return False
        self._under_way = None
        if self.phase != "campaigning":
            return False
        if event.mandate is None:
            self.become_standby()
            return False
        self.mandate = event.mandate
        self.phase = "leading"
        self._highest_seen = self.leadership
        watch_ns = self.timing.on_any_clock(self._patience())
        self.seat = Seat(self.leadership, 0, self.manager, watch_ns)
        self.proven_until = Instant(self.asked_at + self.timing.leadership_ns)
        return True

    # --- leading ---

    def on_beaten(self, event: Beaten) -> bool:
        """Count on the leadership anew, from when the beat was sent; return False if it is lost."""
        is_ours = event.leadership == self.mandate.leadership
        if not is_ours or self._under_way != Beat(self.mandate, event.beat):
            return True
        self._under_way = None
        if self.phase != "leading":
            return True
        if not event.kept:
            self.become_standby()
            return False
        self.seat = Seat(self.leadership, event.beat, self.manager, self.seat.watch_ns)
        self.proven_until = Instant(self.asked_at + self.timing.leadership_ns)
        return True

    def doubt(self, now: Instant) -> None:
        """Say nothing until it is known whether another manager leads already, or the journal went
        back.
        """
        self._doubted_at = now

    @property
    def has_gone_back_since(self) -> bool:
        """Whether a beat that was sent after the doubt was confirmed: then nobody else leads, so
        the journal went back.
        """
        sent_at = self.proven_until - self.timing.leadership_ns
        return self._doubted_at is not None and sent_at > self._doubted_at

    def on_failed(self, event: JournalFailed) -> None:
        """Ask again later. The seat will tell whether a failed campaign was won nevertheless."""
        if event.action != self._under_way:
            return
        self._under_way = None
        if self.phase == "campaigning":
            self.become_standby()
            # Not at once: what cannot be written now (a full disk) cannot in the next instant.
            self._next_at = Instant(self.asked_at + self.timing.beat_ns)

    def become_standby(self) -> None:
        """Watch from now on, with nothing known, because another manager leads or may lead."""
        self.phase = "standby"
        self.seat = Seat()
        self._seen_since = LONG_AGO
        self._next_at = LONG_AGO
        self._believe_nothing()

    def _believe_nothing(self) -> None:
        self.proven_until, self.is_proven, self._doubted_at = LONG_AGO, False, None

    def resign(self) -> list[SeatAction]:
        """Stop leading, for good."""
        was_leading = self.phase == "leading"
        self.phase = "resigned"
        self._believe_nothing()
        return [Resign(self.mandate)] if was_leading else []

    def let_go(self) -> list[SeatAction]:
        """Stop leading under this leadership; this manager may win the next one, too."""
        was_leading = self.phase == "leading"
        self.become_standby()
        return [Resign(self.mandate)] if was_leading else []

    def invariants(self) -> None:
        """Only a leader has a time until which it counts on its leadership."""
        assert self.phase == "leading" or self.proven_until == LONG_AGO
