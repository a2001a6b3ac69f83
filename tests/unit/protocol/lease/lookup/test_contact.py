"""The lookup machine in contact, out of it, and back: P17."""

import pytest

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.lookup.events import RoutingTable
from tenure.protocol.lease.messages import Entry
from tests.unit.protocol.lease.lookup.test_machine import (
    CONTACT_NS,
    OWNERS,
    Driven,
    at,
    in_contact,
    response,
)


def test_an_answer_that_comes_after_its_own_contact_is_too_late() -> None:
    """P17."""
    driven = Driven()
    sent = response(driven, Entry(start=b"", end=None, owner=1, number=3, since=3))
    driven.machine._sync_at = driven.machine.search.at = FAR_FUTURE  # a stall: no timer went off
    driven.hear(Instant(CONTACT_NS), sent)
    assert (driven.said(), driven.machine.in_contact) == (["answered too late"], False)


def test_contact_counts_from_when_the_answered_sync_was_sent() -> None:
    """P17."""
    driven = Driven()
    driven.hear(at(0.1), response(driven, Entry(start=b"", end=None, owner=1, number=3, since=3)))
    while driven.wake_at < Instant(CONTACT_NS):
        driven.advance(driven.wake_at)
    assert driven.machine.in_contact
    driven.advance(Instant(CONTACT_NS))
    assert not driven.machine.in_contact


def test_out_of_contact_everything_is_lost_and_nothing_is_found() -> None:
    driven = in_contact()
    driven.advance(Instant(CONTACT_NS))
    assert (driven.lost(), driven.machine.find(b"k")) == ([WHOLE], None)
    assert driven.routed() == RoutingTable((b"",), (None,), "ordered", in_contact=False)
    driven.advance(Instant(3 * CONTACT_NS))
    assert driven.lost() == [], "once"


def test_on_return_the_numbers_that_it_knew_are_compared() -> None:
    driven = in_contact(number=3)
    driven.advance(Instant(CONTACT_NS))
    driven.hear(
        Instant(CONTACT_NS),
        response(driven, Entry(start=b"", end=None, owner=1, number=3, since=3), lsn=6),
    )
    assert (driven.lost(), driven.machine.find(b"k")) == ([], OWNERS[0])


@pytest.mark.parametrize("knows", [True, False])
def test_on_return_it_publishes_its_table_though_nothing_changed(knows: bool) -> None:
    """Readers have an empty table since contact was lost. In a quiet pool the answer on return
    brings no change, and without a new table they would never find anything again.
    """
    driven = in_contact(number=3)
    assert driven.routed() == RoutingTable((b"",), ("http://one",), "ordered", in_contact=True)
    driven.advance(Instant(CONTACT_NS))
    assert driven.routed() == RoutingTable((b"",), (None,), "ordered", in_contact=False)
    entries = () if knows else (Entry(start=b"m", end=None, owner=2, number=7, since=4),)
    driven.hear(Instant(CONTACT_NS), response(driven, *entries, lsn=6, snapshot=False))
    changed = driven.published()
    assert changed is not None
    assert changed.changed == (WHOLE,), "every reader found nothing until now"
    places = ("http://one",) if knows else ("http://one", "http://two")
    assert changed.table.addresses == places
