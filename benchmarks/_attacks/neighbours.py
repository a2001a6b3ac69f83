"""A neighbour on the host: it connects from the host's own address, and is another user if that
can be had. It has no secret and no token.
"""

import os
import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks._attacks.attempt import Attempt, Family, masked
from benchmarks._attacks.strangers import MIB, PATHS, pieces_at, silent
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.entity.messages import EntityAsk
from tenure.transport.links import HELLO
from tenure.transport.websocket_channels import PATH
from tenure.wire.entity import encode

CHUNK = b"\x82\xff" + (4 * MIB).to_bytes(8) + bytes(4)
NOBODY_UID = 65_534
OPENED = "files opened"
opened: list[str] = []
"""The files that it could read or write."""


def become_another_user() -> bool:
    """Be a user that has nothing, if this one may choose."""
    if os.geteuid() != 0:
        return False
    os.setgroups(())
    os.setgid(NOBODY_UID)
    os.setuid(NOBODY_UID)
    return True


async def asks(it: Attempt) -> None:
    """S13: calls of entities, whose answers nobody reads."""
    await it.upgrade(PATH)
    it.read_nothing()
    call = masked(encode(EntityAsk(1, EntityCall("", b"key", "method", b""))))
    while True:
        await it.send(call * 100)


async def unfinished_asks(it: Attempt) -> None:
    """S14 at a port of entities."""
    await it.upgrade(PATH)
    await it.send(CHUNK + bytes(4 * MIB - 1))
    await it.read_on()


async def greetings(it: Attempt) -> None:
    """S4, S5: say that it is the member itself, whose calls it would get."""
    await it.upgrade(PATH)
    await it.send(masked(encode(EntityAsk(1, EntityCall("", b"", HELLO, it.url.encode())))))
    await it.read_on()


async def datagrams(it: Attempt) -> None:
    """Gossip that is none."""
    to = urlsplit(it.url)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as thrower:
        for _ in range(100):
            noise = it.random.randbytes(it.random.randrange(1, 3_000))
            thrower.sendto(noise, (to.hostname, to.port))


async def files(it: Attempt) -> None:
    """S18: open what the processes keep on disk. The `url` names the directory."""
    _try_files(Path(urlsplit(it.url).path))


def _try_files(directory: Path) -> None:
    for each in directory.rglob("*"):
        for mode in ("rb", "ab"):
            with suppress(OSError), each.open(mode):
                opened.append(f"{each} {mode}")


FAMILIES = (
    Family(asks, "entities", 4),
    Family(unfinished_asks, "entities", 40),
    Family(greetings, "entities", 10),
    *(pieces_at(at, 2) for at in PATHS),
    Family(silent, "hand_off", 70),
    Family(datagrams, "node", 3),
    Family(files, "files", 1),
)
