"""A pool grows only so large, and then the leader refuses others."""

from random import Random
from typing import Any

import msgspec
import pytest

from tenure.base.keys import KEY_BYTES
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.balance.planning import thinned
from tenure.protocol.balance.policy import Plan, Situation
from tenure.protocol.lease.answers import Impossible, Steered
from tenure.protocol.lease.leader import room
from tenure.protocol.lease.leader.events import CreatePool
from tenure.protocol.lease.leader.load_watch import LoadWatch
from tenure.protocol.lease.leader.room import CUTS_PER_REQUEST
from tenure.protocol.lease.limits import BOUND_BYTES_PER_PLAN, RANGES_PER_TABLE
from tenure.protocol.lease.load_report import KeyLoad, LoadReport, RangeLoad
from tenure.protocol.lease.messages import (
    Copy,
    Held,
    Join,
    LeaseResponse,
    Refusal,
    Sync,
    SyncRefusal,
)
from tenure.protocol.lease.steering_events import PinKey
from tenure.protocol.lease.table import NOBODY
from tenure.wire.lease import decode_to_lookup, decode_to_owner, encode
from tenure.wire.versions import NEWEST
from tests.unit.protocol.balance.tables import EMPTY
from tests.unit.protocol.lease.desk import ByName, Desk, at
from tests.unit.protocol.lease.driven_manager import Driven


def fine(count: int) -> list[bytes]:
    return [b"\x01" + i.to_bytes(7, "big") for i in range(count)]


def fine_plan(situation: Situation) -> Plan:
    """Each of 300,000 ranges for one of the owners."""
    there = sorted(each.incarnation for each in situation.candidates)
    starts = [b"", *fine(300_000)]
    dice = Random(1)
    owners = [dice.choice(there) if there else NOBODY for _ in starts]
    return Plan(RangeMap.at_starts(starts, owners), RangeMap(None))


def test_a_plan_is_thinned_to_what_a_table_holds() -> None:
    """More ranges than a snapshot takes would end the leader, and each of its successors."""
    desk = Desk(fine_plan, kind="hashed")
    for i in range(2):
        desk.owner(at(i), f"o{i}", 101 + i)
    desk.advance(at(5))
    plan = desk.pool.planner.plan
    assert RANGES_PER_TABLE // 4 < len(plan) <= RANGES_PER_TABLE
    assert min(list(plan.values()).count(i) for i in (1, 2)) > 30_000


def test_a_plan_is_thinned_to_the_bytes_that_a_table_holds() -> None:
    """Policies of ordered pools cut at keys that owners report, and these may be long."""
    starts = [b"", *(b"%06d" % i + b"x" * 1000 for i in range(5_000))]
    plan = Plan(RangeMap.at_starts(starts, list(range(1, 5_002))), RangeMap(None))
    given = thinned(EMPTY, plan)
    size = sum(map(len, given.owners.starts()))
    assert 0 <= BOUND_BYTES_PER_PLAN - size < len(starts[1])
    [held_back] = given.held_back
    assert held_back.why.endswith("4194304 bytes of bounds of ranges")
    few = Plan(RangeMap.at_starts(starts[:100], list(range(1, 101))), RangeMap(None))
    assert thinned(EMPTY, few) is few


def test_an_owner_that_lists_too_fine_pieces_is_refused_and_keeps_nothing() -> None:
    desk = Desk(ByName((WHOLE, "o")), kind="hashed")
    owner = desk.owner(at(0), "o", 101)
    [held] = desk.settle(at(1), owner, 101)
    cuts = fine(140_000)
    pieces = zip(cuts[::2], cuts[1::2], strict=True)
    answer = desk.ask(
        at(2), owner, 101, tuple(Held(start=a, end=b, number=held.number) for a, b in pieces)
    )
    assert isinstance(answer, Refusal)
    assert (answer.reason, len(desk.pool.table.rights)) == ("past", 1)


def pieces(bounds: list[bytes], number: int) -> tuple[Held, ...]:
    return tuple(Held(start=a, end=b, number=number) for a, b in batched(bounds, 2))


def batched(items: list[bytes], size: int) -> list[list[bytes]]:
    return [items[i : i + size] for i in range(0, len(items) - size + 1, size)]


def test_bounds_that_nobody_was_told_are_few() -> None:
    """One message that lists every other of 65,000 pieces kept a leader for ten seconds."""
    for count, is_refused in ((CUTS_PER_REQUEST, False), (CUTS_PER_REQUEST + 2, True)):
        desk = Desk(ByName((WHOLE, "o")), kind="hashed")
        owner = desk.owner(at(0), "o", 101)
        [held] = desk.settle(at(1), owner, 101)
        answer = desk.ask(at(2), owner, 101, pieces(fine(count), held.number))
        assert isinstance(answer, Refusal) == is_refused


def test_bounds_of_the_plan_are_as_many_as_it_has() -> None:
    bounds = fine(2 * CUTS_PER_REQUEST)
    desk = Desk(ByName((WHOLE, "o")), kind="hashed")
    owner = desk.owner(at(0), "o", 101)
    [held] = desk.settle(at(1), owner, 101)
    desk.owner(at(1), "p", 102)
    desk.pool.planner.policy = ByName(
        (WHOLE, "p"), *((KeyRange(a, b), "o") for a, b in batched(bounds, 2))
    )
    desk.pool.planner.replan(at(2))
    answer = desk.ask(at(2), owner, 101, pieces(bounds, held.number))
    assert isinstance(answer, LeaseResponse)
    assert len(answer.leases) == CUTS_PER_REQUEST


def test_bounds_that_an_owner_was_told_last_are_its_own() -> None:
    """The plan has changed since, and the table never had them: what is recalled is so for good."""
    bounds = fine(CUTS_PER_REQUEST + 2)
    desk = Desk(ByName((WHOLE, "o")), kind="hashed")
    owner = desk.owner(at(0), "o", 101)
    [held] = desk.settle(at(1), owner, 101)
    desk.owner(at(1), "p", 102)
    desk.pool.planner.policy = ByName(
        (WHOLE, "p"), *((KeyRange(a, b), "o") for a, b in batched(bounds, 2))
    )
    desk.pool.planner.replan(at(2))
    told = desk.ask(at(2), owner, 101, (held,))
    assert isinstance(told, LeaseResponse)
    assert len(told.leases) > CUTS_PER_REQUEST
    assert len(desk.pool.table.rights) == 1
    desk.pool.planner.policy = ByName((WHOLE, "o"))
    desk.pool.planner.replan(at(3))
    answer = desk.ask(at(3), owner, 101, pieces(bounds, held.number))
    assert isinstance(answer, LeaseResponse)


def test_bounds_at_which_a_pool_was_split_are_known() -> None:
    bounds = fine(CUTS_PER_REQUEST + 2)
    desk = Desk(ByName((WHOLE, "o")), split_points=tuple(bounds))
    owner = desk.owner(at(0), "o", 101)
    [held] = desk.settle(at(1), owner, 101)
    answer = desk.ask(at(2), owner, 101, pieces(bounds, held.number))
    assert isinstance(answer, LeaseResponse)


@pytest.mark.parametrize("lists", ["held", "copies"])
@pytest.mark.parametrize(("most", "is_refused"), [(3, False), (2, True)])
def test_a_request_makes_no_table_that_no_lookup_reads(
    monkeypatch: pytest.MonkeyPatch, lists: str, most: int, *, is_refused: bool
) -> None:
    """Its bounds may be few, where the table has no room for more."""
    monkeypatch.setattr(room, "RANGES_PER_TABLE", most)
    monkeypatch.setattr(room, "BOUND_BYTES_PER_TABLE", 1_000)
    for kind, key in (("hashed", b"k"), ("ordered", b"k"), ("ordered", b"k" * 500)):
        desk = Desk(ByName((WHOLE, "o")), kind=kind)  # type: ignore[arg-type]
        owner = desk.owner(at(0), "o", 101)
        [held] = desk.settle(at(1), owner, 101)
        [piece] = pieces([key, key + b"k"], held.number)
        listed: dict[str, Any] = {"held": (piece,)}
        if lists == "copies":
            copy = Copy(start=piece.start, end=piece.end, number=piece.number)
            listed = {"held": (), "copies": (copy,)}
        answer = desk.ask(at(2), owner, 101, **listed)
        is_long = len(key) > 9
        assert isinstance(answer, Refusal) == (is_refused or is_long), (kind, len(key))


@pytest.mark.parametrize(("length", "is_refused"), [(9, False), (10, True)])
def test_bounds_of_a_hashed_pool_are_short(length: int, is_refused: bool) -> None:
    desk = Desk(ByName((WHOLE, "o")), kind="hashed")
    owner = desk.owner(at(0), "o", 101)
    [held] = desk.settle(at(1), owner, 101)
    answer = desk.ask(at(2), owner, 101, (Held(start=b"k" * length, end=None, number=held.number),))
    assert isinstance(answer, Refusal) == is_refused


def test_hot_keys_that_no_hashed_pool_has_are_not_heard_of() -> None:
    """One of 1,024 bytes would get a range that ends a byte later, which no journal takes."""
    desk = Desk(ByName((WHOLE, "o")), kind="hashed")
    owner = desk.owner(at(0), "o", 101)
    given = desk.settle(at(1), owner, 101)
    watch = LoadWatch(desk.pool.table, 1)
    keys = tuple(KeyLoad(key=b"k" * length, rate=5.0) for length in (7, 8, 9, KEY_BYTES))
    watch.take(
        at(2),
        LoadReport(
            span_ns=10**9, ranges=(RangeLoad(start=b"", end=None, rate=50.0),), hottest=keys
        ),
        given,
    )
    assert [key for key, _ in watch.picture.loads(at(2)).hottest] == [b"k" * 8]


@pytest.mark.parametrize(("length", "is_taken"), [(KEY_BYTES - 1, True), (KEY_BYTES, False)])
def test_a_pinned_key_leaves_room_for_the_end_of_its_range(length: int, is_taken: bool) -> None:
    driven = Driven()
    driven.ask(CreatePool("p", "ordered"))
    driven.join(kind="ordered")
    answer = driven.ask(PinKey(pool="p", key=b"k" * length, owner="o"))
    assert isinstance(answer, Steered if is_taken else Impossible)


@pytest.mark.parametrize("points", [fine(70_000), [b"k" * 1000 + p for p in fine(3000)]])
def test_a_pool_with_too_many_or_too_long_split_points_is_not_made(points: list[bytes]) -> None:
    driven = Driven()
    answer = driven.ask(CreatePool("p", "ordered", tuple(points)))
    assert isinstance(answer, Impossible)
    assert "are allowed" in answer.why


def test_a_full_pool_takes_no_more_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "OWNERS_PER_POOL", 2)
    driven = Driven()
    said = [driven.hear(joining(driven, f"o{i}", 11 + i))[0] for i in range(3)]
    assert [type(each) for each in said] == [LeaseResponse, LeaseResponse, Refusal]
    assert "the pool is full" in said[2].detail  # type: ignore[union-attr]


def test_names_and_addresses_of_a_pool_are_not_too_long_in_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(room, "OWNER_CHARACTERS_PER_POOL", 20)
    driven = Driven()
    said = [driven.hear(joining(driven, f"o{i}", 11 + i))[0] for i in range(3)]
    assert [type(each) for each in said] == [LeaseResponse, LeaseResponse, Refusal]
    assert driven.machine.leader is not None
    table = driven.machine.leader.pools["p"].table
    assert table.characters == sum(len(m.name) + len(m.address) for m in table.members.values())


def test_labels_and_all_addresses_of_an_owner_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are journaled, and lookups are told where caches are taken: 2,000 characters each."""
    monkeypatch.setattr(room, "OWNER_CHARACTERS_PER_POOL", 20)
    more: list[dict[str, Any]] = [
        {"cache": 12 * "c"},
        {"hand_off": 12 * "h"},
        {"labels": {"zone": "eu-east-1"}},
    ]
    for each in more:
        driven = Driven()
        [full] = driven.hear(msgspec.structs.replace(joining(driven, "o", 11), **each))
        [fits] = driven.hear(joining(driven, "p", 12))
        assert (type(full), type(fits)) == (Refusal, LeaseResponse), each


def joining(driven: Driven, name: str, nonce: int, address: str = "http://o") -> Join:
    return Join(
        pool="p",
        kind="hashed",
        name=name,
        address=address,
        owner_nonce=nonce,
        manager_nonce=driven.nonce,
        sequence=1,
    )


def test_a_name_that_is_held_by_a_liar_is_refused_in_words_that_can_be_sent() -> None:
    """Its address has 2,000 characters, and each takes ten where it is shown."""
    driven = Driven()
    name = "\U0001f600" * 200
    driven.hear(joining(driven, name, 11, "\U0010ffff" * 2000))
    [answer] = driven.hear(joining(driven, name, 12))
    assert isinstance(answer, Refusal)
    assert answer.reason == "name_held"
    assert "Choose another name" in answer.detail, "whatever the address is"
    assert decode_to_owner(encode(answer, NEWEST), NEWEST) == answer
    [answer] = driven.hear(joining(driven, "\U0010ffff" * 200, 13))
    assert isinstance(answer, Refusal)
    assert "cannot be an owner's name" in answer.detail
    assert decode_to_owner(encode(answer, NEWEST), NEWEST) == answer


def test_a_lookup_of_no_pool_is_told_so_however_long_the_names_of_the_others_are() -> None:
    """Words that do not fit in their field would not be sent: it would find no manager."""
    driven = Driven()
    for i in range(25):
        driven.join(pool=f"{i:03}" + "\U0001f600" * 197)
    sync = Sync(pool="n" * 200, sequence=1, journal=0, leadership=0, lsn=0, nonce=9)
    [answer] = driven.hear(sync)
    assert isinstance(answer, SyncRefusal)
    assert answer.detail.startswith("there is no pool 'nnn")
    assert "000" not in answer.detail, "others' names are for who may read of all pools"
    assert decode_to_lookup(encode(answer, NEWEST), NEWEST) == answer


def test_a_refusal_is_cut_to_what_its_field_takes() -> None:
    """Otherwise it would not be sent at all, and the refused owner would find no manager."""
    desk = Desk(ByName((WHOLE, "o")))
    join = Join(
        pool="p",
        kind=None,
        name="o",
        address="http://o",
        owner_nonce=101,
        manager_nonce=77,
        sequence=1,
    )
    desk.context.refuse(101, join, "no_pool", "why " * 10_000)
    desk.commit()
    [refusal] = desk.told(101, Refusal)
    assert decode_to_owner(encode(refusal, NEWEST), NEWEST) == refusal
