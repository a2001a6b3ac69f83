"""Events: counted by fixed words, logged as one line, told to subscribers."""

import logging

import pytest

from tenure.base.instants import Instant
from tenure.base.noted import Level, Noted, NotedKind
from tenure.observe.events import LINES_IN_A_WINDOW, WINDOW_NS, Observer, line, printable
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.log.noted import LogKind


def test_events_are_counted_by_what_happened_and_not_by_its_details() -> None:
    observer = Observer("tenure.test")
    observer.note(Noted(LeaderKind.JOINED, "rooms", "ann as 1"))
    observer.note(Noted(LeaderKind.JOINED, "rooms", "bob as 2"))
    observer.note(Noted(LogKind.DEPOSED))
    assert observer.counters == {"owner joined": 2, "deposed": 1}


def test_events_are_counted_where_the_log_is_off(caplog: pytest.LogCaptureFixture) -> None:
    observer = Observer("tenure.test")
    observer.logger.setLevel(logging.CRITICAL)
    try:
        observer.note(Noted(LogKind.DEPOSED))
    finally:
        observer.logger.setLevel(logging.NOTSET)
    assert observer.counters == {"deposed": 1}
    assert caplog.records == []


def test_a_line_has_the_pool_what_happened_and_the_detail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Observer("tenure.test").note(Noted(LeaderKind.EXPIRED, "rooms", "ann (3)"))
    assert caplog.messages == ["[rooms] owner expired: ann (3)"]
    assert caplog.records[0].levelno == logging.WARNING


def test_what_repeats_is_loud_once_for_each_detail(caplog: pytest.LogCaptureFixture) -> None:
    """A lookup that lies says so with every message, and the log must not be its to fill."""
    caplog.set_level(logging.DEBUG)
    observer = Observer("tenure.test")
    for _ in range(3):
        observer.note(Noted(LeaderKind.REFUSED_CLAIM, "rooms"))
    observer.note(Noted(LeaderKind.REFUSED_CLAIM, "docs"))
    for why in ("no", "no", "never"):
        observer.note(Noted(LeaderKind.POLICY_FAILED, "rooms", why))
    loud = [record for record in caplog.records if record.levelno > logging.DEBUG]
    assert [record.getMessage() for record in loud] == [
        "[rooms] refused: a lookup claims what is not in the journal",
        "[docs] refused: a lookup claims what is not in the journal",
        "[rooms] policy failed: no",
        "[rooms] policy failed: never",
    ]
    assert observer.counters["policy failed"] == 3


def test_subscribers_are_told() -> None:
    told: list[Noted] = []
    observer = Observer("tenure.test")
    observer.subscribe(told.append)
    granted = Noted(LeaderKind.GRANTED, "rooms", "2 ranges to ann")
    observer.note(granted)
    assert told == [granted]


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        (LogKind.GAVE_UP, logging.ERROR),
        (LeaderKind.REFUSED_NAME, logging.WARNING),
        (LogKind.JOURNAL_FAILED, logging.WARNING),
        (LeaderKind.JOINED, logging.INFO),
        (LeaderKind.GRANTED, logging.INFO),
        (LeaderKind.LATE_REQUEST, logging.DEBUG),
    ],
)
def test_what_may_need_an_operator_is_loud_and_what_is_usual_is_quiet(
    kind: NotedKind, level: int
) -> None:
    assert kind.level == level


def test_levels_are_those_of_logging() -> None:
    assert {level.name: level.value for level in Level} == {
        name: logging.getLevelNamesMapping()[name] for name in Level.__members__
    }


def test_a_name_from_a_peer_cannot_begin_a_line_or_steer_a_terminal() -> None:
    shown = line(Noted(LeaderKind.JOINED, "a\nb", "\x1b[31mann\r"))
    assert shown == "[a\\nb] owner joined: \\x1b[31mann\\r"
    assert printable("größe 鍵") == "größe 鍵"


def test_lines_of_one_kind_about_a_pool_are_bounded_and_what_is_left_out_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Owners that join and expire without end take no more than a token."""
    now = Instant(0)
    observer = Observer("tenure.test", lambda: now)
    told: list[Noted] = []
    observer.subscribe(told.append)
    for number in range(LINES_IN_A_WINDOW + 50):
        observer.note(Noted(LeaderKind.EXPIRED, "rooms", f"decoy ({number})"))
    observer.note(Noted(LeaderKind.EXPIRED, "carts", "ann (1)"))
    assert len(caplog.messages) == LINES_IN_A_WINDOW + 1
    assert caplog.messages[-1] == "[carts] owner expired: ann (1)"
    assert observer.counters["owner expired"] == len(told) == LINES_IN_A_WINDOW + 51
    now = Instant(WINDOW_NS)
    observer.note(Noted(LeaderKind.EXPIRED, "rooms", "bob (2)"))
    assert caplog.messages[-2:] == [
        "[rooms] owner expired: 50 more in a minute, which were only counted",
        "[rooms] owner expired: bob (2)",
    ]


def test_no_error_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    observer = Observer("tenure.test", lambda: Instant(0))
    for number in range(LINES_IN_A_WINDOW + 50):
        observer.note(Noted(LeaderKind.POLICY_FAILED, "rooms", f"{number}"))
    assert len(caplog.messages) == LINES_IN_A_WINDOW + 50
