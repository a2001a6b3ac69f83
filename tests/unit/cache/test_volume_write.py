"""A write under the guards of its keys: however it is entered and left, its server is told once."""

import asyncio
from types import TracebackType
from typing import cast

import pytest

from tenure.base.keys import Key
from tenure.cache.volume_write import AskedWrite, VolumeWrite
from tenure.client.guard import Guard
from tenure.errors import ClosedError, NotOwner
from tenure.protocol.volume.server.events import RunBody
from tests.unit.cache.stage import stage

NAMES = ("a", "b")
KEYS = tuple(Key(name.encode()) for name in NAMES)


class NotedGuard:
    """A guard that can be entered, or not."""

    def __init__(self, within: list[str], name: str, *, fails: bool) -> None:
        self.within = within
        self.name = name
        self.fails = fails

    def __enter__(self) -> None:
        if self.fails:
            raise NotOwner("it has moved")
        self.within.append(self.name)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.within.remove(self.name)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)


class WriteRunner:
    """Runs each write at once."""

    is_async = True

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.within: list[str] = []
        self.ended: list[str] = []
        self.given_up = 0
        self.asked = AskedWrite(1)
        self.interrupts = False

    def has_ended(self) -> bool:
        return False

    def guard(self, name: object) -> Guard:
        return cast("Guard", NotedGuard(self.within, str(name), fails=name == self.fails))

    def ask(self, keys: tuple[Key, ...]) -> AskedWrite:
        body = RunBody(write=1, ticket=1, keys=keys, fence=7, waited_ns=0)
        if self.interrupts:
            self.asked.turn.set_exception(KeyboardInterrupt())
        else:
            self.asked.turn.set_result(body)
        return self.asked

    def give_up(self, asked: AskedWrite) -> None:
        self.given_up += asked is self.asked

    def end(self, body: RunBody, error: BaseException | None) -> None:
        del body
        self.ended.append(type(error).__name__)

    def write(self) -> VolumeWrite:
        return VolumeWrite(self, KEYS, NAMES)


async def entered(write: VolumeWrite, *, blocking: bool, error: Exception | None = None) -> None:
    """Enter it in one of its forms; its body raises the error."""
    if blocking:
        with write:
            if error is not None:
                raise error
        return
    async with write:
        if error is not None:
            raise error


@pytest.mark.asyncio
@pytest.mark.parametrize("blocking", [False, True])
async def test_a_body_runs_within_the_guards_of_all_its_keys(*, blocking: bool) -> None:
    runs = WriteRunner()
    write = runs.write()
    if blocking:
        with write:
            assert runs.within == ["a", "b"]
    else:
        async with write:
            assert runs.within == ["a", "b"]
    assert runs.within == []
    assert runs.ended == ["NoneType"]


@pytest.mark.asyncio
@pytest.mark.parametrize("blocking", [False, True])
async def test_where_one_guard_cannot_be_entered_the_write_ends(*, blocking: bool) -> None:
    """Otherwise nobody could write the keys any more."""
    runs = WriteRunner(fails="b")
    with pytest.raises(NotOwner):
        await entered(runs.write(), blocking=blocking)
    assert runs.within == []
    assert runs.ended == ["NotOwner"]


@pytest.mark.asyncio
@pytest.mark.parametrize("blocking", [False, True])
async def test_a_body_that_raises_is_told_as_such(*, blocking: bool) -> None:
    runs = WriteRunner()
    with pytest.raises(ZeroDivisionError):
        await entered(runs.write(), blocking=blocking, error=ZeroDivisionError())
    assert runs.within == []
    assert runs.ended == ["ZeroDivisionError"]


def test_who_interrupts_the_wait_for_a_write_gives_it_up() -> None:
    runs = WriteRunner()
    runs.interrupts = True
    with pytest.raises(KeyboardInterrupt), runs.write():
        pass
    assert runs.given_up == 1
    assert runs.ended == []


@pytest.mark.asyncio
async def test_who_gives_up_just_when_the_turn_has_come_holds_nobody_up() -> None:
    """The body was to run, and never will."""
    async with stage() as it:
        volume = await it.serve()
        asked = volume.runs.ask((volume.keys.key("a"),))
        await it.turn(0)
        assert asked.turn.done()
        volume.runs.give_up(asked)
        await it.after(1, asyncio.ensure_future(volume.changed("a")))


@pytest.mark.asyncio
async def test_a_write_that_waits_when_its_server_ends_is_told() -> None:
    async with stage() as it:
        volume = it.volume()
        server = await it.server(volume).__aenter__()
        writing = asyncio.ensure_future(volume.changed("a"))
        await it.turn(0.1)
        assert not writing.done()
        it.cluster.crash(server)  # type: ignore[arg-type]
        await it.turn(0)
        assert writing.done()
        with pytest.raises(ClosedError, match="left"):
            await writing
