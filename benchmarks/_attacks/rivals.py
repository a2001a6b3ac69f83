"""A rival manager: whoever answers at an address that clients list for a manager."""

from collections import Counter
from itertools import count as numbers_from
from random import Random

from aiohttp import WSMsgType, web

from tenure.protocol.lease.messages import Introduction, Standby
from tenure.protocol.lease.rivalry import Succession
from tenure.wire.lease import decode_from_lookup, decode_from_owner, encode
from tenure.wire.versions import NEWEST, SUBPROTOCOLS

MIB = 1 << 20
CHUNK = bytes(MIB)


class RivalManager:
    """A server that answers owners and lookups with lies, another one each time."""

    def __init__(self, made: Counter[str]) -> None:
        self._made = made
        self._random = Random(7)
        self._kinds = (self.the_same, self.journals, self.redirects, self.noise, self.huge)
        self._numbers = numbers_from()

    async def open(self, port: int) -> web.AppRunner:
        """Listen there."""
        app = web.Application()
        app.router.add_get("/v1/owner", self._on_socket)
        app.router.add_get("/v1/lookup", self._on_socket)
        app.router.add_route("*", "/{any:.*}", self._on_request)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        return runner

    async def _on_request(self, request: web.Request) -> web.StreamResponse:
        """A status that does not end."""
        self._made["statuses"] += 1
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(100):
            await answer.write(CHUNK)
        return answer

    async def _on_socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=SUBPROTOCOLS)
        await socket.prepare(request)
        decode = decode_from_owner if request.path == "/v1/owner" else decode_from_lookup
        async for said in socket:
            if said.type == WSMsgType.BINARY:
                lie = self._kinds[next(self._numbers) % len(self._kinds)]
                self._made[lie.__name__] += 1
                asked = decode(said.data, NEWEST)
                await lie(socket, getattr(asked, "token", 0), getattr(asked, "journal", 0))
        return socket

    async def the_same(self, socket: web.WebSocketResponse, token: int, journal: int) -> None:
        """Lead the very journal that the client follows, under a higher leadership."""
        said = Introduction(journal=journal, leadership=1 << 40, manager_nonce=7, token=token)
        await socket.send_bytes(encode(said, NEWEST))

    async def journals(self, socket: web.WebSocketResponse, token: int, journal: int) -> None:
        """Lead many journals."""
        for number in range(20):
            said = Introduction(
                journal=journal + number + 1,
                leadership=1 << 40,
                manager_nonce=7,
                token=token,
                succeeds=(Succession(self._random.getrandbits(62), bytes(16)),),
            )
            await socket.send_bytes(encode(said, NEWEST))

    async def noise(self, socket: web.WebSocketResponse, token: int, journal: int) -> None:
        """Bytes that are no message."""
        del token, journal
        await socket.send_bytes(self._random.randbytes(4_000))

    async def huge(self, socket: web.WebSocketResponse, token: int, journal: int) -> None:
        """A message that is larger than any."""
        del token, journal
        await socket.send_bytes(bytes(64 * MIB))

    async def redirects(self, socket: web.WebSocketResponse, token: int, journal: int) -> None:
        """Send to a leader that does not exist, another one each time."""
        del token, journal
        port = self._random.randrange(1, 1 << 16)
        await socket.send_bytes(encode(Standby(leader=f"http://127.0.0.1:{port}"), NEWEST))
