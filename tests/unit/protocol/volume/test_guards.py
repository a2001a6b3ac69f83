"""Guards that few orders of events need: each of these tests fails if one is left out."""

from random import Random

import msgspec

from tenure.base.instants import Instant, seconds
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.volume.messages import AsOf, Fetch, WriteDone
from tenure.protocol.volume.server.epochs import Opening
from tenure.protocol.volume.server.events import (
    ClientAsked,
    DrainAsked,
    Drained,
    RangeGranted,
    ServerConfig,
    TermMoved,
    VolumeMemory,
)
from tenure.protocol.volume.server.terms import Terms
from tenure.protocol.volume.server.versions import KnownWrites, Versions
from tests.unit.protocol.volume.stage import ALONE, OWNED, TERMS, K, L, Stage, held, opened
from tests.unit.protocol.volume.test_limits import miss_a_deadline

NOW = Instant(seconds(1000))
LEFT, RIGHT = KeyRange(b"", L), KeyRange(L, None)


def owned(terms: Terms = TERMS) -> Stage:
    stage = Stage(terms, config=OWNED)
    stage.grant()
    return stage


def drained(stage: Stage) -> list[KeyRange]:
    return [each.range for each in stage.told if isinstance(each, Drained)]


# --- what is waited for ---


def test_a_drain_waits_for_the_object_lease_that_ends_last() -> None:
    """One item is for all keys of the range, so its deadline is that of the last (V12)."""
    stage = owned(Terms(term_ns=seconds(10), lease_ns=seconds(2)))
    assert stage.read("a", K) == b"old"
    stage.pass_(1.5)
    assert stage.read("a", L) == b"old"
    stage.tell_server(DrainAsked(WHOLE, served=True))
    stage.take("Invalidate")
    stage.pass_(1)
    stage.wake()
    assert stage.hit("a", L) == b"old"
    assert not drained(stage)
    stage.pass_(1.2)
    stage.wake()
    assert stage.hit("a", L) is None
    assert drained(stage)


def test_a_shorter_volume_lease_ends_no_earlier_than_the_one_before() -> None:
    """The client goes on believing the longer one (V5, V11)."""
    stage = owned()
    assert stage.read("a") == b"old"
    stage.pass_(0.5)
    term = TermMoved(Instant(stage.now("s") + seconds(12)), longest_ns=seconds(0.5))
    stage.tell_server(term)
    stage.read("a", L)
    stage.write()
    stage.take("Invalidate")
    stage.pass_(1.5)
    stage.wake()
    assert stage.hit("a") == b"old"
    assert not stage.bodies


def test_an_object_lease_is_counted_from_when_it_was_asked_for() -> None:
    """A volume lease is counted in the same way (V3): the server counts from when the question
    came.
    """
    stage = opened(Terms(term_ns=seconds(10), lease_ns=seconds(2)), patient=True)
    stage.want("a")
    stage.settle_to("Fetched")
    stage.pass_(1)
    stage.carry("Fetched")
    stage.pass_(0.9)
    assert stage.hit("a") == b"old"
    stage.pass_(0.2)
    assert stage.hit("a") is None


def test_a_deadline_for_which_two_wait_is_missed_once() -> None:
    """Otherwise its reader would be mute sooner (V20)."""
    stage = owned()
    assert stage.read("a") == b"old"
    stage.write()
    stage.take("Invalidate")
    stage.tell_server(DrainAsked(WHOLE, served=True))
    stage.pass_(3.26)
    stage.wake()
    assert stage.bodies
    assert drained(stage)
    assert [each.missed for each in stage.server.context.readers] == [1]


def test_whoever_reconnects_keeps_the_deadlines_that_it_has_missed() -> None:
    """Otherwise another number would be a way round them (V20)."""
    stage = held("a")
    for _ in range(2):
        miss_a_deadline(stage)
    stage.reconnect("a")
    stage.settle()
    miss_a_deadline(stage)
    stage.read("a")
    assert stage.hit("a") is None


def test_a_mute_reader_is_not_displaced_by_its_own_read() -> None:
    """No reader makes room for itself: its record is the reason for the answer (V17)."""
    stage = held("a", config=msgspec.structs.replace(ALONE, most_leases=1))
    for _ in range(3):
        miss_a_deadline(stage)
    assert stage.read("a") == b"new"
    assert stage.read("a", L) == b"old"
    assert len(stage.server.context.readers) == 1


# --- ranges that go, and come back ---


def test_a_write_of_a_client_whose_range_goes_meanwhile_gives_no_lease() -> None:
    """No server here could tell it of the next owner's writes (V12)."""
    stage = owned()
    stage.read("a", L)
    stage.write_at("a")
    stage.carry("Write")
    stage.tell_server(DrainAsked(LEFT, served=False))
    stage.end_body()
    done = stage.carry("WriteDone")
    assert isinstance(done, WriteDone)
    assert done.lease_ns == 0
    assert done.version == (0, 0), "it is as of nothing that is served here"
    assert stage.hit("a") is None
    assert drained(stage) == [LEFT]


def test_a_range_that_was_handed_over_and_comes_back_is_leased_again() -> None:
    """Nothing of its drain is left (V12)."""
    stage = owned()
    assert stage.read("a") == b"old"
    stage.tell_server(DrainAsked(WHOLE, served=True))
    stage.settle()
    stage.tell_server(DrainAsked(WHOLE, served=False))
    stage.settle()
    stage.grant(9)
    assert stage.read("a") == b"old"
    assert stage.hit("a") == b"old"
    assert stage.server.view().drains == 0


def test_a_range_that_stays_takes_back_its_own_drain_only() -> None:
    stage = owned()
    assert [stage.read("a", key) for key in (K, L)] == [b"old", b"old"]
    for each in (LEFT, RIGHT):
        stage.tell_server(DrainAsked(each, served=True))
    stage.tell_server(RangeGranted(range=LEFT, number=7, history=99))
    stage.settle()
    assert drained(stage) == [RIGHT]
    assert stage.read("a", L) == b"old"
    assert stage.hit("a", L) is None


# --- what is known of the past ---


def test_what_is_asked_about_in_another_history_is_read() -> None:
    """Its numbers say nothing here, however high (V15)."""
    stage = held("a")
    contact = stage.caches["a"].contacts["s"]
    history = stage.server.context.history
    for of, loads in ((history, 0), (history + 1, 1)):
        fetch = Fetch(
            client=contact.nonce,
            epoch=contact.epoch,
            reader=contact.reader,
            sequence=100 + loads,
            key=K,
            as_of=AsOf(history=of, number=99, count=99),
        )
        stage.tell_server(ClientAsked(fetch))
        assert len(stage.loads) == loads


def test_a_floor_is_never_lowered_by_what_is_forgotten() -> None:
    """Knowledge that came along may be older than the floor that came with it (V15)."""
    versions = Versions(most=1)
    known = KnownWrites(((LEFT, (7, 5)),), ((b"a", (7, 3)), (b"b", (7, 4)), (L, (7, 9))))
    versions.begin(LEFT, 8, known)
    assert len(versions) == 1
    assert not versions.is_current(b"c", (7, 4))
    assert versions.is_current(b"c", (7, 5))
    assert versions.is_current(L, (7, 8)), "a write of another range says nothing"


def test_an_end_that_is_written_ahead_is_never_before_the_quiet_is_over() -> None:
    """A server that is killed in its quiet leaves the rest of it to the next (V16)."""
    earlier = VolumeMemory(number=1, longest_ns=seconds(60))
    config = ServerConfig(remembers="latest end", memory=earlier, boot_id="this")
    memory = Opening(config, Random(1)).begin(NOW)
    later = Instant(NOW + seconds(1))
    following = msgspec.structs.replace(config, memory=memory)
    assert Opening(following, Random(2)).quiet_ns(later) == seconds(64)
