"""Seconds in which keys have no owner when members come and go, and how many keys move.

64 partitions, eight members in processes of their own. A ninth joins; one is told to leave; one is
killed (kill -9). Other owners of tenure on the host see that a killed member is gone; if nobody can
see it, its hold must run out, like every other term here.
"""

from collections.abc import Callable
from pathlib import Path
from signal import SIGKILL
from statistics import mean
from tempfile import TemporaryDirectory
from time import monotonic
from typing import NamedTuple

from benchmarks._pictures import Bar, Group, draw_bars
from benchmarks._quick import QUICK, sized
from benchmarks._report import Picture, Section, Table, prose
from benchmarks.peers.beliefs import PARTITIONS, without
from benchmarks.peers.pool import Pool
from benchmarks.peers.servers import TITLES, serving, there

MEMBERS = sized(8, 4)
TERM = 1.3 if QUICK else 13.0
"""The hold of the presets `test` and `default`, and the time to live of every lock."""
PATIENCE = 120.0
HEAD = ("longest, s", "mean, s", "moved (least)")
TEXT = """{partitions} partitions, {members} members in processes of their own; every term,
session and time to live is {term:g} s (etcd: whole seconds). *Longest* is of the partition that
had no owner for longest; *mean* is over all partitions, those that nothing happened to included;
*moved* is how many have another owner afterwards, beside the least that must. A member of tenure
that is killed is seen to be gone by another owner on its host; on the second line nobody can see
that, as when a whole host dies. PostgreSQL notices at once that the connection of a killed
process is closed, and would not notice a host that is gone. Locks are looked for ten times a
second. tenure's policy also evens out what the members are asked for, so it may move more than
the least."""
VARIANTS = {
    "tenure": {"tenure": "tenure", "tenure, other host": "tenure, nobody sees the process end"},
    "zookeeper": {"zookeeper": "kazoo SetPartitioner, time_boundary 1 s"}
    | ({} if QUICK else {"zookeeper, 30 s": "kazoo SetPartitioner, as it is by default (30 s)"}),
}
"""The measurement of each system, and its name."""


class Event(NamedTuple):
    """The cost of a change."""

    gaps: list[float]
    """The seconds without an owner, for each partition."""
    moved: int
    least: int
    """The least that must move, whatever system decides."""

    def cells(self) -> list[str]:
        """Longest, in the mean of all, and moved."""
        return [f"{max(self.gaps):.2f}", f"{mean(self.gaps):.3f}", f"{self.moved} ({self.least})"]


def measure(
    system: str, url: str, place: Path, members: int, tell: Callable[[str], None]
) -> dict[str, Event]:
    """The three changes, one after the other."""
    found: dict[str, Event] = {}
    with Pool(system, url, TERM, place) as pool:
        pool.start()  # which makes the pool
        pool.start(members - 1)
        owners = pool.settle(patience=PATIENCE)

        def change(what: str, act: Callable[[], object], least: int) -> None:
            nonlocal owners
            tell(f"{system}: {what}")
            before, began = owners, monotonic()
            act()
            owners = pool.settle(patience=PATIENCE)
            moved = sum(old != new for old, new in zip(before, owners, strict=True))
            found[what] = Event(pool.seconds(without, began, monotonic()), moved, least)

        change("join", pool.start, PARTITIONS // (members + 1))
        leaver, victim = pool.members[1], pool.members[2]
        change("leave", lambda: pool.leave(leaver), owners.count(leaver.name))
        change("kill -9", lambda: victim.send(SIGKILL), owners.count(victim.name))
    return found


def run(tell: Callable[[str], None], members: int = MEMBERS) -> Section:
    """Every system in turn."""
    notes: list[str] = []
    found: dict[str, dict[str, Event]] = {}
    with TemporaryDirectory(prefix="tenure-bench-") as directory:
        for system in there(notes):
            for variant, title in VARIANTS.get(system, {system: TITLES[system]}).items():
                place = Path(directory, variant.replace(" ", "-"))
                with serving(system, place / "server", TERM) as server:
                    found[title] = measure(variant, server.url, place, members, tell)
    if ring := ring_moves(members):
        notes.append(ring)
    return section(found, notes, members)


def ring_moves(members: int) -> str | None:
    """Return what a ring in the clients moves: it owns nothing, so nothing can be
    without an owner.
    """
    try:
        from uhashring import HashRing  # noqa: PLC0415  # it need not be there
    except ImportError:
        return "uhashring: skipped, it is not installed"
    keys = [f"key-{n}" for n in range(10_000)]
    ring = HashRing([f"member-{n}" for n in range(members)])
    before = [ring.get_node(key) for key in keys]
    ring.add_node(f"member-{members}")
    moved = sum(ring.get_node(key) != was for key, was in zip(keys, before, strict=True))
    return (
        f"uhashring moves {moved / len(keys):.1%} of the keys at the join, where "
        f"{1 / (members + 1):.1%} must move. It is a function of the member list, and "
        "owns nothing: clients whose lists differ send one key to two members at once."
    )


def section(found: dict[str, dict[str, Event]], notes: list[str], members: int) -> Section:
    """The table and the picture."""
    events = ("join", "leave", "kill -9")
    head = ["", *(f"{event}: {what}" for event in events for what in HEAD)]
    rows = [
        [title, *(cell for event in events for cell in of[event].cells())]
        for title, of in found.items()
    ]
    groups = [
        Group(
            event,
            [
                Bar(title, max(of[event].gaps), f"{max(of[event].gaps):.2f} s")
                for title, of in found.items()
            ],
        )
        for event in events
    ]
    title = f"Longest time without an owner for a key ({PARTITIONS} partitions, {members} members)"
    return Section(
        title="Members come and go: keys without an owner",
        text=prose(TEXT.format(partitions=PARTITIONS, members=members, term=TERM)),
        tables=[Table(head, rows)],
        pictures=[Picture("changes.svg", title, draw_bars(title, "seconds", groups))],
        notes=notes,
    )
