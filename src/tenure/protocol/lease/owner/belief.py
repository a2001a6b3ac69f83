"""An owner's belief: the leases that it counts on, and those that it is still giving up.

One set of leases and one instant at which all of it ends. An answer first drops what it does not
list, then moves the instant (P4). The owner no longer believes in a range that was recalled, but
lists it in requests until the application has let go of it, so that nobody else gets the range
while it is still being written out (P10). An owner that gives read leases goes on listing it until
no cache can hit it, even past the deadline of the recall: nobody else gets it before (V12).
"""

from collections.abc import Iterable

from msgspec.structs import replace

from tenure.base.instants import Instant
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.fingerprints import fingerprint
from tenure.protocol.lease.messages import Held, Leased, Mark
from tenure.protocol.lease.owner.events import Grant, Hold, Holdings, Overtaken, OwnerAction, Revoke

NO_NUMBER = 0
NEVER_RENUMBERED = 0
NOTHING: tuple[Leased, ...] = ()


class Belief:
    """The leases that an owner counts on, and the actions that follow from each change."""

    def __init__(self, *, gives_reads: bool = False) -> None:
        self.gives_reads = gives_reads
        self.reads_ns = 0
        """The longest volume lease that the manager knows of."""
        self.journal = 0
        self.incarnation = NO_NUMBER
        self.leases = NOTHING
        self.expires_at = Instant(0)
        self._granted = NOTHING
        """The grants in the answer at hand; the application is told of them when the expiry has
        moved.
        """
        self._firsts: RangeMap[int] = RangeMap(NEVER_RENUMBERED)
        """The number under which each range was granted that was renumbered while it was held."""
        self._unbroken: tuple[Held, ...] = ()
        """The same, in the form in which readers are told."""
        self._highest_number = NO_NUMBER
        self._revoking: dict[int, tuple[Held, ...]] = {}
        """The leases of each revocation that are still listed while its callback runs; () if there
        are none.
        """
        self._letting_go: dict[int, tuple[KeyRange, ...]] = {}
        """The ranges of each revocation that the application has not let go of, listed or not."""
        self._is_hit: dict[int, None] = {}
        """The revocations of what caches may still hit."""
        self._told: dict[int, bool] = {}
        """The revocations that the last request reported as not done."""
        self._next_revocation = 1
        self._held: tuple[Held, ...] | None = ()
        self._fingerprint: tuple[tuple[Held, ...] | None, int, int, bytes] = (None, 0, 0, b"")
        """The leases from which the fingerprint was made, and the conversation."""

    def held(self) -> tuple[Held, ...]:
        """Everything that a request lists, in order: leases that are believed, and those being
        given up.
        """
        if self._held is None:
            held = [
                Held(start=lease.start, end=lease.end, number=lease.number) for lease in self.leases
            ]
            for revoking in self._revoking.values():
                held.extend(revoking)
            self._held = tuple(sorted(held, key=lambda item: item.start))
        return self._held

    def has_only(self, told: bytes, owner_nonce: int, manager_nonce: int) -> bool:
        """Whether nothing is being given up or let go of, and everything that a request lists has
        this fingerprint.
        """
        if self._revoking or self._letting_go:
            return False
        held, (known, *nonces, made) = self.held(), self._fingerprint
        if known is not held or nonces != [owner_nonce, manager_nonce]:
            made = fingerprint(held, owner_nonce, manager_nonce)
            self._fingerprint = (held, owner_nonce, manager_nonce, made)
        return made == told

    @property
    def is_giving_up(self) -> bool:
        """Whether the application is still being told of a revocation."""
        return bool(self._revoking)

    # --- answers ---

    def take(self, listed: tuple[Leased, ...]) -> list[OwnerAction]:
        """Believe in the leases that are listed and may be taken; drop all others (P4, P5)."""
        if listed == self.leases and not self._revoking:
            return []
        self._renumber([lease for lease in listed if lease.former])
        # A renewal renews only what is believed: the table may list what was given back since.
        numbers = RangeMap.of(((lease.range, lease.number) for lease in self.leases), NO_NUMBER)
        kept = [
            cut(lease, piece, "renewed")
            for lease in listed
            if lease.mark == "renewed"
            for piece, number in numbers.within(lease.range)
            # Nothing comes back that ended, or was handed over, while the answer was under way
            # (P5, P6): what is not held has no number here.
            if number == lease.number != NO_NUMBER
        ]
        told = [
            lease
            for lease in listed
            # A grant is taken once: told again, it may have been given back since (P5).
            if lease.mark == "granted" and lease.number > self._highest_number
        ]
        granted = [cut(lease, lease.range, "renewed") for lease in told]
        self._highest_number = max(self._highest_number, *(lease.number for lease in listed), 0)
        # What the manager no longer lists it has taken back: listing it on would claim it.
        overtaken = self._keep_revoking(listed)
        recalled = [lease.range for lease in listed if lease.mark == "recalled"]
        if self.gives_reads:
            recalled = [lease.range for lease in self.leases]
        self._granted = tuple(told)
        return overtaken + self._replace(_merged(kept + granted), recalled)

    def _renumber(self, told: list[Leased]) -> None:
        """Go on under another number (P11). Nothing ends by this, and nobody is told."""
        if not told:
            return
        newer = RangeMap.of(((lease.range, lease) for lease in told), None)
        leases = []
        for lease in self.leases:
            for piece, said in newer.within(lease.range):
                number = lease.number
                # Only what is still held under the earlier number: the rest ended meanwhile.
                if said is not None and said.former == lease.number:
                    number = said.number
                    for part, first in list(self._firsts.within(piece)):
                        self._firsts.assign(part, first or lease.number)
                leases.append(replace(lease, start=piece.start, end=piece.end, number=number))
        self.leases = tuple(leases)
        self._note_firsts()
        for revocation, revoking in self._revoking.items():
            self._revoking[revocation] = tuple(
                Held(
                    start=piece.start,
                    end=piece.end,
                    number=said.number if said and said.former == item.number else item.number,
                )
                for item in revoking
                for piece, said in newer.within(item.range)
            )
        self._held = None

    def _forget_firsts(self, ranges: Iterable[KeyRange]) -> None:
        if self._unbroken:
            for key_range in ranges:
                self._firsts.assign(key_range, NEVER_RENUMBERED)
            self._note_firsts()

    def _note_firsts(self) -> None:
        self._unbroken = tuple(
            Held(start=piece.start, end=piece.end, number=first)
            for piece, first in self._firsts
            if first
        )

    def _keep_revoking(self, listed: tuple[Leased, ...]) -> list[OwnerAction]:
        """Go on listing leases that are being given up only if the manager still lists them, or
        caches may still hit them.
        """
        known = RangeMap.of(((lease.range, lease.number) for lease in listed), NO_NUMBER)
        overtaken: list[OwnerAction] = []
        for revocation, revoking in self._revoking.items():
            stays = revocation in self._is_hit
            pieces = [
                (
                    Held(start=piece.start, end=piece.end, number=item.number),
                    stays or number == item.number,
                )
                for item in revoking
                for piece, number in known.within(item.range)
            ]
            self._revoking[revocation] = tuple(held for held, is_listed in pieces if is_listed)
            gone = tuple(held.range for held, is_listed in pieces if not is_listed)
            if gone:
                overtaken.append(Overtaken(revocation, gone))
        self._held = None
        return overtaken

    def move_expiry(self, now: Instant, expires_at: Instant) -> list[OwnerAction]:
        """Move the one instant; an answer that comes too late ends everything.

        A grant is believed from here on, so that everybody who is told of it finds it held.
        """
        # One instant for all leases, so that no check can find one alive beside a dead one (P4).
        self.expires_at = expires_at
        actions: list[OwnerAction] = [self._hold()]
        if self._granted:
            actions.append(Grant(self._granted))
            self._granted = NOTHING
        return actions + (self.drop_all() if now >= expires_at else [])

    def _hold(self) -> Hold:
        return Hold(
            Holdings(
                self.journal,
                self.incarnation,
                self.leases,
                self.expires_at,
                self._unbroken,
                self.reads_ns,
            )
        )

    # --- ceasing to believe ---

    def drop_all(self) -> list[OwnerAction]:
        """Believe nothing and list nothing: the manager takes everything as returned."""
        overtaken: list[OwnerAction] = []
        for revocation, revoking in list(self._revoking.items()):
            if revoking:
                overtaken.append(Overtaken(revocation, tuple(held.range for held in revoking)))
            self._revoking[revocation] = ()
            self.end_reads(revocation)  # caches count on no more than this term, or are waited for
        self._held = None
        return overtaken + self._replace(NOTHING, [])

    def holds(self, key_range: KeyRange, number: int) -> bool:
        """Whether all of the range is believed to be held under that number."""
        numbers = RangeMap.of(((lease.range, lease.number) for lease in self.leases), NO_NUMBER)
        return all(each == number for _, each in numbers.within(key_range))

    def hand_over(self, key_range: KeyRange) -> OwnerAction:
        """Stop believing in what is handed over; from here on only its copy lists it."""
        rest = RangeMap.of(((lease.range, lease) for lease in self.leases), None)
        rest.assign(key_range, None)
        self._forget_firsts([key_range])
        # Its copy lists it from here on: both at once would claim it twice (P13).
        self.leases = tuple(cut(lease, piece) for piece, lease in rest if lease is not None)
        self._held = None
        return self._hold()

    def give_up_all(self) -> list[OwnerAction]:
        """Believe nothing, but list it until the application has let go."""
        return self._replace(NOTHING, [lease.range for lease in self.leases])

    def let_go(self, revocation: int) -> bool:
        """Note that the application has let go. Returns whether the manager must hear of it."""
        self._held = None
        was_told = self._told.pop(revocation, False)
        self._letting_go.pop(revocation, None)
        if revocation in self._is_hit:
            return was_told
        return bool(self._revoking.pop(revocation, ())) or was_told

    def end_reads(self, revocation: int) -> bool:
        """Note that no cache can still hit it (V12). Returns whether the manager must
        hear of it.
        """
        self._held = None
        self._is_hit.pop(revocation, None)
        if revocation in self._letting_go:
            return bool(self._revoking.get(revocation))
        return bool(self._revoking.pop(revocation, ()))

    def letting_go(self) -> tuple[Held, ...]:
        """The ranges that the application has not let go of, as a request lists them."""
        if not self._letting_go:
            return ()
        self._told = dict.fromkeys(self._letting_go, True)
        ranges = ((each, True) for ranges in self._letting_go.values() for each in ranges)
        laid = RangeMap.of(ranges, default=False)
        return tuple(
            Held(start=each.start, end=each.end, number=NO_NUMBER)
            for each, is_laid in laid
            if is_laid
        )

    def begin_to_forget(self, key_range: KeyRange) -> int:
        """Have the application forget state that is not served, and return the number of that
        revocation.
        """
        return self._begin_to_let_go((key_range,), ())

    def _begin_to_let_go(self, ranges: tuple[KeyRange, ...], listed: tuple[Held, ...]) -> int:
        revocation = self._next_revocation
        self._next_revocation += 1
        self._letting_go[revocation] = ranges
        self._revoking[revocation] = listed
        # Caches may hit it until they are drained, so the manager must not free it (V12).
        if self.gives_reads and listed:
            self._is_hit[revocation] = None
        return revocation

    def has_let_go(self, key_range: KeyRange) -> bool:
        """Whether the application is done with whatever it had of the range before. Until then it
        cannot begin anew there: what it has may be older than what others did meanwhile.
        """
        ranges = (each for ranges in self._letting_go.values() for each in ranges)
        return not any(each.overlaps(key_range) for each in ranges)

    def begin_anew(self, journal: int) -> None:
        """Begin anew with another journal, whose numbers begin anew (P22)."""
        assert not self.leases
        self.journal = journal
        self._highest_number = NO_NUMBER

    def _replace(self, new: tuple[Leased, ...], recalled: list[KeyRange]) -> list[OwnerAction]:
        """Believe in `new` and nothing more. The belief ends before anybody is told so."""
        # First: a callback that checks a lease finds it gone (S3).
        old, self.leases = self.leases, new
        self._held = None
        dropped = _without(old, new)
        if not dropped:
            return []
        self._forget_firsts(lease.range for lease in dropped)
        still_listed = RangeMap.of(((key_range, True) for key_range in recalled), default=False)
        listed = tuple(
            Held(start=piece.start, end=piece.end, number=lease.number)
            for lease in dropped
            for piece, is_listed in still_listed.within(lease.range)
            if is_listed
        )
        revocation = self._begin_to_let_go(tuple(lease.range for lease in dropped), listed)
        kept = tuple(held.range for held in listed)
        return [self._hold(), Revoke(revocation, dropped, self.expires_at, kept)]

    def invariants(self) -> None:
        """Leases are in order, do not overlap, and exist only with an incarnation."""
        assert self.incarnation or not self.leases
        for before, after in zip(self.leases, self.leases[1:], strict=False):
            assert before.end is not None, before
            assert before.end <= after.start, (before, after)


def _merged(leases: list[Leased]) -> tuple[Leased, ...]:
    """These leases in order, with neighbours joined that agree in number and `since`, as in the
    table.
    """
    merged: list[Leased] = []
    for lease in sorted(leases, key=lambda item: item.start):
        last = merged[-1] if merged else None
        if last and (last.end, last.number, last.since) == (lease.start, lease.number, lease.since):
            merged[-1] = cut(last, KeyRange(last.start, lease.end))
        else:
            merged.append(lease)
    return tuple(merged)


def _without(old: tuple[Leased, ...], new: tuple[Leased, ...]) -> tuple[Leased, ...]:
    """The pieces of `old` that `new` does not hold under the same number."""
    numbers = RangeMap.of(((lease.range, lease.number) for lease in new), NO_NUMBER)
    return tuple(
        cut(lease, piece)
        for lease in old
        for piece, number in numbers.within(lease.range)
        if number != lease.number
    )


def cut(lease: Leased, piece: KeyRange, mark: Mark | None = None) -> Leased:
    """The part that is `piece`, as its owner believes in it: without what only a grant says."""
    return Leased(
        start=piece.start,
        end=piece.end,
        number=lease.number,
        since=lease.since,
        mark=mark or lease.mark,
    )
