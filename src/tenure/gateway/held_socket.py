"""A WebSocket that ends at the gateway, as `Edge` knows one: `websockets` reads and writes its
frames. Extensions are not offered to the client, so nothing is compressed.

It gets whole frames only. So what has come of a message, and was not passed on yet, can be written
down as the client has sent it, and another process goes on with that.

One read may bring 40,000 frames. Some are parsed at a time, and everybody else has a turn in
between.
"""

import asyncio
from collections.abc import Iterable

from aiohttp import WSCloseCode
from websockets.exceptions import ProtocolError
from websockets.frames import Frame, Opcode
from websockets.protocol import SERVER, Protocol, State
from websockets.utils import accept_key

from tenure.entities.edge import FAILED
from tenure.gateway.client_request import ClientRequest
from tenure.member.asgi import MESSAGE_BYTES, Message, header
from tenure.protocol.entity.socket_entry import Frame as Content
from tenure.transport.message_watch import MessageWatch
from tenure.transport.unfinished_messages import UnfinishedMessages
from tenure.transport.websocket_frames import MOST_PIECES, FrameError

KEY = b"sec-websocket-key"
MOST_BYTES = MESSAGE_BYTES + MOST_PIECES * 14
"""The most bytes of the frames of one message, with their heads."""
DATA = Opcode.TEXT, Opcode.BINARY, Opcode.CONT
GONE: Message = {"type": "websocket.disconnect", "code": 1006}


class HeldSocket:
    """The other end of one client's WebSocket."""

    def __init__(self, request: ClientRequest, unfinished: UnfinishedMessages) -> None:
        self._request = request
        headers, client = request.scope["headers"], request.scope["client"]
        token = header(headers, b"authorization")
        whose = (client[0], *([token] if token else []))
        self._watch = MessageWatch(unfinished, whose, request.cut_off)
        self._protocol = Protocol(SERVER, state=State.OPEN, max_size=MESSAGE_BYTES)
        self._pieces: list[bytes] = []
        self._is_text = False
        self._frames: list[Frame] = []  # some at a time, and an empty deque has 768 bytes
        self._came = b""
        self._at = 0
        """How much of what came was parsed."""
        self._half = bytearray()
        """What has come before of a frame that is not whole."""

    async def accept(self) -> None:
        """Shake hands."""
        key = (header(self._request.scope["headers"], KEY) or b"").decode("latin-1")
        accepted = accept_key(key).encode()
        self._request.switch([(b"sec-websocket-accept", accepted)])

    async def receive(self) -> Message:
        """The next message of the client, or its disconnection. The one before was passed on."""
        self._watch.hold(0)
        try:
            while True:
                while self._frames:
                    message = self._taken(self._frames.pop(0))
                    if message is not None:
                        self._watch.hold(len(message.get("text") or message.get("bytes") or b""))
                        return message
                if not await self._read():
                    return GONE
        except FrameError as refused:
            self._protocol.fail(refused.code, str(refused))
            await self._write()
            return GONE

    def end(self) -> None:
        """Nobody receives any more."""
        self._watch.end()

    async def _read(self) -> bool:
        """Parse some frames, once there are any. Returns False if none follow."""
        protocol = self._protocol
        is_over = protocol.state is State.CLOSED or protocol.close_rcvd is not None
        if is_over or protocol.eof_sent:  # after a refusal, too
            return False
        if self._at < len(self._came):
            await asyncio.sleep(0)
        else:
            came = await self._request.receive()
            if came["type"] != "http.request":
                protocol.receive_eof()
                return False
            self._came, self._at = came["body"], 0
        begins, self._at = self._at, self._watch.take(self._came, self._at)
        self._parse(begins, self._watch.whole)
        if self._at == len(self._came):
            self._came, self._at = b"", 0
        await self._write()
        return True

    def _parse(self, begins: int, whole: int) -> None:
        if whole > begins:
            self._protocol.receive_data(bytes(self._half) + self._came[begins:whole])
            self._half.clear()
        self._half += self._came[whole : self._at]
        if self._watch.expected > MOST_BYTES:  # it is refused before it has come
            why = f"a message of more than {MESSAGE_BYTES} bytes"
            raise FrameError(WSCloseCode.MESSAGE_TOO_BIG, why)
        events = self._protocol.events_received()
        self._frames.extend(each for each in events if isinstance(each, Frame))

    def unread(self, unanswered: Content | None) -> bytes:
        """What the client has sent and nobody has taken, after `unanswered`, which is to be taken
        again.
        """
        again = [] if unanswered is None else [_frame(unanswered)]
        if self._pieces:
            kind = Opcode.TEXT if self._is_text else Opcode.BINARY
            again.append(Frame(kind, b"".join(self._pieces), fin=False))
        again += [each for each in self._frames if each.opcode in DATA]
        whole = b"".join(each.serialize(mask=True) for each in again)
        return whole + bytes(self._half) + self._came[self._at :] + self._request.unread()

    def _taken(self, frame: Frame) -> Message | None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._is_text, self._pieces = frame.opcode is Opcode.TEXT, [bytes(frame.data)]
        elif frame.opcode is Opcode.CONT:
            self._pieces.append(bytes(frame.data))
        else:
            return None
        if not frame.fin:
            return None
        whole = b"".join(self._pieces)
        self._pieces = []
        if not self._is_text:
            return {"type": "websocket.receive", "bytes": whole}
        try:
            return {"type": "websocket.receive", "text": whole.decode()}
        except UnicodeDecodeError:
            raise FrameError(WSCloseCode.INVALID_TEXT, "a text is UTF-8") from None

    async def send(self, message: Message) -> None:
        """Send a message to the client."""
        if self._protocol.state is not State.OPEN:
            return
        text = message.get("text")
        if text is not None:
            self._protocol.send_text(text.encode())
        else:
            self._protocol.send_binary(message["bytes"])
        await self._write()

    def unsent(self, unwritten: Iterable[Content]) -> bytes:
        """The bytes by which these frames are sent."""
        return b"".join(_frame(each).serialize(mask=False) for each in unwritten)

    async def close(self, *, code: int) -> None:
        """Say the code, and end."""
        if self._protocol.state is State.OPEN:
            try:
                self._protocol.send_close(code)
            except ProtocolError:  # the owner has named one that nobody may say
                self._protocol.send_close(FAILED)
            await self._write()

    async def _write(self) -> None:
        # An empty part says that nothing follows: the connection is closed when all is over.
        said = b"".join(self._protocol.data_to_send())
        if said:
            await self._request.send_raw(said)


def _frame(content: Content) -> Frame:
    if isinstance(content, str):
        return Frame(Opcode.TEXT, content.encode())
    return Frame(Opcode.BINARY, content)
