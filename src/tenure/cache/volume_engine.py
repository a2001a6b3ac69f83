"""Carries out the actions of a volume's server: messages to caches, loads, and bodies of writes.

It receives the messages of caches, and has `load` and `store` called where the application lives.
It decides nothing, and does not know whether its server belongs to an owner or stands alone.
"""

import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from itertools import count
from typing import Any, Protocol, TypeAlias

from tenure.base.instants import Instant
from tenure.base.keys import Key, UserKey
from tenure.base.names import error_shown
from tenure.base.noted import Noted
from tenure.cache.object_keys import ObjectKeys
from tenure.cache.volume_write import AskedWrite
from tenure.client.guard import Guard, Guards
from tenure.client.hand_off.likeness import ValueCodec
from tenure.client.shell import Shell
from tenure.client.unusable import left
from tenure.errors import (
    Busy,
    ClosedError,
    LocalProtocolError,
    NotOwner,
    RemoteProtocolError,
    TenureError,
)
from tenure.protocol.lease.reports import VolumeReport
from tenure.protocol.volume.messages import Invalidate
from tenure.protocol.volume.server.context import VolumeContext
from tenure.protocol.volume.server.events import (
    BodyEnded,
    ClientAsked,
    FailWrite,
    LoadObject,
    ObjectLoaded,
    RunBody,
    ServerEvent,
    TellCache,
    WriteAsked,
    WriteGivenUp,
)
from tenure.protocol.volume.server.readers import label_of
from tenure.protocol.volume.server.report import volume_report
from tenure.transport.doors import Connection
from tenure.wire.volume import (
    SharedItems,
    check_knows_caches,
    decode_to_volume_server,
    encode_volume,
)

VolumeAction: TypeAlias = TellCache | LoadObject | RunBody | FailWrite | Noted
SHOWN_KEYS = 5
"""How many keys of one write the report shows."""
NO_STORE = "this volume has no store: it is written at its server only"


WHAT = "Volume"


class ServedObjects(Protocol):
    """The objects that an engine loads and stores: those of a `Volume`."""

    codec: ValueCodec[Any]
    keys: ObjectKeys
    load: Callable[[Any, int], object]
    store: Callable[[Any, Any, int], object] | None


class VolumeEngine:
    """Carries out what one server's machine decides, in the loop of a shell."""

    def __init__(
        self,
        volume: ServedObjects,
        shell: Shell[Any, Any, Any],
        post: Callable[[ServerEvent], None],
        guards: Guards | None = None,
    ) -> None:
        self._volume = volume
        self._shell = shell
        self._post = post
        self._guards = guards
        """The owner's guards; None for a server that stands alone."""
        self._tickets = count(1)
        self._asked: dict[int, AskedWrite] = {}
        self._of_client: dict[int, Connection] = {}
        self._client_of: dict[Connection, int] = {}
        self.items = SharedItems()
        self._is_ended = False

    # --- the application's writes: see `RunsWrites` ---

    @property
    def is_async(self) -> bool:
        return self._shell.in_loop

    def has_ended(self) -> bool:
        return self._is_ended

    def guard(self, name: UserKey) -> Guard | None:
        """See `RunsWrites`. The key does not move before the body is done."""
        return None if self._guards is None else Guard(self._guards, name, finish=True)

    def ask(self, keys: tuple[Key, ...]) -> AskedWrite:
        asked = AskedWrite(next(self._tickets))

        def begin() -> None:
            self._asked[asked.ticket] = asked
            self._post(WriteAsked(asked.ticket, keys))

        if self._is_ended or not self._shell.call(begin):
            raise left(WHAT)
        return asked

    def give_up(self, asked: AskedWrite) -> None:
        """See `RunsWrites`. Its body may be about to run."""

        def end() -> None:
            if self._asked.pop(asked.ticket, None) is not None:
                self._post(WriteGivenUp(asked.ticket))
            elif asked.turn.done() and asked.turn.exception() is None:
                self._post(BodyEnded(asked.turn.result().write, ok=False, detail="given up"))

        self._shell.call(end)

    def end(self, body: RunBody, error: BaseException | None) -> None:
        detail = "" if error is None else _shown(error)
        self._shell.call(lambda: self._post(BodyEnded(body.write, ok=error is None, detail=detail)))

    # --- actions ---

    def perform(self, action: VolumeAction) -> None:
        """Carry out an action of the machine."""
        match action:
            case TellCache():
                self._tell(action)
            case LoadObject():
                self._load(action)
            case RunBody(ticket=0):
                self._store(action)
            case RunBody(ticket=ticket):
                self._run(ticket, action)
            case FailWrite(ticket=ticket):
                asked = self._asked.pop(ticket, None)
                if asked is not None:
                    asked.turn.set_exception(_why_failed(action))
            case Noted():
                self._shell.note(action, f"notes: {action.text}")

    def _tell(self, action: TellCache) -> None:
        connection = self._of_client.get(action.client)
        if connection is None:
            return  # the cache comes back, and asks again
        message = action.message
        if isinstance(message, Invalidate):
            message = self.items.prepared(message)
        try:
            data = encode_volume(message, connection.version)
        except LocalProtocolError as error:
            self._shell.complain("not sent to a cache: %s", error)
            return
        self._shell.counts["sent"] += 1
        connection.send(data)

    def _load(self, action: LoadObject) -> None:
        volume = self._volume

        async def load() -> bytes | None:
            name = volume.keys.name(action.key)
            found: Any = volume.load(name, action.fence)
            if inspect.isawaitable(found):
                found = await found
            return None if found is None else volume.codec.encode(name, found)

        def then(done: "Future[bytes | None]") -> None:
            error = done.exception()
            if error is None:
                self._post(ObjectLoaded(action.load, done.result()))
            else:
                self._post(ObjectLoaded(action.load, None, _shown(error)))

        self.in_application(load, then)

    def _run(self, ticket: int, action: RunBody) -> None:
        asked = self._asked.pop(ticket, None)
        if asked is None:
            self._post(BodyEnded(action.write, ok=False, detail="given up"))
        else:
            asked.turn.set_result(action)

    def _store(self, action: RunBody) -> None:
        """A cache wants to write an object."""
        volume, store = self._volume, self._volume.store

        async def write() -> None:
            if store is None:
                raise TenureError(NO_STORE)
            name = volume.keys.name(action.keys[0])
            async with self.guard(name) or nullcontext():
                result = store(name, volume.codec.decode(action.value), action.fence)
                if inspect.isawaitable(result):
                    await result

        def then(done: "Future[None]") -> None:
            error = done.exception()
            detail = "" if error is None else _shown(error)
            self._post(BodyEnded(action.write, ok=error is None, detail=detail))

        self.in_application(write, then)

    def in_application(
        self, work: Callable[[], Any], then: Callable[["Future[Any]"], None]
    ) -> None:
        """Run a coroutine where the application lives, and `then` in the loop."""
        done = self._shell.callbacks.run(work)
        done.add_done_callback(lambda each: self._shell.call(lambda: then(each)) and None)

    # --- caches: see `Listener` ---

    def connected(self, connection: Connection) -> None:
        try:
            check_knows_caches(connection.version)
        except RemoteProtocolError as error:
            self._close(connection, str(error))

    def received(self, connection: Connection, data: bytes) -> None:
        self._shell.counts["received"] += 1
        try:
            message = decode_to_volume_server(data, connection.version)
        except RemoteProtocolError as error:
            self._close(connection, str(error))
            return
        client = message.client
        if self._client_of.setdefault(connection, client) != client:
            self._close(connection, "one connection has one client, and this is another's message")
            return
        self._of_client[client] = connection
        self._post(ClientAsked(message))

    def disconnected(self, connection: Connection) -> None:
        """See `Listener`. Its reader stays on record: it may come back."""
        client = self._client_of.pop(connection, None)
        if client is not None and self._of_client.get(client) is connection:
            del self._of_client[client]

    def _close(self, connection: Connection, why: str) -> None:
        self._shell.counts["malformed"] += 1
        self._shell.complain("closed the connection of a cache: %s", why)
        self.disconnected(connection)
        connection.close(why)

    # --- what is shown of it ---

    def report(self, now: Instant, context: VolumeContext) -> VolumeReport:
        """The server's state. In the loop of the shell."""
        return volume_report(now, context, self._shown_keys, self._shown_client)

    def _shown_keys(self, keys: Sequence[Key]) -> str:
        try:
            names = [self._volume.keys.name(key) for key in keys[:SHOWN_KEYS]]
        except TenureError:  # a key of another type: its loads and writes say so
            return ", ".join(key.hex() for key in keys[:SHOWN_KEYS])
        return ", ".join(str(name) if isinstance(name, int | str) else repr(name) for name in names)

    def _shown_client(self, client: int) -> str:
        connection = self._of_client.get(client)
        return f"{label_of(client)}, not connected" if connection is None else connection.peer

    # --- ending ---

    def stop(self) -> None:
        """The server no longer runs. From any thread, and perhaps twice."""
        self._is_ended = True
        for asked in list(self._asked.values()):
            with suppress(Exception):  # another thread was faster
                asked.turn.set_exception(left(WHAT))
        self._asked.clear()


def _shown(error: BaseException) -> str:
    return error_shown(error)[:1000]


def _why_failed(action: FailWrite) -> TenureError:
    match action.why:
        case "moved":
            return NotOwner("the key has moved while the write waited; it was not begun")
        case "closed":
            return ClosedError("the server of this Volume is closing; the write was not begun")
        case "too many":
            return Busy("too many writes wait at this server; this one was not begun")
