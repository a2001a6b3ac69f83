"""A server's records: numbers, quiets, floors, and what a memory tells."""

from random import Random

import msgspec

from tenure.base.instants import Instant, seconds
from tenure.base.ranges import KeyRange
from tenure.protocol.volume.messages import AsOf, Item
from tenure.protocol.volume.server.epochs import Opening
from tenure.protocol.volume.server.events import ServerConfig, VolumeMemory
from tenure.protocol.volume.server.readers import ReaderRecord, Readers
from tenure.protocol.volume.server.served_ranges import ServedRanges, Serving
from tenure.protocol.volume.server.terms import Terms
from tenure.protocol.volume.server.versions import KnownWrites, Versions

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


# --- readers, their leases and their items ---


def reader_of(readers: Readers) -> ReaderRecord:
    return readers.add(NOW, client=4, sequence=1)


def item(number: int, key: bytes = b"a") -> Item:
    return Item(item=number, key=key, number=7, count=number)


def test_at_the_very_end_of_its_lease_a_reader_may_not_hit() -> None:
    """A write that waits until then need not look again (V5)."""
    reader = reader_of(Readers(Terms(), Random(1)))
    reader.volume_until = Instant(NOW + 5)
    assert reader.is_active(Instant(NOW + 4))
    assert not reader.is_active(Instant(NOW + 5))


def test_leases_that_have_ended_are_dropped_in_the_order_of_their_ends() -> None:
    """One that was renewed ends last, and hides none that has ended (C6)."""
    readers = Readers(Terms(lease_ns=seconds(12)), Random(1))
    reader = reader_of(readers)
    for after_s, key in ((0, b"a"), (1, b"b"), (9, b"a")):
        readers.give_object(reader, key, Instant(NOW + seconds(after_s)), 1, (7, 1))
    ends = Instant(NOW + seconds(1 + 13))
    readers.drop_ended(Instant(ends - 1), reader)
    assert list(reader.leases) == [b"b", b"a"]
    readers.drop_ended(ends, reader)
    assert list(reader.leases) == [b"a"]
    assert readers.leases == 1


def test_a_reader_without_leases_makes_no_room() -> None:
    """It would have to reconnect, and nobody would have won anything (V17)."""
    readers = Readers(Terms(), Random(1))
    readers.add(NOW, client=1, sequence=1)
    holder, asks = (readers.add(NOW, client=each, sequence=1) for each in (2, 3))
    readers.give_object(holder, b"a", NOW, 1, (7, 1))
    assert readers.longest_inactive(NOW, asks) is holder


def test_a_later_item_of_an_object_stands_for_the_earlier_ones() -> None:
    """A reader that is away is told once of each object, unless a write waits (V17)."""
    readers = Readers(Terms(), Random(1))
    reader = reader_of(readers)
    for number in (1, 2):
        readers.add_item(reader, item(number), [])
    assert list(reader.items) == [2]
    readers.add_item(reader, item(3), [9])
    readers.add_item(reader, item(4), [])
    assert list(reader.items) == [3, 4], "a write waits for the third"
    assert readers.acknowledged(reader, (3,)) == [(9, 3)]
    readers.add_item(reader, item(5), [])
    assert list(reader.items) == [5]


def test_a_silent_reader_is_forgotten_at_the_instant_for_which_the_server_wakes() -> None:
    """Otherwise it would wake at that instant for ever (C6)."""
    readers = Readers(Terms(), Random(1))
    reader = reader_of(readers)
    assert readers.forgettable(Instant(readers.next_at - 1)) == []
    assert readers.forgettable(readers.next_at) == [reader]
