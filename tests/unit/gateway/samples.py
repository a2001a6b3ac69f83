"""What gateways are told, as bytes: samples for whoever reads such bytes."""

import msgspec

from tenure.entities.socket_offer import SocketOffer, TakenSocket, told
from tenure.gateway.passed_connection import PassedConnection, PassedSocket, PassedTunnel
from tenure.protocol.entity.socket_end import PassedEnd

SECRET = b"s" * 32
NAMES = b'["http", "https"]'
TAKEN = TakenSocket("rooms", "attic", "ann")
A_SOCKET = told(TAKEN).encode()
AN_OFFER = SocketOffer("rooms", "0" * 16, "0" * 32, SECRET)
AN_ANSWER = AN_OFFER.answer(TAKEN).encode()
A_PASSED = msgspec.msgpack.encode(
    [
        PassedConnection(
            has_asked=True,
            unread=b"frames",
            socket=PassedSocket(
                *("rooms", "attic", b"i" * 16, PassedEnd(3, 2, (7, 9), (5, 6))),
                *(b"unsent", b"/rooms/attic", b"Bearer x"),
            ),
        ),
        PassedConnection(
            has_asked=True,
            unread=b"frames",
            tunnel=PassedTunnel("http://127.0.0.1:8000", b"more frames", b"/echo"),
        ),
    ]
)
