"""Rules of a client that its schedules do not meet: what others saw, whose word counts, routes."""

import pytest
from msgspec.structs import replace

from tenure.base.instants import seconds
from tenure.base.ranges import KeyRange
from tenure.protocol.volume.client import questions
from tenure.protocol.volume.client.events import (
    AskWhetherUsed,
    AuditWanted,
    DoubtEntries,
    JudgeHit,
    LeaveAsked,
    RoutesChanged,
    Saw,
    ServerSaid,
    TellReaders,
    TellServer,
    TellWriter,
)
from tenure.protocol.volume.messages import (
    Elsewhere,
    Fetch,
    Fetched,
    Invalidate,
    Item,
    Reconnect,
    Reconnected,
    Renew,
    Renewed,
    RequestRefused,
    ToCache,
    Write,
    WriteDone,
)
from tenure.protocol.volume.server.terms import Terms
from tests.unit.protocol.volume.stage import K, L, Stage, held, opened

TERM_S = 3.0


def tell(stage: Stage, message: ToCache, server: str = "s") -> None:
    stage.tell_cache("a", ServerSaid(server, message))


def outcomes(stage: Stage) -> list[str]:
    """What writers were told."""
    return [each.outcome for each in stage.answers["a"] if isinstance(each, TellWriter)]


def listed(message: object) -> list[bytes]:
    """The keys about which a client asks."""
    assert isinstance(message, Renew | Reconnect)
    return [each.key for each in message.listed]


# --- what others saw ---


def test_the_answer_to_a_write_may_be_older_than_what_others_saw() -> None:
    """With best effort another write does not wait for this client, and others read it (C5)."""
    stage = held("a", "b", terms=Terms(mode="best effort"))
    stage.write_at("a")
    stage.carry("Write")
    stage.end_body()
    stage.take("Invalidate", to="b")
    late = stage.take("WriteDone")
    stage.write()
    stage.end_body()
    stage.take("Invalidate", to="a")
    stage.reconnect("b")
    stage.settle()
    assert stage.read("b") == b"new"
    stage.tell_cache("a", Saw(K, stage.as_of("b")))
    stage.deliver(late)
    assert outcomes(stage) == ["written"]
    assert stage.hit("a") is None
    assert stage.read("a") == b"new"


# --- whose word counts ---


def test_a_write_is_sent_elsewhere_only_by_the_answer_to_it() -> None:
    stage = held("a")
    stage.write_at("a")
    asked = stage.take("Write").message
    assert isinstance(asked, Write)
    right = Elsewhere(client=asked.client, sequence=asked.sequence)
    tell(stage, replace(right, client=asked.client + 1))
    tell(stage, replace(right, sequence=asked.sequence + 1))
    assert outcomes(stage) == []
    tell(stage, right)
    assert outcomes(stage) == ["elsewhere"]
    assert stage.caches["a"].view().writes == 0


def test_a_write_that_is_refused_has_failed_and_its_writer_is_told_why() -> None:
    stage = held("a")
    stage.write_at("a")
    asked = stage.take("Write").message
    assert isinstance(asked, Write)
    right = RequestRefused(client=asked.client, sequence=asked.sequence, why="too many")
    tell(stage, replace(right, sequence=asked.sequence + 1))
    assert outcomes(stage) == []
    tell(stage, right)
    told = stage.answers["a"][-1]
    assert isinstance(told, TellWriter)
    assert (told.outcome, told.detail) == ("failed", "too many")


def test_what_is_elsewhere_ends_a_long_pause() -> None:
    """Routes change soon, while a slow server is asked less and less."""
    stage = held("a")
    stage.want("a", L)
    for _ in range(12):
        stage.pass_(0.25)
        stage.wake("a")
    asked = stage.letters("Fetch")[-1].message
    assert isinstance(asked, Fetch)
    stage.sent.clear()
    tell(stage, Elsewhere(client=asked.client, sequence=asked.sequence))
    stage.pass_(0.5)
    stage.wake("a")
    assert stage.letters("Fetch")


@pytest.mark.parametrize("field", ["epoch", "reader", "sequence"])
@pytest.mark.parametrize("name", ["Fetched", "Renewed", "WriteDone"])
def test_an_answer_to_somebody_else_gives_nothing(name: str, field: str) -> None:
    """A number that is not the client's own makes nothing live, and ends no wait (V2)."""
    stage = held("a")
    stage.pass_(TERM_S + 1)
    stage.use("a", K)
    stage.settle()
    stage.pass_(1)
    {
        "Fetched": lambda: stage.want("a", L),
        "Renewed": lambda: stage.use("a", K),
        "WriteDone": lambda: stage.write_at("a", key=L),
    }[name]()
    stage.answers["a"].clear()
    if name == "WriteDone":
        stage.carry("Write")
        stage.end_body()
    else:
        stage.settle_to(name)
    right = stage.take(name).message
    assert isinstance(right, Fetched | Renewed | WriteDone)
    until = stage.caches["a"].contacts["s"].until
    tell(stage, replace(right, **{field: getattr(right, field) + 1}))
    assert stage.caches["a"].contacts["s"].until == until
    assert not stage.answers["a"]
    tell(stage, right)
    assert stage.caches["a"].contacts["s"].until > until


def test_an_item_of_somebody_else_is_not_acknowledged() -> None:
    """An item for the number that the client had before concerns entries that are dead (V2)."""
    stage = held("a")
    contact = stage.caches["a"].contacts["s"]
    items = (Item(item=1, key=K, number=99, count=99),)
    for epoch, reader in ((1, 0), (0, 1)):
        message = Invalidate(
            epoch=contact.epoch + epoch, reader=contact.reader + reader, items=items
        )
        tell(stage, message)
        assert stage.hit("a") == b"old"
        assert not stage.sent
    tell(stage, Invalidate(epoch=contact.epoch, reader=contact.reader, items=items))
    assert stage.hit("a") is None
    assert [each.name for each in stage.sent] == ["Acknowledge"]


def test_whoever_is_on_record_takes_no_other_place() -> None:
    """The answer to its first question comes again: its number is another one by now (V2)."""
    stage = Stage()
    stage.want("a")
    stage.carry("Reconnect")
    letter = stage.take("Reconnected")
    stage.deliver(letter)
    assert isinstance(letter.message, Reconnected)
    reader = stage.reader("a")
    tell(stage, replace(letter.message, reader=reader + 1))
    assert stage.reader("a") == reader


# --- when it asks ---


def test_what_ends_within_two_volume_leases_is_renewed_along() -> None:
    """Otherwise an object lease would end before anybody looks again."""
    stage = held("a")
    stage.pass_(1)
    actions = stage.caches["a"].advance(stage.now("a")).actions
    asks = [each for each in actions if isinstance(each, AskWhetherUsed)]
    assert [(each.ending_before - stage.now("a")) / seconds(1) for each in asks] == [2 * TERM_S]


def test_a_lease_that_nobody_uses_is_not_asked_for_again() -> None:
    """Its renewal was lost, and meanwhile it has ended: whoever reads asks again."""
    stage = held("a")
    stage.pass_(1)
    stage.use("a", K)
    stage.sent.clear()
    stage.pass_(0.5)
    stage.wake("a")
    assert stage.letters("Renew"), "the lease still runs"
    stage.sent.clear()
    stage.pass_(TERM_S)
    stage.wake("a")
    assert not stage.sent
    stage.want("a")
    assert [each.name for each in stage.sent] == ["Renew"]


def test_a_reader_that_waits_for_a_lease_has_it_asked_for_again() -> None:
    """However long the lease has been over."""
    stage = held("a")
    stage.pass_(TERM_S + 1)
    stage.want("a")
    assert [each.name for each in stage.sent] == ["Renew"]
    stage.sent.clear()
    stage.pass_(0.5)
    stage.wake("a")
    assert {each.name for each in stage.sent} & {"Renew", "Fetch"}
    stage.settle()
    assert [each.outcome for each in stage.reads("a")][-1] in {"hit", "unchanged"}


def test_who_is_not_waited_for_is_not_asked_for_a_place() -> None:
    """Its reader has given up: it is asked when somebody reads again."""
    stage = Stage()
    stage.want("a")
    for _ in range(24):
        stage.pass_(0.25)
        stage.wake("a")
    assert [each.outcome for each in stage.reads("a")] == ["unreachable"]
    stage.sent.clear()
    for _ in range(24):
        stage.pass_(0.25)
        stage.wake("a")
    assert not stage.sent
    stage.want("a")
    assert [each.name for each in stage.sent] == ["Reconnect"]


def test_an_answer_after_the_patience_of_its_reader_is_too_late() -> None:
    """What is due comes before what happens: a process may have been stopped (V19)."""
    stage = held("a", patient=False)
    stage.want("a", L)
    stage.settle_to("Fetched")
    stage.pass_(5)
    stage.carry("Fetched")
    assert [each.outcome for each in stage.reads("a") if each.key == L] == ["unreachable"]


# --- what it lists ---


def test_a_client_lists_no_more_than_a_server_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server closes the connection of whoever lists more."""
    stage = held("a")
    stage.read("a", L)
    monkeypatch.setattr(questions, "LISTED", 1)
    stage.use("a", K, L)
    assert listed(stage.take("Renew").message) == [K]
    monkeypatch.setattr(questions, "LISTED", 2)
    stage.use("a", b"gone", K, L)
    assert listed(stage.take("Renew").message) == [K, L], "what was evicted is passed over"
    monkeypatch.setattr(questions, "LISTED_BYTES", 1)
    stage.use("a", K, L)
    assert listed(stage.take("Renew").message) == [K]


# --- routes ---


def test_a_suspect_entry_is_asked_about_where_its_range_is_now() -> None:
    """The old server has withdrawn it; the new one says whether it is current (V12, V15)."""
    stage = held("a")
    stage.read("a", L)
    contact = stage.caches["a"].contacts["s"]
    left, right = KeyRange(b"", b"l"), KeyRange(b"l", None)
    whole = Item(item=1, key=left.start, end=left.end, withdrawn=True, number=7, count=0)
    tell(stage, Invalidate(epoch=contact.epoch, reader=contact.reader, items=(whole,)))
    assert (stage.hit("a"), stage.hit("a", L)) == (None, b"old")
    stage.sent.clear()
    routes = RoutesChanged(((left, "t"), (right, "s")))
    actions = stage.caches["a"].handle(stage.now("a"), routes).actions
    asked = [each for each in actions if isinstance(each, TellServer)]
    assert [each.server for each in asked] == ["t"]
    assert listed(asked[0].message) == [K]
    assert stage.hit("a", L) == b"old"
    assert set(stage.caches["a"].contacts) == {"s", "t"}


def test_a_server_whose_range_is_anothers_keeps_nothing_of_it_live() -> None:
    """It lies, or is out of the pool: it has not withdrawn the range, and would renew its leases
    for ever, whatever the new owner writes.
    """
    stage = held("a")
    stage.read("a", L)
    stage.sent.clear()
    routes = RoutesChanged(((KeyRange(b"", b"l"), "t"), (KeyRange(b"l", None), "s")))
    output = stage.caches["a"].handle(stage.now("a"), routes)
    stage.do_cache("a", output)
    assert (stage.hit("a"), stage.hit("a", L)) == (None, b"old")
    asked = [each for each in output.actions if isinstance(each, TellServer)]
    assert {each.server: listed(each.message) for each in asked} == {"t": [K]}


def test_each_server_is_asked_about_its_own_suspects() -> None:
    """Nobody else can say whether they are current."""
    stage = held("a")
    stage.read("a", L)
    contact = stage.caches["a"].contacts["s"]
    item = Item(item=1, key=b"", withdrawn=True, number=7, count=0)
    tell(stage, Invalidate(epoch=contact.epoch, reader=contact.reader, items=(item,)))
    stage.use("a")
    stage.use("a", b"other")
    assert listed(stage.take("Renew").message) == [], "it is under way, and asks nothing of this"
    routes = RoutesChanged(((KeyRange(b"", b"l"), "t"), (KeyRange(b"l", None), "s")))
    actions = stage.caches["a"].handle(stage.now("a"), routes).actions
    asked = [each for each in actions if isinstance(each, TellServer)]
    assert {each.server: listed(each.message) for each in asked} == {"t": [K], "s": [L]}


def test_a_write_that_waits_for_one_server_is_not_sent_to_another() -> None:
    """Another would only say that the key is elsewhere."""
    stage = held("a")
    routes = RoutesChanged(((KeyRange(b"", b"l"), "t"), (KeyRange(b"l", None), "s")))
    stage.tell_cache("a", routes)
    stage.sent.clear()
    stage.write_at("a", key=K)
    assert stage.caches["a"].contacts["t"].reader == 0
    stage.use("a", L)
    renew = stage.take("Renew")
    stage.deliver(renew)
    stage.carry("Renewed")
    assert not stage.letters("Write")
    assert outcomes(stage) == []


def test_an_entry_is_doubted_once() -> None:
    """From then on its value ages: a second time would make it younger than it is."""
    stage = held("a")
    contact = stage.caches["a"].contacts["s"]
    for number, doubted in ((1, [(K,)]), (2, [])):
        item = Item(item=number, key=b"", withdrawn=True, number=7, count=number)
        message = Invalidate(epoch=contact.epoch, reader=contact.reader, items=(item,))
        output = stage.caches["a"].handle(stage.now("a"), ServerSaid("s", message))
        found = [
            each.keys for each in output.actions if isinstance(each, DoubtEntries) and each.keys
        ]
        assert found == doubted


def test_what_is_found_current_without_a_lease_is_not_live() -> None:
    """A write may have overtaken it: whoever waited gets it, and nobody counts on it (V7)."""
    stage = held("a")
    contact = stage.caches["a"].contacts["s"]
    item = Item(item=1, key=b"", withdrawn=True, number=7, count=0)
    tell(stage, Invalidate(epoch=contact.epoch, reader=contact.reader, items=(item,)))
    stage.take("Acknowledge")
    stage.want("a")
    stage.settle_to("Fetched")
    message = stage.take("Fetched").message
    assert isinstance(message, Fetched)
    assert message.kind == "unchanged"
    tell(stage, replace(message, lease_ns=0))
    assert stage.reads("a")[-1].outcome == "unchanged"
    view = stage.caches["a"].view()
    assert (view.entries, view.live) == (1, 0)


# --- audits ---


def test_a_hit_is_judged_only_while_its_entry_lives() -> None:
    """One that was not live when the server was asked proves nothing; nor one asked for twice."""
    stage = held("a")
    stage.tell_cache("a", AuditWanted(L))
    assert not stage.sent, "there is no entry"
    stage.tell_cache("a", AuditWanted(K))
    stage.tell_cache("a", AuditWanted(K))
    asked = [each.message for each in stage.letters("Fetch")]
    assert [each.as_of for each in asked if isinstance(each, Fetch)] == [None]
    stage.carry("Fetch")
    stage.load(b"changed elsewhere")
    message = stage.take("Fetched").message
    assert isinstance(message, Fetched)
    output = stage.caches["a"].handle(stage.now("a"), ServerSaid("s", message))
    judged = [each for each in output.actions if isinstance(each, JudgeHit)]
    assert [each.value for each in judged] == [b"changed elsewhere"]
    assert not [each for each in output.actions if isinstance(each, TellReaders)]


def test_whoever_leaves_without_a_place_says_nothing() -> None:
    stage = opened()
    stage.want("a")
    stage.sent.clear()
    stage.tell_cache("a", LeaveAsked())
    assert [each.outcome for each in stage.reads("a")] == ["unreachable"]
    assert not stage.sent
