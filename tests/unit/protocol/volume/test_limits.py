"""A server keeps only so much, gives some clients nothing for a while, and does not
wait for all.
"""

import msgspec
import pytest

from tenure.base.instants import seconds
from tenure.base.ranges import WHOLE
from tenure.protocol.volume.client.events import TellWriter
from tenure.protocol.volume.messages import RequestRefused
from tenure.protocol.volume.server import answers, machine, readers, write_turns
from tenure.protocol.volume.server.events import DrainAsked, Drained, FailWrite
from tenure.protocol.volume.server.terms import Terms
from tests.unit.protocol.volume.stage import ALONE, OWNED, K, L, Stage, held, opened

BEST_EFFORT = Terms(mode="best effort")


def read_mutely(stage: Stage) -> None:
    """A client reads, and what it acknowledges is lost."""
    stage.want("a")
    while stage.sent or stage.loads:
        if stage.loads:
            stage.load()
        letter = stage.sent.pop(0)
        if letter.name != "Acknowledge":
            stage.deliver(letter)


def miss_a_deadline(stage: Stage) -> None:
    """A write waits for its holder in vain."""
    read_mutely(stage)
    assert stage.hit("a") is not None
    stage.write()
    stage.take("Invalidate")
    stage.pass_(3.26)
    stage.wake()
    stage.end_body()
    stage.sent.clear()


def refused(stage: Stage) -> RequestRefused:
    message = stage.carry("RequestRefused")
    assert isinstance(message, RequestRefused)
    return message


# --- V20: mute readers ---


def test_a_reader_that_misses_three_deadlines_has_no_volume_lease_for_a_minute() -> None:
    """It reads through meanwhile, and nobody waits for it (V20)."""
    stage = held("a")
    for _ in range(3):
        miss_a_deadline(stage)
    for _ in range(2):
        assert stage.read("a") == b"new"
        assert stage.hit("a") is None
    stage.write()
    assert stage.bodies, "it can hit nothing, so nobody waits for it"
    stage.end_body()
    stage.sent.clear()
    stage.use("a")
    stage.carry("Renew")
    told = refused(stage)
    assert told.why == "mute"
    assert 0 < told.again_ns <= seconds(60)
    stage.write_at("a")
    stage.settle()
    assert stage.store[K] == b"own"
    stage.pass_(60)
    assert stage.read("a") == b"own"
    assert stage.hit("a") == b"own"


def test_a_mute_reader_does_not_ask_for_a_lease_before_each_read() -> None:
    """It was told until when it gets none; a fetch brings one as soon as it may (V20)."""
    stage = held("a")
    for _ in range(3):
        miss_a_deadline(stage)
    assert stage.read("a") == b"new"
    for _ in range(2):
        stage.want("a")
        assert [each.name for each in stage.sent] == ["Fetch"]
        stage.settle()
        assert stage.value("a") == b"new"
        stage.sent.clear()
        stage.pass_(29)
    stage.pass_(2)
    assert stage.read("a") == b"new"
    assert stage.hit("a") == b"new"
    stage.pass_(4)
    stage.want("a")
    assert [each.name for each in stage.sent] == ["Renew"], "one for all entries"


def test_whoever_acknowledges_in_between_is_not_mute() -> None:
    """Three deadlines, one after another (V20)."""
    stage = held("a")
    for _ in range(2):
        for _ in range(2):
            miss_a_deadline(stage)
        assert stage.read("a") == b"new"  # this is acknowledged
    assert stage.hit("a") == b"new"


def test_whoever_reconnects_stays_mute() -> None:
    """Otherwise another number would be a way round it (V20)."""
    stage = held("a")
    for _ in range(3):
        miss_a_deadline(stage)
    stage.reconnect("a")
    stage.settle()
    assert stage.read("a") == b"new"
    assert stage.hit("a") is None


# --- V17: what is kept for a reader that is not there ---


def with_items(*, is_away: bool) -> list[int]:
    """How many items a reader has after each of five writes of what it holds; -1: forgotten."""
    keys = [b"%d" % i for i in range(5)]
    stage = opened(Terms(keep_ns=seconds(3600)))
    for key in keys:
        stage.store[key] = b"old"
        stage.read("a", key)
    if is_away:
        stage.pass_(4)
    found = []
    for key in keys:
        stage.write(key)
        found.append(next((each.items for each in stage.server.view().readers), -1))
    return found


def test_a_reader_that_is_away_is_forgotten_with_too_many_items(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sending all items costs more than a reconnection; a client that may hit is not forgotten
    (V17).
    """
    monkeypatch.setattr(readers, "ITEMS_WHILE_INACTIVE", 3)
    assert with_items(is_away=True) == [1, 2, 3, -1, -1]
    assert with_items(is_away=False) == [1, 2, 3, 4, 5]


# --- limits ---


def test_a_server_with_too_many_readers_refuses_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "READERS", 1)
    stage = held("a")
    stage.want("b")
    stage.carry("Reconnect", of="b")
    assert refused(stage).why == "too many"
    assert stage.hit("a") == b"old"
    stage.reconnect("a")
    stage.settle()
    assert stage.hit("a") == b"old", "whoever is on record may come again"


def test_a_server_with_too_many_writes_refuses_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses every client, and begins nothing."""
    monkeypatch.setattr(write_turns, "WRITES", 1)
    stage = held("a", "b")
    stage.write(ticket=1)
    stage.write(L, ticket=2)
    assert FailWrite(2, "too many") in stage.told
    stage.write_at("b", key=L)
    stage.carry("Write")
    assert refused(stage).why == "too many"
    answer = stage.answers["b"][-1]
    assert isinstance(answer, TellWriter)
    assert (answer.outcome, answer.as_of) == ("failed", None)
    stage.settle()
    assert stage.store == {K: b"new", L: b"old"}


def test_a_reader_with_too_many_fetches_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects for which others ask are loaded, and its own once one of its loads has ended."""
    monkeypatch.setattr(answers, "FETCHES_OF_A_READER", 1)
    stage = held("a", "b")
    for name, key in (("a", L), ("a", b"m"), ("b", b"m")):
        stage.want(name, key)
        stage.carry("Fetch", of=name)
    assert refused(stage).why == "too many"
    assert [each.key for each in stage.loads] == [L, b"m"]
    stage.load()
    stage.want("a", b"n")
    stage.carry("Fetched")
    stage.carry("Fetch")
    assert [each.key for each in stage.loads] == [b"m", b"n"]


# --- V18: best effort waits for nobody ---


def test_best_effort_lets_a_range_go_at_once() -> None:
    """The server waits for no holder, but tells them (V12, V18)."""
    stage = Stage(BEST_EFFORT, config=OWNED)
    stage.grant()
    assert stage.read("a") == b"old"
    stage.tell_server(DrainAsked(WHOLE, served=False))
    assert [each for each in stage.told if isinstance(each, Drained)]
    assert stage.hit("a") == b"old"
    stage.carry("Invalidate")
    assert stage.hit("a") is None


def test_best_effort_keeps_no_quiet() -> None:
    """Neither after a death, nor at a start (V13, V16, V18)."""
    stage = Stage(BEST_EFFORT, config=OWNED)
    stage.grant(quiet_s=3.25)
    stage.write()
    assert stage.bodies
    alone = Stage(BEST_EFFORT)
    alone.write()
    assert alone.bodies


def test_a_limit_that_is_configured_is_the_limit() -> None:
    """The limit here is that of object leases: the server does not give one more (C6)."""
    stage = opened(config=msgspec.structs.replace(ALONE, most_leases=2))
    for key in (K, L, b"m"):
        stage.store[key] = b"old"
        stage.read("a", key)
    assert [stage.hit("a", key) for key in (K, L, b"m")] == [b"old", b"old", None]
    assert stage.server.view().leases == 2
