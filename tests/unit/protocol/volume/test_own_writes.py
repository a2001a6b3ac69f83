"""A client's own writes: when they are sent, what they leave, and when their writers are told."""

from random import Random

from tenure.base.instants import Instant, seconds
from tenure.protocol.volume.client.events import CacheConfig, TellWriter, WriteWanted
from tenure.protocol.volume.client.fetches import Marks
from tenure.protocol.volume.client.machine import CacheMachine
from tenure.protocol.volume.messages import Item
from tests.unit.protocol.volume.stage import K, L, Stage, held, opened


def writes(stage: Stage) -> int:
    """How many writes of a client are on their way."""
    return stage.caches["a"].view().writes


def told(stage: Stage) -> list[str]:
    """The outcomes that writers were told."""
    return [each.outcome for each in stage.answers["a"] if isinstance(each, TellWriter)]


def wait(stage: Stage, span_s: float) -> None:
    """Time passes, and the client is woken whenever it wants to be."""
    until = stage.real + seconds(span_s)
    while stage.real < until:
        stage.wake("a")
        wake_at = stage.caches["a"].advance(stage.now("a")).wake_at
        stage.real = min(until, max(stage.real + 1, wake_at - Instant(seconds(1000))))
    stage.wake("a")


def test_a_write_that_nobody_answers_ends_by_itself() -> None:
    """Its writer learns that nobody knows whether it was carried out (C7)."""
    stage = held("a")
    stage.write_at("a")
    wait(stage, 29.9)
    assert (told(stage), writes(stage)) == ([], 1)
    wait(stage, 0.2)
    assert (told(stage), writes(stage)) == (["unknown"], 0)


def test_a_write_that_was_never_sent_is_known_not_to_be_carried_out() -> None:
    """No server has put the client on record, so nothing was begun."""
    stage = opened()
    stage.write_at("a")
    wait(stage, 30.1)
    assert (told(stage), writes(stage)) == (["unreachable"], 0)
    assert not stage.letters("Write")


def test_a_write_whose_server_nobody_knows_is_told_so_at_once() -> None:
    """The application may write again once its keys are served somewhere."""
    cache = CacheMachine(CacheConfig(), Random(1))
    output = cache.handle(Instant(seconds(1000)), WriteWanted(1, K, b"own"))
    assert output.actions == [TellWriter(1, K, "elsewhere")]
    assert cache.view().writes == 0


def test_a_write_that_waited_for_a_lease_is_one_write() -> None:
    """It is known under the number under which it was sent, and forgotten when it has ended."""
    stage = opened()
    stage.write_at("a")
    stage.settle_to("Write")
    assert writes(stage) == 1
    stage.settle()
    assert (told(stage), writes(stage)) == (["written"], 0)


def test_nobody_is_told_to_take_an_entry_while_it_is_written() -> None:
    """It is dead from before the write is sent; whoever reads asks the server (V9)."""
    stage = held("a")
    stage.answers["a"].clear()
    stage.write_at("a")
    stage.want("a")
    assert stage.letters("Fetch")
    assert not stage.reads("a")


def test_an_item_of_one_object_says_nothing_about_others() -> None:
    """Their answers under way are kept (V7)."""
    marks = Marks((K, L))
    marks.apply(Item(item=1, key=K, number=7, count=3))
    assert not marks.admits(K, (7, 2))
    assert marks.admits(K, (7, 3))
    assert marks.admits(L, (7, 0))
