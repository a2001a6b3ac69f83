"""What a server keeps of terms, readers, and writes that are over, and what not."""

from random import Random

from tenure.base.instants import Instant, seconds
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.volume.messages import AsOf, Bye, Fetch
from tenure.protocol.volume.server.events import (
    BodyEnded,
    ClientAsked,
    DrainAsked,
    Drained,
    FailWrite,
    MemoryPersisted,
    PersistMemory,
    RangeGranted,
    ServerAction,
    ServerConfig,
    StopAsked,
    TermEnded,
    TermMoved,
    VolumeClosed,
    VolumeMemory,
    WriteAsked,
)
from tenure.protocol.volume.server.machine import VolumeServer
from tenure.protocol.volume.server.readers import Readers
from tests.unit.protocol.volume.stage import OWNED, TERMS, K, L, Stage, held
from tests.unit.protocol.volume.test_limits import miss_a_deadline

NOW = Instant(seconds(1000))
LEFT = KeyRange(b"", L)


def fetch(stage: Stage, name: str, as_of: AsOf | None = None, sequence: int = 900) -> Fetch:
    """A question of a client, made by hand."""
    contact = stage.caches[name].contacts["s"]
    return Fetch(
        client=contact.nonce,
        epoch=contact.epoch,
        reader=contact.reader,
        sequence=sequence,
        key=K,
        as_of=as_of,
    )


# --- a term that is over ---


def test_what_an_ended_term_served_is_not_served_under_the_next() -> None:
    """Another owner may have the rest by now (V11)."""
    stage = Stage(config=OWNED)
    stage.grant()
    assert stage.read("a", L) == b"old"
    stage.pass_(12)
    stage.tell_server(TermMoved(Instant(stage.now("s") + seconds(12))))
    stage.tell_server(RangeGranted(range=LEFT, number=8, history=99))
    stage.want("b", L)
    stage.settle_to("Elsewhere")
    assert not stage.loads


def test_a_write_in_the_queue_fails_when_the_term_ends() -> None:
    """It waits for a body that runs, and its own would run under no lease (V11)."""
    stage = Stage(config=OWNED)
    stage.grant()
    stage.write(ticket=1)
    stage.write(ticket=2)
    assert [each.ticket for each in stage.bodies] == [1]
    stage.pass_(12)
    stage.wake()
    assert FailWrite(2, "moved") in stage.told
    stage.end_body()
    assert not stage.bodies


def told_of(stage: Stage, kind: type) -> list[ServerAction]:
    """What the server's application was told of that kind."""
    return [each for each in stage.told if isinstance(each, kind)]


def test_a_term_ends_once_and_leaves_nothing_behind() -> None:
    """Loads and known writes of it are of no use; its owner is told once (V11)."""
    stage = Stage(config=OWNED)
    stage.grant()
    stage.read("a", L)
    stage.write(L)
    stage.settle()
    stage.want("b")
    stage.settle_to("", loads=True)
    stage.pass_(12)
    stage.wake()
    view = stage.server.view()
    assert (view.epoch, len(view.readers), view.loads, view.known_writes) == (0, 0, 0, 0)
    stage.pass_(1)
    stage.wake()
    assert told_of(stage, TermEnded) == [TermEnded()]
    stage.load()
    assert not stage.letters("Fetched")


def test_a_range_that_was_drained_before_the_term_ended_is_not_drained_again() -> None:
    """It was withdrawn for its hand-over, which may have ended since (V12)."""
    stage = Stage(config=OWNED)
    stage.grant()
    stage.tell_server(DrainAsked(LEFT, served=True))
    assert len(told_of(stage, Drained)) == 1
    stage.tell_server(DrainAsked(KeyRange(L, None), served=True))
    stage.pass_(12)
    stage.wake()
    assert len(told_of(stage, Drained)) == 2


def test_a_range_that_stays_keeps_its_quiet() -> None:
    """Its hand-over has stopped; readers of the owner before may still hit (V12, V13)."""
    stage = Stage(config=OWNED)
    stage.grant(quiet_s=3)
    stage.tell_server(DrainAsked(WHOLE, served=True))
    stage.tell_server(RangeGranted(range=WHOLE, number=7, history=99))
    stage.write()
    assert not stage.bodies
    stage.pass_(3)
    stage.wake()
    assert stage.bodies


def test_a_server_that_stops_takes_no_grant() -> None:
    """Nobody would drain it (V12)."""
    stage = Stage(config=OWNED)
    stage.grant()
    stage.tell_server(StopAsked())
    stage.grant(9)
    assert stage.server.context.served[K] is None


# --- writes of others ---


def test_another_readers_older_lease_is_not_acknowledged_by_a_write() -> None:
    """Only the writer's own entry is dead by its writing (V9)."""
    stage = held("b")
    for _ in range(5):
        stage.read("a", L)
        stage.read("a")
        stage.pass_(4)
    stage.read("b")
    stage.write_at("a")
    stage.settle_to("Invalidate")
    assert [each.to for each in stage.letters("Invalidate")] == ["b"]
    assert stage.hit("b") == b"old"
    assert not stage.bodies


def test_the_end_of_a_body_that_does_not_run_ends_no_write() -> None:
    """A result that comes late, or of another write, says nothing (V5)."""
    stage = held("a")
    stage.write()
    (writing,) = stage.server.context.writes.waiting()
    stage.tell_server(BodyEnded(writing.number))
    assert stage.server.context.writes.waiting() == [writing]


# --- loads and a body that runs ---


def test_nothing_is_unchanged_while_a_body_runs() -> None:
    """Its value may be stored already, and another reader may have read it (C1)."""
    stage = held("a")
    before = stage.as_of("a")
    stage.write()
    stage.carry("Invalidate")
    stage.carry("Acknowledge")
    assert stage.bodies
    stage.tell_server(ClientAsked(fetch(stage, "a", before)))
    assert [each.key for each in stage.loads] == [K]


def test_what_was_read_while_a_body_ran_is_not_kept() -> None:
    """It may be the old value, and the body has ended since (V10)."""
    stage = held("a")
    stage.write()
    stage.carry("Invalidate")
    stage.carry("Acknowledge")
    stage.want("b")
    stage.settle_to("", loads=True)
    stage.end_body()
    stage.load(b"old")
    stage.settle()
    assert stage.hit("b") is None


def test_a_load_tells_the_number_below_which_its_store_refuses_writes() -> None:
    """A dead owner's last write may still be on its way (V14)."""
    stage = Stage(config=OWNED)
    stage.grant(7)
    stage.want("a")
    stage.settle_to("", loads=True)
    assert stage.loads[0].fence == 7


# --- leases and readers ---


def test_an_object_lease_ends_no_earlier_than_the_one_before() -> None:
    """A load that took long answers a request that is older than a renewal (V3)."""
    readers = Readers(TERMS, Random(1))
    reader = readers.add(NOW, client=4, sequence=1)
    readers.give_object(reader, K, Instant(NOW + seconds(2)), 3, (1, 1))
    until = reader.leases[K].until
    readers.give_object(reader, K, NOW, 2, (1, 1))
    assert reader.leases[K].until == until


def test_a_reader_that_is_heard_stays_on_record() -> None:
    """Its silence begins anew, whatever it says (C6)."""
    stage = held("a")
    stage.pass_(60)
    stage.tell_server(ClientAsked(fetch(stage, "a")))
    stage.pass_(60)
    stage.wake()
    assert stage.server.context.readers.of_client(stage.nonce("a")) is not None


def test_whoever_says_bye_is_forgotten() -> None:
    """Nobody waits for it any more (V8)."""
    stage = held("a")
    contact = stage.caches["a"].contacts["s"]
    bye = Bye(client=contact.nonce, epoch=contact.epoch, reader=contact.reader)
    stage.tell_server(ClientAsked(bye))
    assert not len(stage.server.context.readers)
    stage.write()
    assert stage.bodies


def test_whoever_is_no_longer_mute_may_miss_three_deadlines_again() -> None:
    """One more does not make it mute at once (V20)."""
    stage = held("a")
    for _ in range(3):
        miss_a_deadline(stage)
    reader = stage.server.context.readers.of_client(stage.nonce("a"))
    assert reader is not None
    assert reader.muted_until > stage.now("s")
    assert reader.missed == 0


# --- a server that stops before it has opened ---


def test_a_server_that_stops_before_its_fence_says_nothing_of_drained_readers() -> None:
    """Its memory may be an old copy, which the store was not asked about yet (V16)."""
    copy = VolumeMemory(number=1, longest_ns=seconds(3), drained=True)
    server = VolumeServer(ServerConfig(memory=copy), Random(1))
    (persist,) = server.advance(NOW).actions
    assert isinstance(persist, PersistMemory)
    server.handle(NOW, MemoryPersisted(persist.memory))
    output = server.handle(NOW, StopAsked())
    assert VolumeClosed() in output.actions
    assert not any(isinstance(each, PersistMemory) for each in output.actions)
    assert not persist.memory.drained


def test_a_server_that_is_stopped_twice_closes_once() -> None:
    """The second time says nothing new."""
    stage = held("a")
    stage.tell_server(StopAsked())
    stage.tell_server(StopAsked())
    stage.settle()
    stage.tell_server(StopAsked())
    assert stage.told.count(VolumeClosed()) == 1
    stage.tell_server(WriteAsked(1, (K,)))
    assert FailWrite(1, "closed") in stage.told
