"""The owner's side of the load: counts between reports, and the hottest keys among samples."""

from collections.abc import Iterable, Sequence
from random import Random

import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.keys import KEY_BYTES, Key
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.picture import RangeRate
from tenure.protocol.lease.limits import HOT_NAMES, PINNED_KEY_BYTES
from tenure.protocol.lease.messages import ShortRequest
from tenure.protocol.lease.owner.meter import (
    MET_AT_LEAST,
    POSITIONS,
    SAMPLES,
    TOLD_AT_MOST,
    Meter,
    RangeTally,
    Sampler,
    as_message,
    evenly,
)

LOW, HIGH = KeyRange(b"", b"m"), KeyRange(b"m", None)


def check(sampler: Sampler, keys: Iterable[Key]) -> None:
    """Check keys as `Owner.check` does."""
    for key in keys:
        sampler.left -= 1
        if sampler.left < 0:
            sampler.meet(key)


def at(value: float) -> Instant:
    return Instant(seconds(value))


def low(number: int, load: float) -> RangeTally:
    return RangeTally(LOW.start, LOW.end, number, load)


def high(number: int, load: float) -> RangeTally:
    return RangeTally(HIGH.start, HIGH.end, number, load)


def test_a_report_says_what_was_counted_since_the_last() -> None:
    meter = Meter(Random(1), at(0))
    assert meter.report(at(1), [low(2, 100), high(3, 50)]).ranges == []
    report = meter.report(at(3), [low(2, 160), high(3, 50)])
    assert report.span_ns == seconds(2)
    assert report.ranges == [RangeRate(b"", b"m", 30.0), RangeRate(b"m", None, 0.0)]


def test_what_was_granted_meanwhile_is_left_out_of_the_next_report() -> None:
    meter = Meter(Random(1), at(0))
    meter.report(at(1), [low(2, 100)])
    assert meter.report(at(2), [low(5, 7), high(4, 9)]).ranges == []
    assert meter.report(at(3), [low(5, 9)]).ranges == [RangeRate(b"", b"m", 2.0)]


def test_two_reports_at_one_instant_say_nothing() -> None:
    meter = Meter(Random(1), at(1))
    meter.report(at(1), [low(2, 100)])
    assert meter.report(at(1), [low(2, 100)]).ranges == [RangeRate(b"", b"m", 0.0)]


@pytest.mark.parametrize("checks", [1_000, 100_000])
def test_hot_keys_are_found_with_their_rates(checks: int) -> None:
    random, sampler = Random(1), Sampler(Random(2))
    keys = [b"hot" if random.random() < 0.3 else random.randbytes(8) for _ in range(checks)]
    check(sampler, keys)
    sampler.take()
    check(sampler, keys)
    [(key, count)] = sampler.take().hottest
    assert key == b"hot"
    assert count == pytest.approx(0.3 * checks, rel=0.3)


def test_clients_that_ask_in_turns_do_not_look_like_one_hot_key() -> None:
    sampler = Sampler(Random(1))
    turns = [b"a", b"b", b"c", b"d"] * 8_000
    check(sampler, turns)
    sampler.take()
    check(sampler, turns)
    found = dict(sampler.take().hottest)
    assert found.keys() == {b"a", b"b", b"c", b"d"}
    assert max(found.values()) < 1.6 * min(found.values())


def test_few_samples_are_kept_however_much_is_asked() -> None:
    sampler = Sampler(Random(1))
    check(sampler, (b"%d" % (i % 100) for i in range(100_000)))
    assert len(sampler._met) <= 2 * SAMPLES + 1
    assert len(sampler.take().hottest) <= TOLD_AT_MOST
    check(sampler, (b"%d" % (i % 100) for i in range(100_000)))
    assert SAMPLES / 2 < len(sampler._met) < 2 * SAMPLES


def test_what_is_met_by_chance_is_not_told() -> None:
    sampler = Sampler(Random(1))
    check(sampler, (b"%d" % i for i in range(10_000)))
    assert sampler.take().hottest == []


def test_an_owner_of_an_ordered_pool_tells_some_of_the_keys_that_it_met() -> None:
    meter = Meter(Random(1), at(0), is_ordered=True)
    meter.report(at(1), [low(2, 0)])
    keys = [b"%04d" % i for i in range(SAMPLES)]
    Random(2).shuffle(keys)
    for key in [*keys, *[b"hot"] * SAMPLES]:
        meter.sampler.meet(key)
    sample = meter.report(at(2), [low(2, 100)]).sample
    assert len(sample) == POSITIONS
    assert list(sample) == sorted(sample)
    assert b"hot" not in sample, "it is told as a hot key"
    assert min(sample) < b"0008"
    assert max(sample) > b"0248"
    assert as_message(meter.report(at(3), [low(2, 200)])).sample == (), "it was told already"


def test_an_owner_of_a_hashed_pool_tells_no_sample() -> None:
    meter = Meter(Random(1), at(0))
    meter.report(at(1), [low(2, 0)])
    meter.sampler.meet(b"key")
    assert meter.report(at(2), [low(2, 100)]).sample == ()


def test_a_key_that_can_bound_no_range_is_not_told() -> None:
    """A manager refuses a message with such a key, and the owner would lose what it has."""
    sampler = Sampler(Random(1))
    for _ in range(MET_AT_LEAST):
        sampler.meet(b"k" * KEY_BYTES)
        sampler.meet(b"k" * PINNED_KEY_BYTES)
    met = sampler.take()
    assert [key for key, _ in met.hottest] == [b"k" * PINNED_KEY_BYTES]
    assert met.others == []


@pytest.mark.parametrize(
    ("count", "told"), [(0, []), (1, [0]), (4, [0, 1, 2, 3]), (9, [1, 3, 5, 7])]
)
def test_a_sample_is_spread_evenly_over_what_was_met(count: int, told: list[int]) -> None:
    assert evenly([b"%d" % i for i in range(count)], 4) == [b"%d" % i for i in told]


def test_the_hottest_keys_of_a_report_are_named() -> None:
    meter = Meter(Random(1), at(0))
    meter.report(at(1), [low(2, 100)])
    asked: list[Sequence[Key]] = []

    def named(keys: Sequence[Key]) -> tuple[str, ...]:
        asked.append(keys)
        return tuple(key.hex() for key in keys)

    hot = [(bytes([i]), 100.0 - i) for i in range(HOT_NAMES + 3)]
    request = ShortRequest(
        pool="p",
        incarnation=1,
        owner_nonce=2,
        manager_nonce=3,
        sequence=4,
        journal=5,
        leadership=6,
        fingerprint=bytes(16),
    )
    sent = meter.add_to(request, at(4), [low(2, 160)], lambda: hot, named)
    assert sent.load is not None
    assert asked == [[key for key, _ in hot[:HOT_NAMES]]]
    assert sent.load.names == tuple(key.hex() for key, _ in hot[:HOT_NAMES])
