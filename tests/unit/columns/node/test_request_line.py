"""Of each client only so much is begun: less if it brings much, and nothing when it has left."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tenure.base.instants import Instant, seconds
from tenure.columns.backends.cluster import STORE_ROLE
from tenure.columns.node.request_line import (
    AT_FIRST,
    AT_ONCE,
    PATIENCE_NS,
    PLACES,
    RequestLine,
    at_once,
)
from tenure.columns.node.store_engine import StoreEngine
from tenure.columns.tables import Family, Table
from tenure.protocol.replication.messages import ReadColumn
from tenure.protocol.replication.node_events import RunStep, StoreAsked
from tenure.protocol.replication.openings import OpenStore, StoreOpened
from tenure.protocol.replication.operations import ReadParts
from tenure.testing.clock import come_to_rest
from tenure.transport.websocket import WebSocketTransport
from tenure.wire.columns import ToStoreClient
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.columns.node.ringed import form_ring, running, settings_of

MAIL = Table("mail", profile=Family(columns=str))
NOW = Instant(seconds(100))
LARGE = 30 << 20
ANN, BOB = 1, 2


def read(number: int) -> ReadColumn:
    return ReadColumn(request=number, table="mail", key=b"ann", family="profile", name=b"name")


def asked(client: int, number: int, places: int = 1) -> StoreAsked:
    return StoreAsked(client, read(number), 0, by=f"of {client % 2}", places=places)


def put(line: RequestLine, client: int, count: int, now: Instant = NOW) -> Counter[str]:
    return Counter(line.put(now, asked(client, number)) for number in range(count))


def begun(line: RequestLine) -> list[tuple[int, int]]:
    """The clients and numbers of those that are begun now, in their order."""
    found = []
    while line.has_next():
        taken = line.next()
        assert taken is not None
        found.append((taken.client, taken.request.request))
    assert line.next() is None
    return found


@pytest.mark.parametrize(
    ("answer_bytes", "count"),
    [
        (None, AT_FIRST),
        (0, AT_ONCE),
        (128 << 10, AT_ONCE),
        (1 << 20, 64),
        (16 << 20, 4),
        (1 << 30, 1),
    ],
)
def test_the_more_its_last_answers_had_the_fewer_are_begun(
    answer_bytes: int | None, count: int
) -> None:
    assert at_once(answer_bytes) == count


def test_they_are_begun_in_their_order_as_earlier_ones_are_answered() -> None:
    line = RequestLine()
    assert put(line, ANN, AT_FIRST + 3) == {"begins": AT_FIRST, "waits": 3}
    assert begun(line) == []
    line.answered(ANN, 1 << 20)
    assert begun(line) == [(ANN, AT_FIRST)]


def test_who_brings_much_has_two_begun_and_whoever_else_comes_begins_at_once() -> None:
    line = RequestLine()
    put(line, ANN, 1)
    line.answered(ANN, LARGE)
    assert put(line, ANN, 30) == {"begins": 2, "waits": 28}
    assert put(line, BOB, 30) == {"begins": 30}
    for number in range(2, 30):
        line.answered(ANN, LARGE)
        assert begun(line) == [(ANN, number)]


def test_a_small_answer_in_between_does_not_hide_large_ones() -> None:
    line = RequestLine()
    put(line, ANN, 2)
    line.answered(ANN, LARGE)
    line.answered(ANN, 10)
    assert put(line, ANN, 30) == {"begins": 2, "waits": 28}
    for _ in range(60):
        line.answered(ANN, 10)
        begun(line)
    assert line.has_next() is False
    assert put(line, ANN, AT_ONCE)["begins"] > 2


def test_who_is_known_for_small_answers_has_many_begun() -> None:
    line = RequestLine()
    put(line, ANN, AT_ONCE)
    line.answered(ANN, 10)
    assert len(begun(line)) == AT_ONCE - AT_FIRST
    assert put(line, ANN, 2) == {"begins": 1, "waits": 1}


def test_clients_that_stand_in_line_take_turns() -> None:
    line = RequestLine()
    for client in (ANN, BOB):
        put(line, client, AT_FIRST + 3)
        for _ in range(3):
            line.answered(client, 10)
    assert [client for client, _ in begun(line)] == [ANN, BOB] * 3


def test_nothing_is_begun_for_a_client_that_has_left() -> None:
    line = RequestLine()
    put(line, ANN, AT_FIRST + 3)
    line.left(ANN)
    for _ in range(AT_FIRST):
        line.answered(ANN, 10)
        assert begun(line) == []


def test_what_has_stood_in_line_for_too_long_is_not_begun() -> None:
    line = RequestLine()
    put(line, ANN, AT_FIRST + 2)
    later = Instant(NOW + PATIENCE_NS)
    put(line, ANN, 1, later)
    assert line.late(Instant(later - 1)) == []
    assert [each.request.request for each in line.late(later)] == [AT_FIRST, AT_FIRST + 1]
    line.answered(ANN, 10)
    assert begun(line) == [(ANN, 0)]


def test_one_name_leaves_places_in_the_line_to_others_and_gets_its_own_back() -> None:
    line = RequestLine()
    few = PLACES // 10
    for client in (ANN, BOB, ANN + 2):
        put(line, client, AT_FIRST)
    while line.put(NOW, asked(ANN, 0, few)) == "waits":
        pass
    assert line.put(NOW, asked(ANN + 2, 0, few)) == "is refused"
    assert line.put(NOW, asked(BOB, 0, few)) == "waits"
    line.left(ANN)
    assert line.put(NOW, asked(ANN + 2, 0, few)) == "waits"


class HeldDisk:
    """The disk of a node, which answers when it is told to."""

    def __init__(self, store: StoreEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._do = store._run
        self._held: list[RunStep] | None = []
        self.reads = 0
        monkeypatch.setattr(store, "_run", self._run)

    def _run(self, run: RunStep) -> None:
        self.reads += isinstance(run.step, ReadParts)
        if self._held is None:
            self._do(run)
        else:
            self._held.append(run)

    def go_on(self) -> None:
        held, self._held = self._held, None
        for each in held or ():
            self._do(each)


@pytest.mark.asyncio
async def test_a_node_begins_nothing_for_a_client_that_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = settings_of(tmp_path, 1)
    form_ring(nodes, MAIL)
    opened = asyncio.Event()

    def heard(_node: str, said: ToStoreClient) -> None:
        if isinstance(said, StoreOpened) and said.request == 1:
            opened.set()

    transport = WebSocketTransport(STORE_ROLE)
    transport.start(heard, lambda _node, _why: None)
    async with running(nodes) as [service], asyncio.timeout(DEADLINE_SECONDS):
        disk = HeldDisk(service.store, monkeypatch)
        for number in range(3 * AT_FIRST):
            transport.send(service.url, read(2 + number))
        transport.send(service.url, OpenStore(request=1))
        await opened.wait()  # it has read what came before that
        assert disk.reads == AT_FIRST
        await transport.close()
        await until(lambda: not service.store._clients)
        disk.go_on()
        await come_to_rest(lambda: disk.reads)  # each answer would begin another
        assert service.store.machine.context.room.places.taken == 0
        assert disk.reads == AT_FIRST
