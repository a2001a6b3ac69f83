"""The lookup machine: what it takes, what it signals, and what it lets pass."""

from random import Random

import msgspec
import pytest

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.base.noted import Noted
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.lease.client_events import ManagerLost, ManagerSaid, TellManager
from tenure.protocol.lease.lookup.events import (
    LookupAction,
    LookupConfig,
    Route,
    RoutingTable,
    SignalLoss,
)
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.messages import (
    Changes,
    Entry,
    OwnerInfo,
    Standby,
    Sync,
    SyncRefusal,
    SyncResponse,
    ToLookup,
)

LOW, HIGH = KeyRange(b"", b"m"), KeyRange(b"m", None)
OWNERS = (
    OwnerInfo(incarnation=1, name="one", address="http://one"),
    OwnerInfo(incarnation=2, name="two", address="http://two"),
)
SYNC_NS, CONTACT_NS = seconds(5), seconds(10)
T0 = Instant(0)


def at(value: float) -> Instant:
    return Instant(seconds(value))


class Driven:
    """A machine, and what it did last."""

    def __init__(self) -> None:
        config = LookupConfig(managers=("a", "b"), pool="p")
        self.machine = LookupMachine(config, Random(1))
        self.actions: list[LookupAction] = []
        self.wake_at = T0
        self.advance(T0)

    def advance(self, now: Instant) -> None:
        self.actions, self.wake_at = self.machine.advance(now)
        self.machine.invariants()

    def hear(self, now: Instant, message: ToLookup, manager: str = "a") -> None:
        output = self.machine.handle(now, ManagerSaid(manager, message))
        self.actions, self.wake_at = output
        self.machine.invariants()

    def said(self) -> list[str]:
        return [action.kind.phrase for action in self.actions if isinstance(action, Noted)]

    def lost(self) -> list[KeyRange]:
        losses = [action for action in self.actions if isinstance(action, SignalLoss)]
        return [key_range for loss in losses for key_range in loss.ranges]

    def published(self) -> Route | None:
        routes = [action for action in self.actions if isinstance(action, Route)]
        return routes[-1] if routes else None

    def routed(self) -> RoutingTable | None:
        """Return the table by which readers find from here on, if the output has one."""
        route = self.published()
        if route is None:
            return None
        assert isinstance(route.table, RoutingTable)
        return route.table

    def asked(self) -> list[str]:
        sends = [action for action in self.actions if isinstance(action, TellManager)]
        assert all(isinstance(send.message, Sync) for send in sends)
        return [send.manager for send in sends]


def response(
    driven: Driven,
    *entries: Entry,
    lsn: int = 5,
    journal: int = 9,
    leadership: int = 1,
    snapshot: bool = True,
    sync_ns: int = SYNC_NS,
) -> SyncResponse:
    """An answer to its newest sync."""
    return SyncResponse(
        sequence=driven.machine.sequence,
        nonce=driven.machine.nonce,
        journal=journal,
        leadership=leadership,
        lsn=lsn,
        kind="ordered",
        snapshot=snapshot,
        entries=entries,
        owners=OWNERS,
        sync_ns=sync_ns,
        contact_ns=CONTACT_NS,
    )


def pushed(*entries: Entry, after: int, lsn: int, journal: int = 9, leadership: int = 1) -> Changes:
    return Changes(
        pool="p",
        journal=journal,
        leadership=leadership,
        after=after,
        lsn=lsn,
        entries=entries,
        owners=OWNERS,
    )


def in_contact(number: int = 3, lsn: int = 5) -> Driven:
    driven = Driven()
    driven.hear(
        T0,
        response(driven, Entry(start=b"", end=None, owner=1, number=number, since=number), lsn=lsn),
    )
    assert driven.machine.find(b"k") == OWNERS[0]
    return driven


# --- loss -----------------------------------------------------------------------------------------


def test_what_was_never_known_is_not_lost() -> None:
    assert in_contact(number=50).lost() == []


def test_what_was_known_under_a_number_below_since_is_lost() -> None:
    """P16."""
    driven = in_contact(number=3)
    driven.hear(
        at(1), pushed(Entry(start=b"m", end=None, owner=2, number=7, since=4), after=5, lsn=6)
    )
    assert driven.lost() == [HIGH]


def test_what_was_handed_over_cleanly_is_not_lost() -> None:
    driven = in_contact(number=3)
    driven.hear(
        at(1), pushed(Entry(start=b"m", end=None, owner=2, number=7, since=3), after=5, lsn=6)
    )
    assert (driven.lost(), driven.machine.find(b"z")) == ([], OWNERS[1])


def test_a_loss_is_signalled_once_find_knows_the_new_place() -> None:
    """A client that republishes on a loss must find the new owner."""
    driven = in_contact(number=3)
    driven.hear(
        at(1), pushed(Entry(start=b"m", end=None, owner=2, number=7, since=7), after=5, lsn=6)
    )
    assert [type(action) for action in driven.actions] == [Route, SignalLoss, Noted]


def test_a_range_that_is_lost_twice_in_one_answer_is_signalled_once() -> None:
    driven = in_contact(number=3)
    driven.hear(
        at(1),
        pushed(
            Entry(start=b"m", end=None, owner=0, number=6, since=6),
            Entry(start=b"m", end=None, owner=2, number=7, since=7),
            after=5,
            lsn=7,
        ),
    )
    assert driven.lost() == [HIGH]


def test_a_push_that_begins_before_what_is_known_signals_no_loss_of_the_past() -> None:
    """The lookup came at LSN 6, after the loss that record 6 was, and never relied on anything from
    before. The push that gathers 6 and 7 for all must not make it republish.
    """
    driven = in_contact(number=6, lsn=6)
    driven.hear(
        at(1),
        pushed(
            Entry(start=b"", end=None, owner=1, number=5, since=5),
            Entry(start=b"", end=None, owner=1, number=6, since=6),
            after=4,
            lsn=7,
        ),
    )
    assert (driven.lost(), driven.machine.lsn) == ([], 7)


def test_another_journal_loses_everything() -> None:
    """P22: also where its numbers and LSNs look as if they went on."""
    driven = in_contact()
    driven.advance(at(5))
    driven.hear(
        at(5),
        response(driven, Entry(start=b"", end=None, owner=2, number=3, since=1), journal=8, lsn=50),
    )
    assert (driven.lost(), driven.machine.find(b"k")) == ([WHOLE], OWNERS[1])


# --- what is not taken ----------------------------------------------------------------------------


def test_an_answer_to_an_older_sync_is_not_taken() -> None:
    driven = Driven()
    old = response(driven, Entry(start=b"", end=None, owner=1, number=3, since=3))
    driven.advance(at(2))
    driven.hear(at(2), old)
    assert (driven.said(), driven.machine.in_contact) == (["old answer"], False)


def test_an_answer_to_another_life_is_not_taken() -> None:
    driven, other = Driven(), Driven()
    other.machine.nonce += 1
    driven.hear(T0, response(other, Entry(start=b"", end=None, owner=1, number=3, since=3)))
    assert (driven.said(), driven.machine.in_contact) == (["old answer"], False)


def test_the_same_answer_twice_is_taken_once() -> None:
    driven = Driven()
    answer = response(driven, Entry(start=b"", end=None, owner=1, number=3, since=3))
    driven.hear(T0, answer)
    until = driven.machine.contact_until
    driven.hear(at(1), answer)
    assert (driven.lost(), driven.machine.contact_until) == ([], until)


@pytest.mark.parametrize(
    ("lsn", "leadership"), [(4, 1), (4, 0), (9, 0)], ids=["LSN", "both", "leadership"]
)
def test_it_never_goes_back(lsn: int, leadership: int) -> None:
    """P15."""
    driven = in_contact(number=3, lsn=5)
    driven.advance(at(5))
    entry = Entry(start=b"", end=None, owner=2, number=9, since=9)
    driven.hear(at(5), response(driven, entry, lsn=lsn, leadership=leadership))
    assert (driven.said(), driven.machine.lsn, driven.lost()) == (["going back"], 5, [])


@pytest.mark.parametrize(
    "push",
    [
        pushed(Entry(start=b"", end=None, owner=2, number=9, since=9), after=5, lsn=6, journal=8),
        pushed(
            Entry(start=b"", end=None, owner=2, number=9, since=9), after=5, lsn=6, leadership=2
        ),
        pushed(
            Entry(start=b"", end=None, owner=2, number=9, since=9), after=5, lsn=6, leadership=0
        ),
        pushed(Entry(start=b"", end=None, owner=2, number=9, since=9), after=3, lsn=5),
        pushed(Entry(start=b"", end=None, owner=2, number=9, since=9), after=6, lsn=7),
        Changes(
            pool="other",
            journal=9,
            leadership=1,
            after=5,
            lsn=6,
            entries=(Entry(start=b"", end=None, owner=2, number=9, since=9),),
            owners=(),
        ),
    ],
    ids=["journal", "later leader", "earlier leader", "twice", "gap", "pool"],
)
def test_a_push_that_does_not_follow_is_not_taken(push: Changes) -> None:
    driven = in_contact(number=3, lsn=5)
    driven.hear(at(1), push)
    assert (driven.lost(), driven.machine.lsn, driven.machine.find(b"k")) == ([], 5, OWNERS[0])


def test_a_push_from_elsewhere_is_not_taken() -> None:
    driven = in_contact(number=3, lsn=5)
    driven.hear(
        at(1),
        pushed(Entry(start=b"", end=None, owner=2, number=9, since=9), after=5, lsn=6),
        manager="b",
    )
    assert driven.machine.lsn == 5


def test_a_gap_is_asked_for_once() -> None:
    driven = in_contact(lsn=5)
    driven.hear(at(1), pushed(after=6, lsn=7))
    assert driven.asked() == ["a"]
    driven.hear(at(1), pushed(after=7, lsn=8))
    assert driven.asked() == []


@pytest.mark.parametrize("journal", [0, 8])
def test_changes_since_an_lsn_of_another_journal_are_not_taken(journal: int) -> None:
    """A manager that says so is broken; its word must not break the lookup."""
    driven = Driven()
    driven.hear(T0, response(driven, journal=journal, snapshot=False))
    assert (driven.machine.in_contact, driven.said()) == (False, ["going back"])


# --- contact --------------------------------------------------------------------------------------


@pytest.mark.parametrize("round_trip", [0.1, 1.3, 1.9, 2.4])
def test_a_slow_manager_is_heard(round_trip: float) -> None:
    """Only the answer to the newest sync is taken. A lookup that repeats its syncs at a fixed pace
    is never told anything by a manager whose answers take longer than that.
    """
    driven = Driven()
    under_way: list[tuple[Instant, int]] = []
    out_of_contact: list[Instant] = []
    now = driven.wake_at
    while now < at(120):
        arrives = under_way[0][0] if under_way else FAR_FUTURE
        now = min(arrives, driven.wake_at)
        if now == arrives:
            _, sequence = under_way.pop(0)
            first = not driven.machine.journal
            entries = [Entry(start=b"", end=None, owner=1, number=3, since=3)] if first else []
            answer = response(driven, *entries, snapshot=first)
            driven.hear(now, msgspec.structs.replace(answer, sequence=sequence))
        else:
            driven.advance(now)
        if "a" in driven.asked():
            under_way.append((Instant(now + seconds(round_trip)), driven.machine.sequence))
        if now > at(60) and not driven.machine.in_contact:
            out_of_contact.append(now)
    assert out_of_contact == []


def test_silence_is_followed_by_a_search_of_all_managers() -> None:
    """P24: long before contact is lost."""
    driven = in_contact()
    asked = []
    while (now := driven.wake_at) < at(9):
        driven.advance(now)
        asked += [(now, manager) for manager in driven.asked()]
    assert asked[0] == (at(5), "a")
    searched = min(now for now, manager in asked if manager == "b")
    assert at(7) <= searched <= at(8)
    assert driven.machine.in_contact


@pytest.mark.parametrize("event", [ManagerLost("a"), ManagerSaid("a", Standby(leader="b"))])
def test_a_manager_that_is_gone_is_followed_by_a_search(
    event: ManagerSaid[ToLookup] | ManagerLost,
) -> None:
    driven = in_contact()
    driven.actions = driven.machine.handle(at(1), event).actions
    assert driven.asked() == ["a", "b"]


@pytest.mark.parametrize("event", [ManagerLost("b"), ManagerSaid("b", Standby(leader="a"))])
def test_what_another_manager_says_of_itself_changes_nothing(
    event: ManagerSaid[ToLookup] | ManagerLost,
) -> None:
    driven = in_contact()
    assert driven.machine.handle(at(1), event).actions == []


def test_a_refusal_is_told_and_asked_about_again() -> None:
    driven = Driven()
    refusal = SyncRefusal(
        sequence=driven.machine.sequence, nonce=driven.machine.nonce, detail="no such pool"
    )
    driven.hear(T0, refusal)
    assert driven.said() == ["refused: no_pool"]
    driven.hear(T0, SyncRefusal(sequence=refusal.sequence + 1, nonce=refusal.nonce, detail=""))
    assert driven.said() == []
    driven.advance(at(3))
    assert driven.asked() == ["a", "b"]


def refused(driven: Driven, manager: str) -> None:
    asked_at = driven.wake_at
    driven.advance(asked_at)
    said = SyncRefusal(
        sequence=driven.machine.sequence, nonce=driven.machine.nonce, detail="no such pool"
    )
    driven.hear(asked_at, said, manager)


def test_a_pool_that_is_deleted_is_lost_whole_and_found_again_if_it_is_there_again() -> None:
    driven = in_contact(number=3)
    refused(driven, "a")
    assert driven.lost() == [WHOLE]
    assert driven.machine.find(b"k") is None
    asked_at = driven.wake_at
    driven.advance(asked_at)
    driven.hear(
        asked_at, response(driven, Entry(start=b"", end=None, owner=1, number=7, since=6), lsn=9)
    )
    assert driven.lost() == [WHOLE]
    assert driven.machine.find(b"k") == OWNERS[0]


def test_that_another_manager_knows_no_such_pool_is_no_loss() -> None:
    """It may have a journal of its own: its answer ends nothing."""
    driven = in_contact()
    refused(driven, "b")
    assert driven.lost() == []
    assert driven.machine.find(b"k") == OWNERS[0]


@pytest.mark.parametrize("sync_ns", [0, 1, 3])
def test_a_manager_that_says_to_sync_all_the_time_is_not_obeyed(sync_ns: int) -> None:
    driven = Driven()
    driven.hear(
        T0,
        response(driven, Entry(start=b"", end=None, owner=1, number=3, since=3), sync_ns=sync_ns),
    )
    now, steps = T0, 0
    while now < at(1):
        now, steps = max(now, driven.wake_at), steps + 1
        driven.advance(now)
        assert steps < 200, f"woken {steps} times by {now} ns"


# --- time -----------------------------------------------------------------------------------------


def test_a_spurious_advance_changes_nothing() -> None:
    driven = in_contact()
    for now in (at(0.5), at(1), at(4.9)):
        driven.advance(now)
        assert (driven.actions, driven.wake_at) == ([], at(5))


def test_a_late_advance_does_what_is_due_once() -> None:
    driven = in_contact()
    driven.advance(at(3600))
    assert driven.lost() == [WHOLE]
    assert len(driven.asked()) <= 3


# --- the hold -------------------------------------------------------------------------------------


def test_the_hold_is_the_managers_and_the_longest_of_all_where_it_does_not_say() -> None:
    driven = Driven()
    assert driven.machine.view().hold_ns == seconds(65)
    entry = Entry(start=b"", end=None, owner=1, number=3, since=3)
    said = msgspec.structs.replace(response(driven, entry), hold_ns=seconds(13))
    driven.hear(T0, said)
    assert driven.machine.view().hold_ns == seconds(13)
    driven.advance(at(SYNC_NS / seconds(1)))
    driven.hear(at(SYNC_NS / seconds(1)), response(driven, entry))
    assert driven.machine.view().hold_ns == seconds(65)


def test_while_its_leader_answers_a_lookup_takes_the_table_of_no_other_manager() -> None:
    """Whoever takes over the address of a dead standby could have sent every request elsewhere."""
    driven = Driven()
    driven.hear(T0, response(driven, Entry(start=b"", end=None, owner=1, number=4, since=1)))
    forged = Entry(start=b"", end=None, owner=2, number=1 << 40, since=1 << 40)
    lies = 0
    for second in range(5, 120, 5):
        driven.advance(at(second))
        if "b" in driven.asked():
            lies += 1
            for leadership in (1, 1 << 40):
                lie = response(driven, forged, lsn=1 << 40, leadership=leadership)
                driven.hear(at(second), lie, "b")
                assert driven.published() is None
        driven.hear(at(second), response(driven, snapshot=False))
        assert driven.machine.in_contact
    assert lies >= 2
    driven.hear(at(116), Standby(leader=None))
    driven.hear(at(116), response(driven, forged, lsn=6, leadership=2), "b")
    assert driven.machine.manager == "b"
