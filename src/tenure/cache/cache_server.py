"""`CacheServer`: one process that serves a volume to caches, with no owners and no manager."""

import asyncio
import inspect
import logging
import os
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, assert_never

from tenure.base.hosts import is_loopback
from tenure.base.instants import seconds
from tenure.base.names import error_shown, shown
from tenure.base.noted import Noted
from tenure.cache.cache_engine import PATH
from tenure.cache.memory_file import MemoryFile
from tenure.cache.server_pages import VolumeAnswer, server_page
from tenure.cache.volume import Volume
from tenure.cache.volume_engine import VolumeEngine
from tenure.client.arguments import checked_flag, checked_seconds
from tenure.client.callbacks import check_callback
from tenure.client.entering import Enterable
from tenure.client.environment import Environment, environment_here
from tenure.client.servers import Servers
from tenure.client.shell import Shell, ShellConfig
from tenure.errors import ClosedError, ConfigurationError, TenureError
from tenure.protocol.lease.reports import TierReport, VolumeReport
from tenure.protocol.volume.noted import VolumeServerKind
from tenure.protocol.volume.server.events import (
    Drained,
    FailWrite,
    FenceRaised,
    LoadObject,
    MemoryPersisted,
    PersistMemory,
    RaiseFence,
    Remembers,
    RunBody,
    ServerAction,
    ServerConfig,
    ServerEvent,
    StopAsked,
    TellCache,
    TermEnded,
    VolumeClosed,
    VolumeMemory,
)
from tenure.protocol.volume.server.machine import VolumeServer
from tenure.transport.credentials import Credentials

WHAT = "CacheServer"
LISTEN = "127.0.0.1:7500"
ENTER_SECONDS = 15.0
AGAIN_SECONDS = 1.0
"""How long to wait before the memory is written again after a failure."""
MOST_NUMBER = (1 << 62) - 1
"""The highest number that a store may have seen; later servers need higher ones."""
MOST_REFUSALS = 10
"""How many numbers a store may refuse: it has refused one if the memory was put back."""
TELL_SECONDS = 1.0
"""How long a call for the report waits for the server's thread."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
LAST_PORT = 65535
logger = logging.getLogger("tenure.cache_server")


class CacheServerEngine:
    """Runs the server of a volume in a shell."""

    def __init__(self, server: "CacheServer", environment: Environment) -> None:
        self.name = f"cache server at {server.listen}"
        of_shell = ShellConfig(
            self.name, environment, logger, ENTER_SECONDS, "caches may hold leases yet"
        )
        self.shell: Shell[ServerEvent, ServerAction, Any] = Shell(of_shell, None, Servers(), self)
        self._server = server
        self._environment = environment
        self._memory = None if server.memory is None else MemoryFile(server.memory)
        self._refusals = 0
        self._closed = asyncio.Event()
        self._door = environment.door(PATH)
        self.url = ""
        self.volume = VolumeEngine(server.volume, self.shell, self._post)
        self._machine: VolumeServer

    def _post(self, event: ServerEvent) -> None:
        self.shell.driver.post(event)

    async def prepare(self) -> VolumeServer:
        server, cleanup = self._server, self.shell.cleanup
        server.volume.serve(self.volume, "alone")
        self._door.show(self._page)
        cleanup.callback(self.volume.stop)
        found = None
        if self._memory is not None:
            found = self._memory.open()
            cleanup.callback(self._memory.close)
        try:
            self.url = await self._door.open(server.listen, self.volume)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen at {server.listen}: {error.strerror or error}; pass another "
                'address of this machine, or port 0 for a free one: listen="127.0.0.1:0"'
            ) from error
        cleanup.push_async_callback(self._door.close, "this server closes")
        config = ServerConfig(
            terms=server.volume.terms,
            remembers=server.remembers if self._memory is not None else "nothing",
            memory=found,
            longest_ns=server.longest_ns,
            boot_id=_boot_id(),
        )
        self._machine = VolumeServer(config, self._environment.random())
        return self._machine

    # --- what is shown of it ---

    def report(self) -> VolumeReport:
        """The server's state now. In the loop of the shell."""
        return self.volume.report(self._environment.clock(), self._machine.context)

    def _page(self, path: str, accept: str) -> tuple[bytes, str] | None:
        if not self.url:
            return None  # the server is about to begin
        counts = dict(self.shell.counts)
        answer = VolumeAnswer(url=self.url, volume=self.report(), events=counts)
        return server_page(answer, path, accept)

    # --- actions ---

    def perform(self, action: ServerAction) -> None:
        match action:
            case TellCache() | LoadObject() | RunBody() | FailWrite():
                self.volume.perform(action)
            case PersistMemory(memory=memory):
                self._persist(memory)
            case RaiseFence(number=number):
                self._raise_fence(number)
            case VolumeClosed():
                self._closed.set()
            case Drained():
                pass  # everything is drained at the end only, which `VolumeClosed` tells
            case TermEnded():
                raise AssertionError(action)  # only of owners
            case Noted():
                self.shell.note(action, f"notes: {action.text}")
                if action.kind is VolumeServerKind.OPENED:
                    self.shell.have_entered()
            case _:
                assert_never(action)

    def _persist(self, memory: VolumeMemory) -> None:
        """Write the memory in a thread: a disk may take its time, and leases are renewed
        meanwhile.
        """
        file = self._memory
        if file is None:
            self._post(MemoryPersisted(memory))
            return
        loop = asyncio.get_running_loop()
        task = loop.run_in_executor(None, file.write, memory)

        def then(done: "asyncio.Future[None]") -> None:
            error = None if done.cancelled() else done.exception()
            if error is None:
                self._post(MemoryPersisted(memory))
                return
            self.shell.complain("could not remember what the next server must know: %s", error)
            if self._machine.view().is_open:  # no lease runs longer than what is remembered
                loop.call_later(AGAIN_SECONDS, self._persist, memory)
            else:
                self._fail(error)

        task.add_done_callback(then)

    def _raise_fence(self, number: int) -> None:
        fence = self._server.fence
        if fence is None:
            self._post(FenceRaised(number))
            return

        async def ask() -> int:
            seen: Any = fence(number)
            if inspect.isawaitable(seen):
                seen = await seen
            if type(seen) is not int or not 0 <= seen <= MOST_NUMBER:
                raise ConfigurationError(
                    f"fence returned {shown(seen)}; it must return the highest number that the "
                    "store had seen before, or 0"
                )
            self._refusals += seen >= number
            if self._refusals > MOST_REFUSALS:
                raise ConfigurationError(
                    f"fence({number}) returned {seen}, and so each time: it must return the "
                    "highest number that the store had seen before the call. Or another server of "
                    "this volume starts at the same time"
                )
            return seen

        def then(done: "Future[int]") -> None:
            error = done.exception()
            if error is not None:
                self._fail(error)
                return
            seen = done.result()
            self._post(FenceRaised(number, seen if seen >= number else 0))

        self.volume.in_application(ask, then)

    def _fail(self, error: BaseException) -> None:
        """Fail: without this the server cannot be opened, or cannot say that it has closed."""
        if not isinstance(error, TenureError):
            error = TenureError(f"{self.name}: {error_shown(error)}")
        self.shell.fail_entering(error)
        self._closed.set()

    # --- see `Engine` ---

    def hear(self, server: str, message: Any) -> None:  # noqa: ANN401  # there is none
        """See `Engine.hear`. It speaks to no servers."""

    def on_lost(self, server: str) -> None:
        """See `Engine.on_lost`. It speaks to no servers."""

    def why_not_entered(self) -> TenureError:
        return TenureError(
            f"{self.name} was not entered within {ENTER_SECONDS:g} s: its memory was not written, "
            "or `fence` did not return"
        )

    async def give_back(self) -> None:
        """See `Engine.give_back`. When nobody holds a lease, the next server need not wait."""
        self._post(StopAsked())
        await self._closed.wait()

    def end(self) -> None:
        self.volume.stop()

    def give_up(self) -> None:
        self.volume.stop()
        self._closed.set()


class CacheServer(Enterable[CacheServerEngine]):
    """Serves `volume` to every `Cache` that is given its URL.

    `listen` is "HOST:PORT"; port 0 picks a free one. If other machines can reach it,
    `insecure=True` must say that you trust everybody there.

    `memory` is a file, used by this server only, that tells the next server how long it must wait
    before its first write; without it, it waits for `longest` seconds, the longest `term` that any
    server of this volume has ever had. `remembers` is what the file contains: "longest", which is
    written only at the start and the end, or "latest end", which is written all the time and makes
    the wait shorter on average.

    `fence(number)` makes the store refuse writes of lower numbers from then on, because writes of
    an earlier server may arrive late. It returns the highest number that the store had seen before,
    or 0.

    Enter it with `async with`, or with `with`. Leaving waits until no cache holds a lease. Raises
    ConfigurationError for arguments that cannot be used.
    """

    def __init__(
        self,
        volume: Volume[Any],
        *,
        listen: str = LISTEN,
        memory: str | os.PathLike[str] | None = None,
        remembers: Remembers = "longest",
        longest: float | None = None,
        fence: Callable[[int], object] | None = None,
        insecure: bool = False,
        credentials: Credentials | None = None,
        _environment: Environment | None = None,
    ) -> None:
        if not isinstance(volume, Volume):
            raise ConfigurationError(f"a CacheServer serves a Volume, not {shown(volume)}")
        check_callback("fence", fence)
        if remembers not in ("longest", "latest end"):
            raise ConfigurationError(
                f'remembers is "longest" or "latest end", not {shown(remembers)}'
            )
        self.volume = volume
        environment = _environment or environment_here(credentials)
        is_safe = checked_flag("insecure", insecure) or environment.credentials.mutual
        self.listen = _checked_listen(listen, insecure=is_safe)
        self.memory = _checked_memory(memory)
        self.remembers: Remembers = remembers
        self.longest_ns = 0 if longest is None else seconds(checked_seconds("longest", longest))
        self.fence = fence
        super().__init__(WHAT, _ServerBoard(), lambda: CacheServerEngine(self, environment))

    @property
    def url(self) -> str:
        """The URL that a `Cache` is given."""
        self._check_entered()
        if not self._engine.url:
            raise ClosedError("this CacheServer does not listen yet")
        return self._engine.url

    @property
    def name(self) -> str:
        """The address at which the server listens."""
        return self.listen

    def tiers(self) -> TierReport:
        """The present state of its volume; empty if it is not entered, or too busy to say."""
        told: Future[VolumeReport] = Future()
        made = self._made
        if made is None or not made.shell.call(lambda: told.set_result(made.report())):
            return TierReport()
        try:
            return TierReport(volume=told.result(TELL_SECONDS))
        except TimeoutError:
            return TierReport()

    def __repr__(self) -> str:
        return f"<CacheServer at {self.listen}: {self._state}>"


class _ServerBoard:
    """Makes the server unusable in a forked child."""

    is_forked = False

    def on_fork(self) -> None:
        self.is_forked = True


def _checked_memory(memory: object) -> Path | None:
    if memory is None:
        return None
    found = Path(memory) if isinstance(memory, str | os.PathLike) else None
    if found is None or not found.name or "\0" in str(found):
        raise ConfigurationError(
            f"memory is the path of a file that this server may write, not {shown(memory)}; write "
            'it like memory="/var/lib/shop/rows.volume"'
        )
    return found


def _checked_listen(listen: object, *, insecure: bool) -> str:
    host, _, port = listen.rpartition(":") if isinstance(listen, str) else ("", "", "")
    if not (host and port.isdecimal() and int(port) <= LAST_PORT):
        raise ConfigurationError(
            f'listen is "HOST:PORT", port 0 for one that is free, not {shown(listen)}; write it '
            f'like listen="{LISTEN}"'
        )
    if not insecure and not is_loopback(host.strip("[]")):
        raise ConfigurationError(
            f"listen={listen!r} can be reached from other machines, and everybody there sees every "
            "object: listen on 127.0.0.1, ask callers for certificates with "
            "credentials=Credentials(ca=..., cert=..., key=..., mutual=True), or say with "
            "insecure=True that everybody on that network is trusted"
        )
    return str(listen)


def _boot_id() -> str:
    try:
        return BOOT_ID.read_text("ascii").strip()
    except OSError:  # not Linux: an instant of an earlier boot is never believed there
        return ""
