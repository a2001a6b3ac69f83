"""A small server of CQL's protocol, version 4, on loopback: it answers what `cql_answers` does.

Version 4 is spoken by Cassandra since 2.2 and by ScyllaDB. Frames and values are as its
specification says; of what clients may ask for, this has what the driver does for the backend.
"""

import asyncio
import struct
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any

from tests.integration.cassandra.cql_answers import TYPES, Model, Refused, Statement, read

RESPONSE = 0x84
ERROR, READY, OPTIONS, SUPPORTED, STARTUP = 0x00, 0x02, 0x05, 0x06, 0x01
QUERY, RESULT, PREPARE, EXECUTE, REGISTER, BATCH = 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0D
VOID, ROWS, SET_KEYSPACE, PREPARED, CHANGED = 1, 2, 3, 4, 5
PROTOCOL_ERROR, INVALID, WRITE_TIMEOUT = 0x000A, 0x2200, 0x1100
HASHED = "org.apache.cassandra.dht.Murmur3Partitioner"
ORDERED = "org.apache.cassandra.dht.ByteOrderedPartitioner"
DRIVER_OPTIONS = {
    "protocol_version": 4,
    "schema_metadata_enabled": False,
    "token_metadata_enabled": False,
}
"""It describes neither its tables nor a ring."""
WITH_VALUES = 0x01
CODES: dict[str, tuple[int, Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    "blob": (3, bytes, bytes),
    "text": (13, str.encode, bytes.decode),
    "bigint": (2, struct.Struct(">q").pack, lambda data: struct.unpack(">q", data)[0]),
    "int": (9, struct.Struct(">i").pack, lambda data: struct.unpack(">i", data)[0]),
    "boolean": (4, struct.Struct(">?").pack, lambda data: struct.unpack(">?", data)[0]),
    "inet": (16, bytes, bytes),
    "uuid": (12, lambda each: each.bytes, lambda data: uuid.UUID(bytes=data)),
}
"""The number of each type, and how its values are encoded and decoded."""


class Frame:
    """The body of a request, read from its beginning."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def number(self, layout: str) -> int:
        (found,) = struct.unpack_from(layout, self._body, self._at)
        self._at += struct.calcsize(layout)
        return int(found)

    def take(self, size: int) -> bytes:
        self._at += size
        return self._body[self._at - size : self._at]

    def long_string(self) -> str:
        return self.take(self.number(">i")).decode()

    def short_bytes(self) -> bytes:
        return self.take(self.number(">H"))

    def values(self) -> list[bytes | None]:
        found: list[bytes | None] = []
        for _ in range(self.number(">H")):
            size = self.number(">i")
            found.append(None if size < 0 else self.take(size))
        return found


class SmallServer:
    """One node, alone in its cluster."""

    def __init__(self, partitioner: str) -> None:
        self.model = Model(partitioner)
        self.port = 0
        self.keyspace = ""
        """The keyspace that the test is to use."""
        self.statements: list[str] = []
        """All that were executed, as text."""
        self.levels: list[int] = []
        """The consistency of each of them, as its frame had it."""
        self.fails: Callable[[str], int | None] = lambda _: None
        """Says of a statement the number of an error, which is answered after it took effect."""
        self.holds: Callable[[str], bool] = lambda _: False
        """Says of a statement whether it is carried out only when `let_go` is called: its sender
        has waited in vain by then.
        """
        self._held: list[list[tuple[Statement, list[Any]]]] = []
        self._prepared: dict[bytes, Statement] = {}
        self._talking: set[asyncio.StreamWriter] = set()
        self._listening: asyncio.Server
        self._loop: asyncio.AbstractEventLoop

    async def listen(self) -> None:
        """Answer every client: at a port that the system gives, and later at the same one."""
        self._loop = asyncio.get_running_loop()
        self._listening = await asyncio.start_server(self.talk, "127.0.0.1", self.port)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def hang_up(self) -> None:
        """Answer nobody any more, in the middle of whatever was asked."""
        self._listening.close()
        for each in self._talking:
            each.transport.abort()

    def cut(self) -> None:
        """Called from another thread: be away like a server that was killed. The server keeps what
        it has.
        """
        asyncio.run_coroutine_threadsafe(self.hang_up(), self._loop).result()

    def come_again(self) -> None:
        """Called from another thread: be there again."""
        asyncio.run_coroutine_threadsafe(self.listen(), self._loop).result()

    def let_go(self) -> None:
        """Called from another thread: carry out the write that was held."""

        async def run() -> None:
            held, self._held = self._held, []
            for parts in held:
                self.model.batch(parts)

        asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection until it ends."""
        self._talking.add(writer)
        try:
            while header := await reader.readexactly(9):
                _, _, stream, opcode, size = struct.unpack(">BBhBi", header)
                kind, body = self._answer(opcode, Frame(await reader.readexactly(size)))
                writer.write(struct.pack(">BBhBi", RESPONSE, 0, stream, kind, len(body)) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._talking.discard(writer)
            writer.close()

    def _answer(self, opcode: int, frame: Frame) -> tuple[int, bytes]:
        try:
            match opcode:
                case _ if opcode in (STARTUP, REGISTER):
                    return READY, b""
                case _ if opcode == OPTIONS:
                    return SUPPORTED, _string_lists({"CQL_VERSION": ["3.4.5"], "COMPRESSION": []})
                case _ if opcode == PREPARE:
                    return RESULT, self._prepare(frame.long_string())
                case _ if opcode == QUERY:
                    statement = read(frame.long_string())
                    return self._run([(statement, [])], frame.number(">H"))
                case _ if opcode == EXECUTE:
                    return self._execute(frame)
                case _ if opcode == BATCH:
                    return self._batch(frame)
                case _:
                    return _error(PROTOCOL_ERROR, f"opcode {opcode}")
        except Refused as error:
            return _error(INVALID, str(error))

    def _prepare(self, text: str) -> bytes:
        statement = read(text)
        number = uuid.uuid5(uuid.NAMESPACE_URL, text).bytes
        self._prepared[number] = statement._replace(text=text)
        bound = [
            (name, TYPES[name.removeprefix("token(").removesuffix(")")])
            for name in statement.markers()
        ]
        described = struct.pack(">iii", 1, len(bound), 0) + _string("k") + _string("t")
        return (
            struct.pack(">i", PREPARED)
            + struct.pack(">H", len(number))
            + number
            + described
            + b"".join(_string(name) + struct.pack(">H", CODES[kind][0]) for name, kind in bound)
            + struct.pack(">ii", 4, 0)
        )

    def _execute(self, frame: Frame) -> tuple[int, bytes]:
        statement = self._prepared[frame.short_bytes()]
        level = frame.number(">H")
        values = frame.values() if frame.number(">B") & WITH_VALUES else []
        return self._run([(statement, values)], level)

    def _batch(self, frame: Frame) -> tuple[int, bytes]:
        frame.number(">B")
        parts = []
        for _ in range(frame.number(">H")):
            assert frame.number(">B") == 1, "a batch of what was not prepared"
            parts.append((self._prepared[frame.short_bytes()], frame.values()))
        return self._run(parts, frame.number(">H"))

    def _run(
        self, parts: list[tuple[Statement, list[bytes | None]]], level: int
    ) -> tuple[int, bytes]:
        decoded = [(part, _decoded(part, values)) for part, values in parts]
        text = "; ".join(part.text for part, _ in parts)
        self.statements.append(text)
        self.levels.append(level)
        if self.holds(text):
            self._held.append(decoded)
            return _error(WRITE_TIMEOUT, "no answer came in time")
        (first, values), *more = decoded
        rows = self.model.batch(decoded) if more else self.model.execute(first, values)
        if (failure := self.fails(text)) is not None:
            return _error(failure, "as the test wants it")
        if first.verb == "USE":
            return RESULT, struct.pack(">i", SET_KEYSPACE) + _string(first.table.strip('"'))
        if first.verb in ("CREATE", "DROP"):
            changed = (_string(each) for each in ("CREATED", "KEYSPACE", "k"))
            return RESULT, struct.pack(">i", CHANGED) + b"".join(changed)
        if first.verb == "SELECT" and not more:
            return RESULT, _rows(first.columns, rows)
        return RESULT, _rows(tuple(rows[0]), rows) if rows else struct.pack(">i", VOID)


def _decoded(part: Statement, values: Sequence[bytes | None]) -> list[Any]:
    kinds = [TYPES[name.removeprefix("token(").removesuffix(")")] for name in part.markers()]
    return [
        None if value is None else CODES[kind][2](value)
        for kind, value in zip(kinds, values, strict=True)
    ]


def _rows(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> bytes:
    kinds = [TYPES[name] for name in columns]
    out = struct.pack(">iii", ROWS, 1, len(columns)) + _string("k") + _string("t")
    out += b"".join(
        _string(name) + struct.pack(">H", CODES[kind][0])
        for name, kind in zip(columns, kinds, strict=True)
    )
    out += struct.pack(">i", len(rows))
    for row in rows:
        for name, kind in zip(columns, kinds, strict=True):
            value = row[name]
            encoded = None if value is None else CODES[kind][1](value)
            out += struct.pack(">i", -1 if encoded is None else len(encoded)) + (encoded or b"")
    return out


def _error(number: int, said: str) -> tuple[int, bytes]:
    more = struct.pack(">Hii", 8, 0, 1) + _string("CAS") if number == WRITE_TIMEOUT else b""
    return ERROR, struct.pack(">i", number) + _string(said) + more


def _string(text: str) -> bytes:
    return struct.pack(">H", len(text.encode())) + text.encode()


def _string_lists(lists: dict[str, list[str]]) -> bytes:
    out = struct.pack(">H", len(lists))
    for name, texts in lists.items():
        out += _string(name) + struct.pack(">H", len(texts)) + b"".join(map(_string, texts))
    return out


@contextmanager
def small_server(partitioner: str = HASHED) -> Iterator[SmallServer]:
    """One that runs, in a thread of its own, on a port that the system gave."""
    server = SmallServer(partitioner)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(server.listen())
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(server.hang_up())
        for task in asyncio.all_tasks(loop):
            task.cancel()
            loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()
