"""An owner admits offers that its manager announced, if nothing is in the way of them."""

from typing import Any

import msgspec
import pytest

from tenure.base.instants import Instant
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.messages import Expected, Leased
from tenure.protocol.lease.owner.admission import (
    ARRIVING_AT_ONCE,
    CHANNELS_AT_ONCE,
    CHANNELS_OF_A_PEER,
    PATIENCE_NS,
    Unadmitted,
    which_gives_way,
)
from tenure.protocol.lease.owner.copies import Part
from tenure.protocol.lease.owner.events import Admit, Forget, Imported, OwnerAction, TurnAway
from tenure.protocol.lease.owner.possession import Possession
from tenure.protocol.lease.owner.transfer import Offer

LOW, HIGH, ACROSS = KeyRange(b"", b"m"), KeyRange(b"m", None), KeyRange(b"a", b"z")
CHANNEL, SECRET, SOURCE = 7, 77, 2
NOW = Instant(0)


def having_low() -> Possession:
    possession = Possession("p")
    possession.belief.incarnation = 1
    possession.belief.take(
        (Leased(start=LOW.start, end=LOW.end, number=5, since=5, mark="granted"),)
    )
    possession.belief.move_expiry(Instant(0), Instant(100))
    return possession


def offer_of(key_range: KeyRange, number: int = 4) -> Offer:
    return Offer(
        pool="p",
        journal=0,
        start=key_range.start,
        end=key_range.end,
        number=number,
        source=SOURCE,
        taker=1,
        secret=SECRET,
    )


def announced(possession: Possession, *offers: Offer) -> list[OwnerAction]:
    return possession.admission.expect(
        tuple(
            Expected(start=o.start, end=o.end, number=o.number, source=o.source, secret=o.secret)
            for o in offers
        )
    )


def offered(possession: Possession, offer: Offer, *, channel: int = CHANNEL) -> list[OwnerAction]:
    """Return the final decision about an announced offer."""
    announced(possession, offer)
    possession.admission.on_offer(NOW, channel, offer)
    now = possession.admission.decide(NOW, may_take=True)
    return now or possession.admission.decide(Instant(PATIENCE_NS), may_take=True)


def why_not(actions: list[OwnerAction]) -> str:
    [*_, turned_away] = actions
    assert isinstance(turned_away, TurnAway)
    return turned_away.why


def test_what_is_served_is_in_the_way_and_nothing_else() -> None:
    possession = having_low()
    assert "served here under number 5" in why_not(offered(possession, offer_of(ACROSS)))
    assert offered(possession, offer_of(HIGH)) == [Admit(CHANNEL)]


@pytest.mark.parametrize("other", [{"number": 9}, {"source": 9}, {"secret": 78}, {"end": b"z"}])
def test_an_offer_is_what_was_announced_in_all_of_it(other: dict[str, Any]) -> None:
    possession, offer = having_low(), offer_of(HIGH)
    announced(possession, offer)
    changed = msgspec.structs.replace(offer, **other)
    possession.admission.on_offer(NOW, CHANNEL, changed)
    refused = possession.admission.decide(Instant(PATIENCE_NS), may_take=True)
    assert "has not announced" in why_not(refused)


def test_a_copy_is_in_the_way_also_of_a_part_and_although_it_is_empty() -> None:
    possession = having_low()
    possession.copies.begin(CHANNEL, Part(HIGH, 4))
    possession.copies.on_event(Imported(CHANNEL))
    assert "a copy of" in why_not(offered(possession, offer_of(KeyRange(b"x", b"y"))))


def test_what_the_application_has_not_let_go_of_is_in_the_way() -> None:
    possession = having_low()
    possession.drop_all()
    offer = offer_of(ACROSS)
    announced(possession, offer)
    possession.admission.on_offer(NOW, CHANNEL, offer)
    assert possession.admission.decide(NOW, may_take=True) == []
    assert possession.admission.wake_at == PATIENCE_NS
    possession.belief.let_go(1)
    assert possession.admission.decide(NOW, may_take=True) == [Admit(CHANNEL)]


def test_an_offer_that_is_not_announced_in_time_is_turned_away() -> None:
    possession = having_low()
    possession.admission.on_offer(NOW, CHANNEL, offer_of(HIGH))
    assert possession.admission.decide(NOW, may_take=True) == []
    turned_away = possession.admission.decide(Instant(PATIENCE_NS), may_take=True)
    assert "has not announced" in why_not(turned_away)


def test_an_offer_without_a_secret_is_turned_away_although_a_manager_expects_none() -> None:
    """A manager that draws none announces nothing; one that lies proves nothing."""
    possession = having_low()
    without = Offer(
        pool="p", journal=0, start=HIGH.start, end=HIGH.end, number=4, source=SOURCE, taker=1
    )
    assert "has not announced" in why_not(offered(possession, without))


def test_who_leaves_takes_nothing() -> None:
    possession = having_low()
    announced(possession, offer_of(HIGH))
    possession.admission.on_offer(NOW, CHANNEL, offer_of(HIGH))
    assert "leaving" in why_not(possession.admission.decide(NOW, may_take=False))


def test_what_is_arriving_and_not_expected_any_more_is_forgotten() -> None:
    possession = having_low()
    assert offered(possession, offer_of(HIGH)) == [Admit(CHANNEL)]
    assert announced(possession, offer_of(HIGH)) == []
    [forget] = announced(possession)
    assert isinstance(forget, Forget)
    assert (forget.range, forget.number, possession.copies.arriving) == (HIGH, 4, {})


def test_so_many_arrive_at_once_and_no_more() -> None:
    possession = having_low()
    ranges = [KeyRange(b"m%02d" % i, b"m%02d" % (i + 1)) for i in range(40)]
    announced(possession, *map(offer_of, ranges))
    for channel, key_range in enumerate(ranges):
        possession.admission.on_offer(NOW, channel, offer_of(key_range))
    admitted = possession.admission.decide(NOW, may_take=True)
    assert admitted == [Admit(channel) for channel in range(ARRIVING_AT_ONCE)]
    turned_away = possession.admission.decide(Instant(PATIENCE_NS), may_take=True)
    assert why_not(turned_away) == "32 ranges are arriving already"
    assert len(turned_away) == len(ranges) - ARRIVING_AT_ONCE


def test_channels_that_are_not_admitted_are_bounded_by_peer_and_in_all() -> None:
    of_one = [Unadmitted("a", has_offered=True)] * CHANNELS_OF_A_PEER
    assert which_gives_way(of_one[1:], "a") is None
    said = f"{len(of_one)} channels from a wait to be admitted already"
    assert which_gives_way(of_one, "a") == said
    assert which_gives_way(of_one, "b") is None
    of_all = [Unadmitted(str(i), has_offered=True) for i in range(CHANNELS_AT_ONCE)]
    assert which_gives_way(of_all[1:], "a") is None
    said = f"{len(of_all)} channels wait to be admitted already"
    assert which_gives_way(of_all, "a") == said


def test_a_channel_on_which_nothing_was_offered_gives_way() -> None:
    offered, silent = Unadmitted("a", has_offered=True), Unadmitted("a", has_offered=False)
    of_one = [offered, silent] * (CHANNELS_OF_A_PEER // 2)
    assert which_gives_way(of_one, "a") == 1, "the oldest of its own"
    other = Unadmitted("b", has_offered=False)
    of_all = [other, *of_one, *[offered] * CHANNELS_AT_ONCE][:CHANNELS_AT_ONCE]
    assert which_gives_way(of_all, "c") == 2, "the oldest of the peer that has the most"
