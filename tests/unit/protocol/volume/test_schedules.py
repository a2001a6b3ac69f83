"""Schedules that a naive protocol fails: each broke a plausible version of a rule.

Schedules of the server's own life are in `test_schedules_of_servers.py` and
`test_schedules_of_starts.py`. `lab/mutants` leaves each rule out, and then the schedule of its name
must fail (`tests/simulation/test_volume_rules_left_out.py`).
"""

from collections.abc import Callable

import pytest

from tenure.base.instants import Instant
from tenure.base.ranges import WHOLE
from tenure.protocol.volume.client.entries import CachedObject, Entries, ReadersLease
from tenure.protocol.volume.client.events import (
    Believe,
    DropEntries,
    KeepEntry,
    Saw,
    ServerSaid,
    TellServer,
)
from tenure.protocol.volume.messages import AsOf, Renewed, Value
from tenure.protocol.volume.server.events import DrainAsked
from tenure.protocol.volume.server.terms import Terms
from tests.unit.protocol.volume.stage import OWNED, K, L, Stage, held, opened

# --- 1: the late fill ---


def test_the_late_fill() -> None:
    """An answer that an invalidation overtakes is not kept; its readers get it anyway (V7)."""
    stage = opened()
    stage.read("a", L)
    stage.want("a")
    stage.carry("Fetch")
    stage.load()
    late = stage.take("Fetched")
    stage.write()
    stage.carry("Invalidate")
    stage.carry("Acknowledge")
    stage.end_body()
    stage.deliver(late)
    assert stage.hit("a") is None
    assert stage.value("a") == b"old"
    assert stage.entries["a"].objects[K].value == b"old", "what its readers were given last"


def test_a_past_readers_answer() -> None:
    """An answer to an earlier reader number is not taken under the present one (V2)."""
    stage = held(patient=True)
    stage.pass_(4)
    stage.want("a")  # the entry is live, and the volume lease over: a renewal
    late = stage.take("Renew")
    stage.deliver(late)
    late = stage.take("Renewed")
    again = stage.restart()
    stage.pass_(4)
    stage.use("a")
    stage.carry("Renew")
    stage.carry("UnknownReader")
    stage.carry("Reconnect")
    stage.carry("Reconnected")
    assert stage.hit("a") is None
    stage.deliver(late)
    assert stage.hit("a") is None
    assert len(again.context.readers) == 1


def test_a_fetch_under_way_while_its_range_is_withdrawn() -> None:
    """Its answer was given before the range went, so nobody here hears of writes there (V7)."""
    stage = Stage(config=OWNED)
    stage.grant()
    stage.read("a", L)
    stage.want("a")
    stage.carry("Fetch")
    stage.load()
    late = stage.take("Fetched")
    stage.tell_server(DrainAsked(WHOLE, served=True))
    stage.carry("Invalidate")
    stage.carry("Acknowledge")
    stage.deliver(late)
    assert stage.hit("a") is None


def test_an_old_answer_counted_from_a_newer_request() -> None:
    """The server counts from the older one, and ends first (V2, V3)."""
    stage = held()
    stage.pass_(1)
    stage.use("a")
    stage.carry("Renew")
    late = stage.take("Renewed")
    stage.pass_(2.9)
    stage.use("a")
    stage.wake("a")
    stage.take("Renew")  # the newer one is lost
    stage.deliver(late)
    stage.pass_(0.2)  # 3.1 s after the older request was sent
    assert stage.hit("a") is None


# --- 2: the bare lease, and the mute who renews ---


def test_the_bare_lease() -> None:
    """A volume lease always comes with what was written while there was none (V4)."""
    for key in (K, L):  # a renewal; a fetch of something else
        stage = held()
        stage.pass_(4)
        stage.write()
        stage.end_body()
        assert not stage.sent, "it is inactive: nothing is sent to it"
        assert stage.read("a", key) == (b"new" if key == K else b"old")
        assert stage.hit("a") in (None, b"new")


def test_the_mute_who_renews() -> None:
    """It renews and never acknowledges; the write waits no longer than was fixed (V6)."""
    stage = held()
    stage.pass_(0.5)
    stage.write()
    stage.take("Invalidate")
    for _ in range(12):
        stage.pass_(0.25)
        stage.use("a")
        for each in stage.letters("Renew"):
            stage.sent.remove(each)
            stage.deliver(each)
        stage.wake()
    assert stage.bodies, "3.5 s after the volume lease was asked for"
    assert stage.hit("a") is None


# --- 3: two readers, one flight ---


def test_two_readers_one_flight() -> None:
    """The second reader joined after the value was read: a write may have come in between (V10)."""
    stage = opened(patient=True)
    stage.want("a", ticket=1)
    stage.settle_to("Fetched")
    late = stage.take("Fetched")
    stage.pass_(4)  # the leases in it have ended: nobody is told of the write, or waited for
    stage.write()
    stage.end_body()
    stage.want("a", ticket=2)
    stage.deliver(late)
    told = [each.tickets for each in stage.reads("a")]
    assert told == [(1,)]
    stage.settle()
    assert stage.value("a") == b"new"


def test_the_overtaken_load() -> None:
    """A body that runs while a load does: it may have read either value (V10)."""
    stage = opened()
    stage.want("a")
    stage.settle_to("", loads=True)
    stage.write()
    stage.end_body()
    stage.want("b")
    while stage.sent:
        stage.deliver(stage.sent.pop(0))
    assert len(stage.loads) == 2, "whoever asks after the write takes no part in the old load"
    stage.load(b"old")
    stage.carry("Fetched", to="a")
    assert stage.hit("a") is None, "it may not be kept"
    stage.load()
    stage.settle()
    assert stage.value("b") == b"new"
    assert stage.entries["a"].objects[K].value == b"old", "what its readers were given last"
    stage.reconnect("a")
    stage.settle()
    assert stage.hit("a") is None, "whatever it was as of, it was old"
    assert stage.read("a") == b"new"


# --- 4: the interrupted reader ---


class Watched:
    """Makes entries whose readers are stopped after one of their steps, once."""

    def __init__(self, step: str, meanwhile: Callable[[], None]) -> None:
        self.step = step
        self.meanwhile = meanwhile

    def stop(self, step: str) -> None:
        if step == self.step:
            self.step = ""
            self.meanwhile()

    def lease(self) -> ReadersLease:
        watched = self

        class Lease(ReadersLease):
            @property
            def until(self) -> Instant:
                value: Instant = self.__dict__["until"]
                watched.stop("until")
                return value

            @until.setter
            def until(self, value: Instant) -> None:
                self.__dict__["until"] = value

        return Lease()

    def entry(
        self, lease: ReadersLease, until: Instant, as_of: AsOf, value: Value | None
    ) -> CachedObject:
        watched = self

        class Object(CachedObject):
            @property
            def is_live(self) -> bool:
                value: bool = self.__dict__["is_live"]
                watched.stop("is_live")
                return value

            @is_live.setter
            def is_live(self, value: bool) -> None:
                self.__dict__["is_live"] = value

        return Object(lease, until, as_of, value)


@pytest.mark.parametrize("step", ["entry", "until", "is_live"])
@pytest.mark.parametrize("away_s", [0.0, 1.0, 8.0])
def test_the_interrupted_reader(step: str, away_s: float) -> None:
    """Stopped between any two steps, it returns nothing that was old before it began (V1)."""
    stage = opened()
    watched = Watched("", lambda: None)
    stage.entries["a"] = Entries(watched)
    assert stage.read("a") == b"old"
    was_live: list[bool] = []

    def meanwhile() -> None:
        stage.write()
        stage.settle()  # it is acknowledged, and done
        assert stage.store[K] == b"new"
        stage.pass_(away_s)
        stage.use("a")
        stage.settle()  # the same lease goes on
        was_live.append(True)

    watched.meanwhile = meanwhile
    if step == "entry":
        entries = stage.entries["a"].objects
        kept = entries[K]
        found = Entries(watched)
        found.objects = Interrupting(entries, meanwhile)
        assert found.hit(K, lambda: stage.now("a")) is None, kept
    else:
        watched.step = step
        seen = stage.entries["a"].hit(K, lambda: stage.now("a"))
        # It saw the entry live before the write was acknowledged: that value was current then.
        assert seen is None or step == "is_live"
    assert was_live


class Interrupting(dict[bytes, CachedObject]):
    """Entries that change once one of them was taken."""

    def __init__(self, entries: dict[bytes, CachedObject], meanwhile: Callable[[], None]) -> None:
        super().__init__(entries)
        self.meanwhile = meanwhile

    def get(self, key: bytes, default: object = None) -> CachedObject | None:  # type: ignore[override]
        found = super().get(key)
        self.meanwhile()
        return found


def test_what_was_dead_becomes_live_as_another_entry() -> None:
    """A reader that was stopped does not take one life of an entry for another (V1)."""
    stage = held()
    before = stage.entries["a"].objects[K]
    again = KeepEntry(
        K, "s", next(iter(stage.entries["a"].leases))[1], Instant(0), before.as_of, "unchanged"
    )
    stage.entries["a"].perform(again)
    assert stage.entries["a"].objects[K] is not before
    assert not before.is_live


# --- 5: the doubled Reconnect ---


def test_the_doubled_reconnect() -> None:
    """Read after a later fetch, it would take that one's lease off the record (V2)."""
    stage = opened()
    stage.want("a", L)
    doubled = stage.letters("Reconnect")[0]
    stage.settle()
    stage.read("a")
    stage.deliver(doubled)
    stage.write()
    assert not stage.bodies
    stage.settle()
    assert stage.hit("a") is None


def test_a_reconnect_during_a_write() -> None:
    """An object that is being written is not live by its answer (V8)."""
    stage = held("a", "b")
    stage.pass_(4)
    stage.read("b")
    stage.write()  # b holds it, and is silent
    stage.take("Invalidate")
    stage.reconnect("a")
    stage.carry("Reconnect")
    stage.carry("Reconnected")
    assert stage.hit("a") is None


def test_an_item_for_a_reader_number_that_is_not_known_yet() -> None:
    """It is not applied, so it must not be acknowledged."""
    stage = held()
    stage.pass_(4)
    stage.reconnect("a")
    stage.carry("Reconnect")
    answer = stage.take("Reconnected")
    stage.write()
    stage.carry("Invalidate")
    assert not stage.letters("Acknowledge")
    stage.deliver(answer)
    assert stage.hit("a") == b"old", "live by that answer, until the server need not wait for it"
    assert not stage.bodies


def test_withdrawn_before_the_answer() -> None:
    """An entry is asked about, and withdrawn: the late answer does not make it live (V7)."""
    stage = Stage(config=OWNED)
    stage.grant()
    stage.read("a")
    stage.use("a", K)
    stage.carry("Renew")
    late = stage.take("Renewed")
    stage.tell_server(DrainAsked(WHOLE, served=True))
    stage.carry("Invalidate")
    stage.carry("Acknowledge")
    stage.deliver(late)
    assert stage.hit("a") is None


def test_written_before_the_answer() -> None:
    """The same as above, by a write (V7)."""
    stage = held()
    stage.use("a", K)
    stage.carry("Renew")
    late = stage.take("Renewed")
    stage.write()
    stage.carry("Invalidate")
    stage.carry("Acknowledge")
    stage.end_body()
    stage.deliver(late)
    assert stage.hit("a") is None


# --- 6: the late own write ---


def test_the_late_own_write() -> None:
    """A lease is remembered by its highest request: an overtaken fetch must not lower it (V9)."""
    stage = opened(patient=True)
    stage.read("a", L)
    stage.want("a", K, ticket=1)
    overtaken = stage.take("Fetch")
    stage.write_at("a", b"own")
    write = stage.take("Write")
    flight = stage.caches["a"].context.fetches.flights[K]
    flight.void()
    stage.caches["a"].questions.fetch(stage.now("a"), flight)
    stage.wake("a")
    stage.carry("Fetch")
    stage.load()
    stage.carry("Fetched")
    assert stage.hit("a") == b"old"
    stage.deliver(overtaken)
    stage.load()
    stage.deliver(write)
    assert not stage.bodies, "the client hits the old value"
    stage.settle()
    assert stage.hit("a") in (None, b"own")


def test_a_writer_acknowledges_by_writing() -> None:
    """Its own lease is not waited for, and nothing is sent to it (V9)."""
    stage = held("a")
    stage.write_at("a")
    assert stage.hit("a") is None
    stage.carry("Write")
    assert stage.bodies
    stage.end_body()
    stage.carry("WriteDone")
    assert stage.hit("a") == b"own", "the answer fills its entry"


def test_joined_and_then_written() -> None:
    """The entry is live by then, by the client's own write; the fetch brought what was before."""
    stage = opened(patient=True)
    stage.read("a", L)
    stage.want("a", ticket=1)
    stage.carry("Fetch")
    stage.load(b"old")
    late = stage.take("Fetched")
    stage.write_at("a", b"own")
    stage.carry("Write")
    stage.end_body()
    stage.carry("WriteDone")
    flight_of = stage.caches["a"].context.fetches.flights[K]
    flight_of.join(2)
    stage.deliver(late)
    told = [(each.tickets, each.outcome) for each in stage.reads("a") if each.key == K]
    assert told == [((1,), "value"), ((2,), "hit")]
    assert stage.hit("a") == b"own"


def test_the_reader_that_was_stopped_while_its_client_had_no_lease() -> None:
    """It looked at an entry that nobody had called back, and the lease goes on meanwhile (V1)."""
    stage = opened()
    watched = Watched("", lambda: None)
    stage.entries["a"] = Entries(watched)
    assert stage.read("a") == b"old"
    stage.pass_(4)
    stage.write()
    stage.end_body()  # it is inactive: nobody tells it

    def meanwhile() -> None:
        stage.use("a")
        stage.settle()

    watched.meanwhile, watched.step = meanwhile, "is_live"
    assert stage.hit("a") is None


def test_an_item_of_a_past_reader() -> None:
    """Its number is another item's under the present reader: that is not acknowledged (V2)."""
    stage = held()
    stage.read("a", L)
    stage.write(L)
    late = stage.take("Invalidate")
    stage.reconnect("a")
    stage.settle()
    assert stage.read("a") == b"old"
    stage.write(K, ticket=2)
    stage.take("Invalidate")
    stage.deliver(late)
    assert not stage.letters("Acknowledge")
    assert not stage.bodies
    assert stage.hit("a") == b"old"


def test_a_write_that_comes_twice() -> None:
    """The second time it would undo what was written in between (V2)."""
    stage = held()
    stage.write_at("a", b"one")
    twice = stage.letters("Write")[0]
    stage.settle()
    stage.write_at("a", b"two", ticket=10)
    stage.settle()
    stage.deliver(twice)
    stage.settle()
    assert stage.store[K] == b"two"


def test_what_others_saw() -> None:
    """A client never reads anything older than its application has seen, in any mode (C5)."""
    stage = held("a", "b", terms=Terms(mode="best effort"))
    stage.write()
    stage.end_body()
    stage.take("Invalidate", to="b")
    stage.settle()
    assert stage.read("a") == b"new"
    assert stage.hit("b") == b"old"
    stage.tell_cache("b", Saw(K, stage.as_of("a")))
    assert stage.hit("b") is None
    assert stage.read("b") == b"new"


def test_the_order_of_what_an_answer_does() -> None:
    """A reader may look between any two: what is dead is so before the lease goes on (V1, V4)."""
    stage = held()
    stage.pass_(4)
    stage.write()
    stage.end_body()
    stage.want("a")
    stage.carry("Renew")
    renewed = stage.take("Renewed").message
    assert isinstance(renewed, Renewed)
    output = stage.caches["a"].handle(stage.now("a"), ServerSaid("s", renewed))
    done = [each for each in output.actions if isinstance(each, DropEntries | Believe | TellServer)]
    assert [type(each) for each in done[:3]] == [DropEntries, Believe, TellServer]
