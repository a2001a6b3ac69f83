"""Situations for the tests of policies, of all kinds, and what follows from a plan for one."""

from collections.abc import Iterator, Sequence
from math import exp, inf, nan
from random import Random

from xxhash import xxh3_64_hexdigest

from tenure.base.instants import Instant, seconds
from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.load import Loads
from tenure.protocol.balance.pieces import carried
from tenure.protocol.balance.policy import NOBODY, Candidate, Pin, Plan, Policy, Situation, changes
from tenure.protocol.lease.table import Right

EMPTY = RangeMap(Right(NOBODY, 1, 1))
SIZES = (1, 2, 3, 7, 20)


def candidates(count: int, first: int = 1) -> list[Candidate]:
    """That many candidates, told apart by name and number, in two zones."""
    numbers = range(first, first + count)
    return [Candidate(i, f"owner-{i}", labels={"zone": "ab"[i % 2]}) for i in numbers]


def carried_out(plan: Plan, number: int = 2) -> RangeMap[Right]:
    """The table when everybody has what the plan says, the state of everything unbroken."""
    rights = [Right(owner, number, 1) for owner in plan.owners.values()]
    return RangeMap.at_starts(plan.owners.starts(), rights)


def skewed(present: RangeMap[Right], seed: int, *, hot: int = 20) -> Loads:
    """Rates of the ranges there are, some of them high, and of some hot keys."""
    dice = Random(seed)
    starts = present.starts()
    rates = [dice.paretovariate(1.0) * 10 for _ in starts]
    keys = sorted(dice.randbytes(8) for _ in range(hot))
    found = [(key, dice.paretovariate(1.0) * 100) for key in keys]
    for key, rate in found:
        rates[max(i for i, start in enumerate(starts) if start <= key)] += rate
    return Loads(Instant(0), starts, rates, found)


def counted(dice: Random, expected: float) -> int:
    """How often something happens that is expected so often: Poisson's law."""
    least, product, count = exp(-expected), dice.random(), 0
    while product > least:
        product *= dice.random()
        count += 1
    return count


def situations(policy: Policy) -> Iterator[Situation]:
    """Situations of all kinds: new, settled, with newcomers, with leavers, with load, pinned,
    frozen.
    """
    for count in SIZES:
        members = candidates(count)
        first = Situation(members, EMPTY)
        plan = policy(first)
        table = carried_out(plan)
        settled = Situation(members, table, Instant(seconds(5)), memory=plan.memory)
        others = candidates(count, first=3)
        pins = tuple(Pin(bytes([i]) * 8, f"owner-{i + 1}") for i in range(3))
        yield first
        yield settled
        for memory in (plan.memory, None):
            changed = settled._replace(candidates=others, memory=memory)
            yield changed
            yield changed._replace(loads=skewed(table, count))
            yield changed._replace(pins=pins)
            loaded = policy(settled._replace(loads=skewed(table, count), memory=memory))
            then = Instant(seconds(8))
            otherwise = skewed(table, count + len(SIZES))
            yield changed._replace(now=then, loads=otherwise, memory=loaded.memory)
            cordoned = [others[0]._replace(cordoned=True), *others[1:]]
            yield changed._replace(candidates=cordoned, loads=skewed(table, count))
            yield changed._replace(pins=pins, frozen=True, loads=skewed(table, count))


def digest(policy: Policy) -> str:
    """A checksum of the plans for all these situations: it is the same in every process."""
    told = [
        (list(plan.owners), list(plan.why), list(plan.held_back))
        for plan in map(policy, situations(policy))
    ]
    return xxh3_64_hexdigest(repr(told).encode())


MINUTE = 60
HOUR = 60 * MINUTE
CAPACITIES = (5e-324, 1e-9, 0.1, 1.0, 1.0, 8.0, 1e9, 1.7e308)
RATES = (0.0, -0.0, 5e-324, 1e-300, 0.5, 1.0, 1e3, 1e9, 1e18, 1e308, -1.0, inf, -inf, nan)


def adversarial(present: RangeMap[Right], dice: Random) -> Loads:
    """Rates of the ranges there are, and of some keys, as no owner counts them."""
    starts = present.starts()
    keys = sorted({dice.choice(starts), *(dice.randbytes(8) for _ in range(5))})
    rates = [dice.choice(RATES) for _ in starts]
    return Loads(Instant(0), starts, rates, [(key, dice.choice(RATES)) for key in keys])


def uses(members: Sequence[Candidate], plan: Plan, loads: Loads) -> list[float]:
    """The load of each for its capacity, as a part of an even share."""
    weights = carried(plan.owners, loads)
    share = sum(weights.values()) / sum(member.capacity for member in members)
    return [weights.get(member.incarnation, 0.0) / member.capacity / share for member in members]


def incarnations(members: Sequence[Candidate]) -> set[int]:
    """The numbers that they have."""
    return {member.incarnation for member in members}


def moved_from(table: RangeMap[Right], plan: Plan) -> set[tuple[int, int]]:
    """The pairs of owners between which ranges move, each giver first."""
    return {(change.giver, change.taker) for change in changes(table, plan)}
