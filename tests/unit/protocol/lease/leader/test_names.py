"""How long a leader remembers the names of owners that are gone."""

import pytest

from tenure.base.ranges import WHOLE
from tenure.protocol.lease import table
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader import sessions
from tenure.protocol.lease.messages import LeaseResponse, Refusal
from tenure.protocol.lease.records import Joined, Left, State
from tenure.protocol.lease.timing import DEFAULT
from tests.unit.protocol.lease.desk import ByName, Desk, at
from tests.unit.protocol.lease.driven_manager import Driven

A, B, C = 101, 102, 103
KEPT = DEFAULT.keep_changes_ns / 1e9


def test_names_that_processes_draw_do_not_gather_for_ever() -> None:
    desk = Desk(ByName((WHOLE, "a")))
    for i in range(300):
        incarnation = desk.owner(at(2 * i), f"drawn-{i}", A + i)
        desk.ask(at(2 * i + 1), incarnation, A + i, (), leaving=True)
    assert len(desk.pool.table.numbered) < KEPT / 2 + 5
    assert desk.pool.table.next_incarnation == 301


def test_whoever_comes_under_another_name_each_time_has_few_of_them_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Within the minutes for which names are remembered: each takeover and snapshot reads them."""
    for part in (table, sessions):
        monkeypatch.setattr(part, "GONE_NAMES_PER_POOL", 20)
    desk = Desk(ByName((WHOLE, "a")))
    desk.owner(at(0), "a", A)
    for i in range(50):
        incarnation = desk.owner(at(0.1), f"drawn-{i}", B + i)
        desk.ask(at(0.1), incarnation, B + i, (), leaving=True)
    assert list(desk.pool.table.numbered) == ["a", *(f"drawn-{i}" for i in range(30, 50))]
    late = desk.join(at(0.2), "drawn-49", B + 49)
    assert isinstance(late, Refusal)
    assert late.reason == "past"
    standby = LeaseHistory(State(), 0)
    for record in desk.records:
        standby.apply(record)
    assert standby.tables["p"].numbered == desk.pool.table.numbered, "a standby forgets no later"
    snapshot = LeaseHistory(standby.state(), standby.lsn)
    for history in (standby, snapshot):
        history.apply(joined("next", 99))
        history.apply(Left(pool="p", incarnation=99, entries=()))
        history.invariants()
        assert len(history.tables["p"].numbered) == 21
        assert "drawn-30" not in history.tables["p"].numbered


def joined(name: str, incarnation: int) -> Joined:
    return Joined(pool="p", incarnation=incarnation, name=name, nonce=1, address="http://x")


def test_a_straggling_join_is_past_for_minutes_and_harmless_then() -> None:
    """P9: it is numbered, given nothing since it never speaks again, and gone after a hold."""
    desk = Desk(ByName((WHOLE, "a b")))
    owner = desk.owner(at(0), "a", A)
    desk.ask(at(1), owner, A, (), leaving=True)
    desk.owner(at(2), "c", C)  # forgets whom it can
    refused = desk.join(at(KEPT - 5), "a", A)
    assert isinstance(refused, Refusal)
    assert refused.reason == "past"
    other = desk.owner(at(KEPT + 5), "b", B)
    held = desk.settle(at(KEPT + 6), other, B)
    answer = desk.join(at(KEPT + 7), "a", A)
    assert isinstance(answer, LeaseResponse)
    assert answer.leases == ()
    desk.advance(at(KEPT + 10))
    assert desk.settle(at(KEPT + 15), other, B) == held
    desk.advance(at(KEPT + 27))
    assert len(desk.pool.sessions) == 1


def test_a_straggling_join_does_not_unseat_its_successor() -> None:
    """P8, however late it is."""
    desk = Desk(ByName((WHOLE, "a")))
    owner = desk.owner(at(0), "a", A)
    desk.ask(at(1), owner, A, (), leaving=True)
    desk.owner(at(KEPT + 5), "b", B)
    heir = desk.owner(at(KEPT + 6), "a", B + 1)
    late = desk.join(at(KEPT + 7), "a", A)
    assert isinstance(late, Refusal)
    assert late.reason == "name_held"
    assert desk.pool.table.numbered["a"] == (heir, B + 1)


@pytest.mark.parametrize("pool", ["\u202ep", "\u2028"])
def test_what_cannot_be_seen_in_a_log_is_no_pools_name(pool: str) -> None:
    driven = Driven()
    refused = driven.join(pool=pool)
    assert isinstance(refused, Refusal)
    assert (refused.reason, "cannot be a pool's name" in refused.detail) == ("no_pool", True)
    assert driven.machine.leader
    assert driven.machine.leader.pools == {}


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "a\u202eb"])
def test_what_cannot_be_seen_in_a_log_is_no_owners_name(name: str) -> None:
    """Owners of this library refuse it themselves; others may not."""
    desk = Desk(ByName((WHOLE, "a")))
    refused = desk.join(at(0), name, A)
    assert isinstance(refused, Refusal)
    assert refused.detail.startswith(f"{name!r} cannot be an owner's name: ")
    assert "choose a name without it" in refused.detail
    assert name not in desk.pool.table.numbered
