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
from tenure.sim.lease.run import is_of_a_lookup
from tenure.sim.lease.words import LONGEST, in_words

HELD = tuple(Held(bytes([i]), bytes([i + 1]), 7) for i in range(4))
TWO_MARKS = (
    Leased(b"", b"\x01", 3, 3, "renewed"),
    Leased(b"\x01", b"\x02", 3, 3, "renewed"),
    Leased(b"\x02", None, 4, 4, "recalled"),
)
DEAD, WITNESS = Process("h", 1, 1, 4711, 9), Process("h", 1, 1, 4712, 9)
ORDER = HandOff(b"\x00", b"\x01", 7, 6, "at")
COPY = Copy(b"\x00", b"\x01", 7)
FREED = (Entry(b"", None, 0, 9, 9),)


def request(held: tuple[Held, ...], *, leaving: bool = False) -> LeaseRequest:
    return LeaseRequest("p", 5, 1, 1, 12, 1, 1, held, leaving)


def response(leases: tuple[Leased, ...]) -> LeaseResponse:
    return LeaseResponse(5, 1, 12, 1, 1, 1, seconds(60), seconds(15), leases)


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (Hello("p", 1), ""),
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
            LeaseRequest("p", 5, 1, 1, 12, 1, 1, (), copies=(COPY, Copy(b"\x09", None, 8, 6))),
            "#12 of 5 lists nothing, copies of [00, 01) under 7, [09, -) under 8",
        ),
        (
            LeaseResponse(5, 1, 12, 1, 1, 1, seconds(60), 1, (), HELD[:1], (ORDER,)),
            (
                "to #12: nothing, copies count of [00, 01) under 7, "
                "to hand over: [00, 01) under 7, for 60 s from when it asked"
            ),
        ),
        (ORDER, "[00, 01) under 7 to 6"),
        (COPY, "[00, 01) under 7, on its way"),
        (Copy(b"\x09", None, 8, 6), "[09, -) under 8, with 6"),
        (Refusal(1, 12, 1, 1, 1, "name_held", ""), "of #12: name_held"),
        (Attest("p", 5, DEAD, 1), "is 5 gone, process 4711?"),
        (Attested("p", 5, DEAD, WITNESS, 1, 1), "5 is gone, process 4711"),
        (Standby(None), "knows no leader"),
        (Standby("m0"), "m0 leads"),
        (Sync("p", 3, 1, 1, 40, 1), "#3 from LSN 40"),
        (
            SyncResponse(3, 1, 1, 1, 44, "hashed", True, FREED, (), 1, 1),
            "to #3: the whole table, up to LSN 44",
        ),
        (Changes("p", 1, 1, 40, 44, FREED, ()), "LSN 40 to 44, 1 change"),
        (Holdings(1, 5, (), Instant(0)), "nothing as incarnation 5"),
        (WaitedOut(), ""),
        (TookOver(2, 1, "m1"), "m1 leads as 2"),
        (Joined("p", 5, "ann", 1, "a"), "ann is incarnation 5"),
        (Left("p", 5, ()), "incarnation 5 is gone"),
        (Left("p", 5, FREED), "incarnation 5 is gone, which frees [-, -) to nobody under 9"),
        (Changed("p", FREED * 4), "4 entries"),
        (
            Changed("p", (Entry(b"", None, 6, 9, 1),), 8),
            "[-, -) to 6 under 9, with the state of 8",
        ),
        ("3.2 s", "3.2 s"),
    ],
)
def test_what_it_says(thing: object, words: str) -> None:
    assert in_words(thing) == words


def test_what_has_no_words_is_cut() -> None:
    assert len(in_words("x" * 1_000)) == LONGEST


def test_a_story_keeps_the_last_events_and_may_leave_lookups_out() -> None:
    story = Story(in_words)
    story.tell(1_500_000_000, "o1", "gets Standby of m1", Standby("m0"))
    story.tell(2_000_000_000, "l1", "out of contact")
    story.tell(2_500_000_000, "m0", "gets Sync of l1", Sync("p", 3, 1, 1, 40, 1))
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
