"""An order that is carried out: its rounds, limits and deadlines, and a taker that is wrong."""

import pytest

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.lease.messages import HandOff
from tenure.protocol.lease.owner.giving import (
    CHUNKS_IN_HAND,
    LONG_SETTLE_NS,
    ROUNDS,
    SETTLE_NS,
    SMALL_BYTES,
    ChunkMade,
    EndServing,
    Export,
    ExportBegun,
    FailGiving,
    Giving,
    GivingAction,
    GivingEvent,
    GivingStopped,
    HaveGiven,
    MakeChunk,
    PeerReached,
    Reach,
    ServingEnded,
    Settle,
    Settled,
    Withdraw,
    Withdrawn,
)
from tenure.protocol.lease.owner.transfer import (
    CALL_NS,
    CHUNKS_UNDER_WAY,
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
    ToSource,
    Whole,
)

ORDER = HandOff(start=b"a", end=b"b", number=5, taker=2, address="http://taker")
OFFER = Offer(pool="p", journal=7, start=b"a", end=b"b", number=5, source=1, taker=2, secret=77)
LARGE = bytes(SMALL_BYTES + 1)


class Given:
    """A giving, step by step, at an instant that the test moves."""

    def __init__(self, settle_ns: int = SETTLE_NS, *, gives_reads: bool = False) -> None:
        self.machine = Giving(ORDER, OFFER, settle_ns, gives_reads=gives_reads)
        self.now = Instant(100)
        self.wake_at = FAR_FUTURE
        self.did = self.advance()

    def advance(self, by: int = 0) -> list[GivingAction]:
        self.now = Instant(self.now + by)
        output = self.machine.advance(self.now)
        self.wake_at = output.wake_at
        self.machine.invariants()
        return list(output.actions)

    def on(self, *events: GivingEvent) -> list[GivingAction]:
        """Handle the events, and return what the last of them led to."""
        for event in events:
            output = self.machine.handle(self.now, event)
            self.wake_at, self.did = output.wake_at, list(output.actions)
            self.machine.invariants()
        return self.did

    def hears(self, *messages: ToSource) -> list[GivingAction]:
        return self.on(*map(PeerSaid, messages))

    def gives_round(self, *chunks: bytes) -> list[GivingAction]:
        """Answer an Export that was asked for until the end of that round, and return the last
        actions.
        """
        self.on(ExportBegun())
        for chunk in chunks:
            self.on(ChunkMade(chunk))
            self.hears(Taken())
        return self.on(ChunkMade(None))


def accepted(*, gives_reads: bool = False, wants_writes: bool = False) -> Given:
    given = Given(gives_reads=gives_reads)
    given.on(PeerReached())
    assert given.hears(Accepted(wants_writes=wants_writes)) == [Export(), Listen()]
    return given


def settling() -> Given:
    """All but the last difference has arrived, and the source waits for what has begun."""
    given = accepted()
    assert given.gives_round(b"all") == [Export()]
    assert given.gives_round() == [Settle(Instant(given.now + SETTLE_NS))]
    return given


def copied() -> Given:
    given = settling()
    assert given.on(Settled()) == [EndServing()]
    return given


def all_sent() -> Given:
    given = copied()
    assert given.on(ServingEnded()) == [Export()]
    given.on(ExportBegun())
    assert given.on(ChunkMade(b"last")) == [
        Say(Chunk(data=b"last", is_urgent=True)),
        MakeChunk(True),
    ]
    assert given.on(ChunkMade(None)) == [Say(Last())]
    return given


def test_it_reaches_the_taker_and_makes_its_offer() -> None:
    given = Given()
    assert given.did == [Reach("http://taker")]
    assert given.on(PeerReached()) == [Say(OFFER), Listen()]


def test_the_range_is_copied_then_its_differences_then_the_last_one() -> None:
    given = all_sent()
    assert given.hears(Taken()) == [Listen()]
    assert given.hears(Whole()) == [HaveGiven(), HangUp()]
    assert given.wake_at == FAR_FUTURE


def test_a_difference_that_is_large_is_followed_by_another_up_to_so_many() -> None:
    given = accepted()
    rounds = [given.gives_round(LARGE) for _ in range(ROUNDS)]
    assert rounds == ROUNDS * [[Export()]]
    assert given.gives_round(LARGE) == [Settle(Instant(given.now + SETTLE_NS))]
    given.now = Instant(given.now + LONG_SETTLE_NS)
    assert given.on(Settled()) == [Export()], "what was written meanwhile goes while it is served"
    assert given.gives_round(LARGE) == [EndServing()]


# --- settling -------------------------------------------------------------------------------------


def test_serving_goes_on_until_what_has_begun_is_done_and_the_taker_may_be_silent() -> None:
    given = settling()
    assert given.wake_at == given.now + SETTLE_NS
    assert given.advance(by=SETTLE_NS - 1) == []
    assert given.on(Settled()) == [Export()]
    assert given.gives_round() == [EndServing()]


def test_what_never_settles_is_waited_for_until_the_deadline() -> None:
    given = settling()
    assert given.advance(by=SETTLE_NS) == [Export()]
    assert given.on(Settled()) == [], "it comes too late to matter"
    assert given.gives_round() == [EndServing()]


def test_who_leaves_soon_settles_sooner() -> None:
    given = Given(settle_ns=0)
    given.on(PeerReached())
    given.hears(Accepted())
    given.gives_round(b"all")
    assert given.gives_round() == [Settle(given.now)]
    assert given.advance() == [EndServing()]


def withdrawing() -> Given:
    """The same, of an owner that gives read leases."""
    given = accepted(gives_reads=True)
    given.gives_round(b"all")
    assert given.gives_round() == [Settle(Instant(given.now + SETTLE_NS)), Withdraw()]
    return given


def test_serving_goes_on_until_no_cache_can_hit_however_long_that_takes() -> None:
    """V12: the deadline is for what has begun, not for read leases."""
    given = withdrawing()
    assert given.on(Settled()) == []
    assert given.wake_at == FAR_FUTURE
    assert given.advance(by=2 * SETTLE_NS) == []
    assert given.on(Withdrawn()) == [Export()]
    assert given.gives_round() == [EndServing()]


def test_no_cache_can_hit_and_what_has_begun_is_still_waited_for() -> None:
    given = withdrawing()
    assert given.on(Withdrawn()) == []
    assert given.on(Settled()) == [EndServing()]
    given = withdrawing()
    given.advance(by=SETTLE_NS)
    assert given.on(Settled()) == [], "its deadline has passed; what is withdrawn is waited for"
    assert given.on(Withdrawn()) == [Export()]


def test_settling_ends_with_the_order_and_with_the_channel() -> None:
    for event in (GivingStopped(), PeerLost("closed")):
        given = settling()
        assert HangUp() in given.on(event)
        assert given.wake_at == FAR_FUTURE
        assert given.on(Settled()) == []


def test_an_application_that_does_not_give_its_last_difference_is_not_waited_for_without_end() -> (
    None
):
    """Nobody serves the range meanwhile."""
    for events in ((), (ExportBegun(),), (ExportBegun(), ChunkMade(b"some"))):
        given = copied()
        given.on(ServingEnded(), *events)
        if ChunkMade(b"some") in events:
            given.hears(Taken())
        assert given.wake_at == given.now + CALL_NS
        [failed, _] = given.advance(by=CALL_NS)
        assert isinstance(failed, FailGiving)
        assert "has not given its last difference for 10 s" in failed.why


# --- what is known of writes ----------------------------------------------------------------------


def test_what_is_known_of_writes_goes_before_the_last_difference() -> None:
    """V15: under the same bound of chunks, to a taker that wants it."""
    given = accepted(wants_writes=True)
    given.gives_round(b"all")
    given.gives_round()
    assert given.on(Settled()) == [EndServing()]
    writes = tuple(b"writes %d" % i for i in range(CHUNKS_UNDER_WAY + 1))
    assert given.on(ServingEnded(writes)) == [Export()]
    given.on(ExportBegun())
    told = [Say(Chunk(data=each, is_urgent=True, tells_writes=True)) for each in writes]
    assert given.on(ChunkMade(b"last")) == [*told[:-1], MakeChunk(True)]
    assert given.on(ChunkMade(None)) == []
    assert given.hears(Taken()) == [told[-1], Listen()]
    assert given.hears(Taken()) == [
        Say(Chunk(data=b"last", is_urgent=True)),
        Say(Last()),
        Listen(),
    ]


def test_a_taker_that_does_not_want_it_is_told_nothing_of_writes() -> None:
    given = copied()
    given.on(ServingEnded((b"writes",)), ExportBegun())
    assert given.on(ChunkMade(None)) == [Say(Last())]


# --- limits ---------------------------------------------------------------------------------------


def test_only_so_much_is_in_hand_and_under_way() -> None:
    given = accepted()
    given.on(ExportBegun())
    sent = 0
    while MakeChunk(False) in given.did:
        sent += 1
        given.on(ChunkMade(b"%d" % sent))
    assert sent == CHUNKS_UNDER_WAY + CHUNKS_IN_HAND
    following = Say(Chunk(data=b"%d" % (CHUNKS_UNDER_WAY + 1), is_urgent=False))
    assert given.hears(Taken()) == [following, MakeChunk(False), Listen()]


def test_a_round_ends_only_when_all_of_it_is_taken() -> None:
    given = accepted()
    given.on(ExportBegun(), ChunkMade(b"1"), ChunkMade(b"2"))
    assert given.on(ChunkMade(None)) == []
    assert given.hears(Taken()) == [Listen()]
    assert given.hears(Taken()) == [Export(), Listen()]


@pytest.mark.parametrize("phase", ["reaching", "offered", "copying", "all sent"])
def test_a_taker_that_says_nothing_for_so_long_is_given_up(phase: str) -> None:
    given = Given() if phase in ("reaching", "offered") else accepted()
    if phase == "offered":
        given.on(PeerReached())
    elif phase == "copying":
        given.on(ExportBegun(), ChunkMade(b"1"))
    elif phase == "all sent":
        given = all_sent()
        given.hears(Taken())
    assert given.wake_at == given.now + PROGRESS_NS
    assert given.advance(PROGRESS_NS - 1) == []
    assert given.advance(1) == [FailGiving("nothing was heard of it for 5 s"), HangUp()]
    assert given.hears(Whole()) == []


def test_each_chunk_that_is_taken_gives_it_as_long_again() -> None:
    given = accepted()
    given.on(ExportBegun(), ChunkMade(b"1"), ChunkMade(b"2"))
    assert given.advance(PROGRESS_NS - 1) == []
    given.hears(Taken())
    assert given.wake_at == given.now + PROGRESS_NS


def test_an_application_may_take_long_while_the_taker_waits() -> None:
    given = accepted()
    assert given.wake_at == FAR_FUTURE
    given.on(ExportBegun())
    assert given.wake_at == FAR_FUTURE
    assert given.advance(100 * PROGRESS_NS) == []


def test_what_is_due_comes_before_what_is_heard() -> None:
    given = all_sent()
    given.hears(Taken())
    given.now = Instant(given.now + PROGRESS_NS)
    assert given.hears(Whole()) == [FailGiving("nothing was heard of it for 5 s"), HangUp()]


@pytest.mark.parametrize("said", [Accepted(), Taken(), Whole()])
@pytest.mark.parametrize("phase", ["offered", "copying", "copied", "all sent", "all taken"])
def test_a_message_of_another_phase_ends_it(phase: str, said: ToSource) -> None:
    given = {"copied": copied, "all sent": all_sent, "all taken": all_sent}.get(phase, accepted)()
    if phase == "offered":
        given = Given()
        given.on(PeerReached())
    elif phase == "all taken":
        given.hears(Taken())
    fits = {"offered": Accepted(), "all sent": Taken(), "all taken": Whole()}
    if fits.get(phase) == said:
        assert not any(isinstance(each, FailGiving) for each in given.hears(said))
        return
    why = f"it said {type(said).__name__}, which answers nothing"
    assert given.hears(said) == [FailGiving(why), HangUp()]


def test_whole_does_not_count_before_every_chunk_is_taken() -> None:
    given = all_sent()
    assert isinstance(given.hears(Whole())[0], FailGiving)


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (PeerSaid(NotTaken(why="no")), "it refused: no"),
        (PeerErred("nonsense"), "nonsense"),
        (PeerLost("gone"), "gone"),
        (CallFailed("ZeroDivisionError"), "ZeroDivisionError"),
    ],
)
def test_whatever_goes_wrong_ends_it_once(event: GivingEvent, why: str) -> None:
    given = accepted()
    assert given.on(event) == [FailGiving(why), HangUp()]
    assert given.wake_at == FAR_FUTURE
    late: tuple[GivingEvent, ...] = (
        event,
        ExportBegun(),
        ChunkMade(b"late"),
        ServingEnded(),
        GivingStopped(),
    )
    for each in late:
        assert given.on(each) == []


def test_what_the_owner_machine_wants_no_more_is_not_a_failure() -> None:
    given = copied()
    assert given.on(GivingStopped()) == [HangUp()]
    assert given.on(PeerLost("closed")) == []
