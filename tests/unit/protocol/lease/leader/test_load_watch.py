"""A pool's rounds: what owners tell of the load, when it is known, and when a policy is asked."""

from math import inf, nan

import pytest

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.base.keys import KEY_BYTES, hashed_key
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.balance.load import key_of
from tenure.protocol.balance.policy import Plan, Situation
from tenure.protocol.lease.leader import load_watch
from tenure.protocol.lease.leader.load_watch import BLENDING_NS, LoadWatch
from tenure.protocol.lease.load_report import KeyLoad, LevelLoad, LoadReport, RangeLoad
from tenure.protocol.lease.messages import Held, LeaseResponse
from tenure.protocol.lease.records import PoolCreated
from tenure.protocol.lease.table import LeaseTable
from tenure.protocol.lease.timing import DEFAULT
from tests.unit.protocol.lease.desk import HIGH, LOW, ByName, Desk, at

A, B = 101, 102
RENEW = DEFAULT.renew_ns / 1e9
BLENDING = BLENDING_NS / 1e9


class Watched(ByName):
    """Remembers what it was asked, and its memory goes round."""

    follows_load = True

    def __init__(self, *wanted: tuple[KeyRange, str]) -> None:
        super().__init__(*wanted)
        self.asked: list[Situation] = []
        self.times = 0

    def __call__(self, situation: Situation) -> Plan:
        self.asked.append(situation)
        self.times += 1
        return super().__call__(situation)._replace(memory=self.times)


class Stage:
    """Two owners of a hashed pool, with a half each."""

    def __init__(self) -> None:
        self.policy = Watched((LOW, "a b"), (HIGH, "b a"))
        self.desk = Desk(self.policy, kind="hashed")
        self.numbers = {A: self.desk.owner(at(0), "a", A), B: self.desk.owner(at(0.01), "b", B)}
        self.held = {
            nonce: self.desk.settle(at(0.3), self.numbers[nonce], nonce) for nonce in (A, B)
        }
        self.policy.asked.clear()

    def tell(self, now: Instant, nonce: int, rate: float, *hottest: KeyLoad) -> None:
        [its] = self.held[nonce]
        told = RangeLoad(start=its.start, end=its.end, rate=rate)
        self.say(now, nonce, LoadReport(span_ns=DEFAULT.renew_ns, ranges=(told,), hottest=hottest))

    def say(self, now: Instant, nonce: int, load: LoadReport | None = None) -> None:
        answer = self.desk.ask(now, self.numbers[nonce], nonce, self.held[nonce], load=load)
        assert isinstance(answer, LeaseResponse)

    def renew(self, first: int, last: int, *rates: tuple[int, float | None]) -> None:
        """Renew from the first to the last, and let a moment pass."""
        for i in range(first, last + 1):
            for nonce, rate in rates:
                if rate is None:
                    self.say(at(i * RENEW), nonce)
                else:
                    self.tell(at(i * RENEW), nonce, rate)
        self.desk.advance(at(last * RENEW + 0.1))


def test_without_load_the_policy_is_not_asked_again() -> None:
    stage = Stage()
    stage.renew(1, 20, (A, 0.0), (B, 0.0))
    assert stage.policy.asked == []
    assert stage.desk.pool.planner.load_watch.at == FAR_FUTURE


class Later(Watched):
    """Wants to be asked again two seconds after the first question, and never after that."""

    def __call__(self, situation: Situation) -> Plan:
        plan = super().__call__(situation)
        asked_at = self.asked[0].now
        again_at = Instant(asked_at + seconds(2))
        return plan._replace(again_at=again_at) if situation.now < again_at else plan


def test_a_policy_is_asked_again_when_it_wants_to_be_without_any_load() -> None:
    desk = Desk(Later((WHOLE, "a")), kind="hashed")
    policy = desk.policy
    assert isinstance(policy, Later)
    desk.owner(at(0), "a", A)
    desk.advance(at(1))
    [first] = policy.asked
    desk.advance(Instant(first.now + seconds(2) - 1))
    assert policy.asked == [first]
    assert desk.pool.wake_at == first.now + seconds(2)
    desk.advance(desk.pool.wake_at)
    assert [each.now for each in policy.asked] == [first.now, first.now + seconds(2)]
    desk.advance(at(10))
    assert len(policy.asked) == 2
    assert desk.pool.planner.load_watch.at == FAR_FUTURE


def test_with_load_it_is_asked_every_renewal_and_keeps_its_memory() -> None:
    stage = Stage()
    stage.renew(1, 10, (A, 100.0), (B, 10.0))
    assert [situation.now for situation in stage.policy.asked] == [
        at(i * RENEW) for i in range(2, 11)
    ]
    first = stage.policy.times - len(stage.policy.asked)
    assert [each.memory for each in stage.policy.asked] == list(range(first, first + 9))


def test_loads_are_known_when_everything_was_told_of_and_has_been_blended_in() -> None:
    stage = Stage()
    stage.renew(1, 6, (A, 100.0), (B, None))
    assert {situation.loads for situation in stage.policy.asked} == {None}, "b has not told yet"
    stage.renew(7, 20, (A, 100.0), (B, 10.0))
    known = [each for each in stage.policy.asked if each.loads is not None]
    assert known[0].now >= at(7 * RENEW + BLENDING)
    loads = known[-1].loads
    assert loads is not None
    assert list(loads.starts) == [b"", b"m"]
    assert [round(rate) for rate in loads.rates] == [100, 10]


def test_when_the_load_ends_so_do_the_rounds() -> None:
    stage = Stage()
    stage.renew(1, 3, (A, 100.0), (B, 10.0))
    stage.renew(4, 60, (A, 0.0), (B, 0.0))
    assert stage.desk.pool.planner.load_watch.at == FAR_FUTURE
    assert stage.policy.asked[-1].now < at(60 * RENEW)


def test_an_owner_tells_only_of_what_is_its_own() -> None:
    stage = Stage()
    stage.tell(at(3), A, 100.0, KeyLoad(key=b"a" * 8, rate=50.0), KeyLoad(key=b"x" * 8, rate=90.0))
    foreign = (RangeLoad(start=b"m", end=None, rate=500.0), KeyLoad(key=b"x" * 8, rate=400.0))
    stage.say(
        at(3.1), A, LoadReport(span_ns=seconds(3), ranges=(foreign[0],), hottest=(foreign[1],))
    )
    loads = stage.desk.pool.planner.load_watch.picture.loads(at(4))
    assert [key for key, _ in loads.hottest] == [b"a" * 8]
    assert stage.desk.pool.planner.load_watch.carried(at(4)).get(stage.numbers[B], 0.0) == 0.0


@pytest.mark.parametrize("rate", [nan, inf, -1.0, 1e308])
def test_what_cannot_be_a_rate_is_not_taken(rate: float) -> None:
    """Decoding refuses it. Were it taken all the same, the picture would be one of nothing."""
    stage = Stage()
    stage.tell(at(3), A, rate, KeyLoad(key=b"a" * 8, rate=rate))
    loads = stage.desk.pool.planner.load_watch.picture.loads(at(4))
    assert (sum(loads.rates), loads.hottest) == (0.0, [])


@pytest.mark.parametrize("rate", [nan, inf, -1.0, 1e308])
def test_what_cannot_be_the_rate_of_a_key_is_not_taken(rate: float) -> None:
    stage = Stage()
    stage.tell(at(3), A, 10.0, KeyLoad(key=b"a" * 8, rate=rate))
    loads = stage.desk.pool.planner.load_watch.picture.loads(at(4))
    assert (sum(loads.rates) > 0, loads.hottest) == (True, [])


def ordered_watch() -> LoadWatch:
    return LoadWatch(LeaseTable(PoolCreated(pool="p", kind="ordered")), DEFAULT.renew_ns)


def test_a_sample_is_believed_of_an_owner_s_own_ranges() -> None:
    """Keys outside, keys that cannot bound a range, and keys out of order harm nobody."""
    watch = ordered_watch()
    given = (Held(start=b"b", end=b"m", number=9),)
    told = (RangeLoad(start=b"b", end=b"m", rate=6.0),)
    sample = (b"k", b"a", b"c", b"m", b"z", b"c" * KEY_BYTES)
    watch.take(at(1), LoadReport(span_ns=seconds(300), ranges=told, sample=sample), given)
    found = watch.picture.loads(at(1)).sample
    assert [(each.key, round(each.rate)) for each in found] == [(b"c", 3), (b"k", 3)]


def test_a_sample_is_of_no_use_to_a_hashed_pool() -> None:
    watch = LoadWatch(LeaseTable(PoolCreated(pool="p", kind="hashed")), DEFAULT.renew_ns)
    told = (RangeLoad(start=b"", end=None, rate=6.0),)
    given = (Held(start=b"", end=None, number=9),)
    load = LoadReport(span_ns=seconds(3), ranges=told, sample=(b"a" * 8,))
    watch.take(at(1), load, given)
    assert watch.picture.loads(at(1)).sample == []


def test_a_hot_key_of_an_ordered_pool_has_its_name() -> None:
    watch = ordered_watch()
    given, told = (
        (Held(start=b"", end=None, number=9),),
        (RangeLoad(start=b"", end=None, rate=9.0),),
    )
    hot = (KeyLoad(key=b"attic", rate=9.0), KeyLoad(key=b"cellar", rate=8.0))
    names = ("attic", "roof")
    watch.take(at(1), LoadReport(span_ns=seconds(3), ranges=told, hottest=hot, names=names), given)
    assert [each.name for each in watch.hottest(2)] == ["attic", ""]


def memory(rate: float, metric: str = "memory") -> LoadReport:
    """A report of no requests, and of that much memory."""
    told = (RangeLoad(start=b"b", end=b"m", rate=rate),) if rate else ()
    return LoadReport(
        span_ns=seconds(3), ranges=(), levels=(LevelLoad(metric=metric, ranges=told),)
    )


def test_a_level_is_known_when_all_owners_have_a_capacity_for_it_and_it_has_been_told() -> None:
    watch = ordered_watch()
    given = (Held(start=b"b", end=b"m", number=9),)
    watch.take(at(1), memory(5e9), given)
    watch.begin(at(2), {"memory"})
    assert watch.at == FAR_FUTURE, "what was told before counts for nothing"
    assert watch.take(at(3), memory(5e9), given), "it alone begins the rounds"
    assert not watch.take(at(6), memory(7e9, metric="disk"), given)
    for i in range(10):
        watch.take(at(6 + 3 * i), memory(5e9), given)
    assert watch.levels(at(2 + BLENDING - 0.1)) == {}
    assert watch.levels(at(40))["memory"].rates == [0.0, pytest.approx(5e9, rel=0.01), 0.0]
    watch.begin(at(40), {"memory"})
    assert watch.at == at(40 + RENEW)
    for i in range(10):
        watch.take(at(41 + 3 * i), memory(0.0), given)
    assert max(watch.levels(at(80))["memory"].rates) < 1e8, "it has gone"
    watch.begin(at(80), ())
    assert (watch.levels(at(80)), watch.at) == ({}, FAR_FUTURE)


def test_what_a_level_says_of_others_ranges_and_keys_is_not_believed() -> None:
    watch = ordered_watch()
    watch.begin(at(0), {"memory", "sockets", "disk"})
    given = (Held(start=b"b", end=b"m", number=9),)
    level = LevelLoad(
        metric="memory",
        ranges=(RangeLoad(start=b"m", end=b"z", rate=5.0),),
        hottest=(KeyLoad(key=b"n", rate=5.0), KeyLoad(key=b"c" * KEY_BYTES, rate=5.0)),
        sample=(b"n",),
    )
    watch.take(at(1), LoadReport(span_ns=seconds(3), ranges=(), levels=(level,)), given)
    watch.take(at(1), memory(1.0, metric="sockets"), given)
    told = watch.levels(at(40))
    assert sorted(told) == ["disk", "memory"], "no more than reports have room for"
    assert told["memory"].rates == [0.0]
    assert [*told["memory"].hottest, *told["memory"].sample] == []


def test_a_policy_that_follows_no_load_is_not_asked_because_of_it() -> None:
    policy = Watched((WHOLE, "a"))
    policy.follows_load = False
    desk = Desk(policy)
    number = desk.owner(at(0), "a", A)
    held: tuple[Held, ...] = desk.settle(at(0.3), number, A)
    load = LoadReport(span_ns=seconds(3), ranges=(RangeLoad(start=b"", end=None, rate=100.0),))
    desk.ask(at(3), number, A, held, load=load)
    assert desk.pool.planner.load_watch.at < desk.pool.planner.wake_at == FAR_FUTURE
    assert desk.pool.planner.load_watch.carried(at(3))[number] > 0


def test_what_is_told_of_ranges_that_have_become_one_meanwhile_counts() -> None:
    """An owner hears of a renumbering with the answer to the very request that tells the load."""
    table = LeaseTable(PoolCreated(pool="p", kind="hashed"))
    watch = LoadWatch(table, DEFAULT.renew_ns)
    parts = [(b"", b"a", 30.0), (b"a", b"m", 10.0), (b"m", b"z", 500.0)]
    told = tuple(RangeLoad(start=start, end=end, rate=rate) for start, end, rate in parts)
    given = (Held(start=b"", end=b"m", number=9),)
    watch.take(at(1), LoadReport(span_ns=seconds(300), ranges=told, hottest=()), given)
    loads = watch.picture.loads(at(1))
    assert [round(rate) for rate in loads.rates] == [40, 0], "and nothing of other owners"


def test_whatever_parts_an_owner_tells_the_picture_has_the_bounds_of_the_table() -> None:
    watch = LoadWatch(LeaseTable(PoolCreated(pool="p", kind="hashed")), DEFAULT.renew_ns)
    given = (Held(start=b"", end=b"m", number=9), Held(start=b"t", end=None, number=9))
    for number in range(100):
        starts = [b"a" + key_of(number * 1_000_000 + 2 * n) for n in range(100)]
        told = tuple(RangeLoad(start=each, end=each + b"\0", rate=1.0) for each in starts)
        watch.take(at(1), LoadReport(span_ns=1, ranges=told), given)
    assert set(watch.picture.loads(at(1)).starts) == {b"", b"m"}


def test_a_picture_with_more_than_tables_have_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What owners that have gone had told stays in it until their keys are told of again."""
    monkeypatch.setattr(load_watch, "MOST_KNOWN", 1_000)
    watch = LoadWatch(LeaseTable(PoolCreated(pool="p", kind="hashed")), DEFAULT.renew_ns)
    for number in range(2_000):
        given = (Held(start=key_of(2 * number), end=key_of(2 * number + 1), number=9),)
        told = (RangeLoad(start=given[0].start, end=given[0].end, rate=1.0),)
        watch.take(at(1), LoadReport(span_ns=seconds(3), ranges=told), given)
        assert watch.picture.size <= 1_000


def test_a_hot_key_has_its_name_and_no_other() -> None:
    """An owner could say anything: a name is believed if it is the name of that key."""
    stage = Stage()
    [its] = stage.held[A]
    here = [name for name in map(str, range(100)) if hashed_key(name) in its.range]
    true, false, unnamed = here[:3]
    hot = tuple(
        KeyLoad(key=hashed_key(name), rate=rate)
        for name, rate in ((true, 30.0), (false, 20.0), (unnamed, 10.0))
    )
    ranges = (RangeLoad(start=its.start, end=its.end, rate=90.0),)
    told = LoadReport(
        span_ns=DEFAULT.renew_ns, ranges=ranges, hottest=hot, names=(true, "another's", "")
    )
    stage.say(at(3), A, told)
    found = stage.desk.pool.planner.load_watch.hottest(most=9)
    assert [each.name for each in found] == [true, "", ""]
    assert [each.key for each in found] == [each.key for each in hot]
    assert len(stage.desk.pool.planner.load_watch.hottest(most=2)) == 2


def test_names_of_keys_that_are_no_longer_hot_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(load_watch, "MOST_NAMES", 2)
    stage = Stage()
    [its] = stage.held[A]
    here = [name for name in map(str, range(1000)) if hashed_key(name) in its.range]
    ranges = (RangeLoad(start=its.start, end=its.end, rate=90.0),)
    for i in range(40):
        hot = (KeyLoad(key=hashed_key(here[i]), rate=30.0),)
        told = LoadReport(span_ns=DEFAULT.renew_ns, ranges=ranges, hottest=hot, names=(here[i],))
        stage.say(at(3 * (i + 1)), A, told)
    watch = stage.desk.pool.planner.load_watch
    assert watch.hottest(most=99)[0].name == here[39]
    assert len(watch._names) <= 2


def test_only_so_many_names_are_known_however_many_keys_are_hot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise each report of a large pool would look at all of its hot keys."""
    monkeypatch.setattr(load_watch, "MOST_NAMES", 8)
    stage = Stage()
    [its] = stage.held[A]
    here = [name for name in map(str, range(1000)) if hashed_key(name) in its.range][:40]
    ranges = (RangeLoad(start=its.start, end=its.end, rate=90.0),)
    watch = stage.desk.pool.planner.load_watch
    for i, name in enumerate(here):
        hot = (KeyLoad(key=hashed_key(name), rate=30.0 + i),)
        told = LoadReport(span_ns=seconds(0.1), ranges=ranges, hottest=hot, names=(name,))
        stage.say(at(3 + i / 10), A, told)
        assert len(watch._names) <= 8
    assert len(watch.picture.hottest()) > 20
    assert watch.hottest(1)[0].name == here[-1]
