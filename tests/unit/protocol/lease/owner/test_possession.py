"""What is in the way of state that is offered: each kind of thing that an owner may have there."""

from tenure.base.instants import Instant
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.messages import Leased
from tenure.protocol.lease.owner.events import ImportBegan, Imported
from tenure.protocol.lease.owner.possession import Possession

LOW, HIGH, ACROSS = KeyRange(b"", b"m"), KeyRange(b"m", None), KeyRange(b"a", b"z")


def having_low() -> Possession:
    possession = Possession()
    possession.belief.incarnation = 1
    possession.belief.take((Leased(LOW.start, LOW.end, 5, 5, "granted"),))
    possession.belief.move_expiry(Instant(0), Instant(100))
    return possession


def test_what_is_served_is_in_the_way_and_nothing_else() -> None:
    possession = having_low()
    assert "served here under number 5" in (possession.in_the_way_of(ACROSS) or "")
    assert possession.in_the_way_of(HIGH) is None


def test_a_copy_is_in_the_way_also_of_a_part_and_although_it_is_empty() -> None:
    possession = having_low()
    possession.copies.on_event(ImportBegan(HIGH, 4))
    possession.copies.on_event(Imported(HIGH, 4))
    assert "a copy of" in (possession.in_the_way_of(KeyRange(b"x", b"y")) or "")


def test_what_the_application_has_not_let_go_of_is_in_the_way() -> None:
    possession = having_low()
    possession.drop_all()
    assert "not discarded yet" in (possession.in_the_way_of(ACROSS) or "")
    possession.belief.let_go(1)
    assert possession.in_the_way_of(ACROSS) is None
