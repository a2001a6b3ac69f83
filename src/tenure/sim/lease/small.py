"""A world small enough to be searched whole: one key, two owners, two managers, coarse time.

Everything in it is a value, so that worlds can be compared: machines, messages and the journal are
numbers of a `Memory`. Time goes in ticks, the same for all, but clocks run at different rates: an
owner's term and a manager's hold are both three ticks, exactly at the bound.
"""

from typing import NamedTuple

import msgspec

from tenure.base.instants import SECOND_NS, Instant
from tenure.base.keys import Key
from tenure.protocol.lease.timing import Timing

KEY: Key = b"k"
POOL = "pool"
MANAGERS = (0, 1)
OWNERS = (2, 3)
JOURNAL = 4
SLOTS = ("m0", "m1", "o0", "o1", "journal")
NOT_THERE = -1
BEGIN = 1_000 * SECOND_NS
SLOW, FAST = SECOND_NS, 2 * SECOND_NS
"""What a clock goes on in a tick. Owners are slow and managers fast, which is the worst."""

SMALL = Timing(
    name="small",
    term_ns=3 * SLOW,  # three ticks of a slow owner's clock
    hold_ns=3 * FAST,  # three ticks of a fast manager's clock: at the bound, not beyond it
    longest_hold_ns=3 * FAST,
    renew_ns=SLOW,  # an owner asks at every tick
    sync_ns=SLOW,
    contact_ns=2 * SLOW,
    recall_ns=FAST,  # one tick
    hand_off_ns=0,
    leadership_ns=FAST,  # a leader that has not beaten at a tick is silent at the next
    beat_ns=FAST,  # a beat a tick
    gather_ns=0,
    push_ns=1 << 60,  # there is no lookup to push to
    keep_changes_ns=1 << 60,
)


class Limits(msgspec.Struct, frozen=True):
    """How much may go wrong in one story, and how long it may be."""

    ticks: int = 6
    starts: int = 1
    """Owner processes that may start, beside the first."""
    start_by: int = 0
    """The last tick at which the second owner may start; one that was killed may start later."""
    lose: int = 0
    """Messages lost."""
    late: int = 0
    """Messages and callbacks set aside, to arrive at any later time."""
    double: int = 0
    """Messages that arrive again, at any later time."""
    crash: int = 0
    """Owners killed."""
    freeze: int = 0
    """Processes stopped, for any time."""
    journal: int = 0
    """Journal calls that fail, whose answer is lost, or that take effect at any later time."""
    revoke: int = 0
    """Leaderships revoked early."""


BUDGETS = ("starts", "lose", "late", "double", "crash", "freeze", "journal", "revoke")


class Life(NamedTuple):
    """A process, or an empty place."""

    machine: int = NOT_THERE
    uid: int = 0
    wake_at: int = 0
    frozen: bool = False


class Packet(NamedTuple):
    """A message on its way, or whatever else waits to happen to a process."""

    sender: int
    to: int
    uid: int
    """Of the client's process at either end; anything for another is for nobody."""
    event: int


class SeenLease(NamedTuple):
    """What an owner's readers see of the key."""

    incarnation: int = 0
    number: int = 0
    expires_at: int = 0


class Judge(NamedTuple):
    """What the checkers remember."""

    beliefs: tuple[SeenLease, ...] = (SeenLease(), SeenLease())
    last_number: int = 0
    committed_owner: int = 0
    committed_number: int = 1
    """The highest that the journal has."""


class SmallWorld(NamedTuple):
    """One state of everything."""

    tick: int
    lives: tuple[Life, ...]
    journal: int
    flying: tuple[Packet, ...]
    """In order, for each pair of places."""
    aside: tuple[Packet, ...]
    """Late: to arrive at any time."""
    left: tuple[int, ...]
    """What may still go wrong, by BUDGETS."""
    judge: Judge

    def may(self, kind: str) -> bool:
        """Whether `kind` may still happen."""
        return self.left[BUDGETS.index(kind)] > 0

    def spend(self, kind: str) -> "SmallWorld":
        """This world, with one `kind` less to come."""
        i = BUDGETS.index(kind)
        left = (*self.left[:i], self.left[i] - 1, *self.left[i + 1 :])
        return self._replace(left=left)

    def with_life(self, slot: int, life: Life) -> "SmallWorld":
        """This world, with another process, or state of it, in a place."""
        return self._replace(lives=(*self.lives[:slot], life, *self.lives[slot + 1 :]))

    def send(self, packet: Packet) -> "SmallWorld":
        """This world, with one more message on its way."""
        flying = sorted((*self.flying, packet), key=_pair)  # stable: each pair keeps its order
        return self._replace(flying=tuple(flying))

    def set_aside(self, packet: Packet) -> "SmallWorld":
        """This world, with one more message that arrives at any time."""
        return self._replace(aside=tuple(sorted((*self.aside, packet))))

    def now(self, slot: int) -> Instant:
        """What the clock in a place shows."""
        rate = FAST if slot in MANAGERS else SLOW
        return Instant(BEGIN + self.tick * rate)

    def believes(self, owner: int) -> bool:
        """Whether the owner's readers believe now that it holds the key."""
        belief = self.judge.beliefs[owner - OWNERS[0]]
        return belief.number > 0 and self.now(owner) < belief.expires_at


def _pair(packet: Packet) -> tuple[int, int]:
    return packet.sender, packet.to
