"""Schedules of how a server without owners begins, and how it ends."""

import msgspec
import pytest

from tenure.base.instants import seconds
from tenure.protocol.volume.server.events import (
    FailWrite,
    MemoryPersisted,
    PersistMemory,
    ServerConfig,
    StopAsked,
    VolumeClosed,
    VolumeMemory,
)
from tenure.protocol.volume.server.terms import Terms
from tests.unit.protocol.volume.stage import ALONE, K, held, opened

LATEST_END = ServerConfig(remembers="latest end", boot_id="boot")


# --- 7: starting at once ---


def test_starting_at_once() -> None:
    """The readers of the one before may still hit: nothing is written until they cannot (V16)."""
    stage = held()
    stage.pass_(0.1)
    stage.restart()
    stage.write()
    assert not stage.bodies
    assert stage.hit("a") == b"old"
    stage.pass_(3.2)
    stage.wake()
    assert stage.hit("a") is None
    assert not stage.bodies, "its clock may be faster than the readers'"
    stage.pass_(0.06)
    stage.wake()
    assert stage.bodies


def test_a_server_that_was_drained_leaves_nothing_to_wait_for() -> None:
    """All leases were taken back before it closed (V16)."""
    stage = held()
    stage.tell_server(StopAsked())
    assert VolumeClosed() not in stage.told
    stage.settle()
    assert VolumeClosed() in stage.told
    assert stage.hit("a") is None
    stage.restart()
    stage.write()
    assert stage.bodies


@pytest.mark.parametrize("config", [ALONE, LATEST_END])
def test_closed_during_its_quiet(config: ServerConfig) -> None:
    """It has taken back its own leases; those of the server before it still run (V16)."""
    stage = held(config=config)
    stage.restart(config)
    stage.pass_(1)
    stage.tell_server(StopAsked())
    stage.settle()
    assert VolumeClosed() in stage.told
    stage.restart(config, seed=3)
    stage.write()
    assert not stage.bodies
    assert stage.hit("a") == b"old"


def test_the_longest_that_was_ever_given_is_waited_for() -> None:
    """Also by a server whose own term is shorter (V16)."""
    stage = held(terms=Terms(term_ns=seconds(60)))
    stage.terms = Terms()
    stage.restart()
    stage.pass_(60)
    stage.write()
    stage.wake()
    assert not stage.bodies
    stage.pass_(5.1)
    stage.wake()
    assert stage.bodies


def test_the_latest_end_is_waited_for_and_no_lease_goes_beyond_it() -> None:
    """The other way of section 3.1.2: a server that was away for longer need not wait at all."""
    stage = held(config=LATEST_END)
    assert stage.memory is not None
    until = stage.memory.until
    for _ in range(20):
        stage.pass_(1)
        stage.use("a")
        stage.settle()
        reader = stage.server.context.readers.get(stage.reader("a"))
        assert reader is not None
        assert stage.memory.until >= reader.volume_until
    assert stage.memory.until > until
    stage.pass_(60)
    stage.restart(LATEST_END)
    stage.write()
    assert stage.bodies


def test_the_latest_end_of_another_start_of_the_host_says_nothing() -> None:
    """Its clock began again: the longest is waited for (3.1.2)."""
    stage = held(config=LATEST_END)
    stage.restart(msgspec.structs.replace(LATEST_END, boot_id="another"))
    stage.write()
    assert not stage.bodies


def test_a_memory_put_back() -> None:
    """The store has seen a higher number, so what the copy says is not believed (V16)."""
    stage = held()
    copy = VolumeMemory(number=0, longest_ns=1, drained=True)
    stage.start(ServerConfig(memory=copy, longest_ns=seconds(3)), seed=3)
    stage.write()
    assert not stage.bodies
    assert stage.memory is not None
    assert stage.memory.number == 2
    stage.pass_(3.3)
    stage.wake()
    assert [each.fence for each in stage.bodies] == [2]


def test_entries_of_an_earlier_life_are_not_current() -> None:
    """Even where the count of writes has grown past theirs (V15, V16)."""
    stage = held()
    stage.restart()
    stage.pass_(4)
    stage.wake()
    stage.write(K)
    stage.end_body()
    stage.use("a")
    stage.carry("Renew")
    stage.carry("UnknownReader")
    stage.settle()
    assert stage.hit("a") is None
    assert stage.read("a") == b"new"


def test_a_server_that_nobody_reads_from_closes_once_its_memory_is_kept() -> None:
    """Otherwise the next one might not learn that everything was drained (V16)."""
    stage = opened()
    asked = stage.server.handle(stage.now("s"), StopAsked()).actions
    (kept,) = (each.memory for each in asked if isinstance(each, PersistMemory))
    assert kept.drained
    assert VolumeClosed() not in asked
    stage.tell_server(MemoryPersisted(kept))
    assert VolumeClosed() in stage.told


# --- 11: the write on the wire ---


def test_the_write_on_the_wire() -> None:
    """Before its first load a server makes the store refuse what its predecessor writes (V14)."""
    stage = opened()
    stage.write()
    (body,) = stage.bodies
    stage.restart()
    assert stage.fence > body.fence
    assert stage.server.view().is_open


def test_nothing_is_served_before_the_store_is_fenced() -> None:
    """Neither read nor written (V14)."""
    stage = opened()
    stage.fences = False
    stage.restart()
    stage.want("a")
    stage.carry("Reconnect")
    assert stage.letters("RequestRefused")
    stage.write(ticket=4)
    assert FailWrite(4, "closed") in stage.told
