"""Leadership: a seat, taken and kept by compare-and-set; every phase crossed with every event."""

from collections.abc import Callable

import pytest

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.protocol.lease.records import JournalAction, State
from tenure.protocol.lease.timing import DEFAULT, PAPER
from tenure.protocol.log.journal import (
    Append,
    Beat,
    Beaten,
    Campaign,
    Campaigned,
    Compact,
    JournalFailed,
    Load,
    Mandate,
    ReadSeat,
    Resign,
    Seat,
    SeatRead,
)
from tenure.protocol.log.leadership import Leadership

T0 = Instant(0)
MANDATE = Mandate(77, 1)
OTHER = Seat(4, 7, "other", seconds(3))


def at(value: float) -> Instant:
    return Instant(seconds(value))


def standing_by() -> Leadership:
    leadership = Leadership("me", DEFAULT)
    assert leadership.advance(T0) == [ReadSeat()]
    return leadership


def campaigning() -> Leadership:
    leadership = standing_by()
    leadership.on_seat_read(T0, SeatRead(Seat()))
    return leadership


def leading() -> Leadership:
    leadership = campaigning()
    assert leadership.on_campaigned(Campaigned(1, MANDATE))
    return leadership


def beating() -> Leadership:
    leadership = leading()
    assert leadership.advance(at(0.3)) == [Beat(MANDATE, 1)]
    return leadership


def resigned() -> Leadership:
    leadership = leading()
    leadership.resign()
    return leadership


PHASES = (standing_by, campaigning, leading, beating, resigned)
FAILED: tuple[JournalAction, ...] = (
    ReadSeat(),
    Campaign(Seat(), Seat(1, 0, "me")),
    Beat(MANDATE, 1),
    Load(1),
    Append(MANDATE, 0, ()),
    Compact(MANDATE, 0, State()),
    Resign(MANDATE),
)
EVENTS: tuple[Callable[[Leadership], object], ...] = (
    *(lambda x, s=seat: x.on_seat_read(at(1), SeatRead(s)) for seat in (Seat(), OTHER)),
    *(
        lambda x, n=number, won=won: x.on_campaigned(Campaigned(n, won))
        for number in (1, 2)
        for won in (Mandate(77, number), None)
    ),
    *(
        lambda x, n=number, kept=kept: x.on_beaten(Beaten(n, 1, kept))
        for number in (1, 2)
        for kept in (True, False)
    ),
    *(lambda x, a=action: x.on_failed(JournalFailed(a, "no")) for action in FAILED),
    lambda x: x.become_standby(),
    lambda x: x.resign(),
    lambda x: x.advance(at(1)),
)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("event", EVENTS)
def test_any_event_in_any_phase_keeps_the_invariants(
    phase: Callable[[], Leadership], event: Callable[[Leadership], object]
) -> None:
    leadership = phase()
    event(leadership)
    leadership.invariants()
    for step in range(1, 20):  # and it goes on asking, at most once at a time, and not faster
        assert len(leadership.advance(at(step))) <= 1
        leadership.invariants()


def test_an_empty_seat_is_campaigned_for_at_once() -> None:
    leadership = standing_by()
    actions = leadership.on_seat_read(T0, SeatRead(Seat()))
    patience = DEFAULT.on_any_clock(DEFAULT.leadership_ns)
    assert actions == [Campaign(Seat(), Seat(1, 0, "me", patience))]


def looking(leadership: Leadership, now: Instant, seat: Seat) -> list[type]:
    """Return what it does on seeing `seat`."""
    leadership.advance(now)
    return [type(action) for action in leadership.on_seat_read(now, SeatRead(seat))]


def test_a_seat_is_watched_for_as_long_as_its_leader_may_count_on_it() -> None:
    """P23: the leader's own patience counts, not that of the manager that watches."""
    patience = PAPER.on_any_clock(PAPER.leadership_ns)
    seat = Seat(4, 7, "other", patience)
    for waited, does in ((patience - 1, []), (patience, [Campaign])):
        leadership = standing_by()
        assert looking(leadership, T0, seat) == []
        assert looking(leadership, Instant(waited), seat) == does


def test_a_beat_begins_the_watch_anew() -> None:
    leadership = standing_by()
    looking(leadership, T0, OTHER)
    beaten = Seat(OTHER.leadership, OTHER.beat + 1, OTHER.manager, OTHER.watch_ns)
    assert looking(leadership, at(2.9), beaten) == []
    assert looking(leadership, at(3.2), beaten) == []
    assert looking(leadership, at(5.9), beaten) == [Campaign]


def test_a_seat_of_a_lower_leadership_than_was_seen_is_that_of_an_old_copy() -> None:
    """P22: seen in the seat, or held. A leader that is deposed remembers."""
    watching, deposed = standing_by(), leading()
    looking(watching, T0, OTHER)
    deposed.become_standby()
    for leadership, seen in ((watching, OTHER.leadership), (deposed, 1)):
        assert leadership.has_gone_back(Seat(seen - 1, 99, "other", OTHER.watch_ns))
        assert not leadership.has_gone_back(Seat(seen, 0, "", 0))


def test_a_resigned_seat_need_not_be_watched() -> None:
    leadership = standing_by()
    [action] = leadership.on_seat_read(T0, SeatRead(Seat(4, 7, "", seconds(3))))
    assert isinstance(action, Campaign)
    assert action.taken.leadership == 5


def test_leadership_counts_from_when_the_campaign_was_sent() -> None:
    leadership = campaigning()
    leadership.on_campaigned(Campaigned(1, MANDATE))
    assert leadership.is_proven_at(Instant(DEFAULT.leadership_ns - 1))
    assert not leadership.is_proven_at(Instant(DEFAULT.leadership_ns))


def test_leadership_counts_from_when_the_last_confirmed_beat_was_sent() -> None:
    """P19."""
    leadership = beating()
    leadership.on_beaten(Beaten(1, 1, kept=True))
    assert leadership.proven_until == at(0.3) + DEFAULT.leadership_ns


def test_a_failed_compaction_does_not_move_the_beat_under_way() -> None:
    """P19: the journal failed at something else, while a beat was on its way. If the next beat had
    been sent then, the answer to the first would count from the second.
    """
    leadership = beating()
    leadership.on_failed(JournalFailed(Compact(MANDATE, 5, State()), "full"))
    assert leadership.advance(at(1.2)) == [], "a beat is under way"
    leadership.on_beaten(Beaten(1, 1, kept=True))
    assert leadership.proven_until == at(0.3) + DEFAULT.leadership_ns


def test_an_answer_to_another_beat_proves_nothing() -> None:
    """The journal's answer to the first beat comes after its failure: the second is under way."""
    leadership = beating()
    leadership.on_failed(JournalFailed(Beat(MANDATE, 1), "slow"))
    assert leadership.advance(at(0.6)) == [Beat(MANDATE, 1)]
    leadership.on_beaten(Beaten(1, 0, kept=True))
    assert leadership.proven_until == DEFAULT.leadership_ns


def test_a_refused_beat_ends_the_leadership() -> None:
    leadership = beating()
    assert not leadership.on_beaten(Beaten(1, 1, kept=False))
    assert (leadership.phase, leadership.is_proven_at(at(0.4))) == ("standby", False)


def test_a_lost_campaign_is_followed_by_a_look_at_the_seat() -> None:
    leadership = campaigning()
    assert not leadership.on_campaigned(Campaigned(1, None))
    assert leadership.wake_at <= T0
    assert leadership.advance(at(0.001)) == [ReadSeat()]


def test_a_journal_that_refuses_campaigns_is_not_asked_in_a_busy_loop() -> None:
    """Its disk is full, say: the seat is free and can be read, but not taken."""
    leadership = Leadership("me", DEFAULT)
    asked = 0
    now = T0
    while now < at(3):
        for action in leadership.advance(now):
            asked += 1
            if isinstance(action, ReadSeat):
                [campaign] = leadership.on_seat_read(now, SeatRead(Seat()))
                leadership.on_failed(JournalFailed(campaign, "full"))
        assert asked < 100, f"asked {asked} times by {now} ns"
        now = max(leadership.wake_at, Instant(now + 1))
    assert 5 <= asked <= 15


def test_who_resigned_asks_for_nothing_more() -> None:
    leadership = beating()
    assert leadership.resign() == [Resign(MANDATE)]
    leadership.on_beaten(Beaten(1, 1, kept=True))
    assert (leadership.wake_at, leadership.advance(at(99))) == (FAR_FUTURE, [])
    assert leadership.resign() == []


def test_who_never_led_has_nothing_to_resign() -> None:
    assert campaigning().resign() == []
