"""The state that owners keep, its moves between them, and the judge that none of it is missing.

Every write to a key has a version. An owner that serves a key must have the last version that was
acknowledged under the same unbroken state, `since` its lease says: otherwise a write was forgotten
and nobody was told. State moves by the machines of the library, one at each end of a channel
(`transfers`).
"""

from collections.abc import Iterable
from typing import NamedTuple

from lab.worlds.lease.processes import OwnerProcess, OwnerSite
from lab.worlds.lease.transfers import Ends, GivingEnd
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.messages import HandOff, Leased
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner.giving import GivingStopped, ServingEnded, Withdrawn
from tenure.protocol.lease.owner.taking import Admitted, Kept, TurnedAway
from tenure.sim.kernel.checkers import Violation


class Written(NamedTuple):
    """The last write to a key that was acknowledged."""

    journal: int
    number: int
    version: int


class States:
    """All owners' state, and all writes that were acknowledged."""

    def __init__(self, world: OwnerSite) -> None:
        self.world = world
        self.written: dict[tuple[str, Key], Written] = {}
        """The last acknowledged write, by pool and key."""
        self._versions = 0
        self._ends: dict[int, Ends] = {}

    # --- writing and serving ---

    def write(self, owner: OwnerProcess, key: Key, number: int) -> None:
        """Write a key that the owner holds, and acknowledge the write."""
        self._versions += 1
        owner.store.values[key] = self._versions
        self.written[owner.pool, key] = Written(owner.holdings.journal, number, self._versions)

    def check(self, owner: OwnerProcess, lease: Leased) -> None:
        """An owner has a new lease: check that it has what was acknowledged since its state is
        unbroken, and that it does not have what was lost.
        """
        for (pool, key), written in self.written.items():
            if pool != owner.pool or key not in lease.range or self.world.is_old_copy:
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
        """Remove the application's state in these ranges."""
        for key_range in ranges:
            for key in [key for key in owner.store.values if key in key_range]:
                del owner.store.values[key]

    # --- what the machine wants done ---

    def _ends_of(self, owner: OwnerProcess) -> Ends:
        return self._ends.setdefault(owner.uid, Ends())

    def hand_over(self, owner: OwnerProcess, order: HandOff) -> None:
        """Give a range, by a machine of its own."""
        end = self._ends_of(owner).giving[order] = GivingEnd(owner, order, self._ends_of)
        end.start()

    def send_last(
        self, owner: OwnerProcess, order: HandOff, writes: tuple[bytes, ...] = ()
    ) -> None:
        """The owner no longer serves the range: send what changed."""
        end = self._ends_of(owner).giving.get(order)
        if end is None:
            owner.post(owner_events.HandOffFailed(order))
            return
        if end.body.is_cut_short():
            raise Violation(
                "P13: moved before it had settled",
                f"{owner.slot} ends serving {order.range} under number {order.number} while what "
                "has begun there goes on, and was to be waited for",
            )
        end.post(ServingEnded(writes))

    def stop(self, owner: OwnerProcess, order: HandOff) -> None:
        """End a hand-off at the source: the taker sees its channel end."""
        end = self._ends_of(owner).giving.pop(order, None)
        if end is not None:
            end.post(GivingStopped())

    def decide(
        self,
        owner: OwnerProcess,
        said: owner_events.Admit | owner_events.TurnAway | owner_events.Keep,
    ) -> None:
        """Pass on what the owner machine says of an offer."""
        end = self._ends_of(owner).taking.get(said.channel)
        if end is None:
            return
        match said:
            case owner_events.Admit():
                end.post(Admitted())
            case owner_events.Keep():
                end.post(Kept())
                if self.world.faults.loses_an_import():
                    self.take_out(owner, [end.offer.range])
                    owner.post(owner_events.ImportLost(end.offer.range, end.offer.number))
            case owner_events.TurnAway(why=why):
                end.post(TurnedAway(why))

    def withdrawn(self, owner: OwnerProcess, order: HandOff) -> None:
        """The giving end learns that no cache can still hit what the range has."""
        end = self._ends_of(owner).giving.get(order)
        if end is not None:
            end.post(Withdrawn())

    def stop_arriving(self, owner: OwnerProcess, key_range: KeyRange, number: int) -> None:
        """The taker no longer wants the range."""
        for end in list(self._ends_of(owner).taking.values()):
            if end.is_of(key_range, number):
                end.post(TurnedAway("it is no longer wanted"))

    def on_gone(self, owner: OwnerProcess) -> None:
        """An owner's process is gone: the other end of each of its channels sees that."""
        for giving in self._ends_of(owner).giving.values():
            giving.break_off()
        for taking in self._ends_of(owner).taking.values():
            taking.break_off()
        self._ends.pop(owner.uid, None)
