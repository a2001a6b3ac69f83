"""The workload of clients of the store: they write, delete and read columns, and add to a set."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from lab.worlds.columns.attempts import MOST_ATTEMPTS, Ownership, RowAttempts
from lab.worlds.columns.client import ClientProcess
from lab.worlds.columns.contention import HOT, Contention, Done, hot_edits
from lab.worlds.columns.processes import StoreSite
from lab.worlds.columns.recording import WEAK, Recording
from lab.worlds.columns.registers import RegisterName, RowHistory
from tenure.protocol.replication.levels import Level
from tenure.protocol.replication.messages import PageFound, ReadColumn, ReadPage
from tenure.protocol.replication.row.cells import cell_of
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.pages import FoundCell, Slice
from tenure.protocol.topology.tables import FamilyRecord, TableRecord

PLAIN = "plain"
SET = "set"
OWNED = "owned"
COLUMNS = (b"a", b"b", b"c")
SECTIONS: tuple[tuple[str, bytes | None], ...] = (
    ("names", None),
    ("times", None),
    ("supers", b"x"),
    ("supers", b"y"),
)
TABLES = {
    PLAIN: TableRecord(
        "hashed",
        "bytes",
        "",
        {
            "names": FamilyRecord("bytes"),
            "times": FamilyRecord("bytes", order="time"),
            "supers": FamilyRecord("bytes", supers="bytes"),
            SET: FamilyRecord("bytes"),
        },
    ),
    OWNED: TableRecord("hashed", "bytes", "pool", {"names": FamilyRecord("bytes")}),
}
NAMES: list[RegisterName] = [
    (family, inner, name) for family, inner in SECTIONS for name in COLUMNS
]
OWNED_NAMES: list[RegisterName] = [("names", None, name) for name in COLUMNS]
QUORUM: Level = "quorum"
USUAL_CLIENTS = 2
MEMBERS = 12
"""About how many members a set has: members are removed the more often the more there are."""
LEVELS: tuple[Level, ...] = (QUORUM,) * 8 + ("all", "one", "one", "each_quorum", "local_quorum")


class StoreWorkload:
    """All readers and writers in a world."""

    def __init__(self, site: StoreSite, keys: int, patience_ns: int, *, is_doubled: bool) -> None:
        self.site = site
        self.is_doubled = is_doubled
        """Requests may arrive twice: one copy may be refused while the other is written."""
        self.random = Random(site.random.getrandbits(64))
        self.counts: Counter[str] = Counter()
        self.patience_ns = patience_ns
        self.rows = {b"k%d" % i: RowHistory(f"k{i}", NAMES) for i in range(keys)}
        self.sets = {b"set%d" % i: RowHistory(f"set{i}", []) for i in range(keys)}
        self._members: dict[bytes, list[bytes]] = {key: [] for key in self.sets}
        """The members of each set that were added, perhaps, and not removed since."""
        self.owned = {b"o%d" % i: RowHistory(f"o{i}", OWNED_NAMES) for i in range(keys)}
        self._leases = 0
        self.apart_ns = patience_ns * self.random.choice((0.2, 0.6, 2.0))
        self._values = 0
        longest_ns = 2 * patience_ns * (MOST_ATTEMPTS + 1)
        self.recording = Recording(lambda: site.now, longest_ns)

    # --- when ---

    def start(self, client: ClientProcess) -> None:
        """A client begins."""
        self._later(client)

    def rush(self, random: Random) -> None:
        """Let all clients rush now and then, and do little in between."""
        self.apart_ns *= len(self.site.clients()) / USUAL_CLIENTS
        Contention(self.site, random, partial(self._rush, random)).begin()

    def _rush(self, random: Random, client: ClientProcess, then: Done) -> None:
        key, drawn = next(iter(self.rows)), random.random()
        if drawn < 0.5:
            self._write(client, key, hot_edits(random, self.value), then, QUORUM)
        elif drawn < 0.8:
            self._read_column(client, key, random.choice(HOT), then, QUORUM)
        else:
            self._read_page(client, key, random.choice(HOT)[:2], then, QUORUM)

    def _later(self, client: ClientProcess) -> None:
        if client.alive:
            wait_ns = round(self.random.expovariate(1.0) * self.apart_ns)
            self.site.at(self.site.now + wait_ns, self._act, client)

    def _act(self, client: ClientProcess) -> None:
        if not client.alive:
            return
        if client.is_frozen:
            self._later(client)
            return
        key = self.random.choice(list(self.rows))
        drawn = self.random.random()
        if drawn < 0.05:
            self._leases += 1
            owned = self.random.choice(list(self.owned))
            Ownership(self, client, owned, self._leases).begin()
            self._later(client)
        elif drawn < 0.12:
            self.read_owned(client, self.random.choice(list(self.owned)), self._later)
        elif drawn < 0.35:
            self._write(client, key, self._edits())
        elif drawn < 0.45:
            self._change_set(client, self.random.choice(list(self.sets)))
        elif drawn < 0.6:
            family, inner = self.random.choice(SECTIONS)
            name = self.random.choice(COLUMNS)
            self._read_column(client, key, (family, inner, name))
        else:
            self._read_page(client, key, self.random.choice(SECTIONS))

    def _change_set(self, client: ClientProcess, key: bytes) -> None:
        """Add a member, or remove one, or look which there are."""
        members, drawn = self._members[key], self.random.random()
        if drawn < 0.3:
            self._read_set(client, key, None, lambda _: self.done(client, "sets read"))
        elif drawn * len(members) > MEMBERS / 2:
            member = members.pop(self.random.randrange(len(members)))
            self._write(client, key, (Edit(SET, None, member, None),))
        else:
            members.append(self.value())
            self._write(client, key, (Edit(SET, None, members[-1], members[-1]),))

    def _write(
        self,
        client: ClientProcess,
        key: bytes,
        edits: tuple[Edit, ...],
        then: Done | None = None,
        level: Level | None = None,
    ) -> None:
        def ended(what: str) -> None:
            self.done(client, what, then)

        RowAttempts(self, client, (PLAIN, key), edits, ended, level=level).begin()

    def history(self, key: bytes) -> RowHistory:
        """The history of a row."""
        return (self.rows | self.sets | self.owned)[key]

    def node(self) -> str:
        """A node to ask."""
        return self.random.choice(self.site.members()).slot

    def level(self) -> Level:
        """A level for a write: mostly a quorum."""
        return self.random.choice(LEVELS)

    def done(self, client: ClientProcess, what: str, then: Done | None = None) -> None:
        """An operation has finished."""
        self.counts[what] += 1
        (then or self._later)(client)

    def value(self) -> bytes:
        """A value that is written only once."""
        self._values += 1
        return b"%d" % self._values

    def _edits(self) -> tuple[Edit, ...]:
        drawn = self.random.random()
        if drawn < 0.03:
            return (Edit(),)
        if drawn < 0.06:
            return (Edit(self.random.choice(SECTIONS)[0]),)
        if drawn < 0.1:
            return (Edit("supers", self.random.choice((b"x", b"y"))),)
        edits = []
        for _ in range(self.random.choice((1, 1, 2, 3))):
            family, inner = self.random.choice(SECTIONS)
            value = None if self.random.random() < 0.25 else self.value()
            edits.append(Edit(family, inner, self.random.choice(COLUMNS), value))
        return tuple(edits)

    # --- reading ---

    def _read_column(
        self,
        client: ClientProcess,
        key: bytes,
        column: RegisterName,
        then: Done | None = None,
        level: Level | None = None,
    ) -> None:
        family, inner, name = column
        asked = ReadColumn(
            request=client.request(),
            table=PLAIN,
            level=level or self.level(),
            key=key,
            family=family,
            super=inner,
            name=name,
        )
        self._ask(client, asked, [column], then)

    def _read_page(
        self,
        client: ClientProcess,
        key: bytes,
        section: tuple[str, bytes | None],
        then: Done | None = None,
        level: Level | None = None,
    ) -> None:
        family, inner = section
        part = Slice(self.random.choice((1, 2, 10, 10)), reverse=self.random.random() < 0.3)
        asked = ReadPage(
            request=client.request(),
            table=PLAIN,
            level=level or self.level(),
            key=key,
            family=family,
            super=inner,
            part=part,
        )
        self._ask(client, asked, [(family, inner, name) for name in COLUMNS], then)

    def _ask(
        self,
        client: ClientProcess,
        asked: ReadColumn | ReadPage,
        names: list[RegisterName],
        then: Done | None,
    ) -> None:
        row = self.rows[asked.key]
        floors = row.floors()
        number = self.recording.read(client.slot, asked.key, asked.level)

        def answered(answer: Any) -> None:
            if not isinstance(answer, PageFound):
                self.recording.found(number, None)
                self.done(client, "reads failed", then)
                return
            found = {cell.name: cell for cell in answer.page.cells}
            names_shown = shown(asked, answer, names)
            values = {
                name: found[name[2]].value if name[2] in found else None for name in names_shown
            }
            self.recording.found(number, values)
            for name in names_shown:
                cell = found.get(name[2])
                row.see(
                    name,
                    None if cell is None else packed(cell),
                    floors[name],
                    adopted=0,
                    is_quorum=asked.level not in WEAK,
                )
            self.done(client, f"reads at {asked.level}", then)

        client.ask(self.node(), asked, answered, self.patience_ns * 2)

    def read_owned(self, client: ClientProcess, key: bytes, then: Any) -> None:
        """Read all of a row that owners have. `then` is called with the client when
        that is done.
        """
        row = self.owned[key]
        floors, adopted = row.floors(), row.adopted
        number = self.recording.read(client.slot, key, QUORUM, is_owners=True)
        asked = ReadPage(
            request=client.request(), table=OWNED, key=key, family="names", part=Slice(10)
        )

        def answered(answer: Any) -> None:
            if not isinstance(answer, PageFound):
                self.recording.found(number, None)
            else:
                values = {cell.name: cell.value for cell in answer.page.cells}
                self.recording.found(number, {name: values.get(name[2]) for name in OWNED_NAMES})
                found = {cell.name: packed(cell) for cell in answer.page.cells}
                for name in OWNED_NAMES:
                    row.see(name, found.get(name[2]), floors[name], adopted=adopted)
                self.counts["reads of owned rows"] += 1
            then(client)

        client.ask(self.node(), asked, answered, self.patience_ns * 2)

    # --- sets ---

    def read_sets(self, client: ClientProcess, done: Callable[[bytes], object]) -> None:
        """Read all of every set, again until it can be read."""
        for key in self.sets:
            self._read_set(client, key, None, done, has_patience=True)

    def _read_set(
        self,
        client: ClientProcess,
        key: bytes,
        after: bytes | None,
        done: Callable[[bytes], object],
        *,
        has_patience: bool = False,
    ) -> None:
        """Read the rest of a set, a page at a time."""
        number = self.recording.page(client.slot, key, SET, after)
        asked = ReadPage(
            request=client.request(), table=PLAIN, key=key, family=SET, part=Slice(7, after=after)
        )

        def answered(answer: Any) -> None:
            following = after
            if isinstance(answer, PageFound):
                values: dict[RegisterName, bytes | None] = {
                    (SET, None, cell.name): cell.value for cell in answer.page.cells
                }
                following = answer.page.next
                self.recording.shown(number, values, following)
            elif not has_patience:
                following = None
            if following is None and (isinstance(answer, PageFound) or not has_patience):
                done(key)
            else:
                self._read_set(client, key, following, done, has_patience=has_patience)

        client.ask(self.node(), asked, answered, self.patience_ns * 2)


def shown(
    asked: ReadColumn | ReadPage, answer: PageFound, names: list[RegisterName]
) -> list[RegisterName]:
    """The columns that the answer tells about: those up to where its page ends."""
    end = answer.page.next
    if isinstance(asked, ReadColumn) or end is None:
        return names
    there = {cell.name for cell in answer.page.cells}
    if asked.family == "times":
        return [name for name in names if name[2] in there]
    if asked.part.reverse:
        return [name for name in names if name[2] >= end]
    return [name for name in names if name[2] <= end]


def packed(cell: FoundCell) -> bytes:
    """A cell in the form in which a register knows it."""
    return cell_of(cell.version.packed(), cell.value)
