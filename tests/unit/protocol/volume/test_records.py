"""A server's records: numbers, quiets, floors, and what a memory tells."""

from random import Random

import msgspec

from tenure.base.instants import Instant, seconds
from tenure.base.ranges import KeyRange
from tenure.protocol.volume.epochs import Opening
from tenure.protocol.volume.messages import AsOf
from tenure.protocol.volume.served_ranges import ServedRanges, Serving
from tenure.protocol.volume.server_events import ServerConfig, VolumeMemory
from tenure.protocol.volume.versions import KnownWrites, Versions

LEFT, RIGHT = KeyRange(b"", b"m"), KeyRange(b"m", None)
BOTH = b"a", b"z"
NOW = Instant(seconds(1000))


def test_a_write_of_two_ranges_waits_for_both_quiets_and_has_the_lower_number() -> None:
    """V13, V14."""
    for quiets in ((5, 9), (9, 5)):
        served = ServedRanges(is_strong=True)
        served.begin(LEFT, Serving(7, Instant(quiets[0])))
        served.begin(RIGHT, Serving(8, Instant(quiets[1])))
        assert served.quiet_until(BOTH) == 9
        assert served.number_of(BOTH) == 7


def test_as_of_another_history_covers_nothing() -> None:
    """V15."""
    earlier, later = (AsOf(history=1, number=7, count=count) for count in (1, 2))
    assert later.covers(earlier)
    assert not earlier.covers(later)
    assert not msgspec.structs.replace(later, history=2).covers(earlier)


def test_known_writes_that_are_too_many_raise_the_floor() -> None:
    """V15: also those that came with the state of a range."""
    versions = Versions(most=1)
    known = KnownWrites(((LEFT, (7, 0)),), ((b"a", (7, 3)), (b"b", (7, 4))))
    versions.begin(LEFT, 8, known)
    versions.invariants()
    assert not versions.is_current(b"c", (7, 2))
    assert versions.is_current(b"c", (7, 3))


def quiet_s(memory: VolumeMemory | None, longest_s: float = 0) -> float:
    config = ServerConfig(memory=memory, boot_id="this", longest_ns=seconds(longest_s))
    return Opening(config, Random(1)).quiet_ns(NOW) / 1e9


def test_how_long_a_server_is_quiet_after_what_it_finds() -> None:
    """V16."""
    soon = VolumeMemory(
        number=1, longest_ns=seconds(3), until=Instant(NOW + seconds(1)), boot_id="this"
    )
    assert quiet_s(soon) == 1
    assert quiet_s(msgspec.structs.replace(soon, boot_id="another")) == 3.25
    assert quiet_s(msgspec.structs.replace(soon, drained=True)) == 0
    assert quiet_s(None) == 3.25
    assert quiet_s(None, longest_s=6) == 6.5
    assert quiet_s(VolumeMemory(number=1, longest_ns=seconds(12))) == 13
