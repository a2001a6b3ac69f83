"""A gateway takes over from another: it gets the sockets at which that one listens, over a Unix
socket (`SCM_RIGHTS`), so that at no moment a client is refused; and then those of its clients.

Both listen until the successor has said that it serves, and has what can be passed. A successor
that fails before that has changed nothing for the others: its predecessor serves them, and waits
for another one. What the successor has said that it has is its own, see `passing.py`.

Each asks the kernel who the other is. Whoever could wait at the path would otherwise serve clients
under this gateway's name, or have it listen where nobody comes.
"""

import asyncio
import logging
import os
import socket as sockets
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from tenure.errors import MALFORMED, ConfigurationError, TenureError
from tenure.gateway.passing import NOT_TAKEN, GoesOn, NotPassed, Passing, TakingOver, opened
from tenure.transport.bounded_port import ACCEPT_AGAIN_SECONDS

SERVES, TAKES = b"serving\n", b"takes\n"
"""The successor serves; and it takes open connections, which older ones do not."""
MOST_BYTES = 4096
MOST_SOCKETS = 8
MOST_NAME = 64
SAYS_SECONDS = 5.0
"""How long a predecessor may take to pass its sockets."""
STARTS_SECONDS = 60.0
"""How long a successor may take until it serves."""
SocketNames = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=MOST_NAME)], ...],
    msgspec.Meta(max_length=MOST_SOCKETS),
]
"""The names of the sockets that are passed, in their order."""
read_names = msgspec.json.Decoder(SocketNames).decode
ROOT = 0
_PEER = struct.Struct("3i")
"""The kernel's `struct ucred`: a process, its user, its group."""
PROCESS, USER = 0, 1
PassOpen = Callable[[Passing], Awaitable[bool]]
logger = logging.getLogger("tenure.gateway")


class FormerGateway:
    """The gateway that served before this one, and the sockets at which it listens, by name."""

    def __init__(self, connection: sockets.socket, listening: dict[str, sockets.socket]) -> None:
        self._connection = connection
        self._listening = listening

    @classmethod
    def at(cls, path: Path) -> "FormerGateway | None":
        """Whoever waits there for a successor; None if nobody does. Raises TenureError if it passes
        nothing on, and ConfigurationError if something else is there, which would be replaced.
        """
        connection = sockets.socket(sockets.AF_UNIX)
        connection.settimeout(SAYS_SECONDS)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            if path.exists() and not path.is_socket():
                raise ConfigurationError(
                    f"--take-over {path} is a file of something else: name a path where nothing is"
                ) from None
            return None
        except OSError as error:
            connection.close()
            raise ConfigurationError(f"--take-over {path}: {error}") from None
        user = user_at(connection)
        if not is_trusted(user):
            connection.close()
            raise ConfigurationError(
                f"--take-over {path}: a process of user {user} waits there, and this one is of "
                f"user {os.geteuid()}: end that process, or name a path where only this user writes"
            )
        try:
            listening = received(connection)
        except (OSError, *MALFORMED) as error:
            connection.close()
            raise TenureError(
                f"the gateway at {path} has not passed its sockets, and goes on serving: {error}"
            ) from None
        return cls(connection, listening)

    def listening(self, name: str, where: str) -> sockets.socket | None:
        """Its socket of that name; None if it has none. Raises ConfigurationError if that listens
        at another address than `where`.
        """
        found = self._listening.get(name)
        if found is not None and not _is_at(found, where):
            host, port = found.getsockname()[:2]
            raise ConfigurationError(
                f"the gateway that is to be taken over listens on port {port} of {host}, not on "
                f"{where}: end it first, or take over with its port and address"
            )
        return found

    async def relieve(self, gateway: GoesOn, on_round: Callable[[], object]) -> None:
        """Tell it that this process serves, and take its clients. `on_round` is called when all
        have come that could be passed at first; those that are busy then follow.
        """
        taking = TakingOver(self._connection, gateway)
        process = _credential(self._connection, PROCESS)
        try:
            self._connection.sendall(SERVES + TAKES)
            self._connection.setblocking(False)  # noqa: FBT003  # as the standard library has it
            await taking.run(on_round)
        except NOT_TAKEN as error:
            logger.warning("the gateway before has passed nothing more on: %s", error)
        finally:
            self.close()
        if not taking.has_round:  # its path is this one's now, so no other successor reaches it
            logger.warning(
                "the gateway before, process %s, has not said that it passed its clients on: if it "
                "goes on serving beside this one, end it with SIGTERM",
                process,
            )

    def close(self) -> None:
        """Leave it alone."""
        self._connection.close()


def user_at(connection: sockets.socket) -> int | None:
    """Whose process is at the other end; None where the kernel does not say, and the mode of the
    path is all that keeps others out.
    """
    return _credential(connection, USER)


def _credential(connection: sockets.socket, which: int) -> int | None:
    if not hasattr(sockets, "SO_PEERCRED"):
        return None
    said = connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, _PEER.size)
    return int(_PEER.unpack(said)[which])


def is_trusted(user: int | None) -> bool:
    """Whether that user's processes may serve the clients of this one."""
    return user in (None, ROOT, os.geteuid())


def received(connection: sockets.socket) -> dict[str, sockets.socket]:
    """The sockets that are passed there, by name. Raises one of MALFORMED, or OSError."""
    said, given, flags, _ = sockets.recv_fds(connection, MOST_BYTES, MOST_SOCKETS)
    with opened(given, _check_listens) as found:
        names = _names_of(said, len(given), is_cut=bool(flags & sockets.MSG_CTRUNC))
    return dict(zip(names, found, strict=True))


def _names_of(said: bytes, count: int, *, is_cut: bool) -> tuple[str, ...]:
    if is_cut:
        raise NotPassed(f"more than {MOST_SOCKETS} files")
    names = read_names(said)
    if len(names) != count or len(set(names)) != count:
        raise NotPassed(f"{count} files with the names {names}")
    return names


def _check_listens(one: sockets.socket) -> None:
    is_tcp = one.family in (sockets.AF_INET, sockets.AF_INET6) and one.type == sockets.SOCK_STREAM
    if not is_tcp or not one.getsockopt(sockets.SOL_SOCKET, sockets.SO_ACCEPTCONN):
        raise NotPassed(f"{one} is no TCP socket that listens")
    one.setblocking(False)  # noqa: FBT003  # as the standard library has it


def _is_at(one: sockets.socket, where: str) -> bool:
    host, _, port = where.rpartition(":")
    address, present = one.getsockname()[:2]
    try:
        meant = sockets.getaddrinfo(host.strip("[]") or None, None, flags=sockets.AI_PASSIVE)
    except OSError:
        return False
    return port in ("0", str(present)) and address in {each[4][0] for each in meant}


class GatewaySuccession:
    """Waits at a Unix socket for a successor, and passes it what listens here."""

    def __init__(self, listening: Mapping[str, sockets.socket | None], pass_open: PassOpen) -> None:
        # Copies: what listens is closed with its port.
        self._listening = {name: each.dup() for name, each in listening.items() if each}
        self._pass_open = pass_open
        self._path = Path()
        self._mine: os.stat_result
        self._task: asyncio.Task[None] | None = None
        self.is_over = asyncio.Event()
        """Set when a successor serves."""

    def open(self, path: Path) -> None:
        """Begin to wait there, in place of whoever has waited before. Raises ConfigurationError if
        that is another user's, or another file.
        """
        self._path = path
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        waiting = sockets.socket(sockets.AF_UNIX)
        waiting.setblocking(False)  # noqa: FBT003  # as the standard library has it
        mask = os.umask(0o177)  # nobody else of this host may take clients over
        try:
            waiting.bind(str(new))
            waiting.listen()
            self._mine = new.stat()
            new.rename(self._path)
        except OSError as error:
            waiting.close()
            with suppress(OSError):
                new.unlink()
            raise ConfigurationError(f"--take-over {self._path}: {error}") from None
        finally:
            os.umask(mask)
        self._task = asyncio.get_running_loop().create_task(self._wait(waiting))

    async def _wait(self, waiting: sockets.socket) -> None:
        with waiting:
            while not self.is_over.is_set():
                with await self._accepted(waiting) as connection:
                    try:
                        await self._pass_if_trusted(connection)
                    except OSError:
                        pass  # the successor has gone
                    except Exception:  # without this task no successor would ever be heard again
                        logger.exception("nothing more is passed to a successor, as this failed")

    async def _accepted(self, waiting: sockets.socket) -> sockets.socket:
        """The next connection. Without a file for it, this gateway is busy, and not done waiting:
        it says so, and tries again.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(waiting)
            except OSError as error:
                logger.warning("a successor cannot be heard yet: %s", error.strerror or error)
                await asyncio.sleep(ACCEPT_AGAIN_SECONDS)
            else:
                return connection

    async def _pass_if_trusted(self, connection: sockets.socket) -> None:
        user = user_at(connection)
        if not is_trusted(user):
            logger.warning("a process of user %s may not take over from this", user)
            return
        numbers = [each.fileno() for each in self._listening.values()]
        sockets.send_fds(connection, [msgspec.json.encode(list(self._listening))], numbers)
        if await _said(connection, SERVES, STARTS_SECONDS) and await self._relieved(connection):
            self.is_over.set()
        else:
            logger.warning("a successor has not begun to serve; this gateway goes on")

    async def _relieved(self, connection: sockets.socket) -> bool:
        """Pass clients on. Returns False if the successor has ended meanwhile."""
        if not await _said(connection, TAKES, SAYS_SECONDS):
            return True  # it is an older one, and has gone on
        passing = Passing(connection.dup())  # which the gateway keeps while it ends
        is_passed = False
        try:
            is_passed = await self._pass_open(passing)
        finally:
            if not is_passed:
                passing.close()
        return is_passed

    async def close(self) -> None:
        """Wait for nobody any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            if not self.is_over.is_set() and self._is_mine():
                self._path.unlink(missing_ok=True)
        for each in self._listening.values():
            each.close()

    def _is_mine(self) -> bool:
        """Whether no successor has taken the path."""
        try:
            return os.path.samestat(self._path.stat(), self._mine)
        except OSError:
            return False


async def _said(connection: sockets.socket, word: bytes, seconds: float) -> bool:
    said = b""
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(seconds):
            said = await asyncio.get_running_loop().sock_recv(connection, len(word))
    return said == word
