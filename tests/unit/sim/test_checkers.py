"""The checkers of leases: each is silent on a clean story, and finds the fault that is planted in
it.
"""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from lab.worlds.lease.processes import OwnerProcess
from lab.worlds.lease.trial import Trial
from lab.worlds.lease.world import LeaseWorld
from tenure.base.instants import SECOND_NS
from tenure.base.keys import Key
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.leader.publisher import Publisher
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.records import Changed
from tenure.protocol.lease.timing import DEFAULT
from tenure.sim.kernel.checkers import Violation
from tenure.sim.lease.beliefs import lease_of, number_of
from tenure.sim.lease.processes import POOL

QUIET_NS = 200 * SECOND_NS


@pytest.fixture
def world() -> LeaseWorld:
    """Return a world in which nothing has gone wrong, and every key has an owner that every lookup
    knows.
    """
    made = LeaseWorld(Trial(seed=1, faults=(), timing=DEFAULT))
    made.start_all()
    made.run_until(QUIET_NS)
    assert made.not_well() is None
    for lookup in made.lookups():
        made.checkers.losses.check(lookup)
        made.checkers.check_pushed(lookup, 0)
    return made


def holder(world: LeaseWorld) -> OwnerProcess:
    return next(owner for owner in world.owners() if owner.holdings.leases)


def other(world: LeaseWorld) -> OwnerProcess:
    return other_than(world, holder(world))


def other_than(world: LeaseWorld, owner: OwnerProcess) -> OwnerProcess:
    return next(each for each in world.owners() if each is not owner)


def believes_too(world: LeaseWorld) -> OwnerProcess:
    """Let another owner believe in what one has."""
    lease, owner = holder(world).holdings.leases[0], other(world)
    table = world.checkers.committed.tables[POOL]
    stolen = replace(lease, number=table.next_number - 1)
    until = owner.clock.local(world.now + SECOND_NS)
    world.checkers.on_hold(owner, Holdings(world.journal.journal, 9, (stolen,), until))
    return owner


def is_granted_again(world: LeaseWorld) -> None:
    """Let an owner begin again under the very number that it had."""
    owner = holder(world)
    held = owner.holdings
    owner.end_belief()
    world.checkers.on_hold(owner, held)


def is_told_too_soon(world: LeaseWorld) -> None:
    """An owner believes in a number that the journal has not given out."""
    owner, lease = holder(world), holder(world).holdings.leases[0]
    number = world.checkers.committed.tables[POOL].next_number
    told = replace(owner.holdings, leases=(replace(lease, number=number),))
    world.checkers.on_hold(owner, told)


def commit(world: LeaseWorld, entry: Entry) -> None:
    world.checkers.on_commit(world.journal, Changed(pool=POOL, entries=(entry,)))


def is_freed_early(world: LeaseWorld) -> None:
    """The journal frees what an owner believes in."""
    lease = holder(world).holdings.leases[0]
    number = world.checkers.committed.tables[POOL].next_number
    commit(world, Entry(start=lease.start, end=lease.end, owner=0, number=number, since=number))


def is_numbered_again(world: LeaseWorld) -> None:
    """The journal gives a number out a second time."""
    lease = holder(world).holdings.leases[0]
    entry = Entry(start=lease.start, end=lease.end, owner=0, number=lease.number, since=1)
    commit(world, entry)


def is_forgotten(world: LeaseWorld) -> None:
    """The next leader does not know what the journal had acknowledged."""
    said = world.checkers.acknowledged.pools[POOL]
    said.highest += 1
    for manager in world.managers():
        manager.kill()
        world.restart_later(manager.slot, 1)
    world.run_until(world.now + 60 * SECOND_NS)


def is_signalled_in_vain(world: LeaseWorld) -> None:
    """A lookup signals twice what was lost once."""
    for _ in range(2):
        world.checkers.on_loss(world.lookups()[0], [WHOLE], "lost")


def is_not_signalled(world: LeaseWorld) -> None:
    """A client relies on an owner that is gone, and its lookup says nothing."""
    lookup, owner, key = world.lookups()[0], holder(world), world.watched_keys[0]
    while number_of(owner, key) is None:
        owner = next(each for each in world.owners() if number_of(each, key) is not None)
    losses = world.checkers.losses
    losses.on_published(lookup, key, owner)
    owner.kill()
    losses.check(lookup)
    world.now += world.loss_bound_ns
    lookup.asked_at = lookup.now()
    losses.check(lookup)  # it is given this much time
    world.now += SECOND_NS
    losses.check(lookup)


def was_handed_over(world: LeaseWorld, key: Key) -> tuple[OwnerProcess, OwnerProcess]:
    """A client relies on an owner that has handed the key over since: return the giver and the
    taker.
    """
    giver = next(each for each in world.owners() if number_of(each, key) is not None)
    lookup, taker = world.lookups()[0], other_than(world, giver)
    world.checkers.losses.on_published(lookup, key, giver)
    lease = lease_of(giver, key)
    assert lease is not None
    giver.end_belief()
    table = world.checkers.committed.tables[POOL]
    lease = replace(lease, number=table.next_number - 1, since=lease.number)
    taker.believes_until = world.now + SECOND_NS
    until = taker.clock.local(taker.believes_until)
    taker.holdings = Holdings(world.journal.journal, 9, (lease,), until)
    world.checkers.holders[POOL].assign(lease.range, taker)
    return giver, taker


def is_not_signalled_after_a_crash(world: LeaseWorld) -> None:
    """Crash the owner that took a key, and do not tell the client that relies on the giver."""
    losses = world.checkers.losses
    _, taker = was_handed_over(world, world.watched_keys[0])
    lost, crashed_at = losses.relied_on_at(taker), world.now
    taker.kill()
    losses.check_crash(lost, crashed_at)


def finds_without_contact(world: LeaseWorld) -> None:
    """A lookup finds owners, and was answered long ago."""
    world.now += world.timing.contact_ns + 10 * SECOND_NS
    world.checkers.losses.check(world.lookups()[0])


def is_not_pushed(world: LeaseWorld) -> None:
    """A lookup does not know what was committed a second ago."""
    world.checkers.changes.append((POOL, world.journal.lsn + 1, world.now - SECOND_NS))
    world.checkers.check_pushed(world.lookups()[0], SECOND_NS // 2)


PLANTED: list[tuple[Callable[[LeaseWorld], object], str]] = [
    (believes_too, "S1: two owners"),
    (is_granted_again, "S3: a number came again"),
    (is_told_too_soon, "S4: told before it was durable"),
    (is_freed_early, "freed too early"),
    (is_numbered_again, "S3: a number came again"),
    (is_forgotten, "S4: forgotten"),
    (is_signalled_in_vain, "S2: signalled in vain"),
    (is_not_signalled, "S2: a loss was not signalled"),
    (is_not_signalled_after_a_crash, "S2: a loss was not signalled"),
    (finds_without_contact, "S2: finds without contact"),
    (is_not_pushed, "L1: a change was not pushed"),
]


@pytest.mark.parametrize(
    ("plant", "promise"), PLANTED, ids=lambda each: getattr(each, "__name__", "")
)
def test_what_is_planted_is_found(
    world: LeaseWorld, plant: Callable[[LeaseWorld], object], promise: str
) -> None:
    with pytest.raises(Violation) as caught:
        plant(world)
    assert caught.value.promise == promise


def test_while_the_journal_is_an_old_copy_nothing_is_judged_but_that_it_is_noticed(
    world: LeaseWorld,
) -> None:
    world.is_old_copy = True
    owner, held = other(world), other(world).holdings
    assert believes_too(world) is owner
    assert "nobody has the keys" in (world.not_well() or "")  # two have the first ones
    owner.end_belief()
    world.checkers.on_hold(owner, held)
    assert world.not_well() is None
    copy = (world.journal.journal, world.journal.seat, world.copied_journal())
    lsn = copy[2].lsn
    copy[2].lsn -= 1
    world.put_back(copy)
    assert world.not_well() == f"l0 knows LSN {lsn} of a journal that ends at {lsn - 1}"


def test_owners_too_can_notice_an_old_copy(world: LeaseWorld) -> None:
    seat = world.journal.seat
    world.put_back((world.journal.journal, replace(seat, leadership=0), world.copied_journal()))
    known = f"o0 knows leadership {seat.leadership} of a journal led to 0"
    assert world.not_well() == known


def test_an_old_copy_that_nobody_can_notice_is_the_journal_from_then_on(world: LeaseWorld) -> None:
    """Its numbers are given again: what was written under the first ones is not asked for."""
    owner, key = holder(world), world.watched_keys[0]
    world.states.write(owner, key, 1)
    copy = (world.journal.journal, world.journal.seat, world.copied_journal())
    world.put_back(copy)
    world.when_well(0)
    assert not world.is_old_copy
    assert world.states.written == {}
    with pytest.raises(Violation, match="S1"):
        believes_too(world)  # and it is judged again


def test_what_nobody_owns_and_what_a_lookup_does_not_find_is_missing(world: LeaseWorld) -> None:
    lookup = world.lookups()[0]
    routes, lookup.routes = lookup.routes, None
    assert world.checkers.not_converged() == f"{lookup.slot} is out of contact"
    lookup.routes = routes
    holder(world).end_belief()
    assert "nobody has the keys of pool from" in (world.checkers.not_converged() or "")


def test_what_an_owner_handed_over_is_not_lost_with_it(world: LeaseWorld) -> None:
    """It is not lost even while it is on its way once more, and nobody serves it (seed 930601)."""
    giver, taker = was_handed_over(world, world.watched_keys[0])
    losses, crashed_at = world.checkers.losses, world.now
    lost = losses.relied_on_at(giver)
    giver.kill()
    taker.end_belief()
    losses.check_crash(lost, crashed_at)


def test_a_manager_that_does_not_push_is_found_by_the_drill(
    world: LeaseWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.drills._leave()
    world.heal()
    monkeypatch.setattr(Publisher, "_push", lambda *_: None)
    with pytest.raises(Violation, match="L1: a change was not pushed"):
        world.drills._leave()
