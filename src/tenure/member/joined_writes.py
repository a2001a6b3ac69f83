"""Writes the head of an answer together with its body.

uvicorn writes them one after the other, and each write is a packet. Whoever waits for the answer
wakes for its head, and again for its body.
"""

import asyncio
from typing import Any

HEAD = b"HTTP/1.1 "


class JoinedWrites:
    """A transport that keeps the head of an answer until the body follows, for one pass of the loop
    at most. See `asyncio.Transport` for the rest.
    """

    def __init__(self, plain: asyncio.Transport) -> None:
        self.plain = plain
        self._loop = asyncio.get_running_loop()
        self._held = b""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # it is the transport's
        found = self.__dict__[name] = getattr(self.plain, name)  # some are asked all the time
        return found

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write, or keep what may be a head: if it is none, that does no harm."""
        if self._held:
            held, self._held = self._held, b""
            # Not `writelines`: in some Pythons, such as 3.12.8 and 3.13.1, it never pauses whoever
            # writes to a peer that reads nothing (CVE-2024-12254).
            self.plain.write(b"".join((held, data)))
        elif isinstance(data, bytes) and data.startswith(HEAD):
            self._held = data
            self._loop.call_soon(self._let_go)
        else:
            self.plain.write(data)

    def close(self) -> None:
        """Write what is kept, and close."""
        self._let_go()
        self.plain.close()

    def _let_go(self) -> None:
        held, self._held = self._held, b""
        if held and not self.plain.is_closing():
            self.plain.write(held)
