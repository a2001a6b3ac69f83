"""Owners and lookups that come and go, thousands in one process, beside the manager that they test.

They send what the library sends and decide nothing: they ask when it is time or when they are
poked, let go of recalled ranges, and go on at another manager when theirs is gone. They decode
messages only as far as they need them: of a table, only its head.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from time import monotonic
from typing import TypeAlias

import msgspec

from benchmarks import renewal
from benchmarks._packed import PackedSocket
from tenure.base.instants import in_seconds
from tenure.protocol.lease.messages import (
    Held,
    Hello,
    Introduction,
    LeaseRequest,
    LeaseResponse,
    Poke,
    Refusal,
    ShortRequest,
    ShortResponse,
    Sync,
)
from tenure.protocol.lease.timing import Timing
from tenure.wire.lease import decode_to_owner, encode
from tenure.wire.versions import NEWEST

PATIENCE_SECONDS = 5.0
"""How long a client waits for an answer before it asks another manager."""
CONNECT_AGAIN_SECONDS = 0.2
_numbers = count()
Told: TypeAlias = Callable[[int, msgspec.Raw], None]
"""Hears after what, and which entries. A lookup whose entries are heard reads no columns."""


def nobody(_lsn: int, _entries: msgspec.Raw) -> None:
    """Hears nothing."""


class AnswerHead(msgspec.Struct, array_like=True, tag="SyncResponse"):
    """A `SyncResponse` whose lists are left as bytes."""

    sequence: int
    nonce: int
    journal: int
    leadership: int
    lsn: int
    kind: str
    snapshot: bool
    entries: msgspec.Raw
    owners: msgspec.Raw
    sync_ns: int
    contact_ns: int
    receipt: bytes = b""


class PushHead(msgspec.Struct, array_like=True, tag="Changes"):
    """The same of `Changes`."""

    pool: str
    journal: int
    leadership: int
    after: int
    lsn: int
    entries: msgspec.Raw
    owners: msgspec.Raw
    receipt: bytes = b""


class NoPoolHead(msgspec.Struct, array_like=True, tag="SyncRefusal"):
    """Raised while the pool does not exist yet."""


class StandbyHead(msgspec.Struct, array_like=True, tag="Standby"):
    """It does not lead."""


_head = msgspec.msgpack.Decoder(AnswerHead | PushHead | NoPoolHead | StandbyHead).decode


class Seen:
    """The observations of one pool's clients, for the report."""

    def __init__(self) -> None:
        self.answer_seconds: list[float] = []
        """The time of every renewal, from asking to its answer."""
        self.longest_gap = 0.0
        """The longest time between two questions of one owner that were answered."""
        self.lapsed = 0
        """How often a term ran out."""
        self.tables = 0
        """How many tables lookups were told as a whole."""

    def begin(self) -> None:
        """Begin to count from here on."""
        self.answer_seconds.clear()
        self.longest_gap, self.lapsed, self.tables = 0.0, 0, 0

    def copy(self) -> "Seen":
        """A copy of what was seen so far."""
        copied = Seen()
        copied.answer_seconds += self.answer_seconds
        copied.longest_gap, copied.lapsed = self.longest_gap, self.lapsed
        copied.tables = self.tables
        return copied


class LiveClient(ABC):
    """A client that goes from manager to manager, until it ends."""

    def __init__(self, urls: Sequence[str], timing: Timing, seen: Seen) -> None:
        self._urls = list(urls)
        self._timing = timing
        self._seen = seen
        self.is_in = asyncio.Event()
        self._socket: PackedSocket | None = None
        self.task = asyncio.get_running_loop().create_task(self._live())

    def crash(self) -> None:
        """Go without a word."""
        self.task.cancel()
        if self._socket is not None:
            self._socket.close()

    async def _live(self) -> None:
        while True:
            with suppress(ConnectionError, TimeoutError, OSError):
                await self._at(self._urls[0])
            self._urls.append(self._urls.pop(0))
            await asyncio.sleep(CONNECT_AGAIN_SECONDS)

    @abstractmethod
    async def _at(self, url: str) -> None:
        """Speak with one manager until it is gone."""


class LiveOwner(LiveClient):
    """One owner, from its beginning to its end."""

    def __init__(self, urls: Sequence[str], timing: Timing, seen: Seen) -> None:
        super().__init__(urls, timing, seen)
        self.self: renewal.Owner | None = None
        """The machine's knowledge; None until it has joined."""
        self._renewed_at = 0.0
        self._again_seconds = 0.0
        """When to ask again, after the question that was answered last."""

    @property
    def held(self) -> tuple[Held, ...]:
        return self.self.held if self.self is not None else ()

    async def leave(self) -> None:
        """Give everything back, and go."""
        self.task.cancel()
        await asyncio.wait([self.task])
        if self.self is not None and self._socket is not None and not self._socket.ended:
            self.self.held = ()
            leaving = msgspec.structs.replace(self.self._request(), leaving=True)
            await self._socket.send_bytes(encode(leaving, NEWEST))
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await self.self._answer()
        self.crash()

    async def _at(self, url: str) -> None:
        socket = self._socket = await PackedSocket.connect(url + "/v1/owner")
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._meet(socket)
            self._renewed_at = self._renewed_at or monotonic()
            self.is_in.set()
            while True:
                asked_at, is_over = monotonic(), await self._renew()
                if is_over:
                    await self._wait(asked_at + self._again_seconds - monotonic())
        finally:
            socket.close()

    async def _meet(self, socket: PackedSocket) -> None:
        if self.self is None:
            owner = renewal.Owner(next(_numbers), socket)
            with suppress(AssertionError):  # a standby does not introduce itself
                await owner.join()
                self.self = owner
                return
            raise ConnectionError("it does not lead")
        self.self.socket = socket
        self.self.told = b""
        await socket.send_bytes(encode(Hello(pool=self.self.pool, token=1), NEWEST))
        answer = await self.self.hear()
        if not isinstance(answer, Introduction):
            raise ConnectionError("it does not lead")
        self.self.seal = answer

    async def _renew(self) -> bool:
        """Ask once; False if it must ask again at once."""
        owner = self.self
        assert owner is not None
        asked_at = monotonic()
        whole = msgspec.structs.replace(owner._request(), knows_former=True)
        request: LeaseRequest | ShortRequest = whole
        if owner.held and owner.is_settled():
            request = renewal.in_short(whole, owner.told)
        await owner.socket.send_bytes(encode(request, NEWEST))
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer = await owner._answer()
        if isinstance(answer, Introduction):
            owner.seal, owner.told = answer, b""
            return False
        if isinstance(answer, Refusal) and answer.reason == "past":
            self._seen.lapsed += 1
            self.self = None  # it is another when it comes again, as an owner of the library is
        if not isinstance(answer, LeaseResponse | ShortResponse):
            raise ConnectionError(f"it says {answer}")
        owner.receipt = answer.receipt
        self._again_seconds = in_seconds(answer.renew_ns)
        self._note(asked_at)
        if isinstance(answer, ShortResponse):
            return True
        owner.held = tuple(
            Held(start=lease.start, end=lease.end, number=lease.number)
            for lease in answer.leases
            if lease.mark != "recalled"
        )
        owner.told = answer.fingerprint
        return len(owner.held) == len(answer.leases)

    def _note(self, asked_at: float) -> None:
        seen, gap = self._seen, asked_at - self._renewed_at
        seen.answer_seconds.append(monotonic() - asked_at)
        seen.longest_gap = max(seen.longest_gap, gap)
        seen.lapsed += gap > in_seconds(self._timing.term_ns)
        self._renewed_at = asked_at

    async def _wait(self, seconds: float) -> None:
        """Wait until the manager pokes, or until it is time to ask."""
        owner = self.self
        assert owner is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not isinstance(
                    decode_to_owner(await owner.socket.receive_bytes(), NEWEST), Poke
                ):
                    pass


class LiveLookup(LiveClient):
    """One lookup, from its beginning to its end."""

    def __init__(
        self,
        urls: Sequence[str],
        timing: Timing,
        seen: Seen,
        told: Told = nobody,
    ) -> None:
        super().__init__(urls, timing, seen)
        self._nonce = next(_numbers) + 1
        self._sequence = 0
        self.lsn = 0
        self._known = (0, 0, b"")
        self._again_seconds = 0.0
        self._answered = asyncio.Event()
        self._told = told

    async def leave(self) -> None:
        """Leave as in a crash: nobody waits for a lookup."""
        self.crash()

    async def _at(self, url: str) -> None:
        socket = self._socket = await PackedSocket.connect(url + "/v1/lookup")
        socket.heard = self._hear
        try:
            while not socket.ended:
                asked_at = monotonic()
                await self._ask(socket)
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await self._answered.wait()
                left = self._again_seconds - (monotonic() - asked_at)
                await asyncio.wait([socket.is_gone], timeout=max(left, 0))
        finally:
            socket.close()

    async def _ask(self, socket: PackedSocket) -> None:
        self._answered.clear()
        self._sequence += 1
        journal, leadership, receipt = self._known
        asked = Sync(
            pool="bench",
            sequence=self._sequence,
            journal=journal,
            leadership=leadership,
            lsn=self.lsn,
            nonce=self._nonce,
            receipt=receipt,
            reads_columns=self._told is nobody,
        )
        await socket.send_bytes(encode(asked, NEWEST))

    def _hear(self, data: bytes) -> None:
        message = _head(memoryview(data)[1:])
        match message:
            case AnswerHead():
                self._known = message.journal, message.leadership, message.receipt
                self._again_seconds = in_seconds(message.sync_ns)
                self.lsn = message.lsn
                self._seen.tables += message.snapshot
                self._answered.set()
                self.is_in.set()
            case PushHead():
                self.lsn = max(self.lsn, message.lsn)
            case StandbyHead() if self._socket is not None:
                self._socket.transport.abort()
                return
            case _:
                return
        self._told(self.lsn, message.entries)


@asynccontextmanager
async def clients(
    urls: Sequence[str],
    timing: Timing,
    owners: int,
    lookups: int,
    seen: Seen,
    told: Told = nobody,
) -> AsyncIterator[tuple[list[LiveOwner], list[LiveLookup]]]:
    """That many of each kind, once all of them have joined and nothing moves any longer; they are
    ended afterwards.

    `told` hears all that lookups are told: after what, and its entries.
    """
    made = [LiveOwner(urls, timing, seen) for _ in range(owners)]
    readers: list[LiveLookup] = []
    try:
        await asyncio.gather(*(each.is_in.wait() for each in made))
        await settled(made)
        period = in_seconds(timing.sync_ns)
        for _ in range(lookups):  # one after another, as they stay
            readers.append(LiveLookup(urls, timing, seen, told))
            await asyncio.sleep(min(period / lookups, 0.005))
        await asyncio.gather(*(each.is_in.wait() for each in readers))
        yield made, readers
    finally:
        everybody: list[LiveOwner | LiveLookup] = [*made, *readers]
        for each in everybody:
            each.crash()
        await asyncio.wait([each.task for each in everybody])


async def settled(owners: Sequence[LiveOwner]) -> None:
    """Wait until each holds something, and all that they list is renewed."""
    while not all(  # noqa: ASYNC110 - each has a task of its own
        each.self and each.held and each.self.is_settled() for each in owners
    ):
        await asyncio.sleep(0.1)
