"""The directory of a node: its identity, the topology by which it acts, and its rows (R31).

A node is its directory. Its id and its first token are drawn when the directory is made, so an
empty disk is another node. Each start is a life of the node with a higher generation. The
generation is on the disk before any other node hears of it, and only after the rows are locked: a
process that does not get the lock begins no life. Files are written beside the old ones and then
replace them, so a whole one always exists.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TypeVar

import msgspec

from tenure.base.names import shown
from tenure.columns.engines.directory import Translated
from tenure.errors import MALFORMED, ConfigurationError, StoreDamaged
from tenure.protocol.gossip.messages import NodeDigest
from tenure.protocol.topology.records import NO_NODE, PROOF_BYTES, NodeId, Proof, Token, Topology
from tenure.protocol.topology.ring import random_token
from tenure.runtime import private_files
from tenure.transport.datagram import SHORTEST_SECRET
from tenure.wire.topology import packed_topology, read_topology

K = TypeVar("K")
IDENTITY = "node.json"
TOPOLOGY = "topology"
KNOWN = "known"
ROWS = "rows"
ID_BITS = 62


class StorePutBack(StoreDamaged):
    """A directory was put back to an earlier state, by somebody who must be told so."""


class NodeIdentity(msgspec.Struct, frozen=True, kw_only=True):
    format: int = 1
    cluster: str
    node: NodeId
    token: Token
    generation: int = 0
    """The generation of the life that began last."""
    proof: Proof = b""
    """The secret by which managers know the node again, from its first life on that has one."""
    replaces: NodeId = NO_NODE
    """The node that had this directory before, and was damaged: this one takes its place."""
    replaced_proof: Proof = b""
    """The secret of that node."""
    aside: str = ""
    """The directory in this one to which the files of that node are being moved."""
    damages: int = 0
    """How often the disk had lost something before this node."""


class NodeDirectory:
    """One directory, while a node runs on it. What is kept is written in the order of the calls."""

    def __init__(self, path: Path, identity: NodeIdentity) -> None:
        self.path = path
        self.identity = identity
        self._thread = ThreadPoolExecutor(1, "tenure node directory")
        """A single thread, so that files are written in order."""

    def soon(self, keep: Callable[[K], None], what: K) -> "asyncio.Future[None]":
        """Keep something, in another thread, after everything before it."""
        return asyncio.get_running_loop().run_in_executor(self._thread, keep, what)

    def close(self) -> None:
        """Wait until everything is kept."""
        self._thread.shutdown()

    @classmethod
    def open(cls, path: Path, cluster: str, random: Random) -> "NodeDirectory":
        """Open the directory of a node of `cluster`, which is made if it is missing.

        Raises ConfigurationError if it belongs to another cluster, StoreDamaged, and
        StoreUnwritable.
        """
        file = path / IDENTITY
        if path.exists() and not path.is_dir():
            raise ConfigurationError(f"{path} is not a directory: name another one")
        try:
            identity = msgspec.json.decode(file.read_bytes(), type=NodeIdentity)
        except (FileNotFoundError, NotADirectoryError):
            begun = path / f"{IDENTITY}.new"  # of a first start that was killed, or had no space
            if path.exists() and any(each != begun for each in path.iterdir()):
                raise ConfigurationError(
                    f"{path} is not empty, and not the directory of a node: there is no "
                    f"{IDENTITY} in it. Name another directory"
                ) from None
            with Translated(path):
                private_files.make_directory(path)
            identity = NodeIdentity(
                cluster=cluster, node=random.getrandbits(ID_BITS) + 1, token=random_token(random)
            )
            cls(path, identity).keep(identity)
        except (*MALFORMED, OSError) as error:
            raise StoreDamaged(f"{file} cannot be read: {error}; restore it from a copy") from error
        if identity.cluster != cluster:
            raise ConfigurationError(
                f"{path} is the directory of a node of the cluster {shown(identity.cluster)}, not "
                f"of {shown(cluster)}: name that cluster, or another directory"
            )
        private_files.warn_of_writers(path, "the identity of this node")
        found = cls(path, identity)
        if identity.aside:
            found._move_aside()
        for name in (IDENTITY, TOPOLOGY, KNOWN):  # earlier releases let everybody read them
            with suppress(OSError):
                (path / name).chmod(private_files.MODE)
        return found

    def begin_anew(self, random: Random) -> Path:
        """Become another node, which takes the place of this one: its disk has lost something, and
        perhaps a promise. All that it has is put aside, and returned where. Raises StoreDamaged if
        that was done before, and is not over.
        """
        mine = self.identity
        if mine.replaces and not self._was_replaced(mine.replaces):
            raise StoreDamaged(
                f"{self.path} was damaged again, before it had its rows from other nodes: its disk "
                "may be failing. Give the node a directory on another disk"
            )
        aside = self.path / f"damaged-{time.strftime('%Y%m%dT%H%M%S')}-{mine.node:x}"
        with Translated(self.path):
            private_files.make_directory(aside)
            private_files.overwrite(aside / IDENTITY, msgspec.json.encode(mine))
        self.keep(
            NodeIdentity(
                cluster=mine.cluster,
                node=random.getrandbits(ID_BITS) + 1,
                token=random_token(random),
                replaces=mine.node,
                replaced_proof=mine.proof,
                aside=aside.name,
                damages=mine.damages + 1,
            )
        )
        self._move_aside()
        return aside

    def _was_replaced(self, node: NodeId) -> bool:
        try:
            topology = self.topology()
        except StoreDamaged:
            return False
        return topology is not None and topology.is_removed(node)

    def _move_aside(self) -> None:
        """Move what the former node had; then this one has a directory of its own."""
        aside = self.path / self.identity.aside
        with Translated(self.path):
            for name in (ROWS, TOPOLOGY, KNOWN):
                with suppress(FileNotFoundError):
                    (self.path / name).rename(aside / name)
        self.keep(msgspec.structs.replace(self.identity, aside=""))

    def begin_life(self) -> None:
        """Begin a life. If the clock was put back, the generation still rises."""
        later = max(self.identity.generation + 1, time.time_ns() // 1_000_000)
        proof = self.identity.proof or secrets.token_bytes(PROOF_BYTES)
        self.keep(msgspec.structs.replace(self.identity, generation=later, proof=proof))

    def keep(self, identity: NodeIdentity) -> None:
        self._write(IDENTITY, msgspec.json.encode(identity))
        self.identity = identity

    def topology(self) -> Topology | None:
        """The topology by which the node acted last; None before it was told one."""
        try:
            data = (self.path / TOPOLOGY).read_bytes()
        except FileNotFoundError:
            return None
        return read_topology(data, str(self.path / TOPOLOGY))

    def keep_topology(self, topology: Topology) -> None:
        """Have it on the disk. Raises StoreUnwritable, as all that writes."""
        self._write(TOPOLOGY, packed_topology(topology))

    def known(self) -> tuple[NodeDigest, ...]:
        """The promises of other nodes that this one has heard of."""
        try:
            data = (self.path / KNOWN).read_bytes()
            return msgspec.msgpack.decode(data, type=tuple[NodeDigest, ...])
        except FileNotFoundError:
            return ()
        except MALFORMED as error:
            raise StoreDamaged(f"{self.path / KNOWN} cannot be read: {error}") from error

    def keep_known(self, known: tuple[NodeDigest, ...]) -> None:
        self._write(KNOWN, msgspec.msgpack.encode(known))

    def _write(self, name: str, data: bytes) -> None:
        with Translated(self.path):
            private_files.replace(self.path / name, data)


def read_secret(path: Path) -> bytes:
    """Read the cluster's secret from a file. Raises ConfigurationError if it cannot be one."""
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise ConfigurationError(f"the secret in {path} cannot be read: {error}") from error
    private_files.warn_of_readers(path, "the cluster's secret")
    if len(secret) < SHORTEST_SECRET:
        raise ConfigurationError(
            f"the secret in {path} has {len(secret)} bytes, and at least {SHORTEST_SECRET} are "
            "needed: make one with `openssl rand -hex 32`, the same for all nodes"
        )
    return secret
