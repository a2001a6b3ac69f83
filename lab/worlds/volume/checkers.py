"""The judges of the promises of caches, in real time: C1 to C6, after every step.

Reads show a broken rule only if a reader comes at the wrong moment. So three judges look at what
makes reads right: every entry that may be hit is what the store has, every reader that may hit is
on its server's record, and no lease and no body outlives the owner's term.
"""

from collections.abc import Sequence

from lab.worlds.volume.history import KeyHistory
from lab.worlds.volume.processes import AnyServer, CacheProcess, VolumeSite
from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.protocol.lease.messages import Leased
from tenure.protocol.volume.client.events import Believe, JudgeHit, KeepEntry
from tenure.protocol.volume.server.events import RunBody
from tenure.protocol.volume.server.readers import ReaderRecord
from tenure.protocol.volume.server.terms import Terms
from tenure.protocol.volume.server.versions import KnownWrites
from tenure.sim.kernel.checkers import InvariantChecker, Violation
from tenure.sim.kernel.process import SimProcess

CLOCK_NS = 1_000
"""The most by which a clock and a timer may disagree."""
FAST = 1.05
"""The most by which a client's clock may be slow within the bound."""


class VolumeCheckers(InvariantChecker):
    """All judges."""

    def __init__(self, site: VolumeSite, terms: Terms, keys: Sequence[Key]) -> None:
        super().__init__()
        self.site = site
        self.terms = terms
        self.histories = {key: KeyHistory(initial(key)) for key in keys}
        self._replaced: dict[Key, list[tuple[int, bytes]]] = {key: [] for key in keys}
        """The values of each key that were replaced, and when a later write of the key was done."""
        self._own: dict[tuple[int, Key], tuple[int, int, bytes]] = {}
        """The last write of each client to each key: its beginning, its end, and its value."""
        self._heard: dict[tuple[int, int], int] = {}
        """When a server last heard each client, by its own clock."""
        self._terms: dict[int, int] = {}
        """The latest real time until which each owner's term has been known to last."""

    # --- C1, C4, C5: what is read ---

    def on_write_began(self, key: Key, value: bytes) -> None:
        """An application begins to write a value."""
        self.histories[key].wrote(value, self.site.now)

    def on_write_done(self, key: Key, value: bytes, began: int, cache: CacheProcess | None) -> None:
        """The write is done."""
        now = self.site.now
        self.histories[key].ended(value, began, now)
        if cache is not None:
            self._own[cache.uid, key] = (began, now, value)

    def on_saw(self, cache: CacheProcess, key: Key, value: bytes) -> None:
        """The cache's application was told that another reader has read this value (C5)."""
        began = self.histories[key].clusters[value].began
        own = self._own.get((cache.uid, key))
        if own is None or own[0] < began:
            self._own[cache.uid, key] = (began, self.site.now, value)

    def on_read(
        self, cache: CacheProcess, key: Key, value: bytes, began: int, *, is_hit: bool
    ) -> None:
        """A read has returned."""
        now, history = self.site.now, self.histories[key]
        who = f"{cache.slot} read {value!r} of {key!r} in {now - began} ns"
        own = self._own.get((cache.uid, key))
        wrote = own is not None and own[1] < began and value != own[2]
        if own is not None and wrote and history.is_before(value, own[0]):
            raise Violation("C5: older than what it wrote", f"{who}, and had written {own[2]!r}")
        if not self.terms.is_strong:
            if is_hit:
                self._check_age(key, value, began, who)
            return
        wrong = history.read(value, began, now)
        if wrong is not None:
            raise Violation("C1: a stale read", f"{who}: {wrong.what}")

    def on_audit(self, cache: CacheProcess, judged: JudgeHit) -> None:
        """An audit says what is so: where no hit may be stale, it must find nothing stale."""
        kept = cache.entries.objects[judged.key].value or b""
        if self.terms.is_strong and kept != judged.value:
            who = f"{cache.slot} may hit {kept!r} of {judged.key!r}"
            raise Violation("C1: an audit found a stale entry", f"{who}, not {judged.value!r}")

    def _check_age(self, key: Key, value: bytes, began: int, who: str) -> None:
        """Check that with best effort a hit is stale for less than t_v."""
        history = self.histories[key]
        oldest = began - round(FAST * self.terms.term_ns)
        if history.is_stale_since(value, oldest):
            raise Violation("C4: too old", f"{who}, and it was replaced before {oldest}")

    def check_histories(self) -> None:
        """Check that there is an order of all operations (C1)."""
        if not self.terms.is_strong:
            return
        for key, history in self.histories.items():
            wrong = history.check()
            if wrong is not None:
                raise Violation("C1: no order", f"of {key!r}: {wrong.what}")

    # --- C2, V11: who may hit ---

    def on_believed(self, cache: CacheProcess, moved: Believe | KeepEntry) -> None:
        """A client may hit from here on, what the store has: its server knows, and its owner's term
        lasts as long.
        """
        lease = cache.entries.leases[moved.server, moved.reader]
        now, entries = cache.now(), list(cache.entries.objects.items())
        would_hit = cache.entries.would_hit
        hits = [key for key, each in entries if each.lease is lease and would_hit(key, now)]
        for key in hits if self.terms.is_strong else ():
            self._nobody_hits(key, "it has believed that", [cache])
        server = self.site.slots.get(self.site.slot_of(moved.server))
        if not isinstance(server, AnyServer) or not server.alive:
            return
        reader = server.volume.context.readers.get(moved.reader)
        if reader is None:
            return  # of an earlier life, or of a term that is over: the quiet is for those
        ends = cache.clock.real(cache.entries.ends(lease))
        most = self._terms.get(server.uid, ends)
        if ends > most + CLOCK_NS:
            detail = f"{cache.slot} may hit what {server.slot} served until {ends}, not {most}"
            raise Violation("V11: a lease outlives the owner's term", detail)
        for key in hits if self.terms.is_strong else ():
            if key not in reader.leases and not is_told(reader, key):
                detail = f"{cache.slot} can hit {key!r}, and {server.slot} has no lease on record"
                raise Violation("C2: nobody waits for who may hit", detail)

    # --- C2, C3: what is written ---

    def on_body(self, server: AnyServer, body: RunBody) -> None:
        """The body of a write runs: no client may hit the old value."""
        self._check_waiting(server, body)
        if server.decided_at >= self._terms.get(server.uid, FAR_FUTURE):
            detail = f"{server.slot} writes {body.keys}"
            raise Violation("V11: a body runs after the owner's term", detail)
        if not self.terms.is_strong:
            return
        for key, number in body.fences:
            if self.site.store.takes(server.fence(number), key):
                self._nobody_hits(key, "a body of a write runs", self.site.caches())

    def on_stored(self, key: Key) -> None:
        """The store has another value while the body still runs."""
        if self.terms.is_strong:
            self._nobody_hits(key, "its store has another value", self.site.caches())

    def _nobody_hits(self, key: Key, why: str, caches: Sequence[CacheProcess]) -> None:
        stored = self.site.store.read(key)
        for cache in caches:
            if cache.alive and cache.entries.would_hit(key, cache.now()):
                value = cache.entries.objects[key].value
                if why.startswith("a body") or value != stored:
                    detail = f"{cache.slot} can hit {value!r} of {key!r}, and {why}"
                    raise Violation("C2: hit while written", detail)

    def _check_waiting(self, server: AnyServer, body: RunBody) -> None:
        terms, now = self.terms, server.now()
        began = now - body.waited_ns
        bound = 0
        if terms.is_strong:
            bound = terms.held_ns(min(terms.term_ns, terms.lease_ns))
            quiet = server.volume.context.served.quiet_until(body.keys)
            bound = max(bound, quiet - began) if quiet > began else bound
        late = 2 * self.site.faults.latest_timer_ns + CLOCK_NS
        if server.thawed_at >= server.clock.real(Instant(began)):
            return  # it was stopped meanwhile
        if body.waited_ns > bound + late:
            detail = f"{server.slot} waited {body.waited_ns} ns, and {bound} are the most"
            raise Violation("C3: a write waited too long", detail)

    # --- what a server knows ---

    def on_granted(self, server: AnyServer, lease: Leased, known: KnownWrites | None) -> None:
        """Check that knowledge of a range's writes comes with its state (V15), if state comes
        (V13).
        """
        if not lease.handed or (known is None and not server.volume.config.durable):
            return
        floors = RangeMap.of([], default=False)
        for piece, _ in () if known is None else known.floors:
            floors.assign(piece, value=True)
        if not floors.has(lease.range, value=True):
            detail = f"{server.slot} was granted {lease.range} with the state of {lease.handed}"
            raise Violation("V15: what is known of writes stayed behind", detail)

    def on_heard(self, server: AnyServer, client: int) -> None:
        """A message of a client has reached its server."""
        self._heard[server.uid, client] = max(
            server.now(), self._heard.get((server.uid, client), 0)
        )

    def on_step(self, process: SimProcess) -> None:
        """A machine has taken an event."""
        super().on_step(process)
        if isinstance(process, AnyServer):
            self.check_records(process)

    def check_records(self, server: AnyServer) -> None:
        """A server's records of clients are neither too old nor too many (C6)."""
        machine = server.volume
        now = server.now()
        if not machine.config.alone:
            until = server.clock.real(machine.context.term_until)
            self._terms[server.uid] = max(until, self._terms.get(server.uid, 0))
        for reader in machine.context.readers:
            heard = self._heard.get((server.uid, reader.client), 0)
            # What waits in its sockets while it is stopped was heard later than it arrived.
            if max(heard, reader.heard_at) + self.terms.known_ns < now:
                detail = f"{server.slot} still knows {reader.client}, {now - heard} ns after"
                raise Violation("C6: not forgotten", detail)
        if len(machine.context.drains):  # too short for the machines' own every few steps
            machine.invariants()
        if machine.context.readers.leases > machine.context.readers.most_leases:
            raise Violation("C6: too many leases", f"{machine.context.readers.leases}")


def is_told(reader: ReaderRecord, key: Key) -> bool:
    """Whether an item that makes the reader's entry of the key dead is on its way."""
    items = (pending.item for pending in reader.items.values())
    return any(key in each.range if each.withdrawn else key == each.key for each in items)


def initial(key: Key) -> bytes:
    """The value that the store has of a key at first."""
    return b"%s-0" % key
