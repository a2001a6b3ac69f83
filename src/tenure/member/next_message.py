"""The next message of a client, for a handler that may stop waiting for it.

A message can come in the very moment in which the handler's wait is cancelled, as by a timeout. It
is not lost with that wait: the handler's next one gets it.
"""

import asyncio
from typing import Any

from tenure.member.asgi import Message, Receive


class NextMessage:
    """Receives one message after another until `ended` is set."""

    def __init__(self, receive: Receive, ended: asyncio.Event) -> None:
        self._receive = receive
        self._ended = ended
        self._getting: asyncio.Future[Message] | None = None

    async def get(self) -> Message | None:
        """The message; None if it has ended and there is none."""
        while True:
            getting = self._getting = self._getting or asyncio.ensure_future(self._receive())
            ended = asyncio.ensure_future(self._ended.wait())
            either: set[asyncio.Future[Any]] = {ended, getting}
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ended.cancel()
            if not getting.done():
                return None
            if self._getting is getting:  # otherwise another task of the handler has it
                self._getting = None
                return getting.result()

    def end(self) -> None:
        """The handler is over: nobody receives any longer."""
        if self._getting is not None:
            self._getting.cancel()
