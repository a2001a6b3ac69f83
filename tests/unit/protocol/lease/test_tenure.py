"""What is in the way of state that is offered: each kind of thing that an owner may have there."""

from leasehold.base.instants import Instant
from leasehold.base.ranges import KeyRange
from leasehold.protocol.lease.messages import Leased
from leasehold.protocol.lease.owner_events import ImportBegan, Imported
from leasehold.protocol.lease.tenure import Tenure

LOW, HIGH, ACROSS = KeyRange(b"", b"m"), KeyRange(b"m", None), KeyRange(b"a", b"z")


def having_low() -> Tenure:
    tenure = Tenure()
    tenure.belief.incarnation = 1
    tenure.belief.take((Leased(LOW.start, LOW.end, 5, 5, "granted"),))
    tenure.belief.move_expiry(Instant(0), Instant(100))
    return tenure


def test_what_is_served_is_in_the_way_and_nothing_else() -> None:
    tenure = having_low()
    assert "served here under number 5" in (tenure.in_the_way_of(ACROSS) or "")
    assert tenure.in_the_way_of(HIGH) is None


def test_a_copy_is_in_the_way_also_of_a_part_and_although_it_is_empty() -> None:
    tenure = having_low()
    tenure.copies.on_event(ImportBegan(HIGH, 4))
    tenure.copies.on_event(Imported(HIGH, 4))
    assert "a copy of" in (tenure.in_the_way_of(KeyRange(b"x", b"y")) or "")


def test_what_the_application_has_not_let_go_of_is_in_the_way() -> None:
    tenure = having_low()
    tenure.drop_all()
    assert "not discarded yet" in (tenure.in_the_way_of(ACROSS) or "")
    tenure.belief.let_go(1)
    assert tenure.in_the_way_of(ACROSS) is None
