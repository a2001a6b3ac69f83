"""Load in the simulator: what owners tell of it, and that policies follow it."""

import pytest

from lab.worlds.lease.traffic import HOT, LOAD, Counting, Traffic
from lab.worlds.lease.trial import Trial
from lab.worlds.lease.world import LeaseWorld
from tenure.base.ranges import LOWEST, WHOLE, KeyRange
from tenure.protocol.lease.messages import LeaseRequest
from tenure.sim.lease.processes import POOL

MIDDLE = b"\x80"


def world(seed: int, policy: str = "weighted", hours: float = 1.0) -> LeaseWorld:
    """Return a world where nothing goes wrong, but other keys are hot now and then."""
    made = next(each for each in map(_with_load, range(seed, seed + 20)) if LOAD in each.mix.rates)
    return _with_load(made.trial.seed, policy, hours)


def _with_load(seed: int, policy: str = "weighted", hours: float = 1.0) -> LeaseWorld:
    made = LeaseWorld(Trial(seed=seed, hours=hours, faults=(LOAD,)))
    made.kinds[POOL], made.first_policy, made.hand_off = "hashed", policy, 1.0
    return made


def loaded(traffic: Traffic) -> float:
    """The rate of all keys, once there is one."""
    while not traffic.rate(WHOLE):
        traffic.change()
    return traffic.rate(WHOLE)


def test_rates_are_of_the_workload_s_keys_and_few_are_hot() -> None:
    traffic = world(0).policy_watch
    total = loaded(traffic)
    halves = [KeyRange(LOWEST, MIDDLE), KeyRange(MIDDLE, None)]
    assert sum(map(traffic.rate, halves)) == pytest.approx(total)
    hottest = dict(traffic.hottest([WHOLE]))
    assert 0 < len(hottest) <= len(traffic.site.watched_keys)
    assert all(total * HOT < rate <= total for rate in hottest.values())
    assert [*traffic.hottest(halves)] == [*traffic.hottest([WHOLE])]


def test_an_owner_tells_what_it_holds_once_a_renewal() -> None:
    made = world(0)
    made.start_all()
    made.run_until(5 * made.timing.renew_ns)
    loaded(made.policy_watch)
    owner = next(each for each in made.owners() if each.holdings.leases)
    counting, request = (
        Counting(owner, made.policy_watch),
        LeaseRequest(
            pool="pool",
            incarnation=1,
            owner_nonce=1,
            manager_nonce=1,
            sequence=1,
            journal=1,
            leadership=1,
            held=(),
        ),
    )
    told = []
    for _ in range(4):
        made.run_until(made.now + made.timing.renew_ns)
        told += [
            counting.add_load(request, owner.now(), made.timing.renew_ns).load for _ in range(2)
        ]
    assert [each is not None for each in told] == [False, False, *(True, False) * 3]
    last = told[-2]
    assert last is not None
    assert {(each.start, each.end) for each in last.ranges} <= {
        (lease.start, lease.end) for lease in owner.holdings.leases
    }
    assert last.ranges
    for each in last.ranges:
        rate = made.policy_watch.rate(KeyRange(each.start, each.end))
        assert each.rate == pytest.approx(rate, rel=0.2)


@pytest.mark.parametrize("policy", ["weighted", "ring"])
def test_ranges_move_for_their_load_under_either_policy(policy: str) -> None:
    made = world(0, policy)
    made.run()
    assert made.notes["moved for balance"] > 0
    assert made.notes["range handed over"] > 0
    assert bool(made.notes["key given alone"]) is (policy == "weighted")


def test_an_operator_chooses_policies_while_there_is_load() -> None:
    made = LeaseWorld(Trial(seed=3, hours=0.5, faults=(LOAD, "steering"), fault_rate=20.0))
    made.run()
    assert made.notes["policy chosen"] > 1
