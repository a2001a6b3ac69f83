"""Several pools in one world: each is judged by itself, and comes and goes beside the others."""

from collections.abc import Iterator
from itertools import product

import pytest

from lab.worlds.lease.processes import OwnerProcess
from lab.worlds.lease.run import run_seed
from lab.worlds.lease.strikes import FAULTS
from lab.worlds.lease.trial import Trial
from lab.worlds.lease.world import LeaseWorld
from lab.worlds.run import total
from tenure.base.instants import SECOND_NS
from tenure.base.rangemap import RangeMap
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.records import PoolCreated
from tenure.protocol.lease.timing import DEFAULT
from tenure.sim.kernel.checkers import Violation
from tenure.sim.lease.beliefs import number_of
from tenure.sim.lease.ledger import PlainLedger
from tenure.sim.lease.managed_world import drawn_pools
from tenure.sim.lease.processes import POOL
from tests.unit.sim.test_checkers import QUIET_NS

OTHER = f"{POOL}-1"


@pytest.fixture
def world() -> LeaseWorld:
    """Two pools, in which nothing has gone wrong."""
    made = LeaseWorld(Trial(seed=1, faults=(), timing=DEFAULT, pools=2))
    made.start_all()
    made.run_until(QUIET_NS)
    assert made.not_well() is None
    return made


def owners(world: LeaseWorld, pool: str) -> Iterator[OwnerProcess]:
    return (each for each in world.owners() if each.pool == pool)


def holders(world: LeaseWorld, pool: str) -> list[OwnerProcess]:
    return [each for each in owners(world, pool) if each.holdings.leases]


def believes_it(world: LeaseWorld, owner: OwnerProcess, of: OwnerProcess) -> None:
    """An owner begins to believe in all that another has, under numbers of its own pool."""
    until = owner.clock.local(world.now + SECOND_NS)
    world.checkers.on_hold(owner, Holdings(world.journal.journal, 9, of.holdings.leases, until))


def test_a_key_has_an_owner_in_each_pool_and_nobody_minds(world: LeaseWorld) -> None:
    for key, pool in product(world.watched_keys, world.pools):
        serving = [each for each in owners(world, pool) if number_of(each, key) is not None]
        assert len(serving) == 1
    assert {lookup.pool for lookup in world.lookups()} == set(world.pools)


@pytest.mark.parametrize("pool", [POOL, OTHER])
def test_two_owners_of_one_pool_are_found_in_each(world: LeaseWorld, pool: str) -> None:
    holder = holders(world, pool)[0]
    thief = next(each for each in owners(world, pool) if each is not holder)
    with pytest.raises(Violation, match="S1: two owners"):
        believes_it(world, thief, of=holder)


def test_what_owners_of_another_pool_believe_is_not_compared(world: LeaseWorld) -> None:
    """The very same ranges, under the same numbers."""
    one, other = holders(world, POOL)[0], holders(world, OTHER)[0]
    for each in owners(world, OTHER):
        each.end_belief()
        each.store.values.clear()
    world.states.written.clear()
    world.checkers.committed.tables[OTHER].next_number = 10**6
    world.checkers.numbers[OTHER] = RangeMap(0)
    believes_it(world, other, of=one)
    assert world.checkers.holders[OTHER][one.holdings.leases[0].start] is other
    assert world.checkers.holders[POOL][one.holdings.leases[0].start] is one


def test_a_pool_that_nobody_serves_is_missing_by_name(world: LeaseWorld) -> None:
    for owner in owners(world, OTHER):
        owner.end_belief()
    assert world.not_well() == f"nobody has the keys of {OTHER} from -"


def test_a_lookup_that_finds_the_owners_of_another_pool_is_found(world: LeaseWorld) -> None:
    one, other = world.lookups()
    assert {one.pool, other.pool} == {POOL, OTHER}
    other.routes = one.routes
    assert (world.not_well() or "").startswith(f"{other.slot} does not find ")


def test_a_write_in_one_pool_is_not_missed_in_another(world: LeaseWorld) -> None:
    owner = holders(world, POOL)[0]
    lease = owner.holdings.leases[0]
    key = next(each for each in world.watched_keys if each in lease.range)
    world.states.write(owner, key, lease.number)
    for each in holders(world, OTHER):
        for held in each.holdings.leases:
            world.states.check(each, held)
    owner.store.values.clear()
    with pytest.raises(Violation, match="a write was forgotten"):
        world.states.check(owner, lease)


def test_the_plain_ledger_knows_that_numbers_go_on_in_a_pool_that_is_made_again() -> None:
    ledger = PlainLedger([b"k"])
    for _ in range(2):
        ledger.apply(PoolCreated(pool="p", kind="hashed"))
        ledger.pools["p"].highest += 4
    assert ledger.pools["p"].highest == 8


def test_a_fifth_of_all_worlds_has_two_pools_or_three() -> None:
    drawn = [drawn_pools(seed) for seed in range(100)]
    assert [drawn.count(pools) for pools in (1, 2, 3)] == [80, 10, 10]


def test_pools_are_deleted_and_made_again_while_others_are_served() -> None:
    kinds = FAULTS.chosen("steering,leaving,crash,message")
    outcomes = [run_seed(Trial(seed=seed, faults=kinds, pools=3)) for seed in range(4)]
    assert [each.violation for each in outcomes] == [None] * 4
    notes = total(outcomes, "notes")
    assert notes["pool deleted"] > 0
    assert notes["pool created"] > notes["pool deleted"]
