"""How soon a holder learns that it has lost what it held.

There are two cases. *Cut off*: no message from or to the holder arrives any longer, and nobody
tells it. *Taken away*: at the coordinator somebody takes away what it holds, as an operator does
with a process that hangs; the holder is healthy, and could be told at once.
"""

import base64
import json
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any, NamedTuple

from benchmarks._quick import QUICK
from benchmarks._report import Section, Table, prose
from benchmarks.peers.beliefs import PARTITIONS, together
from benchmarks.peers.holders import POOL
from benchmarks.peers.pool import Member, Pool
from benchmarks.peers.proxy import proxied
from benchmarks.peers.servers import TITLES, serving, there

TERM = 1.3 if QUICK else 13.0
WATCHED_SECONDS = 2.5 * TERM
TEXT = """Two members. *Cut off*: the packets between one of them and its coordinator are dropped,
and no connection is closed. Beside it how soon the other member holds everything, and for how
long both believed to hold the same partition. *Taken away*: at the coordinator, what one holds is
taken from it (tenure: `tenure drain`; ZooKeeper, etcd and Redis: its lock nodes, lease and keys
are deleted; PostgreSQL: its session is ended); it is in contact all the while. *Another holds it*
is never where the holder itself takes it again. Times are until the holder's own check says no,
for all that it held. Every term is {term:g} s; *never* means not within {watched:g} s."""


class Loss(NamedTuple):
    """The outcome of one run."""

    learnt: float | None
    taken: float | None
    both: float


def watch(pool: Pool, victim: Member, act: Callable[[], object]) -> Loss:
    """Act; then look until everything is said."""
    held = [n for n in range(PARTITIONS) if victim.holds(n)]
    others = [member for member in pool.members if member is not victim]
    learnt: float | None = None
    taken: float | None = None
    began = monotonic()
    act()
    while (now := monotonic() - began) < WATCHED_SECONDS and (learnt is None or taken is None):
        if learnt is None and not any(victim.holds(n) for n in held):
            learnt = now
        if taken is None and all(any(other.holds(n) for other in others) for n in held):
            taken = now
        sleep(0.002)
    return Loss(learnt, taken, max(pool.seconds(together, began, monotonic())))


def cut_off(system: str, url: str, place: Path) -> Loss:
    """Cut off one of two members: the one behind a proxy."""
    with ExitStack() as stack:
        proxy = stack.enter_context(proxied(url, place / "proxy"))
        pool = stack.enter_context(Pool(system, url, TERM, place / "cut"))
        pool.start()
        [victim] = pool.start(url=proxy.url)
        pool.settle()
        return watch(pool, victim, proxy.cut)


def taken_away(system: str, url: str, place: Path) -> Loss:
    """Let an operator take partitions away from one of two members."""
    with Pool(system, url, TERM, place / "taken") as pool:
        pool.start()
        [victim] = pool.start()
        pool.settle()
        return watch(pool, victim, lambda: TAKE[system](url, victim))


def _drain(url: str, victim: Member) -> None:
    _post(f"{url}/v1/pools/{POOL}/drain", {"owner": victim.name})


def _delete_nodes(url: str, victim: Member) -> None:
    from kazoo.client import KazooClient  # noqa: PLC0415  # only where it is asked for

    client = KazooClient(url)
    client.start()
    for n in range(PARTITIONS):
        if victim.holds(n):
            for node in client.get_children(f"/bench/locks/{n}"):
                client.delete(f"/bench/locks/{n}/{node}")
    client.stop()


def _delete_keys(url: str, victim: Member) -> None:
    import redis  # noqa: PLC0415  # only where it is asked for

    host, _, port = url.rpartition(":")
    held = [f"lock:{n}" for n in range(PARTITIONS) if victim.holds(n)]
    redis.Redis(host, int(port)).delete(f"member:{victim.name}", *held)


def _revoke(url: str, victim: Member) -> None:
    key = base64.b64encode(f"member/{victim.name}".encode()).decode()
    lease = _etcd(url, "/kv/range", {"key": key})["kvs"][0]["lease"]
    _etcd(url, "/lease/revoke", {"ID": lease})


def _etcd(url: str, path: str, body: object) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = _post(f"{url}/v3{path}", body)
    return found


def _post(url: str, body: object) -> Any:  # noqa: ANN401  # as each answers
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310
    with urllib.request.urlopen(asked) as answer:  # noqa: S310
        return json.loads(answer.read())


def _end_session(url: str, victim: Member) -> None:
    import psycopg  # noqa: PLC0415  # only where it is asked for

    number = int(victim.name.rpartition("-")[2])
    asked = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE classid = 2 AND objid = %s"
    with psycopg.connect(url) as connection:
        connection.execute(asked, (number,))


TAKE: dict[str, Callable[[str, Member], None]] = {
    "tenure": _drain,
    "zookeeper": _delete_nodes,
    "redis": _delete_keys,
    "etcd": _revoke,
    "postgres": _end_session,
}


def run(tell: Callable[[str], None]) -> Section:
    """Every system in turn."""
    notes: list[str] = []
    rows = []
    with TemporaryDirectory(prefix="tenure-bench-") as directory:
        Path(directory).chmod(0o755)
        for system in there(notes):
            place = Path(directory, system)
            with serving(system, place / "server", TERM) as server:
                tell(f"{system}: cut off")
                cut = cut_off(system, server.url, place)
            with serving(system, place / "server-2", TERM) as server:
                tell(f"{system}: taken away")
                taken = taken_away(system, server.url, place)
            rows.append([TITLES[system], *cells(cut), *cells(taken)])
    head = ["", *(f"{what}: {of}" for what in ("cut off", "taken away") for of in HEAD)]
    return Section(
        title="How soon a holder learns of its loss",
        text=prose(TEXT.format(term=TERM, watched=WATCHED_SECONDS)),
        tables=[Table(head, rows)],
        notes=notes,
    )


HEAD = ("it learns, s", "another holds it, s", "both, ms")


def cells(loss: Loss) -> list[str]:
    """Return the cells that `HEAD` names."""
    said = ["never" if each is None else f"{each:.2f}" for each in (loss.learnt, loss.taken)]
    return [*said, f"{loss.both * 1000:.0f}"]
