"""What a client keeps of an answer: what is newer stays, and what cannot be compared goes."""

import msgspec

from tenure.base.instants import Instant, seconds
from tenure.protocol.volume.client.events import AskWhetherUsed, Evicted, ServerSaid
from tenure.protocol.volume.messages import Fetched, Invalidate, Item, Renewed
from tenure.protocol.volume.noted import CacheKind
from tests.unit.protocol.volume.stage import K, L, Stage, held, opened


def renewed(stage: Stage) -> Renewed:
    """The answer to a client that says that it uses its entry."""
    stage.use("a", K)
    stage.carry("Renew")
    message = stage.take("Renewed").message
    assert isinstance(message, Renewed)
    assert [each.key for each in message.live] == [K]
    return message


def test_a_late_fill_is_counted() -> None:
    """Its readers get the value, and it is not kept (V7)."""
    stage = opened()
    stage.read("a", L)
    stage.want("a")
    stage.settle_to("Fetched")
    late = stage.take("Fetched")
    stage.write()
    stage.carry("Invalidate")
    assert CacheKind.LATE_FILL not in stage.noted
    stage.deliver(late)
    assert stage.noted[-1] is CacheKind.LATE_FILL


def test_what_was_evicted_meanwhile_is_not_made_live() -> None:
    """There is no value of which the answer could say so."""
    stage = held("a")
    message = renewed(stage)
    stage.tell_cache("a", Evicted((K,)))
    del stage.entries["a"].objects[K]
    stage.tell_cache("a", ServerSaid("s", message))
    assert K not in stage.caches["a"].belief.entries
    assert stage.read("a") == b"old"


def test_what_was_filled_meanwhile_is_not_made_older() -> None:
    """The answer says that an earlier version was current when it was given (V7)."""
    stage = held("a")
    stage.write(L)
    stage.settle()
    message = renewed(stage)
    (live,) = message.live
    older = msgspec.structs.replace(live, count=live.count - 1)
    before = stage.as_of("a")
    stage.use("a", K)
    stage.take("Renew")
    asking = stage.caches["a"].contacts["s"].renewing
    assert asking is not None
    stage.read("a", L)
    stage.caches["a"].belief.entries[K].as_of = stage.as_of("a", L)
    late = msgspec.structs.replace(message, sequence=asking.sequence, live=(older,))
    stage.tell_cache("a", ServerSaid("s", late))
    assert stage.caches["a"].belief.entries[K].as_of == stage.as_of("a", L)
    assert before.version < stage.as_of("a", L).version


def test_an_item_that_comes_again_kills_nothing_newer() -> None:
    """It travels with each lease until its acknowledgement has arrived (V4)."""
    stage = held("a")
    stage.write()
    stage.carry("Invalidate")
    stage.take("Acknowledge")  # lost
    stage.pass_(3.26)
    stage.wake()
    stage.end_body()
    stage.want("a")
    stage.settle_to("Fetched")
    fetched = stage.carry("Fetched")
    assert isinstance(fetched, Fetched)
    assert [each.key for each in fetched.items] == [K]
    stage.take("Acknowledge")  # lost again
    assert stage.hit("a") == b"new"
    stage.use("a", K)
    stage.carry("Renew")
    again = stage.carry("Renewed")
    assert isinstance(again, Renewed)
    assert [each.key for each in again.items] == [K]
    assert stage.hit("a") == b"new"


def test_what_is_of_another_history_is_forgotten() -> None:
    """Listed under the present one, its higher numbers would pass for newer ones (V15)."""
    stage = held("a")
    for _ in range(3):
        stage.write(L)
        stage.settle()
    stage.use("a", K)
    stage.settle()
    assert stage.as_of("a").count == 3
    stage.start(seed=2)  # without a memory: another history, and no writes
    stage.pass_(4)
    stage.wake()
    stage.write()
    stage.settle()
    for _ in range(2):
        stage.reconnect("a")
        stage.settle()
        assert stage.hit("a") is None
    assert K not in stage.caches["a"].belief.entries
    assert K not in stage.entries["a"].objects
    assert stage.noted.count(CacheKind.ANOTHER_HISTORY) == 1
    assert stage.read("a") == b"new"


def test_the_first_history_is_no_other_one() -> None:
    """Nobody's entries were forgotten."""
    stage = held("a")
    assert CacheKind.ANOTHER_HISTORY not in stage.noted


def test_an_answer_without_a_lease_does_not_change_how_often_it_asks() -> None:
    """The lease before still runs, and hits are asked about by its length."""
    stage = held("a")
    cache = stage.caches["a"]
    stage.want("a", L)
    stage.settle_to("Fetched")
    message = stage.take("Fetched").message
    assert isinstance(message, Fetched)
    mute = msgspec.structs.replace(message, term_ns=0, lease_ns=0)
    stage.tell_cache("a", ServerSaid("s", mute))
    asked = 0
    for _ in range(40):
        output = cache.advance(stage.now("a"))
        asked += any(isinstance(each, AskWhetherUsed) for each in output.actions)
        stage.do_cache("a", output)
        stage.real = max(stage.real + 1, output.wake_at - Instant(1000 * seconds(1)))
        if stage.now("a") > Instant(1010 * seconds(1)):
            break
    assert asked <= 8


def test_what_is_withdrawn_is_what_the_range_has() -> None:
    """Entries of other ranges, of other servers, and those that are newer stay live (V12)."""
    stage = held("a")
    stage.read("a", L)
    cache = stage.caches["a"]
    contact = cache.contacts["s"]
    newer = stage.as_of("a").count + 1

    def withdraw(start: bytes, end: bytes | None, count: int, reader: int) -> list[bytes | None]:
        """What is hit after a range was withdrawn."""
        item = Item(item=9, key=start, number=9, count=count, withdrawn=True, end=end)
        message = Invalidate(epoch=contact.epoch, reader=reader, items=(item,))
        stage.tell_cache("a", ServerSaid("s", message))
        return [stage.hit("a", key) for key in (K, L)]

    assert withdraw(b"x", None, newer, contact.reader) == [b"old", b"old"]
    other = cache.context.contact("t")
    other.reader = cache.belief.entries[K].reader = contact.reader + 1
    assert withdraw(K, L, newer, contact.reader) == [b"old", b"old"], "another server gave it"
    cache.belief.entries[K].reader = contact.reader
    assert withdraw(K, L, newer, contact.reader) == [None, b"old"]
    entries = cache.belief.entries
    entries[L].as_of = msgspec.structs.replace(entries[L].as_of, number=9, count=9)
    assert withdraw(b"", None, 9, contact.reader) == [None, b"old"], "it is newer than that"
    assert withdraw(b"", None, 10, contact.reader) == [None, None]
