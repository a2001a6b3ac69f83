"""When a server wants to be woken, and which results of its opening it takes."""

from collections.abc import Callable
from random import Random

import msgspec
import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.machine import Output
from tenure.base.ranges import WHOLE
from tenure.protocol.volume.server.events import (
    DrainAsked,
    FenceRaised,
    MemoryPersisted,
    PersistMemory,
    RaiseFence,
    ServerAction,
    ServerConfig,
    TermMoved,
    VolumeMemory,
    WriteAsked,
)
from tenure.protocol.volume.server.machine import VolumeServer
from tests.unit.protocol.volume.stage import ALONE, OWNED, TERMS, K, Stage, held

NOW = Instant(seconds(1000))
LATEST_END = ServerConfig(remembers="latest end", boot_id="boot")


def wakes_at(stage: Stage, since: Instant) -> float:
    """When the server wants to be woken, in seconds since then."""
    output = stage.server.advance(stage.now("s"))
    assert not output.actions
    return (output.wake_at - since) / seconds(1)


def of_nobody() -> float:
    """It knows a reader that is silent."""
    stage = held()
    return wakes_at(stage, stage.now("s"))


def of_a_write() -> float:
    """A write waits for a holder."""
    stage = held()
    stage.tell_server(WriteAsked(1, (K,)))
    return wakes_at(stage, stage.now("s"))


def of_a_quiet() -> float:
    """A write waits for the readers of an earlier server."""
    stage = Stage()
    stage.tell_server(WriteAsked(1, (K,)))
    return wakes_at(stage, stage.now("s"))


def of_a_drain() -> float:
    """A range goes, and a holder is waited for."""
    stage = Stage(config=OWNED)
    stage.grant(term_s=600)
    stage.read("a", K)
    stage.tell_server(DrainAsked(WHOLE, served=True))
    return wakes_at(stage, stage.now("s"))


def of_a_term() -> float:
    """The owner's term ends before anything else."""
    stage = Stage(config=OWNED)
    stage.grant(term_s=12)
    return wakes_at(stage, stage.now("s"))


@pytest.mark.parametrize(
    ("story", "after_s"),
    [
        (of_nobody, TERMS.known_ns / seconds(1)),
        (of_a_write, 3.25),
        (of_a_quiet, 3.25),
        (of_a_drain, 3.25),
        (of_a_term, 12),
    ],
)
def test_it_wakes_when_its_next_wait_ends(story: Callable[[], float], after_s: float) -> None:
    """No message need come for a write to run, for a range to go, and for a reader to be forgotten
    (C3, C6, V11, V12).
    """
    assert story() == pytest.approx(after_s)


# --- a term that has ended when it is told ---


def test_a_term_that_is_over_when_it_is_told_ends_at_once() -> None:
    """The owner may have been stopped between the two (V11)."""
    stage = Stage(config=OWNED)
    stage.grant()
    assert stage.server.context.epoch
    stage.tell_server(TermMoved(stage.now("s")))
    assert not stage.server.context.epoch


# --- opening ---


def begun(config: ServerConfig = ALONE) -> tuple[VolumeServer, VolumeMemory]:
    """A server that has asked for its memory to be written, and the memory."""
    server = VolumeServer(config, Random(1))
    return server, persisted_by(server.advance(NOW))


def persisted_by(output: Output[ServerAction]) -> VolumeMemory:
    """The memory that it wants written."""
    (found,) = [each.memory for each in output.actions if isinstance(each, PersistMemory)]
    return found


def fences(output: Output[ServerAction]) -> list[int]:
    """The numbers below which it wants writes refused."""
    return [each.number for each in output.actions if isinstance(each, RaiseFence)]


def test_a_memory_of_another_life_opens_nothing() -> None:
    """Only what this life has asked for lets it go on (V16)."""
    server, memory = begun()
    other = msgspec.structs.replace(memory, number=memory.number + 1)
    assert not fences(server.handle(NOW, MemoryPersisted(other)))
    assert fences(server.handle(NOW, MemoryPersisted(memory))) == [memory.number]


def test_a_memory_that_is_written_twice_raises_one_fence() -> None:
    """The second time it says nothing new."""
    server, memory = begun()
    assert fences(server.handle(NOW, MemoryPersisted(memory)))
    assert not fences(server.handle(NOW, MemoryPersisted(memory)))


def test_a_fence_that_nobody_waits_for_opens_nothing() -> None:
    """A server whose memory is not written yet answers nobody (V16)."""
    server, memory = begun()
    server.handle(NOW, FenceRaised(memory.number))
    assert not server.view().is_open
    server.handle(NOW, MemoryPersisted(memory))
    server.handle(NOW, FenceRaised(memory.number + 1))
    assert not server.view().is_open, "that fence is of another life"


def opened_at_latest_end() -> tuple[VolumeServer, VolumeMemory]:
    """An open server that writes down the latest end of its leases."""
    server, memory = begun(LATEST_END)
    server.handle(NOW, MemoryPersisted(memory))
    server.handle(NOW, FenceRaised(memory.number))
    assert server.view().is_open
    return server, memory


def test_a_later_end_is_written_once_until_it_is_durable() -> None:
    """A slow disk is asked once for each later end, and then for the next (3.1.2)."""
    server, memory = opened_at_latest_end()
    later = Instant((NOW + memory.until) // 2 + seconds(1))
    moved = persisted_by(server.advance(later))
    assert moved.until > memory.until
    assert not server.advance(Instant(later + seconds(1))).actions, "it is being written"
    server.handle(Instant(later + seconds(1)), MemoryPersisted(moved))
    again = Instant((later + moved.until) // 2 + seconds(1))
    assert persisted_by(server.advance(again)).until > moved.until


def test_a_server_that_is_not_open_writes_no_later_end() -> None:
    """Its first memory is being written; a second would be answered before the fence is raised."""
    server, memory = begun(LATEST_END)
    server.handle(NOW, MemoryPersisted(memory))
    late = Instant(memory.until)
    assert not server.advance(late).actions
