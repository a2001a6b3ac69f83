"""The judge of state sees a write that is missing, and one that should be gone."""

import pytest

from lab.worlds.lease.processes import OwnerProcess
from lab.worlds.lease.trial import Trial
from lab.worlds.lease.world import LeaseWorld
from tenure.base.instants import Instant
from tenure.protocol.lease.messages import Leased
from tenure.protocol.lease.owner.events import Holdings
from tenure.sim.kernel.checkers import Violation

KEY = b"k"
JOURNAL = 7


def two_owners() -> tuple[LeaseWorld, OwnerProcess, OwnerProcess]:
    """The first was told that it holds everything under 5, and has acknowledged a write."""
    world = LeaseWorld(Trial(seed=1, faults=()))
    first, second = world.make("o0"), world.make("o1")
    assert isinstance(first, OwnerProcess)
    assert isinstance(second, OwnerProcess)
    for owner in (first, second):
        owner.holdings = Holdings(JOURNAL, owner.uid, (), Instant(0))
    world.states.write(first, KEY, 5)
    return world, first, second


def lease(number: int, since: int) -> Leased:
    return Leased(start=b"", end=None, number=number, since=since, mark="renewed")


def test_who_takes_a_range_unbroken_has_what_was_written() -> None:
    world, first, second = two_owners()
    second.store.values.update(first.store.values)
    world.states.check(second, lease(6, 5))
    world.states.check(second, lease(9, 1))


def test_a_missing_write_is_seen() -> None:
    world, _, second = two_owners()
    with pytest.raises(Violation, match="S2: a write was forgotten: o1 takes 6b under number 6"):
        world.states.check(second, lease(6, 5))


def test_a_stale_write_is_seen() -> None:
    world, first, second = two_owners()
    second.store.values.update(first.store.values)
    world.states.write(first, KEY, 5)
    with pytest.raises(Violation, match="a write was forgotten"):
        world.states.check(second, lease(6, 5))


@pytest.mark.parametrize("of_another_journal", [True, False])
def test_what_was_lost_and_is_there_is_seen(*, of_another_journal: bool) -> None:
    world, first, second = two_owners()
    second.store.values.update(first.store.values)
    if of_another_journal:
        second.holdings = Holdings(JOURNAL + 1, second.uid, (), Instant(0))
    with pytest.raises(Violation, match="S2: what was lost came back"):
        world.states.check(second, lease(9, 5 if of_another_journal else 6))


def test_what_was_lost_and_is_not_there_is_well() -> None:
    world, _, second = two_owners()
    world.states.check(second, lease(6, 6))
    world.states.check(second, Leased(start=b"m", end=None, number=6, since=1, mark="renewed"))
