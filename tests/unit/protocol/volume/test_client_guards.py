"""What a client takes from which server, and when it asks again."""

import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.ranges import WHOLE
from tenure.protocol.volume.client.events import (
    LeaveAsked,
    RoutesChanged,
    Saw,
    ServerSaid,
    TellReaders,
    TellWriter,
    WasUsed,
)
from tenure.protocol.volume.messages import (
    AsOf,
    Bye,
    Elsewhere,
    Fetch,
    Fetched,
    Invalidate,
    Item,
    RefusedWhy,
    RequestRefused,
    ToCache,
    UnknownReader,
)
from tests.unit.protocol.volume.stage import K, L, Stage, held, opened


def asking(stage: Stage) -> Fetch:
    """What a client asks, which will not arrive."""
    stage.want("a", L)
    message = stage.take("Fetch").message
    assert isinstance(message, Fetch)
    return message


def tell(stage: Stage, message: ToCache, server: str = "s") -> None:
    stage.tell_cache("a", ServerSaid(server, message))


def refusal(asked: Fetch, why: RefusedWhy, again_s: float = 2, client: int = 0) -> RequestRefused:
    return RequestRefused(
        client=asked.client + client,
        sequence=asked.sequence,
        why=why,
        detail="it broke",
        again_ns=seconds(again_s),
    )


def asks_after(stage: Stage) -> float:
    """After how many seconds the client asks for the object again."""
    began = stage.real
    while not stage.letters("Fetch"):
        wake_at = stage.caches["a"].advance(stage.now("a")).wake_at
        stage.real = max(stage.real + 1, wake_at - Instant(seconds(1000)))
        stage.wake("a")
        stage.sent = [each for each in stage.sent if each.name == "Fetch"]
        assert stage.real < began + seconds(60)
    return (stage.real - began) / seconds(1)


# --- whose word counts ---


def test_a_server_that_it_never_asked_says_nothing_to_it() -> None:
    stage = held("a")
    contact = stage.caches["a"].contacts["s"]
    item = Item(item=1, key=K, number=99, count=99)
    message = Invalidate(epoch=contact.epoch, reader=contact.reader, items=(item,))
    tell(stage, message, server="another")
    assert stage.hit("a") == b"old"
    assert not stage.sent, "nothing is acknowledged to it"


def test_a_refusal_that_another_client_got_is_not_its_own() -> None:
    stage = held("a")
    asked = asking(stage)
    tell(stage, refusal(asked, "load failed", client=1))
    assert not [each for each in stage.reads("a") if each.outcome == "failed"]
    tell(stage, refusal(asked, "load failed"))
    failed = stage.answers["a"][-1]
    assert isinstance(failed, TellReaders)
    assert (failed.outcome, failed.detail) == ("failed", "it broke")


# --- when it asks again ---


@pytest.mark.parametrize(("again_s", "after_s"), [(2, 2), (0, 0.5)])
def test_a_refused_fetch_is_repeated_when_its_server_says_but_not_at_once(
    again_s: float, after_s: float
) -> None:
    stage = held("a")
    asked = asking(stage)
    tell(stage, refusal(asked, "too many", again_s))
    assert asks_after(stage) == pytest.approx(after_s)


def test_what_is_elsewhere_is_asked_for_after_a_pause() -> None:
    """Its routes may not be known yet, and the server would say the same (C7)."""
    stage = held("a")
    asked = asking(stage)
    tell(stage, Elsewhere(client=asked.client, sequence=asked.sequence))
    assert asks_after(stage) == pytest.approx(0.5)


def test_all_who_wait_for_a_load_that_fails_are_told() -> None:
    """Also those that joined it (V10)."""
    stage = held("a")
    asked = asking(stage)
    stage.want("a", L, ticket=2)
    tell(stage, refusal(asked, "load failed"))
    failed = stage.answers["a"][-1]
    assert isinstance(failed, TellReaders)
    assert set(failed.tickets) == {1, 2}
    assert stage.caches["a"].view().flights == 0


def test_what_was_used_before_it_was_on_record_renews_nothing() -> None:
    """There is no lease yet, and whoever reads asks for one."""
    stage = opened()
    stage.tell_cache("a", WasUsed("s", (K,)))
    assert not stage.sent
    stage.want("a")
    stage.tell_cache("a", WasUsed("s", (K,)))
    assert [each.name for each in stage.sent] == ["Reconnect"]


def test_whoever_becomes_unknown_does_not_know_what_became_of_its_writes() -> None:
    """The server may have forgotten its record, and the write, or carried it out (V8)."""
    stage = held("a")
    stage.write_at("a", key=L)
    asked = asking(stage)
    tell(stage, UnknownReader(client=asked.client, sequence=asked.sequence))
    outcomes = [each.outcome for each in stage.answers["a"] if isinstance(each, TellWriter)]
    assert outcomes == ["unknown"]


# --- what others saw ---


def test_an_answer_under_way_may_be_older_than_what_others_saw() -> None:
    """Whoever waits gets the answer to a later question (C5)."""
    stage = held("a", patient=True)
    stage.want("a", L)
    stage.settle_to("Fetched")
    early = stage.take("Fetched")
    assert isinstance(early.message, Fetched)
    history = stage.server.context.history
    stage.tell_cache("a", Saw(L, AsOf(history=history, number=1, count=9)))
    stage.deliver(early)
    assert not [each for each in stage.reads("a") if each.key == L]
    assert stage.hit("a", L) is None
    stage.wake("a")
    assert stage.letters("Fetch"), "it asks again"


def test_what_was_seen_in_another_history_drops_what_it_may_be_newer_than() -> None:
    """Nothing can be compared, so the entry is asked for again (C5)."""
    stage = held("a")
    history = stage.server.context.history
    own = stage.as_of("a")
    stage.tell_cache("a", Saw(K, own))
    assert stage.hit("a") == b"old", "it is as new as that"
    stage.tell_cache("a", Saw(K, AsOf(history=history + 1, number=0, count=0)))
    assert stage.hit("a") is None


# --- leaving ---


def test_whoever_leaves_tells_its_server_and_all_who_wait() -> None:
    stage = held("a")
    asking(stage)
    stage.write_at("a")
    stage.answers["a"].clear()
    stage.tell_cache("a", LeaveAsked())
    outcomes = [each.outcome for each in stage.answers["a"]]
    assert outcomes == ["unreachable", "unknown"]
    bye = stage.letters("Bye")[0].message
    assert isinstance(bye, Bye)
    assert stage.hit("a") is None
    view = stage.caches["a"].view()
    assert (view.flights, view.writes, view.in_touch) == (0, 0, ())


def test_a_range_that_another_server_has_now_is_asked_for_there() -> None:
    """Its fetch under way is void, and the server that has nothing is left."""
    stage = held("a")
    asked = asking(stage)
    stage.tell_cache("a", RoutesChanged(((WHOLE, "t"),)))
    assert [each.name for each in stage.sent] == ["Reconnect", "Bye"]
    assert stage.hit("a") is None
    tell(stage, Elsewhere(client=asked.client, sequence=asked.sequence))
    assert stage.caches["a"].view().flights == 1
    stage.tell_cache("a", RoutesChanged(((WHOLE, None),)))
    assert stage.caches["a"].view().in_touch == ()
