"""A channel over a socket: its messages wait here until somebody receives them.

What waits is bounded. Beyond that nothing more is read, and the other side's `send` waits in turn.
"""

import asyncio
from collections import deque

from aiohttp import WSCloseCode

from tenure.base.instants import Instant
from tenure.transport.channels import ChannelLost
from tenure.transport.fair_turns import FairTurns
from tenure.transport.frame_socket import FrameSocket
from tenure.transport.rate_bound import RateBound
from tenure.transport.websocket_door import LAG_BYTES
from tenure.transport.websocket_frames import FrameError
from tenure.wire.limits import HAND_OFF_BYTES
from tenure.wire.versions import OLDEST

WAITING_MESSAGES = 64
WAITING_BYTES = 1 << 20
"""With this much waiting to be received, nothing more is read."""


class SocketChannel(FrameSocket):
    """One end of a channel; see `Channel`. What is accepted has a `pace`."""

    __slots__ = ("_arrived", "_is_held", "_may_write", "_waiting", "_waiting_bytes", "peer")

    def __init__(
        self,
        transport: asyncio.Transport,
        peer: str,
        turns: FairTurns,
        *,
        pace: RateBound | None = None,
        is_dialled: bool = False,
    ) -> None:
        super().__init__(
            transport,
            OLDEST,
            most_bytes=HAND_OFF_BYTES,
            lag_bytes=LAG_BYTES,
            turns=turns,
            pace=pace,
            is_dialled=is_dialled,
        )
        self.peer = peer
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._arrived = asyncio.Event()
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._is_held = False

    # --- receiving ---

    async def receive(self) -> bytes:
        """The next message, also after the other side has closed."""
        while not self._waiting:
            self._check()
            self._arrived.clear()
            await self._arrived.wait()
        data = self._waiting.popleft()
        self._waiting_bytes -= len(data)
        if self._is_held and not self._waiting:
            self._is_held = False
            self.read_on()
        return data

    def on_message(self, data: bytes) -> None:
        """Keep a message until it is received; read nothing more if too much waits."""
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        self._arrived.set()
        if len(self._waiting) >= WAITING_MESSAGES or self._waiting_bytes >= WAITING_BYTES:
            self._is_held = True
            self.hold()

    def read_on(self) -> None:
        """Read again, unless too much still waits: a rest may end before."""
        if not self._is_held:
            super().read_on()

    def is_there(self, now: Instant, silent_ns: int) -> None:
        """Ask a silent peer whether it is there, unless it is this side that does not read."""
        if not self._is_held:
            super().is_there(now, silent_ns)

    # --- sending ---

    async def send(self, *messages: bytes) -> None:
        """Send some messages, and wait while the other side reads too little."""
        self._check()
        self.transport.write(b"".join(map(self._framed, messages)))
        await self._may_write.wait()
        self._check()

    def _check(self) -> None:
        if self.why:
            raise ChannelLost(self.why)

    def pause_writing(self) -> None:
        """The other side reads too little."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """The other side has read on."""
        self._may_write.set()

    # --- ending ---

    async def close(self) -> None:
        """Tell the other side, and wait until the connection is gone."""
        self.end(WSCloseCode.OK, "")
        try:
            await self.gone()
        except asyncio.CancelledError:
            self.transport.abort()
            raise

    def on_refused(self, error: FrameError) -> None:
        """Nothing that follows a refused frame is read."""
        self._lose(str(error))

    def on_ending(self) -> None:
        """Nothing may be sent any more."""
        self._lose("this side closed the connection")

    def on_lost(self) -> None:
        """Whoever waits is told."""
        self._lose(self.why)

    def _lose(self, why: str) -> None:
        self.why = self.why or why
        self._arrived.set()
        self._may_write.set()
