"""Every story up to a bound: breadth-first search over the real machines.

The random simulator finds what is deep; this finds what is short, and shows it in the fewest steps
there are. Whatever may go wrong is limited in number (`Limits`), not in place: one lost message may
be any message, one freeze may be anywhere and of any length. Within a tick, messages between
different processes arrive in every order. Without a fault that says so, nothing takes longer than
the tick it began in.

What becomes of a message is chosen when it is sent, and a journal call is answered before anything
else happens, unless a fault says otherwise: other orders would only be other ways to tell the same
story.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from tenure.base.rangemap import RangeMap
from tenure.errors import JournalDamaged
from tenure.protocol.balance.policy import NOBODY, Plan, Policy, Situation
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig
from tenure.protocol.lease.owner.events import OwnerConfig
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.records import State
from tenure.sim.journal import LeaseContents
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.memo import Dice, Memory
from tenure.sim.lease.canaries import NONE, Canary
from tenure.sim.lease.moves import Move, Moves
from tenure.sim.lease.small import (
    BUDGETS,
    MANAGERS,
    OWNERS,
    POOL,
    SLOTS,
    SMALL,
    Judge,
    Life,
    Limits,
    SmallWorld,
)


class Found(NamedTuple):
    """What a search came to."""

    states: int
    steps: int
    violation: str | None = None
    story: tuple[str, ...] = ()
    """The shortest that ends in the violation."""
    complete: bool = False
    """Whether every story within the limits was looked at."""


def newest(situation: Situation) -> Plan:
    """A policy that moves much: whoever came last has everything."""
    incarnations = (each.incarnation for each in situation.candidates)
    return Plan(RangeMap(max(incarnations, default=NOBODY)), RangeMap(None))


def policy_of(*_: object) -> Policy:
    """Everybody's policy here."""
    return newest


def search(
    limits: Limits,
    broken: Canary = NONE,
    *,
    names: tuple[str, str] = ("o0", "o1"),
    most_states: int = 1_000_000,
) -> Found:
    """Look at every story within `limits`, the shortest first, until a promise is broken."""
    with broken.in_place():
        moves = Moves(Memory(), _maker(names, broken), limits)
        first = _settled(moves, _beginning(moves))
        return _breadth_first(moves, first, most_states)


def _breadth_first(moves: Moves, first: SmallWorld, most_states: int) -> Found:
    came_from: dict[int, tuple[int, Move]] = {hash(first): (0, Move("", ()))}
    frontier = deque([first])
    steps = 0
    while frontier and len(came_from) < most_states:
        world = frontier.popleft()
        origin = hash(world)
        try:
            for move, then in moves.from_here(world):
                steps += 1
                fingerprint = hash(then)
                if fingerprint not in came_from:
                    came_from[fingerprint] = (origin, move)
                    frontier.append(then)
        except (Violation, AssertionError, JournalDamaged) as error:
            story = (*_story(came_from, origin), *moves.told())
            return Found(len(came_from), steps, str(error) or repr(error), story)
    return Found(len(came_from), steps, complete=not frontier)


def _story(came_from: dict[int, tuple[int, Move]], fingerprint: int) -> Iterator[str]:
    moves = []
    while fingerprint:
        fingerprint, move = came_from[fingerprint]
        moves.append(move)
    for move in reversed(moves[:-1]):
        yield from move.lines()


# --- the beginning ------------------------------------------------------------------------------


def _maker(names: tuple[str, str], broken: Canary) -> Any:
    """Makes the machine of a place, for its `uid`-th process."""

    def make(slot: int, uid: int) -> Any:
        dice = Dice(1_000 * (uid or slot + 1))
        if slot in MANAGERS:
            timing = broken.timing(SMALL)
            config = ManagerConfig(url=SLOTS[slot], timing=timing, first_start=True)
            return Manager(config, dice, policy_of)
        name = names[slot - OWNERS[0]]
        urls = tuple(SLOTS[manager] for manager in MANAGERS)
        return OwnerMachine(OwnerConfig(managers=urls, pool=POOL, name=name, address=name), dice)

    return make


def _beginning(moves: Moves) -> SmallWorld:
    """Both managers up, the first leading, and one owner starting."""
    journal = LeaseContents(Dice(1), State(), _nothing)
    world = SmallWorld(
        tick=0,
        lives=(Life(), Life(), Life(), Life()),
        journal=moves.memory.number(journal),
        flying=(),
        aside=(),
        left=(0,) * len(BUDGETS),
        judge=Judge(),
    )
    for slot in (*MANAGERS, OWNERS[0]):
        ((_, world),) = moves.start(world, slot)
    return world


def _nothing(*_: Any) -> None:
    """What a commit is to the journal here: the search looks at the records itself."""


def _settled(moves: Moves, world: SmallWorld) -> SmallWorld:
    """Let the first owner come to hold the key, with nothing going wrong; then let things."""
    while not world.believes(OWNERS[0]):
        _, world = next(iter(moves.from_here(world)))
    left = tuple(getattr(moves.limits, kind) for kind in BUDGETS)
    return world._replace(left=left)
