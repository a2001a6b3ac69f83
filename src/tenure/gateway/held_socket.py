"""A WebSocket that ends at the gateway, as `Edge` knows one: `websockets` reads and writes its
frames. Extensions are not offered to the client, so nothing is compressed.
"""

from collections import deque

from websockets.frames import Frame, Opcode
from websockets.protocol import SERVER, Protocol, State
from websockets.utils import accept_key

from tenure.gateway.client_request import ClientRequest
from tenure.member.asgi import MESSAGE_BYTES, Message, header
from tenure.transport.message_watch import MessageWatch
from tenure.transport.unfinished_messages import UnfinishedMessages

KEY = b"sec-websocket-key"
NOT_TEXT = 1007
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
        self._frames: deque[Frame] = deque()

    async def accept(self) -> None:
        """Shake hands."""
        key = (header(self._request.scope["headers"], KEY) or b"").decode("latin-1")
        accepted = accept_key(key).encode()
        self._request.switch([(b"sec-websocket-accept", accepted)])

    async def receive(self) -> Message:
        """The next message of the client, or its disconnection. The one before was passed on."""
        self._watch.hold(0)
        message = await self._next()
        self._watch.hold(len(message.get("text") or message.get("bytes") or b""))
        return message

    def end(self) -> None:
        """Nobody receives any more."""
        self._watch.end()

    async def _next(self) -> Message:
        while True:
            while self._frames:
                message = self._taken(self._frames.popleft())
                if message is not None:
                    return message
            if self._protocol.state is State.CLOSED or self._protocol.close_rcvd is not None:
                return GONE
            came = await self._request.receive()
            if came["type"] != "http.request":
                self._protocol.receive_eof()
                return GONE
            self._watch.feed(came["body"])
            self._protocol.receive_data(came["body"])
            came_now = self._protocol.events_received()
            self._frames.extend(each for each in came_now if isinstance(each, Frame))
            await self._write()

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
        if not self._is_text:
            return {"type": "websocket.receive", "bytes": whole}
        try:
            return {"type": "websocket.receive", "text": whole.decode()}
        except UnicodeDecodeError:
            self._protocol.fail(NOT_TEXT, "a text is UTF-8")
            return GONE

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

    async def close(self, *, code: int) -> None:
        """Say the code, and end."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code)
            await self._write()

    async def _write(self) -> None:
        # An empty part says that nothing follows: the connection is closed when all is over.
        said = b"".join(self._protocol.data_to_send())
        if said:
            await self._request.send_raw(said)
