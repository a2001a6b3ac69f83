"""Datagrams between the nodes of one cluster: short, sealed, and lost whenever the network likes.

Anybody can send a datagram to an open port, under any address. So each carries a seal under the
cluster's secret, its sender, the sender's life, and a number within that life. A datagram with a
wrong seal, one that came before, or one from an earlier life of its sender, is dropped and counted.
None of these is answered, so a stranger learns nothing by sending, and costs no more than one hash.

- `send` never waits, and raises only if the datagram is too long. It may arrive once or never.
- `heard` is called in the loop of `listen`, with the bytes, their sender, and the sender's address.
- After `close`, `heard` is not called.

The key of the older seal has only eight bytes of the cluster's name. As long as a member has not
been heard with the newer one, datagrams are sent with both, and its own count with the older one.

`lab.contracts.datagrams` tests all this.
"""

import asyncio
import hmac
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol, TypeAlias

from tenure.errors import ConfigurationError, LocalProtocolError
from tenure.protocol.gossip.limits import DATAGRAM_BYTES, ENVELOPE_BYTES, MESSAGE_BYTES
from tenure.runtime.read_size import read_small_blocks
from tenure.wire.cluster_key import cluster_key

VERSION: Final = 2
OLDER_VERSION: Final = 1
"""The seal of releases before the key had the whole name of the cluster."""
SEAL_BYTES: Final = 16
_HEAD = struct.Struct("!BQQQQ")
"""Version, node, life, number, and the wall clock in microseconds."""
assert _HEAD.size + SEAL_BYTES <= ENVELOPE_BYTES
REMEMBERED: Final = 1_024
"""How many of a sender's datagram numbers are remembered. A datagram that more than these have
overtaken is dropped.
"""
SENDERS: Final = 4_096
"""How many senders are remembered. All of them have the secret; a node that restarts keeps its id.
"""
RESOLVED_SECONDS: Final = 60.0
"""How long the address of a host's name is used before the name is asked about again."""
SHORTEST_SECRET: Final = 16
PURPOSE: Final = b"tenure-gossip"


class Sealed(NamedTuple):
    """The contents of a datagram."""

    data: bytes
    ahead_us: int
    """How far the sender's wall clock was ahead of this node's, if the datagram took no time to
    arrive.
    """


class _Numbers:
    """The numbers of the datagrams that were received from one life of a node."""

    def __init__(self, life: int) -> None:
        self.life = life
        self.version = OLDER_VERSION
        """The newest version of the seal that this life has used."""
        self._newest = 0
        self._seen = 0
        """One bit for each of the last `REMEMBERED` numbers, the newest in the lowest place."""

    def is_new(self, number: int) -> bool:
        """Whether this number is new. From now on it is not."""
        if number > self._newest:
            kept = (1 << REMEMBERED) - 1
            self._seen = ((self._seen << min(number - self._newest, REMEMBERED)) | 1) & kept
            self._newest = number
            return True
        bit = 1 << (self._newest - number)
        if self._newest - number >= REMEMBERED or self._seen & bit:
            return False
        self._seen |= bit
        return True


class DatagramSeal:
    """Seals what one life of a node sends, and opens what others do.

    `wall` returns the time of the wall clock in microseconds. Raises ConfigurationError if the
    secret is too short.
    """

    def __init__(
        self, secret: bytes, cluster: str, node: int, life: int, wall: Callable[[], int]
    ) -> None:
        if len(secret) < SHORTEST_SECRET:
            raise ConfigurationError(
                f"the cluster's secret has {len(secret)} bytes, and at least {SHORTEST_SECRET} are "
                "needed: make one with `openssl rand -hex 32`"
            )
        older = blake2b(secret, key=cluster.encode()[:8].ljust(8), person=PURPOSE).digest()
        self._keys = {VERSION: cluster_key(secret, cluster, PURPOSE), OLDER_VERSION: older}
        self._members: frozenset[int] = frozenset()
        self._node = node
        self._life = life
        self._wall = wall
        self._sent = 0
        self._received: dict[int, _Numbers] = {}
        self.dropped: Counter[str] = Counter()
        """How many datagrams were dropped, by reason."""
        self.was_other = False
        """Whether the latest datagram was dropped because its seal was wrong."""

    def follow(self, members: Iterable[int]) -> None:
        """Hear these nodes, and no others, with the older seal as well."""
        self._members = frozenset(members) - {self._node}

    def for_all(self, data: bytes) -> list[bytes]:
        """Seal a datagram so that every member understands it."""
        versions = [VERSION]
        if any(map(self._may_be_older, self._members)):
            versions.append(OLDER_VERSION)
        return [self.seal(data, version) for version in versions]

    def _may_be_older(self, node: int) -> bool:
        known = self._received.get(node)
        return known is None or known.version == OLDER_VERSION

    def seal(self, data: bytes, version: int = VERSION) -> bytes:
        """Seal a datagram. Raises LocalProtocolError if it would be too long."""
        if len(data) > MESSAGE_BYTES:
            raise LocalProtocolError(
                f"a datagram of {len(data)} bytes; at most {MESSAGE_BYTES} are allowed"
            )
        self._sent += 1
        body = _HEAD.pack(version, self._node, self._life, self._sent, self._wall()) + data
        return body + self._mac(body)

    def _mac(self, body: bytes) -> bytes:
        return blake2b(body, key=self._keys[body[0]], digest_size=SEAL_BYTES).digest()

    def open(self, datagram: bytes) -> Sealed | None:
        """The content of a datagram; None if the datagram is dropped."""
        self.was_other = False
        try:
            return self._open(datagram)
        except _DatagramDropped as error:
            self.dropped[error.why] += 1
            self.was_other = error.why == "seal"
            return None

    def _open(self, datagram: bytes) -> Sealed:
        if not _HEAD.size + SEAL_BYTES <= len(datagram) <= DATAGRAM_BYTES:
            raise _DatagramDropped("length")
        if datagram[0] not in self._keys:
            raise _DatagramDropped("version")
        body, seal = datagram[:-SEAL_BYTES], datagram[-SEAL_BYTES:]
        if not hmac.compare_digest(seal, self._mac(body)):
            raise _DatagramDropped("seal")
        version, node, life, number, wall = _HEAD.unpack_from(body)
        if node == self._node:
            raise _DatagramDropped("own")
        known = self._received.get(node)
        is_newer = known is not None and (known.life, known.version) >= (life, VERSION)
        if version == OLDER_VERSION and (is_newer or node not in self._members):
            raise _DatagramDropped("older seal")
        if known is None or life > known.life:
            if len(self._received) >= SENDERS and known is None:
                raise _DatagramDropped("too many senders")
            known = self._received[node] = _Numbers(life)
        if life < known.life:
            raise _DatagramDropped("earlier life")
        if not known.is_new(number):
            raise _DatagramDropped("replay")
        known.version = max(known.version, version)
        return Sealed(body[_HEAD.size :], wall - self._wall())


class _DatagramDropped(Exception):
    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


DatagramHeard: TypeAlias = Callable[[str, Sealed], None]
"""Called with the sender's address and the contents."""


def _tell_nobody(address: str) -> None:
    """Tell nobody of a wrong seal."""


class Datagrams(Protocol):
    """The place where one node sends and hears."""

    dropped: Counter[str]
    on_other_seal: Callable[[str], None]
    """Called with an address to which this node sends, if a datagram with a wrong seal came from
    there: most likely the node there was given another secret. Strangers' addresses are not told.
    """

    def follow(self, members: Iterable[int]) -> None: ...

    async def listen(self, where: str, heard: DatagramHeard) -> str:
        """Listen at "HOST:PORT", and return the address. Port 0 means any free port. Raises
        OSError.
        """
        ...

    def send(self, address: str, data: bytes) -> None:
        """Send, without any promise that it arrives. Raises LocalProtocolError if the data is too
        long.
        """
        ...

    async def close(self) -> None:
        """Stop listening."""
        ...


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of "HOST:PORT". Raises ConfigurationError if it has another form."""
    host, _, port = address.rpartition(":")
    is_port = port.isdecimal() and int(port) <= 65_535  # noqa: PLR2004 - as many as there are
    if not host or "/" in host or not is_port:  # a URL has another form, too
        raise ConfigurationError(f"{address!r} is not HOST:PORT, such as 10.0.0.7:7501")
    return host.strip("[]"), int(port)


class UdpDatagrams(asyncio.DatagramProtocol):
    """`Datagrams` over UDP."""

    def __init__(self, seal: DatagramSeal) -> None:
        self._seal = seal
        self.dropped = seal.dropped
        self.on_other_seal: Callable[[str], None] = _tell_nobody
        self._heard: DatagramHeard
        self._transport: asyncio.DatagramTransport | None = None
        self._resolved: dict[str, tuple[float, tuple[str, int]]] = {}
        self._names: dict[tuple[str, int], str] = {}
        """The addresses as this node was given them, by what they resolved to."""
        self._resolving: dict[str, asyncio.Task[None]] = {}

    def follow(self, members: Iterable[int]) -> None:
        self._seal.follow(members)

    async def listen(self, where: str, heard: DatagramHeard) -> str:
        self._heard = heard
        host, port = host_and_port(where)
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(
            lambda: self, local_addr=(host, port)
        )
        read_small_blocks(self._transport)  # no datagram is longer
        port = self._transport.get_extra_info("sockname")[1]
        return f"{where.rpartition(':')[0]}:{port}"

    def send(self, address: str, data: bytes) -> None:
        """See `Datagrams.send`. A datagram to a host whose name is not resolved yet is lost."""
        datagrams = self._seal.for_all(data)
        if self._transport is None:
            return
        now = asyncio.get_running_loop().time()
        until, known = self._resolved.get(address, (0.0, None))
        if now >= until and address not in self._resolving:
            task = asyncio.get_running_loop().create_task(self._resolve(address))
            self._resolving[address] = task
            task.add_done_callback(lambda _: self._resolving.pop(address, None))
        if known is None:
            self.dropped["unresolved"] += 1
        else:
            for datagram in datagrams:
                self._transport.sendto(datagram, known)

    async def _resolve(self, address: str) -> None:
        """Look an address up, among those to which this socket can send: a host may have others."""
        assert self._transport is not None
        family = self._transport.get_extra_info("socket").family
        loop = asyncio.get_running_loop()
        try:
            host, port = host_and_port(address)
            found = await loop.getaddrinfo(host, port, family=family, proto=17)
        except (OSError, UnicodeError, ConfigurationError):
            return
        there = str(found[0][4][0]), port
        self._resolved[address] = (loop.time() + RESOLVED_SECONDS, there)
        self._names[there] = address

    async def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
        tasks = list(self._resolving.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- what asyncio calls ---

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """A datagram arrived."""
        if self._transport is None:
            return
        sealed = self._seal.open(data)
        if sealed is not None:
            host = f"[{addr[0]}]" if ":" in addr[0] else addr[0]
            self._heard(f"{host}:{addr[1]}", sealed)
        elif self._seal.was_other and (name := self._names.get((addr[0], addr[1]))):
            self.on_other_seal(name)

    def error_received(self, exc: Exception) -> None:
        """Nobody listens at an address, or the network is down: the datagram is lost."""
        self.dropped["not sent"] += 1


class MemoryDatagramNetwork:
    """The nodes of one process and one event loop, by the address at which each listens."""

    def __init__(self) -> None:
        self.hearing: dict[str, MemoryDatagrams] = {}
        self.loses: Callable[[str, str], bool] = lambda _from, _to: False
        """Whether a datagram from one address to another is lost."""
        self._ports = 30_000

    def free_port(self) -> int:
        """A port at which nobody has listened."""
        self._ports += 1
        return self._ports


class MemoryDatagrams:
    """`Datagrams` in memory: bytes are sealed and opened as over a network, and arrive later."""

    def __init__(self, network: MemoryDatagramNetwork, seal: DatagramSeal) -> None:
        self._network = network
        self._seal = seal
        self.dropped = seal.dropped
        self.on_other_seal: Callable[[str], None] = _tell_nobody
        self._known: set[str] = set()
        """The addresses to which this node has sent."""
        self._address = ""
        self._heard: DatagramHeard
        self._loop: asyncio.AbstractEventLoop

    def follow(self, members: Iterable[int]) -> None:
        self._seal.follow(members)

    async def listen(self, where: str, heard: DatagramHeard) -> str:
        host, port = where.rpartition(":")[0], host_and_port(where)[1]
        self._address = f"{host}:{port or self._network.free_port()}"
        if self._address in self._network.hearing:
            raise OSError(f"{self._address} is in use")
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._network.hearing[self._address] = self
        return self._address

    def send(self, address: str, data: bytes) -> None:
        datagrams = self._seal.for_all(data)
        self._known.add(address)
        receiver = self._network.hearing.get(address)
        if not self._address or receiver is None or self._network.loses(self._address, address):
            self.dropped["not sent"] += 1
        else:
            for datagram in datagrams:
                self._loop.call_soon(receiver.arrive, self._address, datagram)

    def arrive(self, sender: str, datagram: bytes) -> None:
        """A datagram arrived."""
        if not self._address:
            return
        sealed = self._seal.open(datagram)
        if sealed is not None:
            self._heard(sender, sealed)
        elif self._seal.was_other and sender in self._known:
            self.on_other_seal(sender)

    async def close(self) -> None:
        self._network.hearing.pop(self._address, None)
        self._address = ""
