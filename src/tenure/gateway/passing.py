"""Passes open connections from a gateway to its successor, over the Unix socket of `take_over.py`.

Some at a time. The one before has stopped reading them; it tells what is to be known of each, and
passes their handles (`SCM_RIGHTS`). The successor says which of them it has, and reads none before
it has said so. Until that has come the one before has them, and goes on with them if it does not
come. So each connection has one process that reads it, whichever of the two ends, and whenever.
"""

import asyncio
import os
import socket as sockets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from tenure.errors import MALFORMED
from tenure.gateway.client_connection import GivenConnection
from tenure.gateway.passed_connection import (
    MOST_AT_ONCE,
    MOST_BYTES,
    PassedConnection,
    packed,
    read_passed,
)

ANSWER_SECONDS = 5.0
"""How long the successor may take to say what it has; clients are held up meanwhile."""
LENGTH_BYTES = 4
IT_HAS, IT_HAS_NOT = b"\1", b"\0"
READ_BYTES = 1 << 20
MOST_HANDLES = 2 * MOST_AT_ONCE


class NotPassed(ValueError):
    """What came are not connections of a gateway."""


class Passing:
    """The side of the gateway that ends."""

    def __init__(self, connection: sockets.socket) -> None:
        self._connection = connection
        self.count = 0
        """How many connections the successor has."""
        self.is_broken = False
        """Whether the successor takes nothing any more."""

    async def pass_on(self, given: Sequence[GivenConnection]) -> list[GivenConnection]:
        """Pass these. Returns those that the successor does not have: they are still here."""
        body = packed([each.passed for each in given])
        handles = [each.fileno() for one in given for each in one.handles]
        answer = await self._answer(body, handles, len(given))
        left = []
        for one, said in zip(given, answer, strict=True):
            if bytes([said]) == IT_HAS:
                self.count += 1
                one.close()
            else:
                left.append(one)
        return left

    async def end_round(self) -> bool:
        """Say that all was passed that could be so far. Returns whether the successor has heard
        it.
        """
        return await self._answer(packed([]), [], 1) == IT_HAS

    async def _answer(self, body: bytes, handles: list[int], count: int) -> bytes:
        answer = b""
        if not self.is_broken:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    answer = await self._asked(body, handles, count)
            if len(answer) != count:
                answer = self._last_word(count)
        return answer if len(answer) == count else IT_HAS_NOT * count

    async def _asked(self, body: bytes, handles: list[int], count: int) -> bytes:
        loop = asyncio.get_running_loop()
        sockets.send_fds(self._connection, [len(body).to_bytes(LENGTH_BYTES, "big")], handles)
        await loop.sock_sendall(self._connection, body)
        return await loop.sock_recv(self._connection, count)

    def _last_word(self, count: int) -> bytes:
        """What the successor has said by now; from here on it can say nothing more, so that it has
        none of what is not in there.
        """
        self.is_broken = True
        with suppress(OSError):
            self._connection.shutdown(sockets.SHUT_RD)
            return self._connection.recv(count)
        return b""

    def close(self) -> None:
        """Pass nothing more on."""
        self._connection.close()


class GoesOn(Protocol):
    """A gateway that goes on with connections of another."""

    def may_go_on(self, passed: PassedConnection) -> bool:
        """Whether it can go on with this one."""
        ...

    def go_on(self, given: GivenConnection) -> None:
        """Go on with it."""
        ...


class TakingOver:
    """The side of the successor."""

    def __init__(self, connection: sockets.socket, gateway: GoesOn) -> None:
        self._connection = connection
        self._gateway = gateway
        self.count = 0
        """How many connections were taken."""
        self.has_round = False
        """Whether all has come that could be passed at first."""

    async def run(self, on_round: Callable[[], object]) -> None:
        """Take what comes, until the one before ends. `on_round` is called when all has come that
        could be passed at first. Raises NotPassed, or another of MALFORMED.
        """
        with self._connection, suppress(OSError):  # it has ended, and has what was not answered
            while (found := await self._next()) is not None:
                if not found:
                    self.has_round = True
                    on_round()
                    self._connection.send(IT_HAS)
                else:
                    self._take(found)

    def _take(self, found: list[GivenConnection]) -> None:
        mine = [each for each in found if self._is_mine(each)]
        try:
            answer = b"".join(IT_HAS if each in mine else IT_HAS_NOT for each in found)
            self._connection.send(answer)
        except OSError:
            mine = []
            raise
        finally:
            for each in found:
                if each in mine:
                    self.count += 1
                    self._gateway.go_on(each)
                else:
                    each.close()

    def _is_mine(self, given: GivenConnection) -> bool:
        try:
            for each in given.handles:
                each.getpeername()
        except OSError:  # the client has gone, or the server behind
            return False
        return self._gateway.may_go_on(given.passed)

    async def _next(self) -> list[GivenConnection] | None:
        await self._until_readable()
        head, handles, flags, _ = sockets.recv_fds(self._connection, LENGTH_BYTES, MOST_HANDLES)
        with opened(handles, _check_connected) as found:
            if not head:
                return None
            passed = await self._told(head, 0 if flags & sockets.MSG_CTRUNC else len(handles))
        each = iter(found)
        return [
            GivenConnection(next(each), one, None if one.tunnel is None else next(each))
            for one in passed
        ]

    async def _told(self, head: bytes, count: int) -> tuple[PassedConnection, ...]:
        if len(head) != LENGTH_BYTES:
            raise NotPassed(f"it begins with {len(head)} bytes")
        passed = read_passed(await self._body(int.from_bytes(head, "big")))
        if sum(each.handles for each in passed) != count:
            raise NotPassed(f"{count} handles of {len(passed)} connections")
        return passed

    async def _until_readable(self) -> None:
        loop = asyncio.get_running_loop()
        came = asyncio.Event()
        loop.add_reader(self._connection, came.set)
        try:
            await came.wait()
        finally:
            loop.remove_reader(self._connection)

    async def _body(self, size: int) -> bytes:
        if size > MOST_BYTES:
            raise NotPassed(f"{size} bytes; at most {MOST_BYTES} tell of connections")
        loop = asyncio.get_running_loop()
        body = bytearray()
        while len(body) < size:
            part = await loop.sock_recv(self._connection, min(READ_BYTES, size - len(body)))
            if not part:
                raise NotPassed("it has ended in the middle")
            body += part
        return bytes(body)


@contextmanager
def opened(
    handles: Sequence[int], check: Callable[[sockets.socket], object]
) -> Iterator[list[sockets.socket]]:
    """The sockets of these handles. If one does not pass the check, or the body raises, all are
    closed.
    """
    waiting, found = list(handles), list[sockets.socket]()
    try:
        while waiting:
            found.append(sockets.socket(fileno=waiting[0]))
            waiting.pop(0)
            check(found[-1])
        yield found
    except BaseException:
        for number in waiting:
            os.close(number)
        for each in found:
            each.close()
        raise


def _check_connected(one: sockets.socket) -> None:
    is_tcp = one.family in (sockets.AF_INET, sockets.AF_INET6) and one.type == sockets.SOCK_STREAM
    if not is_tcp or one.getsockopt(sockets.SOL_SOCKET, sockets.SO_ACCEPTCONN):
        raise NotPassed(f"{one} is no TCP connection")
    one.setblocking(False)  # noqa: FBT003  # as the standard library has it


NOT_TAKEN = (OSError, *MALFORMED)
