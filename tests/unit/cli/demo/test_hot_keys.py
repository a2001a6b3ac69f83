"""HotKeys: which keys they are, when, and how even the owners report their load."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from tenure import Lookup
from tenure.base.instants import Instant, in_seconds, seconds
from tenure.cli.demo import hot_keys
from tenure.cli.demo.children import Child
from tenure.cli.demo.hot_keys import WINDOW, HotKeys, Spread
from tenure.cli.demo.reports import Crowd, OwnerReport, encode
from tenure.cli.demo.service import DemoSettings, PresenceService
from tenure.errors import ConfigurationError
from tenure.testing.clock import START, TurnedClock


def spread(*served: tuple[float, list[int]]) -> Spread:
    it = Spread()
    for at, counts in served:
        it.see(Instant(seconds(at)), counts)
    return it


def test_nothing_is_known_before_a_whole_window() -> None:
    assert Spread().most_to_mean is None
    assert spread((0, [0, 0]), (WINDOW / 1e9 - 0.1, [9, 9])).most_to_mean is None


@pytest.mark.parametrize(
    ("grown", "most_to_mean"), [([10, 10], 1.0), ([30, 10], 1.5), ([0, 8], 2.0), ([0, 0], 0.0)]
)
def test_it_is_the_most_that_one_has_served_beside_the_mean(
    grown: list[int], most_to_mean: float
) -> None:
    last = [before + more for before, more in zip([100, 7], grown, strict=True)]
    assert spread((0, [100, 7]), (3, last)).most_to_mean == most_to_mean


def test_what_was_served_before_the_window_does_not_count() -> None:
    assert spread((0, [0, 0]), (3, [90, 10]), (6, [100, 20])).most_to_mean == 1.0


class World:
    """A pool whose owners serve what is asked of them. Time passes where somebody sleeps.

    400 requests a second are for all users alike, and once there is a crowd another 400 for its
    users. These are dealt to all owners in turn when it is `spread_seconds` old.
    """

    def __init__(self, directory: Path, users_of: Sequence[int], spread_seconds: float) -> None:
        self.clock = TurnedClock()
        settings = DemoSettings(seconds=60, owners=len(users_of), frontends=1, preset="test")
        self.service = PresenceService(settings, directory, lambda _: None)
        self.service.lookup = cast("Lookup", self)
        self.service.frontends.children = [cast("Child", self)]
        owners = [number for number, count in enumerate(users_of) for _ in range(count)]
        self.at = dict(zip(settings.users, owners, strict=True))
        self.served = [0.0] * len(users_of)
        self.spread_seconds = spread_seconds
        self.crowds: list[tuple[Instant, tuple[str, ...], set[int]]] = []
        """The beginning of each crowd, whose keys it wanted, and at which owners they were."""
        self.told: list[str] = []
        self._report()

    def gathering(self) -> HotKeys:
        return HotKeys(self.service, self.told.append, Random(1))

    def find(self, user: str) -> str:
        return address(self.at[user])

    def tell(self, crowd: Crowd) -> None:
        self.crowds.append((self.clock(), crowd.users, {self.at[user] for user in crowd.users}))

    async def sleep(self, duration: float) -> None:
        self.clock.jump(duration)
        assert self.clock() < START + seconds(3600), f"never even: {self.told}"
        began, users, _ = self.crowds[-1]
        if self.clock() >= began + seconds(self.spread_seconds):
            self.at |= {user: n % len(self.served) for n, user in enumerate(users)}
        for asked in (self.at, users):
            for user in asked:
                self.served[self.at[user]] += 400 * duration / len(asked)
        self._report()

    def _report(self) -> None:
        for place, served in zip(self.service.owners, self.served, strict=True):
            at = address(place.number - 1)
            place.on_line(encode(OwnerReport(at=self.clock(), address=at, served=round(served))))


def address(number: int) -> str:
    return f"http://owner-{number}"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., World]:
    def make(*users_of: int, spread_seconds: float = 10.0) -> World:
        it = World(tmp_path, users_of, spread_seconds)
        monkeypatch.setattr(hot_keys, "boot_clock", it.clock)
        monkeypatch.setattr(hot_keys, "asyncio", SimpleNamespace(sleep=it.sleep))
        return it

    return make


@pytest.mark.asyncio
async def test_a_crowd_is_at_one_owner_until_its_users_have_been_given_to_others(
    world: Callable[..., World],
) -> None:
    it = world(20, 20, 20, 20)
    gathering = it.gathering()
    await gathering.play(it.clock.after(hot_keys.CROWD_SECONDS))
    ((_, users, owners),) = it.crowds
    assert len(set(users)) == hot_keys.USERS_FOR_EACH_OWNER * 4
    assert len(owners) == 1
    assert gathering.uneven == [pytest.approx((100 + 400) / 200, abs=0.01)]
    (took,) = gathering.times
    assert 10 < took <= 10 + in_seconds(hot_keys.WINDOW)
    (number,) = owners
    begun, ended = it.told
    assert begun == f"half of all requests are for 8 users now, all of owner {number + 1}"
    assert ended.startswith("they are at 4 owners: the one with most serves 1.")
    assert ended.endswith(f"2.50 at the worst; even again after {took:.1f} s")


@pytest.mark.asyncio
async def test_the_next_crowd_is_of_another_owner_though_the_last_one_has_most(
    world: Callable[..., World],
) -> None:
    it = world(32, 16, 16, 16, spread_seconds=0)
    gathering = it.gathering()
    await gathering.play(it.clock.after(25 + hot_keys.CROWD_SECONDS))
    (_, _, first), (_, _, second), *_ = it.crowds
    assert first == {0}
    assert second != first
    assert len(second) == 1


@pytest.mark.asyncio
async def test_no_load_is_called_even_before_there_is_a_whole_window_of_it(
    world: Callable[..., World],
) -> None:
    it = world(20, 20, 20, 20, spread_seconds=0)
    gathering = it.gathering()
    await gathering.play(it.clock.after(hot_keys.CROWD_SECONDS))
    assert gathering.times == [pytest.approx(3.2, abs=0.21)]


@pytest.mark.asyncio
async def test_crowds_follow_one_another_as_long_as_there_is_time_for_one(
    world: Callable[..., World],
) -> None:
    it = world(20, 20, 20, 20)
    gathering = it.gathering()
    end = it.clock.after(60)
    await gathering.play(end)
    each = hot_keys.WATCH_SECONDS + sum(gathering.times) / len(gathering.times)
    latest = end - seconds(hot_keys.CROWD_SECONDS)
    assert len(it.crowds) == len(gathering.uneven) == 3, it.told
    assert it.crowds[-1][0] <= latest < it.crowds[-1][0] + seconds(each)


@pytest.mark.asyncio
async def test_where_there_is_no_time_for_a_crowd_none_is_gathered(
    world: Callable[..., World],
) -> None:
    it = world(20, 20, 20, 20)
    await it.gathering().play(it.clock.after(hot_keys.CROWD_SECONDS - 0.1))
    assert it.crowds == []


@pytest.mark.parametrize(
    ("length", "owners", "frontends", "words"),
    [
        (14.9, 4, 3, "--seconds 14.9 is too short"),
        (15, 8, 3, "8 owners wants 256 users: add --frontends 4, or have fewer owners"),
    ],
)
def test_what_no_crowd_could_be_seen_in_is_refused(
    length: float, owners: int, frontends: int, words: str
) -> None:
    settings = DemoSettings(seconds=length, owners=owners, frontends=frontends, preset="test")
    with pytest.raises(ConfigurationError, match=words):
        hot_keys.check_size(settings)


def test_the_smallest_that_a_crowd_can_be_seen_in_is_taken() -> None:
    hot_keys.check_size(DemoSettings(seconds=15, owners=8, frontends=4, preset="test"))
    hot_keys.check_size(DemoSettings(seconds=15, owners=7, frontends=3, preset="test"))
