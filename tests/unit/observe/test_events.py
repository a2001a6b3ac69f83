"""Events: counted by fixed words, logged as one line, told to subscribers."""

import logging

import pytest

from tenure.observe.events import Observer, level_of, line, printable


def test_events_are_counted_by_what_happened_and_not_by_its_details() -> None:
    observer = Observer("tenure.test")
    observer.note("owner joined", "rooms", "ann as 1")
    observer.note("owner joined", "rooms", "bob as 2")
    observer.note("deposed")
    assert observer.counters == {"owner joined": 2, "deposed": 1}


def test_events_are_counted_where_the_log_is_off(caplog: pytest.LogCaptureFixture) -> None:
    observer = Observer("tenure.test")
    observer.logger.setLevel(logging.CRITICAL)
    try:
        observer.note("deposed")
    finally:
        observer.logger.setLevel(logging.NOTSET)
    assert observer.counters == {"deposed": 1}
    assert caplog.records == []


def test_a_line_has_the_pool_what_happened_and_the_detail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Observer("tenure.test").note("owner expired", "rooms", "ann (3)")
    assert caplog.messages == ["[rooms] owner expired: ann (3)"]
    assert caplog.records[0].levelno == logging.WARNING


def test_subscribers_are_told() -> None:
    told: list[tuple[str, str, str]] = []
    observer = Observer("tenure.test")
    observer.subscribe(lambda *event: told.append(event))
    observer.note("granted", "rooms", "2 to ann")
    assert told == [("granted", "rooms", "2 to ann")]


@pytest.mark.parametrize(
    ("what", "level"),
    [
        ("gave up", logging.ERROR),
        ("refused: name_held", logging.WARNING),
        ("journal failed", logging.WARNING),
        ("owner joined", logging.INFO),
        ("granted", logging.DEBUG),
    ],
)
def test_what_may_need_an_operator_is_loud_and_what_is_usual_is_quiet(
    what: str, level: int
) -> None:
    assert level_of(what) == level


def test_a_name_from_a_peer_cannot_begin_a_line_or_steer_a_terminal() -> None:
    shown = line("owner joined", "a\nb", "\x1b[31mann\r")
    assert shown == "[a\\nb] owner joined: \\x1b[31mann\\r"
    assert printable("größe 鍵") == "größe 鍵"
