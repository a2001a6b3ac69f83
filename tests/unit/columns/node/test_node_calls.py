"""How a handle has a request answered: by nodes that are gone, silent, cut off or behind."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest

from tenure.columns.backends.cluster import ClusterBackend
from tenure.columns.backends.silences import SilentNodes
from tenure.columns.requests import RowMutation
from tenure.columns.tables import Family, Table
from tenure.columns.writes import RowWrite
from tenure.errors import (
    Fenced,
    NotEnoughReplicas,
    SchemaError,
    TenureError,
    Unreachable,
    WriteUnknown,
)
from tenure.protocol.replication.clock import WriteClock
from tenure.protocol.replication.messages import (
    DrawVersion,
    Failed,
    FailedWhy,
    NotWritten,
    PageFound,
    ReadColumn,
    RowWritten,
    VersionDrawn,
    WriteRow,
)
from tenure.protocol.replication.openings import OpenStore, StoreOpened
from tenure.protocol.replication.row.admission import Attempt, Late, Outranked
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.pages import CellPage
from tenure.protocol.replication.row.versions import Version
from tenure.transport.contract import Lost
from tenure.wire.columns import ToStoreClient
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio
MAIL = Table("mail", profile=Family(columns=str))
MUTATION = RowMutation(MAIL, b"k", [Edit("profile", None, b"n", b"v")])
URLS = ["http://n1", "http://n2", "http://n3"]


class NodesAtHand:
    """A transport to nodes that open every store; subclasses say what they do with writes."""

    def __init__(self) -> None:
        self.writes: list[tuple[str, Attempt]] = []
        self.on_bytes: Callable[[str], None] | None = None

    def start(self, deliver: Callable[[str, ToStoreClient], None], lost: Lost) -> None:
        self._deliver, self._lost = deliver, lost

    def send(self, node: str, message: msgspec.Struct) -> None:
        if isinstance(message, OpenStore):
            opened = StoreOpened(
                request=message.request, cluster="mail", id=9, addresses=(), tables={}
            )
            self.answer(node, opened)
        elif isinstance(message, DrawVersion):
            drawn = VersionDrawn(request=message.request, version=Version(0, 2_000), newest=1)
            self.answer(node, drawn)
        else:
            assert isinstance(message, WriteRow)
            self.writes.append((node, message.attempt))
            self.on_write(node, message)

    def on_write(self, node: str, message: WriteRow) -> None:
        raise NotImplementedError

    def answer(self, node: str, answer: ToStoreClient) -> None:
        asyncio.get_running_loop().call_soon(self._deliver, node, answer)

    def lose(self, node: str) -> None:
        asyncio.get_running_loop().call_soon(self._lost, node, "it is gone")

    async def close(self) -> None:
        pass


@asynccontextmanager
async def opened(
    transport: NodesAtHand, urls: Sequence[str] = URLS, patience_seconds: float = 0.5
) -> AsyncIterator[ClusterBackend]:
    backend = ClusterBackend(urls, [MAIL], transport, patience_seconds)
    await backend.open()
    try:
        yield backend
    finally:
        await backend.close()


class Unanswering(NodesAtHand):
    """Nodes of which the first that has a write is gone."""

    def __init__(self, loses: int = 1, then: ToStoreClient | None = None) -> None:
        super().__init__()
        self.loses = loses
        self.then = then
        """What the next one answers; otherwise that it has written."""

    def on_write(self, node: str, message: WriteRow) -> None:
        if len(self.writes) <= self.loses:
            self.lose(node)
        else:
            then = self.then or RowWritten(request=0)
            self.answer(node, msgspec.structs.replace(then, request=message.request))


async def write(backend: ClusterBackend, mutation: RowMutation = MUTATION) -> Version:
    return await RowWrite(backend, WriteClock(), lambda: 1_000, mutation)


async def test_a_node_whose_large_answer_is_on_its_way_is_not_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(SilentNodes, "on_heard", lambda _, node: heard.append(node))
    transport = NodesAtHand()
    async with opened(transport):
        heard.clear()
        assert transport.on_bytes is not None
        transport.on_bytes(URLS[0])
        assert heard == URLS[:1]


class LateAnswers(NodesAtHand):
    """Nodes that seem to be gone, of which the first has the column all the same."""

    def __init__(self, answer: Callable[[int], ToStoreClient]) -> None:
        super().__init__()
        self.asked: list[tuple[str, int]] = []
        self._late = answer

    def send(self, node: str, message: msgspec.Struct) -> None:
        if not isinstance(message, ReadColumn):
            super().send(node, message)
            return
        self.asked.append((node, message.request))
        first, number = self.asked[0]
        if node == first:
            self.lose(node)
        else:
            self.answer(first, self._late(number))


READ = ReadColumn(table="mail", key=b"k", family="profile", name=b"n")


async def test_what_the_first_node_that_was_asked_answers_late_counts() -> None:
    transport = LateAnswers(lambda number: PageFound(request=number, page=CellPage(())))
    async with opened(transport) as backend:
        assert (await backend.read(READ)).cells == ()
        assert len({node for node, _ in transport.asked}) == 2


async def test_why_an_earlier_node_has_failed_says_nothing_of_the_present_one() -> None:
    transport = LateAnswers(lambda number: Failed(request=number, why="too few replicas"))
    async with opened(transport) as backend:
        with pytest.raises(Unreachable):
            await backend.read(READ)


async def test_a_write_that_was_not_answered_is_repeated_with_its_version() -> None:
    transport = Unanswering()
    async with opened(transport) as backend:
        version = await write(backend)
    (one, first), (other, second) = transport.writes
    assert one != other
    assert second == first
    assert version == first.version == Version(0, 2_000)
    assert first.above == 1


@pytest.mark.parametrize(
    "answer",
    [
        Failed(request=0, why="too few replicas"),
        Failed(request=0, why="overloaded"),
        NotWritten(request=0, refused=Late(9)),
    ],
    ids=["too few replicas", "overloaded", "late"],
)
async def test_what_another_node_has_had_is_not_said_to_be_nowhere(answer: ToStoreClient) -> None:
    """The third history: the node that had the write is lost, and the next one refuses it."""
    transport = Unanswering(then=answer)
    async with opened(transport) as backend:
        with pytest.raises(WriteUnknown) as unknown:
            await write(backend)
        again = unknown.value.write
        assert isinstance(again, RowWrite)
        assert again.version == Version(0, 2_000)
        transport.then = None
        assert await again.repeat() == Version(0, 2_000)


async def test_a_former_owners_write_that_another_node_has_had_may_be_found_by_the_next() -> None:
    transport = Unanswering(then=NotWritten(request=0, refused=Outranked(7, 1)))
    mutation = RowMutation(MAIL, b"k", MUTATION.edits, number=5, journal=1)
    async with opened(transport) as backend:
        with pytest.raises(Fenced, match="some replicas may have the write"):
            await write(backend, mutation)


async def test_where_no_node_is_left_nobody_knows_of_the_write() -> None:
    async with opened(Unanswering(loses=1_000)) as backend:
        with pytest.raises(WriteUnknown, match="it is gone"):
            await write(backend)
        with pytest.raises(WriteUnknown, match="it is gone"):
            await backend.write(MUTATION, Attempt(Version(0, 5)))


class Lagging(NodesAtHand):
    """A node that does not know the table until it was asked a few times."""

    def __init__(self) -> None:
        super().__init__()
        self.lags = 3

    def on_write(self, node: str, message: WriteRow) -> None:
        unheard = Failed(request=message.request, why="no such table", detail="mail")
        self.lags -= 1
        self.answer(node, RowWritten(request=message.request) if self.lags < 0 else unheard)


async def test_a_node_that_has_not_heard_of_a_table_yet_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The handle has made the table by another node, which has ended since."""
    monkeypatch.setattr("tenure.columns.backends.node_calls.PAUSE_SECONDS", 0.01)
    transport = Lagging()
    async with opened(transport, URLS[:1], DEADLINE_SECONDS) as backend:
        attempt = Attempt(Version(0, 5))
        assert await backend.write(MUTATION, attempt) is None
        assert [each for _, each in transport.writes] == [attempt] * 4
        transport.lags = 1_000
        monkeypatch.setattr("tenure.columns.backends.node_calls.LAG_SECONDS", 0.05)
        with pytest.raises(SchemaError, match="the cluster has no such table: mail"):
            await backend.write(MUTATION, attempt)


class CutOff(NodesAtHand):
    """Nodes of which some do not reach enough replicas."""

    def __init__(self, cut: Sequence[str], why: FailedWhy = "too few replicas") -> None:
        super().__init__()
        self.cut, self.why = cut, why

    def on_write(self, node: str, message: WriteRow) -> None:
        answer: ToStoreClient = RowWritten(request=message.request)
        if node in self.cut:
            answer = Failed(request=message.request, why=self.why)
        self.answer(node, answer)


@pytest.mark.parametrize("why", ["too few replicas", "unavailable", "unknown"])
async def test_a_node_that_is_cut_off_itself_fails_no_write(why: FailedWhy) -> None:
    """Whether it has convicted the others already, or has waited for them in vain."""
    for cut in (URLS[:1], URLS[:2]):
        transport = CutOff(cut, why)
        async with opened(transport) as backend:
            assert await backend.write(MUTATION, Attempt(Version(0, 5))) is None
            transport.writes.clear()
            assert await backend.write(MUTATION, Attempt(Version(0, 6))) is None
        assert [node for node, _ in transport.writes] != cut, "it is not asked again at once"
        assert len(transport.writes) == 1


@pytest.mark.parametrize(
    ("why", "error"), [("too few replicas", NotEnoughReplicas), ("unknown", WriteUnknown)]
)
async def test_a_write_fails_when_three_nodes_say_the_same(
    why: FailedWhy, error: type[TenureError]
) -> None:
    transport = CutOff(URLS, why)
    async with opened(transport) as backend:
        with pytest.raises(error):
            await backend.write(MUTATION, Attempt(Version(0, 5)))
    assert sorted(node for node, _ in transport.writes) == URLS


async def test_a_write_that_one_node_knows_nothing_of_stays_unknown() -> None:
    """The first one may have sent it to replicas that the others do not reach."""

    class Mixed(NodesAtHand):
        def on_write(self, node: str, message: WriteRow) -> None:
            why: FailedWhy = "unknown" if len(self.writes) == 1 else "too few replicas"
            self.answer(node, Failed(request=message.request, why=why))

    async with opened(Mixed()) as backend:
        with pytest.raises(WriteUnknown):
            await backend.write(MUTATION, Attempt(Version(0, 5)))


class Quiet(NodesAtHand):
    """The first node that is asked to write does not do so until it was probed three times. If it
    is stopped, it does not answer those probes either.
    """

    def __init__(self, *, is_stopped: bool) -> None:
        super().__init__()
        self.is_stopped = is_stopped
        self.probes = 0
        self._held: list[msgspec.Struct] = []

    def send(self, node: str, message: msgspec.Struct) -> None:
        if not self.writes or node != self.writes[0][0]:
            super().send(node, message)
            return
        self.probes += isinstance(message, OpenStore)
        if self.is_stopped or isinstance(message, WriteRow):
            self._held.append(message)
        else:
            super().send(node, message)
        if self.probes == 3:
            self.is_stopped = False
            for each in self._held:
                super().send(node, each)

    def on_write(self, node: str, message: WriteRow) -> None:
        if self.probes >= 3 or node != self.writes[0][0]:
            self.answer(node, RowWritten(request=message.request))
        else:
            self._held.append(message)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.columns.backends.silences.QUIET_SECONDS", 0.02)
    monkeypatch.setattr("tenure.columns.backends.silences.PROBED_SECONDS", 0.02)


@pytest.mark.usefixtures("impatient")
async def test_another_node_is_asked_if_one_says_nothing_at_all() -> None:
    transport = Quiet(is_stopped=True)
    async with opened(transport, URLS, DEADLINE_SECONDS) as backend:
        assert await backend.write(MUTATION, Attempt(Version(0, 5))) is None
        assert transport.probes == 1
        silent = transport.writes[0][0]
        assert await backend.write(MUTATION, Attempt(Version(0, 6))) is None
    assert [node for node, _ in transport.writes].count(silent) == 1


@pytest.mark.usefixtures("impatient")
async def test_a_node_that_is_only_slow_with_a_row_is_waited_for() -> None:
    transport = Quiet(is_stopped=False)
    async with opened(transport, URLS, DEADLINE_SECONDS) as backend:
        assert await backend.write(MUTATION, Attempt(Version(0, 5))) is None
    assert transport.probes >= 3
    assert {node for node, _ in transport.writes} == {transport.writes[0][0]}


@pytest.mark.usefixtures("impatient")
async def test_a_node_without_another_is_waited_for_until_it_comes_back() -> None:
    transport = Quiet(is_stopped=True)
    async with opened(transport, URLS[:1], DEADLINE_SECONDS) as backend:
        assert await backend.write(MUTATION, Attempt(Version(0, 5))) is None
    assert transport.probes >= 3
    assert transport.writes == [("http://n1", Attempt(Version(0, 5)))] * 2, "sent once, held once"
