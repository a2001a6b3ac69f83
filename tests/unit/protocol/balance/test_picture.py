"""The manager's picture of the load: smoothed by time, and of keys, not of owners."""

from math import exp

import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.keys import Key
from tenure.protocol.balance.load import SMOOTHING_NS, key_of
from tenure.protocol.balance.picture import MOST_KEYS, LoadPicture, Measurement, RangeRate

MIDDLE: Key = b"\x80" + bytes(7)
QUARTER: Key = b"\x40" + bytes(7)
LONG = seconds(1000)


def told(picture: LoadPicture, *ranges: RangeRate, span: int = LONG, hot: dict[Key, float]) -> None:
    picture.take(Measurement(span, ranges, tuple(hot.items())))
    picture.invariants()


def rates(picture: LoadPicture) -> dict[Key, float]:
    loads = picture.loads(Instant(0))
    return dict(zip(loads.starts, loads.rates, strict=True))


@pytest.mark.parametrize("reports", [1, 2, 12])
def test_the_same_rate_for_the_same_time_is_the_same_however_many_reports_tell_it(
    reports: int,
) -> None:
    picture = LoadPicture()
    for _ in range(reports):
        told(picture, RangeRate(b"", None, 100.0), span=seconds(12) // reports, hot={})
    assert rates(picture)[b""] == pytest.approx(100 * (1 - exp(-seconds(12) / SMOOTHING_NS)))


def test_a_report_of_no_time_says_nothing() -> None:
    picture = LoadPicture()
    told(picture, RangeRate(b"", None, 100.0), span=0, hot={})
    assert rates(picture) == {b"": 0.0}


def test_a_range_that_has_moved_keeps_its_rate() -> None:
    """Another owner reports it after a short time: its rate goes on from where it was."""
    picture = LoadPicture()
    told(picture, RangeRate(b"", MIDDLE, 100.0), RangeRate(MIDDLE, None, 50.0), hot={})
    told(picture, RangeRate(b"", MIDDLE, 100.0), span=seconds(0.1), hot={})
    assert rates(picture) == {b"": pytest.approx(100), MIDDLE: pytest.approx(50)}


def test_a_range_that_was_cut_has_its_part_and_its_hot_keys() -> None:
    picture = LoadPicture()
    told(picture, RangeRate(b"", MIDDLE, 100.0), hot={b"\x50" * 8: 40.0})
    told(picture, RangeRate(QUARTER, MIDDLE, 70.0), span=1, hot={b"\x50" * 8: 40.0})
    found = rates(picture)
    assert found[b""] == pytest.approx(30)
    assert found[QUARTER] == pytest.approx(70)


def test_ranges_that_were_joined_have_the_sum() -> None:
    picture = LoadPicture()
    told(picture, RangeRate(b"", QUARTER, 10.0), RangeRate(QUARTER, MIDDLE, 20.0), hot={})
    told(picture, RangeRate(b"", MIDDLE, 30.0), span=1, hot={})
    assert rates(picture) == {b"": pytest.approx(30), MIDDLE: 0.0}


def test_a_key_that_is_hot_no_more_is_forgotten() -> None:
    picture = LoadPicture()
    told(picture, RangeRate(b"", None, 100.0), hot={b"hot": 60.0})
    assert dict(picture.loads(Instant(0)).hottest) == {b"hot": pytest.approx(60)}
    told(picture, RangeRate(b"", None, 100.0), span=SMOOTHING_NS, hot={})
    assert dict(picture.loads(Instant(0)).hottest) == {b"hot": pytest.approx(60 * exp(-1))}
    told(picture, RangeRate(b"", None, 100.0), hot={})
    assert picture.loads(Instant(0)).hottest == []


def test_what_one_owner_reports_does_not_touch_the_keys_of_another() -> None:
    picture = LoadPicture()
    told(picture, RangeRate(b"", MIDDLE, 100.0), hot={b"a": 60.0})
    told(picture, RangeRate(MIDDLE, None, 100.0), hot={b"\x90": 30.0})
    assert [key for key, _ in picture.loads(Instant(0)).hottest] == [b"a", b"\x90"]


def test_of_the_ranges_of_a_report_only_so_many_keys_are_kept_the_hottest() -> None:
    """Reports of hardly any time cool nothing down, so each adds what it names."""
    picture = LoadPicture()
    told(picture, RangeRate(b"", None, 0.0), hot={b"hot": 1e18})
    for number in range(20):
        keys = {key_of(256 * number + each): 1e18 for each in range(256)}
        told(picture, RangeRate(b"", None, 0.0), span=1, hot=keys)
        hottest = dict(picture.loads(Instant(0)).hottest)
        assert b"hot" in hottest
        assert len(hottest) <= MOST_KEYS
