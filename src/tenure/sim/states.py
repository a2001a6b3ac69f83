"""The state that owners keep, how it moves between them, and who judges that none of it is missing.

Every write to a key has a version. An owner that serves a key must have the last version that was
acknowledged under the same unbroken state, `since` its lease says: else a write was forgotten and
nobody was told. State moves as the library moves it: a copy while the owner still serves, then the
difference, then the word of the taker that it has all of it. What it may be used for is the
machines' to say.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tenure.base.instants import MILLISECOND_NS
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.messages import HandOff, Leased
from tenure.protocol.lease.owner import events as owner_events
from tenure.sim.kernel.checkers import Violation
from tenure.sim.lease.processes import LeaseSite, OwnerProcess

BREAK_SEEN_NS = 50 * MILLISECOND_NS


class Written(NamedTuple):
    """The last write to a key that was acknowledged."""

    journal: int
    number: int
    version: int


class States:
    """All owners' state, and all writes that were acknowledged."""

    def __init__(self, world: LeaseSite) -> None:
        self.world = world
        self.written: dict[Key, Written] = {}
        self._versions = 0

    # --- writing and serving ---

    def write(self, owner: OwnerProcess, key: Key, number: int) -> None:
        """A client writes a key that the owner holds, and is told that it is written."""
        self._versions += 1
        owner.store.values[key] = self._versions
        self.written[key] = Written(owner.holdings.journal, number, self._versions)

    def check(self, owner: OwnerProcess, lease: Leased) -> None:
        """A new belief: what was acknowledged since its state is unbroken is there, and what was
        lost is not.
        """
        for key, written in self.written.items():
            if key not in lease.range:
                continue
            same = written.journal == owner.holdings.journal and written.number >= lease.since
            should, has = written.version if same else None, owner.store.values.get(key)
            if has != should:
                promise = "a write was forgotten" if same else "what was lost came back"
                raise Violation(
                    f"S2: {promise}",
                    f"{owner.slot} takes {key.hex()} under number {lease.number}, "
                    f"unbroken since {lease.since}, with version {has}; the last version that was "
                    f"acknowledged is {written.version}, under number {written.number}",
                )

    def take_out(self, owner: OwnerProcess, ranges: Iterable[KeyRange]) -> None:
        """The application lets go."""
        for key_range in ranges:
            for key in [key for key in owner.store.values if key in key_range]:
                del owner.store.values[key]

    # --- what the machine wants done ---

    def hand_over(self, owner: OwnerProcess, order: HandOff) -> None:
        """Copy ahead, while it is served."""
        owner.store.giving[order] = {}
        self._later(owner, order, self._copy_ahead)

    def send_last(self, owner: OwnerProcess, order: HandOff) -> None:
        """It is not served any more: send what changed."""
        self._later(owner, order, self._send_last)

    def stop(self, owner: OwnerProcess, order: HandOff) -> None:
        """The source stops: the taker sees its connection end."""
        if owner.store.giving.pop(order, None) is not None:
            self.world.at(self.world.now + self._a_moment(), self._drop_import, order)

    def stop_arriving(self, owner: OwnerProcess, key_range: KeyRange) -> None:
        """The taker wants no more of it."""
        arriving = owner.store.arriving
        arriving -= {order for order in arriving if order.range.overlaps(key_range)}

    # --- how it travels ---

    def _later(self, owner: OwnerProcess, order: HandOff, then: "Stage") -> None:
        """It takes its time, or the connection breaks."""
        faults, world = self.world.faults, self.world
        if faults.breaks_a_hand_off():
            world.at(world.now + BREAK_SEEN_NS, self._fail, (owner, order))
        else:
            takes_ns = self._a_moment() + faults.time_of_a_hand_off()
            world.at(world.now + takes_ns, self._arrive, (then, owner, order))

    def _a_moment(self) -> int:
        return 1 + self.world.random.randrange(20 * MILLISECOND_NS)

    def _arrive(self, call: "tuple[Stage, OwnerProcess, HandOff]") -> None:
        """Both ends must be there and awake: who is stopped reads nothing, and sends nothing."""
        then, owner, order = call
        taker = self.world.owner_at(order.address)
        if not owner.alive or order not in owner.store.giving:
            return
        if taker is None or not taker.alive:
            self._fail((owner, order))
            return
        wakes = max((end.thaws_at or 0) for end in (owner, taker))
        if wakes > self.world.now:
            self.world.at(wakes + 1, self._arrive, call)
        elif not then(owner, taker, order):
            self._fail((owner, order))

    def _copy_ahead(self, owner: OwnerProcess, taker: OwnerProcess, order: HandOff) -> bool:
        if not _takes(taker, owner, order):
            return False
        copied = {k: v for k, v in owner.store.values.items() if k in order.range}
        owner.store.giving[order] = copied
        taker.store.arriving.add(order)
        taker.post(owner_events.ImportBegan(order.range, order.number))
        taker.store.values.update(copied)
        owner.post(owner_events.CopiedAhead(order))
        return True

    def _send_last(self, owner: OwnerProcess, taker: OwnerProcess, order: HandOff) -> bool:
        if order not in taker.store.arriving or not _is_named(taker, owner, order):
            return False
        before = owner.store.giving.pop(order)
        for key, version in owner.store.values.items():
            if key in order.range and before.get(key) != version:
                taker.store.values[key] = version
        taker.store.arriving.discard(order)
        taker.post(owner_events.Imported(order.range, order.number))
        self.world.count_note("range handed over")
        if self.world.faults.loses_an_import():
            self.take_out(taker, [order.range])
            taker.post(owner_events.ImportLost(order.range, order.number))
        said = owner_events.HandedOver(order)
        self.world.at(self.world.now + self._a_moment(), owner.post, said)
        return True

    def _fail(self, which: tuple[OwnerProcess, HandOff]) -> None:
        owner, order = which
        if order in owner.store.giving:
            self.stop(owner, order)
            owner.post(owner_events.HandOffFailed(order))

    def _drop_import(self, order: HandOff) -> None:
        """The taker discards what it has of a range, and says so."""
        taker = self.world.owner_at(order.address)
        if taker is None or order not in taker.store.arriving:
            return
        if taker.is_frozen:
            self.world.at((taker.thaws_at or 0) + 1, self._drop_import, order)
            return
        taker.store.arriving.discard(order)
        self.take_out(taker, [order.range])
        taker.post(owner_events.ImportLost(order.range, order.number))


Stage = Callable[[OwnerProcess, OwnerProcess, HandOff], bool]


def _is_named(taker: OwnerProcess, owner: OwnerProcess, order: HandOff) -> bool:
    """Whether the taker is still the incarnation that the order names, of the same journal."""
    belief = taker.machine.belief
    same_journal = belief.journal == owner.machine.belief.journal
    return same_journal and belief.incarnation == order.taker


def _takes(taker: OwnerProcess, owner: OwnerProcess, order: HandOff) -> bool:
    """Whether the taker takes what it is offered: as the library decides it."""
    is_arriving = any(each.range.overlaps(order.range) for each in taker.store.arriving)
    is_in_the_way = taker.machine.possession.in_the_way_of(order.range) is not None
    return not is_arriving and not is_in_the_way and _is_named(taker, owner, order)
