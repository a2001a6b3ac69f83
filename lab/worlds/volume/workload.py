"""Applications, which read and write, at caches and at the server."""

from collections import Counter
from random import Random

from lab.worlds.volume.checkers import VolumeCheckers
from lab.worlds.volume.processes import AnyServer, CacheProcess, VolumeSite
from lab.worlds.volume.trial import VolumeTrial
from tenure.base.keys import Key
from tenure.protocol.volume.client import events as client_events
from tenure.protocol.volume.server import events as server_events

READERS = 2
"""Threads that read in each client."""
AUDITED_WORLDS = 4
"""The number of worlds of which one audits its hits as well."""
AUDITED_HITS = 0.2


class AppliedWrite:
    """One write, as its application sees it."""

    __slots__ = ("began", "value")

    def __init__(self, value: bytes, began: int) -> None:
        self.value = value
        self.began = began


class CacheWorkload:
    """All readers and writers in a world."""

    def __init__(
        self, site: VolumeSite, judge: VolumeCheckers, keys: list[Key], trial: VolumeTrial
    ) -> None:
        self.site = site
        self.judge = judge
        self.keys = keys
        self.term_ns = judge.terms.term_ns
        drawn = site.random.getrandbits(64)
        self.random = Random(drawn)
        self._audits = Random(drawn + 1) if drawn % AUDITED_WORLDS == 0 else None
        """Drawn from apart, so that worlds without audits stay what they were."""
        self.counts: Counter[str] = Counter()
        self.read_since: dict[str, int] = {}
        """How many reads each client got since all healed."""
        self.written_since: dict[Key, None] = {}
        """The keys that were written since then."""
        choice = self.random.choice
        self.reads_apart = trial.drawn("reads_apart", choice((0.02, 0.1, 0.3, 1.0)))
        self.writes_apart = trial.drawn("writes_apart", choice((0.1, 0.3, 1.0)))
        self.own_writes_apart = trial.drawn("own_writes_apart", choice((0.3, 1.0, 3.0)))
        self.is_quiet = False
        """Whether nobody writes."""
        self._tickets = 0
        self._values = 0
        self._writes: dict[tuple[int, int], dict[Key, AppliedWrite]] = {}
        self._given_up: set[tuple[int, int]] = set()
        self._own: dict[tuple[int, int], AppliedWrite] = {}

    # --- when ---

    def start(self, process: CacheProcess | AnyServer) -> None:
        """The process has an application."""
        if isinstance(process, AnyServer):
            self._later(self.writes_apart, self._write, process)
            return
        for _ in range(READERS):
            self._later(self.reads_apart, self._read, process)
        self._later(self.own_writes_apart, self._write_at, process)

    def _later(self, apart: float, call: object, process: object) -> None:
        spread = self.random.expovariate(1.0) if self.random.random() < 0.9 else 6.0
        at = self.site.now + 1 + round(apart * spread * self.term_ns)
        self.site.at(at, call, process)  # type: ignore[arg-type]

    def _next_ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def _next_value(self, key: Key) -> bytes:
        self._values += 1
        return b"%s-%d" % (key, self._values)

    # --- reading ---

    def _read(self, cache: CacheProcess) -> None:
        if not cache.alive:
            return
        began = self.site.now
        key = self.random.choice(self.keys)
        value = cache.hit(key)
        if value is not None:
            self.counts["hits"] += 1
            self._got(cache, key, value, began, is_hit=True)
            if self._audits is not None and self._audits.random() < AUDITED_HITS and cache.alive:
                self.counts["audits"] += 1
                cache.post(client_events.AuditWanted(key))
        elif cache.alive:
            self.read_now(cache, key, began)
        self._later(self.reads_apart, self._read, cache)

    def read_now(self, cache: CacheProcess, key: Key, began: int | None = None) -> None:
        """A reader that found nothing asks."""
        ticket = self._next_ticket()
        cache.pending[ticket] = (key, self.site.now if began is None else began)
        cache.post(client_events.ObjectWanted(ticket, key))

    def _got(
        self, cache: CacheProcess, key: Key, value: bytes, began: int, *, is_hit: bool
    ) -> None:
        self.read_since[cache.slot] = self.read_since.get(cache.slot, 0) + 1
        self.judge.on_read(cache, key, value, began, is_hit=is_hit)

    def on_answer(self, cache: CacheProcess, answer: client_events.TellReaders) -> None:
        """Readers have what they asked for."""
        for ticket in answer.tickets:
            key, began = cache.pending.pop(ticket)
            match answer.outcome:
                case "value" | "absent":
                    self.counts["fetched"] += 1
                    self._got(cache, key, answer.value, began, is_hit=False)
                case "hit" | "unchanged":
                    found = cache.entries.objects[key]
                    self.counts["found current"] += 1
                    self._got(cache, key, found.value or b"", began, is_hit=False)
                case "unreachable" | "failed":
                    self.counts[answer.outcome] += 1

    # --- writing at caches ---

    def _write_at(self, cache: CacheProcess) -> None:
        if not cache.alive:
            return
        if not self.is_quiet:
            key = self.random.choice(self.keys)
            write = AppliedWrite(self._next_value(key), self.site.now)
            ticket = self._next_ticket()
            self._own[cache.uid, ticket] = write
            self.judge.on_write_began(key, write.value)
            cache.post(client_events.WriteWanted(ticket, key, write.value))
        self._later(self.own_writes_apart, self._write_at, cache)

    def on_written(self, cache: CacheProcess, answer: client_events.TellWriter) -> None:
        """A client's write has ended."""
        write = self._own.pop((cache.uid, answer.ticket))
        self.counts[f"own writes {answer.outcome}"] += 1
        if answer.outcome == "written":
            self.judge.on_write_done(answer.key, write.value, write.began, cache)

    # --- writing at the server ---

    def _write(self, server: AnyServer) -> None:
        if not server.alive:
            return
        if not self.is_quiet:
            several = 2 if self.random.random() < 0.2 else 1
            writable = server.writable(self.keys)
            keys = tuple(self.random.sample(writable, min(several, len(writable))))
            ticket = self.write_now(server, keys)
            if self.random.random() < 0.05:
                at = self.site.now + self.random.randrange(self.term_ns)
                self.site.at(at, self._give_up, (server, ticket))
        self._later(self.writes_apart, self._write, server)

    def _give_up(self, write: tuple[AnyServer, int]) -> None:
        """The application no longer wants to write. It is told nothing, unless the body runs."""
        server, ticket = write
        self._given_up.add((server.uid, ticket))
        server.post(server_events.WriteGivenUp(ticket))

    def write_now(self, server: AnyServer, keys: tuple[Key, ...]) -> int:
        """The server's application writes these; the ticket of that."""
        ticket = self._next_ticket()
        writes = {key: AppliedWrite(self._next_value(key), self.site.now) for key in keys}
        self._writes[server.uid, ticket] = writes
        for key, write in writes.items():
            self.judge.on_write_began(key, write.value)
        if keys:
            server.post(server_events.WriteAsked(ticket, keys))
        return ticket

    def lose(self, key: Key) -> bytes:
        """The state of the key died with its owner: the value that readers find instead.

        To them that is a write which nobody saw end.
        """
        value = self._next_value(key) + b"-lost"
        self.counts["states lost"] += 1
        self.judge.on_write_began(key, value)
        return value

    def value_of(self, server: AnyServer, body: server_events.RunBody, key: Key) -> bytes:
        """The value that a body stores."""
        if not body.ticket:
            return body.value
        return self._writes[server.uid, body.ticket][key].value

    def on_body_ended(
        self, server: AnyServer, body: server_events.RunBody, *, ok: bool, stored: bool
    ) -> None:
        """The body of a write has ended; the application of one that raised knows nothing."""
        self.counts["writes done" if ok else "bodies raised"] += 1
        if ok:
            self.written_since.update(dict.fromkeys(body.keys))
        if body.ticket:  # of one that its server gave up with its term, nothing is known
            for key, write in self._writes.pop((server.uid, body.ticket), {}).items():
                if ok or stored:
                    self.judge.on_write_done(key, write.value, write.began, None)

    def on_write_failed(self, server: AnyServer, failed: server_events.FailWrite) -> None:
        """A write will not run."""
        self.counts[f"writes {failed.why}"] += 1
        self._writes.pop((server.uid, failed.ticket), None)

    # --- when all is well ---

    def begin_healing(self) -> None:
        """Count from here on."""
        self.read_since.clear()
        self.written_since.clear()

    def missing(self) -> str | None:
        """A client that could not read yet, or a key that nobody could write."""
        for cache in self.site.caches():
            if not self.read_since.get(cache.slot):
                if cache.alive and not cache.pending:
                    self._read(cache)
                return f"{cache.slot} has read nothing"
        for key in self.keys:
            if key not in self.written_since:
                self._write_unless_asked(key)
                return f"{key!r} was not written"
        return None

    def _write_unless_asked(self, key: Key) -> None:
        for server in self.site.servers():
            asked = any(
                key in write
                for (of, ticket), write in self._writes.items()
                if of == server.uid and (of, ticket) not in self._given_up
            )
            if server.alive and server.writable([key]) and not asked:
                self.write_now(server, (key,))
