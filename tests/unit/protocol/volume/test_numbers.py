"""Numbers say who is meant, and which question is answered: a message with another one is ignored
(V2).
"""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from tenure.base.instants import seconds
from tenure.protocol.volume.client.events import ServerSaid
from tenure.protocol.volume.client.fetches import Marks
from tenure.protocol.volume.messages import (
    Elsewhere,
    Fetch,
    Fetched,
    Reconnect,
    Reconnected,
    Renew,
    ToCache,
    UnknownReader,
)
from tenure.protocol.volume.server.events import ClientAsked
from tests.unit.protocol.volume.stage import K, L, Stage, held, opened


def asked(stage: Stage) -> Renew:
    """Return what a client asks, which has not arrived."""
    stage.use("a", K)
    message = stage.take("Renew").message
    assert isinstance(message, Renew)
    return message


@pytest.mark.parametrize("field", ["epoch", "client", "reader"])
def test_a_server_answers_a_reader_by_all_of_its_numbers_only(field: str) -> None:
    stage = held("a")
    message = asked(stage)
    stage.tell_server(ClientAsked(replace(message, **{field: getattr(message, field) + 1})))
    assert [each.name for each in stage.sent] == ["UnknownReader"]
    stage.sent.clear()
    stage.tell_server(ClientAsked(message))
    assert [each.name for each in stage.sent] == ["Renewed"]


@pytest.mark.parametrize(("client", "sequence"), [(0, -1), (1, 0), (0, 1)])
def test_a_client_that_is_told_of_another_question_stays_on_record(
    client: int, sequence: int
) -> None:
    """The server said to an earlier question, or to another client, that it does not know it."""
    stage = held("a")
    message = asked(stage)
    unknown = UnknownReader(client=message.client + client, sequence=message.sequence + sequence)
    stage.tell_cache("a", ServerSaid("s", unknown))
    assert stage.hit("a") == b"old"
    unknown = UnknownReader(client=message.client, sequence=message.sequence)
    stage.tell_cache("a", ServerSaid("s", unknown))
    assert stage.hit("a") is None


def test_a_fetch_is_not_sent_elsewhere_by_what_somebody_else_was_told() -> None:
    stage = held("a")
    stage.want("a", L)
    nonce, sequence = stage.nonce("a"), stage.caches["a"].questions.sequence
    stage.tell_cache("a", ServerSaid("s", Elsewhere(client=nonce + 1, sequence=sequence)))
    stage.settle()
    assert stage.hit("a", L) == b"old"


def test_a_client_is_on_record_only_by_what_was_said_to_it() -> None:
    stage = Stage()
    stage.want("a")
    message: ToCache
    stage.deliver(stage.take("Reconnect"))
    letter = stage.take("Reconnected")
    assert isinstance(letter.message, Reconnected)
    message = replace(letter.message, client=letter.message.client + 1)
    stage.tell_cache("a", ServerSaid("s", message))
    assert stage.reader("a") == 0
    stage.deliver(letter)
    assert stage.reader("a") != 0
    stage.settle()
    assert stage.hit("a", K) == b"old"


def test_nothing_is_kept_of_what_was_not_asked_about() -> None:
    """No mark was left for it, which an item could have raised (V7)."""
    assert Marks((K,)).admits(K, (1, 1))
    assert not Marks((K,)).admits(L, (1, 1))


def test_whoever_becomes_unknown_asks_again_at_once() -> None:
    """Its earlier questions are void, and wait for no deadline (V8, C7)."""
    stage = held("a", patient=True)
    stage.restart()
    stage.pass_(4)
    stage.wake()
    stage.want("a", L)
    stage.settle()
    assert stage.value("a") == b"old"


# --- servers that say what cannot be ---


def test_nobody_is_on_record_without_a_number() -> None:
    """Otherwise it would ask for a place again, and be told so again, as fast as both can."""
    stage = Stage()
    stage.want("a")
    stage.carry("Reconnect")
    letter = stage.take("Reconnected")
    assert isinstance(letter.message, Reconnected)
    stage.tell_cache("a", ServerSaid("s", replace(letter.message, reader=0)))
    assert not stage.sent, "it asks again after a while"
    stage.deliver(letter)
    stage.settle()
    assert stage.hit("a") == b"old"


def test_what_nobody_asked_about_is_not_unchanged() -> None:
    """The answer says nothing about an object of which no version was told, and counts as none."""
    stage = opened()
    stage.want("a")
    stage.settle_to("Fetched")
    letter = stage.take("Fetched")
    assert isinstance(letter.message, Fetched)
    stage.tell_cache("a", ServerSaid("s", replace(letter.message, kind="unchanged", value=b"")))
    assert not stage.sent, "it asks again after a while"
    assert stage.hit("a") is None
    stage.deliver(letter)
    assert stage.hit("a") == b"old"


def places_asked_for(stage: Stage, span_s: float, *, knows: int = 0) -> list[float]:
    """When a client with one reader that waits asks for a place on record, while everything takes 5
    milliseconds. The server answers that many fetches after each place that it gives, and then does
    not know who asks.
    """
    found: list[float] = []
    began, left = stage.real, 0
    while stage.real < began + seconds(span_s):
        if not stage.caches["a"].context.fetches.flights:
            stage.want("a", b"%d" % stage.real)
        stage.pass_(0.005)
        stage.wake("a")
        letters, stage.sent = stage.sent, []
        for letter in letters:
            match letter.message:
                case Reconnect():
                    found.append((stage.real - began) / seconds(1))
                    left = knows
                case Fetch(client=client, sequence=sequence):
                    left -= 1
                    if left < 0:
                        unknown = UnknownReader(client=client, sequence=sequence)
                        stage.tell_cache("a", ServerSaid("s", unknown))
                        continue
                case _:
                    pass
            stage.deliver(letter)
        while stage.loads:
            stage.load()
    return found


def test_a_server_that_forgets_at_once_whom_it_put_on_record_is_not_asked_in_a_loop() -> None:
    """Otherwise it would be asked for places as fast as both can, until the readers give up."""
    asked = places_asked_for(opened(), 8)
    pauses = [later - sooner for sooner, later in pairwise(asked)]
    assert pauses == pytest.approx([0.015, 0.5, 1, 1.5, 2, 2], abs=0.02)


def test_one_answer_ends_the_pauses() -> None:
    """It shows that the server keeps records; and servers may restart often (C7)."""
    stage = opened()
    assert len(places_asked_for(stage, 8)) < 10
    assert len(places_asked_for(stage, 3, knows=1)) > 20
    sooner, later = places_asked_for(stage, 0.7)[-2:]
    assert later - sooner == pytest.approx(0.5, abs=0.02)
