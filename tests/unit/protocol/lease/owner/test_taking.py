"""A channel on which a range may come: its phases, its deadlines, and a source that is wrong."""

import pytest

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.lease.limits import STATE_BYTES
from tenure.protocol.lease.owner.taking import (
    SHOWN_CHARACTERS,
    Admitted,
    AskToAdmit,
    AskToKeep,
    Clear,
    Cleared,
    EndTaking,
    Kept,
    TakeIn,
    TakeWrites,
    Taking,
    TakingAction,
    TakingEvent,
    TookIn,
    TurnedAway,
)
from tenure.protocol.lease.owner.transfer import (
    CALL_NS,
    PROGRESS_NS,
    Accepted,
    CallFailed,
    Chunk,
    HangUp,
    Last,
    Listen,
    NotTaken,
    Offer,
    PeerErred,
    PeerLost,
    PeerSaid,
    Say,
    Taken,
    ToTaker,
    Whole,
)

OFFER = Offer(pool="p", journal=7, start=b"a", end=b"b", number=5, source=1, taker=2, secret=77)
CHUNK = Chunk(data=b"1")
PHASES: dict[str, tuple[TakingEvent, ...]] = {}
"""The events that lead to each phase."""
PHASES["silent"] = ()
PHASES["asking"] = (PeerSaid(OFFER),)
PHASES["clearing"] = (*PHASES["asking"], Admitted())
PHASES["arriving"] = (*PHASES["clearing"], Cleared())
PHASES["importing"] = (*PHASES["arriving"], PeerSaid(CHUNK))
PHASES["whole"] = (*PHASES["arriving"], PeerSaid(Last()))


class Steps:
    """A taking, step by step, at an instant that the test moves."""

    def __init__(
        self, phase: str = "silent", *, gives_reads: bool = False, most_bytes: int = STATE_BYTES
    ) -> None:
        self.machine = Taking(gives_reads=gives_reads, most_bytes=most_bytes)
        self.now = Instant(100)
        self.wake_at = FAR_FUTURE
        assert self.advance() == [Listen()]
        self.on(*PHASES[phase])

    def advance(self, by: int = 0) -> list[TakingAction]:
        self.now = Instant(self.now + by)
        output = self.machine.advance(self.now)
        self.wake_at = output.wake_at
        self.machine.invariants()
        return list(output.actions)

    def on(self, *events: TakingEvent) -> list[TakingAction]:
        """Handle the events, and return what the last of them led to."""
        did: list[TakingAction] = []
        for event in events:
            output = self.machine.handle(self.now, event)
            self.wake_at, did = output.wake_at, list(output.actions)
            self.machine.invariants()
        return did


def refused(why: str) -> list[TakingAction]:
    return [Say(NotTaken(why=why)), EndTaking(why), HangUp()]


def test_a_range_comes_chunk_by_chunk_each_taken_in_before_the_next_is_heard() -> None:
    steps = Steps()
    assert steps.on(PeerSaid(OFFER)) == [AskToAdmit(OFFER)]
    assert steps.on(Admitted()) == [Clear()]
    assert steps.on(Cleared()) == [Say(Accepted()), Listen()]
    for _ in range(3):
        assert steps.on(PeerSaid(CHUNK)) == [TakeIn(CHUNK)]
        assert steps.on(TookIn()) == [Say(Taken()), Listen()]
    assert steps.on(PeerSaid(Last())) == [AskToKeep()]
    assert steps.on(Kept()) == [Say(Whole()), HangUp()]
    assert steps.wake_at == FAR_FUTURE


def test_a_source_that_sends_more_than_the_owner_takes_is_refused() -> None:
    """What it tells of writes counts, too: that is kept as well."""
    steps = Steps(gives_reads=True, most_bytes=5)
    steps.on(*PHASES["arriving"])
    for data, tells_writes in ((b"12", False), (b"345", True)):
        chunk = Chunk(data=data, is_urgent=True, tells_writes=tells_writes)
        assert EndTaking not in map(type, steps.on(PeerSaid(chunk)))
        if not tells_writes:
            steps.on(TookIn())
    [said, ended, _] = steps.on(PeerSaid(Chunk(data=b"6")))
    assert isinstance(said, Say)
    assert isinstance(ended, EndTaking)
    assert ended.is_too_large
    assert said.message == NotTaken(why=ended.why)
    assert ended.why == (
        "its state has more than 5 bytes, the most that this owner takes: if that is right, give "
        "all owners of the pool a larger hand_off_bytes"
    )


def test_what_is_known_of_writes_is_taken_where_read_leases_are_given() -> None:
    """V15: nothing of it goes to the application, which is not waited for."""
    steps = Steps(gives_reads=True)
    steps.on(PeerSaid(OFFER), Admitted())
    assert steps.on(Cleared()) == [Say(Accepted(wants_writes=True)), Listen()]
    told = Chunk(data=b"writes", is_urgent=True, tells_writes=True)
    assert steps.on(PeerSaid(told)) == [TakeWrites(b"writes"), Say(Taken()), Listen()]
    assert steps.on(PeerSaid(CHUNK)) == [TakeIn(CHUNK)]
    steps = Steps("arriving")
    why = "what is known of writes, where no read leases are given"
    assert steps.on(PeerSaid(told)) == refused(why)


def test_whoever_offers_nothing_is_let_go_without_a_word() -> None:
    steps = Steps()
    assert steps.wake_at == steps.now + PROGRESS_NS
    assert steps.advance(PROGRESS_NS - 1) == []
    assert steps.advance(1) == [EndTaking("nothing was offered within 5 s"), HangUp()]
    assert steps.on(PeerSaid(OFFER)) == []


@pytest.mark.parametrize(
    ("phase", "method", "late"),
    [("clearing", "discard_range", Cleared()), ("importing", "import_chunk", TookIn())],
)
def test_an_application_that_does_not_come_back_ends_it(
    phase: str, method: str, late: TakingEvent
) -> None:
    steps = Steps(phase)
    assert steps.wake_at == steps.now + CALL_NS
    assert steps.advance(CALL_NS - 1) == []
    assert steps.advance(1) == refused(f"{method} has not returned for 10 s")
    assert steps.on(late) == []


def test_what_is_due_comes_before_what_happens() -> None:
    steps = Steps("importing")
    steps.now = Instant(steps.now + CALL_NS)
    assert steps.on(TookIn()) == refused("import_chunk has not returned for 10 s")


@pytest.mark.parametrize("phase", ["asking", "arriving", "whole"])
def test_the_owner_machine_says_how_long_a_source_may_be_silent(phase: str) -> None:
    steps = Steps(phase)
    assert steps.wake_at == FAR_FUTURE
    assert steps.advance(100 * CALL_NS) == []
    assert steps.on(TurnedAway("late")) == refused("late")


@pytest.mark.parametrize("said", [OFFER, CHUNK, Last()])
@pytest.mark.parametrize("phase", PHASES)
def test_a_message_of_another_phase_is_refused(phase: str, said: ToTaker) -> None:
    steps = Steps(phase)
    fits = {"silent": (OFFER,), "arriving": (CHUNK, Last())}
    did = steps.on(PeerSaid(said))
    if said in fits.get(phase, ()):
        assert not any(isinstance(each, EndTaking) for each in did)
        return
    where = "before any offer" if phase == "silent" else "among the chunks"
    assert did == refused(f"a {type(said).__name__} {where}")


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(
    "event", [PeerErred("nonsense"), CallFailed("ZeroDivisionError"), TurnedAway("unwanted")]
)
def test_whatever_goes_wrong_is_told_and_ends_it_once(
    phase: str, event: PeerErred | CallFailed | TurnedAway
) -> None:
    steps = Steps(phase)
    assert steps.on(event) == refused(event.why)
    assert steps.wake_at == FAR_FUTURE
    late: tuple[TakingEvent, ...] = (event, Admitted(), Cleared(), TookIn(), Kept())
    for each in (*late, PeerSaid(CHUNK)):
        assert steps.on(each) == []


def test_nothing_is_said_to_a_source_that_is_gone() -> None:
    assert Steps("arriving").on(PeerLost("gone")) == [EndTaking("gone"), HangUp()]


def test_a_long_reason_is_told_as_far_as_it_fits_and_logged_whole() -> None:
    why = "x" * (SHOWN_CHARACTERS + 1)
    did = Steps("arriving").on(CallFailed(why))
    assert did == [Say(NotTaken(why=why[:-1])), EndTaking(why), HangUp()]
