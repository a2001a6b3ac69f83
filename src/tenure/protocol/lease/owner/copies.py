"""Whole copies that an owner has of ranges that it does not serve, and its hand-overs (P13).

A copy has the state of a range as the lease of one number left it. The owner that served the range
last has one from when its belief ended; the owner that is to serve it next has one from when the
last difference came. Both say so in every request, until the manager's answer says that the copy no
longer counts, or grants the range with it. An owner does not believe a grant that names a copy
which it does not have: an empty range would pass for one whose state is unbroken. Nor does it
believe a grant of an empty range while a part of a copy is left: that would be served as if it were
the range's own.
"""

from collections.abc import Callable
from typing import NamedTuple, assert_never

from tenure.base.noted import Noted
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.messages import Copy, HandOff, Held, Leased
from tenure.protocol.lease.owner.belief import Belief
from tenure.protocol.lease.owner.events import (
    ArrivalEnded,
    CopiedAhead,
    Forget,
    HandedOver,
    HandOffEvent,
    HandOffFailed,
    HandOver,
    Imported,
    ImportLost,
    Keep,
    OwnerAction,
    SendLast,
    StopHandOver,
    TurnAway,
)
from tenure.protocol.lease.owner.noted import OwnerKind

GIVING = 0
"""The taker of a copy while its last difference is under way."""


class Part(NamedTuple):
    """Some state of a range, as the lease of a number left it."""

    range: KeyRange
    number: int

    def is_in_the_way_of(self, lease: Leased) -> bool:
        """Whether the part would be served as the state of the granted range although it is not."""
        return self.number != lease.handed and self.range.overlaps(lease.range)


def _is_of(copy: Copy, whole: Part | HandOff) -> bool:
    """Whether the part is what is left of that copy: answers may count a part of a copy only."""
    return copy.number == whole.number and whole.range.covers(copy.range)


class Copies:
    """The copies of one owner, and its orders."""

    def __init__(self, belief: Belief) -> None:
        self._belief = belief
        self.kept: list[Copy] = []
        self.arriving: dict[int, Part] = {}
        """The state by channel that is on its way here, and not yet whole."""
        self.orders: tuple[HandOff, ...] = ()

    def listed(self) -> tuple[Copy, ...]:
        """The copies as a request lists them: in order, and of two that overlap the later."""
        if not self.kept:
            return ()
        by_number = sorted(self.kept, key=lambda copy: copy.number)
        latest = RangeMap.of(((copy.range, copy) for copy in by_number), None)
        return tuple(
            Copy(start=piece.start, end=piece.end, number=copy.number, taker=copy.taker)
            for piece, copy in latest
            if copy is not None
        )

    # --- orders ---

    def take_orders(self, orders: tuple[HandOff, ...]) -> tuple[list[OwnerAction], bool]:
        """Begin what is newly ordered, and give up what is no longer ordered. Returns whether any
        of that is no longer served: it must come back, or nobody would serve it.
        """
        ended = [order for order in self.orders if order not in orders]
        begun = [
            order
            for order in orders
            if order not in self.orders and self._belief.holds(order.range, order.number)
        ]
        self.orders = orders
        mine = self._belief.incarnation
        back = [order for order in ended if self._is_giving(order) and self._name(order, mine)]
        return [*map(StopHandOver, ended), *map(HandOver, begun)], bool(back)

    def _is_giving(self, order: HandOff) -> bool:
        return any(_is_of(copy, order) and copy.taker == GIVING for copy in self.kept)

    # --- what happens to copies ---

    def on_event(self, event: HandOffEvent) -> tuple[list[OwnerAction], bool]:
        """Take an event. Returns what follows, and whether the manager must hear of it now."""
        match event:
            case CopiedAhead(order=order):
                return self._end_belief(order), False
            case HandedOver(order=order):
                return [], self._name(order, order.taker)
            case HandOffFailed(order=order):
                note = Noted(
                    OwnerKind.HAND_OFF_FAILED,
                    detail=f"{order.range} to incarnation {order.taker}",
                )
                is_to_return = self._name(order, self._belief.incarnation)
                if not is_to_return:
                    # It is still served; where it is still ordered, the next answer begins anew.
                    self.orders = tuple(each for each in self.orders if each != order)
                return [note], is_to_return
            case Imported(channel=channel):
                return self._keep(channel), False
            case ArrivalEnded(channel=channel):
                part = self.arriving.pop(channel, None)
                return [self._forget(*part)] if part else [], False
            case ImportLost(range=key_range, number=number):
                gone = Part(key_range, number)
                self.kept = [copy for copy in self.kept if not _is_of(copy, gone)]
                return [], True
            case _:
                assert_never(event)

    def _end_belief(self, order: HandOff) -> list[OwnerAction]:
        """Stop serving a range that is copied, so that the last difference is the last; but only if
        the order still stands and the range is still held.
        """
        if order not in self.orders or not self._belief.holds(order.range, order.number):
            return [StopHandOver(order)]
        self.kept.append(Copy(start=order.start, end=order.end, number=order.number, taker=GIVING))
        return [self._belief.hand_over(order.range), SendLast(order)]

    def _name(self, order: HandOff, taker: int) -> bool:
        """Let `taker` be granted the range from here on; False if there is no such copy."""
        named = [copy for copy in self.kept if _is_of(copy, order)]
        others = [copy for copy in self.kept if copy not in named]
        renamed = [
            Copy(start=copy.start, end=copy.end, number=copy.number, taker=taker) for copy in named
        ]
        self.kept = [*others, *renamed]
        return bool(named)

    def begin(self, channel: int, part: Part) -> None:
        """Expect the state of a range that is served elsewhere, from here on."""
        self.arriving[channel] = part

    def _keep(self, channel: int) -> list[OwnerAction]:
        """Keep a copy that has arrived whole, unless it is being forgotten."""
        part = self.arriving.pop(channel, None)
        if part is None:
            return [TurnAway(channel, "it came too late: this incarnation does not want it")]
        start, end = part.range.start, part.range.end
        self.kept.append(
            Copy(start=start, end=end, number=part.number, taker=self._belief.incarnation)
        )
        return [Keep(channel)]

    def forget_arriving(self, is_useless: Callable[[Part], bool]) -> list[OwnerAction]:
        """Stop taking state that is useless, and discard what has come of it."""
        useless = [each for each, part in self.arriving.items() if is_useless(part)]
        return [self._forget(*self.arriving.pop(channel)) for channel in useless]

    # --- answers ---

    def cover(self, lease: Leased) -> bool:
        """Whether all the state that the grant names is here."""
        copied = RangeMap.of(
            ((copy.range, True) for copy in self.kept if copy.number == lease.handed),
            default=False,
        )
        return all(is_there for _, is_there in copied.within(lease.range))

    def is_clear_for(self, lease: Leased) -> bool:
        """Whether no state of the granted range is here except what the grant names."""
        here = [*self.arriving.values(), *(Part(copy.range, copy.number) for copy in self.kept)]
        return not any(part.is_in_the_way_of(lease) for part in here)

    def settle(
        self, asked: tuple[Copy, ...], counting: tuple[Held, ...], leases: tuple[Leased, ...]
    ) -> list[OwnerAction]:
        """Keep the copies that count, and those that were not `asked` about, since they came later.
        Copies granted with one of `leases` are served again; all others are forgotten.
        """
        actions: list[OwnerAction] = []
        kept: list[Copy] = []
        for copy in self.kept:
            was_asked = any(
                each.number == copy.number and each.range.overlaps(copy.range) for each in asked
            )
            held = ((item.range, "kept") for item in counting if item.number == copy.number)
            granted = ((lease.range, "served") for lease in leases if lease.handed == copy.number)
            fates = RangeMap.of([*held, *granted], "forgotten" if was_asked else "kept")
            for piece, fate in fates.within(copy.range):
                if fate == "kept":
                    kept.append(
                        Copy(start=piece.start, end=piece.end, number=copy.number, taker=copy.taker)
                    )
                elif fate == "forgotten":
                    actions.append(self._forget(piece, copy.number))
        self.kept = kept
        return actions

    def _forget(self, key_range: KeyRange, number: int) -> Forget:
        return Forget(self._belief.begin_to_forget(key_range), key_range, number)

    def give_way(self, granted: tuple[Leased, ...]) -> list[OwnerAction]:
        """Drop state that arrives for a range that is granted without it: it will never
        be of use.
        """
        return self.forget_arriving(
            lambda part: any(part.is_in_the_way_of(lease) for lease in granted)
        )

    def drop_all(self) -> list[OwnerAction]:
        """Drop all copies: the term has ended, or the owner leaves, so no copy is of any use."""
        forgotten = self.forget_arriving(lambda _: True)
        stopped, _ = self.take_orders(())
        return [*stopped, *self.settle(tuple(self.kept), (), ()), *forgotten]
