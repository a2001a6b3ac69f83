"""The users of entities: tasks in each process that call, repeat, read, and talk over sockets."""

import asyncio
from collections import deque
from typing import Any

import msgspec

from lab.worlds.entity.entries import PlacedOp, Point, Shown
from lab.worlds.entity.ledger import Failure
from lab.worlds.entity.site import LedgerProcess
from tenure.entities.edge import FAILED
from tenure.errors import TenureError, UsageError
from tenure.sim.kernel.checkers import Violation

CALLERS = 2
TALKERS = 2
READERS = 3
REMEMBERED = 10
"""Calls that may be made again."""
AGAIN_SECONDS = 120.0
ID_BYTES = 12
_entry = msgspec.msgpack.Decoder(PlacedOp).decode
KINDS = ("add",) * 6 + ("alarm",) * 3 + ("fail", "twice", "forward", "look", "look", "repeat")
GLANCES = (1, 1, 2, 5)
"""How often somebody looks at the last operation, one time after the other."""
LATER = 0.1
"""How often somebody waits for a later one."""


class LedgerUsers:
    """The users in one process."""

    def __init__(self, process: LedgerProcess) -> None:
        self._process = process
        self._site = process.site
        self._random = process.random
        self._made: deque[tuple[float, str, str, tuple[Any, ...], bytes]] = deque(maxlen=REMEMBERED)
        self._count = 0
        self.clients: list[ClientSocket] = []

    async def run(self) -> None:
        """Use the entities until this is cancelled."""
        users = [self._call_often() for _ in range(CALLERS)]
        if self._site.reads != "owner":
            users += [self._glance_often() for _ in range(READERS)]
        await asyncio.gather(*users, *(self._talk_often() for _ in range(TALKERS)))

    def _new_name(self) -> str:
        self._count += 1
        return f"{self._process.slot}.{self._process.uid}-{self._count}"

    async def _pause(self, terms: float) -> None:
        await asyncio.sleep(self._random.expovariate(1.0) * terms * self._site.term)
        while self._site.is_quiet:  # noqa: ASYNC110  # the world says when, and knows no loop
            await asyncio.sleep(self._site.term / 10)

    # --- calls ---

    async def _call_often(self) -> None:
        while True:
            await self._pause(self._site.calls_apart)
            await self._call(self._random.choice(KINDS))

    async def _call(self, kind: str) -> None:
        key, op = self._random.choice(self._site.keys), self._new_name()
        arguments: tuple[Any, ...] = (op,)
        match kind:
            case "look":
                await self.look(key)
                return
            case "repeat":
                # An older one may be done again: its answer is kept for ten minutes.
                horizon = asyncio.get_running_loop().time() - AGAIN_SECONDS
                recent = [each for each in self._made if each[0] > horizon]
                if recent:
                    _, key, kind, arguments, id_ = self._random.choice(recent)
                    # A repeated call gets its first answer, which may be older than what is known
                    # by now.
                    await self._ask(key, kind, arguments, id_, Point())
                return
            case "alarm":
                kind, arguments = "add", (op, self._random.random() * self._site.term)
            case "forward":
                arguments = op, self._random.choice(self._site.keys)
        id_ = self._random.randbytes(ID_BYTES)
        self._made.append((asyncio.get_running_loop().time(), key, kind, arguments, id_))
        await self._ask(key, kind, arguments, id_, self._site.judge.newest(key))

    async def _ask(
        self, key: str, kind: str, arguments: tuple[Any, ...], id_: bytes, after: Point
    ) -> None:
        station, checkers = self._process.entities.station, self._site.judge
        method = station.kind.method(kind)
        asked_at = self._site.now
        is_circle = kind == "forward" and arguments[1] == key
        self._site.count(kind)
        try:
            answer = await station.caller.call(key, kind, method.encode(arguments, {}), id_)
        except UsageError:
            if not is_circle:
                raise
        except Failure:
            self._site.count("raised")
        except TenureError as error:
            self._site.count(type(error).__name__)
        else:
            if is_circle or kind == "fail":
                raise Violation("calls", f"{kind} {arguments} was answered")
            by = self._process.told.name
            checkers.see(key, method.arrived(answer), after, asked_at, by)

    async def look(self, key: str) -> Shown | None:
        """Read."""
        after, asked_at = self._site.judge.newest(key), self._site.now
        try:
            shown: Shown = await self._process.entities[key].look()
        except TenureError as error:
            self._site.count(f"look: {type(error).__name__}")
            return None
        self._site.judge.see(key, shown.last, after, asked_at, self._process.told.name)
        return shown

    async def _glance_often(self) -> None:
        while True:
            await self._pause(self._site.calls_apart / 2)
            key = self._random.choice(self._site.keys)
            for _ in range(self._random.choice(GLANCES)):
                await self.glance(key, waits=self._random.random() < LATER)
                await asyncio.sleep(self._random.random() * self._site.term / 20)

    async def glance(self, key: str, *, waits: bool) -> PlacedOp | None:
        """Read the last operation only, which any process may have a copy of."""
        ledger = self._process.entities[key]
        after, asked_at = self._site.judge.newest(key), self._site.now
        try:
            entry: PlacedOp = await (ledger.later(after.place) if waits else ledger.glance())
        except (TenureError, TimeoutError) as error:
            self._site.count(f"glance: {type(error).__name__}")
            return None
        self._site.judge.see(key, entry, after, asked_at, self._process.told.name)
        self._site.count("glance")
        return entry

    # --- sockets ---

    async def _talk_often(self) -> None:
        while True:
            await self._pause(self._site.calls_apart)
            client = ClientSocket(self._process, self._random.choice(self._site.keys))
            self.clients.append(client)
            talking = asyncio.ensure_future(self._talk(client))
            try:
                await self._process.entities[client.key].attach(client, self._new_name())
            finally:
                talking.cancel()
                client.is_over = True
                self.clients.remove(client)
            self._site.count(f"closed with {client.code}")

    async def _talk(self, client: "ClientSocket") -> None:
        number = 0
        while self._random.random() < 0.9:
            await self._pause(self._site.calls_apart)
            for _ in range(self._random.choice((1, 1, 1, 6))):
                number += 1
                client.say(f"{number} {self._new_name()}")
            if self._random.random() < 0.05:
                client.stops_reading(self._site.term)
        await self._pause(1.0)
        client.leave()


class ClientSocket:
    """A WebSocket as Starlette has it, with its client."""

    def __init__(self, process: LedgerProcess, key: str) -> None:
        self.key = key
        self.code = 0
        self.last: PlacedOp | None = None
        self.is_over = False
        self._process = process
        self._said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._reads_at = 0.0

    def say(self, text: str) -> None:
        """The client sends this text."""
        self._said.put_nowait({"type": "websocket.receive", "text": text})

    def leave(self) -> None:
        """The client leaves."""
        self._said.put_nowait({"type": "websocket.disconnect", "code": 1000})

    def stops_reading(self, seconds: float) -> None:
        """The client reads nothing for a while."""
        self._reads_at = asyncio.get_running_loop().time() + seconds

    async def accept(self) -> None: ...

    async def receive(self) -> dict[str, Any]:
        return await self._said.get()

    async def send(self, message: dict[str, Any]) -> None:
        """See `WebSocket`. Frames arrive in order, and each once."""
        wait = self._reads_at - asyncio.get_running_loop().time()
        if wait > 0:
            await asyncio.sleep(wait)
        entry = _entry(message["bytes"])
        last, self.last = self.last, entry
        if self.code or self.is_over:
            self._process.wrong("sockets", f"{entry} comes after the end")
        if last is not None:
            follows = entry.place == last.place + 1
            if not follows or (last.place and entry.epoch != last.epoch):
                self._process.wrong("sockets", f"{entry} follows {last}")
            self._process.see(self.key, entry)
        self._process.site.count("frames")

    async def close(self, code: int) -> None:
        self.code = code
        self.leave()
        if code == FAILED:
            self._process.wrong("sockets", f"{self.key} has failed")
