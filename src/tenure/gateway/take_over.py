"""A gateway takes over from another: it gets the sockets at which that one listens, over a Unix
socket (`SCM_RIGHTS`), so that at no moment a client is refused.

Both listen until the successor says that it serves. A successor that fails before that has changed
nothing: its predecessor has served all the while, and waits for another one.
"""

import asyncio
import logging
import os
import socket as sockets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from tenure.errors import MALFORMED, ConfigurationError, TenureError

SERVES = b"serving\n"
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
logger = logging.getLogger("tenure.gateway")


class FormerGateway:
    """The gateway that served before this one, and the sockets at which it listens, by name."""

    def __init__(self, connection: sockets.socket, listening: dict[str, sockets.socket]) -> None:
        self._connection = connection
        self._listening = listening

    @classmethod
    def at(cls, path: Path) -> "FormerGateway | None":
        """Whoever waits there for a successor; None if nobody does. Raises TenureError if it passes
        nothing on.
        """
        connection = sockets.socket(sockets.AF_UNIX)
        connection.settimeout(SAYS_SECONDS)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            return None
        except OSError as error:
            connection.close()
            raise ConfigurationError(f"--take-over {path}: {error}") from None
        try:
            said, given, _, _ = sockets.recv_fds(connection, MOST_BYTES, MOST_SOCKETS)
            listening = dict(zip(read_names(said), map(_socket, given), strict=True))
        except (OSError, *MALFORMED) as error:
            connection.close()
            raise TenureError(
                f"the gateway at {path} has not passed its sockets, and goes on serving: {error}"
            ) from None
        return cls(connection, listening)

    def listening(self, name: str, where: str) -> sockets.socket | None:
        """Its socket of that name; None if it has none. Raises ConfigurationError if that listens
        on another port than `where`.
        """
        found = self._listening.get(name)
        wanted = where.rpartition(":")[2]
        if found is not None and wanted not in ("0", str(found.getsockname()[1])):
            raise ConfigurationError(
                f"the gateway that is to be taken over listens on port {found.getsockname()[1]}, "
                f"not on {where}: end it first, or take over with its port"
            )
        return found

    def relieve(self) -> None:
        """Tell it that this process serves. It takes no more clients from then on."""
        with suppress(OSError):  # it has ended by itself
            self._connection.sendall(SERVES)
        self._connection.close()


def _socket(number: int) -> sockets.socket:
    made = sockets.socket(fileno=number)
    made.setblocking(False)  # noqa: FBT003  # as the standard library has it
    return made


class GatewaySuccession:
    """Waits at a Unix socket for a successor, and passes it what listens here."""

    def __init__(self, listening: Mapping[str, sockets.socket | None]) -> None:
        # Copies: what listens is closed with its port.
        self._listening = {name: each.dup() for name, each in listening.items() if each}
        self._path = Path()
        self._task: asyncio.Task[None] | None = None
        self.is_over = asyncio.Event()
        """Set when a successor serves."""

    def open(self, path: Path) -> None:
        """Begin to wait there, in place of whoever has waited before."""
        self._path = path
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        waiting = sockets.socket(sockets.AF_UNIX)
        waiting.setblocking(False)  # noqa: FBT003  # as the standard library has it
        mask = os.umask(0o177)  # nobody else of this host may take clients over
        try:
            waiting.bind(str(new))
        except OSError as error:
            raise ConfigurationError(f"--take-over {self._path}: {error}") from None
        finally:
            os.umask(mask)
        waiting.listen()
        new.rename(self._path)
        self._task = asyncio.get_running_loop().create_task(self._wait(waiting))

    async def _wait(self, waiting: sockets.socket) -> None:
        loop = asyncio.get_running_loop()
        with waiting:
            while not self.is_over.is_set():
                connection, _ = await loop.sock_accept(waiting)
                with connection, suppress(OSError):
                    await self._pass_to(connection)

    async def _pass_to(self, connection: sockets.socket) -> None:
        numbers = [each.fileno() for each in self._listening.values()]
        sockets.send_fds(connection, [msgspec.json.encode(list(self._listening))], numbers)
        said = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(STARTS_SECONDS):
                said = await asyncio.get_running_loop().sock_recv(connection, len(SERVES))
        if said == SERVES:
            self.is_over.set()
        else:
            logger.warning("a successor has not begun to serve; this gateway goes on")

    async def close(self) -> None:
        """Wait for nobody any more."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait({self._task})
        if not self.is_over.is_set():  # otherwise the path is the successor's
            self._path.unlink(missing_ok=True)
        for each in self._listening.values():
            each.close()
