"""A question that fails is refused, and the leader goes on as it was.

That is allowed because reading changes nothing, wherever it breaks off. So each question is made to
fail at the calls of functions that it leads to, and the whole machine is looked at before and
after.
"""

from collections.abc import Collection, Iterable
from enum import Enum
from random import Random
from typing import TypeGuard

import pytest

from tenure.protocol.lease.answers import PlanRead, QuestionFailed
from tenure.protocol.lease.leader.events import (
    CreatePool,
    DeletePool,
    ListOwners,
    ListPools,
    Locate,
    NodeSaid,
    Question,
    QuestionAsked,
    ReadTable,
)
from tenure.protocol.lease.messages import Join, LeaseRequest, LeaseResponse
from tenure.protocol.lease.steering_events import ChoosePolicy, Drain, Evict, ExplainKey, ReadPlan
from tenure.protocol.topology.messages import NodeRequest
from tenure.protocol.topology.questions import (
    CreateCluster,
    DeleteCluster,
    ListClusters,
    ReadMoves,
    ReadRing,
    ReadUpkeep,
    RemoveNode,
)
from tenure.protocol.topology.records import Node, Placement
from tests.unit.protocol.lease.breaking import Breaking
from tests.unit.protocol.lease.driven_manager import Driven, at

READINGS: tuple[Question, ...] = (
    ListPools(),
    ListOwners("p"),
    ReadTable("p"),
    ReadTable("p", since=1),
    Locate("p", b"k"),
    ExplainKey("p", b"k"),
    ReadPlan("p"),
    DeletePool("q", dry_run=True),
    Drain(pool="p", owner="a", dry_run=True),
    Evict(pool="p", incarnation=1, dry_run=True),
    ChoosePolicy(pool="p", policy="ring", dry_run=True),
    ListClusters(),
    ReadRing(cluster="chat"),
    ReadMoves(cluster="chat"),
    ReadUpkeep(cluster="chat"),
    DeleteCluster(cluster="chat", dry_run=True),
    RemoveNode(cluster="chat", node="n3", dry_run=True),
)
PLACES = 120
"""Each question is made to fail at about this many calls."""


def told(value: object, seen: dict[int, tuple[int, object]]) -> object:
    """All that an object leads to. `seen` is what was told of already, and keeps it from going."""
    if value is None or isinstance(value, int | float | str | bytes | Enum | type):
        return value
    if id(value) in seen:
        return f"as {seen[id(value)][0]}"
    seen[id(value)] = len(seen), value
    if isinstance(value, Random):
        return value.getstate()
    items = list(value.items() if isinstance(value, dict) else value if is_many(value) else ())
    slots = [name for each in type(value).__mro__ for name in getattr(each, "__slots__", ())]
    names = [*slots, *getattr(value, "__dict__", ()), *getattr(value, "__struct_fields__", ())]
    return (
        type(value).__qualname__,
        [(name, told(getattr(value, name, None), seen)) for name in names if name[:2] != "__"],
        [told(each, seen) for each in items],
    )


def is_many(value: object) -> TypeGuard[Iterable[object]]:
    return isinstance(value, Collection) and not isinstance(value, dict)


def joined(driven: Driven, number: int, name: str) -> None:
    """An owner that has joined, and asked for leases."""
    [answer] = driven.hear(
        Join(
            pool="p",
            kind="hashed",
            name=name,
            address=f"http://{name}",
            owner_nonce=number,
            manager_nonce=driven.nonce,
            sequence=1,
        ),
        number,
    )
    assert isinstance(answer, LeaseResponse)
    driven.run(at(driven.now / 1e9 + 1))
    driven.hear(
        LeaseRequest(
            pool="p",
            incarnation=answer.incarnation,
            owner_nonce=number,
            manager_nonce=driven.nonce,
            sequence=2,
            journal=answer.journal,
            leadership=answer.leadership,
            held=(),
        ),
        number,
    )


def machine_with_all(plans_at_once: int | None = None) -> Driven:
    """Owners with leases, a pool without owners, and a cluster of three nodes."""
    driven = Driven(plans_at_once=plans_at_once)
    driven.ask(CreatePool("q", "hashed"))
    for number, name in enumerate("ab"):
        joined(driven, number, name)
    placement = Placement.read("2")
    driven.ask(CreateCluster(cluster="chat", id=7, placement=placement, first_nodes=3))
    for sequence in (1, 2):
        for number in (1, 2, 3):
            node = Node(
                id=number,
                name=f"n{number}",
                address=f"http://n{number}",
                token=bytes([number * 60]),
            )
            driven.take(
                NodeSaid(number, NodeRequest(cluster="chat", node=node, life=1, sequence=sequence))
            )
    driven.run(at(5))
    return driven


@pytest.mark.parametrize("question", READINGS, ids=lambda each: type(each).__name__)
def test_a_reading_that_breaks_off_anywhere_changes_nothing(question: Question) -> None:
    driven = machine_with_all()
    answer = driven.ask(question)
    with Breaking() as counting:
        assert driven.ask(question) == answer
    before = told(driven.machine, {})
    places = range(1, counting.calls + 1, counting.calls // PLACES + 1)
    reached = 0
    for place in places:
        with Breaking(place) as breaking:
            failed = driven.ask(question)
        assert told(driven.machine, {}) == before, place
        if breaking.calls < place:  # something was remembered, so that there are fewer calls now
            assert failed == answer
            continue
        reached += 1
        assert isinstance(failed, QuestionFailed), place
        assert "Broken" in failed.why
    assert reached >= len(places) * 0.9
    assert driven.notes.count("question failed") == reached
    assert driven.ask(question) == answer


def test_a_plan_that_was_made_beside_the_machine_may_be_unreadable_too() -> None:
    driven = machine_with_all(plans_at_once=0)
    driven.plan()
    driven.take(QuestionAsked(1, ReadPlan("p")))
    driven.replies = []
    with Breaking(1):
        driven.plan()
    [failed] = driven.replies
    assert isinstance(failed, QuestionFailed)
    assert failed.why.startswith("ReadPlan: Broken")
    driven.take(QuestionAsked(2, ReadPlan("p")))
    driven.plan()
    assert isinstance(driven.replies[-1], PlanRead)


def test_who_looks_at_the_whole_machine_sees_a_change() -> None:
    driven = machine_with_all()
    before = told(driven.machine, {})
    assert told(driven.machine, {}) == before
    joined(driven, 7, "c")
    assert told(driven.machine, {}) != before


def test_a_machine_that_contradicts_itself_ends_all_the_same() -> None:
    driven = machine_with_all()
    with Breaking(3, AssertionError("two owners")), pytest.raises(AssertionError, match="two"):
        driven.ask(ListOwners("p"))
