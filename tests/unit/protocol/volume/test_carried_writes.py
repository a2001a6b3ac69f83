"""Knowledge of writes goes from one owner to the next, and back (V15)."""

from tenure.base.ranges import KeyRange
from tenure.protocol.volume.server.carried_writes import CarriedWrites
from tenure.protocol.volume.server.versions import KnownWrites

ROOM = KeyRange(b"a", b"z")
LEFT, RIGHT = KeyRange(b"a", b"m"), KeyRange(b"m", b"z")
KNOWN = KnownWrites(((ROOM, (3, 1)),), ((b"b", (5, 2)), (b"n", (5, 3))))
NUMBER = 5


def carrying(known: KnownWrites = KNOWN) -> CarriedWrites:
    carried = CarriedWrites()
    carried.add(ROOM, NUMBER, known)
    return carried


def test_a_grant_takes_what_is_known_of_its_part_once() -> None:
    carried = carrying()
    assert carried.take(LEFT, NUMBER) == KnownWrites(((LEFT, (3, 1)),), ((b"b", (5, 2)),))
    assert carried.take(LEFT, NUMBER) is None
    assert carried.take(RIGHT, NUMBER) == KnownWrites(((RIGHT, (3, 1)),), ((b"n", (5, 3)),))
    assert len(carried) == 0


def test_it_comes_in_chunks_and_a_range_of_another_number_is_not_meant() -> None:
    carried = carrying(KnownWrites(KNOWN.floors, KNOWN.writes[:1]))
    carried.add(ROOM, NUMBER, KnownWrites((), KNOWN.writes[1:]))
    carried.add(ROOM, NUMBER - 1, KnownWrites(((ROOM, (1, 1)),), ()))
    assert carried.take(ROOM, NUMBER) == KNOWN
    assert carried.take(ROOM, NUMBER - 1) is None, "no other state of it is granted any more"


def test_a_grant_without_state_takes_nothing_and_leaves_nothing() -> None:
    carried = carrying()
    assert carried.take(ROOM, 0) is None
    assert len(carried) == 0


def test_what_is_forgotten_is_not_granted_and_the_rest_is() -> None:
    carried = carrying()
    carried.forget(LEFT, NUMBER)
    carried.forget(RIGHT, NUMBER - 1)
    assert carried.take(ROOM, NUMBER) == KnownWrites(((RIGHT, (3, 1)),), ((b"n", (5, 3)),))


def test_nothing_is_known_outside_the_range_that_was_offered() -> None:
    """A peer says more than it has: that says nothing about other ranges."""
    carried = CarriedWrites()
    carried.add(LEFT, NUMBER, KnownWrites(((KeyRange(), (0, 0)),), KNOWN.writes))
    assert carried.take(KeyRange(), NUMBER) == KnownWrites(((LEFT, (0, 0)),), KNOWN.writes[:1])


def test_whoever_tells_too_much_makes_the_oldest_go() -> None:
    carried = CarriedWrites(most=1)
    carried.add(LEFT, NUMBER, KnownWrites(((LEFT, (3, 1)),), ()))
    carried.add(RIGHT, NUMBER, KnownWrites(((RIGHT, (3, 1)),), ((b"n", (5, 3)),)))
    assert carried.take(LEFT, NUMBER) is None
    assert len(carried) == 2
