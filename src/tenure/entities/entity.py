"""`Entity`: the base class of a user's classes that have one instance for each key.

A method's `self` is the instance as its own turn sees it: the attributes are the instance's, and
the state is the one that the turn may change, or, in a reading, a copy. When the turn is over, so
is that `self`: a background task that has kept it can no longer touch the state.
"""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from tenure.client.lease import Lease
from tenure.entities.entity_turn import EntityTurn
from tenure.errors import UsageError
from tenure.protocol.entity.envelope import SetAlarm
from tenure.protocol.entity.socket_entry import Frame

S = TypeVar("S")
A = TypeVar("A")


class Entity(Generic[S]):
    """One key's instance: `class Room(Entity[Lines])`, where Lines is a msgspec Struct whose fields
    all have defaults.

    Its public methods are called through `Entities`, one at a time; those marked `@reading` run
    concurrently. When a call returns, `state` is kept, and only then its answer, its frames and its
    alarms go out. When it raises, nothing is kept. Other attributes live as long as the instance;
    set them up in `on_activate`.
    """

    __slots__ = ("__dict__", "__weakref__", "_turn")
    _turn: EntityTurn
    __tenure_version__: ClassVar[int] = 1
    __tenure_name__: ClassVar[str]

    def __init_subclass__(
        cls,
        *,
        version: int | None = None,
        name: str | None = None,
        **others: Any,  # noqa: ANN401  # of other bases
    ) -> None:
        super().__init_subclass__(**others)
        cls.__tenure_name__ = cls.__name__ if name is None else name
        if version is not None:
            cls.__tenure_version__ = version

    # --- yours to write ---

    async def on_activate(self) -> None:
        """Called once for each instance: before its first call, and again wherever its key
        moves.
        """

    async def on_connect(self, socket: "Socket[Any]") -> None:
        """Called when a socket was attached."""

    async def on_message(self, socket: "Socket[Any]", text: Any) -> None:  # noqa: ANN401  # str or bytes
        """Called when a socket's client has sent text or bytes."""

    async def on_disconnect(self, socket: "Socket[Any]") -> None:
        """Called when a socket's client has gone."""

    async def on_alarm(self, alarm: "Alarm") -> None:
        """Called when an alarm is due; if it raises, called again after longer and longer waits."""

    # --- yours to use ---

    @property
    def key(self) -> str | int:
        """The key of this entity."""
        return self._turn.call.key

    @property
    def state(self) -> S:
        """The state that is kept. Change it in place, or assign another; in a reading it is a
        copy.
        """
        found: S = self._turn.state
        return found

    @state.setter
    def state(self, value: S) -> None:
        self._turn.assign(value)

    @property
    def lease(self) -> Lease:
        """The lease under which this runs: send `lease.headers()` along, as a fence."""
        self._turn.check()
        return self._turn.lease

    @property
    def is_repeat(self) -> bool:
        """Whether this very call was made before, committed a part, and was then interrupted."""
        return self._turn.record == "repeat"

    def now(self) -> float:
        """Wall time in seconds, which never goes back for this key, whoever owns it."""
        return self._turn.now()

    def fair_now(self) -> float:
        """The time to use for state that expires, in seconds: at most the wall-clock time. Even if
        somebody sets a clock, or the key moves, it never runs ahead of the time that has really
        passed since an earlier call; it may lag behind. If `was_interrupted`, do not compare the
        two.
        """
        return self._turn.fair_now()

    @property
    def was_interrupted(self) -> bool:
        """In `on_activate`: whether the store has this state of before an interruption, such as a
        crash, in which nobody owned the key.
        """
        return self._turn.was_interrupted

    def commit(self) -> Awaitable[None]:
        """Keep the changes so far, and send everything that waits for that. An error that is raised
        later does not undo them. Blocks in a `def` method.
        """
        return self._turn.commit()

    def set_alarm(self, name: str, at: datetime | float) -> None:
        """Have `on_alarm` called at that time, or soon if it has passed. This replaces an earlier
        alarm of that name. Seconds are those of `now`. Raises UsageError for a time without zone.
        """
        self._turn.set_alarm(name, at)

    def clear_alarm(self, name: str) -> None:
        """Remove the alarm of that name, if there is one."""
        self._turn.clear_alarm(name)

    @property
    def alarms(self) -> dict[str, datetime]:
        """The alarms that are set: when each is due, by its name."""
        return {name: _instant(each.due) for name, each in self._turn.alarms().items()}

    def forget(self) -> None:
        """Keep nothing of this key from the end of this call on: no state, no alarms, no answers
        to earlier calls, and not the answer to this one. Raises UsageError while sockets are open.
        """
        self._turn.forget()

    def changed(self) -> Awaitable[None]:
        """In a reading: wait until a change of this key is kept, which `state` then shows. It does
        not wait if that has happened since `state` was read. Raises LeaseLost when the key moves,
        and then the call is made again at the next owner.
        """
        return self._turn.changed()

    @property
    def sockets(self) -> "list[Socket[Any]]":
        """The sockets that are open."""
        return [Socket(self._turn, each) for each in self._turn.sockets()]

    def broadcast(self, frame: Frame, *, early: bool = False) -> None:
        """Send text or bytes to every socket; see `Socket.send`."""
        self._turn.send(self._turn.sockets(), frame, early=early)

    # --- on the stubs that `Entities` gives ---

    async def attach(
        self,
        websocket: Any,  # noqa: ANN401  # see below
        attachment: object = None,
        *,
        until: asyncio.Future[int] | None = None,
    ) -> Any:  # noqa: ANN401  # see below
        """Accept the WebSocket, and be its other end until it closes: `await rooms[key].attach(
        websocket)`. `attachment` says what it is: anything that msgpack has, of 4 KiB at most. When
        `until` has a result, the socket is closed with that code.

        With Starlette and FastAPI, pass the WebSocket. With aiohttp, pass the request, and return
        from the handler what this returns: `return await rooms[key].attach(request)`.
        """
        raise UsageError(
            "attach is called from outside, as in `await rooms[key].attach(websocket)`"
        )


def seen_by(turn: EntityTurn) -> Entity[Any]:
    """The instance, as `self` of a method that runs in `turn`."""
    kind = turn.live.type
    view: Entity[Any] = object.__new__(kind)
    view.__dict__ = turn.live.attributes
    view._turn = turn  # noqa: SLF001  # hidden from users, and ours
    return view


class Socket(Generic[A]):
    """A WebSocket of an entity, in whichever process it is. `A` is the type of its attachment."""

    __slots__ = ("_turn", "id")

    def __init__(self, turn: EntityTurn, id: bytes) -> None:  # noqa: A002  # what it is
        self._turn = turn
        self.id = id

    @property
    def attachment(self) -> A:
        """The attachment that `attach` was given."""
        found: A = self._turn.attachment(self.id)
        return found

    def send(self, frame: Frame, *, early: bool = False) -> None:
        """Send text or bytes, once the changes of this call are kept. With `early` it goes out at
        once: clients may then see something that is later undone. In `on_connect`, what is sent
        to the socket that connects goes out after the commit in any case.
        """
        self._turn.send((self.id,), frame, early=early)

    def close(self, code: int = 1000) -> None:
        """Close the socket, after everything that was sent before."""
        self._turn.close(self.id, code)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Socket) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<Socket {self.id.hex()[:8]}>"


class Alarm(msgspec.Struct, frozen=True):
    """An alarm that is due."""

    name: str
    due: datetime
    late: float
    """How many seconds late the alarm is."""
    attempt: int
    """1, and more where `on_alarm` has raised before."""

    @classmethod
    def of(cls, name: str, entry: SetAlarm, now: float) -> "Alarm":
        """Make the alarm that its handler gets."""
        return cls(name, _instant(entry.due), max(now - entry.due, 0.0), entry.attempts + 1)


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
