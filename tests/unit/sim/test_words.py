"""Stories are for people: what a message says fits on a line."""

import pytest

from tenure.base.instants import Instant, seconds
from tenure.protocol.lease.messages import (
    Attest,
    Attested,
    Changes,
    Copy,
    Entry,
    HandOff,
    Held,
    Hello,
    Leased,
    LeaseRequest,
    LeaseResponse,
    Process,
    Refusal,
    Standby,
    Sync,
    SyncResponse,
)
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.records import Changed, Joined, Left, TookOver, WaitedOut
from tenure.sim.kernel.story import Story
from tenure.sim.lease.managed_world import is_of_a_lookup
from tenure.sim.lease.words import LONGEST, in_words

HELD = tuple(Held(start=bytes([i]), end=bytes([i + 1]), number=7) for i in range(4))
TWO_MARKS = (
    Leased(start=b"", end=b"\x01", number=3, since=3, mark="renewed"),
    Leased(start=b"\x01", end=b"\x02", number=3, since=3, mark="renewed"),
    Leased(start=b"\x02", end=None, number=4, since=4, mark="recalled"),
)
DEAD, WITNESS = (
    Process(boot_id="h", pid_namespace=1, time_namespace=1, pid=4711, start_time=9),
    Process(boot_id="h", pid_namespace=1, time_namespace=1, pid=4712, start_time=9),
)
ORDER = HandOff(start=b"\x00", end=b"\x01", number=7, taker=6, address="at")
COPY = Copy(start=b"\x00", end=b"\x01", number=7)
FREED = (Entry(start=b"", end=None, owner=0, number=9, since=9),)


def request(held: tuple[Held, ...], *, leaving: bool = False) -> LeaseRequest:
    return LeaseRequest(
        pool="p",
        incarnation=5,
        owner_nonce=1,
        manager_nonce=1,
        sequence=12,
        journal=1,
        leadership=1,
        held=held,
        leaving=leaving,
    )


def response(leases: tuple[Leased, ...]) -> LeaseResponse:
    return LeaseResponse(
        incarnation=5,
        owner_nonce=1,
        sequence=12,
        manager_nonce=1,
        journal=1,
        leadership=1,
        term_ns=seconds(60),
        renew_ns=seconds(15),
        leases=leases,
    )


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (Hello(pool="p", token=1), ""),
        (request(HELD), "#12 of 5 lists 4 ranges"),
        (request((), leaving=True), "#12 of 5 lists nothing, leaving"),
        (request(HELD[:1]), "#12 of 5 lists [00, 01) under 7"),
        (response(()), "to #12: nothing, for 60 s from when it asked"),
        (response(TWO_MARKS), "to #12: 2 renewed, 1 recalled, for 60 s from when it asked"),
        (
            response(TWO_MARKS[2:]),
            "to #12: [02, -) recalled under 4, for 60 s from when it asked",
        ),
        (
            LeaseRequest(
                pool="p",
                incarnation=5,
                owner_nonce=1,
                manager_nonce=1,
                sequence=12,
                journal=1,
                leadership=1,
                held=(),
                copies=(COPY, Copy(start=b"\x09", end=None, number=8, taker=6)),
            ),
            "#12 of 5 lists nothing, copies of [00, 01) under 7, [09, -) under 8",
        ),
        (
            LeaseResponse(
                incarnation=5,
                owner_nonce=1,
                sequence=12,
                manager_nonce=1,
                journal=1,
                leadership=1,
                term_ns=seconds(60),
                renew_ns=1,
                leases=(),
                copies=HELD[:1],
                hand_offs=(ORDER,),
            ),
            (
                "to #12: nothing, copies count of [00, 01) under 7, "
                "to hand over: [00, 01) under 7, for 60 s from when it asked"
            ),
        ),
        (ORDER, "[00, 01) under 7 to 6"),
        (COPY, "[00, 01) under 7, on its way"),
        (Copy(start=b"\x09", end=None, number=8, taker=6), "[09, -) under 8, with 6"),
        (
            Refusal(
                owner_nonce=1,
                sequence=12,
                manager_nonce=1,
                journal=1,
                leadership=1,
                reason="name_held",
                detail="",
            ),
            "of #12: name_held",
        ),
        (
            Attest(pool="p", incarnation=5, process=DEAD, manager_nonce=1),
            "is 5 gone, process 4711?",
        ),
        (
            Attested(
                pool="p",
                incarnation=5,
                process=DEAD,
                witness=WITNESS,
                owner_nonce=1,
                manager_nonce=1,
            ),
            "5 is gone, process 4711",
        ),
        (Standby(leader=None), "knows no leader"),
        (Standby(leader="m0"), "m0 leads"),
        (Sync(pool="p", sequence=3, journal=1, leadership=1, lsn=40, nonce=1), "#3 from LSN 40"),
        (
            SyncResponse(
                sequence=3,
                nonce=1,
                journal=1,
                leadership=1,
                lsn=44,
                kind="hashed",
                snapshot=True,
                entries=FREED,
                owners=(),
                sync_ns=1,
                contact_ns=1,
            ),
            "to #3: the whole table, up to LSN 44",
        ),
        (
            Changes(pool="p", journal=1, leadership=1, after=40, lsn=44, entries=FREED, owners=()),
            "LSN 40 to 44, 1 change",
        ),
        (Holdings(1, 5, (), Instant(0)), "nothing as incarnation 5"),
        (WaitedOut(), ""),
        (TookOver(leadership=2, promise_ns=1, manager="m1"), "m1 leads as 2"),
        (Joined(pool="p", incarnation=5, name="ann", nonce=1, address="a"), "ann is incarnation 5"),
        (Left(pool="p", incarnation=5, entries=()), "incarnation 5 is gone"),
        (
            Left(pool="p", incarnation=5, entries=FREED),
            "incarnation 5 is gone, which frees [-, -) to nobody under 9",
        ),
        (Changed(pool="p", entries=FREED * 4), "4 entries"),
        (
            Changed(
                pool="p",
                entries=(Entry(start=b"", end=None, owner=6, number=9, since=1),),
                handed=8,
            ),
            "[-, -) to 6 under 9, with the state of 8",
        ),
        ("3.2 s", "3.2 s"),
    ],
)
def test_what_it_says(thing: object, words: str) -> None:
    assert in_words(thing) == words


def test_what_has_no_words_is_cut() -> None:
    assert len(in_words("x" * 1_000)) == LONGEST


def test_a_story_tells_the_beginning_of_what_is_long() -> None:
    story = Story()
    story.tell(1, "n1", "gets SumsTold", "x" * 5_000)
    [line] = story.lines(1)
    assert len(line) < 500
    assert line.endswith("x... (5,000 characters)")


def test_a_story_keeps_the_last_events_and_may_leave_lookups_out() -> None:
    story = Story(in_words)
    story.tell(1_500_000_000, "o1", "gets Standby of m1", Standby(leader="m0"))
    story.tell(2_000_000_000, "l1", "out of contact")
    story.tell(
        2_500_000_000,
        "m0",
        "gets Sync of l1",
        Sync(pool="p", sequence=3, journal=1, leadership=1, lsn=40, nonce=1),
    )
    assert story.lines(2) == [
        "       2.000  l1       out of contact",
        "       2.500  m0       gets Sync of l1: #3 from LSN 40",
    ]
    assert story.lines(2, is_of_a_lookup) == ["       1.500  o1       gets Standby of m1: m0 leads"]


def test_the_fingerprint_is_of_all_events_in_their_order() -> None:
    def fingerprint(*whats: str) -> int:
        story = Story()
        for what in whats:
            story.tell(1, "o1", what)
        return story.fingerprint

    assert fingerprint("a", "b") == fingerprint("a", "b")
    assert fingerprint("a", "b") != fingerprint("b", "a")
