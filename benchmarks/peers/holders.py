"""Processes that share 64 partitions, each in the way that its system is meant to be used.

A member is a process. One of its threads asks all the time which partitions the process believes to
hold, by the call that an application would make before it serves a request. It writes down when the
answer changes, and when it could not ask (see `beliefs.py`).

tenure and kazoo's `SetPartitioner` deal partitions out themselves. Locks in Redis, leases in etcd
and advisory locks in PostgreSQL do not: `ByLocks` deals them out, written here with care, as a user
would have to. It knows the members, wants its exact share, looks ten times a second for free
partitions, renews three times in a term, and trusts no lock whose term has run out by its own clock
since it was last renewed; but it can look at that clock only when its loop comes around.
"""

import base64
import http.client
import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, Protocol

from benchmarks.peers.beliefs import PARTITIONS, BeliefWriter
from tenure import Owner
from tenure.client.environment import RealEnvironment

POOL = "bench"
KEYS = range(1 << 57, 1 << 64, 1 << 58)
"""One in the middle of each 64th of a hashed pool."""
TURN_SECONDS = 0.1
SAMPLE_SECONDS = 0.002


class Holder(Protocol):
    """The part of a member that holds partitions."""

    def believes(self) -> int:
        """The partitions that it would serve at this moment, as bits."""

    def turn(self) -> None:
        """Called ten times a second."""

    def leave(self) -> None:
        """Give everything back."""


def bits(partitions: Iterable[int]) -> int:
    return sum(1 << each for each in partitions)


class OfTenure:
    """Asks the library, which reads its memory and the clock."""

    def __init__(self, url: str, name: str, *, is_seen: bool) -> None:
        if not is_seen:
            RealEnvironment.own_process = lambda self: None  # type: ignore[method-assign]  # noqa: ARG005
        self._owner = Owner(url, pool=POOL, address=name, name=name)
        self._owner.__enter__()

    def believes(self) -> int:
        check = self._owner.check
        return bits(n for n, key in enumerate(KEYS) if check(key))

    def turn(self) -> None:
        pass

    def leave(self) -> None:
        self._owner.__exit__(None, None, None)


class OfZookeeper:
    """kazoo's `SetPartitioner`, as its page shows it."""

    def __init__(self, url: str, name: str, term: float, boundary: float) -> None:
        from kazoo.client import KazooClient  # noqa: PLC0415  # only where it is asked for

        self._client = KazooClient(url, timeout=term)
        self._client.start()
        self._name = name
        self._boundary = boundary
        self._partitioner = self._join()

    def _join(self) -> Any:  # noqa: ANN401  # kazoo says nothing of its types
        return self._client.SetPartitioner(
            "/bench",
            set=tuple(range(PARTITIONS)),
            identifier=self._name,
            time_boundary=self._boundary,
        )

    def believes(self) -> int:
        partitioner = self._partitioner
        return bits(partitioner) if partitioner.acquired else 0

    def turn(self) -> None:
        if self._partitioner.release:
            self._partitioner.release_set()
        elif self._partitioner.failed and self._client.connected:
            self._partitioner = self._join()

    def leave(self) -> None:
        self._partitioner.finish()
        self._client.stop()


class ByLocks(ABC):
    """An even share of the partitions, by locks that somebody keeps."""

    Lost: type[Exception] | tuple[type[Exception], ...] = OSError

    has_term = True
    """Whether a lock is freed when nobody renews it."""

    def __init__(self, name: str, term: float) -> None:
        self.name = name
        self.term = term
        self.held: dict[int, Any] = {}
        self._renewed = time.monotonic()

    def believes(self) -> int:
        return bits(list(self.held))

    def turn(self) -> None:
        now = time.monotonic()
        if self.has_term and now > self._renewed + self.term:
            self.held.clear()
        try:
            if now > self._renewed + self.term / 3:
                self.renew()
                self._renewed = now
            self._take_share()
        except self.Lost:
            self.held.clear()
            with suppress(Exception):
                self.connect()

    def _take_share(self) -> None:
        members = sorted(self.members())
        if self.name not in members:
            self.renew()
            return
        least, rest = divmod(PARTITIONS, len(members))
        share = least + (members.index(self.name) < rest)
        for each in sorted(self.held)[share:]:
            self.release(each, self.held.pop(each))
        if len(self.held) < share:
            for each in self.free():
                if len(self.held) < share and (lock := self.acquire(each)) is not None:
                    self.held[each] = lock

    def leave(self) -> None:
        for each, lock in list(self.held.items()):
            del self.held[each]
            self.release(each, lock)
        self.go()

    @abstractmethod
    def connect(self) -> None:
        """Begin again, with nothing held."""

    @abstractmethod
    def renew(self) -> None:
        """Be a member, and keep what is held, for another term."""

    @abstractmethod
    def members(self) -> list[str]:
        """Return the members that are there."""

    @abstractmethod
    def free(self) -> list[int]:
        """The partitions that nobody holds."""

    @abstractmethod
    def acquire(self, partition: int) -> object:
        """Its lock, or None where somebody was faster."""

    @abstractmethod
    def release(self, partition: int, lock: Any) -> None:  # noqa: ANN401  # of each system's own type
        """Give it back."""

    @abstractmethod
    def go(self) -> None:
        """Be no member any more."""


class OfRedis(ByLocks):
    """redis-py's `Lock`."""

    def __init__(self, url: str, name: str, term: float) -> None:
        import redis  # noqa: PLC0415  # only where it is asked for

        super().__init__(name, term)
        self.Lost = (redis.RedisError, OSError)
        host, _, port = url.rpartition(":")
        self._client = redis.Redis(host, int(port), socket_timeout=term / 3)
        self.connect()

    def connect(self) -> None:
        self._client.set(f"member:{self.name}", 1, px=int(self.term * 1000))

    def renew(self) -> None:
        self.connect()
        for each, lock in list(self.held.items()):
            try:
                lock.extend(self.term, replace_ttl=True)
            except self.Lost:
                self.held.pop(each)

    def members(self) -> list[str]:
        found: list[bytes] = self._client.keys("member:*")
        return [each.decode().removeprefix("member:") for each in found]

    def free(self) -> list[int]:
        found: list[bytes | None] = self._client.mget([f"lock:{n}" for n in range(PARTITIONS)])
        return [n for n, holder in enumerate(found) if holder is None]

    def acquire(self, partition: int) -> object:
        lock = self._client.lock(f"lock:{partition}", timeout=self.term, thread_local=False)
        return lock if lock.acquire(blocking=False) else None

    def release(self, partition: int, lock: Any) -> None:  # noqa: ANN401
        with suppress(Exception):
            lock.release()

    def go(self) -> None:
        self._client.delete(f"member:{self.name}")


class OfEtcd(ByLocks):
    """A lease, and keys under it, by calls of our own to its JSON gateway."""

    Lost = (OSError, http.client.HTTPException, KeyError)

    def __init__(self, url: str, name: str, term: float) -> None:
        super().__init__(name, term)
        self._address = url.removeprefix("http://")
        self.connect()

    def connect(self) -> None:
        self._connection = http.client.HTTPConnection(self._address, timeout=self.term / 3)
        self._lease = self._call("/lease/grant", {"TTL": max(2, round(self.term))})["ID"]
        self._put(f"member/{self.name}")

    def _call(self, path: str, body: object) -> dict[str, Any]:
        self._connection.request("POST", f"/v3{path}", json.dumps(body))
        answer: dict[str, Any] = json.loads(self._connection.getresponse().read())
        return answer

    def _put(self, key: str) -> bool:
        """Whether it was free."""
        name = _coded(key)
        put = {"key": name, "value": _coded(self.name), "lease": self._lease}
        compared = {"key": name, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
        done = self._call("/kv/txn", {"compare": [compared], "success": [{"request_put": put}]})
        return bool(done.get("succeeded"))

    def renew(self) -> None:
        answer = self._call("/lease/keepalive", {"ID": self._lease})["result"]
        if int(answer.get("TTL", 0)) <= 0:
            raise ConnectionError

    def _list(self, prefix: str) -> list[str]:
        asked = {"key": _coded(prefix), "range_end": _coded(prefix[:-1] + "0"), "keys_only": True}
        found = self._call("/kv/range", asked).get("kvs", [])
        return [base64.b64decode(each["key"]).decode().removeprefix(prefix) for each in found]

    def members(self) -> list[str]:
        return self._list("member/")

    def free(self) -> list[int]:
        taken = set(map(int, self._list("lock/")))
        return [n for n in range(PARTITIONS) if n not in taken]

    def acquire(self, partition: int) -> object:
        return True if self._put(f"lock/{partition}") else None

    def release(self, partition: int, lock: Any) -> None:  # noqa: ANN401
        del lock
        self._call("/kv/deleterange", {"key": _coded(f"lock/{partition}")})

    def go(self) -> None:
        self._call("/lease/revoke", {"ID": self._lease})


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class OfPostgres(ByLocks):
    """Advisory locks of a session. They have no term: the server frees them with the session."""

    has_term = False

    def __init__(self, url: str, name: str, term: float) -> None:
        import psycopg  # noqa: PLC0415  # only where it is asked for

        super().__init__(name, term)
        self.Lost = (psycopg.Error, OSError)
        self._url = url
        self._number = int(name.rpartition("-")[2])
        self.connect()

    def connect(self) -> None:
        import psycopg  # noqa: PLC0415

        self._connection = psycopg.connect(self._url, autocommit=True)
        self._try(2, self._number)

    def _try(self, kind: int, number: int) -> bool:
        row = self._connection.execute(
            "SELECT pg_try_advisory_lock(%s::int, %s::int)", (kind, number)
        ).fetchone()
        return bool(row and row[0])

    def _taken(self, kind: int) -> list[int]:
        asked = "SELECT objid::int FROM pg_locks WHERE locktype = 'advisory' AND classid = %s"
        return [int(row[0]) for row in self._connection.execute(asked, (kind,))]

    def renew(self) -> None:
        self._connection.execute("SELECT 1")

    def members(self) -> list[str]:
        return [f"member-{number}" for number in self._taken(2)]

    def free(self) -> list[int]:
        taken = set(self._taken(1))
        return [n for n in range(PARTITIONS) if n not in taken]

    def acquire(self, partition: int) -> object:
        return True if self._try(1, partition) else None

    def release(self, partition: int, lock: Any) -> None:  # noqa: ANN401
        del lock
        self._connection.execute("SELECT pg_advisory_unlock(1, %s)", (partition,))

    def go(self) -> None:
        self._connection.close()


def entered(system: str, url: str, name: str, term: float) -> Holder:
    """A member of the pool in this system."""
    match system:
        case "tenure" | "tenure, other host":
            return OfTenure(url, name, is_seen=system == "tenure")
        case "zookeeper":
            return OfZookeeper(url, name, term, boundary=1)
        case "zookeeper, 30 s":
            return OfZookeeper(url, name, term, boundary=30)
        case "redis":
            return OfRedis(url, name, term)
        case "etcd":
            return OfEtcd(url, name, term)
        case _:
            return OfPostgres(url, name, term)


def main(system: str, url: str, name: str, term: float, path: Path) -> None:
    """Hold partitions until a line is read; then leave, and say so."""
    holder, is_over = entered(system, url, name, term), Event()

    def sample() -> None:
        writer = BeliefWriter(path)
        while not is_over.is_set():
            writer.add(time.monotonic(), holder.believes())
            time.sleep(SAMPLE_SECONDS)
        writer.add(time.monotonic(), holder.believes())

    def read() -> None:
        sys.stdin.readline()
        leaving.set()

    sampler, leaving = Thread(target=sample), Event()
    sampler.start()
    Thread(target=read, daemon=True).start()
    print("in", flush=True)
    while not leaving.wait(TURN_SECONDS):
        holder.turn()
    holder.leave()
    is_over.set()
    sampler.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), Path(sys.argv[5]))
