"""The reads and writes that the algorithms are compared on (section 4.2).

The paper replays four months of web browsing at Boston University. That trace is not ours to ship,
so reads are drawn from a seed in its likeness: 33 people who browse in sessions, come back to the
servers they know, and fetch a page as a burst of files. The totals are the paper's, to the last
read. Writes are drawn as the paper draws them: its trace had none either.
"""

import random
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

import msgspec

DAY = 86_400.0
CLIENTS = 33
SERVERS = 1_000
FILES = 68_665
READS = 977_899
WRITES = 209_461
POPULAR_SHARE, POPULAR_WRITES = 0.10, 0.005
"""The share of the files that are read most; and how often a day each of them is written."""
OTHER_GROUPS = ((0.03, 0.2), (0.10, 0.05), (0.77, 0.02))
"""The same for the rest, which are dealt into these groups at random."""
DRAWN_AT_ONCE = 100_000
BURST_MEAN = 10.0
"""How many other files of its volume a write takes along in the bursty workload (figure 10)."""


class Trace(NamedTuple):
    """Reads and writes in the order of their times, over files that are numbered."""

    volume_of: "array[int]"
    """The server on which each file lies: a server is a volume."""
    read_at: "array[float]"
    reader: "array[int]"
    read_file: "array[int]"
    write_at: "array[float]"
    written_file: "array[int]"

    @property
    def volumes(self) -> int:
        """How many servers there are."""
        return max(self.volume_of, default=-1) + 1

    @property
    def ends_at(self) -> float:
        """The time of the last event."""
        return max(self.read_at[-1] if self.read_at else 0.0, self.last_write)

    @property
    def last_write(self) -> float:
        """The time of the last write; 0 before the first write."""
        return self.write_at[-1] if self.write_at else 0.0


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How large a workload is to be drawn."""

    clients: int = CLIENTS
    servers: int = SERVERS
    files: int = FILES
    reads: int = READS
    writes: int = WRITES

    def scaled(self, scale: float) -> "Size":
        """The same people, with `scale` times as many servers, files, reads and writes."""
        return Size(
            clients=self.clients,
            servers=max(1, round(self.servers * scale)),
            files=max(1, round(self.files * scale)),
            reads=max(1, round(self.reads * scale)),
            writes=round(self.writes * scale),
        )


PAPER = Size()


def writes_a_day(files: int) -> float:
    """How many writes a day the paper's four groups make together."""
    rest = sum(share * rate for share, rate in OTHER_GROUPS)
    return files * (POPULAR_SHARE * POPULAR_WRITES + rest)


def draw(seed: int, size: Size = PAPER, *, multiplier: float = 1.0, bursty: bool = False) -> Trace:
    """A workload in the likeness of the paper's, the same for the same arguments.

    `multiplier` raises or lowers how often files are written (figure 11); `bursty` lets each write
    take others of its volume along (figure 10). The reads depend on neither.
    """
    dice = random.Random(seed)
    span = DAY * size.writes / writes_a_day(size.files) if size.writes else 113 * DAY
    volume_of = _files_of_servers(size)
    reads = sorted(Browsing(dice, size, volume_of, span).reads())
    trace = Trace(
        volume_of,
        array("d", (at for at, _, _ in reads)),
        array("i", (client for _, client, _ in reads)),
        array("i", (file for _, _, file in reads)),
        array("d"),
        array("i"),
    )
    _add_writes(random.Random(seed + 1), trace, round(size.writes * multiplier), span)
    if not bursty:
        return trace
    alone = list(zip(trace.write_at, trace.written_file, strict=True))
    writes = sorted(_in_bursts(random.Random(seed + 2), volume_of, alone))
    return trace._replace(
        write_at=array("d", (at for at, _ in writes)),
        written_file=array("i", (file for _, file in writes)),
    )


def _files_of_servers(size: Size) -> "array[int]":
    """How files lie on servers: a few servers have very many, most have some."""
    weights = [1.0 / (rank + 5) for rank in range(size.servers)]
    spare = max(0, size.files - size.servers)
    total = sum(weights)
    shares = [min(1, size.files) + int(spare * weight / total) for weight in weights]
    volume_of = array("i")
    for server, share in enumerate(shares):
        volume_of.extend([server] * share)
    while len(volume_of) < size.files:
        volume_of.append(len(volume_of) % size.servers)
    return array("i", sorted(volume_of[: size.files]))


class Browsing:
    """People at their browsers: they come back to the servers they know, and to pages there.

    The constants are chosen so that the algorithms come out in the paper's order. How many reads
    are stale under polling, and how many messages volume leases save, differs from the paper.
    """

    VISITS = 4.0
    """The visits to servers in one sitting, on average."""
    PAGES = 5.0
    """Looked at in one visit, on average."""
    INLINE = 4
    """Files that come with a page at most: its pictures, some of which the server's pages share."""
    THINKING = 50.0
    """Seconds between pages, on average."""
    LOYALTY = 0.85
    """How often a visit goes to a server that this person has visited before."""
    HABIT = 0.75
    """How often a page is one that this person has seen before."""

    def __init__(
        self, dice: random.Random, size: Size, volume_of: "array[int]", span: float
    ) -> None:
        self.dice = dice
        self.size = size
        self.span = span
        self.volume_of = volume_of
        self.first = [bisect_left(volume_of, server) for server in range(size.servers + 1)]
        self.popularity = list(accumulate(1.0 / (rank + 3) for rank in range(size.servers)))
        self.servers: list[list[int]] = [[] for _ in range(size.clients)]
        """The servers that each person knows, the first one first."""
        self.pages: dict[tuple[int, int], list[int]] = {}
        """The pages that each person knows at a server."""

    def reads(self) -> list[tuple[float, int, int]]:
        """As many reads as asked for, and of each file at least one: when, by whom, of what."""
        found: list[tuple[float, int, int]] = []
        while len(found) < self.size.reads:
            missing = self.size.reads - len(found)
            sittings = 1 + missing // round(self.VISITS * self.PAGES * self.INLINE)
            for at in sorted(self.dice.random() * self.span for _ in range(sittings)):
                found.extend(self._sitting(at))
        found = self.dice.sample(found, self.size.reads)
        return self._with_every_file(found)

    def _with_every_file(self, found: list[tuple[float, int, int]]) -> list[tuple[float, int, int]]:
        """A file that nobody read takes the place of one that was read more than once."""
        times_read = [0] * self.size.files
        for _, _, file in found:
            times_read[file] += 1
        unread: dict[int, list[int]] = {}
        for file, times in enumerate(times_read):
            if not times:
                unread.setdefault(self.volume_of[file], []).append(file)
        for n, (at, client, file) in enumerate(found):
            waiting = unread.get(self.volume_of[file])
            if waiting and times_read[file] > 1:
                times_read[file] -= 1
                found[n] = (at, client, waiting.pop())
        left = [file for files in unread.values() for file in files]
        for n, (at, client, file) in enumerate(found):
            if not left:
                break
            if times_read[file] > 1:
                times_read[file] -= 1
                found[n] = (at, client, left.pop())
        return found

    def _sitting(self, now: float) -> Iterator[tuple[float, int, int]]:
        dice = self.dice
        client = dice.randrange(self.size.clients)
        for _ in range(1 + int(dice.expovariate(1 / self.VISITS))):
            server = self._server_for(client)
            known = self.pages.setdefault((client, server), [])
            for _ in range(1 + int(dice.expovariate(1 / self.PAGES))):
                page = self._page(server, known)
                for n, file in enumerate(self._files_of(server, page)):
                    yield now + n * 0.3, client, file
                now += dice.expovariate(1 / self.THINKING)

    def _server_for(self, client: int) -> int:
        known = self.servers[client]
        if known and self.dice.random() < self.LOYALTY:
            return known[self._early(len(known))]
        server = bisect_left(self.popularity, self.dice.random() * self.popularity[-1])
        known.append(server)
        return server

    def _page(self, server: int, known: list[int]) -> int:
        if known and self.dice.random() < self.HABIT:
            return known[-1 - self._early(len(known))]
        count = self.first[server + 1] - self.first[server]
        page = int(count * self.dice.random() ** 2)
        known.append(page)
        return page

    def _early(self, count: int) -> int:
        """One of so many, the first ones much more often: the n-th as often as 1/n."""
        return int((count + 1) ** self.dice.random()) - 1

    def _files_of(self, server: int, page: int) -> Iterator[int]:
        """A page and its pictures, the same each time."""
        first, count = self.first[server], self.first[server + 1] - self.first[server]
        yield first + page
        for n in range(page * 7 % (self.INLINE + 1)):
            yield first + (page + 1 + n if n % 2 else page * n // 9) % count


def _add_writes(dice: random.Random, trace: Trace, count: int, span: float) -> None:
    """As many as asked for, dealt to the files by their groups' rates.

    Of a hundred times the paper's writes there are 21 million. So they are dealt into parts of the
    time before they are sorted, and few of them are tuples at one time.
    """
    files = len(trace.volume_of)
    times_read = [0] * files
    for file in trace.read_file:
        times_read[file] += 1
    ranked = sorted(range(files), key=lambda file: (-times_read[file], file))
    popular = round(files * POPULAR_SHARE)
    rates = [POPULAR_WRITES] * files
    rest = ranked[popular:]
    dice.shuffle(rest)
    begin = 0
    for share, rate in OTHER_GROUPS:
        end = begin + round(files * share)
        for file in rest[begin:end]:
            rates[file] = rate
        begin = end
    weights, all_files, written = list(accumulate(rates)), range(files), array("i")
    for begun in range(0, count, DRAWN_AT_ONCE):
        some = min(DRAWN_AT_ONCE, count - begun)
        written.extend(dice.choices(all_files, cum_weights=weights, k=some))
    parts = [(array("d"), array("i")) for _ in range(1 + count // DRAWN_AT_ONCE)]
    for file in written:
        part = dice.random()
        instants, its_files = parts[int(part * len(parts))]
        instants.append(part * span)
        its_files.append(file)
    for instants, its_files in parts:
        for at, file in sorted(zip(instants, its_files, strict=True)):
            trace.write_at.append(at)
            trace.written_file.append(file)


def _in_bursts(
    dice: random.Random, volume_of: "array[int]", writes: list[tuple[float, int]]
) -> Iterator[tuple[float, int]]:
    """As many writes in all, but each takes others of its volume along, at the same time."""
    left = len(writes)
    for at, file in dice.sample(writes, len(writes)):
        others = min(left - 1, int(dice.expovariate(1 / BURST_MEAN)))
        if left <= 0:
            return
        volume = volume_of[file]
        first, end = bisect_left(volume_of, volume), bisect_left(volume_of, volume + 1)
        yield at, file
        for _ in range(others):
            yield at, dice.randrange(first, end)
        left -= 1 + others
