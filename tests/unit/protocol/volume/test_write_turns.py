"""Writes, each in its turn: which write begins when, whom it waits for, and what is left of it."""

import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.machine import Output
from tenure.base.ranges import KeyRange
from tenure.protocol.volume.messages import Elsewhere, WriteDone
from tenure.protocol.volume.server.events import (
    DrainAsked,
    Drained,
    RunBody,
    ServerAction,
    WriteAsked,
    WriteGivenUp,
)
from tenure.protocol.volume.server.terms import Terms
from tests.unit.protocol.volume.stage import OWNED, K, L, Stage, held, opened

LEFT = KeyRange(b"", L)


def tickets(stage: Stage) -> list[int]:
    """The tickets of the writes whose bodies run."""
    return [each.ticket for each in stage.bodies]


# --- whose turn it is ---


def test_a_write_needs_keys() -> None:
    """A write of nothing would wait for nothing and never be anybody's turn."""
    with pytest.raises(ValueError, match="no keys"):
        opened().tell_server(WriteAsked(1, ()))


def test_a_key_that_is_named_twice_is_written_once() -> None:
    stage = held("a")
    stage.write(K, K)
    stage.settle()
    assert stage.server.view().writes == 0
    assert stage.store[K] == b"new"


def test_a_write_of_several_keys_begins_when_it_is_the_first_for_each() -> None:
    """Two bodies of one key would run at the same time (V5)."""
    stage = opened()
    stage.write(K, ticket=1)
    stage.write(L, ticket=2)
    stage.write(K, L, ticket=3)
    assert tickets(stage) == [1, 2]
    stage.end_body()
    assert tickets(stage) == [2], "the other key is still written"
    stage.end_body()
    assert tickets(stage) == [3]


def test_a_write_that_gives_up_its_place_begins_no_other_again() -> None:
    """The body that runs is at the head of the queue, and runs once (V5)."""
    stage = opened()
    stage.write(ticket=1)
    stage.write(ticket=2)
    stage.tell_server(WriteGivenUp(2))
    assert tickets(stage) == [1]
    assert stage.server.view().writes == 1


def test_giving_up_what_is_over_changes_nothing() -> None:
    """The application hears of the end later than it gives up."""
    stage = opened()
    stage.write(ticket=1)
    stage.tell_server(WriteGivenUp(1))
    assert tickets(stage) == [1], "its body runs, and may have written"
    stage.end_body()
    stage.tell_server(WriteGivenUp(1))
    assert stage.server.view().writes == 0


def test_a_write_that_is_given_up_in_the_quiet_is_over_at_once() -> None:
    """Nobody was told of it, so there is nobody to wait for."""
    stage = Stage()
    stage.write(ticket=1)
    assert not stage.bodies
    stage.tell_server(WriteGivenUp(1))
    assert stage.server.view().writes == 0


def test_a_writer_is_given_no_lease_on_what_is_written_next() -> None:
    """The next write of the key has its turn by then, and would have to take it back (V5, V9)."""
    stage = held("a")
    stage.write_at("a")
    stage.carry("Write")
    stage.write()
    stage.end_body()
    done = stage.carry("WriteDone")
    assert isinstance(done, WriteDone)
    assert (done.ok, done.lease_ns) == (True, 0)
    assert stage.hit("a") is None


# --- whom it waits for ---


def test_a_write_waits_for_the_holder_that_may_hit_longest() -> None:
    """Also if that holder was told first (V5)."""
    stage = held("a", "b")
    stage.pass_(2)
    stage.use("a", K)
    stage.settle()
    stage.write()
    assert [each.to for each in stage.letters("Invalidate")] == ["a", "b"]
    stage.pass_(1.5)
    stage.wake()
    assert stage.hit("a") == b"old"
    assert not stage.bodies
    stage.pass_(2)
    stage.wake()
    assert stage.bodies


def test_a_write_does_not_wait_for_those_who_held_another_range() -> None:
    """A range that goes concerns its own keys only (V12)."""
    stage = Stage(config=OWNED)
    stage.grant()
    assert stage.read("a", K) == b"old"
    stage.tell_server(DrainAsked(LEFT, served=True))
    stage.write(L, ticket=1)
    assert tickets(stage) == [1]
    stage.write(K, ticket=2)
    assert tickets(stage) == [1]


def test_a_write_whose_holders_have_acknowledged_wakes_when_its_quiet_is_over() -> None:
    """The deadline of a holder that is no longer waited for says nothing (C3)."""
    stage = Stage(config=OWNED)
    stage.grant(quiet_s=1)
    assert stage.read("a") == b"old"
    stage.write()
    stage.settle()
    assert not stage.bodies
    output = stage.server.advance(stage.now("s"))
    assert output.wake_at == stage.now("s") + seconds(1)


def test_who_does_not_acknowledge_a_write_that_is_given_up_has_missed_it_too() -> None:
    """The next write waited for it all the same (V20)."""
    stage = held("a")
    stage.write(ticket=1)
    stage.take("Invalidate")
    stage.tell_server(WriteGivenUp(1))
    stage.pass_(3.26)
    stage.wake()
    assert [each.missed for each in stage.server.context.readers] == [1]


def test_a_writer_holds_no_lease_while_its_body_runs() -> None:
    """Its entry is dead, and whoever else writes need not wait for it (V9)."""
    stage = held("a")
    stage.write_at("a")
    stage.carry("Write")
    assert stage.bodies
    assert stage.server.view().leases == 0


def test_writes_go_on_before_the_range_that_they_are_in() -> None:
    """The same acknowledgement lets both go on: the body begins before the range is said to be
    drained, and so is one of those that the owner lets finish (V12).
    """
    stage = Stage(config=OWNED)
    stage.grant()
    assert stage.read("a") == b"old"
    stage.write()
    invalidate = stage.take("Invalidate")
    stage.tell_server(DrainAsked(LEFT, served=True))
    order: list[type] = []
    do_server = stage.do_server

    def watched(output: Output[ServerAction]) -> None:
        order.extend(type(each) for each in output.actions)
        do_server(output)

    stage.do_server = watched  # type: ignore[method-assign]
    stage.deliver(invalidate)
    stage.carry("Acknowledge")
    assert [each for each in order if each in (RunBody, Drained)] == [RunBody, Drained]


# --- what a client's write is told ---


def test_a_clients_write_that_waits_while_its_range_goes_is_told() -> None:
    """Its body will not run here; the client asks where the range is (V12)."""
    stage = Stage(config=OWNED)
    stage.grant()
    stage.read("b")
    stage.read("a", L)
    stage.write_at("a")
    stage.carry("Write")
    assert not stage.bodies
    stage.tell_server(DrainAsked(LEFT, served=False))
    told = stage.take("Elsewhere", to="a").message
    assert isinstance(told, Elsewhere)
    stage.settle()
    assert stage.store[K] == b"old"


def test_a_writer_that_has_reconnected_meanwhile_is_not_answered() -> None:
    """Its write ended as unknown, and the number that asked is nobody's any more (V2)."""
    stage = held("a")
    stage.write_at("a")
    stage.carry("Write")
    stage.reconnect("a")
    stage.settle_to("Reconnected")
    stage.carry("Reconnected")
    stage.sent.clear()
    stage.end_body()
    assert not stage.letters("WriteDone")
    assert stage.store[K] == b"own"


def test_a_writer_whose_body_raised_is_given_no_lease() -> None:
    """Nobody knows what is stored now (V5)."""
    stage = held("a")
    stage.write_at("a")
    stage.carry("Write")
    stage.end_body(ok=False)
    done = stage.take("WriteDone").message
    assert isinstance(done, WriteDone)
    assert (done.ok, done.lease_ns) == (False, 0)
    assert stage.server.view().leases == 0


def test_a_slow_body_does_not_make_its_writers_leases_longer() -> None:
    """They count from when the write came (V3), so the next write waits no longer for it (C3)."""
    stage = opened(Terms(lease_ns=seconds(600)), patient=True)
    stage.read("a", L)
    stage.write_at("a")
    stage.carry("Write")
    received = stage.now("s")
    stage.pass_(2)
    stage.end_body()
    stage.sent.clear()  # the answer is lost
    (reader,) = stage.server.context.readers
    assert reader.volume_until == Instant(received + seconds(3.25))
    assert reader.leases[K].until == Instant(received + seconds(650))
